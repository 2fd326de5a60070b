"""Images as arrays (height, width, channels): decoding, resizing, cropping, rotation.

Random values are drawn from the modules ``random`` and ``numpy.random`` in MXNet's order, so the same seeds give the
same crops.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Sequence
from numbers import Number
from typing import Any, TypeAlias

import numpy as np

from opreg.ndarray import NDArray, array
from opreg.ndarray import _internal as operators

from ..core.files import open_to_read
from ..core.named_errors import name_errors
from ..core.settings import number
from ..errors import ArgumentError, DTypeError, ShapeError, refuse_keywords, warn
from . import codec

__all__ = ["imdecode", "imread", "imresize", "resize_short", "copyMakeBorder", "scale_down", "fixed_crop",
           "random_crop", "center_crop", "random_size_crop", "color_normalize", "imrotate", "random_rotate"]

#: Left, top, width and height of a crop.
Place: TypeAlias = tuple[int, int, int, int]


def imdecode(buf: bytes | bytearray | memoryview | np.ndarray | NDArray, flag: int = 1, to_rgb: bool | int = True,
             out: NDArray | None = None) -> NDArray:
    """Decodes an image.

    Parameters
    ----------
    buf : bytes, or array of uint8
        A JPEG, PNG, BMP, WebP, TIFF, GIF (its first frame) or PPM.
    flag : {1, 0}
        1 for three channels, 0 for grayscale.
    to_rgb : bool
        Whether the channels are red, green, blue, instead of OpenCV's blue, green, red.
    out : NDArray, optional
        Array that the image is written to.

    Returns
    -------
    NDArray of shape (height, width, channels), uint8

    Raises
    ------
    FileFormatError
        If the bytes are not a complete image of these formats, or if the image has more than four million pixels and
        more than 1032 per byte. ``OPREG_IMAGE_PIXELS`` sets another limit.
    """
    if isinstance(buf, NDArray):
        buf = buf.asnumpy()
    if not isinstance(buf, (bytes, bytearray, memoryview, np.ndarray)):
        raise ArgumentError(f"imdecode: expected the bytes of an image, got {type(buf).__name__}")
    return _decode(bytes(buf), flag, to_rgb, out, "imdecode")


def imread(filename: str | os.PathLike, flag: int = 1, to_rgb: bool | int = True, out: NDArray | None = None
           ) -> NDArray:
    """Reads and decodes an image file; see `imdecode`."""
    with open_to_read(filename) as file:
        return _decode(file.read(), flag, to_rgb, out, os.fspath(filename))


def _decode(data: bytes, flag: int, to_rgb: bool | int, out: NDArray | None, name: str) -> NDArray:
    if flag not in (0, 1):
        raise ArgumentError(f"flag={flag!r}: expected 1 for colours or 0 for gray")
    pixels = codec.decode(data, int(flag), name)
    image = array(pixels if to_rgb else pixels[:, :, ::-1], dtype=np.uint8)
    if out is None:
        return image
    out[:] = image
    return out


def imresize(src: NDArray, w: int, h: int, interp: int = 1, out: NDArray | None = None) -> NDArray:
    """Resizes an image as OpenCV does.

    Parameters
    ----------
    src : NDArray of shape (height, width, channels)
        The image.
    w, h : int
        New width and height.
    interp : int
        Interpolation: 0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos over eight pixels; 9 cubic to enlarge, area to
        shrink and else linear; 10 a random one of the first five.

    Examples
    --------
    >>> imresize(array([[[0], [100]]], dtype="uint8"), 4, 1).asnumpy().ravel()
    array([  0,  25,  75, 100], dtype=uint8)
    """
    interp = interpolation(interp, (src.shape[0], src.shape[1], h, w))
    return operators._cvimresize(src, w=w, h=h, interp=interp, out=out)


def interpolation(interp: int, sizes: Sequence[int] = ()) -> int:
    """The interpolation method of a code, given the old and new height and width; code 9 is cubic without them."""
    if interp == 9:
        if not sizes:
            return 2
        height, width, new_height, new_width = sizes
        if new_height > height and new_width > width:
            return 2
        return 3 if new_height < height and new_width < width else 1
    if interp == 10:
        return random.randint(0, 4)
    if interp not in (0, 1, 2, 3, 4):
        raise ArgumentError(f"interp={interp!r}: expected 0 to 4, 9 or 10")
    return interp


def copyMakeBorder(src: NDArray, top: int, bot: int, left: int, right: int, type: int = 0,
                   value: float = 0.0, values: Sequence[float] = (), out: NDArray | None = None) -> NDArray:
    """Adds a border to an image.

    Parameters
    ----------
    src : NDArray of shape (height, width, channels)
        The image.
    top, bot, left, right : int
        Widths of the border on the four sides.
    type : int
        Content of the border: 0, constant (``values`` per channel, or ``value``); 1, the edge pixels repeated; 2,
        reflected; 3, wrapped around; 4, reflected without the edge pixels.
    """
    # OpenCV's flag 16 (isolated): no pixel outside the image is read.
    return operators._cvcopyMakeBorder(
        src, top=top, bot=bot, left=left, right=right, type=type & ~16, value=value, values=tuple(values), out=out)


def scale_down(src_size: Sequence[int], size: Sequence[int]) -> tuple[int, int]:
    """The width and height of a crop, scaled down to fit into the image with the same aspect ratio.

    Examples
    --------
    >>> scale_down((640, 480), (720, 120))
    (640, 106)
    """
    width, height = (float(side) for side in size)
    outer_width, outer_height = src_size
    if outer_height < height:
        width, height = width * outer_height / height, outer_height
    if outer_width < width:
        width, height = outer_width, height * outer_width / width
    return int(width), int(height)


def resize_short(src: NDArray, size: int, interp: int = 2) -> NDArray:
    """The image resized so that its shorter edge is ``size``.

    Examples
    --------
    >>> resize_short(array(np.zeros((6, 8, 3), "uint8")), 3).shape
    (3, 4, 3)
    """
    height, width, _ = src.shape
    new_height, new_width = shorter(height, width, size)
    return imresize(src, new_width, new_height, interp)


def shorter(height: int, width: int, size: int) -> tuple[int, int]:
    """The height and width after resizing the shorter edge to ``size``."""
    return (size * height // width, size) if height > width else (size, size * width // height)


def fixed_crop(src: NDArray, x0: int, y0: int, w: int, h: int, size: Sequence[int] | None = None, interp: int = 2
               ) -> NDArray:
    """A crop of an image, by its left, top, width and height, resized to ``size`` if given.

    Examples
    --------
    >>> fixed_crop(array(np.zeros((6, 8, 3), "uint8")), 1, 2, 4, 3).shape
    (3, 4, 3)
    """
    part = src[y0:y0 + h, x0:x0 + w]
    if 0 in part.shape:
        raise ShapeError(f"fixed_crop: there are no {w} by {h} pixels from ({x0}, {y0}) on in an image of shape "
                         f"{src.shape}")
    if size is None or (w, h) == tuple(size):
        return part.copy()
    return imresize(part, size[0], size[1], interp)


def random_crop(src: NDArray, size: Sequence[int], interp: int = 2) -> tuple[NDArray, Place]:
    """A random crop, scaled if it is larger than the image; and its position.

    Examples
    --------
    >>> image, box = random_crop(array(np.zeros((6, 8, 3), "uint8")), (4, 2))
    >>> image.shape, box[2:]
    ((2, 4, 3), (4, 2))
    """
    height, width, _ = src.shape
    new_width, new_height = scale_down((width, height), size)
    x, y = random.randint(0, width - new_width), random.randint(0, height - new_height)
    return fixed_crop(src, x, y, new_width, new_height, size, interp), (x, y, new_width, new_height)


def center_crop(src: NDArray, size: Sequence[int], interp: int = 2) -> tuple[NDArray, Place]:
    """The center crop, scaled if it is larger than the image; and its position.

    Examples
    --------
    >>> image, box = center_crop(array(np.zeros((6, 8, 3), "uint8")), (4, 2))
    >>> image.shape, box
    ((2, 4, 3), (2, 2, 4, 2))
    """
    height, width, _ = src.shape
    new_width, new_height = scale_down((width, height), size)
    x, y = (width - new_width) // 2, (height - new_height) // 2
    return fixed_crop(src, x, y, new_width, new_height, size, interp), (x, y, new_width, new_height)


def random_size_crop(src: NDArray, size: Sequence[int], area: float | Sequence[float], ratio: Sequence[float],
                     interp: int = 2, **keywords: Any) -> tuple[NDArray, Place]:
    """A random crop of random area and aspect ratio, resized; and its position.

    Parameters
    ----------
    src : NDArray of shape (height, width, channels)
        The image.
    size : tuple of int
        Width and height of the output.
    area : float or pair of floats
        Smallest area relative to the image, or smallest and largest.
    ratio : pair of floats
        Smallest and largest ratio of width to height.
    """
    area = old_area("random_size_crop", area, keywords)
    lowest, highest = (area, 1.0) if isinstance(area, Number) else area  # type: ignore[misc]
    for limit in (lowest, highest):
        number("random_size_crop: area", limit, 0)
    for limit in ratio:
        number("random_size_crop: ratio", limit, 0, inside=True)
    height, width, _ = src.shape
    for _ in range(10):
        target = random.uniform(lowest, highest) * (height * width)  # type: ignore[arg-type]
        drawn = math.exp(random.uniform(math.log(ratio[0]), math.log(ratio[1])))
        new_width, new_height = round(math.sqrt(target * drawn)), round(math.sqrt(target / drawn))
        if new_width <= width and new_height <= height:
            x, y = random.randint(0, width - new_width), random.randint(0, height - new_height)
            return fixed_crop(src, x, y, new_width, new_height, size, interp), (x, y, new_width, new_height)
    return center_crop(src, size, interp)


def old_area(what: str, area: Any, keywords: dict[str, Any]) -> Any:
    """The area, also by its deprecated keyword."""
    if "min_area" in keywords:
        warn(f"{what}: min_area is now called area", DeprecationWarning)
        area = keywords.pop("min_area")
    refuse_keywords(what, keywords, ("area", "ratio"))
    return area


def color_normalize(src: NDArray, mean: NDArray | float | None, std: NDArray | float | None = None) -> NDArray:
    """The image minus a mean, divided by a standard deviation; computed in place.

    Examples
    --------
    >>> image = array(np.full((1, 1, 3), 10.0, "float32"))
    >>> color_normalize(image, array([4.0, 4.0, 4.0]), array([2.0, 2.0, 3.0])).asnumpy()
    array([[[3., 3., 2.]]], dtype=float32)
    """
    if mean is not None:
        src -= mean
    if std is not None:
        src /= std
    return src


def imrotate(src: NDArray, rotation_degrees: float | NDArray, zoom_in: bool = False, zoom_out: bool = False) -> NDArray:
    """Rotates images around their center.

    Parameters
    ----------
    src : NDArray of shape (channels, height, width), or several of them, float32
        The images.
    rotation_degrees : float or NDArray
        Angle of rotation in degrees, or one angle per image.
    zoom_in, zoom_out : bool
        Whether to zoom in until no corner is empty, or out until nothing is cut off.
    """
    if zoom_in and zoom_out:
        raise ArgumentError("imrotate: zoom_in and zoom_out exclude each other")
    if src.dtype != np.float32:
        raise DTypeError(f"imrotate: expected images of float32, got {np.dtype(src.dtype).name}")
    if src.ndim not in (3, 4):
        raise ShapeError(f"imrotate: expected an image (channel, height, width) or a batch of them, got {src.shape}")
    if src.ndim == 3 and not isinstance(rotation_degrees, Number):
        raise ArgumentError(f"imrotate: expected one angle for one image, got {rotation_degrees!r}")
    images = src if src.ndim == 4 else src.expand_dims(axis=0)
    degrees = rotation_degrees.asnumpy() if isinstance(rotation_degrees, NDArray) else rotation_degrees
    angles = np.asarray(degrees, np.float32)
    if angles.ndim == 0:
        angles = np.repeat(angles, len(images))
    if len(angles) != len(images):
        raise ArgumentError(f"imrotate: {len(angles)} angles for {len(images)} images")
    height, width = images.shape[2:]
    grid = np.stack([_source_positions(height, width, float(angle) * math.pi / 180, zoom_in,
                                       zoom_out) for angle in angles])
    turned = operators.BilinearSampler(images, array(grid, ctx=src.context))
    return turned if src.ndim == 4 else turned[0]


def _source_positions(height: int, width: int, angle: float, zoom_in: bool, zoom_out: bool) -> np.ndarray:
    """The source position of each pixel, in [-1, 1] along both axes."""
    half_height, half_width = (height - 1) / 2, (width - 1) / 2
    down, across = np.arange(height)[:, None] - half_height, np.arange(width)[None] - half_width
    sine, cosine = math.sin(angle), math.cos(angle)
    grid = np.stack([(across * cosine - down * sine) / half_width, (across * sine + down * cosine) / half_height])
    if zoom_in or zoom_out:
        diagonal, corner, turn = math.hypot(height, width), math.atan2(height, width), abs(angle)
        longest = [max(abs(diagonal * side(corner + turn)), abs(diagonal * side(corner - turn)))
                   for side in (math.cos, math.sin)]
        ratios = [size / most for size, most in zip((width, height), longest)]
        grid *= min(ratios) if zoom_in else max(1 / ratio for ratio in ratios)
    return grid.astype(np.float32)


def random_rotate(src: NDArray, angle_limits: tuple[float, float], zoom_in: bool = False, zoom_out: bool = False
                  ) -> NDArray:
    """Rotates images around their center, each by a random angle within limits; see `imrotate`."""
    angles: Any
    if src.ndim == 3:
        angles = np.random.uniform(*angle_limits)  # noqa: NPY002 (the generator that programs seed)
    else:
        angles = array(np.random.uniform(*angle_limits, size=len(src)))  # noqa: NPY002
    return imrotate(src, angles, zoom_in, zoom_out)


name_errors(__name__, globals(), __all__)
