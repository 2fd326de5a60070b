"""Rows of the random numbers and of their densities."""

from __future__ import annotations

import math

import numpy as np

from . import Row, integers, normal, uniform

__all__ = ["ROWS"]

# Name, parameters as attributes, parameters as arrays.
_SOUND = [
    ("uniform", dict(low=-1.0, high=2.0), [normal(2, 3), normal(2, 3) + 5]),
    ("normal", dict(loc=1.0, scale=2.0), [normal(2, 3), uniform(0.5, 2, 2, 3)]),
    ("gamma", dict(alpha=2.0, beta=0.5), [uniform(0.5, 2, 2, 3), uniform(0.5, 2, 2, 3)]),
    ("exponential", dict(lam=2.0), [uniform(0.5, 2, 2, 3)]),
    ("poisson", dict(lam=3.0), [uniform(0.5, 2, 2, 3)]),
    ("negative_binomial", dict(k=3, p=0.4), [uniform(0.5, 2, 2, 3), uniform(0.2, 0.8, 2, 3)]),
    ("generalized_negative_binomial", dict(mu=3.0, alpha=0.4), [uniform(0.5, 2, 2, 3), uniform(0, 1, 2, 3)]),
]

ROWS: list[Row] = []
for _name, _attrs, _arrays in _SOUND:
    ROWS += [
        Row(f"_random_{_name}", [], dict(shape=(3, 4), **_attrs), deterministic=False),
        Row(f"_random_{_name}", [], dict(shape=5, dtype="float64"), deterministic=False),
        Row(f"_random_{_name}_like", [normal(2, 3)], _attrs, deterministic=False),
        Row(f"_sample_{_name}", _arrays, {}, deterministic=False),
        Row(f"_sample_{_name}", _arrays, dict(shape=(4, 2), dtype="float16"), deterministic=False),
    ]
ROWS += [
    Row("_random_randint", [], dict(low=-5, high=5, shape=(3, 4)), deterministic=False),
    Row("_random_randint", [], dict(low=0, high=2**40, shape=7, dtype="int64"), deterministic=False),
    Row("_shuffle", [normal(5, 2)], {}, deterministic=False),
    Row("_shuffle", [integers(0, 9, 6)], {}, deterministic=False, name="integers"),
    Row("_sample_unique_zipfian", [], dict(range_max=100, shape=(3, 5)), deterministic=False),
]

_CHANCES = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
ROWS += [
    Row("_sample_multinomial", [_CHANCES], {}, deterministic=False),
    Row("_sample_multinomial", [_CHANCES], dict(shape=(4, 2), get_prob=True), deterministic=False),
    Row("_sample_multinomial", [_CHANCES[0]], dict(shape=3, dtype="float32"), deterministic=False, name="one"),
    Row("_backward_sample_multinomial",
        [np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), _CHANCES, np.array([[2, 0, 2], [1, 1, 0]], "int32")], {},
        lambda g, p, i: np.array([[2 / 0.1, 0, 4 / 0.7], [6 / 0.5, 9 / 0.5, 0]])),
]


# ----------------------------------------------------------------------------------------------- densities


def _lgamma(x):
    return np.vectorize(math.lgamma)(x)


def _gamma(x, alpha, beta):
    return alpha * np.log(beta) + (alpha - 1) * np.log(x) - beta * x - _lgamma(alpha)


def _negative_binomial(x, k, p):
    return _lgamma(x + k) - _lgamma(x + 1) - _lgamma(k) + k * np.log(p) + x * np.log(1 - p)


def _dirichlet(x, alpha):
    alpha = alpha.reshape(*alpha.shape[:-1], *[1] * (x.ndim - alpha.ndim), alpha.shape[-1])
    return _lgamma(alpha.sum(-1)) - _lgamma(alpha).sum(-1) + ((alpha - 1) * np.log(x)).sum(-1)


_COUNTS = integers(0, 6, 2, 3, 4).astype(float)
_LENGTHS = uniform(0.5, 3, 2, 3, 4)
_TWO = uniform(0.5, 2, 2, 3, seed=1), uniform(0.3, 0.8, 2, 3, seed=2)
# Name, samples, parameters, log density, inputs with a gradient.
_DENSITIES = [
    ("uniform", uniform(0, 1, 2, 3, 4), [-_TWO[0], _TWO[0] + 1],
     lambda x, low, high: -np.log(high - low) + 0 * x, (1, 2)),
    ("normal", normal(2, 3, 4), [_TWO[0], _TWO[1]],
     lambda x, mu, s: -0.5 * ((x - mu) / s) ** 2 - np.log(s * math.sqrt(2 * math.pi)), (0, 1, 2)),
    ("gamma", _LENGTHS, [*_TWO], _gamma, (0, 1, 2)),
    ("exponential", _LENGTHS, [_TWO[0]], lambda x, lam: np.log(lam) - lam * x, (0, 1)),
    ("poisson", _COUNTS, [_TWO[0]], lambda x, lam: x * np.log(lam) - lam - _lgamma(x + 1), (1,)),
    ("negative_binomial", _COUNTS, [*_TWO], _negative_binomial, (1, 2)),
    ("generalized_negative_binomial", _COUNTS, [*_TWO],
     lambda x, mu, a: _negative_binomial(x, 1 / a, 1 / (1 + mu * a)), (1, 2)),
]


def _density(log, is_log):
    def value(x, *parameters):
        found = log(x, *(each.reshape(each.shape + (1,) * (x.ndim - each.ndim)) for each in parameters))
        return found if is_log else np.exp(found)

    return value


for _name, _sample, _parameters, _log, _wrt in _DENSITIES:
    for _is_log in (False, True):
        ROWS.append(Row(f"_random_pdf_{_name}", [_sample, *_parameters], dict(is_log=_is_log),
                        _density(_log, _is_log), grad=_wrt))

_PARTS = uniform(0.1, 1, 2, 3, 4)
for _is_log in (False, True):
    for _alpha in (uniform(0.5, 2, 4), uniform(0.5, 2, 2, 4)):
        ROWS.append(Row("_random_pdf_dirichlet", [_PARTS, _alpha], dict(is_log=_is_log),
                        lambda x, a, is_log=_is_log: _dirichlet(x, a) if is_log else np.exp(_dirichlet(x, a)),
                        grad=(0, 1), name=f"{_is_log}-{_alpha.ndim}"))

ROWS += [Row("_numpy_noise", [normal(3, 1), normal(2)], {"num_args": 2, "distribution": kind}, deterministic=False)
         for kind in ("uniform", "normal")]
ROWS += [Row("_numpy_noise", [normal(2)], {"num_args": 1, "distribution": "normal", "size": 3, "batch": True},
             deterministic=False),
         Row("_numpy_noise", [], {"distribution": "uniform", "size": (2, 3)}, deterministic=False),
         Row("_numpy_gamma", [np.array([1.0, 2.0])], {"num_args": 1, "size": (3, 2)}, deterministic=False),
         Row("_numpy_gamma", [], {"alpha": 2.0, "size": (3, 2)}, deterministic=False)]
