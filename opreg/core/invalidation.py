"""Invalidation of caches: a registration for an operator drops the cached results that depend on it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Protocol

from .cache import Recent
from .locks import lock
from .patches import RENEWALS

if TYPE_CHECKING:
    from .op import Op

__all__ = ["EDITION", "operator_cache", "keep", "renew", "renew_memory", "invalidate", "watch", "watch_memory"]


class CacheOwner(Protocol):
    """An object that caches results which depend on operators, as executors cache plans."""

    def on_register(self, op: Op | None) -> None:
        """Called when a kernel, a rule or a replacement is registered for an operator that was used already; with None
        where this may concern any operator."""


_WATCHERS: weakref.WeakSet[CacheOwner] = weakref.WeakSet()
_FOLLOWING: list[Recent] = []
_WATCHING = lock()
#: The number of registrations for operators that had been used.
EDITION = [0]


def watch(owner: CacheOwner) -> None:
    """Call ``owner.on_register(op)`` at each registration for an operator that was used already.

    Executors and compiled functions use it, since they cache results that depend on operators.
    """
    with _WATCHING:
        _WATCHERS.add(owner)


def operator_cache(limit: int, name: str) -> Recent:
    """A cache of results that depend on operators. Registering a rule or a kernel for a used operator empties the
    cache."""
    cache = Recent(limit, name)
    _FOLLOWING.append(cache)
    return cache


def keep(cache: Recent, key: object, value: object, edition: int) -> None:
    """Cache a value that was computed in an edition, unless another thread has registered something since."""
    cache.keep(key, value)
    if edition != EDITION[0]:
        cache.clear()


def invalidate(op: Op) -> None:
    """Invalidate caches after a registration for an operator."""
    if op.used:
        renew(op)


def renew(op: Op | None = None) -> None:
    """Invalidate caches of results that depend on an operator; without an operator, all of them, as after a change of
    a tensor's methods."""
    EDITION[0] += 1
    for cache in _FOLLOWING:
        cache.clear()
    with _WATCHING:
        owners = list(_WATCHERS)
    for owner in owners:
        owner.on_register(op)


class _MemoryOwner(Protocol):
    def on_new_memory(self, array: Any) -> None: ...


_OF_MEMORY: weakref.WeakSet[_MemoryOwner] = weakref.WeakSet()


def watch_memory(owner: _MemoryOwner) -> None:
    """Call ``owner.on_new_memory(array)`` whenever an NDArray gets other memory, which plans hold."""
    with _WATCHING:
        _OF_MEMORY.add(owner)


def renew_memory(array: Any) -> None:
    """Tell plans that an NDArray has got other memory."""
    with _WATCHING:
        owners = list(_OF_MEMORY)
    for owner in owners:
        owner.on_new_memory(array)


RENEWALS.append(renew)
