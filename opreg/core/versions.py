"""Versions of memory: whether elements were written after something was computed with them.

One counter, ``tick``, numbers tape nodes and writes. Each write is recorded with its number for the memory that it
changed, through whichever array or view. A node with a smaller number than the write was computed with the values from
before it. A write is remembered as long as its memory exists.

For a NumPy array that owns its memory, writes are recorded by the array. For all other memory, of devices and of other
libraries, they are recorded by address: several unrelated array objects may use the same memory there. If an address is
used again for new memory, the writes recorded there are older than the new contents, so they do no harm.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from sys import _getframe, getrefcount
from types import FrameType
from typing import Any

import numpy as np
from numpy import ndarray

from ..errors import user_frame
from ..typing import Array
from .addresses import address_of
from .locks import lock
from .written_ranges import NEVER, SharedWrite, Span, Write, WrittenRanges, number_of

__all__ = ["LATEST", "WATCHED", "Targets", "Write", "must_record_write", "write_count", "owner_of", "share",
           "is_unchanged", "tick", "keeps_all_bits", "view_at", "written", "wrote", "wrote_all", "wrote_held"]

_COUNT = itertools.count(1)
#: Gives the next number, larger than those of all earlier nodes and writes.
tick = _COUNT.__next__

#: The number of the last recorded write. For a larger number, no later write needs to be looked for.
LATEST = [0]
# Takes the next number and stores it in LATEST in one step, so that no thread can store a smaller one afterwards.
_advance = map(LATEST.__setitem__, itertools.repeat(0), _COUNT).__next__

#: Whether writes are recorded at all: not empty from the first call of ``write_count`` on. Before that call
#: no number of a write is in use.
WATCHED: list[bool] = []

# The most ranges of one write that are recorded separately, and the most rows or elements that are searched for ranges.
_SPANS, _PICKED = 256, 1 << 14


# --------------------------------------------------------------------------------------------------- records of memory


class _Memory:
    """The memory of one array, or all memory recorded by address, and the writes to it.

    Attributes
    ----------
    owner : weak reference
        To the array that owns the memory; gives None for the memory recorded by address.
    last : Write
        The last write to any part of it.
    ranges : WrittenRanges or None
        The last writes to its parts; None if the last write was to all of it.
    shared : bool
        Whether the array's writes are recorded by address from now on.
    """

    __slots__ = ("owner", "last", "ranges", "shared")

    def __init__(self, owner: Callable[[], ndarray | None] = lambda: None):
        self.owner, self.last, self.shared = owner, NEVER, False
        self.ranges: WrittenRanges | None = None

    def wrote(self, spans: Sequence[Span] | None, write: Write | SharedWrite) -> None:
        """Record a write to some bytes, or to all with None."""
        if spans is None:
            self.ranges = None
        else:
            if self.ranges is None:
                self.ranges = WrittenRanges(self.last)
            for span in spans:
                self.ranges.wrote(span, write)
        self.last = write[0], write[1]

    def written(self, spans: Sequence[Span]) -> Write:
        """The last write to some bytes."""
        if self.ranges is None:
            return self.last
        number, place = max([self.ranges.last(span) for span in spans], key=number_of, default=NEVER)
        return number, place


#: The memory of arrays that own it, by ``id`` while they live, and a record for all other memory. A caller checks the
#: ``owner`` of what it finds: a new array may have the ``id`` of one that was deleted.
_OWNED: dict[int, _Memory] = {}
_BY_ADDRESS = _Memory()
#: The number of arrays whose writes are recorded by address since ``share`` was called for them.
_SHARED = [0]
_LOCK = lock()
#: Views that were written, by ``id``, as long as they live: the view, ``_SHARED`` at that time, its memory and its
#: bytes there, None for all. To get an array's address from NumPy takes ten times as long as to write a few elements.
_VIEWS: dict[int, tuple[Callable[[], ndarray | None], int, _Memory, list[Span] | None]] = {}


def _memory(array: Array) -> tuple[_Memory, bool]:
    """The memory of a raw array, and whether the array covers all of it."""
    owner = owner_of(array)
    if owner is None:
        return _BY_ADDRESS, False
    key = id(owner)
    memory = _OWNED.get(key)
    if memory is not None and memory.owner() is not owner:
        del _OWNED[key]
        memory = None
    if memory is None:
        memory = _OWNED.setdefault(key, _Memory(weakref.ref(owner, lambda _: _OWNED.pop(key, None))))
    return (_BY_ADDRESS, False) if memory.shared else (memory, array.nbytes == owner.nbytes)


def _locate(array: Array, key: Any = None) -> tuple[_Memory, list[Span] | None]:
    """The memory of a raw array, and the bytes there of the array or of its elements at a subscript; None for all."""
    memory, covers_all = _memory(array)
    return memory, None if covers_all and key is None else _spans(array, key)


def _memory_range(array: Array) -> tuple[_Memory, list[Span] | None]:
    """The memory of a raw array, and its bytes there; None for all. For a view this is cached as long as it lives."""
    key, shared = id(array), _SHARED[0]
    cached = _VIEWS.get(key)
    if cached is not None and cached[1] == shared and cached[0]() is array:
        return cached[2:]
    memory, spans = _locate(array)
    if array.__class__ is ndarray and array.base is not None:
        _VIEWS[key] = weakref.ref(array, lambda _: _VIEWS.pop(key, None)), shared, memory, spans
    return memory, spans


def owner_of(array: Any) -> ndarray | None:
    """The NumPy array that owns the memory of an array; None if its writes are recorded by address."""
    if not isinstance(array, ndarray):
        return None
    base: Any = array.base
    while base is not None:
        if isinstance(base, ndarray):
            array, base = base, base.base
        elif isinstance(base, memoryview):
            base = base.obj
        else:
            return None
    return array


def share(array: Array) -> None:
    """Record writes to an array's memory by address from now on: other libraries get the memory, and it may come back
    from them as an unrelated array object."""
    owner = owner_of(array)
    if owner is None:
        return
    memory, _ = _memory(owner)
    with _LOCK:
        if memory is _BY_ADDRESS or memory.shared:
            return
        memory.shared = True
        _SHARED[0] += 1
        _BY_ADDRESS.wrote([], max(_BY_ADDRESS.last, memory.last, key=number_of))
        ranges = memory.ranges or WrittenRanges(memory.last)
        for span in _spans(owner):
            for part, write in ranges.within(span):
                _BY_ADDRESS.ranges.wrote(part, write)  # type: ignore[union-attr]  # since it was written just now


# ------------------------------------------------------------------------------------------------------------- writes


class _Holder:
    __slots__ = ("_data",)
    _data: ndarray


_holder = _Holder()
_holder._data = np.empty(0)


def _references(holder: _Holder) -> int:
    data = holder._data
    return getrefcount(data)


#: The reference count that a function with one variable for a raw array sees if only one other object refers to it.
UNSHARED = _references(_holder)


def must_record_write(holder: Any, references: int = 0) -> bool:
    """Whether a write to an array must be recorded: writes are recorded at all, and its raw array or a view of it has
    other references, from a tape node, a plan or another array.

    Parameters
    ----------
    holder : NDArray
        The array, with its raw array in ``_data``.
    references : int
        How many references to the raw array the caller itself has; a view counts as one.
    """
    if not WATCHED:
        return False
    data = holder._data
    return getrefcount(data) - references != UNSHARED or data.__class__ is not ndarray or data.base is not None


def _next_write(caller: FrameType) -> Write:
    """A new write, later than all others, by the instruction in user code that led to the caller."""
    _advance()
    frame = user_frame(caller)
    return LATEST[0], None if frame is None else (frame.f_code, frame.f_lasti)


def wrote(array: Array, key: Any = None) -> None:
    """Record that a raw array was written, or its elements at a subscript."""
    if not WATCHED or not _is_memory(array):
        return
    lasting = key is None  # not a view that ``view_at`` made
    if not lasting and _is_basic(key):
        array, key = view_at(array, key), None
    if array.size:
        memory, spans = _memory_range(array) if lasting else _locate(array, key)
        write = _next_write(_getframe(1))
        with _LOCK:
            memory.wrote(spans, write)


def wrote_all(arrays: Iterable[Array]) -> None:
    """Record that raw arrays were written, each of them as a whole."""
    if not WATCHED:
        return
    arrays = list(arrays)
    together = _memory_ranges(arrays)
    together.wrote(_next_write(_getframe(1)))


def wrote_held(holders: Iterable[Any]) -> None:
    """Record that arrays were written, except those for which ``must_record_write`` is false; the caller also
    holds the raw arrays."""
    if WATCHED and (arrays := [holder._data for holder in holders if must_record_write(holder, 1)]):
        wrote_all(arrays)


class Targets:
    """Raw arrays that are always written together, for example by the steps of a plan.

    Examples
    --------
    >>> arrays = np.zeros(2), np.zeros(3)
    >>> targets, since = Targets(arrays), write_count()
    >>> targets.wrote()
    >>> [written(array, since) is None for array in (*arrays, np.zeros(2))]
    [False, False, True]
    """

    __slots__ = ("_arrays", "_together")

    def __init__(self, arrays: Iterable[Array]):
        self._arrays = [array for array in arrays if array.size]  # references, so that their memory stays the same
        self._together: _Together | None = None

    def wrote(self) -> None:
        """Record that all of them were written."""
        together = self._together
        if together is None or together.known != _SHARED[0]:
            together = self._together = _Together(self._arrays)
        together.wrote(_next_write(_getframe(2)))


class _Together:
    """The places of arrays that are written together.

    Attributes
    ----------
    known : int
        ``_SHARED`` when the places were found; if it is larger now, the places may be out of date.
    """

    __slots__ = ("known", "_wholes", "_parts")

    def __init__(self, arrays: Sequence[Array]):
        self.known = _SHARED[0]
        places = [_memory_range(array) for array in arrays if array.size and _is_memory(array)]
        self._wholes = [memory for memory, spans in places if spans is None]
        spans_of: dict[int, tuple[_Memory, list[Span]]] = {}
        for memory, spans in places:
            if spans is not None:
                spans_of.setdefault(id(memory), (memory, []))[1].extend(spans)
        self._parts = [_Part(memory, spans) for memory, spans in spans_of.values()]

    def wrote(self, write: Write) -> None:
        """Record that all of them were written."""
        for memory in self._wholes:
            memory.last, memory.ranges = write, None
        if self._parts:
            with _LOCK:
                for part in self._parts:
                    part.wrote(write)


class _Part:
    """Ranges of one memory that are written together. If nothing else has written to these ranges in the meantime, the
    next write to them is recorded in one place that the ranges share."""

    __slots__ = ("_memory", "_spans", "_shared", "_ranges")

    def __init__(self, memory: _Memory, spans: list[Span]):
        self._memory, self._spans = memory, spans
        self._shared: SharedWrite | None = None
        self._ranges: WrittenRanges | None = None

    def wrote(self, write: Write) -> None:
        """Record a write to all of them."""
        memory, shared = self._memory, self._shared
        if shared is not None and shared.whole and memory.ranges is self._ranges:
            shared[:] = write
            memory.last = write
            return
        # The first write is recorded like any other: most arrays are written once.
        again = self._ranges is not None
        self._shared = SharedWrite(write) if again else None
        memory.wrote(self._spans, write if self._shared is None else self._shared)
        self._ranges = memory.ranges


#: Arrays of devices that were written together: weak references to them, and their places. The key is the ``id`` of the
#: first one and their number; an entry lives as long as the first array.
_GROUPS: dict[tuple[int, int], tuple[list[Callable[[], Any]], _Together]] = {}
# The fewest arrays of a group that `_GROUPS` stores.
_GROUP = 4


def _memory_ranges(arrays: Sequence[Array]) -> _Together:
    """The memories and ranges of arrays. Arrays of a device, such as weights and states of an optimizer, are located
    once while they live: reading their addresses takes longer than an update."""
    if len(arrays) < _GROUP or isinstance(arrays[0], ndarray) or not all(map(_is_memory, arrays[:1])):
        return _Together(arrays)
    key = id(arrays[0]), len(arrays)
    found = _GROUPS.get(key)
    if found is not None and found[1].known == _SHARED[0] and all(
            reference() is array for reference, array in zip(found[0], arrays)):
        return found[1]
    together = _Together(arrays)
    first = weakref.ref(arrays[0], lambda _: _GROUPS.pop(key, None))
    _GROUPS[key] = [first, *map(weakref.ref, arrays[1:])], together
    return together


#: Bytes that are compared at a time.
_COMPARED = 1 << 18


def keeps_all_bits(array: ndarray, source: Any) -> bool:
    """Whether an assignment to an array of the host would change none of its bits.

    Examples
    --------
    >>> keeps_all_bits(np.zeros(2), 0), keeps_all_bits(np.zeros(2), -0.0)
    (True, False)
    """
    if getattr(source, "shape", None) != array.shape:
        try:
            source = np.broadcast_to(source, array.shape)
        except ValueError:  # the assignment itself raises the error
            return False
    first = (0,) * array.ndim
    if not array.size or array[first].tobytes() != source[first].astype(array.dtype).tobytes():
        return not array.size
    if array.nbytes <= _COMPARED:
        return _has_bits(array, source)
    rows = max(1, _COMPARED * len(array) // array.nbytes)
    return all(_has_bits(array[begin:begin + rows], source[begin:begin + rows]) for begin in range(0, len(array), rows))


def _has_bits(array: ndarray, source: ndarray) -> bool:
    """Whether the elements of an array equal those of a source of this shape, converted to its dtype, bit by bit."""
    old, new = np.ascontiguousarray(array), np.ascontiguousarray(source, array.dtype)
    return bool((old.reshape(-1).view(np.uint8) == new.reshape(-1).view(np.uint8)).all())


# ---------------------------------------------------------------------------------------------------------- questions


def write_count() -> int:
    """A number to give to ``written`` later, to ask for writes after this call."""
    if not WATCHED:
        WATCHED.append(True)
    return tick()


def written(array: Array, since: float) -> Write | None:
    """The last write to elements of a raw array, if there was one after the number ``since``.

    The caller must have held the raw array, or a view of it, since then: writes to an array that only its holder refers
    to are not recorded. It is also not recorded here if an NDArray is given another raw array.

    Examples
    --------
    >>> array, since = np.zeros(4), write_count()
    >>> wrote(array, slice(2, 4))
    >>> written(array, since) is None, written(array[:2], since) is None
    (False, True)
    """
    owner = owner_of(array)
    memory = _BY_ADDRESS if owner is None else _OWNED.get(id(owner))
    if memory is None or memory.owner() is not owner:
        return None
    if memory.shared:
        memory = _BY_ADDRESS
    if memory.last[0] <= since:
        return None
    if memory.ranges is None:
        return memory.last
    with _LOCK:
        write = memory.written(_spans(array))
    return write if write[0] > since else None


def is_unchanged(array: Array, since: int) -> bool:
    """Whether a raw array certainly has the same elements as at ``since``: no write was recorded, and its memory is not
    shared with another library, which may write without a record. The caller must have held it as for ``written``.

    Examples
    --------
    >>> array, since = np.zeros(4), write_count()
    >>> before = is_unchanged(array, since)
    >>> share(array)
    >>> before, is_unchanged(array, since)
    (True, False)
    """
    owner = owner_of(array)
    if owner is None:
        return False
    memory = _OWNED.get(id(owner))
    if memory is None or memory.owner() is not owner:
        return True
    return not memory.shared and written(array, since) is None


# ------------------------------------------------------------------------------------------------------------- places


def _is_memory(array: Any) -> bool:
    """Whether an array has elements in memory; a traced value has none."""
    kind = type(array)  # attributes are looked up on the class, since reading them from an object would compute them
    return isinstance(array, ndarray) or hasattr(kind, "__cuda_array_interface__") or hasattr(
        kind, "__array_interface__")


def _is_basic(key: object) -> bool:
    """Whether a subscript is basic indexing, which gives a view."""
    return all(part is None or part is Ellipsis or (isinstance(part, (int, slice, np.integer))
                                                    and not isinstance(part, bool))
               for part in (key if isinstance(key, tuple) else (key,)))


def view_at(array: Array, key: Any) -> Array:
    """The view at a basic subscript; for a single element NumPy itself gives a scalar and no view."""
    part = array[key]
    if hasattr(part, "flags") and not isinstance(part, np.generic):
        return part
    return array[(*key, Ellipsis) if isinstance(key, tuple) else (key, Ellipsis)]


def _spans(array: Array, key: Any = None) -> list[Span]:
    """The ranges of memory that an array covers, or its elements at a subscript; one range around all of them if there
    are too many."""
    if not array.size:
        return []
    first, size, on_host = address_of(array), array.itemsize, isinstance(array, ndarray)
    if array.flags.c_contiguous and (key is None or not on_host):
        return [(first, first + array.nbytes)]
    # Rows with contiguous elements are treated as one piece.
    axes, fewest = array.ndim, 0 if key is None else array.ndim if isinstance(key, tuple) else 1
    while axes > fewest and array.strides[axes - 1] == size:
        axes -= 1
        size *= array.shape[axes]
    if on_host and math.prod(array.shape[:axes]) <= _PICKED:
        places = np.zeros((), np.int64)
        for dim, stride in zip(array.shape[:axes], array.strides):
            places = places[..., None] + np.arange(dim) * stride
        places = np.unique(places if key is None else places[key]) + first
        ends = np.flatnonzero(np.diff(places) != size) + 1
        if len(ends) < _SPANS:
            return [(int(part[0]), int(part[-1]) + size) for part in np.split(places, ends) if part.size]
    reach = [(dim - 1) * stride for dim, stride in zip(array.shape[:axes], array.strides)]
    return [(first + sum(step for step in reach if step < 0), first + sum(step for step in reach if step > 0) + size)]
