"""Checks of an operator: it is run in every way that users can run it, and the results are compared."""

from __future__ import annotations

from .report import Report, Verdict

__all__ = ["Report", "Verdict"]
