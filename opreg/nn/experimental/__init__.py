"""experimental: ``optim``, the optimizers of MindSpore whose groups are dicts, and whose rates schedulers set."""

from __future__ import annotations

from . import optim

__all__ = ["optim"]
