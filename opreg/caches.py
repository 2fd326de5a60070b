"""Bounded caches."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

__all__ = ["Recent"]


class Recent(OrderedDict):
    """What was used last, up to a number of entries. Threads may share one.

    Examples
    --------
    >>> cache = Recent(2)
    >>> for key in "aba":
    ...     if cache.find(key) is None:
    ...         cache.keep(key, key.upper())
    >>> cache.keep("c", "C")
    >>> list(cache)
    ['a', 'c']
    """

    def __init__(self, limit: int):
        super().__init__()
        self.limit = limit

    def find(self, key: Any) -> Any:
        """What is kept by a key, None where nothing is."""
        try:
            self.move_to_end(key)
            return self[key]
        except KeyError:  # another thread may have put it out in between
            return None

    def keep(self, key: Any, value: Any) -> None:
        """Keep something; what was used least recently goes."""
        self[key] = value
        while len(self) > self.limit:
            self.popitem(last=False)
