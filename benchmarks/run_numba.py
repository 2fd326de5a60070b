"""The workloads as loops that a user of numba writes."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from .workloads import EPSILON, adam_data, gelu_data, norm_data, start_time, total

__all__ = ["CASES", "VERSION"]

_HALF, _SLOPE, _CUBIC = np.float32(0.5), np.float32(0.7978845608), np.float32(0.7978845608 * 0.044715)
_ONE, _THREE, _EPSILON = np.float32(1), np.float32(3), np.float32(EPSILON)

# One thread computes work that is faster than waking other threads.
alone, shared = [numba.njit(parallel=parallel, fastmath={"contract", "reassoc", "nsz", "arcp"}, error_model="numpy")
                 for parallel in (False, True)]


@shared
def _gelu(x: np.ndarray, y: np.ndarray) -> None:
    for i in numba.prange(len(x)):
        a = x[i]
        y[i] = _HALF * a * (_ONE + math.tanh(a * (_SLOPE + _CUBIC * a * a)))


@shared
def _gelu_training(x: np.ndarray, g: np.ndarray, y: np.ndarray, dx: np.ndarray) -> None:
    for i in numba.prange(len(x)):
        a = x[i]
        t = math.tanh(a * (_SLOPE + _CUBIC * a * a))
        y[i] = _HALF * a * (_ONE + t)
        dx[i] = g[i] * _HALF * (_ONE + t + a * (_ONE - t * t) * (_SLOPE + _THREE * _CUBIC * a * a))


@shared
def _norm_softmax(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, g: np.ndarray, y: np.ndarray, dx: np.ndarray,
                  parts: np.ndarray) -> None:
    """Rows in as many parts as ``parts`` has; each part has its own sums for the gradients of gamma and beta."""
    rows, width = x.shape
    for part in numba.prange(len(parts)):
        dgamma, dbeta, h, slope = parts[part]
        dgamma[:] = 0
        dbeta[:] = 0
        for row in range(rows * part // len(parts), rows * (part + 1) // len(parts)):
            mean, variance, found, most = np.float32(0), np.float32(0), np.float32(0), np.float32(-np.inf)
            for i in range(width):
                mean += x[row, i]
            mean /= np.float32(width)
            for i in range(width):
                h[i] = x[row, i] - mean
                variance += h[i] * h[i]
            scale = _ONE / math.sqrt(variance / np.float32(width) + _EPSILON)
            for i in range(width):
                h[i] *= scale
                y[row, i] = h[i] * gamma[i] + beta[i]
                most = max(most, y[row, i])
            for i in range(width):
                y[row, i] = math.exp(y[row, i] - most)
                found += y[row, i]
            along = np.float32(0)
            for i in range(width):
                y[row, i] /= found
                along += g[row, i] * y[row, i]
            first, second = np.float32(0), np.float32(0)
            for i in range(width):
                s = y[row, i] * (g[row, i] - along)
                dbeta[i] += s
                dgamma[i] += s * h[i]
                slope[i] = s * gamma[i]
                first += slope[i]
                second += slope[i] * h[i]
            first, second = first / np.float32(width), second / np.float32(width)
            for i in range(width):
                dx[row, i] = (slope[i] - first - h[i] * second) * scale


@alone
def _adam(weight: np.ndarray, grad: np.ndarray, mean: np.ndarray, square: np.ndarray, step: np.float32) -> None:
    for i in range(len(weight)):
        mean[i] = np.float32(0.9) * mean[i] + np.float32(0.1) * grad[i]
        square[i] = np.float32(0.999) * square[i] + np.float32(0.001) * grad[i] * grad[i]
        weight[i] -= step * mean[i] / (math.sqrt(square[i]) + np.float32(1e-8))


def gelu(n: int) -> Any:
    x, _ = gelu_data(n)
    y = np.empty_like(x)
    return lambda: _gelu(x, y), lambda: total(y)


def gelu_training(n: int) -> Any:
    x, g = gelu_data(n)
    y, dx = np.empty_like(x), np.empty_like(x)
    return lambda: _gelu_training(x, g, y, dx), lambda: total(y, dx)


def norm_softmax(rows: int, width: int) -> Any:
    (x, gamma, beta), g = norm_data(rows, width)
    y, dx = np.empty_like(x), np.empty_like(x)
    parts = np.empty((numba.get_num_threads(), 4, width), np.float32)
    return lambda: _norm_softmax(x, gamma, beta, g, y, dx, parts), lambda: total(y, dx, *parts[:, :2].sum(0))


def adam(count: int, rate: float) -> Any:
    """A call for each parameter."""
    before, grads = adam_data(count)
    weights = [each.ravel().copy() for each in before]
    each = [(weight, grad.ravel(), *np.zeros((2, grad.size), np.float32)) for weight, grad in zip(weights, grads)]
    done = [0]

    def run() -> None:
        done[0] += 1
        step = np.float32(rate * (1 - 0.999 ** done[0]) ** 0.5 / (1 - 0.9 ** done[0]))
        for arrays in each:
            _adam(*arrays, step)

    def check() -> float:
        for grad in grads:
            grad *= -0.5
        run()
        return total(*(weight - value.ravel() for weight, value in zip(weights, before)))

    return run, check


def import_time() -> Any:
    return lambda: start_time("import numba"), None


VERSION = numba.__version__
CASES = {"numba": {"gelu": gelu, "gelu_training": gelu_training, "norm_softmax": norm_softmax, "adam": adam,
                   "import": import_time}}
