"""Operators with their own kernels for GPUs: one row of each gives the host's results on the stand-in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opreg as mx
import opreg.backends.cuda.operators
from opreg.core.registry import REGISTERED
from tests.backends.cuda.test_strict import FIXED, Context, compare
from tests.builtin.test_operators import named, plannable
from tests.cuda import host
from tests.cuda.device import gpus
from tests.rows import Row
from tests.running import Use, eager, graph, heads

_OPERATORS = [name for name, op in REGISTERED.items()
              if op.rules.expression is None and any(kernel.name == "cuda" for kernel in op.kernels)]
#: The first row of each operator with floating inputs.
_ROWS = {row.op: row for row in reversed(FIXED) if row.op in _OPERATORS and plannable(row)}


#: The same names in order.
ROWS_OF_KERNELS = [_ROWS[name] for name in _OPERATORS if name in _ROWS]

#: Operators with their own tests, whose kernels decline the rows: nothing is dropped, or elements have 64 bits.
LEFT = {"Dropout", "_contrib_scaled_dot_product_attention"}


@pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("processors", [1, 132])
@pytest.mark.parametrize("row", named(ROWS_OF_KERNELS))
def test_an_operator_row_equals_the_host_on_a_gpu(row: Row, processors: int) -> None:
    with gpus(processors) as xp:
        compare(row, Context("gpu", 0), 2e-4, [graph])
        assert xp.kernels or row.op in LEFT


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_remainders_of_infinite_divisors_are_numpys(dtype: str) -> None:
    """CuPy's own remainder is NaN there."""
    x = np.array([1.5, -1.5, 0.0, np.inf, np.nan, 2.0, -7.0], dtype)
    y = np.array([np.inf, np.inf, np.inf, np.inf, np.inf, -np.inf, 3.0], dtype)
    with gpus(), np.errstate(invalid="ignore"):
        a, b = (mx.nd.array(each, ctx=mx.gpu(0), dtype=dtype) for each in (x, y))
        found = [a % b, mx.nd.broadcast_mod(a, b), a % float("inf"), 1.5 % b]
        expected = [x % y, x % y, x % np.dtype(dtype).type(np.inf), np.dtype(dtype).type(1.5) % y]
        for one, other in zip(found, expected):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.asnumpy(), other)


#: Gradients that add at indices which repeat: operator, inputs and attributes.
ADDING: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "_backward_take": ([np.arange(12).reshape(4, 3), np.array([1, 0, 1, 1]), np.zeros((2, 3))],
                       {"axis": 0, "mode": "clip"}),
    "_backward_gather_nd": ([np.arange(4), np.array([[0, 1, 1, 1], [2, 0, 0, 1]]), np.zeros((2, 3))], {}),
}


@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "float32", "uint64"])
@pytest.mark.parametrize("name", ["_backward_take", "_backward_gather_nd"])
def test_values_of_any_dtype_are_added_at_indices(name: str, dtype: str) -> None:
    """CuPy itself adds neither bfloat16 nor small integers at indices."""
    inputs, attrs = ADDING[name]
    found = []
    with gpus():
        for ctx in (mx.cpu(), mx.gpu(0)):
            arrays = [mx.nd.array(each, ctx=ctx, dtype="int64" if i == 1 else dtype) for i, each in enumerate(inputs)]
            found.append(getattr(mx.nd, name)(*arrays, **attrs))
        assert found[0].dtype == found[1].dtype
        np.testing.assert_array_equal(found[0].asnumpy(), found[1].asnumpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_16_bit_times_are_finite(dtype: str) -> None:
    with gpus():
        row = next(row for row in FIXED if row.op == "_contrib_hawkesll")
        use = Use.of(row, dtype)
        found = eager(use, mx.gpu(0), grads=True, head_grads=heads(use, eager(use).outs))
        assert all(out.dtype.name == dtype and np.isfinite(out.astype(float)).all() for out in found.outs)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_rows_that_are_read_again_get_sums_of_any_dtype(dtype: str) -> None:
    with gpus():
        x = mx.nd.array(np.arange(6).reshape(3, 2), ctx=mx.gpu(0), dtype=dtype)
        x.attach_grad()
        with mx.autograd.record():
            y = x[[2, 0, 2]] * 3 + mx.nd.Embedding(mx.nd.array([1, 1, 0], ctx=mx.gpu(0)), x, input_dim=3, output_dim=2)
        y.backward()
        assert x.grad.asnumpy().astype(float).tolist() == [[4, 4], [2, 2], [6, 6]]
