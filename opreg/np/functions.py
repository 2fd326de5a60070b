"""Functions of arrays and symbols by NumPy's names; each is an operator.

If no operator has the name, NumPy's function is called with the arrays: it computes on the host, or for recorded arrays
is traced to operators.
"""

from __future__ import annotations

import builtins
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opreg.core.op import Op
from opreg.core.registry import find, get, ops
from opreg.core.spec import as_dtype, is_floating
from opreg.errors import ArgumentError, DTypeError, did_you_mean
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol
from opreg.typing import DTypeLike

from .values import FUNCTION, NUMPYS, NumpyValue, held, made, promoted

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


#: Options of NumPy's element-wise functions, which this package does not have, with the values that NumPy takes.
_OPTIONS: dict[str, Callable[[Any], bool]] = {
    "where": lambda value: True,
    "casting": lambda value: value in ("no", "equiv", "safe", "same_kind", "unsafe"),
    "order": lambda value: True,
    "dtype": lambda value: _is_dtype(value),  # noqa: PLW0108  it is defined below
    "subok": lambda value: isinstance(value, (bool, np.bool_)),
}


def _is_dtype(value: Any) -> bool:
    try:
        return value is not None and as_dtype(value) is not None
    except (DTypeError, TypeError, ValueError):
        return False


def _without_options(name: str, options: dict[str, Any]) -> None:
    """Refuse options of NumPy's element-wise functions: as missing here, or as wrong if NumPy has none such."""
    for option, value in options.items():
        if option not in _OPTIONS or not _OPTIONS[option](value):
            raise ArgumentError(f"np.{name} does not support {option}={value!r}")
        raise NotImplementedError(f"np.{name} does not take {option}={value!r}, which NumPy's function takes: leave it "
                                  f"out, or call NumPy's on asnumpy()")


def _is_number(value: object) -> bool:
    return isinstance(value, (numbers.Number, np.generic)) and not isinstance(value, NumpyValue)


# ------------------------------------------------------------------------------------------- element by element


def _unary(name: str, op: Op, of_numbers: Callable[..., Any], keeps: bool) -> None:
    of_symbols = find(f"_npi_{op.name}") or op

    def function(x: Any, out: Any = None, **options: Any) -> Any:
        _without_options(name, options)
        if _is_number(x):
            return of_numbers(x)
        value = held(x)
        if isinstance(value, Symbol):  # whose dtype is unknown
            return of_symbols(value)
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
    chosen = ops._npi_nan_to_num(value, nan=nan, posinf=posinf, neginf=neginf)
    return chosen if copy or isinstance(value, Symbol) else _into(chosen, value)


@_listed
def polyval(p: Any, x: Any) -> Any:
    """A polynomial's values, with its coefficients from the highest power down."""
    coefficients, value = held(p)._pair(held(x))
    return ops._npi_polyval(coefficients, value)


@_listed
def negative(x: Any, out: Any = None, **options: Any) -> Any:
    """``-x``."""
    _without_options("negative", options)
    return -x if _is_number(x) else _into(-held(x), out)


def _binary(name: str, method: str, of_numbers: Callable[..., Any]) -> None:
    def function(x1: Any, x2: Any, out: Any = None, **options: Any) -> Any:
        _without_options(name, options)
        if _is_number(x1) and _is_number(x2):
            return of_numbers(x1, x2)
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


def _symmetric(name: str, of_numbers: Callable[..., Any], between: Callable[[Any, Any], Any]) -> None:
    """A function of an array and another operand, in either order."""
    def function(x1: Any, x2: Any, out: Any = None, **options: Any) -> Any:
        _without_options(name, options)
        if _is_number(x1) and _is_number(x2):
            return of_numbers(x1, x2)
        value, operand = (x2, x1) if _is_number(x1) or not isinstance(x1, NumpyValue) else (x1, x2)
        return _into(between(held(value), operand), out)

    _named(name, f"``{name}`` of two arrays, or an array and a number; shapes broadcast.", function)


def _bits(name: str) -> Callable[[Any, Any], Any]:
    def between(value: Any, other: Any) -> Any:
        result = value._logic(name, other)
        if result is NotImplemented:
            raise DTypeError(f"bitwise_{name}: expected integers or bool, got {other!r}")
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


def _pairs(name: str) -> None:
    """A floating function of two arrays, or of an array and a number on either side."""
    forms = [get(f"_npi_{name}"), get(f"_npi_{name}_scalar"), get(f"_npi_r{name}_scalar")]
    of_numbers: Callable[..., Any] = getattr(np, name)

    def function(x1: Any, x2: Any, out: Any = None, **options: Any) -> Any:
        _without_options(name, options)
        if _is_number(x1) and _is_number(x2):
            return of_numbers(x1, x2)
        if _is_number(x2):
            return _into(forms[1](held(x1), scalar=x2), out)
        return _into(forms[2](held(x2), scalar=x1) if _is_number(x1) else forms[0](held(x1), held(x2)), out)

    _named(name, f"``{name}`` of two arrays, or an array and a number; shapes broadcast.", function)


for _name in ("arctan2", "copysign", "ldexp"):
    _pairs(_name)
_symmetric("lcm", np.lcm, lambda value, other: ops._npi_lcm_scalar(value, scalar=other) if _is_number(other) else
           ops._npi_lcm(*value._pair(held(other))))


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
    values = [held(a)] if weights is None else [held(a), held(weights)]
    found = ops._npi_average(*values, axis=_axis(axis), returned=bool(returned), weighted=weights is not None)
    return tuple(found) if returned else _into(found, out)


@_listed
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, taken ``n`` times."""
    if n < 0:
        raise ArgumentError(f"np.diff: n must not be negative, got {n}")
    ends = [part for part in (prepend, a, append) if part is not None]
    value = held(a) if len(ends) == 1 else concatenate(ends, axis=axis)
    return ops._npi_diff(value, n=int(n), axis=int(axis))


def _along(value: Any, axis: int, part: Any) -> Any:
    """A part along an axis, counted from either end: a slice, or indices."""
    every = builtins.slice(None)
    return value[(every,) * axis + (part,)] if axis >= 0 else value[(..., part, *(every,) * (-1 - axis))]


@_listed
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours among all elements, between what is given for both ends."""
    ends, attrs = list[Any](), dict[str, Any]()
    for name, end in (("to_begin", to_begin), ("to_end", to_end)):
        if end is not None and not _is_number(end):
            ends.append(held(end))
            attrs[f"{name}_arr_given"] = True
        elif end is not None:
            attrs[f"{name}_scalar"] = float(end)
    return ops._npi_ediff1d(held(ary), *ends, **attrs)


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
    return ops._np_squeeze(held(x), axis=_axis(axis))


@_listed
def broadcast_to(array: Any, shape: Any) -> Any:
    """Broadcast to a shape."""
    return ops._np_broadcast_to(held(array), shape=(shape,) if isinstance(shape, int) else _codes(shape))


@_listed
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Move axes to other places."""
    return ops._np_moveaxis(held(a), source=_axis(source), destination=_axis(destination))


@_listed
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Rotate by quarters of a turn, from the first of two axes to the second."""
    return ops._npi_rot90(held(m), k=int(k), axes=tuple(axes))


def _raising(rank: int) -> None:
    def function(*arys: Any) -> Any:
        values = [held(each) for each in arys]
        raised = get(f"_np_atleast_{rank}d")(*values, num_args=len(values))
        return raised if len(values) == 1 else list(raised)

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
        dtype = promoted(*[value._data.dtype for value in arrays])
        values = [value.astype(dtype, copy=False) for value in values]
    return values


@_listed
def concatenate(seq: Any, axis: int | None = 0, out: Any = None) -> Any:
    """Concatenate along an axis."""
    values = _joined(seq)
    return _into(ops._npi_concatenate(*values, axis=axis, num_args=len(values)), out)


@_listed
def stack(arrays: Any, axis: int = 0, out: Any = None) -> Any:
    """Stack along a new axis."""
    values = _joined(arrays)
    return _into(ops.stack(*values, axis=int(axis), num_args=len(values)), out)


def _lined(name: str, operator: str) -> None:
    def function(arrays: Any) -> Any:
        values = _joined(arrays)
        return get(operator)(*values, num_args=len(values))

    _named(name, f"``{name}`` of arrays.", function)


for _name, _op in (("vstack", "vstack"), ("row_stack", "vstack"), ("hstack", "hstack"), ("dstack", "dstack"),
                   ("column_stack", "column_stack")):
    _lined(_name, f"_npi_{_op}")


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
    return _parts(ops._split_v2, value, indices_or_sections, axis=axis)


def _parts(operator: Op, value: Any, indices_or_sections: Any, **attrs: Any) -> list[Any]:
    """The parts of a symbol: some number of them, or those between indices."""
    cuts = dict(indices=(), sections=int(indices_or_sections)) if isinstance(indices_or_sections, numbers.Integral) \
        else dict(indices=(0, *_codes(indices_or_sections)))
    return list(operator(value, **cuts, **attrs))


@_listed
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Split along an axis into nearly equal parts, or at indices."""
    value = held(ary)
    if isinstance(value, NDArray) and isinstance(indices_or_sections, numbers.Integral):
        lengths = [len(part) for part in np.array_split(np.arange(value.shape[axis]), indices_or_sections)]
        return split(value, np.cumsum(lengths)[:-1].tolist(), axis)
    return split(value, indices_or_sections, axis)


def _split_along(name: str, axis: int, least: int) -> None:
    def function(ary: Any, indices_or_sections: Any) -> list[Any]:
        value = held(ary)
        if isinstance(value, Symbol):
            return split(value, indices_or_sections, 0) if axis == 0 else _parts(
                get(f"_npi_{name}"), value, indices_or_sections, axis=axis)
        if value.ndim < least:
            raise ArgumentError(f"{name}: expected at least {least} axes, got shape {value.shape}")
        return split(value, indices_or_sections, min(axis, value.ndim - 1))

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
    return _into(ops._npi_flip(held(m), axis=_axis(axis)), out)


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


@_listed
def tril(m: Any, k: int = 0) -> Any:
    """The lower triangle, with zeros above a diagonal."""
    return ops._npi_tril(held(m), k=int(k))


@_listed
def triu(m: Any, k: int = 0) -> Any:
    """The upper triangle, with zeros below a diagonal."""
    return ops._npi_triu(held(m), k=int(k))


@_listed
def diag(v: Any, k: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    return ops._np_diag(held(v), k=int(k))


@_listed
def diagflat(v: Any, k: int = 0) -> Any:
    """The matrix with all elements on a diagonal."""
    return ops._np_diagflat(held(v), k=int(k))


@_listed
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonals of matrices along two axes, as the last axis."""
    return ops._np_diagonal(held(a), offset=int(offset), axis1=int(axis1), axis2=int(axis2))


@_listed
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, out: Any = None) -> Any:
    """The sums of the diagonals of matrices along two axes."""
    return _into(ops._np_trace(held(a), offset=int(offset), axis1=int(axis1), axis2=int(axis2)), out)


@_listed
def diag_indices_from(arr: Any) -> Any:
    """The indices of the main diagonal, an array for each axis; of a symbol the rows of one symbol."""
    found = ops._npi_diag_indices_from(held(arr))
    return found if isinstance(found, Symbol) else tuple(found)


# -------------------------------------------------------------------------------- padding, inserting, deleting


@_listed
def pad(x: Any, pad_width: Any, mode: str = "constant", **keywords: Any) -> Any:
    """An array with elements added at both ends of its axes."""
    value = held(x)
    number, kind = keywords.pop("constant_values", 0), keywords.pop("reflect_type", "even")
    modes = ("constant", "edge", "reflect", "symmetric", "maximum", "minimum")
    if keywords or mode not in modes or kind != "even" or not _is_number(number):
        keywords.update({"constant_values": number} if mode == "constant" else {})
        return _numpy("pad", x, pad_width, mode, **keywords)
    widths = np.asarray(pad_width)
    widths = widths.reshape(1, -1) if widths.ndim < 2 else widths
    widths = np.broadcast_to(widths, (len(widths), 2))
    return ops._npi_pad(value, pad_width=tuple(map(tuple, widths.tolist())), mode=mode, constant_value=float(number))


def _slice_attrs(obj: Any) -> dict[str, Any]:
    return dict(start=obj.start, stop=obj.stop, step=1 if obj.step is None else obj.step)


@_listed
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """An array with values inserted before places along an axis; without one it is flat before."""
    inputs = [held(arr)] if _is_number(values) else [held(arr), held(values)]
    attrs: dict[str, Any] = dict(axis=axis, **(dict(val=float(values)) if _is_number(values) else {}))
    if isinstance(obj, builtins.slice):
        return ops._npi_insert_slice(*inputs, **_slice_attrs(obj), **attrs)
    if isinstance(obj, numbers.Integral):
        return ops._npi_insert_scalar(*inputs, int_ind=int(obj), **attrs)
    return ops._npi_insert_tensor(*inputs, _indices(obj), **attrs)


def _indices(obj: Any) -> Any:
    """Places as an array of integers."""
    return held(obj if isinstance(obj, (NDArray, Symbol)) else np.asarray(obj, np.int64))


@_listed
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """An array without the elements at positions along an axis; if None it is flattened first."""
    if isinstance(obj, builtins.slice):
        return ops._npi_delete(held(arr), **_slice_attrs(obj), axis=axis)
    if isinstance(obj, numbers.Integral):
        return ops._npi_delete(held(arr), int_ind=int(obj), axis=axis)
    value = held(arr)
    flat, place = (reshape(value, -1), 0) if axis is None else (value, int(axis))
    return ops._contrib_boolean_mask(flat, ops._kept_by_deletion(flat, _indices(obj), axis=place), axis=place)


@_listed
def resize(a: Any, new_shape: Any) -> Any:
    """An array of another shape with the elements repeated in their order, or cut off."""
    return ops._npi_resize(held(a), new_shape=_codes(new_shape))


# ------------------------------------------------------------------------------------------- choosing, ordering


@_listed
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """``x`` where the condition holds, ``y`` elsewhere; without both, the indices where it holds."""
    if x is None and y is None:
        return FUNCTIONS["nonzero"](condition)
    if _is_number(x) and _is_number(y):
        return ops._npi_where_scalar2(held(condition), x=float(x), y=float(y))
    if _is_number(x):
        return ops._npi_where_lscalar(held(condition), held(y), scalar=float(x))
    if _is_number(y):
        return ops._npi_where_rscalar(held(condition), held(x), scalar=float(y))
    return ops._npi_where(held(condition), *held(x)._pair(held(y)))


@_listed
def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """Elements clipped to a range, whose ends NumPy also calls ``min`` and ``max``."""
    a_min, a_max = min if a_min is None else a_min, max if a_max is None else a_max
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
def unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None) -> Any:
    """The sorted unique elements, or slices along an axis; on request also where each occurs first, which one each
    element is, and how often each occurs."""
    found = ops._npi_unique(held(ar), return_index=bool(return_index), return_inverse=bool(return_inverse),
                            return_counts=bool(return_counts), axis=axis)
    return tuple(found) if return_index or return_inverse or return_counts else found


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
    return _into(ops._np_dot(*held(a)._pair(held(b))), out)


@_listed
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Sums of products over axes of both."""
    left, right = held(a)._pair(held(b))
    if isinstance(axes, numbers.Integral):
        return ops._npi_tensordot_int_axes(left, right, axes=int(axes))
    first, second = [(int(each),) if isinstance(each, numbers.Integral) else tuple(map(int, each)) for each in axes]
    return ops._npi_tensordot(left, right, a_axes_summed=first, b_axes_summed=second)


@_listed
def inner(a: Any, b: Any) -> Any:
    """Inner products over the last axes."""
    left, right = held(a), held(b)
    if isinstance(left, NDArray) and isinstance(right, NDArray) and 0 in (left.ndim, right.ndim):
        return left * right
    return tensordot(left, right, (-1, -1))


@_listed
def outer(a: Any, b: Any) -> Any:
    """The outer product."""
    return tensordot(reshape(a, -1), reshape(b, -1), 0)


@_listed
def vdot(a: Any, b: Any) -> Any:
    """The inner product of all elements."""
    return tensordot(reshape(a, -1), reshape(b, -1), 1)


@_listed
def einsum(subscripts: str, *operands: Any, out: Any = None, optimize: Any = False) -> Any:
    """Sums of products over axes with the same letter, with axes in the order after ``->``; an ellipsis stands for all
    axes without a letter."""
    values = [held(operand) for operand in operands]
    dtypes = {value._data.dtype for value in values if isinstance(value, NDArray)}
    if len(dtypes) > 1 and not any_symbol(values):
        values = [value._cast(promoted(*dtypes)) for value in values]
    return _into(ops._npi_einsum(*values, subscripts=subscripts, optimize=int(bool(optimize)),
                                 num_args=len(values)), out)


@_listed
def percentile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None,
               interpolation: str = "linear", keepdims: bool = False) -> Any:
    """The ``q``-th percentiles along axes; several of them lie along new first axes."""
    inputs = [held(a)] if _is_number(q) else [held(a), held(q)]
    return _into(ops._npi_percentile(*inputs, axis=_axis(axis), interpolation=interpolation, keepdims=bool(keepdims),
                                     q_scalar=float(q) if _is_number(q) else None), out)


@_listed
def quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None,
             interpolation: str = "linear", keepdims: bool = False) -> Any:
    """The quantiles along axes, for numbers from zero to one."""
    return percentile(a, (q if _is_number(q) else held(q)) * 100, axis, out, overwrite_input, interpolation, keepdims)


@_listed
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """The number of occurrences of 0, 1, ..., or the sums of their weights."""
    inputs = [held(x)] if weights is None else [held(x), held(weights)]
    return ops._npi_bincount(*inputs, minlength=int(minlength), has_weights=weights is not None)


@_listed
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """The indices into a shape from flat indices, an array for each axis; of a symbol the rows of one symbol."""
    if order != "C":
        raise ArgumentError(f"np.unravel_index: order: expected 'C', got {order!r}")
    found = ops._unravel_index(held(np.asarray(indices)) if _is_number(indices) else held(indices), shape=_codes(shape))
    return found if isinstance(found, Symbol) else tuple(found)


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


def _wrapped(value: Any, floats: bool,
             kinds: tuple[type[np.ndarray] | type[np.generic], ...] = (np.ndarray, np.generic),
             ctx: Context | None = None) -> Any:
    """Results of NumPy as arrays of this library, if they are of these kinds; float64 only if an argument has it."""
    if isinstance(value, (list, tuple)):
        parts = [_wrapped(part, floats, kinds, ctx) for part in value]
        return type(value)(parts) if not hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, kinds) and (value.dtype.kind in "biu" or is_floating(value.dtype)):
        return made(value, ctx, _FLOAT32 if value.dtype == np.float64 and not floats else None)
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
            raise ArgumentError(f"np.{name} with these arguments reads shapes or dtypes, which a symbol does not have")
        raise ArgumentError(f"np.{name} is not an operator, so it cannot be applied to a symbol. "
                            f"{did_you_mean(name, FUNCTIONS)}")
    out = keywords.pop("out", None)
    return _into(_wrapped(place(*args, **keywords), _is_wide(args, keywords)), out)


def _is_wide(args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether the arguments of a function ask for float64."""
    return np.dtype(np.float64) in _dtypes([*args, *keywords.values()]) or keywords.get("dtype") is not None


@NUMPYS.provide
def of_numpy(array: NDArray, name: str, result: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The result of a function of NumPy that was given ``array``: arrays are those of ``np``, and so are numbers if
    ``np`` has the function. An ``out`` stays as it is."""
    if keywords.get("out") is not None:
        return result
    kinds: tuple[type[np.ndarray] | type[np.generic], ...] = (np.ndarray,)
    if name in FUNCTIONS:
        kinds = np.ndarray, np.generic
    return _wrapped(result, _is_wide(args, keywords), kinds, array._ctx)


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
