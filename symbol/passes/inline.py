"""inline: put bodies in the place of nodes that were one only for their gradient."""

from __future__ import annotations

import functools

from opreg.core.graph import Entry, Node

from ..program import Program
from .open_bodies import Opened, expand

__all__ = ["inline"]


def inline(program: Program) -> Program:
    """Replace nodes whose operator says by which nodes, ``Op.inline``, and those of users'
    operators that are traced; the order stays.
    """
    if not any(map(_opens, program.nodes)):
        return program
    program.rebuild(functools.partial(_change, program, {}))
    return program


def _change(program: Program, opened: Opened, node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
    """Nodes in the place of one that opens; no closure, which would be a cycle that holds the program."""
    if node.op is None or not _opens(node):
        return None
    inputs = [became.get(entry, entry) for entry in node.inputs]
    if node.op.rules.inline is not None:
        inner, entries = node.op.rules.inline(node.attrs, inputs, program.specs)
    else:
        inner, entries = expand(program, node, inputs, opened)
    nodes = program.changed(inner, functools.partial(_change, program, opened), became)
    for i, entry in enumerate(entries):
        became[node, i] = became.get(entry, entry)
    return nodes


def _opens(node: Node) -> bool:
    return node.op is not None and (node.op.rules.inline is not None or node.op.traits.traced)
