"""Well-known networks, with new parameters or with parameters from files on this machine."""

from __future__ import annotations

from . import model_store, vision

__all__ = ["model_store", "vision"]
