"""Functions of arrays and symbols along axes, by NumPy's names: sums, extremes, differences, quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opreg.core.registry import get, ops
from opreg.core.spec import as_dtype, is_floating
from opreg.errors import ArgumentError
from opreg.typing import DTypeLike

from .functions import (
    as_floating,
    axis_attr,
    is_number,
    register,
    register_as,
    store,
)
from .shapes import concatenate
from .values import as_value


def _totals(name: str, operator: str, keeps: bool) -> None:
    def function(a: Any, axis: Any = None, dtype: DTypeLike = None, out: Any = None, keepdims: bool = False) -> Any:
        value = as_value(a) if keeps else as_floating(as_value(a))
        stated = {} if dtype is None else {"dtype": as_dtype(dtype)}
        return store(get(operator)(value, axis=axis_attr(axis), keepdims=bool(keepdims), **stated), out)

    register_as(name, f"The {name} along axes{'; integers keep their dtype' if keeps else ''}.", function)


_totals("sum", "_np_sum", True)
_totals("prod", "_np_prod", True)
_totals("product", "_np_prod", True)
_totals("mean", "_npi_mean", False)


def _spreads(name: str, operator: str) -> None:
    def function(a: Any, axis: Any = None, dtype: DTypeLike = None, out: Any = None, ddof: int = 0,
                 keepdims: bool = False) -> Any:
        value = as_value(a)
        if dtype is not None and is_floating(as_dtype(dtype)):
            value = value.astype(dtype)
        result = get(operator)(as_floating(value), axis=axis_attr(axis), ddof=int(ddof), keepdims=bool(keepdims))
        return store(result if dtype is None else result.astype(dtype), out)

    register_as(name, f"``{name}`` along axes.", function)


_spreads("std", "_npi_std")
_spreads("var", "_npi_var")


def _extremes(names: Sequence[str], operator: str) -> None:
    def function(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return store(get(operator)(as_value(a), axis=axis_attr(axis), keepdims=bool(keepdims)), out)

    for name in names:
        register_as(name, f"``{names[0]}`` along axes.", function)


_extremes(("amax", "max"), "_np_max")
_extremes(("amin", "min"), "_np_min")
_extremes(("any", "sometrue"), "_np_any")
_extremes(("all", "alltrue"), "_np_all")
_extremes(("argmax",), "_npi_argmax")
_extremes(("argmin",), "_npi_argmin")


@register
def cumsum(a: Any, axis: Any = None, dtype: DTypeLike = None, out: Any = None) -> Any:
    """Cumulative sums."""
    dtype = None if dtype is None else as_dtype(dtype)
    return store(ops._np_cumsum(as_value(a), axis=axis_attr(axis), dtype=dtype), out)


@register
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, out: Any = None) -> Any:
    """The mean along axes, weighted where weights are given, of one shape or for each place of an axis; with
    ``returned`` also the sums of the weights."""
    values = [as_value(a)] if weights is None else [as_value(a), as_value(weights)]
    result = ops._npi_average(*values, axis=axis_attr(axis), returned=bool(returned), weighted=weights is not None)
    return tuple(result) if returned else store(result, out)


@register
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, taken ``n`` times."""
    if n < 0:
        raise ArgumentError(f"np.diff: n must not be negative, got {n}")
    ends = [part for part in (prepend, a, append) if part is not None]
    value = as_value(a) if len(ends) == 1 else concatenate(ends, axis=axis)
    return ops._npi_diff(value, n=int(n), axis=int(axis))


@register
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of adjacent elements of the flattened array, with ``to_begin`` before and ``to_end`` after them."""
    ends, attrs = list[Any](), dict[str, Any]()
    for name, end in (("to_begin", to_begin), ("to_end", to_end)):
        if end is not None and not is_number(end):
            ends.append(as_value(end))
            attrs[f"{name}_arr_given"] = True
        elif end is not None:
            attrs[f"{name}_scalar"] = float(end)
    return ops._npi_ediff1d(as_value(ary), *ends, **attrs)


@register
def percentile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None,
               interpolation: str = "linear", keepdims: bool = False) -> Any:
    """The ``q``-th percentiles along axes; several of them lie along new first axes."""
    inputs = [as_value(a)] if is_number(q) else [as_value(a), as_value(q)]
    result = ops._npi_percentile(*inputs, axis=axis_attr(axis), interpolation=interpolation, keepdims=bool(keepdims),
                                 q_scalar=float(q) if is_number(q) else None)
    return store(result, out)


@register
def quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None,
             interpolation: str = "linear", keepdims: bool = False) -> Any:
    """The quantiles along axes, for numbers from zero to one."""
    percents = (q if is_number(q) else as_value(q)) * 100
    return percentile(a, percents, axis, out, overwrite_input, interpolation, keepdims)


@register
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """The number of occurrences of 0, 1, ..., or the sums of their weights."""
    inputs = [as_value(x)] if weights is None else [as_value(x), as_value(weights)]
    return ops._npi_bincount(*inputs, minlength=int(minlength), has_weights=weights is not None)
