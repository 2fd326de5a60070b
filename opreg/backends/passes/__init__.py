"""The passes that back ends need, by stage of compilation."""

from __future__ import annotations

from collections.abc import Callable

from opreg.symbol.compile import PASSES_OF_BACKENDS
from opreg.symbol.program import Program

from .. import modules

__all__ = ["passes"]


@PASSES_OF_BACKENDS.provide
def passes(stage: str) -> list[Callable[[Program], Program]]:
    """Passes of a stage, in the order they run; see ``opreg.symbol.compile`` for the stages.

    Examples
    --------
    >>> [change.__name__ for change in passes("layout")][:2]
    ['fuse_bn_backward', 'channels_last']
    """
    return [change for module in modules("passes") for change in module.PASSES.get(stage, ())]
