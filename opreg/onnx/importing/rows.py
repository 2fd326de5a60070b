"""The table of translations: for each operator of ONNX and range of opsets, a function over operators of this library.

A row is defined by its signature. Its positional parameters after ``node`` are the inputs, and its keyword-only
parameters are the attributes with their defaults. An input without annotation is a tensor or symbol. An input annotated
``Host`` is a NumPy array that is known before anything is computed. An input annotated ``Given`` is passed unchanged: a
NumPy array, a tensor or symbol, or a sequence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Host", "Given", "Row", "row", "find", "versions", "known_operators"]

#: An input that a row reads on the host.
Host: TypeAlias = Any

#: An input that a row takes unchanged.
Given: TypeAlias = Any

_REQUIRED = inspect.Parameter.empty


class Row(NamedTuple):
    """The translation of an ONNX operator from some opset on."""

    name: str
    since: int
    function: Callable[..., Any]
    inputs: tuple[str, ...]  # "value", "host" or "given" for each positional parameter
    variadic: str | None  # the same for variadic inputs
    attributes: Mapping[str, Any]  # by name, with defaults; ``inspect.Parameter.empty`` if required
    draws: bool  # whether it draws random values, which must not be folded
    states: tuple[int, ...]  # positions of inputs that are states, without gradients
    required: int  # number of required inputs; variadic rows check their own

    def kind(self, place: int) -> str | None:
        """How the input at a position is passed; None if the row has no such input."""
        return self.inputs[place] if place < len(self.inputs) else self.variadic


_ROWS: dict[tuple[str, str], list[Row]] = {}


def row(*names: str, since: int = 1, domain: str = "", draws: bool = False,
        states: tuple[int, ...] = ()) -> Callable[[Callable], Callable]:
    """Registers a function as the row of operators, from an opset on.

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
    for version in versions(domain, name):
        if version.since <= opset:
            return version
    return None


def versions(domain: str, name: str) -> list[Row]:
    """The rows of an operator, the newest first."""
    return _ROWS.get((domain, name), [])


def known_operators(domain: str = "") -> list[str]:
    """The operators of a domain that have rows."""
    return sorted(name for own, name in _ROWS if own == domain)
