"""Versions of memory: which numbers were written since something was computed with them.

One count, ``tick``, numbers tape nodes and writes. A write is noted with its number for the memory that it changed, by
whichever array or view. A node with a smaller number was computed with the numbers of before. No write is forgotten
while its memory is there.

Arrays of NumPy that own their memory are told apart by themselves. All other memory, that of devices and of other
libraries, is told apart by address: several arrays may lie there that know nothing of each other. An address that is
used again does no harm, since the writes noted there are older than what lies there now.
"""

from __future__ import annotations

import bisect
import itertools
import math
import operator
import weakref
from collections.abc import Callable, Iterable, Sequence
from sys import _getframe, getrefcount
from typing import Any, TypeAlias

import numpy as np
from numpy import ndarray

from ..errors import Place, user_frame
from ..typing import Array
from .addresses import address_of
from .locks import lock

__all__ = ["LATEST", "WATCHED", "Targets", "Write", "held", "now", "share", "stays", "tick", "unchanged",
           "written", "wrote", "wrote_held"]

#: A write to memory: its number, and the instruction of user code that did it.
Write: TypeAlias = tuple[int, Place | None]

_COUNT = itertools.count(1)
#: The next number: larger than those of all nodes and writes before.
tick = _COUNT.__next__

#: The number of the last write that was noted. A caller with a larger one need not look further.
LATEST = [0]
# Takes the next number and stores it there in one step, so that no thread stores a smaller one later.
_advance = map(LATEST.__setitem__, itertools.repeat(0), _COUNT).__next__

#: Whether anybody will ever ask: there is something in it from the first ``now`` on. Until then nothing is noted.
WATCHED: list[bool] = []

# How many stretches of one array's memory, or of all that is told apart by address, have a last write of their own.
_STRETCHES = 1 << 16
# How many stretches of one write are told apart; and among how many rows or elements they are found.
_SPANS, _PICKED = 256, 1 << 14

_NEVER: Write = (0, None)
_number = operator.itemgetter(0)

#: From which byte to before which: where something lies in memory.
Span: TypeAlias = tuple[int, int]


# --------------------------------------------------------------------------------------------- what is known of memory


class _Stretches:
    """The last write to each stretch of memory; a stretch ends where the next one begins."""

    __slots__ = ("starts", "writes")

    def __init__(self, write: Write):
        self.starts, self.writes = [0], [write]

    def wrote(self, span: Span, write: Write) -> None:
        """Note a write."""
        (low, high), starts, writes = span, self.starts, self.writes
        first = bisect.bisect_left(starts, low)
        if starts[first:first + 2] == [low, high]:  # a stretch as it is
            writes[first] = write
            return
        last = bisect.bisect_left(starts, high, first)
        if last < len(starts) and starts[last] == high:
            starts[first:last], writes[first:last] = [low], [write]
        else:
            starts[first:last], writes[first:last] = [low, high], [write, writes[last - 1]]
        if len(starts) > _STRETCHES:  # two become one, which counts as written when the later one was
            self.starts = starts[::2]
            self.writes = [max(writes[i:i + 2], key=_number) for i in range(0, len(writes), 2)]

    def last(self, span: Span) -> Write:
        """The last write to a byte of the span."""
        low, high = span
        return max(self.writes[bisect.bisect_right(self.starts, low) - 1:bisect.bisect_left(self.starts, high)],
                   key=_number)

    def within(self, span: Span) -> list[tuple[Span, Write]]:
        """The parts of a span and their last writes."""
        low, high = span
        ends = [*self.starts[1:], high]
        return [((max(start, low), min(end, high)), write) for start, end, write in
                zip(self.starts, ends, self.writes) if start < high and low < end]


class _Memory:
    """Memory, and when it was written.

    Attributes
    ----------
    owner : weak reference
        To the array whose memory it is; one to nothing of all that is told apart by address.
    last : Write
        The last write to some of it.
    stretches : _Stretches or None
        The last writes to its parts; None where the last write was one to all of it.
    shared : bool
        Whether it is told apart by address, too: what is known of it is known of that.
    """

    __slots__ = ("owner", "last", "stretches", "shared")

    def __init__(self, owner: Callable[[], ndarray | None] = lambda: None):
        self.owner, self.last, self.shared = owner, _NEVER, False
        self.stretches: _Stretches | None = None

    def wrote(self, spans: Sequence[Span] | None, write: Write) -> None:
        """Note a write to some bytes, or to all."""
        if spans is None:
            self.stretches = None
        else:
            if self.stretches is None:
                self.stretches = _Stretches(self.last)
            for span in spans:
                self.stretches.wrote(span, write)
        self.last = write

    def written(self, spans: Sequence[Span]) -> Write:
        """The last write to some bytes."""
        if self.stretches is None:
            return self.last
        return max([self.stretches.last(span) for span in spans], key=_number, default=_NEVER)


#: The memory of arrays that own theirs, by ``id``, for as long as they are there, and all other memory. A caller
#: that finds one asks its ``owner``: another array may have the identity of one that is gone.
_OWNED: dict[int, _Memory] = {}
_BY_ADDRESS = _Memory()
#: How often memory of an array came to be told apart by address.
_SHARED = [0]
_LOCK = lock()
#: Views that were written, by ``id``, for as long as they are there: the view, ``_SHARED`` at that time, its memory and
#: its bytes there, None for all. NumPy takes as long to say where an array lies as to write a few numbers ten times.
_VIEWS: dict[int, tuple[Callable[[], ndarray | None], int, _Memory, list[Span] | None]] = {}


def _memory(array: Array) -> tuple[_Memory, bool]:
    """The memory of a raw array, and whether that is all of it."""
    owner = _owner(array)
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
    """The memory of a raw array, or of its elements that a subscript names, and their bytes there; None for all."""
    memory, whole = _memory(array)
    return memory, None if whole and key is None else _spans(array, key)


def _place(array: Array) -> tuple[_Memory, list[Span] | None]:
    """The memory of a raw array, and its bytes there; None for all. It is found once for a view that stays."""
    key, shared = id(array), _SHARED[0]
    known = _VIEWS.get(key)
    if known is not None and known[1] == shared and known[0]() is array:
        return known[2:]
    memory, spans = _locate(array)
    if array.__class__ is ndarray and array.base is not None:
        _VIEWS[key] = weakref.ref(array, lambda _: _VIEWS.pop(key, None)), shared, memory, spans
    return memory, spans


def _owner(array: Any) -> ndarray | None:
    """The array of NumPy that owns the memory of an array; None if it is told apart by address."""
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
    """Tell an array's memory apart by address from now on: it is handed to others, from whom it may come back as an
    array that knows nothing of this one."""
    owner = _owner(array)
    if owner is None:
        return
    memory, _ = _memory(owner)
    with _LOCK:
        if memory is _BY_ADDRESS or memory.shared:
            return
        memory.shared = True
        _SHARED[0] += 1
        _BY_ADDRESS.wrote([], max(_BY_ADDRESS.last, memory.last, key=_number))
        known = memory.stretches or _Stretches(memory.last)
        for span in _spans(owner):
            for part, write in known.within(span):
                _BY_ADDRESS.stretches.wrote(part, write)  # type: ignore[union-attr]  # since it was written just now


# ------------------------------------------------------------------------------------------------------------- writes


class _Holder:
    __slots__ = ("_data",)
    _data: ndarray


_holder = _Holder()
_holder._data = np.empty(0)


def _references(holder: _Holder) -> int:
    data = holder._data
    return getrefcount(data)


#: How many references to a raw array are counted in a function with a variable for it, where its holder alone has it.
ALONE = _references(_holder)


def held(holder: Any, known: int = 0) -> bool:
    """Whether a write to an array is to be noted: somebody may ask, and somebody else has its raw array or a view of
    it, as a tape node, a plan or another array has.

    Parameters
    ----------
    holder : NDArray
        The array; it has its raw array in ``_data``.
    known : int
        How many references to the raw array the caller has itself; a view of it is one.
    """
    if not WATCHED:
        return False
    data = holder._data
    return getrefcount(data) - known != ALONE or data.__class__ is not ndarray or data.base is not None


def wrote(array: Array, key: Any = None) -> None:
    """Note that a raw array was written, or those of its elements that a subscript names."""
    if not WATCHED or not _is_memory(array):
        return
    lasting = key is None  # and not a view that is made here
    if not lasting and _is_basic(key):
        array, key = _view(array, key), None
    if array.size:
        memory, spans = _place(array) if lasting else _locate(array, key)
        _advance()
        frame = user_frame(_getframe(1))
        write = LATEST[0], None if frame is None else (frame.f_code, frame.f_lasti)
        with _LOCK:
            memory.wrote(spans, write)


def wrote_held(holders: Iterable[Any]) -> None:
    """Note that arrays were written, of which the caller has the raw ones, too: those whose writes are to be noted."""
    if WATCHED and (arrays := [holder._data for holder in holders if held(holder, 1)]):
        Targets(arrays).wrote()


class Targets:
    """Raw arrays that are always written together, as by the steps of a plan.

    Examples
    --------
    >>> arrays = np.zeros(2), np.zeros(3)
    >>> targets, since = Targets(arrays), now()
    >>> targets.wrote()
    >>> [written(array, since) is None for array in (*arrays, np.zeros(2))]
    [False, False, True]
    """

    __slots__ = ("_arrays", "_known", "_wholes", "_parts")

    def __init__(self, arrays: Iterable[Array]):
        self._arrays = [array for array in arrays if array.size]  # held, so that what is known of them stays true
        self._known = -1
        self._wholes: list[_Memory] = []
        self._parts: list[tuple[_Memory, list[Span]]] = []

    def wrote(self) -> None:
        """Note that all of them were written."""
        if self._known != _SHARED[0]:
            self._find()
        _advance()
        frame = user_frame(_getframe(2))
        write = LATEST[0], None if frame is None else (frame.f_code, frame.f_lasti)
        for memory in self._wholes:
            memory.last, memory.stretches = write, None
        if self._parts:
            with _LOCK:
                for memory, spans in self._parts:
                    memory.wrote(spans, write)

    def _find(self) -> None:
        self._known = _SHARED[0]
        found = [_place(array) for array in self._arrays]
        self._wholes = [memory for memory, spans in found if spans is None]
        self._parts = [(memory, spans) for memory, spans in found if spans is not None]


def unchanged(array: ndarray, source: Any) -> bool:
    """Whether an array of the host has all elements already, to the bit, that are about to be assigned to it.

    Examples
    --------
    >>> unchanged(np.zeros(2), 0), unchanged(np.zeros(2), -0.0)
    (True, False)
    """
    try:
        source = np.broadcast_to(source, array.shape)
    except ValueError:  # the assignment says what does not fit
        return False
    first = (0,) * array.ndim
    if not array.size or array[first].tobytes() != source[first].astype(array.dtype).tobytes():
        return not array.size
    old, new = np.ascontiguousarray(array), np.ascontiguousarray(source.astype(array.dtype))
    return np.array_equal(old.reshape(-1).view(np.uint8), new.reshape(-1).view(np.uint8))


# ---------------------------------------------------------------------------------------------------------- questions


def now() -> int:
    """The number to ask ``written`` with, later, about writes from here on."""
    if not WATCHED:
        WATCHED.append(True)
    return tick()


def written(array: Array, since: int) -> Write | None:
    """The last write to numbers of a raw array, if there was one after the number ``since``.

    The caller must have held the raw array, or a view of it, all the time: writes to an array that nobody else
    holds are not noted. An array that was given another raw array is not seen here.

    Examples
    --------
    >>> array, since = np.zeros(4), now()
    >>> wrote(array, slice(2, 4))
    >>> written(array, since) is None, written(array[:2], since) is None
    (False, True)
    """
    owner = _owner(array)
    memory = _BY_ADDRESS if owner is None else _OWNED.get(id(owner))
    if memory is None or memory.owner() is not owner:
        return None
    if memory.shared:
        memory = _BY_ADDRESS
    if memory.last[0] <= since:
        return None
    if memory.stretches is None:
        return memory.last
    with _LOCK:
        write = memory.written(_spans(array))
    return write if write[0] > since else None


def stays(array: Array, since: int) -> bool:
    """Whether a raw array has the numbers of ``since``: none was written, and nobody writes there without a note, as
    another library may where the memory is shared with it. For whoever asks ``written`` holds.

    Examples
    --------
    >>> array, since = np.zeros(4), now()
    >>> before = stays(array, since)
    >>> share(array)
    >>> before, stays(array, since)
    (True, False)
    """
    owner = _owner(array)
    if owner is None:
        return False
    memory = _OWNED.get(id(owner))
    if memory is None or memory.owner() is not owner:
        return True
    return not memory.shared and written(array, since) is None


# ------------------------------------------------------------------------------------------------------------- places


def _is_memory(array: Any) -> bool:
    """Whether an array has numbers in memory; one that stands for numbers while a function is traced has none."""
    kind = type(array)  # whose attributes are not computed to be seen
    return isinstance(array, ndarray) or hasattr(kind, "__cuda_array_interface__") or hasattr(
        kind, "__array_interface__")


def _is_basic(key: object) -> bool:
    """Whether a subscript names a view."""
    return all(part is None or part is Ellipsis or (isinstance(part, (int, slice, np.integer))
                                                    and not isinstance(part, bool))
               for part in (key if isinstance(key, tuple) else (key,)))


def _view(array: Array, key: Any) -> Array:
    """The view that a basic subscript names; NumPy gives a number, and no view, for a single element."""
    part = array[key]
    if hasattr(part, "flags") and not isinstance(part, np.generic):
        return part
    return array[(*key, Ellipsis) if isinstance(key, tuple) else (key, Ellipsis)]


def _spans(array: Array, key: Any = None) -> list[Span]:
    """Stretches of memory that an array covers, or its elements that a subscript names; one stretch around all of them
    where there are too many."""
    if not array.size:
        return []
    first, size, on_host = address_of(array), array.itemsize, isinstance(array, ndarray)
    if array.flags.c_contiguous and (key is None or not on_host):
        return [(first, first + array.nbytes)]
    # Rows whose elements lie one behind the other are found as one.
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
