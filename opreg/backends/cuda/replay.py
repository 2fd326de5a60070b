"""Work captured as CUDA graphs, which one launch replays on the same memory.

A graph holds addresses and no references. So the captured functions, which hold their arrays, are stored with it, and
so is a memory pool that nothing else allocates from. Work is captured on a stream of its own, as CUDA requires; a graph
is launched on the stream that is current then, after the earlier work on that stream.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opreg.core.chosen import override
from opreg.core.steps import PlainStep, Recorder, RefusedError
from opreg.typing import ArrayModule

__all__ = ["CudaRecorder", "Replay", "recorder"]


_SPOILT = "cudaErrorStreamCaptureInvalidated"


class Replay(PlainStep):
    """Functions captured as a graph, with references to everything that the graph uses."""

    __slots__ = ("graph", "functions", "pool")

    def __init__(self, graph: Any, functions: Sequence[Callable[[], object]], pool: Any):
        self.graph, self.functions, self.pool = graph, tuple(functions), pool

    def __call__(self) -> None:
        self.graph.launch()


class _Source:
    """Allocates blocks for the pool of graphs by the caller's allocator: pools, limits and kinds of memory that were
    chosen by ``cupy.cuda.set_allocator`` apply to graphs, too.

    Blocks are allocated on the default stream, which does not capture: on the capturing stream, an asynchronous pool
    would make the allocation a part of the graph.
    """

    def __init__(self, cuda: Any):
        self._cuda = cuda
        self.allocator: Any = None  # the allocator of the caller, while the work allocates memory

    def __call__(self, size: int) -> Any:
        with self._cuda.Stream(null=True) as stream:
            memory = self.allocator(size)
            if not stream.done:
                stream.synchronize()
        return memory


class CudaRecorder(Recorder):
    """Captures the work of one segment of a plan, on one device."""

    def __init__(self, xp: ArrayModule, device: int):
        self._cuda, self._device = xp.cuda, device
        with xp.cuda.Device(device):
            self._stream, self._source = xp.cuda.Stream(non_blocking=True), _Source(xp.cuda)
            self._pool = xp.cuda.MemoryPool(self._source)

    @property
    def nbytes(self) -> int:
        return int(self._pool.total_bytes())

    @contextlib.contextmanager
    def warm_up(self) -> Iterator[None]:
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
        """Allocate arrays made in this context from the memory pool of the graphs; contexts may be nested."""
        source = self._source
        with (override(source, allocator=source.allocator or self._cuda.get_allocator()),
              self._cuda.using_allocator(self._pool.malloc)):
            yield

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
                        # If an earlier function has invalidated the capture, the next launch reports it and is not the
                        # cause.
                        refused = RefusedError(_error_line(error), None if _SPOILT in str(error) else number)
                        break
            finally:  # also after an error, since a capturing stream runs no other work
                try:
                    graph = stream.end_capture()
                except Exception as error:  # an invalidated capture raises an error here, but ends
                    refused = refused or RefusedError(_error_line(error))
        if refused is not None:
            raise refused
        return Replay(graph, functions, self._pool)


def _error_line(error: Exception) -> str:
    """The text of an exception in one line."""
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}".rstrip(": ")


def recorder(xp: ArrayModule, device: int) -> CudaRecorder | None:
    """The recorder of a device's CUDA graphs; None for an array module without streams."""
    cuda = getattr(xp, "cuda", None)
    return None if cuda is None or not hasattr(cuda, "Stream") else CudaRecorder(xp, device)
