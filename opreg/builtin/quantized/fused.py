"""Layers fused with the operators after them, as MXNet fuses them for oneDNN: a node holds its original subgraph.

The subgraph is a convolution or dense layer, with an optional BatchNorm, activation, sum with another array, and second
activation. A quantised node computes the layer on integers, the rest on their floating-point values, and quantises the
result in its calibrated range. Results equal oneDNN's, except where a value lies half way between two integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.cache import cached
from ...core.declarations import ZERO
from ...core.graph import Entry, Graph
from ...core.op import combined_shape
from ...core.registry import ops
from ...core.rules import Attrs, AttrsRule, Dtypes, Norm, Shapes
from ...core.spec import Shape, as_dtype
from ...core.value import Value
from ...custom.composed import composed
from ...errors import AttrError, list_names
from ..matrices.dense import layer_input_names
from .layers import along_channels, sums
from .ranges import (
    EDGES,
    FLOAT,
    OUTPUTS,
    bytewise,
    calibrated_reach,
    distance,
    kind,
    number,
    per_unit,
    product_range,
    real_values,
    to_integers,
)

# --------------------------------------------------------------------------------------------------- bodies


#: Operators that may follow a layer, and whether their results are never negative, so that they are quantised as uint8.
_FOLLOWING = {"BatchNorm": False, "elemwise_add": False, "LeakyReLU": False, "clip": True, "square": True,
              "sqrt": True, "exp": True, "abs": True, "Activation": True}
_SIGNED = ("tanh", "softsign")

_STATISTICS = ("gamma", "beta", "mean", "var")


class Body(NamedTuple):
    """The parts of a node's subgraph.

    Attributes
    ----------
    entries : list of Entry
        Its variables, which correspond to the first inputs of the node.
    names : tuple of str
        Names of these inputs.
    layer : Node
        The convolution or dense layer.
    norm : Node or None
        The norm after the layer, which has the rule ``Op.norm``.
    rest : list of Node
        The operators after that, in order.
    """

    entries: list[Entry]
    names: tuple[str, ...]
    layer: Any
    norm: Any
    rest: list[Any]

    @property
    def nodes(self) -> list[Any]:
        """All nodes except variables, in order."""
        return [self.layer, *([] if self.norm is None else [self.norm]), *self.rest]

    @property
    def sums(self) -> Entry:
        """The output of the layer, or of its batch norm, which later operators of the body read."""
        return self.norm or self.layer, 0

    @property
    def is_never_negative(self) -> bool:
        """Whether the result is never negative."""
        last = self.nodes[-1]
        return _FOLLOWING.get(last.op.name, False) and last.attrs.get("act_type") not in _SIGNED


@cached(1024)
def _body(kind: str, graph: Graph) -> Body:
    """The parts of a node's subgraph, whose layer is of this kind.

    Raises
    ------
    AttrError
        If the subgraph is not a supported fusion.
    """
    entries: list[Entry] = [(node, 0) for node in graph.nodes if node.op is None]
    nodes: list[Any] = [node for node in graph.nodes if node.op is not None]
    ops = [node.op.name for node in nodes]
    after = {*_FOLLOWING} if kind == "Convolution" else {*_FOLLOWING} - {"BatchNorm", "elemwise_add"}
    if ops[:1] != [kind] or graph.heads != ((nodes[-1], 0),) or not after.issuperset(ops[1:]):
        raise AttrError(f"expected a subgraph of {kind} and then any of {list_names(sorted(after))}, got "
                        f"{list_names(ops) or 'an empty one'}")
    layer, norm = nodes[0], next(filter(_norm, nodes[1:2]), None)
    if (layer.attrs.get("layout") or "NC")[:2] != "NC" or (norm is not None and _norm(norm).axis != 1):
        raise AttrError("expected a subgraph with channels on axis 1")
    called = dict(zip(layer.inputs, layer_input_names(no_bias=layer.attrs["no_bias"])))
    called.update(zip(() if norm is None else norm.inputs[1:], _STATISTICS))
    names = tuple([called.get(entry, "sum") for entry in entries])
    if len({*names}) != len(called) + ("sum" in names) or len({*names}) != len(names):
        raise AttrError(f"expected a subgraph of the layer's inputs and one added input, got {list_names(names)}")
    return Body(entries, names, layer, norm, nodes[1 if norm is None else 2:])


def _norm(node: Any) -> Any:
    """The norm that a node is in inference, or None."""
    return node.op.rules.norm and node.op.rules.norm(node.attrs)


def _infer_body(body: Body, rule: str, specs: Sequence[Any]) -> tuple[list[Any], Any]:
    """Shapes or dtypes of a subgraph's variables and of its result, by that rule of its operators."""
    known = dict(zip(body.entries, specs))
    for node in body.nodes:
        ins, outs = getattr(node.op, rule)([known.get(entry) for entry in node.inputs], [None] * node.count, node.attrs)
        known.update(zip(node.inputs, ins))
        known.update(((node, i), out) for i, out in enumerate(outs))
    return [known[entry] for entry in body.entries], known[body.nodes[-1], 0]


def _compute_nodes(nodes: Sequence[Any], values: dict[Entry, Value]) -> Value:
    """The result of the last of several nodes, from known values."""
    for node in nodes:
        statistics = {"use_global_stats": True} if _norm(node) else {}
        values[node, 0] = node.op.current(*[values[entry] for entry in node.inputs], **{**node.attrs, **statistics})
    return values[nodes[-1], 0]


# --------------------------------------------------------------------------------------------- integers


class Factor(NamedTuple):
    """Affine map of quantised data: integer weights, their step and range (for all channels or each), and a
    floating-point bias or None."""

    weight: Value
    steps: Value
    reach: Value
    bias: Value | None


def _reshape_per_row(numbers: Any, weight: Any) -> Any:
    """One value or one per row, reshaped to broadcast over the rows of a weight."""
    return numbers.reshape((-1, *[1] * (len(weight.shape) - 1)))


def _fold_affine(norm: Norm, weight: Any, bias: Value | None, gamma: Value, beta: Value, mean: Value,
                 variance: Value) -> tuple[Value, Value]:
    """The weight and bias equivalent to a norm by its moving statistics."""
    deviation = ops.sqrt(ops.Cast(variance, dtype="float64") + norm.eps)
    factor = (1 if norm.fix_gamma else ops.Cast(gamma, dtype="float64")) / deviation
    factor = ops.Cast(factor, dtype=weight.dtype)  # rounded as in MXNet: the largest weight may lie on an edge
    shift = -mean if bias is None else bias - mean
    return weight * _reshape_per_row(factor, weight), beta + shift * factor


def _quantize_weights(weight: Any, bias: Value | None, channels: bool) -> Factor:
    """The affine map of floating-point weights, in steps of the largest weight, or that of each channel."""
    sizes = ops.abs(weight)
    reach = ops.max(sizes, axis=tuple(range(1, len(weight.shape)))) if channels else ops.max(sizes)
    steps = per_unit(EDGES["int8"], reach)
    return Factor(to_integers(weight * _reshape_per_row(steps, weight), dtype="int8"), steps, reach, bias)


def _fractions(layer: Any, data: Value, factor: Factor, data_steps: Value, dtype: str) -> Value:
    """The real values that a layer's integer sums represent."""
    y = ops.Cast(sums(layer.op, data, factor.weight, layer.attrs), dtype=dtype)
    steps = ops.Cast(factor.steps, dtype=dtype) * ops.Cast(data_steps, dtype=dtype)
    if factor.bias is not None:
        shift = to_integers(ops.Cast(factor.bias, dtype=dtype) * steps, dtype="int32")
        y = y + along_channels(layer.op, ops.Cast(shift, dtype=dtype), y)
    return y / along_channels(layer.op, steps, y)


def _result(body: Body, arrays: dict[str, Value], factor: Factor, data_reach: Value, attrs: Attrs) -> Any:
    """The outputs of a quantised node."""
    data, limit = arrays["data"], calibrated_reach(attrs["min_calib_range"], attrs["max_calib_range"])
    fractions = attrs.get("enable_float_output", False)
    dtype = "float32" if fractions or limit is not None else "float64"
    data_steps = per_unit(EDGES[kind(data)], data_reach)
    values = {body.sums: _fractions(body.layer, data, factor, data_steps, dtype)}
    for entry, name in zip(body.entries, body.names):
        if any(entry in node.inputs for node in body.rest):  # the added array, perhaps the data themselves
            reach = distance(arrays[f"{name}_min"], arrays[f"{name}_max"])
            values[entry] = ops.Cast(real_values(arrays[name], reach), dtype=dtype)
    y = _compute_nodes(body.rest, values) if body.rest else values[body.sums]
    if fractions:
        return y
    if limit is None:
        reach = product_range(data, data_reach, factor.reach)
        steps = ops.Cast(factor.steps, dtype=dtype) * ops.Cast(data_steps, dtype=dtype)
        return to_integers(y * steps, dtype="int32"), -reach, reach
    output_dtype = "uint8" if body.is_never_negative else "int8"
    ends = [number(data_steps, attrs[name]) for name in ("min_calib_range", "max_calib_range")]
    return to_integers(y * per_unit(EDGES[output_dtype], limit), dtype=output_dtype), *ends


def _dtype(body: Body, attrs: Attrs) -> Any:
    """The dtype of the result of a quantised node."""
    if attrs.get("enable_float_output", False):
        return FLOAT
    if calibrated_reach(attrs["min_calib_range"], attrs["max_calib_range"]) is None:
        return as_dtype("int32")
    return as_dtype("uint8" if body.is_never_negative else "int8")


# ------------------------------------------------------------------------------------------- the operators


class Fusion:
    """A kind of fused node, by its layer, and its inputs.

    Parameters
    ----------
    layer : str
        The first operator of its subgraph.
    ends : function of body and attributes
        Names of its last inputs, the ends of ranges.
    """

    def __init__(self, layer: str, ends: Any):
        self.layer, self.ends = layer, ends

    def body(self, attrs: Attrs) -> Body:
        """The subgraph of a node."""
        if len(attrs["subgraphs"]) != 1:
            raise AttrError(f"expected one subgraph, got {len(attrs['subgraphs'])}")
        return _body(self.layer, attrs["subgraphs"][0]._graph())

    def inputs(self, attrs: Attrs) -> tuple[str, ...]:
        """All inputs, auxiliary states among them, in the order of files."""
        body = self.body(attrs)
        return (*body.names, *self.ends(body, attrs)) if attrs["quantized"] else body.names

    def arguments(self, attrs: Attrs) -> tuple[str, ...]:
        return tuple([name for name in self.inputs(attrs) if name not in ("mean", "var")])

    def auxiliary(self, attrs: Attrs) -> tuple[str, ...]:
        return tuple([name for name in self.inputs(attrs) if name in ("mean", "var")])

    def flops(self, attrs: Attrs, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
        """The layer's arithmetic: each element of the output is a product over one kernel, or over one row of the
        weight."""
        return 2 * math.prod(outs[0]) * math.prod(self.values_by_name(attrs, ins)["weight"][1:])

    def values_by_name(self, attrs: Attrs, values: Sequence[Any]) -> dict[str, Any]:
        """A dict of values for each input, by the input's name."""
        return dict(zip(self.arguments(attrs) + self.auxiliary(attrs), values))

    def shapes(self, attrs: Attrs, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
        body, named_specs = self.body(attrs), self.values_by_name(attrs, ins)
        inferred, result = _infer_body(body, "infer_shapes", [named_specs[name] for name in body.names])
        spec_of = {**dict.fromkeys(named_specs, (1,)), **dict(zip(body.names, inferred))}
        return ([combined_shape(name, shape, spec_of[name]) for name, shape in named_specs.items()],
                [combined_shape("output", outs[0], result), *[(1,)] * (len(outs) - 1)])

    def types(self, attrs: Attrs, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
        body, named_specs = self.body(attrs), self.values_by_name(attrs, ins)
        if not attrs["quantized"]:
            inferred, result = _infer_body(body, "infer_dtypes", [named_specs[name] for name in body.names])
            spec_of = dict(zip(body.names, inferred))
            return [spec_of[name] for name in named_specs], [result]
        weights = as_dtype("int8") if "min_weight" in named_specs else FLOAT
        spec_of = {**dict.fromkeys(named_specs, FLOAT), "weight": weights, "bias": weights}
        for name in ("data", "sum"):
            spec_of[name] = bytewise([named_specs.get(name)])[0]
        return [spec_of[name] for name in named_specs], [_dtype(body, attrs), *[FLOAT] * (len(outs) - 1)]

    def compute(self, values: Sequence[Value], attrs: Attrs) -> Any:
        """The body of the operator."""
        body, arrays = self.body(attrs), self.values_by_name(attrs, values)
        if not attrs["quantized"]:
            return _compute_nodes(body.nodes, dict(zip(body.entries, [arrays[name] for name in body.names])))
        low, high = (arrays[name] for name in self.ends(body, attrs)[:2])
        return _result(body, arrays, self.factor(body, arrays, attrs), distance(low, high), attrs)

    def factor(self, body: Body, arrays: dict[str, Value], attrs: Attrs) -> Factor:
        """The affine map of a quantised node."""
        weight, bias = arrays["weight"], arrays.get("bias")
        if "min_weight" in arrays:
            weight_reach = distance(arrays["min_weight"], arrays["max_weight"])
            if bias is not None:
                bias = real_values(bias, distance(arrays["min_bias"], arrays["max_bias"]))
            return Factor(weight, per_unit(EDGES["int8"], weight_reach), weight_reach, bias)
        if body.norm is not None:
            weight, bias = _fold_affine(_norm(body.norm), weight, bias, *[arrays[name] for name in _STATISTICS])
        channels = (self.layer == "FullyConnected"
                    or calibrated_reach(attrs["min_calib_range"], attrs["max_calib_range"]) is not None)
        return _quantize_weights(weight, bias, channels)


def _conv_ends(body: Body, attrs: Attrs) -> tuple[str, ...]:
    return tuple([f"{name}_{end}" for name in ("data", "sum") if name in body.names for end in ("min", "max")])


def _dense_ends(body: Body, attrs: Attrs) -> tuple[str, ...]:
    names = body.names[:1] if attrs["channel_wise_quantize"] else body.names
    return tuple([f"{end}_{name}" for name in names for end in ("min", "max")])


_CONV, _DENSE = Fusion("Convolution", _conv_ends), Fusion("FullyConnected", _dense_ends)


def _options(fusion: Fusion, outputs: Any, names: Sequence[str]) -> dict[str, Any]:
    """Options of the declaration of a kind of fused node."""
    return {"arguments": AttrsRule(fusion.arguments), "auxiliary": AttrsRule(fusion.auxiliary),
            "types": AttrsRule(fusion.types), "outputs": outputs, "input_names": names, "per_instance": True,
            "variadic": None}


@composed(name="_sg_mkldnn_conv", **_options(
    _CONV, lambda *, quantized: ("output", "output_min", "output_max")[:3 if quantized else 1],
    ("data", "weight", "bias", *_STATISTICS, "sum", "data_min", "data_max", "sum_min", "sum_max")))
def fused_convolution(*values, with_bn: bool = False, with_act: bool = False, with_sum: bool = False,
                      with_postsum_act: bool = False, with_relu: bool = False, with_postsum_relu: bool = False,
                      quantized: bool = False, min_calib_range: float | None = None,
                      max_calib_range: float | None = None, subgraphs: tuple[Any, ...] = ()):
    """A convolution fused with the operators after it, for inference; with ``quantized`` it computes on integers.

    The node's subgraph decides which operators follow the layer; attributes that begin with ``with`` repeat this
    information. Weights are floating-point, and the node quantises them. The result has 8 bits with a calibrated range,
    32 bits without one.
    """
    return _CONV.compute(values, {"quantized": quantized, "min_calib_range": min_calib_range,
                                  "max_calib_range": max_calib_range, "subgraphs": subgraphs})


@composed(name="_sg_mkldnn_fully_connected", **_options(
    _DENSE, lambda *, quantized, enable_float_output: OUTPUTS[:3 if quantized and not enable_float_output else 1],
    ("data", "weight", "bias", *[f"{end}_{name}" for name in ("data", "weight", "bias") for end in ("min", "max")])))
def fused_dense(*values, with_eltwise: bool = False, with_relu: bool = False, quantized: bool = False,
                enable_float_output: bool = False, min_calib_range: float | None = None,
                max_calib_range: float | None = None, channel_wise_quantize: bool | None = None,
                subgraphs: tuple[Any, ...] = ()):
    """A dense layer fused with the operators after it, for inference; with ``quantized`` it computes on integers.

    Weights are integers with their own ranges; with ``channel_wise_quantize`` they are floating-point, and the node
    quantises them. The result is floating-point with ``enable_float_output``, has 8 bits with a calibrated range, and
    32 bits otherwise.
    """
    return _DENSE.compute(values, {"quantized": quantized, "enable_float_output": enable_float_output,
                                   "min_calib_range": min_calib_range, "max_calib_range": max_calib_range,
                                   "channel_wise_quantize": channel_wise_quantize, "subgraphs": subgraphs})


for _op, _fusion in ((fused_convolution, _CONV), (fused_dense, _DENSE)):
    _op.shapes(AttrsRule(_fusion.shapes))
    _op.flops(AttrsRule(_fusion.flops))
    _op.grad(ZERO)
