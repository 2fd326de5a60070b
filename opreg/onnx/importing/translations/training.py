"""Rows of losses, gradients, weight updates, random values and signal processing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opreg.cells.grad import grad
from opreg.cells.tensor import Tensor
from opreg.core.registry import ops
from opreg.errors import ArgumentError, AttrError

from ..graph import Node
from ..rows import Given, Host, row
from ..tensors import dtype_of
from .shapes import MOST

_TRAINING = "ai.onnx.preview.training"


# ------------------------------------------------------------------------------------------------------ losses


def _likelihood(node: Node, x: Any, target: Any, weight: Any, ignored: int | None, reduction: str) -> Any:
    dtype = node.dtype(x)
    target = node.cast(target, np.int64)
    share: Any = None
    if ignored is not None:
        counts = ops._npi_not_equal_scalar(target, scalar=ignored)
        target = ops._npi_where(counts, target, ops.zeros_like(target))
        share = node.cast(counts, dtype)
    loss = ops.negative(ops.pick(x, target, axis=1))
    if weight is not None:
        weights = ops.take(weight, target, axis=0)
        share = weights if share is None else weights * share
    loss = loss if share is None else loss * share
    if reduction == "none":
        return loss
    total = ops._np_sum(loss)
    if reduction == "sum":
        return total
    return total / ops._np_sum(share) if share is not None else ops._npi_mean(loss)


@row("NegativeLogLikelihoodLoss")
def negative_log_likelihood(node: Node, x: Any, target: Any, weight: Any = None, *, ignore_index: int | None = None,
                            reduction: str = "mean") -> Any:
    return _likelihood(node, x, target, weight, ignore_index, reduction)


@row("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(node: Node, x: Any, target: Any, weight: Any = None, *, ignore_index: int | None = None,
                          reduction: str = "mean") -> Any:
    logs = ops.log_softmax(x, axis=1)
    loss = _likelihood(node, logs, target, weight, ignore_index, reduction)
    return (loss, logs) if len(node.outputs) > 1 else loss


# ------------------------------------------------------------------------------------------------- optimizers


@row("Gradient", domain=_TRAINING)
def gradient(node: Node, *values: Any, xs: Any, y: str, zs: Any = None) -> Any:
    names = [*xs, *(zs or ())]
    if len(values) != len(names):
        raise ArgumentError(f"Gradient: {len(values)} inputs for {len(names)} names")
    graph, outside = node.graph, node.outside

    def function(*inputs: Any) -> Any:
        values = {**graph.initializers, **outside, **dict(zip(names, inputs))}
        changed = set(names)
        for each in graph.nodes:
            if each is node:
                break
            if changed.isdisjoint(each.reads()) or (not changed.isdisjoint(names) and set(each.outputs) <= set(names)):
                continue
            for name, result in zip(each.outputs, each.run([values.get(name) for name in each.inputs], values)):
                if name not in names:
                    values[name] = result
                    changed.add(name)
        return values[y]

    results = grad(function, tuple(range(len(xs))))(*values)
    return tuple(results) if isinstance(results, (list, tuple)) else results


def _updates(node: Node, values: tuple[Any, ...], groups: int, update: Callable[..., tuple[Any, ...]]) -> Any:
    """New weights and states of several weights, grouped by kind."""
    count = len(values) // groups
    columns = [update(*[values[kind * count + i] for kind in range(groups)]) for i in range(count)]
    return tuple([column[kind] for kind in range(len(columns[0])) for column in columns])


@row("Adagrad", domain=_TRAINING)
def adagrad(node: Node, rate: Host, step: Host, *values: Any, decay_factor: float = 0.0, epsilon: float = 1e-6,
            norm_coefficient: float = 0.0) -> Any:
    lr = float(rate) / (1 + int(step) * decay_factor)

    def update(x: Any, g: Any, h: Any) -> tuple[Any, ...]:
        g = x * norm_coefficient + g
        h = h + g * g
        return x - g * lr / (ops.sqrt(h) + epsilon), h

    return _updates(node, values, 3, update)


@row("Adam", domain=_TRAINING)
def adam(node: Node, rate: Host, step: Host, *values: Any, alpha: float = 0.9, beta: float = 0.999,
         epsilon: float = 1e-6, norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0) -> Any:
    count, lr = int(step), float(rate)
    if count > 0:
        lr *= math.sqrt(1 - beta ** count) / (1 - alpha ** count)

    def update(x: Any, g: Any, v: Any, h: Any) -> tuple[Any, ...]:
        g = x * norm_coefficient + g
        v, h = v * alpha + g * (1 - alpha), h * beta + g * g * (1 - beta)
        return (x - v * lr / (ops.sqrt(h) + epsilon)) * (1 - norm_coefficient_post), v, h

    return _updates(node, values, 4, update)


@row("Momentum", domain=_TRAINING)
def momentum(node: Node, rate: Host, step: Host, *values: Any, alpha: float, beta: float, mode: str,
             norm_coefficient: float) -> Any:
    if mode not in ("standard", "nesterov"):
        raise AttrError(f"mode={mode!r}: expected standard or nesterov")
    lr, own = float(rate), beta if int(step) > 0 else 1.0

    def update(x: Any, g: Any, v: Any) -> tuple[Any, ...]:
        g = x * norm_coefficient + g
        v = v * alpha + g * own
        return x - (v if mode == "standard" else g + v * alpha) * lr, v

    return _updates(node, values, 3, update)


# --------------------------------------------------------------------------------------------- random numbers


def _drawn(node: Node, kind: str, shape: tuple[int, ...], dtype: np.dtype, seed: float | None, **limits: float) -> Any:
    if math.prod(shape) > MOST or any(dim < 0 for dim in shape):
        raise ArgumentError(f"random numbers: expected a shape of at most {MOST} elements, got {shape}")
    if seed is not None:  # a seed gives the same numbers in each run
        generator = np.random.RandomState(int(seed) & 0xFFFFFFFF)
        numbers = generator.normal(limits["loc"], limits["scale"], shape) if kind == "normal" else generator.uniform(
            limits["low"], limits["high"], shape)
        return node.lift(numbers.astype(dtype))
    like = Tensor(np.zeros(shape, np.float32))
    return node.cast(getattr(ops, f"_random_{kind}_like")(like, **limits), dtype)


@row("RandomNormal", draws=True)
def random_normal(node: Node, *, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None,
                  shape: Any) -> Any:
    return _drawn(node, "normal", tuple(shape), dtype_of(dtype), seed, loc=mean, scale=scale)


@row("RandomUniform", draws=True)
def random_uniform(node: Node, *, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None,
                   shape: Any) -> Any:
    return _drawn(node, "uniform", tuple(shape), dtype_of(dtype), seed, low=low, high=high)


@row("RandomNormalLike", draws=True)
def random_normal_like(node: Node, x: Given, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0,
                       seed: float | None = None) -> Any:
    target = node.dtype(x) if dtype is None else dtype_of(dtype)
    return _drawn(node, "normal", node.shape(x), target, seed, loc=mean, scale=scale)


@row("RandomUniformLike", draws=True)
def random_uniform_like(node: Node, x: Given, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0,
                        seed: float | None = None) -> Any:
    target = node.dtype(x) if dtype is None else dtype_of(dtype)
    return _drawn(node, "uniform", node.shape(x), target, seed, low=low, high=high)


@row("Multinomial", draws=True)
def multinomial(node: Node, x: Any, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Any:
    drawn = ops._sample_multinomial(ops.softmax(x, axis=-1), shape=(sample_size,), dtype="int32")
    return node.cast(drawn, dtype)


# ------------------------------------------------------------------------------------------------------ signals


def _fourier_transform(node: Node, x: Any, axis: int, length: int | None, inverse: int, onesided: int) -> Any:
    """The discrete Fourier transform along an axis, as a product; the last axis has real and imaginary parts."""
    axis = node.axis(axis, x)
    own = node.length(x, axis)
    count = 2 * (own - 1) if inverse and onesided else own
    count = count if length is None else length
    used = min(own, count // 2 + 1 if inverse and onesided else count)
    if used < own:
        x = ops.slice_axis(x, axis=axis, begin=0, end=used)
    outs = count // 2 + 1 if onesided and not inverse else count
    dtype = node.dtype(x)
    imaginary = node.length(x, -1) == 2
    if inverse and onesided:  # the other half is the complex conjugate in reverse
        bins = np.arange(used)
        weight = np.where((bins == 0) | (bins * 2 == count), 1.0, 2.0)
        angle = 2 * math.pi * np.outer(bins, np.arange(count)) / count
        tables = [weight[:, None] * np.cos(angle) / count, -weight[:, None] * np.sin(angle) / count]
        real = _product(node, x, 0, axis, tables[0], dtype) + _product(node, x, 1, axis, tables[1], dtype)
        return ops.expand_dims(real, axis=node.rank(real))
    angle = (1 if inverse else -1) * 2 * math.pi * np.outer(np.arange(used), np.arange(outs)) / count
    scale = 1 / count if inverse else 1.0
    cosine, sine = np.cos(angle) * scale, np.sin(angle) * scale
    real, other = _product(node, x, 0, axis, cosine, dtype), _product(node, x, 0, axis, sine, dtype)
    if imaginary:
        real = real - _product(node, x, 1, axis, sine, dtype)
        other = other + _product(node, x, 1, axis, cosine, dtype)
    return ops.stack(real, other, axis=node.rank(real), num_args=2)


def _product(node: Node, x: Any, part: int, axis: int, table: np.ndarray, dtype: np.dtype) -> Any:
    """The real or imaginary part, multiplied by a table along an axis."""
    one = ops.squeeze(ops.slice_axis(x, axis=-1, begin=part, end=part + 1), axis=-1) if node.rank(x) > 1 else x
    last = node.rank(one) - 1
    one = node.cast(one, np.float64)
    product = ops._npi_matmul(ops.swapaxes(one, dim1=axis, dim2=last) if axis != last else one, node.lift(table))
    product = node.cast(product, dtype)
    return ops.swapaxes(product, dim1=axis, dim2=last) if axis != last else product


@row("DFT")
def dft_by_attribute(node: Node, x: Any, length: Host = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
                     ) -> Any:
    return _fourier_transform(node, x, axis, None if length is None else int(length), inverse, onesided)


@row("DFT", since=20)
def dft(node: Node, x: Any, length: Host = None, axis: Host = None, *, inverse: int = 0, onesided: int = 0) -> Any:
    place = -2 if axis is None else int(axis)
    return _fourier_transform(node, x, place, None if length is None else int(length), inverse, onesided)


@row("STFT")
def stft(node: Node, x: Any, step: Host, window: Given = None, frame: Host = None, *, onesided: int = 1) -> Any:
    shape, stride = node.shape(x), int(step)
    size = node.shape(window)[0] if window is not None else int(frame)
    if stride < 1 or size > shape[1]:
        raise ArgumentError(f"STFT: frames of {size}, {stride} apart, of a signal of {shape[1]}")
    count = (shape[1] - size) // stride + 1
    places = np.arange(count)[:, None] * stride + np.arange(size)
    x = x if node.rank(x) == 3 else ops.expand_dims(x, axis=2)
    frames = ops.take(x, node.lift(places), axis=1)
    if window is not None:
        frames = ops.broadcast_mul(frames, ops._np_reshape(node.lift(window), newshape=(1, 1, size, 1)))
    return _fourier_transform(node, frames, 2, None, 0, onesided)


@row("MelWeightMatrix")
def mel_weights(node: Node, bins: Host, length: Host, rate: Host, low: Host, high: Host, *, output_datatype: int = 1
                ) -> Any:
    count, size = int(bins), int(length)
    if not 0 <= count * size <= MOST:
        raise ArgumentError(f"MelWeightMatrix: num_mel_bins={count} times dft_length={size}: expected a product from "
                            f"0 to {MOST}")
    columns = size // 2 + 1

    def mel(hertz: float) -> float:
        return 2595 * math.log10(1 + hertz / 700)

    first, step = mel(float(low)), (mel(float(high)) - mel(float(low))) / (count + 2)
    edges = 700 * (10 ** ((np.arange(count + 2) * step + first) / 2595) - 1)
    places = ((size + 1) * edges // int(rate)).astype(int)
    result = np.zeros((columns, count))
    for i in range(count):
        left, middle, last = places[i:i + 3]
        if middle == left:
            result[middle, i] = 1
        else:
            for j in range(left, middle + 1):
                result[j, i] = (j - left) / (middle - left)
        if last > middle:
            for j in range(middle, last):
                result[j, i] = (last - j) / (last - middle)
    return result.astype(dtype_of(output_datatype))
