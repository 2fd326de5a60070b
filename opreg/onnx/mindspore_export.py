"""Export of networks by MindSpore's name, ``export``."""

from __future__ import annotations

import os
from typing import Any

from opreg import onnx
from opreg.errors import ArgumentError

from ..core.named_errors import name_errors

__all__ = ["export"]

#: Formats of MindSpore, which are not written.
_ITS_OWN = ("AIR", "MINDIR")


def export(net: Any, *inputs: Any, file_name: str | os.PathLike[str], file_format: str,
           enc_key: object = None, enc_mode: object = "AES-GCM") -> None:
    """Write a network as an ONNX model for inference.

    Parameters
    ----------
    net : Cell or function
        The network.
    *inputs : Tensor, or list or tuple of Tensors
        Example inputs, which give shapes and dtypes.
    file_name : str or path
        The file; ``.onnx`` is appended to a name with another ending.
    file_format : {"ONNX"}
        Files of MindSpore's own formats, ``"MINDIR"`` and ``"AIR"``, are not written.
    enc_key
        Must be None; files are not encrypted.
    enc_mode
        Accepted without effect.

    Raises
    ------
    ArgumentError
        For another format, or a key.
    OpError
        When an operator has no ONNX form; the message gives its name, node, and the reason.

    Examples
    --------
    >>> import opreg, os, tempfile
    >>> net = opreg.nn.Dense(3, 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export(net, opreg.ops.ones((1, 3)), file_name=os.path.join(folder, "net"), file_format="ONNX")
    ...     os.listdir(folder)
    ['net.onnx']
    """
    if file_format in _ITS_OWN:
        raise ArgumentError(f"export: files of {file_format} are not written, MindSpore alone reads them: "
                            "file_format='ONNX' writes a network for other programs, save_checkpoint its parameters "
                            "for MindSpore")
    if file_format != "ONNX":
        raise ArgumentError(f"export: file_format must be 'ONNX', got {file_format!r}")
    if enc_key is not None:
        raise ArgumentError("export: files are not encrypted; enc_key must be None")
    path = os.fspath(file_name)
    onnx.export(net, path if path.endswith(".onnx") else f"{path}.onnx", *inputs)


name_errors(__name__, globals(), __all__)
