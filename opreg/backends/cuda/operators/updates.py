"""Optimizer updates as CUDA kernels: one launch updates all weights of one rule.

A kernel is generated from the expression of the rule's formula, as on the host. Rates are arguments of the launch, or
for launches that are captured and replayed, they are in memory of the device. A table in the device's memory holds the
addresses of the arrays; it is cached as long as they live.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from opreg.builtin.optimizers.update_formulas import Rates
from opreg.builtin.optimizers.updating import GroupUpdater, Update, group_updaters
from opreg.core.array_module import active
from opreg.core.cache import cached
from opreg.core.rules import Attrs
from opreg.elementwise.expression import Expression
from opreg.typing import Array, ArrayModule

from ...weights import Columns, Tables, alike, formula_of, rows_of
from ..compiler import Launch, can_compile, grid_of, kernel_of
from ..instructions import STORED, Value, computed_in, missing, statements
from ..staging import copier_to

__all__ = ["source"]

_BLOCK = 256
# The number of elements of one weight that a block updates at a time.
_STRETCH = 1 << 13
# NumPy types of rates, by the type that a kernel computes in.
_NUMBER: dict[str, type[np.generic]] = {"float": np.float32, "double": np.float64}


@cached(64)
def source(expression: Expression, count: int, apart: bool, dtype: np.dtype, lanes: int, in_array: bool = False) -> str:
    """The text of the kernel ``updates``, for ``count`` arrays per weight; with ``apart`` the new weight is written to
    separate memory.

    Its parameters are the table, the number of its rows, and the rates that the expression reads; with ``in_array`` a
    pointer to these rates on the device. A row of the table describes a part of a weight: the number of elements, and
    the addresses of the arrays.
    """
    stored, kind = STORED[dtype.name], computed_in(dtype)
    names = [Value(f"x{i}", kind) for i in range(expression.arity)]
    lines, results = statements(expression, names)
    arrays = count + apart
    places = (count if apart else 0, *range(2, count))
    numbers = [f"{kind} x{i}" for i in range(count, expression.arity)]
    compute = ", ".join([*[f"const {kind} x{i}" for i in range(count)], *[f"const {number}" for number in numbers],
                         *[f"{stored}& y{place}" for place in places]])
    rates = ", ".join(f"x{i}" for i in range(count, expression.arity))

    def stretch(start: str, end: str, step: str, lanes: int) -> list[str]:
        into = ", ".join(f"q{place}.at[lane]" for place in places)
        values = ", ".join([*[f"wide(p{i}.at[lane])" for i in range(count)], *([rates] if rates else []), into])
        return [f"        for (unsigned at = {start}; at < {end}; at += {step}) {{",
                *[f"            const auto p{i} = load<{lanes}>(a{i} + at);" for i in range(count)],
                *[f"            Pack<{stored}, {lanes}> q{place};" for place in places],
                "            #pragma unroll",
                f"            for (int lane = 0; lane < {lanes}; ++lane) compute({values});",
                *[f"            store(a{place} + at, q{place});" for place in places], "        }"]

    text = [f"__device__ __forceinline__ void compute({compute}) {{", *[f"    {line}" for line in lines],
            *[f"    y{place} = narrow<{stored}>({result.text});" for place, result in zip(places, results)], "}", "",
            f'extern "C" __global__ void __launch_bounds__({_BLOCK}) updates(const unsigned long long* table, '
            f"{', '.join(['unsigned rows', *([f'const {kind}* numbers'] if in_array else numbers)])}) {{",
            *([f"    const {number} = numbers[{i}];" for i, number in enumerate(numbers)] if in_array else []),
            "    for (unsigned row = blockIdx.x; row < rows; row += gridDim.x) {",
            f"        const unsigned long long* places = table + (unsigned long long)row * {arrays + 1}u;",
            "        const unsigned size = (unsigned)places[0];",
            *[f"        {stored}* a{i} = ({stored}*)places[{i + 1}];" for i in range(arrays)],
            *stretch(f"threadIdx.x * {lanes}u", f"size / {lanes}u * {lanes}u", f"{_BLOCK * lanes}u", lanes)]
    if lanes > 1:
        text += stretch(f"size / {lanes}u * {lanes}u + threadIdx.x", "size", f"{_BLOCK}u", 1)
    return "\n".join([*text, "    }", "}", ""])


class _Table(NamedTuple):
    """The table of some weights on their device, the number of its rows, and whether all addresses are aligned to
    packs."""

    numbers: Array
    rows: int
    aligned: bool


def _table(xp: ArrayModule, columns: Columns) -> _Table | None:
    """The table for the arrays of some weights; None unless they are alike and contiguous."""
    rows = rows_of(columns, _STRETCH) if alike(columns) else []
    if not rows:
        return None
    backend = next(backend for backend in active() if backend.xp is xp)
    numbers = backend.asarray(np.array(rows, np.uint64), np.dtype(np.uint64), getattr(columns[0][0].device, "id", 0))
    return _Table(numbers, len(rows), not any(place % 16 for row in rows for place in row[1:]))


_TABLES: Tables[_Table] = Tables()


def move(xp: ArrayModule, rule: Callable[..., object], updates: Sequence[Update], dtype: np.dtype | None,
         attrs: Attrs, otherwise: Callable[[], None]) -> None:
    """Run a rule for several weights by one launch, or call ``otherwise`` if there is no kernel for it.

    ``dtype`` is the dtype of the rule's scratch, if it differs from the weights'.
    """
    formula = formula_of(rule, updates, attrs) if dtype is None else None
    launch = None if formula is None else _launch(xp, rule, formula.expression, formula.columns, formula.apart,
                                                  lambda kind, _: map(kind, formula.numbers))
    if isinstance(launch, Launch):
        launch()
    else:
        otherwise()


def bind(xp: ArrayModule, rule: Callable[..., object], updates: Sequence[Update], rates: Rates,
         otherwise: object) -> list[Callable[[], object]] | str:
    """A launch that can be repeated to update weights, with rates in the device's memory; or the reason why there is
    none."""
    launch = _launch(xp, rule, rates.expression, [arrays for _, arrays in updates], False,
                     lambda kind, like: [_on_device(xp, rates, np.dtype(kind), like)], True)
    return launch if isinstance(launch, str) else [launch]


def _launch(xp: ArrayModule, rule: Callable[..., object], expression: Expression, columns: Columns, apart: bool,
            rates: Callable[[type[np.generic], Array], Iterable[object]], in_array: bool = False) -> Launch | str:
    """The launch of the kernel of an expression, or the reason why there is none. ``rates`` gives its last arguments,
    from their type and an array of the device."""
    stored = columns[0][0].dtype
    if stored.name not in STORED:
        return f"dtype {stored}: kernels are compiled for {', '.join(STORED)}"
    lacking = missing(expression)
    if lacking:
        return f"{lacking} has no statement in CUDA C++"
    table = _TABLES.of(columns, functools.partial(_table, xp))
    if table is None:
        return "arrays that are not laid out alike, side by side"
    lanes = 16 // stored.itemsize if table.aligned else 1
    kernel = kernel_of(xp, source(expression, len(columns[0]) - apart, apart, stored, lanes, in_array), "updates",
                       getattr(rule, "__name__", ""))
    return Launch(kernel, grid_of(xp, table.rows * _BLOCK, _BLOCK), _BLOCK,
                  (table.numbers, np.uint32(table.rows), *rates(_NUMBER[computed_in(stored)], table.numbers)))


def _on_device(xp: ArrayModule, rates: Rates, dtype: np.dtype, like: Array) -> Array:
    """An array of the rates on the device of ``like``, updated whenever they change."""
    numbers = xp.empty(max(1, len(rates.numbers)), dtype)
    bring = copier_to(xp, numbers, getattr(like.device, "id", 0)) or functools.partial(numbers.__setitem__, Ellipsis)
    rates.keep(lambda values: bring(np.array(values or [0.0], dtype)))
    return numbers


group_updaters.append(GroupUpdater("cuda", can_compile, move, bind))
