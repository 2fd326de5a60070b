"""Expressions along rows: element-wise arithmetic with sums and maxima of each row in between.

They are written as functions of terms, as element-wise ones are. An input is an element, or one number for a row or for
a column; a result is an element, or one number for a row where it depends on elements through reductions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from ..core.cache import cached
from .expression import Expression, Primitive, Term, compiled

__all__ = ["REDUCTIONS", "Along", "RowExpression", "column", "row_max", "row_size", "row_sum", "trace_rows"]


class Along(Enum):
    """What an input or a result has a number for."""

    ELEMENT = "element"
    ROW = "row"
    COLUMN = "column"


def _structural(name: str) -> Primitive:
    return Primitive(name, name, None, name)


_SUM, _MAX, _COLUMN, _SIZE = map(_structural, ("row_sum", "row_max", "column", "row_size"))

#: The primitives that make one number of a row.
REDUCTIONS = ("row_sum", "row_max")


def row_sum(term: Any) -> Any:
    """The sum of what a term is for the elements of a row."""
    return Term(_SUM, (term,))


def row_max(term: Any) -> Any:
    """The largest of what a term is for the elements of a row; none is a number where one is none."""
    return Term(_MAX, (term,))


def column() -> Any:
    """Which element of its row one is, from 0."""
    return Term(_COLUMN, ())


def row_size() -> Any:
    """How many elements a row has."""
    return Term(_SIZE, ())


class RowExpression:
    """Instructions with reductions, in phases: what a phase reads of the row the phase before has reduced.

    Attributes
    ----------
    expression : Expression
        All instructions; its results are those of the row expression.
    inputs, results : tuple of Along
    registers : list of Along
        Of every register: whether it differs by element (also where it differs by column alone), or is the row's.
    phases : list of int
        Of every register the phase that has it: how many reductions come before, one after another.
    """

    __slots__ = ("expression", "inputs", "results", "registers", "phases")

    def __init__(self, expression: Expression, inputs: Sequence[Along]):
        self.expression, self.inputs = expression, tuple(inputs)
        self.registers = [Along.ROW if along is Along.ROW else Along.ELEMENT for along in inputs]
        self.phases = [0] * len(inputs)
        for prim, args in expression.code:
            reads = [a for a in args if isinstance(a, int)]
            phase = max([self.phases[a] for a in reads], default=0)
            reduced = prim.name in REDUCTIONS
            element = prim.name == "column" or any(self.registers[a] is Along.ELEMENT for a in reads)
            self.registers.append(Along.ELEMENT if element and not reduced else Along.ROW)
            self.phases.append(phase + reduced)
        self.results = tuple([self.registers[r] if isinstance(r, int) else Along.ROW for r in expression.results])

    def needed(self, registers: Sequence[int | float]) -> list[int]:
        """The positions of the instructions by element that these registers are made of, in order, not going through
        reductions and numbers of the row."""
        arity, code = self.expression.arity, self.expression.code
        wanted: set[int] = set()
        stack = [r for r in registers if isinstance(r, int)]
        while stack:
            register = stack.pop()
            if register < arity or register in wanted or self.registers[register] is Along.ROW:
                continue
            wanted.add(register)
            stack += [a for a in code[register - arity].args if isinstance(a, int)]
        return sorted(register - arity for register in wanted)


@cached(256)
def trace_rows(function: Callable, inputs: tuple[Along, ...], **settings: Any) -> RowExpression:
    """The row expression of a Python function of terms, which gives one or several.

    Examples
    --------
    >>> from opreg.elementwise.expression import exp
    >>> softmax = trace_rows(lambda x: exp(x) / row_sum(exp(x)), (Along.ELEMENT,))
    >>> softmax.expression, softmax.phases
    (exp(0) row_sum(1) divide(1, 2), [0, 0, 1, 1])
    """
    terms = [Term(None, (i,)) for i in range(len(inputs))]
    results = function(*terms, **settings)
    return RowExpression(compiled(terms, *(results if isinstance(results, tuple) else (results,))), inputs)
