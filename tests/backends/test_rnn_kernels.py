"""Recurrent layers compiled with numba agree with the reference for any shape, mode and number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.backends.numba import compiler, recurrent, simd
from opreg.backends.numba.compiler import use
from opreg.core import threads
from opreg.core.cache import Recent
from opreg.core.processor import processor

numba = pytest.importorskip("numba")

nd, sym = mx.nd, mx.sym

MODES = ("lstm", "gru", "rnn_tanh", "rnn_relu")
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "float16": 2e-3}


def bound(kernels, mode, shape, size, dtype="float32", null=(), change=None, **attrs):
    """Executor of layers on fixed numbers, and the gradients of its outputs."""
    names = ["data", "parameters", "state", *(["state_cell"] if mode == "lstm" else [])]
    graph = sym.RNN(*map(sym.var, names), state_size=size, mode=mode, state_outputs=True, **attrs)
    shapes, out_shapes, _ = graph.infer_shape(data=shape)
    rng = np.random.default_rng(0)
    args = {name: rng.normal(size=each) * min(0.5, size ** -0.5) for name, each in zip(names, shapes)}
    heads = [nd.array(rng.normal(size=each), dtype=dtype) for each in out_shapes]
    if change is not None:
        change(args)
    args = {name: nd.array(value, dtype=dtype) for name, value in args.items()}
    grads = {name: nd.zeros(value.shape, dtype=dtype) for name, value in args.items()}
    reqs = {name: "null" if name in null else "write" for name in names}
    with use(kernels):
        executor = graph.bind(mx.cpu(), args, grads, grad_req=reqs)
        executor.forward(is_train=True)
    return executor, heads


def results(kernels, *args, **more):
    """Outputs and gradients."""
    executor, heads = bound(kernels, *args, **more)
    with use(kernels):
        executor.backward(heads)
    return [each.asnumpy() for each in (*executor.outputs, *executor.grad_arrays) if each is not None]


def same(found, expected, dtype):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        scale = 1 + np.abs(other[np.isfinite(other)], dtype="float64").max(initial=0)
        assert np.allclose(one / scale, other / scale, rtol=0, atol=TOLERANCE[dtype], equal_nan=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape, size, attrs", [
    ((3, 1, 2), 3, {"num_layers": 1}),
    ((4, 13, 37), 33, {"num_layers": 2, "bidirectional": True}),
    ((1, 8, 64), 64, {"num_layers": 1}),
    ((5, 21, 130), 48, {"num_layers": 1, "bidirectional": True}),
])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_layers_equal_the_reference(mode, shape, size, attrs, dtype):
    args = mode, shape, size, dtype
    same(results("numba", *args, **attrs), results("numpy", *args, **attrs), dtype)


def test_nothing_is_compiled_before_the_first_run(monkeypatch):
    """A numba that cannot be imported causes no error unless it is asked for."""
    monkeypatch.setattr(simd, "register_bytes", lambda: pytest.fail("the compiler is loaded"))
    monkeypatch.setattr(compiler, "_FUNCTIONS", Recent(4))
    monkeypatch.setattr(recurrent, "_text", recurrent._text.__wrapped__)
    executor, _ = bound("auto", "gru", (2, 3, 4), 5, num_layers=1)
    executor.forward(is_train=True)


def test_explain_names_the_kernel_and_the_reasons_of_others():
    assert "RNN rnn" in (text := bound("numba", "gru", (2, 3, 4), 5, num_layers=1)[0].explain())
    assert "numba" in text
    for more in ({"projection_size": 2}, {"lstm_state_clip_min": -1, "lstm_state_clip_max": 1}):
        executor, _ = bound("numba", "lstm", (2, 3, 4), 5, num_layers=1, **more)
        assert "only layers without lengths, projections and limits" in executor.explain()


@pytest.mark.parametrize("mode", MODES)
def test_threads_share_the_batch(mode, monkeypatch):
    args = mode, (6, 37, 20), 40
    expected = results("numpy", *args, num_layers=1)
    monkeypatch.setattr(recurrent, "_LEAST", 1)
    for count in (1, 2, 3, 7):
        monkeypatch.setattr(threads, "count", lambda count=count: count)
        found = results("numba", *args, num_layers=1)
        same(found, expected, "float32")
        assert all(np.array_equal(one, other) for one, other in zip(found, results("numba", *args, num_layers=1)))


@pytest.mark.parametrize("mode", MODES)
def test_how_many_threads_there_are_changes_no_bit(mode, monkeypatch):
    monkeypatch.setattr(recurrent, "_LEAST", 1)
    found = []
    for count in (1, 2, 3, 7):
        monkeypatch.setattr(threads, "count", lambda count=count: count)
        found.append(results("numba", mode, (6, 37, 20), 40, num_layers=1))
    for other in found[1:]:
        assert all(np.array_equal(*pair) for pair in zip(found[0], other))


@pytest.mark.parametrize("mode", MODES)
def test_weights_larger_than_the_cache_are_packed_once_for_all_threads(mode, monkeypatch):
    monkeypatch.setattr(recurrent, "_LEAST", 1)
    monkeypatch.setattr(threads, "count", lambda: 3)
    args = mode, (3, 21, 50), 37
    expected = results("numba", *args, num_layers=2, bidirectional=True)
    monkeypatch.setattr(recurrent, "processor", lambda: processor()._replace(l2=1))
    found = results("numba", *args, num_layers=2, bidirectional=True)
    assert all(np.array_equal(*pair) for pair in zip(found, expected))


@pytest.mark.parametrize("mode", MODES)
def test_unrequested_gradients_are_not_computed(mode):
    args, attrs = (mode, (4, 9, 17), 16), {"num_layers": 2}
    for null in (("data",), ("parameters",), ("state", "data")):
        same(results("numba", *args, null=null, **attrs), results("numpy", *args, null=null, **attrs), "float32")


@pytest.mark.parametrize("mode", MODES)
def test_compiled_layers_keep_nan_and_infinity(mode):
    def change(args):
        args["data"][1, 2, 3], args["data"][2, 0, 1], args["data"][0, 5, 0] = np.nan, np.inf, -np.inf

    args = mode, (4, 9, 20), 32
    found = results("numba", *args, num_layers=1, change=change)
    expected = results("numpy", *args, num_layers=1, change=change)
    assert np.isnan(expected[0]).any() and np.isfinite(expected[0]).any()
    for one, other in zip(found[:1], expected[:1]):
        assert np.array_equal(np.isnan(one), np.isnan(other))
        assert np.allclose(one, other, atol=1e-5, equal_nan=True)
    # The gradients of the samples that are ordinary numbers.
    ordinary = [i for i in range(9) if i not in (0, 2, 5)]
    place = -len(bound("numpy", *args, num_layers=1)[0].arg_arrays)
    assert np.allclose(found[place][:, ordinary], expected[place][:, ordinary], atol=1e-5)


def test_float16_is_computed_in_float32():
    args = "lstm", (3, 5, 6), 7, "float16"
    same(results("numba", *args, num_layers=2), results("numpy", *args, num_layers=2), "float16")


def test_dropout_between_layers_equals_the_reference():
    def run(kernels):
        mx.random.seed(5)
        return results(kernels, "gru", (4, 6, 8), 16, num_layers=3, p=0.5)

    same(run("numba"), run("numpy"), "float32")


def test_backward_may_run_with_other_kernels_than_forward():
    """Backward may use another kernel than forward: the saved values do not depend on the kernel."""
    for first, second in (("numpy", "numba"), ("numba", "numpy")):
        args = "lstm", (3, 4, 5), 6
        executor, heads = bound(first, *args, num_layers=2, bidirectional=True)
        with use(second):
            executor.backward(heads)
        found = [each.asnumpy() for each in (*executor.outputs, *executor.grad_arrays)]
        same(found, results("numpy", *args, num_layers=2, bidirectional=True), "float32")


@pytest.mark.parametrize("mode", MODES)
def test_compiled_layers_take_the_batch_axis_first(mode):
    """With the batch axis first, the operator reads and writes transposed arrays."""
    def run(kernels):
        names = ["data", "parameters", "state", *(["state_cell"] if mode == "lstm" else [])]
        data, *rest = map(sym.var, names)
        graph = sym.swapaxes(sym.RNN(sym.swapaxes(data, dim1=0, dim2=1), *rest, state_size=7, num_layers=1, mode=mode),
                             dim1=0, dim2=1)
        rng = np.random.default_rng(0)
        shapes, out_shapes, _ = graph.infer_shape(data=(5, 3, 6))
        args = [nd.array(rng.normal(size=shape)) for shape in shapes]
        grads = [nd.zeros(shape) for shape in shapes]
        with use(kernels):
            executor = graph.bind(mx.cpu(), args, grads)
            executor.forward(is_train=True)
            executor.backward(nd.array(rng.normal(size=out_shapes[0])))
        return [each.asnumpy() for each in (*executor.outputs, *grads)]

    same(run("numba"), run("numpy"), "float32")
