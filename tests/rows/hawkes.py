"""Rows of the Hawkes likelihood."""

from __future__ import annotations

import numpy as np

from . import Row, normal, uniform

__all__ = ["ROWS"]


def _hawkes(lda, alpha, beta, state, lags, marks, valid_length, max_time) -> tuple[np.ndarray, np.ndarray]:
    """Likelihood by its definition: the intensity at every event, and its integral, from all earlier events."""
    ll, end = np.zeros(len(lda)), np.zeros_like(lda)
    for i in range(len(lda)):
        count = int(valid_length[i])
        times, kinds = np.cumsum(lags[i])[:count], marks[i, :count]
        for k in range(lda.shape[1]):
            mine = times[kinds == k]

            def memory(t: float, mine=mine, i=i, k=k) -> float:
                return state[i, k] * np.exp(-beta[k] * t) + np.exp(-beta[k] * (t - mine[mine < t])).sum()

            ll[i] += sum(np.log(lda[i, k] + alpha[k] * beta[k] * memory(t)) for t in mine)
            end[i, k] = memory(max_time[i])
            faded = state[i, k] * (1 - np.exp(-beta[k] * max_time[i]))
            faded += (1 - np.exp(-beta[k] * (max_time[i] - mine))).sum()
            ll[i] -= lda[i, k] * max_time[i] + alpha[k] * faded
    return ll, end


def _hawkes_back(g, g_end, *arrays) -> tuple[np.ndarray, ...]:
    found = []
    for i in range(4):
        found.append(np.zeros_like(arrays[i]))
        for index in np.ndindex(arrays[i].shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = arrays[i].copy()
                moved[index] += step
                ll, end = _hawkes(*arrays[:i], moved, *arrays[i + 1:])
                ends.append((g * ll).sum() + (g_end * end).sum())
            found[-1][index] = (ends[0] - ends[1]) / 2e-5
    return tuple(found)


_PROCESS = [uniform(0.5, 1.5, 3, 2), uniform(0.2, 0.6, 2), uniform(0.5, 2, 2), uniform(0, 1, 3, 2),
            uniform(0.1, 1, 3, 4), np.array([[0, 1, 0, 0], [1, 1, 0, 1], [0, 0, 0, 0]], "int32"),
            np.array([4.0, 2.0, 0.0]), np.array([5.0, 4.0, 3.0])]

ROWS: list[Row] = [
    Row("_contrib_hawkesll", _PROCESS, {}, _hawkes, grad=(0, 1, 2, 3)),
    Row("_contrib_backward_hawkesll", [normal(3), normal(3, 2), *_PROCESS], {}, _hawkes_back, dtypes=("float64",)),
]
