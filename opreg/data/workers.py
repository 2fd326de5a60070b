"""Workers of loaders and datasets: processes or threads that make batches in parallel to the program.

Each process has its own connection, so no process can leave a lock held that others wait for. The end of the connection
shows that a process is gone; in turn, processes end when the loader's end closes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import random
import signal
import socket
import time
import traceback
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from opreg.errors import OpError, as_op_error, note
from opreg.ndarray import autograd
from opreg.ndarray import random as nd_random
from opreg.ndarray.context import cpu

from ..core.locks import free_in_child, rlock
from .shared_memory import LoaderMemory, WorkerMemory, lend_to

__all__ = ["Processes", "Threads"]

# A worker seeds NumPy's generator, from which another thread may draw while the worker is forked.
free_in_child(np.random.mtrand._rand._bit_generator.lock)

#: Seconds granted to processes to end by themselves when a loader closes.
_GRACE = 5.0

#: The message that ends a process.
_LEAVE = b""

Batchify = Callable[[list[Any]], Any]


def _make_batch(dataset: Any, batchify_fn: Batchify, samples: Sequence[Any]) -> Any:
    with autograd.pause():
        return batchify_fn([dataset[number] for number in samples])


class Threads:
    """Workers that are threads of this process."""

    def __init__(self, count: int, dataset: Any, batchify_fn: Batchify):
        self._dataset, self._batchify = dataset, batchify_fn
        self._executor = ThreadPoolExecutor(count, "opreg loader")
        self._tasks: dict[int, Future[Any]] = {}
        self._count = 0
        self._end = weakref.finalize(self, self._executor.shutdown, wait=False, cancel_futures=True)

    def order(self, samples: Sequence[Any]) -> int:
        """Schedule a batch; return the number to ``take`` it by."""
        self._count += 1
        self._tasks[self._count] = self._executor.submit(_make_batch, self._dataset, self._batchify, samples)
        return self._count

    def take(self, number: int, timeout: float) -> Any:
        """A scheduled batch."""
        try:
            return self._tasks[number].result(timeout)
        except FutureTimeout:
            raise _late("DataLoader", "thread", number, timeout) from None
        finally:
            del self._tasks[number]

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop batches that will not be read."""
        for number in numbers:
            self._tasks.pop(number).cancel()

    def close(self) -> None:
        """End the threads."""
        self._end()


def _late(owner: str, what: str, number: int, timeout: float | None) -> Exception:
    return as_op_error(multiprocessing.TimeoutError(
        f"{owner}: no {what} made batch {number} within {timeout} seconds: a transform may take longer; timeout= sets "
        f"the limit"))


class _Worker:
    """A worker process, as seen by the loader."""

    def __init__(self, number: int, process: Any, connection: Connection):
        self.number, self.process, self.connection = number, process, connection
        self.tasks: deque[tuple[int, Sequence[Any]]] = deque()
        self.lent = LoaderMemory()


def _end_processes(workers: list[_Worker], owner: int) -> None:
    """End the processes: they exit when their connection closes; a process that stays busy is killed."""
    if os.getpid() != owner:
        return
    for worker in workers:
        if not worker.tasks:  # processes forked by others since may hold the connection open
            with contextlib.suppress(OSError):
                worker.connection.send_bytes(_LEAVE)
        worker.connection.close()
    last = time.monotonic() + _GRACE
    for worker in workers:
        if not worker.tasks:
            worker.process.join(max(0.0, last - time.monotonic()))
        worker.process.kill()
        worker.process.join()
        worker.process.close()
    workers.clear()


class Processes:
    """Workers that are processes, with the dataset as it is when the first batch is scheduled.

    Parameters
    ----------
    count : int
        Number of processes.
    dataset : object with ``__getitem__``
        The dataset, indexed by each sample of a batch.
    batchify_fn : callable
        Combines the samples into a batch.
    owner, batch : str
        Names of the owner and of a batch, for error messages.
    """

    def __init__(self, count: int, dataset: Any, batchify_fn: Batchify, owner: str = "DataLoader",
                 batch: str = "the batch of samples"):
        self._wanted, self._dataset, self._batchify = count, dataset, batchify_fn
        self._owner, self._batch = owner, batch
        self._workers: list[_Worker] = []
        self._waiting: set[int] = set()
        self._made: dict[int, tuple[bool, Any]] = {}
        self._count = 0
        self._lock = rlock()
        self._end = weakref.finalize(self, _end_processes, self._workers, os.getpid())

    def _start(self) -> None:
        """Start the processes; forked if possible, since datasets may hold objects that cannot be pickled."""
        if not self._end.alive:
            self._end = weakref.finalize(self, _end_processes, self._workers, os.getpid())
        context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else None)
        for number in range(self._wanted):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, name=f"opreg loader {number}", daemon=True,
                args=(theirs, [*(worker.connection for worker in self._workers), ours], self._dataset, self._batchify,
                      f"in a worker of {self._owner}, for {self._batch}"))
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*multi-threaded.*fork", DeprecationWarning)
                process.start()
            theirs.close()
            self._workers.append(_Worker(number, process, ours))

    def order(self, samples: Sequence[Any]) -> int:
        """Schedule a batch on the process with the fewest; return the number to ``take`` it by."""
        with self._lock:
            if not self._workers:
                self._start()
            self._count += 1
            worker = min(self._workers, key=lambda worker: len(worker.tasks))
            worker.tasks.append((self._count, samples))
            self._waiting.add(self._count)
            task = self._count, samples, _seed(self._count), worker.lent.given_back()
            try:
                worker.connection.send_bytes(pickle.dumps(task, pickle.HIGHEST_PROTOCOL))
            except OSError:
                pass  # the process is gone: the reader gets this error after the batches that were finished before
            return self._count

    def take(self, number: int, timeout: float | None = None) -> Any:
        """A scheduled batch."""
        last = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while number not in self._made:
                if number not in self._waiting:
                    raise OpError(f"{self._owner}: the processes that made this batch have ended: iterate anew")
                ready = wait([worker.connection for worker in self._workers],
                             None if last is None else last - time.monotonic())
                if not ready:
                    self._waiting.discard(number)
                    raise _late(self._owner, "process", number, timeout)
                for worker in self._workers:
                    if worker.connection in ready:
                        self._receive(worker)
            done, batch = self._made.pop(number)
        if done:
            return batch
        try:
            raise batch
        finally:
            del batch  # its traceback references this frame, and so the processes

    def _receive(self, worker: _Worker) -> None:
        """Receive a batch from a process."""
        try:
            number, done, message, new, dropped = pickle.loads(worker.connection.recv_bytes())
            for piece, size in new:
                worker.lent.learn(piece, _receive_descriptor(worker.connection), size)
        except (EOFError, OSError):
            self._report_end(worker)
        except BaseException:  # an interrupt leaves a partly read message, from which reading cannot resume
            self.close()
            raise
        worker.tasks.popleft()
        worker.lent.forget(dropped)
        batch = worker.lent.unpack(message)
        if number in self._waiting:
            self._waiting.remove(number)
            self._made[number] = done, batch

    def _report_end(self, worker: _Worker) -> None:
        """Report which process ended, how, and at which samples; end all processes."""
        worker.process.join(_GRACE)
        code, label = worker.process.exitcode, f"{worker.number} (process {worker.process.pid})"
        ending = "ended" if code is None else \
            f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        at = f", making {self._batch} {_samples_text(worker.tasks[0][1])}" if worker.tasks else ""
        self.close()
        raise OpError(f"{self._owner}: worker {label} {ending}{at}. Without workers the error is raised in the program "
                      f"itself, where a debugger can stop")

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop batches that will not be read."""
        with self._lock:
            self._waiting.difference_update(numbers)
            for number in numbers:
                self._made.pop(number, None)

    def renew(self) -> Processes:
        """New workers for later batches, with the present dataset. The former workers end after their last batch."""
        workers = Processes(self._wanted, self._dataset, self._batchify, self._owner, self._batch)
        workers._count = self._count  # random values depend on it
        return workers

    def close(self) -> None:
        """End the processes; the next scheduled batch starts new ones."""
        self._end()
        self._waiting.clear()


def _samples_text(samples: Sequence[Any]) -> str:
    shown = ", ".join(str(sample) for sample in samples[:8])
    return f"[{shown}, …]" if len(samples) > 8 else f"[{shown}]"


def _seed(number: int) -> int:
    """The seed of a batch, from the state of this process's generators and the batch's number."""
    stands = random.Random()
    stands.setstate(random.getstate())
    numbers = np.random.RandomState()
    numbers.set_state(np.random.get_state())  # noqa: NPY002  it is what programs seed
    seeds = (stands.getrandbits(32), int(numbers.randint(1 << 32, dtype=np.uint64)), number)
    return int(np.random.SeedSequence(seeds).generate_state(1, np.uint64)[0])


def _serve(connection: Connection, others: list[Connection], dataset: Any, batchify_fn: Batchify, where: str) -> None:
    """Make batches in a worker process until its connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program is interrupted, and ends this process
    for connection_of_other in others:
        connection_of_other.close()
    memory = WorkerMemory()
    lend_to(memory)
    with cpu():
        while True:
            try:
                message = connection.recv_bytes()
                if message == _LEAVE:
                    return
                number, samples, seed, back = pickle.loads(message)
                memory.take_back(back)
                random.seed(seed)
                np.random.seed(seed & 0xFFFFFFFF)  # noqa: NPY002  it is what transforms draw of
                nd_random.seed(seed)
                done, message, new, dropped = _batch_message(memory, dataset, batchify_fn, samples, where)
                pieces = [(piece, size) for piece, size, _ in new]
                connection.send_bytes(pickle.dumps((number, done, message, pieces, dropped), pickle.HIGHEST_PROTOCOL))
                for _, _, descriptor in new:
                    _send_descriptor(connection, descriptor)
                    os.close(descriptor)
            except (EOFError, OSError):
                return


def _send_descriptor(connection: Connection, descriptor: int) -> None:
    """Send a descriptor behind the messages of a connection. ``multiprocessing.reduction`` waits for an answer since
    Python 3.14, and would take a byte of a scheduled batch for it."""
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as own:
        socket.send_fds(own, [b"\0"], [descriptor])


def _receive_descriptor(connection: Connection) -> int:
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as own:
        descriptors = socket.recv_fds(own, 1, 1)[1]
    if not descriptors:
        raise EOFError
    return descriptors[0]


def _batch_message(memory: WorkerMemory, dataset: Any, batchify_fn: Batchify, samples: Sequence[Any], where: str
                   ) -> tuple[bool, bytes, list[tuple[int, int, int]], list[int]]:
    """A batch as a message, or the error that occurred."""
    try:
        return True, *memory.pack(_make_batch(dataset, batchify_fn, samples))
    except Exception as error:
        note(error, f"{where} {_samples_text(samples)}; the traceback in the worker is\n"
                    + "".join(traceback.format_tb(error.__traceback__)))
        try:
            return False, *memory.pack(error)
        except Exception:
            text = "".join(traceback.format_exception_only(error))
            return False, *memory.pack(OpError(f"{where} {_samples_text(samples)}: {text.strip()}"))
