"""The operators that have kernels on a GPU, beside those of expressions; importing this attaches them."""

from __future__ import annotations

from . import row_operators

__all__ = ["row_operators"]
