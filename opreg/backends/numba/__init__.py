"""Kernels compiled with numba: element-wise expressions, rows, updates of weights, recurrent layers."""

from __future__ import annotations

__all__: list[str] = []
