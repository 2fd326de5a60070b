"""inline: put bodies in the place of nodes that were one only for their gradient."""

from __future__ import annotations

from collections.abc import Sequence

from opreg.core.graph import Entry, Node

from ..program import Program, replaced
from .open_bodies import Opened, expand

__all__ = ["inline"]


def inline(program: Program) -> Program:
    """Replace nodes whose operator says by which nodes, ``Op.inline``, and those of users'
    operators that are followed; the order stays.
    """
    if not any(map(_opens, program.nodes)):
        return program
    became: dict[Entry, Entry] = {}
    kept: list[Node] = []
    _visit(program, program.nodes, became, kept, {})
    program.nodes = kept
    program.heads = [became.get(entry, entry) for entry in program.heads]
    return program


def _visit(program: Program, nodes: Sequence[Node], became: dict[Entry, Entry], kept: list[Node], opened: Opened
           ) -> None:
    """Add nodes, or what takes their places, to those that are kept."""
    for node in nodes:
        inputs = [became.get(entry, entry) for entry in node.inputs]
        if not _opens(node):
            kept.append(replaced(node, inputs, program.specs, became))
            continue
        assert node.op is not None
        if node.op.rules.inline is not None:
            inner, entries = node.op.rules.inline(node.attrs, inputs, program.specs)
        else:
            inner, entries = expand(program, node, inputs, opened)
        _visit(program, inner, became, kept, opened)
        for i, entry in enumerate(entries):
            became[node, i] = became.get(entry, entry)


def _opens(node: Node) -> bool:
    return node.op is not None and (node.op.rules.inline is not None or node.op.traits.traced)
