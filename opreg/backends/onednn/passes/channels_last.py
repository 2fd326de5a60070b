"""channels_last: channels as the last axis for convolutions by oneDNN; see ``opreg.backends.passes.channels_last``."""

from __future__ import annotations

import numpy as np

from opreg.symbol.program import Program

from ...passes.channels_last import Library, bring_channels_last
from ..shared_library import missing

__all__ = ["channels_last"]

_LIBRARY = Library(lambda xp: xp is np, "onednn")


def channels_last(program: Program) -> Program:
    """Change the layout to channels last for convolutions by oneDNN."""
    return program if missing() is not None else bring_channels_last(program, _LIBRARY)
