"""``nonzero`` and ``unique``: operators whose shapes depend on values, in graphs, Cells and compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import Tensor, nn, ops
from opreg.errors import ShapeError

#: Arrays with different numbers of zeros and of unique values.
INPUTS = [np.float32(each) for each in ([[0, 1, 2], [2, 0, 5]], [[1, 1, 1], [1, 1, 1]], [[0, 0, 0], [0, 0, 3]],
                                        [[0, 0, 0], [0, 0, 0]], [[3, 2, 1], [1, 2, 3]])]


def _scattered(x: Any) -> Any:
    places = ops.nonzero(x)
    return ops.gather_nd(x * x, places).sum() + places.shape[0]


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "nonzero": lambda x: ops.nonzero(x * 2),
    "argwhere": lambda x: ops.argwhere(x),
    "by axis": lambda x: ops.nonzero(x, as_tuple=True),
    "unique": lambda x: ops.unique(x + 1),
    "behind": _scattered,
    "one behind another": lambda x: ops.unique(ops.nonzero(x))[0] * 2,
}


def _numbers(found: Any) -> list[Any]:
    return [each.asnumpy().tolist() for each in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.filterwarnings("error:.*runs as Python")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_compiled_function_equals_the_eager_one(name: str) -> None:
    function = FUNCTIONS[name]

    class Cell(nn.Cell):
        def construct(self, x: Any) -> Any:
            return function(x)

    compiled, cell = mx.jit(function), mx.jit(Cell())
    for each in [*INPUTS, *reversed(INPUTS)]:
        expected = _numbers(function(Tensor(each)))
        assert _numbers(compiled(Tensor(each))) == expected == _numbers(cell(Tensor(each)))
    assert compiled.cache_size == 1


def test_gradients_of_scattered_values_are_right() -> None:
    asked = mx.grad(_scattered)
    compiled = mx.jit(asked)
    for each in INPUTS:
        np.testing.assert_array_equal(compiled(Tensor(each)).asnumpy(), 2 * each)
        np.testing.assert_array_equal(asked(Tensor(each)).asnumpy(), 2 * each)


def test_values_are_those_of_numpy_and_mindspore() -> None:
    x = INPUTS[0]
    np.testing.assert_array_equal(ops.nonzero(Tensor(x)).asnumpy(), np.argwhere(x))
    values, which = ops.unique(Tensor(np.int64([[3, -2], [5, 3]])))
    assert values.asnumpy().tolist() == [3, -2, 5] and which.asnumpy().tolist() == [[0, 1], [2, 0]]
    assert which.dtype == mx.int64 and ops.unique(Tensor(x))[1].dtype == mx.int32


def test_a_bound_graph_takes_any_number_of_results() -> None:
    x = mx.sym.var("x")
    made = mx.sym.Group([mx.sym._internal._npi_nonzero(x * 1) * 2,
                         *mx.sym._internal._npi_unique(x, return_counts=True)])
    executor = made.simple_bind(mx.cpu(), x=(2, 3), grad_req="null")
    for each in INPUTS:
        places, values, counts = [out.asnumpy() for out in executor.forward(x=mx.nd.array(each))]
        np.testing.assert_array_equal(places, 2 * np.argwhere(each))
        for found, expected in zip((values, counts), np.unique(each, return_counts=True)):
            np.testing.assert_array_equal(found, expected)


def test_nonzero_of_a_scalar_is_refused() -> None:
    with pytest.raises(ShapeError, match="expected at least one axis"):
        ops.nonzero(Tensor(2.0))
