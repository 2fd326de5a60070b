"""``mx.onnx.mx2onnx``, where MXNet has the export of models, too."""

from .exporting import export_model

__all__ = ["export_model"]
