"""Choices by trials: the faster implementation is chosen, stored and found again, and files of other users are never
trusted."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import opreg as mx
from opreg.backends import blas, trials
from opreg.backends.numba import cache
from opreg.backends.onednn import shared_library
from opreg.backends.onednn.operators import products
from opreg.symbol import Symbol

sym = mx.sym


class Machine:
    """A clock, and two implementations that take given numbers of seconds."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls: list[str] = []

    def ways(self, usual: float, other: float) -> dict[str, Callable[[], object]]:
        return {"usual": lambda: self._take("usual", usual), "other": lambda: self._take("other", other)}

    def _take(self, name: str, seconds: float) -> None:
        self.calls.append(name)
        self.now += seconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    machine = Machine()
    monkeypatch.setenv("OPREG_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("OPREG_TUNE", "1")
    monkeypatch.setattr(trials, "_clock", lambda: machine.now)
    forget(monkeypatch)
    return machine


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets all trials, like a new process."""
    monkeypatch.setattr(trials, "_earlier_results", trials.functools.cache(trials._earlier_results.__wrapped__))


def asked(machine: Machine, usual: float, other: float) -> str:
    return trials.faster("question", "usual", "other", machine.ways(usual, other)).way


@pytest.mark.parametrize(("usual", "other", "way"), [
    (3e-5, 2e-5, "other"), (2e-5, 3e-5, "usual"), (2e-5, 1.9e-5, "usual"), (1.0, 1.0, "usual")])
def test_the_faster_implementation_is_chosen(machine, usual, other, way):
    assert asked(machine, usual, other) == way


def test_a_trial_ends_after_a_few_rounds(machine):
    asked(machine, 2e-5, 2e-5)
    assert len(machine.calls) == 2 + 2 * trials._ROUNDS
    for seconds, rounds in ((0.01, trials._FEW_ROUNDS), (0.5, 1)):
        machine.calls.clear()
        trials.faster(f"of {seconds} s", "usual", "other", machine.ways(seconds, seconds))
        assert len(machine.calls) == 2 + 2 * rounds


def test_implementations_with_spinning_threads_are_tried_separately(machine):
    choice = trials.faster("question", "usual", "other", machine.ways(3e-5, 2e-5), apart=True)
    rounds = 1 + trials._ROUNDS
    assert choice.way == "other" and machine.calls == ["usual"] * rounds + ["other"] * rounds


def test_known_specs_are_not_inferred_again(machine, monkeypatch):
    assert asked(machine, 3e-5, 2e-5) == "other"
    machine.calls.clear()
    assert asked(machine, 2e-5, 3e-5) == "other"
    forget(monkeypatch)
    assert asked(machine, 2e-5, 3e-5) == "other"
    assert machine.calls == []


def test_trials_run_again_on_another_processor(machine, monkeypatch):
    assert asked(machine, 3e-5, 2e-5) == "other"
    forget(monkeypatch)
    monkeypatch.setattr(trials, "_name", lambda: "0" * 40 + ".choices")
    assert asked(machine, 2e-5, 3e-5) == "usual"


def _kept(tmp_path: Path) -> Path:
    return next((tmp_path / "kept").glob("*.choices"))


@pytest.mark.parametrize("damage", [
    lambda path: path.write_bytes(path.read_bytes()[:-1]),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(path.read_bytes().replace(b"other", b"usual")),
    lambda path: path.chmod(0o666),
    lambda path: cache.store(path.name, b'{"question": 7}'),
    lambda path: cache.store(path.name, b'[["question"]]'),
    lambda path: cache.store(path.name, b"\xff"),
    lambda path: cache.store(path.name, b'{"question": ["nonsense", ""]}')])
def test_damaged_or_foreign_files_are_not_used(machine, monkeypatch, tmp_path, damage):
    assert asked(machine, 3e-5, 2e-5) == "other"
    damage(_kept(tmp_path))
    forget(monkeypatch)
    assert asked(machine, 2e-5, 3e-5) == "usual"


def test_the_number_of_stored_trials_is_bounded(machine, monkeypatch, tmp_path):
    monkeypatch.setattr(trials, "_MOST", 3)
    for number in range(5):
        trials.faster(str(number), "usual", "other", machine.ways(1.0, 1.0))
    content = cache.read_cached(_kept(tmp_path).name)
    assert content is not None and list(json.loads(content)) == ["2", "3", "4"]


# ------------------------------------------------------------------------------------------------ products

FAST = pytest.mark.skipif(shared_library.missing() is not None, reason="needs oneDNN")
onednn = pytest.mark.skipif(shared_library.missing() is not None or shared_library.openmp() is None,
                            reason="needs oneDNN with threads of OpenMP")


def _network() -> Symbol:
    x = sym.FullyConnected(sym.Variable("x"), num_hidden=96, name="wide")
    return sym.FullyConnected(x, num_hidden=64, no_bias=True, name="narrow")


def _bound(network: Symbol, **shapes: tuple[int, ...]) -> mx.executor.Executor:
    executor = network.simple_bind(mx.cpu(), **shapes)
    rng = np.random.default_rng(0)
    for array in executor.arg_arrays:
        array[:] = rng.standard_normal(array.shape)
    return executor


def _results(executor: mx.executor.Executor) -> list[np.ndarray]:
    out, = executor.forward(is_train=True)
    executor.backward([mx.nd.array(np.random.default_rng(1).standard_normal(out.shape))])
    return [array.asnumpy() for array in (out, *executor.grad_arrays)]


def _attention(batch: int, heads: int) -> Symbol:
    """A dense layer with bias, products of stacks with either factor transposed, and a dense layer without bias."""
    x = sym.reshape(sym.FullyConnected(sym.Variable("x"), num_hidden=3 * 64, flatten=False), (0, 0, 3, heads, -1))
    q, k, v = sym.split(sym.transpose(x, (2, 0, 3, 1, 4)), num_outputs=3, axis=0, squeeze_axis=True)
    q, k, v = (sym.reshape(part, (-3, 0, 0)) for part in (q, k, v))
    y = sym.batch_dot(sym.softmax(sym.batch_dot(q, k, transpose_b=True)), v)
    return sym.FullyConnected(sym.reshape(y, (batch, -1)), num_hidden=512, no_bias=True)


PRODUCTS = 12  # forward, and two gradients of each


@onednn
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("way", ["oneDNN", "BLAS"])
def test_a_plan_multiplies_by_one_library(machine, monkeypatch, way, count):
    """The first large product decides the library for all; the results equal the reference with either."""
    monkeypatch.setattr(products.threads, "count", lambda: count)
    monkeypatch.setattr(products, "_LEAST", 1 << 20)
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(trials, "_try_ways", lambda usual, other, *rest: asked.append((usual, other)) or trials.Choice(
        way if way in (usual, other) else usual, "so it is"))
    executor = _bound(_attention(4, 4), x=(4, 64, 96))
    found, text = _results(executor), executor.explain()
    assert asked.count(("oneDNN", "BLAS")) == 1
    taken = way == "oneDNN"
    assert len(re.findall(": onednn(;| ->)", text)) == PRODUCTS * taken
    assert text.count("onednn declined: so it is") == PRODUCTS * (not taken)
    monkeypatch.setenv("OPREG_TUNE", "0")
    other = _bound(_attention(4, 4), x=(4, 64, 96))
    assert "onednn declined: OPREG_TUNE=0 allows no trial" in other.explain()
    want = _results(other)
    monkeypatch.setattr(shared_library, "_FORKED", [True])  # steps in a forked child do without the library
    for results in (found, _results(executor)):
        for got, expected in zip(results, want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3 * np.abs(expected).max())


@onednn
@pytest.mark.parametrize(("shape", "dtype", "held", "reason"), [
    ((1024, 1024), "float64", True, "oneDNN takes float32 here, not float64"),
    ((8, 32), "float32", True, "the product is small"),
    ((1024, 1024), "float32", False, "the library has no threads to be held")])
def test_some_plans_multiply_by_blas(machine, monkeypatch, shape, dtype, held, reason):
    if not held:
        monkeypatch.setattr(shared_library, "openmp", lambda: None)
    executor = _network().simple_bind(mx.cpu(), x=shape, type_dict={"x": dtype})
    text = executor.explain()
    assert not re.search(": onednn(;| ->)", text) and text.count(f"onednn declined: {reason}") >= 3


@onednn
def test_small_stacks_stay_with_blas(machine):
    rows = sym.batch_dot(sym.Variable("x"), sym.Variable("y"))
    text = rows.simple_bind(mx.cpu(), x=(8, 64, 64), y=(8, 64, 64)).explain()
    assert text.count("onednn declined: no convolution of this plan runs there, and no large product before it") >= 1


@onednn
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("faster", ["oneDNN", "BLAS"])
def test_each_small_product_has_the_faster_library(machine, monkeypatch, faster, count):
    """Trials of oneDNN use one thread, so that BLAS's threads are free to compute the other products."""
    openmp = shared_library.openmp()
    assert openmp is not None
    monkeypatch.setattr(products.threads, "count", lambda: count)
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(trials, "_try_ways", lambda usual, other, *rest: asked.append((usual, other)) or trials.Choice(
        faster, "so it is"))
    most, used = openmp.most(), []
    run = products.engine.Work.run
    monkeypatch.setattr(products.engine.Work, "run", lambda work: (used.append(openmp.most()), run(work)))
    monkeypatch.setattr(blas.Watched, "until", 0.0)
    monkeypatch.setattr(blas, "_clock", lambda: 0.0)  # no product has waited for threads
    executor = _bound(_network(), x=(70, 128))
    found, text = _results(executor), executor.explain()
    products_there = 6  # forward, and two gradients of each layer
    assert asked == [("BLAS", "oneDNN")] * products_there
    taken = faster == "oneDNN"
    assert len(re.findall(": onednn(;| ->)", text)) == products_there * taken
    assert text.count("onednn declined: so it is") == products_there * (not taken)
    assert used == [1] * products_there * taken and openmp.most() == most and blas.Watched.until == 0.0
    monkeypatch.setenv("OPREG_TUNE", "0")
    for got, want in zip(found, _results(_bound(_network(), x=(70, 128))), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3 * np.abs(want).max())


@onednn
def test_a_large_product_does_not_decide_for_small_ones(machine, monkeypatch):
    """Small products have trials of their own, also if BLAS computes the large one."""
    monkeypatch.setattr(trials, "_try_ways", lambda usual, other, *rest: trials.Choice(other, f"not {usual}"))
    x = sym.FullyConnected(sym.Variable("x"), num_hidden=2048, name="large")
    text = _bound(sym.FullyConnected(x, num_hidden=8, name="small"), x=(64, 128)).explain()
    assert re.search("large: .*onednn declined: not oneDNN", text) and re.search("small: onednn(;| ->)", text)


@onednn
@pytest.mark.parametrize("faster", ["oneDNN", "BLAS"])
def test_small_products_are_tried_where_onednn_computes_the_plan(machine, monkeypatch, faster):
    """In such a plan oneDNN uses all its threads; BLAS is three times as fast for a single row."""
    monkeypatch.setattr(trials, "_try_ways", lambda usual, other, *rest: trials.Choice(faster, "so it is"))
    monkeypatch.setattr(products.convolution, "LEAST", 0)
    x = sym.Convolution(sym.Variable("x"), kernel=(3, 3), num_filter=8, name="first")
    executor = _bound(sym.FullyConnected(x, num_hidden=512, name="dense"), x=(1, 3, 12, 12))
    found, text = _results(executor), executor.explain()
    assert re.search("first: onednn(;| ->)", text)
    assert re.search("dense: onednn(;| ->)" if faster == "oneDNN" else "dense: .*onednn declined: so it is", text)
    monkeypatch.setenv("OPREG_TUNE", "0")
    other = _bound(sym.FullyConnected(x, num_hidden=512, name="dense"), x=(1, 3, 12, 12))
    assert re.search("dense: onednn(;| ->)", other.explain())
    for got, want in zip(found, _results(other), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3 * np.abs(want).max())


@onednn
def test_large_matrices_are_tried_by_smaller_ones(machine, monkeypatch):
    tried: list[object] = []
    monkeypatch.setattr(trials, "_try_ways", lambda usual, other, ways, apart: trials.Choice(usual, str(tried.extend(
        run() for run in ways.values()))))
    number = np.ones(1, "float32")
    a = np.lib.stride_tricks.as_strided(number, (100_000, 50_000), (200_000, 4))
    assert products._faster_library(a, a.T).way == "oneDNN"
    question = next(iter(trials._earlier_results()))
    assert len(tried) == 2 and "(1024, 1024) by (4096, 4) and (1024, 1024) by (4, 4096)" in question


@onednn
@pytest.mark.parametrize(("same", "count"), [(True, 2), (False, 2), (True, 1)])
def test_a_trial_has_the_threads_of_the_plan(machine, monkeypatch, same, count):
    """Both libraries are tried with all threads, or with one if the plan has one or if several give other bits."""
    openmp = shared_library.openmp()
    assert openmp is not None
    monkeypatch.setattr(products.threads, "count", lambda: count)
    several_compute = same and count > 1
    seen: dict[str, list[int]] = {"oneDNN": [], "BLAS": []}
    monkeypatch.setattr(products, "_same_bits", lambda *about: same)
    monkeypatch.setattr(products.engine.Work, "run", lambda work: seen["oneDNN"].append(openmp.most()))
    alone = functools.partial(seen["BLAS"].append, 1)
    several = blas.Watched(lambda a, b, out: seen["BLAS"].append(2), 1)  # type: ignore[func-returns-value]
    monkeypatch.setattr(blas, "multiplier", lambda xp, a, b: several if several_compute else lambda a, b, out: alone())
    a = np.ones((256, 512), "float32")
    products._faster_library(a, np.ones((512, 128), "float32"))
    assert set(seen["oneDNN"]) == {openmp.most() if several_compute else 1}
    assert set(seen["BLAS"]) == {2 if several_compute else 1}


@onednn
def test_a_transposed_factor_is_copied_where_that_is_faster(machine, monkeypatch, tmp_path):
    monkeypatch.setattr(products.threads, "count", lambda: 2)
    monkeypatch.setattr(products, "_LEAST", 1 << 18)
    found, asked = [], []
    for way in (products._IN_PLACE, products._COPIED):
        monkeypatch.setattr(trials, "_try_ways", lambda usual, other, ways, apart, way=way: asked.append(
            [run() for run in ways.values()]) or trials.Choice(way if way in (usual, other) else usual, ""))
        forget(monkeypatch)
        monkeypatch.setenv("OPREG_CACHE_DIR", str(tmp_path / str(len(found))))
        copies: list[object] = []
        copied = products._copy_before
        monkeypatch.setattr(products, "_copy_before", lambda *about: copies.append(about) or copied(*about))
        executor = _bound(_network(), x=(128, 80))
        found.append(_results(executor))
        found.append(_results(executor))
        monkeypatch.setattr(products, "_copy_before", copied)
        # One of each for the trial, and one for the gradient of each weight.
        assert len(copies) == 2 * (1 + (way == products._COPIED))
    assert asked
    for results in found[1:]:
        for got, want in zip(results, found[0], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


@onednn
@pytest.mark.parametrize("same", [True, False])
def test_a_thread_that_waited_for_onednn_multiplies_alone(machine, monkeypatch, same):
    """After a wait a thread computes alone for a while if the bits are the same, otherwise always. The number of
    threads stays."""
    openmp = shared_library.openmp()
    assert openmp is not None
    monkeypatch.setattr(products.threads, "count", lambda: 2)
    monkeypatch.setattr(products, "_same_bits", lambda *about: same)
    monkeypatch.setattr(trials, "_try_ways", lambda usual, other, ways, apart: trials.Choice(usual, ""))
    monkeypatch.setattr(products._ReproducibleProduct, "until", 0.0)
    most, seen = openmp.most(), []
    run = products.engine.Work.run
    monkeypatch.setattr(products.engine.Work, "run", lambda work: (seen.append(openmp.most()), run(work)))
    executor = sym.FullyConnected(sym.Variable("x"), num_hidden=256).simple_bind(mx.cpu(), x=(256, 256))
    seen.clear()
    executor.forward()
    products._ReproducibleProduct.until = blas._clock() + 100.0
    executor.forward()
    assert seen == [most if same else 1, 1] and openmp.most() == most


@FAST
def test_libraries_with_uncontrolled_threads_multiply(machine, monkeypatch):
    """In plans whose convolutions oneDNN computes, it also multiplies, with the available threads."""
    monkeypatch.setattr(shared_library, "openmp", lambda: None)
    x = sym.Convolution(sym.Variable("x"), kernel=(3, 3), num_filter=8)
    executor = _bound(sym.FullyConnected(x, num_hidden=64, name="dense"), x=(8, 3, 12, 12))
    found = _results(executor)
    assert re.search("dense: onednn(;| ->)", executor.explain())
    monkeypatch.setattr(shared_library, "_FORKED", [True])
    for got, want in zip(found, _results(executor), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3 * np.abs(want).max())


@onednn
def test_one_thread_and_several_find_the_same_product():
    """Both give the same bits for matrices for which ``_same_bits`` promises it."""
    for shape, turned in (((64, 784, 128), True), ((128, 64, 784), False), ((96, 1000, 40), True)):
        m, k, n = shape
        rng = np.random.default_rng(0)
        a = rng.standard_normal((m, k), "float32")
        b = rng.standard_normal((n, k), "float32").T if turned else rng.standard_normal((k, n), "float32")
        found = products.Matrices(a, b, rng.standard_normal(n, "float32"), np.empty((m, n), "float32"))
        room: list[int] = []  # its workspace, with arbitrary content
        run = products._bound(found, lambda number, size, dtype: (room.append(*size), np.full(size, 255, dtype))[1])
        run()
        several = found.out.copy()
        products._on_one_thread(run)
        assert len(room) == 1
        if products._same_bits(*products._describe(found)):
            np.testing.assert_array_equal(found.out, several)
        np.testing.assert_allclose(several, a.astype("float64") @ b + found.bias, rtol=1e-4, atol=1e-3)


A, B, WIDE = (80, 90), (90, 70), (5, 80, 90)


@onednn
@pytest.mark.parametrize(("name", "shapes", "attrs", "steps"), [
    ("dot", (A, B), {}, 3), ("dot", (A[::-1], B), {"transpose_a": True}, 3),
    ("dot", (A, B[::-1]), {"transpose_b": True}, 3), ("dot", (WIDE, B), {}, 3),
    ("batch_dot", (WIDE, (5, 90, 70)), {}, 3),
    ("batch_dot", ((5, 90, 80), (5, 70, 90)), {"transpose_a": True, "transpose_b": True}, 3),
    ("linalg_gemm2", (WIDE, (5, 90, 70)), {}, 3), ("linalg_gemm2", (A, B), {"alpha": 2.0}, 0),
    ("linalg_syrk", (A,), {}, 1), ("FullyConnected", (A, (70, 90), (70,)), {"num_hidden": 70}, 3),
    ("FullyConnected", (WIDE, (70, 90), (70,)), {"num_hidden": 70, "flatten": False}, 3),
    ("FullyConnected", (WIDE, (70, 7200)), {"num_hidden": 70, "no_bias": True}, 3)])
def test_products_of_every_kind_equal_the_reference(machine, monkeypatch, name, shapes, attrs, steps):
    """Outputs and gradients equal the reference's; the library computes the kinds that it can."""
    monkeypatch.setattr(products, "_left_to_blas", lambda *about: None)
    found = []
    for there in (True, False):
        with monkeypatch.context() as patch:
            if not there:
                patch.setattr(products.convolution, "declined", lambda *about: "not now")
            inputs = [sym.Variable(f"x{i}") for i in range(len(shapes))]
            network = getattr(sym, name)(*inputs, **attrs)
            executor = _bound(network, **{f"x{i}": shape for i, shape in enumerate(shapes)})
            found.append(_results(executor))
            assert len(re.findall(": onednn(;| ->)", executor.explain())) >= steps * there
            assert there or ": onednn" not in executor.explain()
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3 * np.abs(want).max())


#: Parts of data (96, 2 × 80) and how they are made.
PARTS = {
    "slice_axis": lambda x: [sym.slice_axis(x, axis=1, begin=i, end=i + 80) for i in (0, 80)],
    "slice": lambda x: [sym.slice(x, begin=(0, i), end=(96, None), step=(1, 2)) for i in (0, 1)],
    "split": lambda x: sym.split(x, num_outputs=2, axis=1),
    "SliceChannel": lambda x: sym.SliceChannel(x + 1.0, num_outputs=2, axis=1),
    "transpose": lambda x: sym.split(sym.transpose(sym.reshape(x, (2, 80, 96)), (0, 2, 1)), num_outputs=2, axis=0,
                                     squeeze_axis=True)}


@onednn
@pytest.mark.parametrize("name", PARTS)
def test_dense_layers_read_parts_of_an_array_without_a_copy(machine, monkeypatch, name):
    """The library reads parts of a larger array, such as gates and heads, without a copy."""
    monkeypatch.setattr(products.threads, "count", lambda: 2)
    monkeypatch.setattr(products, "_LEAST", 1 << 18)
    monkeypatch.setattr(trials, "_try_ways", lambda usual, other, ways, apart: trials.Choice(usual, ""))
    left, right = PARTS[name](sym.Variable("x"))
    network = sym.FullyConnected(left, num_hidden=64, name="left") * sym.FullyConnected(
        right, num_hidden=64, no_bias=True, name="right")
    executor = _bound(network, x=(96, 160))
    found, text = _results(executor), executor.explain()
    assert re.search("left: onednn(;| ->)", text) or name == "slice"
    monkeypatch.setattr(shared_library, "_FORKED", [True])
    for got, want in zip(found, _results(executor), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3 * np.abs(want).max())


@onednn
def test_a_compiled_layer_reads_a_part_of_an_array(machine, monkeypatch):
    monkeypatch.setattr(products.threads, "count", lambda: 2)
    monkeypatch.setattr(products, "_LEAST", 1 << 18)
    monkeypatch.setattr(trials, "_try_ways", lambda usual, other, ways, apart: trials.Choice(usual, ""))
    dense = mx.nn.Dense(80, 64)

    def gated(x: mx.Tensor) -> mx.Tensor:
        value, gate = mx.ops.chunk(x, 2, 1)
        return dense(value * gate) + dense(gate)

    x = mx.Tensor(np.random.default_rng(0).standard_normal((96, 160)).astype("float32"))
    found, want = [(run(x), mx.grad(run)(x)) for run in (mx.jit(gated), gated)]
    for got, expected in zip(found, want, strict=True):
        np.testing.assert_allclose(got.asnumpy(), expected.asnumpy(), rtol=1e-4, atol=1e-3)
