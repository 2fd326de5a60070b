"""Functions of arrays and symbols by NumPy's names; each is an operator.

If no operator has the name, NumPy's function is called with the arrays: it computes on the host, or for recorded arrays
is traced to operators.
"""

from __future__ import annotations

import builtins
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.core.einsum import Contraction, contraction, implied
from opreg.core.einsum import product as contracted
from opreg.core.op import Op
from opreg.core.registry import get, ops
from opreg.core.spec import as_dtype, is_floating
from opreg.errors import ArgumentError, DTypeError, did_you_mean
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol
from opreg.typing import DTypeLike

from .values import FUNCTION, NumpyValue, held, made, promoted

__all__ = ["FUNCTIONS", "any_symbol", "by_numpy", "function"]

#: Functions by name.
FUNCTIONS: dict[str, Callable[..., Any]] = {}

_FLOAT32 = np.dtype(np.float32)


def _listed(function: Callable[..., Any]) -> Callable[..., Any]:
    FUNCTIONS[function.__name__] = function
    return function


def _into(result: Any, out: Any) -> Any:
    """The result, stored in ``out`` if that is given."""
    if out is None:
        return result
    target = out[0] if isinstance(out, tuple) else out
    target[...] = result
    return target


def _floating(value: Any) -> Any:
    """A value in a floating dtype; a symbol's dtype is unknown."""
    return value.astype(_FLOAT32) if isinstance(value, NDArray) and not is_floating(value._data.dtype) else value


def _named(name: str, doc: str, function: Callable[..., Any]) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    FUNCTIONS[name] = function


def _is_number(value: object) -> bool:
    return isinstance(value, (numbers.Number, np.generic)) and not isinstance(value, NumpyValue)


# ------------------------------------------------------------------------------------------- element by element


def _unary(name: str, op: Op, own: Callable[..., Any], keeps: bool) -> None:
    def function(x: Any, out: Any = None) -> Any:
        if _is_number(x):
            return own(x)
        value = held(x)
        return _into(op(value if keeps else _floating(value)), out)

    _named(name, f"``{name}`` of each element; one that is no whole number is float32 or wider.", function)


_KEEPING = {"abs": "abs", "absolute": "abs", "fabs": "abs", "square": "square", "sign": "sign", "rint": "rint",
            "ceil": "ceil", "floor": "floor", "trunc": "trunc", "fix": "fix", "invert": "_npi_bitwise_not",
            "bitwise_not": "_npi_bitwise_not", "logical_not": "_npi_logical_not", "isnan": "_npi_isnan",
            "isinf": "_npi_isinf", "isfinite": "_npi_isfinite", "isposinf": "_npi_isposinf",
            "isneginf": "_npi_isneginf", "copy": "_copy", "positive": "identity"}
_FLOATING = {"rad2deg": "degrees", "deg2rad": "radians", **{name: name for name in (
    "exp", "expm1", "log", "log10", "log2", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "degrees", "radians", "reciprocal")}}
for _name, _op in _KEEPING.items():
    _unary(_name, get(_op), getattr(np, _name), True)
for _name, _op in _FLOATING.items():
    _unary(_name, get(_op), getattr(np, _name), False)


@_listed
def around(x: Any, decimals: int = 0, out: Any = None) -> Any:
    """Elements rounded to decimals, halves to even."""
    return np.around(x, decimals) if _is_number(x) else _into(ops._npi_around(held(x), decimals=int(decimals)), out)


FUNCTIONS.update(round=around, round_=around)


@_listed
def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
               ) -> Any:
    """Numbers in the place of NaN, and of the infinities: by default zero, and the ends of the dtype."""
    value = held(x)
    if isinstance(value, NDArray):
        if not is_floating(value._data.dtype):
            return value.copy() if copy else value
        ends = np.finfo(value._data.dtype)
        posinf, neginf = float(ends.max) if posinf is None else posinf, float(ends.min) if neginf is None else neginf
    elif posinf is None or neginf is None:
        return _numpy("nan_to_num", x)
    chosen = where(FUNCTIONS["isnan"](value), nan, value)
    chosen = where(FUNCTIONS["isposinf"](value), posinf, chosen)
    chosen = where(FUNCTIONS["isneginf"](value), neginf, chosen)
    return chosen if copy else _into(chosen, value)


@_listed
def polyval(p: Any, x: Any) -> Any:
    """A polynomial's values, with its coefficients from the highest power down."""
    coefficients, value = held(p), held(x)
    if isinstance(coefficients, Symbol):
        return _numpy("polyval", p, x)
    result = ops.zeros_like(value)
    for i in range(len(coefficients)):
        result = result * value + coefficients[i]
    return result


@_listed
def negative(x: Any, out: Any = None) -> Any:
    """``-x``."""
    return -x if _is_number(x) else _into(-held(x), out)


def _binary(name: str, method: str, own: Callable[..., Any]) -> None:
    def function(x1: Any, x2: Any, out: Any = None) -> Any:
        if _is_number(x1) and _is_number(x2):
            return own(x1, x2)
        if isinstance(x1, NumpyValue) or not (_is_number(x1) or isinstance(x2, NumpyValue)):
            return _into(held(x1)._binary(method, x2, False), out)
        return _into(held(x2)._binary(method, x1, True), out)

    _named(name, f"``{name}`` of two arrays, or an array and a number; shapes broadcast.", function)


for _name, _method in {
        "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "true_divide": "truediv",
        "mod": "mod", "remainder": "mod", "power": "pow", "maximum": "maximum", "minimum": "minimum",
        "hypot": "hypot", "equal": "eq", "not_equal": "ne", "greater": "gt", "greater_equal": "ge", "less": "lt",
        "less_equal": "le"}.items():
    _binary(_name, _method, getattr(np, _name))


def _symmetric(name: str, own: Callable[..., Any], between: Callable[[Any, Any], Any]) -> None:
    """A function of an array and another operand, in either order."""
    def function(x1: Any, x2: Any, out: Any = None) -> Any:
        if _is_number(x1) and _is_number(x2):
            return own(x1, x2)
        value, other = (x2, x1) if _is_number(x1) or not isinstance(x1, NumpyValue) else (x1, x2)
        return _into(between(held(value), other), out)

    _named(name, f"``{name}`` of two arrays, or an array and a number; shapes broadcast.", function)


def _bits(name: str) -> Callable[[Any, Any], Any]:
    def between(value: Any, other: Any) -> Any:
        result = value._logic(name, other)
        if result is NotImplemented:
            raise DTypeError(f"bitwise_{name}: expected integers or truth values, got {other!r}")
        return result
    return between


def _truth(name: str) -> Callable[[Any, Any], Any]:
    def between(value: Any, other: Any) -> Any:
        if _is_number(other):
            return get(f"_npi_logical_{name}_scalar")(value, scalar=float(other))
        return get(f"_npi_logical_{name}")(*value._pair(held(other)))
    return between


for _name in ("and", "or", "xor"):
    _symmetric(f"bitwise_{_name}", getattr(np, f"bitwise_{_name}"), _bits(_name))
    _symmetric(f"logical_{_name}", getattr(np, f"logical_{_name}"), _truth(_name))


@_listed
def floor_divide(x1: Any, x2: Any, out: Any = None) -> Any:
    """Quotients rounded down; integers keep their dtype, shapes broadcast."""
    if _is_number(x1) and _is_number(x2):
        return np.floor_divide(x1, x2)
    return _into(held(x2)._floor_quotient(x1, True) if _is_number(x1) else held(x1)._floor_quotient(x2, False), out)


def _sharing(name: str) -> None:
    def function(a: Any, b: Any, max_work: Any = None) -> bool:
        left, right = held(a), held(b)
        return left._ctx == right._ctx and bool(getattr(left._ctx.xp, name)(left._data, right._data))

    _named(name, "Whether two arrays have memory in common.", function)


_sharing("may_share_memory")
_sharing("shares_memory")


# -------------------------------------------------------------------------------------------------- reductions


def _axis(axis: Any) -> Any:
    if axis is None or isinstance(axis, int):
        return axis
    return int(axis) if np.ndim(axis) == 0 else tuple(map(int, axis))


def _totals(name: str, operator: str, keeps: bool) -> None:
    def function(a: Any, axis: Any = None, dtype: DTypeLike = None, out: Any = None, keepdims: bool = False) -> Any:
        value = held(a) if keeps else _floating(held(a))
        result = get(operator)(value, axis=_axis(axis), keepdims=bool(keepdims))
        if dtype is None and keeps and isinstance(value, NDArray) and value._data.dtype.kind in "iu":
            dtype = value._data.dtype
        return _into(result if dtype is None else result.astype(dtype), out)

    _named(name, f"The {name} along axes; integers keep their dtype." if keeps else f"The {name} along axes.", function)


_totals("sum", "_np_sum", True)
_totals("prod", "_np_prod", True)
_totals("mean", "_npi_mean", False)


def _spreads(name: str, operator: str) -> None:
    def function(a: Any, axis: Any = None, dtype: DTypeLike = None, out: Any = None, ddof: int = 0,
                 keepdims: bool = False) -> Any:
        result = get(operator)(_floating(held(a)), axis=_axis(axis), ddof=int(ddof), keepdims=bool(keepdims))
        return _into(result if dtype is None else result.astype(dtype), out)

    _named(name, f"``{name}`` along axes.", function)


_spreads("std", "_npi_std")
_spreads("var", "_npi_var")


def _extremes(names: Sequence[str], operator: str) -> None:
    def function(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return _into(get(operator)(held(a), axis=_axis(axis), keepdims=bool(keepdims)), out)

    for name in names:
        _named(name, f"``{names[0]}`` along axes.", function)


_extremes(("amax", "max"), "_np_max")
_extremes(("amin", "min"), "_np_min")
_extremes(("any", "sometrue"), "_np_any")
_extremes(("all", "alltrue"), "_np_all")
_extremes(("argmax",), "_npi_argmax")
_extremes(("argmin",), "_npi_argmin")


@_listed
def cumsum(a: Any, axis: Any = None, dtype: DTypeLike = None, out: Any = None) -> Any:
    """Cumulative sums."""
    return _into(ops._np_cumsum(held(a), axis=_axis(axis), dtype=None if dtype is None else as_dtype(dtype)), out)


@_listed
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, out: Any = None) -> Any:
    """The mean along axes, weighted where weights are given, of one shape or for each place of an axis; with
    ``returned`` also the sums of the weights."""
    value, total = _floating(held(a)), FUNCTIONS["sum"]
    if weights is None:
        result, parts = FUNCTIONS["mean"](value, axis=axis), ops.ones_like(value) if returned else None
    else:
        parts = _floating(held(weights))
        if isinstance(value, NDArray) and parts.shape != value.shape:
            if not isinstance(axis, numbers.Integral) or parts.shape != (value.shape[int(axis)],):
                raise ArgumentError(f"np.average: weights of shape {parts.shape} fit no axis of {value.shape}; give "
                                    "the axis that they belong to")
            parts = broadcast_to(reshape(parts, (-1,) + (1,) * ((-1 - int(axis)) % value.ndim)), value.shape)
        result = total(value * parts, axis=axis) / total(parts, axis=axis)
    return (result, total(parts, axis=axis)) if returned else _into(result, out)


@_listed
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, taken ``n`` times."""
    if n < 0:
        raise ArgumentError(f"np.diff: n must not be negative, got {n}")
    ends = [each for each in (prepend, a, append) if each is not None]
    value = held(a) if len(ends) == 1 else concatenate(ends, axis=axis)
    for _ in range(n):
        later, earlier = (_along(value, axis, part) for part in (builtins.slice(1, None), builtins.slice(-1)))
        value = later != earlier if getattr(value, "_kind", "") == "b" else later - earlier
    return value


def _along(value: Any, axis: int, part: Any) -> Any:
    """A part along an axis, counted from either end: a slice, or indices."""
    every = builtins.slice(None)
    return value[(every,) * axis + (part,)] if axis >= 0 else value[(..., part, *(every,) * (-1 - axis))]


@_listed
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours among all elements, between what is given for both ends."""
    parts = [to_begin, diff(ravel(ary)), to_end]
    return concatenate([each for each in parts if each is not None], axis=None)


# ------------------------------------------------------------------------------------------------------ shapes


def _codes(shape: Any) -> Any:
    return int(shape) if isinstance(shape, numbers.Integral) else tuple([int(dim) for dim in shape])


@_listed
def reshape(a: Any, newshape: Any, order: str = "C") -> Any:
    """An array in another shape, given literally; one -1 is inferred."""
    if order != "C":
        raise ArgumentError(f"np.reshape: order: expected 'C', got {order!r}")
    return ops._np_reshape(held(a), newshape=_codes(newshape))


@_listed
def ravel(x: Any, order: str = "C") -> Any:
    """A flat array."""
    return reshape(x, -1, order)


@_listed
def transpose(a: Any, axes: Any = None) -> Any:
    """Permute the axes; by default reverse them."""
    value = held(a)
    if isinstance(value, NDArray) and value.ndim < 2:
        return value
    return ops.transpose(value) if axes is None else ops.transpose(value, axes=_codes(axes))


@_listed
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Swap two axes."""
    return ops.SwapAxis(held(a), dim1=int(axis1), dim2=int(axis2))


@_listed
def expand_dims(a: Any, axis: Any) -> Any:
    """Insert an axis of length one."""
    return ops.expand_dims(held(a), axis=int(axis)) if isinstance(axis, numbers.Integral) else \
        _numpy("expand_dims", a, axis)


@_listed
def squeeze(x: Any, axis: Any = None) -> Any:
    """Remove axes of length one."""
    value = held(x)
    if isinstance(value, NDArray):
        return reshape(value, np.squeeze(np.broadcast_to(np.int8(0), value.shape), axis).shape)
    return ops.squeeze(value) if axis is None else ops.squeeze(value, axis=_axis(axis))


@_listed
def broadcast_to(array: Any, shape: Any) -> Any:
    """Broadcast to a shape."""
    return ops._np_broadcast_to(held(array), shape=(shape,) if isinstance(shape, int) else _codes(shape))


@_listed
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Move axes to other places."""
    value = held(a)
    if isinstance(value, Symbol):
        return _numpy("moveaxis", a, source, destination)
    rank = value.ndim
    np.moveaxis(np.empty((0,) * rank), source, destination)  # NumPy raises the errors
    places, wanted = [[range(rank)[int(axis)] for axis in np.atleast_1d(axes)] for axes in (source, destination)]
    order = [axis for axis in range(rank) if axis not in places]
    for place, axis in sorted(zip(wanted, places)):
        order.insert(place, axis)
    return transpose(value, order)


@_listed
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Rotate by quarters of a turn, from the first of two axes to the second."""
    value, (first, second) = held(m), axes
    turns = int(k) % 4
    if turns in (1, 2):
        value = flip(value, second)
    if turns == 2:
        return flip(value, first)
    value = swapaxes(value, first, second) if turns else value
    return flip(value, second) if turns == 3 else value


def _raising(rank: int) -> None:
    def function(*arys: Any) -> Any:
        if any_symbol(arys):
            return _numpy(f"atleast_{rank}d", *arys)
        raised = [_at_least(rank)(held(each)) for each in arys]
        return raised[0] if len(raised) == 1 else raised

    _named(f"atleast_{rank}d", f"Arrays with {rank} axes at least.", function)


for _rank in (1, 2, 3):
    _raising(_rank)


@_listed
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """An array with values behind it, along an axis; without one both are flat."""
    return concatenate([arr, values], axis=axis)


def _joined(seq: Any) -> list[Any]:
    values = [held(value) for value in seq]
    arrays = [value for value in values if isinstance(value, NDArray)]
    if len({value._data.dtype for value in arrays}) > 1 and len(arrays) == len(values):
        wanted = promoted(*[value._data.dtype for value in arrays])
        values = [value.astype(wanted, copy=False) for value in values]
    return values


@_listed
def concatenate(seq: Any, axis: int | None = 0, out: Any = None) -> Any:
    """Concatenate along an axis."""
    values = _joined(seq)
    if axis is None:
        values, axis = [reshape(value, -1) for value in values], 0
    return _into(ops.Concat(*values, dim=int(axis), num_args=len(values)), out)


@_listed
def stack(arrays: Any, axis: int = 0, out: Any = None) -> Any:
    """Stack along a new axis."""
    values = _joined(arrays)
    return _into(ops.stack(*values, axis=int(axis), num_args=len(values)), out)


def _lined(name: str, raised: Callable[[Any], Any], axis: Callable[[Any], int]) -> None:
    def function(arrays: Any) -> Any:
        values = [raised(held(value)) for value in arrays]
        return concatenate(values, axis=axis(values[0]))

    _named(name, f"``{name}`` of arrays.", function)


def _at_least(rank: int, behind: bool = False) -> Callable[[Any], Any]:
    def raised(value: Any) -> Any:
        if isinstance(value, Symbol):
            return value
        shape = value.shape
        if rank == 3 and len(shape) < 3:
            return reshape(value, {0: (1, 1, 1), 1: (1, -1, 1), 2: (*shape, 1)}[len(shape)])
        if len(shape) >= rank:
            return value
        return reshape(value, (-1, 1) if behind and len(shape) == 1 else (1,) * (rank - len(shape)) + shape)

    return raised


_lined("vstack", _at_least(2), lambda value: 0)
_lined("row_stack", _at_least(2), lambda value: 0)
_lined("hstack", _at_least(1), lambda value: int(isinstance(value, Symbol) or value.ndim > 1))
_lined("dstack", _at_least(3), lambda value: 2)
_lined("column_stack", _at_least(2, True), lambda value: 1)


@_listed
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Split along an axis into equal parts, or at indices."""
    value = held(ary)
    if isinstance(value, NDArray):
        spans = np.split(np.arange(value.shape[axis]), indices_or_sections)
        where = axis % value.ndim
        starts = [int(span[0]) if len(span) else 0 for span in spans]
        return [value[(builtins.slice(None),) * where + (builtins.slice(start, start + len(span)),)]
                for start, span in zip(starts, spans)]
    if isinstance(indices_or_sections, numbers.Integral):
        return list(ops._split_v2(value, indices=(), axis=axis, sections=int(indices_or_sections)))
    return list(ops._split_v2(value, axis=axis, indices=(0, *_codes(indices_or_sections))))


def _split_along(name: str, axis: int, least: int) -> None:
    def function(ary: Any, indices_or_sections: Any) -> list[Any]:
        value = held(ary)
        rank = value.ndim if isinstance(value, NDArray) else 3
        if rank < least:
            raise ArgumentError(f"{name}: expected at least {least} axes, got shape {value.shape}")
        return split(value, indices_or_sections, min(axis, rank - 1))

    _named(name, f"``{name}``: even parts along an axis, or those between indices.", function)


for _name, _at, _least in (("vsplit", 0, 2), ("hsplit", 1, 1), ("dsplit", 2, 3)):
    _split_along(_name, _at, _least)


@_listed
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Repeat each element."""
    return ops.repeat(held(a), repeats=int(repeats), axis=axis) if isinstance(repeats, numbers.Integral) else \
        _numpy("repeat", a, repeats, axis)


@_listed
def tile(A: Any, reps: Any) -> Any:
    """Repeat the whole array."""
    return ops.tile(held(A), reps=(int(reps),) if isinstance(reps, numbers.Integral) else _codes(reps))


@_listed
def flip(m: Any, axis: Any = None, out: Any = None) -> Any:
    """Reverse the order of the elements."""
    value = held(m)
    if axis is None:
        axis = tuple(range(value.ndim))
    return _into(ops.reverse(value, axis=_axis(axis)), out) if axis != () else value


def _flips(name: str, axis: int) -> None:
    def function(m: Any) -> Any:
        return flip(m, axis)

    _named(name, f"Reverse the order of the elements along axis {axis}.", function)


_flips("flipud", 0)
_flips("fliplr", 1)


@_listed
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Shift elements along an axis."""
    return ops._np_roll(held(a), shift=_axis(shift), axis=_axis(axis))


def _matrix(m: Any) -> Any:
    """Matrices, or a vector as each row of one."""
    value = held(m)
    is_vector = isinstance(value, NDArray) and value.ndim == 1
    return ops.broadcast_to(value, shape=value.shape * 2) if is_vector else value


@_listed
def tril(m: Any, k: int = 0) -> Any:
    """The lower triangle, with zeros above a diagonal."""
    return ops._npi_tril(_matrix(m), k=int(k))


@_listed
def triu(m: Any, k: int = 0) -> Any:
    """The upper triangle, with zeros below a diagonal."""
    return ops._npi_triu(_matrix(m), k=int(k))


@_listed
def diag(v: Any, k: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    return ops.diag(held(v), k=int(k))


@_listed
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonals of matrices along two axes, as the last axis."""
    value = held(a)
    if isinstance(value, NDArray) and value.ndim < 2:
        raise ArgumentError(f"np.diagonal: expected two axes at least, got the shape {value.shape}")
    return ops.diag(value, k=int(offset), axis1=int(axis1), axis2=int(axis2))


@_listed
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, out: Any = None) -> Any:
    """The sums of the diagonals of matrices along two axes."""
    return FUNCTIONS["sum"](diagonal(a, offset, axis1, axis2), axis=-1, out=out)


# ------------------------------------------------------------------------------------------- choosing, ordering


@_listed
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """``x`` where the condition holds, ``y`` elsewhere; without both, the indices where it holds."""
    if x is None and y is None:
        return FUNCTIONS["nonzero"](condition)
    if _is_number(x) and _is_number(y):
        return ops._npi_where(held(condition), held(x), held(y))
    if _is_number(x):
        return ops._npi_where_lscalar(held(condition), held(y), scalar=float(x))
    if _is_number(y):
        return ops._npi_where_rscalar(held(condition), held(x), scalar=float(y))
    return ops._npi_where(held(condition), *held(x)._pair(held(y)))


@_listed
def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None) -> Any:
    """Elements clipped to a range."""
    if _is_number(a_min) and _is_number(a_max):
        return _into(ops.clip(held(a), a_min=float(a_min), a_max=float(a_max)), out)
    value = held(a) if a_min is None else FUNCTIONS["maximum"](a, a_min)
    return _into(value if a_max is None else FUNCTIONS["minimum"](value, a_max), out)


@_listed
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise", out: Any = None) -> Any:
    """Elements along an axis at indices; an index out of range raises an error, or is clipped."""
    value = held(a) if axis is not None else reshape(a, -1)
    if isinstance(value, Symbol) and not isinstance(indices, Symbol) and mode == "raise":
        return _along(value, int(axis or 0), indices)
    places = held(np.asarray(indices)) if _is_number(indices) else held(indices)
    return _into(ops.take(value, places, axis=int(axis or 0), mode=mode), out)


@_listed
def nonzero(a: Any) -> tuple[Any, ...]:
    """Indices of the nonzero elements, along each axis."""
    return tuple(made(part) for part in np.nonzero(held(a).asnumpy()))


@_listed
def argsort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None) -> Any:
    """Indices that sort the elements along an axis."""
    value = reshape(a, -1) if axis is None else held(a)
    return ops._npi_argsort(value, axis=-1 if axis is None else int(axis), dtype=np.dtype(np.int64))


@_listed
def sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None) -> Any:
    """Elements sorted along an axis."""
    return ops._npi_sort(reshape(a, -1) if axis is None else held(a), axis=-1 if axis is None else int(axis))


# ------------------------------------------------------------------------------------------------------ products


@_listed
def matmul(a: Any, b: Any, out: Any = None) -> Any:
    """Products of matrices; the axes before the last two broadcast."""
    return _into(ops._npi_matmul(*held(a)._pair(held(b))), out)


@_listed
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """The product over the last axis of ``a`` and the last but one of ``b``."""
    if _is_number(a) or _is_number(b):
        return FUNCTIONS["multiply"](a, b, out=out)
    left, right = held(a)._pair(held(b))
    if isinstance(left, Symbol):
        return ops._npi_matmul(left, right)
    if 0 in (left.ndim, right.ndim):
        return FUNCTIONS["multiply"](left, right, out=out)
    return _into(tensordot(left, right, ((left.ndim - 1,), (builtins.max(0, right.ndim - 2),))), out)


@_listed
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Sums of products over axes of both."""
    left, right = held(a)._pair(held(b))
    if isinstance(axes, numbers.Integral):
        count = int(axes)
        pairs = list(range(left.ndim - count, left.ndim)), list(range(count))
    else:
        pairs = tuple([int(each)] if isinstance(each, numbers.Integral) else list(each)
                      for each in axes)  # type: ignore[assignment]  # two of them
    first, second = [each % left.ndim for each in pairs[0]], [each % right.ndim for each in pairs[1]]
    free = [i for i in range(left.ndim) if i not in first], [i for i in range(right.ndim) if i not in second]
    size = int(np.prod([left.shape[i] for i in first], dtype=np.int64))
    rows, columns = [[value.shape[i] for i in kept] for value, kept in zip((left, right), free)]
    height, width = [int(np.prod(each, dtype=np.int64)) for each in (rows, columns)]
    one = reshape(transpose(left, free[0] + first), (height, size))
    other = reshape(transpose(right, second + free[1]), (size, width))
    return reshape(ops._npi_matmul(one, other), (*rows, *columns))


@_listed
def inner(a: Any, b: Any) -> Any:
    """Inner products over the last axes."""
    left, right = held(a), held(b)
    if left.ndim == 0 or right.ndim == 0:
        return left * right
    return tensordot(left, right, ((left.ndim - 1,), (right.ndim - 1,)))


@_listed
def outer(a: Any, b: Any) -> Any:
    """The outer product."""
    return FUNCTIONS["multiply"](reshape(a, (-1, 1)), reshape(b, (1, -1)))


@_listed
def vdot(a: Any, b: Any) -> Any:
    """The inner product of all elements."""
    return tensordot(reshape(a, -1), reshape(b, -1), 1)


@_listed
def einsum(subscripts: str, *operands: Any, out: Any = None, optimize: Any = False) -> Any:
    """Sums of products over axes with the same letter, with axes in the order after ``->``; each letter once in an
    operand."""
    values = [held(operand) for operand in operands]
    inputs, _, output = subscripts.replace(" ", "").partition("->")
    words = inputs.split(",")
    if "." in subscripts or builtins.any(len(set(word)) < len(word) for word in words) or len(words) != len(values):
        return _into(_numpy("einsum", subscripts, *values), out)
    if "->" not in subscripts:
        output = implied(inputs)
    result = values[0]
    have = words[0]
    for i, (word, value) in enumerate(zip(words[1:], values[1:])):
        later = set(output).union(*words[i + 2:])
        result, have = _product(result, have, value, word, later)
    gone = [i for i, letter in enumerate(have) if letter not in output]
    if gone:
        result = FUNCTIONS["sum"](result, axis=tuple(gone))
        have = "".join(letter for letter in have if letter in output)
    return _into(transpose(result, [have.index(letter) for letter in output]) if output else result, out)


def _product(left: Any, have: str, right: Any, word: str, later: set[str]) -> tuple[Any, str]:
    """The product of two operands of ``einsum``, as a matrix product; letters needed later are kept."""
    left, right = left._pair(right)
    if isinstance(left, Symbol):
        return _product_of_symbols(left, have, right, word, contraction(have, word, later))
    letters, value = contracted(have, left, word, right, later)
    return value, letters


def _product_of_symbols(left: Any, have: str, right: Any, word: str, letters: Contraction) -> tuple[Any, str]:
    """The product of two operands whose lengths are unknown: each of rows, sums and columns has at most one letter."""
    batch, summed, rows, columns = letters
    if not rows and not columns:
        products = transpose(left, [have.index(c) for c in batch + summed]) * transpose(right, [
            word.index(c) for c in batch + summed])
        places = tuple(range(len(batch), len(batch) + len(summed)))
        return FUNCTIONS["sum"](products, axis=places) if places else products, "".join(batch)
    if builtins.max(map(len, (rows, summed, columns))) > 1:
        raise ArgumentError(f"np.einsum of {have},{word}: several letters of one operand alone, or in one sum, are one "
                            "axis of a product, whose length a symbol does not know")

    def laid(value: Any, own: str, first: list[str], last: list[str]) -> Any:
        value = transpose(value, [own.index(letter) for letter in (*batch, *first, *last)])
        value = value if first else expand_dims(value, len(batch))
        return value if last else expand_dims(value, len(batch) + 1)

    result = ops._npi_matmul(laid(left, have, rows, summed), laid(right, word, summed, columns))
    gone = [len(batch) + i for i, each in enumerate((rows, columns)) if not each]
    return (squeeze(result, tuple(gone)) if gone else result), "".join(batch + rows + columns)


# ------------------------------------------------------------------------------------------------------- others


def _like(name: str, operator: str) -> None:
    def function(a: Any, dtype: DTypeLike = None, order: str = "C", ctx: Any = None, out: Any = None) -> Any:
        result = get(operator)(held(a))
        return _into(result if dtype is None else result.astype(dtype), out)

    _named(name, f"``{name}``: an array of the shape and dtype of ``a``.", function)


_like("zeros_like", "zeros_like")
_like("ones_like", "ones_like")
_like("empty_like", "zeros_like")


@_listed
def full_like(a: Any, fill_value: Any, dtype: DTypeLike = None, order: str = "C", ctx: Any = None, out: Any = None
              ) -> Any:
    """An array with the shape of ``a``, filled with a value."""
    return _into(ops._npi_full_like(held(a), fill_value=float(fill_value),
                                    dtype=None if dtype is None else as_dtype(dtype)), out)


def _wrapped(value: Any, floats: bool) -> Any:
    """Results of NumPy as arrays of this library; float64 only if an argument has it."""
    if isinstance(value, (list, tuple)):
        return type(value)([_wrapped(part, floats) for part in value]) if not hasattr(value, "_fields") else \
            tuple(_wrapped(part, floats) for part in value)
    if isinstance(value, (np.ndarray, np.generic)):
        return made(value, dtype=_FLOAT32 if value.dtype == np.float64 and not floats else None)
    return value.as_np_ndarray() if isinstance(value, NDArray) else value


def _dtypes(values: Any) -> list[np.dtype]:
    if isinstance(values, (list, tuple)):
        return [dtype for value in values for dtype in _dtypes(value)]
    return [np.dtype(values.dtype)] if isinstance(values, (NDArray, np.ndarray)) else []


def _numpy(name: str, *args: Any, **keywords: Any) -> Any:
    """NumPy's function of that name; see the module."""
    place: Any = np
    for part in name.split("."):
        place = getattr(place, part)
    if any_symbol((args, keywords)):
        if name in FUNCTIONS:
            raise ArgumentError(f"np.{name} of these arguments reads shapes or dtypes, which a symbol does not know")
        raise ArgumentError(f"np.{name} has no operator, which a symbol needs. "
                            f"{did_you_mean(name, FUNCTIONS)}")
    out = keywords.pop("out", None)
    wide = np.dtype(np.float64) in _dtypes([*args, *keywords.values()]) or keywords.get("dtype") is not None
    return _into(_wrapped(place(*args, **keywords), wide), out)


def any_symbol(values: Any) -> bool:
    """Whether a nesting contains a symbol."""
    if isinstance(values, dict):
        return any_symbol(list(values.values()))
    if isinstance(values, (list, tuple)):
        return builtins.any(any_symbol(value) for value in values)
    return isinstance(values, Symbol)


def by_numpy(name: str) -> Callable[..., Any]:
    """A function that NumPy computes, by its name below ``numpy``."""

    def function(*args: Any, **keywords: Any) -> Any:
        return _numpy(name, *args, **keywords)

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"NumPy's ``{name}`` of arrays."
    return function


@FUNCTION.provide
def function(name: str) -> Callable[..., Any]:
    """The function of ``np`` of that name."""
    return FUNCTIONS.get(name) or by_numpy(name)
