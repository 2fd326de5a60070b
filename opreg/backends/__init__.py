"""Back ends: faster kernels of operators that are declared elsewhere, and the passes that only they need.

Each is a package with its kernels, which are chosen at bind, or say why they decline. ``operators`` attaches them; in
``passes``, where it has one, ``PASSES`` lists passes by the stage of compilation that they belong to. A library that a
back end needs is met in its package alone, at first use. BLAS, which NumPy brings, is a module.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

__all__ = ["BACKENDS", "attach", "passes"]

#: The packages here. A new one is its folder and a word in this line.
BACKENDS = ("numba", "onednn")


def attach() -> None:
    """Attach the kernels of all back ends to operators, which are registered by then."""
    for name in BACKENDS:
        importlib.import_module(f"{__name__}.{name}.operators")


def passes(stage: str) -> list[Callable[[Any], Any]]:
    """Those of a stage, in the order they run; see ``opreg.symbol.compile`` for the stages.

    Examples
    --------
    >>> [each.__name__ for each in passes("layout")]
    ['fuse_bn_backward', 'channels_last']
    """
    found: list[Callable[[Any], Any]] = []
    for name in BACKENDS:
        module = f"{__name__}.{name}.passes"
        if importlib.util.find_spec(module) is not None:
            found += importlib.import_module(module).PASSES.get(stage, ())
    return found
