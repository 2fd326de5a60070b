"""Translations of layers: products, convolutions, pooling, normalization, attention and losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...builtin.layers.sliding import channels_first, window
from ...builtin.vision.resize import between
from ...core.spec import is_floating
from ...interop.translation import Untranslatable
from .builder import Builder, Value, dynamic, product
from .randomness import add_dropout
from .table import Use, says

# ------------------------------------------------------------------------------------------------ products


@says("FullyConnected")
def _dense(g: Builder, use: Use, x: Value, weight: Value, *bias: Value) -> Value:
    shape = x.shape
    if use.attrs["flatten"] and len(shape) != 2:
        x = g("Flatten", x, axis=1)
    if len(x.shape) == 2 and is_floating(x.dtype):
        extra = bias if bias or g.opset >= 11 else (g.constant(np.zeros(weight.shape[:1], x.dtype)),)
        return g("Gemm", x, weight, *extra, transB=1)
    result = g.matmul(x, g.transpose(weight, (1, 0)))
    return result + bias[0] if bias else result


@says("dot")
def _dot(g: Builder, use: Use, x: Value, y: Value) -> Value:
    left, right = len(x.shape), len(y.shape)
    if use.attrs["transpose_a"] and left > 1:
        x = g.transpose(x, [*range(1, left), 0])
    if use.attrs["transpose_b"] and right > 1:
        y = g.transpose(y, [right - 1, *range(right - 1)])
    if right > 2:
        y = g.reshape(y, (y.shape[0], product(y.shape[1:])))
    return g.reshape(g.matmul(x, y), use.out.shape) if right > 2 else g.matmul(x, y)


@says("batch_dot", "_linalg_gemm2", "_linalg_gemm")
def _batch_dot(g: Builder, use: Use, x: Value, y: Value, *added: Value) -> Value:
    attrs = use.attrs
    if attrs.get("axis", -2) not in (-2, len(x.shape) - 2):
        raise Untranslatable(f"axis={attrs['axis']}: ONNX multiplies matrices of the last two axes")
    result = g.matmul(_swap_last_axes(g, x, attrs["transpose_a"]), _swap_last_axes(g, y, attrs["transpose_b"]))
    if attrs.get("alpha", 1.0) != 1.0:
        result = result * attrs["alpha"]
    if added:
        result = result + (added[0] if attrs["beta"] == 1.0 else added[0] * attrs["beta"])
    return result


def _swap_last_axes(g: Builder, x: Value, turn: bool = True) -> Value:
    rank = len(x.shape)
    return g.transpose(x, [*range(rank - 2), rank - 1, rank - 2]) if turn else x


def _part(g: Builder, x: Value, heads: int, parts: int, which: int) -> Value:
    """One part (query, key or value) of every head of an interleaved projection, (batch, heads, length, size)."""
    length, batch, features = x.shape
    size = features // (heads * parts)
    x = g.reshape(x, (length, batch, heads, parts * size))
    return g.transpose(g.slice(x, [which * size], [(which + 1) * size], [3]), (1, 2, 0, 3))


def _merge_heads(g: Builder, x: Value) -> Value:
    """A value with the axes of batch and heads merged."""
    batch, heads, *rest = x.shape
    return g.reshape(x, (batch * heads, *rest))


@says("_contrib_interleaved_matmul_selfatt_qk")
def _self_attention_scores(g: Builder, use: Use, x: Value) -> Value:
    heads = use.attrs["heads"]
    return _scores(g, _part(g, x, heads, 3, 0), _part(g, x, heads, 3, 1))


@says("_contrib_interleaved_matmul_encdec_qk")
def _other_scores(g: Builder, use: Use, queries: Value, x: Value) -> Value:
    heads = use.attrs["heads"]
    return _scores(g, _part(g, queries, heads, 1, 0), _part(g, x, heads, 2, 0))


def _scores(g: Builder, queries: Value, keys: Value) -> Value:
    size = queries.shape[-1]
    return _merge_heads(g, g.matmul(queries * (1.0 / math.sqrt(size)), _swap_last_axes(g, keys)))


@says("_contrib_interleaved_matmul_selfatt_valatt", "_contrib_interleaved_matmul_encdec_valatt")
def _apply_attention(g: Builder, use: Use, x: Value, attention: Value) -> Value:
    heads = use.attrs["heads"]
    itself = "selfatt" in use.op.name
    values = _part(g, x, heads, 3, 2) if itself else _part(g, x, heads, 2, 1)
    batch = x.shape[1]
    weights = g.reshape(attention, (batch, heads, *attention.shape[1:]))
    result = g.transpose(g.matmul(weights, values), (2, 0, 1, 3))
    return g.reshape(result, use.out.shape)


@says("_contrib_scaled_dot_product_attention")
def _attention(g: Builder, use: Use, query: Value, key: Value, value: Value, *mask: Value) -> Value:
    attrs = use.attrs
    drops = attrs["p"] and (use.is_train or attrs["mode"] == "always")
    batch, heads, queries, size = query.shape
    many, length = heads // key.shape[1], key.shape[2]
    hidden = attrs["fill"] == -math.inf or all(each.dtype != np.bool_ for each in mask)
    if g.opset >= 23 and not drops and hidden and all(each.shape[-1] == length for each in mask):
        words: dict[str, Any] = {} if attrs["scale"] is None else {"scale": float(attrs["scale"])}
        return g("Attention", query, key, value, *mask, is_causal=int(attrs["causal"]), **words)
    query = query * (1.0 / math.sqrt(size) if attrs["scale"] is None else attrs["scale"])
    if many > 1:  # query heads that share a key head are adjacent
        query = g.reshape(query, (batch, key.shape[1], many, queries, size))
        key, value = (g.unsqueeze(x, [2]) for x in (key, value))
    rank = len(key.shape)
    scores = g.matmul(query, g.transpose(key, (*range(rank - 2), rank - 1, rank - 2)))
    if many > 1:
        scores = g.reshape(scores, (batch, heads, queries, length))
    for each in mask:
        scores = g.where(each, scores, attrs["fill"]) if each.dtype == np.bool_ else scores + each
    if attrs["causal"]:
        scores = g.where(g.constant(np.tri(queries, length, dtype=bool)), scores, -math.inf)
    weights = g.softmax(scores, 3)
    weights = add_dropout(g, weights, attrs["p"]) if drops else weights
    if many == 1:
        return g.matmul(weights, value)
    weights = g.reshape(weights, (batch, heads // many, many, queries, length))
    return g.reshape(g.matmul(weights, value), use.out.shape)


@says("_contrib_div_sqrt_dim")
def _div_sqrt(g: Builder, use: Use, x: Value) -> Value:
    return x / math.sqrt(product(x.shape[-1:]))


# --------------------------------------------------------------------------------------------- convolutions


def _channels_second(g: Builder, x: Value, layout: str | None, back: bool = False) -> Value:
    """The data with the channels on the second axis, and a function that moves them back."""
    if layout is None or layout[1] == "C":
        return x
    rank = len(x.shape)
    return g.transpose(x, (0, *range(2, rank), 1) if back else (0, rank - 1, *range(1, rank - 1)))


def _filled(values: Sequence[int], rank: int, neutral: int) -> list[int]:
    return [int(value) for value in (*values, *[neutral] * rank)][:rank]


@says("Convolution")
def _convolution(g: Builder, use: Use, x: Value, weight: Value, *bias: Value) -> Value:
    attrs, layout = use.attrs, use.attrs["layout"]
    rank = len(attrs["kernel"])
    pad = _filled(attrs["pad"], rank, 0)
    weight = _channels_second(g, weight, layout)
    result = g("Conv", _channels_second(g, x, layout), weight, *bias, kernel_shape=list(attrs["kernel"]), pads=pad * 2,
               strides=_filled(attrs["stride"], rank, 1), dilations=_filled(attrs["dilate"], rank, 1),
               group=attrs["num_group"])
    return _channels_second(g, result, layout, True)


@says("_contrib_ModulatedDeformableConvolution")
def _deformable(g: Builder, use: Use, x: Value, offset: Value, mask: Value, weight: Value, *bias: Value) -> Value:
    attrs = use.attrs
    rank = len(attrs["kernel"])
    return g("DeformConv", x, weight, offset, bias[0] if bias else None, mask, kernel_shape=list(attrs["kernel"]),
             pads=_filled(attrs["pad"], rank, 0) * 2, strides=_filled(attrs["stride"], rank, 1),
             dilations=_filled(attrs["dilate"], rank, 1), group=attrs["num_group"],
             offset_group=attrs["num_deformable_group"])


@says("_contrib_DeformableConvolution")
def _deformable_unmasked(g: Builder, use: Use, x: Value, offset: Value, weight: Value, *bias: Value) -> Value:
    """Version 1 of deformable convolution, which reads zero outside the image but interpolates at its last row and
    column as if they continued: a mask removes positions outside, and offsets are clipped at the last row and
    column."""
    attrs, size, places = use.attrs, x.shape[2:], use.out.shape[2:]
    if any(dynamic(dim) for dim in (*size, *places)):
        raise Untranslatable("deformable convolutions without masks of images whose size is dynamic")
    kernel, moving = attrs["kernel"], attrs["num_deformable_group"]
    words = [_filled(attrs[name], 2, default) for name, default in (("stride", 1), ("pad", 0), ("dilate", 1))]
    # The source pixel of each kernel element, by row, column, axis and position.
    at = np.zeros((*kernel, 2, *places), x.dtype)
    for axis, (stride, pad, dilate) in enumerate(zip(*words)):
        taps = np.arange(kernel[axis]) * dilate - pad
        at[:, :, axis] = np.expand_dims(np.arange(places[axis]) * stride + taps[:, None], (1 - axis, 3 - axis))
    last = np.array(size, x.dtype).reshape(2, 1, 1) - 1
    start, end = [np.concatenate([each.reshape(1, -1, *places)] * moving, 1) for each in (at, last - at)]
    pixel = offset + g.constant(start)
    inside = g.cast((pixel >= 0.0) & (pixel < g.constant(start + end + 1)), x.dtype)
    inside = g.reshape(inside, (x.shape[0], start.shape[1] // 2, 2, *places))
    mask = g.squeeze(g.min(inside, [2]), [2])
    return _deformable(g, use, x, g.smaller(offset, g.constant(end)), mask, weight, *bias)


@says("Deconvolution")
def _deconvolution(g: Builder, use: Use, x: Value, weight: Value, *bias: Value) -> Value:
    attrs, layout = use.attrs, use.attrs["layout"]
    w = window(attrs["kernel"], attrs["stride"], attrs["dilate"], attrs["pad"])
    x, weight = _channels_second(g, x, layout), _channels_second(g, weight, layout)
    sizes, places = x.shape[2:], channels_first(use.out.shape, layout)[2:]
    if attrs["target_shape"]:
        before, extra = [], []
        for n, y, s, reach in zip(sizes, places, w.stride, w.reach):
            if dynamic(y):
                raise Untranslatable("target_shape: its dimensions are dynamic")
            total = (n - 1) * s + reach - y
            before.append((total + 1) // 2)
            extra.append(total % 2)
        after = [p - e for p, e in zip(before, extra)]
        adjusted = [0] * len(before)
    else:
        before = after = list(w.pad)
        adjusted = _filled(attrs["adj"], len(w.kernel), 0)
    result = g("ConvTranspose", x, weight, *bias, kernel_shape=list(w.kernel), pads=[*before, *after],
               strides=list(w.stride), dilations=list(w.dilate), output_padding=adjusted, group=attrs["num_group"])
    return _channels_second(g, result, layout, True)


# -------------------------------------------------------------------------------------------------- pooling


@says("Pooling", "Pooling_v1")
def _pooling(g: Builder, use: Use, x: Value) -> Value:
    attrs = use.attrs
    kind, layout = attrs["pool_type"], attrs.get("layout")
    data = _channels_second(g, x, layout)
    if not is_floating(x.dtype):
        data = g.cast(data, np.float32)
    if kind == "lp":
        data = {1: lambda: data, 2: lambda: data * data, 3: lambda: data * data * data}[attrs["p_value"]]()
    if attrs["global_pool"]:
        result = _global(g, data, kind)
    else:
        result = _windows(g, use, data, kind, first=use.op.name == "Pooling_v1")
    if kind == "lp":
        power = attrs["p_value"]
        result = result if power == 1 else g("Sqrt", result) if power == 2 else g.primitives["cbrt"](g, result)
    return _channels_second(g, result, layout, True)


def _global(g: Builder, x: Value, kind: str) -> Value:
    if kind in ("max", "avg"):
        return g("GlobalMaxPool" if kind == "max" else "GlobalAveragePool", x)
    return g.sum(x, range(2, len(x.shape)))


def _windows(g: Builder, use: Use, x: Value, kind: str, first: bool) -> Value:
    attrs = use.attrs
    shape = tuple([1 if dynamic(dim) else dim for dim in x.shape[:2]]) + x.shape[2:]
    rank = len(attrs["kernel"])
    convention = attrs["pooling_convention"]
    stride, pad = _filled(attrs["stride"], rank, 1), _filled(attrs["pad"], rank, 0)
    places = channels_first(use.out.shape, attrs.get("layout"))[2:]
    moving = any(dynamic(dim) for dim in shape[2:])
    kernel = list(attrs["kernel"])
    if moving and convention != "valid":
        raise Untranslatable(f"pooling_convention={convention!r} of images whose size is dynamic")
    behind = list(pad) if moving else [
        max((y - 1) * s + k - n - p, 0) for y, s, k, n, p in zip(places, stride, kernel, shape[2:], pad)]
    words: dict[str, Any] = {"kernel_shape": kernel, "strides": stride}
    if kind == "max":
        whole = any(edge >= size for edge, size in zip([*pad, *behind], kernel * 2))  # some runtimes refuse it
        if whole or (first and any([*pad, *behind])):  # version 1 pads with zeros
            least = 0.0 if first else float(np.finfo(x.dtype).min)
            x, pad, behind = g.pad(x, [0, 0, *pad], [0, 0, *behind], least), [0] * rank, [0] * rank
        return g("MaxPool", x, pads=[*pad, *behind], **words)
    inside = first or attrs.get("count_include_pad") is not False
    if kind == "avg" and behind == pad:
        return g("AveragePool", x, pads=[*pad, *behind], count_include_pad=int(inside), **words)
    # Padding beyond the attributes is not counted.
    result = g("AveragePool", g.pad(x, [0, 0, *pad], [0, 0, *behind]), **words) * float(math.prod(kernel))
    if kind != "avg":
        return result
    if moving:
        raise Untranslatable("averages over windows of images whose size is dynamic")
    counts = np.ones((), x.dtype)
    for y, s, k, n, p in zip(places, stride, kernel, shape[2:], pad):
        starts = np.arange(y) * s - p
        ends = np.minimum(starts + k, n + p)
        line = ends - starts if inside else np.minimum(ends, n) - np.maximum(starts, 0)
        counts = np.multiply.outer(counts, np.maximum(line, 1))  # a window that contains only padding is zero
    if first:
        counts = np.full(counts.shape, math.prod(kernel))
    return result / g.constant(counts.astype(x.dtype))


@says("_contrib_AdaptiveAvgPooling2D")
def _adaptive(g: Builder, use: Use, x: Value) -> Value:
    height, width = x.shape[2:]
    rows, columns = use.out.shape[2:]
    if (rows, columns) == (1, 1):
        return g("GlobalAveragePool", x)
    if dynamic(height) or dynamic(width):
        raise Untranslatable("averages over parts of images whose size is dynamic")
    down = g.constant(_shares(height, rows).astype(x.dtype))
    along = g.constant(np.ascontiguousarray(_shares(width, columns).T.astype(x.dtype)))
    return g.matmul(g.matmul(down, x), along)


def _shares(size: int, places: int) -> np.ndarray:
    """The matrix that averages elements into windows."""
    shares = np.zeros((places, size))
    for i in range(places):
        start, end = i * size // places, -(-(i + 1) * size // places)
        shares[i, start:end] = 1 / (end - start)
    return shares


# -------------------------------------------------------------------------------------------- normalization


@says("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU", "_nn_batch_norm")
def _batch_norm(g: Builder, use: Use, x: Value, gamma: Value, beta: Value, mean: Value, var: Value) -> Any:
    attrs = use.attrs
    rank = len(x.shape)
    axis = attrs.get("axis", 1) % rank
    if use.is_train and not attrs.get("use_global_stats"):  # with the batch statistics
        around = tuple([gamma.shape[0] if i == axis else 1 for i in range(rank)])
        normal, _, _ = _normalized(g, x, [i for i in range(rank) if i != axis], attrs["eps"])
        result = normal * g.reshape(gamma, around) + g.reshape(beta, around)
        return [g("Relu", result) if use.op.name == "_contrib_BatchNormWithReLU" else result]
    if attrs.get("fix_gamma"):
        gamma = g.constant(np.ones([product(gamma.shape)], gamma.dtype))
    if axis == 1 and x.dtype == gamma.dtype == mean.dtype:
        result = g("BatchNormalization", x, gamma, beta, mean, var, epsilon=attrs["eps"], momentum=attrs["momentum"])
    else:
        along = tuple([gamma.shape[0] if i == axis else 1 for i in range(rank)])
        wide = g.cast(x, gamma.dtype)
        scale = gamma / g("Sqrt", var + attrs["eps"])
        result = wide * g.reshape(scale, along) + g.reshape(beta - mean * scale, along)
        result = g.cast(result, x.dtype)
    if use.op.name == "_contrib_BatchNormWithReLU":
        result = g("Relu", result)
    return [result] if len(use.outs) < 3 or not attrs.get("output_mean_var") else [
        result, mean, 1.0 / g("Sqrt", var + attrs["eps"]) if use.op.name == "BatchNorm" else var]


@says("LayerNorm")
def _layer_norm(g: Builder, use: Use, x: Value, gamma: Value, beta: Value) -> Any:
    rank = len(x.shape)
    axis = use.attrs["axis"] % rank
    if g.opset >= 17 and axis == rank - 1 and not use.attrs["output_mean_var"]:
        return g("LayerNormalization", x, gamma, beta, axis=axis, epsilon=use.attrs["eps"])
    along = tuple([gamma.shape[0] if i == axis else 1 for i in range(rank)])
    normal, mean, deviation = _normalized(g, x, [axis], use.attrs["eps"])
    return [normal * g.reshape(gamma, along) + g.reshape(beta, along), mean, deviation]


def _normalized(g: Builder, x: Value, axes: Sequence[int], eps: float) -> tuple[Value, Value, Value]:
    mean = g.mean(x, axes)
    moved = x - mean
    deviation = g("Sqrt", g.mean(moved * moved, axes) + eps)
    return moved / deviation, mean, deviation


@says("InstanceNorm")
def _instance_norm(g: Builder, use: Use, x: Value, gamma: Value, beta: Value) -> Any:
    return g("InstanceNormalization", x, gamma, beta, epsilon=use.attrs["eps"])


@says("GroupNorm")
def _group_norm(g: Builder, use: Use, x: Value, gamma: Value, beta: Value) -> Any:
    """Group normalization, where gamma and beta have one value per group."""
    groups, shape = use.attrs["num_groups"], x.shape
    if any(dynamic(dim) for dim in shape[1:]):
        raise Untranslatable("groups of channels of data whose size is dynamic")
    flat = g.reshape(x, (shape[0], groups, math.prod(shape[1:]) // groups))
    normal, mean, deviation = _normalized(g, flat, [2], use.attrs["eps"])
    result = normal * g.reshape(gamma, (groups, 1)) + g.reshape(beta, (groups, 1))
    return [g.reshape(result, shape), g.squeeze(mean, [2]), g.squeeze(deviation, [2])]


@says("L2Normalization")
def _l2(g: Builder, use: Use, x: Value) -> Any:
    rank, mode = len(x.shape), use.attrs["mode"]
    axes = {"instance": range(1, rank), "channel": [1], "spatial": range(2, rank)}[mode]
    return x / g("Sqrt", g.sum(x * x, list(axes)) + use.attrs["eps"])


@says("LRN")
def _lrn(g: Builder, use: Use, x: Value) -> Any:
    attrs = use.attrs
    if len(x.shape) == 4 and attrs["nsize"] % 2:
        return g("LRN", x, alpha=attrs["alpha"], beta=attrs["beta"], bias=attrs["knorm"], size=attrs["nsize"])
    total = _channel_window(g, x * x, attrs["nsize"]) * (attrs["alpha"] / attrs["nsize"]) + attrs["knorm"]
    return x / g("Pow", total, attrs["beta"])


# -------------------------------------------------------------------------------------------------- softmax


@says("softmax", "log_softmax", "softmin")
def _softmax(g: Builder, use: Use, x: Value, *length: Value) -> Value:
    attrs, name = use.attrs, use.op.name
    axis = attrs["axis"] % len(x.shape)
    x = g.cast(x, use.out.dtype) if is_floating(use.out.dtype) and x.dtype != np.float64 else x
    x = -x if name == "softmin" else x
    x = x / attrs["temperature"] if attrs["temperature"] else x
    if not length:
        return (g.log_softmax if name == "log_softmax" else g.softmax)(x, axis)
    valid = _mask_before(g, x, length[0], axis)
    x = g.where(valid, x, float(np.finfo(x.dtype).min))
    if name == "log_softmax":
        raise Untranslatable("log_softmax of lengths")
    return g.where(valid, g.softmax(x, axis), 0.0)


def _mask_before(g: Builder, x: Value, length: Value, axis: int) -> Value:
    """Whether elements lie before the length of their sequence; ``length`` has the other axes of ``x``."""
    count = x.shape[axis]
    if dynamic(count):
        raise Untranslatable("lengths along an axis that is dynamic")
    rank = len(x.shape)
    numbers = g.constant(np.arange(count, dtype=np.int64).reshape([-1 if i == axis else 1 for i in range(rank)]))
    return g.compare("Less", numbers, g.unsqueeze(g.cast(length, np.int64), [axis]))


@says("SoftmaxActivation")
def _softmax_activation(g: Builder, use: Use, x: Value) -> Value:
    if use.attrs["mode"] == "channel":
        return g.softmax(x, 1)
    return g.reshape(g.softmax(g("Flatten", x, axis=1), 1), x.shape)


@says("SoftmaxOutput")
def _softmax_output(g: Builder, use: Use, x: Value, label: Any) -> Value:
    rank = len(x.shape)
    if use.attrs["multi_output"] or rank == 2:
        return g.softmax(x, 1)
    if use.attrs["preserve_shape"]:
        return g.softmax(x, rank - 1)
    return g.reshape(g.softmax(g("Flatten", x, axis=1), 1), x.shape)


# --------------------------------------------------------------------------------------------------- images


@says("_upsampling_bilinear")
def _spread(g: Builder, use: Use, x: Value, weight: Value) -> Value:
    scale = use.attrs["scale"]
    return g("ConvTranspose", x, weight, kernel_shape=[2 * scale - scale % 2] * 2, strides=[scale] * 2,
             pads=[scale // 2] * 4, group=product(x.shape[1:2]))


@says("UpSampling")
def _upsampling(g: Builder, use: Use, *images: Value) -> Value:
    if use.attrs["sample_type"] == "bilinear":
        return _spread(g, use, *images)
    scale = use.attrs["scale"]
    height, width = images[0].shape[2:]
    larger = []
    for x in images:
        rows, columns = x.shape[2:]
        if len(images) > 1 and any(dynamic(dim) for dim in (height, width, rows, columns)):
            raise Untranslatable("images of several sizes, which are dynamic")
        larger.append(enlarge(g, x, scale if dynamic(rows) else height * scale // rows,
                              scale if dynamic(columns) else width * scale // columns))
    if use.attrs["multi_input_mode"] == "concat":
        return g.concat(larger, 1)
    total = larger[0]
    for x in larger[1:]:
        total = total + x
    return total


def enlarge(g: Builder, x: Value, rows: int, columns: int) -> Value:
    """Images enlarged by repeating every element."""
    if rows == columns == 1:
        return x
    scales = [1.0, 1.0, float(rows), float(columns)]
    if g.opset >= 11:
        factors = g.constant(np.asarray(scales, np.float32))
        none = None if g.opset >= 13 else g.constant(np.zeros(0, np.float32))
        return g("Resize", x, none, factors, mode="nearest", coordinate_transformation_mode="asymmetric",
                 nearest_mode="floor")
    if g.opset >= 9:
        kind = "Resize" if g.opset >= 10 else "Upsample"
        return g(kind, x, g.constant(np.asarray(scales, np.float32)), mode="nearest")
    return g("Upsample", x, scales=scales, mode="nearest")


@says("_contrib_BilinearResize2D")
def _bilinear(g: Builder, use: Use, x: Value, *like: Value) -> Value:
    (height, width), (rows, columns) = x.shape[2:], use.out.shape[2:]
    if any(dynamic(dim) for dim in (height, width, rows, columns)):
        raise Untranslatable("images whose size is dynamic")
    corners = use.attrs["align_corners"]
    down = g.constant(between(height, rows, x.dtype, align_corners=corners))
    along = g.constant(np.ascontiguousarray(between(width, columns, x.dtype, align_corners=corners).T))
    return g.matmul(g.matmul(down, x), along)


@says("_LRN_window")
def _lrn_window(g: Builder, use: Use, x: Value) -> Value:
    return _channel_window(g, x, use.attrs["nsize"])


def _channel_window(g: Builder, x: Value, size: int) -> Value:
    """The sum over neighbouring channels."""
    channels = product(x.shape[1:2])
    places = np.abs(np.subtract.outer(np.arange(channels), np.arange(channels))) <= size // 2
    rank = len(x.shape)
    turned = g.matmul(g.transpose(x, [0, *range(2, rank), 1]), g.constant(places.astype(x.dtype)))
    return g.transpose(turned, [0, rank - 1, *range(1, rank - 1)])
