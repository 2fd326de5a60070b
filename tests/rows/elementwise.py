"""Rows of the element-wise operators."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from opreg.elementwise import special_functions as special

from . import Row, integers, normal, uniform

__all__ = ["ROWS"]


def _halves_away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _each(function):
    return lambda x: np.vectorize(function)(x).astype(x.dtype)


def _always(*numbers):
    return lambda x, *_: np.array(numbers, x.dtype)


def _clip(low: float, high: float):
    return lambda x: np.clip(x, low, high)


def _huber(s: float):
    return lambda x: np.where(np.abs(x) < 1 / s**2, 0.5 * (s * x) ** 2, np.abs(x) - 0.5 / s**2)


# ------------------------------------------------------------------------------------------------ one array

# Name, range of the inputs, NumPy's function.
_SMOOTH = [
    ("negative", -2, 2, np.negative), ("sigmoid", -3, 3, lambda x: 1 / (1 + np.exp(-x))),
    ("square", -2, 2, np.square), ("sqrt", 0.2, 3, np.sqrt), ("rsqrt", 0.2, 3, lambda x: 1 / np.sqrt(x)),
    ("cbrt", 0.2, 3, np.cbrt), ("rcbrt", 0.3, 3, lambda x: 1 / np.cbrt(x)),
    ("reciprocal", 0.3, 2, lambda x: 1 / x),
    ("exp", -2, 2, np.exp), ("expm1", -1, 1, np.expm1), ("log", 0.2, 4, np.log), ("log1p", -0.5, 3, np.log1p),
    ("log2", 0.2, 4, np.log2), ("log10", 0.2, 4, np.log10), ("sin", -3, 3, np.sin), ("cos", -3, 3, np.cos),
    ("tan", -1, 1, np.tan), ("arcsin", -0.8, 0.8, np.arcsin), ("arccos", -0.8, 0.8, np.arccos),
    ("arctan", -3, 3, np.arctan), ("sinh", -2, 2, np.sinh), ("cosh", -2, 2, np.cosh),
    ("tanh", -2, 2, np.tanh),
    ("arcsinh", -2, 2, np.arcsinh), ("arccosh", 1.3, 4, np.arccosh), ("arctanh", -0.8, 0.8, np.arctanh),
    ("degrees", -3, 3, np.degrees), ("radians", -200, 200, np.radians),
    ("erf", -2, 2, _each(math.erf)), ("erfinv", -0.8, 0.8, partial(special.erfinv, np)),
    ("gamma", 0.5, 4, _each(math.gamma)), ("gammaln", 0.3, 9, _each(math.lgamma)),
    ("_polygamma", 0.4, 5, partial(special.polygamma, np, 0)),
    ("_bessel_i0", -3, 3, np.i0), ("_bessel_i1", -3, 3, partial(special.bessel_i, np, 1)),
]
_STEPS = [
    ("sign", np.sign), ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("fix", np.trunc),
    ("round", _halves_away), ("rint", np.rint), ("logical_not", lambda x: (x == 0).astype(x.dtype)),
]
_ROUND = np.array([-2.5, -1.5, -0.5, 0.0, 0.49999997, 0.5, 1.5, 2.5, np.inf, -np.inf, np.nan])
_CORNERS = uniform(0.2, 1.8, 3, 4) * np.array([1.0, -1.0, 1.0, -1.0])

ROWS: list[Row] = [Row(name, [uniform(low, high, 2, 3, 4)], expected=function, grad=(0,), second=True)
                   for name, low, high, function in _SMOOTH]
ROWS += [Row(name, [normal(2, 3, 4, scale=2.0)], expected=function) for name, function in _STEPS]
ROWS += [
    Row("abs", [_CORNERS], expected=np.abs, grad=(0,), second=True),
    Row("relu", [_CORNERS], expected=lambda x: np.maximum(x, 0), grad=(0,), second=True),
    Row("softsign", [_CORNERS], expected=lambda x: x / (1 + np.abs(x)), grad=(0,), second=True),
    Row("sigmoid", [np.array([-1000.0, 1000.0, np.nan])], expected=_always(0, 1, np.nan), name="extremes"),
    Row("round", [_ROUND], expected=_always(-3, -2, -1, 0, 0, 1, 2, 3, *_ROUND[8:]), name="halves"),
    Row("rint", [_ROUND], expected=_always(-3, -2, -1, 0, 0, 0, 1, 2, *_ROUND[8:]), name="halves"),
    Row("sign", [np.array([np.nan, -0.0, -np.inf])], expected=_always(0, 0, -1), name="nan"),
    Row("abs", [integers(-5, 5, 3, 4)], expected=np.abs, name="integers"),
    Row("negative", [integers(0, 9, 5, dtype="uint8")], expected=np.negative, name="integers"),
    Row("sqrt", [integers(0, 30, 5)], expected=lambda x: np.sqrt(x).astype(x.dtype), name="integers"),
    Row("_contrib_round_ste", [normal(3, 4, scale=2.0)], expected=_halves_away),
    Row("_contrib_sign_ste", [normal(3, 4)], expected=np.sign),
    Row("_contrib_gradientmultiplier", [normal(3, 4)], {"scalar": -0.5}, expected=lambda x: x),
    Row("_polygamma", [uniform(0.4, 5, 6)], {"order": 2}, expected=partial(special.polygamma, np, 2),
        grad=(0,), second=True),
    Row("clip", [_CORNERS], {"a_min": -1.0, "a_max": 0.5}, expected=_clip(-1, 0.5), grad=(0,), second=True),
    Row("clip", [integers(-9, 9, 7)], {"a_min": -2.0, "a_max": 3.0}, expected=_clip(-2, 3), name="integers"),
    Row("clip", [np.array([0, 0.4, 0.7, 1.2, 2])], {"a_min": 1.0, "a_max": 0.5},
        expected=_always(1, 1, 0.5, 0.5, 0.5), grad=(0,), name="crossed bounds"),
    Row("clip", [np.array([0, 3, 9])], {"a_min": 5.0, "a_max": 2.0}, expected=_always(5, 2, 2),
        name="crossed bounds of integers"),
    Row("hard_sigmoid", [normal(3, 4, scale=4.0)], grad=(0,),
        expected=lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    Row("hard_sigmoid", [normal(3, 4, scale=4.0)], {"alpha": 0.5, "beta": 0.25},
        expected=lambda x: np.clip(0.5 * x + 0.25, 0, 1), grad=(0,), second=True),
    Row("smooth_l1", [normal(3, 4, scale=2.0)], expected=_huber(1.0), grad=(0,)),
    Row("smooth_l1", [normal(3, 4)], {"scalar": 1.5}, expected=_huber(1.5), grad=(0,), second=True),
    Row("_contrib_quadratic", [normal(3, 4)], {"a": 2.0, "b": -3.0, "c": 0.5},
        expected=lambda x: 2 * x * x - 3 * x + 0.5, grad=(0,), second=True),
]

# ---------------------------------------------------------------------------------------- binary operators


def _as(function):
    return lambda *arrays: function(*arrays).astype(arrays[0].dtype)


def _mod(x, y):
    return np.where(y == 0, 0, np.mod(x, np.where(y == 0, 1, y))).astype(x.dtype)


_ARITHMETIC = [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)]
_OTHER = [("mod", _mod), ("power", np.power), ("maximum", np.maximum), ("minimum", np.minimum),
          ("hypot", np.hypot)]
_TRUTH = [("equal", np.equal), ("not_equal", np.not_equal), ("greater", np.greater),
          ("greater_equal", np.greater_equal), ("lesser", np.less), ("lesser_equal", np.less_equal),
          ("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor)]
_LEFT, _RIGHT = uniform(0.3, 2, 2, 3, seed=1), uniform(0.3, 2, 2, 3, seed=2)
_WIDE, _LINE = uniform(0.3, 2, 2, 3, 4, seed=3), uniform(0.3, 2, 4, seed=5)
_COLUMN = uniform(0.3, 2, 2, 1, 1, seed=4)
_ZEROS_AND_ONES = np.array([[0.0, 1.0, 1.0, 2.0, 0.0]]), np.array([[0.0, 0.0, 1.0, 1.0, 3.0]])

for _name, _function in _ARITHMETIC + _OTHER:
    _same = f"elemwise_{_name}" if (_name, _function) in _ARITHMETIC else f"_{_name}"
    ROWS += [
        Row(_same, [_LEFT, _RIGHT], expected=_function, grad=(0, 1), second=True),
        Row(f"broadcast_{_name}", [_LEFT, _RIGHT], expected=_function, grad=(0, 1), second=True),
        Row(f"broadcast_{_name}", [_WIDE, _LINE], expected=_function, grad=(0, 1), second=True, name="line"),
        Row(f"broadcast_{_name}", [_COLUMN, _WIDE[:1]], expected=_function, grad=(0, 1), second=True,
            name="outer"),
    ]
for _name, _function in _TRUTH:
    ROWS += [
        Row(f"_{_name}", list(_ZEROS_AND_ONES), expected=_as(_function)),
        Row(f"broadcast_{_name}", [_ZEROS_AND_ONES[0], _ZEROS_AND_ONES[1].T], expected=_as(_function)),
    ]
ROWS += [
    Row("_mod", [np.array([5.0, -5, 5, -5, 3, 0]), np.array([3.0, 3, -3, -3, 0, 0])],
        expected=_always(2, 1, -1, -2, 0, 0), name="signs"),
    Row("_scatter_elemwise_div", [_LEFT, abs(_RIGHT) + 1], expected=lambda x, y: x / y, grad=(0, 1)),
    Row("elemwise_div", [np.array([7, -7, 7, -7], "int32"), np.array([2, 2, -2, -2], "int32")],
        expected=_always(3, -3, -3, 3), name="integers"),
    Row("broadcast_div", [np.array([[7], [-7], [0]], "int8"), np.array([0, 2], "int8")],
        expected=_always([127, 3], [-128, -3], [0, 0]), name="integers"),
    Row("broadcast_power", [np.array([7, -7, 7, 3], "int32"), np.array([2, 2, -2, 40], "int32")],
        expected=_always(49, 49, 0, 689956897), name="integers"),
    *[row for name in ("_npi_mod", "_numpy_mod") for row in [
        Row(name, [_LEFT, _RIGHT], expected=np.mod, grad=(0, 1), second=True),
        Row(name, [_WIDE, _LINE], expected=np.mod, grad=(0, 1), second=True, name="line"),
        Row(name, [np.array([5.0, -5, 5, -5, 3, 0]), np.array([3.0, 3, -3, -3, 0, 0])],
            expected=_always(2, 1, -1, -2, np.nan, np.nan), name="signs"),
        Row(name, [np.array([5, -5, 5, -5, 3, 0], "int8"), np.array([3, 3, -3, -3, 0, 0], "int8")],
            expected=_always(2, 1, -1, -2, 0, 0), name="integers")]],
    Row("_maximum", [np.array([np.nan, 1.0]), np.array([1.0, np.nan])], expected=np.maximum, name="nan"),
    Row("add_n", [_LEFT], {"num_args": 1}, expected=lambda x: x, grad=(0,)),
    Row("add_n", [_LEFT, _RIGHT, _LEFT * 2], {"num_args": 3}, expected=lambda x, y, z: x + y + z,
        grad=(0, 1, 2), second=True),
]

# ----------------------------------------------------------------------------------- an array and a number

_SCALARS = [
    ("_plus_scalar", lambda x, s: x + s), ("_minus_scalar", lambda x, s: x - s),
    ("_scatter_plus_scalar", lambda x, s: x + s), ("_scatter_minus_scalar", lambda x, s: x - s),
    ("_rminus_scalar", lambda x, s: s - x), ("_mul_scalar", lambda x, s: x * s),
    ("_div_scalar", lambda x, s: x / s), ("_rdiv_scalar", lambda x, s: s / x),
    ("_mod_scalar", np.mod), ("_npi_mod_scalar", np.mod), ("_npi_rmod_scalar", lambda x, s: np.mod(s, x)),
    ("_rmod_scalar", lambda x, s: np.mod(s, x)), ("_power_scalar", np.power),
    ("_rpower_scalar", lambda x, s: np.power(s, x)), ("_maximum_scalar", np.maximum),
    ("_minimum_scalar", np.minimum), ("_hypot_scalar", np.hypot),
]
_POSITIVE = uniform(0.3, 2.5, 2, 3, seed=6)
for _name, _function in _SCALARS:
    ROWS.append(Row(_name, [_POSITIVE], {"scalar": 1.3}, grad=(0,), second=True,
                    expected=lambda x, f=_function: f(x, x.dtype.type(1.3))))
for _name, _function in _TRUTH:
    ROWS += [Row(f"_{_name}_scalar", [np.array([0.0, 1.0, 2.0, 3.0])], {"scalar": float(_number)},
                 expected=lambda x, f=_function, s=_number: f(x, s).astype(x.dtype)) for _number in (0, 2)]
ROWS += [Row("_power_scalar", [_CORNERS], {"scalar": _number}, grad=(0,), second=True,
             expected=lambda x, s=_number: np.power(x, x.dtype.type(s))) for _number in (-1.0, 1.0, 2.0, 3.0)]
ROWS += [
    Row("_plus_scalar", [_POSITIVE], expected=lambda x: x + 1, grad=(0,), name="default"),
    Row("_plus_scalar", [integers(-5, 5, 6)], {"scalar": 1.5}, expected=lambda x: x + 1, name="integers"),
    Row("_plus_scalar", [integers(-5, 5, 6)], {"scalar": 1.5, "is_int": False}, expected=lambda x: x + 1.5),
    Row("_mul_scalar", [np.array([True, False])], {"scalar": 3.0}, expected=lambda x: x * np.int64(3)),
    Row("_rdiv_scalar", [integers(1, 5, 6)], {"scalar": -7.0}, name="integers",
        expected=lambda x: np.trunc(-7 / x).astype(x.dtype)),
    Row("_mod_scalar", [normal(4)], {"scalar": 0.0}, expected=np.zeros_like, name="zero"),
    Row("_npi_mod_scalar", [normal(4)], {"scalar": 0.0}, expected=lambda x: x * np.nan, name="zero"),
    Row("_npi_rmod_scalar", [np.array([0, -2, 4])], {"scalar": 3.0}, expected=_always(0, -1, 3), name="integers"),
    Row("_rmod_scalar", [np.array([0.0, -2.0])], {"scalar": 3.0}, expected=_always(0, -1), name="zero"),
]

# ------------------------------------------------------------------------------------------------ gradients

_G = normal(2, 3, seed=7)
_UNIT = uniform(0.2, 0.8, 2, 3, seed=8)  # inside every function's range and domain
_AT_DATA = ["abs", "square", "log1p", "log2", "log10", "sin", "cos", "arcsin", "arccos", "arctan", "sinh", "cosh",
            "arcsinh", "arctanh", "erf", "gammaln", "polygamma", "bessel_i0"]
_AT_OUTPUT = ["relu", "sigmoid", "softsign", "sqrt", "rsqrt", "cbrt", "rcbrt", "reciprocal", "expm1", "tan",
              "tanh", "erfinv"]
ROWS += [Row(f"_backward_{_name}", [_G, _UNIT], grad=(0, 1), second=True) for _name in _AT_DATA + _AT_OUTPUT]
ROWS += [
    Row("_backward_arccosh", [_G, _UNIT + 1], grad=(0, 1), second=True),
    Row("_backward_gamma", [_G, _UNIT, _RIGHT], grad=(0, 1, 2), second=True),
    Row("_backward_bessel_i1", [_G, _UNIT, _RIGHT], grad=(0, 1, 2), second=True),
    Row("_backward_relu", [np.ones(3), np.array([0.0, 2.0, np.nan])],
        expected=lambda g, y: np.array([0, 1, np.nan], g.dtype), name="nan"),
    Row("_backward_mod", [_G], expected=lambda g: g, grad=(0,), second=True),
    Row("_backward_mod", [integers(1, 9, 3)], expected=np.zeros_like, name="integers"),
    Row("_backward_polygamma", [_G, _UNIT], {"order": 1}, grad=(0, 1), second=True),
    Row("_backward_clip", [_G, _LEFT], {"a_min": 0.5, "a_max": 1.0}, grad=(0,),
        expected=lambda g, x: g * ((x >= 0.5) & (x <= 1))),
    Row("_backward_hard_sigmoid", [_G, np.array([[0.0, 0.3, 1.0], [0.5, 0.0, 0.9]])], {"alpha": 0.3},
        grad=(0,), expected=lambda g, y: g * g.dtype.type(0.3) * (y > 0) * (y < 1)),
    Row("_backward_smooth_l1", [_G, _LEFT], {"scalar": 1.2}, grad=(0, 1), second=True),
    Row("_backward_contrib_quadratic", [_G, _LEFT], {"a": 2.0, "b": 0.5}, grad=(0, 1), second=True),
    Row("_backward_rdiv_scalar", [_G, _LEFT, _RIGHT], {"scalar": 1.3}, grad=(0, 1, 2), second=True),
    Row("_backward_rmod_scalar", [_G, _LEFT], {"scalar": 1.3}, grad=(0,), second=True),
    Row("_backward_npi_rmod_scalar", [_G, _LEFT], {"scalar": 1.3}, grad=(0,), second=True),
    Row("_backward_numpy_mod_rhs", [_WIDE, _WIDE * 1.5, _LINE], grad=(0,), second=True),
    Row("_backward_power_scalar", [_G, _LEFT], {"scalar": 1.3}, grad=(0, 1), second=True),
    Row("_backward_power_scalar", [_G, _LEFT], {"scalar": 2.0}, grad=(0, 1), second=True),
    Row("_backward_rpower_scalar", [_G, _LEFT], {"scalar": 1.3}, grad=(0, 1), second=True),
    Row("_backward_maximum_scalar", [_G, _LEFT], {"scalar": 1.3}, grad=(0,), second=True),
    Row("_backward_minimum_scalar", [_G, _LEFT], {"scalar": 1.3}, grad=(0,), second=True),
    Row("_backward_hypot_scalar", [_G, _LEFT, _RIGHT], {"scalar": 1.3}, grad=(0, 1, 2), second=True),
]
# Each between arrays of one shape, and with inputs that broadcast to the gradient's.
for _name, _count, _smooth in [("div_rhs", 3, True), ("mod_rhs", 3, False), ("power_lhs", 3, True),
                               ("power_rhs", 3, True), ("maximum_lhs", 3, False), ("maximum_rhs", 3, False),
                               ("minimum_lhs", 3, False), ("minimum_rhs", 3, False), ("hypot_lhs", 3, True),
                               ("hypot_rhs", 3, True)]:
    _grad = (0, 1, 2) if _smooth else (0,)
    ROWS += [
        Row(f"_backward_{_name}", [_G, _LEFT, _RIGHT], grad=_grad, second=True),
        Row(f"_backward_broadcast_{_name}", [_WIDE, _WIDE * 1.5, _LINE], grad=_grad, second=True),
    ]
