"""Rows of layers: convolutions, pooling, normalization, softmax and dropout."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.core.mode import MODE
from opreg.core.registry import ops
from opreg.core.spec import ANY, is_floating, is_known
from opreg.errors import ArgumentError, AttrError, ShapeError

from ..graph import Node
from ..rows import Given, Host, row
from .parts import padded
from .shapes import numbers, reshape_value

__all__ = ["all_axes", "conv", "layer_normalized", "window_pads"]


def window_pads(node: Node, x: Any, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
                auto_pad: str, pads: Any) -> tuple[list[int], list[int]]:
    """Padding before and after each of the last axes, along which the windows slide."""
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
    lengths = (1,) * count if all(stride == 1 for stride in strides) else node.shape(x)[-count:]
    for length, size, stride, dilation in zip(lengths, kernel, strides, dilations):
        total = max((-(-length // stride) - 1) * stride + (size - 1) * dilation + 1 - length, 0)
        small, large = total // 2, total - total // 2
        before.append(small if auto_pad == "SAME_UPPER" else large)
        behind.append(large if auto_pad == "SAME_UPPER" else small)
    return before, behind


def all_axes(node: Node, x: Any, before: Sequence[int], behind: Sequence[int]) -> tuple[int, ...]:
    """Padding of the last axes as padding of all axes."""
    first = (0,) * (node.rank(x) - len(before))
    return (*first, *before, *first, *behind)


@row("Conv")
def conv(node: Node, x: Any, weight: Any, bias: Any = None, *, auto_pad: str = "NOTSET", dilations: Any = None,
         group: int = 1, kernel_shape: Any = None, pads: Any = None, strides: Any = None) -> Any:
    """Convolution as ONNX's ``Conv``; asymmetric padding is applied first."""
    shape = node.shape(weight)
    kernel = shape[2:]
    strides, dilations = strides or [1] * len(kernel), dilations or [1] * len(kernel)
    before, behind = window_pads(node, x, kernel, strides, dilations, auto_pad, pads)
    if before != behind:
        x = padded(node, x, all_axes(node, x, before, behind), 0, "constant")
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
        full, input_lengths = node.shape(result)[2:], node.shape(x)[2:]
        target = list(output_shape)[-count:] if output_shape is not None else [
            length * stride for length, stride in zip(input_lengths, strides)]
        for i in range(count):
            total = full[i] + extra[i] - target[i]
            small, large = total // 2, total - total // 2
            before[i], behind[i] = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    elif pads:
        before, behind = list(pads[:count]), list(pads[count:])
    behind = [cut - more for cut, more in zip(behind, extra)]
    if any(before) or any(behind):
        result = padded(node, result, all_axes(node, result, [-cut for cut in before], [-cut for cut in behind]), 0,
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
        raise ArgumentError("DeformConv: the pads before and after an axis differ")
    if mask is None:  # DeformableConvolution, which has no mask, reads other values at the border
        mask = ops.ones_like(ops.slice_axis(offset, axis=1, begin=0, end=offset_group * math.prod(shape[2:])))
    operands = [x, offset, mask, weight] + ([] if bias is None else [bias])
    return ops._contrib_ModulatedDeformableConvolution(
        *operands, kernel=shape[2:], stride=tuple(strides), dilate=tuple(dilations), pad=tuple(before),
        num_filter=shape[0], num_group=group, num_deformable_group=offset_group, no_bias=bias is None)


# ----------------------------------------------------------------------------------------------------- pooling


class _Windows:
    """Windows over the last axes of an array, with the indices that they read on each padded axis."""

    def __init__(self, node: Node, x: Any, kernel: Sequence[int], strides: Any, dilations: Any, auto_pad: str,
                 pads: Any, ceil_mode: int):
        count = len(kernel)
        self.kernel, self.strides, self.dilations = kernel, strides or [1] * count, dilations or [1] * count
        self.before, self.behind = window_pads(node, x, kernel, self.strides, self.dilations, auto_pad, pads)
        lengths = node.lengths(x)[-count:]
        self.lengths = lengths if is_known(lengths) else node.shape(x)[-count:]
        self.places: list[np.ndarray] = []
        for i in range(count):
            span = (kernel[i] - 1) * self.dilations[i] + 1
            outs = _window_count(self.lengths[i], span, self.strides[i], self.before[i], self.behind[i], ceil_mode)
            self.places.append(np.arange(outs)[:, None] * self.strides[i] + np.arange(kernel[i]) * self.dilations[i])

    def of(self, node: Node, x: Any, fill: Any) -> Any:
        """The elements of all windows: outputs along each axis, then positions within the window along each axis."""
        count, rank = len(self.kernel), node.rank(x)
        most = [int(place.max(initial=0)) + 1 for place in self.places]
        behind = [max(end - length - before, 0) for end, length, before in zip(most, self.lengths, self.before)]
        x = padded(node, x, all_axes(node, x, self.before, behind), fill, "constant")
        for i in range(count):
            x = ops.take(x, node.lift(self.places[i].astype(np.int64)), axis=rank - count + 2 * i)
        first = list(range(rank - count))
        outer = [rank - count + 2 * i for i in range(count)]
        x = ops.transpose(x, axes=(*first, *outer, *[axis + 1 for axis in outer]))
        shape = node.shape(x)
        return ops._np_reshape(x, newshape=(*shape[:rank], math.prod(self.kernel)))

    def counts(self, include: int) -> np.ndarray:
        """The number of elements that each window averages."""
        count = np.ones((), np.int64)
        for place, length, before, behind in zip(self.places, self.lengths, self.before, self.behind):
            low, high = (0, length + before + behind) if include else (before, before + length)
            count = count[..., None] * ((place >= low) & (place < high)).sum(1)
        return count

    def flat(self, column_major: int) -> np.ndarray:
        """Indices of window elements in the array with its last axes flattened."""
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
    """Maximum or average pooling by this library's operator; None if it does not support it.

    The operator pads symmetrically. If this gives other windows or averages, the array is padded first, and surplus
    windows are removed.
    """
    count = len(kernel)
    if count > 3 or any(each != 1 for each in dilations or ()):
        return None
    strides = strides or [1] * count
    before, behind = window_pads(node, x, kernel, strides, [1] * count, auto_pad, pads)
    lengths = node.lengths(x)[-count:] if ceil_mode or before != behind else (ANY,) * count
    wanted = [_window_count(*each, ceil_mode) for each in zip(lengths, kernel, strides, before, behind)]
    if ceil_mode and any(length is ANY and stride + pad > size
                         for length, stride, pad, size in zip(lengths, strides, behind, kernel)):
        return None  # the last window may begin in the padding at the end
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
        x = padded(node, x, all_axes(node, x, before, behind), -np.inf if kind == "max" else 0, "constant")
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


def _window_count(length: Any, kernel: int, stride: int, before: int, behind: int, ceil_mode: int) -> Any:
    """The number of windows along an axis; None for a dynamic length."""
    if length is ANY:
        return None
    room = length + before + behind - kernel
    places = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (places - 1) * stride >= length + before:
        places -= 1  # a window would begin in the padding at the end
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
    result = _pooled(node, x, "avg", *words, include=bool(count_include_pad))
    if result is not None:
        return result
    windows = _Windows(node, x, *words)
    result = _pooled(node, x, "avg", *words, include=True)
    if result is not None:
        rate = windows.counts(1) / windows.counts(0)
        return ops.broadcast_mul(result, node.lift(rate.astype(node.dtype(x)).reshape((1,) * (node.rank(x) - rate.ndim)
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
    inner_shape = (*shape[:2], *inner)
    size = math.prod(inner_shape)
    if isinstance(indices, np.ndarray) and indices.size and not 0 <= indices.min() <= indices.max() < size:
        raise ShapeError(f"MaxUnpool: an index is outside of {inner_shape}")
    flat = ops.scatter_nd(ops._np_reshape(x, newshape=(-1,)), ops._np_reshape(node.lift(indices), newshape=(1, -1)),
                          shape=(math.prod(inner_shape),))
    result = ops._np_reshape(flat, newshape=inner_shape)
    if output_shape is None:
        return result
    more = [number - length for number, length in zip(numbers(output_shape), inner_shape)]
    return padded(node, result, [0] * len(more) + more, 0, "constant")


# ----------------------------------------------------------------------------------------------- normalization


@row("BatchNormalization", states=(3, 4))
def batch_norm(node: Node, x: Any, scale: Any, bias: Any, mean: Any, var: Any, *, epsilon: float = 1e-5,
               momentum: float = 0.9, spatial: int = 1, is_test: int = 0, training_mode: int = 0) -> Any:
    dtype = node.dtype(x)
    if training_mode:
        axes = tuple(i for i in range(node.rank(x)) if i != 1)
        wide = [1, -1, *[1] * (node.rank(x) - 2)]
        batch_mean = ops._npi_mean(x, axis=axes, keepdims=True)
        square = ops._npi_mean(ops.square(ops.broadcast_sub(x, batch_mean)), axis=axes, keepdims=True)
        scaled = ops.broadcast_mul(ops.broadcast_div(ops.broadcast_sub(x, batch_mean), ops.sqrt(square + epsilon)),
                                   ops._np_reshape(scale, newshape=tuple(wide)))
        result = ops.broadcast_add(scaled, ops._np_reshape(bias, newshape=tuple(wide)))
        flat_mean, flat_var = ops._np_reshape(batch_mean, newshape=(-1,)), ops._np_reshape(square, newshape=(-1,))
        return (result, mean * momentum + flat_mean * (1 - momentum), var * momentum + flat_var * (1 - momentum))
    if node.rank(x) < 2:
        return (x - mean) / ops.sqrt(var + epsilon) * scale + bias
    held = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    statistics = [node.cast(each, held) for each in (scale, bias, mean, var)]
    return ops.BatchNorm(x, *statistics, eps=epsilon, momentum=momentum, fix_gamma=False)


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
    results = layer_normalized(node, x, scale, bias, axis, epsilon, stash_type, len(node.outputs) > 1)
    return results if len(node.outputs) > 1 else results[0]


def layer_normalized(node: Node, x: Any, scale: Any, bias: Any = None, axis: int = -1, epsilon: float = 1e-5,
                     stash_type: int = 1, statistics: bool = False) -> tuple[Any, Any, Any]:
    """An array normalized along its axes from ``axis`` on; then, if requested, the mean and the inverse standard
    deviation."""
    axis, rank = node.axis(axis, x), node.rank(x)
    dtype = node.dtype(x)
    if axis == rank - 1 and bias is not None and not statistics and dtype != np.float16 and is_known(
            node.lengths(scale)) and node.rank(scale) == 1:
        return ops.LayerNorm(x, scale, bias, axis=-1, eps=epsilon), None, None
    axes = tuple(range(axis, rank))
    wide = node.cast(x, np.float32) if stash_type == 1 and dtype.itemsize < 4 else x
    mean = ops._npi_mean(wide, axis=axes, keepdims=True)
    centred = ops.broadcast_sub(wide, mean)
    inverse = 1.0 / ops.sqrt(ops._npi_mean(ops.square(centred), axis=axes, keepdims=True) + epsilon)
    result = ops.broadcast_mul(node.cast(ops.broadcast_mul(centred, inverse), dtype), scale)
    return result if bias is None else ops.broadcast_add(result, bias), mean, inverse


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


def _over_flattened_axes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Before opset 13, all axes from ``axis`` on are flattened into one."""

    def apply(node: Node, x: Any, *, axis: int = 1) -> Any:
        lengths = node.lengths(x)
        axis = axis % len(lengths) if lengths else 0
        if axis == len(lengths) - 1:
            return function(node, x, -1)
        shape = node.shape(x)
        flat = reshape_value(node, x, (math.prod(shape[:axis]), math.prod(shape[axis:])), True)
        return reshape_value(node, function(node, flat, -1), shape, True)

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

    row(name)(_over_flattened_axes(function))
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
            mask = np.random.RandomState(seed).uniform(0, 1, node.shape(x)) >= part
            factors = node.lift((mask / (1 - part)).astype(node.dtype(x)))
        result = x * factors
        return result if len(node.outputs) == 1 else (result, ops._npi_not_equal_scalar(factors, scalar=0))
    result = ops.Dropout(x, p=part) if training is None and part and MODE.recording else x
    return result if len(node.outputs) == 1 else (result, node.lift(np.ones(node.shape(x), bool)))
