"""Side effects of operators: random draws, changes of states, and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .rules import Attrs

if TYPE_CHECKING:
    from .op import Op

__all__ = ["draws", "changed_states", "may_run_python", "opaque", "runs_unread", "varies"]


def opaque(op: Op) -> bool:
    """Whether the operator runs users' Python code, whose random draws and changes of states are unknown."""
    return op.where is not None and bool(op.kernels) and op.kernels[0].bound and not op.traits.traced


def may_run_python(op: Op) -> bool:
    """Whether the operator may run users' Python code: its own, or that of bodies which it holds, as loops do."""
    return opaque(op) or op.rules.chance is not None


def varies(op: Op) -> bool:
    """Whether a second run on the same inputs may give other outputs, or change a state."""
    traits = op.traits
    return traits.random or traits.minds_training or opaque(op)


def changed_states(op: Op, attrs: Attrs) -> Sequence[int]:
    """Indices of the inputs, auxiliary states, that users' code may change in place."""
    if op.rules.moves is not None:
        return op.rules.moves(attrs)
    if not (op.signature.stateful and opaque(op)):
        return ()
    first = len(op.signature.arguments(attrs))
    return range(first, first + len(op.signature.auxiliary(attrs)))


def draws(op: Op, attrs: Attrs) -> bool:
    """Whether a run may draw random numbers, as users' code may."""
    return op.traits.random or opaque(op) if op.rules.chance is None else op.rules.chance(attrs)


def runs_unread(op: Op, attrs: Attrs) -> bool:
    """Whether the operator must run even if its outputs are not read: it has a side effect, or draws random numbers and
    so changes later draws."""
    return op.traits.has_side_effect or draws(op, attrs)
