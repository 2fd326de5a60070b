"""redraw_dropout: dropout without a mask in memory, where only gradients would read it.

The node becomes two: one claims a part of the sequence of random numbers, and an element-wise one draws and multiplies.
Each product with the mask becomes an element-wise node that draws the same values again. Element-wise nodes are fused.
"""

from __future__ import annotations

import numpy as np

from opreg.builtin.attention_parts import DroppedWeights
from opreg.core.graph import Entry, Node
from opreg.core.spec import Spec, size
from opreg.symbol.passes.attention import instruction_of, part_of
from opreg.symbol.program import Program

from ..elementwise import fuses
from ..layout import DRAW
from ..operators.private import claim, dropped

__all__ = ["redraw_dropout"]


def redraw_dropout(program: Program) -> Program:
    """Replace dropout, and the products with its mask, by element-wise nodes that draw."""
    masks: dict[Entry, list[Node]] = {(node, 1): [] for node in program.nodes if _drops(program, node)}
    for node in program.nodes:
        for entry in masks.keys() & set(node.inputs):
            if _multiplies(program, node, entry):
                masks[entry].append(node)
            else:
                del masks[entry]
    for entry in (*program.heads, *program.pinned):
        masks.pop(entry, None)
    multiplied = {node: mask for mask, nodes in masks.items() for node in nodes}
    draws: dict[Entry, Entry] = {}

    def change(node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        mask = multiplied.get(node, (node, 1))
        if mask not in masks:
            return None
        claims = []
        if mask not in draws:
            data = node.inputs[0]
            claims = [_new_node(program, Node(claim, node.name, {}, [became.get(data, data)], where=node.where), node,
                                Spec((2,), DRAW))]
            draws[mask] = claims[0], 0
        data = next(entry for entry in node.inputs if entry != mask)
        product = Node(dropped, node.name, _dropout_scalars(program, mask), [became.get(data, data), draws[mask]],
                       tags=node.tags, where=node.where)
        became[node, 0] = product, 0
        return [*claims, _new_node(program, product, node, program.specs[node][0])]

    if masks:
        program.rebuild(change)
    return program


def _drops(program: Program, node: Node) -> bool:
    """Whether a node drops single elements of an array that kernels compute."""
    part = part_of(program, node)
    if not isinstance(part, DroppedWeights) or not part.p or node.count != 2:
        return False
    if part.mode == "training" and not node.in_training(program.is_train):
        return False
    data, mask = program.specs[node]
    assert data.shape is not None and data.dtype is not None
    return data.shape == mask.shape and size(data.shape) > 0 and fuses(program.contexts[node].xp, data.dtype)


def _multiplies(program: Program, node: Node, mask: Entry) -> bool:
    """Whether a node is the product of a mask and another array of its shape and dtype on the device of the mask."""
    name, _ = instruction_of(node)
    specs = [program.specs[source][index] for source, index in (mask, *node.inputs)]
    return (name == "multiply" and node.inputs.count(mask) == 1 and len(node.inputs) == 2
            and all(spec == specs[0] for spec in specs) and program.contexts[node] == program.contexts[mask[0]])


def _dropout_scalars(program: Program, mask: Entry) -> dict[str, float]:
    """The probability to keep an element, and the factor of kept elements, both rounded as in a mask."""
    part, dtype = part_of(program, mask[0]), program.specs[mask[0]][1].dtype
    assert isinstance(part, DroppedWeights)
    keep = 1.0 - part.p
    return {"share": float(np.float32(keep)), "factor": float(np.asarray(1.0 / keep if keep else 0.0, dtype))}


def _new_node(program: Program, node: Node, old: Node, spec: Spec) -> Node:
    """A new node with its context, that of the node it replaces, and its spec."""
    program.specs[node], program.contexts[node] = [spec], program.contexts[old]
    return node
