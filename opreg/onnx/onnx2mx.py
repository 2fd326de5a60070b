"""``mx.contrib.onnx.onnx2mx``, where MXNet has the import of models, too."""

from opreg.aliases import inner

from .importing import get_model_metadata, import_model, import_to_gluon

__all__ = ["get_model_metadata", "import_model", "import_to_gluon"]

__getattr__ = inner(__name__)
