"""Users' operators on a device: bodies in operators, in NumPy and in kernels of their own, in eager calls and plans;
memory shared with other libraries; waits of the host."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, DeviceError, DTypeError
from opreg.nn import Cell
from tests.cuda import host
from tests.cuda.device import Gpu, gpus, require
from tests.custom.kinds import IN_GRAPHS, expected, gradients, operator_of

nd, sym = mx.nd, mx.sym
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")


@pytest.fixture(autouse=True)
def xp() -> Iterator[Gpu]:
    """Two GPUs; the first is current and stays current."""
    with gpus() as module:
        yield module
        assert module.cuda.Device().id == 0


def gpu(number: int) -> mx.Context:
    """A device; a machine with fewer skips the test."""
    require(number + 1)
    return mx.gpu(number)


class Square(mx.operator.CustomOp):
    """The square, computed by operators."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])


class SquareInNumPy(mx.operator.CustomOp):
    """The square, computed by NumPy."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0].asnumpy() ** 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        x, g = in_data[0].asnumpy(), out_grad[0].asnumpy()
        self.assign(in_grad[0], req[0], (2 * x * g).astype(x.dtype))


class SquareInArrays(mx.operator.CustomOp):
    """The square, computed on the device's arrays."""

    def forward(self, is_train, req, in_data, out_data, aux):
        x = shared(in_data[0])
        self.assign(out_data[0], req[0], x * x)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], shared(in_data[0]) * shared(out_grad[0]) * 2)


def shared(x: Any) -> Any:
    return np.from_dlpack(x) if x.context is mx.cpu() else x.context.xp.from_dlpack(x)


def prop(kind: type) -> type:
    class Prop(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return kind()

    return Prop


@mx.operator.define
def squared(x):
    """Square of the data, by an operator made of a function."""
    return x * x


@squared.grad
def squared_grad(g, ins, outs):
    return 2 * ins[0] * g


@mx.operator.define(traced=True)
def squared_traced(x):
    """The square, by a traced body."""
    return x * x


for kind in (Square, SquareInNumPy, SquareInArrays):
    mx.operator.register(f"device_{kind.__name__}")(prop(kind))

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    **{kind.__name__: lambda F, x, name=f"device_{kind.__name__}": F.Custom(x, op_type=name, name="op")
       if F is sym else F.Custom(x, op_type=name) for kind in (Square, SquareInNumPy, SquareInArrays)},
    "a function": lambda F, x: squared(x),
    "a traced function": lambda F, x: squared_traced(x),
}
DTYPES = ("float16", "float32", "float64", ml_dtypes.bfloat16)
X = np.array([[1.5, -2.0, 0.25], [3.0, 0.0, -0.5]])


def tolerance(dtype: Any) -> float:
    return {2: 2e-2}.get(np.dtype(dtype).itemsize, 1e-6)


@needs_compiler
@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_users_run_on_devices(name: str, dtype: Any, device: int) -> None:
    ctx, apply = gpu(device), OPERATORS[name]
    x = nd.array(X, ctx, dtype)
    for request, before in (("write", 1), ("add", 1), ("null", 0)):
        x.attach_grad(request)
        x.grad[:] = before
        with mx.autograd.record():
            y = apply(nd, x)
        assert y.context is ctx and y.dtype == x.dtype
        np.testing.assert_allclose(y.asnumpy().astype(float), X * X, rtol=tolerance(dtype))
        y.backward()
        wanted = {"write": 2 * X, "add": 2 * X + 1, "null": 0 * X}[request]
        if request == "null":
            assert x.grad is None  # as in MXNet
        else:
            np.testing.assert_allclose(x.grad.asnumpy().astype(float), wanted, rtol=tolerance(dtype))
        grad = nd.ones(X.shape, ctx, dtype) * before
        executor = apply(sym, sym.var("x")).bind(ctx, {"x": x.detach()}, {"x": grad}, request)
        for _ in range(2):
            grad[:] = before
            out = executor.forward(is_train=True)[0]
            if request != "null":
                executor.backward([nd.ones(X.shape, ctx, dtype)])
        np.testing.assert_allclose(out.asnumpy().astype(float), X * X, rtol=tolerance(dtype))
        np.testing.assert_allclose(grad.asnumpy().astype(float), wanted, rtol=tolerance(dtype))


class Net(Cell):
    """A Cell with a gradient of its own."""

    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        return (3 * x * dout,)


@needs_compiler
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("device", [0, 1])
def test_cells_run_on_devices(device: int, compiled: bool) -> None:
    with gpu(device):
        net, x = Net(), mx.Tensor(X, mx.float32)
        function = mx.jit(net) if compiled else net
        gradient = mx.grad(function)
        for _ in range(2):
            y, g = function(x), gradient(x)
            assert y.context is g.context is gpu(device)
            np.testing.assert_allclose(y.asnumpy(), X * X)
            np.testing.assert_allclose(g.asnumpy(), 3 * X)
        weight = mx.Parameter(mx.Tensor(X, mx.float32), name="weight")
        optimizer = mx.nn.Momentum([weight], 0.1, 0.9)
        optimizer((mx.Tensor(X, mx.float32),))
        np.testing.assert_allclose(weight.asnumpy(), 0.9 * X, rtol=1e-6)
        assert (x[0] + x[1, 1]).context is gpu(device)


# ----------------------------------------------------------------------------------------- texts of explain


def explained(name: str, ctx: Any) -> list[str]:
    executor = OPERATORS[name](sym, sym.var("x")).simple_bind(ctx, x=X.shape)
    assert "copies" not in executor.explain() and "synchronises" not in executor.explain()
    executor.forward(is_train=True, x=X)
    executor.backward(nd.ones(X.shape, ctx))
    return [line for line in executor.explain().splitlines() if "Custom" in line or "custom" in line]


@needs_compiler
def test_explain_says_which_bodies_synchronise() -> None:
    forward, backward = explained("SquareInNumPy", gpu(1))
    assert "; synchronises: 1 copy to the host and 1 copy from the host in its first run -> " in forward
    assert "; synchronises: 2 copies to the host and 1 copy from the host in its first run -> " in backward
    for name, ctx in (("Square", gpu(1)), ("SquareInArrays", gpu(1)), ("SquareInNumPy", mx.cpu())):
        assert not any("synchronises" in line or "from the host" in line for line in explained(name, ctx))


# ----------------------------------------------------------------------------------- synchronisation of the host

def differentiated(x: Any) -> None:
    x.attach_grad()
    with mx.autograd.record():
        y = nd.sum(nd.tanh(x * 2))
    y.backward()


A = 2.0
WAITS: dict[str, tuple[Callable[[Any], object], int]] = {
    "asnumpy": (lambda x: x.asnumpy(), 1), "asscalar": (lambda x: x[0].asscalar(), 1),
    "item": (lambda x: x[0].item(), 1),
    "float": (lambda x: float(x[0]), 1), "int": (lambda x: int(x[0]), 1), "bool": (lambda x: bool(x[0]), 1),
    "printing": (lambda x: repr(x), 1), "tolist": (lambda x: x.tolist(), 1), "np.asarray": (np.asarray, 1),
    "a function of NumPy": (lambda x: np.sin(x), 1), "a copy to the host": (lambda x: x.as_in_context(mx.cpu()), 1),
    "wait_to_read": (lambda x: x.wait_to_read(), 1), "waitall, for each device": (lambda x: nd.waitall(), 2),
    "arithmetic": (lambda x: (x + 1) * x - A, 0), "operators": (lambda x: nd.exp(x).sum(), 0),
    "a comparison": (lambda x: x > 1, 0), "a part": (lambda x: x[0], 0), "picking": (lambda x: x[[0, 1]], 0),
    "a write": (lambda x: x.__setitem__(slice(None), 3), 0), "numbers of the host": (lambda x: x + X[0], 0),
    "iteration": (list, 0), "len": (len, 0), "shape": (lambda x: (x.shape, x.dtype), 0),
    "a copy": (lambda x: x.copy(), 0), "another device": (lambda x: x.as_in_context(gpu(1)), 0),
    "DLPack": (lambda x: x.context.xp.from_dlpack(x), 0), "from DLPack": (lambda x: nd.from_dlpack(x._data), 0),
    "a gradient": (differentiated, 0),
    "an update": (lambda x: mx.optimizer.SGD().update(0, x, x * 1, None), 0),
}


@needs_compiler
@pytest.mark.parametrize("name", WAITS)
def test_operators_that_read_values_wait_and_no_others(name: str, xp: Gpu) -> None:
    act, times = WAITS[name]
    x = nd.array([1, 2, 3], mx.gpu(0))
    before = xp.synchronisations
    act(x)
    assert xp.synchronisations - before == times


@needs_compiler
def test_an_executor_does_not_wait_for_the_device_after_its_first_run(xp: Gpu) -> None:
    executor = OPERATORS["SquareInArrays"](sym, sym.var("x") * 2).simple_bind(gpu(1), x=X.shape)
    for _ in range(2):
        before = xp.synchronisations
        executor.forward(is_train=True)
        executor.backward(nd.ones(X.shape, gpu(1)))
    assert xp.synchronisations == before


# ------------------------------------------------------------------------------------------------ shared memory


class Interface:
    """Another library's array, which has only the CUDA interface."""

    def __init__(self, array: Any):
        self.__cuda_array_interface__ = array.__cuda_array_interface__


class Capsules:
    """Another library's array, which has only DLPack."""

    def __init__(self, array: Any):
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


@pytest.mark.parametrize("wrapped", [Interface, Capsules, lambda array: array])
def test_foreign_arrays_are_accepted(wrapped: Callable[[Any], Any]) -> None:
    with gpu(1).device:
        theirs = gpu(1).xp.asarray([1.0, 2.0], "float32")
        other = wrapped(theirs)
    ours = nd.from_dlpack(other)
    assert ours.context is gpu(1)
    ours[:] = ours * 2
    assert theirs.get().tolist() == [2, 4]
    x = nd.ones(2, gpu(1))
    assert (x + other).asnumpy().tolist() == [3, 5]
    x[:] = other
    assert x.asnumpy().tolist() == [2, 4]
    for ctx in (mx.cpu(), mx.gpu(0)):
        made = nd.array(other, ctx)
        made[:] = other
        assert made.context is ctx and made.asnumpy().tolist() == [2, 4]
    with pytest.raises(DeviceError, match="as_in_context"):
        nd.ones(2, mx.gpu(0)) + other


def test_a_capsule_names_its_device() -> None:
    x = nd.array([1, 2], gpu(1))
    ours = nd.from_dlpack(x.to_dlpack_for_read())
    ours[:] = ours * 2
    assert ours.context is gpu(1) and x.asnumpy().tolist() == [2, 4]


def test_memory_is_shared_both_ways() -> None:
    x = nd.array([1, 2], gpu(1))
    with x.context.device:
        shared(x)[...] = 7
    assert x.asnumpy().tolist() == [7, 7]
    assert x.__dlpack_device__() == (2, 1)
    assert x.__cuda_array_interface__["data"][0] == x._data.data.ptr
    assert not hasattr(nd.ones(2), "__cuda_array_interface__")


def test_bfloat16_is_shared_by_dlpack_and_not_by_an_interface_that_has_no_name_for_it() -> None:
    x = nd.array([1.5, 2.0], gpu(1), ml_dtypes.bfloat16)
    with x.context.device:
        with pytest.raises(DTypeError, match=r"use DLPack, as in cupy\.from_dlpack"):
            x.context.xp.asarray(x)
        theirs = x.context.xp.from_dlpack(x)
        theirs[:] = theirs * 2
    assert theirs.dtype == ml_dtypes.bfloat16
    assert x.asnumpy().tolist() == [3, 4] and (x + x).asnumpy().tolist() == [6, 8]
    assert x.copy().as_in_context(mx.gpu(0)).asnumpy().tolist() == [3, 4]


def test_arrays_on_other_devices_are_refused() -> None:
    class Elsewhere:
        def __dlpack_device__(self):
            return 8, 0

        def __dlpack__(self, **_):
            raise AssertionError

    with pytest.raises(DeviceError, match="a Elsewhere on a device of DLPack's kind 8"):
        nd.from_dlpack(Elsewhere())
    with pytest.raises(ArgumentError, match="__cuda_array_interface__ or __dlpack__, got list"):
        nd.from_dlpack([1])


SOURCE = 'extern "C" __global__ void first(const float* x, float* y) { y[threadIdx.x] = x[0]; }'


class WithoutDlpack(mx.operator.CustomOp):
    """An operator that passes NDArrays to a kernel."""

    def forward(self, is_train, req, in_data, out_data, aux):
        in_data[0].context.xp.RawKernel(SOURCE, "first")((1,), (1,), (in_data[0], out_data[0]))


mx.operator.register("device_without_dlpack")(prop(WithoutDlpack))


@mx.operator.define
def without_dlpack(x):
    x.context.xp.RawKernel(SOURCE, "first")((1,), (1,), (x, x))


@pytest.mark.parametrize("call", [lambda x: nd.Custom(x, op_type="device_without_dlpack"), without_dlpack],
                         ids=["a class", "a function"])
def test_a_raw_kernel_refuses_an_ndarray_and_names_the_raw_array(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="Unsupported type") as caught:
        call(nd.ones(3, mx.gpu(0))).asnumpy()
    assert any("cupy.from_dlpack(x)" in line for line in caught.value.__notes__), caught.value.__notes__


# ----------------------------------------------------------------------------------------------------- examples


@needs_compiler
@pytest.mark.parametrize("name, kernels, said", [
    ("raw_kernel", {"softplus", "softplus_gradient"}, "the kernels agree with NumPy"),
    ("elementwise_kernel", {"leaky", "leaky_gradient"}, "in three precisions")])
def test_examples_run_on_devices(name: str, kernels: set[str], said: str, xp: Gpu, monkeypatch: pytest.MonkeyPatch,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "cupy", xp)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert said in capsys.readouterr().out
    assert kernels <= set(xp.kernels)


def test_operators_of_every_kind_compute_on_a_device() -> None:
    """The results of NumPy, too, are copied to the device."""
    x, y, g = np.random.default_rng(3).standard_normal((3, 3, 4)).astype(np.float32)
    value, slopes = expected(x, y, 3.0), gradients(g, x, y, 3.0)
    ctx = gpu(0)
    with ctx:
        for kind in IN_GRAPHS:
            op = operator_of(kind)
            inputs = nd.array(x), nd.array(y)
            for each in inputs:
                each.attach_grad()
            with mx.autograd.record():
                out = op(*inputs, by=3.0)
            out.backward(nd.array(g))
            executor = op(sym.var("x"), sym.var("y"), by=3.0).simple_bind(ctx, x=x.shape, y=y.shape)
            for _ in range(2):
                executor.forward(is_train=True, x=nd.array(x), y=nd.array(y))
                executor.backward([nd.array(g)])
            for results in ((out, *[each.grad for each in inputs]), (executor.outputs[0], *executor.grad_arrays)):
                for result, wanted in zip(results, (value, *slopes)):
                    assert result.context == ctx, kind
                    np.testing.assert_allclose(result.asnumpy(), wanted, rtol=1e-4, atol=1e-5, err_msg=kind)


def test_arrays_of_another_device_are_moved_in_subscripts_and_refused_as_gradients() -> None:
    for here, there in ((mx.cpu(), gpu(0)), (gpu(0), mx.cpu()), (gpu(0), gpu(1))):
        x, at = nd.arange(6, ctx=here).reshape((2, 3)), nd.array([1, 0], there, dtype="int32")
        assert x[at].asnumpy().tolist() == [[3, 4, 5], [0, 1, 2]]
        assert x[:, at].context == here
        x[at, 0] = 7
        assert x.asnumpy().tolist() == [[7, 1, 2], [7, 4, 5]]
        x.attach_grad()
        with mx.autograd.record():
            y = x * 2
        with pytest.raises(DeviceError, match=r"head gradient 0 lives on .*, its head on .*: move it"):
            y.backward(nd.ones((2, 3), there))
        executor = (sym.var("x") * 2).bind(here, {"x": x}, {"x": nd.zeros((2, 3), here)})
        executor.forward(is_train=True)
        executor.backward(nd.ones((2, 3), there))
        assert executor.grad_dict["x"].asnumpy().tolist() == [[2] * 3] * 2
