"""Recipes: prepared gradient rules give the results of the rules themselves."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg import nd
from opreg.builtin.outputs import names_of_outputs
from opreg.core.invalidation import invalidate
from opreg.core.registry import declare, get, ops
from opreg.custom.composed import composed
from opreg.errors import OpError
from opreg.ndarray import autograd, backward_pass, eager
from opreg.ndarray import traced_rules as recipes

UNARY = {
    "tanh": nd.tanh, "relu": nd.relu, "exp": nd.exp, "sigmoid": nd.sigmoid, "square": nd.square,
    "softmax": nd.softmax, "log_softmax": nd.log_softmax, "transposed twice": lambda x: nd.transpose(nd.transpose(x)),
    "sum": lambda x: nd.broadcast_add(x, nd.sum(x, axis=0, keepdims=True)), "negative": lambda x: -x,
    "mean": lambda x: x - nd.mean(x, axis=1, keepdims=True), "half": lambda x: x * 0.5, "from one": lambda x: 1 - x,
    "sliced": lambda x: nd.concat(x[:1], x[1:] * 2, dim=0), "split": lambda x: nd.add_n(*nd.split(x, 2, axis=1)).tile(
        (1, 2)), "same": nd.identity, "stopped": lambda x: nd.BlockGrad(x) * x,
}
BINARY = {"add": lambda x, y: x + y, "mul": lambda x, y: x * y, "sub": lambda x, y: x - y,
          "div": lambda x, y: x / (nd.square(y) + 1), "maximum": nd.maximum,
          "dot": lambda x, y: nd.dot(x, nd.dot(y, x, transpose_a=True)) * 0.1,
          "dense": lambda x, y: nd.FullyConnected(x, y, num_hidden=y.shape[0], no_bias=True, flatten=False)[
              :, :1] * x}
STEPS = st.lists(st.one_of(st.tuples(st.sampled_from(sorted(UNARY)), st.integers(0, 9), st.just(0)),
                           st.tuples(st.sampled_from(sorted(BINARY)), st.integers(0, 9), st.integers(0, 9))),
                 min_size=1, max_size=7)


def compute(steps, inputs):
    values = list(inputs)
    for name, i, j in steps:
        left, right = values[i % len(values)], values[j % len(values)]
        values.append(UNARY[name](left) if name in UNARY else BINARY[name](left, right))
    return values[-1]


def gradients(steps, arrays, dtype, req="write"):
    inputs = [nd.array(array, dtype=dtype) for array in arrays]
    for each in inputs:
        each.attach_grad(req)
    with autograd.record():
        out = compute(steps, inputs)
    out.backward()
    return [each.grad.asnumpy() for each in inputs]


def by_rules(monkeypatch, *args):
    """Results of the rules, called on arrays."""
    with monkeypatch.context() as patch:
        patch.setattr(backward_pass, "differentiate", lambda *_: None)
        return gradients(*args)


@pytest.fixture
def counted(monkeypatch):
    """Counts of rules that were traced, and of those without a recipe."""
    found = {"traced": 0, "unfit": 0}
    trace = recipes._trace_rule

    def watch(*args):
        recipe, results = trace(*args)
        found["traced"] += 1
        found["unfit"] += recipe is None
        return recipe, results

    monkeypatch.setattr(recipes, "_trace_rule", watch)
    eager._RUNNERS.clear()
    return found


@settings(max_examples=60, deadline=None, derandomize=True)
@given(steps=STEPS, rows=st.integers(1, 3), columns=st.sampled_from([2, 4]), dtype=st.sampled_from(
    ["float32", "float64", "float16"]), fresh=st.booleans(), seed=st.integers(0, 99))
def test_programs_have_the_gradients_that_rules_give(steps, rows, columns, dtype, fresh, seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, (rows, columns)) for _ in range(2)]
    if fresh:
        eager._RUNNERS.clear()
    with pytest.MonkeyPatch.context() as patch:
        expected = by_rules(patch, steps, arrays, dtype)
    for _ in range(2):  # while rules are traced, and by recipes
        for found, wanted in zip(gradients(steps, arrays, dtype), expected):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=2e-2 if dtype == "float16" else 1e-5, atol=1e-3 if dtype ==
                                       "float16" else 1e-6)


def test_a_rule_is_traced_once_for_each_kind(counted):
    for shape, dtype in (((2, 2), "float32"), ((2, 2), "float32"), ((3, 2), "float32"), ((2, 2), "float64")):
        x = nd.ones(shape, dtype=dtype)
        x.attach_grad()
        with autograd.record():
            y = nd.tanh(x)
        y.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), 1 - np.tanh(np.ones(shape)) ** 2, rtol=1e-6)
    assert counted == {"traced": 3, "unfit": 0}


def test_attributes_are_part_of_the_kind():
    for axis in (0, 1, 0):
        x = nd.array([[1.0, 2.0], [3.0, 5.0]])
        x.attach_grad()
        with autograd.record():
            y = nd.softmax(x, axis=axis)
        y.backward(nd.array([[1.0, 0.0], [0.0, 0.0]]))
        p = y.asnumpy()
        other = (1, 0) if axis == 0 else (0, 1)
        assert x.grad.asnumpy()[other] == pytest.approx(-p[0, 0] * p[other], rel=1e-5)


def test_wanted_gradients_are_part_of_the_kind():
    eager._RUNNERS.clear()
    for first, second in ((True, False), (True, True), (False, True), (True, True)):
        x, y = nd.array([2.0]), nd.array([5.0])
        for each, wanted in ((x, first), (y, second)):
            if wanted:
                each.attach_grad()
        with autograd.record():
            z = x * y
        z.backward()
        assert x.grad is None if not first else x.grad.asscalar() == 5
        assert y.grad is None if not second else y.grad.asscalar() == 2


@pytest.mark.parametrize("train_mode", [True, False])
def test_the_mode_is_part_of_the_kind(train_mode):
    def run(mode):
        x = nd.array([[1.0, 2.0], [3.0, 7.0]])
        x.attach_grad()
        ones, zeros = nd.ones(2), nd.zeros(2)
        with autograd.record():
            y = nd.BatchNorm(x, ones, zeros, zeros.copy(), ones.copy(), fix_gamma=False, eps=1e-3)
        autograd.backward(y, nd.array([[1.0, 0.0], [0.0, 2.0]]), train_mode=mode)
        return x.grad.asnumpy()

    both = run(train_mode), run(not train_mode)
    np.testing.assert_array_equal(both[0], run(train_mode))
    assert not np.allclose(*both)


def test_a_rule_that_reads_values_runs_as_python(counted):
    tanh = get("tanh")
    rule = tanh.rules.grad
    try:
        tanh.grad(lambda g, ins, outs: g * float(ins[0].asnumpy().max()))
        for top in (2.0, 3.0):
            x = nd.array([1.0, top])
            x.attach_grad()
            with autograd.record():
                y = nd.tanh(x)
            y.backward()
            np.testing.assert_array_equal(x.grad.asnumpy(), [top, top])
        assert counted == {"traced": 1, "unfit": 1}
    finally:
        tanh.rules.grad = rule
        eager._RUNNERS.clear()


@pytest.mark.parametrize("error", [MemoryError, RecursionError, OSError, RuntimeError])
@pytest.mark.parametrize("where", ["rule", "kernel"])
def test_a_rule_whose_tracing_failed_is_traced_again(where, error, counted):
    """The rule itself raises an error if it cannot be traced."""
    tanh, backward = get("tanh"), get("_backward_tanh")
    rule, kernels, failing = tanh.rules.grad, list(backward.kernels), [True]

    def fails():
        if failing.pop() if failing else False:
            raise error("for once")

    def gradient(g, ins, outs):
        fails() if where == "rule" else None
        return (ops._backward_tanh(g, outs[0]),)

    def kernel(xp, g, output):
        fails() if where == "kernel" else None
        return g * 3

    def slope():
        x = nd.array([0.5])
        x.attach_grad()
        with autograd.record():
            y = nd.tanh(x)
        y.backward()
        return x.grad.asscalar()

    try:
        tanh.grad(gradient)
        backward.kernel()(kernel)
        assert [slope() for _ in range(4)] == [3, 3, 3, 3]
        assert counted == {"traced": 1, "unfit": 0}  # the one that failed is not counted
    finally:
        tanh.rules.grad, backward.kernels = rule, kernels
        invalidate(tanh)


def test_an_interrupt_is_not_cached():
    tanh, interrupted = get("tanh"), [True]
    rule = tanh.rules.grad

    def gradient(g, ins, outs):
        if interrupted:
            interrupted.clear()
            raise KeyboardInterrupt
        return (g * 3,)

    try:
        tanh.grad(gradient)
        x = nd.array([0.5])
        x.attach_grad()
        with autograd.record():
            y = nd.tanh(x)
        with pytest.raises(KeyboardInterrupt):
            y.backward()
        y.backward()
        assert x.grad.asscalar() == 3 and None not in y._entry[0].prepared.recipes.values()
    finally:
        tanh.rules.grad = rule
        invalidate(tanh)


def test_a_gradient_rule_that_is_registered_later_is_used():
    tanh = get("tanh")
    rule, x, y = tanh.rules.grad, nd.array([0.5]), mx.sym.tanh(mx.sym.Variable("x"))
    x.attach_grad()

    def both():
        with autograd.record():
            z = nd.tanh(x)
        z.backward()
        executor = y.simple_bind(mx.cpu(), x=(1,))
        executor.forward(is_train=True, x=x)
        executor.backward(nd.ones(1))
        return x.grad.asscalar(), executor.grad_dict["x"].asscalar()

    first = both()
    try:
        tanh.grad(lambda g, ins, outs: g * 3)
        assert both() == (3, 3)
    finally:
        tanh.rules.grad = rule
        invalidate(tanh)
    assert both() == first == pytest.approx((1 - np.tanh(0.5) ** 2,) * 2)


def test_users_rules_run_as_python(counted, unregistered):
    seen = []

    def backward(g, ins, outs):
        seen.append(g.asnumpy())
        return g * 3

    def recipes_example(data):
        """Three times the data."""

    op = declare(recipes_example, name="_recipes_example")
    op.kernel()(lambda xp, data: data * 3)
    op.grad(backward)
    for _ in range(2):
        x = nd.array([1.0])
        x.attach_grad()
        with autograd.record():
            y = op(x)
        y.backward()
        assert x.grad.asscalar() == 3
    assert len(seen) == 2 and counted["traced"] == 0


def test_gradients_share_no_memory():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = x + x
        z = nd.identity(x)
    (first,) = autograd.grad(y, x, retain_graph=True)
    first[:] = 9
    (again,) = autograd.grad(y, x, retain_graph=True)
    assert again.asnumpy().tolist() == [2, 2]
    ones = autograd.grad(z, [x, z], retain_graph=True)
    ones[0][:] = 7
    assert ones[1].asnumpy().tolist() == [1, 1]
    assert autograd.grad(z, x)[0].asnumpy().tolist() == [1, 1]


def test_gradients_of_an_array_that_is_used_many_times_are_summed():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = nd.add_n(*[x * i for i in range(5)]) + x
    kept = nd.ones(2)
    y.backward(kept, retain_graph=True)
    assert x.grad.asnumpy().tolist() == [11, 11] and kept.asnumpy().tolist() == [1, 1]
    y.backward(kept)
    assert x.grad.asnumpy().tolist() == [11, 11]


@pytest.mark.parametrize("req, expected", [("write", 4.0), ("add", 8.0), ("null", None)])
def test_recipes_follow_the_request(req, expected):
    x = nd.array([2.0])
    x.attach_grad(req)
    for _ in range(2):
        with autograd.record():
            y = x * x
        y.backward()
    assert expected is None is x.grad or x.grad.asscalar() == expected


def test_numbers_of_no_dimension_stay_arrays():
    x = mx.Tensor(3.0)
    for y in (ops.relu(x), ops.relu(x), x == 3, nd.array(2.0) == 2):
        assert isinstance(y._data, np.ndarray)
    g = mx.grad(lambda x: x * x * x + x)(x)
    assert isinstance(g._data, np.ndarray) and float(g.asnumpy()) == 28
    assert float(mx.grad(mx.grad(lambda x: x * x * x))(x).asnumpy()) == 18


def test_a_released_tape_raises_an_error():
    x = nd.array([1.0])
    x.attach_grad()
    with autograd.record():
        y = nd.tanh(x)
    y.backward()
    with pytest.raises(OpError, match="retain_graph=True"):
        y.backward()


def _flat(x):
    return ops.Reshape(x, shape=(-1,))


#: Bodies that reshape, how many results they have, and how many arrays a call holds at most.
RESHAPING = {
    "the input": (lambda x: _flat(x), 1, 1),
    "the input twice": (lambda x: (_flat(x), _flat(x)), 2, 2),
    "before": (lambda x: ops.exp(_flat(x)), 1, 1),
    "behind": (lambda x: _flat(ops.exp(x)), 1, 1),
    "around": (lambda x: ops.expand_dims(ops.exp(_flat(x)), axis=0), 1, 1),
    "behind twice": (lambda x: (_flat(y := ops.exp(x)), ops.expand_dims(y, axis=0)), 2, 2),
    "behind, and before that": (lambda x: (y := ops.exp(x), _flat(y)), 2, 2),
}


@pytest.mark.usefixtures("unregistered")
@pytest.mark.parametrize("name", RESHAPING)
def test_bodies_reshape_without_copies_and_their_results_share_no_memory(name):
    body, count, held = RESHAPING[name]
    x = nd.array(np.linspace(0, 1, 1 << 16).reshape(256, 256))
    op = composed(body, name="_example_reshaping", outputs=names_of_outputs(count))
    expected = x.asnumpy() if "input" in name else np.exp(x.asnumpy())
    for turn in range(3):
        tracemalloc.start()
        results = op(x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        results = results if isinstance(results, list) else [results]
        arrays = [x._data, *[each._data for each in results]]
        assert not any(np.may_share_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])
        assert all(np.array_equal(each.asnumpy().ravel(), expected.ravel()) for each in results)
        assert not turn or peak < (held + 0.5) * expected.nbytes
