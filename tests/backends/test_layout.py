"""Passes that move channels to the last axis: the resulting graph, and equal results with and without them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg import Tensor, jit, ops
from opreg.backends.onednn import shared_library
from opreg.backends.onednn.operators import convolution as onednn_convolution
from opreg.backends.onednn.operators.private import batch_norm_gradient
from opreg.backends.private_operators import to_channels_first, to_channels_last
from opreg.builtin.layers.batch_norm import batch_norm
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.core.registry import get
from opreg.symbol import compile as compiler
from tests.backends.kernels import skip_lacking

sym, nd = mx.sym, mx.nd
pytestmark = pytest.mark.skipif(shared_library.missing() is not None, reason="needs oneDNN")


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    """Verifies each pass, and lets the library compute small arrays, too."""
    monkeypatch.setattr(compiler, "CHECK", True)
    monkeypatch.setattr(onednn_convolution, "LEAST", 0)


def bound(net: Any, x: tuple, laid_out: bool = True, special: float | None = None, dtype: str = "float32") -> Any:
    """Executor over random numbers, with or without the passes, whose plans are ready."""
    executor = net.simple_bind(mx.cpu(), "write", type_dict={"data": dtype}, data=x)
    rng = np.random.default_rng(0)
    for name, array in sorted({**executor.arg_dict, **executor.aux_dict}.items()):
        value = rng.uniform(0.5 if name.endswith("var") else -1.0, 1.5, array.shape)
        if special is not None and name == "data":
            value.flat[rng.integers(value.size)] = special
        array[:] = nd.array(value, dtype=array.dtype)
    with pytest.MonkeyPatch.context() as patch:
        if not laid_out:
            patch.setattr(compiler, "PASSES", tuple(each for each in compiler.PASSES if each is not compiler.layout))
        for is_train in (False, True):
            executor.plan(is_train)
    return executor


def answers(executor: Any) -> list[np.ndarray]:
    """Outputs of inference and of training, all gradients, and the auxiliary states."""
    found = [each.asnumpy() for each in executor.forward(is_train=False)]
    found += [each.asnumpy() for each in executor.forward(is_train=True)]
    executor.backward([nd.array(np.random.default_rng(1).uniform(-1, 1, each.shape)) for each in executor.outputs])
    return found + [each.asnumpy() for each in (*executor.grad_arrays, *executor.aux_arrays)]


def steps(executor: Any, is_train: bool) -> list[tuple[str, bool]]:
    """Operators of the steps, each with a mark if its channels are last."""
    plan = executor.plan(is_train)
    return [(step.node.op.name, step.node.tags.get("__layout__") == "channels last")
            for step in (*plan.forward.steps, *plan.backward.steps) if step.node is not None]


def assert_same(net: Any, x: tuple, special: float | None = None, dtype: str = "float32") -> Any:
    ours, theirs = (bound(net, x, laid_out, special, dtype) for laid_out in (True, False))
    with np.errstate(all="ignore"):
        for got, want in zip(answers(ours), answers(theirs), strict=True):
            finite = np.abs(want[np.isfinite(want)])
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * float(finite.max(initial=0.1)))
    return ours


def convolution(x: Any, name: str, filters: int = 8, kernel: tuple = (3, 3), **attrs: Any) -> Any:
    return sym.Convolution(x, name=name, kernel=kernel, num_filter=filters,
                           **{"pad": tuple(k // 2 for k in kernel), **attrs})


def unit(x: Any, name: str, **attrs: Any) -> Any:
    return sym.relu(sym.BatchNorm(convolution(x, name, no_bias=True, **attrs), fix_gamma=False, name=f"{name}_norm"))


# ------------------------------------------------------------------------------------------------- answers


@st.composite
def networks(draw):
    """Operators between convolutions, and the shape of the data."""
    rank = draw(st.integers(1, 3))
    y, channels = sym.Variable("data"), draw(st.sampled_from([3, 8]))
    x = (2, channels, *(6,) * rank)
    for i in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["unit", "bias", "residual", "pool", "average", "concat", "scale", "odd", "norm"]))
        kernel, filters = draw(st.sampled_from([(3,) * rank, (1,) * rank])), draw(st.sampled_from([4, 16]))
        if kind in ("unit", "bias", "residual", "concat"):
            z = unit(y, f"c{i}", filters=filters, kernel=kernel) if kind == "unit" else convolution(
                y, f"c{i}", channels if kind == "residual" else filters, kernel)
            y = z if kind in ("unit", "bias") else z + y if kind == "residual" else sym.Concat(y, z, dim=1)
            channels = {"residual": channels, "concat": channels + filters}.get(kind, filters)
        elif kind in ("pool", "average"):
            y = sym.Pooling(y, kernel=(3,) * rank, pad=(1,) * rank, pool_type="max" if kind == "pool" else "avg")
        elif kind == "scale":
            y = sym.broadcast_mul(y, sym.Variable(f"s{i}", shape=(1, channels, *(1,) * rank)))
        elif kind == "odd":
            y = sym.softmax(y, axis=1)
        else:
            y = sym.BatchNorm(y, fix_gamma=draw(st.booleans()), use_global_stats=draw(st.booleans()), name=f"n{i}")
    end = draw(st.sampled_from(["", "mean", "kept", "dense", "two"]))
    places = tuple(range(2, 2 + rank))
    if end == "dense":
        y = sym.FullyConnected(y, num_hidden=3)
    elif end == "two":
        y = sym.Group([sym.relu(y), sym.sum(y, axis=1)])
    elif end:
        y = sym.mean(y, axis=places, keepdims=end == "kept")
    return y, x


@settings(deadline=None, max_examples=60, derandomize=True)
@given(networks())
def test_plans_with_channels_last_give_the_same_answers(case):
    assert_same(*case)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_relu_keeps_nan_with_channels_last(special):
    """Relu keeps NaN, in inference and in training."""
    assert_same(convolution(unit(unit(sym.Variable("data"), "a"), "b"), "c"), (2, 3, 6, 6), special)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_dtypes_keep_their_layout(dtype):
    executor = assert_same(unit(sym.Variable("data"), "a"), (2, 3, 6, 6), dtype=dtype)
    assert not any(last for _, last in steps(executor, True))
    assert "[as declared: oneDNN takes float32" in executor.explain()


def test_gradients_are_added_and_new_values_are_read():
    """Gradients are added to old ones, and arrays may get new values."""
    net = unit(unit(sym.Variable("data"), "a"), "b")
    executors = [net.simple_bind(mx.cpu(), "add", data=(2, 3, 6, 6)) for _ in range(2)]
    found = []
    for executor in executors:
        with pytest.MonkeyPatch.context() as patch:
            if executor is executors[1]:
                patch.setattr(compiler, "PASSES", tuple(p for p in compiler.PASSES if p is not compiler.layout))
            for seed in (0, 1):
                rng = np.random.default_rng(seed)
                for value in executor.arg_arrays:
                    value[:] = nd.array(rng.uniform(-1, 1, value.shape))
                executor.forward(is_train=True)
                executor.backward(nd.ones((2, 8, 6, 6)))
        found.append([each.asnumpy() for each in executor.grad_arrays])
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


@pytest.mark.parametrize("before", [
    lambda x: x.reshape(1, 3, 8, 8), lambda x: ops.relu(x).reshape(1, 3, 8, 8) * 2,
    lambda x: ops.concat([x, x, x]).reshape(3, 3, 8, 8).swapaxes(2, 3)])
def test_gradients_alone_need_no_data(before):
    """The gradient of the input of a convolution needs only its shape, so a plan for this gradient alone has no node
    for the data."""
    convolve = ops.Conv2D(4, 3, pad_mode="pad", pad=1)
    weight = Tensor(np.random.default_rng(1).normal(size=(4, 3, 3, 3)), mx.float32)
    x = Tensor(np.random.default_rng(0).normal(size=(3, 64)), mx.float32)
    gradient = ops.grad(lambda x: convolve(before(x), weight).sum())
    np.testing.assert_allclose(jit(gradient)(x).asnumpy(), gradient(x).asnumpy(), rtol=1e-4, atol=1e-4)


# ------------------------------------------------------------------------------------------------- graphs

def test_a_plan_of_inference_copies_layouts_at_its_ends_only():
    """The plan copies once at the input and once at the output; the operators between are folded into convolutions."""
    net = sym.Pooling(unit(unit(sym.Variable("data"), "a"), "b"), kernel=(2, 2), stride=(2, 2), pool_type="max")
    executor = bound(net, (2, 3, 8, 8))
    assert steps(executor, False) == [("_to_channels_last", False), ("_folded_convolution", True),
                                      ("_folded_convolution", True), ("Pooling", True), ("_to_channels_first", False)]
    assert "[channels last]: onednn" in executor.explain(False)


def test_a_plan_of_training_moves_the_output_gradient_once():
    """The output gradient is moved once, and the norm's gradient is one step."""
    executor = bound(unit(sym.Variable("data"), "a"), (2, 3, 8, 8))
    skip_lacking(executor.explain())
    assert steps(executor, True) == [
        ("_to_channels_last", False), ("Convolution", True), ("BatchNorm", True), ("relu", True),
        ("_to_channels_first", False), ("_to_channels_last", False), ("_backward_relu", True),
        ("_batch_norm_gradient", True), ("_backward_Convolution_data", True), ("_to_channels_first", False),
        ("_backward_Convolution_weight", True)]


def test_means_over_places_need_no_copy():
    executor = bound(sym.mean(convolution(sym.Variable("data"), "a"), axis=(3, 2)), (2, 3, 8, 8))
    assert steps(executor, False) == [("_to_channels_last", False), ("Convolution", True), ("mean", True)]


ALONE = {
    "a product": lambda x: (convolution(x, "a", kernel=(1, 1)), "one product of matrices"),
    "its own layout": lambda x: (convolution(x, "a", layout="NHWC"), "its layout is NHWC"),
}


@pytest.mark.parametrize("name", ALONE)
def test_explain_says_why_a_graph_keeps_its_layout(name):
    net, reason = ALONE[name](sym.Variable("data"))
    executor = bound(net, (2, 8, 8, 8))
    assert steps(executor, False) == [("Convolution", False)]
    assert "[as declared: " in executor.explain(False) and reason in executor.explain(False)


def test_the_layout_of_products_is_changed():
    """A convolution that is a product of matrices runs in the library if it follows another one."""
    net = convolution(convolution(sym.Variable("data"), "a"), "b", kernel=(1, 1))
    assert ("Convolution", True) in steps(assert_same(net, (2, 3, 8, 8)), False)[2:]


@mx.operator.define(name="test_layout_centred")
def centred(x, *, axis: int = 1):
    """The data less the mean of each channel."""
    x = x.asnumpy()
    return x - x.mean(tuple(i for i in range(x.ndim) if i != axis), keepdims=True)


@centred.grad
def centred_grad(g, ins, outs, *, axis):
    return centred(g, axis=axis)


@centred.layout
def centred_layout(ins, *, axis):
    return ({"axis": len(ins[0]) - 1}, (0,), (0,)) if axis == 1 else "its axis is not that of the channels"


def between(op: Any, **attrs: Any) -> Any:
    """A user's operator between two convolutions."""
    return convolution(op(convolution(sym.Variable("data"), "first"), **attrs), "second")


def test_users_operators_get_channels_last_by_their_rule():
    executor = assert_same(between(centred), (2, 8, 9, 9))
    for is_train in (False, True):
        found = dict(steps(executor, is_train))
        assert found["custom.test_layout_centred"] and "_to_channels_first" in found
        assert steps(executor, is_train).count(("_to_channels_last", False)) == 1 + is_train, "one of the head gradient"


def test_users_operators_keep_their_layout_if_their_rule_does():
    executor = assert_same(between(centred, axis=2), (2, 8, 9, 9))
    assert not dict(steps(executor, False))["custom.test_layout_centred"]


def test_users_layout_rules_are_checked():
    @mx.operator.define(name="test_layout_wrong")
    def wrong(x):
        return x + 0.0

    with pytest.raises(mx.errors.ArgumentError, match="the layout rule of operator 'test_layout_wrong'.* takes "
                                                      r"\(shapes, layout\), expected \(ins\)"):
        wrong.layout(lambda shapes, layout: layout)
    wrong.layout(lambda ins: (0,))
    with pytest.raises(mx.errors.ArgumentError, match=r"operator 'test_layout_wrong': its layout rule returned \(0,\), "
                                                      "expected the attributes that change"):
        bound(between(wrong), (2, 8, 9, 9))


def test_small_convolutions_keep_their_layout(monkeypatch):
    monkeypatch.setattr(onednn_convolution, "LEAST", 1 << 16)
    executor = bound(unit(sym.Variable("data"), "a"), (1, 3, 5, 5))
    assert not any(last for _, last in steps(executor, True)) and "as declared: it is small" in executor.explain()


def test_without_onednn_no_layout_changes(monkeypatch):
    monkeypatch.setattr(shared_library, "library", lambda: "oneDNN was not found")
    names = [name for name, _ in steps(bound(unit(sym.Variable("data"), "a"), (2, 3, 8, 8)), True)]
    assert "_backward_normalize_sums" in names and not any("channels" in name for name in names)


def test_monitors_see_declared_layouts():
    executor, shapes = bound(unit(sym.Variable("data"), "a"), (2, 3, 6, 5)), {}
    executor.set_monitor_callback(lambda name, array: shapes.update({name: array.shape}))
    executor.forward(is_train=True)
    assert shapes["a_output"] == (2, 8, 6, 5)


# ------------------------------------------------------------------------------------------------- kernels


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.1, 2.0, shape).astype(np.float32)


def run(op: Op, name: str, ins: list[np.ndarray], attrs: dict[str, Any], is_train: bool = True) -> list[np.ndarray]:
    """Results of a kernel."""
    kernel = next(each for each in op.kernels if each.name == name)
    outs = [np.full(shape, 7, np.float32) for shape in op.infer_shapes(
        [a.shape for a in ins], [None] * len(op.signature.outputs(attrs)), attrs)[1]]
    scratch = lambda number, shape, dtype: np.empty(shape, dtype)  # noqa: E731
    call = Call(op, attrs, ins, outs, [], np, mx.cpu(), is_train, scratch=scratch)
    reason = None if kernel.accepts is None else kernel.accepts(call)
    skip_lacking(reason)
    assert reason is None
    if kernel.bound:
        kernel.rule.function(call)()
        return outs
    keywords = {**kernel.rule.select(attrs), **({"is_train": is_train} if "is_train" in kernel.rule.names else {})}
    found = kernel.rule.function(np, *ins, **keywords)
    return list(found) if isinstance(found, tuple) else [found]


def assert_kernels_agree(op: Op, ins: list[np.ndarray], attrs: dict[str, Any], is_train: bool = True) -> None:
    expected = run(op, "reference", ins, attrs, is_train)
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(2):  # the second time in a forked process
            found = run(op, "onednn", ins, attrs, is_train)
            for got, want in zip(found, expected, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())
            patch.setattr(shared_library, "forked", lambda: True)


@pytest.mark.parametrize("shape", [(3, 4, 5, 16), (2, 9, 3), (2, 3, 2, 3, 1)], ids=str)
@pytest.mark.parametrize("is_train", [False, True])
@pytest.mark.parametrize("words", [{}, {"fix_gamma": False}, {"use_global_stats": True}, {"eps": 0.1}], ids=str)
def test_batch_norm_with_channels_last_equals_the_reference(shape, is_train, words):
    ins = [numbers(*shape), *[numbers(shape[-1], seed=i) for i in range(1, 5)]]
    assert_kernels_agree(batch_norm, ins, get("BatchNorm").complete({"axis": -1, **words}), is_train)


@pytest.mark.parametrize("shape", [(3, 4, 5, 16), (2, 9, 3)], ids=str)
@pytest.mark.parametrize("scaled", [False, True])
def test_the_gradient_of_batch_norm_with_channels_last_equals_the_reference(shape, scaled):
    g, data = numbers(*shape), numbers(*shape, seed=1)
    axes = tuple(range(len(shape) - 1))
    vectors = [*[numbers(shape[-1], seed=2)] * scaled, data.mean(axes), 1 / np.sqrt(data.var(axes) + 1e-3)]
    assert_kernels_agree(batch_norm_gradient, [g, data, *vectors], {"axis": len(shape) - 1, "scaled": scaled})


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 16, 4), (1, 3, 2, 3, 4)], ids=str)
def test_copies_between_layouts_are_exact(shape):
    x = numbers(*shape)
    assert_kernels_agree(to_channels_last, [x], {})
    assert_kernels_agree(to_channels_first, [x], {})
    back = run(to_channels_first, "onednn", run(to_channels_last, "onednn", [x], {}), {})
    np.testing.assert_array_equal(back[0], x)


@pytest.mark.parametrize("op, order", [("Convolution", (0, 1)), ("_backward_Convolution_data", (2, 1)),
                                       ("_backward_Convolution_weight", (2, 0))])
def test_weights_keep_channels_first(op, order):
    """Every kernel accepts data with channels last and weights with channels first."""
    x, w, y = numbers(2, 5, 5, 4), numbers(6, 4, 3, 3), numbers(2, 5, 5, 6)
    first = functools.partial(np.moveaxis, source=-1, destination=1)
    attrs = get(op).complete({"kernel": (3, 3), "pad": (1, 1), "num_filter": 6, "no_bias": True})
    last = {**attrs, "layout": "NHWC", "weights_first": True}
    arrays, plain = [x, w, y], [first(x), w, first(y)]
    target = {"_backward_Convolution_data": [0], "_backward_Convolution_weight": [1]}.get(op, [])
    want = run(get(op), "reference", [plain[i] for i in (*order, *target)], attrs)[0]
    want = want if op.endswith("weight") else np.moveaxis(want, 1, -1)
    for name in ("reference", "onednn"):
        got = run(get(op), name, [arrays[i] for i in (*order, *target)], last)[0]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)
