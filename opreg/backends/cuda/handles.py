"""Handles of NVIDIA's libraries: one per device, as long as the library is used."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["Handles"]


class Handles:
    """The handles of one library. They are destroyed with this object, but not at the end of Python, when CUDA may
    already be shut down.

    Parameters
    ----------
    destroy : callable
        Destroys a handle.
    """

    def __init__(self, destroy: Callable[[Any], object]):
        self._made: dict[int, Any] = {}
        weakref.finalize(self, _destroy, destroy, self._made).atexit = False

    def of(self, device: int, create: Callable[[], Any]) -> Any:
        """The handle for a device, which is the current one; the first call for a device creates it."""
        if device not in self._made:
            self._made[device] = create()
        return self._made[device]


def _destroy(destroy: Callable[[Any], object], handles: dict[int, Any]) -> None:
    for handle in handles.values():
        destroy(handle)
