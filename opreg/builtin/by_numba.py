"""softmax, its relatives, LayerNorm and their gradients along the last axis, compiled with numba where it is there."""

from __future__ import annotations

import math
from typing import Any

from ..kernels.rows import Task, attach_rows
from ..op import Call
from ..registry import get
from .softmax import fold

__all__: list[str] = []


def _seen(shape: tuple[int, ...], axis: int) -> tuple[int, int] | None:
    """How many rows there are and numbers in each, or None where rows are not side by side."""
    if math.prod(shape) == 0:
        return 0, 0
    view = fold(shape, axis)
    return (view[0], view[1]) if len(view) == 2 else None


def _along(program: str, call: Call, axis: int, *constants: float) -> Task | str:
    seen = _seen(call.ins[0].shape, axis)
    return Task(program, call.ins, call.outs, constants, *seen) if seen else "its axis is not the last"


# ----------------------------------------------------------------------------------------------- softmax

_EXPONENTIALS = """
for row in range(first, last):
    o = row * n
    top = least
    for i in range(n):
        top = largest(top, in0[o + i] * c0)
    total = zero
    for i in range(n):
"""
_SOFTMAX = _EXPONENTIALS + """\
        y = exp(in0[o + i] * c0 - top)
        out0[o + i] = y
        total = plus(total, y)
    for i in range(n):
        out0[o + i] = out0[o + i] / total
"""
_LOG_SOFTMAX = _EXPONENTIALS + """\
        total = plus(total, exp(in0[o + i] * c0 - top))
    total = log(total)
    for i in range(n):
        out0[o + i] = (in0[o + i] * c0 - top) - total
"""
_BACKWARD_SOFTMAX = """
for row in range(first, last):
    o = row * n
    total = zero
    for i in range(n):
        total = plus(total, in0[o + i] * in1[o + i])
    for i in range(n):
        out0[o + i] = (in0[o + i] - total) * in1[o + i] * c0
"""
_BACKWARD_LOG_SOFTMAX = """
for row in range(first, last):
    o = row * n
    total = zero
    for i in range(n):
        total = plus(total, in0[o + i])
    for i in range(n):
        out0[o + i] = (in0[o + i] - exp(in1[o + i]) * total) * c0
"""


def _scaled(program: str, sign: float = 1.0) -> Any:
    def task(call: Call) -> Task | str:
        if len(call.ins) != program.count("in1") + 1 and call.attrs.get("use_length"):
            return "lengths are given"
        return _along(program, call, call.attrs["axis"], sign / (call.attrs["temperature"] or 1.0))

    return task


def _activation(call: Call) -> Task | str:
    return _along(_SOFTMAX, call, 1 if call.attrs["mode"] == "channel" else -1, 1.0)


attach_rows(get("softmax"), _scaled(_SOFTMAX))
attach_rows(get("softmin"), _scaled(_SOFTMAX, -1.0))
attach_rows(get("log_softmax"), _scaled(_LOG_SOFTMAX))
attach_rows(get("SoftmaxActivation"), _activation)
attach_rows(get("_backward_softmax"), _scaled(_BACKWARD_SOFTMAX))
attach_rows(get("_backward_log_softmax"), _scaled(_BACKWARD_LOG_SOFTMAX))

# --------------------------------------------------------------------------------------------- LayerNorm

_LAYER_NORM = """
for row in range(first, last):
    o = row * n
    total = zero
    for i in range(n):
        total = plus(total, in0[o + i])
    mean = total * c0
    total = zero
    for i in range(n):
        x = in0[o + i] - mean
        total = plus(total, x * x)
    deviation = sqrt(total * c0 + c1)
    inverse = reciprocal(deviation)
    for i in range(n):
        out0[o + i] = (in0[o + i] - mean) * inverse * in1[i] + in2[i]
    out1[row] = mean
    out2[row] = deviation
"""
# The inputs are g, data, mean and inverse.
_SUMS = """
for row in range(first, last):
    o = row * n
    mean = in2[row]
    product = zero
    total = zero
    for i in range(n):
        g = in0[o + i]
        product = plus(product, g * (in1[o + i] - mean))
        total = plus(total, g)
    out0[row] = product * in3[row]
    out1[row] = total
"""
_NORMALIZE = """
for row in range(first, last):
    o = row * n
    mean = in2[row]
    inverse = in3[row]
    slope = inverse * in4[row] * c0
    share = in5[row] * c0
    for i in range(n):
        out0[o + i] = (in0[o + i] - (in1[o + i] - mean) * slope - share) * inverse
"""
_PARAMETERS = """
for i in range(first, last):
    out0[i] = zero
    out1[i] = zero
for row in range(rows):
    o = row * n
    mean = in2[row]
    inverse = in3[row]
    for i in range(first, last):
        g = in0[o + i]
        out0[i] = out0[i] + g * ((in1[o + i] - mean) * inverse)
        out1[i] = out1[i] + g
"""


def _layer_norm(call: Call) -> Task | str:
    size = call.ins[0].shape[call.attrs["axis"]]
    return _along(_LAYER_NORM, call, call.attrs["axis"], 1.0 / max(size, 1), call.attrs["eps"])


def _gradient(program: str) -> Any:
    def task(call: Call) -> Task | str:
        if call.attrs["over"] != "axis" or call.attrs.get("scaled"):
            return "only sets along an axis, without scales"
        size = call.ins[0].shape[call.attrs["axis"]]
        return _along(program, call, call.attrs["axis"], 1.0 / max(size, 1))

    return task


def _parameters(call: Call) -> Task | str:
    found = _along(_PARAMETERS, call, call.attrs["axis"])
    return found if isinstance(found, str) else found._replace(columns=True)


attach_rows(get("LayerNorm"), _layer_norm)
attach_rows(get("_backward_normalize_sums"), _gradient(_SUMS))
attach_rows(get("_backward_normalize"), _gradient(_NORMALIZE))
attach_rows(get("_backward_LayerNorm"), _parameters)
