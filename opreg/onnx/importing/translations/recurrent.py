"""Rows of recurrent layers: by the operator RNN if it supports them, otherwise step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from opreg.core.registry import ops
from opreg.errors import AttrError, did_you_mean

from ..graph import Node
from ..rows import Given, row

__all__ = ["activation"]

_ACTIVATIONS: dict[str, Callable[[Any, float, float], Any]] = {
    "relu": lambda x, a, b: ops.relu(x), "tanh": lambda x, a, b: ops.tanh(x), "sigmoid": lambda x, a, b: ops.sigmoid(x),
    "affine": lambda x, a, b: x * a + b, "leakyrelu": lambda x, a, b: ops.LeakyReLU(x, act_type="leaky", slope=a),
    "thresholdedrelu": lambda x, a, b: x * (x > a), "scaledtanh": lambda x, a, b: ops.tanh(x * b) * a,
    "hardsigmoid": lambda x, a, b: ops.hard_sigmoid(x, alpha=a, beta=b),
    "elu": lambda x, a, b: ops.LeakyReLU(x, act_type="elu", slope=a), "softsign": lambda x, a, b: ops.softsign(x),
    "softplus": lambda x, a, b: ops.Activation(x, act_type="softrelu"),
}
_ALPHAS = {"leakyrelu": 0.01, "thresholdedrelu": 1.0, "hardsigmoid": 0.2, "elu": 1.0, "scaledtanh": 1.0, "affine": 1.0}
_BETAS = {"hardsigmoid": 0.5, "scaledtanh": 1.0}


def activation(name: str, alphas: Iterator[float], betas: Iterator[float]) -> Callable[[Any], Any]:
    """The activation with a name; its parameters, if it has any, are the next ones of ``alphas`` and ``betas``."""
    key = name.lower()
    if key not in _ACTIVATIONS:
        raise AttrError(f"activation {name!r}. {did_you_mean(key, _ACTIVATIONS)}")
    a = next(alphas, _ALPHAS.get(key, 1.0)) if key in _ALPHAS else 1.0
    b = next(betas, _BETAS.get(key, 0.0)) if key in _BETAS or key == "affine" else 0.0
    return lambda x: _ACTIVATIONS[key](x, a, b)


class _Layer:
    """The base of the three kinds of layers, with directions, steps, sequence lengths and activations."""

    def __init__(self, node: Node, defaults: Sequence[str], direction: str, activations: Any, alphas: Any, betas: Any,
                 clip: float | None, layout: int):
        self.node, self.clip, self.layout = node, clip, layout
        if direction not in ("forward", "reverse", "bidirectional"):
            raise AttrError(f"direction={direction!r}: expected forward, reverse or bidirectional")
        self.backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
        names = list(activations or [*defaults] * len(self.backwards))
        alpha, beta = iter(alphas or ()), iter(betas or ())
        self.functions: list[Callable[[Any], Any]] = []
        for name in names:
            self.functions.append(self._clip_before(activation(name, alpha, beta)))
        self.each = len(defaults)

    def _clip_before(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        clip = self.clip
        return (lambda x: function(ops.clip(x, a_min=-clip, a_max=clip))) if clip else function

    def of(self, place: int) -> list[Callable[[Any], Any]]:
        """The activations of a direction."""
        return self.functions[place * self.each:(place + 1) * self.each]

    def run(self, x: Any, lengths: np.ndarray | None, initial: Sequence[Any], step: Callable[..., Any],
            width: int) -> tuple[Any, ...]:
        """All outputs and the last states, where ``step(direction, x, states)`` returns the new states, the output
        first."""
        node = self.node
        if self.layout:
            x = ops.transpose(x, axes=(1, 0, 2))
        count, batch, _ = node.shape(x)
        lasts: list[list[Any]] = []
        columns: list[list[Any]] = []
        for place, backwards in enumerate(self.backwards):
            states = [self._initial(state, place, batch, width, x) for state in initial]
            column: list[Any] = [None] * count
            for t in range(count)[::-1] if backwards else range(count):
                row_t = ops._np_reshape(ops.slice_axis(x, axis=0, begin=t, end=t + 1), newshape=node.shape(x)[1:])
                new = step(place, row_t, states)
                output = new[0]
                if lengths is not None:
                    on = node.lift((t < lengths)[:, None].astype(node.dtype(x)))
                    new = [ops.broadcast_mul(fresh, on) + ops.broadcast_mul(old, 1 - on)
                           for fresh, old in zip(new, states)]
                    output = ops.broadcast_mul(output, on)
                states, column[t] = new, output
            lasts.append(states)
            columns.append(column)
        outs = [ops.stack(*column, axis=0, num_args=count) for column in columns]
        everything = ops.stack(*outs, axis=1, num_args=len(outs))  # steps, directions, batch, width
        finals = [ops.stack(*[states[i] for states in lasts], axis=0, num_args=len(lasts))
                  for i in range(len(initial))]
        if self.layout:
            everything = ops.transpose(everything, axes=(2, 0, 1, 3))
            finals = [ops.transpose(final, axes=(1, 0, 2)) for final in finals]
        return (everything, *finals)

    def _initial(self, state: Any, place: int, batch: int, width: int, x: Any) -> Any:
        if state is None:
            return self.node.lift(np.zeros((batch, width), self.node.dtype(x)))
        if self.layout:
            state = ops.transpose(state, axes=(1, 0, 2))
        return self.part(state, place)

    def part(self, value: Any, place: int) -> Any:
        """The part of a parameter for one direction."""
        shape = self.node.shape(value)
        return ops._np_reshape(ops.slice_axis(value, axis=0, begin=place, end=place + 1), newshape=shape[1:])

    def gates(self, value: Any, count: int) -> list[Any]:
        """The parts of a parameter, one per gate."""
        size = self.node.shape(value)[0] // count
        return [ops.slice_axis(value, axis=0, begin=i * size, end=(i + 1) * size) for i in range(count)]


def _biases(layer: _Layer, bias: Any, place: int, count: int) -> list[Any]:
    return [0.0] * 2 * count if bias is None else layer.gates(layer.part(bias, place), 2 * count)


def _times(x: Any, weight: Any, bias: Any) -> Any:
    product = ops._npi_matmul(x, ops.transpose(weight))
    return product if isinstance(bias, float) else ops.broadcast_add(product, bias)


#: Indices of the gates in ONNX's order, for each mode of the operator RNN.
_GATES = {"lstm": (0, 2, 3, 1), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}


def _fused_layer(node: Node, mode: str, layer: _Layer, x: Any, w: Any, r: Any, b: Any, lengths: Any, *initial: Any
                 ) -> tuple[Any, ...]:
    """All steps by one operator RNN: all outputs and the last states."""
    directions, size = len(layer.backwards), node.shape(r)[-1]

    def turned(value: Any) -> Any:
        return ops.transpose(value, axes=(1, 0, 2)) if layer.layout else value

    def gates(value: Any, place: int) -> list[Any]:
        parts = layer.gates(layer.part(value, place), len(_GATES[mode]))
        return [ops._np_reshape(parts[i], newshape=(-1,)) for i in _GATES[mode]]

    x = turned(x)
    vector = [part for place in range(directions) for value in (w, r) for part in gates(value, place)]
    if b is None:
        vector.append(node.lift(np.zeros(2 * directions * len(_GATES[mode]) * size, node.dtype(x))))
    else:
        half = node.shape(b)[-1] // 2
        vector += [part for place in range(directions) for first in (0, half)
                   for part in gates(ops.slice_axis(b, axis=1, begin=first, end=first + half), place)]
    zeros = node.lift(np.zeros((directions, 1, size), node.dtype(x)))
    states = [ops.broadcast_like(zeros, x, lhs_axes=(1,), rhs_axes=(1,)) if state is None else turned(state)
              for state in initial]
    ends = [] if lengths is None else [node.lift(lengths)]
    out, *last = ops.RNN(x, ops.Concat(*vector, dim=0, num_args=len(vector)), *states, *ends, state_size=size,
                         num_layers=1, mode=mode, bidirectional=directions == 2, state_outputs=True,
                         use_sequence_length=bool(ends))
    everything = ops.expand_dims(out, axis=1) if directions == 1 else ops.transpose(
        ops.reshape(out, shape=(0, 0, directions, -1)), axes=(0, 2, 1, 3))
    if layer.layout:
        everything = ops.transpose(everything, axes=(2, 0, 1, 3))
    return (everything, *map(turned, last))


def _is_plain(node: Node, layer: _Layer, direction: str, defaults: Sequence[str], activations: Any, x: Any) -> bool:
    """Whether the operator RNN supports such a layer: no clipping, and the default activations."""
    usual = [name.lower() for name in activations or ()] in ([], [*defaults] * len(layer.backwards))
    return usual and not layer.clip and direction != "reverse" and \
        node.dtype(x).name in ("float32", "float64")


@row("RNN")
def rnn(node: Node, x: Any, w: Any, r: Any, b: Any = None, lengths: Given = None, h: Any = None, *,
        hidden_size: int | None = None, direction: str = "forward", activations: Any = None,
        activation_alpha: Any = None, activation_beta: Any = None, clip: float | None = None, layout: int = 0,
        output_sequence: int = 0) -> Any:
    layer = _Layer(node, ["Tanh"], direction, activations, activation_alpha, activation_beta, clip, layout)
    for name in ("tanh", "relu"):
        if (activations or name == "tanh") and _is_plain(node, layer, direction, [name], activations, x):
            return _fused_layer(node, f"rnn_{name}", layer, x, w, r, b, lengths, h)

    def step(place: int, x_t: Any, states: Sequence[Any]) -> list[Any]:
        bias = _biases(layer, b, place, 1)
        total = _times(x_t, layer.part(w, place), bias[0]) + _times(states[0], layer.part(r, place), bias[1])
        return [layer.of(place)[0](total)]

    return layer.run(x, None if lengths is None else node.host(lengths), [h], step, node.shape(r)[-1])


@row("GRU")
def gru(node: Node, x: Any, w: Any, r: Any, b: Any = None, lengths: Given = None, h: Any = None, *,
        hidden_size: int | None = None, direction: str = "forward", activations: Any = None,
        activation_alpha: Any = None, activation_beta: Any = None, clip: float | None = None, layout: int = 0,
        linear_before_reset: int = 0, output_sequence: int = 0) -> Any:
    layer = _Layer(node, ["Sigmoid", "Tanh"], direction, activations, activation_alpha, activation_beta, clip, layout)
    if linear_before_reset and _is_plain(node, layer, direction, ["sigmoid", "tanh"], activations, x):
        return _fused_layer(node, "gru", layer, x, w, r, b, lengths, h)

    def step(place: int, x_t: Any, states: Sequence[Any]) -> list[Any]:
        wz, wr, wh = layer.gates(layer.part(w, place), 3)
        rz, rr, rh = layer.gates(layer.part(r, place), 3)
        bz, br, bh, cz, cr, ch = _biases(layer, b, place, 3)
        f, g = layer.of(place)
        old = states[0]
        z = f(_times(x_t, wz, bz) + _times(old, rz, cz))
        reset = f(_times(x_t, wr, br) + _times(old, rr, cr))
        inner = reset * _times(old, rh, ch) if linear_before_reset else _times(reset * old, rh, ch)
        return [(1 - z) * g(_times(x_t, wh, bh) + inner) + z * old]

    return layer.run(x, None if lengths is None else node.host(lengths), [h], step, node.shape(r)[-1])


@row("LSTM")
def lstm(node: Node, x: Any, w: Any, r: Any, b: Any = None, lengths: Given = None, h: Any = None, c: Any = None,
         p: Any = None, *, hidden_size: int | None = None, direction: str = "forward", activations: Any = None,
         activation_alpha: Any = None, activation_beta: Any = None, clip: float | None = None, layout: int = 0,
         input_forget: int = 0, output_sequence: int = 0) -> Any:
    layer = _Layer(node, ["Sigmoid", "Tanh", "Tanh"], direction, activations, activation_alpha, activation_beta, clip,
                   layout)
    if p is None and not input_forget and _is_plain(node, layer, direction, ["sigmoid", "tanh", "tanh"], activations,
                                                    x):
        return _fused_layer(node, "lstm", layer, x, w, r, b, lengths, h, c)

    def step(place: int, x_t: Any, states: Sequence[Any]) -> list[Any]:
        ws, rs = layer.gates(layer.part(w, place), 4), layer.gates(layer.part(r, place), 4)
        bias = _biases(layer, b, place, 4)
        f, g, last = layer.of(place)
        old, cell = states
        i, o, forget, fresh = (_times(x_t, ws[k], bias[k]) + _times(old, rs[k], bias[k + 4]) for k in range(4))
        peep = None if p is None else layer.gates(layer.part(p, place), 3)
        if peep is not None:
            i, forget = i + ops.broadcast_mul(cell, peep[0]), forget + ops.broadcast_mul(cell, peep[2])
        i = f(i)
        forget = 1 - i if input_forget else f(forget)
        new = forget * cell + i * g(fresh)
        if peep is not None:
            o = o + ops.broadcast_mul(new, peep[1])
        return [f(o) * last(new), new]

    return layer.run(x, None if lengths is None else node.host(lengths), [h, c], step, node.shape(r)[-1])
