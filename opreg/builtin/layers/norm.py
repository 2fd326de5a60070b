"""Normalisation by vector norms: L2Normalization, and local response normalisation (LRN)."""

from __future__ import annotations

from typing import Any, Literal

from ...core.attrs import Amount, Positive
from ...core.registry import declare, ops
from ...core.spec import show
from ...elementwise.expression import sqrt, square
from ...elementwise.loops import sets
from ...elementwise.rows import RowLayout, row_sum
from ...errors import ShapeError
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..looped import by_loop, looped
from ..outputs import adjoint_pair, wide

# -------------------------------------------------------------------------------------- L2Normalization

#: Attributes of the operator ``sum`` for the axes of each mode.
_SUMMED: dict[str, dict[str, Any]] = {
    "instance": {"axis": 0, "exclude": True}, "channel": {"axis": 1}, "spatial": {"axis": (0, 1), "exclude": True}}


@declare(name="L2Normalization", types="T:floating->T,T", inplace=(0,), outputs=("output", "norm"), visible=lambda: 1)
def l2_normalization(data, *, eps: Amount = 1e-10, mode: Literal["channel", "instance", "spatial"] = "instance"):
    """``data`` divided by the 2-norm of each sample (mode ``instance``), of the channels at each position
    (``channel``), or of each channel of each sample (``spatial``)."""


@l2_normalization.infer  # the shape rule of the loop would accept too few axes
def l2_normalization_infer(data, *, mode):
    least = 3 if mode == "spatial" else 2
    if len(data) < least:
        raise ShapeError(f"data: expected at least {least} axes in mode {mode!r}, got shape {show(data)}")
    return l2_normalization_loop(eps=0.0, mode=mode).results([data])


def _normalized(x: Any, *, eps: float) -> Any:
    length = sqrt(row_sum(square(x)) + eps)
    return x / length, length


@looped(l2_normalization)
def l2_normalization_loop(*, eps, mode):
    return sets(_normalized, **_SUMMED[mode], eps=eps)


@l2_normalization.grad  # a loop of the output reads each set once
def l2_normalization_grad(g, ins, outs, *, mode):
    (g, g_norm), (y, norm) = g, outs
    dx = ops._backward_L2Normalization(g, y, norm, mode=mode)
    return dx if g_norm is None else dx + y * g_norm


@declare(name="_backward_L2Normalization")
def backward_l2_normalization(g, output, norm, *, mode: Literal["channel", "instance", "spatial"] = "instance"):
    """The gradient of ``L2Normalization``."""


def _normalize_gradient(g: Any, y: Any, length: Any) -> Any:
    return (g - y * row_sum(g * y)) / length


@looped(backward_l2_normalization)
def backward_l2_normalization_loop(*, mode):
    return sets(_normalize_gradient, inputs=(RowLayout.ELEMENT, RowLayout.ELEMENT, RowLayout.ROW), **_SUMMED[mode])


by_loop(backward_l2_normalization)


# -------------------------------------------------------------------------------------------------- LRN


def _window(xp: ArrayModule, x: Array, nsize: int) -> Array:
    """The sum of each channel and its neighbours, ``nsize`` in all, equally many on either side."""
    reach = min((nsize - 1) // 2, x.shape[1] - 1)
    total = x.copy()
    for distance in range(1, reach + 1):
        total[:, distance:] += x[:, :-distance]
        total[:, :-distance] += x[:, distance:]
    return total


@declare(name="LRN", types="T:floating->T,T", outputs=("output", "tmp_norm"), visible=lambda: 1, cheap=True)
def lrn(data, *, alpha: float = 1e-4, beta: float = 0.75, knorm: float = 2.0, nsize: Positive):
    """``data`` divided by ``(knorm + alpha / nsize * s) ** beta``, where ``s`` is the sum of squares over neighbouring
    channels.

    The window has as many channels on one side as on the other; an even ``nsize`` counts as ``nsize - 1``.

    A. Krizhevsky, I. Sutskever, G. E. Hinton, ImageNet Classification with Deep Convolutional Neural Networks, 2012,
    section 3.3.
    """


declare_form(lrn, "(samples, channels, ...) -> (samples, channels, ...) (samples, channels, ...)")


@lrn.kernel()  # no body: it takes 15% longer eagerly, and 19% for images of 27 pixels
def lrn_xp(xp, data, *, alpha, beta, knorm, nsize, out=None):
    x = wide(data)
    norm = _window(xp, x * x, nsize)
    norm *= alpha / nsize
    norm += knorm
    power = xp.power(norm, -beta)
    if out is None:
        power *= x
        return power, norm
    xp.multiply(x, power, out=out[0], casting="same_kind")
    out[1][...] = norm
    return out


@lrn.grad
def lrn_grad(g, ins, outs, *, alpha, beta, nsize):
    (g, g_norm), (y, norm), (data,) = g, outs, ins
    slope = g * y / norm * -beta
    if g_norm is not None:
        slope = slope + g_norm
    return g * norm ** -beta + data * ops._LRN_window(slope, nsize=nsize) * (2.0 * alpha / nsize)


@declare(name="_LRN_window", cheap=True)
def lrn_window(data, *, nsize: int):
    """The sum of each channel and its neighbours, ``nsize`` channels in total."""


@lrn_window.kernel()  # no body: neighbours are slices here, added in place
def lrn_window_xp(xp, data, *, nsize):
    return _window(xp, data, nsize)


adjoint_pair(lrn_window, lrn_window, like=False)
