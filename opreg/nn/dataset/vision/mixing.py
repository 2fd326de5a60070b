"""Operations that mix the images of a batch, and their one-hot labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.settings import Checked
from ....errors import ArgumentError, ShapeError
from ..config import stream
from ..transforms import chance
from .images import ImageBatchFormat

__all__ = ["CutMixBatch", "MixUp", "MixUpBatch"]


def _check_positive(owner: str, alpha: float) -> float:
    if alpha <= 0:
        raise ArgumentError(f"{owner}: alpha must be positive, got {alpha!r}")
    return alpha


def _batch(owner: str, image: Any, label: Any) -> tuple[np.ndarray, np.ndarray]:
    images, labels = np.asarray(image), np.asarray(label)
    if images.ndim != 4 or labels.ndim not in (2, 3) or len(images) != len(labels):
        raise ShapeError(f"{owner}: expected a batch of images and one of one-hot labels, got the shapes "
                         f"{images.shape} and {labels.shape}")
    return images, labels


class MixUp(Checked):
    """Images and labels, each mixed with the next of the batch, or with the previous batch: float64.

    For each image its share is drawn from the beta distribution.

    Parameters
    ----------
    batch_size : int
        Count of images in a batch.
    alpha : float
        Both parameters of the distribution.
    is_single : bool
        Whether images are mixed with the next one of their batch, instead of the mixed batch before.
    """

    def __init__(self, batch_size: int, alpha: float, is_single: bool = True):
        self._count, self._alpha, self._single = batch_size, _check_positive("MixUp", alpha), is_single
        self._before: tuple[Any, Any] | None = None

    def __call__(self, image: Any, label: Any) -> tuple[np.ndarray, np.ndarray]:
        arrays = np.asarray(image), np.asarray(label)
        parts = stream().beta(self._alpha, self._alpha, self._count)
        if self._single:
            others: Any = tuple(np.roll(array[:self._count], -1, axis=0) for array in arrays)
        elif self._before is None:
            parts, others = np.ones(self._count), (0, 0)
        else:
            others = self._before
        mixed = [parts.reshape((-1, *(1,) * axes)) * array + (1 - parts.reshape((-1, *(1,) * axes))) * partner
                 for array, partner, axes in zip(arrays, others, (3, 1))]
        self._before = mixed[0], mixed[1]
        return self._before


class MixUpBatch(Checked):
    """Images and labels of a batch, mixed with others of it: labels are float32.

    The part of the images is drawn from the beta distribution, for the whole batch.

    Parameters
    ----------
    alpha : float
        Both parameters of the distribution.
    """

    def __init__(self, alpha: float = 1.0):
        self._alpha = _check_positive("MixUpBatch", alpha)

    def __call__(self, image: Any, label: Any) -> tuple[np.ndarray, np.ndarray]:
        images, labels = _batch("MixUpBatch", image, label)
        random = stream()
        part, order = random.beta(self._alpha, self._alpha), random.permutation(len(images))
        return ((part * images + (1 - part) * images[order]).astype(images.dtype),
                (part * labels + (1 - part) * labels[order]).astype(np.float32))


class CutMixBatch(Checked):
    """Images of a batch with a rectangle of another one of it, and labels mixed by its area: float32.

    Parameters
    ----------
    image_batch_format : ImageBatchFormat
        Order of the axes of the images.
    alpha : float
        Both parameters of the beta distribution that the area is drawn from.
    prob : float
        Probability that an image changes.
    """

    def __init__(self, image_batch_format: ImageBatchFormat, alpha: float = 1.0, prob: float = 1.0):
        self._last = ImageBatchFormat(image_batch_format) is ImageBatchFormat.NHWC
        self._alpha, self._prob = _check_positive("CutMixBatch", alpha), chance("CutMixBatch", prob)

    def __call__(self, image: Any, label: Any) -> tuple[np.ndarray, np.ndarray]:
        images, labels = _batch("CutMixBatch", image, label)
        random, order = stream(), stream().permutation(len(images))
        result, mixed = images.copy(), labels.astype(np.float32)
        views, others = (view if self._last else np.moveaxis(view, 1, 3) for view in (result, images))
        height, width = views.shape[1:3]
        for i, partner in enumerate(order):
            if random.random() >= self._prob:
                continue
            side = np.sqrt(1 - random.beta(self._alpha, self._alpha))
            part = []
            for length in (height, width):
                middle, half = int(random.integers(length)), int(length * side) // 2
                part.append(slice(max(middle - half, 0), min(middle + half, length)))
            views[i][tuple(part)] = others[partner][tuple(part)]
            image_share = 1 - (part[0].stop - part[0].start) * (part[1].stop - part[1].start) / (height * width)
            mixed[i] = image_share * labels[i] + (1 - image_share) * labels[partner]
        return result, mixed
