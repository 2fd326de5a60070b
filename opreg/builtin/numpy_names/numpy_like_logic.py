"""Comparisons, logic and bits with NumPy's rules, under MXNet's names for them: booleans are bool, shapes
broadcast, and the two sides of a comparison may differ in dtype. No gradient passes through any of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.array_module import number_on
from ...core.attrs import Field, Number, Schema
from ...core.declarations import ZERO
from ...core.launch import Call, Rank
from ...core.op import Op
from ...core.registry import declare, register
from ...core.spec import broadcast, fits, is_single_or_double, wrapped
from ...errors import ArgumentError, DTypeError
from ...typing import Array, ArrayModule
from ..elementwise.binary import CONDITIONS
from ..forms import declare_form
from ..samples import alike

Dtypes = list[np.dtype | None]

_BOOL, _INT64 = np.dtype(np.bool_), np.dtype(np.int64)


# ----------------------------------------------------------------------------- one function of the array module


def _declare_function(op: Op, function: str, number: Callable | None = None, always: float | None = None) -> None:
    """Declare that an operator is one function of the array module, with zero gradients.

    Besides an array, the function may take a number: the value of an attribute, or the constant ``always``.
    ``number(xp, dtype, scalar)`` converts this number.
    """
    op.grad(ZERO)

    @op.in_parts  # no body: the function is the array module's
    def function_in_parts(xp: ArrayModule, data: Array, *others: Array, scalar: Any = always) -> Callable[..., Array]:
        compute, numbers = getattr(xp, function), [] if number is None else [number(xp, data.dtype, scalar)]
        if xp is np and data.ndim and numbers and (is_single_or_double(data.dtype) or (
                data.dtype.kind in "iu" and type(numbers[0]) is int)):
            numbers = [np.asarray(numbers[0], data.dtype)]

        def run(*arrays: Array, out: Array | None = None) -> Array:
            if out is None:
                result: Array = compute(*arrays, *numbers)
                return result
            if not _reason_to_decline(function, out):
                return compute(*arrays, *numbers, out=out)
            out[...] = compute(*arrays, *numbers)
            return out

        return run

    @op.kernel("ufunc", bound=True, accepts=lambda call: _reason_to_decline(function, call.outs[0]), rank=Rank.OPERATOR)
    def function_bound(call: Call) -> Callable:
        ins = [*call.ins]
        if number is not None:
            ins.append(number(call.xp, ins[0].dtype, call.attrs.get("scalar", always)))
        return functools.partial(getattr(call.xp, function), *ins, call.outs[0])


def _ufunc(name: str, function: str, arguments: Sequence[str], types: str | Callable, doc: str) -> Op:
    """Register an operator that is one function of the array module."""
    op = register(Op(name, Schema([]), arguments, types=types, doc=doc))
    op.infer(broadcast)
    alike(op, broadcasts=True)
    _declare_function(op, function)
    return op


def _reason_to_decline(function: str, out: Array | None) -> str | None:
    """The reason why a function does not write to an array itself."""
    if function in ("isfinite", "isinf", "isnan") and out is not None and not out.flags.c_contiguous:
        return "NumPy, at least from 2.0 to 2.5, writes wrong booleans to a strided array"
    return None


_SCALAR = Schema([Field("scalar", float, 1.0, Number), Field("is_int", bool, True)])


def _ufunc_scalar(name: str, function: str, number: Callable, types: str | Callable, doc: str,
                  always: float | None = None) -> None:
    """Register the form with a number on the right."""
    op = register(Op(name, _SCALAR, ("data",), types=types, doc=doc) if always is None else
                  Op(name, Schema([]), ("x",), types=types, doc=doc))
    alike(op)
    _declare_function(op, function, number, always)


def _comparable_number(xp: ArrayModule, dtype: np.dtype, scalar: float) -> float:
    """The scalar to compare an array with. For integer arrays it is an integer, so that large values stay distinct, or
    an infinity if it lies outside the range of the dtype."""
    if dtype.kind not in "iu" or math.isnan(scalar):
        return float(scalar)
    if not fits(scalar, dtype):
        return math.copysign(math.inf, scalar)
    return int(scalar) if scalar == int(scalar) else scalar


for _name, _condition in CONDITIONS.items():
    _ufunc(f"_npi_{_name}", _name, ("lhs", "rhs"), "L=R,R=L->bool",
           f"True where {_condition.format('``lhs``', '``rhs``')}. Shapes broadcast.")
    _ufunc_scalar(f"_npi_{_name}_scalar", _name, _comparable_number, "T->bool",
                  f"True where {_condition.format('``data``', '``scalar``')}.")

_ufunc("_npi_logical_not", "logical_not", ("x",), "T->bool", "True where ``x`` is zero.")
_ufunc("_npi_isnan", "isnan", ("x",), "T->bool", "True where ``x`` is NaN.")
_ufunc("_npi_isinf", "isinf", ("x",), "T->bool", "True where ``x`` is infinite.")
_ufunc("_npi_isfinite", "isfinite", ("x",), "T->bool", "True where ``x`` is neither infinite nor NaN.")


_ufunc_scalar("_npi_isposinf", "equal", _comparable_number, "T->bool", "True where ``x`` is positive "
                                                                       "infinity.", math.inf)
_ufunc_scalar("_npi_isneginf", "equal", _comparable_number, "T->bool", "True where ``x`` is negative infinity.",
              -math.inf)


# ---------------------------------------------------------------------------------------------------- bits


def _check_integers(dtypes: Dtypes) -> None:
    for dtype in dtypes:
        if dtype is not None and dtype.kind not in "iub":
            raise DTypeError(f"expected integers or bool, got {dtype}")


def _bits_scalar(ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """With a number, booleans become integers."""
    _check_integers(ins)
    (data,) = ins
    return ins, outs if data is None else [_INT64 if data.kind == "b" else data]


def _wrap_integer(xp: ArrayModule, dtype: np.dtype, scalar: float) -> Array:
    """The number as an integer of the dtype, cut down to its bits."""
    integer_dtype = _INT64 if dtype.kind == "b" else dtype
    return number_on(xp, wrapped(int(scalar), integer_dtype), integer_dtype)


for _name, _sign in {"and": "&", "or": "|", "xor": "^"}.items():
    _ufunc(f"_npi_bitwise_{_name}", f"bitwise_{_name}", ("lhs", "rhs"), "*T:whole->T",
           f"``lhs {_sign} rhs``, bit by bit. Shapes broadcast.")
    _ufunc_scalar(f"_npi_bitwise_{_name}_scalar", f"bitwise_{_name}", _wrap_integer, _bits_scalar,
                  f"``data {_sign} scalar``, bit by bit.")
_ufunc("_npi_bitwise_not", "invert", ("x",), "*T:whole->T",
       "``~x``: all bits inverted; for bool the logical negation.")


# --------------------------------------------------------------------------------------------------- conditions


@declare(name="_npx_constraint_check", types="T->bool", capturable=False)
def constraint_check(input, *, msg: str = "Constraint violated!"):
    """True, of shape (), if all elements of ``input`` are nonzero; otherwise raises an error with ``msg``."""


declare_form(constraint_check, "-> ()")
constraint_check.grad(ZERO)


@constraint_check.kernel(bound=True)  # no body: it may raise
def constraint_check_bound(call):
    (out,) = call.outs

    def run() -> None:
        if not call.ctx.backend.to_numpy(call.xp.all(call.ins[0])):
            raise ArgumentError(call.attrs["msg"])
        if out is not None:
            out[...] = True

    return [run]
