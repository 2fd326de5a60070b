"""Operators that make arrays by NumPy's rules from nothing but attributes, under MXNet's names for them: ranges and
grids, which may be empty, and windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.attrs import Count, Finite
from ...core.declarations import ZERO
from ...core.op import Op
from ...core.registry import declare
from ...core.spec import Shape
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import declare_array_function

_FLOAT32, _INT32 = np.dtype(np.float32), np.dtype(np.int32)


def _declare_creation(op: Op, shape: str | Callable[..., Shape], function: Callable[..., Array]) -> None:
    """Declare the shape of an operator without inputs, by a form or a rule, and the function of the array module that
    computes it."""
    if isinstance(shape, str):
        declare_form(op, shape)
    else:
        op.infer(shape)
    op.grad(ZERO)
    # no body: its values do not come from arithmetic
    declare_array_function(op, lambda xp, *, dtype, ctx, **attrs: function(xp, **attrs).astype(dtype))


@declare(name="_npi_arange", types="->@dtype")
def arange(*, start: Finite, stop: Finite | None = None, step: Finite = 1.0, ctx: str = "",
           dtype: np.dtype = _FLOAT32):
    """Values from ``start`` to before ``stop``, or from 0 to before ``start`` without ``stop``; may be empty."""


def _range(xp: Any, start: float, stop: float | None, step: float) -> Array:
    return xp.arange(0, start, step) if stop is None else xp.arange(start, stop, step)


_declare_creation(arange, lambda *, start, stop, step: _range(np, start, stop, step).shape, _range)


@declare(name="_npi_logspace", types="->@dtype")
def logspace(*, start: Finite, stop: Finite, num: Count = 50, endpoint: bool = True, base: Finite = 10.0,
             ctx: str = "", dtype: np.dtype = _FLOAT32):
    """``num`` powers of ``base``, with evenly spaced exponents from ``start`` to ``stop``."""


_declare_creation(logspace, "-> (@num)", lambda xp, start, stop, num, endpoint, base: xp.logspace(
    start, stop, num, endpoint=endpoint, base=base))


@declare(name="_npi_eye", types="->@dtype")
def eye(*, N: Count, M: Count | None = None, k: int = 0, ctx: str = "", dtype: np.dtype = _FLOAT32):
    """A matrix of ``N`` rows and ``M`` columns, ``N`` by default, with ones on the ``k``-th diagonal."""


_declare_creation(eye, lambda *, N, M: (N, N if M is None else M), lambda xp, N, M, k: xp.eye(N, M, k))


@declare(name="_npi_identity", types="->@dtype")
def identity(*, shape: tuple[Count, ...], ctx: str = "", dtype: np.dtype = _FLOAT32):
    """A square matrix with ones on the diagonal."""


_declare_creation(identity, lambda *, shape: (shape[0], shape[0]), lambda xp, shape: xp.eye(shape[0]))


@declare(name="_npi_indices", types="->@dtype")
def indices(*, dimensions: tuple[Count, ...], ctx: str = "", dtype: np.dtype = _INT32):
    """The indices of a grid of the shape ``dimensions``: for each axis an array of this shape."""


_declare_creation(indices, lambda *, dimensions: (len(dimensions), *dimensions),
                  lambda xp, dimensions: xp.indices(dimensions))


def _cosines(xp: ArrayModule, count: int, factors: Sequence[float]) -> Array:
    """The sum of cosines of 0, 1, ... periods over ``count`` places, each times a factor."""
    angles = xp.arange(1 - count, count, 2) * (math.pi / max(count - 1, 1))
    return sum([factor * xp.cos(i * angles) for i, factor in enumerate(factors)][1:], xp.full(angles.shape, factors[0]))


def _window(name: str, doc: str, *factors: float) -> None:
    @declare(name=f"_npi_{name}", types="->@dtype")
    def op(*, M: int, ctx: str = "", dtype: np.dtype = _FLOAT32):
        """A window."""

    op.doc = doc
    _declare_creation(op, lambda *, M: (max(M, 0),), lambda xp, M: _cosines(xp, M, factors))


_window("hanning", "The Hann window of ``M`` values; empty if ``M`` is negative.", 0.5, 0.5)
_window("hamming", "The Hamming window of ``M`` values; empty if ``M`` is negative.", 0.54, 0.46)
_window("blackman", "The Blackman window of ``M`` values; empty if ``M`` is negative.", 0.42, 0.5, 0.08)
