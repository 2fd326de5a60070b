"""``mx.onnx.mx2onnx``, where MXNet has the export of models, too."""

from opreg.aliases import inner

from .exporting import export_model

__all__ = ["export_model"]

__getattr__ = inner(__name__)
