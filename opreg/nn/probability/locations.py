"""Distributions with a location and a scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...cells.dtype import float32
from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase
from ...cells.typing import TensorDType
from ...errors import ArgumentError
from .. import ops
from .base import Distribution, check_values, shape_of_values

__all__ = ["Cauchy", "Gumbel", "LogNormal", "Logistic"]


class _Located(Distribution):
    """A distribution with a location and a positive scale."""

    names = ("loc", "scale")

    def __init__(self, loc: Any = None, scale: Any = None, seed: int | None = None, dtype: TensorDType = float32,
                 name: str = ""):
        name = name or type(self).__name__
        check_values(name, "scale", scale, lambda value: value > 0, "positive")
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})

    @property
    def loc(self) -> TensorBase | None:
        """The location."""
        return self._given[0]

    @property
    def scale(self) -> TensorBase | None:
        """The scale."""
        return self._given[1]

    def _mode(self, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return loc + ops.zeros_like(scale)

    def _log_prob(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return self._standard_log_prob((value - loc) / scale) - ops.log(scale)

    def _cdf(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return self._standard_cdf((value - loc) / scale)

    def _sample(self, shape: tuple[int, ...], loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return self._quantile(ops.rand(shape_of_values(shape, loc, scale))) * scale + loc

    def _standard_log_prob(self, value: Tensor) -> Tensor:
        """Logarithm of the density for the location 0 and the scale 1."""
        return self._missing("log_prob")

    def _standard_cdf(self, value: Tensor) -> Tensor:
        """Probability of at most a value for the location 0 and the scale 1."""
        return self._missing("cdf")

    def _quantile(self, probability: Tensor) -> Tensor:
        """The value with a given ``_standard_cdf``."""
        return self._missing("sample")


class Cauchy(_Located):
    """Cauchy distribution; it has no moments.

    Parameters
    ----------
    loc, scale : number, array or tensor, optional
    seed, dtype, name
        See ``Distribution``.

    Raises
    ------
    ValueError
        When a scale is not positive.

    Examples
    --------
    >>> from opreg import Tensor
    >>> Cauchy(0.0, 1.0).cdf(Tensor([0.0, 1.0])).asnumpy().round(2).tolist()
    [0.5, 0.75]
    """

    def _standard_log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - ops.log1p(ops.square(value))

    def _standard_cdf(self, value: Tensor) -> Tensor:
        return ops.atan(value) / math.pi + 0.5

    def _quantile(self, probability: Tensor) -> Tensor:
        return ops.tan(math.pi * (probability - 0.5))

    def _mean(self, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        raise ArgumentError(f"{self.name}: a Cauchy distribution has no mean and no variance")

    _var = _mean  # type: ignore[assignment]

    def _entropy(self, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return ops.log(scale + ops.zeros_like(loc)) + math.log(4 * math.pi)

    def _kl(self, other: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
        (loc, scale), (loc_b, scale_b) = own, other
        return (ops.log(ops.square(scale + scale_b) + ops.square(loc - loc_b)) - math.log(4.0) - ops.log(scale)
                - ops.log(scale_b))


class Logistic(_Located):
    """Logistic distribution.

    Parameters
    ----------
    loc, scale : number, array or tensor, optional
    seed, dtype, name
        See ``Distribution``.

    Raises
    ------
    ValueError
        When a scale is not positive.

    Examples
    --------
    >>> from opreg import Tensor
    >>> Logistic(0.0, 1.0).prob(Tensor([0.0])).asnumpy().round(2).tolist()
    [0.25]
    """

    def _standard_log_prob(self, value: Tensor) -> Tensor:
        return -value - 2.0 * ops.softplus(-value)

    def _standard_cdf(self, value: Tensor) -> Tensor:
        return ops.sigmoid(value)

    def _survival(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return ops.sigmoid((loc - value) / scale)

    def _quantile(self, probability: Tensor) -> Tensor:
        return ops.log(probability) - ops.log1p(-probability)

    def _mean(self, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return loc + ops.zeros_like(scale)

    def _var(self, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return ops.square(scale + ops.zeros_like(loc)) * (math.pi ** 2 / 3)

    def _entropy(self, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return ops.log(scale + ops.zeros_like(loc)) + 2.0


class Gumbel(_Located):
    """Gumbel distribution, that of the largest of many values.

    Parameters
    ----------
    loc, scale : number, array or tensor
    seed, dtype, name
        See ``Distribution``.

    Raises
    ------
    ValueError
        When a scale is not positive.

    Examples
    --------
    >>> from opreg import Tensor
    >>> Gumbel(0.0, 1.0).cdf(Tensor([0.0])).asnumpy().round(3).tolist()
    [0.36800000071525574]
    """

    def _standard_log_prob(self, value: Tensor) -> Tensor:
        return -value - ops.exp(-value)

    def _standard_cdf(self, value: Tensor) -> Tensor:
        return ops.exp(-ops.exp(-value))

    def _quantile(self, probability: Tensor) -> Tensor:
        return -ops.log(-ops.log(probability))

    def _mean(self, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return loc + scale * np.euler_gamma

    def _var(self, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return ops.square(scale + ops.zeros_like(loc)) * (math.pi ** 2 / 6)

    def _entropy(self, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return ops.log(scale + ops.zeros_like(loc)) + (1.0 + np.euler_gamma)

    def _kl(self, other: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
        (loc, scale), (loc_b, scale_b) = own, other
        ratio, distance = scale / scale_b, (loc_b - loc) / scale_b
        moment = ops.expm1(distance + ops.lgamma(ratio + 1.0))
        return -ops.log(ratio) + np.euler_gamma * (ratio - 1.0) + moment - distance


class LogNormal(_Located):
    """Distribution of values whose logarithms are normal, with the mean ``loc`` and the standard deviation ``scale``.

    Parameters
    ----------
    loc, scale : number, array or tensor, optional
    seed, dtype, name
        See ``Distribution``.

    Raises
    ------
    ValueError
        When a scale is not positive.

    Examples
    --------
    >>> from opreg import Tensor
    >>> LogNormal(0.0, 1.0).cdf(Tensor([1.0])).asnumpy().round(3).tolist()
    [0.5]
    """

    def _log_prob(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        logarithm = ops.log(value)
        return (-ops.square((logarithm - loc) / scale) / 2 - ops.log(scale) - math.log(2 * math.pi) / 2) - logarithm

    def _cdf(self, value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return ops.erfc((loc - ops.log(value)) / scale / math.sqrt(2)) / 2

    def _mean(self, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return ops.exp(loc + ops.square(scale) / 2)

    def _mode(self, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return ops.exp(loc - ops.square(scale))

    def _var(self, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return ops.expm1(ops.square(scale)) * ops.exp(2.0 * loc + ops.square(scale))

    def _entropy(self, loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return loc + ops.log(scale) + (math.log(2 * math.pi) + 1) / 2

    def _kl(self, other: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
        (loc, scale), (loc_b, scale_b) = own, other
        ratio = ops.log(scale) - ops.log(scale_b)
        return ops.square((loc - loc_b) / scale_b) / 2 + ops.expm1(2 * ratio) / 2 - ratio

    def _sample(self, shape: tuple[int, ...], loc: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return ops.exp(ops.standard_normal(shape_of_values(shape, loc, scale)) * scale + loc)
