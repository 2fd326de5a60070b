"""Row expressions: element-wise arithmetic with reductions of rows, such as sums and maxima, in between.

They are written as functions of terms, like element-wise expressions. An input has one value per element, per row or
per column. A result has one value per element, one per row if it depends on elements only through reductions, or one
per column if it is a ``column_sum``. The sets that are reduced may be columns too; below they are always called rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from ..core.cache import Recent, cached
from ..core.keys import exact
from .expression import Expression, Instruction, Primitive, Term, compiled, extract_registers

__all__ = ["ACROSS", "REDUCTIONS", "RowLayout", "RowExpression", "column", "column_sum", "of_results",
           "split_reductions",
           "row_max", "row_mean", "row_min", "row_product", "row_size", "row_sum", "trace_rows", "traced"]


class RowLayout(Enum):
    """Whether an input or a result has one value per element, per row, per column, or for all; ``CYCLE`` is one value
    per row, repeated after a number of rows."""

    ELEMENT = "element"
    ROW = "row"
    COLUMN = "column"
    CYCLE = "row in a cycle"
    ALL = "all"


def _structural(name: str) -> Primitive:
    return Primitive(name, name, None, name)


#: The primitives that reduce a row to one value.
REDUCTIONS = ("row_sum", "row_max", "row_min", "row_product")

#: The layouts of results that are added over rows.
ACROSS = (RowLayout.COLUMN, RowLayout.ALL)

_SUM, _MAX, _MIN, _PRODUCT, _COLUMN, _SIZE, _COLUMN_SUM = map(_structural, (
    *REDUCTIONS, "column", "row_size", "column_sum"))


def row_sum(term: Any) -> Any:
    """The sum of a term over a row."""
    return Term(_SUM, (term,))


def row_max(term: Any) -> Any:
    """The maximum of a term over a row; NaN if an element is NaN."""
    return Term(_MAX, (term,))


def row_min(term: Any) -> Any:
    """The minimum of a term over a row; NaN if an element is NaN."""
    return Term(_MIN, (term,))


def row_product(term: Any) -> Any:
    """The product of a term over a row."""
    return Term(_PRODUCT, (term,))


def row_mean(term: Any) -> Any:
    """The mean of a term over a row."""
    return row_sum(term) / row_size()


def column_sum(term: Any) -> Any:
    """The sum of a term over all rows, for each column; of a term with one value per row, the sum for all.

    It can only be a result: no instruction reads it.
    """
    return Term(_COLUMN_SUM, (term,))


def column() -> Any:
    """Index of an element in its row, from 0."""
    return Term(_COLUMN, ())


def row_size() -> Any:
    """Number of elements of a row."""
    return Term(_SIZE, ())


class RowExpression:
    """Instructions with reductions, in phases: a phase reads the reductions of earlier phases.

    Attributes
    ----------
    expression : Expression
        All instructions; its results are those of the row expression.
    inputs, results : tuple of RowLayout
        Whether each has a value per element, row or column. If the parameter ``sets`` says that columns are reduced,
        these count as rows in ``results`` and ``registers``.
    registers : list of RowLayout
        For every register, ``ELEMENT`` if it has a value per element or per column, else ``ROW``; for a ``column_sum``,
        ``COLUMN`` or ``ALL``.
    phases : list of int
        The phase in which each register is computed: the number of reductions that must be done one after another
        before it.
    """

    __slots__ = ("expression", "inputs", "results", "registers", "phases")

    def __init__(self, expression: Expression, inputs: Sequence[RowLayout], sets: RowLayout = RowLayout.ROW):
        self.expression, self.inputs = expression, tuple(inputs)
        rows = (RowLayout.ROW, RowLayout.CYCLE, RowLayout.ALL) if sets is RowLayout.ROW else (sets,)
        self.registers = [RowLayout.ROW if along in rows else RowLayout.ELEMENT for along in inputs]
        self.phases = [0] * len(inputs)
        for prim, args in expression.code:
            reads = [a for a in args if isinstance(a, int)]
            phase = max([self.phases[a] for a in reads], default=0)
            reduced = prim.name in REDUCTIONS
            element = prim.name == "column" or any(self.registers[a] is RowLayout.ELEMENT for a in reads)
            if prim.name == "column_sum":
                self.registers.append(RowLayout.COLUMN if element else RowLayout.ALL)
            else:
                self.registers.append(RowLayout.ELEMENT if element and not reduced else RowLayout.ROW)
            self.phases.append(phase + reduced)
        self.results = tuple([self.registers[r] if isinstance(r, int) else RowLayout.ROW for r in expression.results])

    @property
    def last_phase(self) -> int:
        """The phase of the last instruction."""
        return max(self.phases, default=0)

    def addend(self, result: int) -> int | float | None:
        """The register whose values over all rows are added to a result; None for results that are no such sum."""
        register = self.expression.results[result]
        return self.expression.code[int(register) - self.expression.arity].args[0] if (
            self.results[result] in ACROSS) else None

    def reduced(self, phase: int) -> list[int]:
        """The positions of the reductions that end a phase."""
        return self._positions(phase + 1, True)

    def of_rows(self, phase: int) -> list[int]:
        """The positions of the other instructions with one value per row that can be computed from a phase on."""
        return self._positions(phase, False)

    def _positions(self, phase: int, reductions: bool) -> list[int]:
        return [position for position, (prim, _) in enumerate(self.expression.code)
                if self.registers[register := self.expression.arity + position] is RowLayout.ROW
                and self.phases[register] == phase and (prim.name in REDUCTIONS) is reductions]

    def needed(self, registers: Sequence[int | float], known: Sequence[int] = ()) -> list[int]:
        """The positions of the element-wise instructions that these registers depend on, in order; registers with one
        value per row, and those that are ``known``, are not searched further."""
        arity, code = self.expression.arity, self.expression.code
        needed: set[int] = set()
        stack = [r for r in registers if isinstance(r, int)]
        while stack:
            register = stack.pop()
            if register < arity or register in needed or register in known or (
                    self.registers[register] is RowLayout.ROW):
                continue
            needed.add(register)
            stack += [a for a in code[register - arity].args if isinstance(a, int)]
        return sorted(register - arity for register in needed)


def traced(function: Callable, count: int, **settings: Any) -> Expression:
    """The expression of a Python function that takes ``count`` terms and returns one or several."""
    terms = [Term(None, (i,)) for i in range(count)]
    results = function(*terms, **settings)
    return compiled(terms, *(results if isinstance(results, tuple) else (results,)))


def split_reductions(expression: Expression) -> tuple[Expression, Expression, list[int]]:
    """Split an expression, in which no reduction depends on another, into two, so that a row may be reduced in parts.

    Returns
    -------
    first, second : Expression
        The first computes the reductions of one part. The second computes the results from the reductions of all parts,
        which are its first inputs.
    others : list of int
        The inputs of the expression that the second reads after them.

    Examples
    --------
    >>> first, second, others = split_reductions(traced(lambda x, mean: row_sum(x * x) - mean, 2))
    >>> first, second, others
    (multiply(0, 0) row_sum(2), row_sum(0) subtract(2, 1), [1])
    """
    arity, code = expression.arity, expression.code
    reductions = [arity + p for p, (prim, _) in enumerate(code) if prim.name in REDUCTIONS]
    first, _ = extract_registers(expression, reductions, range(arity), list(range(arity)))
    count = len(reductions)
    behind, read = extract_registers(expression, expression.results, [*reductions, *range(arity)], reductions)
    again = [Instruction(code[register - arity].prim, (i,)) for i, register in enumerate(reductions)]
    width = behind.arity

    def moved(register: int | float) -> int | float:
        if not isinstance(register, int):
            return register
        return width + register if register < count else register if register < width else register + count

    again += [Instruction(prim, tuple([moved(a) for a in args])) for prim, args in behind.code]
    return first, Expression.of(width, again, [moved(r) for r in behind.results]), read[count:]


@cached(256)
def of_results(rows: RowExpression, requested: tuple[bool, ...]) -> RowExpression:
    """The row expression with only the wanted results, without instructions that they do not need.

    Examples
    --------
    >>> rows = trace_rows(lambda x: (x - row_sum(x), row_sum(x) * x), (RowLayout.ELEMENT,))
    >>> of_results(rows, (True, False)).expression
    row_sum(0) subtract(0, 1)
    """
    if all(requested):
        return rows
    results = [result for result, want in zip(rows.expression.results, requested) if want]
    inputs = range(rows.expression.arity)
    expression, _ = extract_registers(rows.expression, results, inputs, inputs)
    return RowExpression(expression, rows.inputs)


_TRACED = Recent(256, "elementwise.rows.trace_rows")


def trace_rows(function: Callable, inputs: tuple[RowLayout, ...], **settings: Any) -> RowExpression:
    """The row expression of a Python function, which takes a term for each input and returns one or several.

    Examples
    --------
    >>> from opreg.elementwise.expression import exp
    >>> softmax = trace_rows(lambda x: exp(x) / row_sum(exp(x)), (RowLayout.ELEMENT,))
    >>> softmax.expression, softmax.phases
    (exp(0) row_sum(1) divide(1, 2), [0, 0, 1, 1])
    """
    key = function, inputs, exact(tuple(settings.items()))
    rows = _TRACED[key]
    if rows is None:
        rows = RowExpression(traced(function, len(inputs), **settings), inputs)
        _TRACED.keep(key, rows)
    return rows
