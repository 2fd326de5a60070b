"""Primitives: each has its derivative and computes arrays of any strides; programs may add one."""

from __future__ import annotations

import itertools

import numpy as np

import opreg.ndarray as nd
from opreg.elementwise import special_functions as special
from opreg.elementwise.expression import derive, trace
from opreg.elementwise.primitives import PRIMITIVES, Term, floor, greater, polygamma, primitive
from tests.elementwise.test_expression import run
from tests.questions import of_each

OF_TWO = ("add", "subtract", "multiply", "divide", "mod", "power", "hypot", "maximum", "minimum")
SMOOTH_PRIMITIVES = {name: each for name, each in PRIMITIVES.items() if each.derivative and name != "where"}
COMPARISONS = ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "logical_and", "logical_or",
               "logical_xor")
DOMAINS = {"arccosh": (1.1, 3), "arcsin": (-0.9, 0.9), "arccos": (-0.9, 0.9), "arctanh": (-0.9, 0.9),
           "erfinv": (-0.9, 0.9)}


@of_each(sorted(SMOOTH_PRIMITIVES))
def test_every_instruction_has_its_derivative(name):
    arity = 2 if name in OF_TWO else 1
    expression = trace(lambda *terms: Term(PRIMITIVES[name], terms), arity)
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
    expression = trace(lambda *terms: Term(PRIMITIVES[name], terms), arity)
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
    assert derive(trace(lambda x: floor(x) + greater(x, 0.0), 1), 0).result == 0.0


def test_a_new_instruction_is_traced_run_and_differentiated():
    double = primitive("test_double", lambda xp, x, out=None: xp.multiply(x, 2.0, out),
                       lambda g, y, a: (g * 2.0,))
    try:
        expression = trace(lambda x: double(x) + 1.0, 1)
        assert run(expression, [np.ones(2)], np.empty(2)).tolist() == [3.0, 3.0]
        assert derive(expression, 0)(np, np.ones(2), np.ones(2)).tolist() == [2.0, 2.0]
    finally:
        del PRIMITIVES["test_double"]


def test_polygamma_is_lowered_to_an_operator():
    x = np.array([0.5, 3.0])
    found = trace(polygamma(2), 1).lower(nd.array(x, dtype="float64"))
    assert np.allclose(found.asnumpy(), special.polygamma(np, 2, x))
