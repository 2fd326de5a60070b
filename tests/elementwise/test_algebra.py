"""Sums of products in another form: fewer instructions, the same values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opreg.elementwise.algebra import factor_sums
from opreg.elementwise.expression import Expression, Instruction, exp, maximum, square, tanh, trace


@pytest.mark.parametrize("function,arity,text", [
    (lambda a, b, c: a * b + a * c, 3, "add(1, 2) multiply(0, 3)"),
    (lambda a, b, c: a * b - c * a, 3, "subtract(1, 2) multiply(0, 3)"),
    (lambda a, b: a * b * 2.0 + b * a * 0.5, 2, "multiply(0, 1) multiply(2, 2.5)"),
    (lambda a: a * a * a + a * a * a * 2.0, 1, "square(0) multiply(1, 0) multiply(2, 3.0)"),
    (lambda a, b: a * 0.5 * b + a * 0.5 * exp(b), 2, "exp(1) add(1, 2) multiply(0, 3) multiply(4, 0.5)"),
    (lambda a, b, c: (a * b + c) + a * exp(b), 3, "exp(1) add(1, 3) multiply(0, 4) add(5, 2)"),
    (lambda g, t, a: g * a - g * t * t * a, 3, "multiply(0, 2) square(1) subtract(1.0, 4) multiply(3, 5)"),
], ids=range(7))
def test_shared_memory_is_written_once(function: Any, arity: int, text: str) -> None:
    whole = trace(function, arity)
    found = factor_sums(whole)
    assert repr(found) == text
    ins = np.random.default_rng(0).uniform(-2, 2, (arity, 20))
    np.testing.assert_allclose(found(np, *ins), whole(np, *ins), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("function,arity", [
    (lambda a, b, c: a * b + c, 3),
    (lambda a: a + a * a, 1),
    (lambda a, b: (a + b) * (a - b), 2),
    (lambda a: 1.0 - square(tanh(a)), 1),
    # the rewritten form could overflow where the original does not
    (lambda a, b: (a * 1e30) * b + (a * 1e30) * exp(b), 2),
    (lambda a, b: a * b - a * b, 2),  # NaN of infinities
], ids=range(6))
def test_rewritings_without_a_gain_are_not_made(function: Any, arity: int) -> None:
    whole = trace(function, arity)
    assert factor_sums(whole) is whole


def test_equal_results_stay_separate() -> None:
    first = trace(lambda a, b, c: a * b + a * c, 3).code
    second = trace(lambda a, b, c: a * (b + c), 3).code
    code = [*first, *[Instruction(prim, tuple([arg + len(first) if arg > 2 else arg for arg in args]))
                      for prim, args in second]]
    whole = Expression.of(3, code, [2 + len(code), 2 + len(first)])
    assert factor_sums(whole) is whole


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_rewritten_expressions_keep_their_values(data: st.DataObject) -> None:
    """Random instructions, some of which are results, keep their values."""
    arity = 3

    def grown(*terms: Any) -> Any:
        values = list(terms)
        for _ in range(data.draw(st.integers(3, 14))):
            kind = data.draw(st.sampled_from("++-***knst"))
            one, two = [data.draw(st.sampled_from(values[-6:])) for _ in range(2)]
            values.append(one + two if kind == "+" else one - two if kind == "-" else one * two if kind == "*" else
                          one * data.draw(st.sampled_from([0.5, -1.0, 3.0])) if kind == "k" else -one if kind == "n"
                          else square(one) * 0.25 if kind == "s" else tanh(one))
        return values[-1]

    whole = trace(grown, arity)
    others = data.draw(st.lists(st.sampled_from(range(len(whole.code))), max_size=2, unique=True)) if whole.code else []
    last = arity + len(whole.code) - 1
    results = [last, *[arity + each for each in others if arity + each != last]] if whole.code else [whole.result]
    whole = Expression.of(arity, whole.code, results)
    found = factor_sums(whole)
    assert len(found.code) < len(whole.code) or found is whole
    rng = np.random.default_rng(0)
    ins = [rng.uniform(-1, 1, 30) for _ in range(arity)]
    for each in ins:
        each[rng.integers(30)] = np.nan
    for got, want in zip(np.atleast_2d(found(np, *ins)), np.atleast_2d(whole(np, *ins)), strict=True):
        size = max(1.0, float(np.nanmax(np.abs(want))))
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12 * size)


def test_a_constant_is_not_taken_for_the_register_of_its_number():
    expression = trace(lambda a, b: (a * b * 0.5 + a * b * 0.25) * maximum(a, 1.0) * maximum(a, b), 2)
    found = factor_sums(expression)
    assert len(found.code) < len(expression.code)
    a, b = np.array([0.5, 2.0, 3.0]), np.array([4.0, 0.25, -1.0])
    np.testing.assert_allclose(found(np, a, b), a * b * 0.75 * np.maximum(a, 1) * np.maximum(a, b))
