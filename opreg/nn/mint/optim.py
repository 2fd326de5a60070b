"""``mint.optim``: the optimizers of ``experimental.optim``, whose groups are dicts."""

from __future__ import annotations

from ..experimental.optim import SGD, Adam, AdamW

__all__ = ["SGD", "Adam", "AdamW"]
