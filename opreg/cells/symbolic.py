"""from_symbol: a Symbol as a Cell, with its arguments as parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opreg.ndarray import zeros
from opreg.ndarray.computation import compute
from opreg.ndarray.context import current_context
from opreg.symbol.argument_specs import inferred_shapes
from opreg.symbol.symbol import Symbol

from ..core.dispatch import apply
from ..core.graph import Graph, Node
from ..core.named_errors import name_errors
from ..core.op import Op
from ..core.placeholder import resolve
from ..core.rules import Attrs
from ..core.states import begin, beginnings
from ..errors import ArgumentError, did_you_mean, other_count
from .cell import Cell
from .initializer import initializer
from .parameter import Parameter
from .state import STATE
from .tensor import Tensor, tensor
from .typing import TensorLike

__all__ = ["evaluate_graph", "from_symbol", "SymbolCell"]

#: Initializers of arguments without given values, by the end of their name.
_INITIAL = {"weight": "XavierUniform", "bias": "zeros", "gamma": "ones", "beta": "zeros", "moving_mean": "zeros",
            "running_mean": "zeros", "moving_var": "ones", "running_var": "ones"}


class SymbolCell(Cell):
    """The Cell that ``from_symbol`` makes; see there."""

    def __init__(self, symbol: Symbol, inputs: Sequence[str], params: Mapping[str, TensorLike]):
        super().__init__()
        self.symbol, self.inputs = symbol, tuple(inputs)
        self._graph = resolve(symbol._graph())
        arguments, auxiliary = self._graph.variables()
        names = [node.name for node in arguments + auxiliary]
        for name in self.inputs:
            if name not in names:
                raise ArgumentError(f"from_symbol: there is no argument {name!r}. {did_you_mean(name, names)}")
        for name in params:
            if name not in names or name in self.inputs:
                raise ArgumentError(f"from_symbol: {name!r} is no parameter of the symbol. "
                                    f"{did_you_mean(name, [other for other in names if other not in self.inputs])}")
        self._needed = {node.name: node in auxiliary for node in arguments + auxiliary if node.name not in self.inputs}
        for name in self._needed:
            if name in params:
                self._add_parameter(name, tensor(params[name]))

    def _add_parameter(self, name: str, value: Tensor) -> None:
        self.insert_param_to_cell(name, Parameter(value, name, not self._needed[name]), check_name_contain_dot=False)

    def _complete(self, values: Sequence[Tensor]) -> None:
        """Make the parameters without given values, now that shapes are known."""
        missing = [name for name in self._needed if name not in self._params]
        if not missing:
            return
        known = {name: value.shape for name, value in zip(self.inputs, values)}
        known.update({name: parameter.shape for name, parameter in self._params.items() if parameter is not None})
        shapes, _, aux_shapes = inferred_shapes(self.symbol._graph(), self.symbol, "from_symbol", (), known)
        by_name = dict(zip(self.symbol.list_arguments() + self.symbol.list_auxiliary_states(), shapes + aux_shapes))
        states = beginnings(self._graph)
        for name in missing:
            shape = by_name[name]
            if name in states and shape is not None:
                numbers = zeros(shape)
                begin(states[name], name, numbers)
                self._add_parameter(name, tensor(numbers))
                continue
            kind = next((init for end, init in _INITIAL.items() if name.endswith(end)),
                        "zeros" if self._needed[name] else None)
            if kind is None or shape is None:
                raise ArgumentError(f"from_symbol: {name!r} is neither an input nor in params=, and its name does not "
                                    f"determine an initializer; list it in inputs= or give it in params=")
            kind = kind if len(shape) > 1 or kind in ("zeros", "ones") else "zeros"
            self._add_parameter(name, initializer(kind, shape, np.float32))
        if STATE.trace is not None:
            STATE.trace.reads.renew(self)

    def construct(self, *inputs: Tensor) -> Any:
        if len(inputs) != len(self.inputs):
            raise ArgumentError(f"{self.path}: {other_count(self.inputs, len(inputs))}")
        self._complete(inputs)
        by_name = {**self._params, **dict(zip(self.inputs, inputs))}
        results = evaluate_graph(self._graph, lambda node: by_name[node.name])
        return results[0] if len(results) == 1 else tuple(results)

    def extend_repr(self) -> str:
        return f"inputs={list(self.inputs)}, outputs={self.symbol.list_outputs()}"


def evaluate_graph(graph: Graph, value_of: Callable[[Node], Any], applied: Callable[..., Any] | None = None
                   ) -> list[Any]:
    """The outputs of a graph, computed or traced operator by operator.

    Parameters
    ----------
    graph : Graph
        The graph.
    value_of : function of Node
        Gives the value of each variable, in their order.
    applied : function, optional
        Applies an operator to values with attributes; by default computes with tensors, or traces if they are traced.
    """
    values: dict[Node, Sequence[Any]] = {}
    graph = resolve(graph)
    for node in graph.nodes:
        if node.op is None:
            values[node] = (value_of(node),)
            continue
        outs = (applied or _apply_operator)(node.op, [values[source][i] for source, i in node.inputs], node.attrs)
        values[node] = outs if isinstance(outs, (list, tuple)) else (outs,)
    return [values[node][i] for node, i in graph.heads]


def _apply_operator(op: Op, values: Sequence[Any], attrs: Attrs) -> Any:
    """The results of an operator on tensors, also of one without inputs."""
    if values:
        return apply(op, values, attrs)
    if STATE.trace is not None:
        return STATE.trace.call(op, values, attrs)
    return compute(op, attrs, values, current_context(), result_class=Tensor)[1]


def from_symbol(symbol: Symbol, inputs: str | Sequence[str] = ("data",), params: Mapping[str, TensorLike] | None = None
                ) -> SymbolCell:
    """A Cell that computes a Symbol.

    Parameters
    ----------
    symbol : Symbol
        The Symbol; its outputs are those of the Cell, bare if there is one.
    inputs : str or sequence of str
        Arguments that are inputs of the Cell, in this order; the others become its parameters.
    params : mapping of str to Tensor, NDArray or NumPy array, optional
        Values of parameters and auxiliary states. Parameters not given are made at the first call, when shapes are
        known, by the end of their name: weights by ``XavierUniform``, biases zeros, scales ones. States of users'
        operators begin with the values that these declare, or else by their names, or else with zeros.

    Examples
    --------
    >>> from opreg.symbol import Variable
    >>> cell = from_symbol(Variable("data") * 2 + Variable("shift"), params={"shift": np.ones(2, np.float32)})
    >>> cell(tensor([1.0, 2.0]))
    Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  5.00000000e+00])
    """
    if not isinstance(symbol, Symbol):
        raise ArgumentError(f"from_symbol: expected a Symbol, got {type(symbol).__name__}")
    return SymbolCell(symbol, (inputs,) if isinstance(inputs, str) else tuple(inputs), params or {})


name_errors(__name__, globals(), __all__)
