"""inline: replace nodes by the nodes of their bodies, once the gradient pass has used their gradient rules."""

from __future__ import annotations

import functools

from opreg.core.graph import Entry, Node

from ..program import Program
from .open_bodies import Opened, expand

__all__ = ["inline"]


def inline(program: Program) -> Program:
    """Replace nodes whose operator has a rule ``Op.inline``, and nodes of traced users' operators. The order stays.
    """
    if not any(map(_opens, program.nodes)):
        return program
    program.rebuild(functools.partial(_change, program, {}))
    return program


def _change(program: Program, opened: Opened, node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
    """The nodes that replace a node. This is no closure, which would be a cycle with the program in it."""
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
