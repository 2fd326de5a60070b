"""Arrays made from attributes: filled with a value, ranges, or indices.

A length given as 0 is unknown: in a graph it is inferred, such as the batch of an initial state.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated

import numpy as np

from ...core.attrs import Count, Few, Finite, Limit, Number, Positive
from ...core.declarations import ZERO
from ...core.op import Op
from ...core.registry import declare
from ...core.rules import Rule
from ...core.spec import ANY, Shape, as_dtype, check_axis, is_narrow, parse_shape
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..forms import declare_form
from .joining import MANY
from .shape import constant, copy_view

__all__ = ["Dims", "array_shape", "declare_fill", "inferred_shape"]

_FLOAT32 = np.dtype("float32")


#: A length of a new array.
Dim = Annotated[int, Limit("of at least 0, or -1 where a graph finds it", lambda number: number >= -1)]
Dims = Dim | tuple[Dim, ...]


def inferred_shape(shape: int | Shape | None) -> Shape | None:
    """A shape attribute for shape inference."""
    return parse_shape((shape,) if isinstance(shape, int) else shape)


def array_shape(shape: int | Shape | None) -> Shape:
    """A shape attribute for an array whose shape no graph infers."""
    dims = () if shape is None else (shape,) if isinstance(shape, int) else shape
    if -1 in dims:
        raise AttrError(f"shape={shape}: -1 is inferred only in graphs")
    return dims


def declare_fill(op: Op, number: float | None = None) -> None:
    """Declare the rules of an operator that makes an array of one value: ``number``, or its attribute ``value`` or
    ``fill_value``. The array has the shape of the first input, or that of the attribute ``shape``."""
    if not op.signature.input_names:
        @op.infer
        def filling_infer(*, shape):
            return inferred_shape(shape)

    @op.kernel()  # no body: it has no input
    def filling_xp(xp, *like, shape=None, dtype=None, value=number, fill_value=number, out=None):
        if like:
            shape, dtype = like[0].shape, dtype or like[0].dtype
        elif isinstance(dtype, int):
            dtype = as_dtype(max(dtype, 0))
        if number is None:
            value = constant(xp, value if fill_value is None else fill_value, dtype)
        if out is None:
            return xp.full(shape if like else array_shape(shape), value, dtype=dtype)
        out[...] = value
        return out

    op.grad(ZERO)


@declare(name="_zeros", aliases=("_npi_zeros",), types="->@dtype")
def zeros(*, shape: Dims = (), ctx: str = "", dtype: np.dtype = _FLOAT32):
    """Zeros."""


@declare(name="_ones", aliases=("_npi_ones",), types="->@dtype")
def ones(*, shape: Dims = (), ctx: str = "", dtype: np.dtype = _FLOAT32):
    """Ones."""


@declare(name="_full", aliases=("_npi_full",), types="->@dtype")
def full(*, shape: Dims | None = None, ctx: str = "", dtype: np.dtype = _FLOAT32,
         value: Number):
    """An array filled with one value, cast to ``dtype`` by truncation."""


@declare(name="_zeros_without_dtype")
def zeros_without_dtype(*, shape: Dims | None = None, ctx: str = "", dtype: int = -1):
    """Zeros whose dtype, given as -1, is inferred."""


@zeros_without_dtype.types
def zeros_without_dtype_types(ins, outs, *, dtype):
    return ins, outs if dtype < 0 else [as_dtype(dtype)]


declare_fill(zeros, 0)
declare_fill(ones, 1)
declare_fill(full)
declare_fill(zeros_without_dtype, 0)


# ----------------------------------------------------------------------------------------------- ranges


def _range_length(start: float, stop: float | None, step: float, repeat: int) -> int:
    """The number of elements that ``_arange`` makes."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise AttrError("step=0: expected a step other than zero")
    if stop == start or (stop > start) != (step > 0):
        raise AttrError(f"there are no values from {start} to {stop} in steps of {step}")
    integers = [int(number) for number in (start, stop, step)]
    if integers == [start, stop, step]:  # a difference of large floats is rounded
        return -((integers[0] - integers[1]) // integers[2]) * repeat
    return math.ceil((stop - start) / step) * repeat


def _steps(xp: ArrayModule, count: int, start: float, step: float, repeat: int, dtype: np.dtype) -> Array:
    """``start``, ``start + step`` …, each repeated; integers are computed with an integer step."""
    places = xp.arange(count) // repeat
    if dtype.kind in "iu":
        return places.astype(dtype) * constant(xp, step, dtype) + constant(xp, start, dtype)
    exact = _FLOAT32 if is_narrow(dtype) else dtype  # MXNet computes in the dtype itself
    return (places.astype(exact) * step + start).astype(dtype)


def _declare_creation(op: Op, numbers: Callable[..., Array]) -> None:
    """Declare that an operator makes values of attributes, and of the shape of an input; no gradient passes.

    ``numbers(xp, shape, *like, **attrs)`` makes them; ``shape`` is that of the array to write to, if there is one.
    """
    rule = Rule(numbers)

    @op.in_parts  # no body: it reads no elements, and operators in a body have inputs
    def counting_in_parts(xp, *like, **attrs):
        chosen = rule.select(attrs)
        return lambda *like, out=None: numbers(xp, None, *like, **chosen) if out is None else copy_view(
            xp, numbers(xp, out.shape, *like, **chosen), out)

    op.grad(ZERO)


def _range(xp: ArrayModule, shape: Shape | None, *, start: float, stop: float | None, step: float, repeat: int,
           infer_range: bool, dtype: np.dtype) -> Array:
    """The values of ``_arange``."""
    inferred = infer_range and stop is None
    if shape is None and inferred:
        raise ShapeError("infer_range: the number of values cannot be inferred from this graph")
    count = _range_length(start, stop, step, repeat) if shape is None else shape[0]
    return _steps(xp, count, start if stop is not None or inferred else 0, step, repeat, dtype)


def _range_like(xp: ArrayModule, shape: Shape | None, data: Array, *, start: float, step: float, repeat: int,
                axis: int | None) -> Array:
    """The values of ``_contrib_arange_like``."""
    shape = data.shape if axis is None else (data.shape[axis],)
    return _steps(xp, math.prod(shape), start, step, repeat, data.dtype).reshape(shape)


@declare(name="_arange", types="->@dtype")
def arange(*, start: Finite, stop: Finite | None = None, step: Finite = 1.0, repeat: Positive = 1,
           infer_range: bool = False, ctx: str = "", dtype: np.dtype = _FLOAT32):
    """Values from ``start`` to before ``stop``, or from 0 to before ``start``, each ``repeat`` times.

    With ``infer_range`` and no ``stop``, the number of values is inferred from the rest of the graph.
    """


@arange.infer
def arange_infer(*, start, stop, step, repeat, infer_range):
    if infer_range and stop is None:
        return (ANY,)
    return (_range_length(start, stop, step, repeat),)


_declare_creation(arange, _range)


@declare(name="_linspace", aliases=("_npi_linspace",), types="->@dtype")
def linspace(*, start: Finite, stop: Finite, num: Count, endpoint: bool = True, ctx: str = "",
             dtype: np.dtype = _FLOAT32):
    """``num`` equally spaced values from ``start`` to ``stop``, including ``stop`` if ``endpoint``."""


declare_form(linspace, "-> (@num)")


_declare_creation(linspace, lambda xp, shape, *, start, stop, num, endpoint, dtype: xp.linspace(
    start, stop, num, endpoint=endpoint).astype(dtype))


@declare(name="_eye", types="->@dtype")
def eye(*, N: Count, M: Count = 0, k: int = 0, ctx: str = "", dtype: np.dtype = _FLOAT32):
    """A matrix with ones on the ``k``-th diagonal, of ``N`` rows and ``M`` columns (``N`` by default)."""


@eye.infer
def eye_infer(*, N, M):
    return (N, M or N)


_declare_creation(eye, lambda xp, shape, *, N, M, k, dtype: xp.eye(N, M or N, k=k, dtype=dtype))


@declare(variadic="num_arrays", types="*?->", mutates=range(MANY), outputs=())
def reset_arrays(*data, num_arrays: Few):
    """Set all inputs to zero in place; there is no output."""


declare_form(reset_arrays, "->")


@reset_arrays.kernel()  # no body: it writes to its inputs
def reset_arrays_xp(xp, *data):
    for array in data:
        array[...] = 0
    return ()


# --------------------------------------------------------------------------------- ranges along an axis


@declare(name="_contrib_arange_like", aliases=("_npx_arange_like",), unread=(0,))
def arange_like(data, *, start: Finite = 0.0, step: Finite = 1.0, repeat: Positive = 1, ctx: str = "",
                axis: int | None = None):
    """Values ``start``, ``start + step``, ... in the shape of ``data``, or in a vector as long as its ``axis``."""


@arange_like.infer
def arange_like_infer(data, *, axis):
    return data if axis is None else (data[check_axis(axis, len(data))],)


_declare_creation(arange_like, _range_like)


@declare(name="_contrib_index_array", types="T->int64", unread=(0,))
def index_array(data, *, axes: int | tuple[int, ...] | None = None):
    """The index of each element of ``data`` along all axes, or along ``axes``: int64, in a new last axis."""


def _normalized_axes(rank: int, axes: int | Shape | None) -> list[int]:
    if axes is None:
        return list(range(rank))
    return [check_axis(axis, rank, "axes") for axis in ((axes,) if isinstance(axes, int) else axes)]


@index_array.infer
def index_array_infer(data, *, axes):
    return (*data, len(_normalized_axes(len(data), axes)))


def _indices(xp: ArrayModule, shape: Shape | None, data: Array, *, axes: int | Shape | None) -> Array:
    """The values of ``_contrib_index_array``. A body takes half as long again, and nine times for a million
    elements."""
    places = _normalized_axes(data.ndim, axes)
    result = xp.empty((*data.shape, len(places)), dtype=xp.int64)
    for place, axis in enumerate(places):
        result[..., place] = xp.arange(data.shape[axis]).reshape([-1] + [1] * (data.ndim - axis - 1))
    return result


_declare_creation(index_array, _indices)


# ----------------------------------------------------------------------------------- shapes as numbers


@declare(types="T->int64", unread=(0,), aliases=("_npx_shape_array",), cheap=True)
def shape_array(data):
    """The shape of ``data``, as int64."""


shape_array.infer(lambda data: (len(data),))
_declare_creation(shape_array, lambda xp, shape, data: xp.asarray(data.shape, dtype=xp.int64))


@declare(types="T->int64", unread=(0,), cheap=True)
def size_array(data):
    """Number of elements of ``data``, as an int64 scalar."""


declare_form(size_array, "-> (1)")
_declare_creation(size_array, lambda xp, shape, data: xp.asarray([data.size], dtype=xp.int64))
