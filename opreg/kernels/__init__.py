"""Faster kernels of operators that are declared elsewhere. Each is chosen at bind, or says why it declines."""

from __future__ import annotations

__all__: list[str] = []
