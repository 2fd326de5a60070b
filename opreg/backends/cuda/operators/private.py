"""Private operators that the passes for GPUs insert into plans. They are in no file and in no list of operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from opreg.builtin.elementwise.elementwise import attach
from opreg.builtin.forms import declare_form
from opreg.builtin.matrices.dense import dense_weight, product
from opreg.builtin.outputs import wide
from opreg.core.keys import cached_by_value
from opreg.core.spec import Shape
from opreg.elementwise.expression import KEPT, PRIMITIVES, Expression, Instruction
from opreg.typing import Array, ArrayModule

from ...private_operators import private

__all__ = ["claim", "dense_backward", "dropped"]

dense_backward = private("_backward_FullyConnected_parameters", ("g", "data", "weight"),
                         "The gradients that ``FullyConnected`` passes to its weight and its bias.",
                         outputs=("weight", "bias"), unread=(2,))

declare_form(dense_backward, "(...g) (...data) (units, features) -> (units, features) (units)")


@dense_backward.flops
def dense_backward_flops(ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """The operations of the weight's gradient; the bias is not counted, as in the forward pass."""
    return 2 * math.prod(ins[0]) * ins[2][1]


@dense_backward.kernel()
def dense_backward_xp(xp: ArrayModule, g: Array, data: Array, weight: Array, *, flatten: bool) -> tuple[Array, Array]:
    rows = wide(g)
    slope = product(xp, *dense_weight(g, data, flatten=flatten)(g, data)).reshape(weight.shape)
    return slope, rows.sum(tuple(range(g.ndim - 1)))


# ----------------------------------------------------------------------------------------------- dropout

claim = private("_claim", ("data",), "A draw for each element of the data; see ``opreg.elementwise.counting``.",
                outputs=("draw",), random=True, unread=(0,))


@claim.kernel()  # no body: a key is drawn
def claim_xp(xp: ArrayModule, data: Array, *, rng: Any) -> Array:
    return rng.integers(0, 1 << 62, size=2).astype(xp.uint64)


dropped = private("_dropped", ("data", "draw"), "The data times a factor where a draw keeps it, zero elsewhere.",
                  inplace=(0,))


@cached_by_value(64)
def _product(share: float, factor: float) -> Expression:
    multiply = PRIMITIVES["multiply"]
    return Expression.of(2, [Instruction(KEPT, (0, 1, share)), Instruction(multiply, (2, factor)),
                             Instruction(multiply, (0, 3))], [4])


attach(dropped, lambda attrs: _product(attrs["share"], attrs["factor"]))
