"""Protobuf: integers and fields of messages as bytes, and the fields of a message that is read."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NoReturn

from ..errors import FileFormatError

__all__ = ["Message", "field", "varint"]

#: The bytes of a number of fixed length, by the kind of its field.
_FIXED = {1: 8, 5: 4}


def varint(number: int) -> bytes:
    """An integer in groups of seven bits, the lowest first; a negative one as its two's complement in 64 bits.

    Examples
    --------
    >>> varint(1), varint(300), len(varint(-1))
    (b'\\x01', b'\\xac\\x02', 10)
    """
    number &= 2 ** 64 - 1
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


def field(place: int, value: float | str | bytes) -> bytes:
    """A field of a message: an int as a varint, a float in 64 bits, text or bytes with their length before them.

    Examples
    --------
    >>> field(1, 5), field(2, "ab"), field(1, 0.0)
    (b'\\x08\\x05', b'\\x12\\x02ab', b'\\t\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00')
    """
    if isinstance(value, int):
        return varint(place << 3) + varint(value)
    if isinstance(value, float):
        return varint(place << 3 | 1) + struct.pack("<d", value)
    content = value.encode() if isinstance(value, str) else value
    return varint(place << 3 | 2) + varint(len(content)) + content


class Message:
    """A message that is read, and the position of the reader in it; ``start`` is its place in the file ``name``.

    Examples
    --------
    >>> message = Message(memoryview(field(1, 300) + field(2, "ab")), "a.bin")
    >>> [(place, value if isinstance(value, int) else value.text()) for place, value in message.fields()]
    [(1, 300), (2, 'ab')]
    """

    def __init__(self, content: memoryview, name: str, start: int = 0):
        self.content, self.name, self.start, self.at = content, name, start, 0

    def fail(self, expected: str, found: object) -> NoReturn:
        """Raise an error about the present position."""
        raise FileFormatError(f"{self.name}: byte {self.start + self.at}: expected {expected}, found {found}")

    def number(self) -> int:
        """Read a varint, an integer of one to ten bytes."""
        value = 0
        for i in range(10):
            if self.at >= len(self.content):
                self.fail("a number", "the end")
            byte = self.content[self.at]
            self.at += 1
            value |= (byte & 127) << 7 * i
            if byte < 128:
                return value
        return self.fail("a number of at most ten bytes", "more")

    def fields(self) -> Iterator[tuple[int, int | Message]]:
        """Read the fields: the number of each, and its value: an integer, or a message, whose content may be the bytes
        of a number of fixed length."""
        while self.at < len(self.content):
            key = self.number()
            if key & 7 == 0:
                yield key >> 3, self.number()
                continue
            if key & 7 != 2 and key & 7 not in _FIXED:
                self.fail("a number or bytes", f"a field of kind {key & 7}")
            length = _FIXED.get(key & 7) or self.number()
            if length > len(self.content) - self.at:
                self.fail(f"{length} bytes", len(self.content) - self.at)
            part = Message(self.content[self.at:self.at + length], self.name, self.start + self.at)
            self.at += length
            yield key >> 3, part

    def text(self) -> str:
        """The bytes of the message as text."""
        try:
            return bytes(self.content).decode()
        except UnicodeDecodeError as error:
            return self.fail("a text", error)
