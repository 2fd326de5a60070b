"""Instruments of plans: explanations, times, estimates, memory, checks, a monitor."""

from __future__ import annotations

__all__: list[str] = []
