"""Initializers, as ``opreg.cells.initializer`` has them."""

from __future__ import annotations

from ..cells import initializer as _own
from ..cells.initializer import *  # noqa: F403

__all__ = _own.__all__


def __dir__() -> list[str]:
    return sorted(__all__)
