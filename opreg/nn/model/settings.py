"""Settings of trainings, checked where they are given."""

from __future__ import annotations

__all__ = ["whole"]


def whole(owner: str, name: str, value: object, least: int = 0) -> int:
    """A setting that is an integer, not below ``least``.

    Raises
    ------
    TypeError, ValueError
        When it is none, or is less.

    Examples
    --------
    >>> whole("Model.train", "epoch", 3, 1)
    3
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{owner}: {name} must be an int, got {type(value).__name__}")
    if value < least:
        raise ValueError(f"{owner}: {name} must be at least {least}, got {value}")
    return value
