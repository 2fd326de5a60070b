"""Rows of the operators that pool regions of interest."""

from __future__ import annotations

import math

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]

_ROIS = np.array([[0, 1.2, 0.7, 9.1, 7.4], [1, -2.6, 2, 5, 14], [1, 4, 4, 4.2, 4.2], [0, 20, 20, 30, 30]])
_X = normal(2, 3, 6, 5)


def _round(value):
    return math.copysign(math.floor(abs(value) + 0.5), value)


def _clip(value, n):
    return int(min(max(value, 0), n))


def _each(x, rois, size, channel, value):
    """An array of each cell of each region, by ``value(images, region, row, column)`` for the channels ``channel``."""
    y = np.zeros((len(rois), len(x[0, channel(0, 0)]), *size), x.dtype)
    for r, i, j in np.ndindex(len(rois), *size):
        y[r, :, i, j] = value(x[int(rois[r, 0]), channel(i, j)], rois[r, 1:], i, j)
    return y


def _bilinear(image, y, x):
    """One bilinear reading of ROIAlign."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    below, aside = min(top + 1, height - 1), min(left + 1, width - 1)
    fy, fx = y - top, x - left
    return ((1 - fy) * ((1 - fx) * image[:, top, left] + fx * image[:, top, aside])
            + fy * ((1 - fx) * image[:, below, left] + fx * image[:, below, aside]))


def _align(size, scale=1.0, samples=-1, own=False, aligned=False):
    def value(image, roi, i, j):
        left, top, right, bottom = roi * scale - (0.5 if aligned else 0)
        width, height = (right - left, bottom - top) if aligned else (max(right - left, 1), max(bottom - top, 1))
        high, across = height / size[0], width / size[1]
        rows, columns = (samples, samples) if samples > 0 else (math.ceil(high), math.ceil(across))
        total = 0.0
        for a in range(rows):
            for b in range(columns):
                total = total + _bilinear(image, top + i * high + (a + 0.5) * high / rows,
                                          left + j * across + (b + 0.5) * across / columns)
        return total / max(rows * columns, 1)

    def expected(x, rois):
        cells = size[0] * size[1]
        channel = (lambda i, j: slice(i * size[1] + j, None, cells)) if own else (lambda i, j: slice(None))
        return _each(x, rois, size, channel, value)

    return expected


def _cell(start, length, cells, i, n):
    """First and last (exclusive) pixel of a cell along one axis."""
    step = length / cells
    return _clip(math.floor(i * step + start), n), _clip(math.ceil((i + 1) * step + start), n)


def _max(size, scale=1.0):
    def value(image, roi, i, j):
        left, top, right, bottom = [_round(side * scale) for side in roi]
        a, b = _cell(top, max(bottom - top + 1, 1), size[0], i, image.shape[1])
        c, d = _cell(left, max(right - left + 1, 1), size[1], j, image.shape[2])
        return image[:, a:b, c:d].max((1, 2)) if a < b and c < d else 0.0

    return lambda x, rois: _each(x, rois, size, lambda i, j: slice(None), value)


def _position(cells, groups, scale=1.0):
    def value(image, roi, i, j):
        left, top = _round(roi[0]) * scale, _round(roi[1]) * scale
        right, bottom = (_round(roi[2]) + 1) * scale, (_round(roi[3]) + 1) * scale
        a, b = _cell(top, max(bottom - top, 0.1), cells, i, image.shape[1])
        c, d = _cell(left, max(right - left, 0.1), cells, j, image.shape[2])
        return image[:, a:b, c:d].mean((1, 2)) if a < b and c < d else 0.0

    def channel(i, j):
        return slice(i * groups // cells * groups + j * groups // cells, None, groups * groups)

    return lambda x, rois: _each(x, rois, (cells, cells), channel, value)


def _scattered(g, places):
    """Values put at positions, image by image and channel by channel."""
    x = np.zeros((*g.shape[:2], 30), g.dtype)
    for index in np.ndindex(g.shape):
        if places[index] >= 0:
            x[(*index[:2], places[index])] += g[index]
    return x.reshape(2, 3, 6, 5)


def _picked(h, places):
    """The elements at given positions."""
    h = h.reshape(*h.shape[:2], 30)
    return np.array([0 if places[index] < 0 else h[(*index[:2], places[index])] for index in np.ndindex(places.shape)],
                    h.dtype).reshape(places.shape)


def _between(image):
    """The mean of the four pixels around row 2.5, column 1.5."""
    return image[:, 2:4, 1:3].mean((1, 2))


_ALIGN = {"pooled_size": (2, 3), "spatial_scale": 0.5}
_POOL = {"pooled_size": (3, 2), "spatial_scale": 0.5}
_OWN = {"pooled_size": 3, "output_dim": 2, "spatial_scale": 0.5}
_MOVED = {"spatial_scale": 0.5, "output_dim": 4, "group_size": 2, "pooled_size": 3, "part_size": 2,
          "sample_per_part": 2, "trans_std": 0.2}
_TRANS = normal(4, 4, 2, 2)
_TIES = np.round(normal(2, 3, 6, 5))
_MAXIDX = np.array([[[[0, 5], [5, -1]]] * 3, [[[3, 7], [29, 0]]] * 3], "int32")

ROWS: list[Row] = [
    *(Row("_contrib_ROIAlign", (_X, _ROIS), {**_ALIGN, "sample_ratio": samples, "aligned": aligned},
          expected=_align((2, 3), 0.5, samples, aligned=aligned), grad=(0,), second=True)
      for samples in (-1, 1, 2) for aligned in (False, True)),
    Row("_contrib_ROIAlign", (normal(2, 12, 6, 5), _ROIS), {**_ALIGN, "position_sensitive": True},
        expected=_align((2, 3), 0.5, own=True), grad=(0,), second=True),
    Row("_contrib_ROIAlign", (_X, np.array([[-1.0, 0, 0, 4, 4]])), _ALIGN,
        expected=lambda x, rois: np.zeros((1, 3, 2, 3)), name="no image"),
    Row("_backward_ROIAlign", (normal(4, 3, 2, 3), _ROIS, _X), _ALIGN, grad=(0,), second=True),
    Row("_backward_ROIAlign", (normal(4, 2, 2, 3), _ROIS, normal(2, 12, 6, 5)), {**_ALIGN, "position_sensitive": True},
        grad=(0,), second=True),
    Row("_contrib_PSROIPooling", (normal(2, 18, 6, 5), _ROIS), _OWN, expected=_position(3, 3, 0.5), grad=(0,),
        second=True),
    Row("_contrib_PSROIPooling", (normal(2, 8, 6, 5), _ROIS), {**_OWN, "group_size": 2},
        expected=_position(3, 2, 0.5), grad=(0,), second=True),
    Row("_backward__contrib_PSROIPooling", (normal(4, 2, 3, 3), _ROIS, normal(2, 8, 6, 5)), {**_OWN, "group_size": 2},
        grad=(0,), second=True),
    Row("ROIPooling", (_X, _ROIS), _POOL, expected=_max((3, 2), 0.5), grad=(0,), second=True),
    Row("ROIPooling", (_TIES, _ROIS), {**_POOL, "spatial_scale": 1.0}, expected=_max((3, 2)), name="ties"),
    *(Row("ROIPooling", (_X, np.where(np.arange(5) == place, value, _ROIS[:1])), _POOL, grad=(0,),
          expected=lambda x, rois: np.zeros((1, 3, 3, 2)), name=f"{value} at {place}")
      for place in range(1, 5) for value in (math.nan, math.inf, -math.inf)),
    Row("_backward_ROIPooling", (normal(2, 3, 2, 2), _ROIS[:2], _MAXIDX, _X), grad=(0,), second=True,
        expected=lambda g, rois, place, x: _scattered(g, place)),
    Row("_backward_ROIPooling_at", (_X, _ROIS[:2], _MAXIDX), grad=(0,), second=True,
        expected=lambda h, rois, place: _picked(h, place)),
    Row("_contrib_DeformablePSROIPooling", (normal(2, 16, 6, 5), _ROIS, _TRANS), _MOVED, grad=(0, 2)),
    Row("_contrib_DeformablePSROIPooling", (normal(2, 16, 6, 5), _ROIS), {**_MOVED, "no_trans": True}, grad=(0,)),
    Row("_contrib_DeformablePSROIPooling", (normal(2, 8, 6, 5), np.array([[1.0, 4, 6, 4, 6]])),
        {**_MOVED, "output_dim": 2, "pooled_size": 1, "no_trans": True, "sample_per_part": 1},
        expected=lambda x, rois: _between(x[1, ::4]).reshape(1, 2, 1, 1), name="one sample"),
]
