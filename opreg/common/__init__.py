"""common: the names that programs written for MindSpore import from there."""

from __future__ import annotations

from ..nn import parameter, tensor
from ..nn.initializer import get_seed, set_seed
from ..nn.parameter import Parameter, ParameterTuple
from ..nn.tensor import Tensor
from . import dtype, initializer

__all__ = ["Parameter", "ParameterTuple", "Tensor", "dtype", "get_seed", "initializer", "parameter", "set_seed",
           "tensor"]


def __dir__() -> list[str]:
    return sorted(__all__)
