"""Initializers, as ``opreg.cells.initializer`` has them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..cells import initializer as _own
from ..cells.initializer import *  # noqa: F403
from ..cells.initializer import HeNormal, Initializer, Normal, TruncatedNormal, Uniform, gain_of
from ..core.spec import Shape, show
from ..errors import AttrError, ShapeError, did_you_mean
from ..fills import fan

__all__ = _own.__all__


def _calculate_fan_in_and_fan_out(shape: Shape) -> tuple[int, int]:
    """Numbers of inputs and outputs of a weight; scripts use them to bound their biases."""
    if len(shape) < 2:
        raise ShapeError("_calculate_fan_in_and_fan_out: expected at least two axes, which count outputs and inputs, "
                         f"got the shape {show(shape)}")
    return int(fan(shape, "in")), int(fan(shape, "out"))


def _calculate_correct_fan(shape: Shape, mode: str) -> int:
    """Number of inputs of a weight for ``fan_in``, number of outputs for ``fan_out``."""
    fans = dict(zip(("fan_in", "fan_out"), _calculate_fan_in_and_fan_out(shape)))
    if mode.lower() not in fans:
        raise AttrError(f"_calculate_correct_fan: there is no mode {mode!r}. {did_you_mean(mode, fans)}")
    return fans[mode.lower()]


def _calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The gain of ``HeNormal`` for the activation after a layer; ``param`` is the slope of the leaky rectifier, by
    default 0.01."""
    kind = HeNormal(0.01 if param is None else param, nonlinearity=nonlinearity)
    return gain_of(nonlinearity, kind.negative_slope)


def _assignment(arr: np.ndarray, num: ArrayLike) -> np.ndarray:
    """Write a number, or an array that broadcasts, to all elements, and return the array; the ``_initialize`` of
    users' initializers calls it."""
    arr[...] = num
    return arr


def _register(*aliases: str) -> Callable[[type[Initializer]], type[Initializer]]:
    """Decorate an Initializer: ``initializer`` knows it by its name and these others, unless they are in use."""
    def registered(cls: type[Initializer]) -> type[Initializer]:
        for name in (cls.__name__, *aliases):
            _own.NAMED.setdefault(name.lower(), cls)
        return cls

    return registered


def _init_random_uniform(a: float, b: float, shape: Shape) -> np.ndarray:
    """Uniform values from ``a`` to ``b``, as float32."""
    half = (b - a) / 2
    return Uniform(half).fill(shape, np.float32) + np.float32(a + half)


def _init_random_normal(mean: float, sigma: float, shape: Shape) -> np.ndarray:
    """Normal values of standard deviation ``sigma`` around ``mean``, as float32."""
    return Normal(sigma, mean).fill(shape, np.float32)


def _init_truncated_normal(a: float, b: float, mean: float, sigma: float, shape: Shape) -> np.ndarray:
    """Normal values, truncated to the range from ``a`` to ``b``, as float32."""
    return TruncatedNormal(sigma, mean, a, b).fill(shape, np.float32)


def __dir__() -> list[str]:
    return sorted(__all__)
