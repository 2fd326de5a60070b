"""Rows of the normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Row, normal, uniform

__all__ = ["ROWS"]


def _along(vector: np.ndarray, rank: int, axis: int) -> np.ndarray:
    return vector.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


def _normalised(x: np.ndarray, axes: tuple[int, ...], eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + eps), mean, np.sqrt(var + eps)


def _batch(axis: int = 1, eps: float = 1e-3, fix_gamma: bool = True, moving: bool = True, shown: str = "") -> Any:
    def expected(x, gamma, beta, moving_mean, moving_var):
        others = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
        mean, var = (x.mean(others), x.var(others)) if moving else (moving_mean, moving_var)
        scale = (1.0 if fix_gamma else gamma) / np.sqrt(var + eps)
        y = (x - _along(mean, x.ndim, axis)) * _along(scale, x.ndim, axis) + _along(beta, x.ndim, axis)
        return y if not shown else (y, mean, var if shown == "variance" else 1.0 / np.sqrt(var + eps))

    return expected


def _batch_inputs(*shape: int, axis: int = 1) -> list[np.ndarray]:
    c = shape[axis]
    return [normal(*shape), uniform(0.5, 1.5, c), normal(c, seed=1), normal(c, seed=2), uniform(0.5, 1.5, c, seed=3)]


def _layer(axis: int = -1, eps: float = 1e-5, shown: bool = False) -> Any:
    def expected(x, gamma, beta):
        y, mean, std = _normalised(x, (axis,), eps)
        y = y * _along(gamma, x.ndim, axis) + _along(beta, x.ndim, axis)
        return (y, mean, std) if shown else y

    return expected


def _group(groups: int, eps: float, shown: bool = False) -> Any:
    def expected(x, gamma, beta):
        parts = x.reshape(len(x), groups or x.shape[1], -1)
        y, mean, std = _normalised(parts, (2,), eps)
        y = (y * gamma[:, None] + beta[:, None]).reshape(x.shape)
        return (y, mean[..., 0], std[..., 0]) if shown else y

    return expected


def _length(*axes: int, eps: float = 1e-10) -> Any:
    return lambda x: x / np.sqrt((x * x).sum(axes, keepdims=True) + eps)


def _window(x: np.ndarray, nsize: int) -> np.ndarray:
    reach, total = (nsize - 1) // 2, np.zeros_like(x)
    for i in range(x.shape[1]):
        total[:, i] = x[:, max(i - reach, 0):i + reach + 1].sum(1)
    return total


_TRAIN = dict(grad=(0, 1, 2), second=True)
_FREE = dict(fix_gamma=False)

ROWS: list[Row] = [
    Row("BatchNorm", _batch_inputs(3, 2, 2, 3), _FREE, _batch(**_FREE), **_TRAIN),
    Row("BatchNorm", _batch_inputs(3, 2, 2, 3, axis=3), {"axis": -1, "eps": 0.1, **_FREE},
        _batch(-1, 0.1, **_FREE), **_TRAIN),
    Row("BatchNorm", _batch_inputs(5, 3), _FREE, _batch(**_FREE), name="two-axes", **_TRAIN),
    Row("BatchNorm", _batch_inputs(3, 2, 4), {}, _batch(), grad=(0, 2), second=True),
    Row("BatchNorm", _batch_inputs(3, 2, 4), {"use_global_stats": True, **_FREE}, _batch(moving=False, **_FREE),
        **_TRAIN),
    Row("BatchNorm", _batch_inputs(3, 2, 4), _FREE, _batch(moving=False, **_FREE), train=False, name="inference",
        **_TRAIN),
    Row("BatchNorm", _batch_inputs(3, 2, 4), {"output_mean_var": True, "momentum": 0.5, **_FREE},
        _batch(shown="inverse", **_FREE)),
    Row("_contrib_BatchNormWithReLU", _batch_inputs(3, 2, 4), _FREE, grad=(0, 1, 2), second=True,
        expected=lambda *arrays: np.maximum(_batch(**_FREE)(*arrays), 0)),
    Row("_contrib_BatchNormWithReLU", _batch_inputs(3, 4, 2, axis=2), {"axis": 2}, train=False, name="inference",
        expected=lambda *arrays: np.maximum(_batch(2, moving=False)(*arrays), 0)),
    Row("BatchNorm_v1", _batch_inputs(3, 2, 4), _FREE, _batch(**_FREE), **_TRAIN),
    Row("BatchNorm_v1", _batch_inputs(3, 2, 4), {"output_mean_var": True}, _batch(shown="variance")),
    Row("BatchNorm_v1", _batch_inputs(3, 2, 4), _FREE, _batch(moving=False, **_FREE), train=False, name="inference",
        **_TRAIN),
    Row("_contrib_SyncBatchNorm", _batch_inputs(3, 2, 4), {"key": "a", **_FREE}, _batch(**_FREE), **_TRAIN),
    Row("_contrib_SyncBatchNorm", _batch_inputs(3, 2, 4), {"key": "a", "output_mean_var": True},
        _batch(shown="variance")),
    Row("LayerNorm", [normal(3, 4), normal(4), normal(4, seed=1)], {}, _layer(),
        dtypes=("float64", "float32", "float16"), **_TRAIN),
    Row("LayerNorm", [normal(2, 4, 3), normal(4), normal(4, seed=1)], {"axis": 1, "eps": 0.1}, _layer(1, 0.1),
        **_TRAIN),
    Row("LayerNorm", [normal(4, 3, 2), normal(4), normal(4, seed=1)], {"axis": 0}, _layer(0), **_TRAIN),
    Row("LayerNorm", [normal(2, 2, 4), normal(4), normal(4, seed=1)], {"output_mean_var": True}, _layer(shown=True)),
    Row("InstanceNorm", [normal(2, 3, 4), normal(3), normal(3, seed=1)], {}, _group(0, 1e-3), **_TRAIN),
    Row("InstanceNorm", [normal(2, 3, 2, 2), normal(3), normal(3, seed=1)], {"eps": 0.1}, _group(0, 0.1), **_TRAIN),
    Row("InstanceNorm", [normal(2, 0, 4), normal(0), normal(0)], {}, lambda x, *_: x, name="no channels"),
    Row("GroupNorm", [normal(2, 4, 3), normal(2), normal(2, seed=1)], {"num_groups": 2}, _group(2, 1e-5), **_TRAIN),
    Row("GroupNorm", [normal(2, 4, 2, 2), normal(1), normal(1, seed=1)], {}, _group(1, 1e-5), **_TRAIN),
    Row("GroupNorm", [normal(2, 4, 3), normal(4), normal(4, seed=1)], {"num_groups": 4, "output_mean_var": True},
        _group(4, 1e-5, True)),
    Row("L2Normalization", [normal(2, 3, 2)], {}, _length(1, 2), grad=(0,), second=True),
    Row("L2Normalization", [normal(2, 3, 2)], {"mode": "channel", "eps": 0.1}, _length(1, eps=0.1), grad=(0,),
        second=True),
    Row("L2Normalization", [normal(2, 3, 2, 2)], {"mode": "spatial"}, _length(2, 3), grad=(0,), second=True),
    Row("LRN", [normal(2, 5, 2)], {"nsize": 3, "alpha": 0.3, "beta": 0.6, "knorm": 1.5},
        lambda x: x * (1.5 + 0.1 * _window(x * x, 3)) ** -0.6, grad=(0,), second=True),
    Row("LRN", [normal(2, 2, 2)], {"nsize": 6, "alpha": 0.6}, lambda x: x * (2.0 + 0.1 * _window(x * x, 5)) ** -0.75,
        grad=(0,), second=True),
    Row("_LRN_window", [normal(2, 5, 2)], {"nsize": 5}, lambda x: _window(x, 5), grad=(0,), second=True),
]

# Operators of the gradients: they take the data, and statistics that need not be those of the data.


def _of_channels(shape: tuple[int, ...], axis: int) -> list[Row]:
    others, count = tuple(i for i in range(len(shape)) if i != axis % len(shape)), shape[axis]
    x, g = normal(*shape), normal(*shape, seed=1)
    mean, product, total = (normal(count, seed=seed) for seed in (2, 3, 4))
    inverse, gamma = uniform(0.5, 1.5, count), uniform(0.5, 1.5, count, seed=1)
    size = x.size // count

    def spread(values):
        return _along(values, len(shape), axis)

    def sums(g, x, mean, inverse):
        return (g * (x - spread(mean)) * spread(inverse)).sum(others), g.sum(others)

    def moments(x, like):
        return x.mean(others), 1.0 / np.sqrt(x.var(others) + 0.1)

    def through_moments(x, mean, g_mean, g_variance):
        return (spread(g_mean) + 2 * (x - spread(mean)) * spread(g_variance)) / size

    def backward(g, x, mean, inverse, product, total, factor=1.0):
        normal_x = (x - spread(mean)) * spread(inverse)
        return spread(inverse * factor) * (g - spread(total) / size - normal_x * spread(product) / size)

    words, every = {"axis": axis}, {"second": True}
    return [
        Row("_normalize_scale", [x, mean], words, lambda x, v: x * spread(v), (0, 1), **every),
        Row("_normalize_moments", [x, mean], {"eps": 0.1, **words}, moments, (0,), **every),
        Row("_backward_normalize_moments", [x, mean, product, total], words, through_moments, (0, 1, 2, 3), **every),
        Row("_backward_normalize_sums", [g, x, mean, inverse], words, sums, (0, 1, 2, 3), **every),
        Row("_backward_normalize", [g, x, mean, inverse, product, total], {"scaled": False, **words}, backward,
            (0, 1, 2, 3, 4, 5), **every),
        Row("_backward_normalize", [g, x, gamma, mean, inverse, product, total], words,
            lambda g, x, gamma, *rest: backward(g, x, *rest, factor=gamma), tuple(range(7)), **every),
    ]


for _shape, _axis in [((2, 3, 2), 2), ((2, 3, 2, 2), 1), ((2, 3), -1), ((4, 3, 2), 0)]:
    ROWS += _of_channels(_shape, _axis)


def _layer_gradients(axis: int) -> Any:
    def expected(g, x, gamma, mean, inverse):
        others = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
        normal_x, scaled = (x - mean) * inverse, g * _along(gamma, x.ndim, axis)
        dx = inverse * (scaled - scaled.mean(axis, keepdims=True)
                        - normal_x * (scaled * normal_x).mean(axis, keepdims=True))
        return dx, (g * normal_x).sum(others), g.sum(others)

    return expected



def _group_gradients() -> Any:
    def expected(g, x, gamma, mean, inverse):
        size = x.size // mean.size
        flat_g, flat_x = (each.reshape(*mean.shape, size) for each in (g, x))
        mean, inverse = mean[..., None], inverse[..., None]
        normal_x = (flat_x - mean) * inverse
        product, total = (flat_g * normal_x).sum(2), flat_g.sum(2)
        dx = (flat_g - (normal_x * product[..., None] + total[..., None]) / size) * inverse * gamma[:, None]
        return dx.reshape(x.shape), product, total

    return expected


ROWS += [
    Row("_backward_LayerNorm", [normal(*shape), normal(*shape, seed=1), normal(shape[axis], seed=2), normal(*small),
                                uniform(0.5, 1.5, *small)], {} if axis == -1 else {"axis": axis},
        _layer_gradients(axis), (0, 1, 2, 3, 4), True)
    for shape, axis, small in [((3, 4), -1, (3, 1)), ((2, 3, 2), 1, (2, 1, 2)), ((1, 5), -1, (1, 1)),
                               ((2, 3, 2), -2, (2, 1, 2)), ((3, 2, 2), 0, (1, 2, 2))]
] + [
    Row("_backward_GroupNorm", [normal(*shape), normal(*shape, seed=1), normal(small[1], seed=2), normal(*small),
                                uniform(0.5, 1.5, *small)], {"num_groups": groups}, _group_gradients(),
        (0, 1, 2, 3, 4), True)
    for shape, groups, small in [((2, 4, 3), 2, (2, 2)), ((2, 3, 2), 0, (2, 3)), ((1, 4), 1, (1, 1))]
] + [
    Row("_backward_L2Normalization", [normal(2, 3, 2), normal(2, 3, 2, seed=1), uniform(0.5, 1.5, *shape)],
        {"mode": mode}, grad=(0, 1, 2), second=True,
        expected=lambda g, y, norm, axes=axes: (g - y * (g * y).sum(axes, keepdims=True)) / norm)
    for mode, shape, axes in [("instance", (2, 1, 1), (1, 2)), ("channel", (2, 1, 2), (1,)),
                              ("spatial", (2, 3, 1), (2,))]
]
