"""Window: memory of ranks that every rank reads and writes by itself, while its owner goes on with something else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["Window"]

#: A writer's increment of a lock; a reader adds 1. More ranks than that could not be told from it.
_WRITER = 1 << 32


class Window:
    """Some bytes of each rank, zeros at first, that all ranks of a group reach; this class is one process alone.

    Parameters
    ----------
    nbytes : int
        How many this rank has.

    Examples
    --------
    >>> window = Window(24)
    >>> with window.locked(0, 0, "a sum"):
    ...     window.write(0, 8, np.array([1.0, 2.0]))
    >>> window.read(0, 8, np.empty(2)).tolist()
    [1.0, 2.0]
    """

    def __init__(self, nbytes: int):
        self._memory = np.zeros(nbytes, np.uint8)

    def read(self, rank: int, offset: int, out: np.ndarray) -> np.ndarray:
        """Bytes of a rank, from an offset on, as what ``out`` holds, which lies in one piece; returns it."""
        flat = _bytes(out)
        flat[...] = self._memory[offset:offset + flat.size]
        return out

    def write(self, rank: int, offset: int, array: np.ndarray) -> None:
        """Store an array that lies in one piece as bytes of a rank; it is there when this returns."""
        flat = _bytes(array)
        self._memory[offset:offset + flat.size] = flat

    def add(self, rank: int, offset: int, amount: int) -> int:
        """Add to a word of 64 bits of a rank, at once for all; returns what it was."""
        word = self._memory[offset:offset + 8].view(np.int64)
        before = int(word[0])
        word += amount
        return before

    @contextmanager
    def locked(self, rank: int, offset: int, what: str, shared: bool = False) -> Iterator[None]:
        """Hold the lock that a word of 64 bits of a rank is: alone, or with others that read.

        Parameters
        ----------
        what : str
            What for, as errors say it.

        Raises
        ------
        RankError
            When another rank has failed, is gone, or does not give it back in time.
        """
        amount, free = (1, _WRITER) if shared else (_WRITER, 1)

        def taken() -> bool:
            if self.add(rank, offset, amount) < free:
                return True
            self.add(rank, offset, -amount)
            return False

        self._begin(what)
        self._until(taken)
        try:
            yield
        finally:
            self.add(rank, offset, -amount)

    def free(self) -> None:
        """Give the memory back; all ranks call this together."""
        self._memory = np.zeros(0, np.uint8)

    def _begin(self, what: str) -> None:
        """Note what is done next."""

    def _until(self, test: Callable[[], bool]) -> None:
        """Wait until something is done."""
        while not test():  # another thread has it
            time.sleep(0)


def _bytes(array: np.ndarray) -> np.ndarray:
    """The same memory as one row of bytes."""
    return array.reshape(-1).view(np.uint8)
