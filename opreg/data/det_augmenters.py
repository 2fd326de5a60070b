"""Augmenters of images with boxes: a label has a row (class, left, top, right, bottom, ...) for each box, from 0 to
1."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np

from opreg.ndarray import NDArray, flip

from ..core.named_errors import name_errors
from ..errors import ArgumentError
from .augmenters import Augmenter, CastAug, ForceResizeAug, ResizeAug, SelfDescribing, color_augmenters
from .pixels import Place, copyMakeBorder, fixed_crop

__all__ = ["DetAugmenter", "DetBorrowAug", "DetRandomSelectAug", "DetHorizontalFlipAug", "DetRandomCropAug",
           "DetRandomPadAug", "CreateMultiRandCropAugmenter", "CreateDetAugmenter"]

#: An image and its boxes.
Sample = tuple[NDArray, np.ndarray]


class DetAugmenter(SelfDescribing):
    """Base of augmenters of images with boxes.

    A subclass passes its arguments to this constructor, and defines ``__call__``.
    """

    def __call__(self, src: NDArray, label: np.ndarray) -> Sample:
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")


class DetBorrowAug(DetAugmenter):
    """An image augmenter that does not change boxes."""

    def __init__(self, augmenter: Augmenter):
        if not isinstance(augmenter, Augmenter):
            raise ArgumentError(f"DetBorrowAug: expected an Augmenter, got {type(augmenter).__name__}")
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self) -> list[Any]:
        """The class, and the settings of the augmenter."""
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: NDArray, label: np.ndarray) -> Sample:
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """One of several augmenters, chosen at random, or with probability ``skip_prob`` none."""

    def __init__(self, aug_list: DetAugmenter | Sequence[DetAugmenter], skip_prob: float = 0):
        super().__init__(skip_prob=skip_prob)
        self.aug_list: list[DetAugmenter] = [*aug_list] if isinstance(aug_list, (list, tuple)) else [
            aug_list]  # type: ignore[list-item]
        for augmenter in self.aug_list:
            if not isinstance(augmenter, DetAugmenter):
                raise ArgumentError(f"DetRandomSelectAug: expected DetAugmenters, got {type(augmenter).__name__}")
        self.skip_prob = skip_prob if self.aug_list else 1

    def dumps(self) -> list[Any]:
        """The class, and the settings of each augmenter."""
        return [type(self).__name__.lower(), [augmenter.dumps() for augmenter in self.aug_list]]

    def __call__(self, src: NDArray, label: np.ndarray) -> Sample:
        if random.random() < self.skip_prob:
            return src, label
        random.shuffle(self.aug_list)
        return self.aug_list[0](src, label)


class DetHorizontalFlipAug(DetAugmenter):
    """Mirrors images and boxes left to right, with probability ``p``; boxes are changed in place."""

    def __init__(self, p: float):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: NDArray, label: np.ndarray) -> Sample:
        if random.random() < self.p:
            src = flip(src, axis=1)
            label[:, [1, 3]] = 1.0 - label[:, [3, 1]]
        return src, label


def _areas(boxes: np.ndarray) -> np.ndarray:
    """Areas of boxes (left, top, right, bottom)."""
    return np.maximum(0, boxes[:, 2] - boxes[:, 0]) * np.maximum(0, boxes[:, 3] - boxes[:, 1])


def _bounds(what: str, bounds: float | Sequence[float]) -> Sequence[float]:
    """Lower and upper bound, which may be given as one number."""
    if not isinstance(bounds, (list, tuple)):
        bounds = (bounds, bounds)  # type: ignore[assignment]
    if len(bounds) != 2:  # type: ignore[arg-type]
        raise ArgumentError(f"{what}: expected a number, or a least and a largest one, got {bounds!r}")
    return bounds  # type: ignore[return-value]


class _RandomWindow(DetAugmenter):
    """Base of augmenters that draw a window with area and aspect ratio within bounds."""

    _least_area = 0.0  # the augmenter is off if the upper bound of the area is at most this

    def __init__(self, aspect_ratio_range: float | Sequence[float], area_range: float | Sequence[float],
                 max_attempts: int, **others: Any):
        ratios, areas = _bounds("aspect_ratio_range", aspect_ratio_range), _bounds("area_range", area_range)
        super().__init__(aspect_ratio_range=ratios, area_range=areas, max_attempts=max_attempts, **others)
        self.aspect_ratio_range, self.area_range, self.max_attempts = ratios, areas, max_attempts
        self.enabled = self._least_area < areas[1] >= areas[0] and 0 < ratios[0] <= ratios[1]
        if not self.enabled:
            warnings.warn(f"{type(self).__name__} has no effect: there is no window with area_range={areas} and "
                          f"aspect_ratio_range={ratios}", UserWarning, stacklevel=3)

    def _ratios(self, height: int, width: int) -> Iterator[tuple[float, float, float]]:
        """Random ratios with the smallest and largest area, one for each attempt."""
        if self.enabled and height > 0 and width > 0:
            for _ in range(self.max_attempts):
                ratio = random.uniform(*self.aspect_ratio_range)
                yield ratio, self.area_range[0] * height * width, self.area_range[1] * height * width


class DetRandomCropAug(_RandomWindow):
    """Crops images at random so that boxes stay visible; boxes with too little left are dropped.

    Parameters
    ----------
    min_object_covered : float
        Least fraction of each box inside of the crop.
    aspect_ratio_range, area_range : pair of floats, or one
        Ranges of the crop's aspect ratio (width to height), and of its fraction of the image.
    min_eject_coverage : float
        Least fraction of a box that is kept.
    max_attempts : int
        Number of attempts; then the image is not changed.
    """

    def __init__(self, min_object_covered: float = 0.1, aspect_ratio_range: float | Sequence[float] = (0.75, 1.33),
                 area_range: float | Sequence[float] = (0.05, 1.0), min_eject_coverage: float = 0.3,
                 max_attempts: int = 50):
        super().__init__(aspect_ratio_range, area_range, max_attempts, min_object_covered=min_object_covered,
                         min_eject_coverage=min_eject_coverage)
        order = ("min_object_covered", "aspect_ratio_range", "area_range", "min_eject_coverage", "max_attempts")
        self._kwargs = {name: self._kwargs[name] for name in order}
        self.min_object_covered, self.min_eject_coverage = min_object_covered, min_eject_coverage

    def __call__(self, src: NDArray, label: np.ndarray) -> Sample:
        proposal = self._propose(label, *src.shape[:2])
        if proposal is None:
            return src, label
        place, label = proposal
        return fixed_crop(src, *place), label

    def _propose(self, label: np.ndarray, height: int, width: int) -> tuple[Place, np.ndarray] | None:
        for ratio, least, most in self._ratios(height, width):
            place = self._draw_place(ratio, least, most, height, width)
            if place is not None and self._shows(label, place, height, width):
                moved = self._boxes_in_crop(label, place, height, width)
                if len(moved):
                    return place, moved
        return None

    @staticmethod
    def _draw_place(ratio: float, least: float, most: float, height: int, width: int) -> Place | None:
        """A crop of that aspect ratio and area, if one fits into the image."""
        h, highest = round(sqrt(least / ratio)), round(sqrt(most / ratio))
        if round(highest * ratio) > width:
            highest = int((width + 0.4999999) / ratio)
        highest = min(highest, height)
        h = min(h, highest)
        if h < highest:
            h = random.randint(h, highest)
        w = round(h * ratio)
        if w * h < least:  # rounding has made the area too small
            h += 1
            w = round(h * ratio)
        if w * h > most:
            h -= 1
            w = round(h * ratio)
        if not (least <= w * h <= most and w <= width and h <= height):
            return None
        y, x = random.randint(0, height - h), random.randint(0, width - w)
        return x, y, w, h

    def _shows(self, label: np.ndarray, place: Place, height: int, width: int) -> bool:
        """Whether a crop covers a box, and enough of each box that it covers."""
        x, y, w, h = place
        if w * h < 2:
            return False
        boxes = label[:, 1:5]
        areas = _areas(boxes)
        boxes, areas = boxes[areas * width * height > 2], areas[areas * width * height > 2]
        shown = np.concatenate([np.maximum(boxes[:, :2], [x / width, y / height]),
                                np.minimum(boxes[:, 2:], [(x + w) / width, (y + h) / height])], axis=1)
        covered = _areas(shown) / areas
        covered = covered[covered > 0]
        return covered.size > 0 and bool(covered.min() > self.min_object_covered)

    def _boxes_in_crop(self, label: np.ndarray, place: Place, height: int, width: int) -> np.ndarray:
        """The boxes in the coordinates of a crop, without those whose remaining area is too small."""
        x, y, w, h = place[0] / width, place[1] / height, place[2] / width, place[3] / height
        out = label.copy()
        out[:, 1:5] -= (x, y, x, y)
        out[:, 1:5] /= (w, h, w, h)
        out[:, 1:5] = np.clip(out[:, 1:5], 0, 1)
        with np.errstate(divide="ignore", invalid="ignore"):  # boxes of zero area are dropped
            coverage = _areas(out[:, 1:5]) * w * h / _areas(label[:, 1:5])
        return out[(out[:, 3] > out[:, 1]) & (out[:, 4] > out[:, 2]) & (coverage > self.min_eject_coverage)]


class DetRandomPadAug(_RandomWindow):
    """Places images at a random position on a larger canvas.

    Parameters
    ----------
    aspect_ratio_range, area_range : pair of floats, or one
        Ranges of the canvas's aspect ratio (width to height), and of its area relative to the image.
    max_attempts : int
        Number of attempts; then the image is not changed.
    pad_val : tuple of float
        The colour around the image.
    """

    _least_area = 1.0

    def __init__(self, aspect_ratio_range: float | Sequence[float] = (0.75, 1.33),
                 area_range: float | Sequence[float] = (1.0, 3.0), max_attempts: int = 50,
                 pad_val: float | Sequence[float] = (128, 128, 128)):
        values = pad_val if isinstance(pad_val, (list, tuple)) else (pad_val,) * 3
        super().__init__(aspect_ratio_range, area_range, max_attempts, pad_val=values)
        self.pad_val = values

    def __call__(self, src: NDArray, label: np.ndarray) -> Sample:
        height, width = src.shape[:2]
        place = self._propose(height, width)
        if place is None:
            return src, label
        x, y, w, h = place
        label = label.copy()
        label[:, 1:5] = (label[:, 1:5] * (width, height, width, height) + (x, y, x, y)) / (w, h, w, h)
        return copyMakeBorder(src, y, h - y - height, x, w - x - width, values=self.pad_val), label

    def _propose(self, height: int, width: int) -> Place | None:
        for ratio, least, most in self._ratios(height, width):
            h, highest = round(sqrt(least / ratio)), round(sqrt(most / ratio))
            if round(h * ratio) < width:
                h = int((width + 0.499999) / ratio)
            h = min(max(h, height), highest)
            if h < highest:
                h = random.randint(h, highest)
            w = round(h * ratio)
            if h - height >= 2 and w - width >= 2:  # a smaller padding has no effect
                y, x = random.randint(0, h - height), random.randint(0, w - width)
                return x, y, w, h
        return None


def CreateMultiRandCropAugmenter(min_object_covered: Any = 0.1,
                                 aspect_ratio_range: Any = (0.75, 1.33), area_range: Any = (0.05, 1.0),
                                 min_eject_coverage: Any = 0.3, max_attempts: Any = 50, skip_prob: float = 0
                                 ) -> DetRandomSelectAug:
    """One of several `DetRandomCropAug`, chosen at random and made from lists of arguments; an argument that is not a
    list applies to all.

    Examples
    --------
    >>> len(CreateMultiRandCropAugmenter(min_object_covered=[0.1, 0.5]).aug_list)
    2
    """
    settings = [setting if isinstance(setting, list) else [setting] for setting in (
        min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts)]
    count = max(map(len, settings))
    if any(len(setting) not in (1, count) for setting in settings):
        raise ArgumentError(f"CreateMultiRandCropAugmenter: expected lists of equal lengths or of length 1, got lists "
                            f"of lengths {[len(setting) for setting in settings]}")
    rows = zip(*(setting * count if len(setting) == 1 else setting for setting in settings))
    return DetRandomSelectAug([DetRandomCropAug(*row) for row in rows], skip_prob)


def CreateDetAugmenter(data_shape: Sequence[int], resize: int = 0, rand_crop: float = 0,
                       rand_pad: float = 0, rand_gray: float = 0, rand_mirror: bool = False, mean: Any = None,
                       std: Any = None, brightness: float = 0, contrast: float = 0, saturation: float = 0,
                       pca_noise: float = 0, hue: float = 0, inter_method: int = 2, min_object_covered: Any = 0.1,
                       aspect_ratio_range: Any = (0.75, 1.33), area_range: Any = (0.05, 3.0),
                       min_eject_coverage: Any = 0.3, max_attempts: Any = 50,
                       pad_val: float | Sequence[float] = (127, 127, 127)) -> list[DetAugmenter]:
    """The augmenters commonly used to train detectors.

    Parameters
    ----------
    data_shape : tuple of int
        Channels, height and width of the images.
    resize : int
        Length to which the shorter edge is resized first; 0 for no resizing.
    rand_crop, rand_pad : float
        Probabilities of cropping an image and of padding it.
    rand_mirror : bool
        Whether to mirror each image with probability 0.5.
    min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts
        Parameters of the crops, each also a list; see `CreateMultiRandCropAugmenter`. The part of the area range above
        1 applies to the padding.
    pad_val : tuple of float
        The colour around a padded image.
    rand_gray, mean, std, brightness, contrast, saturation, pca_noise, hue, inter_method
        See `CreateAugmenter`.
    """
    augmenters: list[DetAugmenter] = [DetBorrowAug(ResizeAug(resize, inter_method))] if resize > 0 else []
    if rand_crop > 0:
        augmenters.append(CreateMultiRandCropAugmenter(min_object_covered, aspect_ratio_range, area_range,
                                                       min_eject_coverage, max_attempts, 1 - rand_crop))
    if rand_mirror > 0:
        augmenters.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:  # last of the geometric augmenters, so that few of them process the added pixels
        pad = DetRandomPadAug(aspect_ratio_range, (1.0, area_range[1]), max_attempts, pad_val)
        augmenters.append(DetRandomSelectAug([pad], 1 - rand_pad))
    last = [ForceResizeAug((data_shape[2], data_shape[1]), inter_method), CastAug(),
            *color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std)]
    return [*augmenters, *map(DetBorrowAug, last)]


name_errors(__name__, globals(), __all__)
