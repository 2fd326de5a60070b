"""Memory of the host for large arrays, which all begin at the same offset in a page.

A processor first compares only the lower bits of the addresses of loads and earlier stores: twelve bits on many
processors, and twenty bits of the physical address on an Intel Xeon. If by these bits an array that is written lies a
few bytes ahead of one that is read, each load waits for an unrelated store (4K aliasing), and a pass over both takes
three to five times as long. Vectors that straddle cache lines take twice as long. NumPy's large arrays begin 16 bytes
into a page, or anywhere. The arrays made here begin in the middle of a page: far from such a place, and at the same
offset as each other.

The C library of Linux, glibc, gives the memory of freed arrays back to the system from a few megabytes on, and each new
array costs page faults: an eager training step on arrays of 4 MB takes five times as long as its arithmetic. So it is
asked to keep some of the memory for later arrays, unless the environment chooses its settings.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Callable, Hashable, Mapping

import numpy as np

from ..typing import Array, DTypeLike
from .spec import Shape

__all__ = ["LARGE", "PAGE", "OwnWorkspace", "Workspace", "copied", "empty", "keep_freed_memory",
           "zeros"]

# The size in bytes from which on arrays are aligned so; for smaller ones, a pass takes less time than the alignment.
LARGE = 1 << 16
# The size of a page, and the offset in a page at which arrays begin: far from 16, and at a cache line.
PAGE, _PLACE = 1 << 12, 1 << 11

# Bytes of freed memory that the process keeps for later arrays, and the size from which on the memory of an array is
# given back at once; glibc accepts no larger one.
_KEPT, _MOST = 1 << 27, 1 << 25
# The numbers of these settings, M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, in glibc.
_TRIM, _MAP = -1, -3

_BYTE = np.dtype(np.uint8)


def keep_freed_memory(environment: Mapping[str, str], library: object) -> bool:
    """Let a C library keep freed memory for later arrays, and return whether it does.

    It does not if it has no such settings, or if environment variables have set some of them.
    """
    chosen = any(name.startswith("MALLOC_") for name in environment) or "malloc" in environment.get(
        "GLIBC_TUNABLES", "")
    change = None if chosen else getattr(library, "mallopt", None)
    return change is not None and bool(change(_MAP, _MOST) and change(_TRIM, _KEPT))


if os.name == "posix":
    keep_freed_memory(os.environ, ctypes.CDLL(None))


def empty(shape: Shape, dtype: np.dtype) -> np.ndarray:
    """An array with undefined values.

    Examples
    --------
    >>> empty((1 << 16,), np.dtype(np.float32)).ctypes.data % 4096
    2048
    """
    return _aligned_array(np.empty, shape, dtype)


def zeros(shape: Shape, dtype: np.dtype) -> np.ndarray:
    """An array of zeros."""
    return _aligned_array(np.zeros, shape, dtype)


def copied(source: object, dtype: np.dtype | None = None) -> np.ndarray:
    """A copy, in C order, of any value that NumPy converts to an array."""
    if not isinstance(source, np.ndarray) or source.nbytes < LARGE:
        return np.array(source, dtype, order="C")
    target = empty(source.shape, source.dtype if dtype is None else np.dtype(dtype))
    target[...] = source
    return target


class Workspace:
    """Memory for temporary arrays. Arrays of the same name share memory, and are used one at a time.

    Parameters
    ----------
    take : function of a number of bytes
        Allocates memory, an array of bytes; by default on the host.
    spare : int
        Up to this number of bytes, four times the needed memory is allocated, so that later requests need no
        allocation.

    Examples
    --------
    >>> workspace = Workspace()
    >>> first = workspace.array("slopes", (2, 3), np.dtype(np.float32))
    >>> np.shares_memory(first, workspace.array("slopes", (2,), np.dtype(np.int64))), workspace.nbytes
    (True, 24)
    """

    def __init__(self, take: Callable[[int], Array] | None = None, spare: int = 0):
        self._take, self._spare = take or (lambda nbytes: empty((nbytes,), _BYTE)), spare
        self._buffers: dict[Hashable, Array] = {}

    def array(self, name: Hashable, shape: Shape, dtype: DTypeLike) -> Array:
        """The array of a name, with undefined values."""
        dtype = np.dtype(dtype)
        nbytes = math.prod(shape) * dtype.itemsize
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < nbytes:
            buffer = self._buffers[name] = self._take(max(nbytes, min(self._spare, 4 * nbytes), 1))
        return buffer[:nbytes].view(dtype).reshape(shape)

    @property
    def nbytes(self) -> int:
        """Allocated bytes."""
        return sum([int(buffer.nbytes) for buffer in self._buffers.values()])


class OwnWorkspace(threading.local, Workspace):
    """A workspace with separate memory for each thread.

    Examples
    --------
    >>> OwnWorkspace().array("slopes", (2, 3), "float32").shape
    (2, 3)
    """


def _aligned_array(make: Callable[[Shape, np.dtype], np.ndarray], shape: Shape, dtype: np.dtype) -> np.ndarray:
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < LARGE or dtype.hasobject:
        return make(shape, dtype)
    raw = make((nbytes + PAGE,), _BYTE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(raw.data))
    return np.ndarray(shape, dtype, raw, (_PLACE - address) % PAGE)
