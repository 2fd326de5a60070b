"""Operations on an image and its boxes, rows of x, y, width and height: both are results, the boxes in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....cells.typing import Sizes
from ....core.settings import Checked
from ....errors import ArgumentError, ShapeError
from ..config import stream
from ..transforms import chance
from .frames import Crop, HorizontalFlip, RandomCrop, RandomResizedCrop, Resize, VerticalFlip
from .images import Inter, check_image

__all__ = ["BoundingBoxAugment", "RandomCropWithBBox", "RandomHorizontalFlipWithBBox", "RandomResizeWithBBox",
           "RandomResizedCropWithBBox", "RandomVerticalFlipWithBBox", "ResizeWithBBox"]


def _read(owner: Any, image: Any, bboxes: Any) -> tuple[np.ndarray, np.ndarray]:
    """An image, and a copy of its boxes, which lie in it."""
    name = type(owner).__name__
    pixels, boxes = check_image(name, image), np.array(bboxes, np.float32)
    if boxes.ndim != 2 or boxes.shape[1] < 4:
        raise ShapeError(f"{name}: expected boxes as rows of x, y, width and height, got the shape {boxes.shape}")
    height, width = pixels.shape[:2]
    outside = (boxes[:, :2] < 0).any(axis=1) | (boxes[:, :2] + boxes[:, 2:4] > (width, height)).any(axis=1)
    if outside.any():
        raise ArgumentError(f"{name}: the box {boxes[outside][0, :4].tolist()} is not inside of an image of {height} "
                            f"by {width}")
    return pixels, boxes


def _crop_boxes(boxes: np.ndarray, crop: Crop) -> np.ndarray:
    """The parts of boxes in a crop, without boxes that lie outside of it."""
    start = np.array([crop.left, crop.top], np.float32)
    end = start + np.array([crop.width, crop.height], np.float32)
    low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:4]
    remains = ((low <= end) & (high >= start)).all(axis=1)
    boxes, low, high = boxes[remains], np.clip(low, start, end)[remains], np.clip(high, start, end)[remains]
    boxes[:, :2], boxes[:, 2:4] = low - start, high - low
    return boxes


def _scale_boxes(boxes: np.ndarray, have: tuple[int, ...], want: tuple[int, ...]) -> np.ndarray:
    """Boxes in an image that was resized, from one height and width to another."""
    boxes[:, :4] *= np.array([want[1] / have[1], want[0] / have[0]] * 2, np.float32)
    return boxes


class _Flip(Checked):
    def __init__(self, prob: float, flip: Callable[[Any], np.ndarray], axis: int):
        self._prob, self._flip, self._axis = chance(type(self).__name__, prob), flip, axis

    def __call__(self, image: Any, bboxes: Any) -> tuple[np.ndarray, np.ndarray]:
        pixels, boxes = _read(self, image, bboxes)
        if stream().random() >= self._prob:
            return pixels, boxes
        boxes[:, self._axis] = pixels.shape[1 - self._axis] - (boxes[:, self._axis] + boxes[:, self._axis + 2])
        return self._flip(pixels), boxes


class RandomHorizontalFlipWithBBox(_Flip):
    """An image and its boxes, mirrored left to right with a given probability."""

    def __init__(self, prob: float = 0.5):
        super().__init__(prob, HorizontalFlip(), 0)


class RandomVerticalFlipWithBBox(_Flip):
    """An image and its boxes, mirrored top to bottom with a given probability."""

    def __init__(self, prob: float = 0.5):
        super().__init__(prob, VerticalFlip(), 1)


class ResizeWithBBox(Checked):
    """An image resized with its boxes; see ``Resize``."""

    def __init__(self, size: Sizes, interpolation: Inter = Inter.LINEAR):
        self._resize = Resize(size, interpolation)

    def __call__(self, image: Any, bboxes: Any) -> tuple[np.ndarray, np.ndarray]:
        pixels, boxes = _read(self, image, bboxes)
        resized = self._resize(pixels)
        return resized, _scale_boxes(boxes, pixels.shape, resized.shape)


class RandomResizeWithBBox(Checked):
    """An image resized with its boxes, with an interpolation chosen at random; see ``Resize`` for the size."""

    def __init__(self, size: Sizes):
        self._kinds = [ResizeWithBBox(size, kind) for kind in Inter]

    def __call__(self, image: Any, bboxes: Any) -> tuple[np.ndarray, np.ndarray]:
        return self._kinds[int(stream().integers(len(self._kinds)))](image, bboxes)


class RandomCropWithBBox(RandomCrop):
    """A crop at random coordinates, and the parts of the boxes in it; see ``RandomCrop``."""

    def __call__(self, image: Any, bboxes: Any) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[override]
        pixels, boxes = _read(self, image, bboxes)
        pixels, (down, across), crop = self._padded(pixels)
        boxes[:, :2] += (across, down)
        return crop(pixels), _crop_boxes(boxes, crop)


class RandomResizedCropWithBBox(RandomResizedCrop):
    """A crop of random area, aspect ratio and position, resized, and the parts of the boxes in it; see
    ``RandomResizedCrop``."""

    def __call__(self, image: Any, bboxes: Any) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[override]
        pixels, boxes = _read(self, image, bboxes)
        crop = self._crop(pixels)
        resized = self._resize(crop(pixels))
        return resized, _scale_boxes(_crop_boxes(boxes, crop), (crop.height, crop.width), resized.shape)


class BoundingBoxAugment(Checked):
    """An operation applied to the parts of an image in some of its boxes, chosen at random; the boxes stay.

    Parameters
    ----------
    transform : function of an image
        The operation. A result of another size is resized to the box.
    ratio : float
        Probability of each box.
    """

    def __init__(self, transform: Callable[[Any], Any], ratio: float = 0.3):
        self._transform, self._ratio = transform, chance("BoundingBoxAugment", ratio)

    def __call__(self, image: Any, bboxes: Any) -> tuple[np.ndarray, np.ndarray]:
        pixels, boxes = _read(self, image, bboxes)
        pixels = pixels.copy()
        for left, top, width, height in boxes[:, :4].astype(int).tolist():
            if stream().random() < self._ratio:
                part = np.asarray(self._transform(Crop((top, left), (height, width))(pixels)))
                fits = part.shape[:2] == (height, width)
                pixels[top:top + height, left:left + width] = part if fits else Resize((height, width))(part)
        return pixels, boxes
