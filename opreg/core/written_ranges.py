"""Ranges of memory with the last write to each of them."""

from __future__ import annotations

import bisect
import operator
from typing import Any, TypeAlias

from ..errors import Place

__all__ = ["NEVER", "SharedWrite", "Span", "Write", "WrittenRanges", "number_of"]

#: A write to memory: its number, and the instruction in user code that wrote.
Write: TypeAlias = tuple[int, Place | None]
#: A range of memory: the address of its first byte, and the one past its last.
Span: TypeAlias = tuple[int, int]

NEVER: Write = (0, None)
number_of = operator.itemgetter(0)

# The largest number of ranges, of one array's memory or of all memory recorded by address, whose last writes are
# stored separately.
_STRETCHES = 1 << 16


class SharedWrite(list[Any]):
    """A write that many ranges share, as a list of its number and place: it is replaced in all of them at once.

    Attributes
    ----------
    whole : bool
        Whether no later write replaced it in any of the ranges.
    """

    __slots__ = ("whole",)

    def __init__(self, write: Write):
        super().__init__(write)
        self.whole = True


class WrittenRanges:
    """The last write to each range of memory; a range ends where the next one begins."""

    __slots__ = ("starts", "writes")

    def __init__(self, write: Write):
        self.starts: list[int] = [0]
        self.writes: list[Write | SharedWrite] = [write]

    def wrote(self, span: Span, write: Write | SharedWrite) -> None:
        """Record a write to a range."""
        (low, high), starts, writes = span, self.starts, self.writes
        first = bisect.bisect_left(starts, low)
        if starts[first:first + 2] == [low, high]:  # the write covers a known range exactly
            if writes[first].__class__ is SharedWrite:
                self._replace(first, first + 1, write)
            writes[first] = write
            return
        last = bisect.bisect_left(starts, high, first)
        self._replace(first - (starts[first:first + 1] != [low]), last, write)
        if last < len(starts) and starts[last] == high:
            starts[first:last], writes[first:last] = [low], [write]
        else:
            starts[first:last], writes[first:last] = [low, high], [write, writes[last - 1]]
        if len(starts) > _STRETCHES:  # each two ranges become one, with the later of their writes
            self._replace(0, len(starts), NEVER)
            self.starts = starts[::2]
            self.writes = [max(writes[i:i + 2], key=number_of) for i in range(0, len(writes), 2)]

    def _replace(self, begin: int, end: int, write: Write | SharedWrite) -> None:
        """Note that another write replaces those of some ranges, or of parts of them."""
        for old in self.writes[begin:end]:
            if isinstance(old, SharedWrite) and old is not write:
                old.whole = False

    def last(self, span: Span) -> Write | SharedWrite:
        """The last write to a byte of the span."""
        low, high = span
        return max(self.writes[bisect.bisect_right(self.starts, low) - 1:bisect.bisect_left(self.starts, high)],
                   key=number_of)

    def within(self, span: Span) -> list[tuple[Span, Write]]:
        """The parts of a span and their last writes."""
        low, high = span
        ends = [*self.starts[1:], high]
        return [((max(start, low), min(end, high)), (write[0], write[1])) for start, end, write in
                zip(self.starts, ends, self.writes) if start < high and low < end]
