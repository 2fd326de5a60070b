"""fuse_dense_backward: the gradients of a dense layer's weight and bias in one node, if cublasLt computes both."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from opreg.builtin.matrices.dense import fully_connected_weight
from opreg.core.graph import Node
from opreg.core.registry import get
from opreg.symbol.program import Program

from ...passes.operator_pairs import Joint, Pair, join
from ..compiler import can_compile, reason_in
from ..cublaslt import library
from ..operators.private import dense_backward

__all__ = ["fuse_dense_backward"]


def _key(program: Program, node: Node) -> Hashable:
    """The output gradient of the layer, for nodes that can be fused. A sum with the request ``add`` is not fused, since
    the library cannot add to the gradient of the bias."""
    xp = program.contexts[node].xp
    if not can_compile(xp) or reason_in(library(xp)):
        return None
    if node.op is fully_connected_weight:
        return None if program.specs[node][0].dtype == np.float64 else node.inputs[0]
    gradients = zip(program.heads[len(program.bound.graph.heads):], program.destinations)
    fits = (node.attrs["exclude"] and node.attrs["axis"] == -1 and not node.attrs["keepdims"]
            and not any(entry == (node, 0) and req == "add" for entry, (_, req) in gradients))
    return node.inputs[0] if fits else None


def _pair(weight: Node, total: Node) -> Pair:
    return Pair({"flatten": weight.attrs["flatten"]}, weight.inputs, [(weight, 0), (total, 0)])


_JOINT = Joint(dense_backward, fully_connected_weight, get("sum"), _key, _pair)


def fuse_dense_backward(program: Program) -> Program:
    """Compute the sum of the output gradient over the rows and its product with the data in one node."""
    return join(program, _JOINT)
