"""Purity of Props: whether all Props of a class give the same answers, so that one of them can serve all calls.

As in MXNet, each eager call makes a new Prop and calls its methods: a Prop may count calls, pass itself to its
operator, or read global state. Most do none of these. The byte code of their methods shows it: a method that reads only
arguments, plain attributes and a few known functions, and changes nothing, gives the same answer each time. Code that
is not understood counts as impure.
"""

from __future__ import annotations

import ast
import builtins
import dis
import math
import operator
from collections.abc import Callable
from types import CodeType, FunctionType, GetSetDescriptorType
from typing import Any

import numpy as np

from ..core.bytecode_names import parts
from ..core.held_values import ABSENT

__all__ = ["METHODS", "is_plain", "lasting_answers"]

#: Methods whose answers may be cached, and methods that are always called, on the shared Prop.
_CACHED_METHODS = ("__init__", "list_arguments", "list_outputs", "list_auxiliary_states", "infer_shape", "infer_type",
                   "declare_backward_dependency")
_CALLED_METHODS = ("create_operator", "gradient")
#: All methods of a Prop that decide its answers, and those of them that every Prop has.
METHODS = (*_CACHED_METHODS, *_CALLED_METHODS)
_ALWAYS = METHODS[:-1]
#: Special methods that make a class impure, since they may change the result of any attribute access.
_HOOKS = ("__new__", "__getattribute__", "__getattr__", "__setattr__", "__del__")

_FUNCTIONS = {getattr(builtins, name) for name in (
    "len", "tuple", "list", "int", "float", "str", "bool", "range", "zip", "map", "filter", "sum", "max", "min", "abs",
    "sorted", "reversed", "enumerate", "dict", "set", "frozenset", "isinstance", "any", "all", "round", "divmod", "pow",
    "slice", "super")}
_NUMPY = {"prod", "ceil", "floor", "sqrt", "dtype", "bool_", "int8", "uint8", "int16", "int32", "int64", "float16",
          "float32", "float64"}
_CHANGES = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_NAME", "DELETE_ATTR", "IMPORT_NAME", "LOAD_NAME",
            "LOAD_BUILD_CLASS"}
_READS = {"LOAD_ATTR", "LOAD_METHOD"}
_SUPER = {"LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD"}
#: Instructions that make a cell of a variable that an inner function reads.
_CELLS = {"MAKE_CELL", "LOAD_CLOSURE", "COPY_FREE_VARS"}
_PLAIN = {int, float, complex, bool, str, bytes, type(None)}
_BASE = "opreg.custom.custom_op", "CustomOpProp"
#: ``__dict__`` and ``__weakref__`` of a class.
_SLOTS = GetSetDescriptorType


def lasting_answers(prop: Any) -> Callable[[], bool] | None:
    """A function that tells whether a method, or a name that a method reads, has changed; until then all Props of the
    same class and keywords give the same answers as this one. None if their answers may vary.

    Examples
    --------
    >>> from opreg.operator import CustomOpProp
    >>> class Plain(CustomOpProp):
    ...     def infer_shape(self, in_shape):
    ...         return in_shape, [in_shape[0][:1]], []
    >>> class Counting(CustomOpProp):
    ...     def infer_shape(self, in_shape):
    ...         self.asked = getattr(self, "asked", 0) + 1
    ...         return in_shape, in_shape, []
    >>> changed = lasting_answers(Plain())
    >>> before = changed()
    >>> Plain.infer_shape = lambda self, in_shape: (in_shape, in_shape, [])
    >>> before, changed(), lasting_answers(Counting())
    (False, True, None)
    """
    if not all(map(is_plain, vars(prop).values())):
        return None
    classes: list[tuple[Callable[[type], Any], type, Any, int]] = []
    names: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}
    for kind in type(prop).__mro__[:-1]:
        members = vars(kind)
        if (kind.__module__, kind.__name__) == _BASE:
            continue
        if any(name in members for name in _HOOKS) or any(
                hasattr(type(member), "__set__") for member in members.values() if not isinstance(member, _SLOTS)):
            return None
        own = [name for name in METHODS if name in members]
        for method in [_Method(prop, name, members[name]) for name in own]:
            if not method.is_pure():
                return None
            names.update(method.names())
        places = ["__mro__", *(_ALWAYS if kind is type(prop) else own)]
        for name in own:
            places += [f"{name}.{part}" for part in ("__code__", "__defaults__", "__kwdefaults__")
                       if getattr(members[name], part) is not None]
        ask = operator.attrgetter(*places)
        classes.append((ask, kind, ask(kind), len(members)))
    read = list(names.values())

    def changed() -> bool:
        for ask, kind, before, count in classes:
            if ask(kind) != before or len(kind.__dict__) != count:
                return True
        for space, name, value in read:
            if space.get(name, ABSENT) is not value:
                return True
        return False

    return changed


def is_plain(value: object) -> bool:
    """Whether a value is immutable."""
    if isinstance(value, type):
        return value in _PLAIN or issubclass(value, np.generic)
    if isinstance(value, (tuple, frozenset)):
        return all(map(is_plain, value))
    return value.__class__ in _PLAIN or isinstance(value, (np.dtype, np.generic))


class _Method:
    """A method of a Prop, whose instructions are examined."""

    def __init__(self, prop: Any, name: str, function: Any):
        self._prop, self._name, self._function = prop, name, function
        self._mro = type(prop).__mro__
        self._free: dict[str, object] = {}
        self._globals: set[str] = set()

    def is_pure(self) -> bool:
        function = self._function
        if not isinstance(function, FunctionType) or not function.__code__.co_argcount:
            return False
        if not all(map(is_plain, (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))):
            return False
        code = function.__code__
        try:
            self._free = {name: cell.cell_contents for name, cell in zip(code.co_freevars, function.__closure__ or ())}
        except ValueError:  # a closure variable without a value yet
            return False
        if self._name not in _CALLED_METHODS and not all(value in self._mro for value in self._free.values()):
            return False
        return all(self._allows(part) for part in parts(code))

    def names(self) -> dict[tuple[int, str], tuple[dict[str, Any], str, Any]]:
        """The global names that the method reads, with their values."""
        space = self._function.__globals__
        return {(id(space), name): (space, name, space.get(name, ABSENT)) for name in self._globals}

    def _allows(self, code: CodeType) -> bool:
        """Whether all instructions of a code object, of a method or of a comprehension in it, are known to be pure."""
        this = self._function.__code__.co_varnames[0]
        steps = [*dis.get_instructions(code)]
        after_super = -9
        for i, step in enumerate(steps):
            following = steps[i + 1] if i + 1 < len(steps) else step
            names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            if step.opname in _CHANGES:
                return False
            if step.opname == "LOAD_GLOBAL":
                if step.argval == "super":
                    after_super = i
                elif i - after_super != 1 and not self._may_read(step.argval, following):
                    return False
            elif step.opname == "STORE_ATTR":
                if self._name != "__init__" or not _loads(steps[i - 1], this):
                    return False
            elif step.opname in _SUPER or (step.opname in _READS and 0 < i - after_super <= 5):
                if step.argval not in (*_CACHED_METHODS, *_CALLED_METHODS):
                    return False
                after_super = -9
            elif self._name not in _CALLED_METHODS and i - after_super != 1 and not self._free.keys().isdisjoint(names):
                return False
            elif this in names and step.opname not in _CELLS:
                if not _loads(step, this) or this in names[:-1]:
                    return False
                if 0 < i - after_super <= 3:  # super(Class, self)
                    continue
                if following.opname in _READS:
                    if not self._may_ask(following):
                        return False
                elif following.opname != "STORE_ATTR":
                    return False
        return True

    def _may_read(self, name: str, following: dis.Instruction) -> bool:
        """Whether a global name has the same value in every call."""
        if self._name in _CALLED_METHODS:  # these methods are called each time anyway
            return True
        self._globals.add(name)
        space = self._function.__globals__
        value = space.get(name, getattr(builtins, name, None))
        if value is math or value is ast:
            return True
        if value is np:
            return following.opname in _READS and following.argval in _NUMPY
        if isinstance(value, type):
            return value in _FUNCTIONS or issubclass(value, BaseException)
        return value.__class__ is type(len) and value in _FUNCTIONS

    def _may_ask(self, step: dis.Instruction) -> bool:
        """Whether an attribute of the Prop is immutable, or is one of its known methods and is called."""
        name = step.argval
        if name in vars(self._prop):
            return True
        static = next((vars(kind)[name] for kind in self._mro if name in vars(kind)), None)
        if isinstance(static, FunctionType):
            return name in _CACHED_METHODS[1:] and (step.opname == "LOAD_METHOD" or "NULL|self" in step.argrepr)
        return self._name in _CALLED_METHODS and not hasattr(type(static), "__get__")


def _loads(step: dis.Instruction, name: str) -> bool:
    """Whether a variable is the last one that an instruction loads."""
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    return step.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "STORE_FAST_LOAD_FAST")) and names[-1] == name
