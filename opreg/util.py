"""Switches of a thread for the meaning of a zero in a shape and for arrays of NumPy's interface, and facts about the
machine.

In a symbol's shape a 0 is by default an unknown dimension, and ``()`` an unknown shape, as in MXNet. Under
``np_shape`` they have NumPy's meaning, an empty dimension and the shape of a scalar; -1 and None stand for unknown
ones. Arrays have zeros and empty shapes in either case.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .core.mode import MODE, Mode, Scope, is_np_array, is_np_shape
from .core.named_errors import name_errors
from .errors import ArgumentError, ShapeError
from .ndarray.context import Context, gpu_memory_info, num_gpus
from .ndarray.ndarray import NDArray, array

__all__ = ["np_shape", "is_np_shape", "set_np_shape", "use_np_shape", "is_np_array", "np_array", "set_np", "reset_np",
           "use_np", "use_np_array", "getenv", "setenv", "get_gpu_count", "get_gpu_memory",
           "get_cuda_compute_capability", "set_module", "split_data", "split_and_load"]

F = TypeVar("F", bound=Callable[..., Any])


class _Switch(Scope):
    """A scope that sets one attribute of the mode to True or False."""

    def __init__(self, active: bool = True):
        self._active = bool(active)
        self._key = *self._chosen, self._active

    def _next(self, mode: Mode) -> Mode:
        return mode.but(**dict.fromkeys(self._chosen, self._active))

    def _new_scope(self) -> _Switch:
        return type(self)(self._active)


def set_np_shape(active: bool) -> bool:
    """Set whether a 0 in the shapes of symbols is an empty dimension, or else an unknown one; returns the old
    setting."""
    before, MODE.np_shape = MODE.np_shape, bool(active)
    return before


class np_shape(_Switch):
    """A context manager under which a 0 in the shape of a symbol is an empty dimension.

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

    _chosen = ("np_shape",)


def use_np_shape(function: F) -> F:
    """The function, coroutine, or the methods of the class, called under ``np_shape``."""
    return _in_scope(np_shape, function)


# ------------------------------------------------------------------------------ the interface of NumPy


class np_array(_Switch):
    """A context manager under which Gluon makes arrays of ``mx.np``.

    Examples
    --------
    >>> with np_array():
    ...     is_np_array()
    True
    """

    _chosen = ("np_array",)


def set_np(shape: bool = True, array: bool = True, dtype: bool = False) -> None:
    """Turn on NumPy's shapes, and arrays of ``mx.np`` in Gluon.

    Raises
    ------
    ArgumentError
        For arrays without the shapes.
    """
    if array and not shape:
        raise ArgumentError("set_np: arrays of np have NumPy's shapes: shape=False with array=True is not possible")
    MODE.np_shape, MODE.np_array = bool(shape), bool(array)


def reset_np() -> None:
    """Turn off the settings of ``set_np``."""
    set_np(False, False)


def _in_scope(scope: Callable[[], Any], function: F) -> F:
    """The function, or the methods of the class, called in a scope."""
    if not isinstance(function, type):
        return scope()(function)  # the decorated function has the same parameters
    for name in dir(function):
        method = inspect.getattr_static(function, name)
        is_own = name in vars(function) and not name.startswith("__")
        if inspect.isfunction(method) and (is_own or not name.startswith("_") or name in ("__init__", "__call__")):
            setattr(function, name, scope()(method))
    return function


def use_np_array(function: F) -> F:
    """The function, or the methods of the class, called under ``np_array``."""
    return _in_scope(np_array, function)


def use_np(function: F) -> F:
    """The function, or the methods of the class, inherited ones too, called under ``np_array`` and ``np_shape``.

    Examples
    --------
    >>> @use_np
    ... def asked():
    ...     return is_np_array(), is_np_shape()
    >>> asked(), is_np_array()
    ((True, True), False)
    """
    return _in_scope(np_shape, _in_scope(np_array, function))


# ------------------------------------------------------------------------------------------ the machine


def getenv(name: str) -> str | None:
    """An environment variable, or None."""
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set an environment variable, or with None unset it."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def set_module(module: str) -> Callable[[F], F]:
    """A decorator that says where a function or class is found."""

    def placed(function: F) -> F:
        function.__module__ = module
        return function

    return placed


def get_gpu_count() -> int:
    """Number of GPUs."""
    return num_gpus()


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """Free and total bytes of a GPU."""
    return gpu_memory_info(gpu_dev_id)


def get_cuda_compute_capability(ctx: Context) -> int:
    """The compute capability of a GPU, 90 for 9.0.

    Raises
    ------
    ArgumentError
        For a context that is no GPU.
    """
    if ctx.device_type != "gpu":
        raise ArgumentError(f"get_cuda_compute_capability: expected a GPU, got {ctx}")
    return int(ctx.xp.cuda.Device(ctx.device_id).compute_capability)


def __dir__() -> list[str]:
    return sorted(__all__)


def split_data(data: NDArray, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """Parts of an array along an axis; where they cannot be even, the first ones are longer by one.

    Raises
    ------
    ShapeError
        When there are too few samples, or, with ``even_split``, parts would not be even.

    Examples
    --------
    >>> from opreg import nd
    >>> [each.shape for each in split_data(nd.ones((5, 2)), 2, even_split=False)]
    [(3, 2), (2, 2)]
    """
    count = data.shape[batch_axis]
    if count < num_slice or (even_split and count % num_slice):
        raise ShapeError(f"split_data: {count} samples along axis {batch_axis} cannot be divided into {num_slice} "
                         f"{'even ' if even_split else ''}parts")
    length, more = divmod(count, num_slice)
    ends = [length * (i + 1) + min(i + 1, more) for i in range(num_slice)]
    return [data[(slice(None),) * batch_axis + (slice(start, end),)] for start, end in zip([0, *ends], ends)]


def split_and_load(data: Any, ctx_list: Sequence[Context], batch_axis: int = 0, even_split: bool = True
                   ) -> list[NDArray]:
    """Parts of an array along an axis, one on each context.

    Examples
    --------
    >>> from opreg import cpu, nd
    >>> [each.asnumpy().tolist() for each in split_and_load([1, 2, 3, 4], [cpu(0), cpu(1)])]
    [[1.0, 2.0], [3.0, 4.0]]
    """
    values = data if isinstance(data, NDArray) else array(data, ctx=ctx_list[0])
    return [each.as_in_context(ctx) for each, ctx in zip(split_data(values, len(ctx_list), batch_axis, even_split),
                                                         ctx_list)]


name_errors(__name__, globals(), __all__)
