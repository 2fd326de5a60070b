"""Convolutions of small arrays and their gradients: all columns at once.

``correlation`` divides large arrays in blocks, which takes longer than to compute small ones. Here a strided view of
the padded data, with an element for each kernel position and output place, is copied in one call, and one product
follows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.cache import cached
from ...core.spec import Shape
from ...typing import Array
from . import sliding
from .sliding import Window

__all__ = ["SmallPlan", "small_plan"]

#: Number of elements of the columns up to which they are copied at once.
MOST = 1 << 15


class SmallPlan:
    """Sizes of a small convolution; parameters are those of ``correlation``'s plans.

    Examples
    --------
    >>> from opreg.builtin.layers.sliding import window
    >>> plan = small_plan((1, 1, 3), (1, 1, 2), (1, 1, 2), window((2,)), 1)
    >>> plan.columns(np.array([[[1.0, 2.0, 3.0]]])).tolist()
    [[[[1.0, 2.0], [2.0, 3.0]]]]
    """

    def __init__(self, x: Shape, w: Shape, y: Shape, win: Window, groups: int):
        images, self.size, places = x[0], x[2:], y[2:]
        self.stacked = images, groups, w[1], *win.kernel, *places
        taps, self.places = math.prod(w[1:]), math.prod(places)
        self.matrices = images, groups, taps, self.places
        self.weights = groups, w[0] // groups, taps
        self.outs = images, groups, w[0] // groups, self.places
        self.padded = *x[:2], *[n + 2 * p for n, p in zip(self.size, win.pad)]
        self.inner: tuple[Any, ...] = (..., *[slice(p, p + n) for n, p in zip(self.size, win.pad)])
        self.is_padded = any(win.pad)
        # Strides in elements of the view of the padded data.
        steps = [math.prod(self.padded[axis + 1:]) for axis in range(len(self.padded))]
        self.steps = (steps[0], w[1] * steps[1], steps[1], *[step * d for step, d in zip(steps[2:], win.dilate)],
                      *[step * s for step, s in zip(steps[2:], win.stride)])
        self.reads = sliding.taps(win, places)

    def columns(self, x: Array) -> Array:
        """The elements under each kernel position, (N, G, C * taps, places)."""
        if self.is_padded:
            image = np.zeros(self.padded, x.dtype)
            image[self.inner] = x
        else:
            image = np.ascontiguousarray(x)
        size = image.itemsize
        view: Array = np.ndarray(self.stacked, image.dtype, image, 0, [size * step for step in self.steps])
        return view.reshape(self.matrices)

    def correlate(self, x: Array, w: Array, y: Array) -> None:
        """Write the convolution of ``x`` with ``w`` to ``y``."""
        weights, columns = w.reshape(self.weights), self.columns(x)
        if y.flags.c_contiguous:
            np.matmul(weights, columns, out=y.reshape(self.outs))
        else:
            y[...] = np.matmul(weights, columns).reshape(y.shape)

    def spread(self, y: Array, w: Array, x: Array) -> None:
        """Write the gradient with respect to ``x``."""
        columns = np.matmul(w.reshape(self.weights).swapaxes(1, 2), y.reshape(self.outs))
        image = np.zeros(self.padded, columns.dtype)
        parts, channels = columns.reshape(self.stacked), image.reshape(*self.stacked[:3], *self.padded[2:])
        for tap, read in self.reads:
            part = channels[read]
            part += parts[(..., *tap, *(slice(None),) * len(tap))]
        x[...] = image[self.inner]

    def match(self, y: Array, x: Array, w: Array) -> None:
        """Write the gradient with respect to ``w``."""
        slopes = np.matmul(y.reshape(self.outs), self.columns(x).swapaxes(2, 3))
        w[...] = (slopes[0] if len(slopes) == 1 else slopes.sum(0)).reshape(w.shape)


@cached(1024)
def small_plan(x: Shape, w: Shape, y: Shape, win: Window, groups: int) -> SmallPlan | None:
    """The plan of a convolution with few elements in its columns; None for a larger one."""
    elements = x[0] * groups * math.prod(w[1:]) * math.prod(y[2:])
    return SmallPlan(x, w, y, win, groups) if 0 < elements <= MOST else None
