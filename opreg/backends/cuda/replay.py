"""Work captured as CUDA graphs, which one launch replays on the same memory.

A graph knows addresses and keeps nothing alive, so what it was captured from is kept beside it: the functions, which
hold their arrays, and a pool of memory that nobody else takes from. Work is captured on a stream of its own, as CUDA
demands; a graph is launched on the stream that is current then, behind what was asked of that before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opreg.core.steps import PlainStep, Recorder, RefusedError
from opreg.typing import ArrayModule

__all__ = ["CudaRecorder", "Replay", "recorder"]


_SPOILT = "cudaErrorStreamCaptureInvalidated"


class Replay(PlainStep):
    """Functions as a graph, with what the graph needs alive."""

    __slots__ = ("graph", "functions", "pool")

    def __init__(self, graph: Any, functions: Sequence[Callable[[], object]], pool: Any):
        self.graph, self.functions, self.pool = graph, tuple(functions), pool

    def __call__(self) -> None:
        self.graph.launch()


class _Source:
    """Blocks for the pool of graphs, from the allocator that the caller has: pools, limits and kinds of memory that
    were chosen by ``cupy.cuda.set_allocator`` hold for graphs, too.

    Blocks are asked for on the default stream, which does not capture: an asynchronous pool would have the allocation
    become a part of the graph.
    """

    def __init__(self, cuda: Any):
        self._cuda = cuda
        self.allocator: Any = None  # while work makes memory, that of its caller

    def __call__(self, size: int) -> Any:
        with self._cuda.Stream(null=True) as stream:
            found = self.allocator(size)
            if not stream.done:
                stream.synchronize()
        return found


class CudaRecorder(Recorder):
    """Captures for one segment of a plan, on one device."""

    def __init__(self, xp: ArrayModule, device: int):
        self._cuda, self._device = xp.cuda, device
        with xp.cuda.Device(device):
            self._stream, self._source = xp.cuda.Stream(non_blocking=True), _Source(xp.cuda)
            self._pool = xp.cuda.MemoryPool(self._source)

    @property
    def nbytes(self) -> int:
        return int(self._pool.total_bytes())

    @contextlib.contextmanager
    def warming(self) -> Iterator[None]:
        stream = self._stream
        with self._cuda.Device(self._device):
            caller = self._cuda.get_current_stream()
            stream.wait_event(caller.record())
            try:
                with stream, self._memory():
                    yield
            finally:
                caller.wait_event(stream.record())

    @contextlib.contextmanager
    def _memory(self) -> Iterator[None]:
        """Arrays that are made inside lie in the memory pool of the graphs; contexts may be nested."""
        source, around = self._source, self._source.allocator
        source.allocator = around or self._cuda.get_allocator()
        try:
            with self._cuda.using_allocator(self._pool.malloc):
                yield
        finally:
            source.allocator = around

    def record(self, functions: Sequence[Callable[[], object]]) -> Replay:
        stream, refused, graph = self._stream, None, None
        with self._cuda.Device(self._device), stream, self._memory():
            stream.begin_capture()
            try:
                for number, function in enumerate(functions):
                    try:
                        function()
                    except MemoryError:
                        raise
                    except Exception as error:
                        # A capture that was spoilt before says so at the next launch, which is not to blame.
                        refused = RefusedError(_said(error), None if _SPOILT in str(error) else number)
                        break
            finally:  # whatever came: a stream that captures takes no other work
                try:
                    graph = stream.end_capture()
                except Exception as error:  # a spoilt capture ends with an error, and has ended
                    refused = refused or RefusedError(_said(error))
        if refused is not None:
            raise refused
        return Replay(graph, functions, self._pool)


def _said(error: Exception) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}".rstrip(": ")


def recorder(xp: ArrayModule, device: int) -> CudaRecorder | None:
    """The recorder of a device's CUDA graphs; None for an array module without streams."""
    cuda = getattr(xp, "cuda", None)
    return None if cuda is None or not hasattr(cuda, "Stream") else CudaRecorder(xp, device)
