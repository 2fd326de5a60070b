"""Checks of settings, the arguments of constructors: text and lists are refused where a number is expected."""

from __future__ import annotations

import ast
import inspect
import math
import numbers
import operator
import os
import textwrap
import typing
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError, is_ours, missing_arguments, other_count, unknown_keyword
from . import conversions
from .cache import cached

__all__ = ["PLAIN", "Checked", "check_arguments", "dimensions", "expected_words", "flag", "number", "real_number",
           "whole_number", "kinds_of"]


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
    if not _is_number(value) or not (least < float(value) < most if inside else least <= float(value) <= most):
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


def _is_number(value: object) -> bool:
    """Whether a value is a number: Python's, NumPy's, or an array of one element."""
    if isinstance(value, bool) or not (hasattr(type(value), "__float__") or hasattr(type(value), "__index__")):
        return False
    return bool(getattr(value, "size", 1) == 1)


def _is_int(value: object) -> bool:
    """Whether a value is a whole number; a float may be one, as Python's division gives it."""
    if isinstance(value, numbers.Real) and not hasattr(type(value), "__index__"):
        return float(value).is_integer()
    return _is_number(value) and hasattr(type(value), "__index__")


def _of_each(allows: Callable[[Any], bool], count: int | None = None) -> Callable[[Any], bool]:
    """Whether a value is a sequence, and no text, whose items are allowed, and of which there are ``count``."""
    return lambda value: (isinstance(value, Iterable) and hasattr(type(value), "__len__") and not isinstance(
        value, (str, bytes)) and getattr(value, "ndim", 1) != 0 and count in (None, len([*value]))
        and all(map(allows, value)))


def _derives(value: object, base: str) -> bool:
    """Whether the class of a value derives from one with a name."""
    return any(each.__name__ == base for each in type(value).__mro__)


_of_names = _of_each(lambda name: isinstance(name, str))


def _is_mapping(value: object) -> bool:
    return hasattr(type(value), "keys") and hasattr(type(value), "__getitem__")


#: Annotations that are checked: the values that they allow, and the words for them.
_CHECKS: dict[str, tuple[Callable[[object], bool], str]] = {
    "float": (_is_number, "a number"),
    "int": (_is_int, "an int"),
    "bool": (lambda value: value is None or isinstance(value, (bool, np.bool_)) or _is_number(value), "True or False"),
    "None": (lambda value: value is None, "None"),
    "str": (lambda value: isinstance(value, (str, os.PathLike)), "text"),
    "os.PathLike": (lambda value: isinstance(value, os.PathLike), "a path"),
    "DataIter": (lambda value: hasattr(value, "provide_data") and hasattr(value, "reset"), "a data iterator"),
    "Sequence[DataIter]": (lambda value: isinstance(value, (list, tuple)) and len(value) > 0,
                           "a list of data iterators"),
    "SampleSequence": (lambda value: hasattr(value, "__getitem__") and hasattr(value, "__len__"),
                       "a list or a dataset"),
    "NDArray": (lambda value: hasattr(value, "shape"), "an array"),
    "Sequence[float]": (_of_each(_is_number), "a list of numbers"),
    "Sequence[int]": (_of_each(_is_int), "a tuple of ints"),
    "Cell": (lambda value: _derives(value, "Cell"), "a Cell"),
    "Callable": (callable, "a function"),
    "ArrayLike": (lambda value: hasattr(type(value), "dtype") or _is_number(value) or isinstance(value, bool),
                  "a tensor or a number"),
    "TensorLike": (lambda value: hasattr(type(value), "dtype") or isinstance(value, (bool, list, tuple))
                   or _is_number(value), "a tensor, a number or a list of numbers"),
    "Tensor": (lambda value: hasattr(type(value), "dtype"), "a tensor"),
    "Sequence[TensorLike]": (lambda value: isinstance(value, (list, tuple)), "a list of tensors"),
    "Mapping": (_is_mapping, "a dict"),
    "Sequence[Callable]": (_of_each(callable), "a list of functions"),
    "Sequence[str]": (lambda value: isinstance(value, Iterator) or _of_names(value), "a list of names"),
    "tuple[float, float]": (_of_each(_is_number, 2), "two numbers"),
    "Symbol": (lambda value: hasattr(type(value), "list_arguments"), "a Symbol"),
    "Module": (lambda value: _derives(value, "Module"), "a Module"),
    "BaseModule": (lambda value: _derives(value, "BaseModule"), "a module"),
    "Monitor": (lambda value: hasattr(value, "install"), "a Monitor"),
    "Sampler": (lambda value: hasattr(type(value), "__iter__") or hasattr(type(value), "__getitem__"), "a sampler"),
    "LRScheduler": (callable, "a scheduler"),
    "EvalMetric": (lambda value: hasattr(value, "update"), "a metric"),
    "Descriptions": (_of_each(lambda pair: hasattr(pair, "shape") or (len(pair) > 1 and isinstance(pair[0], str))),
                     "a list of pairs of a name and a shape"),
    "Settings": (lambda value: _is_mapping(value) or _of_each(lambda pair: len(pair) == 2)(value), "a dict"),
}
#: Annotations that stand for others.
_STAND_FOR = {"Number": "float", "Sizes": "int | Sequence[int]", "tuple[int, ...]": "Sequence[int]",
              "AnyShape": "int | Sequence[int]", "ShapeLike": "int | Sequence[int]",
              "Axes": "int | Sequence[int] | None", "Measure": "Callable", "Sequence[Tensor]": "Sequence[TensorLike]",
              "Callbacks": "Callable | Sequence[Callable] | None", "Weights": "Mapping | None",
              "Sequence[Block]": "Sequence[Callable]", "Transform": "Callable",
              "GradReq": "str | Sequence[str] | Mapping", "Requests": "str | Sequence[str] | Mapping"}


def _limited(kind: Any) -> tuple[Callable[[Any], bool], str]:
    """The check of a type with limits, as attributes of operators have it."""
    plain, *limits = typing.get_args(kind)
    allows, words = _CHECKS[plain.__name__]
    return (lambda value: allows(value) and all(limit.holds(value) for limit in limits),
            " ".join([words, *[limit.words for limit in limits]]))


_LIMITED = {"Amount": conversions.Amount, "Count": conversions.Count, "Fraction": conversions.Fraction,
            "Positive": conversions.Positive}
_CHECKS.update({name: _limited(kind) for name, kind in _LIMITED.items()})
#: The plain type, as text, of each annotation with limits.
PLAIN = {name: typing.get_args(kind)[0].__name__ for name, kind in _LIMITED.items()}


def kinds_of(annotation: object) -> list[str]:
    """The types of an annotation, such as ``float | None``, by their names.

    Examples
    --------
    >>> kinds_of("float | None"), kinds_of(int)
    (['float', 'None'], ['int'])
    """
    return (annotation.__name__ if isinstance(annotation, type) else str(annotation)).split(" | ")


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


def check_arguments(cls: type, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
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
    first = None
    for function in _constructors(cls):
        code, ours = function.__code__, is_ours(function)
        names = code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]
        if first is None:
            first = function
            given.update(zip(code.co_varnames[1:code.co_argcount], args))
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
    if first is not None and is_ours(first) and (args or keywords):  # copy.copy calls the constructor without arguments
        _check_count(cls, first, args, keywords)


def _check_count(cls: type, function: Any, args: Sequence[Any], keywords: Container[str]) -> None:
    """Refuse too few and too many positional arguments of a constructor."""
    names = function.__code__.co_varnames[1:function.__code__.co_argcount]
    code, defaults = function.__code__, function.__kwdefaults__ or {}
    by_keyword = code.co_varnames[code.co_argcount:code.co_argcount + code.co_kwonlyargcount]
    required = [*names[:len(names) - len(function.__defaults__ or ())][len(args):],
                *[name for name in by_keyword if name not in defaults]]
    missing = [name for name in required if name not in keywords]
    if missing:
        raise ArgumentError(missing_arguments(cls.__name__, missing, [*names, *by_keyword]))
    if len(args) > len(names) and not function.__code__.co_flags & inspect.CO_VARARGS:
        raise ArgumentError(f"{cls.__name__}(): {other_count(names, len(args), 'argument')}")


def _is_open(function: Any) -> bool:
    """Whether a function takes keywords that it does not name."""
    return bool(function.__code__.co_flags & inspect.CO_VARKEYWORDS)


def _passes_keywords_on(function: Any) -> bool:
    """Whether a constructor passes the keywords that it does not name to the next one, and does no more with them. One
    that never mentions them ignores them. If its source is not there, it may read them."""
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


def expected_words(value: object, annotation: object) -> str:
    """The values that an annotation allows, in words; empty if this is one, or a type is not checked.

    Examples
    --------
    >>> expected_words("a", "float | None"), expected_words(1, "float | None")
    ('a number or None', '')
    """
    checks = _checks_of(annotation)
    if not checks or any(allows(value) for allows, _ in checks):
        return ""
    return " or ".join(words for _, words in checks)


@cached(256)
def _checks_of(annotation: object) -> tuple[tuple[Callable[[object], bool], str], ...]:
    """The checks of an annotation's types; none if one of the types has no check."""
    kinds = [each for kind in kinds_of(annotation) for each in kinds_of(_STAND_FOR.get(kind, kind))]
    kinds = [kind.partition("[")[0] if kind.startswith(("Callable[", "Mapping[")) else kind for kind in kinds]
    return tuple(_CHECKS[kind] for kind in kinds) if all(kind in _CHECKS for kind in kinds) else ()


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
                check_arguments(cls, args, keywords)
            elif following is object.__new__ and (args or keywords):
                raise ArgumentError(f"{cls.__name__}() takes no arguments")
            return following(cls) if following is object.__new__ else following(cls, *args, **keywords)
