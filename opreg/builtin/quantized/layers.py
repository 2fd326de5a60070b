"""Layers on 8-bit data and weights, with their ranges as further inputs.

Sums are exact. A layer with weights returns them as 32-bit integers, with their range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.attrs import Few
from ...core.declarations import ZERO
from ...core.op import Op
from ...core.registry import REGISTERED, ops
from ...core.rules import Attrs, Rule
from ...core.spec import as_dtype
from ...core.value import Value
from ...custom.composed import composed
from ...errors import AttrError
from ..elementwise.activation import activation
from ..forms import declare_form
from ..layers.batch_norm import batch_norm
from ..layers.convolution import convolution
from ..layers.pooling import pooling
from ..lookup.indexing import embedding
from ..matrices.dense import fully_connected, layer_input_names
from ..shapes.shape import flatten
from .ranges import (
    EDGES,
    FLOAT,
    OUTPUTS,
    bytewise,
    calibrated_reach,
    distance,
    exact,
    kind,
    number,
    per_unit,
    product,
    product_range,
    real_values,
    to_integers,
)

__all__ = ["along_channels", "sums"]

_INT8, _INT32 = as_dtype("int8"), as_dtype("int32")


def sums(op: Op, data: Value, weight: Any, attrs: Attrs) -> Any:
    """The integer sums of a layer without its bias, in a floating dtype.

    Parameters
    ----------
    op : Op
        ``Convolution`` or ``FullyConnected``.
    data, weight : value
        8-bit integers.
    attrs : mapping
        Attributes of the layer.
    """
    wide = exact(math.prod(weight.shape[1:]))
    return op.current(ops.Cast(data, dtype=wide), ops.Cast(weight, dtype=wide), **{**attrs, "no_bias": True})


def along_channels(op: Op, numbers: Any, like: Any) -> Any:
    """One value per channel, reshaped to broadcast over a layer's result."""
    return numbers.reshape((-1, *[1] * (len(like.shape) - 2))) if op is convolution else numbers


def _declare_inputs(quantized: Op, op: Op, count: Callable[..., int]) -> None:
    """Declare that an operator has ``count`` inputs of a layer, then the ends of ranges, and no gradient."""
    counted = Rule(count)

    @quantized.fill
    def ending_fill(ins, outs, **attrs):
        layer_inputs = counted(attrs)
        return [*op.infer_shapes(ins[:layer_inputs], outs[:1], attrs)[0], *[(1,)] * (len(ins) - layer_inputs)]

    quantized.grad(ZERO)


# -------------------------------------------------------------------------------- layers with weights


def _with_range_ends(*, no_bias: bool) -> tuple[str, ...]:
    names = layer_input_names(no_bias=no_bias)
    return (*names, *[f"{end}_{name}" for name in names for end in ("min", "max")])


def _declare_weighted(name: str, op: Op, doc: str) -> Op:
    """Declare the quantised form of a layer with weights and a bias."""

    def layer(data, weight, *rest, **attrs):
        if (attrs.get("layout") or "NC")[:2] != "NC":
            raise AttrError(f"layout={attrs['layout']!r}: quantised data have their channels on axis 1")
        bias, ends = (None, rest) if attrs["no_bias"] else (rest[0], rest[1:])
        reach, weight_reach = distance(*ends[:2]), distance(*ends[2:4])
        y = sums(op, data, weight, attrs)
        if bias is not None:
            steps = per_unit(EDGES[kind(data)], reach) * per_unit(EDGES["int8"], weight_reach)
            shift = ops.trunc(real_values(bias, distance(*ends[4:])) * steps)
            y = y + along_channels(op, ops.Cast(shift, dtype=y.dtype), y)
        made_reach = product_range(data, reach, weight_reach)
        return ops.Cast(y, dtype="int32"), -made_reach, made_reach

    layer.__doc__ = doc
    quantized = composed(layer, name=name, like=op, arguments=_with_range_ends, outputs=OUTPUTS, variadic=None,
                         input_names=_with_range_ends(no_bias=False))
    _declare_inputs(quantized, op, lambda *, no_bias: 2 if no_bias else 3)

    @quantized.types
    def types(ins, outs, *, no_bias):
        count = 1 if no_bias else 2
        return [*bytewise(ins[:1]), *[_INT8] * count, *[FLOAT] * (len(ins) - 1 - count)], [_INT32, FLOAT, FLOAT]

    return quantized


quantized_conv = _declare_weighted("_contrib_quantized_conv", convolution, """
``Convolution`` of 8-bit integers: its 32-bit sums, and their range.

The bias has 8 bits and its own range; it is converted to the steps of the sums.""".strip())

quantized_fully_connected = _declare_weighted("_contrib_quantized_fully_connected", fully_connected, """
``FullyConnected`` of 8-bit integers: its 32-bit sums, and their range.

The bias has 8 bits and its own range; it is converted to the steps of the sums.""".strip())


# ----------------------------------------------------------------------- layers that keep the range


def _declare_same_range(name: str, op: Op, doc: str, compute: Callable[..., Value], names: tuple[str, ...] = ("data",),
                        types: str = "T:byte,float32,float32->T,float32,float32") -> None:
    """Declare the quantised form of a layer whose result has the range of the last of its inputs ``names``;
    ``compute(*inputs, **attrs)`` is the layer."""

    def layer(*arrays, **attrs):
        return compute(*arrays[:-2], **attrs), *arrays[-2:]

    layer.__doc__ = doc
    every = (*names, f"min_{names[-1]}", f"max_{names[-1]}")
    quantized = composed(layer, name=name, like=op, arguments=every, input_names=every, outputs=OUTPUTS, variadic=None,
                         types=types)
    _declare_inputs(quantized, op, lambda: len(names))


def _pooled(data: Value, *, pool_type: str, **attrs: Any) -> Value:
    if pool_type == "max":
        return ops.Pooling(data, pool_type=pool_type, **attrs)
    if pool_type != "avg":
        raise AttrError(f"pool_type {pool_type!r}: quantised data have only maxima and averages")
    means = ops.Pooling(ops.Cast(data, dtype="float32"), pool_type=pool_type, **attrs)
    return to_integers(means, dtype=kind(data))


def _active(data: Value, *, act_type: str) -> Value:
    if act_type != "relu":
        raise AttrError(f"act_type {act_type!r}: for quantised data only 'relu' is available")
    return ops._maximum(data, ops.zeros_like(data))


_declare_same_range("_contrib_quantized_pooling", pooling, """
``Pooling`` of 8-bit integers, maxima or rounded averages; and the range.""".strip(), _pooled)
_declare_same_range("_contrib_quantized_flatten", flatten, """
``Flatten`` of 8-bit integers, and the range.""".strip(), flatten)
_declare_same_range("_contrib_quantized_act", activation, """
The activation "relu" of 8-bit integers, and the range.""".strip(), _active)
_declare_same_range("_contrib_quantized_embedding", embedding, """
Rows of an 8-bit ``weight`` at the indices ``data``, and its range.""".strip(),
                    embedding, ("data", "weight"),
                    "I,int8,float32,float32->int8,float32,float32")


# ------------------------------------------------------------------------------------ several inputs


def _joined(*, num_args: int) -> tuple[str, ...]:
    return (*[f"arg{i}" for i in range(num_args)],
            *[f"arg{i}_{end}" for i in range(num_args) for end in ("min", "max")])


@composed(name="_contrib_quantized_concat", arguments=_joined, outputs=OUTPUTS)
def quantized_concat(*data, num_args: Few = 1, dim: int = 1):
    """``num_args`` quantised arrays concatenated along ``dim``, requantised to the widest range; and that range.

    The arrays come first, then their ranges. The result is uint8 if all arrays are.
    """
    arrays, lows, highs = data[:num_args], data[num_args::2], data[num_args + 1::2]
    low = ops._minimum_scalar(ops.min(ops.Concat(*lows, num_args=num_args, dim=0)), scalar=0)
    high = ops._maximum_scalar(ops.max(ops.Concat(*highs, num_args=num_args, dim=0)), scalar=0)
    dtype = "int8" if any(array.dtype == _INT8 for array in arrays) else "uint8"
    steps = per_unit(EDGES[dtype], distance(low, high))
    parts = [to_integers(real_values(array, distance(*ends)) * steps, dtype=dtype)
             for array, *ends in zip(arrays, lows, highs)]
    return ops.Concat(*parts, num_args=num_args, dim=dim), low, high


_declare_inputs(quantized_concat, REGISTERED["Concat"], lambda *, num_args: num_args)


@quantized_concat.types
def quantized_concat_types(ins, outs, *, num_args):
    kinds = bytewise(ins[:num_args])
    output_dtype = None if None in kinds else _INT8 if _INT8 in kinds else kinds[0]
    return [*kinds, *[FLOAT] * (2 * num_args)], [output_dtype, FLOAT, FLOAT]


@composed(name="_contrib_quantized_elemwise_add", outputs=OUTPUTS)
def quantized_elemwise_add(lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max, *, min_calib_range: float | None = None,
                           max_calib_range: float | None = None):
    """The sum of two quantised arrays, and its range: 8 bits if calibrated, otherwise 32 bits.

    With 8 bits it is uint8 if both arrays are.
    """
    left, right = distance(lhs_min, lhs_max), distance(rhs_min, rhs_max)
    limit = calibrated_reach(min_calib_range, max_calib_range)
    if limit is not None:
        output_dtype = kind(lhs) if lhs.dtype == rhs.dtype else "int8"
        total = real_values(lhs, left) + real_values(rhs, right)
        ends = number(left, min_calib_range), number(left, max_calib_range)
        return to_integers(total * per_unit(EDGES[output_dtype], limit), dtype=output_dtype), *ends
    high = left + right
    left, right, reach = [ops.Cast(value, dtype="float64") for value in (left, right, high)]
    total = real_values(lhs, left) + real_values(rhs, right)
    return to_integers(total * per_unit(EDGES["int32"], reach), dtype="int32"), -high, high


@composed(name="_contrib_quantized_elemwise_mul",
          outputs=lambda *, enable_float_output: OUTPUTS[:1] if enable_float_output else OUTPUTS)
def quantized_elemwise_mul(lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max, *, min_calib_range: float | None = None,
                           max_calib_range: float | None = None, enable_float_output: bool = False):
    """The product of two quantised arrays, and its range: 8 bits if calibrated, otherwise 32 bits; or with
    ``enable_float_output`` the floating-point values alone."""
    left, right = distance(lhs_min, lhs_max), distance(rhs_min, rhs_max)
    limit = calibrated_reach(min_calib_range, max_calib_range)
    if limit is None and not enable_float_output:
        high = product_range(lhs, left, right)
        return product(lhs, ops.Cast(rhs, dtype="int32")), -high, high
    products = real_values(lhs, left) * real_values(rhs, right)
    if enable_float_output:
        return products
    return (to_integers(products * per_unit(EDGES["int8"], limit), dtype="int8"),
            number(left, min_calib_range), number(left, max_calib_range))


@quantized_elemwise_add.types
def quantized_elemwise_add_types(ins, outs, *, min_calib_range, max_calib_range):
    kinds = bytewise(ins[:2])
    output_dtype: Any = _INT32
    if calibrated_reach(min_calib_range, max_calib_range) is not None:
        output_dtype = None if None in kinds else kinds[0] if kinds[0] == kinds[1] else _INT8
    return [*kinds, *[FLOAT] * 4], [output_dtype, FLOAT, FLOAT]


@quantized_elemwise_mul.types
def quantized_elemwise_mul_types(ins, outs, *, min_calib_range, max_calib_range, enable_float_output):
    output_dtype = _INT32 if calibrated_reach(min_calib_range, max_calib_range) is None else _INT8
    return [_INT8, _INT8, *[FLOAT] * 4], [FLOAT] if enable_float_output else [output_dtype, FLOAT, FLOAT]


for _op in (quantized_elemwise_add, quantized_elemwise_mul):
    declare_form(_op, "(...) (...) (1) (1) (1) (1) -> (...) (1) (1)")
    _op.grad(ZERO)


# ------------------------------------------------------------------------------------------ BatchNorm


def _normalised(data, gamma, beta, min_data, max_data, moving_mean, moving_var, *, min_calib_range, max_calib_range,
                eps, fix_gamma, axis, **_):
    """``BatchNorm`` of 8-bit integers by the moving statistics, as int8 in the calibrated range, which is required; and
    the range."""
    limit = calibrated_reach(min_calib_range, max_calib_range)
    if limit is None:
        raise AttrError("min_calib_range and max_calib_range are required: the range of the result")
    broadcast_shape = tuple([-1 if i == axis % len(data.shape) else 1 for i in range(len(data.shape))])
    scale = 1.0 / ops.sqrt(moving_var + eps)
    scale = scale if fix_gamma else scale * gamma
    offset = beta - moving_mean * scale
    y = real_values(data, distance(min_data, max_data))
    y = y * scale.reshape(broadcast_shape) + offset.reshape(broadcast_shape)
    ends = number(min_data, min_calib_range), number(max_data, max_calib_range)
    return to_integers(y * per_unit(EDGES["int8"], limit), dtype="int8"), *ends


quantized_batch_norm = composed(
    _normalised, name="_contrib_quantized_batch_norm", like=batch_norm,
    arguments=("data", "gamma", "beta", "min_data", "max_data"), auxiliary=("moving_mean", "moving_var"),
    outputs=OUTPUTS, types="T:byte,*float32->int8,float32,float32",
    input_names=("data", "gamma", "beta", "moving_mean", "moving_var", "min_data", "max_data"))
quantized_batch_norm.signature.tags = batch_norm.signature.tags


@quantized_batch_norm.fill
def quantized_batch_norm_fill(ins, outs, **attrs):
    data, gamma, beta, _, _, *states = ins
    data, gamma, beta, *states = batch_norm.infer_shapes([data, gamma, beta, *states], [outs[0], None, None], attrs)[0]
    return [data, gamma, beta, (1,), (1,), *states]


quantized_batch_norm.grad(ZERO)


@quantized_conv.flops
@quantized_fully_connected.flops
def quantized_flops(ins, outs):
    """The arithmetic: each element of the result is a product over one kernel, or one row of the weight."""
    return 2 * math.prod(outs[0]) * math.prod(ins[1][1:])
