"""Watchers of registrations: a registration about an operator drops the cached results derived from it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Protocol

from .cache import Recent
from .locks import lock

if TYPE_CHECKING:
    from .op import Op

__all__ = ["EDITION", "following", "keep", "renew", "tell", "watch"]


class Keeper(Protocol):
    """An object that keeps results derived from operators, as executors keep plans."""

    def on_register(self, op: Op | None) -> None:
        """Hear that something is registered about an operator that was used already; None where any may be another."""


_WATCHERS: weakref.WeakSet[Keeper] = weakref.WeakSet()
_FOLLOWING: list[Recent] = []
_WATCHING = lock()
#: How often something was registered about operators that had been used.
EDITION = [0]


def watch(keeper: Keeper) -> None:
    """Call ``keeper.on_register(op)`` when something is registered about an operator that was used already.

    Executors and compiled functions use it, since they cache results derived from operators.
    """
    with _WATCHING:
        _WATCHERS.add(keeper)


def following(limit: int, name: str) -> Recent:
    """A module's cache of results derived from operators; a registration about one of them empties the cache."""
    cache = Recent(limit, name)
    _FOLLOWING.append(cache)
    return cache


def keep(cache: Recent, key: object, value: object, edition: int) -> None:
    """Cache a value derived from the operators of an edition, unless another thread has registered something
    since."""
    cache.keep(key, value)
    if edition != EDITION[0]:
        cache.clear()


def tell(op: Op) -> None:
    """Tell the caches of results that depend on an operator that something was registered about it."""
    if op.used:
        renew(op)


def renew(op: Op | None = None) -> None:
    """Tell all caches of results that these may be others, by what was registered about an operator or by what else
    tensors can do."""
    EDITION[0] += 1
    for cache in _FOLLOWING:
        cache.clear()
    with _WATCHING:
        keepers = list(_WATCHERS)
    for keeper in keepers:
        keeper.on_register(op)
