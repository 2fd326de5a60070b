"""Conversion of arguments: numbers and lists to tensors, and tensors to a common dtype."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Sequence

import numpy as np

from opreg.ndarray.ndarray import NDArray, numbers_of

from ...cells import dtype as dtypes
from ...cells.tensor import Tensor
from ...cells.tensor import operand as tensor
from ...cells.tensor_base import TensorBase, is_number
from ...cells.typing import AnyShape, Axes, Number, TensorDType, TensorLike
from ...core.registry import ops
from ...core.settings import dimensions
from ...core.spec import as_dtype, is_floating
from ...core.tracing import TraceError
from ...errors import ArgumentError, ShapeError

__all__ = ["axes", "binary", "as_floating", "like", "one_axis", "plain", "common_dtype", "rank_of", "scalar",
           "shape_of", "tensor", "to_common_dtype"]

_PYTHON: dict[str, Callable[..., Tensor]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv, "mod": operator.mod,
    "pow": operator.pow, "floordiv": operator.floordiv, "eq": operator.eq, "ne": operator.ne, "gt": operator.gt,
    "ge": operator.ge, "lt": operator.lt, "le": operator.le, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor}


def plain(number: Number) -> float:
    """A number as a Python int or float."""
    return int(number) if isinstance(number, (numbers.Integral, np.bool_)) else float(number)


def scalar(number: Number | np.ndarray, dtype: np.dtype) -> Tensor:
    """A number as a tensor without axes; an integer that does not fit wraps around, as in arithmetic."""
    return tensor(numbers_of(number, dtype))


def binary(name: str, x: TensorLike, y: TensorLike) -> Tensor:
    """Apply the Python operator of that name to tensors, or to a tensor and a number."""
    left = x if is_number(x) else tensor(x)
    right = y if is_number(y) else tensor(y)
    return _PYTHON[name](tensor(left) if is_number(left) and is_number(right) else left, right)


def as_floating(x: TensorLike) -> Tensor:
    """A floating-point tensor; integers and booleans become float32."""
    x = tensor(x)
    return x if is_floating(x._dt) else x._cast(np.dtype(np.float32))


def common_dtype(values: Sequence[Tensor | Number]) -> np.dtype:
    """The common dtype of tensors and numbers."""
    common: np.dtype | None = None
    for value in values:
        if isinstance(value, TensorBase):
            common = value._dt if common is None else dtypes.promote(common, value._dt)
    if common is None:
        return tensor(values[0])._dt
    for value in values:
        if is_number(value):
            common = dtypes.promote_number(common, value)
    return common


def rank_of(x: TensorBase) -> int | None:
    """The number of axes; None in a trace with unknown shapes."""
    try:
        return len(x.shape)
    except TraceError:
        return None


def to_common_dtype(*values: TensorLike, real: bool = False) -> list[Tensor]:
    """Tensors and numbers as tensors of their common dtype, a floating one with ``real``."""
    if len(values) == 2:  # the most frequent case: two tensors of one dtype
        x, y = values
        if isinstance(x, TensorBase) and isinstance(y, TensorBase):
            dtype = x._dt
            if dtype is y._dt and (not real or is_floating(dtype)):
                return [x, y]  # type: ignore[list-item]
    operands = [value if is_number(value) else tensor(value) for value in values]
    common = common_dtype(operands)
    if real and not is_floating(common):
        common = np.dtype(np.float32)
    return [operand._cast(common) if isinstance(operand, TensorBase) else scalar(operand, common)
            for operand in operands]


def like(value: TensorLike, x: Tensor) -> Tensor:
    """A tensor or number as a tensor with the dtype of ``x``."""
    return scalar(value, x._dt) if is_number(value) else tensor(value)._cast(x._dt)


def axes(axis: Axes, what: str = "axis") -> int | tuple[int, ...] | None:
    """Axes as operators expect them: None for all, an int or its tensor, or a tuple; () means all."""
    if axis is None or (isinstance(axis, (tuple, list)) and not axis):
        return None
    if isinstance(axis, TensorBase):
        axis = operator.index(axis)  # type: ignore[arg-type]
    if isinstance(axis, (bool, np.bool_)) or not isinstance(axis, (int, np.integer, tuple, list)):
        raise ArgumentError(f"{what} must be an int, a tuple of ints or None, got {axis!r}")
    return tuple(map(int, axis)) if isinstance(axis, (tuple, list)) else int(axis)


def one_axis(axis: int | TensorBase, rank: int, what: str) -> int:
    """An axis, counted from the front."""
    if isinstance(axis, TensorBase):
        axis = operator.index(axis)  # type: ignore[arg-type]
    if isinstance(axis, (bool, np.bool_)) or not isinstance(axis, (int, np.integer)):
        raise ArgumentError(f"{what}: axis must be an int, got {type(axis).__name__}")
    if not -rank <= axis < rank:
        raise ShapeError(f"{what}: axis {axis} does not exist among {rank} axes")
    return int(axis) % rank


def shape_of(size: AnyShape) -> tuple[int, ...]:
    """A shape given as an int, a tuple or list, or a tensor with values."""
    return dimensions("shape", tensor(size).asnumpy() if isinstance(size, (TensorBase, NDArray)) else size, -math.inf)


def whole_dtype(dtype: TensorDType, default: np.dtype | type[np.generic]) -> np.dtype:
    """A dtype by any of its names, or the default."""
    return np.dtype(default) if dtype is None else as_dtype(dtype)


def as_bool(x: TensorLike) -> Tensor:
    """A tensor as booleans."""
    x = tensor(x)
    return x if x._dt.kind == "b" else ops._npi_not_equal_scalar(x, scalar=0.0)
