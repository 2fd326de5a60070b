"""``mx.np.random``: random values from the generator of ``mx.random``; NumPy draws where no operator does.

With arrays as parameters one value is drawn for each of their elements, and ``size`` is the shape of the result.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.core.named_errors import name_errors
from opreg.core.registry import ops
from opreg.errors import ArgumentError
from opreg.ndarray import random as drawn
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray
from opreg.symbol import function as symbols_of
from opreg.symbol.symbol import Symbol
from opreg.typing import DTypeLike

from .functions import FUNCTIONS, any_symbol
from .values import as_value, new_array

__all__ = ["seed", "uniform", "normal", "randn", "rand", "randint", "choice", "shuffle", "permutation", "gamma",
           "exponential", "multinomial", "lognormal", "laplace", "bernoulli", "gumbel", "logistic", "beta", "chisquare",
           "rayleigh", "weibull", "pareto", "power", "poisson", "multivariate_normal", "uniform_n", "normal_n"]



def seed(seed: int | None = None, ctx: Any = "all") -> None:
    """Seed the generators of all contexts, or of one; without a seed, by a random one.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.seed(3)
    >>> first = np.random.rand(2)
    >>> np.random.seed(3)
    >>> (np.random.rand(2) == first).tolist()
    [True, True]
    """
    drawn.seed(int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed, ctx)



def _shape(size: Any, *parameters: Any) -> tuple[int, ...]:
    if size is None:
        return np.broadcast_shapes(*[each.shape if hasattr(each, "shape") else () for each in parameters])
    return (int(size),) if isinstance(size, numbers.Integral) else tuple(int(dim) for dim in size)


def _cast_and_store(result: Any, dtype: DTypeLike, out: Any) -> Any:
    result = result if dtype is None else result.astype(dtype)
    if out is None:
        return result
    out[...] = result
    return out


#: Passed instead of a context: the random values are drawn when a graph runs.
IN_GRAPH: Any = object()


def _standard(name: str, size: Any, ctx: Any, *parameters: Any) -> Any:
    """Values of the standard distribution ``name``, for parameters of any shapes."""
    symbols = [as_value(each) for each in parameters if isinstance(each, Symbol)]
    if symbols or ctx is IN_GRAPH:
        return _graph("_numpy_noise", symbols, size, distribution=name)
    shape = _shape(size, *parameters)
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return new_array(np.zeros(shape, np.float32), ctx)
    return getattr(drawn, name)(shape=(count,), ctx=ctx).as_np_ndarray().reshape(shape)


def _graph(operator: str, symbols: Sequence[Any], size: Any, **attrs: Any) -> Any:
    """A symbol of random values, which are drawn when its graph runs."""
    size = size if size is None else _shape(size)
    size = () if size is None and not symbols else size
    return symbols_of.surface(operator)(*symbols, num_args=len(symbols), size=size, **attrs).as_np_ndarray()


def _at_least_zero(name: str, *parameters: Any, beyond: bool = False) -> None:
    """Refuse negative parameters, and with ``beyond`` zeros, unless they are symbols."""
    for value in parameters:
        if isinstance(value, Symbol):
            continue
        host = value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
        if host.size and not (host > 0 if beyond else host >= 0).all():
            raise ArgumentError(f"np.random.{name}: expected parameters {'above 0' if beyond else 'of at least 0'}, "
                                f"got {host.min()}")


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None,
            out: Any = None) -> Any:
    """Uniform values from ``low`` to before ``high``.

    Examples
    --------
    >>> uniform(size=(2, 3)).shape
    (2, 3)
    """
    return _cast_and_store(_standard("uniform", size, ctx, low, high) * (high - low) + low, dtype, out)


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None,
           out: Any = None) -> Any:
    """Draws from the normal distribution.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.normal(0.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    _at_least_zero("normal", scale)
    return _cast_and_store(_standard("normal", size, ctx, loc, scale) * scale + loc, dtype, out)


def randn(*size: int, **keywords: Any) -> Any:
    """``normal`` with the lengths as arguments.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.randn(2, 3).shape
    (2, 3)
    """
    return normal(0.0, 1.0, size, **keywords)


def rand(*size: int, **keywords: Any) -> Any:
    """``uniform`` with the lengths as arguments.

    Examples
    --------
    >>> from opreg import np
    >>> values = np.random.rand(100)
    >>> bool(values.min() >= 0), bool(values.max() < 1)
    (True, True)
    """
    return uniform(0, 1, size, **keywords)


def lognormal(mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, dtype: DTypeLike = None,
              ctx: Context | None = None, out: Any = None) -> Any:
    """Exponentials of ``normal``.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.lognormal(0.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    return _cast_and_store(FUNCTIONS["exp"](normal(mean, sigma, size, ctx=ctx)), dtype, out)


def randint(low: int, high: int | None = None, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None,
            out: Any = None) -> Any:
    """Random integers from ``low`` to before ``high``; with one argument, from 0.

    Examples
    --------
    >>> from opreg import np
    >>> values = np.random.randint(2, 5, (100,))
    >>> sorted(set(values.tolist()))
    [2, 3, 4]
    """
    ends = (0, low) if high is None else (low, high)
    shape = _shape(size)
    if ctx is IN_GRAPH:
        draw = symbols_of.surface("_random_randint")
        drawing = draw(low=ends[0], high=ends[1], shape=shape, dtype=np.dtype(np.int64)).as_np_ndarray()
        return _cast_and_store(drawing, dtype, out)
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return new_array(np.zeros(shape, np.int64 if dtype is None else dtype), ctx)
    result = drawn.randint(*ends, shape=(count,), ctx=ctx, dtype="int64").as_np_ndarray().reshape(shape)
    return _cast_and_store(result, dtype, out)


def exponential(scale: Any = 1.0, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None,
                out: Any = None) -> Any:
    """Draws from the exponential distribution.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.exponential(1.0, (2, 3)).shape
    (2, 3)
    """
    _at_least_zero("exponential", scale)
    if ctx is IN_GRAPH or isinstance(scale, Symbol):
        return _cast_and_store(-FUNCTIONS["log"](_from_uniform(size, ctx, scale)) * scale, dtype, out)
    return _cast_and_store(_standard("exponential", size, ctx, scale) * scale, dtype, out)


def _from_uniform(size: Any, ctx: Context | None, *parameters: Any) -> Any:
    return FUNCTIONS["clip"](_standard("uniform", size, ctx, *parameters), 1e-7, 1 - 1e-7)


def laplace(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None,
            out: Any = None) -> Any:
    """Draws from the Laplace distribution.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.laplace(0.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    u = _from_uniform(size, ctx, loc, scale) - 0.5
    noise = FUNCTIONS["sign"](u) * FUNCTIONS["log"](1 - FUNCTIONS["abs"](u) * 2)
    return _cast_and_store(loc - noise * scale, dtype, out)


def gumbel(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, ctx: Context | None = None, out: Any = None) -> Any:
    """Draws from the Gumbel distribution.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.gumbel(0.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    _at_least_zero("gumbel", scale)
    noise = FUNCTIONS["log"](-FUNCTIONS["log"](_from_uniform(size, ctx, loc, scale)))
    return _cast_and_store(loc - noise * scale, None, out)


def logistic(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, ctx: Context | None = None, out: Any = None) -> Any:
    """Draws from the logistic distribution.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.logistic(0.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    _at_least_zero("logistic", scale)
    u = _from_uniform(size, ctx, loc, scale)
    return _cast_and_store(FUNCTIONS["log"](u / (1 - u)) * scale + loc, None, out)


def rayleigh(scale: Any = 1.0, size: Any = None, ctx: Context | None = None, out: Any = None) -> Any:
    """Draws from the Rayleigh distribution.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.rayleigh(1.0, (2, 3)).shape
    (2, 3)
    """
    _at_least_zero("rayleigh", scale)
    return _cast_and_store(FUNCTIONS["sqrt"](FUNCTIONS["log"](_from_uniform(size, ctx, scale)) * -2) * scale, None, out)


def weibull(a: Any, size: Any = None, ctx: Context | None = None, out: Any = None) -> Any:
    """Draws from the Weibull distribution.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.weibull(1.5, (2, 3)).shape
    (2, 3)
    """
    _at_least_zero("weibull", a, beyond=True)
    return _cast_and_store((-FUNCTIONS["log"](_from_uniform(size, ctx, a))) ** (1 / a), None, out)


def pareto(a: Any, size: Any = None, ctx: Context | None = None, out: Any = None) -> Any:
    """Draws from the Pareto distribution that begins at 0.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.pareto(3.0, (2, 3)).shape
    (2, 3)
    """
    _at_least_zero("pareto", a, beyond=True)
    return _cast_and_store(FUNCTIONS["exp"](-FUNCTIONS["log"](_from_uniform(size, ctx, a)) / a) - 1, None, out)


def power(a: Any, size: Any = None, ctx: Context | None = None, out: Any = None) -> Any:
    """Values from 0 to 1 with the density ``a x^(a-1)``.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.power(2.0, (2, 3)).shape
    (2, 3)
    """
    _at_least_zero("power", a, beyond=True)
    return _cast_and_store(_from_uniform(size, ctx, a) ** (1 / a), None, out)


def bernoulli(prob: Any = None, logit: Any = None, size: Any = None, dtype: DTypeLike = None,
              ctx: Context | None = None, out: Any = None) -> Any:
    """Ones with a given probability, or with the given logarithm of its odds, else zeros.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.bernoulli(0.5, size=(2, 3)).shape
    (2, 3)
    """
    if (prob is None) == (logit is None):
        raise ArgumentError("bernoulli: expected either prob or logit")
    if prob is None:
        prob = 1 / (FUNCTIONS["exp"](-as_value(logit)) + 1)
    else:
        _at_least_zero("bernoulli", prob, 1 - prob)
    ones = (_standard("uniform", size, ctx, prob) < prob).astype(np.float32)
    return _cast_and_store(ones, dtype, out)


def _for_each(name: str, low: Any, high: Any, batch_shape: Any, ctx: Any) -> Any:
    """Standard random values of the shape ``batch_shape`` for each element of the parameters."""
    batch = () if batch_shape is None else _shape(batch_shape)
    symbols = [as_value(each) for each in (low, high) if isinstance(each, Symbol)]
    if symbols or ctx is IN_GRAPH:
        return _graph("_numpy_noise", symbols, batch, distribution=name, batch=True)
    return _standard(name, (*batch, *_shape(None, low, high)), ctx)


def uniform_n(low: Any = 0.0, high: Any = 1.0, batch_shape: Any = None, dtype: DTypeLike = None,
              ctx: Context | None = None) -> Any:
    """Uniform values of the shape ``batch_shape`` for each element of the parameters.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.uniform_n(0.0, np.ones(3), (2,)).shape
    (2, 3)
    """
    return _cast_and_store(_for_each("uniform", low, high, batch_shape, ctx) * (high - low) + low, dtype, None)


def normal_n(loc: Any = 0.0, scale: Any = 1.0, batch_shape: Any = None, dtype: DTypeLike = None,
             ctx: Context | None = None) -> Any:
    """Normal values of the shape ``batch_shape`` for each element of the parameters.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.normal_n(0.0, np.ones(3), (2,)).shape
    (2, 3)
    """
    return _cast_and_store(_for_each("normal", loc, scale, batch_shape, ctx) * scale + loc, dtype, None)


def _random_of_each(operator: str, size: Any, ctx: Context | None, *parameters: Any) -> Any:
    """Values from an operator whose parameters are arrays."""
    shape = _shape(size, *parameters)
    values = [as_value(each) for each in parameters]
    dtype = "float64" if any(value.dtype == np.float64 for value in values) else "float32"
    spread = [FUNCTIONS["broadcast_to"](value.astype(dtype), shape).as_nd_ndarray().reshape((-1,)) for value in values]
    return getattr(ops, operator)(*spread).as_np_ndarray().reshape(shape)


def gamma(shape: Any, scale: Any = 1.0, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None,
          out: Any = None) -> Any:
    """Draws from the gamma distribution.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.gamma(2.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    _at_least_zero("gamma", shape, scale, beyond=True)
    if ctx is IN_GRAPH or isinstance(shape, Symbol) or isinstance(scale, Symbol):
        alphas = [as_value(shape)] if isinstance(shape, Symbol) else []
        attrs = {} if alphas else {"alpha": float(shape)}
        return _cast_and_store(_graph("_numpy_gamma", alphas, size, **attrs) * scale, dtype, out)
    return _cast_and_store(_random_of_each("_sample_gamma", size, ctx, shape, scale), dtype, out)


def chisquare(df: Any, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None) -> Any:
    """Numbers of the chi-square distribution.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.chisquare(2, (2, 3)).shape
    (2, 3)
    """
    return gamma(df / 2, 2.0, size, dtype, ctx)


def beta(a: Any, b: Any, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None) -> Any:
    """Draws from the beta distribution.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.beta(1.0, 2.0, (2, 3)).shape
    (2, 3)
    """
    size = size if any_symbol((a, b)) or ctx is IN_GRAPH else _shape(size, a, b)
    x, y = gamma(a, 1.0, size, None, ctx), gamma(b, 1.0, size, None, ctx)
    return _cast_and_store(x / (x + y), dtype, None)


def poisson(lam: Any = 1.0, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None) -> Any:
    """Draws from the Poisson distribution.

    Examples
    --------
    >>> from opreg import np
    >>> np.random.poisson(4.0, (2, 3)).shape
    (2, 3)
    """
    return _cast_and_store(_random_of_each("_sample_poisson", size, ctx, lam), dtype, None)


def _order(count: int) -> np.ndarray:
    return np.argsort(drawn.uniform(shape=(count,)).asnumpy(), kind="stable") if count else np.zeros(0, np.int64)


def shuffle(x: Any) -> None:
    """Shuffle the slices of an array along its first axis, in place.

    Examples
    --------
    >>> from opreg import np
    >>> x = np.arange(4)
    >>> np.random.shuffle(x)
    >>> sorted(x.tolist())
    [0.0, 1.0, 2.0, 3.0]
    """
    x[...] = new_array(x.asnumpy()[_order(len(x))], x.context)


def permutation(x: Any, ctx: Context | None = None) -> Any:
    """The slices of an array along its first axis, or the integers from 0, in random order.

    Examples
    --------
    >>> from opreg import np
    >>> sorted(np.random.permutation(4).tolist())
    [0, 1, 2, 3]
    """
    if isinstance(x, numbers.Integral):
        return new_array(_order(int(x)), ctx)
    return new_array(x.asnumpy()[_order(len(x))], x.context)


def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None, ctx: Context | None = None, out: Any = None
           ) -> Any:
    """Random elements of an array, or random integers from 0 below ``a``; without ``replace`` each at most once. ``p``
    has their probabilities.

    Examples
    --------
    >>> from opreg import np
    >>> sorted(np.random.choice(4, 4, replace=False).tolist())
    [0, 1, 2, 3]
    """
    if ctx is IN_GRAPH or any_symbol((a, p)):
        return _chosen(a, size, replace, p)
    rng = np.random.default_rng(int(drawn.randint(0, 2 ** 31 - 1, shape=(1,), dtype="int64").asnumpy()[0]))
    chances = p.asnumpy() if isinstance(p, NDArray) else p
    if chances is not None:
        chances = np.asarray(chances, np.float64) / np.sum(chances, dtype=np.float64)
    among = a.asnumpy() if isinstance(a, NDArray) else a
    return _cast_and_store(new_array(np.asarray(rng.choice(among, size, replace, chances)), ctx), None, out)


def _chosen(a: Any, size: Any, replace: bool, p: Any) -> Any:
    """Random elements of a symbol, or random integers below ``a``, drawn when the graph runs."""
    among = as_value(a) if isinstance(a, Symbol) else symbols_of.surface("_npi_arange")(
        start=0, stop=int(a), step=1, dtype=np.dtype(np.int64)).as_np_ndarray()
    shape = () if size is None else _shape(size)
    count = math.prod(shape)
    weights = ops.Cast(FUNCTIONS["ones_like"](among) if p is None else as_value(p), dtype=np.dtype(np.float32))
    if replace:
        ends = FUNCTIONS["cumsum"](weights)
        places = ops.Cast(_standard("uniform", (count, 1), IN_GRAPH) >= ends / ends[-1:], dtype=np.dtype(np.int64))
        places = FUNCTIONS["sum"](places, axis=-1)
    else:  # the largest sums of a number of Gumbel's distribution and a logarithm
        noise = -FUNCTIONS["log"](-FUNCTIONS["log"](_standard("uniform", None, IN_GRAPH, weights)))
        places = FUNCTIONS["argsort"](-noise - FUNCTIONS["log"](weights))[:count]
    return FUNCTIONS["reshape"](FUNCTIONS["take"](among, places, mode="clip"), shape)


def multinomial(n: int, pvals: Any, size: Any = None) -> Any:
    """Counts of each of several outcomes in ``n`` trials.

    Examples
    --------
    >>> from opreg import np
    >>> int(np.random.multinomial(10, [0.2, 0.8]).sum())
    10
    """
    rng = np.random.default_rng(int(drawn.randint(0, 2 ** 31 - 1, shape=(1,), dtype="int64").asnumpy()[0]))
    chances = np.asarray(pvals.asnumpy() if isinstance(pvals, NDArray) else pvals, np.float64)
    if not chances.size:
        return new_array(np.zeros((*np.empty(() if size is None else size).shape, 0), np.int64))
    return new_array(rng.multinomial(int(n), chances / max(1.0, float(chances.sum())), size))


def multivariate_normal(mean: Any, cov: Any, size: Any = None, check_valid: Any = None, tol: Any = None,
                        ctx: Context | None = None) -> Any:
    """Vectors of normal distributions with means and covariance matrices, whose batches are broadcast.

    The shape is ``size`` and then that of the batch and of the mean, the dtype is float32. A matrix that is not
    positive semidefinite raises an error, whatever ``check_valid`` and ``tol`` are; in a graph a singular one gives
    NaN.

    Examples
    --------
    >>> multivariate_normal(np.zeros((3, 2)), np.eye(2), size=4).shape
    (4, 3, 2)
    """
    if any_symbol((mean, cov)):
        middle, spread = (ops.Cast(as_value(parameter), dtype=np.dtype(np.float32)) for parameter in (mean, cov))
        batch = ops.zeros_like(ops._np_squeeze(ops.slice_axis(spread, axis=-1, begin=0, end=1), axis=-1))
        middle = ops._npi_add(middle, batch)
        noise = _graph("_numpy_noise", [middle], () if size is None else size, distribution="normal", batch=True)
        factor = ops.SwapAxis(ops._linalg_potrf(spread), dim1=-1, dim2=-2)
        rows = ops._npi_matmul(ops.expand_dims(noise, axis=-2), factor)
        return ops._np_squeeze(rows, axis=-2) + middle
    rng = np.random.default_rng(int(drawn.randint(0, 2 ** 31 - 1, shape=(1,), dtype="int64").asnumpy()[0]))
    mean, cov = (np.asarray(parameter.asnumpy() if isinstance(parameter, NDArray) else parameter, np.float64)
                 for parameter in (mean, cov))
    if cov.ndim < 2 or mean.ndim < 1 or cov.shape[-2:] != mean.shape[-1:] * 2:
        raise ArgumentError(f"np.random.multivariate_normal: expected shapes (..., n) and (..., n, n), got "
                            f"{mean.shape} and {cov.shape}")
    vectors, scales, _ = np.linalg.svd(cov)
    if not np.allclose((vectors * scales[..., None, :]) @ vectors.swapaxes(-1, -2), cov, 1e-6, 1e-6):
        raise ArgumentError("np.random.multivariate_normal: expected positive semidefinite covariance matrices")
    batch = np.broadcast_shapes(mean.shape, cov.shape[:-1])
    noise = rng.standard_normal((*(() if size is None else _shape(size)), *batch))
    rows = vectors * np.sqrt(scales)[..., None, :] @ noise[..., None]
    return new_array(mean + rows[..., 0], dtype=np.float32)


name_errors(__name__, globals(), __all__)
