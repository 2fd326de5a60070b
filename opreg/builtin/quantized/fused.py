"""Layers with what follows them, as MXNet fuses them for oneDNN: a node holds the graph that it stands for.

That graph is a convolution or dense layer, perhaps BatchNorm, an activation, a sum with another array, an activation
again. A quantised node computes the layer on whole numbers, what follows on the fractions that its sums stand for, and
quantises the result in its calibrated range. The numbers are those of oneDNN, but where rounding decides a half.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.cache import cached
from ...core.declarations import ZERO
from ...core.graph import Entry, Graph, Node
from ...core.op import agreed
from ...core.registry import declare
from ...core.rules import Attrs, AttrsRule, Dtypes, Shapes
from ...core.spec import Shape, as_dtype
from ...errors import AttrError, listed
from ...typing import Array, ArrayModule
from ..matrices.dense import with_bias
from .layers import sums
from .ranges import EDGES, FLOAT, OUTPUTS, bytewise, calibrated, distance, of_products, of_whole, per_unit, run, whole

__all__: list[str] = []


# --------------------------------------------------------------------------------------------------- bodies


#: What may follow a layer, and whether none of its results are negative, so that their whole numbers are unsigned.
_FOLLOWING = {"BatchNorm": False, "elemwise_add": False, "LeakyReLU": False, "clip": True, "square": True,
              "sqrt": True, "exp": True, "abs": True, "Activation": True}
_SIGNED = ("tanh", "softsign")

_STATISTICS = ("gamma", "beta", "mean", "var")


class Body(NamedTuple):
    """The graph of a node, looked at.

    Attributes
    ----------
    entries : list of Entry
        Its variables, which the node's first inputs stand for.
    names : tuple of str
        What these inputs are called.
    layer : Node
        The convolution or dense layer.
    norm : Node or None
        The BatchNorm of that.
    rest : list of Node
        What follows, in order.
    """

    entries: list[Entry]
    names: tuple[str, ...]
    layer: Any
    norm: Any
    rest: list[Any]

    @property
    def nodes(self) -> list[Any]:
        """All but the variables, in order."""
        return [self.layer, *([] if self.norm is None else [self.norm]), *self.rest]

    @property
    def sums(self) -> Entry:
        """Output of the layer, before the operations behind it."""
        return self.norm or self.layer, 0

    @property
    def unsigned(self) -> bool:
        """Whether no result is negative."""
        last = self.nodes[-1]
        return _FOLLOWING.get(last.op.name, False) and last.attrs.get("act_type") not in _SIGNED


@cached(1024)
def _body(kind: str, graph: Graph) -> Body:
    """Parts of the graph that a node holds, whose layer is of this kind.

    Raises
    ------
    AttrError
        When it is none that is fused.
    """
    entries: list[Entry] = [(node, 0) for node in graph.nodes if node.op is None]
    nodes: list[Any] = [node for node in graph.nodes if node.op is not None]
    ops = [node.op.name for node in nodes]
    after = {*_FOLLOWING} if kind == "Convolution" else {*_FOLLOWING} - {"BatchNorm", "elemwise_add"}
    if ops[:1] != [kind] or graph.heads != ((nodes[-1], 0),) or not after.issuperset(ops[1:]):
        raise AttrError(f"expected a subgraph of {kind} and then any of {listed(sorted(after))}, got "
                        f"{listed(ops) or 'an empty one'}")
    layer, norm = nodes[0], nodes[1] if ops[1:2] == ["BatchNorm"] else None
    if (layer.attrs.get("layout") or "NC")[:2] != "NC" or (norm is not None and norm.attrs["axis"] != 1):
        raise AttrError("expected a subgraph with channels on axis 1")
    called = dict(zip(layer.inputs, with_bias(no_bias=layer.attrs["no_bias"])))
    called.update(zip(() if norm is None else norm.inputs[1:], _STATISTICS))
    names = tuple([called.get(entry, "sum") for entry in entries])
    if len({*names}) != len(called) + ("sum" in names) or len({*names}) != len(names):
        raise AttrError(f"expected a subgraph of its own inputs and one that is added, got {listed(names)}")
    return Body(entries, names, layer, norm, nodes[1 if norm is None else 2:])


def _inferred(body: Body, rule: str, known: Sequence[Any]) -> tuple[list[Any], Any]:
    """Shapes or dtypes of a body's variables and of its result, by the rule of that name of its operators."""
    found = dict(zip(body.entries, known))
    for node in body.nodes:
        ins, outs = getattr(node.op, rule)([found.get(entry) for entry in node.inputs], [None] * node.count, node.attrs)
        found.update(zip(node.inputs, ins))
        found.update(((node, i), out) for i, out in enumerate(outs))
    return [found[entry] for entry in body.entries], found[body.nodes[-1], 0]


def _computed(xp: ArrayModule, nodes: Sequence[Any], values: dict[Entry, Array]) -> Array:
    """The result of the last of some nodes, of the values there are."""
    for node in nodes:
        result = run(node.op, xp, [values[entry] for entry in node.inputs], node.attrs)
        values[node, 0] = result[0] if isinstance(result, tuple) else result
    return values[nodes[-1], 0]


# --------------------------------------------------------------------------------------------- whole numbers


class Factor(NamedTuple):
    """Affine map of quantised data: integer weights, their step and range, one for all or one a channel; and a bias of
    fractions, or None."""

    weight: Array
    steps: Array
    reach: Array
    bias: Array | None


def _folded(xp: ArrayModule, norm: Node, weight: Array, bias: Array | None, gamma: Array, beta: Array, mean: Array,
            variance: Array) -> tuple[Array, Array]:
    """Weights and a bias that do what BatchNorm does by its moving statistics."""
    factor = (1 if norm.attrs["fix_gamma"] else gamma) / xp.sqrt(variance.astype("float64") + norm.attrs["eps"])
    factor = factor.astype(weight.dtype)  # rounded as MXNet does: the largest weight may lie on an edge
    shift = -mean if bias is None else bias - mean
    return weight * factor.reshape(-1, *[1] * (weight.ndim - 1)), beta + shift * factor


def _quantised(xp: ArrayModule, weight: Array, bias: Array | None, channels: bool) -> Factor:
    """A factor of fractions, in steps of the largest weight, or that of each channel."""
    rows = xp.abs(weight).reshape(weight.shape[0], -1)
    reach = rows.max(1) if channels else rows.max().reshape(1)
    steps = per_unit(EDGES["int8"], reach)
    return Factor(whole(xp, weight * steps.reshape(-1, *[1] * (weight.ndim - 1)), "int8"), steps, reach, bias)


def _fractions(xp: ArrayModule, layer: Any, data: Array, factor: Factor, data_steps: Array, dtype: str) -> Array:
    """The fractions that the sums of a layer stand for."""
    y = sums(layer.op, xp, data, factor.weight, layer.attrs).astype(dtype)
    steps, shift = factor.steps.astype(dtype) * data_steps, None
    if factor.bias is not None:
        shift = xp.rint(factor.bias * steps)
    if layer.op.name == "Convolution":  # channels are its second axis
        steps, shift = [None if each is None else each.reshape(-1, *[1] * (y.ndim - 2)) for each in (steps, shift)]
    return (y if shift is None else y + shift) / steps


def _result(xp: ArrayModule, body: Body, arrays: dict[str, Array], factor: Factor, data_reach: Array,
            attrs: Attrs) -> Any:
    """The outputs of a quantised node."""
    data, limit = arrays["data"], calibrated(attrs["min_calib_range"], attrs["max_calib_range"])
    fractions = attrs.get("enable_float_output", False)
    dtype = "float32" if fractions or limit is not None else "float64"
    data_steps = per_unit(EDGES[data.dtype.name], data_reach)
    values = {body.sums: _fractions(xp, body.layer, data, factor, data_steps, dtype)}
    for entry, name in zip(body.entries, body.names):
        if any(entry in node.inputs for node in body.rest):  # what is added, the data themselves perhaps
            values[entry] = of_whole(arrays[name], distance(xp, arrays[f"{name}_min"], arrays[f"{name}_max"]))
    y = _computed(xp, body.rest, values) if body.rest else values[body.sums]
    if fractions:
        return y
    if limit is None:
        reach = of_products(xp, data, data_reach, factor.reach)
        return whole(xp, y * (factor.steps.astype(dtype) * data_steps), "int32"), -reach, reach
    kind = "uint8" if body.unsigned else "int8"
    ends = [xp.full((1,), attrs[name], "float32") for name in ("min_calib_range", "max_calib_range")]
    return whole(xp, y * per_unit(EDGES[kind], limit), kind), *ends


def _dtype(body: Body, attrs: Attrs) -> Any:
    """The dtype of the result of a quantised node."""
    if attrs.get("enable_float_output", False):
        return FLOAT
    if calibrated(attrs["min_calib_range"], attrs["max_calib_range"]) is None:
        return as_dtype("int32")
    return as_dtype("uint8" if body.unsigned else "int8")


# ------------------------------------------------------------------------------------------- the operators


class Fusion:
    """A kind of node, by the name of its layer: what its inputs are.

    Parameters
    ----------
    layer : str
        The operator that its body begins with.
    ends : function of body and attributes
        The names of its last inputs, ends of ranges.
    """

    def __init__(self, layer: str, ends: Any):
        self.layer, self.ends = layer, ends

    def body(self, attrs: Attrs) -> Body:
        """The body of a node."""
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
        """Arithmetic of the layer: each element of the output is a product over one kernel, or over one row of the
        weight."""
        return 2 * math.prod(outs[0]) * math.prod(self.named(attrs, ins)["weight"][1:])

    def named(self, attrs: Attrs, values: Sequence[Any]) -> dict[str, Any]:
        """Something of each input, by the input's name."""
        return dict(zip(self.arguments(attrs) + self.auxiliary(attrs), values))

    def shapes(self, attrs: Attrs, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
        body, given = self.body(attrs), self.named(attrs, ins)
        found, result = _inferred(body, "infer_shapes", [given[name] for name in body.names])
        known = {**dict.fromkeys(given, (1,)), **dict(zip(body.names, found))}
        return ([agreed(name, shape, known[name]) for name, shape in given.items()],
                [agreed("output", outs[0], result), *[(1,)] * (len(outs) - 1)])

    def types(self, attrs: Attrs, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
        body, given = self.body(attrs), self.named(attrs, ins)
        if not attrs["quantized"]:
            found, result = _inferred(body, "infer_dtypes", [given[name] for name in body.names])
            known = dict(zip(body.names, found))
            return [known[name] for name in given], [result]
        weights = as_dtype("int8") if "min_weight" in given else FLOAT
        known = {**dict.fromkeys(given, FLOAT), "weight": weights, "bias": weights}
        for name in ("data", "sum"):
            known[name] = bytewise([given.get(name)])[0]
        return [known[name] for name in given], [_dtype(body, attrs), *[FLOAT] * (len(outs) - 1)]

    def compute(self, xp: ArrayModule, *values: Array, **attrs: Any) -> Any:
        """The kernel."""
        body, arrays = self.body(attrs), self.named(attrs, values)
        if not attrs["quantized"]:
            held = [arrays[name] for name in body.names]
            return _computed(xp, body.nodes, dict(zip(body.entries, held)))
        low, high = (arrays[name] for name in self.ends(body, attrs)[:2])
        reach = distance(xp, low, high)
        return _result(xp, body, arrays, self.factor(xp, body, arrays, attrs), reach, attrs)

    def factor(self, xp: ArrayModule, body: Body, arrays: dict[str, Array], attrs: Attrs) -> Factor:
        """The affine map that a quantised node applies to its data."""
        weight, bias = arrays["weight"], arrays.get("bias")
        if "min_weight" in arrays:
            weight_reach = distance(xp, arrays["min_weight"], arrays["max_weight"])
            if bias is not None:
                bias = of_whole(bias, distance(xp, arrays["min_bias"], arrays["max_bias"]))
            return Factor(weight, per_unit(EDGES["int8"], weight_reach), weight_reach, bias)
        if body.norm is not None:
            weight, bias = _folded(xp, body.norm, weight, bias, *[arrays[name] for name in _STATISTICS])
        channels = (self.layer == "FullyConnected"
                    or calibrated(attrs["min_calib_range"], attrs["max_calib_range"]) is not None)
        return _quantised(xp, weight, bias, channels)


def _conv_ends(body: Body, attrs: Attrs) -> tuple[str, ...]:
    return tuple([f"{name}_{end}" for name in ("data", "sum") if name in body.names for end in ("min", "max")])


def _dense_ends(body: Body, attrs: Attrs) -> tuple[str, ...]:
    names = body.names[:1] if attrs["channel_wise_quantize"] else body.names
    return tuple([f"{end}_{name}" for name in names for end in ("min", "max")])


_CONV, _DENSE = Fusion("Convolution", _conv_ends), Fusion("FullyConnected", _dense_ends)


def _options(fusion: Fusion, outputs: Any, names: Sequence[str]) -> dict[str, Any]:
    """How a kind of node is declared."""
    return {"arguments": AttrsRule(fusion.arguments), "auxiliary": AttrsRule(fusion.auxiliary),
            "types": AttrsRule(fusion.types), "outputs": outputs, "input_names": names, "per_instance": True}


@declare(name="_sg_mkldnn_conv", **_options(
    _CONV, lambda *, quantized: ("output", "output_min", "output_max")[:3 if quantized else 1],
    ("data", "weight", "bias", *_STATISTICS, "sum", "data_min", "data_max", "sum_min", "sum_max")))
def fused_convolution(*, with_bn: bool = False, with_act: bool = False, with_sum: bool = False,
                      with_postsum_act: bool = False, with_relu: bool = False, with_postsum_relu: bool = False,
                      quantized: bool = False, min_calib_range: float | None = None,
                      max_calib_range: float | None = None, subgraphs: tuple[Any, ...] = ()):
    """A convolution and what follows it in inference: its subgraph, in whole numbers where it is ``quantized``.

    What follows is read from the subgraph alone; attributes that begin with ``with`` repeat it. Weights are fractions,
    and quantised by the node. A result is of eight bits in a calibrated range, of 32 bits without one.
    """


@declare(name="_sg_mkldnn_fully_connected", **_options(
    _DENSE, lambda *, quantized, enable_float_output: OUTPUTS[:3 if quantized and not enable_float_output else 1],
    ("data", "weight", "bias", *[f"{end}_{name}" for name in ("data", "weight", "bias") for end in ("min", "max")])))
def fused_dense(*, with_eltwise: bool = False, with_relu: bool = False, quantized: bool = False,
                enable_float_output: bool = False, min_calib_range: float | None = None,
                max_calib_range: float | None = None, channel_wise_quantize: bool | None = None,
                subgraphs: tuple[Any, ...] = ()):
    """A dense layer and what follows it in inference: its subgraph, in whole numbers where it is ``quantized``.

    Weights are whole numbers with ranges of their own; with ``channel_wise_quantize`` fractions, which the node
    quantises. A result is of fractions with ``enable_float_output``, of eight bits in a calibrated range, else of 32.
    """


for _op, _fusion in ((fused_convolution, _CONV), (fused_dense, _DENSE)):
    _op.shapes(AttrsRule(_fusion.shapes))
    _op.flops(AttrsRule(_fusion.flops))
    _op.kernel()(_fusion.compute)
    _op.grad(ZERO)
