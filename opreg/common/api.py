"""Compilation, as ``opreg.cells.jit`` has it, and the executors that programs written for MindSpore call by name."""

from __future__ import annotations

from typing import Any

from opreg.ndarray.creation import waitall

from ..cells.cell import Cell
from ..cells.jit import jit
from ..cells.tree import mutable
from ..nn.compiler_settings import JitConfig, jit_class

__all__ = ["JitConfig", "jit", "jit_class", "ms_function", "mutable"]

ms_function = jit


class _CellGraphExecutor:
    """Compiles Cells."""

    def compile(self, obj: Cell, *args: Any, phase: str = "predict", do_convert: bool = True,
                jit_config_dict: object = None, **kwargs: Any) -> tuple[str, bool]:
        """Compile a Cell for inputs like these; returns ``phase``, and True."""
        obj.compile(*args, **kwargs)
        return phase, True


class _PyNativeExecutor:
    """Runs operators; a call returns after its operator has run, or on a device once it is queued."""

    def sync(self) -> None:
        """Wait until all devices have computed what they were given."""
        waitall()


_cell_graph_executor = _CellGraphExecutor()
_pynative_executor = _PyNativeExecutor()


def __dir__() -> list[str]:
    return sorted(__all__)
