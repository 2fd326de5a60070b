"""Every operator with a kernel of its own for GPUs: a row of each on the stand-in, as on the host."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
import opreg.backends.cuda.operators
from opreg.core.registry import REGISTERED
from tests.backends.cuda.test_strict import FIXED, Context, _compare
from tests.builtin.test_operators import named, plannable
from tests.cuda import host
from tests.cuda.device import gpus
from tests.rows import Row
from tests.running import graph

_OPERATORS = [name for name, op in REGISTERED.items()
              if op.rules.expression is None and any(kernel.name == "cuda" for kernel in op.kernels)]
#: The first row of each on floating numbers.
_ROWS = {row.op: row for row in reversed(FIXED) if row.op in _OPERATORS and plannable(row)}


#: The same in order.
ROWS_OF_KERNELS = [_ROWS[name] for name in _OPERATORS if name in _ROWS]


@pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("processors", [1, 132])
@pytest.mark.parametrize("row", named(ROWS_OF_KERNELS))
def test_a_row_on_a_gpu(row: Row, processors: int) -> None:
    with gpus(processors) as xp:
        _compare(row, graph, Context("gpu", 0), 2e-4)
        assert xp.kernels or row.op == "Dropout"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_remainders_of_infinite_divisors_are_numpys(dtype: str) -> None:
    """CuPy's own remainder is no number there."""
    x = np.array([1.5, -1.5, 0.0, np.inf, np.nan, 2.0, -7.0], dtype)
    y = np.array([np.inf, np.inf, np.inf, np.inf, np.inf, -np.inf, 3.0], dtype)
    with gpus(), np.errstate(invalid="ignore"):
        a, b = (mx.nd.array(each, ctx=mx.gpu(0), dtype=dtype) for each in (x, y))
        found = [a % b, mx.nd.broadcast_mod(a, b), a % float("inf"), 1.5 % b]
        expected = [x % y, x % y, x % np.dtype(dtype).type(np.inf), np.dtype(dtype).type(1.5) % y]
        for one, other in zip(found, expected):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.asnumpy(), other)
