"""Augmentation of images with boxes by ``ImageDetRecordIter``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from ..core.spec import Shape
from ..errors import ArgumentError, FileFormatError
from .pixels import shorter
from .record_augment import Pixels, changed_hls, chosen, resize

__all__ = ["DetAugmentation"]

#: Left, top, width and height of a window, relative to the image.
Window = tuple[float, float, float, float]

#: The keywords with one value per crop sampler.
_SAMPLED = ("crop_scales", "crop_aspect_ratios", "crop_overlaps", "crop_sample_coverages", "crop_object_coverages")


def _common(boxes: np.ndarray, window: Window) -> np.ndarray:
    """The areas of the intersections of boxes (left, top, right, bottom) with a window."""
    x, y, width, height = window
    across = np.minimum(boxes[:, 2], x + width) - np.maximum(boxes[:, 0], x)
    down = np.minimum(boxes[:, 3], y + height) - np.maximum(boxes[:, 1], y)
    return np.maximum(across, 0) * np.maximum(down, 0)


def _project_boxes(rows: np.ndarray, window: Window) -> np.ndarray:
    """Boxes in the coordinates of a window, clipped at its edges."""
    x, y, width, height = window
    out = rows.copy()
    out[:, 1:5] = np.clip((rows[:, 1:5] - (x, y, x, y)) / (width, height, width, height), 0, 1)
    return out


@dataclass(frozen=True)
class DetAugmentation:
    """The keywords of ``ImageDetRecordIter`` that configure the augmentation of an image and its boxes."""

    data_shape: Shape
    resize: int = -1
    rand_crop_prob: float = 0.0
    min_crop_scales: Sequence[float] = (0.0,)
    max_crop_scales: Sequence[float] = (1.0,)
    min_crop_aspect_ratios: Sequence[float] = (1.0,)
    max_crop_aspect_ratios: Sequence[float] = (1.0,)
    min_crop_overlaps: Sequence[float] = (0.0,)
    max_crop_overlaps: Sequence[float] = (1.0,)
    min_crop_sample_coverages: Sequence[float] = (0.0,)
    max_crop_sample_coverages: Sequence[float] = (1.0,)
    min_crop_object_coverages: Sequence[float] = (0.0,)
    max_crop_object_coverages: Sequence[float] = (1.0,)
    num_crop_sampler: int = 1
    crop_emit_mode: Literal["center", "overlap"] = "center"
    emit_overlap_thresh: float = 0.3
    max_crop_trials: Sequence[int] = (25,)
    rand_pad_prob: float = 0.0
    max_pad_scale: float = 1.0
    max_random_hue: int = 0
    random_hue_prob: float = 0.0
    max_random_saturation: int = 0
    random_saturation_prob: float = 0.0
    max_random_illumination: int = 0
    random_illumination_prob: float = 0.0
    max_random_contrast: float = 0.0
    random_contrast_prob: float = 0.0
    rand_mirror_prob: float = 0.0
    fill_value: int = 127
    inter_method: int = 1
    resize_mode: Literal["force", "shrink", "fit"] = "force"

    def __post_init__(self) -> None:
        for name, valid in (("inter_method", (0, 1, 2, 3, 4, 9, 10)), ("resize_mode", ("force", "shrink", "fit")),
                            ("crop_emit_mode", ("center", "overlap"))):
            if getattr(self, name) not in valid:
                raise ArgumentError(f"{name}={getattr(self, name)!r}: expected one of {valid}")
        for name in ("max_crop_trials", *(f"{end}_{setting}" for end in ("min", "max") for setting in _SAMPLED)):
            values = getattr(self, name)
            values = (values,) if np.ndim(values) == 0 else tuple(values)
            if len(values) not in (1, self.num_crop_sampler):
                raise ArgumentError(f"{name}={values}: expected one for each of num_crop_sampler="
                                    f"{self.num_crop_sampler}")
            object.__setattr__(self, name, values * self.num_crop_sampler if len(values) == 1 else values)
        for setting in _SAMPLED:
            for least, most in zip(getattr(self, f"min_{setting}"), getattr(self, f"max_{setting}")):
                if least > most or least < 0:
                    raise ArgumentError(f"min_{setting}={least}, max_{setting}={most}: expected two numbers of at "
                                        f"least 0, the smaller one first")

    @property
    def is_random(self) -> bool:
        """Whether the augmentation is random."""
        return self.inter_method == 10 or any(getattr(self, field.name) > 0 for field in fields(self)
                                              if field.name.endswith("_prob"))

    def __call__(self, image: Pixels, label: np.ndarray, rng: np.random.Generator) -> tuple[Pixels, np.ndarray]:
        """Augment an image and its label: a header, and one row per box."""
        head, rows = _split(label)
        if self.resize > 0:
            height, width = shorter(image.shape[0], image.shape[1], self.resize)
            image = resize(image, height, width, chosen(self.inter_method, rng))
        image = self._change_colors(image, rng)
        if self.rand_mirror_prob > 0 and rng.random() < self.rand_mirror_prob:
            image = image[:, ::-1]
            rows = rows.copy()
            rows[:, [1, 3]] = 1 - rows[:, [3, 1]]
        if self.rand_pad_prob > 0 and self.max_pad_scale > 1 and rng.random() < self.rand_pad_prob:
            image, rows = self._pad(image, rows, rng)
        if self.rand_crop_prob > 0 and rng.random() < self.rand_crop_prob:
            image, rows = self._crop(image, rows, rng)
        return self._fit(image, rng), np.concatenate([head, rows.ravel()]).astype(np.float32)

    def _change_colors(self, image: Pixels, rng: np.random.Generator) -> Pixels:
        changes = []
        for name in ("hue", "illumination", "saturation", "contrast"):
            most, share = getattr(self, f"max_random_{name}"), getattr(self, f"random_{name}_prob")
            changes.append(rng.uniform(-most, most) if share > 0 and rng.random() < share else 0.0)
        *hls, contrast = changes
        if image.shape[2] == 3 and any(int(amount) for amount in hls):
            image = changed_hls(image, *(int(amount) for amount in hls))
        if abs(contrast) > 1e-3:
            image = np.clip(np.rint(image * np.float32(1 + contrast)), 0, 255).astype(np.uint8)
        return image

    def _pad(self, image: Pixels, rows: np.ndarray, rng: np.random.Generator) -> tuple[Pixels, np.ndarray]:
        """The image at a random position on a larger canvas."""
        scale = rng.uniform(1, self.max_pad_scale)
        if scale < 1.05:
            return image, rows
        x, y = rng.uniform(0, scale - 1, 2)
        height, width = image.shape[:2]
        sides = [(int(before * size), int((scale - before - 1) * size)) for before, size in ((y, height), (x, width))]
        return (np.pad(image, (*sides, (0, 0)), constant_values=self.fill_value),
                _project_boxes(rows, (-x, -y, scale, scale)))

    def _crop(self, image: Pixels, rows: np.ndarray, rng: np.random.Generator) -> tuple[Pixels, np.ndarray]:
        """The first valid crop of any sampler, or the whole image."""
        height, width = image.shape[:2]
        for sampler in rng.permutation(self.num_crop_sampler):
            for _ in range(self.max_crop_trials[sampler]):
                window = self._window(sampler, width / height, rng)
                boxes = self._boxes(sampler, rows, window)
                if boxes is not None:
                    x, y = int(window[0] * width), int(window[1] * height)
                    w, h = max(1, int(window[2] * width)), max(1, int(window[3] * height))
                    return image[y:y + h, x:x + w], boxes
        return image, rows

    def _window(self, sampler: int, ratio: float, rng: np.random.Generator) -> Window:
        scale = rng.uniform(self.min_crop_scales[sampler], self.max_crop_scales[sampler]) + 1e-12
        least = max(self.min_crop_aspect_ratios[sampler] / ratio, scale * scale)
        most = min(self.max_crop_aspect_ratios[sampler] / ratio, 1 / (scale * scale))
        stretch = math.sqrt(rng.uniform(least, most) if least < most else least)
        width, height = min(1.0, scale * stretch), min(1.0, scale / stretch)
        return rng.uniform(0, 1 - width), rng.uniform(0, 1 - height), width, height

    def _boxes(self, sampler: int, rows: np.ndarray, window: Window) -> np.ndarray | None:
        """The boxes relative to a crop, or None if the crop is invalid."""
        if not len(rows):
            return rows
        boxes = rows[:, 1:5]
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        common, own = _common(boxes, window), window[2] * window[3]
        fit = np.ones(len(rows), bool)
        for name, value in (("crop_overlaps", common / (areas + own - common)), ("crop_sample_coverages", common / own),
                            ("crop_object_coverages", common / areas)):
            least, most = getattr(self, f"min_{name}")[sampler], getattr(self, f"max_{name}")[sampler]
            if least > 0 or most < 1:
                fit &= (value >= least) & (value <= most)
        if not fit.any():
            return None
        if self.crop_emit_mode == "center":
            middle = (boxes[:, :2] + boxes[:, 2:]) / 2
            stay = ((middle >= window[:2]) & (middle < np.add(window[:2], window[2:]))).all(axis=1)
        else:
            stay = common / areas > self.emit_overlap_thresh
        return _project_boxes(rows[stay], window) if stay.any() else None

    def _fit(self, image: Pixels, rng: np.random.Generator) -> Pixels:
        """The image resized to the output shape, or to fit within it."""
        height, width = self.data_shape[1:]
        if self.resize_mode != "force":
            scale = min(height / image.shape[0], width / image.shape[1])
            if self.resize_mode == "shrink":
                scale = min(scale, 1)
            height, width = max(1, int(scale * image.shape[0])), max(1, int(scale * image.shape[1]))
        return resize(image, height, width, chosen(self.inter_method, rng))


def _split(label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The header of a label, and its boxes of positive area, one per row."""
    head = int(label[0]) if len(label) >= 7 else 0
    width = int(label[1]) if head >= 2 else 0
    if head < 2 or width < 5 or (len(label) - head) % width:
        raise FileFormatError(f"a label of {len(label)} numbers must be a head of at least two and boxes of at least "
                              f"five: it begins with {label[:2].tolist()}")
    rows = label[head:].reshape(-1, width)
    return label[:head], rows[(rows[:, 3] > rows[:, 1]) & (rows[:, 4] > rows[:, 2])]
