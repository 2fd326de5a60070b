"""open_bodies: replace the node of a traced operator by the nodes of its body."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from opreg.core.graph import Entry, Node
from opreg.core.keys import Same
from opreg.core.op import Op
from opreg.ndarray.bodies import Traced, Use, trace_body

from ..program import Program

__all__ = ["Opened", "expand"]


#: The bodies that have replaced nodes, by operator, identity of the use's memory, and inputs; with the entries that
#: replace those of the body.
Opened = dict[tuple[Op, Same, tuple[Entry, ...]], tuple[Traced, dict[Entry, Entry]]]


def expand(program: Program, node: Node, inputs: Sequence[Entry], opened: Opened) -> tuple[list[Node], list[Entry]]:
    """The nodes that replace a traced operator with these inputs, and the entries that replace its outputs.

    The gradient of a body that was ``opened`` reuses the nodes of that body, so that it draws random numbers and
    changes states only once.
    """
    bound, specs = program.bound, program.specs
    op: Any = node.op
    attrs: Any = node.attrs
    ctx = bound.group2ctx.get(node.tags.get("__ctx_group__", ""), bound.ctx) if bound.group2ctx else bound.ctx
    derived = attrs.derived and program.backward is not None
    is_train = node.in_training(program.backward if derived else program.is_train)
    use = Use(node.name, node.tags, node.where, ctx, is_train, [specs[source][i] for source, i in inputs],
              specs[node], bound.memo)
    before: Traced | None = None
    became: dict[Entry, Entry] = {}
    if attrs.derived:
        inner = attrs.inner
        own = tuple(inputs[inner.op.signature.visible(inner):])
        before, became = opened.get((inner.op, Same(inner.memo), own), (before, became))
    traced = program.noting([node], functools.partial(trace_body, op, attrs, use, before))
    body, slots, heads = traced
    became = {**became, **dict(zip(slots, inputs))}

    def enter(inner: Node, _: dict[Entry, Entry]) -> list[Node] | None:
        """Enter a node of the body in the program; drop a node that is already in it."""
        if before is not None and inner in before.body.specs:
            return []
        if inner in body.arrays:
            array = body.arrays[inner]
            program.arrays[inner], program.contexts[inner] = array._data, array._ctx
        elif inner.op is None:
            return []
        specs[inner] = body.specs[inner]
        return None

    nodes = program.changed(list(body.specs), enter, became)  # in the order of tracing
    opened[op, Same(attrs.memo), tuple(inputs)] = traced, became
    return nodes, [became.get(entry, entry) for entry in heads]
