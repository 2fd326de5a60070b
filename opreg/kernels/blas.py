"""Work that multiplies matrices, shared among our threads with NumPy's BLAS held to one thread meanwhile.

BLAS that shares every product among threads of its own has them meet at the end of each, where the one waits for the
other without letting go of its processor. When other programs want the processors too, a product that takes a
millisecond then takes as long as the system lets them wait: convolutions have been measured 20 times slower. Parts of
a convolution that each copy, multiply and add meet once, and a thread that gets no processor does no part.

The OpenBLAS that NumPy brings, and others with threads of their own kind, can be told how many to use; where that is
not so, parts run one after the other and BLAS shares each product.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from .. import threads

__all__ = ["alone", "share"]

#: How OpenBLAS calls its functions, around "openblas_set_num_threads".
_NAMES = ("scipy_{}64_", "scipy_{}", "{}64_", "{}")

#: Multiplications up to which OpenBLAS wakes no thread, and up to which we do not.
SMALL, LEAST = 1 << 18, 1 << 24

# NumPy copies an operand that broadcasts along rows shorter than its buffer, by default 8192 numbers.
_BUFFER = 1024
_OWN_THREADS = 1  # what openblas_get_parallel says where they are not those of OpenMP


@functools.cache
def _functions() -> tuple[Callable, Callable] | None:
    """What tells and what sets the number of BLAS's threads, or None where they cannot be had."""
    try:
        # Looked for in what NumPy has loaded, not in a library of this name.
        library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
    except (AttributeError, OSError):
        return None
    for name in _NAMES:
        parallel, get, change = [getattr(library, name.format(f"openblas_{each}"), None)
                                 for each in ("get_parallel", "get_num_threads", "set_num_threads")]
        if parallel is not None and get is not None and change is not None:
            change.restype, change.argtypes = None, [ctypes.c_int]
            return (get, change) if parallel() == _OWN_THREADS else None
    return None


class _Hold:
    """BLAS in the calling thread alone, until the last who asked for it has ended."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.before = 0

    def __enter__(self) -> None:
        with self.lock:
            if not self.depth:
                get, change = _control()
                self.before = get()
                change(1)
            self.depth += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.depth -= 1
            if not self.depth:
                _, change = _control()
                change(self.before)

    def forked(self) -> None:
        """In a child nobody holds what threads of its parent held."""
        held, before = self.depth, self.before
        self.forget()
        if held:
            _, change = _control()
            change(before)


def _control() -> tuple[Callable, Callable]:
    """The two functions, or where there are none others that do nothing."""
    return _functions() or (lambda: 1, lambda count: None)


_HOLD = _Hold()
_FREE = nullcontext()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_HOLD.forked)


def alone(xp: Any, work: int) -> AbstractContextManager:
    """A context in which products of so many multiplications in all are not shared among BLAS's threads if that does
    not pay."""
    return _HOLD if SMALL < work < LEAST and xp is np and threads.count() > 1 else _FREE


def share(xp: Any, parts: Sequence[Callable[[], object]], work: int) -> None:
    """Call all functions, which must not depend on each other, some at the same time.

    They run one after the other where arrays are another device's, or, with BLAS in threads of its own, where there
    are fewer of them than threads. ``work`` is the number of multiplications in all of them; when there are few no
    other thread is woken.
    """
    if work >= LEAST and xp is np and len(parts) >= threads.count() > 1 and _functions() is not None:
        with _HOLD:
            threads.run(parts)
        return
    with alone(xp, work):
        before = np.setbufsize(_BUFFER)
        try:
            for part in parts:
                part()
        finally:
            np.setbufsize(before)
