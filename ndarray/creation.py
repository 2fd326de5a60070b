"""Functions that make arrays, such as ``nd.zeros`` and ``nd.arange``, with MXNet's signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.core import array_module as backends
from opreg.core.placeholder import is_tag
from opreg.core.registry import ops
from opreg.core.settings import dimensions
from opreg.core.spec import Shape, as_dtype
from opreg.core.versions import share
from opreg.errors import ArgumentError, refuse_keywords
from opreg.typing import Array, DTypeLike, ShapeLike

from . import sparse_arrays
from .context import Context, current_context
from .function import surface
from .ndarray import NDArray, array, over

__all__ = ["array", "zeros", "ones", "full", "empty", "arange", "linspace", "eye", "concatenate", "moveaxis",
           "onehot_encode", "waitall", "from_numpy"]


def _place(shape: ShapeLike, ctx: Context | None, dtype: DTypeLike) -> tuple[Shape, Context, np.dtype]:
    shape = dimensions("shape", shape)
    return shape, current_context() if ctx is None else Context(ctx), as_dtype("float32" if dtype is None else dtype)


def _result(data: Array, ctx: Context, out: NDArray | None = None) -> NDArray:
    if out is None:
        return NDArray(data, ctx)
    out[...] = NDArray(data, ctx)
    return out


def filled_array(name: str, value: float, shape: Shape, ctx: Context, dtype: np.dtype, out: NDArray | None) -> NDArray:
    """An array whose elements are all ``value``; ``name`` is the operator that would make it."""
    if name == "_zeros":
        return _result(ctx.backend.zeros(shape, dtype, ctx.device_id), ctx, out)
    result = NDArray(ctx.backend.empty(shape, dtype, ctx.device_id), ctx)
    result[...] = value
    return _result(result._data, ctx, out)


def _refuse(function: str, keywords: dict[str, object], *more: str) -> None:
    """Raise an error for unknown keywords. ``name`` and tags are accepted, as by every operator."""
    unknown = [keyword for keyword in keywords if keyword != "name" and not is_tag(keyword)]
    refuse_keywords(function, unknown, ("shape", "ctx", "dtype", *more, "out", "name"))


def zeros(shape: ShapeLike, ctx: Context | None = None, dtype: DTypeLike = None, stype: str | None = None,
          out: NDArray | None = None, **keywords: object) -> NDArray:
    """An array of zeros; float32 by default.

    Examples
    --------
    >>> zeros((2, 3)).shape
    (2, 3)
    """
    _refuse("zeros", keywords, "stype")
    if stype not in (None, "default"):
        return sparse_arrays.zeros(stype, shape, ctx, dtype)
    return filled_array("_zeros", 0, *_place(shape, ctx, dtype), out)


def ones(shape: ShapeLike, ctx: Context | None = None, dtype: DTypeLike = None, out: NDArray | None = None,
         **keywords: object) -> NDArray:
    """An array of ones; float32 by default.

    Examples
    --------
    >>> ones((2, 2)).asnumpy()
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    _refuse("ones", keywords)
    return filled_array("_ones", 1, *_place(shape, ctx, dtype), out)


def full(shape: ShapeLike, val: float, ctx: Context | None = None, dtype: DTypeLike = None,
         out: NDArray | None = None) -> NDArray:
    """An array whose elements are all ``val``; float32 by default.

    Examples
    --------
    >>> full(2, 7).asnumpy()
    array([7., 7.], dtype=float32)
    """
    return filled_array("_full", val, *_place(shape, ctx, dtype), out)


def empty(shape: ShapeLike, ctx: Context | None = None, dtype: DTypeLike = None, stype: str | None = None) -> NDArray:
    """An array with undefined values; float32 by default.

    Examples
    --------
    >>> empty((2, 3)).shape
    (2, 3)
    """
    if stype not in (None, "default"):
        return sparse_arrays.zeros(stype, shape, ctx, dtype)
    shape, ctx, dtype = _place(shape, ctx, dtype)
    return NDArray(ctx.backend.empty(shape, dtype, ctx.device_id), ctx)


def arange(start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1, infer_range: bool = False,
           ctx: Context | None = None, dtype: DTypeLike = None) -> NDArray:
    """Values from ``start`` to below ``stop`` in steps of ``step``, each ``repeat`` times; float32 by default. With one
    argument, start is 0.

    Examples
    --------
    >>> arange(3).asnumpy()
    array([0., 1., 2.], dtype=float32)
    """
    if stop is None:
        start, stop = 0, start
    return surface("_arange")(start=start, stop=stop, step=step, repeat=repeat, dtype=dtype or "float32", ctx=ctx)


def linspace(start: float, stop: float, num: int, endpoint: bool = True, ctx: Context | None = None,
             dtype: DTypeLike = None) -> NDArray:
    """``num`` evenly spaced values from ``start`` to ``stop``; float32 by default.

    Examples
    --------
    >>> linspace(0, 1, 5).asnumpy()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return surface("_linspace")(start=start, stop=stop, num=num, endpoint=endpoint, dtype=dtype or "float32", ctx=ctx)


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: DTypeLike = None,
        **keywords: Any) -> NDArray:
    """A matrix with ones on the k-th diagonal and zeros elsewhere; float32 by default.

    Examples
    --------
    >>> eye(2, 3).asnumpy()
    array([[1., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    return surface("_eye")(N=N, M=M, k=k, dtype=dtype or "float32", ctx=ctx, **keywords)


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Join arrays along an existing axis.

    Examples
    --------
    >>> concatenate([array([1.0, 2.0]), array([3.0])]).asnumpy()
    array([1., 2., 3.], dtype=float32)
    """
    if not arrays:
        raise ArgumentError("concatenate: expected at least one array")
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    return ops.Concat(*arrays, dim=axis, num_args=len(arrays))


def moveaxis(tensor: NDArray, source: int | Sequence[int], destination: int | Sequence[int]) -> NDArray:
    """Move axes to other positions.

    Examples
    --------
    >>> moveaxis(ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    # NumPy moves the axes of an array whose shape is (1, 2, …), so the new shape is the permutation.
    axes = np.moveaxis(np.broadcast_to(np.int8(0), range(1, tensor.ndim + 1)), source, destination).shape
    axes = tuple(axis - 1 for axis in axes)
    return ops.transpose(tensor, axes=axes)


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """Store one-hot rows in ``out``: zeros with a one at each index.

    Examples
    --------
    >>> onehot_encode(array([1, 0]), zeros((2, 3))).asnumpy()
    array([[0., 1., 0.],
           [1., 0., 0.]], dtype=float32)
    """
    out[...] = ops.one_hot(indices, depth=out.shape[1])
    return out


def waitall() -> None:
    """Wait until all devices have finished all work."""
    for backend in backends.active():
        for device in range(backend.count() or 1):
            backend.synchronize(device)


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True) -> NDArray:
    """An array over the memory of a NumPy array, or with ``zero_copy=False`` a copy of it.

    Without a copy, the NumPy array becomes read-only, so that recorded values cannot change unnoticed. The result is
    writable, even if the NumPy array was read-only before, unless the memory itself is, as that of ``bytes``.

    Raises
    ------
    ArgumentError
        Without a copy, for an array that is not C-contiguous.

    Examples
    --------
    >>> host = np.ones(2, np.float32)
    >>> x = from_numpy(host)
    >>> host[0] = 5
    Traceback (most recent call last):
    ValueError: assignment destination is read-only
    """
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentError(f"from_numpy: expected a NumPy array, got {type(ndarray).__name__}")
    if not zero_copy:
        return array(ndarray, Context("cpu"), ndarray.dtype)
    as_dtype(ndarray.dtype)
    if not ndarray.flags.c_contiguous:
        raise ArgumentError("from_numpy: to share memory, the array must be C-contiguous; with zero_copy=False it is "
                            "copied")
    result = over(_writable(ndarray), Context("cpu"))
    ndarray.flags.writeable = False
    share(ndarray)
    return result


def _writable(array: np.ndarray) -> np.ndarray:
    """A writable view of an array, even of a read-only one; a read-only view if the memory itself is read-only."""
    owner, view = array, array.view(np.ndarray)
    while isinstance(owner.base, np.ndarray):  # NumPy makes a view writable if the array that owns the memory is
        owner = owner.base
    before = owner.flags.writeable
    try:
        owner.flags.writeable = view.flags.writeable = True
    except ValueError:
        return view
    owner.flags.writeable = before
    return view
