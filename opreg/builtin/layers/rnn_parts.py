"""Parts of recurrent layers: their attributes, the positions of weights in the parameter vector, and hidden outputs.

Arrays of all steps have the layout (direction, gate, time, batch, features), so that a gate of a step is contiguous.
States and cells have one more step than there are time steps: the first is the initial state.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...core.cache import cached
from ...core.spec import Shape
from ...errors import AttrError
from ...typing import Array

__all__ = ["GATES", "Residuals", "Kind", "Part", "count", "kind_of", "gate_view", "parts_of", "reserve_size", "views"]

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


class Kind(NamedTuple):
    """The attributes that make a recurrent layer."""

    mode: str
    size: int
    projection: int
    layers: int
    directions: int
    p: float
    clip: tuple[float, float] | None
    clip_nan: bool
    lengths: bool

    @property
    def gates(self) -> int:
        """Number of gates of a cell."""
        return GATES[self.mode]

    @property
    def out(self) -> int:
        """Features of the output of one direction."""
        return self.projection or self.size


def kind_of(*, mode: str, state_size: int, num_layers: int, bidirectional: bool, p: float, projection_size: int | None,
            lstm_state_clip_min: float | None, lstm_state_clip_max: float | None, lstm_state_clip_nan: bool,
            use_sequence_length: bool, **others: Any) -> Kind:
    """The attributes of ``RNN``, checked."""
    if state_size < 1 or num_layers < 1:
        raise AttrError(f"state_size={state_size}, num_layers={num_layers}: expected positive numbers")
    if not 0.0 <= p < 1.0:
        raise AttrError(f"p={p}: expected a probability below 1")
    if projection_size and mode != "lstm":
        raise AttrError(f"projection_size={projection_size}: only the mode lstm has projections, mode is {mode}")
    clip = (lstm_state_clip_min, lstm_state_clip_max)
    if mode == "lstm" and (clip[0] is None) != (clip[1] is None):
        raise AttrError("lstm_state_clip_min and lstm_state_clip_max: expected both or neither")
    limits = None if mode != "lstm" or clip[0] is None or clip[1] is None else (clip[0], clip[1])
    return Kind(mode, state_size, projection_size or 0, num_layers, 2 if bidirectional else 1, p, limits,
                lstm_state_clip_nan, use_sequence_length)


# ------------------------------------------------------------------------------------------ the parameters


class Part(NamedTuple):
    """A matrix or vector in the vector of parameters."""

    start: int
    shape: Shape

    def of(self, vector: Array) -> Array:
        """The view of the packed vector that holds this part."""
        size = self.shape[0] * (self.shape[1] if len(self.shape) > 1 else 1)
        return vector[self.start:self.start + size].reshape(self.shape)


def _features(kind: Kind, inputs: int, layer: int) -> int:
    return inputs if layer == 0 else kind.directions * kind.out


def count(kind: Kind, inputs: int) -> int:
    """Number of parameters; unknown if the number of inputs is unknown."""
    rows, projections = kind.gates * kind.size, kind.projection * kind.size
    first = rows * (inputs + kind.out) + projections
    later = rows * (kind.directions + 1) * kind.out + projections
    return kind.directions * (first + (kind.layers - 1) * later + kind.layers * 2 * rows)


@cached(256)
def parts_of(kind: Kind, inputs: int) -> list[list[dict[str, Part]]]:
    """Positions of the weights in the vector, by layer and direction: first all weights, then all biases."""
    rows, at = kind.gates * kind.size, 0
    layers: list[list[dict[str, Part]]] = []
    for layer in range(kind.layers):
        layers.append([])
        for _ in range(kind.directions):
            shapes = {"input": (rows, _features(kind, inputs, layer)), "state": (rows, kind.out)}
            if kind.projection:
                shapes["projection"] = (kind.projection, kind.size)
            parts = {}
            for name, shape in shapes.items():
                parts[name] = Part(at, shape)
                at += shape[0] * shape[1]
            layers[-1].append(parts)
    for layer in range(kind.layers):
        for parts in layers[layer]:
            for name in ("input_bias", "state_bias"):
                parts[name] = Part(at, (rows,))
                at += rows
    return layers


def gate_view(kind: Kind, part: Part, vector: Array) -> Array:
    """The part of a vector as a view with gates as the first axis."""
    return part.of(vector).reshape(kind.gates, kind.size, *part.shape[1:])


# ------------------------------------------------------------------------------------------------ residuals


class Residuals(NamedTuple):
    """Arrays that a layer stores for its gradient: gates, the states of its cells (for a GRU, the candidate's part from
    the state), outputs, and the mask of the dropout after it."""

    gates: Array
    cells: Array
    states: Array
    mask: Array


def _kept_shapes(kind: Kind, time: int, batch: int, layer: int) -> list[Shape]:
    """The shapes of the arrays in ``Residuals``; an array that a layer lacks has no elements."""
    d, cell = kind.directions, kind.size if kind.gates > 1 else 0
    return [(d, kind.gates, time, batch, cell), (d, time + 1, batch, cell), (d, time + 1, batch, kind.out),
            (time, batch, d * kind.out if kind.p and layer < kind.layers - 1 else 0)]


def reserve_size(kind: Kind, time: int, batch: int) -> int:
    """Number of elements that all layers store."""
    return sum(math.prod(shape) for layer in range(kind.layers) for shape in _kept_shapes(kind, time, batch, layer))


def views(kind: Kind, reserve: Array, time: int, batch: int) -> list[Residuals]:
    """Views of the stored arrays of each layer."""
    at, layers = 0, []
    for layer in range(kind.layers):
        arrays = []
        for shape in _kept_shapes(kind, time, batch, layer):
            size = math.prod(shape)
            arrays.append(reserve[at:at + size].reshape(shape))
            at += size
        layers.append(Residuals(*arrays))
    return layers
