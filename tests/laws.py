"""Distributions of SciPy, with which tests compare random numbers."""

from __future__ import annotations

from typing import Any

__all__ = ["stats"]


def stats() -> Any:
    """The module ``scipy.stats``, whose import takes a second: only tests that need it pay for it."""
    import scipy.stats

    return scipy.stats
