"""Copies of host arrays to a device through pinned memory; the host does not wait for the copy."""

from __future__ import annotations

import sys

import numpy as np

from opreg.typing import Array, ArrayModule

__all__ = ["Staging", "copier_to"]


class Staging:
    """Two buffers of pinned memory, used alternately. A buffer is written again only when the copy from it is done; the
    host waits for that only if it is two copies ahead."""

    __slots__ = ("_cuda", "_device", "_array", "_places", "_copied", "_turn")

    def __init__(self, xp: ArrayModule, array: Array, device: int):
        self._cuda, self._device, self._array, self._turn = xp.cuda, device, array, 0
        with xp.cuda.Device(device):
            self._places = [np.frombuffer(xp.cuda.alloc_pinned_memory(array.nbytes), np.uint8, array.nbytes)
                            .view(array.dtype).reshape(array.shape) for _ in range(2)]
            self._copied = [xp.cuda.Event(disable_timing=True) for _ in range(2)]

    def __call__(self, numbers: np.ndarray) -> None:
        self._turn = turn = 1 - self._turn
        place, copied = self._places[turn], self._copied[turn]
        with self._cuda.Device(self._device):
            copied.synchronize()
            place[...] = numbers
            stream = self._cuda.get_current_stream()
            self._array.set(place, stream)  # type: ignore[attr-defined]  # CuPy's
            copied.record(stream)

    def __del__(self) -> None:
        if not sys.is_finalizing():  # CUDA may have been shut down
            # waits for the copies: freed pinned memory may be used again at once
            for copied in getattr(self, "_copied", ()):
                copied.synchronize()


def copier_to(xp: ArrayModule, array: Array, device: int) -> Staging | None:
    """The ``Staging`` for an array; None if it is empty or not contiguous, or the module has no pinned memory."""
    if not hasattr(getattr(xp, "cuda", None), "alloc_pinned_memory") or not array.size or not array.flags.c_contiguous:
        return None
    return Staging(xp, array, device)
