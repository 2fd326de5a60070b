"""The edge of an executor whose arguments or gradients are sparse: its plan has a dense twin of each."""

from __future__ import annotations

import numpy as np

from opreg.ndarray.ndarray import NDArray

__all__ = ["SparseEdge", "twin"]


def twin(array: NDArray) -> NDArray:
    """The array that a plan has in the place of another: a dense one of a sparse array, else that itself."""
    return NDArray(np.array(array._data), array.context) if array._sparse else array


class SparseEdge:
    """Sparse arrays of an executor and their dense twins, which its plan reads and writes.

    Parameters
    ----------
    args, grads : list of (NDArray, NDArray)
        Arrays with their twins.
    """

    def __init__(self, args: list[tuple[NDArray, NDArray]], grads: list[tuple[NDArray, NDArray]]):
        self._args, self._grads = args, grads

    def enter(self) -> None:
        """Let the twins of arguments have the numbers of their arrays."""
        for array, dense in self._args:
            dense._store(Ellipsis, array)

    def begin(self) -> None:
        """Let the twins of gradients have theirs, to which a backward pass may add."""
        for array, dense in self._grads:
            dense._store(Ellipsis, array)

    def leave(self) -> None:
        """Store the gradients: of ``row_sparse`` ones the rows that are not all zero."""
        for array, dense in self._grads:
            array._store(Ellipsis, dense)
