"""channels_last: channels at the end where oneDNN convolves; see ``opreg.backends.passes.channels_last``."""

from __future__ import annotations

import numpy as np

from opreg.symbol.program import Program

from ...passes.channels_last import Library, bring_channels_last
from ..shared_library import missing

__all__ = ["channels_last"]

_LIBRARY = Library(lambda xp: xp is np, "onednn")


def channels_last(program: Program) -> Program:
    """Bring channels to the end where oneDNN convolves."""
    return program if missing() is not None else bring_channels_last(program, _LIBRARY)
