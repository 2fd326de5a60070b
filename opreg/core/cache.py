"""Caches with a limited number of entries, which ``caches()`` lists."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, ParamSpec, TypeVar

__all__ = ["Cache", "CacheReport", "Recent", "cached", "caches"]

P = ParamSpec("P")
R = TypeVar("R")

_RECENT: weakref.WeakSet[Recent] = weakref.WeakSet()
_CACHED: weakref.WeakSet[Any] = weakref.WeakSet()


class Recent(dict):
    """A cache of recently used values by key, with a limited number of entries. Threads may share one.

    The cache has two generations of entries; this dict is the younger one. When the younger generation is full, it
    becomes the older one, and the former older one is dropped. ``cache[key]`` is the value of a key, or None; for an
    often used key it costs as much as in a dict. The last ``limit / 2`` entries that were found or added are always in
    the cache.

    Parameters
    ----------
    limit : int
        The largest number of entries.
    name : str
        Its name in ``caches``; caches without a name are not listed.

    Examples
    --------
    >>> cache = Recent(4)
    >>> for key in "abacad":
    ...     if cache[key] is None:
    ...         cache.keep(key, key.upper())
    >>> sorted(cache.entries())
    ['A', 'C', 'D']
    """

    def __init__(self, limit: int, name: str = ""):
        super().__init__()
        self.limit, self.name = limit, name
        self._older: dict[object, Any] = {}
        if name:
            _RECENT.add(self)

    __hash__ = object.__hash__  # type: ignore[assignment]  # caches are compared by identity

    def __missing__(self, key: object) -> Any:
        """The value of a key from the older generation, or None."""
        value = self._older.get(key)
        if value is not None:
            self.keep(key, value)
        return value

    def keep(self, key: object, value: object) -> None:
        """Add a value; a full cache drops the entries that were unused for longest."""
        if len(self) >= max(self.limit // 2, 1):
            self._older = dict(self)
            super().clear()
        self[key] = value

    def entries(self) -> Iterator[Any]:
        """All cached values."""
        return iter({**self._older, **self}.values())

    def clear(self) -> None:
        """Drop all entries."""
        self._older = {}
        super().clear()


def cached(limit: int, typed: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator like ``functools.lru_cache``; ``caches()`` lists its caches.

    Examples
    --------
    >>> @cached(2)
    ... def double(x):
    ...     return 2 * x
    >>> double(4), double(4)
    (8, 8)
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        remembering = functools.lru_cache(limit, typed)(function)
        _CACHED.add(remembering)
        return remembering  # type: ignore[return-value]  # only for hashable arguments

    return decorate


class Cache(NamedTuple):
    """A cache, or all caches of one name: the name, the number of entries, and its limit."""

    name: str
    entries: int
    limit: int


class CacheReport(list[Cache]):
    """Caches, the fullest first; prints as a table."""

    def __str__(self) -> str:
        return "\n".join([f"{'entries':>7}  {'limit':>7}  cache", *(f"{cache.entries:7}  {cache.limit:7}  {cache.name}"
                                                                    for cache in self)])


def caches() -> CacheReport:
    """List the caches of the library: prepared calls, geometries, expressions, addresses.

    Returns
    -------
    CacheReport
        A row for each cache that is not empty.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.nd.exp(mx.nd.ones((2,)))
    >>> [each for each in mx.caches() if each.name == "prepared eager calls"][0].limit
    4096
    """
    rows = [(cache.name, len([*cache.entries()]), cache.limit) for cache in _RECENT]
    for cache in _CACHED:
        info, function = cache.cache_info(), cache.__wrapped__
        function = getattr(function, "func", function)  # the function of a functools.partial
        name = function.__qualname__.partition(".<locals>")[0]
        rows.append((f"{function.__module__.removeprefix('opreg.')}.{name}", info.currsize, info.maxsize))
    by_name: dict[str, Cache] = {}
    for name, entries, limit in rows:
        before = by_name.get(name, Cache(name, 0, 0))
        by_name[name] = Cache(name, before.entries + entries, before.limit + limit)
    return CacheReport(sorted([cache for cache in by_name.values() if cache.entries],
                              key=lambda cache: (-cache.entries, cache.name)))
