"""Helpers of MindSpore's ``train._utils``: making folders, and checking types."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..errors import ArgumentError

__all__ = ["check_value_type"]


def check_value_type(arg_name: str, arg_value: object, valid_types: type | Iterable[type]) -> None:
    """Refuse a value of another type; a boolean does not count as int.

    Raises
    ------
    TypeError
        The error names the argument, the valid types, and the type of the value.

    Examples
    --------
    >>> check_value_type("eps", 0.5, [float, int])
    """
    kinds = (valid_types,) if isinstance(valid_types, type) else tuple(valid_types)
    if not isinstance(arg_value, kinds) or (isinstance(arg_value, bool) and bool not in kinds):
        raise ArgumentError(f"{arg_name} must be of {' or '.join(kind.__name__ for kind in kinds)}, got "
                            f"{type(arg_value).__name__}")


def _make_directory(path: str, arg_name: str = "path") -> str:
    """Make a folder and its parents; returns its absolute path."""
    if not isinstance(path, str):
        raise ArgumentError(f"{arg_name} must be text, got {type(path).__name__}")
    if not path.strip():
        raise ArgumentError(f"{arg_name} must not be blank")
    real_path = os.path.realpath(path)
    os.makedirs(real_path, exist_ok=True)
    return real_path
