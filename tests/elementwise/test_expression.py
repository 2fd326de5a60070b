"""Expressions: instructions are evaluated, run step by step in memory, differentiated, and lowered."""

from __future__ import annotations

import functools
import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg.ndarray as nd
from opreg.core import threads
from opreg.elementwise import expression as e
from opreg.elementwise import special_functions as special
from opreg.elementwise import tiling as schedule
from opreg.elementwise.expression import PRIMITIVES, derive, polygamma, primitive, trace
from tests.questions import of_each

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


OF_TWO = ("add", "subtract", "multiply", "divide", "mod", "power", "hypot", "maximum", "minimum")
SMOOTH_PRIMITIVES = {name: each for name, each in PRIMITIVES.items() if each.derivative and name != "where"}
COMPARISONS = ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "logical_and", "logical_or",
               "logical_xor")
DOMAINS = {"arccosh": (1.1, 3), "arcsin": (-0.9, 0.9), "arccos": (-0.9, 0.9), "arctanh": (-0.9, 0.9),
           "erfinv": (-0.9, 0.9)}


@pytest.mark.parametrize("name", sorted(SMOOTH_PRIMITIVES))
def test_every_instruction_has_its_derivative(name):
    arity = 2 if name in OF_TWO else 1
    expression = trace(lambda *terms: e.Term(PRIMITIVES[name], terms), arity)
    generator = np.random.default_rng(0)
    ins = [generator.uniform(*DOMAINS.get(name, (0.3, 2.2)), 8) for _ in range(arity)]
    step = 1e-6
    for i in range(arity):
        up, down = ([x + sign * step if i == j else x for j, x in enumerate(ins)] for sign in (1, -1))
        expected = (expression(np, *up) - expression(np, *down)) / (2 * step)
        assert np.allclose(derive(expression, i)(np, np.ones(8), *ins), expected, rtol=1e-5, atol=1e-7)


@of_each(itertools.product(sorted(PRIMITIVES), ["float16", "float32", "float64"]), by=lambda case: case[1])
def test_every_instruction_computes_arrays_of_any_strides(name, dtype):
    """NumPy has separate loops for most strides, and some of them are wrong."""
    arity = 3 if name == "where" else 2 if name in (*OF_TWO, *COMPARISONS) else 1
    expression = trace(lambda *terms: e.Term(PRIMITIVES[name], terms), arity)
    generator = np.random.default_rng(0)
    ins = [generator.uniform(*DOMAINS.get(name, (0.3, 2.2)), 40).astype(dtype) for _ in range(arity)]
    with np.errstate(all="ignore"):
        expected = run(expression, ins, np.empty(40, dtype))
        for step, to in itertools.product((1, 2, 3, 4, 8, -1, -4, -8), (1, 2, 8, -8)):
            strided = [np.repeat(x, abs(step))[::step] if step > 0 else np.repeat(x[::-1], -step)[::step] for x in ins]
            for around in (strided, [*strided[:-1], strided[-1][:1]]):
                want = expected if around is strided else run(expression, [*ins[:-1], ins[-1][:1]], np.empty(40, dtype))
                out = np.zeros(40 * abs(to), dtype)[::to]
                assert np.allclose(run(expression, around, out), want, rtol=1e-2 if dtype == "float16" else 1e-5,
                                   equal_nan=True), (step, to)


def test_steps_have_zero_derivatives():
    assert derive(trace(lambda x: e.floor(x) + e.greater(x, 0.0), 1), 0).result == 0.0


def test_the_derivative_with_respect_to_an_input_that_is_not_read_is_zero():
    assert derive(trace(lambda x, y: x, 2), 1).result == 0.0


def test_a_new_instruction_is_traced_run_and_differentiated():
    double = primitive("test_double", lambda xp, x, out=None: xp.multiply(x, 2.0, out),
                       lambda g, y, a: (g * 2.0,))
    try:
        expression = trace(lambda x: double(x) + 1.0, 1)
        assert run(expression, [np.ones(2)], np.empty(2)).tolist() == [3.0, 3.0]
        assert derive(expression, 0)(np, np.ones(2), np.ones(2)).tolist() == [2.0, 2.0]
    finally:
        del PRIMITIVES["test_double"]


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


def test_polygamma_is_lowered_to_an_operator():
    x = np.array([0.5, 3.0])
    found = trace(polygamma(2), 1).lower(nd.array(x, dtype="float64"))
    assert np.allclose(found.asnumpy(), special.polygamma(np, 2, x))


# -------------------------------------------------------------------------------------- special functions

scipy_special = pytest.importorskip("scipy.special")


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(all="ignore"):
        return float(np.max(np.where(same, 0.0, np.abs(found - expected) / np.abs(expected))))


EDGES = [np.inf, -np.inf, np.nan, -0.0]
SPREAD = np.concatenate([np.linspace(-6, 6, 4001), 10.0 ** np.arange(-300, 1, 5), EDGES])
INSIDE = np.concatenate([np.linspace(-1, 1, 4001), 1 - 10.0 ** np.arange(-16, 0), [1e-300, np.nan, 1.5]])
POSITIVE = np.concatenate([np.linspace(0.01, 30, 4001), np.linspace(30, 175, 1001), [1e-300, 1e-10, np.inf]])
NEGATIVE = np.linspace(-9.95, -0.05, 100)


@pytest.mark.parametrize("name, x, tolerance", [
    ("erf", SPREAD, 1e-15),
    ("erfinv", INSIDE, 2e-14),
    ("gamma", POSITIVE, 5e-15), ("gamma", NEGATIVE, 5e-15),
    ("gammaln", POSITIVE[np.abs(POSITIVE - 1.5) > 0.7], 5e-15), ("gammaln", NEGATIVE, 1e-13),
    *[(name, np.outer([1, 7, 118], SPREAD[np.isfinite(SPREAD)]), 3e-15) for name in ("i0", "i1")],
])
def test_special_functions_agree_with_scipy(name, x, tolerance):
    bessel = name in ("i0", "i1")
    with np.errstate(all="ignore"):
        found = special.bessel_i(np, int(name[1]), x) if bessel else getattr(special, name)(np, x)
        expected = getattr(scipy_special, name)(x)
    assert relative(found, expected) < tolerance


def test_gammaln_is_exact_to_its_zeros():
    # From the series about one and two: -euler z + zeta(2) z^2 / 2 and (1 - euler) z.
    z = np.array([1e-6, -1e-8])
    z = (1 + z) - 1
    euler = 0.5772156649015329
    assert relative(special.gammaln(np, 1 + z), -euler * z + np.pi**2 / 12 * z**2) < 1e-12
    z = (2 + z) - 2
    assert relative(special.gammaln(np, 2 + z), (1 - euler) * z + (np.pi**2 / 12 - 0.5) * z**2) < 1e-12


@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_polygamma_agrees_with_scipy(order):
    x = np.linspace(0.02, 25, 1000)
    expected = scipy_special.polygamma(order, x)
    assert np.allclose(special.polygamma(np, order, x), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_polygamma_below_zero_is_the_slope_of_the_order_before(order):
    x, step = np.array([-0.3, -1.6, -4.45]), 1e-5

    def before(x):
        return special.polygamma(np, order - 1, x) if order else special.gammaln(np, x)

    expected = (before(x + step) - before(x - step)) / (2 * step)
    assert np.allclose(special.polygamma(np, order, x), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype, tolerance", [("float16", 1e-3), ("float32", 5e-7)])
@pytest.mark.parametrize("name", ["erf", "erfinv", "gamma", "gammaln"])
def test_special_functions_keep_smaller_dtypes(name, dtype, tolerance):
    x = np.linspace(0.05, 0.95, 50).astype(dtype)
    found = getattr(special, name)(np, x)
    assert found.dtype == dtype
    assert relative(found.astype("float64"), getattr(scipy_special, name)(x.astype("float64"))) < tolerance


def test_special_functions_have_their_values_at_poles_and_ends():
    with np.errstate(all="ignore"):
        edge = np.array([0.0, -0.0, -1.0, -2.0, -np.inf])
        np.testing.assert_array_equal(special.gamma(np, edge), [np.inf, -np.inf, np.nan, np.nan, np.nan])
        np.testing.assert_array_equal(special.gammaln(np, edge), [np.inf] * 5)
        edge = np.array([1.0, -1.0, 2.0])
        np.testing.assert_array_equal(special.erfinv(np, edge), [np.inf, -np.inf, np.nan])


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
