"""Classes of sparse tensors, for programs that test for them with ``isinstance``; tensors are never instances of
them."""

from __future__ import annotations

from ..errors import ArgumentError

__all__ = ["COOTensor", "CSRTensor", "RowTensor", "SparseTensor"]


class _Sparse:
    """Base of these classes; it has no instances."""

    def __init__(self, *args: object, **keywords: object):
        raise ArgumentError(f"{type(self).__name__}: tensors are dense here; nd.sparse has sparse arrays")


class RowTensor(_Sparse):
    """Nonzero rows of a tensor; the constructor raises an ArgumentError.

    Examples
    --------
    >>> from opreg import Tensor
    >>> isinstance(Tensor([1.0]), RowTensor)
    False
    """


class COOTensor(_Sparse):
    """Nonzero elements of a tensor with their positions; see ``RowTensor``."""


class CSRTensor(_Sparse):
    """Nonzero elements of a matrix by rows; see ``RowTensor``."""


class SparseTensor(_Sparse):
    """An older name of ``COOTensor``; see ``RowTensor``."""
