"""fuse_dense_backward: the gradients of a dense layer's weight and bias in one node, where cublasLt computes both."""

from __future__ import annotations

import numpy as np

from opreg.core.graph import Entry, Node
from opreg.symbol.program import Program

from ..compiler import can_compile, declined
from ..cublaslt import library
from ..operators.private import dense_backward

__all__ = ["fuse_dense_backward"]


def fuse_dense_backward(program: Program) -> Program:
    """Sum what arrives over the rows while it is multiplied with the data."""
    pairs = _pairs(program)
    if not pairs:
        return program
    done = set(pairs.values())

    def change(node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        if node not in pairs:
            return [] if node in done else None
        total = pairs[node]
        new = Node(dense_backward, node.name, {"flatten": node.attrs["flatten"]},
                   [became.get(entry, entry) for entry in node.inputs], where=node.where)
        program.specs[new] = [*program.specs[node], *program.specs[total]]
        program.contexts[new] = program.contexts[node]
        became.update({(node, 0): (new, 0), (total, 0): (new, 1)})
        return [new]

    program.rebuild(change)
    return program


def _pairs(program: Program) -> dict[Node, Node]:
    """Pairs by the node of a weight's gradient: the sum of the same gradient for the bias, which is not read before it.

    One that is added to what its array holds stays by itself, since the library only writes there.
    """
    adding = {entry for entry, (_, req) in zip(program.heads[len(program.bound.graph.heads):], program.destinations)
              if req == "add"}
    sums: dict[Entry, Node] = {}
    weights: dict[Entry, Node] = {}
    read: set[Node] = set()
    for node in program.nodes:
        read.update(source for source, _ in node.inputs)
        xp = program.contexts[node].xp
        if node.op is None or not can_compile(xp) or declined(library(xp)):
            continue
        if node.built_in == "_backward_FullyConnected_weight" and program.specs[node][0].dtype != np.float64:
            if sums.get(node.inputs[0]) not in read:
                weights.setdefault(node.inputs[0], node)
        elif (node.built_in == "sum" and node.attrs["exclude"] and node.attrs["axis"] == -1
              and not node.attrs["keepdims"] and (node, 0) not in adding):
            sums.setdefault(node.inputs[0], node)
    return {weight: sums[arriving] for arriving, weight in weights.items() if arriving in sums}
