"""Kernels that call oneDNN through ctypes: convolutions, pooling, matrix products, batch norm with channels last."""

from __future__ import annotations
