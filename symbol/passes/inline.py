"""inline: replace nodes by the nodes of their bodies, once the gradient pass has used their gradient rules."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

from opreg.core import effects
from opreg.core.graph import Entry, Node
from opreg.core.keys import Same
from opreg.core.op import Op, runs_body
from opreg.ndarray.bodies import Traced, Use, trace_body

from ..naming import MONITORED, monitored_names
from ..program import Program, name_for_monitors

__all__ = ["inline"]

#: The bodies that have replaced nodes, by operator, identity of the use's memory, and inputs; with the entries that
#: replace those of the body.
_Opened: TypeAlias = dict[tuple[Op, Same, tuple[Entry, ...]], tuple[Traced, dict[Entry, Entry]]]


def inline(program: Program) -> Program:
    """Replace nodes whose operator has a rule ``Op.inline``, and nodes of traced users' operators. The order stays.
    """
    if not any(_opens(program, node) for node in program.nodes):
        return program
    program.rebuild(functools.partial(_change, program, {}))
    return program


def _change(program: Program, opened: _Opened, node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
    """The nodes that replace a node. This is no closure, which would be a cycle with the program in it."""
    if node.op is None or not _opens(program, node):
        return None
    inputs = [became.get(entry, entry) for entry in node.inputs]
    if node.op.rules.inline is not None:
        inner, entries = node.op.rules.inline(node.attrs, inputs, program.specs)
    else:
        inner, entries = _expand(program, node, inputs, opened)
    nodes = program.changed(inner, functools.partial(_change, program, opened), became)
    for i, entry in enumerate(entries):
        became[node, i] = became.get(entry, entry)
    return nodes


def _opens(program: Program, node: Node) -> bool:
    op = node.op
    if op is None:
        return False
    if op.rules.inline is not None:
        return True
    # the node keeps its name, by which monitors know it
    monitored = program.watched and node.built_in and not effects.varies(op)
    return runs_body(op, program.bound.place(node).xp) and not monitored


def _expand(program: Program, node: Node, inputs: Sequence[Entry], opened: _Opened) -> tuple[list[Node], list[Entry]]:
    """The nodes that replace a traced operator with these inputs, and the entries that replace its outputs.

    The gradient of a body that was ``opened`` reuses the nodes of that body, so that it draws random numbers and
    changes states only once.
    """
    bound, specs = program.bound, program.specs
    op: Any = node.op
    attrs: Any = node.attrs
    derived = attrs.derived and program.backward is not None
    is_train = node.in_training(program.backward if derived else program.is_train)
    tags = {name: value for name, value in node.tags.items() if name != MONITORED}
    use = Use(node.name, tags, node.where, bound.place(node), is_train, [specs[source][i] for source, i in inputs],
              specs[node], bound.memo)
    before: Traced | None = None
    became: dict[Entry, Entry] = {}
    if attrs.derived:
        inner = attrs.inner
        captured = tuple(inputs[inner.op.signature.visible(inner):])
        before, became = opened.get((inner.op, Same(inner.memo), captured), (before, became))
    traced = program.trace_users_code([node], functools.partial(trace_body, op, attrs, use, before))
    body, slots, heads = traced
    became = {**became, **dict(zip(slots, inputs))}
    names = _names_of_heads(node, heads) if program.watched else {}

    def enter(inner: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        """Enter a node of the body in the program; drop a node that is already in it."""
        if before is not None and inner in before.body.specs:
            return []
        if inner in body.arrays:
            array = body.arrays[inner]
            program.arrays[inner], program.contexts[inner] = array._data, array._ctx
        elif inner.op is None:
            return []
        specs[inner] = body.specs[inner]
        return [name_for_monitors(inner, names[inner], specs, became)] if inner in names else None

    nodes = program.changed(list(body.specs), enter, became)  # in the order of tracing
    opened[op, Same(attrs.memo), tuple(inputs)] = traced, became
    return nodes, [became.get(entry, entry) for entry in heads]


def _names_of_heads(node: Node, heads: Sequence[Entry]) -> dict[Node, list[str]]:
    """For the nodes of a body that compute its results: the names of outputs for a monitor, where the results have the
    names of the replaced node."""
    names: dict[Node, list[str]] = {}
    for (inner, index), name in zip(heads, monitored_names(node)):
        if inner.op is not None:
            names.setdefault(inner, monitored_names(inner))[index] = name
    return names
