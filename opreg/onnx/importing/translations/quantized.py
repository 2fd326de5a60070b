"""Rows of quantised operators, by their definitions with integers, a scale and a zero point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opreg.core.registry import ops
from opreg.core.spec import is_known
from opreg.errors import ShapeError

from ..graph import Node
from ..rows import Given, row
from ..tensors import computes, dtype_of
from .elementwise import converted
from .layers import conv

__all__ = ["product_of_integers"]


def _spread(node: Node, x: Any, value: Any, axis: int, block: int) -> Any:
    """A scale or zero point reshaped to broadcast: one for all elements, one per index of an axis, or one per block of
    it."""
    shape = tuple(node.lengths(value))
    if math.prod(shape) == 1 and len(shape) < 2 and not block:
        return value.reshape(()) if isinstance(value, np.ndarray) else ops._np_reshape(value, newshape=())
    axis = node.axis(axis, x)
    if block:
        length = node.shape(x)[axis]
        places = np.minimum(np.arange(length) // block, shape[axis] - 1)
        return np.take(value, places, axis) if isinstance(value, np.ndarray) else ops.take(
            value, node.lift(places), axis=axis)
    if len(shape) == 1:
        if shape[0] != node.lengths(x)[axis]:
            raise ShapeError(f"{shape[0]} scales for an axis of length {node.lengths(x)[axis]}")
        wide = [1] * node.rank(x)
        wide[axis] = -1
        return value.reshape(wide) if isinstance(value, np.ndarray) else ops._np_reshape(value, newshape=tuple(wide))
    return value


def _held(value: Any) -> Any:
    """A constant, cast to float32 if no operator computes in its dtype; such a dtype has few bits, so float32 holds
    its values."""
    return value.astype(np.float32) if isinstance(value, np.ndarray) and not computes(value.dtype) else value


def _range(dtype: np.dtype) -> tuple[int, int]:
    name = dtype.name
    if name in ("int4", "uint4", "int2", "uint2"):
        bits = int(name[-1])
        return (0, 2 ** bits - 1) if name[0] == "u" else (-2 ** (bits - 1), 2 ** (bits - 1) - 1)
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


@row("QuantizeLinear")
def quantize(node: Node, x: Given, scale: Given, zero: Given = None, *, axis: int = 1, block_size: int = 0,
             output_dtype: int = 0, precision: int = 0, saturate: int = 1) -> Any:
    target = node.dtype(zero) if zero is not None else dtype_of(output_dtype) if output_dtype else np.dtype(np.uint8)
    if computes(target) and target.kind in "iu" and computes(node.dtype(scale)) and not isinstance(x, np.ndarray):
        wide = np.dtype(np.float32)
        divided = ops.broadcast_div(node.cast(x, wide), node.cast(node.lift(_spread(node, x, scale, axis, block_size)),
                                                                  wide))
        rounded = ops._npi_around(divided)
        if zero is not None:
            rounded = ops.broadcast_add(rounded, node.cast(node.lift(_spread(node, x, zero, axis, block_size)), wide))
        low, high = _range(target)
        return ops.Cast(ops.clip(rounded, a_min=low, a_max=high), dtype=target)
    numbers, step = node.host(x), _spread(node, x, node.host(scale), axis, block_size)
    divided = numbers.astype(np.float32) / step.astype(np.float32)
    if precision:
        divided = (numbers.astype(dtype_of(precision)) / step.astype(dtype_of(precision))).astype(np.float32)
    offset = 0 if zero is None else _spread(node, x, node.host(zero), axis, block_size).astype(np.float32)
    if target.name.startswith("float"):
        return converted(divided + offset, target, bool(saturate))
    low, high = _range(target)
    return np.clip(np.rint(divided) + offset, low, high).astype(np.int32).astype(target)


@row("DequantizeLinear")
def dequantize(node: Node, x: Given, scale: Given, zero: Given = None, *, axis: int = 1, block_size: int = 0,
               output_dtype: int = 0) -> Any:
    result = dtype_of(output_dtype) if output_dtype else node.dtype(scale)
    x, zero = _held(x), _held(zero)
    if computes(node.dtype(x)) and not (isinstance(x, np.ndarray) and isinstance(scale, np.ndarray)):
        wide = node.cast(node.lift(x), np.float32)
        if zero is not None:
            wide = ops.broadcast_sub(wide, node.cast(node.lift(_spread(node, x, zero, axis, block_size)), np.float32))
        step = node.lift(_spread(node, x, scale, axis, block_size))
        return node.cast(ops.broadcast_mul(wide, node.cast(step, np.float32)), result)
    wide = node.host(x).astype(np.float32)
    if zero is not None:
        wide = wide - _spread(node, x, node.host(zero), axis, block_size).astype(np.float32)
    return (wide * _spread(node, x, node.host(scale), axis, block_size).astype(np.float32)).astype(result)


def _wide(node: Node, value: Any, dtype: type = np.float64) -> Any:
    return node.cast(node.lift(value), dtype)


def _exact(node: Node, weight: Any, zero: Any, axis: int, summed: tuple[int, ...]) -> type:
    """The dtype in which sums of bytes times weights, along some axes, are exact: float32 holds 24 bits."""
    if isinstance(weight, np.ndarray) and (zero is None or isinstance(zero, np.ndarray)):
        integers = weight.astype(np.int32)
        if zero is not None:
            integers -= _spread(node, weight, zero, axis, 0)
        reach: Any = np.abs(integers).sum(summed).max(initial=0)
    else:
        lengths = tuple([node.lengths(weight)[each] for each in summed])
        reach = 255 * math.prod(lengths) if is_known(lengths) else math.inf
    return np.float32 if reach * 255 <= 2 ** 24 else np.float64


def _less_zero_point(node: Node, x: Any, zero: Any, axis: int, dtype: type) -> Any:
    """Integers less their zero point."""
    wide = _wide(node, x, dtype)
    return wide if zero is None else ops.broadcast_sub(wide, _wide(node, _spread(node, x, zero, axis, 0), dtype))


def _multiply(node: Node, a: Any, a_zero: Any, b: Any, b_zero: Any) -> Any:
    """The product of matrices of integers."""
    dtype = _exact(node, b, b_zero, node.rank(b) - 1, (max(node.rank(b) - 2, 0),))
    return ops._npi_matmul(_less_zero_point(node, a, a_zero, max(node.rank(a) - 2, 0), dtype),
                           _less_zero_point(node, b, b_zero, node.rank(b) - 1, dtype))


def _convolve(node: Node, x: Any, x_zero: Any, w: Any, w_zero: Any, attrs: dict[str, Any]) -> Any:
    """The convolution of integers; kernels of any kind leave it within a rounding."""
    dtype = _exact(node, w, w_zero, 0, tuple(range(1, node.rank(w))))
    return ops._npi_around(conv(node, _less_zero_point(node, x, x_zero, 0, dtype),
                                _less_zero_point(node, w, w_zero, 0, dtype), None,
                                **attrs))


def _summed(node: Node, whole: Any) -> Any:
    """Sums as they fit into 32 bits."""
    return node.cast(node.cast(whole, np.int64), np.int32)


def _requantize(node: Node, numbers: Any, zero: Any) -> Any:
    target = node.dtype(zero)
    low, high = _range(target)
    moved = ops.broadcast_add(ops._npi_around(numbers), _wide(node, _single(node, zero)))
    return ops.Cast(ops.clip(moved, a_min=low, a_max=high), dtype=target)


def _single(node: Node, value: Any) -> Any:
    """A tensor; one with a single element gets no axes."""
    return ops._np_reshape(node.lift(value), newshape=()) if math.prod(node.shape(value)) == 1 else node.lift(value)


def _factor(node: Node, a: Any, b: Any, result: Any) -> Any:
    """The product of the scales of two factors, divided by the scale ``result`` of the output unless that is None."""
    product = ops.broadcast_mul(_wide(node, a, np.float32), _wide(node, b, np.float32))
    return _wide(node, product if result is None else ops.broadcast_div(product, _wide(node, result, np.float32)))


def product_of_integers(node: Node, a: Any, b: Any, a_scale: Any, b_scale: Any, a_zero: Any, b_zero: Any,
                        bias: Any = None) -> Any:
    """The real product of quantized matrices, each with one scale, or the second with one for each column."""
    factor = node.cast(_factor(node, _single(node, a_scale), _single(node, b_scale), None), np.float32)
    product = node.cast(_multiply(node, a, a_zero, b, b_zero), np.float32)
    product = ops.broadcast_mul(product, factor)
    return product if bias is None else ops.broadcast_add(product, bias)


@row("MatMulInteger")
def mat_mul_integer(node: Node, a: Any, b: Given, a_zero: Any = None, b_zero: Given = None) -> Any:
    return _summed(node, _multiply(node, a, a_zero, b, b_zero))


@row("QLinearMatMul")
def q_linear_mat_mul(node: Node, a: Any, a_scale: Any, a_zero: Any, b: Given, b_scale: Any, b_zero: Given,
                     y_scale: Any, y_zero: Any) -> Any:
    rows = _spread(node, a, a_scale, max(node.rank(a) - 2, 0), 0)
    factor = _factor(node, rows, _single(node, b_scale), _single(node, y_scale))
    product = _wide(node, _multiply(node, a, a_zero, b, b_zero))
    return _requantize(node, ops.broadcast_mul(product, factor), y_zero)


@row("ConvInteger")
def conv_integer(node: Node, x: Any, w: Given, x_zero: Any = None, w_zero: Given = None, *, auto_pad: str = "NOTSET",
                 dilations: Any = None, group: int = 1, kernel_shape: Any = None, pads: Any = None,
                 strides: Any = None) -> Any:
    attrs = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "pads": pads, "strides": strides}
    return _summed(node, _convolve(node, x, x_zero, w, w_zero, attrs))


@row("QLinearConv")
def q_linear_conv(node: Node, x: Any, x_scale: Any, x_zero: Any, w: Given, w_scale: Any, w_zero: Given, y_scale: Any,
                  y_zero: Any, bias: Any = None, *, auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
                  kernel_shape: Any = None, pads: Any = None, strides: Any = None) -> Any:
    attrs = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "pads": pads, "strides": strides}
    integers = _wide(node, _convolve(node, x, x_zero, w, w_zero, attrs))
    wide = (1, -1, *[1] * (node.rank(x) - 2))
    if bias is not None:
        integers = ops.broadcast_add(integers, ops._np_reshape(_wide(node, bias), newshape=wide))
    scales = _single(node, w_scale)
    if node.rank(scales):
        scales = ops._np_reshape(scales, newshape=wide)
    factor = _factor(node, _single(node, x_scale), scales, _single(node, y_scale))
    return _requantize(node, ops.broadcast_mul(integers, factor), y_zero)


@row("QGemm", domain="com.microsoft")
def q_gemm(node: Node, a: Any, a_scale: Any, a_zero: Any, b: Given, b_scale: Any, b_zero: Given, bias: Any = None,
           y_scale: Any = None, y_zero: Any = None, *, alpha: float = 1.0, transA: int = 0, transB: int = 0) -> Any:
    a = ops.transpose(a) if transA else a
    if transB:
        b = b.T if isinstance(b, np.ndarray) else ops.transpose(b)
    integers = _wide(node, _multiply(node, a, a_zero, b, b_zero))
    if bias is not None:
        integers = ops.broadcast_add(integers, _wide(node, bias))
    factor = _factor(node, _single(node, a_scale) * alpha, _single(node, b_scale), None if y_scale is None else _single(
        node, y_scale))
    numbers = ops.broadcast_mul(integers, factor)
    if y_scale is None:
        return node.cast(numbers, node.dtype(a_scale))
    return _requantize(node, numbers, np.zeros((), node.dtype(a)) if y_zero is None else y_zero)
