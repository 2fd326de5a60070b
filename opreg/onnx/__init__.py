"""ONNX: import of models as symbols and Cells, and export of symbols, Cells and blocks as models.

Names load at first use, and the package ``onnx`` is needed only when a model is read or written: importing this module
loads neither.
"""

from __future__ import annotations

import importlib
from typing import Any

from opreg.errors import did_you_mean

#: Public name -> submodule and the name in it; without a name the submodule itself.
_DOORS: dict[str, tuple[str, str | None]] = {
    "import_model": ("importing", "import_model"),
    "import_to_cell": ("importing", "import_to_cell"),
    "import_to_gluon": ("importing", "import_to_gluon"),
    "get_model_metadata": ("importing", "get_model_metadata"),
    "export": ("exporting", "export"),
    "export_model": ("exporting", "export_model"),
    "to_model": ("exporting", "to_model"),
    "inference_session": ("runtime", "inference_session"),
    "backend": ("backend", None),
    "mx2onnx": ("mx2onnx", None),
    "onnx2mx": ("onnx2mx", None),
}

__all__ = ["backend", "export", "export_model", "get_model_metadata", "import_model", "import_to_cell",
           "import_to_gluon", "inference_session", "mx2onnx", "onnx2mx", "to_model"]


def __getattr__(name: str) -> Any:
    if name not in _DOORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}. {did_you_mean(name, _DOORS)}")
    module, attribute = _DOORS[name]
    result = importlib.import_module(f"{__name__}.{module}")
    value: Any = result if attribute is None else getattr(result, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_DOORS)
