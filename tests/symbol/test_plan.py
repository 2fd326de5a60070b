"""Plans: compiled steps that run as one, state that a run restores, and code shared by equal groups and nodes."""

from __future__ import annotations

import copy
import gc
import importlib.util
import itertools
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.backends.addressing import bounds_of, overlap
from opreg.backends.numba import compiler
from opreg.backends.numba import elementwise as jit
from opreg.core.addresses import address_of
from opreg.core.attrs import Schema
from opreg.core.mode import MODE, quiet
from opreg.core.op import Op
from opreg.elementwise.expression import trace
from opreg.errors import ShapeError
from opreg.symbol import infer
from opreg.symbol.plan import instrument_all

sym, nd = mx.sym, mx.nd
MODES = ["numpy", pytest.param("numba", marks=pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason="needs numba"))]
both = pytest.mark.parametrize("kernels", MODES)
compiled = pytest.mark.parametrize("kernels", MODES[1:])


@pytest.fixture(autouse=True)
def chosen(request: pytest.FixtureRequest) -> Any:
    """Uses the kernels that a test asks for."""
    with compiler.use(request.node.callspec.params["kernels"] if hasattr(request.node, "callspec")
                      and "kernels" in request.node.callspec.params else "numpy"):
        yield


def chain(x: Any, count: int) -> Any:
    for i in range(count):
        x = sym.relu(x) if i % 4 == 0 else x * 0.99 if i % 4 == 1 else -x if i % 4 == 2 else x + 1.0
    return x


def bound(net: Any, **values: Any) -> Any:
    executor = net.simple_bind(mx.cpu(), **{name: np.shape(value) for name, value in values.items()})
    for name, value in values.items():
        executor.arg_dict[name][:] = value
    return executor


def by_hand(x: Any, count: int) -> Any:
    slope = np.ones_like(x)
    for i in range(count):
        if i % 4 == 0:
            slope = slope * (x > 0)
            x = np.maximum(x, 0)
        else:
            x = x * np.float32(0.99) if i % 4 == 1 else -x if i % 4 == 2 else x + np.float32(1)
            slope = slope * np.float32(0.99) if i % 4 == 1 else -slope if i % 4 == 2 else slope
    return x, slope


# --------------------------------------------------------------------------------------- segments as one call


@both
def test_a_long_chain_equals_its_formula(kernels: str) -> None:
    x = np.random.default_rng(0).random(16, "float32")
    executor = bound(chain(sym.Variable("x"), 200), x=x)
    value, slope = by_hand(x, 200)
    for _ in range(3):
        np.testing.assert_allclose(executor.forward(is_train=True)[0].asnumpy(), value, rtol=1e-6)
        executor.backward(nd.ones((16,)) * 2)
        np.testing.assert_allclose(executor.grad_arrays[0].asnumpy(), 2 * slope, rtol=1e-6)
    plan = executor.plan(True)
    assert plan.forward.plain and plan.backward.plain
    assert len(plan.forward.steps) > 1
    if kernels == "numba":
        assert len(plan.forward.flat) == 1 and plan.forward.native is plan.forward.flat[0]
    else:
        assert plan.forward.native is None


@compiled
def test_joined_functions_run_in_order_and_hold_their_arrays(kernels: str) -> None:
    expression = trace(lambda x: x * 2.0 + 1.0, 1)
    x = np.arange(5, dtype="float32")
    arrays = [x, *[np.empty_like(x) for _ in range(3)]]
    functions = [jit.bound(expression, [a], [b]) for a, b in itertools.pairwise(arrays)]
    assert functions[0].join([]) is functions[0]
    whole, out = functions[0].join(functions[1:]), arrays[-1]
    del arrays, functions
    gc.collect()
    whole()
    np.testing.assert_array_equal(out, 8 * x + 7)


def test_steps_of_products_and_losses_do_not_depend_on_modes() -> None:
    y = sym.relu(sym.FullyConnected(sym.Variable("x"), num_hidden=96))
    y = sym.SoftmaxOutput(sym.FullyConnected(y, num_hidden=10), name="softmax")
    with compiler.use("numpy"):
        executor = y.simple_bind(mx.cpu(), x=(64, 784), softmax_label=(64,))
        executor.forward(is_train=True)
        executor.backward()
    plan = executor.plan(True)
    assert plan.forward.plain and plan.backward.plain
    assert plan.forward.native is None


def _watched(name: str, seen: list[str]) -> Any:
    """An instrument that records, under a name, when a step begins and ends."""

    def watch(work: Any) -> None:
        seen.append(f"{name} {{")
        work()
        seen.append(f"}} {name}")

    return watch


@both
def test_an_instrument_is_called_around_each_step_and_can_be_removed(kernels: str) -> None:
    executor = chain(sym.Variable("x"), 3).simple_bind(mx.cpu(), x=(4,))
    plan, seen = executor.plan(True), list[str]()
    executor.forward(is_train=True)
    segment, count = plan.forward, sum(bool(step.run) for step in plan.forward.steps)
    before = segment.plain, segment.native

    def outer(number: int, step: Any) -> Any:
        return _watched("outer", seen) if step.run else None

    def around(steps: Any, run: Any) -> None:
        seen.append(f"run of {len(steps)}")
        run()

    first = segment.instrument(outer, around)
    inner = segment.instrument(lambda number, step: _watched("inner", seen) if step.run else None, innermost=True)
    assert (segment.plain, segment.native) == (False, None)
    executor.forward(is_train=True, x=np.ones(4, "float32"))
    step = ["outer {", "inner {", "} inner", "} outer"]
    assert seen == [f"run of {len(segment.steps)}", *step * count]
    watched = executor.outputs[0].asnumpy()
    segment.detach(first)
    segment.detach(inner)
    assert (segment.plain, segment.native) == before
    seen.clear()
    executor.forward(is_train=True)
    assert not seen
    np.testing.assert_array_equal(executor.outputs[0].asnumpy(), watched)


def test_instruments_of_all_plans_see_existing_and_later_plans() -> None:
    old, seen = chain(sym.Variable("x"), 2).simple_bind(mx.cpu(), x=(4,)), list[int]()
    old.forward()
    detach = instrument_all(lambda number, step: None, lambda steps, run: (seen.append(len(steps)), run()))
    try:
        new = chain(sym.Variable("x"), 2).simple_bind(mx.cpu(), x=(4,))
        old.forward()
        new.forward()
        assert len(seen) == 2
    finally:
        detach()
    old.forward()
    new.forward()
    assert len(seen) == 2


class Fragile(mx.operator.CustomOp):
    seen: list[Any] = []

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.seen.append((MODE.recording, MODE.training, mx.context.current_context()))
        if in_data[0].asnumpy()[0] < 0:
            raise KeyError("negative")
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("plan_fragile")
class FragileProp(mx.operator.CustomOpProp):
    def create_operator(self, *_: Any) -> Fragile:
        return Fragile()


@both
def test_errors_are_named_between_other_steps_and_leave_all_as_it_was(kernels: str) -> None:
    net = chain(sym.Custom(sym.Variable("x") * 2 - 1, op_type="plan_fragile", name="weak"), 8)
    good, bad = np.full(4, 3, "float32"), np.full(4, -3, "float32")
    executor = net.simple_bind(mx.cpu(1), x=(4,))
    executor.forward(x=good)
    segment = executor.plan(False).forward
    assert not segment.plain and segment.native is None
    before = np.geterr()
    with mx.autograd.record(), pytest.raises(KeyError) as caught:
        executor.forward(x=bad)
    place = next(i for i, step in enumerate(segment.steps) if step.node is not None and step.node.name == "weak")
    notes = "\n".join(caught.value.__notes__)
    assert "node 'weak'" in notes and f"step {place} of {len(segment.steps)}" in notes
    assert Fragile.seen[-1] == (False, False, mx.cpu(1))
    assert (MODE.recording, MODE.training, mx.context.current_context()) == (False, False, mx.cpu())
    assert np.geterr() == before
    np.testing.assert_allclose(executor.forward(x=good)[0].asnumpy(), by_hand(good * 2 - 1, 8)[0], rtol=1e-6)


# ------------------------------------------------------------------------------ memory that a run does not write


@both
def test_no_warnings_and_nan_is_a_result(kernels: str) -> None:
    executor = bound(sym.log(sym.Variable("x")) * 2.0 + 1.0, x=np.float32([-1, 0, 1, np.nan]))
    with np.errstate(all="raise"):
        for _ in range(3):
            found = executor.forward(is_train=True)[0].asnumpy()
            executor.backward(nd.ones((4,)))
        assert np.geterr()["divide"] == "raise"
    np.testing.assert_array_equal(found, [np.nan, -np.inf, 1, np.nan])
    assert executor.grad_arrays[0].asnumpy()[1] == np.inf


@both
def test_forward_runs_without_warnings_and_while_recording(kernels: str) -> None:
    executor = bound(chain(sym.Variable("x"), 12), x=np.ones(3, "float32"))
    wanted = [executor.forward()[0].asnumpy() for _ in range(2)][-1]
    np.testing.assert_array_equal(quiet(executor.forward)[0].asnumpy(), wanted)
    with mx.autograd.record():
        out = executor.forward()[0]
        assert MODE.recording
    assert out._entry is None


@both
def test_a_monitor_can_be_set_and_removed(kernels: str) -> None:
    executor, seen = bound(chain(sym.Variable("x"), 8), x=np.ones(3, "float32")), []
    for _ in range(2):
        executor.forward()
    executor.set_monitor_callback(lambda name, value: seen.append(name))
    executor.forward()
    assert len(seen) == 8
    executor.set_monitor_callback(None)
    executor.forward()
    assert len(seen) == 8


@both
def test_threads_run_executors_of_their_own(kernels: str) -> None:
    net, found = chain(sym.Variable("x"), 100), {}

    def work(number: int) -> None:
        with compiler.use(kernels):
            executor = bound(net, x=np.full(16, number / 4, "float32"))
            for _ in range(50):
                executor.forward(is_train=True)
                executor.backward(nd.ones((16,)))
        found[number] = executor.outputs[0].asnumpy(), executor.grad_arrays[0].asnumpy()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        for got, want in zip(found[number], by_hand(np.full(16, number / 4, "float32"), 100)):
            np.testing.assert_allclose(got, want, rtol=1e-6)


# --------------------------------------------------------------------------------------------- head gradients


class Own(mx.nd.NDArray):
    __slots__ = ()


@pytest.mark.parametrize("given_as", [
    nd.array, lambda g: [nd.array(g)], lambda g: np.asarray(g), lambda g: [np.asarray(g)],
    lambda g: nd.array(g, dtype="float64"), lambda g: {"y_output": nd.array(g)}, lambda g: Own(nd.array(g)),
], ids=["array", "list", "numpy", "numpy in a list", "float64", "dict", "subclass"])
def test_head_gradients_are_copied(given_as: Any) -> None:
    executor = bound(sym.sin(sym.Variable("x"), name="y"), x=np.zeros(3, "float32"))
    head = given_as([1.0, 2.0, 3.0])
    if isinstance(head, np.ndarray):
        head = [head]
    executor.forward(is_train=True)
    executor.backward(head)
    assert executor.grad_arrays[0].asnumpy().tolist() == [1, 2, 3]
    executor.forward(is_train=True)
    executor.backward(executor.outputs[0])
    assert executor.grad_arrays[0].asnumpy().tolist() == [0, 0, 0]


def test_a_head_gradient_of_another_shape_is_refused() -> None:
    executor = bound(sym.Variable("x") * 2, x=np.zeros(3, "float32"))
    executor.forward(is_train=True)
    with pytest.raises(ShapeError, match=r"has shape \(2,\), expected \(3,\)"):
        executor.backward(nd.ones((2,)))


def test_losses_take_no_head_gradient() -> None:
    executor = bound(sym.MakeLoss(sym.Variable("x") * 2), x=np.zeros(3, "float32"))
    executor.forward(is_train=True)
    executor.backward(nd.ones((3,)) * 7)
    assert executor.grad_arrays[0].asnumpy().tolist() == [2, 2, 2]


# ------------------------------------------------------------------------------------------- made once, shared


def test_equal_groups_share_an_expression() -> None:
    executor = bound(chain(sym.Variable("x"), 640), x=np.ones(4, "float32"))
    nodes = [step.node for step in executor.plan(False).forward.steps]
    assert len(nodes) == 10 and len({id(node.attrs["expression"]) for node in nodes}) == 1


def test_groups_that_differ_in_a_constant_are_different() -> None:
    x = sym.Variable("x")
    for make, number in ((sym.zeros_like, 0), (sym.ones_like, 1)):
        executor = bound(sym.broadcast_mul(sym.exp(x), make(x)) + x, x=np.zeros(2, "float32"))
        assert executor.forward()[0].asnumpy().tolist() == [number] * 2


def test_the_graph_of_a_symbol_is_made_once() -> None:
    y = sym.Variable("x") * 2
    assert y._graph() is y._graph()
    y._set_attr(lr_mult="3")
    assert y.attr_dict()[y.name]["lr_mult"] == "3"


def test_a_symbol_is_renamed_and_its_copies_are_not() -> None:
    x = sym.Variable("x")
    y = sym.sin(x, name="y")
    made, kept = y + 1, copy.copy(y)
    assert y._graph() is y._graph() and made.list_arguments() == ["x"]
    y._set_attr(name="z", lr_mult="3")
    x._set_attr(name="w")
    assert (y.name, y.list_outputs(), y.list_attr()) == ("z", ["z_output"], {"lr_mult": "3", "__lr_mult__": "3"})
    assert (kept.name, kept.list_arguments()) == ("y", ["x"])
    assert made.list_arguments() == ["w"]
    left, right = copy.deepcopy([y, made])
    assert (left + right).list_arguments() == ["w"]
    assert made.eval(w=nd.zeros(1))[0].asnumpy().tolist() == [1]


def test_users_rules_are_called_for_every_node() -> None:
    asked: list[Any] = []

    @mx.operator.register("plan_asked")
    class Asked(FragileProp):
        def infer_shape(self, in_shape: Any) -> Any:
            asked.append(in_shape)
            return super().infer_shape(in_shape)

    x = sym.Variable("x")
    net = sym.Group([sym.Custom(x, op_type="plan_asked") for _ in range(3)])
    assert net.infer_shape(x=(2,))[1] == [(2,)] * 3 and len(asked) == 3


def test_an_inferred_input_reaches_all_its_readers() -> None:
    x, y, z = map(sym.Variable, "xyz")
    early = x + y  # nothing is known of either
    net = sym.Group([early, sym.relu(x) + z, sym.FullyConnected(early, num_hidden=2, name="fc")])
    arguments, outputs, _ = net.infer_shape(z=(4, 3))
    assert dict(zip(net.list_arguments(), arguments)) == {
        "x": (4, 3), "y": (4, 3), "z": (4, 3), "fc_weight": (2, 3), "fc_bias": (2,)}
    assert outputs == [(4, 3), (4, 3), (4, 2)]
    assert set(net.infer_type(z="float64")[0]) == {np.float64}


def test_specs_of_earlier_nodes_are_kept() -> None:
    graph = (sym.Variable("x") * 2)._graph()
    x, y = graph.nodes
    before = infer.infer(graph, {x: (3,)}, {})
    longer = sym.relu(sym.Symbol(((y, 0),)))._graph()
    found = infer.infer(longer, {}, {}, before)
    assert found[y] is before[y] and found[longer.nodes[-1]] == before[y]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_restored(enabled: bool) -> None:
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        bound(sym.Variable("x") * 2, x=np.ones(2)).forward()
        assert gc.isenabled() is enabled
        with pytest.raises(ShapeError):
            (sym.Variable("x") + sym.Variable("y")).simple_bind(mx.cpu(), x=(2,), y=(3,))
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()


@pytest.mark.parametrize("steps", [*itertools.product([1, 2, -1, -3], repeat=2)])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
def test_bounds_are_those_of_the_numbers(steps: tuple[int, int], axes: tuple[int, int]) -> None:
    whole = np.zeros((9, 8), "float32").transpose(axes)
    for view in (whole[::steps[0], ::steps[1]], whole[1:5, 2:4][::steps[0], ::steps[1]], whole[3, ::steps[1]]):
        assert bounds_of(view) == np.lib.array_utils.byte_bounds(view)
        first, last = bounds_of(view)
        assert bounds_of(view, 1000) == (1000 + first - address_of(view), 1000 + last - address_of(view))


@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12), st.sampled_from([1, 2, -1]), st.booleans()),
                min_size=1, max_size=6))
def test_overlaps_are_those_of_pairs(parts: list[tuple[int, int, int, bool]]) -> None:
    memory = np.zeros(80, "float32")
    arrays = [memory[start:start + 2 * count:2][:count] if step == 2 else memory[start:start + count][::step]
              for start, count, step, _ in parts]
    written = {number for number, part in enumerate(parts) if part[3]}
    wanted = any(number != other and np.may_share_memory(array, arrays[other])
                 for number, array in enumerate(arrays) for other in written)
    assert overlap(map(bounds_of, arrays), written) is wanted


def test_a_kernel_that_adds_is_chosen_where_gradients_are_added() -> None:
    asked = []

    def adding(call):
        asked.append(list(call.reqs))
        return lambda: np.add(call.outs[0], call.ins[0] * 3, call.outs[0]) if call.reqs[0] == "add" else np.multiply(
            call.ins[0], 3, call.outs[0])

    gradient = Op("adding_gradient", Schema([]), ("g",))
    gradient.kernel()(lambda xp, g: g * 3)
    gradient.kernel("adds", bound=True, adds=True)(adding)
    op = Op("tripled", Schema([]), ("data",))
    op.kernel()(lambda xp, data: data * 3)
    op.grad(lambda g, ins, outs: (gradient(g),))
    gradient.where = op.where = None  # as if they were built in
    for req, expected in (("add", [13, 16, 19]), ("write", [3, 3, 3])):
        executor = op(sym.var("x")).simple_bind(mx.cpu(), grad_req=req, x=(2,))
        executor.grad_dict["x"][:] = 10
        for number in expected:
            executor.forward(is_train=True)
            executor.backward([nd.ones(2)])
            assert executor.grad_dict["x"].asnumpy().tolist() == [number, number]
        assert asked.pop() == [req] and not asked
