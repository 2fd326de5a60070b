"""Files of images as MNIST has them, and an iterator over them."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from typing import Any, BinaryIO, cast

import numpy as np

from opreg.ndarray.ndarray import array

from ..core.files import INFLATED, reading
from ..core.spec import as_dtype, is_floating
from ..errors import ArgumentError, DTypeError, FileFormatError, ShapeError
from ..typing import DTypeLike
from .batches import SingleArrayIter, leave

__all__ = ["MNISTIter", "read_idx"]

_IDLE = ("ctx", "data_shape", "input_shape", "prefetch_buffer")

#: How many axes files have at most; those of MNIST have one or three.
_AXES = 4


def read_idx(path: str | os.PathLike) -> np.ndarray:
    """The bytes of a file in the format of MNIST, which may be compressed by gzip.

    Returns
    -------
    numpy.ndarray of uint8

    Raises
    ------
    FileFormatError
        It is of another kind, or has not the numbers that it says.
    """
    with reading(path) as file:
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
    """The bytes of a file that has no more than ``most``; no more are read, or unpacked, than its head announces."""
    head = file.read(4)
    if len(head) < 4 or head[:3] != b"\0\0\x08":
        raise FileFormatError(f"{path}: expected a file of bytes as MNIST has them")
    axes = head[3]
    numbers = file.read(4 * axes)
    if len(numbers) < 4 * axes:
        raise FileFormatError(f"{path}: ends in its head, which has {axes} axes")
    shape = struct.unpack(f">{axes}I", numbers)
    count = math.prod(shape)
    if axes > _AXES or count > most:
        raise FileFormatError(f"{path}: its head says shape {shape}, expected at most {_AXES} axes and {most} numbers")
    data = file.read(count + 1)  # with one more a packed file is read to its end, where its checksum is
    if len(data) != count:
        behind = f"only {len(data)}" if len(data) < count else "more"
        raise FileFormatError(f"{path}: its head says shape {shape}, behind it are {behind} bytes")
    try:
        return np.frombuffer(data, np.uint8).reshape(shape)
    except ValueError as error:  # no numbers, by more than NumPy counts
        raise FileFormatError(f"{path}: its head says shape {shape}: {error}") from None


class MNISTIter(SingleArrayIter):
    """Batches of gray images and their classes, out of files as MNIST has them; numbers are from 0 to 1.

    Samples that do not fill a batch are left out.

    Parameters
    ----------
    image, label : str
        File names; the files may be compressed by gzip.
    batch_size : int
        Images a batch.
    shuffle, seed : bool, int
        Whether images come in another order, the same in each round, and what decides it.
    flat : bool
        Whether an image is one row.
    num_parts, part_index : int
        Number of parts of the files, and which is read.
    data_name, label_name : str
        Names of images and classes.
    dtype : dtype
        That of images, of floating-point values.
    silent, prefetch_buffer, ctx, data_shape, input_shape
        Of MXNet's messages and threads, and what follows from the files, count for nothing.
    """

    def __init__(self, image: str | os.PathLike = "./train-images-idx3-ubyte",
                 label: str | os.PathLike = "./train-labels-idx1-ubyte", batch_size: int = 128, shuffle: bool = True,
                 flat: bool = False, seed: int = 0, silent: bool = False, num_parts: int = 1, part_index: int = 0,
                 data_name: str = "data", label_name: str = "softmax_label", dtype: DTypeLike = "float32",
                 **keywords: Any):
        leave("MNISTIter", [name for name in keywords if name not in _IDLE], ("shuffle", "batch_size", "flat", "seed"))
        if not 0 <= part_index < num_parts:
            raise ArgumentError(f"MNISTIter: part_index={part_index} of num_parts={num_parts}: expected one from 0 on")
        kind = as_dtype(dtype)
        if not is_floating(kind):
            raise DTypeError(f"MNISTIter: dtype={kind}: numbers from 0 to 1 need a dtype of floating numbers")
        images, classes = read_idx(image), read_idx(label)
        if images.ndim != 3 or classes.shape != images.shape[:1]:
            raise ShapeError(f"{image} has shape {images.shape} and {label} {classes.shape}: expected images and as "
                             "many classes")
        if num_parts > max(1, len(images)):
            raise ArgumentError(f"MNISTIter: num_parts={num_parts}, and there are {len(images)} images")
        start, end = (int(len(images) / num_parts * number) for number in (part_index, part_index + 1))
        if end - start < batch_size:
            raise ArgumentError(f"MNISTIter: batch_size={batch_size}, part {part_index} of {num_parts} has "
                                f"{end - start} images")
        rows = np.arange(start, end)
        if shuffle:
            rows = np.random.default_rng((4, seed & 0xFFFFFFFF)).permutation(rows)
        pixels = images[rows].astype(kind)
        pixels *= pixels.dtype.type(1 / 256)
        shape = (-1,) if flat else (1, *images.shape[1:])
        super().__init__(array(pixels.reshape(len(rows), *shape), dtype=pixels.dtype),
                         array(classes[rows].astype(np.float32)), batch_size, False, "discard", data_name, label_name)
