"""Image augmentation by ``ImageRecordIter``: resizing, rotation, cropping and colours, in a fixed order.

Images are NumPy arrays of bytes (height, width, channels). Each image is augmented in any thread with its own
generator.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np

from ..builtin.vision.image_size import resize_part
from ..core.spec import Shape
from ..errors import ArgumentError, ShapeError
from .augmenters import EIGENVALUES, EIGENVECTORS
from .pixels import interpolation, shorter
from .warping import warp

__all__ = ["Augmentation", "Pixels", "changed_hls", "chosen", "resize"]

#: An image of bytes (height, width, channels).
Pixels: TypeAlias = np.ndarray

_GRAY = np.array([0.299, 0.587, 0.114], np.float32)


#: Rows and columns of a crop.
Part: TypeAlias = tuple[slice, slice]


def chosen(method: int, rng: np.random.Generator) -> int:
    """The interpolation method, drawn at random for code 10."""
    return int(rng.integers(5)) if method == 10 else method


def resize(image: Pixels, height: int, width: int, method: int, part: Part | None = None) -> Pixels:
    """The image, or a part of it, resized; see `imresize` for the methods."""
    if image.shape[:2] == (height, width):
        return image if part is None else image[part]
    method = interpolation(method, (*image.shape[:2], height, width))
    images = resize_part(np, image[None], height, width, method, *(() if part is None else (part,)))
    return images[0].astype(np.uint8, copy=False)


def place(height: int, width: int, new_height: int, new_width: int, rng: np.random.Generator | None) -> Part:
    """The position of a window in an image: random, or centered without a generator."""
    down, across = height - new_height, width - new_width
    y, x = (down // 2, across // 2) if rng is None else (int(rng.integers(down + 1)), int(rng.integers(across + 1)))
    return slice(y, y + new_height), slice(x, x + new_width)


def crop(image: Pixels, height: int, width: int, rng: np.random.Generator | None) -> Pixels:
    """A crop of an image: random, or centered without a generator."""
    return image[place(image.shape[0], image.shape[1], height, width, rng)]


def _bytes(numbers: np.ndarray) -> Pixels:
    return np.clip(np.rint(numbers), 0, 255).astype(np.uint8)


def changed_hls(image: Pixels, hue: int, lightness: int, saturation: int) -> Pixels:
    """The image with hue (of 180), lightness and saturation (of 255) increased by the given amounts, rounded step by
    step as in OpenCV."""
    byte = np.float32(1 / 255)
    x = image * byte
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    most, least = x.max(axis=2), x.min(axis=2)
    spread, middle = most - least, (most + least) * np.float32(0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        s = np.where(spread > 0, spread / np.where(middle < 0.5, most + least, 2 - most - least), 0)
        degrees = np.float32(60) / spread
        h = np.where(most == red, (green - blue) * degrees,
                     np.where(most == green, (blue - red) * degrees + 120, (red - green) * degrees + 240))
    h = np.where(spread > 0, np.where(h < 0, h + 360, h), 0) * np.float32(0.5)
    h, middle, s = [np.clip(np.rint(part) + more, 0, limit) for part, more, limit in (
        (h, hue, 180), (middle * 255, lightness, 255), (s * 255, saturation, 255))]
    middle, s = middle * byte, s * byte
    high = np.where(middle <= 0.5, middle * (1 + s), middle + s - middle * s)
    low = 2 * middle - high
    sixth, part = np.divmod(h * np.float32(1 / 30), 1)
    rising, falling = low + (high - low) * part, low + (high - low) * (1 - part)
    channels = [np.choose(sixth.astype(int) % 6, [(high, falling, low, low, rising, high)[(i + turn) % 6]
                                                  for i in range(6)]) for turn in (0, 4, 2)]
    return _bytes(np.stack(channels, axis=2) * 255)


@dataclass(frozen=True)
class Augmentation:
    """The keywords of ``ImageRecordIter`` that configure the augmentation of an image."""

    data_shape: Shape
    resize: int = -1
    rand_crop: bool = False
    random_resized_crop: bool = False
    max_rotate_angle: int = 0
    max_aspect_ratio: float = 0.0
    min_aspect_ratio: float | None = None
    max_shear_ratio: float = 0.0
    max_crop_size: int = -1
    min_crop_size: int = -1
    max_random_scale: float = 1.0
    min_random_scale: float = 1.0
    max_random_area: float = 1.0
    min_random_area: float = 1.0
    max_img_size: float = 1e10
    min_img_size: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    pca_noise: float = 0.0
    random_h: int = 0
    random_s: int = 0
    random_l: int = 0
    rotate: int = -1
    fill_value: int = 255
    inter_method: int = 1
    pad: int = 0

    def __post_init__(self) -> None:
        if self.inter_method not in (0, 1, 2, 3, 4, 9, 10):
            raise ArgumentError(f"inter_method={self.inter_method}: expected 0 to 4, 9 or 10")
        if self.random_resized_crop and (
                self.rand_crop or (self.min_random_scale, self.max_random_scale) != (1, 1)
                or (self.min_crop_size, self.max_crop_size) != (-1, -1)):
            raise ArgumentError("random_resized_crop cannot be combined with rand_crop, min_random_scale, "
                                "max_random_scale, "
                                "min_crop_size and max_crop_size")
        for name in ("random_scale", "random_area", "crop_size"):
            least, most = getattr(self, f"min_{name}"), getattr(self, f"max_{name}")
            if least > most:
                raise ArgumentError(f"min_{name}={least} is more than max_{name}={most}")

    @property
    def is_random(self) -> bool:
        """Whether the augmentation is random."""
        usual = {field.name: field.default for field in fields(self)}
        still = ("data_shape", "resize", "rotate", "fill_value", "inter_method", "pad", "max_img_size", "min_img_size")
        return self.inter_method == 10 or any(
            getattr(self, name) != default for name, default in usual.items() if name not in still)

    def __call__(self, image: Pixels, rng: np.random.Generator) -> Pixels:
        """Augment an image."""
        height, width = image.shape[:2]
        if self.resize > 0:
            height, width = shorter(height, width, self.resize)
        if self._only_cut and height >= self.data_shape[1] and width >= self.data_shape[2]:
            method = chosen(self.inter_method, rng)
            part = place(height, width, self.data_shape[1], self.data_shape[2], rng if self.rand_crop else None)
            image = resize(image, height, width, method, part)  # only the part that the crop needs is computed
        else:
            image = self._rotate_and_pad(resize(image, height, width, chosen(self.inter_method, rng)), rng)
            image = self._crop(image, rng)
        if image.shape[2] == 3:
            image = self._change_colors(image, rng)
        return image

    @functools.cached_property
    def _only_cut(self) -> bool:
        """Whether images are cropped right after they are resized, without another change in between."""
        return not (self._moves or self.pad > 0 or self.random_resized_crop
                    or (self.min_crop_size, self.max_crop_size) != (-1, -1))

    @functools.cached_property
    def _moves(self) -> bool:
        return (self.max_rotate_angle > 0 or self.max_shear_ratio > 0 or self.rotate > 0
                or (self.min_random_scale, self.max_random_scale) != (1, 1)
                or (self.min_img_size, self.max_img_size) != (0, 1e10)
                or (not self.random_resized_crop and self._ratios != (1, 1)))

    @property
    def _ratios(self) -> tuple[float, float]:
        if self.min_aspect_ratio is not None:
            return self.min_aspect_ratio, self.max_aspect_ratio
        return 1 - self.max_aspect_ratio, 1 + self.max_aspect_ratio

    def _rotate_and_pad(self, image: Pixels, rng: np.random.Generator) -> Pixels:
        """The image rotated, sheared and scaled around its center, and padded."""
        if self._moves:
            image = self._rotate_and_scale(image, rng)
        if self.pad > 0:
            image = np.pad(image, ((self.pad, self.pad), (self.pad, self.pad), (0, 0)), constant_values=self.fill_value)
        return image

    def _rotate_and_scale(self, image: Pixels, rng: np.random.Generator) -> Pixels:
        shear = rng.uniform(-self.max_shear_ratio, self.max_shear_ratio)
        angle = self.rotate if self.rotate > 0 else rng.integers(-self.max_rotate_angle, self.max_rotate_angle + 1)
        scale = rng.uniform(self.min_random_scale, self.max_random_scale)
        ratio = 1.0 if self.random_resized_crop else rng.uniform(*self._ratios)
        cosine, sine = math.cos(angle / 180 * math.pi), math.sin(angle / 180 * math.pi)
        down = 2 * scale / (1 + ratio)
        across = ratio * down
        size = np.array([image.shape[1], image.shape[0]])
        new = np.clip(scale * size, self.min_img_size, self.max_img_size)
        turn = np.array([[down * cosine - shear * sine * across, down * sine + shear * cosine * across],
                         [-sine * across, cosine * across]])
        matrix = np.column_stack([turn, (new - turn @ size) / 2]).astype(np.float32)
        return warp(image, matrix, int(new[1]), int(new[0]), self.fill_value)

    def _crop(self, image: Pixels, rng: np.random.Generator) -> Pixels:
        """A crop of the output shape, resized if necessary."""
        height, width = self.data_shape[1:]
        anywhere = rng if self.rand_crop else None
        if self.random_resized_crop and ((self.min_random_area, self.max_random_area) != (1, 1)
                                         or self._ratios != (1, 1)):
            return resize(self._any_part(image, rng), height, width, chosen(self.inter_method, rng))
        if self.max_crop_size != -1 or self.min_crop_size != -1:
            if min(image.shape[:2]) < self.max_crop_size:
                raise ShapeError(f"an image of {image.shape[0]} by {image.shape[1]} pixels is smaller than "
                                 f"max_crop_size={self.max_crop_size}")
            size = int(rng.integers(self.min_crop_size, self.max_crop_size + 1))
            return resize(crop(image, size, size, anywhere), height, width, chosen(self.inter_method, rng))
        scale = max(height / image.shape[0], width / image.shape[1])
        if scale > 1:
            image = resize(image, max(height, int(image.shape[0] * scale)), max(width, int(image.shape[1] * scale)),
                           chosen(self.inter_method, rng))
        return crop(image, height, width, anywhere)

    def _any_part(self, image: Pixels, rng: np.random.Generator) -> Pixels:
        """A crop of random area and aspect ratio."""
        for _ in range(10):
            area = rng.uniform(self.min_random_area, self.max_random_area) * image.shape[0] * image.shape[1]
            ratio = rng.uniform(*self._ratios)
            width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < width <= image.shape[1] and 0 < height <= image.shape[0]:
                return crop(image, height, width, rng)
        height, width = self.data_shape[1:]
        scale = min(1, image.shape[0] / height, image.shape[1] / width)
        return crop(image, max(1, int(height * scale)), max(1, int(width * scale)), None)

    def _change_colors(self, image: Pixels, rng: np.random.Generator) -> Pixels:
        changes: list[Callable[[Pixels], Pixels]] = []
        kinds = ((_brighter, self.brightness), (_change_contrast, self.contrast), (_change_saturation, self.saturation))
        for change, share in kinds:
            if share > 0:
                factor = 1 + rng.uniform(-share, share)
                changes.append(lambda image, change=change, factor=factor: change(image, factor))  # type: ignore[misc]
        for number in rng.permutation(len(changes)) if changes else ():
            image = changes[number](image)
        if self.random_h or self.random_s or self.random_l:
            image = changed_hls(image, *(int(rng.uniform(-most, most))
                                         for most in (self.random_h, self.random_l, self.random_s)))
        if self.pca_noise > 0:
            alpha = rng.normal(0, self.pca_noise, 3)
            image = _bytes(image + (EIGENVECTORS * alpha) @ EIGENVALUES)
        return image


def _brighter(image: Pixels, factor: float) -> Pixels:
    return _bytes(image * np.float32(factor))


def _change_contrast(image: Pixels, factor: float) -> Pixels:
    return _bytes(image * np.float32(factor) + np.float32((1 - factor) * (image @ _GRAY).mean()))


def _change_saturation(image: Pixels, factor: float) -> Pixels:
    return _bytes(image * np.float32(factor) + ((1 - factor) * (image @ _GRAY))[:, :, None])
