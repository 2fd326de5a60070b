"""Rows of ONNX Runtime's quantized operators: operators of ONNX over real values, which are quantized again, and
weights of a few bits each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opreg.core.registry import ops
from opreg.errors import ArgumentError, AttrError, ShapeError

from ..graph import Node
from ..rows import Given, Host, find, row
from .elementwise import where
from .fused_operators import channels_second
from .layers import average_pool, global_average_pool, max_pool
from .parts import concat, gather
from .quantized import dequantize, product_of_integers, q_linear_conv, quantize
from .recurrent import lstm

DOMAIN = "com.microsoft"

row("QuantizeLinear", domain=DOMAIN)(quantize)
row("DequantizeLinear", domain=DOMAIN)(dequantize)


# ------------------------------------------------------------------------------- operators over real values


def _real(node: Node, numbers: Any, scale: Any, zero: Any) -> Any:
    """The real values that quantized integers stand for."""
    if numbers is None or scale is None:  # these inputs are required, although they follow an optional zero point
        raise node.model.fail(node.title, "an input is missing")
    return node.lift(dequantize(node, numbers, scale, zero))


def _quantize(node: Node, real: Any, scale: Any, zero: Any) -> Any:
    """Quantized numbers."""
    if scale is None:
        raise node.model.fail(node.title, "an input is missing")
    return quantize(node, real, scale, zero)


@row("QLinearAdd", "QLinearMul", domain=DOMAIN)
def q_linear_pair(node: Node, a: Given, a_scale: Given, a_zero: Given = None, b: Given = None, b_scale: Given = None,
                  b_zero: Given = None, scale: Given = None, zero: Given = None) -> Any:
    combined = ops.broadcast_add if node.op_type == "QLinearAdd" else ops.broadcast_mul
    return _quantize(node, combined(_real(node, a, a_scale, a_zero), _real(node, b, b_scale, b_zero)), scale, zero)


@row("QLinearSigmoid", domain=DOMAIN)
def q_linear_sigmoid(node: Node, x: Given, x_scale: Given, x_zero: Given = None, scale: Given = None,
                     zero: Given = None) -> Any:
    return _quantize(node, ops.sigmoid(_real(node, x, x_scale, x_zero)), scale, zero)


@row("QLinearLeakyRelu", domain=DOMAIN)
def q_linear_leaky_relu(node: Node, x: Given, x_scale: Given, x_zero: Given = None, scale: Given = None,
                        zero: Given = None, *, alpha: float = 0.01) -> Any:
    bent = ops.LeakyReLU(_real(node, x, x_scale, x_zero), act_type="leaky", slope=alpha)
    return _quantize(node, bent, scale, zero)


@row("QLinearSoftmax", domain=DOMAIN)
def q_linear_softmax(node: Node, x: Given, x_scale: Given, x_zero: Given = None, scale: Given = None,
                     zero: Given = None, *, opset: int, axis: int = -1) -> Any:
    softmax = find("", "Softmax", opset)
    if softmax is None:
        raise AttrError(f"opset={opset}: ONNX has no Softmax of this opset")
    return _quantize(node, softmax.function(node, _real(node, x, x_scale, x_zero), axis=axis), scale, zero)


@row("QLinearAveragePool", domain=DOMAIN)
def q_linear_average_pool(node: Node, x: Given, x_scale: Given, x_zero: Given = None, scale: Given = None,
                          zero: Given = None, *, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0,
                          channels_last: int = 0, count_include_pad: int = 0, pads: Any = None, strides: Any = None
                          ) -> Any:
    def pooled(real: Any) -> Any:
        return average_pool(node, real, kernel_shape=kernel_shape, auto_pad=auto_pad, ceil_mode=ceil_mode,
                            count_include_pad=count_include_pad, pads=pads, strides=strides)

    return _quantize(node, _pooled(node, pooled, _real(node, x, x_scale, x_zero), channels_last), scale, zero)


@row("QLinearGlobalAveragePool", domain=DOMAIN)
def q_linear_global_average_pool(node: Node, x: Given, x_scale: Given, x_zero: Given, scale: Given, zero: Given, *,
                                 channels_last: int = 0) -> Any:
    def pooled(real: Any) -> Any:
        return global_average_pool(node, real)

    return _quantize(node, _pooled(node, pooled, _real(node, x, x_scale, x_zero), channels_last), scale, zero)


def _pooled(node: Node, function: Callable[[Any], Any], x: Any, channels_last: int) -> Any:
    return channels_second(node, function, x) if channels_last else function(x)


@row("NhwcMaxPool", domain=DOMAIN)
def max_pool_channels_last(node: Node, x: Any, *, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0,
                           dilations: Any = None, pads: Any = None, strides: Any = None) -> Any:
    return channels_second(node, lambda x: max_pool(
        node, x, kernel_shape=kernel_shape, auto_pad=auto_pad, ceil_mode=ceil_mode, dilations=dilations, pads=pads,
        strides=strides), x)


@row("QLinearConv", domain=DOMAIN)
def q_linear_conv_of_images(node: Node, x: Any, x_scale: Any, x_zero: Any, w: Given, w_scale: Any, w_zero: Given,
                            y_scale: Any, y_zero: Any, bias: Any = None, *, auto_pad: str = "NOTSET",
                            channels_last: int = 0, dilations: Any = None, group: int = 1, kernel_shape: Any = None,
                            pads: Any = None, strides: Any = None) -> Any:
    def convolved(x: Any) -> Any:
        return q_linear_conv(node, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias, auto_pad=auto_pad,
                             dilations=dilations, group=group, pads=pads, strides=strides)

    return channels_second(node, convolved, x) if channels_last else convolved(x)


@row("MatMulIntegerToFloat", domain=DOMAIN)
def mat_mul_integer_to_float(node: Node, a: Any, b: Given, a_scale: Any, b_scale: Any, a_zero: Any = None,
                             b_zero: Given = None, bias: Any = None) -> Any:
    return product_of_integers(node, a, b, a_scale, b_scale, a_zero, b_zero, bias)


@row("DynamicQuantizeMatMul", domain=DOMAIN)
def dynamic_quantize_mat_mul(node: Node, a: Any, b: Given, b_scale: Any, b_zero: Given = None, bias: Any = None) -> Any:
    low = ops._npi_minimum_scalar(ops._np_min(a, axis=None), scalar=0.0)
    high = ops._npi_maximum_scalar(ops._np_max(a, axis=None), scalar=0.0)
    scale = (high - low) / 255
    zero = quantize(node, -low, scale, np.zeros((), np.uint8))
    return product_of_integers(node, quantize(node, a, scale, zero), b, scale, b_scale, zero, b_zero, bias)


@row("QLinearConcat", domain=DOMAIN)
def q_linear_concat(node: Node, scale: Given, zero: Given, *parts: Given, axis: int) -> Any:
    if len(parts) % 3:
        raise ShapeError(f"QLinearConcat: expected values, scale and zero point of each part, got {len(parts)} inputs")
    real = [_real(node, *parts[i:i + 3]) for i in range(0, len(parts), 3)]
    return _quantize(node, concat(node, *real, axis=axis), scale, zero)


@row("QLinearWhere", domain=DOMAIN)
def q_linear_where(node: Node, condition: Any, x: Given, x_scale: Given, x_zero: Given, y: Given, y_scale: Given,
                   y_zero: Given, scale: Given, zero: Given) -> Any:
    chosen = where(node, condition, _real(node, x, x_scale, x_zero), _real(node, y, y_scale, y_zero))
    return _quantize(node, chosen, scale, zero)


@row("DynamicQuantizeLSTM", domain=DOMAIN)
def dynamic_quantize_lstm(node: Node, x: Any, w: Given, r: Given, b: Any = None, lengths: Given = None,
                          h: Any = None, c: Any = None, p: Any = None, w_scale: Given = None, w_zero: Given = None,
                          r_scale: Given = None, r_zero: Given = None, *,
                          hidden_size: int | None = None, direction: str = "forward", activations: Any = None,
                          activation_alpha: Any = None, activation_beta: Any = None, clip: float | None = None,
                          input_forget: int = 0) -> Any:
    """An LSTM with dequantized weights. ONNX Runtime also rounds the inputs and states of its products to bytes."""
    weights = [ops.transpose(_real(node, value, _shape_by_direction(node, scale), _shape_by_direction(node, zero)),
                             axes=(0, 2, 1))
               for value, scale, zero in ((w, w_scale, w_zero), (r, r_scale, r_zero))]
    return lstm(node, x, *weights, b, lengths, h, c, p, hidden_size=hidden_size, direction=direction,
                activations=activations, activation_alpha=activation_alpha, activation_beta=activation_beta, clip=clip,
                input_forget=input_forget)


def _shape_by_direction(node: Node, value: Any) -> Any:
    """A scale or zero point for each direction, or for each element of its gates, shaped to broadcast."""
    if value is None:
        return None
    directions, *gates = node.shape(value)
    return ops._np_reshape(node.lift(value), newshape=(directions, 1, *(gates or (1,))))


# --------------------------------------------------------------------------------------- weights of a few bits


def _unpack(numbers: np.ndarray, bits: int, count: int) -> np.ndarray:
    """Unsigned integers of ``bits`` bits, unpacked from bytes: ``count`` of them in each row, the lowest bits first."""
    parts = numbers[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8(2 ** bits - 1)
    return parts.reshape(*numbers.shape[:-1], -1)[..., :count]


def _middle(bits: int) -> np.uint8:
    """The default zero point of unsigned integers with this number of bits."""
    if bits not in (2, 4, 8):
        raise AttrError(f"bits={bits}: expected 2, 4 or 8")
    return np.uint8(1 << bits - 1)


@row("MatMulNBits", domain=DOMAIN)
def mat_mul_n_bits(node: Node, a: Any, b: Host, scales: Any, zeros: Given = None, groups: Given = None,
                   bias: Any = None, *, K: int, N: int, block_size: int, accuracy_level: int = 0, bits: int = 4,
                   weight_prepacked: int = 0) -> Any:
    if groups is not None or weight_prepacked:
        raise ArgumentError("MatMulNBits: weights that are reordered by g_idx or prepacked are not supported")
    blocks, middle = -(-K // block_size), _middle(bits)
    if zeros is None:
        zeros = middle.reshape(1, 1)
    elif node.dtype(zeros) == np.uint8:
        zeros = _unpack(node.host(zeros).reshape(N, -1), bits, blocks)
    else:
        zeros = ops._np_reshape(node.lift(zeros), newshape=(N, blocks))
    weight = dequantize(node, _unpack(b.reshape(N, -1), bits, K), ops._np_reshape(scales, newshape=(N, blocks)),
                        zeros, axis=1, block_size=block_size)
    product = ops._npi_matmul(a, ops.transpose(weight))
    return product if bias is None else ops.broadcast_add(product, bias)


@row("GatherBlockQuantized", domain=DOMAIN)
def gather_block_quantized(node: Node, data: Host, indices: Given, scales: Host, zeros: Host = None, *, bits: int = 4,
                           block_size: int = 128, gather_axis: int = 0, quantize_axis: int = 1) -> Any:
    if data.dtype == np.uint8:
        middle = _middle(bits)
        data = _unpack(data, bits, data.shape[-1] * 8 // bits)
        zeros = middle if zeros is None else _unpack(zeros, bits, scales.shape[-1])
    table = dequantize(node, data, scales, zeros, axis=quantize_axis, block_size=block_size)
    return gather(node, table, indices, axis=gather_axis)


#: Values of the codes of four bits, by ``quant_type``: FP4, whose first bit is the sign, and NF4, the quantiles of a
#: normal distribution.
_FOUR_BITS = (np.array([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4, -0.0, -1 / 192, -2 / 3, -1, -1 / 3, -1 / 2,
                        -1 / 6, -1 / 4]),
              np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                        -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
                        0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                        0.7229568362236023, 1.0]))


@row("MatMulBnb4", domain=DOMAIN)
def mat_mul_bnb4(node: Node, a: Any, b: Host, scales: Any, *, K: int, N: int, block_size: int, quant_type: int,
                 training_mode: int = 0, transB: int = 1) -> Any:
    if quant_type not in (0, 1) or not transB:
        raise AttrError(f"quant_type={quant_type}, transB={transB}: expected 0 or 1, and transB=1")
    count = K * N
    blocks = -(-count // block_size) if block_size > 0 else 0
    if count <= 0 or (b.size, node.lengths(scales)) != ((count + 1) // 2, (blocks,)):
        raise ShapeError(f"K={K}, N={N}, block_size={block_size}: {b.size} bytes and scales of shape "
                         f"{node.lengths(scales)} do not fit")
    codes = np.stack([b.reshape(-1) >> 4, b.reshape(-1) & 15], axis=1).reshape(-1)
    real = np.zeros(blocks * block_size)
    real[:count] = _FOUR_BITS[quant_type][codes[:count]]
    weight = ops.broadcast_mul(node.lift(real.reshape(blocks, block_size).astype(node.dtype(a))),
                               ops.expand_dims(node.cast(scales, node.dtype(a)), axis=1))
    weight = ops.slice_axis(ops.reshape(weight, shape=(-1,)), axis=0, begin=0, end=count)
    return ops._npi_matmul(a, ops.transpose(ops.reshape(weight, shape=(N, K))))
