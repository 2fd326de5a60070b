"""The workloads by hand in NumPy: the lower bound for opreg with NumPy alone.

Each is written only for these sizes: ufuncs write to preallocated memory, on one tile that fits into a cache at a time,
and sums of products are one matrix product where possible. BLAS uses several threads; ufuncs use one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .numpy_parts import TILE, Convolution, Dense, Gelu, Heads, Norm, scratch, tiles
from .workloads import (
    EPSILON,
    adam_data,
    attention_data,
    block_data,
    chain,
    conv_data,
    gelu_data,
    lenet_data,
    lstm_data,
    mlp_data,
    norm_data,
    resnet,
    resnet_data,
    start_time,
    total,
    uniform,
)

__all__ = ["CASES", "VERSION"]

#: Attention weights of a block; they fit into a second-level cache with their gradients.
_SCORES = 262_144
_SLOPE, _CUBIC = 0.7978845608, 0.7978845608 * 0.044715


# ------------------------------------------------------------------------------------------------- element-wise


class Steps:
    """An array for ``chain`` that computes nothing: it records the NumPy calls of forward and backward."""

    def __init__(self, value: np.ndarray, slope: np.ndarray):
        self.result, self.slope = value, slope
        self.forward: list[Callable] = []
        self.backward: list[Callable] = []

    def _then(self, function: Callable, *numbers: float) -> list[np.ndarray]:
        """Record a call and return its result; scalars become arrays once, when the call is recorded."""
        last, self.result = self.result, np.empty_like(self.result)
        args = [np.array(number, np.float32) for number in numbers]
        self.forward.append(functools.partial(function, last, *args, out=self.result))
        return args

    def _slope(self, function: Callable, *args: np.ndarray) -> None:
        self.backward.append(functools.partial(function, *args))

    def __mul__(self, other: float) -> Steps:
        factor, = self._then(np.multiply, other)
        self._slope(np.multiply, self.slope, factor, self.slope)
        return self

    def __neg__(self) -> Steps:
        self._then(np.negative)
        self._slope(np.negative, self.slope, self.slope)
        return self

    def __add__(self, other: float) -> Steps:
        self._then(np.add, other)
        return self

    def relu(self) -> Steps:
        zero, = self._then(np.maximum, 0.0)
        mask = np.empty(self.result.shape, bool)
        self._slope(np.multiply, self.slope, mask, self.slope)
        self._slope(np.greater, self.result, zero, mask)
        return self


def elementwise(is_train: bool) -> Callable:
    def case(count: int, n: int) -> Any:
        x, g, slope = uniform(n), uniform(n, seed=1), np.empty(n, np.float32)
        steps = chain(Steps(x, slope), count, Steps.relu)
        forward, backward = steps.forward, steps.backward[::-1]

        def run() -> None:
            for step in forward:
                step()
            if is_train:
                np.copyto(slope, g)
                for step in backward:
                    step()

        return run, lambda: total(steps.result, slope) if is_train else total(steps.result)

    return case


def custom(function: Callable) -> Callable:
    def case(count: int, n: int) -> Any:
        arrays, grads = [uniform(n), *scratch(count, n)], [uniform(n, seed=1), *scratch(count, n)]

        def run() -> None:
            for values in (arrays, grads):
                last = values[0]
                for each in values[1:]:
                    function(last, each)
                    last = each

        return run, lambda: total(arrays[-1], grads[-1])

    return case


def gelu(n: int) -> Any:
    x, _ = gelu_data(n)
    y = np.empty_like(x)

    def run() -> None:
        for a, b in tiles(x, y):
            np.multiply(a, a, b)
            np.multiply(b, _CUBIC, b)
            np.add(b, _SLOPE, b)
            np.multiply(b, a, b)
            np.tanh(b, b)
            np.add(b, 1, b)
            np.multiply(b, a, b)
            np.multiply(b, 0.5, b)

    return run, lambda: total(y)


def gelu_training(n: int) -> Any:
    x, g = gelu_data(n)
    (y, dx), whole = scratch(2, n), scratch(2, TILE)

    def run() -> None:
        for a, grad, b, slope in tiles(x, g, y, dx):
            t, square = [each[:len(a)] for each in whole]
            np.multiply(a, a, square)
            np.multiply(square, _CUBIC, t)
            np.add(t, _SLOPE, t)
            np.multiply(t, a, t)
            np.tanh(t, t)
            np.multiply(square, 3 * _CUBIC, slope)
            np.add(slope, _SLOPE, slope)
            np.multiply(slope, a, slope)
            np.multiply(t, t, square)
            np.subtract(1, square, square)
            np.multiply(slope, square, slope)
            np.add(t, 1, t)
            np.multiply(t, a, b)
            np.multiply(b, 0.5, b)
            np.add(slope, t, slope)
            np.multiply(slope, 0.5, slope)
            np.multiply(slope, grad, slope)

    return run, lambda: total(y, dx)


# ------------------------------------------------------------------------------------------------- rows


def norm_softmax(rows: int, width: int) -> Any:
    (x, gamma, beta), g = norm_data(rows, width)
    count = TILE // width
    (y, dx), (h, t), (dgamma, dbeta) = scratch(2, rows, width), scratch(2, count, width), scratch(2, width)
    part, (mean, scale, found) = np.empty(width, np.float32), scratch(3, count, 1)

    def run() -> None:
        dgamma.fill(0)
        dbeta.fill(0)
        for a, grad, b, slope in tiles(x, g, y, dx, size=count):
            np.add.reduce(a, 1, out=mean, keepdims=True)
            np.divide(mean, width, mean)
            np.subtract(a, mean, h)
            np.multiply(h, h, t)
            np.add.reduce(t, 1, out=scale, keepdims=True)
            np.divide(scale, width, scale)
            np.add(scale, EPSILON, scale)
            np.sqrt(scale, scale)
            np.reciprocal(scale, scale)
            np.multiply(h, scale, h)
            np.multiply(h, gamma, b)
            np.add(b, beta, b)
            np.maximum.reduce(b, 1, out=found, keepdims=True)
            np.subtract(b, found, b)
            np.exp(b, b)
            np.add.reduce(b, 1, out=found, keepdims=True)
            np.reciprocal(found, found)
            np.multiply(b, found, b)
            # The gradient of softmax, then of the norm.
            np.multiply(grad, b, slope)
            np.add.reduce(slope, 1, out=found, keepdims=True)
            np.multiply(b, found, t)
            np.subtract(slope, t, slope)
            np.add.reduce(slope, 0, out=part)
            np.add(dbeta, part, dbeta)
            np.multiply(slope, h, t)
            np.add.reduce(t, 0, out=part)
            np.add(dgamma, part, dgamma)
            np.multiply(slope, gamma, slope)
            np.multiply(t, gamma, t)
            np.add.reduce(slope, 1, out=mean, keepdims=True)
            np.divide(mean, width, mean)
            np.add.reduce(t, 1, out=found, keepdims=True)
            np.divide(found, width, found)
            np.multiply(h, found, h)
            np.subtract(slope, mean, slope)
            np.subtract(slope, h, slope)
            np.multiply(slope, scale, slope)

    return run, lambda: total(y, dx, dgamma, dbeta)


# ------------------------------------------------------------------------------------------------- convolutions


class Unit:
    """Convolution 3 × 3, batch norm and relu, forward and backward, of (channels, batch, height, width)."""

    def __init__(self, weight: np.ndarray, gamma: np.ndarray, beta: np.ndarray, statistics: Sequence[np.ndarray],
                 batch: int, size: int):
        self.convolution = Convolution(weight, batch, size, pad=1)
        self.gamma, self.beta, *self.statistics = [each[:, None] for each in (gamma, beta, *statistics)]
        self.normed, self.slope, self.t = scratch(3, *self.convolution.result.shape)
        self.scale = np.empty_like(self.gamma)
        self.grads = [self.convolution.grad, np.empty_like(self.gamma), np.empty_like(self.beta)]

    def inference(self, x: np.ndarray) -> np.ndarray:
        mean, variance = self.statistics
        scale = self.gamma / np.sqrt(variance + EPSILON)
        y = self.convolution.forward(x, self.convolution.weight * scale)
        np.add(y, self.beta - mean * scale, y)
        return np.maximum(y, 0, out=y).reshape(x.shape)

    def forward(self, x: np.ndarray) -> np.ndarray:
        y = self.convolution.forward(x)
        np.subtract(y, y.mean(1, keepdims=True), self.normed)
        np.multiply(self.normed, self.normed, self.t)
        np.divide(1, np.sqrt(self.t.mean(1, keepdims=True) + EPSILON), self.scale)
        np.multiply(self.normed, self.scale, self.normed)
        np.multiply(self.normed, self.gamma, y)
        np.add(y, self.beta, y)
        return np.maximum(y, 0, out=y).reshape(x.shape)

    def backward(self, g: np.ndarray, needed: bool) -> np.ndarray | None:
        slope, t = self.slope, self.t
        _, dgamma, dbeta = self.grads
        np.multiply(g.reshape(slope.shape), self.convolution.result > 0, slope)
        np.add.reduce(slope, 1, out=dbeta, keepdims=True)
        np.multiply(slope, self.normed, t)
        np.add.reduce(t, 1, out=dgamma, keepdims=True)
        np.multiply(self.normed, dgamma / slope.shape[1], t)
        np.subtract(slope, dbeta / slope.shape[1], slope)
        np.subtract(slope, t, slope)
        np.multiply(slope, self.gamma * self.scale, slope)
        return self.convolution.backward(slope, needed)


def convolutions(is_train: bool) -> Callable:
    def case(batch: int, channels: int, size: int, count: int) -> Any:
        x, parameters, statistics, g = conv_data(batch, channels, size, count)
        x, g = [np.ascontiguousarray(each.swapaxes(0, 1)) for each in (x, g)]
        units = [Unit(*arrays, moving, batch, size) for arrays, moving in zip(
            zip(*[iter(parameters)] * 3), zip(*[iter(statistics)] * 2))]
        last = []

        def run() -> None:
            y, slope = x, g
            for unit in units:
                y = unit.forward(y) if is_train else unit.inference(y)
            last[:] = [y]
            for unit in reversed(units if is_train else ()):
                slope = unit.backward(slope, unit is not units[0])

        return run, lambda: total(*last, *(grad for unit in units if is_train for grad in unit.grads))

    return case


class Pool:
    """Maxima of 2 × 2 windows; each of equal elements gets the gradient, which relu sets to zero where they are
    zeros."""

    def __init__(self, shape: Sequence[int]):
        self.result, = scratch(1, *shape[:2], shape[2] // 2, shape[3] // 2)
        self.slope, = scratch(1, *shape)
        self.most = np.empty(self.result.shape, bool)

    @staticmethod
    def _corners(x: np.ndarray) -> list[np.ndarray]:
        return [x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)]

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        first, second, *others = self._corners(x)
        np.maximum(first, second, out=self.result)
        for other in others:
            np.maximum(self.result, other, out=self.result)
        return self.result

    def backward(self, g: np.ndarray) -> np.ndarray:
        for corner, slope in zip(self._corners(self.x), self._corners(self.slope)):
            np.equal(corner, self.result, self.most)
            np.multiply(g, self.most, slope)
        return self.slope


def lenet(batch: int, rate: float) -> Any:
    x, labels, before = lenet_data(batch)
    x, parameters = x.swapaxes(0, 1), [each.copy() for each in before]
    weights, biases = parameters[::2], parameters[1::2]
    first, second = Convolution(weights[0], batch, 28), Convolution(weights[1], batch, 12)
    convolved = [(layer, Pool(layer.shape), bias[:, None]) for layer, bias in zip((first, second), biases)]
    wide, last = [Dense(batch, *both) for both in zip(weights[2:], biases[2:])]
    grads = first.grad, second.grad, wide.grads[0], last.grads[0]
    sums = [*[np.empty_like(bias) for bias in biases[:2]], wide.grads[1], last.grads[1]]
    flat, = scratch(1, batch, 800)
    rows, places = flat.reshape(batch, 50, 4, 4), (np.arange(batch), labels)

    def run() -> None:
        y = x
        for layer, pool, bias in convolved:
            filters = layer.forward(y)
            np.add(filters, bias, filters)
            y = pool.forward(np.maximum(filters, 0, out=filters).reshape(layer.shape))
        np.copyto(rows, y.swapaxes(0, 1))
        y = wide.forward(flat)
        slope = last.forward(np.maximum(y, 0, out=y))
        np.subtract(slope, slope.max(1, keepdims=True), slope)
        np.exp(slope, slope)
        np.divide(slope, slope.sum(1, keepdims=True), slope)
        slope[places] -= 1
        np.multiply(slope, rate / batch, slope)
        slope = last.backward(slope)
        np.multiply(slope, y > 0, slope)
        slope = wide.backward(slope).reshape(rows.shape).swapaxes(0, 1)
        for (layer, pool, _), total_of in zip(convolved[::-1], sums[1::-1]):
            slope = pool.backward(slope).reshape(layer.result.shape)
            np.multiply(slope, layer.result > 0, slope)
            np.add.reduce(slope, 1, out=total_of)
            slope = layer.backward(slope, layer is second)
        for weight, bias, grad, total_of in zip(weights, biases, grads, sums):
            np.subtract(weight, grad.reshape(weight.shape), weight)
            np.subtract(bias, total_of, bias)

    return run, lambda: total(*(each - was for each, was in zip(parameters, before)))


def resnet_18(batch: int, size: int) -> Any:
    """One image at a time, with batch norm as a factor and an offset for each filter."""
    x, parameters, statistics = resnet_data(batch, size)
    made: dict[int, Any] = {}
    wide, row = np.zeros((64, 1, size // 2 // 2 * 2 + 2, size // 2 // 2 * 2 + 2), np.float32), size // 4
    result = np.empty((batch, 1000), np.float32)

    def unit(x: np.ndarray, stride: int, weight: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
        if id(weight) not in made:
            gamma, beta, mean, variance = [each[:, None] for each in arrays]
            scale = gamma / np.sqrt(variance + EPSILON)
            made[id(weight)] = (Convolution(weight, 1, x.shape[-1], stride, weight.shape[-1] // 2), scale,
                                beta - mean * scale)
        convolution, scale, shift = made[id(weight)]
        y = convolution.forward(x)
        np.multiply(y, scale, y)
        return np.add(y, shift, y).reshape(convolution.shape)

    def pool(x: np.ndarray) -> np.ndarray:
        wide[:, :, 1:-1, 1:-1] = x  # no element is less than the zeros of the padding
        y = np.maximum(np.maximum(wide[:, :, 0:2 * row:2], wide[:, :, 1:2 * row:2]), wide[:, :, 2:2 * row + 1:2])
        return np.maximum(np.maximum(y[..., 0:2 * row:2], y[..., 1:2 * row:2]), y[..., 2:2 * row + 1:2])

    def head(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
        return np.matmul(weight, x.mean((2, 3)).ravel()) + bias

    def run() -> None:
        for picture, y in zip(x, result):
            y[:] = resnet(picture[:, None], parameters, statistics, unit, lambda x: np.maximum(x, 0, out=x), pool, head)

    return run, lambda: total(result)


# ------------------------------------------------------------------------------------------------- attention


def attention(is_train: bool) -> Callable:
    """Each block of queries goes forward and backward while its weights are in the cache."""
    def case(batch: int, heads: int, tokens: int, size: int) -> Any:
        arrays, g = attention_data(batch, heads, tokens, size)
        query, key, value, g = [each.reshape(-1, tokens, size) for each in (*arrays, g)]
        y, *slopes = [np.empty_like(query) for _ in range(4)]
        count = min(tokens, max(1, _SCORES // tokens))
        blocks = {n: Heads(n, tokens, size) for n in {count, tokens % count} - {0}}

        def run() -> None:
            for q, k, v, grad, out, dq, dk, dv in zip(query, key, value, g, y, *slopes):
                dk.fill(0)
                dv.fill(0)
                for queries, some, those, dqueries in tiles(q, grad, out, dq, size=count):
                    block = blocks[len(queries)]
                    block.forward(queries, k, v, those)
                    if is_train:
                        block.backward(some, k, v, those, dqueries, dk, dv)

        return run, lambda: total(y, *slopes) if is_train else total(y)

    return case


def block(batch: int, tokens: int, width: int, heads: int, ratio: int) -> Any:
    (x, *parameters), g = block_data(batch, tokens, width, ratio)
    rows, size = batch * tokens, width // heads
    x, g = x.reshape(rows, width), g.reshape(rows, width)
    pairs = zip(*[iter(parameters)] * 2)
    before, joined, out, after, wide, narrow = layers = [
        kind(rows, *next(pairs)) for kind in (Norm, Dense, Dense, Norm, Dense, Dense)]
    gelu, djoined = Gelu(rows, ratio * width), np.empty_like(joined.result)
    mixed, middle, slope, dx, y = scratch(5, rows, width)

    def of_heads(array: np.ndarray) -> list[list[np.ndarray]]:
        """For each head its part of the rows, or its queries, keys and values."""
        parts = array.reshape(batch, tokens, -1, size)
        return [[each[:, i] for i in range(head, parts.shape[2], heads)] for each in parts for head in range(heads)]

    every = [(Heads(tokens, tokens, size), *given, *made, *gradient, *wanted) for given, made, gradient, wanted in
             zip(*map(of_heads, (joined.result, mixed, out.slope, djoined)))]

    def run() -> None:
        joined.forward(before.forward(x))
        for head, query, key, value, result, *_ in every:
            head.forward(query, key, value, result)
        np.add(x, out.forward(mixed), middle)
        np.add(middle, narrow.forward(gelu.forward(wide.forward(after.forward(middle)))), y)
        np.add(after.backward(wide.backward(gelu.backward(narrow.backward(g)))), g, slope)
        out.backward(slope)
        djoined.fill(0)
        for head, _, key, value, result, grad, *slopes in every:
            head.backward(grad, key, value, result, *slopes)
        np.add(before.backward(joined.backward(djoined)), slope, dx)

    return run, lambda: total(y, dx, *(grad for layer in layers for grad in layer.grads))


# ------------------------------------------------------------------------------------------------- layers


def few_rows(batch: int, layers: tuple[int, ...]) -> Any:
    x, _, parameters = mlp_data(batch, layers)
    values = [np.empty((batch, n), np.float32) for n in layers[1:]]

    def run() -> None:
        y = x
        for i, value in enumerate(values):
            np.matmul(y, parameters[2 * i].T, value)
            np.add(value, parameters[2 * i + 1], value)
            y = np.maximum(value, 0, out=value) if i < len(values) - 1 else value

    return run, lambda: total(values[-1])


def mlp(batch: int, layers: tuple[int, ...], rate: float) -> Any:
    x, labels, before = mlp_data(batch, layers)
    parameters = [each.copy() for each in before]
    weights, biases = parameters[::2], parameters[1::2]
    values, slopes = [[np.empty((batch, n), np.float32) for n in layers[1:]] for _ in range(2)]
    changes = [np.empty_like(each) for each in weights]
    places = np.arange(batch), labels

    def run() -> None:
        y = x
        for i, (weight, bias, value) in enumerate(zip(weights, biases, values)):
            np.matmul(y, weight.T, value)
            np.add(value, bias, value)
            y = np.maximum(value, 0, out=value) if i < len(weights) - 1 else value
        slope = slopes[-1]
        np.subtract(y, y.max(1, keepdims=True), slope)
        np.exp(slope, slope)
        np.divide(slope, slope.sum(1, keepdims=True), slope)
        slope[places] -= 1
        np.multiply(slope, rate / batch, slope)
        for i in reversed(range(len(weights))):
            below = values[i - 1] if i else x
            np.matmul(slopes[i].T, below, changes[i])
            if i:
                np.matmul(slopes[i], weights[i], slopes[i - 1])
                np.multiply(slopes[i - 1], below > 0, slopes[i - 1])
            np.subtract(weights[i], changes[i], weights[i])
            np.subtract(biases[i], slopes[i].sum(0), biases[i])

    return run, lambda: total(*(each - was for each, was in zip(parameters, before)))


def lstm(steps: int, batch: int, hidden: int) -> Any:
    (x, into, back, *biases), g = lstm_data(steps, batch, hidden)
    flat = steps * batch
    gates, cells, y, tanhs = [np.empty((steps, batch, n), np.float32) for n in (4 * hidden, hidden, hidden, hidden)]
    zero, (dh, dc, t) = np.zeros((batch, hidden), np.float32), scratch(3, batch, hidden)
    slopes, part = np.empty_like(gates), np.empty((batch, 4 * hidden), np.float32)
    dx, dinto, dback = [np.empty_like(each) for each in (x, into, back)]
    dbias = np.empty(4 * hidden, np.float32)

    def logistic(a: np.ndarray) -> None:
        np.multiply(a, 0.5, a)
        np.tanh(a, a)
        np.multiply(a, 0.5, a)
        np.add(a, 0.5, a)

    def run() -> None:
        np.matmul(x.reshape(flat, -1), into.T, gates.reshape(flat, -1))
        np.add(gates, biases[0] + biases[1], gates)
        for i, gate in enumerate(gates):
            if i:
                np.matmul(y[i - 1], back.T, part)
                np.add(gate, part, gate)
            logistic(gate[:, :2 * hidden])
            logistic(gate[:, 3 * hidden:])
            enters, forgets, value, leaves = np.split(gate, 4, 1)
            np.tanh(value, value)
            np.multiply(enters, value, cells[i])
            np.multiply(forgets, cells[i - 1] if i else zero, t)
            np.add(cells[i], t, cells[i])
            np.tanh(cells[i], tanhs[i])
            np.multiply(leaves, tanhs[i], y[i])
        dh.fill(0)
        dc.fill(0)
        for i in reversed(range(steps)):
            gate, slope = gates[i], slopes[i]
            enters, forgets, value, leaves = np.split(gate, 4, 1)
            denters, dforgets, dvalue, dleaves = np.split(slope, 4, 1)
            np.add(dh, g[i], dh)
            np.multiply(dh, tanhs[i], dleaves)
            np.multiply(tanhs[i], tanhs[i], t)
            np.subtract(1, t, t)
            np.multiply(t, leaves, t)
            np.multiply(t, dh, t)
            np.add(dc, t, dc)
            np.multiply(dc, value, denters)
            np.multiply(dc, cells[i - 1] if i else zero, dforgets)
            np.multiply(value, value, t)
            np.subtract(1, t, t)
            np.multiply(t, dc, t)
            np.multiply(t, enters, dvalue)
            np.multiply(dc, forgets, dc)
            for begin, end in ((0, 2 * hidden), (3 * hidden, 4 * hidden)):
                a, b, c = gate[:, begin:end], slope[:, begin:end], part[:, begin:end]
                np.subtract(1, a, c)
                np.multiply(c, a, c)
                np.multiply(b, c, b)
            np.matmul(slope, back, dh)
        rows = slopes.reshape(flat, -1)
        np.matmul(rows, into, dx.reshape(flat, -1))
        np.matmul(rows.T, x.reshape(flat, -1), dinto)
        np.matmul(rows[batch:].T, y[:-1].reshape(flat - batch, -1), dback)
        np.add.reduce(rows, 0, out=dbias)

    return run, lambda: total(y, dx, dinto, dback, dbias, dbias)


def adam(count: int, rate: float) -> Any:
    before, grads = adam_data(count)
    weights = [each.copy() for each in before]
    means, squares = [[np.zeros_like(each) for each in before] for _ in range(2)]
    pieces = [piece for each in zip(weights, grads, means, squares) for piece in tiles(*map(np.ravel, each))]
    whole, done = np.empty(TILE, np.float32), [0]

    def run() -> None:
        done[0] += 1
        step = rate * (1 - 0.999 ** done[0]) ** 0.5 / (1 - 0.9 ** done[0])
        for weight, g, mean, square in pieces:
            t = whole[:len(weight)]
            np.multiply(mean, 0.9, mean)
            np.multiply(g, 0.1, t)
            np.add(mean, t, mean)
            np.multiply(square, 0.999, square)
            np.multiply(g, g, t)
            np.multiply(t, 0.001, t)
            np.add(square, t, square)
            np.sqrt(square, t)
            np.add(t, 1e-8, t)
            np.divide(mean, t, t)
            np.multiply(t, step, t)
            np.subtract(weight, t, weight)

    def check() -> float:
        for g in grads:
            g *= -0.5
        run()
        return total(*(weight - value for weight, value in zip(weights, before)))

    return run, check


def eager(n: int, calls: int) -> Any:
    x, made = uniform(n), []

    def run() -> None:
        for _ in range(calls):
            y = x * 2
        made[:] = [y]

    return run, lambda: total(*made)


def import_time() -> Any:
    return lambda: start_time("import numpy"), None


def first_result() -> Any:
    return lambda: start_time("import numpy; print(numpy.ones(10, numpy.float32) * 2)"), None


VERSION = np.__version__
CASES = {"NumPy": {
    "custom_numpy": custom(lambda x, out: np.multiply(x, 2, out)),
    "custom_identity": custom(lambda x, out: np.copyto(out, x)),
    "elementwise": elementwise(False), "elementwise_training": elementwise(True), "chain": elementwise(True),
    "gelu": gelu, "gelu_training": gelu_training, "norm_softmax": norm_softmax, "conv_training": convolutions(True),
    "conv_inference": convolutions(False), "block": block, "attention": attention(False),
    "attention_training": attention(True), "attention_long": attention(False),
    "attention_long_training": attention(True), "lstm": lstm, "resnet_1": resnet_18, "resnet_8": resnet_18,
    "few_rows": few_rows, "mlp": mlp, "lenet": lenet, "adam": adam, "eager": eager, "import": import_time,
    "first_result": first_result,
}}
