"""error: the error of MXNet, one of its kinds, and how more are made known by name."""

from __future__ import annotations

from opreg.base import register_error as register

from .errors import MXNetError

__all__ = ["MXNetError", "InternalError", "register"]


@register
class InternalError(MXNetError):
    """A mistake of the library itself."""


def __dir__() -> list[str]:
    return sorted(__all__)
