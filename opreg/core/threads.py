"""Threads that share the work on large arrays of the host: made at first use, anew in a forked child.

NumPy lets other threads run while it computes, so parts of an array can be worked on at the same time. There are as
many threads as ``OPREG_NUM_THREADS`` says, else ``OMP_NUM_THREADS``, else as this process may use cores; the caller's
is one of them. The results of a part never depend on the number of threads.

Work is cut by ``evenly``, in so many parts, or by ``stretches`` of a length. From how much work on other threads are
worth waking is known where it is cut: it depends on what an element costs.
"""

from __future__ import annotations

import ctypes
import functools
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..typing import Array, ArrayModule
from .locks import lock
from .processor import processor

__all__ = ["count", "run", "in_turn", "evenly", "stretches", "by_rows", "parts_of", "whole", "copy", "alone"]

# Bytes of an array that are worked on at a time: an eighth, within bounds. Less would be spent in threads that wait for
# each other between NumPy's functions; of more, what is read and what is written would not stay in the second-level
# cache together.
_BLOCKS, _LEAST = 8, 1 << 18
_MOST = max(_LEAST, min(1 << 19, processor().l2 // 2))
# Bytes from which on threads share a copy.
_COPIED = 1 << 22
# NumPy copies an operand that broadcasts along rows shorter than its buffer, by default 8192 numbers, which takes
# longer than to compute with it.
_BUFFER = 1024


@functools.cache
def count() -> int:
    """How many threads work, the caller's included."""
    for name in ("OPREG_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").strip()
        if text.isdigit() and int(text) > 0:
            return int(text)
    return processor().cores


def _cores() -> set[int]:
    """The cores that the caller's thread may use; none where no thread can be told."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set()


def _current_core() -> int:
    """The core that the caller is on, or -1 if it is not known."""
    return _system_call()()


@functools.cache
def _system_call() -> Callable[[], int]:
    return getattr(ctypes.CDLL(None), "sched_getcpu", lambda: -1)


class _Job:
    """Parts that wait for a thread, and how many threads beside the caller's do some."""

    def __init__(self, parts: Sequence[Callable[[], object]]):
        self.waiting = deque(parts)
        self.helping = 0
        self.idle = threading.Condition()
        self.error: BaseException | None = None

    def work(self) -> None:
        """Do parts until none waits."""
        while True:
            try:
                part = self.waiting.popleft()
            except IndexError:
                return
            try:
                part()
            except BaseException as error:
                self.error = error

    def help(self) -> None:
        """The same, in another thread than the caller's."""
        with self.idle:
            self.helping += 1
        self.work()
        with self.idle:
            self.helping -= 1
            self.idle.notify()

    def wait(self) -> None:
        """Wait for the others, who write arrays of the caller's."""
        with self.idle:
            while self.helping:
                self.idle.wait()


class _Pool:
    """Threads that take jobs from a queue."""

    made: _Pool | None = None
    making = lock()

    def __init__(self, helpers: int):
        self.jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self.helpers = [threading.Thread(target=self._serve, name=f"opreg-{i + 1}", daemon=True)
                        for i in range(helpers)]
        self.cores = self.told = _cores()  # that who makes them may use, and so they
        self.avoided = -1
        for helper in self.helpers:
            helper.start()

    def stay_off(self, core: int) -> None:
        """Have the helpers stay off a core; off none if that is -1."""
        if core == self.avoided or len(self.cores) < 2:
            return
        before, self.told, self.avoided = self.told, self.cores - {core}, core
        for helper in self.helpers:
            number = helper.native_id or 0
            try:
                if os.sched_getaffinity(number) == before:
                    os.sched_setaffinity(number, self.told)
                    continue
            except OSError:
                pass
            self.cores = set()  # somebody else says where it may run, or nobody may
            return

    def _serve(self) -> None:
        with np.errstate(all="ignore"):
            np.setbufsize(_BUFFER)
            while True:
                self.jobs.get().help()


def _forget() -> None:
    """A forked child has none of its parent's threads."""
    _Pool.made = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def run(parts: Sequence[Callable[[], object]], apart: bool = False, shared: bool = True) -> None:
    """Call all functions, some at the same time, and return when the last is done.

    They must not depend on each other. The caller works too and never waits for a thread to become free, so a part
    may itself run parts. An exception leaves as itself once all parts have ended.

    ``apart`` says that every part computes for long without Python, and keeps the others off the caller's core. The
    system puts a thread that wakes beside the one that woke it when no core looks idle, and the threads of BLAS, which
    look out for work for milliseconds after a product, make all others look busy: both would take as long as one. But
    who takes turns with them is held up now and then, and then must not hold Python's lock.

    ``shared=False`` leaves all parts to the caller.
    """
    before = np.setbufsize(_BUFFER)
    try:
        if shared and len(parts) > 1 and count() > 1:
            _share(parts, apart)
        else:
            in_turn(parts)
    finally:
        np.setbufsize(before)


def _share(parts: Sequence[Callable[[], object]], apart: bool) -> None:
    with _Pool.making:
        pool = _Pool.made = _Pool.made or _Pool(count() - 1)
        pool.stay_off(_current_core() if apart else -1)
    job = _Job(parts)
    calls = iter(range(min(len(pool.helpers), len(parts) - 1)))
    interruption: BaseException | None = None
    while True:
        try:  # nothing that writes goes on when this is left, wherever an interruption strikes
            for _ in calls:
                pool.jobs.put(job)
            job.work()
            job.wait()
            break
        except BaseException as error:
            job.waiting.clear()
            interruption = error
    if interruption is not None:
        raise interruption
    if job.error is not None:
        raise job.error


def in_turn(functions: Iterable[Callable[[], object]]) -> None:
    """Call all functions, one after the other."""
    for function in functions:
        function()


def evenly(length: int, count: int) -> list[slice]:
    """A length in so many parts, as equal as can be.

    Examples
    --------
    >>> evenly(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    return [slice(length * i // count, length * (i + 1) // count) for i in range(count)]


def stretches(length: int, step: int) -> list[slice]:
    """A length in parts of ``step``, and what is left at the end.

    Examples
    --------
    >>> stretches(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def by_rows(xp: ArrayModule, array: Array, work: Callable[[slice], Any]) -> list[Any]:
    """``work(rows)`` for slices of the first axis, one after the other as they stay in the cache, on several threads.

    An array of another device than the host, or a small one, is worked on as a whole. The slices do not depend on the
    number of threads. Returns what ``work`` returns, in the order of the rows.
    """
    parts = parts_of(array) if xp is np else [slice(None)]
    if len(parts) == 1:
        return [work(slice(None))]
    results: list[Any] = [None] * len(parts)

    def part(number: int) -> None:
        results[number] = work(parts[number])

    run([functools.partial(part, number) for number in range(len(results))])
    return results


def parts_of(array: Array) -> list[slice]:
    """The slices of the first axis that ``by_rows`` works on, of an array of the host.

    Examples
    --------
    >>> parts_of(np.zeros((2, 3)))
    [slice(None, None, None)]
    """
    length, rows = array.shape[0], _rows(array)
    return [slice(None)] if rows == length else stretches(length, rows)


def _rows(array: Array) -> int:
    """How many rows are worked on at a time: as stay in the cache, or all where there are not many more."""
    block = min(max(array.nbytes // _BLOCKS, _LEAST), _MOST)
    length = array.shape[0]
    rows = max(1, block * length // max(array.nbytes, 1))
    return length if length <= 2 * rows else rows


def whole(array: Array) -> bool:
    """Whether ``by_rows`` works on an array of the host as a whole."""
    return _rows(array) == array.shape[0]


def copy(target: Any, source: Any) -> None:
    """Copy an array into another, which it broadcasts to, on several threads if it is faster.

    Examples
    --------
    >>> numbers = np.zeros(3)
    >>> copy(numbers, np.arange(3))
    >>> numbers
    array([0., 1., 2.])
    """
    if target.nbytes < _COPIED or not isinstance(target, np.ndarray) or len(target) < 8:
        target[...] = source
        return
    source = np.broadcast_to(source, target.shape)
    run([functools.partial(target[part].__setitem__, Ellipsis, source[part]) for part in evenly(len(target), 8)])


def alone() -> bool:
    """Whether no thread lives but the caller's and those of opreg, which run nobody else's code.

    Examples
    --------
    >>> other = threading.Timer(60, print)
    >>> other.start()
    >>> alone()
    False
    >>> other.cancel(), other.join()
    (None, None)
    """
    caller = threading.current_thread()
    return all(thread is caller or thread.name.startswith("opreg") for thread in threading.enumerate())
