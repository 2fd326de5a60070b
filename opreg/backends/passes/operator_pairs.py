"""Pairs of operators that a library computes in one call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from opreg.core.graph import Entry, Node
from opreg.core.op import Op
from opreg.symbol.program import Program

__all__ = ["Joint", "Pair", "join"]


class Pair(NamedTuple):
    """The node that replaces a pair of nodes, without its operator.

    Attributes
    ----------
    attrs : dict
        Its attributes.
    inputs : sequence of Entry
        Its inputs, as entries of the program before the pass.
    outputs : sequence of Entry
        For each of its outputs, the output of the pair that it replaces.
    """

    attrs: dict[str, Any]
    inputs: Sequence[Entry]
    outputs: Sequence[Entry]


class Joint(NamedTuple):
    """An operator that computes what two operators do.

    Attributes
    ----------
    op : Op
        The operator.
    first, second : Op
        The two operators that it replaces. Its node comes in the place of the first.
    key : function of a program and a node of either
        A key that is equal for two nodes of a pair; None for a node that belongs to no pair.
    pair : function of a node of the first and one of the second
        Gives the ``Pair`` for them.
    """

    op: Op
    first: Op
    second: Op
    key: Callable[[Program, Node], Hashable]
    pair: Callable[[Node, Node], Pair]


def join(program: Program, joint: Joint) -> Program:
    """Replace pairs of nodes by nodes of a joint operator."""
    pairs = _pairs(program, joint)
    if not pairs:
        return program
    done = set(pairs.values())

    def change(node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        if node not in pairs:
            return [] if node in done else None
        attrs, inputs, outputs = joint.pair(node, pairs[node])
        new = Node(joint.op, outputs[0][0].name, attrs, [became.get(entry, entry) for entry in inputs],
                   where=outputs[0][0].where)
        program.specs[new] = [program.specs[replaced_node][i] for replaced_node, i in outputs]
        program.contexts[new] = program.contexts[node]
        became.update((entry, (new, i)) for i, entry in enumerate(outputs))
        return [new]

    program.rebuild(change)
    return program


def _pairs(program: Program, joint: Joint) -> dict[Node, Node]:
    """The pairs, as nodes of the second operator by those of the first: all inputs of the second node are computed
    before the first one, and its outputs are read only after it."""
    position = {node: i for i, node in enumerate(program.nodes)}
    firsts: dict[Hashable, Node] = {}
    seconds: dict[Hashable, Node] = {}
    read: dict[Node, int] = {}
    for i, node in enumerate(program.nodes):
        for source, _ in node.inputs:
            read.setdefault(source, i)
        candidates = firsts if node.op is joint.first else seconds if node.op is joint.second else None
        if candidates is not None and (key := joint.key(program, node)) is not None:
            candidates.setdefault(key, node)
    return {first: second for key, first in firsts.items()
            if (second := seconds.get(key)) is not None and read.get(second, len(position)) > position[first]
            and all(position[source] < position[first] for source, _ in second.inputs if source is not first)}
