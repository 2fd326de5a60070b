"""Attaches the kernels of back ends to operators; importing this attaches those for the host.

The others are attached when a device that they serve is first used; a machine without one never loads them.
"""

from __future__ import annotations

from opreg.core.array_module import when_opened

from . import modules
from .expressions import attach_compilers


@when_opened
def _attach() -> None:
    """Attach the kernels of back ends whose devices are in use."""
    attach_compilers()
    modules("operators")
