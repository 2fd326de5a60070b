"""Samplers: the rows of a source that an epoch has, and their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core.settings import CheckedMethods
from ...errors import ArgumentError
from . import config
from .config import Epoch

__all__ = ["DistributedSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
           "SubsetSampler", "WeightedRandomSampler"]


class Sampler(CheckedMethods):
    """Chooses the rows of an epoch, and their order; a subclass defines ``__iter__``.

    Parameters
    ----------
    num_samples : int, optional
        Largest number of rows; all by default.
    """

    def __init__(self, num_samples: int | None = None):
        if num_samples is not None and num_samples < 0:
            raise ArgumentError(f"{type(self).__name__}: num_samples must not be negative, got {num_samples}")
        self.num_samples = num_samples
        self.dataset_size = 0
        self._child: Sampler | None = None

    def add_child(self, sampler: Sampler | None) -> None:
        """Choose among the rows that another sampler chooses, instead of all.

        Examples
        --------
        >>> sampler = SubsetSampler([2, 0])
        >>> sampler.add_child(SequentialSampler(4))
        >>> sampler.places(8, Epoch())
        [6, 4]
        """
        if self._child is not None:
            raise ArgumentError(f"{type(self).__name__}: Cannot add child sampler, this sampler already has a child.")
        self._child = sampler

    def get_child(self) -> Sampler | None:
        """The sampler among whose rows this one chooses."""
        return self._child

    def get_num_samples(self) -> int | None:
        """The largest number of rows; None where there is no limit."""
        return self.num_samples

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError

    def places(self, length: int, epoch: Epoch) -> list[int]:
        """The row indices of an epoch, for a source of ``length`` rows."""
        if self._child is not None:
            below = self._child.places(length, epoch)
            length = len(below)
        self.dataset_size = length
        rows = [int(place) for place in self._chosen(length, epoch)]
        if self._child is not None:
            if any(place >= length for place in rows):
                raise ArgumentError(f"{type(self).__name__}: the row {max(rows)} is beyond the {length} rows that its "
                                    f"{type(self._child).__name__} chooses")
            rows = [below[place] for place in rows]
        return rows if not self.num_samples else rows[:self.num_samples]

    def count(self, length: int) -> int:
        """Number of rows of an epoch, for a source of ``length`` rows."""
        return len(self.places(length, Epoch(seed=0)))

    def _chosen(self, length: int, epoch: Epoch) -> Iterable[int]:
        return iter(self)


class SequentialSampler(Sampler):
    """The rows in their order, from ``start_index`` on.

    Examples
    --------
    >>> from opreg import dataset
    >>> data = dataset.NumpySlicesDataset([1, 2, 3], sampler=dataset.SequentialSampler(start_index=1))
    >>> [int(row[0]) for row in data.create_tuple_iterator(output_numpy=True, num_epochs=1)]
    [2, 3]
    """

    def __init__(self, start_index: int | None = None, num_samples: int | None = None):
        super().__init__(num_samples)
        self.start_index = start_index or 0

    def _chosen(self, length: int, epoch: Epoch) -> Iterable[int]:
        return range(self.start_index, length)


class RandomSampler(Sampler):
    """The rows in random order; with ``replacement`` each row is drawn independently, as many as there are at most.

    Examples
    --------
    >>> from opreg import dataset
    >>> data = dataset.NumpySlicesDataset([1, 2, 3], sampler=dataset.RandomSampler())
    >>> sorted(int(row[0]) for row in data.create_tuple_iterator(output_numpy=True, num_epochs=1))
    [1, 2, 3]
    """

    def __init__(self, replacement: bool = False, num_samples: int | None = None):
        super().__init__(num_samples)
        self.replacement = replacement

    def _chosen(self, length: int, epoch: Epoch) -> Iterable[int]:
        random = epoch.random()
        if self.replacement:
            chosen = random.integers(0, length, min(self.num_samples or length, length))
        else:
            chosen = random.permutation(length)
        return chosen.tolist()


class SubsetSampler(Sampler):
    """The given rows, in that order.

    Examples
    --------
    >>> from opreg import dataset
    >>> data = dataset.NumpySlicesDataset([1, 2, 3], sampler=dataset.SubsetSampler([2, 0]))
    >>> [int(row[0]) for row in data.create_tuple_iterator(output_numpy=True, num_epochs=1)]
    [3, 1]
    """

    def __init__(self, indices: Sequence[int], num_samples: int | None = None):
        super().__init__(num_samples)
        self.indices = list(indices)

    def _chosen(self, length: int, epoch: Epoch) -> Iterable[int]:
        return self.indices


class SubsetRandomSampler(SubsetSampler):
    """The given rows, in random order.

    Examples
    --------
    >>> from opreg import dataset
    >>> data = dataset.NumpySlicesDataset([1, 2, 3, 4], sampler=dataset.SubsetRandomSampler([0, 2]))
    >>> len(list(data.create_tuple_iterator(output_numpy=True)))
    2
    """

    def _chosen(self, length: int, epoch: Epoch) -> Iterable[int]:
        return epoch.random().permutation(self.indices).tolist()


class WeightedRandomSampler(Sampler):
    """Rows drawn at random with probabilities proportional to weights, as many as there are at most."""

    def __init__(self, weights: Sequence[float], num_samples: int | None = None, replacement: bool = True):
        super().__init__(num_samples)
        self.weights, self.replacement = list(weights), replacement

    def _chosen(self, length: int, epoch: Epoch) -> Iterable[int]:
        chances = np.asarray(self.weights, np.float64)
        count = min(self.num_samples or len(chances), length)
        return epoch.random().choice(
            len(chances), count, self.replacement, chances / chances.sum()).tolist()


class DistributedSampler(Sampler):
    """Each ``num_shards``-th row, so that each process has rows of its own; the first rows are repeated to make all
    parts equally long.

    Examples
    --------
    >>> from opreg import dataset
    >>> data = dataset.NumpySlicesDataset([1, 2, 3, 4], sampler=dataset.DistributedSampler(2, 0))
    >>> len(list(data.create_tuple_iterator(output_numpy=True)))
    2
    """

    def __init__(self, num_shards: int, shard_id: int, shuffle: bool = True, num_samples: int | None = None,
                 offset: int = -1):
        super().__init__(num_samples)
        if not 0 <= shard_id < num_shards:
            raise ArgumentError(f"DistributedSampler: shard_id must be from 0 to before num_shards={num_shards}, got "
                                f"{shard_id}")
        self.num_shards, self.shard_id, self.shuffle, self.offset = num_shards, shard_id, shuffle, offset

    def _chosen(self, length: int, epoch: Epoch) -> Iterable[int]:
        order = list(range(length))
        if self.shuffle:  # all processes use the same order
            order = np.random.default_rng((config.get_seed(), epoch.number)).permutation(length).tolist()
        start = max(self.offset, 0)
        count = -(-length // self.num_shards)
        return [order[(start + self.shard_id + i * self.num_shards) % length] for i in range(count)] if length else []


class _Given(Sampler):
    """Row indices from a list, a generator function, or another iterable."""

    def __init__(self, places: Iterable[int] | Callable[[], Iterable[int]], num_samples: int | None):
        super().__init__(num_samples)
        self._places = places

    def _chosen(self, length: int, epoch: Epoch) -> Iterable[int]:
        return self._places() if callable(self._places) else self._places


def sampler_of(owner: str, sampler: Any, shuffle: Any, num_samples: int | None, num_shards: int | None,
               shard_id: int | None) -> Sampler:
    """The sampler that a dataset's arguments describe."""
    if (num_shards is None) is not (shard_id is None):
        raise ArgumentError(f"{owner}: give both num_shards and shard_id, or neither; got {num_shards} and {shard_id}")
    if sampler is not None:
        if shuffle is not None or num_shards is not None:
            raise ArgumentError(f"{owner}: a sampler decides the order; leave out shuffle and num_shards")
        return sampler if isinstance(sampler, Sampler) else _Given(sampler, num_samples)
    shuffled = shuffle is None or bool(shuffle)
    if num_shards is not None and shard_id is not None:
        return DistributedSampler(num_shards, shard_id, shuffled, num_samples)
    return RandomSampler(num_samples=num_samples) if shuffled else SequentialSampler(num_samples=num_samples)
