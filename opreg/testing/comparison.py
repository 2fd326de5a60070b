"""Comparison of arrays within tolerances, and of gradients with central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..core.spec import is_floating, show

__all__ = ["TOLERANCES", "Slope", "disagreement", "position", "slopes", "worst_slope"]

#: Relative tolerances by dtype, for results whose sums may run in another order.
TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 3e-2}
#: Elements of an input whose derivatives are measured one by one, to find the worst one.
_ELEMENTS = 48
#: The step of central differences and their tolerance: for float64, and where some part computes in float32.
_FINE, _COARSE = (2e-6, 1e-5), (2.0 ** -6, 1e-2)


def position(flat: int, shape: Sequence[int]) -> str:
    """The index of an element as text."""
    at = tuple(map(int, np.unravel_index(flat, tuple(shape)))) if shape else ()
    return f" at {at}" if at else ""


def disagreement(actual: np.ndarray, expected: np.ndarray, tolerance: float | None = None) -> str | None:
    """The element with the largest difference between an array and the expected one, as text; None if they agree.

    Floating values may differ by ``tolerance`` relative to the expected values; the dtype gives its default.

    Examples
    --------
    >>> disagreement(np.array([1.0, 2.5]), np.array([1.0, 2.0]))
    'at (1,) it is 2.5, not 2'
    """
    if actual.shape != expected.shape:
        return f"its shape is {show(actual.shape)}, not {show(expected.shape)}"
    if actual.dtype != expected.dtype and tolerance is None:
        return f"its dtype is {actual.dtype}, not {expected.dtype}"
    if not (is_floating(actual.dtype) or is_floating(expected.dtype)):
        far = (actual != expected).astype(np.float64)
    else:
        if tolerance is None:
            tolerance = TOLERANCES.get(actual.dtype.name, 1e-9)
        wide, target = actual.astype(np.float64), expected.astype(np.float64)
        same = (wide == target) | (np.isnan(wide) & np.isnan(target))
        if same.all():
            return None
        finite = np.abs(target[np.isfinite(target)])
        with np.errstate(all="ignore"):
            slack = tolerance * (np.abs(target) + 0.1 * max(1.0, finite.max(initial=0.0)))
            far = np.where(same, 0.0, np.nan_to_num(np.abs(wide - target) - slack, nan=np.inf, posinf=np.inf))
    if not (far > 0).any():
        return None
    flat = int(np.argmax(far))
    return f"{position(flat, actual.shape)} it is {actual.flat[flat]:.6g}, not {expected.flat[flat]:.6g}".lstrip()


class Slope(NamedTuple):
    """An element of a gradient: its flat index, its value, and its value by central differences."""

    flat: int
    exact: float
    numeric: float


def slopes(total: Callable[[np.ndarray], float], base: np.ndarray, directions: Sequence[np.ndarray], coarse: bool
           ) -> list[float]:
    """Derivatives of a function at an array, along each direction, by central differences."""
    step = (_COARSE if coarse else _FINE)[0]
    reasons = []
    for direction in directions:
        move = (step * direction).astype(base.dtype)
        reasons.append((total(base + move) - total(base - move)) / (2 * step))
    return reasons


def worst_slope(total: Callable[[np.ndarray], float], base: np.ndarray, gradient: np.ndarray, coarse: bool,
                seed: int = 0, tolerance: float | None = None) -> tuple[Slope | None, list[Slope]]:
    """Compare a gradient with central differences, in random directions that move all elements at once.

    Parameters
    ----------
    total, base, gradient
        The function of an array, the point, and the gradient to compare.
    coarse : bool
        Whether some part computes in float32, which needs a larger step.
    seed : int
        Seed of the random directions.
    tolerance : float, optional
        Accepted difference, relative to the largest element of the gradient; ``coarse`` decides the default.

    Returns
    -------
    worst : Slope or None
        The element of ``every`` with the largest error; None if the gradient agrees.
    every : list of Slope
        Elements whose derivatives were then measured one by one.
    """
    if not base.size:
        return None, []
    rng = np.random.default_rng((seed, base.size))
    gradient = gradient.astype(np.float64)
    if tolerance is None:
        tolerance = (_COARSE if coarse else _FINE)[1]
    scale = max(1e-3, float(np.abs(gradient).max(initial=0.0)))
    directions = [rng.standard_normal(base.shape) for _ in range(2)]
    numeric = slopes(total, base, directions, coarse)
    for direction, slope in zip(directions, numeric):
        exact, norm = float((gradient * direction).sum()), float(np.abs(direction).sum()) ** 0.5
        if not abs(slope - exact) <= tolerance * max(1.0, norm) * max(1.0, scale, abs(slope) if coarse else 0.0):
            break
    else:
        return None, []
    every = []
    for flat in (range(base.size) if base.size <= _ELEMENTS else sorted(rng.permutation(base.size)[:_ELEMENTS])):
        unit = np.zeros(base.size)
        unit[flat] = 1.0
        (slope,) = slopes(total, base, [unit.reshape(base.shape)], coarse)
        every.append(Slope(int(flat), float(gradient.flat[flat]), slope))
    return max(every, key=_distance), every


def _distance(slope: Slope) -> float:
    far = abs(slope.exact - slope.numeric)
    return float("inf") if np.isnan(far) else far
