"""Translations of 8-bit integer layers: the same layer in a floating dtype in which the values are exact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...builtin.quantized.ranges import EDGES, ENDS, exact
from ...core.registry import get
from ...core.spec import limits
from .builder import Builder, Numbers, Value, product
from .table import Use, apply, says


def _distance(g: Builder, low: Value, high: Value) -> Value:
    """The larger absolute value of the ends of a range."""
    return g("Max", g("Abs", low), g("Abs", high))


def _per_unit(g: Builder, steps: float, reach: Value) -> Value:
    """The number of steps per unit, with ``steps`` steps up to ``reach``."""
    return steps / (reach + g.cast(g.compare("Equal", reach, 0.0), reach.dtype))


def _fractions(g: Builder, x: Value, reach: Value) -> Value:
    """The real values that integers represent."""
    return g.cast(x, reach.dtype) * (reach / EDGES[x.dtype.name])


def _rounded_to_integer(g: Builder, x: Value, dtype: Any) -> Value:
    """Values rounded to an integer dtype, saturating."""
    least, most = limits(np.dtype(dtype))
    return g.cast(g.clip(g("Round", x), float(least), float(most)), np.dtype(dtype))


def _products(data: Value, reach: Value, weight_reach: Value) -> Value:
    """The range of 32-bit sums whose steps are products of the steps of data and weights."""
    return reach / ENDS[data.dtype.name] * (weight_reach / ENDS["int8"]) * ENDS["int32"]


def _layer(g: Builder, use: Use, name: str, attrs: Mapping[str, Any], *ins: Value) -> Value:
    """The layer applied to floating-point values."""
    return apply(g, get(name), [attrs] * g.sizes, ins, use.name)[0]


@says("_contrib_quantized_conv", "_contrib_quantized_fully_connected")
def _layer_with_weights(g: Builder, use: Use, data: Value, weight: Value, *rest: Value) -> list[Value]:
    attrs = dict(use.attrs)
    bias, ends = (None, rest) if attrs["no_bias"] else (rest[0], rest[1:])
    reach, weight_reach = _distance(g, *ends[:2]), _distance(g, *ends[2:4])
    kind = np.dtype(exact(product(weight.shape[1:])))
    name = "Convolution" if use.op.name == "_contrib_quantized_conv" else "FullyConnected"
    y = _layer(g, use, name, {**attrs, "no_bias": True}, g.cast(data, kind), g.cast(weight, kind))
    if bias is not None:
        steps: Numbers = _per_unit(g, EDGES[data.dtype.name], reach) * _per_unit(g, EDGES["int8"], weight_reach)
        shift = g.cast(g.cast(_fractions(g, bias, _distance(g, *ends[4:])) * steps, np.int32), kind)
        y = y + (g.unsqueeze(shift, range(1, len(y.shape) - 1)) if name == "Convolution" else shift)
    far = _products(data, reach, weight_reach)
    return [g.cast(y, np.int32), -far, far]


@says("_contrib_quantized_pooling")
def _pooling(g: Builder, use: Use, data: Value, low: Value, high: Value) -> list[Value]:
    y = _layer(g, use, "Pooling", use.attrs, g.cast(data, np.float32))
    return [_rounded_to_integer(g, y, data.dtype), low, high]


@says("_contrib_quantized_flatten")
def _flatten(g: Builder, use: Use, data: Value, low: Value, high: Value) -> list[Value]:
    return [g("Flatten", data, axis=1), low, high]


@says("_contrib_quantized_batch_norm")
def _batch_norm(g: Builder, use: Use, data: Value, gamma: Value, beta: Value, low: Value, high: Value, *states: Value
                ) -> list[Value]:
    attrs = dict(use.attrs)
    least, most = attrs.pop("min_calib_range"), attrs.pop("max_calib_range")
    numbers = _fractions(g, data, _distance(g, low, high))
    y = _layer(g, use, "BatchNorm", attrs, numbers, gamma, beta, *states)
    steps = EDGES["int8"] / (max(abs(least), abs(most)) or 1.0)
    return [_rounded_to_integer(g, y * steps, np.int8),
            *[g.constant(np.full((1,), end, np.float32)) for end in (least, most)]]


@says("_contrib_quantized_elemwise_mul")
def _multiply(g: Builder, use: Use, left: Value, right: Value, *ends: Value) -> list[Value]:
    attrs = use.attrs
    reaches = _distance(g, *ends[:2]), _distance(g, *ends[2:])
    least, most = attrs["min_calib_range"], attrs["max_calib_range"]
    fractions = _fractions(g, left, reaches[0]) * _fractions(g, right, reaches[1])
    if attrs["enable_float_output"]:
        return [fractions]
    if least is None or most is None:
        far = _products(left, *reaches)
        return [g.cast(left, np.int32) * g.cast(right, np.int32), -far, far]
    steps = EDGES["int8"] / (max(abs(least), abs(most)) or 1.0)
    return [_rounded_to_integer(g, fractions * steps, np.int8), *[g.constant(np.full((1,), end, np.float32))
                                                                  for end in (least, most)]]
