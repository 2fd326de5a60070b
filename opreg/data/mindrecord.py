"""MindRecord files: rows of named fields in pages, written by ``FileWriter`` and read by ``FileReader``.

A file begins with a header, JSON behind its length, and has pages of one size. Fields without axes, numbers and text,
are in raw pages, as maps of MessagePack; bytes and arrays are in blob pages, one after the other. Integers of arrays
have as many bytes as their values need. A file ``.db`` beside each has the places of the rows, for MindSpore.
"""

from __future__ import annotations

import json
import mmap
import os
import sqlite3
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, BinaryIO, NoReturn

import numpy as np

from ..core.files import atomic_write, reading
from ..errors import ArgumentError, FileFormatError, did_you_mean

__all__ = ["FileReader", "FileWriter"]

_TYPES = {"int32": int, "int64": int, "float32": float, "float64": float, "string": str, "bytes": bytes}
_LENGTH, _FIELD, _COUNT = struct.Struct("<Q"), struct.Struct(">Q"), struct.Struct(">I")
#: Bits that each of four elements is shifted by in a byte of their sizes.
_SHIFTS = np.array([6, 4, 2, 0], np.uint8)
_KINDS = {"int32": "INTEGER", "int64": "INTEGER", "float32": "REAL", "float64": "REAL", "string": "TEXT"}


def is_blob(kind: Mapping[str, Any]) -> bool:
    """Whether a field of a schema is stored in blob pages: bytes, or an array."""
    return kind["type"] == "bytes" or "shape" in kind


# ------------------------------------------------------------------------------------------------- writing


class FileWriter:
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
            if kind.get("type") not in _TYPES:
                raise ArgumentError(f"FileWriter: field {name!r}: unknown type {kind.get('type')!r}. "
                                    f"{did_you_mean(str(kind.get('type')), _TYPES)}")
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
        encoded = [self._encoded(row) for row in raw_data]
        for i, pages in enumerate(self._files):
            begin, end = (len(encoded) * k // len(self._files) for k in (i, i + 1))
            for row, (raw, blob, saved) in zip(raw_data[begin:end], encoded[begin:end]):
                pages.add(raw, blob, saved, [row[name] for name in self._index])

    def _encoded(self, row: Any) -> tuple[bytes, bytes, int]:
        """The raw part and the blob of a row, and the bytes that small integers saved."""
        if not isinstance(row, Mapping) or row.keys() != self._schema.keys():
            raise ArgumentError(f"FileWriter: expected a dict with the fields {', '.join(self._schema)}, got "
                                f"{', '.join(map(str, row)) if isinstance(row, Mapping) else type(row).__name__}")
        plain, blobs, saved = {}, [], 0
        for name, kind in self._schema.items():
            value = _checked(name, kind, row[name])
            if not is_blob(kind):
                plain[name] = value
            elif kind["type"] == "bytes":
                blobs.append(value)
            else:
                blobs.append(_shortened(value) if value.dtype.kind == "i" else value.tobytes())
                saved += value.nbytes - len(blobs[-1])
        whole = b"".join(blobs) if len(blobs) == 1 else b"".join(_FIELD.pack(len(part)) + part for part in blobs)
        whole = whole if blobs else bytes(4)  # which MindSpore writes for rows without blobs
        return _packed(plain), whole, saved

    def commit(self) -> None:
        """End the files, and write the indices beside them."""
        self.open_and_set_header()
        names = [os.path.basename(path) for path in self._paths]
        schema = {"blob_fields": [name for name, kind in self._schema.items() if is_blob(kind)],
                  "desc": self._description, "schema": self._schema}
        fields = [(name, _KINDS[self._schema[name]["type"]]) for name in self._index]
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
        raw, blob = _LENGTH.pack(len(raw)) + raw, _LENGTH.pack(len(blob)) + blob
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
        self.file.write(_LENGTH.pack(len(text)) + text)


def _checked(name: str, kind: Mapping[str, Any], value: Any) -> Any:
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
    expected: Any = _TYPES[kind["type"]]
    if expected is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, expected) or isinstance(value, bool):
        raise ArgumentError(f"FileWriter: field {name!r}: expected {kind['type']}, got {type(value).__name__}")
    bits = np.dtype(kind["type"]).itemsize * 8 if expected is int else 0
    if bits and not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ArgumentError(f"FileWriter: field {name!r}: {value} is no {kind['type']}")
    return value


def _shortened(array: np.ndarray) -> bytes:
    """Integers in one, two, four or eight bytes each; two bits of each tell which."""
    flat = array.reshape(-1).astype("<i8")
    codes = sum(((flat < -limit) | (flat >= limit)).astype(np.uint8) for limit in (1 << 7, 1 << 15, 1 << 31))
    codes = np.asarray(codes, np.uint8)
    four = np.zeros(-(-len(flat) // 4) * 4, np.uint8)
    four[:len(flat)] = codes
    kinds = np.bitwise_or.reduce(four.reshape(-1, 4) << _SHIFTS, axis=1).astype(np.uint8)
    used = np.arange(8) < (1 << codes.astype(np.int64))[:, None]
    return _COUNT.pack(len(flat)) + kinds.tobytes() + flat.view(np.uint8).reshape(-1, 8)[used].tobytes()


def _packed(value: Any) -> bytes:
    """A value in MessagePack: a dict, text or a number."""
    if isinstance(value, dict):
        head = struct.pack(">B", 0x80 | len(value)) if len(value) < 16 else struct.pack(">BH", 0xDE, len(value))
        return head + b"".join(_packed(name) + _packed(part) for name, part in value.items())
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


# ------------------------------------------------------------------------------------------------- reading


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
        with reading(path) as file:
            self.size = os.fstat(file.fileno()).st_size
            if self.size < 8:
                self._damaged("it is shorter than a header")
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            header = json.loads(self._data[8:8 + self._number(0, self.size - 8)])
            schema = header["schema"][0]
            self.fields: dict[str, dict[str, Any]] = {name: dict(kind) for name, kind in schema["schema"].items()}
            self.blobs: list[str] = [str(name) for name in schema["blob_fields"]]
            self.shards: list[str] = [str(name) for name in header["shard_addresses"]]
            pages = [(str(page["page_type"]), int(header["header_size"]) + int(page["page_id"]) * int(
                header["page_size"]), int(page["page_size"])) for page in header["page"]]
            unknown = [name for name, kind in self.fields.items() if kind["type"] not in _TYPES]
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            self._damaged(f"its header cannot be read ({error})")
        if unknown or any(name not in self.fields for name in self.blobs):
            self._damaged(f"the schema has a field of an unknown type, among {', '.join(self.fields)}")
        if any(begin < 0 or length < 0 or begin + length > self.size for _, begin, length in pages):
            self._damaged("it is shorter than its pages")
        self._raw, self._blob = [[place for page, begin, length in pages if page == kind
                                  for place in self._places(begin, begin + length)]
                                 for kind in ("RAW_DATA", "BLOB_DATA")]
        if self.blobs and len(self._blob) != len(self._raw):
            self._damaged(f"{len(self._raw)} rows, and blobs of {len(self._blob)}")

    def __len__(self) -> int:
        return len(self._raw)

    def _damaged(self, what: str) -> NoReturn:
        raise FileFormatError(f"{self.path}: no MindRecord file, or a damaged one: {what}")

    def _number(self, at: int, most: int) -> int:
        """The length at an offset, which must not be above ``most``."""
        length: int = _LENGTH.unpack_from(self._data, at)[0]
        if length > most:
            self._damaged(f"a part of {length} bytes where there are {most}")
        return length

    def _places(self, at: int, end: int) -> Iterator[tuple[int, int]]:
        """Begin and end of each row in a page."""
        while at < end:
            begin = at + 8
            if begin > end:
                self._damaged("a page ends within a row")
            at = begin + self._number(at, end - begin)
            yield begin, at

    def row(self, number: int) -> dict[str, Any]:
        """The fields of a row: ints, floats, text, bytes and arrays."""
        begin, end = self._raw[number]
        try:
            plain, left = _unpacked(memoryview(self._data[begin:end]), 0)
        except (struct.error, IndexError, UnicodeDecodeError, RecursionError):
            self._damaged(f"row {number} cannot be read")
        if not isinstance(plain, dict) or left != end - begin:
            self._damaged(f"row {number} is no map of fields")
        values = {name: plain[name] for name, kind in self.fields.items() if name in plain and not is_blob(kind)}
        if not self.blobs:
            return values
        begin, end = self._blob[number]
        for name in self.blobs:
            length = end - begin
            if len(self.blobs) > 1:
                if end - begin < 8:
                    self._damaged(f"row {number} has no field {name!r}")
                length = _FIELD.unpack_from(self._data, begin)[0]
                begin += 8
                if length > end - begin:
                    self._damaged(f"row {number}: field {name!r} has {length} bytes, where there are {end - begin}")
            values[name] = self._value(name, self._data[begin:begin + length])
            begin += length
        return values

    def _value(self, name: str, data: bytes) -> Any:
        """Bytes, or an array of the shape in the schema."""
        kind = self.fields[name]
        if "shape" not in kind:
            return data
        try:
            flat = _lengthened(data) if kind["type"].startswith("int") else np.frombuffer(data, kind["type"])
            return flat.astype(kind["type"]).reshape(kind["shape"])
        except (ValueError, struct.error):
            self._damaged(f"field {name!r} is no array of {kind['type']} and shape {kind['shape']}")


def _lengthened(data: bytes) -> np.ndarray:
    """The integers that ``_shortened`` has written, as int64."""
    count: int = _COUNT.unpack_from(data)[0]
    if count > len(data):  # each has a byte at least
        raise ValueError("more integers than bytes")
    head = 4 + -(-count // 4)
    codes = ((np.frombuffer(data[4:head], np.uint8)[:, None] >> _SHIFTS) & 3).reshape(-1)[:count].astype(np.int64)
    whole = np.zeros((count, 8), np.uint8)
    whole[np.arange(8) < (1 << codes)[:, None]] = np.frombuffer(data[head:], np.uint8)
    shift = 64 - (8 << codes)
    return np.asarray((whole.view("<i8").reshape(-1) << shift) >> shift)


#: Formats of numbers in MessagePack, by their first byte.
_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
            0xD3: ">q"}
#: Formats of the lengths of texts and maps.
_LENGTHS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDE: ">H", 0xDF: ">I"}


def _unpacked(data: memoryview, at: int) -> tuple[Any, int]:
    """A value in MessagePack at an offset, and the offset behind it: a map of fields, text, a number or None."""
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
        name, at = _unpacked(data, at)
        fields[name if isinstance(name, str) else str(name)], at = _unpacked(data, at)
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


class FileReader:
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
