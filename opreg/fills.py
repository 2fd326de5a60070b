"""Initial values of arrays, for MXNet's initializers, which know arrays by name, and for MindSpore's.

Each is a function ``fill(rng, shape, ...)`` of a generator, that gives a new array of the host, or ``fill(shape, ...)``
where nothing is drawn. MXNet's initializers draw uniform and normal values by operators instead, on the device where
the array is; from one seed the two frameworks' classes draw differently on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .core.spec import Shape
from .elementwise.special_functions import erf, erfinv
from .typing import DTypeLike

__all__ = ["bilinear", "dirac", "fan", "left_of", "normal", "orthogonal", "orthogonal_by_svd", "sparse",
           "truncated_normal", "uniform", "variance_scaling"]

#: The standard deviation of the standard normal distribution truncated to the range from -2 to 2.
_CUT_AT_TWO = math.sqrt(1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / math.erf(math.sqrt(2)))


def fan(shape: Shape, mode: str) -> float:
    """Number of inputs or outputs of a layer's unit, or their mean or sum, for a weight (outputs, inputs, *window).

    Examples
    --------
    >>> [fan((4, 3, 5), mode) for mode in ("in", "out", "avg", "sum")]
    [15, 20, 17.5, 35]
    """
    window = math.prod(shape[2:])
    inputs, outputs = shape[1] * window, shape[0] * window
    return {"in": inputs, "out": outputs, "avg": (inputs + outputs) / 2.0, "sum": inputs + outputs}[mode]


def _width(dtype: DTypeLike) -> type[np.float32] | type[np.float64]:
    return np.float64 if dtype == np.float64 else np.float32


def uniform(rng: np.random.Generator, shape: Shape, bound: float, dtype: DTypeLike = np.float32) -> np.ndarray:
    """Uniform values from ``-bound`` to ``bound``."""
    return rng.random(shape, _width(dtype)) * (2 * bound) - bound


def normal(rng: np.random.Generator, shape: Shape, deviation: float, mean: float = 0.0, dtype: DTypeLike = np.float32
           ) -> np.ndarray:
    """Normally distributed values."""
    return rng.standard_normal(shape, _width(dtype)) * deviation + mean


def left_of(ends: tuple[float, float], deviation: float, mean: float) -> np.ndarray:
    """The error function at two ends of a normal distribution, which are standardized before: -1 and 1 at infinity."""
    return erf(np, (np.array(ends, np.float64) - mean) / (deviation * math.sqrt(2)))


def truncated_normal(rng: np.random.Generator, shape: Shape, deviation: float, mean: float, ends: tuple[float, float]
                     ) -> np.ndarray:
    """Values of a normal distribution truncated to the range between two ends."""
    low, high = left_of(ends, deviation, mean)
    standard = erfinv(np, low + (high - low) * rng.random(shape))
    return np.clip(standard * (deviation * math.sqrt(2)) + mean, *ends)


def variance_scaling(rng: np.random.Generator, shape: Shape, deviation: float, distribution: str, dtype: DTypeLike
                     ) -> np.ndarray:
    """Values of a given standard deviation: ``uniform``, ``normal``, or ``truncated_normal``, which is cut at two
    standard deviations of the full distribution."""
    if distribution == "uniform":
        return uniform(rng, shape, math.sqrt(3) * deviation, dtype)
    if distribution == "normal":
        return normal(rng, shape, deviation, 0.0, dtype)
    whole = deviation / _CUT_AT_TWO
    return truncated_normal(rng, shape, whole, 0.0, (-2 * whole, 2 * whole))


def _matrix(shape: Shape) -> Shape:
    """The first dimension, and all others together."""
    return shape[0], math.prod(shape[1:])


def orthogonal(rng: np.random.Generator, shape: Shape, gain: float) -> np.ndarray:
    """``gain`` times a matrix whose rows, or columns if there are fewer, are orthonormal; all are equally likely."""
    rows, columns = _matrix(shape)
    q, r = np.linalg.qr(rng.standard_normal((max(rows, columns), min(rows, columns))))
    q *= gain * np.sign(np.diagonal(r))  # without these signs, matrices would not be equally likely
    return (q if rows >= columns else q.T).reshape(shape)


def orthogonal_by_svd(draw: Callable[[Shape], np.ndarray], shape: Shape, gain: float) -> np.ndarray:
    """An orthogonal matrix times ``gain``: the singular vectors of the matrix that ``draw`` gives for a shape, as in
    MXNet."""
    left, _, right = np.linalg.svd(draw(_matrix(shape)).astype(np.float64), full_matrices=False)
    return gain * (left if left.shape == _matrix(shape) else right).reshape(shape)


def dirac(shape: Shape, groups: int) -> np.ndarray:
    """Weights of a convolution that copies its input channels, in each of some groups."""
    weight = np.zeros(shape, np.int8)
    size = shape[0] // groups
    channels, middle = np.arange(min(size, shape[1])), tuple([length // 2 for length in shape[2:]])
    for group in range(groups):
        weight[(group * size + channels, channels) + middle] = 1
    return weight


def sparse(rng: np.random.Generator, shape: Shape, deviation: float, zeros: int, dtype: DTypeLike) -> np.ndarray:
    """A matrix of normal values with ``zeros`` zeros in each column."""
    weight = normal(rng, shape, deviation, 0.0, dtype)
    order = rng.random(shape).argsort(axis=0)  # a permutation of the rows in each column
    weight[order < zeros] = 0
    return weight


def bilinear(shape: Shape) -> np.ndarray:
    """The window of a bilinear enlargement, by the last two axes; the same in every channel."""
    half = math.ceil(shape[3] / 2.0)
    middle = (2 * half - 1 - half % 2) / (2.0 * half)
    row, column = (1 - np.abs(np.arange(shape[axis]) / half - middle) for axis in (2, 3))
    return np.broadcast_to(np.outer(row, column), shape)
