"""Checks of settings, the arguments of constructors: text and lists are refused where a number is expected."""

from __future__ import annotations

import ast
import inspect
import math
import operator
import re
import textwrap
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ArgumentError, is_ours, unknown_keyword
from .annotations import expected_words, is_number
from .named_errors import named

__all__ = ["Checked", "CheckedMethods", "dimensions", "flag", "named_methods", "number", "pattern",
           "real_number", "whole_number"]

C = TypeVar("C", bound=type)


def pattern(what: str, text: str | re.Pattern[str]) -> re.Pattern[str]:
    """A regular expression that a user gave.

    Raises
    ------
    ArgumentError
        Python's ``re`` cannot read the text.

    Examples
    --------
    >>> pattern("collect_params: select", ".*weight").match("fc_weight") is not None
    True
    >>> pattern("collect_params: select", "(")
    Traceback (most recent call last):
    opreg.errors.ArgumentError: collect_params: select='(': expected a regular expression: missing ), unterminated \
subpattern at position 0
    """
    try:
        return re.compile(text)
    except (re.error, TypeError) as error:
        raise ArgumentError(f"{what}={text!r}: expected a regular expression: {error}") from None


def whole_number(what: str, value: Any, least: float = 0) -> int:
    """A setting that counts something, as an int.

    Raises
    ------
    ArgumentError
        The value is no integer, or less than ``least``.

    Examples
    --------
    >>> whole_number("fit: num_epoch", "10", 1)
    Traceback (most recent call last):
    opreg.errors.ArgumentError: fit: num_epoch='10': expected an int of at least 1
    """
    try:
        result = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        result = None
    if result is None or result < least:
        raise ArgumentError(f"{what}={value!r}: expected an int{_bounds(least, math.inf)}")
    return result


def number(what: str, value: Any, least: float = -math.inf, most: float = math.inf, inside: bool = False) -> Any:
    """A setting that is a number from ``least`` to ``most``; the value itself, which may be an array of one element.
    With ``inside``, the two ends are excluded.

    Raises
    ------
    ArgumentError
        The value is no number, or out of range.

    Examples
    --------
    >>> number("Trainer.step: ignore", 0.5)
    0.5
    >>> number("SGD: learning_rate", "0.1")
    Traceback (most recent call last):
    opreg.errors.ArgumentError: SGD: learning_rate='0.1': expected a number
    """
    if not is_number(value) or not (least < float(value) < most if inside else least <= float(value) <= most):
        raise ArgumentError(f"{what}={value!r}: expected a number{_bounds(least, most, inside)}")
    return value


def real_number(what: str, value: Any, least: float = 0.0, most: float = math.inf, inside: bool = False) -> float:
    """A setting that is a number, as a float; see ``number``.

    Examples
    --------
    >>> real_number("SGD: momentum", 1)
    1.0
    """
    return float(number(what, value, least, most, inside))


def flag(what: str, value: Any) -> bool:
    """A setting that is True or False.

    Examples
    --------
    >>> flag("Dense: has_bias", "no")
    Traceback (most recent call last):
    opreg.errors.ArgumentError: Dense: has_bias='no': expected True or False
    """
    if not isinstance(value, bool):
        raise ArgumentError(f"{what}={value!r}: expected True or False")
    return value


def dimensions(what: str, value: Any, least: float = 0) -> tuple[int, ...]:
    """A shape, given as an int or as several, as a tuple. Unknown lengths are negative where ``least`` allows it.

    Examples
    --------
    >>> dimensions("zeros: shape", 3), dimensions("zeros: shape", [2, 3])
    ((3,), (2, 3))
    >>> dimensions("zeros: shape", (2, "3"))
    Traceback (most recent call last):
    opreg.errors.ArgumentError: zeros: shape=(2, '3'): expected an int or a tuple of ints
    """
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 1) != 0
    try:
        result = tuple([operator.index(dim) for dim in (value if several else (value,))])
    except TypeError:
        raise ArgumentError(f"{what}={value!r}: expected an int or a tuple of ints") from None
    if any(dim < least for dim in result):
        raise ArgumentError(f"{what}={value!r}: expected lengths{_bounds(least, math.inf)}")
    return result


def _bounds(least: float, most: float, inside: bool = False) -> str:
    """The range of a number in words."""
    if inside:
        ends = [f"above {least:g}"] * (least > -math.inf) + [f"below {most:g}"] * (most < math.inf)
        return f" {' and '.join(ends)}" if ends else ""
    if least == -math.inf:
        return "" if most == math.inf else f" of at most {most:g}"
    return f" of at least {least:g}" if most == math.inf else f" from {least:g} to {most:g}"


def _constructors(cls: type) -> Iterator[Any]:
    """The constructors that keywords reach: each passes those that it does not name to the next. A class that states
    its signature checks its arguments itself. Decorators of users may read keywords, those of opreg do not."""
    for base in cls.__mro__:
        if "__signature__" in vars(base):
            return
        function = vars(base).get("__init__")
        if function is not None:
            if not inspect.isfunction(function):
                return
            if is_ours(function):
                function = inspect.unwrap(function)
            yield function
            if not _is_open(function):
                return


def _check_arguments(cls: type, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
    """Refuse arguments of a class that its constructors do not take: unknown keywords, and values that are no numbers
    where the annotation of opreg's constructor says ``float`` or ``int``, or text where it says ``bool``. Annotations
    of a user's constructor are not read.

    Raises
    ------
    ArgumentError
        For the first such argument.
    """
    given = dict(keywords)
    open_constructors: list[Any] = []
    valid: list[str] = []
    for function in _constructors(cls):
        code, ours = function.__code__, is_ours(function)
        names = code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]
        given.update(zip(code.co_varnames[1:code.co_argcount], args))
        args = ()
        for name in names:
            if name in given:
                value = given.pop(name)
                words = expected_words(value, function.__annotations__.get(name, "")) if ours else ""
                if words and all(map(_passes_keywords_on, open_constructors)) and not (
                        value is None and inspect.signature(function).parameters[name].default is None):
                    raise ArgumentError(f"{cls.__name__}: {name}={value!r}: expected {words}")
        valid += names
        if not given:
            break
        if _is_open(function):
            open_constructors.append(function)
        elif all(map(_passes_keywords_on, open_constructors)):
            name = next(iter(given))
            raise ArgumentError(unknown_keyword(cls.__name__, name, valid))


def _is_open(function: Any) -> bool:
    """Whether a function takes keywords that it does not name."""
    return bool(function.__code__.co_flags & inspect.CO_VARKEYWORDS)


def _passes_keywords_on(function: Any) -> bool:
    """Whether a constructor passes the keywords that it does not name to the next one, and does no more with them. One
    that never mentions them ignores them. If its source is missing, it is assumed to read them."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function.__code__))).body
    except (OSError, SyntaxError):
        return False
    code = function.__code__
    keywords = code.co_varnames[code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)]
    passed = [argument.value for call in ast.walk(tree)
              if isinstance(call, ast.Call) and ast.unparse(call.func) == "super().__init__"
              for argument in call.keywords if argument.arg is None]
    mentioned = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == keywords]
    return bool(mentioned) and all(node in passed for node in mentioned)


class Checked:
    """A base of classes with settings: the arguments of a new object are compared with the annotations of the
    constructor, before it runs.

    An argument annotated ``float`` must be a number, ``int`` a whole number, ``bool`` no text, and ``float | None`` may
    also be None. ``Amount``, ``Fraction``, ``Count`` and ``Positive`` of ``core.attrs`` are limited as in attributes of
    operators. Other annotations, parameters without one, and constructors of users' subclasses are not checked. A
    keyword that a constructor passes on is checked by the constructor that names it.

    Raises
    ------
    ArgumentError
        Names class, parameter and value.

    Examples
    --------
    >>> from opreg.train.lr_scheduler import LRScheduler
    >>> issubclass(LRScheduler, Checked)
    True
    >>> LRScheduler("0.1")
    Traceback (most recent call last):
    opreg.errors.ArgumentError: LRScheduler: base_lr='0.1': expected a number
    >>> from opreg.gluon.nn import Dropout
    >>> Dropout(1.5)
    Traceback (most recent call last):
    opreg.errors.ArgumentError: Dropout: rate=1.5: expected a number from 0 to 1
    """

    if not TYPE_CHECKING:  # type checkers read __init__

        def __new__(cls, *args, **keywords):
            """Make the object, after checking the arguments."""
            following = super().__new__  # the __new__ of another base, such as tuple, gets the arguments
            if cls.__init__ is not object.__init__:
                _check_arguments(cls, args, keywords)
            elif following is object.__new__ and (args or keywords):
                raise ArgumentError(f"{cls.__name__}() takes no arguments")
            return following(cls) if following is object.__new__ else following(cls, *args, **keywords)

    def __init_subclass__(cls, **keywords: Any):
        super().__init_subclass__(**keywords)
        _name_errors(cls, lambda name: name == "__init__")


def named_methods(*plain: str) -> Callable[[C], C]:
    """A decorator of a class whose public methods raise errors that name the object's class, the method and the
    argument; those of these names stay as they are.

    Examples
    --------
    >>> from opreg import sym
    >>> sym.var("x").gradient(wrtt=["x"])
    Traceback (most recent call last):
    opreg.errors.ArgumentError: Symbol.gradient() takes no keyword 'wrtt'. Did you mean 'wrt'? Valid: wrt.
    """

    def name(cls: C) -> C:
        _name_errors(cls, lambda method: not method.startswith("_") and method not in plain)
        return cls

    return name


def _name_errors(cls: type, are_named: Callable[[str], bool]) -> None:
    """Make errors of functions of a class name the class, if the functions are opreg's."""
    for name, member in [*vars(cls).items()]:
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if isinstance(function, types.FunctionType) and are_named(name) and is_ours(function):
            setattr(cls, name, named(function) if member is function else type(member)(named(function)))


class CheckedMethods(Checked):
    """A base of classes whose public methods raise errors that name the object's class, the method and the argument;
    methods of users' subclasses stay as they are.

    Attributes
    ----------
    _plain_methods : collection of str
        The names of methods that stay as they are, too: those that every step calls, and those whose errors are named
        by their caller.

    Examples
    --------
    >>> from opreg.train.stores import KVStore
    >>> KVStore().init("a", valeu=1)
    Traceback (most recent call last):
    opreg.errors.ArgumentError: KVStore.init() takes no keyword 'valeu'. Did you mean 'value'? Valid: key, value.
    """

    _plain_methods: Collection[str] = ()

    def __init_subclass__(cls, **keywords: Any):
        super().__init_subclass__(**keywords)
        named_methods(*cls._plain_methods)(cls)
