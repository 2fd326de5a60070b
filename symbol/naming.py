"""Names and attributes of nodes, and the context managers that give them to the symbols made inside them."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

from opreg.core.graph import Entry, Node
from opreg.core.mode import MODE
from opreg.core.named_errors import named
from opreg.core.setting_reads import reads_setting
from opreg.errors import AttrError

__all__ = ["NameManager", "Prefix", "AttrScope", "HIDDEN", "hide", "new_name", "attributes", "output_name",
           "MONITORED", "monitored_names"]

#: Attributes that are stored as ``__key__`` and read under both names.
HIDDEN = frozenset({"ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"})


class _Current(threading.local):
    """The scopes that a thread or task has entered. ``value`` is the innermost one, which programs of MXNet read and
    set. Outside of all scopes it is the default one of the thread."""

    def __init__(self, chosen: str, first: Callable[[], Any]) -> None:
        self._chosen, self._first = chosen, first()

    @property
    def value(self) -> Any:
        entered = getattr(MODE.current(), self._chosen)
        return entered[-1] if entered else self._first

    @value.setter
    def value(self, value: Any) -> None:
        mode = MODE.current()
        MODE.set(mode.but(**{self._chosen: (*getattr(mode, self._chosen)[:-1], value)}))

    def enter(self, value: Any) -> None:
        """Enter a scope."""
        MODE.set(MODE.current().pushed(self._chosen, value))

    def leave(self) -> None:
        """Leave the innermost scope."""
        MODE.set(MODE.current().popped(self._chosen))


def _scopes() -> tuple[object, ...]:
    """The attributes that current scopes give to a symbol, and the manager of its name with the prefix."""
    names = NameManager._current.value
    return attributes(), type(names), getattr(names, "_prefix", "")


class _Scope(type):
    """The metaclass of scopes, which gives their classes the property ``current``, the innermost scope."""

    _current: _Current

    @property
    @reads_setting(answer=_scopes)
    def current(cls) -> Any:
        """The innermost scope. Setting it replaces that scope until its ``with`` block ends."""
        return cls._current.value

    @current.setter
    def current(cls, value: Any) -> None:
        cls._current.value = value


class NameManager(metaclass=_Scope):
    """Gives names to symbols without one: the operator's name and a number.

    ``NameManager.current`` is the innermost one. A derived class may choose other names by overriding ``get``.

    Examples
    --------
    >>> manager = NameManager()
    >>> manager.get(None, "fullyconnected"), manager.get(None, "fullyconnected"), manager.get("fc", "x")
    ('fullyconnected0', 'fullyconnected1', 'fc')
    """

    @named
    def __init__(self) -> None:
        self._counter: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """The name, or if it is None a new one, the hint and a number."""
        if name:
            return name
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self) -> Self:
        NameManager._current.enter(self)
        return self

    def __exit__(self, *_: object) -> None:
        NameManager._current.leave()


class Prefix(NameManager):
    """Adds a prefix to the names of all operators made inside it, explicit names included, but not to variables.

    Examples
    --------
    >>> Prefix("net_").get("fc", "")
    'net_fc'
    """

    @named
    def __init__(self, prefix: str):
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        return self._prefix + super().get(name, hint)


class AttrScope(metaclass=_Scope):
    """Gives attributes to every symbol made inside it.

    Scopes nest: ``AttrScope.current`` is the innermost one, with the attributes of the outer ones. A derived class may
    add attributes by overriding ``get``.

    Examples
    --------
    >>> with AttrScope(ctx_group="dev1"):
    ...     AttrScope.current.get({"lr_mult": "2"})
    {'__ctx_group__': 'dev1', '__lr_mult__': '2'}
    """

    def __init__(self, **attrs: str):
        self._attr = _hidden(attrs)

    def get(self, attr: Mapping[str, str] | None = None) -> dict[str, str]:
        """The attributes of the scope, updated with those given."""
        return {**self._attr, **_hidden(attr)} if attr else self._attr.copy()

    def __enter__(self) -> Self:
        entered = copy.copy(self)  # other threads may enter this scope at the same time
        entered._attr = {**AttrScope._current.value._attr, **self._attr}
        AttrScope._current.enter(entered)
        return entered

    def __exit__(self, *_: object) -> None:
        AttrScope._current.leave()


def _hidden(attrs: Mapping[str, str]) -> dict[str, str]:
    """Attributes by stored name; an error for a value that is no text."""
    for name, value in attrs.items():
        if not isinstance(value, str):
            raise AttrError(f"AttrScope: attribute {name} must be text, got {value!r}")
    return {hide(name): value for name, value in attrs.items()}


def hide(name: str) -> str:
    """The name by which an attribute is stored: ``__lr_mult__`` for ``lr_mult``."""
    return f"__{name}__" if name in HIDDEN else name


def new_name(name: str | None, hint: str) -> str:
    """The name of a new symbol, from the current ``NameManager``."""
    return NameManager._current.value.get(name, hint)


def attributes(attrs: Mapping[str, str] | None = None) -> dict[str, str]:
    """The attributes of a new symbol: those of the current ``AttrScope``, updated with its own."""
    return AttrScope._current.value.get(attrs)


def output_name(entry: Entry) -> str:
    """The name of an entry: that of its variable, or of its node and output joined by ``_``."""
    node, index = entry
    return node.name if node.op is None else f"{node.name}_{node.op.signature.outputs(node.attrs)[index]}"


#: The tag of nodes that monitors know by other names: the name of each output, with spaces between.
MONITORED = "__monitored__"


def monitored_names(node: Node) -> list[str]:
    """The names of a node's outputs for a monitor: those of its tag, if it has one."""
    names = node.tags.get(MONITORED)
    return [output_name((node, i)) for i in range(node.count)] if names is None else names.split(" ")


NameManager._current, AttrScope._current = _Current("names", NameManager), _Current("attrs", AttrScope)
