"""The kernels that back ends make of expressions: every element-wise operator is given them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable

import numpy as np

from opreg.core.cache import cached
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.elementwise.expression import Expression
from opreg.typing import ArrayModule

from . import BACKENDS

__all__ = ["attach", "fuses"]

_MODULES = [importlib.import_module(f"opreg.backends.{name}.elementwise") for name in BACKENDS
            if importlib.util.find_spec(f"opreg.backends.{name}.elementwise") is not None]


def attach(op: Op, expression: Callable[[Attrs], Expression],
           ufuncs: Callable[[Call], list[Callable[[], object]]]) -> None:
    """Give an operator with an expression, a function of its attributes, a kernel of each back end that compiles them.

    Until one has compiled something the kernel ``ufuncs`` may compute.
    """
    for module in _MODULES:
        module.attach(op, expression, ufuncs)


@cached(256)
def fuses(xp: ArrayModule, dtype: np.dtype) -> bool:
    """Whether several element-wise operators on arrays of a module and a dtype cost less as one: not where each of the
    instructions would be launched by itself."""
    return any(module.fuses(xp, dtype) for module in _MODULES)
