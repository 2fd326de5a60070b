"""Rows of the reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Row, integers, normal, uniform

__all__ = ["ROWS"]


def _full(result: np.ndarray, dtype) -> np.ndarray:
    """A result of rank zero as opreg returns it: with shape (1,), in the dtype of the data."""
    return np.asarray(result).reshape(np.shape(result) or (1,)).astype(dtype)


def _by(function, **keywords):
    return lambda x: _full(function(x, **keywords), x.dtype)


def _gap(x: np.ndarray) -> np.ndarray:
    """The values with some NaN among them."""
    x = x.copy()
    x.flat[::4] = np.nan
    return x


_CUBE = uniform(0.4, 2, 2, 3, 4)
_SIGNED = normal(3, 4)
# Attributes, and NumPy's names for them.
_WAYS = [({}, {}), ({"axis": 1}, {"axis": 1}),
         ({"axis": (0, -1), "keepdims": True}, {"axis": (0, 2), "keepdims": True}),
         ({"axis": (1,), "exclude": True}, {"axis": (0, 2)}), ({"axis": ()}, {}),
         ({"keepdims": True}, {"keepdims": True})]
_NUMPY = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min, "nansum": np.nansum,
          "nanprod": np.nanprod, "_square_sum": lambda x, **keywords: np.sum(x * x, **keywords)}

_ZEROS = _SIGNED.copy()
_ZEROS[0, 1] = _ZEROS[1, 0] = _ZEROS[1, 2] = 0


def _products(order: int, axis: Any) -> Any:
    """For each element the product of the others, or for order 2 the sum over the others of ``h`` times the product of
    the rest."""

    def expected(*arrays):
        x, axes = arrays[-1], range(arrays[-1].ndim) if axis is None else np.atleast_1d(axis).astype(int).tolist()
        found = np.zeros(x.shape)
        for place in np.ndindex(x.shape):
            row = [other for other in np.ndindex(x.shape) if other != place
                   and all(i in axes or other[i] == place[i] for i in range(x.ndim))]
            if order == 1:
                found[place] = np.prod([x[other] for other in row])
            else:
                found[place] = sum(arrays[0][other] * np.prod([x[third] for third in row if third != other])
                                   for other in row)
        return found.astype(x.dtype)

    return expected


ROWS: list[Row] = [Row(name, [_CUBE], attrs, expected=_by(function, **keywords), grad=(0,), second=True)
                   for name, function in _NUMPY.items() for attrs, keywords in _WAYS]
ROWS += [
    Row("sum", [_SIGNED], {"axis": (0, 1), "exclude": True}, expected=lambda x: x, grad=(0,)),
    Row("sum", [_SIGNED], {"axis": -1, "exclude": True}, grad=(0,), second=True,
        expected=lambda x: x.sum(axis=tuple(range(x.ndim - 1)))),
    Row("sum", [integers(0, 200, 3, 4, dtype="uint8")], {"axis": 0}, name="integers",
        expected=lambda x: np.sum(x, axis=0).astype("uint8")),
    Row("sum", [np.ones((2, 5000))], {"axis": 1}, dtypes=("float16",), name="half",
        expected=lambda x: np.full(2, 5000, x.dtype)),
    Row("sum", [np.zeros((0, 3))], {"axis": 0}, expected=_by(np.sum, axis=0), name="empty"),
    Row("mean", [integers(-9, 9, 3, 4)], {"axis": 1}, name="integers",
        expected=lambda x: np.trunc(np.mean(x, axis=1)).astype(x.dtype)),
    Row("nansum", [_gap(_SIGNED)], {"axis": 1}, expected=_by(np.nansum, axis=1), name="nan"),
    Row("nanprod", [_gap(_SIGNED)], {"axis": 1}, expected=_by(np.nanprod, axis=1), grad=(0,), second=True, name="nan"),
    *[Row(name, [_ZEROS], {"axis": 1, "keepdims": keepdims}, expected=_by(np.prod, axis=1, keepdims=keepdims),
          grad=(0,), second=True, name=f"zeros{keepdims:d}")
      for name in ("prod", "nanprod", "_np_prod") for keepdims in (False, True)],
    *[Row("_prod_of_others", [_ZEROS], {"axis": axis}, expected=_products(1, axis), grad=(0,))
      for axis in (1, (0,), None, ())],
    Row("_prod_of_others", [_CUBE], {"axis": (1,), "exclude": True}, expected=_products(1, (0, 2)), grad=(0,),
        second=True),
    *[Row("_prod_of_pairs", [_SIGNED, _ZEROS], {"axis": axis}, expected=_products(2, axis), grad=(0,))
      for axis in (1, (0,), None, ())],
    Row("_prod_of_pairs", [normal(2, 3, 4, seed=2), _CUBE], {"axis": (1, 2)}, expected=_products(2, (1, 2)),
        grad=(0, 1), second=True),
    Row("max", [_gap(_SIGNED)], {"axis": 1}, expected=_by(np.max, axis=1), name="nan"),
    Row("norm", [_SIGNED], expected=_by(lambda x: np.sqrt(np.sum(x * x))), grad=(0,), second=True),
    Row("norm", [_SIGNED], {"axis": 1}, expected=_by(np.linalg.norm, axis=1), grad=(0,), second=True),
    Row("norm", [_SIGNED], {"ord": 1, "axis": (0,), "keepdims": True}, grad=(0,), second=True,
        expected=_by(lambda x: np.sum(np.abs(x), 0, keepdims=True))),
    Row("norm", [_SIGNED], {"axis": (0, 1), "out_dtype": "float64"}, grad=(0,),
        expected=lambda x: np.sqrt(np.sum(x * x, dtype="float64")).reshape(1)),
    Row("norm", [_SIGNED], {"ord": 1, "out_dtype": "float32"},
        expected=lambda x: np.sum(np.abs(x)).reshape(1).astype("float32")),
    Row("norm", [np.full((1, 4), 300.0)], expected=lambda x: np.full(1, 600, x.dtype), dtypes=("float16", "float32"),
        name="half"),
    Row("moments", [_CUBE], {"axes": (0, 2)}, grad=(0,), second=True,
        expected=lambda x: (np.mean(x, (0, 2)), np.var(x, (0, 2)))),
    Row("moments", [np.array([[1, 5, 9], [100, 3, 7]], "int32")], {"axes": (0,)},
        lambda x: (np.array([50, 4, 8], "int32"), np.array([2450, 1, 1], "int32")), name="integers"),
    Row("moments", [_SIGNED], {"axes": (-1,), "keepdims": True}, grad=(0,), second=True,
        expected=lambda x: (np.mean(x, -1, keepdims=True), np.var(x, -1, keepdims=True))),
    Row("argmax", [_SIGNED], expected=_by(np.argmax)),
    Row("argmax", [_SIGNED], {"axis": -1, "keepdims": True}, expected=_by(np.argmax, axis=-1, keepdims=True)),
    Row("argmin", [_SIGNED], {"keepdims": True}, expected=_by(np.argmin, keepdims=True)),
    Row("argmin", [_SIGNED], {"axis": 0}, expected=_by(np.argmin, axis=0)),
    Row("argmax", [np.array([[5.0, 5.0, np.nan], [1.0, 3.0, 3.0]])], {"axis": 1},
        expected=lambda x: np.array([2, 1], x.dtype), name="ties"),
    Row("argmax", [integers(0, 9, 2, 5)], {"axis": 1}, expected=_by(np.argmax, axis=1), name="integers"),
    Row("argmax_channel", [_CUBE], expected=_by(np.argmax, axis=1)),
    Row("_np_cumsum", [_SIGNED], expected=np.cumsum, grad=(0,), second=True),
    Row("_np_cumsum", [_CUBE], {"axis": 1}, expected=lambda x: np.cumsum(x, 1), grad=(0,), second=True),
    Row("_np_cumsum", [_CUBE], {"axis": -1, "dtype": "float64"}, grad=(0,), dtypes=("float64", "float32"),
        expected=lambda x: np.cumsum(x, 2, "float64")),
    Row("_np_cumsum", [np.array([1.2, .7, -.9, -.3, -.4, 1.9])], {"dtype": "int32"},
        expected=lambda x: np.array([1, 1, 1, 1, 1, 2])),
    Row("_np_cumsum", [np.array([True, False, True])], expected=lambda x: np.array([1, 1, 2]), name="truth"),
    Row("_backward_sum", [normal(3), _CUBE], {"axis": (0, 2)}, grad=(0,), second=True,
        expected=lambda g, x: np.broadcast_to(g[None, :, None], x.shape)),
    Row("_backward_sum", [normal(1), _SIGNED], grad=(0,), second=True,
        expected=lambda g, x: np.broadcast_to(g, x.shape)),
    Row("_backward_mean", [normal(2, 1, 4), _CUBE], {"axis": 1, "keepdims": True}, grad=(0,), second=True,
        expected=lambda g, x: np.broadcast_to(g / 3, x.shape)),
    Row("_backward_cumsum", [normal(2, 3, 4, seed=1), _CUBE], {"axis": 1}, grad=(0,), second=True,
        expected=lambda g, x: np.cumsum(g[:, ::-1], 1)[:, ::-1]),
    Row("_backward_cumsum", [normal(12), _SIGNED], grad=(0,), second=True,
        expected=lambda g, x: np.cumsum(g[::-1])[::-1].reshape(3, 4)),
]
