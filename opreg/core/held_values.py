"""Values that Python code read, held to compare them with later ones: immutable ones by value, others by identity."""

from __future__ import annotations

import array
import collections
import types
import weakref
from collections.abc import Hashable
from typing import Any

import numpy as np

__all__ = ["ABSENT", "BUFFERS", "CONTAINERS", "HEAP_TYPE", "PLAIN", "HeldElements", "HeldValue", "bytes_of",
           "different", "elements", "package_of", "plain_key", "put_back"]


class _Absent:
    """The value of a missing name or attribute."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()

#: Immutable values, which are compared by type and value.
PLAIN = (bool, int, float, complex, str, bytes, type(None), types.EllipsisType, np.generic, np.dtype, _Absent)
#: Python's own classes of numbers and text: objects of one class with equal texts have equal values.
_BY_VALUE = frozenset({bool, int, float, complex, str, bytes})
HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE of CPython: a class that Python code has made, or a library of C
#: Containers whose elements are compared.
CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
#: Buffers whose bytes are compared.
BUFFERS = (np.ndarray, bytearray, array.array, memoryview)

def different(now: object, before: object) -> bool:
    """Whether a recorded place has changed its value. 1, 1.0 and True are different, and so are 0.0 and -0.0.

    Examples
    --------
    >>> different(2.0, 2.0), different(1, True), different(0.0, -0.0), different(float("nan"), float("nan"))
    (False, True, True, False)
    """
    if now is before:
        return False
    kind = type(before)  # objects may answer anything as their __class__, or raise an error
    if type(now) is not kind or not issubclass(kind, PLAIN):
        return True
    if kind in _BY_VALUE:
        return now != before if kind is str or kind is bytes else repr(now) != repr(before)
    return plain_key(now) != plain_key(before)


def plain_key(value: Any) -> Hashable:
    """A key of a plain value, an element of ``PLAIN``: equal keys mean the same class and value.

    An object of a class derived from numbers or text counts by its identity if it has attributes; so does a record that
    holds objects. The key holds no reference to it.

    Examples
    --------
    >>> plain_key(1.0) == plain_key(1.0), plain_key(1) == plain_key(True)
    (True, False)
    >>> class Size(int):
    ...     def __repr__(self):
    ...         return "a size"
    >>> plain_key(Size(1)) == plain_key(Size(1)), plain_key(Size(1)) == plain_key(Size(2))
    (True, False)
    """
    cls = type(value)
    if issubclass(cls, np.void):  # by bytes, since its text is rounded by NumPy's print options
        return (cls, id(value)) if value.dtype.hasobject else (cls, value.dtype, value.tobytes())
    if cls in _BY_VALUE or not cls.__flags__ & HEAP_TYPE:
        return cls, repr(value)
    base = next((base for base in cls.__mro__ if base in _BY_VALUE), None)
    if base is None or object.__getstate__(value) is not None:  # attributes, in a dict or slots
        return cls, id(value)
    return cls, base.__repr__(value)  # type: ignore[call-arg]  # not that of the class, which may say anything


class HeldValue:
    """The value of a place, to compare with later ones: by value if it is immutable, or else by identity.

    Attributes
    ----------
    value
        The value, or a weak reference to it.
    weak : bool
        Whether it is a weak reference, so that the object is not kept alive.
    """

    __slots__ = ("value", "weak")

    def __init__(self, value: Any):
        self.value, self.weak = value, False
        cls = type(value)
        lasting = issubclass(cls, (*PLAIN, type, types.ModuleType, types.CodeType, types.BuiltinFunctionType)) or (
            cls is types.FunctionType and value.__closure__ is None)
        if not lasting:
            try:
                self.value, self.weak = weakref.ref(value), True
            except TypeError:
                pass

    def same(self, now: object) -> bool:
        """Whether a later value is unchanged."""
        if self.weak:
            return now is not None and self.value() is now
        return not different(now, self.value)


def elements(container: Any) -> list[Any]:
    """The elements of a container; for a dict, its keys and then its values. Numbers in the fields of records count as
    the bytes of each field.

    Examples
    --------
    >>> elements({"a": 1}), elements((1, 2))
    (['a', 1], [1, 2])
    """
    if issubclass(type(container), (np.ndarray, np.void)):
        fields = container.dtype.fields
        if fields is None:
            return list(container.flat) if container.dtype.hasobject else [container.tobytes()]
        found: list[Any] = []
        for name, (dtype, *_) in fields.items():
            part = container[name]
            is_value = issubclass(type(container), np.void) and (
                dtype == np.dtype(object) or not issubclass(type(part), (np.ndarray, np.void)))
            found += [part] if is_value else elements(part)
        return found
    for base in type(container).__mro__:  # not the methods that a derived class overrides
        if base is dict or base is collections.OrderedDict:
            return [*base.keys(container), *base.values(container)]
        if base in CONTAINERS:
            return list(base.__iter__(container))
    raise TypeError(f"elements: expected a container, got {type(container).__name__}")


def package_of(cls: type) -> str:
    """The package that made a class; empty for a class made in C that names none."""
    name: object = cls.__module__
    return name.partition(".")[0] if isinstance(name, str) else ""


def bytes_of(buffer: Any) -> tuple[Any, ...]:
    """The bytes of a buffer, with the shape and dtype of an array."""
    if isinstance(buffer, (np.ndarray, np.void)):
        return buffer.tobytes(), buffer.shape, buffer.dtype
    return bytes(buffer), memoryview(buffer).nbytes


def put_back(container: Any, before: list[Any]) -> None:
    """Restore the elements of a container that ``elements`` returned.

    Examples
    --------
    >>> changed = {"a": 1, "b": 2}
    >>> put_back(changed, ["a", 3])
    >>> changed
    {'a': 3}
    """
    if isinstance(container, dict):
        half = len(before) // 2
        entries = dict(zip(before[:half], before[half:]))
        dict.clear(container)
        dict.update(container, entries)
    elif isinstance(container, list):
        list.__setitem__(container, slice(None), before)
    elif isinstance(container, set):
        set.clear(container)
        set.update(container, before)
    elif isinstance(container, collections.deque):
        collections.deque.clear(container)
        collections.deque.extend(container, before)


class HeldElements(list[HeldValue]):
    """The elements of a container, to compare with later ones."""

    def __init__(self, container: object):
        super().__init__(map(HeldValue, elements(container)))

    def same(self, container: object) -> bool:
        """Whether a container has the same elements in the same order."""
        now = elements(container)
        return len(now) == len(self) and all(map(HeldValue.same, self, now))
