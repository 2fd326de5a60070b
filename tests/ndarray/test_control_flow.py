"""Loops and branches of arrays: in compiled functions they give what they give eagerly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import Tensor
from opreg.cells.tree import tensors

contrib = mx.nd.contrib
DATA, STATE = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([1, 2], np.float32)
PROGRAMS = {
    "foreach": lambda d, s: contrib.foreach(lambda a, b: (a * b, a + b), d, s),
    "foreach of several": lambda d, s: contrib.foreach(
        lambda a, b: ([a[0] + b[0], a[1]], [b[0] + a[1]]), [d, d * 2], [s]),
    "while": lambda d, s: contrib.while_loop(lambda i: i.sum() < 9, lambda i: (i * 2, i + 1), s, max_iterations=5),
    "while of several": lambda d, s: contrib.while_loop(
        lambda i, t: i.sum() < 9, lambda i, t: (i * t, (i + 1, t + d[0])), [s, s * 2], max_iterations=5),
    "cond": lambda d, s: contrib.cond(s.sum() > 2, lambda: d * 2, lambda: d * 3),
}


def values(results: Any) -> list[Any]:
    return [value.asnumpy().tolist() for value in tensors(results)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_and_branches_are_compiled(name):
    program = PROGRAMS[name]

    def total(d: Any, s: Any) -> Any:
        return sum(value.sum() for value in tensors(program(d, s)))

    for function in (program, mx.grad(total, (0, 1))):
        compiled = mx.jit(function)
        for factor in (1, 3):  # the number of rounds and the branch depend on the values
            args = Tensor(DATA * factor), Tensor(STATE * factor)
            assert values(compiled(*args)) == values(function(*args))
