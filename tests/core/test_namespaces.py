"""Names without an operator of their own: aliases, and functions made of operators."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.core.registry import find
from tests.questions import of_each

VALUES = np.float32([1, 0, np.nan, np.inf, -np.inf])


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_values_that_are_no_numbers(name):
    expected = getattr(np, name)(VALUES).astype("float32")
    found = getattr(mx.nd.contrib, name)(mx.nd.array(VALUES))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.asnumpy(), expected)
    symbol = getattr(mx.sym.contrib, name)(mx.sym.Variable("x"))
    np.testing.assert_array_equal(symbol.eval(x=mx.nd.array(VALUES))[0].asnumpy(), expected)
    whole = getattr(mx.nd.contrib, name)(mx.nd.array([1, 2], dtype="int32"))
    assert whole.dtype == np.int32
    assert whole.asnumpy().tolist() == [int(name == "isfinite")] * 2


def test_zipfian_samples_and_expected_counts_follow_the_distribution():
    true = mx.nd.array([3, 0])
    mx.random.seed(1)
    samples, expected, counts = mx.nd.contrib.rand_zipfian(true, 4000, 5)
    assert samples.dtype == np.int64
    assert samples.shape == counts.shape == (4000,)
    chances = np.log((np.arange(5) + 2) / (np.arange(5) + 1)) / np.log(6)
    np.testing.assert_allclose(expected.asnumpy(), 4000 * chances[[3, 0]])
    np.testing.assert_allclose(counts.asnumpy(), 4000 * chances[samples.asnumpy()])
    np.testing.assert_allclose(np.bincount(samples.asnumpy(), minlength=5) / 4000, chances, atol=0.03)
    symbols = mx.sym.Group(list(mx.sym.contrib.rand_zipfian(mx.sym.Variable("x"), 7, 5)))
    found = symbols.eval(x=true)
    assert [each.shape for each in found] == [(7,), (2,), (7,)]
    np.testing.assert_allclose(found[1].asnumpy(), 7 * chances[[3, 0]])


@pytest.mark.parametrize("space", [mx.nd.contrib, mx.sym.contrib])
def test_functions_are_listed_with_operators(space):
    assert {"foreach", "while_loop", "cond", "isnan", "rand_zipfian", "box_nms"} <= set(dir(space))
    assert not [name for name in dir(space) if name.startswith("_")]


@pytest.mark.parametrize("name, first, second", [
    ("maximum", "left", "right"), ("minimum", "left", "right"), ("hypot", "left", "right"), ("power", "base", "exp"),
    ("pow", "base", "exp")])
def test_operands_have_the_names_of_symbols_too(name, first, second):
    function, x = getattr(mx.nd, name), mx.nd.array([3.0, 5.0])
    for names in ((first, second), ("lhs", "rhs")):
        assert function(**{names[1]: 4.0, names[0]: x}).asnumpy().tolist() == function(x, 4.0).asnumpy().tolist()
        assert getattr(mx.sym, name)(**dict(zip(names, (mx.sym.var("x"), 4.0)))).list_arguments() == ["x"]
    with pytest.raises(TypeError, match=rf"^{name}\(\) got multiple values for argument 'lhs'"):
        function(x, **{first: x})


@of_each([
    "abs", "add_n", "broadcast_add", "clip", "elemwise_mul", "gamma", "mean", "norm", "relu", "sum", "trunc"])
def test_names_for_sparse_storage_are_the_dense_operators(name):
    assert find(f"_sparse_{name}") is find(name)
    assert getattr(mx.nd, f"_sparse_{name}")
    assert getattr(mx.sym, f"_sparse_{name}")


@pytest.mark.parametrize("make", [
    lambda ctx: mx.sym.random.uniform(0, 1, shape=(2,), ctx=ctx),
    lambda ctx: mx.sym.random.randint(0, 5, shape=(2,), ctx=ctx),
    lambda ctx: mx.sym.zeros((2,), ctx=ctx), lambda ctx: mx.sym._full(shape=(2,), value=3, ctx=ctx)])
def test_a_context_may_be_given_to_a_symbol(make):
    for ctx in (mx.cpu(1), "cpu(1)"):
        symbol = make(ctx)
        assert symbol.attr("ctx") == "cpu(1)"
        assert symbol.bind(mx.cpu(), {}).forward()[0].shape == (2,)


@pytest.mark.parametrize("space", [mx.nd.contrib, mx.sym.contrib, mx.nd.linalg, mx.sym.image, mx.nd.custom],
                         ids=lambda space: space.__name__)
def test_functions_are_found_where_programs_look_for_them(space):
    @mx.operator.define(name=f"_example_found_in_{space.__name__}".replace(".", "_"))
    def found(x):
        return x

    names = {name for name in dir(space) if name.isidentifier()}
    assert names <= vars(space).keys() and "no_such_operator" not in vars(space)
    assert all(vars(space)[name] is getattr(space, name) for name in names)


def test_a_deleted_function_stays_deleted():
    space = mx.sym.contrib
    function = vars(space).pop("box_decode")
    try:
        assert "box_decode" not in vars(space)
    finally:
        space.box_decode = function
    assert vars(space)["box_decode"] is function
