"""Registries of classes that scripts find by name: initializers, metrics, optimizers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ..core.annotations import PLAIN, kinds_of
from ..core.json_text import json_of
from ..core.parameters import signature_of
from ..errors import ArgumentError, AttrError, FileFormatError, did_you_mean

__all__ = ["BASES", "Named", "NotRegistered", "get_registry", "get_register_func", "get_alias_func", "get_create_func"]

C = TypeVar("C", bound=type)

#: Registries by the base class of their classes.
BASES: dict[type, Named] = {}


class Named(dict[str, type]):
    """A registry: classes by their names in lower case.

    Parameters
    ----------
    kind : str
        The kind of the classes, for messages.

    Examples
    --------
    >>> metrics = Named("metric")
    >>> metrics.enter(float, "number") is metrics.find("Number")
    True
    """

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind

    def of(self, base_class: C) -> C:
        """A decorator of a base class, for which ``get_registry`` then returns this registry."""
        BASES[base_class] = self
        return base_class

    def enter(self, cls: C, *names: str) -> C:
        """Register a class by its own name and further ones; warns if it replaces another class."""
        return self.put(cls, cls.__name__, *names)

    def put(self, cls: C, *names: str) -> C:
        """Register a class by the given names only."""
        for name in map(str.lower, names):
            before = self.get(name, cls)
            if before is not cls:
                warnings.warn(f"{self.kind} {name!r}: {cls.__module__}.{cls.__name__} replaces "
                              f"{before.__module__}.{before.__name__}", stacklevel=4)
            self[name] = cls
        return cls

    def alias(self, *names: str) -> Callable[[C], C]:
        """A decorator that registers a class by further names."""
        return lambda cls: self.enter(cls, *names)

    def make(self, spec: str | Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """An object of a registered class, from a name or a description as text.

        Parameters
        ----------
        spec : str or dict
            A name; or, as JSON or a dict, ``["name", {keywords}]`` or ``{kind: "name", keywords}``. Text may give
            numbers and strings only: classes with paths or functions as arguments, marked with ``of_text = False``,
            cannot be created from text.
        args, kwargs
            Arguments of the class, if ``spec`` is a name.

        Raises
        ------
        AttrError
            For an unregistered name, and for unknown keywords.
        FileFormatError
            For text in another format.
        """
        if isinstance(spec, str) and spec.lstrip()[:1] not in ("[", "{"):
            cls = self.find(spec)
            self._fits(cls, args, kwargs)
            return cls(*args, **kwargs)
        name, keywords = self._parse_description(spec)
        if args or kwargs:
            raise AttrError(f"{self.kind} {name!r} is saved text with its keywords, so it takes no further ones")
        cls = self.find(name)
        if not getattr(cls, "of_text", True):
            raise AttrError(f"{self.kind} {name!r} cannot be made from text: it takes paths, patterns or functions")
        self._fits(cls, (), keywords)
        for key, value in keywords.items():
            _check_type(f"{self.kind} {name!r}", cls, key, value)
        return cls(**keywords)

    def _parse_description(self, spec: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Name and keywords of a description as text."""
        spec_json = json_of(spec, f"{self.kind} {_short(spec)}") if isinstance(spec, str) else spec
        name = keywords = None
        if isinstance(spec_json, list) and spec_json and len(spec_json) <= 2:
            name, keywords = spec_json[0], spec_json[1] if len(spec_json) == 2 else {}
        elif isinstance(spec_json, Mapping) and self.kind in spec_json:
            name, keywords = spec_json[self.kind], {key: value for key, value in spec_json.items() if key != self.kind}
        if not isinstance(name, str) or not isinstance(keywords, Mapping):
            raise FileFormatError(f"{self.kind}: expected a name and keywords, as [\"name\", {{...}}] or "
                                  f"{{\"{self.kind}\": \"name\", ...}}, got {_short(spec)}")
        return name, dict(keywords)

    def _fits(self, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        try:
            signature_of(cls).bind(*args, **kwargs)
        except TypeError as error:
            raise AttrError(f"{self.kind} {cls.__name__.lower()!r}: {error}. It takes "
                            f"{', '.join(signature_of(cls).parameters) or 'nothing'}") from None

    def find(self, name: str) -> type:
        """The class of a name; raises an AttrError with the nearest names if there is none."""
        if not isinstance(name, str):  # for callers without a type checker
            raise ArgumentError(f"expected a name of a registered {self.kind}, got {type(name).__name__}")
        cls = self.get(name.lower())
        if cls is None:
            raise AttrError(f"there is no {self.kind} {_short(name)!r}. {did_you_mean(name.lower(), self)}")
        return cls


class NotRegistered(ArgumentError, AssertionError):
    """A class is registered, or created, that does not derive from the base class. It is also an AssertionError, which
    programs of MXNet catch."""


def _registry_of(base_class: type, kind: str | None = None) -> Named:
    return BASES.setdefault(base_class, Named(kind or base_class.__name__.lower()))


def get_registry(base_class: type) -> dict[str, type]:
    """The classes registered for a base class, by their names in lower case.

    Examples
    --------
    >>> class Fruit:
    ...     def __init__(self, size=1):
    ...         self.size = size
    >>> @get_register_func(Fruit, "fruit")
    ... class Apple(Fruit):
    ...     pass
    >>> get_registry(Fruit), get_create_func(Fruit, "fruit")("apple", size=3).size
    ({'apple': <class 'opreg.train.named.Apple'>}, 3)
    """
    return dict(_registry_of(base_class))


def get_register_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A decorator that registers classes for a base class: ``register(cls, name=None)``.

    Parameters
    ----------
    base_class : type
        The base class; the decorator raises NotRegistered for a class that does not derive from it.
    nickname : str
        The kind of the classes, for messages.
    """
    named = _registry_of(base_class, nickname)

    def register(klass: Any, name: str | None = None) -> Any:
        if not (isinstance(klass, type) and issubclass(klass, base_class)):
            raise NotRegistered(f"Can only register subclass of {base_class.__name__}, got {klass!r}")
        return named.put(klass, klass.__name__ if name is None else name)

    return register


def get_alias_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A decorator that registers a class by names, ``alias("a", "b")``; see ``get_register_func``."""
    register = get_register_func(base_class, nickname)

    def alias(*names: str) -> Callable[[C], C]:
        def enter(klass: C) -> C:
            for name in names:
                register(klass, name)
            return klass

        return enter

    return alias


def get_create_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A function that makes an object of a registered class: ``create(name, *args, **kwargs)``.

    An object of the base class is returned unchanged; a dict or JSON gives name and keywords. It raises NotRegistered
    for an unregistered name.
    """
    named = _registry_of(base_class, nickname)

    def create(*args: Any, **kwargs: Any) -> Any:
        spec, *rest = args or (kwargs.pop(nickname, None),)
        if isinstance(spec, base_class):
            if rest or kwargs:
                raise NotRegistered(f"{nickname} is already an instance. Additional arguments are invalid")
            return spec
        if isinstance(spec, Mapping):
            return create(**spec)
        if not isinstance(spec, str):
            raise NotRegistered(f"{nickname} must be of string type, got {type(spec).__name__}")
        if spec[:1] not in ("[", "{") and spec.lower() not in named:
            raise NotRegistered(f"{spec.lower()} is not registered. Please register with {nickname}.register first. "
                                f"{did_you_mean(spec.lower(), named)}")
        return named.make(spec, rest, kwargs)

    return create


def _short(spec: object) -> str:
    text = spec if isinstance(spec, str) else repr(spec)
    return text if len(text) <= 80 else f"{text[:80]}…"


#: Tests of values that were read from text, by annotation.
_TYPES: dict[str, Callable[[Any], bool]] = {
    "float": lambda value: type(value) in (int, float) and abs(value) < float("inf"),
    "int": lambda value: type(value) is int,
    "bool": lambda value: type(value) is bool,
    "str": lambda value: isinstance(value, str),
    "None": lambda value: value is None,
}


def _check_type(label: str, cls: type, key: str, value: object) -> None:
    """Refuse a value whose type differs from the annotation of the class."""
    parameter = signature_of(cls).parameters.get(key)
    type_names = [PLAIN.get(kind, kind) for kind in kinds_of("" if parameter is None else parameter.annotation)]
    if all(kind in _TYPES for kind in type_names) and not any(_TYPES[kind](value) for kind in type_names):
        raise AttrError(f"{label}: {key} must be {' | '.join(type_names)}, got {_short(repr(value))}")
