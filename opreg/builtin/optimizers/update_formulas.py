"""Formulas of optimizer updates, shared by MXNet's operators and optimizers and MindSpore's Cells.

They are arithmetic on terms (from which kernels are traced), arrays, or tensors in a plan. Each formula tells where the
two frameworks differ.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ...core.keys import cached_by_value
from ...core.parameters import parameters_of
from ...core.registry import ops
from ...core.rules import Attrs
from ...core.spec import Shape
from ...elementwise import expression
from ...elementwise.expression import Expression, Term, compiled, sort_terms
from ...elementwise.tiling import Schedule, scheduled
from ...typing import Array, ArrayModule

__all__ = ["Formula", "Rates", "adadelta_step", "adam_step", "average", "clipped", "correction", "has_negative_zero",
           "largest", "leader_step", "rms_step", "trust_ratio"]


class Number(Protocol):
    """Type of values in formulas: scalars, terms, arrays, symbols, tensors."""

    def __add__(self, other: Any, /) -> Any: ...

    def __sub__(self, other: Any, /) -> Any: ...

    def __rsub__(self, other: Any, /) -> Any: ...

    def __mul__(self, other: Any, /) -> Any: ...

    def __truediv__(self, other: Any, /) -> Any: ...

    def __pow__(self, other: Any, /) -> Any: ...


N = TypeVar("N", bound=Number)


# ------------------------------------------------------------------------------------------------- shared steps


def average(state: Number, value: Number, decay: Number, weight: Number | None = None) -> Any:
    """A moving average with a new value, whose weight is by default ``1 - decay``."""
    return state * decay + value * (1.0 - decay if weight is None else weight)


def correction(decay: Number, time: Number) -> Any:
    """Factor that corrects the bias of a moving average that started at zero."""
    return 1.0 / (1.0 - decay ** time)


def adam_step(mean: Number, var: Number, epsilon: Number) -> Any:
    """The direction of Adam and its variants, from averages of the gradient and its square."""
    return mean / (_sqrt(var) + epsilon)


def rms_step(g: Number, square: Number, epsilon: Any = 0.0, mean: Number | None = None) -> Any:
    """The direction of RMSProp and AdaGrad: the gradient divided by its root mean square, or by its standard
    deviation."""
    spread = square if mean is None else square - mean * mean
    return g / _sqrt(spread + epsilon if epsilon else spread)


def adadelta_step(g: Number, squares: Number, steps: Number, epsilon: Number) -> Any:
    """The step of AdaDelta: the gradient times the ratio of root mean squares of steps and gradients."""
    return _sqrt(steps + epsilon) / _sqrt(squares + epsilon) * g


def largest(state: N, g: N, decay: Number) -> N:
    """The decaying maximum of absolute gradients, which AdaMax uses in place of Adam's root."""
    return ops.broadcast_maximum(state * decay, ops.abs(g))


def leader_step(weight: Number, g: Number, linear: Number, before: Number, after: Number, lr: Number, bound: float,
                decay: Number, beta: Number | None = None) -> tuple[Any, Any]:
    """The weight by follow-the-regularised-leader, and its linear term, after one more gradient.

    ``before`` and ``after`` are powers of the sum of squared gradients without and with this one; the weight is zero
    where the linear term is within ``bound``.
    """
    linear = linear + g - (after - before) * weight / lr
    return (clipped(linear, bound) - linear) / ((after if beta is None else after + beta) / lr + decay), linear


def trust_ratio(weight: N, step: N, one: N, where: Callable[[Any, N, N], N]) -> N:
    """The norm of a weight divided by that of its step, one if either is zero: the factor by which LAMB scales the
    step."""
    usable = (weight != 0) & (step != 0)
    return where(usable, weight, one) / where(usable, step, one)


def clipped(g: Any, bound: float) -> Any:
    """A gradient clipped to a bound; a negative bound means no clipping."""
    if bound < 0:
        return g
    if isinstance(g, Term):
        return expression.minimum(expression.maximum(g, -bound), bound)
    return ops.clip(g, a_min=-bound, a_max=bound)


def _sqrt(x: Number) -> Any:
    return expression.sqrt(x) if isinstance(x, Term) else ops.sqrt(x)


# --------------------------------------------------------------------------------------------- traced for arrays


class _Rate:
    """Stands for an attribute, or for a value that a formula computes from attributes: positive, and known in each
    run."""

    __slots__ = ("of",)

    def __init__(self, of: Callable[[Attrs], Any]):
        self.of = of

    def __neg__(self) -> _Rate:
        return _Rate(lambda attrs: -self.of(attrs))

    def __gt__(self, other: object) -> bool:
        return True

    def __lt__(self, other: object) -> bool:
        return False

    __ge__, __le__ = __gt__, __lt__


def _arithmetic(function: Callable, reflected: bool) -> Callable:
    def method(self: _Rate, other: Any) -> Any:
        if isinstance(other, Term):
            return NotImplemented
        get = other.of if isinstance(other, _Rate) else lambda attrs: other
        if reflected:
            return _Rate(lambda attrs: function(get(attrs), self.of(attrs)))
        return _Rate(lambda attrs: function(self.of(attrs), get(attrs)))

    return method


for _name in ("add", "sub", "mul", "truediv", "pow"):
    setattr(_Rate, f"__{_name}__", _arithmetic(getattr(operator, _name), False))
    setattr(_Rate, f"__r{_name}__", _arithmetic(getattr(operator, _name), True))


_PLAIN = frozenset({float, int, bool})


def has_negative_zero(attrs: Attrs) -> bool:
    """Whether an attribute is -0.0, which compares equal to 0.0."""
    for value in attrs.values():
        if value.__class__ is float and not value and math.copysign(1.0, value) < 0:
            return True
    return False


def _element_views(table: Array) -> list[Array]:
    """Each element of a table as a view of one element."""
    return [table[i, ...] for i in range(len(table))]


class Rates:
    """The attributes of weights that one rule with a formula updates repeatedly.

    Attributes
    ----------
    attrs : dict
        Current attributes; their readers see changes.
    expression : Expression
        The expression of the formula for the current attributes.
    numbers : list of float
        Scalar inputs of the expression.

    Parameters
    ----------
    traced : function
        A function of the number of a weight's arrays and the attributes that returns the expression and its scalar
        inputs.
    count : int
        Number of arrays.
    """

    def __init__(self, traced: Callable[[int, Attrs], tuple[Expression, list[Any]]], count: int, attrs: Attrs):
        self._traced, self._count, self.attrs = traced, count, dict(attrs)
        self.expression, self.numbers = traced(count, attrs)
        self._negative = has_negative_zero(attrs)
        self._kept: list[Callable[[list[Any]], object]] = []
        self._tables: dict[np.dtype, Array] = {}

    def keep(self, function: Callable[[list[Any]], object]) -> None:
        """Call a function with the scalar inputs now and after each change, to copy them to where they are read."""
        self._kept.append(function)
        function(self.numbers)

    def table(self, dtype: np.dtype) -> Array:
        """The scalar inputs in an array on the host, which is updated with them."""
        if dtype not in self._tables:
            self._tables[dtype] = np.empty(len(self.numbers), dtype)
            self.keep(functools.partial(self._tables[dtype].__setitem__, Ellipsis))
        return self._tables[dtype]

    def change(self, attrs: Attrs) -> bool:
        """Set other attributes, if only scalar inputs change; return whether that is so."""
        negative = has_negative_zero(attrs)
        if attrs != self.attrs or negative or self._negative:
            expression, numbers = self._traced(self._count, attrs)
            if expression is not self.expression:
                return False
            self.attrs.update(attrs)
            self._negative = negative
            self.numbers = numbers
            for function in self._kept:
                function(numbers)
        return True


class Formula:
    """An update by a formula ``f(weight, grad, *states, **attrs)`` of terms that returns the new weight and states.

    It is a rule in the sense of ``updating``. It is traced once for each combination of attributes that affect the
    expression; rates are read in each run.

    Examples
    --------
    >>> import numpy as np
    >>> momentum = Formula(lambda weight, grad, mom, *, lr: (weight - mom - grad * lr, mom + grad * lr))
    >>> weight, mom = np.ones(2), np.zeros(2)
    >>> momentum(np, lambda number: np.empty(2), weight, weight, np.ones(2), mom, lr=0.5)
    >>> weight, mom
    (array([0.5, 0.5]), array([0.5, 0.5]))
    """

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)
        parameters = parameters_of(function)
        self.function, self.names, self.defaults = function, parameters.keyword_only, parameters.defaults
        self._traced = cached_by_value(64)(self._trace)
        self._last: tuple[Any, ...] = (None,) * 6  # attributes, array module, dtype, and the result of ``_schedule``

    def __call__(self, xp: ArrayModule, tmp: Callable[[int], Array], new: Array, *arrays: Array, **attrs: Any) -> None:
        last_attrs, module, dtype, schedule, numbers, last = self._last
        # Otherwise some attributes are arrays, as preloaded rates are, or equal but not identical to others.
        plain = _PLAIN.issuperset(map(type, attrs.values())) and not has_negative_zero(attrs)
        if not plain or module is not xp or dtype is not new.dtype or last_attrs != attrs:
            schedule, numbers, last = self._schedule(xp, len(arrays), new.dtype, attrs)
            if plain and xp is np:  # an array of one element costs a ufunc half as much as a Python number
                numbers = _element_views(np.array(numbers, new.dtype))
            if plain:
                self._last = attrs, xp, new.dtype, schedule, numbers, last
        schedule.run([*arrays, *numbers, new, *arrays[2:last]], tmp)

    def traced(self, count: int, attrs: Attrs) -> tuple[Expression, list[Any]]:
        """The expression for ``count`` arrays, and its scalar inputs."""
        # Some values determine the structure of a formula, as a zero decay does.
        settings = {**self.defaults, **attrs}
        fixed = tuple([value if isinstance(value, (int, float)) and (value <= 0 or value == 1) else None
                       for value in map(settings.__getitem__, self.names)])
        expression, numbers = self._traced(count, fixed)
        return expression, [number(settings) for number in numbers]

    def bound(self, rates: Rates, new: Array, arrays: Sequence[Array], scratch: Callable[[int, Shape, np.dtype], Array]
              ) -> list[Callable[[], object]]:
        """Functions without arguments that run the update in memory of the host, with the current ``rates``.

        They are valid as long as the expression is the same.
        """
        schedule, _, last = self._schedule(np, len(arrays), new.dtype, rates.attrs)
        numbers = _element_views(rates.table(new.dtype))
        return schedule.bind([*arrays, *numbers, new, *arrays[2:last]], new.shape, scratch, 0)

    def _schedule(self, xp: ArrayModule, count: int, dtype: np.dtype, attrs: Attrs
                ) -> tuple[Schedule, list[Any], int]:
        """The formula's schedule and scalar inputs, and the number of arrays up to the last one it writes."""
        expression, numbers = self.traced(count, attrs)
        places = (0, *range(2, 1 + len(expression.results)))  # weight and states, which are overwritten
        schedule = scheduled(expression, xp, (dtype,) * expression.arity, (dtype,) * len(places),
                             tuple([(i,) for i in places]), False)
        return schedule, numbers, 1 + len(places)

    def _trace(self, count: int, fixed: tuple) -> tuple[Expression, list[Callable]]:
        inputs = [Term(None, (i,)) for i in range(count)]
        attrs = {name: _Rate(operator.itemgetter(name)) if value is None else value
                 for name, value in zip(self.names, fixed)}
        results = self.function(*inputs, **attrs)
        if not isinstance(results, tuple):
            results = (results,)
        numbers: dict[int, tuple[_Rate, Term]] = {}

        def term(value: Any) -> Any:
            if not isinstance(value, _Rate):
                return value
            return numbers.setdefault(id(value), (value, Term(None, ())))[1]

        for step in sort_terms(*results):
            step.args = tuple([term(arg) for arg in step.args])
        return (compiled([*inputs, *[slot for _, slot in numbers.values()]], *results),
                [number.of for number, _ in numbers.values()])
