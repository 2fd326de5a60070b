"""Loops over contiguous sets, compiled with numba: rows of values, one after the other.

Each phase reads a row once. If a later phase needs an expensive value such as an exponential again, it is stored in an
output until the output's own result is written.
"""

from __future__ import annotations

from collections.abc import Callable

from opreg.core.cache import cached
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.elementwise.loop_text import LONG
from opreg.elementwise.loops import Loop
from opreg.elementwise.rows import REDUCTIONS, RowExpression, RowLayout, of_results

from .compiler import mode
from .row_reductions import Task, attach_rows
from .vector import VECTOR

__all__ = ["attach", "program"]

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

    def wanted(self, phase: int) -> list[int]:
        """The element-wise registers that a phase has to compute."""
        registers: list[int | float] = [self.code[p].args[0] for p in self.rows.reduced(phase)]
        if phase == self.last_phase:
            registers += [r for r, along in zip(self.rows.expression.results, self.rows.results)
                      if along is RowLayout.ELEMENT]
        return [r for r in registers if isinstance(r, int)]

    def needed(self, phase: int) -> list[int]:
        """The element-wise instructions of a phase, without those whose values were stored by an earlier one."""
        return self.rows.needed(self.wanted(phase), [
            register for register in self.stored if self.rows.phases[register] < phase])

    def choose_stored(self) -> None:
        """Choose the register to store: an expensive one that the last phase needs, if it reads no element-wise
        input."""
        last = self.last_phase
        if not last:
            return
        free = [j for j, along in enumerate(self.rows.results) if along is RowLayout.ELEMENT]
        dear = [self.arity + p for p in self.needed(last) if self.code[p].prim.name not in _CHEAP
                and self.rows.phases[self.arity + p] < last and self.arity + p in self.read_before(last)]
        if len(dear) != 1 or not free:
            return
        self.stored[dear[0]] = free[0]
        if any(self.rows.inputs[i] is RowLayout.ELEMENT for i in self.inputs(last)):  # an output may share its memory
            self.stored.clear()

    def read_before(self, phase: int) -> set[int]:
        """The element-wise registers that the phase before computes."""
        return {self.arity + p for p in self.needed(phase - 1)}

    def inputs(self, phase: int) -> list[int]:
        """The inputs with a value per element or column that a phase reads."""
        read = {a for p in self.needed(phase) for a in self.code[p].args} | set(self.wanted(phase))
        return [i for i in range(self.arity) if i in read and self.rows.registers[i] is RowLayout.ELEMENT]

    def of_the_row(self, phase: int) -> None:
        """Write the instructions with one value per row that can be computed from this phase on."""
        self.lines += [f"    {self.statement(position)}" for position in self.rows.of_rows(phase)]

    def through(self, phase: int) -> None:
        """Write the loop over a row for a phase."""
        reduced = self.rows.reduced(phase)
        for p in reduced:
            self.lines.append(f"    t{p} = {_STARTS[self.code[p].prim.name]}")
        body = [f"x{i} = in{i}[{'o + ' if self.rows.inputs[i] is RowLayout.ELEMENT else ''}i]"
                for i in self.inputs(phase)]
        needed = self.needed(phase)
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
        self.lines += [f"    x{i} = in{i}[row]" for i, along in enumerate(self.rows.inputs) if along is RowLayout.ROW]
        self.of_the_row(0)
        for phase in range(self.last_phase + 1):
            self.through(phase)
            self.of_the_row(phase + 1)
        self.lines += [f"    out{j}[row] = {self.operand(result)}" for j, result in
                       enumerate(self.rows.expression.results) if self.rows.results[j] is RowLayout.ROW]
        return "\n".join(self.lines)


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
        if prim.name not in VECTOR and prim.name not in (*_STARTS, "column", "row_size"):
            return f"{prim.name} has no vectorised form"
    if RowLayout.CYCLE in rows.inputs:
        return "an input repeats after some rows"
    row_program = _Program(rows)
    return row_program.text(), [float(text) for text in row_program.constants]


def _task(loop: Loop | str, call: Call) -> Task | str:
    if isinstance(loop, str):
        return loop
    if len(loop.view) != 2 or loop.axes != (1,):
        return "its axis is not the last"
    if mode() == "auto" and RowLayout.ELEMENT not in loop.rows.results:
        if all(prim.name in REDUCTIONS or loop.rows.registers[a] is RowLayout.ROW
               for prim, args in loop.rows.expression.code for a in args if isinstance(a, int)):
            return "a call of NumPy reduces as fast"
        if loop.size > LONG:
            return f"{loop.size} elements are summed pairwise"
    outs = [out for out in call.outs if out is not None]
    row_program = program(of_results(loop.rows, tuple([out is not None for out in call.outs])))
    if isinstance(row_program, str):
        return row_program
    text, constants = row_program
    return Task(text, call.ins[:len(loop.rows.inputs)], outs, constants, *loop.view)


def attach(op: Op, loop_of: Callable[[Call], Loop | str], ufuncs: Callable[[Call], list[Callable[[], object]]]
           ) -> None:
    """Give an operator whose calls are loops, or some of them, the kernel ``numba``; until the function is compiled,
    the steps of ``ufuncs`` run."""
    attach_rows(op, lambda call: _task(loop_of(call), call), ufuncs)
