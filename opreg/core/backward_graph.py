"""The backward graph: nodes that compute gradients, made by the reverse walk that also serves the tape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from .gradient import by_rule, filled_gradients, walk
from .graph import Entry, Graph, Node
from .registry import ops
from .subgraph import fits, subgraph
from .tracing import RuleTracer, TracedValue

__all__ = ["grow", "gradients"]

Gradients: TypeAlias = Sequence[TracedValue | None]


def grow(tracer: RuleTracer, order: Sequence[Node], seeds: Sequence[tuple[Entry, TracedValue | None]],
         wanted: Iterable[Node], is_train: bool = True, titles: dict[Node, list[str]] | None = None
         ) -> dict[Entry, TracedValue]:
    """Add nodes that compute the gradients of wanted nodes. Nodes on which no head depends get no gradient.

    Parameters
    ----------
    tracer : RuleTracer
        Receives the new nodes, in an order with few gradients alive at a time: the gradient of a layer's weight is next
        to that of its data.
    order : sequence of Node
        The forward nodes, inputs before users.
    seeds : sequence of head entry and value
        Each head and its output gradient, None for a loss.
    wanted : iterable of Node
        The nodes whose gradients are requested.
    is_train : bool
        Whether operators are differentiated as in training.
    titles : dict of Node to list of str, optional
        Receives MXNet's names of the outputs of nodes that compute gradients, for a monitor.
    """

    def differentiate(node: Node, out_grads: Gradients, needs: tuple[bool, ...]) -> Gradients:
        tracer.source = node  # the sums of gradients, which no rule makes, also belong to this node
        gradients = _differentiate(tracer, node, out_grads, needs, is_train)
        if titles is not None:
            _title(titles, node, gradients)
        return gradients

    summed: dict[Entry, TracedValue | None] = {}
    for entry, value in seeds:
        summed_before = summed.get(entry)
        summed[entry] = summed_before if value is None else value if summed_before is None else summed_before + value
    targets = set(wanted)
    by_entry = walk(order, summed, targets, differentiate, lambda _, total, g: total + g)
    tracer.source = None
    return {entry: value for entry, value in by_entry.items() if entry[0] in targets and value is not None}


def _differentiate(tracer: RuleTracer, node: Node, out_grads: Gradients, needs: tuple[bool, ...], is_train: bool
                   ) -> Gradients:
    """Add nodes that compute the gradients of a node's inputs."""
    op = node.op
    assert op is not None
    outs = [(node, i) for i in range(node.count)]
    if not fits(op):
        return by_rule(node, out_grads, needs, lambda _: (list(map(tracer.value, node.inputs)),
                                                          list(map(tracer.value, outs))), ops.zeros_like, is_train)
    out_grads = filled_gradients(node, out_grads, outs, lambda entry: ops.zeros_like(tracer.value(entry)))
    rule = subgraph(op, node.attrs, tuple([g is not None for g in out_grads]), needs, node.in_training(is_train),
                    lambda: [tracer.spec(entry) for entry in (*outs, *node.inputs, *outs)])
    return rule.inline(tracer, [*[None if g is None else g._entry for g in out_grads], *node.inputs, *outs])


def _title(titles: dict[Node, list[str]], node: Node, gradients: Gradients) -> None:
    """Name the gradients that the nodes of a gradient rule compute."""
    op = node.op
    assert op is not None
    count = len(op.signature.arguments(node.attrs))
    for i, gradient in enumerate(gradients[:count]):
        maker, index = (None, 0) if gradient is None else gradient._entry
        if maker is None or maker.op is None or maker.name != f"{node.name}_backward":
            continue  # a node that this rule did not make
        names = titles.setdefault(maker, list(maker.op.signature.outputs(maker.attrs)))
        names[index] = "output" if count == 1 else f"output{i}"


def gradients(graph: Graph, targets: Sequence[Node]) -> list[Entry]:
    """Gradients of the sum of all heads with respect to variables; zeros for a variable without one."""
    tracer = RuleTracer()
    seeds = [(entry, ops.ones_like(tracer.value(entry))) for entry in graph.heads]
    by_entry = grow(tracer, graph.nodes, seeds, targets)
    entries = [(node, 0) for node in targets]
    return [(by_entry[entry] if entry in by_entry else ops.zeros_like(tracer.value(entry)))._entry for entry in entries]
