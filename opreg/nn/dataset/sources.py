"""Datasets from functions, objects and arrays, from files of lines, MNIST and CIFAR, and from folders of images."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opreg.data.cifar import of_rows
from opreg.data.codec import decode as decoded
from opreg.data.mnist import read_idx

from ...cells.dtype import dtype_to_nptype
from ...core.files import open_to_read
from ...errors import ArgumentError, did_you_mean
from .config import Epoch
from .pipeline import Dataset, Row, as_column
from .samplers import Sampler, sampler_of
from .workers import count_of, map_rows

__all__ = ["Cifar10Dataset", "Cifar100Dataset", "FashionMnistDataset", "GeneratorDataset", "ImageFolderDataset",
           "KMnistDataset", "MnistDataset", "NumpySlicesDataset", "PaddedDataset", "TextFileDataset"]


class MappableDataset(Dataset):
    """Rows with indices; a sampler chooses rows and their order."""

    _sampler: Sampler | None = None

    def _set_sampler(self, column_names: Sequence[str], rows: Callable[[Sequence[int], Epoch], Iterator[Row]],
                     length: int, sampler: Sampler) -> None:
        """Set the columns, and the sampler of ``length`` rows; ``rows(indices, epoch)`` reads those it chooses."""
        self._sampler = sampler
        Dataset.__init__(self, column_names, lambda epoch: rows(self._require_sampler().places(length, epoch), epoch),
                         lambda: self._require_sampler().count(length))

    def _require_sampler(self) -> Sampler:
        if self._sampler is None:
            raise ArgumentError(f"{type(self).__name__}: a source without __getitem__ and __len__ can only be read in "
                                f"order; leave out its sampler")
        return self._sampler

    def use_sampler(self, new_sampler: Sampler | Iterable[int] | None) -> None:
        """Set the sampler, which chooses rows and their order; None means all rows in their order.

        Examples
        --------
        >>> rows = NumpySlicesDataset([5, 6, 7], shuffle=False)
        >>> rows.use_sampler([2, 0])
        >>> [row[0].item() for row in rows.create_tuple_iterator(output_numpy=True)]
        [7, 5]
        """
        self._require_sampler()
        owner = type(self).__name__
        self._sampler = sampler_of(owner, new_sampler, None if new_sampler is not None else False, None, None, None)
        self._counted = None

    def add_sampler(self, new_sampler: Sampler) -> None:
        """Add a sampler, which chooses among the rows that the present sampler gives."""
        before = self._require_sampler()
        self.use_sampler(new_sampler)
        self._sampler.add_child(before)  # type: ignore[union-attr]


def _each_row(at: Callable[[int], Row]) -> Callable[[Sequence[int], Epoch], Iterator[Row]]:
    """The rows at the given positions, one by one."""
    return lambda places, epoch: (at(place) for place in places)


class GeneratorDataset(MappableDataset):
    """Rows from a function, an iterable, or an object with ``__getitem__`` and ``__len__``.

    Parameters
    ----------
    source : callable, iterable, or object with ``__getitem__`` and ``__len__``
        The source of rows, each a tuple of columns; a single column need not be in a tuple. A source with subscripts is
        read by them, in random order by default; a function is called for each epoch. A column may be a dict, which
        functions of ``map`` receive as a dict; rows with dicts cannot be batched.
    column_names : str or sequence of str
        Names of the columns.
    column_types : sequence of dtype, optional
        Dtypes that the columns are cast to.
    num_samples : int, optional
        Largest number of rows.
    num_parallel_workers, python_multiprocessing
        Number of worker processes that read a source with subscripts, and whether there are any; 1 means the program
        itself.
    shuffle : bool, optional
        Whether rows come in random order.
    sampler : Sampler, or iterable of int, optional
        The row indices and their order.
    num_shards, shard_id : int, optional
        Number of processes, and the number of this one: each has rows of its own.

    Examples
    --------
    >>> rows = GeneratorDataset(lambda: ((i, i * i) for i in range(3)), ["number", "square"])
    >>> [row["square"].asnumpy().item() for row in rows.create_dict_iterator()]
    [0, 1, 4]
    """

    def __init__(self, source: Any, column_names: str | Sequence[str] | None = None,
                 column_types: Sequence[Any] | None = None, schema: Any = None, num_samples: int | None = None,
                 num_parallel_workers: int = 1, shuffle: bool | None = None, sampler: Any = None,
                 num_shards: int | None = None, shard_id: int | None = None, python_multiprocessing: bool = True,
                 max_rowsize: Any = None):
        if column_names is None or schema is not None:
            raise ArgumentError("GeneratorDataset: give column_names, and no schema")
        names = column_names.split(",") if isinstance(column_names, str) else list(column_names)
        self.source = source

        def row_of(value: Any) -> Row:
            columns = value if isinstance(value, tuple) else (value,)
            if len(columns) != len(names):
                raise ArgumentError(f"GeneratorDataset: the source gave {len(columns)} columns for {names}")
            arrays = [as_column(column, f"GeneratorDataset: column {name!r}") for column, name in zip(columns, names)]
            if column_types is not None:
                arrays = [array.astype(dtype_to_nptype(dtype)) for array, dtype in zip(arrays, column_types)]
            return tuple(arrays)

        if hasattr(source, "__getitem__") and hasattr(source, "__len__"):
            chosen = sampler_of("GeneratorDataset", sampler, shuffle, num_samples, num_shards, shard_id)
            workers, length = count_of(num_parallel_workers, python_multiprocessing), len(source)

            def placed(places: Sequence[int], epoch: Epoch) -> Iterator[Row]:
                return map_rows("GeneratorDataset", workers, lambda _, place: row_of(source[place]), places, epoch)

            self._set_sampler(names, placed, length, chosen)
        else:
            if sampler is not None or num_shards is not None or shuffle:
                raise ArgumentError("GeneratorDataset: a source without __getitem__ and __len__ can only be read in "
                                    "order; leave out sampler, shuffle and num_shards")
            if not callable(source) and not hasattr(source, "__iter__"):
                raise ArgumentError("GeneratorDataset: expected a function, an iterable or an object with "
                                    f"__getitem__ and __len__, got {type(source).__name__}")

            def rows(epoch: Epoch) -> Iterator[Row]:
                for at, value in enumerate(source() if callable(source) else source):
                    if at == num_samples:
                        return
                    yield row_of(value)

            super().__init__(names, rows)


class NumpySlicesDataset(MappableDataset):
    """Rows of arrays: the i-th element along the first axis of each.

    Parameters
    ----------
    data : array, list, tuple of these, or dict of them by name
        A tuple or dict has a column for each element; another value is the only column.
    column_names : str or sequence of str, optional
        Names of the columns; by default the dict's keys, or ``column_0`` and so on.
    num_samples, shuffle, sampler, num_shards, shard_id
        See ``GeneratorDataset``; the order is random by default.

    Examples
    --------
    >>> rows = NumpySlicesDataset(([1, 2], [3.0, 4.0]), ["x", "y"], shuffle=False)
    >>> [[each.asnumpy().item() for each in row] for row in rows]
    [[1, 3.0], [2, 4.0]]
    """

    def __init__(self, data: Any, column_names: str | Sequence[str] | None = None, num_samples: int | None = None,
                 num_parallel_workers: int = 1, shuffle: bool | None = None, sampler: Any = None,
                 num_shards: int | None = None, shard_id: int | None = None):
        columns = list(data.values()) if isinstance(data, Mapping) else \
            list(data) if isinstance(data, tuple) else [data]
        if column_names is None:
            names = list(data) if isinstance(data, Mapping) else [f"column_{i}" for i in range(len(columns))]
        else:
            names = [column_names] if isinstance(column_names, str) else list(column_names)
        if len(names) != len(columns):
            raise ArgumentError(f"NumpySlicesDataset: {len(columns)} columns for the names {names}")
        arrays = [column if isinstance(column, (list, tuple)) else as_column(column, "NumpySlicesDataset")
                  for column in columns]
        lengths = {len(array) for array in arrays}
        if len(lengths) != 1:
            raise ArgumentError(f"NumpySlicesDataset: the columns {names} have the lengths "
                                f"{[len(array) for array in arrays]}")
        chosen = sampler_of("NumpySlicesDataset", sampler, shuffle, num_samples, num_shards, shard_id)
        self._set_sampler(names, _each_row(lambda place: tuple(
            [as_column(array[place], "NumpySlicesDataset") for array in arrays])), lengths.pop(), chosen)


def files_that_match(owner: str, patterns: str | os.PathLike | Sequence[str | os.PathLike]) -> list[str]:
    """The files that a pattern such as ``train-*.txt``, or each of a list of patterns, finds, by their names."""
    given = [patterns] if isinstance(patterns, (str, os.PathLike)) else patterns
    found = {os.fspath(pattern): glob.glob(os.fspath(pattern)) for pattern in given}
    missing = [pattern for pattern, paths in found.items() if not paths]
    if missing or not found:
        raise ArgumentError(f"{owner}: The following patterns did not match any files: {missing}")
    return sorted(path for paths in found.values() for path in paths)


class TextFileDataset(NumpySlicesDataset):
    """Lines of text files, in UTF-8, without empty ones: the column ``text``.

    Parameters
    ----------
    dataset_files : str, path, or list of them
        Files, or patterns such as ``train-*.txt``; they are read in the order of their names.
    num_samples, shuffle, num_shards, shard_id
        See ``GeneratorDataset``; the order is random by default.
    num_parallel_workers, cache
        Accepted without effect.

    Raises
    ------
    ArgumentError
        When there are no such files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = pathlib.Path(folder, "a.txt").write_text("to be\\n\\nor not")
    ...     rows = TextFileDataset(f"{folder}/a.txt", shuffle=False)
    >>> [str(row[0]) for row in rows.create_tuple_iterator(output_numpy=True)]
    ['to be', 'or not']
    """

    def __init__(self, dataset_files: str | os.PathLike | Sequence[str | os.PathLike], num_samples: int | None = None,
                 num_parallel_workers: int | None = None, shuffle: bool | str | None = None,
                 num_shards: int | None = None, shard_id: int | None = None, cache: object = None):
        lines: list[str] = []
        for path in files_that_match("TextFileDataset", dataset_files):
            with open_to_read(path) as file:
                lines += [line for line in file.read().decode().split("\n") if line]
        super().__init__({"text": lines}, None, num_samples, shuffle=None if shuffle is None else bool(shuffle),
                         num_shards=num_shards, shard_id=shard_id)


class ImageFolderDataset(MappableDataset):
    """Image files in a folder for each class: columns ``image``, with the bytes of the file, and ``label``, an int32.

    Parameters
    ----------
    dataset_dir : str or path
        The folder of these folders. Unshuffled files come in the order of their names.
    num_samples, shuffle, sampler, num_shards, shard_id
        See ``GeneratorDataset``; the order is random by default.
    num_parallel_workers
        Accepted without effect: ``map`` decodes images, in its own processes.
    extensions : sequence of str, optional
        Endings of the files to read, such as ``[".jpg", ".png"]``.
    class_indexing : dict, optional
        Labels by folder name, for the folders to read; by default folders are numbered in the order of their names.
    decode : bool
        Whether ``image`` is decoded to (height, width, 3), in the order red, green, blue.

    Raises
    ------
    FileNotFoundError
        When the folder is missing, or has no such files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat", "dog"):
    ...         pathlib.Path(folder, name).mkdir()
    ...         size = pathlib.Path(folder, name, "1.png").write_bytes(b"...")
    ...     [row["label"].asnumpy().item() for row in ImageFolderDataset(folder, shuffle=False).create_dict_iterator()]
    [0, 1]
    """

    def __init__(self, dataset_dir: str | os.PathLike, num_samples: int | None = None,
                 num_parallel_workers: int | None = None, shuffle: bool | None = None, sampler: Any = None,
                 extensions: Sequence[str] | None = None, class_indexing: Mapping[str, int] | None = None,
                 decode: bool = False, num_shards: int | None = None, shard_id: int | None = None, cache: Any = None,
                 decrypt: object = None):
        if decrypt is not None:
            raise ArgumentError("ImageFolderDataset: files are not encrypted; decrypt must be None")
        root = Path(dataset_dir)
        if not root.is_dir():
            raise FileNotFoundError(f"ImageFolderDataset: there is no folder {os.fspath(dataset_dir)!r}")
        folders = sorted(folder.name for folder in root.iterdir() if folder.is_dir())
        self._labels = dict(class_indexing) if class_indexing else {name: i for i, name in enumerate(folders)}
        strange = sorted(self._labels.keys() - folders)
        if strange:
            raise ArgumentError(f"ImageFolderDataset: class_indexing has the folder {strange[0]!r}. "
                                f"{did_you_mean(strange[0], folders)}")
        files = [(file, np.int32(label)) for name, label in sorted(self._labels.items())
                 for file in sorted((root / name).iterdir())
                 if file.is_file() and (extensions is None or file.suffix in extensions)]
        if not files:
            kinds = "" if extensions is None else f" that end in {', '.join(extensions)}"
            raise FileNotFoundError(f"ImageFolderDataset: there are no files{kinds} in the folders of "
                                    f"{os.fspath(dataset_dir)!r}")

        def row(place: int) -> Row:
            file, label = files[place]
            with open_to_read(file) as opened:
                data = opened.read()
            return decoded(data, name=str(file)) if decode else np.frombuffer(data, np.uint8), np.asarray(label)

        chosen = sampler_of("ImageFolderDataset", sampler, shuffle, num_samples, num_shards, shard_id)
        self._set_sampler(["image", "label"], _each_row(row), len(files), chosen)

    def get_class_indexing(self) -> dict[str, int]:
        """Labels by folder name."""
        return dict(self._labels)


class PaddedDataset(GeneratorDataset):
    """Given rows, as dicts of arrays, to be concatenated with another dataset."""

    def __init__(self, padded_samples: Sequence[Mapping[str, Any]]):
        names = sorted(padded_samples[0])
        super().__init__([tuple(row[name] for name in names) for row in padded_samples], names, shuffle=False)


class MnistDataset(MappableDataset):
    """Images and labels from files in MNIST's format, which may be compressed: columns ``image`` and ``label``.

    Parameters
    ----------
    dataset_dir : str
        Folder of the files ``train-images-idx3-ubyte`` and so on.
    usage : {"train", "test", "all"}
        The files to read; by default all that exist.
    num_samples, shuffle, sampler, num_shards, shard_id
        See ``GeneratorDataset``; the order is random by default.

    Raises
    ------
    FileNotFoundError
        When the folder has none of the files.
    """

    def __init__(self, dataset_dir: str | os.PathLike, usage: str | None = None, num_samples: int | None = None,
                 num_parallel_workers: int | None = None, shuffle: bool | None = None, sampler: Any = None,
                 num_shards: int | None = None, shard_id: int | None = None, cache: Any = None):
        owner = type(self).__name__
        pairs = [[_found(owner, dataset_dir, part, name) for name in ("images-idx3-ubyte", "labels-idx1-ubyte")]
                 for part in sorted(_parts_to_read(owner, usage, ["train"], ["t10k"],  # as MindSpore sorts
                                                   lambda part: _file(dataset_dir, part, "images-idx3-ubyte")))]
        images, labels = (np.concatenate([read_idx(pair[i]) for pair in pairs]) for i in (0, 1))
        if len(images) != len(labels):
            raise ArgumentError(f"{owner}: {len(images)} images and {len(labels)} labels in {dataset_dir}")
        chosen = sampler_of(owner, sampler, shuffle, num_samples, num_shards, shard_id)
        self._set_sampler(["image", "label"], _each_row(
            lambda place: (images[place][..., None], np.asarray(labels[place], np.uint32))), len(images), chosen)


class FashionMnistDataset(MnistDataset):
    """Images and labels of Fashion-MNIST; see ``MnistDataset``."""


class KMnistDataset(MnistDataset):
    """Images and labels of KMNIST; see ``MnistDataset``."""


class Cifar10Dataset(MappableDataset):
    """Images and labels from files in CIFAR-10's binary format: columns ``image`` and ``label``.

    Parameters
    ----------
    dataset_dir : str
        Folder of the files ``data_batch_1.bin`` and so on.
    usage, num_samples, shuffle, sampler, num_shards, shard_id
        See ``MnistDataset``.

    Raises
    ------
    FileNotFoundError
        When the folder has none of the files.
    FileFormatError
        When a file does not consist of whole images.
    """

    _files = [f"data_batch_{number}.bin" for number in range(1, 6)], ["test_batch.bin"]
    _labels: tuple[str, ...] = ("label",)

    def __init__(self, dataset_dir: str | os.PathLike, usage: str | None = None, num_samples: int | None = None,
                 num_parallel_workers: int | None = None, shuffle: bool | None = None, sampler: Any = None,
                 num_shards: int | None = None, shard_id: int | None = None, cache: Any = None):
        owner, parts = type(self).__name__, []
        folder = Path(dataset_dir)
        for name in _parts_to_read(owner, usage, *self._files, lambda name: (folder / name).is_file()):
            path = folder / name
            if not path.is_file():
                raise FileNotFoundError(f"{owner}: there is no {name} in {os.fspath(dataset_dir)!r}")
            with open_to_read(path) as file:
                parts.append(of_rows(file.read(), len(self._labels), path))
        images, labels = (np.concatenate(arrays) for arrays in zip(*parts))
        chosen = sampler_of(owner, sampler, shuffle, num_samples, num_shards, shard_id)
        rows = _each_row(lambda place: (images[place], *(np.asarray(label, np.uint32) for label in labels[place])))
        self._set_sampler(["image", *self._labels], rows, len(images), chosen)


class Cifar100Dataset(Cifar10Dataset):
    """Images and labels from files in CIFAR-100's format: columns ``image``, ``coarse_label`` and ``fine_label``.

    See ``Cifar10Dataset``; the files are ``train.bin`` and ``test.bin``.
    """

    _files = ["train.bin"], ["test.bin"]
    _labels = ("coarse_label", "fine_label")


def _parts_to_read(owner: str, usage: str | None, train: list[str], test: list[str], is_there: Callable[[str], object]
                   ) -> list[str]:
    """The parts to read, by ``usage``; for "all", those that exist."""
    if usage in ("all", None):
        return [part for part in train + test if is_there(part)] or train
    if usage not in ("train", "test"):
        raise ArgumentError(f"{owner}: usage must be 'train', 'test' or 'all', got {usage!r}")
    return train if usage == "train" else test


def _file(folder: str | os.PathLike, part: str, name: str) -> Path | None:
    """A file of MNIST under any of its names; None if it is missing."""
    names = f"{part}-{name}", f"{part}-{name}.gz", f"{part}-{name.replace('-idx', '.idx')}"
    return next((Path(folder) / name for name in names if (Path(folder) / name).is_file()), None)


def _found(owner: str, folder: str | os.PathLike, part: str, name: str) -> Path:
    path = _file(folder, part, name)
    if path is None:
        raise FileNotFoundError(f"{owner}: there is no {part}-{name} in {os.fspath(folder)!r}")
    return path
