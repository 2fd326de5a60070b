"""The functions of ``nd.random`` and ``sym.random``, which draw random numbers.

With scalar parameters they call the operator ``_random_<name>``, with arrays or symbols ``_sample_<name>``.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from ..errors import ArgumentError
from ..typing import DTypeLike, ShapeLike
from .arguments import non_none
from .registry import ops
from .value import Value

__all__ = ["Sampling", "zipfian"]

if TYPE_CHECKING:
    from ..ndarray.context import Context

Shape: TypeAlias = ShapeLike | None
#: A parameter of a distribution: a scalar, or an array or symbol of them.
Parameter: TypeAlias = Value | float
V = TypeVar("V", bound=Value)


class Sampling(Generic[V]):
    """Random numbers as one kind of value, arrays or symbols.

    In all methods, ``shape`` is the shape of the draw; if parameters are arrays, each of their elements gets a draw of
    that shape. Without ``shape`` an array gets one draw, and a symbol gets the shape that its use requires: ``x +
    sym.random.normal()`` has the shape of ``x``. ``dtype`` is float32 by default. ``ctx`` is the context of the result
    and ``out`` an array to draw into; both are for arrays only.

    Parameters
    ----------
    surface : function of a name
        Gives the users' function of that name, ``nd._random_uniform`` or ``sym._random_uniform``.
    usual : tuple of int or None
        The shape if neither a shape nor an array to draw into is given; None leaves it unknown.
    """

    def __init__(self, surface: Callable[[str], Callable], usual: tuple[int, ...] | None):
        self._surface, self._usual = surface, usual

    def _draw(self, name: str, parameters: Mapping[str, object], shape: Shape, dtype: DTypeLike, ctx: Context | None,
              out: Any, keywords: Mapping[str, object]) -> V:
        for what, value in parameters.items():
            if not isinstance(value, (Value, numbers.Number)):
                raise ArgumentError(f"random.{name}: {what} must be a number, array or symbol, "
                                    f"got {type(value).__name__}")
        arrays = [value for value in parameters.values() if isinstance(value, Value)]
        settings = {**keywords, **non_none(dtype=dtype, ctx=ctx, out=out)}
        if not arrays:
            if shape is None:
                shape = self._usual if out is None else out.shape
            return self._surface(f"_random_{name}")(**parameters, **non_none(shape=shape), **settings)
        if shape is not None:
            settings["shape"] = shape
        settings.pop("ctx", None)  # results are in the context of the parameters
        values = [value if isinstance(value, Value) else ops.zeros_like(arrays[0]) + value
                  for value in parameters.values()]
        return self._surface(f"_sample_{name}")(*values, **settings)

    def uniform(self, low: Parameter = 0, high: Parameter = 1, shape: Shape = None, dtype: DTypeLike = None,
                ctx: Context | None = None, out: V | None = None, **keywords: Any) -> V:
        """Draws from the uniform distribution on ``[low, high)``."""
        return self._draw("uniform", dict(low=low, high=high), shape, dtype, ctx, out, keywords)

    def normal(self, loc: Parameter = 0, scale: Parameter = 1, shape: Shape = None, dtype: DTypeLike = None,
               ctx: Context | None = None, out: V | None = None, **keywords: Any) -> V:
        """Draws from the normal distribution with mean ``loc`` and standard deviation ``scale``."""
        return self._draw("normal", dict(loc=loc, scale=scale), shape, dtype, ctx, out, keywords)

    def randn(self, *shape: int, loc: Parameter = 0, scale: Parameter = 1, dtype: DTypeLike = None,
              ctx: Context | None = None, out: V | None = None, **keywords: Any) -> V:
        """``normal`` with the dimensions as arguments."""
        return self._draw("normal", dict(loc=loc, scale=scale), shape or None, dtype, ctx, out, keywords)

    def gamma(self, alpha: Parameter = 1, beta: Parameter = 1, shape: Shape = None, dtype: DTypeLike = None,
              ctx: Context | None = None, out: V | None = None, **keywords: Any) -> V:
        """Draws from the gamma distribution with shape ``alpha`` and scale ``beta``."""
        return self._draw("gamma", dict(alpha=alpha, beta=beta), shape, dtype, ctx, out, keywords)

    def exponential(self, scale: Parameter = 1, shape: Shape = None, dtype: DTypeLike = None,
                    ctx: Context | None = None, out: V | None = None, **keywords: Any) -> V:
        """Draws from the exponential distribution with mean ``scale``, the reciprocal of its rate."""
        if isinstance(scale, numbers.Number) and not scale > 0:
            raise ArgumentError(f"random.exponential: expected scale > 0, got {scale}")
        rate = 1.0 / scale if isinstance(scale, (Value, numbers.Number)) else scale
        return self._draw("exponential", dict(lam=rate), shape, dtype, ctx, out, keywords)

    def poisson(self, lam: Parameter = 1, shape: Shape = None, dtype: DTypeLike = None, ctx: Context | None = None,
                out: V | None = None, **keywords: Any) -> V:
        """Counts of the Poisson distribution with mean ``lam``, as floating-point values."""
        return self._draw("poisson", dict(lam=lam), shape, dtype, ctx, out, keywords)

    def negative_binomial(self, k: Parameter = 1, p: Parameter = 1, shape: Shape = None, dtype: DTypeLike = None,
                          ctx: Context | None = None, out: V | None = None, **keywords: Any) -> V:
        """Counts of successes before ``k`` failures, each of probability ``p``, as floating-point values."""
        return self._draw("negative_binomial", dict(k=k, p=p), shape, dtype, ctx, out, keywords)

    def generalized_negative_binomial(self, mu: Parameter = 1, alpha: Parameter = 1, shape: Shape = None,
                                      dtype: DTypeLike = None, ctx: Context | None = None, out: V | None = None,
                                      **keywords: Any) -> V:
        """Counts with mean ``mu`` and variance ``mu + alpha * mu ** 2``, as floating-point values."""
        parameters = dict(mu=mu, alpha=alpha)
        return self._draw("generalized_negative_binomial", parameters, shape, dtype, ctx, out, keywords)

    def randint(self, low: int, high: int, shape: Shape = None, dtype: DTypeLike = None, ctx: Context | None = None,
                out: V | None = None, **keywords: Any) -> V:
        """Integers drawn uniformly from ``low`` to ``high - 1``; int32 by default, or int64."""
        for what, value in (("low", low), ("high", high)):
            if not isinstance(value, numbers.Integral):
                raise ArgumentError(f"random.randint: {what} must be an integer, "
                                    f"got {value if isinstance(value, float) else type(value).__name__}")
        return self._draw("randint", dict(low=low, high=high), shape, dtype, ctx, out, keywords)

    def multinomial(self, data: V, shape: Shape = None, get_prob: bool = False, out: V | None = None,
                    dtype: DTypeLike = "int32", **keywords: Any) -> V:
        """Indices drawn with the probabilities in the last axis of ``data``; with ``get_prob`` also the
        logarithms of their probabilities, through which a gradient flows."""
        settings = {**keywords, **non_none(shape=shape, out=out)}
        return self._surface("_sample_multinomial")(data, get_prob=get_prob, dtype=dtype, **settings)

    def shuffle(self, data: V, **keywords: Any) -> V:
        """The rows of ``data``, its slices along the first axis, in random order."""
        return self._surface("_shuffle")(data, **keywords)

    def __getattr__(self, name: str) -> Callable[..., V]:  # uniform_like and the like
        if name.startswith("_"):
            raise AttributeError(name)
        return self._surface(f"_random_{name}")


def zipfian(sampling: Sampling[V]) -> Callable[..., tuple[V, V, V]]:
    """``contrib.rand_zipfian`` for arrays or symbols, whichever ``sampling`` draws."""

    def rand_zipfian(true_classes: V, num_sampled: int, range_max: int, ctx: Context | None = None) -> tuple[V, V, V]:
        """Classes drawn from a log-uniform distribution, and the expected counts of true and sampled ones.

        Class ``k`` of ``range_max`` has the probability ``log((k + 2) / (k + 1)) / log(range_max + 1)``.

        Parameters
        ----------
        true_classes : NDArray or Symbol
            Class indices.
        num_sampled : int
            The number of classes to draw.
        range_max : int
            Number of classes.
        ctx : Context, optional
            The context of arrays.

        Returns
        -------
        samples : int64, of shape (num_sampled,)
        expected_true, expected_sampled : float64, of the shapes of ``true_classes`` and ``samples``
        """
        width = math.log(range_max + 1)
        drawn: Any = sampling.uniform(0, width, shape=(num_sampled,), dtype="float64", ctx=ctx)
        samples = (drawn.exp() - 1).astype("int64") % range_max

        def expected(classes: Any) -> Any:
            classes = classes.astype("float64")
            return ((classes + 2) / (classes + 1)).log() * (num_sampled / width)

        return samples, expected(true_classes), expected(samples)

    return rand_zipfian
