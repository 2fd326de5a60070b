"""Blocks under MXNet's module path: Block, HybridBlock and SymbolBlock."""

from __future__ import annotations

from .base_block import Block
from .hybrid_block import HybridBlock
from .structure import flatten as _flatten  # noqa: F401  blocks of other libraries take both from here
from .structure import regroup as _regroup  # noqa: F401
from .symbol_block import SymbolBlock

__all__ = ["Block", "HybridBlock", "SymbolBlock"]
