"""notebook: what shows in a notebook how a training goes."""

from __future__ import annotations

from . import callback

__all__ = ["callback"]


def __dir__() -> list[str]:
    return sorted(__all__)
