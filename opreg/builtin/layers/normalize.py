"""Statistics of channels, and the operators of which gradients of batch norms consist.

A channel is the elements at one position of an axis, in all samples; statistics have the shape (channels,). They are
outputs of batch norms, mostly hidden ones, with gradients of their own, so the gradient of a gradient needs nothing
more than operators.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...backends.expressions import attach_loop
from ...core.array_module import einsum_of
from ...core.cache import cached
from ...core.launch import Call, reference
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.rules import Rule
from ...core.spec import Shape, check_axis
from ...core.threads import by_rows
from ...elementwise.expression import sqrt, square
from ...elementwise.loops import Loop, Sets, sets
from ...elementwise.rows import RowLayout, row_mean, row_size, row_sum
from ...typing import Array, ArrayModule
from ..layouts import by_axis
from ..looped import by_loop, looped
from ..outputs import like_inputs, wide

__all__ = ["Layout", "backward_normalize_loop", "layout_of", "moments", "vectors_along"]

_ELEMENT, _CHANNEL = RowLayout.ELEMENT, RowLayout.ROW


def vectors_along(ins: list, outs: list, *, axis: int = 1) -> list:
    """The fill rule of an operator whose inputs, but the data, have one value for each position of an axis."""
    data, *vectors = ins
    return ins if data is None else [data, *[(data[check_axis(axis, len(data))],)] * len(vectors)]


class Layout(NamedTuple):
    """A view of the data with channels along its second axis: its shape, the shape of statistics in it, the axes of a
    channel, the number of its elements, and subscripts of einsum for sums."""

    view: Shape
    keep: Shape
    axes: tuple[int, ...]
    size: int
    total: str
    dot: str


@cached(1024)
def layout_of(shape: Shape, axis: int) -> Layout:
    """The view of data of a shape, with channels along ``axis``."""
    axis %= len(shape)
    behind = math.prod(shape[axis + 1:])
    view: Shape = (math.prod(shape[:axis]), shape[axis], *([behind] if behind != 1 else []))
    axes = (0, 2)[:len(view) - 1]
    letters = "ijk"[:len(view)]
    return Layout(view, (1, view[1], 1)[:len(view)], axes, math.prod([view[i] for i in axes]), f"{letters}->j",
                  f"{letters},{letters}->j")


def moments(xp: ArrayModule, x: Array, layout: Layout, out: Array | None = None) -> tuple[Array, Array, Array]:
    """Mean, variance and centred values of ``x``, all in the view."""
    totals = by_rows(xp, x, lambda rows: einsum_of(xp)(layout.total, x[rows]))
    mean = functools.reduce(xp.add, totals).reshape(layout.keep) / layout.size
    centred = xp.empty(x.shape, dtype=x.dtype) if out is None else out

    def centre(rows: slice) -> Array:
        part = xp.subtract(x[rows], mean, out=centred[rows])
        return einsum_of(xp)(layout.dot, part, part)

    # from centred values: the difference of the mean square and the squared mean would cancel
    variance = functools.reduce(xp.add, by_rows(xp, x, centre)).reshape(layout.keep) / layout.size
    return mean, variance, centred


# -------------------------------------------------------------------------------------- parts of gradients
# Each is a plain function of all its inputs, statistics included, and differentiated as such.


def _channels(function: Callable[..., Any], inputs: tuple[RowLayout, ...], axis: int, **settings: Any) -> Sets:
    return sets(function, axis, inputs, exclude=True, keepdims=False, **settings)


def _declare_sums(op: Op, like: int, loop: Callable[..., Sets], compute: Callable[..., list[Array]]
                  ) -> Callable[..., Any]:
    """Declare sums over channels: a loop, which devices compile, and their kernel on the host, which is returned.

    The results have the shape of the input ``like``. ``compute(xp, layout, *arrays, **attrs)`` returns them.
    """
    rule = op.rules.sets = Rule(loop)
    op.infer(like_inputs(like, like))

    @op.kernel()  # no body: einsum sums channels where they lie, in half the time of the sum in a loop
    def sums_xp(xp: ArrayModule, *arrays: Array, axis: int, **attrs: Any) -> Any:
        return tuple([result.reshape(-1) for result in compute(xp, layout_of(arrays[0].shape, axis), *arrays, **attrs)])

    def loop_of(call: Call) -> Loop | str:
        if call.xp is np:
            return "a call of NumPy reduces as fast"
        described: Sets = rule(call.attrs)
        return described.on([array.shape for array in call.ins])

    attach_loop(op, loop_of, lambda call: reference(call).steps()[0])
    return sums_xp


@declare(name="_normalize_scale", types="T,P->T", inplace=(0,), cheap=True)
def normalize_scale(data, scale, *, axis: int = 1):
    """``data`` times the element of ``scale`` for its channel."""


@looped(normalize_scale)
def normalize_scale_loop(*, axis):
    return _channels(lambda x, scale: x * scale, (_ELEMENT, _CHANNEL), axis)


by_loop(normalize_scale, mixed=True)


@declare(name="_normalize_moments", types="T:floating,P->P,P", unread=(1,), outputs=("mean", "inverse"), cheap=True)
def normalize_moments(data, like, *, eps: float = 1e-3, axis: int = 1):
    """Mean and inverse standard deviation of each channel, in the dtype of ``like``."""


def _moments(xp: ArrayModule, layout: Layout, data: Array, like: Array, *, eps: float) -> list[Array]:
    mean, variance, _ = moments(xp, wide(data).reshape(layout.view), layout)
    return [mean, 1.0 / xp.sqrt(variance + eps)]


def _moments_of(x: Any, *, eps: float) -> tuple[Any, Any]:
    mean = row_mean(x)
    return mean, 1.0 / sqrt(row_mean(square(x - mean)) + eps)


_declare_sums(normalize_moments, 1, lambda *, axis, eps: _channels(_moments_of, (_ELEMENT,), axis, eps=eps), _moments)


@normalize_moments.grad  # the derivative of the loop adds differences to the mean, whose sum is zero
def normalize_moments_grad(g, ins, outs, *, axis):
    g_variance = g[1] * outs[1] * outs[1] * outs[1] * -0.5
    return ops._backward_normalize_moments(ins[0], outs[0], g[0], g_variance, axis=axis), None


@declare(name="_backward_normalize_moments", types="T:floating,*P->T", inplace=(0,), cheap=True)
def backward_moments(data, mean, g_mean, g_variance, *, axis: int = 1):
    """The gradient of data with respect to mean and variance of each channel."""


def _through_moments(x: Any, mean: Any, g_mean: Any, g_variance: Any) -> Any:
    share = 1.0 / row_size()
    return (x - mean) * (g_variance * (share * 2.0)) + g_mean * share


@looped(backward_moments)
def backward_moments_loop(*, axis):
    return _channels(_through_moments, (_ELEMENT, _CHANNEL, _CHANNEL, _CHANNEL), axis)


by_loop(backward_moments, mixed=True)


@declare(name="_backward_normalize_sums", types="T:floating,T,P,P->P,P", outputs=("product", "total"), cheap=True)
def backward_sums(g, data, mean, inverse, *, axis: int = 1):
    """Sums of ``g`` times the normalised data, and of ``g``, for each channel."""


def _sums(xp: ArrayModule, layout: Layout, g: Array, data: Array, mean: Array, inverse: Array) -> list[Array]:
    g, x = [wide(each).reshape(layout.view) for each in (g, data)]
    einsum = einsum_of(xp)
    sums = by_rows(xp, g, lambda rows: (einsum(layout.total, g[rows]), einsum(layout.dot, g[rows], x[rows])))
    total, product = [functools.reduce(xp.add, parts) for parts in zip(*sums)]
    # Without a centred copy of the data; the rounding this costs is that of the data themselves.
    return [(product - mean * total) * inverse, total]


def _sums_of(g: Any, x: Any, mean: Any, inverse: Any) -> tuple[Any, Any]:
    return row_sum(g * (x - mean)) * inverse, row_sum(g)


backward_sums_xp = _declare_sums(
    backward_sums, 2, lambda *, axis: _channels(_sums_of, (_ELEMENT, _ELEMENT, _CHANNEL, _CHANNEL), axis), _sums)
by_axis(backward_sums, (0, 1), outs=())
by_loop(backward_sums, mixed=True)


@declare(name="_backward_normalize", types="T:floating,T,*S->T", inplace=(1,), arguments=lambda *, scaled: (
    "g", "data", *(("gamma",) if scaled else ()), "mean", "inverse", "product", "total"), cheap=True)
def backward_normalize(g, data, gamma, mean, inverse, product, total, *, scaled: bool = True, axis: int = 1):
    """The gradient of normalised data with respect to the data; ``product`` and ``total`` are the results of
    ``backward_sums``."""


def _slope(g: Any, x: Any, *statistics: Any) -> Any:
    *gamma, mean, inverse, product, total = statistics
    slope = inverse * product / row_size()
    offset = slope * mean - total / row_size()
    return (x * -slope + g + offset) * (inverse * gamma[0] if gamma else inverse)


@looped(backward_normalize)
def backward_normalize_loop(*, scaled, axis):
    """The loop of ``_backward_normalize``."""
    return _channels(_slope, (_ELEMENT, _ELEMENT) + (_CHANNEL,) * (4 + scaled), axis)


by_loop(backward_normalize, mixed=True)
