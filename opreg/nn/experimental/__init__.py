"""experimental: ``optim``, MindSpore's optimizers with groups as dicts, and learning rate schedulers."""

from __future__ import annotations

from . import optim

__all__ = ["optim"]
