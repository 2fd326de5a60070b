"""Rows of Pooling, Pooling_v1 and their backward operators."""

from __future__ import annotations

import itertools
import math

import numpy as np

from . import Row, integers, normal

__all__ = ["ROWS"]


def _windows(size, attrs):
    """For each axis, first and last (exclusive) position of each window, before it is clipped at the borders."""
    if attrs.get("global_pool"):
        return [[(0, n)] for n in size]
    rank, convention = len(size), attrs.get("pooling_convention", "valid")
    result = []
    for n, k, s, p in zip(size, attrs["kernel"], attrs.get("stride", (1,) * rank), attrs.get("pad", (0,) * rank)):
        count = {"valid": (n + 2 * p - k) // s + 1, "full": math.ceil((n + 2 * p - k) / s) + 1,
                 "same": math.ceil(n / s)}[convention]
        result.append([(q * s - p, q * s - p + k) for q in range(count)])
    return result


def _pooled(attrs, one):
    """Pooling that applies ``one(numbers of the window, size of the window with padding)`` to each window."""

    def expected(x):
        size = x.shape[2:]
        pads = attrs.get("pad", (0,) * len(size))
        axes = _windows(size, attrs)
        y = np.zeros((*x.shape[:2], *map(len, axes)), x.dtype)
        for index in np.ndindex(y.shape):
            window = [axis[i] for axis, i in zip(axes, index[2:])]
            inside = x[(*index[:2], *(slice(max(a, 0), min(b, n)) for (a, b), n in zip(window, size)))]
            y[index] = one(inside, math.prod(min(b, n + p) - a for (a, b), n, p in zip(window, size, pads)))
        return y

    return expected


def _power(p):
    return lambda inside, count: math.copysign(abs((inside ** p).sum()) ** (1 / p), (inside ** p).sum())


_ONE = {
    "max": lambda inside, count: np.fmax.reduce(inside, axis=None, initial=np.finfo(inside.dtype).min),
    "sum": lambda inside, count: inside.sum(),
    "avg": lambda inside, count: inside.sum() / max(1, count),
}


def _channels_last(expected):
    return lambda x: np.moveaxis(expected(np.moveaxis(x, -1, 1)), 1, -1)


def _row(attrs, x, expected=None, **keywords):
    kind = attrs.get("pool_type", "max")
    return Row("Pooling", (x,), attrs, expected=expected or _pooled(attrs, _ONE[kind]), grad=(0,), second=True,
               **keywords)


_GEOMETRIES = [
    {"kernel": (2, 2), "stride": (2, 2)},
    {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)},
    {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pooling_convention": "full"},
    {"kernel": (3, 2)},
    {"kernel": (2, 1), "stride": (3, 2)},
    {"kernel": (3, 2), "stride": (2, 3), "pooling_convention": "same"},
    {"global_pool": True},
]
_X, _Y = normal(2, 2, 6, 7), normal(1, 2, 4, 3, 5)
_OPEN = {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}
_PAST = {"kernel": (1,), "stride": (5,), "pooling_convention": "full"}
_TIES = np.array([[[[1.0, 1, 0], [1, 1, 0], [0, 0, 0]]]])
_NORM = {"kernel": (2, 2), "stride": (2, 1), "pool_type": "lp"}

_POOLING = [
    *(_row({**attrs, "pool_type": kind}, _X) for attrs in _GEOMETRIES for kind in ("max", "avg", "sum")),
    *(_row({"kernel": (3,), "stride": (2,), "pool_type": kind}, normal(2, 2, 9)) for kind in ("max", "avg")),
    *(_row({"kernel": (2,), "stride": (2, 1, 1), "pad": (0, 0, 0), "pooling_convention": convention}, normal(2, 2, 9),
           name=f"axes that are not there, {convention}") for convention in ("valid", "same")),
    *(_row({"kernel": (2, 3, 2), "stride": (2, 1, 2), "pad": (1, 0, 1), "pool_type": kind}, _Y)
      for kind in ("max", "avg", "sum")),
    _row({**_OPEN, "pool_type": "avg", "count_include_pad": False}, _X,
         _pooled(_OPEN, lambda inside, count: inside.mean())),
    *(_row({**_NORM, "p_value": p}, np.abs(_X) + 0.1, _pooled(_NORM, _power(p))) for p in (1, 2, 3)),
    Row("Pooling", (-np.abs(_X),), {**_NORM, "p_value": 3}, expected=_pooled(_NORM, _power(3)), name="negative"),
    *(_row({**attrs, "pool_type": kind, "layout": layout}, x, _channels_last(_pooled(attrs, _ONE[kind])))
      for kind in ("max", "avg") for layout, attrs, x in (
          ("NWC", {"kernel": (2,)}, normal(2, 5, 3)),
          ("NHWC", _OPEN, normal(2, 6, 5, 3)),
          ("NDHWC", {"kernel": (2, 2, 2)}, _Y),
          ("NHWC", {"global_pool": True}, normal(2, 3, 4, 3)))),
    Row("Pooling", (np.array([[[1, np.nan, 2, np.nan, np.nan, -np.inf]]]),), {"kernel": (2,)},
        expected=_pooled({"kernel": (2,)}, _ONE["max"]), name="nan"),
    Row("Pooling", (normal(1, 2, 8),), _PAST, expected=_pooled(_PAST, _ONE["max"]), name="window of padding"),
    Row("Pooling", (integers(-9, 9, 1, 2, 4, 4),), {"kernel": (2, 2)},
        expected=lambda x: np.maximum.reduce([x[..., i:i + 3, j:j + 3] for i in (0, 1) for j in (0, 1)]),
        name="integers"),
    Row("Pooling", (normal(0, 2, 4, 4),), {"kernel": (2, 2)}, expected=lambda x: np.zeros((0, 2, 3, 3), x.dtype),
        name="empty"),
    Row("Pooling", (_X,), {**_OPEN, "pool_type": "avg"}, dtypes=("float16",), name="half"),
]


def _first_maxima(attrs, to_data):
    """Values moved between windows and their maxima, of which the first in reading order counts."""

    def expected(g, x, y):
        result = np.zeros_like(x if to_data else y)
        for index in itertools.product(*map(range, y.shape)):
            window = [axis[i] for axis, i in zip(_windows(x.shape[2:], attrs), index[2:])]
            places = itertools.product(*(range(max(a, 0), min(b, n)) for (a, b), n in zip(window, x.shape[2:])))
            place = next((*index[:2], *each) for each in places if x[(*index[:2], *each)] == y[index])
            if to_data:
                result[place] += g[index]
            else:
                result[index] = g[place]
        return result

    return expected


def _backward_max(attrs, x, name):
    y = _pooled(attrs, _ONE["max"])(x)
    return [
        Row("_backward_Pooling_max", (normal(*y.shape, seed=1), x, y), attrs, expected=_first_maxima(attrs, True),
            grad=(0,), second=True, name=name),
        Row("_backward_Pooling_at_max", (normal(*x.shape, seed=1), x, y), attrs,
            expected=_first_maxima(attrs, False), grad=(0,), second=True, name=name),
    ]


def _backward_sum(attrs, kind):
    attrs = {**attrs, "pool_type": kind}
    shape = _pooled(attrs, _ONE[kind])(_X).shape
    return Row("_backward_Pooling_sum", (normal(*shape, seed=1), _X), attrs, grad=(0,), second=True)


_BACKWARD = [
    *(row for attrs in _GEOMETRIES for row in _backward_max(attrs, _X, str(attrs))),
    *_backward_max({"kernel": (2, 2)}, _TIES, "ties"),
    *_backward_max({"kernel": (2, 2), "stride": (2, 2)}, np.zeros((1, 2, 4, 4)), "all equal"),
    *(_backward_sum(attrs, kind) for attrs in _GEOMETRIES for kind in ("avg", "sum")),
    Row("_backward_Pooling_max", (np.array([[[np.inf, np.nan]]]), np.arange(4.0).reshape(1, 1, 4),
                                  np.array([[[1.0, 3.0]]])), {"kernel": (2,), "stride": (2,)},
        expected=lambda g, x, y: np.array([[[0, np.inf, 0, np.nan]]], g.dtype), name="infinite"),
]


def _first_version(attrs):
    """Pooling_v1 by its definition, in which zeros around the data count."""
    kind, pad = attrs.get("pool_type", "max"), attrs.get("pad", (0, 0))
    size = math.prod(attrs["kernel"])
    one = {**_ONE, "avg": lambda inside, count: inside.sum() / size}[kind]
    inner = {**attrs, "pad": (0, 0)}
    return lambda x: _pooled(inner, one)(np.pad(x, ((0, 0), (0, 0), *((p, p) for p in pad))))


_FIRST = {"kernel": (3, 2), "stride": (2, 2), "pad": (1, 1)}

_VERSION_1 = [
    *(Row("Pooling_v1", (_X,), attrs, expected=_first_version(attrs), grad=(0,))
      for kind in ("max", "avg", "sum")
      for attrs in ({**_FIRST, "pool_type": kind}, {**_FIRST, "pool_type": kind, "pooling_convention": "full"},
                    {"kernel": (2, 2), "pool_type": kind})),
    Row("Pooling_v1", (_X,), {"global_pool": True, "kernel": (1, 1)}, expected=lambda x: x.max((2, 3), keepdims=True),
        grad=(0,)),
    Row("_backward_Pooling_v1", (np.arange(4.0).reshape(1, 1, 2, 2), _TIES, np.ones((1, 1, 2, 2))),
        {"kernel": (2, 2)}, expected=lambda g, x, y: np.array([[[[0.0, 1, 0], [2, 6, 0], [0, 0, 0]]]], g.dtype),
        name="ties"),
]

ROWS: list[Row] = [*_POOLING, *_BACKWARD, *_VERSION_1]
