"""Layers whose data and weights are whole numbers of eight bits, with the ends of their ranges beside them.

Sums are exact. A layer with weights gives them in 32 bits, and how far these reach.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ...core.attrs import Few
from ...core.declarations import ZERO
from ...core.op import Op
from ...core.registry import REGISTERED, declare, register
from ...core.rules import Attrs
from ...core.spec import as_dtype, unify
from ...errors import AttrError
from ...typing import Array, ArrayModule
from ..elementwise.activation import activation
from ..layers.batch_norm import batch_norm
from ..layers.convolution import convolution
from ..layers.pooling import pooling
from ..lookup.indexing import embedding
from ..matrices.dense import fully_connected, with_bias
from ..shapes.shape import flatten
from .ranges import (
    EDGES,
    FLOAT,
    OUTPUTS,
    bytewise,
    calibrated,
    distance,
    exact,
    of_products,
    of_whole,
    per_unit,
    run,
    whole,
    with_ranges,
)

__all__ = ["sums"]

_INT8, _INT32 = as_dtype("int8"), as_dtype("int32")


def sums(op: Op, xp: ArrayModule, data: Array, weight: Array, attrs: Attrs) -> Array:
    """The sums of a layer without its bias, whole numbers in a floating dtype.

    Parameters
    ----------
    op : Op
        ``Convolution`` or ``FullyConnected``.
    data, weight : array
        Whole numbers of eight bits, in any dtype.
    attrs : mapping
        The layer's.
    """
    kind = exact(math.prod(weight.shape[1:]))
    return run(op, xp, [data.astype(kind), weight.astype(kind)], {**attrs, "no_bias": True})


# -------------------------------------------------------------------------------- layers with weights


def _with_ends(*, no_bias: bool) -> tuple[str, ...]:
    names = with_bias(no_bias=no_bias)
    return (*names, *[f"{end}_{name}" for name in names for end in ("min", "max")])


def _weighted(name: str, op: Op, doc: str) -> Op:
    """Declare the quantised form of a layer with weights and a bias."""
    made = register(Op(name, op.signature.schema, _with_ends, outputs=OUTPUTS, doc=doc,
                       input_names=_with_ends(no_bias=False)))

    @made.shapes
    def shapes(ins, outs, **attrs):
        count = 2 if attrs["no_bias"] else 3
        if (attrs.get("layout") or "NC")[:2] != "NC":
            raise AttrError(f"layout={attrs['layout']!r}: quantised numbers have their channels on axis 1")
        filled, places = op.infer_shapes(ins[:count], outs[:1], attrs)
        return with_ranges(made.signature.arguments(attrs), [*filled, *ins[count:]], [*places, *outs[1:]], count)

    @made.types
    def types(ins, outs, *, no_bias):
        count = 1 if no_bias else 2
        return [*bytewise(ins[:1]), *[_INT8] * count, *[FLOAT] * (len(ins) - 1 - count)], [_INT32, FLOAT, FLOAT]

    @made.kernel()
    def kernel(xp, data, weight, *rest, **attrs):
        bias, ends = (None, rest) if attrs["no_bias"] else (rest[0], rest[1:])
        reach, weight_reach = distance(xp, *ends[:2]), distance(xp, *ends[2:4])
        y = sums(op, xp, data, weight, attrs)
        if bias is not None:
            steps = per_unit(EDGES[data.dtype.name], reach) * per_unit(EDGES["int8"], weight_reach)
            shift = xp.trunc(of_whole(bias, distance(xp, *ends[4:])) * steps)
            y = y + (shift.reshape(-1, *[1] * (y.ndim - 2)) if op is convolution else shift)
        made_reach = of_products(xp, data, reach, weight_reach)
        return y.astype("int32"), -made_reach, made_reach

    made.grad(ZERO)
    return made


quantized_conv = _weighted("_contrib_quantized_conv", convolution, """
``Convolution`` of whole numbers: its sums of 32 bits, and how far they reach.

The bias, of eight bits with a range of its own, counts in steps of the sums.""".strip())

quantized_fully_connected = _weighted("_contrib_quantized_fully_connected", fully_connected, """
``FullyConnected`` of whole numbers: its sums of 32 bits, and how far they reach.

The bias, of eight bits with a range of its own, counts in steps of the sums.""".strip())


# ----------------------------------------------------------------------- layers that keep the range


def _keeping(name: str, op: Op, doc: str, compute: Callable[..., Array], names: tuple[str, ...] = ("data",),
             types: str = "T:byte,float32,float32->T,float32,float32") -> None:
    """Declare the quantised form of a layer whose results are in the range of the last of its inputs ``names``:
    ``compute(xp, *inputs, **attrs)`` makes them."""
    made = register(Op(name, op.signature.schema, (*names, f"min_{names[-1]}", f"max_{names[-1]}"), outputs=OUTPUTS,
                       doc=doc, types=types))
    count = len(names)

    @made.shapes
    def shapes(ins, outs, **attrs):
        filled, places = op.infer_shapes(ins[:count], outs[:1], attrs)
        return with_ranges(made.signature.arguments(attrs), [*filled, *ins[count:]], [*places, *outs[1:]], count)

    @made.kernel()
    def keeping_xp(xp, *arrays, **attrs):
        return compute(xp, *arrays[:count], **attrs), *arrays[count:]

    made.grad(ZERO)


def _pooled(xp: ArrayModule, data: Array, *, pool_type: str, **attrs: Any) -> Array:
    if pool_type not in ("max", "avg"):
        raise AttrError(f"pool_type {pool_type!r}: quantised numbers have maxima and averages")
    y = run(pooling, xp, [data.astype("float32")], {**attrs, "pool_type": pool_type})
    return whole(xp, y, data.dtype.name)


def _active(xp: ArrayModule, data: Array, *, act_type: str) -> Array:
    if act_type != "relu":
        raise AttrError(f"act_type {act_type!r}: quantised numbers have 'relu' alone")
    return xp.maximum(data, 0)


_keeping("_contrib_quantized_pooling", pooling, """
``Pooling`` of whole numbers, maxima or averages, these rounded; and the range.""".strip(), _pooled)
_keeping("_contrib_quantized_flatten", flatten, """
``Flatten`` of whole numbers, and the range.""".strip(), lambda xp, data: run(flatten, xp, [data], {}))
_keeping("_contrib_quantized_act", activation, """
The activation "relu" of whole numbers, and the range.""".strip(), _active)
_keeping("_contrib_quantized_embedding", embedding, """
Rows of a weight of eight bits picked by the integers in ``data``, and its range.""".strip(),
         lambda xp, data, weight, **_: run(embedding, xp, [data, weight], {}), ("data", "weight"),
         "I,int8,float32,float32->int8,float32,float32")


# ------------------------------------------------------------------------------------ several inputs


def _joined(*, num_args: int) -> tuple[str, ...]:
    return (*[f"arg{i}" for i in range(num_args)],
            *[f"arg{i}_{end}" for i in range(num_args) for end in ("min", "max")])


@declare(name="_contrib_quantized_concat", arguments=_joined, outputs=OUTPUTS)
def quantized_concat(*data, num_args: Few = 1, dim: int = 1):
    """``num_args`` quantised arrays joined along ``dim``, in steps of the widest range, and that range.

    The arrays come first, then the ends of their ranges. The result is uint8 where all of them are.
    """


@quantized_concat.shapes
def quantized_concat_shapes(ins, outs, *, num_args, **attrs):
    filled, places = REGISTERED["Concat"].infer_shapes(ins[:num_args], outs[:1], {**attrs, "num_args": num_args})
    return with_ranges(_joined(num_args=num_args), [*filled, *ins[num_args:]], [*places, *outs[1:]], num_args)


@quantized_concat.types
def quantized_concat_types(ins, outs, *, num_args):
    kinds = bytewise(ins[:num_args])
    made = None if None in kinds else _INT8 if _INT8 in kinds else kinds[0]
    return [*kinds, *[FLOAT] * (2 * num_args)], [made, FLOAT, FLOAT]


@quantized_concat.kernel()
def quantized_concat_xp(xp, *arrays, num_args, dim):
    data, lows, highs = arrays[:num_args], arrays[num_args::2], arrays[num_args + 1::2]
    low = xp.minimum(xp.concatenate(lows).min(), 0).reshape(1)
    high = xp.maximum(xp.concatenate(highs).max(), 0).reshape(1)
    kind = "int8" if any(array.dtype == _INT8 for array in data) else "uint8"
    steps = per_unit(EDGES[kind], distance(xp, low, high))
    parts = [whole(xp, of_whole(array, distance(xp, *ends)) * steps, kind)
             for array, *ends in zip(data, lows, highs)]
    return xp.concatenate(parts, axis=dim), low, high


quantized_concat.grad(ZERO)


@declare(name="_contrib_quantized_elemwise_add", outputs=OUTPUTS)
def quantized_elemwise_add(lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max, *, min_calib_range: float | None = None,
                           max_calib_range: float | None = None):
    """The sum of two quantised arrays, and its range: in eight bits where calibration found one, in 32 bits else.

    Eight bits are uint8 where both arrays are.
    """


@declare(name="_contrib_quantized_elemwise_mul",
         outputs=lambda *, enable_float_output: OUTPUTS[:1] if enable_float_output else OUTPUTS)
def quantized_elemwise_mul(lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max, *, min_calib_range: float | None = None,
                           max_calib_range: float | None = None, enable_float_output: bool = False):
    """The product of two quantised arrays, and its range: in eight bits where calibration found one, in 32 bits else;
    or the fractions alone, with ``enable_float_output``."""


@quantized_elemwise_add.shapes
@quantized_elemwise_mul.shapes
def _both_shapes(ins, outs):
    one = functools.reduce(unify, (*ins[:2], outs[0]))
    return with_ranges(quantized_elemwise_add.signature.input_names, [one, one, *ins[2:]], [one, *outs[1:]], 2)


@quantized_elemwise_add.types
def quantized_elemwise_add_types(ins, outs, *, min_calib_range, max_calib_range):
    kinds = bytewise(ins[:2])
    made: Any = _INT32
    if calibrated(min_calib_range, max_calib_range) is not None:
        made = None if None in kinds else kinds[0] if kinds[0] == kinds[1] else _INT8
    return [*kinds, *[FLOAT] * 4], [made, FLOAT, FLOAT]


@quantized_elemwise_mul.types
def quantized_elemwise_mul_types(ins, outs, *, min_calib_range, max_calib_range, enable_float_output):
    made = _INT32 if calibrated(min_calib_range, max_calib_range) is None else _INT8
    return [_INT8, _INT8, *[FLOAT] * 4], [FLOAT] if enable_float_output else [made, FLOAT, FLOAT]


@quantized_elemwise_add.kernel()
def quantized_elemwise_add_xp(xp, lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max, *, min_calib_range, max_calib_range):
    ends = distance(xp, lhs_min, lhs_max), distance(xp, rhs_min, rhs_max)
    if calibrated(min_calib_range, max_calib_range) is None:
        high, kind, precise = ends[0] + ends[1], "int32", "float64"
        low = -high
    else:
        kind, precise = lhs.dtype.name if lhs.dtype == rhs.dtype else "int8", "float32"
        low, high = _range(xp, min_calib_range, max_calib_range)
    total = sum(of_whole(array, reach.astype(precise)) for array, reach in zip((lhs, rhs), ends))
    steps = per_unit(EDGES[kind], distance(xp, low, high).astype(precise))
    return whole(xp, total * steps, kind), low, high


@quantized_elemwise_mul.kernel()
def quantized_elemwise_mul_xp(xp, lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max, *, min_calib_range, max_calib_range,
                              enable_float_output):
    ends = distance(xp, lhs_min, lhs_max), distance(xp, rhs_min, rhs_max)
    if enable_float_output:
        return of_whole(lhs, ends[0]) * of_whole(rhs, ends[1])
    if calibrated(min_calib_range, max_calib_range) is None:
        high = of_products(xp, lhs, *ends)
        return xp.multiply(lhs, rhs, dtype="int32"), -high, high
    low, high = _range(xp, min_calib_range, max_calib_range)
    steps = per_unit(EDGES["int8"], distance(xp, low, high))
    return whole(xp, of_whole(lhs, ends[0]) * of_whole(rhs, ends[1]) * steps, "int8"), low, high


quantized_elemwise_add.grad(ZERO)
quantized_elemwise_mul.grad(ZERO)


def _range(xp: ArrayModule, least: float, most: float) -> tuple[Array, Array]:
    return xp.full((1,), least, "float32"), xp.full((1,), most, "float32")


# ------------------------------------------------------------------------------------------ BatchNorm

quantized_batch_norm = register(Op(
    "_contrib_quantized_batch_norm", batch_norm.signature.schema, ("data", "gamma", "beta", "min_data", "max_data"),
    auxiliary=("moving_mean", "moving_var"), outputs=OUTPUTS, types="T:byte,*float32->int8,float32,float32",
    input_names=("data", "gamma", "beta", "moving_mean", "moving_var", "min_data", "max_data"),
    doc="``BatchNorm`` of whole numbers by its moving statistics, as int8 in the calibrated range, which has to be "
        "given; and the range."))
quantized_batch_norm.signature.tags = batch_norm.signature.tags


@quantized_batch_norm.shapes
def quantized_batch_norm_shapes(ins, outs, **attrs):
    if calibrated(attrs["min_calib_range"], attrs["max_calib_range"]) is None:
        raise AttrError("min_calib_range and max_calib_range are required: the range of the result")
    data, gamma, beta, low, high, *states = ins
    (data, *vectors), places = batch_norm.infer_shapes([data, gamma, beta, *states], [outs[0], None, None], attrs)
    (*_, low, high), outs = with_ranges(("data", "min_data", "max_data"), [data, low, high], [places[0], *outs[1:]], 1)
    return [data, *vectors[:2], low, high, *vectors[2:]], outs


@quantized_batch_norm.kernel()
def quantized_batch_norm_xp(xp, data, gamma, beta, min_data, max_data, moving_mean, moving_var, *, min_calib_range,
                            max_calib_range, **attrs):
    numbers = of_whole(data, distance(xp, min_data, max_data))
    y = run(batch_norm, xp, [numbers, gamma, beta, moving_mean, moving_var], attrs)[0]
    low, high = _range(xp, min_calib_range, max_calib_range)
    return whole(xp, y * per_unit(EDGES["int8"], distance(xp, low, high)), "int8"), low, high


quantized_batch_norm.grad(ZERO)


@quantized_conv.flops
@quantized_fully_connected.flops
def quantized_flops(ins, outs):
    """A product of whole numbers: each element of the result takes one kernel, or one row of the weight."""
    return 2 * math.prod(outs[0]) * math.prod(ins[1][1:])
