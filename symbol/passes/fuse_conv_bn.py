"""fuse_conv_bn: in inference, the operators after a convolution are fused into it, and run on parts of its output that
are still in the cache.

They are, in this order and each optional: batch norm by its moving statistics, the addition of an array of the same
shape, and relu. Each is fused only if nothing else reads its input. The fused node takes the place of its last member,
so that all its inputs come before it. Operators declare a tail by ``Op.tail`` and a norm by ``Op.norm``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.core.graph import Entry, Node
from opreg.core.rules import EpilogueOperator, Norm
from opreg.elementwise.expression import Expression, maximum, trace
from opreg.errors import ArgumentError

from ..program import Program

__all__ = ["fuse_conv_bn"]


def _key_of_expression(expression: Expression) -> tuple:
    """An expression as a key. Constants are text, which distinguishes 1 from 1.0 and 0.0 from -0.0."""
    return expression.arity, [(prim, repr(args)) for prim, args in expression.code], expression.results


_SUM, _RELU = _key_of_expression(trace(lambda x, y: x + y, 2)), _key_of_expression(trace(lambda x: maximum(x, 0.0), 1))


class _Tail:
    """A convolution and the operators after it that are fused into it."""

    def __init__(self, node: Node, declared: EpilogueOperator):
        self.members = [node]
        self.inputs = list(node.inputs)
        self.op, self.axis = declared.op, declared.axis
        self.attrs: dict[str, Any] = dict(declared.attrs)
        self.attrs.update(normalized=False, added=False, relu=False, eps=0.0, fix_gamma=True)

    @property
    def end(self) -> Entry:
        return self.members[-1], 0

    def add(self, node: Node, inputs: Sequence[Entry], **attrs: object) -> None:
        self.members.append(node)
        self.inputs += inputs
        self.attrs.update(attrs)

    def node(self, inputs: list[Entry]) -> Node:
        last = self.members[-1]
        names = tuple([member.op.name for member in self.members])  # type: ignore[union-attr]
        attrs = {**self.attrs, "operators": names, "members": tuple(self.members)}
        return Node(self.op, last.name, attrs, inputs, where=last.where)


def fuse_conv_bn(program: Program) -> Program:
    """Fuse convolutions with the operators after them, in a plan for inference on the host."""
    if program.is_train or program.destinations or program.mutates:
        return program
    readers: dict[Entry, list[Node | None]] = {}
    for node in program.nodes:
        for entry in node.inputs:
            readers.setdefault(entry, []).append(node)
    for entry in program.heads:
        readers.setdefault(entry, []).append(None)
    tails: dict[Node, _Tail] = {}  # the tails, by their last members
    taken: set[Node] = set()
    # in reverse order: if two convolutions are added, the later one includes the sum
    for node in reversed(program.nodes):
        if node.op is not None and node.op.rules.tail is not None and program.contexts[node].xp is np:
            tail = _tail(node, node.op.rules.tail(node.attrs), program, readers, taken)
            if len(tail.members) > 1:
                tails[tail.members[-1]] = tail
                taken.update(tail.members)
    if not tails:
        return program

    def change(node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        if node not in tails:
            return [] if node in taken else None
        new = tails[node].node([became.get(entry, entry) for entry in tails[node].inputs])
        program.specs[new], program.contexts[new] = program.specs[node][:1], program.contexts[node]
        became[node, 0] = new, 0
        return [new]

    program.rebuild(change)
    return program


def _tail(node: Node, declared: EpilogueOperator, program: Program, readers: dict[Entry, list[Node | None]],
          taken: set[Node]
          ) -> _Tail:
    """A convolution with all operators that can be fused into it."""
    tail, spec = _Tail(node, declared), program.specs[node][0]

    def only_reader() -> Node | None:
        """The only reader of the tail's end, if it has the same device and all inputs have the same dtype; else
        None."""
        reading = readers.get(tail.end, ())
        reader = reading[0] if len(reading) == 1 else None
        if reader is None or reader.op is None or reader in taken:
            return None
        if program.contexts[reader] != program.contexts[node]:
            return None
        specs = [program.specs[source][index] for source, index in reader.inputs]
        return reader if all(input_spec.dtype == spec.dtype for input_spec in specs) else None

    if spec.dtype not in (np.float32, np.float64):
        return tail
    reader = only_reader()
    norm = None if reader is None else _norm(reader, tail, len(spec.shape or ()))
    if reader is not None and norm is not None and not any(readers.get((reader, i)) for i in range(1, reader.count)):
        tail.add(reader, reader.inputs[1:], normalized=True, eps=norm.eps, fix_gamma=norm.fix_gamma)
        reader = only_reader()
    if reader is not None and _computes(reader, _SUM):
        others = [entry for entry in reader.inputs if entry != tail.end]
        if len(others) == 1 and program.specs[others[0][0]][others[0][1]] == program.specs[reader][0] == spec:
            tail.add(reader, others, added=True)
            reader = only_reader()
    if reader is not None and _computes(reader, _RELU):
        tail.add(reader, (), relu=True)
    return tail


def _norm(node: Node, tail: _Tail, rank: int) -> Norm | None:
    """The norm over channels that a node computes from the last result of the tail; None if it computes another one."""
    if node.op is None or node.op.rules.norm is None or node.inputs[0] != tail.end:
        return None
    norm = node.op.rules.norm(node.attrs)
    if norm is None:
        return None
    if not isinstance(norm, Norm) or len(node.inputs) != 5:
        raise ArgumentError(f"operator {node.op.op_type or node.op.name!r}: its norm rule returned {norm!r} for "
                            f"{len(node.inputs)} inputs, expected a Norm of data, gamma, beta, mean and variance, or "
                            "None")
    return norm if norm.axis % rank == tail.axis % rank else None


def _computes(node: Node, written: tuple) -> bool:
    """Whether a node computes an expression, whatever its operator."""
    rule = None if node.op is None else node.op.rules.expression
    expression = None if rule is None else rule(node.attrs)
    return expression is not None and _key_of_expression(expression) == written
