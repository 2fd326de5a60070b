"""Private operators that the passes for GPUs insert into plans. They are in no file and in no list of operators."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opreg.builtin.forms import formed
from opreg.builtin.matrices.dense import dense_weight, product
from opreg.builtin.outputs import wide
from opreg.core.spec import Shape
from opreg.typing import Array, ArrayModule

from ...private_operators import private

__all__ = ["dense_backward"]

dense_backward = private("_backward_FullyConnected_parameters", ("g", "data", "weight"),
                         "The gradients that ``FullyConnected`` passes to its weight and its bias.",
                         outputs=("weight", "bias"), unread=(2,))

formed(dense_backward, "(...g) (...data) (units, features) -> (units, features) (units)")


@dense_backward.flops
def dense_backward_flops(ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """The operations of the weight's gradient; the bias is not counted, as in the forward pass."""
    return 2 * math.prod(ins[0]) * ins[2][1]


@dense_backward.kernel()
def dense_backward_xp(xp: ArrayModule, g: Array, data: Array, weight: Array, *, flatten: bool) -> tuple[Array, Array]:
    rows = wide(g)
    slope = product(xp, *dense_weight(g, data, flatten=flatten)).reshape(weight.shape)
    return slope, rows.sum(tuple(range(g.ndim - 1)))
