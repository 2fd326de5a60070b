"""Conversion of arguments for functions with NumPy's names: Python values become tensors of 32 bits."""

from __future__ import annotations

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ...cells.tensor import Tensor, tensor
from ...cells.tensor_base import TensorBase, is_number
from ...cells.typing import Axes, Number, TensorDType, TensorLike
from ..ops.lift import as_floating, axes, one_axis

__all__ = ["as_angle", "as_operand", "as_real", "as_tensor", "axes_of", "in_dtype", "made",
           "static_values"]

_INT32, _INT64, _FLOAT16, _FLOAT32, _FLOAT64 = (np.dtype(name) for name in (
    "int32", "int64", "float16", "float32", "float64"))


def _has_dtype(value: object) -> bool:
    """Whether a value is an array, or a list that contains one."""
    if isinstance(value, (list, tuple)):
        return any(map(_has_dtype, value))
    return isinstance(value, (TensorBase, NDArray, np.ndarray, np.generic))


def as_tensor(value: TensorLike) -> Tensor:
    """A tensor; Python integers become int32, floats float32."""
    x = tensor(value)
    if x._dt in (_INT64, _FLOAT64) and not _has_dtype(value):
        return x._cast(_INT32 if x._dt == _INT64 else _FLOAT32)
    return x


def made(value: TensorLike, dtype: TensorDType) -> Tensor:
    """A tensor of a dtype, if one is given; Python numbers are rounded once."""
    if dtype is not None and not _has_dtype(value):
        return tensor(value, dtype)
    return in_dtype(as_tensor(value), dtype)


def as_operand(value: TensorLike) -> Tensor | Number:
    """A Python number unchanged, since it takes the dtype of the other operand; other values as a tensor."""
    return value if is_number(value) else as_tensor(value)


def as_real(value: TensorLike) -> Tensor:
    """A floating-point tensor."""
    return as_floating(as_tensor(value))


def as_angle(value: TensorLike) -> Tensor:
    """A floating-point tensor; integers of 8 bits and booleans become float16, as in MindSpore and NumPy."""
    x = as_tensor(value)
    return x._cast(_FLOAT16) if x._dt.itemsize == 1 else as_floating(x)


def in_dtype(x: Tensor, dtype: TensorDType) -> Tensor:
    """The tensor, cast to ``dtype`` if that is given."""
    return x if dtype is None else x.astype(dtype)


def axes_of(axis: Axes, rank: int, what: str) -> tuple[int, ...]:
    """Axes counted from the front; None means all."""
    chosen = axes(axis)
    if chosen is None:
        return tuple(range(rank))
    return tuple(one_axis(position, rank, what) for position in (chosen if isinstance(chosen, tuple) else (chosen,)))


def static_values(value: TensorLike) -> np.ndarray:
    """The values of an argument that decides a shape."""
    return as_tensor(value).asnumpy()
