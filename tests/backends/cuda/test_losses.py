"""Losses on a GPU, and softmax along axes that are not the last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda import rows
from opreg.builtin.layers.losses import _cost_slope, _through_svm
from opreg.elementwise.rows import RowLayout, trace_rows
from tests.backends.cuda.test_reductions import compared
from tests.cuda import host, nvrtc
from tests.cuda.host import array

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="needs the package nvidia-cuda-nvrtc")

RNG = np.random.default_rng(0)
SCORES = RNG.standard_normal((9, 5))
#: Labels, which are rounded towards zero; some are no class.
CLASSES = np.array([0, 4, 2.9, -0.5, -1, 5, 1, 3, 2])


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("name", "attrs", "label", "kernels"), [
    ("LogisticRegressionOutput", {"grad_scale": 0.5}, RNG.uniform(size=(9, 5)), ["elementwise", "elementwise"]),
    ("LinearRegressionOutput", {}, RNG.uniform(size=(9, 5)), ["elementwise"]),
    ("MAERegressionOutput", {"grad_scale": 2.0}, RNG.uniform(size=(9, 5)), ["elementwise"]),
    ("SVMOutput", {"margin": 0.5, "regularization_coefficient": 2.0}, CLASSES, ["rows"]),
    ("SVMOutput", {"use_linear": True}, CLASSES, ["rows"]),
    ("softmax_cross_entropy", {}, CLASSES, ["rows", "rows", "rows"])])  # costs of rows, their sum; the gradient
def test_losses_equal_the_host(name: str, attrs: dict[str, Any], label: np.ndarray, kernels: list[str],
                               dtype: str) -> None:
    net = getattr(mx.sym, name)(mx.sym.var("x"), mx.sym.var("label"), **attrs)
    ran = compared(net, {"x": SCORES, "label": label}, dtype, tolerance=1e-5 if dtype == "float32" else 5e-3)
    assert [kernel for kernel in ran if kernel != "elementwise" or kernels[0] == "elementwise"] == kernels


@needs_compiler
@pytest.mark.parametrize(("name", "attrs"), [("softmax", {"axis": 1, "temperature": 2.0}), ("softmin", {"axis": 0}),
                                             ("log_softmax", {"axis": 1}), ("SoftmaxActivation", {"mode": "channel"})])
def test_softmax_along_any_axis_equals_the_host(name: str, attrs: dict[str, Any]) -> None:
    ran = compared(getattr(mx.sym, name)(mx.sym.var("x"), **attrs), {"x": RNG.standard_normal((3, 70, 4))})
    assert ran[-3:] == ["columns", "columns", "elementwise"] or ran[-2:] == ["columns", "elementwise"]


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("shape", "label", "attrs"), [
    ((2, 5, 6), (2, 6), {}), ((2, 5, 3, 4), (2, 3, 4), {"normalization": "batch", "grad_scale": 0.5}),
    ((2, 5, 3, 4), (2, 12), {}), ((3, 4, 2, 2), (3, 1, 2, 2), {"normalization": "batch"})])
def test_multi_output_softmax_is_computed_by_columns(shape: tuple[int, ...], label: tuple[int, ...],
                                                     attrs: dict[str, Any], dtype: str) -> None:
    net = mx.sym.SoftmaxOutput(mx.sym.var("x"), mx.sym.var("label"), multi_output=True, **attrs)
    ran = compared(net, {"x": RNG.standard_normal(shape), "label": RNG.integers(-1, 6, label)}, dtype,
                   tolerance=1e-5 if dtype == "float32" else 5e-3)
    assert ran == ["columns", "columns", "elementwise", "elementwise"]  # the last is the gradient


@needs_nvrtc
def test_kernels_compile_for_gpus_without_spilling() -> None:
    element, row = RowLayout.ELEMENT, RowLayout.ROW
    texts = []
    for expression in (trace_rows(_through_svm, (element, row), margin=1.0, factor=1.0, linear=False),
                       trace_rows(_cost_slope, (RowLayout.ALL, element, row))):
        for dtype in ("float16", "float32", "float64"):
            for n in (100, 8192, 100000):
                ins, outs = [[array(np.zeros((1, n) if each is element else (1,)), dtype) for each in reads]
                             for reads in (expression.inputs, expression.results)]
                texts.append(rows.rows_source(expression, rows.shape_of(expression, ins, outs, 1, n)))
    for made in nvrtc.compile(texts):
        assert made.spills <= 64
