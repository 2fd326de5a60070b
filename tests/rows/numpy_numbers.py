"""Rows of operators with NumPy's rules that make arrays or matrices, or compute from several elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import Row, integers, normal, uniform

__all__ = ["ROWS"]

_M, _V = normal(3, 4), normal(4, seed=1)
_WHOLE, _FEW = integers(-3, 4, 3, 4), integers(1, 5, 4)
_ODD = np.array([0.0, np.nan, np.inf, -np.inf, -1.5])

ROWS: list[Row] = []

# ---------------------------------------------------------------------------------------- arithmetic of two arrays

for _name, _function, _second in [("add", np.add, _V), ("subtract", np.subtract, _V), ("multiply", np.multiply, _V),
                                  ("power", np.power, _V), ("mod", np.mod, _V), ("hypot", np.hypot, _V)]:
    _first = np.abs(_M) + 0.5 if _name == "power" else _M
    ROWS += [Row(f"_npi_{_name}", [_first, _second], expected=_function, grad=(0, 1), second=_name != "mod"),
             Row(f"_npi_{_name}", [_first, _FEW], grad=(0,), name="mixed",
                 expected=lambda x, y, f=_function: f(x, y.astype(x.dtype)))]
ROWS += [Row(f"_npi_{name}", [_WHOLE, _FEW.astype("int64")], expected=function, name="integers")
         for name, function in [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply)]]
ROWS += [Row(f"_npi_{name}", [_M > 0, _V > 0], expected=function, name="truth")
         for name, function in [("add", np.logical_or), ("multiply", np.logical_and)]]
_PAIRS: dict[str, Callable] = {"arctan2": np.arctan2, "copysign": np.copysign, "ldexp": lambda x, y: x * 2.0 ** y}
for _name, _function in _PAIRS.items():
    ROWS += [Row(f"_npi_{_name}", [_M, _V], expected=_function, grad=(0, 1)),
             Row(f"_npi_{_name}", [_M, _FEW], grad=(0,), name="mixed",
                 expected=lambda x, y, f=_function: f(x, y.astype(x.dtype))),
             Row(f"_npi_{_name}_scalar", [_M], {"scalar": -2.0}, grad=(0,),
                 expected=lambda x, f=_function: f(x, x.dtype.type(-2.0))),
             Row(f"_npi_r{_name}_scalar", [_M], {"scalar": 2.0}, grad=(0,),
                 expected=lambda x, f=_function: f(x.dtype.type(2.0), x))]
ROWS += [Row("_arctan2", [_M, _V], expected=np.arctan2, grad=(0, 1), second=True),
         Row("_copysign", [_M, _V], expected=np.copysign, grad=(0, 1)),
         Row("_npi_lcm", [_WHOLE, _FEW], expected=np.lcm), Row("_npi_lcm_scalar", [_WHOLE], {"scalar": 6.0},
                                                               expected=lambda x: np.lcm(x, 6)),
         Row("_npi_where_scalar2", [_M > 0], {"x": 1.5, "y": -2.0},
             expected=lambda c: np.where(c, np.float32(1.5), np.float32(-2)))]

# -------------------------------------------------------------------------------------------- element by element

for _name in ("abs", "absolute", "negative", "sign", "square", "rint", "ceil", "floor", "trunc", "fix", "exp", "expm1",
              "log", "log10", "log2", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
              "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "degrees", "radians", "reciprocal"):
    _function = getattr(np, "trunc" if _name == "fix" else _name)  # NumPy 2.5 warns of fix
    _inside = uniform(0.1, 0.4, 3, 4) + (_name == "arccosh")
    _whole = _name in ("abs", "absolute", "negative", "sign", "square", "rint", "ceil", "floor", "trunc", "fix")
    ROWS += [Row(f"_npi_{_name}", [_inside], expected=_function, grad=(0,), second=True),
             Row(f"_npi_{_name}", [np.full(2, _name != "arctanh", "int32")], name="integers",
                 expected=lambda x, f=_function, w=_whole: f(x).astype("int32") if w else f(x.astype("float32")))]
for _name, _number, _function in [("add", 2.0, lambda x, n: x + n), ("subtract", 2.0, lambda x, n: x - n),
                                  ("rsubtract", 2.0, lambda x, n: n - x), ("multiply", 2.0, lambda x, n: x * n),
                                  ("power", 3.0, lambda x, n: x ** n), ("rpower", 2.0, lambda x, n: n ** x)]:
    ROWS += [Row(f"_npi_{_name}_scalar", [np.abs(_M) + 0.5], {"scalar": _number}, grad=(0,), second=True,
                 expected=lambda x, f=_function, n=_number: f(x, n)),
             Row(f"_npi_{_name}_scalar", [_FEW], {"scalar": _number + 0.5, "is_int": False}, name="fraction",
                 expected=lambda x, f=_function, n=_number: f(x.astype("f"), np.float32(n + 0.5))),
             Row(f"_npi_{_name}_scalar", [_FEW], {"scalar": _number}, name="integers",
                 expected=lambda x, f=_function, n=_number: f(x, np.int32(n)))]

ROWS += [Row("_npx_constraint_check", [np.ones((2, 3), bool)], expected=lambda x: np.array(True))]

# ----------------------------------------------------------------------------------- means, differences, statistics

_POSITIVE = uniform(0.5, 2.0, 3, 4)
ROWS += [Row("_npi_average", [_M, _POSITIVE[0]], {"axis": 1, "returned": True}, grad=(0, 1), second=True,
             expected=lambda x, w: np.average(x, 1, w, returned=True)),
         Row("_npi_average", [_M, _POSITIVE], {"axis": (0, 1)}, grad=(0, 1), second=True,
             expected=lambda x, w: np.average(x, weights=w)),
         Row("_npi_average", [_M], {"axis": 0, "weighted": False}, grad=(0,), expected=lambda x: np.average(x, 0)),
         Row("_npi_diff", [_M], {"n": 2}, expected=lambda x: np.diff(x, 2), grad=(0,), second=True),
         Row("_npi_diff", [_M], {"axis": 0}, expected=lambda x: np.diff(x, axis=0), grad=(0,), second=True),
         Row("_npi_diff", [_M > 0], expected=np.diff, name="truth"),
         Row("_npi_ediff1d", [_M], {"to_begin_scalar": 1.0}, grad=(0,), expected=lambda x: np.ediff1d(x, None, 1.0)),
         Row("_npi_ediff1d", [_M, _V, _M], {"to_begin_arr_given": True, "to_end_arr_given": True}, grad=(0, 1, 2),
             expected=lambda x, b, e: np.ediff1d(x, e, b)),
         Row("_npi_nan_to_num", [_ODD], {"posinf": 7.0}, dtypes=("float64", "float32", "float16"),
             expected=lambda x: np.nan_to_num(x, posinf=7.0)),
         Row("_npi_nan_to_num", [_WHOLE], expected=lambda x: x, name="integers"),
         Row("_npi_nan_to_num", [_M], expected=lambda x: x, grad=(0,), name="finite"),
         Row("_npi_polyval", [_V, _M], expected=np.polyval, grad=(0, 1), second=True),
         *[Row("_npi_percentile", [_M, np.array([10.0, 62.5])], {"axis": 1, "interpolation": how},
               expected=lambda x, q, how=how: np.percentile(x, q, 1, method=how))
           for how in ("linear", "lower", "higher", "midpoint", "nearest")],
         Row("_npi_percentile", [_M, np.array([[10.0], [62.5]])], {"axis": 1},
             lambda a, q: np.percentile(a, q, axis=1), tolerance=1e-5),
         Row("_npi_percentile", [_M, np.array(62.5)], {}, lambda a, q: np.asarray(np.percentile(a, q)), tolerance=1e-5),
         Row("_npi_percentile", [_M], {"q_scalar": 30.0, "keepdims": True},
             expected=lambda x: np.percentile(x, 30, keepdims=True)),
         Row("_npi_bincount", [_FEW], {"minlength": 3}, expected=lambda x: np.bincount(x, minlength=3)),
         Row("_npi_bincount", [_FEW, np.array([0.5, 1, 2, 3])], {"minlength": 9, "has_weights": True},
             expected=lambda x, w: np.bincount(x, w, 9).astype(w.dtype))]

# --------------------------------------------------------------------------------------- operators without inputs

ROWS += [Row("_npi_arange", [], {"start": start, "stop": stop, "step": step},
             expected=lambda a=start, b=stop, s=step: np.arange(a, b, s, dtype="f"))
         for start, stop, step in [(1, 5, 1), (5, 1, 1), (5, 1, -2), (0, 2, 0.5)]]
ROWS += [Row("_npi_logspace", [], {"start": 0, "stop": 2, "num": 4, "dtype": "float64"},
             expected=lambda: np.logspace(0, 2, 4)),
         Row("_npi_eye", [], {"N": 3, "M": 4, "k": 1}, expected=lambda: np.eye(3, 4, 1, dtype="f")),
         Row("_npi_eye", [], {"N": 0}, expected=lambda: np.eye(0, dtype="f")),
         Row("_npi_identity", [], {"shape": (3, 3), "dtype": "int32"}, expected=lambda: np.eye(3, dtype="int32")),
         Row("_npi_indices", [], {"dimensions": (2, 3)}, expected=lambda: np.indices((2, 3), "int32")),
         *[Row(f"_npi_{name}", [], {"M": count, "dtype": "float64"}, expected=lambda f=name, n=count: getattr(np, f)(n))
           for name in ("hanning", "hamming", "blackman") for count in (5, 1, -3)]]

# ------------------------------------------------------------------------------------------------ linear algebra

_A, _STACK = normal(3, 3) + 3 * np.eye(3), normal(2, 3, 3, seed=2) + 3 * np.eye(3)
_SYMMETRIC = _STACK + _STACK.swapaxes(1, 2)
_FOUR = (normal(6, 6, seed=3) + 4 * np.eye(6)).reshape(2, 3, 6)



ROWS += [Row("_of_matrices", [normal(1), _A], expected=lambda x, a: x.reshape(()), grad=(0,)),
         *[Row("_npi_svd", [data], expected=lambda a: tuple(np.linalg.svd(a, full_matrices=False)), grad=(0,),
               dtypes=("float64",), tolerance=1e-5) for data in (_A, normal(2, 3, seed=5), _STACK)],
         Row("_npi_solve", [_A, normal(3, 2)], expected=np.linalg.solve, grad=(0, 1), second=True),
         Row("_npi_solve", [_A, normal(3)], expected=np.linalg.solve, grad=(0, 1), second=True, name="vector"),
         Row("_npi_solve", [_STACK, normal(2, 3)], grad=(0, 1), name="vectors",
             expected=lambda a, b: np.linalg.solve(a, b[..., None])[..., 0]),
         Row("_npi_tensorinv", [_FOUR], expected=np.linalg.tensorinv, grad=(0,), second=True),
         Row("_npi_tensorsolve", [_FOUR, normal(2, 3)], expected=np.linalg.tensorsolve, grad=(0, 1), second=True),
         Row("_npi_tensorsolve", [normal(1, 4, 1, 4), normal(2, 2)], expected=np.linalg.tensorsolve, grad=(0, 1),
             name="other axes"),
         Row("_npi_tensorsolve", [uniform(1, 2, 1, 1, 1), normal(1, 1, 1)], expected=np.linalg.tensorsolve, grad=(0, 1),
             name="as many axes"),
         Row("_npi_tensorsolve", [_FOUR, normal(3, 6, seed=6)[:, :2].T.copy()[:2]], {"a_axes": (2,)}, grad=(0, 1),
             expected=lambda a, b: np.linalg.tensorsolve(a, b, (2,)), name="axes"),
         *[Row("_npi_pinv_scalar_rcond", [data], {"rcond": 1e-6}, expected=lambda a: np.linalg.pinv(a, 1e-6),
               tolerance=1e-5) for data in (normal(3, 4), _STACK)],
         Row("_npi_pinv", [_STACK, np.array([1e-6, 1e-5])], expected=np.linalg.pinv, tolerance=1e-5),
         Row("_npi_pinv", [_STACK[0], np.array([1e-6, 1e-5])], tolerance=1e-5,
             expected=lambda a, rcond: np.linalg.pinv(np.stack([a, a]), rcond)),
         Row("_npi_eigvalsh", [_SYMMETRIC], expected=np.linalg.eigvalsh, tolerance=1e-5),
         Row("_npi_eigh", [_SYMMETRIC], expected=lambda a: tuple(np.linalg.eigh(a)), dtypes=("float64",)),
         Row("_npi_eigvals", [np.diag([1.0, 2.0, 3.0])], expected=lambda a: np.linalg.eigvals(a).real),
         Row("_npi_eig", [np.diag([1.0, 2.0, 3.0])],
             expected=lambda a: tuple([part.real for part in np.linalg.eig(a)]))]  # complex since NumPy 2.5
for _order, _axis, _flag in [(2.0, None, -2), (2.0, (0, 2), 1), (1.0, 1, -1), (3.0, 1, -1), (-3.2, 2, -1),
                             (float("inf"), 0, -1), (0.0, 1, -1), (1.0, (0, 2), -1), (-1.0, (2, 0), -1),
                             (float("inf"), (0, 1), -1), (2.0, (0, 2), -1), (-2.0, (1, 2), -1), (2.0, (0, 2), 2)]:
    _kind = {-2: None, 1: "fro", 2: "nuc"}.get(_flag, _order)
    ROWS += [Row("_npi_norm", [normal(2, 3, 4, seed=4)],
                 {"ord": _order, "axis": _axis, "flag": _flag, "keepdims": keep},
                 grad=(0,) if _order else (), tolerance=1e-5,
                 expected=lambda x, o=_kind, a=_axis, k=keep: np.linalg.norm(x, o, a, k) if o is not None else
                 np.sqrt(np.sum(np.square(x), keepdims=k)))
             for keep in (False, True)]
