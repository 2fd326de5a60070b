"""Gluon: data, layers and training as programs for MXNet write them; each part loads when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import aliases as _aliases

if TYPE_CHECKING:
    from . import data, utils

__all__ = ["data", "utils"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"opreg.gluon has no {name!r}")
    value: Any = _aliases.below(f"gluon.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
