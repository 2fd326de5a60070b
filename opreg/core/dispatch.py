"""Application of operators: the input of the highest rank determines the way.

Operators on arrays are computed eagerly, and operators on symbols add nodes to a graph. This is the only place where
the two cases are distinguished.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import ArgumentError, did_you_mean
from .slots import Slot

if TYPE_CHECKING:
    from .rules import Attrs

__all__ = ["apply", "call", "leading_input", "write", "INVOKE", "REQUESTS"]

#: Requests for a result; the index is MXNet's code.
REQUESTS = ("null", "write", "inplace", "add")

#: Calls an operator on arrays with the arguments of a user's call: ``f(op, args, keywords)``.
INVOKE = Slot("arrays")


class Named(Protocol):
    """An operator: its name stands in errors."""

    name: str


def apply(op: Named, values: Sequence[object], attrs: Attrs) -> Any:
    """Apply an operator to values.

    Parameters
    ----------
    op : Op
        The operator.
    values : sequence
        Inputs in order; at least one is an array or a symbol.
    attrs : mapping
        Attributes, as values or text.

    Raises
    ------
    ArgumentError
        If no input is an array or symbol.
    """
    best = leading_input(values)
    if best is None:
        kinds = ", ".join(type(value).__name__ for value in values) or "nothing"
        raise ArgumentError(f"operator {op.name}: expected arrays or symbols, got {kinds}"
                            + ("; nd.array(...) makes an array of numbers" if values else ""))
    return best._apply(op, values, attrs)


def call(op: Named, args: Sequence[object], keywords: dict[str, Any]) -> Any:
    """Call an operator with the arguments of its function in ``nd`` or ``sym``; the types of the inputs determine
    which."""
    inside = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else ()
    first = leading_input((*args, *inside, *keywords.values()))
    if first is None:  # NumPy arrays, or nothing
        return INVOKE.function(op, args, keywords)
    return first._invoke(op, args, keywords)


def leading_input(values: Iterable[object]) -> Any:
    """The input of the highest rank; None if there is no array and no symbol."""
    best, rank = None, -1
    for value in values:
        candidate_rank = getattr(value, "_rank", -1)
        if candidate_rank > rank:
            best, rank = value, candidate_rank
    return best


def write(dst: Any, req: str, src: object) -> None:
    """Store a result as requested.

    Parameters
    ----------
    dst : array or NDArray
        The destination, whose shape and dtype do not change.
    req : {"null", "write", "inplace", "add"}
        Whether to leave it, overwrite it, overwrite it although the result may share memory with an input, or add to
        it.
    src : array, NDArray or number
        The values, which broadcast as in NumPy's assignments.

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
        raise ArgumentError(f"unknown request {req!r}. {did_you_mean(req, REQUESTS)}")
