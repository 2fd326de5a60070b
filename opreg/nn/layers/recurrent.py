"""Recurrent layers over the fused operator RNN, and cells of one step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from ...cells import initializer as initializers
from ...cells.cell import Cell
from ...cells.dtype import float32
from ...cells.tensor import Tensor
from ...cells.trace import create
from ...cells.typing import TensorDType
from ...core.registry import get, ops
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from .checks import chance, check_int, check_word, flag, new_parameter

__all__ = ["RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"]

#: States of a layer: the hidden states; for an LSTM a pair of hidden and cell states.
States: TypeAlias = Tensor | tuple[Tensor, ...]


class _Recurrent(Cell):
    """Base of recurrent layers, stacked on top of each other; the parameters of each are ``weight_ih_l0``,
    ``bias_hh_l1_reverse`` and so on."""

    _mode = ""
    _gates = 1

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, has_bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 dtype: TensorDType = float32):
        super().__init__()
        self.input_size = check_int(self, "input_size", input_size)
        self.hidden_size = check_int(self, "hidden_size", hidden_size)
        self.num_layers, self.has_bias = check_int(self, "num_layers", num_layers), flag(self, "has_bias", has_bias)
        self.batch_first = flag(self, "batch_first", batch_first)
        self.dropout = chance(self, "dropout", dropout, high=False)
        self.bidirectional = flag(self, "bidirectional", bidirectional)
        self.num_directions = 2 if bidirectional else 1
        within = initializers.Uniform(1 / math.sqrt(hidden_size))
        for kind in ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if has_bias else ())):
            for i, place in enumerate(self._parameter_suffixes()):
                rows = self._gates * hidden_size
                inputs = input_size if i < self.num_directions else hidden_size * self.num_directions
                shape = {"weight_ih": (rows, inputs), "weight_hh": (rows, hidden_size)}.get(kind, (rows,))
                setattr(self, kind + place, new_parameter(within, shape, kind + place, dtype))

    def _parameter_suffixes(self) -> list[str]:
        """Suffixes of parameter names: layer by layer, forward then backward."""
        ends = ("", "_reverse")[:self.num_directions]
        return [f"_l{layer}{end}" for layer in range(self.num_layers) for end in ends]

    def _pack_parameters(self, x: Tensor) -> Tensor:
        """All parameters in one vector, in the operator's order: weights of each layer, then biases."""
        parts = [getattr(self, kind + place).reshape(-1) for place in self._parameter_suffixes()
                 for kind in ("weight_ih", "weight_hh")]
        if self.has_bias:
            parts += [getattr(self, kind + place) for place in self._parameter_suffixes()
                      for kind in ("bias_ih", "bias_hh")]
        else:
            count = 2 * self._gates * self.hidden_size * len(self._parameter_suffixes())
            parts.append(create(get("_zeros"), shape=(count,), dtype=x._dt))
        return ops.Concat(*parts, num_args=len(parts), dim=0)

    def _states(self, x: Tensor, hx: States | None) -> tuple[Tensor, ...]:
        """The given initial states, or zeros."""
        count = 2 if self._mode == "lstm" else 1
        shape = (len(self._parameter_suffixes()), x.shape[1], self.hidden_size)
        if hx is None:
            return tuple(create(get("_zeros"), shape=shape, dtype=x._dt) for _ in range(count))
        states = hx if isinstance(hx, (tuple, list)) else (hx,)
        if len(states) != count or (count == 2 and not isinstance(hx, (tuple, list))):
            expected = "a pair of tensors" if count == 2 else "a tensor"
            raise ArgumentError(f"{type(self).__name__}: hx must be {expected}, got {type(hx).__name__}")
        for state in states:
            if state.shape != shape:
                raise ShapeError(f"{type(self).__name__}: expected states of shape {show(shape)}, got "
                                 f"{show(state.shape)}")
        return tuple(states)

    def construct(self, x: Tensor, hx: States | None = None, seq_length: Tensor | None = None
                  ) -> tuple[Tensor, States]:
        """Outputs of the last layer at all steps, and the last states of all layers.

        Parameters
        ----------
        x : Tensor of shape (time, batch, input_size)
            With ``batch_first`` (batch, time, input_size).
        hx : Tensor of shape (layers * directions, batch, hidden_size), optional
            Initial states, zeros by default; for an LSTM a pair.
        seq_length : Tensor of shape (batch,), optional
            Number of valid steps of each sample; later outputs are zeros.
        """
        if len(x.shape) != 3 or x.shape[2] != self.input_size:
            raise ShapeError(f"{type(self).__name__}: expected 3 axes, {self.input_size} inputs in the last, got the "
                             f"shape {show(x.shape)}")
        if self.batch_first:
            x = x.transpose(1, 0, 2)
        inputs = [x, self._pack_parameters(x), *self._states(x, hx)]
        if seq_length is not None:
            inputs.append(seq_length)
        attrs = {"state_size": self.hidden_size, "num_layers": self.num_layers, "bidirectional": self.bidirectional,
                 "mode": self._mode, "state_outputs": True, "use_sequence_length": seq_length is not None}
        y, *states = ops.RNN(*inputs, p=self.dropout if self.training else 0.0, **attrs)
        if self.batch_first:
            y = y.transpose(1, 0, 2)
        return y, tuple(states) if len(states) == 2 else states[0]

    def extend_repr(self) -> str:
        """Sizes, and settings that differ from the default."""
        parts = [f"{name}={getattr(self, name)}" for name in ("input_size", "hidden_size")]
        for name, usual in (("num_layers", 1), ("has_bias", True), ("batch_first", False), ("dropout", 0.0),
                            ("bidirectional", False)):
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)


class RNN(_Recurrent):
    """Layers of ``h = tanh(W x + b + V h + c)``, or relu.

    Parameters
    ----------
    input_size, hidden_size, num_layers : int
    has_bias, batch_first : bool
    dropout : float
        Probability of dropout between layers, in training.
    bidirectional : bool
        Whether each layer also reads the sequence from its end.
    nonlinearity : {"tanh", "relu"}

    Examples
    --------
    >>> import opreg.nn as nn
    >>> outputs, last = RNN(3, 4)(nn.Tensor([[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]]))
    >>> outputs.shape, last.shape
    ((2, 1, 4), (1, 1, 4))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, has_bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 dtype: TensorDType = float32, *, nonlinearity: str = "tanh"):
        super().__init__(input_size, hidden_size, num_layers, has_bias, batch_first, dropout, bidirectional, dtype)
        self.nonlinearity = check_word(self, "nonlinearity", nonlinearity, ("tanh", "relu"))
        self._mode = f"rnn_{self.nonlinearity}"


class LSTM(_Recurrent):
    """Layers of long short-term memory; states are a pair, hidden and cell; see ``RNN``.

    Rows of the weights are ordered by gates: input, forget, candidate, output.

    Notes
    -----
    S. Hochreiter, J. Schmidhuber, Long Short-Term Memory, Neural Computation 9, 1997.

    Examples
    --------
    >>> from opreg import ops
    >>> output, (hidden, state) = LSTM(4, 8, num_layers=2)(ops.ones((5, 3, 4)))
    >>> output.shape, hidden.shape, state.shape
    ((5, 3, 8), (2, 3, 8), (2, 3, 8))
    """

    _mode, _gates = "lstm", 4


class GRU(_Recurrent):
    """Layers of gated recurrent units; see ``RNN``.

    Rows of the weights are ordered by gates: reset, update, candidate. The reset gate scales ``V h + c``, including the
    bias.

    Notes
    -----
    K. Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, arXiv:1406.1078.

    Examples
    --------
    >>> from opreg import ops
    >>> output, hidden = GRU(4, 8, bidirectional=True)(ops.ones((5, 3, 4)))
    >>> output.shape, hidden.shape
    ((5, 3, 16), (2, 3, 8))
    """

    _mode, _gates = "gru", 3


# ------------------------------------------------------------------------------------------------ one step


class _Step(Cell):
    """Base of cells of one step, with the parameters ``weight_ih``, ``weight_hh``, ``bias_ih``, ``bias_hh``."""

    _gates = 1

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: TensorDType = float32):
        super().__init__()
        self.input_size = check_int(self, "input_size", input_size)
        self.hidden_size = check_int(self, "hidden_size", hidden_size)
        self.has_bias, rows = flag(self, "has_bias", has_bias), self._gates * hidden_size
        within = initializers.Uniform(1 / math.sqrt(hidden_size))
        self.weight_ih = new_parameter(within, (rows, input_size), "weight_ih", dtype)
        self.weight_hh = new_parameter(within, (rows, hidden_size), "weight_hh", dtype)
        self.bias_ih = new_parameter(within, (rows,), "bias_ih", dtype) if has_bias else None
        self.bias_hh = new_parameter(within, (rows,), "bias_hh", dtype) if has_bias else None

    def _products(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """``W x + b`` and ``V h + c``."""
        for name, value, size in (("x", x, self.input_size), ("hx", h, self.hidden_size)):
            if len(value.shape) != 2 or value.shape[1] != size:
                raise ShapeError(f"{type(self).__name__}: expected {name} of shape (batch, {size}), got "
                                 f"{show(value.shape)}")
        attrs = {"num_hidden": self._gates * self.hidden_size, "no_bias": not self.has_bias}
        biases = ((self.bias_ih,), (self.bias_hh,)) if self.has_bias else ((), ())
        return (ops.FullyConnected(x, self.weight_ih, *biases[0], **attrs),
                ops.FullyConnected(h, self.weight_hh, *biases[1], **attrs))


class RNNCell(_Step):
    """One step of an ``RNN``: the next ``hx`` from ``x`` (batch, input_size) and ``hx`` (batch, hidden_size).

    Examples
    --------
    >>> from opreg import ops
    >>> RNNCell(4, 8)(ops.ones((3, 4)), ops.zeros((3, 8))).shape
    (3, 8)
    """

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, nonlinearity: str = "tanh",
                 dtype: TensorDType = float32):
        super().__init__(input_size, hidden_size, has_bias, dtype)
        self.nonlinearity = check_word(self, "nonlinearity", nonlinearity, ("tanh", "relu"))

    def construct(self, x: Tensor, hx: Tensor) -> Tensor:
        """The next state."""
        of_x, of_h = self._products(x, hx)
        return ops.Activation(of_x + of_h, act_type=self.nonlinearity)


class LSTMCell(_Step):
    """One step of an ``LSTM``: the next pair of states from ``x`` and a pair of states, hidden and cell.

    Examples
    --------
    >>> from opreg import ops
    >>> hidden, state = LSTMCell(4, 8)(ops.ones((3, 4)), (ops.zeros((3, 8)), ops.zeros((3, 8))))
    >>> hidden.shape, state.shape
    ((3, 8), (3, 8))
    """

    _gates = 4

    def construct(self, x: Tensor, hx: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """The next states."""
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            raise ArgumentError(f"LSTMCell: hx must be a pair of tensors, got {type(hx).__name__}")
        of_x, of_h = self._products(x, hx[0])
        into, forget, candidate, out = ops.SliceChannel(of_x + of_h, num_outputs=4, axis=1)
        cell = ops.sigmoid(forget) * hx[1] + ops.sigmoid(into) * ops.tanh(candidate)
        return ops.sigmoid(out) * ops.tanh(cell), cell


class GRUCell(_Step):
    """One step of a ``GRU``: the next ``hx`` from ``x`` (batch, input_size) and ``hx`` (batch, hidden_size).

    Examples
    --------
    >>> from opreg import ops
    >>> GRUCell(4, 8)(ops.ones((3, 4)), ops.zeros((3, 8))).shape
    (3, 8)
    """

    _gates = 3

    def construct(self, x: Tensor, hx: Tensor) -> Tensor:
        """The next state."""
        of_x, of_h = (ops.SliceChannel(product, num_outputs=3, axis=1) for product in self._products(x, hx))
        reset, update = (ops.sigmoid(of_x[i] + of_h[i]) for i in (0, 1))
        candidate = ops.tanh(of_x[2] + reset * of_h[2])
        return candidate + update * (hx - candidate)
