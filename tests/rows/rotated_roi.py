"""Rows of the operator on rotated regions."""

from __future__ import annotations

import itertools
import math

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]

_ROIS = np.array([[0, 6.0, 5.0, 7.0, 4.0, 30.0], [1, 2.0, 3.0, 9.0, 9.0, -75.0], [1, 0.0, 9.0, 0.4, 3.0, 200.0],
                  [0, 30.0, 30.0, 3.0, 3.0, 0.0]])


def _pooled(pooled_size, spatial_scale, sampling_ratio=-1):
    def one(image, x, y):
        height, width = image.shape[1:]
        if not (-1 <= y <= height and -1 <= x <= width):
            return np.zeros(len(image))
        y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
        total = np.zeros(len(image))
        for i, j in itertools.product(range(height), range(width)):
            total += image[:, i, j] * max(0, 1 - abs(y - i)) * max(0, 1 - abs(x - j))
        return total

    def expected(data, rois):
        found = np.zeros((len(rois), data.shape[1], *pooled_size))
        for n, (image, *box, degrees) in enumerate(rois):
            x, y, width, height = (each * spatial_scale for each in box)
            sides, turn = (max(height, 1), max(width, 1)), math.radians(degrees)
            counts = [sampling_ratio if sampling_ratio > 0 else math.ceil(side / cells)
                      for side, cells in zip(sides, pooled_size)]
            for i, j in np.ndindex(*pooled_size):
                for k, m in np.ndindex(*counts):
                    v = ((i + (k + 0.5) / counts[0]) / pooled_size[0] - 0.5) * sides[0]
                    h = ((j + (m + 0.5) / counts[1]) / pooled_size[1] - 0.5) * sides[1]
                    found[n, :, i, j] += one(data[int(image)], h * math.cos(turn) + v * math.sin(turn) + x,
                                             v * math.cos(turn) - h * math.sin(turn) + y) / (counts[0] * counts[1])
        return found

    return expected


ROWS: list[Row] = [
    Row("_contrib_RROIAlign", [normal(2, 3, 6, 7), _ROIS], attrs, expected=_pooled(**attrs)) for attrs in (
        {"pooled_size": (2, 3), "spatial_scale": 0.5}, {"pooled_size": (3, 2), "spatial_scale": 1.0},
        {"pooled_size": (1, 2), "spatial_scale": 1.0, "sampling_ratio": 2})]

# A region that is NaN somewhere is zero.
ROWS += [Row("_contrib_RROIAlign", [normal(2, 3, 6, 7), np.where(np.arange(6) == place, np.nan, _ROIS[:1])],
             {"pooled_size": (2, 3), "spatial_scale": 0.5}, expected=lambda data, rois: np.zeros((1, 3, 2, 3)),
             name=f"NaN at {place}") for place in range(1, 6)]
