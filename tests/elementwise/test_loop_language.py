"""Loops over sets of numbers: each printer gives the same results for one description; its texts, and derivatives."""

import functools
import importlib.util
import itertools
import math
import random

import numpy as np
import pytest

import opreg as mx
from opreg import sym
from opreg.backends.numba import compiler
from opreg.backends.numba.loops import program
from opreg.builtin.reductions.reduce import reduction
from opreg.core.registry import get
from opreg.core.spec import Spec
from opreg.core.subgraph import subgraph
from opreg.elementwise.expression import (
    absolute,
    exp,
    greater,
    log,
    maximum,
    negative,
    reciprocal,
    sign,
    sqrt,
    square,
    tanh,
    where,
)
from opreg.elementwise.loop_runs import bound_loop, prepared_loop, run_loop
from opreg.elementwise.loop_text import Layout, loop_text
from opreg.elementwise.loops import Loop, fold_axes, gradient_of, gradients, lower, sets
from opreg.elementwise.rows import (
    REDUCTIONS,
    RowLayout,
    column,
    column_sum,
    of_results,
    row_max,
    row_min,
    row_product,
    row_size,
    row_sum,
    trace_rows,
)
from opreg.errors import AttrError, ShapeError
from opreg.ndarray import array
from tests.cuda import host
from tests.cuda.host import array as cuda_array
from tests.questions import of_each

ELEMENT, ROW, COLUMN = RowLayout.ELEMENT, RowLayout.ROW, RowLayout.COLUMN
needs_numba = pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="numba is not installed")


# ------------------------------------------------------------------------------------- programs at random


def _written(seed, reductions=(row_sum, row_max, row_min, row_product)):
    """A random function of terms, and the axes along which its inputs have a number."""
    inputs = (ELEMENT, *random.Random(seed).choices([ELEMENT, ROW, COLUMN], k=seed % 3))

    def function(*terms):
        dice = random.Random(seed)
        known, elements = list(terms), [terms[0]]
        for _ in range(dice.randrange(3, 10)):
            a, b = dice.choice(known), dice.choice(known)
            kind = dice.randrange(9)
            if kind < 3:
                new = (a + b, a - b, a * b)[kind]
            elif kind < 6:
                new = dice.choice([square, absolute, negative, tanh, lambda x: sqrt(absolute(x) + 0.5),
                                   lambda x: exp(tanh(x)), lambda x: reciprocal(square(x) + 1.0)])(a)
            elif kind == 6:
                new = dice.choice([lambda: maximum(a, b), lambda: where(greater(a, 0.25), a, b * 0.5),
                                   lambda: column() * 0.125 + a, lambda: a / row_size(), lambda: greater(a, b)])()
            else:
                source, reduce = dice.choice(elements), dice.choice(reductions)
                new = reduce(tanh(source) if reduce is row_product else source) * 0.25
            known.append(new)
            if kind < 7:
                elements.append(new)
        return tuple(dice.sample(known[1:], k=min(dice.randrange(1, 4), len(known) - 1)))

    return function, inputs


def _plainly(rows, ins, axes, size, dtype):
    """Results of one instruction after another, by NumPy."""
    registers = list(ins)
    for prim, args in rows.expression.code:
        values = [registers[a] if isinstance(a, int) else dtype.type(a) for a in args]
        if prim.name == "row_size":
            registers.append(dtype.type(size))
        elif prim.name == "column":
            shape = [1] * ins[0].ndim
            shape[axes[0]] = size
            registers.append(np.arange(size, dtype=dtype).reshape(shape))
        elif prim.name in REDUCTIONS:
            ufunc = {"row_sum": np.add, "row_max": np.maximum, "row_min": np.minimum, "row_product": np.multiply}
            full = np.broadcast_to(values[0], np.broadcast_shapes(np.shape(values[0]), ins[0].shape))
            registers.append(ufunc[prim.name].reduce(full, axis=axes, keepdims=True))
        else:
            registers.append(np.asarray(prim.resolve(np)(*values)).astype(dtype))
    return [registers[r] if isinstance(r, int) else dtype.type(r) for r in rows.expression.results]


def _arrays(loop: Loop, seed, dtype):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(loop.place(along)).astype(dtype) for along in loop.rows.inputs]


SHAPES = [((4, 3), 1), ((3, 40), -1), ((2, 5, 3), 1), ((6,), 0), ((2, 3, 4, 2), (1, 2)), ((70, 9), 1)]


@of_each(range(60))
def test_calls_of_ufuncs_equal_the_instructions(seed: int) -> None:
    function, inputs = _written(seed)
    for (shape, axis), dtype in itertools.product(SHAPES, (np.float32, np.float64)):
        if isinstance(axis, tuple) and seed % 3:
            continue
        described = sets(function, axis, inputs)
        loop = described.on([shape] * len(inputs))
        ins = _arrays(loop, seed, dtype)
        if any(prim.name == "column" for prim, _ in loop.rows.expression.code) and len(loop.axes) > 1:
            continue
        wide = [each.astype(float) for each in ins]
        with np.errstate(all="ignore"):
            expected = _plainly(loop.rows, wide, loop.axes, loop.size, np.dtype(float))
            own = [each.copy() for each in ins]
            found = run_loop(loop, np, own, None, np.dtype(dtype))
            bound = [np.full(each.shape, 7, dtype) for each in found]
            for step in bound_loop(loop, np, own, bound):
                step()
            special = prepared_loop(loop, np, own)
            again = special(*own) if special is not None else found
        for before, after in zip(ins, own):
            np.testing.assert_array_equal(before, after, err_msg="an input was written")
        again = list(again) if isinstance(again, tuple) else [again]
        for want, result, along, one, two in zip(expected, found, loop.rows.results, bound, again):
            want = np.broadcast_to(want, loop.place(along)).reshape(result.shape)
            tolerance = 2e-4 if dtype is np.float32 else 1e-10
            np.testing.assert_allclose(result, want, tolerance, tolerance * max(1.0, np.abs(want).max(initial=0)))
            np.testing.assert_array_equal(result, one)
            np.testing.assert_array_equal(result, two)


@of_each(range(40))
def test_an_output_may_lie_over_an_input(seed: int) -> None:
    function, inputs = _written(seed + 1000)
    loop = sets(function, 1, inputs).on([(5, 40)] * len(inputs))
    ins = _arrays(loop, seed, np.float64)
    expected = run_loop(loop, np, [each.copy() for each in ins], None, np.dtype(float))
    for (i, source), (j, target) in itertools.product(enumerate(loop.rows.inputs), enumerate(loop.rows.results)):
        if source is not ELEMENT or target is not ELEMENT:
            continue
        own = [each.copy() for each in ins]
        outs = [np.empty(each.shape) for each in expected]
        outs[j] = own[i]
        for step in bound_loop(loop, np, own, outs):
            step()
        for found, want in zip(outs, expected):
            np.testing.assert_allclose(found, want, 1e-12, 1e-12)


@of_each(range(40))
def test_unread_results_are_not_computed(seed: int) -> None:
    function, inputs = _written(seed + 2000)
    loop = sets(function, 1, inputs).on([(5, 40)] * len(inputs))
    ins = _arrays(loop, seed, np.float64)
    expected = run_loop(loop, np, ins, None, np.dtype(float))
    for wanted in itertools.product((True, False), repeat=len(expected)):
        if not any(wanted):
            continue
        outs = [np.empty(each.shape) if want else None for each, want in zip(expected, wanted)]
        for step in bound_loop(loop, np, ins, outs):
            step()
        for found, want in zip(outs, expected):
            if found is not None:
                np.testing.assert_allclose(found, want, 1e-12, 1e-12)
        assert len(of_results(loop.rows, wanted).results) == sum(wanted)


@pytest.mark.parametrize("axes", [(1, 3), (0, 2, 4), (1, 3, 5), (5,), (0, 1, 2, 3, 4, 5)])
def test_sets_lie_along_any_axes(axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 2, 2, 3, 2))
    loop = sets(lambda x: (x - row_max(x), row_sum(square(x))), axes).on([x.shape])
    moved, square_sum = run_loop(loop, np, [x], None, x.dtype)
    np.testing.assert_allclose(moved, x - x.max(axes, keepdims=True))
    np.testing.assert_allclose(square_sum, (x * x).sum(axes, keepdims=True))


def test_half_precision_is_rounded_once() -> None:
    loop = sets(lambda x: exp(x) / row_sum(exp(x)), 1).on([(3, 50)])
    x = np.random.default_rng(0).standard_normal((3, 50)).astype(np.float16)
    out = np.empty((3, 50), np.float16)
    for step in bound_loop(loop, np, [x], [out]):
        step()
    wide = np.exp(x.astype(np.float32))
    np.testing.assert_array_equal(out, (wide / wide.sum(1, keepdims=True)).astype(np.float16))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
def test_loops_over_empty_arrays_give_empty_arrays(shape: tuple[int, ...]) -> None:
    for described in (sets(lambda x: x - row_max(x), -1), sets(lambda x: x - row_sum(x), -1)):
        loop = described.on([shape])
        x = np.zeros(shape, np.float32)
        (found,) = run_loop(loop, np, [x], None, x.dtype)
        special = prepared_loop(loop, np, [x])
        assert found.shape == shape and special is not None and special(x).shape == shape


def test_threads_share_many_sets() -> None:
    loop = sets(lambda x: (x - row_sum(x) / row_size(), row_max(x)), 1).on([(4096, 300)])
    x = np.random.default_rng(0).standard_normal((4096, 300)).astype(np.float32)
    moved, top = run_loop(loop, np, [x], None, x.dtype)
    np.testing.assert_allclose(moved, x - x.mean(1, keepdims=True), 0, 1e-5)
    np.testing.assert_array_equal(top, x.max(1, keepdims=True))
    special = prepared_loop(loop, np, [x])
    assert special is not None
    for one, other in zip((moved, top), special(x)):
        np.testing.assert_array_equal(one, other)


# ------------------------------------------------------------------------------------------------ the texts


def _softmax(x):
    grown = exp(x - row_max(x))
    return grown * (1.0 / row_sum(grown))


def _norm(x, gamma, beta):
    moved = x - row_sum(x) / row_size()
    deviation = sqrt(row_sum(square(moved)) / row_size() + 1e-5)
    return moved * (1.0 / deviation) * gamma + beta, deviation


SOFTMAX = """\
def tile(x0, y0):
    r0 = row_max(x0, 1, None, None, True)
    subtract(x0, r0, y0)
    exp(y0, y0)
    r3 = einsum('ij->i', y0)[:, None]
    r4 = divide(c0, r3)
    multiply(y0, r4, y0)
"""
TURNED = """\
def tile(x0, y0):
    x0 = array(x0.T, dtype, order='C')
    r0 = row_max(x0, 0, None, None, True)
    subtract(x0, r0, x0)
    exp(x0, x0)
    r3 = ones.dot(x0)[None]
    r4 = divide(c0, r3)
    multiply(x0, r4, x0)
    y0[...] = x0.T
"""
NORM = """\
def tile(x0, x1, x2, y0, y1):
    r0 = einsum('ijk->ik', x0)[:, None, :]
    r1 = size
    r2 = divide(r0, r1)
    subtract(x0, r2, y0)
    r5 = einsum('ijk,ijk->ik', y0, y0)[:, None, :]
    r6 = divide(r5, r1)
    r7 = add(r6, c0)
    r8 = sqrt(r7)
    r9 = divide(c1, r8)
    multiply(y0, r9, y0)
    multiply(y0, x1, y0)
    add(y0, x2, y0)
    y1[...] = r8
"""
SIGN = """\
def tile(x0, y0):
    r0 = sign(x0)
    square(r0, y0)
"""
SIZED = """\
def tile(x0, y0):
    r0 = size
    r1 = float(host_divide(c0, r0))
    multiply(x0, r1, y0)
"""
NUMBA = """\
for row in range(first, last):
    o = row * n
    t0 = least
    for i in range(n):
        x0 = in0[o + i]
        t0 = largest(t0, x0)
    r0 = t0
    t3 = zero
    for i in range(n):
        x0 = in0[o + i]
        r1 = subtract(x0, r0)
        r2 = exp(r1)
        out0[o + i] = r2
        t3 = plus(t3, r2)
    r3 = t3
    r4 = reciprocal(r3)
    for i in range(n):
        r2 = out0[o + i]
        r5 = multiply(r2, r4)
        out0[o + i] = r5"""


@pytest.mark.parametrize("function, inputs, layout, text", [
    (_softmax, (ELEMENT,), Layout(2, (1,), (False,), (True,), ((),), False, False), SOFTMAX),
    (_softmax, (ELEMENT,), Layout(2, (1,), (False,), (False,), ((),), True, False), TURNED),
    (_norm, (ELEMENT, COLUMN, COLUMN), Layout(3, (1,), (False,) * 3, (True, True), ((), ()), False, False), NORM),
    (lambda x: square(sign(x)), (ELEMENT,), Layout(2, (1,), (False,), (True,), ((),), False, False), SIGN),
    (lambda x: x * (2.0 / row_size()), (ELEMENT,), Layout(2, (1,), (False,), (True,), ((),), False, False), SIZED),
], ids=["softmax", "turned", "norm", "sign", "sized"])
def test_text_of_calls(function, inputs, layout, text) -> None:
    assert loop_text(trace_rows(function, inputs), layout) == text


def test_the_text_for_numba_is_the_stored_one() -> None:
    assert program(trace_rows(_softmax, (ELEMENT,))) == (NUMBA, [])


def test_sums_over_sets_are_results_of_loops() -> None:
    """Loops of one part and of several, with sets along any axis; sums for places, and for all."""
    def function(x, y):
        slope = exp(x * 0.1) * row_sum(x) - x * y + tanh(x)
        return slope, column_sum(slope * x), column_sum(x), column_sum(row_sum(x) * 2.0)

    rng = np.random.default_rng(0)
    for shape, axis in (((3, 4), 1), ((2, 3, 4), 1), ((5, 3), 0), ((3000, 90), -1), ((300, 9, 90), 1)):
        x, y = rng.standard_normal(shape), rng.standard_normal(shape[axis])
        others = tuple(i for i in range(len(shape)) if i != axis % len(shape))
        total = x.sum(axis, keepdims=True)
        slope = np.exp(x * 0.1) * total - x * np.expand_dims(y, others) + np.tanh(x)
        expected = [slope, (slope * x).sum(others), x.sum(others), np.array([total.sum() * 2])]
        loop = sets(function, axis, (ELEMENT, COLUMN)).on([shape, y.shape])
        outs = [np.full(each.shape, np.nan) for each in expected]
        for step in bound_loop(loop, np, [x, y], outs, lambda number, shape, dtype: np.full(shape, np.nan, dtype)):
            step()
        for found in (run_loop(loop, np, [x, y], None, x.dtype), prepared_loop(loop, np, [x, y])(x, y), outs):
            for one, other in zip(found, expected):
                np.testing.assert_allclose(one, other, 1e-9, 1e-9)


# ------------------------------------------------------------------------------------------- other printers


@needs_numba
@of_each(range(12))
def test_numba_equals_the_calls(seed: int) -> None:
    from opreg.backends.numba import loops

    function, inputs = _written(seed + 3000)
    loop = sets(function, 1, inputs).on([(6, 50)] * len(inputs))
    ins = _arrays(loop, seed, np.float64)
    expected = run_loop(loop, np, [each.copy() for each in ins], None, np.dtype(float))
    outs = [np.full(each.shape, 7.0) for each in expected]

    class Called:
        pass

    call = Called()
    call.ins, call.outs = ins, outs
    task = loops._task(loop, call)
    if isinstance(task, str):
        assert task == "a call of NumPy reduces as fast"
        return
    function, run = loops._plan(task)
    with compiler.use("numba"):
        function.compile()
        run()()
    for found, want in zip(outs, expected):
        np.testing.assert_allclose(found.reshape(want.shape), want, 1e-9, 1e-9)


# ---------------------------------------------------------------------------------------------- derivatives


def _smooth(seed):
    """A random smooth function of terms with one result, and the axes along which its inputs have a number."""
    dice = random.Random(seed)
    inputs = (ELEMENT, *dice.choices([ELEMENT, ROW], k=dice.randrange(2)))
    picks = [dice.random() for _ in range(64)]

    def function(*terms):
        draws = iter(picks)

        def choose(options):
            return options[int(next(draws) * len(options))]

        known = list(terms)
        for _ in range(6):
            a, b = choose(known), choose(known)
            known.append(choose([
                lambda: a + b, lambda: a * b, lambda: tanh(a), lambda: square(a), lambda: exp(tanh(a)),
                lambda: row_sum(a * terms[0]), lambda: row_product(square(terms[0] + a) * 0.1 + 1.0),
                lambda: sqrt(square(a) + 1.0), lambda: log(square(b) + 1.0), lambda: a / (square(b) + 1.0)])())
        return known[-1] * terms[0]

    return function, inputs


@of_each(range(40))
def test_gradients_are_central_differences(seed: int) -> None:
    function, inputs = _smooth(seed)
    loop = sets(function, 1, inputs).on([(3, 4)] * len(inputs))
    ins = _arrays(loop, seed, np.float64)
    g = np.random.default_rng(seed + 1).standard_normal(loop.results[0])
    dtype = np.dtype(float)
    for wrt, x in enumerate(ins):
        derived = gradient_of(loop.rows, (wrt,))
        if isinstance(derived.result, float):
            assert derived.result == 0
            continue
        slopes = sets(lambda *terms: _rerun(derived, terms), 1, (ELEMENT, *inputs)).on([(3, 4)])
        (found,) = _plainly(slopes.rows, [g, *ins], (1,), 4, dtype)
        found = np.broadcast_to(found, x.shape)
        for at in np.ndindex(x.shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = [each.copy() for each in ins]
                moved[wrt][at] += step
                sides.append((run_loop(loop, np, moved, None, dtype)[0] * g).sum())
            assert found[at] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-4, abs=1e-5)


def _rerun(expression, terms):
    """A function of terms that applies the instructions again."""
    from opreg.elementwise.expression import Term

    registers = list(terms)
    for prim, args in expression.code:
        registers.append(Term(prim, tuple([registers[a] if isinstance(a, int) else a for a in args])))
    result = expression.result
    return registers[result]


@pytest.mark.parametrize("axis, exclude", [(1, False), (0, True), ((0, 2), False)])
def test_loops_become_operators(axis, exclude) -> None:
    described = sets(lambda x: x - row_max(x) + row_sum(square(x)) * row_min(x), axis, exclude=exclude)
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    (expected,) = run_loop(described.on([x.shape]), np, [x], None, x.dtype)
    ((found, varies),) = lower(described, described.rows.expression, (array(x, dtype="float64"), ELEMENT))
    assert varies == (True, True)
    np.testing.assert_allclose(found.asnumpy(), expected, 1e-12)


def _several(x, r, c, a):
    return x * r * c + row_sum(x * c) * a, row_sum(square(x) + r) * r, column_sum(x * r * a), row_sum(c) * r + a


def _alike(x, r, c, a):
    """Results whose elements are equal within a set or among sets."""
    return row_sum(r * a) + x * 0.0, column_sum(c * c), column_sum(r * a)


def _of_sets(x, r):
    return row_sum(x * x) * r, row_product(r) + row_sum(x)


@of_each([
    *[(_several, (ELEMENT, ROW, COLUMN, RowLayout.ALL), (2, 3, 4), {"axis": axis}) for axis in (-1, 1, 0, -2)],
    *[(_alike, (ELEMENT, ROW, COLUMN, RowLayout.ALL), (2, 3, 4), {"axis": axis}) for axis in (-1, 0)],
    (_of_sets, (ELEMENT, ROW), (2, 3, 4), {"axis": (0, 2)}),
    (lambda x: (row_sum(x * x), row_sum(x)), (ELEMENT,), (2, 3, 4), {"axis": 1, "keepdims": False}),
    *[(lambda x, r, k: (x * k + row_sum(x * r), row_sum(x) * k * r), (ELEMENT, ROW, RowLayout.CYCLE), (2, 6, 2),
       {"axis": 2, "keepdims": False, "groups": groups}) for groups in (3, 0)]])
def test_gradients_of_several_results_are_central_differences(function, inputs, shape, attrs) -> None:
    described = sets(function, attrs["axis"], inputs, **{k: v for k, v in attrs.items() if k != "axis"})
    loop, rng = described.on([shape] * len(inputs)), np.random.default_rng(0)
    groups = (loop.view[1],) if described.groups is not None else None
    of_sets = next((result for result, along in zip(loop.results, described.rows.results) if along is ROW), ())
    sizes = {ELEMENT: shape, ROW: of_sets, COLUMN: shape[attrs["axis"]:][:1] if isinstance(attrs["axis"], int) else (),
             RowLayout.ALL: (1,), RowLayout.CYCLE: groups}
    if not of_sets:
        sizes[ROW] = tuple(1 if i == attrs["axis"] % len(shape) else n for i, n in enumerate(shape))
    ins = [rng.uniform(0.5, 1.5, sizes[along]) for along in inputs]
    weights = [rng.standard_normal(result) for result in loop.results]
    outs = run_loop(loop, np, ins, None, np.dtype(float))

    def value(arrays, given):
        return sum((out * w).sum() for out, w, use in zip(run_loop(loop, np, arrays, None, np.dtype(float)), weights,
                                                          given) if use)

    for given in itertools.product([True, False], repeat=len(weights)):
        if not any(given):
            continue
        found = gradients(described, [array(w, dtype="float64") if use else None for w, use in zip(weights, given)],
                          [array(x, dtype="float64") for x in ins], [array(y, dtype="float64") for y in outs],
                          [True] * len(ins))
        for i, (x, g) in enumerate(zip(ins, found)):
            assert g is None or g.shape == x.shape
            for at in np.ndindex(x.shape):
                sides = []
                for step in (1e-6, -1e-6):
                    moved = [each.copy() for each in ins]
                    moved[i][at] += step
                    sides.append(value(moved, given))
                slope = 0.0 if g is None else g.asnumpy()[at]
                assert slope == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5, abs=1e-6), (given, i, at)


@pytest.mark.parametrize("name, attrs, count", [
    ("_backward_softmax", {"axis": 1, "temperature": 2.0}, 2), ("_backward_log_softmax", {"axis": -1}, 2),
    ("_backward_L2Normalization", {"mode": "channel"}, 3)])
def test_derived_gradients_of_loops_agree_with_differences(name, attrs, count) -> None:
    """Gradients of operators that are loops agree with differences of their results."""
    op, rng = get(name), np.random.default_rng(0)
    shapes = [(2, 3, 2)] * 2 + [(2, 1, 2)] * (count - 2)
    values = [rng.uniform(0.5, 1.5, shape) for shape in shapes]
    from opreg import autograd

    ins = [array(value, dtype="float64") for value in values]
    for each in ins:
        each.attach_grad()
    weights = array(rng.standard_normal((2, 3, 2)), dtype="float64")
    with autograd.record():
        total = (op(*ins, **attrs) * weights).sum()
    total.backward()
    for i, value in enumerate(values):
        for at in np.ndindex(value.shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = [each.copy() for each in values]
                moved[i][at] += step
                made = op(*[array(each, dtype="float64") for each in moved], **attrs)
                sides.append(float((made * weights).sum().asscalar()))
            assert ins[i].grad.asnumpy()[at] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5, abs=1e-6)


def test_shapes_are_folded() -> None:
    assert fold_axes((2, 1, 3), (1,)) == ((6, 1), (1,))
    assert fold_axes((1, 1), (0, 1)) == ((1, 1), (1,))
    assert fold_axes((2, 3, 4), (0, 1, 2)) == ((1, 24), (1,))
    for shape in itertools.product((1, 2, 3), repeat=3):
        for axes in itertools.chain(*[itertools.combinations(range(3), k) for k in (1, 2, 3)]):
            view, reduced = fold_axes(shape, axes)
            assert math.prod(view) == math.prod(shape)
            assert math.prod(view[i] for i in reduced) == math.prod(shape[i] for i in axes)
            assert 0 not in reduced and functools.reduce(lambda a, b: a and b, [i < len(view) for i in reduced])


# --------------------------------------------------------------------------------------------- a new reduction


rms = reduction("_example_rms", lambda x: sqrt(row_sum(square(x)) / row_size()), "The root mean square.")


def _logsumexp(x):
    top = row_max(x)
    return log(row_sum(exp(x - top))) + top


logsumexp = reduction("_example_logsumexp", _logsumexp, "The logarithm of the sum of exponentials.")
for _op in (rms, logsumexp):
    _op.where = None  # as for a built-in operator
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min"])
def test_a_reduction_of_a_transposed_array_is_contiguous(name):
    """The result is contiguous, also if the call was prepared for contiguous arrays."""
    op, data = get(name), np.arange(24.0, dtype=np.float32).reshape(2, 3, 4).transpose(2, 1, 0)
    prepared = op.kernels[0].parts(op.complete({"axis": 0}), np, data.copy())
    for given in (data, data.copy()):
        found = prepared(given)
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, getattr(data, name)(0))


@of_each([((1 << 16, 3), 0), ((2, 1 << 15, 3), 1), ((300, 200, 3), (0, 1)), ((40001, 7), 0)])
def test_sums_of_many_rows_are_as_exact_as_those_of_many_columns(shape, axis) -> None:
    """One by one, a sum of 65,536 rows loses three digits. MXNet's sums keep them."""
    x = np.random.default_rng(0).random(shape, dtype=np.float32)
    exact = x.astype(np.float64)
    data, at = mx.nd.array(x), mx.nd.zeros([1 if n in np.atleast_1d(axis) else size for n, size in enumerate(shape)])
    at.attach_grad()
    with mx.autograd.record():
        y = mx.nd.broadcast_add(data, at)
    y.backward(data)
    bound = sym.mean(sym.square(sym.var("data")), axis=axis, keepdims=True).bind(mx.cpu(), {"data": data})
    for found, expected in ((mx.nd.sum(data, axis=axis), exact.sum(axis)),
                            (mx.nd.mean(data, axis=axis, keepdims=True), exact.mean(axis, keepdims=True)),
                            (mx.nd.moments(data, axes=np.atleast_1d(axis).tolist())[1], exact.var(axis)),
                            (bound.forward()[0], np.square(exact).mean(axis, keepdims=True)),
                            (at.grad, exact.sum(axis, keepdims=True))):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.asnumpy(), expected, 1e-6)


REDUCED = {rms: lambda x, axis, keepdims: np.sqrt(np.square(x).mean(axis, keepdims=keepdims)),
           logsumexp: lambda x, axis, keepdims: np.log(np.exp(x).sum(axis, keepdims=keepdims))}
both = pytest.mark.parametrize("op", REDUCED, ids=lambda op: op.name)


@both
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdims, exclude", [*itertools.product((False, True), repeat=2)])
def test_a_function_of_a_set_is_an_operator(op, axis, keepdims, exclude) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    axes = tuple(range(3)) if axis in (None, ()) else tuple(np.atleast_1d(axis) % 3)
    if exclude and axis not in (None, ()):
        axes = tuple(set(range(3)) - set(axes))
    expected = np.atleast_1d(REDUCED[op](x, axes, keepdims))
    words = {"axis": axis, "keepdims": keepdims, "exclude": exclude}
    for data, dtype, tolerance in ((x, "float64", 1e-12), (x, "float32", 1e-5), (x, "float16", 1e-2),
                                   (x.transpose(2, 1, 0), "float64", 1e-12)):
        given = array(data, dtype=dtype)
        given = given if data is x else given.transpose((2, 1, 0))  # as it lies
        found = op(given, **words)
        np.testing.assert_allclose(found.asnumpy(), expected, tolerance, tolerance)
        assert np.dtype(found.dtype) == dtype
    entry = op.current(sym.Variable("x"), **words)
    assert entry.infer_shape(x=x.shape)[1] == [expected.shape]
    mx.operator.check(op, array(x, dtype="float64"), **words).raise_if_failed()


@both
def test_a_loop_operator_infers_partly_known_shapes_and_names_mistakes(op) -> None:
    assert op.current(sym.Variable("x"), axis=1).infer_shape_partial(x=(3, 4, 0))[1] == [(3, 0)]
    with pytest.raises(ValueError, match="axis"):
        op(array([[1.0]]), axis=2)
    with pytest.raises(AttrError, match="Did you mean 'keepdims'"):
        op(array([[1.0]]), keepdim=True)


def test_the_maximum_of_an_empty_set_is_an_error() -> None:
    for op in (get("max"), get("min"), logsumexp):
        with pytest.raises(ShapeError, match=r"axis 1 of .* has length zero: there is no element to choose"):
            op(array(np.zeros((2, 0))), axis=1)
    assert get("sum")(array(np.zeros((2, 0))), axis=1).asnumpy().tolist() == [0, 0]


class _Called:
    """A call of a loop with the interface that kernels see."""

    def __init__(self, loop, ins, xp=np):
        self.details, self.ins, self.xp = loop, ins, xp
        self.outs = [cuda_array(np.full(shape, 7), ins[0].dtype) for shape in loop.results]

    def scratch(self, number, shape, dtype):
        return cuda_array(np.full(shape, np.nan), dtype)


@needs_numba
@both
def test_numba_reduces_rows(op) -> None:
    from opreg.backends.numba import loops

    x = np.random.default_rng(0).standard_normal((6, 50))
    call = _Called(op.rules.sets({"axis": 1, "keepdims": False, "exclude": False}).on([x.shape]), [x])
    task = loops._task(call.details, call)
    assert not isinstance(task, str), task
    function, run = loops._plan(task)
    with compiler.use("numba"):
        function.compile()
        run()()
    np.testing.assert_allclose(call.outs[0], REDUCED[op](x, 1, False), 1e-12)


def test_numba_leaves_to_numpy_the_operators_that_it_does_not_speed_up() -> None:
    from opreg.backends.numba import loops

    for name, n, reason in (("sum", 50, "a call of NumPy reduces as fast"), ("mean", 50, "a call of NumPy"),
                            ("_example_rms", 1 << 15, "32768 elements are summed pairwise")):
        loop = get(name).rules.sets({"axis": 1, "keepdims": False, "exclude": False}).on([(2, n)])
        with compiler.use("auto"):
            assert loops._task(loop, _Called(loop, [np.ones((2, n))])).startswith(reason)


@pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
@both
def test_a_gpu_reduces_any_axes(op) -> None:
    from opreg.backends.cuda import loops

    device, rng, cases = host.Host(), np.random.default_rng(0), []
    for shape, axes in (((5, 40), (1,)), ((40, 5), (0,)), ((3, 4, 5), (0, 2)), ((2, 3), (0, 1)), ((2, 9001), (1,))):
        x = cuda_array(rng.standard_normal(shape))
        loop = op.rules.sets({"axis": axes, "keepdims": False, "exclude": False}).on([shape])
        call = _Called(loop, [x], device)
        for step in loops._steps(call):
            step()
        cases.append((call.outs[0], REDUCED[op](np.asarray(x), axes, False)))
    device.run()
    for out, expected in cases:
        np.testing.assert_allclose(out, np.atleast_1d(expected), 1e-12)


@pytest.mark.parametrize("dtypes, casts", [(("float32", "float32"), False), (("float16", "float32"), True)])
def test_gradients_of_loops_cast_where_dtypes_differ(dtypes, casts) -> None:
    op = get("_normalize_scale")
    specs = [Spec(shape, np.dtype(dtype)) for shape, dtype in (
        ((2, 3, 4), dtypes[0]), ((2, 3, 4), dtypes[0]), ((3,), dtypes[1]), ((2, 3, 4), dtypes[0]))]
    rule = subgraph(op, op.complete({}), (True,), (True, True), False, lambda: specs)
    names = {step[0].name for step in rule.steps}
    assert names.issuperset({"amp_multicast", "_backward_cast"}) is casts
    assert names.isdisjoint({"amp_multicast", "_backward_cast"}) is not casts
