"""Types for annotations of functions of tensors: what they take for a tensor, a number, a dtype, a shape and axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ..typing import DTypeLike, Number, ShapeLike
from .dtype import DType
from .tensor_base import TensorBase

__all__ = ["ArrayLike", "Axes", "Number", "Sizes", "TensorDType", "TensorLike", "TensorShape"]

#: An argument that functions convert to a tensor: a tensor, with values or of a trace, another array or a scalar.
ArrayLike: TypeAlias = TensorBase | NDArray | np.ndarray | Number

#: The same, or a nesting of these.
TensorLike: TypeAlias = ArrayLike | list[Any] | tuple[Any, ...]

#: A dtype as a caller writes it, by MindSpore's names, too; None stands for the default of the place.
TensorDType: TypeAlias = DTypeLike | DType

#: A shape as a caller writes it: one length, several, or a tensor of them.
TensorShape: TypeAlias = ShapeLike | TensorBase | np.ndarray

#: Axes as a caller writes them: one, or its tensor, or several; None stands for all.
Axes: TypeAlias = int | Sequence[int] | TensorBase | None

#: Lengths along the axes of windows and images: one for all of them, or one for each.
Sizes: TypeAlias = int | Sequence[int]
