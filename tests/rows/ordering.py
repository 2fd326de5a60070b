"""Rows of the operators that sort."""

from __future__ import annotations

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]

_X = normal(3, 4, 2)
_TIES = np.array([[3.0, 1.0, 2.0, 1.0], [0.0, 5.0, 5.0, 4.0]])
_NAN = np.array([2.0, np.nan, 1.0, 3.0, np.nan, 0.0])
_INTEGERS = np.array([[3, 1, 2], [-1, 200, 7]], "int32")


def _order(x: np.ndarray, axis: int | None, is_ascend: bool) -> tuple[np.ndarray, int]:
    """Indices that sort along an axis; equal elements keep their order."""
    if axis is None:
        x, axis = x.ravel(), 0
    if is_ascend:
        return np.argsort(x, axis, kind="stable"), axis
    keys = np.where(np.isnan(x), -np.inf, -x.astype("float64"))
    return np.argsort(keys, axis, kind="stable"), axis


def _flat(x: np.ndarray, axis: int | None) -> np.ndarray:
    return x.ravel() if axis is None else x


def _sorted(axis=-1, is_ascend=True):
    def expected(x):
        places, along = _order(x, axis, is_ascend)
        return np.take_along_axis(_flat(x, axis), places, along)

    return expected


def _argsorted(axis=-1, is_ascend=True, dtype="float32"):
    return lambda x: _order(x, axis, is_ascend)[0].astype(dtype)


def _top(axis=-1, k=1, ret_typ="indices", is_ascend=False, dtype="float32"):
    def expected(x):
        places, along = _order(x, axis, is_ascend)
        places = np.take(places, range(k if k > 0 else places.shape[along]), along)
        values = np.take_along_axis(_flat(x, axis), places, along)
        mask = np.zeros_like(_flat(x, axis))
        np.put_along_axis(mask, places, 1, along)
        places = places.astype(dtype)
        return {"indices": places, "value": values, "both": (values, places), "mask": mask.reshape(x.shape)}[ret_typ]

    return expected


_ORDERS = [{}, {"is_ascend": False}, {"axis": 0}, {"axis": 1, "is_ascend": False}, {"axis": None}]

ROWS: list[Row] = [
    *[Row("sort", [_X], attrs, expected=_sorted(**attrs), grad=(0,), second=True) for attrs in _ORDERS],
    *[Row("sort", [data], attrs, expected=_sorted(**attrs), name=f"{name},{attrs}")
      for name, data in (("ties", _TIES), ("nan", _NAN), ("int", _INTEGERS)) for attrs in _ORDERS[:2]],
    *[Row("argsort", [_X], attrs, expected=_argsorted(**attrs)) for attrs in _ORDERS],
    *[Row("argsort", [data], {**attrs, "dtype": "int32"}, expected=_argsorted(**attrs, dtype="int32"),
          name=f"{name},{attrs}")
      for name, data in (("ties", _TIES), ("nan", _NAN), ("int", _INTEGERS)) for attrs in _ORDERS[:2]],
    *[Row("topk", [_X], attrs, expected=_top(**attrs), grad=(0,) if attrs.get("ret_typ") == "value" else ())
      for attrs in [
          {}, {"k": 2}, {"k": 0, "axis": 1}, {"k": 3, "axis": None}, {"k": 2, "axis": 1, "dtype": "int32"},
          {"k": 2, "axis": 1, "ret_typ": "value"}, {"k": 2, "axis": 0, "ret_typ": "value", "is_ascend": True},
          {"k": 3, "axis": None, "ret_typ": "value"}, {"k": 2, "axis": 0, "ret_typ": "both", "is_ascend": True},
          {"k": 3, "axis": 1, "ret_typ": "mask"}, {"k": 3, "axis": None, "ret_typ": "mask"}]],
    *[Row("topk", [data], {"k": 3, "ret_typ": "both"}, expected=_top(k=3, ret_typ="both"), name=name)
      for name, data in (("ties", _TIES), ("nan", _NAN), ("int", _INTEGERS))],
]

# ---------------------------------------------------------------------------------------- along an axis

_PLACES = np.array([[0, 2], [3, 1], [1, 0]])
_REPEATED = np.array([[0, 0, 3], [3, -1, 1], [2, 2, -2]])
_MATRIX = normal(3, 4, seed=1)


def _put(g: np.ndarray, places: np.ndarray, x: np.ndarray) -> np.ndarray:
    result = np.zeros_like(x)
    np.add.at(result, (np.arange(len(x))[:, None], places), g)
    return result


ROWS += [
    Row("_take_along_axis", [_MATRIX, _PLACES], {"axis": 1}, grad=(0,), second=True,
        expected=lambda x, i: np.take_along_axis(x, i, 1)),
    Row("_take_along_axis", [_MATRIX, _REPEATED], {"axis": 1}, grad=(0,), second=True, name="repeated indices",
        expected=lambda x, i: np.take_along_axis(x, i, 1)),
    Row("_take_along_axis", [_MATRIX, np.array([7, 3, 7])], {"axis": None}, grad=(0,), second=True,
        expected=lambda x, i: x.ravel()[i]),
    Row("_backward_take_along_axis", [normal(3, 2), _PLACES, _MATRIX], {"axis": 1}, expected=_put, grad=(0,),
        second=True),
    Row("_backward_take_along_axis", [normal(3, 3), _REPEATED, _MATRIX], {"axis": 1}, expected=_put, grad=(0,),
        second=True, name="repeated indices"),
    Row("_backward_take_along_axis", [normal(3), np.array([7, 3, 7]), _MATRIX], {"axis": None}, grad=(0,), second=True,
        expected=lambda g, i, x: np.bincount(i, g, 12).reshape(3, 4).astype(g.dtype)),
]

# ------------------------------------------------------------------------------- counts and comparisons

_COUNTED = np.array([0.0, 1.0, 2.0, 2.5, 4.0, 5.0, -1.0, np.nan])
ROWS += [
    Row("_histogram", [_COUNTED], {"bin_cnt": 5, "range": (0, 5)},
        expected=lambda x: (np.array([1, 1, 2, 0, 2]), np.arange(6, dtype=x.dtype))),
    Row("_histogram", [_COUNTED, np.array([0.0, 1.0, 3.0, 5.0])],
        expected=lambda x, bins: (np.array([1, 3, 2]), bins)),
    Row("_contrib_allclose", [_X, _X + 1e-9], expected=lambda a, b: np.uint8(1)),
    Row("_contrib_allclose", [_X, _X + 1e-3], {"rtol": 0.0}, expected=lambda a, b: np.uint8(0)),
    Row("_contrib_allclose", [_NAN, _NAN], {"equal_nan": False}, expected=lambda a, b: np.uint8(0)),
    Row("_contrib_allclose", [np.array([1.0, np.inf]), np.array([1.0, np.inf])], expected=lambda a, b: np.uint8(1),
        name="infinities"),
    Row("_contrib_allclose", [np.array([1.0]), np.array([np.inf])], expected=lambda a, b: np.uint8(0),
        name="beside an infinity"),
    *[Row("_contrib_getnnz", [np.array([[0.0, 2, 0], [1, 0, 3]])], {"axis": axis},
          expected=lambda x, counts=counts: np.array(counts)) for axis, counts in [
              (None, [3]), (0, [1, 1, 1]), (1, [1, 2])]],
]
