"""The workloads by hand in NumPy: the floor that opreg with NumPy alone is held against.

Each is written for these sizes and no others: ufuncs that write into memory that is there, a tile that fits into a
cache at a time, and one product of matrices where there can be one. BLAS has its threads; ufuncs have one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .workloads import (
    EPSILON,
    adam_data,
    chain,
    conv_data,
    gelu_data,
    lstm_data,
    mlp_data,
    norm_data,
    start_time,
    total,
    uniform,
)

__all__ = ["CASES", "VERSION"]

#: Numbers of a tile: three or four of them fit into a second cache.
_TILE = 16_384
_SLOPE, _CUBIC = 0.7978845608, 0.7978845608 * 0.044715


def tiles(*arrays: np.ndarray, size: int = _TILE) -> Iterator[list[np.ndarray]]:
    """Parts of arrays of one length, side by side."""
    for begin in range(0, len(arrays[0]), size):
        yield [array[begin:begin + size] for array in arrays]


def scratch(count: int, *shape: int) -> list[np.ndarray]:
    return [np.empty(shape, np.float32) for _ in range(count)]


# ------------------------------------------------------------------------------------------------- element-wise


class Steps:
    """Array in ``chain`` that computes nothing: it notes the calls that do, forward and backward."""

    def __init__(self, value: np.ndarray, slope: np.ndarray):
        self.result, self.slope = value, slope
        self.forward: list[Callable] = []
        self.backward: list[Callable] = []

    def _then(self, function: Callable, *numbers: float) -> list[np.ndarray]:
        """Note a call; numbers become arrays once, and are returned."""
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
    (y, dx), whole = scratch(2, n), scratch(2, _TILE)

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
    count = _TILE // width
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
    """Convolution 3 × 3 by one product of all windows, batch norm and relu, forward and backward.

    Arrays are (channels, batch, height, width): then all pictures are columns of one matrix.
    """

    def __init__(self, weight: np.ndarray, gamma: np.ndarray, beta: np.ndarray, statistics: Sequence[np.ndarray],
                 batch: int, size: int):
        filters, channels = weight.shape[:2]
        self.weight, self.gamma, self.beta = weight.reshape(filters, -1), gamma[:, None], beta[:, None]
        self.statistics = [each[:, None] for each in statistics]
        self.padded = np.zeros((channels, batch, size + 2, size + 2), np.float32)
        self.inner = self.padded[:, :, 1:-1, 1:-1]
        self.windows = np.empty((channels, 3, 3, batch, size, size), np.float32)
        self.columns = self.windows.reshape(channels * 9, -1)
        self.result, self.normed, self.slope, self.t = scratch(4, filters, batch * size * size)
        self.scale = np.empty((filters, 1), np.float32)
        self.grads = [np.empty_like(each) for each in (self.weight, self.gamma, self.beta)]

    def _convolve(self, x: np.ndarray, weight: np.ndarray) -> None:
        self.inner[...] = x
        size = x.shape[-1]
        for i in range(3):
            for j in range(3):
                self.windows[:, i, j] = self.padded[:, :, i:i + size, j:j + size]
        np.matmul(weight, self.columns, self.result)

    def inference(self, x: np.ndarray) -> np.ndarray:
        mean, variance = self.statistics
        scale = self.gamma / np.sqrt(variance + EPSILON)
        self._convolve(x, self.weight * scale)
        np.add(self.result, self.beta - mean * scale, self.result)
        np.maximum(self.result, 0, out=self.result)
        return self.result.reshape(x.shape)

    def forward(self, x: np.ndarray) -> np.ndarray:
        self._convolve(x, self.weight)
        np.subtract(self.result, self.result.mean(1, keepdims=True), self.normed)
        np.multiply(self.normed, self.normed, self.t)
        np.divide(1, np.sqrt(self.t.mean(1, keepdims=True) + EPSILON), self.scale)
        np.multiply(self.normed, self.scale, self.normed)
        np.multiply(self.normed, self.gamma, self.result)
        np.add(self.result, self.beta, self.result)
        np.maximum(self.result, 0, out=self.result)
        return self.result.reshape(x.shape)

    def backward(self, g: np.ndarray, needed: bool) -> np.ndarray | None:
        shape, slope, t = g.shape, self.slope, self.t
        dweight, dgamma, dbeta = self.grads
        np.multiply(g.reshape(slope.shape), self.result > 0, slope)
        np.add.reduce(slope, 1, out=dbeta, keepdims=True)
        np.multiply(slope, self.normed, t)
        np.add.reduce(t, 1, out=dgamma, keepdims=True)
        np.multiply(self.normed, dgamma / slope.shape[1], t)
        np.subtract(slope, dbeta / slope.shape[1], slope)
        np.subtract(slope, t, slope)
        np.multiply(slope, self.gamma * self.scale, slope)
        np.matmul(slope, self.columns.T, dweight)
        if not needed:
            return None
        np.matmul(self.weight.T, slope, self.columns)
        self.padded.fill(0)
        for i in range(3):
            for j in range(3):
                self.padded[:, :, i:i + shape[-1], j:j + shape[-1]] += self.windows[:, i, j]
        dx = self.inner.copy()
        self.padded.fill(0)
        return dx


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


# ------------------------------------------------------------------------------------------------- layers


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
    whole, done = np.empty(_TILE, np.float32), [0]

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
    "conv_inference": convolutions(False), "lstm": lstm, "mlp": mlp, "adam": adam, "eager": eager,
    "import": import_time, "first_result": first_result,
}}
