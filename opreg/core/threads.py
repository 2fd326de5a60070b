"""Threads that share the work on large arrays of the host: started at first use, and again in a forked child.

NumPy releases Python's global lock while it computes, so parts of an array can be worked on at the same time. The
number of threads is ``OPREG_NUM_THREADS``, else ``OMP_NUM_THREADS``, else the number of cores that this process may
use; the caller's thread is one of them. The results of a part never depend on the number of threads.

Work is split by ``split_evenly`` into a number of parts, or by ``chunks`` into parts of a given length. The code
that splits it decides whether there is enough work to wake other threads: this depends on the cost of an element.
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
from . import environment
from .locks import lock
from .processor import processor

__all__ = ["count", "run", "call_all", "split_evenly", "chunks", "by_rows", "parts_of", "copy",
           "no_foreign_threads"]

# An array is worked on in blocks of an eighth of its bytes, but of no fewer than ``_LEAST`` and no more than ``_MOST``.
# With smaller blocks, threads would mostly wait for each other between NumPy's functions; with larger ones, a block and
# its result would not fit into the second-level cache together.
_BLOCKS, _LEAST = 8, 1 << 18
_MOST = max(_LEAST, min(1 << 19, processor().l2 // 2))
# Copies of at least so many bytes are shared among threads.
_COPIED = 1 << 22
# NumPy copies an operand that broadcasts along rows shorter than its buffer, by default 8192 elements, and the copy
# takes longer than the computation.
_BUFFER = 1024


@functools.cache
def count() -> int:
    """The number of threads that work, the caller's included."""
    text = os.environ.get("OMP_NUM_THREADS", "").strip()  # other libraries take lists of numbers, too
    others = int(text) if text.isdigit() and int(text) > 0 else processor().cores
    return int(environment.number("OPREG_NUM_THREADS", others, above=0, whole=True))


def _cores() -> set[int]:
    """The cores that the caller's thread may use; empty if the system cannot bind threads to cores."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set()


def _current_core() -> int:
    """The core that the caller runs on, or -1 if unknown."""
    return _system_call()()


@functools.cache
def _system_call() -> Callable[[], int]:
    return getattr(ctypes.CDLL(None), "sched_getcpu", lambda: -1)


class _Job:
    """Parts that wait for a thread, and the number of threads besides the caller's that work on them."""

    def __init__(self, parts: Sequence[Callable[[], object]]):
        self.waiting = deque(parts)
        self.helping = 0
        self.idle = threading.Condition()
        self.error: BaseException | None = None

    def work(self) -> None:
        """Run parts until none waits."""
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
        """Run ``work`` in a helper thread."""
        with self.idle:
            self.helping += 1
        self.work()
        with self.idle:
            self.helping -= 1
            self.idle.notify()

    def wait(self) -> None:
        """Wait for the other threads, since they write the caller's arrays."""
        with self.idle:
            while self.helping:
                self.idle.wait()


class _Pool:
    """Threads that take jobs from a queue."""

    current: _Pool | None = None
    making = lock()

    def __init__(self, helpers: int):
        self.jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self.helpers = [threading.Thread(target=self._serve, name=f"opreg-{i + 1}", daemon=True)
                        for i in range(helpers)]
        self.cores = self.allowed = _cores()  # helpers inherit the cores of the thread that starts them
        self.avoided = -1
        for helper in self.helpers:
            helper.start()

    def avoid_core(self, core: int) -> None:
        """Keep the helpers off a core; with -1, let them run on all."""
        if core == self.avoided or len(self.cores) < 2:
            return
        before, self.allowed, self.avoided = self.allowed, self.cores - {core}, core
        for helper in self.helpers:
            number = helper.native_id or 0
            try:
                if os.sched_getaffinity(number) == before:
                    os.sched_setaffinity(number, self.allowed)
                    continue
            except OSError:
                pass
            self.cores = set()  # other code set its cores, or they cannot be set
            return

    def _serve(self) -> None:
        with np.errstate(all="ignore"):
            np.setbufsize(_BUFFER)
            while True:
                self.jobs.get().help()


def _forget() -> None:
    """A forked child has none of its parent's threads."""
    _Pool.current = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def run(parts: Sequence[Callable[[], object]], apart: bool = False, shared: bool = True) -> None:
    """Call all functions, some at the same time, and return when the last is done.

    They must not depend on each other. The caller works too and never waits for a free thread, so a part may itself run
    parts. An exception in a part is raised after all parts have ended.

    ``apart`` says that every part computes for long without Python's global lock, and keeps the helpers off the
    caller's core. When no core looks idle, the system puts a woken thread on the core of the thread that woke it, and
    two parts on one core take twice as long. The threads of BLAS make all other cores look busy: they spin for
    milliseconds after a product. A helper beside such a thread is held up now and then, so it must not hold the lock
    meanwhile.

    With ``shared=False`` the caller runs all parts.
    """
    before = np.setbufsize(_BUFFER)
    try:
        if shared and len(parts) > 1 and count() > 1:
            _share(parts, apart)
        else:
            call_all(parts)
    finally:
        np.setbufsize(before)


def _share(parts: Sequence[Callable[[], object]], apart: bool) -> None:
    with _Pool.making:
        pool = _Pool.current = _Pool.current or _Pool(count() - 1)
        pool.avoid_core(_current_core() if apart else -1)
    job = _Job(parts)
    calls = iter(range(min(len(pool.helpers), len(parts) - 1)))
    interruption: BaseException | None = None
    while True:
        try:  # when this loop ends, no part is still writing, wherever an interruption came
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


def call_all(functions: Iterable[Callable[[], object]]) -> None:
    """Call all functions, one after the other."""
    for function in functions:
        function()


def split_evenly(length: int, count: int) -> list[slice]:
    """Slices that split a length into ``count`` parts of nearly equal size.

    Examples
    --------
    >>> split_evenly(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    return [slice(length * i // count, length * (i + 1) // count) for i in range(count)]


def chunks(length: int, step: int) -> list[slice]:
    """Slices that split a length into parts of ``step``; the last one may be shorter.

    Examples
    --------
    >>> chunks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def by_rows(xp: ArrayModule, array: Array, work: Callable[[slice], Any]) -> list[Any]:
    """Call ``work(rows)`` for slices of the first axis that fit into the cache, on several threads.

    An array on a device, or a small one, gets one call for all rows. The slices do not depend on the number of threads.
    Returns the results of ``work``, in the order of the rows.
    """
    parts = parts_of(array) if xp is np and array.nbytes > min(_LEAST, _MOST) else [slice(None)]
    if len(parts) == 1:
        return [work(slice(None))]
    results: list[Any] = [None] * len(parts)

    def part(number: int) -> None:
        results[number] = work(parts[number])

    run([functools.partial(part, number) for number in range(len(results))])
    return results


def parts_of(array: Array) -> list[slice]:
    """The slices of the first axis that ``by_rows`` uses for an array of the host.

    Examples
    --------
    >>> parts_of(np.zeros((2, 3)))
    [slice(None, None, None)]
    """
    length, rows = array.shape[0], _rows(array)
    return [slice(None)] if rows == length else chunks(length, rows)


def _rows(array: Array) -> int:
    """Number of rows that are processed at a time: as many as fit into the cache, or all if that is at least half of
    them."""
    block = min(max(array.nbytes // _BLOCKS, _LEAST), _MOST)
    length = array.shape[0]
    rows = max(1, block * length // max(array.nbytes, 1))
    return length if length <= 2 * rows else rows


def copy(target: Any, source: Any) -> None:
    """Copy an array into another, with broadcasting; a large copy on several threads.

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
    run([functools.partial(target[part].__setitem__, Ellipsis, source[part]) for part in split_evenly(len(target), 8)])


def no_foreign_threads() -> bool:
    """Whether the process has no threads but the caller's and those of opreg, which run only opreg's code.

    Examples
    --------
    >>> other = threading.Timer(60, print)
    >>> other.start()
    >>> no_foreign_threads()
    False
    >>> other.cancel(), other.join()
    (None, None)
    """
    caller = threading.current_thread()
    return all(thread is caller or thread.name.startswith("opreg") for thread in threading.enumerate())
