"""Further samplers."""

from __future__ import annotations

from collections.abc import Iterator

from opreg.errors import ArgumentError

from ...aliases import inner
from ..data.sampler import Sampler

__all__ = ["IntervalSampler"]


class IntervalSampler(Sampler):
    """Sample indices in steps of ``interval``: first from 0 on, then from 1 on, and so on.

    Parameters
    ----------
    length : int
        Number of samples.
    interval : int
        Distance between two numbers.
    rollover : bool
        Whether it continues from 1, 2, … on, until all samples were visited.

    Raises
    ------
    ArgumentError
        When the interval is larger than the number of samples.

    Examples
    --------
    >>> list(IntervalSampler(7, interval=3))
    [0, 3, 6, 1, 4, 2, 5]
    >>> list(IntervalSampler(7, interval=3, rollover=False))
    [0, 3, 6]
    """

    def __init__(self, length: int, interval: int, rollover: bool = True):
        if not 1 <= interval <= length:
            raise ArgumentError(f"IntervalSampler: interval={interval}: expected an int from 1 to length={length}")
        self._length, self._interval, self._rollover = length, interval, rollover

    def __iter__(self) -> Iterator[int]:
        for start in range(self._interval if self._rollover else 1):
            yield from range(start, self._length, self._interval)

    def __len__(self) -> int:
        return self._length


__path__: list[str] = []  # its submodules are this module itself
__getattr__ = inner(__name__)
