"""Networks that everybody knows, made anew or with parameters that lie on this machine."""

from __future__ import annotations

from . import model_store, vision

__all__ = ["model_store", "vision"]
