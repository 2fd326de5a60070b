"""Tensors made of nothing but a shape and a number."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ...core.registry import get, ops
from ...core.spec import as_dtype
from ...errors import ArgumentError
from ..tensor_base import is_number
from ..trace import create
from .lift import one_axis, scalar, shape_of, tensor, together, whole_dtype

__all__ = ["arange", "eye", "fill", "full", "full_like", "linspace", "meshgrid", "one_hot", "ones", "ones_like",
           "range", "zeros", "zeros_like"]


def _number(value: Any) -> Any:
    """A number given as one or as a tensor of one that is known."""
    return value.asnumpy().item() if hasattr(value, "asnumpy") else value


def zeros(size: Any, dtype: Any = None) -> Any:
    """Zeros; float32 by default.

    Examples
    --------
    >>> print(zeros((2,)))
    [0. 0.]
    """
    return create(get("_zeros"), shape=shape_of(size), dtype=whole_dtype(dtype, np.float32))


def ones(shape: Any, dtype: Any = None) -> Any:
    """Ones; float32 by default."""
    return create(get("_ones"), shape=shape_of(shape), dtype=whole_dtype(dtype, np.float32))


def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    """One number everywhere; by default int64 for an integer and float32 for a float."""
    default = np.float32 if isinstance(_number(fill_value), float) else np.int64
    return fill(whole_dtype(dtype, default), size, fill_value)


def fill(type: Any, shape: Any, value: Any) -> Any:
    """One number everywhere, of that dtype."""
    dtype, dims = as_dtype(type), shape_of(shape)
    if not is_number(value) and not hasattr(value, "asnumpy"):
        raise TypeError(f"fill: expected a number, got {value.__class__.__name__}")
    number = _number(value)
    if dtype.kind == "b":
        return create(get("_ones" if number else "_zeros"), shape=dims, dtype=dtype)
    return create(get("_full"), shape=dims, dtype=dtype, value=float(number))


def _like(input: Any, op: str, dtype: Any) -> Any:
    x = tensor(input)
    return get(op)(x if dtype is None else x.astype(dtype))


def zeros_like(input: Any, *, dtype: Any = None) -> Any:
    """Zeros in the shape of a tensor, and in its dtype or another."""
    return _like(input, "zeros_like", dtype)


def ones_like(input: Any, *, dtype: Any = None) -> Any:
    """Ones in the shape of a tensor, and in its dtype or another."""
    return _like(input, "ones_like", dtype)


def full_like(input: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    """One number in the shape of a tensor, and in its dtype or another."""
    x = tensor(input)
    return ops._npi_full_like(x, fill_value=float(_number(fill_value)), dtype=whole_dtype(dtype, x._dt))


def eye(n: int, m: int | None = None, dtype: Any = None) -> Any:
    """Ones on the diagonal of ``n`` rows and ``m`` columns, as many as rows by default."""
    return create(get("_eye"), N=int(n), M=int(n if m is None else m), dtype=whole_dtype(dtype, np.float32))


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Any:
    """Numbers from ``start`` to before ``end``, or from 0 to before ``start``; int64 where all given are integers.

    Examples
    --------
    >>> print(arange(1, 7, 2))
    [1 3 5]
    """
    begin, stop, step = (0, _number(start), _number(step)) if end is None else map(_number, (start, end, step))
    default = np.float32 if any(isinstance(each, float) for each in (begin, stop, step)) else np.int64
    if step == 0:
        raise ArgumentError("arange: step must not be zero")
    found = whole_dtype(dtype, default)
    if (stop - begin) / step <= 0:
        return zeros((0,), found)
    return create(get("_arange"), start=begin, stop=stop, step=step, dtype=found)


def range(start: Any, end: Any, step: Any, maxlen: int = 1000000) -> Any:
    """Numbers from ``start`` to before ``end``; see ``arange``."""
    return arange(start, end, step)


def linspace(start: Any, end: Any, steps: int) -> Any:
    """So many numbers at equal distances from ``start`` to ``end``, both included; float32."""
    return create(get("_linspace"), start=float(_number(start)), stop=float(_number(end)), num=int(steps),
                  dtype=np.dtype(np.float32))


def meshgrid(*inputs: Any, indexing: str = "xy") -> tuple[Any, ...]:
    """Vectors repeated to a grid: each is the coordinates of all places along one axis.

    Parameters
    ----------
    indexing : {"xy", "ij"}
        With "xy" the first vector lies along the second axis, and the second along the first.
    """
    given = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else inputs
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    vectors = [tensor(each) for each in given]
    order = list(builtins.range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    shape = tuple(vectors[i].size for i in order)
    places = {i: at for at, i in enumerate(order)}
    wide = [each.reshape(tuple(each.size if at == places[i] else 1 for at in builtins.range(len(shape))))
            for i, each in enumerate(vectors)]
    return tuple(ops.broadcast_to(each, shape=shape) for each in wide)


def one_hot(indices: Any, depth: int, on_value: Any = 1, off_value: Any = 0, axis: int = -1) -> Any:
    """For each index, ``off_value`` in ``depth`` places and ``on_value`` at that place, along a new axis."""
    index = tensor(indices)
    hot = ops.one_hot(index, depth=int(_number(depth)), dtype=np.dtype(np.float32))
    axis = one_axis(axis, index.ndim + 1, "one_hot")
    if axis != index.ndim:
        order = list(builtins.range(index.ndim))
        hot = hot.transpose((*order[:axis], index.ndim, *order[axis:]))
    on, off = together(on_value, off_value) if not (is_number(on_value) and is_number(off_value)) else \
        _numbers(on_value, off_value)
    return ops._npi_where(hot, on, off)


def _numbers(on: Any, off: Any) -> tuple[Any, Any]:
    dtype = np.dtype(np.float32 if isinstance(on, float) or isinstance(off, float) else np.int64)
    return scalar(on, dtype), scalar(off, dtype)
