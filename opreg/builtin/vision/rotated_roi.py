"""Rotated regions of interest averaged to a fixed size.

J. Ma and others, Arbitrary-Oriented Scene Text Detection via Rotation Proposals, 2018.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.registry import declare
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import wide
from .bilinear import corners, images, read, rows
from .roi import Cells


@declare(name="_contrib_RROIAlign")
def rotated_roi_align(data, rois, *, pooled_size: Cells, spatial_scale: float, sampling_ratio: int = -1):
    """Averages of bilinear samples over the cells of regions (image, x, y, width, height, degrees), rotated around
    their center x, y.

    A cell has ``sampling_ratio`` samples along either side; if that is not positive, one for each pixel, as for a
    region no longer than the diagonal of ``data`` (batch, channel, height, width).
    """


declare_form(rotated_roi_align, "(batch, channel, height, width) (regions, 6) -> (regions, channel, @pooled_size)")


def _counts(xp: ArrayModule, length: Array, cells: int, samples: int, diagonal: float) -> tuple[Array, int]:
    """The number of samples of a cell of each region along one side, and the largest one."""
    if samples > 0:
        return xp.full(length.shape, samples, dtype=length.dtype), samples
    most = math.ceil(diagonal / cells)
    counts = xp.fmin(xp.ceil(length / cells), most)  # a NaN gets the largest count; none of its samples is used
    return counts, int(counts.max()) if xp is np else most


@rotated_roi_align.kernel()  # no body: samples are added one by one, which limits the memory
def rotated_roi_align_xp(xp, data, rois, *, pooled_size, spatial_scale, sampling_ratio):
    data, rois = wide(data), wide(rois)
    (batch, channels, height, width), (down, across) = data.shape, pooled_size
    count = rois.shape[0]
    if count * data.size == 0:
        return xp.zeros((count, channels, down, across), dtype=data.dtype)
    image = xp.clip(rois[:, 0].astype(xp.int64), 0, batch - 1).reshape(count, 1, 1)
    x, y = rois[:, 1] * spatial_scale, rois[:, 2] * spatial_scale
    wide_, high = xp.maximum(rois[:, 3] * spatial_scale, 1), xp.maximum(rois[:, 4] * spatial_scale, 1)
    angle = rois[:, 5] * (math.pi / 180)
    diagonal = math.hypot(height, width)
    vertical, most_vertical = _counts(xp, high, down, sampling_ratio, diagonal)
    horizontal, most_horizontal = _counts(xp, wide_, across, sampling_ratio, diagonal)
    x, y, wide_, high, vertical, horizontal, cos, sin = [
        array.reshape(count, 1, 1) for array in (x, y, wide_, high, vertical, horizontal, xp.cos(angle), xp.sin(angle))]
    row, column = xp.arange(down).reshape(1, down, 1), xp.arange(across).reshape(1, 1, across)
    source, shape = rows(data), (count, down, across)
    total: Any = 0
    for i in range(most_vertical):
        for j in range(most_horizontal):
            below = ((row + (i + 0.5) / vertical) / down - 0.5) * high
            aside = ((column + (j + 0.5) / horizontal) / across - 0.5) * wide_
            at_x, at_y = aside * cos + below * sin + x, below * cos - aside * sin + y
            counted = (at_y >= -1) & (at_y <= height) & (at_x >= -1) & (at_x <= width)
            counted &= (vertical > i) & (horizontal > j)
            at_y, at_x = xp.clip(at_y, 0, height - 1), xp.clip(at_x, 0, width - 1)
            places = corners(xp, at_y.reshape(-1), at_x.reshape(-1), (height, width),
                             xp.broadcast_to(image, shape).reshape(-1))
            total = total + xp.where(counted.reshape(-1, 1), read(xp, source, places), 0)
    total = total / xp.broadcast_to(vertical * horizontal, shape).reshape(-1, 1)
    return images(total, (count, channels, down, across))
