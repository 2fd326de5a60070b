"""Rows of FullyConnected, dot, batch_dot and their backward operators."""

from __future__ import annotations

import numpy as np

from . import Row, integers, normal

__all__ = ["ROWS"]


def _fc(flatten=True):
    def expected(x, w, b=0.0):
        return (x.reshape(len(x), w.shape[1]) if flatten else x) @ w.T + b

    return expected


def _dot(a=False, b=False):
    def expected(lhs, rhs):
        y = np.tensordot(lhs, rhs, (0 if a else -1, -1 if b else 0))
        return y.reshape(y.shape or (1,))

    return expected


def _batch_dot(a=False, b=False):
    return lambda lhs, rhs: (lhs.swapaxes(-1, -2) if a else lhs) @ (rhs.swapaxes(-1, -2) if b else rhs)


def _row(op, inputs, attrs, expected, grad=None, **keywords):
    grad = tuple(range(len(inputs))) if grad is None else grad
    return Row(op, inputs, attrs, expected=expected, grad=grad, second=bool(grad), **keywords)


_G, _X, _W = normal(3, 5, seed=1), normal(3, 2, 2), normal(5, 4)
_FLAT = {"num_hidden": 5, "flatten": False}

_FULLY_CONNECTED = [
    _row("FullyConnected", (normal(3, 4), _W, normal(5)), {"num_hidden": 5}, _fc()),
    _row("FullyConnected", (_X, _W), {"num_hidden": 5, "no_bias": True}, _fc()),
    _row("FullyConnected", (normal(3, 2, 4), _W, normal(5)), _FLAT, _fc(False)),
    _row("FullyConnected", (normal(4), _W), {**_FLAT, "no_bias": True}, _fc(False), name="vector"),
    _row("FullyConnected", (normal(3), normal(5, 1), normal(5)), {"num_hidden": 5}, _fc(), name="column"),
    _row("FullyConnected", (normal(0, 4), _W, normal(5)), {"num_hidden": 5}, _fc(), (), name="empty"),
    _row("FullyConnected", (integers(-9, 9, 3, 4), integers(-9, 9, 5, 4)), {"num_hidden": 5, "no_bias": True},
         _fc(), (), name="integers"),
    _row("FullyConnected", (_X, _W, normal(5)), {"num_hidden": 5}, None, (), dtypes=("float16",), name="half"),
    _row("_backward_FullyConnected_data", (_G, _W, _X), {"num_hidden": 5},
         lambda g, w, x: (g @ w).reshape(x.shape), (0, 1)),
    _row("_backward_FullyConnected_data", (normal(3, 2, 5), _W, normal(3, 2, 4)), _FLAT,
         lambda g, w, x: g @ w, (0, 1)),
    _row("_backward_FullyConnected_weight", (_G, _X, _W), {"num_hidden": 5},
         lambda g, x, w: g.T @ x.reshape(3, 4), (0, 1)),
    _row("_backward_FullyConnected_weight", (normal(3, 2, 5), normal(3, 2, 4), _W), _FLAT,
         lambda g, x, w: np.tensordot(g, x, ((0, 1), (0, 1))), (0, 1)),
]

# Every rank and pair of transposes: shapes of both inputs.
_DOTS = [
    ((4,), (4,), {}),
    ((3, 4), (4, 5), {}),
    ((4, 3), (5, 4), {"transpose_a": True, "transpose_b": True}),
    ((4, 3), (4, 5), {"transpose_a": True}),
    ((3, 4), (5, 4), {"transpose_b": True}),
    ((4,), (4, 5), {}),
    ((3, 4), (4,), {}),
    ((2, 3, 4), (4, 2, 5), {}),
    ((4, 2, 3), (2, 5, 4), {"transpose_a": True, "transpose_b": True}),
    ((4, 2, 3), (4, 5), {"transpose_a": True}),
    ((2, 0), (0, 3), {}),
]


def _dots(lhs, rhs, attrs):
    a, b = attrs.get("transpose_a", False), attrs.get("transpose_b", False)
    x, y = normal(*lhs), normal(*rhs, seed=1)
    g = normal(*_dot(a, b)(x, y).shape, seed=2)
    return [
        _row("dot", (x, y), attrs, _dot(a, b), name=f"{lhs},{rhs},{a},{b}"),
        _row("_backward_dot_lhs", (g, y, x), attrs, None, (0, 1), name=f"{lhs},{rhs},{a},{b}"),
        _row("_backward_dot_rhs", (g, x, y), attrs, None, (0, 1), name=f"{lhs},{rhs},{a},{b}"),
    ]


_BATCHES = [
    _row("batch_dot", (normal(2, *((4, 3) if a else (3, 4))), normal(2, *((5, 4) if b else (4, 5)))),
         {"transpose_a": a, "transpose_b": b}, _batch_dot(a, b))
    for a in (False, True) for b in (False, True)
] + [
    _row("batch_dot", (normal(2, 3, 4, 5), normal(2, 3, 5, 2)), {}, _batch_dot(), name="four axes"),
    _row("batch_dot", (integers(-9, 9, 2, 3, 4), integers(-9, 9, 2, 4, 5)), {}, _batch_dot(), (), name="integers"),
]

ROWS: list[Row] = [*_FULLY_CONNECTED, *(row for case in _DOTS for row in _dots(*case)), *_BATCHES]
