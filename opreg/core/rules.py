"""Rules: functions that belong to an operator and take the attributes they name, and signatures of dtypes."""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..errors import DTypeError, Where, warn
from .parameters import Parameters, parameters_of
from .spec import Shape, as_dtype, common_dtype, is_floating, is_single_or_double

__all__ = ["SAME_TYPE", "BatchedCall", "Attrs", "AttrsRule", "Dtypes", "Norm", "Rule", "Shapes", "EpilogueOperator",
           "TypeRule", "UnfitDtype", "as_list", "counted", "enter_under", "does_nothing", "warn_of_none"]

F = TypeVar("F", bound=Callable[..., Any])

Shapes = list[Shape | None]
Dtypes = list[np.dtype | None]
Attrs = Mapping[str, Any]


class BatchedCall(NamedTuple):
    """The answer of a vmap rule if the operator itself computes all samples at once.

    Attributes
    ----------
    ins : sequence of values
        The inputs to call the operator with.
    attrs : mapping
        Its attributes.
    """

    ins: Sequence[Any]
    attrs: Attrs


class Norm(NamedTuple):
    """A batch norm in inference: ``(data - mean) / sqrt(variance + eps) * gamma + beta``, where gamma, beta, mean and
    variance have an element for each channel.

    Attributes
    ----------
    axis : int
        The axis of the channels.
    eps : float
        The number added to the variance.
    fix_gamma : bool
        Whether gamma is taken as one.
    """

    axis: int
    eps: float
    fix_gamma: bool


class EpilogueOperator(NamedTuple):
    """An operator that computes another one together with operators after it: a norm, the addition of an array, and
    relu, each of them optional.

    Attributes
    ----------
    op : Op
        Its inputs are those of the other operator, then gamma, beta, mean and variance of the norm, then the array.
    attrs : mapping
        Its attributes, except those that describe the operators after it: ``normalized``, ``added`` and ``relu``, and
        ``eps`` and ``fix_gamma`` of the norm.
    axis : int
        The axis of the channels in the output.
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

    def __init__(self, function: Callable, parameters: Parameters | None = None):
        if parameters is None:
            parameters = parameters_of(function)
        self.function, self.names, self.all = function, parameters.keyword_only, parameters.open

    @staticmethod
    def of(function: Callable) -> Rule:
        """A function as a rule; a rule is returned as it is."""
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
    """A rule that takes the attributes of a call as its first argument: those of a user's operator hold more than
    values by name.

    Examples
    --------
    >>> AttrsRule(lambda attrs, x: (attrs, x))({"axis": 1}, "x")
    ({'axis': 1}, 'x')
    """

    __slots__ = ()

    def __call__(self, attrs: Attrs, *args: Any) -> Any:
        return self.function(attrs, *args)


#: Kinds of dtypes that a signature can require: the words for an error message, and a test of a dtype.
KINDS: dict[str, tuple[str, Callable[[np.dtype], bool]]] = {
    "floating": ("a floating dtype", is_floating),
    "solvable": ("float32 or float64", is_single_or_double),
    "whole": ("integers or bool", lambda dtype: dtype.kind in "iub"),
    "integer": ("integers", lambda dtype: dtype.kind in "iu"),
    "byte": ("quantised data, int8 or uint8", lambda dtype: dtype.kind in "iu" and dtype.itemsize == 1),
}


class UnfitDtype(DTypeError):
    """A dtype of another kind than a signature requires; ``place`` counts inputs, then outputs."""

    def __init__(self, text: str, place: int):
        super().__init__(text)
        self.place = place


class TypeRule:
    """Dtypes of inputs and outputs, written as a signature.

    ``"T,I->T"``: letters are variables, and equal letters stand for equal dtypes; a dtype's name stands for itself;
    ``@dtype`` is the attribute of that name; ``*`` before a token repeats it. Dtypes are inferred both ways, from
    inputs to outputs and back. ``T:floating`` requires a kind of dtype; ``L=T`` gives the dtype of ``L`` if nothing
    else does; ``@dtype=T`` stands for ``T`` where the attribute is None.

    Examples
    --------
    >>> TypeRule("T,I->T")([np.dtype("float16"), None], [None], {})
    ([dtype('float16'), None], [dtype('float16')])
    >>> TypeRule("T:floating,L=T->T")([np.dtype("float16"), None], [None], {})
    ([dtype('float16'), dtype('float16')], [dtype('float16')])
    >>> TypeRule("T->@dtype=T")([np.dtype("float16")], [None], {"dtype": None})
    ([dtype('float16')], [dtype('float16')])
    """

    __slots__ = ("text", "_ins", "_outs", "_kinds", "_defaults", "_attributes")

    def __init__(self, text: str):
        self.text = text
        inputs_text, _, right = text.partition("->")
        self._kinds: dict[str, str] = {}
        self._defaults: dict[str, str] = {}
        self._ins, self._outs = ([self._read(token.strip()) for token in side.split(",") if token.strip()]
                                 for side in (inputs_text, right))
        self._attributes = [token for token in self._defaults if token[0] == "@"]

    def _read(self, token: str) -> str:
        """A token without its kind and its default, which are stored."""
        token, _, default = token.partition("=")
        token, _, kind = token.partition(":")
        if default:
            self._defaults[token.lstrip("*")] = default
        if kind:
            self._kinds[token.lstrip("*")] = kind
        return token

    @staticmethod
    def _spread(tokens: list[str], count: int) -> list[str]:
        result: list[str] = []
        for position, token in enumerate(tokens):
            if token[0] == "*":
                remaining = len(tokens) - position - 1
                result += [token[1:]] * (count - len(result) - remaining)
            else:
                result.append(token)
        if len(result) < count:  # the last token holds for all further inputs
            result += result[-1:] * (count - len(result))
        return result[:count]

    def __call__(self, ins: Dtypes, outs: Dtypes, attrs: Attrs) -> tuple[Dtypes, Dtypes]:
        """The dtypes of inputs and outputs, with all filled in that can be inferred from the others."""
        if self.text == "*T->*T":  # by far the most common signature, and used in every bind
            common = common_dtype(ins + outs)
            return [common] * len(ins), [common] * len(outs)
        tokens = self._spread(self._ins, len(ins)) + self._spread(self._outs, len(outs))
        for token in self._attributes:
            if attrs[token[1:]] is None:
                tokens = [self._defaults[token] if each == token else each for each in tokens]
        dtypes = list(ins) + list(outs)
        bound: dict[str, np.dtype | None] = {}
        for token, dtype in zip(tokens, dtypes):
            if token not in bound:
                bound[token] = self._fixed_rule(token, attrs)
            if token != "?":
                bound[token] = common_dtype((bound[token], dtype))
        for token, default in self._defaults.items():
            if bound.get(token) is None:
                bound[token] = bound.get(default) or self._fixed_rule(default, attrs)
        for token, kind in self._kinds.items():
            (words, holds), dtype = KINDS[kind], bound.get(token)
            if dtype is not None and not holds(dtype):
                raise UnfitDtype(f"expected {words}, got {dtype}", tokens.index(token))
        result = [dtype if token == "?" else bound[token] for token, dtype in zip(tokens, dtypes)]
        return result[:len(ins)], result[len(ins):]

    @staticmethod
    def _fixed_rule(token: str, attrs: Attrs) -> np.dtype | None:
        if token[0] == "@":
            value = attrs[token[1:]]
            return None if value is None else as_dtype(value)
        return as_dtype(token) if len(token) > 1 else None


SAME_TYPE = TypeRule("*T->*T")


def warn_of_none(rule: Callable[..., Any], title: str) -> None:
    """Warn that a rule returned None although it computes something: perhaps its ``return`` was forgotten."""
    code = getattr(rule, "__code__", None)
    if code is not None and not does_nothing(code):
        warn(f"{title} returned None, so zeros are used. If that is intended, return (None,)",
             where=Where((code.co_filename, code.co_firstlineno)))


def enter_under(table: dict[str, Any]) -> Callable[..., Callable[[F], F]]:
    """A decorator, with names as arguments, that enters a function in a table under each of them.

    Examples
    --------
    >>> table = {}
    >>> double = enter_under(table)("twice", "double")(lambda x: 2 * x)
    >>> table["twice"](3)
    6
    """

    def named(*names: str) -> Callable[[F], F]:
        def enter(function: F) -> F:
            table.update(dict.fromkeys(names, function))
            return function

        return enter

    return named


def as_list(values: object) -> list[Any]:
    """One value or several, as a list.

    Examples
    --------
    >>> as_list((1, 2)), as_list(3)
    ([1, 2], [3])
    """
    return list(values) if isinstance(values, (tuple, list)) else [values]


def counted(returned: object) -> str:
    """The number of values that a function returned, as text for an error; the name of its class if it is no list or
    tuple.

    Examples
    --------
    >>> counted((1, 2)), counted({"x": 1})
    ('2 values', 'dict')
    """
    return f"{len(returned)} values" if isinstance(returned, (list, tuple)) else type(returned).__name__


def does_nothing(code: types.CodeType) -> bool:
    """Whether a body is only ``pass``, ``return None`` or a docstring.

    Examples
    --------
    >>> def later(): "To be written."
    >>> does_nothing(later.__code__), does_nothing((lambda: 0).__code__)
    (True, False)
    """
    return _instructions(code) == _NOTHING


def _instructions(code: types.CodeType) -> list[tuple[str, Any]]:
    return [(step.opname, step.argval) for step in dis.get_instructions(code) if step.opname != "NOP"]


#: Instructions of a body that does nothing; each version of Python has its own.
_NOTHING = _instructions((lambda: None).__code__)
