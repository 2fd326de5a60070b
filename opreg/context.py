"""context: where arrays live, as MXNet has it under that name; how Cells run, and share work, as MindSpore has it.

>>> import opreg
>>> opreg.context.cpu(1)
cpu(1)
>>> opreg.context.set_context(mode=opreg.context.PYNATIVE_MODE)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import opreg
from opreg.aliases import inner
from opreg.ndarray.context import *  # noqa: F403
from opreg.ndarray.context import __all__ as _PLACES

if TYPE_CHECKING:
    from opreg.cells.context_settings import COMPATIBLE as COMPATIBLE
    from opreg.cells.context_settings import GRAPH_MODE as GRAPH_MODE
    from opreg.cells.context_settings import LAX as LAX
    from opreg.cells.context_settings import PYNATIVE_MODE as PYNATIVE_MODE
    from opreg.cells.context_settings import STRICT as STRICT
    from opreg.cells.context_settings import get_context as get_context
    from opreg.cells.context_settings import set_context as set_context
    from opreg.nn.parallel import ParallelMode as ParallelMode
    from opreg.nn.parallel import get_auto_parallel_context as get_auto_parallel_context
    from opreg.nn.parallel import reset_auto_parallel_context as reset_auto_parallel_context
    from opreg.nn.parallel import set_auto_parallel_context as set_auto_parallel_context

_SETTINGS = ("set_context", "get_context", "GRAPH_MODE", "PYNATIVE_MODE", "STRICT", "COMPATIBLE", "LAX",
             "ParallelMode", "set_auto_parallel_context", "get_auto_parallel_context", "reset_auto_parallel_context")

__all__ = [*_PLACES, *_SETTINGS]  # noqa: PLE0604  the names are text


_below = inner(__name__)


def __getattr__(name: str) -> Any:
    if name not in _SETTINGS:
        return _below(name)
    return getattr(opreg, name)  # at first use, as the front door opens them: programs of MXNet do without Cells


def __dir__() -> list[str]:
    return sorted(__all__)
