"""Recurrent cells: blocks of one step, unrolled over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from opreg import ndarray, symbol

from ...base import numeric_types
from ...core.attrs import Count, Fraction, Positive
from ...train.initializer import InitializerLike
from ..base_block import Block, indent
from ..errors import BlockError
from ..hybrid_block import HybridBlock
from ..nn.activations import LeakyReLU
from ..parameter import Parameter, ParameterDict, tensor_types
from .sequences import begun, format_sequence, joined, mask_sequence, reverse_sequences

__all__ = ["RecurrentCell", "HybridRecurrentCell", "RNNCell", "LSTMCell", "GRUCell", "SequentialRNNCell",
           "HybridSequentialRNNCell", "DropoutCell", "ModifierCell", "ZoneoutCell", "ResidualCell",
           "BidirectionalCell"]


class RecurrentCell(Block):
    """One step of a recurrent network: ``cell(inputs, states)`` gives the output and the next states.

    A subclass defines the step in ``forward`` and the states in ``state_info``.
    """

    _modified = False
    _init_counter = -1
    _counter = -1

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None):
        super().__init__(prefix=prefix, params=params)
        self.reset()

    def reset(self) -> None:
        """Reset the count of steps, before the cell is used for another sequence."""
        self.__dict__.update(_init_counter=-1, _counter=-1)  # not a setting, so the trace stays valid
        for cell in self._children.values():
            if isinstance(cell, RecurrentCell):
                cell.reset()

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        raise NotImplementedError(f"{type(self).__name__} does not define state_info")

    def _refuse_modified(self) -> None:
        if self._modified:
            raise BlockError(f"After applying modifier cells (e.g. ZoneoutCell) the base cell {self.name} cannot be "
                             "called directly. Call the modifier cell instead.")

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = ndarray.zeros, **kwargs: Any) -> list[Any]:
        """States before the first step.

        Parameters
        ----------
        batch_size : int
            Number of samples.
        func : function
            Makes a state from name and shape: ``nd.zeros``, ``sym.zeros`` or ``sym.var``.
        **kwargs
            Further arguments of ``func``.
        """
        self._refuse_modified()
        states = []
        for info in self.state_info(batch_size):
            self.__dict__["_init_counter"] += 1
            states.append(func(name=f"{self._prefix}begin_state_{self._init_counter}", **{**(info or {}), **kwargs}))
        return states

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC",
               merge_outputs: bool | None = None, valid_length: Any = None) -> tuple[Any, list[Any]]:
        """Run over a sequence.

        Parameters
        ----------
        length : int
            Number of steps.
        inputs : NDArray, Symbol or list of them
            All steps in one value, or a list of steps.
        begin_state : list, optional
            States before the first step; zeros by default.
        layout : str
            Order of the axes: ``NTC`` or ``TNC``.
        merge_outputs : bool, optional
            Whether outputs are merged to one value, or a list; by default the cell chooses.
        valid_length : NDArray or Symbol, optional
            The length of each sample.

        Returns
        -------
        outputs, states
            Outputs of all steps, and the states after the last.
        """
        self.reset()
        steps, axis, F, batch_size = format_sequence(length, inputs, layout, False)
        states = begun(self, F, begin_state, steps, batch_size)
        outputs: Any = []
        every = []
        for step in steps[:length]:
            output, states = self(step, states)
            outputs.append(output)
            every.append(states)
        if valid_length is not None:
            states = [F.SequenceLast(F.stack(*of_state, axis=0), sequence_length=valid_length,
                                     use_sequence_length=True, axis=0) for of_state in zip(*every)]
            outputs = mask_sequence(F, outputs, length, valid_length, axis, True)
        return format_sequence(length, outputs, layout, merge_outputs)[0], states

    def _get_activation(self, F: Any, inputs: Any, activation: Any, **kwargs: Any) -> Any:
        """An activation of the inputs; it is a name, a ``LeakyReLU``, or a function."""
        if activation in ("tanh", "relu", "sigmoid", "softsign"):
            return getattr(F, activation)(inputs, **kwargs)
        if isinstance(activation, str):
            return F.Activation(inputs, act_type=activation, **kwargs)
        if isinstance(activation, LeakyReLU):
            return F.LeakyReLU(inputs, act_type="leaky", slope=activation._alpha, **kwargs)
        return activation(inputs, **kwargs)

    def forward(self, inputs: Any, states: Any) -> Any:
        """Compute a step."""
        self.__dict__["_counter"] += 1
        return super().forward(inputs, states)


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """A hybrid recurrent cell: a subclass defines the step in ``hybrid_forward``."""

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """See ``HybridBlock``."""
        raise NotImplementedError(f"{type(self).__name__} has no hybrid_forward")


class _GatedCell(HybridRecurrentCell):
    """A cell with weights from input and state to its gates."""

    _gates: ClassVar[int] = 1
    _states: ClassVar[int] = 1
    i2h_weight: Parameter

    def __init__(self, hidden_size: Positive, i2h_weight_initializer: InitializerLike = None,
                 h2h_weight_initializer: InitializerLike = None, i2h_bias_initializer: InitializerLike = "zeros",
                 h2h_bias_initializer: InitializerLike = "zeros", input_size: Count = 0, prefix: str | None = None,
                 params: ParameterDict | None = None):
        super().__init__(prefix=prefix, params=params)
        self._hidden_size, self._input_size = hidden_size, input_size
        rows = self._gates * hidden_size
        for name, shape, init in (("i2h_weight", (rows, input_size), i2h_weight_initializer),
                                  ("h2h_weight", (rows, hidden_size), h2h_weight_initializer),
                                  ("i2h_bias", (rows,), i2h_bias_initializer),
                                  ("h2h_bias", (rows,), h2h_bias_initializer)):
            setattr(self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True))

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        return [{"shape": (batch_size, self._hidden_size), "__layout__": "NC"} for _ in range(self._states)]

    def _alias(self) -> str:
        return type(self).__name__.removesuffix("Cell").lower()

    def _activation_mapping(self) -> str:
        rows, columns = self.i2h_weight.shape or (0, 0)
        return f"{columns or None} -> {rows}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._activation_mapping()})"

    def _sums(self, F: Any, inputs: Any, state: Any, weights: Sequence[Any]) -> tuple[str, Any, Any]:
        """The prefix of the step's names, and the products of input and state with the weights of all gates."""
        i2h_weight, h2h_weight, i2h_bias, h2h_bias = weights
        at, rows = f"t{self._counter}_", self._hidden_size * self._gates
        return (at, F.FullyConnected(data=inputs, weight=i2h_weight, bias=i2h_bias, num_hidden=rows, name=f"{at}i2h"),
                F.FullyConnected(data=state, weight=h2h_weight, bias=h2h_bias, num_hidden=rows, name=f"{at}h2h"))


class RNNCell(_GatedCell):
    """An Elman cell: ``tanh(W x + U h + b)``.

    Parameters
    ----------
    hidden_size : int
        Length of the state.
    activation : str or function
        The activation.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
        Initial values of the weights.
    input_size : int
        Length of the input features; 0 where the first input decides it.

    Examples
    --------
    >>> from opreg import nd
    >>> cell = RNNCell(3, input_size=2)
    >>> cell.initialize()
    >>> outputs, states = cell.unroll(5, nd.zeros((4, 5, 2)), merge_outputs=True)
    >>> outputs.shape, states[0].shape
    ((4, 5, 3), (4, 3))
    """

    def __init__(self, hidden_size: Positive, activation: Any = "tanh", i2h_weight_initializer: InitializerLike = None,
                 h2h_weight_initializer: InitializerLike = None, i2h_bias_initializer: InitializerLike = "zeros",
                 h2h_bias_initializer: InitializerLike = "zeros", input_size: Count = 0, prefix: str | None = None,
                 params: ParameterDict | None = None):
        super().__init__(hidden_size, i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
                         h2h_bias_initializer, input_size, prefix, params)
        self._activation = activation

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._activation_mapping()}, {self._activation})"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any,
                       h2h_bias: Any) -> Any:
        """See ``HybridBlock``."""
        at, i2h, h2h = self._sums(F, inputs, states[0], (i2h_weight, h2h_weight, i2h_bias, h2h_bias))
        output = self._get_activation(F, F.elemwise_add(i2h, h2h, name=f"{at}plus0"), self._activation,
                                      name=f"{at}out")
        return output, [output]


class LSTMCell(_GatedCell):
    """A cell of long short-term memory.

    Parameters
    ----------
    hidden_size : int
        Length of each of the two states.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
        Initial values of the weights, whose rows are input gate, forget gate, candidates and output gate.
    input_size : int
        Length of the input features; 0 where the first input decides it.
    activation, recurrent_activation : str or function
        Activations of candidates and of gates.

    Examples
    --------
    >>> cell = LSTMCell(4, input_size=3)
    >>> cell.initialize()
    >>> output, states = cell(ndarray.ones((2, 3)), cell.begin_state(2))
    >>> output.shape, [state.shape for state in states]
    ((2, 4), [(2, 4), (2, 4)])
    """

    _gates, _states = 4, 2

    def __init__(self, hidden_size: Positive, i2h_weight_initializer: InitializerLike = None,
                 h2h_weight_initializer: InitializerLike = None, i2h_bias_initializer: InitializerLike = "zeros",
                 h2h_bias_initializer: InitializerLike = "zeros", input_size: Count = 0, prefix: str | None = None,
                 params: ParameterDict | None = None, activation: Any = "tanh", recurrent_activation: Any = "sigmoid"):
        super().__init__(hidden_size, i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
                         h2h_bias_initializer, input_size, prefix, params)
        self._activation, self._recurrent_activation = activation, recurrent_activation

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any,
                       h2h_bias: Any) -> Any:
        """See ``HybridBlock``."""
        at, i2h, h2h = self._sums(F, inputs, states[0], (i2h_weight, h2h_weight, i2h_bias, h2h_bias))
        sums = F.SliceChannel(F.elemwise_add(i2h, h2h, name=f"{at}plus0"), num_outputs=4, name=f"{at}slice")
        input_gate, forget_gate, new, output_gate = (
            self._get_activation(F, sums[i], self._activation if word == "c" else self._recurrent_activation,
                                 name=f"{at}{word}")
            for i, word in enumerate("ifco"))
        state = F.elemwise_add(F.elemwise_mul(forget_gate, states[1], name=f"{at}mul0"),
                               F.elemwise_mul(input_gate, new, name=f"{at}mul1"), name=f"{at}state")
        activated = self._get_activation(F, state, self._activation, name=f"{at}activation0")
        output = F.elemwise_mul(output_gate, activated, name=f"{at}out")
        return output, [output, state]


class GRUCell(_GatedCell):
    """A gated recurrent unit, as cuDNN computes it.

    Parameters
    ----------
    hidden_size : int
        Length of the state.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
        Initial values of the weights, whose rows are reset gate, update gate and candidates.
    input_size : int
        Length of the input features; 0 where the first input decides it.

    Examples
    --------
    >>> cell = GRUCell(4, input_size=3)
    >>> cell.initialize()
    >>> outputs, states = cell.unroll(5, ndarray.ones((2, 5, 3)), merge_outputs=True)
    >>> outputs.shape, [state.shape for state in states]
    ((2, 5, 4), [(2, 4)])
    """

    _gates = 3

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any,
                       h2h_bias: Any) -> Any:
        """See ``HybridBlock``."""
        at, i2h, h2h = self._sums(F, inputs, states[0], (i2h_weight, h2h_weight, i2h_bias, h2h_bias))
        i2h_r, i2h_z, i2h = F.SliceChannel(i2h, num_outputs=3, name=f"{at}i2h_slice")
        h2h_r, h2h_z, h2h = F.SliceChannel(h2h, num_outputs=3, name=f"{at}h2h_slice")
        reset, update = (F.Activation(F.elemwise_add(a, b, name=f"{at}plus{i}"), act_type="sigmoid",
                                      name=f"{at}{word}_act")
                         for i, (word, a, b) in enumerate((("r", i2h_r, h2h_r), ("z", i2h_z, h2h_z))))
        new = F.Activation(F.elemwise_add(i2h, F.elemwise_mul(reset, h2h, name=f"{at}mul0"), name=f"{at}plus2"),
                           act_type="tanh", name=f"{at}h_act")
        ones = F.ones_like(update, name=f"{at}ones_like0")
        output = F.elemwise_add(
            F.elemwise_mul(F.elemwise_sub(ones, update, name=f"{at}minus0"), new, name=f"{at}mul1"),
            F.elemwise_mul(update, states[0], name=f"{at}mul20"), name=f"{at}out")
        return output, [output]


class _OfCells(RecurrentCell):
    """A cell whose states are those of several others."""

    def _cells(self) -> Sequence[Any]:
        return list(self._children.values())

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state, of one cell after the other."""
        return joined(cell.state_info(batch_size) for cell in self._cells())

    def begin_state(self, *args: Any, **kwargs: Any) -> list[Any]:
        """States before the first step, of one cell after the other; see ``RecurrentCell``."""
        self._refuse_modified()
        return joined(cell.begin_state(*args, **kwargs) for cell in self._cells())


class _Stack(_OfCells):
    """Cells stacked on top of each other."""

    def __repr__(self) -> str:
        inner = "\n".join(f"({name}): {indent(repr(cell))}" for name, cell in self._children.items())
        return f"{type(self).__name__}(\n{inner}\n)"

    def add(self, cell: RecurrentCell) -> None:
        """Put a cell on top."""
        self.register_child(cell)

    def _shared_out(self, states: Any) -> list[tuple[Any, Any]]:
        """Each cell with its states."""
        pairs, at = [], 0
        for cell in self._cells():
            count = len(cell.state_info())
            pairs.append((cell, states[at:at + count]))
            at += count
        return pairs

    def __call__(self, inputs: Any, states: Any) -> Any:
        self.__dict__["_counter"] += 1
        following = []
        for cell, cell_states in self._shared_out(states):
            if isinstance(cell, BidirectionalCell):
                raise BlockError("BidirectionalCell cannot be stepped: unroll the stack")
            inputs, cell_states = cell(inputs, cell_states)
            following.append(cell_states)
        return inputs, joined(following)

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC",
               merge_outputs: bool | None = None, valid_length: Any = None) -> tuple[Any, list[Any]]:
        """Run each cell over the whole sequence; see ``RecurrentCell``."""
        self.reset()
        inputs, _, F, batch_size = format_sequence(length, inputs, layout, None)
        pairs = self._shared_out(begun(self, F, begin_state, inputs, batch_size))
        following = []
        for i, (cell, cell_states) in enumerate(pairs, 1):
            inputs, cell_states = cell.unroll(length, inputs=inputs, begin_state=cell_states, layout=layout,
                                              merge_outputs=merge_outputs if i == len(pairs) else None,
                                              valid_length=valid_length)
            following.append(cell_states)
        return inputs, joined(following)

    def __getitem__(self, i: int) -> Any:
        return self._children[str(i)]

    def __len__(self) -> int:
        return len(self._children)


class SequentialRNNCell(_Stack):
    """Cells stacked on top of each other.

    Examples
    --------
    >>> stack = SequentialRNNCell()
    >>> stack.add(LSTMCell(4, input_size=2))
    >>> stack.add(GRUCell(3, input_size=4))
    >>> len(stack), len(stack.state_info())
    (2, 3)
    """


class HybridSequentialRNNCell(_Stack, HybridRecurrentCell):
    """Hybrid cells stacked on top of each other."""

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """See ``HybridBlock``."""
        return self(inputs, states)


class DropoutCell(HybridRecurrentCell):
    """A cell without states that sets random elements to zero, in training.

    Parameters
    ----------
    rate : float
        Fraction of elements set to zero.
    axes : tuple of int
        Axes along which elements are dropped together.

    Examples
    --------
    >>> cell = DropoutCell(0.5)
    >>> cell(ndarray.ones((2, 3)), [])[0].shape
    (2, 3)
    """

    def __init__(self, rate: Fraction, axes: Any = (), prefix: str | None = None, params: ParameterDict | None = None):
        super().__init__(prefix, params)
        if not isinstance(rate, numeric_types):
            raise BlockError(f"DropoutCell: rate must be a number, got {type(rate).__name__}")
        self._rate, self._axes = rate, axes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rate={self._rate}, axes={self._axes})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """An empty list: there are no states."""
        return []

    def _alias(self) -> str:
        return "dropout"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """See ``HybridBlock``."""
        if self._rate > 0:
            inputs = F.Dropout(data=inputs, p=self._rate, axes=self._axes, name=f"t{self._counter}_fwd")
        return inputs, states

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC",
               merge_outputs: bool | None = None, valid_length: Any = None) -> tuple[Any, list[Any]]:
        """Run on all steps at once if they are one value; see ``RecurrentCell``."""
        self.reset()
        inputs, _, F, _ = format_sequence(length, inputs, layout, merge_outputs)
        if isinstance(inputs, tensor_types):
            outputs, states = self.hybrid_forward(F, inputs, begin_state or [])
            return outputs, states
        return super().unroll(length, inputs, begin_state, layout, merge_outputs)


class ModifierCell(HybridRecurrentCell):
    """A cell that modifies another one; the other may no longer be called itself.

    Parameters
    ----------
    base_cell : RecurrentCell
        The other cell.
    """

    base_cell: Any

    def __init__(self, base_cell: Any):
        if base_cell._modified:
            raise BlockError(f"Cell {base_cell.name} is already modified. One cell cannot be modified twice")
        base_cell.__dict__["_modified"] = True
        super().__init__(prefix=base_cell.prefix + self._alias(), params=None)
        self.base_cell = base_cell

    @property
    def params(self) -> ParameterDict:
        """The parameters of the other cell."""
        return self.base_cell.params

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """States of the other cell."""
        return self.base_cell.state_info(batch_size)

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = symbol.zeros, **kwargs: Any) -> list[Any]:
        """First states of the other cell; see ``RecurrentCell``."""
        self._refuse_modified()
        return self._call_unmodified(self.base_cell.begin_state, batch_size=batch_size, func=func, **kwargs)

    def _call_unmodified(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a method of the other cell."""
        self.base_cell.__dict__["_modified"] = False
        try:
            return function(*args, **kwargs)
        finally:
            self.base_cell.__dict__["_modified"] = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_cell})"


class ZoneoutCell(ModifierCell):
    """A cell that replaces random elements by those of the step before, in training.

    Parameters
    ----------
    base_cell : RecurrentCell
        The cell.
    zoneout_outputs, zoneout_states : float
        Fractions of elements of outputs and of states that are taken from the step before.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = ZoneoutCell(RNNCell(4, input_size=4), zoneout_outputs=0.2)
    >>> cell.initialize()
    >>> output, states = cell(mx.nd.ones((2, 4)), cell.begin_state(batch_size=2, func=mx.nd.zeros))
    >>> output.shape, len(states)
    ((2, 4), 1)
    """

    _prev_output: Any = None

    def __init__(self, base_cell: Any, zoneout_outputs: Fraction = 0.0, zoneout_states: Fraction = 0.0):
        if isinstance(base_cell, BidirectionalCell):
            raise BlockError("BidirectionalCell doesn't support zoneout since it doesn't support step. Please add "
                             "ZoneoutCell to the cells underneath instead.")
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(p_out={self.zoneout_outputs}, p_state={self.zoneout_states}, "
                f"{self.base_cell})")

    def _alias(self) -> str:
        return "zoneout"

    def reset(self) -> None:
        """Drop the step before."""
        super().reset()
        self.__dict__["_prev_output"] = None

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """See ``HybridBlock``."""
        output, following = self.base_cell(inputs, states)
        before = F.zeros_like(output) if self._prev_output is None else self._prev_output

        def mixed(rate: Fraction, new: Any, old: Any) -> Any:
            return F.where(F.Dropout(F.ones_like(new), p=rate), new, old)

        if self.zoneout_outputs:
            output = mixed(self.zoneout_outputs, output, before)
        if self.zoneout_states:
            following = [mixed(self.zoneout_states, new, old) for new, old in zip(following, states)]
        self.__dict__["_prev_output"] = output
        return output, following


class ResidualCell(ModifierCell):
    """A cell whose inputs are added to its outputs.

    Parameters
    ----------
    base_cell : RecurrentCell
        The cell.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = ResidualCell(RNNCell(4, input_size=4))
    >>> cell.initialize()
    >>> output, states = cell(mx.nd.ones((2, 4)), cell.begin_state(batch_size=2, func=mx.nd.zeros))
    >>> output.shape, len(states)
    ((2, 4), 1)
    """

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        """See ``HybridBlock``."""
        output, states = self.base_cell(inputs, states)
        return F.elemwise_add(output, inputs, name=f"t{self._counter}_fwd"), states

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC",
               merge_outputs: bool | None = None, valid_length: Any = None) -> tuple[Any, list[Any]]:
        """Run the cell, and add all inputs at once; see ``RecurrentCell``."""
        self.reset()
        outputs, states = self._call_unmodified(
            self.base_cell.unroll, length, inputs=inputs, begin_state=begin_state, layout=layout,
            merge_outputs=merge_outputs, valid_length=valid_length)
        merge = isinstance(outputs, tensor_types) if merge_outputs is None else merge_outputs
        inputs, axis, F, _ = format_sequence(length, inputs, layout, merge)
        if valid_length is not None:
            inputs = mask_sequence(F, inputs, length, valid_length, axis, merge)
        if merge:
            return F.elemwise_add(outputs, inputs), states
        return [F.elemwise_add(output, step) for output, step in zip(outputs, inputs)], states


class BidirectionalCell(_OfCells, HybridRecurrentCell):
    """Two cells, one of which runs backward over the sequence; their outputs are concatenated. It can only be unrolled.

    Parameters
    ----------
    l_cell, r_cell : RecurrentCell
        The forward cell and the backward cell.
    output_prefix : str
        Prefix of the outputs' names.

    Examples
    --------
    >>> cell = BidirectionalCell(GRUCell(4), GRUCell(4))
    >>> cell.initialize()
    >>> outputs, states = cell.unroll(5, ndarray.ones((2, 5, 3)), merge_outputs=True)
    >>> outputs.shape
    (2, 5, 8)
    """

    def __init__(self, l_cell: Any, r_cell: Any, output_prefix: str = "bi_"):
        super().__init__(prefix="", params=None)
        self.register_child(l_cell, "l_cell")
        self.register_child(r_cell, "r_cell")
        self._output_prefix = output_prefix

    def __call__(self, inputs: Any, states: Any) -> Any:
        raise NotImplementedError("Bidirectional cannot be stepped. Please use unroll")

    def __repr__(self) -> str:
        left, right = self._cells()
        return f"{type(self).__name__}(forward={left}, backward={right})"

    def unroll(self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC",
               merge_outputs: bool | None = None, valid_length: Any = None) -> tuple[Any, list[Any]]:
        """Run both cells; see ``RecurrentCell``."""
        self.reset()
        steps, axis, F, batch_size = format_sequence(length, inputs, layout, False)
        backwards = reverse_sequences(F, steps, length, valid_length)
        states = begun(self, F, begin_state, steps, batch_size)
        left, right = self._cells()
        count = len(left.state_info(batch_size))
        l_outputs, l_states = left.unroll(length, inputs=steps, begin_state=states[:count], layout=layout,
                                          merge_outputs=merge_outputs, valid_length=valid_length)
        r_outputs, r_states = right.unroll(length, inputs=backwards, begin_state=states[count:], layout=layout,
                                           merge_outputs=False, valid_length=valid_length)
        r_outputs = reverse_sequences(F, r_outputs, length, valid_length)
        merge = isinstance(l_outputs, tensor_types) if merge_outputs is None else merge_outputs
        outputs: Any
        if merge:
            l_outputs = format_sequence(None, l_outputs, layout, True)[0]
            outputs = F.concat(l_outputs, F.stack(*r_outputs, axis=axis), dim=2, name=f"{self._output_prefix}out")
        else:
            l_outputs = format_sequence(length, l_outputs, layout, False)[0]
            outputs = [F.concat(a, b, dim=1, name=f"{self._output_prefix}t{i}")
                       for i, (a, b) in enumerate(zip(l_outputs, r_outputs))]
        if valid_length is not None:
            outputs = mask_sequence(F, outputs, length, valid_length, axis, merge)
        return outputs, l_states + r_states
