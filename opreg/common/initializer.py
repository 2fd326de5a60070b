"""Initializers, as ``opreg.nn.initializer`` has them."""

from __future__ import annotations

from ..nn import initializer as _own
from ..nn.initializer import *  # noqa: F403

__all__ = _own.__all__


def __dir__() -> list[str]:
    return sorted(__all__)
