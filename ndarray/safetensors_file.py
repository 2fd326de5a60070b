"""Parameter files in the safetensors format. The reader trusts no byte of a file.

    u64 length | JSON of so many bytes | bytes of the arrays

By the name of each array, the JSON has its dtype, shape, and the offsets of its first byte and behind its last, counted
from the end of the JSON. All numbers are little-endian. Arrays are contiguous, those with the widest elements first, so
that each is aligned. ``__metadata__`` has notes of the writing program, which are ignored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from opreg.core.json_text import json_of
from opreg.errors import ArgumentError, FileFormatError, list_names

from .formats import READ_SAFETENSORS, SAFETENSORS_WRITER
from .records import MAX_NDIM, Pairs, Record, bytes_of, decode, whole_arrays

__all__ = ["DTYPES"]

#: By the name of a dtype in the format: NumPy's name, and the dtype of the stored elements.
DTYPES = {"BOOL": ("bool", "u1"), "U8": ("uint8", "u1"), "I8": ("int8", "i1"), "U16": ("uint16", "<u2"),
          "I16": ("int16", "<i2"), "U32": ("uint32", "<u4"), "I32": ("int32", "<i4"), "U64": ("uint64", "<u8"),
          "I64": ("int64", "<i8"), "F16": ("float16", "<f2"), "BF16": ("bfloat16", "<u2"), "F32": ("float32", "<f4"),
          "F64": ("float64", "<f8"), "C64": ("complex64", "<c8")}
_NAMES = {name: code for code, (name, _) in DTYPES.items()}
_METADATA = "__metadata__"
#: The length of the header is a multiple of this.
_ALIGNED = 8


@SAFETENSORS_WRITER.provide
def _writer(records: Pairs, names: Sequence[str]) -> Callable[[BinaryIO], None]:
    arrays = whole_arrays(records, names, ".safetensors", _NAMES)
    if _METADATA in arrays:
        raise ArgumentError(f"array {list(arrays).index(_METADATA)} ({_METADATA!r}): a .safetensors file reserves "
                            "this name for its metadata; choose another one")
    begins, end = {}, 0
    for name in sorted(arrays, key=lambda name: -arrays[name].itemsize):
        begins[name] = end
        end += arrays[name].nbytes
    header = json.dumps({name: {"dtype": _NAMES[array.dtype.name], "shape": array.shape,
                                "data_offsets": (begins[name], begins[name] + array.nbytes)}
                         for name, array in arrays.items()}, ensure_ascii=False, separators=(",", ":")).encode()
    header += b" " * (-len(header) % _ALIGNED)

    def put(file: BinaryIO) -> None:
        file.write(len(header).to_bytes(8, "little") + header)
        for name in begins:
            file.write(bytes_of(arrays[name], DTYPES[_NAMES[arrays[name].dtype.name]][1]))

    return put


@READ_SAFETENSORS.provide
def _read(file: BinaryIO, size: int, name: str) -> tuple[list[Record], list[str]]:
    reader = _Reader(file, size, name)
    arrays = {key: reader.array(key, entry) for key, entry in reader.entries().items()}
    return [Record(array) for array in arrays.values()], list(arrays)


class _Entry(NamedTuple):
    """The header's entry of an array: the dtype, the dtype of stored elements, the shape, and the range of bytes in the
    file."""

    dtype: str
    stored: str
    shape: tuple[int, ...]
    begin: int
    end: int


class _Reader:
    """A file and its length, which bounds all sizes in it."""

    def __init__(self, file: BinaryIO, size: int, name: str) -> None:
        self.file, self.size, self.name = file, size, name

    def fail(self, part: str, expected: str, found: object) -> NoReturn:
        raise FileFormatError(f"{self.name}: {part}: expected {expected}, found {found}")

    def entries(self) -> dict[str, _Entry]:
        """Read the header, and check that every byte after it belongs to exactly one array."""
        length = int.from_bytes(self.file.read(8), "little")
        available = self.size - 8
        if length > available:
            self.fail("byte 0, length of the header", f"at most {available}, what is left of the file", length)
        header = json_of(self.file.read(length), f"{self.name}: header")
        if not isinstance(header, dict):
            self.fail("header", "an object", type(header).__name__)
        metadata = header.pop(_METADATA, {})
        if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
            self.fail(f"header, {_METADATA}", "texts by name", repr(metadata)[:80])
        entries = {key: self._entry(key, value, 8 + length) for key, value in header.items()}
        at = 8 + length
        for key, entry in sorted(entries.items(), key=lambda item: item[1][3:]):
            if entry.begin != at:
                self.fail(f"header, {key!r}", f"an array that begins at byte {at}, where the one before it ends",
                          entry.begin)
            at = entry.end
        if at != self.size:
            self.fail("header", f"arrays up to the end of the file, byte {self.size}", f"their end at byte {at}")
        return entries

    def _entry(self, key: str, value: Any, start: int) -> _Entry:
        part = f"header, {key!r}"
        if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
            self.fail(part, "dtype, shape and data_offsets", repr(value)[:80])
        code, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
        if not isinstance(code, str) or code not in DTYPES:
            self.fail(part, f"a dtype of {list_names([*DTYPES], 20)}", repr(code)[:80])
        if not _counts(shape) or len(shape) > MAX_NDIM:
            self.fail(part, f"a shape of at most {MAX_NDIM} dimensions", repr(shape)[:80])
        if not _counts(offsets) or len(offsets) != 2:
            self.fail(part, "two data_offsets", repr(offsets)[:80])
        name, stored = DTYPES[code]
        length = math.prod(shape) * np.dtype(stored).itemsize
        if offsets[1] - offsets[0] != length:
            self.fail(part, f"{length} bytes, {name} {tuple(shape)}", offsets[1] - offsets[0])
        if max(offsets[1], *(max(dim, 1) for dim in shape), math.prod(max(dim, 1) for dim in shape)) >= 1 << 60:
            self.fail(part, "a shape that an array may have", tuple(shape))
        return _Entry(name, stored, tuple(shape), start + offsets[0], start + offsets[1])

    def array(self, key: str, entry: _Entry) -> np.ndarray:
        """Read the elements of an array."""
        values = np.empty(math.prod(entry.shape), entry.stored)
        self.file.seek(entry.begin)
        if self.file.readinto(values.view(np.uint8).data) != values.nbytes:  # type: ignore[attr-defined]
            self.fail(repr(key), f"{values.nbytes} bytes", "fewer: the file has become shorter")
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        try:
            return decode(values, entry.dtype).reshape(entry.shape)
        except ImportError:
            self.fail(repr(key), "the package ml_dtypes to be installed, which bfloat16 needs", "none")


def _counts(value: object) -> bool:
    return isinstance(value, list) and all(type(number) is int and number >= 0 for number in value)
