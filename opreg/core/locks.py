"""Locks that a forked child finds free: the threads that held them are not there to let them go."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

__all__ = ["lock", "rlock"]

_LOCKS: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> threading.Lock:
    """A lock for a few lines that run nobody else's code."""
    return _kept(threading.Lock())


def rlock() -> Any:
    """A lock that the thread which holds it may take again, in a forked child as well."""
    return _kept(threading.RLock())


def _kept(new: Any) -> Any:
    _LOCKS.add(new)
    return new


def _forked() -> None:
    for kept in tuple(_LOCKS):
        if not getattr(kept, "_is_owned", bool)():  # the thread that forked releases its locks itself
            kept._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
