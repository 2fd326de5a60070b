"""Loops over contiguous sets, compiled with numba: rows of values, one after the other.

A program is a few lines of text over pointers, with the instructions of ``vector`` and three more: ``plus`` and
``times``, whose order the compiler may choose, and ``largest``. Each phase reads a row once. If a later phase needs an
expensive value such as an exponential again, it is stored in an output until the output's own result is written.

A call computes a range of the rows, so threads share the rows. The result for a row does not depend on the number of
rows, and sums over rows do not depend on the number of threads: they are computed for blocks of rows, which are added.
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
from opreg.core.cache import cached
from opreg.core.launch import Call, Rank
from opreg.core.op import Op
from opreg.elementwise.loop_runs import LONG
from opreg.elementwise.loops import Loop
from opreg.elementwise.rows import ACROSS, REDUCTIONS, RowExpression, RowLayout, of_results
from opreg.typing import Array

from .compiler import Function, function_of, mode, runner, steps, unavailable
from .values import FORMATS
from .vector import VECTOR

__all__ = ["attach", "program"]

# The least length of rows and number of elements; below these, compiled code is no faster.
_ROW, _LEAST = 16, 256
# The number of rows whose sums over rows are computed together.
_BLOCK = 64

# Instructions that cost no more than reading a stored value.
_CHEAP = frozenset({"add", "subtract", "multiply", "negative", "absolute", "square", "greater", "greater_equal", "less",
                    "less_equal", "equal", "not_equal", "where", "maximum", "minimum", "trunc", "floor", "ceil",
                    "column"})
#: The initial value of each reduction, and the function that adds an element.
_STARTS = {"row_sum": "zero", "row_max": "least", "row_min": "least", "row_product": "zero + 1"}
_STEPS = {"row_sum": "plus", "row_max": "largest", "row_min": "largest", "row_product": "times"}


class _Program:
    """Generates the lines that compute rows."""

    def __init__(self, rows: RowExpression):
        self.rows, self.code, self.arity = rows, rows.expression.code, rows.expression.arity
        self.constants: dict[str, int] = {}
        self.names = [f"x{i}" for i in range(self.arity)] + [f"r{p}" for p in range(len(self.code))]
        self.last_phase = rows.last_phase
        self.stored: dict[int, int] = {}  # by register, the output that its values are stored in
        self.lines: list[str] = []
        self.added = {j: arg for j in range(len(rows.results)) if (arg := rows.addend(j)) is not None}

    def operand(self, value: int | float) -> str:
        if isinstance(value, int):
            return self.names[value]
        return f"c{self.constants.setdefault(repr(value), len(self.constants))}"

    def statement(self, position: int) -> str:
        prim, args = self.code[position]
        name = self.names[self.arity + position]
        if prim.name == "column":
            return f"{name} = place(i)"
        if prim.name == "row_size":
            return f"{name} = place(n)"
        return f"{name} = {prim.name}({', '.join(map(self.operand, args))})"

    def wanted_registers(self, phase: int) -> list[int]:
        """The element-wise registers that a phase has to compute."""
        registers: list[int | float] = [self.code[p].args[0] for p in self.rows.reduced(phase)]
        registers += [self.added[j] for j in self.added_in(phase)]
        if phase == self.last_phase:
            registers += [r for r, along in zip(self.rows.expression.results, self.rows.results)
                          if along is RowLayout.ELEMENT]
        return [r for r in registers if isinstance(r, int)]

    def added_in(self, phase: int) -> list[int]:
        """The results with one value per column, to which this phase adds the values of each row."""
        return [j for j, register in self.added.items() if self.rows.results[j] is RowLayout.COLUMN
                and phase == (self.rows.phases[register] if isinstance(register, int) else 0)]

    def instructions_of(self, phase: int) -> list[int]:
        """The element-wise instructions of a phase, without those whose values were stored by an earlier one."""
        return self.rows.needed(self.wanted_registers(phase), [
            register for register in self.stored if self.rows.phases[register] < phase])

    def choose_stored(self) -> None:
        """Choose the register to store: an expensive one that the last phase needs, if it reads no element-wise
        input."""
        last = self.last_phase
        if not last:
            return
        free = [j for j, along in enumerate(self.rows.results) if along is RowLayout.ELEMENT]
        dear = [self.arity + p for p in self.instructions_of(last) if self.code[p].prim.name not in _CHEAP
                and self.rows.phases[self.arity + p] < last and self.arity + p in self.read_before(last)]
        if len(dear) != 1 or not free:
            return
        self.stored[dear[0]] = free[0]
        # an output may share the memory of such an input
        if any(self.rows.inputs[i] is RowLayout.ELEMENT for i in self.inputs(last)):
            self.stored.clear()

    def read_before(self, phase: int) -> set[int]:
        """The element-wise registers that the phase before computes."""
        return {self.arity + p for p in self.instructions_of(phase - 1)}

    def inputs(self, phase: int) -> list[int]:
        """The inputs with a value per element or column that a phase reads."""
        read = {a for p in self.instructions_of(phase) for a in self.code[p].args} | set(self.wanted_registers(phase))
        return [i for i in range(self.arity) if i in read and self.rows.registers[i] is RowLayout.ELEMENT]

    def of_the_row(self, phase: int) -> None:
        """Write the instructions with one value per row that can be computed from this phase on."""
        self.lines += [f"    {self.statement(position)}" for position in self.rows.of_rows(phase)]

    def row_loop(self, phase: int) -> None:
        """Write the loop over a row for a phase."""
        reduced = self.rows.reduced(phase)
        for p in reduced:
            self.lines.append(f"    t{p} = {_STARTS[self.code[p].prim.name]}")
        body = [f"x{i} = in{i}[{'o + ' if self.rows.inputs[i] is RowLayout.ELEMENT else ''}i]"
                for i in self.inputs(phase)]
        needed = self.instructions_of(phase)
        for register, j in self.stored.items():
            if register - self.arity not in needed and self.rows.phases[register] < phase:
                body.append(f"{self.names[register]} = out{j}[o + i]")
        for p in needed:
            body.append(self.statement(p))
            if self.arity + p in self.stored and phase == self.last_phase - 1:
                body.append(f"out{self.stored[self.arity + p]}[o + i] = {self.names[self.arity + p]}")
        for p in reduced:
            kind, value = self.code[p].prim.name, self.operand(self.code[p].args[0])
            value = f"negative({value})" if kind == "row_min" else value
            body.append(f"t{p} = {_STEPS[kind]}(t{p}, {value})")
        body += [f"out{j}[b + i] = add(out{j}[b + i], {self.operand(self.added[j])})" for j in self.added_in(phase)]
        if phase == self.last_phase:
            body += [f"out{j}[o + i] = {self.operand(result)}" for j, result in enumerate(self.rows.expression.results)
                     if self.rows.results[j] is RowLayout.ELEMENT]
        if body:
            self.lines += ["    for i in range(n):", *[f"        {line}" for line in body]]
        for p in reduced:
            ending = f"negative(t{p})" if self.code[p].prim.name == "row_min" else f"t{p}"
            self.lines.append(f"    {self.names[self.arity + p]} = {ending}")

    def text(self) -> str:
        self.choose_stored()
        self.lines = ["for row in range(first, last):", "    o = row * n"]
        self.lines += [f"    x{i} = in{i}[{'row' if along is RowLayout.ROW else 0}]"
                       for i, along in enumerate(self.rows.inputs) if along in (RowLayout.ROW, RowLayout.ALL)]
        self.of_the_row(0)
        for phase in range(self.last_phase + 1):
            self.row_loop(phase)
            self.of_the_row(phase + 1)
        self.lines += [f"    out{j}[row] = {self.operand(result)}" for j, result in
                       enumerate(self.rows.expression.results) if self.rows.results[j] is RowLayout.ROW]
        self.lines += [f"    out{j}[block] = add(out{j}[block], {self.operand(register)})"
                       for j, register in self.added.items() if self.rows.results[j] is RowLayout.ALL]
        return "\n".join(self.in_blocks() if self.added else self.lines)

    def in_blocks(self) -> list[str]:
        """The lines that compute the rows of blocks, each with sums over its rows."""
        starts = [line for j in self.added for line in (
            ["    for i in range(n):", f"        out{j}[b + i] = zero"] if self.rows.results[j] is RowLayout.COLUMN
            else [f"    out{j}[block] = zero"])]
        rows = f"    for row in range(block * {_BLOCK}, min(rows, block * {_BLOCK} + {_BLOCK})):"
        return ["for block in range(first, last):", "    b = block * n", *starts, rows,
                *[f"    {line}" for line in self.lines[1:]]]


@cached(256)
def program(rows: RowExpression) -> tuple[str, list[float]] | str:
    """The lines that compute rows, and the constants that they read; or the reason why there are none.

    Examples
    --------
    >>> from opreg.elementwise.expression import exp
    >>> from opreg.elementwise.rows import row_sum, trace_rows
    >>> text, constants = program(trace_rows(lambda x: exp(x) / row_sum(exp(x)), (RowLayout.ELEMENT,)))
    >>> print(text)
    for row in range(first, last):
        o = row * n
        t1 = zero
        for i in range(n):
            x0 = in0[o + i]
            r0 = exp(x0)
            out0[o + i] = r0
            t1 = plus(t1, r0)
        r1 = t1
        for i in range(n):
            r0 = out0[o + i]
            r2 = divide(r0, r1)
            out0[o + i] = r2
    """
    for prim, _ in rows.expression.code:
        if prim.name not in VECTOR and prim.name not in (*_STARTS, "column", "row_size", "column_sum"):
            return f"{prim.name} has no vectorised form"
    row_program = _Program(rows)
    return row_program.text(), [float(text) for text in row_program.constants]


class Task(NamedTuple):
    """A program and its operands.

    Attributes
    ----------
    program : str
        Its lines. ``in0``, ``out0`` and so on are the arrays, ``c0`` and so on the constants, ``zero`` and ``least``
        (minus infinity) two more; ``rows`` and ``n`` are the sizes. It computes the rows, or blocks of them, from
        ``first`` to ``last``.
    ins, outs : lists of arrays
        The outputs that are read.
    constants : sequence of float
        Constants that differ among calls of an operator.
    rows, n : int
        The number of rows, and the number of elements in each.
    total : int
        The number of rows or blocks, which threads share.
    epilogue : sequence of functions
        Functions that add up the sums of blocks afterwards.
    """

    program: str
    ins: Sequence[Array]
    outs: Sequence[Array]
    constants: Sequence[float]
    rows: int
    n: int
    total: int
    epilogue: Sequence[Callable[[], object]]


def _task(loop: Loop | str, call: Call) -> Task | str:
    if isinstance(loop, str):
        return loop
    if RowLayout.CYCLE in loop.rows.inputs:
        return "some of its inputs have values for groups of channels"
    if len(loop.view) != 2 or loop.axes != (1,):
        return "its axis is not the last"
    if mode() == "auto" and RowLayout.ELEMENT not in loop.rows.results:
        if all(prim.name in REDUCTIONS or loop.rows.registers[a] is RowLayout.ROW
               for prim, args in loop.rows.expression.code for a in args if isinstance(a, int)):
            return "a call of NumPy reduces as fast"
        if loop.size > LONG:
            return f"{loop.size} elements are summed pairwise"
    outs = [out for out in call.outs if out is not None]
    rows = of_results(loop.rows, tuple([out is not None for out in call.outs]))
    row_program = program(rows)
    if isinstance(row_program, str):
        return row_program
    text, constants = row_program
    (count, n), epilogue = loop.view, []
    blocks = -(-count // _BLOCK)
    for j, along in enumerate(rows.results):
        if along in ACROSS:
            part = call.scratch(j, (blocks, n) if along is RowLayout.COLUMN else (blocks,), outs[j].dtype)
            epilogue.append(functools.partial(
                np.add.reduce, part, 0, None, outs[j].reshape(part.shape[1:])))
            outs[j] = part
    return Task(text, call.ins[:len(loop.rows.inputs)], outs, constants, count, n, blocks if epilogue else count,
                epilogue)


def _declines(task: Task | str) -> str | None:
    if isinstance(task, str):
        return task
    arrays = [*task.ins, *task.outs]
    dtype = arrays[0].dtype
    if dtype not in FORMATS:
        return f"dtype {dtype}: float32 and float64 are compiled"
    if any(array.dtype != dtype for array in arrays):
        return "dtypes differ"
    if not all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
        return "an array is not contiguous"
    if not all(out.flags.writeable for out in task.outs):
        return "an output is read-only"
    size = task.rows * task.n
    if size == 0:
        return "nothing to compute"
    if mode() == "auto" and (task.n < _ROW or size < _LEAST):
        return f"{task.rows} rows of {task.n} elements are too few"
    return None


def _plan(task: Task) -> tuple[Function, Callable[[], Callable[[], None]]]:
    """The compiled function ``kernel(table, first, last)`` of a task, and a function that makes the step from it."""
    named = {f"{prefix}{i}": array for prefix, group in (("in", task.ins), ("out", task.outs))
             for i, array in enumerate(group)}
    places = {address_of(array): array for array in named.values()}
    arrays, order = list(places.values()), {place: i for i, place in enumerate(places)}
    count = len(arrays)
    lines = [*[f"a{i} = address(table[{i}])" for i in range(count)],
             *[f"{name} = a{order[address_of(array)]}" for name, array in named.items()],
             f"c = address(table[{count}])", f"rows = table[{count + 1}]", f"n = table[{count + 2}]", "zero = c[0]",
             "least = c[1]", *[f"c{i} = c[{i + 2}]" for i in range(len(task.constants))], *task.program.split("\n")]
    source = "def kernel(table, first, last):\n" + "".join(f"    {line}\n" for line in lines)
    length = 4 * len(re.findall(r"\bfor i in", source))  # a pass over a row counts as four instructions
    function = function_of(source, arrays[0].dtype, length)
    numbers = np.array([0.0, -math.inf, *task.constants], arrays[0].dtype)
    run = functools.partial(runner, function, [*arrays, numbers], [task.rows, task.n], task.total,
                            task.rows * task.n // max(task.total, 1))
    return function, run if not task.epilogue else lambda: functools.partial(threads.call_all, (run(), *task.epilogue))


def attach(op: Op, loop_of: Callable[[Call], Loop | str], ufuncs: Callable[[Call], list[Callable[[], object]]]
           ) -> None:
    """Give an operator whose calls are loops, or some of them, the kernel ``numba``; until the function is compiled,
    the steps of ``ufuncs`` run. An operator with a body gets none: the operators of the body have kernels."""
    if op.traits.traced:
        return

    def accepts(call: Call) -> str | None:
        return unavailable(call) or _declines(_task(loop_of(call), call))

    @op.kernel("numba", bound=True, accepts=accepts, rank=Rank.COMPILED)
    def rows_numba(call: Call) -> list[Callable[[], object]]:
        task = _task(loop_of(call), call)
        assert isinstance(task, Task)
        return steps(*_plan(task), functools.partial(ufuncs, call))
