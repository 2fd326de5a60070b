"""The parameter array of the operator ``RNN``: names, positions and shapes of its parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from opreg.ndarray.creation import concatenate
from opreg.ndarray.ndarray import NDArray

from ..errors import ArgumentError, ShapeError, did_you_mean

__all__ = ["GATES", "PackedWeights"]

#: Endings of the names of gates, by mode.
GATES = {"rnn_relu": ("",), "rnn_tanh": ("",), "lstm": ("_i", "_f", "_c", "_o"), "gru": ("_r", "_z", "_o")}


class PackedWeights:
    """Layout of an array of recurrent weights: all weights, layer by layer, then all biases.

    Parameters
    ----------
    num_hidden, num_layers, mode, bidirectional
        See the operator ``RNN``.
    prefix : str
        Prefix of the names of the parts.
    """

    def __init__(self, num_hidden: int, num_layers: int, mode: str, bidirectional: bool, prefix: str = ""):
        if mode not in GATES:
            raise ArgumentError(f"there is no mode {mode!r}. {did_you_mean(mode, GATES)}")
        self.hidden, self.layers, self.mode, self.prefix = num_hidden, num_layers, mode, prefix
        self.gates, self.directions = GATES[mode], ("l", "r") if bidirectional else ("l",)

    @property
    def _columns(self) -> int:
        """Number of elements in a row of a gate, summed over all layers, without the first layer's input."""
        return (self.layers - 1) * (self.hidden + len(self.directions) * self.hidden + 2) + self.hidden + 2

    def size(self, inputs: int) -> int:
        """Number of elements for a given number of inputs."""
        return len(self.directions) * self.hidden * len(self.gates) * (self._columns + inputs)

    def parts(self, size: int) -> Iterator[tuple[str, slice, tuple[int, ...]]]:
        """Name, position and shape of each part of an array of that size.

        Raises
        ------
        ShapeError
            When no number of inputs gives that size.
        """
        sides = len(self.directions)
        inputs, place = size // sides // self.hidden // len(self.gates) - self._columns, 0
        if inputs < 1 or size != self.size(inputs):
            raise ShapeError(f"{self.prefix}parameters: {size} elements are not the weights of {self.layers} layers of "
                             f"{self.hidden} in mode {self.mode}")
        for kind in ("weight", "bias"):
            for layer in range(self.layers):
                columns = inputs if layer == 0 else self.hidden * sides
                for side in self.directions:
                    for group, width in (("i2h", columns), ("h2h", self.hidden)):
                        for gate in self.gates:
                            shape = (self.hidden, width) if kind == "weight" else (self.hidden,)
                            count = math.prod(shape)
                            yield f"{self.prefix}{side}{layer}_{group}{gate}_{kind}", slice(place, place + count), shape
                            place += count

    def unpack(self, vector: NDArray) -> dict[str, NDArray]:
        """Copies of the parts by name."""
        return {name: vector[place].reshape(shape).copy() for name, place, shape in self.parts(vector.size)}

    def pack(self, parts: Mapping[str, NDArray]) -> NDArray:
        """The array of parts given by name."""
        size = self.size(parts[f"{self.prefix}l0_i2h{self.gates[0]}_weight"].shape[1])
        return concatenate([parts[name].reshape((-1,)) for name, _, _ in self.parts(size)])
