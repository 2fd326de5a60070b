"""Bilinear sampling of images: the four neighbours of a point, their weights, and the derivatives of the weights.

Images are converted to rows of channels, (batch * height * width, channels), so that a neighbour is one contiguous row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...core.registry import declare, ops
from ...core.spec import Shape
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import add_into, declare_gradient

__all__ = ["Corner", "corners", "rows", "images", "read", "spread", "slopes"]


class Corner(NamedTuple):
    """One of the four pixels around each point: its row, whether it is in the image, its weight, and the derivatives of
    the weight down and to the right, if there are any. At a coordinate that is not finite the weight is NaN."""

    row: Array
    inside: Array
    weight: Array
    down: Any
    right: Any


def corners(xp: ArrayModule, y: Array, x: Array, size: tuple[int, int], image: Array | int = 0, slopes: bool = False
            ) -> list[Corner]:
    """The four pixels around points ``(y, x)`` of images of ``size``; pixels outside are zero.

    ``image`` is the index of each point's image. The derivatives of weights are computed for ``slopes``.
    """
    height, width = size
    first, neighbours = image * (height * width), []
    across = [*_neighbours(xp, x, width)]
    for row, vertical, down, in_rows in _neighbours(xp, y, height):
        row = first + row * width
        for column, horizontal, right, in_columns in across:
            inside = in_rows & in_columns
            neighbours.append(Corner(row + column, inside, vertical * horizontal * inside,
                                     down * horizontal * inside if slopes else None,
                                     right * vertical * inside if slopes else None))
    return neighbours


def _neighbours(xp: ArrayModule, place: Array, n: int) -> Iterator[tuple[Array, Array, int, Array]]:
    """The two pixels around places along an axis: index, weight, derivative of the weight, and whether it exists."""
    low = xp.floor(place)
    part = place - low
    for index, weight, slope in ((low, 1 - part, -1), (low + 1, part, 1)):
        inside = (index >= 0) & (index < n)
        yield xp.where(inside, index, 0).astype(xp.int64), weight, slope, inside


def rows(array: Array) -> Array:
    """(N, C, *size) as rows of channels."""
    return array.transpose(0, *range(2, array.ndim), 1).reshape(-1, array.shape[1])


def images(array: Array, shape: Shape) -> Array:
    """Rows of channels as (N, C, *size)."""
    n, c, *size = shape
    return array.reshape(n, *size, c).transpose(0, len(size) + 1, *range(1, len(size) + 1))


def _taken(xp: ArrayModule, source: Array, row: Array) -> Array:
    if not source.shape[0]:  # there are points but no images: all pixels are outside
        return xp.zeros((row.shape[0], source.shape[1]), source.dtype)
    return xp.take(source, row, axis=0)


def read(xp: ArrayModule, source: Array, places: list[Corner]) -> Array:
    """Interpolated rows of ``source``: a row of channels for every point."""
    total: Any = 0
    for corner in places:
        total = total + _taken(xp, source, corner.row) * corner.weight[:, None]
    return total


def spread(xp: ArrayModule, count: int, g: Array, places: list[Corner]) -> Array:
    """The gradient of ``source``, which has ``count`` rows, from that of the interpolated rows.

    Points at coordinates that are not finite have no part in it.
    """
    channels = g.shape[1]
    total, channel = xp.zeros(count * channels, g.dtype), xp.arange(channels)
    for corner in places:  # in one flat array, the form that NumPy has a fast loop for
        flat = corner.row[:, None] * channels + channel
        weight = xp.where(corner.inside, corner.weight, 0)
        add_into(xp, total, flat.reshape(-1), (g * weight[:, None]).reshape(-1))
    return total.reshape(count, channels)


def slopes(xp: ArrayModule, source: Array, g: Array, places: list[Corner]) -> tuple[Array, Array]:
    """The gradients of the points' ``y`` and ``x``, from that of the interpolated rows."""
    y: Any = 0
    x: Any = 0
    for corner in places:
        moved = (_taken(xp, source, corner.row) * g).sum(1)
        y, x = y + moved * corner.down, x + moved * corner.right
    return y, x


# --------------------------------------------------------------------------------------------- operators


@declare(name="_bilinear", types="T:floating,P,P,I->T")
def bilinear(data, y, x, image):
    """Channels of images ``data`` (batch, height, width, channel) at points between pixels, (points, channel).

    ``y`` and ``x`` (points) are coordinates in pixels, ``image`` (points) is the index of each point's image.
    Interpolation is bilinear; pixels outside of an image are zero.
    """


declare_form(bilinear, "(batch, height, width, channel) (points) (points) (points) -> (points, channel)")


@bilinear.kernel()  # no body: the gradient of a body would add each corner separately
def bilinear_xp(xp, data, y, x, image):
    return read(xp, data.reshape(-1, data.shape[3]), corners(xp, y, x, data.shape[1:3], image.astype(xp.int64)))


@declare(name="_backward_bilinear_data", types="T,P,P,I,U->T", unread=(4,))
def bilinear_data(g, y, x, image, data):
    """The gradient of the images."""


@bilinear_data.kernel()  # no body: one sum for all four corners
def bilinear_data_xp(xp, g, y, x, image, data):
    places = corners(xp, y, x, data.shape[1:3], image.astype(xp.int64))
    return spread(xp, math.prod(data.shape[:3]), g, places).reshape(data.shape)


@bilinear_data.grad
def bilinear_data_grad(h, ins, outs, *, needs):
    g, y, x, image, _ = ins
    moved = ops._backward_bilinear_places(g, h, y, x, image) if needs[1] or needs[2] else (None, None)
    return (ops._bilinear(h, y, x, image) if needs[0] else None, *moved, None, None)


@declare(name="_backward_bilinear_places", types="T,T,P,P,I->P,P", outputs=("y", "x"))
def bilinear_places(g, data, y, x, image):
    """The gradients of the coordinates ``y`` and ``x``."""


@bilinear_places.kernel()  # no body: both derivatives share one read of the four corners
def bilinear_places_xp(xp, g, data, y, x, image):
    places = corners(xp, y, x, data.shape[1:3], image.astype(xp.int64), slopes=True)
    return slopes(xp, data.reshape(-1, data.shape[3]), g, places)


declare_gradient(bilinear, bilinear_data, bilinear_places)
