"""Rows of convolutions, pooling, normalization and what else stands in networks as a layer."""

from __future__ import annotations

import functools
import io
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.core.mode import MODE
from opreg.core.registry import ops
from opreg.core.spec import ANY, is_floating, known
from opreg.errors import ArgumentError, AttrError, ShapeError

from ..graph import Node
from ..rows import Given, Host, row
from .shapes import along, numbers, padded, reshaped

__all__ = ["window_pads"]


def window_pads(node: Node, x: Any, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
                auto_pad: str, pads: Any) -> tuple[list[int], list[int]]:
    """Widths before and behind each of the last axes, which the windows slide along."""
    count = len(kernel)
    if auto_pad in ("NOTSET", ""):
        widths = list(pads) if pads else [0] * 2 * count
        if len(widths) != 2 * count:
            raise ShapeError(f"{len(widths)} pads for {count} axes")
        return widths[:count], widths[count:]
    if auto_pad == "VALID":
        return [0] * count, [0] * count
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise AttrError(f"auto_pad={auto_pad!r}: expected NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    before, behind = [], []
    lengths = (1,) * count if all(each == 1 for each in strides) else node.shape(x)[-count:]
    for length, size, stride, dilation in zip(lengths, kernel, strides, dilations):
        total = max((-(-length // stride) - 1) * stride + (size - 1) * dilation + 1 - length, 0)
        small, large = total // 2, total - total // 2
        before.append(small if auto_pad == "SAME_UPPER" else large)
        behind.append(large if auto_pad == "SAME_UPPER" else small)
    return before, behind


def _all_axes(node: Node, x: Any, before: Sequence[int], behind: Sequence[int]) -> tuple[int, ...]:
    """Pads of the last axes as those of all axes."""
    first = (0,) * (node.rank(x) - len(before))
    return (*first, *before, *first, *behind)


@row("Conv")
def conv(node: Node, x: Any, weight: Any, bias: Any = None, *, auto_pad: str = "NOTSET", dilations: Any = None,
         group: int = 1, kernel_shape: Any = None, pads: Any = None, strides: Any = None) -> Any:
    shape = node.shape(weight)
    kernel = shape[2:]
    strides, dilations = strides or [1] * len(kernel), dilations or [1] * len(kernel)
    before, behind = window_pads(node, x, kernel, strides, dilations, auto_pad, pads)
    if before != behind:
        x = padded(node, x, _all_axes(node, x, before, behind), 0, "constant")
        before = [0] * len(kernel)
    inputs = [x, weight] if bias is None else [x, weight, bias]
    return ops.Convolution(*inputs, kernel=tuple(kernel), stride=tuple(strides), dilate=tuple(dilations),
                           pad=tuple(before), num_filter=shape[0], num_group=group, no_bias=bias is None)


@row("ConvTranspose")
def conv_transpose(node: Node, x: Any, weight: Any, bias: Any = None, *, auto_pad: str = "NOTSET",
                   dilations: Any = None, group: int = 1, kernel_shape: Any = None, output_padding: Any = None,
                   output_shape: Any = None, pads: Any = None, strides: Any = None) -> Any:
    shape = node.shape(weight)
    kernel = shape[2:]
    count = len(kernel)
    strides, dilations = strides or [1] * count, dilations or [1] * count
    extra = list(output_padding or [0] * count)
    result = ops.Deconvolution(x, weight, kernel=tuple(kernel), stride=tuple(strides), dilate=tuple(dilations),
                               pad=(0,) * count, num_filter=shape[1] * group, num_group=group, no_bias=True)
    before, behind = [0] * count, [0] * count
    if output_shape is not None or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        full, given = node.shape(result)[2:], node.shape(x)[2:]
        wanted = list(output_shape)[-count:] if output_shape is not None else [
            length * stride for length, stride in zip(given, strides)]
        for i in range(count):
            total = full[i] + extra[i] - wanted[i]
            small, large = total // 2, total - total // 2
            before[i], behind[i] = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    elif pads:
        before, behind = list(pads[:count]), list(pads[count:])
    behind = [cut - more for cut, more in zip(behind, extra)]
    if any(before) or any(behind):
        result = padded(node, result, _all_axes(node, result, [-cut for cut in before], [-cut for cut in behind]), 0,
                        "constant")
    if bias is not None:
        result = ops.broadcast_add(result, ops._np_reshape(bias, newshape=(1, -1, *[1] * count)))
    return result


@row("DeformConv")
def deform_conv(node: Node, x: Any, weight: Any, offset: Any, bias: Any = None, mask: Any = None, *,
                dilations: Any = None, group: int = 1, kernel_shape: Any = None, offset_group: int = 1,
                pads: Any = None, strides: Any = None) -> Any:
    shape = node.shape(weight)
    count = len(shape) - 2
    strides, dilations = strides or [1] * count, dilations or [1] * count
    before, behind = window_pads(node, x, shape[2:], strides, dilations, "NOTSET", pads)
    if before != behind:
        raise ArgumentError("DeformConv: pads before and behind differ")
    given = [x, offset] + ([] if mask is None else [mask]) + [weight] + ([] if bias is None else [bias])
    op = ops._contrib_DeformableConvolution if mask is None else ops._contrib_ModulatedDeformableConvolution
    return op(*given, kernel=shape[2:], stride=tuple(strides), dilate=tuple(dilations), pad=tuple(before),
              num_filter=shape[0], num_group=group, num_deformable_group=offset_group, no_bias=bias is None)


# ----------------------------------------------------------------------------------------------------- pooling


class _Windows:
    """Windows over the last axes of an array: for each the places that its windows read, on the padded axis."""

    def __init__(self, node: Node, x: Any, kernel: Sequence[int], strides: Any, dilations: Any, auto_pad: str,
                 pads: Any, ceil_mode: int):
        count = len(kernel)
        self.kernel, self.strides, self.dilations = kernel, strides or [1] * count, dilations or [1] * count
        self.before, self.behind = window_pads(node, x, kernel, self.strides, self.dilations, auto_pad, pads)
        lengths = node.lengths(x)[-count:]
        self.lengths = lengths if known(lengths) else node.shape(x)[-count:]
        self.places: list[np.ndarray] = []
        for i in range(count):
            span = (kernel[i] - 1) * self.dilations[i] + 1
            outs = _places(self.lengths[i], span, self.strides[i], self.before[i], self.behind[i], ceil_mode)
            self.places.append(np.arange(outs)[:, None] * self.strides[i] + np.arange(kernel[i]) * self.dilations[i])

    def of(self, node: Node, x: Any, fill: Any) -> Any:
        """All windows: outputs along each axis, then places within the window along each axis."""
        count, rank = len(self.kernel), node.rank(x)
        most = [int(place.max(initial=0)) + 1 for place in self.places]
        behind = [max(end - length - before, 0) for end, length, before in zip(most, self.lengths, self.before)]
        x = padded(node, x, _all_axes(node, x, self.before, behind), fill, "constant")
        for i in range(count):
            x = ops.take(x, node.lift(self.places[i].astype(np.int64)), axis=rank - count + 2 * i)
        first = list(range(rank - count))
        outer = [rank - count + 2 * i for i in range(count)]
        x = ops.transpose(x, axes=(*first, *outer, *[axis + 1 for axis in outer]))
        shape = node.shape(x)
        return ops._np_reshape(x, newshape=(*shape[:rank], math.prod(self.kernel)))

    def counts(self, include: int) -> np.ndarray:
        """How many numbers each window averages."""
        count = np.ones((), np.int64)
        for place, length, before, behind in zip(self.places, self.lengths, self.before, self.behind):
            low, high = (0, length + before + behind) if include else (before, before + length)
            count = count[..., None] * ((place >= low) & (place < high)).sum(1)
        return count

    def flat(self, column_major: int) -> np.ndarray:
        """Places of window elements in the array with all of its last axes laid flat."""
        count = len(self.kernel)
        order = range(count)[::-1] if not column_major else range(count)
        strides, step = [0] * count, 1
        for i in order:
            strides[i], step = step, step * self.lengths[i]
        total = np.zeros((1,) * (2 * count), np.int64)
        for i, place in enumerate(self.places):
            shape = [1] * (2 * count)
            shape[i], shape[count + i] = place.shape
            total = total + ((place - self.before[i]) * strides[i]).reshape(shape)
        return total.reshape(*[len(place) for place in self.places], -1)


def _pooled(node: Node, x: Any, kind: str, kernel: Sequence[int], strides: Any, dilations: Any, auto_pad: str,
            pads: Any, ceil_mode: int, include: bool = False) -> Any:
    """Maxima or averages of windows by our own pooling; None where it has not got them.

    Own pooling pads as much behind as before. Where that makes other windows, or other averages, the array is padded
    first; windows that are too many are cut off.
    """
    count = len(kernel)
    if count > 3 or any(each != 1 for each in dilations or ()):
        return None
    strides = strides or [1] * count
    before, behind = window_pads(node, x, kernel, strides, [1] * count, auto_pad, pads)
    lengths = node.lengths(x)[-count:] if ceil_mode or before != behind else (ANY,) * count
    wanted = [_places(*each, ceil_mode) for each in zip(lengths, kernel, strides, before, behind)]
    if ceil_mode and any(length is ANY and stride + pad > size
                         for length, stride, pad, size in zip(lengths, strides, behind, kernel)):
        return None  # the last window may begin in the padding behind
    full = bool(ceil_mode)
    if before != behind:
        full = full or any(places is None or places > (length + 2 * pad - size) // stride + 1
                           for places, length, pad, size, stride in zip(wanted, lengths, before, kernel, strides))
    framed = any(map(operator.ge, before, kernel)) or (before != behind and (include or any(
        places is None or length + 2 * pad < size or places > -(-(length + 2 * pad - size) // stride) + 1
        for places, length, pad, size, stride in zip(wanted, lengths, before, kernel, strides))))
    if framed:
        if kind == "avg" and not include:
            return None
        x = padded(node, x, _all_axes(node, x, before, behind), -np.inf if kind == "max" else 0, "constant")
        before, full = [0] * count, bool(ceil_mode)
    result = ops.Pooling(x, kernel=tuple(kernel), pool_type=kind, stride=tuple(strides), pad=tuple(before),
                         count_include_pad=include if kind == "avg" else None,
                         pooling_convention="full" if full else "valid")
    for axis, places in enumerate(wanted, -count):
        if places is not None:
            got = node.lengths(result)[axis]
            if got != places:
                result = ops.slice_axis(result, axis=axis, begin=0, end=places)
    return result


def _places(length: Any, kernel: int, stride: int, before: int, behind: int, ceil_mode: int) -> Any:
    """The count of windows along an axis; None along one of an open length."""
    if length is ANY:
        return None
    room = length + before + behind - kernel
    places = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (places - 1) * stride >= length + before:
        places -= 1  # a window would begin in the padding behind
    if places < 0:
        raise ShapeError(f"a window of {kernel} on an axis of length {length}")
    return places


@row("MaxPool")
def max_pool(node: Node, x: Any, *, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0,
             dilations: Any = None, pads: Any = None, storage_order: int = 0, strides: Any = None) -> Any:
    dtype, count = node.dtype(x), len(kernel_shape)
    indices = len(node.outputs) > 1
    if not indices and is_floating(dtype):
        found = _pooled(node, x, "max", kernel_shape, strides, dilations, auto_pad, pads, ceil_mode)
        if found is not None:
            return found
    windows = _Windows(node, x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode)
    least = -np.inf if is_floating(dtype) else np.iinfo(dtype).min
    parts = windows.of(node, x, least)
    result = ops._np_max(parts, axis=-1)
    if not indices:
        return result
    flat = windows.flat(storage_order)
    shape = node.shape(result)
    offsets = np.arange(math.prod(shape[:-count]), dtype=np.int64) * math.prod(windows.lengths)
    begins = np.arange(flat[..., 0].size, dtype=np.int64).reshape(shape[-count:]) * flat.shape[-1]
    chosen = ops.broadcast_add(node.cast(ops._npi_argmax(parts, axis=-1), np.int64), node.lift(begins.reshape(
        *[1] * (len(shape) - count), *begins.shape)))
    places = ops.take(node.lift(flat.reshape(-1)), chosen, axis=0)
    return result, ops.broadcast_add(places, node.lift(offsets.reshape(*shape[:-count], *[1] * count)))


@row("AveragePool")
def average_pool(node: Node, x: Any, *, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0,
                 count_include_pad: int = 0, dilations: Any = None, pads: Any = None, strides: Any = None) -> Any:
    words = kernel_shape, strides, dilations, auto_pad, pads, ceil_mode
    found = _pooled(node, x, "avg", *words, include=bool(count_include_pad))
    if found is not None:
        return found
    windows = _Windows(node, x, *words)
    found = _pooled(node, x, "avg", *words, include=True)
    if found is not None:
        rate = windows.counts(1) / windows.counts(0)
        return ops.broadcast_mul(found, node.lift(rate.astype(node.dtype(x)).reshape((1,) * (node.rank(x) - rate.ndim)
                                                                                    + rate.shape)))
    total = ops._np_sum(windows.of(node, x, 0), axis=-1)
    return ops.broadcast_div(total, node.lift(windows.counts(count_include_pad).astype(node.dtype(x))))


@row("LpPool")
def lp_pool(node: Node, x: Any, *, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0,
            dilations: Any = None, p: float = 2, pads: Any = None, strides: Any = None) -> Any:
    windows = _Windows(node, x, kernel_shape, strides, dilations, auto_pad, pads, ceil_mode)
    return _root(ops._np_sum(ops.abs(windows.of(node, x, 0)) ** float(p), axis=-1), p)


def _root(total: Any, p: float) -> Any:
    return total if p == 1 else ops.sqrt(total) if p == 2 else total ** (1.0 / p)


def _spatial(node: Node, x: Any) -> tuple[int, ...]:
    return tuple(range(2, node.rank(x)))


@row("GlobalAveragePool")
def global_average_pool(node: Node, x: Any) -> Any:
    return ops._npi_mean(x, axis=_spatial(node, x), keepdims=True)


@row("GlobalMaxPool")
def global_max_pool(node: Node, x: Any) -> Any:
    return ops._np_max(x, axis=_spatial(node, x), keepdims=True)


@row("GlobalLpPool")
def global_lp_pool(node: Node, x: Any, *, p: float = 2) -> Any:
    return _root(ops._np_sum(ops.abs(x) ** float(p), axis=_spatial(node, x), keepdims=True), p)


@row("MaxUnpool")
def max_unpool(node: Node, x: Any, indices: Given, output_shape: Host = None, *, kernel_shape: Any, pads: Any = None,
               strides: Any = None) -> Any:
    count, shape = len(kernel_shape), node.shape(x)
    strides, pads = strides or [1] * count, pads or [0] * 2 * count
    inner = [(length - 1) * stride + size - pads[i] - pads[i + count]
             for i, (length, stride, size) in enumerate(zip(shape[2:], strides, kernel_shape))]
    own = (*shape[:2], *inner)
    if isinstance(indices, np.ndarray) and indices.size and not 0 <= indices.min() <= indices.max() < math.prod(own):
        raise ShapeError(f"MaxUnpool: an index is outside of {own}")
    flat = ops.scatter_nd(ops._np_reshape(x, newshape=(-1,)), ops._np_reshape(node.lift(indices), newshape=(1, -1)),
                          shape=(math.prod(own),))
    result = ops._np_reshape(flat, newshape=own)
    if output_shape is None:
        return result
    more = [wanted - length for wanted, length in zip(numbers(output_shape), own)]
    return padded(node, result, [0] * len(more) + more, 0, "constant")


# ----------------------------------------------------------------------------------------------- normalization


@row("BatchNormalization", states=(3, 4))
def batch_norm(node: Node, x: Any, scale: Any, bias: Any, mean: Any, var: Any, *, epsilon: float = 1e-5,
               momentum: float = 0.9, spatial: int = 1, is_test: int = 0, training_mode: int = 0) -> Any:
    dtype = node.dtype(x)
    if training_mode:
        axes = tuple(i for i in range(node.rank(x)) if i != 1)
        wide = [1, -1, *[1] * (node.rank(x) - 2)]
        own = ops._npi_mean(x, axis=axes, keepdims=True)
        square = ops._npi_mean(ops.square(ops.broadcast_sub(x, own)), axis=axes, keepdims=True)
        scaled = ops.broadcast_mul(ops.broadcast_div(ops.broadcast_sub(x, own), ops.sqrt(square + epsilon)),
                                   ops._np_reshape(scale, newshape=tuple(wide)))
        result = ops.broadcast_add(scaled, ops._np_reshape(bias, newshape=tuple(wide)))
        flat_mean, flat_var = ops._np_reshape(own, newshape=(-1,)), ops._np_reshape(square, newshape=(-1,))
        return (result, mean * momentum + flat_mean * (1 - momentum), var * momentum + flat_var * (1 - momentum))
    if node.rank(x) < 2:
        return (x - mean) / ops.sqrt(var + epsilon) * scale + bias
    given = [node.cast(each, np.float32) if dtype == np.float16 else each for each in (scale, bias, mean, var)]
    return ops.BatchNorm(x, *given, eps=epsilon, momentum=momentum, fix_gamma=False)


@row("InstanceNormalization")
def instance_norm(node: Node, x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5) -> Any:
    axes = _spatial(node, x)
    centred = ops.broadcast_sub(x, ops._npi_mean(x, axis=axes, keepdims=True))
    var = ops._npi_mean(ops.square(centred), axis=axes, keepdims=True)
    wide = (1, -1, *[1] * len(axes))
    return ops.broadcast_add(ops.broadcast_mul(ops.broadcast_div(centred, ops.sqrt(var + epsilon)),
                                               ops._np_reshape(scale, newshape=wide)),
                             ops._np_reshape(bias, newshape=wide))


@row("LayerNormalization")
def layer_norm(node: Node, x: Any, scale: Any, bias: Any = None, *, axis: int = -1, epsilon: float = 1e-5,
               stash_type: int = 1) -> Any:
    axis, rank = node.axis(axis, x), node.rank(x)
    dtype = node.dtype(x)
    if axis == rank - 1 and bias is not None and len(node.outputs) == 1 and dtype != np.float16 and known(
            node.lengths(scale)) and node.rank(scale) == 1:
        return ops.LayerNorm(x, scale, bias, axis=-1, eps=epsilon)
    axes = tuple(range(axis, rank))
    wide = node.cast(x, np.float32) if stash_type == 1 else x
    mean = ops._npi_mean(wide, axis=axes, keepdims=True)
    centred = ops.broadcast_sub(wide, mean)
    inverse = 1.0 / ops.sqrt(ops._npi_mean(ops.square(centred), axis=axes, keepdims=True) + epsilon)
    result = ops.broadcast_mul(node.cast(ops.broadcast_mul(centred, inverse), dtype), scale)
    return result if bias is None and len(node.outputs) == 1 else (
        result if bias is None else ops.broadcast_add(result, bias), mean, inverse)


@row("LpNormalization")
def lp_normalization(node: Node, x: Any, *, axis: int = -1, p: int = 2) -> Any:
    axis = node.axis(axis, x)
    size = _root(ops._np_sum(ops.abs(x) ** float(p), axis=axis, keepdims=True), p)
    size = ops._npi_where(ops._npi_equal_scalar(size, scalar=0), ops.ones_like(size), size)
    return ops.broadcast_div(x, size)


@row("LRN")
def lrn(node: Node, x: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Any:
    if size % 2 and node.rank(x) == 4:
        return ops.LRN(x, alpha=alpha, beta=beta, knorm=bias, nsize=size)
    before, channels = (size - 1) // 2, node.shape(x)[1]
    pads = [0] * 2 * node.rank(x)
    pads[1], pads[node.rank(x) + 1] = before, size - 1 - before
    squares = padded(node, ops.square(x), pads, 0, "constant")
    total = ops.slice_axis(squares, axis=1, begin=0, end=channels)
    for i in range(1, size):
        total = total + ops.slice_axis(squares, axis=1, begin=i, end=i + channels)
    return x / (total * (alpha / size) + bias) ** beta


@row("MeanVarianceNormalization")
def mean_variance(node: Node, x: Any, *, axes: Any = (0, 2, 3)) -> Any:
    centred = ops.broadcast_sub(x, ops._npi_mean(x, axis=tuple(axes), keepdims=True))
    var = ops._npi_mean(ops.square(centred), axis=tuple(axes), keepdims=True)
    return ops.broadcast_div(centred, ops.sqrt(var) + 1e-9)


# --------------------------------------------------------------------------------------- softmax and its kin


def _coerced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Until opset 13 all axes from one on were one."""

    def apply(node: Node, x: Any, *, axis: int = 1) -> Any:
        lengths = node.lengths(x)
        axis = axis % len(lengths) if lengths else 0
        if axis == len(lengths) - 1:
            return function(node, x, -1)
        shape = node.shape(x)
        flat = reshaped(node, x, (math.prod(shape[:axis]), math.prod(shape[axis:])), True)
        return reshaped(node, function(node, flat, -1), shape, True)

    return apply


def _hardmax(node: Node, x: Any, axis: int) -> Any:
    axis = node.axis(axis, x)
    first = ops._npi_argmax(x, axis=axis, keepdims=True)
    shape = [1] * node.rank(x)
    shape[axis] = node.shape(x)[axis]
    order = node.lift(np.arange(shape[axis], dtype=node.dtype(first)).reshape(shape))
    return node.cast(ops._npi_equal(first, order), node.dtype(x))


def _axis(name: str, function: Callable[..., Any]) -> None:
    def apply(node: Node, x: Any, *, axis: int = -1) -> Any:
        return function(node, x, axis)

    row(name)(_coerced(function))
    row(name, since=13)(apply)


_axis("Softmax", lambda node, x, axis: ops.softmax(x, axis=axis))
_axis("LogSoftmax", lambda node, x, axis: ops.log_softmax(x, axis=axis))
_axis("Hardmax", _hardmax)


@row("Dropout")
def dropout_by_attribute(node: Node, x: Any, *, ratio: float = 0.5, is_test: int = 0) -> Any:
    result = ops.Dropout(x, p=ratio)
    return result if len(node.outputs) == 1 else (result, ops._npi_equal(x, x))


@row("Dropout", since=12, draws=True)
def dropout(node: Node, x: Any, ratio: Host = None, training: Host = None, *, seed: int | None = None) -> Any:
    part = 0.5 if ratio is None else float(ratio.reshape(-1)[0])
    if training is not None and bool(training.reshape(-1)[0]) and part:
        if seed is None:
            factors = ops.Dropout(ops.ones_like(x), p=part, mode="always")
        else:  # the same in each run
            kept = np.random.RandomState(seed).uniform(0, 1, node.shape(x)) >= part
            factors = node.lift((kept / (1 - part)).astype(node.dtype(x)))
        result = x * factors
        return result if len(node.outputs) == 1 else (result, ops._npi_not_equal_scalar(factors, scalar=0))
    result = ops.Dropout(x, p=part) if training is None and part and MODE.recording else x
    return result if len(node.outputs) == 1 else (result, node.lift(np.ones(node.shape(x), bool)))


# ------------------------------------------------------------------------------------------------------ images


@row("Col2Im")
def col2im(node: Node, x: Any, image_shape: Host, block_shape: Host, *, dilations: Any = None, pads: Any = None,
           strides: Any = None) -> Any:
    image, block = numbers(image_shape), numbers(block_shape)
    count, shape = len(image), node.shape(x)
    strides, dilations, pads = strides or [1] * count, dilations or [1] * count, pads or [0] * 2 * count
    full = [length + pads[i] + pads[count + i] for i, length in enumerate(image)]
    outs = [(full[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(count)]
    channels = shape[1] // math.prod(block)
    places = []
    for i in range(count):
        grid = np.arange(outs[i]) * strides[i] + np.arange(block[i])[:, None] * dilations[i]
        wide = [1] * (2 * count)
        wide[i], wide[count + i] = grid.shape
        places.append(np.broadcast_to(grid.reshape(wide), (*block, *outs)).reshape(-1))
    columns = ops._np_reshape(x, newshape=(shape[0], channels, len(places[0])))
    moved = ops.transpose(columns, axes=(2, 0, 1))
    canvas = node.lift(np.zeros((*full, shape[0], channels), node.dtype(x)))
    canvas = ops._backward_gather_nd(moved, node.lift(np.stack(places).astype(np.int64)), canvas)
    canvas = ops.transpose(canvas, axes=(count, count + 1, *range(count)))
    return padded(node, canvas, _all_axes(node, canvas, [-each for each in pads[:count]],
                                          [-each for each in pads[count:]]), 0, "constant")


_NEAREST: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5), "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor, "ceil": np.ceil, "simple": np.floor}


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _weights(at: np.ndarray, length: int, scale: float, mode: str, antialias: int, a: float, exclude: int
             ) -> np.ndarray:
    """Weights of the inputs along an axis: a row an output."""
    shrink = min(scale, 1.0) if antialias else 1.0
    support = (2 if mode == "cubic" else 1) / shrink
    first = np.floor(at - support).astype(int)
    reach = np.arange(math.ceil(2 * support) + 2)
    places = first[:, None] + reach
    distance = (places - at[:, None]) * shrink
    weight = _cubic(distance, a) if mode == "cubic" else np.maximum(1 - np.abs(distance), 0)
    if exclude:
        weight = np.where((places >= 0) & (places < length), weight, 0)
    weight = weight / np.maximum(np.abs(weight.sum(1, keepdims=True)), 1e-30) * np.sign(weight.sum(1, keepdims=True))
    matrix = np.zeros((len(at), length))
    np.add.at(matrix, (np.arange(len(at))[:, None], np.clip(places, 0, length - 1)), weight)
    return matrix


def _positions(outs: int, length: int, scale: float, how: str, start: float, end: float) -> np.ndarray:
    """Positions of outputs on the axis of the input."""
    x = np.arange(outs, dtype=np.float64)
    if how == "half_pixel":
        return (x + 0.5) / scale - 0.5
    if how == "half_pixel_symmetric":
        middle = (1 - outs / (scale * length)) * length / 2
        return middle + (x + 0.5) / scale - 0.5
    if how == "pytorch_half_pixel":
        return (x + 0.5) / scale - 0.5 if outs > 1 else x * 0
    if how == "align_corners":
        return x * (length - 1) / (scale * length - 1) if scale * length != 1 else x * 0
    if how == "asymmetric":
        return x / scale
    if how == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if how == "tf_crop_and_resize":
        if outs > 1:
            return start * (length - 1) + x * (end - start) * (length - 1) / (outs - 1)
        return np.full(1, 0.5 * (start + end) * (length - 1))
    raise AttrError(f"coordinate_transformation_mode={how!r} is not known")


@row("Upsample")
def upsample_by_attribute(node: Node, x: Any, scale: Host = None, *, scales: Any = None, mode: str = "nearest") -> Any:
    factors = [float(each) for each in (scales if scale is None else scale)]
    return _resized(node, x, list(range(len(factors))), None, factors, "linear" if "linear" in mode else mode,
                    how="asymmetric", rounding="floor")


@row("Resize")
def resize_10(node: Node, x: Any, scales: Host, *, mode: str = "nearest") -> Any:
    return _resized(node, x, list(range(len(scales))), None, [float(each) for each in scales], mode, how="asymmetric",
                    rounding="floor")


@row("Resize", since=11)
def resize(node: Node, x: Any, roi: Host = None, scales: Host = None, sizes: Host = None, *, antialias: int = 0,
           axes: Any = None, coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75,
           exclude_outside: int = 0, extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch",
           mode: str = "nearest", nearest_mode: str = "round_prefer_floor") -> Any:
    places = list(range(node.rank(x))) if axes is None else [node.axis(axis, x) for axis in axes]
    factors = [float(each) for each in scales] if scales is not None and scales.size else None
    wanted = [int(each) for each in sizes] if sizes is not None and sizes.size else None
    if wanted is not None:
        lengths = node.shape(x)
        factors = [each / lengths[axis] for each, axis in zip(wanted, places)]
        if keep_aspect_ratio_policy != "stretch":
            one = (min if keep_aspect_ratio_policy == "not_larger" else max)(factors)
            factors = [one] * len(places)
            wanted = [math.floor(one * lengths[axis] + 0.5) for axis in places]
    if factors is None:
        raise ArgumentError("Resize: neither scales nor sizes are given")
    return _resized(node, x, places, wanted, factors, mode, coordinate_transformation_mode, nearest_mode,
                    [float(each) for each in roi] if roi is not None and roi.size else None, antialias, cubic_coeff_a,
                    exclude_outside, extrapolation_value)


def _resized(node: Node, x: Any, places: Sequence[int], sizes: Any, scales: Sequence[float], mode: str, how: str,
             rounding: str, roi: Any = None, antialias: int = 0, a: float = -0.75, exclude: int = 0,
             outside: float = 0.0) -> Any:
    """An array with axes in other lengths, whose numbers lie between those of before."""
    dtype, result, missing = node.dtype(x), x, None
    for i, axis in enumerate(places):
        if scales[i] == 1 and (sizes is None or node.lengths(x)[axis] == sizes[i]) and how != "tf_crop_and_resize":
            continue
        length = node.length(x, axis)
        outs = math.floor(length * scales[i]) if sizes is None else sizes[i]
        start, end = (roi[i], roi[len(places) + i]) if roi is not None else (0.0, 1.0)
        at = _positions(outs, length, scales[i], how, start, end)
        if mode == "nearest":
            near = np.clip(_NEAREST[rounding](at), 0, length - 1).astype(np.int64)
            result = ops.take(result, node.lift(near), axis=axis)
        else:
            matrix = _weights(at, length, scales[i], mode, antialias, a, exclude).astype(
                dtype if is_floating(dtype) else np.float32)
            moved = ops.swapaxes(node.cast(result, matrix.dtype), dim1=axis, dim2=node.rank(x) - 1)
            result = ops.swapaxes(ops._npi_matmul(moved, node.lift(np.ascontiguousarray(matrix.T))), dim1=axis,
                                  dim2=node.rank(x) - 1)
        if how == "tf_crop_and_resize":
            shape = [1] * node.rank(x)
            shape[axis] = outs
            beyond = ((at < 0) | (at > length - 1)).reshape(shape)
            missing = beyond if missing is None else missing | beyond
    if missing is not None and missing.any():
        whole = node.lift(np.broadcast_to(missing, node.shape(result)).copy())
        result = ops._npi_where(whole, ops.zeros_like(result) + outside, result)
    return node.cast(result, dtype)


@row("GridSample")
def grid_sample(node: Node, x: Any, grid: Any, *, align_corners: int = 0, mode: str = "linear",
                padding_mode: str = "zeros") -> Any:
    shape, places = node.shape(x), node.shape(grid)[1:-1]
    lengths, count = shape[2:], len(shape) - 2
    many = math.prod(places)
    flat = ops._np_reshape(x, newshape=(*shape[:2], math.prod(lengths)))
    at = []
    for i, length in enumerate(lengths):
        g = ops.slice_axis(grid, axis=-1, begin=count - 1 - i, end=count - i)
        g = ops._np_reshape(g, newshape=(shape[0], 1, many))
        at.append((g + 1.0) * ((length - 1) / 2) if align_corners else ((g + 1.0) * length - 1.0) / 2)
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    limits = [(0.0, length - 1.0) if align_corners else (-0.5, length - 0.5) for length in lengths]
    if mode != "cubic" and padding_mode != "zeros":
        at = [_inside(each, length, limit, padding_mode) for each, length, limit in zip(at, lengths, limits)]
    taps: list[list[tuple[Any, Any]]] = []  # for each axis pairs of place and weight
    for each in at:
        if mode == "nearest":
            taps.append([(ops._npi_around(each), None)])
            continue
        base = ops.BlockGrad(ops.floor(each))
        rest = each - base
        if mode == "linear":
            taps.append([(base, 1.0 - rest), (base + 1.0, rest)])
        else:
            taps.append([(base + float(k), _cubic_weight(rest - float(k))) for k in (-1, 0, 1, 2)])
    total = None
    for corner in itertools.product(*taps):
        index: Any = None
        weight: Any = None
        for (place, share), length, limit in zip(corner, lengths, limits):
            if padding_mode == "zeros":
                within = ops._npi_logical_and(ops._npi_greater_equal_scalar(place, scalar=0.0),
                                              ops._npi_less_equal_scalar(place, scalar=length - 1.0))
                mask = node.cast(within, node.dtype(x))
                share = mask if share is None else share * mask
            else:
                place = _inside(place, length, limit, padding_mode)
            place = node.cast(ops.clip(ops._npi_around(place), a_min=0, a_max=length - 1), np.int64)
            index = place if index is None else index * length + place
            weight = share if weight is None else weight if share is None else weight * share
        picked = along(node, flat, ops._np_broadcast_to(index, shape=(*shape[:2], many)), 2)
        picked = picked if weight is None else ops.broadcast_mul(picked, weight)
        total = picked if total is None else total + picked
    return ops._np_reshape(total, newshape=(*shape[:2], *places))


def _cubic_weight(distance: Any, a: float = -0.75) -> Any:
    d = ops.abs(distance)
    near = ((d * (a + 2)) - (a + 3)) * d * d + 1.0
    far = ((d * a - 5 * a) * d + 8 * a) * d - 4 * a
    return ops._npi_where(ops._npi_less_equal_scalar(d, scalar=1.0), near, far)


def _inside(place: Any, length: int, limit: tuple[float, float], how: str) -> Any:
    """Places brought into an axis: to its ends, or mirrored at them."""
    if how == "border":
        return ops.clip(place, a_min=0, a_max=length - 1)
    low, high = limit
    span = high - low
    if span == 0:
        return ops.zeros_like(place)
    shifted = ops.abs(place - low)
    rest = shifted - ops.floor(shifted / (2 * span)) * (2 * span)
    mirrored = ops._npi_where(ops._npi_greater_scalar(rest, scalar=span), 2 * span - rest, rest) + low
    return ops.clip(mirrored, a_min=0, a_max=length - 1)


@row("RoiAlign")
def roi_align(node: Node, x: Any, rois: Given, batch: Given, *, coordinate_transformation_mode: str | None = None,
              mode: str = "avg", output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
              spatial_scale: float = 1.0) -> Any:
    how = coordinate_transformation_mode or ("half_pixel" if node.opset >= 16 else "output_half_pixel")
    if mode == "avg":
        regions = node.lift(rois)
        image = ops.expand_dims(node.cast(node.lift(batch), node.dtype(regions)), axis=1)
        return ops._contrib_ROIAlign(x, ops.Concat(image, regions, dim=1, num_args=2),
                                     pooled_size=(output_height, output_width), spatial_scale=spatial_scale,
                                     sample_ratio=sampling_ratio or -1, aligned=how == "half_pixel")
    return _largest_of_regions(node, x, node.host(rois), node.host(batch), how == "half_pixel", output_height,
                               output_width, sampling_ratio, spatial_scale)


def _largest_of_regions(node: Node, x: Any, rois: np.ndarray, batch: np.ndarray, half_pixel: bool, output_height: int,
                        output_width: int, sampling_ratio: int, spatial_scale: float) -> Any:
    """The largest shares of bilinear samples in the cells of regions."""
    channels, height, width = node.shape(x)[1:]
    found = []
    for number, (x1, y1, x2, y2) in enumerate(rois * spatial_scale - (0.5 if half_pixel else 0.0)):
        tall, long = y2 - y1, x2 - x1
        if not half_pixel:
            tall, long = max(tall, 1.0), max(long, 1.0)
        high, wide = tall / output_height, long / output_width
        rows = sampling_ratio or math.ceil(high)
        columns = sampling_ratio or math.ceil(wide)
        ys = y1 + (np.arange(output_height)[:, None] + (np.arange(rows) + 0.5) / max(rows, 1)) * high
        xs = x1 + (np.arange(output_width)[:, None] + (np.arange(columns) + 0.5) / max(columns, 1)) * wide
        image = ops.slice_axis(x, axis=0, begin=int(batch[number]), end=int(batch[number]) + 1)
        image = ops._np_reshape(image, newshape=(channels, height * width))
        shares = [ops.broadcast_mul(ops.take(image, node.lift(places), axis=1),
                                    node.lift(weights.astype(node.dtype(x))[None]))
                  for places, weights in _corners(height, width, ys.reshape(-1), xs.reshape(-1))]
        parts = ops._np_reshape(functools.reduce(ops.broadcast_maximum, shares),
                                newshape=(1, channels, output_height, rows, output_width, columns))
        found.append(ops._np_max(parts, axis=(3, 5)))
    if not found:
        return node.lift(np.zeros((0, channels, output_height, output_width), node.dtype(x)))
    return ops.Concat(*found, dim=0, num_args=len(found))


def _corners(height: int, width: int, ys: np.ndarray, xs: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Places in a flat image of the four pixels around points, and their weights."""
    inside = ((ys > -1) & (ys < height))[:, None] & ((xs > -1) & (xs < width))
    ys, xs = np.clip(ys, 0, height - 1), np.clip(xs, 0, width - 1)
    top, left = np.floor(ys).astype(np.int64), np.floor(xs).astype(np.int64)
    bottom, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    fy, fx = (ys - top)[:, None], xs - left
    return [(a[:, None] * width + b, weight * inside) for a, b, weight in (
        (top, left, (1 - fy) * (1 - fx)), (top, right, (1 - fy) * fx), (bottom, left, fy * (1 - fx)),
        (bottom, right, fy * fx))]


@row("MaxRoiPool")
def max_roi_pool(node: Node, x: Any, rois: Any, *, pooled_shape: Any, spatial_scale: float = 1.0) -> Any:
    return ops.ROIPooling(x, rois, pooled_size=tuple(pooled_shape), spatial_scale=spatial_scale)


@row("NonMaxSuppression")
def non_max_suppression(node: Node, boxes: Host, scores: Host, most: Host = None, overlap: Host = None,
                        threshold: Host = None, *, center_point_box: int = 0) -> Any:
    limit = 0 if most is None else int(most.reshape(-1)[0])
    share = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
    least = None if threshold is None else float(threshold.reshape(-1)[0])
    picked: list[tuple[int, int, int]] = []
    for batch, (own, classes) in enumerate(zip(boxes, scores)):
        if center_point_box:
            half = own[:, 2:] / 2
            low, high = own[:, :2] - half, own[:, :2] + half
        else:
            low, high = np.minimum(own[:, :2], own[:, 2:]), np.maximum(own[:, :2], own[:, 2:])
        area = np.prod(high - low, 1)
        for kind, values in enumerate(classes):
            kept: list[int] = []
            for at in np.argsort(-values, kind="stable"):
                if len(kept) >= limit or (least is not None and values[at] <= least):
                    break
                inner = np.prod(np.maximum(np.minimum(high[at], high[kept]) - np.maximum(low[at], low[kept]), 0), 1)
                union = area[at] + area[kept] - inner
                if not np.any(inner > share * union):
                    kept.append(int(at))
            picked += [(batch, kind, at) for at in kept]
    return np.array(picked, np.int64).reshape(-1, 3)


@row("ImageDecoder")
def image_decoder(node: Node, stream: Host, *, pixel_format: str = "RGB") -> Any:
    from PIL import Image

    image = Image.open(io.BytesIO(stream.tobytes()))
    if pixel_format == "Grayscale":
        return np.asarray(image.convert("L"))[..., None]
    array = np.asarray(image.convert("RGB"))
    return array[..., ::-1].copy() if pixel_format == "BGR" else array


@row("Scaler", domain="ai.onnx.ml")
def scaler(node: Node, x: Any, *, offset: Any = (0.0,), scale: Any = (1.0,)) -> Any:
    return (node.cast(x, np.float32) - node.lift(np.asarray(offset, np.float32))) * node.lift(
        np.asarray(scale, np.float32))


@row("Binarizer", domain="ai.onnx.ml")
def binarizer(node: Node, x: Any, *, threshold: float = 0.0) -> Any:
    return node.cast(ops._npi_greater_scalar(x, scalar=threshold), node.dtype(x))


@row("Normalizer", domain="ai.onnx.ml")
def normalizer(node: Node, x: Any, *, norm: str = "MAX") -> Any:
    size = {"MAX": lambda: ops._np_max(ops.abs(x), axis=-1, keepdims=True),
            "L1": lambda: ops._np_sum(ops.abs(x), axis=-1, keepdims=True),
            "L2": lambda: ops.sqrt(ops._np_sum(x * x, axis=-1, keepdims=True))}[norm]()
    return ops.broadcast_div(x, size)


@row("Imputer", domain="ai.onnx.ml")
def imputer(node: Node, x: Host, *, imputed_value_floats: Any = None, imputed_value_int64s: Any = None,
            replaced_value_float: float = 0.0, replaced_value_int64: int = 0) -> Any:
    if x.dtype.kind == "i":
        return np.where(x == replaced_value_int64, np.asarray(imputed_value_int64s, x.dtype), x)
    missing = np.isnan(x) if math.isnan(replaced_value_float) else x == replaced_value_float
    return np.where(missing, np.asarray(imputed_value_floats, x.dtype), x)


@row("FeatureVectorizer", domain="ai.onnx.ml")
def feature_vectorizer(node: Node, *values: Given, inputdimensions: Any = None) -> Any:
    lifted = [node.lift(value) for value in values]
    return ops.Concat(*lifted, dim=1, num_args=len(lifted))
