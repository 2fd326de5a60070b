"""Reductions: sums, extrema and their indices, variances, norms and clipping by norm; cumulative sums and products.

No axis, or an empty tuple, means all axes, and gives a tensor without axes. Sums and products of integers and booleans
are int64; other results have the dtype of the data.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from ...cells.tensor import Tensor
from ...cells.tensor_base import is_number
from ...cells.typing import ArrayLike, Axes, Number, TensorDType, TensorLike
from ...core.registry import get, ops
from ...core.spec import is_floating
from ...errors import ArgumentError, OpError
from .creation import zeros
from .lift import as_bool, as_floating, axes, one_axis, tensor, whole_dtype
from .math import isfinite, logaddexp, maximum, minimum, power_from_zero, where

__all__ = [
    "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "clip_by_global_norm", "clip_by_norm",
    "count_nonzero", "cummax", "cummin", "cumprod", "cumsum", "dist", "histc", "logcumsumexp", "logsumexp",
    "matrix_norm", "max", "mean", "median", "min", "nanmean", "nansum", "norm", "prod", "ptp", "reduce_max",
    "reduce_mean", "reduce_min", "reduce_sum", "renorm", "std", "std_mean", "sum", "trapz", "var", "var_mean",
    "vector_norm"]


def sum(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, dtype: TensorDType = None) -> Tensor:
    """The sum; with ``dtype``, of the elements cast to it.

    Examples
    --------
    >>> print(sum(tensor([[1.0, 2.0], [3.0, 4.0]]), 0))
    [4. 6.]
    """
    x = tensor(input)
    x = x if dtype is None else x.astype(dtype)
    return ops._np_sum(x, axis=axes(dim), keepdims=bool(keepdim), dtype=_sum_dtype(x._dt) if dtype is None else x._dt)


def mean(x: TensorLike, axis: Axes = None, keep_dims: bool = False) -> Tensor:
    """The mean; for integers rounded towards zero, for booleans the share of true ones in float32."""
    x, over = tensor(x), axes(axis)
    if x._dt.kind == "b":
        x = x._cast(np.dtype(np.float32))
    if x._dt.kind in "iu":
        return _mean_of_integers(x, over, bool(keep_dims))._cast(x._dt)
    real = x if is_floating(x._dt) else x._cast(np.dtype(np.float64))
    return ops._npi_mean(real, axis=over, keepdims=bool(keep_dims))._cast(x._dt)


def _mean_of_integers(x: Tensor, axis: int | tuple[int, ...] | None, keepdims: bool) -> Tensor:
    """The mean, computed from quotients and remainders, since the sum of all elements might overflow."""
    x = x._cast(np.dtype(np.uint64 if x._dt == np.uint64 else np.int64))
    lengths = x.shape if axis is None else [x.shape[i] for i in (axis if isinstance(axis, tuple) else (axis,))]
    count = math.prod(lengths)
    quotient = x // count
    remainder = sum(x - quotient * count, axis, keepdims)
    down = sum(quotient, axis, keepdims) + remainder // count
    return down + ((down < 0) & (remainder % count != 0))._cast(x._dt)


def prod(input: TensorLike, axis: Axes = None, keep_dims: bool = False, dtype: TensorDType = None) -> Tensor:
    """The product; with ``dtype``, of the elements cast to it."""
    x = tensor(input)
    x = x if dtype is None else x.astype(dtype)
    return ops._np_prod(x, axis=axes(axis), keepdims=bool(keep_dims),
                        dtype=_sum_dtype(x._dt) if dtype is None else x._dt)


def _sum_dtype(dtype: np.dtype) -> np.dtype | None:
    """The dtype of sums of integers: int64, or the dtype itself if it is unsigned and wider than a byte."""
    if is_floating(dtype):
        return None
    return dtype if dtype.kind == "u" and dtype.itemsize > 1 else np.dtype(np.int64)


def _extreme(name: str, op: str, other: Callable[[TensorLike, TensorLike], Tensor], doc: str) -> Callable[..., Tensor]:
    def function(input: TensorLike, axis: Axes = None, keepdims: bool = False, *, initial: float | None = None,
                 where: TensorLike | None = None) -> Tensor:
        x = tensor(input)
        if where is not None and where is not True:
            if initial is None:
                raise ArgumentError(f"{name}: where= needs initial=, the result without any selected element")
            x = choose(tensor(where), x, initial)
        value = get(op)(x, axis=axes(axis), keepdims=bool(keepdims))
        return value if initial is None else other(value, initial)._cast(x._dt)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


choose = where
amax = _extreme("amax", "_np_max", maximum, "The largest number, ``initial`` at least, of those where ``where`` holds.")
amin = _extreme("amin", "_np_min", minimum, "The smallest number, ``initial`` at most, of those where ``where`` holds.")


def _with_place(name: str, extreme: Callable[..., Tensor], place: str, doc: str
                ) -> Callable[..., tuple[Tensor, Tensor]]:
    def function(input: TensorLike, axis: int | None = None, keepdims: bool = False, *, initial: float | None = None,
                 where: TensorLike | None = None) -> tuple[Tensor, Tensor]:
        x = tensor(input)
        value = extreme(x, axis, keepdims and axis is not None, initial=initial, where=where)
        if axis is None:
            return value, tensor(np.zeros((), np.int64))
        if not x.ndim:
            return value, tensor(np.zeros((), np.int64))
        axis = one_axis(axis, x.ndim, name)
        return value, get(place)(x, axis=axis, keepdims=bool(keepdims))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


max = _with_place("max", amax, "_npi_argmax", "The largest number along an axis, and its place as int64; over all axes "
                                              "the place is 0, as in MindSpore.")
min = _with_place("min", amin, "_npi_argmin", "The smallest number along an axis, and its place as int64; over all "
                                              "axes the place is 0, as in MindSpore.")


def argmax(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the largest element along an axis, or in the flat tensor; the first of equal ones; int64."""
    return ops._npi_argmax(tensor(input), axis=dim, keepdims=bool(keepdim) and dim is not None)


def argmin(input: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the smallest element along an axis, or in the flat tensor; the first of equal ones; int32."""
    place = ops._npi_argmin(tensor(input), axis=axis, keepdims=bool(keepdims) and axis is not None)
    return place._cast(np.dtype(np.int32))


def aminmax(input: TensorLike, *, axis: int | None = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest element."""
    return amin(input, axis, keepdims), amax(input, axis, keepdims)


def ptp(input: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest element minus the smallest."""
    return amax(input, axis, keepdims) - amin(input, axis, keepdims)


def all(input: TensorLike, axis: Axes = None, keep_dims: bool = False) -> Tensor:
    """Whether all elements are true, or nonzero."""
    return ops._np_all(as_bool(input), axis=axes(axis), keepdims=bool(keep_dims))


def any(input: TensorLike, axis: Axes = None, keep_dims: bool = False) -> Tensor:
    """Whether any element is true, or nonzero."""
    return ops._np_any(as_bool(input), axis=axes(axis), keepdims=bool(keep_dims))


def count_nonzero(x: TensorLike, axis: Axes = (), keep_dims: bool = False, dtype: TensorDType = None) -> Tensor:
    """The number of nonzero elements; int32 by default."""
    return sum(as_bool(x), axis, keep_dims)._cast(whole_dtype(dtype, np.int32))


# ------------------------------------------------------------------------------------------- deviations and norms


def var(input: TensorLike, axis: Axes = None, ddof: int | bool = 0, keepdims: bool = False) -> Tensor:
    """The variance; its divisor is the number of elements less ``ddof``."""
    return ops._npi_var(as_floating(input), axis=axes(axis), ddof=int(ddof), keepdims=bool(keepdims))


def std(input: TensorLike, axis: Axes = None, ddof: int | bool = 0, keepdims: bool = False) -> Tensor:
    """The square root of ``var``."""
    return ops._npi_std(as_floating(input), axis=axes(axis), ddof=int(ddof), keepdims=bool(keepdims))


def var_mean(input: TensorLike, axis: Axes = None, ddof: int | bool = 0, keepdims: bool = False
            ) -> tuple[Tensor, Tensor]:
    """``var`` and ``mean``."""
    return var(input, axis, ddof, keepdims), mean(as_floating(input), axis, keepdims)


def std_mean(input: TensorLike, axis: Axes = None, ddof: int | bool = 0, keepdims: bool = False
            ) -> tuple[Tensor, Tensor]:
    """``std`` and ``mean``."""
    return std(input, axis, ddof, keepdims), mean(as_floating(input), axis, keepdims)


def logsumexp(input: TensorLike, dim: Axes, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials, without overflow."""
    x = as_floating(input)
    settings: Mapping[str, object] = dict(axis=axes(dim), keepdims=True)
    most = ops._np_max(ops.BlockGrad(x), **settings)
    most = choose(ops._npi_isfinite(most), most, 0.0)
    total = ops.log(ops._np_sum(ops.exp(x - most), **settings)) + most
    return total if keepdim else ops._np_sum(total, axis=axes(dim))


def norm(A: TensorLike, ord: Number | str | None = None, dim: Axes = None, keepdim: bool = False, *,
         dtype: TensorDType = None) -> Tensor:
    """The norm of all elements, or along axes.

    Parameters
    ----------
    ord : number or "fro", optional
        The power ``p`` of ``sum(|x| ** p) ** (1 / p)``, 2 by default; plus and minus infinity give the largest and
        smallest absolute value, 0 the number of nonzero elements. Over two axes it is a matrix norm: 1 and infinity are
        the largest absolute sums of columns and rows, 2 the largest singular value, "nuc" the sum of singular values;
        negative ones take the smallest.
    """
    x = as_floating(A) if dtype is None else tensor(A).astype(dtype)
    axis = axes(dim)
    over: Mapping[str, object] = dict(axis=axis, keepdims=bool(keepdim))
    two = (0, 1) if axis is None and x.ndim == 2 else axis
    if ord in (None, "fro"):
        ord = 2
    elif isinstance(two, tuple) and len(two) == 2 and (is_number(ord) or ord == "nuc"):
        return _matrix_norm(x, ord, two, keepdim)
    elif not is_number(ord):
        raise ArgumentError(f"norm: ord must be a number, 'fro' or None, or for matrices 'nuc', got {ord!r}")
    size = ops.abs(x)
    if math.isinf(ord):
        return ops._np_max(size, **over) if ord > 0 else ops._np_min(size, **over)
    if ord == 0:
        return ops._np_sum((x != 0)._cast(x._dt), **over)
    if ord == 1:
        return ops._np_sum(size, **over)
    if ord == 2:
        return ops.sqrt(ops._np_sum(x * x, **over))
    return ops._np_sum(size ** ord, **over) ** (1 / ord)


def dist(input: TensorLike, other: TensorLike, p: float = 2) -> Tensor:
    """The norm of order ``p`` of the difference of two tensors, which are broadcast to one shape.

    Examples
    --------
    >>> print(dist(tensor([[0.0, 0.0]]), tensor([[3.0, 4.0]])))
    5.0
    """
    return norm((tensor(input) - tensor(other)).reshape((-1,)), p)


def _matrix_norm(x: Tensor, ord: Number | str, axis: tuple[int, ...], keepdim: bool) -> Tensor:
    row, column = (one_axis(i, x.ndim, "norm") for i in axis)
    if ord not in (1, -1, 2, -2, math.inf, -math.inf, "nuc"):
        raise ArgumentError(f"norm: for matrices ord must be 1, -1, 2, -2, inf, -inf, 'fro', 'nuc' or None, got "
                            f"{ord!r}")
    if not is_number(ord) or ord in (2, -2):
        values = _singular_values(x.transpose((*(i for i in range(x.ndim) if i not in (row, column)), row, column)))
        result = ops._np_sum(values, axis=-1) if ord == "nuc" else values[..., -1 if ord == 2 else 0]
        return _with_reduced_axes(result, (row, column)) if keepdim else result
    first = row if ord in (1, -1) else column
    sums = ops._np_sum(ops.abs(x), axis=first, keepdims=True)
    return (ops._np_max if ord > 0 else ops._np_min)(sums, axis=(row, column), keepdims=bool(keepdim))


def _with_reduced_axes(x: Tensor, gone: tuple[int, ...]) -> Tensor:
    """The result with an axis of length one for each reduced axis."""
    for place in sorted(gone):
        x = ops.expand_dims(x, axis=place)
    return x


def _singular_values(x: Tensor) -> Tensor:
    """Singular values of the matrices in the last two axes, ascending.

    They are the upper eigenvalues of the symmetric block matrix with ``x`` and its transpose off the diagonal. The
    eigenvalues of ``x @ x.T`` would lose half of the digits, and their roots have no derivative at zero.
    """
    *stack, m, n = x.shape
    upper = ops.Concat(zeros((*stack, m, m), x._dt), x, num_args=2, dim=-1)
    lower = ops.Concat(x.swapaxes(-1, -2), zeros((*stack, n, n), x._dt), num_args=2, dim=-1)
    _, values = ops._linalg_syevd(ops.Concat(upper, lower, num_args=2, dim=-2))
    return values[..., -builtins.min(m, n):]


def vector_norm(x: TensorLike, ord: Number = 2, axis: Axes = None, keepdims: bool = False, *,
                dtype: TensorDType = None) -> Tensor:
    """The vector norm of all elements, or along axes; see ``norm``."""
    x, over = tensor(x), axes(axis)
    order = tuple(range(x.ndim)) if over is None else over if isinstance(over, tuple) else (over,)
    last = [one_axis(place, x.ndim, "vector_norm") for place in order]
    remaining = [place for place in range(x.ndim) if place not in last]
    rows = x.transpose((*remaining, *last)) if x.ndim > 1 else x
    result = norm(rows.reshape((*(x.shape[place] for place in remaining), -1)), ord, -1, dtype=dtype)
    return _with_reduced_axes(result, tuple(last)) if keepdims else result


def matrix_norm(A: TensorLike, ord: Number | str = "fro", axis: tuple[int, int] = (-2, -1), keepdims: bool = False, *,
                dtype: TensorDType = None) -> Tensor:
    """The norm of the matrices in two axes; see ``norm``."""
    return norm(A, ord, axis, keepdims, dtype=dtype)


def clipped_along(x: Tensor, limit: TensorLike, axis: Axes) -> Tensor:
    """Values scaled so that their norm along axes is at most a limit; the derivative at zeros is defined."""
    length = power_from_zero(sum(x * x, axis, True), 0.5)
    return x * limit / maximum(length, limit)


@overload
def clip_by_norm(x: ArrayLike, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor: ...
@overload
def clip_by_norm(x: list[Any] | tuple[Any, ...], max_norm: float, norm_type: float = 2.0,
                 error_if_nonfinite: bool = False) -> Sequence[Tensor]: ...
def clip_by_norm(x: TensorLike, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
                ) -> Tensor | Sequence[Tensor]:
    """A tensor, or each tensor of a list, scaled so that its norm is at most ``max_norm``."""
    parts = [as_floating(part) for part in x] if isinstance(x, (list, tuple)) else [as_floating(x)]
    norms = [norm(part.reshape((-1,)), norm_type).reshape((1,)) for part in parts]
    total = norm(ops.Concat(*norms, num_args=len(norms), dim=0), norm_type)
    if error_if_nonfinite and not bool(isfinite(total)):
        raise OpError("clip_by_norm: the norm is not finite")
    factor = minimum(max_norm / (total + 1e-6), 1.0)
    scaled = [part * factor for part in parts]
    return type(x)(scaled) if isinstance(x, (list, tuple)) else scaled[0]


@overload
def clip_by_global_norm(x: ArrayLike, clip_norm: float = 1.0, use_norm: None = None) -> Tensor: ...
@overload
def clip_by_global_norm(x: list[Any] | tuple[Any, ...], clip_norm: float = 1.0, use_norm: None = None
                       ) -> tuple[Tensor, ...]: ...
def clip_by_global_norm(x: TensorLike, clip_norm: float = 1.0, use_norm: None = None) -> Tensor | tuple[Tensor, ...]:
    """Tensors scaled so that their common norm is at most ``clip_norm``; a tuple, or one bare tensor.

    Examples
    --------
    >>> print(*clip_by_global_norm((tensor([3.0]), tensor([4.0]))))
    [0.6] [0.8]
    """
    if use_norm is not None:
        raise ArgumentError(f"clip_by_global_norm: use_norm must be None, got {use_norm!r}")
    parts = [as_floating(part) for part in (x if isinstance(x, (list, tuple)) else (x,))]
    squares = [ops._np_sum(ops.square(part)) for part in parts]
    total = ops.sqrt(functools.reduce(operator.add, squares))
    factor = clip_norm / maximum(total, float(clip_norm))
    scaled = tuple([part * factor._cast(part._dt) for part in parts])
    return scaled if isinstance(x, (list, tuple)) else scaled[0]


def median(input: TensorLike, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The median along an axis, the lower of two middle elements, and its index as int64."""
    x = tensor(input)
    axis = one_axis(axis, x.ndim, "median")
    order = ops.argsort(x, axis=axis, is_ascend=True, dtype=np.dtype(np.int64))
    middle = (x.shape[axis] - 1) // 2
    place = ops.slice_axis(order, axis=axis, begin=middle, end=middle + 1)
    value = ops._take_along_axis(x, place, axis=axis)
    if keepdims:
        return value, place
    shape = x.shape[:axis] + x.shape[axis + 1:]
    return value.reshape(shape), place.reshape(shape)


def nansum(input: TensorLike, axis: Axes = None, keepdims: bool = False, *, dtype: TensorDType = None) -> Tensor:
    """The sum of the elements that are not NaN."""
    x = tensor(input)
    return sum(choose(ops._npi_isnan(x), 0, x) if is_floating(x._dt) else x, axis, keepdims, dtype=dtype)


def nanmean(input: TensorLike, axis: Axes = None, keepdims: bool = False, *, dtype: TensorDType = None) -> Tensor:
    """The mean of the elements that are not NaN."""
    x = as_floating(input)
    count = sum(ops._npi_logical_not(ops._npi_isnan(x)), axis, keepdims)
    quotient = nansum(x, axis, keepdims) / count._cast(x._dt)
    return quotient if dtype is None else quotient.astype(dtype)


def reduce_sum(x: TensorLike, axis: Axes = ()) -> Tensor:
    """The sum, in the dtype of ``x``."""
    return sum(x, axis)._cast(tensor(x)._dt)


def reduce_mean(x: TensorLike, axis: Axes = ()) -> Tensor:
    """The mean."""
    return mean(x, axis)


def reduce_max(x: TensorLike, axis: Axes = ()) -> Tensor:
    """The largest element."""
    return amax(x, axis)


def reduce_min(x: TensorLike, axis: Axes = ()) -> Tensor:
    """The smallest element."""
    return amin(x, axis)


# --------------------------------------------------------------------------------------------------- running


def cumsum(x: TensorLike, axis: int | None, dtype: TensorDType = None) -> Tensor:
    """Cumulative sums along an axis."""
    x = tensor(x)
    x = x if dtype is None else x.astype(dtype)
    return ops._np_cumsum(x, axis=axis)


#: The state that each slice passes to the next one.
_State: TypeAlias = tuple[Tensor, ...]


def _scan(x: Tensor, axis: int, step: Callable[[_State | None, Tensor, int], _State]) -> list[Tensor]:
    """Results of a step function for each slice along an axis, stacked; each call receives the state of the one
    before."""
    count = x.shape[axis]
    parts = [ops.slice_axis(x, axis=axis, begin=i, end=i + 1) for i in range(count)]
    states: list[_State] = []
    for i, part in enumerate(parts):
        states.append(step(states[-1] if states else None, part, i))
    return [ops.Concat(*column, num_args=count, dim=axis) for column in zip(*states)]


def cumprod(input: TensorLike, dim: int, dtype: TensorDType = None) -> Tensor:
    """Cumulative products along an axis."""
    x = tensor(input)
    x = x.astype(dtype) if dtype is not None else x if is_floating(x._dt) else x._cast(np.dtype(np.int64))
    axis = one_axis(dim, x.ndim, "cumprod")
    return _scan(x, axis, lambda before, part, i: (part if before is None else before[0] * part,))[0]


def _cumulative(name: str, compare: str, dtype: type[np.integer], doc: str
                ) -> Callable[[TensorLike, int], tuple[Tensor, Tensor]]:
    def function(input: TensorLike, axis: int) -> tuple[Tensor, Tensor]:
        x = tensor(input)
        axis = one_axis(axis, x.ndim, name)

        def step(before: _State | None, part: Tensor, i: int) -> _State:
            if before is None:
                return part, tensor(np.zeros(part.shape, dtype))
            taken = get(compare)(part, before[0])
            return choose(taken, part, before[0]), choose(taken, i, before[1])

        value, place = _scan(x, axis, step)
        return value, place

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


cummax = _cumulative("cummax", "_npi_greater_equal", np.int64, "The largest number so far along an axis; its place.")
cummin = _cumulative("cummin", "_npi_less_equal", np.int32, "The smallest number so far along an axis; its place.")


def trapz(y: TensorLike, x: TensorLike | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral by the trapezoidal rule, with points at distances of ``dx`` or at ``x``."""
    heights = as_floating(y)
    axis = one_axis(dim, heights.ndim, "trapz")
    wide: Tensor | float = dx
    if x is not None:
        places = as_floating(x)
        places = places.reshape(tuple([-1 if i == axis else 1 for i in range(heights.ndim)])) if places.ndim == 1 \
            else places
        wide = _drop_first(places, axis, 1) - _drop_last(places, axis, 1)
    return ops._np_sum((_drop_first(heights, axis, 1) + _drop_last(heights, axis, 1)) * wide, axis=axis) / 2


def _drop_first(x: Tensor, axis: int, count: int) -> Tensor:
    return ops.slice_axis(x, axis=axis, begin=count, end=None)


def _drop_last(x: Tensor, axis: int, count: int) -> Tensor:
    return ops.slice_axis(x, axis=axis, begin=0, end=-count)


def logcumsumexp(input: TensorLike, axis: int) -> Tensor:
    """The logarithm of cumulative sums of exponentials along an axis, by repeated doubling."""
    x = as_floating(input)
    axis, count = one_axis(axis, x.ndim, "logcumsumexp"), 1
    while count < x.shape[axis]:
        both = logaddexp(_drop_first(x, axis, count), _drop_last(x, axis, count))
        x = ops.concat(ops.slice_axis(x, axis=axis, begin=0, end=count), both, dim=axis, num_args=2)
        count *= 2
    return x


def histc(input: TensorLike, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    """The number of elements in each of ``bins`` equal intervals from ``min`` to ``max``; if both are equal, over the
    range of the data."""
    x = tensor(input).reshape((-1,))
    if bins < 1 or min > max:
        raise ArgumentError(f"histc: expected at least one bin and min below max, got {bins}, {min} and {max}")
    low: Any = min
    high: Any = max
    if min == max:
        low, high = amin(x), amax(x)
        same = low == high
        low, high = where(same, low - 1, low), where(same, high + 1, high)
    at = ops.floor((as_floating(x) - low) * bins / (high - low))
    at = where(x == high, bins - 1, at).reshape((-1, 1))
    counts = ops._np_sum((at == tensor(np.arange(bins)))._cast(np.dtype(np.int32)), axis=0)
    return counts._cast(x._dt if is_floating(x._dt) else np.dtype(np.int32))


def renorm(input: TensorLike, p: int, axis: int, maxnorm: float) -> Tensor:
    """The slices along an axis, each scaled down to a norm of ``maxnorm`` if its norm of order ``p`` is larger."""
    x = as_floating(input)
    axis = one_axis(axis, x.ndim, "renorm")
    others = tuple([i for i in range(x.ndim) if i != axis])
    length = power_from_zero(ops._np_sum(ops.abs(x) ** p, axis=others, keepdims=True), 1 / p)
    larger = length > maxnorm
    return where(larger, x * (maxnorm / where(larger, length + 1e-7, 1.0)), x)
