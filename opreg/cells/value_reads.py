"""Values that Python code reads from outside while a function is traced, and the comparisons made for them.

The contents of a value that was read are compared: elements, bytes, defaults, closure variables.
"""

from __future__ import annotations

import abc
import collections
import contextvars
import ctypes
import decimal
import enum
import functools
import gc
import io
import logging
import operator
import random
import sys
import threading
import types
import weakref
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.traced import TracedArray, TracedNDArray

from ..core.bytecode_names import Loads, loads
from ..core.comparisons import MOST_ELEMENTS
from ..core.held_values import ABSENT, BUFFERS, CONTAINERS, PLAIN, elements, package_of
from .attribute_reads import BOUND, AttributeReads, class_attribute, has_fields, is_of_ctypes
from .bailout import LeftToPython
from .buffers import BufferContainer
from .class_hooks import attributes_of, hookable
from .outside import SETTINGS, decimal_context, is_generator, is_opaque, state_of
from .tensor_base import TensorBase
from .user_code import LIBRARIES, is_standard, is_standard_code, is_user_code, is_user_module

__all__ = ["CACHED", "OF_CLASS", "ValueReads"]

#: Parts of opreg whose objects hold no settings of a program. Programs read attributes of the objects of all other
#: parts, such as optimizers and data iterators.
_ENGINE = tuple(f"opreg.{part}." for part in (
    "core", "elementwise", "backends", "builtin", "custom", "ndarray", "symbol", "cells", "distributed", "np"))
#: Names by which code reads an object's class.
OF_CLASS = frozenset({"type", "__class__"})
#: Names of exceptions by which code notices that a call has failed.
_MISTAKES = frozenset({"TypeError", "Exception", "BaseException"})
#: Packages whose objects hold arrays in attributes that no hook notes.
_COMPUTING = frozenset({"numpy", "scipy"})
#: Values whose contents are not compared.
_SIMPLE = frozenset({bool, int, float, complex, str, bytes, type(None)})
#: Types of objects that show the elements of a dict.
_VIEWS: tuple[type, ...] = (types.MappingProxyType, type({}.keys()), type({}.values()), type({}.items()))
_GETTERS = (operator.attrgetter, operator.methodcaller)
#: The type of functions that cache their results.
CACHED = type(functools.lru_cache(len))


def _is_above_engine(module: str) -> bool:
    """Whether a module is a part of opreg above the engine."""
    return module.startswith("opreg.") and not module.startswith(_ENGINE)


class ValueReads(AttributeReads):
    """Values that code reads during one trace, and their attributes."""

    @abc.abstractmethod
    def _read_code(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        """Note the names that code loads, and their values."""

    def _leave(self, reason: str) -> None:
        """Note that the function cannot be a graph, and end the trace before the code goes on, if it runs."""
        self.reason = self.reason or reason
        if self.leaves and self.reads.observer is self:
            self.left = True
            raise LeftToPython(self.reason, self.reason)

    def _close_cache(self, function: Any) -> None:
        """Record the results in a function's cache: if the cache is cleared, the function computes new ones."""
        for part in gc.get_referents(function):
            if type(part) is dict and part is not vars(function):
                self.comparisons.entries(part, f"the cache of {function.__name__}")

    def _read_setting(self, function: Any, *args: Any) -> None:
        """Note that a setting of the process was read: it is read again before each run."""
        values = [arg.value if isinstance(arg, enum.Enum) else arg for arg in args]
        call, title = f"{{}}({', '.join(map(repr, values))})", SETTINGS.get(function, function.__qualname__)
        if all(isinstance(value, PLAIN) for value in values):
            self.comparisons.path(function, f"repr({call})", repr(function(*values)), title + call[2:])
        else:
            self.comparisons.unseen[title + "()"] = None

    def _read_function(self, function: types.FunctionType, found: Loads | None = None) -> None:
        """Note what a running function has besides its code: closure variables, those that it loads from now on if
        ``found`` is given, and defaults."""
        title = function.__qualname__.rpartition("<locals>.")[2]
        self.comparisons.path(function, "{}.__code__", function.__code__, f"the code of {title}")
        self._refuse_changing({"__code__", "__defaults__", "__kwdefaults__"})
        for name in ("__defaults__", "__kwdefaults__"):
            value = getattr(function, name)
            if value is not None or not _MISTAKES.isdisjoint(self._names):
                self.comparisons.path(function, "{}." + name, value, f"a default of {title}")
                self._read_existing(value, f"a default of {title}")
        names_loaded = found or loads(function.__code__)
        outer = names_loaded.outer
        for cell, name in zip(function.__closure__ or (), function.__code__.co_freevars):
            if name in names_loaded.places["outer"]:
                self.comparisons.place(cell, name, f"the variable {name} that {title} has from outside")
            if name in outer:
                self._read_variable(cell, f"the variable {name} that {title} has from outside", name)
            elif cell != types.CellType():
                self._first_value((id(cell), name), cell.cell_contents, False)

    def _read_variable(self, cell: types.CellType, label: str, name: str = "") -> None:
        """Note that a closure variable is read."""
        empty = types.CellType()
        if cell == empty:  # not assigned yet
            self.comparisons.path(cell, "({0} == type({0})())", True, label)
            return
        value = self._first_value((id(cell), name), cell.cell_contents, True)
        self.comparisons.variable(cell, value, label)
        self._read_existing(value, label)

    def _read_existing(self, value: Any, label: str) -> None:
        """Record a read of a value that existed before the trace; if it is an object, also the attributes it has."""
        is_new, cls = id(value) not in self._compared, type(value)
        self.read(value, label)
        if issubclass(cls, CONTAINERS) and is_new and len(value) <= MOST_ELEMENTS:
            for element in elements(value):
                self._read_existing(element, label)
        elif is_user_module(cls.__module__) and not issubclass(cls, (BufferContainer, TensorBase, type)):
            self.comparisons.attributes(attributes_of(value), f"an attribute of {label}")
            if is_new and attributes_of(value) is None:
                self._add_holder(value)

    def read(self, value: Any, label: str) -> None:
        """Note that a value from outside was read: its contents are compared, too."""
        cls = type(value)
        if issubclass(cls, PLAIN) and not hookable(cls) and cls is not np.void:
            return
        self.note_use(value)
        if id(value) in self._compared or id(value) in self._ignored:
            return
        self._read.add(id(value))
        self._compared.add(id(value))
        if hookable(cls) and is_user_module(cls.__module__):
            self.comparisons.path(value, "type({})", cls, f"the class of {label}")
        if issubclass(cls, (np.ndarray, np.void)) and value.dtype.hasobject and value.size <= MOST_ELEMENTS:
            if self.comparisons.content(value, label):
                for element in elements(value):
                    self.read(element, label)
        elif issubclass(cls, CONTAINERS):
            if self.comparisons.content(value, label):
                for element in elements(value):
                    self.read(element, label)
            if issubclass(cls, collections.defaultdict):
                self.comparisons.path(value, "{}.default_factory", value.default_factory, label)
                self.read(value.default_factory, label)
        elif issubclass(cls, BUFFERS) or cls is np.void or (is_of_ctypes(cls) and not issubclass(cls, type)):
            self._read_buffer(value, label)
        elif issubclass(cls, functools.partial):
            for name in ("func", "args", "keywords"):
                self.comparisons.path(value, f"{{}}.{name}", getattr(value, name), label)
                self.read(getattr(value, name), label)
        elif issubclass(cls, (*BOUND, types.MethodType)):
            self.read(value.__self__, label)
        elif issubclass(cls, _VIEWS):
            for part in gc.get_referents(value):
                self.read(part, label)
        elif issubclass(cls, weakref.ReferenceType):
            self.comparisons.path(value, "{}()", value(), label)
            self.read(value(), label)
        elif issubclass(cls, types.CellType):
            self._read_variable(value, label)
        elif issubclass(cls, contextvars.ContextVar):
            self.comparisons.path(value, "{}.get(absent)", value.get(ABSENT), label)
            self.comparisons.place(value, value.name, label)
            try:
                self.read(value.get(), label)  # get() may return the default of a ContextVar
            except LookupError:
                pass
        elif issubclass(cls, io.IOBase):
            printed = value in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
            if not printed and not value.closed and value.readable():
                self._leave(f"it reads from a file, {label}")
        elif issubclass(cls, weakref.ProxyTypes):
            self.reason = self.reason or f"it reads through a weak proxy, {label}"
        elif issubclass(cls, Iterator) and not (
                is_user_module(cls.__module__) and isinstance(class_attribute(cls, "__next__")[1], types.FunctionType)):
            self._leave(f"it takes from an iterator, {label}")
        elif issubclass(cls, types.SimpleNamespace) or (
                issubclass(cls, Collection) and hasattr(value, "__dict__")
                and is_standard(cls.__module__)):
            self.read(vars(value), label)  # ChainMap, UserDict, os.environ of the standard library
        elif package_of(cls) in _COMPUTING and hasattr(value, "__dict__") and not isinstance(
                value, (type, types.ModuleType, types.FunctionType)):
            self.read(vars(value), label)  # polynomials, sparse matrices
        elif not hookable(cls):
            self._read_opaque(value, label)

    def ignore(self, container: Any) -> None:
        """Note that a container was made for the trace: its elements are not compared."""
        self._read.add(id(container))
        self._ignored.add(id(container))

    def _read_buffer(self, value: Any, label: str) -> None:
        """Note that memory was read: its bytes are compared, and the mask of a masked array."""
        self.comparisons.content(value, label)
        self._add_owner(value)
        if issubclass(type(value), ctypes._Pointer) and "contents" not in self._names:
            self.comparisons.unseen[f"what {label} points to"] = None
        if hasattr(value, "_mask"):
            self.comparisons.path(value, "{}._mask", value._mask, label)
            self.read(value._mask, label)

    def _read_opaque(self, value: Any, label: str) -> None:
        """Note that an object of a C type was read: its bytes are compared, if it has some, and its attributes."""
        cls = type(value)
        if issubclass(cls, BaseException) or has_fields(cls):
            self._add_owner(value)
        if not is_opaque(cls) or callable(value):
            return
        try:
            memoryview(value).nbytes  # noqa: B018
        except (TypeError, ValueError, BufferError):
            if hasattr(cls, "__getitem__") or hasattr(cls, "__len__"):
                self.comparisons.unseen[f"elements of {label}, a {cls.__name__}"] = None
        else:
            self.comparisons.content(value, label)

    def note_use(self, value: Any) -> None:
        """Note that code uses a value: reads of its attributes are noted from now on."""
        cls = type(value)
        if self.copies and issubclass(cls, NDArray) and cls is not TracedNDArray:
            self._read_elements(value)
        if cls in _SIMPLE or id(value) in self._used:
            return
        self._used.add(id(value))
        is_first = id(value) not in self._met
        self._met[id(value)] = value
        if issubclass(cls, np.void) and value.dtype.hasobject:
            self.read(value, "a record")  # reads of its fields are not noted one by one
        if issubclass(cls, BufferContainer):
            self.comparisons.path(cls, "{}.__call__", cls.__call__, f"{cls.__name__}.__call__")
        if cls is decimal.Decimal or value is decimal.Decimal or value is decimal:
            self._read_setting(decimal_context)
        if issubclass(cls, _GETTERS):
            self._read_by_any_name()
        elif cls is types.WrapperDescriptorType:
            self._names.add(value.__name__)  # a variable stands for object.__getattribute__
        elif issubclass(cls, types.ModuleType):
            self._add_owner(value)
            if value is random or value.__name__ == "numpy.random":
                self._names.add("random")
        elif issubclass(cls, type):
            self._use_class(value)
        elif issubclass(cls, types.FunctionType):
            self._use_function(value)
        elif issubclass(cls, (types.MethodType, types.BuiltinMethodType, classmethod, staticmethod)):
            self.note_use(getattr(value, "__self__", None))
            self.note_use(getattr(value, "__func__", None))
        elif issubclass(cls, functools.partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self.note_use(part)
        elif issubclass(cls, _VIEWS):
            for part in gc.get_referents(value):
                self.note_use(part)
        elif issubclass(cls, CONTAINERS):
            for element in elements(value) if len(value) <= MOST_ELEMENTS else ():
                self.note_use(element)
            if hookable(cls) and is_user_module(cls.__module__):
                self._hook_class(cls)
        elif is_generator(value):
            if is_first:
                self._generators.append((value, state_of(value)))
            if hookable(cls) and is_user_module(cls.__module__):
                self._hook_class(cls)
        elif issubclass(cls, TensorBase):
            if hasattr(value, "_version"):  # a Parameter, whose shape and dtype are recorded
                self.reads.visit(value)
            if getattr(value, "__dict__", None):
                self._add_owner(value)
        elif getattr(cls, "compiled", False) is True:
            self.comparisons.path(value, "{}.function", value.function, "what a compiled function compiles")
            self.note_use(value.function)
        elif issubclass(cls, BufferContainer) and not is_user_module(cls.__module__):
            self._read_layer(value)
            self._add_owner(value)
        elif hookable(cls) and (package_of(cls) not in LIBRARIES or _is_above_engine(cls.__module__)):
            self._use_instance(value)
        elif cls is threading.local or issubclass(cls, enum.Enum):
            self._add_owner(value)
        if cls is CACHED:
            self._caches.append(value)
            function = value.__wrapped__
            self.note_use(function)
            if isinstance(function, types.FunctionType) and is_user_code(function.__code__):
                self._read_code(function.__code__, function.__globals__)  # a cached function may not run in this trace

    def _use_class(self, cls: type) -> None:
        """Note that code uses a class."""
        if issubclass(type(cls), abc.ABCMeta):  # register() changes the result of isinstance()
            self._read_setting(abc.get_cache_token)
        if is_user_module(cls.__module__):
            self._add_owner(cls)
            self._classes[cls] = None
            self.note_use(type(cls))
            if issubclass(cls, tuple) and hasattr(cls, "_fields"):  # a named tuple has a generated constructor
                self.comparisons.path(cls, "{}.__new__.__defaults__", cls.__new__.__defaults__, cls.__name__)

    def _use_function(self, function: types.FunctionType) -> None:
        """Note that code uses a function written in Python."""
        code = function.__code__
        self._functions.setdefault(id(code), []).append(function)
        if (id(code), id(function.__globals__)) in self._scanned or not _MISTAKES.isdisjoint(
                self._names) or is_standard_code(code):  # code of the standard library, such as its decorators make
            self._read_function(function)
        self._add_owner(function)

    def _use_instance(self, value: Any) -> None:
        """Note that code uses an instance of a class whose attribute reads can be hooked."""
        cls = type(value)
        self._hook_class(cls)
        if is_user_module(cls.__module__):
            self._classes[cls] = None
        if not self._names.isdisjoint(OF_CLASS):
            self.note_use(cls)
        if issubclass(cls, logging.Logger):
            self._add_owner(value)

    def _read_elements(self, array: NDArray) -> None:
        """Note all elements of an array as read."""
        label, data = "an array", getattr(array, "_data", None)
        # the memory is not allocated yet, or belongs to a result of the trace
        if data is None or isinstance(data, TracedArray):
            return
        self.comparisons.path(array, "{}._data", data, label)
        if isinstance(data, np.ndarray):
            self.comparisons.content(data, label)
        else:
            self.comparisons.unseen[f"the numbers of {label} on {array._ctx}"] = None
