"""Passes: functions from graph to graph, one a file; ``opreg.symbol.compile`` lists them in order."""

from __future__ import annotations

__all__: list[str] = []
