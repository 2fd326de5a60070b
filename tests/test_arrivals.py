"""Gradients that arrive at outputs: copied, or read where their owner keeps them."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.symbol import head_gradients as arrivals

SHAPE = (700, 400)  # more than a megabyte


def bound(build=lambda x: mx.sym.tanh(x) * x, **keywords) -> mx.executor.Executor:
    executor = build(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=SHAPE, **keywords)
    executor.arg_dict["x"][:] = np.random.default_rng(0).uniform(-1, 1, SHAPE)
    return executor


def head(seed: int, dtype: str = "float32") -> mx.nd.NDArray:
    return mx.nd.array(np.random.default_rng(seed).standard_normal(SHAPE), dtype=dtype)


def stepped(executor: mx.executor.Executor, *given) -> np.ndarray:
    executor.forward(is_train=True)
    executor.backward(*given)
    return executor.grad_arrays[0].asnumpy()


def expected(executor: mx.executor.Executor, given: mx.nd.NDArray) -> np.ndarray:
    x = executor.arg_dict["x"].asnumpy()
    return given.asnumpy() * (np.tanh(x) + x * (1 - np.tanh(x) ** 2))


def agrees(executor: mx.executor.Executor, given: mx.nd.NDArray) -> None:
    before = given.asnumpy()
    np.testing.assert_allclose(stepped(executor, given), expected(executor, given), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(given.asnumpy(), before)


def lent(executor: mx.executor.Executor) -> bool:
    return executor._arrivals._lent


def test_an_array_that_comes_twice_is_read_where_it_lies():
    executor, one, other = bound(), head(1), head(2)
    agrees(executor, one)
    agrees(executor, other)
    assert not lent(executor)
    agrees(executor, other)
    assert lent(executor)
    other *= 0.5  # what it holds when backward is called
    agrees(executor, other)
    assert np.shares_memory(executor._bound.head_grads[0], other._data)
    executor.backward(other)  # runs forward by itself
    np.testing.assert_allclose(executor.grad_arrays[0].asnumpy(), expected(executor, other), rtol=1e-4, atol=1e-5)


def test_another_array_ends_it_for_good():
    executor, one, other = bound(), head(1), head(2)
    for given in (one, one, one, other, one, one, one):
        agrees(executor, given)
    assert not lent(executor)
    assert not np.shares_memory(executor._bound.head_grads[0], one._data)


@pytest.mark.parametrize("form", [lambda g: [g], lambda g: {"_mul0_output": g}, lambda g: g.astype("float64")],
                         ids=["list", "dict", "dtype"])
def test_other_forms_of_the_same_end_it_too(form):
    with mx.name.NameManager():
        executor = bound()
    given = head(1)
    for _ in range(3):
        agrees(executor, given)
    executor.forward(is_train=True)
    executor.backward(form(given))
    np.testing.assert_allclose(executor.grad_arrays[0].asnumpy(), expected(executor, given), rtol=1e-4, atol=1e-5)
    assert not lent(executor)
    agrees(executor, given)


@pytest.mark.parametrize("wrong", [None, mx.nd.ones((3, 4))], ids=["nothing", "shape"])
def test_a_mistake_changes_nothing(wrong):
    executor, given = bound(), head(1)
    for _ in range(3):
        agrees(executor, given)
    executor.forward(is_train=True)
    with pytest.raises(mx.MXNetError, match="backward"):
        executor.backward(wrong)
    agrees(executor, given)
    assert lent(executor)


def test_arrays_that_runs_write_are_copied():
    for which in ("outputs", "grad_arrays", "arg_arrays"):
        executor = bound()
        for _ in range(3):
            executor.forward(is_train=True)
            executor.backward(getattr(executor, which)[0])
        assert not lent(executor)


@pytest.mark.parametrize("build", [
    lambda x: mx.sym.Dropout(x, p=0.5), lambda x: mx.sym.Group([x * 2, x * 3]),
    lambda x: mx.sym.Custom(x, op_type="arrivals_run"), lambda x: mx.sym.slice_axis(x, axis=0, begin=0, end=3),
], ids=["random", "two outputs", "user's", "small"])
def test_where_forward_cannot_run_again_gradients_are_copied(build):
    class Run(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0])

    class RunProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Run()

    mx.operator.register("arrivals_run")(RunProp)
    executor = bound(build)
    given = [mx.nd.ones(each.shape) for each in executor.outputs]
    for _ in range(3):
        stepped(executor, given[0] if len(given) == 1 else given)
    assert not lent(executor)


def test_gradients_asked_for_with_add_stay_sums():
    executor, given = bound(grad_req="add"), head(1)
    for _ in range(5):
        stepped(executor, given)
    np.testing.assert_allclose(executor.grad_arrays[0].asnumpy(), 5 * expected(executor, given), rtol=1e-4, atol=1e-4)
    assert lent(executor)


def test_a_monitor_sees_the_array_that_came():
    executor, given, seen = bound(), head(1), []
    for _ in range(3):
        stepped(executor, given)
    executor.set_monitor_callback(lambda name, array: seen.append(name))
    agrees(executor, given)
    agrees(executor, head(2))
    executor.set_monitor_callback(None)
    agrees(executor, head(3))
    assert seen


def test_small_gradients_are_always_copied():
    executor = mx.sym.tanh(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(4,))
    given = mx.nd.ones(4)
    for _ in range(3):
        stepped(executor, given)
    assert not lent(executor)
    assert arrivals._LARGE > 16
