"""Checks of the settings of trainings."""

from __future__ import annotations

__all__ = ["check_int"]


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
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{owner}: {name} must be an int, got {type(value).__name__}")
    if value < least:
        raise ValueError(f"{owner}: {name} must be at least {least}, got {value}")
    return value
