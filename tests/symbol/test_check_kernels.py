"""``check_kernels``: the kernels that it compares, and wrong ones that it finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.backends.onednn.operators import convolution as onednn_convolution
from opreg.core.launch import Kernel
from opreg.core.registry import get
from opreg.symbol import compile as compiler
from opreg.symbol.inspect import checking
from tests.symbol.test_cse import assert_same, bound

sym, nd = mx.sym, mx.nd


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    """Verifies each pass, and lets the library compute small arrays, too."""
    monkeypatch.setattr(compiler, "CHECK", True)
    monkeypatch.setattr(onednn_convolution, "LEAST", 0)


@pytest.fixture
def another(monkeypatch):
    """Attaches a second kernel to a built-in operator."""

    def attach(name: str, function: Any, **options: Any) -> None:
        op = get(name)
        monkeypatch.setattr(op, "kernels", [*op.kernels, Kernel(function, "another", **options)])

    return attach


def ran(net: Any, shapes: dict[str, tuple], check: Any = True, dtype: str = "float32", **more: Any) -> Any:
    """A checked executor, after forward and backward."""
    executor = bound(net, shapes, dtype=dtype, check_kernels=check, **more)
    outputs = executor.forward(is_train=bool(executor._bound.grads))
    if executor._bound.grads:
        executor.backward([nd.ones(out.shape, dtype=out.dtype) for out in outputs])
    return executor


def rows(executor: Any) -> dict[str, Any]:
    return {row.node: row for row in executor.kernel_report().rows}


def network() -> Any:
    x = sym.Activation(sym.FullyConnected(sym.Variable("data"), num_hidden=8, name="fc"), act_type="tanh", name="act")
    return sym.softmax(sym.Dropout(x * 0.5 + sym.square(x), p=0.3), name="soft")


# ------------------------------------------------------------------------------------------- compared steps


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_network_is_close_to_its_reference(dtype):
    executor = ran(network(), {"data": (4, 6)}, dtype=dtype)
    report = executor.kernel_report()
    assert report.rows and all(row.runs == 1 for row in report.rows)
    assert all(row.absolute <= 32 * np.finfo(dtype).eps for row in report.rows)
    assert [row.resolutions for row in report.rows] == sorted((row.resolutions for row in report.rows), reverse=True)


def test_checking_changes_no_results():
    """The check changes no result, and no later random number."""
    shapes = {"data": (4, 6)}
    assert_same(bound(network(), shapes, check_kernels=True), bound(network(), shapes))


def test_fused_steps_are_compared_with_their_operators():
    x = sym.Variable("x")
    executor = ran(sym.tanh(x * 0.5 + 1.0) * sym.sigmoid(x), {"x": (7,)})
    fused = [row for row in executor.kernel_report().rows if row.operator.startswith("_fused")]
    assert {row.half for row in fused} == {"forward", "backward"}
    assert any("(" in row.operator and "tanh" in row.operator for row in fused)


def test_a_wrong_composition_is_found(monkeypatch):
    """The check computes the expected results by the operators' own expressions, not by the composed one."""
    from opreg.symbol.passes import fuse as fusion

    finish = fusion.Composition.finish

    def wrong(self: Any, *args: Any) -> Any:
        expression, read = finish(self, *args)
        for position, (prim, operands) in enumerate(expression.code):
            if prim.name == "add":
                expression.code[position] = (prim, (operands[0], operands[0]))
        return expression, read

    x = sym.Variable("x")
    monkeypatch.setattr(fusion.Composition, "finish", wrong)
    with pytest.raises(mx.MXNetError, match=r"_fused .*\(square, exp, elemwise_add\)"):
        ran(sym.square(x) + sym.exp(x), {"x": (5,)}, grad_req="null")


def test_folded_steps_are_compared_with_their_operators():
    x = sym.Convolution(sym.Variable("data"), kernel=(3, 3), pad=(1, 1), num_filter=4, name="conv")
    net = sym.relu(sym.BatchNorm(x, fix_gamma=False, name="norm") + sym.Variable("other"))
    executor = ran(net, {"data": (2, 3, 5, 5), "other": (2, 4, 5, 5)}, grad_req="null")
    (row,) = [row for row in executor.kernel_report().rows if row.operator.startswith("_folded")]
    assert "(Convolution, BatchNorm, elemwise_add, relu)" in row.operator
    assert row.runs == 1 and row.relative < 1e-4


def test_random_operators_draw_the_same(another):
    def masked(xp: Any, data: Any, *, p: float, is_train: bool, rng: Any) -> Any:
        kept = rng.random(data.shape, dtype=xp.float32) < 1.0 - p
        mask = kept.astype(data.dtype) / data.dtype.type(1.0 - p)
        return data * mask, mask

    another("Dropout", masked, accepts=lambda call: None if call.is_train else "for training")
    executor = ran(sym.Dropout(sym.Variable("x"), p=0.5, name="drop"), {"x": (200,)})
    assert rows(executor)["drop"].kernel == "another"
    assert rows(executor)["drop"].absolute < 1e-5
    plain = bound(sym.Dropout(sym.Variable("x"), p=0.5), {"x": (200,)}, dtype="float32")
    assert_same(executor, plain)


def test_updates_are_compared_in_place(another):
    def forgets(xp: Any, weight: Any, grad: Any, mom: Any, *, lr: float, momentum: float) -> Any:
        return weight - lr * grad + momentum * mom  # the momentum stays as it was

    another("sgd_mom_update", forgets)
    net = sym.sgd_mom_update(*[sym.Variable(name) for name in ("weight", "grad", "mom")], lr=0.1, momentum=0.9)
    with pytest.raises(mx.MXNetError, match="kernel another of sgd_mom_update"):
        ran(net, dict.fromkeys(("weight", "grad", "mom"), (3,)), grad_req="null")


# ------------------------------------------------------------------------------------------- wrong kernels


def test_a_wrong_kernel_is_named_with_the_place(another):
    def wrong(xp: Any, data: Any) -> Any:
        found = 1.0 / (1.0 + xp.exp(-data))
        found[1, 2] += 0.5
        return found

    another("sigmoid", wrong)
    with pytest.raises(mx.MXNetError) as caught:
        ran(sym.sigmoid(sym.Variable("x"), name="act"), {"x": (3, 4)}, grad_req="null")
    text = str(caught.value) + "".join(caught.value.__notes__)
    assert "kernel another of sigmoid act" in text and "at (1, 2)" in text and "differ by 0.5" in text
    assert "operator sigmoid, node 'act'" in text and "test_check_kernels.py" in text


def test_a_report_alone_raises_nothing(another):
    another("tanh", lambda xp, data: xp.tanh(data) + 1.0)
    executor = ran(sym.tanh(sym.Variable("x"), name="act"), {"x": (3,)}, "report", grad_req="null")
    executor.forward()
    row = rows(executor)["act"]
    assert row.runs == 2 and row.absolute == pytest.approx(1.0, rel=1e-3)
    assert row.resolutions == pytest.approx(row.relative / np.finfo(np.float32).eps)
    assert "another, tanh act" in str(executor.kernel_report())


@pytest.mark.parametrize("got, want, expected", [
    ([1.0, 2.0], [1.0, 2.0], (0.0, 0.0)),
    ([1.0, 2.5], [1.0, 2.0], (0.5, 0.25)),
    ([np.nan, np.inf, -np.inf], [np.nan, np.inf, -np.inf], (0.0, 0.0)),
    ([1.0, np.nan], [1.0, 2.0], (np.inf, np.inf)),
    ([1.0, np.inf], [1.0, -np.inf], (np.inf, np.inf)),
    ([0.0, 1e-20], [0.0, 0.0], (1e-20, 1e-20)),
    ([], [], (0.0, 0.0)),
    ([3, 4], [3, 6], (2.0, 2.0)),
    ([True], [False], (1.0, 1.0)),
], ids=str)
def test_differences_are_absolute_and_relative(got, want, expected):
    with np.errstate(all="ignore"):
        found = checking._compare(np.array(got), np.array(want))
    assert (found.absolute, found.relative) == pytest.approx(expected)
    assert bool(found.absolute > found.allowed) is bool(expected[1])


def test_differences_by_rounding_are_not_reported():
    """The gradient of softmax for equal output gradients is zero, apart from rounding."""
    executor = ran(sym.softmax(sym.Variable("x")), {"x": (5, 7)})
    assert all(row.absolute < 1e-6 for row in executor.kernel_report().rows)


def test_errors_of_wrong_use_of_check_kernels():
    executor = bound(sym.tanh(sym.Variable("x")), {"x": (3,)})
    with pytest.raises(mx.MXNetError, match="bind with check_kernels=True"):
        executor.kernel_report()
    with pytest.raises(mx.MXNetError, match="check_kernels='loud': expected True, False or 'report'"):
        bound(sym.tanh(sym.Variable("x")), {"x": (3,)}, check_kernels="loud")


def test_reshape_keeps_checking():
    executor = bound(sym.tanh(sym.Variable("x")), {"x": (3,)}, check_kernels=True, dtype="float32").reshape(x=(2,))
    executor.forward()
    assert executor.kernel_report(False).rows[0].runs == 1


def test_users_operators_have_no_reference():
    executor = ran(sym.Custom(sym.tanh(sym.Variable("x")), op_type="test_common_identity"), {"x": (3,)})
    report = executor.kernel_report()
    assert not any("identity" in row.operator for row in report.rows)
    assert "have none beside them" in str(report)


def test_checks_work_with_recomputation():
    executor = ran(network(), {"data": (4, 6)}, recompute=True)
    assert all(row.absolute < 1e-5 for row in executor.kernel_report().rows)


def test_fused_steps_may_read_constants_first():
    x = sym.Variable("x")
    net = sym.maximum(sym.zeros_like(x), sym.Variable("y")) * 2 + sym.ones_like(x)
    ran(sym.tanh(net), {"x": (3, 4), "y": (3, 4)})
