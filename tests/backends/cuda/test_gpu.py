"""Networks, dtypes, requests and users' operators on ``gpu(0)`` agree with the host, on the stand-in and on a real GPU.

On the stand-in, each network runs in one dtype, since compiling a kernel takes long. On a GPU it runs in all dtypes,
and all operators run in the dtypes that ``test_strict`` leaves out.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.core import array_module
from tests.backends.cuda.test_strict import FIXED, _tolerance
from tests.builtin.test_operators import differentiated, plannable
from tests.builtin.test_oracle import CASES, in_executor
from tests.cuda.device import GpuBackend, gpus
from tests.cuda.host import COMPILER
from tests.cuda.recorded import recorded
from tests.rows import Row
from tests.running import TOLERANCES, Use, agree, eager, graph, heads

sym = mx.sym

DTYPES = ("float16", "bfloat16", "float32", "float64")


@contextlib.contextmanager
def real() -> Iterator[None]:
    yield


def on(place: str) -> Any:
    """Context in which ``gpu(0)`` is the stand-in or a real GPU."""
    return gpus() if place == "stand-in" else real()


STAND_IN = pytest.param("stand-in", marks=pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler"))
REAL = pytest.param("gpu", marks=pytest.mark.gpu)
places = pytest.mark.parametrize("place", [STAND_IN, REAL])


def networks() -> dict[str, tuple[Any, tuple[int, ...]]]:
    x = sym.Variable("x")
    conv = sym.Convolution(x, kernel=(3, 3), num_filter=4, pad=(1, 1))
    return {
        "elementwise": (sym.tanh(x * 0.5 + 1.0) * x, (6, 10)),
        "broadcast": (sym.broadcast_mul(sym.exp(x * 0.25), sym.sum(x, axis=0, keepdims=True)), (6, 10)),
        "softmax": (sym.softmax(x), (6, 10)),
        "log_softmax": (sym.log_softmax(x), (6, 300)),
        "layer norm": (sym.LayerNorm(x, sym.Variable("gamma"), sym.Variable("beta")), (6, 10)),
        "dense": (sym.relu(sym.FullyConnected(x, num_hidden=5)), (6, 10)),
        "convolution": (sym.Pooling(sym.relu(sym.BatchNorm(conv)), kernel=(2, 2), stride=(2, 2), pool_type="max"),
                        (2, 3, 6, 6)),
        "attention": (sym.batch_dot(sym.softmax(sym.batch_dot(x, x, transpose_b=True)), x), (2, 5, 4)),
    }


NETWORKS = networks()


def answers(ctx: Any, net: Any, shape: tuple[int, ...], dtype: str, req: str) -> list[np.ndarray]:
    """Outputs and gradients on a context; old gradients are overwritten, added to or kept."""
    executor = net.simple_bind(ctx, grad_req=req, type_dict={"x": dtype}, x=shape)
    rng = np.random.default_rng(0)
    for array in executor.arg_arrays:
        array[:] = rng.uniform(-1, 1, array.shape)
    for grad in executor.grad_arrays if req != "null" else ():
        grad[:] = 1
    (out,) = executor.forward(is_train=True)
    found = [out]
    if req != "null":
        executor.backward(mx.nd.array(rng.uniform(-1, 1, out.shape), ctx=ctx, dtype=out.dtype))
        found += executor.grad_arrays
    return [each.asnumpy() for each in (*found, *executor.aux_arrays)]


def cases() -> Iterator[Any]:
    for (i, name), dtype, req in itertools.product(enumerate(NETWORKS), DTYPES, ("write", "add", "null")):
        ours = dtype == "float32" and req == ("write", "add", "null")[i % 3]
        for place in (STAND_IN, REAL) if ours else (REAL,):
            yield pytest.param(place.values[0], name, dtype, req, marks=place.marks,
                               id=f"{place.values[0]}-{name}-{dtype}-{req}".replace(" ", "_"))


@pytest.mark.parametrize(("place", "name", "dtype", "req"), list(cases()))
def test_a_network_gives_the_hosts_numbers(place: str, name: str, dtype: str, req: str) -> None:
    net, shape = NETWORKS[name]
    expected = answers(mx.cpu(), net, shape, dtype, req)
    with on(place):
        found = answers(mx.gpu(0), net, shape, dtype, req)
    assert len(found) == len(expected)
    for i, (one, other) in enumerate(zip(found, expected)):
        assert one.dtype == other.dtype
        agree(one, other, TOLERANCES[dtype], f"{name}, {i}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_host_has_numbers_of_every_dtype(name: str, dtype: str) -> None:
    """The host computes in every dtype, so that results of a GPU can be compared."""
    net, shape = NETWORKS[name]
    for answer in answers(mx.cpu(), net, shape, dtype, "write"):
        assert np.isfinite(answer.astype(np.float64)).all()


class Scaled(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2 + 1)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


class ScaledByNumPy(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0].asnumpy() * 2 + 1)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0].asnumpy() * 2)


for operator in (Scaled, ScaledByNumPy):
    made = lambda self, ctx, shapes, dtypes, operator=operator: operator()  # noqa: E731
    mx.operator.register(f"test_gpu_{operator.__name__}")(
        type(f"{operator.__name__}Prop", (mx.operator.CustomOpProp,), {"create_operator": made}))


@places
@pytest.mark.parametrize("req", ["write", "add", "null"])
@pytest.mark.parametrize("operator", [Scaled, ScaledByNumPy], ids=lambda each: each.__name__)
def test_a_custom_operator_gives_the_results_of_the_host(place: str, operator: type, req: str) -> None:
    net = sym.exp(sym.Custom(sym.tanh(sym.Variable("x")), op_type=f"test_gpu_{operator.__name__}"))
    expected = answers(mx.cpu(), net, (3, 4), "float32", req)
    with on(place):
        found = answers(mx.gpu(0), net, (3, 4), "float32", req)
        x = mx.nd.ones((3,), ctx=mx.gpu(0))
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.Custom(x, op_type=f"test_gpu_{operator.__name__}")
        y.backward()
        assert y.context == x.grad.context == mx.gpu(0)
        assert y.asnumpy().tolist() == [3, 3, 3] and x.grad.asnumpy().tolist() == [2, 2, 2]
    for one, other in zip(found, expected, strict=True):
        agree(one, other, 1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted({row.op for row in FIXED}))
def test_an_operator_equals_the_host_in_its_other_dtypes(name: str) -> None:
    """All rows of the operator, eagerly and in an executor."""
    for row in FIXED:
        for dtype in row.dtypes[1:] if row.op == name else ():
            _compare(row, dtype)


def _compare(row: Row, dtype: str) -> None:
    use = Use.of(row, dtype)
    given = heads(use, eager(use).outs)
    grads = row.train and differentiated(row)
    expected = eager(use, None, given, grads)
    for way in (eager, graph) if plannable(row) else (eager,):
        found = way(use, mx.gpu(0), given, grads=grads)
        for i, (one, other) in enumerate(zip(found.outs, expected.outs, strict=True)):
            assert one.dtype == other.dtype
            agree(one, other, _tolerance(use), f"{row}, output {i}, {dtype}")
        for i, gradient in expected.grads.items():
            agree(found.grads[i], gradient, _tolerance(use), f"{row}, gradient of input {i}, {dtype}")


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted({case["op"] for case in CASES if not case["imperative"]}))
def test_executors_give_the_recorded_results_of_mxnet(name: str) -> None:
    """All recorded uses of an operator give MXNet's results in executors."""
    for case in CASES:
        if case["op"] == name and not case["imperative"]:
            in_executor(case, mx.gpu(0))


# ------------------------------------------------------------------------- the stand-in's tests on the real thing


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
def test_kernels_of_a_real_module_are_recorded_and_it_is_left_as_it_was() -> None:
    """A second instance of the stand-in replaces CuPy here."""
    module = GpuBackend().xp
    before = module.RawModule
    with gpus():
        with recorded(module) as xp:
            launch = xp.RawModule(code=PROGRAM).get_function("twice")
            x = module.asarray([1.0, 2.0], "float32")
            launch((1,), (32,), (x, np.int32(2)))
            assert xp.kernels == ["twice"] and xp.float32 is np.float32
        assert x.get().tolist() == [2, 4] and module.RawModule == before


PROGRAM = """
extern "C" __global__ void twice(float* x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] *= 2;
}
"""


def test_the_environment_variable_requests_a_real_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU an error is raised; the stand-in does not take its place."""
    asked = SimpleNamespace(RawModule=None)
    monkeypatch.setenv("OPREG_TEST_GPU", "real")
    monkeypatch.setattr(array_module, "backend", lambda name: SimpleNamespace(xp=asked, count=lambda: 1))
    with gpus() as xp:
        assert xp._xp is asked
