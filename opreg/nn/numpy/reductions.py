"""Sums, means, extremes and their indices, variances, cumulative sums and differences, with NumPy's names.

Without ``axis`` all axes are reduced, to a scalar tensor. Sums of integers and booleans are int64.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...cells.tensor import Tensor
from ...cells.typing import Axes, Number, TensorDType, TensorLike
from ...core.spec import is_floating
from ...errors import ArgumentError, ShapeError
from .. import ops
from ..ops.lift import one_axis
from .lift import as_operand, as_real, as_tensor, axes_of, in_dtype

__all__ = [
    "amax", "amin", "argmax", "argmin", "average", "corrcoef", "count_nonzero", "cov", "cumprod", "cumsum", "diff",
    "ediff1d", "gradient", "max", "mean", "min", "nancumsum", "nanmax", "nanmean", "nanmin", "nanstd", "nansum",
    "nanvar", "ptp", "sometrue", "std", "sum", "trapz", "unwrap", "var"]

_SMALL = frozenset(map(np.dtype, ("bool", "int8", "int16", "uint8", "uint16")))


def sum(a: TensorLike, axis: Axes = None, dtype: TensorDType = None, keepdims: bool = False,
        initial: TensorLike | None = None) -> Tensor:
    """The sum of the elements, cast to ``dtype`` first, plus ``initial``.

    Examples
    --------
    >>> print(sum([[1.0, 2.0], [3.0, 4.0]], 0))
    [4. 6.]
    """
    x = in_dtype(as_tensor(a), dtype)
    total = ops.sum(x, None if axis is None else axes_of(axis, x.ndim, "sum"), keepdims, dtype=dtype)
    return total if initial is None else ops.add(total, as_operand(initial))._cast(total._dt)


def mean(a: TensorLike, axis: Axes = None, keepdims: bool = False, dtype: TensorDType = None) -> Tensor:
    """The mean; truncated for integers."""
    return ops.mean(in_dtype(as_tensor(a), dtype), axis, keepdims)


def _extreme(name: str, function: Callable[..., Tensor], doc: str) -> Callable[..., Tensor]:
    def call(a: TensorLike, axis: Axes = None, keepdims: bool = False, initial: Any = None, where: Any = True
             ) -> Tensor:
        some = None if where is True else where
        return function(as_tensor(a), axis, keepdims, initial=initial, where=some)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


amax = _extreme("amax", ops.amax, "The largest number, ``initial`` at least, of those where ``where`` holds.")
max = _extreme("max", ops.amax, "The largest number, ``initial`` at least, of those where ``where`` holds.")
amin = _extreme("amin", ops.amin, "The smallest number, ``initial`` at most, of those where ``where`` holds.")
min = _extreme("min", ops.amin, "The smallest number, ``initial`` at most, of those where ``where`` holds.")


def ptp(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The range: the maximum minus the minimum."""
    return ops.ptp(as_tensor(x), axis, keepdims)


def argmax(a: TensorLike, axis: int | None = None) -> Tensor:
    """The index of the maximum along an axis, or of the flattened tensor; the first of equals, int64."""
    return ops.argmax(as_tensor(a), axis)


def argmin(a: TensorLike, axis: int | None = None) -> Tensor:
    """The index of the minimum along an axis, or of the flattened tensor; the first of equals, int32."""
    return ops.argmin(as_tensor(a), axis)


def var(x: TensorLike, axis: Axes = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """The variance, with a divisor smaller by ``ddof``."""
    return ops.var(as_real(x), axis, ddof, keepdims)


def std(x: TensorLike, axis: Axes = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """The standard deviation; see ``var``."""
    return ops.std(as_real(x), axis, ddof, keepdims)


def count_nonzero(x: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements; int32."""
    return ops.count_nonzero(as_tensor(x), axis or (), keepdims) if axis != 0 else ops.count_nonzero(
        as_tensor(x), 0, keepdims)


def sometrue(a: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether any element is nonzero."""
    return ops.any(as_tensor(a) != 0, axis, keepdims)


def average(x: TensorLike, axis: Axes = None, weights: TensorLike | None = None, returned: bool = False) -> Any:
    """The mean, weighted elementwise or along an axis; with ``returned`` the sum of weights, too."""
    x = as_real(x)
    if weights is None:
        shares = ops.ones_like(x)
    else:
        shares = as_real(weights)._cast(x._dt)
        if shares.shape != x.shape:
            if not isinstance(axis, int) or shares.shape != (x.shape[axis],):
                raise ShapeError(f"average: weights of {shares.shape} fit neither {x.shape} nor its axis {axis}")
            shares = shares.reshape(tuple(
                -1 if i == one_axis(axis, x.ndim, "average") else 1 for i in range(x.ndim)))
    total = ops.sum(ops.broadcast_to(shares, x.shape), axis)
    value = ops.sum(x * shares, axis) / total
    return (value, total) if returned else value


# --------------------------------------------------------------------------------------- reductions without NaN


def _nan_as(x: Tensor, number: float) -> Tensor:
    return ops.where(ops.isnan(x), number, x) if is_floating(x._dt) else x


def _count_numbers(x: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    return ops.sum(ops.logical_not(ops.isnan(x)), axis, keepdims)._cast(x._dt)


def nansum(a: TensorLike, axis: Axes = None, dtype: TensorDType = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements that are not NaN, in their own dtype by default."""
    x = in_dtype(as_tensor(a), dtype)
    return ops.sum(_nan_as(x, 0.0), axis, keepdims, dtype=x._dt)


def nanmax(a: TensorLike, axis: Axes = None, dtype: TensorDType = None, keepdims: bool = False) -> Tensor:
    """The maximum of the elements that are not NaN."""
    return in_dtype(ops.amax(_nan_as(as_tensor(a), -math.inf), axis, keepdims), dtype)


def nanmin(a: TensorLike, axis: Axes = None, dtype: TensorDType = None, keepdims: bool = False) -> Tensor:
    """The minimum of the elements that are not NaN."""
    return in_dtype(ops.amin(_nan_as(as_tensor(a), math.inf), axis, keepdims), dtype)


def nanmean(a: TensorLike, axis: Axes = None, dtype: TensorDType = None, keepdims: bool = False) -> Tensor:
    """The mean of the elements that are not NaN, in a floating dtype."""
    x = in_dtype(as_real(a), dtype)
    return ops.sum(_nan_as(x, 0.0), axis, keepdims) / _count_numbers(x, axis, keepdims)


def nanvar(a: TensorLike, axis: Axes = None, dtype: TensorDType = None, ddof: int = 0, keepdims: bool = False
           ) -> Tensor:
    """The variance of the elements that are not NaN; see ``var``."""
    x = in_dtype(as_real(a), dtype)
    off = _nan_as(x - nanmean(x, axis, keepdims=True), 0.0)
    return ops.sum(off * off, axis, keepdims) / (_count_numbers(x, axis, keepdims) - ddof)


def nanstd(a: TensorLike, axis: Axes = None, dtype: TensorDType = None, ddof: int = 0, keepdims: bool = False
           ) -> Tensor:
    """The standard deviation of the elements that are not NaN."""
    return ops.sqrt(nanvar(a, axis, dtype, ddof, keepdims))


# ------------------------------------------------------------------------------------------- one after the other


def _accumulation_axis(a: TensorLike, axis: int | None, dtype: TensorDType) -> tuple[Tensor, int]:
    """The tensor and axis to accumulate over; small integers are cast to int32."""
    x = as_tensor(a)
    x = x._cast(np.dtype(np.int32)) if dtype is None and x._dt in _SMALL else in_dtype(x, dtype)
    return (x.reshape((-1,)), 0) if axis is None else (x, axis)


def cumsum(a: TensorLike, axis: int | None = None, dtype: TensorDType = None) -> Tensor:
    """The cumulative sum along an axis, or of the flattened tensor; int32 for small integers."""
    x, axis = _accumulation_axis(a, axis, dtype)
    return ops.cumsum(x, axis, x._dt)


def cumprod(a: TensorLike, axis: int | None = None, dtype: TensorDType = None) -> Tensor:
    """The cumulative product along an axis, or of the flattened tensor; int32 for small integers."""
    x, axis = _accumulation_axis(a, axis, dtype)
    return ops.cumprod(x, axis)._cast(x._dt)


def nancumsum(a: TensorLike, axis: int | None = None, dtype: TensorDType = None) -> Tensor:
    """The cumulative sum of the elements that are not NaN; see ``cumsum``."""
    return cumsum(_nan_as(as_tensor(a), 0.0), axis, dtype)


def diff(a: TensorLike, n: int = 1, axis: int = -1, prepend: TensorLike | None = None,
         append: TensorLike | None = None) -> Tensor:
    """The ``n``-th differences of adjacent elements along an axis."""
    x = as_tensor(a)
    axis = one_axis(axis, x.ndim, "diff")
    edge = (*x.shape[:axis], 1, *x.shape[axis + 1:])
    before, behind = (None if part is None else as_tensor(part)._cast(x._dt) for part in (prepend, append))
    return ops.diff(x, n, axis, *(part if part is None or part.ndim else ops.broadcast_to(part, edge)
                                  for part in (before, behind)))


def ediff1d(ary: TensorLike, to_end: TensorLike | None = None, to_begin: TensorLike | None = None) -> Tensor:
    """The differences of adjacent elements of the flattened tensor, with values appended and prepended."""
    x = as_tensor(ary).reshape((-1,))
    parts = [to_begin, diff(x), to_end]
    return ops.concat([as_tensor(part).reshape((-1,))._cast(x._dt) for part in parts if part is not None])


def trapz(y: TensorLike, x: TensorLike | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral by the trapezoidal rule, with spacing ``dx`` or at the points ``x``."""
    heights = as_real(y)
    axis = one_axis(axis, heights.ndim, "trapz")
    count = heights.shape[axis]
    wide: Any = dx
    if x is not None:
        wide = as_real(x)
        wide = ops.diff(wide.reshape(tuple(-1 if i == axis else 1 for i in range(heights.ndim)))
                        if wide.ndim == 1 else wide, 1, axis)
    both = ops.narrow(heights, axis, 1, count - 1) + ops.narrow(heights, axis, 0, count - 1)
    return ops.sum(both * wide, axis) / 2


def gradient(f: TensorLike, *varargs: Number | TensorLike, axis: int | Sequence[int] | None = None, edge_order: int = 1
             ) -> Any:
    """The gradient along axes by central differences; a list for several axes.

    Parameters
    ----------
    varargs : float
        Spacing of the elements, for all axes or one for each.
    edge_order : {1}
        Order of the differences at the edges.
    """
    if edge_order != 1:
        raise ArgumentError(f"gradient: edge_order must be 1, got {edge_order!r}")
    x = as_real(f)
    along = axes_of(axis, x.ndim, "gradient")
    distances = list(varargs) * len(along) if len(varargs) == 1 else list(varargs) or [1.0] * len(along)
    if len(distances) != len(along) or any(as_tensor(distance).ndim for distance in distances):
        raise ArgumentError(f"gradient: expected one number, the distance, for each of {len(along)} axes")
    changes = []
    for i, distance in zip(along, distances):
        count = x.shape[i]
        if count < 2:
            raise ShapeError(f"gradient: axis {i} of {x.shape} has fewer than two elements")
        step = ops.diff(x, 1, i)
        inner = [] if count == 2 else [(ops.narrow(step, i, 0, count - 2) + ops.narrow(step, i, 1, count - 2)) / 2]
        changes.append(ops.concat(
            [ops.narrow(step, i, 0, 1), *inner, ops.narrow(step, i, count - 2, 1)], i) / as_operand(distance))
    return changes[0] if len(changes) == 1 else changes


def unwrap(p: TensorLike, discont: float = math.pi, axis: int = -1) -> Tensor:
    """Angles in radians, changed by multiples of 2π wherever a jump exceeds ``discont``."""
    x = as_real(p)
    axis = one_axis(axis, x.ndim, "unwrap")
    step = ops.diff(x, 1, axis)
    short = ops.floor_mod(step + math.pi, 2 * math.pi) - math.pi
    short = ops.where(ops.logical_and(short == -math.pi, step > 0), math.pi, short)
    turned = ops.where(ops.abs(step) < builtins.max(discont, math.pi), 0.0, short - step)
    first = ops.narrow(x, axis, 0, 1)
    return ops.concat([first, ops.narrow(x, axis, 1, x.shape[axis] - 1) + ops.cumsum(turned, axis)], axis)


# --------------------------------------------------------------------------------- covariance and correlation


def cov(m: TensorLike, y: TensorLike | None = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
        fweights: TensorLike | None = None, aweights: TensorLike | None = None, dtype: TensorDType = None) -> Tensor:
    """The covariance matrix of variables, which are the rows of ``m``, or its columns.

    Parameters
    ----------
    bias : bool
        Whether to divide by the number of samples instead of one less.
    ddof : int
        Reduction of the divisor; overrides ``bias``.
    fweights, aweights : tensor
        Frequency and weight of each sample.
    """
    def rows(value: TensorLike) -> Tensor:
        x = in_dtype(as_real(value), dtype)
        if x.ndim > 2:
            raise ShapeError(f"cov: expected one or two axes, got the shape {x.shape}")
        return x.reshape((1, -1)) if x.ndim < 2 else x if rowvar else x.T

    x = rows(m) if y is None else ops.concat([rows(m), rows(y)], 0)
    less = (0 if bias else 1) if ddof is None else ddof
    return ops.cov(x, correction=less, fweights=fweights, aweights=aweights)


def corrcoef(x: TensorLike, y: TensorLike | None = None, rowvar: bool = True, dtype: TensorDType = None) -> Tensor:
    """The correlation coefficients of variables; see ``cov``."""
    value = cov(x, y, rowvar, dtype=dtype)
    if not value.ndim:
        return value / value
    size = ops.sqrt(ops.diagonal(value))
    return ops.clamp(value / size.reshape((-1, 1)) / size, -1.0, 1.0)
