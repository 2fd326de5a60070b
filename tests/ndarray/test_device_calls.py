"""Eager calls on a device run the kernels of plans, on whatever arrays they are given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opreg as mx
from tests.cuda.device import Gpu, gpus
from tests.cuda.host import COMPILER

nd, sym = mx.nd, mx.sym
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")


@pytest.fixture
def xp() -> Iterator[Gpu]:
    with gpus() as module:
        yield module


def numbers(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


#: Calls of operators, with the shapes of their inputs.
CALLS: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "softmax": (lambda F, x: F.softmax(x), ((6, 40),)),
    "log_softmax": (lambda F, x: F.log_softmax(x, axis=0), ((6, 40),)),
    "LayerNorm": (lambda F, x, a, b: F.LayerNorm(x, a, b), ((6, 40), (40,), (40,))),
    "sum": (lambda F, x: F.sum(x, axis=(0, 2)), ((3, 4, 5),)),
    "max pooling": (lambda F, x: F.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max"), ((2, 3, 8, 8),)),
    "dense": (lambda F, x, w, b: F.FullyConnected(x, w, b, num_hidden=5), ((6, 8), (5, 8), (5,))),
    "products": (lambda F, x, y: F.batch_dot(x, y, transpose_b=True), ((2, 3, 4), (2, 5, 4))),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_eager_call_has_the_bits_of_a_plan(name: str, xp: Gpu) -> None:
    call, shapes = CALLS[name]
    ctx = mx.gpu(0)
    names = "abc"[:len(shapes)]
    executor = call(sym, *map(sym.var, names)).simple_bind(ctx, grad_req="null", **dict(zip(names, shapes)))
    for seed in range(2):  # the second call is that of the first, on other arrays
        values = [numbers(*shape, seed=seed + i) for i, shape in enumerate(shapes)]
        arrays = [nd.array(value, ctx=ctx) for value in values]
        found = call(nd, *arrays).asnumpy()
        np.testing.assert_array_equal(found, executor.forward(**dict(zip(names, values)))[0].asnumpy())
        np.testing.assert_allclose(found, call(nd, *map(nd.array, values)).asnumpy(), 1e-5, 1e-6)
        for array, value in zip(arrays, values):
            np.testing.assert_array_equal(array.asnumpy(), value)


def test_kernels_of_plans_run(xp: Gpu) -> None:
    nd.softmax(nd.array(numbers(3, 4), ctx=mx.gpu(0)))
    assert xp.kernels == ["rows"]


def test_views_at_any_address_and_stride_are_taken(xp: Gpu) -> None:
    host = numbers(7, 6)
    whole = nd.array(host, ctx=mx.gpu(0))
    for take in (lambda x: x[1:], lambda x: x[2:5], lambda x: x.T, lambda x: x[:, 1:4]):
        np.testing.assert_allclose(nd.softmax(take(whole)).asnumpy(), nd.softmax(take(nd.array(host))).asnumpy(),
                                   1e-5, 1e-6)


def test_one_array_may_be_several_inputs(xp: Gpu) -> None:
    """A call of two arrays and a call of one array twice are of one kind."""
    a, b = numbers(4, 4), numbers(4, 4, seed=1)
    x, y = (nd.array(value, ctx=mx.gpu(0)) for value in (a, b))
    for left, right, want in ((x, x, a @ a), (x, y, a @ b), (y, y, b @ b)):
        np.testing.assert_allclose(nd.dot(left, right).asnumpy(), want, 1e-5, 1e-5)


@pytest.mark.parametrize("target", ["another", "the input", "unaligned"])
def test_results_are_written_to_out(target: str, xp: Gpu) -> None:
    host = numbers(5, 33)
    x = nd.array(host, ctx=mx.gpu(0))
    memory = nd.zeros((6 * 33,), ctx=mx.gpu(0))
    out = {"another": nd.zeros((5, 33), ctx=mx.gpu(0)), "the input": x,
           "unaligned": memory[1:5 * 33 + 1].reshape((5, 33))}[target]
    result = nd.softmax(x, out=out)
    assert result is out
    np.testing.assert_allclose(out.asnumpy(), nd.softmax(nd.array(host)).asnumpy(), 1e-5, 1e-6)


def test_gradients_run_the_kernels_of_plans(xp: Gpu) -> None:
    host = numbers(3, 9)

    def gradient(ctx: Any) -> np.ndarray:
        x = nd.array(host, ctx=ctx)
        x.attach_grad()
        with mx.autograd.record():
            y = nd.log_softmax(x)
        y.backward(nd.array(numbers(3, 9, seed=1), ctx=ctx))
        return x.grad.asnumpy()

    np.testing.assert_allclose(gradient(mx.gpu(0)), gradient(mx.cpu()), 1e-5, 1e-6)
    assert xp.kernels == ["rows", "rows"]
