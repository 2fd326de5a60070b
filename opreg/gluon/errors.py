"""Errors of blocks and parameters."""

from __future__ import annotations

from ..errors import ArgumentError, OpError

__all__ = ["BlockError", "DeferredInitializationError", "StaleGradient"]


class BlockError(ArgumentError, AssertionError):
    """A block, a parameter or a trainer is asked for what it cannot do. It is an AssertionError, too, which
    programs of MXNet catch."""


class DeferredInitializationError(OpError):
    """A parameter has no values yet, since its shape follows from the first input that its block is given."""


class StaleGradient(OpError, UserWarning):
    """A step is asked for with a gradient that no backward pass has written since the last one."""
