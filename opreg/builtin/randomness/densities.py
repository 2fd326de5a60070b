"""Densities of random numbers: a distribution a row, its log density an expression.

``_random_pdf_<name>(sample, *parameters)`` gives the density at each sample, or with ``is_log`` its
logarithm. The parameters have the shape of the first axes of ``sample``: one distribution for each place
there, and as many samples of it as the other axes hold. Gradients are derived from the expression; counts
have none.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from ...core.attrs import Field, Schema
from ...core.op import Op
from ...core.registry import declare, ops, register
from ...core.spec import Shape, show
from ...elementwise.expression import Expression, Term, derive, exp, gammaln, log, trace
from ...elementwise.special_functions import gammaln as gammaln_xp
from ...elementwise.special_functions import polygamma
from ...errors import ShapeError
from ...typing import Array
from ..outputs import together

__all__: list[str] = []


# -------------------------------------------------------------------------------------------- log densities


def _uniform(x: Term, low: Term, high: Term) -> Term:
    return -log(high - low)


def _normal(x: Term, mu: Term, sigma: Term) -> Term:
    z = (x - mu) / sigma
    return z * z * -0.5 - log(sigma) - 0.5 * math.log(2.0 * math.pi)


def _gamma(x: Term, alpha: Term, beta: Term) -> Term:
    return alpha * log(beta) + (alpha - 1.0) * log(x) - beta * x - gammaln(alpha)


def _exponential(x: Term, lam: Term) -> Term:
    return log(lam) - lam * x


def _poisson(x: Term, lam: Term) -> Term:
    return x * log(lam) - lam - gammaln(x + 1.0)


def _negative_binomial(x: Term, k: Term, p: Term) -> Term:
    return gammaln(x + k) - gammaln(x + 1.0) - gammaln(k) + k * log(p) + x * log(1.0 - p)


def _generalized_negative_binomial(x: Term, mu: Term, alpha: Term) -> Term:
    """The same with ``k = 1 / alpha`` and ``p = 1 / (1 + mu * alpha)``."""
    k, spread = 1.0 / alpha, mu * alpha
    rest = gammaln(x + k) - gammaln(x + 1.0) - gammaln(k) + x * log(spread)
    return rest - (k + x) * log(spread + 1.0)


class Density(NamedTuple):
    """A row: parameters, log density, whether the density does not move with samples, documentation."""

    name: str
    parameters: tuple[str, ...]
    log: Callable
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
            "The probability of as many successes before ``k`` failures, each of probability ``p``."),
    Density("generalized_negative_binomial", ("mu", "alpha"), _generalized_negative_binomial, True,
            "The probability of counts with mean ``mu`` and dispersion ``alpha``."),
)


# ------------------------------------------------------------------------------------------------ operators


def _infer(sample: Shape, *parameters: Shape) -> Shape:
    for shape in parameters:
        if len(shape) > len(sample) or sample[:len(shape)] != shape:
            raise ShapeError(f"parameters: expected the shape of the first axes of sample {show(sample)}, "
                             f"got {show(shape)}")
        if len(shape) != len(parameters[0]):
            raise ShapeError(f"parameters: shapes {show(parameters[0])} and {show(shape)} differ")
    return sample


def _fill(ins: list, outs: list) -> list:
    sample, parameters = together([ins[0], outs[0]]), together(ins[1:])
    if sample is not None and parameters is not None:
        parameters = together([parameters, sample[:len(parameters)]])
    return [sample, *[parameters] * (len(ins) - 1)]


def _spread(sample: Array, parameter: Array) -> Array:
    """A parameter with an axis of one for each axis of samples."""
    return parameter.reshape((*parameter.shape, *[1] * (sample.ndim - parameter.ndim)))


def _density(row: Density) -> None:
    count = 1 + len(row.parameters)

    @functools.cache
    def expression(is_log: bool) -> Expression:
        return trace(row.log if is_log else lambda *terms: exp(row.log(*terms)), count)

    @functools.cache
    def slope(is_log: bool, wrt: int) -> Expression:
        return derive(expression(is_log), wrt)

    schema = Schema([Field("is_log", bool, False)])
    op = Op(f"_random_pdf_{row.name}", schema, ("sample", *row.parameters), doc=row.doc)
    op.infer(_infer)
    op.fill(_fill)

    @op.kernel()
    def density(xp, sample, *parameters, is_log):
        wide = [xp.broadcast_to(_spread(sample, parameter), sample.shape) for parameter in parameters]
        return expression(is_log)(xp, sample, *wide)

    @op.grad
    def gradient(g, ins, outs, *, is_log, needs):
        return [None if not needed or (row.flat and i == 0) else
                getattr(ops, f"_backward_pdf_{row.name}")(g, *ins, is_log=is_log, wrt=i)
                for i, needed in enumerate(needs)]

    backward = Op(f"_backward_pdf_{row.name}", Schema([Field("is_log", bool, False), Field("wrt", int, 0)]),
                  ("g", "sample", *row.parameters), doc=f"The gradient of one input of ``{op.name}``.")

    @backward.infer
    def backward_infer(g, *ins, wrt):
        return ins[wrt]

    @backward.kernel()
    def backward_density(xp, g, sample, *parameters, is_log, wrt):
        wide = [xp.broadcast_to(_spread(sample, parameter), sample.shape) for parameter in parameters]
        grads = slope(is_log, wrt)(xp, g, sample, *wide)
        if wrt == 0:
            return grads
        return xp.sum(grads, axis=tuple(range(parameters[wrt - 1].ndim, sample.ndim)))

    register(op, f"random_pdf_{row.name}")
    register(backward)


for _row in DENSITIES:
    _density(_row)


# ------------------------------------------------------------------------------------------------ Dirichlet


@declare(name="_random_pdf_dirichlet", aliases=("random_pdf_dirichlet",))
def dirichlet(sample, alpha, *, is_log: bool = False):
    """The density of the Dirichlet distribution with concentrations in the last axis of ``alpha``."""


@dirichlet.infer
def dirichlet_infer(sample, alpha):
    lead = len(alpha) - 1
    if not 0 <= lead < len(sample) or (*sample[:lead], sample[-1]) != alpha:
        raise ShapeError(f"alpha: expected the first axes and the last one of sample {show(sample)}, "
                         f"got {show(alpha)}")
    return sample[:-1]


def _concentrations(sample: Array, alpha: Array) -> Array:
    lead = alpha.shape[:-1]
    return alpha.reshape((*lead, *[1] * (sample.ndim - alpha.ndim), alpha.shape[-1]))


@dirichlet.kernel()
def dirichlet_xp(xp, sample, alpha, *, is_log):
    alpha = _concentrations(sample, alpha)
    constant = gammaln_xp(xp, xp.sum(alpha, axis=-1)) - xp.sum(gammaln_xp(xp, alpha), axis=-1)
    value = constant + xp.sum((alpha - 1.0) * xp.log(sample), axis=-1)
    return value if is_log else xp.exp(value)


@dirichlet.grad
def dirichlet_grad(g, ins, outs, *, is_log, needs):
    g = g if is_log else g * outs[0]
    return [ops._backward_pdf_dirichlet(g, *ins, wrt=i) if needed else None for i, needed in enumerate(needs)]


@declare(name="_backward_pdf_dirichlet")
def dirichlet_backward(g, sample, alpha, *, wrt: int = 0):
    """The gradient of one input of the logarithm of ``_random_pdf_dirichlet``."""


@dirichlet_backward.infer
def dirichlet_backward_infer(g, sample, alpha, *, wrt):
    return alpha if wrt else sample


@dirichlet_backward.kernel()
def dirichlet_backward_xp(xp, g, sample, alpha, *, wrt):
    wide, g = _concentrations(sample, alpha), g[..., None]
    if wrt == 0:
        return g * (wide - 1.0) / sample
    total = polygamma(xp, 0, xp.sum(wide, axis=-1, keepdims=True))
    grads = g * (xp.log(sample) + total - polygamma(xp, 0, wide))
    return xp.sum(grads, axis=tuple(range(alpha.ndim - 1, sample.ndim - 1)))
