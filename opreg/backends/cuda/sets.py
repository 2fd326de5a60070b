"""Row expressions whose sets lie along any axes: as rows if the elements of a set are contiguous, else by steps for
each phase of reductions, steps for the sums over sets, and one step for the remaining element-wise part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from opreg.core.spec import Shape
from opreg.elementwise.expression import Expression, Instruction, extract_registers
from opreg.elementwise.rows import ACROSS, RowExpression, RowLayout, row_sum, traced
from opreg.typing import Array, ArrayModule

from . import elementwise
from .folds import bound_fold, few_rows, groups_of
from .rows import bound_rows, bound_rows_with_sums

__all__ = ["bound_sets"]


#: Gives memory for intermediate results, by number, shape and dtype.
Scratch = Callable[[int, Shape, np.dtype], Array]


def bound_sets(expression: Expression, ins: Sequence[Array], roles: Sequence[RowLayout], outs: Sequence[Array | None],
               axes: Sequence[int], xp: ArrayModule, scratch: Scratch) -> list[Callable[[], None]]:
    """Steps without arguments that compute an expression, whose rows are the elements along some axes.

    Parameters
    ----------
    expression : Expression
        An expression with reductions.
    ins : sequence of arrays
        Contiguous arrays of equal rank, which broadcast to the shape of those with all elements.
    roles : sequence of RowLayout
        Whether an input has a value for each ``ELEMENT``, for each set (``ROW``), for each place in a set (``COLUMN``),
        one for ``ALL``, or values for sets that repeat (``CYCLE``; the elements of a set must be contiguous then).
    outs : sequence of arrays or None
        Arrays of the results: in the shape of these inputs, or with one value for each set, for each place in a set, or
        for all.
    axes : sequence of int
        The axes along which the elements of a set lie.
    """
    shape = next(array.shape for array, role in zip(ins, roles) if role is RowLayout.ELEMENT)
    groups = groups_of(shape, axes)
    rows = RowExpression(expression, roles)
    count = math.prod(n for n, reduced in groups if not reduced)
    sums = {j: out for j, out in enumerate(outs) if out is not None and rows.results[j] in ACROSS}

    def add_sums(known_values: dict[int, tuple[Array, RowLayout]]) -> list[Callable[[], None]]:
        return _set_steps(rows, known_values, sums, shape, axes, xp, lambda i, *spec: scratch(500 + i, *spec))

    if [reduced for _, reduced in groups] in ([False, True], [True]) and not few_rows(xp, count, groups[-1][0]):
        cycle = max([array.size for array, role in zip(ins, roles) if role is RowLayout.CYCLE], default=1)
        if not sums:
            return [bound_rows(rows, ins, outs, count, groups[-1][0], xp, cycle)]
        requested = {rows.results[j] for j, out in enumerate(outs) if out is not None}
        found = None if requested == {RowLayout.COLUMN} else bound_rows_with_sums(
            rows, ins, outs, count, groups[-1][0], xp, lambda i, *spec: scratch(300 + i, *spec))
        if found is not None:
            step, parts = found
            return [step, *_sum_steps([*parts.values()], [outs[j] for j in parts], (0,), xp, scratch)]
        others = [j for j, out in enumerate(outs) if out is not None and j not in sums]
        if others and not any(rows.phases[register] for j in sums if isinstance(register := rows.addend(j), int)):
            # The kernel of the sums reads the rows once; the kernel of the other results, which holds a row between its
            # reductions, reads them once more.
            part, read = extract_registers(expression, [expression.results[j] for j in others], [*range(len(ins))])
            return [*add_sums(dict(enumerate(zip(ins, roles)))),
                    bound_rows(RowExpression(part, [roles[i] for i in read]), [ins[i] for i in read],
                               [outs[j] for j in others], count, groups[-1][0], xp, cycle)]
    keep = tuple([1 if axis in axes else n for axis, n in enumerate(shape)])
    dtype = _working_dtype(ins)
    known_values = dict(enumerate(zip(ins, roles)))
    steps: list[Callable[[], None]] = []
    for phase in range(1, rows.last_phase + 1):
        registers = _passed_registers(rows, phase)
        places: list[Array | None] = [scratch(len(known_values) + i, keep, dtype) for i in range(len(registers))]
        results: list[int | float] = [*registers]
        for result, out in zip(expression.results, outs):
            if out is not None and isinstance(result, int) and rows.phases[result] == phase \
                    and rows.registers[result] is RowLayout.ROW:
                results.append(result)
                places.append(out)
        part, read = extract_registers(expression, results, list(known_values))
        operands = [known_values[register] for register in read]
        base = 64 * phase
        steps += bound_fold(part, [array for array, _ in operands], [role for _, role in operands], places, groups, xp,
                            lambda i, shape, dtype, base=base: scratch(base + i, shape, dtype))  # type: ignore[misc]
        for register, place in zip(registers, places):
            assert place is not None
            known_values[register] = place, RowLayout.ROW
    # Sums come before results for elements, which may overwrite what they read.
    steps += add_sums(known_values)
    elements = [(result, out) for i, (result, out) in enumerate(zip(expression.results, outs))
                if out is not None and rows.results[i] is RowLayout.ELEMENT]
    if elements:
        elements_part, read = extract_registers(expression, [result for result, _ in elements], list(known_values))
        steps.append(elementwise.bound_to(elements_part, [known_values[register][0] for register in read],
                                          [out for _, out in elements], xp))
    return steps


def _sum_steps(arrays: Sequence[Array], outs: Sequence[Array | None], axes: Sequence[int], xp: ArrayModule,
               scratch: Scratch) -> list[Callable[[], None]]:
    """Steps that sum arrays along axes, those of equal shapes together."""
    steps: list[Callable[[], None]] = []
    for shape in dict.fromkeys([array.shape for array in arrays]):
        alike = [i for i, array in enumerate(arrays) if array.shape == shape]
        expression = traced(lambda *terms: tuple(map(row_sum, terms)), len(alike))
        base = 16 * len(steps)
        steps += bound_fold(expression, [arrays[i] for i in alike], [RowLayout.ELEMENT] * len(alike),
                            [outs[i] for i in alike], groups_of(shape, axes), xp,
                            lambda i, *spec, base=base: scratch(base + i, *spec))
    return steps


def _set_steps(rows: RowExpression, known_values: dict[int, tuple[Array, RowLayout]], outs: dict[int, Array],
               shape: Shape, axes: Sequence[int], xp: ArrayModule, scratch: Scratch) -> list[Callable[[], None]]:
    """Steps that compute results which are sums over sets, from inputs and registers with one value per set."""
    steps: list[Callable[[], None]] = []
    others = [axis for axis in range(len(shape)) if axis not in axes]
    groups = groups_of(shape, others)
    added = {j: register for j in outs if (register := rows.addend(j)) is not None}
    of_places = [j for j in outs if rows.results[j] is RowLayout.COLUMN]
    of_all = [j for j in outs if j not in of_places]
    if of_all:
        steps += _sum_steps([known_values[int(added[j])][0] for j in of_all], [outs[j] for j in of_all],
                            range(len(shape)), xp, lambda i, *spec: scratch(64 + i, *spec))
    if not of_places:
        return steps
    part, read = extract_registers(rows.expression, [added[j] for j in of_places], list(known_values))
    arrays, roles = [known_values[register][0] for register in read], [known_values[register][1] for register in read]
    if sum(reduced for _, reduced in groups) == 1:
        # In sums over sets, a value for each set takes the role of a value for each place, and the other way round.
        turned = {RowLayout.ROW: RowLayout.COLUMN, RowLayout.COLUMN: RowLayout.ROW}
        total = row_sum(None).prim
        code = [*part.code, *[Instruction(total, (register,)) for register in part.results]]
        first = part.arity + len(part.code)
        steps += bound_fold(Expression.of(part.arity, code, range(first, first + len(of_places))), arrays,
                            [turned.get(role, role) for role in roles], [outs[j] for j in of_places], groups, xp,
                            scratch)
    else:
        places = [scratch(32 + i, shape, _working_dtype(arrays)) for i in range(len(of_places))]
        steps += [elementwise.bound_to(part, arrays, places, xp),
                  *_sum_steps(places, [outs[j] for j in of_places], others, xp, scratch)]
    return steps


def _working_dtype(ins: Sequence[Array]) -> np.dtype:
    return np.dtype(np.float64 if any(array.dtype.itemsize == 8 for array in ins) else np.float32)


def _passed_registers(rows: RowExpression, phase: int) -> list[int]:
    """The registers with one value per set that are computed in a phase and read by element-wise instructions or by
    later phases."""
    arity, code = rows.expression.arity, rows.expression.code
    registers = set()
    for position, (_, args) in enumerate(code):
        reader = arity + position
        for a in args:
            if isinstance(a, int) and a >= arity and rows.phases[a] == phase and rows.registers[a] is RowLayout.ROW \
                    and (rows.registers[reader] in (RowLayout.ELEMENT, RowLayout.ALL) or rows.phases[reader] > phase):
                registers.add(a)
    return sorted(registers)
