"""Iterators over images in record files, read, decoded and augmented in the background on all processors."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, Generic, TypeVar

import numpy as np

from opreg.ndarray import NDArray, cpu
from opreg.ndarray import load as load_arrays
from opreg.ndarray import save as save_arrays

from ..core import threads
from ..core.settings import whole_number
from ..core.spec import Shape, as_dtype
from ..errors import ArgumentError, FileFormatError, ShapeError, did_you_mean, note
from ..typing import DTypeLike
from . import codec
from .batches import DataBatch, DataDesc, DataIter, PrefetchedResults, leave
from .image_iter import listed_images
from .record_augment import Augmentation, Pixels
from .record_det_augment import DetAugmentation
from .recordio import MXIndexedRecordIO, _Reader, unpack

__all__ = ["MXDataIter", "ImageRecordIter", "ImageRecordIter_v1", "ImageRecordUInt8Iter", "ImageRecordUInt8Iter_v1",
           "ImageRecordInt8Iter", "ImageDetRecordIter"]

A = TypeVar("A", Augmentation, DetAugmentation)


class MXDataIter(DataIter):
    """Iterates over batches of one array of data and one of labels, from files."""

    _batch: DataBatch | None = None

    def iter_next(self) -> bool:
        try:
            self._batch = self.next()
        except StopIteration:
            return False
        return True

    def _current(self) -> DataBatch:
        if self._batch is None:
            raise ArgumentError(f"{type(self).__name__}: there is no batch yet: call iter_next first")
        return self._batch

    def getdata(self) -> NDArray:
        """The data of this batch, as one array."""
        return self._current().data[0]

    def getlabel(self) -> NDArray:
        """The labels of this batch, as one array."""
        labels = self._current().label
        assert labels is not None
        return labels[0]

    def getpad(self) -> int | None:
        return self._current().pad

    def getindex(self) -> np.ndarray | None:
        return self._current().index


def _record_starts(path: str, index: str | None, part: int, parts: int) -> np.ndarray:
    """Offsets of the records of a part: parts have equal numbers of records with an index, of bytes without one."""
    if not 0 <= part < parts:
        raise ArgumentError(f"part_index={part} of num_parts={parts}: expected an integer from 0 to before the number "
                            f"of parts")
    reader = _Reader(path)
    try:
        if index:
            file = MXIndexedRecordIO(index, path, "r")
            file.close()
            places = np.array(sorted(file.idx.values()), np.int64)
            size = -(-len(places) // parts)
            return places[part * size:(part + 1) * size]
        places = np.fromiter(reader.starts(), np.int64)
        size = -(-reader.size // parts)
        size += -size % 4
        return places[(places >= part * size) & (places < (part + 1) * size)]
    finally:
        reader.close()


class _Samples:
    """The samples of a part of a file, batch by batch. The background thread holds it instead of the iterator."""

    def __init__(self, path: str, starts: np.ndarray, batch_size: int, round_batch: bool, order: Any,
                 make_sample: Callable[..., Any], skip: bool):
        self.reader, self.starts, self.batch_size = _Reader(path), starts, batch_size
        self.round_batch, self.order, self.made, self.skip = round_batch, order, make_sample, skip
        self.epoch, self.skipped = -1, 0
        self.begin(0)

    def begin(self, first: int) -> None:
        """Start the next epoch, at the given row."""
        self.epoch += 1
        self.place, self.ended, self.filled = first, False, 0
        self.rows = self.order(self.epoch)

    def batch(self) -> tuple[Any, int, bool]:
        """The samples of the next batch, the number of those that are padding, and whether it is the last of the
        epoch."""
        if self.ended:
            raise StopIteration
        samples: list[Any] = []
        self.place = self._more(samples, self.rows, self.place, self.epoch)
        if not samples:
            self.ended = True
            raise StopIteration
        missing = self.batch_size - len(samples)
        self.ended = missing > 0 or self.place == len(self.rows)
        if missing and self.round_batch:
            following = self.order(self.epoch + 1)
            while len(samples) < self.batch_size:
                before, begin = len(samples), self.filled % len(following)
                self.filled = self._more(samples, following, begin, self.epoch + 1)
                if len(samples) == before and begin == 0:
                    raise FileFormatError(f"{self.reader.name}: there are not enough records to fill the batch")
        return samples, missing, self.ended

    def _more(self, samples: list[Any], rows: np.ndarray, place: int, number: int) -> int:
        """Add samples until the batch is full or the rows end; return the row after the last."""
        while len(samples) < self.batch_size and place < len(rows):
            batch_rows = rows[place:place + self.batch_size - len(samples)]
            decoded: list[Any] = [None] * len(batch_rows)
            parts = [part for i, row in enumerate(batch_rows)
                     if (part := self._read_sample(decoded, i, int(row), (number, place + i))) is not None]
            threads.run(parts)
            good = [sample for sample in decoded if sample is not None]
            self.skipped += len(batch_rows) - len(good)
            samples += good
            place += len(batch_rows)
        return place

    def _read_sample(self, decoded: list[Any], i: int, row: int, drawn: tuple[int, int]) -> Callable[[], None] | None:
        """Read a record; return a function that makes its sample, in any thread."""
        start = int(self.starts[row])
        try:
            self.reader.file.seek(start)
            record = self.reader.read()
            if record is None:
                raise FileFormatError(f"{self.reader.name}: there is no record at byte {start}")
        except FileFormatError:
            if self.skip:
                return None
            raise

        def work() -> None:
            try:
                decoded[i] = self.made(record, drawn)
            except FileFormatError as error:
                if not self.skip:
                    note(error, f"the record at byte {start} of {self.reader.name}")
                    raise

        return work


def _take_settings(kind: type[A], keywords: dict[str, Any]) -> A:
    """Take the settings out of the keywords."""
    settings: dict[str, Any] = {}
    for field in fields(kind):
        if field.name in keywords:
            value = keywords.pop(field.name)
            settings[field.name] = _flag(value) if field.type == "bool" else value
    return kind(**settings)


def _flag(value: Any) -> bool:
    return value.strip().lower() in ("true", "1") if isinstance(value, str) else bool(value)


class _RecordIter(MXDataIter, Generic[A]):
    """Base of the record iterators."""

    _kind: type[A]
    _dtype: DTypeLike = "float32"
    path: str
    data_shape: Shape
    _out: np.dtype
    _listed: dict[int, tuple[np.ndarray, str]] | None

    def __init__(self, *, path_imgrec: str | os.PathLike, data_shape: Sequence[int], batch_size: int,
                 path_imglist: str = "", path_imgidx: str = "", shuffle: bool = False, seed: int = 0,
                 seed_aug: int | None = None, num_parts: int = 1, part_index: int = 0, round_batch: bool = True,
                 prefetch_buffer: int = 4, dtype: DTypeLike | None = None, mean_img: str = "", mean_r: float = 0.0,
                 mean_g: float = 0.0, mean_b: float = 0.0, mean_a: float = 0.0, std_r: float = 1.0, std_g: float = 1.0,
                 std_b: float = 1.0, std_a: float = 1.0, scale: float = 1.0, data_name: str = "data",
                 label_name: str = "softmax_label", damaged: str = "refuse", **keywords: Any):
        super().__init__(batch_size)
        what = type(self).__name__
        shape: Shape = tuple(int(length) for length in data_shape)
        if len(shape) != 3 or shape[0] not in (1, 3, 4) or min(shape) < 1:
            raise ShapeError(f"{what}: data_shape={shape}: expected one, three or four channels, height and width")
        batch_size = self.batch_size = whole_number(f"{type(self).__name__}: batch_size", batch_size, 1)
        if damaged not in ("refuse", "skip"):
            raise ArgumentError(f"there is no damaged {damaged!r}. {did_you_mean(damaged, ('refuse', 'skip'))}")
        self.path, self.data_shape = os.fspath(path_imgrec), shape
        self._out = as_dtype(self._dtype if dtype is None else dtype)
        self._listed = listed_images(path_imglist) if path_imglist else None
        keywords["data_shape"] = shape
        self._augment: A = _take_settings(self._kind, keywords)
        self._own_settings(keywords)
        leave(what, [name for name in keywords if name not in _IDLE],
              [*vars(self._augment), *_SETTINGS, *_IDLE])
        self._seed, self._seed_aug, self._depth = int(seed), seed_aug, int(prefetch_buffer)
        starts = _record_starts(self.path, path_imgidx, part_index, num_parts)
        if not len(starts):
            raise FileFormatError(f"{self.path}: there are no records in part {part_index} of {num_parts}")
        self._scan(starts)
        order = functools.partial(_order, len(starts), _flag(shuffle), self._seed)
        source = functools.partial(_Samples, self.path, starts, batch_size, _flag(round_batch), order)
        self._norm = _Normalization(shape[0], (mean_r, mean_g, mean_b, mean_a), (std_r, std_g, std_b, std_a), scale,
                                    self._out)
        if mean_img and self._out != np.uint8:
            if not os.path.exists(mean_img):
                _write_mean(mean_img, source, self._maker(), shape, damaged == "skip")
            self._norm.subtract(mean_img, shape)
        self._samples = source(self._maker(), damaged == "skip")
        self._labels = self._label_shape()
        self.provide_data = [DataDesc(data_name, (batch_size, *shape), self._out)]
        self.provide_label = [DataDesc(label_name, (batch_size, *self._labels), np.float32)]
        self._begin()

    # Differences between kinds of records.

    def _own_settings(self, keywords: dict[str, Any]) -> None:
        """Take the settings of this kind out of the keywords."""

    def _scan(self, starts: np.ndarray) -> None:
        """Read all records once, if needed."""

    def _label_shape(self) -> Shape:
        raise NotImplementedError

    def _maker(self) -> Callable[..., Any]:
        """A function that makes a sample from a record; it must not refer to this iterator."""
        raise NotImplementedError

    # The rest is the same for all kinds of iterators.

    @property
    def skipped(self) -> int:
        """Number of damaged records left out so far."""
        return self._samples.skipped

    def _begin(self) -> None:
        self._ahead = PrefetchedResults(functools.partial(_made_batch, self._samples, self._norm, self.data_shape,
                                                          self._labels),
                                        self._depth)
        self._complete = False
        self._waiting = [self._ahead.get()]  # errors in keywords or in the first records are raised here

    def reset(self) -> None:
        """Start the next epoch; after a complete one it begins after the rows that filled its last batch."""
        self._ahead.close()
        self._samples.begin(self._samples.filled % len(self._samples.starts) if self._complete else 0)
        self._begin()

    def next(self) -> DataBatch:
        data, label, pad, index, last = self._waiting.pop() if self._waiting else self._ahead.get()
        self._complete = self._complete or last
        return DataBatch([NDArray(data, cpu())], [NDArray(label, cpu())], pad, index)


#: Keywords about MXNet's threads, buffers and messages, ignored here: all processors decode.
_IDLE = ("aug_seq", "ctx", "device_id", "preprocess_threads", "shuffle_chunk_seed", "shuffle_chunk_size", "verbose")

#: Keywords that do not concern augmentation, for messages.
_SETTINGS = ("path_imgrec", "path_imgidx", "path_imglist", "batch_size", "shuffle", "seed", "seed_aug", "num_parts",
             "part_index", "round_batch", "prefetch_buffer", "dtype", "mean_img", "mean_r", "mean_g", "mean_b", "std_r",
             "std_g", "std_b", "scale", "data_name", "label_name", "label_width", "mirror", "rand_mirror", "damaged",
             "label_pad_width", "label_pad_value", "max_random_contrast", "max_random_illumination")


def _order(count: int, shuffle: bool, seed: int, number: int) -> np.ndarray:
    """The order of the rows in an epoch."""
    return np.random.default_rng((1, seed & 0xFFFFFFFF, number)).permutation(count) if shuffle else np.arange(count)


class _Normalization:
    """Normalization of bytes: a mean is subtracted, then multiplied by a factor."""

    def __init__(self, channels: int, mean: Sequence[float], std: Sequence[float], scale: float, dtype: np.dtype):
        self.dtype = dtype
        plain = dtype == np.uint8
        self.mean: Any = None if plain or not any(mean) else np.array(mean[:channels], np.float32)[:, None, None]
        factor = scale / np.array([deviation or 1.0 for deviation in std[:channels]], np.float32)
        self.factor: Any = None if plain or (factor == 1).all() or dtype == np.int8 else factor[:, None, None]

    def subtract(self, path: str, shape: Shape) -> None:
        """Read the mean image from a file."""
        arrays = load_arrays(path)
        arrays = list(arrays.values()) if isinstance(arrays, Mapping) else arrays
        if len(arrays) != 1 or arrays[0].shape != shape:
            raise FileFormatError(f"{path}: expected one array of shape {shape}, got "
                                  f"{[array.shape for array in arrays]}")
        self.mean = arrays[0].asnumpy().astype(np.float32)

    def __call__(self, image: Pixels, contrast: float, light: float, out: np.ndarray) -> None:
        """Write a normalized image (channels last) into ``out`` (channels first)."""
        x: Any = image.transpose(2, 0, 1)
        if self.dtype == np.int8:
            out[...] = np.clip(x - np.rint(0 if self.mean is None else self.mean), -128, 127)
            return
        room: Any = {"out": out} if out.dtype == np.float32 else {}
        if self.mean is not None:
            x = np.subtract(x, self.mean, dtype=np.float32, **room)
        factor = contrast if self.factor is None else self.factor * np.float32(contrast)
        if contrast != 1 or self.factor is not None:
            x = np.multiply(x, factor, dtype=np.float32, **room)
        if light:
            x = np.add(x, light * (1 if self.factor is None else self.factor), dtype=np.float32, **room)
        if x is not out:
            out[...] = x


#: An image, its label and index, and its contrast and illumination.
_Sample = tuple[Pixels, np.ndarray, int, float, float]


def _made_batch(samples: _Samples, norm: _Normalization, shape: Shape, labels: Shape
                ) -> tuple[Any, Any, int, Any, bool]:
    """The arrays of a batch."""
    rows, pad, last = samples.batch()
    count = samples.batch_size
    same_shapes = len(rows) == count and all(row[0].shape == (*shape[1:], shape[0]) for row in rows)
    data = (np.empty if same_shapes else np.zeros)((count, *shape), norm.dtype)
    label, index = np.zeros((count, *labels), np.float32), np.zeros(count, np.uint64)

    def place(i: int) -> None:
        image, numbers, index[i], contrast, light = rows[i]
        norm(image, contrast, light, data[i, :, :image.shape[0], :image.shape[1]])
        label[i] = numbers.reshape(labels)

    threads.run([functools.partial(place, i) for i in range(len(rows))])
    return data, label, pad, index, last


def _write_mean(path: str, source: Callable[..., _Samples], maker: Callable[..., Any], shape: Shape, skip: bool
                ) -> None:
    """Compute the mean image over one epoch and write it to a file."""
    samples = source(maker, skip)
    samples.round_batch = False
    total, count = np.zeros(shape, np.float64), 0
    while not samples.ended:
        rows, _, _ = samples.batch()
        for row in rows:
            total += row[0].transpose(2, 0, 1)
        count += len(rows)
    save_arrays(path, {"mean_img": NDArray((total / count).astype(np.float32), cpu())})


def _image_of(data: bytes, channels: int) -> Pixels:
    flag = {1: codec.GRAY, 3: codec.COLOR, 4: codec.UNCHANGED}[channels]
    image = codec.decode(data, flag)
    if image.shape[2] != channels:
        raise FileFormatError(f"expected an image of {channels} channels, got {image.shape[2]}")
    return image


class _Draws:
    """The random generators of samples: each depends only on seed, epoch and position."""

    def __init__(self, seed: int, seed_aug: int | None):
        self.first = (2, seed & 0xFFFFFFFF) if seed_aug is None else (3, seed_aug & 0xFFFFFFFF)
        self.each_epoch = seed_aug is None

    def __call__(self, drawn: tuple[int, int]) -> np.random.Generator:
        return np.random.default_rng((*self.first, *(drawn if self.each_epoch else drawn[1:])))


class ImageRecordIter(_RecordIter[Augmentation]):
    """Iterates over batches of images from a record file.

    A background thread reads ahead; all processors decode and augment. Random values depend on the seed, the epoch and
    the position of an image in it, not on the number of threads.

    Parameters
    ----------
    path_imgrec, path_imgidx : str
        The record file and, optionally, its index.
    data_shape : tuple of int
        Channels, height and width of the images.
    batch_size : int
        Batch size.
    label_width : int
        Number of elements in a label.
    path_imglist : str
        A list of labels by index, which replace those in the records.
    shuffle, seed : bool, int
        Whether to shuffle the images in each epoch, and the seed.
    seed_aug : int
        Seed of the augmentation, which is then the same in each epoch.
    num_parts, part_index : int
        Number of parts of the file, and the index of the part to read.
    round_batch : bool
        Whether the last batch is filled with the first images of the next epoch, which starts after them; else with
        zeros.
    dtype : dtype
        Dtype of the images.
    resize, rand_crop, random_resized_crop, max_rotate_angle, rotate, max_aspect_ratio, min_aspect_ratio,
    max_shear_ratio, max_crop_size, min_crop_size, max_random_scale, min_random_scale, max_random_area,
    min_random_area, max_img_size, min_img_size, brightness, contrast, saturation, pca_noise, random_h, random_s,
    random_l, fill_value, inter_method, pad
        Augmentation of an image: MXNet's keywords.
    mirror, rand_mirror : bool
        Whether to mirror all images; whether to mirror each with probability 0.5.
    mean_img, mean_r, mean_g, mean_b, mean_a, std_r, std_g, std_b, std_a, scale
        Means to subtract, standard deviations to divide by, and a factor. The file ``mean_img`` is computed if it does
        not exist.
    max_random_contrast, max_random_illumination : float
        Largest random change of the factor, and largest random addition, after that.
    damaged : {"refuse", "skip"}
        Treatment of damaged records and images: an error, or they are skipped and counted by ``skipped``.
    """

    _kind = Augmentation

    def __init__(self, *, path_imgrec: str | os.PathLike, data_shape: Sequence[int], batch_size: int, **keywords: Any):
        super().__init__(path_imgrec=path_imgrec, data_shape=data_shape, batch_size=batch_size, **keywords)

    def _own_settings(self, keywords: dict[str, Any]) -> None:
        self._width = int(keywords.pop("label_width", 1))
        self._mirror = (_flag(keywords.pop("mirror", False)), _flag(keywords.pop("rand_mirror", False)))
        self._light = (float(keywords.pop("max_random_contrast", 0)), float(keywords.pop("max_random_illumination", 0)))

    def _label_shape(self) -> Shape:
        return (self._width,) if self._width > 1 else ()

    def _maker(self) -> Callable[..., _Sample]:
        return functools.partial(_labelled_sample, self._augment, self._listed, self._width, self._mirror, self._light,
                                 _Draws(self._seed, self._seed_aug))


def _labelled_sample(augment: Augmentation, listed: Mapping[int, tuple[np.ndarray, str]] | None, width: int,
                     mirror: tuple[bool, bool], most: tuple[float, float], draws: _Draws, record: bytes,
                     drawn: tuple[int, int]) -> _Sample:
    """A sample from a record: an image and its label."""
    header, data = unpack(record)
    label = _label_of(listed, header)
    if label.size != width:
        raise ShapeError(f"image {header.id}: label_width={width}, its label has {label.size} numbers")
    image = _image_of(data, augment.data_shape[0])
    always, often = mirror
    contrast, light = 1.0, 0.0
    rng: Any = draws(drawn) if augment.is_random or often or any(most) else None
    image = augment(image, rng or _NOTHING_DRAWN)
    if always or (often and rng.random() < 0.5):
        image = image[:, ::-1]
    if any(most):
        contrast, light = 1 + rng.uniform(-most[0], most[0]), rng.uniform(-most[1], most[1])
    return image, label, header.id, contrast, light


#: A generator for augmentations whose two bounds are equal: the numbers drawn from it do not matter.
_NOTHING_DRAWN = np.random.default_rng(0)


def _label_of(listed: Mapping[int, tuple[np.ndarray, str]] | None, header: Any) -> np.ndarray:
    if listed is None:
        return np.atleast_1d(np.asarray(header.label, np.float32))
    if header.id not in listed:
        raise FileFormatError(f"the list of labels has no entry for image {header.id}")
    return listed[header.id][0]


class ImageRecordIter_v1(ImageRecordIter):
    """`ImageRecordIter` under MXNet's older name."""


class ImageRecordUInt8Iter(ImageRecordIter):
    """`ImageRecordIter` with unnormalized bytes."""

    _dtype = "uint8"


class ImageRecordUInt8Iter_v1(ImageRecordUInt8Iter):
    """`ImageRecordUInt8Iter` under MXNet's older name."""


class ImageRecordInt8Iter(ImageRecordIter):
    """`ImageRecordIter` with bytes minus a mean, in [-128, 127]."""

    _dtype = "int8"


class ImageDetRecordIter(_RecordIter[DetAugmentation]):
    """Iterates over batches of images with boxes from a record file; see `ImageRecordIter` for the common parameters.

    A label in a batch holds the channels, height and width of the image, the number of elements that follow, and these
    elements: the record's header and boxes, transformed with the image. It is padded with ``label_pad_value``.

    Parameters
    ----------
    path_imgrec, path_imglist, path_imgidx, data_shape, batch_size, shuffle, seed, num_parts, part_index, round_batch,
    dtype, mean_img, mean_r, mean_g, mean_b, mean_a, std_r, std_g, std_b, std_a, scale, damaged
        See `ImageRecordIter`.
    label_width : int
        Number of elements in a record's label; -1 for any.
    label_pad_width : int
        Smallest number of elements in a batch's labels; the longest label may enlarge it.
    label_pad_value : float
        Value of the padding.
    resize, rand_crop_prob, min_crop_scales, max_crop_scales, min_crop_aspect_ratios, max_crop_aspect_ratios,
    min_crop_overlaps, max_crop_overlaps, min_crop_sample_coverages, max_crop_sample_coverages,
    min_crop_object_coverages, max_crop_object_coverages, num_crop_sampler, crop_emit_mode, emit_overlap_thresh,
    max_crop_trials, rand_pad_prob, max_pad_scale, max_random_hue, random_hue_prob, max_random_saturation,
    random_saturation_prob, max_random_illumination, random_illumination_prob, max_random_contrast,
    random_contrast_prob, rand_mirror_prob, fill_value, inter_method, resize_mode
        Augmentation of an image and its boxes: MXNet's keywords.
    """

    _kind = DetAugmentation

    def __init__(self, *, path_imgrec: str | os.PathLike, data_shape: Sequence[int], batch_size: int, **keywords: Any):
        super().__init__(path_imgrec=path_imgrec, data_shape=data_shape, batch_size=batch_size, **keywords)

    def _own_settings(self, keywords: dict[str, Any]) -> None:
        self._width = int(keywords.pop("label_width", -1))
        self._label_length = int(keywords.pop("label_pad_width", 0))
        self._fill = float(keywords.pop("label_pad_value", -1.0))

    def _scan(self, starts: np.ndarray) -> None:
        """Find the longest label."""
        if self._listed is not None:
            longest = max((len(label) for label, _ in self._listed.values()), default=0)
        else:
            longest = max(_label_lengths(self.path, starts), default=0)
        if 0 < self._label_length < longest:
            raise ArgumentError(f"label_pad_width={self._label_length}: {self.path} has a label of {longest} numbers")
        self._label_length = max(self._label_length, longest)

    def _label_shape(self) -> Shape:
        return (self._label_length + 4,)

    def _maker(self) -> Callable[..., _Sample]:
        return functools.partial(_boxed_sample, self._augment, self._listed, self._width, self._label_length,
                                 self._fill,
                                 _Draws(self._seed, self._seed_aug))


def _label_lengths(path: str, starts: np.ndarray) -> Iterable[int]:
    """The lengths of the labels of the records, without damaged ones."""
    reader = _Reader(path)
    try:
        for start in starts:
            reader.file.seek(int(start))
            with suppress(FileFormatError):
                header, _ = unpack(reader.read() or b"")
                yield header.flag
    finally:
        reader.close()


def _boxed_sample(augment: DetAugmentation, listed: Mapping[int, tuple[np.ndarray, str]] | None, width: int, room: int,
                  fill: float, draws: _Draws, record: bytes, drawn: tuple[int, int]) -> _Sample:
    """A sample from a record: an image and its boxes."""
    header, data = unpack(record)
    label = _label_of(listed, header)
    if width > 0 and label.size != width:
        raise ShapeError(f"image {header.id}: label_width={width}, its label has {label.size} numbers")
    image = _image_of(data, augment.data_shape[0])
    image, label = augment(image, label, draws(drawn) if augment.is_random else _NOTHING_DRAWN)
    numbers = np.full(room + 4, fill, np.float32)
    numbers[:4] = image.shape[2], image.shape[0], image.shape[1], len(label)
    numbers[4:4 + len(label)] = label
    return image, numbers, header.id, 1.0, 0.0
