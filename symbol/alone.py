"""One at a time: what memory that serves one run at a time is guarded by."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

from opreg.errors import OpError

__all__ = ["OneAtATime"]


class OneAtATime:
    """An object that one thread runs at a time: another that comes in meanwhile gets an ``OpError``."""

    def __init__(self) -> None:
        # Threads that run this, in the order they came, behind a number that keeps the list's memory.
        self._inside, self._process = [0], os.getpid()

    def _refuse(self, me: int) -> None:
        """A thread has come in behind another. It stays out, unless the other was one of the process that forked."""
        if self._process != os.getpid():
            self._process, self._inside[1:] = os.getpid(), [me]
            return
        self._inside.remove(me)
        raise OpError(f"{self!r}: another thread runs this executor, whose memory serves one at a time. Bind one for "
                      "each thread, which may share arguments, or let them wait for each other")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A stretch of code for one thread at a time, which may come in again, as users' operators do."""
        inside, me = self._inside, get_ident()
        inside.append(me)
        if inside[1] != me:
            self._refuse(me)
        try:
            yield
        finally:
            del inside[1]
