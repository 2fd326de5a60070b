"""``mint.linalg``: norms, inverses and the QR decomposition."""

from __future__ import annotations

from ...cells.tensor import Tensor
from ...cells.typing import Axes, Number, TensorDType, TensorLike
from ...core.named_errors import name_errors
from ...core.registry import ops as operators
from ...errors import ArgumentError
from .. import ops
from ..ops import inverse as inv
from ..ops import norm, swapaxes
from ..ops.lift import as_floating

__all__ = ["inv", "matrix_norm", "norm", "qr", "vector_norm"]


def vector_norm(x: TensorLike, ord: Number = 2, dim: Axes = None, keepdim: bool = False, *,
                dtype: TensorDType = None) -> Tensor:
    """The p-norm of all elements, or along axes."""
    return ops.vector_norm(x, ord, dim, keepdim, dtype=dtype)


def matrix_norm(A: TensorLike, ord: Number | str = "fro", dim: tuple[int, int] = (-2, -1), keepdim: bool = False, *,
                dtype: TensorDType = None) -> Tensor:
    """The norm of matrices in two axes."""
    return ops.matrix_norm(A, ord, dim, keepdim, dtype=dtype)


def qr(A: TensorLike, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """The QR decomposition: ``A = Q @ R`` with orthonormal columns ``Q`` and an upper triangular ``R``.

    The diagonal of ``R`` is nonnegative.

    Parameters
    ----------
    A : Tensor
        Matrices of shape :math:`(..., m, n)`, with at least as many rows as columns.
    mode : {"reduced"}

    Raises
    ------
    ArgumentError
        When there are fewer rows than columns, or for another mode.
    """
    x = as_floating(A)
    if mode != "reduced" or x.ndim < 2 or x.shape[-2] < x.shape[-1]:
        raise ArgumentError(f"qr: expected mode 'reduced' and no fewer rows than columns, got {mode!r} and the "
                            f"shape {x.shape}")
    q, lower = operators.linalg_gelqf(swapaxes(x, -1, -2))
    return swapaxes(q, -1, -2), swapaxes(lower, -1, -2)


name_errors(__name__, globals(), __all__)
