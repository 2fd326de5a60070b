"""engine: MXNet's switch for running many small operators in one go, which changes nothing here.

Every operator runs when it is called, so there is nothing to bundle; scripts that set a bulk size still run.
"""

from __future__ import annotations

import operator

__all__ = ["bulk", "set_bulk_size"]

_SIZE = [0]


def set_bulk_size(size: int) -> int:
    """Store the number of operators that may run at once; returns the earlier number.

    Examples
    --------
    >>> set_bulk_size(16)
    0
    >>> set_bulk_size(0)
    16
    """
    before, _SIZE[0] = _SIZE[0], operator.index(size)
    return before


class bulk:
    """A stretch of code with a bulk size of its own.

    Parameters
    ----------
    size : int
        How many operators may run in one go.

    Examples
    --------
    >>> with bulk(10):
    ...     set_bulk_size(10)
    10
    """

    def __init__(self, size: int):
        self._size = operator.index(size)
        self._before: list[int] = []

    def __enter__(self) -> bulk:
        self._before.append(set_bulk_size(self._size))
        return self

    def __exit__(self, *_: object) -> None:
        set_bulk_size(self._before.pop())


def __dir__() -> list[str]:
    return sorted(__all__)
