"""Parameters under MXNet's module path: Parameter, Constant and ParameterDict."""

from __future__ import annotations

from opreg.symbol.symbol import Symbol

from .base_parameter import Constant, Parameter
from .errors import DeferredInitializationError
from .parameter_dict import ParameterDict
from .structure import ARRAYS

__all__ = ["Parameter", "Constant", "ParameterDict", "DeferredInitializationError", "tensor_types"]

#: Types of the arguments of blocks.
tensor_types = (Symbol, *ARRAYS)
