"""common: the names that programs written for MindSpore import from there, dtypes among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..aliases import inner
from ..cells import dtype as _dtypes
from ..cells import parameter as parameter  # ``as parameter`` makes it public to type checkers
from ..cells import tensor as tensor
from ..cells.dtype import *  # noqa: F403
from ..cells.initializer import get_seed as get_seed
from ..cells.initializer import set_seed as set_seed
from ..cells.jit import jit as jit
from ..cells.jit import ms_function as ms_function
from ..cells.parameter import Parameter as Parameter
from ..cells.parameter import ParameterTuple as ParameterTuple
from ..cells.sparse import COOTensor as COOTensor
from ..cells.sparse import CSRTensor as CSRTensor
from ..cells.sparse import RowTensor as RowTensor
from ..cells.sparse import SparseTensor as SparseTensor
from ..cells.tensor import Tensor as Tensor
from ..cells.tensor import from_numpy as from_numpy
from ..cells.tensor import is_tensor as is_tensor
from ..cells.tree import mutable as mutable
from ..nn.compiler_settings import JitConfig as JitConfig
from ..nn.compiler_settings import jit_class as jit_class
from ..nn.compiler_settings import lazy_inline as lazy_inline
from . import api as api
from . import dtype as dtype
from . import initializer as initializer

if not TYPE_CHECKING:  # type checkers follow the star
    __all__ = ["COOTensor", "CSRTensor", "JitConfig", "Parameter", "ParameterTuple", "RowTensor",  # noqa: PLE0604
               "SparseTensor", "Tensor", "api", "dtype", "from_numpy", "get_seed", "initializer", "is_tensor", "jit",
               "jit_class", "lazy_inline", "ms_function", "mutable", "parameter", "set_seed", "tensor",
               *_dtypes.__all__]

    __getattr__ = inner(__name__)

    def __dir__() -> list[str]:
        return sorted(__all__)
