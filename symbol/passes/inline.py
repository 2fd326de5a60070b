"""inline: put bodies in the place of nodes that were one only for their gradient."""

from __future__ import annotations

from collections.abc import Sequence

from opreg.graph import Entry, Node

from ..program import Program, replaced

__all__ = ["inline"]


def inline(program: Program) -> Program:
    """Replace nodes whose operator says by which nodes, ``op.inline(attrs, inputs, specs)``; the order stays."""
    if not any(hasattr(node.op, "inline") for node in program.nodes):
        return program
    became: dict[Entry, Entry] = {}
    kept: list[Node] = []

    def visit(nodes: Sequence[Node]) -> None:
        for node in nodes:
            if not hasattr(node.op, "inline"):
                kept.append(replaced(node, [became.get(entry, entry) for entry in node.inputs], program.specs, became))
                continue
            inputs = [became.get(entry, entry) for entry in node.inputs]
            inner, entries = node.op.inline(node.attrs, inputs, program.specs)  # type: ignore[union-attr]
            visit(inner)
            for i, entry in enumerate(entries):
                became[node, i] = became.get(entry, entry)

    visit(program.nodes)
    program.nodes = kept
    program.heads = [became.get(entry, entry) for entry in program.heads]
    return program
