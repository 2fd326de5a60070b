"""Reads: what a trace has found in Cells, in Parameters and outside of its function, and whether it is still so.

What is noted is what was read: attributes of Cells, however the function got at them; whether a Parameter is trained;
the hooks of Cells that were called; numbers, text, tensors, Cells and small containers that the function has from
outside by name. A trace that changed an attribute is true as long as that, too, is as it was left.
"""

from __future__ import annotations

import dis
import functools
import types
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ..core.cache import cached
from ..core.locks import lock
from .state import EPOCH, STATE, get_context

if TYPE_CHECKING:
    from .cell import Cell
    from .parameter import Parameter
    from .parameter_container import ParameterContainer

__all__ = ["Reads", "attribute", "noting"]


class _Absent:
    """An attribute that is not there."""


ABSENT = _Absent()

#: Attributes of a Cell that are no business of what it computes, or that ``_state`` has.
_INNER = frozenset({
    "_hooks", "_jitted", "_version", "_auto_prefix", "_name", "_parent", "_cast", "_running", "_checked_names",
    "_plain", "_methods", "_has_bprop", "_construct_arity", "_transient", "_bprop_debug"})
#: Of those, containers that only change with a new version.
_TABLES = frozenset({"_params", "_cells", "_buffers"})
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)
_NESTED = (list, tuple, dict, set)
#: How many entries of containers are compared on every call, at most.
MOST = 64


class _Snapshot:
    """A value, as it can be told later whether another is the same: plain ones by number, others by identity."""

    __slots__ = ("value", "_ref", "parts")

    def __init__(self, value: Any, count: list[int] | None = None):
        self.parts: list[_Snapshot] | None = None
        self.value = value
        self._ref: weakref.ref[Any] | None = None
        if isinstance(value, _NESTED):
            items = _items(value)
            count = [MOST] if count is None else count
            count[0] -= len(items)
            if count[0] >= 0:
                self.parts = [_Snapshot(item, count) for item in items]
        elif not isinstance(value, _PLAIN) and value is not ABSENT:
            try:  # nothing is kept alive
                self._ref, self.value = weakref.ref(value), None
            except TypeError:
                pass

    def same(self, now: object) -> bool:
        """Whether that is the same."""
        if self._ref is not None:
            return self._ref() is now
        value = self.value
        if value is not now:
            if not isinstance(value, _PLAIN) or value.__class__ is not now.__class__:
                return False
            return bool(value and value == now) or repr(value) == repr(now)  # zeros have signs, a NaN equals nothing
        if self.parts is None:
            return True
        items = _items(now)
        return len(items) == len(self.parts) and all(map(_Snapshot.same, self.parts, items))

    @property
    def changes(self) -> bool:
        """Whether it may change while it stays the same object."""
        return self.parts is not None and (not isinstance(self.value, tuple)
                                           or any(part.changes for part in self.parts))


def _items(value: Any) -> list[Any]:
    return [*value, *value.values()] if isinstance(value, dict) else list(value)


def _state(owner: ParameterContainer | Parameter) -> tuple[Any, ...]:
    """What else matters of a Cell or a Parameter that takes part: hooks, casts, shape, whether it is trained."""
    if isinstance(owner, NDArray):
        hooks = getattr(owner, "_hooks", None)
        return getattr(owner, "_requires_grad", None), owner.shape, tuple(hooks or ())
    own = owner.__dict__
    return tuple(map(tuple, own["_hooks"].values())), own["_cast"], own["_bprop_debug"]


def attribute(owner: ParameterContainer | Parameter, name: str) -> Any:
    """An attribute of a Cell as it is held, whether in its own dict or among what it has registered."""
    own = owner.__dict__
    if name in own:
        return own[name]
    for table in ("_params", "_buffers", "_cells"):
        if name in own[table]:
            return own[table][name]
    return ABSENT


class Reads:
    """What a trace has read and changed.

    Attributes
    ----------
    epoch : int
        The count of all changes at which everything was last seen to be as it was.
    loose : bool
        Whether something was read that may change without being counted.
    """

    def __init__(self) -> None:
        self.epoch = EPOCH[0]
        self.loose = False
        self._owners: dict[int, ParameterContainer | Parameter] = {}  # kept alive while the trace goes on
        self._states: dict[int, tuple[int, tuple[Any, ...]]] = {}
        self._before: dict[int, dict[str, _Snapshot | None]] = {}
        self._changed: dict[int, set[str]] = {}
        self._names: dict[tuple[int, str], tuple[Any, str, _Snapshot]] = {}  # from outside: globals or cells
        self._codes: set[types.CodeType] = set()
        self._noted: list[Any] = []
        self._outside: list[tuple[Any, str, _Snapshot]] = []
        self._containers: list[tuple[_Snapshot, weakref.ref[ParameterContainer | Parameter], str]] = []  # of attributes
        self._settings: dict[str, Any] = {}

    # ---------------------------------------------------------------------------------------------- noting

    def visit(self, owner: Cell | Parameter) -> None:
        """A Cell is called, or a Parameter takes part."""
        if id(owner) not in self._states:
            self._owners[id(owner)] = owner
            self._states[id(owner)] = owner._version, _state(owner)
            if not isinstance(owner, NDArray):
                self.function(type(owner).construct)

    def attribute(self, owner: ParameterContainer | Parameter, name: str, value: object) -> None:
        """An attribute of a Cell is read."""
        if name in _INNER:
            return
        self._owners[id(owner)] = owner
        before = self._before.setdefault(id(owner), {})
        if name not in before:
            before[name] = _Snapshot(value)
            if isinstance(value, NDArray) and hasattr(value, "_version"):
                self.visit(value)  # type: ignore[arg-type]  # a Parameter, which stands above

    def change(self, owner: ParameterContainer | Parameter, name: str) -> None:
        """An attribute of a Cell is about to be set or deleted."""
        self._owners[id(owner)] = owner
        self._before.setdefault(id(owner), {}).setdefault(name, None)
        self._changed.setdefault(id(owner), set()).add(name)

    def renew(self, owner: ParameterContainer | Parameter) -> None:
        """What is known of a Cell is what it is now: it has just completed itself."""
        self._states.pop(id(owner), None)
        self._before.pop(id(owner), None)
        self._changed.pop(id(owner), None)

    def function(self, function: Callable[..., Any]) -> None:
        """The function is followed: what it, and what it names of its package, has from outside."""
        waiting = [_plain(function)]
        package = _package(waiting[0])
        while waiting:
            function = _plain(waiting.pop())
            code = getattr(function, "__code__", None)
            if code is None or code in self._codes or _package(function) in ("opreg", "") \
                    or _package(function) != package:
                continue
            self._codes.add(code)
            named: list[tuple[Any, str]] = [(cell, "") for cell in function.__closure__ or ()]
            named += [(function.__globals__, name) for name in _globals(code)]
            for place, name in named:
                value = _outside(place, name)
                self._names.setdefault((id(place), name), (place, name, _Snapshot(value)))
                if isinstance(value, types.FunctionType):
                    waiting.append(value)

    def setting(self, name: str) -> Any:
        """A setting of ``set_context`` is read."""
        return self._settings.setdefault(name, get_context(name))

    def settle(self, attributes: bool = True) -> None:
        """The trace is over; ``attributes`` and what is outside matter."""
        if not attributes:
            self._before, self._names = {}, {}
        for place, name, outside in self._names.values():
            value = _outside(place, name)
            if outside.same(value) and (isinstance(value, (*_PLAIN, *_NESTED, NDArray, np.ndarray))
                                        or hasattr(value, "_params")):  # what the trace itself changes is an effect
                self._outside.append((place, name, outside))
        for key, owner in self._owners.items():
            before, changes = self._before.get(key, {}), self._changed.get(key, ())
            noted = []
            for name, snapshot in before.items():
                after = _Snapshot(attribute(owner, name)) if name in changes else None
                if snapshot is not None and snapshot.changes and name not in _TABLES:
                    if snapshot.same(snapshot.value):
                        self._containers.append((snapshot, weakref.ref(owner), name))
                    else:
                        snapshot.parts = None
                noted.append((name, snapshot, after))
            version, state = self._states.get(key, (owner._version, None))
            self._noted.append([weakref.ref(owner), version, state, noted])
        self.loose = bool(self._outside or self._containers)
        self._owners, self._states, self._before, self._changed, self._names = {}, {}, {}, {}, {}

    def join(self, other: Reads) -> None:
        """What another trace has read matters, too."""
        self._noted += other._noted
        self._outside += other._outside
        self._containers += other._containers
        self._settings.update(other._settings)
        self.loose = self.loose or other.loose
        self.epoch = min(self.epoch, other.epoch)

    # --------------------------------------------------------------------------------------------- asking

    def changed(self) -> str | None:
        """What is no longer as it was, in words; None if nothing is."""
        for place, name, snapshot in self._outside:
            now = place.get(name, ABSENT) if name else _outside(place, name)
            if (snapshot.parts is not None or now is not snapshot.value) and not snapshot.same(now):
                return f"{name or 'a variable'}, which it has from outside,"
        for snapshot, ref, name in self._containers:
            owner = ref()
            if owner is not None and not snapshot.same(attribute(owner, name)):
                return f"{_named(owner)}.{name}"
        if self.epoch == EPOCH[0]:
            return None
        epoch = EPOCH[0]
        for name, value in self._settings.items():
            if get_context(name) != value:
                return f"the setting {name}"
        for note in self._noted:
            ref, version, state, attributes = note
            owner = ref()
            if owner is None or owner._version == version:
                continue
            if state is not None and _state(owner) != state:
                return _named(owner)
            for name, before, after in attributes:
                now = attribute(owner, name)
                if (before is not None and not before.same(now)) or (after is not None and not after.same(now)):
                    return f"{_named(owner)}.{name}"
            note[1] = owner._version
        self.epoch = epoch
        return None


def _plain(function: Any) -> Any:
    """The function of Python behind what is called."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif getattr(type(function), "compiled", False):
            function = function.function
        else:
            return function


def _package(function: object) -> str:
    return (getattr(function, "__module__", None) or "").split(".")[0]


def _named(owner: ParameterContainer | Parameter) -> str:
    return owner.path if hasattr(owner, "path") else f"Parameter {owner.name}"


def _outside(place: Any, name: str) -> Any:
    """What a name from outside means now: a global, or a variable of an enclosing function."""
    if name:
        return place.get(name, ABSENT)
    try:
        return place.cell_contents
    except ValueError:  # not assigned yet
        return ABSENT


@cached(1024)
def _globals(code: types.CodeType) -> tuple[str, ...]:
    """The names that a piece of code, and what is defined within it, loads as globals."""
    return tuple(dict.fromkeys(_loaded(code)))


def _loaded(code: types.CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _loaded(inner)


class noting:
    """A stretch of code in which the Cells of a class are told from each other by what is read of them.

    ``__getattribute__`` stands in the class for as long only as somebody traces: it costs nothing otherwise.
    """

    _lock = lock()
    _count: dict[type, int] = {}

    def __init__(self, cls: type):
        self._class = cls

    def __enter__(self) -> None:
        with self._lock:
            count = self._count[self._class] = self._count.get(self._class, 0) + 1
            if count == 1:
                self._class.__getattribute__ = _noted  # type: ignore[method-assign, assignment]

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count[self._class] -= 1
            if not self._count[self._class]:
                del self._class.__getattribute__


def _noted(self: Any, name: str) -> Any:
    value = object.__getattribute__(self, name)
    trace = STATE.trace
    if trace is not None and name in object.__getattribute__(self, "__dict__"):
        trace.reads.attribute(self, name, value)
    return value
