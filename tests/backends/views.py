"""Layouts of an array in the memory of a larger one, and checks that the memory around it is unchanged."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from opreg.core.addresses import address_of

__all__ = ["READ", "WRITTEN", "Place"]


def _room(dtype: np.dtype, *shape: int) -> np.ndarray:
    """An array of NaN, or of -1 for integers, which make results wrong if they are read."""
    return _filled(dtype, math.prod(shape), 0).reshape(shape)


def _filled(dtype: np.dtype, count: int, offset: int) -> np.ndarray:
    byte = b"\1" if dtype.kind == "b" else b"\xff"
    return np.frombuffer(bytearray(byte * (count * dtype.itemsize + offset)), dtype, count, offset)


def _block(dtype: np.dtype, *shape: int) -> np.ndarray:
    """A part of an array that is longer by one along each axis."""
    return _room(dtype, *[size + 1 for size in shape])[(slice(1, None),) * len(shape)]


def _matrices_transposed(dtype: np.dtype, *shape: int) -> np.ndarray:
    if len(shape) < 2:
        return _room(dtype, *shape)
    return _room(dtype, *shape[:-2], shape[-1], shape[-2]).swapaxes(-1, -2)


def _thin(dtype: np.dtype, *shape: int) -> np.ndarray:
    """Axes of length 1, with strides that lead outside of the memory."""
    array = _room(dtype, *shape)
    steps = [(0, -1, 8)[axis % 3] * dtype.itemsize if size == 1 else step
             for axis, (size, step) in enumerate(zip(shape, array.strides))]
    return np.ndarray(shape, dtype, array, 0, steps)


#: Writable arrays of a dtype and of a shape with at least one axis. The memory around them holds NaN, or -1 for
#: integers.
WRITTEN: dict[str, Callable[..., np.ndarray]] = {
    "columns": lambda dtype, *shape: _room(dtype, *shape[:-1], 2 * shape[-1] + 1)[..., 1:shape[-1] + 1],
    "rows": lambda dtype, *shape: _room(dtype, shape[0] + 2, *shape[1:])[1:-1],
    "block": _block,
    "every other column": lambda dtype, *shape: _room(dtype, *shape[:-1], 2 * shape[-1])[..., ::2],
    "every other row": lambda dtype, *shape: _room(dtype, 2 * shape[0], *shape[1:])[::2],
    "transposed": lambda dtype, *shape: _room(dtype, *shape[::-1]).T,
    "matrices transposed": _matrices_transposed,
    "first axis last": lambda dtype, *shape: np.moveaxis(_room(dtype, *shape[1:], shape[0]), -1, 0),
    "block transposed": lambda dtype, *shape: _block(dtype, *shape[::-1]).T,
    "rows reversed": lambda dtype, *shape: _room(dtype, *shape)[::-1],
    "columns reversed": lambda dtype, *shape: _room(dtype, *shape)[..., ::-1],
    "reversed": lambda dtype, *shape: np.flip(_room(dtype, *shape)),
    "thin": _thin,
    "one number on": lambda dtype, *shape: _room(dtype, math.prod(shape) + 1)[1:].reshape(shape),
    "unaligned": lambda dtype, *shape: _filled(dtype, math.prod(shape), 1).reshape(shape),
}


def _read_only(numbers: np.ndarray) -> np.ndarray:
    numbers.flags.writeable = False
    return numbers


#: Arrays that can only be read, made from elements of another array.
READ: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "row repeated": lambda numbers: np.broadcast_to(numbers.take([0], 0), numbers.shape),
    "column repeated": lambda numbers: np.broadcast_to(numbers.take([0], -1), numbers.shape),
    "windows": lambda numbers: _read_only(np.ndarray(
        numbers.shape, numbers.dtype, numbers.flatten(), 0, [numbers.itemsize] * numbers.ndim)),
    "read-only": lambda numbers: _read_only(numbers.copy()),
}


class Place:
    """An array in the memory of another one, which must not be written.

    Parameters
    ----------
    name : str
        Name of a layout in ``WRITTEN`` or ``READ``. With another name, or without axes or elements, the array has
        memory of its own.
    numbers : array
        Initial values, or for a layout in ``READ`` the array whose elements it has.
    memory : function
        Copies the bytes of an array to the memory of a device.
    """

    def __init__(self, name: str, numbers: np.ndarray, memory: Callable[[np.ndarray], np.ndarray] = lambda whole: whole
                 ):
        array = numbers.copy()
        if name in READ and numbers.size and numbers.ndim:
            array = READ[name](numbers)
        elif name in WRITTEN and numbers.size and numbers.ndim:
            array = WRITTEN[name](numbers.dtype, *numbers.shape)
            array[...] = numbers
        whole = array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        self._whole = memory(np.frombuffer(whole, np.uint8))
        offset = address_of(array) - address_of(whole)
        self.array: np.ndarray = np.ndarray(array.shape, array.dtype, self._whole, offset, array.strides)
        self.array.flags.writeable = array.flags.writeable
        assert self.array.shape == numbers.shape and self.array.dtype == numbers.dtype
        self._numbers, self._before = self.array.copy(), self._whole.copy()

    def halve(self) -> None:
        """Halves floating values if they may be written, so that a kernel that reads them too early gives wrong
        results."""
        if self.array.flags.writeable and self.array.dtype.kind == "f":
            self.array[...] *= 0.5

    def fill(self) -> None:
        """Writes the values again."""
        if self.array.flags.writeable:
            self.array[...] = self._numbers

    def found(self, what: str) -> np.ndarray:
        """Values after a computation; asserts that nothing else was written."""
        found = self.array.copy(order="C")
        self.fill()
        assert self._whole.tobytes() == self._before.tobytes(), f"{what}: memory beside the array was written"
        return found
