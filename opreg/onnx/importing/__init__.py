"""Models of ONNX, read: as symbols with their parameters, as Cells, or as blocks of Gluon."""

from __future__ import annotations

from .api import get_model_metadata, import_model, import_to_cell, import_to_gluon

__all__ = ["import_model", "import_to_cell", "import_to_gluon", "get_model_metadata"]
