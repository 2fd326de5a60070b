"""Conversion between the sparse arguments and gradients of an executor and the dense arrays that its plan computes
on."""

from __future__ import annotations

import numpy as np

from opreg.ndarray.ndarray import NDArray

__all__ = ["SparseEdge", "twin"]


def twin(array: NDArray) -> NDArray:
    """The dense copy of a sparse array, on which plans compute; a dense array itself."""
    return NDArray(np.array(array._data), array.context) if array._sparse else array


class SparseEdge:
    """The sparse arrays of an executor with their dense twins, which its plan reads and writes.

    Parameters
    ----------
    args, grads : list of (NDArray, NDArray)
        Arrays with their twins.
    """

    def __init__(self, args: list[tuple[NDArray, NDArray]], grads: list[tuple[NDArray, NDArray]]):
        self._args, self._grads = args, grads

    def enter(self) -> None:
        """Copy the sparse arguments into their twins."""
        for array, dense in self._args:
            dense._store(Ellipsis, array)

    def begin(self) -> None:
        """Copy the sparse gradients into their twins, since backward may add to them."""
        for array, dense in self._grads:
            dense._store(Ellipsis, array)

    def leave(self) -> None:
        """Copy the twins into the sparse gradients; a ``row_sparse`` one stores the rows that are not all zero."""
        for array, dense in self._grads:
            array._store(Ellipsis, dense)
