"""How one use of an operator is run, and what is asserted of what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.testing.comparison import TOLERANCES
from opreg.testing.uses import Result, Use, bind, eager, graph, heads, second, symbol

__all__ = ["Result", "Use", "agree", "bind", "difference", "eager", "graph", "heads", "second", "symbol", "TOLERANCES"]


def agree(actual: np.ndarray, expected: Any, tolerance: float | None = None, what: str = "") -> None:
    """Assert shape and numbers equal; relative to the largest number, and exactly what is no floating number."""
    expected = np.asarray(expected)
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, expected {expected.shape}"
    if actual.dtype.kind in "iub" and expected.dtype.kind in "iub":
        np.testing.assert_array_equal(actual, expected, what)
        return
    if tolerance is None:
        tolerance = max(TOLERANCES.get(actual.dtype.name, 0.0), TOLERANCES.get(expected.dtype.name, 0.0))
    wide, target = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.abs(target[np.isfinite(target)])
    np.testing.assert_allclose(wide, target, tolerance, 0.1 * tolerance * max(1.0, finite.max(initial=0.0)),
                               err_msg=what)


def difference(function: Any, arrays: Sequence[np.ndarray], i: int, gradient: np.ndarray, tolerance: float,
               what: str = "") -> None:
    """Assert that a gradient fits central differences of a scalar function, at some elements and in two directions."""
    base = arrays[i]
    rng = np.random.default_rng(i)
    directions = [rng.standard_normal(base.shape) for _ in range(2)]
    for flat in rng.permutation(base.size)[:10]:
        unit = np.zeros(base.size)
        unit[flat] = 1.0
        directions.append(unit.reshape(base.shape))
    scale = max(1.0, float(np.abs(gradient).max(initial=0.0)))
    for direction in directions:
        step = 2e-6
        ahead, behind = (function([*arrays[:i], base + sign * step * direction, *arrays[i + 1:]]) for sign in (1, -1))
        numeric, exact = (ahead - behind) / (2 * step), float((gradient * direction).sum())
        norm = scale * max(1.0, float(np.abs(direction).sum()) ** 0.5)
        assert abs(numeric - exact) <= 10 * tolerance * norm, \
            f"{what} input {i}: gradient {exact}, central difference {numeric}, at {np.flatnonzero(direction)[:5]}"
