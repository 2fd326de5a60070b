"""Plans of a hybridized block's graph: one for each kind of inputs, context and mode, on the tape as one
application."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter, is_
from typing import Any

from opreg.core import generators
from opreg.custom.function import SpecsChanged
from opreg.ndarray.cached_op import CachedOp
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray, wrap
from opreg.symbol import infer as inference
from opreg.symbol.symbol import Symbol

from ..cells import tree
from ..cells.bailout import LeftToPython
from ..cells.compiled import Compiled, CompiledOnDevice
from ..cells.graph_reads import warn_of_reads
from ..cells.jit import KINDS
from ..cells.observer import Observer
from ..cells.plan_memory import PlanMemories
from ..cells.symbolic import evaluate_graph
from ..cells.tensor import as_array, tensor
from ..cells.trace import FunctionTracer
from ..cells.traced import Traced
from ..core.cache import Recent
from ..core.graph import Entry, Graph, Node, rewrite
from ..core.invalidation import watch
from ..core.locks import rlock
from ..core.mode import MODE, Recording
from ..core.op import Op
from ..core.placeholder import resolve
from ..core.tracing import TraceError
from .base_parameter import Parameter
from .reads import FOUND

__all__ = ["BlockPlans"]

_arrays_of = attrgetter("_data")


class _ContextPlans:
    """The plans of one context, bound to the parameters' arrays there.

    Parameters
    ----------
    weights : list of NDArray
        The arrays of the parameters on the context.
    arrays : list of NDArray
        The arrays of the parameters on all contexts.
    """

    def __init__(self, weights: list[NDArray], arrays: list[NDArray]):
        self.weights, self.arrays = weights, arrays
        self.memories = PlanMemories()
        self.kinds = Recent(KINDS, "plans of hybridized blocks")


def _run(function: Callable[..., list[Any]], compiled: Compiled | None, data: Sequence[Any]) -> list[NDArray]:
    """The outputs by a plan, or by the function if there is none."""
    results: list[NDArray] = function(*data) if compiled is None else compiled.call(function, data)
    return results


class BlockPlans:
    """A graph of a block, run over its inputs and its parameters' arrays.

    Plans read parameters from the parameters' own memory, so each run sees their current values. When a parameter gets
    another array, as by ``cast``, its plans are made again; so is a plan when a value has changed that the body or
    the gradient rule of a user's operator read from outside, or when a result has another spec than a dry run has
    found. Inputs of another shape or dtype have plans of their own, and so have training and inference.

    Parameters
    ----------
    symbol : Symbol
        The graph.
    inputs : sequence of (int or Parameter)
        For each of its variables, the number of the input, or the parameter.
    title : str
        The block's name, for errors.
    """

    def __init__(self, symbol: Symbol, inputs: Sequence[int | Parameter], title: str):
        self.symbol, self.inputs, self._title = symbol, list(inputs), title
        self._parameters = [source for source in self.inputs if isinstance(source, Parameter)]
        self._placed: dict[Context, _ContextPlans] = {}
        self._lock = rlock()
        watch(self)

    def on_register(self, op: Op | None) -> None:
        """Drop all plans, since a plan has fixed kernels and gradients."""
        self._placed.clear()

    def __call__(self, data: Sequence[NDArray]) -> list[NDArray]:
        """The outputs for inputs, all on one context."""
        ctx = data[0]._ctx
        placed = self._placed.get(ctx)
        if placed is None or not self._same_arrays(placed):
            weights = [parameter.data(ctx) for parameter in self._parameters]
            placed = self._placed[ctx] = _ContextPlans(
                weights, list(chain.from_iterable(map(_arrays_of, self._parameters))))
        training = MODE.__dict__["current"]().training
        key = training, *[(value._data.shape, value._data.dtype) for value in data]
        kind = placed.kinds[key]
        # Values that a gradient rule reads join the reads with the first plan for gradients.
        check = None if kind is None or kind[1] is None else kind[1].reads.check
        if kind is None or (check is not None and check() is not None):
            kind = self._planned(data, placed, training)
            placed.kinds.keep(key, kind)
        function, compiled = kind
        if compiled is None or not compiled.traced.by_run:
            return _run(function, compiled, data)
        try:
            with generators.noted_states() as drawn:
                return _run(function, compiled, data)
        except SpecsChanged:
            generators.go_back(drawn)
            function, compiled = kind = self._planned(data, placed, training)
            placed.kinds.keep(key, kind)
            return _run(function, compiled, data)

    def _same_arrays(self, placed: _ContextPlans) -> bool:
        """Whether the parameters still have these arrays."""
        try:
            return all(map(is_, placed.arrays, chain.from_iterable(map(_arrays_of, self._parameters))))
        except TypeError:  # a parameter has no arrays now
            return False

    def _planned(self, data: Sequence[NDArray], placed: _ContextPlans, training: bool
                 ) -> tuple[Callable[..., list[Any]], Compiled | None]:
        """The graph as a function, and its plans for inputs like these."""
        with self._lock:
            graph = self._infer_lengths(data, placed.weights)
            return self._eager_function(graph, placed.weights), self._compiled(graph, data, placed, training)

    def _given(self, data: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        """Values of the graph's variables, in their order."""
        remaining_weights = iter(weights)
        return [next(remaining_weights) if isinstance(source, Parameter) else data[source] for source in self.inputs]

    def _infer_lengths(self, data: Sequence[NDArray], weights: Sequence[NDArray]) -> Graph:
        """The graph, with unknown lengths of operators such as zeros inferred from inputs."""
        graph = resolve(self.symbol._graph())
        if MODE.np_shape or not any(map(_is_open, graph.nodes)):
            return graph
        variables = [node for node in graph.nodes if node.op is None]
        value_of = dict(zip(variables, self._given(data, weights)))
        specs = inference.infer(graph, {node: value.shape for node, value in value_of.items()},
                                {node: value._data.dtype for node, value in value_of.items()})

        def change(node: Node, _: list[Entry]) -> list[Entry] | None:
            if not _is_open(node):
                return None
            assert node.op is not None
            attrs = node.op.complete({**node.keywords, "shape": specs[node][0].shape})
            return [(node.copy((), attrs=attrs), 0)]

        return rewrite(graph, change)

    def run_monitored(self, data: Sequence[NDArray], callback: Callable[[str, str, NDArray], object], everything: bool
                      ) -> list[NDArray]:
        """The outputs, with operators run one by one: ``callback(name, operator, array)`` is called with each output,
        and with inputs if ``everything``."""
        weights = [parameter.data(data[0]._ctx) for parameter in self._parameters]
        symbol = Symbol(self._infer_lengths(data, weights).heads)
        inside = symbol.get_internals()
        outs = CachedOp(inside)(*self._given(data, weights))
        values = dict(zip(inside._entries, outs if isinstance(outs, list) else [outs]))
        for node in symbol._graph().nodes:
            if node.op is not None:
                named = [*zip(node.op.signature.arguments(node.attrs), node.inputs)] if everything else []
                named += [(name, (node, i)) for i, name in enumerate(node.op.signature.outputs(node.attrs))]
                for name, entry in named:
                    if entry in values:
                        callback(f"{node.name}_{name}", node.op.name, values[entry])
        return [values[entry] for entry in symbol._entries]

    def _eager_function(self, graph: Graph, weights: Sequence[NDArray]) -> Callable[..., list[Any]]:
        """The graph as a function of inputs, with operators run one by one."""
        apply = CachedOp(Symbol(graph.heads))

        def function(*data: NDArray) -> list[Any]:
            given = [tensor(value) for value in data]
            out = apply(*self._given(given, weights))
            itself = dict(zip(map(id, given), data))  # a result that is an input is the caller's array
            return [itself[id(value)] if id(value) in itself else as_array(value)
                    for value in (out if isinstance(out, list) else [out])]

        return function

    def _compiled(self, graph: Graph, data: Sequence[NDArray], placed: _ContextPlans,
                  training: bool) -> Compiled | None:
        """Plans for inputs like these; None where shapes depend on values."""
        trace = FunctionTracer(self._title)
        inputs = [trace.input(f"data{i}", value.shape, value._data.dtype) for i, value in enumerate(data)]
        variable_values = iter(self._given(inputs, placed.weights))
        observer = Observer(trace.reads)
        try:
            with trace, Recording(None, training), observer:
                outs = evaluate_graph(graph, lambda _: next(variable_values), trace.call)
            warn_of_reads(f"{self._title} {FOUND}", observer)
            traced = Traced(trace, inputs, outs, data[0]._ctx, placed.weights)
        except (LeftToPython, TraceError):
            return None
        arguments = tree.flatten([list(inputs), {}], [])
        compiled = (Compiled if traced.ctx.device is None else CompiledOnDevice)(
            traced, arguments, placed.memories, wrap=wrap)
        compiled.by_mode = any(node.op is not None and node.op.traits.minds_training for node in graph.nodes)
        states = set(self.symbol.list_auxiliary_states())
        compiled.moving = [value for name, value in zip(self.symbol.list_inputs(), self._given(data, placed.weights))
                           if name in states]
        return compiled


def _is_open(node: Node) -> bool:
    """Whether an operator makes an array of a shape in which 0 is an unknown length."""
    return node.op is not None and not node.inputs and 0 in (node.attrs.get("shape") or ())
