"""Names and attributes that surrounding code gives to the symbols made inside it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

from opreg.core.mode import MODE
from opreg.errors import AttrError

__all__ = ["NameManager", "Prefix", "AttrScope", "HIDDEN", "hide", "named", "attributes"]

#: Attributes that are stored as ``__key__`` and read under both names.
HIDDEN = frozenset({"ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"})


class _Current(threading.local):
    """Values that surround code of a thread or task: the innermost is ``value``, as programs of MXNet read and set it.
    Outside of any it is the thread's own first one."""

    def __init__(self, chosen: str, first: Callable[[], Any]) -> None:
        self._chosen, self._first = chosen, first()

    @property
    def value(self) -> Any:
        entered = getattr(MODE.now(), self._chosen)
        return entered[-1] if entered else self._first

    @value.setter
    def value(self, value: Any) -> None:
        mode = MODE.now()
        MODE.set(mode.but(**{self._chosen: (*getattr(mode, self._chosen)[:-1], value)}))

    def enter(self, value: Any) -> None:
        """Let a value be the innermost."""
        MODE.set(MODE.now().pushed(self._chosen, value))

    def leave(self) -> None:
        """Go back to what was before the last ``enter``."""
        MODE.set(MODE.now().popped(self._chosen))


class _Scope(type):
    """The class of what can surround code, which has ``current``: the innermost one of the thread."""

    _current: _Current

    @property
    def current(cls) -> Any:
        """The innermost one; one that is set takes its place until the code around it ends."""
        return cls._current.value

    @current.setter
    def current(cls, value: Any) -> None:
        cls._current.value = value


class NameManager(metaclass=_Scope):
    """Gives names to symbols that have none: the operator's name and a number.

    ``NameManager.current`` is the innermost one. A class that derives from it may choose names in ``get``.

    Examples
    --------
    >>> manager = NameManager()
    >>> manager.get(None, "fullyconnected"), manager.get(None, "fullyconnected"), manager.get("fc", "x")
    ('fullyconnected0', 'fullyconnected1', 'fc')
    """

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """The name itself, or a new one made of the hint."""
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
    """Puts a prefix before every name of an operator made inside it, explicit ones included, not before variables'.

    Examples
    --------
    >>> Prefix("net_").get("fc", "")
    'net_fc'
    """

    def __init__(self, prefix: str):
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        return self._prefix + super().get(name, hint)


class AttrScope(metaclass=_Scope):
    """Attributes given to every symbol made inside it; scopes nest.

    ``AttrScope.current`` is the innermost one, with the attributes of those around it. A class that derives from it may
    add to them in ``get``.

    Examples
    --------
    >>> with AttrScope(ctx_group="dev1"):
    ...     AttrScope.current.get({"lr_mult": "2"})
    {'__ctx_group__': 'dev1', '__lr_mult__': '2'}
    """

    def __init__(self, **attrs: str):
        self._attr = _hidden(attrs)

    def get(self, attr: Mapping[str, str] | None = None) -> dict[str, str]:
        """The attributes of the scope, and over them some more."""
        return {**self._attr, **_hidden(attr)} if attr else self._attr.copy()

    def __enter__(self) -> Self:
        entered = copy.copy(self)  # others may enter this one in another place at the same time
        entered._attr = {**AttrScope._current.value._attr, **self._attr}
        AttrScope._current.enter(entered)
        return entered

    def __exit__(self, *_: object) -> None:
        AttrScope._current.leave()


def _hidden(attrs: Mapping[str, str]) -> dict[str, str]:
    """Attributes by the names that they are stored by."""
    for name, value in attrs.items():
        if not isinstance(value, str):
            raise AttrError(f"AttrScope: attribute {name} must be text, got {value!r}")
    return {hide(name): value for name, value in attrs.items()}


def hide(name: str) -> str:
    """The name an attribute is stored by: hidden ones between double underscores."""
    return f"__{name}__" if name in HIDDEN else name


def named(name: str | None, hint: str) -> str:
    """The name of a symbol that is made now."""
    return NameManager._current.value.get(name, hint)


def attributes(attrs: Mapping[str, str] | None = None) -> dict[str, str]:
    """The attributes of a symbol that is made now: those of its scopes, and over them its own."""
    return AttrScope._current.value.get(attrs)


NameManager._current, AttrScope._current = _Current("names", NameManager), _Current("attrs", AttrScope)
