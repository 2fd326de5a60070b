"""Pooling on a GPU: all kinds of windows, all layouts, and gradients of the input."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda.operators import pooling
from opreg.core.registry import REGISTERED
from tests.backends.cuda.test_reductions import compared
from tests.cuda import host, nvrtc
from tests.cuda.host import Host, KernelError, array

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="needs the package nvidia-cuda-nvrtc")

BFLOAT = np.dtype(ml_dtypes.bfloat16)
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-12}
DEFAULTS: dict[str, Any] = {"kernel": (), "stride": (), "pad": (), "global_pool": False, "pooling_convention": "valid",
                            "layout": None, "count_include_pad": None, "p_value": None}
#: Shapes and windows.
WINDOWS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 9), {"kernel": (2,), "stride": (2,)}),
    ((2, 3, 7), {"kernel": (3,), "stride": (2,), "pad": (1,), "pooling_convention": "full"}),
    ((2, 3, 8, 7), {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 0)}),
    ((1, 2, 6, 6), {"kernel": (3, 3), "stride": (1, 1), "pad": (1, 1), "count_include_pad": False}),
    ((1, 2, 5, 7), {"kernel": (2, 2), "stride": (3, 3), "pooling_convention": "same"}),
    ((2, 6, 5, 8), {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "layout": "NHWC"}),
    ((1, 2, 4, 5, 6), {"kernel": (2, 3, 2), "stride": (2, 1, 1), "pad": (0, 1, 1)}),
    ((2, 3, 5, 4), {"global_pool": True}),
]


def ask(device: Host, op: str, kernel: Any, attrs: dict[str, Any], ins: list[np.ndarray], shape: tuple[int, ...],
        dtype: Any) -> np.ndarray:
    out = array(np.full(shape, np.nan), dtype)
    call = SimpleNamespace(attrs={**DEFAULTS, **attrs}, ins=ins, outs=[out], xp=device, op=REGISTERED[op],
                           scratch=lambda i, shape, dtype: array(np.full(shape, np.nan), dtype))
    for step in kernel(call):
        step()
    return out


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", BFLOAT, "float32", "float64"], ids=str)
def test_windows_are_pooled_as_the_reference_does(dtype: Any) -> None:
    device, rng, cases = Host(), np.random.default_rng(0), []
    kinds: list[tuple[str, int | None]] = [("max", None), ("avg", None), ("sum", None), ("lp", 1), ("lp", 2), ("lp", 3)]
    for (number, (shape, window)), (kind, power) in itertools.product(enumerate(WINDOWS), kinds):
        if kind in ("sum", "lp") and (number not in (2, 7) or dtype != "float32"):
            continue  # the difference is one line
        attrs = {**window, "pool_type": kind, "p_value": power}
        data = array(rng.integers(-3, 4, shape) if kind == "max" else rng.uniform(0.5, 2, shape), dtype)
        every = {**DEFAULTS, **attrs}
        names = ("kernel", "pool_type", "global_pool", "pooling_convention", "stride", "pad", "p_value",
                 "count_include_pad", "layout")
        expected = REGISTERED["Pooling"].kernels[0].rule.function(np, np.array(data), **{each: every[each]
                                                                                         for each in names})
        out = ask(device, "Pooling", pooling.pooling_cuda, attrs, [data], expected.shape, dtype)
        cases.append((f"{shape} {attrs}", out, expected))
        g = array(rng.standard_normal(expected.shape), dtype)
        some = [each for each in names if each not in ("p_value", "pool_type", "count_include_pad")]
        if kind == "max":
            top = array(expected, dtype)
            slope = REGISTERED["_backward_Pooling_max"].kernels[0].rule.function(
                np, np.array(g), np.array(data), np.array(top), **{each: every[each] for each in some})
            found = ask(device, "_backward_Pooling_max", pooling.pooling_back_cuda, attrs, [g, data, top], shape, dtype)
        elif kind == "lp":
            continue
        else:
            slope = REGISTERED["_backward_Pooling_sum"].kernels[0].rule.function(
                np, np.array(g), np.array(data), **{each: every[each] for each in (
                    *some, "pool_type", "count_include_pad")})
            found = ask(device, "_backward_Pooling_sum", pooling.pooling_back_cuda, attrs, [g, data], shape, dtype)
        cases.append((f"gradient {shape} {attrs}", found, slope))
    device.run("address")
    for name, out, expected in cases:
        tolerance = TOLERANCES[out.dtype.name]
        np.testing.assert_allclose(np.asarray(out, float), np.asarray(expected, float), tolerance, tolerance * 4,
                                   err_msg=name)


@needs_compiler
def test_maxima_ignore_nan_and_pass_it_no_gradient() -> None:
    data = array(np.full((1, 1, 8), np.nan), np.float32)
    data[0, 0, 2:5] = [1, 1, -np.inf]
    attrs = {"kernel": (2,), "stride": (2,), "pool_type": "max"}
    device = Host()
    lowest = np.finfo(np.float32).min
    expected = array(np.float32([[[lowest, 1, lowest, lowest]]]), np.float32)
    out = ask(device, "Pooling", pooling.pooling_cuda, attrs, [data], (1, 1, 4), np.float32)
    g = array(np.ones((1, 1, 4)), np.float32)
    slope = ask(device, "_backward_Pooling_max", pooling.pooling_back_cuda, attrs, [g, data, expected], (1, 1, 8),
                np.float32)
    device.run()
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(slope, [[[0, 0, 1, 0, 0, 0, 0, 0]]])


@needs_compiler
@pytest.mark.parametrize(("replaced", "by"), [("i1 >= n1", "i1 > n1"), ("i0 < 0 || ", "")])
def test_a_window_that_reads_outside_of_the_input_is_found(replaced: str, by: str) -> None:
    device = Host()
    data = array(np.ones((1, 1, 4, 4)), np.float32)
    attrs = {"kernel": (3, 3), "stride": (1, 1), "pad": (1, 1), "pool_type": "max"}
    ask(device, "Pooling", pooling.pooling_cuda, attrs, [data], (1, 1, 4, 4), np.float32)
    device.rewrite(replaced, by)
    with pytest.raises(KernelError, match="AddressSanitizer"):
        device.run("address")


@needs_nvrtc
def test_kernels_compile_for_gpus_without_spilling() -> None:
    texts = []
    for dtype in ("float16", BFLOAT, "float32", "float64"):
        for kind, window in (("max", ((3, 3), (2, 2), (1, 1))), ("avg", ((2, 2, 2), (2, 2, 2), (0, 0, 0))),
                             ("sum", ((7,), (1,), (3,)))):
            lanes = 16 // np.dtype(dtype).itemsize
            shape = pooling.Shape(np.dtype(dtype), kind, 1, *window, window[2], lanes, False)
            texts += [pooling.source(shape), pooling.gather_source(shape._replace(lanes=1) if kind == "max" else shape)]
    for i, made in enumerate(nvrtc.compile(texts)):
        assert made.spills == made.stack == 0
        if i % 2 == 0:
            assert any(access.startswith("ld.global") and ".v" in access for access in made.accesses)


@needs_compiler
@pytest.mark.parametrize(("attrs", "kernels"), [
    ({"kernel": (2, 2), "stride": (2, 2), "pool_type": "max"}, ["pool", "unpool"]),
    ({"kernel": (3, 3), "pad": (1, 1), "pool_type": "avg"}, ["pool", "unpool"]),
    ({"kernel": (2, 2), "pool_type": "lp", "p_value": 2}, ["pool", "unpool"]),
    ({"global_pool": True, "pool_type": "avg"}, ["rows", "unpool"]),
    ({"global_pool": True, "pool_type": "max"}, ["rows", "unpool"])])
def test_an_executor_pools_as_the_host_does(attrs: dict[str, Any], kernels: list[str]) -> None:
    data = np.random.default_rng(1).standard_normal((2, 3, 6, 8))
    ran = compared(mx.sym.Pooling(mx.sym.var("x"), **attrs), {"x": data})
    assert [kernel for kernel in ran if kernel != "elementwise"] == kernels
