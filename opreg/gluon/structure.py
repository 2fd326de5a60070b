"""Nested arguments and results of blocks as flat lists, with a format that describes the nesting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol

from ..cells.traced_tensor import TracedTensor
from ..core.mode import MODE
from .errors import BlockError

__all__ = ["ARRAYS", "Format", "gluon_value", "flatten", "symbols_and_contexts", "regroup", "same"]

#: Arrays, and their place holders in the trace of a compiled function.
ARRAYS = (NDArray, TracedTensor)
#: The format of a nesting: 0 stands for a value, -1 for None, a larger number for a symbol with that many outputs.
Format: TypeAlias = "int | list[Format]"


def flatten(value: Any, what: str) -> tuple[list[Any], Format]:
    """The values of a nesting, and its format.

    Raises
    ------
    BlockError
        When a value is no array, symbol, None, or list of these.

    Examples
    --------
    >>> from opreg import nd
    >>> flatten([nd.zeros((1,)), [None]], "input")[1]
    [0, [-1]]
    """
    if isinstance(value, ARRAYS):
        return [value], 0
    if isinstance(value, Symbol):
        count = len(value._entries)
        return [value], count if count > 1 else 0
    if value is None:
        return [None], -1
    if not isinstance(value, (list, tuple)):
        raise BlockError(f"When hybridized, the {what} of HybridBlock must be (nested) list of Symbol or NDArray, but "
                         f"got {value} of type {type(value)}")
    flat: list[Any] = []
    formats: list[Format] = []
    for part in value:
        if isinstance(part, ARRAYS):
            flat.append(part)
            formats.append(0)
            continue
        values, inner = flatten(part, what)
        flat += values
        formats.append(inner)
    return flat, formats


def regroup(flat: Sequence[Any], form: Format) -> Any:
    """Values nested by a format.

    Examples
    --------
    >>> regroup(["a", "b", "c"], [0, [0, 0]])
    ['a', ['b', 'c']]
    """
    if form == 0:  # the usual case
        return flat[0]
    remaining = list(flat)

    def take(form: Format) -> Any:
        if isinstance(form, list):
            return [take(part) for part in form]
        if form > 0:
            some = remaining[:form]
            del remaining[:form]
            return some
        return remaining.pop(0)

    return take(form)


def same(form: Format, traced: Format) -> bool:
    """Whether arguments have the nesting of the traced ones; None at the end may be left out."""
    if form == traced or not isinstance(form, list) or not isinstance(traced, list):
        return form == traced
    common = min(len(form), len(traced))
    return form[:common] == traced[:common] and all(form == -1 for form in (*form[common:], *traced[common:]))


def symbols_and_contexts(value: Any) -> tuple[bool, list[Context]]:
    """Whether a nesting contains symbols, and the contexts of its arrays, in order."""
    if isinstance(value, ARRAYS):
        return False, [value._ctx]
    if isinstance(value, Symbol):
        return True, []
    contexts: list[Context] = []
    symbols = False
    for part in value if isinstance(value, (list, tuple)) else ():
        if isinstance(part, ARRAYS):
            contexts.append(part._ctx)
        else:
            inner, more = symbols_and_contexts(part)
            symbols, contexts = symbols or inner, contexts + more
    return symbols, contexts


def gluon_value(value: Any) -> Any:
    """An array or symbol of Gluon: one of ``np`` if ``set_np`` is on."""
    return value.as_np_ndarray() if MODE.np_array else value
