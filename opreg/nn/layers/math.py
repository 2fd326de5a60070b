"""Layers that are one function."""

from __future__ import annotations

from ..cell import Cell
from ..ops import linalg
from ..tensor import Tensor
from .checks import flag

__all__ = ["MatMul"]


class MatMul(Cell):
    """Products of the matrices in the last two axes, which may be transposed; the axes before broadcast.

    A vector is a row on the left and a column on the right, and is not transposed.

    Parameters
    ----------
    transpose_x1, transpose_x2 : bool

    Examples
    --------
    >>> import opreg.nn as nn
    >>> MatMul(transpose_x2=True)(nn.Tensor([[1.0, 2.0]]), nn.Tensor([[3.0, 4.0]]))
    Tensor(shape=[1, 1], dtype=Float32, value=
    [[ 1.10000000e+01]])
    """

    def __init__(self, transpose_x1: bool = False, transpose_x2: bool = False):
        super().__init__()
        self.transpose_x1 = flag(self, "transpose_x1", transpose_x1)
        self.transpose_x2 = flag(self, "transpose_x2", transpose_x2)

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The product of ``x1`` and ``x2``."""
        return linalg.matmul(_turned(x1, self.transpose_x1), _turned(x2, self.transpose_x2))


def _turned(x: Tensor, transpose: bool) -> Tensor:
    return x.swapaxes(-1, -2) if transpose and len(x.shape) > 1 else x
