"""Handles of hooks of blocks."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Self

from ..errors import ArgumentError

__all__ = ["HookHandle"]

_NUMBERS = itertools.count()


class HookHandle:
    """The handle of a registered hook: ``detach()``, or the end of a ``with`` statement, removes the hook."""

    def __init__(self) -> None:
        self._hooks: dict[int, Callable[..., Any]] = {}
        self._number = -1

    @classmethod
    def of(cls, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> HookHandle:
        """Register a hook."""
        if not callable(hook):
            raise ArgumentError(f"expected a function as a hook, got {type(hook).__name__}")
        handle = cls()
        handle.attach(hooks, hook)
        return handle

    def attach(self, hooks_dict: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        """Add a hook to a dict of hooks."""
        self._number = next(_NUMBERS)
        hooks_dict[self._number] = hook
        self._hooks = hooks_dict

    def detach(self) -> None:
        """Remove the hook, if it is still registered."""
        self._hooks.pop(self._number, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()
