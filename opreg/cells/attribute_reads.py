"""Attributes that Python code reads from outside while a function is traced, and the comparisons made for them.

Attributes are noted as they are read where a class can be hooked (``class_hooks``); those of modules, classes,
functions and C objects by all names in the code that has run.
"""

from __future__ import annotations

import abc
import enum
import functools
import logging
import operator
import sys
import threading
import types
from collections.abc import Collection, Iterable
from typing import Any, Protocol

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ..core.bytecode_names import COMPUTED, loads, parts
from ..core.cache import cached
from ..core.comparisons import MOST_ELEMENTS, Comparisons
from ..core.held_values import ABSENT, BUFFERS, CONTAINERS, PLAIN
from ..custom.first_run import AssignCheck
from .buffers import BufferContainer
from .class_hooks import attributes_of, getter_of, hook, hookable, runs_python, size_of
from .outside import is_opaque
from .reads import OF_CELLS, TABLES
from .tensor_base import TensorBase
from .user_code import is_standard, is_user_module

__all__ = ["BOUND", "AttributeReads", "ReadLog", "class_attribute", "has_fields", "is_of_ctypes"]

#: Attributes of a Parameter other than its values, and the text that compares them; a gradient is another tensor each
#: time.
_ATTRIBUTES_OF_PARAMETERS = {"grad": "getattr({}.grad, '_data', None)", "name": "{}.name",
                             "requires_grad": "{}.requires_grad"}
#: Classes of library members that are called and hold no state.
_CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, np.ufunc, type(np.sum), type(np.dot))
#: Names by which code reads all members of a module.
_LISTS = frozenset({"dir", "vars", "__dict__", "getmembers"})
#: Attributes of functions and classes outside of their ``__dict__``.
_ATTRIBUTES_OF_FUNCTIONS = frozenset({"__name__", "__qualname__", "__doc__", "__annotations__", "__module__",
                                      "__code__", "__defaults__", "__kwdefaults__", "__closure__"})
#: Attributes that importing gives to modules.
_ATTRIBUTES_OF_IMPORTS = frozenset({"__builtins__", "__cached__", "__file__", "__loader__", "__name__", "__package__",
                                    "__spec__"})
_ATTRIBUTES_OF_CLASSES = frozenset({"__name__", "__qualname__", "__module__"})
#: Attributes of arrays beside their elements, by the name that code reads.
_ATTRIBUTES_OF_ARRAYS = {"flags": "{}.flags.num", "names": "{}.dtype.names"}
#: Properties of members of an enumeration, and the attributes that they read.
_ATTRIBUTES_OF_ENUMS = {"name": "_name_", "value": "_value_"}
#: Attributes of every Cell, which change together and which few layers read.
_MODES = frozenset({"training", "requires_grad"})
#: Methods that are not functions of Python.
_OTHER_METHODS = (staticmethod, classmethod, functools.partialmethod, types.BuiltinFunctionType,
                  types.MethodDescriptorType, types.WrapperDescriptorType, operator.attrgetter)
#: Types of functions that a program puts into an object in place of a method.
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)
#: Types of methods of C objects.
BOUND = (types.BuiltinMethodType, types.MethodWrapperType)


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


def _names_of(cls: type) -> set[str]:
    """Names of attributes that the methods of a layer read, those of Cell and its bases left out."""
    between = cls.__mro__[:cls.__mro__.index(BufferContainer) - 2]
    return {"construct"}.union(*[_names_in(function) for base in between for function in vars(base).values()
                                 if isinstance(function, types.FunctionType)])


def _names_in(function: types.FunctionType) -> set[str]:
    return set().union(*[loads(part).names for part in parts(function.__code__)])


def _run_by(cls: type) -> dict[str, types.FunctionType]:
    """Methods that a call of a layer may run: ``construct``, and methods that these name."""
    found: dict[str, types.FunctionType] = {}
    waiting = ["construct"]
    while waiting:
        name = waiting.pop()
        method = class_attribute(cls, name)[1]
        if isinstance(method, types.FunctionType) and name not in found:
            found[name] = method
            waiting += _names_in(method)
    return found


@cached(1024)
def is_of_ctypes(cls: type) -> bool:
    """Whether objects of a class are C memory of ctypes."""
    return any(base.__module__ == "_ctypes" and base.__name__ in (
        "_SimpleCData", "Array", "Structure", "Union", "_Pointer") for base in cls.__mro__)


@cached(1024)
def has_fields(cls: type) -> bool:
    """Whether a C type has attributes that hold data."""
    return issubclass(cls, BaseException) or is_opaque(cls)


def _is_field(cls: type, name: str) -> bool:
    """Whether an attribute of a C type holds data."""
    member = class_attribute(cls, name)[1]
    return isinstance(member, (types.GetSetDescriptorType, types.MemberDescriptorType)) or (
        type(member).__module__ in ("_ctypes", "ctypes") and hasattr(type(member), "__set__"))  # ctypes since 3.14


def _is_descriptor(member: object) -> bool:
    """Whether reading a stored attribute of a class may run Python code, as for a property."""
    return hasattr(type(member), "__get__") and not isinstance(member, (
        types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.MemberDescriptorType,
        types.GetSetDescriptorType, types.WrapperDescriptorType, staticmethod, classmethod, type))


class AttributeReads(abc.ABC):
    """Attributes that code reads during one trace.

    Parameters
    ----------
    reads : ReadLog
        The place where they are noted.

    Attributes
    ----------
    reason : str
        The reason why the function cannot be a graph, if it cannot.
    copies : bool
        Whether the trace has copies of the arrays that it meets, so that their elements are compared.
    leaves : bool
        Whether the function runs as Python if it cannot be a graph. Then a trace ends before code reads from an
        iterator or a file, since the Python run reads again.
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
        self._inner: set[int] = set()  # code that is defined in code that has run
        self._functions: dict[int, list[types.FunctionType]] = {}  # user's functions that code uses, by their code
        self._ran: dict[int, types.FunctionType] = {}  # user's functions that ran and were made before
        # frames of these functions, from the end of a function to the next event
        self._ended: list[types.FrameType] = []
        self._updates: set[str] = set()  # names of attributes that code changes
        self._stores: set[str] = set()  # names of attributes that code sets
        # objects without a watched ``__dict__``, on which code may set attributes, by identity
        self._holders: dict[int, Any] = {}
        self._classes: dict[type, None] = {}  # classes of the user's that code uses
        self._met: dict[int, object] = {}  # kept alive, so that identities stay valid
        self._read: set[int] = set()
        self._ignored: set[int] = set()  # objects whose contents are not compared
        # first values of places that were written to and not read so far
        self._changed: dict[tuple[int, str], Any] = {}
        self._hooked: list[type] = []
        self._caches: list[Any] = []  # functions that cache their results
        self._generators: list[tuple[Any, Any]] = []  # with their states
        self._profile: Any = None
        self._outside: types.FrameType | None = None  # the frame in which the trace begins
        self._before: Any = None  # the observer of a trace around this one
        self._changing: dict[str, str] = {}  # names that operators may change, and the titles of these
        self._all_names: set[str] = set()  # with those from before the last call of Python in the graph
        self._all_texts: set[str] = set()
        self._all_by_text = False
        self._all_owners: dict[int, Any] = {}
        self._forget()

    def _refuse_changing(self, names: set[str]) -> None:
        """Leave the function to Python if it reads one of these names after an operator that may change it."""
        for name, title in self._changing.items():
            if name in names:
                self.reason = self.reason or f"{name}, which the function reads later, may be changed by {title}"

    def _forget(self) -> None:
        """Begin to note what code reads since the trace began, or since the last call of Python in its graph."""
        self._scanned: set[tuple[int, int]] = set()
        self._methods: set[tuple[int, int]] = set()  # code that has run, with the class of its first argument
        self._names: set[str] = set()  # names of attributes that code reads
        self._texts: set[str] = set()  # texts that may name attributes, if code reads attributes by text
        self._by_text = False
        self._by_any_name = False
        self._owners: list[Any] = []
        self._used: set[int] = set()
        self._compared: set[int] = set()  # values whose contents were noted
        self._noted: dict[tuple[int, str], bool] = {}  # attributes that were read, and whether in user code

    @abc.abstractmethod
    def note_use(self, value: Any) -> None:
        """Note that code uses a value: reads of its attributes are noted from now on."""

    @abc.abstractmethod
    def read(self, value: Any, label: str) -> None:
        """Note that a value from outside was read: its contents are compared, too."""

    @abc.abstractmethod
    def _read_existing(self, value: Any, label: str) -> None:
        """Record a read of a value that existed before the trace; if it is an object, also the attributes it has."""

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
                for name, member in tuple(vars(base).items()):  # special methods, whose runs are not observed
                    if name.startswith("__") and isinstance(member, _OTHER_METHODS):
                        self.comparisons.path(base, f"{{}}.__dict__.get({name!r}, absent)", member, label)

    def _note_stores_on(self, owner: Any, names: Iterable[str]) -> None:
        """Note attributes of an object that code may set."""
        for name in names:
            self.comparisons.place(owner, name, f"{getattr(owner, '__name__', type(owner).__name__)}.{name}")

    def _add_holder(self, owner: Any) -> None:
        """Note that code uses an object on which it may set attributes."""
        if id(owner) not in self._holders:
            self._holders[id(owner)] = owner
            self._note_stores_on(owner, self._stores)

    def _first_value(self, place: tuple[int, str], value: Any, is_read: bool) -> Any:
        """The first value of a place; it is stored before the place is written to."""
        if is_read:
            return self._changed.pop(place, value)
        if place not in self._changed:
            self._changed[place] = value
            self.comparisons.remember(value, place[1])
        return value

    def _add_owner(self, owner: Any) -> None:
        """Note that code uses a module, class, function or tensor: its attributes are read by the names in the code."""
        self._owners.append(owner)
        if issubclass(type(owner), (type, types.ModuleType, types.FunctionType, threading.local)):
            self._add_holder(owner)
        if self._by_any_name:
            self._read_by_name(owner, COMPUTED)
        for name in tuple(self._names):
            self._read_attribute(owner, name)
        for name in self._updates - self._names:
            self._first_value((id(owner), name), getattr(owner, name, ABSENT), False)

    def _read_attribute(self, owner: Any, name: str) -> None:
        if isinstance(owner, enum.Enum):
            name = _ATTRIBUTES_OF_ENUMS.get(name, name)
        if isinstance(owner, type):
            self._read_class_attribute(owner, name)
        elif isinstance(owner, BufferContainer):
            name = "_flags" if name == "get_flags" else name
            if name in owner.__dict__:
                self._read_cell_attribute(owner, name, owner.__dict__[name], True)
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
            if name in _ATTRIBUTES_OF_PARAMETERS and hasattr(owner, name):
                path = _ATTRIBUTES_OF_PARAMETERS[name]
                self.comparisons.path(owner, path, eval(path.format("owner")), f"a Parameter's {name}")
        elif isinstance(owner, np.ndarray):
            if name in _ATTRIBUTES_OF_ARRAYS:
                path = _ATTRIBUTES_OF_ARRAYS[name]
                self.comparisons.path(owner, path, eval(path.format("owner")), f"{name} of an array")
        elif isinstance(owner, logging.Logger):
            if name == "isEnabledFor":
                path = "repr(({0}.getEffectiveLevel(), {0}.manager.disable, {0}.disabled))"
                self.comparisons.path(owner, path, eval(path.format("owner")), f"the level of {owner!r}")
        elif isinstance(owner, types.FunctionType) and name in _ATTRIBUTES_OF_FUNCTIONS:
            self._read_field(owner, name)
        elif name in getattr(owner, "__dict__", ()) and name not in _ATTRIBUTES_OF_IMPORTS:
            value = owner.__dict__[name]
            library = isinstance(owner, types.ModuleType) and not is_user_module(owner.__name__)
            if library and value is sys.modules:
                return
            value = self._first_value((id(owner), name), value, True)
            label = f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"
            self.comparisons.entry(owner.__dict__, name, value, label)
            if isinstance(owner, types.FunctionType):
                self.comparisons.path(owner, "{}.__dict__", owner.__dict__, label)
            if not library or not isinstance(value, _CODE):
                self.read(value, label)
            elif isinstance(value, type):
                self.note_use(value)
        elif isinstance(owner, types.ModuleType):
            if ("__getattr__" in owner.__dict__ and is_user_module(owner.__name__)) or (
                    self._by_text and name in self._texts):
                for attribute in (name, "__getattr__"):
                    self.comparisons.entry(owner.__dict__, attribute, owner.__dict__.get(attribute, ABSENT),
                                           f"{owner.__name__}.{attribute}")
            if name in _LISTS:
                self.comparisons.path(owner, "len({}.__dict__)", len(owner.__dict__), f"names in {owner.__name__}")
        elif has_fields(type(owner)) and _is_field(type(owner), name):
            self._read_field(owner, name)

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
            self._read_attribute(owner, known_owner)

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
            value = self._first_value((id(scope), name), scope.get(name, ABSENT), True)
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

    def _read_slots(self, owner: object) -> None:
        """Compare all slots of an object of the user's: code that calls their descriptors reads past all hooks."""
        for base in type(owner).__mro__ if hookable(type(owner)) else ():
            if is_user_module(base.__module__):
                for name, member in tuple(vars(base).items()):
                    if isinstance(member, types.MemberDescriptorType):
                        value = getattr(owner, name, ABSENT)
                        label = f"{type(owner).__name__}.{name}"
                        self.comparisons.path(owner, f"getattr({{}}, {name!r}, absent)", value, label)
                        self.read(value, label)

    def _read_all_attributes(self, owner: Any) -> None:
        """Compare all attributes of an object, a class or a module of the user's: code that calls
        ``object.__getattribute__`` reads past all hooks."""
        cls = type(owner)
        if issubclass(cls, (type, types.ModuleType)):
            self._read_by_name(owner, COMPUTED)
        elif hookable(cls) and is_user_module(cls.__module__):
            attributes = attributes_of(owner, {})
            if issubclass(cls, BufferContainer):
                self._read_attributes_of_cell(owner, attributes)
            elif self.comparisons.content(attributes, f"attributes of a {cls.__name__}"):
                for name, value in attributes.items():
                    if name in self._names or name in self._texts or not (
                            issubclass(type(value), (*CONTAINERS, *BUFFERS)) and len(value) > MOST_ELEMENTS):
                        self.read(value, f"{cls.__name__}.{name}")
            self._read_by_name(cls, COMPUTED)

    def _read_field(self, owner: Any, name: str) -> None:
        """Compare an attribute of a C type."""
        label = f"{type(owner).__name__}.{name}"
        try:
            value = getattr(owner, name)
        except (AttributeError, ValueError):  # nothing is there, or a pointer leads nowhere
            value = ABSENT
        if is_of_ctypes(type(value)):  # each read makes a new object over the same memory
            self.read(value, label)
        elif isinstance(value, (*PLAIN, *CONTAINERS, types.FunctionType, types.CodeType)):
            path = f"{{}}.{name}"
            # The owner may make a new tuple in each read.
            if isinstance(value, tuple) and not isinstance(owner, types.FunctionType):
                path, value = f"repr({path})", repr(value)
            self.comparisons.path(owner, path, value, label)
            self.read(value, label)

    def _read_class_attribute(self, cls: type, name: str) -> None:
        """Compare an attribute of a class, found in it or in a base of the user's."""
        if name == "__getattribute__":  # perhaps a hook
            return
        base, member = class_attribute(cls, name)
        label = f"{cls.__name__}.{name}"
        if name == "__subclasses__":
            self.comparisons.path(cls, "repr(type.__subclasses__({}))", repr(type.__subclasses__(cls)), label)
            self.note_use(type.__subclasses__(cls))
        elif name in _ATTRIBUTES_OF_CLASSES:
            self._read_field(cls, name)
        if base is None or not is_user_module(base.__module__) or isinstance(member, types.GetSetDescriptorType):
            return  # __dict__ and __weakref__, which Python defines, never change
        if isinstance(member, classmethod):
            self.comparisons.path(cls, f"{{}}.{name}.__func__", member.__func__, label)
        elif _is_descriptor(member) and not isinstance(member, property):
            self.comparisons.path(base, f"{{}}.__dict__.get({name!r}, absent)", member, label)
            if is_standard(type(member).__module__) and hasattr(member, "__dict__"):  # a partial method
                self.read(vars(member), label)
        else:
            value = (member.__func__ if isinstance(member, staticmethod) else
                     self._first_value((id(cls), name), member, True))
            self.comparisons.path(cls, f"{{}}.{name}", value, label)
            self.read(value, label)

    def _hook_class(self, cls: type) -> None:
        hooked = hook(cls)
        if hooked is not None:
            self._hooked.append(hooked)

    # ----------------------------------------------------------------------------------- attributes that were read

    def _read_layer(self, owner: BufferContainer) -> None:
        """Note that code uses a layer of opreg: its settings, and other attributes that its methods name."""
        cls = type(owner)
        names, methods = _names_of(cls), _run_by(cls)
        run = set().union(*map(_names_in, methods.values())).difference(OF_CELLS)
        for name, value in owner.__dict__.items():
            if name in names or name in TABLES or not (name.startswith("_") or name in _MODES):
                self._read_cell_attribute(owner, name, value, name in run and isinstance(value, PLAIN))
        for name, method in methods.items():  # an attribute of the layer or of its class may replace them
            own = owner.__dict__.get(name, ABSENT)
            if own is ABSENT:
                self._read_missing_attribute(owner, name)
            else:
                self.comparisons.path(owner, f"{{}}.__dict__.get({name!r}, absent)", own, f"{owner.path}.{name}")
            self.comparisons.path(cls, f"{{}}.{name}", method, f"{cls.__name__}.{name}")

    def _read_cell_attribute(self, owner: BufferContainer, name: str, value: Any, user: bool) -> None:
        """Note that an attribute of a Cell is read. Changes are counted, unless they bypass the Cell through its
        ``__dict__``: plain values and functions are compared."""
        self.reads.attribute(owner, name, value)
        if user and isinstance(value, PLAIN):
            if name in owner.__dict__ and _is_descriptor(class_attribute(type(owner), name)[1]):
                self._read_stored_attribute(owner, name, value, f"{owner.path}.{name}")
            else:
                self.comparisons.path(owner, f"{{}}.{name}", value, f"{owner.path}.{name}")
        elif (user and name not in OF_CELLS) or (
                isinstance(value, CONTAINERS) and (name == "_flags" or not name.startswith("_"))):
            if isinstance(value, _FUNCTIONS):
                self.comparisons.path(owner, f"{{}}.__dict__.get({name!r}, absent)", value, f"{owner.path}.{name}")
            self._read_existing(value, f"{owner.path}.{name}")

    def _read_missing_attribute(self, owner: BufferContainer, name: str) -> None:
        """Note that a Cell has no attribute of its own of the name of a method, or of another attribute of its class.
        """
        self.reads.attribute(owner, name, ABSENT)
        self.comparisons.lacks(owner, name, f"{owner.path}.{name}")

    def _read_attributes_of_cell(self, owner: BufferContainer, attributes: dict[str, Any]) -> None:
        """Note that all attributes of a Cell are read from its ``__dict__``."""
        self.comparisons.path(owner, "len({}.__dict__)", len(attributes), f"the attributes of {owner.path}")
        for name in [each for each in attributes if each not in OF_CELLS]:
            self._read_cell_attribute(owner, name, attributes[name], True)

    def _read_stored_attribute(self, owner: Any, name: str, value: Any, label: str) -> None:
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
        # a data descriptor precedes the instance's attribute
        self.comparisons.path(type(member), "getattr({}, '__set__', absent)", ABSENT, label)

    def _read_object_attribute(self, owner: Any, name: str, value: Any) -> None:
        """Note that user code reads an attribute of an object that is no Cell."""
        cls = type(owner)
        label = f"{cls.__name__}.{name}"
        if isinstance(value, AssignCheck):  # it stands for the method while the operator first runs
            self.comparisons.path(cls, f"{{}}.{name}", getattr(cls, name), label)
            return
        if name == "__getstate__":  # copying the object reads all of its attributes
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
                self._read_class_attribute(cls, "__getattr__")
        elif _is_descriptor(member) and (name not in attributes or hasattr(type(member), "__set__")):
            self._read_class_attribute(cls, name)  # notes the reads in the descriptor's code
            if not hasattr(type(member), "__set__"):  # an attribute of the object has priority over it
                self.comparisons.entry(attributes, name, ABSENT, label)
            by_identity = is_standard(cls.__module__) and class_attribute(cls, "__eq__")[0] is object
            if by_identity and issubclass(type(value), PLAIN):
                # an instance of a class that Python defines, whose attributes are not recorded
                self.comparisons.path(owner, f"{{}}.{name}", value, label)
        elif name not in attributes and (
                (issubclass(type(value), BOUND) and value.__self__ is owner) or is_of_ctypes(type(value))):
            pass  # a method written in C, or a part of C's memory: another object each time
        elif name in attributes and (_is_descriptor(member) or class_attribute(cls, "__getattr__")[1] is not ABSENT):
            self._read_stored_attribute(owner, name, value, label)
        elif name in attributes or type(value) is not types.MethodType:
            self.comparisons.path(owner, f"{{}}.{name}", value, label)
        else:
            self.comparisons.path(owner, f"{{}}.{name}.__func__", value.__func__, label)
