"""Datasets: samples by number, and datasets derived from others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from opreg.errors import ArgumentError, ShapeError
from opreg.ndarray import NDArray

from ...core.locks import lock
from ...core.settings import CheckedMethods, whole_number
from ...data.recordio import MXIndexedRecordIO
from .sampler import FilterSampler, Sampler, SampleSequence, SequentialSampler

__all__ = ["Dataset", "SimpleDataset", "ArrayDataset", "RecordFileDataset"]

#: Held while a record is read, since threads of a loader share the position in the file.
_READING = lock()


class Dataset(CheckedMethods):
    """Base of datasets: samples by number. A subclass defines ``__getitem__`` and ``__len__``.

    Examples
    --------
    >>> class Squares(Dataset):
    ...     def __getitem__(self, idx):
    ...         return idx * idx
    ...     def __len__(self):
    ...         return 5
    >>> list(Squares().filter(lambda x: x % 2 == 0).transform(lambda x: x + 1))
    [1, 5, 17]
    """

    def __getitem__(self, idx: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__, which returns the sample of an index")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no __len__, the number of samples")

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(len(self)))

    def filter(self, fn: Callable[[Any], Any]) -> Dataset:
        """The samples for which a function is true; it is evaluated now."""
        return _SampledDataset(self, FilterSampler(fn, self))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """One of ``num_shards`` contiguous parts; if they differ in length, the first ones have one sample more.

        Raises
        ------
        ArgumentError
            When there is no part of that number.
        """
        if whole_number("shard: index", index) >= whole_number("shard: num_shards", num_shards, 1):
            raise ArgumentError(f"shard: index={index} of num_shards={num_shards}: expected an integer from 0 on "
                                "that is less than the number of parts")
        least, more = divmod(len(self), num_shards)
        return _SampledDataset(self, SequentialSampler(least + (index < more), least * index + min(index, more)))

    def take(self, count: int | None) -> Dataset:
        """The first ``count`` samples; all if there are fewer, or for None."""
        return _SampledDataset(self, SequentialSampler(
            len(self) if count is None else min(whole_number("take: count", count), len(self))))

    def sample(self, sampler: Sampler) -> Dataset:
        """The samples whose indices a sampler yields; the sampler is iterated at once.

        Raises
        ------
        ArgumentError
            When the argument is no ``Sampler``.
        """
        if not isinstance(sampler, Sampler):
            raise ArgumentError(f"sample: expected a gluon.data.Sampler, got {type(sampler).__name__}")
        return _SampledDataset(self, sampler)

    def transform(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """The samples, transformed by a function, which receives the parts of a tuple as separate arguments.

        Parameters
        ----------
        fn : callable
            The function of a sample.
        lazy : bool
            Whether the function is called at each access, or once for all samples now.
        """
        changed = _LazyTransformDataset(self, fn)
        return changed if lazy else SimpleDataset(list(changed))

    def transform_first(self, fn: Callable[[Any], Any], lazy: bool = True) -> Dataset:
        """The samples, with their first part transformed by a function; see ``transform``."""
        return self.transform(_First(fn), lazy)


class SimpleDataset(Dataset):
    """A list, or another object with a length and subscripts, as a dataset.

    Examples
    --------
    >>> len(SimpleDataset([1, 2, 3]).take(2))
    2
    """

    def __init__(self, data: SampleSequence):
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: Any) -> Any:
        return self._data[idx]


class _LazyTransformDataset(SimpleDataset):
    """Samples of another dataset, transformed by a function at each access."""

    def __init__(self, data: SampleSequence, fn: Callable[..., Any]):
        super().__init__(data)
        self._fn = fn

    def __getitem__(self, idx: Any) -> Any:
        sample = self._data[idx]
        return self._fn(*sample) if isinstance(sample, tuple) else self._fn(sample)


class _First:
    """Applies a function to the first part of a sample; a class, so that it can be pickled if the function can."""

    def __init__(self, fn: Callable[[Any], Any]):
        self._fn = fn

    def __call__(self, x: Any, *others: Any) -> Any:
        return (self._fn(x), *others) if others else self._fn(x)


class _SampledDataset(SimpleDataset):
    """Samples of another dataset, in the order of a sampler."""

    def __init__(self, data: SampleSequence, sampler: Sampler):
        super().__init__(data)
        self._numbers = list(sampler)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, idx: Any) -> Any:
        return self._data[self._numbers[idx]]


class ArrayDataset(Dataset):
    """Datasets, lists or arrays of one length, zipped: samples are tuples, or single values if there is one of them.

    Parameters
    ----------
    *args : NDArray, numpy.ndarray, list or Dataset
        The parts. Elements of a one-dimensional NDArray, such as labels, are NumPy scalars.

    Raises
    ------
    ShapeError
        When their lengths differ.

    Examples
    --------
    >>> ArrayDataset([1, 2, 3], [10, 20, 30])[1]
    (2, 20)
    """

    def __init__(self, *args: SampleSequence):
        if not args:
            raise ArgumentError("ArrayDataset: expected one array or more")
        for number, data in enumerate(args):
            if not hasattr(type(data), "__len__"):
                raise ArgumentError(f"ArrayDataset: array {number}: expected a list or an array, got "
                                    f"{type(data).__name__}")
            if len(data) != len(args[0]):
                raise ShapeError(f"ArrayDataset: array 0 has {len(args[0])} samples, array {number} has {len(data)}")
        self._data = [data.asnumpy() if isinstance(data, NDArray) and data.ndim == 1 else data for data in args]

    def __len__(self) -> int:
        return len(self._data[0])

    def __getitem__(self, idx: Any) -> Any:
        if len(self._data) == 1:
            return self._data[0][idx]
        return tuple([data[idx] for data in self._data])


class RecordFileDataset(Dataset):
    """The records of a ``.rec`` file as bytes, in the order of its ``.idx`` file.

    Parameters
    ----------
    filename : str
        The file of records.

    Examples
    --------
    >>> import tempfile
    >>> from opreg.data.recordio import MXIndexedRecordIO
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with MXIndexedRecordIO(f"{folder}/a.idx", f"{folder}/a.rec", "w") as file:
    ...         file.write_idx(7, b"seven")
    ...     RecordFileDataset(f"{folder}/a.rec")[0]
    b'seven'
    """

    def __init__(self, filename: str | os.PathLike):
        self.filename = os.fspath(filename)
        self.idx_file = os.path.splitext(self.filename)[0] + ".idx"
        self._record = MXIndexedRecordIO(self.idx_file, self.filename, "r")

    def __len__(self) -> int:
        return len(self._record.keys)

    def __getitem__(self, idx: Any) -> Any:
        with _READING:
            return self._record.read_idx(self._record.keys[idx])
