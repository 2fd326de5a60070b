"""Bilinear sampling of images: the four neighbours of a point, their weights, and the derivatives of the weights.

Images are converted to rows of channels, (batch * height * width, channels), so that a neighbour is one contiguous row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...core.spec import Shape
from ...typing import Array, ArrayModule
from ..lookup.indexing import add_at

__all__ = ["Corner", "corners", "rows", "images", "read", "spread", "slopes"]


class Corner(NamedTuple):
    """One of the four pixels around each point: its row, its weight, and the derivatives of the weight down and to the
    right."""

    row: Array
    weight: Array
    down: Array
    right: Array


def corners(xp: ArrayModule, y: Array, x: Array, size: tuple[int, int], image: Array | int = 0) -> list[Corner]:
    """The four pixels around points ``(y, x)`` of images of ``size``; pixels outside are zero.

    ``image`` is the index of each point's image.
    """
    height, width = size
    top, left = xp.floor(y), xp.floor(x)
    below, right_part = y - top, x - left
    neighbours = []
    for down in (0, 1):
        for right in (0, 1):
            row, column = top + down, left + right
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            place = xp.where(inside, row, 0).astype(xp.int64) * width + xp.where(inside, column, 0).astype(xp.int64)
            vertical, horizontal = below if down else 1 - below, right_part if right else 1 - right_part
            neighbours.append(Corner(image * (height * width) + place,
                                xp.where(inside, vertical * horizontal, 0),
                                xp.where(inside, horizontal if down else -horizontal, 0),
                                xp.where(inside, vertical if right else -vertical, 0)))
    return neighbours


def rows(array: Array) -> Array:
    """(N, C, *size) as rows of channels."""
    return array.transpose(0, *range(2, array.ndim), 1).reshape(-1, array.shape[1])


def images(array: Array, shape: Shape) -> Array:
    """Rows of channels as (N, C, *size)."""
    n, c, *size = shape
    return array.reshape(n, *size, c).transpose(0, len(size) + 1, *range(1, len(size) + 1))


def _taken(xp: ArrayModule, source: Array, row: Array) -> Array:
    if not source.shape[0]:  # points with no image: all pixels are outside
        return xp.zeros((row.shape[0], source.shape[1]), source.dtype)
    return xp.take(source, row, axis=0)


def read(xp: ArrayModule, source: Array, places: list[Corner]) -> Array:
    """Interpolated rows of ``source``: a row of channels for every point."""
    total: Any = 0
    for corner in places:
        total = total + _taken(xp, source, corner.row) * corner.weight[:, None]
    return total


def spread(xp: ArrayModule, count: int, g: Array, places: list[Corner]) -> Array:
    """The gradient of ``source``, which has ``count`` rows, from that of the interpolated rows."""
    channels = g.shape[1]
    flat = xp.concatenate([corner.row for corner in places])[:, None] * channels + xp.arange(channels)
    values = xp.concatenate([g * corner.weight[:, None] for corner in places])
    return add_at(xp, (count, channels), flat, values)


def slopes(xp: ArrayModule, source: Array, g: Array, places: list[Corner]) -> tuple[Array, Array]:
    """The gradients of the points' ``y`` and ``x``, from that of the interpolated rows."""
    y: Any = 0
    x: Any = 0
    for corner in places:
        moved = (_taken(xp, source, corner.row) * g).sum(1)
        y, x = y + moved * corner.down, x + moved * corner.right
    return y, x
