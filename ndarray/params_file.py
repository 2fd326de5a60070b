"""Parameter files in the `.params` format of Apache MXNet.

All numbers are little-endian. A `.params` file is::

    u64 0x112 | u64 0 | u64 count | count × record | u64 names (0 or count) | names × (u64 length | UTF-8)

and a record, by version, is:

=======  ===================  =====================================================================
version  written by MXNet     layout
=======  ===================  =====================================================================
V0       until 0.10           u32 ndim, u32 × ndim, device, type, numbers
V1       0.11                 magic, i32 ndim, i64 × ndim, device, type, numbers
V2       0.12 and later       magic, storage, [stored shape,] shape, device, type, [indices' types
                              and shapes,] numbers, [indices]
V3       np-shape mode        as V2, dense only; zero dimensions is a scalar, −1 is no array
=======  ===================  =====================================================================

Before V3, a record of zero dimensions means "no array", and ends there. This module deals with bytes, NumPy arrays and
names of devices, and not with NDArrays.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NoReturn

import numpy as np

from opreg.errors import ArgumentError, DTypeError, FileFormatError, did_you_mean, warn

from .records import (
    CPU,
    MAX_NDIM,
    Device,
    Pairs,
    Record,
    Shape,
    Sparse,
    bytes_of,
    check_names,
    decode,
    element_indices,
)

__all__ = ["from_bytes", "read", "read_file", "to_bytes", "write"]

FILE_MAGIC = 0x112
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
VERSIONS = {V1: 1, V2: 2, V3: 3}
DEVICES = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
# By type flag: the name of the dtype, and the NumPy dtype of the stored elements.
TYPES = {
    0: ("float32", "<f4"), 1: ("float64", "<f8"), 2: ("float16", "<f2"), 3: ("uint8", "u1"),
    4: ("int32", "<i4"), 5: ("int8", "i1"), 6: ("int64", "<i8"), 7: ("bool", "u1"),
    8: ("int16", "<i2"), 9: ("uint16", "<u2"), 10: ("uint32", "<u4"), 11: ("uint64", "<u8"), 12: ("bfloat16", "<u2"),
}
FLAGS = {name: flag for flag, (name, _) in TYPES.items()}
# The index arrays after the elements, by storage type.
STORAGES: dict[int, tuple[str, ...]] = {
    0: (), 1: ("row indices",), 2: ("row pointers", "column indices"),
}
NO_ARRAY = Record(None)


# ---------------------------------------------------------------------------------------------- reading


def read(
    buffer: bytes | bytearray | memoryview, name: str = "<bytes>"
) -> tuple[list[Record], list[str]]:
    """Read the records and the names of a `.params` file held in memory.

    Parameters
    ----------
    buffer
        The whole file. Elements are copied once, into new writable arrays.
    name
        The name of the file in errors and warnings.

    Returns
    -------
    records, names
        The names are empty for a file that holds a list. Arrays have the machine's byte order; bfloat16 is that of
        ``ml_dtypes``.

    Raises
    ------
    FileFormatError
        If the file is truncated or damaged, or announces more data than it has. The error names the file, the byte, the
        record, and the expected and found values.

    Warns
    -----
    UserWarning
        For unknown devices, which are read as the CPU, and for bytes after the end; once for each.

    Examples
    --------
    >>> file = b"".join(write([Record(np.float32([[1, 2]]))], ["arg:w"]))
    >>> records, names = read(file)
    >>> names, records[0].device, records[0].array
    (['arg:w'], ('cpu', 0), array([[1., 2.]], dtype=float32))
    >>> read(file[:-9])
    Traceback (most recent call last):
    opreg.errors.FileFormatError: <bytes>: byte 80, names: expected 8 bytes of a name's length, found 4 ...
    """
    view = memoryview(buffer).cast("B")
    return read_file(_Memory(view), len(view), name)


class _Memory(io.RawIOBase):
    """A buffer as a file. Unlike io.BytesIO, it copies no writable buffer."""

    def __init__(self, view: memoryview) -> None:
        self._view, self._at = view, 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        piece = self._view[self._at : self._at + len(target)]
        target[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


class _Reader:
    """Reads the fields of a file one after the other, and refuses sizes beyond the end of the file."""

    def __init__(self, file: Any, size: int, name: str) -> None:
        self.file, self.size, self.name = file, size, name
        self.at = 0
        self.part, self.record = "header", 0
        self.lost: dict[int, tuple[int, int]] = {}  # records on unknown devices

    def fail(self, at: int, expected: str, found: object) -> NoReturn:
        raise FileFormatError(f"{self.name}: byte {at}, {self.part}: expected {expected}, found {found}")

    def check_left(self, count: int, what: str) -> None:
        available = self.size - self.at
        if count > available:
            self.fail(self.at, f"{count} bytes of {what}", f"{available} before the end of the file")

    def got(self, count: int, expected: int, what: str) -> None:
        if count != expected:
            self.fail(self.at, f"{expected} bytes of {what}", f"{count}: the file has become shorter")
        self.at += count

    def take(self, count: int, what: str) -> bytes:
        self.check_left(count, what)
        data: bytes = self.file.read(count)
        self.got(len(data), count, what)
        return data

    def number(self, layout: str, what: str) -> int:
        (value,) = struct.unpack("<" + layout, self.take(struct.calcsize(layout), what))
        return value

    def numbers(self, stored: str, shape: Shape, what: str) -> np.ndarray:
        """Read an array. It is allocated only if the file is long enough."""
        dtype, count = np.dtype(stored), math.prod(shape)
        self.check_left(count * dtype.itemsize, f"{what}, {dtype.name} {shape}")
        values = np.empty(count, dtype)
        self.got(self.file.readinto(values.view(np.uint8).data), values.nbytes, what)
        return values.astype(dtype.newbyteorder("="), copy=False).reshape(shape)

    def warn(self) -> None:
        """Warn of unknown devices and of bytes after the end."""
        if self.lost:
            pairs = ", ".join(map(str, sorted(set(self.lost.values()))))
            warn(f"{self.name}: {_records(list(self.lost))} on an unknown device {pairs}, loaded to cpu(0)")
        if self.at < self.size:
            warn(f"{self.name}: {self.size - self.at} bytes after the end at byte {self.at} are ignored")


def _records(which: list[int]) -> str:
    some = ", ".join(map(str, which[:8])) + (", …" if len(which) > 8 else "")
    return f"{len(which)} record{'s are' if len(which) > 1 else ' is'} ({some})"


def read_file(file: BinaryIO | io.RawIOBase, size: int, name: str) -> tuple[list[Record], list[str]]:
    """Read the records and the names of an open `.params` file of ``size`` bytes; results and errors as from `read`."""
    reader = _Reader(file, size, name)
    magic = reader.number("Q", "the file's magic number")
    if magic.to_bytes(8, "little").lstrip().startswith(b"{"):
        reader.fail(0, "a .params file, or a zip", "JSON text: sym.load reads a graph")
    if magic != FILE_MAGIC:
        reader.fail(0, f"the magic number {FILE_MAGIC:#x} of a .params file, or a zip", f"{magic:#x}")
    reserved = reader.number("Q", "the reserved word")
    if reserved:
        reader.fail(8, "the reserved word 0", reserved)
    count = reader.number("Q", "the number of arrays")
    # a record has at least 4 bytes, and 8 bytes follow the last one
    least, available = 4 * count + 8, reader.size - reader.at
    if least > available:
        reader.fail(16, f"at least {least} bytes for {count} arrays", f"{available} before the end of the file")
    records: list[Record] = []
    for reader.record in range(count):
        reader.part = f"record {reader.record} of {count}"
        records.append(_read_record(reader))
    reader.part = "names"
    names = _read_names(reader, count)
    reader.warn()
    return records, names


def _read_names(reader: _Reader, count: int) -> list[str]:
    at = reader.at
    announced = reader.number("Q", "the number of names")
    if announced not in (0, count):
        reader.fail(at, f"{count} names or none for {count} arrays", announced)
    first_record: dict[str, int] = {}
    for i in range(announced):
        length = reader.number("Q", "a name's length")
        at = reader.at
        data = reader.take(length, f"name {i}")
        try:
            name = data.decode("utf-8")
        except UnicodeDecodeError as error:
            reader.fail(at + error.start, f"name {i} in UTF-8", f"{data[:64]!r}")
        if name in first_record:
            reader.fail(at, f"a name of its own for record {i}", f"{name!r}, which is record {first_record[name]}")
        first_record[name] = i
    return list(first_record)


def _read_record(reader: _Reader) -> Record:
    at = reader.at
    magic = reader.number("I", "an array's magic number")
    version = VERSIONS.get(magic, 0)
    if version == 0 and magic > MAX_NDIM:
        versions = ", ".join(map(hex, VERSIONS))
        reader.fail(at, f"an array's magic number ({versions}) or at most {MAX_NDIM} dimensions", hex(magic))
    storage = _read_storage(reader, version) if version >= 2 else 0
    stored_shape = _read_shape(reader, version, "stored shape") or () if storage else ()
    shape = _read_shape(reader, version, "shape") if version else _read_dims(reader, magic, "I", "shape")
    if shape is None:
        return NO_ARRAY
    device = _read_device(reader)
    name, stored = _read_type(reader)
    if storage:
        values, sparse = _read_sparse(reader, storage, stored, stored_shape, shape)
        return Record(decode(values, name), device, sparse)
    return Record(decode(reader.numbers(stored, shape, "numbers"), name), device)


def _read_storage(reader: _Reader, version: int) -> int:
    at = reader.at
    storage = reader.number("i", "the storage type")
    if version == 2 and storage not in STORAGES:
        reader.fail(at, "storage type 0 (dense), 1 (row_sparse) or 2 (csr)", storage)
    if version == 3 and storage != 0:
        reader.fail(at, "storage type 0 (dense), the only one of version 3", storage)
    return storage


def _read_shape(reader: _Reader, version: int, what: str) -> Shape | None:
    """Read a shape with 64-bit dimensions; None means "no array"."""
    at = reader.at
    ndim = reader.number("i", f"the number of dimensions of the {what}")
    least = -1 if version == 3 else 0
    if not least <= ndim <= MAX_NDIM:
        reader.fail(at, f"{least} to {MAX_NDIM} dimensions of the {what}", ndim)
    if version == 3 and ndim == 0:
        return ()
    return _read_dims(reader, ndim, "q", what)


def _read_dims(reader: _Reader, ndim: int, layout: str, what: str) -> Shape | None:
    if ndim <= 0:
        return None
    at = reader.at
    data = reader.take(ndim * struct.calcsize("<" + layout), f"{ndim} dimensions of the {what}")
    shape: Shape = struct.unpack(f"<{ndim}{layout}", data)
    if min(shape) < 0:
        reader.fail(at, f"a {what} without negative dimensions", shape)
    # A dimension of 0 counts as 1 here, as in NumPy, which refuses shapes that it cannot address.
    if math.prod(max(dim, 1) for dim in shape) >= 1 << 60:
        reader.fail(at, f"a {what} of fewer than 2^60 numbers", shape)
    return shape


def _read_device(reader: _Reader) -> Device:
    kind, number = reader.number("i", "the device type"), reader.number("i", "the device id")
    if kind in DEVICES and number >= 0:
        return DEVICES[kind], number
    reader.lost[reader.record] = (kind, number)
    return CPU


def _read_type(reader: _Reader) -> tuple[str, str]:
    at = reader.at
    flag = reader.number("i", "the type flag")
    if flag not in TYPES:
        type_flags = ", ".join(f"{flag} {name}" for flag, (name, _) in TYPES.items())
        reader.fail(at, f"a type flag ({type_flags})", flag)
    name, stored = TYPES[flag]
    if name == "bfloat16":
        try:
            import ml_dtypes  # noqa: F401
        except ImportError:
            reader.fail(at, "the package ml_dtypes to be installed, which bfloat16 needs", "none")
    return name, stored


def _read_sparse(
    reader: _Reader, storage: int, stored: str, stored_shape: Shape, shape: Shape
) -> tuple[np.ndarray, Sparse]:
    """Read the elements of a row_sparse or csr record, and their indices."""
    at, whats, count = reader.at, STORAGES[storage], stored_shape[:1]
    types = [_read_index_type(reader, what) for what in whats]
    if storage == 1:
        kind, expected = "row_sparse", [count + shape[1:], count]
    else:
        kind, expected = "csr", [count, (shape[0] + 1,), count]
    kinds = [stored_shape, *(of for _, of in types)]
    if not count or kinds != expected or (kind == "csr" and len(shape) != 2):
        reader.fail(at, f"shapes of a {kind} array {shape}: {expected}", kinds)
    values = reader.numbers(stored, stored_shape, "numbers")
    at = reader.at
    indices = [reader.numbers(of, size, what) for (of, size), what in zip(types, whats, strict=True)]
    sparse = Sparse(kind, tuple(indices), shape)
    if storage == 1:
        _check_range(reader, at, indices[0], shape[0], "row indices")
    else:
        _check_csr(reader, at, indices, shape)
    where = element_indices(sparse)
    if len(values) and np.unique(np.ravel_multi_index(where, shape[: len(where)])).size < len(values):
        reader.fail(at, f"{whats[-1]} that name no place twice", indices[-1])
    if storage == 1 and (np.diff(indices[0]) < 0).any():
        order = np.argsort(indices[0])
        values, sparse = values[order], Sparse(kind, (indices[0][order],), shape)
    return values, sparse


def _check_csr(reader: _Reader, at: int, indices: list[np.ndarray], shape: Shape) -> None:
    starts, columns = indices
    _check_range(reader, at, starts, len(columns) + 1, "row pointers")
    if starts[0] != 0 or starts[-1] != len(columns) or (starts[1:] < starts[:-1]).any():
        reader.fail(at, f"row pointers that rise from 0 to {len(columns)}", starts)
    _check_range(reader, at, columns, shape[1], "column indices")


def _read_index_type(reader: _Reader, what: str) -> tuple[str, Shape]:
    at = reader.at
    name, stored = _read_type(reader)
    if name not in ("int32", "int64"):
        reader.fail(at, f"{what} of type 4 int32 or 6 int64", name)
    return stored, _read_shape(reader, 2, f"shape of the {what}") or ()


def _check_range(reader: _Reader, at: int, indices: np.ndarray, end: int, what: str) -> None:
    if len(indices) and not 0 <= indices.min() <= indices.max() < end:
        reader.fail(at, f"{what} from 0 to {end - 1}", f"{indices.min()} to {indices.max()}")


# ---------------------------------------------------------------------------------------------- writing


def write(arrays: Pairs, names: Sequence[str] = ()) -> Iterator[bytes | memoryview]:
    """Write a `.params` file, as pieces to be joined or written one after the other.

    Records have version 2, which MXNet reads since 0.12. If an array has no dimensions or no elements, all records have
    version 3, which MXNet reads under ``np_shape``.

    Parameters
    ----------
    arrays
        Records, or pairs of an array and a device. Only arrays that are not contiguous are copied. Pieces are views, so
        use them before the arrays change.
    names
        A name for every array, or none for a file that holds a list.

    Raises
    ------
    DTypeError
        If the format lacks a dtype. It has float16, float32, float64, bfloat16, integers of 8 to 64 bits and bool.
    ArgumentError
        If names are too few, too many, repeated or no text, or a device is unknown. All checks are made when `write` is
        called, before the first piece.

    Examples
    --------
    >>> sum(len(piece) for piece in write([(np.zeros((2, 3), np.float32), ("cpu", 0))], ["arg:w"]))
    109
    """
    labels = check_names(len(arrays), names)
    heads: list[bytes] = []
    records = [Record(*arguments) for arguments in arrays]
    version = V3 if any(array is not None and sparse is None and not (array.ndim and array.size)
                        for array, _, sparse in records) else V2
    for (array, device, sparse), label in zip(records, labels, strict=True):
        if array is None:
            heads.append(struct.pack("<Iii", version, 0, -1 if version == V3 else 0))
            continue
        if sparse is not None:
            heads.append(_sparse_head(array, device, sparse, label))
            continue
        heads.append(
            struct.pack(f"<Iii{array.ndim}q", version, 0, array.ndim, *array.shape)
            + struct.pack("<iii", *_device_code(device, label), _type_flag(array, label))
        )
    encoded = [name.encode("utf-8") for name in names]
    tail = b"".join(struct.pack("<Q", len(name)) + name for name in encoded)
    start, end = struct.pack("<QQQ", FILE_MAGIC, 0, len(arrays)), struct.pack("<Q", len(encoded)) + tail

    def pieces() -> Iterator[bytes | memoryview]:
        yield start
        for head, (array, _, sparse) in zip(heads, records, strict=True):
            yield head
            for part in () if array is None else (array, *(() if sparse is None else sparse.indices)):
                yield bytes_of(part, TYPES[FLAGS[part.dtype.name]][1])
        yield end

    return pieces()


def _sparse_head(array: np.ndarray, device: Device, sparse: Sparse, label: str) -> bytes:
    """The bytes of a sparse array's record before its elements."""
    storage = next(flag for flag, parts in STORAGES.items() if len(parts) == len(sparse.indices))
    head = [struct.pack("<Ii", V2, storage), *map(_dims, (array.shape, sparse.shape)),
            struct.pack("<iii", *_device_code(device, label), _type_flag(array, label))]
    head += [struct.pack("<i", _type_flag(part, label)) + _dims(part.shape) for part in sparse.indices]
    return b"".join(head)


def _dims(shape: Shape) -> bytes:
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def to_bytes(record: Record) -> bytes:
    """The bytes of one record, as in MXNet's pickles of arrays."""
    pieces = list(write([record]))
    return b"".join(pieces[1:-1])


def from_bytes(buffer: bytes | bytearray | memoryview, name: str = "<bytes>") -> Record:
    """Read one record from bytes.

    Raises
    ------
    FileFormatError
        If they are no record, or mean "no array".

    Examples
    --------
    >>> from_bytes(to_bytes(Record(np.float32([1, 2])))).array
    array([1., 2.], dtype=float32)
    """
    view = memoryview(buffer).cast("B")
    reader = _Reader(_Memory(view), len(view), name)
    record = _read_record(reader)
    if record.array is None:
        reader.fail(0, "an array", "none")
    reader.warn()
    return record


def _device_code(device: Device, label: str) -> tuple[int, int]:
    name, number = device
    for code, device_name in DEVICES.items():
        if device_name == name and 0 <= number < 1 << 31:
            return code, number
    raise ArgumentError(
        f"{label}: expected a known device and an id from 0, got {name!r}, {number!r}. "
        + did_you_mean(name, DEVICES.values())
    )


def _type_flag(array: np.ndarray, label: str) -> int:
    flag = FLAGS.get(array.dtype.name)
    if flag is None:
        raise DTypeError(
            f"{label}: a .params file has no dtype {array.dtype}. " + did_you_mean(array.dtype.name, FLAGS)
        )
    return flag


