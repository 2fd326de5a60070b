"""Dtypes, as ``opreg.cells.dtype`` has them."""

from __future__ import annotations

from typing import Any

from ..cells import dtype as _own
from ..cells.dtype import *  # noqa: F403

__all__ = _own.__all__


def __getattr__(name: str) -> Any:
    return getattr(_own, name)  # bfloat16, where there is one


def __dir__() -> list[str]:
    return sorted(__all__)
