"""Kernels by oneDNN, through ctypes: convolutions, pooling, products of matrices, batch norm with channels last."""

from __future__ import annotations

__all__: list[str] = []
