"""apply: the highest-ranked value among an operator's inputs decides what applying it means.

Arrays compute now; symbols grow a graph. Nothing else in the project asks which of the two it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from .slots import Slot

if TYPE_CHECKING:
    from .op import Op
    from .rules import Attrs

__all__ = ["apply", "call", "leading", "write", "INVOKE", "REQUESTS"]

#: Requests for a result, by MXNet's integers.
REQUESTS = ("null", "write", "inplace", "add")

#: Calls an operator on arrays and numbers as users write it: ``f(op, args, keywords)``.
INVOKE = Slot("arrays")


def apply(op: Op, values: Sequence[object], attrs: Attrs) -> Any:
    """Apply an operator to values.

    Parameters
    ----------
    op : Op
        The operator.
    values : sequence
        Inputs in order; at least one of them an array or a symbol.
    attrs : mapping
        Attributes, as values or text.

    Raises
    ------
    ArgumentError
        When no input is an array or symbol.
    """
    best = leading(values)
    if best is None:
        kinds = ", ".join(type(value).__name__ for value in values) or "nothing"
        raise ArgumentError(f"operator {op.name}: expected arrays or symbols, got {kinds}"
                            + ("; nd.array(...) makes an array of numbers" if values else ""))
    return best._apply(op, values, attrs)


def call(op: Op, args: Sequence[object], keywords: dict[str, Any]) -> Any:
    """Call an operator with the arguments of its function in ``nd`` or ``sym``; the inputs decide between the two."""
    inside = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else ()
    first = leading((*args, *inside, *keywords.values()))
    if first is None:  # NumPy arrays, or nothing
        return INVOKE.function(op, args, keywords)
    return first._called(op, args, keywords)


def leading(values: Iterable[object]) -> Any:
    """The value that decides how an operator is applied, or None where there is no array and no symbol."""
    best, rank = None, -1
    for value in values:
        other = getattr(value, "_rank", -1)
        if other > rank:
            best, rank = value, other
    return best


def write(dst: Any, req: str, src: object) -> None:
    """Store a result as requested: the one place that knows what a request means.

    Parameters
    ----------
    dst : array or NDArray
        The destination; its shape and dtype stay.
    req : {"null", "write", "inplace", "add"}
        Leave it alone, overwrite it, overwrite it (the result may share memory with an input), or add to it.
    src : array, NDArray or number
        Values to store; broadcast as NumPy assignment broadcasts.

    Raises
    ------
    ArgumentError
        For an unknown request.
    """
    if req == "write" or req == "inplace":
        dst[...] = src
    elif req == "add":
        dst[...] += src
    elif req != "null":
        raise ArgumentError(f"unknown request {req!r}: expected one of {', '.join(REQUESTS)}")
