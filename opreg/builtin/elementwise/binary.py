"""Element-wise operators of two arrays, or of an array and a number: each row registers five forms.

For ``mod`` these are ``_mod`` for arrays of one shape, ``broadcast_mod`` for arrays that broadcast, ``_mod_scalar``
with a number on the right, ``_rmod_scalar`` with a number on the left, and the gradients of all. Comparisons return 0
or 1 in the dtype of their inputs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.attrs import Field, Schema
from ...core.declarations import ZERO
from ...core.keys import cached_by_value
from ...core.op import Op
from ...core.registry import REGISTERED, ops
from ...core.value import BINARY, Value
from ...custom.composed import composed
from ...elementwise import expression as e
from ...elementwise.expression import Expression, Term, floor, where
from ...elementwise.integers import floor_quotient
from ...typing import Array, ArrayModule
from .elementwise import elementwise

__all__ = ["binary", "scalar"]

_ARGUMENTS = ("lhs", "rhs")


def binary(function: Callable, same: str, broadcast: str, doc: str, *, aliases: Sequence[str] = (),
           broadcast_aliases: Sequence[str] = (),
           derivatives: Sequence[Callable | None] | None = None) -> None:
    """Register the form for arrays of one shape, and the form for arrays that broadcast."""
    elementwise(function, name=same, arguments=_ARGUMENTS, aliases=aliases, derivatives=derivatives, doc=doc)
    elementwise(function, name=broadcast, arguments=_ARGUMENTS, aliases=broadcast_aliases, broadcasts=True,
                derivatives=derivatives, doc=f"{doc} Shapes broadcast.")


# --------------------------------------------------------------------------------------- array and scalar

_SCALAR = Schema([Field("scalar", float, 1.0), Field("is_int", bool, True)])


def _dtypes(ins: list, outs: list, *, is_int: bool) -> tuple[list, list]:
    """An integer dtype is kept unless the number is declared to be a float; booleans become integers."""
    data = ins[0] if ins[0] is not None else outs[0]
    if data is None or data.kind not in "iub" or (is_int and data.kind != "b"):
        return [data], [data]
    return [data], [np.dtype(np.int64 if is_int else np.float64)]


def scalar(function: Callable, name: str, doc: str, *aliases: str, derivative: Callable | None = None,
           wraps: bool = True) -> Op:
    """Register an element-wise operator of an array and a number. With integers the number wraps around to their dtype,
    or with ``wraps=False`` only the result does."""
    @cached_by_value(1024)
    def among(scalar: float, dtype: np.dtype) -> Expression:
        """The expression for integer arrays: the scalar is truncated. If the result is an integer, the scalar is cast
        to the dtype as in MXNet, so that one that is too large wraps around."""
        rounded = expression({"scalar": float(math.trunc(scalar)) if math.isfinite(scalar) else scalar})
        if wraps and rounded.exact and dtype.kind != "b":
            typed = expression({"scalar": float(np.int64(scalar).astype(dtype))})
            # with uint64, a negative scalar stays an int64
            return typed if typed.exact else rounded
        return rounded

    def on_integers(xp: ArrayModule, data: Array, *, scalar: float, is_int: bool) -> Callable[[Array], Array]:
        formula = among(scalar, data.dtype) if is_int else expression({"scalar": scalar})
        if not is_int:
            return lambda data: formula(xp, data.astype(xp.float64))
        return (formula.integer_function(data.dtype) if xp is np else None) or functools.partial(formula, xp)

    op = elementwise(function, name=name, arguments=("data",), schema=_SCALAR, aliases=aliases, doc=doc,
                     derivatives=[derivative], on_integers=on_integers)
    op.types(_dtypes)
    expression = op.rules.expression

    return op


# ---------------------------------------------------------------------------------------------- arithmetic


def _mod(x: Term | float, y: Term | float) -> Term | float:
    """The remainder with the divisor's sign; zero for a divisor of zero."""
    if isinstance(y, Term):
        return where(y, e.mod(x, y), 0.0)
    return x % y if y else 0.0


binary(lambda x, y: x + y, "elemwise_add", "broadcast_add", "``lhs + rhs``.",
       aliases=("_plus", "_add", "_Plus", "_grad_add"), broadcast_aliases=("broadcast_plus",))
binary(lambda x, y: x - y, "elemwise_sub", "broadcast_sub", "``lhs - rhs``.",
       aliases=("_minus", "_sub", "_Minus"), broadcast_aliases=("broadcast_minus",))
binary(lambda x, y: x * y, "elemwise_mul", "broadcast_mul", "``lhs * rhs``.", aliases=("_mul", "_Mul"))
binary(lambda x, y: x / y, "elemwise_div", "broadcast_div", "``lhs / rhs``; the quotient of integers is truncated "
                                                            "towards zero.",
       aliases=("_div", "_Div"))
binary(_mod, "_mod", "broadcast_mod", "The remainder of ``lhs / rhs`` with the sign of ``rhs``; 0 where ``rhs`` is 0.",
       aliases=("_Mod",), derivatives=(lambda g, x, y, z: g, lambda g, x, y, z: -g * floor(x / y)))
elementwise(e.mod, name="_numpy_mod", arguments=_ARGUMENTS, broadcasts=True,
            derivatives=(lambda g, x, y, z: g, lambda g, x, y, z: -g * floor(x / y)),
            doc="The remainder of ``lhs / rhs`` with the sign of ``rhs``. Where ``rhs`` is 0 it is NaN, among integers "
                "0. Shapes broadcast.")


def _floor_quotient(xp: ArrayModule, x1: Array, x2: Array) -> Callable[[Array, Array], Array]:
    if x1.dtype.kind == "b":
        return lambda x1, x2: floor_quotient(xp, x1.astype(xp.int8), x2.astype(xp.int8)).astype(xp.bool_)
    return functools.partial(floor_quotient, xp)


elementwise(lambda x1, x2: floor(x1 / x2), name="_npi_floor_divide", arguments=("x1", "x2"), broadcasts=True,
            on_integers=_floor_quotient, doc="``x1 / x2``, rounded down. Among integers, division by zero gives the "
            "largest value of the dtype for positive ``x1``, the smallest for negative, 0 for 0. Shapes broadcast."
            ).grad(ZERO)
binary(lambda x, y: x ** y, "_power", "broadcast_power", "``lhs`` to the power ``rhs``.", aliases=("_Power",))
binary(e.maximum, "_maximum", "broadcast_maximum", "The larger of both elements; NaN if one of them is NaN.",
       aliases=("_Maximum",),
       broadcast_aliases=("_npi_maximum",))
binary(e.minimum, "_minimum", "broadcast_minimum", "The smaller of both elements; NaN if one of them is NaN.",
       aliases=("_Minimum",),
       broadcast_aliases=("_npi_minimum",))
binary(e.hypot, "_hypot", "broadcast_hypot", "``sqrt(lhs ** 2 + rhs ** 2)``.", aliases=("_Hypot",))


@composed(name="_scatter_elemwise_div", cheap=True)
def scatter_elemwise_div(lhs, rhs):
    """``lhs / rhs``; of a ``row_sparse`` ``lhs`` only the stored rows are divided."""
    return ops.elemwise_div(lhs, rhs)


scalar(lambda x, *, scalar: x + scalar, "_plus_scalar", "``data + scalar``.", "_PlusScalar")
scalar(lambda x, *, scalar: x - scalar, "_minus_scalar", "``data - scalar``.", "_MinusScalar")
scalar(lambda x, *, scalar: x + scalar, "_scatter_plus_scalar",
       "``data + scalar``; of sparse ``data`` only the stored elements are changed.")
scalar(lambda x, *, scalar: x - scalar, "_scatter_minus_scalar",
       "``data - scalar``; of sparse ``data`` only the stored elements are changed.")
scalar(lambda x, *, scalar: scalar - x, "_rminus_scalar", "``scalar - data``.", "_RMinusScalar")
scalar(lambda x, *, scalar: x * scalar, "_mul_scalar", "``data * scalar``.", "_MulScalar").identity(
    lambda ins, outs, *, scalar: scalar == 1.0 and ins[0] == outs[0])
scalar(lambda x, *, scalar: x / scalar, "_div_scalar", "``data / scalar``.", "_DivScalar", wraps=False)
scalar(lambda x, *, scalar: scalar / x, "_rdiv_scalar", "``scalar / data``.", "_RDivScalar",
       wraps=False)
scalar(lambda x, *, scalar: _mod(x, scalar), "_mod_scalar", "The remainder of ``data / scalar`` with the sign of "
                                                            "``scalar``; 0 if ``scalar`` is 0.",
       "_ModScalar", derivative=lambda g, x, y: g)
scalar(lambda x, *, scalar: _mod(scalar, x), "_rmod_scalar", "The remainder of ``scalar / data`` with the sign of "
                                                             "``data``; 0 where ``data`` is 0.",
       "_RModScalar", derivative=lambda g, x, y, *, scalar: -g * floor(scalar / x))
scalar(lambda x, *, scalar: e.mod(x, scalar), "_npi_mod_scalar",
       "The remainder of ``data / scalar`` with the sign of ``scalar``. If ``scalar`` "
       "is 0 it is NaN, among integers 0.", derivative=lambda g, x, y: g)
scalar(lambda x, *, scalar: e.mod(scalar, x), "_npi_rmod_scalar",
       "The remainder of ``scalar / data`` with the sign of ``data``. Where ``data`` is 0 it is NaN, among integers 0.",
       derivative=lambda g, x, y, *, scalar: -g * floor(scalar / x))
scalar(lambda x, *, scalar: x ** scalar, "_power_scalar", "``data`` to the power ``scalar``.",
       "_PowerScalar", wraps=False, derivative=lambda g, x, y, *, scalar: g * scalar * x ** (scalar - 1.0))
scalar(lambda x, *, scalar: scalar ** x, "_rpower_scalar", "``scalar`` to the power ``data``.", "_RPowerScalar")
scalar(lambda x, *, scalar: e.maximum(x, scalar), "_maximum_scalar", "The larger of ``data`` and ``scalar``; NaN if "
                                                                     "one of them is NaN.",
       "_MaximumScalar", "_npi_maximum_scalar")
scalar(lambda x, *, scalar: e.minimum(x, scalar), "_minimum_scalar", "The smaller of ``data`` and ``scalar``; NaN if "
                                                                     "one of them is NaN.",
       "_MinimumScalar", "_npi_minimum_scalar")
scalar(lambda x, *, scalar: e.hypot(x, scalar), "_hypot_scalar", "``sqrt(data ** 2 + scalar ** 2)``.",
       "_HypotScalar", "_npi_hypot_scalar")


elementwise(lambda g: g, name="_backward_mod", arguments=("g",), on_integers=lambda xp, g: xp.zeros_like,
            doc="The gradient itself; zeros among integers, where a remainder has none.")


def _without_slope_among_integers(op: Op) -> None:
    of_floats, opened = op.rules.grad.function, op.rules.open_expressions

    @op.grad  # the expression would have the derivative of a real remainder
    def mod_grad(g: Value, ins: Sequence[Value], outs: Sequence[Value], *, needs: Sequence[bool], **attrs: Any
                 ) -> list[Value | None]:
        gradients = of_floats(g, ins, outs, needs=needs, **attrs)
        return [gradient if gradient is None else ops._backward_mod(gradient) for gradient in gradients]

    op.rules.open_expressions = opened  # among floats the gradient is the same


for _name in ("_mod", "broadcast_mod", "_mod_scalar", "_rmod_scalar",
              "_numpy_mod", "_npi_mod_scalar", "_npi_rmod_scalar"):
    _without_slope_among_integers(REGISTERED[_name])

# --------------------------------------------------------------------------------- comparisons and logic

#: The condition that each comparison or logical function tests, for the two sides.
CONDITIONS = {
    "equal": "{} equals {}",
    "not_equal": "{} differs from {}",
    "greater": "{} is greater than {}",
    "greater_equal": "{} is greater than or equal to {}",
    "less": "{} is less than {}",
    "less_equal": "{} is less than or equal to {}",
    "logical_and": "neither {} nor {} is zero",
    "logical_or": "at least one of {} and {} is not zero",
    "logical_xor": "exactly one of {} and {} is zero",
}


def _truth(function: str, name: str) -> None:
    """Register all forms of a comparison or logical operator."""
    words = [word.capitalize() for word in name.split("_")]
    compute, doc = getattr(e, function), f"1 where {CONDITIONS[function]}, 0 elsewhere."
    binary(compute, f"_{name}", f"broadcast_{name}", doc.format("``lhs``", "``rhs``"), aliases=(f"_{'_'.join(words)}",))
    scalar(lambda x, *, scalar: compute(x, scalar), f"_{name}_scalar", doc.format("``data``", "``scalar``"),
           f"_{''.join(words)}Scalar")


for _function in CONDITIONS:
    _truth(_function, _function.replace("less", "lesser"))

for _forms in BINARY.values():
    for _name in _forms:
        REGISTERED[_name].used = True  # Python's operators, called without an attribute lookup
