"""``F.np`` for symbols: functions of ``np``, where functions that make arrays make symbols."""

from __future__ import annotations

import math
from typing import Any

from opreg import np, symbol
from opreg.symbol.symbol import Symbol

from . import functions
from .values import NumpySymbol

__all__ = ["zeros", "ones", "full", "arange", "linspace", "logspace", "eye", "identity", "hanning", "hamming",
           "blackman"]


def _numpy(made: Any) -> NumpySymbol:
    result: NumpySymbol = made.as_np_ndarray()
    return result


def zeros(shape: Any, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """Zeros."""
    return _numpy(symbol.zeros(shape, dtype))


def ones(shape: Any, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """Ones."""
    return _numpy(symbol.ones(shape, dtype))


def full(shape: Any, fill_value: float, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """One number in a shape."""
    return _numpy(symbol.full(shape, fill_value, dtype))


def arange(start: float, stop: float | None = None, step: float = 1, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """Values from ``start`` to before ``stop``."""
    first, end = (0, start) if stop is None else (start, stop)
    return _numpy(symbol.arange(first, end, step, dtype=dtype))


def linspace(start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None, ctx: Any = None
             ) -> NumpySymbol:
    """Evenly spaced values."""
    return _numpy(symbol.linspace(start, stop, num, endpoint, dtype=dtype))


def logspace(start: float, stop: float, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None,
             ctx: Any = None) -> NumpySymbol:
    """Elements whose logarithms are evenly spaced."""
    exponents: Any = base ** linspace(start, stop, num, endpoint)
    return exponents if dtype is None else exponents.astype(dtype)


def _window(M: int, dtype: Any, *factors: float) -> NumpySymbol:
    """The sum of cosines of 0, 1, … periods, each times a factor."""
    angles = arange(M) * (2 * math.pi / max(M - 1, 1))
    window: Any = sum([functions.FUNCTIONS["cos"](angles * i) * factor for i, factor in enumerate(factors)][1:],
                    zeros(M) + factors[0])
    window = window if M > 1 else ones(M)
    return window if dtype is None else window.astype(dtype)


def hanning(M: int, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """The Hann window."""
    return _window(M, dtype, 0.5, -0.5)


def hamming(M: int, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """The Hamming window."""
    return _window(M, dtype, 0.54, -0.46)


def blackman(M: int, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """The Blackman window."""
    return _window(M, dtype, 0.42, -0.5, 0.08)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """Ones on a diagonal."""
    return _numpy(symbol.eye(N, M or 0, k, dtype))


def identity(n: int, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """Ones on the diagonal."""
    return eye(n, dtype=dtype)


def __getattr__(name: str) -> Any:
    value = getattr(np, name)
    return Symbol if name == "ndarray" else functions.FUNCTIONS.get(name, value)
