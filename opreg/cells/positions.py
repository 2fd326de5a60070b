"""Positions: the inputs in which a function is differentiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..errors import ArgumentError, OpError
from . import tree
from .pullback import name_of
from .tensor_base import is_number

#: Positions of the inputs that a function is differentiated in, as a caller gives them: one, several, or none.
Positions: TypeAlias = int | tuple[int, ...] | None

__all__ = ["NoArgumentError", "Positions", "positions_of", "check_positions"]


def positions_of(grad_position: object) -> tuple[int, ...]:
    """The positions that ``grad_position`` means, checked."""
    if grad_position is None:
        return ()
    if grad_position == ():
        raise OpError("grad: grad_position is empty; expected positions of inputs, or None with weights")
    listed = (grad_position,) if isinstance(grad_position, int) else grad_position
    if not isinstance(listed, tuple) or isinstance(grad_position, bool) or not all(
            isinstance(position, int) and not isinstance(position, bool) for position in listed):
        raise ArgumentError(f"grad: grad_position must be an int or a tuple of ints, got {grad_position!r}")
    for position in listed:
        if position < 0:
            raise ArgumentError(f"grad: grad_position must not be negative, got {position}")
    return listed


class NoArgumentError(OpError, IndexError):
    """A position has no argument."""


def check_positions(function: Callable, positions: Sequence[int], inputs: Sequence[object], leave_out: bool = False
                    ) -> Sequence[int]:
    """Refuse positions without an input, or with one that holds no tensors; positions of numbers are dropped if
    ``leave_out``. Returns the valid positions."""
    numbers = []
    for i in positions:
        if i >= len(inputs):
            raise NoArgumentError(f"grad of {name_of(function)}: there is no argument {i} for grad_position, which "
                                  f"counts from 0; it was called with {len(inputs)} argument{'s' * (len(inputs) != 1)}")
        if tree.varies(inputs[i]):
            continue
        if not (leave_out and is_number(inputs[i])):
            raise ArgumentError(f"grad of {name_of(function)}: argument {i} is of type {type(inputs[i]).__name__}, "
                                "only tensors have gradients")
        numbers.append(i)
    return [i for i in positions if i not in numbers] if numbers else positions
