"""Rows of the deformable convolutions."""

from __future__ import annotations

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]


def _read(image, y, x, modulated):
    """One reading between pixels: the first version clamps at the last row and column, the second fades to zero."""
    height, width = image.shape[1:]
    if not modulated:
        if not (0 <= y < height and 0 <= x < width):
            return np.zeros(len(image))
        y, x = min(y, height - 1), min(x, width - 1)
    total = np.zeros(len(image))
    for row in (int(np.floor(y)), int(np.floor(y)) + 1):
        for column in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= row < height and 0 <= column < width:
                total += (1 - abs(y - row)) * (1 - abs(x - column)) * image[:, row, column]
    return total


def _convolved(attrs, modulated=False):
    kernel, groups, moving = attrs["kernel"], attrs.get("num_group", 1), attrs.get("num_deformable_group", 1)
    stride, dilate, pad = [attrs.get(name, default) for name, default in
                           (("stride", (1, 1)), ("dilate", (1, 1)), ("pad", (0, 0)))]

    def expected(x, offset, *rest):
        mask, rest = (rest[0], rest[1:]) if modulated else (None, rest)
        weight, bias = rest[0], rest[1] if len(rest) > 1 else np.zeros(len(rest[0]))
        y = np.zeros((len(x), len(weight), *offset.shape[2:]))
        taps = list(np.ndindex(*kernel))
        for n, i, j in np.ndindex(len(x), *offset.shape[2:]):
            columns = np.zeros((x.shape[1], len(taps)))
            for g, part in enumerate(np.split(np.arange(x.shape[1]), moving)):
                for t, tap in enumerate(taps):
                    number = g * len(taps) + t
                    place = [q * s - p + k * d + offset[n, 2 * number + axis, i, j]
                             for axis, (q, s, p, k, d) in enumerate(zip((i, j), stride, pad, tap, dilate))]
                    columns[part, t] = _read(x[n, part], *place, modulated)
                    if modulated:
                        columns[part, t] *= mask[n, number, i, j]
            for some, w in zip(np.split(columns, groups), np.split(np.arange(len(weight)), groups)):
                y[n, w, i, j] = weight[w].reshape(len(w), -1) @ some.reshape(-1)
        return y + bias[:, None, None]

    return expected


# Attributes, and height and width of the output for an image of 5 by 4.
_CASES = [
    ({"kernel": (3, 3), "pad": (1, 1), "num_deformable_group": 2}, (5, 4)),
    ({"kernel": (2, 3), "stride": (2, 1), "dilate": (1, 2), "pad": (0, 1), "num_group": 2}, (2, 2)),
    ({"kernel": (1, 2), "num_group": 2, "num_deformable_group": 4}, (5, 3)),
]


def _rows(number, attrs, places, modulated):
    attrs = {**attrs, "num_filter": 2, "no_bias": number % 2 == 1}
    moved = attrs["kernel"][0] * attrs["kernel"][1] * attrs.get("num_deformable_group", 1)
    inputs = [normal(2, 4, 5, 4), normal(2, 2 * moved, *places, seed=1),
              *([normal(2, moved, *places, seed=2)] if modulated else []),
              normal(2, 4 // attrs.get("num_group", 1), *attrs["kernel"], seed=3)]
    name = "ModulatedDeformableConvolution" if modulated else "DeformableConvolution"
    backward = {key: value for key, value in attrs.items() if key not in ("num_filter", "no_bias")}
    yield Row(f"_backward__contrib_{name}", [normal(2, 2, *places, seed=4), *inputs], backward, name=str(number))
    if not attrs["no_bias"]:
        inputs.append(normal(2, seed=5))
    yield Row(f"_contrib_{name}", inputs, attrs, expected=_convolved(attrs, modulated), grad=range(len(inputs)),
              name=str(number))


ROWS: list[Row] = [row for number, (attrs, places) in enumerate(_CASES) for modulated in (False, True)
                   for row in _rows(number, attrs, places, modulated)]
