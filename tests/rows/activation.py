"""Rows of the activation functions and Dropout."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]

_HALF = dict(dtypes=("float64", "float32", "float16"))
_BOTH: dict[str, Any] = dict(grad=(0,), second=True)
_X, _G = normal(3, 4), normal(3, 4, seed=1)

_erf = np.vectorize(math.erf, otypes=[float])


def _gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + _erf(x / math.sqrt(2))) / 2


def _bell(x: np.ndarray) -> np.ndarray:
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _below(function: Any) -> Any:
    return lambda x: np.where(x > 0, x, function(x))


def _selu(x: np.ndarray) -> np.ndarray:
    return 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))


_ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "tanh": np.tanh,
                "softrelu": lambda x: np.log(1 + np.exp(x)), "softsign": lambda x: x / (1 + abs(x))}
_EDGES = np.array([-np.inf, -100.0, 0.0, 100.0, np.inf, np.nan])
_AT_EDGES = {"relu": [0, 0, 0, 100, np.inf, np.nan], "sigmoid": [0, 0, 0.5, 1, 1, np.nan],
             "tanh": [-1, -1, 0, 1, 1, np.nan], "softrelu": [0, 0, math.log(2), 100, np.inf, np.nan]}

ROWS: list[Row] = [Row("Activation", [_X], {"act_type": name}, function, **_BOTH, **_HALF)
                   for name, function in _ACTIVATIONS.items()]
ROWS += [Row("Activation", [_EDGES], {"act_type": name}, lambda x, values=values: np.array(values, float),
             name=f"{name}-edges") for name, values in _AT_EDGES.items()]
ROWS += [
    Row("_softrelu", [_X], {}, _ACTIVATIONS["softrelu"], **_BOTH),
    Row("_backward_softrelu", [_G, abs(_X)], {}, lambda g, y: g * (1 - np.exp(-y)), (0, 1), True),
    Row("LeakyReLU", [_X], {}, _below(lambda x: 0.25 * x), **_BOTH, **_HALF),
    Row("LeakyReLU", [_X], {"act_type": "leaky", "slope": -0.3}, _below(lambda x: -0.3 * x), **_BOTH),
    Row("LeakyReLU", [_X], {"act_type": "elu", "slope": 0.3}, _below(lambda x: 0.3 * np.expm1(x)), **_BOTH),
    Row("LeakyReLU", [_X], {"act_type": "gelu"}, _gelu, **_BOTH),
    # No gradient here: that of MXNet, which is computed, is not the derivative.
    Row("LeakyReLU", [_X], {"act_type": "selu"}, _selu),
    Row("LeakyReLU", [normal(2, 3, 2), normal(3)], {"act_type": "prelu"}, grad=(0, 1), second=True,
        name="prelu-channels", expected=lambda x, gamma: np.where(x > 0, x, x * gamma[:, None])),
    Row("LeakyReLU", [normal(2, 3), normal(1)], {"act_type": "prelu"}, grad=(0, 1), second=True, name="prelu-one",
        expected=lambda x, gamma: np.where(x > 0, x, x * gamma)),
    Row("LeakyReLU", [normal(2, 3, 2), normal(2, 3, seed=1)], {"act_type": "prelu"}, grad=(0, 1), second=True,
        expected=lambda x, gamma: np.where(x > 0, x, x * gamma[..., None]), name="prelu-two-axes"),
    Row("LeakyReLU", [_X], {"act_type": "rrelu"}, deterministic=False),
    Row("_leaky", [_X], {"slope": 0.3}, _below(lambda x: 0.3 * x), **_BOTH),
    Row("_backward_leaky", [_G, _X], {"slope": 0.3}, lambda g, x: np.where(x > 0, g, 0.3 * g), (0,), True),
    Row("_elu", [_X], {"slope": 0.3}, _below(lambda x: 0.3 * np.expm1(x)), **_BOTH),
    Row("_backward_elu", [_G, _X, _below(np.expm1)(_X)], {"slope": 0.3},
        lambda g, x, y: np.where(x > 0, g, g * (y + 0.3)), (0, 2), True),
    Row("_selu", [_X], {}, _selu),
    Row("_backward_selu", [_G, _selu(_X)], {},
        lambda g, y: g * 1.0507009873554805 * np.where(y > 0, 1, y + 1.6732632423543772), (0, 1), True),
    Row("_gelu", [_X], {}, _gelu, **_BOTH),
    Row("_backward_gelu", [_G, _X], {}, lambda g, x: g * ((1 + _erf(x / math.sqrt(2))) / 2 + x * _bell(x)), (0, 1),
        True),
    Row("_backward_prelu", [normal(2, 3, 2), normal(2, 3, 2, seed=1), normal(3)], {}, grad=(0, 2), second=True,
        expected=lambda g, x, gamma: (np.where(x > 0, g, g * gamma[:, None]), (g * np.minimum(x, 0)).sum((0, 2)))),
    Row("_backward_prelu", [normal(2, 3), normal(2, 3, seed=1), normal(1)], {}, grad=(0, 2), second=True, name="one",
        expected=lambda g, x, gamma: (np.where(x > 0, g, g * gamma), (g * np.minimum(x, 0)).sum().reshape(1))),
    Row("Dropout", [_X], {"p": 0.0}, lambda x: x, grad=(0,)),
    Row("Dropout", [_X], {"p": 1.0}, np.zeros_like),
    Row("Dropout", [_X], {"p": 0.4}, deterministic=False),
    Row("Dropout", [_X], {"p": 0.4, "axes": (1,), "mode": "always"}, deterministic=False, train=False),
]
