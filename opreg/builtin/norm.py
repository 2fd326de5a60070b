"""Normalisation: BatchNorm and its relatives, LayerNorm, InstanceNorm, GroupNorm; L2Normalization and LRN.

The first kind takes the mean from a set of numbers and divides them by their deviation. What differs is the set,
``over``:

- ``batch``: the numbers of one channel in all samples; the statistics have the shape (channels,).
- ``axis``: the numbers along one axis; the statistics keep that axis, with one element.
- ``group``: the numbers of some channels of one sample; the statistics have the shape (samples, groups).

In a view of three axes, or two where the last has one element, each set is the numbers along some of the axes, and
scales and offsets lie along the second. Everything below is written for that view. The statistics are outputs, mostly
hidden ones, with gradients of their own, so the gradient of a gradient needs nothing more than operators.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import AttrError, DTypeError, ShapeError
from ..registry import declare, ops
from ..spec import ANY, Shape, as_dtype, check_axis, common_dtype, show
from ..threads import by_rows

__all__ = ["floating", "wide", "place", "room", "settle"]

Over = Literal["batch", "axis", "group"]


# ------------------------------------------------------------------------------------------- for families


def floating(dtypes: Sequence[np.dtype | None]) -> np.dtype | None:
    """The one dtype known among several, which must be floating.

    Raises
    ------
    DTypeError
        When two differ or one holds no fractions.
    """
    found = common_dtype(dtypes)
    if found is not None and found.kind != "f" and found.name != "bfloat16":
        raise DTypeError(f"expected a floating dtype, got {found}")
    return found


def wide(array: Any) -> Any:
    """The array in a dtype whose sums can be trusted: float32 for those of 16 bits."""
    return array.astype("float32") if array.dtype.itemsize < 4 else array


def place(out: Any, like: Any) -> Any:
    """``out`` in the shape of ``like``, to compute into, or None where its layout or dtype does not allow that."""
    if out is None or out.dtype != like.dtype or not out.flags.c_contiguous:
        return None
    return out.reshape(like.shape)


def room(xp: Any, like: Any, target: Any) -> Any:
    """Where to compute a result like an array: what ``place`` answered, or new memory."""
    return xp.empty(like.shape, dtype=like.dtype) if target is None else target


def settle(out: Any, target: Any, result: Any, shape: Shape) -> Any:
    """A result in its final shape and place, when ``target`` is what ``place`` answered."""
    if out is None:
        return result.reshape(shape)
    if target is None:
        out[...] = result.reshape(shape)
    return out


# ---------------------------------------------------------------------------------------------- the view


class Layout(NamedTuple):
    """How data are seen: shape of the view, that of statistics and scales in it, einsum's words for sums."""

    view: Shape
    keep: Shape
    scale: Shape
    size: int
    total: str
    dot: str


@functools.lru_cache(1024)
def _layout(shape: Shape, over: Over, axis: int, num_groups: int) -> Layout:
    if over == "group":
        groups = num_groups or shape[1]
        view: Shape = (shape[0], groups, shape[1] // groups * math.prod(shape[2:]))
        axes: tuple[int, ...] = (2,)
    else:
        axis %= len(shape)
        view = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:]))
        axes = (1,) if over == "axis" else (0, 2)
        if view[2] == 1:
            view, axes = view[:2], axes[:1]
    letters = "ijk"[:len(view)]
    rest = "".join(letter for i, letter in enumerate(letters) if i not in axes)
    return Layout(view, tuple(1 if i in axes else dim for i, dim in enumerate(view)),
                  tuple(dim if i == 1 else 1 for i, dim in enumerate(view)),
                  math.prod(view[i] for i in axes), f"{letters}->{rest}", f"{letters},{letters}->{rest}")


def _statistics_shape(data: Shape, over: Over, axis: int, num_groups: int) -> Shape:
    if over == "group":
        return (data[0], num_groups or data[1])
    axis = check_axis(axis, len(data))
    if over == "batch":
        return (data[axis],)
    return (*data[:axis], 1, *data[axis + 1:])


def _check_statistics(data: Shape, others: Sequence[Shape], over: Over, axis: int, num_groups: int) -> Shape:
    """The shape of statistics, which others must have."""
    expected = _statistics_shape(data, over, axis, num_groups)
    for shape in others:
        if shape != expected:
            raise ShapeError(f"expected statistics of shape {show(expected)} for data {show(data)}, got {show(shape)}")
    return expected


def _moments(xp: Any, x: Any, layout: Layout, out: Any = None) -> tuple[Any, Any, Any]:
    """Mean, variance and what is left of ``x`` without the mean; all in the view."""
    mean = xp.einsum(layout.total, x).reshape(layout.keep) / layout.size
    centred = xp.subtract(x, mean, out=out)
    # From the centred numbers: the difference of the mean square and the squared mean would cancel.
    variance = xp.einsum(layout.dot, centred, centred).reshape(layout.keep) / layout.size
    return mean, variance, centred


def _part(array: Any, rows: slice) -> Any:
    """What belongs to some rows of the view: all of an array that has but one for all of them."""
    return array if array.shape[0] == 1 else array[rows]


# ------------------------------------------------------------------------- the parts gradients are made of
# Each is a plain function of all its inputs, statistics included, and differentiated as such.


def _words(**attrs: Any) -> dict[str, Any]:
    return {name: attrs[name] for name in ("over", "axis", "num_groups")}


@declare(name="_normalize_scale", types="T,P->T", inplace=(0,))
def normalize_scale(data, scale, *, over: Over = "batch", axis: int = 1, num_groups: int = 0):
    """``data`` times the number that belongs to its set."""


@normalize_scale.infer
def normalize_scale_infer(data, scale, *, over, axis, num_groups):
    _check_statistics(data, [scale], over, axis, num_groups)
    return data


@normalize_scale.kernel()
def normalize_scale_xp(xp, data, scale, *, over, axis, num_groups, out=None):
    layout = _layout(data.shape, over, axis, num_groups)
    x = wide(data).reshape(layout.view)
    target = place(out, x)
    y, scale = room(xp, x, target), scale.reshape(layout.keep)
    by_rows(xp, x, lambda rows: xp.multiply(x[rows], _part(scale, rows), out=y[rows]))
    return settle(out, target, y, data.shape)


@normalize_scale.grad
def normalize_scale_grad(g, ins, outs, **attrs):
    data, scale = ins
    return (ops._normalize_scale(g, scale, **attrs), ops._normalize_total(g * data, scale, **attrs))


@declare(name="_normalize_total", types="T,P->P", unread=(1,))
def normalize_total(data, like, *, over: Over = "batch", axis: int = 1, num_groups: int = 0):
    """The sum of each set, in the dtype of ``like``."""


@normalize_total.infer
def normalize_total_infer(data, like, *, over, axis, num_groups):
    return _check_statistics(data, [like], over, axis, num_groups)


@normalize_total.kernel()
def normalize_total_xp(xp, data, like, *, over, axis, num_groups):
    layout = _layout(data.shape, over, axis, num_groups)
    return xp.einsum(layout.total, wide(data).reshape(layout.view)).reshape(like.shape)


@normalize_total.grad
def normalize_total_grad(g, ins, outs, **attrs):
    return (ops._normalize_expand(g, ins[0], **attrs), None)


@declare(name="_normalize_expand", types="P,T->T", unread=(1,))
def normalize_expand(values, like, *, over: Over = "batch", axis: int = 1, num_groups: int = 0):
    """To every number of ``like``, the value that belongs to its set."""


@normalize_expand.infer
def normalize_expand_infer(values, like, *, over, axis, num_groups):
    _check_statistics(like, [values], over, axis, num_groups)
    return like


@normalize_expand.kernel()
def normalize_expand_xp(xp, values, like, *, over, axis, num_groups):
    layout = _layout(like.shape, over, axis, num_groups)
    return xp.broadcast_to(values.reshape(layout.keep), layout.view).reshape(like.shape)


@normalize_expand.grad
def normalize_expand_grad(g, ins, outs, **attrs):
    return (ops._normalize_total(g, ins[0], **attrs), None)


@declare(name="_normalize_moments", types="T,P->P,P", unread=(1,), outputs=("mean", "inverse"))
def normalize_moments(data, like, *, eps: float = 1e-3, over: Over = "batch", axis: int = 1, num_groups: int = 0):
    """Mean and inverse deviation of each set, in the dtype of ``like``."""


@normalize_moments.infer
def normalize_moments_infer(data, like, *, over, axis, num_groups):
    return [_check_statistics(data, [like], over, axis, num_groups)] * 2


@normalize_moments.kernel()
def normalize_moments_xp(xp, data, like, *, eps, over, axis, num_groups):
    layout = _layout(data.shape, over, axis, num_groups)
    mean, variance, _ = _moments(xp, wide(data).reshape(layout.view), layout)
    return mean.reshape(like.shape), (1.0 / xp.sqrt(variance + eps)).reshape(like.shape)


@normalize_moments.grad
def normalize_moments_grad(g, ins, outs, *, over, axis, num_groups):
    words = _words(over=over, axis=axis, num_groups=num_groups)
    count = _count(ins[0], outs[0], words)
    inverse = outs[1]
    return (_from_statistics(ins[0], outs[0], g[0] / count, g[1] * inverse * inverse * inverse / -count, words), None)


def _count(data: Any, like: Any, words: dict[str, Any]) -> Any:
    """How many numbers each set has, as a value: a gradient rule does not know shapes."""
    return ops._normalize_total(ops.ones_like(data), like, **words)


def _from_statistics(data: Any, mean: Any, constant: Any, slope: Any, words: dict[str, Any]) -> Any:
    """``constant + slope * (data - mean)``: what a mean and a deviation hand down, each number's share."""
    found = None
    if slope is not None:
        found = ops._normalize_scale(data, slope, **words)
        constant = -slope * mean if constant is None else constant - slope * mean
    if constant is not None:
        spread = ops._normalize_expand(constant, data, **words)
        found = spread if found is None else found + spread
    return found


def _gathered(xp: Any, sums: Sequence[Any], layout: Layout) -> Any:
    """Sums of the sets from those of some rows each: added where a set lies in all rows, else side by side."""
    if len(sums) == 1:
        return sums[0]
    return functools.reduce(xp.add, sums) if layout.keep[0] == 1 else xp.concatenate(sums)


@declare(name="_backward_normalize_sums", types="T,T,P,P->P,P", outputs=("product", "total"))
def backward_sums(g, data, mean, inverse, *, over: Over = "batch", axis: int = 1, num_groups: int = 0):
    """For each set the sum of ``g`` times the normalised data, and the sum of ``g``."""


@backward_sums.infer
def backward_sums_infer(g, data, mean, inverse, *, over, axis, num_groups):
    return [_check_statistics(data, [mean, inverse], over, axis, num_groups)] * 2


@backward_sums.kernel()
def backward_sums_xp(xp, g, data, mean, inverse, *, over, axis, num_groups):
    layout = _layout(data.shape, over, axis, num_groups)
    g, x = wide(g).reshape(layout.view), wide(data).reshape(layout.view)
    sums = by_rows(xp, g, lambda rows: (xp.einsum(layout.total, g[rows]), xp.einsum(layout.dot, g[rows], x[rows])))
    total, product = (_gathered(xp, each, layout).reshape(mean.shape) for each in zip(*sums))
    # Without a centred copy of the data; the rounding this costs is that of the data themselves.
    return (product - mean * total) * inverse, total


@backward_sums.grad
def backward_sums_grad(h, ins, outs, **attrs):
    g, data, mean, inverse = ins
    product, total = h
    slope = product * inverse
    return (_from_statistics(data, mean, total, slope, attrs), ops._normalize_scale(g, slope, **attrs),
            -slope * outs[1], product * outs[0] / inverse)


@declare(name="_backward_normalize", inplace=(1,), arguments=lambda *, scaled: (
    "g", "data", *(("gamma",) if scaled else ()), "mean", "inverse", "product", "total"))
def backward_normalize(g, data, gamma, mean, inverse, product, total, *, scaled: bool = True, over: Over = "batch",
                       axis: int = 1, num_groups: int = 0):
    """The gradient of normalised data with respect to the data, ``product`` and ``total`` being the sums."""


@backward_normalize.infer
def backward_normalize_infer(g, data, *rest, scaled, over, axis, num_groups):
    statistics = _check_statistics(data, rest[scaled:], over, axis, num_groups)
    if scaled and rest[0] != statistics[-1:]:
        raise ShapeError(f"gamma: expected shape {show(statistics[-1:])}, got {show(rest[0])}")
    return g


@backward_normalize.types
def backward_normalize_types(ins, outs):
    data, rest = floating([*ins[:2], *outs]), common_dtype(ins[2:])
    return [data, data] + [rest] * (len(ins) - 2), [data]


@backward_normalize.kernel()
def backward_normalize_xp(xp, g, data, *rest, over, axis, num_groups, out=None):
    *gamma, mean, inverse, product, total = rest
    layout = _layout(data.shape, over, axis, num_groups)
    x = wide(data).reshape(layout.view)
    target = place(out, x)
    factor = inverse * gamma[0] if gamma else inverse
    slope = inverse * product / layout.size
    offset = (slope * mean - total / layout.size).reshape(layout.keep)
    slope, factor = (-slope).reshape(layout.keep), factor.reshape(layout.keep)
    y, g = room(xp, x, target), wide(g).reshape(layout.view)

    def work(rows: slice) -> None:
        part = xp.multiply(x[rows], _part(slope, rows), out=y[rows])
        part += g[rows]
        part += _part(offset, rows)
        part *= _part(factor, rows)

    by_rows(xp, x, work)
    return settle(out, target, y, data.shape)


@backward_normalize.grad
def backward_normalize_grad(h, ins, outs, *, scaled, over, axis, num_groups):
    words = _words(over=over, axis=axis, num_groups=num_groups)
    g, data, *gamma, mean, inverse, product, total = ins
    count = _count(data, mean, words)
    # With k = gamma * inverse: out = k * (g - total / count - (data - mean) * inverse * product / count).
    k = inverse * gamma[0] if scaled else inverse
    h_product, h_total = ops._backward_normalize_sums(h, data, mean, inverse, **words)
    share = h_product * product / count
    weight = ops._normalize_total(h * g, mean, **words) - h_total * total / count - share
    slope = k * inverse * product / count
    found = [ops._normalize_scale(h, k, **words), ops._normalize_scale(h, -slope, **words)]
    if scaled:
        found.append(ops._reduce_like(inverse * weight, gamma[0]))
    through = weight - share
    return [*found, slope * h_total, through * gamma[0] if scaled else through,
            -k * h_product / count, -k * h_total / count]


# --------------------------------------------------------------------------------------------- BatchNorm


def _batch_fill(ins, outs, *, axis):
    if ins[0] is None:
        return ins
    vector = (ins[0][check_axis(axis, len(ins[0]))],)
    return [ins[0], *[vector] * 4]


def _batch_infer(data, gamma, beta, moving_mean, moving_var):
    return [data, gamma, gamma]


def _batch_types(ins, outs):
    data = floating([ins[0], outs[0]])
    rest = common_dtype([*ins[1:], *outs[1:]])
    if data is not None:  # statistics in 16 bits would be useless
        rest = common_dtype([rest, as_dtype("float32") if data.itemsize < 4 else data])
    return [data, *[rest] * 4], [data, rest, rest]


def _batch_norm(xp: Any, data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any, eps: float,
                momentum: float, fix_gamma: bool, use_global_stats: bool, axis: int, is_train: bool, out: Any
                ) -> tuple[Any, Any, Any, Any, Any]:
    """Output, mean, variance and the new moving mean and variance."""
    layout = _layout(data.shape, "batch", axis, 0)
    x = wide(data).reshape(layout.view)
    target = place(out, x)
    offset = beta.reshape(layout.keep)
    if is_train and not use_global_stats:
        mean, variance, y = _moments(xp, x, layout, target)
        mean, variance = mean.reshape(-1), variance.reshape(-1)
        scale = 1.0 / xp.sqrt(variance + eps)
        if not fix_gamma:
            scale *= gamma
        y *= scale.reshape(layout.keep)
        moving_mean = moving_mean * momentum + mean * (1.0 - momentum)
        moving_var = moving_var * momentum + variance * (1.0 - momentum)
    else:
        mean, variance = moving_mean, moving_var
        scale = 1.0 / xp.sqrt(variance + eps)
        if not fix_gamma:
            scale *= gamma
        offset = offset - (mean * scale).reshape(layout.keep)
        y = xp.multiply(x, scale.reshape(layout.keep), out=target)
    y += offset
    return settle(out, target, y, data.shape), mean, variance, moving_mean, moving_var


def _batch_outputs(xp: Any, results: tuple[Any, ...], last: Any, is_train: bool, out: Any) -> tuple[Any, ...]:
    """What a kernel of BatchNorm returns, ``last`` being its third output."""
    y, mean, _, *states = results
    if out is not None:
        out[1][...], out[2][...] = mean, last
    return (y, mean, last, *(states if is_train else ()))


def _batch_gradient(g: Any, data: Any, gamma: Any, mean: Any, inverse: Any, slope: Any, moving: bool, fix_gamma: bool,
                    axis: int) -> tuple[Any, Any, Any]:
    """Gradients of data, gamma and beta; ``slope`` is what the third output hands to ``data - mean``."""
    words = {"over": "batch", "axis": axis, "num_groups": 0}
    product, total = ops._backward_normalize_sums(g[0], data, mean, inverse, **words)
    weights = [] if fix_gamma else [gamma]
    if moving:
        dx = ops._backward_normalize(g[0], data, *weights, mean, inverse, product, total, scaled=not fix_gamma,
                                     **words)
        if g[1] is not None or slope is not None:
            count = _count(data, mean, words)
            dx = dx + _from_statistics(data, mean, None if g[1] is None else g[1] / count,
                                       None if slope is None else slope / count, words)
    else:
        dx = ops._normalize_scale(g[0], inverse if fix_gamma else inverse * gamma, **words)
    return dx, ops.zeros_like(gamma) if fix_gamma else product, total


@declare(name="BatchNorm", aliases=("_npx_batch_norm",), mode=True, auxiliary=("moving_mean", "moving_var"),
         states=(0, 1), inplace=(0,), outputs=("output", "mean", "var"),
         visible=lambda *, output_mean_var: 3 if output_mean_var else 1)
def batch_norm(data, gamma, beta, moving_mean, moving_var, *, eps: float = 1e-3, momentum: float = 0.9,
               fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1,
               cudnn_off: bool = False, min_calib_range: float | None = None, max_calib_range: float | None = None):
    """``data`` with mean ``beta`` and deviation ``gamma`` in every channel, over all samples.

    Training takes the statistics from the data and moves ``moving_mean`` and ``moving_var`` towards them, once a
    forward pass; otherwise, and with ``use_global_stats``, these take their place. With ``fix_gamma`` gamma counts as
    one and its gradient is zero. ``output_mean_var`` shows two more outputs, the mean and the inverse of the
    deviation, through which no gradient passes. Gamma, beta and the statistics are float32 for data of 16 bits.

    S. Ioffe, C. Szegedy, Batch Normalization, arXiv:1502.03167.
    """


@declare(name="_contrib_BatchNormWithReLU", mode=True, auxiliary=("moving_mean", "moving_var"), states=(0, 1),
         inplace=(0,), outputs=("output", "mean", "var"),
         visible=lambda *, output_mean_var: 3 if output_mean_var else 1)
def batch_norm_with_relu(data, gamma, beta, moving_mean, moving_var, *, eps: float = 1e-3, momentum: float = 0.9,
                         fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False,
                         axis: int = 1, cudnn_off: bool = False, min_calib_range: float | None = None,
                         max_calib_range: float | None = None):
    """``BatchNorm``, with what is below zero set to zero."""


for _op in (batch_norm, batch_norm_with_relu):
    _op.fill(_batch_fill)
    _op.infer(_batch_infer)
    _op.types(_batch_types)

batch_norm.variable_tags = {"moving_mean": {"__init__": '["zero", {}]'}, "moving_var": {"__init__": '["one", {}]'}}


@batch_norm.kernel()
def batch_norm_xp(xp, data, gamma, beta, moving_mean, moving_var, *, eps, momentum, fix_gamma, use_global_stats, axis,
                  is_train, out=None):
    results = _batch_norm(xp, data, gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma, use_global_stats,
                          axis, is_train, None if out is None else out[0])
    return _batch_outputs(xp, results, 1.0 / xp.sqrt(results[2] + eps), is_train, out)


@batch_norm.grad
def batch_norm_grad(g, ins, outs, *, eps, fix_gamma, use_global_stats, output_mean_var, axis, is_train):
    data, gamma = ins[:2]
    _, mean, inverse = outs
    moving = is_train and not use_global_stats
    if output_mean_var:  # a user's gradients of these two are blocked
        g = (g[0], None, None)
        if moving:
            mean, inverse = ops._normalize_moments(data, mean, eps=eps, over="batch", axis=axis)
    slope = None if g[2] is None else -g[2] * inverse * inverse * inverse
    return _batch_gradient(g, data, gamma, mean, inverse, slope, moving, fix_gamma, axis)


@batch_norm_with_relu.kernel()
def batch_norm_with_relu_xp(xp, *arrays, eps, momentum, fix_gamma, use_global_stats, axis, is_train, out=None):
    y, *rest = batch_norm_xp(xp, *arrays, eps=eps, momentum=momentum, fix_gamma=fix_gamma, axis=axis,
                             use_global_stats=use_global_stats, is_train=is_train, out=out)
    return (xp.maximum(y, 0.0, out=y), *rest)


@batch_norm_with_relu.grad
def batch_norm_with_relu_grad(g, ins, outs, *, eps, fix_gamma, use_global_stats, output_mean_var, axis, is_train):
    g = (g[0] * (outs[0] > 0.0), *g[1:])
    return batch_norm_grad(g, ins, outs, eps=eps, fix_gamma=fix_gamma, use_global_stats=use_global_stats,
                           output_mean_var=output_mean_var, axis=axis, is_train=is_train)


@declare(name="BatchNorm_v1", mode=True, auxiliary=("moving_mean", "moving_var"), states=(0, 1), inplace=(0,),
         outputs=("output", "mean", "var"), visible=lambda *, output_mean_var: 3 if output_mean_var else 1)
def batch_norm_v1(data, gamma, beta, moving_mean, moving_var, *, eps: float = 1e-3, momentum: float = 0.9,
                  fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False):
    """``BatchNorm`` with the channels in the second axis; its third output is the variance."""


@declare(name="_contrib_SyncBatchNorm", mode=True, auxiliary=("moving_mean", "moving_var"), states=(0, 1),
         inplace=(0,), outputs=("output", "mean", "var"),
         visible=lambda *, output_mean_var: 3 if output_mean_var else 1)
def sync_batch_norm(data, gamma, beta, moving_mean, moving_var, *, eps: float = 1e-3, momentum: float = 0.9,
                    fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False,
                    ndev: int = 1, key: str):
    """``BatchNorm`` of one device, with the channels in the second axis; its third output is the variance.

    ``ndev`` and ``key`` name the devices that shared their statistics in MXNet. Here an array lies on one device, and
    its statistics are those of all its samples.
    """


for _op in (batch_norm_v1, sync_batch_norm):
    _op.fill(lambda ins, outs: _batch_fill(ins, outs, axis=1))
    _op.infer(_batch_infer)
    _op.types(_batch_types)
    _op.variable_tags = batch_norm.variable_tags

    @_op.kernel()
    def batch_variance_xp(xp, data, gamma, beta, moving_mean, moving_var, *, eps, momentum, fix_gamma,
                          use_global_stats, is_train, out=None):
        results = _batch_norm(xp, data, gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma,
                              use_global_stats, 1, is_train, None if out is None else out[0])
        return _batch_outputs(xp, results, results[2], is_train, out)

    @_op.grad
    def batch_variance_grad(g, ins, outs, *, eps, fix_gamma, use_global_stats, output_mean_var, is_train):
        data, gamma = ins[:2]
        _, mean, variance = outs
        moving = is_train and not use_global_stats
        if output_mean_var:
            g = (g[0], None, None)
            if moving:
                mean, inverse = ops._normalize_moments(data, mean, eps=eps, over="batch", axis=1)
        if not (output_mean_var and moving):
            inverse = ops.rsqrt(variance + eps)
        return _batch_gradient(g, data, gamma, mean, inverse, None if g[2] is None else g[2] * 2.0, moving, fix_gamma,
                               1)


# --------------------------------------------------------------- LayerNorm, InstanceNorm and GroupNorm


def _sample_norm(xp: Any, data: Any, gamma: Any, beta: Any, eps: float, layout: Layout, out: Any
                 ) -> tuple[Any, Any, Any]:
    """Output, mean and deviation; the two have the shape they have in the view."""
    x = wide(data).reshape(layout.view)
    target = place(out, x)
    y, scale, offset = room(xp, x, target), gamma.reshape(layout.scale), beta.reshape(layout.scale)

    def work(rows: slice) -> tuple[Any, Any]:
        part = y[rows]
        mean, variance, _ = _moments(xp, x[rows], layout._replace(keep=(part.shape[0], *layout.keep[1:])), part)
        deviation = xp.sqrt(variance + eps)
        if layout.keep[1] == 1:  # along the axis: no small array holds both factors
            part *= 1.0 / deviation
            part *= scale
        else:
            part *= 1.0 / deviation * scale
        part += offset
        return mean, deviation

    statistics = by_rows(xp, x, work)
    mean, deviation = (xp.concatenate(each) for each in zip(*statistics)) if len(statistics) > 1 else statistics[0]
    return settle(out, target, y, data.shape), mean, deviation


def _with_statistics(results: tuple[Any, Any, Any], shape: Shape, out: Any) -> tuple[Any, Any, Any]:
    y, mean, last = results
    if out is None:
        return y, mean.reshape(shape), last.reshape(shape)
    out[1][...], out[2][...] = mean.reshape(shape), last.reshape(shape)
    return out


def _moved(dx: Any, data: Any, mean: Any, g_mean: Any, slope: Any, words: dict[str, Any]) -> Any:
    """``dx`` and what the two statistics hand down, where something reached them."""
    if g_mean is None and slope is None:
        return dx
    count = _count(data, mean, words)
    return dx + _from_statistics(data, mean, None if g_mean is None else g_mean / count,
                                 None if slope is None else slope / count, words)


@declare(name="LayerNorm", aliases=("_npx_layer_norm",), inplace=(0,), outputs=("output", "mean", "std"),
         visible=lambda *, output_mean_var: 3 if output_mean_var else 1)
def layer_norm(data, gamma, beta, *, axis: int = -1, eps: float = 1e-5, output_mean_var: bool = False):
    """``data`` with mean zero and deviation one along ``axis``, times ``gamma``, plus ``beta``.

    ``output_mean_var`` shows two more outputs, mean and deviation, through which no gradient passes.

    J. L. Ba, J. R. Kiros, G. E. Hinton, Layer Normalization, arXiv:1607.06450.
    """


@layer_norm.fill
def layer_norm_fill(ins, outs, *, axis):
    if ins[0] is None:
        return ins
    vector = (ins[0][check_axis(axis, len(ins[0]))],)
    return [ins[0], vector, vector]


@layer_norm.infer
def layer_norm_infer(data, gamma, beta, *, axis):
    statistics = _statistics_shape(data, "axis", axis, 0)
    return [data, statistics, statistics]


@layer_norm.types
def layer_norm_types(ins, outs):
    one = floating([*ins, *outs])
    return [one] * len(ins), [one] * len(outs)


@layer_norm.kernel()
def layer_norm_xp(xp, data, gamma, beta, *, axis, eps, out=None):
    layout = _layout(data.shape, "axis", axis, 0)
    results = _sample_norm(xp, data, gamma, beta, eps, layout, None if out is None else out[0])
    return _with_statistics(results, _statistics_shape(data.shape, "axis", axis, 0), out)


@layer_norm.grad
def layer_norm_grad(g, ins, outs, *, axis, eps, output_mean_var):
    words = {"over": "axis", "axis": axis, "num_groups": 0}
    data, gamma, _ = ins
    (g, g_mean, g_std), (_, mean, std) = g, outs
    if output_mean_var:
        g_mean = g_std = None
        mean, inverse = ops._normalize_moments(data, mean, eps=eps, **words)
    else:
        inverse = 1.0 / std
    scaled = ops._normalize_scale(g, gamma, over="batch", axis=axis)
    product, total = ops._backward_normalize_sums(scaled, data, mean, inverse, **words)
    dx = ops._backward_normalize(scaled, data, mean, inverse, product, total, scaled=False, **words)
    dx = _moved(dx, data, mean, g_mean, None if g_std is None else g_std * inverse, words)
    return (dx, *ops._backward_LayerNorm(g, data, mean, inverse, axis=axis))


@declare(name="_backward_LayerNorm", outputs=("gamma", "beta"))
def backward_layer_norm(g, data, mean, inverse, *, axis: int = -1):
    """The gradients of ``LayerNorm`` with respect to gamma and beta."""


@backward_layer_norm.infer
def backward_layer_norm_infer(g, data, mean, inverse, *, axis):
    return [(data[axis],)] * 2


@backward_layer_norm.kernel()
def backward_layer_norm_xp(xp, g, data, mean, inverse, *, axis):
    layout = _layout(data.shape, "axis", axis, 0)
    letters, rest = layout.total.split("->")
    g, x = wide(g).reshape(layout.view), wide(data).reshape(layout.view)
    mean = wide(mean).reshape(layout.keep)
    inverse = wide(inverse).reshape([dim for i, dim in enumerate(layout.keep) if i != 1])

    def work(rows: slice) -> tuple[Any, Any]:
        centred = x[rows] - mean[rows]
        centred *= g[rows]
        return xp.einsum(f"{letters},{rest}->j", centred, inverse[rows]), xp.einsum(f"{letters}->j", g[rows])

    return tuple(functools.reduce(xp.add, each) for each in zip(*by_rows(xp, x, work)))


@backward_layer_norm.grad
def backward_layer_norm_grad(h, ins, outs, *, axis):
    words = {"over": "axis", "axis": axis, "num_groups": 0}
    g, data, mean, inverse = ins
    normal = _from_statistics(data, mean, None, inverse, words)
    h_gamma, h_beta = h
    scaled = ops._normalize_scale(g, h_gamma, over="batch", axis=axis)
    product, total = ops._backward_normalize_sums(scaled, data, mean, inverse, **words)
    dg = (ops._normalize_scale(normal, h_gamma, over="batch", axis=axis)
          + ops._normalize_expand(h_beta, g, over="batch", axis=axis))
    return dg, ops._normalize_scale(scaled, inverse, **words), -total * inverse, product / inverse


def _group_gradient(g: Any, ins: Any, mean: Any, inverse: Any, slope: Any, num_groups: int) -> tuple[Any, Any, Any]:
    words = {"over": "group", "axis": 1, "num_groups": num_groups}
    data, gamma, beta = ins
    product, total = ops._backward_normalize_sums(g[0], data, mean, inverse, **words)
    dx = ops._backward_normalize(g[0], data, gamma, mean, inverse, product, total, **words)
    return (_moved(dx, data, mean, g[1], slope, words), ops._reduce_like(product, gamma),
            ops._reduce_like(total, beta))


def _deep(data: Shape) -> None:
    if len(data) < 3:
        raise ShapeError(f"data: expected at least 3 axes (samples, channels, ...), got shape {show(data)}")


@declare(name="InstanceNorm", inplace=(0,), outputs=("output", "mean", "var"), visible=lambda: 1)
def instance_norm(data, gamma, beta, *, eps: float = 1e-3):
    """``data`` with mean ``beta`` and deviation ``gamma`` in every channel of every sample.

    D. Ulyanov, A. Vedaldi, V. Lempitsky, Instance Normalization, arXiv:1607.08022.
    """


@instance_norm.fill
def instance_norm_fill(ins, outs):
    if ins[0] is None:
        return ins
    _deep(ins[0])
    return [ins[0], ins[0][1:2], ins[0][1:2]]


@instance_norm.infer
def instance_norm_infer(data, gamma, beta):
    return [data, data[:2], data[:2]]


instance_norm.types(layer_norm_types)


@instance_norm.kernel()
def instance_norm_xp(xp, data, gamma, beta, *, eps, out=None):
    layout = _layout(data.shape, "group", 1, 0)
    y, mean, deviation = _sample_norm(xp, data, gamma, beta, eps, layout, None if out is None else out[0])
    return _with_statistics((y, mean, 1.0 / deviation), data.shape[:2], out)


@instance_norm.grad
def instance_norm_grad(g, ins, outs):
    _, mean, inverse = outs
    return _group_gradient(g, ins, mean, inverse,
                           None if g[2] is None else -g[2] * inverse * inverse * inverse, 0)


@declare(name="GroupNorm", inplace=(0,), outputs=("output", "mean", "std"),
         visible=lambda *, output_mean_var: 3 if output_mean_var else 1)
def group_norm(data, gamma, beta, *, num_groups: int = 1, eps: float = 1e-5, output_mean_var: bool = False):
    """``data`` with mean ``beta`` and deviation ``gamma`` in every group of channels of every sample.

    Gamma and beta have an element for each group. ``output_mean_var`` shows two more outputs, mean and deviation,
    through which no gradient passes.

    Y. Wu, K. He, Group Normalization, arXiv:1803.08494, where gamma and beta belong to channels.
    """


@group_norm.fill
def group_norm_fill(ins, outs, *, num_groups):
    if ins[0] is None:
        return ins
    _deep(ins[0])
    if num_groups < 1 or (ins[0][1] is not ANY and ins[0][1] % num_groups):
        raise AttrError(f"num_groups={num_groups} does not divide the {ins[0][1]} channels")
    return [ins[0], (num_groups,), (num_groups,)]


@group_norm.infer
def group_norm_infer(data, gamma, beta, *, num_groups):
    return [data, (data[0], num_groups), (data[0], num_groups)]


group_norm.types(layer_norm_types)


@group_norm.kernel()
def group_norm_xp(xp, data, gamma, beta, *, num_groups, eps, out=None):
    layout = _layout(data.shape, "group", 1, num_groups)
    results = _sample_norm(xp, data, gamma, beta, eps, layout, None if out is None else out[0])
    return _with_statistics(results, (data.shape[0], num_groups), out)


@group_norm.grad
def group_norm_grad(g, ins, outs, *, num_groups, eps, output_mean_var):
    _, mean, std = outs
    if output_mean_var:
        g = (g[0], None, None)
        mean, inverse = ops._normalize_moments(ins[0], mean, eps=eps, over="group", num_groups=num_groups)
    else:
        inverse = 1.0 / std
    return _group_gradient(g, ins, mean, inverse, None if g[2] is None else g[2] * inverse, num_groups)


# -------------------------------------------------------------------------------------- L2Normalization

#: Which axes a mode sums over, in the words of the operator ``sum``.
_SUMMED: dict[str, dict[str, Any]] = {
    "instance": {"axis": 0, "exclude": True}, "channel": {"axis": 1}, "spatial": {"axis": (0, 1), "exclude": True}}


def _length_axes(mode: str, rank: int) -> tuple[int, ...]:
    if mode == "channel":
        return (1,)
    return tuple(range(1 if mode == "instance" else 2, rank))


@declare(name="L2Normalization", inplace=(0,), outputs=("output", "norm"), visible=lambda: 1)
def l2_normalization(data, *, eps: float = 1e-10, mode: Literal["channel", "instance", "spatial"] = "instance"):
    """``data`` divided by a length: of each sample, of the channels at each place, or of each channel."""


@l2_normalization.infer
def l2_normalization_infer(data, *, mode):
    least = 3 if mode == "spatial" else 2
    if len(data) < least:
        raise ShapeError(f"data: expected at least {least} axes in mode {mode!r}, got shape {show(data)}")
    axes = _length_axes(mode, len(data))
    return [data, tuple(1 if i in axes else dim for i, dim in enumerate(data))]


@l2_normalization.types
def l2_normalization_types(ins, outs):
    one = floating([*ins, *outs])
    return [one], [one, one]


@l2_normalization.kernel()
def l2_normalization_xp(xp, data, *, eps, mode, out=None):
    x = wide(data)
    norm = xp.sqrt(xp.sum(x * x, axis=_length_axes(mode, data.ndim), keepdims=True) + eps)
    if out is None:
        return x / norm, norm
    out[1][...] = norm
    target = place(out[0], x)
    return settle(out[0], target, xp.divide(x, norm, out=target), data.shape), out[1]


@l2_normalization.grad
def l2_normalization_grad(g, ins, outs, *, mode):
    (g, g_norm), (y, norm) = g, outs
    dx = ops._backward_L2Normalization(g, y, norm, mode=mode)
    return dx if g_norm is None else dx + y * g_norm


@declare(name="_backward_L2Normalization")
def backward_l2_normalization(g, output, norm, *, mode: Literal["channel", "instance", "spatial"] = "instance"):
    """The gradient of ``L2Normalization``."""


@backward_l2_normalization.infer
def backward_l2_normalization_infer(g, output, norm):
    return g


@backward_l2_normalization.kernel()
def backward_l2_normalization_xp(xp, g, output, norm, *, mode):
    g, y = wide(g), wide(output)
    dx = g * y
    xp.multiply(y, -xp.sum(dx, axis=_length_axes(mode, y.ndim), keepdims=True), out=dx)
    dx += g
    dx /= norm
    return dx


@backward_l2_normalization.grad
def backward_l2_normalization_grad(h, ins, outs, *, mode):
    g, y, norm = ins

    def total(value: Any) -> Any:
        return ops.sum(value, keepdims=True, **_SUMMED[mode])

    return (ops._backward_L2Normalization(h, y, norm, mode=mode), (h * total(g * y) + g * total(h * y)) / -norm,
            total(h * outs[0]) / -norm)


# -------------------------------------------------------------------------------------------------- LRN


def _window(xp: Any, x: Any, nsize: int, out: Any = None) -> Any:
    """The sum of each channel and its neighbours, as many on either side as make ``nsize`` in all."""
    reach = min((nsize - 1) // 2, x.shape[1] - 1)
    total = x.copy()
    for distance in range(1, reach + 1):
        total[:, distance:] += x[:, :-distance]
        total[:, :-distance] += x[:, distance:]
    return total


@declare(name="LRN", outputs=("output", "tmp_norm"), visible=lambda: 1)
def lrn(data, *, alpha: float = 1e-4, beta: float = 0.75, knorm: float = 2.0, nsize: int):
    """``data`` divided by ``(knorm + alpha / nsize * s) ** beta``, s the sum of squares over neighbouring channels.

    The window has as many channels on either side; an even ``nsize`` reaches as far as the odd number below it.

    A. Krizhevsky, I. Sutskever, G. E. Hinton, ImageNet Classification with Deep Convolutional Neural Networks, 2012,
    section 3.3.
    """


@lrn.infer
def lrn_infer(data, *, nsize):
    if len(data) < 2:
        raise ShapeError(f"data: expected at least 2 axes (samples, channels, ...), got shape {show(data)}")
    if nsize < 1:
        raise AttrError(f"nsize={nsize}: expected a positive number of channels")
    return [data, data]


@lrn.types
def lrn_types(ins, outs):
    one = floating([*ins, *outs])
    return [one], [one, one]


@lrn.kernel()
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


@declare(name="_LRN_window")
def lrn_window(data, *, nsize: int):
    """The sum of each channel and its neighbours, ``nsize`` in all."""


@lrn_window.kernel()
def lrn_window_xp(xp, data, *, nsize):
    return _window(xp, data, nsize)


@lrn_window.grad
def lrn_window_grad(g, ins, outs, *, nsize):
    return ops._LRN_window(g, nsize=nsize)
