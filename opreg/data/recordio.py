"""MXNet's record files: reading, writing, access by key, and the headers of image records.

In a file each record has a header of two words, a magic number and its length, and is padded to a multiple of four
bytes. If a record contains the magic number at such a multiple, it is split there into pieces, without the number. Each
piece has its own header, and the highest bits of its length tell which piece it is. So the magic number occurs only at
the start of a record or piece, and reading can resume there after damage.
"""

from __future__ import annotations

import io
import numbers
import os
import struct
import weakref
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, BinaryIO, cast

import numpy as np

from ..core.files import atomic_write, atomic_writes, op_errors, open_to_read
from ..core.named_errors import name_errors
from ..core.settings import CheckedMethods
from ..errors import ArgumentError, FileFormatError, OpError, as_op_error, did_you_mean
from . import codec

__all__ = ["MXRecordIO", "MXIndexedRecordIO", "IRHeader", "pack", "unpack", "pack_img", "unpack_img"]

_MAGIC = struct.pack("<I", 0xCED7230A)
_HEAD = struct.Struct("<4sI")

#: Kinds of pieces of a record: whole, first, middle, last.
_ALL, _FIRST, _BETWEEN, _LAST = range(4)
_LENGTH = (1 << 29) - 1

#: Bytes searched at a time for the next record.
_BLOCK = 1 << 16


def _mark(data: bytes, start: int = 0) -> int:
    """Offset of the magic number at a multiple of four, from ``start`` on; -1 if there is none."""
    at = data.find(_MAGIC, start)
    while at % 4 and at > 0:
        at = data.find(_MAGIC, at + 1)
    return at


def _record_parts(data: bytes) -> Iterator[bytes]:
    """A record in the file format, in parts."""
    cuts, at = [], _mark(data)
    while at >= 0:
        cuts.append(at)
        at = _mark(data, at + 4)
    start = 0
    for number, end in enumerate([*cuts, len(data)]):
        kind = _ALL if not cuts else _FIRST if not number else _LAST if number == len(cuts) else _BETWEEN
        yield _HEAD.pack(_MAGIC, kind << 29 | end - start)
        yield data[start:end]
        yield bytes(-(end - start) % 4)
        start = end + 4


class _Damage(Exception):
    """Describes why a record is damaged."""


class _Reader:
    """Reads the records of a file, from its current position."""

    def __init__(self, path: str):
        opened = ExitStack()
        self.file = cast(io.BufferedReader, opened.enter_context(open_to_read(path)))
        self.close = weakref.finalize(self, opened.close)
        with op_errors():
            self.size = os.fstat(self.file.fileno()).st_size
        self.name = path

    def read(self) -> bytes | None:
        """The next record; None at the end.

        Raises
        ------
        FileFormatError
            If it is damaged. The next record is found by its magic number.
        """
        start = self.file.tell()
        try:
            first = self._piece()
            if first is None:
                return None
            kind, data = first
            if kind == _ALL:
                return data
            if kind != _FIRST:
                raise _Damage("is the middle part of a record, without its beginning")
            pieces = [data]
            while kind != _LAST:
                following = self._piece()
                if following is None or following[0] not in (_BETWEEN, _LAST):
                    raise _Damage("has no end")
                kind, data = following
                pieces.append(data)
            return _MAGIC.join(pieces)
        except _Damage as damage:
            self.file.seek(self._next(start + 4))
            raise FileFormatError(f"{self.name}: the record at byte {start} {damage}") from None

    def _piece(self) -> tuple[int, bytes] | None:
        """The next piece of a record, and its kind."""
        head = self.file.read(_HEAD.size)
        if not head:
            return None
        if len(head) < _HEAD.size:
            raise _Damage("ends within its header")
        magic, word = _HEAD.unpack(head)
        if magic != _MAGIC:
            raise _Damage("has no magic number")
        kind, length = word >> 29, word & _LENGTH
        remaining = self.size - self.file.tell()
        if kind > _LAST:
            raise _Damage(f"is of the unknown kind {kind}")
        if length + -length % 4 > remaining:
            raise _Damage(f"has {length} bytes according to its header, but the file has only {remaining} more")
        data, filling = self.file.read(length), self.file.read(-length % 4)
        if len(data) < length:
            raise _Damage("ends early: the file has become shorter")
        if any(filling) or not _MAGIC.startswith(self.file.peek(4)[:4]) or _mark(data) >= 0:
            raise _Damage(f"is shorter than the {length} bytes that its header gives")
        return kind, data

    def _next(self, start: int) -> int:
        """Offset of the first record from ``start`` on, or the size of the file."""
        start += -start % 4
        while start < self.size:
            self.file.seek(start)
            block = self.file.read(_BLOCK)
            if len(block) < _HEAD.size:
                break
            at = _mark(block)
            while 0 <= at <= len(block) - _HEAD.size:
                if _HEAD.unpack_from(block, at)[1] >> 29 in (_ALL, _FIRST):
                    return start + at
                at = _mark(block, at + 4)
            # the next block begins four bytes earlier, since a header may cross the border
            start += len(block) - 4 if len(block) == _BLOCK else len(block)
        return self.size

    def starts(self) -> Iterator[int]:
        """Offsets of the records, found from their headers; after damage, by the magic number."""
        at = 0
        while at < self.size:
            self.file.seek(at)
            head = self.file.read(_HEAD.size)
            magic, word = _HEAD.unpack(head) if len(head) == _HEAD.size else (b"", 0)
            kind, length = word >> 29, word & _LENGTH
            if magic != _MAGIC or kind > _LAST:
                following = self._next(at + 4)
                yield at  # reading the record raises the error
                at = following
                continue
            if kind in (_ALL, _FIRST):
                yield at
            at += _HEAD.size + length + -length % 4


class _Writer:
    """Writes files that appear under their names together, when they are closed."""

    def __init__(self, *paths: str):
        self.pid = os.getpid()
        self._drafts: list[AbstractContextManager[BinaryIO]] = []
        self.files: list[BinaryIO] = []
        for path in paths:
            draft = atomic_write(path)
            try:
                self.files.append(draft.__enter__())
            except BaseException as error:
                self.discard(error)
                raise
            self._drafts.append(draft)

    def write(self, number: int, data: bytes) -> None:
        """Append to one of the files, unbuffered: a fork would copy a buffer."""
        with op_errors():
            self.files[number].write(data)
            self.files[number].flush()

    def close(self) -> None:
        drafts, self._drafts = self._drafts, []
        if self.pid != os.getpid():  # the files belong to the parent process
            return
        with atomic_writes():
            for draft in drafts:
                draft.__exit__(None, None, None)

    def discard(self, error: BaseException) -> None:
        drafts, self._drafts = self._drafts, []
        for draft in drafts:
            draft.__exit__(type(error), error, None)


class MXRecordIO(CheckedMethods):
    """A sequential reader or writer of a record file.

    Parameters
    ----------
    uri : str
        Name of the file.
    flag : {"r", "w"}
        Read or write. A written file appears under its name, complete, when it is closed. If the program is killed or
        an exception leaves ``with``, no file changes.
    damaged : {"refuse", "skip"}
        Treatment of a damaged record: an error, after which the next read continues with the next record; or it is
        skipped and counted by ``skipped``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with MXRecordIO(folder + "/a.rec", "w") as records:
    ...         records.write(b"one")
    ...         records.write(b"two")
    ...     with MXRecordIO(folder + "/a.rec", "r") as records:
    ...         records.read(), records.read(), records.read()
    (b'one', b'two', None)
    """

    def __init__(self, uri: str, flag: str, damaged: str = "refuse"):
        self.uri, self.is_open = os.fspath(uri), False
        for name, value, valid in (("flag", flag, ("r", "w")), ("damaged", damaged, ("refuse", "skip"))):
            if value not in valid:
                raise ArgumentError(f"{self}: there is no {name} {value!r}. {did_you_mean(value, valid)}")
        self.flag, self.damaged, self.writable, self.skipped = flag, damaged, flag == "w", 0
        self.open()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r})"

    def open(self) -> None:
        """Restart at the first record; a file that is written starts empty."""
        self.close()
        self._io: Any = _Writer(*self._paths()) if self.writable else _Reader(self.uri)
        self._end = weakref.finalize(self, self._io.close)
        self.pid, self.is_open, self.skipped = os.getpid(), True, 0

    def _paths(self) -> Sequence[str]:
        return (self.uri,)

    def close(self) -> None:
        """Close the file; it may be called twice."""
        if self.is_open:
            self.is_open = False
            self._end()

    def reset(self) -> None:
        """Restart at the first record."""
        self.open()

    def __enter__(self) -> MXRecordIO:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None and self.is_open and self.writable:
            self._io.discard(error)
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.writable:
            raise ArgumentError(f"{self.uri}: a file that is being written cannot be copied or sent to a process")
        return {name: value for name, value in vars(self).items() if name not in ("_io", "_end")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        was_open = state["is_open"]
        vars(self).update(state, is_open=False)
        if was_open:
            self.open()

    def _ready(self, writing: bool) -> None:
        """Refuse an operation that is not possible now."""
        if not self.is_open:
            raise ArgumentError(f"{self.uri} is closed")
        if writing != self.writable:
            raise ArgumentError(f"{self.uri} was opened to {'write' if self.writable else 'read'}: "
                                f"flag={self.flag!r}")
        if self.pid != os.getpid():
            raise OpError(f"{self.uri} was opened by another process, which shares its position in the file: call "
                          f"reset() in this process first")

    def write(self, buf: bytes) -> None:
        """Append a record, of fewer than 2**29 bytes."""
        self._ready(True)
        data: object = buf
        if not isinstance(data, (bytes, bytearray, memoryview)):
            hint = "; encode text, text.encode()" if isinstance(data, str) else ""
            raise ArgumentError(f"{self.uri}: expected a record as bytes, got {type(data).__name__}{hint}")
        if len(data) > _LENGTH:
            raise ArgumentError(f"{self.uri}: a record is fewer than 2**29 bytes, got {len(data)}")
        self._io.write(0, b"".join(_record_parts(bytes(data))))

    def read(self) -> bytes | None:
        """The next record; None at the end.

        Raises
        ------
        FileFormatError
            If it is damaged, and ``damaged`` is "refuse".
        """
        self._ready(False)
        while True:
            try:
                with op_errors():
                    record: bytes | None = self._io.read()
                    return record
            except FileFormatError:
                if self.damaged == "refuse":
                    raise
                self.skipped += 1


class MXIndexedRecordIO(MXRecordIO):
    """A record file with access by key, through an index file of record offsets.

    Parameters
    ----------
    idx_path : str
        Name of the index file, with a line of key and offset per record.
    uri, flag, damaged
        See `MXRecordIO`; both files appear together.
    key_type : callable
        Converts the text of a key to the key.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with MXIndexedRecordIO(folder + "/a.idx", folder + "/a.rec", "w") as records:
    ...         for key in range(3):
    ...             records.write_idx(key, b"record %d" % key)
    ...     with MXIndexedRecordIO(folder + "/a.idx", folder + "/a.rec", "r") as records:
    ...         records.keys, records.read_idx(2)
    ([0, 1, 2], b'record 2')
    """

    def __init__(self, idx_path: str, uri: str, flag: str, key_type: Callable[[str], Any] = int,
                 damaged: str = "refuse"):
        self.idx_path, self.key_type = os.fspath(idx_path), key_type
        self.idx: dict[Any, int] = {}
        self.keys: list[Any] = []
        super().__init__(uri, flag, damaged)

    def _paths(self) -> Sequence[str]:
        return self.uri, self.idx_path

    def open(self) -> None:
        super().open()
        self.idx, self.keys = {}, []
        if not self.writable:
            try:
                self._read_index()
            except BaseException:
                self.close()
                raise

    def _read_index(self) -> None:
        with open_to_read(self.idx_path) as file:
            for number, line in enumerate(file, 1):
                try:
                    parts = line.decode().strip().split("\t")
                    if parts == [""]:
                        continue
                    key, place = self.key_type(parts[0]), int(parts[1])
                except (ValueError, IndexError) as error:
                    raise FileFormatError(f"{self.idx_path}: line {number}: expected a key, a tab and an offset, got "
                                          f"{line[:50]!r}: {error}") from None
                self.idx[key] = place
                self.keys.append(key)

    def seek(self, idx: Any) -> None:
        """Move to the record of a key; a process that did not open the file opens it again first."""
        if self.is_open and not self.writable and self.pid != os.getpid():
            self.reset()
        self._ready(False)
        if idx not in self.idx:
            raise as_op_error(KeyError(f"{self.idx_path}: there is no key {idx!r} among {len(self.idx)}"))
        place = self.idx[idx]
        if not 0 <= place < self._io.size:
            raise FileFormatError(f"{self.idx_path}: the record of {idx!r} begins at byte {place}, {self.uri} has "
                                  f"{self._io.size}")
        self._io.file.seek(place)

    def tell(self) -> int:
        """Offset of the next record that is written."""
        self._ready(True)
        return int(self._io.files[0].tell())

    def read_idx(self, idx: Any) -> bytes | None:
        """The record of a key."""
        self.seek(idx)
        if self.damaged == "refuse":
            return self.read()
        before = self.skipped
        record = self.read()
        return record if self.skipped == before else None  # if damage was skipped, the next record has another key

    def write_idx(self, idx: Any, buf: bytes) -> None:
        """Append a record under a key."""
        key, place = self.key_type(idx), self.tell()
        self.write(buf)
        self._io.write(1, f"{key}\t{place}\n".encode())
        self.idx[key] = place
        self.keys.append(key)


IRHeader = namedtuple("HEADER", ["flag", "label", "id", "id2"])  # type: ignore[name-match]  # as MXNet's prints itself
IRHeader.__doc__ = """The header of an image's record.

``flag`` is the length of the label if the label is an array, and 0 if it is a number. ``label`` is a number or an array
of float32, ``id`` the number of the image, ``id2`` the upper half of that number, usually 0.
"""

_IMAGE_HEAD = struct.Struct("<IfQQ")


def pack(header: Sequence[Any], s: bytes) -> bytes:
    """The record of an image: a header followed by bytes.

    Parameters
    ----------
    header : IRHeader
        The header; its ``flag`` is set from the label.
    s : bytes
        The encoded image.

    Examples
    --------
    >>> unpack(pack(IRHeader(0, [1, 2], 7, 0), b"image"))
    (HEADER(flag=2, label=array([1., 2.], dtype=float32), id=7, id2=0), b'image')
    """
    header = IRHeader(*header)
    label, numbers_of_it, flag = header.label, b"", 0
    if not isinstance(label, numbers.Number):
        array = np.asarray(label, dtype="<f4")
        label, numbers_of_it, flag = 0.0, array.tobytes(), array.size
    try:
        return _IMAGE_HEAD.pack(flag, label, header.id, header.id2) + numbers_of_it + s
    except (struct.error, OverflowError) as error:
        raise ArgumentError(f"{header}: not the header of an image: {error}") from None


def unpack(s: bytes) -> tuple[IRHeader, bytes]:
    """Header and content of an image record.

    Raises
    ------
    FileFormatError
        If the record is shorter than its header states.

    Examples
    --------
    >>> unpack(pack(IRHeader(0, 2.0, 7, 0), b"text"))[1]
    b'text'
    """
    if len(s) < _IMAGE_HEAD.size:
        raise FileFormatError(f"a record of {len(s)} bytes is too short for the header of an image, "
                              f"{_IMAGE_HEAD.size} bytes")
    header = IRHeader(*_IMAGE_HEAD.unpack_from(s))
    start = _IMAGE_HEAD.size + 4 * header.flag
    if start > len(s):
        raise FileFormatError(f"a record of {len(s)} bytes is too short for the label of {header.flag} elements that "
                              f"its header states")
    if header.flag:
        header = header._replace(label=np.frombuffer(s, "<f4", header.flag, _IMAGE_HEAD.size))
    return header, s[start:]


def pack_img(header: Sequence[Any], img: np.ndarray, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """Encodes an image and packs it with a header.

    Parameters
    ----------
    header : IRHeader
        Header of the record.
    img : numpy.ndarray of shape (height, width, 3) or (height, width), uint8
        The image; its channels are blue, green, red, as OpenCV has them.
    quality : int
        Quality of a JPEG, 0 to 100, or compression level of a PNG, 0 to 9.
    img_fmt : str
        File format: ".jpg" or ".png".

    Examples
    --------
    >>> image = np.zeros((4, 4, 3), np.uint8)
    >>> unpack_img(pack_img(IRHeader(0, 1.0, 0, 0), image, img_fmt=".png"))[1].shape
    (4, 4, 3)
    """
    return pack(header, codec.encode(_swap_red_and_blue(np.asarray(img)), img_fmt, quality))


def unpack_img(s: bytes, iscolor: int = -1) -> tuple[IRHeader, np.ndarray]:
    """Header and decoded image of an image record.

    Parameters
    ----------
    s : bytes
        The record.
    iscolor : {-1, 0, 1}
        -1 for the channels in the file, 0 for grayscale, 1 for three channels.

    Returns
    -------
    IRHeader, numpy.ndarray
        The image has the shape (height, width, channels), in OpenCV's channel order blue, green, red and alpha; a
        grayscale image has (height, width).

    Examples
    --------
    >>> packed = pack_img(IRHeader(0, 1.0, 0, 0), np.zeros((4, 4, 3), np.uint8), img_fmt=".png")
    >>> header, image = unpack_img(packed)
    >>> float(header.label), image.shape
    (1.0, (4, 4, 3))
    """
    if iscolor not in (-1, 0, 1):
        raise ArgumentError(f"iscolor={iscolor!r}: expected -1, 0 or 1")
    header, data = unpack(s)
    pixels = codec.decode(data, iscolor)
    return header, pixels[:, :, 0] if pixels.shape[2] == 1 else np.ascontiguousarray(_swap_red_and_blue(pixels))


def _swap_red_and_blue(image: np.ndarray) -> np.ndarray:
    """The image with red and blue exchanged; alpha stays last."""
    if image.ndim < 3 or image.shape[2] < 3:
        return image
    return image[:, :, [2, 1, 0, *range(3, image.shape[2])]]


name_errors(__name__, globals(), __all__)
