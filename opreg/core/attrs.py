"""Attributes of operators: typed values in memory, text in files, and schemas that convert between them.

The keyword-only parameters of an operator are its attributes. Their annotations give the types of values, and so also
the conversion from text.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, Union

from ..errors import AttrError, DTypeError, did_you_mean
from .cache import Recent
from .conversions import (
    Amount,
    AsDefault,
    AsText,
    Count,
    Few,
    Finite,
    Fraction,
    Key,
    Limit,
    Number,
    Positive,
    converter,
    describe,
    from_text,
    is_limited,
    key_to_text,
    member_names,
    to_text,
)
from .keys import PLAIN, exact, has_fixed_key
from .parameters import parameters_of

__all__ = ["Attributes", "Field", "Schema", "Key", "Limit", "Amount", "Count", "Few", "Finite", "Fraction", "Number",
           "Positive", "REQUIRED", "AsDefault", "AsText", "to_text", "from_text"]


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Any = _Required()


class Attributes(dict[str, Any]):
    """Complete attributes of an operator. In a key, they are compared by identity.

    Attributes
    ----------
    lasting : bool
        Whether all values are immutable, and all equal attributes are this object, so that they can be part of a key.
    """

    __slots__ = ("lasting",)

    def __init__(self, values: Mapping[str, Any], lasting: bool = False):
        super().__init__(values)
        self.lasting = lasting

    __hash__ = object.__hash__  # type: ignore[assignment]  # it is not modified


class Field:
    """An attribute: its name, type and default; ``limited`` is the type with its limits.

    Examples
    --------
    >>> Field("axis", int, -1)("2")
    2
    >>> Field("depth", int, limited=Count)(-2)
    Traceback (most recent call last):
        ...
    opreg.errors.AttrError: attribute depth: expected int of at least 0, got -2
    """

    __slots__ = ("name", "kind", "default", "_limited", "_convert")

    def __init__(self, name: str, kind: Any, default: Any = REQUIRED, limited: Any = None):
        self.name, self.kind, self.default = name, kind, default
        self._limited = kind if limited is None else limited

    def __getattr__(self, name: str) -> Any:
        """The function that converts values, which most fields of built-in operators never need in a process."""
        if name != "_convert":
            raise AttributeError(name)
        self._convert = converter(self._limited)
        return self._convert

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is REQUIRED

    @property
    def describes(self) -> str:
        """The type as text for errors."""
        return describe(self._limited)

    @property
    def type_text(self) -> str:
        """The type and the default, or ``required``, in the format of MXNet.

        Examples
        --------
        >>> Field("pool_type", Literal["max", "avg"], "max").type_text
        "{'avg', 'max'}, optional, default='max'"
        >>> Field("p", float).type_text
        'float, required'
        """
        parts = typing.get_args(self.kind) if typing.get_origin(self.kind) in (Union, types.UnionType) else (self.kind,)
        choices = [repr(arg) for part in parts if typing.get_origin(part) is Literal for arg in typing.get_args(part)]
        words = self.describes
        if choices:
            words = "{" + ", ".join([*(["None"] if type(None) in parts else []), *sorted(choices)]) + "}"
        return f"{words}, required" if self.required else f"{words}, optional, default={self.default!r}"

    def __call__(self, value: object) -> Any:
        try:
            result = self._convert(value)
        except DTypeError:
            raise
        except (ValueError, TypeError, AttributeError, OverflowError):
            hint = ""
            kinds = typing.get_args(self.kind) or (self.kind,)
            options = [arg for arg in kinds if isinstance(arg, str)] + [
                name for kind in kinds if isinstance(kind, type) and issubclass(kind, enum.Enum)
                for name in kind.__members__]
            if isinstance(value, str) and options:
                hint = " " + did_you_mean(value, options)
            raise AttrError(f"attribute {self.name}: expected {self.describes}, got {value!r}{hint and '.'}{hint}"
                            ) from None
        return result

    def text(self, value: object) -> str:
        """A value as text for a file.

        Examples
        --------
        >>> import numpy as np
        >>> Field("key", Any, limited=Key).text((slice(1, None), np.array([0, 2])))
        '(slice(1, None, None), [0, 2])'
        """
        return key_to_text(value) if self._limited is Key else to_text(member_names(value))


S = TypeVar("S", bound="Schema")


def _key(values: Mapping[str, object]) -> tuple[tuple[object, ...], ...]:
    """The key of named values: that of ``exact``, which is not called for most of them."""
    return tuple([(name, kind, value) if (kind := value.__class__) in PLAIN
                  or (kind is float and value and value == value) else (name, exact(value))
                  for name, value in values.items()])


class Schema:
    """The attributes of an operator, in the order of its signature.

    Parameters
    ----------
    fields : list of Field
        Declared attributes.
    open : bool
        Whether undeclared attributes are accepted, as text, as for a constructor with ``**kwargs``.

    Examples
    --------
    >>> schema = Schema([Field("axis", int, -1), Field("keepdims", bool, False)])
    >>> schema.complete({"axis": "1"})
    {'axis': 1, 'keepdims': False}
    """

    __slots__ = ("fields", "open", "_by_name", "_cache", "_function")
    _function: Callable

    def __init__(self, fields: list[Field], open: bool = False):
        self.fields, self.open = fields, open
        self._by_name = {field.name: field for field in fields}
        self._cache = Recent(4096)

    @classmethod
    def of(cls: type[S], function: Callable) -> S:
        """The schema of a function's keyword-only parameters, whose annotations are evaluated at first use: a process
        uses few of the operators that it imports."""
        self = cls.__new__(cls)
        self._function = function
        return self

    def copied(self, kind: type[S]) -> S:
        """A schema of another class with these attributes; annotations that were not evaluated stay so."""
        function: Callable | None = getattr(self, "_function", None)  # None if the attributes were given
        return kind(self.fields, self.open) if function is None else kind.of(function)

    def read(self) -> None:
        """Evaluate annotations that were not used yet; raises what they raise."""
        parameters = parameters_of(self._function)
        limited = typing.get_type_hints(self._function, include_extras=True) if parameters.keyword_only else {}
        hints = typing.get_type_hints(self._function) if any(map(is_limited, limited.values())) else limited
        Schema.__init__(self, [
            Field(name, hints.get(name, Any), parameters.defaults.get(name, REQUIRED), limited.get(name, Any))
            for name in parameters.keyword_only])

    def __getattr__(self, name: str) -> Any:
        """Compute a part that follows from the annotations, at its first access."""
        if name not in ("fields", "open", "_by_name", "_cache"):
            raise AttributeError(name)
        self.read()
        return getattr(self, name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Field:
        return self._by_name[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Attribute names in order."""
        return tuple(self._by_name)

    def complete(self, keywords: Mapping[str, object]) -> Attributes:
        """Typed values of all attributes, with defaults. The result is shared and must not be modified.

        Values are checked and made immutable, so that lists and arrays become tuples. Equal attributes are the same
        object, in whatever form they were given.

        Raises
        ------
        AttrError
            For an unknown name, a missing required attribute, or a value of the wrong type.
        """
        try:
            key = _key(keywords)
            attributes = self._cache[key]
        except TypeError:  # a value without a key, such as an array
            key, attributes = None, None
        if attributes is None:
            attributes = self._shared_object(self._complete(keywords))
            if key is not None and attributes.lasting:
                self._cache.keep(key, attributes)
        return attributes

    def _shared_object(self, typed: dict[str, Any]) -> Attributes:
        """The object that all equal attributes share; a new one if a value is mutable."""
        for value in typed.values():
            if value.__class__ not in PLAIN and value.__class__ is not float and not has_fixed_key(value):
                return self.made(typed, False)
        key = _key(typed)
        attributes = self._cache[key]
        if attributes is None:
            attributes = self.made(typed, True)
            self._cache.keep(key, attributes)
        return attributes

    def made(self, typed: dict[str, Any], lasting: bool) -> Attributes:
        """Make the object of complete attributes."""
        return Attributes(typed, lasting)

    def _complete(self, keywords: Mapping[str, object]) -> dict[str, Any]:
        unknown = [name for name in keywords if name not in self._by_name]
        if unknown and not self.open:
            raise AttrError(f"unknown attribute {unknown[0]!r}. {did_you_mean(unknown[0], self.names)}")
        result = {}
        for field in self.fields:
            if field.name in keywords:
                result[field.name] = field(keywords[field.name])
            elif field.required:
                raise AttrError(f"attribute {field.name} ({field.describes}) is required")
            else:
                result[field.name] = field.default
        for name in unknown:
            result[name] = to_text(keywords[name])
        return result

    def texts(self, keywords: Mapping[str, object]) -> dict[str, str]:
        """Given attributes as text for a file."""
        return {name: self._by_name[name].text(value) if name in self._by_name else to_text(value)
                for name, value in keywords.items()}


class _AsGiven(Schema):
    """A schema that accepts all attributes unchecked, for internal operators."""

    __slots__ = ()

    def complete(self, keywords: Mapping[str, object]) -> Attributes:
        return keywords if isinstance(keywords, Attributes) else Attributes(keywords)


#: The schema of operators whose attributes are not checked.
AS_GIVEN = _AsGiven([], open=True)
