"""Kernels compiled with numba: expressions, rows, updates of weights, recurrent layers, attention."""

from __future__ import annotations
