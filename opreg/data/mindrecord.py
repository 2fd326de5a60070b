"""MindRecord files: rows of named fields in pages, written by ``FileWriter`` and read by ``FileReader``.

A file begins with a header, JSON behind its length, and has pages of one size. Fields without axes, numbers and text,
are in raw pages, as maps of MessagePack; bytes and arrays are in blob pages, one after the other. Integers of arrays
have as many bytes as their values need. A file ``.db`` beside each has the places of the rows, for MindSpore.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ..core.files import open_to_read
from ..core.settings import CheckedMethods
from ..errors import ArgumentError, FileFormatError, did_you_mean
from .mindrecord_format import COUNT, FIELD, LENGTH, SHIFTS, TYPES, is_blob
from .mindrecord_writer import FileWriter

__all__ = ["FileReader", "FileWriter"]


class RecordFile:
    """One MindRecord file: the fields of its schema, and its rows by number.

    Raises
    ------
    OSError
        When the file is missing.
    FileFormatError
        When it is no MindRecord file, or damaged.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = os.fspath(path)
        with open_to_read(path) as file:
            self.size = os.fstat(file.fileno()).st_size
            if self.size < 8:
                self._raise_damaged("it is shorter than a header")
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            header = json.loads(self._data[8:8 + self._number(0, self.size - 8)])
            schema = header["schema"][0]
            self.fields: dict[str, dict[str, Any]] = {name: dict(kind) for name, kind in schema["schema"].items()}
            self.blobs: list[str] = [str(name) for name in schema["blob_fields"]]
            self.shards: list[str] = [str(name) for name in header["shard_addresses"]]
            pages = [(str(page["page_type"]), int(header["header_size"]) + int(page["page_id"]) * int(
                header["page_size"]), int(page["page_size"])) for page in header["page"]]
            unknown = [name for name, kind in self.fields.items() if kind["type"] not in TYPES]
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            self._raise_damaged(f"its header cannot be read ({error})")
        if unknown or any(name not in self.fields for name in self.blobs):
            self._raise_damaged(f"the schema has a field of an unknown type, among {', '.join(self.fields)}")
        if any(begin < 0 or length < 0 or begin + length > self.size for _, begin, length in pages):
            self._raise_damaged("it is shorter than its pages")
        self._raw, self._blob = [[place for page, begin, length in pages if page == kind
                                  for place in self._row_ranges(begin, begin + length)]
                                 for kind in ("RAW_DATA", "BLOB_DATA")]
        if self.blobs and len(self._blob) != len(self._raw):
            self._raise_damaged(f"{len(self._raw)} rows, and blobs of {len(self._blob)}")

    def __len__(self) -> int:
        return len(self._raw)

    def _raise_damaged(self, what: str) -> NoReturn:
        raise FileFormatError(f"{self.path}: no MindRecord file, or a damaged one: {what}")

    def _number(self, at: int, most: int) -> int:
        """The length at an offset, which must not be above ``most``."""
        length: int = LENGTH.unpack_from(self._data, at)[0]
        if length > most:
            self._raise_damaged(f"a part of {length} bytes where there are {most}")
        return length

    def _row_ranges(self, at: int, end: int) -> Iterator[tuple[int, int]]:
        """Begin and end of each row in a page."""
        while at < end:
            begin = at + 8
            if begin > end:
                self._raise_damaged("a page ends within a row")
            at = begin + self._number(at, end - begin)
            yield begin, at

    def row(self, number: int) -> dict[str, Any]:
        """The fields of a row: ints, floats, text, bytes and arrays."""
        begin, end = self._raw[number]
        try:
            plain, left = _unpack(memoryview(self._data[begin:end]), 0)
        except (struct.error, IndexError, UnicodeDecodeError, RecursionError):
            self._raise_damaged(f"row {number} cannot be read")
        if not isinstance(plain, dict) or left != end - begin:
            self._raise_damaged(f"row {number} is no map of fields")
        values = {name: plain[name] for name, kind in self.fields.items() if name in plain and not is_blob(kind)}
        if not self.blobs:
            return values
        begin, end = self._blob[number]
        for name in self.blobs:
            length = end - begin
            if len(self.blobs) > 1:
                if end - begin < 8:
                    self._raise_damaged(f"row {number} has no field {name!r}")
                length = FIELD.unpack_from(self._data, begin)[0]
                begin += 8
                if length > end - begin:
                    self._raise_damaged(
                        f"row {number}: field {name!r} has {length} bytes, where there are {end - begin}")
            values[name] = self._value(name, self._data[begin:begin + length])
            begin += length
        return values

    def _value(self, name: str, data: bytes) -> Any:
        """Bytes, or an array of the shape in the schema."""
        kind = self.fields[name]
        if "shape" not in kind:
            return data
        try:
            flat = _decode_integers(data) if kind["type"].startswith("int") else np.frombuffer(data, kind["type"])
            return flat.astype(kind["type"]).reshape(kind["shape"])
        except (ValueError, struct.error):
            self._raise_damaged(f"field {name!r} is no array of {kind['type']} and shape {kind['shape']}")


def _decode_integers(data: bytes) -> np.ndarray:
    """The integers that ``_shortened`` has written, as int64."""
    count: int = COUNT.unpack_from(data)[0]
    if count > len(data):  # each has a byte at least
        raise ValueError("more integers than bytes")
    head = 4 + -(-count // 4)
    codes = ((np.frombuffer(data[4:head], np.uint8)[:, None] >> SHIFTS) & 3).reshape(-1)[:count].astype(np.int64)
    whole = np.zeros((count, 8), np.uint8)
    whole[np.arange(8) < (1 << codes)[:, None]] = np.frombuffer(data[head:], np.uint8)
    shift = 64 - (8 << codes)
    return np.asarray((whole.view("<i8").reshape(-1) << shift) >> shift)


#: Formats of numbers in MessagePack, by their first byte.
_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
            0xD3: ">q"}
#: Formats of the lengths of texts and maps.
_LENGTHS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDE: ">H", 0xDF: ">I"}


def _unpack(data: memoryview, at: int) -> tuple[Any, int]:
    """A value in MessagePack at an offset, and the offset after it: a map of fields, text, a number or None."""
    code = data[at]
    at += 1
    if code < 0x80 or code >= 0xE0:
        return code - (256 if code >= 0xE0 else 0), at
    if code in _NUMBERS:
        number = struct.Struct(_NUMBERS[code])
        return number.unpack_from(data, at)[0], at + number.size
    if code in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[code], at
    if code in _LENGTHS:
        form = struct.Struct(_LENGTHS[code])
        length, at = form.unpack_from(data, at)[0], at + form.size
    else:
        length = code & (0x1F if code >= 0xA0 else 0x0F)
    if 0xA0 <= code < 0xC0 or 0xD9 <= code <= 0xDB:
        if length > len(data) - at:
            raise IndexError("a text that is longer than the row")
        return str(data[at:at + length], "utf-8"), at + length
    if not (0x80 <= code < 0x90 or code in (0xDE, 0xDF)):
        raise IndexError(f"a value of the kind {code:#x}")
    fields = {}
    for _ in range(length):  # each takes a byte at least, so a wrong length ends with an IndexError
        name, at = _unpack(data, at)
        fields[name if isinstance(name, str) else str(name)], at = _unpack(data, at)
    return fields, at


def files_of(paths: str | os.PathLike | Sequence[str | os.PathLike]) -> list[RecordFile]:
    """The files of a data set: those of a list, or a file with all that were written together with it."""
    if isinstance(paths, (list, tuple)):
        return [RecordFile(path) for path in paths]
    first = RecordFile(paths)  # type: ignore[arg-type]
    folder, name = os.path.split(first.path)
    others = [os.path.basename(shard) for shard in first.shards]
    return [first if other == name else RecordFile(os.path.join(folder, other)) for other in others] \
        if name in others else [first]


class FileReader(CheckedMethods):
    """Reads the rows of MindRecord files in their order.

    Parameters
    ----------
    file_name : str, path, or list of them
        A file, with all that were written together with it; or a list of files.
    num_consumer : int
        Accepted without effect.
    columns : list of str, optional
        Fields to read, by default all.

    Raises
    ------
    ArgumentError
        When a field does not exist.
    FileFormatError
        When a file is no MindRecord file, or damaged.
    """

    def __init__(self, file_name: str | os.PathLike | Sequence[str | os.PathLike], num_consumer: int = 4,
                 columns: Sequence[str] | None = None, operator: object = None):
        self._files = files_of(file_name)
        fields = self._files[0].fields
        for name in columns or ():
            if name not in fields:
                raise ArgumentError(f"FileReader: there is no field {name!r}. {did_you_mean(str(name), fields)}")
        self._columns = list(columns) if columns else None

    def get_next(self) -> Iterator[dict[str, Any]]:
        """The rows, each a dict of numbers, text, bytes and arrays."""
        for file in self._files:
            for number in range(len(file)):
                row = file.row(number)
                yield row if self._columns is None else {name: row[name] for name in self._columns}

    def schema(self) -> dict[str, dict[str, Any]]:
        """The fields by name, each with its type and perhaps its shape."""
        return {name: dict(kind) for name, kind in self._files[0].fields.items()}

    def len(self) -> int:
        """The number of rows."""
        return sum(map(len, self._files))

    def close(self) -> None:
        """Forget the files."""
        self._files = []

    finish = close
