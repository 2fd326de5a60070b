"""Where arrays of the host lie, for libraries and compiled functions that are given addresses."""

from __future__ import annotations

from opreg.typing import Array

__all__ = ["address_of"]


def address_of(array: Array) -> int:
    """Where the first number of an array of the host lies."""
    return array.__array_interface__["data"][0]
