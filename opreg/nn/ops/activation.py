"""Activation functions of each element."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...cells.tensor import Tensor
from ...cells.typing import TensorDType, TensorLike
from ...core.mode import Recording
from ...core.registry import ops
from ...core.spec import is_floating
from ...errors import ArgumentError, ShapeError
from .lift import as_floating, like, one_axis, rank_of, tensor
from .math import clamp, maximum, minimum, where

__all__ = ["celu", "elu", "fast_gelu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
           "leaky_relu", "log_softmax", "logit", "logsigmoid", "mish", "prelu", "relu", "relu6", "rrelu", "selu",
           "sigmoid", "silu", "softmax", "softmin", "soft_shrink", "softplus", "softshrink", "softsign", "tanhshrink",
           "threshold"]

#: The parameters of ``selu``; the operator ``_selu`` has MXNet's gradient, which differs.
_ALPHA, _LAMBDA = 1.6732632423543772, 1.0507009873554805


def relu(input: TensorLike, inplace: bool = False) -> Tensor:
    """The larger of each element and zero; ``inplace`` has no effect."""
    return ops.relu(tensor(input))


def relu6(x: TensorLike) -> Tensor:
    """Elements clipped to the range from 0 to 6."""
    return ops.clip(as_floating(x), a_min=0.0, a_max=6.0)


def sigmoid(input: TensorLike) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    return ops.sigmoid(as_floating(input))


def logsigmoid(x: TensorLike) -> Tensor:
    """The logarithm of ``sigmoid``, accurate far below zero."""
    return -ops._softrelu(-as_floating(x))


def softplus(input: TensorLike, beta: float = 1, threshold: float = 20) -> Tensor:
    """``log(1 + exp(beta x)) / beta``, and ``x`` where ``beta x`` is above the threshold."""
    x = as_floating(input)
    return where(x * beta > threshold, x, ops._softrelu(x * beta) / beta)


def softsign(x: TensorLike) -> Tensor:
    """``x / (1 + |x|)``."""
    return ops.softsign(as_floating(x))


def silu(input: TensorLike) -> Tensor:
    """``x sigmoid(x)``."""
    x = as_floating(input)
    return x * ops.sigmoid(x)


def mish(x: TensorLike) -> Tensor:
    """``x tanh(log(1 + exp(x)))``."""
    x = as_floating(x)
    return x * ops.tanh(ops._softrelu(x))


def gelu(input: TensorLike, approximate: str = "none") -> Tensor:
    """``x`` times the normal distribution function of x.

    Parameters
    ----------
    approximate : {"none", "tanh"}
        The approximation "tanh" is ``0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x ** 3)))``.

    D. Hendrycks, K. Gimpel, Gaussian Error Linear Units, arXiv:1606.08415.
    """
    x = as_floating(input)
    if approximate == "none":
        return ops._gelu(x)
    if approximate != "tanh":
        raise ArgumentError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return x * 0.5 * (1 + ops.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)))


def fast_gelu(x: TensorLike) -> Tensor:
    """``x sigmoid(1.702 x)``, an approximation of ``gelu``."""
    x = as_floating(x)
    return x * ops.sigmoid(x * 1.702)


def leaky_relu(input: TensorLike, alpha: TensorLike = 0.2) -> Tensor:
    """``x``, multiplied by ``alpha`` where it is negative."""
    x = tensor(input)
    if isinstance(alpha, (int, float)):
        return ops._leaky(x, slope=float(alpha)) if is_floating(x._dt) else where(x > 0, x, x * alpha)._cast(x._dt)
    return where(x > 0, x, x * tensor(alpha))


def prelu(input: TensorLike, weight: TensorLike) -> Tensor:
    """``x``, multiplied where negative by ``weight``, one value, or one for each channel, the second axis."""
    x = as_floating(input)
    slope = like(weight, x).reshape((-1,))
    if slope.shape != (1,) and (x.ndim < 2 or slope.shape != (x.shape[1],)):
        raise ShapeError(f"prelu: a weight of shape {slope.shape} does not fit the channels of {x.shape}")
    return ops.LeakyReLU(x, slope, act_type="prelu")


def rrelu(input: TensorLike, lower: float = 1 / 8, upper: float = 1 / 3) -> Tensor:
    """``x``, multiplied where negative by a random factor from ``lower`` to ``upper``, drawn for each element and each
    call."""
    with Recording(None, True):
        y = ops.LeakyReLU(as_floating(input), act_type="rrelu", lower_bound=float(lower), upper_bound=float(upper))
    return y[0] if isinstance(y, tuple) else y


def elu(input_x: TensorLike, alpha: float = 1.0) -> Tensor:
    """``x``, ``alpha * (exp(x) - 1)`` below zero."""
    return ops._elu(as_floating(input_x), slope=float(alpha))


def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """``x``, ``alpha * (exp(x / alpha) - 1)`` below zero."""
    return ops._elu(as_floating(x) / alpha, slope=1.0) * alpha


def selu(input_x: TensorLike) -> Tensor:
    """The scaled exponential linear unit.

    G. Klambauer et al., Self-Normalizing Neural Networks, arXiv:1706.02515.
    """
    return ops._elu(as_floating(input_x), slope=_ALPHA) * _LAMBDA


def hardtanh(input: TensorLike, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Elements clipped to a range; the dtype is kept."""
    x = tensor(input)
    return clamp(x, min_val, max_val)._cast(x._dt)


def hardsigmoid(input: TensorLike) -> Tensor:
    """``(x + 3) / 6``, clipped to the range from 0 to 1; the dtype is kept."""
    x = tensor(input)
    return (ops.clip(as_floating(x) + 3, a_min=0.0, a_max=6.0) / 6)._cast(x._dt)


def hardswish(input: TensorLike) -> Tensor:
    """``x hardsigmoid(x)``; the dtype is kept."""
    x = tensor(input)
    real = as_floating(x)
    return (real * ops.clip(real + 3, a_min=0.0, a_max=6.0) / 6)._cast(x._dt)


def hardshrink(input: TensorLike, lambd: float = 0.5) -> Tensor:
    """``x`` where it is farther than ``lambd`` from zero, and 0 elsewhere."""
    x = as_floating(input)
    return where(ops.abs(x) > lambd, x, 0.0)


def softshrink(input: TensorLike, lambd: float = 0.5) -> Tensor:
    """``x`` moved towards zero by ``lambd``, and 0 where it is nearer than that."""
    x = as_floating(input)
    return maximum(x - lambd, 0.0) + minimum(x + lambd, 0.0)


soft_shrink = softshrink


def tanhshrink(input: TensorLike) -> Tensor:
    """``x - tanh(x)``."""
    x = as_floating(input)
    return x - ops.tanh(x)


def threshold(input: TensorLike, thr: float, value: float) -> Tensor:
    """``x`` where it is above ``thr``, ``value`` elsewhere."""
    x = tensor(input)
    return where(x > thr, x, value)


def logit(input: TensorLike, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``; with ``eps``, ``x`` is first clipped to ``eps`` … ``1 - eps``."""
    x = as_floating(input)
    x = x if eps is None else clamp(x, eps, 1 - eps)
    return ops.log(x / (1 - x))


def glu(x: TensorLike, axis: int = -1) -> Tensor:
    """The first half along an axis times the ``sigmoid`` of the second half."""
    x = as_floating(x)
    if rank_of(x) is not None:
        axis = one_axis(axis, x.ndim, "glu")
        if x.shape[axis] % 2:
            raise ShapeError(f"glu: axis {axis} of {x.shape} has an odd length")
    left, right = ops.SliceChannel(x, num_outputs=2, axis=axis)
    return left * ops.sigmoid(right)


def softmax(input: TensorLike, axis: int | Sequence[int] = -1, *, dtype: TensorDType = None) -> Tensor:
    """Exponentials scaled to a sum of one along an axis."""
    x = tensor(input)
    x = as_floating(x) if dtype is None else x.astype(dtype)
    return ops.ones_like(x) if rank_of(x) == 0 else ops.softmax(x, axis=_axis(axis))


def log_softmax(logits: TensorLike, axis: int | Sequence[int] = -1) -> Tensor:
    """The logarithm of ``softmax``, computed without its rounding."""
    x = as_floating(logits)
    return ops.zeros_like(x) if rank_of(x) == 0 else ops.log_softmax(x, axis=_axis(axis))


def softmin(x: TensorLike, axis: int | Sequence[int] = -1, *, dtype: TensorDType = None) -> Tensor:
    """The ``softmax`` of ``-x``."""
    return softmax(-as_floating(x), axis, dtype=dtype)


def _axis(axis: int | Sequence[int]) -> int:
    if isinstance(axis, (tuple, list)):
        if len(axis) != 1:
            raise ArgumentError(f"softmax: expected one axis, got {axis!r}")
        (axis,) = axis
    if isinstance(axis, (bool, np.bool_)) or not isinstance(axis, (int, np.integer)):
        raise ArgumentError(f"softmax: axis must be an int, got {type(axis).__name__}")
    return int(axis)
