"""The names that a code object reads (loads) and sets, found in its byte code.

A load only for a modification, such as ``log`` in ``log.append(1)`` or ``n`` in ``n += 1``, does not count as a read:
no result depends on it, unless the name is also read elsewhere.
"""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .cache import cached

__all__ = ["COMPUTED", "HANDLERS", "Loads", "call_arguments", "changed_names", "key_of", "loads", "loads_after",
           "module_keys", "parts"]

_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_OUTER = frozenset({"LOAD_DEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"})
#: Instructions that set a name, with the kind of the name.
_PLACES = {"STORE_GLOBAL": "global", "STORE_DEREF": "outer", "STORE_ATTR": "attribute"}
_LOADS = _GLOBALS | _OUTER | _ATTRIBUTES
_SETS = frozenset({*_PLACES, *[name.replace("STORE", "DELETE") for name in _PLACES]})
_SUBSCRIPTS = frozenset({"DELETE_SUBSCR", "STORE_SUBSCR"})
_JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})
#: A key that is neither a variable nor a constant.
COMPUTED = object()
#: Methods of containers that change them and return nothing.
_CHANGES = frozenset({"add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "remove",
                      "reverse", "sort", "update"})
#: Standard names of functions that handle errors of codecs, which code gives as text.
HANDLERS = ("strict", "ignore", "replace", "backslashreplace", "xmlcharrefreplace", "namereplace", "surrogateescape",
            "surrogatepass")


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
    return loads_after(code, -1)


@cached(1024)
def loads_after(code: types.CodeType, offset: int) -> Loads:
    """Find the names that a code object may load after the instruction at an offset, also in the rounds of a loop that
    follow.

    Examples
    --------
    >>> def f(x):
    ...     x = x * early
    ...     while x < limit:
    ...         x = step(x) + late
    >>> calls = [step.offset for step in dis.get_instructions(f) if step.opname == "CALL"]
    >>> sorted(loads_after(f.__code__, calls[0]).scope)
    ['late', 'limit', 'step']
    """
    steps = _steps(code)
    jumps = [(step.offset, step.argval) for step in steps if step.opcode in _JUMPS]
    while targets := [target for at, target in jumps if target <= offset < at]:
        offset = min(targets) - 1
    loads_found = Loads({}, set(), set(), set(), set(), {}, any(step.opname == "STORE_NAME" for step in steps),
                        {kind: set() for kind in _PLACES.values()})
    for i, step in enumerate(steps):
        if step.offset <= offset:
            continue
        name = step.argval
        changed = _is_changed(steps, i)
        if step.opname in _GLOBALS:
            loads_found.scope[name] = loads_found.scope.get(name, False) or not changed
        elif step.opname in _OUTER and not changed:
            loads_found.outer.add(name)
        elif step.opname in _ATTRIBUTES:
            if changed:
                loads_found.changes[step.offset] = name
            if not changed or step.opname == "LOAD_METHOD":
                loads_found.names.add(name)
        elif step.opname == "MATCH_CLASS":
            loads_found.names.add("__match_args__")
        elif step.opname == "IMPORT_NAME":
            loads_found.imports.add((name, next((earlier.argval for earlier in reversed(steps[:i])
                                                 if earlier.argval.__class__ is int), 0)))
        elif step.opname in _PLACES:
            loads_found.places[_PLACES[step.opname]].add(name)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            loads_found.outer.update(loads(const).outer)
            loads_found.places["outer"].update(loads(const).places["outer"])
        elif isinstance(const, str):
            loads_found.texts.add(const)
    return loads_found


@cached(1024)
def changed_names(code: types.CodeType) -> frozenset[str]:
    """Names of globals, closure variables and attributes that a code object, or one inside of it, sets, deletes or
    modifies; attributes of its first argument, such as ``self``, left out.

    Examples
    --------
    >>> def f(self, x):
    ...     self.count = 1
    ...     log.append(x)
    ...     x.owner.size += scale
    ...     weight.add_(x)
    >>> sorted(changed_names(f.__code__))
    ['log', 'size', 'weight']
    """
    found: set[str] = set()
    for part in parts(code):
        steps = _steps(part)
        for i, step in enumerate(steps):
            if step.opname in _SETS:
                before: Any = steps[i - 1].argval if steps[i - 1].opname.startswith("LOAD_FAST") else None
                owner = before[-1] if isinstance(before, tuple) else before
                if not (step.opname.endswith("_ATTR") and part.co_argcount and owner == part.co_varnames[0]):
                    found.add(step.argval)
            elif step.opname in _LOADS and (
                    _is_changed(steps, i) or "DELETE_SUBSCR" in [each.opname for each in steps[i + 1:i + 3]]
                    or _is_written(steps[i + 1:i + 2])):
                found.add(step.argval)
    return frozenset(found)


def call_arguments(frame: types.FrameType, functions: frozenset[str]) -> tuple[Any, Any]:
    """The first two arguments of the function call that a frame is executing, if the function has one of these names;
    ``COMPUTED`` for an argument that is not a variable, a constant or an attribute.

    Examples
    --------
    >>> import math, sys
    >>> found = []
    >>> def f(owner, name):
    ...     return getattr(owner, name), getattr([owner][0], name), getattr(owner, name + "")
    >>> sys.setprofile(lambda frame, event, function: found.append(call_arguments(frame, frozenset({"getattr"})))
    ...                if event == "c_call" and function is getattr else None)
    >>> _ = f(math, "pi")
    >>> sys.setprofile(None)
    >>> found == [(math, "pi"), (COMPUTED, "pi"), (math, COMPUTED)]
    True
    """
    steps, variables = _steps(frame.f_code), {**frame.f_globals, **frame.f_locals}
    end = next((i for i, step in enumerate(steps) if step.offset == frame.f_lasti), 0)
    count = steps[end].arg
    if end and steps[end - 1].opname == "PRECALL":
        end -= 1
    for begin in range(end, -1, -1):
        if steps[begin].opname in _GLOBALS and steps[begin].argval in functions:
            arguments = _arguments(steps[begin + 1:end], variables)
            if arguments is not None and len(arguments) == count:
                return (*arguments, COMPUTED, COMPUTED)[:2]
    return COMPUTED, COMPUTED


def _arguments(steps: Sequence[dis.Instruction], variables: Mapping[str, Any]) -> list[Any] | None:
    """The values that instructions leave on the stack, ``COMPUTED`` for unknown ones; None for instructions that jump,
    or pop more than they pushed."""
    stack: list[Any] = []
    for step in steps:
        if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
            return None
        change = dis.stack_effect(step.opcode, step.arg if step.opcode >= dis.HAVE_ARGUMENT else None)
        if step.opname in ("KW_NAMES", "PUSH_NULL") and not stack:  # the instruction belongs to the call itself
            continue
        if step.opname.startswith("LOAD_FAST") and isinstance(step.argval, tuple):
            stack += (variables.get(name, COMPUTED) for name in step.argval)
        elif change == 1:
            stack.append(_variable(step, variables))
        elif change > 0:
            stack += [COMPUTED] * change
        elif len(stack) + change < 1:
            return None
        elif step.opname != "KW_NAMES":
            del stack[len(stack) + change:]
            stack[-1] = _part(stack[-1], step.argval) if step.opname in _ATTRIBUTES else COMPUTED
    return stack


def _part(owner: Any, name: str) -> Any:
    """An attribute that a module or an object has itself."""
    try:
        return object.__getattribute__(owner, "__dict__").get(name, COMPUTED)
    except AttributeError:  # an object that stores its attributes elsewhere
        return COMPUTED


def key_of(frame: types.FrameType) -> Any:
    """The key with which code reads the dict that the current call of a frame returns, as in ``globals()[key]``;
    ``COMPUTED`` if the key is neither a variable nor a constant, or if the dict is read in another way.

    Examples
    --------
    >>> import sys
    >>> found = []
    >>> def f(name):
    ...     return globals().get(name), name in globals(), len(globals())
    >>> sys.setprofile(lambda frame, event, function: found.append(key_of(frame))
    ...                if event == "c_call" and function is globals else None)
    >>> _ = f("a")
    >>> sys.setprofile(None)
    >>> found == ["a", "a", COMPUTED]
    True
    """
    steps = _steps(frame.f_code)
    at = next((i for i, step in enumerate(steps) if step.offset == frame.f_lasti), 0)
    return _key(steps, at, {**frame.f_globals, **frame.f_locals})


def module_keys(code: types.CodeType, scope: Mapping[str, Any]) -> set[Any]:
    """The names with which code reads ``sys.modules``, with ``COMPUTED`` if there are unknown ones.

    Examples
    --------
    >>> import sys
    >>> code = (lambda: (sys.modules["a"], sys.modules[here])).__code__
    >>> module_keys(code, {"sys": sys, "here": "b"}) == {"a", "b"}
    True
    """
    steps, scope = _steps(code), {"sys": sys, **scope}  # ``sys`` counts as a global, since a function may import it
    keys = [_key(steps, i, scope) for i, step in enumerate(steps) if step.opname in _ATTRIBUTES
            and step.argval == "modules" and _variable(steps[i - 1], scope) is sys]
    return {key if isinstance(key, str) else COMPUTED for key in keys}


def _key(steps: Sequence[dis.Instruction], at: int, variables: Mapping[str, Any]) -> Any:
    """The key of the item that code reads next, where the instruction ``at`` pushes the dict."""
    following = [step for step in steps[at + 1:at + 5] if step.opname not in ("PRECALL", "PUSH_NULL")][:2]
    if len(following) < 2:
        return COMPUTED
    first, second = following
    if first.opname == "CONTAINS_OP":
        while steps[at].opname not in _GLOBALS and not steps[at].opname.startswith("LOAD_FAST"):
            at -= 1
        return _variable(steps[at - 1], variables)
    if second.opname in _SUBSCRIPTS or _reads_item(second):
        return _variable(first, variables)
    return _variable(second, variables) if first.opname in _ATTRIBUTES and first.argval == "get" else COMPUTED


def _variable(step: dis.Instruction, variables: Mapping[str, Any]) -> Any:
    """The text, or another value, that a step loads; ``COMPUTED`` where that is not known."""
    if step.opname == "LOAD_CONST":
        return step.argval
    if step.opname in _GLOBALS or step.opname in _OUTER or step.opname.startswith("LOAD_FAST"):
        return variables.get(step.argval, COMPUTED)
    return COMPUTED


@cached(256)
def _steps(code: types.CodeType) -> list[dis.Instruction]:
    return list(dis.get_instructions(code))


def parts(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object, and all code objects inside of it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from parts(const)


def _is_written(following: Sequence[dis.Instruction]) -> bool:
    """Whether the next instruction loads a method that writes to a tensor, such as ``set_data`` or ``add_``."""
    return any(step.opname in ("LOAD_METHOD", "LOAD_ATTR") and step.argval != "_" and (
        step.argval == "set_data" or (step.argval.endswith("_") and not step.argval.endswith("__")))
        for step in following)


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
    subscript = i + 4  # in table[key] += 1, the key and two copies come before the element
    return opnames[1:] == ["COPY", "COPY", opnames[-1]] and _reads_item(steps[subscript]) and _stores(steps, subscript)


def _reads_item(step: dis.Instruction) -> bool:
    """Whether an instruction is ``table[key]``, which is an operator of two values since Python 3.14."""
    return step.opname == "BINARY_SUBSCR" or (step.opname == "BINARY_OP" and step.argrepr == "[]")


def _stores(steps: Sequence[dis.Instruction], i: int) -> bool:
    """Whether the value that an instruction leaves is the left operand of an assignment such as ``n += 1``."""
    depth, at = 1, i + 1
    while at < len(steps) and depth > 0 and steps[at].opcode not in dis.hasjrel:
        step = steps[at]
        if depth == 2 and step.opname == "BINARY_OP" and step.argrepr.endswith("="):
            behind = next((following for following in steps[at + 1:] if following.opname != "SWAP"), step)
            return behind.opname.startswith("STORE_") and behind.opname != "STORE_FAST" and (
                behind.opname == "STORE_SUBSCR" or behind.argval == steps[i].argval)
        depth += dis.stack_effect(step.opcode, step.arg if step.opcode >= dis.HAVE_ARGUMENT else None)
        at += 1
    return False
