"""Eager calls and graphs, fused and traced, in training and inference, give the same bits, signs of zeros included."""

from __future__ import annotations

import importlib.util
import itertools

import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda.instructions import Value, statements
from opreg.elementwise.expression import trace
from opreg.elementwise.special_functions import of_equal_zeros

nd, sym = mx.nd, mx.sym

NUMBERS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5, 3.0, 5e-324, -5e-324, 1e-40, -1e-40, 6e-8, -6e-8,
           65504.0, 1e30, -1e30, 1e300]
DTYPES = ["float16", "float32", "float64"]
#: Operators with scalars, each a function of arrays, symbols, tensors and traced values.
OPERATORS = {
    "x + 0.0": lambda x: x + 0.0, "0 + x": lambda x: 0 + x, "x + -0.0": lambda x: x + -0.0,
    "x - 0.0": lambda x: x - 0.0,
    "x - -0.0": lambda x: x - -0.0, "0.0 - x": lambda x: 0.0 - x, "-0.0 - x": lambda x: -0.0 - x,
    "x * 0.0": lambda x: x * 0.0, "x * -0.0": lambda x: x * -0.0, "x * 1": lambda x: x * 1, "-x": lambda x: -x,
    "x / 1": lambda x: x / 1, "1 / x": lambda x: 1 / x, "-0.0 / x": lambda x: -0.0 / x, "x ** 1": lambda x: x ** 1,
    "x ** 2": lambda x: x ** 2, "abs": lambda x: abs(x), "max 0.0": lambda x: _of(x).maximum(x, 0.0),
    "min -0.0": lambda x: _of(x).minimum(x, -0.0), "x > -0.0": lambda x: x > -0.0, "relu": lambda x: _of(x).relu(x),
}
PAIRS = [*itertools.product(OPERATORS, repeat=2)]


def _of(x):
    return sym if isinstance(x, mx.sym.Symbol) else nd


def chain(names, x):
    for name in names:
        x = OPERATORS[name](x)
    return x


def bits(array):
    """Bits of numbers, with one pattern for all NaN."""
    array = np.ascontiguousarray(array.asnumpy())
    return np.where(np.isnan(array), 0, array.view(f"u{array.itemsize}"))


def numbers(dtype, count=1):
    with np.errstate(over="ignore"):
        return nd.array(np.tile(np.array(NUMBERS).astype(dtype), count), dtype=dtype)


def bound(symbol, x, grad_req="null"):
    executor = symbol.simple_bind(mx.cpu(), grad_req=grad_req, type_dict={"x": x.dtype}, x=x.shape)
    executor.arg_dict["x"][:] = x
    return executor


def same(found, expected, what):
    assert found.dtype == expected.dtype, what
    differ = np.flatnonzero(bits(found) != bits(expected))
    assert differ.size == 0, (what, differ, found.asnumpy()[differ[:5]], expected.asnumpy()[differ[:5]])


@pytest.mark.once  # the next test has these chains, compiled together
@pytest.mark.parametrize("dtype", DTYPES)
def test_chains_of_two_operators_keep_signs_of_zeros(dtype):
    x, data = numbers(dtype), sym.var("x", dtype=dtype)
    for pair in PAIRS:
        same(bound(chain(pair, data), x).forward()[0], chain(pair, x), pair)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("first", OPERATORS)
def test_fused_training_of_large_arrays_keeps_signs_of_zeros(dtype, first):
    """One operator with all others after it, fused, over several tiles; gradients are bound, so values may be
    recomputed."""
    x, data = numbers(dtype, 200), sym.var("x", dtype=dtype)
    pairs = [(first, second) for second in OPERATORS]
    executor = bound(sym.Group([chain(pair, data) for pair in pairs]), x, "write")
    for train in (False, True):
        for pair, found in zip(pairs, executor.forward(is_train=train)):
            same(found, chain(pair, x), pair)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bodies_that_are_traced(dtype, unregistered):
    x = numbers(dtype)
    pairs = PAIRS[::7]

    @mx.operator.define(name="bits_chained", outputs=[f"o{i}" for i in range(len(pairs))], traced=True)
    def chained(x):
        return tuple([chain(pair, x) for pair in pairs])

    eager = nd.custom.bits_chained(x)
    graph = bound(sym.custom.bits_chained(sym.var("x", dtype=dtype)), x).forward()
    for pair, one, other in zip(pairs, eager, graph):
        same(one, chain(pair, x), pair)
        same(other, chain(pair, x), pair)


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_compiled_functions_keep_the_signs_of_zeros(dtype):
    x = mx.Tensor(numbers(dtype).asnumpy())
    pairs = [pair for pair in PAIRS[::5] if not {"max 0.0", "min -0.0", "relu", "x > -0.0"} & {*pair}]  # no tensors'
    for pair, found in zip(pairs, mx.jit(lambda x: tuple([chain(pair, x) for pair in pairs]))(x)):
        same(found, chain(pair, x), pair)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("first", ["x + 0.0", "x * -0.0", "0.0 - x", "max 0.0", "relu"])
def test_constants_that_are_computed_at_bind(dtype, first):
    """Expressions of zeros and ones are folded; they keep their bits."""
    data = sym.var("x", dtype=dtype)
    x = numbers(dtype)
    pairs = [(first, second) for second in OPERATORS]
    symbols = [chain(pair, sym.zeros_like(data) * -1) * sym.ones_like(data) for pair in pairs]
    symbols += [chain(pair, sym.zeros((3,), dtype=dtype) * -1) for pair in pairs]
    expected = [chain(pair, nd.zeros_like(x) * -1) * nd.ones_like(x) for pair in pairs]
    expected += [chain(pair, nd.zeros((3,), dtype=dtype) * -1) for pair in pairs]
    for pair, found, wanted in zip(pairs * 2, bound(sym.Group(symbols), x).forward(), expected):
        same(found, wanted, pair)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_relu_where_it_is_a_negative_zero(dtype):
    x = nd.array(np.tile(np.array([-0.0, 0.0, 2.0, -1.0, np.nan, 6e-8]).astype(dtype), 500), dtype=dtype)
    top = nd.array(np.where(np.arange(3000) % 2, -1.0, 1.0), dtype=dtype)
    x.attach_grad()
    with mx.autograd.record():
        y = nd.relu(x)
    y.backward(top)
    executor = bound(sym.relu(sym.var("x", dtype=dtype)), x, "write")
    executor.forward(is_train=True)
    executor.backward([top])
    same(executor.grad_dict["x"], x.grad, "gradient")


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("first", ["x + 0.0", "-x", "1 / x", "max 0.0", "min -0.0"])
def test_bitwise_operators_are_compiled_by_numba(dtype, first):
    from opreg.backends.numba import compiler

    x, data = numbers(dtype, 8), sym.var("x", dtype=dtype)
    pairs = [(first, second) for second in OPERATORS]
    with compiler.use("numba"):
        executor = bound(sym.Group([chain(pair, data) for pair in pairs]), x)
        results = executor.forward()
    assert "numba" in str(executor.explain())
    for pair, found in zip(pairs, results):
        same(found, chain(pair, x), pair)


def test_texts_for_cuda_tell_zeros_apart():
    expression = trace(lambda x: 1 / (x + 0.0) - 1 / (x - -0.0) + x * -0.0 + (x - 0.0), 1)
    lines, _ = statements(expression, [Value("x0", "float")])
    assert lines[:5] == ["const float r0 = x0 + 0.0f;", "const float r1 = float(1) / r0;",
                         "const float r2 = x0 - -0.0f;", "const float r3 = float(1) / r2;", "const float r4 = r1 - r3;"]
    assert lines[5:] == ["const float r5 = x0 * -0.0f;", "const float r6 = r4 + r5;", "const float r7 = r6 + x0;"]


@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_signs_of_zeros_are_those_of_numpy(name, dtype):
    """The sign is the same at all positions of an array."""
    given, function = of_equal_zeros(name, np.dtype(dtype)), getattr(np, name)
    for count, (left, right) in itertools.product((1, 3, 17, 64, 1000), [(-0.0, 0.0), (0.0, -0.0)]):
        found = np.signbit(function(np.full(count, left, dtype), np.full(count, right, dtype)))
        wanted = {"first": left, "second": right, "sign": 0.0 if name == "maximum" else -0.0}[given]
        assert (found == np.signbit(wanted)).all()
