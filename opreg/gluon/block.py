"""Blocks as MXNet's module of this name has them: plain ones, hybrid ones, and those of symbols."""

from __future__ import annotations

from .base_block import Block
from .hybrid_block import HybridBlock
from .structure import flatten as _flatten  # noqa: F401  blocks of other libraries take both from here
from .structure import regroup as _regroup  # noqa: F401
from .symbol_block import SymbolBlock

__all__ = ["Block", "HybridBlock", "SymbolBlock"]
