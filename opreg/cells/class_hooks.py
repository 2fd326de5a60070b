"""Class hooks: during a trace, a ``__getattribute__`` is put into classes and reports the attributes that are read.

Outside of traces reading an attribute costs nothing more. Hooks are counted, since several threads may trace at once.
"""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Callable
from typing import Any

from ..core.held_values import ABSENT, HEAP_TYPE
from ..core.locks import lock
from .state import STATE

__all__ = ["attributes_of", "getter_of", "hook", "hookable", "runs_python", "size_of", "unhook"]

_LOCK = lock()
#: By class: the number of hooks, and the ``__getattribute__`` that the class itself defines, if any.
_HOOKED: dict[type, tuple[int, Any]] = {}
_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE of CPython


def hookable(cls: type) -> bool:
    """Whether a class can be hooked: a class made by Python code, whose instances have mutable attributes."""
    return bool(cls.__flags__ & HEAP_TYPE) and not cls.__flags__ & _IMMUTABLE and not issubclass(
        cls, (type, types.ModuleType, enum.Enum, BaseException))


def runs_python(cls: type) -> bool:
    """Whether a class has a ``__getattribute__`` written in Python, other than the hook."""
    getter = next(filter(None, map(getter_of, cls.__mro__)), None)
    return isinstance(getter, types.FunctionType)


def getter_of(cls: type) -> Any:
    """The ``__getattribute__`` that a class itself defines, without the hook; None if it defines none."""
    with _LOCK:  # another thread may have run only the first half of ``hook``
        return _HOOKED[cls][1] if cls in _HOOKED else cls.__dict__.get("__getattribute__")


def size_of(cls: type) -> int:
    """The number of a class's own attributes, not counting a hook that a trace in another thread has installed."""
    with _LOCK:
        return len(cls.__dict__) - (cls in _HOOKED and _HOOKED[cls][1] is None)


def attributes_of(owner: object, default: Any = None) -> Any:
    """The ``__dict__`` of an object, read past the hook of its class; the default for an object without one."""
    try:
        return object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return default


def hook(cls: type) -> type | None:
    """Report reads of attributes of a class's objects to the observer of the thread's trace, until ``unhook``.

    Returns
    -------
    type or None
        The class that holds the hook: ``cls``, or a base that is hooked already; None if the class refuses it.
    """
    with _LOCK:
        for base in cls.__mro__:
            if base in _HOOKED:
                count, getter = _HOOKED[base]
                _HOOKED[base] = count + 1, getter
                return base
            if "__getattribute__" in base.__dict__:
                break
        getter = cls.__dict__.get("__getattribute__")
        try:
            read: Any = cls.__getattribute__
            type.__setattr__(cls, "__getattribute__", _reporting_getattribute(read))
        except TypeError:
            return None
        _HOOKED[cls] = 1, getter
        return cls


def unhook(cls: type) -> None:
    """Undo one ``hook``, given its result."""
    with _LOCK:
        count, getter = _HOOKED.pop(cls)
        if count > 1:
            _HOOKED[cls] = count - 1, getter
        elif getter is None:
            type.__delattr__(cls, "__getattribute__")
        else:
            type.__setattr__(cls, "__getattribute__", getter)


def _reporting_getattribute(read: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """A ``__getattribute__`` that reads an attribute and reports it."""
    def __getattribute__(self: Any, name: str) -> Any:
        try:
            value = read(self, name)
        except AttributeError:
            if (observer := STATE.observer) is not None:
                observer.attribute(self, name, ABSENT, sys._getframe(1))
            raise
        if (observer := STATE.observer) is not None:
            observer.attribute(self, name, value, sys._getframe(1))
        return value

    return __getattribute__
