"""Rows of ONNX Runtime's fused operators: several operators of ONNX in one, as its optimizer and its tools for
transformers write them. The rows of attention are in ``fused_attention``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opreg.core.registry import ops
from opreg.errors import AttrError

from ..graph import Node
from ..rows import Given, Host, row
from .elementwise import clip_by_attributes, gelu, swish
from .images import grid_sample
from .layers import conv, instance_norm, layer_normalized
from .parts import gather, gather_nd, pad, trilu
from .recurrent import activation
from .reductions import gemm, mat_mul
from .shapes import arange, unsqueeze

__all__ = ["channels_second", "plus"]

DOMAIN = "com.microsoft"

row("Gelu", domain=DOMAIN)(gelu)
row("Trilu", domain=DOMAIN)(trilu)
row("Pad", domain=DOMAIN)(pad)
row("GatherND", domain=DOMAIN)(gather_nd)
row("ExpandDims", domain=DOMAIN)(unsqueeze)


@row("Range", domain=DOMAIN)
def arange_by_one(node: Node, start: Host, limit: Given, delta: Host = None) -> Any:
    return arange(node, start, limit, np.ones((), start.dtype) if delta is None else delta)


@row("GridSample", domain=DOMAIN)
def grid_sample_named(node: Node, x: Any, grid: Any, *, align_corners: int = 0, mode: str = "bilinear",
                      padding_mode: str = "zeros") -> Any:
    return grid_sample(node, x, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode)


@row("Inverse", domain=DOMAIN)
def inverse(node: Node, x: Any) -> Any:
    return ops._npi_inv(x)


@row("CDist", domain=DOMAIN)
def distances(node: Node, a: Any, b: Any, *, metric: str = "sqeuclidean") -> Any:
    if metric not in ("euclidean", "sqeuclidean"):
        raise AttrError(f"metric={metric!r}: expected euclidean or sqeuclidean")
    apart = ops.broadcast_sub(ops.expand_dims(a, axis=1), ops.expand_dims(b, axis=0))
    square = ops._np_sum(ops.square(apart), axis=-1)
    return square if metric == "sqeuclidean" else ops.sqrt(square)


# ------------------------------------------------------------------------------------------------- activations


def plus(x: Any, bias: Any) -> Any:
    """An array with a bias, if there is one."""
    return x if bias is None else ops.broadcast_add(x, bias)


@row("BiasGelu", domain=DOMAIN)
def bias_gelu(node: Node, x: Any, bias: Any) -> Any:
    return gelu(node, plus(x, bias))


@row("FastGelu", domain=DOMAIN)
def fast_gelu(node: Node, x: Any, bias: Any = None) -> Any:
    return gelu(node, plus(x, bias), approximate="tanh")


@row("QuickGelu", domain=DOMAIN)
def quick_gelu(node: Node, x: Any, *, alpha: float = 1.702) -> Any:
    return swish(node, x, alpha=alpha)


@row("BiasAdd", domain=DOMAIN)
def bias_add(node: Node, x: Any, bias: Any, skip: Any) -> Any:
    return ops.broadcast_add(plus(x, bias), skip)


@row("BiasSplitGelu", domain=DOMAIN)
def bias_split_gelu(node: Node, x: Any, bias: Any) -> Any:
    left, right = ops.split(plus(x, bias), num_outputs=2, axis=-1)
    return left * gelu(node, right)


def _activate(node: Node, x: Any, name: str, params: Any) -> Any:
    """``x`` after the activation of a fused operator; ``params`` are the parameters of the activation in order."""
    if not name:
        return x
    numbers = list(params or ())
    if name == "Clip":
        return clip_by_attributes(node, x, **dict(zip(("min", "max"), numbers)))
    return activation(name, iter(numbers[:1]), iter(numbers[1:]))(x)


# -------------------------------------------------------------------------------------------------- products


@row("FusedConv", domain=DOMAIN)
def fused_conv(node: Node, x: Any, weight: Any, bias: Any = None, added: Any = None, *, activation: str = "",
               activation_params: Any = None, auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
               kernel_shape: Any = None, pads: Any = None, strides: Any = None) -> Any:
    y = conv(node, x, weight, bias, auto_pad=auto_pad, dilations=dilations, group=group, pads=pads, strides=strides)
    return _activate(node, plus(y, added), activation, activation_params)


@row("NhwcConv", domain=DOMAIN)
def conv_channels_last(node: Node, x: Any, weight: Any, bias: Any = None, *, auto_pad: str = "NOTSET",
                       dilations: Any = None, group: int = 1, kernel_shape: Any = None, pads: Any = None,
                       strides: Any = None) -> Any:
    def convolved(x: Any, weight: Any) -> Any:
        return conv(node, x, weight, bias, auto_pad=auto_pad, dilations=dilations, group=group, pads=pads,
                    strides=strides)

    return channels_second(node, convolved, x, weight)


def channels_second(node: Node, function: Callable[..., Any], *images: Any) -> Any:
    """A function of arrays whose channels are their second axis, of arrays where these are the last."""
    rank = node.rank(images[0])
    y = function(*[ops.transpose(x, axes=(0, rank - 1, *range(1, rank - 1))) for x in images])
    return ops.transpose(y, axes=(0, *range(2, rank), 1))


@row("FusedGemm", domain=DOMAIN)
def fused_gemm(node: Node, a: Any, b: Any, c: Any = None, *, activation: str = "",
               activation_alpha: float | None = None, activation_beta: float | None = None,
               activation_gamma: float | None = None, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
               transB: int = 0) -> Any:
    y = gemm(node, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return _activate(node, y, activation, [each for each in (activation_alpha, activation_beta) if each is not None])


@row("FusedMatMul", domain=DOMAIN)
def fused_mat_mul(node: Node, a: Any, b: Any, *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
                  transBatchA: int = 0, transBatchB: int = 0) -> Any:
    product = mat_mul(node, _transposed_factor(node, a, transA, transBatchA),
                      _transposed_factor(node, b, transB, transBatchB))
    return product if alpha == 1 else product * alpha


@row("TransposeMatMul", domain=DOMAIN)
def transpose_mat_mul(node: Node, a: Any, b: Any, *, alpha: float = 1.0, transA: int = 0, transB: int = 0) -> Any:
    return fused_mat_mul(node, a, b, alpha=alpha, transA=transA, transB=transB)


def _transposed_factor(node: Node, x: Any, last: int, first: int) -> Any:
    """A factor with its last two axes exchanged; before, its first axis is moved behind those of the batch."""
    rank = node.rank(x)
    if rank < 2 or not (last or first):
        return x
    axes = [*range(1, rank - 1), 0, rank - 1] if first else list(range(rank))
    if last:
        axes[-2:] = axes[:-3:-1]
    return ops.transpose(x, axes=tuple(axes))


@row("GemmFastGelu", domain=DOMAIN)
def gemm_fast_gelu(node: Node, x: Any, weight: Any, bias: Any = None) -> Any:
    return fast_gelu(node, mat_mul(node, x, weight), bias)


# ----------------------------------------------------------------------------------------------- normalization


def _root_mean_square(node: Node, x: Any, scale: Any, axis: int, epsilon: float) -> tuple[Any, Any]:
    """The normalized array, and the factor that made it so, in float32."""
    axes, dtype = tuple(range(node.axis(axis, x), node.rank(x))), node.dtype(x)
    wide = node.cast(x, np.float32) if dtype.itemsize == 2 else x
    inverse = 1.0 / ops.sqrt(ops._npi_mean(ops.square(wide), axis=axes, keepdims=True) + epsilon)
    return node.cast(ops.broadcast_mul(ops.broadcast_mul(wide, inverse), node.cast(scale, node.dtype(wide))), dtype
                     ), inverse


@row("SimplifiedLayerNormalization")
@row("SimplifiedLayerNormalization", domain=DOMAIN)
def simplified_layer_norm(node: Node, x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5,
                          stash_type: int = 1) -> Any:
    return _root_mean_square(node, x, scale, axis, epsilon)[:max(len(node.outputs), 1)]


@row("SkipSimplifiedLayerNormalization", domain=DOMAIN)
def skip_simplified_layer_norm(node: Node, x: Any, skip: Any, scale: Any, bias: Any = None, *, epsilon: float = 1e-12
                               ) -> Any:
    total = ops.broadcast_add(plus(x, bias), skip)
    y, inverse = _root_mean_square(node, total, scale, -1, epsilon)
    return y, None, inverse, total


@row("SkipLayerNormalization", domain=DOMAIN)
def skip_layer_norm(node: Node, x: Any, skip: Any, scale: Any, bias: Any = None, before: Any = None, *,
                    epsilon: float = 1e-12) -> Any:
    total = ops.broadcast_add(plus(x, before), skip)
    return (*layer_normalized(node, total, scale, bias, epsilon=epsilon, statistics=any(node.outputs[1:3])), total)


@row("EmbedLayerNormalization", domain=DOMAIN)
def embed_layer_norm(node: Node, words: Given, segments: Given = None, word_table: Any = None,
                     place_table: Any = None, segment_table: Any = None, scale: Any = None, bias: Any = None,
                     mask: Any = None, places: Given = None, *, epsilon: float = 1e-12, mask_index_type: int = 0
                     ) -> Any:
    total = gather(node, word_table, words)
    if places is None:  # without positions, those of the first words are used
        position_rows = ops.slice_like(place_table, ops.swapaxes(total, dim1=0, dim2=1), axes=(0,))
        total = ops.broadcast_add(total, ops.expand_dims(position_rows, axis=0))
    else:
        total = ops.broadcast_add(total, gather(node, place_table, places))
    if segments is not None:
        total = ops.broadcast_add(total, gather(node, segment_table, segments))
    y, *_ = layer_normalized(node, total, scale, bias, epsilon=epsilon)
    shown = ops.zeros_like(node.lift(words)) if mask is None else ops._npi_equal_scalar(mask, scalar=1)
    count = node.cast(ops._np_sum(node.cast(shown, np.int32), axis=1), np.int32)
    return y, count, total


@row("GroupNorm", domain=DOMAIN)
def group_norm(node: Node, x: Any, scale: Any, bias: Any, *, activation: int, groups: int, channels_last: int = 1,
               epsilon: float = 1e-5) -> Any:
    def normalized(x: Any) -> Any:
        flat, wide = ops.reshape(x, shape=(0, groups, -1)), (-1, *[1] * (node.rank(x) - 2))
        ones = node.lift(np.ones(groups, node.dtype(x)))
        y = ops.reshape_like(instance_norm(node, flat, ones, ops.zeros_like(ones), epsilon=epsilon), x)
        y = ops.broadcast_add(ops.broadcast_mul(y, ops._np_reshape(scale, newshape=wide)), ops._np_reshape(
            bias, newshape=wide))
        return swish(node, y) if activation else y

    return channels_second(node, normalized, x) if channels_last else normalized(x)


@row("SkipGroupNorm", domain=DOMAIN)
def skip_group_norm(node: Node, x: Any, scale: Any, bias: Any, skip: Any, before: Any = None, *, activation: int,
                    groups: int, channels_last: int = 1, epsilon: float = 1e-5) -> Any:
    if node.rank(skip) == 2:  # ``skip`` has one value for each image and channel
        skip = ops.reshape(skip, shape=(0, 1, 1, -1) if channels_last else (0, -1, 1, 1))
    if before is not None and not channels_last:
        before = ops._np_reshape(before, newshape=(-1, 1, 1))
    total = ops.broadcast_add(plus(x, before), skip)
    return group_norm(node, total, scale, bias, activation=activation, groups=groups, channels_last=channels_last,
                      epsilon=epsilon), total
