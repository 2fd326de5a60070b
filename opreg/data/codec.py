"""Images as files: the one place that meets Pillow, which the extra ``opreg[image]`` brings."""

from __future__ import annotations

import io
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, FileFormatError, OpError

__all__ = ["decode", "encode", "with_boxes"]

#: How OpenCV counts: keep what the file has, gray, colours.
UNCHANGED, GRAY, COLOR = -1, 0, 1

#: Extension -> Pillow's name of the format.
_FORMATS = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".bmp": "BMP", ".webp": "WEBP", ".tif": "TIFF",
            ".tiff": "TIFF"}


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise OpError("images are decoded and encoded by Pillow, which is not installed: "
                      "pip install 'opreg[image]'") from None
    return Image


def decode(data: bytes | memoryview, flag: int = COLOR, name: str = "image") -> np.ndarray:
    """The pixels of an encoded image.

    Parameters
    ----------
    data : bytes
        What the file holds: JPEG, PNG, BMP or whatever else Pillow knows.
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
        It is empty, damaged, absurdly large or of an unknown kind.
    """
    image_module = _pillow()
    if not len(data):
        raise FileFormatError(f"{name}: expected an encoded image, there are no bytes")
    try:
        with image_module.open(io.BytesIO(data)) as image:
            if flag == GRAY:
                image.draft("L", None)  # JPEG has gray as it is
            image.load()
            pixels = _pixels(image, flag)
    except (OSError, ValueError, SyntaxError, EOFError, image_module.DecompressionBombError) as error:
        text = "no image of a known kind" if isinstance(error, image_module.UnidentifiedImageError) else error
        raise FileFormatError(f"{name}: cannot be decoded: {text}") from None
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def _pixels(image: Any, flag: int) -> np.ndarray:
    if image.mode.startswith(("I", "F")):  # more than eight bits
        deep = np.asarray(image)
        if flag == UNCHANGED:
            return deep
        deep = (deep >> 8).astype(np.uint8) if deep.dtype.kind in "iu" else np.clip(deep, 0, 255).astype(np.uint8)
        return np.repeat(deep[:, :, None], 3, axis=2) if flag == COLOR else deep
    if image.mode in ("L", "1"):
        return np.asarray(image.convert("L" if flag != COLOR else "RGB"))
    if flag == UNCHANGED:
        return np.asarray(image.convert("RGBA" if image.has_transparency_data else "RGB"))
    colors = np.asarray(image.convert("RGB"))
    if flag == COLOR:
        return colors
    # As libpng does it for OpenCV, which rounds down.
    weighed = colors.astype(np.int32) @ np.array([9797, 19234, 3737], np.int32)
    return (weighed >> 15).astype(np.uint8)


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
