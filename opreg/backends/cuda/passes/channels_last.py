"""channels_last: channels at the end where cuDNN convolves; see ``opreg.backends.passes.channels_last``."""

from __future__ import annotations

from opreg.symbol.program import Program

from ...passes.channels_last import Library, bring_channels_last
from ..compiler import can_compile
from ..cudnn import Frontend, frontend

__all__ = ["channels_last"]

_LIBRARY = Library(lambda xp: can_compile(xp) and isinstance(frontend(xp), Frontend), "cuDNN")


def channels_last(program: Program) -> Program:
    """Bring channels to the end where cuDNN convolves."""
    return bring_channels_last(program, _LIBRARY)
