"""Checks of operators: one use, run in every way it can be, and the contract that it keeps."""

from __future__ import annotations

from .checking import examine
from .report import Report, Verdict

__all__ = ["examine", "Report", "Verdict"]
