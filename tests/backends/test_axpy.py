"""Addition of a multiple of one array to another, in one pass of BLAS."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as ms
from opreg import nn
from opreg.backends.numba import compiler

SHAPE = 160, 128
numpy_alone = pytest.mark.usefixtures("without_compiler")


@pytest.fixture
def without_compiler():
    with compiler.use("numpy"):
        yield


def descended(p: np.ndarray, g: np.ndarray, rate: float) -> tuple[np.ndarray, list[str]]:
    """Result of a descent step, and the kernels that computed it."""
    parameter = ms.Parameter(ms.Tensor(p), name="p")
    optimizer = nn.SGD([parameter], learning_rate=1.0)
    optimizer.learning_rate.set_data(ms.Tensor(np.float32(rate)))
    optimizer((ms.Tensor(g),))
    compiled = next(iter(optimizer._cache().kinds.values())).current
    return parameter.asnumpy(), [step.kernel for _, plan in compiled.plans for step in plan.plan.forward.steps]


@numpy_alone
def test_a_large_sum_with_a_multiple_is_one_pass():
    p, g = np.linspace(-1, 1, 2 * 20480, dtype=np.float32).reshape(2, *SHAPE)
    found, kernels = descended(p, g, 0.3)
    assert kernels.count("multiple") == 1
    np.testing.assert_allclose(found, p - g * np.float32(0.3), rtol=1e-6, atol=1e-7)
    assert "multiple" not in descended(p[:3], g[:3], 0.3)[1]


def test_a_compiled_loop_comes_before_blas():
    pytest.importorskip("numba")
    p, g = np.linspace(-1, 1, 2 * 20480, dtype=np.float32).reshape(2, *SHAPE)
    found, kernels = descended(p, g, 0.3)
    assert "numba" in kernels and "multiple" not in kernels
    np.testing.assert_allclose(found, p - g * np.float32(0.3), rtol=1e-6, atol=1e-7)


@numpy_alone
@pytest.mark.parametrize("rate", [0.0, 0.5, -0.25, np.inf])
def test_multiples_of_infinity_and_nan_equal_those_of_ufuncs(rate):
    p, g = np.linspace(-1, 1, 20480, dtype=np.float32).reshape(SHAPE), np.ones(SHAPE, np.float32)
    g[0, :4] = np.inf, -np.inf, np.nan, 0
    with np.errstate(all="ignore"):
        expected = p - g * np.float32(rate)
    found, kernels = descended(p, g, rate)
    assert "multiple" in kernels
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_an_unassigned_value_is_rounded_as_by_separate_operators():
    x, w = ms.sym.Variable("x"), ms.sym.Variable("w")
    inner = ms.sym.dot(x, w) - w * 0.3
    rng = np.random.default_rng(0)
    arrays = {name: ms.nd.array(rng.normal(size=(160, 160))) for name in "xw"}
    executor = ms.sym.dot(inner, w).bind(ms.cpu(), arrays)
    executor.forward()
    assert "multiple" not in [step.kernel for step in executor.plan(False).forward.steps]
