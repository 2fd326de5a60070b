"""inline: put bodies in the place of nodes that were one only for their gradient."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from opreg.graph import Entry, Node

from ..program import Program, replaced
from .follow import expand

__all__ = ["inline"]


def inline(program: Program) -> Program:
    """Replace nodes whose operator says by which nodes, ``op.inline(attrs, inputs, specs)``, and those of users'
    operators that are followed; the order stays.

    What a followed body computes that another one has computed before is not computed again.
    """
    if not any(map(_opens, program.nodes)):
        return program
    became: dict[Entry, Entry] = {}
    kept: list[Node] = []
    before: dict[Hashable, Node] = {}

    def visit(nodes: Sequence[Node], followed: bool) -> None:
        for node in nodes:
            inputs = [became.get(entry, entry) for entry in node.inputs]
            if not _opens(node):
                new = replaced(node, inputs, program.specs, became)
                first = before.setdefault(_meaning(new), new) if followed else new
                if first is new:
                    kept.append(new)
                else:
                    became.update({(old, i): (first, i) for old in (node, new) for i in range(node.count)})
                continue
            if hasattr(node.op, "inline"):
                inner, entries = node.op.inline(node.attrs, inputs, program.specs)  # type: ignore[union-attr]
                visit(inner, followed)
            else:
                inner, entries = expand(program, node, inputs)
                visit(inner, True)
            for i, entry in enumerate(entries):
                became[node, i] = became.get(entry, entry)

    visit(program.nodes, False)
    program.nodes = kept
    program.heads = [became.get(entry, entry) for entry in program.heads]
    return program


def _opens(node: Node) -> bool:
    return hasattr(node.op, "inline") or getattr(node.op, "traced", False)


def _meaning(node: Node) -> Hashable:
    """What two nodes have in common that compute the same; of one that is unlike all others, itself."""
    op: Any = node.op
    if op is None or op.random or op.states or op.effect or op.mutates:
        return node
    try:
        key = op, node.inputs, tuple([(name, type(value), value) for name, value in node.attrs.items()])
        hash(key)
    except TypeError:
        return node
    return key
