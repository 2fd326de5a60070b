"""Rows of elementwise operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.cells.tensor_base import TensorBase
from opreg.core.registry import ops
from opreg.core.spec import is_floating
from opreg.core.value import BINARY

from ..graph import Node
from ..rows import Given, Host, row
from ..tensors import computes, dtype_of

#: Unary operators, by name, with the equivalent operator of this library.
_UNARY = {"Abs": "abs", "Acos": "arccos", "Acosh": "arccosh", "Asin": "arcsin", "Asinh": "arcsinh", "Atan": "arctan",
          "Atanh": "arctanh", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp",
          "Floor": "floor",
          "Log": "log", "Neg": "negative", "Reciprocal": "reciprocal", "Relu": "relu", "Round": "_npi_around",
          "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Softsign": "softsign", "Sqrt": "sqrt",
          "Tan": "tan", "Tanh": "tanh", "IsNaN": "_npi_isnan", "Not": "_npi_logical_not",
          "BitwiseNot": "_npi_bitwise_not"}

#: Binary operators, which broadcast.
_BINARY = {"Add": "broadcast_add", "Sub": "broadcast_sub", "Mul": "broadcast_mul",
           "And": "_npi_logical_and", "Or": "_npi_logical_or", "Xor": "_npi_logical_xor",
           "BitwiseAnd": "_npi_bitwise_and", "BitwiseOr": "_npi_bitwise_or", "BitwiseXor": "_npi_bitwise_xor",
           "Equal": "_npi_equal", "Greater": "_npi_greater", "GreaterOrEqual": "_npi_greater_equal",
           "Less": "_npi_less", "LessOrEqual": "_npi_less_equal"}

#: Arithmetic operators with a scalar on the right, and on the left.
_WITH_NUMBERS = {broadcast: (right, left) for _, broadcast, right, left in BINARY.values()} | {
    name: (f"{name}_scalar",) * 2 for name in ("_npi_maximum", "_npi_minimum")}

#: Operators with any number of inputs.
_SEVERAL = {"Sum": "broadcast_add", "Max": "_npi_maximum", "Min": "_npi_minimum"}


def _unary(name: str, ours: str) -> None:
    def apply(node: Node, x: Any) -> Any:
        return getattr(ops, ours)(x)

    row(name)(apply)


def _number(node: Node, value: Any, other: Any) -> float | None:
    """The value of a constant scalar operand, if it has the other operand's floating dtype and at most as many axes;
    otherwise None."""
    if not isinstance(value, np.ndarray) or value.size != 1 or not isinstance(other, TensorBase):
        return None
    dtype = node.dtype(other)
    fits = value.dtype == dtype and is_floating(dtype) and (not value.ndim or value.ndim <= node.rank(other))
    return float(value.reshape(-1)[0]) if fits else None


def _apply_binary(node: Node, ours: str, a: Any, b: Any) -> Any:
    """A binary operator; a constant scalar operand becomes an attribute, which can be fused and specialised."""
    if ours in _WITH_NUMBERS:
        right, left = _WITH_NUMBERS[ours]
        number = _number(node, b, a)
        if number is not None:
            return getattr(ops, right)(a, scalar=number)
        number = _number(node, a, b)
        if number is not None:
            return getattr(ops, left)(b, scalar=number)
    return getattr(ops, ours)(node.lift(a), node.lift(b))


def _binary(name: str, ours: str) -> None:
    def apply(node: Node, a: Given, b: Given) -> Any:
        return _apply_binary(node, ours, a, b)

    def aligned(node: Node, a: Any, b: Any, *, axis: int | None = None, broadcast: int = 0) -> Any:
        return getattr(ops, ours)(a, _align_operand(node, a, b, axis))

    if name in ("Add", "Sub", "Mul", "And", "Or", "Xor", "Equal", "Greater", "Less"):
        row(name)(aligned)
        row(name, since=7)(apply)
    else:
        row(name)(apply)


def _align_operand(node: Node, a: Any, b: Any, axis: int | None) -> Any:
    """The second operand before opset 7, whose axes align with those of the first from ``axis`` on."""
    if axis is None:
        return b
    missing = node.rank(a) - node.axis(axis, a) - node.rank(b)
    return ops._np_reshape(node.lift(b), newshape=(*node.shape(b), *[1] * missing)) if missing > 0 else b


for _name, _ours in _UNARY.items():
    _unary(_name, _ours)
for _name, _ours in _BINARY.items():
    _binary(_name, _ours)


def _register_folded(name: str, ours: str) -> None:
    def apply(node: Node, *values: Given) -> Any:
        result = values[0]
        for value in values[1:]:
            result = _apply_binary(node, ours, result, value)
        return node.lift(result)

    row(name)(apply)


for _name, _ours in _SEVERAL.items():
    _register_folded(_name, _ours)


@row("Mean")
def mean(node: Node, *values: Any) -> Any:
    total = values[0]
    for value in values[1:]:
        total = ops.broadcast_add(total, value)
    return total / len(values)


@row("Div")
def div(node: Node, a: Given, b: Given, *, axis: int | None = None, broadcast: int = 0) -> Any:
    dtype = node.dtype(a)
    b = _align_operand(node, a, b, axis)
    if is_floating(dtype):
        return _apply_binary(node, "broadcast_div", a, b)
    a, b = node.lift(a), node.lift(b)
    quotient = ops._npi_floor_divide(a, b)
    if dtype.kind == "u":
        return quotient
    # Integer division truncates.
    rest = ops.broadcast_sub(a, ops.broadcast_mul(quotient, b))
    up = ops._npi_logical_and(ops._npi_not_equal_scalar(rest, scalar=0), ops._npi_less_scalar(quotient, scalar=0))
    return ops.broadcast_add(quotient, node.cast(up, dtype))


@row("Pow")
def power(node: Node, a: Given, b: Given, *, axis: int | None = None, broadcast: int = 0) -> Any:
    b = _align_operand(node, a, b, axis)
    dtype, other = node.dtype(a), node.dtype(b)
    if is_floating(dtype) and isinstance(b, np.ndarray) and other.kind in "iu" and b.size == 1:
        b, other = b.astype(dtype), dtype
    if dtype == other:
        return _apply_binary(node, "broadcast_power", a, b)
    a, b = node.lift(a), node.lift(b)
    common = np.result_type(dtype, other) if is_floating(dtype) or is_floating(other) else dtype
    return node.cast(ops.broadcast_power(node.cast(a, common), node.cast(b, common)), dtype)


@row("Mod")
def modulo(node: Node, a: Any, b: Any, *, fmod: int = 0) -> Any:
    result = ops._npi_mod(a, b)
    if not fmod or node.dtype(a).kind == "u":
        return result
    # The remainder gets the sign of the dividend.
    wrong = ops._npi_logical_and(ops._npi_not_equal_scalar(result, scalar=0), ops._npi_not_equal(
        ops._npi_less_scalar(result, scalar=0), ops._npi_less_scalar(a, scalar=0)))
    return ops._npi_where(wrong, ops.broadcast_sub(result, b), result)


@row("BitShift")
def bit_shift(node: Node, a: Host, b: Host, *, direction: str) -> Any:
    return np.left_shift(a, b) if direction == "LEFT" else np.right_shift(a, b)


@row("Where")
def where(node: Node, condition: Any, a: Given, b: Given) -> Any:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and not computes(a.dtype):
        return np.where(node.host(condition), a, b)
    return ops._npi_where(condition, node.lift(a), node.lift(b))


@row("Equal", since=19)
def equal(node: Node, a: Given, b: Given) -> Any:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.asarray(np.equal(a, b), bool)
    return ops._npi_equal(node.lift(a), node.lift(b))


@row("IsInf")
def is_inf(node: Node, x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    if detect_negative and detect_positive:
        return ops._npi_isinf(x)
    if not detect_negative and not detect_positive:
        return ops._npi_logical_and_scalar(ops._npi_isinf(x), scalar=0)
    return ops._npi_isneginf(x) if detect_negative else ops._npi_isposinf(x)


# ------------------------------------------------------------------------------------------------ activations


@row("LeakyRelu")
def leaky_relu(node: Node, x: Any, *, alpha: float = 0.01) -> Any:
    return ops.LeakyReLU(x, act_type="leaky", slope=alpha)


@row("Elu")
def elu(node: Node, x: Any, *, alpha: float = 1.0) -> Any:
    return ops.LeakyReLU(x, act_type="elu", slope=alpha)


@row("Celu")
def celu(node: Node, x: Any, *, alpha: float = 1.0) -> Any:
    return ops.relu(x) + ops.negative(ops.relu(ops.expm1(x / alpha) * -alpha))


@row("Selu")
def selu(node: Node, x: Any, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
         ) -> Any:
    return ops.LeakyReLU(x, act_type="elu", slope=alpha) * gamma


@row("PRelu")
def prelu(node: Node, x: Any, slope: Any) -> Any:
    negative = ops._npi_less_scalar(x, scalar=0)
    if node.opset < 7 and node.rank(slope) == 1 and node.rank(x) > 2:  # one value per channel
        slope = ops._np_reshape(slope, newshape=(-1, *[1] * (node.rank(x) - 2)))
    return ops._npi_where(negative, ops.broadcast_mul(x, slope), x)


@row("ThresholdedRelu")
def thresholded_relu(node: Node, x: Any, *, alpha: float = 1.0) -> Any:
    return ops._npi_where(ops._npi_greater_scalar(x, scalar=alpha), x, ops.zeros_like(x))


@row("HardSigmoid")
def hard_sigmoid(node: Node, x: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return ops.hard_sigmoid(x, alpha=alpha, beta=beta)


@row("HardSwish")
def hard_swish(node: Node, x: Any) -> Any:
    return x * ops.hard_sigmoid(x, alpha=1 / 6, beta=0.5)


@row("Softplus")
def softplus(node: Node, x: Any) -> Any:
    return ops.Activation(x, act_type="softrelu")


@row("Mish")
def mish(node: Node, x: Any) -> Any:
    return x * ops.tanh(ops.Activation(x, act_type="softrelu"))


@row("Swish")
def swish(node: Node, x: Any, *, alpha: float = 1.0) -> Any:
    return x * ops.sigmoid(x * alpha)


@row("Gelu")
def gelu(node: Node, x: Any, *, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return x * 0.5 * (ops.tanh((x + x * x * x * 0.044715) * 0.7978845608028654) + 1.0)
    return x * 0.5 * (ops.erf(x * 0.7071067811865476) + 1.0)


@row("Shrink")
def shrink(node: Node, x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    below, above = ops._npi_less_scalar(x, scalar=-lambd), ops._npi_greater_scalar(x, scalar=lambd)
    dtype = node.dtype(x)
    return node.cast((x + bias) * node.cast(below, dtype) + (x - bias) * node.cast(above, dtype), dtype)


@row("Clip")
def clip_by_attributes(node: Node, x: Any, *, min: float = -3.4028234663852886e38, max: float = 3.4028234663852886e38
                       ) -> Any:
    return ops.clip(x, a_min=min, a_max=max)


@row("Clip", since=11)
def clip(node: Node, x: Any, low: Given = None, high: Given = None) -> Any:
    bounds = _number(node, low, x), _number(node, high, x)
    if None not in bounds:
        return ops.clip(x, a_min=bounds[0], a_max=bounds[1])
    if low is not None:
        x = _apply_binary(node, "_npi_maximum", x, low)
    return x if high is None else _apply_binary(node, "_npi_minimum", x, high)


# ------------------------------------------------------------------------------------------------------ dtypes


def converted(array: np.ndarray, dtype: np.dtype, saturate: bool = True, rounding: str = "up") -> np.ndarray:
    """An array in any dtype of ONNX."""
    if dtype.kind == "O":
        return np.array([_text(each, array.dtype) for each in array.reshape(-1)], object).reshape(array.shape)
    if array.dtype.kind in "OUS":
        kind: type = int if dtype.kind in "iu" else float
        numbers: np.ndarray = np.asarray([kind(float(each)) for each in array.reshape(-1)], kind)
        return converted(numbers.reshape(array.shape), dtype)
    with np.errstate(all="ignore"):
        if dtype.name.startswith("float8_e8m0"):
            return _powers(array, saturate, rounding).astype(dtype)
        if dtype.name.startswith("float8") and saturate:
            return _cast_saturated(array, dtype)
        if dtype.name in ("int4", "uint4", "int2", "uint2"):
            wide = array.astype(np.float32 if array.dtype.kind not in "iu" else array.dtype)
            return wide.astype(np.int64).astype(np.int8 if dtype.name[0] == "i" else np.uint8).astype(dtype)
        return array.astype(dtype)


def _cast_saturated(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    import ml_dtypes

    most = float(ml_dtypes.finfo(dtype).max)
    wide = array.astype(np.float32)
    cut = np.where(np.isnan(wide), wide, np.clip(wide, -most, most))
    return cut.astype(dtype)


def _powers(array: np.ndarray, saturate: bool, rounding: str) -> np.ndarray:
    """Values as powers of two from 2**-127 to 2**127, rounded as requested."""
    wide = array.astype(np.float64)
    exponent = np.log2(np.abs(wide))
    lower = np.floor(exponent)
    if rounding == "nearest":
        exponent = lower + (np.exp2(exponent - lower) >= 1.5)
    else:
        exponent = np.ceil(exponent) if rounding == "up" else lower
    if saturate:
        exponent = np.clip(exponent, -127, 127)
    return np.where(np.isfinite(wide) & (np.abs(exponent) <= 127), np.exp2(exponent), np.nan)


def _text(number: Any, dtype: np.dtype) -> str:
    if isinstance(number, str):
        return number
    if dtype.kind in "iu":
        return str(int(number))
    return str(number)


@row("Cast")
def cast(node: Node, x: Given, *, to: Any, saturate: int = 1, round_mode: str = "up") -> Any:
    target = np.dtype(to.lower()) if isinstance(to, str) else dtype_of(to)  # a name before opset 6
    have = node.dtype(x)
    if computes(target) and computes(have) and not isinstance(x, np.ndarray):
        return ops.Cast(x, dtype=target)
    return converted(node.host(x), target, bool(saturate), round_mode)


@row("CastLike")
def cast_like(node: Node, x: Given, like: Given, *, saturate: int = 1, round_mode: str = "up") -> Any:
    target, have = node.dtype(like), node.dtype(x)
    if computes(target) and computes(have) and not isinstance(x, np.ndarray):
        return ops.Cast(x, dtype=target)
    return converted(node.host(x), target, bool(saturate), round_mode)


@row("BitCast")
def bit_cast(node: Node, x: Host, *, to: int) -> Any:
    target = dtype_of(to)
    return np.ascontiguousarray(x).view(target).reshape(x.shape)


def sequence_of_numbers(value: Any) -> Sequence[int]:
    """A list of Python integers."""
    return [int(each) for each in np.asarray(value).reshape(-1)]
