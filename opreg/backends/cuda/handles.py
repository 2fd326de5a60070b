"""Handles of NVIDIA's libraries: one a device, kept as long as the library is."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["Handles"]


class Handles:
    """The handles of one library, which are destroyed with this object, though not when Python ends: CUDA may have
    ended by then.

    Parameters
    ----------
    destroy : callable
        Gives a handle back to the library.
    """

    def __init__(self, destroy: Callable[[Any], object]):
        self._made: dict[int, Any] = {}
        weakref.finalize(self, _destroy, destroy, self._made).atexit = False

    def of(self, device: int, create: Callable[[], Any]) -> Any:
        """The handle of a device, the current one; the first call for a device creates it."""
        if device not in self._made:
            self._made[device] = create()
        return self._made[device]


def _destroy(destroy: Callable[[Any], object], made: dict[int, Any]) -> None:
    for handle in made.values():
        destroy(handle)
