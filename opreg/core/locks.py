"""Locks that are free in a forked child process, which lacks the threads that held them."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

__all__ = ["lock", "rlock"]

_LOCKS: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> threading.Lock:
    """A lock for short blocks that call no users' code."""
    return _register(threading.Lock())


def rlock() -> Any:
    """A reentrant lock, also in a forked child process."""
    return _register(threading.RLock())


def _register(new: Any) -> Any:
    _LOCKS.add(new)
    return new


def _renew_locks() -> None:
    for each in tuple(_LOCKS):
        if not getattr(each, "_is_owned", bool)():  # the thread that forked releases its locks itself
            each._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
