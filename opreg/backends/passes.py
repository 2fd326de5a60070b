"""The passes that back ends need, by stage."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable

from opreg.symbol.compile import PASSES_OF_BACKENDS
from opreg.symbol.program import Program

from . import BACKENDS

__all__ = ["passes"]

_TABLES = [importlib.import_module(f"opreg.backends.{name}.passes").PASSES for name in BACKENDS
           if importlib.util.find_spec(f"opreg.backends.{name}.passes") is not None]


@PASSES_OF_BACKENDS.provide
def passes(stage: str) -> list[Callable[[Program], Program]]:
    """Those of a stage, in the order they run; see ``opreg.symbol.compile`` for the stages.

    Examples
    --------
    >>> [change.__name__ for change in passes("layout")]
    ['fuse_bn_backward', 'channels_last', 'fuse_dense_backward', 'channels_last']
    """
    return [change for table in _TABLES for change in table.get(stage, ())]
