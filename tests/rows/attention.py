"""Rows of attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]

_HEADS = 2
_WORDS = {"heads": _HEADS}


def _part(x: np.ndarray, parts: int, which: int) -> np.ndarray:
    """An array of shape (batch, heads, length, size)."""
    length, batch, _ = x.shape
    return x.reshape(length, batch, _HEADS, parts, -1)[:, :, :, which].transpose(1, 2, 0, 3)


def _scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    found = np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[3])
    return found.reshape(-1, *found.shape[2:])


def _weighed(attention: np.ndarray, v: np.ndarray) -> np.ndarray:
    by_head = attention.reshape(*v.shape[:2], *attention.shape[1:])
    return np.einsum("bhqk,bhkd->qbhd", by_head, v).reshape(attention.shape[1], v.shape[0], -1)


def _differences(function: Any, *wanted: int) -> Any:
    """The gradients of a bilinear function, exact with any step."""

    def expected(g: np.ndarray, *arrays: np.ndarray) -> Any:
        found = []
        for i in wanted:
            found.append(np.zeros_like(arrays[i]))
            for index in np.ndindex(arrays[i].shape):
                ends = []
                for step in (0.5, -0.5):
                    moved = arrays[i].copy()
                    moved[index] += step
                    ends.append((g * function(*arrays[:i], moved, *arrays[i + 1:])).sum())
                found[-1][index] = ends[0] - ends[1]
        return tuple(found)

    return expected


def _selfatt_qk(x: np.ndarray) -> np.ndarray:
    return _scores(_part(x, 3, 0), _part(x, 3, 1))


def _selfatt_valatt(x: np.ndarray, attention: np.ndarray) -> np.ndarray:
    return _weighed(attention, _part(x, 3, 2))


def _encdec_qk(q: np.ndarray, x: np.ndarray) -> np.ndarray:
    return _scores(_part(q, 1, 0), _part(x, 2, 0))


def _encdec_valatt(x: np.ndarray, attention: np.ndarray) -> np.ndarray:
    return _weighed(attention, _part(x, 2, 1))


# ------------------------------------------------------------------------------------- scaled dot products


def _scaled(q: np.ndarray, k: np.ndarray, rest: tuple, causal: bool, use_mask: bool, scale: float | None,
            fill: float = -np.inf) -> tuple[np.ndarray, np.ndarray]:
    """Scores of attention, and keys repeated for each head."""
    k = np.repeat(k, q.shape[1] // k.shape[1], axis=1)
    found = np.einsum("bhqd,bhkd->bhqk", q, k) * (1 / np.sqrt(q.shape[3]) if scale is None else scale)
    if use_mask:
        found = np.where(rest[0], found, fill) if rest[0].dtype == np.bool_ else found + rest[0]
    if causal:
        found = np.where(np.tri(*found.shape[2:], dtype=bool), found, -np.inf)
    return found, k


def _attention(causal: bool = False, use_mask: bool = False, scale: float | None = None, fill: float = -np.inf
               ) -> Any:
    def expected(q: np.ndarray, k: np.ndarray, v: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        found, _ = _scaled(q, k, rest, causal, use_mask, scale, fill)
        grown = np.exp(found - found.max(axis=3, keepdims=True))
        weights = grown / grown.sum(axis=3, keepdims=True)
        return np.einsum("bhqk,bhke->bhqe", weights, np.repeat(v, q.shape[1] // v.shape[1], axis=1))

    return expected


def _attention_back(causal: bool = False, use_mask: bool = False, scale: float | None = None, mask: bool = False,
                    fill: float = -np.inf) -> Any:
    def expected(g: np.ndarray, q: np.ndarray, k: np.ndarray, v: np.ndarray, logsum: np.ndarray, delta: np.ndarray,
                 *rest: np.ndarray) -> Any:
        factor = 1 / np.sqrt(q.shape[3]) if scale is None else scale
        found, keys = _scaled(q, k, rest, causal, use_mask, scale, fill)
        weights = np.exp(found - logsum[..., None])
        values = np.repeat(v, q.shape[1] // v.shape[1], axis=1)
        d_scores = weights * (np.einsum("bhqe,bhke->bhqk", g, values) - delta[..., None])
        if fill != -np.inf:
            d_scores = np.where(rest[0], d_scores, 0.0)
        results = [np.einsum("bhqk,bhkd->bhqd", d_scores, keys) * factor]
        for found, of in ((np.einsum("bhqk,bhqd->bhkd", d_scores, q) * factor, k),
                          (np.einsum("bhqk,bhqe->bhke", weights, g), v)):
            results.append(found.reshape(of.shape[0], of.shape[1], -1, *found.shape[2:]).sum(axis=2))
        if mask:
            results.append(d_scores.sum(axis=(0, 1)) if rest[0].ndim == 2 else d_scores)
        return tuple(results)

    return expected


#: Queries, keys and values, with two query heads for each key head, and the residuals that the gradient reads.
_QKV = [normal(2, 4, 3, 8), normal(2, 2, 5, 8, seed=1), normal(2, 2, 5, 16, seed=2)]
_AGAIN = [normal(2, 4, 3, 16, seed=3), *_QKV, normal(2, 4, 3, seed=4) + 2, normal(2, 4, 3, seed=5)]
_ADDED, _SEEN = normal(3, 5, seed=6), normal(2, 1, 3, 5, seed=7) > -0.5
_SEEN[..., 1] = True
_MASKED = {"use_mask": True}
#: More scores than a block has, of queries and of keys.
_MANY = [normal(1, 2, 150, 2), normal(1, 2, 600, 2, seed=1), normal(1, 2, 600, 3, seed=2)]
_MANY_AGAIN = [normal(1, 2, 150, 3, seed=3), *_MANY, normal(1, 2, 150, seed=4) + 7, normal(1, 2, 150, seed=5)]
_ATTENTION, _BACK = "_contrib_scaled_dot_product_attention", "_backward_scaled_dot_product_attention"

_SELF, _PAIRS, _QUERIES = normal(3, 2, 12), normal(3, 2, 8), normal(5, 2, 4)
_HALF = ("float64", "float32", "float16")

ROWS: list[Row] = [
    Row("_contrib_interleaved_matmul_selfatt_qk", [_SELF], _WORDS, _selfatt_qk, (0,), True, _HALF),
    Row("_contrib_interleaved_matmul_selfatt_valatt", [_SELF, normal(4, 3, 3)], _WORDS, _selfatt_valatt, (0, 1), True,
        _HALF),
    Row("_contrib_interleaved_matmul_encdec_qk", [_QUERIES, _PAIRS], _WORDS, _encdec_qk, (0, 1), True, _HALF),
    Row("_contrib_interleaved_matmul_encdec_valatt", [_PAIRS, normal(4, 5, 3)], _WORDS, _encdec_valatt, (0, 1), True,
        _HALF),
    Row("_backward_interleaved_matmul_selfatt_qk", [normal(4, 3, 3), _SELF], _WORDS, _differences(_selfatt_qk, 0),
        (0, 1), True),
    Row("_backward_interleaved_matmul_selfatt_valatt", [normal(3, 2, 4), _SELF, normal(4, 3, 3)], _WORDS,
        _differences(_selfatt_valatt, 0, 1), (0, 1, 2), True),
    Row("_backward_interleaved_matmul_encdec_qk", [normal(4, 5, 3), _QUERIES, _PAIRS], _WORDS,
        _differences(_encdec_qk, 0, 1), (0, 1, 2), True),
    Row("_backward_interleaved_matmul_encdec_valatt", [normal(5, 2, 4), _PAIRS, normal(4, 5, 3)], _WORDS,
        _differences(_encdec_valatt, 0, 1), (0, 1, 2), True),
    Row("_contrib_div_sqrt_dim", [normal(3, 4)], {}, lambda x: x / 2, (0,), True, _HALF),
    Row(_ATTENTION, _QKV, {}, _attention(), (0, 1, 2), True, _HALF),
    Row(_ATTENTION, _QKV, {"causal": True, "scale": 0.3}, _attention(True, scale=0.3), (0, 1, 2), True, _HALF),
    Row(_ATTENTION, [*_QKV, _ADDED], _MASKED, _attention(use_mask=True), (0, 1, 2, 3), True, _HALF, name="added"),
    Row(_ATTENTION, [*_QKV, _SEEN], {"causal": True, **_MASKED}, _attention(True, True), (0, 1, 2), True, _HALF,
        name="seen"),
    Row(_ATTENTION, [*_QKV, _SEEN], {"fill": -1.0, **_MASKED}, _attention(use_mask=True, fill=-1.0), (0, 1, 2), True,
        _HALF, name="filled"),
    Row(_ATTENTION, [*_MANY, normal(150, 600) > 0], {"fill": -1.0, **_MASKED}, _attention(use_mask=True, fill=-1.0),
        name="many-filled"),
    Row(_ATTENTION, _MANY, {}, _attention(), name="many"),
    Row(_ATTENTION, [*_MANY, normal(150, 600) > 0], {"causal": True, **_MASKED}, None, name="many-seen"),
    Row(_ATTENTION, _QKV, {"p": 0.4}, deterministic=False, train=False),
    Row(_BACK, _AGAIN, {}, _attention_back(), range(6), True, _HALF),
    Row(_BACK, _AGAIN, {"causal": True, "scale": 0.3}, _attention_back(True, scale=0.3), range(6), True),
    Row(_BACK, [*_AGAIN, _ADDED], _MASKED, _attention_back(use_mask=True), range(7), True, name="added"),
    Row(_BACK, _MANY_AGAIN, {"causal": True}, _attention_back(True), name="many"),
    Row(_BACK, [*_MANY_AGAIN, normal(150, 600)], _MASKED, _attention_back(use_mask=True), name="many-added"),
    Row(_BACK, [*_AGAIN, _SEEN], {"fill": -1.0, **_MASKED}, _attention_back(use_mask=True, fill=-1.0), range(6), True,
        name="filled"),
    Row(_BACK, [*_MANY_AGAIN, normal(150, 600) > 0], {"fill": -1.0, **_MASKED},
        _attention_back(use_mask=True, fill=-1.0), name="many-filled"),
    Row(_BACK, [*_AGAIN, np.array([7, 9, 1], np.int32)], {"p": 0.4}, None, range(6), True, name="dropped"),
    Row("_attention_gradients", _AGAIN, {}, _attention_back(), range(6), True, _HALF),
    Row("_attention_gradients", [*_AGAIN, _SEEN], {"fill": -1.0, **_MASKED},
        lambda *arrays: (*_attention_back(use_mask=True, fill=-1.0)(*arrays), np.zeros_like(arrays[-1])), range(6),
        True, name="filled"),
    Row("_attention_gradients", [*_AGAIN, _ADDED], {"causal": True, **_MASKED}, _attention_back(True, True, mask=True),
        range(7), True, name="added"),
    Row("_attention_dropout", [normal(2, 3), np.array([7, 9, 0], np.int32)], {"p": 0.4}, lambda x, draw: x * 0 + 1,
        (0,), False, _HALF),
]
