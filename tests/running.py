"""Helpers that run one use of an operator, and assert its results."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.testing.comparison import TOLERANCES, disagreement, position, worst_slope
from opreg.testing.uses import Result, Use, bind, eager, graph, heads, second, symbol

__all__ = ["Result", "Use", "agree", "bind", "eager", "examples", "fit", "graph", "heads", "second", "symbol",
           "TOLERANCES"]


def agree(actual: np.ndarray, expected: Any, tolerance: float | None = None, what: str = "") -> None:
    """Asserts equal shapes and values: floating values relative to the largest one, others exactly."""
    expected = np.asarray(expected)
    if tolerance is None:
        tolerance = max(TOLERANCES.get(each.dtype.name, 0.0) for each in (actual, expected))
    far = disagreement(actual, expected, tolerance)
    assert far is None, f"{what}: {far}"


def fit(function: Callable[[Sequence[np.ndarray]], float], arrays: Sequence[np.ndarray], i: int, gradient: np.ndarray,
        tolerance: float, what: str = "") -> None:
    """Asserts that a gradient agrees with central differences of a function of arrays, in random directions."""

    def total(moved: np.ndarray) -> float:
        return function([*arrays[:i], moved, *arrays[i + 1:]])

    worst, _ = worst_slope(total, arrays[i], gradient, False, i, 10 * tolerance)
    assert worst is None, f"{what} input {i}{position(worst.flat, arrays[i].shape)}: gradient {worst.exact}, central " \
                          f"difference {worst.numeric}"


def examples(count: int) -> int:
    """Number of programs that a test draws: ``count``, or a quarter if numba compiles the kernels of each."""
    return count // 4 if os.environ.get("OPREG_JIT") == "numba" else count
