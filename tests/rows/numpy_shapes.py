"""Rows of operators with NumPy's rules that move, join, split, pad, insert and delete, and that multiply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import Row, integers, normal

__all__ = ["ROWS"]

_X, _M, _V, _POINT = normal(2, 3, 4), normal(3, 4), normal(3, seed=1), np.array(1.25)
_WHOLE = integers(-3, 4, 3, 4)


def _linear(op: str, inputs: list, attrs: dict[str, Any], expected: Callable, name: str = "", **keywords: Any) -> Row:
    """A row of an operator that is linear in each of its floating inputs."""
    grad = [i for i, each in enumerate(inputs) if np.asarray(each).dtype.kind == "f"]
    return Row(op, inputs, attrs, expected=expected, grad=grad, second=True, name=name, **keywords)


ROWS: list[Row] = []

# --------------------------------------------------------------------------------- axes of length one, permutations

ROWS += [_linear("_np_squeeze", [data], {"axis": axis}, lambda x, a=axis: np.squeeze(x, a), f"{data.shape}-{axis}")
         for data, axis in [(normal(1, 3, 1), None), (normal(1, 3, 1), 0), (normal(1, 3, 1), (0, -1)),
                            (normal(1, 1), None), (_POINT, -1), (normal(2, 3), None)]]
for _rank in (1, 2, 3):
    _function: Callable = getattr(np, f"atleast_{_rank}d")
    ROWS += [_linear(f"_np_atleast_{_rank}d", [_POINT, _V, _M, _X], {"num_args": 4}, _function),
             _linear(f"_np_atleast_{_rank}d", [_V, _WHOLE], {"num_args": 2}, _function, "dtypes")]
ROWS += [_linear("_np_moveaxis", [_X], {"source": source, "destination": to},
                 lambda x, s=source, d=to: np.moveaxis(x, s, d)) for source, to in [(0, 2), ((0, -1), (1, 0)), (1, 1)]]
ROWS += [_linear("_npi_flip", [data], {"axis": axis}, lambda x, a=axis: np.flip(x, a), f"{data.shape}-{axis}")
         for data, axis in [(_X, None), (_X, 1), (_X, (0, -1)), (_POINT, None), (_X, ())]]
ROWS += [_linear("_npi_rot90", [_X], {"k": k, "axes": axes}, lambda x, k=k, a=axes: np.rot90(x, k, a))
         for k in (0, 1, 2, 3, -1) for axes in [(0, 1), (2, 0)]]

# ------------------------------------------------------------------------------------------------ joining, splitting

for _name, _like in {"vstack": [_V, _V], "hstack": [_V, normal(2)], "dstack": [_M, _M],
                     "column_stack": [_V, _M]}.items():
    _stack: Callable = getattr(np, _name)
    ROWS += [_linear(f"_npi_{_name}", _like, {"num_args": 2}, lambda *parts, f=_stack: f(parts)),
             _linear(f"_npi_{_name}", [_X, _X, _X], {"num_args": 3}, lambda *parts, f=_stack: f(parts), "three"),
             _linear(f"_npi_{_name}", [_POINT, _POINT], {"num_args": 2}, lambda *parts, f=_stack: f(parts), "numbers")]
ROWS += [_linear("_npi_concatenate", [_M, _M[:2]], {"num_args": 2}, lambda *parts: np.concatenate(parts)),
         _linear("_npi_concatenate", [_M, _M[:, :1]], {"num_args": 2, "axis": -1},
                 lambda *parts: np.concatenate(parts, -1)),
         _linear("_npi_concatenate", [_M, _POINT, _V], {"num_args": 3, "axis": None},
                 lambda *parts: np.concatenate(parts, None))]
ROWS += [_linear("_npi_hsplit", [_X], {"indices": (), "sections": 3}, lambda x: np.hsplit(x, 3)),
         _linear("_npi_hsplit", [_V], {"indices": (0, 1)}, lambda x: np.hsplit(x, [1]), "vector"),
         _linear("_npi_dsplit", [_X], {"indices": (0, 1, 3)}, lambda x: np.dsplit(x, [1, 3])),
         _linear("_npi_dsplit", [_X], {"indices": (), "sections": 2}, lambda x: np.dsplit(x, 2))]

# ---------------------------------------------------------------------------------------------------- diagonals

for _k in (0, 1, -2, 5):
    ROWS += [_linear("_np_diag", [data], {"k": _k}, lambda x, k=_k: np.diag(x, k), f"{data.shape}{_k}")
             for data in (_M, _V)]
    ROWS += [_linear("_np_diagflat", [data], {"k": _k}, lambda x, k=_k: np.diagflat(x, k), f"{data.shape}{_k}")
             for data in (_M, _POINT)]
    ROWS += [_linear("_np_diagonal", [_X], {"offset": _k, "axis1": 2, "axis2": 0},
                     lambda x, k=_k: np.diagonal(x, k, 2, 0)),
             _linear("_np_trace", [_X], {"offset": _k, "axis1": -1, "axis2": 0}, lambda x, k=_k: np.trace(x, k, -1, 0))]
ROWS += [Row("_np_trace", [_WHOLE], expected=lambda x: np.trace(x).astype(x.dtype), name="integers"),
         Row("_npi_diag_indices_from", [normal(3, 3)], expected=lambda x: np.stack(np.diag_indices_from(x)))]

# ------------------------------------------------------------------------------------- padding, inserting, deleting

_WIDTHS = ((0, 1), (2, 2), (1, 0))
ROWS += [_linear("_npi_pad", [_X], {"pad_width": _WIDTHS, "mode": mode}, lambda x, m=mode: np.pad(x, _WIDTHS, m))
         for mode in ("constant", "edge", "reflect", "symmetric", "maximum", "minimum")]
ROWS += [_linear("_npi_pad", [_M], {"pad_width": ((1, 2),), "constant_value": 3.0},
                 lambda x: np.pad(x, ((1, 2), (1, 2)), constant_values=3.0), "number")]
for _place in (0, 2, -1):
    ROWS += [
        _linear("_npi_insert_scalar", [_M], {"val": 2.0, "int_ind": _place, "axis": 1},
                lambda x, i=_place: np.insert(x, i, 2.0, 1)),
        _linear("_npi_insert_scalar", [_M, normal(2, 3)], {"int_ind": _place, "axis": 1},
                lambda x, v, i=_place: np.insert(x, i, v, 1), f"block{_place}"),
        _linear("_npi_insert_scalar", [_M, normal(2)], {"int_ind": _place},
                lambda x, v, i=_place: np.insert(x, i, v), f"flat{_place}"),
        _linear("_npi_delete", [_M], {"int_ind": _place, "axis": 0}, lambda x, i=_place: np.delete(x, i, 0)),
        _linear("_npi_delete", [_M], {"int_ind": _place}, lambda x, i=_place: np.delete(x, i))]
_PLACES = np.array([0, -1, 0, 2], "int64")
ROWS += [
    _linear("_npi_insert_slice", [_M, normal(3, 1)], {"start": 0, "stop": 3, "step": 2, "axis": 1},
            lambda x, v: np.insert(x, slice(0, 3, 2), v, 1)),
    _linear("_npi_insert_slice", [_M], {"val": 1.0, "step": -1, "axis": 0},
            lambda x: np.insert(x, slice(None, None, -1), 1.0, 0)),
    _linear("_npi_insert_tensor", [_M, normal(4, 4), _PLACES], {"axis": 0}, lambda x, v, i: np.insert(x, i, v, 0)),
    _linear("_npi_insert_tensor", [_M, _PLACES], {"val": 2.0}, lambda x, i: np.insert(x, i, 2.0)),
    _linear("_npi_insert_tensor", [_M, normal(2, 4), np.array([1])], {"axis": 0},
            lambda x, v, i: np.insert(x, i, v, 0), "one"),
    _linear("_npi_delete", [_M], {"start": None, "stop": None, "step": 2, "axis": 1},
            lambda x: np.delete(x, slice(None, None, 2), 1)),
    Row("_insertion_order", [_PLACES], {"length": 3}, expected=lambda i: np.insert(np.arange(3), i, [3, 4, 5, 6])),
    Row("_kept_by_deletion", [_M, np.array([2, 0, 9, -1])], {"axis": 1},
        expected=lambda x, i: np.array([0, 1, 0, 1], "uint8")),
    _linear("_npi_resize", [_M], {"new_shape": (5, 3)}, lambda x: np.resize(x, (5, 3))),
    _linear("_npi_resize", [_M], {"new_shape": 5}, lambda x: np.resize(x, 5)),
    Row("_npi_resize", [np.zeros((0, 2))], {"new_shape": 3}, expected=lambda x: np.resize(x, 3), name="empty"),
]

# ----------------------------------------------------------------------------------------- reshapes by codes

ROWS += [_linear("_npx_reshape", [normal(*shape)], {"newshape": codes, "reverse": reverse},
                 lambda x, s=wanted: x.reshape(s), f"{shape}-{codes}")
         for shape, codes, reverse, wanted in [
             ((2, 3, 5), (-2, -1), False, (2, 15)), ((2, 1, 4), (-2, -3, -2), False, (2, 4)),
             ((1, 1), (-3, -3), False, ()), ((6, 4), (-6, 2, -1, -4), False, (2, 3, 4)),
             ((2, 3, 4, 5), (-5, -5), False, (6, 20)),
             ((4, 5, 2, 6), (-4, -1, 3, -6), True, (4, 5, 2, 2, 3))]]

# ------------------------------------------------------------------------------------------------------ products

ROWS += [_linear("_npi_tensordot", [normal(*a), normal(*b, seed=1)], {"a_axes_summed": first, "b_axes_summed": second},
                 lambda x, y, f=first, s=second: np.tensordot(x, y, (f, s)), f"{a}{b}")
         for a, b, first, second in [((2, 3, 4), (4, 3, 5), (2, 1), (0, 1)), ((2, 3), (3,), (-1,), (0,)),
                                     ((2, 3), (3, 2), (), ())]]
ROWS += [_linear("_npi_tensordot_int_axes", [normal(*a), normal(*b, seed=1)], {"axes": axes},
                 lambda x, y, n=axes: np.tensordot(x, y, n), f"{a}{b}{axes}")
         for a, b, axes in [((2, 3, 4), (3, 4, 5), 2), ((3,), (4,), 0), ((2, 3), (3,), 1)]]
ROWS += [_linear("_np_dot", [normal(*a), normal(*b, seed=1)], {}, np.dot, f"{a}{b}")
         for a, b in [((3,), (3,)), ((2, 3), (3, 4)), ((2, 3), (3,)), ((3,), (2, 3, 4)), ((2, 3), (4, 3, 2)),
                      ((), (2, 3)), ((2,), ())]]
ROWS += [_linear("_npi_einsum", [normal(*shape, seed=i) for i, shape in enumerate(shapes)],
                 {"num_args": len(shapes), "subscripts": text}, lambda *xs, t=text: np.einsum(t, *xs), text)
         for text, *shapes in [("ii", (3, 3)), ("ii->i", (3, 3)), ("iij->ji", (2, 2, 3)), ("ij->ji", (2, 3)),
                               ("...j->...", (2, 3)), ("i,j", (2,), (3,)), ("ij,jk", (2, 3), (3, 4)),
                               ("ij,jk,kl->il", (2, 2), (2, 3), (3, 2)), ("...,...", (), (2, 3)),
                               ("...ij,...jk->...ik", (2, 1, 2, 3), (4, 3, 2)), ("ij,ij->i", (1, 3), (2, 3)),
                               ("k...,jk", (3, 2), (4, 3)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 2))]]
