"""Attributes of operators: typed values in memory, text in files, and schemas that convert between them.

The keyword-only parameters of an operator are its attributes. Their annotations give the types of values, and so also
the conversion from text. Text has the form in files of Apache MXNet.
"""

from __future__ import annotations

import ast
import math
import numbers
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Union

import numpy as np

from ..errors import AttrError, DTypeError, did_you_mean
from .cache import Recent
from .keys import PLAIN, exact, lasting
from .parameters import parameters_of
from .spec import TypeFlag, as_dtype

__all__ = ["Attributes", "Field", "Schema", "Key", "Limit", "Count", "Few", "Finite", "Number", "Positive", "REQUIRED",
           "AsDefault", "AsText", "to_text", "from_text"]


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Any = _Required()

_INT = re.compile(r"\s*[+-]?\d+\s*$")
_NUMBER = re.compile(r"[+-]?[0-9][^,]*$")
_MARKS = ("'", '"', "(", "[")  # quotes and brackets inside of a tuple
_LONG = re.compile(r"(?<=\d)L\b")  # Python 2 wrote (2L, 3L)
_TRUE, _FALSE = ("True", "true", "1"), ("False", "false", "0")


def to_text(value: object) -> str:
    """The value of an attribute as text for a file.

    Examples
    --------
    >>> to_text((3, 3)), to_text(np.float32), to_text(None), to_text(1e-5), to_text(["a", 1])
    ('(3, 3)', 'float32', 'None', '1e-05', "['a', 1]")
    """
    if isinstance(value, str):
        return value
    if isinstance(value, TypeFlag):
        return value.name
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, np.generic):
        return str(value.item())
    if isinstance(value, (tuple, list)):
        items = ", ".join(repr(item) if isinstance(item, str) else to_text(item) for item in value)
        close = ",)" if len(value) == 1 and isinstance(value, tuple) else ")"
        return f"({items}{close}" if isinstance(value, tuple) else f"[{items}]"
    return str(value)


def from_text(text: str) -> Any:
    """The value of a text for attributes without a declared type: None, an int, a float, a bool, a tuple, or else the
    text.

    Examples
    --------
    >>> from_text("(3, 3)"), from_text("1e-5"), from_text("relu"), from_text("None"), from_text("((1, 2), (0.5,))")
    ((3, 3), 1e-05, 'relu', None, ((1, 2), (0.5,)))
    """
    if text.strip()[:1] in ("(", "["):
        try:
            return _to_item(ast.literal_eval(text.strip()))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # numbers such as 3L and nan
            pass
    for kind in (type(None), int, float, bool, tuple[int, ...], tuple[float, ...]):
        try:
            return _converter(kind)(text)
        except (ValueError, TypeError):
            continue
    return text


def _to_item(value: object) -> Any:
    """A value in a tuple without declared types: lists become tuples."""
    return tuple(map(_to_item, value)) if isinstance(value, (tuple, list)) else value


class Limit(NamedTuple):
    """A condition on values of a type: a test, and its description in errors."""

    words: str
    holds: Callable[[Any], bool]


#: A count.
Count = Annotated[int, Limit("from zero up", lambda number: number >= 0)]
#: A count of at least one.
Positive = Annotated[int, Limit("from one up", lambda number: number > 0)]
#: A number of inputs, outputs or layers, limited since names and arrays are made for each.
Few = Annotated[int, Limit("from 1 to 65,536", lambda number: 0 < number <= 1 << 16)]

_EXACT = object()
#: A float, or an int that no float equals.
Number = Annotated[float, _EXACT]
#: A number that is neither infinite nor NaN.
Finite = Annotated[Number, Limit("that is finite", math.isfinite)]

_KEY = object()
#: A subscript as NumPy takes it: integers, slices, ``None``, ``...`` and arrays. In text, arrays are lists.
Key = Annotated[Any, _KEY]



class AsText(str):
    """The type of attributes that take every value as text, as those of a Prop without annotation."""


class AsDefault:
    """The type of attributes that keep every value and read text, as those of a function that have a default and no
    annotation."""


# ------------------------------------------------------------------------------------------ conversions
# A converter takes a value or its text. It returns the typed value, or raises ValueError or TypeError.

Converter = Callable[[Any], Any]


def _to_none(value: object) -> None:
    if value is None or (isinstance(value, str) and value.strip() in ("None", "")):
        return None
    raise ValueError(value)


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        if _INT.match(value):
            return int(value)
        raise ValueError(value)
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(value)
    return int(value.__index__())


def _to_float(value: Any) -> float:
    if isinstance(value, str):
        text = value.strip()
        if "_" in text:
            raise ValueError(value)
        return float(text[:-1] if text[-1:] in "fF" and not text.lower().endswith("inf") else text)
    if isinstance(value, (bool, np.bool_, bytes)):
        raise TypeError(value)
    return float(value)


def _to_number(value: Any) -> float:
    number = _to_float(value)
    if isinstance(value, numbers.Integral) or (isinstance(value, str) and _INT.match(value)):
        integer = int(value)
        return number if number == integer else integer
    return number


def _to_bool(value: object) -> bool:
    if isinstance(value, str):
        text = value.strip()
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
        raise ValueError(value)
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, (int, np.integer)) and value in (0, 1)):
        return bool(value)
    raise TypeError(value)


def _to_str(value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(value)


def _parts(body: str) -> list[str]:
    """The texts between commas. Quotes are removed; texts in brackets may contain commas."""
    if any(mark in body for mark in _MARKS):
        text = f"[{body}]"
        try:
            tree: Any = ast.parse(text, mode="eval").body
            return [elt.value if isinstance(elt, ast.Constant) and isinstance(elt.value, str)
                    else ast.get_source_segment(text, elt) or "" for elt in tree.elts]
        except (AttributeError, SyntaxError, ValueError, MemoryError, RecursionError):  # unbalanced quotes
            pass
    parts = [part.strip() for part in body.split(",")]
    return parts if parts[-1] else parts[:-1]


def _to_tuple(item: Converter) -> Converter:
    def convert(value: object) -> tuple:
        if isinstance(value, str):
            text = _LONG.sub("", value.strip())
            if _NUMBER.match(text):  # a single number is a tuple of one
                return (item(text),)
            if len(text) < 2 or (text[0], text[-1]) not in (("(", ")"), ("[", "]")):
                raise ValueError(value)
            body = text[1:-1].strip()
            return tuple([item(part) for part in _parts(body)])
        if isinstance(value, (tuple, list, range)) or (isinstance(value, np.ndarray) and value.ndim == 1):
            return tuple([item(part) for part in value])
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            return (item(value),)
        raise TypeError(value)

    return convert


def _to_nested(value: object) -> tuple:
    """A tuple of any values, read from text where it is one."""
    found = from_text(value) if isinstance(value, str) else value
    return _TO_ITEMS(value if isinstance(found, str) else found)


def _to_default(value: object) -> Any:
    """A value as it is given, or read from text: a tuple, or a list where brackets are square."""
    found = from_text(value) if isinstance(value, str) else value
    return list(found) if isinstance(found, tuple) and isinstance(value, str) and value.strip()[:1] == "[" else found


def _to_row(items: list[Converter]) -> Converter:
    """Converts a tuple that has one element of each type."""
    parts = _to_tuple(lambda value: value)

    def convert(value: object) -> tuple:
        return tuple([item(part) for item, part in zip(items, parts(value), strict=True)])

    return convert


def _key_to_text(key: object) -> str:
    """The text of a subscript, a Python expression."""
    if isinstance(key, slice):
        return f"slice({_key_to_text(key.start)}, {_key_to_text(key.stop)}, {_key_to_text(key.step)})"
    if isinstance(key, (tuple, list)):
        items = ", ".join(map(_key_to_text, key))
        return f"[{items}]" if isinstance(key, list) else f"({items},)" if len(key) == 1 else f"({items})"
    return str(key.tolist() if hasattr(key, "tolist") else key)


def _to_key(value: object) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return _key_of(ast.parse(value.strip(), mode="eval").body)
    except (SyntaxError, MemoryError, RecursionError):  # errors of Python's parser for damaged text
        raise ValueError(value) from None


def _key_of(tree: ast.expr) -> Any:
    """The subscript of a parsed text."""
    if isinstance(tree, ast.Tuple):
        return tuple(map(_key_of, tree.elts))
    if isinstance(tree, ast.Name) and tree.id == "Ellipsis":
        return ...
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "slice":
        return slice(*map(ast.literal_eval, tree.args))
    part = ast.literal_eval(tree)
    if isinstance(part, list):
        return np.asarray(part, None if len(part) else np.int64)
    if part is not None and not isinstance(part, int):
        raise ValueError(part)
    return part


def _to_literal(options: tuple) -> Converter:
    by_text = {str(option): option for option in options}

    def convert(value: object) -> Any:
        if isinstance(value, str) and value in by_text:
            return by_text[value]
        if not isinstance(value, str) and value in options:
            return options[options.index(value)]
        raise ValueError(value)

    return convert


def _to_any(options: tuple[Converter, ...]) -> Converter:
    def convert(value: object) -> Any:
        for option in options:
            try:
                return option(value)
            except (ValueError, TypeError, AttributeError):
                continue
        raise ValueError(value)

    return convert


def _limited(convert: Converter, limits: list[Limit]) -> Converter:
    def limited(value: object) -> Any:
        typed = convert(value)
        if not all(limit.holds(typed) for limit in limits):
            raise ValueError(value)
        return typed

    return limited


_TO_ITEMS = _to_tuple(lambda value: from_text(value) if isinstance(value, str) else _to_item(value))
_SIMPLE: dict[Any, Converter] = {
    int: _to_int, float: _to_float, bool: _to_bool, str: _to_str, type(None): _to_none, None: _to_none,
    np.dtype: as_dtype, Any: lambda value: value, tuple: _to_nested, list: _to_nested,
    AsText: to_text, AsDefault: _to_default,
}


def _is_limited(kind: Any) -> bool:
    """Whether an annotation contains limits."""
    return typing.get_origin(kind) is Annotated or any(map(_is_limited, typing.get_args(kind)))


def _converter(kind: Any) -> Converter:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        if _KEY in args:
            return _to_key
        convert = _to_number if _EXACT in args else _converter(args[0])
        return _limited(convert, [part for part in args[1:] if isinstance(part, Limit)])
    if origin in (Union, types.UnionType):
        # None first, so that the text "None" does not become a str.
        ordered = sorted(args, key=lambda arg: arg is not type(None))
        return _to_any(tuple(_converter(arg) for arg in ordered))
    if origin is tuple and len(args) > 1 and args[1] is not ...:
        return _to_row([_converter(arg) for arg in args])
    if origin in (tuple, list):
        return _to_tuple(_converter(args[0]) if args else _to_item)
    if origin is Literal:
        return _to_literal(args)

    def instance(value: object) -> Any:
        if isinstance(value, kind):
            return value
        raise TypeError(value)

    return instance


def _describe(kind: object) -> str:
    """An annotation as text for errors, such as ``tuple of int or None``."""
    names = {int: "int", float: "float", bool: "bool", str: "text", type(None): "None", np.dtype: "dtype",
             tuple: "tuple", list: "list", Any: "anything", AsText: "anything", AsDefault: "anything"}
    if kind in names:
        return names[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Key:
        return "a subscript"
    if origin is Annotated:
        return " ".join([_describe(args[0]), *(part.words for part in args[1:] if isinstance(part, Limit))])
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(arg) for arg in args)
    if origin is tuple and len(args) > 1 and args[1] is not ...:
        return f"tuple of {', '.join(map(_describe, args))}"
    if origin in (tuple, list):
        return "tuple of " + (_describe(args[0]) if args else "anything")
    if origin is Literal:
        return "one of " + ", ".join(repr(arg) for arg in args)
    return getattr(kind, "__name__", str(kind))


# --------------------------------------------------------------------------------------------- schemas


class Attributes(dict[str, Any]):
    """Complete attributes of an operator. As a part of a key, they are compared by identity.

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
    opreg.errors.AttrError: attribute depth: expected int from zero up, got -2
    """

    __slots__ = ("name", "kind", "default", "_limited", "_convert")

    def __init__(self, name: str, kind: Any, default: Any = REQUIRED, limited: Any = None):
        self.name, self.kind, self.default = name, kind, default
        self._limited = kind if limited is None else limited

    def __getattr__(self, name: str) -> Any:
        """The function that converts values, which most fields of built-in operators never need in a process."""
        if name != "_convert":
            raise AttributeError(name)
        self._convert = _converter(self._limited)
        return self._convert

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is REQUIRED

    @property
    def describes(self) -> str:
        """The type as text for errors."""
        return _describe(self._limited)

    @property
    def stated(self) -> str:
        """The type and the default, or ``required``, in the format of MXNet.

        Examples
        --------
        >>> Field("pool_type", Literal["max", "avg"], "max").stated
        "{'avg', 'max'}, optional, default='max'"
        >>> Field("p", float).stated
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
            options = [arg for arg in typing.get_args(self.kind) if isinstance(arg, str)]
            if isinstance(value, str) and options:
                hint = " " + did_you_mean(value, options)
            raise AttrError(f"attribute {self.name}: expected {self.describes}, got {value!r}{hint and '.'}{hint}"
                            ) from None
        return result

    def text(self, value: object) -> str:
        """A value as text for a file.

        Examples
        --------
        >>> Field("key", Any, limited=Key).text((slice(1, None), np.array([0, 2])))
        '(slice(1, None, None), [0, 2])'
        """
        return _key_to_text(value) if self._limited is Key else to_text(value)


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
    def of(cls, function: Callable) -> Schema:
        """The schema of a function's keyword-only parameters, whose annotations are evaluated at first use: a process
        uses few of the operators that it imports."""
        self = cls.__new__(cls)
        self._function = function
        return self

    def read(self) -> None:
        """Evaluate annotations that were not used yet; raises what they raise."""
        parameters = parameters_of(self._function)
        limited = typing.get_type_hints(self._function, include_extras=True) if parameters.keyword_only else {}
        hints = typing.get_type_hints(self._function) if any(map(_is_limited, limited.values())) else limited
        Schema.__init__(self, [
            Field(name, hints.get(name, Any), parameters.defaults.get(name, REQUIRED), limited.get(name, Any))
            for name in parameters.keyword_only])

    def __getattr__(self, name: str) -> Any:
        """A part that the annotations say, when it is asked for first."""
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

    def complete(self, given: Mapping[str, object]) -> Attributes:
        """Typed values of all attributes, with defaults. The result is shared and must not be modified.

        Values are checked and made immutable, so that lists and arrays become tuples. Equal attributes are the same
        object, in whatever form they were given.

        Raises
        ------
        AttrError
            For an unknown name, a missing required attribute, or a value of the wrong type.
        """
        try:
            # As ``exact``, without calling it for most values.
            key = tuple([(name, kind, value) if (kind := value.__class__) in PLAIN
                         or (kind is float and value and value == value) else (name, exact(value))
                         for name, value in given.items()])
            attributes = self._cache[key]
        except TypeError:  # a value without a key, such as an array
            key, attributes = None, None
        if attributes is None:
            attributes = self._one(self._complete(given))
            if key is not None and attributes.lasting:
                self._cache.keep(key, attributes)
        return attributes

    def _one(self, typed: dict[str, Any]) -> Attributes:
        """The object that all equal attributes share; a new one if a value is mutable."""
        if not all(map(lasting, typed.values())):
            return self.made(typed, False)
        key = exact((*typed, *typed.values()))
        attributes = self._cache[key]
        if attributes is None:
            attributes = self.made(typed, True)
            self._cache.keep(key, attributes)
        return attributes

    def made(self, typed: dict[str, Any], lasting: bool) -> Attributes:
        """Make the object of complete attributes."""
        return Attributes(typed, lasting)

    def _complete(self, given: Mapping[str, object]) -> dict[str, Any]:
        unknown = [name for name in given if name not in self._by_name]
        if unknown and not self.open:
            raise AttrError(f"unknown attribute {unknown[0]!r}. {did_you_mean(unknown[0], self.names)}")
        result = {}
        for field in self.fields:
            if field.name in given:
                result[field.name] = field(given[field.name])
            elif field.required:
                raise AttrError(f"attribute {field.name} ({field.describes}) is required")
            else:
                result[field.name] = field.default
        for name in unknown:
            result[name] = to_text(given[name])
        return result

    def texts(self, given: Mapping[str, object]) -> dict[str, str]:
        """Given attributes as text for a file."""
        return {name: self._by_name[name].text(value) if name in self._by_name else to_text(value)
                for name, value in given.items()}


class _AsGiven(Schema):
    """A schema that accepts all attributes unchecked, for internal operators."""

    __slots__ = ()

    def complete(self, given: Mapping[str, object]) -> Attributes:
        return given if isinstance(given, Attributes) else Attributes(given)


#: The schema of operators whose attributes are not checked.
AS_GIVEN = _AsGiven([], open=True)
