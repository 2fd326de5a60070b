"""Import of ONNX models: as symbols with parameters, as Cells, or as Gluon blocks."""

from __future__ import annotations

from .api import get_model_metadata, import_model, import_to_cell, import_to_gluon

__all__ = ["import_model", "import_to_cell", "import_to_gluon", "get_model_metadata"]
