"""Special functions and quantiles: what MindSpore's recorded answers in ``test_ops`` do not cover."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import opreg as ms
from opreg import ops
from tests.questions import of_each

X = np.array([[3.0, -1.0, 7.0, 0.5], [2.0, np.nan, 9.0, 4.0], [1.0, 5.0, -6.0, 8.0]])
WAYS = [(0.4, None, False), (0.25, 1, False), (0.5, 0, True), ([0.1, 0.9], 1, False), ([0.0, 1.0], None, True),
        (1.0, -1, True)]


@of_each(WAYS)
def test_quantiles_are_those_of_numpy(way):
    q, axis, keepdims = way
    for name, wanted in (("quantile", np.quantile), ("nanquantile", np.nanquantile)):
        expected = wanted(X, q, axis=axis, keepdims=keepdims)
        for run in (lambda f: f, ms.jit):
            found = run(lambda x, name=name: getattr(ops, name)(x, ms.Tensor(np.array(q)), axis, keepdims))(
                ms.Tensor(X))
            assert found.shape == expected.shape
            np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-12)


def test_the_gradient_of_a_quantile_reaches_both_neighbours():
    x = ms.Tensor(np.array([3.0, 1.0, 8.0]))
    assert ms.grad(lambda x: ops.quantile(x, 0.25))(x).asnumpy().tolist() == [0.5, 0.5, 0.0]
    assert ms.grad(lambda x: x.nanquantile(0.5))(x).asnumpy().tolist() == [1.0, 0.0, 0.0]


REFUSED = {"q beyond 1": (lambda: ops.quantile(ms.Tensor([1.0]), 1.5), ValueError, "range"),
           "integers": (lambda: ops.quantile(ms.Tensor([1]), 0.5), TypeError, "float32 or float64, got Int64"),
           "an integer next number": (lambda: ops.nextafter(ms.Tensor([1]), ms.Tensor([2])), TypeError, "Int64"),
           "a Bessel function of integers": (lambda: ops.bessel_j0(ms.Tensor([1])), TypeError, "got Int64"),
           "no elements": (lambda: ops.quantile(ms.ops.zeros((0,)), 0.5), ValueError, "shape"),
           "a sequence outside": (lambda: ops.EditDistance()(
               ms.Tensor([[7, 0]]), ms.Tensor([1]), ms.Tensor([1, 1]), ms.Tensor([[0, 0]]), ms.Tensor([1]),
               ms.Tensor([1, 1])), ValueError, "places")}


@of_each(REFUSED)
def test_wrong_inputs_are_refused(case):
    run, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words):
        run()


def test_without_scipy_special_functions_say_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(ImportError, match=r"ops\.bessel_k0 needs SciPy: pip install scipy"):
        ops.bessel_k0(ms.Tensor([1.0]))


def test_bessel_functions_have_second_derivatives_and_slopes_at_zero():
    x = ms.Tensor(np.array([0.7, 1.9]))
    first = ms.grad(lambda x: ops.bessel_j1(x).sum())
    slope = (first(x + 1e-5) - first(x - 1e-5)) / 2e-5
    np.testing.assert_allclose(ms.grad(lambda x: first(x).sum())(x).asnumpy(), slope.asnumpy(), rtol=1e-7)
    zero = ms.Tensor(np.zeros(1))
    assert ms.grad(ops.bessel_j1)(zero).item() == 0.5 and ms.grad(ops.bessel_i1e)(zero).item() == 0.5


@of_each([(run, kind) for run in (lambda f: f, ms.jit) for kind in (np.float32, np.float64)])
def test_angles_have_the_signs_of_zeros_and_infinities(run, kind):
    ends = np.array([-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf], kind)
    y, x = (each.ravel() for each in np.meshgrid(ends, ends))
    found = run(lambda y, x: ops.atan2(y, x))(ms.Tensor(y), ms.Tensor(x)).asnumpy()
    expected = np.arctan2(y, x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert (np.signbit(found) == np.signbit(expected)).all()


EXACT = {"a number": lambda: ms.Tensor(0.1, ms.float64), "a list": lambda: ms.tensor([[0.1]], ms.float64),
         "a parameter": lambda: ms.Parameter(ms.Tensor([0.1], ms.float64)),
         "an array of numpy": lambda: ms.numpy.array([0.1], ms.float64),
         "a range": lambda: ops.linspace(ms.Tensor(0.1, ms.float64), ms.Tensor(0.7, ms.float64), 3)[0],
         "a range of numbers": lambda: ops.linspace(0.1, ms.Tensor(0.7, ms.float64), 3)[0],
         "an integer": lambda: ms.Tensor([1e9 + 7.0], ms.int64) - 1000000007 + ms.Tensor(0.1, ms.float64)}


@of_each(EXACT)
def test_numbers_reach_a_given_dtype_without_float32_between(case):
    for made in (EXACT[case], ms.jit(EXACT[case])):
        found = made()
        assert str(found.dtype) == "Float64" and found.item() == 0.1


ONE_SAMPLE = [("nll_loss", {}), ("nll_loss", {"weight": ms.Tensor([1.0, 2.0, 3.0])}), ("nll_loss", {"ignore_index": 1}),
              ("cross_entropy", {}), ("cross_entropy", {"label_smoothing": 0.1})]


@of_each(ONE_SAMPLE)
def test_the_loss_of_a_sample_without_a_batch_has_no_axes(name, settings):
    scores, label = ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor(1)
    found = getattr(ops, name)(scores, label, reduction="none", **settings)
    batch = getattr(ops, name)(scores.reshape((1, 3)), label.reshape((1,)), reduction="none", **settings)
    assert found.shape == () and batch.shape == (1,) and found.item() == batch.item()
