"""Distributions of counts, and of the time until a count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...cells.dtype import float32, int32
from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase
from ...cells.typing import TensorDType
from ...core.registry import ops as registered
from .. import ops
from .base import Distribution, check_values, shape_of_values

__all__ = ["Gamma", "Geometric", "Poisson"]


class Geometric(Distribution):
    """Distribution of the number of failures before the first success, with a probability of success.

    Parameters
    ----------
    probs : number, array or tensor, optional
    seed, dtype, name
        See ``Distribution``.

    Raises
    ------
    ValueError
        When a probability is not between 0 and 1.

    Examples
    --------
    >>> from opreg import Tensor
    >>> Geometric(0.5).prob(Tensor([0.0, 1.0])).asnumpy().tolist()
    [0.5, 0.25]
    """

    names = ("probs",)
    _floats = False

    def __init__(self, probs: Any = None, seed: int | None = None, dtype: TensorDType = int32,
                 name: str = "Geometric"):
        check_values(name, "probs", probs, lambda value: (value > 0) & (value < 1), "between 0 and 1")
        super().__init__(seed, dtype, name, {"probs": probs})

    @property
    def probs(self) -> TensorBase | None:
        """The probabilities of success."""
        return self._given[0]

    def _log_prob(self, value: Tensor, probs: Tensor) -> Tensor:  # type: ignore[override]
        density = ops.log(probs) + ops.floor(value) * ops.log1p(-probs)
        return ops.where(value < 0, ops.full_like(density, -math.inf), density)

    def _cdf(self, value: Tensor, probs: Tensor) -> Tensor:  # type: ignore[override]
        below = -ops.expm1((ops.floor(value) + 1.0) * ops.log1p(-probs))
        return ops.where(value < 0, ops.zeros_like(below), below)

    def _mean(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        return (1.0 - probs) / probs

    def _mode(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        return ops.zeros_like(probs).astype(self.dtype)

    def _var(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        return (1.0 - probs) / ops.square(probs)

    def _entropy(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        return (-probs * ops.log(probs) - (1.0 - probs) * ops.log1p(-probs)) / probs

    def _kl(self, other: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
        (probs,), (probs_b,) = own, other
        return ops.log(probs / probs_b) + (1.0 - probs) / probs * (ops.log1p(-probs) - ops.log1p(-probs_b))

    def _sample(self, shape: tuple[int, ...], probs: Tensor) -> Tensor:  # type: ignore[override]
        return ops.floor(ops.log1p(-ops.rand(shape_of_values(shape, probs))) / ops.log1p(-probs))


class Poisson(Distribution):
    """Poisson distribution with a rate.

    Parameters
    ----------
    rate : number, array or tensor, optional
    seed, dtype, name
        See ``Distribution``.

    Raises
    ------
    ValueError
        When a rate is not positive.

    Examples
    --------
    >>> from opreg import Tensor
    >>> Poisson(1.0).prob(Tensor([0.0])).asnumpy().round(3).tolist()
    [0.36800000071525574]
    """

    names = ("rate",)
    _floats = False

    def __init__(self, rate: Any = None, seed: int | None = None, dtype: TensorDType = float32,
                 name: str = "Poisson"):
        check_values(name, "rate", rate, lambda value: value > 0, "positive")
        super().__init__(seed, dtype, name, {"rate": rate})

    @property
    def rate(self) -> TensorBase | None:
        """The rate."""
        return self._given[0]

    def _log_prob(self, value: Tensor, rate: Tensor) -> Tensor:  # type: ignore[override]
        density = ops.log(rate) * value - rate - ops.lgamma(ops.relu(value) + 1.0)
        return ops.where(value < 0, ops.full_like(density, -math.inf), density)

    def _cdf(self, value: Tensor, rate: Tensor) -> Tensor:  # type: ignore[override]
        below = ops.igammac(ops.floor(ops.relu(value)) + 1.0, rate)
        return ops.where(value < 0, ops.zeros_like(below), below)

    def _mean(self, rate: Tensor) -> Tensor:  # type: ignore[override]
        return rate

    _var = _mean  # type: ignore[assignment]

    def _mode(self, rate: Tensor) -> Tensor:  # type: ignore[override]
        return ops.floor(rate)

    def _sample(self, shape: tuple[int, ...], rate: Tensor) -> Tensor:  # type: ignore[override]
        return registered._sample_poisson(ops.zeros(shape_of_values(shape, rate)) + rate)


class Gamma(Distribution):
    """Gamma distribution with a concentration and a rate.

    Parameters
    ----------
    concentration, rate : number, array or tensor, optional
    seed, dtype, name
        See ``Distribution``.

    Raises
    ------
    ValueError
        When a concentration or a rate is not positive.

    Examples
    --------
    >>> from opreg import Tensor
    >>> Gamma(2.0, 1.0).prob(Tensor([1.0])).asnumpy().round(3).tolist()
    [0.36800000071525574]
    """

    names = ("concentration", "rate")

    def __init__(self, concentration: Any = None, rate: Any = None, seed: int | None = None,
                 dtype: TensorDType = float32, name: str = "Gamma"):
        for what, values in (("concentration", concentration), ("rate", rate)):
            check_values(name, what, values, lambda value: value > 0, "positive")
        super().__init__(seed, dtype, name, {"concentration": concentration, "rate": rate})

    @property
    def concentration(self) -> TensorBase | None:
        """The concentration."""
        return self._given[0]

    @property
    def rate(self) -> TensorBase | None:
        """The rate."""
        return self._given[1]

    def _log_prob(self, value: Tensor, concentration: Tensor, rate: Tensor) -> Tensor:  # type: ignore[override]
        return (concentration * ops.log(rate) + (concentration - 1.0) * ops.log(value) - rate * value
                - ops.lgamma(concentration))

    def _cdf(self, value: Tensor, concentration: Tensor, rate: Tensor) -> Tensor:  # type: ignore[override]
        return ops.igamma(concentration, rate * value)

    def _mean(self, concentration: Tensor, rate: Tensor) -> Tensor:  # type: ignore[override]
        return concentration / rate

    def _mode(self, concentration: Tensor, rate: Tensor) -> Tensor:  # type: ignore[override]
        mode = (concentration - 1.0) / rate
        return ops.where(concentration > 1.0, mode, ops.full_like(mode, math.nan))

    def _var(self, concentration: Tensor, rate: Tensor) -> Tensor:  # type: ignore[override]
        return concentration / ops.square(rate)

    def _entropy(self, concentration: Tensor, rate: Tensor) -> Tensor:  # type: ignore[override]
        return (concentration - ops.log(rate) + ops.lgamma(concentration)
                + (1.0 - concentration) * ops.digamma(concentration))

    def _kl(self, other: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
        (a, b), (a_b, b_b) = own, other
        return ((a - a_b) * ops.digamma(a) - ops.lgamma(a) + ops.lgamma(a_b) + a_b * (ops.log(b) - ops.log(b_b))
                + a * (b_b / b - 1.0))

    def _sample(self, shape: tuple[int, ...], concentration: Tensor, rate: Tensor) -> Tensor:  # type: ignore[override]
        one = ops.zeros(shape_of_values(shape, concentration, rate))
        return registered._sample_gamma(one + concentration, ops.ones_like(one)) / rate
