"""Parameters as a Cell with ``to_float`` reads them: tensors with cast values, whose changes reach the Parameter."""

from __future__ import annotations

from typing import Any

import numpy as np

from .parameter import CastParameter, Parameter
from .tensor import Tensor
from .traced_tensor import TracedTensor

__all__ = ["cast_parameter"]


class _CastTensor(CastParameter, Tensor):  # type: ignore[misc]  # as Tensor itself
    """The cast values of a Parameter in eager code."""

    __slots__ = ()


class _CastTracedTensor(CastParameter, TracedTensor):
    """The cast values of a Parameter in a trace."""

    __slots__ = ("cast_of",)


def cast_parameter(parameter: Parameter, dtype: np.dtype) -> Any:
    """A tensor with the values of a Parameter in another dtype; storing in it stores in the Parameter."""
    values: Any = parameter._cast(dtype)
    if type(values) is Tensor:
        values.__class__ = _CastTensor
    elif type(values) is TracedTensor:
        values = _CastTracedTensor(values._trace, values._entry, values._spec)
    else:  # the Parameter itself has this dtype
        return values
    object.__setattr__(values, "cast_of", parameter)
    return values
