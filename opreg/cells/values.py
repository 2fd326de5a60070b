"""Values that Python code reads from outside while a function is traced, and the comparisons made for them.

The contents of a value that was read are compared: elements, bytes, defaults, closure variables. Attributes are noted
as they are read where a class can be hooked (``class_hooks``); those of modules, classes, functions and C objects by
all names in the code that has run.
"""

from __future__ import annotations

import abc
import builtins
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
import os
import random
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.traced import TracedArray, TracedNDArray

from ..core.bytecode_names import COMPUTED, HANDLERS, Loads, loads, module_keys
from ..core.cache import cached
from ..core.comparisons import ABSENT, BUFFERS, CONTAINERS, MOST_ELEMENTS, PLAIN, Comparisons, elements, package_of
from .class_hooks import attributes_of, getter_of, hook, hookable, runs_python, size_of
from .outside import BY_NAME, SETTINGS, decimal_context, error_handlers, is_generator, is_opaque, state_of
from .parameter_container import ParameterContainer
from .reads import TABLES
from .tensor_base import TensorBase
from .trace import LeftToPython
from .user_code import LIBRARIES, is_standard, is_standard_code, is_user_code, is_user_module

__all__ = ["CACHED", "ReadLog", "Values", "imported_by", "class_attribute"]

#: Names by which code reads environment variables, as text or as bytes.
_ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb"})
_BUILT_IN = frozenset(name for name, value in vars(builtins).items() if isinstance(value, type))
#: Parts of opreg whose objects hold no settings of a program. Programs read attributes of the objects of all other
#: parts, such as optimizers and data iterators.
_ENGINE = tuple(f"opreg.{part}." for part in (
    "core", "elementwise", "backends", "builtin", "custom", "ndarray", "symbol", "cells", "distributed", "np"))
#: Attributes of a Parameter other than its values, and the text that compares them; a gradient is another tensor each
#: time.
_OF_PARAMETERS = {"grad": "getattr({}.grad, '_data', None)", "name": "{}.name", "requires_grad": "{}.requires_grad"}
#: Names by which code reads an object's class.
_OF_CLASS = frozenset({"type", "__class__"})
#: Classes of library members that are called and hold no state.
_CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, np.ufunc, type(np.sum), type(np.dot))
#: Names of exceptions by which code notices that a call has failed.
_MISTAKES = frozenset({"TypeError", "Exception", "BaseException"})
#: Attributes of frames and functions that lead to globals by other names than code loads.
_OF_FRAMES = frozenset({"__globals__", "f_builtins", "f_globals"})
#: Names by which code reads the state of warnings.
_WARNS = frozenset({"catch_warnings", "simplefilter", "warn", "warn_explicit"})
#: Names by which code reads all members of a module.
_LISTS = frozenset({"dir", "vars", "__dict__", "getmembers"})
#: Names of functions that read attributes by names that byte code does not tell.
_BY_ANY_NAME = frozenset({"attrgetter", "getmembers", "getmembers_static", "methodcaller"})
#: Attributes of functions and classes outside of their ``__dict__``.
_OF_FUNCTIONS = frozenset({"__name__", "__qualname__", "__doc__", "__annotations__", "__module__", "__code__",
                           "__defaults__", "__kwdefaults__", "__closure__"})
#: Attributes that importing gives to modules.
_OF_IMPORTS = frozenset({"__builtins__", "__cached__", "__file__", "__loader__", "__name__", "__package__", "__spec__"})
_OF_CLASSES = frozenset({"__name__", "__qualname__", "__module__"})
#: Attributes that library functions of a name read.
_READ_BY = {"getdoc": ("__doc__",), "getclosurevars": ("__closure__", "__globals__"),
            **dict.fromkeys(("getfullargspec", "getcallargs"), (
                "__code__", "__defaults__", "__kwdefaults__", "__annotations__")),
            **dict.fromkeys(("getsource", "getsourcelines", "isgeneratorfunction", "iscoroutinefunction"), (
                "__code__",))}
#: Attributes of arrays beside their elements, by the name that code reads.
_OF_ARRAYS = {"flags": "{}.flags.num", "names": "{}.dtype.names"}
#: Properties of members of an enumeration, and the attributes that they read.
_OF_ENUMS = {"name": "_name_", "value": "_value_"}
#: Attributes of every Cell, which change together and which few layers read.
_MODES = frozenset({"training", "requires_grad"})
#: Methods that are not functions of Python.
_OTHER_METHODS = (staticmethod, classmethod, functools.partialmethod, types.BuiltinFunctionType,
                  types.MethodDescriptorType, types.WrapperDescriptorType, operator.attrgetter)
#: Functions that read an attribute whose name is text.
_BY_TEXT = frozenset({"getattr", "hasattr", "vars", "eval", "operator", "attrgetter", "__dict__"})
#: Packages whose objects hold arrays in attributes that no hook notes.
_COMPUTING = frozenset({"numpy", "scipy"})
#: Values whose contents are not compared.
_SIMPLE = frozenset({bool, int, float, complex, str, bytes, type(None)})
_BOUND = (types.BuiltinMethodType, types.MethodWrapperType)
#: Types of objects that show the elements of a dict.
_VIEWS: tuple[type, ...] = (types.MappingProxyType, type({}.keys()), type({}.values()), type({}.items()))
_GETTERS = (operator.attrgetter, operator.methodcaller)
CACHED = type(functools.lru_cache(len))


def imported_by(code: types.CodeType, scope: dict[str, Any]) -> list[str]:
    """The full names of the modules that code with these globals imports."""
    package = (scope.get("__package__") or "").split(".")
    return [".".join(filter(None, (*package[:len(package) - level + 1], name))) if level else name
            for name, level in loads(code).imports]


class ReadLog(Protocol):
    """A place to note reads: attributes of Cells by their versions, others by comparisons."""

    comparisons: Comparisons
    observer: Any

    def visit(self, owner: Any) -> None:
        """Note that a Parameter is used."""

    def attribute(self, owner: Any, name: str, value: object) -> None:
        """Note that an attribute of a Cell is read."""


def class_attribute(cls: type, name: str) -> tuple[type | None, Any]:
    """The stored attribute of a class, and the class that stores it."""
    for base in cls.__mro__:
        member = base.__dict__.get(name, ABSENT)
        if member is not ABSENT:
            return base, member
    return None, ABSENT


def _is_above_engine(module: str) -> bool:
    """Whether a module is a part of opreg above the engine."""
    return module.startswith("opreg.") and not module.startswith(_ENGINE)


@cached(1024)
def _names_of(cls: type) -> frozenset[str]:
    """Names of attributes that the methods of a layer read."""
    between = cls.__mro__[:cls.__mro__.index(ParameterContainer) - 1]  # without Cell, from which all layers derive
    return frozenset(name for base in between for function in vars(base).values()
                     if isinstance(function, types.FunctionType) for name in loads(function.__code__).names)


@cached(1024)
def _is_of_ctypes(cls: type) -> bool:
    """Whether objects of a class are C memory of ctypes."""
    return any(base.__module__ == "_ctypes" and base.__name__ in (
        "_SimpleCData", "Array", "Structure", "Union", "_Pointer") for base in cls.__mro__)


@cached(1024)
def _has_fields(cls: type) -> bool:
    """Whether a C type has attributes that hold data."""
    return issubclass(cls, BaseException) or is_opaque(cls)


def _is_field(cls: type, name: str) -> bool:
    """Whether an attribute of a C type holds data."""
    member = class_attribute(cls, name)[1]
    return isinstance(member, (types.GetSetDescriptorType, types.MemberDescriptorType)) or (
        type(member).__module__ == "_ctypes" and hasattr(type(member), "__set__"))


def _is_descriptor(member: object) -> bool:
    """Whether reading a stored attribute of a class may run Python code, as for a property."""
    return hasattr(type(member), "__get__") and not isinstance(member, (
        types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.MemberDescriptorType,
        types.GetSetDescriptorType, types.WrapperDescriptorType, staticmethod, classmethod, type))


class Values:
    """Values and attributes that code reads during one trace.

    Parameters
    ----------
    reads : ReadLog
        The place where they are noted.

    Attributes
    ----------
    reason : str
        The reason why the function cannot be a graph, if it cannot.
    copies : bool
        Whether the trace has copies of the arrays that it meets, whose numbers are compared therefore.
    leaves : bool
        Whether the function runs as Python if it cannot be a graph. Then a trace ends before code takes from an
        iterator or a file, since it will take again.
    left : bool
        Whether the trace has ended so.
    drawn : list of (generator, state)
        Random generators that have drawn during the trace, with their states before it.
    """

    copies = False

    def __init__(self, reads: ReadLog, leaves: bool = False):
        self.reads, self.comparisons, self.reason, self.leaves, self.left = reads, reads.comparisons, "", leaves, False
        self.drawn: list[tuple[Any, Any]] = []
        self._users: dict[int, bool] = {}  # by identity of code: whether it is the user's
        self._codes: list[types.CodeType] = []  # kept alive, so that identities stay valid
        self._scanned: set[tuple[int, int]] = set()
        self._inner: set[int] = set()  # code that is defined in code that has run
        self._methods: set[tuple[int, int]] = set()  # code that has run, with the class of its first argument
        self._functions: dict[int, list[types.FunctionType]] = {}  # user's functions that code uses, by their code
        self._unnamed: dict[int, types.FunctionType] = {}  # user's functions that ran and that a library holds
        self._ended: list[types.FrameType] = []  # their frames, from their end to the next event
        self._names: set[str] = set()  # names of attributes that code reads
        self._texts: set[str] = set()  # texts that may name attributes, if code reads attributes by text
        self._by_text = False
        self._by_any_name = False
        self._updates: set[str] = set()  # names of attributes that code changes
        self._stores: set[str] = set()  # names of attributes that code sets
        self._holders: list[Any] = []  # objects without a watched ``__dict__``, on which code may set attributes
        self._owners: list[Any] = []
        self._classes: dict[type, None] = {}  # classes of the user's that code uses
        self._met: dict[int, object] = {}  # kept alive, so that identities stay valid
        self._read: set[int] = set()
        self._changed: dict[tuple[int, str], Any] = {}  # first values of places that were only written to so far
        self._noted: dict[tuple[int, str], bool] = {}  # attributes that were read, and whether in user code
        self._hooked: list[type] = []
        self._caches: list[Any] = []  # functions that remember what they answered
        self._generators: list[tuple[Any, Any]] = []  # with their states
        self._profile: Any = None
        self._outside: types.FrameType | None = None  # the frame in which the trace begins
        self._before: Any = None  # the observer of a trace around this one

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

    def _close_tensors(self) -> None:
        """Record the attributes that tensors lack and that code may read by text."""
        for value in tuple(self._met.values()):
            if not (isinstance(value, TensorBase) and isinstance(value, NDArray)):
                continue
            attributes: object = attributes_of(value)
            for name in self._texts if isinstance(attributes, dict) else ():
                if name not in attributes and class_attribute(type(value), name)[0] is None:
                    self.comparisons.missing(attributes, name, f"an attribute of a {type(value).__name__}")

    def _close_class(self, cls: type) -> None:
        """Note the bases of a class, and the number of its members, so that a new special method is seen."""
        label = f"the class {cls.__name__}"
        self.comparisons.path(cls, "{}.__mro__", cls.__mro__, label)
        for base in cls.__mro__:
            if is_user_module(base.__module__):
                self.comparisons.size(base, size_of, label)
                if getter_of(base) is not None:
                    self.comparisons.answer(base, getter_of, f"{cls.__name__}.__getattribute__")
                for name, member in tuple(vars(base).items()):  # special methods that are not seen as they run
                    if name.startswith("__") and isinstance(member, _OTHER_METHODS):
                        self.comparisons.path(base, f"{{}}.__dict__.get({name!r}, absent)", member, label)

    # ------------------------------------------------------------------------------------------- code and settings

    def _imported(self, name: str) -> None:
        """Note that a module is found by its name."""
        module = sys.modules.get(name)
        self.meet(module)
        if not isinstance(module, types.ModuleType):
            self.read(module, f"the module {name}")
        if module is not None and is_user_module(name):
            self.comparisons.entry(sys.modules, name, module, f"the module {name}")

    def _read_setting(self, function: Any, *args: Any) -> None:
        """Note that a setting of the process was read: it is read again before each run."""
        values = [arg.value if isinstance(arg, enum.Enum) else arg for arg in args]
        call = f"{{}}({', '.join(map(repr, values))})"
        if all(isinstance(value, PLAIN) for value in values):
            self.comparisons.path(function, f"repr({call})", repr(function(*values)), SETTINGS[function] + call[2:])
        else:
            self.comparisons.unseen[SETTINGS[function] + "()"] = None

    def _scan(self, code: types.CodeType, scope: dict[str, Any]) -> None:
        """Note the names that code loads, and their values."""
        self._inner.update(id(const) for const in code.co_consts if isinstance(const, types.CodeType))
        names_loaded = loads(code)
        self._texts.update(filter(str.isidentifier, names_loaded.texts))
        named = names_loaded.names.union(names_loaded.scope)
        self._by_text = self._by_text or not _BY_TEXT.isdisjoint(named)
        if not _BY_ANY_NAME.isdisjoint(named):
            self._read_by_any_name()
        read = (_READ_BY[name] for name in named & _READ_BY.keys())
        new = named.union(*read, self._texts if self._by_text else ()) - self._names
        self._names |= new
        for name, is_read in names_loaded.scope.items():
            value = scope.get(name, ABSENT)
            if value is not ABSENT or not hasattr(builtins, name):
                value = self._first((id(scope), name), value, is_read)
                if is_read:
                    label = f"the global {name}"
                    self.comparisons.entry(scope, name, value, label)
                    self._read_existing(value, label)
            elif is_read:
                self.comparisons.missing(scope, name, "a global like a built-in function")
                if name not in _BUILT_IN:
                    value = vars(builtins)[name]
                    self.comparisons.entry(vars(builtins), name, value, f"the built-in {name}")
                    self.read(value, f"the built-in {name}")
        self._sets(names_loaded, scope)
        self._updates.update(names_loaded.changes.values())
        for owner in tuple(self._owners):
            for name in names_loaded.changes.values():
                self._first((id(owner), name), getattr(owner, name, ABSENT), False)
            for name in new:
                self._owned(owner, name)
        if not new.isdisjoint(_OF_CLASS):
            for value in tuple(self._met.values()):
                if hookable(type(value)):
                        self.meet(type(value))
        for name in new & BY_NAME.keys():
            self._read_setting(BY_NAME[name])
        if not names_loaded.texts.isdisjoint(HANDLERS):
            self._read_setting(error_handlers)
        if not new.isdisjoint(_WARNS):
            self.read(warnings.filters, "warnings.filters")
        for name in new & _OF_FRAMES:
            self.comparisons.unseen[f"{name} of a frame or a function"] = None
        if not _ENVIRONMENT.isdisjoint(new):
            self.read(os.environ, "os.environ")
        for text in names_loaded.texts:
            self._imported(text)
        for name in imported_by(code, scope):
            if not isinstance(sys.modules.get(name), types.ModuleType):  # another object, whose attributes a hook notes
                self._imported(name)
        if "modules" in names_loaded.names:
            self._read_modules(module_keys(code, scope))
        functions = self._functions.get(id(code), [])
        if not functions and code.co_freevars and id(code) not in self._inner:
            functions = [referrer for referrer in gc.get_referrers(code) if isinstance(referrer, types.FunctionType)]
            if not functions and gc.get_freeze_count():
                self.reason = self.reason or f"gc.freeze() hides the variables that {code.co_name} has from outside"
        for function in functions:
            self._runs(function)

    def _sets(self, names_loaded: Loads, scope: dict[str, Any]) -> None:
        """Note the places outside of code that it sets."""
        texts = set(filter(str.isidentifier, names_loaded.texts))
        for name in names_loaded.places["global"].union(texts if "globals" in names_loaded.scope else ()):
            self.comparisons.place(scope, name, f"the global {name}")
        new = names_loaded.places["attribute"].union(texts if "setattr" in names_loaded.scope else ()) - self._stores
        self._stores |= new
        for owner in self._holders:
            self._set_on(owner, new)

    def _set_on(self, owner: Any, names: Iterable[str]) -> None:
        """Note attributes of an object that code may set."""
        for name in names:
            self.comparisons.place(owner, name, f"{getattr(owner, '__name__', type(owner).__name__)}.{name}")

    def _holds(self, owner: Any) -> None:
        """Note that code uses an object on which it may set attributes."""
        self._holders.append(owner)
        self._set_on(owner, self._stores)

    def _runs(self, function: types.FunctionType) -> None:
        """Note what a running function has besides its code: closure variables and defaults."""
        title = function.__qualname__.rpartition("<locals>.")[2]
        self.comparisons.path(function, "{}.__code__", function.__code__, f"the code of {title}")
        for name in ("__defaults__", "__kwdefaults__"):
            value = getattr(function, name)
            if value is not None or not _MISTAKES.isdisjoint(self._names):
                self.comparisons.path(function, "{}." + name, value, f"a default of {title}")
                self._read_existing(value, f"a default of {title}")
        names_loaded = loads(function.__code__)
        outer = names_loaded.outer
        for cell, name in zip(function.__closure__ or (), function.__code__.co_freevars):
            if name in names_loaded.places["outer"]:
                self.comparisons.place(cell, name, f"the variable {name} that {title} has from outside")
            if name in outer:
                self._of_variable(cell, f"the variable {name} that {title} has from outside", name)
            elif cell != types.CellType():
                self._first((id(cell), name), cell.cell_contents, False)

    def _of_variable(self, cell: types.CellType, label: str, name: str = "") -> None:
        """Note that a closure variable is read."""
        empty = types.CellType()
        if cell == empty:  # not assigned yet
            self.comparisons.path(cell, "({0} == type({0})())", True, label)
            return
        value = self._first((id(cell), name), cell.cell_contents, True)
        self.comparisons.variable(cell, value, label)
        self._read_existing(value, label)

    # ---------------------------------------------------------------------------------------------------- values

    def _first(self, place: tuple[int, str], value: Any, is_read: bool) -> Any:
        """The first value of a place; it is stored before the place is written to."""
        if is_read:
            return self._changed.pop(place, value)
        if place not in self._changed:
            self._changed[place] = value
            self.comparisons.remember(value, place[1])
        return value

    def _read_existing(self, value: Any, label: str) -> None:
        """Record a read of a value that existed before the trace; if it is an object, also the attributes it has."""
        is_new, cls = id(value) not in self._read, type(value)
        self.read(value, label)
        if issubclass(cls, CONTAINERS) and is_new and len(value) <= MOST_ELEMENTS:
            for element in elements(value):
                self._read_existing(element, label)
        elif is_user_module(cls.__module__) and not issubclass(cls, (ParameterContainer, TensorBase, type)):
            self.comparisons.attributes(attributes_of(value), f"an attribute of {label}")
            if is_new and attributes_of(value) is None:
                self._holds(value)

    def read(self, value: Any, label: str) -> None:
        """Note that a value from outside was read: its contents are compared, too."""
        cls = type(value)
        if issubclass(cls, PLAIN) and not hookable(cls) and cls is not np.void:
            return
        self.meet(value)
        if id(value) in self._read:
            return
        self._read.add(id(value))
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
        elif issubclass(cls, BUFFERS) or cls is np.void or (
                _is_of_ctypes(cls) and not issubclass(cls, type)):
            self.comparisons.content(value, label)
            self._add_owner(value)
            if issubclass(cls, ctypes._Pointer) and "contents" not in self._names:
                self.comparisons.unseen[f"what {label} points to"] = None
            if hasattr(value, "_mask"):  # attributes of a masked array
                self.comparisons.path(value, "{}._mask", value._mask, label)
                self.read(value._mask, label)
        elif issubclass(cls, functools.partial):
            for name in ("func", "args", "keywords"):
                self.comparisons.path(value, f"{{}}.{name}", getattr(value, name), label)
                self.read(getattr(value, name), label)
        elif issubclass(cls, (*_BOUND, types.MethodType)):
            self.read(value.__self__, label)
        elif issubclass(cls, _VIEWS):
            for part in gc.get_referents(value):
                self.read(part, label)
        elif issubclass(cls, weakref.ReferenceType):
            self.comparisons.path(value, "{}()", value(), label)
            self.read(value(), label)
        elif issubclass(cls, types.CellType):
            self._of_variable(value, label)
        elif issubclass(cls, contextvars.ContextVar):
            self.comparisons.path(value, "{}.get(absent)", value.get(ABSENT), label)
            self.comparisons.place(value, value.name, label)
            try:
                self.read(value.get(), label)  # perhaps its default
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
            self._reads_opaque(value, label)

    def _reads_opaque(self, value: Any, label: str) -> None:
        """Note that an object of a C type was read: its bytes are compared, if it has some, and its attributes."""
        cls = type(value)
        if issubclass(cls, BaseException) or _has_fields(cls):
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

    def meet(self, value: Any) -> None:
        """Note that code uses a value: reads of its attributes are noted from now on."""
        cls = type(value)
        if self.copies and issubclass(cls, NDArray) and cls is not TracedNDArray:
            self._numbers(value)
        if cls in _SIMPLE or id(value) in self._met:
            return
        self._met[id(value)] = value
        if issubclass(cls, np.void) and value.dtype.hasobject:
            self.read(value, "a record")  # nothing notes how code takes the objects from it
        if issubclass(cls, ParameterContainer):
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
            if issubclass(cls, abc.ABCMeta):  # register() changes the result of isinstance()
                self._read_setting(abc.get_cache_token)
            if is_user_module(value.__module__):
                self._add_owner(value)
                self._classes[value] = None
                self.meet(type(value))
                if issubclass(value, tuple) and hasattr(value, "_fields"):  # its constructor is generated
                    self.comparisons.path(value, "{}.__new__.__defaults__", value.__new__.__defaults__, value.__name__)
        elif issubclass(cls, types.FunctionType):
            self._functions.setdefault(id(value.__code__), []).append(value)
            if (id(value.__code__), id(value.__globals__)) in self._scanned or not _MISTAKES.isdisjoint(
                    self._names) or is_standard_code(value.__code__):  # made by decorators of the standard library
                self._runs(value)
            self._add_owner(value)
        elif issubclass(cls, (types.MethodType, types.BuiltinMethodType, classmethod, staticmethod)):
            self.meet(getattr(value, "__self__", None))
            self.meet(getattr(value, "__func__", None))
        elif issubclass(cls, functools.partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self.meet(part)
        elif issubclass(cls, CONTAINERS):
            for element in elements(value) if len(value) <= MOST_ELEMENTS else ():
                self.meet(element)
            if hookable(cls) and is_user_module(cls.__module__):
                self._hook(cls)
        elif is_generator(value):
            self._generators.append((value, state_of(value)))
            if hookable(cls) and is_user_module(cls.__module__):
                self._hook(cls)
        elif issubclass(cls, TensorBase):
            if hasattr(value, "_version"):  # a Parameter: its shape, its dtype
                self.reads.visit(value)
            if getattr(value, "__dict__", None):
                self._add_owner(value)
        elif getattr(cls, "compiled", False) is True:
            self.comparisons.path(value, "{}.function", value.function, "what a compiled function compiles")
            self.meet(value.function)
        elif issubclass(cls, ParameterContainer) and not is_user_module(cls.__module__):
            self._of_layer(value)
            self._add_owner(value)
        elif hookable(cls) and (package_of(cls) not in LIBRARIES or _is_above_engine(cls.__module__)):
            self._hook(cls)
            if is_user_module(cls.__module__):
                self._classes[cls] = None
            if not self._names.isdisjoint(_OF_CLASS):
                self.meet(cls)
            if issubclass(cls, logging.Logger):
                self._add_owner(value)
        elif cls is threading.local or issubclass(cls, enum.Enum):
            self._add_owner(value)
        if cls is CACHED:
            self._caches.append(value)
            function = value.__wrapped__
            self.meet(function)
            if isinstance(function, types.FunctionType) and is_user_code(function.__code__):
                self._scan(function.__code__, function.__globals__)  # it may not run again

    def _numbers(self, array: NDArray) -> None:
        """Note all numbers of an array."""
        label, data = "an array", getattr(array, "_data", None)
        if data is None or isinstance(data, TracedArray):  # it is being made, or made by the trace
            return
        self.comparisons.path(array, "{}._data", data, label)
        if isinstance(data, np.ndarray):
            self.comparisons.content(data, label)
        else:
            self.comparisons.unseen[f"the numbers of {label} on {array._ctx}"] = None

    # --------------------------------------------------------------------------- attributes that no hook can note

    def _add_owner(self, owner: Any) -> None:
        """Note that code uses a module, class, function or tensor: its attributes are read by the names in the code."""
        self._owners.append(owner)
        if issubclass(type(owner), (type, types.ModuleType, types.FunctionType, threading.local)):
            self._holds(owner)
        if self._by_any_name:
            self._read_by_name(owner, COMPUTED)
        for name in tuple(self._names):
            self._owned(owner, name)
        for name in self._updates - self._names:
            self._first((id(owner), name), getattr(owner, name, ABSENT), False)

    def _owned(self, owner: Any, name: str) -> None:
        if isinstance(owner, enum.Enum):
            name = _OF_ENUMS.get(name, name)
        if isinstance(owner, type):
            self._class_attribute(owner, name)
        elif isinstance(owner, ParameterContainer):
            name = "_flags" if name == "get_flags" else name
            if name in owner.__dict__:
                self._of_cell(owner, name, owner.__dict__[name], True)
        elif isinstance(owner, threading.local):
            if not hasattr(threading.local, name):
                value = getattr(owner, name, ABSENT)
                self.comparisons.path(owner, f"getattr({{}}, {name!r}, absent)", value, f"local.{name}")
                self.read(value, f"local.{name}")
        elif isinstance(owner, BaseException) and name == "__notes__":
            notes = getattr(owner, name, ABSENT)
            self.comparisons.path(owner, "getattr({}, '__notes__', absent)", notes, "notes of an exception")
            self.read(notes, "notes of an exception")
        elif isinstance(owner, TensorBase) and isinstance(class_attribute(type(owner), name)[1], property):
            if name in _OF_PARAMETERS and hasattr(owner, name):
                path = _OF_PARAMETERS[name]
                self.comparisons.path(owner, path, eval(path.format("owner")), f"a Parameter's {name}")
        elif isinstance(owner, np.ndarray):
            if name in _OF_ARRAYS:
                path = _OF_ARRAYS[name]
                self.comparisons.path(owner, path, eval(path.format("owner")), f"{name} of an array")
        elif isinstance(owner, logging.Logger):
            if name == "isEnabledFor":
                path = "repr(({0}.getEffectiveLevel(), {0}.manager.disable, {0}.disabled))"
                self.comparisons.path(owner, path, eval(path.format("owner")), f"the level of {owner!r}")
        elif isinstance(owner, types.FunctionType) and name in _OF_FUNCTIONS:
            self._field(owner, name)
        elif name in getattr(owner, "__dict__", ()) and name not in _OF_IMPORTS:
            value = owner.__dict__[name]
            library = isinstance(owner, types.ModuleType) and not is_user_module(owner.__name__)
            if library and value is sys.modules:
                return
            value = self._first((id(owner), name), value, True)
            label = f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"
            self.comparisons.entry(owner.__dict__, name, value, label)
            if isinstance(owner, types.FunctionType):
                self.comparisons.path(owner, "{}.__dict__", owner.__dict__, label)
            if not library or not isinstance(value, _CODE):
                self.read(value, label)
            elif isinstance(value, type):
                self.meet(value)
        elif isinstance(owner, types.ModuleType):
            if ("__getattr__" in owner.__dict__ and is_user_module(owner.__name__)) or (
                    self._by_text and name in self._texts):
                for attribute in (name, "__getattr__"):
                    self.comparisons.entry(owner.__dict__, attribute, owner.__dict__.get(attribute, ABSENT),
                                           f"{owner.__name__}.{attribute}")
            if name in _LISTS:
                self.comparisons.path(owner, "len({}.__dict__)", len(owner.__dict__), f"names in {owner.__name__}")
        elif _has_fields(type(owner)) and _is_field(type(owner), name):
            self._field(owner, name)

    def _read_by_name(self, owner: Any, name: Any) -> None:
        """Note attributes that code reads by a computed name, as ``getattr`` does: all where the name is unknown, and
        those of all owners where the owner is."""
        if owner is COMPUTED:
            for known_owner in tuple(self._owners):
                self._read_by_name(known_owner, name)
            return
        if isinstance(owner, type):
            names = [attribute for attribute in vars(owner) if not attribute.startswith("__")] if is_user_module(
                owner.__module__) else []
        elif isinstance(owner, types.FunctionType) or (
                isinstance(owner, types.ModuleType) and (isinstance(name, str) or is_user_module(owner.__name__))):
            names = list(vars(owner))
            if isinstance(name, str) and name not in vars(owner):
                self.comparisons.entry(vars(owner), name, ABSENT, f"{owner.__name__}.{name}")
        else:
            return
        for known_owner in [name] if isinstance(name, str) else names:
            self._owned(owner, known_owner)

    def _read_by_any_name(self) -> None:
        """Record all attributes of all owners, also of later ones: code reads attributes by unknown names."""
        if not self._by_any_name:
            self._by_any_name = True
            self._read_by_name(COMPUTED, COMPUTED)

    def _read_globals(self, scope: dict[str, Any], key: Any) -> None:
        """Record that code reads a dict of globals: one name, or all of them for an unknown name."""
        if key is COMPUTED:
            self.comparisons.path(scope, "len({})", len(scope), "the names of globals")
        for name in [each for each in scope if each != "__builtins__"] if key is COMPUTED else (key,):
            value = self._first((id(scope), name), scope.get(name, ABSENT), True)
            self.comparisons.entry(scope, name, value, f"the global {name}")
            self._read_existing(value, f"the global {name}")

    def _read_modules(self, keys: Collection[Any]) -> None:
        """Record that code reads ``sys.modules``: some names, or for an unknown name all modules of the user."""
        names = set(keys)
        if COMPUTED in names:
            names.remove(COMPUTED)
            names.update(filter(is_user_module, tuple(sys.modules)))
            self.comparisons.path(sys, "len({}.modules)", len(sys.modules), "the names in sys.modules")
        for name in names:
            module = sys.modules.get(name, ABSENT)
            self.comparisons.entry(sys.modules, name, module, f"sys.modules[{name!r}]")
            self.read(module, f"sys.modules[{name!r}]")

    def _slots(self, owner: object) -> None:
        """Compare all slots of an object of the user's: code that calls their descriptors reads past all hooks."""
        for base in type(owner).__mro__ if hookable(type(owner)) else ():
            if is_user_module(base.__module__):
                for name, member in tuple(vars(base).items()):
                    if isinstance(member, types.MemberDescriptorType):
                        value = getattr(owner, name, ABSENT)
                        label = f"{type(owner).__name__}.{name}"
                        self.comparisons.path(owner, f"getattr({{}}, {name!r}, absent)", value, label)
                        self.read(value, label)

    def _all_attributes(self, owner: Any) -> None:
        """Compare all attributes of an object, a class or a module of the user's: code that calls
        ``object.__getattribute__`` reads past all hooks."""
        cls = type(owner)
        if issubclass(cls, (type, types.ModuleType)):
            self._read_by_name(owner, COMPUTED)
        elif hookable(cls) and is_user_module(cls.__module__):
            attributes = attributes_of(owner, {})
            if issubclass(cls, ParameterContainer):
                for name in [each for each in attributes if not each.startswith("_")]:
                    self._of_cell(owner, name, attributes[name], True)
            elif self.comparisons.content(attributes, f"attributes of a {cls.__name__}"):
                for name, value in attributes.items():
                    if name in self._names or name in self._texts or not (
                            issubclass(type(value), (*CONTAINERS, *BUFFERS)) and len(value) > MOST_ELEMENTS):
                        self.read(value, f"{cls.__name__}.{name}")
            self._read_by_name(cls, COMPUTED)

    def _field(self, owner: Any, name: str) -> None:
        """Compare an attribute of a C type."""
        label = f"{type(owner).__name__}.{name}"
        try:
            value = getattr(owner, name)
        except (AttributeError, ValueError):  # nothing is there, or a pointer leads nowhere
            value = ABSENT
        if _is_of_ctypes(type(value)):  # another object each time, over the same memory
            self.read(value, label)
        elif isinstance(value, (*PLAIN, *CONTAINERS, types.FunctionType, types.CodeType)):
            path = f"{{}}.{name}"
            if isinstance(value, tuple) and not isinstance(owner, types.FunctionType):  # it may be new each time
                path, value = f"repr({path})", repr(value)
            self.comparisons.path(owner, path, value, label)
            self.read(value, label)

    def _class_attribute(self, cls: type, name: str) -> None:
        """Compare an attribute of a class, found in it or in a base of the user's."""
        if name == "__getattribute__":  # perhaps a hook
            return
        base, member = class_attribute(cls, name)
        label = f"{cls.__name__}.{name}"
        if name == "__subclasses__":
            self.comparisons.path(cls, "repr(type.__subclasses__({}))", repr(type.__subclasses__(cls)), label)
            self.meet(type.__subclasses__(cls))
        elif name in _OF_CLASSES:
            self._field(cls, name)
        if base is None or not is_user_module(base.__module__) or isinstance(member, types.GetSetDescriptorType):
            return  # Python's own __dict__ and __weakref__ of the objects never change; a class has others of its own
        if isinstance(member, classmethod):
            self.comparisons.path(cls, f"{{}}.{name}.__func__", member.__func__, label)
        elif _is_descriptor(member) and not isinstance(member, property):
            self.comparisons.path(base, f"{{}}.__dict__.get({name!r}, absent)", member, label)
            if is_standard(type(member).__module__) and hasattr(member, "__dict__"):  # a partial method
                self.read(vars(member), label)
        else:
            value = member.__func__ if isinstance(member, staticmethod) else self._first((id(cls), name), member, True)
            self.comparisons.path(cls, f"{{}}.{name}", value, label)
            self.read(value, label)

    def _hook(self, cls: type) -> None:
        hooked = hook(cls)
        if hooked is not None:
            self._hooked.append(hooked)

    # ----------------------------------------------------------------------------------- attributes that were read

    def _of_layer(self, owner: ParameterContainer) -> None:
        """Note that code uses a layer of opreg: its settings, and other attributes that its methods name."""
        cls = type(owner)
        self.comparisons.path(cls, "{}.construct", cls.construct, f"{cls.__name__}.construct")  # type: ignore[attr-defined]
        names = _names_of(cls)
        for name, value in owner.__dict__.items():
            if name in names or name in TABLES or not (name.startswith("_") or name in _MODES):
                self._of_cell(owner, name, value, False)

    def _of_cell(self, owner: ParameterContainer, name: str, value: Any, user: bool) -> None:
        """Note that an attribute of a Cell is read. Changes are counted, unless they bypass the Cell through its
        ``__dict__``."""
        self.reads.attribute(owner, name, value)
        if user and isinstance(value, PLAIN):
            if name in owner.__dict__ and _is_descriptor(class_attribute(type(owner), name)[1]):
                self._behind_code(owner, name, value, f"{owner.path}.{name}")
            else:
                self.comparisons.path(owner, f"{{}}.{name}", value, f"{owner.path}.{name}")
        elif (not name.startswith("_") or name == "_flags") and (user or isinstance(value, CONTAINERS)):
            self._read_existing(value, f"{owner.path}.{name}")

    def _behind_code(self, owner: Any, name: str, value: Any, label: str) -> None:
        """Compare an attribute in the ``__dict__`` of an object whose class computes such attributes otherwise: code of
        the program that a comparison must not run."""
        attributes, cls = attributes_of(owner), type(owner)
        self.comparisons.path(owner, "{}.__dict__", attributes, label)
        self.comparisons.entry(attributes, name, value, label)
        base, member = class_attribute(cls, name)
        if base is None:
            self.comparisons.path(cls, f"getattr({{}}, {name!r}, absent)", ABSENT, label)
            return
        self.comparisons.path(base, f"{{}}.__dict__.get({name!r}, absent)", member, label)
        self.comparisons.path(type(member), "getattr({}, '__set__', absent)", ABSENT, label)  # it would come first

    def _of_object(self, owner: Any, name: str, value: Any) -> None:
        """Note that user code reads an attribute of an object that is no Cell."""
        cls = type(owner)
        label = f"{cls.__name__}.{name}"
        if name == "__getstate__":  # the object is copied
            value = attributes_of(owner, ABSENT)
        elif name == "__dict__":
            self.comparisons.path(owner, "{}.__dict__", value, label)
        if value is not ABSENT:
            (self._read_existing if self.comparisons.is_outside(attributes_of(owner)) else self.read)(value, label)
        attributes, member = attributes_of(owner, {}), class_attribute(cls, name)[1]
        special = name.startswith("__") and name not in attributes and (
            value is ABSENT or not issubclass(type(value), PLAIN))
        if special or not name.isidentifier() or runs_python(cls):
            return
        if value is ABSENT:
            if class_attribute(cls, "__getattr__")[1] is ABSENT:
                self.comparisons.path(owner, f"getattr({{}}, {name!r}, absent)", ABSENT, label)
            else:  # reads in __getattr__ are noted, as long as the object has no such attribute
                self.comparisons.entry(attributes, name, ABSENT, label)
                self._class_attribute(cls, "__getattr__")
        elif _is_descriptor(member) and (name not in attributes or hasattr(type(member), "__set__")):
            self._class_attribute(cls, name)  # reads in its code are noted
            if not hasattr(type(member), "__set__"):  # an attribute of the object takes its place
                self.comparisons.entry(attributes, name, ABSENT, label)
            by_identity = is_standard(cls.__module__) and class_attribute(cls, "__eq__")[0] is object
            if by_identity and issubclass(type(value), PLAIN):
                # an instance of a class of Python's own, whose attributes are not recorded
                self.comparisons.path(owner, f"{{}}.{name}", value, label)
        elif name not in attributes and (
                (issubclass(type(value), _BOUND) and value.__self__ is owner) or _is_of_ctypes(type(value))):
            pass  # a method written in C, or a part of C's memory: another object each time
        elif name in attributes and (_is_descriptor(member) or class_attribute(cls, "__getattr__")[1] is not ABSENT):
            self._behind_code(owner, name, value, label)
        elif name in attributes or type(value) is not types.MethodType:
            self.comparisons.path(owner, f"{{}}.{name}", value, label)
        else:
            self.comparisons.path(owner, f"{{}}.{name}.__func__", value.__func__, label)
