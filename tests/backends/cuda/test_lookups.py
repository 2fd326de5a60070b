"""Lookups on a GPU, and the sums that are their gradients: what the reference gives, the same bits every time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opreg as mx
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
#: Many for one row, some for none, and some that are out of range.
MANY = np.concatenate([np.zeros(140), RNG.integers(-3, 12, 60)])
#: Operator, attributes, the shape of the values, indices, and whether its gradient has the shape of the values.
CASES: list[tuple[str, dict[str, Any], tuple[int, ...], np.ndarray]] = [
    ("take", {"axis": 0, "mode": "clip"}, (9, 8), MANY), ("take", {"axis": 1, "mode": "wrap"}, (2, 9, 3), MANY),
    ("take", {"axis": -1, "mode": "clip"}, (3, 9), MANY[-20:].reshape(4, 5)),
    ("take", {"axis": 0, "mode": "clip"}, (3, 1100), np.array([2, 0, 2])),
    ("gather_nd", {}, (3, 4, 5), np.array([[0, -1, 2, 0], [3, 1, -4, 3]])),
    ("gather_nd", {}, (3, 4), np.array([[0, 1, 0], [3, 1, 3]])),
    ("pick", {"axis": 1, "mode": "clip", "keepdims": False}, (3, 4, 5), RNG.integers(-2, 6, (3, 5))),
    ("pick", {"axis": -1, "mode": "wrap", "keepdims": True}, (3, 4), np.array([[9], [-1], [2]])),
]


def ask(device: Host, op: str, attrs: dict[str, Any], ins: list[np.ndarray], out: np.ndarray) -> np.ndarray:
    (kernel,) = [each for each in REGISTERED[op].kernels if each.name == "cuda"]
    call = SimpleNamespace(attrs=attrs, ins=ins, outs=[out], xp=device, op=REGISTERED[op])
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
def test_numbers_are_looked_up_and_added_up_as_the_reference_does(dtype: Any) -> None:
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
                        array(np.empty((9, 7)), np.float32)))
        device.run(sanitizer, order)
    np.testing.assert_array_equal(*outs)


@needs_compiler
def test_an_index_that_is_not_brought_inside_is_found() -> None:
    device = Host()
    ask(device, "take", {"axis": 0, "mode": "clip"}, [array(np.ones((3, 4)), np.float32), array([3], "int32")],
        array(np.ones((1, 4)), np.float32))
    device.rewrite("place >= length ? length - 1 : place", "place")
    with pytest.raises(KernelError, match="heap-buffer-overflow"):
        device.run("address")


@needs_nvrtc
@pytest.mark.parametrize("architecture", [75, 80, 90])
def test_they_compile_for_gpus_without_spilling(architecture: int) -> None:
    texts = []
    for dtype in (np.dtype("float16"), BFLOAT, np.dtype("float32"), np.dtype("float64")):
        index, lanes = np.dtype("float32" if dtype == BFLOAT else "int64"), 16 // dtype.itemsize
        texts += [lookups.read_source(dtype, index, "clip", 1, lanes),
                  lookups.sum_source(dtype, index, "wrap", 2, lanes), lookups.picked_source(dtype, index, "clip"),
                  lookups.put_source(dtype, index, "wrap", True)]
    for i, made in enumerate(nvrtc.compile(texts, architecture)):
        assert made.spills == made.stack == 0
        assert i % 4 > 1 or any(".v" in access for access in made.accesses)


@needs_compiler
def test_an_embedding_learns_as_on_the_host() -> None:
    net = mx.sym.Embedding(mx.sym.var("words"), mx.sym.var("x"), input_dim=9, output_dim=8)
    words = np.array([[0, 4, 4], [8, 0, 20]])
    ran = compared(net, {"x": RNG.standard_normal((9, 8)), "words": words})
    assert ran == ["look_up", "add_up"]


@needs_compiler
def test_too_many_indices_and_those_that_are_to_be_refused_are_left_to_the_reference() -> None:
    call = SimpleNamespace(attrs={"mode": "clip"}, ins=[array(np.ones((lookups.MOST + 1, 1)), np.float32),
                                                       array(np.ones(lookups.MOST + 1), "int32"), None],
                           outs=[array(np.ones((2, 1)), np.float32)])
    (kernel,) = [each for each in REGISTERED["_backward_take"].kernels if each.name == "cuda"]
    assert "more than 65536 indices" in kernel.accepts(call)
    call.attrs["mode"] = "raise"
    assert "looks at all indices" in kernel.accepts(call)
