"""Selection by a condition: the bits of NumPy's ``where``, for few elements and many."""

from __future__ import annotations

import numpy as np
import pytest

from opreg.core import selection
from opreg.core.selection import select


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "int64"])
@pytest.mark.parametrize("shape", [(3, 5), (6, 900)], ids=str)
def test_the_selected_bits_are_those_of_where(shape, dtype, monkeypatch):
    monkeypatch.setattr(selection, "_BLOCK", 1 << 12)
    rng = np.random.default_rng(0)
    condition = rng.random(shape) > 0.5
    with np.errstate(all="ignore"):
        x, y = [(rng.standard_normal(shape) * 50).astype(dtype) for _ in range(2)]
        x.flat[:4] = np.array([np.nan, -0.0, np.inf, 0.0]).astype(dtype)
    for truth in (condition, condition[:, :1], condition[:1]):
        for left, right in ((x, y), (x, x.dtype.type(2)), (x.dtype.type(3), y), (x[:1], y), (x[:, :1], y[:1])):
            expected = np.where(truth, np.asarray(left, dtype), np.asarray(right, dtype))
            found = select(np, truth, left, right)
            assert found.dtype == dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()
            sparse = np.empty((2 * expected.shape[0], expected.shape[1]), dtype)[::2]
            assert select(np, truth, left, right, sparse) is sparse
            assert sparse.tobytes() == expected.tobytes()


@pytest.mark.parametrize("place", [0, 1])
def test_the_result_may_take_the_place_of_an_operand(place):
    operands = [np.arange(9000.0), -np.arange(9000.0)]
    condition = operands[0] % 3 == 0
    expected = np.where(condition, *operands)
    select(np, condition, operands[0], operands[1], operands[place])
    np.testing.assert_array_equal(operands[place], expected)
