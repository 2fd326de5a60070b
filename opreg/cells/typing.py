"""Types for annotations: arguments that functions accept as a tensor, a number, a dtype, a shape or axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ..typing import DTypeLike, Number, ShapeLike
from .dtype import DType
from .tensor_base import TensorBase

__all__ = ["AnyShape", "ArrayLike", "Axes", "Number", "Sizes", "TensorDType", "TensorLike"]

#: An argument that functions convert to a tensor: a tensor, with values or of a trace, another array or a scalar.
ArrayLike: TypeAlias = TensorBase | NDArray | np.ndarray | Number

#: A TensorLike, or a nesting of these.
TensorLike: TypeAlias = ArrayLike | list[Any] | tuple[Any, ...]

#: A dtype as a caller gives it, or a `DType`; None means the function's default.
TensorDType: TypeAlias = DTypeLike | DType

#: A shape as a caller gives it: one length, several, or a tensor of them.
AnyShape: TypeAlias = ShapeLike | TensorBase | np.ndarray

#: Axes as a caller gives them: one, or its tensor, or several; None means all.
Axes: TypeAlias = int | Sequence[int] | TensorBase | None

#: Lengths along the axes of windows and images: one for all of them, or one for each.
Sizes: TypeAlias = int | Sequence[int]
