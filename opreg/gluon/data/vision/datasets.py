"""Datasets of images: well-known ones from files on this machine, and the user's own images."""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from opreg.base import data_dir
from opreg.errors import ArgumentError, FileFormatError, OpError, ShapeError, warn
from opreg.ndarray import array

from ....core.files import INFLATED, op_errors, open_to_read
from ....data.cifar import of_rows
from ....data.image import imdecode, imread
from ....data.mnist import read_idx
from ....data.recordio import unpack
from ...structure import gluon_value
from .. import dataset as dataset  # programs take it from here, as from MXNet's module
from ..dataset import Dataset, RecordFileDataset

__all__ = ["MNIST", "FashionMNIST", "CIFAR10", "CIFAR100", "ImageRecordDataset", "ImageFolderDataset",
           "ImageListDataset"]

#: Endings of the names of image files.
_IMAGES = (".jpg", ".jpeg", ".png")

Transform = Callable[[Any, Any], Any]


class _Files(Dataset):
    """Images and labels from files in a folder."""

    #: The folder below ``MXNET_HOME/datasets``, and the publisher of the files.
    _folder: str
    _source: str

    def __init__(self, root: str | os.PathLike | None, transform: Transform | None):
        usual = os.path.join(data_dir(), "datasets", self._folder)
        self._root = Path(os.path.expanduser(usual if root is None else root))
        self._transform = transform
        pixels, self._label = self._read()
        if len(pixels) != len(self._label):
            raise ShapeError(f"{self._root}: {len(pixels)} images and {len(self._label)} labels")
        self._data = gluon_value(array(pixels, dtype=pixels.dtype))

    def _read(self) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _missing(self, names: Sequence[str]) -> OpError:
        return OpError(f"{type(self).__name__}: data sets are not downloaded: put {' or '.join(map(repr, names))} of "
                       f"{self._source} into {str(self._root.absolute())!r}, or give its folder by root=")

    def __len__(self) -> int:
        return len(self._label)

    def __getitem__(self, idx: Any) -> Any:
        sample = self._data[idx], self._label[idx]
        return sample if self._transform is None else self._transform(*sample)


class MNIST(_Files):
    """MNIST: handwritten digits as gray images of shape (28, 28, 1) in uint8, and labels from 0 to 9.

    Parameters
    ----------
    root : str
        Folder of MNIST's four files, which may be compressed by gzip; by default ``datasets/mnist`` in ``MXNET_HOME``.
        Nothing is downloaded.
    train : bool
        Whether to load the training set, or the test set.
    transform : callable
        A function from an image and its label to a sample.

    Raises
    ------
    OpError
        When files are missing; the message names them.
    FileFormatError
        When a file has another format, or is damaged.
    """

    _folder, _source = "mnist", "http://yann.lecun.com/exdb/mnist"

    def __init__(self, root: str | os.PathLike | None = None, train: bool = True, transform: Transform | None = None):
        self._train = train
        super().__init__(root, transform)

    def _idx(self, name: str) -> np.ndarray:
        names = f"{name}.gz", name
        path = next((self._root / name for name in names if (self._root / name).is_file()), None)
        if path is None:
            raise self._missing(names)
        return read_idx(path)

    def _read(self) -> tuple[np.ndarray, np.ndarray]:
        prefix = "train" if self._train else "t10k"
        labels, images = self._idx(f"{prefix}-labels-idx1-ubyte"), self._idx(f"{prefix}-images-idx3-ubyte")
        if images.ndim != 3 or labels.ndim != 1:
            raise FileFormatError(f"{self._root}: shapes {images.shape} and {labels.shape}: expected images and labels")
        return images[..., None], labels.astype(np.int32)


class FashionMNIST(MNIST):
    """FashionMNIST: articles of clothing, in files like MNIST's; by default in ``datasets/fashion-mnist`` of
    ``MXNET_HOME``."""

    _folder, _source = "fashion-mnist", "https://github.com/zalandoresearch/fashion-mnist"


class CIFAR10(_Files):
    """CIFAR10: images of ten classes, of shape (32, 32, 3) in uint8, and their labels.

    Parameters
    ----------
    root : str
        Folder that holds the files ``data_batch_1.bin`` and so on, their folder, or the archive; by default
        ``datasets/cifar10`` in ``MXNET_HOME``. Nothing is downloaded.
    train, transform
        See ``MNIST``.

    Raises
    ------
    OpError
        When files are missing; the message names them.
    FileFormatError
        When a file does not consist of whole images.
    """

    _folder, _source = "cifar10", "https://www.cs.toronto.edu/~kriz/cifar.html"
    _archive, _inside = "cifar-10-binary.tar.gz", "cifar-10-batches-bin"
    _names = {True: [f"data_batch_{number}.bin" for number in range(1, 6)], False: ["test_batch.bin"]}
    _labels, _place = 1, 0

    def __init__(self, root: str | os.PathLike | None = None, train: bool = True, transform: Transform | None = None):
        self._train = train
        super().__init__(root, transform)

    def _read(self) -> tuple[np.ndarray, np.ndarray]:
        parts = [of_rows(content, self._labels, name) for name, content in self._contents(self._names[self._train])]
        images, labels = (np.concatenate(arrays) for arrays in zip(*parts))
        return np.ascontiguousarray(images), labels[:, self._place].astype(np.int32)

    def _contents(self, names: Sequence[str]) -> Iterator[tuple[Path, bytes]]:
        """The contents of files by name, from the folder, a folder inside, or the archive."""
        for folder in (self._root, self._root / self._inside):
            if all((folder / name).is_file() for name in names):
                for name in names:
                    with open_to_read(folder / name) as file:
                        yield folder / name, file.read()
                return
        archive = self._root / self._archive
        if not archive.is_file():
            raise self._missing([*names, self._archive])
        with open_to_read(archive) as file:
            most = os.fstat(file.fileno()).st_size * INFLATED
            try:
                with tarfile.open(fileobj=file) as tar:
                    members = {os.path.basename(member.name): member for member in tar if member.isfile()}
                    for name in names:
                        if name not in members or members[name].size > most:
                            raise FileFormatError(f"{archive}: holds no {name!r}")
                        yield archive / name, cast(IO[bytes], tar.extractfile(members[name])).read()
            except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
                raise FileFormatError(f"{archive}: damaged: {error}") from None


class CIFAR100(CIFAR10):
    """CIFAR100: images of a hundred classes, in files like CIFAR10's; by default in ``datasets/cifar100``.

    Parameters
    ----------
    root, train, transform
        See ``CIFAR10``.
    fine_label : bool
        Whether labels are the hundred classes, or their twenty groups.
    """

    _folder, _archive, _inside = "cifar100", "cifar-100-binary.tar.gz", "cifar-100-binary"
    _names = {True: ["train.bin"], False: ["test.bin"]}
    _labels = 2

    def __init__(self, root: str | os.PathLike | None = None, fine_label: bool = False, train: bool = True,
                 transform: Transform | None = None):
        self._place = int(fine_label)
        super().__init__(root, train, transform)


class ImageRecordDataset(RecordFileDataset):
    """The images of a ``.rec`` file, and their labels.

    Parameters
    ----------
    filename : str
        The file of records; its ``.idx`` file lies in the same folder.
    flag : {1, 0, -1}
        1 for colours, 0 for gray, -1 for each image's own.
    transform : callable
        A function from an image, of shape (height, width, channels) in uint8, and its label to a sample.
    """

    def __init__(self, filename: str | os.PathLike, flag: int = 1, transform: Transform | None = None):
        super().__init__(filename)
        self._flag, self._transform = flag, transform

    def __getitem__(self, idx: Any) -> Any:
        header, image = unpack(super().__getitem__(idx))
        sample = imdecode(image, self._flag), header.label
        return sample if self._transform is None else self._transform(*sample)


class _ImageFiles(Dataset):
    """Images in separate files."""

    #: Pairs of a file name and a label.
    items: list[tuple[str, Any]]

    def __init__(self, flag: int, transform: Transform | None):
        self._flag, self._transform = flag, transform

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, idx: Any) -> Any:
        path, label = self.items[idx]
        sample = imread(path, self._flag), label
        return sample if self._transform is None else self._transform(*sample)


class ImageFolderDataset(_ImageFiles):
    """The images of folders, each folder a class: ``root/car/1.jpg``, ``root/bus/7.png``.

    Parameters
    ----------
    root : str
        The folder of these folders. Entries that are no folders, and files that are no JPEG or PNG, are skipped with a
        warning.
    flag : {1, 0, -1}
        1 for colours, 0 for gray, -1 for each image's own.
    transform : callable
        A function from an image, of shape (height, width, channels) in uint8, and its label to a sample.

    Attributes
    ----------
    synsets : list of str
        The names of the folders in alphabetical order; a label is an index of this list.
    items : list of (str, int)
        The files and their labels.
    """

    def __init__(self, root: str | os.PathLike, flag: int = 1, transform: Transform | None = None):
        super().__init__(flag, transform)
        self.synsets: list[str] = []
        self.items = []
        root = os.path.expanduser(root)
        with op_errors():
            for folder in sorted(os.listdir(root)):
                path = os.path.join(root, folder)
                if not os.path.isdir(path):
                    warn(f"ImageFolderDataset: {path} is not a folder, and is skipped")
                    continue
                self.synsets.append(folder)
                for name in sorted(os.listdir(path)):
                    if name.lower().endswith(_IMAGES):
                        self.items.append((os.path.join(path, name), len(self.synsets) - 1))
                    else:
                        warn(f"ImageFolderDataset: {os.path.join(path, name)} is skipped: expected a file of "
                             f"{', '.join(_IMAGES)}")


class ImageListDataset(_ImageFiles):
    """The images of a list, each with one label or several.

    Parameters
    ----------
    root : str
        The folder to which the file names are relative.
    imglist : str or list
        A ``.lst`` file, with tab-separated lines of a number, labels and a file name; or a list of lists of labels and
        a file name.
    flag : {1, 0, -1}
        1 for colours, 0 for gray, -1 for each image's own.

    Attributes
    ----------
    items : list of (str, numpy.ndarray of float32)
        The files and their labels.
    """

    def __init__(self, root: str | os.PathLike = ".", imglist: str | os.PathLike | Sequence[Sequence[Any]] = (),
                 flag: int = 1):
        super().__init__(flag, None)
        root = os.path.expanduser(root)
        rows = _rows(os.path.join(root, imglist)) if isinstance(imglist, (str, os.PathLike)) else imglist
        self.items = []
        for number, row in enumerate(rows):
            if len(row) < 2 or not isinstance(row[-1], str):
                raise ArgumentError(f"ImageListDataset: entry {number}: expected labels and a file name, got {row!r}")
            labels = np.asarray(row[0] if len(row) == 2 else row[:-1], np.float32)
            self.items.append((os.path.join(root, row[-1]), np.atleast_1d(labels)))


def _rows(path: str) -> Iterator[Sequence[Any]]:
    with open_to_read(path) as file:
        for number, line in enumerate(file, 1):
            parts = line.decode(errors="replace").strip().split("\t")
            try:
                yield [*map(float, parts[1:-1]), parts[-1]]
            except ValueError:
                raise FileFormatError(f"{path}: line {number}: expected a number, labels and a file name with tabs "
                                      f"between, got {line[:50]!r}") from None
