"""Settings: numbers among the attributes of an operator, left open while an expression is traced.

An expression that is traced with settings in place of floats serves all floats for which the trace takes the same way.
Arithmetic with a setting gives another setting, which is computed from floats at each use, in the same operations as a
trace with floats. A comparison is answered for the numbers of the trace, and the answer is noted.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Answers", "Setting", "filled_settings"]

_Numbers: TypeAlias = Sequence[float]


class Answers:
    """The answers that a trace was given by its settings.

    Parameters
    ----------
    numbers : sequence of float
        The numbers of the trace.

    Attributes
    ----------
    settings : list of Setting
        A setting for each number.
    common : bool
        Whether no setting equalled a number that it was compared with. Numbers that do are not worth a trace that
        others share.

    Examples
    --------
    >>> answers = Answers([0.5])
    >>> scalar, = answers.settings
    >>> power = 1.0 / scalar ** 2 if scalar else 0.0
    >>> power.of([4.0]), answers.hold([4.0]), answers.hold([0.0])
    (0.0625, True, False)
    """

    __slots__ = ("settings", "numbers", "common", "_others", "_noted")

    def __init__(self, numbers: _Numbers):
        self.numbers, self.common = tuple(numbers), True
        self.settings = [Setting(self, operator.itemgetter(i)) for i in range(len(self.numbers))]
        self._others: dict[Setting, set[float]] = {}  # the numbers that a setting differs from
        self._noted: list[tuple[Callable[[_Numbers], bool], bool]] = []

    def hold(self, numbers: _Numbers) -> bool:
        """Whether other numbers give the same answers."""
        for setting, others in self._others.items():
            if setting.of(numbers) in others:
                return False
        for question, answer in self._noted:
            if question(numbers) is not answer:
                return False
        return True

    def equals(self, setting: Setting, number: float) -> bool:
        """Whether a setting equals a number, with the same sign if it is zero; the answer is noted."""
        if setting.of(self.numbers) != number:
            self._others.setdefault(setting, set()).add(number)
            return False
        self.common = False
        return math.copysign(1.0, setting.of(self.numbers)) == math.copysign(1.0, number)

    def note(self, question: Callable[[_Numbers], bool]) -> bool:
        """Answer a question about the numbers, and note the answer."""
        answer = question(self.numbers)
        self._noted.append((question, answer))
        return answer


def _arithmetic(compute: Callable[[Any, Any], float], reflected: bool = False) -> Callable[[Setting, Any], Any]:
    def method(self: Setting, other: Any) -> Any:
        if not isinstance(other, (float, int, Setting)):
            return NotImplemented
        return self.apply(compute, (other, self) if reflected else (self, other))

    return method


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[[Setting, Any], bool]:
    def method(self: Setting, other: Any) -> bool:
        return self.answers.note(lambda numbers: compare(self.of(numbers), _number(other, numbers)))

    return method


def _number(operand: Any, numbers: _Numbers) -> float:
    return operand.of(numbers) if isinstance(operand, Setting) else operand


def filled_settings(constants: Sequence[Any], numbers: _Numbers, dtype: np.dtype | None) -> list[Any]:
    """Constants with numbers in place of settings, as arrays of a dtype unless that is None."""
    return [constant if constant.__class__ is not Setting else
            constant.of(numbers) if dtype is None else np.asarray(constant.of(numbers), dtype)
            for constant in constants]


class Setting:
    """A float that differs between uses of a trace; ``of(numbers)`` computes it. It does not convert to a float, so
    code that needs its value fails while it is traced."""

    __slots__ = ("answers", "of")

    def __init__(self, answers: Answers, of: Callable[[_Numbers], float]):
        self.answers, self.of = answers, of

    def apply(self, function: Callable[..., float], args: Sequence[Any]) -> Setting:
        """A function of settings and floats, as another setting."""
        return Setting(self.answers, lambda numbers: function(*[_number(arg, numbers) for arg in args]))

    __add__, __radd__ = _arithmetic(operator.add), _arithmetic(operator.add, True)
    __sub__, __rsub__ = _arithmetic(operator.sub), _arithmetic(operator.sub, True)
    __mul__, __rmul__ = _arithmetic(operator.mul), _arithmetic(operator.mul, True)
    __truediv__, __rtruediv__ = _arithmetic(operator.truediv), _arithmetic(operator.truediv, True)
    __pow__, __rpow__ = _arithmetic(operator.pow), _arithmetic(operator.pow, True)
    __lt__, __le__ = _comparison(operator.lt), _comparison(operator.le)
    __gt__, __ge__ = _comparison(operator.gt), _comparison(operator.ge)

    def __neg__(self) -> Setting:
        return self.apply(operator.neg, (self,))

    def __eq__(self, other: object) -> bool:
        return self is other or _comparison(operator.eq)(self, other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return not self.answers.equals(self, 0.0) and not self.answers.equals(self, -0.0)
