"""Products of middle size in plans by one thread of oneDNN, where that was tried and is faster than what else there is.

On some processors a thread of oneDNN multiplies as fast as two of BLAS, on others slower than one. One waits for
nobody, and finds the same bits every time. Which is faster is tried for matrices of these shapes; see ``trials``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from opreg.builtin.matrices.dense import (
    bias_of,
    fully_connected,
    fully_connected_data,
    fully_connected_weight,
)
from opreg.core import threads
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.core.steps import PlainStep
from opreg.typing import Array

from .. import blas, trials
from . import convolution, matmul, shared_library
from .products import matrices_of
from .shared_library import Library

__all__: list[str] = []

_ALONE = "one thread of oneDNN"


class _Product(PlainStep):
    """A product of two matrices, by the calling thread."""

    __slots__ = ("arrays", "matrices", "library", "most", "change")

    def __init__(self, a: Array, b: Array, out: Array):
        found, library = shared_library.openmp(), shared_library.library()
        assert found is not None and isinstance(library, Library)
        self.most, self.change = found
        self.library, self.arrays, self.matrices = library, (a, b, out), matmul.arguments(a, b, out)

    def __call__(self) -> None:
        if shared_library.forked():
            np.matmul(*self.arrays)
            return
        before = self.most()
        self.change(1)
        try:
            self.library.check("sgemm", *self.matrices)
        finally:
            self.change(before)


def _accepts(call: Call) -> str | None:
    """Why another kernel multiplies; leaves the matrices and where their product goes."""
    if not trials.allowed():
        return "nothing is tried, says OPREG_TUNE"
    found = matrices_of(call)
    if isinstance(found, str):
        return found
    a, b, _, out = found
    if a.ndim > 2 or not matmul.SMALL < found.work < blas.LARGE:
        return "the product is not of middle size"
    if threads.count() < 2 or shared_library.openmp() is None:
        return "the library has no threads to be held"
    if convolution.HERE in call.memo:
        usual, instead = "oneDNN's threads", matmul.matmul
    else:
        usual, instead = "BLAS", blas.multiplier(np, a, b)
    left, right = [blas.noise(array.shape, array.strides, array.dtype) for array in (a, b)]
    place = np.empty(out.shape, np.float32)
    layout = " and ".join(f"{array.shape} by {array.strides}" for array in (a, b))
    choice = trials.faster(f"{layout}: {usual} or {_ALONE} {shared_library.version()}", usual, _ALONE, {
        usual: functools.partial(instead, left, right, place), _ALONE: _Product(left, right, place)})
    call.found = a, b, out
    return None if choice.way == _ALONE else choice.reason


def _attach(op: Op) -> None:
    @op.kernel("onednn, one thread", bound=True, accepts=_accepts)
    def product_alone(call: Call) -> list[Callable[[], object]]:
        a, b, out = call.found
        return [_Product(a, b, out), *[functools.partial(np.add, out, bias, out) for bias in bias_of(call)]]


for _op in (fully_connected, fully_connected_data, fully_connected_weight):
    _attach(_op)
