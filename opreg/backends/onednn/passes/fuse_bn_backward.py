"""fuse_bn_backward: the two operators of a batch norm's gradient in one node, if oneDNN computes it."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from opreg.builtin.layers.normalize import backward_normalize, backward_sums
from opreg.core.graph import Node
from opreg.symbol.program import Program

from ...passes.operator_pairs import Joint, Pair, join
from ..operators.private import batch_norm_gradient
from ..shared_library import missing

__all__ = ["fuse_bn_backward"]


def _key(program: Program, node: Node) -> Hashable:
    """The inputs and the axis of the sums, and the entries of the sums; None for nodes that oneDNN does not compute."""
    if program.contexts[node].xp is not np:
        return None
    if node.op is backward_sums:
        return node.inputs, node.attrs["axis"], ((node, 0), (node, 1))
    return (*node.inputs[:2], *node.inputs[-4:-2]), node.attrs["axis"], node.inputs[-2:]


def _pair(sums: Node, gradient: Node) -> Pair:
    return Pair({"axis": sums.attrs["axis"], "scaled": gradient.attrs["scaled"]}, gradient.inputs[:-2],
                [(gradient, 0), (sums, 0), (sums, 1)])


_JOINT = Joint(batch_norm_gradient, backward_sums, backward_normalize, _key, _pair)


def fuse_bn_backward(program: Program) -> Program:
    """Compute the sums of a batch norm's gradient, and the gradient that reads them, in one node."""
    return join(program, _JOINT) if missing() is None else program
