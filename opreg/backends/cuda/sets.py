"""Row expressions whose sets lie along any axes: as rows if the elements of a set are contiguous, else by steps for
each phase of reductions and one step for the remaining element-wise part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from opreg.core.spec import Shape
from opreg.elementwise.expression import Expression, extracted
from opreg.elementwise.rows import RowExpression, RowLayout
from opreg.typing import Array, ArrayModule

from . import elementwise
from .folds import bound_fold, few_rows, groups_of
from .rows import bound_rows

__all__ = ["bound_sets"]


def bound_sets(expression: Expression, ins: Sequence[Array], roles: Sequence[RowLayout], outs: Sequence[Array | None],
               axes: Sequence[int], xp: ArrayModule, scratch: Callable[[int, Shape, np.dtype], Array]
               ) -> list[Callable[[], None]]:
    """Steps without arguments that compute an expression, whose rows are the elements along some axes.

    Parameters
    ----------
    expression : Expression
        An expression with reductions.
    ins : sequence of arrays
        Contiguous arrays of equal rank; the first has all elements, and the others broadcast to its shape.
    roles : sequence of RowLayout
        Whether an input has a value for each ``ELEMENT``, for each set (``ROW``), for each place in a set
        (``COLUMN``), or values for sets that repeat (``CYCLE``; the elements of a set must be contiguous then).
    outs : sequence of arrays or None
        Arrays of elements in the shape of the first input, or of one value per set.
    axes : sequence of int
        The axes along which the elements of a set lie.
    scratch : function of number, shape and dtype
        Gives memory for intermediate results.
    """
    shape = ins[0].shape
    groups = groups_of(shape, axes)
    rows = RowExpression(expression, roles)
    count = math.prod(n for n, reduced in groups if not reduced)
    if [reduced for _, reduced in groups] in ([False, True], [True]) and not few_rows(xp, count, groups[-1][0]):
        cycle = max([array.size for array, role in zip(ins, roles) if role is RowLayout.CYCLE], default=1)
        return [bound_rows(rows, ins, outs, count, groups[-1][0], xp, cycle)]
    keep = tuple([1 if axis in axes else n for axis, n in enumerate(shape)])
    dtype = np.dtype(np.float64 if any(array.dtype.itemsize == 8 for array in ins) else np.float32)
    known_values = dict(enumerate(zip(ins, roles)))
    steps: list[Callable[[], None]] = []
    for phase in range(1, rows.last_phase + 1):
        registers = _handed_on(rows, phase)
        places: list[Array | None] = [scratch(len(known_values) + i, keep, dtype) for i in range(len(registers))]
        results: list[int | float] = [*registers]
        for result, out in zip(expression.results, outs):
            if out is not None and isinstance(result, int) and rows.phases[result] == phase \
                    and rows.registers[result] is RowLayout.ROW:
                results.append(result)
                places.append(out)
        part, read = extracted(expression, results, list(known_values))
        operands = [known_values[register] for register in read]
        base = 64 * phase
        steps += bound_fold(part, [array for array, _ in operands], [role for _, role in operands], places, groups, xp,
                            lambda i, shape, dtype, base=base: scratch(base + i, shape, dtype))  # type: ignore[misc]
        for register, place in zip(registers, places):
            assert place is not None
            known_values[register] = place, RowLayout.ROW
    elements = [(result, out) for i, (result, out) in enumerate(zip(expression.results, outs))
                if out is not None and rows.results[i] is RowLayout.ELEMENT]
    if elements:
        elements_part, read = extracted(expression, [result for result, _ in elements], list(known_values))
        steps.append(elementwise.bound_to(elements_part, [known_values[register][0] for register in read],
                                          [out for _, out in elements], xp))
    return steps


def _handed_on(rows: RowExpression, phase: int) -> list[int]:
    """The registers with one value per set that are computed in a phase and read by element-wise instructions or by
    later phases."""
    arity, code = rows.expression.arity, rows.expression.code
    registers = set()
    for position, (_, args) in enumerate(code):
        reader = arity + position
        for a in args:
            if isinstance(a, int) and a >= arity and rows.phases[a] == phase and rows.registers[a] is RowLayout.ROW \
                    and (rows.registers[reader] is RowLayout.ELEMENT or rows.phases[reader] > phase):
                registers.add(a)
    return sorted(registers)
