"""Conversions of attributes' values: from text to the type of an annotation, and to text again.

Text has the form in files of Apache MXNet.
"""

from __future__ import annotations

import ast
import enum
import functools
import math
import numbers
import operator
import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, Union

import numpy as np

from .spec import TypeFlag, as_dtype

__all__ = ["Amount", "AsDefault", "AsText", "Converter", "Count", "Few", "Finite", "Fraction", "Key", "Limit", "Number",
           "Positive", "converter", "describe", "from_text", "has_text", "is_limited", "key_to_text", "member_names",
           "to_text"]

_INT = re.compile(r"\s*[+-]?\d+\s*$")
_NUMBER = re.compile(r"[+-]?[0-9][^,]*$")
_MARKS = ("'", '"', "(", "[")  # quotes and brackets inside of a tuple
_LONG = re.compile(r"(?<=\d)L\b")  # Python 2 wrote (2L, 3L)
#: Texts of containers, bytes, complex numbers, and other expressions that are no plain numbers.
_EXPRESSION = re.compile(r"\s*([\[({]|b['\"]|(slice|range|set|frozenset)\(|Ellipsis\s*$|[+-]?[\d.]\S*j\s*$)")
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
        items = ", ".join(map(_item_text, value))
        close = ",)" if len(value) == 1 and isinstance(value, tuple) else ")"
        return f"({items}{close}" if isinstance(value, tuple) else f"[{items}]"
    if isinstance(value, dict):
        return "{" + ", ".join([f"{_item_text(key)}: {_item_text(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, (set, frozenset)) and value:
        items = "{" + ", ".join(sorted(map(_item_text, value))) + "}"
        return items if isinstance(value, set) else f"frozenset({items})"
    return str(value)


def _item_text(value: object) -> str:
    return repr(value) if isinstance(value, str) else to_text(value)


def has_text(value: object) -> bool:
    """Whether ``from_text``, or the converter of a declared type, reads the text of a value as an equal one.

    Examples
    --------
    >>> has_text({"axes": (0, 1), "by": 1j}), has_text(object())
    (True, False)
    """
    if isinstance(value, dict):
        return all(map(has_text, (*value, *value.values())))
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(has_text, value))
    return value is None or value is ... or isinstance(value, (
        str, bytes, int, float, complex, slice, range, type, enum.Enum, np.generic, np.dtype))


def member_names(value: Any) -> Any:
    """A value in which names stand for members of an ``Enum``, as they do in files.

    Examples
    --------
    >>> import enum
    >>> Pace = enum.Enum("Pace", ["SLOW", "FAST"])
    >>> member_names({"pace": [Pace.FAST]})
    {'pace': ['FAST']}
    """
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, dict):
        return {member_names(key): member_names(item) for key, item in value.items()}
    kind: Any = type(value)
    return kind(map(member_names, value)) if kind in (tuple, list, set, frozenset) else value


def from_text(text: str) -> Any:
    """The value of a text for attributes without a declared type: None, a number, a bool, bytes, a slice, a range, a
    container of these and of text, or else the text.

    Examples
    --------
    >>> from_text("(3, 3)"), from_text("1e-5"), from_text("relu"), from_text("None"), from_text("((1, 2), (0.5,))")
    ((3, 3), 1e-05, 'relu', None, ((1, 2), (0.5,)))
    >>> from_text("{'by': 2j}"), from_text("slice(1, None, None)")
    ({'by': 2j}, slice(1, None, None))
    """
    if _EXPRESSION.match(text):
        try:
            return _to_item(_literal(text))
        except ValueError:  # a number such as 3L
            pass
    for kind in (type(None), int, float, bool, tuple[int, ...], tuple[float, ...]):
        try:
            return converter(kind)(text)
        except (ValueError, TypeError):
            continue
    return text


#: Names in expressions of attributes, and functions in them.
_NAMES = {"nan": math.nan, "inf": math.inf, "Ellipsis": ...}
_FUNCTIONS: dict[str, Any] = {"slice": slice, "range": range, "set": set, "frozenset": frozenset}


def _literal(text: str) -> Any:
    """The value of an expression of numbers, text and containers.

    Raises
    ------
    ValueError
        If the text is another expression, or none.
    """
    try:
        return _value_of(ast.parse(text.strip(), mode="eval").body)
    except (TypeError, SyntaxError, MemoryError, RecursionError):  # errors of Python's parser for damaged text
        raise ValueError(text) from None


def _value_of(tree: ast.expr) -> Any:
    """The value of a parsed expression."""
    if isinstance(tree, (ast.Tuple, ast.List, ast.Set)):
        kind: Any = {ast.Tuple: tuple, ast.List: list, ast.Set: set}[type(tree)]
        return kind(map(_value_of, tree.elts))
    if isinstance(tree, ast.Dict):
        return {_value_of(key): _value_of(item) for key, item in zip(tree.keys, tree.values) if key is not None}
    if isinstance(tree, ast.Name) and tree.id in _NAMES:
        return _NAMES[tree.id]
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub) and isinstance(tree.operand, ast.Name):
        return -_value_of(tree.operand)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in _FUNCTIONS:
        return _FUNCTIONS[tree.func.id](*map(_value_of, tree.args))
    return ast.literal_eval(tree)


def _to_item(value: object) -> Any:
    """A value in a tuple without declared types: lists become tuples."""
    return tuple(map(_to_item, value)) if isinstance(value, (tuple, list)) else value


class Limit(NamedTuple):
    """A condition on values of a type: a test, and its description in errors."""

    words: str
    holds: Callable[[Any], bool]


#: A count.
Count = Annotated[int, Limit("of at least 0", lambda number: number >= 0)]
#: A count of at least one.
Positive = Annotated[int, Limit("of at least 1", lambda number: number > 0)]
#: A number of inputs, outputs or layers, limited since names and arrays are made for each.
Few = Annotated[int, Limit("from 1 to 65,536", lambda number: 0 < number <= 1 << 16)]

#: A probability, a momentum, or a part of a whole.
Fraction = Annotated[float, Limit("from 0 to 1", lambda number: 0 <= number <= 1)]
#: A float that measures something: a distance, a deviation.
Amount = Annotated[float, Limit("of at least 0", lambda number: number >= 0)]

_EXACT = object()
#: A float, or an int that no float equals.
Number = Annotated[float, _EXACT]
#: A number that is neither infinite nor NaN.
Finite = Annotated[Number, Limit("that is finite", math.isfinite)]

_KEY = object()
#: A subscript as NumPy takes it: integers, slices, ``None``, ``...`` and arrays. In text, arrays are lists.
Key = Annotated[Any, _KEY]


class AsText(str):
    """The type of attributes that convert every value to text, such as parameters of a Prop without annotations."""


class AsDefault:
    """The type of attributes that accept every value and read text, such as parameters of a function with a default and
    no annotation."""


#: A converter takes a value or its text. It returns the typed value, or raises ValueError or TypeError.
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


def _split_at_commas(body: str) -> list[str]:
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
            return tuple([item(part) for part in _split_at_commas(body)])
        if isinstance(value, (tuple, list, range)) or (isinstance(value, np.ndarray) and value.ndim == 1):
            return tuple([item(part) for part in value])
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            return (item(value),)
        raise TypeError(value)

    return convert


def _to_nested(value: object) -> tuple:
    """A tuple of any values, read from text where it is one."""
    result = from_text(value) if isinstance(value, str) else value
    return _TO_ITEMS(value if isinstance(result, str) else result)


def _to_default(value: object) -> Any:
    """A value as it is given, or read from text: a tuple, or a list where brackets are square."""
    result = from_text(value) if isinstance(value, str) else value
    return list(result) if isinstance(result, tuple) and isinstance(value, str) and value.strip()[:1] == "[" else result


def _to_row(items: list[Converter]) -> Converter:
    """Converts a tuple that has one element of each type."""
    parts = _to_tuple(lambda value: value)

    def convert(value: object) -> tuple:
        return tuple([item(part) for item, part in zip(items, parts(value), strict=True)])

    return convert


def key_to_text(key: object) -> str:
    """The text of a subscript, a Python expression."""
    if isinstance(key, slice):
        return f"slice({key_to_text(key.start)}, {key_to_text(key.stop)}, {key_to_text(key.step)})"
    if isinstance(key, (tuple, list)):
        items = ", ".join(map(key_to_text, key))
        return f"[{items}]" if isinstance(key, list) else f"({items},)" if len(key) == 1 else f"({items})"
    return str(key.tolist() if hasattr(key, "tolist") else key)


def _to_key(value: object) -> Any:
    return _key_part(_literal(value)) if isinstance(value, str) else value


def _key_part(part: Any) -> Any:
    """A part of a subscript that was read from text."""
    if isinstance(part, tuple):
        return tuple(map(_key_part, part))
    if isinstance(part, list):
        return np.asarray(part, None if len(part) else np.int64)
    if not (part is None or part is ... or isinstance(part, (int, slice))):
        raise ValueError(part)
    return part


def _to_literal(options: tuple) -> Converter:
    by_text = {str(option): option for option in options}

    def convert(value: object) -> Any:
        if isinstance(value, str) and value in by_text:
            return by_text[value]
        if not isinstance(value, str) and value in options:  # an option of the same type first: 1 equals True
            return next((option for option in options if type(option) is type(value) and option == value),
                        options[options.index(value)])
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


def _to_kind(kind: Any, *parts: Converter) -> Converter:
    """Converts to a class whose values have a text, and the elements of a container by their own converters."""

    def convert(value: object) -> Any:
        found: Any = _literal(value) if isinstance(value, str) else value
        if issubclass(kind, (complex, np.number)) and isinstance(found, numbers.Number) and not isinstance(found, bool):
            return kind(found)
        if not isinstance(found, kind):
            raise TypeError(value)
        if len(parts) == 2:
            return kind([[part(item) for part, item in zip(parts, pair)] for pair in found.items()])
        return kind(map(parts[0], found)) if parts else found

    return convert


def _to_member(kind: type[enum.Enum]) -> Converter:
    """Converts to a member of an Enum, from its name or its value. Members of a ``Flag`` are joined by ``|``."""

    by_text = {str(member.value): member for member in kind}

    def convert(value: Any) -> Any:
        names = value.split("|") if isinstance(value, str) else []
        if names and all(name in kind.__members__ for name in names):
            return functools.reduce(operator.or_, [kind[name] for name in names])
        return kind(by_text.get(value, value) if isinstance(value, str) else value)

    return convert


def _limit(convert: Converter, limits: list[Limit]) -> Converter:
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

#: Further classes whose values have a text.
_WITH_TEXT = {complex, bytes, dict, set, frozenset, slice, range}


def is_limited(kind: Any) -> bool:
    """Whether an annotation contains limits."""
    return typing.get_origin(kind) is Annotated or any(map(is_limited, typing.get_args(kind)))


def converter(kind: Any) -> Converter:
    """The converter to the type of an annotation."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        if _KEY in args:
            return _to_key
        convert = _to_number if _EXACT in args else converter(args[0])
        return _limit(convert, [part for part in args[1:] if isinstance(part, Limit)])
    if origin in (Union, types.UnionType):
        # None first, so that the text "None" does not become a str.
        ordered = sorted(args, key=lambda arg: arg is not type(None))
        return _to_any(tuple(converter(arg) for arg in ordered))
    if origin is tuple and len(args) > 1 and args[1] is not ...:
        return _to_row([converter(arg) for arg in args])
    if origin in (tuple, list):
        return _to_tuple(converter(args[0]) if args else _to_item)
    if origin is Literal:
        return _to_literal(args)
    if (origin or kind) in _WITH_TEXT or (isinstance(kind, type) and issubclass(kind, np.number)):
        return _to_kind(origin or kind, *map(converter, args))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _to_member(kind)

    def instance(value: object) -> Any:
        if isinstance(value, kind):
            return value
        raise TypeError(value)

    return instance


def describe(kind: object) -> str:
    """An annotation as text for errors, such as ``tuple of int or None``."""
    names = {int: "int", float: "float", bool: "bool", str: "text", type(None): "None", np.dtype: "dtype",
             tuple: "tuple", list: "list", Any: "anything", AsText: "anything", AsDefault: "anything"}
    if kind in names:
        return names[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Key:
        return "a subscript"
    if origin is Annotated:
        return " ".join([describe(args[0]), *(part.words for part in args[1:] if isinstance(part, Limit))])
    if origin in (Union, types.UnionType):
        return " or ".join(describe(arg) for arg in args)
    if origin is tuple and len(args) > 1 and args[1] is not ...:
        return f"tuple of {', '.join(map(describe, args))}"
    if origin in (tuple, list):
        return "tuple of " + (describe(args[0]) if args else "anything")
    if origin is Literal:
        return "one of " + ", ".join(repr(arg) for arg in args)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return "one of " + ", ".join(kind.__members__)
    return getattr(kind, "__name__", str(kind))
