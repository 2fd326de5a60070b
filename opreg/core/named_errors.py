"""Public functions whose errors name them: the function, the argument, and the values that it takes.

An exception of Python, NumPy or the system becomes an `OpError` that is still an instance of its own class; exceptions
of users' code leave as they are. A call without an error costs one more function call.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, TypeVar, cast

from ..errors import (
    ArgumentError,
    FileFormatError,
    OpError,
    as_op_error,
    is_users,
    missing_arguments,
    note,
    other_count,
    unknown_keyword,
)
from .annotations import expected_words
from .parameters import signature_of
from .setting_reads import READERS

__all__ = ["FAILURES", "bind", "explained", "name_errors", "named", "wrong_call"]

F = TypeVar("F", bound=Callable[..., Any])

#: The exceptions whose text ``explained`` completes.
FAILURES = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError, OSError, OpError)
#: Methods that make objects.
_CONSTRUCTORS = ("__init__", "__new__")


def name_errors(module: str, functions: MutableMapping[str, Any], names: Iterable[str]) -> None:
    """Replace functions of a module or package, given by name, by ones whose errors name them.

    Parameters
    ----------
    module : str
        The module in which users find the functions.
    functions : mapping
        Its names.
    names : iterable of str
        The public ones; classes, and functions of other modules and packages, stay as they are. So do functions that
        answer with a setting, which traces know by their code.
    """
    for name in names:
        function = functions.get(name)
        if isinstance(function, types.FunctionType) and f"{function.__module__}.".startswith(f"{module}.") \
                and id(function.__code__) not in READERS:
            functions[name] = named(function, "" if function.__module__ == module else module)


def named(function: F, module: str = "") -> F:
    """A function whose errors name it; a method's errors name the object's class, too, and a constructor's the class.

    Examples
    --------
    >>> from opreg import ops
    >>> ops.full((2,), "a")
    Traceback (most recent call last):
    opreg.errors.ArgumentError: full: fill_value='a': expected a tensor or a number
    >>> def halve(x, times=1): return x / 2 ** times
    >>> named(halve)(3.0, tims=2)
    Traceback (most recent call last):
    opreg.errors.ArgumentError: halve() takes no keyword 'tims'. Did you mean 'times'? Valid: x, times.
    """

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except FAILURES as error:
            raise explained(error, function, args, keywords)  # noqa: B904  it is the error itself, or hides it

    if module:  # pickle looks a function up in its module, and doctest runs examples of the module's functions
        call.__module__, call.__qualname__ = "opreg", f"{module.rpartition('.')[2]}.{function.__name__}"
    return cast(F, call)


def explained(error: Exception, function: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]
              ) -> Exception:
    """An exception of ``FAILURES`` that the caller has caught from a function, or the error that names the function,
    and the argument if one has the wrong kind."""
    name, signature = function.__name__, inspect.signature(function)
    assert error.__traceback__ is not None
    if is_users(error.__traceback__.tb_next):
        return error
    if isinstance(error, (OSError, FileFormatError)):  # it names the file
        return as_op_error(error)
    names = [name]
    made = args[0] if args and isinstance(args[0], type) else type(args[0]) if args else object
    if name in _CONSTRUCTORS:
        name = next(cls.__name__ for cls in made.__mro__ if cls.__module__.startswith("opreg."))
        names = [made.__name__, name]  # the user's class, and ours
    begins = re.match(rf"(operator |\w+\.)?({'|'.join(names)})\b", str(error))
    if args and next(iter(signature.parameters), "") in ("self", "cls"):
        name, args = name if function.__name__ in _CONSTRUCTORS else f"{made.__name__}.{name}", args[1:]
        signature = signature.replace(parameters=[*signature.parameters.values()][1:])
    if isinstance(error, OpError):
        if begins:
            return error
        told = _wrong_kind(name, signature.bind(*args, **keywords))
        if told is None:
            note(error, f"in {name}")
        return told or error
    if begins and error.__traceback__.tb_next is not None:
        return as_op_error(error)
    try:
        told = _wrong_kind(name, bind(name, signature, args, keywords))
    except ArgumentError as wrong_call:
        told = wrong_call
    return as_op_error(error, name) if told is None else told.with_traceback(error.__traceback__)


def bind(name: str, signature: inspect.Signature, args: Sequence[Any], keywords: Mapping[str, Any]
         ) -> inspect.BoundArguments:
    """The arguments of a call by the names of its parameters.

    Raises
    ------
    ArgumentError
        The signature does not take these arguments.

    Examples
    --------
    >>> bind("relu", inspect.signature(lambda input, inplace=False: None), [1], {"inplac": True})
    Traceback (most recent call last):
    opreg.errors.ArgumentError: relu() takes no keyword 'inplac'. Did you mean 'inplace'? Valid: input, inplace.
    """
    try:
        return signature.bind(*args, **keywords)
    except TypeError as error:
        parameters = signature.parameters
        valid = [word for word, each in parameters.items() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
        unknown = [word for word in keywords if word not in parameters]
        positional = [word for word, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
        needed = [word for word, each in parameters.items() if each.default is each.empty and word not in keywords
                  and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) and word not in
                  positional[:len(args)]]
        if unknown and not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
            text = unknown_keyword(name, unknown[0], valid)
        elif needed:
            text = missing_arguments(name, needed, valid)
        elif len(args) > len(positional):
            text = f"{name}(): {other_count(positional, len(args), 'argument')}"
        else:
            text = f"{name}(): {error}"
        raise ArgumentError(text) from None


def wrong_call(error: Exception, name: str, method: Callable[..., Any], args: Sequence[Any],
               keywords: Mapping[str, Any], given: Collection[str] = ()) -> ArgumentError | None:
    """The error for a call whose arguments a user's method does not take; None if an exception that was caught from the
    call has another cause.

    Parameters
    ----------
    given : collection of str
        The parameters that our caller of the method gives itself.

    Examples
    --------
    >>> def construct(x, y): ...
    >>> wrong_call(TypeError(), "Pair.construct", construct, [1], {})
    ArgumentError('Pair.construct() needs y. It takes x, y')
    """
    if not isinstance(error, TypeError) or is_users(error.__traceback__):
        return None
    signature = signature_of(method)
    taken = [parameter for word, parameter in signature.parameters.items() if word not in given]
    try:
        bind(name, signature.replace(parameters=taken), args, keywords)
    except ArgumentError as told:
        return told
    return None


def _wrong_kind(name: str, bound: inspect.BoundArguments) -> ArgumentError | None:
    """An error for the first argument that is none of the values that its annotation allows."""
    for word, value in bound.arguments.items():
        parameter = bound.signature.parameters[word]
        words = expected_words(value, parameter.annotation) if parameter.kind not in (
            parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) and value is not parameter.default else ""
        if words:
            shown = repr(value)
            shown = shown if len(shown) <= 80 else f"{shown[:80]}…"
            told = ArgumentError(f"{name}: {word}={shown}: expected {words}")
            told.__suppress_context__ = True
            return told
    return None
