"""Operators and autograd by the names that programs before MXNet 1.0 have for them.

``contrib.nd`` and ``contrib.sym`` are ``mx.nd.contrib`` and ``mx.sym.contrib``.
"""

from __future__ import annotations

from opreg.ndarray import contrib as nd
from opreg.ndarray import contrib as ndarray
from opreg.symbol import contrib as sym
from opreg.symbol import contrib as symbol

from . import autograd, detection

__all__ = ["autograd", "detection", "nd", "ndarray", "sym", "symbol"]


def __dir__() -> list[str]:
    return sorted(__all__)
