"""notebook: tables and charts that show the progress of a training in a notebook."""

from __future__ import annotations

from . import callback

__all__ = ["callback"]


def __dir__() -> list[str]:
    return sorted(__all__)
