"""Operations that choose which pixels an image has: resizing, flips, borders, crops and parts that are erased."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.data.pixels import imresize
from opreg.ndarray.ndarray import array

from ....cells.typing import Sizes
from ....core.settings import Checked
from ....errors import ArgumentError, ShapeError
from ..config import stream
from ..transforms import chance
from .conversions import Decode
from .images import (
    OPENCV,
    Border,
    Fill,
    Inter,
    SliceMode,
    Sometimes,
    check_image,
    fill_per_channel,
    height_and_width,
    reach,
)

__all__ = ["CenterCrop", "Crop", "CutOut", "Erase", "FiveCrop", "HorizontalFlip", "Pad", "PadToSize", "RandomCrop",
           "RandomCropDecodeResize", "RandomErasing", "RandomHorizontalFlip", "RandomResize", "RandomResizedCrop",
           "RandomVerticalFlip", "Resize", "ResizedCrop", "SlicePatches", "TenCrop", "VerticalFlip"]


class Resize(Checked):
    """An image resized; a single number is the length of the shorter side, and keeps the aspect ratio.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.Resize((4, 2))(np.full((8, 8, 3), 100, "uint8")).shape
    (4, 2, 3)
    """

    def __init__(self, size: Sizes, interpolation: Inter = Inter.BILINEAR):
        self._size: Sizes = size
        height_and_width("Resize", size)
        self._interpolation = OPENCV[Inter(interpolation)]

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image(type(self).__name__, image)
        height, width = self._lengths(pixels)
        wide = pixels[..., None] if pixels.ndim == 2 else pixels
        resized = imresize(array(wide, dtype=wide.dtype), width, height, self._interpolation).asnumpy()
        return resized.reshape((height, width, *pixels.shape[2:]))

    def _lengths(self, pixels: np.ndarray) -> tuple[int, int]:
        """Height and width of the result."""
        if not isinstance(self._size, int):
            height, width = self._size
            return height, width
        have = pixels.shape[:2]
        return int(have[0] * self._size / min(have)), int(have[1] * self._size / min(have))


class HorizontalFlip(Checked):
    """The image mirrored left to right.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.HorizontalFlip()(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __call__(self, image: Any) -> np.ndarray:
        return check_image("HorizontalFlip", image)[:, ::-1].copy()


class VerticalFlip(Checked):
    """The image mirrored top to bottom.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.VerticalFlip()(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __call__(self, image: Any) -> np.ndarray:
        return check_image("VerticalFlip", image)[::-1].copy()


class RandomHorizontalFlip(Sometimes):
    """The image, mirrored left to right with a given probability.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomHorizontalFlip(0.5)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, prob: float = 0.5):
        super().__init__(HorizontalFlip(), prob)


class RandomVerticalFlip(Sometimes):
    """The image, mirrored top to bottom with a given probability.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomVerticalFlip(0.5)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, prob: float = 0.5):
        super().__init__(VerticalFlip(), prob)


class RandomResize(Checked):
    """An image resized with an interpolation chosen at random; see ``Resize`` for the size.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomResize((4, 2))(np.full((8, 8, 3), 100, "uint8")).shape
    (4, 2, 3)
    """

    def __init__(self, size: Sizes):
        self._kinds = [Resize(size, kind) for kind in Inter]

    def __call__(self, image: Any) -> np.ndarray:
        return self._kinds[int(stream().integers(len(self._kinds)))](image)


class Pad(Checked):
    """An image padded at its sides.

    Parameters
    ----------
    padding : int, or sequence of two or four
        Pixels added: one number for all sides; two for left and right, and for top and bottom; or left, top, right,
        bottom.
    fill_value : int, or sequence for the channels
        Value of the added pixels, with ``padding_mode`` "constant".

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.Pad(1)(np.full((8, 8, 3), 100, "uint8")).shape
    (10, 10, 3)
    """

    def __init__(self, padding: int | Sequence[int], fill_value: Fill = 0,
                 padding_mode: Border = Border.CONSTANT):
        sides = (padding,) * 4 if isinstance(padding, int) else tuple(padding)
        if len(sides) not in (2, 4) or min(sides) < 0:
            raise ArgumentError(f"Pad: expected one, two or four widths that are not negative, got {padding!r}")
        self.left, self.top, self._right, self._bottom = sides * 2 if len(sides) == 2 else sides
        self._value, self._mode = fill_value, Border(padding_mode)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("Pad", image)
        around = [(self.top, self._bottom), (self.left, self._right), *[(0, 0)] * (pixels.ndim - 2)]
        if self._mode is not Border.CONSTANT:
            return np.pad(pixels, around, self._mode.value)
        shape = tuple(length + sum(margin) for length, margin in zip(pixels.shape, around))
        wide = np.empty(shape, pixels.dtype)
        wide[...] = self._value
        wide[self.top:shape[0] - self._bottom, self.left:shape[1] - self._right] = pixels
        return wide


class PadToSize(Checked):
    """An image padded to a height and a width.

    Parameters
    ----------
    size : int, or pair of int
        Height and width of the result, which the image does not exceed.
    offset : int, or pair of int, optional
        Rows above and columns left of the image; without them it is in the middle.
    fill_value, padding_mode
        As for ``Pad``.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.PadToSize((10, 12))(np.full((8, 8, 3), 100, "uint8")).shape
    (10, 12, 3)
    """

    def __init__(self, size: Sizes, offset: Sizes | None = None, fill_value: Fill = 0,
                 padding_mode: Border = Border.CONSTANT):
        self._size = height_and_width("PadToSize", size)
        self._offset = (offset, offset) if isinstance(offset, int) else offset
        self._value, self._mode = fill_value, padding_mode

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("PadToSize", image)
        down, across = (want - have for want, have in zip(self._size, pixels.shape))
        top, left = (down // 2, across // 2) if self._offset is None else self._offset
        if min(top, left, down - top, across - left) < 0:
            raise ShapeError(f"PadToSize: an image of {pixels.shape[0]} by {pixels.shape[1]} from {(top, left)} on "
                             f"exceeds {self._size[0]} by {self._size[1]}")
        return Pad((left, top, across - left, down - top), self._value, self._mode)(pixels)


class Crop(Checked):
    """A crop at given coordinates, of a given size (height, width).

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.Crop((1, 2), (4, 2))(np.full((8, 8, 3), 100, "uint8")).shape
    (4, 2, 3)
    """

    def __init__(self, coordinates: tuple[int, int], size: Sizes):
        self.top, self.left = coordinates
        self.height, self.width = height_and_width("Crop", size)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("Crop", image)
        if self.top + self.height > pixels.shape[0] or self.left + self.width > pixels.shape[1]:
            raise ShapeError(f"Crop: {self.height} by {self.width} pixels from {(self.top, self.left)} on are "
                             f"beyond an image of {pixels.shape[0]} by {pixels.shape[1]}")
        return pixels[self.top:self.top + self.height, self.left:self.left + self.width].copy()


class CenterCrop(Checked):
    """A crop from the middle of an image; a smaller image is padded with zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.CenterCrop((4, 2))(np.full((8, 8, 3), 100, "uint8")).shape
    (4, 2, 3)
    """

    def __init__(self, size: Sizes):
        self._size = height_and_width("CenterCrop", size)

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("CenterCrop", image)
        less = [max(want - have, 0) for want, have in zip(self._size, pixels.shape)]
        pixels = Pad((less[1] // 2, less[0] // 2, less[1] - less[1] // 2, less[0] - less[0] // 2))(pixels)
        top, left = ((have - want) // 2 for have, want in zip(pixels.shape, self._size))
        return Crop((top, left), self._size)(pixels)


class RandomCrop(Checked):
    """A crop at random coordinates.

    Parameters
    ----------
    padding : int, or sequence of two or four, optional
        Padding added first; see ``Pad``.
    pad_if_needed : bool
        Whether a too small image is padded; otherwise it is an error.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomCrop((4, 2))(np.full((8, 8, 3), 100, "uint8")).shape
    (4, 2, 3)
    """

    def __init__(self, size: Sizes, padding: int | Sequence[int] | None = None, pad_if_needed: bool = False,
                 fill_value: Fill = 0, padding_mode: Border = Border.CONSTANT):
        self._size = height_and_width(type(self).__name__, size)
        self._around = None if padding is None else Pad(padding, fill_value, padding_mode)
        self._needed, self._value, self._mode = pad_if_needed, fill_value, padding_mode

    def __call__(self, image: Any) -> np.ndarray:
        pixels, _, crop = self._padded(check_image(type(self).__name__, image))
        return crop(pixels)

    def _padded(self, pixels: np.ndarray) -> tuple[np.ndarray, tuple[int, int], Crop]:
        """The image padded, how far it has moved down and to the right by that, and a random crop."""
        pads = [] if self._around is None else [self._around]
        pixels = pixels if self._around is None else self._around(pixels)
        less = [max(want - have, 0) for want, have in zip(self._size, pixels.shape)]
        if any(less) and self._needed:
            pads.append(Pad((less[1], less[0]), self._value, self._mode))
            pixels = pads[-1](pixels)
        random = stream()
        top, left = (int(random.integers(max(have - want, 0) + 1)) for have, want in zip(pixels.shape, self._size))
        return pixels, (sum(pad.top for pad in pads), sum(pad.left for pad in pads)), Crop((top, left), self._size)


class RandomResizedCrop(Checked):
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

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomResizedCrop((4, 2))(np.full((8, 8, 3), 100, "uint8")).shape
    (4, 2, 3)
    """

    def __init__(self, size: Sizes, scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3 / 4, 4 / 3),
                 interpolation: Inter = Inter.BILINEAR, max_attempts: int = 10):
        owner = type(self).__name__
        if not 0 <= scale[0] <= scale[1] or not 0 < ratio[0] <= ratio[1]:
            raise ArgumentError(f"{owner}: expected positive numbers, the smaller one first, got scale={scale!r} and "
                                f"ratio={ratio!r}")
        if max_attempts < 1:
            raise ArgumentError(f"{owner}: max_attempts must be 1 at least, got {max_attempts}")
        self._resize = Resize(height_and_width(owner, size), interpolation)
        self._scale, self._ratio, self._attempts = scale, ratio, max_attempts

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image(type(self).__name__, image)
        return self._resize(self._crop(pixels)(pixels))

    def _crop(self, pixels: np.ndarray) -> Crop:
        """A random crop of an image."""
        have = pixels.shape[:2]
        random, (least, most) = stream(), self._ratio
        for _ in range(self._attempts):
            area = random.uniform(self._scale[0], self._scale[1]) * math.prod(have)
            ratio = math.exp(random.uniform(math.log(least), math.log(most)))
            size = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if all(0 < want <= length for want, length in zip(size, have)):
                top, left = (int(random.integers(length - want + 1)) for want, length in zip(size, have))
                return Crop((top, left), size)
        height, width = have
        size = max(min(height, round(width / least)), 1), max(min(width, round(height * most)), 1)
        top, left = (round((length - want) / 2) for length, want in zip(have, size))
        return Crop((top, left), size)


class RandomCropDecodeResize(RandomResizedCrop):
    """``RandomResizedCrop`` of an image given as the bytes of its file."""

    def __call__(self, image: Any) -> np.ndarray:
        return super().__call__(Decode()(image))


class ResizedCrop(Checked):
    """A crop at given coordinates, resized.

    Parameters
    ----------
    top, left, height, width : int
        The crop.
    size : int, or pair of int
        Height and width of the result; one number is the length of the shorter side.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.ResizedCrop(0, 0, 6, 6, (4, 2))(np.full((8, 8, 3), 100, "uint8")).shape
    (4, 2, 3)
    """

    def __init__(self, top: int, left: int, height: int, width: int, size: Sizes,
                 interpolation: Inter = Inter.BILINEAR):
        self._crop, self._resize = Crop((top, left), (height, width)), Resize(size, interpolation)

    def __call__(self, image: Any) -> np.ndarray:
        return self._resize(self._crop(image))


class FiveCrop(Checked):
    """Five crops of one size: from the corners top left, top right, bottom left and bottom right, and the middle.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> crops = vision.FiveCrop((4, 2))(np.full((8, 8, 3), 100, "uint8"))
    >>> len(crops), crops[0].shape
    (5, (4, 2, 3))
    """

    def __init__(self, size: Sizes):
        self._size = height_and_width(type(self).__name__, size)

    def __call__(self, image: Any) -> tuple[np.ndarray, ...]:
        pixels = check_image(type(self).__name__, image)
        down, across = (have - want for have, want in zip(pixels.shape, self._size))
        if min(down, across) < 0:
            raise ShapeError(f"{type(self).__name__}: a crop of {self._size[0]} by {self._size[1]} exceeds an image of "
                             f"{pixels.shape[0]} by {pixels.shape[1]}")
        middle = round(down / 2), round(across / 2)
        return tuple(Crop(place, self._size)(pixels) for place in ((0, 0), (0, across), (down, 0), (down, across),
                                                                   middle))


class TenCrop(FiveCrop):
    """The crops of ``FiveCrop``, of the image and of its mirror image.

    Parameters
    ----------
    use_vertical_flip : bool
        Whether the mirror image is that of top and bottom, instead of left and right.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> crops = vision.TenCrop((4, 2))(np.full((8, 8, 3), 100, "uint8"))
    >>> len(crops), crops[0].shape
    (10, (4, 2, 3))
    """

    def __init__(self, size: Sizes, use_vertical_flip: bool = False):
        super().__init__(size)
        self._flip = VerticalFlip() if use_vertical_flip else HorizontalFlip()

    def __call__(self, image: Any) -> tuple[np.ndarray, ...]:
        return super().__call__(image) + super().__call__(self._flip(image))


class SlicePatches(Checked):
    """Parts of equal size, row by row.

    Parameters
    ----------
    num_height, num_width : int
        Count of parts from top to bottom and from left to right.
    slice_mode : SliceMode
        Whether an image is padded at its end to a multiple of the parts, or cut.
    fill_value : int
        Value of the padding.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> patches = vision.SlicePatches(2, 2)(np.full((8, 8, 3), 100, "uint8"))
    >>> len(patches), patches[0].shape
    (4, (4, 4, 3))
    """

    def __init__(self, num_height: int = 1, num_width: int = 1, slice_mode: SliceMode = SliceMode.PAD,
                 fill_value: int = 0):
        self._parts = height_and_width("SlicePatches", (num_height, num_width))
        self._pads, self._value = SliceMode(slice_mode) is SliceMode.PAD, fill_value

    def __call__(self, image: Any) -> tuple[np.ndarray, ...]:
        pixels = check_image("SlicePatches", image)
        if any(parts > length for parts, length in zip(self._parts, pixels.shape)):
            raise ShapeError(f"SlicePatches: an image of {pixels.shape[0]} by {pixels.shape[1]} has no "
                             f"{self._parts[0]} by {self._parts[1]} parts")
        if self._pads:
            down, across = (-length % parts for parts, length in zip(self._parts, pixels.shape))
            pixels = Pad((0, 0, across, down), self._value)(pixels)
        high, wide = (length // parts for parts, length in zip(self._parts, pixels.shape))
        return tuple(pixels[top * high:(top + 1) * high, left * wide:(left + 1) * wide].copy()
                     for top in range(self._parts[0]) for left in range(self._parts[1]))


class Erase(Checked):
    """An image with a part of it replaced by a value.

    Parameters
    ----------
    top, left, height, width : int
        The part.
    value : float, or sequence for the channels
        The value.
    inplace : bool
        Whether the given image is changed itself.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.Erase(1, 1, 2, 2)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, top: int, left: int, height: int, width: int, value: Fill = 0, inplace: bool = False):
        height_and_width("Erase", (height, width))
        self._part = slice(top, top + height), slice(left, left + width)
        self._value, self._inplace = value, inplace

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("Erase", image)
        if any(part.start < 0 or part.stop > length for part, length in zip(self._part, pixels.shape)):
            raise ShapeError(f"Erase: the rows and columns {[(part.start, part.stop) for part in self._part]} are "
                             f"beyond an image of {pixels.shape[0]} by {pixels.shape[1]}")
        pixels = pixels if self._inplace else pixels.copy()
        pixels[self._part] = fill_per_channel(self._value, *pixels.shape[2:]) if pixels.ndim == 3 else self._value
        return pixels


class CutOut(Checked):
    """An image with squares at random places set to zero.

    Parameters
    ----------
    length : int
        Side of a square, which may lie partly outside.
    num_patches : int
        Count of squares.
    is_hwc : bool
        Whether channels are the last axis, instead of the first.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.CutOut(2)(np.full((8, 8, 3), 100, "uint8")).shape
    (8, 8, 3)
    """

    def __init__(self, length: int, num_patches: int = 1, is_hwc: bool = True):
        self._length, _ = height_and_width("CutOut", (length, num_patches))
        self._count, self._last = num_patches, is_hwc

    def __call__(self, image: Any) -> np.ndarray:
        pixels = check_image("CutOut", image).copy()
        channels_last = pixels if self._last else np.moveaxis(pixels, 0, 2)
        random = stream()
        for _ in range(self._count):
            ends = [int(random.integers(length + self._length + 1)) for length in channels_last.shape[:2]]
            channels_last[tuple(slice(max(end - self._length, 0), end) for end in ends)] = 0
        return pixels


class RandomErasing(Checked):
    """An image (channels, height, width) with a rectangle of random size and place replaced, with a given probability.

    Parameters
    ----------
    prob : float
        Probability that the image changes.
    scale, ratio : pair of float
        Ranges of the rectangle's fraction of the area, and of its ratio of width to height.
    value : float, sequence of three, or "random"
        Value of its pixels, or "random" for normally distributed numbers.
    inplace : bool
        Whether the given image is changed itself.
    max_attempts : int
        Number of rectangles drawn before the image is left as it is, if none fits.

    Examples
    --------
    >>> import numpy as np
    >>> from opreg.dataset import vision
    >>> vision.RandomErasing()(np.ones((3, 8, 8), "float32")).shape
    (3, 8, 8)
    """

    def __init__(self, prob: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3),
                 value: Fill | str = 0, inplace: bool = False, max_attempts: int = 10):
        self._prob = chance("RandomErasing", prob)
        self._scale, self._ratio = (reach("RandomErasing", name, bounds, least=0.0)
                                    for name, bounds in (("scale", scale), ("ratio", ratio)))
        if isinstance(value, str) and value != "random":
            raise ArgumentError(f"RandomErasing: value must be numbers or 'random', got {value!r}")
        self._value, self._inplace, self._attempts = value, inplace, max_attempts

    def __call__(self, image: Any) -> np.ndarray:
        pixels, random = np.asarray(image), stream()
        if pixels.ndim != 3:
            raise ShapeError(f"RandomErasing: expected an image as (channels, height, width), got the shape "
                             f"{pixels.shape}")
        pixels = pixels if self._inplace else pixels.copy()
        if random.random() >= self._prob:
            return pixels
        for _ in range(self._attempts):
            area, ratio = random.uniform(*self._scale) * math.prod(pixels.shape[1:]), random.uniform(*self._ratio)
            wide = round(math.sqrt(area * ratio))
            size = round(wide / ratio), wide
            if all(part < length for part, length in zip(size, pixels.shape[1:])):
                places = [int(random.integers(length - part + 1)) for part, length in zip(size, pixels.shape[1:])]
                part = pixels[:, places[0]:places[0] + size[0], places[1]:places[1] + size[1]]
                if isinstance(self._value, str):
                    part[...] = random.standard_normal(part.shape)
                else:
                    part[...] = fill_per_channel(self._value, len(part))[:, None, None]
                break
        return pixels
