"""Functions that bound kernels give to a plan, and what a plan may do with them besides calling them.

A kernel gives functions without arguments. Most are NumPy's, with their arrays. A back end makes others, and describes
them with these classes or with attributes of a function: ``plain``, that it does not depend on modes and contexts;
``capturable``, that it may be part of a graph that is replayed although its operator draws random numbers; ``draws``,
that its random numbers differ from the reference's; ``read`` and ``written``, how many bytes a call reads and writes.
Plans use nothing else.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self, TypeAlias

import numpy as np

from ..typing import Array
from .addresses import address_of
from .spec import size

__all__ = ["JoinableStep", "PlainStep", "Recorder", "RefusedError", "TieredStep", "Work", "bytes_moved", "index_at",
           "is_plain", "own_bytes", "step_work"]

#: The work of a step as a function of the arrays that it reads and writes, in an agreed order.
Work: TypeAlias = Callable[[Sequence[Array]], object]


class PlainStep:
    """A function that does not depend on modes and contexts: it may run outside of both."""

    __slots__ = ()
    plain = True

    def __call__(self) -> None:
        raise NotImplementedError

    def work(self, arrays: Sequence[Array]) -> Work | None:
        """The work of this step as a function of arrays like ``arrays``, to which it holds no references; None if the
        step can only work on its own. See ``step_work``."""
        return None


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

    def warm_up(self) -> AbstractContextManager[None]:
        """A ``with`` statement that runs code in the way of a recording, so that objects made at first use exist
        before it."""
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
    if isinstance(inner, np.ufunc) or inner is np.copyto or inner is np.concatenate or getattr(inner, "plain", False):
        return True
    return isinstance(getattr(inner, "__self__", None), (np.ndarray, np.ufunc))  # their methods


def index_at(arrays: Sequence[Array], array: Array) -> int | None:
    """The index of the array that begins where a view begins; None for a view of none of them.

    Raises
    ------
    RefusedError
        If the view begins inside of one of the arrays.
    """
    place = address_of(array)
    for i, each in enumerate(arrays):
        begin = address_of(each)
        if place == begin:
            return i
        if begin < place < begin + own_bytes(each):
            raise RefusedError("a view does not begin where its array begins")
    return None


def step_work(step: Callable[[], object], arrays: Sequence[Array]) -> Work | None:
    """The work of a step as a function of other arrays; None if it can only work on its own.

    Parameters
    ----------
    step : function without arguments
        A step that is bound to some of ``arrays``, or to views of them.
    arrays : sequence of arrays
        Contiguous arrays, no two of which share memory. The function takes others of the same shapes and dtypes in the
        same order.

    Examples
    --------
    >>> import functools
    >>> x, y = np.arange(3), np.zeros(3, int)
    >>> work = step_work(functools.partial(np.add, x, 1, y), [x, y])
    >>> out = np.zeros(3, int)
    >>> work([np.array([5, 6, 7]), out])
    array([6, 7, 8])
    """
    try:
        if isinstance(step, PlainStep):
            return step.work(arrays)
        return _work_of_partial(step, arrays) if isinstance(step, functools.partial) else None
    except RefusedError:
        return None


def _work_of_partial(step: functools.partial[object], arrays: Sequence[Array]) -> Work | None:
    if step.keywords:
        return None
    function, values, kind = step.func, [*step.args], type(arrays[0])
    owner = getattr(function, "__self__", None)
    if isinstance(owner, kind):  # the method of an array, which holds that array
        function, values = getattr(kind, step.func.__name__), [owner, *values]
    elif not hasattr(function, "nin"):
        return None
    views = [_view(arrays, value) if isinstance(value, kind) else None for value in values]
    constants = [value if view is None else None for value, view in zip(values, views)]
    return lambda others: function(*[value if view is None else view(others)
                                     for value, view in zip(constants, views)])


def _view(arrays: Sequence[Array], array: Array) -> Callable[[Sequence[Array]], Array] | None:
    """A function of arrays like ``arrays`` that returns the view of one of them that corresponds to ``array``; None if
    ``array`` is a view of none of them."""
    number = index_at(arrays, array)
    if number is None:
        return None
    base, shape = arrays[number], array.shape
    if array.dtype != base.dtype or not array.flags.c_contiguous or array.size != base.size:
        raise RefusedError("a view is no reshaped array")
    return operator.itemgetter(number) if shape == base.shape else lambda others: others[number].reshape(shape)


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
