"""Stages: executors of graphs in which shapes depend on values.

An operator with the rule ``infer_from_data`` begins a new stage. The nodes that do not depend on it are bound as an
executor of their own, when the graph is bound. After that one has run, the rule computes the shapes of the operator's
outputs. The other nodes, the operator included, are then bound for these shapes as a second executor. Its arguments are
outputs of the first, and the gradients of those are head gradients of the first. The second part may have stages
again. The executors of the most recent shapes are cached.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from opreg.core.declarations import ZERO
from opreg.core.graph import Entry, Graph, Node, fail, rewrite
from opreg.core.launch import Call
from opreg.core.op import shapes_from_data
from opreg.core.registry import get
from opreg.core.reports import Explanation, report
from opreg.core.spec import ANY, Shape, Spec, show, unify
from opreg.errors import ArgumentError
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray, wrap

from . import infer as inference
from .arrays import BoundArrays, zeros
from .executor import Executor
from .head_gradients import HeadGradients, OutGrads, check_head_gradients, order_gradients
from .naming import output_name
from .partitioned_executor import PartitionedExecutor, merge_outputs
from .plans import in_mode
from .reduction import Reduction
from .single_thread import SingleThread
from .symbol import Symbol

if TYPE_CHECKING:
    from opreg.distributed.groups import Group

__all__ = ["StagedExecutor", "depends_on_data", "CACHED", "UNREDUCED"]

#: The number of executors of the second part that are cached, each for other shapes.
CACHED = 8

#: The error for a reduction of the gradients of such a graph.
UNREDUCED = ("reduce: the shapes of this graph depend on values, so they may differ between ranks; reduce its "
             "gradients by Group.allreduce")


def depends_on_data(node: Node) -> bool:
    """Whether the shapes of a node's outputs depend on values in its inputs."""
    return node.op is not None and node.op.rules.data_dependent


class _Cut:
    """A graph cut in two at the operators whose output shapes depend on values.

    Attributes
    ----------
    first : list of Entry
        The outputs of the first part: outputs of the graph, then the entries of ``crossing``.
    early : list of bool
        For each output of the graph, whether the first part computes it.
    crossing : dict of Entry to Node
        Entries of the first part that the second part reads, each with its variable there.
    second : list of Entry
        The outputs of the graph that the second part computes.
    border : list of (Node, Node)
        The nodes of these operators, in the second part and in the graph.
    """

    def __init__(self, graph: Graph, known_specs: Mapping[Node, list[Spec]]):
        late: set[Node] = set()
        self.crossing: dict[Entry, Node] = {}
        for node in graph.nodes:
            if (depends_on_data(node) and node not in known_specs) or any(source in late for source, _ in node.inputs):
                late.add(node)
                self.crossing.update((entry, Node(None, output_name(entry))) for entry in node.inputs
                                     if entry[0].op is not None and entry[0] not in late and entry not in self.crossing)
        self.border: list[tuple[Node, Node]] = []

        def change(node: Node, inputs: list[Entry]) -> list[Entry]:
            entries = [(node, i) for i in range(node.count)]
            if node not in late:
                return [(self.crossing[entry], 0) if entry in self.crossing else entry for entry in entries]
            new = node.with_inputs(inputs)
            if depends_on_data(node) and all(source.op is None for source, _ in inputs):
                self.border.append((new, node))
            return [(new, i) for _, i in entries]

        self.early = [node not in late for node, _ in graph.heads]
        self.second = list(rewrite(Graph([entry for entry in graph.heads if entry[0] in late]), change).heads)
        self.first = [entry for entry in graph.heads if entry[0] not in late]
        reached = _differentiable_nodes(Graph(self.second))
        for entry, variable in self.crossing.items():
            # No gradient of the second part reaches this head: the first part passes none through it.
            self.first.append(entry if variable in reached else (Node(get("BlockGrad"), variable.name, {}, [entry]), 0))


def _differentiable_nodes(graph: Graph) -> set[Node]:
    """The nodes that may have gradients."""
    reached = {node for node, _ in graph.heads}
    for node in reversed(graph.nodes):
        if node in reached and node.op is not None and node.op.rules.grad is not ZERO:
            reached.update(source for source, _ in node.inputs)
    return reached


class StagedExecutor(PartitionedExecutor):
    """An executor of a graph in which shapes depend on values.

    Each forward replaces the arrays in ``outputs`` whose shapes depend on values. Before the first they are empty.
    """

    _reason = "shapes depend on values"

    def __init__(self, symbol: Symbol, ctx: Context, args: list[NDArray], grads: list[NDArray | None],
                 reqs: list[str], aux: list[NDArray], head_grads: OutGrads, make: Callable[..., Executor],
                 known_specs: Mapping[Node, list[Spec]], reshaped: bool):
        graph = symbol._graph()
        arguments, auxiliary = graph.variables()
        self._arrays = dict(zip(arguments + auxiliary, args + aux))
        self._wanted = {node: (grad, req) for node, grad, req in zip(arguments, grads, reqs) if grad is not None}
        specs = inference.infer_specs(graph, {node: value.shape for node, value in self._arrays.items()},
                                      {node: value._data.dtype for node, value in self._arrays.items()}, known_specs)
        bound = check_head_gradients(head_grads, symbol.list_outputs(), [specs[node][i] for node, i in graph.heads],
                                     ctx, reshaped)
        SingleThread.__init__(self)
        BoundArrays.__init__(self, graph, ctx, args, grads, reqs, aux, bound)
        self._symbol, self._make, self._gradients = symbol, make, {True: True, False: None}
        targets = [None if gradient is None or (node.op is not None and node.op.loss(node.attrs)) else gradient._data
                   for gradient, (node, _) in zip(bound, graph.heads)]
        self._heads = HeadGradients(targets, bound, self._output_names, ctx)
        self._cut = _Cut(graph, known_specs)
        self._border = [(new, specs[old]) for new, old in self._cut.border]
        self._follows = Symbol(self._cut.second)
        self._first = self._bind_first(known_specs) if self._cut.first else None
        self._second_parts: OrderedDict[tuple, Executor] = OrderedDict()
        self._second: Executor | None = None  # the second part of the last forward
        self.outputs = self._merge_outputs([_empty_array(specs[node][i], ctx) for (node, i), early
                                            in zip(graph.heads, self._cut.early) if not early])

    def reduce(self, reduce: Group | Reduction | None) -> None:
        """Raises an error for any reduction, since ranks may have different shapes, and so different plans."""
        if Reduction.of_arguments(reduce, None) is not None:
            raise ArgumentError(UNREDUCED)

    @property
    def _reduced(self) -> None:
        return None

    # ---------------------------------------------------------------------------------------------- the parts

    def _part(self, heads: Symbol, gradients: Mapping[Node, tuple[NDArray, str]],
              known_specs: Mapping[Node, list[Spec]]) -> Executor:
        arguments, auxiliary = heads._graph().variables()
        requests = [gradients.get(node, (None, "null")) for node in arguments]
        return self._make(heads, args=[self._arrays[node] for node in arguments], grads=[grad for grad, _ in requests],
                          reqs=[req for _, req in requests], aux=[self._arrays[node] for node in auxiliary],
                          specs=known_specs)

    def _bind_first(self, known_specs: Mapping[Node, list[Spec]]) -> Executor:
        """Bind the first part. Its backward runs last, so it adds to gradients that the second part has written."""
        later = set(self._follows._graph().nodes)
        first = self._part(Symbol(self._cut.first), {
            node: (grad, "add" if req == "write" and node in later else req)
            for node, (grad, req) in self._wanted.items()}, known_specs)
        count = sum(self._cut.early)
        for variable, output, grad in zip(self._cut.crossing.values(), first.outputs[count:],
                                          first._bound.head_grads[count:]):
            self._arrays[variable] = output
            if grad is not None:
                self._wanted[variable] = NDArray(grad, first._ctx), "write"
        return first

    def _bind_second(self, shapes: Sequence[Sequence[Shape]]) -> Executor:
        second = self._part(self._follows, self._wanted, {
            node: [Spec(shape, spec.dtype) for shape, spec in zip(measured, specs)]
            for (node, specs), measured in zip(self._border, shapes)})
        for mode, is_train in self._gradients.items():
            if second._gradients[mode] is not is_train:
                second._differentiate(mode, is_train)
        second._set_monitor(*self._monitor)
        return second

    def _parts(self) -> list[Executor]:
        return [*([] if self._first is None else [self._first]), *self._second_parts.values()]

    def _latest(self) -> list[Executor]:
        return [part for part in (self._first, self._second) if part is not None]

    def _sizes(self, is_train: bool) -> tuple:
        """The shapes of the operators at the border, computed from the current values."""
        border: list[tuple[Shape | None, ...]] = []
        for node, specs in self._border:
            assert node.op is not None
            ins = [self._arrays[source] for source, _ in node.inputs]
            ctx = ins[0]._ctx
            call = Call(node.op, node.attrs, [array._data for array in ins], [], [], ctx.xp, ctx, is_train, wrap=wrap)
            try:
                measured = shapes_from_data(node.op, call)
                border.append(tuple([unify(spec.shape, counted) for spec, counted in zip(specs, measured)]))
            except Exception as error:
                fail(error, node)
        return tuple(border)

    # ------------------------------------------------------------------------------------------------- running

    def _run_steps(self, is_train: bool) -> None:
        self._ran, self._mode = None, is_train
        if self._first is not None:
            self._first._run_steps(is_train)
        shapes: list[tuple] = []
        in_mode(lambda: shapes.extend(self._sizes(is_train)), self._ctx, is_train)
        key = tuple(shapes)
        second = self._second_parts.pop(key, None) or self._bind_second(key)
        self._second_parts[key] = self._second = second
        if len(self._second_parts) > CACHED:
            self._second_parts.popitem(last=False)
        second._run_steps(is_train)
        self.outputs = self._merge_outputs(second.outputs)
        self._ran = is_train

    def _back(self, out_grads: OutGrads, is_train: bool) -> None:
        mode = is_train or self._mode
        if self._gradients[mode] is not is_train:
            self._differentiate(mode, is_train)
        self._heads.take(set(), out_grads)
        gradients = order_gradients("backward", out_grads, self._output_names)
        gradients = [gradient if bound is None else bound for gradient, bound in
                     zip([*gradients, *[None] * len(self.head_grads)], self.head_grads)]
        if self._ran is not mode:
            self._repeat(mode, functools.partial(self._run_steps, mode))
        self._ran = None
        assert self._second is not None
        self._second._back([gradient for gradient, early in zip(gradients, self._cut.early) if not early], is_train)
        if self._first is not None:
            crossing = [self._wanted[variable][0] if variable in self._wanted else None
                        for variable in self._cut.crossing.values()]
            self._first._back([*[gradient for gradient, early in zip(gradients, self._cut.early) if early], *crossing],
                              is_train)

    def _merge_outputs(self, late: Sequence[NDArray]) -> list[NDArray]:
        return merge_outputs(self._cut.early, [] if self._first is None else self._first.outputs, late)

    # ---------------------------------------------------------------------------------------------- inspection

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """Outputs by name."""
        self._dicts.pop("output_dict", None)
        return self._dict("output_dict", self._output_names, self.outputs)

    def explain(self, is_train: bool | None = None) -> Explanation:
        """Each step of the plans: of the first part, and of the second for each cached set of shapes."""
        is_train = self._mode_of(is_train)
        names = ", ".join(node.name for node, _ in self._border)
        lines = [] if self._first is None else [f"before {names}:", *self._first.explain(is_train).split("\n")]
        for key, part in self._second_parts.items():
            shapes = ", ".join(show(shape) for shapes in key for shape in shapes)
            lines += [f"from {names} of shape {shapes}:", *part.explain(is_train).split("\n")]
        return Explanation(report(lines if self._second_parts else [*lines, f"from {names}: planned when it has run"]))


def _empty_array(spec: Spec, ctx: Context) -> NDArray:
    """An empty array, with as many axes as are known."""
    shape, dtype = spec
    dims = (0,) if shape is None else tuple([0 if dim is ANY else dim for dim in shape])
    return NDArray(zeros(ctx, dims if 0 in dims else (0, *dims[1:]), dtype), ctx)
