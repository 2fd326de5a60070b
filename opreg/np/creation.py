"""Functions that make arrays of ``mx.np``; the default dtype is float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from opreg.core.settings import dimensions
from opreg.errors import ArgumentError, as_op_error
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray
from opreg.typing import DTypeLike

from .values import ndarray, new_array

__all__ = ["array", "zeros", "ones", "full", "empty", "arange", "linspace", "logspace", "eye", "identity", "indices",
           "tri", "hanning", "hamming", "blackman"]


def array(object: Any, dtype: DTypeLike = None, ctx: Context | None = None) -> ndarray:
    """An array holding a copy of values.

    Parameters
    ----------
    object : array, sequence or number
        The values.
    dtype : dtype, optional
        The dtype; by default an array's own, and float32 for lists and numbers.
    ctx : Context, optional
        The device; the current context by default.

    Examples
    --------
    >>> array([[1, 2], [3, 4]]).dtype, array(np.arange(2)).dtype
    (dtype('float32'), dtype('int64'))
    """
    if ctx is None and isinstance(object, NDArray):
        ctx = object.context
    return new_array(object, ctx, dtype)


def _computed(name: str, *args: Any, **keywords: Any) -> np.ndarray:
    """The array of a function of NumPy, whose errors are also of opreg."""
    try:
        result: np.ndarray = getattr(np, name)(*args, **keywords)
    except (TypeError, ValueError) as error:
        raise as_op_error(error, f"np.{name}") from None
    return result


def full(shape: Any, fill_value: Any, dtype: DTypeLike = None, order: str = "C", ctx: Context | None = None,
         out: Any = None) -> Any:
    """An array filled with one value; only the order C is supported.

    The dtype is by default that of an array or a bool, and float32 for other numbers.

    Examples
    --------
    >>> full((), 7), full((2,), True)
    (array(7.), array([ True,  True]))
    """
    if order != "C":
        raise NotImplementedError(f"full: expected order 'C', got {order!r}")
    if isinstance(fill_value, NDArray):
        dtype, fill_value = dtype or fill_value.dtype, fill_value.asnumpy()
    elif isinstance(fill_value, bool):
        dtype = dtype or np.bool_
    host = _computed("full", dimensions("full: shape", shape), fill_value, np.float32 if dtype is None else dtype)
    result = new_array(host, ctx)
    if out is not None:
        out[...] = result
    return result if out is None else out


def zeros(shape: Any, dtype: DTypeLike = None, order: str = "C", ctx: Context | None = None) -> Any:
    """Zeros.

    Examples
    --------
    >>> zeros((2, 0)).shape
    (2, 0)
    """
    return full(shape, 0, dtype, order, ctx)


def ones(shape: Any, dtype: DTypeLike = None, order: str = "C", ctx: Context | None = None) -> Any:
    """Ones."""
    return full(shape, 1, dtype, order, ctx)


def empty(shape: Any, dtype: DTypeLike = None, order: str = "C", ctx: Context | None = None) -> Any:
    """An array of unspecified content."""
    return full(shape, 0, dtype, order, ctx)


def _call_numpy(name: str, dtype: DTypeLike, ctx: Context | None, *args: Any, **keywords: Any) -> ndarray:
    host = _computed(name, *args, **keywords)
    return new_array(host, ctx, np.float32 if dtype is None else dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: DTypeLike = None, ctx: Context | None = None) -> Any:
    """Values from ``start`` to before ``stop``, or from 0 to before ``start``.

    Examples
    --------
    >>> arange(3)
    array([0., 1., 2.])
    """
    ends = (0, start) if stop is None else (start, stop)
    return _call_numpy("arange", dtype, ctx, *ends, step)


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: DTypeLike = None, axis: int = 0, ctx: Context | None = None) -> Any:
    """``num`` evenly spaced values, and with ``retstep`` their distance."""
    result = _call_numpy("linspace", dtype, ctx, start, stop, num, endpoint, axis=axis)
    step = (stop - start) / ((num - 1 if endpoint else num) or 1)
    return (result, step) if retstep else result


def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0,
             dtype: DTypeLike = None, axis: int = 0, ctx: Context | None = None) -> Any:
    """``num`` elements whose logarithms are evenly spaced."""
    return _call_numpy("logspace", dtype, ctx, start, stop, num, endpoint, base, axis=axis)


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = None, ctx: Context | None = None
        ) -> Any:
    """Ones on the k-th diagonal, zeros elsewhere."""
    if min(N, N if M is None else M) < 0:
        raise ArgumentError(f"np.eye: expected no negative lengths, got N={N}, M={M}")
    return _call_numpy("eye", dtype, ctx, N, M, k)


def identity(n: int, dtype: DTypeLike = None, ctx: Context | None = None) -> Any:
    """Ones on the diagonal, zeros elsewhere."""
    return eye(n, dtype=dtype, ctx=ctx)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = None, ctx: Context | None = None) -> Any:
    """Ones on and below the k-th diagonal, zeros elsewhere."""
    return _call_numpy("tri", dtype, ctx, N, M, k)


def indices(dimensions: Any, dtype: DTypeLike = np.int32, ctx: Context | None = None) -> Any:
    """The indices of a grid, along each axis."""
    return _call_numpy("indices", dtype, ctx, tuple(dimensions))


def hanning(M: int, dtype: DTypeLike = None, ctx: Context | None = None) -> Any:
    """The Hann window."""
    return _call_numpy("hanning", dtype, ctx, M)


def hamming(M: int, dtype: DTypeLike = None, ctx: Context | None = None) -> Any:
    """The Hamming window."""
    return _call_numpy("hamming", dtype, ctx, M)


def blackman(M: int, dtype: DTypeLike = None, ctx: Context | None = None) -> Any:
    """The Blackman window."""
    return _call_numpy("blackman", dtype, ctx, M)
