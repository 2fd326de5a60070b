"""Window: memory of ranks that all ranks read and write without the owner's participation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["Window"]

#: A writer's increment of a lock; a reader adds 1. More ranks than this are not supported.
_WRITER = 1 << 32


class Window:
    """Bytes of each rank, initially zeros, that all ranks of a group access; this class is a single process.

    Parameters
    ----------
    nbytes : int
        Bytes of this rank.

    Examples
    --------
    >>> window = Window(24)
    >>> with window.lock(0, 0, "a sum"):
    ...     window.write(0, 8, np.array([1.0, 2.0]))
    >>> window.read(0, 8, np.empty(2)).tolist()
    [1.0, 2.0]
    """

    def __init__(self, nbytes: int):
        self._memory = np.zeros(nbytes, np.uint8)

    def read(self, rank: int, offset: int, out: np.ndarray) -> np.ndarray:
        """Read bytes of a rank, from an offset on, into the contiguous array ``out``; returns it."""
        flat = _bytes(out)
        flat[...] = self._memory[offset:offset + flat.size]
        return out

    def write(self, rank: int, offset: int, array: np.ndarray) -> None:
        """Write a contiguous array to bytes of a rank; complete on return."""
        flat = _bytes(array)
        self._memory[offset:offset + flat.size] = flat

    def add(self, rank: int, offset: int, amount: int) -> int:
        """Add to a 64-bit word of a rank, atomically; returns the old value."""
        word = self._memory[offset:offset + 8].view(np.int64)
        before = int(word[0])
        word += amount
        return before

    @contextmanager
    def lock(self, rank: int, offset: int, what: str, shared: bool = False) -> Iterator[None]:
        """Hold the lock in a 64-bit word of a rank: exclusively, or shared with other readers.

        Parameters
        ----------
        what : str
            Purpose of the lock, for errors.

        Raises
        ------
        RankError
            When another rank has failed or ended, or does not release the lock in time.
        """
        amount, free = (1, _WRITER) if shared else (_WRITER, 1)

        def taken() -> bool:
            if self.add(rank, offset, amount) < free:
                return True
            self.add(rank, offset, -amount)
            return False

        self._begin(what)
        self._wait_until(taken)
        try:
            yield
        finally:
            self.add(rank, offset, -amount)

    def free(self) -> None:
        """Free the memory; all ranks call this together."""
        self._memory = np.zeros(0, np.uint8)

    def _begin(self, what: str) -> None:
        """Record the next operation."""

    def _wait_until(self, test: Callable[[], bool]) -> None:
        """Wait until something is done."""
        while not test():  # another thread of this process holds the lock
            time.sleep(0)


def _bytes(array: np.ndarray) -> np.ndarray:
    """The same memory as one row of bytes."""
    return array.reshape(-1).view(np.uint8)
