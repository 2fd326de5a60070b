"""NumPy's functions on traced values, which become operators with NumPy's rules for dtypes and shapes.

NumPy itself determines the dtypes of a ufunc; the tables below give its operator.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard, TypeVar

import numpy as np

from opreg.core.graph import Entry
from opreg.core.spec import Shape, Spec, broadcast, check_axes, check_axis, is_floating, show
from opreg.core.tracing import TraceError
from opreg.core.value import forms
from opreg.errors import did_you_mean
from opreg.typing import DTypeLike, ShapeLike

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .traced import BodyTracer, TracedArray

__all__ = ["INSTEAD", "ARITHMETIC", "UNARY", "FUNCTIONS", "ufunc", "function", "item", "put"]

F = TypeVar("F", bound=Callable[..., Any])
#: An axis, several, or all.
Axis: TypeAlias = int | Sequence[int] | None

#: Ufuncs of two operands, by the key of their operators in ``value.forms``.
ARITHMETIC = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "power": "pow", "maximum": "maximum",
    "minimum": "minimum", "hypot": "hypot", "equal": "eq", "not_equal": "ne", "greater": "gt", "greater_equal": "ge",
    "less": "lt", "less_equal": "le",
}
#: Ufuncs that are logical operators on booleans.
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


def _is_traced(value: object) -> TypeGuard[TracedArray]:
    return hasattr(value, "unwritten")


def _host(value: object) -> Any:
    """The NumPy-like array of a traced NDArray; other values unchanged."""
    return getattr(value, "_data", value) if hasattr(value, "_ctx") else value


# ------------------------------------------------------------------------------------------------- ufuncs


def ufunc(body: BodyTracer, ufunc: np.ufunc, method: str, inputs: Sequence[Any], keywords: dict[str, Any]
          ) -> TracedArray:
    """Trace a ufunc of traced values, arrays and scalars."""
    name = ufunc.__name__
    (out,) = keywords.pop("out", (None,))
    operands = [_host(operand) for operand in inputs]
    if method == "reduce" and name in _REDUCTIONS:
        return _store(function(body, _REDUCTIONS[name], operands, {"axis": 0, **keywords}), out)
    if method == "accumulate" and name == "add":
        return _store(function(body, "cumsum", operands, {"axis": 0, **keywords}), out)
    if method == "__call__" and name in FUNCTIONS and not keywords:
        return _store(function(body, name, operands, {}), out)
    if method != "__call__" or keywords:
        what = name if method == "__call__" else f"{name}.{method}"
        raise TraceError(f"np.{what}({', '.join(f'{key}=' for key in keywords)}) cannot be traced. {body.instead}")
    loop = ufunc.resolve_dtypes((*map(_kind, operands), *[None] * ufunc.nout))
    if len(operands) == 1 and name in UNARY:
        entry = body.single(UNARY[name], body.cast(body.entry(operands[0]), loop[0]))
    elif name in ("logical_not", "invert") and (name == "logical_not" or loop[0] == _BOOL):
        entry = _logical_not(body, body.entry(operands[0]))
    elif name == "sign":
        entry = _sign(body, body.cast(body.entry(operands[0]), loop[0]))
    elif name == "positive":
        entry = body.entry(operands[0])
    elif name.startswith("logical_") or (loop[0] == _BOOL and (name in _OF_TRUTH or name == "equal")):
        entry = _truth(body, name, operands)
    elif name in ARITHMETIC:
        beyond = loop[-1] == _BOOL and _trace_decided_comparison(body, ufunc, operands, loop)
        entry = beyond or _binary(body, ARITHMETIC[name], operands, loop)
    else:
        names = [*ARITHMETIC, *UNARY, *FUNCTIONS]
        title = f"np.{name}" if getattr(np, name, None) is ufunc else f"the ufunc {name}, which is not NumPy's,"
        raise TraceError(f"{title} of {loop[0]} has no operator. {did_you_mean(name, names)} {body.instead}")
    return _store(body.value(body.cast(entry, loop[-1])), out)


def _kind(operand: Any) -> type | np.dtype:
    """The dtype of an operand for NumPy's promotion rules, in which Python's scalars have only their class."""
    if type(operand) in (int, float):
        return type(operand)
    return operand.dtype if hasattr(operand, "dtype") else np.asarray(operand).dtype


def _store(value: TracedArray, out: object) -> TracedArray:
    """The value, written to ``out`` if it is given."""
    if out is None:
        return value
    if not _is_traced(out):
        raise TraceError("out= is an array in memory, which a traced body cannot change")
    out.store(value.entry)
    return out


def _binary(body: BodyTracer, key: str, operands: Sequence[Any], loop: Sequence[np.dtype]) -> Entry:
    """Trace arithmetic or a comparison, by the operator for a scalar if one operand is a scalar."""
    left, right = operands
    _, broadcasting, with_number, number_left = forms(key)
    logical = loop[-1] == _BOOL
    if not _is_traced(right) and np.ndim(right) == 0 and _exact(right):
        result = body.single(with_number, body.cast(body.entry(left), loop[0]), scalar=_number(right, loop[1]))
    elif not _is_traced(left) and np.ndim(left) == 0 and _exact(left):
        result = body.single(number_left, body.cast(body.entry(right), loop[1]), scalar=_number(left, loop[0]))
    else:
        result = body.single(broadcasting, *[body.cast(body.entry(operand), dtype)
                                          for operand, dtype in zip(operands, loop)])
    return _cast_to_truth(body, result) if logical else result


def _trace_decided_comparison(body: BodyTracer, ufunc: np.ufunc, operands: Sequence[Any], loop: Sequence[np.dtype]
                              ) -> Entry | None:
    """Trace a comparison with an integer that the other side's dtype does not hold: all elements give one result."""
    for place, number in enumerate(operands):
        if type(number) is int and not _holds(loop[place], number):
            truth = ufunc(*[operand if operand is number else 0 for operand in operands])
            filled = body.single("ones_like" if truth else "zeros_like", body.entry(operands[1 - place]))
            return body.cast(filled, _BOOL)
    return None


def _holds(dtype: np.dtype, number: int) -> bool:
    """Whether a dtype holds an integer; floating-point dtypes hold all, rounded."""
    return dtype.kind not in "iu" or int(np.iinfo(dtype).min) <= number <= int(np.iinfo(dtype).max)


def _exact(number: object) -> bool:
    """Whether a float, as attributes are, represents a number exactly."""
    return not isinstance(number, (int, np.integer)) or abs(int(number)) <= 2 ** 53


def _number(number: Any, dtype: np.dtype) -> float:
    value = dtype.type(number) if type(number) is int else np.asarray(number).astype(dtype)[()]
    return float(value) if is_floating(dtype) else int(value)


def _cast_to_truth(body: BodyTracer, entry: Entry) -> Entry:
    """Zeros and ones cast to booleans; floating-point ones are entered in ``truths``."""
    truth = body.cast(entry, _BOOL)
    if is_floating(_dtype(body, entry)):
        body.truths[truth] = entry
    return truth


def _logical_not(body: BodyTracer, entry: Entry) -> Entry:
    source = body.truths.get(entry, entry)
    if is_floating(_dtype(body, source)):
        return _cast_to_truth(body, body.single("logical_not", source))
    return body.single("_npi_logical_not", source)


def _truth(body: BodyTracer, name: str, operands: Sequence[object]) -> Entry:
    entries = [body.entry(operand) for operand in operands]
    if name == "equal":
        return _logical_not(body, _truth(body, "logical_xor", operands))
    sources = [body.truths.get(entry, entry) for entry in entries]
    dtypes = {_dtype(body, entry) for entry in sources}
    word = _OF_TRUTH[name]
    if len(dtypes) == 1 and is_floating(dtypes.pop()):
        return _cast_to_truth(body, body.single(f"broadcast_logical_{word}", *sources))
    return body.single(f"_npi_logical_{word}", *entries)


def _sign(body: BodyTracer, entry: Entry) -> Entry:
    """NumPy's sign, which is NaN for NaN; that of the operator is zero."""
    if not is_floating(_dtype(body, entry)):
        return body.single("sign", entry)
    return body.single("_npi_where", body.single("_npi_isnan", entry), entry, body.single("sign", entry))


def _dtype(body: BodyTracer, entry: Entry) -> np.dtype:
    return body.spec(entry).dtype  # type: ignore[return-value]  # known of all values


def _shape(body: BodyTracer, entry: Entry) -> Shape:
    return body.spec(entry).shape  # type: ignore[return-value]  # known of all values


# --------------------------------------------------------------------------------------------- subscripts


def _dummy(spec: Spec) -> np.ndarray:
    """An array of a shape without memory."""
    return np.broadcast_to(np.empty((), np.bool_), spec.shape or ())


def _parts(key: object) -> tuple[tuple[Any, ...], bool]:
    """The parts of a subscript, with masks converted to indices, and whether one part is a traced value."""
    parts: list[Any] = []
    for part in map(_host, key if isinstance(key, tuple) else (key,)):
        if _is_traced(part) or not isinstance(part, (np.ndarray, list)):
            parts.append(int(part) if isinstance(part, np.integer) else part)
        else:
            array = np.asarray(part)
            parts += array.nonzero() if array.dtype == _BOOL else [array.astype(np.int64) if array.size == 0 else array]
    return tuple(parts), any(map(_is_traced, parts))


def _basic(parts: Sequence[object]) -> bool:
    return all(part is None or part is Ellipsis or type(part) in (int, slice) for part in parts)


def item(array: TracedArray, key: object) -> TracedArray:
    """Trace ``array[key]``."""
    body = array.body
    parts, inner = _parts(key)
    if inner:
        return body.value(_gather(array, parts))
    spec = Spec(_dummy(array.spec)[parts].shape, array.dtype)
    if not _basic(parts):
        return body.value(body.single("_subscript", array.entry, key=parts))

    def read(entry: Entry) -> Entry:
        return body.single("_np_reshape", entry, newshape=spec.shape) if _selects_everything(parts) else body.single(
            "_subscript", entry, key=parts)

    def write(entry: Entry, value: Entry) -> Entry:
        return body.single("_subscript_assign", entry, value, key=parts)

    return array.view(spec, read, write, parts)


def _selects_everything(parts: Sequence[object]) -> bool:
    """Whether a subscript selects all elements, and at most adds axes."""
    return all(part is None or part is Ellipsis or (isinstance(part, slice) and part == slice(None)) for part in parts)


def put(array: TracedArray, key: object, value: Any) -> None:
    """Trace ``array[key] = value``."""
    body = array.body
    parts, inner = _parts(key)
    if array.holds(_host(value), parts):  # x[key] += 1 assigns the result to the array that already holds it
        return
    source = body.entry(_host(value) if hasattr(value, "dtype") else np.asarray(value, array.dtype))
    if not inner and _selects_everything(parts) and None not in parts:
        array.store(source)
    elif not inner:
        source = body.trim_axes(source, _dummy(array.spec)[parts].ndim)
        array.store(body.single("_subscript_assign", array.current(), body.cast(source, array.dtype), key=parts))
    elif len(parts) == 1 and parts[0].dtype == _BOOL:
        if math.prod(_shape(body, source)) != 1:
            raise TraceError("x[mask] = value needs a single number as the value while it is traced. Use np.where")
        mask = body.entry(parts[0])
        if _shape(body, mask) != array.shape:
            raise TraceError(f"x[mask] = value: the mask has shape {show(_shape(body, mask))}, expected "
                             f"{show(array.shape)}")
        number = body.single("_np_reshape", body.cast(source, array.dtype), newshape=())
        array.store(body.single("_npi_where", mask, number, array.entry))
    else:
        places, shape = _places(array, parts)
        spec_written = Spec(shape, array.dtype)
        array.store(body.single("_scatter_set_nd", array.current(), body.fit_to_spec(source, spec_written), places,
                             shape=array.shape))


def _gather(array: TracedArray, parts: Sequence[Any]) -> Entry:
    body = array.body
    if any(_is_traced(part) and part.dtype == _BOOL for part in parts):
        raise TraceError("x[mask] has a shape that depends on elements, and a traced body has none. Use np.where")
    if len(parts) == 1:
        return body.single("take", array.entry, body.entry(parts[0]), axis=0, mode=body.out_of_range)
    places, _ = _places(array, parts)
    return body.single("gather_nd", array.entry, places)


def _places(array: TracedArray, parts: Sequence[Any]) -> tuple[Entry, Shape]:
    """The stacked indices of the first axes, and the shape of the result."""
    body = array.body
    if any(isinstance(part, slice) or part is None or part is Ellipsis for part in parts):
        raise TraceError("a subscript that mixes slices with traced indices. Use np.take, or operators such as pick "
                         "and gather_nd")
    entries = [body.cast(body.entry(part if hasattr(part, "dtype") else np.asarray(part)), np.int64) for part in parts]
    shape = broadcast(*[_shape(body, entry) for entry in entries])
    entries = [body.fit_to_spec(entry, Spec(shape, np.dtype(np.int64))) for entry in entries]
    return body.single("stack", *entries, axis=0, num_args=len(entries)), shape + array.shape[len(entries):]


# ---------------------------------------------------------------------------------------------- functions

#: Rules of NumPy's functions, by name. Each takes the body and NumPy's arguments.
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def _rule(function: F) -> F:
    FUNCTIONS[function.__name__.strip("_")] = function
    return function


def function(body: BodyTracer, function: Callable[..., Any] | str, args: Sequence[Any],
             keywords: dict[str, Any]) -> TracedArray:
    """Trace a function of NumPy; ``function`` is the function or its name."""
    name = function if isinstance(function, str) else function.__name__
    name = {"amax": "max", "amin": "min", "around": "round"}.get(name, name)
    home = getattr(function, "__module__", None) or "numpy"
    name = f"{home.partition('.')[2]}.{name}".removeprefix(".")
    rule = FUNCTIONS.get(name)
    if rule is None or home.partition(".")[0] != "numpy":
        full = f"{home.partition('.')[0]}.{name}".replace("numpy", "np")
        raise TraceError(f"{full} has no operator. {did_you_mean(name, FUNCTIONS)} {body.instead}")
    keywords = {key: value for key, value in keywords.items() if value is not np._NoValue}
    out = keywords.pop("out", None)
    try:
        bound = inspect.signature(rule).bind(body, *args, **keywords)
    except TypeError as error:
        raise TraceError(f"np.{name}: {error}, while it is traced. {body.instead}") from None
    return _store(rule(*bound.args, **bound.kwargs), out)


def _value(body: BodyTracer, name: str, *arrays: object, **attrs: object) -> TracedArray:
    """Trace an operator with one output."""
    return body.value(body.single(name, *[body.entry(_host(array)) for array in arrays], **attrs))


_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
               "logical_or": "any"}


def _axis(axis: Axis) -> int | tuple[int, ...] | None:
    if axis is None:
        return None
    return tuple(map(int, axis)) if isinstance(axis, Sequence) else int(axis)


def _adds_up(name: str, operator: str, widens: bool) -> None:
    """Define a sum, product or mean. With ``widens``, small integers are summed as large ones, and otherwise as
    float64."""

    def rule(body: BodyTracer, a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, keepdims: bool = False
             ) -> TracedArray:
        entry = body.entry(_host(a))
        entry_dtype = _dtype(body, entry)
        if dtype is None and entry_dtype.kind in "iub":
            dtype = np.add.reduce(np.zeros(1, entry_dtype)).dtype if widens else np.dtype(np.float64)
        if dtype is not None and entry_dtype != dtype:
            entry = body.cast(entry, dtype)
        return body.value(body.single(operator, entry, axis=_axis(axis), keepdims=bool(keepdims)))

    FUNCTIONS[name] = rule


_adds_up("sum", "_np_sum", True)
_adds_up("prod", "_np_prod", True)
_adds_up("mean", "_npi_mean", False)


def _spreads(name: str, operator: str) -> None:
    def rule(body: BodyTracer, a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None, *, ddof: int = 0,
             keepdims: bool = False) -> TracedArray:
        entry = body.entry(_host(a))
        if dtype is not None or not is_floating(_dtype(body, entry)):
            entry = body.cast(entry, dtype or np.float64)
        return body.value(body.single(operator, entry, axis=_axis(axis), ddof=int(ddof), keepdims=bool(keepdims)))

    FUNCTIONS[name] = rule


_spreads("var", "_npi_var")
_spreads("std", "_npi_std")


def _reduces(name: str, operator: str) -> None:
    def rule(body: BodyTracer, a: ArrayLike, axis: Axis = None, *, keepdims: bool = False) -> TracedArray:
        return _value(body, operator, a, axis=_axis(axis), keepdims=bool(keepdims))

    FUNCTIONS[name] = rule


for _name, _operator in {"max": "_np_max", "min": "_np_min", "argmax": "_npi_argmax", "argmin": "_npi_argmin",
                         "any": "_np_any", "all": "_np_all"}.items():
    _reduces(_name, _operator)


@_rule
def where(body: BodyTracer, condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> TracedArray:
    """Elements of ``x`` where the condition holds, and else of ``y``."""
    sides = [_host(x), _host(y)]
    dtype = np.result_type(*[side if type(side) in (int, float) else _kind(side) for side in sides])
    entry = body.entry(_host(condition))
    source = body.truths.get(entry, entry)
    return body.value(body.single("_npi_where", source if body.spec(source).dtype == dtype else entry,
                               *[body.cast(body.entry(side), dtype) for side in sides]))


@_rule
def clip(body: BodyTracer, a: ArrayLike, a_min: ArrayLike | None = None, a_max: ArrayLike | None = None, *,
         min: ArrayLike | None = None, max: ArrayLike | None = None) -> TracedArray:
    """Elements limited to an interval."""
    low, high = a_min if min is None else min, a_max if max is None else max
    array = _host(a)
    kind = np.result_type(_kind(array))
    if low is not None and not (type(low) is int and kind.kind in "iu" and low < np.iinfo(kind).min):
        array = np.maximum(array, low)
    if high is not None and not (type(high) is int and kind.kind in "iu" and high > np.iinfo(kind).max):
        array = np.minimum(array, high)
    return array


@_rule
def matmul(body: BodyTracer, a: ArrayLike, b: ArrayLike) -> TracedArray:
    """Matrix products."""
    entries = [body.entry(_host(a)), body.entry(_host(b))]
    dtype = np.result_type(*[body.spec(entry).dtype for entry in entries])
    return body.value(body.single("_npi_matmul", *[body.cast(entry, dtype) for entry in entries]))


@_rule
def dot(body: BodyTracer, a: ArrayLike, b: ArrayLike) -> TracedArray:
    """Sums of products over the last axis of ``a`` and the last but one of ``b``; with a scalar, the product."""
    ranks = np.ndim(_host(a)) if not hasattr(a, "ndim") else a.ndim, b.ndim if hasattr(b, "ndim") else np.ndim(b)
    if 0 in ranks:
        return np.multiply(_host(a), _host(b))
    return body.value(body.single("_np_dot", *_common_dtype(body, (a, b))))


@_rule
def reshape(body: BodyTracer, a: ArrayLike, /, shape: ShapeLike | None = None, order: str = "C", *,
            newshape: ShapeLike | None = None) -> TracedArray:
    """A view in another shape."""
    if order != "C":
        raise TraceError(f"np.reshape with order={order!r}. Use transpose and order='C'")
    wanted = shape if newshape is None else newshape
    array = _array(body, a)
    target = np.reshape(_dummy(array.spec), wanted).shape  # type: ignore[arg-type]  # NumPy raises an error for None
    return array.view(Spec(target, array.dtype), lambda entry: body.single("_np_reshape", entry, newshape=target))


@_rule
def ravel(body: BodyTracer, a: ArrayLike, order: str = "C") -> TracedArray:
    """A view with one axis."""
    return reshape(body, a, -1, order)


@_rule
def transpose(body: BodyTracer, a: ArrayLike, axes: Sequence[int] | None = None) -> TracedArray:
    """A view with the axes in another order."""
    array = _array(body, a)
    order = tuple(reversed(range(array.ndim))) if axes is None else check_axes(tuple(map(int, axes)), array.ndim)
    if array.ndim < 2:
        return array
    if axes is not None:
        order = tuple([check_axis(int(axis), array.ndim) for axis in axes])
    shape = np.transpose(_dummy(array.spec), order).shape
    return array.view(Spec(shape, array.dtype), lambda entry: body.single("transpose", entry, axes=order))


def _moves(name: str) -> None:
    """Define a function that permutes axes. NumPy applies it to an array of shape (1, 2, …), whose new shape is the
    permutation."""
    own = getattr(np, name)

    def rule(body: BodyTracer, a: ArrayLike, *args: Any, **keywords: Any) -> TracedArray:
        array = _array(body, a)
        moved = own(np.broadcast_to(np.int8(0), range(1, array.ndim + 1)), *args, **keywords).shape
        return transpose(body, array, [axis - 1 for axis in moved])

    FUNCTIONS[name] = rule


def _reshapes(name: str) -> None:
    """Define a function that removes or adds axes of length one."""
    own = getattr(np, name)

    def rule(body: BodyTracer, a: ArrayLike, *args: Any, **keywords: Any) -> TracedArray:
        array = _array(body, a)
        return reshape(body, array, own(_dummy(array.spec), *args, **keywords).shape)

    FUNCTIONS[name] = rule


for _name in ("swapaxes", "moveaxis", "rollaxis"):
    _moves(_name)
for _name in ("squeeze", "expand_dims", "atleast_1d", "atleast_2d"):
    _reshapes(_name)


def _array(body: BodyTracer, a: ArrayLike) -> TracedArray:
    """The traced value of an argument."""
    array = _host(a)
    return array if _is_traced(array) else body.value(body.entry(array))


@_rule
def broadcast_to(body: BodyTracer, array: ArrayLike, shape: ShapeLike) -> TracedArray:
    """The array, broadcast to a shape."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    source = _array(body, array)
    return body.value(body.fit_to_spec(source.entry, Spec(shape, source.dtype)))


@_rule
def broadcast_arrays(body: BodyTracer, *args: ArrayLike, subok: bool = False) -> tuple[TracedArray, ...]:
    """The arrays, broadcast to one shape."""
    arrays = [_array(body, arg) for arg in args]
    shape = broadcast(*[array.shape for array in arrays])
    return tuple([broadcast_to(body, array, shape) for array in arrays])


@_rule
def meshgrid(body: BodyTracer, *xi: ArrayLike, copy: bool = True, sparse: bool = False,
             indexing: Literal["xy", "ij"] = "xy") -> tuple[TracedArray, ...]:
    """The coordinates of a grid."""
    shapes = [grid.shape for grid in np.meshgrid(*[np.zeros(2)] * len(xi), indexing=indexing, sparse=True)]
    vectors: list[Any] = [np.reshape(_array(body, each), [-1 if length == 2 else 1 for length in shape])
                          for each, shape in zip(xi, shapes)]
    return tuple(vectors) if sparse else broadcast_arrays(body, *vectors)


def _common_dtype(body: BodyTracer, arrays: Sequence[ArrayLike]) -> list[Entry]:
    entries = [body.entry(_host(array)) for array in arrays]
    dtype = np.result_type(*[body.spec(entry).dtype for entry in entries])
    return [body.cast(entry, dtype) for entry in entries]


@_rule
def concatenate(body: BodyTracer, arrays: Sequence[ArrayLike], axis: int | None = 0) -> TracedArray:
    """Arrays joined along an axis."""
    entries = _common_dtype(body, arrays)
    if axis is None:
        entries, axis = [body.single("_np_reshape", entry, newshape=-1) for entry in entries], 0
    return body.value(body.single("Concat", *entries, dim=int(axis), num_args=len(entries)))


@_rule
def stack(body: BodyTracer, arrays: Sequence[ArrayLike], axis: int = 0) -> TracedArray:
    """Arrays joined along a new axis."""
    entries = _common_dtype(body, arrays)
    return body.value(body.single("stack", *entries, axis=int(axis), num_args=len(entries)))


@_rule
def take(body: BodyTracer, a: ArrayLike, indices: ArrayLike, axis: int | None = None) -> TracedArray:
    """Elements at indices along an axis."""
    array = _array(body, a) if axis is not None else ravel(body, a)
    places = body.entry(_host(indices) if hasattr(indices, "dtype") else np.asarray(indices))
    return body.value(body.single("take", array.entry, places, axis=int(axis or 0), mode=body.out_of_range))


def _like(name: str, number: float) -> None:
    def rule(body: BodyTracer, a: ArrayLike, dtype: DTypeLike = None, order: str = "K", subok: bool = True
             ) -> TracedArray:
        array = _host(a)
        return body.value(body.entry(np.full(array.shape, number, dtype or array.dtype)))

    FUNCTIONS[name] = rule


for _name, _filling in {"zeros_like": 0, "ones_like": 1, "empty_like": 0}.items():
    _like(_name, _filling)


@_rule
def full_like(body: BodyTracer, a: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike = None) -> TracedArray:
    """An array of the shape of ``a`` whose elements are all ``fill_value``."""
    array = _array(body, a)
    number = body.entry(_host(fill_value) if hasattr(fill_value, "dtype") else np.asarray(fill_value))
    target = np.dtype(dtype or array.dtype)
    return body.value(body.fit_to_spec(body.cast(number, target), Spec(array.shape, target)))


@_rule
def copy(body: BodyTracer, a: ArrayLike, order: str = "K", subok: bool = False) -> TracedArray:
    """A copy."""
    return _array(body, a).copy()


@_rule
def round(body: BodyTracer, a: ArrayLike, decimals: int = 0) -> TracedArray:
    """Elements rounded to ``decimals`` decimals."""
    return _value(body, "_npi_around", a, decimals=int(decimals))


@_rule
def cumsum(body: BodyTracer, a: ArrayLike, axis: Axis = None, dtype: DTypeLike = None) -> TracedArray:
    """Cumulative sums."""
    return _value(body, "_np_cumsum", a, axis=_axis(axis), dtype=None if dtype is None else np.dtype(dtype))


@_rule
def repeat(body: BodyTracer, a: ArrayLike, repeats: int, axis: Axis = None) -> TracedArray:
    """Each element repeated."""
    return _value(body, "repeat", a, repeats=int(repeats), axis=_axis(axis))


@_rule
def tile(body: BodyTracer, A: ArrayLike, reps: ShapeLike) -> TracedArray:
    """The array repeated as a whole."""
    return _value(body, "tile", A, reps=(int(reps),) if isinstance(reps, int) else tuple(map(int, reps)))


@_rule
def flip(body: BodyTracer, m: ArrayLike, axis: Axis = None) -> TracedArray:
    """The array with elements in reverse order along axes."""
    array = _array(body, m)
    return body.value(body.single("reverse", array.entry, axis=check_axes(_axis(axis), array.ndim)))


@_rule
def roll(body: BodyTracer, a: ArrayLike, shift: ShapeLike, axis: Axis = None) -> TracedArray:
    """The array with elements shifted cyclically along axes."""
    return _value(body, "_np_roll", a, shift=_axis(shift), axis=_axis(axis))


def _triangle(name: str) -> None:
    def rule(body: BodyTracer, m: ArrayLike, k: int = 0) -> TracedArray:
        return _value(body, f"_npi_{name}", m, k=int(k))

    FUNCTIONS[name] = rule


_triangle("tril")
_triangle("triu")


@_rule
def outer(body: BodyTracer, a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """The outer product."""
    return np.multiply(np.reshape(_array(body, a), (-1, 1)), np.reshape(_array(body, b), (1, -1)))


for _ask in ("shape", "ndim", "size"):
    FUNCTIONS[_ask] = lambda body, a, ask=_ask: getattr(_host(a), ask)
FUNCTIONS["result_type"] = lambda body, *operands: np.result_type(
    *[getattr(_host(operand), "dtype", operand) for operand in operands])
