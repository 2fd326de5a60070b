"""Optimizer updates of several weights as input for compiled functions: the formula of the rule, and tables with the
addresses of the arrays.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from opreg.core.addresses import address_of
from opreg.core.rules import Attrs
from opreg.core.threads import chunks
from opreg.elementwise.expression import Expression
from opreg.typing import Array

if TYPE_CHECKING:
    from opreg.builtin.optimizers.updating import Update

__all__ = ["Columns", "Formula", "Tables", "alike", "formula_of", "rows_of"]

#: For each weight, the arrays that its update rule reads and writes.
Columns = Sequence[Sequence[Array]]
T = TypeVar("T")


class Formula(NamedTuple):
    """The formula of an update rule, with the arrays of the weights.

    Attributes
    ----------
    expression : Expression
        Its inputs are the arrays of a weight, then the numbers.
    numbers : list of float
        Rates and counts, which may change from step to step.
    apart : bool
        Whether new weights are written to separate memory, which comes last in the columns.
    columns
        The arrays of each weight.
    """

    expression: Expression
    numbers: Sequence[float]
    apart: bool
    columns: Columns


def formula_of(rule: Callable[..., object], updates: Sequence[Update], attrs: Attrs) -> Formula | None:
    """The formula of a rule; None if it has none, or not the same for all of these updates."""
    new, arrays = updates[0]
    apart, traced = new is not arrays[0], getattr(rule, "traced", None)
    if (traced is None or any((weight is not parts[0]) is not apart for weight, parts in updates)
            or not all(isinstance(value, (int, float)) for value in attrs.values())):
        return None
    expression, numbers = traced(len(arrays), attrs)
    return Formula(expression, numbers, apart, [[*parts, weight] if apart else parts for weight, parts in updates])


def alike(columns: Columns) -> bool:
    """Whether the arrays of each weight have the same size and dtype, and are contiguous."""
    return all(array.size == arrays[0].size and array.dtype == arrays[0].dtype and array.flags.c_contiguous
               for arrays in columns for array in arrays)


def rows_of(columns: Columns, stretch: int) -> list[list[int]]:
    """A row for each part of a weight of at most ``stretch`` elements: the number of elements, and the addresses of the
    part in each array."""
    rows: list[list[int]] = []
    for arrays in columns:
        size, item = arrays[0].size, arrays[0].itemsize
        addresses = [*map(address_of, arrays)]
        rows += [[part.stop - part.start, *[address + part.start * item for address in addresses]]
                 for part in chunks(size, stretch)]
    return rows


class Tables(Generic[T]):
    """A cache of values made for the arrays of weights; an entry lives as long as these arrays, without a reference to
    them.

    Reading the addresses takes as long as updating ten thousand elements, and programs update the same arrays again
    and again.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, ...], tuple[T, list[weakref.ref]]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, columns: Columns, make: Callable[[Columns], T | None]) -> T | None:
        """The value for these arrays, from the cache or by ``make``; None, which is not cached, if ``make`` gives
        None."""
        arrays = [array for column in columns for array in column]
        key = (len(columns), *map(id, arrays))
        cached = self._kept.get(key)
        # A new array may have the id of one that was deleted.
        if cached is not None and all(map(operator.is_, [alive() for alive in cached[1]], arrays)):
            return cached[0]
        table = make(columns)
        if table is not None:
            self._kept[key] = table, [weakref.ref(array, lambda _: self._kept.pop(key, None)) for array in arrays]
        return table
