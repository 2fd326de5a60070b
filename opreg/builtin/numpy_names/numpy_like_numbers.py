"""Operators with NumPy's rules on several elements or on pairs of elements, under MXNet's names: weighted means,
differences, percentiles, counts, polynomials, angles and similar ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ...core.attrs import Count, Finite, Number
from ...core.declarations import ZERO
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import Shape, broadcast, check_axis, is_floating, limits, reduced_axes, show
from ...custom.composed import composed
from ...elementwise.loops import reduced
from ...errors import AttrError, DTypeError, ShapeError
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import declare_array_function
from ..samples import alike
from .numpy_like_shapes import flat_shape, reshape_value

__all__ = ["floating_of", "widest_float", "common_dtype"]

Axes = int | tuple[int, ...] | None
Dtypes = list[np.dtype | None]


# ---------------------------------------------------------------------------------------------- floating results


def widest_float(*dtypes: Any, integers: str = "float32") -> np.dtype:
    """The widest floating dtype, or the dtype ``integers`` without any.

    Examples
    --------
    >>> widest_float("float16", "int64"), widest_float("int8")
    (dtype('float16'), dtype('float32'))
    """
    floats = [np.dtype(dtype) for dtype in dtypes if is_floating(np.dtype(dtype))]
    return np.result_type(*floats) if floats else np.dtype(integers)


def common_dtype(*dtypes: Any) -> np.dtype:
    """The common dtype of arrays: the widest floating one, or else one that holds all values.

    Examples
    --------
    >>> common_dtype("float16", "int64"), common_dtype("int8", "uint8")
    (dtype('float16'), dtype('int16'))
    """
    floats = [np.dtype(dtype) for dtype in dtypes if is_floating(np.dtype(dtype))]
    return np.result_type(*(floats or map(np.dtype, dtypes)))


def floating_of(op: Op, count: int | None = None, integers: str = "float32") -> None:
    """Declare that the outputs are floating whatever the inputs are: in the dtype that an attribute ``dtype`` gives, or
    else in the widest floating dtype of the inputs, or of the first ``count``; in the dtype ``integers`` if none of
    these is floating."""

    @op.types
    def floating_types(ins: Dtypes, outs: Dtypes, *, dtype: np.dtype | None = None) -> tuple[Dtypes, Dtypes]:
        read = ins[:count]
        if dtype is None and any(each is None for each in read):
            return ins, outs
        return ins, [dtype or widest_float(*read, integers=integers)] * len(outs)


def _floats(*values: Any) -> list[Any]:
    """Values in the widest floating dtype of them."""
    dtype = widest_float(*[value.dtype for value in values])
    return [value if value.dtype == dtype else ops.Cast(value, dtype=dtype) for value in values]


# -------------------------------------------------------------------------------------------- pairs of elements


def _declare_promoting(name: str, operator: str, truth: str, doc: str) -> None:
    """Declare arithmetic of two arrays that may differ in dtype. The result has the widest floating dtype, or else the
    dtype that holds all values; for booleans the operator ``truth`` is used."""

    @composed(name=name, cheap=True)
    def op(lhs, rhs):
        """Arithmetic."""
        dtype = common_dtype(lhs.dtype, rhs.dtype)
        lhs, rhs = [value if value.dtype == dtype else ops.Cast(value, dtype=dtype) for value in (lhs, rhs)]
        return getattr(ops, truth if dtype == np.bool_ else operator)(lhs, rhs)

    op.doc = f"{doc} Shapes broadcast, and dtypes may differ."
    op.infer(broadcast)
    alike(op, broadcasts=True)

    @op.types
    def promoting_types(ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
        known_dtypes = [dtype for dtype in ins if dtype is not None]
        if not known_dtypes:
            return [outs[0]] * 2, outs
        return [dtype or known_dtypes[0] for dtype in ins], [common_dtype(*known_dtypes)]


_declare_promoting("_npi_add", "broadcast_add", "_npi_logical_or", "``lhs + rhs``.")
_declare_promoting("_npi_subtract", "broadcast_sub", "_npi_logical_xor", "``lhs - rhs``.")
_declare_promoting("_npi_multiply", "broadcast_mul", "_npi_logical_and", "``lhs * rhs``.")
_declare_promoting("_npi_power", "broadcast_power", "broadcast_power", "``lhs`` to the power ``rhs``.")
_declare_promoting("_npi_mod", "_numpy_mod", "_numpy_mod",
                   "The remainder of ``lhs / rhs`` with the sign of ``rhs``. Where ``rhs`` is 0 it is NaN, "
                   "among integers 0.")
_declare_promoting("_npi_hypot", "broadcast_hypot", "broadcast_hypot", "``sqrt(lhs ** 2 + rhs ** 2)``.")


def _declare_scalar_form(name: str, op: Op, swapped: bool) -> None:
    """Declare the form of a two-array function in which one array is a scalar."""

    @composed(name=name, cheap=True)
    def form(data, *, scalar: Number = 1.0, is_int: bool = True):
        """An array and a scalar."""
        (value,) = _floats(data)
        number = np.array(scalar, value.dtype)
        return op(number, value) if swapped else op(value, number)

    form.doc = f"``{op.name}`` with a number on the {'left' if swapped else 'right'}."
    alike(form)
    floating_of(form)


def _declare_pair(name: str, body: Callable[..., Any], doc: str) -> None:
    """Declare a floating function of two arrays, and its forms with a number."""
    op = composed(body, name=f"_npi_{name}", cheap=True)
    op.doc = f"{doc} Shapes broadcast."
    op.infer(broadcast)
    alike(op, broadcasts=True)
    floating_of(op)
    _declare_scalar_form(f"_npi_{name}_scalar", op, False)
    _declare_scalar_form(f"_npi_r{name}_scalar", op, True)


def _arctan2(x1, x2):
    """The angle of the point whose height and width they are."""
    return ops._arctan2(*_floats(x1, x2))


def _copysign(x1, x2):
    """The size of the first with the sign of the second."""
    return ops._copysign(*_floats(x1, x2))


def _ldexp(x1, x2):
    """The first times a power of two."""
    x1, x2 = _floats(x1, x2)
    return ops.broadcast_mul(x1, ops._rpower_scalar(x2, scalar=2.0))


@declare(name="_arctan2")
def arctan2(x1, x2):
    """The angle in radians, from -pi to pi, of the point with ordinate ``x1`` and abscissa ``x2``. Shapes broadcast."""


@arctan2.grad
def arctan2_grad(g, ins, outs, *, needs):
    x1, x2 = ins
    part = ops.broadcast_div(g, ops.broadcast_add(ops.square(x1), ops.square(x2)))
    return [ops._reduce_like(ops.broadcast_mul(part, x2), x1) if needs[0] else None,
            ops._reduce_like(ops.negative(ops.broadcast_mul(part, x1)), x2) if needs[1] else None]


@declare(name="_copysign")
def copysign(x1, x2):
    """The absolute value of ``x1`` with the sign of ``x2``. Shapes broadcast."""


@copysign.grad
def copysign_grad(g, ins, outs):
    x1, x2 = ins
    signs = ops._copysign(ops._npi_full_like(x1, fill_value=1.0), x1)
    return [ops._reduce_like(ops.broadcast_mul(ops._copysign(ops.ones_like(g), x2), ops.broadcast_mul(g, signs)), x1),
            None]


@declare(name="_npi_lcm", types="*T:whole->T")
def lcm(x1, x2):
    """The least common multiple of integers ``x1`` and ``x2``. Shapes broadcast."""


lcm.grad(ZERO)
for _op, _function in ((arctan2, "arctan2"), (copysign, "copysign"), (lcm, "lcm")):
    _op.infer(broadcast)
    alike(_op, broadcasts=True)
    # no body: the function is the array module's
    declare_array_function(_op, lambda xp, x1, x2, function=_function: getattr(xp, function)(x1, x2))

_declare_pair("arctan2", _arctan2,
              "The angle in radians, from -pi to pi, of the point with ordinate ``x1`` and abscissa "
              "``x2``.")
_declare_pair("copysign", _copysign, "The absolute value of ``x1`` with the sign of ``x2``.")
_declare_pair("ldexp", _ldexp, "``x1 * 2 ** x2``.")


@composed(name="_npi_lcm_scalar", types="T:whole->T", cheap=True)
def lcm_scalar(data, *, scalar: Number = 1.0, is_int: bool = True):
    """The least common multiple of integers ``data`` and ``scalar``."""
    return ops._npi_lcm(data, np.array(int(scalar), data.dtype))


alike(lcm_scalar)
declare_form(lcm_scalar, "(...) -> (...)")


@composed(name="_npi_where_scalar2", types="C->float32")
def where_scalar2(condition, *, x: Number = 0.0, y: Number = 0.0):
    """The number ``x`` where ``condition`` is nonzero, the number ``y`` elsewhere, as float32."""
    zero = ops.Cast(ops.zeros_like(condition), dtype="float32")
    return ops._npi_where_lscalar(condition, ops._plus_scalar(zero, scalar=y), scalar=x)


# ------------------------------------------------------------------------------------------- means with weights


def _places(shape: Shape, axis: Axes) -> tuple[int, ...]:
    return () if axis == () else reduced_axes(axis, False, len(shape))


def _weights_shape(a: Shape, weights: Shape, axis: Axes) -> Shape:
    """The shape of weights beside an array: that of the array, or the length of one axis, where it broadcasts."""
    if len(weights) == len(a):
        broadcast(weights, a)
        return weights
    places = _places(a, axis)
    if len(weights) != 1 or axis is None or len(places) != 1 or weights[0] != a[places[0]]:
        raise ShapeError(f"weights: shape {show(weights)} fits no axis of {show(a)}; give the axis that they belong to")
    return tuple([dim if place == places[0] else 1 for place, dim in enumerate(a)])


@composed(name="_npi_average", outputs=("output0", "output1"), visible=lambda *, returned: 1 + returned,
          arguments=lambda *, weighted: ["a", "weights"] if weighted else ["a"], variadic=None,
          input_names=("a", "weights"))
def average(a, *weights, axis: Axes = None, returned: bool = False, weighted: bool = True):
    """The mean along axes, with ``weighted`` by ``weights`` of the shape of ``a`` or of one axis; with ``returned``
    also the sums of the weights."""
    values = _floats(a, *weights)
    places = _places(a.shape, axis)
    if not weights:
        mean = ops._npi_mean(values[0], axis=places)
        count = math.prod([a.shape[place] for place in places])
        return mean, ops._npi_full_like(mean, fill_value=count)
    value, weight = values
    laid = _weights_shape(a.shape, weight.shape, axis)
    weight = weight if len(laid) == len(weight.shape) else ops._np_reshape(weight, newshape=laid)
    weight = ops._np_broadcast_to(weight, shape=a.shape)
    total = ops._np_sum(weight, axis=places)
    return ops.broadcast_div(ops._np_sum(ops.broadcast_mul(value, weight), axis=places), total), total


floating_of(average)


# -------------------------------------------------------------------------------------------------- differences


def _neighbours(a: Any, axis: int) -> Any:
    every = (slice(None),) * axis
    later, earlier = [ops._subscript(a, key=(*every, part)) for part in (slice(1, None), slice(None, -1))]
    return ops._npi_not_equal(later, earlier) if a.dtype == np.bool_ else ops.broadcast_sub(later, earlier)


@composed(name="_npi_diff")
def diff(a, *, n: Count = 1, axis: int = -1):
    """The ``n``-th differences of adjacent elements along an axis."""
    place = check_axis(axis, len(a.shape))
    for _ in range(n):
        a = _neighbours(a, place)
    return a


def _names_of_ends(*, to_begin_arr_given: bool, to_end_arr_given: bool) -> list[str]:
    return ["input1", *["input2"] * to_begin_arr_given, *[f"input{2 + to_begin_arr_given}"] * to_end_arr_given]


@composed(name="_npi_ediff1d", arguments=_names_of_ends, variadic=None, input_names=("input1", "input2", "input3"))
def ediff1d(input1, *ends, to_begin_arr_given: bool = False, to_end_arr_given: bool = False,
            to_begin_scalar: float | None = None, to_end_scalar: float | None = None):
    """Differences of adjacent elements of the flattened array, with arrays or numbers put before and after them."""
    scalars = list(ends)
    begin, end = [scalars.pop(0) if is_array else None for is_array in (to_begin_arr_given, to_end_arr_given)]
    parts = [_end(begin, to_begin_scalar, input1.dtype),
             _neighbours(reshape_value(input1, flat_shape(input1.shape, None)), 0),
             _end(end, to_end_scalar, input1.dtype)]
    parts = [part for part in parts if part is not None]
    return ops.Concat(*parts, num_args=len(parts), dim=0)


def _end(array: Any, number: float | None, dtype: Any) -> Any:
    """The elements at one end."""
    if array is not None:
        return reshape_value(array, flat_shape(array.shape, None))
    return None if number is None else np.array([number], dtype)


# ---------------------------------------------------------------------------------------------- replaced elements


@composed(name="_npi_nan_to_num")
def nan_to_num(data, *, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None):
    """NaN replaced by ``nan``, infinities by ``posinf`` and ``neginf``, by default the largest and smallest value of
    the dtype. ``copy`` has no effect."""
    dtype = np.dtype(data.dtype)
    if not is_floating(dtype):
        return ops._copy(data)
    least, most = limits(dtype)
    least, most = least if neginf is None else neginf, most if posinf is None else posinf
    data = ops._npi_where_lscalar(ops._npi_isnan(data), data, scalar=nan)
    data = ops._npi_where_lscalar(ops._npi_isposinf(data), data, scalar=most)
    return ops._npi_where_lscalar(ops._npi_isneginf(data), data, scalar=least)


alike(nan_to_num)


@composed(name="_npi_polyval")
def polyval(p, x):
    """The value at ``x`` of the polynomial with coefficients ``p``, the highest power first."""
    result = ops.zeros_like(x)
    for place in range(p.shape[0]):
        result = ops.broadcast_add(ops.broadcast_mul(result, x), ops._subscript(p, key=place))
    return result


declare_form(polyval, "(n) (...) -> (...)")


# --------------------------------------------------------------------------------------------------- statistics

Interpolation = Literal["linear", "lower", "higher", "midpoint", "nearest"]


@declare(name="_npi_percentile", arguments=lambda *, q_scalar: ["a", "q"] if q_scalar is None else ["a"],
         variadic=None, input_names=("a", "q"))
def percentile(a, *q, axis: Axes = None, interpolation: Interpolation = "linear", keepdims: bool = False,
               q_scalar: Finite | None = None):
    """The percentile ``q`` of ``a`` along axes; an array ``q`` gives new first axes."""


floating_of(percentile, 1)


@percentile.infer
def percentile_infer(a, *q, axis, keepdims):
    return (*(q[0] if q else ()), *reduced(a, _places(a, axis), keepdims, scalar=True))


def _percentile(xp: ArrayModule, a: Array, *q: Array, axis: Axes, interpolation: str, keepdims: bool,
                q_scalar: float | None) -> Array:
    at = q[0].astype(xp.float64).ravel() if q else q_scalar
    result = xp.percentile(a.astype(xp.float64), at, axis=axis, method=interpolation, keepdims=keepdims)
    if q:  # CuPy takes one axis of percentiles
        result = result.reshape((*q[0].shape, *result.shape[1:]))
    return result.astype(widest_float(a.dtype))


declare_array_function(percentile, _percentile)  # no body: it sorts
percentile.grad(ZERO)


@declare(name="_npi_bincount", variadic=None, input_names=("data", "weights"),
         arguments=lambda *, has_weights: ["data", "weights"] if has_weights else ["data"])
def bincount(data, *weights, minlength: Count = 0, has_weights: bool = False):
    """The number of occurrences of 0, 1, ... in ``data``, or the sums of their weights; at least ``minlength`` of them.

    Their number depends on values, as for ``boolean_mask``.
    """


@bincount.types
def bincount_types(ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    data, *weights = ins
    if data is not None and data.kind not in "iub":
        raise DTypeError(f"data: expected integers, got {data}")
    return ins, outs if any(each is None for each in weights) else [weights[0] if weights else np.dtype(np.int64)]


declare_form(bincount, "(n) (n) -> (numbers)")


@bincount.infer_from_data
def bincount_shape(xp, data, *weights, minlength):
    if not data.size:
        return (minlength,)
    if xp is np and data.min() < 0:  # CuPy's bincount checks this itself
        raise AttrError("data: expected no negative numbers")
    return (xp.maximum(data.max() + 1, minlength),)


def _count_values(xp: ArrayModule, data: Array, *weights: Array, minlength: int, has_weights: bool) -> Array:
    result = xp.bincount(data.astype(xp.int64), *[each.astype(xp.float64) for each in weights], minlength=minlength)
    return result.astype(weights[0].dtype if weights else xp.int64)


declare_array_function(bincount, _count_values)  # no body: its shape depends on values
bincount.grad(ZERO)
