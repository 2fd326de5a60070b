"""Names of variables and attributes that a user's operator may change when it runs.

A compiled function calls the operator in each run, and its own code in none. What that code reads after the operator
must therefore not change in a run.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

from opreg.ndarray.ndarray import NDArray

from ..core.bytecode_names import changed_names, loads, parts
from ..custom.gradient import UsersSchema
from .user_code import is_user_code, is_user_module

__all__ = ["arrays_named_by", "names_changed_by"]


def names_changed_by(attrs: Any) -> set[str]:
    """The names of globals, closure variables and attributes that the code of a user's operator changes, or a function,
    class or object that this code names; ``attrs`` are the attributes of its node, or of its gradient."""
    return set().union(*[changed_names(value.__code__) for value in _reached(attrs)
                         if isinstance(value, types.FunctionType) and is_user_code(value.__code__)])


def arrays_named_by(attrs: Any) -> list[NDArray]:
    """The arrays that the code of a user's operator names, and those of the Cells that it names, see
    ``names_changed_by``."""
    found: list[NDArray] = []
    for value in _reached(attrs):
        if isinstance(value, NDArray):
            found.append(value)
        elif hasattr(type(value), "get_parameters") and hasattr(type(value), "buffers"):
            found += [*value.get_parameters(), *value.buffers()]
    return found


def _reached(attrs: Any) -> list[Any]:
    """The code of a user's operator, and the values that it names."""
    while (inner := attrs.get("inner") if isinstance(attrs, Mapping) else getattr(attrs, "inner", None)) is not None:
        attrs = inner
    op = getattr(attrs, "op", None)
    schema = None if op is None else op.signature.schema
    if not isinstance(schema, UsersSchema):
        return []
    visited: dict[int, Any] = {}
    waiting: list[Any] = [schema.written]
    while waiting:
        value = waiting.pop()
        value = getattr(value, "__func__", value) if isinstance(value, _METHODS) else value
        if id(value) in visited or isinstance(value, types.ModuleType):
            continue
        visited[id(value)] = value
        if isinstance(value, types.FunctionType):
            if is_user_code(value.__code__):
                waiting += _named_by(value)
        elif isinstance(value, property):
            waiting += [value.fget, value.fset, value.fdel]
        else:
            for cls in (value if isinstance(value, type) else type(value)).__mro__:
                if is_user_module(cls.__module__):
                    waiting += [member for member in vars(cls).values()
                                if isinstance(member, (types.FunctionType, property, *_METHODS))]
    return list(visited.values())


_METHODS = (types.MethodType, staticmethod, classmethod)


def _named_by(function: types.FunctionType) -> list[Any]:
    """The values of the globals, attributes of modules, closure variables and defaults that a function names."""
    scope, found = function.__globals__, [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for code in parts(function.__code__):
        for name in loads(code).scope:
            value = scope.get(name)
            found.append(value)
            if isinstance(value, types.ModuleType) and is_user_module(value.__name__):
                found += [vars(value).get(attribute) for attribute in loads(code).names]
    for cell in function.__closure__ or ():
        if cell != types.CellType():
            found.append(cell.cell_contents)
    return found
