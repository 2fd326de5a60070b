"""Norms on a GPU: outputs, gradients and statistics, also moving ones, equal those of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opreg as mx
from tests.backends.cuda.test_reductions import compared
from tests.cuda import host
from tests.cuda.device import gpus

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")

RNG = np.random.default_rng(0)


def net(name: str, **attrs: Any) -> Any:
    count = {"L2Normalization": 0, "InstanceNorm": 2, "GroupNorm": 2}.get(name, 4)
    names = ("gamma", "beta", "moving_mean", "moving_var")[:count]
    return getattr(mx.sym, name)(mx.sym.var("x"), *[mx.sym.var(each) for each in names], name="norm", **attrs)


def arrays(shape: tuple[int, ...], width: int, scaled: bool = True) -> dict[str, np.ndarray]:
    found = {"x": RNG.standard_normal(shape) * 2 + 1}
    return {**found, "gamma": RNG.uniform(0.5, 1.5, width), "beta": RNG.standard_normal(width)} if scaled else found


def states(width: int) -> dict[str, np.ndarray]:
    return {"moving_mean": RNG.standard_normal(width), "moving_var": RNG.uniform(0.5, 1.5, width)}


@needs_compiler
@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize(("name", "shape", "attrs"), [
    ("BatchNorm", (6, 3, 5, 4), {"fix_gamma": False}), ("BatchNorm", (200, 7), {"fix_gamma": True}),
    ("BatchNorm", (4, 5, 6, 3), {"fix_gamma": False, "axis": -1}), ("BatchNorm", (2, 3, 4), {"use_global_stats": True}),
    ("BatchNorm_v1", (6, 3, 5), {"fix_gamma": False}), ("_contrib_BatchNormWithReLU", (6, 3, 8), {"fix_gamma": False})])
def test_batch_norm_and_its_statistics_equal_the_host(name: str, shape: tuple[int, ...], attrs: dict[str, Any],
                                                      train: bool) -> None:
    width = shape[attrs.get("axis", 1)]
    symbol = (mx.sym.contrib.BatchNormWithReLU if name.startswith("_contrib") else getattr(mx.sym, name))(
        *[mx.sym.var(each) for each in ("x", "gamma", "beta", "moving_mean", "moving_var")], **attrs)
    ran = compared(symbol, arrays(shape, width), train=train, aux=states(width), tolerance=2e-5)
    if train and not attrs.get("use_global_stats"):
        first = ran.index("elementwise")
        # estimated means, then all statistics in one pass
        assert first <= 3 and set(ran[:first]) <= {"rows", "columns"}
        assert {"rows", "columns"} & set(ran[first + 1:])  # of gradients
    else:
        assert ran[:2] == ["elementwise", "elementwise"]


@needs_compiler
@pytest.mark.parametrize("outlier", [False, True])
def test_statistics_of_one_run_are_exact_far_from_zero(outlier: bool) -> None:
    data = RNG.standard_normal((40, 3, 50)) * [[[1e-2], [1.0], [50.0]]] + [[[3.0], [1e3], [-2e4]]]
    if outlier:  # the first samples are as far from the mean as possible
        data[0, :, 0] += 1e4
    width = 3
    symbol = mx.sym.BatchNorm(*[mx.sym.var(each) for each in ("x", "gamma", "beta", "moving_mean", "moving_var")],
                              fix_gamma=True, output_mean_var=True)
    values = {"gamma": np.ones(width), "beta": np.zeros(width), "x": data}
    data = data.astype(np.float32).astype(float)
    with gpus():
        args = {name: mx.nd.array(each, ctx=mx.gpu(0)) for name, each in values.items()}
        executor = symbol.bind(mx.gpu(0), args, aux_states={
            name: mx.nd.array(each, ctx=mx.gpu(0)) for name, each in states(width).items()})
        _, mean, inverse = [out.asnumpy() for out in executor.forward(is_train=True)]
    np.testing.assert_allclose(mean, data.mean((0, 2)), 1e-6)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(data.var((0, 2)) + 1e-3), 1e-4)


@needs_compiler
@pytest.mark.parametrize(("name", "shape", "attrs", "width"), [
    ("InstanceNorm", (2, 3, 40), {}, 3), ("InstanceNorm", (1, 2, 9001), {}, 2),
    ("GroupNorm", (3, 4, 5, 2), {"num_groups": 2}, 2), ("GroupNorm", (1, 4, 10000), {"num_groups": 2}, 2),
    ("L2Normalization", (3, 4, 5), {"mode": "instance"}, 0), ("L2Normalization", (3, 4, 5), {"mode": "channel"}, 0),
    ("L2Normalization", (3, 4, 5), {"mode": "spatial"}, 0), ("L2Normalization", (1, 9001), {"mode": "instance"}, 0)])
def test_norms_of_samples_equal_the_host(name: str, shape: tuple[int, ...], attrs: dict[str, Any], width: int) -> None:
    ran = compared(net(name, **attrs), arrays(shape, width, bool(width)), tolerance=1e-4)
    assert {"rows", "columns"} & set(ran)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("shape", "axis"), [((3, 40, 5), 1), ((30, 7), 0), ((2, 6, 3, 5), -3), ((2, 9, 1, 1), 1)])
def test_layer_norm_along_any_axis_equals_the_host(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    symbol = mx.sym.LayerNorm(*[mx.sym.var(each) for each in ("x", "gamma", "beta")], axis=axis)
    ran = compared(symbol, arrays(shape, shape[axis]), dtype, tolerance=1e-4 if dtype == "float32" else 2e-2)
    assert {"rows", "columns"} & set(ran)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 7), (70, 24), (300, 64), (9, 1000), (2, 3, 4100)], ids=str)
def test_layer_norm_of_rows_of_any_length_equals_the_host(shape: tuple[int, ...], dtype: str) -> None:
    """Rows of a warp and of a block, packs and tails, a team with many rows, rows that a sum reads twice."""
    symbol = mx.sym.LayerNorm(*[mx.sym.var(each) for each in ("x", "gamma", "beta")])
    values = {name: np.round(each * 8) / 8 for name, each in arrays(shape, shape[-1]).items()}
    ran = compared(symbol, values, dtype, tolerance={"float16": 6e-2, "float32": 2e-4, "float64": 1e-10}[dtype])
    assert ran.count("rows") >= 2


@needs_compiler
def test_statistics_of_16_bit_arrays_are_float32() -> None:
    width, values = 3, arrays((8, 3, 10), 3)
    data = mx.sym.Cast(mx.sym.var("x"), dtype="float16")
    symbol = mx.sym.Cast(mx.sym.BatchNorm(data, *[mx.sym.var(each) for each in (
        "gamma", "beta", "moving_mean", "moving_var")], fix_gamma=False), dtype="float32")
    assert "columns" in compared(symbol, values, aux=states(width), tolerance=2e-2)
