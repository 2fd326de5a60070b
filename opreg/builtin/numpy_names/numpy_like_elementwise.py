"""Element-wise operators with NumPy's dtypes, under MXNet's names for them: floating-point functions of integers give
float32, and an array with a scalar gives the dtype that ``np`` gives.

The body of each casts the inputs, applies the operator of ``nd`` with that name, and casts the result; plans leave out
casts that change nothing.
"""

from __future__ import annotations

import numpy as np

from ...core.attrs import Number
from ...core.registry import REGISTERED, ops
from ...core.spec import is_floating
from ...custom.composed import composed
from ..elementwise import binary, unary  # noqa: F401  # they declare the operators of these bodies
from ..samples import alike
from .numpy_like_numbers import floating_of, widest_float

__all__ = ["FLOATING", "KEEPING"]

#: The operators of functions that keep the dtype, by their names after the prefix ``_npi_``.
KEEPING = {name: name for name in ("abs", "absolute", "negative", "sign", "square", "rint", "ceil", "floor", "trunc",
                                   "fix")} | {"absolute": "abs"}
#: The operators of functions that are floating.
FLOATING = {name: name for name in (
    "exp", "expm1", "log", "log10", "log2", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "degrees", "radians", "reciprocal")}


def _unary(name: str, operator: str, floating: bool) -> None:
    inner = REGISTERED[operator]

    @composed(name=f"_npi_{name}", cheap=True)
    def op(x):
        """A function."""
        dtype = widest_float(x.dtype) if floating else x.dtype
        return inner(x if x.dtype == dtype else ops.Cast(x, dtype=dtype))

    op.doc = f"{inner.doc.partition(chr(10))[0]}{' Integers give float32.' * floating}"
    alike(op)
    if floating:
        floating_of(op)


for _name, _operator in KEEPING.items():
    _unary(_name, _operator, False)
for _name, _operator in FLOATING.items():
    _unary(_name, _operator, True)


def _dtype_with_number(dtype: np.dtype, is_int: bool) -> np.dtype:
    """The dtype of an array in arithmetic with a number."""
    if is_floating(dtype):
        return dtype
    return np.dtype(np.float32) if not is_int else np.dtype(np.int64) if dtype.kind == "b" else dtype


def _with_number(name: str, operator: str) -> None:
    inner = REGISTERED[operator]

    @composed(name=f"_npi_{name}_scalar", cheap=True)
    def op(data, *, scalar: Number = 1.0, is_int: bool = True):
        """Arithmetic."""
        dtype = _dtype_with_number(np.dtype(data.dtype), is_int)
        return inner(data if data.dtype == dtype else ops.Cast(data, dtype=dtype), scalar=scalar)

    op.doc = f"{inner.doc.partition(chr(10))[0]} Integers and a float ``scalar`` give float32."
    alike(op)

    @op.types
    def number_types(ins, outs, *, is_int):
        return ins, outs if ins[0] is None else [_dtype_with_number(ins[0], is_int)]


for _name, _operator in {"add": "_plus_scalar", "subtract": "_minus_scalar", "rsubtract": "_rminus_scalar",
                         "multiply": "_mul_scalar", "power": "_power_scalar", "rpower": "_rpower_scalar"}.items():
    _with_number(_name, _operator)
