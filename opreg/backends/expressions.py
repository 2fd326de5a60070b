"""Attaches the kernels that back ends generate from expressions and loops to the operators that have one."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np

from opreg.core.cache import cached
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.elementwise.expression import Expression
from opreg.elementwise.loops import Loop
from opreg.typing import ArrayModule

from . import modules

__all__ = ["attach", "attach_compilers", "attach_loop", "fuses"]

_COMPILERS: list[ModuleType] = []
_LOOPERS: list[ModuleType] = []
Ufuncs = Callable[[Call], list[Callable[[], object]]]
_ATTACHED: list[tuple[Op, Callable[[Attrs], Expression], Ufuncs]] = []
_LOOPS: list[tuple[Op, Callable[[Call], Loop], Ufuncs]] = []


def attach(op: Op, expression: Callable[[Attrs], Expression], ufuncs: Ufuncs) -> None:
    """Give an operator with an expression, a function of its attributes, a kernel of each back end that compiles
    expressions.

    While a kernel is being compiled, the steps of ``ufuncs`` may compute in its place.
    """
    _ATTACHED.append((op, expression, ufuncs))
    for module in _COMPILERS:
        module.attach(op, expression, ufuncs)


def attach_loop(op: Op, loop: Callable[[Call], Loop], ufuncs: Ufuncs) -> None:
    """``attach`` for an operator that is described by a loop, a function of a call."""
    _LOOPS.append((op, loop, ufuncs))
    for module in _LOOPERS:
        module.attach(op, loop, ufuncs)


@cached(256)
def fuses(xp: ArrayModule, dtype: np.dtype) -> bool:
    """Whether fusing element-wise operators saves time on arrays of a module and a dtype: only if a back end compiles
    them, since otherwise each instruction is launched by itself."""
    return any(module.fuses(xp, dtype) for module in _COMPILERS)


def attach_compilers() -> None:
    """Give all such operators the kernels of back ends whose devices have come into use since the last call."""
    for module in modules("elementwise"):
        if module not in _COMPILERS:
            _COMPILERS.append(module)
            fuses.cache_clear()  # type: ignore[attr-defined]  # added by the decorator
            for attached in _ATTACHED:
                module.attach(*attached)
    for module in modules("loops"):
        if module not in _LOOPERS:
            _LOOPERS.append(module)
            for looped in _LOOPS:
                module.attach(*looped)


attach_compilers()
