"""Export to ONNX: the translations of operators, and whole models."""

from __future__ import annotations

from . import (  # noqa: F401  which enter their rows
    elementwise,
    layers,
    lookup,
    matrices,
    quantized,
    randomness,
    recurrent,
    shapes,
    vision,
)
from .model import export, export_model, to_model

__all__ = ["export", "export_model", "to_model"]
