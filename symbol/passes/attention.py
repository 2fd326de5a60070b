"""attention: replace the operators that compute attention by one, where the matrix of scores is large.

The pattern is a matrix product, a scale, a mask (added, or a constant where it hides a score), softmax along the last
axis, dropout and a second product, in this order. Products and softmax are required; reshapes that leave the last two
axes may stand between. No other node may read the intermediate results, and no gradient of the mask may be requested.
Memory then grows with the length of sequences, not with its square. The rule ``attends`` of an operator tells its part
in the pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from opreg.builtin.attention_parts import DroppedWeights, MaskedScores, MatrixView, Part, Product, Weights
from opreg.builtin.layers.attention_scores import in_blocks
from opreg.core.addresses import address_of
from opreg.core.graph import Entry, Node
from opreg.core.op import Op
from opreg.core.registry import ops
from opreg.core.rules import Attrs
from opreg.core.spec import Shape, Spec, is_floating
from opreg.core.tracing import RuleTracer, TracedValue
from opreg.elementwise.expression import PRIMITIVES

from ..program import Program

__all__ = ["attention", "instruction_of", "part_of"]


def attention(program: Program) -> Program:
    """Replace operators that compute attention by the operator of attention."""
    if program.mutates or not any(isinstance(part_of(program, node), Weights) for node in program.nodes):
        return program
    readers: dict[Node, list[Node | None]] = {}
    for node in program.nodes:
        for source, _ in node.inputs:
            readers.setdefault(source, []).append(node)
    for source, _ in program.heads:
        readers.setdefault(source, []).append(None)
    moved = _may_have_gradients(program)
    chains: dict[Node, _Chain] = {}
    taken: set[Node] = set()
    for node in program.nodes:
        if isinstance(part_of(program, node), Product) and node not in taken:
            chain = _attention_from(program, node, readers, moved)
            if chain is not None:
                chains[chain.nodes[-1]] = chain
                taken.update(chain.nodes)

    def change(node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        if node not in chains:
            return [] if node in taken else None
        tracer = _Tracer(known_specs=program.specs, source=node)
        became[node, 0] = chains[node].attend(tracer, became)._entry
        for new in tracer.nodes:
            tracer.spec((new, 0))
        program.specs.update(tracer.specs)
        return tracer.nodes

    if chains:
        program.rebuild(change)
    return program


def _may_have_gradients(program: Program) -> set[Node]:
    """The nodes that may have gradients."""
    moved = set(program.bound.grads) if program.backward is not None else set()
    for node in program.nodes:
        if any(source in moved for source, _ in node.inputs):
            moved.add(node)
    return moved


class _Tracer(RuleTracer):
    """Traces the nodes that replace a node, and gives them its name."""

    def add(self, op: Op, attrs: Attrs, inputs: Sequence[Entry], written: Attrs | None = None) -> Node:
        assert self.source is not None
        node = Node(op, self.source.name, attrs, inputs, written, self.source.tags, self.source.where)
        self.nodes.append(node)
        return node


class _Factor(NamedTuple):
    """A factor of a matrix product: an entry, the layout of the matrices in it, and whether they are transposed."""

    entry: Entry
    laid: MatrixView | None
    transposed: bool


@dataclass
class _Chain:
    """Nodes that compute attention, with the inputs and attributes of the operator that replaces them.

    Attributes
    ----------
    nodes : list of Node
        From the first product to the second.
    query, key, value : _Factor
        The factors; ``value`` is None until the second product is found.
    shape : Shape
        The shape of the scores at the mask, or without a mask that of the product.
    scale : float
    mask : pair of entry and (MaskedScores or None), or None
        The mask; without a ``MaskedScores`` it is added.
    dropped : DroppedWeights or None
    weighed : bool
        Whether the softmax is among the nodes.
    last : Product or None
        The second product.
    result : Shape
        The shape of the second product.
    """

    nodes: list[Node]
    query: _Factor
    key: _Factor
    shape: Shape
    scale: float
    mask: tuple[Entry, MaskedScores | None] | None = None
    dropped: DroppedWeights | None = None
    weighed: bool = False
    value: _Factor | None = None
    last: Product | None = None
    result: Shape = ()

    def attend(self, tracer: RuleTracer, became: dict[Entry, Entry]) -> TracedValue:
        """The result of the operator that replaces the nodes; ``became`` holds replaced inputs."""
        assert self.value is not None and self.last is not None
        lead = self.shape[:-2]
        lead = (1,) * (2 - len(lead)) + lead
        operands, words = [], dict[str, Any]({} if self.dropped is None else self.dropped._asdict())
        for factor in (self.query, self.key, self.value):
            x: Any = tracer.value(became.get(factor.entry, factor.entry))
            if factor.laid is not None:
                x = factor.laid(x, lead)
            if factor.transposed:
                x = ops.swapaxes(x, dim1=len(x.shape) - 2, dim2=len(x.shape) - 1)
            operands.append(x.reshape((*lead, *x.shape[-2:])) if x.shape[:-2] != lead else x)
        if self.mask is not None:
            entry, mask_rule = self.mask
            mask: Any = tracer.value(became.get(entry, entry))
            if mask_rule is not None:
                mask = mask if np.dtype(mask.dtype).kind == "b" else ops.Cast(mask, dtype="bool")
                mask = mask if mask_rule.where else ops.logical_not(mask)
                with np.errstate(over="ignore"):  # the constant is rounded in the dtype of the scores that it replaces
                    fill = float(np.array(mask_rule.fill).astype(tracer.value(self.query.entry).dtype))
                words["fill"] = fill
            operands.append(mask)
        result = ops._contrib_scaled_dot_product_attention(*operands, scale=self.scale, use_mask=self.mask is not None,
                                                          **words)
        if self.last.result is not None:
            result = self.last.result(result)
        return result if result.shape == self.result else result.reshape(self.result)


def part_of(program: Program, node: Node) -> Part | None:
    """The part of a node in the pattern of attention, or None."""
    rule = None if node.op is None else node.op.rules.attends
    if rule is None:
        return None
    shapes = [program.specs[source][i].shape for source, i in node.inputs]
    if None in shapes:
        return None
    part: Part | None = rule(node.attrs, *shapes)
    return part


def _attention_from(program: Program, node: Node, readers: dict[Node, list[Node | None]],
                    moved: set[Node]) -> _Chain | None:
    """The attention that begins with a product; None if there is none, or its scores are few."""
    part, spec = part_of(program, node), program.specs[node][0]
    assert isinstance(part, Product) and spec.shape is not None
    if spec.dtype is None or not is_floating(spec.dtype) or not in_blocks(spec.shape) or len(spec.shape) > 4:
        return None
    if part.result is not None:
        return None
    a, b = [node.inputs[i] for i in part.places]
    chain = _Chain([node], _Factor(a, part.laid[0], part.transpose_a), _Factor(b, part.laid[1], not part.transpose_b),
                   spec.shape, float(part.factor))
    while chain.value is None:
        last = chain.nodes[-1]
        reading = readers.get(last, ())
        reader = reading[0] if len(reading) == 1 else None
        if reader is None or not _joins(program, chain, reader, (last, 0), moved):
            return None
        chain.nodes.append(reader)
    sizes = [program.specs[source][i].shape for (source, i), *_ in (chain.query, chain.key, chain.value)]
    return chain if all(shape is not None and 0 not in shape for shape in sizes) else None


def _joins(program: Program, chain: _Chain, node: Node, end: Entry, moved: set[Node]) -> bool:
    """Whether a node is the next one of the pattern; if it is, its part is entered in the chain."""
    first, spec = chain.nodes[0], program.specs[node][0]
    specs: list[Spec] = [program.specs[source][i] for source, i in node.inputs]
    shape, before = spec.shape, program.specs[end[0]][0].shape
    if spec.dtype != program.specs[first][0].dtype or shape is None or before is None:
        return False
    if program.bound.place(node) != program.bound.place(first):
        return False
    part = part_of(program, node)
    if isinstance(part, Product):
        weights, values = [node.inputs[i] for i in part.places]
        if not chain.weighed or weights != end or values == end or part.transpose_a or part.factor != 1 or part.laid[0]:
            return False
        chain.value, chain.last, chain.result = _Factor(values, part.laid[1], part.transpose_b), part, shape
        return True
    if isinstance(part, Weights):
        chain.weighed, before_it = True, not chain.weighed
        return before_it
    if isinstance(part, DroppedWeights):
        chain.dropped, alone = part, chain.weighed and chain.dropped is None
        return alone
    if _regroups(node, before, shape):
        if len(shape) <= 4 and chain.mask is None:
            chain.shape = shape
        return True
    if chain.weighed or shape != before or chain.mask is not None:
        return False
    factor = _factor(node)
    if factor is not None:
        chain.scale *= factor
        return True
    if isinstance(part, MaskedScores):
        mask_rule, at = part, 1
    elif _adds(node):
        mask_rule, at = None, node.inputs.index(end)
    else:
        return False
    mask = node.inputs[1 - at]
    if node.inputs[at] != end or mask == end or len(shape) > 4 or mask[0] in moved:
        return False
    if mask_rule is None and specs[1 - at].dtype != spec.dtype:
        return False
    chain.mask, chain.shape = (mask, mask_rule), shape
    return True


def _regroups(node: Node, before: Shape, after: Shape) -> bool:
    """Whether a node only reshapes the leading axes of its input, without copying."""
    op = node.op
    if op is None or op.rules.view is None or len(node.inputs) != 1 or before[-2:] != after[-2:]:
        return False
    array = np.empty(before, dtype=np.bool_)
    view: Any = op.rules.as_view(array, node.attrs, [after])
    return (isinstance(view, np.ndarray) and view.shape == after and view.flags.c_contiguous
            and address_of(view) == address_of(array))


def instruction_of(node: Node) -> tuple[str, Sequence[Any]]:
    """The name and operands of the only instruction of an element-wise node; empty for other nodes."""
    rule = None if node.op is None else node.op.rules.expression
    expression = None if rule is None else rule(node.attrs)
    if expression is None or len(expression.code) != 1 or expression.results != (expression.arity,):
        return "", ()
    prim, args = expression.code[0]
    name = "" if prim is None else prim.name
    return (name, args) if name and prim is PRIMITIVES.get(name) else ("", ())


def _factor(node: Node) -> float | None:
    """The constant by which a node multiplies its input, or None."""
    name, args = instruction_of(node)
    if len(node.inputs) != 1 or len(args) != 2:
        return None
    numbers = [arg for arg in args if isinstance(arg, float)]
    if name == "multiply" and len(numbers) == 1:
        return numbers[0]
    return 1.0 / numbers[0] if name == "divide" and args[0] == 0 and len(numbers) == 1 and numbers[0] else None


def _adds(node: Node) -> bool:
    """Whether a node is the sum of its two inputs."""
    name, args = instruction_of(node)
    return name == "add" and len(node.inputs) == 2 and sorted(map(repr, args)) == ["0", "1"]
