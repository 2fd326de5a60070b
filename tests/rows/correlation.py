"""Rows of Correlation."""

from __future__ import annotations

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]


def _correlated(kernel=1, reach=1, stride1=1, stride2=1, pad=0, multiply=True):
    def expected(a, b):
        frame = ((0, 0), (0, 0), (pad, pad), (pad, pad))
        a, b = np.pad(a, frame), np.pad(b, frame)
        half = kernel // 2
        places = [range(reach + half, n - reach - half, stride1) for n in a.shape[2:]]
        most = reach // stride2
        shifts = [(i * stride2, j * stride2) for i in range(-most, most + 1) for j in range(-most, most + 1)]
        y = np.zeros((len(a), len(shifts), *map(len, places)))
        for c, (down, right) in enumerate(shifts):
            for i, row in enumerate(places[0]):
                for j, column in enumerate(places[1]):
                    own = a[:, :, row - half:row + half + 1, column - half:column + half + 1]
                    other = b[:, :, row + down - half:row + down + half + 1,
                              column + right - half:column + right + half + 1]
                    y[:, c, i, j] = (own * other if multiply else abs(own - other)).mean((1, 2, 3))
        return y

    return expected


_NAMES = ("kernel_size", "max_displacement", "stride1", "stride2", "pad_size", "is_multiply")
_CASES = [(1, 1, 1, 1, 0, True), (1, 2, 1, 2, 2, True), (3, 1, 2, 1, 2, True), (1, 1, 1, 1, 1, False),
          (3, 2, 1, 1, 3, False)]
_A, _B = normal(2, 3, 5, 6), normal(2, 3, 5, 6, seed=1)


def _rows(case):
    attrs, expected = dict(zip(_NAMES, case)), _correlated(*case)
    yield Row("Correlation", (_A, _B), attrs, expected=expected, grad=(0, 1))
    yield Row("_backward_Correlation", (normal(*expected(_A, _B).shape, seed=2), _A, _B), attrs)


ROWS: list[Row] = [row for case in _CASES for row in _rows(case)]
ROWS += [
    # If both are equal, the first counts as the greater one.
    Row("_backward_Correlation", (normal(1, 1, 2, 2), np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2))),
        {"max_displacement": 0, "is_multiply": False}, lambda g, a, b: (g, -g), name="ties"),
]
