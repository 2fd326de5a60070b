"""Whether Props of a class answer alike: read off their methods, so that one of them can answer for all.

A Prop is made and asked anew in every eager call, as in MXNet: it may count its calls, hand itself to its operator, or
answer by what is elsewhere. Most do none of that. A method whose instructions read nothing but arguments, plain
attributes and a few functions that are known, and change nothing, says the same to the same question; what is not
understood counts as if it did not.
"""

from __future__ import annotations

import ast
import builtins
import dis
import math
import operator
from types import CodeType, FunctionType, GetSetDescriptorType
from typing import Any

import numpy as np

from ..core.loads import parts

__all__ = ["answers_alike", "is_plain", "methods_of"]

#: Methods whose answers may be kept, and those that are called in every call all the same, on one Prop.
_ASKED = ("__init__", "list_arguments", "list_outputs", "list_auxiliary_states", "infer_shape", "infer_type",
          "declare_backward_dependency")
_CALLED = ("create_operator", "gradient")
#: Methods by which a class may do anything at all.
_HOOKS = ("__new__", "__getattribute__", "__getattr__", "__setattr__", "__del__")

#: The methods of a Prop class that its answers follow from, as they are now.
methods_of = operator.attrgetter(*_ASKED, _CALLED[0])

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


def answers_alike(prop: Any) -> bool:
    """Whether all Props of this one's class with its keywords answer as it does, and stay as they are made.

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
    >>> answers_alike(Plain()), answers_alike(Counting())
    (True, False)
    """
    if not all(map(is_plain, vars(prop).values())):
        return False
    for kind in type(prop).__mro__:
        own = vars(kind)
        if kind is object or (kind.__module__, kind.__name__) == _BASE:
            continue
        if any(name in own for name in _HOOKS) or any(hasattr(type(member), "__set__") for member in own.values()
                                                      if not isinstance(member, _SLOTS)):
            return False
        if not all(_Method(prop, name, own[name]).is_pure() for name in (*_ASKED, *_CALLED) if name in own):
            return False
    return True


def is_plain(value: object) -> bool:
    """Whether a value is what it is for ever."""
    if isinstance(value, type):
        return value in _PLAIN or issubclass(value, np.generic)
    if isinstance(value, (tuple, frozenset)):
        return all(map(is_plain, value))
    return value.__class__ in _PLAIN or isinstance(value, (np.dtype, np.generic))


class _Method:
    """A method of a Prop, and what its instructions may do."""

    def __init__(self, prop: Any, name: str, function: Any):
        self._prop, self._name, self._function = prop, name, function
        self._mro = type(prop).__mro__
        self._free: dict[str, object] = {}

    def is_pure(self) -> bool:
        function = self._function
        if not isinstance(function, FunctionType) or not function.__code__.co_argcount:
            return False
        if not all(map(is_plain, (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))):
            return False
        code = function.__code__
        try:
            self._free = {name: cell.cell_contents for name, cell in zip(code.co_freevars, function.__closure__ or ())}
        except ValueError:  # a variable that has no value yet
            return False
        if self._name not in _CALLED and not all(value in self._mro for value in self._free.values()):
            return False
        return all(self._allows(part) for part in parts(code))

    def _allows(self, code: CodeType) -> bool:
        """Whether one piece of code, a method's or that of a comprehension in it, does nothing that is not known."""
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
                if step.argval not in (*_ASKED, *_CALLED):
                    return False
                after_super = -9
            elif self._name not in _CALLED and i - after_super != 1 and not self._free.keys().isdisjoint(names):
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
        """Whether a name of the module means the same in every call."""
        if self._name in _CALLED:  # which is called in every call
            return True
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
        """Whether an attribute of the Prop stays what it is, or is one of its methods, which is called."""
        name = step.argval
        if name in vars(self._prop):
            return True
        static = next((vars(kind)[name] for kind in self._mro if name in vars(kind)), None)
        if isinstance(static, FunctionType):
            return name in _ASKED[1:] and (step.opname == "LOAD_METHOD" or "NULL|self" in step.argrepr)
        return self._name in _CALLED and not hasattr(type(static), "__get__")


def _loads(step: dis.Instruction, name: str) -> bool:
    """Whether an instruction loads a variable, last of all."""
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    return step.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "STORE_FAST_LOAD_FAST")) and names[-1] == name
