"""Loaders: samples of a dataset, collected into batches."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.reduction import ForkingPickler as ForkingPickler  # loaders of other libraries import it from here
from typing import Any

import numpy as np

from opreg.core.settings import Checked, whole_number
from opreg.data.shared_memory import empty
from opreg.data.workers import Processes, Threads
from opreg.errors import ArgumentError
from opreg.ndarray import NDArray, array, autograd, stack
from opreg.ndarray.context import Context, cpu, cpu_pinned

from ..structure import gluon_value
from .held_state import HeldState
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_batchify_fn", "default_mp_batchify_fn"]


def default_batchify_fn(data: Sequence[Any]) -> Any:
    """Samples as a batch: arrays are stacked, numbers become an array, and tuples become a list with one batch for each
    part.

    Examples
    --------
    >>> images, labels = default_batchify_fn([(np.zeros((2, 2)), 3), (np.ones((2, 2)), 4)])
    >>> images.shape, labels.asnumpy()
    ((2, 2, 2), array([3, 4]))
    """
    first = data[0]
    if isinstance(first, NDArray):
        raw = _stack_on_host(data)
        return stack(*data) if raw is None else gluon_value(NDArray(_stack(raw), first.context))
    if isinstance(first, tuple):
        return [default_batchify_fn(part) for part in zip(*data, strict=False)]
    if _same_spec(data):
        return gluon_value(NDArray(_stack(data), cpu()))
    numbers = np.asarray(data)
    return gluon_value(array(numbers, dtype=numbers.dtype))


#: The same function; in a worker process it stacks into memory shared with the loader.
default_mp_batchify_fn = default_batchify_fn


def _stack_on_host(data: Sequence[NDArray]) -> list[Any] | None:
    """The stacked elements of similar arrays on the host; None where ``stack`` has to convert or to raise."""
    if autograd.is_recording():
        return None
    raw = [getattr(sample, "_data", None) for sample in data]
    return raw if _same_spec(raw) else None


def _same_spec(arrays: Sequence[Any]) -> bool:
    """Whether all are arrays on the host, of one shape and dtype."""
    first = arrays[0]
    return all(type(each) is np.ndarray and each.shape == first.shape and each.dtype == first.dtype for each in arrays)


def _stack(data: Sequence[np.ndarray]) -> np.ndarray:
    return np.stack(data, out=empty((len(data), *data[0].shape), data[0].dtype))


def _as_in_context(batch: Any, ctx: Context) -> Any:
    if isinstance(batch, NDArray):
        return batch.as_in_context(ctx)
    if isinstance(batch, (list, tuple)):
        return [_as_in_context(part, ctx) for part in batch]
    return batch


class _Batches:
    """One round of a loader with workers, which prefetches batches."""

    def __init__(self, workers: Processes | Threads, batch_sampler: Sampler, prefetch: int, timeout: float,
                 finish: Callable[[Any], Any]):
        self._workers, self._timeout, self._finish = workers, timeout, finish
        self._samples = iter(batch_sampler)
        self._ordered: deque[int] = deque()
        self._order(prefetch)

    def _order(self, count: int) -> None:
        for _ in range(count):
            samples = next(self._samples, None)
            if samples is None:
                return
            self._ordered.append(self._workers.order(samples))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._order(1)
        if not self._ordered:
            raise StopIteration
        return self._finish(self._workers.take(self._ordered.popleft(), self._timeout))

    def __del__(self) -> None:
        if getattr(self, "_ordered", None):
            self._workers.forget(self._ordered)


class _MultiWorkerIter:
    """One round over a pool of ``multiprocessing``, which loaders of other libraries derive from.

    Parameters
    ----------
    worker_pool : multiprocessing.Pool or ThreadPool
        The workers.
    batchify_fn : callable
        A function from a list of samples to a batch.
    batch_sampler : Sampler
        Sampler of lists of sample numbers.
    pin_memory, pin_device_id : bool, int
        Whether batches are in the context ``cpu_pinned(pin_device_id)``.
    worker_fn : callable
        The function that a worker calls with sample numbers, ``batchify_fn`` and ``dataset``; it returns a batch,
        pickled if there is no dataset.
    prefetch : int
        Number of batches to prefetch.
    dataset, data_loader
        The dataset for ``worker_fn``, and the loader, which lives as long as its round.
    timeout : float
        Longest time for a batch, in seconds.
    """

    def __init__(self, worker_pool: Any, batchify_fn: Callable[[list[Any]], Any], batch_sampler: Any,
                 pin_memory: bool = False, pin_device_id: int = 0, worker_fn: Callable[..., Any] | None = None,
                 prefetch: int = 0, dataset: Any = None, data_loader: Any = None, timeout: float = 120):
        if worker_fn is None:
            raise ArgumentError("a pool of workers needs worker_fn, the function that makes a batch")
        self._worker_pool, self._batchify_fn, self._batch_sampler = worker_pool, batchify_fn, batch_sampler
        self._pin_memory, self._pin_device_id, self._worker_fn = pin_memory, pin_device_id, worker_fn
        self._dataset, self._data_loader, self._timeout = dataset, data_loader, timeout
        self._data_buffer: dict[int, Any] = {}
        self._rcvd_idx = self._sent_idx = 0
        self._iter = iter(batch_sampler)
        for _ in range(prefetch):
            self._push_next()

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        return self

    def _push_next(self) -> None:
        """Request one more batch; subclasses override this."""
        samples = next(self._iter, None)
        if samples is not None:
            self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(
                self._worker_fn, (samples, self._batchify_fn, self._dataset))
            self._sent_idx += 1

    def __next__(self) -> Any:
        self._push_next()
        if self._rcvd_idx == self._sent_idx:
            raise StopIteration
        batch = self._data_buffer.pop(self._rcvd_idx).get(self._timeout)
        self._rcvd_idx += 1
        if self._dataset is None:
            batch = pickle.loads(batch)
        return _as_in_context(batch, cpu_pinned(self._pin_device_id)) if self._pin_memory else batch

    def next(self) -> Any:
        """The next batch."""
        return next(self)


class DataLoader(Checked):
    """Batches of a dataset, made by ``num_workers`` threads or processes, or in the program itself.

    Parameters
    ----------
    dataset : Dataset, NDArray, numpy.ndarray or list
        The samples.
    batch_size, shuffle, sampler, last_batch
        Samples of a batch; whether their order is drawn anew in each round; the sampler that gives the order instead;
        and the treatment of an incomplete last batch, see ``BatchSampler``.
    batch_sampler : Sampler
        Sampler of lists of sample numbers, which replaces these four.
    batchify_fn : callable
        A function from a list of samples to a batch; by default arrays are stacked.
    num_workers : int
        Number of worker processes, or threads. Processes are forked at the first batch, with the dataset as it is then,
        and anew at the begin of a round if it has changed since: attributes, elements of lists and arrays, functions.
        Random values of a batch depend on the states of ``random`` and ``np.random`` and on the number of the batch,
        not on the process that makes it.
    pin_memory, pin_device_id : bool, int
        Whether batches are in the context ``cpu_pinned(pin_device_id)``.
    prefetch : int
        Number of batches to prefetch; twice ``num_workers`` by default.
    thread_pool : bool
        Whether workers are threads.
    timeout : float
        Longest time for a batch, in seconds.
    auto_reload : bool
        Whether prefetching starts when the loader is made, and for the next round when a round ends.

    Raises
    ------
    ArgumentError
        When arguments contradict each other.
    OpError
        When a worker process dies; the message names the process and the samples. Exceptions of ``__getitem__`` and of
        transforms are raised unchanged.

    Examples
    --------
    >>> loader = DataLoader([(i, 10 * i) for i in range(5)], batch_size=2)
    >>> for x, y in loader:
    ...     print(x.asnumpy(), y.asnumpy())
    [0 1] [ 0 10]
    [2 3] [20 30]
    [4] [40]
    """

    def __init__(self, dataset: Any, batch_size: int | None = None, shuffle: bool = False,
                 sampler: Sampler | None = None, last_batch: str | None = None, batch_sampler: Sampler | None = None,
                 batchify_fn: Callable[[list[Any]], Any] | None = None, num_workers: int = 0, pin_memory: bool = False,
                 pin_device_id: int = 0, prefetch: int | None = None, thread_pool: bool = False, timeout: float = 120,
                 auto_reload: bool = False):
        if timeout <= 0:
            raise ArgumentError(f"DataLoader: timeout={timeout}: expected seconds")
        num_workers = whole_number("DataLoader: num_workers", num_workers)
        if batch_sampler is None:
            if batch_size is None:
                raise ArgumentError("DataLoader: give batch_size, or a batch_sampler")
            if sampler is not None and shuffle:
                raise ArgumentError("DataLoader: a sampler decides the order: leave out shuffle")
            batch_size = whole_number("DataLoader: batch_size", batch_size, 1)
            order = sampler or (RandomSampler if shuffle else SequentialSampler)(len(dataset))
            batch_sampler = BatchSampler(order, batch_size, last_batch or "keep")
        elif batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise ArgumentError("DataLoader: a batch_sampler decides the batches: leave out batch_size, shuffle, "
                                "sampler and last_batch")
        self._dataset, self._batch_sampler = dataset, batch_sampler
        self._batchify_fn = batchify_fn or default_batchify_fn
        self._pin_memory = pin_memory
        self._pinned = cpu_pinned(pin_device_id) if pin_memory else None
        self._prefetch = max(0, 2 * num_workers if prefetch is None else int(prefetch))
        self._timeout = timeout
        self._workers = (Threads if thread_pool else Processes)(num_workers, dataset, self._batchify_fn) \
            if num_workers > 0 else None
        self._held: HeldState | None = None
        self.auto_reload = auto_reload
        self._ready: Iterator[Any] | None = None
        if auto_reload:
            self.refresh()

    def __iter__(self) -> Iterator[Any]:
        yield from self._round()
        if self._ready is None and self.auto_reload:
            self.refresh()

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def _round(self) -> Iterator[Any]:
        """The prefetching round, or a new one; each iteration gets a round of its own."""
        if self._ready is None:
            self.refresh()
        assert self._ready is not None
        batches, self._ready = self._ready, None
        return batches

    def _batches_in_process(self) -> Iterator[Any]:
        for samples in self._batch_sampler:
            yield self._finish(self._batchify_fn([self._dataset[number] for number in samples]))

    def _finish(self, batch: Any) -> Any:
        return batch if self._pinned is None else _as_in_context(batch, self._pinned)

    def refresh(self) -> None:
        """Start prefetching a round, which the next iteration takes."""
        workers = self._current_workers()
        self._ready = self._batches_in_process() if workers is None else iter(
            _Batches(workers, self._batch_sampler, self._prefetch, self._timeout, self._finish))

    def _current_workers(self) -> Processes | Threads | None:
        """The workers; processes that have the dataset as it was before a change are replaced."""
        if isinstance(self._workers, Processes):
            now = HeldState(self._dataset, self._batchify_fn)
            if self._held is not None and now != self._held:
                self._workers = self._workers.renew()
            self._held = now
        return self._workers

    def clean(self) -> None:
        """Drop the prefetching round; the next iteration starts its own."""
        self._ready = None
