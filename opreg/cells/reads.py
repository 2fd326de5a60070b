"""Reads: the state that a trace has read, and whether it has changed.

Cells and Parameters count their changes: a trace notes the attributes that it read, and compares them when the version
of their owner has changed. Other state that Python code reads from outside is noted by the ``Observer`` and compared
before each run. A trace that set an attribute is valid as long as the attribute has the value that the trace set.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any, Protocol

from opreg.ndarray.ndarray import NDArray

from ..core.comparisons import Check, Comparison, Comparisons, Puts
from ..core.held_values import ABSENT, HeldElements, HeldValue
from .context_settings import EPOCH, get_context
from .former_state import FormerState

__all__ = ["Owner", "TABLES", "Reads", "Watcher", "attribute"]

#: Attributes of a Cell that its results do not depend on, or that ``_state`` includes.
_INNER = frozenset({
    "_hooks", "_jitted", "_version", "_auto_prefix", "_name", "_parent", "_cast", "_cast_out", "_running",
    "_checked_names", "_groups", "_plain", "_methods", "_has_bprop", "_construct_arity", "_transient", "_bprop_debug",
    "__dict__"})
#: Attributes that are containers, whose elements change only with the version.
TABLES = frozenset({"_params", "_cells", "_buffers"})
#: Attributes that every Cell has for itself; a program may give others names with an underscore, too.
OF_CELLS = frozenset({*_INNER, *TABLES, "_flags", "_layer", "_phase"})


class Watcher(Protocol):
    """An observer of Python code; it is told the values that code uses, their attributes that are read, and whether
    arrays are copied."""

    copies: bool

    def note_use(self, value: Any) -> None:
        """Note that code uses a value."""

    def attribute(self, owner: Any, name: str, value: Any, frame: FrameType) -> None:
        """Note that an attribute of an object is read in a frame."""

    def begin_again(self) -> None:
        """Note from now on also reads of places that were read before, and those of the functions that run."""

    def note_changes(self, names: Iterable[str], title: str) -> None:
        """Note that an operator may change variables and attributes of these names."""


class Owner(Protocol):
    """A Cell or a Parameter, which counts the changes of its attributes."""

    _version: int


def _state(owner: Owner) -> tuple[Any, ...]:
    """State of a Cell or Parameter besides attributes: class, hooks, casts, shape, dtype, whether it is trained."""
    if isinstance(owner, NDArray):
        hooks = getattr(owner, "_hooks", None)
        return getattr(owner, "_requires_grad", None), owner.shape, owner._data.dtype, tuple(hooks or ())
    own = owner.__dict__
    return type(owner), tuple(map(tuple, own["_hooks"].values())), own["_cast"], own["_cast_out"], own["_bprop_debug"]


def attribute(owner: Owner, name: str) -> Any:
    """The stored value of a Cell's attribute, from its own dict or from what it has registered."""
    attributes = owner.__dict__
    if name in attributes:
        return attributes[name]
    for table in ("_params", "_groups", "_buffers", "_cells"):
        if name in attributes[table]:
            return attributes[table][name]
    return ABSENT


class _After:
    """The state that a trace reads between a call of Python in the graph and the next.

    Attributes
    ----------
    places : dict
        Comparisons, by identity.
    attributes : dict
        Attributes of Cells, by owner and name.
    states : dict
        The states of Cells and Parameters beside attributes, by owner.
    settings : set of str
        Settings of ``set_context``.
    check : callable or None
        Compares the places.
    """

    __slots__ = ("places", "attributes", "states", "settings", "check")

    def __init__(self, places: dict[int, Comparison]):
        self.places = places
        self.attributes: dict[tuple[int, str], tuple[weakref.ref[Owner], str, HeldValue | HeldElements]] = {}
        self.states: dict[int, tuple[weakref.ref[Owner], tuple[Any, ...]]] = {}
        self.settings: set[str] = set()
        self.check: Check | None = None

    def renew(self) -> None:
        """Let everything but places count as read now, since a trace may have changed it itself."""
        for place, (ref, name, held) in self.attributes.items():
            owner = ref()
            if owner is not None:
                self.attributes[place] = ref, name, type(held)(attribute(owner, name))
        for key, (reference, _) in self.states.items():
            owner = reference()
            if owner is not None:
                self.states[key] = reference, _state(owner)

    def renew_places(self) -> None:
        """Let places count as read now."""
        self.places = {number: each.renewed() for number, each in self.places.items()}


class Reads:
    """Attributes and values that a trace has read or changed.

    Attributes
    ----------
    epoch : int
        The global count of changes when the attributes of Cells were last compared equal.
    check : callable or None
        Compares state that does not count its changes, see ``Comparisons``; None if none was read.
    comparisons : Comparisons
        The places that ``check`` compares.
    observer : Watcher or None
        The observer of Python code, during the trace.
    former : FormerState
        The state that the trace reads before calls of Python that have changed it.
    """

    def __init__(self) -> None:
        self.epoch = EPOCH[0]
        self.check: Check | None = None
        self._spent: str | None = None
        self._compare: Check | None = None  # ``check``, also after the trace has changed a value itself
        self.comparisons = Comparisons()
        self.observer: Watcher | None = None
        self.former = FormerState()
        self._owners: dict[int, Owner] = {}  # kept alive during the trace
        self._states: dict[int, tuple[int, tuple[Any, ...]]] = {}
        self._before: dict[int, dict[str, HeldValue | HeldElements | None]] = {}
        self._changed: dict[int, set[str]] = {}
        self._set: list[tuple[Owner, str, Any]] = []  # attributes that were set, with their values before
        self._noted: list[Any] = []
        self._calls: list[_After] = []  # for each call of Python in the graph
        self._settings: dict[str, Any] = {}

    @property
    def has_counted(self) -> bool:
        """Whether Cells, Parameters or settings were read, which count their changes."""
        return bool(self._noted or self._settings)

    # ---------------------------------------------------------------------------------------------- noting

    def visit(self, owner: Owner) -> None:
        """Note that a Cell is called, or a Parameter is used."""
        is_new = id(owner) not in self._states
        if is_new:
            self._owners[id(owner)] = owner
            self._states[id(owner)] = owner._version, _state(owner)
        if self._calls and id(owner) not in self._calls[-1].states:
            self._calls[-1].states[id(owner)] = weakref.ref(owner), self._states[id(owner)][1]
            is_new = True
        if is_new and self.observer is not None:
            self.observer.note_use(owner)

    def attribute(self, owner: Owner, name: str, value: object) -> None:
        """Note that an attribute of a Cell is read."""
        if name in _INNER:
            return
        self._owners[id(owner)] = owner
        before = self._before.setdefault(id(owner), {})
        if name not in before:
            before[name] = HeldElements(value) if name in TABLES else HeldValue(value)
        held = before[name]
        if self._calls and held is not None:
            self._calls[-1].attributes[id(owner), name] = weakref.ref(owner), name, held
        if isinstance(value, NDArray) and hasattr(value, "_version"):
            self.visit(value)

    def change(self, owner: Owner, name: str) -> None:
        """Note that an attribute of a Cell will be set or deleted."""
        self._owners[id(owner)] = owner
        self._before.setdefault(id(owner), {}).setdefault(name, None)
        changed = self._changed.setdefault(id(owner), set())
        if name not in changed:
            changed.add(name)
            self._set.append((owner, name, attribute(owner, name)))

    def put_back(self) -> None:
        """Undo what the code of a trace has changed: attributes of Cells, and places, containers and buffers."""
        for owner, name, before in self._set:
            if attribute(owner, name) is before or name in owner.__dict__["_params"]:
                continue
            if before is ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self.comparisons.put_back()

    def renew(self, owner: Owner) -> None:
        """Forget the notes about a Cell that has just completed itself."""
        self._set = [each for each in self._set if each[0] is not owner]
        self._states.pop(id(owner), None)
        self._before.pop(id(owner), None)
        self._changed.pop(id(owner), None)

    def note_call(self) -> int:
        """Note a call of Python in the graph, which may change state that is read from now on; returns its number."""
        self._calls.append(_After(self.comparisons.begin()))
        self.former.reach(len(self._calls) - 1)
        if self.observer is not None:
            self.observer.begin_again()
        return len(self._calls) - 1

    def setting(self, name: str) -> Any:
        """Note and return a setting of ``set_context``."""
        if self._calls:
            self._calls[-1].settings.add(name)
        return self._settings.setdefault(name, get_context(name))

    def close(self, values: bool = True) -> None:
        """End the trace; ``values`` says whether all values that were read count, or only the state of Cells and
        Parameters. A trace that has changed a value that it had read serves one run: the runs of a graph do not change
        it again."""
        if not values:
            self._before, self.comparisons = {}, Comparisons()
        for key, owner in self._owners.items():
            before, changes = self._before.get(key, {}), self._changed.get(key, ())
            noted = [(name, before_value, HeldValue(attribute(owner, name)) if name in changes else None)
                     for name, before_value in before.items()]
            version, state = self._states.get(key, (owner._version, None))
            self._noted.append([weakref.ref(owner), version, state, noted])
        self._owners, self._states, self._before, self._changed, self._set = {}, {}, {}, {}, []
        self.comparisons.close()
        self.check = self.comparisons.compiled()
        self._spend(None if self.check is None else self.check())
        for after in self._calls:
            after.renew()
            if self._spent is not None:
                after.renew_places()

    def join(self, other: Reads) -> None:
        """Add the reads of another trace."""
        self._noted += other._noted
        self._settings.update(other._settings)
        self.epoch = min(self.epoch, other.epoch)
        self.comparisons.join(other.comparisons)
        self.check = self.comparisons.compiled()
        self._spend(self._spent or other._spent)

    def _spend(self, label: str | None) -> None:
        """Let the trace serve one run if it has changed a value itself."""
        self._spent, self._compare = label, self.check
        if label is not None:
            self.check = functools.partial(str, label)

    # --------------------------------------------------------------------------------------------- asking

    def changed(self) -> str | None:
        """The state that has changed since, as text; None if nothing has."""
        if self.check is not None and (label := self.check()) is not None:
            return label
        return None if self.epoch == EPOCH[0] else self._changed_cell()

    def outdated(self) -> str | None:
        """``changed``, for a trace that has run already: what it has changed itself does not count."""
        return None if self._spent is not None else self.changed()

    def changed_after(self, call: int) -> str | None:
        """The state that is read between a call of Python and the next, and has changed since the trace, as text; None
        if nothing has."""
        after = self._calls[call]
        if self.epoch != EPOCH[0]:
            for ref, name, before in after.attributes.values():
                owner = ref()
                if owner is not None and not before.same(attribute(owner, name)):
                    return f"{_name_of_owner(owner)}.{name}"
            for reference, state in after.states.values():
                owner = reference()
                if owner is not None and _state(owner) != state:
                    return _name_of_owner(owner)
            for name in after.settings:
                if get_context(name) != self._settings[name]:
                    return f"the setting {name}"
        if after.check is None:
            after.check = self.comparisons.compiled(after.places.values()) or _unchanged
        return after.check()

    def former_values(self) -> list[Puts]:
        """For each place that has changed since it was read, functions that give it its former value, and the one it
        has now."""
        found = self.comparisons.changed()
        for after in self._calls:
            found += [puts for each in after.places.values() if (puts := each.puts()) is not None]
        return [*found, *self._former_attributes(False)]

    def _former_attributes(self, also_set: bool) -> Iterator[Puts]:
        """``former_values`` of attributes of Cells; ``also_set`` says whether those that the trace has set count."""
        for ref, _, _, attributes in self._noted:
            owner = ref()
            for name, before, after_trace in attributes if owner is not None else ():
                if isinstance(before, HeldValue) and (also_set or after_trace is None):
                    yield from _puts(owner, name, before)

    @contextlib.contextmanager
    def as_read(self) -> Iterator[str | None]:
        """A context in which places have the values that the trace read first, also those that it has changed itself.
        It gives the state that has changed since and cannot be set, as text; None if all has its value."""
        puts = [*self.comparisons.changed(), *self._former_attributes(True)]
        for before, _ in puts:
            before()
        try:
            yield (None if self._compare is None else self._compare()) or self._changed_cell(True)
        finally:
            for _, after in puts:
                after()

    def _changed_cell(self, first: bool = False) -> str | None:
        """The Cell, Parameter or setting that has changed, as text; ``first`` says that values count which the trace
        read, and not those that it has set."""
        epoch = EPOCH[0]
        for name, value in self._settings.items():
            if get_context(name) != value:
                return f"the setting {name}"
        for note in self._noted:
            ref, version, state, attributes = note
            owner = ref()
            if owner is None or (owner._version == version and not first):
                continue
            if state is not None and _state(owner) != state:
                return _name_of_owner(owner)
            for name, before, after in attributes:
                now = attribute(owner, name)
                if (before is not None and not before.same(now)) or (
                        after is not None and not first and not after.same(now)):
                    return f"{_name_of_owner(owner)}.{name}"
            note[1] = version if first else owner._version
        self.epoch = self.epoch if first else epoch
        return None


def _set(owner: Any, name: str, value: Any) -> None:
    """Set or delete an attribute of a Cell."""
    if value is ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


def _puts(owner: Owner, name: str, before: HeldValue) -> list[Puts]:
    """Functions that give an attribute of a Cell its former value, and the one it has now, if these differ."""
    now, former = attribute(owner, name), before.value() if before.weak else before.value
    if before.same(now) or (before.weak and former is None):
        return []
    return [(functools.partial(_set, owner, name, former), functools.partial(_set, owner, name, now))]


def _unchanged() -> None:
    """The check without a place."""


def _name_of_owner(owner: Any) -> str:
    return owner.path if hasattr(owner, "path") else f"Parameter {owner.name}"
