"""Distances between the surfaces of regions; a surface is the pixels, or voxels, with a neighbour outside."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.settings import flag, real_number
from ...errors import ArgumentError
from .metric import Metric, rearrange_inputs

__all__ = ["HausdorffDistance", "MeanSurfaceDistance", "RootMeanSquareDistance"]

_KINDS = ("euclidean", "chessboard", "taxicab")


class _Surfaces(Metric):
    """Base of measures of surfaces of a label's regions, in predictions and in truth, for the latest batch."""

    def __init__(self, distance_metric: str):
        super().__init__()
        if distance_metric not in _KINDS:
            raise ArgumentError(f"{type(self).__name__}: distance_metric must be {', '.join(map(repr, _KINDS))}, got "
                                f"{distance_metric!r}")
        self.distance_metric = distance_metric
        self.clear()

    def clear(self) -> None:
        self._regions: list[np.ndarray] = []

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Set predicted labels, true labels, and the label to compare."""
        name = type(self).__name__
        if len(inputs) != 3:
            raise ArgumentError(f"{name}.update: expected 3 inputs, predictions, labels and the class to compare, got "
                                f"{len(inputs)}")
        (y_pred, y), label = self._pair(inputs[:2]), inputs[2]
        if not isinstance(label, (int, float)):
            raise ArgumentError(f"{name}.update: the class to compare must be a number, got {type(label).__name__}")
        if not y.size or y_pred.shape != y.shape:
            raise ArgumentError(f"{name}.update: predictions have the shape {y_pred.shape}, labels {y.shape}")
        regions = [y_pred == label, y == label]
        if not any(region.any() for region in regions):
            raise ArgumentError(f"{name}.update: neither predictions nor labels have the label {label}")
        self._regions = regions

    def _surfaces(self) -> list[np.ndarray]:
        self._some(len(self._regions))
        return [region & ~_erosion(region) for region in self._cut()]

    def _cut(self) -> list[np.ndarray]:
        return self._regions

    def _distances(self, surface: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Distance of each point of a surface to the nearest point of another."""
        if not surface.any():
            return np.array([])
        return _distances_to_nearest(other, self.distance_metric)[surface]


class HausdorffDistance(_Surfaces):
    """The largest distance from one surface to the nearest point of the other.

    Parameters
    ----------
    distance_metric : {"euclidean", "chessboard", "taxicab"}
        Metric of the distances.
    percentile : float, optional
        Percentile of the distances, from 0 to 100, in place of the largest.
    directed : bool
        Whether only distances from predictions to truth count, not those from truth to predictions.
    crop : bool
        Whether the arrays are first cropped to both regions, without axes of length 1.

    Examples
    --------
    >>> metric = HausdorffDistance()
    >>> metric.update(np.array([[1, 1, 0], [0, 0, 0]]), np.array([[1, 0, 0], [0, 0, 1]]), 1)
    >>> metric.eval().round(4)
    np.float64(1.4142)
    """

    def __init__(self, distance_metric: str = "euclidean", percentile: float | None = None,
                 directed: bool | None = False, crop: bool | None = True):
        self.percentile = (None if percentile is None else
                           real_number("HausdorffDistance: percentile", percentile, 0, 100))
        self.directed = flag("HausdorffDistance: directed", bool(directed) if directed is None else directed)
        self.crop = flag("HausdorffDistance: crop", bool(crop) if crop is None else crop)
        super().__init__(distance_metric)

    def _cut(self) -> list[np.ndarray]:
        if not self.crop:
            return self._regions
        box = _box(self._regions[0] | self._regions[1])
        cut = [region[box] for region in self._regions]
        return [region.squeeze() if region.size > 1 else region for region in cut]

    def eval(self) -> Any:
        y_pred, y = self._surfaces()
        farthest = self._farthest(y_pred, y)
        return farthest if self.directed else max(farthest, self._farthest(y, y_pred))

    def _farthest(self, surface: np.ndarray, other: np.ndarray) -> Any:
        if not (surface.any() and other.any()):
            return np.float64(np.inf)
        distances = self._distances(surface, other)
        return distances.max() if self.percentile is None else np.percentile(distances, self.percentile)


class MeanSurfaceDistance(_Surfaces):
    """The mean distance from the predicted surface to the nearest point of the true one.

    Parameters
    ----------
    symmetric : bool
        Whether it is averaged with the mean distance from truth to predictions.
    distance_metric : {"euclidean", "chessboard", "taxicab"}
        Metric of the distances.

    Examples
    --------
    >>> metric = MeanSurfaceDistance(distance_metric="taxicab")
    >>> metric.update(np.array([[1, 1, 0], [0, 0, 0]]), np.array([[1, 0, 0], [0, 0, 1]]), 1)
    >>> float(metric.eval())
    0.5
    """

    def __init__(self, symmetric: bool = False, distance_metric: str = "euclidean"):
        self.symmetric = flag(f"{type(self).__name__}: symmetric", symmetric)
        super().__init__(distance_metric)

    def _means(self, power: int) -> list[Any]:
        """The mean of distances to a power from predictions to truth; if symmetric, also from truth to predictions."""
        y_pred, y = self._surfaces()
        ways = [(y_pred, y), (y, y_pred)] if self.symmetric else [(y_pred, y)]
        distances = [self._distances(*way) for way in ways]
        return [np.mean(values**power) if values.size else np.float64(np.inf) for values in distances]

    def eval(self) -> Any:
        return np.mean(self._means(1))


class RootMeanSquareDistance(MeanSurfaceDistance):
    """The mean squared distance from the predicted surface to the nearest point of the true one.

    As in MindSpore, the root is taken only if it is symmetric.

    Parameters
    ----------
    symmetric : bool
        Whether it is averaged with the mean square from truth to predictions, and the root is taken.
    distance_metric : {"euclidean", "chessboard", "taxicab"}
        Metric of the distances.

    Examples
    --------
    >>> metric = RootMeanSquareDistance(symmetric=True)
    >>> metric.update(np.array([[1, 1, 0], [0, 0, 0]]), np.array([[1, 0, 0], [0, 0, 1]]), 1)
    >>> metric.eval().round(4)
    np.float64(0.866)
    """

    def eval(self) -> Any:
        means = self._means(2)
        return np.sqrt(np.mean(means)) if self.symmetric else means[0]


# ------------------------------------------------------------------------------------------------------- regions


def _slice_of_axis(axis: int, start: int | None, stop: int | None) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, slice(start, stop))


def _erosion(region: np.ndarray) -> np.ndarray:
    """The points of a region whose neighbours along all axes are in it."""
    inner = region.copy()
    for axis in range(region.ndim):
        for slices, next_to, end in ((1, None), (None, -1), (None, 1)), ((None, -1), (1, None), (-1, None)):
            inner[_slice_of_axis(axis, *slices)] &= region[_slice_of_axis(axis, *next_to)]
            inner[_slice_of_axis(axis, *end)] = False
    return inner


def _box(region: np.ndarray) -> tuple[slice, ...]:
    """The bounding box of a region."""
    return tuple([slice(int(each.min()), int(each.max()) + 1) for each in np.nonzero(region)])


def _distances_to_nearest(mask: np.ndarray, kind: str) -> np.ndarray:
    """The distance of each point to the nearest true point; infinite without any.

    Axes are handled one after the other: distances along earlier axes are combined with steps along the next.
    """
    best = np.where(mask, 0.0, math.inf)
    for axis in range(mask.ndim):
        start = best.copy()
        reached = np.isfinite(start).any(axis=axis, keepdims=True)  # lines without a finite distance stay infinite
        for step in range(1, mask.shape[axis]):
            cost = step * step if kind == "euclidean" else step
            if cost >= best.max(initial=0.0, where=reached):
                break
            for here, origin in ((step, None), (None, -step)), ((None, -step), (step, None)):
                source, target = start[_slice_of_axis(axis, *origin)], best[_slice_of_axis(axis, *here)]
                np.minimum(target, np.maximum(source, cost) if kind == "chessboard" else source + cost, out=target)
    return np.sqrt(best) if kind == "euclidean" else best
