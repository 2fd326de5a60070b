"""The sum that undoes a broadcast, as kernels of rows and columns."""

from __future__ import annotations

from collections.abc import Callable

from opreg.core.launch import Call
from opreg.core.registry import REGISTERED
from opreg.elementwise.rows import RowLayout, row_sum, traced

from ..compiler import attach
from ..folds import bound_fold, groups_of
from ..instructions import declines


def _accepts(call: Call) -> str | None:
    return declines([call.ins[0], *call.outs])


def _steps(call: Call) -> list[Callable]:
    data, like = call.ins
    padded = (1,) * (data.ndim - like.ndim) + like.shape
    repeated = [i for i, (old, new) in enumerate(zip(data.shape, padded)) if old != new]
    return bound_fold(traced(row_sum, 1), [data], [RowLayout.ELEMENT], call.outs, groups_of(data.shape, repeated),
                      call.xp, call.scratch)


attach(REGISTERED["_reduce_like"], _accepts, _steps)
