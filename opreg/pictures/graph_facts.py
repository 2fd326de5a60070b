"""Graphs of Symbols, Cells and executors, with everything known about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opreg.cells.cell import Cell
from opreg.core.graph import Graph, Node
from opreg.core.parameters import signature_of
from opreg.core.placeholder import resolve
from opreg.core.spec import ANY, Shape, Spec, as_dtype, parse_shape
from opreg.errors import ArgumentError, did_you_mean
from opreg.symbol import infer as inference
from opreg.symbol.executor import Executor
from opreg.symbol.inspect.profile import Profile
from opreg.symbol.inspect.work import time_text
from opreg.symbol.plan import Plan, Segment
from opreg.symbol.stages import StagedExecutor
from opreg.symbol.symbol import Symbol

from .drawing import Drawing, of_graph, of_plan
from .names import Path

__all__ = ["GraphFacts", "by_sample", "examples", "roles", "facts_of"]

# Names of learned inputs, and the suffixes of variables' names for them.
_LEARNED = frozenset({"weight", "bias", "gamma", "beta", "parameters", "moving_mean", "moving_var", "moving_avg",
                      "running_mean", "running_var"})
_ENDINGS = tuple(f"_{name}" for name in sorted(_LEARNED))


@dataclass
class GraphFacts:
    """A graph and what is known about it.

    Attributes
    ----------
    symbol : Symbol
    graph : Graph
    specs : dict
        Known shapes and dtypes of nodes' outputs.
    hidden : set of Node
        Nodes that are not drawn.
    cells : dict or None
        Titles of the Cells it was traced from, by path.
    executor : Executor or None
    plan : Plan or None
        The plan to draw.
    segments : list of (str, Segment)
        Parts of the plan, by name.
    parameters : set of str
        Names of a Cell's parameters.
    """

    symbol: Symbol
    graph: Graph
    specs: dict[Node, list[Spec]]
    hidden: set[Node]
    cells: dict[Path, str] | None = None
    executor: Executor | None = None
    plan: Plan | None = None
    segments: list[tuple[str, Segment]] = field(default_factory=list)
    parameters: set[str] = field(default_factory=set)

    def by_sample(self, node: Node, index: int) -> str:
        """The shape of an output without the batch axis."""
        return by_sample(self.specs[node][index].shape)

    def drawing(self, title: str, profile: Profile | None = None) -> Drawing:
        """The drawing of the graph, or of the plan."""
        if self.plan is None:
            return of_graph(title, self.graph, self.specs, self.hidden, self.cells)
        times = {} if profile is None else {(row.half, row.step): time_text(row.seconds) for row in profile.rows}
        return of_plan(title, self.plan, self.segments, {node.name for node in self.hidden}, times)


def by_sample(shape: Shape | None) -> str:
    """A shape without its first dimension, the batch: ``3x32x32``."""
    return "" if shape is None else "x".join("?" if dim is ANY else str(dim) for dim in shape[1:])


def roles(graph: Graph) -> tuple[set[Node], set[Node], set[Node]]:
    """The learned variables, the auxiliary states, and the labels."""
    learned, states, labels = set(), set(graph.variables()[1]), set()
    for node in graph.nodes:
        if node.op is None:
            if node.name.endswith(_ENDINGS):
                learned.add(node)
            elif node.name.endswith("label"):
                labels.add(node)
            continue
        for name, (source, _) in zip(node.op.signature.arguments(node.attrs), node.inputs):
            if source.op is None and name in _LEARNED:
                learned.add(source)
            elif source.op is None and name == "label":
                labels.add(source)
    return learned - states, states, labels - learned - states


def facts_of(what: str, value: object, shape: Mapping[str, Sequence[int]] | None = None,
             dtype: Mapping[str, Any] | None = None, hide_weights: bool = True, inputs: Any = None,
             is_train: bool | None = None) -> GraphFacts:
    """The graph of a Symbol, a Cell or an executor, with what is known about it.

    Parameters
    ----------
    what : str
        The caller's name, for error messages.
    value : Symbol, Cell or Executor
    shape, dtype : dict by name, optional
        Shapes and dtypes of arguments of a Symbol.
    hide_weights : bool
        Whether to hide learned variables.
    inputs : Tensor, shape, or tuple of them, optional
        Example inputs of a Cell.
    is_train : bool, optional
        Whether to use an executor's training plan; by default if it computes gradients.
    """
    if isinstance(value, Executor):
        facts = _executor(value, is_train)
    elif isinstance(value, Cell):
        facts = _cell(value, inputs)
    elif isinstance(value, Symbol):
        facts = _symbol(what, value, shape, dtype)
    else:
        raise ArgumentError(f"{what}: expected a Symbol, a Cell or an Executor, got {type(value).__name__}")
    if hide_weights:
        learned, states, _ = roles(facts.graph)
        facts.hidden |= learned | states | {node for node in facts.graph.nodes
                                            if node.op is None and node.name in facts.parameters}
    return facts


def _symbol(what: str, symbol: Symbol, shape: Mapping[str, Sequence[int]] | None,
            dtype: Mapping[str, Any] | None) -> GraphFacts:
    graph = resolve(symbol._graph(), strict=False)
    variables = {node.name: node for node in graph.nodes if node.op is None}
    for hints in (shape, dtype):
        for name in hints or {}:
            if name not in variables:
                raise ArgumentError(f"{what}: {symbol!r} has no argument {name!r}. {did_you_mean(name, variables)}")
    shapes = {variables[name]: parse_shape(dims) for name, dims in (shape or {}).items()}
    dtypes = {variables[name]: as_dtype(element_type) for name, element_type in (dtype or {}).items()}
    return GraphFacts(symbol, graph, inference.infer_specs(graph, shapes, dtypes, decide=bool(shape or dtype)), set())


def examples(inputs: Any) -> tuple[Any, ...]:
    """Example inputs of a Cell, from one or several tensors or shapes."""
    if inputs is None:
        return ()
    if isinstance(inputs, (tuple, list)) and not all(isinstance(value, int) for value in inputs):
        return tuple(inputs)
    return (tuple(inputs) if isinstance(inputs, (tuple, list)) else inputs,)


def _cell(cell: Cell, inputs: Any) -> GraphFacts:
    values = examples(inputs)
    symbol = cell.to_symbol(*values)
    graph = symbol._graph()
    variables = {node.name: node for node in graph.nodes if node.op is None}
    shapes: dict[Node, Shape | None] = {}
    dtypes: dict[Node, np.dtype | None] = {}
    inputs_by_name = dict(zip(signature_of(cell.construct).parameters, values))
    for name, value in [*inputs_by_name.items(), *[(parameter.name, parameter) for parameter in cell.get_parameters()]]:
        if name in variables:
            shapes[variables[name]] = value if isinstance(value, tuple) else value.shape
            dtypes[variables[name]] = np.dtype(np.float32) if isinstance(value, tuple) else value._data.dtype
    specs = inference.infer_specs(graph, shapes, dtypes, decide=bool(values))
    parameters = {parameter.name for parameter in cell.get_parameters()}
    titles = {tuple(path.split(".")): f"{path.rpartition('.')[2]} · {type(member).__name__}"
              for path, member in cell.cells_and_names() if path}
    return GraphFacts(symbol, graph, specs, set(), titles, parameters=parameters)


def _executor(executor: Executor, is_train: bool | None) -> GraphFacts:
    symbol = executor._symbol
    graph = resolve(symbol._graph())
    arguments, states = graph.variables()
    arrays = dict(zip([*arguments, *states], [*executor.arg_arrays, *executor.aux_arrays]))
    specs = inference.infer_specs(graph, {node: array.shape for node, array in arrays.items()},
                                  {node: array._data.dtype for node, array in arrays.items()})
    facts = GraphFacts(symbol, graph, specs, set(), None, executor)
    if not isinstance(executor, StagedExecutor):  # an executor with several plans is shown as its graph
        facts.plan = executor.plan(executor._keeps_gradients if is_train is None else is_train)
        facts.segments = list(executor._plans_of(facts.plan.is_train)[0].segments)
    return facts
