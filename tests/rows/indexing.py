"""Rows of the operators that look up elements, put them back, and choose among them."""

from __future__ import annotations

import numpy as np

from . import Row, integers, normal

__all__ = ["ROWS"]

_X = normal(3, 4, 2)
_MATRIX = normal(3, 4, seed=1)
_WILD = np.array([0, -1, 5, 2], "int32")  # indices out of range on both sides
_NESTED = np.array([[0, 2], [1, 1]], "int64")
_FRACTIONS = np.array([0.0, 1.9, 2.0])


def _linear(op, inputs, attrs, expected, grad=(0,), **keywords):
    """A row of an operator that is linear in the inputs that have a gradient."""
    return Row(op, inputs, attrs, expected=expected, grad=grad, second=True, **keywords)


def _sums(lookup):
    """The expected gradient of a lookup in the last input: ``g`` added up at the positions that were read."""

    def expected(g, *rest):
        data = rest[-1]
        places = lookup(np.arange(data.size).reshape(data.shape))
        return np.bincount(places.ravel(), g.ravel(), data.size).reshape(data.shape).astype(g.dtype)

    return expected


# ------------------------------------------------------------------------------------- take and Embedding

ROWS: list[Row] = []
for _indices, _attrs, _lookup in [
    (_WILD, {}, lambda x: x[[0, 0, 2, 2]]),
    (_WILD, {"mode": "wrap", "axis": 1}, lambda x: x[:, [0, 3, 1, 2]]),
    (_NESTED, {"axis": -1, "mode": "clip"}, lambda x: x[:, :, [[0, 1], [1, 1]]]),
    (_NESTED, {"axis": 1, "mode": "raise"}, lambda x: x[:, [[0, 2], [1, 1]]]),
    (_NESTED - 2, {"axis": 1, "mode": "index"}, lambda x: x[:, np.array([[0, 2], [1, 1]]) - 2]),
]:
    ROWS += [
        _linear("take", [_X, _indices], _attrs, lambda x, i, lookup=_lookup: lookup(x)),
        _linear("_backward_take", [normal(*_lookup(_X).shape), _indices, _X], _attrs, _sums(_lookup)),
    ]
ROWS += [
    _linear("take", [_X, _FRACTIONS], {}, lambda x, i: x[[0, 1, 2]], name="fractions"),
    _linear("Embedding", [_WILD, _MATRIX], {"input_dim": 3, "output_dim": 4}, lambda i, w: w[[0, 0, 2, 2]], grad=(1,)),
    _linear("Embedding", [_NESTED, _MATRIX], {"input_dim": 3, "output_dim": 4, "sparse_grad": True},
            lambda i, w: w[i], grad=(1,), name="nested"),
    _linear("_contrib_SparseEmbedding", [_NESTED, _MATRIX], {"input_dim": 3, "output_dim": 4, "deterministic": True},
            lambda i, w: w[i], grad=(1,)),
]

# ------------------------------------------------------------------------------------------------- pick

for _index, _attrs, _lookup in [
    (np.array([0, -1, 9]), {}, lambda x: x[[0, 1, 2], [0, 0, 3]]),
    (np.array([0, -1, 9]), {"mode": "wrap"}, lambda x: x[[0, 1, 2], [0, 3, 1]]),
    (np.array([[0], [1], [2]]), {"axis": 1, "keepdims": True}, lambda x: x[[[0], [1], [2]], [[0], [1], [2]]]),
    (np.array([0, 1, 2, 0]), {"axis": 0}, lambda x: x[[0, 1, 2, 0], [0, 1, 2, 3]]),
    (np.array([[0, 1, 2, 0]]), {"axis": -2}, lambda x: x[[0, 1, 2, 0], [0, 1, 2, 3]]),
]:
    ROWS += [
        _linear("pick", [_MATRIX, _index], _attrs, lambda x, i, lookup=_lookup: lookup(x)),
        _linear("_backward_pick", [normal(*_lookup(_MATRIX).shape), _index, _MATRIX], _attrs, _sums(_lookup)),
    ]
ROWS += [
    _linear("pick", [_X, integers(0, 4, 3, 2)], {"axis": 1},
            lambda x, i: np.take_along_axis(x, i[:, None].astype(int), 1)[:, 0]),
    *[_linear("pick", [np.array([1.0, 2.0, 3.0]), index], attrs, lambda x, i: x[1:2], name=f"vector{number}")
      for number, (index, attrs) in enumerate([
          (np.array([1.0]), {}), (np.array([1.0]), {"keepdims": True}), (np.array(1.0), {}),
          (np.array([4.0]), {"axis": 0, "mode": "wrap"})])],
    _linear("_sparse_retain", [_MATRIX, np.array([2, 0, 2], "int32")], {}, lambda x, i: x * [[1], [0], [1]]),
    _linear("batch_take", [_MATRIX, np.array([0, -1, 9], "int32")], {}, lambda x, i: x[[0, 1, 2], [0, 0, 3]]),
]

# ---------------------------------------------------------------------------------------- one_hot, where

_CHOICE = np.array([[1, 0, 0, 1], [0, 0, 2, 0], [1, 1, 1, 1]])
ROWS += [
    Row("one_hot", [_WILD], {"depth": 3}, expected=lambda i: np.eye(4, 3, dtype="f")[[0, 3, 3, 2]]),
    Row("one_hot", [_NESTED], {"depth": 3, "on_value": 2.0, "off_value": -1.0, "dtype": "int32"},
        expected=lambda i: np.eye(3, dtype="int32")[i] * 3 - 1),
    Row("one_hot", [_FRACTIONS], {"depth": 3}, expected=lambda i: np.eye(3, dtype="f"), name="fractions"),
    _linear("where", [_CHOICE, _MATRIX, -_MATRIX], {}, np.where, grad=(1, 2)),
    _linear("where", [np.array([1.0, 0.0, np.nan]), _MATRIX, -_MATRIX], {},
            lambda c, x, y: np.where(c[:, None], x, y), grad=(1, 2), name="rows"),
    _linear("where", [np.array([True, False]), normal(2), normal(2, seed=1)], {}, np.where, grad=(1, 2), name="bool"),
]

# --------------------------------------------------------------------------------------------- gather_nd

_PLACES = np.array([[0, 1, 0, -1], [1, 3, 1, -2]])
_ROW = np.array([[0, 2, 2]])


def _scattered(shape, places):
    def expected(x, *_):
        result = np.zeros(shape, x.dtype)
        result[tuple(places)] = x
        return result

    return expected


ROWS += [
    _linear("gather_nd", [_X, _PLACES], {}, lambda x, i: x[tuple(i)]),
    _linear("gather_nd", [_X, _ROW.astype("float32")], {}, lambda x, i: x[_ROW[0]], name="row"),
    _linear("gather_nd", [_MATRIX, np.array([[[0, 1], [2, 2]], [[1, 1], [3, 0]]])], {}, lambda x, i: x[tuple(i)],
            name="nested"),
    _linear("_backward_gather_nd", [normal(4, 2), _PLACES, _X], {}, _sums(lambda x: x[tuple(_PLACES)])),
    _linear("_backward_gather_nd", [normal(3, 4), _ROW, _MATRIX], {}, _sums(lambda x: x[_ROW[0]]), name="row"),
    _linear("_backward_gather_nd", [normal(4, 2), _PLACES], {"shape": (3, 4, 2)},
            lambda g, i: _sums(lambda x: x[tuple(i)])(g, _X)),
    _linear("scatter_nd", [normal(3), np.array([[0, 1, 0], [1, 3, 2]])], {"shape": (2, 4)},
            _scattered((2, 4), np.array([[0, 1, 0], [1, 3, 2]]))),
    _linear("scatter_nd", [normal(2, 4), np.array([[0, 2]])], {"shape": (3, 4)}, _scattered((3, 4), [[0, 2]])),
    _linear("_scatter_set_nd", [_MATRIX, normal(2), np.array([[0, 1], [1, 3]])], {"shape": (3, 4)},
            lambda x, y, i: _scattered((3, 4), i)(y - x[tuple(i)]) + x, grad=(0, 1)),
]

# -------------------------------------------------------------------------- parts along an axis, by number

_KEPT = np.array([1, 0, 1])
_REPEATED = np.array([[2.0, 1.0, 2.0], [3.0, 1.0, 3.0]])
ROWS += [
    _linear("_contrib_index_copy", [_MATRIX, np.array([2, 0]), normal(2, 4)], {},
            lambda x, i, y: np.stack([y[1], x[1], y[0]]), grad=(0, 2)),
    _linear("_contrib_boolean_mask", [_MATRIX, _KEPT], {}, lambda x, i: x[[0, 2]]),
    _linear("_contrib_boolean_mask", [_X, np.array([0, 1, 1, 0])], {"axis": 1}, lambda x, i: x[:, [1, 2]]),
    _linear("_backward_contrib_boolean_mask", [normal(2, 4), _KEPT, _MATRIX], {},
            lambda g, i, x: np.stack([g[0], 0 * g[0], g[1]])),
    _linear("_boolean_mask_like", [_MATRIX, _KEPT, normal(2, 4)], {}, lambda x, i, like: x[[0, 2]]),
    Row("_npx_nonzero", [np.where(_MATRIX > 0, _MATRIX, 0)], expected=lambda x: np.stack(np.nonzero(x), 1)),
    Row("_npi_unique", [_REPEATED], expected=np.unique),
    Row("_npi_unique", [_REPEATED], {"return_index": True, "return_inverse": True, "return_counts": True},
        expected=lambda x: [each.ravel() for each in np.unique(x, True, True, True)]),
    Row("_npi_unique", [_REPEATED], {"return_counts": True, "axis": 1}, expected=lambda x: [*np.unique(
        x, return_counts=True, axis=1)]),
    Row("fill_element_0index", [_MATRIX, np.array([9.0, 8.0, 7.0]), np.array([0, 3, 1])],
        expected=lambda x, y, i: np.where(np.eye(4)[i] > 0, y[:, None], x)),
    Row("_onehot_encode", [np.array([0, 2]), np.zeros((2, 3))], expected=lambda i, x: np.eye(3, dtype=x.dtype)[i]),
]

# ----------------------------------------------------------------------------------------------- diagonals

_CUBE = normal(2, 3, 4, seed=4)
ROWS += [
    *[_linear("diag", [normal(3)], {"k": k}, lambda x, k=k: np.diag(x, k)) for k in (0, 1, -2)],
    *[_linear("diag", [_MATRIX], {"k": k}, lambda x, k=k: np.diagonal(x, k)) for k in (0, 2, -1)],
    *[_linear("diag", [_CUBE], dict(k=k, axis1=i, axis2=j), lambda x, k=k, i=i, j=j: np.diagonal(x, k, i, j))
      for k, i, j in ((0, 0, 1), (1, -1, 0), (-1, 1, 2), (0, 2, 1))],
    *[_linear("_backward_diag", [normal(*np.diagonal(_CUBE, k, i, j).shape), _CUBE], dict(k=k, axis1=i, axis2=j),
              _sums(lambda x, k=k, i=i, j=j: np.diagonal(x, k, i, j)))
      for k, i, j in ((0, 0, 1), (1, -1, 0), (-1, 1, 2))],
    _linear("_backward_diag", [normal(4, 4), np.zeros(3)], {"k": 1}, lambda g, x: np.diagonal(g, 1)),
]

# ------------------------------------------------------------------------------------------- flat indices

ROWS += [
    Row("_ravel_multi_index", [np.array([[3, 6, 6], [4, 5, 1]])], {"shape": (7, 6)},
        expected=lambda x: np.array([22, 41, 37])),
    Row("_ravel_multi_index", [np.array([[1.0], [2.0], [3.0]])], {"shape": (-1, 3, 4)},
        expected=lambda x: np.array([23], x.dtype)),
    Row("_unravel_index", [np.array([22, 41, 137])], {"shape": (-1, 6)},
        expected=lambda x: np.array([[3, 6, 22], [4, 5, 5]])),
    Row("_unravel_index", [np.array([[22.0, 41.0]])], {"shape": (2, 5, 6)},
        expected=lambda x: np.array([[[0, 1]], [[3, 1]], [[4, 5]]], x.dtype)),
]
