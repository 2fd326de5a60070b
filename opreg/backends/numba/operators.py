"""The operators that numba compiles kernels for, beside those of expressions; importing this attaches them."""

from __future__ import annotations

from . import attention, rnn, row_operators

__all__ = ["attention", "rnn", "row_operators"]
