"""Translations of recurrent layers, loops and branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.symbol.binding import resolve_operators
from opreg.symbol.symbol import Symbol

from ...builtin.layers.rnn_parts import Kind, Part, kind_of, parts_of
from ...core.graph import Entry
from ...core.spec import ANY
from ...interop.translation import Untranslatable
from .builder import Builder, Value, product
from .table import Use, says, walk

_BOOL = np.dtype(bool)

#: ONNX's operator for each mode, and the order of this library's gates in its matrices.
_CELLS = {"lstm": ("LSTM", (0, 3, 1, 2)), "gru": ("GRU", (1, 0, 2)), "rnn_relu": ("RNN", (0,)),
          "rnn_tanh": ("RNN", (0,))}


@says("RNN")
def _rnn(g: Builder, use: Use, x: Value, parameters: Value, state: Value, *others: Value) -> Any:
    attrs = use.attrs
    kind = kind_of(**attrs)
    if kind.projection or kind.clip:
        raise Untranslatable("ONNX's recurrent layers have no projections, and do not clip states")
    rest = list(others)
    cells = rest.pop(0) if kind.mode == "lstm" else None
    lengths = g.cast(rest.pop(0), np.int32) if kind.lengths else None
    name, order = _CELLS[kind.mode]
    layers = parts_of(kind, product(x.shape[2:]))
    ends: list[Sequence[Value]] = []
    for layer, parts in enumerate(layers):
        words: dict[str, Any] = {"hidden_size": kind.size,
                                 "direction": "bidirectional" if kind.directions == 2 else "forward"}
        if name == "GRU":
            words["linear_before_reset"] = 1
        if name == "RNN":
            words["activations"] = [kind.mode.removeprefix("rnn_").capitalize()] * kind.directions
        weights = [g.concat([g.unsqueeze(_gates(g, kind, parameters, part[key], order), [0]) for part in parts], 0)
                   for key in ("input", "state")]
        biases = g.concat([g.unsqueeze(g.concat([_gates(g, kind, parameters, part[key], order)
                                                 for key in ("input_bias", "state_bias")], 0), [0])
                           for part in parts], 0)
        first, behind = layer * kind.directions, (layer + 1) * kind.directions
        starts = [None if each is None else g.slice(each, [first], [behind], [0]) for each in (state, cells)]
        y, *last = g(name, x, *weights, biases, lengths, *(starts if name == "LSTM" else starts[:1]),
                     count=3 if name == "LSTM" else 2, **words)
        ends.append(last)
        x = g.squeeze(y, [1]) if kind.directions == 1 else g.reshape(
            g.transpose(y, (0, 2, 1, 3)), (*x.shape[:2], kind.directions * kind.size))
    return [x, *[g.concat(each, 0) for each in zip(*ends)]] if attrs["state_outputs"] else [x]


def _gates(g: Builder, kind: Kind, vector: Value, part: Part, order: Sequence[int]) -> Value:
    """A matrix or vector of the parameters, with its gates in ONNX's order."""
    size = part.shape[0] * (part.shape[1] if len(part.shape) > 1 else 1)
    result = g.reshape(g.slice(vector, [part.start], [part.start + size], [0]), part.shape)
    if len(order) == 1:
        return result
    return g.concat([g.slice(result, [i * kind.size], [(i + 1) * kind.size], [0]) for i in order], 0)


# ------------------------------------------------------------------------------------------ loops, branches


def _body(g: Builder, body: Symbol, inputs: Sequence[Value]) -> list[Value]:
    """The outputs of a body for values of its variables."""
    graph = resolve_operators(body)._graph()
    variables = [node for node in graph.nodes if node.op is None]
    values: dict[Entry, Value] = {(node, 0): value for node, value in zip(variables, inputs)}
    return walk(g, [[node] * g.sizes for node in graph.nodes], values, graph.heads)


def _outer_value(inner: Builder, x: Value) -> Value:
    """A value of the outer graph, inside a body."""
    return Value(inner, x.name, x.shapes, x.dtype, x.array)


def _input(inner: Builder, name: str, x: Value, shapes: Any = None) -> Value:
    """A new input of a body, with the shape and dtype of a value."""
    return Value(inner, inner.names(f"{inner.prefix}_{name}"), x.shapes if shapes is None else shapes, x.dtype)


@says("_foreach")
def _foreach(g: Builder, use: Use, *ins: Value) -> Any:
    attrs = use.attrs
    count, visible = attrs["num_out_data"], attrs["num_outputs"]
    n_data, n_states = len(attrs["in_data_locs"]), len(attrs["in_state_locs"])
    places = (*attrs["in_data_locs"], *attrs["in_state_locs"], *attrs["remain_locs"])
    data, states, rest = ins[:n_data], ins[n_data:n_data + n_states], ins[n_data + n_states:]
    if g.opset < 9:
        raise Untranslatable("ONNX has Scan, as loops need it, from opset 9 on")
    inner = g.body()
    # A row of a vector has an axis in this library, and none in ONNX.
    slices = [_input(inner, f"row{i}", x, [shape[1:] for shape in x.shapes if shape is not None])
              for i, x in enumerate(data)]
    before = [_input(inner, f"state{i}", x) for i, x in enumerate(states)]
    rows = [inner.reshape(x, (1,)) if x.shape == () else x for x in slices]
    values: list[Any] = [None] * len(places)
    for place, value in zip(places, [*rows, *before, *[_outer_value(inner, x) for x in rest]]):
        values[place] = value
    result = _body(inner, attrs["subgraphs"][0], values)
    after = [_like(inner, value, state) for value, state in zip(result[count:], before)]
    graph = inner.graph(f"{use.name}_body", [*before, *slices], [*after, *result[:count]])
    outs = g("Scan", *states, *data, count=visible, body=graph, num_scan_inputs=n_data)
    outs = [outs] if visible == 1 else list(outs)
    return _set_shapes(use, [*outs[n_states:], *outs[:n_states]])


def _like(g: Builder, value: Value, state: Value) -> Value:
    """The next state, in the shape and dtype of the previous one."""
    value = g.cast(value, state.dtype)
    return value if len(value.shape) == len(state.shape) else g.reshape(value, state.shape)


def _set_shapes(use: Use, outs: Sequence[Value]) -> list[Value]:
    """Results of loops, with their known shapes."""
    for value, out in zip(outs, use.outs):
        value.shapes, value.dtype = out.shapes, out.dtype
    return list(outs)


@says("_while_loop")
def _while(g: Builder, use: Use, *ins: Value) -> Any:
    attrs = use.attrs
    condition, body = attrs["subgraphs"]
    count, visible, most = attrs["num_out_data"], attrs["num_outputs"], attrs["max_iterations"]
    at = [attrs["func_input_locs"][place] for place in attrs["func_var_locs"]]

    def goes_on(graph: Builder, values: Sequence[Value]) -> Value:
        (found,) = _body(graph, condition, [values[place] for place in attrs["cond_input_locs"]])
        return graph.reshape(graph.truth(found), ())

    inner = g.body()
    number = Value(inner, inner.names(f"{g.prefix}_round"), [()] * g.sizes, np.dtype(np.int64))
    going = Value(inner, inner.names(f"{g.prefix}_going"), [()] * g.sizes, _BOOL)
    before = [_input(inner, f"variable{i}", ins[place]) for i, place in enumerate(at)]
    values = [_outer_value(inner, x) for x in ins]
    for place, value in zip(at, before):
        values[place] = value
    result = _body(inner, body, [values[place] for place in attrs["func_input_locs"]])
    after = [_like(inner, value, state) for value, state in zip(result[count:], before)]
    for place, value in zip(at, after):
        values[place] = value
    graph = inner.graph(f"{use.name}_body", [number, going, *before],
                        [goes_on(inner, values), *after, *result[:count]])
    start = goes_on(g, ins)
    outs = g("Loop", g.constant(np.asarray(most, np.int64)), start, *[ins[place] for place in at], count=visible,
             body=graph)
    outs = [outs] if visible == 1 else list(outs)
    stacked = []
    for value, one in zip(outs[len(at):], result):  # rows after the last iteration are zero
        value.shapes = [(ANY, *shape) for shape in one.shapes if shape is not None]
        rest = g.slice(g("Shape", value), [1], [len(one.shape) + 1], [0])
        zeros = g("Expand", g.constant(np.zeros((), value.dtype)), g("Concat", g.ints(most), rest, axis=0))
        zeros.shapes = [(most, *shape) for shape in one.shapes if shape is not None]
        stacked.append(g.slice(g("Concat", value, zeros, axis=0), [0], [most], [0]))
    return _set_shapes(use, [*stacked, *outs[:len(at)]])


@says("_cond")
def _cond(g: Builder, use: Use, *ins: Value) -> Any:
    attrs = use.attrs
    (predicate,) = _body(g, attrs["subgraphs"][0], [ins[place] for place in attrs["cond_input_locs"]])
    branches = {}
    for which, key in enumerate(("then", "else"), 1):
        inner = g.body()
        result = _body(inner, attrs["subgraphs"][which],
                       [_outer_value(inner, ins[place]) for place in attrs[f"{key}_input_locs"]])
        branches[f"{key}_branch"] = inner.graph(f"{use.name}_{key}", [], result)
    outs = g("If", g.reshape(g.truth(predicate), ()), count=attrs["num_outputs"], **branches)
    return _set_shapes(use, [outs] if attrs["num_outputs"] == 1 else outs)
