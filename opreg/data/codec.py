"""Images as files: the one place that meets Pillow, which the extra ``opreg[image]`` brings.

Files are of formats that are named here. Pillow knows others, of which one has Ghostscript run what the file says.
"""

from __future__ import annotations

import io
import os
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.files import INFLATED
from ..errors import ArgumentError, FileFormatError, OpError

__all__ = ["decode", "encode", "with_boxes"]

#: How OpenCV counts: keep what the file has, gray, colours.
UNCHANGED, GRAY, COLOR = -1, 0, 1

#: Extension -> Pillow's name of the format.
_FORMATS = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".bmp": "BMP", ".webp": "WEBP", ".tif": "TIFF",
            ".tiff": "TIFF"}
#: Formats that are read: these, animated pictures, of which the first counts, and the formats of Netpbm.
_READ = (*dict.fromkeys(_FORMATS.values()), "GIF", "PPM")

#: The pixels that any image may have; one of a longer file may have ``INFLATED`` for each byte. Formats that can make
#: more of a byte, as of a page with nothing on it, are seldom large.
_ANY_FILE = 2048 * 2048
_MOST = "OPREG_IMAGE_PIXELS"

#: Pixels of an image in colours that are made gray at a time.
_BAND = 1 << 16


def _pillow() -> Any:
    try:
        from PIL import (  # noqa: F401 (what reads and writes a format registers itself)
            BmpImagePlugin,
            GifImagePlugin,
            Image,
            JpegImagePlugin,
            PngImagePlugin,
            PpmImagePlugin,
            TiffImagePlugin,
            WebPImagePlugin,
        )
    except ImportError:
        raise OpError("images are decoded and encoded by Pillow, which is not installed: "
                      "pip install 'opreg[image]'") from None
    return Image


def decode(data: bytes | memoryview, flag: int = COLOR, name: str = "image") -> np.ndarray:
    """The pixels of an encoded image.

    Parameters
    ----------
    data : bytes
        Content of the file: JPEG, PNG, BMP, WebP, TIFF, GIF or PPM.
    flag : {1, 0, -1}
        1 for three channels, 0 for one, gray, -1 for those that the file has. Nothing is turned upright.
    name : str
        What an error calls it.

    Returns
    -------
    numpy.ndarray of shape (height, width, channels)
        Channels are red, green, blue and alpha; bytes, but for images of 16 bits that are not to be changed.

    Raises
    ------
    FileFormatError
        It is empty, cut off, damaged or of another kind; or it has more than four million pixels, and more than 1032
        for each byte of the file. ``OPREG_IMAGE_PIXELS`` sets another limit.
    """
    image_module = _pillow()
    if not len(data):
        raise FileFormatError(f"{name}: expected an encoded image, there are no bytes")
    try:
        with image_module.open(io.BytesIO(data), formats=_READ) as image:
            _check_size(image.size, len(data))
            if flag == GRAY:
                image.draft("L", None)  # JPEG has gray as it is
            image.load()
            pixels = _pixels(image, flag)
    except FileFormatError as error:
        raise FileFormatError(f"{name}: {error}") from None
    except (MemoryError, ArgumentError):
        raise
    except Exception as error:  # over damaged bytes Pillow's readers raise whatever comes up
        unknown = isinstance(error, image_module.UnidentifiedImageError)
        text = f"no image of a known kind, {', '.join(_READ)}" if unknown else str(error) or type(error).__name__
        raise FileFormatError(f"{name}: cannot be decoded: {text}") from None
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def _check_size(size: tuple[int, int], length: int) -> None:
    """Refuse an image with more pixels than its file justifies, before there is memory for them."""
    told = os.environ.get(_MOST, "")
    if told and not told.isdecimal():
        raise ArgumentError(f"{_MOST}={told!r}: expected the number of pixels that an image may have")
    most = int(told) if told else max(_ANY_FILE, length * INFLATED)
    width, height = size
    if width * height > most:
        raise FileFormatError(f"{width} by {height} pixels in a file of {length} bytes: expected at most {most}; "
                              f"{_MOST} says otherwise")


def _pixels(image: Any, flag: int) -> np.ndarray:
    if image.mode.startswith(("I", "F")):  # more than eight bits
        deep = np.asarray(image)
        if flag == UNCHANGED:
            return deep
        deep = (deep >> 8).astype(np.uint8) if deep.dtype.kind in "iu" else np.clip(deep, 0, 255).astype(np.uint8)
        return np.repeat(deep[:, :, None], 3, axis=2) if flag == COLOR else deep
    if image.mode in ("L", "1"):
        return _converted(image, "L" if flag != COLOR else "RGB")
    if flag == UNCHANGED:
        return _converted(image, "RGBA" if image.has_transparency_data else "RGB")
    colors = _converted(image, "RGB")
    return colors if flag == COLOR else _gray(colors)


def _converted(image: Any, mode: str) -> np.ndarray:
    return np.asarray(image if image.mode == mode else image.convert(mode))


def _gray(colors: np.ndarray) -> np.ndarray:
    """Grey values as libpng gives them to OpenCV, rounded down; some rows at a time, since products are four times as
    large."""
    height, width, _ = colors.shape
    gray = np.empty((height, width), np.uint8)
    step = max(1, _BAND // width)
    for row in range(0, height, step):
        weighed = colors[row:row + step].astype(np.int32) @ np.array([9797, 19234, 3737], np.int32)
        gray[row:row + step] = weighed >> 15
    return gray


def encode(pixels: np.ndarray, extension: str, quality: int) -> bytes:
    """An image as a file holds it.

    Parameters
    ----------
    pixels : numpy.ndarray of shape (height, width) or (height, width, channels), uint8
        Channels are red, green, blue and alpha, or one that is gray.
    extension : str
        What files of that kind end with: ".jpg", ".png".
    quality : int
        From 0 to 100 of a JPEG or WebP; how hard a PNG is compressed, from 0 to 9.

    Raises
    ------
    ArgumentError
        There is no such kind, or it cannot hold that array.
    """
    image_module = _pillow()
    kind = _FORMATS.get(extension.lower())
    if kind is None:
        raise ArgumentError(f"img_fmt={extension!r}: expected one of {', '.join(_FORMATS)}")
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.dtype != np.uint8 or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))):
        raise ArgumentError(f"expected an image of bytes with one, three or four channels behind, got shape "
                            f"{pixels.shape} of {pixels.dtype}")
    options = {"compress_level": min(max(quality, 0), 9)} if kind == "PNG" else {"quality": quality}
    file = io.BytesIO()
    try:
        image_module.fromarray(np.ascontiguousarray(pixels)).save(file, kind, **options)
    except (OSError, ValueError, SystemError) as error:
        raise ArgumentError(f"no {extension} of an image of shape {pixels.shape}: {error}") from None
    return file.getvalue()


def with_boxes(pixels: np.ndarray, boxes: np.ndarray, color: Sequence[int] | None, thickness: int,
               names: Mapping[int, str]) -> np.ndarray:
    """An image with boxes drawn into it: rows (class, left, top, right, bottom), from 0 to 1."""
    image_module = _pillow()
    from PIL import ImageDraw

    image = image_module.fromarray(pixels)
    draw = ImageDraw.Draw(image)
    height, width = pixels.shape[:2]
    for row in boxes:
        corners = [int(part * size) for part, size in zip(row[1:5], (width, height, width, height))]
        drawn = tuple(color) if color is not None else tuple(random.randrange(256) for _ in range(3))
        draw.rectangle(corners, outline=drawn, width=thickness)
        if int(row[0]) in names:
            draw.text((corners[0] + 5, corners[1] + 5), names[int(row[0])], fill=(255, 255, 255))
    return np.asarray(image)
