"""linearize, jet and derivative: known derivatives, in both modes, and errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opreg.cells.jit import jit
from opreg.cells.taylor import derivative, jet, linearize
from opreg.cells.tensor import Tensor
from opreg.errors import ArgumentError, ShapeError
from opreg.nn import ops

X = np.array([0.3, -0.7, 1.1])
ORDERS = 4

#: A function of one tensor, and its derivatives of the orders 0 to 4.
KNOWN: dict[str, tuple[Callable[..., Any], list[Callable[..., Any]]]] = {
    "sin": (ops.sin, [np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin]),
    "exp": (ops.exp, [np.exp] * 5),
    "cube": (lambda x: x * x * x, [lambda x: x ** 3, lambda x: 3 * x * x, lambda x: 6 * x, lambda x: 6 + 0 * x,
                                   lambda x: 0 * x]),
    "reciprocal": (lambda x: 1 / x, [lambda x, n=n: (-1) ** n * math.factorial(n) / x ** (n + 1) for n in range(5)]),
}


@pytest.fixture(params=["eager", "compiled"])
def run(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return (lambda function: function) if request.param == "eager" else jit


def ones_first(value: np.ndarray, orders: int) -> Tensor:
    return Tensor(np.stack([np.ones_like(value), *[np.zeros_like(value)] * (orders - 1)]))


@pytest.mark.parametrize("name", KNOWN)
def test_derivatives_of_known_functions_are_right(name: str, run: Any) -> None:
    function, known = KNOWN[name]
    value, series = run(lambda x, s: jet(function, x, s))(Tensor(X), ones_first(X, ORDERS))
    np.testing.assert_allclose(value.asnumpy(), known[0](X), 1e-12)
    np.testing.assert_allclose(series.asnumpy(), [each(X) for each in known[1:]], 1e-9, 1e-12)
    for order in (1, ORDERS):
        value, last = run(lambda x, order=order: derivative(function, x, order))(Tensor(X))
        np.testing.assert_allclose(last.asnumpy(), known[order](X), 1e-9, 1e-12)


def test_several_inputs_may_move_and_several_outputs_follow(run: Any) -> None:
    y = np.array([2.0, 0.5, -1.0])
    terms = [np.array([[1.0, 2.0, 0.5], [3.0, -1.0, 2.0]]), np.array([[-1.0, 0.25, 1.0], [0.5, 1.5, -2.0]])]
    values, series = run(lambda a, b, s, t: jet(lambda a, b: (a * b, a - b), (a, b), (s, t)))(
        Tensor(X), Tensor(y), *map(Tensor, terms))
    (a1, a2), (b1, b2) = terms
    expected = [[a1 * y + X * b1, a2 * y + 2 * a1 * b1 + X * b2], [a1 - b1, a2 - b2]]
    for value, wanted in zip(values, (X * y, X - y), strict=True):
        np.testing.assert_allclose(value.asnumpy(), wanted)
    for found, wanted in zip(series, expected, strict=True):
        np.testing.assert_allclose(found.asnumpy(), wanted, 1e-12, 1e-12)


def test_integers_count_as_float32() -> None:
    value, last = derivative(lambda x: x * x, Tensor(np.array([3], np.int32)), 1)
    assert value.asnumpy().dtype == last.asnumpy().dtype == np.float32 and last.asnumpy() == 6.0


def test_derivatives_are_linear_in_the_directions(run: Any) -> None:
    y = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]])
    v = np.array([0.5, 1.0, -2.0]), np.array([[1.0, 0.0], [2.0, 1.0], [0.0, -1.0]])

    def directed(x: Any, y: Any, dx: Any, dy: Any) -> Any:
        value, along = linearize(lambda x, y: (ops.matmul(ops.sin(x), y), x * 2), (x, y))
        return value, along((dx, dy)), along(dx * 2, dy * 2)

    value, once, twice = run(directed)(Tensor(X), Tensor(y), *map(Tensor, v))
    np.testing.assert_allclose(value[0].asnumpy(), np.sin(X) @ y)
    np.testing.assert_allclose(once[0].asnumpy(), (np.cos(X) * v[0]) @ y + np.sin(X) @ v[1], 1e-12)
    np.testing.assert_allclose(once[1].asnumpy(), 2 * v[0])
    for first, second in zip(once, twice, strict=True):
        np.testing.assert_allclose(second.asnumpy(), 2 * first.asnumpy())


@pytest.mark.parametrize("call, error, said", [
    (lambda x: jet(ops.sin, x, x), ShapeError, r"jet: expected series of the shapes \(3, 3\)"),
    (lambda x: jet(ops.sin, x, Tensor(1.0)), ShapeError,
     r"the shapes \(0, 3\), \(orders, \*shape of the primal\), got \(\)"),
    (lambda x: jet(ops.add, (x, x), (ones_first(X, 2), ones_first(X, 3))), ShapeError,
     r"the shapes \(2, 3\), \(2, 3\), .* got \(2, 3\), \(3, 3\)"),
    (lambda x: derivative(ops.sin, x, 0), ArgumentError, "derivative: order must be an int of 1 at least, got 0"),
    (lambda x: derivative(ops.sin, x, 1.5), ArgumentError, "got 1.5"),
    (lambda x: linearize(ops.sin, 3), TypeError, "linearize: the inputs must be a Tensor, .* got int"),
])
def test_wrong_uses_of_derivatives_along_curves_are_refused(
        call: Callable[[Tensor], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call(Tensor(X))
