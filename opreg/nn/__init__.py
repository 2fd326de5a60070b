"""nn: Cells, tensors and gradients with MindSpore's manners, over the one registry of operators."""

from __future__ import annotations

from . import layers, losses, ops, optim, train
from .cell import Cell
from .hooks import HookHandle, convention
from .layers import *  # noqa: F403
from .losses import *  # noqa: F403
from .optim import *  # noqa: F403
from .parameter import Parameter, ParameterTuple
from .symbolic import SymbolCell, from_symbol
from .tensor import Tensor
from .train import *  # noqa: F403

__all__ = ["Cell", "HookHandle", "convention", "Parameter", "ParameterTuple", "SymbolCell", "from_symbol", "Tensor",
           *layers.__all__, *losses.__all__, *optim.__all__, *train.__all__]
