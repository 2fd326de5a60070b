"""Users' operators with traced bodies: equal to those that are run, differentiable to any order, fused."""

from __future__ import annotations

import functools
import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
import opreg.symbol.compile
from opreg.core import versions
from opreg.core.tracing import TraceError
from opreg.errors import NotDifferentiableError, OpError, ShapeError
from opreg.ndarray.ndarray import FrozenNDArray
from tests.questions import of_each

nd, sym, autograd = mx.nd, mx.sym, mx.autograd
_NUMBERS = itertools.count()
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def verified(monkeypatch):
    """Verifies graphs after every pass."""
    monkeypatch.setattr(opreg.symbol.compile, "CHECK", True)


def registered(operator, traced=True, **methods) -> str:
    """Register a Prop with these methods under a name of its own."""
    name = f"test_traced_{next(_NUMBERS)}"
    methods = {"traced": traced, "create_operator": lambda self, ctx, shapes, dtypes: operator(), **methods}
    mx.operator.register(name)(type("TestProp", (mx.operator.CustomOpProp,), methods))
    return name


def operator_of(forward, backward=None):
    """A CustomOp of ``forward(*in_data)``, and of ``backward(out_grads, in_data, out_data)`` if it is given."""

    def tuple_of(value):
        return value if isinstance(value, tuple) else (value,)

    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            for dst, request, value in zip(out_data, req, tuple_of(forward(*in_data))):
                self.assign(dst, request, value)

    if backward is not None:
        def run(self, req, out_grad, in_data, out_data, in_grad, aux):
            for dst, request, value in zip(in_grad, req, tuple_of(backward(out_grad, in_data, out_data))):
                self.assign(dst, request, value)

        Op.backward = run
    return Op


def bound(name, arrays, req="write", **attrs):
    net = sym.Custom(*[sym.Variable(f"x{i}") for i in range(len(arrays))], op_type=name, name="node", **attrs)
    executor = net.simple_bind(mx.cpu(), req, type_dict={f"x{i}": each.dtype for i, each in enumerate(arrays)},
                               **{f"x{i}": each.shape for i, each in enumerate(arrays)})
    for array, value in zip(executor.arg_arrays, arrays):
        array[:] = value
    return executor


def results(name, arrays, req="write"):
    """Outputs, and gradients after two steps with fixed output gradients."""
    executor = bound(name, arrays, req)
    for _ in range(2):
        outs = executor.forward(is_train=True)
        executor.backward([nd.array(np.cos(np.arange(out.size)).reshape(out.shape), dtype=out.dtype) for out in outs])
    grads = [each.asnumpy() for each in executor.grad_arrays if each is not None]
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), outs[0].asnumpy())
    return [each.asnumpy() for each in outs], grads


def softmax(x):
    y = np.exp(x - x.max(axis=1).reshape((x.shape[0], 1)))
    y /= y.sum(axis=1).reshape((x.shape[0], 1))
    return y


def label_gradient(out_grad, in_data, out_data):
    label, y = in_data[1].asnumpy().ravel().astype(int), out_data[0].asnumpy()
    y[np.arange(label.shape[0]), label] -= 1.0
    return nd.array(y), nd.zeros_like(in_data[1])


def norm_backward(out_grad, in_data, out_data):
    (g,), (x,), (y,) = out_grad, in_data, out_data
    scale = x.square().sum(axis=1, keepdims=True).sqrt()
    return (g - y * (g * y).sum(axis=1, keepdims=True)) / scale


def rows(x):
    y = nd.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i] * (i + 1)
    return y


def _one_row_of_another(x):
    y = x * 1
    y[True, 1] = x[True, :, (2, 0, 1)][0]
    return y


def _one_row_of_another_gradient(g):
    h = g.zeros_like()
    h[(0,), :] = g[0] + g[:, (1, 2, 0)][1]
    return h


#: Bodies: forward, backward, and the shapes of the inputs.
BODIES = {
    "twice": (lambda x: x * 2, lambda g, x, y: g[0] * 2, (3,)),
    "identity": (lambda x: x, lambda g, x, y: g[0], (2, 3)),
    "twice in NumPy": (lambda x: x.asnumpy() * 2, lambda g, x, y: g[0].asnumpy() * 2, (3,)),
    "square": (lambda x: x * x, lambda g, x, y: 2 * g[0] * x[0], (2, 3)),
    "functions": (lambda x: nd.exp(x) + x.sigmoid(), lambda g, x, y: g[0] * (nd.exp(x[0]) + nd.sigmoid(x[0])
                                                                             * (1 - nd.sigmoid(x[0]))), (2, 3)),
    "from the output": (lambda x: nd.tanh(x), lambda g, x, y: g[0] * (1 - y[0] ** 2), (2, 3)),
    "tanh in NumPy": (lambda x: np.tanh(x.asnumpy()), lambda g, x, y: g[0].asnumpy() * (1 - y[0].asnumpy() ** 2),
                      (2, 3)),
    "relu in NumPy": (lambda x: np.maximum(x.asnumpy(), 0), lambda g, x, y: g[0].asnumpy() * (x[0].asnumpy() > 0),
                      (2, 3)),
    "where": (lambda x: nd.where(x > 0, x, 0.1 * x), lambda g, x, y: nd.where(x[0] > 0, g[0], 0.1 * g[0]), (2, 3)),
    "two inputs": (lambda a, b: a * b + a, lambda g, x, y: (g[0] * (x[1] + 1), g[0] * x[0]), (2, 3), (2, 3)),
    "two outputs": (lambda a, b: (a + b, a * b), lambda g, x, y: (g[0] + g[1] * x[1], g[0] + g[1] * x[0]),
                    (2, 3), (2, 3)),
    "matrices": (lambda a, b: nd.dot(a, b) / 2, lambda g, x, y: (nd.dot(g[0], x[1].T) / 2, nd.dot(x[0].T, g[0]) / 2),
                 (3, 3), (3, 3)),
    "norm": (lambda x: x / x.square().sum(axis=1, keepdims=True).sqrt(), norm_backward, (2, 3)),
    "softmax in NumPy": (lambda x: softmax(x.asnumpy()), lambda g, x, y: y[0] * (g[0] - (g[0] * y[0]).sum(
        axis=1, keepdims=True)), (2, 3)),
    "an array held": (lambda x: x * nd.array([[1, 2, 3]]).astype(x.dtype) + nd.ones((2, 3), dtype=x.dtype),
                      lambda g, x, y: g[0] * nd.array([[1, 2, 3]]).astype(x[0].dtype), (2, 3)),
    "rows": (rows, rows and (lambda g, x, y: rows(g[0])), (2, 3)),
    "parts and shapes": (lambda x: x[:, 1:].reshape((-1,)).reshape((2, 2)).tile((1, 2))[:, :3] + x,
                         lambda g, x, y: _parts_gradient(g[0]), (2, 3)),
    "tuples in subscripts": (_one_row_of_another, lambda g, x, y: _one_row_of_another_gradient(g[0]), (2, 3)),
}


def _parts_gradient(g):
    h = g.copy()
    h[:, 1] += g[:, 0] + g[:, 2]
    h[:, 2] += g[:, 1]
    return h


def prop_of(row):
    inputs, count = row[2:], 2 if row[0](*[nd.ones(shape) for shape in row[2:]]).__class__ is tuple else 1
    return {"list_arguments": lambda self: [f"x{i}" for i in range(len(inputs))],
            "list_outputs": lambda self: [f"y{i}" for i in range(count)]}


def arrays_of(row, dtype="float64"):
    rng = np.random.default_rng(1)
    return [rng.uniform(0.2, 1.5, shape).astype(dtype) * rng.choice([-1, 1], shape).astype(dtype) for shape in row[2:]]


@functools.cache
def names_of(key):
    """Names of the operator that is run, that is traced, and that is traced without its backward."""
    row = BODIES[key]
    return tuple(registered(operator_of(row[0], backward), traced, **prop_of(row))
                 for backward, traced in ((row[1], False), (row[1], True), (None, True)))


@of_each(itertools.product(BODIES, ["write", "add"], ["float16", "float32", "float64"]), by=lambda case: case[0])
def test_run_and_traced_agree(key, req, dtype):
    """Outputs agree, and gradients, both written and derived ones."""
    arrays = arrays_of(BODIES[key], dtype)
    expected, *others = [results(name, arrays, req) for name in names_of(key)]
    tolerance = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-12}[dtype]
    for found in others:
        for one, other in zip([*expected[0], *expected[1]], [*found[0], *found[1]]):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("key", BODIES)
def test_the_body_is_not_called_when_the_graph_runs(key):
    executor = bound(names_of(key)[1], arrays_of(BODIES[key]))
    assert "CustomOp" not in executor.explain()
    assert "CustomOp" not in executor.explain(False)


@pytest.mark.parametrize("key", [key for key in BODIES if len(BODIES[key]) == 4])
def test_unrequested_gradients_are_not_computed(key):
    arrays = arrays_of(BODIES[key])
    for req in ({"x0": "null", "x1": "write"}, {"x0": "add", "x1": "null"}):
        expected, *others = [results(name, arrays, req)[1] for name in names_of(key)]
        for found in others:
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def differences(function, x, step=1e-6):
    """Central differences of a number in every element of an array."""
    found = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        moved = np.zeros(x.shape)
        moved[at] = step
        found[at] = (function(x + moved) - function(x - moved)) / (2 * step)
    return found


@pytest.mark.once
@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("key", BODIES)
def test_the_second_order_is_that_of_central_differences(key, written):
    """Second derivatives of graphs, of executors with a gradient inside, and of arrays."""
    name, row = names_of(key)[1 if written else 2], BODIES[key]
    arrays = arrays_of(row)
    variables = [sym.Variable(f"x{i}", dtype="float64") for i in range(len(arrays))]
    net = sym.Custom(*variables, op_type=name, name="node")
    outs = [out * (i + 1) * sym.sin(out) for i, out in enumerate(net)]
    total = functools.reduce(lambda a, b: a + b, [out.sum() for out in outs])
    slope = total.gradient(["x0"]).sum()
    second = slope.gradient(["x0"])
    given = {f"x{i}": nd.array(each, dtype="float64") for i, each in enumerate(arrays)}

    def value(symbol, x):
        held = {**given, "x0": nd.array(x, dtype="float64")}
        return symbol.eval(**{each: held[each] for each in symbol.list_arguments()})[0].asnumpy()

    expected = differences(lambda x: value(slope, x).item(), arrays[0])
    np.testing.assert_allclose(value(second, arrays[0]), expected, rtol=1e-5, atol=1e-6)
    first = differences(lambda x: value(total, x).item(), arrays[0])
    np.testing.assert_allclose(value(total.gradient(["x0"]), arrays[0]), first, rtol=1e-5, atol=1e-6)

    xs = list(given.values())
    xs[0].attach_grad()
    with autograd.record():
        found = nd.Custom(*xs, op_type=name)
        outs = [out * (i + 1) * nd.sin(out) for i, out in enumerate(found if isinstance(found, list) else [found])]
        (g,) = autograd.grad(outs, [xs[0]], create_graph=True)
        (h,) = autograd.grad(g, [xs[0]], create_graph=True)
    np.testing.assert_allclose(g.asnumpy(), first, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(h.asnumpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.once
def test_a_traced_operator_has_third_derivatives():
    name = registered(operator_of(lambda x: x ** 4))
    net, expected = sym.Custom(sym.Variable("x"), op_type=name), [4 * 8, 12 * 4, 24 * 2, 24]
    for value in expected:
        net = net.gradient(["x"])
        assert net.eval(x=nd.array([2]))[0].asscalar() == pytest.approx(value)


# ------------------------------------------------------------------------------------------- the traced graph


def test_a_chain_is_one_loop():
    name = names_of("twice")[1]
    net = sym.Variable("x0")
    for _ in range(20):
        net = sym.Custom(net, op_type=name)
    executor = net.simple_bind(mx.cpu(), x0=(3,))
    lines = executor.explain().splitlines()
    assert len([line for line in lines if "_fused" in line]) == 2
    assert len(lines) == 5


def test_forward_is_not_computed_again_in_backward():
    """A derived gradient reads values that forward has computed."""
    name = registered(operator_of(lambda x: nd.tanh(nd.cumsum(nd.tanh(nd.dot(x, x)), axis=0))))
    executor = bound(name, [np.ones((3, 3))])
    assert executor.explain().count(" dot ") == 1


def test_additions_to_a_part_are_written_once():
    def forward(x):
        y = x.asnumpy()
        y[0] += 1
        return y

    assert bound(registered(operator_of(forward)), [np.ones(3)]).explain(False).count(" _subscript_assign ") == 1


def test_a_body_is_called_once():
    calls = []

    def forward(x):
        calls.append(x)
        return x * 2

    executor = bound(registered(operator_of(forward)), [np.ones(3)])
    for _ in range(3):
        executor.forward(is_train=True)
        executor.backward(nd.ones(3, dtype="float64"))
    assert len(calls) == 1  # the derived gradient continues from this one
    first = calls[0]
    assert isinstance(first, nd.NDArray)
    assert (first.shape, first.dtype, first.context, first.size, len(first)) == ((3,), np.float64, mx.cpu(), 3, 3)
    executor.forward()
    assert len(calls) == 2
    nd.Custom(nd.ones(3), op_type=registered(operator_of(forward)))
    assert isinstance(calls[-1], FrozenNDArray)


def test_the_mode_is_that_of_the_plan():
    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * (2 if is_train else 3))

    executor = bound(registered(Op), [np.ones(1)])
    assert executor.forward(is_train=True)[0].asscalar() == 2
    assert executor.forward(is_train=False)[0].asscalar() == 3


def test_attributes_and_auxiliary_states_are_read():
    def init(self, by: float):
        mx.operator.CustomOpProp.__init__(self)
        self.by = by

    class Op(mx.operator.CustomOp):
        def __init__(self, by):
            self.by = by

        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * aux[0] * self.by)

    name = registered(None, __init__=init, list_auxiliary_states=lambda self: ["scale"],
                      infer_shape=lambda self, shapes: (shapes, shapes, shapes),
                      create_operator=lambda self, ctx, shapes, dtypes: Op(self.by))
    executor = bound(name, [np.ones(2)], by=3)
    executor.aux_arrays[0][:] = 2
    for scale in (2, 5):
        executor.aux_arrays[0][:] = scale
        assert executor.forward(is_train=True)[0].asnumpy().tolist() == [3 * scale] * 2
        executor.backward(nd.ones(2, dtype="float64"))
        assert executor.grad_arrays[0].asnumpy().tolist() == [3 * scale] * 2


@pytest.mark.parametrize("write", [
    lambda self, dst, req, x: self.assign(dst, req, x * 2),
    lambda self, dst, req, x: dst.__setitem__(slice(None), x * 2),
    lambda self, dst, req, x: dst.__setitem__(slice(None), (x * 2).asnumpy()),
    lambda self, dst, req, x: (self.assign(dst, req, x), dst.__iadd__(x)),
    lambda self, dst, req, x: (self.assign(dst, req, 0), self.assign(dst, "add", x), self.assign(dst, "add", x)),
    lambda self, dst, req, x: (dst.__setitem__(0, x[0] * 2), dst.__setitem__(slice(1, 3), x[1:] * 2)),
    lambda self, dst, req, x: nd.elemwise_add(x, x, out=dst),
    lambda self, dst, req, x: (x * 2).copyto(dst),
    lambda self, dst, req, x: (self.assign(dst, "null", 5), self.assign(dst, "inplace", x * 2)),
])
def test_outputs_may_be_written_in_every_form(write):
    versions.write_count()  # from here on, writes are noted

    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            write(self, out_data[0], req[0], in_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            write(self, in_grad[0], req[0], out_grad[0])

    for traced in (False, True):
        executor = bound(registered(Op, traced), [np.array([1., 2, 3])])
        assert executor.forward(is_train=True)[0].asnumpy().tolist() == [2, 4, 6]
        executor.backward(nd.array([1, 2, 3], dtype="float64"))
        assert executor.grad_arrays[0].asnumpy().tolist() == [2, 4, 6]


def test_a_traced_loss_may_leave_the_gradient_of_its_label():
    """The tutorial's loss in NumPy, which leaves the gradient of the label unwritten."""
    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], label_gradient(out_grad, in_data, out_data)[0])

    Op = operator_of(lambda x, label: nd.array(softmax(x.asnumpy())))
    Op.backward = backward
    label = np.array([0, 2], "float32")
    found = []
    for traced in (False, True):
        name = registered(Op, traced, __init__=lambda self: mx.operator.CustomOpProp.__init__(self, False),
                          list_arguments=lambda self: ["x0", "label"],
                          infer_shape=lambda self, shapes: (shapes, shapes[:1]))
        executor = bound(name, [RNG.standard_normal((2, 3)).astype("float32") * 0 + [[0, 1, 2], [3, 5, 4]], label])
        executor.forward(is_train=True)
        executor.backward()
        found.append([each.asnumpy() for each in (*executor.outputs, *executor.grad_arrays)])
    for one, other in zip(*found):
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-7)


def test_arrays_that_backward_does_not_read_are_not_kept():
    def held(traced):
        name = registered(operator_of(lambda x: x * 2, lambda g, x, y: g[0] * 2), traced)
        net, w = sym.Variable("x"), sym.Variable("w")
        for _ in range(4):
            net = sym.dot(sym.Custom(net, op_type=name), w)
        return net.simple_bind(mx.cpu(), {"x": "write", "w": "null"}, x=(30, 30), w=(30, 30)).plan(True).nbytes

    assert held(True) < held(False)


def test_a_traced_backward_reads_only_declared_arrays():
    own = {"declare_backward_dependency": lambda self, og, ins, outs: [*og, *outs]}
    name = registered(operator_of(lambda x: nd.tanh(x), lambda g, x, y: g[0] * (1 - y[0] ** 2)), **own)
    executor = bound(name, [np.ones(2)])
    executor.forward(is_train=True)
    executor.backward(nd.ones(2, dtype="float64"))
    np.testing.assert_allclose(executor.grad_arrays[0].asnumpy(), 1 - np.tanh(1) ** 2)
    for backward in (lambda g, x, y: x[0] * 2, None):
        with pytest.raises(OpError, match=r"in_data\[0\] is not available in backward"):
            bound(registered(operator_of(lambda x: nd.tanh(x), backward), **own), [np.ones(2)])


def test_a_traced_operator_may_call_another():
    inner = names_of("square")[1]
    name = registered(operator_of(lambda x: nd.Custom(x, op_type=inner) * 3))
    executor = bound(name, [np.array([2.])])
    assert executor.forward(is_train=True)[0].asscalar() == 12
    executor.backward(nd.ones(1, dtype="float64"))
    assert executor.grad_arrays[0].asscalar() == 12
    assert "CustomOp" not in executor.explain()
    net = sym.Custom(sym.Variable("x"), op_type=name).gradient(["x"]).gradient(["x"])
    assert net.eval(x=nd.array([2]))[0].asscalar() == 6


def test_a_traced_operator_may_call_an_untraced_one():
    inner = names_of("square")[0]
    executor = bound(registered(operator_of(lambda x: nd.Custom(x, op_type=inner) * 3)), [np.array([2.])])
    assert executor.forward(is_train=True)[0].asscalar() == 12
    executor.backward(nd.ones(1, dtype="float64"))
    assert executor.grad_arrays[0].asscalar() == 12
    assert "CustomOp.backward" in executor.explain()


def test_dropout_draws_anew_in_every_run():
    executor = bound(registered(operator_of(lambda x: nd.Dropout(x, p=0.5))), [np.ones(200)])
    first = executor.forward(is_train=True)[0].asnumpy()
    second = executor.forward(is_train=True)[0].asnumpy()
    assert (first != second).any()


# ------------------------------------------------------------------------------------------------ functions


def test_a_traced_function_is_an_operator():
    @mx.operator.define(name=f"test_traced_{next(_NUMBERS)}", traced=True)
    def cubed(x, *, by: float = 1.0):
        return x * x * x * by

    x = sym.Variable("x")
    net, expected = cubed(x, by=2), [2 * 8, 6 * 4, 12 * 2, 12]
    for value in expected:
        assert net.eval(x=nd.array([2]))[0].asscalar() == pytest.approx(value)
        assert "function" not in net.bind(mx.cpu(), {"x": nd.array([2])}).explain()
        net = net.gradient(["x"])
    v = nd.array([2])
    v.attach_grad()
    with autograd.record():
        y = cubed(v, by=2)
    y.backward()
    assert v.grad.asscalar() == 24


def test_a_traced_function_may_have_its_own_gradient():
    @mx.operator.define(name=f"test_traced_{next(_NUMBERS)}", traced=True, outputs=("a", "b"))
    def both(x, y):
        return x + y, np.exp(x.asnumpy()) * 0 + 7

    @both.grad
    def both_grad(g, ins, outs):
        return g[0] * 5, g[1] * 6

    net = both(sym.Variable("x"), sym.Variable("y"))
    executor = net.simple_bind(mx.cpu(), x=(2,), y=(2,))
    a, b = executor.forward(is_train=True, x=nd.ones(2), y=nd.ones(2))
    executor.backward([nd.ones(2), nd.ones(2)])
    assert (a.asnumpy().tolist(), b.asnumpy().tolist()) == ([2, 2], [7, 7])
    assert [each.asnumpy().tolist() for each in executor.grad_arrays] == [[5, 5], [6, 6]]


def test_gradient_of_its_own_beside_an_array_that_the_body_holds():
    @mx.operator.define(name=f"test_traced_{next(_NUMBERS)}", traced=True)
    def weighed(x):
        return x * nd.array([1, 2, 3])

    @weighed.grad
    def weighed_grad(g, ins, outs):
        return (g * 2 + outs[0],)

    x = nd.array([1, 1, 2])
    x.attach_grad()
    for _ in range(2):  # by the rule, then by its recipe
        with autograd.record():
            y = weighed(x)
        y.backward()
        assert x.grad.asnumpy().tolist() == [3, 4, 8]


def test_a_function_that_is_not_traced_has_no_gradient():
    @mx.operator.define(name=f"test_traced_{next(_NUMBERS)}")
    def plain(x):
        return x * 2

    with pytest.raises(NotDifferentiableError, match="has no gradient"):
        plain(sym.Variable("x")).gradient(["x"])


# ---------------------------------------------------------------------------------------- where it is used


def test_files_keep_traced_operators():
    net = sym.Custom(sym.Variable("x0"), op_type=names_of("square")[1], name="node")
    again = sym.load_json(net.tojson())
    executor = again.simple_bind(mx.cpu(), x0=(2,))
    assert executor.forward(x0=nd.array([2, 3]))[0].asnumpy().tolist() == [4, 9]
    assert "CustomOp" not in executor.explain()


def test_monitors_receive_the_operators_in_the_body():
    executor = bound(registered(operator_of(lambda x: nd.exp(x * 2))), [np.zeros(2)])
    seen = {}
    executor.set_monitor_callback(lambda name, value: seen.setdefault(name, value.asnumpy().tolist()))
    executor.forward(is_train=True)
    executor.backward(nd.ones(2, dtype="float64"))
    assert seen["node_mul_scalar0_output"] == [0, 0]
    assert seen["node_output"] == [1, 1]
    assert executor.grad_arrays[0].asnumpy().tolist() == [2, 2]


def test_a_module_trains_through_a_traced_operator():
    name = registered(operator_of(lambda x: np.maximum(x.asnumpy(), 0)))
    net = sym.FullyConnected(sym.Custom(sym.FullyConnected(sym.Variable("data"), num_hidden=8), op_type=name),
                             num_hidden=2)
    net = sym.SoftmaxOutput(net, name="softmax")
    x = RNG.standard_normal((64, 4)).astype("float32")
    data = mx.io.NDArrayIter(x, (x[:, 0] * x[:, 1] > 0).astype("float32"), batch_size=16)
    module = mx.mod.Module(net)
    module.fit(data, num_epoch=30, optimizer="adam", optimizer_params={"learning_rate": 0.05},
               initializer=mx.init.Xavier())
    assert dict(module.score(data, "acc"))["accuracy"] > 0.9


@pytest.mark.parametrize("compiled", [False, True])
def test_a_cell_calls_a_traced_operator(compiled):
    name = names_of("square")[2]

    class Net(mx.nn.Cell):
        def construct(self, x):
            return mx.ops.Custom(x * 2, op_type=name).sum()

    net = mx.jit(Net()) if compiled else Net()
    x = mx.Tensor(np.array([1, 2], "float32"))
    assert float(net(x)) == 20
    np.testing.assert_allclose(mx.grad(net)(x).asnumpy(), [8, 16])
    np.testing.assert_allclose(mx.grad(lambda x: mx.grad(net)(x).sum())(x).asnumpy(), [8, 8])


def test_a_traced_operator_runs_in_its_context_group():
    name = names_of("square")[1]
    with mx.AttrScope(ctx_group="other"):
        net = sym.Custom(sym.Variable("x0"), op_type=name)
    executor = (net + 1).simple_bind(mx.cpu(), group2ctx={"other": mx.cpu(1)}, x0=(2,))
    executor.forward(is_train=True, x0=nd.array([2, 3]))
    executor.backward(nd.ones(2))
    assert executor.outputs[0].asnumpy().tolist() == [5, 10]
    assert executor.grad_arrays[0].asnumpy().tolist() == [4, 6]
    assert "cpu(1)" in executor.explain()


# --------------------------------------------------------------------------------------------------- refused


class Kept(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.kept = in_data[0] * 2
        self.assign(out_data[0], req[0], self.kept)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * self.kept)


def _stored(x):
    memory = nd.zeros(x.shape)
    memory[:] = x
    return memory


def _changed(x):
    x += 1
    return x


def _recorded(x):
    x.attach_grad()
    return x


def _in_another_mode(x):
    with autograd.predict_mode() if autograd.is_training() else autograd.train_mode():
        return nd.Dropout(x)


REFUSED = {
    "a branch": (lambda x: x if x.sum().asscalar() > 0 else -x, r"asscalar\(\) reads elements"),
    "the truth": (lambda x: x if x[0] > 0 else -x, r"a branch or a loop condition reads elements.*where\(condition"),
    "float()": (lambda x: x * float(x[0]), r"\.py:\d+: float\(\) reads elements"),
    "int()": (lambda x: x * int(x[0]), r"\.py:\d+: int\(\) reads elements"),
    "round()": (lambda x: x * round(x[0]), r"\.py:\d+: round\(\) reads elements"),
    "an index": (lambda x: x * [1, 2, 3][x[0]], r"\.py:\d+: an index reads elements"),
    "a format": (lambda x: x * len(f"{x[0]:.2f}"), r"\.py:\d+: a format reads elements"),
    "item()": (lambda x: x * x[0].item(), r"\.py:\d+: item\(\) reads elements"),
    "tolist()": (lambda x: x * x.tolist()[0], r"\.py:\d+: tolist\(\) reads elements"),
    "memory": (_stored, "an array in memory reads elements"),
    "a change of an input": (_changed, "read-only"),
    "numbers in NumPy": (lambda x: x.asnumpy().tolist(), r"tolist\(\) reads elements"),
    "a function without operator": (lambda x: np.linalg.svd(x.asnumpy()), "np.linalg.svd has no operator"),
    "autograd": (_recorded, "autograd inside of a body reads elements"),
    "another mode": (_in_another_mode, "calls Dropout in another mode than its own"),
    "randomness": (lambda x: x * nd.random.uniform(shape=(3,), dtype="float64"), "random numbers"),
    "NumPy's randomness": (lambda x: x * np.random.rand(), "random numbers"),  # noqa: NPY002  what users write
}


@pytest.mark.parametrize("key", REFUSED)
@pytest.mark.parametrize("req", ["write", "null"])
def test_bodies_that_cannot_be_traced_are_refused(key, req):
    """Binding the graph raises the error, whether gradients are kept or not."""
    forward, match = REFUSED[key]
    name = registered(operator_of(forward))
    with pytest.raises(TraceError, match=match) as caught:
        bound(name, [np.ones(3)], req)
    text = f"{caught.value} {' '.join(caught.value.__notes__)}"
    assert "test_traced.py:" in text
    assert f"operator 'custom.{name}', node 'node', made at" in text
    assert "leave traced off" in text.lower() or "copy it first" in text
    assert not autograd.is_training()


def test_state_that_forward_keeps_on_self_is_refused():
    name = registered(Kept)
    with pytest.raises(TraceError, match="stores on self"):
        bound(name, [np.ones(3)])


def test_a_changed_auxiliary_state_is_refused():
    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            aux[0][:] = aux[0] + 1
            self.assign(out_data[0], req[0], in_data[0])

    name = registered(Op, list_auxiliary_states=lambda self: ["count"],
                      infer_shape=lambda self, shapes: (shapes, shapes, shapes))
    with pytest.raises(TraceError, match="changes an auxiliary state"):
        bound(name, [np.ones(3)]).forward()


def test_outputs_that_forward_does_not_write_or_reads_first_raise_errors():
    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            if self.reads:
                self.assign(out_data[0], req[0], out_data[0] + 1)

    for reads, match in ((False, r"never wrote 'output', which was requested"), (True, "read before it is written")):
        name = registered(type("Op", (Op,), {"reads": reads}))
        with pytest.raises(OpError, match=match):
            bound(name, [np.ones(3)])


def test_wrong_shapes_are_refused():
    for forward in (lambda x: x[1:], lambda x: nd.concat(x, x, dim=0), lambda x: x + nd.ones(7)):
        name = registered(operator_of(forward))
        with pytest.raises((ShapeError, TraceError), match="shape"):
            bound(name, [np.ones(3)])


def test_users_exceptions_keep_their_type():
    def forward(x):
        raise KeyError("mine")

    name = registered(operator_of(forward))
    with pytest.raises(KeyError, match="mine") as caught:
        bound(name, [np.ones(3)])
    assert any("Op.forward of operator" in each for each in caught.value.__notes__)


def test_an_error_leaves_the_executor_usable():
    state = {"bad": False}

    def forward(x):
        return x * (float(x[0]) if state["bad"] else 2)

    executor = bound(registered(operator_of(forward)), [np.ones(3)])
    state["bad"] = True
    with pytest.raises(TraceError):
        executor.forward()
    state["bad"] = False
    assert executor.forward()[0].asnumpy().tolist() == [2, 2, 2]


# ----------------------------------------------------------------------------------- number and order of draws


class Noise(mx.operator.CustomOp):
    """An operator whose backward multiplies by random numbers of forward."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.drawn = RNG.uniform(1, 2, in_data[0].shape)
        self.assign(out_data[0], req[0], nd.array(self.drawn, dtype="float64") * in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], nd.array(self.drawn, dtype="float64") * out_grad[0])


NOISE = registered(Noise, traced=False)
DRAWING = {
    "dropout": lambda x: nd.Dropout(x, p=0.5) * 3,
    "two dropouts": lambda x: nd.Dropout(x, p=0.5) - nd.Dropout(x, p=0.5) * 2,
    "behind a held array": lambda x: nd.Dropout(x * nd.ones(20, dtype="float64"), p=0.5),
    "an untraced body": lambda x: nd.Custom(x, op_type=NOISE),
    "two that are run": lambda x: nd.Custom(x, op_type=NOISE) - 2 * nd.Custom(x, op_type=NOISE),
}
NESTED = registered(operator_of(DRAWING["dropout"]))
DRAWING["inside of another"] = lambda x: nd.Custom(x, op_type=NESTED) + nd.Dropout(x, p=0.5)


@pytest.mark.once
@pytest.mark.parametrize("options", [{}, {"recompute": "all"}, {"check_kernels": True}], ids=str)
@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("key", DRAWING)
def test_gradients_that_follow_draw_nothing_anew(key, watched, options):
    net = sym.Custom(sym.Variable("x"), op_type=registered(operator_of(DRAWING[key])))
    executor = net.simple_bind(mx.cpu(), "write", type_dict={"x": "float64"}, x=(20,), **options)
    executor.arg_dict["x"][:] = 1
    if watched:
        executor.set_monitor_callback(lambda name, value: None)
    seen = []
    for _ in range(3):
        seen.append(executor.forward(is_train=True)[0].asnumpy())
        executor.backward(nd.ones(20, dtype="float64"))
        np.testing.assert_allclose(executor.grad_arrays[0].asnumpy(), seen[-1], rtol=1e-12)
    assert np.any(seen[0] != seen[1])


def test_an_eager_gradient_that_would_draw_anew_is_refused():
    x = nd.ones(3)
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type=registered(operator_of(DRAWING["dropout"])))
    with pytest.raises(NotDifferentiableError, match=r"draws random numbers with Dropout.*give it a backward"):
        y.backward()


def test_operators_with_hidden_outputs_have_eager_gradients():
    def forward(x):
        return nd.LayerNorm(x, nd.ones(3, dtype="float64"), nd.zeros(3, dtype="float64")) * x

    name, grads = registered(operator_of(forward)), []
    for call in (forward, lambda x: nd.Custom(x, op_type=name)):
        x = nd.array([[1, 2, 4]], dtype="float64")
        x.attach_grad()
        with autograd.record():
            y = call(x)
        y.backward()
        grads.append(x.grad.asnumpy())
    np.testing.assert_allclose(*grads, rtol=1e-12)


def test_arrays_that_a_body_changes_count_as_they_are_when_they_are_read():
    def numbers(x):
        factor, y = np.zeros(3), x.asnumpy() * 0
        for i in range(3):
            factor[:] = i
            y = y + x.asnumpy() * factor
        return y

    def arrays(x):
        factor = nd.ones(3, dtype="float64")
        y = x * factor
        factor[:] = 2
        return y + x * factor

    for forward in (numbers, arrays):
        np.testing.assert_allclose(bound(registered(operator_of(forward)), [np.ones(3)]).forward()[0].asnumpy(), 3)


def test_an_array_overwritten_between_two_uses_is_read_again():
    name = registered(operator_of(lambda x: x * 2))
    w, g, state = map(sym.Variable, ("w", "g", "state"))
    uses = [sym.Custom(state, op_type=name) for _ in range(2)]
    net = sym.Group([uses[0], sym.sgd_mom_update(w, g, state, lr=1.0, momentum=0.5), uses[1]])
    executor = net.bind(mx.cpu(), {each: nd.ones(2) for each in ("w", "g", "state")})
    first, _, second = executor.forward()
    assert (first.asnumpy()[0], second.asnumpy()[0]) == (2, -1)


def test_zeros_of_both_signs_stay_apart():
    name = registered(operator_of(lambda x: (1 / (x * 0.0), 1 / (x * -0.0))), list_outputs=lambda self: ["a", "b"])
    outs = bound(name, [np.ones(1)]).forward()
    assert [out.asscalar() for out in outs] == [np.inf, -np.inf]


@pytest.mark.once
@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(["numbers", "shape", "dtype", "layout", "nothing"]), max_size=4), st.booleans())
def test_an_array_that_a_body_changes_in_place_has_its_current_value(changes, zeros):
    """Its elements, its shape or its dtype change, while the bytes may stay the same."""

    def body(x):
        table, y = np.zeros(6) if zeros else np.arange(6.0), 0
        for change in ("nothing", *changes):
            if change == "numbers":
                table += 1
            elif change == "shape":
                table.resize((3, 2) if table.shape == (2, 3) else (2, 3), refcheck=False)
            elif change == "dtype":
                table.dtype = "int64" if table.dtype == "float64" else "float64"
            elif change == "layout":
                table.resize(6, refcheck=False)
            y = y + (x + table.ravel()) * (1 if table.dtype == "float64" else 2)
            y = y + (x.reshape(table.shape) + table).sum()
        return y

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        expected = body(np.ones(6))
        name = registered(operator_of(lambda x: body(x.asnumpy())))
        np.testing.assert_array_equal(bound(name, [np.ones(6)]).forward()[0].asnumpy(), expected)
