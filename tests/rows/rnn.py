"""Rows of the recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from opreg.core.registry import get

from . import Row, normal

__all__ = ["ROWS"]

_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _shapes(mode: str, inputs: int, size: int, layers: int, directions: int, projection: int) -> list[tuple[int, ...]]:
    """Shapes of the weights and biases in the vector of parameters, in its order."""
    rows, out = _GATES[mode] * size, projection or size
    weights: list[tuple[int, ...]] = []
    for layer in range(layers):
        weights += [(rows, directions * out if layer else inputs), (rows, out),
                    *([(projection, size)] if projection else [])] * directions
    return weights + [(rows,)] * (2 * layers * directions)


def _cell(mode: str, by_input: np.ndarray, by_state: np.ndarray, h: np.ndarray, c: Any, clip: Any) -> tuple[Any, Any]:
    """Output and cell state of one sample after a step."""
    if mode.startswith("rnn"):
        total = by_input + by_state
        return (np.tanh(total) if mode == "rnn_tanh" else np.maximum(total, 0)), None
    if mode == "gru":
        (xr, xz, xn), (hr, hz, hn) = np.split(by_input, 3), np.split(by_state, 3)
        reset, update = _sigmoid(xr + hr), _sigmoid(xz + hz)
        return (1 - update) * np.tanh(xn + reset * hn) + update * h, None
    enter, forget, candidate, leave = np.split(by_input + by_state, 4)
    c = _sigmoid(forget) * c + _sigmoid(enter) * np.tanh(candidate)
    c = c if clip is None else np.clip(c, *clip)
    return _sigmoid(leave) * np.tanh(c), c


def _reference(*arrays: np.ndarray, mode: str, state_size: int, num_layers: int, bidirectional: bool = False,
               projection_size: int = 0, use_sequence_length: bool = False, state_outputs: bool = True,
               lstm_state_clip_min: float | None = None, lstm_state_clip_max: float | None = None) -> tuple:
    """Outputs and last states, sample by sample and step by step."""
    x, vector, h0 = arrays[:3]
    c0 = arrays[3] if mode == "lstm" else None
    lengths = arrays[-1] if use_sequence_length else [len(x)] * x.shape[1]
    clip = None if lstm_state_clip_min is None else (lstm_state_clip_min, lstm_state_clip_max)
    directions, kinds = 2 if bidirectional else 1, 3 if projection_size else 2
    parts, at = [], 0
    for shape in _shapes(mode, x.shape[2], state_size, num_layers, directions, projection_size):
        parts.append(vector[at:at + int(np.prod(shape))].reshape(shape))
        at += int(np.prod(shape))
    biases = parts[num_layers * directions * kinds:]
    last_h, last_c = h0.copy(), None if c0 is None else c0.copy()
    for layer in range(num_layers):
        outs = []
        for d in range(directions):
            row = layer * directions + d
            weights = parts[row * kinds:(row + 1) * kinds]
            y = np.zeros((*x.shape[:2], h0.shape[2]))
            for i, length in enumerate(lengths):
                h, c = h0[row, i], None if c0 is None else c0[row, i]
                for t in range(length) if d == 0 else reversed(range(length)):
                    h, c = _cell(mode, weights[0] @ x[t, i] + biases[2 * row], weights[1] @ h + biases[2 * row + 1],
                                 h, c, clip)
                    h = weights[2] @ h if projection_size else h
                    y[t, i] = h
                last_h[row, i] = h
                if last_c is not None:
                    last_c[row, i] = c
            outs.append(y)
        x = np.concatenate(outs, axis=2)
    found = (x, last_h) if last_c is None else (x, last_h, last_c)
    return found if state_outputs else found[:1]


def _inputs(mode: str, attrs: dict[str, Any], lengths: Any = None) -> list[np.ndarray]:
    time, batch, inputs, size = 4, 2, 2, attrs["state_size"]
    rows = attrs["num_layers"] * (1 + attrs.get("bidirectional", False))
    projection = attrs.get("projection_size", 0)
    shapes = _shapes(mode, inputs, size, attrs["num_layers"], 1 + attrs.get("bidirectional", False), projection)
    count = sum(int(np.prod(shape)) for shape in shapes)
    found = [normal(time, batch, inputs), normal(count, scale=0.5), normal(rows, batch, projection or size)]
    if mode == "lstm":
        found.append(normal(rows, batch, size, seed=1))
    return found + ([] if lengths is None else [np.array(lengths, "int32")])


def _row(mode: str, layers: int = 1, both: bool = False, lengths: Any = None, **others: Any) -> Row:
    attrs = {"mode": mode, "state_size": 3, "num_layers": layers, "state_outputs": True, **others}
    if both:
        attrs["bidirectional"] = True
    if lengths is not None:
        attrs["use_sequence_length"] = True
    inputs = _inputs(mode, attrs, lengths)
    return Row("RNN", inputs, attrs, lambda *arrays: _reference(*arrays, **attrs), grad=tuple(range(len(inputs) - (
        lengths is not None))), name=f"{mode},{layers},{both},{lengths},{','.join(others)}")


ROWS: list[Row] = [_row(mode, *way) for mode in _GATES for way in ((1,), (2, True), (2, True, [4, 1]))]
ROWS += [
    _row("lstm", projection_size=2),
    _row("lstm", 2, True, [3, 0], projection_size=2),
    _row("lstm", lstm_state_clip_min=-0.2, lstm_state_clip_max=0.3),
    _row("gru", state_outputs=False),
    Row("RNN", _inputs("gru", {"state_size": 3, "num_layers": 2}),
        {"mode": "gru", "state_size": 3, "num_layers": 2, "p": 0.4}, deterministic=False),
]


def _backward_row(mode: str) -> Row:
    """A row of the gradient, whose inputs are the values that forward stores."""
    attrs = {"mode": mode, "state_size": 2, "num_layers": 2, "bidirectional": True, "state_outputs": True}
    op, inputs = get("RNN"), _inputs(mode, attrs)
    whole = op.complete(attrs)
    kernel = op.kernels[0].rule.function
    *outs, reserve = kernel(np, *inputs, **whole, is_train=True, rng=None)
    heads = [normal(*out.shape, seed=i + 5) for i, out in enumerate(outs)]

    def expected(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        ins = list(arrays[len(heads):-1])

        def cost() -> float:
            return sum(float((g * y).sum()) for g, y in zip(arrays, _reference(*ins, **attrs)))

        found = []
        for i, array in enumerate(ins):
            found.append(np.zeros_like(array))
            for index in np.ndindex(array.shape):
                before, ends = array[index], []
                for step in (1e-5, -1e-5):
                    ins[i] = array.copy()
                    ins[i][index] = before + step
                    ends.append(cost())
                ins[i] = array
                found[-1][index] = (ends[0] - ends[1]) / 2e-5
        return tuple(found)

    return Row("_backward_RNN", [*heads, *inputs, reserve], attrs, expected, dtypes=("float64",), name=mode)


ROWS += [_backward_row("lstm"), _backward_row("gru")]
