"""Choices that hold in one thread within a ``with`` statement."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

__all__ = ["Chosen"]

T = TypeVar("T")


class Chosen(threading.local, Generic[T]):
    """A choice of each thread; None outside of all ``with`` statements. No context variable holds it, since operators
    run in a context of their own, see ``mode.quiet``.

    Examples
    --------
    >>> chosen = Chosen()
    >>> with chosen.override("numpy"):
    ...     chosen.value
    'numpy'
    """

    value: T | None = None

    @contextmanager
    def override(self, value: T) -> Iterator[None]:
        """Choose a value within a ``with`` statement."""
        before, self.value = self.value, value
        try:
            yield
        finally:
            self.value = before
