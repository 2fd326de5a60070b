"""The machine under the stand-in for CuPy finds planted mistakes that would give wrong results on a device."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from opreg.core.array_module import backend
from tests.cuda.compiled import folder
from tests.cuda.device import Gpu, gpus
from tests.cuda.machine import (
    MACHINE,
    CUDARuntimeError,
    Event,
    Graph,
    MachineError,
    MemoryPool,
    PinnedMemoryPointer,
    Stream,
)

SYNCHRONOUS = "is capturing, so synchronous API calls are disallowed"


@pytest.fixture
def xp() -> Iterator[Gpu]:
    with gpus() as module:
        yield module
        MACHINE.synchronize()


@pytest.fixture
def stream() -> Stream:
    return Stream(non_blocking=True)


def on_device(numbers: Any) -> Any:
    return backend("gpu").asarray(np.asarray(numbers, np.float32))


def capture(stream: Stream, work: Callable[[], Any]) -> Graph:
    """Graph of some work, whose results are freed."""
    MACHINE.synchronize()
    with stream:
        stream.begin_capture()
        try:
            work()
        finally:
            graph = stream.end_capture()
    return graph


# --------------------------------------------------------------------------------------------------- capture


def test_captured_work_is_recorded_and_not_run(xp: Gpu, stream: Stream) -> None:
    x, y, rate = on_device([1, 2, 3]), on_device([0, 0, 0]), [2.0]

    def work() -> None:
        between = xp.multiply(x, rate[0])  # a number keeps its value from the capture
        xp.add(between, 1.0, out=y)
        y[0] = 7.0

    pool = MemoryPool()
    with xp.cuda.using_allocator(pool.malloc):
        graph = capture(stream, work)
    assert graph.nodes == ["multiply", "add", "setitem"]
    assert y.get().tolist() == [0, 0, 0]
    rate[0] = 100.0
    graph.launch()
    assert y.get().tolist() == [7, 5, 7]
    x.set(np.array([3, 4, 5], np.float32))
    before = MACHINE.launches
    graph.launch(stream := Stream())
    stream.synchronize()
    assert y.get().tolist() == [7, 9, 11] and MACHINE.launches == before + 1 and pool.total_bytes()


@pytest.mark.parametrize(("work", "error", "match"), [
    (lambda xp, a: a.get(), RuntimeError, SYNCHRONOUS),
    (lambda xp, a: on_device([1]), RuntimeError, SYNCHRONOUS),
    (lambda xp, a: a.set(np.zeros(2, np.float32)), RuntimeError, SYNCHRONOUS),
    (lambda xp, a: xp.nonzero(a), RuntimeError, SYNCHRONOUS),
    (lambda xp, a: xp.where(a), RuntimeError, SYNCHRONOUS),
    (lambda xp, a: a[a > 0], RuntimeError, SYNCHRONOUS),
    (lambda xp, a: xp.array([1.0, 2.0]), RuntimeError, SYNCHRONOUS),
    (lambda xp, a: xp.matmul(a, a), NotImplementedError, "cuBLAS"),
    (lambda xp, a: a.dot(a), NotImplementedError, "cuBLAS"),
    (lambda xp, a: xp.einsum("i,i->", a, a), NotImplementedError, "cuBLAS"),
    (lambda xp, a: xp.linalg.inv(a.reshape(1, 2)[:, :1]), NotImplementedError, "cuSOLVER"),
    (lambda xp, a: backend("gpu").generator(0).random(3), NotImplementedError, "cuRAND"),
], ids=lambda value: None if callable(value) else "")
def test_calls_that_cupy_refuses_leave_the_capture_valid(work: Any, error: type[Exception], match: str, xp: Gpu,
                                                         stream: Stream) -> None:
    a = on_device([1, 2])
    xp.add(a, 1.0)

    def refused() -> None:
        xp.add(a, 1.0, out=a)
        with pytest.raises(error, match=match):
            work(xp, a)

    assert capture(stream, refused).nodes[0] == "add" and a.get().tolist() == [1, 2]


@pytest.mark.parametrize(("work", "silent"), [
    (lambda cuda, stream: stream.synchronize(), False),
    (lambda cuda, stream: stream.done, True),
    (lambda cuda, stream: stream.record().synchronize(), False),
    (lambda cuda, stream: cuda.Device().synchronize(), False),
    (lambda cuda, stream: cuda.alloc_pinned_memory(8), False),
])
def test_waiting_invalidates_a_capture(work: Any, silent: bool, xp: Gpu, stream: Stream) -> None:
    a = on_device([1, 2])

    def waits() -> None:
        xp.add(a, 1.0, out=a)
        if silent:
            work(xp.cuda, stream)
        else:
            with pytest.raises(CUDARuntimeError, match="cudaErrorStreamCaptureUnsupported"):
                work(xp.cuda, stream)
        with pytest.raises(CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
            xp.add(a, 1.0, out=a)

    with pytest.raises(CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
        capture(stream, waits)
    assert not stream.is_capturing() and a.get().tolist() == [1, 2]


def test_some_streams_cannot_capture(xp: Gpu, stream: Stream) -> None:
    with pytest.raises(RuntimeError, match="cannot capture on the default"):
        Stream.null.begin_capture()
    with pytest.raises(CUDARuntimeError, match="IllegalState"):
        stream.end_capture()
    blocking, a = Stream(), on_device([1])
    blocking.begin_capture()
    with pytest.raises(CUDARuntimeError, match="cudaErrorStreamCaptureImplicit"):
        xp.add(a, 1.0)
    blocking.end_capture()
    stream.begin_capture()
    with pytest.raises(CUDARuntimeError, match="IllegalState"):
        stream.begin_capture()
    stream.end_capture()


# ---------------------------------------------------------------------------------------------------- memory


def test_a_graph_does_not_keep_memory_of_the_default_pool(xp: Gpu, stream: Stream) -> None:
    a = on_device([1, 2])
    graph = capture(stream, lambda: xp.add(a + 1.0, 1.0, out=a))
    with pytest.raises(MachineError, match="given out by the default pool"):
        graph.launch()


def test_a_graph_does_not_keep_its_arrays(xp: Gpu, stream: Stream) -> None:
    given, b = [on_device([1, 2])], on_device([3, 4])
    graph = capture(stream, lambda: xp.add(given[0], 1.0, out=b))
    graph.launch()
    given.clear()
    with pytest.raises(MachineError, match="freed"):
        graph.launch()


def test_a_graph_does_not_keep_its_pool(xp: Gpu, stream: Stream) -> None:
    a, pool = on_device([1, 2]), MemoryPool()
    with xp.cuda.using_allocator(pool.malloc):
        graph = capture(stream, lambda: xp.add(a + 1.0, 1.0, out=a))
    graph.launch()
    assert a.get().tolist() == [3, 4]
    del pool
    with pytest.raises(MachineError, match="whose pool of memory is gone"):
        graph.launch()


def test_a_replay_over_reused_memory_is_refused(xp: Gpu, stream: Stream) -> None:
    a, pool = on_device([1, 2]), MemoryPool()
    with xp.cuda.using_allocator(pool.malloc):
        graph = capture(stream, lambda: xp.add(a + 1.0, 1.0, out=a))
        with stream:
            other = xp.zeros(2, "float32")
    with pytest.raises(MachineError, match="others have now"):
        graph.launch()
    stream.synchronize()
    assert other.get().tolist() == [0, 0]


def test_reused_memory_is_uninitialized(xp: Gpu) -> None:
    pool = MemoryPool()
    with xp.cuda.using_allocator(pool.malloc):
        a = xp.ones(2, "float32")
        place = a.__cuda_array_interface__["data"]
        del a
        b = xp.empty(2, "float32")
    assert b.__cuda_array_interface__["data"] == place and np.isnan(b.get()).all()


# ----------------------------------------------------------------------------------------------------- order


def test_unordered_accesses_of_two_streams_are_refused(xp: Gpu, stream: Stream) -> None:
    a = on_device([1, 2])
    with stream, pytest.raises(MachineError, match="nothing says in which order"):
        xp.add(a, 1.0)
    stream.wait_event(Stream.null.record())
    with stream:
        b = xp.add(a, 1.0)
    with pytest.raises(MachineError, match="reads memory"):
        b.get()
    with pytest.raises(MachineError, match="writes memory"):
        a[...] = 0.0
    Stream.null.wait_event(stream.record())
    a[...] = 0.0
    assert b.get().tolist() == [2, 3]


def test_a_graph_is_in_the_order_of_the_stream_it_is_launched_on(xp: Gpu, stream: Stream) -> None:
    a, b = on_device([1, 2]), on_device([0, 0])
    graph = capture(stream, lambda: xp.add(a, 1.0, out=b))
    a[...] = 5.0
    with pytest.raises(MachineError, match="nothing says in which order"):
        graph.launch(stream)
    graph.launch()
    assert b.get().tolist() == [6, 6]


def test_early_writes_to_pinned_memory_are_found(xp: Gpu) -> None:
    a, memory, copied = on_device([0, 0]), xp.cuda.alloc_pinned_memory(8), Event()
    assert isinstance(memory, PinnedMemoryPointer)
    place = np.frombuffer(memory, np.float32)
    place[...] = 1
    a.set(place, xp.cuda.get_current_stream())
    copied.record()
    with pytest.raises(MachineError, match="pinned memory was written"):
        a.set(place)
    copied.synchronize()
    a.set(place)
    assert a.get().tolist() == [1, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_compiled_functions_survive_the_end_of_a_forked_child() -> None:
    place = folder()
    child = multiprocessing.get_context("fork").Process(target=int)
    child.start()
    child.join()
    assert place.is_dir()
