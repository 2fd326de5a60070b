"""Types for annotations: arrays of any array module, the module itself, dtypes and shapes as a caller writes them.

A value that a rule calls operators on, an NDArray or a Symbol, is a `Value` of ``core.value``; a resolved shape is
a ``Shape`` of ``core.spec``; the attributes of a call are ``Attrs`` of ``core.rules``.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Protocol, TypeAlias

import numpy as np

__all__ = ["Array", "ArrayModule", "DTypeLike", "Number", "ShapeLike"]

#: An array that kernels compute with: NumPy's, or another module's that offers the same (CuPy).
Array: TypeAlias = np.ndarray

#: The array module of kernels, ``numpy`` or ``cupy``: the parameter ``xp``.
ArrayModule: TypeAlias = ModuleType


class HasDType(Protocol):
    """An object that says by ``dtype`` which one it means, as MindSpore's dtypes do."""

    @property
    def dtype(self) -> np.dtype:
        """NumPy's."""


#: A dtype as a caller writes it: an object, a type or a name; None stands for the default of the place.
DTypeLike: TypeAlias = np.dtype | HasDType | type | str | None

#: A scalar that is no tensor; ``is_number`` tests for it.
Number: TypeAlias = float | np.number | np.bool_

#: A shape as a caller writes it: one length or a sequence of them.
ShapeLike: TypeAlias = int | Sequence[int]
