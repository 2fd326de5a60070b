"""Switches of a thread: what a zero in a shape means.

For symbols a 0 is a dimension that is not known, and ``()`` a shape of which nothing is, as in MXNet by default. Under
``np_shape`` they are what they are in NumPy, an empty dimension and the shape of a number; unknown are -1 and None.
Arrays have zeros and empty shapes in either case.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .core.mode import MODE

__all__ = ["np_shape", "is_np_shape", "set_np_shape", "use_np_shape"]

F = TypeVar("F", bound=Callable[..., Any])


def is_np_shape() -> bool:
    """Whether a 0 in the shape of a symbol is an empty dimension."""
    return MODE.np_shape


def set_np_shape(active: bool) -> bool:
    """Let a 0 in the shapes of symbols be an empty dimension, or an unknown one; returns what it was."""
    before, MODE.np_shape = MODE.np_shape, bool(active)
    return before


class np_shape:
    """A stretch of code in which a 0 in the shape of a symbol is an empty dimension.

    Examples
    --------
    >>> from opreg.symbol import Variable
    >>> x = Variable("x") * 2
    >>> x.infer_shape_partial(x=(0, 3))[1]
    [(0, 3)]
    >>> with np_shape():
    ...     x.infer_shape(x=(0, 3))[1], x.infer_shape_partial(x=(-1, 3))[1], x.infer_shape_partial()[1]
    ([(0, 3)], [(-1, 3)], [None])
    """

    def __init__(self, active: bool = True):
        self._active, self._before = bool(active), False

    def __enter__(self) -> np_shape:
        self._before = set_np_shape(self._active)
        return self

    def __exit__(self, *_: object) -> None:
        set_np_shape(self._before)


def use_np_shape(function: F) -> F:
    """The function, called under ``np_shape``."""

    @functools.wraps(function)
    def inside(*args: Any, **keywords: Any) -> Any:
        with np_shape():
            return function(*args, **keywords)

    return inside  # type: ignore[return-value]


def __dir__() -> list[str]:
    return sorted(__all__)
