"""probability: distributions as Cells, with the names of ``mindspore.nn.probability``."""

from __future__ import annotations

from . import distribution

__all__ = ["distribution"]
