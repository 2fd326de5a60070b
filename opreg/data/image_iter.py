"""Iterators over images in record files or image files, with augmenters that work on arrays."""

from __future__ import annotations

import functools
import logging
import os
import random
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from opreg.ndarray import NDArray, array, transpose

from ..core import threads
from ..core.files import open_to_read
from ..errors import ArgumentError, DTypeError, FileFormatError, OpError, ShapeError, did_you_mean, note
from .augmenters import CreateAugmenter
from .batches import DataBatch, DataIter
from .pixels import imdecode
from .recordio import MXIndexedRecordIO, MXRecordIO, unpack

__all__ = ["ImageIter"]

_LABELS = ("int32", "float32", "int64", "float64")


def listed_images(path: str, dtype: Any = "float32") -> dict[int, tuple[np.ndarray, str]]:
    """Labels and file names by index, from a list file of im2rec: lines of index, labels and name, separated by tabs.

    Raises
    ------
    FileFormatError
        If a line has another form; the message names it.
    """
    images: dict[int, tuple[np.ndarray, str]] = {}
    with open_to_read(path) as file:
        for number, line in enumerate(file, 1):
            try:
                key, *labels, name = line.decode().rstrip("\r\n").split("\t")
                images[int(key)] = np.array([float(label) for label in labels]).astype(dtype), name
            except ValueError as error:
                if not line.strip():
                    continue
                raise FileFormatError(f"{path}: line {number}: expected a number, labels and a file name with tabs "
                                      f"between, got {line[:50]!r}: {error}") from None
    return images


class ImageIter(DataIter):
    """Iterates over batches of images, decoded on all processors and then augmented.

    The images of a batch are decoded in parallel and augmented in sequence, so that random augmentation with ``random``
    and ``numpy.random`` is reproducible from the seeds.

    Parameters
    ----------
    batch_size : int
        Batch size.
    data_shape : tuple of int
        Shape of an image: (3, height, width).
    label_width : int
        Number of elements in a label.
    path_imgrec, path_imgidx : str
        A record file and its index; without an index the file is read in sequence.
    path_imglist, path_root : str
        A list of labels and file names, and the folder of the files. With ``path_imgrec``, the list only gives labels.
    imglist : list
        The same list in memory: each item has one or more labels and a file name.
    shuffle : bool
        Whether to shuffle the images in each epoch.
    part_index, num_parts : int
        Index of the part to read, and the number of parts.
    aug_list : list of Augmenter
        The augmenters; by default those that `CreateAugmenter` makes from the further keywords.
    data_name, label_name : str
        Names of images and labels.
    dtype : dtype
        Dtype of labels in lists.
    last_batch_handle : {"pad", "discard", "roll_over"}
        Treatment of an incomplete last batch: filled with the first images, dropped, or carried over to the next epoch.
    """

    def __init__(self, batch_size: int, data_shape: Sequence[int], label_width: int = 1, path_imgrec: str | None = None,
                 path_imglist: str | None = None, path_root: str | None = None, path_imgidx: str | None = None,
                 shuffle: bool = False, part_index: int = 0, num_parts: int = 1, aug_list: Sequence[Any] | None = None,
                 imglist: Sequence[Sequence[Any]] | None = None, data_name: str = "data",
                 label_name: str = "softmax_label", dtype: str = "float32", last_batch_handle: str = "pad",
                 **kwargs: Any):
        super().__init__(batch_size)
        if not (path_imgrec or path_imglist or isinstance(imglist, list)):
            raise ArgumentError("ImageIter: expected a source of images: path_imgrec, path_imglist or imglist")
        if dtype not in _LABELS:
            raise DTypeError(f"ImageIter: dtype={dtype!r}: labels are one of {', '.join(_LABELS)}")
        handles = ("pad", "discard", "roll_over")
        if last_batch_handle not in handles:
            raise ArgumentError(f"there is no last_batch_handle {last_batch_handle!r}. "
                                f"{did_you_mean(last_batch_handle, handles)}")
        if not 0 <= part_index < num_parts:
            raise ArgumentError(f"ImageIter: part_index={part_index} of num_parts={num_parts}: expected an integer "
                                "from 0 on that is less than the number of parts")
        data_shape = tuple(data_shape)
        self.check_data_shape(data_shape)
        self.data_shape, self.label_width, self.path_root = data_shape, label_width, path_root
        self.shuffle, self.last_batch_handle = shuffle, last_batch_handle
        self.provide_data = [(data_name, (batch_size, *data_shape))]
        self.provide_label = [(label_name, (batch_size, label_width) if label_width > 1 else (batch_size,))]
        self.imgrec: Any = None
        self.imgidx: list[Any] | None = None
        if path_imgrec and path_imgidx:
            self.imgrec = MXIndexedRecordIO(path_imgidx, path_imgrec, "r")
            self.imgidx = list(self.imgrec.keys)
        elif path_imgrec:
            self.imgrec = MXRecordIO(path_imgrec, "r")
        self.imglist: dict[Any, tuple[np.ndarray, str]] | None = None
        if path_imglist:
            self.imglist = listed_images(path_imglist, dtype)
        elif isinstance(imglist, list):
            self.imglist = {str(number): (self._label_of(row, dtype), row[-1]) for number, row in enumerate(imglist, 1)}
        self.seq = self._sequence(part_index, num_parts)
        self.num_image = None if self.seq is None else len(self.seq)
        self.auglist: Sequence[Any] = CreateAugmenter(data_shape, **kwargs) if aug_list is None else aug_list
        self.cur, self._key = 0, None
        self._kept: list[tuple[np.ndarray, np.ndarray]] = []  # samples that roll over to the next epoch
        self._ended = False
        self.reset()

    @staticmethod
    def _label_of(row: Sequence[Any], dtype: str) -> np.ndarray:
        label = row[:-1] if len(row) > 2 or isinstance(row[0], Number) else row[0]
        return np.array(label).astype(dtype)

    def _sequence(self, part: int, parts: int) -> list[Any] | None:
        """The keys of the images of a part, or None if the file is read in sequence."""
        if self.imgrec is not None and self.imgidx is None:
            if self.shuffle or parts > 1:
                raise ArgumentError("ImageIter: shuffle and num_parts need path_imgidx, the index of the records")
            return None
        keys = list(self.imglist or ()) if self.imgrec is None else list(self.imgidx or ())
        size = len(keys) // parts
        keys = keys[part * size:(part + 1) * size] if parts > 1 else keys
        if not keys:
            raise ArgumentError(f"ImageIter: there are no images in part {part} of {parts}")
        return keys

    def reset(self) -> None:
        """Start the next epoch, with the samples that roll over first."""
        if self.shuffle and self.seq is not None:
            random.shuffle(self.seq)
        self._rewind()
        self._ended = False

    def hard_reset(self) -> None:
        """Start the next epoch and drop the samples that would roll over."""
        self._kept = []
        self.reset()

    def _rewind(self) -> None:
        self.cur = 0
        if self.imgrec is not None:
            self.imgrec.reset()

    def next_sample(self) -> tuple[Any, bytes]:
        """Label and encoded image of the next sample.

        Raises
        ------
        StopIteration
            At the end.
        """
        if self.seq is None:
            record = self.imgrec.read()
            if record is None:
                raise StopIteration
            self._key = self.cur  # type: ignore[assignment]
            self.cur += 1
            header, image = unpack(record)
            return header.label, image
        if self.cur >= len(self.seq):
            raise StopIteration
        key = self._key = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is None:
            assert self.imglist is not None
            label, name = self.imglist[key]
            return label, self.read_image(name)
        header, image = unpack(self.imgrec.read_idx(key))
        if self.imglist is None:
            return header.label, image
        if key not in self.imglist:
            raise FileFormatError(f"ImageIter: the list of labels has no entry for image {key}")
        return self.imglist[key][0], image

    def _decode_samples(self, count: int) -> list[tuple[Any, NDArray]]:
        """Labels and decoded images of up to ``count`` next samples."""
        samples: list[tuple[Any, Any, bytes]] = []
        try:
            while len(samples) < count:
                label, data = self.next_sample()
                samples.append((self._key, label, data))
        except StopIteration:
            pass
        images: list[Any] = [None] * len(samples)

        def decode(number: int) -> None:
            key, _, data = samples[number]
            try:
                images[number] = self.imdecode(data)
            except FileFormatError as error:
                name = key if self.imglist is None else self.imglist.get(key, (None, key))[1]
                note(error, f"image {name} of {type(self).__name__}")
                raise

        parts = [functools.partial(decode, number) for number in range(len(samples))]
        if type(self).imdecode is ImageIter.imdecode:
            threads.run(parts)
        else:  # a user's method decodes, and may depend on the thread
            for part in parts:
                part()
        return [(label, image) for (_, label, _), image in zip(samples, images)]

    def _read_samples(self, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Images and labels of up to ``count`` next samples, in the batch's layout."""
        images: list[tuple[np.ndarray, np.ndarray]] = []
        while len(images) < count:
            samples = self._decode_samples(count - len(images))
            if not samples:
                break
            for label, image in samples:
                try:
                    images.append(self._prepare_sample(label, image))
                except OpError:
                    raise
                except RuntimeError as error:  # a subclass raises it to skip the sample
                    logging.debug("image left out: %s", error)
        return images

    def _prepare_sample(self, label: Any, image: NDArray) -> tuple[np.ndarray, np.ndarray]:
        """Label and image of a sample, in the batch's layout."""
        self.check_valid_image([image])
        pixels = self.postprocess_data(self.augmentation_transform(image)).asnumpy()
        numbers = label.asnumpy() if isinstance(label, NDArray) else np.asarray(label)
        shape = self.provide_label[0][1][1:]
        if pixels.shape != self.data_shape or numbers.size != np.prod(shape):
            raise ShapeError(f"image {self._key}: expected shape {self.data_shape} and {int(np.prod(shape))} labels, "
                             f"got {pixels.shape} and {numbers.size}")
        return pixels, numbers.reshape(shape)

    def next(self) -> DataBatch:
        if self._ended:
            raise StopIteration
        held_back, self._kept = self._kept, []
        rows = [*held_back, *self._read_samples(self.batch_size - len(held_back))]
        missing = self.batch_size - len(rows)
        if missing:
            if (not len(rows) - len(held_back) and not held_back) or self.last_batch_handle == "discard":
                self._ended = True
                raise StopIteration
            if self.last_batch_handle == "roll_over" and not held_back:
                self._kept, self._ended = rows, True
                raise StopIteration
            self._ended = True
            while len(rows) < self.batch_size:
                self._rewind()
                more = self._read_samples(self.batch_size - len(rows))
                rows += more or rows[:self.batch_size - len(rows)]
        data = np.empty(self.provide_data[0][1], np.float32)
        labels = np.empty(self.provide_label[0][1], np.float32)
        for number, (pixels, label) in enumerate(rows):
            data[number], labels[number] = pixels, label
        # The whole batch counts as padding if samples rolled over to it, as in MXNet.
        return DataBatch([array(data)], [array(labels)], pad=self.batch_size - len(held_back) if held_back else missing)

    def check_data_shape(self, data_shape: Sequence[int]) -> None:
        """Refuse a shape that is not (3, height, width)."""
        if len(data_shape) != 3 or data_shape[0] != 3:
            raise ShapeError(f"data_shape={tuple(data_shape)}: expected three channels, height and width")

    def check_valid_image(self, data: Sequence[NDArray]) -> None:
        """Refuse an invalid image; a ``RuntimeError`` skips it."""
        if not data[0].shape:
            raise RuntimeError("there is no image")

    def imdecode(self, s: bytes) -> NDArray:
        """Decode an image from bytes."""
        return imdecode(s)

    def read_image(self, fname: str) -> bytes:
        """The encoded image in a file."""
        with open_to_read(os.path.join(self.path_root or "", fname)) as file:
            return file.read()

    def augmentation_transform(self, data: NDArray) -> NDArray:
        """Apply the augmenters to an image."""
        for augmenter in self.auglist:
            data = augmenter(data)
        return data

    def postprocess_data(self, datum: NDArray) -> NDArray:
        """The image with the channels first."""
        return transpose(datum, axes=(2, 0, 1))
