"""The kernels that back ends make of expressions: every element-wise operator is given them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np

from opreg.core.cache import cached
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.elementwise.expression import Expression
from opreg.typing import ArrayModule

from . import modules

__all__ = ["attach", "attach_compilers", "fuses"]

_COMPILERS: list[ModuleType] = []
_ATTACHED: list[tuple[Op, Callable[[Attrs], Expression], Callable[[Call], list[Callable[[], object]]]]] = []


def attach(op: Op, expression: Callable[[Attrs], Expression],
           ufuncs: Callable[[Call], list[Callable[[], object]]]) -> None:
    """Give an operator with an expression, a function of its attributes, a kernel of each back end that compiles them.

    Until one has compiled something the kernel ``ufuncs`` may compute.
    """
    _ATTACHED.append((op, expression, ufuncs))
    for module in _COMPILERS:
        module.attach(op, expression, ufuncs)


@cached(256)
def fuses(xp: ArrayModule, dtype: np.dtype) -> bool:
    """Whether several element-wise operators on arrays of a module and a dtype cost less as one: not where each of the
    instructions would be launched by itself."""
    return any(module.fuses(xp, dtype) for module in _COMPILERS)


def attach_compilers() -> None:
    """Give all such operators the kernels of back ends whose devices are used since."""
    for module in modules("elementwise"):
        if module not in _COMPILERS:
            _COMPILERS.append(module)
            fuses.cache_clear()  # type: ignore[attr-defined]  # of a function that is cached
            for attached in _ATTACHED:
                module.attach(*attached)


attach_compilers()
