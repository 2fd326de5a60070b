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
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...cells.cell import Cell
from ...cells.dtype import float32, int32
from ...cells.dtype import of as dtype_of
from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase
from ...cells.typing import TensorDType
from ...core.spec import is_floating
from ...errors import ArgumentError, did_you_mean
from .. import ops

__all__ = ["Bernoulli", "Categorical", "Distribution", "Exponential", "Normal", "Uniform"]


class Distribution(Cell):
    """A distribution: derive from it, and define the methods whose names begin with an underscore.

    A call with the name of a method calls the method: ``normal("log_prob", value)``.

    Parameters
    ----------
    seed : int, optional
        Accepted without effect; ``set_seed`` makes random values reproducible.
    dtype : dtype
        The dtype of random values.
    name : str
        The name of the distribution in errors.
    parameters : mapping
        Values by name: numbers, arrays or tensors, or None for those that methods get.

    Attributes
    ----------
    batch_shape : tuple of int
        The common shape of the parameters.
    """

    #: Names of the parameters, as methods take them.
    names: tuple[str, ...] = ()
    _floats = True

    def __init__(self, seed: int | None, dtype: TensorDType, name: str, parameters: Mapping[str, Any]):
        super().__init__()
        self.name, self.dtype, self.seed = name, dtype_of(dtype), seed
        if self._floats and not is_floating(self.dtype.dtype):
            raise ArgumentError(f"{name}: expected a floating dtype, got {self.dtype}")
        self.parameter_type = self.dtype if self._floats else float32
        self._given = [None if value is None else value if isinstance(value, TensorBase) else
                       Tensor(np.asarray(value, np.float64), self.parameter_type) for value in parameters.values()]
        known = [value for value in self._given if value is not None]
        self.batch_shape = tuple(np.broadcast_shapes(*[value.shape for value in known])) if known else ()
        self.broadcast_shape, self.is_scalar_batch = self.batch_shape, not self.batch_shape

    def construct(self, name: str, *args: Any, **keywords: Any) -> Any:
        """Call the method of that name."""
        method = getattr(type(self), name, None)
        if method is None or name.startswith("_"):
            raise NotImplementedError(f"{self.name} has no method {name!r}. {did_you_mean(name, _METHODS)}")
        return method(self, *args, **keywords)

    def extend_repr(self) -> str:
        """The parameters if they are numbers, or their shape."""
        if self.batch_shape:
            return f"batch_shape = {self.batch_shape}"
        return ", ".join([f"{name} = {value}" for name, value in zip(self.names, self._given)])

    def prob(self, value: Tensor, *args: Any, **keywords: Any) -> Tensor:
        """Probability, or density, of a value."""
        return ops.exp(self.log_prob(value, *args, **keywords))

    def log_prob(self, value: Tensor, *args: Any, **keywords: Any) -> Tensor:
        """Logarithm of ``prob``."""
        return self._log_prob(self._value(value), *self._parameters(args, keywords))

    def cdf(self, value: Tensor, *args: Any, **keywords: Any) -> Tensor:
        """Probability of at most a value."""
        return self._cdf(self._value(value), *self._parameters(args, keywords))

    def log_cdf(self, value: Tensor, *args: Any, **keywords: Any) -> Tensor:
        """Logarithm of ``cdf``."""
        return ops.log(self.cdf(value, *args, **keywords))

    def survival_function(self, value: Tensor, *args: Any, **keywords: Any) -> Tensor:
        """Probability of more than a value."""
        return self._survival(self._value(value), *self._parameters(args, keywords))

    def log_survival(self, value: Tensor, *args: Any, **keywords: Any) -> Tensor:
        """Logarithm of ``survival_function``."""
        return ops.log(self.survival_function(value, *args, **keywords))

    def mean(self, *args: Any, **keywords: Any) -> Tensor:
        """Expected value."""
        return self._mean(*self._parameters(args, keywords))

    def mode(self, *args: Any, **keywords: Any) -> Tensor:
        """Value of the largest probability."""
        return self._mode(*self._parameters(args, keywords))

    def var(self, *args: Any, **keywords: Any) -> Tensor:
        """Variance."""
        return self._var(*self._parameters(args, keywords))

    def sd(self, *args: Any, **keywords: Any) -> Tensor:
        """Standard deviation."""
        return ops.sqrt(self._var(*self._parameters(args, keywords)))

    def entropy(self, *args: Any, **keywords: Any) -> Tensor:
        """Entropy, in nats."""
        return self._entropy(*self._parameters(args, keywords))

    def kl_loss(self, dist: str, *args: Any, **keywords: Any) -> Tensor:
        """Divergence of Kullback and Leibler from another distribution of the same class.

        Parameters
        ----------
        dist : str
            Name of the class.
        args, keywords
            Parameters of the other distribution, by position, or as ``mean_b``; then, perhaps, those of this one.
        """
        self._same(dist)
        others = [f"{name}_b" for name in self.names]
        other = {name[:-2]: keywords.pop(name) for name in others if name in keywords}
        count = len(self.names) - len(other)
        b = self._parameters(args[:count], other, given=False)
        return self._kl(b, self._parameters(args[count:], keywords))

    def cross_entropy(self, dist: str, *args: Any, **keywords: Any) -> Tensor:
        """Entropy plus ``kl_loss``; it takes what ``kl_loss`` takes."""
        own = {name: keywords[name] for name in self.names if name in keywords}
        count = len(self.names) - sum(f"{name}_b" in keywords for name in self.names)
        return self.entropy(*args[count:], **own) + self.kl_loss(dist, *args, **keywords)

    def sample(self, shape: Sequence[int] = (), *args: Any, **keywords: Any) -> Tensor:
        """Random values: an array of the given shape for each element of the parameters, whose axes come last."""
        return self._sample(tuple(shape), *self._parameters(args, keywords)).astype(self.dtype)

    def _same(self, dist: str) -> None:
        if dist != type(self).__name__:
            raise ArgumentError(f"{self.name}: Expected dist input is {type(self).__name__}, but got {dist}.")

    def _value(self, value: Any) -> Tensor:
        if not isinstance(value, TensorBase):
            raise ArgumentError(f"{self.name}: For value, input type must be a Tensor or Parameter, got "
                            f"{type(value).__name__}")
        return value.astype(self.parameter_type)

    def _parameters(self, args: Sequence[Any], keywords: Mapping[str, Any], given: bool = True) -> list[Tensor]:
        """Parameters in order: those of a call, or those of the Cell."""
        if len(args) > len(self.names) or not keywords.keys() <= set(self.names):
            wrong = next((name for name in keywords if name not in self.names), "")
            raise ArgumentError(f"{self.name}: expected the parameters {', '.join(self.names)}, got {len(args)} by "
                                f"position{f' and {wrong!r}. {did_you_mean(wrong, self.names)}' if wrong else ''}")
        result = []
        for i, name in enumerate(self.names):
            value = args[i] if i < len(args) else keywords.get(name)
            if value is None and given:
                value = self._given[i]
            if not isinstance(value, TensorBase):
                raise ArgumentError(f"{self.name}: the type {name} must be subclass of Tensor. It can not be "
                                f"{'None' if value is None else type(value).__name__} since it is not specified during "
                                "initialization.")
            result.append(value.astype(self.parameter_type))
        return result

    def _missing(self, what: str) -> Any:
        raise NotImplementedError(f"{what} is not implemented for {type(self).__name__} distribution.")

    def _log_prob(self, value: Tensor, *parameters: Tensor) -> Tensor:
        return self._missing("log_prob")

    def _cdf(self, value: Tensor, *parameters: Tensor) -> Tensor:
        return self._missing("cdf")

    def _survival(self, value: Tensor, *parameters: Tensor) -> Tensor:
        return 1.0 - self._cdf(value, *parameters)

    def _mean(self, *parameters: Tensor) -> Tensor:
        return self._missing("mean")

    def _mode(self, *parameters: Tensor) -> Tensor:
        return self._missing("mode")

    def _var(self, *parameters: Tensor) -> Tensor:
        return self._missing("var")

    def _entropy(self, *parameters: Tensor) -> Tensor:
        return self._missing("entropy")

    def _kl(self, other: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
        return self._missing("kl_loss")

    def _sample(self, shape: tuple[int, ...], *parameters: Tensor) -> Tensor:
        return self._missing("sample")


_METHODS = [name for name in vars(Distribution) if not name.startswith("_") and name not in ("construct", "names")]


def _drawn(shape: tuple[int, ...], *parameters: Tensor) -> tuple[int, ...]:
    """The shape of random values."""
    return *shape, *np.broadcast_shapes(*[value.shape for value in parameters])


def _check_values(name: str, what: str, value: Any, holds: Callable[[np.ndarray], Any], expected: str) -> None:
    """Refuse parameters that no distribution has."""
    if value is not None and not isinstance(value, TensorBase) and not np.all(holds(np.asarray(value, np.float64))):
        raise ArgumentError(f"{name}: {what} must be {expected}, got {value}")


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
        _check_values(name, "sd", sd, lambda value: value > 0, "positive")
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
        return ops.standard_normal(_drawn(shape, mean, sd)) * sd + mean


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
            _check_values(name, "high", high, lambda value: value > np.asarray(low, np.float64), f"above low, {low}")
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
        return ops.rand(_drawn(shape, low, high)) * (high - low) + low


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
        _check_values(name, "rate", rate, lambda value: value > 0, "positive")
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
        return -ops.log1p(-ops.rand(_drawn(shape, rate))) / rate


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
        _check_values(name, "probs", probs, lambda value: (value > 0) & (value < 1), "between 0 and 1")
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
        return ops.rand(_drawn(shape, probs)) < probs


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
        _check_values(name, "probs", probs, lambda value: value >= 0, "at least 0")
        _check_values(name, "the sum of probs", probs, lambda value: np.isclose(value.sum(-1), 1, 0, 1e-5), "1")
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
