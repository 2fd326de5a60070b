"""Passes: functions from program to program, one in each file; ``opreg.symbol.compile`` lists them in order."""

from __future__ import annotations
