"""Arguments of MindSpore's functions with NumPy's names: what Python gives becomes tensors of 32 bits."""

from __future__ import annotations

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ...cells.tensor import Tensor, tensor
from ...cells.tensor_base import TensorBase, is_number
from ...cells.typing import Axes, Number, TensorDType, TensorLike
from ..ops.lift import axes, floating, one_axis

__all__ = ["as_operand", "as_real", "as_tensor", "axes_of", "in_dtype", "known"]

_INT32, _INT64, _FLOAT32, _FLOAT64 = (np.dtype(name) for name in ("int32", "int64", "float32", "float64"))


def _has_dtype(value: object) -> bool:
    """Whether something is an array, or a list with one in it."""
    if isinstance(value, (list, tuple)):
        return any(map(_has_dtype, value))
    return isinstance(value, (TensorBase, NDArray, np.ndarray, np.generic))


def as_tensor(value: TensorLike) -> Tensor:
    """A tensor; Python's own integers are int32 and its floats float32."""
    x = tensor(value)
    if x._dt in (_INT64, _FLOAT64) and not _has_dtype(value):
        return x._cast(_INT32 if x._dt == _INT64 else _FLOAT32)
    return x


def as_operand(value: TensorLike) -> Tensor | Number:
    """A number of Python's as it is, which takes the dtype of what is beside it; all else as a tensor."""
    return value if is_number(value) else as_tensor(value)


def as_real(value: TensorLike) -> Tensor:
    """A tensor of floating-point values."""
    return floating(as_tensor(value))


def in_dtype(x: Tensor, dtype: TensorDType) -> Tensor:
    """The tensor, in the dtype that a caller asked for, if any."""
    return x if dtype is None else x.astype(dtype)


def axes_of(axis: Axes, rank: int, what: str) -> tuple[int, ...]:
    """Axes counted from the front; None means all."""
    chosen = axes(axis)
    if chosen is None:
        return tuple(range(rank))
    return tuple(one_axis(each, rank, what) for each in (chosen if isinstance(chosen, tuple) else (chosen,)))


def known(value: TensorLike) -> np.ndarray:
    """The numbers of an argument that says how wide something is."""
    return as_tensor(value).asnumpy()
