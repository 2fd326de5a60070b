"""Files that examples and tests of MXNet download, taken from a local folder if they exist there.

A file is searched for at its target, in the current folder, in its ``data``, and in ``MXNET_HOME`` (by default
``~/.mxnet``), its ``datasets`` and folders in there. If it is in none of them it is downloaded; without a connection
the error tells where to put the file.
"""

from __future__ import annotations

import bz2
import gzip
import os
import pickle
import shutil
import struct
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from opreg.base import data_dir

from ..core.files import INFLATED, atomic_write, open_to_read
from ..core.named_errors import name_errors
from ..data.batches import NDArrayIter
from ..data.mnist import read_idx
from ..errors import FileFormatError, OpError

__all__ = ["download", "find_data_file", "get_mnist", "get_mnist_ubyte", "get_mnist_iterator", "get_mnist_pkl",
           "get_cifar10", "get_zip_data", "get_bz2_data"]

_MNIST = "http://data.mxnet.io/data/mnist/"
_SECONDS = 30

#: Exceptions that unpacking a damaged zip file raises.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, struct.error)


def _places() -> list[Path]:
    home = Path(data_dir())
    inner = sorted(path for path in (home / "datasets").glob("*") if path.is_dir())
    return [Path(), Path("data"), home, home / "datasets", *inner]


def find_data_file(name: str) -> Path | None:
    """The file of that name in the first of these folders that has one."""
    return next((place / name for place in _places() if (place / name).is_file()), None)


def download(url: str, fname: str | None = None, dirname: str | None = None, overwrite: bool = False, retries: int = 5
             ) -> str:
    """Download a file, unless it exists; returns its path.

    Parameters
    ----------
    url : str
        An address, or a path.
    fname, dirname : str or None
        Name and folder of the file; by default the name in the address.
    overwrite : bool
        Whether to download it even if it exists.
    retries : int
        Number of attempts.

    Raises
    ------
    OpError
        When the file is missing; the message tells where to put it.
    """
    split = urllib.parse.urlsplit(url)
    name = fname or os.path.basename(split.path)
    target = Path(dirname or "", name)
    if target.is_file() and not overwrite:
        return str(target)
    local = Path(urllib.request.url2pathname(split.path)) if split.scheme in ("", "file") else \
        None if overwrite else find_data_file(os.path.basename(name))
    target.parent.mkdir(parents=True, exist_ok=True)
    if local is not None:
        with open_to_read(local) as source, atomic_write(target) as file:
            shutil.copyfileobj(source, file)
        return str(target)
    for retries_left in reversed(range(max(1, retries))):
        try:
            with urllib.request.urlopen(url, timeout=_SECONDS) as source, atomic_write(target) as file:
                shutil.copyfileobj(source, file)
            return str(target)
        except OSError as error:
            if retries_left == 0:
                raise OpError(f"download: {url} cannot be fetched ({error}). Where this machine is offline, put a file "
                              f"{name!r} into {str(target.parent.resolve())!r} or {data_dir()!r}") from None
    raise AssertionError


def _mnist(name: str) -> np.ndarray:
    packed = find_data_file(name) or find_data_file(f"{name}.gz") or \
        download(f"{_MNIST}{name}.gz", dirname=os.path.join(data_dir(), "datasets", "mnist"))
    return read_idx(packed)


def get_mnist() -> dict[str, np.ndarray]:
    """The digits of MNIST: ``train_data`` and ``test_data`` of shape (n, 1, 28, 28) from 0 to 1, and their labels."""
    arrays = {}
    for what, prefix in (("train", "train"), ("test", "t10k")):
        images, labels = _mnist(f"{prefix}-images-idx3-ubyte"), _mnist(f"{prefix}-labels-idx1-ubyte")
        arrays[f"{what}_data"] = images[:, None].astype(np.float32) / 255
        arrays[f"{what}_label"] = labels.astype(np.int8)
    return arrays


def get_mnist_ubyte() -> None:
    """Put MNIST's four files, decompressed, into the folder ``data``."""
    for prefix in ("train", "t10k"):
        for name in (f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"):
            target = Path("data", name)
            if target.is_file():
                continue
            array = _mnist(name)
            target.parent.mkdir(exist_ok=True)
            with atomic_write(target) as file:
                file.write(bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
                           + array.tobytes())


def get_mnist_iterator(batch_size: int, input_shape: Sequence[int], num_parts: int = 1, part_index: int = 0
                       ) -> tuple[NDArrayIter, NDArrayIter]:
    """Shuffled training batches and validation batches of MNIST: images of a shape, or flat vectors."""
    mnist, batches = get_mnist(), []
    for what in ("train", "test"):
        images, labels = mnist[f"{what}_data"], mnist[f"{what}_label"].astype(np.float32)
        share = slice(part_index * len(labels) // num_parts, (part_index + 1) * len(labels) // num_parts)
        images = images.reshape(len(images), *((-1,) if len(input_shape) == 1 else input_shape))
        batches.append(NDArrayIter(images[share], labels[share], batch_size, shuffle=what == "train",
                                   last_batch_handle="discard"))
    return batches[0], batches[1]


def get_mnist_pkl() -> None:
    """Put MNIST into ``data/mnist.pkl.gz``: three pairs of images, flat and from 0 to 1, and labels."""
    target = Path("data", "mnist.pkl.gz")
    if target.is_file():
        return
    mnist = get_mnist()
    train, test = [(mnist[f"{what}_data"].reshape(-1, 784), mnist[f"{what}_label"].astype(np.int64))
                   for what in ("train", "test")]
    cut = len(train[1]) * 5 // 6
    pairs = (train[0][:cut], train[1][:cut]), (train[0][cut:], train[1][cut:]), test
    target.parent.mkdir(exist_ok=True)
    with atomic_write(target) as file:
        file.write(gzip.compress(pickle.dumps(pairs, protocol=2)))


def get_zip_data(data_dir: str, url: str, data_origin_name: str) -> None:
    """Download a zip file into a folder, and unpack it there."""
    name = download(url, data_origin_name, data_dir)
    try:
        with open_to_read(name) as file, zipfile.ZipFile(file) as packed:
            size = sum(member.file_size for member in packed.infolist())
            if size > INFLATED * os.path.getsize(name):
                raise FileFormatError(f"{name}: {size} unpacked bytes are impossible for a file of "
                                      f"{os.path.getsize(name)}")
            packed.extractall(data_dir)
    except OpError:
        raise
    except _DAMAGED as error:
        raise FileFormatError(f"{name}: a damaged zip file: {error}") from None


def get_bz2_data(data_dir: str, data_name: str, url: str, data_origin_name: str) -> None:
    """Download a file packed with bzip2 into a folder, and unpack it there under a name."""
    target = Path(data_dir, data_name)
    if target.is_file():
        return
    name = download(url, data_origin_name, data_dir)
    with open_to_read(name) as packed, atomic_write(target) as file:
        try:
            with bz2.open(packed) as source:
                shutil.copyfileobj(source, file)
        except (EOFError, ValueError, OSError) as error:
            if getattr(error, "errno", None) is not None:  # the disk is full
                raise
            raise FileFormatError(f"{name}: a damaged file of bzip2: {error}") from None


def get_cifar10() -> None:
    """Put CIFAR-10 into ``data/cifar``: ``train.rec``, ``test.rec`` and their lists."""
    if not all(Path("data", "cifar", name).is_file() for name in ("train.rec", "test.rec", "train.lst", "test.lst")):
        get_zip_data("data", "http://data.mxnet.io/data/cifar10.zip", "cifar10.zip")


name_errors(__name__, globals(), __all__)
