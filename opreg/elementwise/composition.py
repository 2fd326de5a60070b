"""Instructions of several expressions, combined into the one expression of a fused node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.keys import exact
from .expression import Expression, Instruction, Primitive, extract_registers

__all__ = ["Composition"]


class Composition:
    """Instructions combined from several expressions: equal ones are added once, and constants are folded.

    Examples
    --------
    >>> from opreg.elementwise.expression import exp, trace
    >>> whole = Composition(np.dtype("float32"))
    >>> x = whole.input()
    >>> y = whole.add(trace(lambda x: exp(x) * 2.0, 1), [x])
    >>> z = whole.add(trace(lambda x, y: exp(x) + y, 2), [x, y])
    >>> whole.finish([z, y])[0]
    exp(0) multiply(1, 2.0) add(1, 2)
    """

    def __init__(self, dtype: np.dtype):
        self.arity, self.dtype = 0, dtype
        self._code: list[Instruction] = []
        self._known: dict[object, int] = {}

    def input(self) -> int:
        """Add an input; until ``finish`` inputs have negative numbers, starting with ``-1``."""
        self.arity += 1
        return -self.arity

    def add(self, expression: Expression, args: Sequence[int | float]) -> int | float:
        """Add an expression applied to these registers and constants (floats); returns its result."""
        registers = list(args)
        for prim, places in expression.code:
            registers.append(self._instruction(prim, tuple([registers[a] if isinstance(a, int) else a
                                                            for a in places])))
        result = expression.result
        return registers[result] if isinstance(result, int) else result

    def _instruction(self, prim: Primitive, args: tuple[int | float, ...]) -> int | float:
        constants = sum([arg.__class__ is float for arg in args])
        if constants == len(args):
            with np.errstate(all="ignore"):
                return float(prim.resolve(np)(*[np.asarray(arg, self.dtype) for arg in args]))
        key = prim.name, exact(args) if constants else args  # 1.0 is no register, and 0.0 not -0.0
        register = self._known.get(key)
        if register is None:
            register = self._known[key] = len(self._code)
            self._code.append(Instruction(prim, args))
        return register

    def finish(self, results: Sequence[int | float], inputs: Sequence[int] = ()) -> tuple[Expression, list[int]]:
        """The expression with these results, without instructions they do not need, and the numbers of its inputs.

        ``inputs`` gives the order of the inputs; by default it is the one in which they were added.
        """
        order = list(inputs) or [-1 - i for i in range(self.arity)]
        places = {number: i for i, number in enumerate(order)}

        def placed(number: int | float) -> int | float:
            if not isinstance(number, int):
                return number
            return places[number] if number < 0 else self.arity + number

        code = [Instruction(prim, tuple(map(placed, args))) for prim, args in self._code]
        results = list(map(placed, results))
        expression, read = extract_registers(Expression.of(self.arity, code, results), results, range(self.arity))
        return expression, [order[i] for i in read]
