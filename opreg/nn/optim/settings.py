"""Checks of the settings of optimizers, schedules, metrics and trainings, made in their constructors."""

from __future__ import annotations

import math
import numbers

import numpy as np

from ...errors import ArgumentError

__all__ = ["number", "check_int", "flag"]


def number(owner: str, name: str, value: object, least: float = 0.0, most: float = math.inf, inside: bool = False
           ) -> float:
    """Check a setting: a float from ``least`` to ``most``, with ``inside`` without the two bounds.

    Raises
    ------
    TypeError, ValueError
        When it is no number, or out of range.

    Examples
    --------
    >>> number("SGD", "momentum", 1)
    1.0
    """
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise ArgumentError(f"{owner}: {name} must be a float, got {type(value).__name__}")
    result = float(value)
    if not (least < result < most if inside else least <= result <= most):
        lower = "" if least == -math.inf else f" {'above' if inside else 'at least'} {least:g}"
        upper = "" if most == math.inf else f" {'below' if inside else 'at most'} {most:g}"
        raise ValueError(f"{owner}: {name} must be{lower}{' and' if lower and upper else ''}{upper}, got {value!r}")
    return result


def check_int(owner: str, name: str, value: object, least: int = 0) -> int:
    """Check a setting: an integer, at least ``least``.

    Raises
    ------
    TypeError, ValueError
        When it is no integer, or too small.

    Examples
    --------
    >>> check_int("Model.train", "epoch", 3, 1)
    3
    """
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise ArgumentError(f"{owner}: {name} must be an int, got {type(value).__name__}")
    if value < least:
        raise ValueError(f"{owner}: {name} must be at least {least}, got {value}")
    return int(value)


def flag(owner: str, name: str, value: object) -> bool:
    """Check a setting: True or False."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{owner}: {name} must be a bool, got {type(value).__name__}")
    return value
