"""NumPy's functions on traced values, each composed of other functions: sort, pad, split, einsum, linear algebra.

Each rule is NumPy's own definition over traced arrays, which act as NumPy's; importing this module enters them.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.core.rules import enter_under
from opreg.core.spec import check_axis
from opreg.core.tracing import TraceError

from .traced_numpy import FUNCTIONS, _array, _common_dtype, _dummy, _is_traced, _value

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .traced import BodyTracer, TracedArray


_named = enter_under(FUNCTIONS)


def _trace_argument(body: BodyTracer, a: ArrayLike) -> Any:
    """The traced value of an argument, which acts as a NumPy array."""
    return _array(body, a)


def _of_one_dtype(body: BodyTracer, name: str, *arrays: ArrayLike, **attrs: object) -> TracedArray:
    """Trace an operator on arrays of their common dtype."""
    return body.value(body.single(name, *_common_dtype(body, arrays), **attrs))


# ------------------------------------------------------------------------------------------------- order


@_named("sort")
def sort(body: BodyTracer, a: ArrayLike, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None
         ) -> TracedArray:
    """Elements in ascending order along an axis."""
    return _value(body, "sort", a, axis=axis)


@_named("argsort")
def argsort(body: BodyTracer, a: ArrayLike, axis: int | None = -1, kind: str | None = None, *,
            stable: bool | None = None) -> TracedArray:
    """The places of elements in ascending order along an axis."""
    return _value(body, "argsort", a, axis=axis, dtype=np.dtype(np.int64))


@_named("median")
def median(body: BodyTracer, a: ArrayLike, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """The middle element along an axis, or the mean of both."""
    array = _trace_argument(body, a)
    array, axis = (array.reshape(-1), 0) if axis is None else (array, check_axis(axis, array.ndim))
    count = array.shape[axis]
    part = [slice(None)] * axis + [slice((count - 1) // 2, count // 2 + 1)]
    return np.mean(sort(body, array, axis)[tuple(part)], axis=axis, keepdims=keepdims)


@_named("ptp")
def ptp(body: BodyTracer, a: ArrayLike, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The largest element less the smallest."""
    array = _trace_argument(body, a)
    return np.max(array, axis=axis, keepdims=keepdims) - np.min(array, axis=axis, keepdims=keepdims)


# -------------------------------------------------------------------------------------------------- parts


def _known(indices: Any) -> Any:
    """Indices or a number, on which shapes depend; an error if they are traced."""
    return operator.index(indices) if _is_traced(indices) else indices


@_named("array_split")
def array_split(body: BodyTracer, ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts along an axis."""
    array = _trace_argument(body, ary)
    axis = check_axis(axis, array.ndim)
    parts = np.array_split(np.arange(array.shape[axis]), _known(indices_or_sections))
    before = [slice(None)] * axis
    return [array[(*before, slice(int(part[0]), int(part[-1]) + 1) if part.size else slice(0))] for part in parts]


def _splits(name: str, axis: int | None = None) -> None:
    """Define the rule of a function that splits into equal parts, along a given axis or a fixed one."""
    function = getattr(np, name)

    def rule(body: BodyTracer, ary: ArrayLike, indices_or_sections: Any, *arguments: int, **word: int) -> list[Any]:
        array = _trace_argument(body, ary)
        # a call with a dummy array, for NumPy's errors
        function(_dummy(array.spec), _known(indices_or_sections), *arguments, **word)
        along = [*arguments, *word.values(), 0][0] if axis is None else axis if array.ndim > 1 or axis != 1 else 0
        return array_split(body, array, indices_or_sections, along)

    FUNCTIONS[name] = rule


for _name, _place in {"split": None, "vsplit": 0, "hsplit": 1, "dsplit": 2}.items():
    _splits(_name, _place)


@_named("diff")
def diff(body: BodyTracer, a: ArrayLike, n: int = 1, axis: int = -1) -> TracedArray:
    """Differences of neighbours along an axis, ``n`` times."""
    return _value(body, "_npi_diff", a, n=n, axis=axis)


@_named("delete")
def delete(body: BodyTracer, arr: ArrayLike, obj: Any, axis: int | None = None) -> Any:
    """The array without the elements at some indices along an axis."""
    array = _trace_argument(body, arr)
    array, axis = (array.reshape(-1), 0) if axis is None else (array, check_axis(axis, array.ndim))
    return np.take(array, np.delete(np.arange(array.shape[axis]), _known(obj)), axis=axis)


@_named("pad")
def pad(body: BodyTracer, array: ArrayLike, pad_width: Any, mode: Any = "constant", *, constant_values: float = 0,
        reflect_type: str = "even") -> Any:
    """The array with borders: of a number, or of its own elements."""
    value = _trace_argument(body, array)
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap") or reflect_type != "even" or np.ndim(
            constant_values):
        raise TraceError(f"np.pad with mode={mode!r} and borders of several kinds. {body.instead}")
    for axis, widths in enumerate(np.broadcast_to(pad_width, (value.ndim, 2)).tolist()):
        if any(widths) and mode != "constant":
            value = np.take(value, np.pad(np.arange(value.shape[axis]), widths, mode), axis=axis)
        elif any(widths):
            shapes = [(*value.shape[:axis], width, *value.shape[axis + 1:]) for width in widths]
            before, behind = [np.full(shape, constant_values, value.dtype) for shape in shapes]
            value = np.concatenate([before, value, behind], axis=axis)
    return value


# -------------------------------------------------------------------------------------------------- joined


def _joins(name: str) -> None:
    def rule(body: BodyTracer, tup: Sequence[ArrayLike]) -> TracedArray:
        return _of_one_dtype(body, f"_npi_{name}", *tup, num_args=len(tup))

    FUNCTIONS[name] = rule


for _name in ("hstack", "vstack", "dstack", "column_stack"):
    _joins(_name)


@_named("append")
def append(body: BodyTracer, arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Any:
    """Two arrays concatenated along an axis; without one they are flattened first."""
    return np.concatenate([_trace_argument(body, arr), _trace_argument(body, values)], axis=axis)


# ------------------------------------------------------------------------------------------------- numbers


@_named("logaddexp")
def logaddexp(body: BodyTracer, x1: ArrayLike, x2: ArrayLike) -> Any:
    """The logarithm of a sum of exponentials."""
    pair: list[Any] = [x if type(x) in (int, float) else _trace_argument(body, x) for x in (x1, x2)]
    first, second = pair
    apart = np.where(first == second, 0, first - second)  # 0 also for two equal infinities, whose difference is NaN
    return np.maximum(first, second) + np.log1p(np.exp(-np.abs(apart)))


@_named("nan_to_num")
def nan_to_num(body: BodyTracer, x: ArrayLike, copy: bool = True, nan: float = 0.0, posinf: float | None = None,
               neginf: float | None = None) -> TracedArray:
    """The array with finite values in place of NaN and infinities."""
    return _value(body, "_npi_nan_to_num", x, nan=nan, posinf=posinf, neginf=neginf)


@_named("nansum")
def nansum(body: BodyTracer, a: ArrayLike, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The sum of the elements that are not NaN."""
    array = _trace_argument(body, a)
    return np.sum(np.where(np.isnan(array), np.asarray(0, array.dtype), array), axis=axis, keepdims=keepdims)


@_named("count_nonzero")
def count_nonzero(body: BodyTracer, a: ArrayLike, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The number of elements that are not zero."""
    return np.sum(_trace_argument(body, a) != 0, axis=axis, keepdims=keepdims)


@_named("average")
def average(body: BodyTracer, a: ArrayLike, axis: int | None = None, weights: ArrayLike | None = None) -> Any:
    """The mean, with weights."""
    array = _trace_argument(body, a)
    if weights is None:
        return np.mean(array, axis=axis)
    weight = _trace_argument(body, weights)
    if weight.ndim < array.ndim and axis is not None:
        weight = np.reshape(weight, [-1 if i == check_axis(axis, array.ndim) else 1 for i in range(array.ndim)])
    return np.sum(array * weight, axis=axis) / np.sum(np.broadcast_to(weight, array.shape), axis=axis)


@_named("select")
def select(body: BodyTracer, condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: Any = 0) -> Any:
    """At each place, the choice of the first condition that holds."""
    result = default
    for condition, choice in zip(condlist[::-1], choicelist[::-1]):
        result = np.where(condition, choice, result)
    return result


# ------------------------------------------------------------------------------------------------ matrices


@_named("diagonal")
def diagonal(body: BodyTracer, a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> TracedArray:
    """Elements on the diagonal of two axes."""
    return _value(body, "_np_diagonal", a, offset=offset, axis1=axis1, axis2=axis2)


@_named("diag")
def diag(body: BodyTracer, v: ArrayLike, k: int = 0) -> TracedArray:
    """The diagonal of a matrix, or a matrix of this diagonal."""
    return _value(body, "_np_diag", v, k=k)


@_named("trace")
def trace(body: BodyTracer, a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The sum of the diagonal."""
    return np.sum(diagonal(body, a, offset, axis1, axis2), axis=-1)


@_named("tensordot")
def tensordot(body: BodyTracer, a: ArrayLike, b: ArrayLike, axes: Any = 2) -> TracedArray:
    """Sums of products over axes of both arrays."""
    if isinstance(axes, int):
        return _of_one_dtype(body, "_npi_tensordot_int_axes", a, b, axes=axes)
    first, second = [(axis,) if isinstance(axis, int) else tuple(axis) for axis in axes]
    return _of_one_dtype(body, "_npi_tensordot", a, b, a_axes_summed=first, b_axes_summed=second)


@_named("inner")
def inner(body: BodyTracer, a: ArrayLike, b: ArrayLike) -> Any:
    """Sums of products over the last axes."""
    left, right = _trace_argument(body, a), _trace_argument(body, b)
    return tensordot(body, left, right, (-1, -1)) if left.ndim and right.ndim else left * right


@_named("vdot")
def vdot(body: BodyTracer, a: ArrayLike, b: ArrayLike) -> Any:
    """The sum of products of all elements."""
    return np.sum(np.ravel(_trace_argument(body, a)) * np.ravel(_trace_argument(body, b)))


@_named("einsum")
def einsum(body: BodyTracer, subscripts: str, *operands: ArrayLike, optimize: Any = False) -> TracedArray:
    """Sums of products over axes with the same letter."""
    return _of_one_dtype(body, "_npi_einsum", *operands, subscripts=subscripts, num_args=len(operands))


# ------------------------------------------------------------------------------------------ linear algebra


@_named("linalg.inv")
def inv(body: BodyTracer, a: ArrayLike) -> TracedArray:
    """Inverses of matrices."""
    return _value(body, "_npi_inv", a)


@_named("linalg.det")
def det(body: BodyTracer, a: ArrayLike) -> Any:
    """Determinants of matrices."""
    array = _trace_argument(body, a)
    return _value(body, "_npi_det", array).reshape(array.shape[:-2])


@_named("linalg.cholesky")
def cholesky(body: BodyTracer, a: ArrayLike, /, *, upper: bool = False) -> Any:
    """The factors of matrices whose product with their transposes these are."""
    lower = _value(body, "linalg_potrf", a)
    return np.swapaxes(lower, -1, -2) if upper else lower


@_named("linalg.norm")
def norm(body: BodyTracer, x: ArrayLike, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Norms of vectors, and the root of the sum of squares of matrices."""
    array = _trace_argument(body, x)
    vector = isinstance(axis, int) or (axis is None and (ord is None or array.ndim == 1))
    if ord is None or (ord == "fro" and not vector) or (ord == 2 and vector):
        return np.sqrt(np.sum(np.square(array), axis=axis, keepdims=keepdims))
    extreme = {1: np.sum, np.inf: np.max, -np.inf: np.min}.get(ord) if vector else None
    if extreme is None:
        raise TraceError(f"np.linalg.norm with ord={ord!r} and axis={axis!r}. {body.instead}")
    return extreme(np.abs(array), axis=axis, keepdims=keepdims)  # type: ignore[operator]  # of NumPy
