"""The machine under the stand-in for CuPy: memory in pools, streams, events, captured graphs, pinned memory.

Names and signatures are those of ``cupy.cuda``. Work runs at once, in the order of the calls. Mistakes that would show
only if a GPU ran it later, or in another order, are detected:

- Work that uses memory which another stream wrote, without an event that orders the two, is refused.
- While a stream captures, work is recorded, and the memory that it changed is restored when the capture ends. Calls
  that CuPy refuses there raise CuPy's errors; a synchronisation invalidates the capture.
- There are two devices with their own streams; work runs on the device that was entered, and each array has a device.
- Arrays use blocks of memory pools, which are reused once they are free, as on a device. A graph knows addresses
  and holds nothing: where a replay meets a block that was freed, or that somebody else has, it is refused.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

__all__ = ["CUDARuntimeError", "Cuda", "Device", "Event", "Graph", "MachineError", "MemoryPool", "MemoryPointer",
           "Stream", "MACHINE", "memory_of"]

_ROUNDED = 512  # size and alignment of blocks in bytes, as in CuPy

_SYNCHRONOUS = "the current stream is capturing, so synchronous API calls are disallowed"
_WORDS = {
    "cudaErrorStreamCaptureUnsupported": "operation not permitted when stream is capturing",
    "cudaErrorStreamCaptureInvalidated": "operation failed due to a previous error during capture",
    "cudaErrorStreamCaptureImplicit": "operation would make the legacy stream depend on a capturing blocking stream",
    "cudaErrorInvalidDevice": "invalid device ordinal",
    "cudaErrorIllegalState": "the operation cannot be performed in the present state",
}

#: Functions that go through a library which CuPy refuses while a stream captures.
_LIBRARIES = {name: library for library, names in {
    "cuBLAS": "dot vdot inner tensordot matmul einsum linalg.matrix_power",
    "cuSOLVER": "linalg.cholesky linalg.det linalg.eigh linalg.eigvalsh linalg.inv linalg.matrix_rank linalg.pinv "
                "linalg.qr linalg.slogdet linalg.solve linalg.svd",
    "cuRAND": "generator",
}.items() for name in names.split()}

#: Functions that wait for the device, for the shape of what they return.
_WAITING = frozenset(("nonzero", "flatnonzero", "argwhere", "unique", "bincount", "extract", "compress", "mask"))


class MachineError(AssertionError):
    """An error that a real device would not report."""


class OutOfMemoryError(MemoryError):
    """The error of a pool that has reached its limit."""


class CUDARuntimeError(RuntimeError):
    """Error of the runtime, with its status."""

    def __init__(self, status: str):
        super().__init__(f"{status}: {_WORDS[status]}")
        self.status = status


# --------------------------------------------------------------------------------------------------- memory


class _Block:
    """Memory of a pool.

    Attributes
    ----------
    number : int
        Number of times that it was given out.
    used, captured : bool
        Whether it is in use, and whether it was given out during a capture.
    pointer : weak reference
        The pointer that holds it.
    written, read : dict by stream
        Times of the last accesses of streams.
    """

    __slots__ = ("buffer", "size", "pool", "arena", "number", "used", "captured", "pointer", "written", "read",
                 "__weakref__")

    def __init__(self, size: int, pool: MemoryPool, arena: int, source: MemoryPointer | None = None):
        raw = np.empty(size + _ROUNDED, np.uint8) if source is None else np.asarray(source)
        self.buffer = raw[-raw.ctypes.data % _ROUNDED:][:size]
        self.size, self.pool, self.arena = size, weakref.ref(pool), arena
        self.number, self.used, self.captured = 0, False, False
        self.written: tuple[int, int] = (0, 0)
        self.read: dict[int, int] = {}


class MemoryPointer:
    """A pointer that keeps its block until it is freed."""

    def __init__(self, block: _Block, size: int):
        self.block, self.size, self.ptr = block, size, block.buffer.ctypes.data
        block.number, block.used = block.number + 1, True
        block.captured, block.pointer = MACHINE.capturing() is not None, weakref.ref(self)
        block.buffer.fill(255)  # NaN in every floating dtype
        self.__array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (self.ptr, False), "version": 3}

    def __del__(self) -> None:
        block = self.block
        block.used = False
        block.buffer.fill(255)
        pool = block.pool()
        if pool is not None:
            pool._free[block.arena][block.size].append(block)


class MemoryPool:
    """A pool that reuses blocks for the stream that used them; new blocks come from another allocator, if there is
    one."""

    def __init__(self, allocator: Any = None):
        self._allocator, self._limit = allocator, 0
        #: Blocks that are not in use, by stream and size; of one size the block that was freed first is used first.
        self._free: dict[int, dict[int, deque[_Block]]] = defaultdict(lambda: defaultdict(deque))
        self._blocks: list[_Block] = []

    def malloc(self, size: int) -> MemoryPointer:
        """A block of at least so many bytes."""
        rounded = max(_ROUNDED, -(-size // _ROUNDED) * _ROUNDED)
        arena = MACHINE.stream().number
        free = self._free[arena]
        sizes = [rounded] if free[rounded] else [
            size for size, blocks in list(free.items()) if blocks and rounded <= size <= 2 * rounded]
        if sizes:
            block = free[min(sizes)].popleft()
        else:
            if self._limit and self.total_bytes() + rounded > self._limit:
                raise OutOfMemoryError(f"Out of memory allocating {rounded:,} bytes (allocated so far: "
                                       f"{self.total_bytes():,} bytes, limit set to: {self._limit:,} bytes).")
            block = _Block(rounded, self, arena, None if self._allocator is None else self._allocator(rounded))
            self._blocks.append(block)
            MACHINE.blocks.add(block)
        return MemoryPointer(block, size)

    def total_bytes(self) -> int:
        """Bytes of all blocks."""
        return sum(block.size for block in self._blocks)

    def set_limit(self, size: int = 0) -> None:
        """Sets the largest number of bytes; None for all memory."""
        self._limit = size

    def used_bytes(self) -> int:
        """Bytes of blocks in use."""
        return sum(block.size for block in self._blocks if block.used)

    def free_all_blocks(self, stream: Any = None) -> None:
        """Frees blocks that are not in use."""
        self._free.clear()
        self._blocks = [block for block in self._blocks if block.used]


def memory_of(array: np.ndarray) -> MemoryPointer | None:
    """The device memory of an array, or of the array of which it is a view; None for memory of the host."""
    while True:
        base = array.base
        if isinstance(base, MemoryPointer):
            return base
        base = base if isinstance(base, np.ndarray) else getattr(base, "base", None)
        if not isinstance(base, np.ndarray):
            return None
        array = base


class PinnedMemoryPointer(bytearray):
    """Memory of the host that a device copies from by itself.

    Attributes
    ----------
    busy : (stream, time)
        The last copy.
    """

    busy = (0, 0)


class _Address(NamedTuple):
    """Position of an array in memory, as a captured graph keeps it."""

    block: _Block
    number: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype

    def array(self) -> np.ndarray:
        """The array that is now at this position."""
        block = self.block
        if not (block.used and block.number == self.number):
            pool = block.pool()
            if pool is None:
                raise MachineError("a graph is launched whose pool of memory is gone")
            if pool is MACHINE.pool:
                raise MachineError("a graph touches memory that was freed: it was given out by the default pool, and "
                                   "others have it or will have it")
            if block.used and not block.captured:
                raise MachineError("a graph touches memory that others have now")
        return np.ndarray(self.shape, self.dtype, block.buffer, self.offset, self.strides)


def _mapped(function: Callable[[np.ndarray], Any], value: Any, kind: type = np.ndarray) -> Any:
    """A nested value with a function applied to its arrays, or to its parts of another kind."""
    if isinstance(value, kind):
        return function(value)  # type: ignore[arg-type]
    if isinstance(value, (tuple, list)):
        return (list if isinstance(value, list) else tuple)([_mapped(function, each, kind) for each in value])
    if type(value) is dict:
        return {key: _mapped(function, each, kind) for key, each in value.items()}
    return value


def _address(array: np.ndarray) -> Any:
    memory = memory_of(array)
    if memory is None:
        return array
    return _Address(memory.block, memory.block.number, array.ctypes.data - memory.ptr, array.shape, array.strides,
                    array.dtype)


def _found(value: Any, kind: type = np.ndarray) -> list[Any]:
    """All parts of a kind in a nested value."""
    if isinstance(value, kind):
        return [value]
    if type(value) is dict:
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [part for each in value for part in _found(each, kind)]


def _blocks(value: Any) -> list[_Block]:
    """The blocks of the arrays in a nested value."""
    found, waiting = [], [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, np.ndarray):
            memory = memory_of(each)
            if memory is not None:
                found.append(memory.block)
        elif isinstance(each, (tuple, list)):
            waiting += each
        elif type(each) is dict:
            waiting += each.values()
    return found


# ----------------------------------------------------------------------------------------- streams and graphs


class _Node:
    """Recorded work: a function, the addresses of its arrays, and its other arguments."""

    def __init__(self, name: str, function: Callable, given: tuple[Any, dict[str, Any]], results: Any):
        self.name, self.function, self.given, self.results = name, function, given, results

    def run(self) -> None:
        args, keywords = _mapped(_Address.array, self.given, _Address)
        results = _mapped(_Address.array, self.results, _Address)
        read, written = _found(self.given, _Address), _found(self.results, _Address)
        written += _found(self.given[1].get("out"), _Address) if written else read
        MACHINE.order([each.block for each in read], [each.block for each in written])
        for target, fresh in zip(_found(results), _found(_as_arrays(self.function(*args, **keywords)))):
            if fresh.ctypes.data != target.ctypes.data or fresh.strides != target.strides:
                target[...] = fresh


class Graph:
    """A captured graph; ``nodes`` are the names of its work."""

    def __init__(self, nodes: Sequence[_Node]):
        self._nodes = list(nodes)
        self.nodes = [node.name for node in nodes]

    def launch(self, stream: Stream | None = None) -> None:
        """Runs the graph on a stream, by default the current one."""
        with stream or contextlib.nullcontext():
            capture = MACHINE.capturing()
            if capture is not None:
                capture.spoil("a graph launched inside of a capture is not modelled")
            MACHINE.launches += 1
            for node in self._nodes:
                node.run()

    def upload(self, stream: Stream | None = None) -> None:
        """Copies the graph to the device before its first launch."""


class _Capture:
    """Capture of a stream: the work that it records."""

    def __init__(self) -> None:
        self.nodes: list[_Node] = []
        self.valid = True
        self.before = {block: (block.number, block.buffer.copy()) for block in MACHINE.blocks if block.used}

    def spoil(self, what: str = "") -> None:
        """Ends the capture by an operation that is not permitted."""
        self.valid = False
        if what:
            raise MachineError(what)
        raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")

    def note(self, name: str, function: Callable, args: tuple, keywords: dict[str, Any]) -> Any:
        """Records work. It also runs now, to find the shapes of results; the end of the capture restores the memory."""
        if not self.valid:
            raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated")
        if name in _LIBRARIES:
            raise NotImplementedError(f"calling {_LIBRARIES[name]} API during stream capture is currently unsupported")
        if name in _WAITING or (name == "where" and len(args) == 1):
            raise RuntimeError(_SYNCHRONOUS)
        given = _mapped(_address, (args, keywords))
        results = MACHINE.owned(function(*args, **keywords))
        self.nodes.append(_Node(name, function, given, _mapped(_address, results)))
        return results

    def end(self) -> Graph:
        """Restores the memory of before the capture."""
        for block in MACHINE.blocks:
            number, content = self.before.get(block, (0, None))
            if content is not None and block.number == number and block.used:
                block.buffer[...] = content
            else:
                block.buffer.fill(255)
        if not self.valid:
            raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated")
        return Graph(self.nodes)


class Stream:
    """A queue of work of the current device. ``clock`` has the work that is done before its next work, by stream
    number."""

    null: Stream
    _numbers = itertools.count(1000)

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: Any = None):
        self.device_id = MACHINE.device
        self.number = self.device_id if null else next(self._numbers)
        self.ptr = 0 if null else self.number
        self.is_non_blocking = non_blocking
        self.clock: dict[int, int] = {}
        self.capture: _Capture | None = None
        MACHINE.streams.add(self)
        if not non_blocking:
            MACHINE.blocking.add(self)

    def __enter__(self) -> Stream:
        MACHINE.current(self.device_id).append(self)
        return self

    def __exit__(self, *_: object) -> None:
        MACHINE.current(self.device_id).pop()

    def _host_waits(self) -> None:
        if self.capture is not None:
            self.capture.spoil()
        _merge(MACHINE.host, self.clock)
        MACHINE.arrive()

    @property
    def done(self) -> bool:
        """Whether all work is done. A query invalidates a capture, without an error."""
        with contextlib.suppress(CUDARuntimeError):
            self._host_waits()
        return True

    def synchronize(self) -> None:
        """Waits for all work of the stream."""
        MACHINE.synchronisations += 1
        self._host_waits()

    def record(self, event: Event | None = None) -> Event:
        """Records the position of the stream in an event."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Lets the next work wait for an event."""
        if self.capture is not None or event.capture is not None:
            (self.capture or event.capture).spoil("streams that join a capture are not modelled")  # type: ignore
        _merge(self.clock, event.clock)

    def begin_capture(self, mode: int | None = None) -> None:
        """Records work from now on, and does not run it."""
        if self.ptr == 0:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if self.capture is not None:
            raise CUDARuntimeError("cudaErrorIllegalState")
        self.capture = _Capture()

    def end_capture(self) -> Graph:
        """The captured work."""
        if self.capture is None:
            raise CUDARuntimeError("cudaErrorIllegalState")
        capture, self.capture = self.capture, None
        return capture.end()

    def is_capturing(self) -> bool:
        """Whether the stream records work."""
        return self.capture is not None


def _merge(clock: dict[int, int], other: dict[int, int]) -> None:
    for number, time in other.items():
        if time > clock.get(number, 0):
            clock[number] = time


class Event:
    """A place in the work of a stream."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False):
        self.clock: dict[int, int] = {}
        self.capture: _Capture | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Sets the event to the current position of a stream."""
        stream = stream or MACHINE.stream()
        MACHINE.implicit(stream)
        self.clock, self.capture = dict(stream.clock), stream.capture

    def synchronize(self) -> None:
        """Waits for the event."""
        MACHINE.synchronisations += 1
        if self.capture is not None:
            self.capture.spoil()
        _merge(MACHINE.host, self.clock)
        MACHINE.arrive()

    @property
    def done(self) -> bool:
        """Whether the stream has passed the event."""
        self.synchronize()
        return True


class _Thread(threading.local):
    def __init__(self) -> None:
        self.device, self.before = 0, list[int]()
        self.streams: dict[int, list[Stream]] = {}
        self.allocators: list[Callable[[int], MemoryPointer] | None] = [None]


class Machine:
    """The state of all devices.

    Attributes
    ----------
    launches : int
        Number of launches by the host; a graph counts as one.
    synchronisations : int
        Number of times that the host has waited.
    pool : MemoryPool
        The default pool.
    host : dict by stream
        Last work of each stream for which the host has waited.
    shown : dict by address
        The devices of arrays whose ``__cuda_array_interface__`` was read.
    """

    def __init__(self) -> None:
        self.launches = self.synchronisations = 0
        self.blocks: weakref.WeakSet[_Block] = weakref.WeakSet()
        self.streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self.blocking: weakref.WeakSet[Stream] = weakref.WeakSet()  # the default stream waits for them
        self.pool = MemoryPool()
        self.everywhere: Callable[[int], MemoryPointer] | None = None
        self.host: dict[int, int] = {}
        self.shown: dict[int, int] = {}
        self.coming: list[tuple[int, int, np.ndarray, np.ndarray]] = []
        self._time = itertools.count(1)

    @functools.cached_property
    def _thread(self) -> _Thread:
        return _Thread()

    @property
    def device(self) -> int:
        """The current device."""
        return self._thread.device

    def current(self, device: int) -> list[Stream]:
        """Streams of a device, in the order in which they were entered."""
        streams = self._thread.streams
        if device not in streams:
            with Device(device):
                streams[device] = [_NULLS.setdefault(device, Stream(null=True))]
        return streams[device]

    def stream(self) -> Stream:
        """The current stream of the current device."""
        return self.current(self.device)[-1]

    def capturing(self) -> _Capture | None:
        """Capture of the current stream; None if it records nothing."""
        return self.stream().capture

    def implicit(self, stream: Stream) -> None:
        """Orders the default stream of a device and its blocking streams, which wait for each other."""
        if stream.is_non_blocking:
            return
        for other in self.blocking:
            if other is not stream and other.device_id == stream.device_id and (stream.ptr == 0 or other.ptr == 0):
                if other.capture is not None:
                    raise CUDARuntimeError("cudaErrorStreamCaptureImplicit")
                _merge(stream.clock, other.clock)

    def order(self, read: Sequence[_Block], written: Sequence[_Block]) -> None:
        """Checks that the current stream comes after other streams' accesses to the same memory; raises an error
        otherwise."""
        stream = self.stream()
        self.implicit(stream)
        _merge(stream.clock, self.host)
        now = stream.clock[stream.number] = next(self._time)
        changed = set(written)
        for block in changed.union(read):
            writes = block in changed
            for other, time in [block.written, *(block.read.items() if writes else ())]:
                if time > stream.clock.get(other, 0):
                    raise MachineError(f"stream {stream.number} {'writes' if writes else 'reads'} memory that stream "
                                       f"{other} {'wrote' if (other, time) == block.written else 'read'}, and nothing "
                                       "says in which order")
        for block in read:
            block.read[stream.number] = now
        for block in written:
            block.written = stream.number, now

    def synchronize(self, device: int | None = None) -> None:
        """Waits for all streams, or for those of a device."""
        self.synchronisations += 1
        for stream in list(self.streams):
            if device in (None, stream.device_id):
                stream._host_waits()

    def allocator(self) -> Callable[[int], MemoryPointer]:
        """Allocator of the thread, or else of all threads."""
        return self._thread.allocators[-1] or self.everywhere or self.pool.malloc

    def owned(self, value: Any) -> Any:
        """Results of NumPy with every array in device memory."""
        return _mapped(self._owned, _as_arrays(value))

    def _owned(self, array: np.ndarray) -> np.ndarray:
        if memory_of(array) is not None:
            return array
        allocator = self.allocator()
        raw = np.asarray(allocator(max(array.nbytes, 1)))
        made = raw[:array.nbytes].view(array.dtype).reshape(array.shape)
        made[...] = array
        return made

    def run(self, name: str, function: Callable, args: tuple, keywords: dict[str, Any]) -> Any:
        """Runs a NumPy function on arrays in device memory; its results are in device memory, too."""
        capture = self.capturing()
        if capture is not None:
            return capture.note(name, function, args, keywords)
        self.launches += 1
        results = self.owned(function(*args, **keywords))
        given = _blocks((args, keywords))
        changed = given if results is None else _blocks((results, keywords.get("out")))
        self.order(given, _blocks(args[0]) if name == "setitem" else changed)
        return results

    def memory_at(self, address: int) -> np.ndarray:
        """Memory from an address to the end of its block, for functions that get only addresses."""
        for block in self.blocks:
            start = block.buffer.ctypes.data
            if block.used and start <= address < start + block.size:
                return np.asarray(block.pointer())[address - start:]
        raise MachineError("an address at which nobody has memory")

    def host_copies(self) -> None:
        """Checks a copy between host and device, which CuPy refuses while the current stream captures."""
        if self.capturing() is not None:
            raise RuntimeError(_SYNCHRONOUS)

    def to_host(self, array: np.ndarray) -> np.ndarray:
        """A copy on the host, after the work of the current stream."""
        self.host_copies()
        self.order(_blocks(array), [])
        self.stream().synchronize()
        return array.copy()

    def copied_to(self, out: np.ndarray, array: np.ndarray, blocking: bool) -> np.ndarray:
        """Copies to an array of the host. A copy to pinned memory that does not block arrives when the host has waited
        for the stream; until then the array holds NaN."""
        if blocking or not isinstance(_owner(out), PinnedMemoryPointer):
            out[...] = self.to_host(array)
            return out
        self.host_copies()
        self.order(_blocks(array), [])
        stream = self.stream()
        memory = _owner(out)
        memory.busy = stream.number, stream.clock[stream.number]
        self.coming.append((*memory.busy, out, array.copy()))
        out.reshape(-1).view(np.uint8)[...] = 255
        return out

    def arrive(self) -> None:
        """Finishes copies for which the host has waited."""
        there = [each for each in self.coming if each[1] <= self.host.get(each[0], 0)]
        self.coming = [each for each in self.coming if each[1] > self.host.get(each[0], 0)]
        for _, _, out, numbers in there:
            out[...] = numbers

    def to_device(self, array: np.ndarray, target: np.ndarray | None = None) -> np.ndarray:
        """A copy in device memory; the device reads pinned memory only when it reaches the copy."""
        self.host_copies()
        made = self.owned(array.copy()) if target is None else target
        if target is not None:
            target[...] = array
        self.order([], _blocks(made))
        memory = _owner(array)
        if isinstance(memory, PinnedMemoryPointer):
            stream = self.stream()
            if memory.busy[1] > self.host.get(memory.busy[0], 0):
                raise MachineError("pinned memory was written while a copy from it may not have been done")
            memory.busy = stream.number, stream.clock[stream.number]
        return made


def _owner(array: np.ndarray) -> Any:
    """The array that owns the memory of a host array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.base.obj if isinstance(array.base, memoryview) else array.base


def _as_arrays(value: Any) -> Any:
    """Numbers of NumPy as arrays."""
    return _mapped(np.asarray, value, np.generic)


MACHINE: Machine = None  # type: ignore[assignment]  # streams are entered in it
MACHINE = Machine()
_NULLS: dict[int, Stream] = {}  # the default stream of each device


class Device:
    """A device; arrays and results are on the device that was entered. It has one processor, so that grids take several
    steps, unless a test sets more."""

    count = 2
    processors = 1
    compute_capability = "90"

    def __init__(self, device: Any = None):
        self.id = MACHINE.device if device is None else int(device)
        self.attributes = {"MultiProcessorCount": self.processors}
        if not 0 <= self.id < self.count:
            raise CUDARuntimeError("cudaErrorInvalidDevice")

    def __enter__(self) -> Device:
        thread = MACHINE._thread
        thread.before.append(thread.device)
        thread.device = self.id
        return self

    def __exit__(self, *_: object) -> None:
        MACHINE._thread.device = MACHINE._thread.before.pop()

    def use(self) -> None:
        """Makes the device current, until another one is."""
        MACHINE._thread.device = self.id

    def synchronize(self) -> None:
        """Waits for all streams of the device."""
        MACHINE.synchronize(self.id)

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"


@contextlib.contextmanager
def _using_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> Iterator[None]:
    allocators = MACHINE._thread.allocators
    allocators.append(allocator)
    try:
        yield
    finally:
        allocators.pop()


def _set_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> None:
    MACHINE.everywhere = allocator


def _alloc_pinned_memory(size: int) -> PinnedMemoryPointer:
    capture = MACHINE.capturing()
    if capture is not None:
        capture.spoil()
    return PinnedMemoryPointer(size)


class _Runtime:
    CUDARuntimeError = CUDARuntimeError
    streamCaptureModeGlobal, streamCaptureModeThreadLocal, streamCaptureModeRelaxed = range(3)

    @staticmethod
    def getDeviceCount() -> int:
        """Number of devices."""
        return Device.count

    @staticmethod
    def pointerGetAttributes(address: int) -> SimpleNamespace:
        """Device of the memory at an address, which an array has shown before."""
        return SimpleNamespace(device=MACHINE.shown[address])

    @staticmethod
    def getDeviceProperties(device: int) -> dict[str, Any]:
        """Properties of a device; the stand-in has only a name."""
        return {"name": b"a stand-in"}


def _nothing(*args: Any) -> None:
    """NVTX without a profiler does nothing."""


class Cuda:
    """The module ``cupy.cuda``."""

    nvtx = SimpleNamespace(available=True, RangePush=_nothing, RangePop=_nothing)

    Device, Event, Graph, MemoryPool, Stream, runtime = Device, Event, Graph, MemoryPool, Stream, _Runtime
    using_allocator, set_allocator = staticmethod(_using_allocator), staticmethod(_set_allocator)
    alloc_pinned_memory = staticmethod(_alloc_pinned_memory)

    @staticmethod
    def get_allocator() -> Callable[[int], MemoryPointer]:
        """Function that allocates memory now."""
        return MACHINE.allocator()

    @staticmethod
    def get_current_stream(device_id: int = -1) -> Stream:
        """The stream that was entered last, of the current device or of a given one."""
        return MACHINE.current(MACHINE.device if device_id < 0 else device_id)[-1]


Stream.null = MACHINE.stream()
