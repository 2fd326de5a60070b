"""cse: common subexpression elimination. Nodes that compute the same are replaced by the first of them.

Two nodes compute the same if operator, attributes, inputs, device and mode are equal. Operators that draw random
numbers, read or change states, or have side effects stay, and so do users' operators. A node of backward is replaced by
one of forward only if that costs no memory, because the result of the latter lives as long anyway.
"""

from __future__ import annotations

from opreg.core.graph import INFERENCE, Entry, Node, reachable
from opreg.core.keys import exact, has_fixed_key
from opreg.core.op import Op

from ..program import Program

__all__ = ["cse", "pure"]


def pure(op: Op) -> bool:
    """Whether results depend on inputs and attributes alone, and the operator has no side effects."""
    traits = op.traits
    return op.where is None and not (traits.random or traits.has_side_effect or traits.states or traits.mutates
                                     or op.signature.per_instance)


def _attribute_key(node: Node) -> tuple | None:
    """A key of attributes, device and mode, which must be equal beside operator and inputs; None if attributes cannot
    be compared."""
    if not all(map(has_fixed_key, node.attrs.values())):
        return None
    return exact(tuple(sorted(node.attrs.items()))), node.tags.get("__ctx_group__"), node.tags.get(INFERENCE)


class _NodeTable:
    """The nodes so far, by operator, inputs and attributes. Attributes are compared only if operator and inputs are
    equal."""

    def __init__(self, program: Program):
        self.program = program
        self.first: dict[tuple, Node] = {}
        self.exact: dict[tuple, Node] = {}
        self.lives: _Lifetimes | None = None  # made when two nodes are equal, which is rare

    def same(self, node: Node, inputs: tuple[Entry, ...]) -> Node | None:
        """The earlier node that replaces this one with these inputs. If there is none, this node is recorded."""
        other = self.first.setdefault((node.op, inputs), node)
        if other is node:
            return None
        for candidate in (other, node):
            words = _attribute_key(candidate)
            if words is not None:
                first = self.exact.setdefault((node.op, inputs, words), candidate)
        if words is None or first is node:
            return None
        self.lives = self.lives or _Lifetimes(self.program)
        if self.lives.cover(first, node):
            return first
        self.exact[node.op, inputs, words] = node
        return None


class _Lifetimes:
    """The last reader of each entry, and the nodes of forward."""

    def __init__(self, program: Program):
        outputs = program.heads[:len(program.bound.graph.heads)]
        self.forward = set(reachable(program.nodes, outputs))
        self.last: dict[Entry, int] = {}
        for position, node in enumerate(program.nodes):
            self.last.update(dict.fromkeys(node.inputs, position))
        self.last.update(dict.fromkeys(outputs, len(program.nodes)))

    def cover(self, earlier: Node, node: Node) -> bool:
        """Whether an earlier node may replace a later one: it is a view, both are in the same pass, or its results live
        as long.
        """
        if earlier in self.forward and node not in self.forward and earlier.op.rules.view is None:  # type: ignore
            return all(self.last.get((earlier, i), -1) >= self.last.get((node, i), -1) for i in range(node.count))
        return True


def cse(program: Program) -> Program:
    """Replace nodes that compute the same by the first of them."""
    if program.mutates:
        return program
    specs, table = program.specs, _NodeTable(program)
    can: dict[Op | None, bool] = {None: False}

    def change(node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        op, inputs = node.op, node.inputs
        if became:
            inputs = tuple([became.get(entry, entry) for entry in inputs])
        if op not in can:
            can[op] = pure(op)  # type: ignore[arg-type]
        earlier = table.same(node, inputs) if inputs and can[op] else None
        if earlier is None:
            return None
        became.update(((node, i), became.get((earlier, i), (earlier, i))) for i in range(len(specs[node])))
        return []

    before = len(program.nodes)
    program.rebuild(change)
    if len(program.nodes) < before:
        program.nodes = reachable(program.nodes, program.heads, read=True)
    return program
