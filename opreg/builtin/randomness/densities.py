"""Probability densities: a table row with a formula of the log-density for each distribution.

``_random_pdf_<name>(sample, *parameters)`` returns the density of each sample, or with ``is_log`` its logarithm. The
parameters have the shape of the leading axes of ``sample``: one distribution for each position there, whose samples lie
along the other axes. Counts have no gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.registry import ops
from ...core.spec import Shape
from ...core.value import Value
from ...custom.composed import composed
from ..forms import declare_form

# -------------------------------------------------------------------------------------------- log densities


def _uniform(x: Value, low: Value, high: Value) -> Value:
    return -ops.log(high - low)


def _normal(x: Value, mu: Value, sigma: Value) -> Value:
    z = (x - mu) / sigma
    return z * z * -0.5 - ops.log(sigma) - 0.5 * math.log(2.0 * math.pi)


def _gamma(x: Value, alpha: Value, beta: Value) -> Value:
    return alpha * ops.log(beta) + (alpha - 1.0) * ops.log(x) - beta * x - ops.gammaln(alpha)


def _exponential(x: Value, lam: Value) -> Value:
    return ops.log(lam) - lam * x


def _poisson(x: Value, lam: Value) -> Value:
    return x * ops.log(lam) - lam - ops.gammaln(x + 1.0)


def _negative_binomial(x: Value, k: Value, p: Value) -> Value:
    return ops.gammaln(x + k) - ops.gammaln(x + 1.0) - ops.gammaln(k) + k * ops.log(p) + x * ops.log(1.0 - p)


def _generalized_negative_binomial(x: Value, mu: Value, alpha: Value) -> Value:
    """The negative binomial density with ``k = 1 / alpha`` and ``p = 1 / (1 + mu * alpha)``."""
    k, spread = 1.0 / alpha, mu * alpha
    rest = ops.gammaln(x + k) - ops.gammaln(x + 1.0) - ops.gammaln(k) + x * ops.log(spread)
    return rest - (k + x) * ops.log(spread + 1.0)


class Density(NamedTuple):
    """A row of the table: parameters, log density, whether samples have no gradient, documentation."""

    name: str
    parameters: tuple[str, ...]
    log: Callable[..., Value]
    flat: bool
    doc: str


DENSITIES = (
    Density("uniform", ("low", "high"), _uniform, True,
            "``1 / (high - low)``, for samples from the interval."),
    Density("normal", ("mu", "sigma"), _normal, False,
            "The density of the normal distribution with mean ``mu`` and standard deviation ``sigma``."),
    Density("gamma", ("alpha", "beta"), _gamma, False,
            "The density of the gamma distribution with shape ``alpha`` and rate ``beta``."),
    Density("exponential", ("lam",), _exponential, False,
            "The density of the exponential distribution with rate ``lam``."),
    Density("poisson", ("lam",), _poisson, True,
            "The probability of counts of the Poisson distribution with mean ``lam``."),
    Density("negative_binomial", ("k", "p"), _negative_binomial, True,
            "The probability of ``sample`` failures before the ``k``-th success, where a success has the probability "
            "``p``."),
    Density("generalized_negative_binomial", ("mu", "alpha"), _generalized_negative_binomial, True,
            "The probability of counts of the negative binomial distribution with mean ``mu`` and dispersion "
            "``alpha``."),
)


# ------------------------------------------------------------------------------------------------ operators


def _spread(sample: Any, parameter: Any, last_axes: int = 0) -> Value:
    """A parameter with an axis of length one for each axis of samples, in front of the last ``last_axes`` axes."""
    shape: Shape = parameter.shape
    end = len(shape) - last_axes
    return parameter.reshape((*shape[:end], *[1] * (sample.ndim - len(shape)), *shape[end:]))


def _density(row: Density) -> None:
    def density(sample, *parameters, is_log: bool = False):
        x = sample.detach() if row.flat else sample
        value = row.log(x, *[_spread(sample, parameter) for parameter in parameters])
        return value if is_log else ops.exp(value)

    density.__doc__ = row.doc
    names = ("sample", *row.parameters)
    op = composed(density, name=f"_random_pdf_{row.name}", aliases=(f"random_pdf_{row.name}",), arguments=names,
                  input_names=names, variadic=None)
    # The body would accept parameters whose shapes broadcast.
    declare_form(op, f"(...places, ...samples) {'(...places) ' * len(row.parameters)}-> (...places, ...samples)")


for _row in DENSITIES:
    _density(_row)


# ------------------------------------------------------------------------------------------------ Dirichlet


@composed(name="_random_pdf_dirichlet", aliases=("random_pdf_dirichlet",))
def dirichlet(sample, alpha, *, is_log: bool = False):
    """The density of the Dirichlet distribution with concentrations in the last axis of ``alpha``."""
    alpha = _spread(sample, alpha, 1)
    constant = ops.gammaln(ops.sum(alpha, axis=-1)) - ops.sum(ops.gammaln(alpha), axis=-1)
    value = constant + ops.sum((alpha - 1.0) * ops.log(sample), axis=-1)
    return value if is_log else ops.exp(value)


declare_form(dirichlet, "(...places, ...samples, n) (...places, n) -> (...places, ...samples)")
