"""Recurrent cells: symbols of one step, unrolled over time; and all steps in one operator.

A cell's weights are variables named by its prefix; ``unpack_weights`` splits them by gate, and ``pack_weights`` joins
them again, so that weights can be moved from a fused cell to single ones and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opreg import symbol
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol

from ..core.settings import whole_number
from ..errors import ArgumentError, OpError
from .base_rnn_cell import Activation, BaseRNNCell, RNNParams, StateInfo, Steps, Weights, apply, as_steps
from .composed_rnn_cells import (
    BidirectionalCell,
    DropoutCell,
    ModifierCell,
    ResidualCell,
    SequentialRNNCell,
    ZoneoutCell,
)
from .initializer import FusedRNN, Initializer, LSTMBias
from .rnn_weights import PackedWeights

__all__ = ["RNNParams", "BaseRNNCell", "RNNCell", "LSTMCell", "GRUCell", "FusedRNNCell", "SequentialRNNCell",
           "BidirectionalCell", "ModifierCell", "DropoutCell", "ZoneoutCell", "ResidualCell"]


class _WeightedCell(BaseRNNCell):
    """Base of cells with a weight and a bias for the input and for the last output."""

    def __init__(self, num_hidden: int, prefix: str, params: RNNParams | None, bias_init: Initializer | None = None):
        super().__init__(prefix, params)
        self._num_hidden = whole_number(f"{type(self).__name__}: num_hidden", num_hidden, 1)
        init = {} if bias_init is None else {"init": bias_init}
        self._iW, self._iB = self._params.get("i2h_weight"), self._params.get("i2h_bias", **init)
        self._hW, self._hB = self._params.get("h2h_weight"), self._params.get("h2h_bias")

    @property
    def state_info(self) -> list[StateInfo]:
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"}]

    def _products(self, inputs: Symbol, state: Symbol, name: str) -> tuple[Symbol, Symbol]:
        size = self._num_hidden * max(len(self._gate_names), 1)
        dense = symbol.surface("FullyConnected")
        return (dense(inputs, self._iW, self._iB, num_hidden=size, name=f"{name}i2h"),
                dense(state, self._hW, self._hB, num_hidden=size, name=f"{name}h2h"))


class RNNCell(_WeightedCell):
    """The Elman cell: ``activation(W x + U h + b)``.

    Parameters
    ----------
    num_hidden : int
        Length of the output.
    activation : str or function
        See the operator ``Activation``.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = RNNCell(4)
    >>> outputs, states = cell.unroll(2, [mx.sym.var("t0"), mx.sym.var("t1")])
    >>> len(outputs), len(states)
    (2, 1)
    """

    def __init__(self, num_hidden: int, activation: Activation = "tanh", prefix: str = "rnn_",
                 params: RNNParams | None = None):
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    @property
    def _gate_names(self) -> tuple[str, ...]:
        return ("",)

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        self._counter += 1
        name = f"{self._prefix}t{self._counter}_"
        i2h, h2h = self._products(inputs, states[0], name)
        output = self._get_activation(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


class LSTMCell(_WeightedCell):
    """Long short-term memory; the states are output and cell.

    S. Hochreiter, J. Schmidhuber, Long short-term memory, 1997.

    Parameters
    ----------
    forget_bias : float
        Initial value of the forget gate's bias.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = LSTMCell(4)
    >>> outputs, states = cell.unroll(2, [mx.sym.var("t0"), mx.sym.var("t1")])
    >>> len(outputs), len(states)
    (2, 2)
    """

    def __init__(self, num_hidden: int, prefix: str = "lstm_", params: RNNParams | None = None,
                 forget_bias: float = 1.0):
        super().__init__(num_hidden, prefix, params, LSTMBias(forget_bias))

    @property
    def state_info(self) -> list[StateInfo]:
        return super().state_info * 2

    @property
    def _gate_names(self) -> tuple[str, ...]:
        return ("_i", "_f", "_c", "_o")

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        self._counter += 1
        name = f"{self._prefix}t{self._counter}_"
        i2h, h2h = self._products(inputs, states[0], name)
        gates = symbol.surface("SliceChannel")(i2h + h2h, num_outputs=4, name=f"{name}slice")
        return self._lstm_step(gates, states[1], "tanh", name)


class GRUCell(_WeightedCell):
    """The gated recurrent unit; the reset gate is applied after the product, as in cuDNN.

    K. Cho et al., Learning phrase representations using RNN encoder-decoder for statistical machine translation, 2014.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = GRUCell(4)
    >>> outputs, states = cell.unroll(2, [mx.sym.var("t0"), mx.sym.var("t1")])
    >>> len(outputs), len(states)
    (2, 1)
    """

    def __init__(self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None):
        super().__init__(num_hidden, prefix, params)

    @property
    def _gate_names(self) -> tuple[str, ...]:
        return ("_r", "_z", "_o")

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        self._counter += 1
        name = f"{self._prefix}t{self._counter}_"
        i2h, h2h = self._products(inputs, states[0], f"{name}_")
        split = symbol.surface("SliceChannel")
        i2h = split(i2h, num_outputs=3, name=f"{name}_i2h_slice")
        h2h = split(h2h, num_outputs=3, name=f"{name}_h2h_slice")
        reset = self._get_activation(i2h[0] + h2h[0], "sigmoid", name=f"{name}_r_act")
        update = self._get_activation(i2h[1] + h2h[1], "sigmoid", name=f"{name}_z_act")
        new = self._get_activation(i2h[2] + reset * h2h[2], "tanh", name=f"{name}_h_act")
        output = apply("elemwise_add", (1.0 - update) * new, update * states[0], name=f"{name}out")
        return output, [output]


class FusedRNNCell(BaseRNNCell):
    """All steps and layers in one operator, ``RNN``, with all weights in one array.

    Parameters
    ----------
    num_hidden, num_layers, mode, bidirectional, dropout
        See the operator ``RNN``.
    get_next_state : bool
        Whether ``unroll`` returns the states after the last step.
    forget_bias : float
        Initial value of the bias of an LSTM's forget gate.
    prefix : str or None
        The mode's name by default.
    """

    _has_steps = False

    def __init__(self, num_hidden: int, num_layers: int = 1, mode: str = "lstm", bidirectional: bool = False,
                 dropout: float = 0.0, get_next_state: bool = False, forget_bias: float = 1.0,
                 prefix: str | None = None, params: RNNParams | None = None):
        prefix = f"{mode}_" if prefix is None else prefix
        self._packed = PackedWeights(num_hidden, num_layers, mode, bidirectional, prefix)
        super().__init__(prefix, params)
        self._num_hidden, self._num_layers, self._mode = num_hidden, num_layers, mode
        self._bidirectional, self._dropout, self._get_next_state = bidirectional, dropout, get_next_state
        self._parameter = self._params.get("parameters", init=FusedRNN(
            None, num_hidden, num_layers, mode, bidirectional, forget_bias))

    @property
    def state_info(self) -> list[StateInfo]:
        shape = (len(self._packed.directions) * self._num_layers, 0, self._num_hidden)
        return [{"shape": shape, "__layout__": "LNC"}] * (2 if self._mode == "lstm" else 1)

    @property
    def _gate_names(self) -> tuple[str, ...]:
        return self._packed.gates

    def unpack_weights(self, args: Weights) -> dict[str, NDArray]:
        args = dict(args)
        vector = args.pop(f"{self._prefix}parameters")
        return {**args, **self._packed.unpack(vector)}

    def pack_weights(self, args: Weights) -> dict[str, NDArray]:
        vector = self._packed.pack(args)
        packed = {name for name, _, _ in self._packed.parts(vector.size)}
        return {**{name: value for name, value in args.items() if name not in packed},
                f"{self._prefix}parameters": vector}

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        raise OpError("a FusedRNNCell cannot run single steps: use unroll, or the cells that unfuse returns")

    def unroll(self, length: int, inputs: Steps, begin_state: list[Symbol] | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, list[Symbol]]:
        self.reset()
        sequence, axis = as_steps(length, inputs, layout, True)
        swap = symbol.surface("swapaxes")
        if axis == 1:
            sequence = swap(sequence, dim1=0, dim2=1)
        elif axis != 0:
            raise ArgumentError(f"layout={layout!r}: expected NTC or TNC")
        states = self.begin_state() if begin_state is None else begin_state
        begin = {"state": states[0], **({"state_cell": states[1]} if self._mode == "lstm" else {})}
        results = symbol.surface("RNN")(data=sequence, parameters=self._parameter, **begin, state_size=self._num_hidden,
                                        num_layers=self._num_layers, bidirectional=self._bidirectional,
                                        p=self._dropout, state_outputs=self._get_next_state, mode=self._mode,
                                        name=f"{self._prefix}rnn")
        outputs, after = results, []
        if self._get_next_state:
            outputs, after = results[0], [results[1 + i] for i in range(len(begin))]
        if axis == 1:
            outputs = swap(outputs, dim1=0, dim2=1)
        return as_steps(length, outputs, layout, merge_outputs)[0], after

    def unfuse(self) -> SequentialRNNCell:
        """Single cells that use the weights of ``unpack_weights``, and compute the same."""
        make: Callable[[str], BaseRNNCell] = {
            "rnn_relu": lambda prefix: RNNCell(self._num_hidden, "relu", prefix),
            "rnn_tanh": lambda prefix: RNNCell(self._num_hidden, "tanh", prefix),
            "lstm": lambda prefix: LSTMCell(self._num_hidden, prefix),
            "gru": lambda prefix: GRUCell(self._num_hidden, prefix),
        }[self._mode]
        stack = SequentialRNNCell()
        for layer in range(self._num_layers):
            if self._bidirectional:
                stack.add(BidirectionalCell(make(f"{self._prefix}l{layer}_"), make(f"{self._prefix}r{layer}_"),
                                            output_prefix=f"{self._prefix}bi_l{layer}_"))
            else:
                stack.add(make(f"{self._prefix}l{layer}_"))
            if self._dropout > 0 and layer != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{self._prefix}_dropout{layer}_"))
        return stack
