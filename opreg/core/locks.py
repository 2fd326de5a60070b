"""Locks that are free in a forked child process, which lacks the threads that held them."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

__all__ = ["free_in_child", "lock", "rlock"]

_LOCKS: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> threading.Lock:
    """A lock for short blocks that call no users' code."""
    return free_in_child(threading.Lock())


def rlock() -> Any:
    """A reentrant lock, also in a forked child process."""
    return free_in_child(threading.RLock())


def free_in_child(made: Any) -> Any:
    """Make a lock free in forked child processes from now on, also one of a library, such as that of a NumPy generator;
    returns it."""
    _LOCKS.add(made)
    return made


def _renew_locks() -> None:
    for each in tuple(_LOCKS):
        # a reentrant lock that the forking thread holds is released by this thread
        if not getattr(each, "_is_owned", bool)():
            each._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
