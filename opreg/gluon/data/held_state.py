"""State of a dataset, which a loader compares with the state that its worker processes have."""

from __future__ import annotations

import functools
import types
import zlib
from typing import Any

import numpy as np

from opreg.ndarray import NDArray

from ...cells.user_code import is_user_code, is_user_module
from ...core.bytecode_names import loads, parts
from ...core.comparisons import MOST_ELEMENTS
from ...core.held_values import ABSENT, CONTAINERS, PLAIN, different, elements
from ..base_block import Block
from .dataset import Dataset

__all__ = ["HeldState"]

#: The beginning of the names of modules with datasets, samplers, and classes that call a function of the program.
_OWN = "opreg.gluon."
#: Elements of an array that are read at once.
_PART = 1 << 16


class HeldState:
    """The state of objects: attributes, elements, numbers of arrays, and what their code reads, for a later comparison.

    Elements of elements are compared in containers of up to 4,096 elements. Attributes are those of objects of the
    program, and of Gluon's classes. Arrays over files that processes share have no numbers of their own.

    Parameters
    ----------
    *values
        The objects.

    Examples
    --------
    >>> samples = [1, 2]
    >>> state = HeldState(samples, print)
    >>> before = state == HeldState(samples, print)
    >>> samples[0] = 3
    >>> before, state == HeldState(samples, print)
    (True, False)
    """

    def __init__(self, *values: Any):
        self._held: list[Any] = []
        waiting, seen = [*reversed(values)], set[int]()
        while waiting:
            value = waiting.pop()
            self._held.append(value)
            if not issubclass(type(value), PLAIN) and id(value) not in seen:
                seen.add(id(value))
                waiting += reversed(self._parts(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HeldState) and len(self._held) == len(other._held) and not any(
            map(different, self._held, other._held))

    __hash__ = object.__hash__

    def _parts(self, value: Any) -> list[Any]:
        """The values that an object consists of; those that are only compared by identity are held at once."""
        cls = type(value)
        if issubclass(cls, NDArray):
            return [value._data]
        if issubclass(cls, np.ndarray) and not value.dtype.hasobject:
            return [*value.shape, _checksum(value)]
        if issubclass(cls, (*CONTAINERS, np.ndarray)):
            every = elements(value)
            if len(every) > MOST_ELEMENTS:
                self._held += every
                return []
            return every
        if issubclass(cls, types.FunctionType):
            return _read_by(value)
        if issubclass(cls, types.MethodType):
            return [value.__func__, value.__self__]
        if issubclass(cls, (staticmethod, classmethod)):
            return [value.__func__]
        if issubclass(cls, property):
            return [value.fget]
        if issubclass(cls, functools.partial):
            return [value.func, *value.args, value.keywords]
        if issubclass(cls, type):
            return [*vars(value).values(), *value.__mro__[1:]] if is_user_module(value.__module__) else []
        if is_user_module(cls.__module__) or cls.__module__.startswith(_OWN) or issubclass(cls, (Dataset, Block)):
            return [cls, *getattr(value, "__dict__", {}).values()]
        return []


def _read_by(function: types.FunctionType) -> list[Any]:
    """Code, defaults, closure variables and globals that a function of the program reads."""
    code = function.__code__
    if not is_user_code(code):
        return []
    cells = [_content(cell) for cell in function.__closure__ or ()]
    names = [name for part in parts(code) for name, is_read in loads(part).scope.items() if is_read]
    read = [function.__globals__.get(name, ABSENT) for name in dict.fromkeys(names)]
    return [code, function.__defaults__, function.__kwdefaults__, *cells, *read]


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # no value yet
        return ABSENT


def _checksum(array: np.ndarray) -> int:
    """A number that changes with the elements of an array."""
    if isinstance(array, np.memmap) and array.mode != "c":
        return 0  # not compared: other processes may change the file
    number = 0
    part: Any
    for part in np.nditer(array, ["external_loop", "buffered", "zerosize_ok"], order="C", buffersize=_PART):
        number = zlib.crc32(part.tobytes(), number)
    return number
