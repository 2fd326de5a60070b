"""Shared memory for batches: the loader's process reads the arrays of a worker process without a copy.

The memory is anonymous: only file descriptors are sent between the processes, so nothing remains when a process ends
for any reason. A piece is reused for a later batch when no array in it is referenced any more.
"""

from __future__ import annotations

import io
import math
import mmap
import os
import pickle
import socket
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.ndarray import NDArray
from opreg.ndarray.context import cpu

from ..core.spec import Shape

__all__ = ["LoaderMemory", "WorkerMemory", "empty", "lend_to"]

#: Smallest size in bytes of an array in shared memory, at least a page; a smaller array is part of the message.
_LEAST = 1 << 12
#: Number of free pieces that a worker retains, besides those that fit the batch it makes.
_FREE = 8


class _MappedFile:
    """A memory-mapped piece of memory."""

    def __init__(self, number: int, descriptor: int, size: int):
        self.number, self.size = number, size
        self.bytes = np.frombuffer(mmap.mmap(descriptor, size), np.uint8)
        self.address = self.bytes.__array_interface__["data"][0]
        self.lease: Callable[[], _Lease | None] = _nobody

    def array(self, offset: int, shape: Shape, dtype: np.dtype, done: Callable[[_MappedFile], None]) -> np.ndarray:
        """An array in the piece; ``done`` is called when neither the array nor a view of it is referenced any more."""
        lease = _Lease(self, offset, math.prod(shape) * dtype.itemsize, done)
        self.lease = weakref.ref(lease)
        return np.asarray(lease).view(dtype).reshape(shape)


def _nobody() -> None:
    """The lease of a new piece: none."""


class _Lease:
    """The owner of the memory of the arrays in a piece; it is freed with the last of them."""

    def __init__(self, piece: _MappedFile, offset: int, size: int, done: Callable[[_MappedFile], None]):
        self.piece, self.done = piece, done
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1",
                                    "data": (piece.address + offset, False)}

    def __del__(self) -> None:
        self.done(self.piece)


def _piece_of(array: np.ndarray) -> _MappedFile | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base.piece if isinstance(base, _Lease) else None


def _descriptor(size: int) -> int:
    """The file descriptor of new anonymous memory."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("opreg batch", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


def _is_in_shared_memory(size: int, dtype: np.dtype) -> bool:
    """Whether an array of ``size`` bytes and this dtype is placed in shared memory."""
    return size >= _LEAST and dtype.names is None and not dtype.hasobject and hasattr(socket, "send_fds")


class WorkerMemory:
    """The worker's side: it makes pieces, fills them and takes them back."""

    def __init__(self) -> None:
        self._count = 0
        self._lent: dict[int, _MappedFile] = {}
        self._free: list[_MappedFile] = []
        self._new: dict[int, int] = {}  # the descriptors of new pieces by number, until they are sent
        self._dropped: list[int] = []

    def empty(self, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """An uninitialized array."""
        size = math.prod(shape) * dtype.itemsize
        if not _is_in_shared_memory(size, dtype):
            return np.empty(shape, dtype)
        return self._piece(size).array(0, shape, dtype, self._done)

    def _done(self, piece: _MappedFile) -> None:
        if piece.number not in self._lent:
            self._free.append(piece)

    def _piece(self, size: int) -> _MappedFile:
        fitting = [piece for piece in self._free if size <= piece.size <= 2 * size + mmap.PAGESIZE]
        if fitting:
            piece = min(fitting, key=lambda piece: piece.size)
            self._free.remove(piece)
            return piece
        if len(self._free) > _FREE:
            old = self._free.pop(0)
            descriptor = self._new.pop(old.number, None)
            if descriptor is None:
                self._dropped.append(old.number)
            else:
                os.close(descriptor)
        self._count += 1
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        descriptor = self._new[self._count] = _descriptor(size)
        return _MappedFile(self._count, descriptor, size)

    def has_lent(self, piece: _MappedFile) -> bool:
        """Whether a piece is lent to the loader."""
        return piece.number in self._lent

    def take_back(self, numbers: Sequence[int]) -> None:
        """Reuse pieces in which the loader references no array any more, unless an array here does."""
        for number in numbers:
            piece = self._lent.pop(number)
            if piece.lease() is None:
                self._free.append(piece)

    def pack(self, batch: object) -> tuple[bytes, list[tuple[int, int, int]], list[int]]:
        """Serializes a batch as a message.

        Returns
        -------
        message : bytes
        new : list of (number, size, descriptor)
            Pieces that are new to the loader.
        dropped : list of int
            Numbers of the pieces that are no longer used.
        """
        file = io.BytesIO()
        packer = _Packer(self, file)
        packer.dump(batch)
        for piece in packer.pieces.values():
            self._lent[piece.number] = piece
        new = [(number, self._lent[number].size, self._new.pop(number)) for number in packer.pieces
               if number in self._new]
        dropped, self._dropped = self._dropped, []
        return file.getvalue(), new, dropped


class _Packer(pickle.Pickler):
    """Pickles a batch, with large arrays as references into shared memory."""

    def __init__(self, memory: WorkerMemory, file: io.BytesIO):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._made = memory
        self._copies: list[np.ndarray] = []  # references to copies until their pieces are lent
        self.pieces: dict[int, _MappedFile] = {}

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        is_ours = isinstance(obj, NDArray)
        if not is_ours and type(obj) is not np.ndarray:
            return None
        array = obj._data if is_ours and isinstance(obj._data, np.ndarray) else obj.asnumpy() if is_ours else obj
        if not _is_in_shared_memory(array.nbytes, array.dtype):
            return None
        piece = _piece_of(array)
        if piece is None or not array.flags.c_contiguous or piece.number in self.pieces or self._made.has_lent(piece):
            copied = self._made.empty(array.shape, array.dtype)
            copied[...] = array
            array, piece = copied, _piece_of(copied)
            assert piece is not None
            self._copies.append(copied)
        self.pieces[piece.number] = piece
        return piece.number, array.__array_interface__["data"][0] - piece.address, array.shape, array.dtype, is_ours


class LoaderMemory:
    """The loader's side: the pieces of a worker, by number."""

    def __init__(self) -> None:
        self._pieces: dict[int, _MappedFile] = {}
        self.freed: deque[_MappedFile] = deque()

    def learn(self, number: int, descriptor: int, size: int) -> None:
        """Map a new piece, and close its descriptor."""
        try:
            self._pieces[number] = _MappedFile(number, descriptor, size)
        finally:
            os.close(descriptor)

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop pieces that the worker no longer uses."""
        for number in numbers:
            del self._pieces[number]

    def given_back(self) -> list[int]:
        """Numbers of the pieces in which no array is referenced any more, to be returned to the worker."""
        numbers = []
        while self.freed:
            numbers.append(self.freed.popleft().number)
        return numbers

    def piece(self, number: int) -> _MappedFile:
        """The piece with the given number."""
        return self._pieces[number]

    def unpack(self, message: bytes) -> Any:
        """Deserializes a message of ``Made.pack``."""
        return _Unpacker(self, io.BytesIO(message)).load()


class _Unpacker(pickle.Unpickler):
    """Unpickles a batch from a worker."""

    def __init__(self, lent: LoaderMemory, file: io.BytesIO):
        super().__init__(file)
        self._lent = lent

    def persistent_load(self, pid: Any) -> np.ndarray | NDArray:
        number, offset, shape, dtype, is_ours = pid
        array = self._lent.piece(number).array(offset, shape, dtype, self._lent.freed.append)
        return NDArray(array, cpu()) if is_ours else array


_MADE: list[WorkerMemory] = []


def lend_to(memory: WorkerMemory) -> None:
    """Let ``empty`` allocate in the shared memory of this worker from now on."""
    _MADE[:] = [memory]


def empty(shape: Shape, dtype: np.dtype) -> np.ndarray:
    """An uninitialized array for a batch, in shared memory if this process is a worker.

    Examples
    --------
    >>> empty((2, 3), np.dtype("float32")).shape
    (2, 3)
    """
    return _MADE[0].empty(shape, dtype) if _MADE else np.empty(shape, dtype)
