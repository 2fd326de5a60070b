"""gradient: grow the graph of the gradients, by the walk that also serves the tape."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opreg.gradient import walk
from opreg.graph import Entry, Graph, Node
from opreg.registry import ops
from opreg.spec import Spec

from .. import infer as inference
from ..program import Bound, Program, reachable
from ..symbol import RULES, RuleSymbol, output_name

__all__ = ["grow", "gradients", "gradient"]


def grow(order: Sequence[Node], seeds: Sequence[tuple[Entry, Callable[[], Any]]], wanted: Iterable[Node],
         made: list[Node]) -> dict[Entry, Any]:
    """Gradients of the entries of wanted nodes, as RuleSymbols; the nodes that compute them are appended to ``made``.

    ``order`` are the forward nodes, inputs before users; the others as of ``gradients``.
    """
    before = RULES.made, RULES.source
    RULES.made, RULES.source = made, None

    def values(node: Node) -> tuple[list[Any], list[Any]]:
        RULES.source = node
        return ([RuleSymbol((entry,)) for entry in node.inputs],
                [RuleSymbol(((node, i),)) for i in range(node.count)])

    try:
        arriving: dict[Entry, Any] = {}
        for entry, make in seeds:
            value, other = make(), arriving.get(entry)
            arriving[entry] = other if value is None else value if other is None else other + value
        return walk(order, arriving, wanted, values, ops.zeros_like)
    finally:
        RULES.made, RULES.source = before


def gradients(graph: Graph, seeds: Sequence[tuple[Entry, Callable[[], Any]]], wanted: Sequence[Node]
              ) -> tuple[dict[Node, Entry], list[Node]]:
    """Entries of the gradients of wanted variables.

    Parameters
    ----------
    graph : Graph
        The forward graph.
    seeds : sequence of head entry and function
        The function makes the gradient that arrives there, a RuleSymbol, or None for a loss.
    wanted : sequence of variables
        With respect to what.

    Returns
    -------
    dict of variable to entry
        Without those that the heads do not depend on.
    list of Node
        The new nodes in the order they were made, which keeps few gradients alive at a time: that of a layer's
        weights stands beside that of its data.
    """
    made: list[Node] = []
    found = grow(graph.nodes, seeds, wanted, made)
    return {node: value._entries[0] for (node, _), value in found.items()}, made


def gradient(program: Program) -> Program:
    """Add the nodes that compute the gradients asked for, behind the forward ones, with their specs."""
    bound = program.bound
    if not (program.is_train and bound.grads):
        return program
    seeds, arrivals = _seeds(bound)
    found, made = gradients(bound.graph, seeds, list(bound.grads))
    for node, array in arrivals.items():
        program.arrays[node], program.contexts[node] = array, bound.ctx
        program.specs[node] = [Spec(array.shape, array.dtype)]
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
