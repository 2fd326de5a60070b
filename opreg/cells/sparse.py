"""The classes of sparse tensors, for programs that ask whether a gradient is one: none is, and none is made."""

from __future__ import annotations

from ..errors import ArgumentError

__all__ = ["COOTensor", "CSRTensor", "RowTensor", "SparseTensor"]


class _Sparse:
    """A class without instances."""

    def __init__(self, *args: object, **keywords: object):
        raise ArgumentError(f"{type(self).__name__}: tensors are dense here; nd.sparse has sparse arrays")


class RowTensor(_Sparse):
    """Rows of a tensor whose others are zero; making one is an ArgumentError.

    Examples
    --------
    >>> from opreg import Tensor
    >>> isinstance(Tensor([1.0]), RowTensor)
    False
    """


class COOTensor(_Sparse):
    """Numbers at places of a tensor whose others are zero; see ``RowTensor``."""


class CSRTensor(_Sparse):
    """Numbers of a matrix by rows; see ``RowTensor``."""


class SparseTensor(_Sparse):
    """The name of ``COOTensor`` in MindSpore 1.x; see ``RowTensor``."""
