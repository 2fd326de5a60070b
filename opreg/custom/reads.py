"""Reads of bodies: the values that the body of a traced operator reads beside its arguments, found in its byte code.

A traced operator promises that its body depends only on its arguments. Its trace is cached for later eager calls.
Before each of these, the helpers that it calls and the constants that it reads are compared: if a helper was defined
again, or a constant or an attribute of an object has changed, the body is traced again. A body that reads an object
that cannot be compared, for instance of a library in C, is not cached. The plan of a bound graph compares the same
values.
"""

from __future__ import annotations

import builtins
import math
import operator
import sys
import types
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.bytecode_names import HANDLERS, loads, parts
from ..core.cache import cached
from ..core.comparisons import Check, Comparisons
from ..core.held_values import ABSENT, CONTAINERS, HEAP_TYPE, PLAIN, elements, package_of
from ..core.op import Op
from ..core.setting_reads import READERS
from ..errors import is_ours
from .gradient import READS, UsersSchema

__all__ = ["BodyReads"]

#: The largest number of objects, functions, classes and modules that are compared. If there are more, for example all
#: objects of a program that a module refers to, values count as not comparable.
_MOST_OBJECTS = 1024
#: Pure built-in functions of Python.
_FUNCTIONS = frozenset(getattr(builtins, name) for name in (
    "len", "tuple", "list", "int", "float", "complex", "str", "bool", "range", "zip", "map", "filter", "sum", "max",
    "min", "abs", "sorted", "reversed", "enumerate", "dict", "set", "frozenset", "isinstance", "issubclass", "any",
    "all", "round", "divmod", "pow", "slice", "type", "super"))
#: Modules whose functions are pure, except those that draw random numbers.
_MODULES = frozenset({np, math, operator})
_RANDOM = frozenset({"random", "default_rng"})
#: Names of attributes that are not compared, and of functions that depend on settings or files.
_FIELDS = frozenset({"__annotations__", "__doc__", "__globals__", "__module__", "__mro__", "__name__", "__qualname__",
                     "__subclasses__", "__wrapped__", "array2string", "array_repr", "array_str",
                     "attrgetter", "decode", "encode", "flags", "get_printoptions", "getbufsize", "geterr",
                     "geterrcall", "load", "load_checkpoint", "methodcaller", "names"})
_MISTAKES = frozenset({"FloatingPointError"})
#: Packages whose classes are not users' classes.
_LIBRARIES = frozenset({"opreg", "numpy", "cupy", *sys.stdlib_module_names})
#: Classes of containers and arrays that hold nothing but elements.
_EXACT = frozenset({*CONTAINERS, np.ndarray})
#: Names in every class that are no methods or attributes of the user.
_OF_CLASSES = frozenset({"__module__", "__dict__", "__weakref__", "__doc__", "__annotations__", "__firstlineno__",
                         "__static_attributes__"})


@READS.provide
class BodyReads:
    """The values that functions read beside their arguments.

    Parameters
    ----------
    functions : iterable of functions and classes
        The body of an operator, and other functions that are traced with it; of a class, all methods.
    comparable : bool
        False if a value is read that cannot be compared.
    """

    def __init__(self, functions: Iterable[Any], comparable: bool = True):
        self._functions, self.comparable = tuple(functions), comparable
        self._read()

    def version(self) -> object:
        """An object that stays the same until a value that is read changes; None if such a value cannot be compared."""
        changed, version = self._seen  # both values are read at once, since another thread may replace the pair
        if changed is not None and changed() is not None:
            version = self._read()
        return version

    def check(self) -> Check | None:
        """A function that returns the name of a value that has changed since this call; None if no value can be
        compared."""
        self.version()
        return self._seen[0]

    def _read(self) -> object:
        """Read all values again, and return the new version."""
        places = _Places()
        for function in self._functions:
            if isinstance(function, type):
                places.kind(function)
            else:
                places.function(function, all_passed=True)
        places.visit_all()
        places.comparisons.close()
        version = object() if self.comparable and places.known and not places.comparisons.unseen else None
        self._seen = places.comparisons.compiled(), version
        return version


class _Places:
    """Variables, attributes and containers that are read, with their current values.

    Attributes
    ----------
    known : bool
        Whether all values that are read can be compared.
    """

    def __init__(self) -> None:
        self.comparisons, self.known = Comparisons(), True
        self._waiting: deque[tuple[Any, str, frozenset[str]]] = deque()
        self._seen: dict[int, object] = {}  # functions, objects and classes, by identity
        self._attributes: set[tuple[int, str]] = set()  # attributes of functions
        self._met: dict[tuple[int, frozenset[str]], object] = {}  # modules and containers, by the names that code reads

    def function(self, function: Any, all_passed: bool = False) -> None:
        """Record the reads of a user's function and of the functions that it calls. With ``all_passed`` its
        callers pass all keywords, so that defaults are not read."""
        if not isinstance(function, types.FunctionType):
            self.known = self.known and _is_constant(function)
            return
        if self._was_seen(function):
            return
        keywords = None if all_passed else function.__kwdefaults__
        complete = all_passed and function.__defaults__ is None  # no default is read
        defaults = (*(() if complete else ("__defaults__",)), *(() if all_passed else ("__kwdefaults__",)))
        for name in ("__code__", *defaults):
            self.comparisons.path(function, f"{{}}.{name}", getattr(function, name), f"{function.__name__}.{name}")
        if keywords:
            self.comparisons.content(keywords, f"{function.__name__}.__kwdefaults__")
        for value in (*(function.__defaults__ or ()), *(keywords or {}).values()):
            self.value(value, f"a default of {function.__name__}", frozenset())
        names = _names(function.__code__)
        self.known = self.known and names.isdisjoint(_FIELDS) and loads(function.__code__).texts.isdisjoint(HANDLERS)
        outer = loads(function.__code__).outer
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if name not in outer:  # the function assigns it and never reads it
                continue
            try:
                value = cell.cell_contents
            except ValueError:  # no value yet
                self.known = False
                continue
            self.comparisons.variable(cell, value, f"the variable {name}")
            self.value(value, f"the variable {name}", names)
        for name, level in {imported for part in parts(function.__code__) for imported in loads(part).imports}:
            self._read_import(name, level, names)
        for name in _globals(function.__code__):
            value = function.__globals__.get(name, ABSENT)
            self.comparisons.entry(function.__globals__, name, value, f"the global {name}")
            if value is ABSENT:
                value = getattr(builtins, name, ABSENT)
                if not isinstance(value, type):
                    self.comparisons.entry(vars(builtins), name, value, f"the built-in {name}")
            self.known = self.known and name not in _MISTAKES
            self.value(value, f"the global {name}", names)

    def value(self, value: Any, label: str, names: frozenset[str]) -> None:
        """Record, in ``visit_all``, the reads of a value by code that loads attributes of these names."""
        self._waiting.append((value, label, names))

    def visit_all(self) -> None:
        """Record the reads of all values that were found, and of those found meanwhile, up to a number of objects."""
        while self._waiting:
            if len(self._seen) + len(self._met) > _MOST_OBJECTS:
                self.known = False
                return
            self._visit(*self._waiting.popleft())

    def _was_seen(self, value: object) -> bool:
        """Whether a function, object or class was read before. If not, it is recorded as read."""
        if id(value) in self._seen:
            return True
        self._seen[id(value)] = value
        return False

    def _visit(self, value: Any, label: str, names: frozenset[str]) -> None:
        cls = type(value)  # objects may answer anything as their __class__, or raise an error
        if issubclass(cls, (types.ModuleType, *CONTAINERS)):  # these may contain themselves
            if (id(value), names) in self._met:
                return
            self._met[id(value), names] = value
        if issubclass(cls, types.FunctionType):
            if id(value.__code__) in READERS:
                self.known = False
            elif not is_ours(value.__code__):
                self.function(value)
                for name in names.intersection(vars(value)):
                    self.comparisons.path(value, "{}.__dict__", vars(value), label)
                    if (id(value), name) not in self._attributes:
                        self._attributes.add((id(value), name))
                        self.comparisons.entry(vars(value), name, vars(value)[name], f"{label}.{name}")
                        self.value(vars(value)[name], f"{label}.{name}", names)
        elif issubclass(cls, Op):
            schema = value.signature.schema
            for code in schema.traced_code() if value.traits.traced and isinstance(schema, UsersSchema) else ():
                (self.kind if isinstance(code, type) else self.function)(code)
        elif issubclass(cls, types.ModuleType):
            self._module(value, names)
        elif issubclass(cls, type) and not _is_constant(value) and value.__module__ != "builtins":
            self.kind(value)
        elif issubclass(cls, type) and any(isinstance(vars(cls).get(name), property) for name in names):
            self.known = False  # a property of a class of this library, as ``Context.default_ctx``, reads a setting
        elif issubclass(cls, (*CONTAINERS, np.ndarray)) and cls not in _EXACT:
            self.known = False
        elif issubclass(cls, CONTAINERS):
            self.known = self.comparisons.content(value, label) and self.known
            for element in elements(value):
                self.value(element, label, names)
        elif issubclass(cls, np.ndarray):
            self.known = self.comparisons.content(value, label) and not value.dtype.hasobject and self.known
        elif issubclass(cls, types.SimpleNamespace) or _is_plain(cls):
            self._object(value, label)
        elif not _is_constant(value):
            self.known = False

    def _object(self, value: Any, label: str) -> None:
        """Record all attributes of an object."""
        if self._was_seen(value):
            return
        attributes = vars(value)
        self.comparisons.path(value, "type({})", type(value), label)
        self.comparisons.path(value, "{}.__dict__", attributes, label)
        if not issubclass(type(value), types.SimpleNamespace):
            self.kind(type(value))
        self.value(attributes, label, frozenset())

    def kind(self, kind: type) -> None:
        """Record the members of a user's class, and the reads of its methods."""
        if self._was_seen(kind):
            return
        self.known = self.known and type(kind) is type
        self.comparisons.path(kind, "{}.__mro__", kind.__mro__, f"the class {kind.__name__}")
        for base in kind.__mro__:
            if base is object or package_of(base) == "opreg":
                continue
            members = vars(base)
            self.comparisons.path(base, "len({}.__dict__)", len(members), f"the class {base.__name__}")
            for name, member in members.items():
                if name in _OF_CLASSES:
                    continue
                label = f"{base.__name__}.{name}"
                self.comparisons.path(base, f"{{}}.__dict__.get({name!r})", member, label)
                for part in (member.fget, member.fset, member.fdel) if isinstance(member, property) else (
                        getattr(member, "__func__", member),):
                    self.value(part, label, frozenset())

    def _read_import(self, name: str, level: int, names: frozenset[str]) -> None:
        """Record the reads of a module that a function imports, by code that loads attributes of these names."""
        for path in (name.partition(".")[0], name):
            module = sys.modules.get(path)
            if level or not isinstance(module, types.ModuleType):
                self.known = False
            elif path.partition(".")[0] != "opreg":
                self.comparisons.entry(sys.modules, path, module, f"the module {path}")
                self._module(module, names)

    def _module(self, module: types.ModuleType, names: frozenset[str]) -> None:
        if module.__name__.partition(".")[0] == "opreg" and not names <= vars(module).keys():
            for name in names.difference(vars(module)).intersection(dir(module)):  # opened at the first use
                getattr(module, name)
        if module in _MODULES:
            self.known = self.known and (module is not np or names.isdisjoint(_RANDOM))
            for name in names.intersection(vars(module)):
                self.comparisons.entry(vars(module), name, vars(module)[name], f"{module.__name__}.{name}")
        elif module.__name__.partition(".")[0] == "opreg":
            for name in names.intersection(vars(module)):  # a program may replace these functions
                value = vars(module)[name]
                self.comparisons.entry(vars(module), name, value, f"{module.__name__}.{name}")
                if isinstance(value, (types.ModuleType, types.FunctionType, type)):
                    self.value(value, f"{module.__name__}.{name}", names)
        elif module.__name__.partition(".")[0] in sys.stdlib_module_names:
            self.known = False
        else:
            self.known = self.known and "__getattr__" not in vars(module)
            for name in names.intersection(vars(module)):
                value = vars(module)[name]
                self.comparisons.entry(vars(module), name, value, f"{module.__name__}.{name}")
                self.value(value, f"{module.__name__}.{name}", names)


@cached(1024)
def _is_plain(kind: type) -> bool:
    """Whether objects of a class hold only attributes that Python code set."""
    return hasattr(kind, "__dict__") and kind.__dictoffset__ != 0 and kind is not object and all(
        base is object or (base.__flags__ & HEAP_TYPE and package_of(base) not in _LIBRARIES)
        for base in kind.__mro__)


def _is_constant(value: Any) -> bool:
    """Whether no part of a value that a body could read may change."""
    cls = type(value)
    if issubclass(cls, PLAIN):
        return (issubclass(cls, (np.generic, np.dtype)) and not issubclass(cls, np.void)) or cls in PLAIN
    if issubclass(cls, type):
        return value in _FUNCTIONS or package_of(value) in ("opreg", "numpy") or (
            value.__module__ == "builtins" and issubclass(value, BaseException))
    if issubclass(cls, types.BuiltinFunctionType):
        return value in _FUNCTIONS or value.__module__ in ("math", "_operator")
    return issubclass(cls, (np.ufunc, type(np.sum)))


def _globals(code: types.CodeType) -> list[str]:
    return list(dict.fromkeys(name for part in parts(code) for name, is_read in loads(part).scope.items() if is_read))


def _names(code: types.CodeType) -> frozenset[str]:
    return frozenset(name for part in parts(code) for name in loads(part).names)
