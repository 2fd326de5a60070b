"""Back ends: faster kernels for operators that are declared elsewhere, and the passes that only these kernels need.

Each back end is a package with kernels, which are chosen at bind or give a reason for declining. Importing its module
``operators`` attaches them to built-in operators; its module ``passes``, if it has one, lists passes in ``PASSES``. The
modules ``operators`` and ``passes`` here import those of all back ends. Only a back end's own package uses the library
it needs, and loads it at first use; the package itself is imported when a device that it serves is first used. BLAS,
which comes with NumPy, is a single module.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from opreg.core.array_module import active
from opreg.core.cache import cached

__all__ = ["BACKENDS", "modules"]

#: The packages here, and the type of device that each serves. A new back end needs its folder and a line in this table.
BACKENDS = {
    "numba": "cpu",
    "onednn": "cpu",
    "cuda": "gpu",
}


def modules(part: str) -> list[ModuleType]:
    """The modules with a given name in all back ends that serve the host or a device in use.

    Examples
    --------
    >>> [module.__name__ for module in modules("elementwise")][0]
    'opreg.backends.numba.elementwise'
    """
    served = {"cpu", *[backend.name for backend in active()]}
    parts = [_module(f"opreg.backends.{name}.{part}") for name, device in BACKENDS.items() if device in served]
    return [module for module in parts if module is not None]


@cached(64)
def _module(name: str) -> ModuleType | None:
    return None if importlib.util.find_spec(name) is None else importlib.import_module(name)
