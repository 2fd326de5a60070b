"""The operators that have kernels on a GPU, beside those of expressions; importing this attaches them."""

from __future__ import annotations

from . import (
    convolution_operators,
    dropout,
    lookups,
    losses,
    normalization,
    pooling,
    product_operators,
    recurrent,
    reductions,
    row_operators,
)

__all__ = ["convolution_operators", "dropout", "lookups", "losses", "normalization", "pooling", "product_operators",
           "recurrent", "reductions", "row_operators"]
