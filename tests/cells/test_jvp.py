"""jvp: directional derivatives of built-in operators, and of users' operators that declare theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import Tensor, grad, jit, nd, ops, vmap
from opreg.cells.jacobian import jvp
from opreg.core.dispatch import apply
from opreg.core.mode import Recording
from opreg.errors import ArgumentError, NotDifferentiableError, OpError
from tests.builtin.test_operators import plannable
from tests.questions import of_each
from tests.rows import Row, all_rows
from tests.running import Use, agree

pytestmark = pytest.mark.usefixtures("unregistered")

X = np.random.default_rng(0).uniform(0.5, 1.5, (4, 3)).astype("float32")
V = np.random.default_rng(1).standard_normal((4, 3)).astype("float32")


def x() -> Tensor:
    return Tensor(X)


def v() -> Tensor:
    return Tensor(V)


@pytest.fixture(params=["eager", "jit"])
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return jit if request.param == "jit" else lambda function: function


def close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=tolerance, atol=tolerance)


# ------------------------------------------------------------------------------------------ built-in operators


def _smooth(row: Row) -> bool:
    return bool(row.second and row.deterministic and "float64" in row.dtypes and plannable(row))


@of_each(filter(_smooth, all_rows()), by=lambda row: row.op)
def test_jvp_agrees_with_central_differences(row: Row) -> None:
    use = Use.of(row, "float64")
    directions = {i: np.random.default_rng(i).standard_normal(use.arrays[i].shape) for i in row.grad}

    def function(*moving: Any) -> list[Any]:
        inputs: list[Any] = [Tensor(array) for array in use.arrays]
        for i, value in zip(directions, moving):
            inputs[i] = value
        outs = apply(use.op, inputs, use.attrs)
        outs = list(outs) if isinstance(outs, (tuple, list)) else [outs]
        return [out for out in outs if out.asnumpy().dtype == np.float64]

    def moved(step: float) -> list[np.ndarray]:
        return [out.asnumpy() for out in function(*[Tensor(use.arrays[i] + step * d) for i, d in directions.items()])]

    with Recording(False, row.train):
        if use.op.loss(use.attrs):
            pytest.skip("its gradient is that of a loss")
        _, along = jvp(function, [Tensor(use.arrays[i]) for i in directions], [*map(Tensor, directions.values())])
        differences = [(there - here) / 2e-6 for there, here in zip(moved(1e-6), moved(-1e-6))]
    for out, expected in zip(along, differences):
        agree(out.asnumpy(), expected, 1e-5)


# ---------------------------------------------------------------------------------------- operators of users


def sine(name: str, said: list[Any] | None = None, gradient: bool = False) -> Any:
    """An operator in NumPy with a rule for its directional derivative."""

    @mx.operator.define(name=name)
    def op(a):
        return np.sin(a.asnumpy())

    @op.infer
    def op_infer(a):
        return a

    @op.jvp
    def op_jvp(t, ins, outs):
        if said is not None:
            said.append(len(outs))
        return t[0] * nd.cos(ins[0])

    @op.vmap
    def op_vmap(ins, batched):
        return op(ins[0])

    if gradient:
        @op.grad
        def op_grad(g, ins, outs):
            return g * nd.cos(ins[0])

    return op


def test_a_rule_is_called(run):
    said: list[Any] = []
    op = sine(f"jvp_rule_{run is jit}", said)
    value, along = run(lambda a, b: jvp(lambda c: op(c * c) * c + ops.exp(c), a, b))(x(), v())
    close(value, np.sin(X * X) * X + np.exp(X))
    close(along, V * (2 * X * np.cos(X * X) * X + np.sin(X * X) + np.exp(X)))
    assert said


def test_a_rule_beside_a_gradient_is_called(run):
    said: list[Any] = []
    op = sine(f"jvp_both_{run is jit}", said, gradient=True)
    close(run(lambda a, b: jvp(op, a, b)[1])(x(), v()), V * np.cos(X))
    assert said


def test_jvp_and_grad_compose_to_second_order(run):
    op = sine(f"jvp_orders_{run is jit}", gradient=True)
    second = -V * np.sin(X)
    close(run(grad(lambda a: jvp(op, a, v())[1].sum()))(x()), second)
    close(run(lambda a: jvp(grad(lambda c: op(c).sum()), a, v())[1])(x()), second)
    close(run(lambda a: jvp(lambda c: jvp(op, c, v())[1], a, v())[1])(x()), second * V)
    close(run(vmap(lambda a, b: jvp(op, a, b)[1]))(x(), v()), V * np.cos(X))
    close(run(lambda a, b: jvp(vmap(op), a, b)[1])(x(), v()), V * np.cos(X))


def test_an_input_that_is_there_twice_and_one_that_stays(run):
    op = sine(f"jvp_twice_{run is jit}")
    function = lambda a, b: op(a) * op(a) * b + a * a  # noqa: E731
    close(run(lambda a: jvp(lambda c: function(c, v()), a, v())[1])(x()), V * (V * np.sin(2 * X) + 2 * X))
    _, (first, second) = run(lambda a, b: jvp(lambda c, d: (op(c), d * 2), (a, b), (b, b)))(x(), v())
    close(first, V * np.cos(X))
    close(second, 2 * V)


def test_jvp_takes_arrays():
    op = sine("jvp_arrays")
    value, along = mx.autograd.jvp(lambda a: nd.exp(op(a)), nd.array(X), nd.array(V))
    assert type(value) is type(along) is type(nd.array(X))
    close(along, V * np.cos(X) * np.exp(np.sin(X)))


def test_an_operator_without_gradient_is_named():
    op = sine("jvp_forward_alone")
    with pytest.raises(NotDifferentiableError, match="'jvp_forward_alone' has no gradient"):
        grad(lambda a: op(a).sum())(x())


@pytest.mark.parametrize("rule, message", [
    (lambda t, ins, outs: t[0].sum(), r"returned shape \(\) for output 0, expected \(4, 3\)"),
    (lambda t, ins, outs: (t[0], t[0]), "returned 2 values, expected 1"),
    (lambda t, ins, outs: t[0].asnumpy(), "returned ndarray for output 0, expected the result of operators")])
def test_results_of_rules_are_checked(rule, message):
    op = sine("jvp_checked")
    op.jvp(rule)
    with pytest.raises(OpError, match=f"the jvp rule of operator jvp_checked {message}"):
        jvp(op, x(), v())


@pytest.mark.parametrize("rule", [lambda t: t, lambda ins, outs: ins, lambda t, ins, outs, more: t,
                                  lambda t, ins, outs, *, alpha: t, lambda ins, t, outs: t])
def test_rules_with_other_parameters_are_refused(rule):
    op = sine("jvp_parameters")
    with pytest.raises(ArgumentError, match="the jvp rule of operator 'jvp_parameters'"):
        op.jvp(rule)


def test_a_rule_of_a_class_is_called():
    class Cube(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0].asnumpy() ** 3)

    @mx.operator.register("jvp_cube")
    class CubeProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Cube()

        def jvp(self, t, ins, outs):
            return t[0] * ins[0] * ins[0] * 3

    close(jvp(lambda a: nd.Custom(a, op_type="jvp_cube"), x(), v())[1], 3 * X * X * V)


def test_the_error_of_a_backward_in_python_names_the_rule_for_directions(run):
    class Twice(mx.operator.CustomOp):
        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

    @mx.operator.register("_example_twice")
    class TwiceProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Twice()

    with pytest.raises(NotDifferentiableError, match="'_example_twice' is Python code") as caught:
        run(lambda a, b: jvp(mx.operator.get("_example_twice"), a, b))(x(), v())
    assert "a method jvp(self, t, ins, outs) of its Prop" in "".join(caught.value.__notes__)
