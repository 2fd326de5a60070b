"""Comparisons of values that Python code read while a function was traced, by one generated function.

A trace is valid as long as each place that was read holds the same value: globals, closure variables, attributes,
elements of containers, and bytes of NumPy arrays. ``Comparisons`` collects the places, and generates the source of a
function with a line for each. A compiled function calls it before each run.
"""

from __future__ import annotations

import array
import collections
import contextvars
import functools
import operator
import threading
import types
from collections.abc import Callable, Collection, Hashable
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from .cache import cached
from .held_values import (
    ABSENT,
    BUFFERS,
    CONTAINERS,
    PLAIN,
    HeldElements,
    HeldValue,
    bytes_of,
    different,
    elements,
    put_back,
)

__all__ = ["MOST_ELEMENTS", "Check", "Comparison", "Comparisons", "Place", "Puts"]

#: The largest numbers of elements of containers, and of bytes of buffers, that are compared before each run.
MOST_ELEMENTS, MOST_BYTES = 4096, 1 << 20
#: The largest number of places of a trace that are compared.
MOST_PLACES = 10_000

#: Names a value that has changed, or returns None.
Check: TypeAlias = Callable[[], str | None]
#: Functions that give a place its former value, and the one it has now.
Puts: TypeAlias = tuple[Callable[[], None], Callable[[], None]]


def _missing_place(error: Exception) -> str:
    """The name of a place that no longer exists, from the error of reading it."""
    if isinstance(error, KeyError):
        return f"the name {error.args[0]}"
    if isinstance(error, AttributeError):
        return f"{type(error.obj).__name__}.{error.name}"
    return "a variable of an enclosing function"


@cached(256)
def _code(text: str) -> types.CodeType:
    """The code of a function from its source, which is the same for most traces of a function. Its file lies in this
    package, since a trace does not observe what such a function reads."""
    module = compile(text, f"{__file__}: comparisons", "exec")
    return next(const for const in module.co_consts if isinstance(const, types.CodeType))


class _Text:
    """The source of a function, and the objects that its names refer to."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {"absent": ABSENT, "different": different, "identical": operator.is_,
                                        "gone": _missing_place}
        self._names: dict[int, str] = {}
        self.lines: list[str] = []

    def name(self, value: Any) -> str:
        """The name of an object in the source. The function holds the object."""
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"v{len(self._names)}"
            self.objects[name] = value
        return name

    def report(self, condition: str, label: str, indent: str = "") -> None:
        """Add a line that returns a label under a condition."""
        self.lines.append(f"{indent}if {condition}: return {self.name(label)}")

    def differs(self, expression: str, held: HeldValue) -> str:
        """The condition that an expression has changed its value."""
        value = held.value
        if held.weak:
            return f"(v := {expression}) is None or v is not {self.name(value)}()"
        if value is None or value is True or value is False:
            return f"{expression} is not {value}"
        name = self.name(value)
        if issubclass(type(value), PLAIN):
            return f"(v := {expression}) is not {name} and different(v, {name})"
        return f"{expression} is not {name}"

    def function(self) -> Check:
        """Compile the function. Its objects are globals: Python caches where these lie, and copies closure variables in
        each call."""
        lines = "\n".join(f"        {line}" for line in self.lines)
        text = (f"def changed():\n    try:\n{lines}\n"
                "    except (AttributeError, KeyError, ValueError) as error:\n        return gone(error)\n")
        # a copy, since Python stores places of globals in the code object
        return types.FunctionType(_code(text).replace(), self.objects)


class Comparison(Protocol):
    """A place that was read, with its value at that time."""

    def write(self, text: _Text) -> None:
        """Add the line that compares it."""

    def renewed(self) -> Comparison:
        """The same place with the value that it has now."""

    def puts(self) -> Puts | None:
        """If the place has changed and can be set: functions that give it its former value, and the one it has now."""


class _Slot(NamedTuple):
    """The value of a name in a dict, or of a closure variable."""

    owner: Any
    name: str
    held: HeldValue
    label: str

    def write(self, text: _Text) -> None:
        """Add the line that compares it."""
        owner = text.name(self.owner)
        if isinstance(self.owner, types.CellType):
            read = f"{owner}.cell_contents"
        elif self.held.value is ABSENT and type(self.owner) is dict:
            text.report(f"{self.name!r} in {owner}", self.label)
            return
        elif type(self.owner) is not dict:
            read = f"{owner}.get({self.name!r}, absent)"
        else:
            read = f"{owner}[{self.name!r}]"
        text.report(text.differs(read, self.held), self.label)

    def renewed(self) -> _Slot:
        """The same place with the value that it has now."""
        return self._replace(held=HeldValue(Place(self.owner, self.name, ABSENT, "").now()))

    def puts(self) -> Puts | None:
        """Functions that set it, if it has changed."""
        return _puts(self.owner, self.name, self.held)


def _puts(owner: Any, name: str, held: HeldValue) -> Puts | None:
    """Functions that give a place its former value, and the one that it has now; None if it has not changed, or if the
    former object is gone."""
    former = held.value() if held.weak else held.value
    now = Place(owner, name, former, "").now()
    if held.same(now) or (former is None and held.weak):
        return None
    return Place(owner, name, former, "").put_back, Place(owner, name, now, "").put_back


class _Elements:
    """A container with its former elements."""

    __slots__ = ("container", "held", "label")

    def __init__(self, container: Any, label: str, held: HeldElements | None = None):
        self.container, self.label = container, label
        self.held = HeldElements(container) if held is None else held

    def write(self, text: _Text) -> None:
        """Add the line that compares the container: all elements by identity, at 25 ns an element, then one by one."""
        name = text.name(self.container)
        condition = f"not {text.name(self.held)}.same({name})"
        values = [element.value for element in self.held]
        if self.container.__class__ in (list, dict, collections.deque) and not any(each.weak for each in self.held):
            parts = {"": values}
            if self.container.__class__ is dict:
                parts = {"": values[:len(values) // 2], ".values()": values[len(values) // 2:]}
            same = [f"len({name}) == {len(parts[''])}"]
            same += [f"all(map(identical, {name}{part}, {text.name(tuple(of))}))" for part, of in parts.items() if of]
            condition = f"not ({' and '.join(same)}) and {condition}"
        text.report(condition, self.label)

    def renewed(self) -> _Elements:
        """The same container with the elements that it has now."""
        return _Elements(self.container, self.label)

    def puts(self) -> Puts | None:
        """Functions that set its elements, if they have changed."""
        former = [held.value() if held.weak else held.value for held in self.held]
        if self.held.same(self.container) or any(
                value is None and held.weak for value, held in zip(former, self.held)):
            return None
        return (functools.partial(put_back, self.container, former),
                functools.partial(put_back, self.container, elements(self.container)))


class _Entries:
    """The entries that a dict had when it was read. Entries that were added since are ignored."""

    __slots__ = ("entries", "label", "keys", "values")

    def __init__(self, entries: dict[Any, Any], label: str):
        self.entries, self.label = entries, label
        self.keys, self.values = tuple(entries), tuple(entries.values())

    def write(self, text: _Text) -> None:
        """Add the line that compares the entries."""
        name, keys, values = map(text.name, (self.entries, self.keys, self.values))
        text.report(f"not all(map(identical, map({name}.get, {keys}), {values}))", self.label)

    def renewed(self) -> _Entries:
        """The same dict with the entries that it has now."""
        return _Entries(self.entries, self.label)

    def puts(self) -> None:
        """Nothing sets the entries of a cache."""


class _Lacking:
    """A condition of the generated function: that an object has no attributes of some names. They are looked up only if
    the number of its attributes has changed."""

    __slots__ = ("count", "names")

    def __init__(self, owner: object):
        self.count = len(vars(owner))
        self.names: set[str] = set()

    def format(self, owner: str) -> str:
        """The source of the condition with the names found so far, for an object that the source calls ``owner``."""
        attributes = f"{owner}.__dict__"
        return f"(len({attributes}) == {self.count} or {attributes}.keys().isdisjoint({sorted(self.names)}))"


class _Path(NamedTuple):
    """The value of an expression in an object: the source of the expression, or a condition, with ``{}`` for the
    object."""

    owner: HeldValue
    text: str | _Lacking
    held: HeldValue
    label: str

    def write(self, text: _Text, name: str = "", indent: str = "") -> None:
        """Add the line that compares it, for an owner that has a name in the source."""
        text.report(text.differs(self.text.format(name), self.held), self.label, indent)

    def renewed(self) -> _Path:
        """The same expression with the value that it has now."""
        owner = self.owner.value() if self.owner.weak else self.owner.value
        if owner is None:
            return self
        try:
            value = eval(self.text.format("owner"), {"owner": owner, "absent": ABSENT})
        except (AttributeError, KeyError, ValueError):
            return self
        return self._replace(held=HeldValue(value))

    def puts(self) -> Puts | None:
        """Functions that set it, if it is an attribute or a context variable and has changed."""
        owner = self.owner.value() if self.owner.weak else self.owner.value
        if owner is None or not isinstance(self.text, str):
            return None
        name = self.text.removeprefix("{}.")
        if isinstance(owner, contextvars.ContextVar) and name == "get(absent)":
            return _puts(owner, owner.name, self.held)
        holder = _holder(owner, name) if name.isidentifier() and name != "__dict__" else None
        return None if holder is None else _puts(holder, name, self.held)


def _holder(owner: Any, name: str) -> Any:
    """The object or class that stores an attribute which may be set; None without one."""
    classes = owner.__mro__ if isinstance(owner, type) else type(owner).__mro__
    if not isinstance(owner, type):
        try:
            attributes = object.__getattribute__(owner, "__dict__")
            if name in attributes:
                return attributes if isinstance(owner, dict) else owner  # a dict as owner has names, not attributes
        except AttributeError:  # a class with slots
            pass
    for cls in classes:
        if name in vars(cls):
            member = vars(cls)[name]
            if isinstance(member, (types.MemberDescriptorType, types.GetSetDescriptorType)):
                return None if isinstance(owner, dict) else owner
            return None if hasattr(type(member), "__get__") and not isinstance(member, types.FunctionType) else cls
    return None


class _Missing:
    """Names that are missing in a dict. They are looked up only if the length of the dict has changed."""

    __slots__ = ("names", "missing", "label")

    def __init__(self, names: dict[str, Any], label: str):
        self.names, self.label = names, label
        self.missing: set[str] = set()

    def write(self, text: _Text) -> None:
        """Add the line that looks for them."""
        name, missing = text.name(self.names), text.name(self.missing)
        text.report(f"len({name}) != {len(self.names)} and not {name}.keys().isdisjoint({missing})", self.label)

    def renewed(self) -> _Missing:
        """The same dict with the names that it lacks now."""
        renewed = _Missing(self.names, self.label)
        renewed.missing = self.missing.difference(self.names)
        return renewed

    def puts(self) -> None:
        """Nothing takes names out of the dict."""


def _size_of(buffer: Any) -> int:
    """The number of bytes of a buffer."""
    return buffer.nbytes if isinstance(buffer, (np.ndarray, np.void)) else memoryview(buffer).nbytes


def _holds_objects(buffer: Any) -> bool:
    """Whether the elements of a buffer are Python objects."""
    return isinstance(buffer, (np.ndarray, np.void)) and buffer.dtype.hasobject


class _Bytes:
    """A buffer with its former bytes."""

    __slots__ = ("buffer", "held", "label")

    def __init__(self, buffer: Any, label: str):
        self.buffer, self.label = buffer, label
        self.held = bytes_of(buffer)

    def write(self, text: _Text) -> None:
        """Add the line that compares it."""
        text.report(f"{text.name(bytes_of)}({text.name(self.buffer)}) != {text.name(self.held)}", self.label)

    def renewed(self) -> _Bytes:
        """The same buffer with the bytes that it has now."""
        return _Bytes(self.buffer, self.label)

    def puts(self) -> Puts | None:
        """Functions that set its bytes, if they have changed."""
        return None if bytes_of(self.buffer) == self.held else (self.put_back, self.renewed().put_back)

    def put_back(self) -> None:
        """Restore the former bytes if the buffer has the same size and other bytes."""
        if bytes_of(self.buffer)[1:] != self.held[1:] or bytes_of(self.buffer) == self.held:
            return
        if isinstance(self.buffer, np.ndarray):
            self.buffer[...] = np.frombuffer(self.held[0], self.buffer.dtype).reshape(self.buffer.shape)
        elif isinstance(self.buffer, (bytearray, array.array)):
            memoryview(self.buffer).cast("B")[:] = self.held[0]


class _Answer(NamedTuple):
    """The answer of a function about a class; ``condition`` says with their names that it differs."""

    owner: type
    function: Callable[[Any], object]
    value: object
    condition: str
    label: str

    def write(self, text: _Text) -> None:
        """Add the line that compares it."""
        text.report(self.condition.format(*map(text.name, (self.owner, self.function, self.value))), self.label)

    def renewed(self) -> _Answer:
        """The same question with the answer of now."""
        return self._replace(value=self.function(self.owner))

    def puts(self) -> None:
        """Nothing changes the class."""


class Place(NamedTuple):
    """A variable outside of traced code that the code may set: a dict's key, a closure variable, an attribute, or a
    context variable.

    Attributes
    ----------
    owner : dict, closure variable or other object
        The object that holds the value.
    name : str
        The key, or the name of the variable or attribute.
    before : object
        The value before the code ran; ``ABSENT`` where there was none.
    label : str
        The name of the variable in messages.
    """

    owner: Any
    name: str
    before: Any
    label: str

    def now(self) -> Any:
        """Its value.

        Examples
        --------
        >>> place = Place(vars(owner := types.SimpleNamespace(x=1)), "x", 1, "owner.x")
        >>> owner.x = 2
        >>> place.now()
        2
        """
        if isinstance(self.owner, dict):
            return self.owner.get(self.name, ABSENT)
        try:
            if isinstance(self.owner, contextvars.ContextVar):
                return self.owner.get()  # get() may return the default of a ContextVar
            if isinstance(self.owner, types.CellType):
                return self.owner.cell_contents
            if isinstance(self.owner, (type, threading.local)):
                return vars(self.owner).get(self.name, ABSENT)
            # read without the hook that ``observer`` puts into the class
            return object.__getattribute__(self.owner, self.name)
        except (AttributeError, ValueError, LookupError):
            return ABSENT

    def put_back(self) -> None:
        """Restore the value from before the trace. A context variable that had no value keeps the new one."""
        if self.now() is self.before:
            return
        if isinstance(self.owner, contextvars.ContextVar):
            if self.before is not ABSENT:
                self.owner.set(self.before)
            return
        if isinstance(self.owner, dict):
            if self.before is ABSENT:
                del self.owner[self.name]
            else:
                self.owner[self.name] = self.before
        elif isinstance(self.owner, types.CellType):
            if self.before is ABSENT:
                del self.owner.cell_contents
            else:
                self.owner.cell_contents = self.before
        elif self.before is ABSENT:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.before)


class Comparisons:
    """Places that were read, with their values at that time.

    Attributes
    ----------
    unseen : dict
        Descriptions of values that were read and cannot be compared, in order.
    """

    def __init__(self) -> None:
        self.unseen: dict[str, None] = {}
        self._keys: dict[tuple[object, ...], Comparison | None] = {}
        self._alive: list[object] = []  # references during collection, since ids are keys
        self._places: list[Comparison] = []
        self._paths: list[_Path] = []
        self._owners: dict[int, HeldValue] = {}  # of paths; available until ``close``
        self._lacking: dict[int, tuple[_Lacking, _Path]] = {}
        self._contents: list[Comparison] = []
        self._latest: dict[int, Comparison] = {}  # read since ``begin``
        self._missing: dict[int, _Missing] = {}
        self._early: dict[int, Any] = {}  # former elements of containers, and bytes of buffers, by identity
        self._outside: dict[int, tuple[Any, list[Any], str]] = {}
        self._stores: dict[tuple[int, str], Place] = {}
        self._elements, self._bytes = MOST_ELEMENTS, MOST_BYTES  # remaining budget
        self._most_early = MOST_ELEMENTS

    def begin(self) -> dict[int, Comparison]:
        """Begin to collect what is read from now on, also what was read before; returns it, by identity."""
        self._latest = {}
        return self._latest

    def _is_new(self, place: object, *key: Hashable) -> tuple[object, ...] | None:
        """The key of a place, or None if the place was recorded before."""
        full_key = id(place), *key
        if full_key in self._keys:
            known = self._keys[full_key]
            if known is not None:
                self._latest[id(known)] = known
            return None
        if len(self._keys) >= MOST_PLACES:
            self.unseen[f"more than {MOST_PLACES} values"] = None
            return None
        self._keys[full_key] = None
        self._alive.append(place)
        return full_key

    def _add(self, kind: list[Any], key: tuple[object, ...], comparison: Comparison) -> None:
        """Add a comparison to the others of its kind."""
        kind.append(comparison)
        self._keys[key] = self._latest[id(comparison)] = comparison

    def entry(self, names: dict[str, Any], name: str, value: object, label: str) -> None:
        """Record the value of a name in a dict, such as a global."""
        if key := self._is_new(names, "entry", name):
            self._add(self._places, key, _Slot(names, name, HeldValue(value), label))

    def variable(self, cell: types.CellType, value: object, label: str) -> None:
        """Record the value of a closure variable."""
        if key := self._is_new(cell, "variable"):
            self._add(self._places, key, _Slot(cell, "", HeldValue(value), label))

    def lacks(self, owner: object, name: str, label: str) -> None:
        """Record that an object has no attribute of its own of a name."""
        if key := self._is_new(owner, "lacks", name):
            if id(owner) not in self._lacking:
                lacking = _Lacking(owner)
                path = _Path(self._path_owner(owner), lacking, HeldValue(True), label)
                self._lacking[id(owner)] = lacking, path
                self._paths.append(path)
            lacking, path = self._lacking[id(owner)]
            lacking.names.add(name)
            self._keys[key] = self._latest[id(path)] = path

    def path(self, owner: object, path: str, value: object, label: str) -> None:
        """Record the value of an expression in an object, such as ``"{}.scale"``, whose evaluation runs no Python
        code."""
        if key := self._is_new(owner, "path", path):
            self._add(self._paths, key, _Path(self._path_owner(owner), path, HeldValue(value), label))

    def _path_owner(self, owner: object) -> HeldValue:
        """An owner of paths, the same for all of its paths."""
        return self._owners.setdefault(id(owner), HeldValue(owner))

    def size(self, cls: type, size_of: Callable[[type], int], label: str) -> None:
        """Record the number of a class's own attributes. ``size_of`` counts them; it is called only if the length of
        ``__dict__`` has changed, as it does while another thread traces."""
        if key := self._is_new(cls, "size"):
            self._add(self._places, key, _Answer(
                cls, size_of, size_of(cls), "len({0}.__dict__) != {2} and {1}({0}) != {2}", label))

    def answer(self, owner: type, function: Callable[[Any], object], label: str) -> None:
        """Record the object that a function returns for an owner."""
        if key := self._is_new(owner, "answer", function):
            self._add(self._places, key, _Answer(owner, function, function(owner), "{1}({0}) is not {2}", label))

    def content(self, value: Any, label: str) -> bool:
        """Record the elements of a container, or the bytes of a buffer. Returns whether they are within the limits."""
        key = self._is_new(value, "content")
        if key is None:
            return True
        if isinstance(value, CONTAINERS):
            if len(value) > self._elements:
                self.unseen[f"{label}, which has {len(value)} elements"] = None
                return False
            self._elements -= len(value)
            if not isinstance(value, (tuple, frozenset)):  # immutable: compared by identity
                self._outside.setdefault(id(value), (value, elements(value), label))
                self._add(self._contents, key, _Elements(value, label, self._early.pop(id(value), None)))
            return True
        if _holds_objects(value) and value.size <= self._elements:
            self._elements -= value.size
            self._add(self._contents, key, _Elements(value, label))
            return True
        size = _size_of(value)
        if size > self._bytes or _holds_objects(value):
            self.unseen[f"{label}, an array of {size} bytes; elements of a Tensor are seen"] = None
            return False
        self._bytes -= size
        self._add(self._contents, key, self._early.pop(id(value), None) or _Bytes(value, label))
        return True

    def entries(self, value: dict[Any, Any], label: str) -> None:
        """Record the entries that a dict has now, such as those of a cache: a removed or replaced one counts as a
        change, an added one does not."""
        if key := self._is_new(value, "entries"):
            if len(value) > self._elements:
                self.unseen[f"{label}, which has {len(value)} entries"] = None
                return
            self._elements -= len(value)
            self._add(self._contents, key, _Entries(value, label))

    def missing(self, names: dict[str, Any], name: str, label: str) -> None:
        """Note that a name was looked up in a dict that lacks it: a dict of globals or of attributes."""
        if id(names) not in self._missing:
            self._missing[id(names)] = _Missing(names, label)
            self._contents.append(self._missing[id(names)])
        missing = self._missing[id(names)]
        missing.missing.add(name)
        self._latest[id(missing)] = missing

    def remember(self, value: Any, label: str) -> None:
        """Save the contents of a value that is about to be modified, since they may be read later: the bytes of a
        buffer, or the elements of a container, and in turn of containers in it."""
        if id(value) in self._early:
            return
        if isinstance(value, CONTAINERS) and len(value) <= self._most_early:
            self._most_early -= len(value)
            self._early[id(value)] = HeldElements(value)
            self._outside.setdefault(id(value), (value, elements(value), label))
            for element in elements(value):
                self.remember(element, label)
        elif isinstance(value, BUFFERS) and not _holds_objects(value) and _size_of(value) <= self._bytes:
            self._early[id(value)] = _Bytes(value, label)

    def attributes(self, attributes: dict[str, Any] | None, label: str) -> None:
        """Note the dict of an object's attributes, with its elements, for ``outside``."""
        if attributes is not None:
            self._outside.setdefault(id(attributes), (attributes, elements(attributes), label))

    def place(self, owner: Any, name: str, label: str) -> None:
        """Record the value of a name in a dict, of a closure variable, of an attribute, or of a context variable, for
        ``places``."""
        if (id(owner), name) not in self._stores:
            self._alive.append(owner)
            place = Place(owner, name, ABSENT, label)
            self._stores[id(owner), name] = place._replace(before=place.now())

    def places(self) -> list[Place]:
        """The places that the code may store to; available until ``close``."""
        return list(self._stores.values())

    def is_outside(self, container: object) -> bool:
        """Whether a container, or the ``__dict__`` of an object, was there before."""
        return id(container) in self._outside

    def outside(self) -> list[tuple[Any, list[Any], str]]:
        """Containers from before the trace, those of attributes included, each with its former elements and its label;
        available until ``close``."""
        return list(self._outside.values())

    def put_back(self) -> None:
        """Give containers, places and buffers the values that they had before the code changed them."""
        for container, before, _ in self.outside():
            now = elements(container)
            if len(now) != len(before) or any(map(operator.is_not, now, before)):
                put_back(container, before)
        for place in self.places():
            place.put_back()
        for content in self._contents:
            if isinstance(content, _Bytes):
                content.put_back()

    def close(self) -> None:
        """Drop references that are needed only during collection."""
        self._alive, self._early, self._outside, self._missing, self._stores = [], {}, {}, {}, {}
        self._lacking, self._owners = {}, {}

    def join(self, other: Comparisons) -> None:
        """Add the places of other comparisons."""
        self._places += other._places
        self._paths += other._paths
        self._contents += other._contents
        self.unseen.update(other.unseen)

    def changed(self) -> list[Puts]:
        """For each place that has changed and can be set, functions that give it its former value, and the one it has
        now."""
        return [puts for each in (*self._places, *self._paths, *self._contents) if (puts := each.puts()) is not None]

    def compiled(self, chosen: Collection[Comparison] | None = None) -> Check | None:
        """The function that compares all places, or the chosen ones; None if there are none."""
        text = _Text()
        every = (*self._places, *self._paths, *self._contents) if chosen is None else chosen
        by_owner: dict[HeldValue, list[_Path]] = {}
        for each in every:
            if isinstance(each, _Path):
                by_owner.setdefault(each.owner, []).append(each)
            elif not isinstance(each, _BY_BYTES):
                each.write(text)
        for owner, of_owner in by_owner.items():
            name, indent = text.name(owner.value), ""
            if owner.weak:
                text.lines.append(f"if (o := {name}()) is not None:")
                name, indent = "o", "    "
            for path in of_owner:
                path.write(text, name, indent)
        for each in every:
            if isinstance(each, _BY_BYTES):
                each.write(text)
        return text.function() if text.lines else None


#: Comparisons of many elements, which come after all others.
_BY_BYTES = (_Elements, _Bytes, _Entries, _Missing)
