"""The one place where the package ``onnx`` is met, which the extra ``opreg[onnx]`` brings."""

from __future__ import annotations

import importlib
from typing import Any

from opreg.errors import ArgumentError

__all__ = ["onnx"]


def onnx(module: str = "") -> Any:
    """The package ``onnx``, or a module of it.

    Parameters
    ----------
    module : str
        A module below the package, as ``"numpy_helper"``; the package itself by default.

    Raises
    ------
    ArgumentError
        The package is not installed: the message says how to get it.
    """
    try:
        return importlib.import_module(f"onnx.{module}" if module else "onnx")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("onnx", "google"):
            raise
        raise ArgumentError("opreg.onnx needs the package onnx: pip install 'opreg[onnx]'") from None
