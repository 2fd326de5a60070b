"""Steps of plans that are specialised before they run: products, bias, sums by products, SoftmaxOutput; and BLAS's
threads, which are used until a caller has to wait for them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opreg import autograd, nd
from opreg.backends import blas
from opreg.backends.numba import compiler
from opreg.core import threads
from opreg.core.launch import Call, prepare
from opreg.core.registry import get
from opreg.core.spec import Spec
from opreg.core.steps import is_plain
from opreg.ndarray import cpu
from opreg.ndarray.eager import run
from opreg.symbol import Variable

NAN, INF = np.nan, np.inf
needs_blas = pytest.mark.skipif(blas._library() is None, reason="this BLAS is not known")


def specialised(name: str, attrs: dict[str, Any], *ins: np.ndarray) -> tuple[str, np.ndarray]:
    """The kernel that a plan chooses for an operator on the host, and its results of two runs."""
    op = get(name)
    attrs = op.complete(attrs)
    want = reference(name, attrs, *ins)
    out = np.full_like(want, 7.0)
    call = Call(op, attrs, list(ins), [out], ["write"], np, cpu(), True, None, [Spec(out.shape, out.dtype)],
                lambda number, shape, dtype: np.empty(shape, dtype), None, {})
    with compiler.use("numpy"):
        ready = prepare(call)
    if ready.kernel.bound:
        for step in ready.steps()[0] * 2:
            with np.errstate(all="ignore"):
                step()
    return ready.kernel.name, out


def reference(name: str, attrs: dict[str, Any], *ins: np.ndarray) -> np.ndarray:
    """Result of an eager call of the operator."""
    op = get(name)
    return run(op, op.complete(attrs), list(ins), cpu())[1][0]


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def agree(found: np.ndarray, want: np.ndarray) -> None:
    tolerance = {"float32": 1e-5, "float64": 1e-12}[want.dtype.name]
    np.testing.assert_allclose(found, want, rtol=10 * tolerance, atol=tolerance * max(1, np.sqrt(want.size)))


# ---------------------------------------------------------------------------------------------- products

PRODUCTS = [
    ("FullyConnected", {"num_hidden": 5}, [(3, 4), (5, 4), (5,)]),
    ("FullyConnected", {"num_hidden": 5}, [(3, 2, 4), (5, 8), (5,)]),
    ("FullyConnected", {"num_hidden": 5, "flatten": False}, [(3, 2, 4), (5, 4), (5,)]),
    ("FullyConnected", {"num_hidden": 130, "no_bias": True}, [(70, 90), (130, 90)]),
    ("_backward_FullyConnected_data", {"num_hidden": 5}, [(3, 5), (5, 8), (3, 2, 4)]),
    ("_backward_FullyConnected_weight", {"num_hidden": 5, "flatten": False}, [(3, 2, 5), (3, 2, 4), (5, 4)]),
    ("dot", {}, [(3, 2, 4), (4, 5)]),
    ("dot", {}, [(4,), (4,)]),
    ("dot", {"transpose_a": True, "transpose_b": True}, [(4, 3), (5, 4)]),
    ("batch_dot", {}, [(2, 3, 4), (2, 4, 5)]),
    ("batch_dot", {"transpose_a": True, "transpose_b": True}, [(2, 4, 3), (2, 5, 4)]),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, attrs, shapes", PRODUCTS)
def test_specialised_products_equal_the_reference(name, attrs, shapes, dtype):
    ins = [numbers(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]
    kernel, found = specialised(name, attrs, *ins)
    assert kernel == "specialised"
    agree(found, reference(name, attrs, *ins))


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_specialised_products_keep_infinity_and_nan(bad):
    data, weight, bias = numbers(3, 4), numbers(5, 4), numbers(5)
    data[1, 2] = bad
    bias[3] = bad
    _, found = specialised("FullyConnected", {"num_hidden": 5}, data, weight, bias)
    np.testing.assert_array_equal(np.isfinite(found), ~(np.eye(3)[1][:, None] + np.eye(5)[3]).astype(bool))


@pytest.mark.parametrize("name, ins", [
    ("FullyConnected", [numbers(4, 2, 3).swapaxes(0, 2), numbers(5, 8), numbers(5)]),  # its rows are no matrix
    ("FullyConnected", [numbers(*shape, dtype="float16") for shape in ((3, 4), (5, 4), (5,))]),
    ("FullyConnected", [numbers(0, 4), numbers(5, 4), numbers(5)]),
])
def test_products_that_need_copies_float16_or_no_work_use_the_reference(name, ins):
    assert specialised(name, {"num_hidden": 5}, *ins)[0] == "reference"


def test_transposed_views_are_multiplied_where_they_lie():
    lhs, rhs = numbers(4, 3).T, numbers(5, 4).T
    kernel, found = specialised("dot", {}, lhs, rhs)
    assert kernel == "specialised"
    agree(found, lhs @ rhs)


def test_a_step_of_a_network_is_specialised():
    """No step decides anything at run time: neither the layers, nor the bias gradients, nor the loss."""
    y = Variable("data")
    for count in (6, 4):
        y = get("FullyConnected")(y, Variable(f"w{count}"), Variable(f"b{count}"), num_hidden=count)
    y = get("SoftmaxOutput")(y, Variable("label"))
    executor = y.simple_bind(cpu(), data=(3, 5), grad_req="write")
    with compiler.use("numpy"):
        plan = executor.plan(True)
    kernels = {step.kernel for segment in (plan.forward, plan.backward) for step in segment.steps}
    assert kernels == {"specialised", "ufuncs", "zeros"}  # zeros are the gradient of the label


# -------------------------------------------------------------------------------------------------- sums


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.sampled_from(["float32", "float64"]),
       st.sampled_from([None, NAN, INF, -INF]), st.booleans(), st.integers(0, 2 ** 16))
def test_specialised_sums_of_rows_equal_the_reference(shape, dtype, bad, keepdims, seed):
    data = numbers(*shape, dtype=dtype, seed=seed)
    if bad is not None:
        data.reshape(-1)[seed % data.size] = bad
    kernel, found = specialised("sum", {"axis": -1, "exclude": True, "keepdims": keepdims}, data)
    assert kernel == "ufuncs"
    want = data.astype("float64").reshape(-1, shape[-1]).sum(axis=0)
    np.testing.assert_allclose(found.reshape(-1), want, rtol=1e-5, atol=1e-4 if dtype == "float32" else 1e-11)


@pytest.mark.parametrize("attrs", [{"axis": 0, "exclude": True}, {"axis": -1}, {}])
def test_other_sums_are_left_to_the_reference(attrs):
    data = numbers(3, 4)
    kernel, found = specialised("sum", attrs, data)
    assert kernel == "ufuncs"
    agree(found, reference("sum", attrs, data))


# ----------------------------------------------------------------------------------------- SoftmaxOutput


@pytest.mark.parametrize("attrs, shape", [
    ({}, (3, 4)), ({}, (3, 2, 4)), ({}, (2, 1)),
    ({"preserve_shape": True}, (3, 2, 4)), ({"multi_output": True}, (3, 4)),
])
@pytest.mark.parametrize("bad", [None, NAN, INF, -INF])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_specialised_softmax_output_equals_the_reference(attrs, shape, bad, dtype):
    data = numbers(*shape, dtype=dtype)
    if bad is not None:
        data[1] = bad
    label = np.zeros(shape[:-1], dtype)
    kernel, found = specialised("SoftmaxOutput", attrs, data, label)
    assert kernel == "ufuncs"
    np.testing.assert_allclose(found, reference("SoftmaxOutput", attrs, data, label), rtol=1e-5)


@pytest.mark.parametrize("attrs", [
    {}, {"grad_scale": 0.5}, {"normalization": "batch"}, {"preserve_shape": True}, {"use_ignore": True},
    {"use_ignore": True, "ignore_label": 1.7, "normalization": "batch"}, {"out_grad": True}, {"smooth_alpha": 0.3}])
@pytest.mark.parametrize("labels", [[0, 1, 2], [-1, 3, 1], [1.9, -0.9, 2.5], [NAN, INF, -INF], [2, 2, 1e30]])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_the_gradient_of_softmax_output_is_a_loop(attrs, labels, kind):
    p, label = abs(numbers(3, 3)), np.array(labels, kind)
    index, alpha = np.trunc(label), attrs.get("smooth_alpha", 0.0)
    want = p.astype(float) - alpha / 2 - (np.arange(3) == index[:, None]) * (1 - alpha - alpha / 2)
    if "use_ignore" in attrs:
        want *= (index != int(attrs.get("ignore_label", -1)))[:, None]
    want = want * (p if "out_grad" in attrs else 1)
    want = want * attrs.get("grad_scale", 1) / (3 if "normalization" in attrs else 1)
    kernel, found = specialised("_backward_SoftmaxOutput", attrs, p, label)
    assert kernel == "ufuncs"
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(reference("_backward_SoftmaxOutput", attrs, p, label), want, rtol=1e-5, atol=1e-7)


def test_one_gradient_of_softmax_output_is_left_to_the_reference():
    attrs = {"normalization": "valid"}
    p, label = abs(numbers(3, 4)), np.zeros(3, "float32")
    assert specialised("_backward_SoftmaxOutput", attrs, p, label)[0] == "reference"
    assert specialised("_backward_SoftmaxOutput", attrs, p, numbers(3, 4))[0] == "ufuncs"  # labels are probabilities


# ---------------------------------------------------------------------------------------- BLAS's threads


@pytest.mark.parametrize("a, b, kind", [
    ((64, 64), (64, 64), np.ufunc), ((64, 80), (80, 64), type(blas.matmul_on_one_thread)),
    ((64, 784), (784, 128), blas.Watched), ((4, 64, 64), (4, 64, 64), blas.Watched),
    ((64,), (64, 100), np.ufunc), ((640,), (640, 100), blas.Watched), ((408, 408), (408, 408), np.ufunc),
    ((1, 400, 400), (1, 400, 400), blas.Watched), ((2, 408, 408), (2, 408, 408), np.ufunc),
])
def test_the_library_of_a_product_follows_from_its_shape(a, b, kind, monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 2)
    monkeypatch.setattr(blas, "_same_bits", lambda *arrays: True)
    blas._host_multiplier.cache_clear()
    left, right = numbers(*a), numbers(*b)
    found = blas.multiplier(np, left, right)
    blas._host_multiplier.cache_clear()
    assert isinstance(found, kind) and (kind is not np.ufunc or found is np.matmul)
    out = np.empty((*a[:-1], b[-1]), "float32")
    assert found(left, right, out) is out
    agree(out, (left.astype("float64") @ right).astype("float32"))


@needs_blas
@pytest.mark.parametrize("a, b", [((32, 128, 64), (32, 64, 128)), ((2, 9, 256, 64), (2, 9, 64, 128)),
                                  ((2, 256, 200), (2, 200, 256)), ((2048, 16, 32), (2048, 32, 16))])
@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_stacks_of_matrices_are_shared_among_threads(a, b, transposed, monkeypatch):
    """One thread computes each matrix of a stack in its place; BLAS's threads would have to wait for each other in
    every one."""
    monkeypatch.setattr(threads, "count", lambda: 2)
    left = numbers(*a[:-2], a[-1], a[-2]).swapaxes(-1, -2) if "a" in transposed else numbers(*a)
    right = numbers(*b[:-2], b[-1], b[-2]).swapaxes(-1, -2) if "b" in transposed else numbers(*b)
    blas._host_multiplier.cache_clear()
    found = functools.partial(blas.multiplier(np, left, right), left, right)
    blas._host_multiplier.cache_clear()
    calls: list[int] = []

    def run(parts, shared):
        assert shared
        calls.extend([blas._control()[0](), *[part() is None for part in parts]])

    monkeypatch.setattr(threads, "run", run)
    want = blas.matmul_on_one_thread(left, right)
    np.testing.assert_array_equal(found(), want)
    assert is_plain(found) and calls[0] == 1 and len(calls) - 1 == min(8, max(a[:-2]))
    out = np.empty_like(want)
    assert found(out) is out
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_one_thread_and_several_give_the_same_bits(transposed, monkeypatch):
    """Shapes with other bits for several threads are cut in two, or computed by one thread."""
    monkeypatch.setattr(threads, "count", lambda: 2)
    rng = np.random.default_rng(0)
    for rows, inner, columns in [(64, 784, 128), *rng.integers(30, 300, (12, 3)).tolist()]:
        left = numbers(inner, rows).T if "a" in transposed else numbers(rows, inner)
        right = numbers(columns, inner).T if "b" in transposed else numbers(inner, columns)
        found = blas.multiplier(np, left, right)
        if isinstance(found, blas.Watched):
            with blas._HOLD:
                alone = found.function(left, right)
            np.testing.assert_array_equal(found.function(left, right), alone)


def test_shapes_whose_bits_depend_on_threads_stay_with_one(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 2)
    monkeypatch.setattr(blas, "_same_bits", lambda *arrays: False)
    blas._host_multiplier.cache_clear()
    found = blas.multiplier(np, numbers(64, 784), numbers(784, 128))
    blas._host_multiplier.cache_clear()
    assert found is blas.matmul_on_one_thread


@pytest.mark.parametrize("sums, kind", [(784, blas.Watched), (704, type(blas.matmul_on_one_thread))])
def test_products_with_thread_dependent_bits_are_split_in_two(sums, kind, monkeypatch):
    """A sum is cut if both parts have the same bits for any number of threads; a sum of whole blocks cannot be cut."""
    monkeypatch.setattr(threads, "count", lambda: 2)
    monkeypatch.setattr(blas, "_same_bits", lambda a, by_a, b, by_b, dtype: b[0] not in (784, 704))
    blas._host_multiplier.cache_clear()
    left, right = numbers(64, sums), numbers(128, sums).T
    found = blas.multiplier(np, left, right)
    blas._host_multiplier.cache_clear()
    assert isinstance(found, kind) and is_plain(found)
    out = np.empty((64, 128), "float32")
    assert found(left, right, out) is out
    agree(out, (left.astype("float64") @ right).astype("float32"))


def test_noise_is_laid_out_like_the_array():
    for array in (numbers(3, 5), numbers(5, 3).T, numbers(2, 5, 3).swapaxes(1, 2), numbers(7)):
        noise = blas.noise(array.shape, array.strides, array.dtype)
        assert (noise.shape, noise.strides, noise.dtype) == (array.shape, array.strides, array.dtype)


def test_one_thread_needs_no_trial(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 1)
    assert blas.multiplier(np, numbers(640, 640), numbers(640, 640)) is np.matmul


def test_after_a_wait_the_calling_thread_computes_alone_for_a_while(monkeypatch):
    """The thread computes alone for twenty times as long as it has waited."""
    now, held = [100.0], []

    class Hold:
        def __enter__(self):
            held.append(now[0])

        def __exit__(self, *error):
            pass

    def compute(seconds: float) -> float:
        now[0] += seconds
        return seconds

    monkeypatch.setattr(blas, "_clock", lambda: now[0])
    monkeypatch.setattr(blas, "_HOLD", Hold())
    monkeypatch.setattr(blas.Watched, "until", 0.0)
    work = blas.Watched(compute, 1_000_000)
    assert [work(each) for each in (0.0015, 0.0001, 0.0017)] == [0.0015, 0.0001, 0.0017]
    assert not held
    work(0.0019)  # a time up to eight times the best one, plus a millisecond, would be accepted
    assert blas.Watched.until == pytest.approx(now[0] + 20 * 0.0019)
    work(0.03)
    work(0.03)
    assert len(held) == 2
    work(0.05)  # it has computed alone for as long
    work(0.0001)
    assert len(held) == 2
    work(0.05)
    work(0.0001)
    assert len(held) == 3


@pytest.mark.parametrize("mode, size, projection", [("gru", 640, None), ("lstm", 640, 200), ("rnn_tanh", 1030, None)])
def test_recurrent_layers_use_no_threads_that_they_would_wait_for(mode, size, projection, monkeypatch):
    """After a wait for BLAS's threads, the calling thread computes the products of a wide layer alone, too."""
    unwatched: list[float] = []
    product = np.matmul

    def matmul(a, b, out=None):
        work = a.size * b.shape[-1]
        if blas.SMALL < work < blas.LARGE and not blas._HOLD.depth and a.shape[-2] * b.shape[-2] * b.shape[-1] > 1e6:
            unwatched.append(work)
        return product(a, b, out=out)

    monkeypatch.setattr(threads, "count", lambda: 2)
    monkeypatch.setattr(blas, "_same_bits", lambda *arrays: True)
    monkeypatch.setattr(blas.Watched, "until", INF)
    monkeypatch.setattr(np, "matmul", matmul)
    blas._host_multiplier.cache_clear()
    gates, shown = {"gru": 3, "lstm": 4, "rnn_tanh": 1}[mode], projection or size
    x, state = nd.array(numbers(2, 32, 100)), nd.zeros((1, 32, shown))
    weights = nd.zeros((gates * size * (100 + shown + 2) + (projection or 0) * size,))
    x.attach_grad()
    with autograd.record():
        cell = [nd.zeros((1, 32, size))] if mode == "lstm" else []
        y = nd.RNN(x, weights, state, *cell, mode=mode, state_size=size, num_layers=1, projection_size=projection)
    y.backward()
    blas._host_multiplier.cache_clear()
    assert not unwatched and x.grad.shape == x.shape


# --------------------------------------------------------------------------------------------- multiples


@needs_blas
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 7, 1000, 50_000])
def test_blas_adds_a_multiple_of_an_array_to_another(dtype, count):
    y, x = numbers(count, dtype=dtype), numbers(count, dtype=dtype, seed=1)
    x[0] = NAN
    want = y - 0.3 * x.astype("float64")
    blas.multiple(y, -0.3, x)()
    np.testing.assert_allclose(y, want, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-6)


@pytest.mark.parametrize("a, y, x", [
    (0.0, numbers(4), numbers(4)), (1.0, numbers(4).astype("float16"), numbers(4).astype("float16")),
    (1.0, numbers(4), numbers(4, dtype="float64")), (1.0, numbers(8)[::2], numbers(4)),
    (1.0, numbers(4), numbers(8)[::2]), (1.0, numbers(3, 2).T, numbers(2, 3)),
    (1.0, np.frombuffer(numbers(4).tobytes(), "float32"), numbers(4)),
])
def test_blas_does_not_add_multiples_of_unsuitable_arrays(a, y, x):
    assert blas.multiple(y, a, x) is None


@pytest.mark.parametrize("attrs", [
    {"lr": 0.1}, {"lr": 0.1, "wd": 0.01, "rescale_grad": 1 / 64}, {"lr": 0.1, "clip_gradient": 0.5}, {"lr": 0.0}])
@pytest.mark.parametrize("count", [10, 300_000])
@pytest.mark.parametrize("inplace", [True, False])
def test_sgd_of_long_arrays_equals_the_reference(attrs, count, inplace):
    weight, grad = numbers(count), numbers(count, seed=1)
    attrs = {"wd": 0.0, "rescale_grad": 1.0, "clip_gradient": -1.0, **attrs}
    g = grad.astype("float64") * attrs["rescale_grad"]
    if attrs["clip_gradient"] >= 0:
        g = np.clip(g, -attrs["clip_gradient"], attrs["clip_gradient"])
    want = weight - attrs["lr"] * (g + attrs["wd"] * weight)
    kernel = functools.partial(get("sgd_update").kernels[0].rule.function, np, weight, grad, **attrs)
    before = weight.copy()
    found = kernel(out=weight) if inplace else kernel()
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    assert found is weight or np.array_equal(weight, before)
