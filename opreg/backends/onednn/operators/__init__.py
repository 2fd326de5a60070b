"""Kernels of operators by oneDNN; importing this attaches them."""

from __future__ import annotations

from . import batch_norm, convolution, products

__all__ = ["batch_norm", "convolution", "products"]
