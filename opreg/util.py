"""Switches of a thread, what a zero in a shape means; and questions about the machine.

For symbols a 0 is a dimension that is not known, and ``()`` a shape of which nothing is, as in MXNet by default. Under
``np_shape`` they are what they are in NumPy, an empty dimension and the shape of a number; unknown are -1 and None.
Arrays have zeros and empty shapes in either case.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from .core.mode import MODE
from .errors import ArgumentError, ShapeError
from .ndarray.context import Context, gpu_memory_info, num_gpus
from .ndarray.ndarray import NDArray, array

__all__ = ["np_shape", "is_np_shape", "set_np_shape", "use_np_shape", "is_np_array", "np_array", "set_np", "reset_np",
           "use_np", "use_np_array", "getenv", "setenv", "get_gpu_count", "get_gpu_memory",
           "get_cuda_compute_capability", "set_module", "split_data", "split_and_load"]

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


# ------------------------------------------------------------------------------ the interface of NumPy


def is_np_array() -> bool:
    """Whether operators return arrays of ``mx.np``; they never do here."""
    return False


def _refused(name: str) -> NoReturn:
    raise ArgumentError(f"util.{name}: the interface mx.np is no part of opreg; nd has operators, and NumPy's "
                        "functions take arrays. np_shape and use_np_shape are there")


def np_array(active: bool = True) -> np_shape:
    """Refused, but for ``np_array(False)``, which changes nothing."""
    if active:
        _refused("np_array")
    return np_shape(is_np_shape())


def set_np(shape: bool = True, array: bool = True) -> None:
    """Turn on NumPy's shapes; ``array=True`` is refused."""
    if array:
        _refused("set_np")
    set_np_shape(shape)


def reset_np() -> None:
    """Turn off what ``set_np`` turned on."""
    set_np_shape(False)


def _refusing(function: F, name: str) -> F:
    """The function or class, refused when it is called: what else is in its file can be used."""

    @functools.wraps(function, updated=())
    def refused(*args: Any, **keywords: Any) -> NoReturn:
        _refused(name)

    if isinstance(function, type):
        return type(function)(function.__name__, (function,), {"__init__": refused})
    return refused  # type: ignore[return-value]


def use_np(function: F) -> F:
    """A function or class that is written for ``mx.np``, refused when it is called.

    Examples
    --------
    >>> @use_np
    ... def half(x):
    ...     return x / 2
    >>> half(1)
    Traceback (most recent call last):
        ...
    opreg.errors.ArgumentError: util.use_np: the interface mx.np is no part of opreg; ...
    """
    return _refusing(function, "use_np")


def use_np_array(function: F) -> F:
    """A function or class that is written for ``mx.np``, refused when it is called."""
    return _refusing(function, "use_np_array")


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
    """How many GPUs there are."""
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
