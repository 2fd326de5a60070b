"""Functions that bound kernels give to a plan, and what a plan may do with them besides calling them.

A kernel gives functions without arguments. Most are NumPy's, with their arrays. A back end makes others, and describes
them with these classes or with attributes of a function: ``plain``, that it does not depend on modes and contexts;
``capturable``, that it may be part of a graph that is replayed although its operator draws random numbers; ``draws``,
that its random numbers differ from the reference's; ``read`` and ``written``, how many bytes a call reads and writes.
Plans use nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

import numpy as np

from ..typing import Array
from .spec import size

__all__ = ["JoinableStep", "PlainStep", "Recorder", "RefusedError", "TieredStep", "bytes_moved", "is_plain",
           "own_bytes"]


class PlainStep:
    """A function that does not depend on modes and contexts: it may run outside of both."""

    __slots__ = ()
    plain = True

    def __call__(self) -> None:
        raise NotImplementedError


class JoinableStep(PlainStep):
    """A step that can be joined with the ones after it into one.

    Attributes
    ----------
    run : function
        Does the step's work; it holds no references to the arrays it works on.
    """

    __slots__ = ()
    run: Callable[[], object]

    def join(self, following: Sequence[Self]) -> Self:
        """This step and those that follow as one step, which holds references to all that they hold."""
        raise NotImplementedError


class TieredStep:
    """A function that is replaced by a faster one after some runs.

    Attributes
    ----------
    made : function or None
        The faster one, once it has been made.
    """

    __slots__ = ()
    made: Callable[[], object] | None

    def __call__(self) -> None:
        raise NotImplementedError


class RefusedError(Exception):
    """Work cannot be recorded: the reason, and in ``number`` the index of the function that refused, None if
    unknown."""

    def __init__(self, reason: str, number: int | None = None):
        super().__init__(reason)
        self.number = number


class Recorder:
    """Records the work of functions on a device, so that one call repeats it, and holds the memory that they allocate
    meanwhile."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds."""
        raise NotImplementedError

    def warming(self) -> AbstractContextManager[None]:
        """Run code in a ``with`` statement as it will be recorded, so that everything made at first use exists
        before."""
        raise NotImplementedError

    def record(self, functions: Sequence[Callable[[], object]]) -> PlainStep:
        """Record functions as one step that repeats their work on the same memory. The functions are called for this,
        but nothing is computed.

        Raises
        ------
        RefusedError
            When their work cannot be recorded.
        """
        raise NotImplementedError


def is_plain(function: Any) -> bool:
    """Whether a function, or the one that a ``functools.partial`` wraps, is NumPy's or marked as plain.

    Examples
    --------
    >>> import functools
    >>> is_plain(functools.partial(np.add, 1, 2)), is_plain(print)
    (True, False)
    """
    inner = getattr(function, "func", function)  # of functools.partial
    if isinstance(inner, np.ufunc) or inner is np.copyto or getattr(inner, "plain", False):
        return True
    return isinstance(getattr(inner, "__self__", None), (np.ndarray, np.ufunc))  # their methods


def own_bytes(array: Array) -> int:
    """Bytes of the elements that an array has in memory: elements repeated along an axis count once.

    Examples
    --------
    >>> own_bytes(np.broadcast_to(np.zeros(3, "float32"), (5, 3)))
    12
    """
    return size(tuple([n for n, stride in zip(array.shape, array.strides) if stride])) * int(array.itemsize)


def bytes_moved(function: Any) -> tuple[int, int] | None:
    """Bytes that a call of a function reads and writes: by its attributes, or by its arrays if it is a ufunc or the
    method ``fill``; None if unknown.

    Examples
    --------
    >>> import functools
    >>> x, y = np.zeros(3), np.zeros(3)
    >>> bytes_moved(functools.partial(np.add, x, y, x)), bytes_moved(functools.partial(x.fill, 0)), bytes_moved(print)
    ((48, 24), (0, 24), None)
    """
    if getattr(function, "written", None) is not None:
        return function.read, function.written
    inner, args = getattr(function, "func", function), getattr(function, "args", ())
    owner = getattr(inner, "__self__", None)
    if getattr(inner, "__name__", "") == "fill" and hasattr(owner, "strides"):
        return 0, own_bytes(owner)  # type: ignore[arg-type]
    count = getattr(inner, "nin", None)
    if count is None or len(args) <= count:
        return None
    read, written = [sum(own_bytes(array) for array in part if hasattr(array, "strides"))
                     for part in (args[:count], args[count:])]
    return read, written
