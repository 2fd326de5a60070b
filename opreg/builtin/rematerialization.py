"""Recomputation of results from stored outputs: of dropout from its mask, of a batch norm from its statistics.

Plans may compute intermediate results again instead of storing them for backward; see
``opreg.symbol.passes.rematerialization``. These operators cannot run twice, since they draw random values or change
states; their stored outputs determine the result by element-wise arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.op import Op
from ..core.registry import ops
from ..core.spec import Spec
from ..core.value import Value
from .elementwise.activation import dropout
from .layers.batch_norm import batch_norm, batch_norm_with_relu


@dropout.recompute
def dropout_again(ins: Sequence[Value], outs: Sequence[Value], *, axes: tuple[int, ...]) -> Value:
    return ops.broadcast_mul(ins[0], outs[1]) if axes else ops.elemwise_mul(ins[0], outs[1])


def _vector_along(value: Value, axis: int, rank: int) -> Value:
    """A vector as an array of this rank, along one axis."""
    return ops.Reshape(value, shape=tuple([-1 if i == axis % rank else 1 for i in range(rank)]))


def _batch_again(op: Op, ends: bool) -> None:
    @op.recompute
    def batch_norm_again(ins: Sequence[Value], outs: Sequence[Value], *, specs: Sequence[Spec], fix_gamma: bool,
                         use_global_stats: bool, axis: int) -> Value | None:
        data, gamma, beta = ins[:3]
        if specs[0].dtype != specs[1].dtype or use_global_stats:
            return None
        rank = len(specs[0].shape or ())
        scale = outs[2] if fix_gamma else ops.elemwise_mul(outs[2], gamma)
        mean, scale, beta = [_vector_along(vector, axis, rank) for vector in (outs[1], scale, beta)]
        y = ops.broadcast_add(ops.broadcast_mul(ops.broadcast_sub(data, mean), scale), beta)
        return ops.relu(y) if ends else y


_batch_again(batch_norm, False)
_batch_again(batch_norm_with_relu, True)
