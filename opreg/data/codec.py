"""Encoding and decoding of images by Pillow, an optional package, installed by ``opreg[image]``.

Only the formats named here are read. Pillow supports more, one of which runs Ghostscript on the file.
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

#: Codes of OpenCV: unchanged, gray, colours.
UNCHANGED, GRAY, COLOR = -1, 0, 1

#: File extension -> Pillow's name of the format.
_FORMATS = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".bmp": "BMP", ".webp": "WEBP", ".tif": "TIFF",
            ".tiff": "TIFF"}
#: Formats that are read: these, animated images, whose first frame is used, and Netpbm formats.
_READ = (*dict.fromkeys(_FORMATS.values()), "GIF", "PPM")

#: Number of pixels that any image may have; larger files may have ``INFLATED`` pixels for each byte. Larger images that
#: compress better, such as an empty page, are rare.
_ANY_FILE = 2048 * 2048
_MOST = "OPREG_IMAGE_PIXELS"

#: Number of pixels converted to gray at a time.
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
        1 for three channels, 0 for one gray channel, -1 for the file's own channels. The orientation tag is ignored.
    name : str
        Name of the image in errors.

    Returns
    -------
    numpy.ndarray of shape (height, width, channels)
        Channels are red, green, blue and alpha; uint8, except for 16-bit images read with -1.

    Raises
    ------
    FileFormatError
        It is empty, cut off, damaged or of another kind; or it has more than four million pixels, and more than 1032
        for each byte of the file. ``OPREG_IMAGE_PIXELS`` sets another limit.
    """
    image_module = _pillow()
    if not len(data):
        raise FileFormatError(f"{name}: expected an encoded image, got no bytes")
    try:
        with image_module.open(io.BytesIO(data), formats=_READ) as image:
            _check_size(image.size, len(data))
            if flag == GRAY:
                image.draft("L", None)  # JPEG files have gray
            image.load()
            pixels = _pixels(image, flag)
    except FileFormatError as error:
        raise FileFormatError(f"{name}: {error}") from None
    except (MemoryError, ArgumentError):
        raise
    except Exception as error:  # on damaged data Pillow raises exceptions of any type
        unknown = isinstance(error, image_module.UnidentifiedImageError)
        text = f"no image of a known kind, {', '.join(_READ)}" if unknown else str(error) or type(error).__name__
        raise FileFormatError(f"{name}: cannot be decoded: {text}") from None
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def _check_size(size: tuple[int, int], length: int) -> None:
    """Refuse an image with too many pixels for the size of its file, before memory is allocated."""
    setting = os.environ.get(_MOST, "")
    if setting and not setting.isdecimal():
        raise ArgumentError(f"{_MOST}={setting!r}: expected the number of pixels that an image may have")
    most = int(setting) if setting else max(_ANY_FILE, length * INFLATED)
    width, height = size
    if width * height > most:
        raise FileFormatError(f"{width} by {height} pixels in a file of {length} bytes: expected at most {most}; "
                              f"set {_MOST} to allow more")


def _pixels(image: Any, flag: int) -> np.ndarray:
    if image.mode.startswith(("I", "F")):  # these modes have more than eight bits
        deep = np.asarray(image)
        if flag == UNCHANGED:
            return deep
        deep = (deep >> 8).astype(np.uint8) if deep.dtype.kind in "iu" else np.clip(deep, 0, 255).astype(np.uint8)
        return np.repeat(deep[:, :, None], 3, axis=2) if flag == COLOR else deep
    if image.mode in ("L", "1"):
        return _convert_mode(image, "L" if flag != COLOR else "RGB")
    if flag == UNCHANGED:
        return _convert_mode(image, "RGBA" if image.has_transparency_data else "RGB")
    colors = _convert_mode(image, "RGB")
    return colors if flag == COLOR else _gray(colors)


def _convert_mode(image: Any, mode: str) -> np.ndarray:
    return np.asarray(image if image.mode == mode else image.convert(mode))


def _gray(colors: np.ndarray) -> np.ndarray:
    """Gray values as in OpenCV, which uses libpng's formula, rounded down; computed for some rows at a time to save
    memory."""
    height, width, _ = colors.shape
    gray = np.empty((height, width), np.uint8)
    step = max(1, _BAND // width)
    for row in range(0, height, step):
        weighed = colors[row:row + step].astype(np.int32) @ np.array([9797, 19234, 3737], np.int32)
        gray[row:row + step] = weighed >> 15
    return gray


def encode(pixels: np.ndarray, extension: str, quality: int) -> bytes:
    """The encoded bytes of an image.

    Parameters
    ----------
    pixels : numpy.ndarray of shape (height, width) or (height, width, channels), uint8
        Channels are red, green, blue and alpha, or one that is gray.
    extension : str
        File extension: ".jpg", ".png".
    quality : int
        Quality of a JPEG or WebP, from 0 to 100; compression level of a PNG, from 0 to 9.

    Raises
    ------
    ArgumentError
        When the format is unknown, or cannot hold the array.
    """
    image_module = _pillow()
    kind = _FORMATS.get(extension.lower())
    if kind is None:
        raise ArgumentError(f"img_fmt={extension!r}: expected one of {', '.join(_FORMATS)}")
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.dtype != np.uint8 or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))):
        raise ArgumentError(f"expected a uint8 image with one, three or four channels last, got shape "
                            f"{pixels.shape} of {pixels.dtype}")
    options = {"compress_level": min(max(quality, 0), 9)} if kind == "PNG" else {"quality": quality}
    file = io.BytesIO()
    try:
        image_module.fromarray(np.ascontiguousarray(pixels)).save(file, kind, **options)
    except (OSError, ValueError, SystemError) as error:
        raise ArgumentError(f"cannot encode an image of shape {pixels.shape} as {extension}: {error}") from None
    return file.getvalue()


def with_boxes(pixels: np.ndarray, boxes: np.ndarray, color: Sequence[int] | None, thickness: int,
               names: Mapping[int, str]) -> np.ndarray:
    """An image with boxes drawn on it, given as rows (class, left, top, right, bottom) with coordinates from 0 to 1."""
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
