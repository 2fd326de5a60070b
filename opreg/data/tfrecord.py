"""TFRecord files: records with checksums, and the features of records that are an ``Example``.

A record is its length in eight bytes, the length's checksum, its bytes, their checksum. A checksum is the CRC-32C,
rotated by 15 bits, plus a constant.
"""

from __future__ import annotations

import gzip
import math
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Iterator

import numpy as np

from ..core.files import open_to_read
from ..core.protobuf import Message
from ..errors import ArgumentError, FileFormatError

__all__ = ["RecordFile", "features_of", "record_of"]

_LENGTH = struct.Struct("<Q")
#: The bytes of a record before and after its content.
_HEAD, _TAIL = 12, 4
_DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {"GZIP": gzip.decompress, "ZLIB": zlib.decompress}


def _crc_table() -> Iterator[int]:
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        yield number


_CRC = tuple(_crc_table())
_CRC_ARRAY = np.array(_CRC, np.uint32)


def _crc(data: bytes | memoryview) -> int:
    """The CRC-32C of bytes. Many bytes are rows of equal length that are computed side by side, and joined: a checksum
    is linear, so that of a row begun with a number is the sum of the row's, begun with 0, and that of the number
    followed by zeros."""
    size = math.isqrt(len(data)) if len(data) > 256 else 0
    head = len(data) - size * size
    total = 0xFFFFFFFF
    for byte in data[:head]:
        total = total >> 8 ^ _CRC[(total ^ byte) & 255]
    if size:
        states = np.concatenate([np.zeros(size, np.uint32), np.uint32(1) << np.arange(32, dtype=np.uint32)])
        rows = np.zeros((size, len(states)), np.uint8)
        rows[:, :size] = np.frombuffer(data, np.uint8, offset=head).reshape(size, size).T
        for column in rows:
            states = states >> 8 ^ _CRC_ARRAY[(states ^ column) & 255]
        bits = states[size:].tolist()
        for state in states[:size].tolist():
            for place in range(32):
                if total >> place & 1:
                    state ^= bits[place]
            total = state
    return total ^ 0xFFFFFFFF


def _checksum(data: bytes | memoryview) -> bytes:
    crc = _crc(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record_of(message: bytes) -> bytes:
    """A message as a record.

    Examples
    --------
    >>> record_of(b"ab").hex()
    '020000000000000078270b3461621cb0f0f4'
    """
    length = _LENGTH.pack(len(message))
    return length + _checksum(length) + message + _checksum(message)


class RecordFile:
    """The records of a TFRecord file, by number; ``compression`` is None, ``"GZIP"`` or ``"ZLIB"``.

    Raises
    ------
    OSError
        When the file is missing.
    FileFormatError
        When it is no TFRecord file, or damaged.
    """

    def __init__(self, path: str | os.PathLike, compression: str | None = None):
        if compression and compression not in _DECOMPRESS:
            raise ArgumentError(f"compression_type must be one of '', {', '.join(map(repr, _DECOMPRESS))}, "
                                f"got {compression!r}")
        self.path = os.fspath(path)
        with open_to_read(path) as file:
            if compression:
                try:
                    content = _DECOMPRESS[compression](file.read())
                except (OSError, EOFError, zlib.error) as error:
                    raise FileFormatError(f"{self.path}: no file compressed by {compression} ({error})") from None
                self._data = memoryview(content)
            elif os.fstat(file.fileno()).st_size:
                self._data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            else:
                self._data = memoryview(b"")
        self._places = list(self._find_records())

    def __len__(self) -> int:
        return len(self._places)

    def _find_records(self) -> Iterator[tuple[int, int]]:
        """Begin and end of each record's content."""
        data, at = self._data, 0
        while at < len(data):
            head = data[at:at + _HEAD]
            if len(head) < _HEAD or _checksum(head[:8]) != head[8:]:
                raise FileFormatError(f"{self.path}: no TFRecord file, or a damaged one: byte {at} begins no record")
            begin = at + _HEAD
            end = begin + _LENGTH.unpack(head[:8])[0]
            at = end + _TAIL
            if at > len(data):
                raise FileFormatError(f"{self.path}: record {self._title(begin)} ends behind the file")
            yield begin, end

    def _title(self, begin: int) -> str:
        return f"at byte {begin - _HEAD}"

    def record(self, number: int) -> Message:
        """The content of a record, whose checksum is compared."""
        begin, end = self._places[number]
        content = self._data[begin:end]
        if _checksum(content) != self._data[end:end + _TAIL]:
            raise FileFormatError(f"{self.path}: the checksum of the record {self._title(begin)} is not that of its "
                                  f"content: the file is damaged")
        return Message(content, self.path, begin)


def features_of(example: Message) -> dict[str, list[bytes] | np.ndarray | None]:
    """The features of an ``Example``: a list of bytes, a float32 or int64 vector, or None for one without a kind.

    Examples
    --------
    >>> from opreg.core.protobuf import field
    >>> numbers = field(3, field(1, bytes([1, 5])))
    >>> example = field(1, field(1, field(1, "x") + field(2, numbers)))
    >>> features_of(Message(memoryview(example), "a.tfrecord"))
    {'x': array([1, 5])}
    """
    features: dict[str, list[bytes] | np.ndarray | None] = {}
    for feature in _messages(example, 1):
        for entry in _messages(feature, 1):
            name, value = "", None
            for place, part in entry.fields():
                if isinstance(part, Message) and place in (1, 2):
                    name, value = (part.text(), value) if place == 1 else (name, _value_of(part))
            features[name] = value
    return features


def _messages(message: Message, wanted: int) -> Iterator[Message]:
    """The messages in a field; others are passed over."""
    for place, part in message.fields():
        if place == wanted and isinstance(part, Message):
            yield part


def _value_of(feature: Message) -> list[bytes] | np.ndarray | None:
    for place, values in feature.fields():
        if not isinstance(values, Message):
            continue
        if place == 1:
            return [bytes(part.content) for part in _messages(values, 1)]
        if place == 2:
            parts = [part.content for part in _messages(values, 1)]
            if any(len(part) % 4 for part in parts):
                values.fail("floats of four bytes", f"parts of {[len(part) for part in parts][:20]} bytes")
            return np.frombuffer(b"".join(parts), "<f4").astype(np.float32)
        if place == 3:
            return _integers(values)
    return None


def _integers(values: Message) -> np.ndarray:
    """The integers of an int64 list: each in a field of its own, or many in one."""
    found = []
    for place, part in values.fields():
        if place == 1 and isinstance(part, int):
            found.append(np.array([part & 2 ** 64 - 1], np.uint64))
        elif place == 1 and isinstance(part, Message) and len(part.content):
            groups = np.frombuffer(part.content, np.uint8)
            last = groups < 128
            begins = np.flatnonzero(np.concatenate([[True], last[:-1]]))
            places = np.arange(len(groups)) - np.repeat(begins, np.diff([*begins, len(groups)]))
            if not last[-1] or places.max() > 9:
                part.fail("integers of at most ten bytes", "another number")
            shifts = (7 * places).astype(np.uint64)
            found.append(np.add.reduceat((groups & 127).astype(np.uint64) << shifts, begins))
    return np.concatenate([*found, np.zeros(0, np.uint64)]).view(np.int64)
