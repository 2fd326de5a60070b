"""Models of ONNX, read: as symbols with their parameters, or as Cells."""

from __future__ import annotations

from .api import get_model_metadata, import_model, import_to_cell

__all__ = ["import_model", "import_to_cell", "get_model_metadata"]
