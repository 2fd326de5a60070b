"""Folding: a convolution that includes its next operators gives the results of the separate operators."""

from __future__ import annotations

import itertools
import multiprocessing
import re
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.backends import blas
from opreg.backends.onednn import shared_library
from opreg.backends.onednn.operators import convolution as onednn_convolution
from opreg.builtin.layers import correlation
from opreg.builtin.layers.fused_convolution import folded_convolution
from opreg.core import registry, threads
from opreg.core.rules import EpilogueOperator, Norm
from opreg.symbol import compile as compiler
from opreg.symbol.passes.fuse_conv_bn import fuse_conv_bn
from tests.backends.kernels import skip_lacking

sym, nd = mx.sym, mx.nd


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    """Verifies each pass, and lets the library compute small arrays, too."""
    monkeypatch.setattr(compiler, "CHECK", True)
    monkeypatch.setattr(onednn_convolution, "LEAST", 0)


def unit(x: Any, name: str, filters: int = 4, kernel: tuple = (3, 3), norm: Any = True, **attrs: Any) -> Any:
    """A convolution with a norm."""
    x = sym.Convolution(x, name=f"{name}_conv", kernel=kernel, num_filter=filters,
                        **{"pad": tuple(k // 2 for k in kernel), **attrs})
    return sym.BatchNorm(x, name=f"{name}_norm", **({"fix_gamma": False} if norm is True else norm)) if norm else x


def bound(net: Any, x: tuple, dtype: str = "float32", folded: bool = True, special: float | None = None) -> Any:
    """An executor over random numbers, with or without the pass."""
    with pytest.MonkeyPatch.context() as patch:
        if not folded:
            patch.setattr(compiler, "PASSES", tuple(each for each in compiler.PASSES if each is not fuse_conv_bn))
        executor = net.simple_bind(mx.cpu(), "null", type_dict={"data": dtype}, data=x)
        refill(executor, special)
        executor.plan(False)
    return executor


def refill(executor: Any, special: float | None = None, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for name, array in sorted({**executor.arg_dict, **executor.aux_dict}.items()):
        value = rng.uniform(0.5 if name.endswith("var") else -1.0, 1.5, array.shape)
        if special is not None and name == "data" and value.size:
            value.flat[rng.integers(value.size, size=2)] = special
        array[:] = nd.array(value, dtype=array.dtype)


def operators(executor: Any) -> list[tuple[str, ...]]:
    """Operators of each step that runs."""
    return [step.node.attrs.get("operators", (step.node.op.name,)) for step in executor.plan(False).forward.steps
            if step.node is not None and step.kernel != "view" and not step.node.op.name.startswith("_to_channels")]


def assert_same(net: Any, x: tuple, dtype: str = "float32", special: float | None = None) -> Any:
    """Asserts that folded and unfolded graphs agree up to rounding; returns the folded executor."""
    ours, theirs = (bound(net, x, dtype, folded, special) for folded in (True, False))
    for seed in (0, 1):  # the second time with other weights and statistics
        refill(ours, special, seed)
        refill(theirs, special, seed)
        for got, want in zip(ours.forward(), theirs.forward(), strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            close(got.asnumpy(), want.asnumpy())
    return ours


def close(got: Any, want: Any) -> None:
    finite = np.abs(want[np.isfinite(want)])
    tolerance = 1e-9 if want.dtype == np.float64 else 3e-4
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * float(finite.max(initial=1e-3)))


# ------------------------------------------------------------------------------------------------- numbers


@st.composite
def cases(draw):
    """A network of a convolution and some of the operators that may follow, the shape and dtype of its data, and a
    special number."""
    rank, groups = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    many = lambda element: draw(st.tuples(*[element] * rank))  # noqa: E731
    kernel, stride, dilate = many(st.integers(1, 3)), many(st.integers(1, 3)), many(st.integers(1, 2))
    pad = many(st.integers(0, 2))
    size = tuple(draw(st.integers(max(1, (k - 1) * d + 1 - 2 * p), 8)) for k, d, p in zip(kernel, dilate, pad))
    layout = draw(st.sampled_from([None, ("NCW", "NHWC", "NDHWC")[rank - 1]]))
    last = layout is not None and layout[-1] == "C"
    channels, filters = groups * draw(st.integers(1, 3)), groups * draw(st.sampled_from([1, 2, 17]))
    norm = draw(st.sampled_from([None, {"fix_gamma": False}, {"fix_gamma": True}, {"eps": 0.1, "fix_gamma": False}]))
    y = unit(sym.Variable("data"), "a", filters, kernel, None if norm is None else
             {**norm, "axis": -1 if last else 1}, stride=stride, dilate=dilate, pad=pad, num_group=groups,
             no_bias=draw(st.booleans()), layout=layout)
    added = draw(st.sampled_from([None, "left", "right"]))
    if added:
        other = sym.Variable("other")
        y = y + other if added == "left" else other + y
    if draw(st.booleans()):
        y = draw(st.sampled_from([sym.relu, lambda y: sym.Activation(y, act_type="relu")]))(y)
    images = draw(st.integers(1, 3))
    x = (images, *size, channels) if last else (images, channels, *size)
    return y, x, draw(st.sampled_from(["float32", "float64"])), draw(st.sampled_from([None, np.nan, np.inf]))


@settings(deadline=None, max_examples=120, derandomize=True)
@given(cases(), st.sampled_from([300, 3 << 20]), st.integers(1, 3))
def test_folded_convolutions_give_the_same_values(case, block, count):
    """Results are equal for all shapes, strides, groups, layouts, divisions of the work, and kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(correlation.BLOCK, "numpy", block)
        patch.setattr(correlation, "COLUMNS", 1)
        patch.setattr(correlation, "LEAST_OUTS", 1)
        patch.setattr(blas, "LEAST", 0)
        patch.setattr(threads, "count", lambda: count)
        assert_same(*case)


def residual(x: Any, stride: int = 2) -> Any:
    """A residual block of ResNet, whose shortcut has a convolution."""
    y = sym.relu(unit(x, "a", stride=(stride, stride)))
    y = unit(y, "b")
    return sym.relu(y + unit(x, "c", kernel=(1, 1), stride=(stride, stride)))


def test_a_residual_block_is_folded_with_its_sum():
    executor = assert_same(residual(sym.Variable("data")), (2, 3, 8, 8))
    assert operators(executor) == [("Convolution", "BatchNorm", "relu"), ("Convolution", "BatchNorm"),
                                   ("Convolution", "BatchNorm", "elemwise_add", "relu")]


def test_folded_convolutions_of_several_blocks_equal_the_graph():
    """The sizes are real ones, with enough work for several threads and blocks."""
    net = sym.relu(unit(sym.relu(unit(sym.Variable("data"), "a", 64)), "b", 64, (1, 1)))
    assert_same(net, (2, 64, 28, 28))


# ------------------------------------------------------------------------------------------- folded nodes

LEFT_ALONE = {
    "read twice": lambda x: sym.Group([(y := unit(x, "a", norm=None)), sym.sigmoid(y), sym.BatchNorm(y)]),
    "another axis": lambda x: unit(x, "a", norm={"axis": 2}),
    "statistics are read": lambda x: sym.Group(list(unit(x, "a", norm={"output_mean_var": True}))),
    "added to itself": lambda x: (y := unit(x, "a", norm=None)) + y,
    "broadcast": lambda x: sym.broadcast_add(unit(x, "a", norm=None), sym.sum(x, axis=(1, 2, 3), keepdims=True)),
    "alone": lambda x: unit(x, "a", norm=None),
    "another activation": lambda x: sym.Activation(unit(x, "a", norm=None), act_type="tanh"),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_some_convolutions_are_not_folded(name):
    executor = assert_same(LEFT_ALONE[name](sym.Variable("data")), (2, 3, 8, 8))
    assert ("Convolution",) in operators(executor)


NORMS = {
    "BatchNorm_v1": {"fix_gamma": False}, "_contrib_SyncBatchNorm": {"fix_gamma": False, "key": "a"},
    "_nn_batch_norm": {}}


@pytest.mark.parametrize("name", NORMS)
def test_norms_of_several_names_are_folded_into_a_convolution(name):
    conv = sym.Convolution(sym.Variable("data"), kernel=(3, 3), num_filter=4, name="a")
    states = [sym.Variable(f"norm_{each}") for each in ("gamma", "beta", "moving_mean", "moving_var")]
    norm = registry.get(name)(conv, *states, **NORMS[name])
    assert operators(assert_same(sym.relu(norm), (2, 3, 8, 8))) == [("Convolution", name, "relu")]


def test_users_operators_are_folded_as_they_declare(unregistered):
    """Declarations of operators decide, not their names."""
    @mx.operator.define(name="test_fold_weighted")
    def weighted(x, w):
        return np.einsum("nc...,oc->no...", x.asnumpy(), w.asnumpy().reshape(w.shape[:2]))

    @weighted.infer
    def weighted_infer(x, w):
        return (x[0], w[0], *x[2:])

    @weighted.tail
    def weighted_tail():
        return EpilogueOperator(folded_convolution,
                                dict(kernel=(1, 1), stride=(), dilate=(), pad=(), num_filter=4, num_group=1,
                                     layout=None, no_bias=True), 1)

    @mx.operator.define(name="test_fold_normed")
    def normed(x, gamma, beta, mean, var, *, told: bool = True):
        scale = gamma.asnumpy() / np.sqrt(var.asnumpy() + 0.25)
        return (x.asnumpy().swapaxes(1, -1) - mean.asnumpy()).swapaxes(1, -1) * scale[:, None, None] + \
            beta.asnumpy()[:, None, None]

    @normed.infer
    def normed_infer(x, *others):
        return x

    @normed.norm
    def normed_norm(*, told):
        return Norm(1, 0.25, False) if told else None

    def net(**attrs):
        x, w = sym.Variable("data"), sym.Variable("w", shape=(4, 3, 1, 1))
        others = [sym.Variable(name, shape=(4,)) for name in ("gamma", "beta", "mean", "var")]
        return sym.relu(normed(weighted(x, w), *others, **attrs))

    assert operators(assert_same(net(), (2, 3, 5, 5))) == [
        ("custom.test_fold_weighted", "custom.test_fold_normed", "relu")]
    assert len(operators(assert_same(net(told=False), (2, 3, 5, 5)))) == 3
    with pytest.raises(mx.errors.ArgumentError, match=r"the rule for norms of operator 'test_fold_normed'.* expected"):
        normed.norm(lambda x: x)
    normed.norm(lambda: 1)
    with pytest.raises(mx.errors.ArgumentError, match="'test_fold_normed': its norm rule returned 1 for 5 inputs, "
                                                      "expected a Norm"):
        bound(net(), (2, 3, 5, 5))


@pytest.mark.parametrize("zero, steps", [(0.0, 1), (-0.0, 2), (1.0, 2)])
def test_relu_is_recognised_by_its_expression(zero, steps):
    executor = assert_same(sym.maximum(unit(sym.Variable("data"), "a"), zero), (1, 3, 5, 5))
    assert len(operators(executor)) == steps


def test_float16_convolutions_are_not_folded():
    """float16 is rounded between the operators."""
    net = sym.relu(unit(sym.Variable("data"), "a"))
    executor = net.simple_bind(mx.cpu(), "null", type_dict={"data": "float16"}, data=(1, 3, 5, 5))
    assert operators(executor)[0] == ("Convolution",)


def test_convolutions_are_not_folded_in_training():
    net = sym.relu(unit(sym.Variable("data"), "a"))
    executor = net.simple_bind(mx.cpu(), data=(1, 3, 5, 5))
    assert "_folded_convolution" not in [step.node.op.name for step in executor.plan(True).forward.steps if step.node]


def test_explain_shows_a_folded_convolution():
    executor = bound(sym.relu(unit(sym.Variable("data"), "a")), (1, 3, 5, 5))
    name = executor.plan(False).forward.steps[-1].node.name.removesuffix("_to_channels_first")
    text = re.sub(r" \[(channels last|as declared: [^\]]*)\]", "", executor.explain())
    assert f"_folded_convolution {name} (Convolution, BatchNorm, relu): " in text


def test_monitors_receive_every_operator():
    executor, told = bound(sym.relu(unit(sym.Variable("data"), "a")), (1, 3, 5, 5)), []
    expected = executor.forward()[0].asnumpy()
    executor.set_monitor_callback(lambda name, array: told.append(name))
    close(executor.forward()[0].asnumpy(), expected)
    assert "a_conv_output" in told and "a_norm_output" in told
    executor.set_monitor_callback(None)
    assert operators(executor) == [("Convolution", "BatchNorm", "relu")]


@pytest.mark.skipif(shared_library.missing() is not None, reason="needs oneDNN")
def test_plans_with_onednn_fold_the_operators_after_a_convolution():
    executor = assert_same(residual(sym.Variable("data"), 1), (2, 16, 8, 8))
    skip_lacking(executor.explain(False))
    assert [step.kernel for step in executor.plan(False).forward.steps][:3] == ["onednn"] * 3


# ------------------------------------------------------------------------------------- sharing the work

needs_control = pytest.mark.skipif(blas._functions() is None, reason="this BLAS does not say how many threads it has")


@needs_control
def test_blas_threads_are_restored(monkeypatch):
    """BLAS has as many threads as before, also after an error, and after two threads share work at the same time."""
    get, change = blas._functions()
    before = get()
    monkeypatch.setattr(threads, "count", lambda: 2)
    seen, meeting = [], threading.Barrier(2)

    def part() -> None:
        seen.append(get())
        meeting.wait(60)
        seen.append(get())

    change(2)
    try:
        others = [threading.Thread(target=blas.share, args=(np, [part], blas.LEAST - 1)) for _ in range(2)]
        for each in others:
            each.start()
        for each in others:
            each.join()
        assert seen == [1] * 4 and get() == 2
        with pytest.raises(ZeroDivisionError):
            blas.share(np, [lambda: 1 // 0] * 2, blas.LEAST)
        assert get() == 2
    finally:
        change(before)


@pytest.mark.parametrize("work, count, parts", [*itertools.product([0, 1 << 20, 1 << 30], [1, 2, 5], [0, 1, 3])])
def test_share_runs_all_parts(work, count, parts, monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: count)
    done: list[int] = []
    before = np.getbufsize()
    blas.share(np, [lambda i=i: done.append(i) for i in range(parts)], work)
    assert sorted(done) == list(range(parts)) and np.getbufsize() == before


def _child(pipe: Any) -> None:
    get, _ = blas._functions() or (lambda: 0, None)
    pipe.send(get())


@needs_control
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_forked_child_holds_no_lock():
    get, change = blas._functions()
    before = get()
    change(2)
    try:
        with blas._HOLD:
            here, there = multiprocessing.Pipe()
            child = multiprocessing.get_context("fork").Process(target=_child, args=(there,))
            child.start()
            assert here.recv() == 2
            child.join()
            assert get() == 1
    finally:
        change(before)
