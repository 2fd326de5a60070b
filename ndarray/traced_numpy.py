"""What NumPy's functions are in a body that is followed: operators, with NumPy's rules for dtypes and shapes.

The rules for dtypes of a ufunc are asked of NumPy itself; the tables below say which operator computes it then.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.core.graph import Entry
from opreg.core.spec import Spec, broadcast, check_axes, check_axis, is_floating, show
from opreg.core.tracing import TraceError
from opreg.core.value import forms
from opreg.errors import did_you_mean

__all__ = ["INSTEAD", "ARITHMETIC", "UNARY", "FUNCTIONS", "ufunc", "function", "taken", "put"]

#: Ufuncs of two operands, by the key of their operators in ``value.forms``.
ARITHMETIC = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "power": "pow", "maximum": "maximum",
    "minimum": "minimum", "hypot": "hypot", "equal": "eq", "not_equal": "ne", "greater": "gt", "greater_equal": "ge",
    "less": "lt", "less_equal": "le",
}
#: What some of them are of truth values.
_OF_TRUTH = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and", "bitwise_and": "and",
             "bitwise_or": "or", "bitwise_xor": "xor", "not_equal": "xor", "logical_and": "and", "logical_or": "or",
             "logical_xor": "xor"}
#: Ufuncs of one operand, and their operators.
UNARY = {name: name for name in (
    "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "square", "reciprocal", "negative", "sin", "cos",
    "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "floor", "ceil",
    "trunc", "degrees", "radians")} | {
    "absolute": "abs", "fabs": "abs", "rad2deg": "degrees", "deg2rad": "radians", "rint": "_npi_around",
    "isnan": "_npi_isnan", "isinf": "_npi_isinf", "isfinite": "_npi_isfinite"}

_BOOL = np.dtype(np.bool_)
INSTEAD = "Write it with operators such as where, or leave traced off"


def _followed(value: Any) -> bool:
    return hasattr(value, "unwritten")


def _host(value: Any) -> Any:
    """A followed NDArray as the NumPy-like array it is over; other things as they are."""
    return getattr(value, "_data", value) if hasattr(value, "_ctx") else value


# ------------------------------------------------------------------------------------------------- ufuncs


def ufunc(body: Any, ufunc: np.ufunc, method: str, inputs: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """A ufunc of values, arrays and numbers."""
    name = ufunc.__name__
    (out,) = keywords.pop("out", (None,))
    given = [_host(each) for each in inputs]
    if method == "reduce" and name in _REDUCTIONS:
        return _stored(function(body, _REDUCTIONS[name], given, {"axis": 0, **keywords}), out)
    if method != "__call__" or keywords:
        what = name if method == "__call__" else f"{name}.{method}"
        raise TraceError(f"np.{what}({', '.join(f'{key}=' for key in keywords)}) cannot be followed. {body.instead}")
    if name == "matmul":
        return _stored(FUNCTIONS["matmul"](body, *given), out)
    numbers = [type(each) if type(each) in (int, float) else each.dtype if hasattr(each, "dtype")
               else np.asarray(each).dtype for each in given]
    loop = ufunc.resolve_dtypes((*numbers, *[None] * ufunc.nout))
    if len(given) == 1 and name in UNARY:
        entry = body.one(UNARY[name], body.cast(body.entry(given[0]), loop[0]))
    elif name in ("logical_not", "invert") and (name == "logical_not" or loop[0] == _BOOL):
        entry = _inverted(body, body.entry(given[0]))
    elif name == "sign":
        entry = _sign(body, body.cast(body.entry(given[0]), loop[0]))
    elif name == "positive":
        entry = body.entry(given[0])
    elif name.startswith("logical_") or (loop[0] == _BOOL and (name in _OF_TRUTH or name == "equal")):
        entry = _truth(body, name, given)
    elif name in ARITHMETIC:
        entry = _binary(body, ARITHMETIC[name], given, loop)
    else:
        known = [*ARITHMETIC, *UNARY, *FUNCTIONS]
        title = f"np.{name}" if getattr(np, name, None) is ufunc else f"the ufunc {name}, which is not NumPy's,"
        raise TraceError(f"{title} of {loop[0]} has no operator. {did_you_mean(name, known)} {body.instead}")
    return _stored(body.value(body.cast(entry, loop[-1])), out)


def _stored(value: Any, out: Any) -> Any:
    """The value, stored in ``out`` where that is given."""
    if out is None:
        return value
    if not _followed(out):
        raise TraceError("out= is an array in memory, which what is followed cannot change")
    out.store(value.entry)
    return out


def _binary(body: Any, key: str, given: Sequence[Any], loop: Sequence[Any]) -> Entry:
    """Arithmetic or a comparison, by the form of its operator for a number on one side where there is one."""
    left, right = given
    _, broadcasting, with_number, number_left = forms(key)
    logical = loop[-1] == _BOOL
    if not _followed(right) and np.ndim(right) == 0 and _exact(right):
        found = body.one(with_number, body.cast(body.entry(left), loop[0]), scalar=_number(right, loop[1]))
    elif not _followed(left) and np.ndim(left) == 0 and _exact(left):
        found = body.one(number_left, body.cast(body.entry(right), loop[1]), scalar=_number(left, loop[0]))
    else:
        found = body.one(broadcasting, *[body.cast(body.entry(each), dtype) for each, dtype in zip(given, loop)])
    return _as_truth(body, found) if logical else found


def _exact(number: Any) -> bool:
    """Whether an attribute, which is a float, holds the number as it is."""
    return not isinstance(number, (int, np.integer)) or abs(int(number)) <= 2 ** 53


def _number(number: Any, dtype: Any) -> Any:
    value = np.asarray(number).astype(dtype)[()]
    return float(value) if is_floating(np.dtype(dtype)) else int(value)


def _as_truth(body: Any, entry: Entry) -> Entry:
    """Zeros and ones as truth values; those in a floating dtype are remembered."""
    found = body.cast(entry, _BOOL)
    if is_floating(body.spec(entry).dtype):
        body.truths[found] = entry
    return found


def _inverted(body: Any, entry: Entry) -> Entry:
    held = body.truths.get(entry, entry)
    if is_floating(body.spec(held).dtype):
        return _as_truth(body, body.one("logical_not", held))
    return body.one("_npi_logical_not", held)


def _truth(body: Any, name: str, given: Sequence[Any]) -> Entry:
    entries = [body.entry(each) for each in given]
    if name == "equal":
        return _inverted(body, _truth(body, "logical_xor", given))
    held = [body.truths.get(entry, entry) for entry in entries]
    dtypes = {body.spec(entry).dtype for entry in held}
    word = _OF_TRUTH[name]
    if len(dtypes) == 1 and is_floating(dtypes.pop()):
        return _as_truth(body, body.one(f"broadcast_logical_{word}", *held))
    return body.one(f"_npi_logical_{word}", *entries)


def _sign(body: Any, entry: Entry) -> Entry:
    """As NumPy has it: NaN stays, of which the operator makes zero."""
    if not is_floating(body.spec(entry).dtype):
        return body.one("sign", entry)
    return body.one("_npi_where", body.one("_npi_isnan", entry), entry, body.one("sign", entry))


# --------------------------------------------------------------------------------------------- subscripts


def _dummy(spec: Spec) -> np.ndarray:
    """An array of that shape which takes no memory."""
    return np.broadcast_to(np.empty((), np.bool_), spec.shape or ())


def _parts(key: Any) -> tuple[tuple[Any, ...], bool]:
    """The parts of a subscript, and whether one of them is a followed value. Masks are the places they name."""
    parts: list[Any] = []
    for part in map(_host, key if isinstance(key, tuple) else (key,)):
        if _followed(part) or not isinstance(part, (np.ndarray, list)):
            parts.append(int(part) if isinstance(part, np.integer) else part)
        else:
            array = np.asarray(part)
            parts += array.nonzero() if array.dtype == _BOOL else [array.astype(np.int64) if array.size == 0 else array]
    return tuple(parts), any(map(_followed, parts))


def _basic(parts: Sequence[Any]) -> bool:
    return all(part is None or part is Ellipsis or type(part) in (int, slice) for part in parts)


def taken(array: Any, key: Any) -> Any:
    """What ``array[key]`` is."""
    body = array.body
    parts, inner = _parts(key)
    if inner:
        return body.value(_gathered(array, parts))
    spec = Spec(_dummy(array.spec)[parts].shape, array.dtype)
    if not _basic(parts):
        return body.value(body.one("_subscript", array.entry, key=parts))

    def read(entry: Entry) -> Entry:
        return body.one("_np_reshape", entry, newshape=spec.shape) if _whole(parts) else body.one(
            "_subscript", entry, key=parts)

    def write(entry: Entry, value: Entry) -> Entry:
        return body.one("_subscript_assign", entry, value, key=parts)

    return array.view(spec, read, write, parts)


def _whole(parts: Sequence[Any]) -> bool:
    """Whether a subscript keeps every number and only adds axes, or does nothing."""
    return all(part is None or part is Ellipsis or (isinstance(part, slice) and part == slice(None)) for part in parts)


def put(array: Any, key: Any, value: Any) -> None:
    """Store as ``array[key] = value`` does."""
    body = array.body
    parts, inner = _parts(key)
    if array.holds(_host(value), parts):  # what x[key] += 1 ends with
        return
    source = body.entry(_host(value) if hasattr(value, "dtype") else np.asarray(value, array.dtype))
    if not inner and _whole(parts) and None not in parts:
        array.store(source)
    elif not inner:
        source = body.trimmed(source, _dummy(array.spec)[parts].ndim)
        array.store(body.one("_subscript_assign", array.held(), body.cast(source, array.dtype), key=parts))
    elif len(parts) == 1 and parts[0].dtype == _BOOL:
        if body.spec(source).shape != () and math.prod(body.spec(source).shape) != 1:
            raise TraceError("x[mask] = value needs a single number as the value while it is followed. Use np.where")
        mask = body.entry(parts[0])
        if body.spec(mask).shape != array.shape:
            raise TraceError(f"x[mask] = value: the mask has shape {show(body.spec(mask).shape)}, expected "
                             f"{show(array.shape)}")
        number = body.one("_np_reshape", body.cast(source, array.dtype), newshape=())
        array.store(body.one("_npi_where", mask, number, array.entry))
    else:
        places, shape = _places(array, parts)
        wanted = Spec(shape, array.dtype)
        array.store(body.one("_scatter_set_nd", array.held(), body.fitted(source, wanted), places,
                             shape=array.shape))


def _gathered(array: Any, parts: Sequence[Any]) -> Entry:
    body = array.body
    if any(_followed(part) and part.dtype == _BOOL for part in parts):
        raise TraceError("x[mask] has a shape that depends on numbers, which a body that is followed has none of. Use "
                         "np.where")
    if len(parts) == 1:
        return body.one("take", array.entry, body.entry(parts[0]), axis=0, mode=body.out_of_range)
    places, _ = _places(array, parts)
    return body.one("gather_nd", array.entry, places)


def _places(array: Any, parts: Sequence[Any]) -> tuple[Entry, tuple[int, ...]]:
    """Indices of the first axes, one behind the other, and the shape of what they name."""
    body = array.body
    if any(isinstance(part, slice) or part is None or part is Ellipsis for part in parts):
        raise TraceError("a subscript that mixes slices with followed indices. Use np.take, or operators such as pick "
                         "and gather_nd")
    entries = [body.cast(body.entry(part if hasattr(part, "dtype") else np.asarray(part)), np.int64) for part in parts]
    shape = broadcast(*[body.spec(entry).shape for entry in entries])
    entries = [body.fitted(entry, Spec(shape, np.dtype(np.int64))) for entry in entries]
    return body.one("stack", *entries, axis=0, num_args=len(entries)), shape + array.shape[len(entries):]


# ---------------------------------------------------------------------------------------------- functions

#: NumPy's functions by name: each takes the body and NumPy's arguments.
FUNCTIONS: dict[str, Callable] = {}


def _rule(function: Callable) -> Callable:
    FUNCTIONS[function.__name__.strip("_")] = function
    return function


def function(body: Any, function: Any, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """A function of NumPy applied to values; ``function`` is it or its name."""
    name = function if isinstance(function, str) else function.__name__
    name = {"amax": "max", "amin": "min", "around": "round"}.get(name, name)
    rule = FUNCTIONS.get(name)
    if rule is None or getattr(function, "__module__", "numpy") not in ("numpy", None):
        full = f"{getattr(function, '__module__', 'np')}.{name}".replace("numpy", "np")
        raise TraceError(f"{full} has no operator. {did_you_mean(name, FUNCTIONS)} {body.instead}")
    keywords = {key: value for key, value in keywords.items() if value is not np._NoValue}
    out = keywords.pop("out", None)
    try:
        bound = inspect.signature(rule).bind(body, *args, **keywords)
    except TypeError as error:
        raise TraceError(f"np.{name}: {error}, while it is followed. {body.instead}") from None
    return _stored(rule(*bound.args, **bound.kwargs), out)


def _value(body: Any, name: str, *arrays: Any, **attrs: Any) -> Any:
    """What an operator makes of arrays."""
    return body.value(body.one(name, *[body.entry(_host(each)) for each in arrays], **attrs))


_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
               "logical_or": "any"}


def _axis(axis: Any) -> Any:
    return tuple(map(int, axis)) if isinstance(axis, (tuple, list)) else None if axis is None else int(axis)


def _adds_up(name: str, operator: str, whole: bool) -> None:
    """A sum, product or mean: ``whole`` says that small integers become large ones, and not float64."""

    def rule(body: Any, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        entry = body.entry(_host(a))
        own = body.spec(entry).dtype
        if dtype is None and own.kind in "iub" and whole:
            dtype = np.add.reduce(np.zeros(1, own)).dtype if own.kind != "b" else np.dtype(np.int_)
        if own.kind == "b" or (dtype is not None and own != dtype):
            entry = body.cast(entry, dtype or np.float64)
        return body.value(body.one(operator, entry, axis=_axis(axis), keepdims=bool(keepdims)))

    FUNCTIONS[name] = rule


_adds_up("sum", "_np_sum", True)
_adds_up("prod", "_np_prod", True)
_adds_up("mean", "_npi_mean", False)


def _spreads(name: str, operator: str) -> None:
    def rule(body: Any, a: Any, axis: Any = None, dtype: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
        entry = body.entry(_host(a))
        if dtype is not None or not is_floating(body.spec(entry).dtype):
            entry = body.cast(entry, dtype or np.float64)
        return body.value(body.one(operator, entry, axis=_axis(axis), ddof=int(ddof), keepdims=bool(keepdims)))

    FUNCTIONS[name] = rule


_spreads("var", "_npi_var")
_spreads("std", "_npi_std")


def _reduces(name: str, operator: str) -> None:
    def rule(body: Any, a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return _value(body, operator, a, axis=_axis(axis), keepdims=bool(keepdims))

    FUNCTIONS[name] = rule


for _name, _operator in {"max": "_np_max", "min": "_np_min", "argmax": "_npi_argmax", "argmin": "_npi_argmin",
                         "any": "_np_any", "all": "_np_all"}.items():
    _reduces(_name, _operator)


@_rule
def where(body: Any, condition: Any, x: Any, y: Any) -> Any:
    """Numbers of one or the other."""
    x, y = [_host(each) for each in (x, y)]
    weak = [each if type(each) in (int, float) else each.dtype if hasattr(each, "dtype") else np.asarray(each).dtype
            for each in (x, y)]
    dtype = np.result_type(*weak)
    entry = body.entry(_host(condition))
    held = body.truths.get(entry, entry)
    sides = [body.cast(body.entry(each), dtype) for each in (x, y)]
    return body.value(body.one("_npi_where", held if body.spec(held).dtype == dtype else entry, *sides))


@_rule
def clip(body: Any, a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """Numbers kept between bounds."""
    low, high = a_min if min is None else min, a_max if max is None else max
    found = _host(a)
    found = found if low is None else np.maximum(found, low)
    return found if high is None else np.minimum(found, high)


@_rule
def matmul(body: Any, a: Any, b: Any) -> Any:
    """Products of matrices."""
    entries = [body.entry(_host(each)) for each in (a, b)]
    dtype = np.result_type(*[body.spec(entry).dtype for entry in entries])
    return body.value(body.one("_npi_matmul", *[body.cast(entry, dtype) for entry in entries]))


@_rule
def dot(body: Any, a: Any, b: Any) -> Any:
    """The product of NumPy's ``dot``, of at most two axes each."""
    ranks = np.ndim(_host(a)) if not hasattr(a, "ndim") else a.ndim, b.ndim if hasattr(b, "ndim") else np.ndim(b)
    if 0 in ranks:
        return np.multiply(_host(a), _host(b))
    if max(ranks) > 2 and ranks[1] != 1 and ranks[1] != 2:
        raise TraceError("np.dot of more than two axes on the right. Use np.matmul")
    return matmul(body, a, b)


@_rule
def reshape(body: Any, a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None) -> Any:
    """A view in another shape."""
    if order != "C":
        raise TraceError(f"np.reshape with order={order!r}. Use transpose and order='C'")
    wanted = shape if newshape is None else newshape
    array = _array(body, a)
    target = np.reshape(_dummy(array.spec), wanted).shape
    return array.view(Spec(target, array.dtype), lambda entry: body.one("_np_reshape", entry, newshape=target))


@_rule
def ravel(body: Any, a: Any, order: str = "C") -> Any:
    """A view with one axis."""
    return reshape(body, a, -1, order)


@_rule
def transpose(body: Any, a: Any, axes: Any = None) -> Any:
    """A view with the axes in another order."""
    array = _array(body, a)
    order = tuple(reversed(range(array.ndim))) if axes is None else check_axes(tuple(map(int, axes)), array.ndim)
    if array.ndim < 2:
        return array
    if axes is not None:
        order = tuple([check_axis(int(axis), array.ndim) for axis in axes])
    shape = np.transpose(_dummy(array.spec), order).shape
    return array.view(Spec(shape, array.dtype), lambda entry: body.one("transpose", entry, axes=order))


def _moves(name: str) -> None:
    """A function that reorders axes: NumPy works out how on an array whose dimensions are the axes' own numbers."""
    own = getattr(np, name)

    def rule(body: Any, a: Any, *args: Any, **keywords: Any) -> Any:
        array = _array(body, a)
        found = own(np.broadcast_to(np.int8(0), range(1, array.ndim + 1)), *args, **keywords).shape
        return transpose(body, array, [axis - 1 for axis in found])

    FUNCTIONS[name] = rule


def _reshapes(name: str) -> None:
    """A function that takes away or adds axes of length one."""
    own = getattr(np, name)

    def rule(body: Any, a: Any, *args: Any, **keywords: Any) -> Any:
        array = _array(body, a)
        return reshape(body, array, own(_dummy(array.spec), *args, **keywords).shape)

    FUNCTIONS[name] = rule


for _name in ("swapaxes", "moveaxis", "rollaxis"):
    _moves(_name)
for _name in ("squeeze", "expand_dims", "atleast_1d", "atleast_2d"):
    _reshapes(_name)


def _array(body: Any, a: Any) -> Any:
    """A value, or what stands for an array."""
    found = _host(a)
    return found if _followed(found) else body.value(body.entry(found))


@_rule
def broadcast_to(body: Any, array: Any, shape: Any) -> Any:
    """Repeated along axes."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    found = _array(body, array)
    return body.value(body.fitted(found.entry, Spec(shape, found.dtype)))


def _joined(body: Any, arrays: Any) -> list[Entry]:
    entries = [body.entry(_host(each)) for each in arrays]
    dtype = np.result_type(*[body.spec(entry).dtype for entry in entries])
    return [body.cast(entry, dtype) for entry in entries]


@_rule
def concatenate(body: Any, arrays: Any, axis: Any = 0) -> Any:
    """Joined along an axis."""
    entries = _joined(body, arrays)
    if axis is None:
        entries, axis = [body.one("_np_reshape", entry, newshape=-1) for entry in entries], 0
    return body.value(body.one("Concat", *entries, dim=int(axis), num_args=len(entries)))


@_rule
def stack(body: Any, arrays: Any, axis: int = 0) -> Any:
    """Joined along a new axis."""
    entries = _joined(body, arrays)
    return body.value(body.one("stack", *entries, axis=int(axis), num_args=len(entries)))


@_rule
def take(body: Any, a: Any, indices: Any, axis: Any = None) -> Any:
    """Numbers picked along an axis."""
    array = _array(body, a) if axis is not None else ravel(body, a)
    places = body.entry(_host(indices) if hasattr(indices, "dtype") else np.asarray(indices))
    return body.value(body.one("take", array.entry, places, axis=int(axis or 0), mode=body.out_of_range))


def _like(name: str, number: float) -> None:
    def rule(body: Any, a: Any, dtype: Any = None, order: str = "K", subok: bool = True) -> Any:
        array = _host(a)
        return body.value(body.entry(np.full(array.shape, number, dtype or array.dtype)))

    FUNCTIONS[name] = rule


for _name, _filling in {"zeros_like": 0, "ones_like": 1, "empty_like": 0}.items():
    _like(_name, _filling)


@_rule
def full_like(body: Any, a: Any, fill_value: Any, dtype: Any = None) -> Any:
    """One number everywhere, in the shape of ``a``."""
    array = _array(body, a)
    found = body.fitted(body.cast(body.entry(_host(fill_value) if hasattr(fill_value, "dtype")
                                             else np.asarray(fill_value)), dtype or array.dtype),
                        Spec(array.shape, np.dtype(dtype or array.dtype)))
    return body.value(found)


@_rule
def copy(body: Any, a: Any, order: str = "K", subok: bool = False) -> Any:
    """The same numbers in memory of their own."""
    return _array(body, a).copy()


@_rule
def round(body: Any, a: Any, decimals: int = 0) -> Any:
    """The nearest number with so many decimals."""
    return _value(body, "_npi_around", a, decimals=int(decimals))


@_rule
def cumsum(body: Any, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Sums of the numbers so far."""
    return _value(body, "_np_cumsum", a, axis=_axis(axis), dtype=None if dtype is None else np.dtype(dtype))


@_rule
def repeat(body: Any, a: Any, repeats: int, axis: Any = None) -> Any:
    """Every number several times."""
    return _value(body, "repeat", a, repeats=int(repeats), axis=_axis(axis))


@_rule
def tile(body: Any, A: Any, reps: Any) -> Any:
    """The whole several times."""
    return _value(body, "tile", A, reps=(int(reps),) if isinstance(reps, int) else tuple(map(int, reps)))


@_rule
def flip(body: Any, m: Any, axis: Any = None) -> Any:
    """In the reverse order."""
    array = _array(body, m)
    return body.value(body.one("reverse", array.entry, axis=check_axes(_axis(axis), array.ndim)))


@_rule
def roll(body: Any, a: Any, shift: Any, axis: Any = None) -> Any:
    """Moved on along an axis."""
    return _value(body, "_np_roll", a, shift=_axis(shift), axis=_axis(axis))


def _triangle(name: str) -> None:
    def rule(body: Any, m: Any, k: int = 0) -> Any:
        return _value(body, f"_npi_{name}", m, k=int(k))

    FUNCTIONS[name] = rule


_triangle("tril")
_triangle("triu")


@_rule
def outer(body: Any, a: Any, b: Any) -> Any:
    """All products of two numbers."""
    return np.multiply(np.reshape(_array(body, a), (-1, 1)), np.reshape(_array(body, b), (1, -1)))


for _ask in ("shape", "ndim", "size"):
    FUNCTIONS[_ask] = lambda body, a, ask=_ask: getattr(_host(a), ask)
FUNCTIONS["result_type"] = lambda body, *given: np.result_type(*[getattr(_host(each), "dtype", each) for each in given])
