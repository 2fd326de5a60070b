"""Reductions along any axes: of rows if the last axis is reduced, else of columns; if the reduced axes are not
neighbours, in several steps one after another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from opreg.core.spec import Shape
from opreg.elementwise.expression import Expression
from opreg.elementwise.rows import RowExpression, RowLayout, split_reductions
from opreg.typing import Array, ArrayModule

from .columns import LEAST, bound_columns, tile_of
from .compiler import grid_of
from .rows import bound_rows

__all__ = ["Group", "bound_fold", "few_rows", "groups_of"]

#: The number of elements along some neighbouring axes, and whether these are reduced.
Group = tuple[int, bool]

# The least number of elements in a part of a row, if rows are split.
_PART = 4096


def groups_of(shape: Shape, axes: Sequence[int]) -> list[Group]:
    """The axes of a shape, with neighbours joined if all or none of them are reduced; axes of one element are left out.

    Examples
    --------
    >>> groups_of((4, 3, 5, 1, 6), (0, 2, 4))
    [(4, True), (3, False), (30, True)]
    """
    groups: list[Group] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        reduced = axis in axes
        if groups and groups[-1][1] is reduced:
            groups[-1] = groups[-1][0] * size, reduced
        else:
            groups.append((size, reduced))
    return groups


def bound_fold(expression: Expression, ins: Sequence[Array], roles: Sequence[RowLayout], outs: Sequence[Array | None],
               groups: Sequence[Group], xp: ArrayModule, scratch: Callable[[int, Shape, np.dtype], Array]
               ) -> list[Callable[[], None]]:
    """Steps without arguments that reduce sets of elements; there is one set for each position along the groups that
    are not reduced.

    Parameters
    ----------
    expression : Expression
        The reduction of a set, which its instructions call a row; no reduction in it depends on another.
    ins : sequence of arrays
        Contiguous arrays.
    roles : sequence of RowLayout
        Whether an input has a value for each ``ELEMENT``, for each set (``ROW``), for each place in a set
        (``COLUMN``; a set must be one group then), or values for sets that repeat (``CYCLE``; sets must be rows then).
    outs : sequence of arrays or None
        Arrays of one value per set.
    groups : sequence of Group
        The axes of the elements.
    scratch : function of number, shape and dtype
        Gives memory for intermediate results.
    """
    size = math.prod(n for n, reduced in groups if reduced)
    steps: list[Callable[[], None]] = []
    while True:
        groups = list(groups) or [(1, True)]
        if not any(reduced for _, reduced in groups):
            groups.append((1, True))
        one_group = sum(reduced for _, reduced in groups) == 1
        n, along = groups[-1]
        before = groups[:-1] if along else groups[:-2]
        count = math.prod(length for length, _ in before)
        length = n if along else groups[-2][0]
        alongs, cycle = _axis_groups(ins, roles, before, along)
        part = _part_of_rows(xp, count, n) if along else \
            _part_of_columns(xp, count, length, -(-n // tile_of(ins, alongs, n).columns))
        parts = -(-length // part)
        step, places = expression, list(outs)
        others: list[int] = []
        if not (one_group and parts == 1):
            step, expression, others = split_reductions(expression)
            dtype = np.dtype(np.float64 if any(array.dtype.itemsize == 8 for array in ins) else np.float32)
            places = [scratch(len(steps) * 4 + i, (count, parts, 1 if along else n), dtype)
                      for i in range(len(step.results))]
        cut = None if parts == 1 else part
        if along:
            steps.append(bound_rows(RowExpression(step, alongs), ins, places, count, n, xp, cycle, size, cut))
        else:
            steps.append(bound_columns(RowExpression(step, alongs, RowLayout.COLUMN), ins, places, count, length, n, xp,
                                       size, cut))
        if one_group and parts == 1:
            return steps
        ins = [*[place for place in places if place is not None], *[ins[i] for i in others]]
        roles = [*[RowLayout.ELEMENT] * len(places), *[roles[i] for i in others]]
        groups = [group for group in (*before, (parts, True), *(() if along else (groups[-1],))) if group[0] > 1]
        groups = groups_of(tuple([each for each, _ in groups]), [i for i, (_, reduced) in enumerate(groups) if reduced])


def _axis_groups(ins: Sequence[Array], roles: Sequence[RowLayout], before: Sequence[Group], rows: bool
                 ) -> tuple[list[RowLayout], int]:
    """The ``RowLayout`` of each input in a step, and the number of rows after which inputs with values for sets
    repeat."""
    if not rows:
        turned = {RowLayout.ELEMENT: RowLayout.ELEMENT, RowLayout.ROW: RowLayout.COLUMN,
                  RowLayout.COLUMN: RowLayout.ROW}
        return [turned[role] for role in roles], 1
    if any(reduced for _, reduced in before):
        return [RowLayout.CYCLE if role is RowLayout.ROW else role for role in roles], before[-1][0]
    return list(roles), max([array.size for array, role in zip(ins, roles) if role is RowLayout.CYCLE], default=1)


def few_rows(xp: ArrayModule, count: int, n: int) -> bool:
    """Whether there are too few rows for all multiprocessors, and they are long enough to be split."""
    return _part_of_rows(xp, count, n) < n


def _part_of_rows(xp: ArrayModule, count: int, n: int) -> int:
    """The length of the parts of rows: whole rows, unless there are too few for all multiprocessors."""
    parts = min(grid_of(xp, 1 << 30, 1) // count, n // _PART)
    return n if parts < 2 else -(-n // (8 * parts)) * 8


def _part_of_columns(xp: ArrayModule, count: int, rows: int, tiles: int) -> int:
    """The number of rows that a block reduces, for a number of matrices and of tiles in each."""
    parts = max(1, min(-(-rows // LEAST), grid_of(xp, 1 << 30, 1) // (tiles * count)))
    return -(-rows // parts)
