"""Names of a function's parameters, by kind, for declarations and rules.

Importing the built-in operators reads thousands of functions. Their code objects give the names in a twentieth of the
time of ``inspect.signature``, which is used only for callables that are no plain functions.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

if sys.version_info >= (3, 14):
    import annotationlib

__all__ = ["Parameters", "annotations_of", "parameters_of", "signature_of"]


class Parameters(NamedTuple):
    """Names of parameters.

    Attributes
    ----------
    positional, keyword_only : tuple of str
        Names in order.
    variadic, open : bool
        Whether there are ``*args``, and ``**kwargs``.
    defaults : mapping
        Defaults of keyword-only parameters, by name.
    """

    positional: tuple[str, ...]
    variadic: bool
    keyword_only: tuple[str, ...]
    open: bool
    defaults: Mapping[str, Any]


_new = tuple.__new__  # the named tuple's own is Python code


def parameters_of(function: Callable) -> Parameters:
    """The names of a function's parameters.

    Examples
    --------
    >>> def softmax(data, *length, axis, temperature=None, **attrs): ...
    >>> parameters_of(softmax)  # doctest: +NORMALIZE_WHITESPACE
    Parameters(positional=('data',), variadic=True, keyword_only=('axis', 'temperature'), open=True,
               defaults={'temperature': None})
    """
    if function.__class__ is types.FunctionType and not hasattr(function, "__wrapped__") and not hasattr(
            function, "__signature__"):
        code = function.__code__
        count = code.co_argcount
        names, flags = code.co_varnames, code.co_flags
        return _new(Parameters, (names[:count], flags & inspect.CO_VARARGS != 0,
                                 names[count:count + code.co_kwonlyargcount], flags & inspect.CO_VARKEYWORDS != 0,
                                 function.__kwdefaults__ or {}))
    parameters = signature_of(function).parameters.values()
    kinds = {parameter.kind for parameter in parameters}
    return Parameters(
        tuple([p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]),
        inspect.Parameter.VAR_POSITIONAL in kinds,
        tuple([p.name for p in parameters if p.kind is p.KEYWORD_ONLY]),
        inspect.Parameter.VAR_KEYWORD in kinds,
        {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is not p.empty})


def signature_of(function: Callable) -> inspect.Signature:
    """The signature of a function that a user wrote. Its annotations are not evaluated: since Python 3.14 an annotation
    is code that runs when it is read, and may name what only type checkers import.

    Raises
    ------
    TypeError, ValueError
        Where Python knows no signature.

    Examples
    --------
    >>> def scale(x: "Array", factor=2.0): ...
    >>> list(signature_of(scale).parameters)
    ['x', 'factor']
    """
    if sys.version_info >= (3, 14):
        return inspect.signature(function, annotation_format=annotationlib.Format.STRING)
    return inspect.signature(function)


def annotations_of(owner: Any) -> dict[str, Any]:
    """The annotations of a function or class; all of them as text where one cannot be evaluated.

    Examples
    --------
    >>> def scale(x: "Array", factor: float = 2.0): ...
    >>> list(annotations_of(scale))
    ['x', 'factor']
    """
    try:
        found: dict[str, Any] | None = getattr(owner, "__annotations__", None)
        return {} if found is None else found
    except Exception:
        if sys.version_info >= (3, 14):
            return annotationlib.get_annotations(owner, format=annotationlib.Format.STRING)
        raise
