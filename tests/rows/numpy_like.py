"""Rows of the operators with NumPy's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import Row, integers, normal, uniform

__all__ = ["ROWS"]

_X, _Y = normal(2, 3, 4), normal(2, 3, 4, seed=1)
_FEW, _MORE = integers(-2, 3, 3, 4).astype("float64"), integers(-2, 3, 4, seed=1).astype("float64")
_WHOLE, _BYTES = integers(-3, 4, 3, 4), integers(0, 9, 2, 1, dtype="uint8")
_TRUTH, _OTHER = normal(3, 4) > 0, normal(4, seed=1) > 0
_ODD = np.array([0.0, np.nan, np.inf, -np.inf, -1.5])
_POINT = np.array(1.25)
_NONE = np.zeros((0, 3))
_FLOATS = ("float64", "float32", "float16")

ROWS: list[Row] = []

# --------------------------------------------------------------------------------------- comparisons and logic

for _name in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or",
              "logical_xor"):
    _function: Callable = getattr(np, _name)
    ROWS += [Row(f"_npi_{_name}", inputs, expected=_function, dtypes=_FLOATS, name=name) for name, inputs in {
        "broadcast": [_FEW, _MORE], "numbers": [_POINT, _POINT], "number": [_FEW, np.array(1.0)],
        "integers": [_WHOLE, _WHOLE[:1]], "mixed": [_WHOLE, _BYTES.reshape(2, 1, 1)], "truth": [_TRUTH, _OTHER],
        "floats": [_FEW, _WHOLE], "empty": [_NONE, _NONE], "odd": [_ODD, np.roll(_ODD, 1)], "same-odd": [_ODD, _ODD],
    }.items()]
    ROWS += [Row(f"_npi_{_name}_scalar", [data], {"scalar": number, "is_int": number % 1 == 0}, name=name,
                 expected=lambda x, f=_function, n=number: f(x, int(n) if n % 1 == 0 and x.dtype.kind in "iu" else n),
                 dtypes=_FLOATS)
             for name, data, number in [
                 ("floats", _FEW, 1.0), ("integers", _WHOLE, 1.0), ("between", _WHOLE, 0.5), ("number", _POINT, 1.25),
                 ("truth", _TRUTH, 1.0), ("out-of-range", _BYTES, -1.0),
                 ("large", np.array([2**53, 2**53 + 1]), 2.0**53), ("empty", _NONE, 0.0),
                 ("odd", _ODD, float("inf"))]]

for _name in ("logical_not", "isnan", "isinf", "isfinite", "isposinf", "isneginf"):
    ROWS += [Row(f"_npi_{_name}", [data], expected=getattr(np, _name), dtypes=_FLOATS, name=name)
             for name, data in {"odd": _ODD, "many": np.resize(_ODD, (3, 4, 15)), "integers": _WHOLE, "number": _POINT,
                                "truth": _TRUTH, "empty": _NONE}.items()]

for _name in ("and", "or", "xor"):
    _function = getattr(np, f"bitwise_{_name}")
    ROWS += [Row(f"_npi_bitwise_{_name}", inputs, expected=_function, name=name) for name, inputs in {
        "integers": [_WHOLE, _WHOLE[1:2]], "bytes": [_BYTES, _BYTES[:1]], "truth": [_TRUTH, _OTHER],
        "number": [_WHOLE, np.array(5, "int32")], "empty": [_WHOLE[:0], _WHOLE[:1]]}.items()]
    ROWS += [Row(f"_npi_bitwise_{_name}_scalar", [data], {"scalar": number}, name=name,
                 expected=lambda x, f=_function, n=number: f(x, n))
             for name, data, number in [("integers", _WHOLE, -2), ("bytes", _BYTES, 6), ("truth", _TRUTH, 3),
                                        ("number", np.array(5, "int64"), 4)]]
ROWS += [Row("_npi_bitwise_not", [data], expected=np.bitwise_not) for data in (_WHOLE, _BYTES, _TRUTH)]

# ---------------------------------------------------------------------------------------------------- reshape

ROWS += [Row("_np_reshape", [data], {"newshape": shape}, grad=(0,), second=True,
             expected=lambda x, shape=shape: x.reshape(shape))
         for data, shape in [(_X, (4, 6)), (_X, -1), (_X, (3, -1, 2)), (_X, (2, 3, 4)), (_X, (1, 24, 1)),
                             (_POINT, (1, 1)), (_POINT, ()), (normal(1, 1), ()), (_POINT, (-1,))]]
ROWS += [Row("_np_reshape", [data], {"newshape": shape}, expected=lambda x, shape=shape: x.reshape(shape), name=name)
         for name, data, shape in [("empty", _NONE, (0,)), ("empty-rest", _NONE, (-1, 3)), ("zero", _NONE, (3, 0, 5)),
                                   ("integers", _WHOLE, (2, -1)), ("truth", _TRUTH, 12)]]

# ----------------------------------------------------------------------------------------------------- matmul

ROWS += [Row("_npi_matmul", [normal(*a), normal(*b, seed=1)], expected=np.matmul, grad=(0, 1), second=True,
             dtypes=_FLOATS, name=f"{a}@{b}")
         for a, b in [((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3, 4)),
                      ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((2, 1, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)),
                      ((5, 2, 3), (1, 3, 4)), ((3,), (5, 3, 4)), ((2, 5, 2, 3), (3,)), ((5, 2, 3), (3,)),
                      ((1, 1, 2, 3), (3, 2))]]
ROWS += [Row("_npi_matmul", inputs, expected=np.matmul, name=name) for name, inputs in {
    "integers": [_WHOLE, _WHOLE.T.copy()], "no-rows": [np.ones((0, 3)), np.ones((3, 2))],
    "nothing-summed": [np.ones((4, 2, 0)), np.ones((0, 3))], "no-batch": [np.ones((0, 2, 3)), np.ones((3, 2))],
    "no-columns": [np.ones((4, 2, 3)), np.ones((3, 0))]}.items()]


def _cotangents(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [normal(*shape, seed=i) for i, shape in enumerate(shapes)]


ROWS += [
    Row("_backward_npi_matmul_a", _cotangents((5, 2, 4), (3, 4), (5, 2, 3)), grad=(0, 1), second=True,
        expected=lambda g, b, a: g @ b.T),
    Row("_backward_npi_matmul_a", _cotangents((5, 2, 4), (5, 3, 4), (2, 3)), grad=(0, 1), second=True,
        expected=lambda g, b, a: (g @ b.swapaxes(1, 2)).sum(0), name="summed"),
    Row("_backward_npi_matmul_b", _cotangents((5, 2, 4), (5, 2, 3), (3, 4)), grad=(0, 1), second=True,
        expected=lambda g, a, b: np.einsum("imn,imk->kn", g, a)),
    Row("_backward_npi_matmul_b", _cotangents((5, 4), (3,), (5, 3, 4)), grad=(0, 1), second=True, name="vector",
        expected=lambda g, a, b: a[:, None] * g[:, None]),
]

# ------------------------------------------------------------------------------------------- where, parts written

ROWS += [Row("_npi_where", [c, *xy], expected=lambda c, x, y: np.where(c != 0, x, y), grad=(1, 2), second=True,
             name=name)
         for name, c, xy in [
             ("truth", _TRUTH, [normal(3, 4), normal(3, 4, seed=2)]),
             ("broadcast", integers(0, 2, 3, 1), [normal(4), normal(2, 1, 4)]),
             ("numbers", np.array(True), [_POINT, np.array(2.0)]), ("rows", _OTHER, [np.array(1.0), normal(3, 1)])]]
ROWS += [
    Row("_npi_where", [_FEW, _X[0], _Y[0]], expected=lambda c, x, y: np.where(c != 0, x, y), dtypes=_FLOATS,
        grad=(1, 2), name="floats"),
    Row("_npi_where", [_TRUTH, _WHOLE, _WHOLE[:1]], expected=np.where, name="integers"),
    Row("_npi_where", [_TRUTH, _TRUTH, _OTHER], expected=np.where, name="truth-values"),
    Row("_npi_where", [_NONE, _NONE, np.array(2.0)], expected=lambda c, x, y: x, name="empty"),
]
for _name, _side in (("lscalar", False), ("rscalar", True)):
    ROWS += [Row(f"_npi_where_{_name}", [c, x], {"scalar": -1.5}, grad=() if x.dtype.kind != "f" else (1,), second=True,
                 name=name, expected=lambda c, x, side=_side: np.where((c != 0) == side, x, np.asarray(-1.5, x.dtype)))
             for name, c, x in [("truth", _TRUTH, normal(4)), ("wide", integers(0, 2, 4), normal(2, 3, 1)),
                                ("number", np.array(0), _POINT), ("integers", _TRUTH, _WHOLE),
                                ("truth-values", _TRUTH, _OTHER)]]

_KEYS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "number": (1, (3, 4)), "one": ((1, 2, 3), ()), "one-of-one": ((1, 2, 3), (1,)),
    "negative": (-1, (1, 4)), "slice": (slice(0, 1), ()),
    "column": ((slice(None), 1), (2, 1)), "steps": ((slice(None, None, -1), slice(0, 3, 2)), (4,)),
    "dots": ((Ellipsis, 2), (2, 3)), "new-axis": ((None, 0), (1, 3, 4)), "leading-ones": (0, (1, 1, 3, 4)),
    "rows": (np.array([1, 0]), (3, 1)), "places": ((np.array([[0, 1]]), np.array([1, 2])), (1, 2, 4)),
    "all": (Ellipsis, ()), "nothing": (slice(1, 1), (4,)), "repeated": (np.array([1, 0, 1]), (3, 3, 4)),
    "repeated-places": ((np.array([1, 1, 0]), slice(None), np.array([2, 2, 0])), (3, 1)),
}


def _assigned(key: Any) -> Callable:
    def expected(data: np.ndarray, value: np.ndarray) -> np.ndarray:
        result = data.copy()
        result[key] = value.reshape(()) if value.size == 1 else value
        return result

    return expected


def _gathered(key: Any) -> Callable:
    def expected(g: np.ndarray, value: np.ndarray) -> np.ndarray:
        written = np.zeros(g.shape, int)
        written[key] = np.arange(g[key].size).reshape(g[key].shape)
        part = np.where(written[key] == np.arange(g[key].size).reshape(g[key].shape), g[key], 0)
        part = part.reshape((1,) * (value.ndim - part.ndim) + part.shape)
        extra = part.ndim - value.ndim
        axes = tuple(i for i, dim in enumerate((1,) * extra + value.shape) if dim != part.shape[i])
        return part.sum(axes, keepdims=True).reshape(value.shape)

    return expected


ROWS += [Row("_subscript_assign", [_X, normal(*shape)], {"key": key}, _assigned(key), (0, 1), True, name=name)
         for name, (key, shape) in _KEYS.items()]
ROWS += [
    Row("_subscript_assign", [_X, np.array(3)], {"key": 0}, _assigned(0), (0,), True, name="cast"),
    Row("_subscript_assign", [_WHOLE, np.array([1.5, -1.5, 2, 0])], {"key": 0}, _assigned(0), name="cut-off"),
    Row("_subscript_assign", [_TRUTH, _OTHER], {"key": 1}, _assigned(1), name="truth"),
]
ROWS += [Row("_backward_subscript_assign", [_X, normal(*shape)], {"key": key}, _gathered(key), (0,), True, name=name)
         for name, (key, shape) in _KEYS.items()]

# ------------------------------------------------------------------------------------------------- reductions

_CUBE = uniform(0.4, 2, 2, 3, 4)
_WAYS: list[dict[str, Any]] = [{}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"axis": (0, -1)}, {"axis": ()},
                               {"axis": (2, 0), "keepdims": True}, {"keepdims": True}]
_REDUCTIONS: dict[str, Callable] = {
    "_np_sum": np.sum, "_npi_mean": np.mean, "_np_prod": np.prod, "_np_max": np.max, "_np_min": np.min,
    "_npi_var": np.var, "_npi_std": np.std}


def _by(function: Callable, **keywords: Any) -> Callable:
    return lambda x: np.asarray(function(x, **keywords))


for _name, _function in _REDUCTIONS.items():
    # At a single number the root of the variance has no slope.
    ROWS += [Row(_name, [_CUBE], way, expected=_by(_function, **way), second=True,
                 grad=() if _name == "_npi_std" and way.get("axis") == () else (0,)) for way in _WAYS]
    ROWS += [Row(_name, [data], expected=_by(_function), name=name)
             for name, data in {"integers": _WHOLE, "int64": _WHOLE.astype("int64")}.items()]
    ROWS += [Row(_name, [_POINT], expected=_by(_function), grad=() if _name == "_npi_std" else (0,), name="number"),
             Row(_name, [_POINT], {"axis": ()}, expected=_by(_function), name="number"),
             Row(_name, [normal(3, 4)], {"axis": 1}, expected=_by(_function, axis=1), dtypes=("float16",), name="half"),
             Row(_name, [np.zeros((3, 0, 2))], {"axis": 2}, expected=_by(_function, axis=2), name="empty")]
ROWS += [
    Row("_np_sum", [_TRUTH], {"axis": 0}, expected=_by(np.sum, axis=0), name="truth"),
    Row("_np_sum", [integers(0, 250, 3, 4, dtype="uint8")], expected=lambda x: np.sum(x, dtype="uint8"), name="bytes"),
    Row("_np_sum", [_NONE], expected=_by(np.sum), name="empty"),
    Row("_np_prod", [_NONE], {"axis": 0}, expected=_by(np.prod, axis=0), name="empty"),
    Row("_np_sum", [np.ones((2, 5000))], {"axis": 1}, expected=lambda x: np.full(2, 5000, x.dtype),
        dtypes=("float16",), name="half"),
    Row("_np_sum", [_X], {"axis": 1, "dtype": "float64"}, expected=lambda x: np.sum(x, 1, "float64"), grad=(0,),
        second=True),
    Row("_np_sum", [_X], {"dtype": "float32"}, expected=lambda x: np.sum(x, dtype="float32")),
    Row("_np_sum", [_X * 2], {"axis": 2, "dtype": "int32"}, expected=lambda x: x.astype("int32").sum(2, "int32")),
    Row("_np_sum", [_TRUTH], {"axis": 1, "dtype": "bool"}, expected=lambda x: x.any(1)),
    Row("_npi_mean", [_WHOLE], {"axis": 1, "dtype": "float32"}, expected=lambda x: np.mean(x, 1, "float32")),
    Row("_npi_mean", [_X], {"axis": 1, "dtype": "float64"}, expected=lambda x: np.mean(x, 1, "float64"), grad=(0,),
        second=True),
    Row("_npi_mean", [np.full((2, 3), 60000.0)], expected=lambda x: x[0, 0], dtypes=("float16",), name="half"),
    Row("_npi_mean", [_TRUTH], expected=_by(np.mean), name="truth"),
    Row("_npi_mean", [_NONE], {"axis": 0}, expected=lambda x: np.full(3, np.nan, x.dtype), name="empty"),
    Row("_np_prod", [_X], {"axis": 1, "dtype": "float64"}, expected=lambda x: np.prod(x, 1, "float64"), grad=(0,),
        second=True),
    Row("_np_prod", [np.array([[2.0, 0, 3], [0, 0, 3], [1, 2, 4]])], {"axis": 1}, expected=_by(np.prod, axis=1),
        grad=(0,), name="zeros"),
    Row("_np_max", [_TRUTH], {"axis": 0}, expected=_by(np.max, axis=0), name="truth"),
    Row("_np_max", [np.array([[1.0, np.nan], [2.0, 3.0]])], {"axis": 1}, expected=_by(np.max, axis=1), name="nan"),
    Row("_npi_var", [_CUBE], {"axis": (0, 2), "ddof": 1}, expected=_by(np.var, axis=(0, 2), ddof=1), grad=(0,),
        second=True),
    Row("_npi_std", [_CUBE], {"axis": 1, "ddof": 2, "keepdims": True}, grad=(0,), second=True,
        expected=_by(np.std, axis=1, ddof=2, keepdims=True)),
    Row("_npi_std", [_CUBE], {"dtype": "float64"}, expected=_by(np.std, dtype="float64"), grad=(0,), second=True),
    Row("_npi_var", [np.ones((2, 1))], {"axis": 1, "ddof": 1}, expected=lambda x: np.full(2, np.nan, x.dtype),
        name="none-left"),
    Row("_npi_var", [_WHOLE], {"dtype": "float32"}, expected=_by(np.var, dtype="float32"), name="integers"),
]
for _name, _function in (("_npi_argmax", np.argmax), ("_npi_argmin", np.argmin)):
    ROWS += [Row(_name, [_X], way, expected=_by(_function, **way), dtypes=_FLOATS)
             for way in ({}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"keepdims": True})]
    ROWS += [Row(_name, [data], expected=_by(_function), name=name)
             for name, data in {"number": _POINT, "integers": _WHOLE, "truth": _TRUTH, "odd": _ODD}.items()]
    ROWS += [Row(_name, [np.zeros((0, 3))], {"axis": 1}, expected=_by(_function, axis=1), name="empty")]
for _name, _function in (("_np_any", np.any), ("_np_all", np.all)):
    ROWS += [Row(_name, [_FEW], way, expected=_by(_function, **way), dtypes=_FLOATS)
             for way in ({}, {"axis": 1}, {"axis": (-1, 0)}, {"axis": 0, "keepdims": True}, {"axis": ()})]
    ROWS += [Row(_name, [data], expected=_by(_function), name=name)
             for name, data in {"number": _POINT, "integers": _WHOLE, "truth": _TRUTH, "odd": _ODD,
                                "empty": _NONE}.items()]
ROWS += [
    Row("_backward_np_sum", [normal(3), _CUBE], {"axis": (0, 2)}, grad=(0,), second=True,
        expected=lambda g, a: np.broadcast_to(g[None, :, None], a.shape)),
    Row("_backward_np_sum", [normal(), _CUBE], grad=(0,), second=True, name="number",
        expected=lambda g, a: np.broadcast_to(g, a.shape)),
    Row("_backward_np_sum", [normal(2, 1, 4), _CUBE], {"axis": -2, "keepdims": True}, grad=(0,), second=True,
        expected=lambda g, a: np.broadcast_to(g, a.shape)),
    Row("_backward_npi_mean", [normal(2, 4), _CUBE], {"axis": 1, "ddof": 1}, grad=(0,), second=True,
        expected=lambda g, a: g / 2),
    Row("_backward_npi_mean", [normal(), _CUBE], grad=(0,), second=True, expected=lambda g, a: g / 24),
]

# --------------------------------------------------------------------------------------------- moved and rounded

for _name, _function in (("_npi_tril", np.tril), ("_npi_triu", np.triu)):
    ROWS += [Row(_name, [_X], {"k": k}, expected=lambda x, f=_function, k=k: f(x, k), grad=(0,), second=True)
             for k in (0, 1, -2, 9)]
    ROWS += [Row(_name, [data], expected=_function, name=name)
             for name, data in {"integers": _WHOLE, "truth": _TRUTH}.items()]
ROWS += [Row("_np_roll", [_X], {"shift": shift, "axis": axis}, grad=(0,), second=True,
             expected=lambda x, s=shift, a=axis: np.roll(x, s, a))
         for shift, axis in [(5, None), (-1, 1), ((1, -2), (0, -1)), (2, (0, 1)), ((2,), (0, 1))]]
ROWS += [
    Row("_np_roll", [_X], {"shift": (3,)}, expected=lambda x: np.roll(x, 3)),
    Row("_np_roll", [_X], {"shift": (3,), "axis": 2}, expected=lambda x: np.roll(x, 3, 2)),
    Row("_np_roll", [_POINT], {"shift": 1}, expected=lambda x: x, name="number"),
    Row("_np_roll", [_NONE], {"shift": 1, "axis": 0}, expected=lambda x: x, name="empty"),
    Row("_npi_floor_divide", [_X, _X[:1] * 0.3], expected=lambda x, y: np.floor(x / y)),
    # MXNet rounds the quotient, so that of infinity is infinity; NumPy says NaN.
    Row("_npi_floor_divide", [np.array([1.0, -1.0, 0.0, np.inf, -np.inf, np.nan, 5.0]),
                              np.array([0.0, 0.0, 0.0, 2.0, -3.0, 1.0, -np.inf])], name="limits",
        expected=lambda x, y: np.array([np.inf, -np.inf, np.nan, np.inf, np.inf, np.nan, 0.0]), dtypes=_FLOATS),
    Row("_npi_floor_divide", [np.array([[7], [-7], [0]], "int8"), np.array([0, 2, -1], "int8")], name="integers",
        expected=lambda x, y: np.array([[127, 3, -7], [-128, -4, 7], [0, 0, 0]], "int8")),
    Row("_npi_floor_divide", [np.array([True, False]), np.array([[True], [False]])], name="truth",
        expected=lambda x, y: np.array([[True, False], [True, False]])),
    Row("_npi_true_divide", [_X, _X[:1] * 0.3 + 9], expected=np.divide, grad=(0, 1), second=True),
    Row("_npi_true_divide", [np.array([[7], [-7]], "int8"), np.array([3, 2, -1], "int64")], name="integers",
        expected=lambda x, y: np.float32(x / y)),
    Row("_npi_true_divide", [np.array([7, -7], "int32"), np.array([2.0, 4.0])], name="mixed",
        expected=lambda x, y: x / y),
    Row("_npi_true_divide_scalar", [_X], {"scalar": 0.3}, expected=lambda x: x / x.dtype.type(0.3), grad=(0,)),
    Row("_npi_true_divide_scalar", [_WHOLE], {"scalar": 2.0}, expected=lambda x: np.float32(x / 2), name="integers"),
    Row("_npi_rtrue_divide_scalar", [abs(_X) + 1], {"scalar": 0.3}, grad=(0,),
        expected=lambda x: x.dtype.type(0.3) / x),
    Row("_npi_rtrue_divide_scalar", [np.array([1, 2, -4])], {"scalar": 2.0}, expected=lambda x: np.float32(2 / x),
        name="integers"),
    Row("_npi_around", [np.array([0.5, 1.5, 2.5, -0.5, 2.4, np.nan])], expected=np.around, dtypes=_FLOATS,
        name="halves"),
    Row("_npi_around", [_X * 10], {"decimals": 1}, expected=lambda x: np.around(x, 1)),
    Row("_npi_around", [integers(-99, 99, 7)], {"decimals": -1}, expected=lambda x: np.around(x, -1), name="integers"),
    Row("_npi_full_like", [_X], {"fill_value": 2.5}, expected=lambda x: np.full_like(x, 2.5), dtypes=_FLOATS),
    Row("_npi_full_like", [_X], {"fill_value": 2.5, "dtype": "int32"}, expected=lambda x: np.full(x.shape, 2, "int32")),
    Row("_npi_full_like", [_WHOLE], {"fill_value": -1.5}, expected=lambda x: np.full_like(x, -1), name="integers"),
    Row("_npi_full_like", [_POINT], {"fill_value": 1.0, "dtype": "bool"}, expected=lambda x: np.array(True)),
]
