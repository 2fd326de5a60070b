"""Optimizer updates compiled with numba: each element is read once and written once, whatever the rule is.

The text of a function is generated from the expression of the rule's formula. One call updates all weights of one rule.
The function reads the rates from memory, so they may change from step to step.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from opreg.builtin.optimizers.update_formulas import Rates
from opreg.builtin.optimizers.updating import GroupUpdater, Update, group_updaters
from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.rules import Attrs
from opreg.elementwise.expression import Expression
from opreg.typing import ArrayModule

from ...weights import Columns, Tables, alike, formula_of, rows_of
from ..compiler import Function, function_of, idle_reason, mode, steps, table_runner
from ..values import FORMATS
from ..vector import VECTOR

# The number of elements that a thread updates at a time.
_STRETCH = 1 << 14


# ------------------------------------------------------------------------------------------------- the text


@cached(64)
def _text(expression: Expression, count: int, apart: bool) -> tuple[str, list[float]] | None:
    """The text of ``kernel(table, first, last)`` for ``count`` arrays, and the constants of the expression; None if an
    instruction has no vectorised form.

    With ``apart`` the new weight is written to separate memory. The table holds the address of the rates that the
    expression reads, constants last; then for each part of a weight its number of elements and the addresses of its
    arrays.
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


class _Table(NamedTuple):
    """A table with a row for each part of some weights, the number of rows, and the number of elements in all."""

    numbers: np.ndarray
    rows: int
    size: int


def _table(columns: Columns) -> _Table | None:
    """The table for the arrays of some weights; None unless they are alike and contiguous, and can be written."""
    if not alike(columns) or not all(array.flags.aligned and (array.flags.writeable or i == 1)  # gradients are read
                                     for arrays in columns for i, array in enumerate(arrays)):
        return None
    rows = rows_of(columns, _STRETCH)
    return _Table(np.array([0, *itertools.chain(*rows)], np.int64), len(rows), sum(row[0] for row in rows))


_TABLES: Tables[_Table] = Tables()


def move(xp: ArrayModule, rule: Callable[..., object], updates: Sequence[Update], dtype: np.dtype | None,
         attrs: Attrs, otherwise: Callable[[], None]) -> None:
    """Run a rule for several weights by a compiled function, or call ``otherwise`` while there is none.

    ``dtype`` is the dtype of the rule's scratch, if it differs from the weights'.
    """
    compilable = None if idle_reason() or dtype is not None else _compilable(rule, updates, attrs)
    if compilable is None:
        otherwise()
        return
    function, constants, table = compilable
    if mode() == "numba":
        function.compile()
    if function.address is None:
        start = time.perf_counter()
        otherwise()
        function.add_numpy_time(time.perf_counter() - start)
        return
    numbers, constant = table.numbers.copy(), np.array(constants or [0.0], function.dtype)
    numbers[0] = address_of(constant)
    table_runner(function, numbers, table.rows, table.size * function.length, (function, numbers, constant))()


def bind(xp: ArrayModule, rule: Callable[..., object], updates: Sequence[Update], rates: Rates,
         otherwise: Callable[[], list[Callable[[], object]]]) -> list[Callable[[], object]] | str:
    """Steps that can be repeated to update weights, those of ``otherwise`` until the function is compiled; or the
    reason why there are none."""
    reason = idle_reason()
    if reason is not None:
        return reason
    compilable = _compilable(rule, updates, rates.attrs)
    if compilable is None:
        return "instructions, dtypes or layouts that are not compiled"
    function, numbers, table = compilable
    constants = numbers[len(rates.numbers):]

    def make() -> Callable[[], object]:
        rows, read = table.numbers.copy(), np.array([*rates.numbers, *constants, 0.0], function.dtype)
        rows[0] = address_of(read)
        rates.keep(functools.partial(read.__setitem__, slice(len(rates.numbers))))
        return table_runner(function, rows, table.rows, table.size * function.length, (function, rows, read, updates))

    return steps(function, make, otherwise)


def _compilable(rule: Callable[..., object], updates: Sequence[Update], attrs: Attrs
                ) -> tuple[Function, list[float], _Table] | None:
    """The compiled function of a rule, the rates that it reads, and the table of these weights; None if the rule cannot
    be compiled."""
    dtype = updates[0][0].dtype
    formula = formula_of(rule, updates, attrs) if dtype in FORMATS else None
    if formula is None:
        return None
    text = _text(formula.expression, len(updates[0][1]), formula.apart)
    table = None if text is None else _TABLES.of(formula.columns, _table)
    if text is None or table is None:
        return None
    source, constants = text
    return function_of(source, dtype, len(formula.expression.code)), [*formula.numbers, *constants], table


group_updaters.append(GroupUpdater("numba", lambda xp: xp is np, move, bind))
