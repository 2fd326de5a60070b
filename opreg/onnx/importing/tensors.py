"""ONNX tensors as NumPy arrays, and ONNX's codes for dtypes."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from opreg.core.spec import DTYPES
from opreg.errors import FileFormatError

from ..package import onnx

__all__ = ["array_of", "dtype_of", "number_of", "computes", "sparse_array_of", "load_external"]

_NAMES = frozenset(DTYPES.values())


def dtype_of(number: int) -> np.dtype:
    """The dtype of an ONNX dtype code; text has the object dtype.

    Raises
    ------
    FileFormatError
        If the code is unknown.

    Examples
    --------
    >>> dtype_of(1), dtype_of(9)
    (dtype('float32'), dtype('bool'))
    """
    try:
        return np.dtype(onnx("helper").tensor_dtype_to_np_dtype(number))
    except (KeyError, TypeError):
        raise FileFormatError(f"ONNX has no dtype with number {number}") from None


def number_of(dtype: np.dtype) -> int:
    """ONNX's code for a dtype.

    Examples
    --------
    >>> number_of(np.dtype("int64"))
    7
    """
    return 8 if dtype.kind in "OUS" else int(onnx("helper").np_dtype_to_tensor_dtype(dtype))


def computes(dtype: np.dtype) -> bool:
    """Whether arrays of this library can have a dtype.

    Examples
    --------
    >>> computes(np.dtype("float32")), computes(np.dtype("complex64"))
    (True, False)
    """
    return dtype.name in _NAMES


def array_of(tensor: Any) -> np.ndarray:
    """The elements of a tensor in a file.

    Raises
    ------
    FileFormatError
        If its shape does not match its elements, or it has no dtype.
    """
    dtype_of(tensor.data_type)
    if any(dim < 0 for dim in tensor.dims):
        raise FileFormatError(f"tensor {tensor.name!r}: a length is negative: {list(tensor.dims)}")
    if tensor.HasField("raw_data") or tensor.data_type == 8:
        stored = len(tensor.raw_data)
    else:
        stored = max(len(getattr(tensor, field)) for field in (
            "float_data", "int32_data", "int64_data", "double_data", "uint64_data"))
    if math.prod(tensor.dims) > 8 * max(stored, len(tensor.string_data)):
        raise FileFormatError(f"tensor {tensor.name!r}: it has fewer or more values than its shape "
                              f"{tuple(tensor.dims)}")
    try:
        array = onnx("numpy_helper").to_array(tensor)
    except Exception as error:
        raise FileFormatError(f"tensor {tensor.name!r}: {error}") from None
    if array.dtype.kind == "O":
        array = _decode_tensor(array)
    return array


def _decode_tensor(array: np.ndarray) -> np.ndarray:
    """An array of bytes decoded to ``str``."""
    decoded = [each.decode(errors="replace") if isinstance(each, bytes) else each for each in array.reshape(-1)]
    return np.array(decoded, object).reshape(array.shape)


def sparse_array_of(sparse: Any) -> np.ndarray:
    """A sparse tensor as a dense array."""
    values, places, shape = array_of(sparse.values), array_of(sparse.indices), tuple(sparse.dims)
    if any(dim < 0 for dim in shape) or math.prod(shape) > 1 << 28:
        raise FileFormatError(f"a sparse tensor of shape {shape}")
    dense = np.zeros(shape, values.dtype)
    try:
        if places.ndim == 2:
            dense[tuple(places.T)] = values
        else:
            dense.reshape(-1)[places] = values
    except (IndexError, ValueError) as error:
        raise FileFormatError(f"a sparse tensor of shape {shape}: {error}") from None
    return dense


def load_external(tensor: Any, folder: str) -> None:
    """Load the bytes of an external tensor into it.

    Raises
    ------
    FileFormatError
        If the file is outside the model's folder, or shorter than the tensor states.
    """
    if tensor.data_location != 1:
        return
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if any(isinstance(value, bytes) for value in entries.values()):
        raise FileFormatError(f"tensor {tensor.name!r}: the name of its file, or another entry, is not UTF-8")
    where, base = entries.get("location", ""), os.path.realpath(folder)
    path = os.path.realpath(os.path.join(base, where))
    if not where or os.path.isabs(where) or os.path.commonpath([base, path]) != base:
        raise FileFormatError(f"tensor {tensor.name!r}: its file {where!r} is not in the model's folder")
    try:
        size = os.stat(path).st_size
        start = int(entries.get("offset", 0))
        length = int(entries.get("length", size - start))
    except (OSError, ValueError) as error:
        raise FileFormatError(f"tensor {tensor.name!r}: its file {where!r}: {error}") from None
    if start < 0 or length < 0 or start + length > size or not os.path.isfile(path):
        raise FileFormatError(f"tensor {tensor.name!r}: its file {where!r} has {size} bytes, {length} from byte "
                              f"{start} were expected")
    with open(path, "rb") as file:
        file.seek(start)
        tensor.raw_data = file.read(length)
    tensor.data_location = 0
    del tensor.external_data[:]
