"""Names of choices that operations on images share, and checks of what they are given."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ....cells.typing import Sizes
from ....core.settings import Checked
from ....errors import ArgumentError, DTypeError, ShapeError
from ..config import stream
from ..transforms import chance

__all__ = ["OPENCV", "Border", "ConvertMode", "Fill", "ImageBatchFormat", "Inter", "SliceMode", "Sometimes",
           "check_image", "fill_per_channel", "reach", "round_to_dtype", "height_and_width"]

#: The value of new pixels: one for all channels, or one for each.
Fill: TypeAlias = float | Sequence[float]


class Inter(enum.IntEnum):
    """Kinds of interpolation."""

    NEAREST = 0
    BILINEAR = 2
    LINEAR = 2
    BICUBIC = 3
    CUBIC = 3
    AREA = 4


#: Interpolation codes of OpenCV.
OPENCV = {Inter.NEAREST: 0, Inter.BILINEAR: 1, Inter.BICUBIC: 2, Inter.AREA: 3}


class Border(enum.Enum):
    """Kinds of padding."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class ConvertMode(enum.IntEnum):
    """Pairs of color orders, of three channels, of four with opacity, and of one."""

    COLOR_BGR2BGRA = 0
    COLOR_RGB2RGBA = 0
    COLOR_BGRA2BGR = 1
    COLOR_RGBA2RGB = 1
    COLOR_BGR2RGBA = 2
    COLOR_RGB2BGRA = 2
    COLOR_RGBA2BGR = 3
    COLOR_BGRA2RGB = 3
    COLOR_BGR2RGB = 4
    COLOR_RGB2BGR = 4
    COLOR_BGRA2RGBA = 5
    COLOR_RGBA2BGRA = 5
    COLOR_BGR2GRAY = 6
    COLOR_RGB2GRAY = 7
    COLOR_GRAY2BGR = 8
    COLOR_GRAY2RGB = 8
    COLOR_GRAY2BGRA = 9
    COLOR_GRAY2RGBA = 9
    COLOR_BGRA2GRAY = 10
    COLOR_RGBA2GRAY = 11


class ImageBatchFormat(enum.IntEnum):
    """Orders of the axes of a batch of images."""

    NHWC = 0
    NCHW = 1


class SliceMode(enum.IntEnum):
    """Ways to cut an image whose size is not a multiple of the number of parts: pad it, or drop the remainder."""

    PAD = 0
    DROP = 1


def check_image(owner: str, image: Any, channels: Sequence[int] = (), dtype: str | None = None) -> np.ndarray:
    """Check that an image has two or three axes, and one of these counts of channels and this dtype where they are
    given; an image of two axes has one channel."""
    pixels = np.asarray(image)
    if pixels.ndim not in (2, 3):
        raise ShapeError(f"{owner}: expected an image as (height, width, channels), got the shape {pixels.shape}")
    if channels and (pixels.shape[2] if pixels.ndim == 3 else 1) not in channels:
        raise ShapeError(f"{owner}: expected an image of {' or '.join(map(str, channels))} channels, got the shape "
                         f"{pixels.shape}")
    if dtype is not None and pixels.dtype != dtype:
        raise DTypeError(f"{owner}: expected an image of {dtype}, got {pixels.dtype}")
    return pixels


def height_and_width(owner: str, size: Sizes) -> tuple[int, int]:
    """A height and a width, which are one number or two."""
    height, width = (size, size) if isinstance(size, int) else size
    if height < 1 or width < 1:
        raise ArgumentError(f"{owner}: expected a height and a width of 1 at least, got {size!r}")
    return height, width


def fill_per_channel(value: Fill, channels: int) -> np.ndarray:
    """The value of a new pixel, one for each channel."""
    return np.broadcast_to(np.asarray(value), (channels,)) if np.ndim(value) == 0 else np.asarray(value)[:channels]


def round_to_dtype(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Values cast to the dtype of an image; for integers they are rounded to even and clipped."""
    if dtype.kind not in "iu":
        return numbers.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(numbers), limits.min, limits.max).astype(dtype)


def reach(owner: str, name: str, value: float | Sequence[float], middle: float = 1.0, least: float = 0.0,
          most: float = float("inf")) -> tuple[float, float]:
    """The range of a random value, given by its ends, or by its half width around ``middle``."""
    low, high = (max(middle - value, least), middle + value) if isinstance(value, (int, float)) else value
    if not least <= low <= high <= most:
        raise ArgumentError(f"{owner}: {name} must be a range from {least} to {most}, the smaller end first, got "
                            f"{value!r}")
    return low, high


class Sometimes(Checked):
    """An operation that is applied with a given probability."""

    def __init__(self, operation: Callable[[Any], np.ndarray], prob: float):
        self._operation, self._prob = operation, chance(type(self).__name__, prob)

    def __call__(self, image: Any) -> np.ndarray:
        return self._operation(image) if stream().random() < self._prob else np.asarray(image)
