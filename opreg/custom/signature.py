"""What the signatures of users' functions mean, and what in them cannot be meant."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.attrs import REQUIRED, Field, Schema
from ..errors import ArgumentError, did_you_mean, passing

__all__ = ["Signature", "read", "hints", "check_keywords"]

#: Keyword-only parameters that are given something else than an attribute.
GIVEN = ("is_train", "ctx")
#: What callers of operators say beside inputs and attributes.
_TAKEN = ("name", "attr", "out", "op_type")


class Signature(NamedTuple):
    """What the parameters of a function are to an operator.

    Attributes
    ----------
    inputs, auxiliary : tuple of str
        Names of inputs and of auxiliary states.
    many : str or None
        How the last inputs are called together, where there may be any number.
    schema : Schema
        Attributes.
    """

    inputs: tuple[str, ...]
    many: str | None
    auxiliary: tuple[str, ...]
    schema: Schema


def hints(function: Callable) -> dict[str, Any]:
    """Types of the annotated parameters; an annotation that cannot be evaluated is none."""
    types = {}
    for name, hint in getattr(function, "__annotations__", {}).items():
        try:
            while isinstance(hint, str):
                hint = eval(hint, function.__globals__)
        except Exception as error:
            if passing(error):
                raise
            continue  # it names what only a type checker sees
        types[name] = hint
    return types


def read(function: Any, auxiliary: Sequence[str] = ()) -> Signature:
    """The signature of a function that becomes an operator.

    Raises
    ------
    TypeError
        When it is no function.
    ArgumentError
        When it has what an operator cannot have, saying how to write it.

    Examples
    --------
    >>> def f(x, weight, mean, *, eps: float = 1e-5): ...
    >>> signature = read(f, ["mean"])
    >>> signature.inputs, signature.auxiliary, signature.schema.names
    (('x', 'weight'), ('mean',), ('eps',))
    """
    if inspect.isclass(function) or not callable(function):
        what = f"the class {function.__name__}" if inspect.isclass(function) else repr(function)
        name = f"; a name is a keyword: @define(name={function!r})" if isinstance(function, str) else ""
        raise TypeError(f"define: expected a function, got {what}{name}")
    title = f"define: {getattr(function, '__name__', function)}"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise ArgumentError(f"{title} has no signature that can be read: write a def that calls it") from None
    title += str(signature.replace(return_annotation=signature.empty))
    bodies = [function, getattr(type(function), "__call__", None)]  # noqa: B004 (the body of an object that is called)
    if any(inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body) for body in bodies):
        raise ArgumentError(f"{title} is an async def: an operator computes in the call, write a plain def")
    if any(map(inspect.isgeneratorfunction, bodies)):
        raise ArgumentError(f"{title} yields: an operator returns its outputs, several as a tuple")
    kinds: Any = inspect.Parameter
    inputs: list[str] = []
    fields: list[Field] = []
    many, annotated = None, hints(getattr(function, "func", function))
    for parameter in signature.parameters.values():
        name, kind, default = parameter.name, parameter.kind, parameter.default
        if name in _TAKEN or (name in GIVEN and kind is not kinds.KEYWORD_ONLY):
            raise ArgumentError(f"{title}: a parameter cannot be called {name!r}, which means something else in a call "
                                "of an operator")
        if kind is kinds.VAR_KEYWORD:
            raise ArgumentError(f"{title}: **{name} names no attributes: write each with its type behind *, as in "
                                "(x, *, alpha: float = 1.0)")
        if kind is kinds.VAR_POSITIONAL:
            many = name
        elif kind is kinds.KEYWORD_ONLY:
            if name not in GIVEN:
                fields.append(Field(name, annotated.get(name, Any), REQUIRED if default is kinds.empty else default))
        elif default is not kinds.empty:
            raise ArgumentError(f"{title}: positional parameters are inputs, which have no defaults. If {name} is an "
                                f"attribute put * before it: (…, *, {name}={default!r})")
        else:
            inputs.append(name)
    states = _states(title, inputs, many, auxiliary)
    if many is not None:
        fields.append(Field("num_args", int, REQUIRED))
    return Signature(tuple(inputs[:len(inputs) - len(states)]), many, states, Schema(fields))


def _states(title: str, inputs: Sequence[str], many: str | None, auxiliary: Sequence[str]) -> tuple[str, ...]:
    """The last positional parameters, those that are auxiliary states."""
    if isinstance(auxiliary, str):
        raise ArgumentError(f"{title}: auxiliary={auxiliary!r}: expected a list of names")
    states = tuple(auxiliary)
    for name in states:
        if name not in inputs:
            raise ArgumentError(f"{title}: there is no input {name!r} to be an auxiliary state. "
                                f"{did_you_mean(name, inputs)}")
    if states and (many is not None or tuple(inputs[-len(states):]) != states):
        raise ArgumentError(f"{title}: auxiliary states come last, behind all inputs: "
                            f"{', '.join([name for name in inputs if name not in states] + list(states))}")
    return states


_CHECKED: weakref.WeakSet = weakref.WeakSet()


def check_keywords(method: Callable, names: Sequence[str], title: str) -> None:
    """Refuse a method that cannot be called with these keywords."""
    function = getattr(method, "__func__", method)
    if function in _CHECKED:
        return
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError:
        raise ArgumentError(f"{title} takes {signature}; it is called by keyword, so its parameters must be named "
                            f"{', '.join(names)}") from None
    _CHECKED.add(function)
