"""Rows of AdaptiveAvgPooling2D and BilinearResize2D."""

from __future__ import annotations

import math

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]


def _cells(n, m):
    """The matrix that averages n numbers over m cells."""
    matrix = np.zeros((m, n))
    for i in range(m):
        cell = slice(i * n // m, math.ceil((i + 1) * n / m))
        matrix[i, cell] = 1 / (cell.stop - cell.start)
    return matrix


def _between(n, m, align):
    """The matrix that interpolates m numbers among n."""
    matrix = np.zeros((m, n))
    for i in range(m):
        if align:
            place = i * (n - 1) / max(1, m - 1)
        else:
            place = max(0.0, (i + 0.5) * n / m - 0.5) if m > 1 else 0.0
        low = min(int(place), n - 1)
        matrix[i, low] += 1 - (place - low)
        matrix[i, min(low + 1, n - 1)] += place - low
    return matrix


def _pooled(height, width):
    return lambda x: _cells(x.shape[2], height) @ x @ _cells(x.shape[3], width).T


def _resized(height, width, align=True):
    return lambda x, *like: _between(x.shape[2], height, align) @ x @ _between(x.shape[3], width, align).T


_X = normal(2, 3, 5, 4)

# Attributes of BilinearResize2D, and height and width that they come to for an image of 5 by 4.
_RESIZES = [
    ({"height": 7, "width": 9}, (7, 9)),
    ({"height": 3, "width": 2, "align_corners": False}, (3, 2)),
    ({"height": 1, "width": 1}, (1, 1)),
    ({"height": 1, "width": 8, "align_corners": False}, (1, 8)),
    ({"scale_height": 2.0, "scale_width": 0.6}, (10, 2)),
    ({"scale_height": 2.0, "scale_width": 1.5, "mode": "odd_scale"}, (9, 6)),
    ({"mode": "to_even_down"}, (4, 4)),
    ({"mode": "to_even_up"}, (6, 4)),
    ({"mode": "to_odd_down"}, (5, 3)),
    ({"mode": "to_odd_up", "align_corners": False}, (5, 5)),
]

ROWS: list[Row] = [
    *(Row("_contrib_AdaptiveAvgPooling2D", (_X,), attrs, expected=_pooled(*size), grad=(0,), second=True)
      for attrs, size in (({"output_size": (3, 2)}, (3, 2)), ({"output_size": 3}, (3, 3)), ({}, (1, 1)),
                          ({"output_size": (7, 9)}, (7, 9)), ({"output_size": (2,)}, (2, 2)))),
    Row("_contrib_AdaptiveAvgPooling2D", (_X,), {"output_size": 2}, dtypes=("float16",), name="half"),
    Row("_backward_contrib_AdaptiveAvgPooling2D", (normal(2, 3, 3, 2), _X), {"output_size": (3, 2)},
        expected=lambda g, x: _cells(5, 3).T @ g @ _cells(4, 2), grad=(0,), second=True),
    *(Row("_contrib_BilinearResize2D", (_X,), attrs, expected=_resized(*size, attrs.get("align_corners", True)),
          grad=(0,), second=True) for attrs, size in _RESIZES),
    Row("_contrib_BilinearResize2D", (_X, normal(1, 1, 6, 3)), {"mode": "like"}, expected=_resized(6, 3), grad=(0,),
        second=True),
    *(Row("_backward_contrib_BilinearResize2D", (normal(2, 3, 7, 2), _X), {"align_corners": align},
          expected=lambda g, x, align=align: _between(5, 7, align).T @ g @ _between(4, 2, align), grad=(0,),
          second=True) for align in (False, True)),
]
