"""gradient: grow the graph of the gradients, by the walk that also serves the tape."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opreg.gradient import by_rule, walk
from opreg.graph import Entry, Graph, Node
from opreg.registry import ops
from opreg.spec import Spec

from .. import infer as inference
from ..program import Bound, Program, reachable
from ..rules import RULES, RuleSymbol, Specs
from ..symbol import GRADIENT, output_name

__all__ = ["grow", "gradients", "gradient", "GRADIENTS"]

#: Tag of nodes that make gradients of a node's inputs: what each output is called in the words of MXNet.
GRADIENTS = "__gradients__"


def grow(order: Sequence[Node], seeds: Sequence[tuple[Entry, Callable[[], Any]]], wanted: Iterable[Node],
         made: list[Node], specs: Specs, is_train: bool = True, watched: bool = False) -> dict[Entry, Any]:
    """Gradients of the entries of wanted nodes, as RuleSymbols; the nodes that compute them are appended to ``made``.

    ``order`` are the forward nodes, inputs before users; ``watched`` nodes say which gradients they compute; the others
    as of ``gradients``.
    """
    repeats: dict[tuple, _Repeat] = {}

    def values(node: Node) -> tuple[list[Any], list[Any]]:
        return ([RuleSymbol((entry,)) for entry in node.inputs],
                [RuleSymbol(((node, i),)) for i in range(node.count)])

    def differentiate(node: Node, arriving: list[Any], needs: tuple[bool, ...]) -> Sequence[Any]:
        RULES.source = node  # of sums of gradients, too, which are made outside of rules
        if _repeats(node, arriving):
            key = node.op, id(node.attrs), needs
            if key not in repeats:
                repeats[key] = _Repeat(node, needs)
            found: Sequence[Any] = repeats[key].over(node, arriving[0], made)
        else:
            found = by_rule(node, arriving, needs, values, ops.zeros_like, is_train)
        if watched:
            _title(node, found)
        return found

    with RULES.noting(made, None, specs):
        arriving: dict[Entry, Any] = {}
        for entry, make in seeds:
            value, other = make(), arriving.get(entry)
            arriving[entry] = other if value is None else value if other is None else other + value
        return walk(order, arriving, wanted, differentiate, lambda _, held, g: held + g)


def _title(node: Node, gradients: Sequence[Any]) -> None:
    """Let the nodes that a rule has just made say of which inputs they compute the gradients."""
    op: Any = node.op
    count = len(op.arguments(node.attrs))
    for i, gradient in enumerate(gradients[:count]):
        maker, index = (None, 0) if gradient is None else gradient._entries[0]
        if maker is None or maker.op is None or maker.name != f"{node.name}_backward":
            continue  # it is another's
        names = maker.tags[GRADIENTS].split() if GRADIENTS in maker.tags else list(maker.op.outputs(maker.attrs))
        names[index] = "output" if count == 1 else f"output{i}"
        maker.tags = {**maker.tags, GRADIENTS: " ".join(names)}


def _repeats(node: Node, arriving: Sequence[Any]) -> bool:
    """Whether the rule of a node reads nothing but the attributes."""
    return node.op.expression is not None and node.count == 1 and arriving[0] is not None  # type: ignore[union-attr]


class _Repeat:
    """What the rule of an element-wise operator with certain attributes makes, to be made again over other entries.

    Such a rule reads nothing but the attributes. It is followed once, over variables that stand for the gradient of the
    output, the inputs and the output; a place is a number of these, or of one that was made, in their order.
    """

    def __init__(self, node: Node, needs: Sequence[bool]):
        op = node.op
        assert op is not None
        places: dict[Entry, int] = {(Node(None, ""), 0): i for i in range(len(needs) + 2)}
        g, *ins, out = [RuleSymbol((entry,)) for entry in places]
        made: list[Node] = []
        with RULES.noting(made):
            found = op.differentiate(g, ins, [out], node.attrs, needs)
        self._nodes: list[tuple[Any, Any, Any, list[int]]] = []
        for each in made:
            self._nodes.append((each.op, each.attrs, each.given, [places[entry] for entry in each.inputs]))
            places[each, 0] = len(places)
        self._found = [None if value is None else places[value._entries[0]] for value in found]

    def over(self, source: Node, g: Any, made: list[Node]) -> list[Any]:
        """The gradients of a node's inputs; the nodes that compute them are appended to ``made``."""
        entries, name = [g._entries[0], *source.inputs, (source, 0)], f"{source.name}_backward"
        for op, attrs, given, places in self._nodes:
            node = Node(op, name, attrs, [entries[i] for i in places], given, source.tags, source.where)
            made.append(node)
            entries.append((node, 0))
        return [None if place is None else RuleSymbol((entries[place],)) for place in self._found]


def gradients(graph: Graph, seeds: Sequence[tuple[Entry, Callable[[], Any]]], wanted: Sequence[Node], specs: Specs,
              is_train: bool = True, watched: bool = False) -> tuple[dict[Node, Entry], list[Node]]:
    """Entries of the gradients of wanted variables.

    Parameters
    ----------
    graph : Graph
        The forward graph.
    seeds : sequence of head entry and function
        The function makes the gradient that arrives there, a RuleSymbol, or None for a loss.
    wanted : sequence of variables
        With respect to what.
    specs : Specs
        What is known of the graph, for rules that ask for a shape.
    is_train : bool
        Whether operators are differentiated as they compute in training.
    watched : bool
        Whether the nodes that make gradients say so, for a monitor.

    Returns
    -------
    dict of variable to entry
        Without those that the heads do not depend on.
    list of Node
        The new nodes in the order they were made, which keeps few gradients alive at a time: that of a layer's
        weights stands beside that of its data.
    """
    made: list[Node] = []
    found = grow(graph.nodes, seeds, wanted, made, specs, is_train, watched)
    return {node: found[node, 0]._entries[0] for node in wanted if found.get((node, 0)) is not None}, made


@GRADIENT.fill
def of_sum(graph: Graph, wanted: Sequence[Node]) -> list[Entry]:
    """Gradients of the sum of all heads with respect to variables, zeros where there is none."""
    seeds = [(entry, functools.partial(ops.ones_like, RuleSymbol((entry,)))) for entry in graph.heads]
    found, _ = gradients(graph, seeds, wanted, Specs())
    return [found[node] if node in found else ops.zeros_like(RuleSymbol(((node, 0),)))._entries[0] for node in wanted]


def gradient(program: Program) -> Program:
    """Add the nodes that compute the gradients asked for, behind the forward ones, with their specs."""
    bound = program.bound
    if program.backward is None or not bound.grads:
        return program
    seeds, arrivals = _seeds(bound)
    for node, array in arrivals.items():
        program.arrays[node], program.contexts[node] = array, bound.ctx
        program.specs[node] = [Spec(array.shape, array.dtype)]
    found, made = gradients(bound.graph, seeds, list(bound.grads), Specs(program.specs), program.backward,
                            program.watched)
    program.wanted = [node for node in bound.grads if node in found]
    program.late = [bound.grads[node] for node in program.wanted]
    heads = [found[node] for node in program.wanted]
    forward = set(program.nodes)
    everything = program.nodes + list(arrivals) + made
    program.nodes = program.nodes + [node for node in reachable(everything, heads) if node not in forward]
    program.heads = program.heads + heads
    program.specs = inference.infer(program.graph, {}, {}, program.specs)
    return program


def _seeds(bound: Bound) -> tuple[list[tuple[Entry, Callable[[], Any]]], dict[Node, Any]]:
    """What makes the gradients that arrive at the heads, and the variables among them with their arrays."""
    seeds: list[tuple[Entry, Callable[[], Any]]] = []
    arrivals: dict[Node, Any] = {}
    for entry, array in zip(bound.graph.heads, bound.head_grads):
        if array is None:
            seeds.append((entry, lambda: None))
            continue
        node = Node(None, f"{output_name(entry)}_grad")
        arrivals[node] = array
        seeds.append((entry, functools.partial(RuleSymbol, ((node, 0),))))
    return seeds, arrivals
