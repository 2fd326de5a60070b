"""Networks as files that other programs run, by MindSpore's name."""

from __future__ import annotations

import os
from typing import Any

from opreg import onnx
from opreg.errors import ArgumentError

__all__ = ["export"]

#: Formats of MindSpore that no other program reads.
_ITS_OWN = ("AIR", "MINDIR")


def export(net: Any, *inputs: Any, file_name: str | os.PathLike[str], file_format: str,
           enc_key: object = None, enc_mode: object = "AES-GCM") -> None:
    """Write a network as a model of ONNX, in inference.

    Parameters
    ----------
    net : Cell or function
        What is written.
    *inputs : Tensor, or list or tuple of Tensors
        Example inputs, which say shapes and dtypes.
    file_name : str or path
        The file; ``.onnx`` is put behind a name that ends otherwise.
    file_format : {"ONNX"}
        Files of MindSpore's own formats, ``"MINDIR"`` and ``"AIR"``, are not written.
    enc_key
        Must be None; files are not encrypted.
    enc_mode
        Counts for nothing.

    Raises
    ------
    ArgumentError
        For another format, or a key.
    OpError
        An operator cannot be said in ONNX: its name and node, and why.

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
                            "file_format='ONNX' writes a network for others, save_checkpoint its parameters for it")
    if file_format != "ONNX":
        raise ArgumentError(f"export: file_format must be 'ONNX', got {file_format!r}")
    if enc_key is not None:
        raise ArgumentError("export: files are not encrypted; enc_key must be None")
    path = os.fspath(file_name)
    onnx.export(net, path if path.endswith(".onnx") else f"{path}.onnx", *inputs)
