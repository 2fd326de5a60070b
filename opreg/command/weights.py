"""Arrays of files by name, for all formats: ``.params``, ``.npz``, ``.safetensors``, ``.ckpt``, files of PyTorch, and
the initializers of ONNX models."""

from __future__ import annotations

from typing import NamedTuple

from opreg import onnx
from opreg.core.files import open_to_read
from opreg.errors import FileFormatError
from opreg.ndarray import formats
from opreg.nn.checkpoint import read_checkpoint
from opreg.typing import Array

__all__ = ["ENDINGS", "Weights", "load"]

#: Endings of the files that can be written: of MXNet, NumPy and safetensors, MindSpore, and PyTorch.
ENDINGS = (".params", ".npz", ".safetensors", ".ckpt", ".pt", ".pth")


class Weights(NamedTuple):
    """The arrays of a file.

    Attributes
    ----------
    arrays : dict
        The arrays by name, or by number if they have none.
    named : bool
        Whether the arrays have names.
    """

    arrays: dict[str, Array]
    named: bool


def load(path: str) -> Weights:
    """Read a file.

    Raises
    ------
    FileFormatError
        When it is damaged, has another format, or contains no array.
    OSError
        When it is missing or unreadable.
    """
    if path.endswith(".ckpt"):
        with open_to_read(path):
            pass
        return Weights(read_checkpoint(path), True)
    if path.endswith(".onnx"):
        return Weights(dict(onnx.import_to_cell(path).model.graph.initializers), True)
    records, names = formats.load(path)
    arrays: dict[str, Array] = {}
    for i, record in enumerate(records):
        name = names[i] if names else str(i)
        if (dense := record.dense()) is None:
            raise FileFormatError(f"{path}: {name} is not an array")
        arrays[name] = dense
    if len(arrays) != len(records):
        raise FileFormatError(f"{path}: arrays have the same name")
    return Weights(arrays, bool(names) or not records)
