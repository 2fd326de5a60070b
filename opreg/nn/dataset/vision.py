"""Operations on images for ``map``: arrays of (height, width, channels), in uint8 or floating-point."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.data.codec import decode
from opreg.data.pixels import imresize
from opreg.ndarray.ndarray import array

from ...aliases import inner
from ...cells.dtype import dtype_to_nptype
from ...cells.typing import Sizes, TensorDType
from ...errors import ArgumentError, DTypeError, ShapeError
from .config import stream
from .transforms import Compose, TypeCast, chance

__all__ = ["Border", "CenterCrop", "Compose", "Crop", "Decode", "HWC2CHW", "HorizontalFlip", "Inter", "Normalize",
           "Pad", "RandomCrop", "RandomCropDecodeResize", "RandomHorizontalFlip", "RandomResizedCrop",
           "RandomVerticalFlip", "Rescale", "Resize", "ToPIL", "ToTensor", "ToType", "VerticalFlip"]

if not TYPE_CHECKING:  # its submodules
    __getattr__ = inner(__name__)


class Inter(enum.IntEnum):
    """Kinds of interpolation."""

    NEAREST = 0
    BILINEAR = 2
    LINEAR = 2
    BICUBIC = 3
    CUBIC = 3
    AREA = 4


#: Interpolation codes of OpenCV.
_OPENCV = {Inter.NEAREST: 0, Inter.BILINEAR: 1, Inter.BICUBIC: 2, Inter.AREA: 3}


class Border(enum.Enum):
    """Kinds of padding."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


def _image(owner: str, image: Any) -> np.ndarray:
    pixels = np.asarray(image)
    if pixels.ndim not in (2, 3):
        raise ShapeError(f"{owner}: expected an image as (height, width, channels), got the shape {pixels.shape}")
    return pixels


def _two(owner: str, size: Sizes) -> tuple[int, int]:
    height, width = (size, size) if isinstance(size, int) else size
    if height < 1 or width < 1:
        raise ArgumentError(f"{owner}: expected a height and a width of 1 at least, got {size!r}")
    return height, width


class Decode:
    """The decoded image from the bytes of its file: (height, width, 3), in the order red, green, blue.

    Parameters
    ----------
    to_pil : bool
        Accepted without effect: images are arrays in all operations.

    Raises
    ------
    ShapeError, DTypeError
        When the input is not a vector of bytes.
    FileFormatError
        When the bytes are no image.
    """

    def __init__(self, to_pil: bool = False):
        pass

    def __call__(self, image: Any) -> np.ndarray:
        data = np.frombuffer(image, np.uint8) if isinstance(image, bytes) else np.asarray(image)
        if data.ndim != 1:
            raise ShapeError(f"Decode: expected the bytes of a file, got the shape {data.shape}; decoded already?")
        if data.dtype != np.uint8:
            raise DTypeError(f"Decode: expected the bytes of a file as uint8, got {data.dtype}")
        return decode(data.tobytes(), name="Decode: the image")


class ToPIL:
    """The image unchanged: images are arrays in all operations."""

    def __call__(self, image: Any) -> np.ndarray:
        return _image("ToPIL", image)


class Rescale:
    """The pixels times a factor, plus a shift: float32."""

    def __init__(self, rescale: float, shift: float):
        self._rescale, self._shift = rescale, shift

    def __call__(self, image: Any) -> np.ndarray:
        return np.asarray(image).astype(np.float32) * np.float32(self._rescale) + np.float32(self._shift)


class Normalize:
    """The pixels minus a mean, divided by a standard deviation, for each channel: float32.

    Parameters
    ----------
    is_hwc : bool
        Whether channels are the last axis, instead of the first.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], is_hwc: bool = True):
        if len(mean) != len(std):
            raise ArgumentError(f"Normalize: {len(mean)} means and {len(std)} deviations")
        self._mean, self._std = np.asarray(mean, np.float32), np.asarray(std, np.float32)
        self._last = is_hwc

    def __call__(self, image: Any) -> np.ndarray:
        pixels = np.asarray(image).astype(np.float32)
        mean, std = (each if self._last else each[:, None, None] for each in (self._mean, self._std))
        return (pixels - mean) / std


class HWC2CHW:
    """The image with channels as the first axis."""

    def __call__(self, image: Any) -> np.ndarray:
        return _image("HWC2CHW", image).transpose((2, 0, 1)).copy()


class ToTensor:
    """The image with channels as the first axis, and bytes scaled to the range from 0 to 1."""

    def __init__(self, output_type: TensorDType = np.float32):
        self._dtype = np.dtype(dtype_to_nptype(output_type))

    def __call__(self, image: Any) -> np.ndarray:
        pixels = _image("ToTensor", image)
        pixels = pixels[..., None] if pixels.ndim == 2 else pixels
        numbers = pixels.astype(np.float32) * np.float32(1 / 255) if pixels.dtype == np.uint8 else pixels
        return np.ascontiguousarray(numbers.transpose((2, 0, 1)).astype(self._dtype))


class ToType(TypeCast):
    """The pixels in another dtype."""


class Resize:
    """An image resized; a single number is the length of the shorter side, and keeps the aspect ratio."""

    def __init__(self, size: Sizes, interpolation: Inter = Inter.BILINEAR):
        self._size: Sizes = size
        _two("Resize", size)
        self._interpolation = _OPENCV[Inter(interpolation)]

    def __call__(self, image: Any) -> np.ndarray:
        pixels = _image("Resize", image)
        have = pixels.shape[:2]
        if isinstance(self._size, int):
            height, width = (int(length * self._size / min(have)) for length in have)
        else:
            height, width = self._size
        wide = pixels[..., None] if pixels.ndim == 2 else pixels
        resized = imresize(array(wide, dtype=wide.dtype), width, height, self._interpolation).asnumpy()
        return resized.reshape((height, width, *pixels.shape[2:]))


class HorizontalFlip:
    """The image mirrored left to right."""

    def __call__(self, image: Any) -> np.ndarray:
        return _image("HorizontalFlip", image)[:, ::-1].copy()


class VerticalFlip:
    """The image mirrored top to bottom."""

    def __call__(self, image: Any) -> np.ndarray:
        return _image("VerticalFlip", image)[::-1].copy()


class RandomHorizontalFlip:
    """The image, mirrored left to right with a given probability."""

    def __init__(self, prob: float = 0.5):
        self._prob = chance("RandomHorizontalFlip", prob)

    def __call__(self, image: Any) -> np.ndarray:
        return HorizontalFlip()(image) if stream().random() < self._prob else np.asarray(image)


class RandomVerticalFlip:
    """The image, mirrored top to bottom with a given probability."""

    def __init__(self, prob: float = 0.5):
        self._prob = chance("RandomVerticalFlip", prob)

    def __call__(self, image: Any) -> np.ndarray:
        return VerticalFlip()(image) if stream().random() < self._prob else np.asarray(image)


class Pad:
    """An image padded at its sides.

    Parameters
    ----------
    padding : int, or sequence of two or four
        Pixels added: one number for all sides; two for left and right, and for top and bottom; or left, top, right,
        bottom.
    fill_value : int, or sequence for the channels
        Value of the added pixels, with ``padding_mode`` "constant".
    """

    def __init__(self, padding: int | Sequence[int], fill_value: float | Sequence[float] = 0,
                 padding_mode: Border = Border.CONSTANT):
        sides = (padding,) * 4 if isinstance(padding, int) else tuple(padding)
        if len(sides) not in (2, 4) or min(sides) < 0:
            raise ArgumentError(f"Pad: expected one, two or four widths that are not negative, got {padding!r}")
        self._left, self._top, self._right, self._bottom = sides * 2 if len(sides) == 2 else sides
        self._value, self._mode = fill_value, Border(padding_mode)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = _image("Pad", image)
        around = [(self._top, self._bottom), (self._left, self._right), *[(0, 0)] * (pixels.ndim - 2)]
        if self._mode is not Border.CONSTANT:
            return np.pad(pixels, around, self._mode.value)
        shape = tuple(length + sum(each) for length, each in zip(pixels.shape, around))
        wide = np.empty(shape, pixels.dtype)
        wide[...] = self._value
        wide[self._top:shape[0] - self._bottom, self._left:shape[1] - self._right] = pixels
        return wide


class Crop:
    """A crop at given coordinates, of a given size (height, width)."""

    def __init__(self, coordinates: tuple[int, int], size: Sizes):
        self._top, self._left = coordinates
        self._height, self._width = _two("Crop", size)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = _image("Crop", image)
        if self._top + self._height > pixels.shape[0] or self._left + self._width > pixels.shape[1]:
            raise ShapeError(f"Crop: {self._height} by {self._width} pixels from {(self._top, self._left)} on are "
                             f"beyond an image of {pixels.shape[0]} by {pixels.shape[1]}")
        return pixels[self._top:self._top + self._height, self._left:self._left + self._width].copy()


class CenterCrop:
    """A crop from the middle of an image; a smaller image is padded with zeros."""

    def __init__(self, size: Sizes):
        self._size = _two("CenterCrop", size)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = _image("CenterCrop", image)
        less = [max(want - have, 0) for want, have in zip(self._size, pixels.shape)]
        pixels = Pad((less[1] // 2, less[0] // 2, less[1] - less[1] // 2, less[0] - less[0] // 2))(pixels)
        top, left = ((have - want) // 2 for have, want in zip(pixels.shape, self._size))
        return Crop((top, left), self._size)(pixels)


class RandomCrop:
    """A crop at random coordinates.

    Parameters
    ----------
    padding : int, or sequence of two or four, optional
        Padding added first; see ``Pad``.
    pad_if_needed : bool
        Whether a too small image is padded; otherwise it is an error.
    """

    def __init__(self, size: Sizes, padding: int | Sequence[int] | None = None, pad_if_needed: bool = False,
                 fill_value: float | Sequence[float] = 0, padding_mode: Border = Border.CONSTANT):
        self._size = _two("RandomCrop", size)
        self._around = None if padding is None else Pad(padding, fill_value, padding_mode)
        self._needed, self._value, self._mode = pad_if_needed, fill_value, padding_mode

    def __call__(self, image: Any) -> np.ndarray:
        pixels = _image("RandomCrop", image)
        pixels = pixels if self._around is None else self._around(pixels)
        less = [max(want - have, 0) for want, have in zip(self._size, pixels.shape)]
        if any(less) and self._needed:
            pixels = Pad((less[1], less[0]), self._value, self._mode)(pixels)
        random = stream()
        top, left = (int(random.integers(max(have - want, 0) + 1)) for have, want in zip(pixels.shape, self._size))
        return Crop((top, left), self._size)(pixels)


class RandomResizedCrop:
    """A crop of random area, aspect ratio and position, resized.

    Parameters
    ----------
    size : int, or pair of int
        Height and width of the result, or one number for both.
    scale, ratio : pair of float
        Ranges of the crop's fraction of the area, and of its ratio of width to height.
    interpolation : Inter
        Kind of interpolation.
    max_attempts : int
        Number of crops drawn before the largest one in the middle with a ratio within ``ratio`` is taken, if all exceed
        the image.
    """

    def __init__(self, size: Sizes, scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3 / 4, 4 / 3),
                 interpolation: Inter = Inter.BILINEAR, max_attempts: int = 10):
        owner = type(self).__name__
        if not 0 <= scale[0] <= scale[1] or not 0 < ratio[0] <= ratio[1]:
            raise ArgumentError(f"{owner}: expected positive numbers, the lesser first, got scale={scale!r} and "
                                f"ratio={ratio!r}")
        if max_attempts < 1:
            raise ArgumentError(f"{owner}: max_attempts must be 1 at least, got {max_attempts}")
        self._resize = Resize(_two(owner, size), interpolation)
        self._scale, self._ratio, self._attempts = scale, ratio, max_attempts

    def __call__(self, image: Any) -> np.ndarray:
        pixels = _image(type(self).__name__, image)
        have = pixels.shape[:2]
        random, (least, most) = stream(), self._ratio
        for _ in range(self._attempts):
            area = random.uniform(self._scale[0], self._scale[1]) * math.prod(have)
            ratio = math.exp(random.uniform(math.log(least), math.log(most)))
            size = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if all(0 < want <= length for want, length in zip(size, have)):
                top, left = (int(random.integers(length - want + 1)) for want, length in zip(size, have))
                return self._resize(Crop((top, left), size)(pixels))
        height, width = have
        size = max(min(height, round(width / least)), 1), max(min(width, round(height * most)), 1)
        top, left = (round((length - want) / 2) for length, want in zip(have, size))
        return self._resize(Crop((top, left), size)(pixels))


class RandomCropDecodeResize(RandomResizedCrop):
    """``RandomResizedCrop`` of an image given as the bytes of its file."""

    def __call__(self, image: Any) -> np.ndarray:
        return super().__call__(Decode()(image))
