"""gradient: grow the graph of the gradients, by the walk that also serves the tape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opreg.gradient import by_rule, filled, walk
from opreg.graph import Entry, Graph, Node
from opreg.registry import ops
from opreg.spec import Spec
from opreg.subgraph import fits, subgraph
from opreg.tracing import RuleTracer, TracedValue

from .. import infer as inference
from ..program import Bound, Program, reachable
from ..symbol import GRADIENT, output_name

__all__ = ["grow", "gradient", "GRADIENTS"]

#: Tag of nodes that make gradients of a node's inputs: what each output is called in the words of MXNet.
GRADIENTS = "__gradients__"


def grow(tracer: RuleTracer, order: Sequence[Node], seeds: Sequence[tuple[Entry, Any]], wanted: Iterable[Node],
         is_train: bool = True, watched: bool = False) -> dict[Entry, TracedValue]:
    """Gradients of the entries of wanted nodes, without those that the heads do not depend on.

    Parameters
    ----------
    tracer : RuleTracer
        Takes the nodes that compute them, in an order that keeps few gradients alive at a time: that of a layer's
        weights stands beside that of its data.
    order : sequence of Node
        The forward nodes, inputs before users.
    seeds : sequence of head entry and value
        The gradient that arrives there, None for a loss.
    wanted : iterable of Node
        With respect to what.
    is_train : bool
        Whether operators are differentiated as they compute in training.
    watched : bool
        Whether the nodes that make gradients say so, for a monitor.
    """
    def differentiate(node: Node, arriving: list[Any], needs: tuple[bool, ...]) -> Sequence[Any]:
        tracer.source = node  # of sums of gradients, too, which are made outside of rules
        found = _differentiate(tracer, node, arriving, needs, is_train)
        if watched:
            _title(node, found)
        return found

    arriving: dict[Entry, Any] = {}
    for entry, value in seeds:
        other = arriving.get(entry)
        arriving[entry] = other if value is None else value if other is None else other + value
    targets = set(wanted)
    found = walk(order, arriving, targets, differentiate, lambda _, held, g: held + g)
    return {entry: value for entry, value in found.items() if entry[0] in targets and value is not None}


def _differentiate(tracer: RuleTracer, node: Node, arriving: Sequence[Any], needs: tuple[bool, ...], is_train: bool
                   ) -> Sequence[Any]:
    """The gradients of a node's inputs."""
    op: Any = node.op
    outs = [(node, i) for i in range(node.count)]
    if not fits(op):
        return by_rule(node, arriving, needs, lambda _: (list(map(tracer.value, node.inputs)),
                                                         list(map(tracer.value, outs))), ops.zeros_like, is_train)
    arriving = filled(node, arriving, outs, lambda entry: ops.zeros_like(tracer.value(entry)))
    rule = subgraph(op, node.attrs, tuple([g is not None for g in arriving]), needs, node.in_training(is_train),
                    lambda: [tracer.spec(entry) for entry in (*outs, *node.inputs, *outs)])
    return rule.inline(tracer, [*[None if g is None else g._entry for g in arriving], *node.inputs, *outs])


def _title(node: Node, gradients: Sequence[Any]) -> None:
    """Let the nodes that a rule has just made say of which inputs they compute the gradients."""
    op: Any = node.op
    count = len(op.arguments(node.attrs))
    for i, gradient in enumerate(gradients[:count]):
        maker, index = (None, 0) if gradient is None else gradient._entry
        if maker is None or maker.op is None or maker.name != f"{node.name}_backward":
            continue  # it is another's
        names = maker.tags[GRADIENTS].split() if GRADIENTS in maker.tags else list(maker.op.outputs(maker.attrs))
        names[index] = "output" if count == 1 else f"output{i}"
        maker.tags = {**maker.tags, GRADIENTS: " ".join(names)}


@GRADIENT.fill
def of_sum(graph: Graph, wanted: Sequence[Node]) -> list[Entry]:
    """Gradients of the sum of all heads with respect to variables, zeros where there is none."""
    tracer = RuleTracer()
    seeds = [(entry, ops.ones_like(tracer.value(entry))) for entry in graph.heads]
    found = grow(tracer, graph.nodes, seeds, wanted)
    entries = [(node, 0) for node in wanted]
    return [(found[entry] if entry in found else ops.zeros_like(tracer.value(entry)))._entry for entry in entries]


def gradient(program: Program) -> Program:
    """Add the nodes that compute the gradients asked for, behind the forward ones, with their specs."""
    bound = program.bound
    if program.backward is None or not bound.grads:
        return program
    tracer = RuleTracer(known=program.specs)
    seeds, arrivals = _seeds(bound, tracer)
    for node, array in arrivals.items():
        program.arrays[node], program.contexts[node] = array, bound.ctx
        program.specs[node] = [Spec(array.shape, array.dtype)]
    found = grow(tracer, bound.graph.nodes, seeds, bound.grads, program.backward, program.watched)
    program.wanted = [node for node in bound.grads if (node, 0) in found]
    program.late = [bound.grads[node] for node in program.wanted]
    heads = [found[node, 0]._entry for node in program.wanted]
    forward = set(program.nodes)
    everything = program.nodes + list(arrivals) + tracer.nodes
    program.nodes = program.nodes + [node for node in reachable(everything, heads) if node not in forward]
    program.heads = program.heads + heads
    program.specs = inference.infer(program.graph, {}, {}, program.specs)
    return program


def _seeds(bound: Bound, tracer: RuleTracer) -> tuple[list[tuple[Entry, Any]], dict[Node, Any]]:
    """The gradients that arrive at the heads, and the variables that stand for them with their arrays."""
    seeds: list[tuple[Entry, Any]] = []
    arrivals: dict[Node, Any] = {}
    for entry, array in zip(bound.graph.heads, bound.head_grads):
        if array is None:
            seeds.append((entry, None))
            continue
        node = Node(None, f"{output_name(entry)}_grad")
        arrivals[node] = array
        seeds.append((entry, tracer.value((node, 0))))
    return seeds, arrivals
