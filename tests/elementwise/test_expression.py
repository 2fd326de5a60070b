"""Expressions: instructions are evaluated, run step by step in memory, differentiated, and lowered."""

from __future__ import annotations

import functools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg.ndarray as nd
from opreg.core import threads
from opreg.elementwise import expression as e
from opreg.elementwise import tiling as schedule
from opreg.elementwise.expression import derive, trace

STEADY = settings(deadline=None, derandomize=True, max_examples=60)

# Smooth functions of one variable, bounded with bounded derivatives, so that any chain of them is smooth and bounded,
# too.
SMOOTH_ONE = [e.tanh, e.sin, e.cos, e.arctan, e.erf, lambda x: e.exp(e.sin(x)),
              lambda x: e.sqrt(e.square(x) + 1.0), lambda x: e.log1p(e.square(e.sin(x))),
              lambda x: 1.0 / (2.0 + e.cos(x)), lambda x: -x]
SMOOTH_TWO = [lambda x, y: x + y, lambda x, y: x - y, lambda x, y: e.tanh(x) * y,
              lambda x, y: x / (e.square(y) + 1.0), lambda x, y: e.hypot(x, y + 9.0),
              lambda x, y: (e.sin(x) + 2.0) ** e.cos(y)]
STEPPED_ONE = [e.floor, e.sign, e.trunc, e.absolute, e.logical_not]
STEPPED_TWO = [e.maximum, e.minimum, e.greater, e.less_equal, e.equal, e.logical_xor,
               lambda x, y: e.where(x, y, 0.5), lambda x, y: e.where(e.greater(x, y), x, y),
               lambda x, y: e.mod(x, y + 20.0)]


@st.composite
def functions(draw, smooth: bool = False):
    """A random function of three terms, with one to ten instructions on all earlier values."""
    one = SMOOTH_ONE + ([] if smooth else STEPPED_ONE)
    two = SMOOTH_TWO + ([] if smooth else STEPPED_TWO)
    lines = []
    for i in range(draw(st.integers(1, 10))):
        known = st.integers(0, 2 + i)
        constant = st.sampled_from([0.5, -1.5, 2.0, 3.0])
        if draw(st.booleans()):
            lines.append((draw(st.sampled_from(one)), (draw(known),), None))
        else:
            lines.append((draw(st.sampled_from(two)), (draw(known), draw(known)),
                          draw(st.none() | st.tuples(st.integers(0, 1), constant))))

    def function(*terms):
        values = list(terms)
        for apply, places, constant in lines:
            args = [values[place] for place in places]
            if constant is not None:
                args[constant[0]] = constant[1]
            values.append(apply(*args))
        return values[-1]

    return function


def numbers(*shape: int, seed: int = 0, count: int = 3, dtype: str = "float64") -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [generator.uniform(-2, 2, shape).astype(dtype) for _ in range(count)]


def run(expression, ins, out):
    made: dict = {}

    def scratch(number, shape, dtype):
        return made.setdefault((number, shape), np.full(shape, np.nan, dtype))

    for step in schedule.steps(expression, np, ins, out, scratch):
        step()
    return out


# ------------------------------------------------------------------------------------------ step by step


@STEADY
@given(functions())
def test_steps_into_an_output_equal_the_evaluation(function):
    expression = trace(function, 3)
    ins = numbers(3, 4)
    expected = expression(np, *ins)
    assert np.allclose(run(expression, ins, np.full((3, 4), np.nan)), expected, rtol=1e-12)


@STEADY
@given(functions(), st.integers(0, 2))
def test_steps_may_overwrite_an_input(function, which):
    expression = trace(function, 3)
    ins = numbers(5)
    expected = expression(np, *ins)
    assert np.allclose(run(expression, ins, ins[which]), expected, rtol=1e-12)


@STEADY
@given(functions(), st.sampled_from([None, 0, 2]))
def test_tiles_equal_one_piece(function, which):
    expression = trace(function, 3)
    ins = numbers(7, 3)
    expected = expression(np, *ins)
    out = np.full((7, 3), np.nan) if which is None else ins[which]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "TILE", 4)
        assert np.allclose(run(expression, ins, out), expected, rtol=1e-12)


@STEADY
@given(functions(), st.sampled_from([1, 4, 12, 1000]))
def test_inputs_may_broadcast(function, tile):
    expression = trace(lambda x, y, z: function(x, y, z) + x, 3)
    x, y, z = numbers(3, 4, 5)
    y, z = y[0, :1], z[:, :, :1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "TILE", tile)
        found = run(expression, [x, y, z], np.full((3, 4, 5), np.nan))
    assert np.allclose(found, expression(np, x, y, z), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_steps_keep_the_dtype(dtype):
    expression = trace(lambda x, y: e.maximum(x * 0.1, e.greater(x, y)) + e.erf(y), 2)
    ins = numbers(6, count=2, dtype=dtype)
    found = run(expression, ins, np.empty(6, dtype))
    assert np.allclose(found, expression(np, *ins), rtol=1e-2 if dtype == "float16" else 1e-6)


def test_strided_arrays_are_cut_into_tiles_too():
    expression = trace(lambda x: e.tanh(x) * x, 1)
    x = numbers(6, 8, count=1)[0]
    out = np.empty((8, 6)).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "TILE", 8)  # in float32 elements, of four bytes each
        assert np.allclose(run(expression, [x], out), np.tanh(x) * x)
        assert len(schedule.steps(expression, np, [x], out, lambda *_: out)) == 2 * 6 * 2


def test_one_instruction_is_one_step():
    x, out = np.ones(3), np.empty(3)
    for function in (e.tanh, lambda t: e.maximum(t, 0.0), lambda t: t + 2.0, lambda t: t, lambda t: 2.0):
        assert len(schedule.steps(trace(function, 1), np, [x], out, None)) == 1


def test_equal_terms_are_computed_once():
    assert repr(trace(lambda x: e.exp(x) * e.exp(x) + e.exp(x), 1)) == "exp(0) multiply(1, 1) add(2, 1)"


def test_a_long_chain_needs_no_recursion():
    expression = trace(lambda x: functools.reduce(lambda y, _: e.sin(y) + x, range(3000), x), 1)
    assert len(expression.code) == 6000
    assert len(derive(expression, 0).code) > 6000


def test_arithmetic_with_neutral_constants_is_dropped():
    expression = trace(lambda x: ((-0.0 + x + -0.0 - 0) * 1 / 1) ** 1, 1)
    assert expression.code == [] and expression.result == 0


@pytest.mark.parametrize("function, text", [
    (lambda x: x + 0, "add(0, 0.0)"), (lambda x: 0.0 + x, "add(0.0, 0)"), (lambda x: x - -0.0, "subtract(0, -0.0)"),
    (lambda x: x * 0, "multiply(0, 0.0)"), (lambda x: 1 / (x + 0.0) - 1 / (x + -0.0), "add(0, 0.0) reciprocal(1) "
                                            "reciprocal(0) subtract(2, 3)"),
    (lambda x: 1 / (x * 0.0) - 1 / (x * -0.0), "multiply(0, 0.0) reciprocal(1) multiply(0, -0.0) reciprocal(3) "
     "subtract(2, 4)")])
def test_arithmetic_with_zeros_of_either_sign_is_left_alone(function, text):
    assert repr(trace(function, 1)) == text


def test_constants_are_computed_at_once():
    assert repr(trace(lambda x: e.exp(0.0) + x, 1)) == "add(1.0, 0)"
    assert np.isnan(e.log(-1.0))


def test_a_constant_fills_the_shape():
    expression = trace(lambda x: 2.5, 1)
    assert expression(np, np.zeros((2, 3))).tolist() == [[2.5] * 3] * 2
    assert run(expression, [np.zeros(2)], np.empty(2)).tolist() == [2.5, 2.5]
    assert expression.used == []


def test_used_lists_only_inputs_that_an_expression_reads():
    assert trace(lambda x, y, z: z * 1.5 + 1.0, 3).used == [2]
    assert trace(lambda x, y: y, 2).used == [1]


# ----------------------------------------------------------------------------------------------- integers


def test_integers_stay_exact_where_every_instruction_is():
    big = np.array([2**62 + 1, -5])
    assert trace(lambda x: e.maximum(abs(x) - 1, 7.0), 1)(np, big).tolist() == [2**62, 7]
    assert trace(lambda x: e.greater(x, 0.0) + x, 1)(np, big).dtype == np.int64


def test_integers_become_floats_where_one_is_not():
    assert trace(lambda x: x * 0.5, 1)(np, np.array([3], "int8")).tolist() == [1.5]
    assert trace(e.exp, 1)(np, np.array([3], "int8")).dtype == np.float64


def test_small_integers_wrap_around():
    assert trace(lambda x: x + 300.0, 1)(np, np.array([1], "uint8")).tolist() == [45]
    assert trace(lambda x: -x, 1)(np, np.array([1], "uint8")).tolist() == [255]


def test_booleans_are_computed_as_numbers():
    truth = np.array([True, False])
    assert trace(lambda x, y: x + y, 2)(np, truth, truth).tolist() == [2, 0]


# -------------------------------------------------------------------------------------------- derivatives


@STEADY
@given(functions(smooth=True), st.integers(0, 2))
def test_derivatives_agree_with_central_differences(function, wrt):
    expression = trace(function, 3)
    ins = numbers(6, seed=1)
    g = np.linspace(1, 2, 6)
    step = 1e-6
    up, down = ([x + sign * step if i == wrt else x for i, x in enumerate(ins)] for sign in (1, -1))
    expected = g * (expression(np, *up) - expression(np, *down)) / (2 * step)
    assert np.allclose(derive(expression, wrt)(np, g, *ins), expected, rtol=1e-5, atol=1e-6)
    whole = derive(expression, wrt, output=True)
    assert np.allclose(whole(np, g, *ins, expression(np, *ins)), expected, rtol=1e-5, atol=1e-6)


def test_the_derivative_with_respect_to_an_input_that_is_not_read_is_zero():
    assert derive(trace(lambda x, y: x, 2), 1).result == 0.0


# ----------------------------------------------------------------------------------------------- lowering


@STEADY
@given(functions())
def test_lowering_to_operators_gives_the_same(function):
    expression = trace(lambda x, y, z: function(x, y, z) + x, 3)
    ins = numbers(6, seed=2)
    found = expression.lower(*[nd.array(x, dtype="float64") for x in ins])
    assert np.allclose(found.asnumpy(), expression(np, *ins), rtol=1e-9)


def test_lowering_broadcasts_on_request():
    expression = trace(lambda x, y: e.hypot(x, y) * 2.0 > y, 2)
    x, y = numbers(3, 4, count=2)
    found = expression.lower(nd.array(x), nd.array(y[:1]), broadcasts=True)
    assert found.shape == (3, 4)


def test_a_constant_is_lowered_to_an_array():
    assert trace(lambda x: 1.5, 1).lower(nd.zeros((2,))).asnumpy().tolist() == [1.5, 1.5]


# ------------------------------------------------------------------------------------------------ quicker ways

QUICKER = {"relu": lambda x: e.maximum(x, 0.0), "clip": lambda x: e.minimum(e.maximum(0.25, x), 0.75),
           "reciprocal": lambda x: e.reciprocal(x) + 1.0, "positive": lambda x: e.positive(abs(x)) * 2.0}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (5,), (7, 900)], ids=str)
@pytest.mark.parametrize("name", QUICKER)
def test_faster_implementations_give_the_same_bits(name, shape, dtype, monkeypatch):
    monkeypatch.setattr(schedule, "TILE", 1 << 12)
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    if x.size > 4:
        x.ravel()[:4] = [np.nan, np.inf, -0.0, 1e-7]
    out, expression = np.empty_like(x), trace(QUICKER[name], 1)
    with np.errstate(all="ignore"):
        for step in schedule.steps(expression, np, [x], out, lambda n, shape, dtype: np.empty(shape, dtype)):
            step()
        np.testing.assert_array_equal(out, expression(np, x))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_limits_of_many_elements_have_the_bits_of_the_ufunc(name, dtype):
    values = [0.0, -0.0, 0.5, -1.0, np.inf, -np.inf, np.nan, 1e-7]
    x, ufunc, limit = np.tile(np.array(values, dtype), 700), getattr(np, name), getattr(e, name)
    for number in values:
        for function, expected in ((lambda x: limit(x, number), ufunc(x, x.dtype.type(number))),
                                   (lambda x: limit(number, x), ufunc(x.dtype.type(number), x))):
            out = np.empty_like(x)
            for step in schedule.steps(trace(function, 1), np, [x], out, lambda n, *spec: np.empty(*spec)):
                step()
            assert out.tobytes() == expected.tobytes(), number


@pytest.mark.parametrize("source", [lambda x: x * 2, lambda x: x[:1] * 2, lambda x: 3.0, lambda x: x.astype("int64")],
                         ids=["whole", "row", "number", "integers"])
def test_large_copies_are_shared(source, monkeypatch):
    monkeypatch.setattr(threads, "_COPIED", 1)
    monkeypatch.setattr(threads, "count", lambda: 3)
    x = np.arange(33.0).reshape(11, 3)
    target = np.full_like(x, np.nan)
    threads.copy(target, source(x))
    np.testing.assert_array_equal(target, np.broadcast_to(source(x), x.shape))


def test_results_are_freed_after_their_last_read() -> None:
    """At most two arrays are held at a time, for any number of instructions."""
    expression = trace(lambda x: e.exp(e.sin(e.cos(e.exp(e.sin(e.cos(x)))))), 1)
    function, x = expression.on(np, np.dtype("float64")), np.ones(1 << 16)
    function(x)
    tracemalloc.start()
    try:
        function(x)
        assert tracemalloc.get_traced_memory()[1] < 2.5 * x.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("call", [
    nd.sigmoid, nd.softsign, nd.hard_sigmoid, nd.smooth_l1, nd.rcbrt, lambda x: nd.clip(x, -1, 1),
    lambda x: nd.Activation(x, act_type="softrelu"), lambda x: nd.LeakyReLU(x, act_type="gelu")],
    ids=["sigmoid", "softsign", "hard_sigmoid", "smooth_l1", "rcbrt", "clip", "softrelu", "gelu"])
def test_large_arrays_give_the_bits_of_their_parts(call, dtype):
    """Ufuncs on large arrays write over results of others; arguments keep their values."""
    values = np.linspace(-3, 3, 1 << 15, dtype=dtype)
    array = nd.array(values, dtype=dtype)
    parts = [call(nd.array(part, dtype=dtype)).asnumpy() for part in values.reshape(32, -1)]
    assert call(array).asnumpy().tobytes() == np.concatenate(parts).tobytes()
    assert array.asnumpy().tobytes() == values.tobytes()
