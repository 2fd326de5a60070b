"""Windows over MPI: memory accessed by one-sided calls.

A waiting rank polls an operation until it is complete, so that a dead rank is noticed. MPI's own locks are messages
that their owner has to handle, and they block; an atomic counter is a lock that can be polled, and that ranks of one
machine access through shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .watch import Position, Watch
from .window import Window, _bytes

__all__ = ["MpiWindow"]


class MpiWindow(Window):
    """Memory of the ranks of a communicator, which create it together.

    Parameters
    ----------
    mpi : module
        ``mpi4py.MPI``.
    comm : mpi4py.MPI.Comm
        The communicator.
    ranks : sequence of int
        Ranks in the world.
    nbytes : int
        Bytes of this rank.
    """

    def __init__(self, mpi: Any, comm: Any, watch: Watch, ranks: Sequence[int], nbytes: int):
        self._mpi, self._watch, self._ranks = mpi, watch, tuple(ranks)
        self._window = mpi.Win.Allocate(nbytes, 1, comm=comm)
        self._window.Lock_all(mpi.MODE_NOCHECK)
        if nbytes:
            np.frombuffer(self._window.tomemory(), np.uint8)[...] = 0
        self._window.Sync()
        self._count, self._position = 0, Position("", self._ranks, 0, "")
        watch.at_end.append(self.free)

    def read(self, rank: int, offset: int, out: np.ndarray) -> np.ndarray:
        flat = _bytes(out)
        self._wait_until(self._window.Rget([flat, self._mpi.BYTE], rank, (offset, flat.size, self._mpi.BYTE)).Test)
        return out

    def write(self, rank: int, offset: int, array: np.ndarray) -> None:
        flat = _bytes(array)
        self._wait_until(self._window.Rput([flat, self._mpi.BYTE], rank, (offset, flat.size, self._mpi.BYTE)).Test)
        self._window.Flush(rank)  # completion of the request means only that it was sent

    def add(self, rank: int, offset: int, amount: int) -> int:
        kind, before = self._mpi.INT64_T, np.empty(1, np.int64)
        self._wait_until(self._window.Rget_accumulate([np.array([amount], np.int64), kind], [before, kind], rank,
                                                      (offset, 1, kind), self._mpi.SUM).Test)
        return int(before[0])

    def free(self) -> None:
        self._watch.at_end.remove(self.free)
        self._window.Unlock_all()
        self._window.Free()

    def _begin(self, what: str) -> None:
        self._count += 1
        self._position = Position("", self._ranks, self._count, what)  # ranks may start and end at different times
        self._watch.glance(self._position)

    def _wait_until(self, test: Callable[[], bool]) -> None:
        self._watch.wait_until(test, self._position)
