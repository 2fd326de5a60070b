"""Results of kernels have the same rules in eager calls and in graphs."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.core.attrs import Schema
from opreg.core.op import Op
from opreg.errors import OpError

DATA = mx.nd.array([1.0, 2.0])


def operator(function, shapes):
    """An operator of one input that is not registered."""
    op = Op("returns", Schema([]), ("data",), outputs=[f"output{i}" for i in range(len(shapes))])
    op.infer(lambda data: list(shapes))
    op.kernel()(function)
    return op


def eager(op):
    found = op(DATA)
    return found if isinstance(found, list) else [found]


def graph(op):
    return op(mx.sym.Variable("x")).bind(mx.cpu(), {"x": DATA}).forward()


@pytest.mark.parametrize("run", [eager, graph])
@pytest.mark.parametrize("function, shapes, expected", [
    (lambda xp, x: 3.0, [(1,)], [[3.0]]),
    (lambda xp, x: 3, [(1, 1)], [[[3.0]]]),
    (lambda xp, x: 3.0, [()], [3.0]),
    (lambda xp, x: True, [(1,)], [[1.0]]),
    (lambda xp, x: x.sum(), [(1,)], [[3.0]]),
    (lambda xp, x: xp.float64(3), [(1,)], [[3.0]]),
    (lambda xp, x: (3.0,), [(1,)], [[3.0]]),
    (lambda xp, x: (x * 2,), [(2,)], [[2.0, 4.0]]),
    (lambda xp, x: [x * 2], [(2,)], [[2.0, 4.0]]),
    (lambda xp, x: (x, 4), [(2,), (1,)], [[1.0, 2.0], [4.0]]),
    (lambda xp, x: x.reshape(1, 2)[:, :1], [(1,)], [[1.0]]),
])
def test_numbers_and_tuples_are_results(run, function, shapes, expected):
    op = operator(function, shapes)
    for _ in range(2):
        found = run(op)
        assert [each.shape for each in found] == shapes
        for one, other in zip(found, expected):
            np.testing.assert_array_equal(one.asnumpy(), other)


@pytest.mark.parametrize("run", [eager, graph])
@pytest.mark.parametrize("function, shapes, words", [
    (lambda xp, x: 3.0, [(2,)], r"output 0: expected shape \(2,\), got \(\)"),
    (lambda xp, x: x[:1], [(2,)], r"output 0: expected shape \(2,\), got \(1,\)"),
    (lambda xp, x: x, [(1, 2)], r"output 0: expected shape \(1, 2\), got \(2,\)"),
    (lambda xp, x: None, [(2,)], "output 0: expected an array, got NoneType"),
    (lambda xp, x: (x, None), [(2,), (2,)], "output 1: expected an array, got NoneType"),
    (lambda xp, x: (x,), [(2,), (2,)], "expected 2 outputs, got 1"),
])
def test_results_that_break_a_declaration_are_named(run, function, shapes, words):
    with pytest.raises(OpError, match=f"operator returns, kernel reference.*{words}"):
        run(operator(function, shapes))
