"""Functions that make arrays: ``nd.zeros``, ``nd.arange``, … with the signatures of MXNet's."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from opreg.errors import ArgumentError
from opreg.registry import ops
from opreg.spec import as_dtype

from .context import Context, current_context
from .ndarray import NDArray, array

__all__ = ["array", "zeros", "ones", "full", "empty", "arange", "linspace", "eye", "concatenate", "moveaxis",
           "onehot_encode", "waitall", "from_numpy", "from_dlpack", "to_dlpack_for_read", "to_dlpack_for_write"]


def _place(shape: Any, ctx: Context | None, dtype: Any) -> tuple[tuple[int, ...], Context, np.dtype]:
    shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(dim) for dim in shape)
    if any(dim < 0 for dim in shape):
        raise ArgumentError(f"shape {shape}: dimensions cannot be negative")
    return shape, current_context() if ctx is None else Context(ctx), as_dtype("float32" if dtype is None else dtype)


def _made(data: Any, ctx: Context, out: NDArray | None = None) -> NDArray:
    if out is None:
        return NDArray(data, ctx)
    out[...] = NDArray(data, ctx)
    return out


def zeros(shape: Any, ctx: Context | None = None, dtype: Any = None, stype: Any = None, out: Any = None,
          **_: Any) -> NDArray:
    """Zeros; float32 by default.

    Examples
    --------
    >>> zeros((2, 3)).shape
    (2, 3)
    """
    shape, ctx, dtype = _place(shape, ctx, dtype)
    return _made(ctx.backend.zeros(shape, dtype, ctx.device_id), ctx, out)


def ones(shape: Any, ctx: Context | None = None, dtype: Any = None, out: Any = None, **_: Any) -> NDArray:
    """Ones; float32 by default."""
    return full(shape, 1, ctx, dtype, out)


def full(shape: Any, val: float, ctx: Context | None = None, dtype: Any = None, out: Any = None) -> NDArray:
    """An array filled with one number; float32 by default.

    Examples
    --------
    >>> full(2, 7).asnumpy()
    array([7., 7.], dtype=float32)
    """
    shape, ctx, dtype = _place(shape, ctx, dtype)
    data = ctx.backend.empty(shape, dtype, ctx.device_id)
    data[...] = val
    return _made(data, ctx, out)


def empty(shape: Any, ctx: Context | None = None, dtype: Any = None, stype: Any = None) -> NDArray:
    """An array of unspecified content; float32 by default."""
    shape, ctx, dtype = _place(shape, ctx, dtype)
    return NDArray(ctx.backend.empty(shape, dtype, ctx.device_id), ctx)


def arange(start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1, infer_range: bool = False,
           ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """Numbers from ``start`` (0 when only one is given) up to but not ``stop``, each ``repeat`` times; float32.

    Examples
    --------
    >>> arange(3).asnumpy()
    array([0., 1., 2.], dtype=float32)
    """
    if stop is None:
        start, stop = 0, start
    host = np.repeat(np.arange(start, stop, step, dtype=np.float64), repeat)
    return array(host, ctx, dtype)


def linspace(start: float, stop: float, num: int, endpoint: bool = True, ctx: Context | None = None,
             dtype: Any = None) -> NDArray:
    """``num`` evenly spaced numbers; float32 by default."""
    return array(np.linspace(start, stop, num, endpoint), ctx, dtype)


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: Any = None, **_: Any) -> NDArray:
    """Ones on the k-th diagonal, zeros elsewhere; float32 by default."""
    return array(np.eye(N, M or None, k), ctx, dtype)


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Arrays joined along an existing axis."""
    if not arrays:
        raise ArgumentError("concatenate: expected at least one array")
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    return ops.Concat(*arrays, dim=axis, num_args=len(arrays))


def moveaxis(tensor: NDArray, source: int | Sequence[int], destination: int | Sequence[int]) -> NDArray:
    """The array with some axes in other places."""
    # NumPy works out the permutation on an array whose dimensions are the axes' own numbers.
    axes = np.moveaxis(np.broadcast_to(np.int8(0), range(1, tensor.ndim + 1)), source, destination).shape
    axes = tuple(axis - 1 for axis in axes)
    return ops.transpose(tensor, axes=axes)


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """Rows of zeros with a one at each index, stored in ``out``."""
    out[...] = ops.one_hot(indices, depth=out.shape[1])
    return out


def waitall() -> None:
    """Wait until every device has computed everything."""
    from opreg import backend as backends

    for found in backends.active():
        found.synchronize()


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True) -> NDArray:
    """An array over a NumPy array's memory, or a copy of it."""
    as_dtype(ndarray.dtype)
    return NDArray(ndarray if zero_copy else ndarray.copy(), Context("cpu"))


def from_dlpack(source: Any) -> NDArray:
    """An array over the memory of anything that speaks DLPack, on its device."""
    kind = source.__dlpack_device__()[0] if hasattr(source, "__dlpack_device__") else 1
    ctx = Context("gpu" if int(kind) == 2 else "cpu")
    return NDArray(ctx.xp.from_dlpack(source), ctx)


def to_dlpack_for_read(data: NDArray) -> Any:
    """A DLPack capsule sharing an array's memory."""
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> Any:
    """A DLPack capsule sharing an array's memory."""
    return data.to_dlpack_for_write()
