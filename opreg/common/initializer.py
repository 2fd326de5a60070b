"""Initializers, as ``opreg.cells.initializer`` has them."""

from __future__ import annotations

from ..cells import initializer as _own
from ..cells.initializer import *  # noqa: F403
from ..core.spec import Shape, show
from ..errors import ShapeError
from ..fills import fan

__all__ = _own.__all__


def _calculate_fan_in_and_fan_out(shape: Shape) -> tuple[int, int]:
    """How many inputs and outputs a weight has, as scripts that bound their biases ask for it."""
    if len(shape) < 2:
        raise ShapeError("_calculate_fan_in_and_fan_out: expected at least two axes, which count outputs and inputs, "
                         f"got the shape {show(shape)}")
    return int(fan(shape, "in")), int(fan(shape, "out"))


def __dir__() -> list[str]:
    return sorted(__all__)
