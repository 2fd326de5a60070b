"""Profiles: their rows and counts, and unchanged results afterwards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.core.registry import get
from opreg.errors import OpError
from opreg.symbol.inspect import profile as profiling
from tests.symbol.test_cse import bound, results

sym, nd = mx.sym, mx.nd


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """Figures of a small machine, since measuring this one takes longer than all tests."""
    monkeypatch.setattr(profiling, "memory_rate", lambda ctx: 1e9)
    monkeypatch.setattr(profiling, "product_rate", lambda ctx, dtype: 1e10)


def network() -> Any:
    x = sym.FullyConnected(sym.Variable("data"), num_hidden=8, name="fc")
    x = sym.BatchNorm(sym.tanh(x * 0.5 + 1.0), fix_gamma=False, name="norm")
    return sym.reshape(sym.Dropout(x, p=0.5, name="drop"), shape=(-1,))


def executor(**more: Any) -> Any:
    return bound(network(), {"data": (4, 6)}, dtype="float32", **more)


def by_node(found: Any, half: str = "forward") -> dict[str, Any]:
    return {row.node: row for row in found.rows if row.half == half}


# ------------------------------------------------------------------------------------------------- rows


def test_rows_are_the_steps_that_run_slowest_first():
    bound_to = executor()
    found, plan = bound_to.profile(runs=3), bound_to.plan(True)
    ran = [(half, i) for half, segment in (("forward", plan.forward), ("backward", plan.backward))
           for i, step in enumerate(segment.steps) if step.run]
    assert sorted((row.half, row.step) for row in found.rows) == sorted(ran)
    assert [row.seconds for row in found.rows] == sorted((row.seconds for row in found.rows), reverse=True)
    assert all(0 < row.seconds <= row.median for row in found.rows)
    assert math.isclose(sum(row.share for row in found.rows), 1.0, rel_tol=1e-6)
    assert found.is_train and found.runs == 3 and found.seconds > 0


def test_a_product_counts_its_bytes_and_arithmetic():
    row = by_node(executor().profile(1))["fc"]
    assert (row.operator, row.read, row.written) == ("FullyConnected", 4 * (4 * 6 + 8 * 6 + 8), 4 * 4 * 8)
    assert row.flops == 2 * 4 * 6 * 8
    assert row.flop_rate == pytest.approx(row.flops / row.seconds)
    assert row.blas_share == pytest.approx(row.flop_rate / 1e10)
    assert row.rate == pytest.approx((row.read + row.written) / row.seconds)
    assert row.memory_share == pytest.approx(row.rate / 1e9)


def test_a_fused_step_counts_its_inputs_and_outputs_once():
    x, y = sym.Variable("x"), sym.Variable("y")
    found = bound(sym.tanh(x * y + x) * y, {"x": (10,), "y": (10,)}, grad_req="null").profile(1)
    (row,) = found.rows
    assert row.operator == "_fused" and row.operators == ("elemwise_mul", "elemwise_add", "tanh", "elemwise_mul")
    assert (row.read, row.written, row.flops) == (2 * 80, 80, None)
    assert row.operators[2] in str(found)


def test_unread_inputs_are_not_counted():
    backward = by_node(bound(sym.FullyConnected(sym.Variable("data"), num_hidden=2, no_bias=True, name="fc"),
                             {"data": (3, 5)}).profile(1), "backward")
    assert {row.read for row in backward.values()} <= {8 * (6 + 10), 8 * (6 + 15)}


def test_inference_and_empty_plans_have_profiles():
    assert not executor().profile(1, is_train=False).is_train
    assert not executor(grad_req="null").profile(1).is_train
    assert bound(sym.Group([sym.Variable("x")]), {"x": (3,)}, grad_req="null").profile(1).rows == []


def test_a_profile_prints_a_table():
    found = executor().profile(2)
    lines = str(found).splitlines()
    assert "training plan, least of 2 runs" in lines[0] and "memory 1.0 GB/s, products in float32 10.0" in lines[1]
    assert len(lines) == 3 + len(found.rows)
    assert len({line.index("kernel,") if "kernel, operator" in line else 0 for line in lines}) == 2
    short = found.table(2).splitlines()
    assert len(short) == 6 and short[-1].startswith(f"and {len(found.rows) - 2} more steps")


@pytest.mark.parametrize("runs", [0, -1, 2.5, "many"])
def test_runs_are_a_positive_number(runs):
    with pytest.raises(mx.MXNetError, match="expected a positive number"):
        executor().profile(runs)


# -------------------------------------------------------------------------------------- state after a profile


@pytest.mark.parametrize("grad_req", ["write", "add"])
def test_a_profile_changes_no_state(grad_req):
    """Outputs, gradients, states and random numbers do not change."""
    ours, theirs = executor(grad_req=grad_req), executor(grad_req=grad_req)
    for each in (ours, theirs):
        mx.random.seed(3)
        each.forward(is_train=True)
        each.backward(nd.ones((32,)))
    before = [array.asnumpy() for array in (*ours.outputs, *ours.grad_arrays, *ours.aux_arrays)]
    mx.random.seed(3)
    expected = mx.nd.random.uniform(shape=(3,)).asnumpy()
    mx.random.seed(3)
    ours.profile(2)
    np.testing.assert_array_equal(mx.nd.random.uniform(shape=(3,)).asnumpy(), expected)
    for array, want in zip((*ours.outputs, *ours.grad_arrays, *ours.aux_arrays), before, strict=True):
        np.testing.assert_array_equal(array.asnumpy(), want)
    for got, want in zip(results(ours), results(theirs), strict=True):
        np.testing.assert_array_equal(got, want)


def test_updates_are_undone():
    net = sym.sgd_mom_update(*[sym.Variable(name) for name in ("weight", "grad", "mom")], lr=0.1, momentum=0.9)
    bound_to = bound(net, dict.fromkeys(("weight", "grad", "mom"), (3,)), grad_req="null", dtype="float32")
    before = bound_to.arg_dict["mom"].asnumpy()
    bound_to.profile(3)
    np.testing.assert_array_equal(bound_to.arg_dict["mom"].asnumpy(), before)


def test_backward_after_a_profile_is_right():
    x = sym.Variable("x")
    bound_to = bound(sym.tanh(sym.exp(x)), {"x": (3,)})
    bound_to.forward(is_train=True)
    bound_to.arg_dict["x"][:] = 0.25
    bound_to.profile(1)
    bound_to.backward(nd.ones((3,), dtype="float64"))
    e = math.exp(0.25)
    np.testing.assert_allclose(bound_to.grad_dict["x"].asnumpy(), [(1 - math.tanh(e) ** 2) * e] * 3)


# ------------------------------------------------------------------------------------------------- arithmetic

CASES = [
    ("FullyConnected", {"num_hidden": 3}, [(4, 5), (3, 5), (3,)], 2 * 4 * 5 * 3),
    ("FullyConnected", {"num_hidden": 3, "flatten": False}, [(2, 4, 5), (3, 5), (3,)], 2 * 8 * 5 * 3),
    ("_backward_FullyConnected_data", {"num_hidden": 3}, [(4, 3), (3, 5), (4, 5)], 2 * 4 * 5 * 3),
    ("_backward_FullyConnected_weight", {"num_hidden": 3}, [(4, 3), (4, 5), (3, 5)], 2 * 4 * 5 * 3),
    ("dot", {}, [(4, 5), (5, 3)], 2 * 4 * 5 * 3),
    ("dot", {"transpose_a": True}, [(5, 4), (5, 3)], 2 * 4 * 5 * 3),
    ("_backward_dot_lhs", {}, [(4, 3), (5, 3), (4, 5)], 2 * 4 * 5 * 3),
    ("_backward_dot_rhs", {}, [(4, 3), (4, 5), (5, 3)], 2 * 4 * 5 * 3),
    ("batch_dot", {}, [(2, 4, 5), (2, 5, 3)], 2 * 2 * 4 * 5 * 3),
    ("batch_dot", {"transpose_a": True, "transpose_b": True}, [(2, 5, 4), (2, 3, 5)], 2 * 2 * 4 * 5 * 3),
    ("_npi_matmul", {}, [(4, 5), (5, 3)], 2 * 4 * 5 * 3),
    ("_npi_matmul", {}, [(2, 4, 5), (5,)], 2 * 2 * 4 * 5),
    ("_linalg_gemm2", {}, [(2, 4, 5), (2, 5, 3)], 2 * 2 * 4 * 5 * 3),
    ("_linalg_gemm2", {"transpose_a": True}, [(5, 4), (5, 3)], 2 * 4 * 5 * 3),
    ("_linalg_gemm2", {"axis": 0, "transpose_a": True}, [(5, 2, 4), (5, 2, 3)], 2 * 2 * 4 * 5 * 3),
    ("_linalg_gemm", {}, [(4, 5), (5, 3), (4, 3)], 2 * 4 * 5 * 3),
    ("_linalg_syrk", {}, [(4, 5)], 2 * 4 * 4 * 5),
    ("_linalg_trmm", {}, [(4, 4), (4, 3)], 2 * 4 * 4 * 3),
    ("_linalg_trsm", {}, [(4, 4), (4, 3)], 4 * 4 * 3),
    ("Convolution", {"kernel": (3, 3), "num_filter": 6, "pad": (1, 1)}, [(2, 4, 7, 5), (6, 4, 3, 3), (6,)],
     2 * (2 * 6 * 7 * 5) * 4 * 9),
    ("Convolution", {"kernel": (3,), "num_filter": 6, "num_group": 2}, [(2, 4, 7), (6, 2, 3), (6,)],
     2 * (2 * 6 * 5) * 2 * 3),
    ("Convolution", {"kernel": (1, 1), "num_filter": 6, "layout": "NHWC"}, [(2, 7, 5, 4), (6, 1, 1, 4), (6,)],
     2 * (2 * 6 * 7 * 5) * 4),
    ("_backward_Convolution_data", {"kernel": (3, 3), "num_filter": 6, "pad": (1, 1)},
     [(2, 6, 7, 5), (6, 4, 3, 3), (2, 4, 7, 5)], 2 * (2 * 6 * 7 * 5) * 4 * 9),
    ("_backward_Convolution_weight", {"kernel": (3, 3), "num_filter": 6, "pad": (1, 1)},
     [(2, 6, 7, 5), (2, 4, 7, 5), (6, 4, 3, 3)], 2 * (2 * 6 * 7 * 5) * 4 * 9),
    ("Deconvolution", {"kernel": (2, 2), "num_filter": 6, "stride": (2, 2)}, [(2, 4, 3, 3), (4, 6, 2, 2)],
     2 * (2 * 4 * 3 * 3) * 6 * 4),
    ("_backward_Deconvolution_data", {"kernel": (2, 2), "num_filter": 6, "stride": (2, 2)},
     [(2, 6, 6, 6), (4, 6, 2, 2), (2, 4, 3, 3)], 2 * (2 * 4 * 3 * 3) * 6 * 4),
    ("_backward_Deconvolution_weight", {"kernel": (2, 2), "num_filter": 6, "stride": (2, 2)},
     [(2, 6, 6, 6), (2, 4, 3, 3), (4, 6, 2, 2)], 2 * (2 * 4 * 3 * 3) * 6 * 4),
    ("_contrib_interleaved_matmul_selfatt_qk", {"heads": 2}, [(7, 3, 2 * 3 * 5)], 2 * (3 * 2 * 7 * 7) * 5),
    ("_contrib_interleaved_matmul_selfatt_valatt", {"heads": 2}, [(7, 3, 2 * 3 * 5), (6, 7, 7)],
     2 * (3 * 2 * 7 * 7) * 5),
    ("_contrib_interleaved_matmul_encdec_qk", {"heads": 2}, [(7, 3, 10), (4, 3, 20)], 2 * (3 * 2 * 7 * 4) * 5),
    ("_contrib_interleaved_matmul_encdec_valatt", {"heads": 2}, [(4, 3, 20), (6, 7, 4)], 2 * (3 * 2 * 7 * 4) * 5),
    ("_backward_interleaved_matmul_selfatt_qk", {"heads": 2}, [(6, 7, 7), (7, 3, 30)], 4 * (3 * 2 * 7 * 7) * 5),
    ("_backward_interleaved_matmul_encdec_qk", {"heads": 2}, [(6, 7, 4), (7, 3, 10), (4, 3, 20)],
     4 * (3 * 2 * 7 * 4) * 5),
    ("_backward_interleaved_matmul_selfatt_valatt", {"heads": 2}, [(7, 3, 10), (7, 3, 30), (6, 7, 7)],
     4 * (3 * 2 * 7 * 7) * 5),
    ("_contrib_DeformableConvolution", {"kernel": (3, 3), "num_filter": 6, "pad": (1, 1)},
     [(2, 4, 7, 5), (2, 18, 7, 5), (6, 4, 3, 3), (6,)], 2 * (2 * 6 * 7 * 5) * 4 * 9),
    ("RNN", {"state_size": 6, "num_layers": 1, "mode": "lstm"}, [(7, 2, 5), (4 * 6 * 11 + 48,), (1, 2, 6), (1, 2, 6)],
     2 * 7 * 2 * 4 * 6 * (5 + 6)),
    ("RNN", {"state_size": 6, "num_layers": 2, "mode": "gru", "bidirectional": True},
     [(7, 2, 5), (2 * (18 * 11 + 36) + 2 * (18 * 18 + 36),), (4, 2, 6)],
     2 * 7 * 2 * 2 * (18 * 11 + 18 * 18)),
]


@pytest.mark.parametrize("name, attrs, ins, expected", CASES, ids=[f"{case[0]}-{i}" for i, case in enumerate(CASES)])
def test_operators_count_additions_and_multiplications(name, attrs, ins, expected):
    op = get(name)
    attrs = op.complete(attrs)
    shapes, outs = op.infer_shapes(list(ins), [None] * len(op.signature.outputs(attrs)), attrs)
    assert op.rules.work(shapes, outs, attrs) == expected


def test_recurrent_layers_count_twice_in_backward():
    for mode in ("lstm", "gru"):
        net = sym.RNN(sym.Variable("data"), sym.Variable("p"), sym.Variable("s"),
                      *([sym.Variable("c")] if mode == "lstm" else []), state_size=6, num_layers=1, mode=mode)
        found = [row for row in bound(net, {"data": (7, 2, 5)}, dtype="float32").profile(1).rows if row.flops]
        assert sorted(row.flops for row in found)[1] == 2 * sorted(row.flops for row in found)[0]


def test_folded_convolutions_count_the_convolution():
    x = sym.Convolution(sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    found = bound(sym.relu(x), {"data": (2, 3, 5, 5)}, grad_req="null", dtype="float32").profile(1)
    (row,) = [row for row in found.rows if row.flops]
    assert row.operators == ("Convolution", "relu") and row.flops == 2 * (2 * 4 * 3 * 3) * 3 * 9


def test_other_operators_have_no_flops():
    assert get("softmax").rules.work([(3, 4)], [(3, 4)], get("softmax").complete({})) is None


def test_users_operators_declare_flops():
    @mx.operator.define(name="test_profile_double")
    def double(x):
        return x + x

    op = get("custom.test_profile_double") if hasattr(mx.operator, "get") else double
    op.flops(lambda ins, outs: math.prod(outs[0]))
    assert op.rules.work([(3, 4)], [(3, 4)], {}) == 12


def test_the_machine_is_measured(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(profiling, "_COPIED", 1 << 12)
    monkeypatch.setattr(profiling, "_ORDER", 8)
    for measure in (profiling.memory_rate, profiling.product_rate):
        measure.cache_clear()
    try:
        assert profiling.memory_rate(mx.cpu()) > 0
        assert profiling.product_rate(mx.cpu(), np.dtype("float16")) > 0
        assert profiling.memory_rate(mx.cpu()) == profiling.memory_rate(mx.cpu())
    finally:
        for measure in (profiling.memory_rate, profiling.product_rate):
            measure.cache_clear()


# ------------------------------------------------------------------------------------------------- memory


def test_memory_lists_the_largest_arrays() -> None:
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    net = mx.sym.sum(mx.sym.tanh(mx.sym.dot(mx.sym.dot(x, w, name="wide"), mx.sym.transpose(w), name="narrow")))
    executor = net.simple_bind(mx.cpu(), x=(8, 16), w=(16, 64))
    use = executor.memory(is_train=False)
    assert (use.rows[0].node, use.rows[0].nbytes, str(use.rows[0].spec)) == ("wide", 8 * 64 * 4, "(8, 64) float32")
    assert [row.nbytes for row in use.rows] == sorted([row.nbytes for row in use.rows], reverse=True)
    assert use.bound == {"arguments": (8 * 16 + 16 * 64) * 4, "gradients": (8 * 16 + 16 * 64) * 4, "states": 0,
                         "outputs": 4}
    assert use.total == executor.plan(False).nbytes <= sum(row.nbytes for row in use.rows) + use.temporaries + 128
    assert "dot wide" in str(use) and str(use).startswith("inference plan: ")
    assert executor.memory().is_train


def test_memory_is_reported_for_value_dependent_shapes() -> None:
    kept = mx.sym.contrib.boolean_mask(mx.sym.Variable("x"), mx.sym.Variable("mask"))
    executor = mx.sym.exp(mx.sym.tanh(kept)).simple_bind(mx.cpu(), x=(4, 3), mask=(4,), grad_req="null")
    executor.forward(x=mx.nd.ones((4, 3)), mask=mx.nd.array([1, 0, 1, 1]))
    assert executor.memory().bound["arguments"] == (4 * 3 + 4) * 4


def test_an_error_of_memory_names_the_largest_results_and_leaves_the_executor() -> None:
    net = mx.sym.tanh(mx.sym.dot(mx.sym.Variable("x"), mx.sym.Variable("y"), name="product"))
    executor = mx.sym.sum(net).simple_bind(mx.cpu(), x=(1 << 24, 1), y=(1, 1 << 24), grad_req="null")
    for _ in range(2):
        with pytest.raises(OpError, match=r"of which the largest are .*of dot 'product' \(1,125,899,906,842,624 bytes"):
            executor.forward()
    assert executor.reshape(x=(2, 1), y=(1, 2)).forward()[0].size == 1
