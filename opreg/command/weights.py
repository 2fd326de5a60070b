"""Arrays of files by name, whatever the format: ``.params``, ``.npz``, ``.safetensors``, ``.ckpt``, files of PyTorch,
and the initializers of models of ONNX."""

from __future__ import annotations

from typing import NamedTuple

from opreg import onnx
from opreg.core.files import reading
from opreg.errors import FileFormatError
from opreg.ndarray import params_file
from opreg.nn.checkpoint import read_checkpoint
from opreg.typing import Array

__all__ = ["ENDINGS", "Weights", "load"]

#: Suffixes of files that are written: the first three of MXNet, NumPy and safetensors, MindSpore's, and PyTorch's.
ENDINGS = (".params", ".npz", ".safetensors", ".ckpt", ".pt", ".pth")


class Weights(NamedTuple):
    """The arrays of a file.

    Attributes
    ----------
    arrays : dict
        By name; by their numbers where they have none.
    named : bool
        Whether they have names.
    """

    arrays: dict[str, Array]
    named: bool


def load(path: str) -> Weights:
    """Read a file.

    Raises
    ------
    FileFormatError
        It is damaged, is of another kind, or says that there is no array.
    OSError
        It is missing or cannot be read.
    """
    if path.endswith(".ckpt"):
        with reading(path):
            pass
        return Weights(read_checkpoint(path), True)
    if path.endswith(".onnx"):
        return Weights(dict(onnx.import_to_cell(path).model.graph.initializers), True)
    records, names = params_file.load(path)
    arrays: dict[str, Array] = {}
    for i, record in enumerate(records):
        name = names[i] if names else str(i)
        if (whole := record.dense()) is None:
            raise FileFormatError(f"{path}: {name} is no array")
        arrays[name] = whole
    if len(arrays) != len(records):
        raise FileFormatError(f"{path}: arrays have the same name")
    return Weights(arrays, bool(names) or not records)
