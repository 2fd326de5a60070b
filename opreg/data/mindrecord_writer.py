"""Writing of MindRecord files; ``mindrecord`` describes their format."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, BinaryIO

import numpy as np

from ..core.files import atomic_write
from ..core.settings import CheckedMethods
from ..errors import ArgumentError, did_you_mean
from .mindrecord_format import COUNT, FIELD, KINDS, LENGTH, SHIFTS, TYPES, is_blob

__all__ = ["FileWriter"]


class FileWriter(CheckedMethods):
    """Writes rows to MindRecord files, which appear when ``commit`` is called.

    Parameters
    ----------
    file_name : str or path
        Name of the file; several files have their number behind it.
    shard_num : int
        Number of files, among which the rows of each call are divided.
    overwrite : bool
        Whether existing files are replaced.

    Raises
    ------
    ArgumentError
        When a file exists, or a schema, field or row is invalid.

    Examples
    --------
    >>> import tempfile
    >>> from opreg.mindrecord import FileReader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = FileWriter(f"{folder}/rows.mindrecord")
    ...     schema = writer.add_schema({"label": {"type": "int32"}, "x": {"type": "float32", "shape": [2]}})
    ...     writer.write_raw_data([{"label": 7, "x": np.float32([1, 2])}])
    ...     writer.commit()
    ...     next(FileReader(f"{folder}/rows.mindrecord").get_next())
    {'label': 7, 'x': array([1., 2.], dtype=float32)}
    """

    def __init__(self, file_name: str | os.PathLike, shard_num: int = 1, overwrite: bool = False):
        count: object = shard_num
        if not isinstance(count, int) or not 1 <= count <= 1000:
            raise ArgumentError(f"FileWriter: shard_num must be an int from 1 to 1000, got {shard_num!r}")
        name, digits = os.fspath(file_name), len(str(shard_num - 1))
        self._paths = [name] if shard_num == 1 else [f"{name}{i:0{digits}d}" for i in range(shard_num)]
        there = [path for path in self._paths if os.path.exists(path)]
        if there and not overwrite:
            raise ArgumentError(f"FileWriter: {there[0]} exists; overwrite=True replaces it")
        self._schema: dict[str, dict[str, Any]] = {}
        self._description, self._index = "", []  # type: tuple[str, list[str]]
        self._header_size, self._page_size = 1 << 24, 1 << 25
        self._files: list[_Pages] = []
        self._open = ExitStack()

    def set_header_size(self, header_size: int) -> None:
        """Set the length of the header, from 16 KiB to 128 MiB, in bytes."""
        self._header_size = self._size("header_size", header_size, 1 << 14, 1 << 27)

    def set_page_size(self, page_size: int) -> None:
        """Set the length of a page, from 32 KiB to 256 MiB, in bytes; a row must fit into a page."""
        self._page_size = self._size("page_size", page_size, 1 << 15, 1 << 28)

    def _size(self, name: str, value: Any, least: int, most: int) -> int:
        if not isinstance(value, int) or not least <= value <= most or value & 3:
            raise ArgumentError(f"FileWriter: {name} must be a multiple of 4 from {least} to {most}, got {value!r}")
        if self._files:
            raise ArgumentError(f"FileWriter: set {name} before the first rows are written")
        return value

    def add_schema(self, content: Mapping[str, Mapping[str, Any]], desc: str | None = None) -> int:
        """Set the fields: a dict with ``type`` and, for arrays, ``shape``, whose first length may be -1.

        Types are int32, int64, float32, float64, string and bytes. Returns the number of the schema, 0.
        """
        if self._schema:
            raise ArgumentError("FileWriter: there is a schema already")
        if not content:
            raise ArgumentError("FileWriter: a schema needs a field")
        for name, kind in content.items():
            if not name.replace("_", "a").isalnum():
                raise ArgumentError(f"FileWriter: a field's name has letters, digits and _, got {name!r}")
            if kind.get("type") not in TYPES:
                raise ArgumentError(f"FileWriter: field {name!r}: unknown type {kind.get('type')!r}. "
                                    f"{did_you_mean(str(kind.get('type')), TYPES)}")
            shape = kind.get("shape", [1])
            if "shape" in kind and (kind["type"] in ("string", "bytes") or not isinstance(shape, (list, tuple)) or any(
                    not isinstance(n, int) or (n < 1 and (n != -1 or i)) for i, n in enumerate(shape))):
                raise ArgumentError(f"FileWriter: field {name!r}: a shape is a list of lengths above 0, of which the "
                                    f"first may be -1, and text and bytes have none; got {shape!r}")
        self._schema = {name: dict(content[name]) for name in sorted(content)}
        self._description = desc or ""
        return 0

    def add_index(self, index_fields: Sequence[str]) -> None:
        """Set the fields that MindSpore can search; by default all numbers and texts."""
        plain = [name for name, kind in self._schema.items() if not is_blob(kind)]
        for name in index_fields:
            if name not in plain:
                raise ArgumentError(f"FileWriter: an index needs a field of numbers or text, got {name!r}. "
                                    f"{did_you_mean(str(name), plain)}")
        self._index = list(index_fields)

    def open_and_set_header(self) -> None:
        """Begin to write; ``write_raw_data`` does so, too."""
        if not self._schema:
            raise ArgumentError("FileWriter: call add_schema before rows are written")
        if not self._index:
            self._index = [name for name, kind in self._schema.items() if not is_blob(kind)]
        if not self._files:
            self._files = [_Pages(self._open.enter_context(atomic_write(path)), self._header_size, self._page_size)
                           for path in self._paths]

    def write_raw_data(self, raw_data: Any, parallel_writer: bool = False) -> None:
        """Write rows, dicts with a value for each field; a list of rows is divided among the files in order."""
        if not isinstance(raw_data, (list, tuple)):
            raise ArgumentError(f"FileWriter: expected a list of dicts, got {type(raw_data).__name__}")
        self.open_and_set_header()
        encoded = [self._encode_row(row) for row in raw_data]
        for i, pages in enumerate(self._files):
            begin, end = (len(encoded) * k // len(self._files) for k in (i, i + 1))
            for row, (raw, blob, saved) in zip(raw_data[begin:end], encoded[begin:end]):
                pages.add(raw, blob, saved, [row[name] for name in self._index])

    def _encode_row(self, row: Any) -> tuple[bytes, bytes, int]:
        """The raw part and the blob of a row, and the bytes that small integers saved."""
        if not isinstance(row, Mapping) or row.keys() != self._schema.keys():
            raise ArgumentError(f"FileWriter: expected a dict with the fields {', '.join(self._schema)}, got "
                                f"{', '.join(map(str, row)) if isinstance(row, Mapping) else type(row).__name__}")
        plain, blobs, saved = {}, [], 0
        for name, kind in self._schema.items():
            value = _field_value(name, kind, row[name])
            if not is_blob(kind):
                plain[name] = value
            elif kind["type"] == "bytes":
                blobs.append(value)
            else:
                blobs.append(_encode_integers(value) if value.dtype.kind == "i" else value.tobytes())
                saved += value.nbytes - len(blobs[-1])
        whole = b"".join(blobs) if len(blobs) == 1 else b"".join(FIELD.pack(len(part)) + part for part in blobs)
        whole = whole if blobs else bytes(4)  # MindSpore writes four zeros for rows without blobs
        return _pack(plain), whole, saved

    def commit(self) -> None:
        """End the files, and write the indices beside them."""
        self.open_and_set_header()
        names = [os.path.basename(path) for path in self._paths]
        schema = {"blob_fields": [name for name, kind in self._schema.items() if is_blob(kind)],
                  "desc": self._description, "schema": self._schema}
        fields = [(name, KINDS[self._schema[name]["type"]]) for name in self._index]
        for i, (path, pages) in enumerate(zip(self._paths, self._files)):
            pages.end({"header_size": self._header_size, "page_size": self._page_size, "schema": [schema],
                       "index_fields": [{"index_field": name, "schema_id": 0} for name in self._index],
                       "shard_addresses": names, "shard_id": i, "statistics": None, "version": "3.0"})
            index = self._open.enter_context(atomic_write(f"{path}.db"))
            index.write(_database(os.path.basename(path), fields, pages.places))
        self._open.close()


class _Pages:
    """The pages of one file: groups of a raw page and a blob page, each with the same rows."""

    def __init__(self, file: BinaryIO, header_size: int, page_size: int):
        self.file, self.header_size, self.page_size = file, header_size, page_size
        self.raw, self.blob = bytearray(), bytearray()
        self.first = self.rows = self.saved = 0
        self.pages: list[dict[str, Any]] = []
        self.places: list[tuple[Any, ...]] = []

    def add(self, raw: bytes, blob: bytes, saved: int, values: Sequence[Any]) -> None:
        """Add a row, to new pages if it does not fit into these."""
        raw, blob = LENGTH.pack(len(raw)) + raw, LENGTH.pack(len(blob)) + blob
        if max(len(raw), len(blob)) > self.page_size:
            raise ArgumentError(f"FileWriter: a row of {max(len(raw), len(blob))} bytes does not fit into a page of "
                                f"{self.page_size}; see set_page_size")
        if max(len(self.raw) + len(raw), len(self.blob) + len(blob)) > self.page_size:
            self._write()
        begins, page = (len(self.raw), len(self.blob)), len(self.pages)
        self.raw += raw
        self.blob += blob
        self.places.append((self.rows, page + 1, begins[0], len(self.raw), page // 2, page, begins[1], len(self.blob),
                            *[part for value in values for part in (0, value)]))
        self.rows += 1
        self.saved += saved

    def _write(self) -> None:
        group = len(self.pages) // 2
        for kind, data in (("BLOB_DATA", self.blob), ("RAW_DATA", self.raw)):
            number, rows = len(self.pages), (self.first, self.rows) if kind == "BLOB_DATA" else (0, 0)
            self.file.seek(self.header_size + number * self.page_size)
            self.file.write(data)
            self.pages.append({"page_id": number, "page_type": kind, "page_type_id": group, "page_size": len(data),
                               "row_group_ids": [{"id": group, "offset": 0}], "shard_id": 0, "start_row_id": rows[0],
                               "end_row_id": rows[1]})
        self.raw, self.blob, self.first = bytearray(), bytearray(), self.rows

    def end(self, header: dict[str, Any]) -> None:
        """Write the last pages and the header."""
        if self.raw:
            self._write()
        for page in self.pages:
            page["shard_id"] = header["shard_id"]
        header = {**header, "page": self.pages, "compression_size": self.saved}
        text = json.dumps(header, separators=(",", ":")).encode()
        if len(text) + 8 > self.header_size:
            raise ArgumentError(f"FileWriter: a header of {len(text) + 8} bytes does not fit into {self.header_size}; "
                                f"see set_header_size")
        self.file.seek(0)
        self.file.write(LENGTH.pack(len(text)) + text)


def _field_value(name: str, kind: Mapping[str, Any], value: Any) -> Any:
    """A value of the field's type, or an error."""
    if "shape" in kind:
        shape = tuple(kind["shape"])
        if isinstance(value, np.ndarray) and value.dtype == np.dtype(kind["type"]) and len(value.shape) == len(shape) \
                and all(n in (-1, length) for n, length in zip(shape, value.shape)):
            return np.ascontiguousarray(value)
        given = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        raise ArgumentError(f"FileWriter: field {name!r}: expected an array of {kind['type']} and shape {shape}, got "
                            f"{given}")
    value = value.item() if isinstance(value, np.generic) else value
    expected: Any = TYPES[kind["type"]]
    if expected is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, expected) or isinstance(value, bool):
        raise ArgumentError(f"FileWriter: field {name!r}: expected {kind['type']}, got {type(value).__name__}")
    bits = np.dtype(kind["type"]).itemsize * 8 if expected is int else 0
    if bits and not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ArgumentError(f"FileWriter: field {name!r}: {value} is no {kind['type']}")
    return value


def _encode_integers(array: np.ndarray) -> bytes:
    """Integers in one, two, four or eight bytes each; two bits of each tell which."""
    flat = array.reshape(-1).astype("<i8")
    codes = sum(((flat < -limit) | (flat >= limit)).astype(np.uint8) for limit in (1 << 7, 1 << 15, 1 << 31))
    codes = np.asarray(codes, np.uint8)
    four = np.zeros(-(-len(flat) // 4) * 4, np.uint8)
    four[:len(flat)] = codes
    kinds = np.bitwise_or.reduce(four.reshape(-1, 4) << SHIFTS, axis=1).astype(np.uint8)
    used = np.arange(8) < (1 << codes.astype(np.int64))[:, None]
    return COUNT.pack(len(flat)) + kinds.tobytes() + flat.view(np.uint8).reshape(-1, 8)[used].tobytes()


def _pack(value: Any) -> bytes:
    """A value in MessagePack: a dict, text or a number."""
    if isinstance(value, dict):
        head = struct.pack(">B", 0x80 | len(value)) if len(value) < 16 else struct.pack(">BH", 0xDE, len(value))
        return head + b"".join(_pack(name) + _pack(part) for name, part in value.items())
    if isinstance(value, str):
        data = value.encode()
        n = len(data)
        head = struct.pack(">B", 0xA0 | n) if n < 32 else struct.pack(">BB", 0xD9, n) if n < 256 else \
            struct.pack(">BH", 0xDA, n) if n < 1 << 16 else struct.pack(">BI", 0xDB, n)
        return head + data
    if isinstance(value, float):
        return struct.pack(">Bd", 0xCB, value)
    if -32 <= value < 128:
        return struct.pack(">b", value)
    return struct.pack(">BQ", 0xCF, value) if value >= 0 else struct.pack(">Bq", 0xD3, value)


def _database(name: str, fields: Sequence[tuple[str, str]], places: Sequence[tuple[Any, ...]]) -> bytes:
    """The index beside a file: a database of SQLite with the place of each row and the values of indexed fields."""
    whole = ("ROW_ID", "PAGE_ID_RAW", "PAGE_OFFSET_RAW", "PAGE_OFFSET_RAW_END", "ROW_GROUP_ID", "PAGE_ID_BLOB",
             "PAGE_OFFSET_BLOB", "PAGE_OFFSET_BLOB_END")
    columns = [*[f"{column} INT NOT NULL" for column in whole],
               *[f"INC_{i} INT, {field}_0 {kind}" for i, (field, kind) in enumerate(fields)]]
    keys = ["ROW_ID", *[f"INC_{i}" for i in range(len(fields))]]
    base = sqlite3.connect(":memory:")
    try:
        base.execute(f"CREATE TABLE INDEXES({', '.join(columns)}, PRIMARY KEY({', '.join(keys)}))")
        base.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
        base.execute("INSERT INTO SHARD_NAME VALUES (?)", (name,))
        slots = ", ".join("?" * (len(whole) + 2 * len(fields)))
        base.executemany(f"INSERT INTO INDEXES VALUES ({slots})", places)
        base.commit()
        return base.serialize()
    finally:
        base.close()
