"""Rows of softmax and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]


def _soft(x: np.ndarray, axis: int = -1, scale: float = 1.0) -> np.ndarray:
    e = np.exp(scale * x)
    return e / e.sum(axis, keepdims=True)


def _masked(axis: int = -1, scale: float = 1.0) -> Any:
    def expected(x, length):
        counts = _along(x, axis) < np.expand_dims(length, axis)
        e = np.exp(scale * x) * counts
        total = e.sum(axis, keepdims=True)
        return e / np.where(total == 0, 1, total)

    return expected


def _along(x: np.ndarray, axis: int) -> np.ndarray:
    return np.arange(x.shape[axis]).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


def _softmax_back(g: np.ndarray, y: np.ndarray, axis: int = -1, scale: float = 1.0) -> np.ndarray:
    return scale * y * (g - (g * y).sum(axis, keepdims=True))


def _log_back(g: np.ndarray, y: np.ndarray, axis: int = -1, scale: float = 1.0) -> np.ndarray:
    return scale * (g - np.exp(y) * g.sum(axis, keepdims=True))


_HALF = dict(dtypes=("float64", "float32", "float16"))
_BOTH = dict(grad=(0,), second=True)
_LENGTHS = np.array([[0, 2, 3], [1, 4, 2]], "int32")

ROWS: list[Row] = [
    Row("softmax", [normal(3, 4)], {}, _soft, **_BOTH, **_HALF),
    Row("softmax", [normal(2, 3, 4)], {"axis": 1, "temperature": 2.0}, lambda x: _soft(x, 1, 0.5), **_BOTH),
    Row("softmax", [normal(2, 40)], {"temperature": 0.5}, lambda x: _soft(x, -1, 2.0), **_BOTH),
    Row("softmax", [normal(3, 2)], {"axis": 0}, lambda x: _soft(x, 0), **_BOTH),
    Row("softmax", [normal(2, 3, 4), _LENGTHS], {"use_length": True}, _masked(), **_BOTH),
    Row("softmax", [normal(2, 4, 3), _LENGTHS], {"use_length": True, "axis": 1, "temperature": 2.0},
        _masked(1, 0.5), **_BOTH),
    Row("softmax", [normal(3, 4)], {"dtype": "float64"}, lambda x: _soft(x.astype("float64")), dtypes=("float32",)),
    Row("softmax", [np.zeros((0, 3))], {}, lambda x: x, name="empty"),
    Row("softmax", [np.array([[1e4, -1e4], [-np.inf, 0.0]])], {}, lambda x: np.array([[1.0, 0.0], [0.0, 1.0]]),
        name="large"),
    Row("softmin", [normal(3, 4)], {}, lambda x: _soft(-x), **_BOTH, **_HALF),
    Row("softmin", [normal(2, 3, 4)], {"axis": 1, "temperature": 2.0}, lambda x: _soft(x, 1, -0.5), **_BOTH),
    Row("log_softmax", [normal(3, 4)], {}, lambda x: np.log(_soft(x)), **_BOTH, **_HALF),
    Row("log_softmax", [normal(2, 3, 4)], {"axis": 1, "temperature": 2.0}, lambda x: np.log(_soft(x, 1, 0.5)),
        **_BOTH),
    Row("log_softmax", [normal(2, 40)], {}, lambda x: np.log(_soft(x)), name="wide", **_BOTH),
    Row("log_softmax", [np.array([[1e4, -1e4]])], {}, lambda x: np.array([[0.0, -2e4]]), name="large"),
    Row("log_softmax", [normal(3, 4)], {"dtype": "float64"}, lambda x: np.log(_soft(x.astype("float64"))),
        dtypes=("float32",)),
    Row("SoftmaxActivation", [normal(3, 4)], {}, _soft, **_BOTH),
    Row("SoftmaxActivation", [normal(2, 3, 2, 2)], {"mode": "channel"}, lambda x: _soft(x, 1), **_BOTH),
    Row("_backward_softmax", [normal(3, 4), normal(3, 4, seed=1)], {}, _softmax_back, (0, 1), True),
    Row("_backward_softmax", [normal(2, 3, 2), normal(2, 3, 2, seed=1)], {"axis": 1, "temperature": 2.0},
        lambda g, y: _softmax_back(g, y, 1, 0.5), (0, 1), True),
    Row("_backward_log_softmax", [normal(3, 4), normal(3, 4, seed=1)], {}, _log_back, (0, 1), True),
    Row("_backward_log_softmax", [normal(2, 3, 2), normal(2, 3, 2, seed=1)], {"axis": 1, "temperature": 2.0},
        lambda g, y: _log_back(g, y, 1, 0.5), (0, 1), True),
]
