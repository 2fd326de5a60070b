"""Fusion: values equal those of separate operators, and the expected operators are fused."""

from __future__ import annotations

import functools
import os
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.backends.numba import compiler as machine_code
from opreg.core import threads
from opreg.elementwise import expression
from opreg.elementwise import tiling as schedule
from opreg.elementwise.composition import Composition
from opreg.elementwise.expression import astype, trace
from opreg.symbol import compile as compiler
from opreg.symbol.passes import fuse as fusion

sym, nd = mx.sym, mx.nd


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    """Verifies the graph after each pass, and runs instructions as ufuncs, which give the same bits alone and in
    groups."""
    monkeypatch.setattr(compiler, "CHECK", True)
    with machine_code.use("numpy"):
        yield


def bound(net, shapes, dtype="float32", *, fused=True, grad_req="write", seed=0, special=False, **more):
    """An executor over random numbers, whose plans are made with or without the pass."""
    with pytest.MonkeyPatch.context() as patch:
        if not fused:
            patch.setattr(compiler, "PASSES", tuple(each for each in compiler.PASSES if each is not fusion.fuse))
        executor = net.simple_bind(mx.cpu(), grad_req, type_dict=dict.fromkeys(shapes, dtype), **shapes, **more)
        rng = np.random.default_rng(seed)
        for name in sorted(shapes):
            value = rng.uniform(-2, 2, shapes[name])
            if special and value.size > 2:
                value.flat[rng.integers(value.size, size=3)] = [np.nan, np.inf, -0.0]
            executor.arg_dict[name][:] = nd.array(value, dtype=dtype, ctx=executor.arg_dict[name].context)
        for grad in executor.grad_arrays:
            if grad is not None:
                grad[:] = 0.5  # initial gradient for the request "add"
        for is_train in (False, True):
            executor.plan(is_train)
    return executor


def results(executor, seed=1):
    """Outputs of inference and of training, and gradients after two rounds."""
    rng = np.random.default_rng(seed)
    found = [out.asnumpy() for out in executor.forward(is_train=False)]
    head_grads = [nd.array(rng.uniform(-1, 1, out.shape), dtype=out.dtype) for out in executor.outputs]
    for _ in range(2):
        found += [out.asnumpy() for out in executor.forward(is_train=True)]
        executor.backward(head_grads)
    return found + [grad.asnumpy() for grad in executor.grad_arrays if grad is not None]


def assert_same(net, shapes, dtype="float32", **more):
    """Asserts that fused and unfused graphs give the same outputs, to the bit, and equal gradients; returns the fused
    executor.

    If sums of gradients have not been reordered, they are equal to the bit as well.
    """
    fused = bound(net, shapes, dtype, **more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fusion, "factor_sums", lambda expression: expression)
        as_written = bound(net, shapes, dtype, **more)
    plain = results(bound(net, shapes, dtype, fused=False, **more))
    for number, (got, exact, want) in enumerate(zip(results(fused), results(as_written), plain, strict=True)):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(exact, want)
        if number < 3 * len(fused.outputs):
            np.testing.assert_array_equal(got, want)
        else:
            assert_near(got, want)
    return fused


def assert_near(got, want):
    """Asserts that values agree up to rounding of the largest, and are finite in the same places."""
    finite = np.isfinite(want)
    np.testing.assert_array_equal(np.isfinite(got), finite)
    size = float(np.abs(want[finite]).max(initial=1.0))
    error = {"float16": 0.0, "float32": 1e-4, "float64": 1e-12}[want.dtype.name]
    np.testing.assert_allclose(got[finite], want[finite], rtol=error, atol=error * size)


def kernels(executor, is_train=True):
    plan = executor.plan(is_train)
    return [[step.node.op.name for step in segment.steps if step.node is not None and step.kernel != "view"]
            for segment in (plan.forward, plan.backward)]


def expressions(executor, is_train=True):
    plan = executor.plan(is_train)
    return [step.node.attrs["expression"] for step in (*plan.forward.steps, *plan.backward.steps)
            if step.node is not None and step.node.op.name == "_fused"]


def gelu(x):
    return x * 0.5 * (1 + sym.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


# --------------------------------------------------------------- groups compute what single operators compute

ONE = [sym.relu, sym.tanh, sym.sigmoid, sym.square, sym.abs, lambda a: a * 0.75, lambda a: 1.5 - a, lambda a: a + 0.0,
       lambda a: -a, lambda a: a > 0.25, lambda a: sym.clip(a, a_min=-0.5, a_max=0.5), sym.softsign, sym.zeros_like,
       lambda a: sym.ones_like(a) * 0.5, lambda a: sym.LeakyReLU(a, act_type="elu"), sym.exp, sym.BlockGrad,
       sym.gamma]
TWO = [sym.broadcast_add, sym.broadcast_mul, sym.broadcast_sub, sym.broadcast_maximum, sym.broadcast_div,
       sym.broadcast_lesser, lambda a, b: sym.where(sym.broadcast_greater(a, b), sym.broadcast_add(a, b * 0.0),
                                                    sym.broadcast_add(b, a * 0.0))]
# Operators that end a group: operators that are not element-wise, and views.
APART = [lambda a: sym.transpose(sym.transpose(a)), lambda a: sym.reshape(sym.reshape(a, shape=(-1,)), shape=(3, 4)),
         lambda a: sym.broadcast_mul(a, sym.sum(a, axis=1, keepdims=True)), sym.softmax,
         lambda a: sym.broadcast_add(a, sym.mean(a, axis=0, keepdims=True))]


SHAPES = {"x": (3, 4), "y": (3, 4), "row": (3, 1), "column": (4,), "one": (1, 1)}


@st.composite
def networks(draw):
    """A random symbol of variables of several shapes that broadcast, with one to three heads."""
    values = [sym.Variable(name) for name in SHAPES]
    full = [sym.broadcast_add(values[0], values[1])]
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(["one", "two", "two", "one", "small", "apart"]))
        pick = st.sampled_from(full[-5:])
        if kind == "one":
            full.append(draw(st.sampled_from(ONE))(draw(pick)))
        elif kind == "two":
            full.append(draw(st.sampled_from(TWO))(draw(pick), draw(st.sampled_from(values + full[-3:]))))
        elif kind == "small":
            values.append(draw(st.sampled_from(ONE[:8]))(draw(st.sampled_from(values[2:]))))
        else:
            full.append(draw(st.sampled_from(APART))(draw(pick)))
    heads = draw(st.lists(st.sampled_from(range(len(full))), min_size=1, max_size=3, unique=True))
    return sym.Group([full[i] * 1.25 for i in heads])


def given_shapes(net):
    return {name: SHAPES[name] for name in net.list_arguments()}


@settings(max_examples=80, deadline=None)
@given(networks(), st.sampled_from(["float16", "float32", "float64"]), st.integers(0, 2**16), st.booleans(),
       st.sampled_from(["write", "add"]))
def test_fused_graphs_give_the_same_numbers(net, dtype, seed, special, grad_req):
    assert_same(net, given_shapes(net), dtype, seed=seed, special=special, grad_req=grad_req)


@settings(max_examples=60, deadline=None)
@given(networks(), st.sampled_from(["float32", "float64"]), st.integers(0, 2**16), st.sampled_from([1, 3, 8]))
def test_threads_and_recomputation_give_the_same_values(net, dtype, seed, tile):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fusion, "_LARGE", 1)
        patch.setattr(schedule, "TILE", tile)
        patch.setattr(schedule, "_SHARED", 1)
        patch.setattr(threads, "count", lambda: 3)
        fused = results(bound(net, given_shapes(net), dtype, seed=seed))
    # A number at the end of a tile may be computed by another loop of NumPy's than one in its middle.
    rtol = 1e-3 if dtype == "float32" else 1e-11
    for got, want in zip(fused, results(bound(net, given_shapes(net), dtype, seed=seed, fused=False)), strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


def test_free_results_are_computed_again_too(monkeypatch):
    """A sum with 0.0 has no instruction, and must not count as a value that is available anyway."""
    monkeypatch.setattr(fusion, "_LARGE", 1)
    x = sym.Variable("x")
    same = x + 0.0
    assert_same(sym.sin(same) * same, {"x": (5,)}, "float64")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_casts_between_floating_dtypes_take_part(dtype):
    x, y = sym.Variable("x"), sym.Variable("y")
    wide = sym.Cast(sym.tanh(x * y), dtype="float64") * 3.0
    net = sym.Group([sym.Cast(wide, dtype="float16") + 0.5,
                     sym.Cast(sym.amp_cast(wide + 1.0, dtype="float32"), dtype=dtype) * 2.0])
    executor = assert_same(net, {"x": (5,), "y": (5,)}, dtype)
    assert kernels(executor) == [["_fused"], ["_fused"]]


def test_operators_of_different_contexts_are_not_fused():
    with mx.AttrScope(ctx_group="a"):
        a = sym.tanh(sym.Variable("x") * 2.0)
    with mx.AttrScope(ctx_group="b"):
        b = sym.relu(a + 1.0) * a
    with mx.AttrScope(ctx_group="c"):
        net = b * 0.5
    groups = {"a": mx.cpu(1), "b": mx.cpu(2), "c": mx.cpu(0)}
    executor = assert_same(net, {"x": (6,)}, group2ctx=groups)
    assert kernels(executor)[0] == ["_fused", "_CrossDeviceCopy", "_fused", "_CrossDeviceCopy", "_mul_scalar"]


# -------------------------------------------------------------------------------------------- fused operators


def test_a_chain_is_one_step():
    executor = assert_same(gelu(sym.Variable("x")), {"x": (7,)})
    assert kernels(executor, False) == [["_fused"], []]
    assert kernels(executor) == [["_fused"], ["_fused"]]
    assert executor.plan(False).nbytes <= 2 * 64  # no array between operators, but two temporaries


def test_explain_lists_the_operators():
    text = bound(gelu(sym.Variable("x")), {"x": (7,)}).explain(is_train=False)
    assert ("(_mul_scalar, _mul_scalar, elemwise_mul, elemwise_mul, elemwise_add, _mul_scalar, tanh, _plus_scalar, "
            "elemwise_mul): ufuncs") in text


def test_one_operator_alone_is_not_fused():
    executor = assert_same(sym.sum(sym.tanh(sym.Variable("x"))), {"x": (7,)})
    assert kernels(executor, False) == [["tanh", "sum"], []]


def test_values_read_elsewhere_are_outputs():
    x = sym.Variable("x")
    inner = sym.tanh(x * 2.0)
    net = sym.Group([sym.relu(inner) + 1.0, inner, sym.sum(inner)])
    executor = assert_same(net, {"x": (3, 4)})
    assert kernels(executor, False) == [["_fused", "sum"], []]
    assert len(expressions(executor, False)[0].results) == 2


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("kernels", ["numpy", "auto"])
def test_backward_may_take_a_value_without_reading_it(kernels, dtype):
    """The gradient of a reciprocal reads its result, and not its input."""
    with machine_code.use(kernels):
        net = 1.0 / (sym.abs(sym.Variable("x")) + 0.5)
        executor = assert_same(net, {"x": (30, 50)}, dtype=dtype)
    assert len(expressions(executor)[0].results) == 2


def test_a_group_ends_at_an_outside_reader():
    x = sym.Variable("x")
    inner = sym.tanh(x * 2.0)
    total = sym.sum(inner, axis=1, keepdims=True)
    net = sym.relu(sym.broadcast_mul(inner + 1.0, total))  # cannot run before the sum, nor the sum after it
    assert kernels(assert_same(net, {"x": (3, 4)}), False) == [["_fused", "sum", "_fused"], []]


def test_branches_that_meet_are_one_group():
    a, b = sym.Variable("a"), sym.Variable("b")
    net = sym.tanh(a * 2.0) * sym.sigmoid(b + 1.0) + sym.relu(a)
    assert kernels(assert_same(net, {"a": (5,), "b": (5,)}), False) == [["_fused"], []]


def test_equal_instructions_run_once_and_dead_ones_never():
    x = sym.Variable("x")
    net = sym.tanh(x * 2.0) + sym.tanh(x * 2.0) * sym.zeros_like(x)
    executor = assert_same(net, {"x": (5,)})
    assert repr(expressions(executor, False)[0]) == "multiply(0, 2.0) tanh(1) multiply(2, 0.0) add(2, 3)"
    assert [prim.name for prim, _ in expressions(executor)[1].code].count("tanh") == 0


def test_a_group_overwrites_an_input_that_dies():
    x, w = sym.Variable("x"), sym.Variable("w")
    net = sym.dot(x, w)
    for _ in range(3):
        net = sym.dot(sym.tanh(net * 0.5 + 0.25), w)
    executor = assert_same(net, {"x": (8, 8), "w": (8, 8)}, grad_req="null")
    assert executor.plan(False).nbytes <= 3 * 8 * 8 * 4  # two for dot, a temporary
    assert "in place of dot" in executor.explain(is_train=False)


def test_no_more_memory_is_held_for_the_sake_of_a_group():
    # One sum of three arrays is kept while another network runs, not the three.
    w = sym.Variable("w")
    a, b, c, d = (sym.dot(sym.Variable(name), w) for name in "abcd")
    kept = a + b + c
    for _ in range(3):
        d = sym.dot(d, w)
    net = kept * d
    shapes = dict.fromkeys("abcdw", (64, 64))
    executor, plain = (bound(net, shapes, grad_req="null", fused=fused) for fused in (True, False))
    assert executor.plan(False).nbytes <= plain.plan(False).nbytes


def test_values_of_rows_are_not_computed_for_every_element():
    x, row = sym.Variable("x"), sym.Variable("row")
    net = sym.broadcast_mul(x * 2.0, sym.tanh(row * 0.5))
    executor = assert_same(net, {"x": (3, 4), "row": (3, 1)})
    assert kernels(executor, False) == [["_fused", "_fused"], []]
    assert [each.arity for each in expressions(executor, False)] == [1, 2]


def test_the_size_of_groups_is_limited():
    x = sym.Variable("x")
    net = functools.reduce(lambda y, _: sym.sin(y) * 1.5, range(100), x)
    executor = assert_same(net, {"x": (4,)})
    assert 2 <= len(kernels(executor, False)[0]) <= 200 // 32
    assert len(executor.plan(False).forward.flat) == 200


def test_large_values_are_computed_again_and_small_ones_kept():
    x = sym.Variable("x")
    net = gelu(sym.dot(x, x) * 1.0)
    small = bound(net, {"x": (8, 8)})
    large = bound(net, {"x": (512, 512)})
    assert len(expressions(small)[0].results) == 6
    assert len(expressions(large)[0].results) == 1
    assert large.plan(True).nbytes < bound(net, {"x": (512, 512)}, fused=False).plan(True).nbytes
    assert ["tanh" in [prim.name for prim, _ in expressions(each)[1].code] for each in (small, large)] == [False, True]


def test_expensive_values_are_stored():
    net = sym.tanh(sym.erf(sym.Variable("x"))) * sym.Variable("y")
    forward, backward = expressions(bound(net, {"x": (512, 512), "y": (512, 512)}))
    assert len(forward.results) > 1
    assert "erf" not in [prim.name for prim, _ in backward.code]


def test_nothing_is_computed_again_from_states_that_have_moved(monkeypatch):
    monkeypatch.setattr(fusion, "_LARGE", 1)
    x, mean = sym.Variable("x"), sym.Variable("mean")
    # Both the operator and the chain read the state before it moves.
    normal = sym.BatchNorm(x, moving_mean=mean, momentum=0.1, fix_gamma=False, name="bn")
    net = sym.tanh(sym.broadcast_add(x, mean) * 0.5) * normal
    assert_same(net, {"x": (4, 3)})


def test_integers_are_not_fused():
    net = sym.Cast(sym.Variable("x"), dtype="int32") * 3 + 1
    executor = bound(net, {"x": (5,)}, grad_req="null")
    assert "_fused" not in kernels(executor, False)[0]


def test_a_monitor_receives_every_node():
    x = sym.Variable("x")
    net = sym.tanh(sym.tanh(x, name="one") * 2.0, name="two")
    executor = bound(net, {"x": (3,)})
    seen = []
    ones = [nd.ones((3,))]
    executor.forward(is_train=True)
    executor.set_monitor_callback(lambda name, value: seen.append(name))
    executor.backward(ones)  # its plan is another: it runs forward first
    assert [name for name in seen if name in ("one_output", "two_output")] == ["one_output", "two_output"]
    assert len(seen) > 5
    watched = executor.grad_dict["x"].asnumpy()
    assert "_fused" not in executor.explain()
    executor.set_monitor_callback(None)
    executor.forward(is_train=True)
    executor.backward(ones)
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), watched)
    assert "_fused" in executor.explain()


# -------------------------------------------------------------------------------------------- compositions


def test_constants_are_computed_in_the_dtype_of_the_arrays():
    whole = Composition(np.dtype("float32"))
    x = whole.input()
    third = whole.add(trace(lambda y: y / 3.0, 1), [1.0])
    assert third == float(np.float32(1) / np.float32(3))
    assert whole.add(trace(lambda y: y - 0.0, 1), [x]) == x


def test_zeros_of_both_signs_are_two_constants():
    whole = Composition(np.dtype("float32"))
    x = whole.input()
    add = trace(lambda y, z: y + z, 2)
    found, _ = whole.finish([whole.add(add, [x, 0.0]), whole.add(add, [x, -0.0])])
    assert len(found.code) == 2
    zero = np.float32([-0.0])
    assert [np.signbit(each).item() for each in found(np, zero)] == [False, True]


def test_a_float_operand_is_a_constant_and_no_register_index():
    whole = Composition(np.dtype("float64"))
    x = whole.input()
    double, add = trace(lambda y: y * 2.0, 1), trace(lambda y, z: y + z, 2)
    first = whole.add(double, [x])
    second = whole.add(double, [first])
    found, _ = whole.finish([whole.add(add, [1.0, second]), whole.add(add, [float(first), second])])
    assert [each.item() for each in found(np, np.ones(1))] == [5, 4]


def test_a_constant_may_be_a_result_beside_others():
    x = sym.Variable("x")
    half = sym.ones_like(x) * 0.5
    net = sym.Group([x * 3.0 * (half + half), half + half, half + half * -1.0])
    executor = assert_same(net, {"x": (5,)})
    assert kernels(executor, False) == [["_fused"], []]


def test_inputs_that_nothing_needs_are_left_out():
    whole = Composition(np.dtype("float64"))
    x, y, z = whole.input(), whole.input(), whole.input()
    whole.add(trace(lambda t: t * t, 1), [y])
    found, read = whole.finish([whole.add(trace(lambda s, t: s - t, 2), [x, z])], [z, y, x])
    assert read == [z, x]
    assert repr(found) == "subtract(1, 0)"


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([1, 4, 1000]), st.sampled_from(["none", "first"]))
def test_several_results_may_share_the_memory_of_inputs(data, tile, shared):
    """Random instructions have random results; the first output is in the first input's memory, or in its own."""
    one, two = trace(lambda x: x * 0.5 + 1.0, 1), trace(lambda x, y: x * y - x, 2)
    whole = Composition(np.dtype("float64"))
    values = [whole.input(), whole.input()]
    for _ in range(data.draw(st.integers(1, 8))):
        pick = st.sampled_from(values)
        values.append(whole.add(*((one, [data.draw(pick)]) if data.draw(st.booleans()) else
                                  (two, [data.draw(pick), data.draw(pick)]))))
    chosen = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))
    made, read = whole.finish(chosen, values[:2])
    rng = np.random.default_rng(0)
    ins = [rng.uniform(-1, 1, (3, 4)) for _ in read]
    want = made(np, *[each.copy() for each in ins])
    want = want if isinstance(want, tuple) else (want,)
    outs = [np.full((3, 4), np.nan) for _ in chosen]
    if shared == "first" and ins and all(isinstance(r, int) and r >= made.arity for r in made.results):
        outs[0] = ins[0]
    held = {}

    def scratch(number, shape, dtype):
        return held.setdefault((number, shape), np.empty(shape, dtype))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "TILE", tile)
        for step in schedule.steps(made, np, ins, outs, scratch):
            step()
    for got, expected in zip(outs, want, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_cast_is_an_instruction_of_two_dtypes():
    cast = expression.Expression.of(1, [expression.Instruction(astype(np.dtype("float16")), (0,)),
                                        expression.Instruction(expression.PRIMITIVES["greater"], (1, 0.5))], [2])
    out = np.empty(3, "float16")
    for step in schedule.steps(cast, np, [np.float32([0, 1, 2])], out, lambda n, shape, dtype: np.empty(shape, dtype)):
        step()
    assert out.tolist() == [0, 1, 1]
    assert cast(np, np.float32([0, 1, 2])).dtype == np.float16


# ------------------------------------------------------------------------------------------------- threads


@pytest.fixture
def many(monkeypatch):
    """A pool with three threads."""
    monkeypatch.setattr(threads, "count", lambda: 3)
    monkeypatch.setattr(threads._Pool, "current", None)


def test_parts_run_on_threads_and_all_are_done(many):
    meeting, seen = threading.Barrier(3), []

    def part():
        meeting.wait(60)  # passes when three run at the same time
        seen.append(threading.get_ident())

    threads.run([part] * 3)
    assert len(set(seen)) == 3


def test_parts_may_be_nested(many):
    done = []
    threads.run([lambda: threads.run([lambda: done.append(1)] * 4)] * 5)
    assert len(done) == 20


def test_an_error_in_a_part_leaves_as_itself_when_all_have_ended(many):
    done = []

    def wrong():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        threads.run([wrong, *[lambda: done.append(1)] * 4])
    assert len(done) == 4
    threads.run([lambda: done.append(1)] * 3)
    assert len(done) == 7


@pytest.mark.parametrize(("variables", "expected"), [
    ({"OPREG_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3), ({"OMP_NUM_THREADS": "5"}, 5),
    ({"OPREG_NUM_THREADS": " ", "OMP_NUM_THREADS": "4"}, 4)])
def test_environment_variables_set_the_number_of_threads(monkeypatch, variables, expected):
    for name in ("OPREG_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert threads.count.__wrapped__() == expected


def test_by_default_there_are_as_many_threads_as_processors(monkeypatch):
    monkeypatch.delenv("OPREG_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert 1 <= threads.count.__wrapped__() <= (os.cpu_count() or 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(many):
    threads.run([lambda: None] * 3)
    child = os.fork()
    if not child:
        status = 1
        try:
            meeting = threading.Barrier(3)
            threads.run([lambda: meeting.wait(60)] * 3)
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_number_of_threads_does_not_matter(monkeypatch):
    x = np.random.default_rng(0).standard_normal((300, 1000)).astype("float32")
    monkeypatch.setattr(schedule, "_SHARED", 1)
    found = []
    for number in (1, 2, 5):
        monkeypatch.setattr(threads, "count", lambda number=number: number)
        monkeypatch.setattr(threads._Pool, "current", None)
        executor = bound(gelu(sym.Variable("x")), {"x": x.shape})
        found.append(results(executor))
    for other in found[1:]:
        for got, want in zip(other, found[0]):
            np.testing.assert_array_equal(got, want)


# --------------------------------------------------------------------- rows in blocks, by several threads

ROWS = {
    "softmax": lambda x, g, b: sym.softmax(x, axis=-1),
    "softmax-middle": lambda x, g, b: sym.softmax(x, axis=1, temperature=2.0),
    "softmin": lambda x, g, b: sym.softmin(x),
    "log_softmax": lambda x, g, b: sym.log_softmax(x, axis=1),
    "LayerNorm": sym.LayerNorm,
    "LayerNorm-middle": lambda x, g, b: sym.LayerNorm(x, g, b, axis=1),
    "InstanceNorm": sym.InstanceNorm,
    "GroupNorm": lambda x, g, b: sym.GroupNorm(x, g, b, num_groups=5),
    "BatchNorm": lambda x, g, b: sym.BatchNorm(x, g, b, fix_gamma=False, name="bn"),
}


def normalising(net, shapes, dtype):
    """An executor over numbers whose sums are not close to zero."""
    executor = net.simple_bind(mx.cpu(), type_dict={"x": dtype}, **shapes)
    rng = np.random.default_rng(0)
    for name in shapes:
        executor.arg_dict[name][:] = rng.uniform(0.5, 2, shapes[name])
    return executor


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ROWS)
def test_rows_computed_in_blocks_equal_all_rows_at_once(monkeypatch, name, dtype):
    variables = [sym.Variable(each) for each in ("x", "g", "b")]
    net = ROWS[name](*variables) * 2.0
    shapes = {"x": (11, 5, 5), "g": (5,), "b": (5,)}
    shapes = {each: shapes[each] for each in net.list_arguments()}
    whole = results(normalising(net, shapes, dtype))
    monkeypatch.setattr(threads, "_MOST", 200)
    found = []
    for number in (1, 3):
        monkeypatch.setattr(threads, "count", lambda number=number: number)
        monkeypatch.setattr(threads._Pool, "current", None)
        found.append(results(normalising(net, shapes, dtype)))
    for one, three, want in zip(*found, whole, strict=True):
        np.testing.assert_array_equal(one, three)
        np.testing.assert_allclose(one, want, rtol=1e-3 if dtype == "float16" else 1e-5, atol=1e-5)


def test_slices_cover_all_rows_in_order(many, monkeypatch):
    monkeypatch.setattr(threads, "_MOST", 64)
    x = np.arange(23.0)
    parts = threads.by_rows(np, x, lambda rows: x[rows].tolist())
    assert len(parts) == 3
    assert [number for part in parts for number in part] == x.tolist()
    assert threads.by_rows(np, x[:16], lambda rows: rows) == [slice(None)]
    assert threads.by_rows(object, x, lambda rows: rows) == [slice(None)]


def test_numpys_settings_are_restored(many):
    before = np.getbufsize()
    threads.run([lambda: None] * 4)
    assert np.getbufsize() == before


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
@pytest.mark.parametrize("function, expected", [
    (lambda x: x + 1, lambda x: x + x.dtype.type(1)),
    (lambda x: x * 3, lambda x: x * x.dtype.type(3)),
    (lambda x: x + x, lambda x: x + x),
], ids=["sum with a number", "product with a number", "sum"])
def test_integers_are_computed_in_their_own_dtype_by_a_ufunc(function, expected, dtype):
    numbers = np.array([0, 1, 100, np.iinfo(dtype).max], dtype)
    executor = function(mx.sym.Variable("x")).bind(mx.cpu(), {"x": mx.nd.array(numbers, dtype=dtype)})
    assert {step.kernel for step in executor.plan(False).forward.steps} == {"ufuncs"}
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(executor.forward()[0].asnumpy(), expected(numbers))
