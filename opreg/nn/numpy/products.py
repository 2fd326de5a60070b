"""Products of matrices and vectors, norms, and polynomials, given by their coefficients from the highest power down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...cells.tensor import Tensor
from ...cells.tensor_base import is_number
from ...cells.typing import Axes, Number, TensorDType, TensorLike
from ...core.registry import ops as registered
from ...errors import ArgumentError, ShapeError
from .. import ops
from ..ops.lift import to_common_dtype
from .lift import as_real, as_tensor, in_dtype

__all__ = [
    "convolve", "correlate", "cross", "dot", "inner", "kron", "matmul", "multi_dot", "norm", "outer", "polyadd",
    "polyder", "polyint", "polymul", "polysub", "polyval", "tensordot"]


def _pair(x: TensorLike, y: TensorLike) -> tuple[Tensor, Tensor]:
    """Two tensors, cast to their common dtype."""
    left, right = to_common_dtype(as_tensor(x), as_tensor(y))
    return left, right


def matmul(x1: TensorLike, x2: TensorLike, dtype: TensorDType = None) -> Tensor:
    """The matrix product over the last two axes; a vector is a row on the left and a column on the right."""
    return in_dtype(ops.matmul(*_pair(x1, x2)), dtype)


def dot(a: TensorLike, b: TensorLike) -> Tensor:
    """The sum of products over the last axis of ``a`` and the second to last of ``b``; the product of scalars.

    Examples
    --------
    >>> print(dot([1.0, 2.0], [3.0, 4.0]))
    11.0
    """
    return registered._np_dot(*_pair(a, b))


def inner(a: TensorLike, b: TensorLike) -> Tensor:
    """The sum of products over the last axes of both."""
    x, y = _pair(a, b)
    return x * y if not x.ndim or not y.ndim else ops.tensor_dot(x, y, ((x.ndim - 1,), (y.ndim - 1,)))


def outer(a: TensorLike, b: TensorLike) -> Tensor:
    """The outer product of the flattened tensors."""
    x, y = _pair(a, b)
    return x.reshape((-1, 1)) * y.reshape((-1,))


def tensordot(a: TensorLike, b: TensorLike, axes: int | Sequence[int | Sequence[int]] = 2) -> Tensor:
    """The sum of products over the last axes of ``a`` and the first of ``b``, or over the given axes."""
    return ops.tensor_dot(*_pair(a, b), axes)


def multi_dot(arrays: Sequence[TensorLike]) -> Tensor:
    """The product of several matrices; the first and the last may be vectors."""
    if len(arrays) < 2:
        raise ArgumentError(f"multi_dot: expected at least two arrays, got {len(arrays)}")
    product = as_tensor(arrays[0])
    for array in arrays[1:]:
        product = dot(product, array)
    return product


def kron(a: TensorLike, b: TensorLike) -> Tensor:
    """The Kronecker product."""
    return ops.kron(*_pair(a, b))


def cross(a: TensorLike, b: TensorLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
          ) -> Tensor:
    """The cross product along axes of length 3, or of length 2 with a third component of 0.

    Parameters
    ----------
    axis : int
        Axis of both inputs and of the output, in place of ``axisa``, ``axisb`` and ``axisc``.
    """
    x, y = _pair(a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = ops.moveaxis(x, axisa, -1), ops.moveaxis(y, axisb, -1)
    lengths = x.shape[-1], y.shape[-1]
    if not set(lengths) <= {2, 3}:
        raise ShapeError(f"cross: expected vectors of two or three elements, got the shapes {x.shape} and {y.shape}")
    (x0, x1, x2), (y0, y1, y2) = ([vector[..., i] for i in range(n)] + [ops.zeros_like(vector[..., 0])] * (3 - n)
                                  for vector, n in ((x, lengths[0]), (y, lengths[1])))
    if lengths == (2, 2):
        return x0 * y1 - x1 * y0
    return ops.moveaxis(ops.stack([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0], -1), -1, axisc)


def norm(x: TensorLike, ord: Number | str | None = None, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The norm of vectors or matrices; see ``ops.norm``."""
    x = as_real(x)
    if ord is not None and axis is None and x.ndim > 2:
        raise ShapeError(f"norm: with ord={ord!r} and {x.ndim} axes, give axis=")
    return ops.norm(x, ord, axis, keepdims)


# ------------------------------------------------------------------------------------------ vectors past vectors


def _convolved_vectors(x: Tensor, y: Tensor, mode: str, what: str) -> Tensor:
    """The convolution of two vectors."""
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size:
        raise ShapeError(f"{what}: expected two vectors, got the shapes {x.shape} and {y.shape}")
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"{what}: mode must be 'full', 'same' or 'valid', got {mode!r}")
    if x.size < y.size:
        x, y = y, x
    n, m = x.size, y.size
    wide = ops.pad(x, (m - 1, m - 1))
    places = as_tensor((np.arange(n + m - 1)[:, None] + np.arange(m)[::-1]).astype(np.int32))
    products = ops.matmul(ops.gather(wide, places, 0), y)
    if mode == "full":
        return products
    start, count = ((m - 1) // 2, n) if mode == "same" else (m - 1, n - m + 1)
    return products[start:start + count]


def convolve(a: TensorLike, v: TensorLike, mode: str = "full") -> Tensor:
    """The convolution of two vectors.

    Parameters
    ----------
    mode : {"full", "same", "valid"}
        All positions, as many as the longer vector has elements, or those where the vectors overlap completely.

    Examples
    --------
    >>> print(convolve([1.0, 2.0, 4.0], [1.0, 1.0]))
    [1. 3. 6. 4.]
    """
    return _convolved_vectors(*_pair(a, v), mode, "convolve")


def correlate(a: TensorLike, v: TensorLike, mode: str = "valid") -> Tensor:
    """The cross-correlation of two vectors; see ``convolve``."""
    x, y = _pair(a, v)
    answer = _convolved_vectors(x, ops.flip(y, (0,)), mode, "correlate")
    # Here y, the longer vector, is shifted, so positions count from the other end.
    if mode == "same" and x.size < y.size and not x.size % 2:
        convolved = _convolved_vectors(x, ops.flip(y, (0,)), "full", "correlate")
        start = convolved.size - y.size - (x.size - 1) // 2
        return convolved[start:start + y.size]
    return answer


# -------------------------------------------------------------------------------------------------- polynomials


def _factors(p: TensorLike, what: str) -> Tensor:
    x = as_tensor(p)
    if x.ndim > 1:
        raise ShapeError(f"{what}: expected a vector of coefficients, got the shape {x.shape}")
    return x.reshape((-1,))


def _align_coefficients(a1: TensorLike, a2: TensorLike, what: str) -> tuple[Tensor, Tensor]:
    """The coefficients of two polynomials, padded with zeros to the same degree."""
    x, y = to_common_dtype(_factors(a1, what), _factors(a2, what))
    longest = max(x.size, y.size)
    left, right = (ops.pad(vector, (longest - vector.size, 0)) for vector in (x, y))
    return left, right


def polyadd(a1: TensorLike, a2: TensorLike) -> Tensor:
    """The sum of two polynomials."""
    x, y = _align_coefficients(a1, a2, "polyadd")
    return x + y


def polysub(a1: TensorLike, a2: TensorLike) -> Tensor:
    """The difference of two polynomials."""
    x, y = _align_coefficients(a1, a2, "polysub")
    return x - y


def polymul(a1: TensorLike, a2: TensorLike) -> Tensor:
    """The product of two polynomials."""
    return convolve(_factors(a1, "polymul"), _factors(a2, "polymul"))


def polyval(p: TensorLike, x: TensorLike) -> Tensor:
    """The value of a polynomial at the points ``x``, which may be another polynomial's values."""
    return registered._npi_polyval(*to_common_dtype(_factors(p, "polyval"), as_tensor(x)))


def _order(m: int, what: str) -> int:
    if m < 0:
        raise ArgumentError(f"{what}: the order must not be negative, got {m!r}")
    return m


def polyder(p: TensorLike, m: int = 1) -> Tensor:
    """The ``m``-th derivative of a polynomial."""
    x = _factors(p, "polyder")
    for _ in range(_order(m, "polyder")):
        x = x[:-1] * as_tensor(np.arange(x.size - 1, 0, -1).astype(x._dt))
    return x


def polyint(p: TensorLike, m: int = 1, k: Number | Sequence[Number] | None = None) -> Tensor:
    """The ``m``-th integral of a polynomial, with constants ``k`` (default 0), in a floating dtype."""
    x = as_real(_factors(p, "polyint"))
    constants = [0.0] * m if k is None else [k] * m if is_number(k) else list(k)  # type: ignore[arg-type]
    if len(constants) != _order(m, "polyint"):
        raise ArgumentError(f"polyint: expected one constant or {m}, got {k!r}")
    for constant in constants:
        x = ops.concat([x / as_tensor(np.arange(x.size, 0, -1).astype(x._dt)),
                        as_tensor([float(constant)])._cast(x._dt)])
    return x
