"""The operators that have kernels on a GPU, beside those of expressions; importing this attaches them."""

from __future__ import annotations

from . import convolution, dropout, lookups, losses, normalization, pooling, products, recurrent, reductions, rows

__all__ = ["convolution", "dropout", "lookups", "losses", "normalization", "pooling", "products", "recurrent",
           "reductions", "rows"]
