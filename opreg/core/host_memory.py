"""Memory of the host for large arrays, all at the same place within a page.

A processor tells loads from earlier stores by the lower bits of their addresses first: twelve on many, twenty of where
it is in memory on an Intel Xeon. If an array that is written lies some bytes ahead of one that is read, by these
bits, each load waits for an unrelated store, and a pass over both takes three to five times as long; vectors that
straddle lines of the cache take twice as long. NumPy's own arrays lie where the allocator has put them: large ones
16 bytes into a page, or anywhere. The middle of a page is far from there, and arrays that all begin in the middle
of one are no bytes or many from each other.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Hashable

import numpy as np

from ..typing import Array, DTypeLike
from .spec import Shape

__all__ = ["LARGE", "PAGE", "OwnWorkspace", "Workspace", "copied", "empty", "zeros"]

# Bytes from which on the place is looked after: over so many a pass takes longer than that.
LARGE = 1 << 16
# The size of a page, whose offsets are compared first, and the offset at which arrays begin: not near 16, and at
# the start of a line.
PAGE, _PLACE = 1 << 12, 1 << 11

_BYTE = np.dtype(np.uint8)


def empty(shape: Shape, dtype: np.dtype) -> np.ndarray:
    """An array of unspecified content.

    Examples
    --------
    >>> empty((1 << 16,), np.dtype(np.float32)).ctypes.data % 4096
    2048
    """
    return _placed(np.empty, shape, dtype)


def zeros(shape: Shape, dtype: np.dtype) -> np.ndarray:
    """An array of zeros."""
    return _placed(np.zeros, shape, dtype)


def copied(source: object, dtype: np.dtype | None = None) -> np.ndarray:
    """A copy of what NumPy makes an array of, in C order."""
    if not isinstance(source, np.ndarray) or source.nbytes < LARGE:
        return np.array(source, dtype, order="C")
    target = empty(source.shape, source.dtype if dtype is None else np.dtype(dtype))
    target[...] = source
    return target


class Workspace:
    """Memory for temporary arrays, which share it: of one name there is one at a time.

    Parameters
    ----------
    take : function of a number of bytes
        Gives memory, as an array of bytes; by default the host's.
    spare : int
        Up to so many bytes it takes four times what is asked for, so that it seldom takes again.

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
        """The array of a name, of unspecified content."""
        dtype = np.dtype(dtype)
        nbytes = math.prod(shape) * dtype.itemsize
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < nbytes:
            buffer = self._buffers[name] = self._take(max(nbytes, min(self._spare, 4 * nbytes), 1))
        return buffer[:nbytes].view(dtype).reshape(shape)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum([int(buffer.nbytes) for buffer in self._buffers.values()])


class OwnWorkspace(threading.local, Workspace):
    """A workspace that each thread has for itself.

    Examples
    --------
    >>> OwnWorkspace().array("slopes", (2, 3), "float32").shape
    (2, 3)
    """


def _placed(make: Callable[[Shape, np.dtype], np.ndarray], shape: Shape, dtype: np.dtype) -> np.ndarray:
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < LARGE or dtype.hasobject:
        return make(shape, dtype)
    raw = make((nbytes + PAGE,), _BYTE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(raw.data))
    return np.ndarray(shape, dtype, raw, (_PLACE - address) % PAGE)
