"""Kernels in CUDA C++, compiled where an array module of a GPU can."""

from __future__ import annotations

__all__: list[str] = []
