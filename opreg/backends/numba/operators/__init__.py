"""The operators that numba compiles kernels for, beside those of expressions; importing this attaches them."""

from __future__ import annotations

from . import attention, rnn, rows

__all__ = ["attention", "rnn", "rows"]
