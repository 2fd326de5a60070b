"""Checks of arguments, with the names of ``mindspore._checkparam``, which libraries over MindSpore call.

Each check returns the value that it was given, or raises an error that names the argument: a TypeError for another
type, a ValueError for another value. A bool is no number. ``prim_name`` is the name of the caller.

>>> from opreg.nn import checkparam
>>> checkparam.check_positive_int(3, "size", "Grid")
3
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.parameters import signature_of
from ..errors import ArgumentError

__all__ = ["EQ", "NE", "LT", "LE", "GT", "GE", "INC_NEITHER", "INC_LEFT", "INC_RIGHT", "INC_BOTH", "IN", "NOT_IN",
           "args_type_check", "check", "check_bool", "check_element_type_of_dict", "check_element_type_of_iterable",
           "check_equal_int", "check_float", "check_float_range", "check_int", "check_int_range", "check_is_float",
           "check_is_int", "check_is_number", "check_isinstance", "check_negative_float", "check_negative_int",
           "check_non_negative_float", "check_non_negative_int", "check_non_negative_int_sequence",
           "check_non_positive_float", "check_non_positive_int", "check_number", "check_number_range",
           "check_positive_float",
           "check_positive_float_sequence", "check_positive_int", "check_positive_int_sequence", "check_string",
           "check_subclass", "check_type_name", "check_value_type", "twice"]

#: Relations between two numbers, and between a number and two limits.
EQ, NE, LT, LE, GT, GE, INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH, IN, NOT_IN = range(1, 13)

_BETWEEN_TWO = {EQ: ("equal to", operator.eq), NE: ("not equal to", operator.ne), LT: ("less than", operator.lt),
                LE: ("at most", operator.le), GT: ("greater than", operator.gt), GE: ("at least", operator.ge)}
_RANGES: dict[int, tuple[str, str, Callable[[Any, Any], bool], Callable[[Any, Any], bool]]] = {
    INC_NEITHER: ("(", ")", operator.gt, operator.lt), INC_LEFT: ("[", ")", operator.ge, operator.lt),
    INC_RIGHT: ("(", "]", operator.gt, operator.le), INC_BOTH: ("[", "]", operator.ge, operator.le)}


def _subject(name: str | None, caller: str | None) -> str:
    """The argument in an error."""
    return (f"For '{caller}', the " if caller else "The ") + (f"'{name}'" if name else "input value")


def _names(types: Iterable[Any]) -> str:
    return " or ".join([getattr(each, "__name__", str(each)) for each in types])


def check(arg_name: str, arg_value: Any, value_name: str, value: Any, rel: int = EQ, prim_name: str | None = None,
          excp_cls: type[Exception] = ValueError) -> Any:
    """Refuse a value that is not in a relation to another value, which has a name of its own."""
    if rel in (IN, NOT_IN):
        text, holds = "in" if rel == IN else "not in", (arg_value in value) is (rel == IN)
    else:
        text, compare = _BETWEEN_TWO[rel]
        holds = compare(arg_value, value)
    if not holds:
        raise excp_cls(f"{_subject(arg_name, prim_name)} should be {text} {value_name}: {value}, but got {arg_value}.")
    return arg_value


def check_number(arg_name: str, arg_value: Any, value: Any, rel: int, prim_name: str | None = None) -> Any:
    """Refuse a value that is not in a relation to another."""
    text, compare = _BETWEEN_TWO[rel]
    if not compare(arg_value, value):
        raise ArgumentError(f"{_subject(arg_name, prim_name)} must be {text} {value}, but got {arg_value}.")
    return arg_value


def check_is_number(arg_value: Any, arg_type: type, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Refuse a value that is no number of the type, ``int`` or ``float``, and NaN and infinities."""
    if not isinstance(arg_value, arg_type) or isinstance(arg_value, bool):
        raise ArgumentError(f"{_subject(arg_name, prim_name)} must be {arg_type.__name__}, but got {arg_value!r} of "
                            f"type {type(arg_value).__name__}.")
    if arg_value != arg_value or arg_value in (float("inf"), -float("inf")):
        raise ArgumentError(f"{_subject(arg_name, prim_name)} must be a finite number, but got {arg_value}.")
    return arg_value


def _check_number(arg_type: type, arg_value: Any, value: Any, rel: int, arg_name: str | None = None,
                  prim_name: str | None = None) -> Any:
    """Refuse a value that is no number of the type, or not in a relation to another number."""
    check_is_number(arg_value, arg_type, arg_name, prim_name)
    text, compare = _BETWEEN_TWO[rel]
    if not compare(arg_value, value):
        raise ArgumentError(f"{_subject(arg_name, prim_name)} must be {arg_type.__name__} and {text} {value}, but got "
                            f"{arg_value}.")
    return arg_value


def check_number_range(arg_value: Any, lower_limit: float, upper_limit: float, rel: int, value_type: type,
                       arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Refuse a value that is no number of the type, or outside of two limits."""
    opening, closing, above, below = _RANGES[rel]
    if not isinstance(arg_value, value_type) or isinstance(arg_value, bool):
        raise ArgumentError(f"{_subject(arg_name, prim_name)} must be {value_type.__name__}, but got {arg_value!r} "
                            f"of type {type(arg_value).__name__}.")
    if not (above(arg_value, lower_limit) and below(arg_value, upper_limit)):
        raise ArgumentError(f"{_subject(arg_name, prim_name)} must be in range of {opening}{lower_limit}, {upper_limit}"
                            f"{closing}, but got {arg_value}.")
    return arg_value


def _number_check(name: str, text: str, arg_type: type, rel: int) -> Callable[..., Any]:
    """A function that checks the relation of a number to 0."""
    def checked(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
        return _check_number(arg_type, arg_value, 0, rel, arg_name, prim_name)

    checked.__name__ = checked.__qualname__ = name
    checked.__doc__ = f"Refuse a value that is no {text} {arg_type.__name__}."
    return checked


check_positive_int = _number_check("check_positive_int", "positive", int, GT)
check_negative_int = _number_check("check_negative_int", "negative", int, LT)
check_non_positive_int = _number_check("check_non_positive_int", "non-positive", int, LE)
check_non_negative_int = _number_check("check_non_negative_int", "non-negative", int, GE)
check_positive_float = _number_check("check_positive_float", "positive", float, GT)
check_negative_float = _number_check("check_negative_float", "negative", float, LT)
check_non_positive_float = _number_check("check_non_positive_float", "non-positive", float, LE)
check_non_negative_float = _number_check("check_non_negative_float", "non-negative", float, GE)


def _sequence_check(check_one: Callable[..., Any]) -> Callable[..., Any]:
    """A check of each number in a list or tuple."""
    def checked(sequence: Sequence[Any], arg_name: str | None = None, prim_name: str | None = None) -> Sequence[Any]:
        for i, each in enumerate(sequence):
            check_one(each, f"{arg_name or 'sequence'}[{i}]", prim_name)
        return sequence

    checked.__name__ = checked.__qualname__ = f"{check_one.__name__}_sequence"
    checked.__doc__ = f"``{check_one.__name__}`` of each element."
    return checked


check_positive_int_sequence = _sequence_check(check_positive_int)
check_non_negative_int_sequence = _sequence_check(check_non_negative_int)
check_positive_float_sequence = _sequence_check(check_positive_float)


def check_int(arg_value: Any, value: int, rel: int, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Refuse a value that is no int, or not in a relation to another."""
    return _check_number(int, arg_value, value, rel, arg_name, prim_name)


def check_is_int(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Refuse a value that is no int."""
    return check_is_number(arg_value, int, arg_name, prim_name)


def check_equal_int(arg_value: Any, value: int, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Refuse a value that is another int, or none."""
    return _check_number(int, arg_value, value, EQ, arg_name, prim_name)


def check_float(arg_value: Any, value: float, rel: int, arg_name: str | None = None,
                prim_name: str | None = None) -> Any:
    """Refuse a value that is no float, or not in a relation to another."""
    return _check_number(float, arg_value, value, rel, arg_name, prim_name)


def check_is_float(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Refuse a value that is no float."""
    return check_is_number(arg_value, float, arg_name, prim_name)


def check_int_range(arg_value: Any, lower_limit: int, upper_limit: int, rel: int, arg_name: str | None = None,
                    prim_name: str | None = None) -> Any:
    """Refuse a value that is no int between two limits."""
    return check_number_range(arg_value, lower_limit, upper_limit, rel, int, arg_name, prim_name)


def check_float_range(arg_value: Any, lower_limit: float, upper_limit: float, rel: int, arg_name: str | None = None,
                      prim_name: str | None = None) -> Any:
    """Refuse a value that is no float between two limits."""
    return check_number_range(arg_value, lower_limit, upper_limit, rel, float, arg_name, prim_name)


def check_bool(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> bool:
    """Refuse a value that is no bool."""
    if not isinstance(arg_value, bool):
        raise ArgumentError(f"{_subject(arg_name, prim_name)} must be a bool, but got {arg_value!r}.")
    return arg_value


def check_string(arg_value: Any, valid_values: Sequence[str], arg_name: str | None = None,
                 prim_name: str | None = None) -> str:
    """Refuse a value that is none of some texts."""
    if not (isinstance(arg_value, str) and arg_value in valid_values):
        raise ArgumentError(f"{_subject(arg_name, prim_name)} must be str and must be in {list(valid_values)}, but got "
                            f"{arg_value!r}.")
    return arg_value


def check_isinstance(arg_name: str, arg_value: Any, classes: type | tuple[type, ...]) -> Any:
    """Refuse a value that is no instance of the classes, with a ValueError."""
    if not isinstance(arg_value, classes):
        raise ArgumentError(f"{_subject(arg_name, None)} should be an instance of "
                            f"{_names(classes if isinstance(classes, tuple) else (classes,))}, but got {arg_value!r}.")
    return arg_value


def check_value_type(arg_name: str, arg_value: Any, valid_types: Any, prim_name: str | None = None) -> Any:
    """Refuse a value that has none of some types; a bool needs ``bool`` among them."""
    types = tuple(valid_types) if isinstance(valid_types, Iterable) else (valid_types,)
    if not isinstance(arg_value, types) or (isinstance(arg_value, bool) and bool not in types):
        raise ArgumentError(f"{_subject(arg_name, prim_name)} should be {_names(types)}, but got type "
                            f"'{type(arg_value).__name__}'.")
    return arg_value


def check_subclass(arg_name: str, type_: Any, template_types: Any, prim_name: str | None,
                   addition_error_info: str | None = None) -> None:
    """Refuse a type that is no subclass of some types, and none of some dtypes."""
    templates = tuple(template_types) if isinstance(template_types, Iterable) else (template_types,)
    for each in templates:
        if type_ == each or (inspect.isclass(type_) and inspect.isclass(each) and issubclass(type_, each)):
            return
    raise ArgumentError(f"{_subject(arg_name, prim_name)} must be a subclass of {_names(templates)}, but got {type_}."
                        f"{f' {addition_error_info}' if addition_error_info else ''}")


def check_type_name(arg_name: str, arg_type: Any, valid_types: Any, prim_name: str | None = None) -> Any:
    """Refuse a type or dtype that is none of the valid ones."""
    valid = tuple(valid_types) if isinstance(valid_types, Iterable) else (valid_types,)
    if arg_type not in valid:
        raise ArgumentError(f"{_subject(arg_name, prim_name)} must be {' or '.join(map(str, valid))}, "
                            f"but got {arg_type}.")
    return arg_type


def twice(m: Any) -> Any:
    """An int as a pair; a pair as it is.

    Examples
    --------
    >>> twice(3), twice((1, 2))
    ((3, 3), (1, 2))
    """
    if isinstance(m, int):
        return m, m
    if not isinstance(m, tuple) or len(m) != 2:
        raise ArgumentError(f"twice: expected an int or a pair of ints, got {m!r}")
    return m


def check_element_type_of_iterable(arg_name: str, arg_value: Iterable[Any], valid_types: Any,
                                   prim_name: str | None = None) -> Any:
    """``check_value_type`` of each element."""
    for i, each in enumerate(arg_value):
        check_value_type(f"{arg_name}[{i}]", each, valid_types, prim_name)
    return arg_value


def check_element_type_of_dict(arg_name: str, arg_value: dict[Any, Any], key_types: Any, value_types: Any,
                               prim_name: str | None = None) -> Any:
    """``check_value_type`` of a dict, of its keys and of its values."""
    check_value_type(arg_name, arg_value, [dict], prim_name)
    for key, value in arg_value.items():
        check_value_type(f"a key of {arg_name}", key, key_types, prim_name)
        check_value_type(f"{arg_name}[{key!r}]", value, value_types, prim_name)
    return arg_value


def args_type_check(*type_args: Any, **type_kwargs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: arguments of the function must have these types, by position or name; None is accepted."""
    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = signature_of(function)
        expected = signature.bind_partial(*type_args, **type_kwargs).arguments

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                if name in expected and value is not None and not isinstance(value, expected[name]):
                    raise ArgumentError(f"The parameter '{name}' of {function.__name__} must be {expected[name]}, "
                                        f"but got {type(value)}.")
            return function(*args, **kwargs)

        return wrapped

    return wrap
