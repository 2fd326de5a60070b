"""Contexts: one object for each device, the current context of each thread, errors."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import types
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.core.array_module import CupyBackend
from opreg.errors import ArgumentError, DeviceError


def test_contexts_of_a_device_are_one_object():
    one = mx.Context("cpu", 1)
    for other in (mx.cpu(1), mx.Context(one), mx.Context("cpu(1)"), mx.cpu(np.int64(1)), copy.copy(one),
                  copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other is one
    assert mx.cpu() == mx.cpu(0) == mx.Context("cpu")
    assert mx.cpu() != one
    assert {mx.cpu(): 1}[mx.cpu(0)] == 1
    assert (one.device_type, one.device_id, one.device_typeid, repr(one)) == ("cpu", 1, 1, "cpu(1)")
    assert mx.cpu_pinned().device_typeid == 3


def test_a_context_does_not_change():
    """All programs share it; a number that it has already may be assigned."""
    one = mx.cpu(1)
    one.device_id, one.device_typeid = 1, 1
    for name, value in (("device_id", 0), ("device_typeid", 2), ("device_type", "gpu")):
        with pytest.raises(ArgumentError, match=rf"Context.{name}: cpu\(1\) is the only object of its device, .* "
                                                r"mx.Context\('gpu', 1\)"):
            setattr(one, name, value)
    assert repr(one) == "cpu(1)" and mx.Context("cpu", 1) is one


def set_default_ctx(ctx: mx.Context) -> None:
    mx.Context.default_ctx = ctx


@pytest.mark.parametrize("choose", [set_default_ctx, mx.test_utils.set_default_context])
def test_default_ctx_is_a_threads_own(choose):
    found = []

    def other() -> None:
        found.append(mx.Context.default_ctx)
        choose(mx.cpu(3))
        with mx.cpu(4):
            found.append(mx.Context.default_ctx)
        found.extend((mx.Context.default_ctx, mx.current_context(), mx.nd.ones((1,)).context))

    before = mx.Context.default_ctx
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert found == [mx.cpu(), mx.cpu(4), *[mx.cpu(3)] * 3]
    assert mx.Context.default_ctx is before is mx.current_context()
    with mx.cpu(5):
        choose(mx.cpu(6))
        assert mx.nd.ones((1,)).context == mx.cpu(6)
    assert mx.current_context() is before


REFUSED = [
    (("cpuu",), DeviceError, "no device type 'cpuu'. Did you mean 'cpu'"),
    (("cpu", -1), ArgumentError, "from 0, got -1"),
    (("cpu", "x"), ArgumentError, "'x'"), (("cpu", 1.5), ArgumentError, r"1\.5"), ((None,), DeviceError, "None"),
]


@pytest.mark.parametrize("args, kind, words", REFUSED)
def test_wrong_contexts_are_refused(args, kind, words):
    with pytest.raises(kind, match=words):
        mx.Context(*args)


def test_the_current_context_is_the_innermost_one():
    assert mx.current_context() is mx.cpu()
    with mx.cpu(1):
        with mx.cpu(2), mx.cpu(1):
            assert mx.current_context() is mx.cpu(1)
        assert mx.current_context() is mx.cpu(1)
        with pytest.raises(KeyError), mx.cpu(3):
            raise KeyError
        assert mx.current_context() is mx.cpu(1)
    assert mx.current_context() is mx.cpu()


def test_the_current_context_is_a_threads_own():
    """Two threads enter and leave the same contexts in turns without an effect on each other."""
    found, turn = [], threading.Barrier(2)

    def enter(first, second):
        turn.wait()
        with first:
            turn.wait()
            found.append(mx.current_context() is first)
            with second:
                turn.wait()
                found.append(mx.current_context() is second)
            turn.wait()
            found.append(mx.current_context() is first)
        found.append(mx.current_context() is mx.cpu())

    threads = [threading.Thread(target=enter, args=args) for args in ((mx.cpu(1), mx.cpu(2)), (mx.cpu(2), mx.cpu(1)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


def test_arrays_of_all_host_contexts_are_computed_together():
    x, y = mx.nd.ones(2), mx.nd.ones(2, ctx=mx.cpu(1))
    assert (x + y).context is mx.cpu()
    assert mx.nd.broadcast_add(y, x).context is mx.cpu(1)
    assert mx.nd.Concat(y, x, dim=0).asnumpy().tolist() == [1, 1, 1, 1]


def test_a_missing_device_may_be_named():
    """Programs name devices in defaults and lists before they know the machine."""

    def train(ctx=mx.gpu(), devices=tuple(mx.gpu(i) for i in range(2))):  # noqa: B008
        return ctx, *devices

    assert [repr(ctx) for ctx in train()] == ["gpu(0)", "gpu(0)", "gpu(1)"]
    assert mx.gpu() is mx.gpu(0) is mx.Context("gpu", 0) is mx.Context("gpu(0)")
    assert mx.gpu().device_typeid == 2
    with mx.gpu(1):
        assert mx.current_context() is mx.gpu(1)
    assert mx.mod.Module(mx.sym.var("data"), label_names=None, context=mx.gpu()) is not None
    assert isinstance(mx.num_gpus(), int)


DATA = mx.sym.var("data")


@pytest.mark.parametrize("call", [
    lambda ctx: mx.nd.zeros(2, ctx=ctx), lambda ctx: mx.nd.array([1], ctx), lambda ctx: mx.nd.arange(3, ctx=ctx),
    lambda ctx: mx.nd.random.uniform(shape=(2,), ctx=ctx), lambda ctx: mx.nd.ones(2).as_in_context(ctx),
    lambda ctx: mx.nd.ones(2).copyto(ctx), lambda ctx: ctx.empty_cache(),
    lambda ctx: mx.context.gpu_memory_info(ctx.device_id),
    lambda ctx: (DATA * 2).simple_bind(ctx, data=(2,)), lambda ctx: (DATA * 2).bind(ctx, {"data": mx.nd.ones(2)}),
    lambda ctx: (DATA * 2).eval(ctx, data=mx.nd.ones(2)), lambda ctx: in_it(ctx),
])
def test_using_a_missing_device_is_an_error(call):
    ctx = mx.gpu(mx.num_gpus())
    with pytest.raises(DeviceError, match=r"^gpu: .*CuPy|gpu\(\d+\): this machine has|expected gpu\(") as caught:
        call(ctx)
    assert isinstance(caught.value, mx.MXNetError)


@pytest.mark.parametrize("other", [mx.cpu(1), mx.cpu_pinned(), mx.cpu_pinned(2)])
def test_contexts_of_the_host_are_one_device(other):
    """An operator takes arrays of all contexts of the host, and returns arrays of the first one's, as in MXNet."""
    x, y = mx.nd.array([1.0, 2.0]), mx.nd.array([3.0, 4.0], other)
    x.attach_grad()
    y.attach_grad()
    with mx.autograd.record():
        z = x * y
    z.backward()
    assert (z.asnumpy().tolist(), z.context) == ([3.0, 8.0], mx.cpu())
    assert (y * x).context == other
    assert (x.grad.asnumpy().tolist(), y.grad.asnumpy().tolist()) == ([3.0, 4.0], [1.0, 2.0])


def in_it(ctx):
    with ctx:
        return mx.nd.ones(2)


@pytest.mark.gpu
def test_a_gpu_computes_if_there_is_one():
    x = mx.nd.ones((2, 3), ctx=mx.gpu())
    y = (x * 2).as_in_context(mx.cpu())
    assert y.asnumpy().tolist() == [[2, 2, 2], [2, 2, 2]]
    with pytest.raises(DeviceError, match="as_in_context"):
        x + y
    with pytest.raises(DeviceError, match="numbered from 0"):
        mx.nd.ones(1, ctx=mx.gpu(99))
    free, total = mx.context.gpu_memory_info()
    assert 0 < free <= total


class FakeCuPy(types.ModuleType):
    """CuPy of a given machine: functions of its runtime return given values, or raise given errors."""

    def __init__(self, version: str = "14.2.0", driver: Any = 13000, count: Any = 1, compiler: Any = (13, 0)):
        super().__init__("cupy")

        def answering(what: Any) -> Any:
            def answer() -> Any:
                if isinstance(what, Exception):
                    raise what
                return what

            return answer

        self.__version__ = version
        self.cuda = types.SimpleNamespace(
            runtime=types.SimpleNamespace(driverGetVersion=answering(driver), getDeviceCount=answering(count),
                                          runtimeGetVersion=lambda: 12090),
            nvrtc=types.SimpleNamespace(getVersion=answering(compiler)))


LOOK = ("look what nvidia-smi lists, whether CUDA_VISIBLE_DEVICES hides it, and whether the driver is new enough for "
        "this CuPy")
NO_DEVICE = RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
NO_NVRTC = RuntimeError("CuPy failed to load libnvrtc.so.12: OSError: libnvrtc.so.12:\n  cannot open shared object")


@pytest.mark.parametrize(("module", "message"), [
    (None, "gpu: the package CuPy is missing or does not load (ModuleNotFoundError: import of cupy halted; None in "
           "sys.modules); install opreg[cuda12] or opreg[cuda13]"),
    (FakeCuPy("13.6.0"), "gpu: CuPy 13.6.0 is installed, but opreg needs 14 or newer; install opreg[cuda12] or "
                         "opreg[cuda13]"),
    (FakeCuPy(driver=0), "gpu: CuPy 14.2.0 is installed, but there is no NVIDIA driver; install one for this GPU"),
    (FakeCuPy(driver=RuntimeError("cudaErrorInsufficientDriver")),
     "gpu: CuPy 14.2.0 is installed, but the NVIDIA driver is missing or does not load (cudaErrorInsufficientDriver); "
     "install one for this GPU"),
    (FakeCuPy(count=0), f"gpu: CuPy 14.2.0 is installed, but it finds no CUDA device; {LOOK}"),
    (FakeCuPy(count=NO_DEVICE), f"gpu: CuPy 14.2.0 is installed, but it finds no CUDA device ({NO_DEVICE}); {LOOK}"),
    (FakeCuPy(compiler=NO_NVRTC), "gpu: CuPy 14.2.0 is installed, but the compiler NVRTC is missing or does not load "
                                  "(CuPy failed to load libnvrtc.so.12: OSError: libnvrtc.so.12: cannot open shared "
                                  "object); install nvidia-cuda-nvrtc-cu12, or CUDA's toolkit 12"),
], ids=["package", "version", "no driver", "driver", "no device", "device", "compiler"])
def test_a_missing_library_of_a_gpu_is_one_sentence_that_names_the_install(module: Any, message: str,
                                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", module)
    with pytest.raises(DeviceError) as caught:
        CupyBackend()
    assert str(caught.value) == message


def test_a_complete_cupy_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", module := FakeCuPy("15.0.0rc1"))
    assert CupyBackend().xp is module
