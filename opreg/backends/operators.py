"""The operators that back ends have kernels for; importing this attaches those for the host.

Others are attached when a device that they serve is used first: a machine without one never loads them.
"""

from __future__ import annotations

from opreg.core.array_module import when_opened

from . import modules
from .expressions import attach_compilers

__all__: list[str] = []


@when_opened
def _attach() -> None:
    """Attach what back ends have whose devices are in use."""
    attach_compilers()
    modules("operators")
