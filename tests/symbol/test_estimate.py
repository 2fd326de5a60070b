"""Estimates: operations and bytes of steps, and times that follow from them."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import itertools
from typing import Any

import pytest

import opreg as mx
from opreg.backends.private_operators import PRIVATE
from opreg.core.registry import get
from opreg.symbol.inspect.estimate import H100, H200, Machine
from tests.backends.cuda.test_strict import FIXED, STRICT
from tests.cuda.device import gpus
from tests.cuda.host import COMPILER
from tests.cuda.machine import Machine as Running
from tests.running import Use, eager
from tests.symbol.test_cse import bound

sym = mx.sym

#: A machine with simple figures: a byte takes 1 s, a sum 1 s, a launch 100 s, a kernel in a replay 10 s.
UNIT = Machine("unit", 1.0, {"float32": 1.0}, launch=100.0, node=10.0)


def rows(net: Any, shapes: dict[str, tuple[int, ...]], half: str = "forward", **more: Any) -> dict[str, Any]:
    found = bound(net, shapes, dtype="float32", **{"grad_req": "null", **more}).estimate(machine=UNIT)
    return {row.node: row for row in found.rows if row.half == half}


def mlp(batch: int = 4, width: int = 6) -> Any:
    x = sym.FullyConnected(sym.Variable("data"), num_hidden=width, name="first")
    x = sym.FullyConnected(sym.relu(x, name="relu"), num_hidden=3, name="second")
    return bound(sym.SoftmaxOutput(x, name="softmax"), {"data": (batch, 5)}, dtype="float32")


# ------------------------------------------------------------------------------------------------- counts


def test_the_module_is_known_by_the_name_that_docstrings_say() -> None:
    assert importlib.import_module("opreg.symbol.estimate").H100 is H100


def test_a_perceptron_counts_its_bytes_and_products() -> None:
    found = mlp().estimate()
    forward = {row.node: row for row in found.rows if row.half == "forward"}
    expected = {"first": (4 * (20 + 30 + 6), 4 * 24, 2 * 4 * 5 * 6), "relu": (4 * 24, 4 * 24, 24),
                "second": (4 * (24 + 18 + 3), 4 * 12, 2 * 4 * 6 * 3)}
    assert {name: (forward[name].read, forward[name].written, forward[name].flops) for name in expected} == expected
    products = {"_backward_FullyConnected_data", "_backward_FullyConnected_weight"}
    back = [row for row in found.rows if row.operator in products]
    # The gradients of the first layer's input and weight, of the second's.
    assert sorted(row.flops for row in back) == [144, 144, 240, 240]
    assert found.flops == sum(row.flops for row in found.rows) and found.is_train
    assert found.read == sum(row.read for row in found.rows) and found.written == sum(row.written for row in found.rows)


def test_a_convolution_counts_its_bytes_and_products() -> None:
    net = sym.Convolution(sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    row = rows(net, {"data": (2, 3, 5, 5)})["conv"]
    assert (row.read, row.written) == (4 * (150 + 108 + 4), 4 * 72)
    assert row.flops == 2 * 72 * 3 * 9


def test_arithmetic_of_users_operators_counts() -> None:
    @mx.operator.define(name="test_estimate_outer")
    def outer(x: Any, y: Any) -> Any:
        return x.reshape((-1, 1)) * y.reshape((1, -1))

    outer.infer(lambda x, y: (*x, *y))
    net = outer(sym.Variable("x"), sym.Variable("y"), name="outer")
    assert rows(net, {"x": (3,), "y": (5,)})["outer"].flops == 0
    outer.flops(lambda ins, outs: outs[0][0] * outs[0][1])
    assert rows(net, {"x": (3,), "y": (5,)})["outer"].flops == 15


def test_softmax_reads_once_and_writes_once() -> None:
    row = rows(sym.softmax(sym.Variable("x"), name="softmax"), {"x": (7, 9)})["softmax"]
    assert (row.read, row.written, row.flops) == (4 * 63, 4 * 63, 0)


def test_a_fused_group_is_one_launch_that_reads_its_inputs_once() -> None:
    x, y = sym.Variable("x"), sym.Variable("y")
    (row,) = rows(sym.tanh(x * y + x) * y, {"x": (10,), "y": (10,)}).values()
    assert len(row.operators) == 4
    assert (row.launches, row.read, row.written, row.flops) == (1, 2 * 40, 40, 4 * 10)


@pytest.mark.parametrize("place", ["host", "gpu"])
@pytest.mark.parametrize("widths", [(7,), (16, 8, 4)])
def test_a_training_step_of_dense_layers_is_three_times_forward(widths: tuple[int, ...], place: str) -> None:
    """Each product of forward has two in the gradient; the first has one if no gradient of the data is wanted."""
    x = sym.Variable("data")
    for width in widths:
        x = sym.FullyConnected(x, num_hidden=width)
    inputs = (5, *widths)
    forward = sum(2 * 6 * many * few for many, few in zip(inputs, widths))
    with gpus() if place == "gpu" else contextlib.nullcontext():
        ctx = mx.gpu(0) if place == "gpu" else mx.cpu()
        for reqs, expected in (("write", 3 * forward), ({name: "null" if name == "data" else "write"
                                                         for name in x.list_arguments()},
                                                        3 * forward - 2 * 6 * inputs[0] * inputs[1])):
            found = x.simple_bind(ctx, data=(6, 5), grad_req=reqs).estimate()
            assert found.flops == expected


def multiplied(row: Any) -> bool:
    """Whether the reference of an operator computes a product of matrices."""
    names = []

    def noted(self: Any, name: str, *args: Any) -> Any:
        names.append(name)
        return run(self, name, *args)

    run = Running.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Running, "run", noted)
        eager(Use.of(row, row.dtypes[0]), STRICT)
    return not {"dot", "matmul", "tensordot", "inner", "linalg.matrix_power"}.isdisjoint(names)


#: Operators whose reference kernels weight elements of windows by matrix products. They declare no products, since
#: reading the elements costs more.
WEIGHED = {"_contrib_ROIAlign", "_backward_ROIAlign", "_contrib_PSROIPooling", "_backward__contrib_PSROIPooling"}


def test_operators_that_multiply_say_how_much() -> None:
    """An operator that multiplies matrices declares its operations, also if only plans contain it."""
    first = {row.op: row for row in reversed(FIXED)}
    silent = {name for name, row in first.items()
              if get(name).rules.flops is None and not get(name).traits.traced and multiplied(row)}
    assert silent == WEIGHED
    importlib.import_module("opreg.backends.cuda.operators.private")
    assert "_backward_FullyConnected_parameters" in {op.name for op in PRIVATE}
    for op in PRIVATE:
        made_of_products = op.name.startswith(("_backward_FullyConnected", "_backward_Convolution"))
        assert op.rules.flops is not None or not made_of_products


def test_looked_up_rows_count_and_not_the_table() -> None:
    index, table = sym.Variable("index"), sym.Variable("table")
    net = sym.Embedding(index, table, input_dim=500, output_dim=8, name="find")
    row = rows(net, {"index": (3,), "table": (500, 8)})["find"]
    assert (row.read, row.written) == (4 * 3 + 4 * 3 * 8, 4 * 3 * 8)
    few = sym.Embedding(index, table, input_dim=2, output_dim=8, name="find")
    assert rows(few, {"index": (30,), "table": (2, 8)})["find"].read == 4 * 30 + 4 * 2 * 8
    row = rows(sym.pick(table, index, name="find"), {"index": (500,), "table": (500, 8)})["find"]
    assert row.read == 2 * 4 * 500


def test_memory_that_kernels_of_a_gpu_read_again_counts_again() -> None:
    """BatchNorm reads a sixteenth of its samples before it reads all of them, twice; the gradient of LayerNorm reads
    its inputs once, and long rows again for the data."""
    with gpus():
        net = sym.BatchNorm(sym.Variable("x"), fix_gamma=False)
        found = net.simple_bind(mx.gpu(0), x=(64, 8, 12, 12)).estimate()
        (row,) = [row for row in found.rows if row.operator == "BatchNorm"]
        data = 4 * 64 * 8 * 12 * 12
        assert 2 * data + data // 16 <= row.read < 1.02 * (2 * data + data // 16)
        assert data <= row.written < 1.02 * data
        net = sym.LayerNorm(sym.Variable("x"), sym.Variable("gamma"), sym.Variable("beta"))
        for shape, times in (((1 << 17, 64), 2), ((1 << 12, 8000), 4)):
            found = net.simple_bind(mx.gpu(0), x=shape).estimate()
            (row,) = [row for row in found.rows if row.operator == "_backward_LayerNorm"]
            data = 4 * shape[0] * shape[1]
            assert times * data <= row.read < 1.2 * times * data


def test_views_cost_nothing() -> None:
    net = sym.exp(sym.transpose(sym.reshape(sym.Variable("x"), shape=(6, 2), name="view"), name="turned"))
    (row,) = rows(net, {"x": (3, 4)}).values()
    assert (row.operator, row.read, row.written) == ("exp", 48, 48)


def test_inputs_read_for_their_shape_alone_are_not_counted() -> None:
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    found = bound(net, {"data": (3, 5)}, dtype="float32").estimate()
    reads = {row.operator.removeprefix("_backward_FullyConnected_"): row.read for row in found.rows}
    assert reads["data"] == 4 * (6 + 10) and reads["weight"] == 4 * (6 + 15)


def test_states_that_are_written_over_are_counted() -> None:
    net = sym.sgd_mom_update(sym.Variable("w"), sym.Variable("g"), sym.Variable("m"), lr=0.1, momentum=0.9, name="move")
    row = rows(net, {"w": (8,), "g": (8,), "m": (8,)})["move"]
    assert (row.read, row.written) == (3 * 32, 2 * 32)


def test_sums_of_gradients_and_zeros_are_counted() -> None:
    x = sym.Variable("x")
    net = sym.Group([sym.dot(x, x), sym.BlockGrad(sym.Variable("y"))])
    found = bound(net, {"x": (4, 4), "y": (8,)}, dtype="float32").estimate(machine=UNIT)
    own = [row for row in found.rows if row.kernel == "zeros"]
    assert [(row.read, row.written) for row in own] == [(0, 32)]


def test_an_estimate_runs_nothing() -> None:
    ran = []

    @mx.operator.define(name="test_estimate_watch")
    def watch(x):
        ran.append(x)
        return x * 1

    executor = sym.Custom(sym.Variable("x"), op_type="test_estimate_watch")
    executor = executor.simple_bind(mx.cpu(), x=(3,), grad_req="null")
    del ran[:]
    executor.estimate(is_train=True)
    assert not ran


# -------------------------------------------------------------------------------------------------- times


def test_times_are_the_rooflines_with_the_cost_of_launches() -> None:
    (row,) = rows(sym.exp(sym.Variable("x")), {"x": (4,)}).values()  # 32 bytes, 4 instructions
    assert (row.eager, row.replayed, row.limit) == (100.0, 32.0 + 10.0, "launch")
    (row,) = rows(sym.exp(sym.Variable("x")), {"x": (40,)}).values()
    assert (row.eager, row.replayed, row.limit) == (330.0, 330.0, "memory")
    row = rows(sym.dot(sym.Variable("x"), sym.Variable("y"), name="dot"), {"x": (10, 90), "y": (90, 10)})["dot"]
    assert (row.replayed, row.limit) == (2 * 10 * 10 * 90 + 10.0, "arithmetic")


def test_a_replay_is_launched_once_for_each_half() -> None:
    found = mlp().estimate(machine=UNIT)
    assert found.replayed == pytest.approx(sum(row.replayed for row in found.rows) + 2 * UNIT.launch)
    assert found.eager == pytest.approx(sum(row.eager for row in found.rows))
    alone = mlp().estimate(is_train=False, machine=UNIT)
    assert alone.replayed == pytest.approx(sum(row.replayed for row in alone.rows) + UNIT.launch) and not alone.is_train


def test_a_users_operator_is_an_island_between_two_graphs() -> None:
    @mx.operator.define(name="test_estimate_island")
    def island(x):
        return x * 1

    net = sym.tanh(sym.Custom(sym.exp(sym.Variable("x")), op_type="test_estimate_island", name="own"))
    found = net.simple_bind(mx.cpu(), x=(3,), grad_req="null").estimate(machine=UNIT)
    (row,) = [row for row in found.rows if row.island]
    assert row.node == "own" and row.replayed == row.eager == 100.0 and "an island" in str(found)
    assert found.replayed == sum(row.replayed for row in found.rows) + 2 * UNIT.launch


@pytest.mark.parametrize("train", [False, True])
def test_the_body_of_a_loop_counts_once_for_each_iteration(train: bool) -> None:
    def body(x: Any, state: Any) -> Any:
        return sym.tanh(x) * 2, state

    net = sym.contrib.foreach(body, sym.Variable("data"), sym.Variable("state"))[0]
    req, found = "write" if train else "null", {}
    for rounds in (1, 5):
        executor = net.simple_bind(mx.cpu(), data=(rounds, 6), state=(2,), grad_req=req)
        found[rounds] = {row.operator: row for row in executor.estimate(machine=UNIT).rows}
    name = "_backward_foreach" if train else "_foreach"
    one, five = found[1][name], found[5][name]
    assert five.island and five.launches == 5 * one.launches > 0 and five.flops == 5 * one.flops > 0
    assert five.replayed > 4 * one.replayed - UNIT.launch


def test_a_copy_to_another_device_takes_the_time_of_their_link() -> None:
    with mx.AttrScope(ctx_group="a"):
        x = sym.exp(sym.Variable("x"))
    with mx.AttrScope(ctx_group="b"):
        net = sym.tanh(x)
    executor = net.simple_bind(mx.cpu(), x=(40,), grad_req="null", group2ctx={"a": mx.cpu(0), "b": mx.cpu(1)})
    (row,) = [row for row in executor.estimate(machine=dataclasses.replace(UNIT, link_rate=0.1)).rows
              if row.operator == "_CrossDeviceCopy"]
    assert (row.written, row.replayed, row.limit) == (160, 1600.0 + 10.0, "memory")


def test_dtypes_without_a_rate_are_bytes_alone() -> None:
    net = sym.dot(sym.Variable("x"), sym.Variable("y"), name="dot")
    (row,) = bound(net, {"x": (10, 90), "y": (90, 10)}, grad_req="null", dtype="float64").estimate(machine=UNIT).rows
    assert row.replayed == 8 * (1800 + 100) + 10.0


@pytest.mark.parametrize("field", ["memory_rate", "product_rates", "launch", "node"])
@pytest.mark.parametrize("factor", [1.0, 3.0, 1000.0])
def test_a_better_machine_is_never_slower(field: str, factor: float) -> None:
    value: Any = getattr(H100, field)
    better = {name: rate * factor for name, rate in value.items()} if field == "product_rates" else \
        value * factor if field == "memory_rate" else value / factor
    executor = mlp(64, 512)
    found, before = executor.estimate(machine=dataclasses.replace(H100, **{field: better})), executor.estimate()
    for one, other in zip(*[sorted(each.rows, key=lambda row: (row.half, row.step)) for each in (found, before)]):
        assert one.eager <= other.eager and one.replayed <= other.replayed
    assert found.eager <= before.eager and found.replayed <= before.replayed


def test_no_time_shrinks_with_more_work() -> None:
    found = [mlp(batch, width).estimate() for batch in (1, 16, 1024) for width in (8, 128, 1024)]
    for (i, one), (j, other) in itertools.combinations(enumerate(found), 2):
        if i % 3 <= j % 3:
            assert one.eager <= other.eager and one.replayed <= other.replayed and one.flops <= other.flops
            assert one.launches <= other.launches
    for each in found:
        assert all(row.replayed <= row.eager for row in each.rows)


# --------------------------------------------------------------------------------------------- where and how


def test_a_plan_of_a_gpu_counts_its_kernels() -> None:
    """Each launch of this plan is a kernel of opreg, and is counted."""
    x = sym.Variable("x")
    net = sym.softmax(sym.LayerNorm(sym.tanh(x * 0.5 + 1.0), sym.Variable("gamma"), sym.Variable("beta")))
    with gpus() as xp:
        executor = net.simple_bind(mx.gpu(0), x=(6, 8))
        found = executor.estimate()
        by_operator = {(row.half, row.operator): row.launches for row in found.rows}
        assert by_operator["forward", "softmax"] == by_operator["forward", "LayerNorm"] == 1
        assert by_operator["forward", "_fused"] == by_operator["backward", "_fused"] == 1
        assert all(row.kernel == "cuda" for row in found.rows)
        if COMPILER is not None:
            executor.forward(is_train=True)
            executor.backward(mx.nd.ones((6, 8), ctx=mx.gpu(0)))
            assert len(xp.kernels) == found.launches == executor.estimate().launches


def test_graphs_with_value_dependent_shapes_have_estimates() -> None:
    x, mask = sym.Variable("x"), sym.Variable("mask")
    executor = (sym.contrib.boolean_mask(sym.exp(x), mask) * 2).simple_bind(mx.cpu(), x=(4, 2), mask=(4,))
    before = executor.estimate(machine=UNIT)
    executor.arg_dict["mask"][:] = [1, 0, 1, 1]
    executor.forward(is_train=True)
    found = executor.estimate(machine=UNIT)
    assert before.launches < found.launches
    assert {"exp", "_contrib_boolean_mask"} <= {row.operator for row in found.rows}
    assert "expected on unit" in str(found)


def test_an_estimate_prints_a_table() -> None:
    found = mlp().estimate()
    lines = str(found).splitlines()
    assert lines[0].startswith("training plan, expected on H100: ") and f"{found.launches} launches" in lines[0]
    assert "memory 2950 GB/s" in lines[1] and len(lines) == 3 + len(found.rows)
    assert [row.replayed for row in found.rows] == sorted((row.replayed for row in found.rows), reverse=True)
    short = found.table(2).splitlines()
    assert len(short) == 6 and short[-1].startswith(f"and {len(found.rows) - 2} more steps")
    assert f"{len(found.rows)} steps on H100" in repr(found)


def test_machine_must_be_a_machine_or_a_name() -> None:
    with pytest.raises(mx.MXNetError, match=r"'H10': expected a Machine, or the name of one.* mean 'H100'"):
        mlp().estimate(machine="H10")


def test_a_machine_is_named_or_that_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mlp().estimate().machine is H100 and mlp().estimate(machine="H200").machine is H200
    assert mlp().estimate(machine="H200").replayed <= mlp().estimate(machine="H100").replayed
    with gpus() as xp:
        executor = sym.exp(sym.Variable("x")).simple_bind(mx.gpu(0), x=(3,), grad_req="null")
        monkeypatch.setattr(xp.cuda.runtime, "getDeviceProperties", lambda device: {"name": b"NVIDIA H100 80GB HBM3"})
        assert executor.estimate().machine is H100
        monkeypatch.setattr(xp.cuda.runtime, "getDeviceProperties", lambda device: {"name": b"NVIDIA H200 NVL"})
        assert executor.estimate().machine is H200
