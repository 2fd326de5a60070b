"""Recurrent cells: symbols of one step, unrolled over time.

A cell's weights are variables named by its prefix; ``unpack_weights`` splits them by gate, and ``pack_weights`` joins
them again, so that weights can be moved from a fused cell to single ones and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from opreg import symbol
from opreg.ndarray.creation import concatenate
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol

from ..core.registry import get
from ..core.spec import Shape
from ..errors import ArgumentError, OpError
from .initializer import FusedRNN, Initializer, LSTMBias
from .rnn_weights import PackedWeights

__all__ = ["RNNParams", "BaseRNNCell", "RNNCell", "LSTMCell", "GRUCell", "FusedRNNCell", "SequentialRNNCell",
           "BidirectionalCell", "ModifierCell", "DropoutCell", "ZoneoutCell", "ResidualCell"]

Weights: TypeAlias = Mapping[str, NDArray]
#: Inputs of several steps: one symbol of all, or one for each.
Steps: TypeAlias = Symbol | Sequence[Symbol]
#: An activation of the operator of that name, or a function of a symbol.
Activation: TypeAlias = str | Callable[..., Symbol]
#: Shape and layout of a state.
StateInfo: TypeAlias = dict[str, Any]


def named(op: str, *inputs: Symbol, name: str) -> Symbol:
    """An operator of two symbols, with a name."""
    return symbol.surface(get(op).name)(*inputs, name=name)


class RNNParams:
    """The variables of cells, made at their first use; cells with the same object share them.

    Examples
    --------
    >>> params = RNNParams("lstm_")
    >>> params.get("i2h_weight") is params.get("i2h_weight")
    True
    """

    def __init__(self, prefix: str = ""):
        self._prefix = prefix
        self._params: dict[str, Symbol] = {}

    def get(self, name: str, **kwargs: Any) -> Symbol:
        """The variable of that name, with the prefix."""
        name = self._prefix + name
        if name not in self._params:
            self._params[name] = symbol.var(name, **kwargs)
        return self._params[name]


def _sequence(length: int, inputs: Steps, layout: str, merge: bool | None, in_layout: str | None = None
              ) -> tuple[Any, int]:
    """Inputs as one symbol (``merge`` true), as a list of steps (false) or unchanged (None), and the time axis."""
    if "T" not in layout:
        raise ArgumentError(f"layout={layout!r}: expected a layout with T, the time axis")
    axis = layout.find("T")
    in_axis = axis if in_layout is None else in_layout.find("T")
    if isinstance(inputs, Symbol):
        if merge is False:
            if len(inputs.list_outputs()) != 1:
                raise ArgumentError("unroll: expected one symbol, or a list of a symbol for each step; got a group")
            split = symbol.surface("split")
            parts = split(inputs, axis=in_axis, num_outputs=length, squeeze_axis=True)
            return ([parts] if length == 1 else list(parts)), axis
        if axis != in_axis:
            inputs = symbol.surface("swapaxes")(inputs, dim1=axis, dim2=in_axis)
        return inputs, axis
    if len(inputs) != length:
        raise ArgumentError(f"unroll: expected {length} inputs, one a step, got {len(inputs)}")
    if merge:
        spread = [symbol.surface("expand_dims")(step, axis=axis) for step in inputs]
        return symbol.surface("concat")(*spread, dim=axis), axis
    return list(inputs), axis


class BaseRNNCell:
    """One step of a recurrent network.

    Called with input and states, it returns output and next states, all symbols. A subclass defines ``__call__`` and
    ``state_info``; names of nodes count the steps since ``reset``.

    Parameters
    ----------
    prefix : str
        Prefix of the names of weights and nodes.
    params : RNNParams or None
        The weights; its own by default.
    """

    def __init__(self, prefix: str = "", params: RNNParams | None = None):
        self._own_params = params is None
        self._prefix, self._params = prefix, RNNParams(prefix) if params is None else params
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Reset the count of steps, before the cell is used in another graph."""
        self._init_counter = self._counter = -1

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Output and next states of a step."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__, which computes a step")

    @property
    def params(self) -> RNNParams:
        """The weights; callers may share them."""
        self._own_params = False
        return self._params

    @property
    def state_info(self) -> list[StateInfo]:
        """Shape and layout of each state; a 0 stands for the batch."""
        raise NotImplementedError(f"{type(self).__name__} does not define state_info")

    @property
    def state_shape(self) -> list[Shape]:
        """Shape of each state."""
        return [info["shape"] for info in self.state_info]

    @property
    def _gate_names(self) -> tuple[str, ...]:
        return ()

    def begin_state(self, func: Callable[..., Symbol] | None = None, **kwargs: Any) -> list[Symbol]:
        """States before the first step.

        Parameters
        ----------
        func : function
            Makes a state from name, shape and layout; ``sym.zeros`` by default, or ``sym.var`` for an input.
        **kwargs
            Further arguments of ``func``.
        """
        if self._modified:
            raise OpError("begin_state: call it on the cell that wraps this one")
        states = []
        for info in self.state_info:
            self._init_counter += 1
            name = f"{self._prefix}begin_state_{self._init_counter}"
            if func is None:
                states.append(symbol.zeros(name=name, **{"shape": info["shape"], **kwargs}))
            else:
                arguments = {key: value for key, value in info.items() if func is not symbol.zeros or key == "shape"}
                states.append(func(name=name, **{**arguments, **kwargs}))
        return states

    def unpack_weights(self, args: Weights) -> dict[str, NDArray]:
        """Weights, with those of this cell split by gate."""
        args = dict(args)
        if not self._gate_names:
            return args
        count = len(self._gate_names)
        for group in ("i2h", "h2h"):
            for kind in ("weight", "bias"):
                stacked = args.pop(f"{self._prefix}{group}_{kind}")
                rows = stacked.shape[0] // count
                for number, gate in enumerate(self._gate_names):
                    args[f"{self._prefix}{group}{gate}_{kind}"] = stacked[number * rows:(number + 1) * rows].copy()
        return args

    def pack_weights(self, args: Weights) -> dict[str, NDArray]:
        """The inverse of ``unpack_weights``."""
        args = dict(args)
        if not self._gate_names:
            return args
        for group in ("i2h", "h2h"):
            for kind in ("weight", "bias"):
                parts = [args.pop(f"{self._prefix}{group}{gate}_{kind}") for gate in self._gate_names]
                args[f"{self._prefix}{group}_{kind}"] = concatenate(parts)
        return args

    def unroll(self, length: int, inputs: Steps, begin_state: list[Symbol] | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, list[Symbol]]:
        """The graph of several steps.

        Parameters
        ----------
        length : int
            Number of steps.
        inputs : Symbol or list of Symbol
            All steps in one symbol, or a list of steps.
        begin_state : list of Symbol or None
            States before the first step; zeros by default.
        layout : str
            Axes of inputs and outputs: N of samples, T of time, C of features.
        merge_outputs : bool or None
            Whether outputs are merged to one symbol, or a list; with None the cell decides.

        Returns
        -------
        outputs, states
            States are those after the last step.
        """
        self.reset()
        steps, _ = _sequence(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        outputs = []
        for step in steps:
            output, states = self(step, states)
            outputs.append(output)
        return _sequence(length, outputs, layout, merge_outputs)[0], states

    def _get_activation(self, inputs: Symbol, activation: Activation, **kwargs: Any) -> Symbol:
        """Apply an activation; users' cells call it, too."""
        if isinstance(activation, str):
            return symbol.surface("Activation")(inputs, act_type=activation, **kwargs)
        return activation(inputs, **kwargs)


class _Weighted(BaseRNNCell):
    """Base of cells with a weight and a bias for the input and for the last output."""

    def __init__(self, num_hidden: int, prefix: str, params: RNNParams | None, bias_init: Initializer | None = None):
        super().__init__(prefix, params)
        self._num_hidden = num_hidden
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


class RNNCell(_Weighted):
    """The Elman cell: ``activation(W x + U h + b)``.

    Parameters
    ----------
    num_hidden : int
        Length of the output.
    activation : str or function
        See the operator ``Activation``.
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


class LSTMCell(_Weighted):
    """Long short-term memory; the states are output and cell.

    S. Hochreiter, J. Schmidhuber, Long short-term memory, 1997.

    Parameters
    ----------
    forget_bias : float
        Initial value of the forget gate's bias.
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
        in_gate, forget_gate, out_gate = (self._get_activation(gates[i], "sigmoid", name=f"{name}{letter}")
                                          for i, letter in ((0, "i"), (1, "f"), (3, "o")))
        new = self._get_activation(gates[2], "tanh", name=f"{name}c")
        cell = named("elemwise_add", forget_gate * states[1], in_gate * new, name=f"{name}state")
        output = named("elemwise_mul", out_gate, self._get_activation(cell, "tanh"), name=f"{name}out")
        return output, [output, cell]


class GRUCell(_Weighted):
    """The gated recurrent unit; the reset gate is applied after the product, as in cuDNN.

    K. Cho et al., Learning phrase representations using RNN encoder-decoder for statistical machine translation, 2014.
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
        output = named("elemwise_add", (1.0 - update) * new, update * states[0], name=f"{name}out")
        return output, [output]


# ---------------------------------------------------------------------------------------------- all in one

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
        sequence, axis = _sequence(length, inputs, layout, True)
        swap = symbol.surface("swapaxes")
        if axis == 1:
            sequence = swap(sequence, dim1=0, dim2=1)
        elif axis != 0:
            raise ArgumentError(f"layout={layout!r}: expected NTC or TNC")
        states = self.begin_state() if begin_state is None else begin_state
        own = {"state": states[0], **({"state_cell": states[1]} if self._mode == "lstm" else {})}
        results = symbol.surface("RNN")(data=sequence, parameters=self._parameter, **own, state_size=self._num_hidden,
                                        num_layers=self._num_layers, bidirectional=self._bidirectional,
                                        p=self._dropout, state_outputs=self._get_next_state, mode=self._mode,
                                        name=f"{self._prefix}rnn")
        outputs, after = results, []
        if self._get_next_state:
            outputs, after = results[0], [results[1 + i] for i in range(len(own))]
        if axis == 1:
            outputs = swap(outputs, dim1=0, dim2=1)
        return _sequence(length, outputs, layout, merge_outputs)[0], after

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


# ------------------------------------------------------------------------------------------ made of others


class _ComposedCell(BaseRNNCell):
    """Base of cells that consist of cells, whose states and weights they join."""

    def __init__(self, prefix: str = "", params: RNNParams | None = None):
        super().__init__(prefix, params)
        self._override = params is not None
        self._cells: list[BaseRNNCell] = []

    def _adopt(self, cell: BaseRNNCell) -> None:
        self._cells.append(cell)
        if self._override:
            if not cell._own_params:
                raise ArgumentError("cells that share params cannot be added to a cell that was given params")
            cell.params._params.update(self._params._params)
        self._params._params.update(cell.params._params)

    def reset(self) -> None:
        super().reset()
        for cell in getattr(self, "_cells", ()):
            cell.reset()

    @property
    def state_info(self) -> list[StateInfo]:
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, func: Callable[..., Symbol] | None = None, **kwargs: Any) -> list[Symbol]:
        if self._modified:
            raise OpError("begin_state: call it on the cell that wraps this one")
        return [state for cell in self._cells for state in cell.begin_state(func=func, **kwargs)]

    def unpack_weights(self, args: Weights) -> dict[str, NDArray]:
        weights = dict(args)
        for cell in self._cells:
            weights = cell.unpack_weights(weights)
        return weights

    def pack_weights(self, args: Weights) -> dict[str, NDArray]:
        weights = dict(args)
        for cell in self._cells:
            weights = cell.pack_weights(weights)
        return weights

    def _own(self, states: Sequence[Symbol]) -> Iterator[tuple[BaseRNNCell, list[Symbol]]]:
        """Each cell with its states."""
        place = 0
        for cell in self._cells:
            count = len(cell.state_info)
            yield cell, list(states[place:place + count])
            place += count


class SequentialRNNCell(_ComposedCell):
    """Cells stacked on top of each other.

    Examples
    --------
    >>> stack = SequentialRNNCell()
    >>> stack.add(LSTMCell(4, prefix="a_"))
    >>> stack.add(GRUCell(3, prefix="b_"))
    >>> outputs, states = stack.unroll(2, symbol.var("data"), merge_outputs=True)
    >>> outputs.infer_shape(data=(5, 2, 6))[1]
    [(5, 2, 3)]
    """

    def __init__(self, params: RNNParams | None = None):
        super().__init__("", params)

    def add(self, cell: BaseRNNCell) -> None:
        """Put a cell on top."""
        self._adopt(cell)

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        self._counter += 1
        after: list[Symbol] = []
        for cell, cell_states in self._own(states):
            if isinstance(cell, BidirectionalCell):
                raise OpError("a BidirectionalCell cannot run single steps: use unroll")
            inputs, cell_states = cell(inputs, cell_states)
            after += cell_states
        return inputs, after

    def unroll(self, length: int, inputs: Steps, begin_state: list[Symbol] | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, list[Symbol]]:
        self.reset()
        states = self.begin_state() if begin_state is None else begin_state
        after: list[Symbol] = []
        for number, (cell, cell_states) in enumerate(self._own(states)):
            last = number == len(self._cells) - 1
            inputs, cell_states = cell.unroll(length, inputs, cell_states, layout, merge_outputs if last else None)
            after += cell_states
        return inputs, after


class BidirectionalCell(_ComposedCell):
    """Two cells, one of which runs backward over the sequence; their outputs are concatenated.

    Parameters
    ----------
    l_cell, r_cell : BaseRNNCell
        The forward cell and the backward cell.
    output_prefix : str
        Prefix of the outputs' names.
    """

    def __init__(self, l_cell: BaseRNNCell, r_cell: BaseRNNCell, params: RNNParams | None = None,
                 output_prefix: str = "bi_"):
        super().__init__("", params)
        self._output_prefix = output_prefix
        self._adopt(l_cell)
        self._adopt(r_cell)

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        raise OpError("a BidirectionalCell cannot run single steps: use unroll")

    def unroll(self, length: int, inputs: Steps, begin_state: list[Symbol] | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, list[Symbol]]:
        self.reset()
        steps, axis = _sequence(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        (left, left_states), (right, right_states) = self._own(states)
        forth, left_after = left.unroll(length, steps, left_states, layout, merge_outputs)
        back, right_after = right.unroll(length, steps[::-1], right_states, layout, merge_outputs)
        merge = isinstance(forth, Symbol) and isinstance(back, Symbol) if merge_outputs is None else merge_outputs
        concat = symbol.surface("concat")
        if merge:
            forth, back = (_sequence(length, outputs, layout, True)[0] for outputs in (forth, back))
            back = symbol.surface("reverse")(back, axis=axis)
            outputs = concat(forth, back, dim=2, name=f"{self._output_prefix}out")
        else:
            forth, back = (_sequence(length, outputs, layout, False)[0] for outputs in (forth, back))
            outputs = [concat(first, second, dim=1, name=f"{self._output_prefix}t{number}")
                       for number, (first, second) in enumerate(zip(forth, reversed(back)))]
        return outputs, [*left_after, *right_after]


class ModifierCell(BaseRNNCell):
    """Base of cells that modify another one, whose weights and states they use."""

    def __init__(self, base_cell: BaseRNNCell):
        base_cell._modified = True
        self.base_cell = base_cell
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self.base_cell.reset()

    @property
    def params(self) -> RNNParams:
        self._own_params = False
        return self.base_cell.params

    @property
    def state_info(self) -> list[StateInfo]:
        return self.base_cell.state_info

    def begin_state(self, func: Callable[..., Symbol] | None = None, init_sym: Callable[..., Symbol] | None = None,
                    **kwargs: Any) -> list[Symbol]:
        if self._modified:
            raise OpError("begin_state: call it on the cell that wraps this one")
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(func=func or init_sym, **kwargs)
        finally:
            self.base_cell._modified = True

    def unpack_weights(self, args: Weights) -> dict[str, NDArray]:
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: Weights) -> dict[str, NDArray]:
        return self.base_cell.pack_weights(args)


class DropoutCell(BaseRNNCell):
    """Dropout of the input; for use in a ``SequentialRNNCell``.

    Parameters
    ----------
    dropout : float
        Fraction of elements set to zero in training.
    """

    def __init__(self, dropout: float, prefix: str = "dropout_", params: RNNParams | None = None):
        super().__init__(prefix, params)
        self.dropout = dropout

    @property
    def state_info(self) -> list[StateInfo]:
        return []

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        if self.dropout > 0:
            inputs = symbol.surface("Dropout")(inputs, p=self.dropout)
        return inputs, states

    def unroll(self, length: int, inputs: Steps, begin_state: list[Symbol] | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, list[Symbol]]:
        self.reset()
        steps, _ = _sequence(length, inputs, layout, merge_outputs)
        if isinstance(steps, Symbol):
            return self(steps, [])[0], []
        return [self(step, [])[0] for step in steps], []


class ZoneoutCell(ModifierCell):
    """In training, replaces random elements of output or states by those of the step before.

    D. Krueger et al., Zoneout: regularizing RNNs by randomly preserving hidden activations, 2016.

    Parameters
    ----------
    base_cell : BaseRNNCell
        The cell.
    zoneout_outputs, zoneout_states : float
        Fractions of elements that are replaced.
    """

    def __init__(self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0):
        if isinstance(base_cell, (FusedRNNCell, BidirectionalCell)):
            raise ArgumentError(f"zoneout needs single steps, which a {type(base_cell).__name__} cannot run")
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states
        self.prev_output: Symbol | None = None

    def reset(self) -> None:
        super().reset()
        self.prev_output = None

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        output, after = self.base_cell(inputs, states)
        where, zeros, ones = (symbol.surface(name) for name in ("where", "zeros_like", "ones_like"))

        def mixed(share: float, new: Symbol, old: Symbol | None) -> Symbol:
            if not share:
                return new
            mask = symbol.surface("Dropout")(ones(new), p=share)
            return where(mask, new, zeros(new) if old is None else old)

        result = mixed(self.zoneout_outputs, output, self.prev_output)
        self.prev_output = output
        return result, [mixed(self.zoneout_states, new, old) for new, old in zip(after, states)]


class ResidualCell(ModifierCell):
    """Adds the input to the output; both have the same shape."""

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        output, states = self.base_cell(inputs, states)
        return named("elemwise_add", output, inputs, name=f"{output.name}_plus_residual"), states

    def unroll(self, length: int, inputs: Steps, begin_state: list[Symbol] | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, list[Symbol]]:
        self.reset()
        states = self.begin_state() if begin_state is None else begin_state
        outputs, after = self.base_cell.unroll(length, inputs, states, layout, merge_outputs)
        merged = isinstance(outputs, Symbol)
        steps, _ = _sequence(length, inputs, layout, merged)
        if merged:
            return named("elemwise_add", outputs, steps, name=f"{outputs.name}_plus_residual"), after
        return [named("elemwise_add", output, step, name=f"{output.name}_plus_residual")
                for output, step in zip(outputs, steps)], after
