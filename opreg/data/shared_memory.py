"""Shared memory for batches: what a worker process fills is read where it lies by the process that has the loader.

Memory has no name anywhere, only descriptors that are sent from one process to the other, so whatever ends a process
leaves none behind. A piece is used again for a later batch when nobody has an array in it any more.
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

__all__ = ["Lent", "Made", "empty", "lend_to"]

#: Bytes from which on an array lies in shared memory, a page at least; a shorter one is part of the message.
_LEAST = 1 << 12
#: Free pieces that a worker holds beyond those that are of use to a batch it makes.
_FREE = 8


class _Piece:
    """A mapped piece of memory."""

    def __init__(self, number: int, descriptor: int, size: int):
        self.number, self.size = number, size
        self.bytes = np.frombuffer(mmap.mmap(descriptor, size), np.uint8)
        self.address = self.bytes.__array_interface__["data"][0]
        self.lease: Callable[[], _Lease | None] = _nobody

    def array(self, offset: int, shape: Shape, dtype: np.dtype, done: Callable[[_Piece], None]) -> np.ndarray:
        """An array in it; ``done`` is told when nobody has that array, or a view of it, any more."""
        lease = _Lease(self, offset, math.prod(shape) * dtype.itemsize, done)
        self.lease = weakref.ref(lease)
        return np.asarray(lease).view(dtype).reshape(shape)


def _nobody() -> None:
    """The lease of a new piece: none."""


class _Lease:
    """The owner of the memory of arrays in a piece; it ends with the last of them."""

    def __init__(self, piece: _Piece, offset: int, size: int, done: Callable[[_Piece], None]):
        self.piece, self.done = piece, done
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1",
                                    "data": (piece.address + offset, False)}

    def __del__(self) -> None:
        self.done(self.piece)


def _piece_of(array: np.ndarray) -> _Piece | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base.piece if isinstance(base, _Lease) else None


def _descriptor(size: int) -> int:
    """The descriptor of new memory without a name."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("opreg batch", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


def _lies_there(size: int, dtype: np.dtype) -> bool:
    """Whether an array of ``size`` bytes and this dtype goes to shared memory."""
    return size >= _LEAST and dtype.names is None and not dtype.hasobject and hasattr(socket, "send_fds")


class Made:
    """The side of a worker: pieces it makes, fills, and gets back."""

    def __init__(self) -> None:
        self._count = 0
        self._lent: dict[int, _Piece] = {}
        self._free: list[_Piece] = []
        self._new: dict[int, int] = {}  # number -> descriptor, until it is sent
        self._dropped: list[int] = []

    def empty(self, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """An array whose numbers are whatever is in memory."""
        size = math.prod(shape) * dtype.itemsize
        if not _lies_there(size, dtype):
            return np.empty(shape, dtype)
        return self._piece(size).array(0, shape, dtype, self._done)

    def _done(self, piece: _Piece) -> None:
        if piece.number not in self._lent:
            self._free.append(piece)

    def _piece(self, size: int) -> _Piece:
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
        return _Piece(self._count, descriptor, size)

    def has_lent(self, piece: _Piece) -> bool:
        """Whether the other side has a piece."""
        return piece.number in self._lent

    def take_back(self, numbers: Sequence[int]) -> None:
        """Use pieces again in which the loader's side has no array any more, unless somebody has one here."""
        for number in numbers:
            piece = self._lent.pop(number)
            if piece.lease() is None:
                self._free.append(piece)

    def pack(self, batch: object) -> tuple[bytes, list[tuple[int, int, int]], list[int]]:
        """A batch as a message.

        Returns
        -------
        message : bytes
        new : list of (number, size, descriptor)
            Pieces that the other side does not know.
        dropped : list of int
            Numbers of those that are used no more.
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
    """Pickles a batch; large arrays are places in shared memory."""

    def __init__(self, made: Made, file: io.BytesIO):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._made = made
        self._copies: list[np.ndarray] = []  # held until their pieces are lent
        self.pieces: dict[int, _Piece] = {}

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        is_ours = isinstance(obj, NDArray)
        if not is_ours and type(obj) is not np.ndarray:
            return None
        array = obj._data if is_ours and isinstance(obj._data, np.ndarray) else obj.asnumpy() if is_ours else obj
        if not _lies_there(array.nbytes, array.dtype):
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


class Lent:
    """The side of the loader: pieces that a worker made, by number."""

    def __init__(self) -> None:
        self._pieces: dict[int, _Piece] = {}
        self.freed: deque[_Piece] = deque()

    def learn(self, number: int, descriptor: int, size: int) -> None:
        """Map a piece that is new, and close its descriptor."""
        try:
            self._pieces[number] = _Piece(number, descriptor, size)
        finally:
            os.close(descriptor)

    def forget(self, numbers: Sequence[int]) -> None:
        """Let go of pieces that the worker uses no more."""
        for number in numbers:
            del self._pieces[number]

    def given_back(self) -> list[int]:
        """Numbers of the pieces in which nobody has an array any more, to be told to the worker."""
        numbers = []
        while self.freed:
            numbers.append(self.freed.popleft().number)
        return numbers

    def piece(self, number: int) -> _Piece:
        """A piece by its number."""
        return self._pieces[number]

    def unpack(self, message: bytes) -> Any:
        """The batch of a message of ``Made.pack``."""
        return _Unpacker(self, io.BytesIO(message)).load()


class _Unpacker(pickle.Unpickler):
    """Reads what a worker packed."""

    def __init__(self, lent: Lent, file: io.BytesIO):
        super().__init__(file)
        self._lent = lent

    def persistent_load(self, pid: Any) -> np.ndarray | NDArray:
        number, offset, shape, dtype, is_ours = pid
        array = self._lent.piece(number).array(offset, shape, dtype, self._lent.freed.append)
        return NDArray(array, cpu()) if is_ours else array


_MADE: list[Made] = []


def lend_to(made: Made) -> None:
    """Let ``empty`` make arrays in the memory of this worker from now on."""
    _MADE[:] = [made]


def empty(shape: Shape, dtype: np.dtype) -> np.ndarray:
    """An array for a batch, in shared memory where this process is a loader's worker.

    Examples
    --------
    >>> empty((2, 3), np.dtype("float32")).shape
    (2, 3)
    """
    return _MADE[0].empty(shape, dtype) if _MADE else np.empty(shape, dtype)
