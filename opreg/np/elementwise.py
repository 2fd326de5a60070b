"""Element-wise functions of arrays and symbols by NumPy's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opreg.core.op import Op
from opreg.core.registry import find, get, ops
from opreg.errors import DTypeError
from opreg.symbol.symbol import Symbol

from .functions import (
    FUNCTIONS,
    as_floating,
    is_number,
    refuse_options,
    register,
    register_as,
    store,
)
from .values import NumpyValue, as_value


def _unary(name: str, op: Op, of_numbers: Callable[..., Any], keeps: bool) -> None:
    of_symbols = find(f"_npi_{op.name}") or op

    def function(x: Any, out: Any = None, **options: Any) -> Any:
        refuse_options(name, options)
        if is_number(x):
            return of_numbers(x)
        value = as_value(x)
        if isinstance(value, Symbol):  # the dtype of a symbol is unknown
            return of_symbols(value)
        return store(op(value if keeps else as_floating(value)), out)

    register_as(name, f"``{name}`` of each element; one that is no whole number is float32 or wider.", function)


_KEEPING = {"abs": "abs", "absolute": "abs", "fabs": "abs", "square": "square", "sign": "sign", "rint": "rint",
            "ceil": "ceil", "floor": "floor", "trunc": "trunc", "fix": "fix", "invert": "_npi_bitwise_not",
            "bitwise_not": "_npi_bitwise_not", "logical_not": "_npi_logical_not", "isnan": "_npi_isnan",
            "isinf": "_npi_isinf", "isfinite": "_npi_isfinite", "isposinf": "_npi_isposinf",
            "isneginf": "_npi_isneginf", "positive": "identity"}
_FLOATING = {"rad2deg": "degrees", "deg2rad": "radians", **{name: name for name in (
    "exp", "expm1", "log", "log10", "log2", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "degrees", "radians", "reciprocal")}}
for _name, _op in _KEEPING.items():
    _unary(_name, get(_op), getattr(np, _name), True)
for _name, _op in _FLOATING.items():
    _unary(_name, get(_op), getattr(np, _name), False)


@register
def copy(a: Any, out: Any = None) -> Any:
    """A copy of an array."""
    return np.copy(a) if is_number(a) else store(ops._copy(as_value(a)), out)


@register
def around(x: Any, decimals: int = 0, out: Any = None) -> Any:
    """Elements rounded to decimals, halves to even."""
    return np.around(x, decimals) if is_number(x) else store(ops._npi_around(as_value(x), decimals=int(decimals)), out)


FUNCTIONS.update(round=FUNCTIONS["around"], round_=FUNCTIONS["around"])


@register
def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
               ) -> Any:
    """Numbers in the place of NaN, and of the infinities: by default zero, and the ends of the dtype."""
    value = as_value(x)
    chosen = ops._npi_nan_to_num(value, nan=nan, posinf=posinf, neginf=neginf)
    return chosen if copy or isinstance(value, Symbol) else store(chosen, value)


@register
def polyval(p: Any, x: Any) -> Any:
    """A polynomial's values, with its coefficients from the highest power down."""
    coefficients, value = as_value(p)._pair(as_value(x))
    return ops._npi_polyval(coefficients, value)


@register
def negative(x: Any, out: Any = None, **options: Any) -> Any:
    """``-x``."""
    refuse_options("negative", options)
    return -x if is_number(x) else store(-as_value(x), out)


def _binary(name: str, method: str, of_numbers: Callable[..., Any]) -> None:
    def function(x1: Any, x2: Any, out: Any = None, **options: Any) -> Any:
        refuse_options(name, options)
        if is_number(x1) and is_number(x2):
            return of_numbers(x1, x2)
        if isinstance(x1, NumpyValue) or not (is_number(x1) or isinstance(x2, NumpyValue)):
            return store(as_value(x1)._binary(method, x2, False), out)
        return store(as_value(x2)._binary(method, x1, True), out)

    register_as(name, f"``{name}`` of two arrays, or an array and a number; shapes broadcast.", function)


for _name, _method in {
        "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "true_divide": "truediv",
        "mod": "mod", "remainder": "mod", "power": "pow", "maximum": "maximum", "minimum": "minimum",
        "hypot": "hypot", "equal": "eq", "not_equal": "ne", "greater": "gt", "greater_equal": "ge", "less": "lt",
        "less_equal": "le"}.items():
    _binary(_name, _method, getattr(np, _name))


def _symmetric(name: str, of_numbers: Callable[..., Any], between: Callable[[Any, Any], Any]) -> None:
    """A function of an array and another operand, in either order."""
    def function(x1: Any, x2: Any, out: Any = None, **options: Any) -> Any:
        refuse_options(name, options)
        if is_number(x1) and is_number(x2):
            return of_numbers(x1, x2)
        value, operand = (x2, x1) if is_number(x1) or not isinstance(x1, NumpyValue) else (x1, x2)
        return store(between(as_value(value), operand), out)

    register_as(name, f"``{name}`` of two arrays, or an array and a number; shapes broadcast.", function)


def _bits(name: str) -> Callable[[Any, Any], Any]:
    def between(value: Any, other: Any) -> Any:
        result = value._logic(name, other)
        if result is NotImplemented:
            raise DTypeError(f"bitwise_{name}: expected integers or bool, got {other!r}")
        return result
    return between


def _truth(name: str) -> Callable[[Any, Any], Any]:
    def between(value: Any, other: Any) -> Any:
        if is_number(other):
            return get(f"_npi_logical_{name}_scalar")(value, scalar=float(other))
        return get(f"_npi_logical_{name}")(*value._pair(as_value(other)))
    return between


for _name in ("and", "or", "xor"):
    _symmetric(f"bitwise_{_name}", getattr(np, f"bitwise_{_name}"), _bits(_name))
    _symmetric(f"logical_{_name}", getattr(np, f"logical_{_name}"), _truth(_name))


def _pairs(name: str) -> None:
    """A floating function of two arrays, or of an array and a number on either side."""
    forms = [get(f"_npi_{name}"), get(f"_npi_{name}_scalar"), get(f"_npi_r{name}_scalar")]
    of_numbers: Callable[..., Any] = getattr(np, name)

    def function(x1: Any, x2: Any, out: Any = None, **options: Any) -> Any:
        refuse_options(name, options)
        if is_number(x1) and is_number(x2):
            return of_numbers(x1, x2)
        if is_number(x2):
            return store(forms[1](as_value(x1), scalar=float(x2)), out)
        if is_number(x1):
            return store(forms[2](as_value(x2), scalar=float(x1)), out)
        return store(forms[0](as_value(x1), as_value(x2)), out)

    register_as(name, f"``{name}`` of two arrays, or an array and a number; shapes broadcast.", function)


for _name in ("arctan2", "copysign", "ldexp"):
    _pairs(_name)
_symmetric("lcm", np.lcm, lambda value, other: ops._npi_lcm_scalar(value, scalar=+other) if is_number(other) else
           ops._npi_lcm(*value._pair(as_value(other))))


@register
def floor_divide(x1: Any, x2: Any, out: Any = None) -> Any:
    """Quotients rounded down; integers keep their dtype, shapes broadcast."""
    if is_number(x1) and is_number(x2):
        return np.floor_divide(x1, x2)
    if is_number(x1):
        return store(as_value(x2)._floor_quotient(x1, True), out)
    return store(as_value(x1)._floor_quotient(x2, False), out)


@register
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """``x`` where the condition holds, ``y`` elsewhere; without both, the indices where it holds."""
    if x is None and y is None:
        return FUNCTIONS["nonzero"](condition)
    if is_number(x) and is_number(y):
        return ops._npi_where_scalar2(as_value(condition), x=float(x), y=float(y))
    if is_number(x):
        return ops._npi_where_lscalar(as_value(condition), as_value(y), scalar=float(x))
    if is_number(y):
        return ops._npi_where_rscalar(as_value(condition), as_value(x), scalar=float(y))
    return ops._npi_where(as_value(condition), *as_value(x)._pair(as_value(y)))


@register
def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """Elements clipped to a range, whose ends NumPy also calls ``min`` and ``max``."""
    a_min, a_max = min if a_min is None else a_min, max if a_max is None else a_max
    if is_number(a_min) and is_number(a_max):
        return store(ops.clip(as_value(a), a_min=float(a_min), a_max=float(a_max)), out)
    value = as_value(a) if a_min is None else FUNCTIONS["maximum"](a, a_min)
    return store(value if a_max is None else FUNCTIONS["minimum"](value, a_max), out)
