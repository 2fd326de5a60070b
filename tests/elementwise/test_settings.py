"""Settings: one trace serves different floats, with the bits of a trace for each."""

import itertools

import numpy as np
import pytest

from opreg import autograd, nd
from opreg.core.registry import get
from opreg.elementwise.expression import trace
from opreg.elementwise.settings import Answers
from opreg.ndarray.eager import OpenUse, runner_of

NAMES = ["_plus_scalar", "_minus_scalar", "_rminus_scalar", "_mul_scalar", "_div_scalar", "_rdiv_scalar",
         "_power_scalar", "_rpower_scalar", "_maximum_scalar", "_minimum_scalar", "_hypot_scalar", "_greater_scalar",
         "_mod_scalar", "_rmod_scalar", "_npi_mod_scalar", "_npi_rmod_scalar", "smooth_l1", "_leaky", "_elu"]
VALUES = [0.37, 1.7, 2.3, 1.0, 2.0, 3.0, 4.0, -1.0, 0.0, -0.0, -0.6, 0.73, 1e-320, 1e30, float("inf"), float("nan")]


def attributes(name: str, value: float) -> dict:
    return {"slope" if name in ("_leaky", "_elu") else "scalar": value}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", NAMES)
def test_bits_of_each_value(name: str, dtype: str) -> None:
    op = get(name)
    for value in VALUES:
        x = nd.array(np.linspace(-2.0, 3.0, 12).reshape(3, 4), dtype=dtype)
        x.attach_grad()
        try:
            expected = op.rules.expression(op.complete(attributes(name, value)))
        except ArithmeticError:
            continue
        with autograd.record():
            y = op(x, **attributes(name, value))
        y.backward()
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(y.asnumpy(), expected.on(np, np.dtype(dtype))(x.asnumpy()))
        opened, op.rules.open_expressions = op.rules.open_expressions, None
        try:  # the rule with the float, in an array of another shape, which no runner knows
            z = nd.array(x.asnumpy().reshape(2, 6), dtype=dtype)
            z.attach_grad()
            with autograd.record():
                w = op(z, **attributes(name, value))
            w.backward()
        finally:
            op.rules.open_expressions = opened
        assert x.grad.asnumpy().tobytes() == z.grad.asnumpy().tobytes(), value
        assert y.asnumpy().tobytes() == w.asnumpy().tobytes(), value


@pytest.mark.parametrize("low, high", [*itertools.permutations([-0.4, 0.1, 0.9, 0.0, 1.0], 2)])
def test_clip(low: float, high: float) -> None:
    x = nd.array([-1.0, -0.3, 0.05, 0.5, 2.0])
    expected = np.minimum(np.maximum(x.asnumpy(), np.float32(low)), np.float32(high))
    if low > high:
        expected = np.where(x.asnumpy() > np.float32(high), np.float32(high),
                            np.maximum(x.asnumpy(), np.float32(low)))
    np.testing.assert_array_equal(nd.clip(x, low, high).asnumpy(), expected)


def test_new_floats_share_a_trace() -> None:
    op, x = get("_power_scalar"), np.ones((7, 3), np.float32)
    uses = [runner_of(op, op.complete({"scalar": value}), [x], nd.ones((1,)).context) for value in (0.61, 0.62, 2.0)]
    assert [isinstance(use, OpenUse) for use in uses] == [False, True, False]


def test_all_operators_with_a_number_share_traces() -> None:
    assert [name for name in NAMES if get(name).rules.open_expressions is None] == []


def test_another_gradient_rule_ends_the_sharing() -> None:
    op = get("_hypot_scalar")
    grad, opened = op.rules.grad, op.rules.open_expressions
    try:
        op.grad(lambda g, ins, outs: [g * 0.0])
        assert op.rules.open_expressions is None
        x = nd.ones((2, 9))
        x.attach_grad()
        for value in (0.3, 0.4):
            with autograd.record():
                y = op(x, scalar=value)
            y.backward()
            assert not x.grad.asnumpy().any()
    finally:
        op.rules.grad, op.rules.open_expressions = grad, opened


def test_answers() -> None:
    answers = Answers([0.5])
    scalar, = answers.settings
    expression = trace(lambda x: x ** (scalar - 1.0), 1)
    assert str(expression).startswith("power(0, ")
    assert answers.common and answers.hold([0.7]) and not answers.hold([3.0]) and not answers.hold([2.0])
    assert (1.0 - scalar * 4.0).of([0.25]) == 0.0 and scalar < 0.6 and not answers.hold([0.6])
    with pytest.raises(TypeError):
        float(scalar)
