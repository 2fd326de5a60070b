"""The built-in operators, a family a file; importing this package registers them all."""

from __future__ import annotations

import importlib
import pkgutil

__all__: list[str] = []

for _module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    if _module != "__main__":
        importlib.import_module(f"{__name__}.{_module}")
