"""Samplers: iterables of sample indices, in the order in which a loader reads samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from opreg.core.attrs import Count, Positive
from opreg.core.settings import CheckedMethods
from opreg.errors import ArgumentError, did_you_mean

__all__ = ["Sampler", "SequentialSampler", "RandomSampler", "FilterSampler", "BatchSampler"]


class SampleSequence(Protocol):
    """A sequence of samples with a length: a list, an array, a dataset."""

    def __len__(self) -> int: ...

    def __getitem__(self, idx: Any, /) -> Any: ...


_LAST = ("keep", "discard", "rollover")


class Sampler(CheckedMethods):
    """Base of samplers: iterables of sample indices. A subclass defines ``__iter__`` and ``__len__``.

    Examples
    --------
    >>> class Even(Sampler):
    ...     def __iter__(self):
    ...         return iter(range(0, 6, 2))
    ...     def __len__(self):
    ...         return 3
    >>> list(BatchSampler(Even(), 2))
    [[0, 2], [4]]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__, which gives indices of samples")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define __len__, the number of samples of __iter__")


class SequentialSampler(Sampler):
    """Consecutive sample indices from ``start`` on.

    Examples
    --------
    >>> list(SequentialSampler(3, start=2))
    [2, 3, 4]
    """

    def __init__(self, length: Count, start: int = 0):
        self._numbers = range(start, start + length)

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class RandomSampler(Sampler):
    """The sample indices below ``length``, each once, in an order that ``np.random`` draws for each round.

    Examples
    --------
    >>> sorted(int(number) for number in RandomSampler(3))
    [0, 1, 2]
    """

    def __init__(self, length: Count):
        self._length = length

    def __iter__(self) -> Iterator[Any]:
        numbers = np.arange(self._length)
        np.random.shuffle(numbers)  # noqa: NPY002  np.random.seed decides, as in MXNet
        return iter(numbers)

    def __len__(self) -> int:
        return self._length


class FilterSampler(Sampler):
    """The indices of the samples for which a function is true; the function is called when the sampler is made.

    Examples
    --------
    >>> list(FilterSampler(lambda sample: sample > 5, [4, 6, 8]))
    [1, 2]
    """

    def __init__(self, fn: Callable[[Any], Any], dataset: SampleSequence):
        self._numbers = [number for number in range(len(dataset)) if fn(dataset[number])]

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class BatchSampler(Sampler):
    """Lists of ``batch_size`` indices of another sampler.

    Parameters
    ----------
    sampler : Sampler
        The other sampler.
    batch_size : int
        Length of the lists.
    last_batch : {"keep", "discard", "rollover"}
        Treatment of an incomplete last batch: it is yielded, dropped, or moved to the next round.

    Raises
    ------
    ArgumentError
        For another ``last_batch``, or a batch size below one.

    Examples
    --------
    >>> batches = BatchSampler(SequentialSampler(4), 3, "rollover")
    >>> list(batches), list(batches)
    ([[0, 1, 2]], [[3, 0, 1]])
    """

    def __init__(self, sampler: Sampler, batch_size: Positive, last_batch: str = "keep"):
        if last_batch not in _LAST:
            raise ArgumentError(f"BatchSampler: last_batch={last_batch!r}: {did_you_mean(str(last_batch), _LAST)}")
        if batch_size < 1:
            raise ArgumentError(f"BatchSampler: batch_size={batch_size}: expected one sample or more")
        self._sampler = sampler
        self._batch_size = batch_size
        self._last_batch = last_batch
        self._kept: list[Any] = []

    def __iter__(self) -> Iterator[list[Any]]:
        batch, self._kept = self._kept, []
        for number in self._sampler:
            batch.append(number)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if batch and self._last_batch == "keep":
            yield batch
        elif self._last_batch == "rollover":
            self._kept = batch

    def __len__(self) -> int:
        count = len(self._sampler)
        if self._last_batch == "keep":
            return (count + self._batch_size - 1) // self._batch_size
        return (len(self._kept) + count) // self._batch_size
