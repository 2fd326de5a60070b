"""Recurrent cells that consist of other cells, or modify one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opreg import symbol
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol

from ..core.chosen import override
from ..errors import ArgumentError, OpError
from .base_rnn_cell import BaseRNNCell, RNNParams, StateInfo, Steps, Weights, apply, as_steps

__all__ = ["BidirectionalCell", "DropoutCell", "ModifierCell", "ResidualCell", "SequentialRNNCell", "ZoneoutCell"]


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

    def _cells_with_states(self, states: Sequence[Symbol]) -> Iterator[tuple[BaseRNNCell, list[Symbol]]]:
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
    >>> from opreg.rnn import GRUCell, LSTMCell
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
        for cell, cell_states in self._cells_with_states(states):
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
        for number, (cell, cell_states) in enumerate(self._cells_with_states(states)):
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

    Examples
    --------
    >>> import opreg as mx
    >>> cell = BidirectionalCell(mx.rnn.RNNCell(4, prefix="l_"), mx.rnn.RNNCell(4, prefix="r_"))
    >>> outputs, _ = cell.unroll(2, [mx.sym.var("t0"), mx.sym.var("t1")])
    >>> len(outputs)
    2
    """

    _has_steps = False

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
        steps, axis = as_steps(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        (left, left_states), (right, right_states) = self._cells_with_states(states)
        forth, left_after = left.unroll(length, steps, left_states, layout, merge_outputs)
        back, right_after = right.unroll(length, steps[::-1], right_states, layout, merge_outputs)
        merge = isinstance(forth, Symbol) and isinstance(back, Symbol) if merge_outputs is None else merge_outputs
        concat = symbol.surface("concat")
        if merge:
            forth, back = (as_steps(length, outputs, layout, True)[0] for outputs in (forth, back))
            back = symbol.surface("reverse")(back, axis=axis)
            outputs = concat(forth, back, dim=2, name=f"{self._output_prefix}out")
        else:
            forth, back = (as_steps(length, outputs, layout, False)[0] for outputs in (forth, back))
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
        with override(self.base_cell, _modified=False):
            return self.base_cell.begin_state(func=func or init_sym, **kwargs)

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

    Examples
    --------
    >>> import opreg as mx
    >>> output, states = DropoutCell(0.5)(mx.sym.var("x"), [])
    >>> output.list_arguments(), states
    (['x'], [])
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
        steps, _ = as_steps(length, inputs, layout, merge_outputs)
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

    Examples
    --------
    >>> import opreg as mx
    >>> cell = ZoneoutCell(mx.rnn.RNNCell(4), zoneout_outputs=0.2)
    >>> outputs, _ = cell.unroll(2, [mx.sym.var("t0"), mx.sym.var("t1")])
    >>> len(outputs)
    2
    """

    def __init__(self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0):
        if not base_cell._has_steps:
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
    """Adds the input to the output; both have the same shape.

    Examples
    --------
    >>> import opreg as mx
    >>> cell = ResidualCell(mx.rnn.RNNCell(4))
    >>> outputs, _ = cell.unroll(2, [mx.sym.var("t0"), mx.sym.var("t1")])
    >>> len(outputs)
    2
    """

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        output, states = self.base_cell(inputs, states)
        return apply("elemwise_add", output, inputs, name=f"{output.name}_plus_residual"), states

    def unroll(self, length: int, inputs: Steps, begin_state: list[Symbol] | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, list[Symbol]]:
        self.reset()
        states = self.begin_state() if begin_state is None else begin_state
        outputs, after = self.base_cell.unroll(length, inputs, states, layout, merge_outputs)
        merged = isinstance(outputs, Symbol)
        steps, _ = as_steps(length, inputs, layout, merged)
        if merged:
            return apply("elemwise_add", outputs, steps, name=f"{outputs.name}_plus_residual"), after
        return [apply("elemwise_add", output, step, name=f"{output.name}_plus_residual")
                for output, step in zip(outputs, steps)], after
