"""Rows of quantised operators, by their definitions with integers, a scale and a zero point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.core.registry import ops
from opreg.errors import ShapeError

from ..graph import Node
from ..rows import Given, Host, row
from ..tensors import computes, dtype_of
from .elementwise import converted
from .layers import conv

__all__: list[str] = []


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
    wanted = node.dtype(zero) if zero is not None else dtype_of(output_dtype) if output_dtype else np.dtype(np.uint8)
    if computes(wanted) and wanted.kind in "iu" and computes(node.dtype(scale)) and not isinstance(x, np.ndarray):
        wide = np.dtype(np.float32)
        divided = ops.broadcast_div(node.cast(x, wide), node.cast(node.lift(_spread(node, x, scale, axis, block_size)),
                                                                  wide))
        whole = ops._npi_around(divided)
        if zero is not None:
            whole = ops.broadcast_add(whole, node.cast(node.lift(_spread(node, x, zero, axis, block_size)), wide))
        low, high = _range(wanted)
        return ops.Cast(ops.clip(whole, a_min=low, a_max=high), dtype=wanted)
    numbers, step = node.host(x), _spread(node, x, node.host(scale), axis, block_size)
    divided = numbers.astype(np.float32) / step.astype(np.float32)
    if precision:
        divided = (numbers.astype(dtype_of(precision)) / step.astype(dtype_of(precision))).astype(np.float32)
    offset = 0 if zero is None else _spread(node, x, node.host(zero), axis, block_size).astype(np.float32)
    if wanted.name.startswith("float"):
        return converted(divided + offset, wanted, bool(saturate))
    low, high = _range(wanted)
    return np.clip(np.rint(divided) + offset, low, high).astype(np.int32).astype(wanted)


@row("DequantizeLinear")
def dequantize(node: Node, x: Given, scale: Given, zero: Given = None, *, axis: int = 1, block_size: int = 0,
               output_dtype: int = 0) -> Any:
    result = dtype_of(output_dtype) if output_dtype else node.dtype(scale)
    if computes(node.dtype(x)) and not isinstance(x, np.ndarray):
        wide = node.cast(x, np.float32)
        if zero is not None:
            wide = ops.broadcast_sub(wide, node.cast(node.lift(_spread(node, x, zero, axis, block_size)), np.float32))
        step = node.lift(_spread(node, x, scale, axis, block_size))
        return node.cast(ops.broadcast_mul(wide, node.cast(step, np.float32)), result)
    wide = node.host(x).astype(np.float32)
    if zero is not None:
        wide = wide - _spread(node, x, node.host(zero), axis, block_size).astype(np.float32)
    return (wide * _spread(node, x, node.host(scale), axis, block_size).astype(np.float32)).astype(result)


def _centred(x: np.ndarray, zero: np.ndarray | None, axis: int = 0) -> np.ndarray:
    """Integers minus their zero point, in a dtype wide enough for sums of products."""
    whole = x.astype(np.int64)
    if zero is None:
        return whole
    if zero.size == 1:
        return whole - zero.reshape(()).astype(np.int64)
    if zero.ndim == 1:
        wide = [1] * x.ndim
        wide[axis] = -1
        zero = zero.reshape(wide)
    return whole - zero.astype(np.int64)


@row("MatMulInteger")
def mat_mul_integer(node: Node, a: Host, b: Host, a_zero: Host = None, b_zero: Host = None) -> Any:
    return np.matmul(_centred(a, a_zero, max(a.ndim - 2, 0)), _centred(b, b_zero, b.ndim - 1)).astype(np.int32)


@row("QLinearMatMul")
def q_linear_mat_mul(node: Node, a: Host, a_scale: Host, a_zero: Host, b: Host, b_scale: Host, b_zero: Host,
                     y_scale: Host, y_zero: Host) -> Any:
    product = np.matmul(_centred(a, a_zero, max(a.ndim - 2, 0)), _centred(b, b_zero, b.ndim - 1))
    left = a_scale.astype(np.float32)
    factor = (left[:, None] if left.ndim == 1 and left.size > 1 else left) * b_scale.astype(np.float32)
    return _requantized(product * (factor / y_scale.astype(np.float32)), y_zero)


def _requantized(numbers: np.ndarray, zero: np.ndarray) -> np.ndarray:
    low, high = _range(zero.dtype)
    return np.clip(np.rint(numbers) + zero.astype(np.float32), low, high).astype(np.int32).astype(zero.dtype)


def _convolved(node: Node, x: np.ndarray, w: np.ndarray, given: dict[str, Any]) -> np.ndarray:
    """A convolution of integers, exact in float64."""
    result = conv(node, node.lift(x.astype(np.float64)), node.lift(w.astype(np.float64)), None, **given)
    return np.rint(result.asnumpy()).astype(np.int64)


@row("ConvInteger")
def conv_integer(node: Node, x: Host, w: Host, x_zero: Host = None, w_zero: Host = None, *, auto_pad: str = "NOTSET",
                 dilations: Any = None, group: int = 1, kernel_shape: Any = None, pads: Any = None,
                 strides: Any = None) -> Any:
    given = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "pads": pads, "strides": strides}
    return _convolved(node, _centred(x, x_zero), _centred(w, w_zero), given).astype(np.int32)


@row("QLinearConv")
def q_linear_conv(node: Node, x: Host, x_scale: Host, x_zero: Host, w: Host, w_scale: Host, w_zero: Host, y_scale: Host,
                  y_zero: Host, bias: Host = None, *, auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
                  kernel_shape: Any = None, pads: Any = None, strides: Any = None) -> Any:
    given = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "pads": pads, "strides": strides}
    whole = _convolved(node, _centred(x, x_zero), _centred(w, w_zero), given)
    wide: Sequence[int] = (1, -1, *[1] * (whole.ndim - 2))
    if bias is not None:
        whole = whole + bias.astype(np.int64).reshape(wide)
    factor = x_scale.astype(np.float32) * w_scale.astype(np.float32) / y_scale.astype(np.float32)
    return _requantized(whole * (factor.reshape(wide) if factor.size > 1 else factor), y_zero)
