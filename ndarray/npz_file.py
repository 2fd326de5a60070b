"""Parameter files in NumPy's `.npz` format. The reader trusts no byte of a file."""

from __future__ import annotations

import ast
import errno
import io
import math
import os
import re
import struct
import threading
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import IO, BinaryIO, NoReturn

import numpy as np

from opreg.core.files import INFLATED
from opreg.core.spec import is_numpy_float
from opreg.errors import ArgumentError, DTypeError, FileFormatError

from .formats import NPZ_WRITER, READ_NPZ
from .records import MAX_NDIM, Pairs, Record, Shape, check_names

__all__ = ["npz", "read_npz", "read_npy"]


@NPZ_WRITER.provide
def _writer(records: Pairs, names: Sequence[str]) -> Callable[[BinaryIO], None]:
    labels = check_names(len(records), names)
    entries: list[tuple[str, np.ndarray]] = []
    called = names or [f"arr_{i}" for i in range(len(records))]
    for (array, *_), label, name in zip(records, labels, called, strict=True):
        if array is None:
            raise ArgumentError(f"{label}: a .npz file cannot hold None in place of an array; a .params file can")
        if array.dtype.kind not in "biuc" and not is_numpy_float(array.dtype):
            raise DTypeError(f"{label}: a .npz file has no dtype {array.dtype}; cast it, or save as .params")
        if "\0" in name or len(name.encode("utf-8")) > 65000:
            raise ArgumentError(f"{label}: a .npz file has names without NUL of at most 65000 bytes")
        entries.append((name, array))

    def put(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in entries:
                # A new ZipInfo has a fixed date, so that equal arrays give equal bytes.
                with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)

    return put


# In Python 3.11, all threads share the recursion count of the parser, which raises a SystemError if two threads parse.
_ONE_BY_ONE = threading.Lock()
# Exceptions that a damaged .npy header causes in literal_eval, dtype or the code behind them.
HEADER_DAMAGE = (ValueError, SyntaxError, TypeError, LookupError, AttributeError, MemoryError, RecursionError)
# Exceptions of zipfile and zlib for damaged bytes. Seeking to an offset of a damaged directory raises ValueError, or
# OSError with EINVAL.
ZIP_DAMAGE = (
    zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, OverflowError, struct.error, OSError
)


def npz(records: Pairs, names: Sequence[str]) -> bytes:
    """Write a `.npz` file in memory. Equal arrays give equal bytes.

    Examples
    --------
    >>> read_npz(npz([Record(np.int64([1, 2]))], ["steps"]), "<states>")
    ([Record(array=array([1, 2]), device=('cpu', 0), sparse=None)], ['steps'])
    """
    stream = io.BytesIO()
    _writer(records, names)(stream)
    return stream.getvalue()


def read_npz(content: bytes, name: str) -> tuple[list[Record], list[str]]:
    """Read a `.npz` file in memory that `npz` wrote. Compressed members are refused, so no array is larger than the
    file.

    Raises
    ------
    FileFormatError
        As from `load`.
    """
    return _read(io.BytesIO(content), len(content), name, (zipfile.ZIP_STORED,))


@READ_NPZ.provide
def _read(file: BinaryIO, size: int, name: str, kinds: Sequence[int] = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
              ) -> tuple[list[Record], list[str]]:
    reader = _Reader(name, kinds)
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            packed = sum(info.compress_size for info in members)
            reader.check(packed <= size, f"members of at most {size} bytes in all", packed)
            for i, info in enumerate(members):
                reader.part = f"byte {info.header_offset}, record {i} of {len(members)} ({info.filename!r})"
                reader.check(info.filename.endswith(".npy"), "a .npy file", "another")
                key = info.filename.removesuffix(".npy")
                reader.check(key not in arrays, "a name of its own", "one that came before")
                arrays[key] = _read_npy(reader, archive, info)
    except FileFormatError:
        raise
    except ZIP_DAMAGE as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        reader.fail("a sound zip of .npy files", error, cause=error)
    return [Record(array) for array in arrays.values()], list(arrays)


class _Reader:
    """The position of the reader in a zip, for errors."""

    def __init__(self, name: str, kinds: Sequence[int], part: str = "directory") -> None:
        self.name, self.kinds, self.part = name, kinds, part

    def fail(self, expected: str, found: object, cause: Exception | None = None) -> NoReturn:
        raise FileFormatError(f"{self.name}: {self.part}: expected {expected}, found {found}") from cause

    def check(self, holds: bool, expected: str, found: object) -> None:
        if not holds:
            self.fail(expected, found)


def _read_npy(reader: _Reader, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    words = " or ".join({zipfile.ZIP_STORED: "stored", zipfile.ZIP_DEFLATED: "deflated"}[kind] for kind in reader.kinds)
    reader.check(info.compress_type in reader.kinds, f"a {words} member", f"method {info.compress_type}")
    reader.check(not info.flag_bits & 1, "no encryption", "an encrypted member")
    most = info.compress_size * (1 if info.compress_type == zipfile.ZIP_STORED else INFLATED)
    reader.check(info.file_size <= most, f"at most {most} bytes when unpacked", info.file_size)
    with archive.open(info) as member:
        return _npy_array(reader, member, info.file_size)


def read_npy(file: BinaryIO, name: str) -> np.ndarray:
    """The array in a `.npy` file.

    Raises
    ------
    FileFormatError
        If it holds no numeric array, or its size is not that of the header.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return _npy_array(_Reader(name, (), "file"), file, size)


def _npy_array(reader: _Reader, file: IO[bytes], size: int) -> np.ndarray:
    """Read the array of a `.npy` file of ``size`` bytes."""
    shape, fortran, dtype, start = _npy_header(reader, file)
    length = start + math.prod(shape) * dtype.itemsize
    reader.check(length == size, f"{length} bytes, {dtype} {shape}", size)
    values = np.empty(math.prod(shape), dtype)
    view, done = values.view(np.uint8).data, 0
    while piece := file.read(1 << 20):  # at the end of the member, zipfile compares the checksum
        view[done : done + len(piece)] = piece
        done += len(piece)
    reader.check(done == len(view), f"{len(view)} bytes of numbers", done)
    values = values.view(np.uint8).astype(np.bool_) if dtype == np.bool_ else values
    values = values.astype(dtype.newbyteorder("="), copy=False)
    return np.ascontiguousarray(values.reshape(shape[::-1]).T) if fortran else values.reshape(shape)


def _npy_header(reader: _Reader, member: IO[bytes]) -> tuple[Shape, bool, np.dtype, int]:
    """Read a .npy header of version 1 or 2: the shape, whether the order is Fortran's, the dtype, and the header's
    length."""
    start = member.read(8)
    layout = {b"\x93NUMPY\1\0": "<H", b"\x93NUMPY\2\0": "<I"}.get(start)
    if layout is None:
        reader.fail("the start of a .npy file of version 1 or 2", start)
    counted = member.read(struct.calcsize(layout))
    reader.check(len(counted) == struct.calcsize(layout), "the length of a .npy header", counted)
    (length,) = struct.unpack(layout, counted)
    reader.check(length <= 10_000, "a .npy header of at most 10000 bytes", length)
    text = member.read(length).decode("latin-1")
    try:
        with _ONE_BY_ONE:
            header = ast.literal_eval(text.strip())
        descr, fortran, shape = (header.pop(key) for key in ("descr", "fortran_order", "shape"))
        if header or not isinstance(fortran, bool) or not re.fullmatch(r"[<>|=][biufc]\d{1,2}", descr):
            raise ValueError
        if len(shape) > MAX_NDIM or not all(type(dim) is int and dim >= 0 for dim in shape):
            raise ValueError
        dtype, shape = np.dtype(descr), tuple(shape)
        if math.prod(max(dim, 1) for dim in shape) * dtype.itemsize >= 1 << 63:
            raise ValueError
    except HEADER_DAMAGE as error:
        reader.fail("a header of an array of numbers", repr(text[:120].strip()), error)
    return shape, fortran, dtype, len(start) + struct.calcsize(layout) + length
