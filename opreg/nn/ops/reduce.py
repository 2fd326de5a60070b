"""Reductions: sums, extremes, their places, deviations, norms and what is clipped by them; running sums and products.

No axis, or an empty tuple of them, means all axes, and gives a tensor without axes. Sums and products of integers and
truth values are int64; other results keep the dtype of the data.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.registry import get, ops
from ...core.spec import is_floating
from ...errors import ArgumentError
from ..tensor_base import is_number
from .lift import as_bool, axes, floating, one_axis, tensor, whole_dtype
from .math import isfinite, maximum, minimum, where

__all__ = ["all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "clip_by_global_norm", "clip_by_norm",
           "count_nonzero", "cummax", "cummin", "cumprod", "cumsum", "logsumexp", "max", "mean", "median", "min",
           "nanmean", "nansum", "norm", "prod", "ptp", "reduce_max", "reduce_mean", "reduce_min", "reduce_sum", "std",
           "std_mean", "sum", "var", "var_mean"]

Axes = Any


def sum(input: Any, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum.

    Examples
    --------
    >>> print(sum(tensor([[1.0, 2.0], [3.0, 4.0]]), 0))
    [4. 6.]
    """
    x = tensor(input)
    x = x if dtype is None else x.astype(dtype)
    return ops._np_sum(x, axis=axes(dim), keepdims=bool(keepdim), dtype=_whole(x._dt))


def mean(x: Any, axis: Axes = None, keep_dims: bool = False) -> Any:
    """The mean; of integers, cut towards zero."""
    x = tensor(x)
    return _in_kind(x, lambda real: ops._npi_mean(real, axis=axes(axis), keepdims=bool(keep_dims)))


def _in_kind(x: Any, function: Callable) -> Any:
    """A function of floating numbers, its result in the dtype of the data."""
    return function(x) if is_floating(x._dt) else function(x._cast(np.dtype(np.float64)))._cast(x._dt)


def prod(input: Any, axis: Axes = None, keep_dims: bool = False, dtype: Any = None) -> Any:
    """The product."""
    x = tensor(input)
    x = x if dtype is None else x.astype(dtype)
    return ops._np_prod(x, axis=axes(axis), keepdims=bool(keep_dims), dtype=_whole(x._dt))


def _whole(dtype: np.dtype) -> np.dtype | None:
    """The dtype of sums of integers: int64, or their own where it is unsigned and wider than a byte."""
    if is_floating(dtype):
        return None
    return dtype if dtype.kind == "u" and dtype.itemsize > 1 else np.dtype(np.int64)


def _extreme(name: str, op: str, other: Callable, doc: str) -> Callable:
    def function(input: Any, axis: Axes = None, keepdims: bool = False, *, initial: float | None = None,
                 where: Any = None) -> Any:
        x = tensor(input)
        if where is not None:
            if initial is None:
                raise ArgumentError(f"{name}: where needs initial, for where it holds nowhere")
            x = choose(tensor(where), x, initial)
        found = get(op)(x, axis=axes(axis), keepdims=bool(keepdims))
        return found if initial is None else other(found, initial)._cast(x._dt)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


choose = where
amax = _extreme("amax", "_np_max", maximum, "The largest number, ``initial`` at least, of those where ``where`` holds.")
amin = _extreme("amin", "_np_min", minimum, "The smallest number, ``initial`` at most, of those where ``where`` holds.")


def _with_place(name: str, value: Callable, place: str, doc: str) -> Callable:
    def function(input: Any, axis: int | None = None, keepdims: bool = False, *, initial: float | None = None,
                 where: Any = None) -> Any:
        x = tensor(input)
        found = value(x, axis, keepdims, initial=initial, where=where)
        if axis is None:
            return found, tensor(np.zeros(found.shape, np.int64))
        if not x.ndim:
            return found, tensor(np.zeros((), np.int64))
        axis = one_axis(axis, x.ndim, name)
        return found, get(place)(x, axis=axis, keepdims=bool(keepdims))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


max = _with_place("max", amax, "_npi_argmax", "The largest number along an axis, and its place as int64; over all axes "
                                              "the place is 0, as in MindSpore.")
min = _with_place("min", amin, "_npi_argmin", "The smallest number along an axis, and its place as int64; over all "
                                              "axes the place is 0, as in MindSpore.")


def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The place of the largest number along an axis, or among all in a row: the first of equals; int64."""
    return ops._npi_argmax(tensor(input), axis=dim, keepdims=bool(keepdim) and dim is not None)


def argmin(input: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The place of the smallest number along an axis, or among all in a row: the first of equals; int32."""
    found = ops._npi_argmin(tensor(input), axis=axis, keepdims=bool(keepdims) and axis is not None)
    return found._cast(np.dtype(np.int32))


def aminmax(input: Any, *, axis: int | None = 0, keepdims: bool = False) -> tuple[Any, Any]:
    """The smallest and the largest number."""
    return amin(input, axis, keepdims), amax(input, axis, keepdims)


def ptp(input: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The largest number less the smallest."""
    return amax(input, axis, keepdims) - amin(input, axis, keepdims)


def all(input: Any, axis: Axes = None, keep_dims: bool = False) -> Any:
    """Whether none is false, or zero."""
    return ops._np_all(as_bool(input), axis=axes(axis), keepdims=bool(keep_dims))


def any(input: Any, axis: Axes = None, keep_dims: bool = False) -> Any:
    """Whether one is true, or not zero."""
    return ops._np_any(as_bool(input), axis=axes(axis), keepdims=bool(keep_dims))


def count_nonzero(x: Any, axis: Axes = (), keep_dims: bool = False, dtype: Any = None) -> Any:
    """How many are not zero; int32 by default."""
    return sum(as_bool(x), axis, keep_dims)._cast(whole_dtype(dtype, np.int32))


# ------------------------------------------------------------------------------------------- deviations and norms


def var(input: Any, axis: Axes = None, ddof: int | bool = 0, keepdims: bool = False) -> Any:
    """The mean of squared distances from the mean; the divisor is the number of numbers less ``ddof``."""
    return ops._npi_var(floating(input), axis=axes(axis), ddof=int(ddof), keepdims=bool(keepdims))


def std(input: Any, axis: Axes = None, ddof: int | bool = 0, keepdims: bool = False) -> Any:
    """The square root of ``var``."""
    return ops._npi_std(floating(input), axis=axes(axis), ddof=int(ddof), keepdims=bool(keepdims))


def var_mean(input: Any, axis: Axes = None, ddof: int | bool = 0, keepdims: bool = False) -> tuple[Any, Any]:
    """``var`` and ``mean``."""
    return var(input, axis, ddof, keepdims), mean(floating(input), axis, keepdims)


def std_mean(input: Any, axis: Axes = None, ddof: int | bool = 0, keepdims: bool = False) -> tuple[Any, Any]:
    """``std`` and ``mean``."""
    return std(input, axis, ddof, keepdims), mean(floating(input), axis, keepdims)


def logsumexp(input: Any, dim: Axes, keepdim: bool = False) -> Any:
    """The logarithm of the sum of exponentials, without overflow."""
    x = floating(input)
    where: dict[str, Any] = dict(axis=axes(dim), keepdims=True)
    most = ops._np_max(ops.BlockGrad(x), **where)
    most = choose(ops._npi_isfinite(most), most, 0.0)
    found = ops.log(ops._np_sum(ops.exp(x - most), **where)) + most
    return found if keepdim else ops._np_sum(found, axis=axes(dim))


def norm(A: Any, ord: Any = None, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The norm of all numbers, or along axes.

    Parameters
    ----------
    ord : number or "fro", optional
        The power ``p`` of ``sum(|x| ** p) ** (1 / p)``, 2 by default; infinities give the largest and smallest
        size, 0 counts what is not zero. Over two axes 1 and infinity are those of matrices.
    """
    x = floating(A) if dtype is None else tensor(A).astype(dtype)
    axis = axes(dim)
    where: dict[str, Any] = dict(axis=axis, keepdims=bool(keepdim))
    if ord in (None, "fro"):
        ord = 2
    elif not is_number(ord):
        raise ArgumentError(f"norm: ord must be a number, 'fro' or None, got {ord!r}")
    elif (isinstance(axis, tuple) and len(axis) == 2) or (axis is None and x.ndim == 2):
        return _matrix_norm(x, ord, (0, 1) if axis is None else axis, keepdim)
    size = ops.abs(x)
    if math.isinf(ord):
        return ops._np_max(size, **where) if ord > 0 else ops._np_min(size, **where)
    if ord == 0:
        return ops._np_sum((x != 0)._cast(x._dt), **where)
    if ord == 1:
        return ops._np_sum(size, **where)
    if ord == 2:
        return ops.sqrt(ops._np_sum(x * x, **where))
    return ops._np_sum(size ** ord, **where) ** (1 / ord)


def _matrix_norm(x: Any, ord: Any, axis: Any, keepdim: bool) -> Any:
    row, column = (one_axis(each, x.ndim, "norm") for each in axis)
    if ord not in (1, -1, math.inf, -math.inf):
        raise ArgumentError(f"norm: of matrices ord must be 1, -1, inf, -inf, 'fro' or None, got {ord!r}")
    first = row if ord in (1, -1) else column
    sums = ops._np_sum(ops.abs(x), axis=first, keepdims=True)
    found = (ops._np_max if ord > 0 else ops._np_min)(sums, axis=(row, column), keepdims=bool(keepdim))
    return found


def clip_by_norm(x: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """A tensor, or each of a list of them, scaled so that the norm of all their numbers is at most ``max_norm``."""
    given = [floating(each) for each in x] if isinstance(x, (list, tuple)) else [floating(x)]
    norms = [norm(each.reshape((-1,)), norm_type).reshape((1,)) for each in given]
    total = norm(ops.Concat(*norms, num_args=len(norms), dim=0), norm_type)
    if error_if_nonfinite and not bool(isfinite(total)):
        raise RuntimeError("clip_by_norm: the norm is not finite")
    factor = minimum(max_norm / (total + 1e-6), 1.0)
    scaled = [each * factor for each in given]
    return type(x)(scaled) if isinstance(x, (list, tuple)) else scaled[0]


def clip_by_global_norm(x: Any, clip_norm: float = 1.0, use_norm: None = None) -> Any:
    """Tensors scaled so that the norm of all their numbers together is at most ``clip_norm``; a tuple, or one alone.

    Examples
    --------
    >>> print(*clip_by_global_norm((tensor([3.0]), tensor([4.0]))))
    [0.6] [0.8]
    """
    if use_norm is not None:
        raise ArgumentError(f"clip_by_global_norm: use_norm must be None, got {use_norm!r}")
    given = [floating(each) for each in (x if isinstance(x, (list, tuple)) else (x,))]
    squares = [ops._np_sum(ops.square(each)) for each in given]
    total = ops.sqrt(functools.reduce(operator.add, squares))
    factor = clip_norm / maximum(total, float(clip_norm))
    scaled = tuple([each * factor._cast(each._dt) for each in given])
    return scaled if isinstance(x, (list, tuple)) else scaled[0]


def median(input: Any, axis: int = -1, keepdims: bool = False) -> tuple[Any, Any]:
    """The number in the middle along an axis, the lower of two, and its place as int64."""
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


def nansum(input: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None) -> Any:
    """The sum of all but NaN."""
    x = tensor(input)
    return sum(choose(ops._npi_isnan(x), 0, x) if is_floating(x._dt) else x, axis, keepdims, dtype=dtype)


def nanmean(input: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None) -> Any:
    """The mean of all but NaN."""
    x = floating(input)
    count = sum(ops._npi_logical_not(ops._npi_isnan(x)), axis, keepdims)
    found = nansum(x, axis, keepdims) / count._cast(x._dt)
    return found if dtype is None else found.astype(dtype)


def reduce_sum(x: Any, axis: Axes = ()) -> Any:
    """The sum."""
    return sum(x, axis)


def reduce_mean(x: Any, axis: Axes = ()) -> Any:
    """The mean."""
    return mean(x, axis)


def reduce_max(x: Any, axis: Axes = ()) -> Any:
    """The largest number."""
    return amax(x, axis)


def reduce_min(x: Any, axis: Axes = ()) -> Any:
    """The smallest number."""
    return amin(x, axis)


# --------------------------------------------------------------------------------------------------- running


def cumsum(x: Any, axis: int | None, dtype: Any = None) -> Any:
    """The sums of the numbers so far along an axis."""
    x = tensor(x)
    x = x if dtype is None else x.astype(dtype)
    return ops._np_cumsum(x, axis=axis)


def _running(x: Any, axis: int, step: Callable) -> list[Any]:
    """Results of a step over the slices along an axis, each handed on to the next, side by side."""
    count = x.shape[axis]
    parts = [ops.slice_axis(x, axis=axis, begin=i, end=i + 1) for i in range(count)]
    states = [step(None, part, 0) if i == 0 else None for i, part in enumerate(parts)]
    for i in range(1, count):
        states[i] = step(states[i - 1], parts[i], i)
    return [ops.Concat(*column, num_args=count, dim=axis) for column in zip(*states)]


def cumprod(input: Any, dim: int, dtype: Any = None) -> Any:
    """The products of the numbers so far along an axis."""
    x = tensor(input)
    x = x.astype(dtype) if dtype is not None else x if is_floating(x._dt) else x._cast(np.dtype(np.int64))
    axis = one_axis(dim, x.ndim, "cumprod")
    return _running(x, axis, lambda before, part, i: (part if before is None else before[0] * part,))[0]


def _cumulative(name: str, compare: str, dtype: Any, doc: str) -> Callable:
    def function(input: Any, axis: int) -> Any:
        x = tensor(input)
        axis = one_axis(axis, x.ndim, name)

        def step(before: Any, part: Any, i: int) -> tuple[Any, Any]:
            if before is None:
                return part, tensor(np.zeros(part.shape, dtype))
            taken = get(compare)(part, before[0])
            return choose(taken, part, before[0]), choose(taken, i, before[1])

        return tuple(_running(x, axis, step))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


cummax = _cumulative("cummax", "_npi_greater_equal", np.int64, "The largest number so far along an axis; its place.")
cummin = _cumulative("cummin", "_npi_less_equal", np.int32, "The smallest number so far along an axis; its place.")
