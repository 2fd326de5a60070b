"""Augmentation of images with boxes, and an iterator over them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from opreg.ndarray import NDArray

from ..errors import ArgumentError, FileFormatError, ShapeError
from . import codec
from .augmenters import DEVIATION, MEAN, colors
from .det_augmenters import (
    CreateDetAugmenter,
    CreateMultiRandCropAugmenter,
    DetAugmenter,
    DetBorrowAug,
    DetHorizontalFlipAug,
    DetRandomCropAug,
    DetRandomPadAug,
    DetRandomSelectAug,
)
from .image_iter import ImageIter

__all__ = ["DetAugmenter", "DetBorrowAug", "DetRandomSelectAug", "DetHorizontalFlipAug", "DetRandomCropAug",
           "DetRandomPadAug", "CreateMultiRandCropAugmenter", "CreateDetAugmenter", "ImageDetIter"]


class _UnusableSample(RuntimeError):
    """A sample that is skipped."""


class ImageDetIter(ImageIter):
    """Iterates over batches of images with boxes; see `ImageIter`.

    A label in a file holds the length of its header, the number of elements per box, the rest of the header, and the
    boxes: class, left, top, right, bottom in [0, 1], and any further elements. In a batch it has one row per box and is
    padded with -1. Samples without a box of positive area are skipped.

    Parameters
    ----------
    batch_size, data_shape, path_imgrec, path_imglist, path_root, path_imgidx, shuffle, part_index, num_parts, imglist,
    data_name, label_name, last_batch_handle
        See `ImageIter`.
    aug_list : list of DetAugmenter
        The augmenters; by default those that `CreateDetAugmenter` makes from the further keywords.
    """

    def __init__(self, batch_size: int, data_shape: Sequence[int], path_imgrec: str | None = None,
                 path_imglist: str | None = None, path_root: str | None = None, path_imgidx: str | None = None,
                 shuffle: bool = False, part_index: int = 0, num_parts: int = 1,
                 aug_list: Sequence[DetAugmenter] | None = None, imglist: Sequence[Sequence[Any]] | None = None,
                 data_name: str = "data", label_name: str = "label", last_batch_handle: str = "pad", **kwargs: Any):
        super().__init__(batch_size, data_shape, path_imgrec=path_imgrec, path_imglist=path_imglist,
                         path_root=path_root, path_imgidx=path_imgidx, shuffle=shuffle, part_index=part_index,
                         num_parts=num_parts, aug_list=[], imglist=imglist, data_name=data_name, label_name=label_name,
                         last_batch_handle=last_batch_handle)
        self.auglist: Sequence[Any] = CreateDetAugmenter(self.data_shape, **kwargs) if aug_list is None else aug_list
        self.label_shape = self._estimate_label_shape()
        self.provide_label = [(label_name, (batch_size, *self.label_shape))]

    def _estimate_label_shape(self) -> tuple[int, int]:
        """The largest number of boxes in an image, and the number of elements per box."""
        self.reset()
        most = width = 0
        while True:
            try:
                boxes = self._parse_label(self.next_sample()[0])
            except StopIteration:
                break
            except _UnusableSample:
                continue
            most, width = max(most, len(boxes)), boxes.shape[1]
        self.reset()
        if not most:
            raise FileFormatError("ImageDetIter: no image has a box")
        return most, width

    def _parse_label(self, label: Any) -> np.ndarray:
        """The boxes in a label, one per row."""
        raw = (label.asnumpy() if isinstance(label, NDArray) else np.asarray(label)).ravel()
        if raw.size < 7:
            raise FileFormatError(f"image {self._key}: expected a label with a header and boxes, at least seven "
                                  f"elements, got {raw.size}")
        head, width = int(raw[0]), int(raw[1])
        if head < 2 or width < 5 or (raw.size - head) % width:
            raise FileFormatError(f"image {self._key}: a label of {raw.size} elements cannot have a header of {head} "
                                  f"and boxes of {width} elements")
        boxes = raw[head:].reshape(-1, width)
        boxes = boxes[(boxes[:, 3] > boxes[:, 1]) & (boxes[:, 4] > boxes[:, 2])]
        if not len(boxes):
            raise _UnusableSample(f"image {self._key} has no box with an area")
        return boxes

    def _prepare_sample(self, label: Any, image: NDArray) -> tuple[np.ndarray, np.ndarray]:
        self.check_valid_image([image])
        image, boxes = self.augmentation_transform(image, self._parse_label(label))
        if boxes.ndim != 2 or boxes.shape[1] < 5 or not np.any(
                (boxes[:, 0] >= 0) & (boxes[:, 3] > boxes[:, 1]) & (boxes[:, 4] > boxes[:, 2])):
            raise _UnusableSample("no box is left")
        pixels = self.postprocess_data(image).asnumpy()
        rows = np.full(self.label_shape, -1, np.float32)
        if pixels.shape != self.data_shape or len(boxes) > len(rows) or boxes.shape[1] != rows.shape[1]:
            raise ShapeError(f"expected an image of shape {self.data_shape} and boxes of at most {rows.shape}, got "
                             f"{pixels.shape} and {boxes.shape}")
        rows[:len(boxes)] = boxes
        return pixels, rows

    def augmentation_transform(self, data: NDArray, label: Any = None) -> Any:
        """Apply the augmenters to an image and its boxes."""
        for augmenter in self.auglist:
            data, label = augmenter(data, label)
        return data, label

    def reshape(self, data_shape: Sequence[int] | None = None, label_shape: Sequence[int] | None = None) -> None:
        """Change the shape of the images, or the number of boxes in a label; augmenters are not changed."""
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.data_shape = tuple(data_shape)
            self.provide_data = [(self.provide_data[0][0], (self.batch_size, *data_shape))]
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.label_shape = label_shape[0], label_shape[1]
            self.provide_label = [(self.provide_label[0][0], (self.batch_size, *label_shape))]

    def check_label_shape(self, label_shape: Sequence[int]) -> None:
        """Refuse a shape with too few boxes for the labels, or with boxes of another length."""
        if len(label_shape) != 2 or label_shape[0] < self.label_shape[0] or label_shape[1] != self.label_shape[1]:
            raise ShapeError(f"label_shape={tuple(label_shape)}: expected at least {self.label_shape[0]} boxes of "
                             f"{self.label_shape[1]} numbers")

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> ImageDetIter:
        """Give this and another iterator the larger of their numbers of boxes per label; return the other."""
        if not isinstance(it, ImageDetIter):
            raise ArgumentError(f"sync_label_shape: expected an ImageDetIter, got {type(it).__name__}")
        if it.label_shape[1] != self.label_shape[1]:
            raise ShapeError(f"boxes of {self.label_shape[1]} and of {it.label_shape[1]} numbers cannot be in one "
                             f"label")
        most = max(self.label_shape[0], it.label_shape[0])
        for iterator in (self, it):
            iterator.reshape(None, (most, self.label_shape[1]))
        if verbose:
            logging.info("label_shape is now (%d, %d)", most, self.label_shape[1])
        return it

    def draw_next(self, color: Sequence[int] | None = None, thickness: int = 2, mean: Any = None, std: Any = None,
                  clip: bool = True, waitKey: int | None = None, window_name: str = "draw_next",
                  id2labels: Mapping[int, str] | None = None) -> Iterator[np.ndarray]:
        """Yields the augmented images of this epoch with their boxes drawn, in OpenCV's channel order (blue, green,
        red).

        Parameters
        ----------
        color : tuple of int
            Colour of the boxes (red, green, blue); random by default.
        thickness : int
            Line width in pixels.
        mean, std : array, True or None
            Mean and standard deviation of the normalization, which is undone.
        clip : bool
            Whether pixels are clipped to [0, 255].
        waitKey, window_name
            Ignored: no window is opened.
        id2labels : dict
            Class names, written beside the boxes.
        """
        mean, std = colors("mean", mean, MEAN), colors("std", std, DEVIATION)
        while True:
            samples = self._decode_samples(1)
            if not samples:
                return
            label, image = samples[0]
            try:
                image, boxes = self.augmentation_transform(image, self._parse_label(label))
            except _UnusableSample as error:
                logging.debug("image left out: %s", error)
                continue
            pixels = image.asnumpy().astype(np.float32)
            for undo, what in ((np.multiply, std), (np.add, mean)):
                if what is not None:
                    pixels = undo(pixels, what.asnumpy() if isinstance(what, NDArray) else what)
            pixels = np.clip(pixels, 0, 255) if clip else pixels
            drawn = codec.with_boxes(pixels.astype(np.uint8), boxes, color, thickness, id2labels or {})
            yield np.ascontiguousarray(drawn[:, :, ::-1])
