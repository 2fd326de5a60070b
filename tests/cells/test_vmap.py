"""vmap: a function of one sample applied to many, eagerly and compiled, around and inside of gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import Tensor, grad, jit, nd, nn, ops, vmap
from opreg.cells.jacobian import jacrev, jvp
from opreg.errors import ArgumentError, OpError, ShapeError
from opreg.nn.grad_func import custom_vjp

pytestmark = pytest.mark.usefixtures("unregistered")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 3)).astype("float32")
W = RNG.standard_normal(3).astype("float32")


def x() -> Tensor:
    return Tensor(X)


def w() -> Tensor:
    return Tensor(W)


@pytest.fixture(params=["eager", "jit"])
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return jit if request.param == "jit" else lambda function: function


def close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=tolerance, atol=tolerance)


def looped(function: Callable[..., Any], axes: Sequence[int | None]) -> Callable[..., Any]:
    def loop(*inputs: Any) -> Any:
        size = next(each.shape[0] for each, axis in zip(inputs, axes) if axis is not None)
        return ops.stack([function(*[each if axis is None else each[i] for each, axis in zip(inputs, axes)])
                          for i in range(size)])

    return loop


def agrees(function: Callable[..., Any], axes: Sequence[int | None], run: Callable[..., Any], *inputs: Any) -> None:
    """Asserts that vmap gives the same as a loop over samples; also its gradients, and vmap of gradients."""
    loop, every = looped(function, axes), (*range(len(inputs)),)
    close(run(vmap(function, tuple(axes)))(*inputs), loop(*inputs).asnumpy())

    def around(batch: Callable[..., Any]) -> Callable[..., Any]:
        return grad(lambda *values: ops.sin(batch(*values)).sum(), every)

    for found, expected in zip(run(around(vmap(function, tuple(axes))))(*inputs), around(loop)(*inputs)):
        close(found, expected.asnumpy(), 1e-4)
    for i in every:
        inside = grad(lambda *values: ops.sin(function(*values)).sum(), i)
        close(run(vmap(inside, tuple(axes)))(*inputs), looped(inside, axes)(*inputs).asnumpy(), 1e-4)


# ---------------------------------------------------------------------------------------------------- axes


@pytest.mark.parametrize("source", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("target", [0, 1, 2, -1, -3])
def test_vmap_maps_over_the_given_axes(source: int, target: int) -> None:
    data = RNG.standard_normal((2, 3, 4)).astype("float32")
    found = vmap(lambda a: a * 2, source, target)(Tensor(data))
    assert np.array_equal(found.asnumpy(), np.moveaxis(data * 2, source, target))


def test_axes_may_be_nested_like_the_inputs() -> None:
    def function(pair: Any, scales: Any, name: str) -> Any:
        assert name == "sum"
        return {"a": pair[0] * scales["s"], "b": (pair[1].sum(), "text")}

    found = vmap(function, ((0, 1), {"s": None}, None), {"a": 1, "b": 0})((x(), Tensor(X.T)), {"s": w()}, "sum")
    assert np.array_equal(found["a"].asnumpy(), (X * W).T)
    close(found["b"][0], X.sum(1))
    assert found["b"][1] == "text"


def test_inputs_that_all_samples_share() -> None:
    shared, own = vmap(lambda a, b: (b * 2, a + b), (0, None), (None, 0))(x(), w())
    assert shared.shape == (3,) and own.shape == (4, 3)
    assert vmap(lambda a, b: b * 2, (0, None), -1)(x(), w()).shape == (3, 4)
    assert vmap(lambda a: 3.0)(x()) == 3.0
    assert vmap(lambda a: a[0] * 0 + a.shape[0])(Tensor(X[:0])).shape == (0,)
    assert vmap(lambda a, b: b, (0, None))(Tensor(X[:0]), w()).shape == (0, 3)


def test_vmap_takes_numpy_arrays_and_ndarrays() -> None:
    assert type(vmap(lambda a: a * 2)(X)) is Tensor
    found = mx.autograd.vmap(lambda a, b: nd.exp(a) * b, (0, None))(nd.array(X), nd.array(W))
    assert type(found) is type(nd.array(X))
    close(found, np.exp(X) * W)


def test_arrays_are_recorded() -> None:
    data, weight = nd.array(X), nd.array(W)
    data.attach_grad()
    weight.attach_grad()
    with mx.autograd.record():
        loss = mx.autograd.vmap(lambda a, b: nd.sum(nd.tanh(a * b)), (0, None))(data, weight)
    loss.backward()
    slope = 1 - np.tanh(X * W) ** 2
    close(data.grad, slope * W)
    close(weight.grad, (slope * X).sum(0))


def test_results_share_no_memory():
    given = x()
    assert vmap(lambda a: a)(given) is not given
    flat = vmap(lambda a: a.reshape(3))(given)
    flat[0] = 7.0
    assert np.array_equal(given.asnumpy(), X)


def test_keywords_are_shared() -> None:
    close(vmap(lambda a, scale: a * scale)(x(), scale=w()), X * W)


# ---------------------------------------------------------------------------------------------- transformations


def network() -> Any:
    mx.set_seed(0)
    return nn.SequentialCell(nn.Dense(3, 5), nn.Tanh(), nn.Dense(5, 2))


def test_vmap_gives_per_sample_gradients(run):
    net = network()
    weights = net.trainable_params()
    target = Tensor(RNG.standard_normal((4, 2)).astype("float32"))

    def loss(sample: Any, label: Any) -> Any:
        return ((net(sample.reshape(1, 3)) - label) ** 2).sum()

    found = run(vmap(grad(loss, None, weights)))(x(), target)
    for i in range(4):
        for many, one in zip(found, grad(loss, None, weights)(x()[i], target[i])):
            close(many[i], one.asnumpy())


def cube(a: Any) -> Any:
    return (a * a * a).sum() * a[0]


def hessian(a: np.ndarray) -> np.ndarray:
    """Hessian of ``cube``."""
    result = np.diag(6 * a * a[0])
    result[0, :] += 3 * a ** 2
    result[:, 0] += 3 * a ** 2
    return result


def test_vmap_of_jvp_gives_the_hessian(run):
    eye = Tensor(np.eye(3, dtype="float32"))
    forward = run(lambda a: vmap(lambda direction: jvp(grad(cube), a, direction)[1])(eye))
    reverse = run(jacrev(grad(cube)))
    close(forward(w()), hessian(W))
    close(reverse(w()), hessian(W))
    close(run(vmap(jacrev(grad(cube))))(x()), np.stack([hessian(row) for row in X]), 1e-4)


def test_vmap_may_be_nested_and_map_jvp(run):
    outer = run(vmap(vmap(lambda a, b: a * b, (0, None)), (None, 0)))
    close(outer(w(), w()), np.outer(W, W))
    found = run(vmap(lambda a: jvp(ops.sin, a, a)[1]))(x())
    close(found, np.cos(X) * X)
    value, along = run(lambda a: jvp(vmap(lambda b: ops.sin(b).sum()), a, a))(x())
    close(value, np.sin(X).sum(1))
    close(along, (np.cos(X) * X).sum(1))


def test_weights_from_outside_get_gradients_through_vmap():
    net = network()
    weights = net.trainable_params()
    found = grad(lambda a: vmap(lambda row: net(row.reshape(1, 3)).sum())(a).sum(), None, weights)(x())
    for many, one in zip(found, grad(lambda a: net(a).sum(), None, weights)(x())):
        close(many, one.asnumpy())


# ---------------------------------------------------------------------------------------- gradients of one's own


@custom_vjp
def step(a: Any, b: Any) -> Any:
    return ops.tanh(a) * b


step.defbwd(lambda a, b, out, g: (g * 0.5 * a, g * 3 * out))


class Own(mx._Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        return ops.exp(a) * b

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return g * a * 2, g * b


@mx.operator.define(traced=True, name="vmap_traced")
def followed(a, b):
    return nd.tanh(a) * b


@mx.operator.define(traced=True, name="vmap_ruled")
def ruled(a, b):
    return nd.tanh(a) * b


@ruled.grad
def ruled_grad(g, ins, outs):
    return g * 7 * ins[0], g * outs[0]


class Backward(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], nd.tanh(in_data[0]) * in_data[1])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 5 * in_data[0])
        self.assign(in_grad[1], req[1], out_grad[0] * out_data[0])


@mx.operator.register("vmap_backward")
class BackwardProp(mx.operator.CustomOpProp):
    traced = True

    def list_arguments(self):
        return ["a", "b"]

    def create_operator(self, ctx, shapes, dtypes):
        return Backward()


def propped(a: Any, b: Any) -> Any:
    return nd.Custom(a, b, op_type="vmap_backward")


@pytest.mark.parametrize("function", [step, Own.apply, followed, ruled, propped],
                         ids=["Cell", "Function", "body", "ruled body", "backward"])
@pytest.mark.parametrize("axes", [(0, None), (0, 0), (None, 0)])
def test_vmap_follows_users_gradients(run, function, axes):
    inputs = [Tensor(X) if axis == 0 else Tensor(W) for axis in axes]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agrees(lambda a, b: function(a, b), axes, run, *inputs)


@pytest.mark.parametrize("axes", [(0, None), (0, 0), (None, 0)])
def test_gradients_that_are_the_same_for_all_samples(run, axes):
    @custom_vjp
    def function(a: Any, b: Any) -> Any:
        return a * b

    function.defbwd(lambda a, b, out, g: (None, ops.ones_like(b)))
    agrees(lambda a, b: function(a, b), axes, run, *[x() if axis == 0 else w() for axis in axes])


def test_vmap_maps_loops_in_graphs(run):
    agrees(lambda a, b: ops.scan(lambda c, t: (c * t, c + t), b[0], a, unroll=False)[1], (0, None), run, x(), w())
    agrees(lambda a, b: ops.fori_loop(0, 3, lambda i, v: v * ops.sin(v) + b, a, unroll=False), (0, None), run, x(),
           w())


# ------------------------------------------------------------------------------------------- operators of users


def tanh(calls: list[Any], name: str) -> Any:
    """An operator in NumPy that records the shapes of its inputs."""

    @mx.operator.define(name=name)
    def op(a, b):
        calls.append(tuple(a.shape))
        return np.tanh(a.asnumpy()) * b.asnumpy()

    @op.infer
    def op_infer(a, b):
        return a

    @op.grad
    def op_grad(g, ins, outs):
        return g * (1 - (outs[0] / ins[1]) ** 2) * ins[1], g * outs[0] / ins[1]

    return op


def test_an_operator_without_rule_runs_for_each_sample_and_says_so_once():
    calls: list[Any] = []
    op = tanh(calls, "vmap_opaque")
    with pytest.warns(UserWarning, match="'vmap_opaque' has no vmap rule: it runs once for each of 4 samples; "
                                         "@vmap_opaque.vmap says"):
        close(vmap(lambda a, b: op(a, b), (0, None))(x(), w()), np.tanh(X) * W)
    assert calls == [(3,)] * 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agrees(lambda a, b: op(a, b), (0, None), lambda f: f, x(), w())


def test_a_rule_of_a_user_is_called(run):
    calls: list[Any] = []
    op = tanh(calls, f"vmap_with_rule_{run is jit}")
    said: list[Any] = []

    @op.vmap
    def rule(ins, batched):
        said.append(batched)
        a, b = ins
        return op(a if batched[0] else ops.broadcast_to(a, b.shape), b if batched[1] else ops.broadcast_to(b, a.shape))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for axes in ((0, None), (None, 0), (0, 0)):
            agrees(lambda a, b: op(a, b), axes, run, *[x() if axis == 0 else w() for axis in axes])
    assert {tuple(each) for each in said} == {(True, False), (False, True), (True, True)}
    assert (4, 3) in calls


@pytest.mark.parametrize("rule, message", [
    (lambda ins, batched: ins[0].sum(), r"returned shape \(\) for output 0, expected \(4, 3\): 4 samples of \(3,\)"),
    (lambda ins, batched: (ins[0], ins[0]), "returned 2 values, expected 1"),
    (lambda ins, batched: ins[0].asnumpy(), "returned ndarray for output 0, expected the result of operators")])
def test_results_of_rules_are_checked(rule, message):
    op = tanh([], "vmap_checked")
    op.vmap(rule)
    with pytest.raises(OpError, match=f"the vmap rule of operator vmap_checked {message}"):
        vmap(lambda a, b: op(a, b), (0, None))(x(), w())


@pytest.mark.parametrize("rule", [lambda ins: ins, lambda: 0, lambda ins, batched, outs: ins,
                                  lambda ins, batched, *, alpha: ins, lambda batched, ins: ins])
def test_rules_with_other_parameters_are_refused(rule):
    op = tanh([], "vmap_parameters")
    with pytest.raises(ArgumentError, match="the vmap rule of operator 'vmap_parameters'"):
        op.vmap(rule)


def test_a_rule_of_a_class_is_called(run):
    calls: list[Any] = []

    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            calls.append(in_data[0].shape)
            self.assign(out_data[0], req[0], in_data[0].asnumpy() * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    class TwiceProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Twice()

        def vmap(self, ins, batched):
            return nd.Custom(ins[0], op_type="vmap_twice")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mx.operator.register("vmap_twice")(TwiceProp)
    close(run(vmap(lambda a: nd.Custom(a, op_type="vmap_twice")))(x()), X * 2)
    assert set(calls) <= {(4, 3)}

    class Wrong(TwiceProp):
        def vmap(self, ins):
            return ins

    with pytest.raises(ArgumentError, match=r"Wrong.vmap takes \(self, ins\), expected \(self, ins, batched\)"):
        mx.operator.register("vmap_wrong")(Wrong)


# ------------------------------------------------------------------------------------------------ random numbers


def test_random_numbers_are_drawn_for_each_sample(run):
    found = run(vmap(lambda a: a + ops.rand(2)))(Tensor(np.zeros((4, 2), "float32"))).asnumpy()
    assert len(np.unique(found)) == 8
    kept = run(vmap(lambda a: ops.dropout(a, 0.5)))(Tensor(np.ones((8, 64), "float32"))).asnumpy()
    assert len(np.unique(kept, axis=0)) == 8


# ----------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("arguments, kind, message", [
    ((3,), TypeError, "fn must be a Cell or a function, got int"), ((abs, "0"), TypeError, "in_axes must be an int"),
    ((abs, True), TypeError, "in_axes must be an int"), ((abs, 0, [0.5]), TypeError, "out_axes must be an int"),
    ((abs, None), ArgumentError, "in_axes is None")])
def test_wrong_options_of_vmap_are_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        vmap(*arguments)


@pytest.mark.parametrize("in_axes, out_axes, kind, message", [
    (0, 0, ShapeError, r"tensor 1 of the inputs has 3 samples along axis 0 of \(3,\), tensor 0 has 4 along axis 0"),
    ((None, None), 0, ArgumentError, "no input has an axis of samples"),
    ((0,), 0, ArgumentError, "in_axes has 1 members, there are 2 inputs"),
    ((0, 1), 0, ShapeError, r"tensor 1 of the inputs, \(3,\), has no axis 1"),
    ((-3, None), 0, ShapeError, r"tensor 0 of the inputs, \(4, 3\), has no axis -3"),
    ((0, (0,)), 0, ArgumentError, r"in_axes has \(0,\) in the place of one tensor"),
    ((0, None), None, ArgumentError, "output 0 differs from sample to sample"),
    ((0, None), 2, ShapeError, "output 0, of 2 axes, has no axis 2"),
    ((0, None), (0, 0), ArgumentError, r"out_axes has \(0, 0\) in the place of one tensor")])
def test_wrong_axes_of_vmap_are_refused(run, in_axes, out_axes, kind, message):
    with pytest.raises(kind, match=message):
        run(vmap(lambda a, b: a + b, in_axes, out_axes))(x(), w())


def test_values_of_one_sample_cannot_be_read(run):
    with pytest.raises(TypeError, match=r"bool\(\) reads the values of one sample in vmap of"):
        run(vmap(lambda a: a if a.sum() > 0 else -a))(x())
    with pytest.raises(TypeError, match="reads the values of one sample"):
        run(vmap(lambda a: a * int(a.sum())))(x())
    with pytest.raises(TypeError, match="shape of operator '_npx_nonzero' depends on values"):
        run(vmap(lambda a: ops.nonzero(a)))(x())
    factor = Tensor(2.0)
    close(run(vmap(lambda a: a * (2 if factor > 1 else 1)))(x()), X * 2)


def test_shapes_that_depend_on_values():
    @mx.operator.define(name="vmap_positive")
    def positive(a):
        return a.asnumpy()[a.asnumpy() > 0]

    @positive.infer_from_data
    def positive_shape(a):
        return (int((a.asnumpy() > 0).sum()),)

    @positive.infer
    def positive_infer(a):
        return (None,)

    with pytest.raises(TypeError, match="shape of operator 'vmap_positive' depends on values"):
        vmap(lambda a: positive(a))(x())


def test_changes_are_refused():
    net = nn.SequentialCell(nn.BatchNorm1d(3))
    net.set_train(True)
    with pytest.raises(ArgumentError, match=r"changes its inputs in place.*set_train\(False\)"):
        vmap(lambda a: net(a.reshape(1, 3)))(x())
    net.set_train(False)
    close(vmap(lambda a: net(a.reshape(1, 3))[0])(x()), net(x()).asnumpy())
    weight = mx.Parameter(Tensor(W), name="weight")

    def assign(a: Any) -> Any:
        weight.set_data(weight + a)
        return a

    with pytest.raises(ArgumentError, match="assigns weight"):
        vmap(assign)(x())
    assert np.array_equal(weight.asnumpy(), W)


def test_closure_variables_are_those_of_each_function() -> None:
    """Two functions share their code, and each has variables of its own: a compiled function sees changes of both."""
    def made(factor: float) -> tuple[Any, Any]:
        def scaled(x: Any) -> Any:
            return x * factor

        def change(value: float) -> None:
            nonlocal factor
            factor = value

        return scaled, change

    (plain, change_plain), (mapped, change_mapped) = made(2.0), made(3.0)
    of_samples = vmap(mapped)
    compiled, x = jit(lambda x: plain(x) + of_samples(x)), Tensor([1.0, 2.0])
    for plain_factor, mapped_factor in ((2.0, 3.0), (2.0, 5.0), (7.0, 5.0)):
        change_plain(plain_factor)
        change_mapped(mapped_factor)
        expected = (plain_factor + mapped_factor) * x.asnumpy()
        np.testing.assert_array_equal(compiled(x).asnumpy(), expected)
