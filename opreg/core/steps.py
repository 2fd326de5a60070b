"""Functions that bound kernels give to a plan, and what a plan may do with them beside calling them.

A kernel gives functions without arguments. Most are NumPy's, with their arrays. A back end makes others, and says with
these classes, or with an attribute of a function, what is known about them: ``plain``, that it knows nothing of modes
and contexts; ``capturable``, that it may be part of a graph that is replayed though its operator draws; ``draws``, that
its random numbers are others than the reference's; ``read`` and ``written``, how many bytes a call moves. Plans ask
nothing else.
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
    """A function that knows nothing of modes and contexts: it may run outside of both."""

    __slots__ = ()
    plain = True

    def __call__(self) -> None:
        raise NotImplementedError


class JoinableStep(PlainStep):
    """Several in a row become one.

    Attributes
    ----------
    run : function
        Does all of it, and holds nothing alive.
    """

    __slots__ = ()
    run: Callable[[], object]

    def join(self, following: Sequence[Self]) -> Self:
        """This and what follows it as one, which holds alive what they hold."""
        raise NotImplementedError


class TieredStep:
    """A function in whose place a faster one comes after some runs.

    Attributes
    ----------
    made : function or None
        That one, once it is there.
    """

    __slots__ = ()
    made: Callable[[], object] | None

    def __call__(self) -> None:
        raise NotImplementedError


class RefusedError(Exception):
    """Work that cannot be recorded, and why; ``number`` is that of the function that refused, None where it cannot be
    told."""

    def __init__(self, reason: str, number: int | None = None):
        super().__init__(reason)
        self.number = number


class Recorder:
    """Records the work of functions on a device, so that it can be done again by one call, and keeps the memory that it
    takes meanwhile."""

    @property
    def nbytes(self) -> int:
        """Bytes that it keeps."""
        raise NotImplementedError

    def warming(self) -> AbstractContextManager[None]:
        """A stretch of code that runs as it will be recorded, so that all is there that is made at first use."""
        raise NotImplementedError

    def record(self, functions: Sequence[Callable[[], object]]) -> PlainStep:
        """Functions as one that does their work again, on the same memory. They are called, and nothing is computed.

        Raises
        ------
        RefusedError
            When their work cannot be recorded.
        """
        raise NotImplementedError


def is_plain(function: Any) -> bool:
    """Whether a function, or what it hands its arguments to, is NumPy's, or plain by its own account.

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
    """Bytes of the numbers that an array has in memory: those that are repeated along an axis count once.

    Examples
    --------
    >>> own_bytes(np.broadcast_to(np.zeros(3, "float32"), (5, 3)))
    12
    """
    return size(tuple([n for n, stride in zip(array.shape, array.strides) if stride])) * int(array.itemsize)


def bytes_moved(function: Any) -> tuple[int, int] | None:
    """Bytes that a call of a function reads and writes: by its own account, or by its arrays where it is a ufunc or the
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
    read, written = [sum(own_bytes(each) for each in part if hasattr(each, "strides"))
                     for part in (args[:count], args[count:])]
    return read, written
