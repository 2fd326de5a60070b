"""Rows of the operators that change shapes, dtypes or sizes, and of those that make arrays."""

from __future__ import annotations

import numpy as np

from . import Row, integers, normal

__all__ = ["ROWS"]

_X = normal(2, 3, 4)
_SMALL = normal(3, 4, seed=1)
_G = normal(2, 3, 4, seed=2)
_FLAGS = np.array([1.7, -1.7, 0.0, 300.0, -0.2])


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape)


def _linear(op, inputs, attrs, expected, **keywords):
    """A row of an operator that is linear in its first input."""
    return Row(op, inputs, attrs, expected=expected, grad=(0,), second=True, **keywords)


def _shaped(*shape: int):
    return lambda x, *_: x.reshape(shape)


# ------------------------------------------------------------------------------------------------- shapes

ROWS: list[Row] = [
    _linear("Reshape", [_X], {"shape": shape, **attrs}, _shaped(*target)) for shape, attrs, target in [
        ((24,), {}, (24,)), ((4, -1), {}, (4, 6)), ((0, -1), {}, (2, 12)),
        ((-2,), {}, (2, 3, 4)), ((-2, 1, 1), {}, (2, 3, 4, 1, 1)), ((-3, 4), {}, (6, 4)), ((2, -3), {}, (2, 12)),
        ((-3, -2), {}, (6, 4)), ((-4, 1, 2, -2), {}, (1, 2, 3, 4)), ((2, -4, -1, 3, -2), {}, (2, 1, 3, 4)),
        ((0, 0, -4, 2, -1), {}, (2, 3, 2, 2)), ((-1, 0), {"reverse": True}, (6, 4)),
        ((-3, 0), {"reverse": True}, (6, 4)), ((-2, 2, 2, -4), {"reverse": True}, (2, 3, 2, 2)),
        ((), {"target_shape": (0, 4)}, (6, 4)), ((), {"target_shape": (0, 0), "keep_highest": True}, (2, 12)),
    ]
]
ROWS += [
    _linear("Reshape", [normal(6, seed=3)], {"shape": 6}, _shaped(6)),
    _linear("reshape_like", [_X, _zeros(6, 4)], {}, _shaped(6, 4)),
    _linear("reshape_like", [normal(6, 4), _zeros(2, 3, 5)],
            {"lhs_begin": 0, "lhs_end": 1, "rhs_begin": 0, "rhs_end": 2}, _shaped(2, 3, 4)),
    _linear("reshape_like", [normal(6, 4), _zeros(5, 2, 2)], {"lhs_begin": -1, "rhs_begin": 1}, _shaped(6, 2, 2)),
    _linear("reshape_like", [_X, np.zeros((24,), "int32")], {}, _shaped(24), name="int"),
    _linear("Flatten", [_X], {}, _shaped(2, 12)),
    _linear("Flatten", [normal(5)], {}, _shaped(5, 1), name="vector"),
    *[_linear("expand_dims", [_SMALL], {"axis": axis}, lambda x, axis=axis: np.expand_dims(x, axis))
      for axis in (0, 1, 2, -1, -3)],
    *[_linear("squeeze", [normal(1, 3, 1, 2)], attrs, _shaped(*target)) for attrs, target in [
        ({}, (3, 2)), ({"axis": 0}, (3, 1, 2)), ({"axis": (-2, 0)}, (3, 2)), ({"axis": (2,)}, (1, 3, 2))]],
    _linear("squeeze", [normal(1, 1)], {}, _shaped(1), name="all"),
    _linear("transpose", [_X], {}, np.transpose),
    *[_linear("transpose", [_X], {"axes": axes}, lambda x, axes=axes: np.transpose(x, axes))
      for axes in ((0, 2, 1), (2, 0, 1), (0, -1, 1))],
    *[_linear("SwapAxis", [_X], {"dim1": i, "dim2": j}, lambda x, i=i, j=j: np.swapaxes(x, i, j))
      for i, j in ((0, 2), (-1, 1), (0, 0))],
    Row("shape_array", [_X], expected=lambda x: np.array(x.shape, "int64")),
    Row("size_array", [_X], expected=lambda x: np.array([x.size], "int64")),
]

# ------------------------------------------------------------------------------------------ the same, cast

ROWS += [
    _linear("_copy", [_X], {}, lambda x: x),
    Row("BlockGrad", [_X], expected=lambda x: x),
    _linear("_identity_with_attr_like_rhs", [_X, _G], {}, lambda x, y: x),
    *[Row("Cast", [_FLAGS], {"dtype": dtype}, expected=lambda x, dtype=dtype: x.astype(dtype))
      for dtype in ("int32", "float16", "int64")],
    Row("Cast", [_FLAGS], {"dtype": "bool"}, expected=lambda x: x != 0),
    _linear("Cast", [_X], {"dtype": "float64"}, lambda x: x.astype("float64"), dtypes=("float64",)),
    Row("_backward_cast", [_G, _X.astype("float32")], expected=lambda g, x: g.astype(x.dtype)),
    _linear("_backward_cast", [_G, _X], {}, lambda g, x: g, name="same"),
    Row("amp_cast", [_X], {"dtype": "float16"}, expected=lambda x: x.astype("float16")),
    _linear("amp_cast", [_X], {"dtype": "float64"}, lambda x: x.astype("float64"), dtypes=("float64",)),
    Row("amp_cast", [integers(0, 9, 3)], {"dtype": "float16"}, expected=lambda x: x, name="int"),
    Row("amp_multicast", [_X, _G], {"num_outputs": 2}, expected=lambda x, y: (x, y), grad=(0, 1), second=True),
    Row("amp_multicast", [_X, _G, integers(0, 9, 3)], {"num_outputs": 3, "cast_narrow": True},
        expected=lambda x, y, i: (x, y, i)),
    Row("amp_multicast", [_X], {"num_outputs": 1}, expected=lambda x: x, grad=(0,)),
    _linear("cast_storage", [_X], {"stype": "default"}, lambda x: x),
    _linear("cast_storage", [_X], {"stype": "row_sparse"}, lambda x: x),
]

# -------------------------------------------------------------------------------------------- broadcasting

ROWS += [
    *[_linear("broadcast_to", [data], {"shape": shape},
              lambda x, target=target: np.broadcast_to(x, target)) for data, shape, target in [
        (normal(1, 3), (2, 3), (2, 3)), (normal(2, 1, 4), (0, 3, 0), (2, 3, 4)), (normal(3), (2, 3), (2, 3)),
        (normal(2, 3), (2, 3), (2, 3))]],
    *[_linear("_np_broadcast_to", [data], {"shape": shape}, lambda x, target=shape: np.broadcast_to(x, target))
      for data, shape in [(normal(1, 3), (2, 3)), (normal(3), (2, 3)), (normal(2, 1, 4), (2, 3, 4))]],
    Row("_np_broadcast_to", [normal(1, 1)], {"shape": (1, 0)}, name="empty",
        expected=lambda x: np.zeros((1, 0), x.dtype)),
    *[_linear("broadcast_axis", [normal(1, 3, 1)], {"axis": axis, "size": size},
              lambda x, target=target: np.broadcast_to(x, target)) for axis, size, target in [
        ((0, 2), (2, 5), (2, 3, 5)), (0, 4, (4, 3, 1)), ((-1,), (2,), (1, 3, 2)), ((), (), (1, 3, 1))]],
    _linear("broadcast_like", [normal(1, 3), _zeros(2, 3)], {}, lambda x, y: np.broadcast_to(x, y.shape)),
    _linear("broadcast_like", [normal(3), _zeros(2, 3)], {}, lambda x, y: np.broadcast_to(x, y.shape), name="rank"),
    _linear("broadcast_like", [normal(1, 2, 1), _zeros(3, 5)], {"lhs_axes": (0, -1), "rhs_axes": (0, 1)},
            lambda x, y: np.broadcast_to(x, (3, 2, 5))),
    _linear("_reduce_like", [_X, _zeros(1, 4)], {}, lambda x, y: x.sum((0, 1)).reshape(1, 4), name="rank"),
    _linear("_reduce_like", [_X, _zeros(2, 1, 4)], {}, lambda x, y: x.sum(1, keepdims=True), name="middle"),
    _linear("_reduce_like", [_X, _zeros(2, 3, 1)], {}, lambda x, y: x.sum(2, keepdims=True), name="rows"),
    _linear("_reduce_like", [_X, _zeros(3, 1)], {}, lambda x, y: x.sum((0, 2)).reshape(3, 1), name="rows, rank"),
    _linear("_reduce_like", [_X, _zeros(2, 3, 4)], {}, lambda x, y: x, name="same"),
    _linear("_reduce_like", [normal(1, 2, 3), _zeros(2, 3)], {}, lambda x, y: x[0], name="ones"),
    *[_linear("tile", [_SMALL], {"reps": reps}, lambda x, reps=reps: np.tile(x, reps))
      for reps in ((2, 2), (2,), 3, (2, 1, 3), (), (1, 0))],
    _linear("tile", [_X], {"reps": (2,)}, lambda x: np.tile(x, 2), name="short"),
    *[_linear("repeat", [_SMALL], {"repeats": n, "axis": axis}, lambda x, n=n, axis=axis: np.repeat(x, n, axis))
      for n, axis in ((2, None), (3, 1), (2, -1), (2, -2), (0, None))],
    *[_linear("repeat", [_SMALL], {"repeats": 0, "axis": axis}, lambda x: x[:0, 0]) for axis in (0, 1)],
    _linear("squeeze", [normal(1, 3)], {"axis": ()}, lambda x: x),
    *[_linear("diag", [_SMALL[:rows]], {"k": k}, lambda x, k=k: np.diagonal(x, k))
      for rows, k in ((3, 4), (3, -3), (0, 0), (0, 2))],
    Row("zeros_like", [_X], expected=np.zeros_like),
    Row("ones_like", [_X], expected=np.ones_like),
    Row("ones_like", [integers(0, 9, 2, 3)], expected=np.ones_like, name="int"),
]

# -------------------------------------------------------------------------------- operators without inputs

ROWS += [
    Row("_zeros", attrs={"shape": (2, 3)}, expected=lambda: np.zeros((2, 3), "f")),
    Row("_zeros", attrs={"shape": 2, "dtype": "int8"}, expected=lambda: np.zeros(2, "int8")),
    Row("_ones", attrs={"shape": (2, 3), "dtype": "int32"}, expected=lambda: np.ones((2, 3), "int32")),
    Row("_full", attrs={"shape": (2, 3), "value": 1.5}, expected=lambda: np.full((2, 3), 1.5, "f")),
    Row("_full", attrs={"shape": (2,), "value": -1, "dtype": "uint8"}, expected=lambda: np.full(2, 255, "uint8")),
    Row("_full", attrs={"shape": (2,), "value": 1.7, "dtype": "int32"}, expected=lambda: np.ones(2, "int32")),
    Row("_zeros_without_dtype", attrs={"shape": (2,)}, expected=lambda: np.zeros(2, "f")),
    Row("_zeros_without_dtype", attrs={"shape": (2,), "dtype": 4}, expected=lambda: np.zeros(2, "int32")),
    *[Row("_arange", attrs=attrs, expected=lambda values=values: np.array(values)) for attrs, values in [
        ({"start": 3}, np.arange(3, dtype="f")), ({"start": 1, "stop": 2.1, "step": 0.4}, np.float32([1, 1.4, 1.8])),
        ({"start": 5, "stop": 1, "step": -2, "repeat": 2}, np.float32([5, 5, 3, 3])),
        ({"start": 0.5, "stop": 2, "step": 0.5, "dtype": "int32"}, np.int32([0, 0, 0]))]],
    Row("_linspace", attrs={"start": 0, "stop": 1, "num": 5}, expected=lambda: np.linspace(0, 1, 5, dtype="f")),
    Row("_linspace", attrs={"start": 0, "stop": 1, "num": 4, "endpoint": False},
        expected=lambda: np.float32([0, 0.25, 0.5, 0.75])),
    Row("_linspace", attrs={"start": 0, "stop": 10, "num": 4, "dtype": "int32"},
        expected=lambda: np.int32([0, 3, 6, 10])),
    Row("_eye", attrs={"N": 3, "M": 4, "k": 1}, expected=lambda: np.eye(3, 4, 1, "f")),
    Row("_eye", attrs={"N": 2, "dtype": "int64"}, expected=lambda: np.eye(2, dtype="int64")),
    Row("_contrib_arange_like", [_SMALL], expected=lambda x: np.arange(12, dtype=x.dtype).reshape(3, 4)),
    Row("_contrib_arange_like", [_SMALL], {"axis": -1, "start": 2.0, "step": 0.5, "repeat": 2},
        expected=lambda x: np.array([2, 2, 2.5, 2.5], x.dtype)),
    Row("_contrib_index_array", [_SMALL], expected=lambda x: np.moveaxis(np.indices((3, 4)), 0, -1)),
    Row("_contrib_index_array", [_X], {"axes": (-1, 0)},
        expected=lambda x: np.moveaxis(np.indices((2, 3, 4))[[2, 0]], 0, -1)),
    Row("reset_arrays", [_X, _SMALL], {"num_arrays": 2}),
]
