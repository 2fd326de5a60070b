"""Operators made of one function: their signatures, calls, gradients, and dry runs."""

from __future__ import annotations

import inspect
import itertools
import pickle
import random
import sys
from typing import Literal

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, AttrError, NotDifferentiableError, ShapeError
from tests.questions import of_each

nd, sym, autograd = mx.nd, mx.sym, mx.autograd
X = np.float32([[0, 1, 2], [3, 4, 5]])
_NUMBERS = itertools.count()


def defined(function, grad=None, **options):
    """Defines an operator under a new name."""
    op = mx.operator.define(function, name=f"test_define_{next(_NUMBERS)}", **options)
    if grad is not None:
        op.grad(grad)
    return op


def eagerly(op, *arrays, **attrs):
    """The gradients of the sum of the outputs."""
    arrays = [nd.array(each) for each in arrays]
    for each in arrays:
        each.attach_grad()
    with autograd.record():
        found = op(*arrays, **attrs)
    autograd.backward(found)
    return [each.grad.asnumpy() for each in arrays]


def in_a_graph(op, *arrays, **attrs):
    """Gradients of the sum of the outputs, by a bound symbol."""
    names = [f"x{i}" for i in range(len(arrays))]
    net = op(*map(sym.Variable, names), **attrs)
    executor = net.simple_bind(mx.cpu(), **{name: np.shape(each) for name, each in zip(names, arrays)})
    executor.forward(is_train=True, **{name: nd.array(each) for name, each in zip(names, arrays)})
    executor.backward([nd.ones(out.shape) for out in executor.outputs])
    return [executor.grad_dict[name].asnumpy() for name in names]


BOTH = pytest.mark.parametrize("run", [eagerly, in_a_graph])


# ------------------------------------------------------------------------------------------------ signatures


async def _async(x):
    return x


def _yields(x):
    yield x


def _half(x, *, times: int = 1.5):
    return x * times


def _named(x, *, mode: Literal["max", "avg"] = "mean"):
    return x


class _AsyncCallable:
    async def __call__(self, x):
        return x


class _Callable:
    def __call__(self, x, *, by: int = 2):
        return x * by


REFUSED = [
    (lambda x, beta=1.0: x, {}, r"\(x, beta=1\.0\): .*If beta is an attribute put \* before it: \(…, \*, beta=1\.0\)"),
    (lambda x, **kw: x, {}, r"\*\*kw does not declare attributes"),
    (_async, {}, r"_async\(x\) is an async def"), (_yields, {}, r"_yields\(x\) is a generator"),
    (_half, {}, r"_half\(.*\): the default of attribute times: expected int, got 1\.5"),
    (_named, {}, r"the default of attribute mode: expected .*, got 'mean'"),
    (lambda x, out: x, {}, "cannot be called 'out'"), (lambda x, *, name: x, {}, "cannot be called 'name'"),
    (lambda ctx: ctx, {}, "cannot be called 'ctx'"),
    (lambda x, mean: x, {"auxiliary": ["maen"]}, r"'maen' is not an input\. Did you mean 'mean'"),
    (lambda x, mean: x, {"auxiliary": ["x"]}, "auxiliary states come last, after all inputs: mean, x"),
    (lambda x, *xs: x, {"auxiliary": ["x"]}, "auxiliary states come last"),
    (lambda x, mean: x, {"auxiliary": "mean"}, "expected a list of names"),
    (lambda x: x, {"outputs": "ab"}, "outputs='ab': expected a list"),
    (lambda x: x, {"outputs": ["a", "a"]}, "list of different names"), (lambda x: x, {"outputs": ()}, "list of"),
    (lambda x: x, {"outputs": 2}, "outputs=2: expected a list of different names"),
    (lambda x: x, {"auxiliary": 1}, "auxiliary=1: expected a list of names"),
    (_AsyncCallable(), {}, "is an async def"),
    ("swish", {}, r"expected a function, got 'swish'; a name is a keyword: @define\(name='swish'\)"),
    (dict, {}, "expected a function, got the class dict"), (5, {}, "expected a function, got 5"),
]


@of_each(REFUSED)
def test_impossible_signatures_are_refused(function, options, words):
    with pytest.raises(TypeError, match=f"define: .*{words}"):
        mx.operator.define(function, name="test_define_refused", **options)
    assert "custom.test_define_refused" not in mx.operator.__dict__
    with pytest.raises(AttributeError):
        mx.nd.custom.test_define_refused  # noqa: B018


def test_a_function_without_a_name_needs_one():
    with pytest.raises(ArgumentError, match="has no name: give it one"):
        mx.operator.define(lambda x: x)
    for name in ("", 5):
        with pytest.raises(ArgumentError, match=f"define: expected a name, .* got {name!r}"):
            mx.operator.define(lambda x: x, name=name)
    with pytest.raises(TypeError, match="nme"):
        mx.operator.define(lambda x: x, nme="x")


def test_callable_objects_may_be_defined_as_operators():
    assert defined(_Callable())(nd.ones(1), by=3).asscalar() == 3
    assert defined(lambda x, /: x + 1)(nd.ones(1)).asscalar() == 2


@pytest.fixture(scope="module")
def total():
    def total(*xs, scale: float = 1.0):
        """A multiple of a sum."""
        return sum(xs[1:], xs[0]) * scale

    return defined(total, lambda g, ins, outs, *, scale: [g * scale for _ in ins])


@BOTH
def test_a_function_may_take_any_number_of_inputs(run, total):
    for count in (1, 2, 5):
        assert [g.tolist() for g in run(total, *[X] * count, scale=3)] == [np.full_like(X, 3).tolist()] * count


def test_any_number_of_inputs_is_passed_in_every_form(total):
    a, b = nd.array(X), nd.array(2 * X)
    for found in (total(a, b, scale=2), total([a, b], scale=2), getattr(nd.custom, total.op_type)(a, b, scale=2),
                  nd.Custom(a, b, op_type=total.op_type, scale=2), total(xs0=a, xs1=b, scale=2)):
        np.testing.assert_array_equal(found.asnumpy(), 6 * X)
    net = sym.load_json(total(sym.var("a"), sym.var("b"), name="node", scale=2).tojson())
    assert net.list_arguments() == ["a", "b"]
    np.testing.assert_array_equal(net.eval(a=a, b=b)[0].asnumpy(), 6 * X)
    assert str(inspect.signature(total)) == "(*xs, scale: float = 1.0, out=None, name=None)"


def test_fixed_inputs_may_precede_any_number_of_others():
    op = defined(lambda x, *rest: x * len(rest))
    assert op(nd.ones(1), nd.ones(2), nd.ones(3)).asscalar() == 2
    assert op(sym.var("x"), sym.var("y"), name="node").get_children().list_outputs() == ["x", "y"]
    assert mx.operator.get(op.name).list_arguments(num_args=3) == ["x", "rest0", "rest1"]


# -------------------------------------------------------------------------------------------------- calling


@pytest.fixture(scope="module")
def scaled():
    def scaled(x, *, by: float = 2.0):
        """A multiple of x."""
        return x * by

    return defined(scaled, lambda g, ins, outs, *, by: g * by)


def test_a_defined_operator_is_called_like_a_function(scaled):
    x, out = nd.array(X), nd.zeros((2, 3))
    for found in (scaled(x), scaled(x=x), scaled(x, by=2.0), scaled(x, by="2"), scaled(X), scaled(x, name="any")):
        np.testing.assert_array_equal(found.asnumpy(), 2 * X)
    assert scaled(x, by=3, out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), 3 * X)
    net = scaled(x=sym.var("x"), by=3, name="node", attr={"ctx_group": "a"})
    assert (net.list_outputs(), net.attr("by"), net.attr("ctx_group")) == (["node_output"], "3", "a")
    assert sym.load_json(net.tojson()).attr_dict() == net.attr_dict()


def test_a_defined_operator_has_a_signature_and_a_repr(scaled):
    for each, further in ((scaled, "out=None, name=None"), (getattr(nd.custom, scaled.op_type), "out=None, name=None"),
                          (getattr(sym.custom, scaled.op_type), "name=None, attr=None")):
        assert str(inspect.signature(each)) == f"(x, *, by: float = 2.0, {further})"
        assert each.__doc__ == "A multiple of x."
    assert (scaled.__name__, scaled.__module__) == (scaled.op_type, __name__)
    assert pickle.loads(pickle.dumps(scaled)) is scaled


@pytest.mark.parametrize("call, kind, words", [
    (lambda op: op(2.0), ArgumentError, r"input x must be an array or symbol, got float; nd.array\(...\)"),
    (lambda op: op([1.0, 2.0]), ArgumentError, r"got list; nd.array\(...\)"),
    (lambda op: op(), ArgumentError, "missing x"), (lambda op: op(nd.ones(1), bye=2), AttrError, "Did you mean 'by'"),
    (lambda op: op(nd.ones(1), nd.ones(2)), ArgumentError, r"takes 1 input \(x\), got 2; attributes go by keyword"),
    (lambda op: op(nd.ones(1), x=nd.ones(1)), ArgumentError, "given twice"),
    (lambda op: op(y=sym.var("y")), ArgumentError, "no input 'y'"),
])
def test_wrong_calls_of_a_defined_operator_are_refused(scaled, call, kind, words):
    with pytest.raises(kind, match=words):
        call(scaled)


def test_tensors_stay_tensors(scaled):
    x = mx.Tensor(X)
    assert type(scaled(x)) is type(scaled(x=x, by=3)) is mx.Tensor
    assert (mx.grad(mx.jit(lambda x: scaled(x, by=3).sum()))(x).asnumpy() == 3).all()


def test_states_move_in_training_only():
    """States move in training only, in every way to run the operator."""
    def centred(x, mean, *, momentum: float = 0.5, is_train):
        if is_train:
            mean[:] = mean * momentum + x.mean(axis=0) * (1 - momentum)
        return x - mean

    op = defined(centred, lambda g, ins, outs: g, auxiliary=["mean"])
    op.fill(lambda ins, outs: [ins[0], ins[0][1:]])
    mean = X.mean(0) / 2
    x, state = nd.array(X), nd.zeros(3)
    x.attach_grad()
    np.testing.assert_array_equal(op(x, state).asnumpy(), X)
    with autograd.record():
        y = op(x, state)
    y.backward()
    np.testing.assert_array_equal(state.asnumpy(), mean)
    np.testing.assert_array_equal(y.asnumpy(), X - mean)
    assert (x.grad.asnumpy() == 1).all()
    net = sym.load_json(op(sym.var("x"), name="node").tojson())
    assert (net.list_arguments(), net.list_auxiliary_states()) == (["x"], ["node_mean"])
    executor = net.simple_bind(mx.cpu(), x=(2, 3))
    for is_train, expected in ((False, 0 * mean), (True, mean), (False, mean), (True, mean * 1.5)):
        (y,) = executor.forward(is_train=is_train, x=x)
        np.testing.assert_allclose(y.asnumpy(), X - expected, rtol=1e-6)
    executor.backward(nd.ones((2, 3)))
    np.testing.assert_allclose(executor.aux_dict["node_mean"].asnumpy(), mean * 1.5)
    assert (executor.grad_dict["x"].asnumpy() == 1).all()


def test_a_body_gets_device_and_mode():
    seen = []

    def watching(x, *, ctx, is_train):
        seen.append((ctx, mx.current_context(), is_train, autograd.is_training()))
        return x + ctx.device_id

    op = defined(watching)
    assert op.signature.schema.names == ()
    with autograd.train_mode():
        assert op(nd.zeros(1, ctx=mx.cpu(1))).asscalar() == 1
    executor = op(sym.var("x")).bind(mx.cpu(2), {"x": nd.zeros(1, ctx=mx.cpu(2))})
    del seen[1:]
    assert executor.forward(is_train=True)[0].asscalar() == executor.forward()[0].asscalar() == 2
    by_mode = {each[2]: each for each in seen if each[0] == mx.cpu(2)}
    assert seen[0] == (mx.cpu(1), mx.cpu(1), True, True)
    assert by_mode == {True: (mx.cpu(2), mx.cpu(2), True, True), False: (mx.cpu(2), mx.cpu(2), False, False)}


# ------------------------------------------------------------------------------------------------- gradients


def square(x):
    return x * x


SQUARED = {
    "operators": lambda g, ins, outs: 2 * g * ins[0],
    "nd": lambda g, ins, outs: nd.broadcast_mul(g, 2 * nd.sqrt(nd.square(ins[0]))),
    "shapes": lambda g, ins, outs: g * ins[0] * (2 * ins[0].size / (ins[0].shape[0] * len(ins[0].T))),
    "kinds": lambda g, ins, outs: 2 * g * ins[0] if ins[0].ndim == 2 and g.dtype is np.float32 else None,
    "parts": lambda g, ins, outs: nd.stack(*[g[i] * 2 * row for i, row in enumerate(ins[0])]),
    "in place": lambda g, ins, outs: in_place(g, ins[0]),
    "one part": lambda g, ins, outs: 2 * g * ins[0] if ins[0].reshape((-1,))[1].shape == (1,) else None,
    "numpy of symbols": lambda g, ins, outs: 2 * g * np.sqrt(ins[0] * ins[0]),
    "numpy": lambda g, ins, outs: 2 * g.asnumpy() * ins[0].asnumpy(),
    "numpy of arrays": lambda g, ins, outs: g * nd.array(np.asarray(2 * ins[0].asnumpy())),
    "an array beside": lambda g, ins, outs: nd.full((1,), 2) * g * ins[0],
    "random numbers beside": lambda g, ins, outs: g * ins[0] * (2 + 0 * nd.random.uniform(shape=g.shape)),
    "numbers": lambda g, ins, outs: 2 * g * ins[0] if ins[0].sum().asscalar() > 0 else None,
    "a branch": lambda g, ins, outs: 2 * g * ins[0] if ins[0].sum() > 0 else None,
}


def in_place(g, x):
    g = g * 2
    g *= x
    return g


@BOTH
@pytest.mark.parametrize("way", SQUARED)
def test_gradients_may_be_written_in_many_ways(run, way):
    """All ways mean the same eagerly and in graphs."""
    (found,) = run(defined(square, SQUARED[way]), X)
    np.testing.assert_array_equal(found, 2 * X)


def test_gradients_in_operators_are_differentiated_again():
    for way in ("operators", "nd", "shapes", "parts"):
        op, x = defined(square, SQUARED[way]), nd.array(X + 1)
        x.attach_grad()
        with autograd.record():
            (g,) = autograd.grad(op(x), x, create_graph=True)
        g.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), np.full_like(X, 2), rtol=1e-6, err_msg=way)
        net = op(sym.var("x", shape=(2, 3))).gradient(["x"]).gradient(["x"])
        np.testing.assert_allclose(net.eval(x=x)[0].asnumpy(), np.full_like(X, 2), rtol=1e-6, err_msg=way)


@pytest.mark.parametrize("way", ["numpy", "numbers", "a branch", "an array beside", "numpy of arrays"])
def test_gradients_that_read_values_are_differentiated_once(way):
    op, x = defined(square, SQUARED[way]), nd.array(X)
    x.attach_grad()
    with autograd.record():
        (g,) = autograd.grad(op(x), x, create_graph=True)
    np.testing.assert_array_equal(g.asnumpy(), 2 * X)
    with pytest.raises(NotDifferentiableError, match=r"Python code that reads elements.*traced=True"):
        g.backward()
    net = op(sym.var("x")).gradient(["x"])
    np.testing.assert_array_equal(net.eval(x=x)[0].asnumpy(), 2 * X)
    with pytest.raises(NotDifferentiableError, match="Python code that reads elements"):
        net.gradient(["x"])


def test_a_traced_gradient_in_numpy_is_nodes():
    op = defined(square, SQUARED["numpy"], traced=True)
    executor = op(sym.var("x")).simple_bind(mx.cpu(), x=(2, 3))
    executor.forward(is_train=True, x=nd.array(X))
    executor.backward(nd.ones((2, 3)))
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), 2 * X)
    assert "custom." not in executor.explain()
    net = op(sym.var("x")).gradient(["x"]).gradient(["x"])
    np.testing.assert_array_equal(net.eval(x=nd.array(X))[0].asnumpy(), np.full_like(X, 2))


@BOTH
def test_a_gradient_in_numpy_may_have_several_outputs(run):
    def grad(g, ins, outs):
        return g[0].asnumpy() + g[1].asnumpy() * ins[1].asnumpy(), None

    op = defined(lambda x, y: (x + y, x.asnumpy() * y.asnumpy()), grad, outputs=["sum", "product"])
    x, y = run(op, X, X + 1)
    np.testing.assert_array_equal(x, X + 2)
    assert not y.any()


@BOTH
def test_losses_need_no_output_gradient(run):
    """Losses need no output gradient."""
    for grad in (lambda g, ins, outs: (outs[0] - ins[1], None),
                 lambda g, ins, outs: (outs[0].asnumpy() - ins[1].asnumpy(), 0)):
        op = defined(lambda x, label: x * 1, grad, loss=True)
        assert [each.tolist() for each in run(op, X, X + 1)] == [(0 * X - 1).tolist(), (0 * X).tolist()]
        executor = op(sym.var("x"), sym.var("label")).simple_bind(mx.cpu(), x=(2, 3), label=(2, 3))
        executor.forward(is_train=True, x=nd.array(X))
        executor.backward()
        np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), X)


def test_a_gradient_may_not_change_its_arguments():
    def grad(g, ins, outs):
        ins[0][:] = 0

    with pytest.raises(mx.MXNetError, match="read-only"):
        eagerly(defined(square, grad), X)


SHAPES = [  # shapes of the input, of the gradient, of its product
    ((2, 3), (2, 3), (2, 3)), ((1, 3), (2, 3), (1, 3)), ((3,), (2, 3), (3,)), ((1,), (), (1,)), ((1,), (2, 3), (1,)),
    ((2, 3), (3,), None), ((2, 3), (1,), None), ((2, 3), (), None), ((2, 3), (2, 1), None), ((2, 3), (3, 2), None),
]


@BOTH
@pytest.mark.parametrize("kind", ["operators", "numpy", "prop"])
@pytest.mark.parametrize("shape, given, expected", SHAPES)
def test_gradients_are_summed_down_and_never_repeated(run, kind, shape, given, expected):
    def grad(g, ins, outs):
        return np.ones(given, "float32") if kind == "numpy" else nd.ones_like(g).sum().reshape((1,)).broadcast_to(
            given) / 6 if given else g.sum() / 6

    if kind != "numpy" and given == ():
        given = (1,)  # sums of arrays have one axis
    if kind == "prop":
        class Prop(mx.operator.CustomOpProp):
            def infer_shape(self, shapes):
                return shapes, [(2, 3)], []

            def create_operator(self, ctx, shapes, dtypes):
                class Op(mx.operator.CustomOp):
                    def forward(self, is_train, req, in_data, out_data, aux):
                        self.assign(out_data[0], req[0], 1)

                return Op()

            def gradient(self, g, ins, outs):
                return grad(g, ins, outs)

        name = f"test_define_{next(_NUMBERS)}"
        mx.operator.register(name)(Prop)
        op = mx.operator.get(f"custom.{name}")
    else:
        op = defined(lambda x: nd.ones((2, 3)), grad)
    if expected is None:
        with pytest.raises(ShapeError, match=r"gradient of input '(x|data)' has shape \(.*\), expected \(2, 3\)"):
            run(op, np.zeros(shape))
    else:
        (found,) = run(op, np.zeros(shape))
        assert (found.shape, found.sum()) == (expected, np.prod(given))


# -------------------------------------------------------------------------------------------------- dry runs


@pytest.mark.parametrize("function, shape", [
    (lambda x: np.linalg.inv(x.asnumpy()), (3, 3)), (lambda x: np.linalg.cholesky(x.asnumpy()), (2, 3, 3)),
    (lambda x: x if x.asnumpy().min() > 0 else 1 / 0, (4,)),
    (lambda x: nd.array([1.0 / float(each) for each in x.asnumpy().ravel()]), (4,)),
])
def test_functions_may_fail_on_zeros(function, shape):
    op = defined(lambda x: function(x))
    assert op(sym.var("x")).infer_shape(x=shape)[1] == [shape]


def test_a_function_that_fails_on_all_test_inputs():
    op = defined(lambda x: x / {}["key"])
    with pytest.raises(KeyError) as caught:
        op(sym.var("x")).infer_shape(x=(2,))
    assert f"in the dry run on zeros that finds the shapes of operator {op.op_type!r}" in "".join(
        caught.value.__notes__)
    assert f"declare them with @{op.op_type}.infer" in "".join(caught.value.__notes__)


def test_huge_inputs_cost_nothing():
    shape = 10 ** 6, 10 ** 6
    assert defined(lambda x: nd.relu(x)[0:3] + 1)(sym.var("x")).infer_shape(x=shape)[1] == [(3, 10 ** 6)]
    assert defined(lambda x: x.asnumpy().sum(axis=0))(sym.var("x")).infer_shape(x=shape)[1] == [(10 ** 6,)]
    op = defined(lambda x: nd.ones((int(x.asnumpy().sum()),)))
    with pytest.raises(TypeError) as caught:
        op(sym.var("x")).infer_shape(x=shape)
    assert "inputs of 4,000,000,000,000 bytes are too large" in "".join(caught.value.__notes__)


def test_a_dry_run_draws_no_random_numbers():
    def noisy(x):
        return x + nd.random.normal(shape=x.shape) + nd.array(np.random.rand(2)) + random.random()  # noqa: NPY002

    op, found = defined(noisy), []
    for symbolic in (False, True):
        mx.random.seed(3)
        np.random.seed(4)  # noqa: NPY002
        random.seed(5)
        found.append((op(sym.var("x")).eval(x=nd.zeros(2))[0] if symbolic else op(nd.zeros(2))).asnumpy())
    np.testing.assert_array_equal(*found)


def test_a_dry_run_is_not_recorded():
    seen = []

    def watching(x):
        seen.append(autograd.is_recording())
        return x

    with autograd.record():
        defined(watching)(sym.var("x")).infer_shape(x=(2,))
    assert set(seen) == {False}


def test_a_result_whose_shape_changes_between_runs_is_refused():
    """A changed shape is refused; the result is not repeated to fill the output."""
    lengths = itertools.chain([3, 3, 3, 1], itertools.repeat(1))  # two dry runs
    executor = defined(lambda x: nd.ones(next(lengths)))(sym.var("x")).simple_bind(mx.cpu(), x=(3,))
    executor.forward()
    with pytest.raises(ShapeError, match=r"expected shape \(3,\), the function returned \(1,\)"):
        executor.forward()


def test_a_result_of_an_undeclared_dtype_is_refused():
    op = defined(lambda x: x.astype("int32"))
    op.infer(lambda x: x)
    with pytest.raises(mx.MXNetError, match="expected dtype float32, the function returned int32; declare it with"):
        op(sym.var("x")).simple_bind(mx.cpu(), x=(3,)).forward()
    op = defined(lambda x: x.astype("int32"), types="T->int32")
    op.infer(lambda x: x)
    assert op(sym.var("x")).simple_bind(mx.cpu(), x=(3,)).forward()[0].dtype is np.int32


def test_a_shape_rule_of_both_sides_is_called():
    @mx.operator.define(name="test_define_both_sides")
    def both_sides(x):
        return x * 2

    @both_sides.shapes
    def both_shapes(ins, outs):
        known = ins[0] if ins[0] is not None else outs[0]
        return [known], [known]

    _, outs, _ = mx.sym.custom.test_define_both_sides(mx.sym.var("x")).infer_shape(x=(2, 3))
    assert outs == [(2, 3)]
    both = mx.sym.custom.test_define_both_sides(mx.sym.var("x"), name="both") + mx.sym.var("y", shape=(2, 3))
    args, _, _ = both.infer_shape()
    assert args == [(2, 3), (2, 3)]


def test_dtypes_follow_from_the_current_shape_and_not_from_an_earlier_one():
    """The dtype is inferred from the asked shape, not from a shape that was bound before."""
    op = defined(lambda x: x.asnumpy().astype("float64" if x.shape[0] > 2 else "int32"))
    symbol = op(sym.var("x"))
    looped = sym.contrib.foreach(lambda row, state: (op(row), state), sym.var("x"), sym.var("s"))[0]
    for each in (symbol, looped):
        first = each.infer_type(x="float32")[1]
        for shape, expected in (((2, 2), np.int32), ((4, 4), np.float64), ((2, 2), np.int32)):
            shapes = {"x": shape, **({"s": (1,)} if each is looped else {})}
            assert each.simple_bind(mx.cpu(), grad_req="null", **shapes).outputs[0].dtype is expected
            assert each.infer_type(x="float32")[1] == first


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_an_annotation_that_cannot_be_evaluated_is_an_error(error, monkeypatch):
    failing = [True]

    class Once:
        def __getattr__(self, name):
            if failing:
                failing.clear()
                raise error("for once")
            return int

    monkeypatch.setitem(globals(), "_once", Once())

    def scaled(x, *, by: _once.kind = 2):  # noqa: F821  it is there when somebody asks
        return x * by

    with pytest.raises(error, match="for once"):
        defined(scaled)
    with pytest.raises(AttrError, match="expected int"):
        defined(scaled)(nd.array(X), by=1.5)


#: Users' code whose annotations name nothing: types that only type checkers import.
ANNOTATED = """
@mx.operator.define(traced=True, name="_example_annotated_traced")
def traced(x: Array, *, beta: float = 1.0) -> Array:
    return x * beta

@mx.operator.define(name="_example_annotated_numpy")
def plain(x: Array, *, beta: float = 1.0) -> Array:
    return x * beta

class Double(mx.operator.CustomOp):
    def forward(self, is_train: Flag, req: Requests, in_data: Arrays, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * self.beta)

class DoubleProp(mx.operator.CustomOpProp):
    def __init__(self, beta: Number = 1.0):
        super().__init__()
        self.beta = float(beta)
    def create_operator(self, ctx: Context, shapes, dtypes):
        op = Double()
        op.beta = self.beta
        return op

mx.operator.register("_example_annotated_prop")(DoubleProp)

class Layer(mx.nn.Cell):
    scale: Unknown
    def construct(self, x: Array, beta: Number = 2.0) -> Array:
        return x * beta
    def bprop(self, x: Array, beta, out, dout):
        return dout * beta, 0.0

class Function(mx.autograd.Function):
    def forward(self, x: Array) -> Array:
        return x * 2
    def backward(self, dy: Array):
        return dy * 2

def hook(cell: Layer, inputs: Arrays) -> Nothing:
    pass

layer = Layer()
layer.register_forward_pre_hook(hook)
x, t = mx.nd.ones((2,)), mx.Tensor([1.0, 1.0])
results = [traced(x, beta="2"), plain(x, beta=2.0), mx.nd.Custom(x, op_type="_example_annotated_prop", beta="2"),
           layer(t), mx.jit(layer)(t), mx.grad(layer)(t), Function()(x)]
"""


def test_annotations_may_name_types_that_only_type_checkers_import():
    """Since Python 3.14 annotations are evaluated when they are read; before, a module says so."""
    deferred = "" if sys.version_info >= (3, 14) else "from __future__ import annotations\n"
    space = {"mx": mx}
    exec(compile(deferred + ANNOTATED, "annotated.py", "exec", dont_inherit=True), space)
    assert [result.asnumpy().tolist() for result in space["results"]] == [[2.0, 2.0]] * 7
