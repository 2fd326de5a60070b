"""Protobuf: integers and fields of messages as bytes, for writing; nothing is read here."""

from __future__ import annotations

import struct

__all__ = ["field", "varint"]


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
