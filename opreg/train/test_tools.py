"""Tools of tests: environment variables, repeated attempts, statistics, comparison of optimizers.

They are found in ``opreg.test_utils``.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from opreg.ndarray.ndarray import NDArray, array

from ..core.named_errors import name_errors
from ..errors import ArgumentError
from ..typing import DTypeLike
from .test_arrays import assert_almost_equal, rand_ndarray

if TYPE_CHECKING:
    from opreg.symbol.symbol import Symbol

    from .base_optimizer import Optimizer

__all__ = ["environment", "discard_stderr", "retry", "collapse_sum_like", "assign_each", "assign_each2",
           "same_symbol_structure", "gen_buckets_probs_with_ppf", "mean_check",
           "var_check", "chi_square_check", "verify_generator", "compare_ndarray_tuple", "compare_optimizer"]

P = ParamSpec("P")
R = TypeVar("R")
#: An interval of values, or a value.
Bucket: TypeAlias = tuple[float, float] | float


@contextlib.contextmanager
def environment(*args: str | Mapping[str, str | None] | None) -> Iterator[None]:
    """Set environment variables in a context: a name and its value, or a dict; None removes a variable.

    Examples
    --------
    >>> with environment("SOME_VARIABLE", "1"):
    ...     os.environ["SOME_VARIABLE"]
    '1'
    """
    if len(args) == 1 and isinstance(args[0], Mapping):
        variables: dict[str, Any] = dict(args[0])
    elif len(args) == 2 and isinstance(args[0], str):
        variables = {args[0]: args[1]}
    else:
        raise ArgumentError("environment: expected a name and its value, or a dict of them")

    def put(values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    before = {name: os.environ.get(name) for name in variables}
    put(variables)
    try:
        yield
    finally:
        put(before)


@contextlib.contextmanager
def discard_stderr() -> Iterator[None]:
    """Suppress the standard error in a context."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        yield


def retry(n: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that repeats a test up to ``n`` times, until no assertion fails."""
    if n < 1:
        raise ArgumentError(f"retry: expected a positive number, got {n}")

    def decorate(test: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(test)
        def attempted(*args: P.args, **kwargs: P.kwargs) -> R:
            for _ in range(n - 1):
                try:
                    return test(*args, **kwargs)
                except AssertionError:
                    pass
            return test(*args, **kwargs)

        return attempted

    return decorate


def collapse_sum_like(a: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """An array summed to a shape that broadcasts to its own.

    Examples
    --------
    >>> collapse_sum_like(np.ones((2, 3)), (3,)).tolist()
    [2.0, 2.0, 2.0]
    """
    ahead = a.ndim - len(shape)
    if ahead < 0 or any(dim not in (1, length) for dim, length in zip(shape, a.shape[ahead:])):
        raise ArgumentError(f"collapse_sum_like: {tuple(shape)} does not broadcast to {a.shape}")
    along = [*range(ahead), *[i + ahead for i, dim in enumerate(shape) if dim == 1]]
    return a.sum(axis=tuple(along)).reshape(shape)


# ------------------------------------------------------------------------------------------- random numbers


def assign_each(the_input: ArrayLike, function: Callable[[float], float] | None) -> np.ndarray:
    """An array with a function applied to each element; a copy without a function.

    Examples
    --------
    >>> assign_each(np.array([1.0, 4.0]), math.sqrt)
    array([1., 2.])
    """
    if function is None:
        return np.array(the_input)
    return np.array([function(number) for number in np.ravel(the_input)], float).reshape(np.shape(the_input))


def assign_each2(input1: ArrayLike, input2: ArrayLike, function: Callable[[float, float], float] | None
                 ) -> np.ndarray:
    """An array with a function applied to each pair of elements of two arrays; a copy of the first without a
    function."""
    if function is None:
        return np.array(input1)
    if np.shape(input1) != np.shape(input2):
        raise AssertionError(f"shapes {np.shape(input1)} and {np.shape(input2)} differ")
    pairs = zip(np.ravel(input1), np.ravel(input2))
    return np.array([function(*pair) for pair in pairs], float).reshape(np.shape(input1))


def same_symbol_structure(sym1: Symbol, sym2: Symbol) -> bool:
    """Whether two symbols have the same operators in the same order, with the same inputs."""
    first, second = ([(node["op"], node["inputs"]) for node in json.loads(symbol.tojson())["nodes"]]
                     for symbol in (sym1, sym2))
    return first == second


def gen_buckets_probs_with_ppf(ppf: Callable[[float], float], nbuckets: int
                               ) -> tuple[list[tuple[float, float]], list[float]]:
    """Intervals of equal probability by the inverse of a distribution function, and their probabilities.

    Examples
    --------
    >>> gen_buckets_probs_with_ppf(lambda p: 4 * p, 2)
    ([(0.0, 2.0), (2.0, 4.0)], [0.5, 0.5])
    """
    edges = [float(ppf(i / nbuckets)) for i in range(nbuckets + 1)]
    return list(pairwise(edges)), [1 / nbuckets] * nbuckets


def _draw_samples(generator: Callable[[int], ArrayLike], nsamples: int) -> np.ndarray:
    drawn = generator(nsamples)
    samples = (drawn.asnumpy() if isinstance(drawn, NDArray) else np.asarray(drawn)).ravel()
    if len(samples) != nsamples:
        raise ArgumentError(f"the generator returned {len(samples)} numbers, expected {nsamples}")
    return samples


def mean_check(generator: Callable[[int], ArrayLike], mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the mean of samples is within three standard deviations of the distribution's mean."""
    samples = _draw_samples(generator, nsamples).astype(np.float64)
    return bool(abs(samples.mean() - mu) < 3 * sigma / math.sqrt(nsamples))


def var_check(generator: Callable[[int], ArrayLike], sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the variance of samples is within three standard deviations of that of a normal distribution."""
    samples = _draw_samples(generator, nsamples).astype(np.float64)
    return bool(abs(samples.var(ddof=1) - sigma ** 2) < 3 * sigma ** 2 * math.sqrt(2 / (nsamples - 1)))


def _chance(statistic: float, freedom: int) -> float:
    """Probability that a chi-square statistic with these degrees of freedom is at least this large."""
    z, a = statistic / 2, freedom % 2 / 2
    chance = math.erfc(math.sqrt(z)) if a else 0.0  # Q(a + 1, z) = Q(a, z) + z^a e^-z / gamma(a + 1)
    while a < freedom / 2:
        chance += math.exp(a * math.log(z) - z - math.lgamma(a + 1)) if z > 0 else float(a == 0)
        a += 1
    return min(chance, 1.0)


def chi_square_check(generator: Callable[[int], ArrayLike], buckets: Sequence[Bucket], probs: Sequence[float],
                     nsamples: int = 1000000) -> tuple[float, np.ndarray, np.ndarray]:
    """The p-value of a chi-square test of samples, and the observed and expected counts of each bucket.

    Parameters
    ----------
    generator : callable
        A function of a number that returns as many samples.
    buckets : list of (low, high), or of number
        Increasing intervals, or the values themselves; together they cover the distribution.
    probs : sequence of float
        Probability of each bucket.
    nsamples : int
        Number of samples that are drawn.
    """
    samples = _draw_samples(generator, nsamples)
    if isinstance(buckets[0], (list, tuple)):
        counts = np.array([((low <= samples) & (samples < high)).sum() for low, high in buckets])  # type: ignore
    else:
        counts = np.array([(samples == value).sum() for value in buckets])
    expected = nsamples * np.asarray(probs, np.float64)
    return _chance(float(((counts - expected) ** 2 / expected).sum()), len(buckets) - 1), counts, expected


def verify_generator(generator: Callable[[int], ArrayLike], buckets: Sequence[Bucket], probs: Sequence[float],
                     nsamples: int = 1000000, nrepeat: int = 5, success_rate: float = 0.2, alpha: float = 0.05
                     ) -> list[float]:
    """Fail unless ``chi_square_check`` gives p-values above ``alpha`` in a fraction ``success_rate`` of ``nrepeat``
    attempts; returns the p-values.

    Raises
    ------
    AssertionError
        With the chances, and the numbers of samples found and expected.
    """
    results = [chi_square_check(generator, buckets, probs, nsamples) for _ in range(nrepeat)]
    chances = [chance for chance, _, _ in results]
    if sum(chance > alpha for chance in chances) < nrepeat * success_rate:
        raise AssertionError(f"generator test failed: probabilities {chances}, buckets {buckets}, "
                             f"found {[counts.tolist() for _, counts, _ in results]}, "
                             f"expected {results[0][2].tolist()}")
    return chances


# ------------------------------------------------------------------------------------------------ optimizers


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: float | None = None, atol: float | None = None) -> None:
    """Fail unless arrays, or tuples of them within each other, are equal within tolerances; None equals anything."""
    if t1 is None or t2 is None:
        return
    if isinstance(t1, (list, tuple)):
        for first, second in zip(t1, t2):
            compare_ndarray_tuple(first, second, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)


def compare_optimizer(opt1: Optimizer, opt2: Optimizer, shapes: Any, dtype: DTypeLike, w_stype: str = "default",
                      g_stype: str = "default", rtol: float = 1e-4, atol: float = 1e-5, compare_states: bool = True,
                      ntensors: int = 1) -> None:
    """Fail unless two optimizers make the same step from the same weights and gradients.

    Parameters
    ----------
    opt1, opt2 : Optimizer
        The first updates dense arrays, the second arrays of the given storage types.
    shapes : tuple of int, or list of them
        Shape of the weight, or shapes of ``ntensors`` weights that are updated together.
    dtype : dtype
        Dtype of weights and gradients.
    """
    def drawn(stype: str) -> list[NDArray]:
        return [rand_ndarray(shape, stype, dtype=dtype) for shape in (shapes if ntensors > 1 else [shapes])]

    weights, gradients = drawn(w_stype), drawn(g_stype)
    results = []
    for optimizer, stypes in ((opt1, ("default", "default")), (opt2, (w_stype, g_stype))):
        ws, gs = ([array(weight, dtype=dtype).tostype(stype) for weight in arrays]
                  for arrays, stype in zip((weights, gradients), stypes))
        states = [optimizer.create_state_multi_precision(i, weight) for i, weight in enumerate(ws)]
        if ntensors > 1:
            optimizer.update_multi_precision(list(range(ntensors)), ws, gs, states)
        else:
            optimizer.update_multi_precision(0, ws[0], gs[0], states[0])
        results.append((ws, states))
    (ws1, states1), (ws2, states2) = results
    if compare_states:
        compare_ndarray_tuple(states1, states2, rtol, atol)
    compare_ndarray_tuple(ws1, ws2, rtol, atol)


name_errors(__name__, globals(), __all__)
