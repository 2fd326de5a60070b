"""Kernels compiled by numba for operators without an expression; importing this attaches them."""

from __future__ import annotations

from . import attention, rnn, updates

__all__ = ["attention", "rnn", "updates"]
