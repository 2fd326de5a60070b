"""``mint.linalg``: norms, inverses and the product of an orthonormal and a triangular matrix."""

from __future__ import annotations

from ...cells.tensor import Tensor
from ...cells.typing import Axes, Number, TensorDType, TensorLike
from ...core.registry import ops as operators
from ...errors import ArgumentError
from .. import ops
from ..ops import inverse as inv
from ..ops import norm, swapaxes
from ..ops.lift import floating

__all__ = ["inv", "matrix_norm", "norm", "qr", "vector_norm"]


def vector_norm(x: TensorLike, ord: Number = 2, dim: Axes = None, keepdim: bool = False, *,
                dtype: TensorDType = None) -> Tensor:
    """The root of the sum of powers of all elements, or along axes."""
    return ops.vector_norm(x, ord, dim, keepdim, dtype=dtype)


def matrix_norm(A: TensorLike, ord: Number | str = "fro", dim: tuple[int, int] = (-2, -1), keepdim: bool = False, *,
                dtype: TensorDType = None) -> Tensor:
    """The norm of matrices that lie along two axes."""
    return ops.matrix_norm(A, ord, dim, keepdim, dtype=dtype)


def qr(A: TensorLike, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Orthonormal columns ``Q`` and an upper triangular ``R``, the product of ``Q`` and ``R`` being ``A``.

    The diagonal of ``R`` is not negative.

    Parameters
    ----------
    A : Tensor
        Of shape :math:`(..., m, n)` with as many rows as columns at least.
    mode : {"reduced"}

    Raises
    ------
    ArgumentError
        When there are fewer rows than columns, or another mode is asked for.
    """
    x = floating(A)
    if mode != "reduced" or x.ndim < 2 or x.shape[-2] < x.shape[-1]:
        raise ArgumentError(f"qr: expected mode 'reduced' and as many rows as columns at least, got {mode!r} and the "
                            f"shape {x.shape}")
    q, lower = operators.linalg_gelqf(swapaxes(x, -1, -2))
    return swapaxes(q, -1, -2), swapaxes(lower, -1, -2)
