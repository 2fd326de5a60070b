"""Optimizer updates compiled with numba: a number is read once and written once, whatever the rule computes of it.

The expression of a rule's formula becomes the text of a function. One call works off all weights that move by one rule;
the rates are numbers that the function reads, so they may change from step to step.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence

import numpy as np

from opreg.core.cache import cached
from opreg.core.rules import Attrs
from opreg.elementwise.expression import Expression
from opreg.typing import Array

from ..addressing import address_of
from .compiler import Function, function_of, idle, mode, over
from .values import FORMATS
from .vector import VECTOR

__all__ = ["move"]

#: A new weight and the arrays of its rule: the weight, its gradient, states.
Update = tuple[Array, Sequence[Array]]

# Numbers that a thread takes at a time.
_STRETCH = 1 << 14


# ------------------------------------------------------------------------------------------------- the text


@cached(64)
def _text(expression: Expression, count: int, apart: bool) -> tuple[str, list[float]] | None:
    """The text of ``kernel(table, first, last)`` for ``count`` arrays, and the constants of the expression itself.

    ``apart`` where the new weight has memory of its own. None where an instruction has no vectorised form. The table
    holds the address of the numbers that are read, constants last; then for each stretch of a weight how many numbers
    it has, and the addresses of its arrays.
    """
    if any(prim.name not in VECTOR for prim, _ in expression.code):
        return None
    constants: list[float] = []

    def word(arg: int | float) -> str:
        if isinstance(arg, int):
            return f"r{arg}"
        constants.append(arg)
        return f"r{-len(constants)}".replace("-", "_")

    inner = [f"r{i} = a{i}[i]" for i in range(count)]
    inner += [f"r{expression.arity + i} = {prim.name}({', '.join(map(word, args))})"
              for i, (prim, args) in enumerate(expression.code)]
    places = (count if apart else 0, *range(2, count))
    inner += [f"a{place}[i] = {word(result)}" for place, result in zip(places, expression.results)]
    numbers = [f"r{i}" for i in range(count, expression.arity)] + [f"r_{i + 1}" for i in range(len(constants))]
    arrays = count + apart
    text = ["def kernel(table, first, last):", "    c = address(table[0])"]
    text += [f"    {number} = c[{i}]" for i, number in enumerate(numbers)]
    text += ["    for unit in range(first, last):", f"        o = 1 + unit * {arrays + 1}"]
    text += [f"        a{i} = address(table[o + {i + 1}])" for i in range(arrays)]
    text += ["        for i in range(table[o]):", *[f"            {line}" for line in inner]]
    return "\n".join([*text, ""]), constants


# --------------------------------------------------------------------------------------------------- moving


class _Table:
    """The table of some weights, and how many stretches it has; its arrays may die before it."""

    __slots__ = ("numbers", "count", "size", "watched")

    def __init__(self, columns: Sequence[Sequence[Array]], forget: Callable[[object], object]):
        rows: list[list[int]] = []
        for arrays in columns:
            size, item = arrays[0].size, arrays[0].itemsize
            addresses = [*map(address_of, arrays)]
            for start in range(0, size, _STRETCH):
                rows.append([min(_STRETCH, size - start), *[address + start * item for address in addresses]])
        self.count, self.size = len(rows), sum(arrays[0].size for arrays in columns)
        self.numbers = np.array([0, *[number for row in rows for number in row]], np.int64)
        self.watched = [weakref.ref(array, forget) for arrays in columns for array in arrays]


# Reading addresses takes as long as moving ten thousand numbers, and programs move the same arrays again and again.
_TABLES: dict[tuple[int, ...], _Table] = {}


def _table(columns: Sequence[Sequence[Array]]) -> _Table | None:
    """The table of arrays, each row those of one weight; None where they are not laid out alike, side by side."""
    key = (len(columns), *[id(array) for arrays in columns for array in arrays])
    table = _TABLES.get(key)
    if table is None:
        for arrays in columns:
            first = arrays[0]
            if not all(array.size == first.size and array.dtype == first.dtype and array.flags.c_contiguous
                       and array.flags.aligned and (array.flags.writeable or i == 1)  # a gradient is only read
                       for i, array in enumerate(arrays)):
                return None
        table = _TABLES[key] = _Table(columns, lambda _: _TABLES.pop(key, None))
    return table


def move(rule: Callable[..., object], updates: Sequence[Update], dtype: np.dtype | None, attrs: Attrs,
         otherwise: Callable[[], None]) -> None:
    """Run a rule for several weights by a compiled function, or ``otherwise`` where there is none, or none yet.

    ``dtype`` is that of the rule's scratch where it is not the weights'.
    """
    compilable = None if idle() or dtype is not None else _compilable(rule, updates, attrs)
    if compilable is None:
        otherwise()
        return
    function, constants, table = compilable
    if mode() == "numba":
        function.compile()
    if function.address is None:
        start = time.perf_counter()
        otherwise()
        function.spent(time.perf_counter() - start)
        return
    numbers, constant = table.numbers.copy(), np.array(constants or [0.0], function.dtype)
    numbers[0] = address_of(constant)
    over(function, numbers, table.count, table.size * function.length, (function, numbers, constant))()


def _compilable(rule: Callable[..., object], updates: Sequence[Update], attrs: Attrs
                ) -> tuple[Function, list[float], _Table] | None:
    """The function of a rule, the constants it reads and the table of these weights; None where there is none."""
    new, arrays = updates[0]
    apart = new is not arrays[0]
    if new.dtype not in FORMATS or any((weight is not parts[0]) is not apart for weight, parts in updates):
        return None
    traced = getattr(rule, "traced", None)
    if traced is None or not all(isinstance(value, (int, float)) for value in attrs.values()):
        return None
    expression, numbers = traced(len(arrays), attrs)
    text = _text(expression, len(arrays), apart)
    if text is None:
        return None
    table = _table([[*parts, weight] if apart else parts for weight, parts in updates])
    if table is None:
        return None
    source, constants = text
    return function_of(source, new.dtype, len(expression.code)), [*numbers, *constants], table
