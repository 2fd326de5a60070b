"""Kernels on a GPU for operators without an expression; importing this attaches them."""

from __future__ import annotations

from . import (
    attention,
    convolution,
    dropout,
    greedy,
    lookups,
    normalization,
    pooling,
    products,
    recurrent,
    reductions,
    updates,
)

__all__ = ["attention", "convolution", "dropout", "greedy", "lookups", "normalization", "pooling", "products",
           "recurrent", "reductions", "updates"]
