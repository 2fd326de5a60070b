"""``F.np`` for symbols: functions of ``np``, where functions that make arrays make symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from opreg import np
from opreg.core.registry import get
from opreg.errors import did_you_mean
from opreg.symbol.symbol import Symbol, create

from . import functions
from . import random as distributions
from .values import NumpySymbol, as_value

__all__ = ["zeros", "ones", "full", "arange", "linspace", "logspace", "eye", "identity", "indices", "hanning",
           "hamming", "blackman"]

_FLOAT32 = numpy.dtype(numpy.float32)


def _source_symbol(operator: str, dtype: Any, **attrs: Any) -> NumpySymbol:
    """The symbol of an operator without inputs."""
    keywords = {**attrs, "dtype": dtype or _FLOAT32}
    symbol = create(get(operator), (), keywords, operator.removeprefix("_npi_").removeprefix("_"))
    result: NumpySymbol = symbol.as_np_ndarray()
    return result


def zeros(shape: Any, dtype: Any = None, order: str = "C", ctx: Any = None) -> NumpySymbol:
    """Zeros."""
    return _source_symbol("_zeros", dtype, shape=shape)


def ones(shape: Any, dtype: Any = None, order: str = "C", ctx: Any = None) -> NumpySymbol:
    """Ones."""
    return _source_symbol("_ones", dtype, shape=shape)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", ctx: Any = None) -> Any:
    """One number in a shape, or a symbol that broadcasts to it."""
    if isinstance(fill_value, Symbol):
        value = as_value(fill_value)
        return functions.FUNCTIONS["broadcast_to"](value if dtype is None else value.astype(dtype), shape)
    return _source_symbol("_full", dtype, shape=shape, value=fill_value)


def arange(start: float, stop: float | None = None, step: float | None = 1, dtype: Any = None, ctx: Any = None
           ) -> NumpySymbol:
    """Values from ``start`` to before ``stop``."""
    first, end = (0, start) if stop is None else (start, stop)
    return _source_symbol("_npi_arange", dtype, start=first, stop=end, step=1 if step is None else step)


def linspace(start: float, stop: float, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
             axis: int = 0, ctx: Any = None) -> Any:
    """Evenly spaced values, and with ``retstep`` their distance."""
    symbol = _source_symbol("_linspace", dtype, start=start, stop=stop, num=num, endpoint=endpoint)
    return (symbol, (stop - start) / ((num - 1 if endpoint else num) or 1)) if retstep else symbol


def logspace(start: float, stop: float, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None,
             axis: int = 0, ctx: Any = None) -> NumpySymbol:
    """Elements whose logarithms are evenly spaced."""
    return _source_symbol("_npi_logspace", dtype, start=start, stop=stop, num=num, endpoint=endpoint, base=base)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """Ones on a diagonal."""
    return _source_symbol("_npi_eye", dtype, N=N, M=M, k=k)


def identity(n: int, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """Ones on the diagonal."""
    return _source_symbol("_npi_identity", dtype, shape=(n, n))


def indices(dimensions: Any, dtype: Any = numpy.int32, ctx: Any = None) -> NumpySymbol:
    """The indices of a grid, along each axis."""
    return _source_symbol("_npi_indices", dtype, dimensions=tuple(dimensions))


def hanning(M: int, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """The Hann window."""
    return _source_symbol("_npi_hanning", dtype, M=M)


def hamming(M: int, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """The Hamming window."""
    return _source_symbol("_npi_hamming", dtype, M=M)


def blackman(M: int, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """The Blackman window."""
    return _source_symbol("_npi_blackman", dtype, M=M)


class Drawing:
    """Random functions for graphs: values are drawn when a graph runs.

    Parameters
    ----------
    names : sequence of str
        The functions of ``np.random`` that it has.
    """

    def __init__(self, names: Sequence[str]):
        self._names = names

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            raise AttributeError(f"random numbers in a graph: there is no {name!r}. {did_you_mean(name, self._names)}")
        function = getattr(distributions, name)

        def drawing(*args: Any, **keywords: Any) -> Any:
            return function(*args, **{**keywords, "ctx": distributions.IN_GRAPH})

        drawing.__name__, drawing.__doc__ = name, function.__doc__
        return drawing

    def __dir__(self) -> list[str]:
        return sorted(self._names)


_RANDOM = Drawing(("uniform", "normal", "rand", "randn", "randint", "lognormal", "exponential", "laplace", "gumbel",
                   "logistic", "rayleigh", "weibull", "pareto", "power", "gamma", "beta", "chisquare",
                   "multivariate_normal", "choice"))


def __dir__() -> list[str]:
    return sorted({*__all__, *functions.FUNCTIONS, "linalg", "random"})


def __getattr__(name: str) -> Any:
    if name in ("ndarray", "_Symbol"):
        return NumpySymbol if name == "_Symbol" else Symbol
    if name == "random":
        return _RANDOM
    value = getattr(np, name)
    return functions.FUNCTIONS.get(name, value)
