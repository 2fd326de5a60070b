"""Distributions have MindSpore's probabilities, moments and divergences, in both modes, and right gradients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import Tensor
from opreg.nn.probability import distribution
from tests.questions import of_each
from tests.recorded.mindspore_distributions import CASES, CLASSES, asked
from tests.running import fit

#: Methods that a class does not have, and those whose gradient is that of no parameter.
MISSING = {("Cauchy", "mean"), ("Cauchy", "var"), ("Logistic", "kl_loss"), ("Poisson", "entropy"),
           ("Poisson", "kl_loss"), ("Gamma", "cdf")}
RECORDED = {tuple(case): answer for case, answer in json.loads(
    (Path(__file__).parent.parent / "recorded" / "mindspore_distributions.json").read_text())["cases"]}


@of_each([(*case, mode) for case in CASES for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE)], by=lambda case: case[0])
def test_methods_have_the_results_of_mindspore(name: str, method: str, place: str, mode: int) -> None:
    expected, before = RECORDED[name, method, place], ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        answer = asked(ms, distribution, (name, method, place))
    finally:
        ms.set_context(mode=before)
    if isinstance(expected, dict):
        assert expected["error"][0] in answer["error"]
    else:
        np.testing.assert_allclose(answer, expected, 1e-4, 1e-6)  # logarithms of MindSpore are off by 5e-6


@of_each([
    (name, method) for name in CLASSES for method in ("log_prob", "cdf", "mean", "var", "entropy", "kl_loss")
    if (name, method) not in MISSING])
def test_gradients_of_parameters_agree_with_differences(name: str, method: str) -> None:
    own, others, values = CLASSES[name]
    settings = {"dtype": ms.float64} if name not in ("Bernoulli", "Categorical", "Geometric") else {}
    cell = getattr(distribution, name)(**settings)
    cell.parameter_type = ms.float64
    first = ([name, *[Tensor(np.array(each)) for each in others]] if method == "kl_loss" else
             [Tensor(np.array(values))] if method in ("log_prob", "cdf") else [])
    inside = np.array([0.3, 2.0]) if name in ("Uniform", "Exponential") else None
    if inside is not None and method in ("log_prob", "cdf"):
        first = [Tensor(inside)]
    if (name, method) == ("Uniform", "kl_loss"):
        first = ["Uniform", Tensor(np.array([-1.0, 0.5])), Tensor(np.array([2.0, 3.5]))]

    def total(*parameters: Tensor) -> Tensor:
        return getattr(cell, method)(*first, *parameters).sum()

    arrays = [np.array(each, np.float64) for each in own]
    gradients = ms.grad(total, tuple(range(len(own))))(*map(Tensor, arrays))
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    fit(lambda moved: float(total(*map(Tensor, moved)).asnumpy()), arrays,
        {i: each.asnumpy() for i, each in enumerate(gradients)}, 1e-6)


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "Cauchy"])  # which has no moments
def test_random_values_have_the_moments_of_the_distribution(name: str) -> None:
    ms.set_seed(7)
    own = CLASSES[name][0]
    cell = getattr(distribution, name)(*own)
    drawn = cell.sample((20000,))
    assert drawn.dtype == cell.dtype
    assert drawn.shape == (20000, 2)
    values = drawn.asnumpy().astype(np.float64)
    mean, sd = cell.mean().asnumpy().ravel(), cell.sd().asnumpy().ravel()
    np.testing.assert_allclose(values.mean(0), mean, 0, 5 * sd.max() / 20000 ** 0.5)
    np.testing.assert_allclose(values.std(0), sd, 0.2 if name == "LogNormal" else 0.05)
    assert cell.sample().shape == (2,)


@of_each([
    (lambda: distribution.Normal(0.0, -1.0), ValueError, "sd must be positive"),
    (lambda: distribution.Normal(0.0, 1.0, dtype=ms.int32), TypeError, "Normal: expected a floating dtype"),
    (lambda: distribution.Uniform([1.0], [0.0]), ValueError, "high must be above low"),
    (lambda: distribution.Cauchy(0.0, -1.0), ValueError, "Cauchy: scale must be positive"),
    (lambda: distribution.Cauchy(0.0, 1.0).sd(), ValueError, "no mean and no variance"),
    (lambda: distribution.Gamma(1.0, [0.0]), ValueError, "Gamma: rate must be positive"),
    (lambda: distribution.Gamma(0.0), ValueError, "Gamma: concentration must be positive"),
    (lambda: distribution.Geometric(1.0), ValueError, "Geometric: probs must be between 0 and 1"),
    (lambda: distribution.Poisson(0.0), ValueError, "Poisson: rate must be positive"),
    (lambda: distribution.Logistic(0.0, 1.0, dtype=ms.int32), TypeError, "Logistic: expected a floating dtype"),
    (lambda: distribution.Bernoulli([1.5]), ValueError, "probs must be between 0 and 1"),
    (lambda: distribution.Categorical([0.2, 0.2]), ValueError, "the sum of probs must be 1"),
    (lambda: distribution.Normal(0.0, 1.0).log_prob(1.0), TypeError, "For value, input type must be a Tensor"),
    (lambda: distribution.Normal().mean(), TypeError, "the type mean must be subclass of Tensor"),
    (lambda: distribution.Normal(0.0, 1.0).mean(sdd=Tensor(1.0)), TypeError, "Did you mean 'sd'"),
    (lambda: distribution.Normal(0.0, 1.0).kl_loss("Uniform"), ValueError, "Expected dist input is Normal"),
    (lambda: distribution.Normal(0.0, 1.0)("entropi"), NotImplementedError, "Did you mean 'entropy'"),
    (lambda: distribution.Uniform(0.0, 1.0).mode(), NotImplementedError, "mode is not implemented for Uniform"),
])
def test_wrong_uses_are_refused(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_a_policy_gradient_reaches_the_network_through_log_prob() -> None:
    class Policy(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.layer = ms.nn.Dense(2, 3, weight_init="ones", has_bias=False)
            self.dist = distribution.Categorical()

        def construct(self, x: Tensor, action: Tensor) -> Tensor:
            return self.dist("log_prob", action, ms.ops.softmax(self.layer(x))).sum()

    net = Policy()
    x, action = Tensor([[1.0, 2.0]]), Tensor([1.0])
    expected = np.array([[-1.0, -2.0], [2.0, 4.0], [-1.0, -2.0]]) / 3
    for gradient in (ms.grad(net, None, net.trainable_params()), ms.jit(ms.grad(net, None, net.trainable_params()))):
        found = gradient(x, action)
        np.testing.assert_allclose((found[0] if isinstance(found, tuple) else found).asnumpy(), expected, 1e-5)


def test_random_values_of_cauchy_have_its_quantiles() -> None:
    ms.set_seed(7)
    drawn = distribution.Cauchy(1.0, 2.0).sample((20000,)).asnumpy()
    np.testing.assert_allclose(np.quantile(drawn, [0.25, 0.5, 0.75]), [-1.0, 1.0, 3.0], 0, 0.15)


def test_parameters_are_attributes() -> None:
    for cell, names in ((distribution.LogNormal(1.0, 2.0), ("loc", "scale")),
                        (distribution.Gamma(3.0, 2.0), ("concentration", "rate")),
                        (distribution.Geometric(0.5), ("probs",)), (distribution.Poisson(2.0), ("rate",))):
        assert [getattr(cell, name) for name in names] == cell._given
