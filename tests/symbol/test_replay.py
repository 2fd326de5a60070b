"""Graphs that are captured and replayed on the stand-in for a GPU: the same results with fewer launches; steps that a
capture does not allow run as before."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import nn
from opreg.cells.grad import grad
from opreg.cells.jit import jit
from opreg.core.array_module import backend
from opreg.core.registry import REGISTERED, declare
from opreg.errors import OpError
from opreg.symbol.plan import Segment
from opreg.trace_events import collect
from tests.cuda import machine
from tests.cuda.device import Gpu, gpus, late, require
from tests.cuda.host import COMPILER

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
sym, nd = mx.sym, mx.nd


@pytest.fixture(autouse=True)
def gpu(unregistered: None) -> Iterator[Gpu]:
    """A stand-in for a GPU."""
    with gpus() as xp:
        yield xp


def var(*names: str) -> list[Any]:
    return [sym.var(name) for name in names]


class Bound:
    """An executor on a device, for arrays by name."""

    def __init__(self, net: Any, arrays: dict[str, Any], ctx: Any, req: str | dict[str, str] = "write"):
        place = {name: nd.array(each, ctx=ctx, dtype="float32") for name, each in arrays.items()}
        aux = {name: place.pop(name) for name in net.list_auxiliary_states()}
        self.grads = {name: nd.zeros(each.shape, ctx=ctx) for name, each in place.items()}
        self.executor = net.bind(ctx, place, args_grad=self.grads, grad_req=req, aux_states=aux)

    def step(self, train: bool = True, backward: bool = True, **values: np.ndarray) -> list[np.ndarray]:
        """All arrays of the executor after a run."""
        executor = self.executor
        executor.forward(is_train=train, **values)
        if backward:
            executor.backward()
        return [each.asnumpy() for each in (*executor.outputs, *self.grads.values(), *executor.aux_arrays)]


def launches(work: Callable[[], Any]) -> int:
    before = machine.MACHINE.launches
    work()
    return machine.MACHINE.launches - before


def said(executor: Any, train: bool = True) -> list[str]:
    """Lines of ``explain`` about the way steps run."""
    found = []
    for line in executor.explain(train).splitlines():
        if line.startswith(("forward", "backward")):
            found.append(line)
        elif "; graph" in line or "; island" in line:
            found.append(f"{line.split()[1]} {line.rsplit('; ', 1)[1].split(' during stream')[0]}")
    return found


X = np.arange(12, dtype=np.float32).reshape(3, 4) / 8
W = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


def dense() -> Any:
    return sym.FullyConnected(*var("x", "w", "b"), num_hidden=2, name="fc")


def normal() -> Any:
    return sym.MakeLoss(sym.BatchNorm(*var("x", "gamma", "beta"), name="bn", fix_gamma=False) * 2)


def rows() -> Any:
    return sym.SoftmaxOutput(sym.LayerNorm(sym.tanh(sym.var("x")) + 1, *var("gamma", "beta")), sym.var("label"))


NETS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "one kernel": (lambda: sym.MakeLoss(sym.tanh(sym.var("x") * 2) + sym.var("y")), {"x": X, "y": X[::-1]}),
    "rows": (rows, {"x": X, "gamma": np.ones(4), "beta": np.zeros(4), "label": np.array([1, 0, 3])}),
    "a product between": (lambda: sym.MakeLoss(sym.sigmoid(sym.relu(dense()) - 0.5)),
                          {"x": X, "w": W, "b": np.ones(2)}),
    "auxiliary states": (normal, {"x": X, "gamma": np.ones(4), "beta": np.zeros(4), "bn_moving_mean": np.zeros(4),
                                  "bn_moving_var": np.ones(4)}),
    "reductions and shapes": (lambda: sym.MakeLoss(sym.sum(sym.transpose(sym.var("x")) * sym.var("y"), axis=1)),
                              {"x": X, "y": X.T.copy()}),
}


@needs_compiler
@pytest.mark.parametrize("req", ["write", "add", "null"])
@pytest.mark.parametrize("name", NETS)
def test_a_replay_equals_a_run(name: str, req: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, arrays = NETS[name]
    replayed, eager = Bound(make(), arrays, mx.gpu(0), req), Bound(make(), arrays, mx.gpu(0), req)
    rng = np.random.default_rng(0)
    for run in range(6):
        x = rng.standard_normal(np.shape(arrays["x"])).astype(np.float32)
        train = run != 4  # a run of the other plan between
        found = replayed.step(train, train and req != "null", x=x)
        with monkeypatch.context() as patch:
            patch.setenv("OPREG_REPLAY", "0")  # plans are made in the first runs
            expected = eager.step(train, train and req != "null", x=x)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    assert "graph 0" in replayed.executor.explain(True) and "graph" not in eager.executor.explain(True)




# ---------------------------------------------------------------------------------- texts and counts of explain


PARTS = {
    "one kernel": ([1, 1, 1, 1], [5, 5, 1, 1], """
        forward, 1 graph, 0 islands:
        _fused graph 0
        backward, 1 graph, 0 islands:
        _backward_MakeLoss graph 0
        _fused graph 0
    """),
    "rows": ([3, 3, 1, 1], [6, 6, 1, 1], """
        forward, 1 graph, 0 islands:
        _fused graph 0
        LayerNorm graph 0
        SoftmaxOutput graph 0
        backward, 1 graph, 0 islands:
        _backward_SoftmaxOutput graph 0
        _rdiv_scalar graph 0
        _backward_LayerNorm graph 0
        _backward_tanh graph 0
        zeros graph 0
    """),
    "a product between": ([3, 3, 3, 3], [8, 8, 4, 4], """
        forward, 1 graph, 1 island:
        FullyConnected island: NotImplementedError: calling cuBLAS API
        _fused graph 0
        backward, 2 graphs, 2 islands:
        _backward_MakeLoss graph 0
        _fused graph 0
        _backward_FullyConnected_data island: NotImplementedError: calling cuBLAS API
        _backward_FullyConnected_weight island: NotImplementedError: calling cuBLAS API
        sum graph 1
    """),
}


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@needs_compiler
@pytest.mark.parametrize("name", PARTS)
def test_replayed_steps_launch_the_listed_kernels_and_explain_says_so(name: str) -> None:
    forward, backward, text = PARTS[name]
    make, arrays = NETS[name]
    executor = Bound(make(), arrays, mx.gpu(0)).executor
    executor.plan(True)
    assert said(executor) == ["forward, to be captured in its third run:", "backward, to be captured in its third run:"]
    counted = [(launches(lambda: executor.forward(is_train=True)), launches(executor.backward)) for _ in range(4)]
    assert counted == [*zip(forward, backward)]
    assert said(executor) == lines(text)


def test_executors_on_the_host_record_nothing() -> None:
    make, arrays = NETS["a product between"]
    bound = Bound(make(), arrays, mx.cpu())
    for _ in range(4):
        bound.step()
    plan = bound.executor.plan(True)
    assert type(plan.forward) is type(plan.backward) is Segment
    assert not re.search("graph|island|captured", bound.executor.explain())


# -------------------------------------------------------------------------------------------- users' operators


def prop(name: str, forward: Callable[..., Any], may: bool = False,
         backward: Callable[..., Any] = lambda self, req, out_grad, in_data, out_data, in_grad, aux:
         self.assign(in_grad[0], req[0], out_grad[0] * 2)) -> None:
    """An operator with a ``forward`` of (op, x) that returns a raw result."""

    class Op(mx.operator.CustomOp):
        count = 0

        def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            self.count += 1
            self.assign(out_data[0], req[0], forward(self, in_data[0]))

    Op.backward = backward  # type: ignore[method-assign,assignment]

    @mx.operator.register(name)
    class Prop(mx.operator.CustomOpProp):
        capturable = may

        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Op:
            return Op()


def around(name: str) -> Any:
    """A user's operator between kernels of opreg."""
    return sym.MakeLoss(sym.tanh(sym.Custom(sym.var("x") + 1, op_type=name, name="mine")))


@needs_compiler
@pytest.mark.parametrize(("may", "text"), [
    (False, """
        forward, 2 graphs, 1 island:
        _plus_scalar graph 0
        custom.twice island: runs users' code that does not declare capturable=True
        tanh graph 1
        backward, 1 graph, 1 island:
        _backward_MakeLoss graph 0
        _backward_tanh graph 0
        _backward_custom.twice island: runs users' code that does not declare capturable=True
    """),
    (True, """
        forward, 1 graph, 0 islands:
        _plus_scalar graph 0
        custom.twice graph 0
        tanh graph 0
        backward, 1 graph, 0 islands:
        _backward_MakeLoss graph 0
        _backward_tanh graph 0
        _backward_custom.twice graph 0
    """),
])
def test_users_operators_are_islands_unless_they_may_be_captured(may: bool, text: str) -> None:
    calls = []
    prop("twice", lambda op, x: calls.append(1) or x * 2, may)
    bound = Bound(around("twice"), {"x": X}, mx.gpu(0))
    rng, found = np.random.default_rng(0), []
    for run in range(6):
        x = rng.standard_normal(X.shape).astype(np.float32)
        found = bound.step(x=x)
        y = np.tanh(2 * (x + 1))
        np.testing.assert_allclose(found[0], y, 1e-5)
        np.testing.assert_allclose(found[1], 2 * (1 - y ** 2), 1e-3, 1e-5)
        if run == 2:
            before = len(calls)
    assert said(bound.executor) == lines(text)
    assert len(calls) - before == (0 if may else 3)


@needs_compiler
@pytest.mark.parametrize("forward", [
    lambda op, x: x * op.count, lambda op, x: x * float(np.random.default_rng().random()),
])
def test_an_operator_that_depends_on_more_than_its_arrays_must_not_be_captured(forward: Any) -> None:
    prop("counts", forward, may=True)
    bound = Bound(around("counts"), {"x": X}, mx.gpu(0))
    for _ in range(2):
        bound.step()
    before = bound.executor.arg_dict["x"].asnumpy()
    with pytest.raises(OpError, match=r"'mine'.* declares capturable=True, but on other inputs a replay") as caught:
        bound.step()
    assert "custom.counts" in str(caught.value)
    np.testing.assert_array_equal(bound.executor.arg_dict["x"].asnumpy(), before)


@needs_compiler
def test_an_operator_that_may_be_captured_and_waits_for_the_device_is_an_island() -> None:
    prop("looks", lambda op, x: x * float(x.asnumpy().max()), may=True)
    bound = Bound(around("looks"), {"x": X}, mx.gpu(0))
    for run in range(5):
        x = X + run
        np.testing.assert_allclose(bound.step(x=x)[0], np.tanh((x + 1) * (x + 1).max()), 1e-5)
    assert said(bound.executor)[2].startswith("custom.looks island: RuntimeError: the current stream is capturing")


@needs_compiler
@pytest.mark.parametrize("capturable", [False, True])
def test_users_functions_are_captured_or_islands(capturable: bool) -> None:
    @mx.operator.define(name="shifted", capturable=capturable)
    def shifted(x: Any, *, by: float = 1.0) -> Any:
        return x + by

    @shifted.grad
    def _(g: Any, ins: Any, outs: Any, *, by: float) -> Any:
        return g

    bound = Bound(sym.MakeLoss(sym.custom.shifted(sym.var("x"), by=3.0)), {"x": X}, mx.gpu(0))
    for run in range(4):
        np.testing.assert_allclose(bound.step(x=X * run)[0], X * run + 3)
    assert said(bound.executor)[1] == "custom.shifted " + (
        "graph 0" if capturable else "island: runs users' code that does not declare capturable=True")


@needs_compiler
def test_errors_of_islands_keep_their_notes() -> None:
    def fails(op: Any, x: Any) -> Any:
        if op.count > 3:
            raise ValueError("too often")
        return x

    prop("fails", fails)
    executor = Bound(around("fails"), {"x": X}, mx.gpu(0)).executor
    for _ in range(3):
        executor.forward(is_train=True)
    with pytest.raises(ValueError, match="too often") as caught:
        executor.forward(is_train=True)
    notes = "\n".join(caught.value.__notes__)
    assert "node 'mine'" in notes and "step 1 of 3, kernel CustomOp.forward" in notes
    assert "graph" not in notes


# -------------------------------------------------------------------------------- steps outside of a recording


@needs_compiler
def test_random_operators_are_islands() -> None:
    net = sym.MakeLoss(sym.tanh(sym.var("x")) * sym.random.uniform(shape=(8, 8)))
    bound = Bound(net, {"x": np.ones((8, 8))}, mx.gpu(0))
    outputs = {bound.step()[0].tobytes() for _ in range(6)}
    assert len(outputs) == 6
    assert any(line.endswith("island: draws random numbers") for line in said(bound.executor))


@needs_compiler
def test_dropout_keeps_its_state_on_the_device_and_draws_anew_in_a_replay() -> None:
    def outputs(replayed: bool) -> list[bytes]:
        mx.random.seed(3)
        bound = Bound(sym.MakeLoss(sym.Dropout(sym.tanh(sym.var("x")), p=0.5)), {"x": np.ones((8, 8))}, mx.gpu(0))
        found = [bound.executor.forward(is_train=True)[0].asnumpy().tobytes() for _ in range(6)]
        assert ("_claim graph 0" in said(bound.executor)) is replayed
        return found

    found = outputs(True)
    assert len(set(found)) == 6
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPREG_REPLAY", "0")
        assert outputs(False) == found  # capturing draws nothing


def test_loops_run_graphs_of_their_own() -> None:
    def body(x: Any, state: Any) -> Any:
        state = sym.tanh(x + state)
        return state, state

    outs, _ = sym.contrib.foreach(body, sym.var("x"), sym.var("s"))
    executor = outs.bind(mx.gpu(0), {"x": nd.array(X, ctx=mx.gpu(0)), "s": nd.zeros(4, ctx=mx.gpu(0))})
    for run in range(4):
        state, expected = np.zeros(4), []
        for row in X * run:
            state = np.tanh(row + state)
            expected.append(state)
        np.testing.assert_allclose(executor.forward(x=X * run)[0].asnumpy(), expected, 1e-5)
    assert "_foreach island: its kernel, loop, is Python that runs each time" in said(executor, False)


def test_plans_over_several_devices_run_step_by_step() -> None:
    require(2)
    with mx.AttrScope(ctx_group="there"):
        hidden = sym.tanh(sym.var("x"), name="there")
    with mx.AttrScope(ctx_group="here"):
        net = hidden + 1
    executor = net.bind(mx.gpu(0), {"x": nd.array(X, ctx=mx.gpu(1))},
                        group2ctx={"there": mx.gpu(1), "here": mx.gpu(0)})
    assert said(executor, False) == ["forward, not captured: its steps are on several devices:"]


# ------------------------------------------------------------------------------------------- captures that fail


@needs_compiler
@pytest.mark.parametrize(("name", "error", "reason"), [
    ("begin_capture", MemoryError("none is left"), "MemoryError: none is left"),
    ("begin_capture", machine.CUDARuntimeError("cudaErrorIllegalState"), "CUDARuntimeError: cudaErrorIllegalState"),
])
def test_a_capture_that_fails_falls_back(name: str, error: Exception, reason: str,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: machine.Stream, mode: int | None = None) -> None:
        raise error

    monkeypatch.setattr(machine.Stream, name, fails)
    bound = Bound(sym.MakeLoss(sym.tanh(sym.var("x"))), {"x": X}, mx.gpu(0))
    for run in range(5):
        np.testing.assert_allclose(bound.step(x=X * run)[0], np.tanh(X * run), 1e-5)
    assert said(bound.executor)[0].startswith(f"forward, not captured: {reason}")


@needs_compiler
def test_an_executor_is_usable_when_no_memory_is_left_for_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    allocate = machine.MemoryPool.malloc

    def malloc(self: machine.MemoryPool, size: int) -> Any:
        if self is not machine.MACHINE.pool:
            raise MemoryError("out of memory")
        return allocate(self, size)

    monkeypatch.setattr(machine.MemoryPool, "malloc", malloc)
    executor = Bound(sym.cumsum(sym.tanh(sym.var("x")), axis=0), {"x": X}, mx.gpu(0)).executor
    executor.forward()
    with pytest.raises(MemoryError, match="out of memory"):
        executor.forward()
    for run in range(3):
        np.testing.assert_allclose(executor.forward(x=X * run)[0].asnumpy(), np.tanh(X * run).cumsum(0), 1e-5)
    assert "out of memory" in said(executor, False)[0]


@needs_compiler
@pytest.mark.parametrize("everywhere", [False, True])
def test_memory_of_graphs_comes_from_the_users_allocator(gpu: Gpu, everywhere: bool) -> None:
    pool, asked = gpu.cuda.MemoryPool(), []

    def allocate(size: int) -> Any:
        stream = gpu.cuda.get_current_stream()
        asked.append(stream.ptr and stream.is_capturing())
        return pool.malloc(size)

    @contextlib.contextmanager
    def set_for_all() -> Iterator[None]:
        before = gpu.cuda.get_allocator()
        gpu.cuda.set_allocator(allocate)
        try:
            yield
        finally:
            gpu.cuda.set_allocator(before)

    with set_for_all() if everywhere else gpu.cuda.using_allocator(allocate):
        prop("doubled", lambda op, x: x + x, may=True)  # its results are in memory of the pool of graphs
        bound = Bound(around("doubled"), {"x": X}, mx.gpu(0))
        for run in range(5):
            np.testing.assert_allclose(bound.step(x=X + run)[0], np.tanh((X + run + 1) * 2), 1e-5)
            if run == 0:
                del asked[:]
        assert any("graph 0" in line for line in said(bound.executor))
        assert asked and not any(asked)


@needs_compiler
def test_graphs_stay_below_the_users_limit(gpu: Gpu) -> None:
    """A run that would exceed the limit gives a warning, and steps run one by one from then on."""
    pool = gpu.cuda.MemoryPool()
    with gpu.cuda.using_allocator(pool.malloc):
        executor = Bound(sym.cumsum(sym.tanh(sym.var("x")), axis=0), {"x": X}, mx.gpu(0)).executor
        executor.forward()
        pool.free_all_blocks()
        pool.set_limit(pool.total_bytes())
        with pytest.raises(MemoryError, match="limit set to"):
            executor.forward()
        pool.set_limit(0)
        for run in range(3):
            np.testing.assert_allclose(executor.forward(x=X * run)[0].asnumpy(), np.tanh(X * run).cumsum(0), 1e-5)
        assert "limit set to" in said(executor, False)[0]


@needs_compiler
def test_steps_on_the_host_are_islands() -> None:
    with mx.AttrScope(ctx_group="there"):
        hidden = sym.tanh(sym.var("x") * 2, name="there")
    with mx.AttrScope(ctx_group="here"):
        net = sym.exp(hidden, name="here") + 1
    executor = net.bind(mx.cpu(), {"x": nd.array(X, ctx=mx.gpu(0))},
                        group2ctx={"there": mx.gpu(0), "here": mx.cpu()})
    for run in range(5):
        np.testing.assert_allclose(executor.forward(x=X * run)[0].asnumpy(), np.exp(np.tanh(2 * X * run)) + 1, 1e-5)
    text = said(executor, False)
    assert text[0] == "forward, 1 graph, 2 islands:" and text[1] == "_fused graph 0"


def test_the_step_that_silently_invalidates_a_capture_is_found() -> None:
    """A query whether a stream is done invalidates the capture without an error, and only the next launch fails."""
    asked = []

    def asks(op: Any, x: Any) -> Any:
        result = x * 2
        asked.append(backend("gpu").xp.cuda.get_current_stream().done)
        return result

    prop("asks", asks, may=True)
    x = sym.transpose(sym.sum(sym.var("x"), axis=0))
    net = sym.sum(sym.transpose(sym.Custom(x, op_type="asks")), axis=0)
    executor = net.bind(mx.gpu(0), {"x": nd.array(X, ctx=mx.gpu(0))})
    for _ in range(4):
        np.testing.assert_allclose(executor.forward()[0].asnumpy(), 2 * X.sum(), 1e-5)
    text = said(executor, False)
    assert [line for line in text if "island" in line][1:] == [
        "custom.asks island: CUDARuntimeError: cudaErrorStreamCaptureInvalidated: operation failed due to a previous "
        "error during capture"]
    assert text[0] == "forward, 2 graphs, 1 island:"


# --------------------------------------------------------------------------- plans that are watched or made again


@needs_compiler
def test_a_monitor_sees_every_run() -> None:
    bound = Bound(rows(), NETS["rows"][1], mx.gpu(0))
    expected = [bound.step() for _ in range(4)][-1]
    seen: list[str] = []
    bound.executor.set_monitor_callback(lambda name, value: seen.append(name))
    assert "graph" not in bound.executor.explain(True)
    for _ in range(4):
        seen.clear()
        bound.step()
        assert len(seen) > 4
    bound.executor.set_monitor_callback(None)
    assert launches(lambda: bound.executor.forward(is_train=True)) == 1
    bound.executor.backward()
    np.testing.assert_array_equal(bound.step()[0], expected[0])


@needs_compiler
def test_a_registration_makes_plans_anew() -> None:
    bound = Bound(sym.MakeLoss(sym.tanh(sym.var("x"))), {"x": X}, mx.gpu(0))
    for _ in range(3):
        bound.step()
    assert "graph 0" in bound.executor.explain(True)
    kernels = REGISTERED["tanh"].kernels
    try:
        REGISTERED["tanh"].kernel("another", bound=True)(lambda call: lambda: call.outs[0].fill(3))
        np.testing.assert_array_equal(bound.step()[0], np.full_like(X, 3))
    finally:
        kernels.pop()


def traced_run(executor: Any) -> None:
    with collect():
        executor.forward(is_train=True)


@pytest.mark.parametrize("look", [lambda executor: executor.profile(1, is_train=True), traced_run],
                         ids=["profile", "trace"])
def test_a_profile_leaves_no_graph_of_other_arrays(look: Callable[[Any], Any]) -> None:
    """Steps hold new states until forward ends, and a captured graph holds the addresses of its own steps' states."""

    @declare(name="_centred", auxiliary=("mean",), states=(0,), mode=True, capturable=True)
    def centred(data: Any, mean: Any) -> None:
        """The data without their mean, which is a state."""

    centred.infer(lambda data, mean: data)
    centred.fill(lambda ins, outs: [ins[0], ins[0] and ins[0][1:]])

    @centred.kernel()
    def _(xp: Any, data: Any, mean: Any, *, is_train: bool) -> Any:
        new = xp.sum(data, axis=0) / data.shape[0]
        return (data - new, new) if is_train else data - mean

    executor = sym.__getattr__("_centred")(sym.var("x"), name="c").simple_bind(mx.gpu(0), "null", x=X.shape)
    for run in range(9):
        x = X * (run + 1)
        np.testing.assert_allclose(executor.forward(is_train=True, x=x)[0].asnumpy(), x - x.mean(0), 1e-5, 1e-6)
        np.testing.assert_allclose(executor.aux_arrays[0].asnumpy(), x.mean(0), 1e-5)
        if run == 4:
            assert said(executor) == ["forward, 1 graph, 0 islands:", "_centred graph 0"]
            look(executor)
    assert said(executor) == ["forward, 1 graph, 0 islands:", "_centred graph 0"]


@needs_compiler
def test_a_trace_has_each_step_once() -> None:
    bound = Bound(rows(), NETS["rows"][1], mx.gpu(0))
    for _ in range(5):
        with collect() as events:
            bound.step()
        assert {row.calls for row in events.rows("operator")} == {1}
        assert sum(span.category == "plan" for span in events.spans) == 2


@pytest.fixture
def ranges(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """Ranges of NVTX that were closed, each with the kernels launched inside."""
    nvtx, found, began = gpu.cuda.nvtx, list[tuple[str, list[str]]](), list[tuple[str, int]]()

    def push(name: str, real: Callable[[str], None] = nvtx.RangePush) -> None:
        began.append((name, len(gpu.kernels)))
        real(name)

    def pop(real: Callable[[], None] = nvtx.RangePop) -> None:
        name, count = began.pop()
        found.append((name, gpu.kernels[count:]))
        real()

    monkeypatch.setattr(nvtx, "RangePush", push)
    monkeypatch.setattr(nvtx, "RangePop", pop)
    return found


@needs_compiler
def test_ranges_name_the_operators_and_nodes_that_kernels_run_for(ranges: list[tuple[str, list[str]]]) -> None:
    x = sym.var("x")
    net = sym.softmax(sym.elemwise_add(sym.tanh(x * 2), x, name="a"), name="s")
    bound = Bound(net, {"x": X}, mx.gpu(0))
    x = nd.array(X, ctx=mx.gpu(0))
    x.attach_grad()
    bound.step(backward=False)
    with collect():
        bound.executor.forward()
    assert ranges == []
    mx.profiler.set_config(profile_nvtx=True)
    mx.profiler.set_state("run")
    try:
        for _ in range(4):
            bound.executor.forward()
            assert ranges == [("_mul_scalar+tanh+elemwise_add a", ["elementwise"]), ("softmax s", ["rows"])]
            ranges.clear()
        with mx.autograd.record():
            y = nd.exp(x)
        y.backward()
        assert [name for name, _ in ranges] == ["exp", "gradient of exp"]
        del ranges[:]
        with pytest.raises(OpError):
            nd.dot(x, x)
        assert [name for name, _ in ranges] == ["dot"]
        del ranges[:]
        nd.exp(nd.ones(3))
        (sym.exp(sym.var("x"))).bind(mx.cpu(), {"x": nd.ones(3)}).forward()
        assert ranges == []
    finally:
        mx.profiler.set_state("stop")
        mx.profiler.set_config(profile_nvtx=False)
        mx.profiler.dumps(reset=True)
    bound.executor.forward()
    assert ranges == []


@needs_compiler
def test_a_step_that_fails_closes_its_range(ranges: list[tuple[str, list[str]]]) -> None:
    def fails(op: Any, x: Any) -> Any:
        raise KeyError("mine")

    prop("failing", fails)
    executor = around("failing").bind(mx.gpu(0), {"x": nd.array(X, ctx=mx.gpu(0))})
    with pytest.raises(KeyError), collect(nvtx=True):
        executor.forward()
    assert len(ranges) == 2 and ranges[1][0].startswith("custom.failing ")


@needs_compiler
def test_other_shapes_have_graphs_of_their_own() -> None:
    bound = Bound(sym.MakeLoss(sym.tanh(sym.var("x"))), {"x": X}, mx.gpu(0))
    for _ in range(3):
        bound.step()
    small = bound.executor.reshape(x=(2, 4))
    for run in range(4):
        np.testing.assert_allclose(small.forward(is_train=True, x=X[:2] + run)[0].asnumpy(), np.tanh(X[:2] + run), 1e-5)
        np.testing.assert_allclose(bound.step(x=X)[0], np.tanh(X), 1e-5)


@needs_compiler
def test_compiled_functions_are_replayed() -> None:
    with mx.gpu(0):
        compiled = jit(lambda x: nn.ops.tanh(x * 2) + 1)
        for run in range(5):
            np.testing.assert_allclose(compiled(nn.Tensor(X + run)).asnumpy(), np.tanh((X + run) * 2) + 1, 1e-5)


# ------------------------------------------------------------------------------------------- inputs and outputs


@needs_compiler
def test_inputs_come_through_pinned_memory_and_nobody_waits(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = Bound(sym.MakeLoss(sym.tanh(sym.var("x"))), {"x": X}, mx.gpu(0))
    executor = bound.executor
    for _ in range(3):
        bound.step()

    def waits(self: Any) -> None:
        raise AssertionError("the host waits for a stream")

    with late(), monkeypatch.context() as patch:
        patch.setattr(gpu.cuda.Stream, "synchronize", waits)
        for run in range(5):
            out = executor.forward(is_train=True, x=(X * run).astype("float64"))[0]  # cast on the way
            assert out is executor.outputs[0]
    np.testing.assert_allclose(out.asnumpy(), np.tanh(X * 4), 1e-5)


@needs_compiler
def test_a_replay_reads_new_values_of_bound_arrays() -> None:
    bound = Bound(sym.MakeLoss(sym.tanh(sym.var("x"))), {"x": X}, mx.gpu(0))
    x = bound.executor.arg_dict["x"]
    for run in range(5):
        x[:] = X + run
        np.testing.assert_allclose(bound.step()[0], np.tanh(X + run), 1e-5)
        x[1] = 0.0
        assert not bound.step()[0][1].any()


@needs_compiler
def test_graphs_are_freed_with_their_executors() -> None:
    bound = Bound(rows(), NETS["rows"][1], mx.gpu(0))
    for _ in range(4):
        bound.step()
    before = sum(block.used for block in machine.MACHINE.blocks)
    del bound
    assert sum(block.used for block in machine.MACHINE.blocks) <= before - 10


# --------------------------------------------------------------------------------------- several streams


def trained(streams: Callable[[], Any]) -> list[Any]:
    """Steps of a network with workspaces, updates and states; each half runs on another stream."""
    mx.random.seed(4)
    net = sym.BatchNorm(sym.FullyConnected(sym.var("x"), sym.var("w"), sym.var("b"), num_hidden=3), *var(
        "gamma", "beta", "mean", "var"), name="norm")
    net = sym.MakeLoss(sym.Dropout(sym.tanh(net), p=0.5))
    bound = Bound(net, {"x": X, "w": np.ones((3, 4)) / 4, "b": np.zeros(3), "gamma": np.ones(3), "beta": np.zeros(3),
                        "mean": np.zeros(3), "var": np.ones(3)}, mx.gpu(0))
    executor = bound.executor
    executor.set_optimizer(mx.optimizer.create("adam", learning_rate=0.1), ["w", "b"])
    found = []
    for run in range(5):
        with streams():
            executor.forward(is_train=True, x=(X * run).astype(np.float32))
        with streams():
            executor.backward()
        with streams():
            executor.update()
        with streams():
            executor.step(x=(X + run).astype(np.float32))
        with streams():
            found += [each.copy() for each in executor.forward()]
            found += [each.copy() for each in (*bound.grads.values(), *executor.aux_arrays)]
    return found


def compiled(streams: Callable[[], Any]) -> list[Any]:
    """A compiled function and its gradients."""
    function = jit(lambda x, y: nn.ops.tanh(x * y) @ y)
    with mx.gpu(0):
        x, y = (nn.Tensor(np.arange(9, dtype=np.float32).reshape(3, 3) / each) for each in (9, 4))
        found = []
        for _ in range(4):
            with streams():
                found.append(function(x, y))
            with streams():
                found += grad(function, (0, 1))(x, y)
    return found


def drawn(streams: Callable[[], Any]) -> list[Any]:
    """Two executors, and eager calls, that draw from one generator in turn."""
    mx.random.seed(4)
    net = sym.Dropout(sym.var("x"), p=0.5) + sym.random.uniform(shape=(3, 4))
    executors = [Bound(net, {"x": X}, mx.gpu(0)).executor for _ in range(2)]
    found = []
    for _ in range(4):
        for executor in executors:
            with streams():
                found.append(executor.forward(is_train=True)[0].copy())
        with streams():
            found.append(nd.random.normal(shape=(3,), ctx=mx.gpu(0)))
    return found


@needs_compiler
@pytest.mark.parametrize("replay", ["1", "0"])
@pytest.mark.parametrize("work", [trained, compiled, drawn])
def test_runs_on_several_streams_come_one_after_the_other(work: Callable[[Any], list[Any]], replay: str, gpu: Gpu,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPREG_REPLAY", replay)
    expected = work(contextlib.nullcontext)
    several = itertools.cycle([gpu.cuda.Stream() for _ in range(3)])
    with late():
        for one, other in zip(expected, work(lambda: next(several)), strict=True):  # the host has not waited before
            np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


@needs_compiler
def test_a_program_with_one_stream_records_no_events(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = Bound(sym.MakeLoss(sym.tanh(sym.var("x"))), {"x": X}, mx.gpu(0))
    for _ in range(4):
        bound.step()
    recorded: list[Any] = []
    monkeypatch.setattr(gpu.cuda.Stream, "record", recorded.append)
    bound.executor.forward(is_train=True)
    bound.executor.backward()
    assert not recorded


@needs_compiler
def test_a_stream_that_captures_a_run_waits_for_no_other(gpu: Gpu) -> None:
    x = nd.array(X, ctx=mx.gpu(0))
    executor = sym.tanh(sym.var("x")).bind(mx.gpu(0), {"x": x})
    executor.forward()
    gpu.cuda.Device().synchronize()
    with (stream := gpu.cuda.Stream(non_blocking=True)):
        stream.begin_capture()
        for step in executor.plan(False).forward.flat:
            step()
        executor._plans.wait()
        graph = stream.end_capture()
    graph.launch(stream)
    stream.synchronize()
    np.testing.assert_allclose(executor.outputs[0].asnumpy(), np.tanh(X), 1e-6)
