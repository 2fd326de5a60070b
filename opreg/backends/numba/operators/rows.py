"""The gradient of LayerNorm along the last axis, compiled with numba."""

from __future__ import annotations

import functools
import math

import numpy as np

from opreg.builtin.layers import layer_norm
from opreg.builtin.optimizers import updating
from opreg.core.launch import Call
from opreg.core.spec import Shape
from opreg.elementwise.loops import folded

from .. import updates
from ..row_reductions import Task, attach_rows

__all__: list[str] = []


def _rows(shape: Shape, axis: int) -> tuple[int, int] | None:
    """The number of rows and of elements in each, or None if the axis is not the last one."""
    if math.prod(shape) == 0:
        return 0, 0
    view, _ = folded(shape, (axis % len(shape),))
    return (view[0], view[1]) if len(view) == 2 else None


def _along(program: str, call: Call, axis: int, *constants: float) -> Task | str:
    rows = _rows(call.ins[0].shape, axis)
    return Task(program, call.ins, call.outs, constants, *rows) if rows else "its axis is not the last"


# --------------------------------------------------------------------------------------------- LayerNorm

# The inputs are g, data, gamma, mean and inverse. Sums over all rows are first computed for blocks of rows, which do
# not depend on the number of threads.
_BLOCK = 64
_BACKWARD_LAYER_NORM = f"""
for block in range(first, last):
    b = block * n
    for i in range(n):
        out1[b + i] = zero
    for i in range(n):
        out2[b + i] = zero
    for row in range(block * {_BLOCK}, min(rows, block * {_BLOCK} + {_BLOCK})):
        o = row * n
        mean = in3[row]
        inverse = in4[row]
        product = zero
        total = zero
        for i in range(n):
            normal = (in1[o + i] - mean) * inverse
            scaled = in0[o + i] * in2[i]
            product = plus(product, scaled * normal)
            total = plus(total, scaled)
            out1[b + i] = out1[b + i] + in0[o + i] * normal
            out2[b + i] = out2[b + i] + in0[o + i]
        product = product * c0
        total = total * c0
        for i in range(n):
            out0[o + i] = (in0[o + i] * in2[i] - (in1[o + i] - mean) * inverse * product - total) * inverse
"""


def _backward_layer_norm(call: Call) -> Task | str:
    data, (dx, *sums) = call.ins[1], call.outs
    n = data.shape[call.attrs["axis"]]
    task = _along(_BACKWARD_LAYER_NORM, call, call.attrs["axis"], 1.0 / max(n, 1))
    if isinstance(task, str):
        return task
    blocks = -(-task.rows // _BLOCK)
    parts = [None if out is None else call.scratch(i, (blocks, n), out.dtype) for i, out in enumerate(sums)]
    return task._replace(outs=[dx, *parts], total=blocks, epilogue=[
        functools.partial(np.add.reduce, part, 0, None, out) for part, out in zip(parts, sums) if out is not None])


attach_rows(layer_norm.backward_layer_norm, _backward_layer_norm)

# --------------------------------------------------------------------------------------- optimizer updates

updating.group_updaters.append(updating.GroupUpdater("numba", lambda xp: xp is np, updates.move, updates.bind))
