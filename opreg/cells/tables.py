"""Tables of the parameters and children of a Cell or a block, which notify it when a program edits them directly."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

__all__ = ["TableOwner", "Table"]


class TableOwner(Protocol):
    """An owner of tables."""

    def _edited(self, name: str, before: object, now: object) -> None:
        """React to an edit of a table: the entry ``name`` was ``before`` and is ``now``; None means no entry."""


class Table(OrderedDict[str, Any]):
    """A dict that tells its owner of edits, and does not keep it alive.

    Parameters
    ----------
    owner : TableOwner
        The Cell or block.
    entries : mapping or iterable of (str, object)
        The first entries, which the owner knows.
    """

    _owner: Any = None

    def __init__(self, owner: TableOwner, entries: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()):
        super().__init__(entries)
        self._owner = weakref.ref(owner)

    def __setitem__(self, name: str, value: Any) -> None:
        before = self.get(name)
        super().__setitem__(name, value)
        self._notify(name, before, value)

    def __delitem__(self, name: str) -> None:
        before = self.get(name)
        super().__delitem__(name)
        self._notify(name, before, None)

    def pop(self, name: str, *default: Any) -> Any:
        """Remove an entry and return its value, or the default if it is missing."""
        before = self.get(name)
        value = super().pop(name, *default)
        self._notify(name, before, None)
        return value

    def popitem(self, last: bool = True) -> tuple[str, Any]:
        """Remove the last entry, or the first, and give its name and value."""
        name, value = super().popitem(last)
        self._notify(name, value, None)
        return name, value

    def clear(self) -> None:
        """Remove all entries."""
        for name in list(self):
            del self[name]

    def move_to_end(self, key: str, last: bool = True) -> None:
        """Move an entry to one of the ends."""
        super().move_to_end(key, last)
        self._notify(key, self[key], self[key])

    def __reduce__(self) -> tuple[type, tuple[list[tuple[str, Any]]]]:
        return OrderedDict, (list(self.items()),)  # a copy is a plain dict, without an owner

    def _notify(self, name: str, before: object, now: object) -> None:
        owner = None if self._owner is None else self._owner()
        if owner is not None:
            owner._edited(name, before, now)
