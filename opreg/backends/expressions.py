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

Ufuncs = Callable[[Call], list[Callable[[], object]]]
# The modules of back ends that compile expressions, and those that compile loops; and the operators that have one.
_COMPILERS: dict[str, list[ModuleType]] = {"elementwise": [], "loops": []}
_ATTACHED: dict[str, list[tuple[Op, Callable[..., object], Ufuncs]]] = {"elementwise": [], "loops": []}


def _attach(part: str, op: Op, described: Callable[..., object], ufuncs: Ufuncs) -> None:
    _ATTACHED[part].append((op, described, ufuncs))
    for module in _COMPILERS[part]:
        module.attach(op, described, ufuncs)


def attach(op: Op, expression: Callable[[Attrs], Expression], ufuncs: Ufuncs) -> None:
    """Give an operator with an expression, a function of its attributes, a kernel of each back end that compiles
    expressions.

    While a kernel is being compiled, the steps of ``ufuncs`` may compute in its place.
    """
    _attach("elementwise", op, expression, ufuncs)


def attach_loop(op: Op, loop: Callable[[Call], Loop | str], ufuncs: Ufuncs) -> None:
    """``attach`` for an operator whose calls are loops: ``loop(call)`` returns the loop, or the reason why a call is
    none."""
    _attach("loops", op, loop, ufuncs)


@cached(256)
def fuses(xp: ArrayModule, dtype: np.dtype) -> bool:
    """Whether fusing element-wise operators saves time on arrays of a module and a dtype: only if a back end compiles
    them, since otherwise each instruction is launched by itself."""
    return any(module.fuses(xp, dtype) for module in _COMPILERS["elementwise"])


def attach_compilers() -> None:
    """Give all such operators the kernels of back ends whose devices have come into use since the last call."""
    for part, compilers in _COMPILERS.items():
        for module in modules(part):
            if module not in compilers:
                compilers.append(module)
                fuses.cache_clear()  # type: ignore[attr-defined]  # added by the decorator
                for attached in _ATTACHED[part]:
                    module.attach(*attached)


attach_compilers()
