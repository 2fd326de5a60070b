"""Operators with reductions along rows, compiled with numba: softmax, normalisation and their gradients.

A program is a few lines of text over pointers, with the instructions of ``vector`` and three more: ``plus`` and
``times``, whose order the compiler may choose, and ``largest``. It computes contiguous rows; a call computes a given
range of them, so threads share the rows. The result for a row does not depend on the number of rows.

For when functions are compiled, see ``compiler``.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from opreg.core import threads
from opreg.core.addresses import address_of
from opreg.core.launch import Call, Rank, reference
from opreg.core.op import Op
from opreg.typing import Array

from .compiler import Function, function_of, mode, runner, steps, unavailable
from .values import FORMATS

__all__ = ["Task", "attach_rows"]

# The least length of rows and number of elements; below these, compiled code is no faster.
_ROW, _LEAST = 16, 256


class Task(NamedTuple):
    """A program and its operands.

    Attributes
    ----------
    program : str
        Its lines. ``in0``, ``out0`` and so on are the arrays, ``c0`` and so on the constants, ``zero`` and ``least``
        (minus infinity) two more; ``rows`` and ``n`` are the sizes. It computes the rows, or other units of work, from
        ``first`` to ``last``. Lines that write to an output that is not read are left out.
    ins, outs : lists of arrays
        None for an output that is not read.
    constants : sequence of float
        Constants that differ among calls of an operator.
    rows, n : int
        The number of rows, and the number of elements in each.
    total : int or None
        The number of units of work that threads share, if these are not rows.
    epilogue : sequence of functions
        Functions to call afterwards, which use NumPy.
    """

    program: str
    ins: Sequence[Array]
    outs: Sequence[Array | None]
    constants: Sequence[float]
    rows: int
    n: int
    total: int | None = None
    epilogue: Sequence[Callable[[], object]] = ()


def _declines(call: Call, task: Task | str) -> str | None:
    if isinstance(task, str):
        return task
    arrays = [array for array in (*task.ins, *task.outs) if array is not None]
    dtype = arrays[0].dtype
    if dtype not in FORMATS:
        return f"dtype {dtype}: functions are compiled for float32 and float64"
    if any(array.dtype != dtype for array in arrays):
        return "dtypes differ"
    if not all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
        return "an array is not contiguous"
    if not all(out is None or out.flags.writeable for out in task.outs):
        return "an output is read-only"
    size = task.rows * task.n
    if size == 0:
        return "nothing to compute"
    if mode() == "auto" and (task.n < _ROW or size < _LEAST):
        return f"{task.rows} rows of {task.n} elements are too few"
    return None


def _source(task: Task) -> tuple[str, list[Array]]:
    """The text of a function ``kernel(table, first, last)``, and the arrays whose addresses come first in the table."""
    arrays: list[Array] = []
    places: dict[int, int] = {}
    names: list[str] = []
    for prefix, group in (("in", task.ins), ("out", task.outs)):
        for i, array in enumerate(group):
            if array is None:
                continue
            place = address_of(array)
            if place not in places:
                places[place] = len(arrays)
                arrays.append(array)
            names.append(f"{prefix}{i} = a{places[place]}")
    count = len(arrays)
    unread = [f"out{i}[" for i, array in enumerate(task.outs) if array is None]
    lines = [f"a{i} = address(table[{i}])" for i in range(count)]
    lines += [*names, f"c = address(table[{count}])", f"rows = table[{count + 1}]", f"n = table[{count + 2}]",
              "zero = c[0]", "least = c[1]"]
    lines += [f"c{i} = c[{i + 2}]" for i in range(len(task.constants))]
    kept: list[str] = []
    for line in reversed(task.program.strip("\n").split("\n")):
        # all lines of this loop were dropped
        empty = line.endswith(":") and (not kept or _depth(kept[-1]) <= _depth(line))
        if not empty and not any(output in line for output in unread):
            kept.append(line)
    lines += reversed(kept)
    return "def kernel(table, first, last):\n" + "".join(f"    {line}\n" for line in lines), arrays


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _plan(task: Task) -> tuple[Function, Callable[[], Callable[[], None]]]:
    """The compiled function of a task, and a function that makes the step from it."""
    source, arrays = _source(task)
    length = 4 * len(re.findall(r"\bfor i in", source))  # a pass over a row counts as four instructions
    function = function_of(source, arrays[0].dtype, length)
    numbers = np.array([0.0, -math.inf, *task.constants], arrays[0].dtype)
    total = task.total or task.rows
    run = functools.partial(runner, function, [*arrays, numbers], [task.rows, task.n], total,
                            task.rows * task.n // max(total, 1))
    if not task.epilogue:
        return function, run
    return function, lambda: functools.partial(threads.in_turn, (run(), *task.epilogue))


def attach_rows(op: Op, task: Callable[[Call], Task | str],
                ufuncs: Callable[[Call], list[Callable[[], object]]] | None = None) -> None:
    """Give an operator the kernel ``numba``; ``task`` gives the task of a call, or the reason why there is none. Until
    the function is compiled, the steps of ``ufuncs`` run, by default the reference kernel."""

    def accepts(call: Call) -> str | None:
        return unavailable(call) or _declines(call, task(call))

    @op.kernel("numba", bound=True, accepts=accepts, rank=Rank.COMPILED)
    def rows_numba(call: Call) -> list[Callable[[], object]]:
        rows = task(call)
        assert isinstance(rows, Task)
        function, run = _plan(rows)
        return steps(function, run, lambda: reference(call).steps()[0] if ufuncs is None else ufuncs(call))
