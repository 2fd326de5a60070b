"""common: the names that programs written for MindSpore import from there."""

from __future__ import annotations

from ..nn import parameter, tensor
from ..nn.initializer import get_seed, set_seed
from ..nn.jit import jit
from ..nn.parameter import Parameter, ParameterTuple
from ..nn.settings import JitConfig, jit_class, recompute
from ..nn.tensor import Tensor, from_numpy, is_tensor
from ..nn.tree import mutable
from . import dtype, initializer

__all__ = ["JitConfig", "Parameter", "ParameterTuple", "Tensor", "dtype", "from_numpy", "get_seed", "initializer",
           "is_tensor", "jit", "jit_class", "mutable", "parameter", "recompute", "set_seed", "tensor"]


def __dir__() -> list[str]:
    return sorted(__all__)
