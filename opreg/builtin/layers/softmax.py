"""softmax and its variants: log_softmax, softmin and SoftmaxActivation, as loops over the elements along an axis."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import check_axis
from ...elementwise.expression import equal, exp, log, where
from ...elementwise.loop_runs import run_loop
from ...elementwise.loops import sets
from ...elementwise.rows import RowLayout, column, row_max, row_min, row_sum
from ...errors import AttrError
from ...typing import Array, ArrayModule
from ..attention_parts import Weights
from ..looped import by_loop, looped
from ..outputs import as_output, common_shape
from ..samples import shift_axes

__all__ = ["log_softmax_of", "softmax_of"]

_ELEMENT, _ROW = RowLayout.ELEMENT, RowLayout.ROW
_TYPES = "T:floating->@dtype:floating=T"


def _scale(temperature: float | None) -> float:
    return 1.0 if temperature is None else 1.0 / temperature


# ------------------------------------------------------------------------------------------------- loops
# The gradients are written by hand, from the output alone: derived gradients would read the data once more.


def softmax_of(x: Any, *, scale: float = 1.0) -> Any:
    """Exponentials of ``scale * x``, scaled to a sum of one."""
    grown = exp((x - (row_max(x) if scale > 0 else row_min(x))) * scale)
    # the sum is at least one, so its reciprocal is safe; a product takes less time than a quotient
    return grown * (1.0 / row_sum(grown))


def _softmax_of_some(x: Any, length: Any, *, scale: float) -> Any:
    """The softmax of the first ``length`` elements, where there are any; the others get 0."""
    scaled = where(column() < length, x * scale, -math.inf)
    top = row_max(scaled)
    grown = exp(scaled - where(equal(top, -math.inf), 0.0, top))
    total = row_sum(grown)
    return grown * (1.0 / (total + equal(total, 0.0)))


def _log_softmax(x: Any, *, scale: float) -> Any:
    moved = (x - (row_max(x) if scale > 0 else row_min(x))) * scale
    return moved - log(row_sum(exp(moved)))


def _through_softmax(g: Any, y: Any, *, scale: float) -> Any:
    return (g - row_sum(g * y)) * y * scale


def _through_log_softmax(g: Any, y: Any, *, scale: float) -> Any:
    return (g - exp(y) * row_sum(g)) * scale


def log_softmax_of(xp: ArrayModule, x: Array) -> Array:
    """The logarithm of the softmax of float32 or float64 elements along the last axis."""
    return run_loop(sets(_log_softmax, -1, scale=1.0).on([x.shape]), xp, [x], None, x.dtype)[0]


# The rule of the loop would take lengths that are not given, and divide by a temperature of zero.
def _infer(data, *length, axis, temperature, use_length):
    check_axis(axis, len(data))
    if temperature == 0:
        raise AttrError("temperature=0: expected a number other than zero")
    if use_length and not length:
        raise AttrError("use_length=True: this operator has no input for lengths; softmax has one")
    return data


# ----------------------------------------------------------------------------------------------- softmax


@declare(aliases=("_npx_softmax",), types="T:floating,L:integer=int32->@dtype:floating=T", inplace=(0,),
         arguments=lambda *, use_length: ("data", "length") if use_length else ("data",))
def softmax(data, length, *, axis: int = -1, temperature: float | None = None, dtype: np.dtype | None = None,
            use_length: bool | None = False):
    """Exponentials of ``data / temperature``, scaled to a sum of one along ``axis``.

    With ``use_length`` the softmax of each row covers its first elements along the axis, as many as ``length`` has for
    this row; the others get 0. ``dtype`` is the dtype of the output, by default that of the data.
    """


shift_axes(softmax)


@softmax.fill
def softmax_fill(ins, outs, *, axis, use_length):
    data = common_shape([ins[0], outs[0]])
    if not use_length or data is None:
        return [data, *ins[1:]]
    axis = check_axis(axis, len(data))
    return [data, data[:axis] + data[axis + 1:]]


softmax.infer(_infer)


@looped(softmax)
def softmax_loop(*, axis, temperature, use_length):
    if use_length:
        return sets(_softmax_of_some, axis, (_ELEMENT, _ROW), scale=_scale(temperature))
    return sets(softmax_of, axis, scale=_scale(temperature))


@softmax.attends
def softmax_attends(data, *length, axis, temperature):
    last = not length and axis in (-1, len(data) - 1)
    return Weights() if last and temperature in (None, 1.0) else None


@declare(types=_TYPES, inplace=(0,))
def softmin(data, *, axis: int = -1, temperature: float | None = None, dtype: np.dtype | None = None,
            use_length: bool | None = False):
    """Exponentials of ``-data / temperature``, scaled to a sum of one along ``axis``."""


shift_axes(softmin)


softmin.fill(as_output)
softmin.infer(_infer)


@looped(softmin)
def softmin_loop(*, axis, temperature):
    return sets(softmax_of, axis, scale=-_scale(temperature))


@declare(aliases=("_npx_log_softmax",), types=_TYPES, inplace=(0,))
def log_softmax(data, *, axis: int = -1, temperature: float | None = None, dtype: np.dtype | None = None,
                use_length: bool | None = False):
    """The logarithm of ``softmax``, without an intermediate rounding of the softmax."""


shift_axes(log_softmax)


log_softmax.fill(as_output)
log_softmax.infer(_infer)


@looped(log_softmax)
def log_softmax_loop(*, axis, temperature):
    return sets(_log_softmax, axis, scale=_scale(temperature))


@declare(name="SoftmaxActivation", types="T:floating->T", inplace=(0,))
def softmax_activation(data, *, mode: Literal["channel", "instance"] = "instance"):
    """The softmax along the last axis, or in the mode ``channel`` along the second."""


softmax_activation.fill(as_output)


@looped(softmax_activation)
def softmax_activation_loop(*, mode):
    return sets(softmax_of, _axis(mode), scale=1.0)


@softmax_activation.grad  # reads the output, which the derivative of the loop computes once more
def softmax_activation_grad(g, ins, outs, *, mode):
    return ops._backward_softmax(g, outs[0], axis=_axis(mode))


def _axis(mode: str) -> int:
    return 1 if mode == "channel" else -1


# --------------------------------------------------------------------------------------------- gradients


@declare(name="_backward_softmax", inplace=(0,))
def backward_softmax(g, output, *, axis: int = -1, temperature: float | None = None):
    """The gradient of ``softmax``."""


shift_axes(backward_softmax)


@looped(backward_softmax)
def backward_softmax_loop(*, axis, temperature):
    return sets(_through_softmax, axis, (_ELEMENT, _ELEMENT), scale=_scale(temperature))


@declare(name="_backward_log_softmax", inplace=(1,))
def backward_log_softmax(g, output, *, axis: int = -1, temperature: float | None = None):
    """The gradient of ``log_softmax``."""


shift_axes(backward_log_softmax)


@looped(backward_log_softmax)
def backward_log_softmax_loop(*, axis, temperature):
    return sets(_through_log_softmax, axis, (_ELEMENT, _ELEMENT), scale=_scale(temperature))


by_loop(backward_softmax)
by_loop(backward_log_softmax)


def _declare_gradient_of_output(op: Op, back: Op, sign: float = 1.0) -> None:
    """Declare the gradient, by an operator that reads the output; its dtype need not be that of the data."""

    @op.grad  # the derivative of the loop computes the output once more
    def output_grad(g, ins, outs, *, axis, temperature, dtype):
        dx = back.current(g, outs[0], axis=axis, temperature=temperature if sign > 0 else sign * (temperature or 1.0))
        return (dx if dtype is None else ops._backward_cast(dx, ins[0]), None)[:len(ins)]


_declare_gradient_of_output(softmax, backward_softmax)
_declare_gradient_of_output(softmin, backward_softmax, -1.0)
_declare_gradient_of_output(log_softmax, backward_log_softmax)
