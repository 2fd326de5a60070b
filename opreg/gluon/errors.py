"""Errors of blocks and parameters."""

from __future__ import annotations

from ..errors import ArgumentError, OpError

__all__ = ["BlockError", "DeferredInitializationError", "StaleGradient"]


class BlockError(ArgumentError, AssertionError):
    """A block, a parameter or a trainer does not support a call in its current state. It is also an AssertionError,
    which programs of MXNet catch."""


class DeferredInitializationError(OpError):
    """A parameter has no values yet, since the first input of its block decides its shape."""


class StaleGradient(OpError, UserWarning):
    """A step needs a gradient that no backward pass has written since the last step."""
