"""The sums that undo a broadcast, as kernels of rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opreg.builtin.layers.convolution import convolution_bias
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.core.registry import REGISTERED
from opreg.elementwise.rows import RowLayout, row_sum, traced

from ..compiler import attach
from ..folds import bound_fold, groups_of
from ..instructions import declines

__all__: list[str] = []


def _attach(op: Op, axes_of: Callable[[Call], Sequence[int]]) -> None:
    """Give an operator the kernel ``cuda``, which sums its first input along axes."""

    def accepts(call: Call) -> str | None:
        return declines([call.ins[0], *call.outs])

    def steps(call: Call) -> list[Callable]:
        data = call.ins[0]
        return bound_fold(traced(row_sum, 1), [data], [RowLayout.ELEMENT], call.outs,
                          groups_of(data.shape, axes_of(call)), call.xp, call.scratch)

    attach(op, accepts, steps)


def _broadcast(call: Call) -> list[int]:
    """The axes along which the second input must be repeated to get the shape of the first."""
    data, like = (array.shape for array in call.ins)
    padded = (1,) * (len(data) - len(like)) + like
    return [i for i, (old, new) in enumerate(zip(data, padded)) if old != new]


def _but_channels(call: Call) -> list[int]:
    place = call.attrs["layout"].index("C")
    return [i for i in range(call.ins[0].ndim) if i != place]


_attach(REGISTERED["_reduce_like"], _broadcast)
_attach(convolution_bias, _but_channels)
