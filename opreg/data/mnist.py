"""Files in the format of MNIST, and an iterator over them."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import numpy as np

from opreg.ndarray.ndarray import array

from ..core.files import INFLATED, open_to_read
from ..core.spec import as_dtype, is_floating
from ..errors import ArgumentError, DTypeError, FileFormatError, ShapeError
from ..typing import DTypeLike
from .batches import SingleArrayIter, leave

__all__ = ["MNISTIter", "read_idx"]

_IDLE = ("ctx", "data_shape", "input_shape", "prefetch_buffer")

#: Largest number of axes of a file; those of MNIST have one or three.
_AXES = 4


def read_idx(path: str | os.PathLike) -> np.ndarray:
    """The array of bytes in a file in the format of MNIST, optionally compressed by gzip.

    Returns
    -------
    numpy.ndarray of uint8

    Raises
    ------
    FileFormatError
        If the file has another format, or not as many bytes as its header states.
    """
    with open_to_read(path) as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(0)
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        try:
            if packed:
                return _read(path, cast(BinaryIO, gzip.GzipFile(fileobj=file)), length * INFLATED)
            return _read(path, file, length)
        except (OSError, EOFError, zlib.error) as error:
            raise FileFormatError(f"{path}: damaged: {error}") from None


def _read(path: str | os.PathLike, file: BinaryIO, most: int) -> np.ndarray:
    """The content of a file of at most ``most`` bytes; no more than its header announces is read or unpacked."""
    head = file.read(4)
    if len(head) < 4 or head[:3] != b"\0\0\x08":
        raise FileFormatError(f"{path}: expected a file in the format of MNIST")
    axes = head[3]
    numbers = file.read(4 * axes)
    if len(numbers) < 4 * axes:
        raise FileFormatError(f"{path}: ends within its header, which has {axes} axes")
    shape = struct.unpack(f">{axes}I", numbers)
    count = math.prod(shape)
    if axes > _AXES or count > most:
        raise FileFormatError(f"{path}: its header gives shape {shape}, expected at most {_AXES} axes and {most} "
                              "numbers")
    data = file.read(count + 1)  # reading past the data checks the checksum of a compressed file
    if len(data) != count:
        behind = f"only {len(data)}" if len(data) < count else "more"
        raise FileFormatError(f"{path}: its header gives shape {shape}, but {behind} bytes follow")
    try:
        return np.frombuffer(data, np.uint8).reshape(shape)
    except ValueError as error:  # an empty array whose other lengths exceed NumPy's limit
        raise FileFormatError(f"{path}: its header gives shape {shape}: {error}") from None


def _bits(seed: int) -> Iterator[int]:
    """Numbers of 32 random bits from a Mersenne Twister with this seed."""
    random = np.random.RandomState(seed & 0xFFFFFFFF)
    while True:
        yield from np.frombuffer(random.bytes(4096), "<u4").tolist()


def _shuffle(count: int, seed: int) -> list[int]:
    """The numbers below ``count`` in MXNet's order for a seed. From the second on, each number is swapped with the one
    at a random position up to its own.

    The position is a random number of 32 bits divided by the size of equal parts of its range. A number above the last
    of the equal parts is drawn again.
    """
    bits, order = _bits(seed), list(range(count))
    for last in range(1, count):
        part = 0xFFFFFFFF // (last + 1)
        place = next(bits) // part
        while place > last:
            place = next(bits) // part
        order[last], order[place] = order[place], order[last]
    return order


class MNISTIter(SingleArrayIter):
    """Iterates over batches of gray images and their classes from files in the format of MNIST; pixels are in [0, 1].

    Samples that do not fill a batch are dropped.

    Parameters
    ----------
    image, label : str
        File names; the files may be compressed by gzip. They are read once, when the iterator is made.
    batch_size : int
        Batch size.
    shuffle, seed : bool, int
        Whether to shuffle the images, once for all epochs, and the seed. The order is MXNet's for this seed.
    flat : bool
        Whether to flatten the images.
    num_parts, part_index : int
        Number of parts of the files, and the index of the part to read.
    data_name, label_name : str
        Names of images and classes.
    dtype : dtype
        Dtype of the images, floating.
    silent, prefetch_buffer, ctx, data_shape, input_shape
        Ignored: they concern MXNet's messages and threads, or are known from the files.
    """

    def __init__(self, image: str | os.PathLike = "./train-images-idx3-ubyte",
                 label: str | os.PathLike = "./train-labels-idx1-ubyte", batch_size: int = 128, shuffle: bool = True,
                 flat: bool = False, seed: int = 0, silent: bool = False, num_parts: int = 1, part_index: int = 0,
                 data_name: str = "data", label_name: str = "softmax_label", dtype: DTypeLike = "float32",
                 **keywords: Any):
        leave("MNISTIter", [name for name in keywords if name not in _IDLE], ("shuffle", "batch_size", "flat", "seed"))
        if not 0 <= part_index < num_parts:
            raise ArgumentError(f"MNISTIter: part_index={part_index} of num_parts={num_parts}: expected an integer "
                                "from 0 on that is less than the number of parts")
        kind = as_dtype(dtype)
        if not is_floating(kind):
            raise DTypeError(f"MNISTIter: dtype={kind}: values from 0 to 1 need a floating dtype")
        images, classes = read_idx(image), read_idx(label)
        if images.ndim != 3 or classes.shape != images.shape[:1]:
            raise ShapeError(f"{image} has shape {images.shape} and {label} {classes.shape}: expected images and "
                             f"equally many classes")
        if num_parts > max(1, len(images)):
            raise ArgumentError(f"MNISTIter: num_parts={num_parts}, and there are {len(images)} images")
        start, end = (int(len(images) / num_parts * number) for number in (part_index, part_index + 1))
        if end - start < batch_size:
            raise ArgumentError(f"MNISTIter: batch_size={batch_size}, part {part_index} of {num_parts} has "
                                f"{end - start} images")
        rows = np.arange(start, end)
        if shuffle:
            rows = rows[_shuffle(len(rows), seed)]
        pixels = images[rows].astype(kind)
        pixels *= pixels.dtype.type(1 / 256)
        shape = (-1,) if flat else (1, *images.shape[1:])
        super().__init__(array(pixels.reshape(len(rows), *shape), dtype=pixels.dtype),
                         array(classes[rows].astype(np.float32)), batch_size, False, "discard", data_name, label_name)
