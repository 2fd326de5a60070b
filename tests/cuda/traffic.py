"""Reads and writes of kernels, counted on the host: every load and store of their source, by array."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["FLAGS", "Launched", "counted"]

#: Flags that make the compiler call a function before each access, and leave out the sanitizer's own library.
FLAGS = ("-fsanitize=thread", "-U__SANITIZE_THREAD__", "-nodefaultlibs", "-Wl,--no-as-needed", "-lstdc++", "-lm", "-lc")


class Launched(NamedTuple):
    """A launch, and the bytes of arrays that it moved.

    Attributes
    ----------
    name : str
        Name of the kernel.
    read, written : int
        Bytes that move between memory and the processor. An array of the largest size counts once for each pass, and a
        pass ends when a thread reads again an element that it has read first; smaller arrays are cached and count once.
    least_read, least_written, loaded, stored : int
        Bytes without repetitions, and bytes of all accesses.
    """

    name: str
    read: int
    written: int
    least_read: int
    least_written: int
    loaded: int
    stored: int


class _Span(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_void_p), ("size", ctypes.c_uint64), ("reader", ctypes.c_void_p),
                ("written", ctypes.c_void_p), *[(name, ctypes.c_uint64) for name in
                                                ("loaded", "passed", "read", "stored", "wrote")]]


def counted(name: str, launch: Callable[..., None], blocks: int, threads: int, table: Any, arrays: Sequence[np.ndarray]
            ) -> Launched:
    """Runs a kernel that was compiled for counting; returns the bytes that it moved of these arrays."""
    bounds = sorted((*np.lib.array_utils.byte_bounds(array), array.size) for array in arrays)
    joined: list[list[int]] = []
    for begin, end, size in bounds:  # arrays that share memory are one
        if joined and begin < joined[-1][1]:
            joined[-1][1:] = max(end, joined[-1][1]), max(size, joined[-1][2])
        else:
            joined.append([begin, end, size])
    seen = [(np.zeros(end - begin, np.uint32), np.zeros(end - begin, np.uint8)) for begin, end, _ in joined]
    spans = (_Span * len(joined))(*[_Span(begin, end - begin, reader.ctypes.data, written.ctypes.data)
                                    for (begin, end, _), (reader, written) in zip(joined, seen)])
    launch(blocks, threads, table, spans, len(spans))
    largest = max(size for *_, size in joined)
    read = sum(span.passed if size == largest else span.read for span, (*_, size) in zip(spans, joined))
    totals = [sum(getattr(span, field) for span in spans) for field in ("wrote", "read", "wrote", "loaded", "stored")]
    return Launched(name, read, *totals)
