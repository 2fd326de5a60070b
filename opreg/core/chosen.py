"""Values and choices that hold within a ``with`` statement."""

from __future__ import annotations

import threading
from typing import Any, Generic, TypeVar

__all__ = ["Chosen", "override"]

T = TypeVar("T")


class override:
    """A context manager that gives values to attributes of an object, and restores the values before, also after an
    interrupt.

    Examples
    --------
    >>> chosen = Chosen()
    >>> with override(chosen, value="numpy"):
    ...     chosen.value
    'numpy'
    >>> chosen.value is None
    True
    """

    __slots__ = ("_owner", "_values", "_before")

    def __init__(self, owner: Any, **values: Any):
        self._owner, self._values = owner, values

    def __enter__(self) -> None:
        self._before = {name: getattr(self._owner, name) for name in self._values}
        try:
            self._set(self._values)
        except BaseException:
            self._set(self._before)
            raise

    def __exit__(self, *_: object) -> None:
        self._set(self._before)

    def _set(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self._owner, name, value)


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

    def override(self, value: T) -> override:
        """Choose a value within a ``with`` statement."""
        return override(self, value=value)
