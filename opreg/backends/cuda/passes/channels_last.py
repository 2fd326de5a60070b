"""channels_last: channels as the last axis for convolutions by cuDNN; see ``opreg.backends.passes.channels_last``."""

from __future__ import annotations

from opreg.symbol.program import Program

from ...passes.channels_last import Library, bring_channels_last
from ..compiler import can_compile
from ..cudnn import Frontend, frontend

__all__ = ["channels_last"]

_LIBRARY = Library(lambda xp: can_compile(xp) and isinstance(frontend(xp), Frontend), "cuDNN")


def channels_last(program: Program) -> Program:
    """Change the layout to channels last for convolutions by cuDNN."""
    return bring_channels_last(program, _LIBRARY)
