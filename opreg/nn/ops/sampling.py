"""Sampling of images and volumes at given coordinates, and of regions of images."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence

import numpy as np

from ...cells.tensor import Tensor
from ...cells.typing import TensorLike
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from . import math
from .array import cast
from .indexing import gather, gather_elements
from .lift import as_floating, scalar, tensor

__all__ = ["crop_and_resize", "grid_sample"]


def grid_sample(input: TensorLike, grid: TensorLike, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool = False) -> Tensor:
    """Sample images or volumes at the coordinates of a grid.

    Parameters
    ----------
    input : Tensor
        Images of shape (batch, channels, height, width), or volumes with a depth before the height.
    grid : Tensor
        Coordinates, (batch, height, width, 2) or (batch, depth, height, width, 3), of the same dtype. The last axis
        holds x, y and z, from -1 at the first element of an axis to 1 at the last.
    mode : {"bilinear", "nearest"}
        Linear interpolation of the neighbours, or the nearest element.
    padding_mode : {"zeros", "border", "reflection"}
        Values beyond the image: zeros, the outermost elements, or the reflected image.
    align_corners : bool
        Whether -1 and 1 are the centers of the outermost elements; otherwise their outer edges.

    Returns
    -------
    Tensor
        Samples of shape (batch, channels, *spatial shape of the grid).

    Raises
    ------
    ShapeError, ArgumentError
        When shapes do not fit each other, or a mode is unknown.

    Examples
    --------
    >>> image = Tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> print(grid_sample(image, Tensor([[[[0.0, 0.0], [1.0, -1.0]]]]), align_corners=True))
    [[[[2.5 2. ]]]]
    """
    x, places = as_floating(input), as_floating(grid)
    axes = x.ndim - 2
    if axes not in (2, 3) or places.ndim != x.ndim or places.shape[-1] != axes or places.shape[0] != x.shape[0]:
        raise ShapeError("grid_sample: expected images (batch, channels, h, w) and a grid (batch, h, w, 2), or "
                         f"volumes and a grid (batch, d, h, w, 3), got {show(x.shape)} and {show(places.shape)}")
    _one_of("mode", mode, ("bilinear", "nearest"))
    _one_of("padding_mode", padding_mode, ("zeros", "border", "reflection"))
    lengths, count = x.shape[2:], int(np.prod(places.shape[1:-1]))
    at = [_place(places[..., axes - 1 - axis].reshape((-1, count)), n, padding_mode, align_corners)
          for axis, n in enumerate(lengths)]
    flat = x.reshape((*x.shape[:2], -1))
    result = (_gather_elements(flat, [math.round(place) for place in at], lengths) if mode == "nearest"
              else _interpolate(flat, at, lengths))
    return result.reshape((*x.shape[:2], *places.shape[1:-1]))


def crop_and_resize(image: TensorLike, boxes: TensorLike, box_indices: TensorLike, crop_size: Sequence[int],
                    method: str = "bilinear", extrapolation_value: float = 0.0) -> Tensor:
    """Regions of images, resized to one height and width.

    Parameters
    ----------
    image : Tensor
        Images of shape (batch, height, width, channels).
    boxes : Tensor
        Regions, (number, 4): y and x of the first corner, then of the opposite one, from 0 at the first row and column
        of an image to 1 at the last.
    box_indices : Tensor
        For each region the number of its image.
    crop_size : sequence of 2 int
        Height and width of the results.
    method : {"bilinear", "nearest"}
        Linear interpolation of the neighbours, or the nearest element.
    extrapolation_value : float
        The value of positions outside of the image.

    Returns
    -------
    Tensor
        Crops of shape (number, height, width, channels), in float32.

    Raises
    ------
    ShapeError, ArgumentError
        When shapes do not fit each other, or the method is unknown.

    Examples
    --------
    >>> image = Tensor([[[[1.0], [2.0]], [[3.0], [4.0]]]])
    >>> print(crop_and_resize(image, Tensor([[0.0, 0.0, 1.0, 1.0]]), Tensor([0]), (1, 3)).reshape((3,)))
    [2.  2.5 3. ]
    """
    x, corners, numbers = tensor(image), cast(tensor(boxes), np.float32), tensor(box_indices)
    if x.ndim != 4 or corners.ndim != 2 or corners.shape[1] != 4 or numbers.shape != corners.shape[:1]:
        raise ShapeError("crop_and_resize: expected images (batch, height, width, channels), boxes (number, 4) and "
                         f"box_indices (number,), got {show(x.shape)}, {show(corners.shape)} and {show(numbers.shape)}")
    _one_of("method", method, ("bilinear", "nearest"), "crop_and_resize")
    height, width = (int(length) for length in crop_size)
    lengths, count = x.shape[1:3], len(corners)
    channels = x.shape[3]
    flat = cast(gather(x, numbers, 0), np.float32).transpose((0, 3, 1, 2)).reshape((count, channels, -1))
    y, across = (_steps(corners[:, i:i + 1], corners[:, i + 2:i + 3], n, steps)
                 for i, (n, steps) in enumerate(zip(lengths, (height, width))))
    at = [place.broadcast_to((count, height, width)).reshape((count, -1))
          for place in (y.expand_dims(2), across.expand_dims(1))]
    found = (_gather_elements(flat, [math.floor(place + 0.5) for place in at], lengths) if method == "nearest"
             else _interpolate(flat, at, lengths))
    found = math.where(_in_image(at, lengths).expand_dims(1), found, scalar(extrapolation_value, found._dt))
    return found.reshape((count, channels, height, width)).transpose((0, 2, 3, 1))


def _steps(first: Tensor, last: Tensor, n: int, steps: int) -> Tensor:
    """Fractional indices, (number, steps), at equal distances between two edges of regions; a single one is in the
    middle."""
    if steps == 1:
        return (first + last) * (0.5 * (n - 1))
    return first * (n - 1) + tensor(np.arange(steps, dtype=np.float32)) * ((last - first) * ((n - 1) / (steps - 1)))


def _interpolate(flat: Tensor, at: list[Tensor], lengths: tuple[int, ...]) -> Tensor:
    """Values of every channel between the neighbours of fractional coordinates, (batch, channels, points)."""
    below = [math.floor(place) for place in at]
    parts = [place - low for place, low in zip(at, below)]
    terms = []
    for corner in itertools.product((0, 1), repeat=len(at)):
        shares = [part if upper else 1 - part for part, upper in zip(parts, corner)]
        share = functools.reduce(operator.mul, shares).expand_dims(1)
        terms.append(_gather_elements(flat, [low + upper for low, upper in zip(below, corner)], lengths) * share)
    return functools.reduce(operator.add, terms)


def _one_of(name: str, value: str, valid: tuple[str, ...], function: str = "grid_sample") -> None:
    if value not in valid:
        raise ArgumentError(f"{function}: {name} must be one of {', '.join(valid)}, got {value!r}")


def _in_image(places: list[Tensor], lengths: Sequence[int]) -> Tensor:
    """Whether coordinates are within the image."""
    return functools.reduce(operator.and_, [(place >= 0) & (place <= n - 1) for place, n in zip(places, lengths)])


def _place(x: Tensor, n: int, padding: str, align: bool) -> Tensor:
    """Coordinates along an axis of ``n`` elements, as fractional indices."""
    at = (x + 1) * ((n - 1) / 2) if align else ((x + 1) * n - 1) * 0.5
    if padding == "reflection":
        start, span = (0.0, float(n - 1)) if align else (-0.5, float(n))
        if not span:
            return at * 0
        beyond = math.abs(at - start)
        turns = math.floor(beyond / span)
        offset = beyond - turns * span
        at = math.where(turns % 2 == 0, offset, span - offset) + start
    return at if padding == "zeros" else math.clamp(at, 0, n - 1)


def _gather_elements(flat: Tensor, places: list[Tensor], lengths: tuple[int, ...]) -> Tensor:
    """Elements of every channel at integer indices, (batch, channels, points); zeros outside of the image."""
    index = tensor(np.zeros((), np.int64))
    for place, n in zip(places, lengths):
        index = index * n + cast(math.clamp(place, 0, n - 1), np.int64)
    shape = (*flat.shape[:2], index.shape[-1])
    numbers = gather_elements(flat, 2, index.expand_dims(1).broadcast_to(shape))
    return math.where(_in_image(places, lengths).expand_dims(1), numbers, scalar(0, numbers._dt))
