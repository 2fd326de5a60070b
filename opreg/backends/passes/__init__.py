"""The passes that back ends need."""

from __future__ import annotations

from collections.abc import Callable

from opreg.symbol.compile import PASSES_OF_BACKENDS
from opreg.symbol.program import Program

from .. import modules

__all__ = ["passes"]


@PASSES_OF_BACKENDS.provide
def passes() -> list[Callable[[Program], Program]]:
    """The passes of back ends in use, in the order they run.

    Examples
    --------
    >>> [change.__name__ for change in passes()][:2]
    ['fuse_bn_backward', 'channels_last']
    """
    return [change for module in modules("passes") for change in module.PASSES]
