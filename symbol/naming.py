"""Names and attributes that surrounding code gives to the symbols made inside it."""

from __future__ import annotations

import threading

from opreg.core.mode import MODE
from opreg.errors import AttrError

__all__ = ["NameManager", "Prefix", "AttrScope", "HIDDEN", "hide", "current"]

#: Attributes that are stored as ``__key__`` and read under both names.
HIDDEN = frozenset({"ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"})


class NameManager:
    """Gives names to symbols that have none: the operator's name and a number.

    Examples
    --------
    >>> manager = NameManager()
    >>> manager.get(None, "fullyconnected"), manager.get(None, "fullyconnected"), manager.get("fc", "x")
    ('fullyconnected0', 'fullyconnected1', 'fc')
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """The name itself, or a new one made of the hint."""
        if name:
            return name
        number = self._counts.get(hint, 0)
        self._counts[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self) -> NameManager:
        MODE.set(MODE.now().pushed("names", self))
        return self

    def __exit__(self, *_: object) -> None:
        MODE.set(MODE.now().popped("names"))


class Prefix(NameManager):
    """Puts a prefix before every name made inside it, explicit ones included.

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


class AttrScope:
    """Attributes given to every symbol made inside it; scopes nest.

    Examples
    --------
    >>> with AttrScope(ctx_group="dev1"):
    ...     AttrScope.get({"lr_mult": "2"})
    {'__ctx_group__': 'dev1', '__lr_mult__': '2'}
    """

    def __init__(self, **attrs: str):
        for name, value in attrs.items():
            if not isinstance(value, str):
                raise AttrError(f"AttrScope: attribute {name} must be text, got {value!r}")
        self._attrs = {hide(name): value for name, value in attrs.items()}

    @staticmethod
    def get(attrs: dict[str, str] | None = None) -> dict[str, str]:
        """The attributes of the surrounding scopes, and over them some more."""
        scopes = MODE.now().attrs
        around = scopes[-1] if scopes else {}
        if not attrs:
            return around
        for name, value in attrs.items():
            if not isinstance(value, str):
                raise AttrError(f"attribute {name} must be text, got {value!r}")
        return {**around, **{hide(name): value for name, value in attrs.items()}}

    def __enter__(self) -> AttrScope:
        MODE.set(MODE.now().pushed("attrs", {**AttrScope.get(), **self._attrs}))
        return self

    def __exit__(self, *_: object) -> None:
        MODE.set(MODE.now().popped("attrs"))


def hide(name: str) -> str:
    """The name an attribute is stored by: hidden ones between double underscores."""
    return f"__{name}__" if name in HIDDEN else name


def current() -> NameManager:
    """The innermost name manager."""
    names = MODE.now().names
    return names[-1] if names else _NAMES.manager


class _Names(threading.local):
    """The name manager of a thread, where none was entered."""

    def __init__(self) -> None:
        self.manager = NameManager()


_NAMES = _Names()
