"""A multiple added to an array in place, ``a ± b * c`` with a scalar ``c``, in one pass of BLAS.

Each step of gradient descent ends with such an addition. NumPy takes two passes and stores the product in between;
BLAS reads two arrays and writes one, and uses the threads that have just computed matrix products. BLAS rounds once
where two ufuncs round twice. So this kernel serves only arrays that are updated in place; elsewhere results equal those
of the operators one by one. A compiled loop comes first: it takes one pass, too, and does not pass through ``ctypes``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from opreg.core import threads
from opreg.core.addresses import address_of
from opreg.core.launch import Call, Rank
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.core.steps import PlainStep
from opreg.elementwise.expression import Expression
from opreg.typing import Array

from .blas import Multiple, multiple

__all__ = ["attach"]

# From this number of elements on, one pass of BLAS saves more than its call costs.
_LEAST = 1 << 14
_SIGNS = {"add": 1.0, "subtract": -1.0}


class _Terms(NamedTuple):
    """The parts of ``a ± b * c``: the indices of the inputs ``a`` and ``b``, ``c`` as an index or a constant, and the
    sign."""

    a: int
    b: int
    c: int | float
    sign: float


def _terms(expression: Expression, sizes: Sequence[int]) -> _Terms | None:
    """The parts of an expression whose inputs have these sizes; None if it has another form."""
    if len(expression.code) != 2 or expression.results != (expression.arity + 1,):
        return None
    (product, factors), (total, sides) = expression.code
    if product.name != "multiply" or total.name not in _SIGNS or sides.count(expression.arity) != 1:
        return None
    a = sides[1 - sides.index(expression.arity)]
    if a.__class__ is not int or (total.name == "subtract" and sides[0] != a):
        return None
    single = [i for i, factor in enumerate(factors) if factor.__class__ is not int or sizes[factor] == 1]
    if len(single) != 1:
        return None
    b, c = factors[1 - single[0]], factors[single[0]]
    return _Terms(a, b, c, _SIGNS[total.name])  # type: ignore[arg-type]  # an input, since it has several elements


class _Step(PlainStep):
    """Adds the multiple by BLAS, or by the ufuncs if the factor is zero: then BLAS adds nothing, even if an element is
    not finite."""

    __slots__ = ("_added", "_factor", "_sign", "_otherwise")

    def __init__(self, added: Multiple, factor: Array, sign: float, otherwise: Sequence[Callable[[], object]]):
        self._added, self._factor, self._sign, self._otherwise = added, factor, sign, otherwise

    def __call__(self) -> None:
        number = self._factor.item()
        if number:
            self._added.a = self._sign * number
            self._added()
        else:
            threads.call_all(self._otherwise)


def attach(op: Op, expression: Callable[[Attrs], Expression],
           ufuncs: Callable[[Call], list[Callable[[], object]]]) -> None:
    """Give an operator with an expression, a function of its attributes, the kernel ``multiple``."""

    def accepts(call: Call) -> str | None:
        out = call.outs[0]
        if call.xp is not np or len(call.outs) != 1 or out is None or out.size < _LEAST:
            return f"for an array of {_LEAST} numbers or more on the host"
        terms = _terms(expression(call.attrs), [array.size for array in call.ins])
        if terms is None:
            return "only of a sum of an array and a multiple"
        if terms.a not in call.variables:
            return "for arrays that are assigned"
        a, b = call.ins[terms.a], call.ins[terms.b]
        if not a.shape == b.shape == out.shape or a.dtype != out.dtype or address_of(a) != address_of(out):
            return "the sum is not written to the array's memory"
        if np.may_share_memory(b, out):
            return "both arrays share memory"
        added = multiple(out, 1.0, b)
        if added is None:
            return "an array is not laid out as BLAS reads it, or of another dtype"
        factor = call.ins[terms.c] if terms.c.__class__ is int else np.array(terms.c, out.dtype)
        call.details = added, factor, terms.sign
        return None

    @op.kernel("multiple", bound=True, accepts=accepts, rank=Rank.OPERATOR)
    def multiple_added(call: Call) -> list[Callable[[], object]]:
        added, factor, sign = call.details
        return [_Step(added, factor, sign, ufuncs(call))]
