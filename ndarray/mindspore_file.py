"""Checkpoints of MindSpore. They are a protobuf message: values, each with a name and a tensor of dimensions, dtype and
bytes.

    value = field 1 | name = 1.1 | tensor = 1.2 | lengths = 1.2.1 | dtype = 1.2.2 | bytes = 1.2.3

A large tensor is split into several values of the same name. A file may end with ``crc_num`` and the CRC-32 of all
bytes before it. Files of this library do, and the first value says so by one more field, 1.15, which MindSpore ignores.
So a file that was cut between two values is known to be damaged.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

import numpy as np

from opreg.core.protobuf import Message, field, varint
from opreg.errors import FileFormatError, list_names

from .formats import MINDSPORE_WRITER, READ_MINDSPORE, TEXT
from .records import MAX_NDIM, Pairs, Record, bytes_of, decode, whole_arrays

#: By MindSpore's name of a dtype: NumPy's name, and the dtype of the stored elements.
_DTYPES = {"Float64": ("float64", "<f8"), "Float32": ("float32", "<f4"), "Float16": ("float16", "<f2"),
           "BFloat16": ("bfloat16", "<u2"), "Int64": ("int64", "<i8"), "Int32": ("int32", "<i4"),
           "Int16": ("int16", "<i2"), "Int8": ("int8", "i1"), "UInt64": ("uint64", "<u8"), "UInt32": ("uint32", "<u4"),
           "UInt16": ("uint16", "<u2"), "UInt8": ("uint8", "u1"), "Bool": ("bool", "u1")}
_TEXT = "str"
_NAMES = {name: code for code, (name, _) in _DTYPES.items()}
#: The largest number of bytes of a tensor in one value.
_LONGEST = 1 << 29
_CHECKED = 15  # the field of a value in a file that ends with a checksum
_CHECKSUM = b"crc_num"
_CHECKSUM_BYTES = len(_CHECKSUM) + 10


@MINDSPORE_WRITER.provide
def _writer(records: Pairs, names: Sequence[str]) -> Callable[[BinaryIO], None]:
    arrays = whole_arrays(records, names, ".ckpt", _NAMES)

    def pieces() -> Iterator[bytes | memoryview]:
        mark = field(_CHECKED, 1)
        for name, array in arrays.items():
            text = _text(name, array)
            if text is None:
                code, shape = _NAMES[array.dtype.name], array.shape
                numbers = bytes_of(array, _DTYPES[code][1])
            else:
                name, code, shape = name.removesuffix(TEXT), _TEXT, (0,)
                numbers = memoryview((text or "\0").encode("utf-32-le"))  # MindSpore reads no text without characters
            tag = field(1, name) + mark
            mark = b""
            head = b"".join(b"\x08" + varint(dim) for dim in shape) + field(2, code)
            for at in range(0, max(len(numbers), 1), _LONGEST):
                part = numbers[at:at + _LONGEST]
                tensor = head + b"\x1a" + varint(len(part))
                value = tag + b"\x12" + varint(len(tensor) + len(part)) + tensor
                yield b"\x0a" + varint(len(value) + len(part)) + value
                yield part

    def put(file: BinaryIO) -> None:
        checksum = 0
        for piece in pieces():
            checksum = zlib.crc32(piece, checksum)
            file.write(piece)
        file.write(_CHECKSUM + checksum.to_bytes(10, "big"))

    return put


def _text(name: str, array: np.ndarray) -> str | None:
    """The text whose bytes an array of this name has."""
    if not name.endswith(TEXT) or array.dtype != np.uint8:
        return None
    try:
        return array.tobytes().decode()
    except UnicodeDecodeError:
        return None


class _Tensor:
    """A tensor, whose bytes are in one value or several."""

    def __init__(self) -> None:
        self.shape: list[int] = []
        self.dtype = ""
        self.parts: list[memoryview] = []

    def take(self, reader: Message) -> None:
        """Read the fields of a protobuf message."""
        shape: list[int] = []
        for place, value in reader.fields():
            if place == 1:  # each dimension has its own field, or one field has all of them
                if isinstance(value, int):
                    shape.append(value)
                else:
                    while value.at < len(value.content):
                        shape.append(value.number())
            elif place in (2, 3) and isinstance(value, Message):
                if place == 2:
                    self.dtype = value.text()
                else:
                    self.parts.append(value.content)
        self.shape = shape

    def array(self, reader: Message, key: str) -> np.ndarray:
        """The tensor as an array; of a text, four bytes a character, its bytes in UTF-8. NULs at its end are none."""
        if self.dtype == _TEXT:
            try:
                text = b"".join(self.parts).decode("utf-32-le").rstrip("\0")
                return np.frombuffer(text.encode(), np.uint8)
            except UnicodeError as error:
                reader.fail(f"{key!r} to be a text", error)
        if self.dtype not in _DTYPES:
            reader.fail(f"{key!r} of a dtype of {list_names([*_DTYPES], 20)}", repr(self.dtype)[:80])
        name, stored = _DTYPES[self.dtype]
        values = np.frombuffer(b"".join(self.parts), np.uint8)
        size = np.dtype(stored).itemsize
        shape = tuple(self.shape)
        if shape == (0,) and len(values) == size:  # older versions write a scalar with the shape (0,)
            shape = ()
        if len(shape) > MAX_NDIM or max(shape, default=0) >= 1 << 60 or math.prod(shape) * size != len(values):
            reader.fail(f"{key!r} of {len(values)} bytes", f"{name} of shape {shape}")
        stored_values = values.view(stored)
        try:
            return decode(stored_values.astype(stored_values.dtype.newbyteorder("=")), name).reshape(shape)
        except ImportError:
            return reader.fail("the package ml_dtypes to be installed, which bfloat16 needs", "none")


@READ_MINDSPORE.provide
def _read(file: BinaryIO, size: int, name: str) -> tuple[list[Record], list[str]]:
    content = memoryview(file.read(size))
    has_checksum = bytes(content[-_CHECKSUM_BYTES:-10]) == _CHECKSUM
    if has_checksum:
        stored = int.from_bytes(content[-10:], "big")
        content = content[:-_CHECKSUM_BYTES]
        if stored != zlib.crc32(content):
            raise FileFormatError(f"{name}: the checksum is not that of its content: the file is damaged")
    reader = Message(content, name)
    tensors: dict[str, _Tensor] = {}
    for place, value in reader.fields():
        if place != 1 or isinstance(value, int):
            reader.fail("a value", f"field {place}")
        key, tensor = "", None
        for inner, part in value.fields():
            if inner == 1 and isinstance(part, Message):
                key = part.text()
            elif inner == 2 and isinstance(part, Message):
                tensor = part
            elif inner == _CHECKED and not has_checksum:
                raise FileFormatError(f"{name}: the checksum at the end is missing: the file is damaged")
        if tensor is None or not key:
            value.fail("a name and a tensor", "something else")
        tensors.setdefault(key, _Tensor()).take(tensor)
    return ([Record(tensor.array(reader, key)) for key, tensor in tensors.items()],
            [f"{key}{TEXT}" if tensor.dtype == _TEXT else key for key, tensor in tensors.items()])
