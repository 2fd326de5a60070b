"""common: the names that programs written for MindSpore import from there, dtypes among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..aliases import inner
from ..nn import dtype as _dtypes
from ..nn import parameter as parameter  # said twice, it is public to type checkers
from ..nn import tensor as tensor
from ..nn.dtype import *  # noqa: F403
from ..nn.initializer import get_seed as get_seed
from ..nn.initializer import set_seed as set_seed
from ..nn.jit import jit as jit
from ..nn.jit import ms_function as ms_function
from ..nn.parameter import Parameter as Parameter
from ..nn.parameter import ParameterTuple as ParameterTuple
from ..nn.settings import JitConfig as JitConfig
from ..nn.settings import jit_class as jit_class
from ..nn.tensor import Tensor as Tensor
from ..nn.tensor import from_numpy as from_numpy
from ..nn.tensor import is_tensor as is_tensor
from ..nn.tree import mutable as mutable
from . import api as api
from . import dtype as dtype
from . import initializer as initializer

if not TYPE_CHECKING:  # type checkers follow the star
    __all__ = ["JitConfig", "Parameter", "ParameterTuple", "Tensor", "api", "dtype", "from_numpy",  # noqa: PLE0604
               "get_seed", "initializer", "is_tensor", "jit", "jit_class", "ms_function", "mutable", "parameter",
               "set_seed", "tensor", *_dtypes.__all__]

    __getattr__ = inner(__name__)

    def __dir__() -> list[str]:
        return sorted(__all__)
