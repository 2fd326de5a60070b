"""Files of arrays in all formats: an ending or the content determines the format, whose module reads or writes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import BinaryIO

from opreg.core.files import atomic_write, open_to_read
from opreg.core.slots import Slot

from . import params_file
from .records import Pairs, Record

__all__ = ["MINDSPORE_WRITER", "NPZ_WRITER", "READ_MINDSPORE", "READ_NPZ", "READ_SAFETENSORS", "READ_TORCH",
           "SAFETENSORS_WRITER", "TEXT", "TORCH_WRITER", "checkpoint_writer", "is_params", "load", "save", "writer"]

#: Readers and writers of other formats, imported for the first such file.
READ_NPZ, NPZ_WRITER = Slot("npz"), Slot("npz")
READ_SAFETENSORS, SAFETENSORS_WRITER = Slot("safetensors"), Slot("safetensors")
READ_TORCH, TORCH_WRITER = Slot("PyTorch's files"), Slot("PyTorch's files")
READ_MINDSPORE, MINDSPORE_WRITER = Slot("MindSpore's files"), Slot("MindSpore's files")
#: Writers of other formats, by the ending of the file's name.
_WRITERS = {".npz": NPZ_WRITER, ".safetensors": SAFETENSORS_WRITER, ".pt": TORCH_WRITER, ".pth": TORCH_WRITER}
#: The first bytes of a checkpoint of MindSpore: a field of any length that begins with a name, or the checksum.
_PROTOBUF = re.compile(rb"\n[\x80-\xff]*[\x00-\x7f]\n[\x80-\xff]*[\x01-\x7f][ -~\xc2-\xf4]|crc_num")
#: Among the first bytes of a file of PyTorch from before 1.6: a pickle of its magic number.
_TORCH_MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
#: The ending of the name of an array that has the bytes of a text.
TEXT = ":text"
_LONGEST_ENTRY = 4096  # the largest length of the name of a zip member that is read


def load(path: str | os.PathLike[str]) -> tuple[list[Record], list[str]]:
    """Read the records and the names of a file, whose content determines the format.

    The formats are `.params`, `.npz`, `.safetensors`, files of PyTorch (`torch.save`) and checkpoints of MindSpore. No
    code in a file is run.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    records, names
        The same as `params_file.read` returns. Files of other formats always have names, and their devices are all
        ``("cpu", 0)``.

    Raises
    ------
    FileFormatError
        The errors of `params_file.read`; also if a zip has members other than numeric `.npy` files, and for pipes.
    OSError
        If the file is missing or cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "net.npz")
    ...     save(path, [Record(np.int64([1, 2]))], ["steps"])
    ...     load(path)
    ([Record(array=array([1, 2]), device=('cpu', 0), sparse=None)], ['steps'])
    """
    name = os.fsdecode(path)
    with open_to_read(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        file_format = _format(file)
        if file_format is not None:
            result: tuple[list[Record], list[str]] = file_format.function(file, size, name)
            return result
        return params_file.read_file(file, size, name)


def _format(file: BinaryIO) -> Slot | None:
    """The reader of a file's format; None for `.params`. The position in the file is 0 before and after."""
    start = file.read(64)
    file.seek(0)
    if start[:4] in (b"PK\3\4", b"PK\5\6"):
        length = int.from_bytes(start[26:28], "little")  # the length of the first member's name
        file.seek(30)
        first = file.read(min(length, _LONGEST_ENTRY))
        file.seek(0)
        return READ_TORCH if first.endswith(b"/data.pkl") else READ_NPZ
    if _TORCH_MAGIC in start:
        return READ_TORCH
    if start[8:9] == b"{":  # a safetensors header; in a .params file this byte is zero
        return READ_SAFETENSORS
    return READ_MINDSPORE if _PROTOBUF.match(start) else None


def is_params(path: str | os.PathLike[str]) -> bool:
    """Whether the content of a file is in the format `.params`, or in none of the known ones."""
    with open_to_read(path) as file:
        return _format(file) is None


def save(path: str | os.PathLike[str], records: Pairs, names: Sequence[str] = ()) -> None:
    """Save records to a file. If writing fails, the file is as it was before.

    A new file is written in the same folder. It replaces the old one when it is complete and on the disk.

    Parameters
    ----------
    path
        The file. The endings `.npz`, `.safetensors`, and PyTorch's `.pt` and `.pth` select these formats, any other
        `.params`.
    records, names
        As for `params_file.write`. In a `.npz` file, arrays without names are called ``arr_0``, ``arr_1``, …;
        `.safetensors` and `.pt` files need names. Only `.params` stores devices.

    Raises
    ------
    ArgumentError, DTypeError
        The errors of `params_file.write`. Other formats also refuse a record without an array, and `.npz` names with a
        NUL; `.npz` has all numeric dtypes of NumPy, but no bfloat16.
    OSError
        If the folder is missing, the file is write-protected, or the disk is full.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "net-0001.params")
    ...     save(path, [Record(np.float32([1, 2]))], ["arg:w"])
    ...     load(path)
    ([Record(array=array([1., 2.], dtype=float32), device=('cpu', 0), sparse=None)], ['arg:w'])
    """
    put = writer(path, records, names)
    with atomic_write(path) as file:
        put(file)


def writer(path: str | os.PathLike[str], records: Pairs, names: Sequence[str] = ()) -> Callable[[BinaryIO], None]:
    """A function that writes records to an open file, in the format of the path's ending.

    All checks are made before it is returned; parameters and errors are those of `save`.
    """
    ending = os.path.splitext(os.fsdecode(path))[1]
    if ending in _WRITERS:
        put: Callable[[BinaryIO], None] = _WRITERS[ending].function(records, names)
        return put
    pieces = params_file.write(records, names)
    return lambda file: file.writelines(pieces)


def checkpoint_writer(path: str | os.PathLike[str], records: Pairs, names: Sequence[str]
                      ) -> Callable[[BinaryIO], None]:
    """A writer of checkpoints: the ending `.ckpt` selects MindSpore's format. `save` writes MXNet's by that name."""
    if os.fsdecode(path).endswith(".ckpt"):
        put: Callable[[BinaryIO], None] = MINDSPORE_WRITER.function(records, names)
        return put
    return writer(path, records, names)
