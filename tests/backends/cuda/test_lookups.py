"""Lookups on a GPU, and the sums that are their gradients: equal to the reference, with the same bits in every run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda import sorting
from opreg.backends.cuda.operators import lookups
from opreg.core.registry import REGISTERED
from tests.backends.cuda.test_reductions import compared
from tests.cuda import host, nvrtc
from tests.cuda.host import Host, KernelError, array

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="needs the package nvidia-cuda-nvrtc")

BFLOAT = np.dtype(ml_dtypes.bfloat16)
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-12}
RNG = np.random.default_rng(0)
#: Indices: many for one row, none for some rows, and some out of range.
MANY = np.concatenate([np.zeros(140), RNG.integers(-3, 12, 60)])
#: Operator, attributes, the shape of the values, indices, and whether its gradient has the shape of the values.
CASES: list[tuple[str, dict[str, Any], tuple[int, ...], np.ndarray]] = [
    ("take", {"axis": 0, "mode": "clip"}, (9, 8), MANY), ("take", {"axis": 1, "mode": "wrap"}, (2, 9, 3), MANY),
    ("take", {"axis": -1, "mode": "clip"}, (3, 9), MANY[-20:].reshape(4, 5)),
    ("take", {"axis": 0, "mode": "clip"}, (3, 1100), np.array([2, 0, 2])),
    ("take", {"axis": 0, "mode": "wrap"}, (7, 4), np.array([-15, -14, -8, -7, 7, 13, 14, 8_000_000, -8_000_001])),
    ("gather_nd", {}, (3, 4, 5), np.array([[0, -1, 2, 0], [3, 1, -4, 3]])),
    ("gather_nd", {}, (3, 4), np.array([[0, 1, 0], [3, 1, 3]])),
    ("pick", {"axis": 1, "mode": "clip", "keepdims": False}, (3, 4, 5), RNG.integers(-2, 6, (3, 5))),
    ("pick", {"axis": -1, "mode": "wrap", "keepdims": True}, (3, 4), np.array([[9], [-1], [2]])),
]


def ask(device: Host, op: str, attrs: dict[str, Any], ins: list[np.ndarray], out: np.ndarray) -> np.ndarray:
    (kernel,) = [each for each in REGISTERED[op].kernels if each.name == "cuda"]
    memory: dict[int, np.ndarray] = {}
    call = SimpleNamespace(attrs=attrs, ins=ins, outs=[out], xp=device, op=REGISTERED[op],
                           scratch=lambda key, shape, dtype: memory.setdefault(key, array(np.zeros(shape), dtype)))
    assert kernel.accepts(call) is None
    for step in kernel.rule.function(call):
        step()
    return out


def lookups_of(device: Host, dtype: Any, kinds: list[str]) -> list[tuple[str, np.ndarray, np.ndarray]]:
    found = []
    for number, (op, attrs, shape, indices) in enumerate(CASES):
        data, index = array(RNG.standard_normal(shape), dtype), array(indices, kinds[number % len(kinds)])
        expected = REGISTERED[op].kernels[0].rule.function(np, data, index, **attrs)
        g = array(RNG.standard_normal(expected.shape), dtype)
        found.append((op, ask(device, op, attrs, [data, index], array(np.full(expected.shape, np.nan), dtype)),
                      expected))
        back, wide = f"_backward_{op}", np.asarray(g, np.float64)
        rule = REGISTERED[back].kernels[0].rule.function
        given = {"shape": None} if op == "gather_nd" else {name: attrs[name] for name in ("axis", "mode")}
        slope = rule(np, wide, index, np.asarray(data, np.float64), **given)
        found.append((back, ask(device, back, attrs, [g, index, data], array(np.full(shape, np.nan), dtype)), slope))
    return found


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", BFLOAT, "float32", "float64"], ids=str)
def test_lookups_and_their_gradients_equal_the_reference(dtype: Any) -> None:
    device = Host()
    cases = lookups_of(device, dtype, ["int32", "float32", "int64"])
    device.run("address")
    for name, out, expected in cases:
        tolerance = TOLERANCES[out.dtype.name]
        np.testing.assert_allclose(np.asarray(out, float), np.asarray(expected, float), tolerance, tolerance * 30,
                                   err_msg=name)


@needs_compiler
def test_sums_are_the_same_in_any_order_of_blocks_and_threads_without_races() -> None:
    outs = []
    for sanitizer, order in (("thread", "forward"), ("address", "reversed")):
        device = Host()
        g = array(np.random.default_rng(1).standard_normal((200, 7)), np.float32)
        outs.append(ask(device, "_backward_take", {"axis": 0, "mode": "clip"}, [g, array(MANY, "int32"), g],
                        array(np.full((9, 7), np.nan), np.float32)))
        device.run(sanitizer, order)
    np.testing.assert_array_equal(*outs)


@needs_compiler
def test_a_kernel_that_does_not_clip_indices_is_detected() -> None:
    device = Host()
    ask(device, "take", {"axis": 0, "mode": "clip"}, [array(np.ones((3, 4)), np.float32), array([3], "int32")],
        array(np.ones((1, 4)), np.float32))
    device.rewrite("place >= length ? length - 1 : place", "place")
    with pytest.raises(KernelError, match="heap-buffer-overflow"):
        device.run("address")


@needs_nvrtc
def test_kernels_compile_for_gpus_without_spilling() -> None:
    texts = []
    for dtype in (np.dtype("float16"), BFLOAT, np.dtype("float32"), np.dtype("float64")):
        index, lanes = np.dtype("float32" if dtype == BFLOAT else "int64"), 16 // dtype.itemsize
        texts += [lookups.read_source(dtype, index, "clip", 1, lanes),
                  lookups.sum_source(dtype, index, "wrap", 2, lanes), lookups.picked_source(dtype, index, "clip"),
                  lookups.put_source(dtype, index, "wrap", True, lanes, False),
                  lookups.stretch_source(dtype, lanes, 128), lookups.run_source(dtype, lanes, 128)]
    for i, made in enumerate(nvrtc.compile(texts)):
        assert made.spills == made.stack == 0
        assert i % 6 == 2 or any(".v" in access for access in made.accesses)
    for made in nvrtc.compile([sorting.TALLY, sorting.OFFSETS, sorting.DEAL]):
        assert made.spills == made.stack == 0


@needs_nvrtc
@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_a_thread_divides_once_for_its_first_element(mode: str) -> None:
    """Each thread divides once for its first element, and counts on for the next ones."""
    single, half, index = np.dtype("float32"), np.dtype("float16"), np.dtype("int64")
    texts = [lookups.keys_source(index, mode, 1)]
    for dtype in (single, half):
        lanes = 16 // dtype.itemsize
        texts += [lookups.read_source(dtype, index, mode, 1, lanes), lookups.sum_source(dtype, index, mode, 1, lanes),
                  lookups.picked_source(dtype, single, mode), lookups.put_source(dtype, single, mode, False, lanes),
                  lookups.put_source(dtype, single, mode, True, lanes, False),
                  lookups.stretch_source(dtype, lanes, 128), lookups.run_source(dtype, lanes, 128)]
    for made in nvrtc.compile(texts, 90):
        assert made.repeated and not made.divisions


@needs_compiler
def test_an_embedding_learns_as_on_the_host() -> None:
    net = mx.sym.Embedding(mx.sym.var("words"), mx.sym.var("x"), input_dim=9, output_dim=8)
    words = np.array([[0, 4, 4], [8, 0, 20]])
    ran = compared(net, {"x": RNG.standard_normal((9, 8)), "words": words})
    assert ran == ["look_up", "add_up"]


@needs_compiler
def test_indices_that_raise_errors_are_left_to_the_reference() -> None:
    call = SimpleNamespace(attrs={"mode": "raise"}, ins=[array(np.ones((4, 1)), np.float32), array(np.ones(4), "int32"),
                                                         None], outs=[array(np.ones((2, 1)), np.float32)])
    (kernel,) = [each for each in REGISTERED["_backward_take"].kernels if each.name == "cuda"]
    assert "check all indices first" in kernel.accepts(call)


# ------------------------------------------------------------------------------------------------- many indices

#: Indices of gradients: one row alone, runs longer than several stretches, all rows, more rows than one byte counts.
RUNS = [np.zeros(300), np.repeat([5, 2, 7], [200, 1, 64]), np.arange(130) % 130, RNG.integers(0, 70_000, 1500),
        RNG.zipf(1.3, 400) % 300]


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_many_indices_are_sorted_and_rows_added_in_their_order(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bits are those of adding the rows of an index one after another, in stretches."""
    monkeypatch.setattr(lookups, "SORTED", 1)
    device, cases = Host(), []
    for indices in RUNS:
        rows, wide = int(indices.max()) + 3, 8 if indices.size < 1000 else 1
        for tables in (1, 2):
            shape = (tables, rows, wide)
            g = array(RNG.integers(-8, 9, (tables, indices.size, wide)) / 8, dtype)  # sums are exact
            out = ask(device, "_backward_take", {"axis": 1, "mode": "clip"},
                      [g, array(indices, "int32"), array(np.zeros((1,)), dtype)], array(np.full(shape, np.nan), dtype))
            expected = np.zeros(shape)
            for table in range(tables):
                np.add.at(expected[table], indices.astype(int), np.asarray(g[table], float))
            cases.append((out, expected.astype(dtype)))
    assert {"tally", "offsets", "deal", "stretch", "run"} <= {each.name.partition("__")[0] for each in device.launches}
    device.run("address", "reversed")
    for out, expected in cases:
        np.testing.assert_array_equal(out, expected)


@needs_compiler
def test_a_sort_is_stable_and_threads_do_not_race() -> None:
    for sanitizer in ("thread", "address"):
        device = Host()
        given = np.random.default_rng(4).integers(0, 1 << 17, 2100).astype(np.uint32)
        given[::3] = given[1]
        steps, keys, places = sorting.bound_sort(device, array(given), (1 << 17) - 1,  # type: ignore[arg-type]
                                                 lambda key, shape, dtype: array(np.zeros(shape), dtype))
        for step in steps:
            step()
        assert len(steps) == 9  # three launches a byte
        device.run(sanitizer)
        np.testing.assert_array_equal(places, np.argsort(given, kind="stable"))
        np.testing.assert_array_equal(keys, np.sort(given))


@needs_compiler
def test_a_large_embedding_learns_as_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "SORTED", 50)
    net = mx.sym.Embedding(mx.sym.var("words"), mx.sym.var("x"), input_dim=9, output_dim=8)
    ran = compared(net, {"x": RNG.standard_normal((9, 8)), "words": RNG.integers(0, 9, (4, 50))})
    assert ran == ["look_up", "keys", "tally", "offsets", "deal", "stretch", "run"]
