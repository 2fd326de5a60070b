"""What is asked of plans, and what watches their steps: explanations, times, estimates, memory, checks, a monitor."""

from __future__ import annotations

__all__: list[str] = []
