"""``mx.np.random``: random values from the generator of ``mx.random``; NumPy draws those without an operator.

With arrays as parameters one value is drawn for each of their elements, and ``size`` is the shape of the result.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from opreg.core.registry import ops
from opreg.ndarray import random as drawn
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray
from opreg.typing import DTypeLike

from .functions import FUNCTIONS
from .values import held, made

__all__ = ["seed", "uniform", "normal", "randn", "rand", "randint", "choice", "shuffle", "permutation", "gamma",
           "exponential", "multinomial", "lognormal", "laplace", "bernoulli", "gumbel", "logistic", "beta", "chisquare",
           "rayleigh", "weibull", "pareto", "power", "poisson", "multivariate_normal"]

seed = drawn.seed


def _shape(size: Any, *parameters: Any) -> tuple[int, ...]:
    if size is None:
        return np.broadcast_shapes(*[each.shape if hasattr(each, "shape") else () for each in parameters])
    return (int(size),) if isinstance(size, numbers.Integral) else tuple(int(dim) for dim in size)


def _stored(result: Any, dtype: DTypeLike, out: Any) -> Any:
    result = result if dtype is None else result.astype(dtype)
    if out is None:
        return result
    out[...] = result
    return out


def _standard(name: str, shape: tuple[int, ...], ctx: Context | None) -> Any:
    """Values of a distribution without parameters, of any shape."""
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return made(np.zeros(shape, np.float32), ctx)
    return getattr(drawn, name)(shape=(count,), ctx=ctx).as_np_ndarray().reshape(shape)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None,
            out: Any = None) -> Any:
    """Uniform values from ``low`` to before ``high``.

    Examples
    --------
    >>> uniform(size=(2, 3)).shape
    (2, 3)
    """
    return _stored(_standard("uniform", _shape(size, low, high), ctx) * (high - low) + low, dtype, out)


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None,
           out: Any = None) -> Any:
    """Draws from the normal distribution."""
    return _stored(_standard("normal", _shape(size, loc, scale), ctx) * scale + loc, dtype, out)


def randn(*size: int, **keywords: Any) -> Any:
    """``normal`` with the lengths as arguments."""
    return normal(0.0, 1.0, size, **keywords)


def rand(*size: int, **keywords: Any) -> Any:
    """``uniform`` with the lengths as arguments."""
    return uniform(0, 1, size, **keywords)


def lognormal(mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, dtype: DTypeLike = None,
              ctx: Context | None = None, out: Any = None) -> Any:
    """Exponentials of ``normal``."""
    return _stored(FUNCTIONS["exp"](normal(mean, sigma, size, ctx=ctx)), dtype, out)


def randint(low: int, high: int | None = None, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None,
            out: Any = None) -> Any:
    """Random integers from ``low`` to before ``high``; with one argument, from 0."""
    ends = (0, low) if high is None else (low, high)
    shape = _shape(size)
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return made(np.zeros(shape, np.int64 if dtype is None else dtype), ctx)
    result = drawn.randint(*ends, shape=(count,), ctx=ctx, dtype="int64").as_np_ndarray().reshape(shape)
    return _stored(result, dtype, out)


def exponential(scale: Any = 1.0, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None,
                out: Any = None) -> Any:
    """Draws from the exponential distribution."""
    return _stored(_standard("exponential", _shape(size, scale), ctx) * scale, dtype, out)


def _from_uniform(size: Any, ctx: Context | None, *parameters: Any) -> Any:
    return FUNCTIONS["clip"](_standard("uniform", _shape(size, *parameters), ctx), 1e-7, 1 - 1e-7)


def laplace(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None,
            out: Any = None) -> Any:
    """Draws from the Laplace distribution."""
    u = _from_uniform(size, ctx, loc, scale) - 0.5
    noise = FUNCTIONS["sign"](u) * FUNCTIONS["log"](1 - FUNCTIONS["abs"](u) * 2)
    return _stored(loc - noise * scale, dtype, out)


def gumbel(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, ctx: Context | None = None, out: Any = None) -> Any:
    """Draws from the Gumbel distribution."""
    noise = FUNCTIONS["log"](-FUNCTIONS["log"](_from_uniform(size, ctx, loc, scale)))
    return _stored(loc - noise * scale, None, out)


def logistic(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, ctx: Context | None = None, out: Any = None) -> Any:
    """Draws from the logistic distribution."""
    u = _from_uniform(size, ctx, loc, scale)
    return _stored(FUNCTIONS["log"](u / (1 - u)) * scale + loc, None, out)


def rayleigh(scale: Any = 1.0, size: Any = None, ctx: Context | None = None, out: Any = None) -> Any:
    """Draws from the Rayleigh distribution."""
    return _stored(FUNCTIONS["sqrt"](FUNCTIONS["log"](_from_uniform(size, ctx, scale)) * -2) * scale, None, out)


def weibull(a: Any, size: Any = None, ctx: Context | None = None, out: Any = None) -> Any:
    """Draws from the Weibull distribution."""
    return _stored((-FUNCTIONS["log"](_from_uniform(size, ctx, a))) ** (1 / a), None, out)


def pareto(a: Any, size: Any = None, ctx: Context | None = None, out: Any = None) -> Any:
    """Draws from the Pareto distribution that begins at 0."""
    return _stored(FUNCTIONS["exp"](-FUNCTIONS["log"](_from_uniform(size, ctx, a)) / a) - 1, None, out)


def power(a: Any, size: Any = None, ctx: Context | None = None, out: Any = None) -> Any:
    """Values from 0 to 1 with the density ``a x^(a-1)``."""
    return _stored(_from_uniform(size, ctx, a) ** (1 / a), None, out)


def bernoulli(prob: Any, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None, out: Any = None) -> Any:
    """Ones with a given probability, else zeros."""
    drawn_ones = (_standard("uniform", _shape(size, prob), ctx) < prob).astype(np.float32)
    return _stored(drawn_ones, dtype, out)


def _each(operator: str, size: Any, ctx: Context | None, *parameters: Any) -> Any:
    """Values from an operator whose parameters are arrays."""
    shape = _shape(size, *parameters)
    spread = [FUNCTIONS["broadcast_to"](held(each), shape).as_nd_ndarray().reshape((-1,)) for each in parameters]
    return getattr(ops, operator)(*spread).as_np_ndarray().reshape(shape)


def gamma(shape: Any, scale: Any = 1.0, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None,
          out: Any = None) -> Any:
    """Draws from the gamma distribution."""
    return _stored(_each("_sample_gamma", size, ctx, shape, scale), dtype, out)


def chisquare(df: Any, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None) -> Any:
    """Numbers of the chi-square distribution."""
    return gamma(df / 2, 2.0, size, dtype, ctx)


def beta(a: Any, b: Any, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None) -> Any:
    """Draws from the beta distribution."""
    size = _shape(size, a, b)
    x, y = gamma(a, 1.0, size, None, ctx), gamma(b, 1.0, size, None, ctx)
    return _stored(x / (x + y), dtype, None)


def poisson(lam: Any = 1.0, size: Any = None, dtype: DTypeLike = None, ctx: Context | None = None) -> Any:
    """Draws from the Poisson distribution."""
    return _stored(_each("_sample_poisson", size, ctx, lam), dtype, None)


def _order(count: int) -> np.ndarray:
    return np.argsort(drawn.uniform(shape=(count,)).asnumpy(), kind="stable") if count else np.zeros(0, np.int64)


def shuffle(x: Any) -> None:
    """Shuffle the slices of an array along its first axis, in place."""
    x[...] = made(x.asnumpy()[_order(len(x))], x.context)


def permutation(x: Any, ctx: Context | None = None) -> Any:
    """The slices of an array along its first axis, or the integers from 0, in random order."""
    if isinstance(x, numbers.Integral):
        return made(_order(int(x)), ctx)
    return made(x.asnumpy()[_order(len(x))], x.context)


def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None, ctx: Context | None = None, out: Any = None
           ) -> Any:
    """Random elements of an array, or random integers below ``a``."""
    rng = np.random.default_rng(int(drawn.randint(0, 2 ** 31 - 1, shape=(1,), dtype="int64").asnumpy()[0]))
    chances = p.asnumpy() if isinstance(p, NDArray) else p
    if chances is not None:
        chances = np.asarray(chances, np.float64) / np.sum(chances, dtype=np.float64)
    among = a.asnumpy() if isinstance(a, NDArray) else a
    return _stored(made(np.asarray(rng.choice(among, size, replace, chances)), ctx), None, out)


def multinomial(n: int, pvals: Any, size: Any = None) -> Any:
    """Counts of each of several outcomes in ``n`` trials."""
    rng = np.random.default_rng(int(drawn.randint(0, 2 ** 31 - 1, shape=(1,), dtype="int64").asnumpy()[0]))
    chances = np.asarray(pvals.asnumpy() if isinstance(pvals, NDArray) else pvals, np.float64)
    if not chances.size:
        return made(np.zeros((*np.empty(() if size is None else size).shape, 0), np.int64))
    return made(rng.multinomial(int(n), chances / max(1.0, float(chances.sum())), size))


def multivariate_normal(mean: Any, cov: Any, size: Any = None) -> Any:
    """Vectors of a normal distribution with a mean and a covariance matrix."""
    rng = np.random.default_rng(int(drawn.randint(0, 2 ** 31 - 1, shape=(1,), dtype="int64").asnumpy()[0]))
    mean, cov = (parameter.asnumpy() if isinstance(parameter, NDArray) else parameter for parameter in (mean, cov))
    return made(rng.multivariate_normal(mean, cov, size), dtype=np.float32)

