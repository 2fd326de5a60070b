"""Rows of attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]

_HEADS = 2
_WORDS = {"heads": _HEADS}


def _part(x: np.ndarray, parts: int, which: int) -> np.ndarray:
    """(batch, heads, length, size)."""
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
]
