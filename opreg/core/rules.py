"""Rules: functions of users and of built-in operators that name the attributes they read, and signatures of dtypes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .parameters import parameters_of
from .spec import Shape, as_dtype, common_dtype

__all__ = ["SAME_TYPE", "Again", "Attrs", "AttrsRule", "Dtypes", "Norm", "Rule", "Shapes", "Tail", "TypeRule"]

Shapes = list[Shape | None]
Dtypes = list[np.dtype | None]
Attrs = Mapping[str, Any]


class Again(NamedTuple):
    """The answer of a vmap rule where the operator itself computes all samples at once.

    Attributes
    ----------
    ins : sequence of values
        Its inputs.
    attrs : mapping
        Its attributes.
    """

    ins: Sequence[Any]
    attrs: Attrs


class Norm(NamedTuple):
    """What a norm of data, gamma, beta, mean and variance does in inference: ``(data - mean) / sqrt(variance + eps) *
    gamma + beta``, a number of each of the latter for each channel.

    Attributes
    ----------
    axis : int
        That of the channels.
    eps : float
        What is added to the variance.
    fix_gamma : bool
        Whether gamma counts as one.
    """

    axis: int
    eps: float
    fix_gamma: bool


class Tail(NamedTuple):
    """Who computes an operator together with its tail: a norm, the addition of an array, relu, each if it is there.

    Attributes
    ----------
    op : Op
        It is given the inputs, then gamma, beta, mean and variance of the norm, then the array.
    attrs : mapping
        Its attributes, beside those that say what the tail is: ``normalized``, ``added`` and ``relu``, and of the norm
        ``eps`` and ``fix_gamma``.
    axis : int
        That of the channels of the output.
    """

    op: Any
    attrs: Attrs
    axis: int


class Rule:
    """A function together with the names of the attributes it reads.

    Examples
    --------
    >>> Rule(lambda x, *, axis: (x, axis))({"axis": 1, "keepdims": True}, "x")
    ('x', 1)
    """

    __slots__ = ("function", "names", "all")

    def __init__(self, function: Callable):
        parameters = parameters_of(function)
        self.function, self.names, self.all = function, parameters.keyword_only, parameters.open

    @staticmethod
    def of(function: Callable) -> Rule:
        """A function as a rule, which it may be already."""
        return function if isinstance(function, Rule) else Rule(function)

    def select(self, attrs: Attrs) -> dict[str, Any]:
        """The attributes this rule reads."""
        if not self.names and not self.all:
            return {}
        if self.all:
            return dict(attrs)
        return {name: attrs[name] for name in self.names if name in attrs}

    def __call__(self, attrs: Attrs, *args: Any) -> Any:
        return self.function(*args, **self.select(attrs))


class AttrsRule(Rule):
    """A rule that is given the attributes of a use as they are, before all else: those of a user's operator know more
    than their names say.

    Examples
    --------
    >>> AttrsRule(lambda attrs, x: (attrs, x))({"axis": 1}, "x")
    ({'axis': 1}, 'x')
    """

    __slots__ = ()

    def __call__(self, attrs: Attrs, *args: Any) -> Any:
        return self.function(attrs, *args)


class TypeRule:
    """Dtypes of inputs and outputs, written as a signature.

    ``"T,I->T"``: letters are variables, equal letters are equal dtypes; a dtype's name stands for itself;
    ``@dtype`` is the attribute of that name; ``*`` before a token repeats it. Whatever side is known decides the
    other.

    Examples
    --------
    >>> TypeRule("T,I->T")([np.dtype("float16"), None], [None], {})
    ([dtype('float16'), None], [dtype('float16')])
    """

    __slots__ = ("text", "_ins", "_outs")

    def __init__(self, text: str):
        self.text = text
        left, _, right = text.partition("->")
        self._ins = [token.strip() for token in left.split(",") if token.strip()]
        self._outs = [token.strip() for token in right.split(",") if token.strip()]

    @staticmethod
    def _spread(tokens: list[str], count: int) -> list[str]:
        result: list[str] = []
        for position, token in enumerate(tokens):
            if token[0] == "*":
                rest = len(tokens) - position - 1
                result += [token[1:]] * (count - len(result) - rest)
            else:
                result.append(token)
        if len(result) < count:  # more than declared: they are like the last
            result += result[-1:] * (count - len(result))
        return result[:count]

    def __call__(self, ins: Dtypes, outs: Dtypes, attrs: Attrs) -> tuple[Dtypes, Dtypes]:
        """Inputs' and outputs' dtypes with everything filled in that follows from the rest."""
        if self.text == "*T->*T":  # by far the most common, and on the path of every bind
            one = common_dtype(ins + outs)
            return [one] * len(ins), [one] * len(outs)
        tokens = self._spread(self._ins, len(ins)) + self._spread(self._outs, len(outs))
        dtypes = list(ins) + list(outs)
        bound: dict[str, np.dtype | None] = {}
        for token, dtype in zip(tokens, dtypes):
            if token not in bound:
                bound[token] = self._fixed(token, attrs)
            if token != "?":
                bound[token] = common_dtype((bound[token], dtype))
        result = [dtype if token == "?" else bound[token] for token, dtype in zip(tokens, dtypes)]
        return result[:len(ins)], result[len(ins):]

    @staticmethod
    def _fixed(token: str, attrs: Attrs) -> np.dtype | None:
        if token[0] == "@":
            value = attrs[token[1:]]
            return None if value is None else as_dtype(value)
        return as_dtype(token) if len(token) > 1 else None


SAME_TYPE = TypeRule("*T->*T")
