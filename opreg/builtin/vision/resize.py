"""Resizing of images: averages over a grid of cells, and bilinear interpolation.

Both weight rows and columns separately, so an image is multiplied by a small matrix on each side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ...core.registry import ops
from ...core.spec import ANY, Shape, show
from ...custom.composed import composed, constant
from ...errors import AttrError, ShapeError
from ...typing import Array
from ..outputs import declare_gradient, in_dtype_of, like_inputs, widen


def _image(data: Shape) -> None:
    if len(data) != 4:
        raise ShapeError(f"data: expected four axes (batch, channel, height, width), got shape {show(data)}")


def _weigh_pixels(data: Any, size: Shape, matrix: Callable[..., Array], turned: bool = False) -> Any:
    """``rows @ image @ columns.T`` of every image, to height and width ``size``.

    ``matrix(n, m, dtype)`` maps ``n`` elements to ``m``; with ``turned``, for the gradient, ``m`` to ``n``.
    """
    _image(data.shape)
    x = widen(data)

    def weights(n: int, m: int) -> Array:
        return matrix(m, n, x.dtype).T if turned else matrix(n, m, x.dtype)

    (height, width), (rows, columns) = data.shape[2:], size
    across = constant(lambda n, m: weights(n, m).T, width, columns)
    return in_dtype_of(ops._npi_matmul(constant(weights, height, rows), ops._npi_matmul(x, across)), data)


# ---------------------------------------------------------------------------------- AdaptiveAvgPooling2D


@composed(name="_contrib_AdaptiveAvgPooling2D")
def adaptive_pooling(data, *, output_size: int | tuple[int, ...] = ()):
    """Averages over the cells of a grid of ``output_size``, (height, width) or one number for both.

    Cell ``i`` of ``m`` covers the elements from ``floor(i * n / m)`` to ``ceil((i + 1) * n / m)``; cells may overlap.
    """
    return _weigh_pixels(data, _grid(output_size), _cells)


def _grid(output_size: int | Shape) -> Shape:
    sizes = (output_size,) if isinstance(output_size, int) else output_size or (1,)
    if len(sizes) > 2 or min(sizes) < 1:
        raise AttrError(f"output_size={output_size}: expected one or two positive numbers")
    return (*sizes, *sizes)[:2]


def _cells(n: int, m: int, dtype: np.dtype) -> Array:
    """The matrix that averages ``n`` elements over ``m`` cells."""
    cell, place = np.arange(m).reshape(m, 1), np.arange(n)
    first, last = cell * n // m, -(-(cell + 1) * n // m)
    return ((place >= first) & (place < last)).astype(dtype) / (last - first).astype(dtype)


@composed(name="_backward_contrib_AdaptiveAvgPooling2D", types="T,U->T", unread=(1,))
def adaptive_pooling_data(g, data, *, output_size: int | tuple[int, ...] = ()):
    """The gradient of averages over cells."""
    return _weigh_pixels(g, data.shape[2:], _cells, turned=True)


adaptive_pooling_data.infer(like_inputs(1))
declare_gradient(adaptive_pooling, adaptive_pooling_data)  # derived from the body it takes 1.1 to 1.3 times as long


# -------------------------------------------------------------------------------------- BilinearResize2D

Mode = Literal["size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"]


@composed(name="_contrib_BilinearResize2D",
          arguments=lambda *, mode: ("data", "like") if mode == "like" else ("data",))
def bilinear_resize(data, like=None, *, height: int = 1, width: int = 1, scale_height: float | None = None,
                    scale_width: float | None = None, mode: Mode = "size", align_corners: bool = True):
    """Images resized with bilinear interpolation.

    ``mode`` chooses the size: "size" is ``height`` and ``width``, or the scaled size if scales are given; "odd_scale"
    is the scaled size, kept odd for odd sizes; "like" is the size of a second input; the other modes give the nearest
    even or odd size.
    ``align_corners`` maps the corner elements of input and output to each other; without it the edges of the images are
    mapped to each other.
    """
    _image(data.shape if like is None else like.shape)
    if like is None:
        size: Shape = tuple([_resized_length(*axis, mode) for axis in (
            (data.shape[-2], height, scale_height), (data.shape[-1], width, scale_width))])
    else:
        size = like.shape[2:]
    if any(length < 1 for length in size):
        raise AttrError(f"the size to resize to is {show(size)}: expected positive numbers")
    return _weigh_pixels(data, size, functools.partial(between, align_corners=align_corners))


def _resized_length(n: int, size: int, scale: float | None, mode: str) -> int:
    """The output size along an axis of length ``n``."""
    if n is ANY and (mode != "size" or scale is not None):
        return ANY
    if mode.startswith("to_"):
        wrong = n % 2 == (1 if "even" in mode else 0)
        return n + wrong * (1 if mode.endswith("up") else -1)
    if scale is None:
        if mode == "odd_scale":
            raise AttrError("mode 'odd_scale' needs scale_height and scale_width")
        return size
    odd = mode == "odd_scale" and n % 2 == 1
    # Computed in single precision, as MXNet does: 0.29 of 100 is 29.
    return int(np.float32(n - odd) * np.float32(scale)) + odd


def between(n: int, m: int, dtype: np.dtype, *, align_corners: bool) -> Array:
    """The matrix that interpolates ``m`` elements from ``n``."""
    place = np.arange(m).astype(np.float64)
    if align_corners:
        place = place * ((n - 1) / max(1, m - 1))
    elif m > 1:  # a single pixel is the first one, with or without corners
        place = np.maximum((place + 0.5) * (n / m) - 0.5, 0.0)
    low = np.minimum(np.floor(place).astype(np.int64), n - 1)
    part = (place - low).astype(dtype)
    rows = np.arange(m)
    matrix = np.zeros((m, n), dtype)
    matrix[rows, low] = 1 - part
    matrix[rows, np.minimum(low + 1, n - 1)] += part
    return matrix


@composed(name="_backward_contrib_BilinearResize2D", types="T,U->T", unread=(1,))
def bilinear_resize_data(g, data, *, align_corners: bool = True):
    """The gradient of resized images."""
    return _weigh_pixels(g, data.shape[2:], functools.partial(between, align_corners=align_corners), turned=True)


bilinear_resize_data.infer(like_inputs(1))
declare_gradient(bilinear_resize, bilinear_resize_data)  # derived from the body it takes up to 1.15 times as long
