"""Rows of GridGenerator, BilinearSampler and SpatialTransformer."""

from __future__ import annotations

import numpy as np

from . import Row, normal, uniform

__all__ = ["ROWS"]


def _axes(height, width):
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    return x, y


def _affine(height, width):
    def expected(theta):
        base = np.stack([*_axes(height, width), np.ones((height, width))])
        return np.einsum("nij,jhw->nihw", theta.reshape(-1, 2, 3), base)

    return expected


def _flow(flow):
    height, width = flow.shape[2:]
    x, y = np.arange(width), np.arange(height)[:, None]
    return np.stack([(flow[:, 0] + x) * 2 / (width - 1) - 1, (flow[:, 1] + y) * 2 / (height - 1) - 1], 1)


def _sampled(data, grid):
    """Bilinear reading, position by position."""
    height, width = data.shape[2:]
    out = np.zeros((*data.shape[:2], *grid.shape[2:]), data.dtype)
    for n, i, j in np.ndindex(grid.shape[0], *grid.shape[2:]):
        x, y = (grid[n, 0, i, j] + 1) * (width - 1) / 2, (grid[n, 1, i, j] + 1) * (height - 1) / 2
        for row in (int(np.floor(y)), int(np.floor(y)) + 1):
            for column in (int(np.floor(x)), int(np.floor(x)) + 1):
                if 0 <= row < height and 0 <= column < width:
                    out[n, :, i, j] += (1 - abs(y - row)) * (1 - abs(x - column)) * data[n, :, row, column]
    return out


_X = normal(2, 3, 4, 5)
_GRID = uniform(-1.3, 1.3, 2, 2, 3, 4)
_P = normal(2, 4, 5, 3)
_H, _PLACES, _IMAGE = normal(7, 3, seed=1), (uniform(-1, 4.5, 7), uniform(-1, 5.5, 7)), np.array([0, 1, 1, 0, 0, 1, 0])
_THETA = np.array([1.0, 0, 0, 0, 1, 0]) + normal(2, 6, scale=0.3)
_AFFINE, _WARP = {"transform_type": "affine", "target_shape": (3, 4)}, {"transform_type": "warp"}
_TRANSFORMER = {**_AFFINE, "sampler_type": "bilinear"}

ROWS: list[Row] = [
    Row("GridGenerator", (_THETA,), _AFFINE, expected=_affine(3, 4), grad=(0,), second=True),
    Row("GridGenerator", (normal(2, 2, 3, 4),), _WARP, expected=_flow, grad=(0,), second=True),
    Row("_backward_GridGenerator", (normal(2, 2, 3, 4, seed=1), _THETA), _AFFINE, grad=(0,), second=True),
    Row("_backward_GridGenerator", (normal(2, 2, 3, 4, seed=1), normal(2, 2, 3, 4)), _WARP, grad=(0,), second=True),
    Row("BilinearSampler", (_X, _GRID), expected=_sampled, grad=(0, 1)),
    Row("BilinearSampler", (_X, np.stack([*_axes(4, 5)])[None].repeat(2, 0)), expected=lambda x, grid: x,
        grad=(0,), name="identity"),
    Row("BilinearSampler", (_X, np.full((2, 2, 1, 1), np.nan)), expected=lambda x, grid: np.full((2, 3, 1, 1), np.nan),
        name="nowhere"),
    Row("_bilinear", (_P, *_PLACES, _IMAGE), grad=(0, 1, 2)),
    Row("_backward_bilinear_data", (_H, *_PLACES, _IMAGE, _P), grad=(0, 1, 2)),
    Row("_backward_bilinear_places", (_H, _P, *_PLACES, _IMAGE)),
    Row("SpatialTransformer", (_X, _THETA), _TRANSFORMER,
        expected=lambda x, theta: _sampled(x, _affine(3, 4)(theta)), grad=(0, 1)),
    Row("SpatialTransformer", (_X, _THETA), _TRANSFORMER, dtypes=("float16",), name="half"),
]
