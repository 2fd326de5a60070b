"""The backward graph: nodes that compute gradients, by the walk that also serves the tape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from .gradient import by_rule, filled, walk
from .graph import Entry, Graph, Node
from .registry import ops
from .subgraph import fits, subgraph
from .tracing import RuleTracer, TracedValue

__all__ = ["grow", "gradients", "GRADIENTS"]

#: Tag of nodes that compute gradients of a node's inputs: the name of each output in MXNet's words.
GRADIENTS = "__gradients__"

Gradients: TypeAlias = Sequence[TracedValue | None]


def grow(tracer: RuleTracer, order: Sequence[Node], seeds: Sequence[tuple[Entry, TracedValue | None]],
         wanted: Iterable[Node], is_train: bool = True, watched: bool = False) -> dict[Entry, TracedValue]:
    """Gradients of the entries of wanted nodes, without those that the heads do not depend on.

    Parameters
    ----------
    tracer : RuleTracer
        Gets the nodes that compute the gradients, in an order with few gradients alive at a time: the gradient of a
        layer's weights comes next to the gradient of its data.
    order : sequence of Node
        The forward nodes, inputs before users.
    seeds : sequence of head entry and value
        Each head and its output gradient, None for a loss.
    wanted : iterable of Node
        The nodes whose gradients the caller wants.
    is_train : bool
        Whether operators are differentiated as they compute in training.
    watched : bool
        Whether the nodes that make gradients say so, for a monitor.
    """

    def differentiate(node: Node, out_grads: Gradients, needs: tuple[bool, ...]) -> Gradients:
        tracer.source = node  # of sums of gradients, too, which are made outside of rules
        gradients = _differentiate(tracer, node, out_grads, needs, is_train)
        if watched:
            _title(node, gradients)
        return gradients

    summed: dict[Entry, TracedValue | None] = {}
    for entry, value in seeds:
        other = summed.get(entry)
        summed[entry] = other if value is None else value if other is None else other + value
    targets = set(wanted)
    by_entry = walk(order, summed, targets, differentiate, lambda _, total, g: total + g)
    tracer.source = None
    return {entry: value for entry, value in by_entry.items() if entry[0] in targets and value is not None}


def _differentiate(tracer: RuleTracer, node: Node, out_grads: Gradients, needs: tuple[bool, ...], is_train: bool
                   ) -> Gradients:
    """The gradients of a node's inputs."""
    op = node.op
    assert op is not None
    outs = [(node, i) for i in range(node.count)]
    if not fits(op):
        return by_rule(node, out_grads, needs, lambda _: (list(map(tracer.value, node.inputs)),
                                                         list(map(tracer.value, outs))), ops.zeros_like, is_train)
    out_grads = filled(node, out_grads, outs, lambda entry: ops.zeros_like(tracer.value(entry)))
    rule = subgraph(op, node.attrs, tuple([g is not None for g in out_grads]), needs, node.in_training(is_train),
                    lambda: [tracer.spec(entry) for entry in (*outs, *node.inputs, *outs)])
    return rule.inline(tracer, [*[None if g is None else g._entry for g in out_grads], *node.inputs, *outs])


def _title(node: Node, gradients: Gradients) -> None:
    """Let the nodes that a rule has just made say of which inputs they compute the gradients."""
    op = node.op
    assert op is not None
    count = len(op.signature.arguments(node.attrs))
    for i, gradient in enumerate(gradients[:count]):
        maker, index = (None, 0) if gradient is None else gradient._entry
        if maker is None or maker.op is None or maker.name != f"{node.name}_backward":
            continue  # it is another's
        names = (maker.tags[GRADIENTS].split() if GRADIENTS in maker.tags
                 else list(maker.op.signature.outputs(maker.attrs)))
        names[index] = "output" if count == 1 else f"output{i}"
        maker.tags = {**maker.tags, GRADIENTS: " ".join(names)}


def gradients(graph: Graph, wanted: Sequence[Node]) -> list[Entry]:
    """Gradients of the sum of all heads with respect to variables, zeros where there is none."""
    tracer = RuleTracer()
    seeds = [(entry, ops.ones_like(tracer.value(entry))) for entry in graph.heads]
    by_entry = grow(tracer, graph.nodes, seeds, wanted)
    entries = [(node, 0) for node in wanted]
    return [(by_entry[entry] if entry in by_entry else ops.zeros_like(tracer.value(entry)))._entry for entry in entries]
