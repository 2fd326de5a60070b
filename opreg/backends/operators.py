"""The operators that back ends have kernels for; importing this attaches them all."""

from __future__ import annotations

import importlib

from . import BACKENDS

__all__: list[str] = []

for _name in BACKENDS:
    importlib.import_module(f"opreg.backends.{_name}.operators")
