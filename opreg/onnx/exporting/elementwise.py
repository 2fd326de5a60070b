"""Translations of the instructions of elementwise expressions, and of operators with an ONNX equivalent."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.spec import is_floating
from ...interop.translation import Untranslatable
from .builder import Builder, Value
from .table import Use, says

__all__ = ["PRIMITIVES"]

_BOOL = np.dtype(bool)

Instruction = Callable[..., Value]


def _one(kind: str) -> Instruction:
    return lambda g, *xs: g(kind, *xs)


def _logical(kind: str) -> Instruction:
    """A logical operator with results 0 and 1 in the dtype of its inputs."""
    return lambda g, *xs: g.cast(g(kind, *map(g.truth, xs)), xs[0].dtype)


def _compare(kind: str) -> Instruction:
    return lambda g, x, y: g.cast(g.compare(kind, x, y), x.dtype)


def _emit_not_equal(g: Builder, x: Value, y: Value) -> Value:
    return g.cast(x != y, x.dtype)


def _trunc(g: Builder, x: Value) -> Value:
    return g.where(x < 0.0, g("Ceil", x), g("Floor", x)) if is_floating(x.dtype) else x


def _remainder(g: Builder, x: Value, y: Value) -> Value:
    """The remainder, with the sign of ``y``."""
    if not is_floating(x.dtype):
        zero = g.compare("Equal", y, 0)
        return g.where(zero, 0, g("Mod", x, g.where(zero, 1, y)))
    rest = g("Mod", x, y, fmod=1)
    turned = g("And", rest != 0.0, g("Xor", rest < 0.0, y < 0.0))
    return g.where(turned, rest + y, rest)


def _expm1(g: Builder, x: Value) -> Value:
    """``exp(x) - 1``, accurate for small ``x``: ``tanh(x / 2)`` is ``(exp(x) - 1) / (exp(x) + 1)``."""
    power = g("Exp", x)
    return g.where(g.compare("Less", g("Abs", x), 1.0), g("Tanh", x * 0.5) * (power + 1.0), power - 1.0)


def _log1p(g: Builder, x: Value) -> Value:
    """``log(1 + x)``, accurate for small ``x``: it is ``2 * atanh(x / (2 + x))``."""
    small = g.compare("Less", g("Abs", x), 0.5)
    inside = g.where(small, x, 0.0)
    return g.where(small, g("Atanh", inside / (inside + 2.0)) * 2.0, g("Log", x + 1.0))


def _cbrt(g: Builder, x: Value) -> Value:
    """The cube root: a power of the absolute value, refined by a step of Newton's method."""
    size = g("Abs", x)
    root = g("Pow", size, 1.0 / 3.0)
    none = g.compare("Equal", size, 0.0)
    square = g.where(none, 1.0, root * root)
    return g("Sign", x) * (root - (root - size / square) / 3.0)


_LANCZOS = (0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
            12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7)


def _lanczos(g: Builder, x: Value) -> tuple[Value, Value]:
    """Lanczos' series for arguments above 0.5, and the base of its power."""
    z = x - 1.0
    total: Any = _LANCZOS[0]
    for i, factor in enumerate(_LANCZOS[1:], 1):
        total = g.number(factor, x) / (z + float(i)) + total
    return total, z + 7.5


def _gammaln(g: Builder, x: Value) -> Value:
    """The logarithm of gamma by Lanczos' series; below 0.5 by reflection, from ``1 - x``."""
    low = x < 0.5
    inside = g.where(low, 1.0 - x, x)
    series, base = _lanczos(g, inside)
    result = g("Log", base) * (inside - 0.5) - base + g("Log", series) + 0.5 * math.log(2 * math.pi)
    sine = g("Abs", g("Sin", x * math.pi))
    other = math.log(math.pi) - g("Log", sine) - result
    return g.where(low, other, result)


def _gamma(g: Builder, x: Value) -> Value:
    low = x < 0.5
    inside = g.where(low, 1.0 - x, x)
    series, base = _lanczos(g, inside)
    half = g("Pow", base, (inside - 0.5) * 0.5)
    result = half * g("Exp", -base) * half * series * math.sqrt(2 * math.pi)
    sine = g("Sin", x * math.pi)
    return g.where(low, math.pi / (sine * result), result)


def _erfinv(g: Builder, x: Value) -> Value:
    """The inverse of erf: Winitzki's approximation, refined by Newton's method."""
    rest = g("Log", 1.0 - x * x)
    first = rest * 0.5 + 2.0 / (math.pi * 0.147)
    root = g("Sqrt", g("Sqrt", first * first - rest / 0.147) - first)
    result = g("Sign", x) * root
    for _ in range(3):
        result = result - (g("Erf", result) - x) * g("Exp", result * result) * (math.sqrt(math.pi) / 2)
    return g.where(g.compare("Less", g("Abs", x), 1.0), result, x / (1.0 - x * x))


def _tan(g: Builder, x: Value) -> Value:
    return g("Sin", x) / g("Cos", x) if x.dtype == np.float64 else g("Tan", x)  # ONNX Runtime has it for float32 only


def _quotient(g: Builder, x: Value, y: Value, dtype: np.dtype, down: bool = False) -> Value:
    """The quotient of int64, truncated or rounded down; by zero it is the dtype's maximum or minimum."""
    zero = g.compare("Equal", y, 0)
    inside = g.where(zero, 1, y)
    rest = _remainder(g, x, inside)
    result = g("Div", x - rest, inside)
    if not down:
        result = result + g.cast(g("And", result < 0, g("Not", g.compare("Equal", rest, 0))), np.int64)
    limits = np.iinfo(dtype) if dtype.kind in "iu" else np.iinfo(np.int64)
    beyond = g.where(x > 0, int(min(limits.max, 2 ** 63 - 1)), g.where(x < 0, int(limits.min), g.number(0, x)))
    return g.where(zero, beyond, result)


def _whole_power(g: Builder, x: Value, y: Value, dtype: np.dtype) -> Value:
    inverse = _quotient(g, g.constant_like(1, x, x.dtype), x, dtype)
    even = g.compare("Equal", g("Mod", y, 2), 0)
    inverse = g.where(even, g("Abs", inverse), inverse)
    return g.where(y < 0, inverse, g("Pow", x, g.larger(y, 0)))


#: Instructions by the names of primitives: functions of the builder and of values of one dtype.
PRIMITIVES: dict[str, Instruction] = {
    "sign": _one("Sign"), "positive": _one("Sign"),
    "floor": lambda g, x: g.round_down(x), "ceil": lambda g, x: g("Ceil", x) if is_floating(x.dtype) else x,
    "trunc": _trunc,
    "greater": _compare("Greater"), "greater_equal": _compare("GreaterOrEqual"), "less": _compare("Less"),
    "less_equal": _compare("LessOrEqual"), "equal": _compare("Equal"), "not_equal": _emit_not_equal,
    "logical_and": _logical("And"), "logical_or": _logical("Or"), "logical_xor": _logical("Xor"),
    "logical_not": _logical("Not"),
    "add": _one("Add"), "subtract": _one("Sub"), "multiply": _one("Mul"), "divide": _one("Div"), "mod": _remainder,
    "negative": _one("Neg"), "absolute": _one("Abs"), "square": lambda g, x: x * x, "reciprocal": _one("Reciprocal"),
    "sqrt": _one("Sqrt"), "cbrt": _cbrt, "hypot": lambda g, x, y: g("Sqrt", x * x + y * y),
    "exp": _one("Exp"), "expm1": _expm1, "log": _one("Log"), "log1p": _log1p,
    "log2": lambda g, x: g("Log", x) / math.log(2.0), "log10": lambda g, x: g("Log", x) / math.log(10.0),
    "power": _one("Pow"), "sin": _one("Sin"), "cos": _one("Cos"), "tan": _tan, "arcsin": _one("Asin"),
    "arccos": _one("Acos"), "arctan": _one("Atan"), "sinh": _one("Sinh"), "cosh": _one("Cosh"), "tanh": _one("Tanh"),
    "arcsinh": _one("Asinh"), "arccosh": _one("Acosh"), "arctanh": _one("Atanh"),
    "maximum": lambda g, x, y: g.larger(x, y), "minimum": lambda g, x, y: g.smaller(x, y),
    "erf": _one("Erf"), "erfinv": _erfinv, "gamma": _gamma, "gammaln": _gammaln,
    "where": lambda g, c, x, y: g.where(c, x, y),
    # Translations for int64 take the dtype of the result.
    "whole divide": _quotient, "whole power": _whole_power, "whole mod": lambda g, x, y, dtype: _remainder(g, x, y),
    "whole reciprocal": lambda g, x, dtype: _quotient(g, g.constant_like(1, x, x.dtype), x, dtype),
}


# ---------------------------------------------------------------------- operators of the same meaning in ONNX


def _check_floating(use: Use, *xs: Value) -> None:
    """Refuse other than floating dtypes, for which the translation does not hold."""
    if not all(is_floating(x.dtype) for x in xs) or not is_floating(use.out.dtype):
        raise Untranslatable("")


def _declare_unary(kind: str, *names: str) -> None:
    @says(*names)
    def row(g: Builder, use: Use, x: Value) -> Value:
        _check_floating(use, x)
        return g(kind, x)


for _kind, _name in {"Relu": "relu", "Sigmoid": "sigmoid", "Softsign": "softsign", "Softplus": "_softrelu"}.items():
    _declare_unary(_kind, _name)


@says("Activation")
def _activation(g: Builder, use: Use, x: Value) -> Value:
    _check_floating(use, x)
    kinds = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softrelu": "Softplus", "softsign": "Softsign"}
    return g(kinds[use.attrs["act_type"]], x)


@says("LeakyReLU")
def _leaky(g: Builder, use: Use, x: Value, *gamma: Value) -> Value:
    _check_floating(use, x)
    kind, slope = use.attrs["act_type"], use.attrs["slope"]
    if kind in ("leaky", "elu"):
        return g("LeakyRelu" if kind == "leaky" else "Elu", x, alpha=slope)
    if kind == "selu":
        return g("Selu", x)
    if kind == "prelu":
        rank = len(x.shape)
        return g("PRelu", x, g.reshape(gamma[0], _channels(gamma[0], rank)))
    if kind == "gelu" and g.opset >= 20:
        return g("Gelu", x)
    if kind == "rrelu":
        return g("LeakyRelu", x, alpha=(use.attrs["lower_bound"] + use.attrs["upper_bound"]) / 2)
    raise Untranslatable("")


def _channels(vector: Value, rank: int) -> tuple[Any, ...]:
    """The shape that aligns a vector of channels with the second of ``rank`` axes."""
    count = vector.shape[-1]
    return (count, *[1] * (rank - 2)) if rank > 1 else (count,)


@says("clip")
def _clip(g: Builder, use: Use, x: Value) -> Value:
    _check_floating(use, x)
    low, high = use.attrs["a_min"], use.attrs["a_max"]
    if low <= high:
        return g.clip(x, low, high)
    return g.where(g("Greater", x, g.number(high, x)), high, g.clip(x, low, None))


@says("hard_sigmoid")
def _hard_sigmoid(g: Builder, use: Use, x: Value) -> Value:
    _check_floating(use, x)
    return g("HardSigmoid", x, alpha=use.attrs["alpha"], beta=use.attrs["beta"])


@says("add_n")
def _add_n(g: Builder, use: Use, *xs: Value) -> Value:
    if all(is_floating(x.dtype) for x in xs) and g.opset >= 8:
        return g("Sum", *xs)
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


@says("BlockGrad", "_copy", "_CrossDeviceCopy", "cast_storage", "make_loss", "MakeLoss",
      "IdentityAttachKLSparseReg", "_identity_with_attr_like_rhs", "LinearRegressionOutput", "MAERegressionOutput",
      "SVMOutput", "_contrib_gradientmultiplier")
def _identity(g: Builder, use: Use, x: Value, *others: Any) -> Value:
    return x


@says("LogisticRegressionOutput")
def _logistic(g: Builder, use: Use, x: Value, label: Any) -> Value:
    return g("Sigmoid", x)


@says("_npi_around")
def _around(g: Builder, use: Use, x: Value) -> Value:
    _check_floating(use, x)
    scale = 10.0 ** use.attrs["decimals"]
    return g("Round", x) if scale == 1.0 else g("Round", x * scale) / scale


_TRUTHS = {"equal": "Equal", "greater": "Greater", "greater_equal": "GreaterOrEqual", "less": "Less",
           "less_equal": "LessOrEqual"}


def _common(g: Builder, x: Value, y: Any) -> tuple[Value, Value]:
    """Two values, or a value and a number, in their common dtype by NumPy's rules."""
    if not isinstance(y, Value):
        fraction = isinstance(y, float) and not y.is_integer()
        kind = np.dtype(np.float64 if fraction and not is_floating(x.dtype) else
                        np.int64 if x.dtype.kind in "iub" else x.dtype)
        return g.cast(x, kind), g.constant(np.asarray(y, kind))
    kind = np.result_type(x.dtype, y.dtype)
    kind = np.dtype(np.int64) if kind.kind in "iub" else kind
    return g.cast(x, kind), g.cast(y, kind)


def _other(use: Use, ys: tuple[Value, ...]) -> Any:
    return ys[0] if ys else use.attrs["scalar"]


@says(*[f"_npi_{name}{form}" for name in (*_TRUTHS, "not_equal") for form in ("", "_scalar")])
def _truth(g: Builder, use: Use, x: Value, *ys: Value) -> Value:
    left, right = _common(g, x, _other(use, ys))
    name = use.op.name.removeprefix("_npi_").removesuffix("_scalar")
    return left != right if name == "not_equal" else g.compare(_TRUTHS[name], left, right)


@says(*[f"_npi_logical_{name}{form}" for name in ("and", "or", "xor") for form in ("", "_scalar")])
def _logic(g: Builder, use: Use, x: Value, *ys: Value) -> Value:
    kind = use.op.name.split("_")[3].capitalize()
    other = g.truth(ys[0]) if ys else g.constant(np.asarray(bool(use.attrs["scalar"])))
    return g(kind, g.truth(x), other)


@says("_npi_logical_not")
def _not(g: Builder, use: Use, x: Value) -> Value:
    return g("Not", g.truth(x))


@says("_npi_isnan", "_npi_isinf", "_npi_isfinite", "_npi_isposinf", "_npi_isneginf")
def _is(g: Builder, use: Use, x: Value) -> Value:
    name = use.op.name.removeprefix("_npi_is")
    if not is_floating(x.dtype):
        return g.constant_like(name == "finite", x, _BOOL)
    if name == "nan":
        return g("IsNaN", x)
    if x.dtype == np.float16:
        x = g.cast(x, np.float32)
    if name == "finite":
        return g("Not", g("Or", g("IsNaN", x), g("IsInf", x)))
    return g("IsInf", x, detect_negative=int(name != "posinf"), detect_positive=int(name != "neginf"))


@says(*[f"_npi_bitwise_{name}{form}" for name in ("and", "or", "xor") for form in ("", "_scalar")])
def _bits(g: Builder, use: Use, x: Value, *ys: Value) -> Value:
    kind = use.op.name.split("_")[3].capitalize()
    if x.dtype == _BOOL and (not ys or ys[0].dtype == _BOOL):
        other = ys[0] if ys else g.constant(np.asarray(bool(use.attrs["scalar"])))
        if use.out.dtype == _BOOL:
            return g(kind, x, other)
    left, right = _common(g, x, _other(use, ys))
    return g(f"Bitwise{kind}", left, right)


@says("_npi_floor_divide")
def _floor_divide(g: Builder, use: Use, x: Value, y: Value) -> Value:
    dtype = use.out.dtype
    if is_floating(dtype):
        return g("Floor", g.cast(x, dtype) / g.cast(y, dtype))
    return _quotient(g, g.cast(x, np.int64), g.cast(y, np.int64), dtype, down=True)
