"""engine: MXNet's switch for running many small operators in one go, which changes nothing here.

Operators run in the call that asks for them, so there is nothing to bundle; scripts that ask for it go on.
"""

from __future__ import annotations

import operator

__all__ = ["bulk", "set_bulk_size"]

_SIZE = [0]


def set_bulk_size(size: int) -> int:
    """Set how many operators may run in one go; returns what it was.

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
