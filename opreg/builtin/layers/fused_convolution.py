"""A convolution fused with the operators after it in inference: batch norm, addition of another array, relu.

The operator exists only in plans, where the pass ``fuse_conv_bn`` creates it: files and lists of operators do not
contain it. Each part of the output is completed while it is in the cache; the norm takes one multiplication and one
addition for each element, with factors computed in each run from the current statistics. Results equal those of the
separate operators, except for the rounding of a bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core.attrs import Schema
from ...core.op import Op
from ...core.rules import EpilogueOperator
from ...core.spec import Shape
from ...typing import Array, ArrayModule
from .convolution import convolution, convolution_infer, run_convolution, weight_layout, work_of
from .correlation import Then, correlate
from .sliding import channels_first, window

__all__ = ["folded_convolution", "factors", "parts_of"]


def _arguments(*, no_bias: bool, normalized: bool, added: bool) -> list[str]:
    return ["data", "weight", *([] if no_bias else ["bias"]),
            *(["gamma", "beta", "moving_mean", "moving_var"] if normalized else []), *(["other"] if added else [])]


folded_convolution = Op("_folded_convolution", Schema([]), _arguments, doc="A convolution and what follows it.")
folded_convolution.where = None


@convolution.tail
def convolution_tail(*, kernel, stride, dilate, pad, num_filter, num_group, layout, no_bias):
    attrs = dict(kernel=kernel, stride=stride, dilate=dilate, pad=pad, num_filter=num_filter, num_group=num_group,
                 layout=layout, no_bias=no_bias)
    return EpilogueOperator(folded_convolution, attrs, 1 if layout is None else layout.index("C"))


@folded_convolution.flops
def folded_convolution_flops(ins, outs, *, num_filter):
    return work_of(ins[0], ins[1], outs[0], num_filter=num_filter)


@folded_convolution.layout
def folded_convolution_layout(ins, *, layout, added):
    answer = convolution.rules.layout({"layout": layout}, ins)
    if not added or isinstance(answer, str):
        return answer
    changed, read, written = answer
    return changed, (*read, len(ins) - 1), written


@folded_convolution.infer
def folded_convolution_infer(data, weight, *rest, kernel, stride, dilate, pad, num_filter, layout):
    return convolution_infer(data, weight, kernel=kernel, stride=stride, dilate=dilate, pad=pad, num_filter=num_filter,
                             layout=layout)


def parts_of(rest: Sequence[Array], no_bias: bool, normalized: bool, added: bool
             ) -> tuple[Array | None, Sequence[Array], Array | None]:
    """Inputs after the weight: the bias, the four of the norm, the array to add; None for a missing one."""
    bias, rest = (None, rest) if no_bias else (rest[0], rest[1:])
    return bias, rest[:4] if normalized else (), rest[-1] if added else None


def factors(xp: ArrayModule, bias: Array | None, norm: Sequence[Array], eps: float, fix_gamma: bool
            ) -> tuple[Array | None, Array | None]:
    """Factor and shift of each channel; None for neither."""
    if not norm:
        return None, bias
    gamma, beta, mean, variance = norm
    scale = 1.0 / xp.sqrt(variance + eps)
    if not fix_gamma:
        scale *= gamma
    shift = beta - mean * scale
    return scale, shift if bias is None else shift + bias * scale


@folded_convolution.kernel()  # no body: norm, sum and relu are computed for a block of images while it is in the cache
def folded_convolution_xp(xp, data, weight, *rest, kernel, stride, dilate, pad, num_filter, num_group, layout, no_bias,
                          normalized, added, eps, fix_gamma, relu, weights_first=False, out=None):
    bias, norm, other = parts_of(rest, no_bias, normalized, added)
    scale, shift = factors(xp, bias, norm, eps, fix_gamma)
    shape = folded_convolution_infer(data.shape, weight.shape, kernel=kernel, stride=stride, dilate=dilate, pad=pad,
                                     num_filter=num_filter, layout=layout)
    win, rank = window(kernel, stride, dilate, pad), len(kernel)
    if other is not None:
        other = _split(channels_first(other, layout), num_group)
    scale, shift = [None if v is None else v.reshape(num_group, -1, *(1,) * rank) for v in (scale, shift)]
    then = _finish(xp, scale, shift, other, relu)
    return run_convolution(xp, shape, out, (layout, layout, weight_layout(layout, weights_first)), (data, weight),
                           lambda y, x, w: correlate(xp, x, w, y, win, num_group, then))


def _split(array: Array, groups: int) -> Array:
    """(N, O, …) as (N, G, O / G, …)."""
    shape: Shape = array.shape
    return array.reshape(shape[0], groups, shape[1] // groups, *shape[2:])


def _finish(xp: ArrayModule, scale: Array | None, shift: Array | None, other: Array | None, relu: bool) -> Then:
    """Apply scale, shift, addition and relu to a part of the output; the arrays have groups and channels in front, or
    images before them."""

    def then(at: tuple[slice, slice, slice, slice], part: Array) -> None:
        if scale is not None:
            part *= scale[at[1:3]]
        if shift is not None:
            part += shift[at[1:3]]
        if other is not None:
            part += other[at]
        if relu:
            xp.clip(part, 0.0, math.inf, out=part)  # four times as fast as the maximum of an array and a number

    return then
