"""Loads: the names that a code object reads, found in its byte code.

A load only for a modification, such as ``log`` in ``log.append(1)`` or ``n`` in ``n += 1``, does not count as a read:
no result depends on it, unless the name is also read elsewhere.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .cache import cached

__all__ = ["Loads", "asked_of", "loads", "parts"]

_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_OUTER = frozenset({"LOAD_DEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"})
#: Instructions that set a name, and what it is a name of.
_PLACES = {"STORE_GLOBAL": "global", "STORE_DEREF": "outer", "STORE_ATTR": "attribute"}
#: Methods of containers that change them and return nothing.
_CHANGES = frozenset({"add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "remove",
                      "reverse", "sort", "update"})


class Loads(NamedTuple):
    """The names that a code object loads.

    Attributes
    ----------
    scope : dict of str to bool
        The globals, and whether each is read, not only modified.
    outer : set of str
        The closure variables that are read, also by inner functions.
    names : set of str
        Names of attributes that are read.
    texts : set of str
        Constants that are text.
    imports : set of (str, int)
        Imported modules, with the level of relative imports.
    stores : bool
        Whether it sets names of a module or class.
    places : dict of str to set of str
        The names that it sets: of globals under "global", of closure variables, also by inner functions, under
        "outer", of attributes under "attribute".
    changes : dict of int to str
        Attributes that are loaded only for a modification, by the offset of the instruction.
    """

    scope: dict[str, bool]
    outer: set[str]
    names: set[str]
    texts: set[str]
    imports: set[tuple[str, int]]
    changes: dict[int, str]
    stores: bool
    places: dict[str, set[str]]


@cached(1024)
def loads(code: types.CodeType) -> Loads:
    """Find the names that a code object loads.

    Examples
    --------
    >>> def f(x):
    ...     log.append(x)
    ...     return x * scale
    >>> loads(f.__code__).scope
    {'log': False, 'scale': True}
    """
    steps = list(dis.get_instructions(code))
    found = Loads({}, set(), set(), set(), set(), {}, any(step.opname == "STORE_NAME" for step in steps),
                  {kind: set() for kind in _PLACES.values()})
    for i, step in enumerate(steps):
        name = step.argval
        changed = _is_changed(steps, i)
        if step.opname in _GLOBALS:
            found.scope[name] = found.scope.get(name, False) or not changed
        elif step.opname in _OUTER and not changed:
            found.outer.add(name)
        elif step.opname in _ATTRIBUTES:
            if changed:
                found.changes[step.offset] = name
            if not changed or step.opname == "LOAD_METHOD":
                found.names.add(name)
        elif step.opname == "IMPORT_NAME":
            found.imports.add((name, next((each.argval for each in reversed(steps[:i])
                                           if each.argval.__class__ is int), 0)))
        elif step.opname in _PLACES:
            found.places[_PLACES[step.opname]].add(name)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found.outer.update(loads(const).outer)
            found.places["outer"].update(loads(const).places["outer"])
        elif isinstance(const, str):
            found.texts.add(const)
    return found


def asked_of(frame: types.FrameType, functions: frozenset[str]) -> tuple[Any, Any]:
    """The first two arguments of the call of a function, one of these names, that a frame stands at; None for one that
    is neither a variable nor a constant, nor what a module or an object has by an attribute.

    Examples
    --------
    >>> import math, sys
    >>> found = []
    >>> def f(owner, name):
    ...     return getattr(owner, name), getattr(owner, name + "")
    >>> sys.setprofile(lambda frame, event, function: found.append(asked_of(frame, frozenset({"getattr"})))
    ...                if event == "c_call" and function is getattr else None)
    >>> _ = f(math, "pi")
    >>> sys.setprofile(None)
    >>> found == [(math, "pi"), (math, None)]
    True
    """
    steps = _steps(frame.f_code)
    end = next((i for i, step in enumerate(steps) if step.offset == frame.f_lasti), 0)
    begin = end
    while begin and not (steps[begin].opname in _GLOBALS and steps[begin].argval in functions):
        begin -= 1
    loaded: list[Any] = []
    for step in steps[begin + 1:end]:
        if step.opname.startswith("LOAD_FAST"):
            names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            loaded += map(frame.f_locals.get, names)
        elif step.opname in _GLOBALS or step.opname in _OUTER:
            loaded.append(frame.f_locals.get(step.argval, frame.f_globals.get(step.argval)))
        elif step.opname == "LOAD_CONST":
            loaded.append(step.argval)
        elif step.opname in _ATTRIBUTES and loaded:
            try:
                loaded[-1] = object.__getattribute__(loaded[-1], "__dict__").get(step.argval)
            except AttributeError:  # its attributes are elsewhere
                loaded[-1] = None
        elif step.opname not in ("PRECALL", "PUSH_NULL"):  # an expression that takes what was loaded last
            del loaded[len(loaded) > 1:]
            break
    return (*loaded, None, None)[:2]


@cached(256)
def _steps(code: types.CodeType) -> list[dis.Instruction]:
    return list(dis.get_instructions(code))


def parts(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object, and all code objects inside of it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from parts(const)


def _is_changed(steps: Sequence[dis.Instruction], i: int) -> bool:
    """Whether the value that an instruction loads is only modified by the next ones."""
    following = steps[i + 1] if i + 1 < len(steps) else None
    if following is None:
        return False
    if following.opname in ("LOAD_METHOD", "LOAD_ATTR") and following.argval in _CHANGES:
        return True
    if _stores(steps, i):  # n += 1, owner.n += 1
        return True
    opnames = [step.opname for step in steps[i + 1:i + 5]]
    if len(opnames) > 1 and opnames[0].startswith("LOAD_") and opnames[1] == "STORE_SUBSCR":  # table[key] = value
        return True
    subscript = i + 4  # table[key] += 1: the key, two copies, and then the element
    return opnames[1:3] == ["COPY", "COPY"] and opnames[3:] == ["BINARY_SUBSCR"] and _stores(steps, subscript)


def _stores(steps: Sequence[dis.Instruction], i: int) -> bool:
    """Whether the value that an instruction leaves is the left operand of an assignment such as ``n += 1``."""
    depth, at = 1, i + 1
    while at < len(steps) and depth > 0 and steps[at].opcode not in dis.hasjrel:
        step = steps[at]
        if depth == 2 and step.opname == "BINARY_OP" and step.argrepr.endswith("="):
            behind = next((each for each in steps[at + 1:] if each.opname != "SWAP"), step)
            return behind.opname.startswith("STORE_") and behind.opname != "STORE_FAST" and (
                behind.opname == "STORE_SUBSCR" or behind.argval == steps[i].argval)
        depth += dis.stack_effect(step.opcode, step.arg if step.opcode >= dis.HAVE_ARGUMENT else None)
        at += 1
    return False
