"""Parts of networks by hand in NumPy, each with a forward and a backward, in preallocated memory."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .workloads import EPSILON

__all__ = ["TILE", "Convolution", "Dense", "Gelu", "Heads", "Norm", "scratch", "tiles"]

#: Elements of a tile: three or four tiles fit into a second-level cache.
TILE = 16_384
#: Gelu's error function to 1.5e-7: M. Abramowitz, I. Stegun, Handbook of mathematical functions, 7.1.26.
_STEP, _POLYNOMIAL = 0.3275911, (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


def tiles(*arrays: np.ndarray, size: int = TILE) -> Iterator[list[np.ndarray]]:
    """Corresponding tiles of arrays of equal length."""
    for begin in range(0, len(arrays[0]), size):
        yield [array[begin:begin + size] for array in arrays]


def scratch(count: int, *shape: int) -> list[np.ndarray]:
    return [np.empty(shape, np.float32) for _ in range(count)]


class Dense:
    """A dense layer of rows; ``grads`` are those of weight and bias."""

    def __init__(self, rows: int, weight: np.ndarray, bias: np.ndarray):
        self.weight, self.bias, self.grads = weight, bias, [np.empty_like(each) for each in (weight, bias)]
        (self.result,), (self.slope,) = [scratch(1, rows, width) for width in weight.shape]

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        np.matmul(x, self.weight.T, self.result)
        return np.add(self.result, self.bias, self.result)

    def backward(self, g: np.ndarray) -> np.ndarray:
        dweight, dbias = self.grads
        np.matmul(g.T, self.x, dweight)
        np.add.reduce(g, 0, out=dbias)
        return np.matmul(g, self.weight, self.slope)


class Norm:
    """Layer norm of rows; ``grads`` are those of gamma and beta."""

    def __init__(self, rows: int, gamma: np.ndarray, beta: np.ndarray):
        self.gamma, self.beta, self.grads = gamma, beta, [np.empty_like(each) for each in (gamma, beta)]
        self.width, self.count = len(gamma), max(1, TILE // len(gamma))
        self.result, self.normed, self.slope = scratch(3, rows, self.width)
        (self.scale,), (self.t,) = scratch(1, rows, 1), scratch(1, self.count, self.width)
        self.mean, self.found = scratch(2, self.count, 1)
        self.part = np.empty_like(gamma)

    def forward(self, x: np.ndarray) -> np.ndarray:
        for a, h, scale, y in tiles(x, self.normed, self.scale, self.result, size=self.count):
            t, mean = self.t[:len(a)], self.mean[:len(a)]
            np.add.reduce(a, 1, out=mean, keepdims=True)
            np.divide(mean, self.width, mean)
            np.subtract(a, mean, h)
            np.multiply(h, h, t)
            np.add.reduce(t, 1, out=scale, keepdims=True)
            np.divide(scale, self.width, scale)
            np.add(scale, EPSILON, scale)
            np.sqrt(scale, scale)
            np.reciprocal(scale, scale)
            np.multiply(h, scale, h)
            np.multiply(h, self.gamma, y)
            np.add(y, self.beta, y)
        return self.result

    def backward(self, g: np.ndarray) -> np.ndarray:
        dgamma, dbeta = self.grads
        dgamma.fill(0)
        for grad, h, scale, slope in tiles(g, self.normed, self.scale, self.slope, size=self.count):
            t, mean, found = self.t[:len(h)], self.mean[:len(h)], self.found[:len(h)]
            np.multiply(grad, h, t)
            np.add.reduce(t, 0, out=self.part)
            np.add(dgamma, self.part, dgamma)
            np.multiply(grad, self.gamma, slope)
            np.multiply(t, self.gamma, t)
            np.add.reduce(slope, 1, out=mean, keepdims=True)
            np.divide(mean, self.width, mean)
            np.add.reduce(t, 1, out=found, keepdims=True)
            np.divide(found, self.width, found)
            np.multiply(h, found, t)
            np.subtract(slope, mean, slope)
            np.subtract(slope, t, slope)
            np.multiply(slope, scale, slope)
        np.add.reduce(g, 0, out=dbeta)
        return self.slope


class Gelu:
    """Gelu by the error function, which shares its exponential with the derivative."""

    def __init__(self, rows: int, width: int):
        self.result, self.slope = scratch(2, rows, width)
        self.whole = scratch(2, TILE)

    def forward(self, x: np.ndarray) -> np.ndarray:
        for a, y, slope in tiles(x.ravel(), self.result.ravel(), self.slope.ravel()):
            t, bell = [each[:len(a)] for each in self.whole]
            np.multiply(a, a, bell)
            np.multiply(bell, -0.5, bell)
            np.exp(bell, bell)
            np.absolute(a, t)
            np.multiply(t, _STEP / math.sqrt(2), t)
            np.add(t, 1, t)
            np.reciprocal(t, t)
            np.multiply(t, _POLYNOMIAL[0], y)
            for number in _POLYNOMIAL[1:]:
                np.add(y, number, y)
                np.multiply(y, t, y)
            np.multiply(y, bell, y)
            np.subtract(1, y, y)
            np.copysign(y, a, y)
            np.add(y, 1, y)
            np.multiply(y, 0.5, y)
            np.multiply(bell, a, slope)
            np.multiply(slope, 1 / math.sqrt(2 * math.pi), slope)
            np.add(slope, y, slope)
            np.multiply(y, a, y)
        return self.result

    def backward(self, g: np.ndarray) -> np.ndarray:
        return np.multiply(self.slope, g, self.slope)


class Heads:
    """Attention of some queries of a head over all of its keys, which are rows.

    Forward divides the result by the sums of exponentials; backward divides the exponentials.
    """

    def __init__(self, queries: int, keys: int, size: int):
        self.weights, self.slopes = scratch(2, queries, keys)
        self.query, self.t = scratch(2, queries, size)
        self.most, self.sums = scratch(2, queries, 1)
        self.part, = scratch(1, keys, size)
        self.scale = np.float32(size ** -0.5)

    def forward(self, query: np.ndarray, key: np.ndarray, value: np.ndarray, result: np.ndarray) -> None:
        weights = self.weights
        np.multiply(query, self.scale, self.query)
        np.matmul(self.query, key.T, weights)
        np.maximum.reduce(weights, 1, out=self.most, keepdims=True)
        np.subtract(weights, self.most, weights)
        np.exp(weights, weights)
        np.add.reduce(weights, 1, out=self.sums, keepdims=True)
        np.matmul(weights, value, result)
        np.divide(result, self.sums, result)

    def backward(self, g: np.ndarray, key: np.ndarray, value: np.ndarray, result: np.ndarray, dquery: np.ndarray,
                 dkey: np.ndarray, dvalue: np.ndarray) -> None:
        """Write the gradient of the queries, and add to those of keys and values."""
        weights, slopes = self.weights, self.slopes
        np.divide(weights, self.sums, weights)
        np.matmul(weights.T, g, self.part)
        np.add(dvalue, self.part, dvalue)
        np.matmul(g, value.T, slopes)
        np.multiply(g, result, self.t)
        np.add.reduce(self.t, 1, out=self.sums, keepdims=True)
        np.subtract(slopes, self.sums, slopes)
        np.multiply(slopes, weights, slopes)
        np.matmul(slopes.T, self.query, self.part)
        np.add(dkey, self.part, dkey)
        np.matmul(slopes, key, dquery)
        np.multiply(dquery, self.scale, dquery)


class Convolution:
    """A convolution by one product of all windows; ``grad`` is that of the weight.

    Arrays are (channels, batch, height, width), so that all images are columns of one matrix.
    """

    def __init__(self, weight: np.ndarray, batch: int, size: int, stride: int = 1, pad: int = 0):
        filters, channels, kernel, _ = weight.shape
        self.weight, wide, out = weight.reshape(filters, -1), size + 2 * pad, (size + 2 * pad - kernel) // stride + 1
        self.padded = np.zeros((channels, batch, wide, wide), np.float32)
        self.inner = self.padded[:, :, pad:pad + size, pad:pad + size]
        windows, = scratch(1, channels, kernel, kernel, batch, out, out)
        self.columns, self.grad = windows.reshape(channels * kernel * kernel, -1), np.empty_like(self.weight)
        self.result, = scratch(1, filters, batch * out * out)
        self.shape, span = (filters, batch, out, out), stride * (out - 1) + 1
        self.taps = [(windows[:, i, j], self.padded[:, :, i:i + span:stride, j:j + span:stride])
                     for i in range(kernel) for j in range(kernel)]

    def forward(self, x: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """A row for each filter, with its weight or another array."""
        np.copyto(self.inner, x)
        for window, tap in self.taps:
            np.copyto(window, tap)
        return np.matmul(self.weight if weight is None else weight, self.columns, self.result)

    def backward(self, g: np.ndarray, needed: bool = True) -> np.ndarray | None:
        """The gradient of the input, if it is needed, from rows of filters."""
        np.matmul(g, self.columns.T, self.grad)
        if not needed:
            return None
        np.matmul(self.weight.T, g, self.columns)
        self.padded.fill(0)
        for window, tap in self.taps:
            np.add(tap, window, tap)
        slope = self.inner.copy()
        self.padded.fill(0)
        return slope
