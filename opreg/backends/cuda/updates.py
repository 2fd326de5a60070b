"""Optimizer updates as CUDA kernels: one launch moves all weights that move by one rule.

The expression of a rule's formula becomes the text of a kernel, as on the host. Rates are numbers that a launch is
given, or, for launches that are captured and replayed, numbers on the device; where the arrays lie is in a table there,
which is kept as long as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opreg.core.array_module import active
from opreg.core.cache import cached
from opreg.core.rules import Attrs
from opreg.elementwise.expression import Expression
from opreg.typing import Array, ArrayModule

from ..weights import Columns, Tables, alike, formula_of, rows_of
from .compiler import Launch, grid_of, kernel_of
from .instructions import STORED, Value, computed_in, missing, statements
from .staging import staging

if TYPE_CHECKING:
    from opreg.builtin.optimizers.update_formulas import Rates
    from opreg.builtin.optimizers.updating import Update

__all__ = ["bind", "move"]

_BLOCK = 256
# Numbers of one weight that a block takes at a time.
_STRETCH = 1 << 13
# NumPy types of rates, by the type that a kernel computes in.
_NUMBER: dict[str, type[np.generic]] = {"float": np.float32, "double": np.float64}


@cached(64)
def source(expression: Expression, count: int, apart: bool, dtype: np.dtype, lanes: int, held: bool = False) -> str:
    """The text of the kernel ``updates`` of ``count`` arrays for each weight; ``apart`` where the new weight has memory
    of its own.

    Its parameters are the table, how many rows it has, and the numbers that the expression reads beside arrays, or
    where these are ``held`` on the device. A row is a stretch of a weight: how many elements, and where its arrays are.
    """
    stored, kind = STORED[dtype.name], computed_in(dtype)
    names = [Value(f"x{i}", kind) for i in range(expression.arity)]
    lines, results = statements(expression, names)
    arrays = count + apart
    places = (count if apart else 0, *range(2, count))
    numbers = [f"{kind} x{i}" for i in range(count, expression.arity)]
    compute = ", ".join([*[f"const {kind} x{i}" for i in range(count)], *[f"const {each}" for each in numbers],
                         *[f"{stored}& y{place}" for place in places]])
    given = ", ".join(f"x{i}" for i in range(count, expression.arity))

    def stretch(start: str, end: str, step: str, lanes: int) -> list[str]:
        into = ", ".join(f"q{place}.at[lane]" for place in places)
        values = ", ".join([*[f"wide(p{i}.at[lane])" for i in range(count)], *([given] if given else []), into])
        return [f"        for (unsigned at = {start}; at < {end}; at += {step}) {{",
                *[f"            const auto p{i} = load<{lanes}>(a{i} + at);" for i in range(count)],
                *[f"            Pack<{stored}, {lanes}> q{place};" for place in places],
                "            #pragma unroll",
                f"            for (int lane = 0; lane < {lanes}; ++lane) compute({values});",
                *[f"            store(a{place} + at, q{place});" for place in places], "        }"]

    text = [f"__device__ __forceinline__ void compute({compute}) {{", *[f"    {line}" for line in lines],
            *[f"    y{place} = narrow<{stored}>({result.text});" for place, result in zip(places, results)], "}", "",
            f'extern "C" __global__ void __launch_bounds__({_BLOCK}) updates(const unsigned long long* table, '
            f"{', '.join(['unsigned rows', *([f'const {kind}* numbers'] if held else numbers)])}) {{",
            *([f"    const {number} = numbers[{i}];" for i, number in enumerate(numbers)] if held else []),
            "    for (unsigned row = blockIdx.x; row < rows; row += gridDim.x) {",
            f"        const unsigned long long* places = table + (unsigned long long)row * {arrays + 1}u;",
            "        const unsigned size = (unsigned)places[0];",
            *[f"        {stored}* a{i} = ({stored}*)places[{i + 1}];" for i in range(arrays)],
            *stretch(f"threadIdx.x * {lanes}u", f"size / {lanes}u * {lanes}u", f"{_BLOCK * lanes}u", lanes)]
    if lanes > 1:
        text += stretch(f"size / {lanes}u * {lanes}u + threadIdx.x", "size", f"{_BLOCK}u", 1)
    return "\n".join([*text, "    }", "}", ""])


class _Table(NamedTuple):
    """The table of some weights on their device, its rows, and whether all its arrays begin where packs do."""

    numbers: Array
    rows: int
    aligned: bool


def _table(xp: ArrayModule, columns: Columns) -> _Table | None:
    """The table of arrays, each row those of one weight; None where they are not laid out alike, side by side."""
    rows = rows_of(columns, _STRETCH) if alike(columns) else []
    if not rows:
        return None
    backend = next(backend for backend in active() if backend.xp is xp)
    numbers = backend.asarray(np.array(rows, np.uint64), np.dtype(np.uint64), getattr(columns[0][0].device, "id", 0))
    return _Table(numbers, len(rows), not any(place % 16 for row in rows for place in row[1:]))


_TABLES: Tables[_Table] = Tables()


def move(xp: ArrayModule, rule: Callable[..., object], updates: Sequence[Update], dtype: np.dtype | None,
         attrs: Attrs, otherwise: Callable[[], None]) -> None:
    """Run a rule for several weights by one launch, or ``otherwise`` where there is no kernel of it.

    ``dtype`` is that of the rule's scratch where it is not the weights'.
    """
    stored = updates[0][0].dtype
    formula = formula_of(rule, updates, attrs) if dtype is None and stored.name in STORED else None
    table = None if formula is None or missing(formula.expression) else _TABLES.of(
        formula.columns, functools.partial(_table, xp))
    if formula is None or table is None:
        otherwise()
        return
    lanes = 16 // stored.itemsize if table.aligned else 1
    kernel = kernel_of(xp, source(formula.expression, len(updates[0][1]), formula.apart, stored, lanes), "updates",
                       getattr(rule, "__name__", ""))
    number = _NUMBER[computed_in(stored)]
    kernel((grid_of(xp, table.rows * _BLOCK, _BLOCK),), (_BLOCK,),
           (table.numbers, np.uint32(table.rows), *[number(each) for each in formula.numbers]))


def bind(xp: ArrayModule, rule: Callable[..., object], updates: Sequence[Update], rates: Rates,
         otherwise: object) -> list[Callable[[], object]] | str:
    """A launch that moves weights again and again, by numbers on the device; or why there is none."""
    stored = updates[0][0].dtype
    if stored.name not in STORED:
        return f"dtype {stored}: {', '.join(STORED)} are compiled"
    lacking = missing(rates.expression)
    if lacking:
        return f"{lacking} has no statement in CUDA C++"
    table = _table(xp, [arrays for _, arrays in updates])
    if table is None:
        return "arrays that are not laid out alike, side by side"
    lanes = 16 // stored.itemsize if table.aligned else 1
    kernel = kernel_of(xp, source(rates.expression, len(updates[0][1]), False, stored, lanes, True), "updates",
                       getattr(rule, "__name__", ""))
    numbers = _on_device(xp, rates, np.dtype(_NUMBER[computed_in(stored)]), table.numbers)
    return [Launch(kernel, grid_of(xp, table.rows * _BLOCK, _BLOCK), _BLOCK,
                   (table.numbers, np.uint32(table.rows), numbers))]


def _on_device(xp: ArrayModule, rates: Rates, dtype: np.dtype, like: Array) -> Array:
    """The numbers of rates beside another array, brought there whenever they change."""
    numbers = xp.empty(max(1, len(rates.numbers)), dtype)
    bring = staging(xp, numbers, getattr(like.device, "id", 0)) or functools.partial(numbers.__setitem__, Ellipsis)
    rates.keep(lambda values: bring(np.array(values or [0.0], dtype)))
    return numbers
