"""Writes to repeated indices: the last value stays, as in NumPy, also on a device, where writes have no order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from tests.cuda.device import gpus

INDEX = np.array([1, 3, 1, 0, 1])
VALUES = np.arange(1.0, 16).reshape(5, 3).astype(np.float32)


def written(x: Any, key: Any, values: Any) -> Any:
    x[key] = values
    return x


#: Results of writes, given a function that puts an array on a device.
WRITES: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "rows": lambda put: written(put(np.zeros((4, 3), np.float32)), put(INDEX), put(VALUES)),
    "rows of a list": lambda put: written(put(np.zeros((4, 3), np.float32)), INDEX.tolist(), put(VALUES)),
    "columns": lambda put: written(put(np.zeros((3, 4), np.float32)), (slice(None), put(INDEX)), put(VALUES.T)),
    "pairs": lambda put: written(put(np.zeros((4, 4), np.float32)), (put(INDEX), put(INDEX)), put(VALUES[:, 0])),
    "a row for each index": lambda put: written(put(np.zeros((4, 3), np.float32)), put(INDEX), put(VALUES[0])),
    "an axis too many": lambda put: written(put(np.zeros((4, 3), np.float32)), put(INDEX), put(VALUES[None])),
    "one number": lambda put: written(put(np.zeros((4, 3), np.float32)), put(INDEX), 2.5),
    "scatter_nd": lambda put: mx.nd.scatter_nd(put(VALUES), put(INDEX[None]), shape=(4, 3)),
    "_scatter_set_nd": lambda put: mx.nd._scatter_set_nd(put(np.zeros((4, 3), np.float32)), put(VALUES),
                                                         put(INDEX[None]), shape=(4, 3)),
    "index_copy": lambda put: mx.nd.contrib.index_copy(put(np.zeros((4, 3), np.float32)), put(INDEX), put(VALUES)),
}


@pytest.mark.parametrize("name", WRITES)
def test_the_last_of_repeated_writes_stays(name: str) -> None:
    write = WRITES[name]
    expected = write(mx.nd.array).asnumpy()
    assert expected.any()
    with gpus():
        found = write(lambda values: mx.nd.array(values, ctx=mx.gpu(0), dtype=values.dtype)).asnumpy()
    np.testing.assert_array_equal(found, expected)


def test_tensors_keep_the_last_write() -> None:
    def write() -> np.ndarray:
        x = mx.Tensor(np.zeros((4, 3), np.float32))
        x[mx.Tensor(INDEX)] = mx.Tensor(VALUES)
        return x.asnumpy()

    expected = write()
    with gpus(), mx.gpu(0):
        np.testing.assert_array_equal(write(), expected)


def test_the_last_write_gets_the_gradient() -> None:
    def gradient(ctx: Any) -> np.ndarray:
        values = mx.nd.array(VALUES, ctx=ctx)
        values.attach_grad()
        with mx.autograd.record():
            x = mx.nd.zeros((4, 3), ctx=ctx)
            x[mx.nd.array(INDEX, ctx=ctx, dtype="int64")] = values
            y = x * mx.nd.array(VALUES[:4], ctx=ctx)
        y.backward()
        return values.grad.asnumpy()

    expected = gradient(mx.cpu())
    assert not expected[[0, 2]].any() and expected[[1, 3, 4]].all()
    with gpus():
        np.testing.assert_array_equal(gradient(mx.gpu(0)), expected)
