"""The table of translations: a row for each operator of ONNX and range of opsets, a function over operators of ours.

A row's signature is the single source. Its positional parameters behind ``node`` are the inputs, keyword-only ones the
attributes with their defaults. An input without annotation arrives as what operators of ours take, a tensor or a
symbol; one that is annotated ``Host`` as a NumPy array, of numbers that are known before anything is computed; one that
is annotated ``Given`` as it comes: an array of NumPy's, a tensor or symbol, or a sequence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Host", "Given", "Row", "row", "find", "versions", "known_operators"]

#: An input whose numbers a row reads.
Host: TypeAlias = Any

#: An input that a row takes as it comes.
Given: TypeAlias = Any

_REQUIRED = inspect.Parameter.empty


class Row(NamedTuple):
    """How an operator of ONNX is computed from some opset on."""

    name: str
    since: int
    function: Callable[..., Any]
    inputs: tuple[str, ...]  # for each positional parameter "value", "host" or "given"
    variadic: str | None  # the same for those behind them
    attributes: Mapping[str, Any]  # with their defaults; ``inspect.Parameter.empty`` where one is required
    draws: bool  # whether it draws random numbers, which no folding may fix
    states: tuple[int, ...]  # places of inputs that training does not move by gradients
    required: int  # how many of the first inputs have to be there; of variadic ones each row knows by itself

    def kind(self, place: int) -> str | None:
        """How the input at a place arrives; None where the row takes none there."""
        return self.inputs[place] if place < len(self.inputs) else self.variadic


_ROWS: dict[tuple[str, str], list[Row]] = {}


def row(*names: str, since: int = 1, domain: str = "", draws: bool = False,
        states: tuple[int, ...] = ()) -> Callable[[Callable], Callable]:
    """Enter a function as the row of operators, from an opset on.

    Examples
    --------
    >>> find("", "Relu", 13).attributes, find("", "Gemm", 13).attributes["alpha"]
    ({}, 1.0)
    """

    def enter(function: Callable) -> Callable:
        inputs, variadic, attributes, required = [], None, {}, 0
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            kind = {"Host": "host", "Given": "given"}.get(str(parameter.annotation), "value")
            if parameter.kind is parameter.KEYWORD_ONLY:
                attributes[parameter.name] = parameter.default
            elif parameter.kind is parameter.VAR_POSITIONAL:
                variadic, required = kind, 0
            else:
                inputs.append(kind)
                required += parameter.default is _REQUIRED
        for name in names:
            _ROWS.setdefault((domain, name), []).append(
                Row(name, since, function, tuple(inputs), variadic, attributes, draws, states, required))
            _ROWS[domain, name].sort(key=lambda each: -each.since)
        return function

    return enter


def find(domain: str, name: str, opset: int) -> Row | None:
    """The row of an operator for an opset, or None."""
    for each in versions(domain, name):
        if each.since <= opset:
            return each
    return None


def versions(domain: str, name: str) -> list[Row]:
    """The rows of an operator, the newest first."""
    return _ROWS.get((domain, name), [])


def known_operators(domain: str = "") -> list[str]:
    """The operators of a domain that have rows."""
    return sorted(name for own, name in _ROWS if own == domain)
