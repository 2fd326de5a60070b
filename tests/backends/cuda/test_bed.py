"""Tests of the bed, and of the mistakes that it finds on the real CuPy: delayed work, captures, devices, memory."""

from __future__ import annotations

import os
import runpy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda import compiler, elementwise
from opreg.errors import OpError
from tests.cuda import bed, nvrtc

pytestmark = [pytest.mark.gpu,
              pytest.mark.skipif(os.environ.get("OPREG_TEST_GPU") != "bed", reason="./run test-cupy has the bed")]

ORDERS = ["late", "1", "2", "3"]


@pytest.fixture
def cupy() -> Any:
    import cupy

    return cupy


# ----------------------------------------------------------------------------------------------- streams and events


def test_work_of_two_streams_that_nothing_orders_gives_wrong_numbers(cupy: Any) -> None:
    """The values are right if an event orders the streams."""
    one, other = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    found = []
    for waits in (False, True):
        x = cupy.zeros(4)
        cupy.cuda.Device().synchronize()
        with bed.ordered("late"):
            with one:
                x += 1
            if waits:
                other.wait_event(one.record())
            with other:
                y = x * 10
                found.append(y.get().tolist())
    assert found == [[0] * 4, [10] * 4]


def test_the_default_stream_waits_for_those_that_block(cupy: Any) -> None:
    blocking = cupy.cuda.Stream()
    x = cupy.zeros(4)
    with bed.ordered("late"):
        with blocking:
            x += 1
        assert (x * 10).get().tolist() == [10] * 4


def test_host_values_are_copied_at_the_call(cupy: Any) -> None:
    """The device reads pageable memory at once, and pinned memory when the copy runs."""
    source = np.ones(4)
    pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(source.nbytes), source.dtype, 4)
    pinned[...] = 1
    x, y = cupy.empty(4), cupy.empty(4)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with bed.ordered("late"), stream:
        x.set(source)
        y.data.copy_from_host_async(pinned.ctypes.data, pinned.nbytes, stream)
        source[...], pinned[...] = 2, 2
        assert (x.get().tolist(), y.get().tolist()) == ([1] * 4, [2] * 4)


def test_a_captured_fork_must_join_its_stream(cupy: Any) -> None:
    """One stream forks from the other and joins it; a fork that does not join invalidates the capture."""
    main, side = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    x, y, z = cupy.ones(4), cupy.zeros(4), cupy.zeros(4)
    cupy.cuda.Device().synchronize()

    def capture(join: bool) -> Any:
        with main:
            main.begin_capture()
            cupy.multiply(x, 2, out=y)
            side.wait_event(main.record())
            with side:
                cupy.add(y, 1, out=z)
            if join:
                main.wait_event(side.record())
            return main.end_capture()

    graph = capture(True)
    assert y.get().tolist() == [0] * 4, "nothing runs while a capture notes it"
    graph.launch(main)
    main.synchronize()
    assert z.get().tolist() == [3] * 4
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="Unjoined"):
        capture(False)


@pytest.mark.parametrize("call", ["synchronize", "malloc", "copy"])
def test_a_capture_refuses_forbidden_calls(cupy: Any, call: str) -> None:
    stream = cupy.cuda.Stream(non_blocking=True)
    runtime = cupy.cuda.runtime
    calls: dict[str, Callable[[], Any]] = {
        "synchronize": lambda: runtime.streamSynchronize(stream.ptr), "malloc": lambda: runtime.malloc(1024),
        "copy": lambda: runtime.memcpy(x.data.ptr, x.data.ptr, 8, runtime.memcpyDeviceToDevice)}
    x = cupy.zeros(4)
    with stream:
        stream.begin_capture(runtime.streamCaptureModeGlobal)
        with pytest.raises(runtime.CUDARuntimeError, match="Unsupported"):
            calls[call]()
        with pytest.raises(runtime.CUDARuntimeError, match="Invalidated"):
            stream.end_capture()


def test_threads_launch_kernels_at_the_same_time(cupy: Any) -> None:
    """Several threads launch kernels at the same time, and also sorts, which are Python functions in the bed."""
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            with cupy.cuda.Stream(non_blocking=True):
                for _ in range(20):
                    x = cupy.asarray(np.random.default_rng(seed).permutation(50))
                    assert (cupy.sort(x) * 2).get().tolist() == [*range(0, 100, 2)]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# ------------------------------------------------------------------------------------------------ kernels and memory


def test_a_kernel_runs_in_three_dimensions(cupy: Any) -> None:
    kernel = cupy.RawKernel("""
        extern "C" __global__ void where(int* out) {
            int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
                z = blockIdx.z * blockDim.z + threadIdx.z;
            out[(z * 4 + y) * 6 + x] = x + 10 * y + 100 * z;
        }""", "where")
    out = cupy.zeros((4, 4, 6), "int32")
    kernel((2, 2, 2), (3, 2, 2), (out,))
    z, y, x = np.indices((4, 4, 6))
    np.testing.assert_array_equal(out.get(), x + 10 * y + 100 * z)


def test_a_launch_gives_the_size_of_shared_memory(cupy: Any) -> None:
    kernel = cupy.RawKernel("""
        extern "C" __global__ void reversed(double* x) {
            extern __shared__ double held[];
            held[threadIdx.x] = x[threadIdx.x];
            __syncthreads();
            x[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
        }""", "reversed")
    x = cupy.arange(64.0)
    kernel((1,), (64,), (x,), shared_mem=64 * 8)
    assert x.get().tolist() == [*range(63, -1, -1)]


def test_instances_of_a_template_are_launched(cupy: Any) -> None:
    module = cupy.RawModule(code="template <class T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }",
                            options=("-std=c++17",), name_expressions=["twice<float>", "twice<int>"])
    for name, dtype in (("twice<float>", "float32"), ("twice<int>", "int32")):
        x = cupy.arange(4).astype(dtype)
        module.get_function(name)((1,), (4,), (x,))
        assert x.get().tolist() == [0, 2, 4, 6]


def test_source_without_a_kernel_is_refused(cupy: Any) -> None:
    with pytest.raises(cupy.cuda.compiler.CompileException, match="nonsense"):
        cupy.RawKernel('extern "C" __global__ void f(int* x) { nonsense; }', "f").compile()


@pytest.mark.skipif(nvrtc.library() is None, reason="needs NVRTC")
@pytest.mark.parametrize("name", ["raw_kernel", "elementwise_kernel"])
def test_nvrtc_accepts_the_kernels_of_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """NVRTC checks the kernels of examples, since the host's compiler accepts more than CUDA's."""
    with bed.checked(80, 90):
        runpy.run_path(str(Path(__file__).parent.parent.parent.parent / "examples" / f"{name}.py"), run_name="__main__")
    assert "agree" in (said := capsys.readouterr().out) or "expected" in said


def test_texts_that_nvrtc_refuses_are_reported(cupy: Any) -> None:
    with bed.checked(90), pytest.raises(cupy.cuda.compiler.CompileException, match=r"sm_90: .*ambiguous"):
        cupy.ElementwiseKernel("T x", "T y", "y = x > 0 ? x : 2.0f * x", "halved")(cupy.ones(3, "float16"))


def test_a_kernel_that_does_not_compile_names_operator_and_line(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names operator and node, the mistake, and the line."""
    find = compiler.kernel_of
    monkeypatch.setattr(elementwise, "kernel_of", lambda xp, text, *more: find(xp, text.replace("tanh(x0)", "tahn(x0)"),
                                                                               *more))
    words = r"does not compile: .*tahn.*, in line \d+: const float r0 = tahn\(x0\);"
    with pytest.raises(OpError, match=words) as caught:
        mx.sym.tanh(mx.sym.var("x"), name="bent").simple_bind(mx.gpu(0), x=(3, 4)).forward()
    said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert "operator tanh, node 'bent'" in said
    assert isinstance(caught.value.__cause__, cupy.cuda.compiler.CompileException)


@pytest.mark.parametrize("what", ["pool", "driver's pool", "managed"])
def test_arrays_of_other_allocators_are_computed(cupy: Any, what: str) -> None:
    pools = {"pool": lambda: cupy.cuda.MemoryPool(), "driver's pool": lambda: cupy.cuda.MemoryAsyncPool(),
             "managed": lambda: cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)}
    with cupy.cuda.using_allocator(pools[what]().malloc):
        x = cupy.arange(4.0)
        assert (x + 1).get().tolist() == [1, 2, 3, 4]


def test_arrays_are_made_on_the_current_device(cupy: Any) -> None:
    assert cupy.cuda.runtime.getDeviceCount() == 2
    with cupy.cuda.Device(1):
        x = cupy.arange(4.0)
    assert x.device.id == 1 and cupy.asnumpy(x).tolist() == [0, 1, 2, 3]


# ------------------------------------------------------------------------------- whole executors, whatever the order


def _net() -> Any:
    x = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=8, name="one")
    x = mx.sym.Activation(mx.sym.BatchNorm(x, name="norm", fix_gamma=False), act_type="tanh")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=3, name="two"), mx.sym.var("label"), name="out")


def _trained(ctx: Any, runs: int = 6) -> list[np.ndarray]:
    """All results of some steps with changing inputs; on a GPU, the later steps are replays."""
    rng = np.random.default_rng(0)
    executor = _net().simple_bind(ctx, x=(4, 5), label=(4,))
    for each in executor.arg_dict.values():
        each[:] = rng.standard_normal(each.shape)
    executor.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9))
    found = []
    for _ in range(runs):
        executor.step(x=rng.standard_normal((4, 5)).astype("float32"), label=np.array([0, 1, 2, 1], "float32"))
        found.append(executor.outputs[0].asnumpy())
    return [*found, *(each.asnumpy() for each in executor.arg_dict.values())]


@pytest.mark.parametrize("order", ORDERS)
def test_training_gives_the_hosts_numbers_in_any_order(order: str) -> None:
    expected = _trained(mx.cpu())
    with bed.ordered(order):
        found = _trained(mx.gpu(0))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, 1e-3, 1e-4)
