"""Eager calls on a device by the kernels that plans use, which are bound to arrays.

A kernel is bound once to arrays that stand in for those of later calls. Each call then launches its steps on the arrays
it is given. So an eager call and a plan compute the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opreg.core.addresses import address_of
from opreg.core.launch import Call, prepare
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.core.spec import Shape, Spec, is_known
from opreg.core.steps import Work, step_work
from opreg.typing import Array

from .context import Context

__all__ = ["DeviceCall", "device_call"]

# The alignment in bytes of the arrays of a call: kernels read packs of 16 bytes.
_ALIGNED = 16


class DeviceCall:
    """The steps of a bound kernel as a function of arrays.

    Attributes
    ----------
    takes_out : bool
        Whether it has a parameter ``out`` for its only output.
    """

    __slots__ = ("takes_out", "_works", "_ctx", "_new", "_count")

    def __init__(self, works: Sequence[Work], ctx: Context, new: Sequence[tuple[Shape, np.dtype]], count: int):
        self._works, self._ctx, self._new, self._count, self.takes_out = works, ctx, new, count, count == 1

    def __call__(self, *ins: Array, out: Array | None = None) -> Array | list[Array]:
        ctx = self._ctx
        empty, device = ctx.backend.empty, ctx.device_id
        arrays = [array if array.flags.c_contiguous and not address_of(array) % _ALIGNED else array.copy(order="C")
                  for array in ins]
        outs = [empty(shape, dtype, device) for shape, dtype in self._new]
        if out is not None and out.flags.c_contiguous and not address_of(out) % _ALIGNED and not any(
                array is out for array in ins):  # a kernel may read an input again after it has written
            outs[0] = out
        arrays += outs
        for work in self._works:
            work(arrays)
        if out is not None and outs[0] is not out:
            out[...] = outs[0]
            return out
        return outs[0] if self._count == 1 else outs[:self._count]


def device_call(op: Op, attrs: Attrs, arrays: Sequence[Array], ctx: Context, is_train: bool,
                outs: Sequence[Spec]) -> DeviceCall | None:
    """An eager call of an operator on a device by the kernel that a plan would choose; None if this kernel is the
    reference, or can only work on arrays that it is bound to."""
    traits = op.traits
    if traits.random or traits.states or traits.mutates or op.kernels[0].bound or not outs:
        return None
    new: list[Array] = []
    for shape, dtype in (*[(array.shape, array.dtype) for array in arrays], *outs):
        if shape is None or not is_known(shape) or not math.prod(shape):
            return None
        new.append(_placeholder(ctx, shape, np.dtype(dtype)))
    scratch: list[Array] = []

    def allocate(key: int, shape: Shape, dtype: np.dtype) -> Array:
        scratch.append(_placeholder(ctx, shape, np.dtype(dtype)))
        return scratch[-1]

    ins, results = new[:len(arrays)], new[len(arrays):]
    call = Call(op, attrs, ins, results, ["write"] * len(results), ctx.xp, ctx, is_train, None, list(outs), allocate)
    prepared = prepare(call)
    if not prepared.kernel.bound or prepared.kernel.serves is None:
        return None
    steps, store = prepared.steps()
    new += scratch
    works = [step_work(step, new) for step in steps]
    if store is not None or any(work is None for work in works):
        return None
    later = [(array.shape, array.dtype) for array in new[len(arrays):]]
    return DeviceCall([work for work in works if work is not None], ctx, later, len(results))


def _placeholder(ctx: Context, shape: Shape, dtype: np.dtype) -> Array:
    """An array that a kernel is bound to in place of a later call's array. It has the least alignment of those, since
    libraries choose algorithms by the alignment."""
    memory = ctx.backend.empty((math.prod(shape) * dtype.itemsize + _ALIGNED,), np.dtype(np.uint8), ctx.device_id)
    return memory[_ALIGNED:].view(dtype).reshape(shape)
