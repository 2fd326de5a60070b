"""Back ends: faster kernels of operators that are declared elsewhere, and the passes that only they need.

Each is a package with its kernels, which are chosen at bind, or say why they decline. Importing its ``operators``
attaches them to built-in operators; ``passes``, where it has them, lists passes in ``PASSES`` by the stage of
compilation that they belong to. ``operators`` and ``passes`` here bring those of all back ends. A library that a back
end needs is met in its package alone, at first use; the package itself, when a device that it serves is. BLAS, which
NumPy brings, is a module.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from opreg.core.array_module import active
from opreg.core.cache import cached

__all__ = ["BACKENDS", "modules"]

#: The packages here, and the type of device that each serves. A new one is its folder and a line in this table.
BACKENDS = {
    "numba": "cpu",
    "onednn": "cpu",
    "cuda": "gpu",
}


def modules(part: str) -> list[ModuleType]:
    """The modules of a name, of back ends that have one and serve the host or a device in use.

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
