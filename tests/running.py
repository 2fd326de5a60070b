"""Helpers that run one use of an operator, and assert its results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
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


def fit(function: Callable[[list[Any]], float], arrays: Sequence[Any], gradients: Mapping[int, np.ndarray],
        tolerance: float, what: str = "") -> None:
    """Asserts that gradients, by the number of the array, agree with central differences of a function of arrays, in
    random directions that move all of these arrays at once."""
    sizes = [arrays[i].size for i in gradients]
    if not sum(sizes):
        return
    ends = np.cumsum(sizes)

    def joined(parts: Iterable[np.ndarray]) -> np.ndarray:
        return np.concatenate([np.ravel(each) for each in parts])

    def total(values: np.ndarray) -> float:
        moved = list(arrays)
        for i, part in zip(gradients, np.split(values, ends[:-1])):
            moved[i] = part.reshape(arrays[i].shape)
        return function(moved)

    for i, gradient in gradients.items():
        assert gradient.shape == arrays[i].shape, f"{what} input {i}: the gradient has the shape {gradient.shape}"
    worst, _ = worst_slope(total, joined(arrays[i] for i in gradients), joined(gradients.values()), False, 0,
                           10 * tolerance)
    if worst is not None:
        which = int(np.searchsorted(ends, worst.flat, "right"))
        i, flat = list(gradients)[which], worst.flat - int(ends[which] - sizes[which])
        raise AssertionError(f"{what} input {i}{position(flat, arrays[i].shape)}: gradient {worst.exact}, central "
                             f"difference {worst.numeric}")


def examples(count: int) -> int:
    """Number of programs that a test draws: ``count``, or a quarter if numba compiles the kernels of each."""
    return count // 4 if os.environ.get("OPREG_JIT") == "numba" else count
