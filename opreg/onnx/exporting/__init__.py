"""Graphs as models of ONNX: a table of translations, and what makes whole models."""

from __future__ import annotations

from . import elementwise, layers, lookup, randomness, recurrent, shapes, vision  # noqa: F401  which enter their rows
from .model import export, export_model, to_model

__all__ = ["export", "export_model", "to_model"]
