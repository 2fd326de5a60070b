"""Distributions as Cells: probabilities, moments, entropies and random values, with the names of
``mindspore.nn.probability.distribution``.

Parameters are given to the constructor, or to a method after the value; those given to a method take precedence.

>>> from opreg import Tensor
>>> from opreg.nn.probability.distribution import Normal
>>> Normal(0.0, 1.0).log_prob(Tensor([0.0, 1.0])).asnumpy().round(3).tolist()
[-0.9190000295639038, -1.4190000295639038]
>>> Normal().mean(mean=Tensor([2.0]), sd=Tensor([1.0])).asnumpy().tolist()
[2.0]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...cells.dtype import float32, int32
from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase
from ...cells.typing import TensorDType
from .. import ops
from .base import Distribution, check_values, shape_of_values
from .counts import Gamma, Geometric, Poisson
from .locations import Cauchy, Gumbel, Logistic, LogNormal

__all__ = ["Bernoulli", "Categorical", "Cauchy", "Distribution", "Exponential", "Gamma", "Geometric", "Gumbel",
           "LogNormal", "Logistic", "Normal", "Poisson", "Uniform"]


class Normal(Distribution):
    """Normal distribution with a mean and a standard deviation.

    Parameters
    ----------
    mean, sd : number, array or tensor, optional
    seed, dtype, name
        See ``Distribution``.

    Raises
    ------
    ValueError
        When a standard deviation is not positive.
    TypeError
        When the dtype is no floating one.
    """

    names = ("mean", "sd")

    def __init__(self, mean: Any = None, sd: Any = None, seed: int | None = None, dtype: TensorDType = float32,
                 name: str = "Normal"):
        check_values(name, "sd", sd, lambda value: value > 0, "positive")
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    def extend_repr(self) -> str:
        """The parameters if they are numbers, or their shape."""
        return super().extend_repr().replace("sd =", "standard deviation =")

    def _log_prob(self, value: Tensor, mean: Tensor, sd: Tensor) -> Tensor:  # type: ignore[override]
        return -((value - mean) / sd) ** 2 / 2 - ops.log(sd) - math.log(2 * math.pi) / 2

    def _cdf(self, value: Tensor, mean: Tensor, sd: Tensor) -> Tensor:  # type: ignore[override]
        return ops.erfc((mean - value) / sd / math.sqrt(2)) / 2

    def _survival(self, value: Tensor, mean: Tensor, sd: Tensor) -> Tensor:  # type: ignore[override]
        return ops.erfc((value - mean) / sd / math.sqrt(2)) / 2

    def _mean(self, mean: Tensor, sd: Tensor) -> Tensor:  # type: ignore[override]
        return mean + ops.zeros_like(sd)

    _mode = _mean  # type: ignore[assignment]

    def _var(self, mean: Tensor, sd: Tensor) -> Tensor:  # type: ignore[override]
        return ops.square(sd + ops.zeros_like(mean))

    def _entropy(self, mean: Tensor, sd: Tensor) -> Tensor:  # type: ignore[override]
        return ops.log(sd + ops.zeros_like(mean)) + (math.log(2 * math.pi) + 1) / 2

    def _kl(self, other: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
        (mean, sd), (mean_b, sd_b) = own, other
        ratio = ops.log(sd) - ops.log(sd_b)
        return ops.square((mean - mean_b) / sd_b) / 2 + ops.expm1(2 * ratio) / 2 - ratio

    def _sample(self, shape: tuple[int, ...], mean: Tensor, sd: Tensor) -> Tensor:  # type: ignore[override]
        return ops.standard_normal(shape_of_values(shape, mean, sd)) * sd + mean


class Uniform(Distribution):
    """Uniform distribution between two limits.

    Parameters
    ----------
    low, high : number, array or tensor, optional
    seed, dtype, name
        See ``Distribution``.

    Raises
    ------
    ValueError
        When a lower limit is not below the upper one.
    """

    names = ("low", "high")

    def __init__(self, low: Any = None, high: Any = None, seed: int | None = None, dtype: TensorDType = float32,
                 name: str = "Uniform"):
        if low is not None and not isinstance(low, TensorBase):
            check_values(name, "high", high, lambda value: value > np.asarray(low, np.float64), f"above low, {low}")
        super().__init__(seed, dtype, name, {"low": low, "high": high})

    @property
    def low(self) -> TensorBase | None:
        """The lower limit."""
        return self._given[0]

    @property
    def high(self) -> TensorBase | None:
        """The upper limit."""
        return self._given[1]

    def _log_prob(self, value: Tensor, low: Tensor, high: Tensor) -> Tensor:  # type: ignore[override]
        density = ops.zeros_like(value) - ops.log(high - low)
        return ops.where((value < low) | (value > high), ops.full_like(density, -math.inf), density)

    def _cdf(self, value: Tensor, low: Tensor, high: Tensor) -> Tensor:  # type: ignore[override]
        return ops.clamp((value - low) / (high - low), 0.0, 1.0)

    def _mean(self, low: Tensor, high: Tensor) -> Tensor:  # type: ignore[override]
        return (low + high) / 2

    def _var(self, low: Tensor, high: Tensor) -> Tensor:  # type: ignore[override]
        return ops.square(high - low) / 12

    def _entropy(self, low: Tensor, high: Tensor) -> Tensor:  # type: ignore[override]
        return ops.log(high - low)

    def _kl(self, other: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
        (low, high), (low_b, high_b) = own, other
        loss = ops.log(high_b - low_b) - ops.log(high - low)
        return ops.where((low_b <= low) & (high_b >= high), loss, ops.full_like(loss, math.inf))

    def _sample(self, shape: tuple[int, ...], low: Tensor, high: Tensor) -> Tensor:  # type: ignore[override]
        return ops.rand(shape_of_values(shape, low, high)) * (high - low) + low


class Exponential(Distribution):
    """Exponential distribution with a rate.

    Parameters
    ----------
    rate : number, array or tensor, optional
    seed, dtype, name
        See ``Distribution``.

    Raises
    ------
    ValueError
        When a rate is not positive.
    """

    names = ("rate",)

    def __init__(self, rate: Any = None, seed: int | None = None, dtype: TensorDType = float32,
                 name: str = "Exponential"):
        check_values(name, "rate", rate, lambda value: value > 0, "positive")
        super().__init__(seed, dtype, name, {"rate": rate})

    @property
    def rate(self) -> TensorBase | None:
        """The rate."""
        return self._given[0]

    def log_survival(self, value: Tensor, *args: Any, **keywords: Any) -> Tensor:
        """Logarithm of ``survival_function``."""
        (rate,) = self._parameters(args, keywords)
        return -rate * ops.relu(self._value(value))

    def _log_prob(self, value: Tensor, rate: Tensor) -> Tensor:  # type: ignore[override]
        density = ops.log(rate) - rate * value
        return ops.where(value < 0, ops.full_like(density, -math.inf), density)

    def _cdf(self, value: Tensor, rate: Tensor) -> Tensor:  # type: ignore[override]
        return -ops.expm1(-rate * ops.relu(value))

    def _survival(self, value: Tensor, rate: Tensor) -> Tensor:  # type: ignore[override]
        return ops.exp(-rate * ops.relu(value))

    def _mean(self, rate: Tensor) -> Tensor:  # type: ignore[override]
        return 1.0 / rate

    def _mode(self, rate: Tensor) -> Tensor:  # type: ignore[override]
        return ops.zeros_like(rate)

    def _var(self, rate: Tensor) -> Tensor:  # type: ignore[override]
        return 1.0 / ops.square(rate)

    def _entropy(self, rate: Tensor) -> Tensor:  # type: ignore[override]
        return 1.0 - ops.log(rate)

    def _kl(self, other: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
        (rate,), (rate_b,) = own, other
        return ops.log(rate) - ops.log(rate_b) + rate_b / rate - 1.0

    def _sample(self, shape: tuple[int, ...], rate: Tensor) -> Tensor:  # type: ignore[override]
        return -ops.log1p(-ops.rand(shape_of_values(shape, rate))) / rate


class Bernoulli(Distribution):
    """Distribution of 1 with a probability, and 0 otherwise.

    Parameters
    ----------
    probs : number, array or tensor, optional
    seed, dtype, name
        See ``Distribution``.

    Raises
    ------
    ValueError
        When a probability is not between 0 and 1.
    """

    names = ("probs",)
    _floats = False

    def __init__(self, probs: Any = None, seed: int | None = None, dtype: TensorDType = int32,
                 name: str = "Bernoulli"):
        check_values(name, "probs", probs, lambda value: (value > 0) & (value < 1), "between 0 and 1")
        super().__init__(seed, dtype, name, {"probs": probs})

    @property
    def probs(self) -> TensorBase | None:
        """The probabilities of 1."""
        return self._given[0]

    def _log_prob(self, value: Tensor, probs: Tensor) -> Tensor:  # type: ignore[override]
        return value * ops.log(probs) + (1.0 - value) * ops.log1p(-probs)

    def _cdf(self, value: Tensor, probs: Tensor) -> Tensor:  # type: ignore[override]
        zeros = ops.zeros_like(value * probs)
        return ops.where(value < 0, zeros, ops.where(value < 1, zeros + (1.0 - probs), zeros + 1.0))

    def _mean(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        return probs

    def _mode(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        return (probs > 0.5).astype(self.dtype)

    def _var(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        return probs * (1.0 - probs)

    def _entropy(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        return -probs * ops.log(probs) - (1.0 - probs) * ops.log1p(-probs)

    def _kl(self, other: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
        (probs,), (probs_b,) = own, other
        return (probs * (ops.log(probs) - ops.log(probs_b))
                + (1.0 - probs) * (ops.log1p(-probs) - ops.log1p(-probs_b)))

    def _sample(self, shape: tuple[int, ...], probs: Tensor) -> Tensor:  # type: ignore[override]
        return ops.rand(shape_of_values(shape, probs)) < probs


class Categorical(Distribution):
    """Distribution of the numbers 0, 1, … with a probability for each, along the last axis.

    Parameters
    ----------
    probs : list, array or tensor, optional
        They sum to 1 along the last axis.
    seed, dtype, name
        See ``Distribution``.

    Raises
    ------
    ValueError
        When probabilities are negative, or do not sum to 1.
    """

    names = ("probs",)
    _floats = False

    def __init__(self, probs: Any = None, seed: int | None = None, dtype: TensorDType = int32,
                 name: str = "Categorical"):
        check_values(name, "probs", probs, lambda value: value >= 0, "at least 0")
        check_values(name, "the sum of probs", probs, lambda value: np.isclose(value.sum(-1), 1, 0, 1e-5), "1")
        super().__init__(seed, dtype, name, {"probs": probs})
        self.broadcast_shape = self.batch_shape[:-1]
        self.is_scalar_batch = not self.broadcast_shape

    def extend_repr(self) -> str:
        """The probabilities of a single distribution, or the shape of the others."""
        probs = self._given[0]
        if probs is None or len(self.batch_shape) > 1:
            return f"batch_shape = {self.batch_shape[:-1]}" if probs is not None else "probs = None"
        return f"probs = {probs}"

    @property
    def probs(self) -> TensorBase | None:
        """The probabilities."""
        return self._given[0]

    def _chosen(self, table: Tensor, value: Tensor) -> Tensor:
        """Elements of a table along its last axis, by their indices; NaN for an index out of range."""
        count = table.shape[-1]
        index = ops.floor(value)
        chosen = ops.where(index.expand_dims(-1) == ops.arange(count).astype(value.dtype), table,
                           ops.zeros_like(table)).sum(-1)
        return ops.where((index < 0) | (index >= count), ops.full_like(chosen, math.nan), chosen)

    def _log_prob(self, value: Tensor, probs: Tensor) -> Tensor:  # type: ignore[override]
        return ops.log(self._chosen(probs, value))

    def _cdf(self, value: Tensor, probs: Tensor) -> Tensor:  # type: ignore[override]
        return ops.where(self._step_function(value, probs), probs, ops.zeros_like(probs)).sum(-1)

    def _survival(self, value: Tensor, probs: Tensor) -> Tensor:  # type: ignore[override]
        return ops.where(self._step_function(value, probs), ops.zeros_like(probs), probs).sum(-1)

    def _step_function(self, value: Tensor, probs: Tensor) -> Tensor:
        """Whether a number is at most the value."""
        return ops.arange(probs.shape[-1]).astype(value.dtype) <= ops.floor(value).expand_dims(-1)

    def _moment(self, probs: Tensor, power: int) -> Tensor:
        return (ops.arange(probs.shape[-1]).astype(probs.dtype) ** power * probs).sum(-1, keepdims=True)

    def _mean(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        return self._moment(probs, 1)

    def _mode(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        return probs.argmax(-1).astype(self.dtype)

    def _var(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        return self._moment(probs, 2) - ops.square(self._moment(probs, 1))

    def _entropy(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        return -ops.xlogy(probs, probs).sum(-1)

    def _kl(self, other: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
        (probs,), (probs_b,) = own, other
        return (ops.xlogy(probs, probs) - ops.xlogy(probs, probs_b)).sum(-1)

    def _sample(self, shape: tuple[int, ...], probs: Tensor) -> Tensor:  # type: ignore[override]
        drawn = ops.rand((*shape, *probs.shape[:-1], 1))
        below = (drawn >= ops.cumsum(probs, -1)).astype(self.dtype).sum(-1)
        return ops.clamp(below, 0, probs.shape[-1] - 1)
