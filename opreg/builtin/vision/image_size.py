"""Resizing and borders of images (height, width, channel), as in OpenCV.

Interpolation weights rows and columns separately. Positions and weights are in single precision, those for uint8 in
multiples of 1/2048, as in OpenCV.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ...core.attrs import Positive
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.rules import Rule
from ...core.spec import ANY, Shape, show
from ...custom.composed import composed, constant
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule, DTypeLike
from ..forms import declare_form

#: Nearest, linear, cubic, area, Lanczos over eight pixels.
Interpolation = Literal[0, 1, 2, 3, 4]
NEAREST, LINEAR, CUBIC, AREA, LANCZOS = range(5)

#: Weights of bytes are integer multiples of one over this number.
_PARTS = 2048

#: All rows and columns.
_ALL = (slice(None), slice(None))

#: The parameter of cubic interpolation: the slope of the kernel at its first zero.
_SLOPE = -0.75

#: OpenCV's vectors sum this many cubic values of a row of bytes in single precision. Values that do not fill a vector
#: are summed as integers.
_LANES = 8

#: Cosine and sine of 0, -3, -6 to -21 eighths of a turn.
_DIAGONAL = math.sqrt(0.5)
_TURNS = ((1, 0), (-_DIAGONAL, -_DIAGONAL), (0, 1), (_DIAGONAL, -_DIAGONAL),
          (-1, 0), (_DIAGONAL, _DIAGONAL), (0, -1), (-_DIAGONAL, _DIAGONAL))


# -------------------------------------------------------------------------- source pixels and their weights


def _scale(n: int, m: int) -> float:
    """Source pixels for each of ``m`` pixels of ``n``, rounded as OpenCV rounds it."""
    return 1 / (m / n)


def _positions(xp: ArrayModule, n: int, m: int, first: int) -> tuple[Array, Array]:
    """Source positions of ``m`` pixels among ``n``: the index of the pixel before each, and the distance from it."""
    place = ((xp.arange(m) + 0.5) * _scale(n, m) - 0.5).astype(xp.float32)
    low = xp.floor(place)
    return low.astype(xp.int64) + first, place - low


def _linear(xp: ArrayModule, n: int, m: int, area: bool) -> tuple[Array, Array]:
    """The first of the two source pixels of each of ``m`` pixels, which may be outside, and the distance from it.

    With ``area`` and enlargement, each pixel is the average of the one or two source pixels that it covers.
    """
    if not area:
        return _positions(xp, n, m, 0)
    low = xp.floor(xp.arange(m) * _scale(n, m))
    part = (xp.arange(m) + 1 - (low + 1) * (m / n)).astype(xp.float32)
    return low.astype(xp.int64), xp.where(part <= 0, 0.0, part - xp.floor(part))


def _cubic(xp: ArrayModule, part: Array) -> list[Array]:
    """The weights of cubic interpolation: R. Keys, Cubic convolution interpolation for digital image processing,
    1981."""

    def near(t: Array) -> Array:
        return ((_SLOPE + 2) * t - (_SLOPE + 3)) * t * t + 1

    def far(t: Array) -> Array:
        return ((_SLOPE * t - 5 * _SLOPE) * t + 8 * _SLOPE) * t - 4 * _SLOPE

    weights = [far(part + 1), near(part), near(1 - part)]
    return [*weights, 1 - weights[0] - weights[1] - weights[2]]


def _lanczos(xp: ArrayModule, part: Array) -> list[Array]:
    """The weights of Lanczos interpolation, ``sinc(t) sinc(t / 4)`` at eight distances, normalized to sum to one."""
    exact = part < 1.2e-7
    angle = (part + 3).astype(xp.float64) * (-math.pi / 4)
    sine, cosine = xp.sin(angle), xp.cos(angle)
    weights = []
    for i, turn in enumerate(_TURNS):  # the sine at each distance is computed from the sine at the first one
        t = xp.where(exact, 1.0, part + 3 - i).astype(xp.float64) * (-math.pi / 4)
        weights.append(((turn[0] * sine + turn[1] * cosine) / (t * t)).astype(xp.float32))
    total = weights[0]
    for weight in weights[1:]:
        total = total + weight
    scale = 1 / xp.where(exact, 1.0, total)
    return [xp.where(exact, 1.0 if i == 3 else 0.0, weight * scale) for i, weight in enumerate(weights)]


def _taps(xp: ArrayModule, n: int, m: int, interp: int, area: bool, axis: int, part: slice
          ) -> list[tuple[Array, Array]]:
    """The source pixels of each resized pixel along one axis, and their weights.

    ``n`` pixels are resized to ``m``, of which only ``part`` is computed.
    """
    if interp in (LINEAR, AREA):
        low, behind = _linear(xp, n, m, area)
        if axis == 2:  # at the ends of rows OpenCV reads one pixel, at the ends of columns the same one twice
            behind = xp.where((low < 0) | (low >= n - 1), 0, behind)
        weights = [1 - behind, behind]
    elif interp == CUBIC:
        low, behind = _positions(xp, n, m, -1)
        weights = _cubic(xp, behind)
    else:
        low, behind = _positions(xp, n, m, -3)
        weights = _lanczos(xp, behind)
    shape = [-1 if i == axis else 1 for i in range(4)]
    return [(xp.clip(low[part] + i, 0, n - 1), weight[part].reshape(shape)) for i, weight in enumerate(weights)]


def _source_pixels(xp: ArrayModule, n: int, m: int, part: slice) -> list[tuple[Array, Array]]:
    """Source pixels among ``n`` that a part of ``m`` equal cells covers, from first to last, and their weights.

    OpenCV ignores less than a thousandth of a pixel at either end of a cell.
    """
    size = _scale(n, m)
    start = xp.arange(m)[part] * size
    end, covered = start + size, xp.minimum(size, n - start)
    last = xp.minimum(xp.floor(end), n - 1)
    first = xp.minimum(xp.ceil(start), last)
    before, after = first - start, xp.minimum(xp.minimum(end - last, 1), covered)
    shares = [(first - 1, xp.where(before > 1e-3, before, 0))]
    shares += [(first + i, xp.where(first + i < last, 1.0, 0)) for i in range(math.ceil(size))]
    shares += [(last, xp.where(end - last > 1e-3, after, 0))]
    return [(xp.clip(place, 0, n - 1).astype(xp.int64), (share / covered).astype(xp.float32))
            for place, share in shares]


# ------------------------------------------------------------------------------------------------ resized


def _fixed_point_weight(xp: ArrayModule, weight: Array) -> Array:
    """A weight in fixed point."""
    return xp.rint(weight * _PARTS).astype(xp.int32)


def _weighed_bytes(xp: ArrayModule, data: Array, columns: list[tuple[Array, Array]], rows: list[tuple[Array, Array]],
                   left_over: int) -> Array:
    """Bytes interpolated with integers, with OpenCV's rounding.

    OpenCV sums rows of cubic values in single precision, except the last ``left_over`` of a row, which do not fill a
    vector.
    """
    batch, height, width, channels = data.shape
    flat = data.reshape(batch, height, width * channels)
    x: Any = 0
    for place, weight in columns:  # byte by byte, which is faster than pixels of three bytes
        positions = (place[:, None] * channels + xp.arange(channels)).reshape(-1)
        part = xp.take(flat, positions, axis=2).astype(xp.int32)
        part *= xp.repeat(_fixed_point_weight(xp, weight.reshape(-1)), channels)
        x = xp.add(part, x, out=part)
    linear = len(rows) == 2
    if linear:
        x >>= 4
    taps = [(place, _fixed_point_weight(xp, weight.reshape(-1, 1))) for place, weight in rows]
    in_floats = x.shape[2] - left_over if len(rows) == 4 else 0
    y: Any = 2 if linear else _PARTS * _PARTS // 2
    for place, weight in taps:
        part = xp.take(x[:, :, in_floats:], place, axis=1)
        part *= weight
        if linear:
            part >>= 16
        y = xp.add(part, y, out=part)
    y >>= 2 if linear else 22
    if in_floats:
        total: Any = 0
        for place, weight in taps:
            part = xp.take(x[:, :, :in_floats], place, axis=1).astype(xp.float32)
            part *= (weight / _PARTS ** 2).astype(xp.float32)
            total = xp.add(part, total, out=part)
        y = xp.concatenate([xp.rint(total).astype(xp.int32), y], axis=2)
    y = y.reshape(batch, -1, columns[0][0].shape[0], channels)
    return y if linear else xp.clip(y, 0, 255)


def _average_part(xp: ArrayModule, data: Array, height: int, width: int, part: tuple[slice, slice]) -> Array:
    """A part of images reduced in size, where each pixel is the average of the area that it covers.

    OpenCV sums bytes in single precision, or as integers where each cell has the same number of whole pixels.
    """
    batch, old_height, old_width, channels = data.shape
    scales = _scale(old_height, height), _scale(old_width, width)
    are_integers = all(abs(scale - round(scale)) < 2.2e-16 for scale in scales)
    is_integer, dtype = data.dtype.kind in "iu", xp.float32 if data.dtype.name == "uint8" else _computed_in(xp, data)
    if not are_integers:
        x = data.astype(dtype)
        for axis, n, m in ((2, old_width, width), (1, old_height, height)):
            total: Any = 0
            for place, share in _source_pixels(xp, n, m, part[axis - 1]):
                term = xp.take(x, place, axis=axis)
                term *= share.reshape([-1 if i == axis else 1 for i in range(4)]).astype(dtype)
                total = xp.add(term, total, out=term)
            x = total
        return x
    down, across = old_height // height, old_width // width
    sums = xp.int64 if is_integer else dtype
    total = data.reshape(batch, height, down, old_width * channels)[:, part[0]].sum(axis=2, dtype=sums)
    total = total.reshape(batch, -1, width, across, channels)[:, :, part[1]].sum(axis=3)
    if is_integer and down == across == 2:
        return (total + 2) >> 2
    return total.astype(dtype) * (1 / (down * across))


def resize_part(xp: ArrayModule, data: Array, height: int, width: int, interp: int, part: tuple[slice, slice] = _ALL
                ) -> Array:
    """Resized images (batch, height, width, channel), in the dtype that is computed in; computing only a part of the
    rows and columns costs less."""
    old_height, old_width = data.shape[1:3]
    if (old_height, old_width) == (height, width):
        return data[:, part[0], part[1]]
    if interp == NEAREST:
        rows, columns = [xp.minimum(xp.floor(xp.arange(m) * _scale(n, m)).astype(xp.int64), n - 1)
                         for n, m in ((old_height, height), (old_width, width))]
        return xp.take(xp.take(data, rows[part[0]], axis=1), columns[part[1]], axis=2)
    if interp == AREA and height <= old_height and width <= old_width:
        x = _average_part(xp, data, height, width, part)
    else:
        columns = _taps(xp, old_width, width, interp, interp == AREA, 2, part[1])
        rows = _taps(xp, old_height, height, interp, interp == AREA, 1, part[0])
        if part is not _ALL:  # on the host, rows that the part does not need are omitted
            first, last = int(rows[0][0].min()), int(rows[-1][0].max())
            data, rows = data[:, first:last + 1], [(place - first, weight) for place, weight in rows]
        if data.dtype.name == "uint8":
            stop, channels = part[1].indices(width)[1], data.shape[3]
            left_over = max(0, stop * channels - width * channels // _LANES * _LANES)
            return _weighed_bytes(xp, data, columns, rows, min(left_over, columns[0][0].shape[0] * channels))
        x = data.astype(_computed_in(xp, data))
        for taps, axis in ((columns, 2), (rows, 1)):
            total: Any = 0
            for place, weight in taps:
                total = total + xp.take(x, place, axis=axis) * weight.astype(x.dtype)
            x = total
    if data.dtype.kind not in "iu":
        return x
    return xp.clip(xp.rint(x), xp.iinfo(data.dtype).min, xp.iinfo(data.dtype).max)


def _computed_in(xp: ArrayModule, data: Array) -> DTypeLike:
    """The dtype in which images are computed."""
    return xp.float32 if data.dtype.name == "float32" else xp.float64


@declare(name="_image_resize", aliases=("_npx__image_resize",))
def resize(data, *, size: int | tuple[int, ...] = (), keep_ratio: bool = False, interp: Interpolation = 1):
    """Images (..., height, width, channel) resized to ``size``, (width, height) or one number for both.

    With ``keep_ratio`` a single number is the length of the shorter side. ``interp`` is 0 for the nearest pixel, 1
    linear, 2 cubic, 3 area, 4 Lanczos over eight pixels.
    """


def _size(height: int, width: int, *, size: int | Shape, keep_ratio: bool) -> tuple[int, int]:
    """The height and width of the output."""
    sizes = (size,) if isinstance(size, int) else size
    if len(sizes) not in (1, 2) or min(sizes) < 1:
        raise AttrError(f"size={size}: expected one or two positive numbers, width and height")
    if len(sizes) == 2 or not keep_ratio:
        return sizes[-1], sizes[0]
    if height is ANY or width is ANY:
        return ANY, ANY
    if min(height, width) < 1:
        raise ShapeError(f"an image of {height} by {width} pixels has no ratio to keep")
    return (height * sizes[0] // width, sizes[0]) if height > width else (sizes[0], width * sizes[0] // height)


def _some(data: Shape) -> None:
    if any(dim is not ANY and dim < 1 for dim in data[-3:-1]):
        raise ShapeError(f"data: there are no pixels in shape {show(data)}")


@resize.infer
def resize_infer(data, *, size, keep_ratio):
    if len(data) not in (3, 4):
        raise ShapeError("data: expected an image (height, width, channel) or a batch of them, "
                         f"got shape {show(data)}")
    _some(data)
    return (*data[:-3], *_size(data[-3], data[-2], size=size, keep_ratio=keep_ratio), data[-1])


def _declare_resize(op: Op, size: Callable[..., tuple[int, int]]) -> None:
    """Declare that an operator resizes images to the height and width that ``size(height, width, **attrs)`` returns."""
    rule = Rule(size)

    @op.kernel()  # no body: OpenCV's arithmetic of bytes shifts integers
    def resizing_xp(xp, data, *, interp, **attrs):
        height, width = rule(attrs, *data.shape[-3:-1])
        images = data if data.ndim == 4 else data[None]
        return resize_part(xp, images, height, width, interp).reshape(*data.shape[:-3], height, width, data.shape[-1])


_declare_resize(resize, _size)


@declare(name="_cvimresize")
def cv_resize(src, *, w: Positive, h: Positive, interp: Interpolation = 1):
    """One image resized to width ``w`` and height ``h``; see ``_image_resize`` for ``interp``."""


declare_form(cv_resize, "(height > 0, width > 0, channel) -> (@h, @w, channel)")


_declare_resize(cv_resize, lambda height, width, *, w, h: (h, w))


# ------------------------------------------------------------------------------------------------ borders

Border = Literal[0, 1, 2, 3, 4]


@composed(name="_cvcopyMakeBorder")
def border(src, *, top: int, bot: int, left: int, right: int, type: Border = 0, value: float = 0.0,
           values: tuple[float, ...] = ()):
    """One image padded by ``top``, ``bot``, ``left`` and ``right`` pixels.

    ``type`` is the content of the border: 0 is a constant, one of ``values`` for each channel or ``value`` for all; 1
    the outermost pixels; 2 the reflection; 3 the opposite side; 4 the reflection without the outermost pixels.
    """
    if len(src.shape) != 3:
        raise ShapeError(f"src: expected an image (height, width, channel), got shape {show(src.shape)}")
    _some(src.shape)
    height, width, channels = src.shape
    if min(top, bot, left, right) < 0:
        raise AttrError(f"top={top}, bot={bot}, left={left}, right={right}: expected no negative widths")
    if len(values) > 4 or (values and len(values) < channels):
        raise AttrError(f"values={values}: expected a number for each of {channels} channels, four at most")
    if type:
        places = constant(lambda height, width: _source(height, top, bot, type)[:, None] * width + _source(
            width, left, right, type), height, width)
        return ops.take(ops._np_reshape(src, newshape=(height * width, channels)), places)

    def frame(height: int, width: int, channels: int) -> Array:
        colors = np.resize(np.asarray(values or value, np.float64), channels).astype(src.dtype)
        return np.broadcast_to(colors, (height + top + bot, width + left + right, channels))

    return ops._slice_assign(constant(frame, *src.shape), src, begin=(top, left), end=(top + height, left + width))


def _source(n: int, before: int, after: int, kind: int) -> Array:
    """The source pixels along an axis with borders."""
    place = np.arange(-before, n + after)
    if kind == 3:
        return place % n
    if kind == 2:
        place = place % (2 * n)
        return np.minimum(place, 2 * n - 1 - place)
    if kind == 4:
        period = max(1, 2 * n - 2)
        place = place % period
        return np.minimum(place, period - place) if n > 1 else place
    return np.clip(place, 0, n - 1)
