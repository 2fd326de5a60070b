"""The base of recurrent cells: weights, states, and unrolling over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from opreg import symbol
from opreg.ndarray.creation import concatenate
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol

from ..core.registry import get
from ..core.settings import Checked, CheckedMethods
from ..core.spec import Shape
from ..errors import ArgumentError, OpError

__all__ = ["Activation", "BaseRNNCell", "RNNParams", "StateInfo", "Steps", "Weights", "apply", "as_steps"]

Weights: TypeAlias = Mapping[str, NDArray]
#: Inputs of several steps: one symbol of all, or one for each.
Steps: TypeAlias = Symbol | Sequence[Symbol]
#: An activation of the operator of that name, or a function of a symbol.
Activation: TypeAlias = str | Callable[..., Symbol]
#: Shape and layout of a state.
StateInfo: TypeAlias = dict[str, Any]


def apply(op: str, *inputs: Symbol, name: str) -> Symbol:
    """Apply an operator to symbols; the new node has a name."""
    return symbol.surface(get(op).name)(*inputs, name=name)


class RNNParams(Checked):
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


def as_steps(length: int, inputs: Steps, layout: str, merge: bool | None, in_layout: str | None = None
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


class BaseRNNCell(CheckedMethods):
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

    _has_steps = True  # False if only all steps together can be computed

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
        steps, _ = as_steps(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        outputs = []
        for step in steps:
            output, states = self(step, states)
            outputs.append(output)
        return as_steps(length, outputs, layout, merge_outputs)[0], states

    def _get_activation(self, inputs: Symbol, activation: Activation, **kwargs: Any) -> Symbol:
        """Apply an activation; users' cells call it, too."""
        if isinstance(activation, str):
            return symbol.surface("Activation")(inputs, act_type=activation, **kwargs)
        return activation(inputs, **kwargs)

    def _lstm_step(self, gates: Symbol, state: Symbol, activation: Activation, name: str
                   ) -> tuple[Symbol, list[Symbol]]:
        """The output and the next states of an LSTM, from its four gates before their activations."""
        in_gate, forget_gate, out_gate = (self._get_activation(gates[i], "sigmoid", name=f"{name}{letter}")
                                          for i, letter in ((0, "i"), (1, "f"), (3, "o")))
        new = self._get_activation(gates[2], activation, name=f"{name}c")
        cell = apply("elemwise_add", forget_gate * state, in_gate * new, name=f"{name}state")
        output = apply("elemwise_mul", out_gate, self._get_activation(cell, activation), name=f"{name}out")
        return output, [output, cell]
