"""Nestings: lists and tuples, also within each other, that hold arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .ndarray import NDArray

__all__ = ["arrays_in", "on_host", "leaves", "map_arrays"]


def leaves(value: object) -> list[Any]:
    """The values in a nesting, as a list; a list of one for a value that is no list or tuple.

    Examples
    --------
    >>> leaves([1, (2, [3])]), leaves(1)
    ([1, 2, 3], [1])
    """
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, (list, tuple)) else [value]


def arrays_in(value: object) -> list[NDArray]:
    """The arrays in a nesting."""
    return [leaf for leaf in leaves(value) if isinstance(leaf, NDArray)]


def map_arrays(value: Any, change: Callable[[NDArray], NDArray]) -> Any:
    """A nesting with each array replaced by ``change(array)``."""
    if isinstance(value, (list, tuple)):
        return type(value)([map_arrays(part, change) for part in value])
    return change(value) if isinstance(value, NDArray) else value


def on_host(value: Any, kinds: Any = NDArray) -> Any:
    """A nesting as lists, in which arrays, or values of the classes ``kinds``, are arrays of NumPy."""
    if isinstance(value, (list, tuple)):
        return [on_host(part, kinds) for part in value]
    return value.asnumpy() if isinstance(value, kinds) else value
