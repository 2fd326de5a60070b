"""A guard for objects whose memory serves one run at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

from opreg.errors import OpError

__all__ = ["SingleThread"]


class SingleThread:
    """An object that one thread runs at a time. A second thread that enters meanwhile gets an ``OpError``."""

    def __init__(self) -> None:
        # Threads that run this, in the order they entered. The 0 in front keeps the memory of the list allocated.
        self._inside, self._process = [0], os.getpid()

    def _refuse(self, me: int) -> None:
        """Refuse a thread that entered after another, unless the other belongs to the parent process, from before a
        fork."""
        if self._process != os.getpid():
            self._process, self._inside[1:] = os.getpid(), [me]
            return
        self._inside.remove(me)
        raise OpError(f"{self!r}: another thread runs this executor, whose memory serves one thread at a time. Bind an "
                      f"executor for each thread (they may share arguments), or use a lock")

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """A block of code for one thread at a time. The same thread may enter again, as users' operators do."""
        inside, me = self._inside, get_ident()
        inside += (me,)  # no call, after which an interrupt could come before the block
        if inside[1] != me:
            self._refuse(me)
        try:
            yield
        finally:
            del inside[1]
