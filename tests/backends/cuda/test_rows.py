"""Every operator with a kernel of its own for GPUs: a row of each on the stand-in, as on the host."""

from __future__ import annotations

import pytest

import opreg.backends.cuda.operators  # noqa: F401 (attaches the kernels that this is about)
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
