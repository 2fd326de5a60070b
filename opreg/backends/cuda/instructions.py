"""The instructions of expressions as statements of CUDA C++.

An instruction is computed in double if an operand is double, else in float; results are stored in the dtypes of the
arrays. ``device.cuh`` defines functions for which C++ has no operator. Results differ from NumPy's in the last bits: a
product and a sum may be rounded only once, and for 16-bit arrays intermediate results are not rounded to 16 bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from opreg.elementwise.expression import Expression, Primitive
from opreg.typing import Array

__all__ = ["PRELUDE", "STORED", "Value", "computed_in", "converted", "declines", "indent", "literal", "missing",
           "statement", "statements"]

#: The text before every kernel.
PRELUDE = Path(__file__).with_name("device.cuh").read_text(encoding="utf-8")

#: C types of stored elements, by dtype.
STORED = {"float16": "Half", "bfloat16": "BFloat", "float32": "float", "float64": "double"}

_SAME = ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "floor", "ceil", "trunc", "sin", "cos", "tan",
         "sinh", "cosh", "tanh", "erf", "erfinv")
_TEXT = {
    "add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "divide": "{0} / {1}",
    "negative": "-{0}", "square": "{0} * {0}", "reciprocal": "{T}(1) / {0}", "absolute": "fabs({0})",
    "mod": "modulo({0}, {1})", "power": "pow({0}, {1})", "maximum": "larger({0}, {1})", "minimum": "smaller({0}, {1})",
    "sign": "sign_of({0})", "positive": "sign_of({0})", "where": "{0} != {T}(0) ? {1} : {2}",
    "greater": "{T}({0} > {1})", "greater_equal": "{T}({0} >= {1})", "less": "{T}({0} < {1})",
    "less_equal": "{T}({0} <= {1})", "equal": "{T}({0} == {1})", "not_equal": "{T}({0} != {1})",
    "logical_and": "{T}({0} != {T}(0) && {1} != {T}(0))", "logical_or": "{T}({0} != {T}(0) || {1} != {T}(0))",
    "logical_xor": "{T}(({0} != {T}(0)) != ({1} != {T}(0)))", "logical_not": "{T}({0} == {T}(0))",
    "gamma": "{T}(tgamma((double){0}))", "gammaln": "{T}(lgamma((double){0}))",
    "bessel_i0": "{T}(cyl_bessel_i0((double){0}))", "bessel_i1": "{T}(cyl_bessel_i1((double){0}))",
    "hypot": "hypot({0}, {1})", "kept": "{T}({1} < {2})", **{name: f"{name}({{0}})" for name in _SAME},
    **{f"arc{name}": f"a{name}({{0}})" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}


class Value(NamedTuple):
    """An operand of statements: its text and its type, ``float`` or ``double``."""

    text: str
    type: str


def computed_in(dtype: np.dtype) -> str:
    """The type in which elements of a dtype are computed."""
    return "double" if dtype.name == "float64" else "float"


def missing(expression: Expression) -> str | None:
    """The first instruction without a statement, or None."""
    return next((prim.name for prim, _ in expression.code if _text(prim) is None), None)


def _text(prim: Primitive) -> str | None:
    if prim.name.startswith("polygamma"):
        return f"{{T}}(polygamma<{prim.name.removeprefix('polygamma')}>((double){{0}}))"
    if prim.name.startswith("as_") and prim.dtype is not None:
        stored = STORED.get(prim.dtype.name)
        return stored and (f"wide(narrow<{stored}>({{0}}))" if prim.dtype.itemsize < 4 else f"({stored}){{0}}")
    return _TEXT.get(prim.name)


def indent(lines: Sequence[str], levels: int = 1) -> list[str]:
    """Lines with indentation."""
    return [f"{'    ' * levels}{line}" for line in lines]


def literal(number: float, type: str) -> str:
    """A constant as text."""
    if not math.isfinite(number):
        bits = {math.inf: "0x7f800000u", -math.inf: "0xff800000u"}.get(number, "0x7fc00000u")
        return f"{type}(bits_as<float>({bits}))"
    text = str(np.float32(number)) if type == "float" else repr(number)
    text = f"{text}f" if type == "float" else text
    return text if "inf" not in text else literal(math.copysign(math.inf, number), type)


def statement(name: str, prim: Primitive, args: Sequence[int | float], values: Sequence[Value]) -> tuple[str, Value]:
    """The line that computes a primitive and names the result, and the result."""
    type = "double" if any(values[a].type == "double" for a in args if isinstance(a, int)) else "float"
    text = _text(prim)
    assert text is not None, prim.name
    result = Value(name, type if prim.dtype is None else computed_in(prim.dtype))
    operands = [converted(values[a], type) if isinstance(a, int) else literal(a, type) for a in args]
    return f"const {result.type} {name} = {text.format(*operands, T=type)};", result


def statements(expression: Expression, inputs: Sequence[Value]) -> tuple[list[str], list[Value]]:
    """A line for each instruction, and the values of the results.

    Examples
    --------
    >>> from opreg.elementwise.expression import exp, trace
    >>> statements(trace(lambda x: 1 / (1 + exp(-x)), 1), [Value("x0", "float")])[0][2]
    'const float r2 = 1.0f + r1;'
    """
    values = list(inputs)
    lines = []
    for position, (prim, args) in enumerate(expression.code):
        line, value = statement(f"r{position}", prim, args, values)
        lines.append(line)
        values.append(value)
    return lines, [values[r] if isinstance(r, int) else Value(literal(r, "double"), "double")
                   for r in expression.results]


def converted(value: Value, type: str) -> str:
    """The text of a value converted to a type."""
    return value.text if value.type == type else f"({type}){value.text}"


def declines(arrays: Sequence[Array | None]) -> str | None:
    """The reason why kernels of rows or columns cannot handle these arrays, or None."""
    for array in arrays:
        if array is not None and array.dtype.name not in STORED:
            return f"dtype {array.dtype}: kernels are compiled for {', '.join(STORED)}"
        if array is not None and not array.flags.c_contiguous:
            return "an array is not contiguous"
    return "nothing to compute" if any(array is not None and array.size == 0 for array in arrays) else None
