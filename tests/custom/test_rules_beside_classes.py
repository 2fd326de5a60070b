"""Rules that are declared beside a ``CustomOpProp``, by decorators of its operator, hold in every entry."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError

nd, sym = mx.nd, mx.sym
_NUMBERS = itertools.count()
X = np.array([[0.5, -1.0, 2.0]], np.float32)


class Scaled(mx.operator.CustomOp):
    def __init__(self, by: float):
        self.by = by

    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.assign(out_data[0], req[0], in_data[0] * self.by)

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        self.assign(in_grad[0], req[0], out_grad[0] * self.by)


class ScaledProp(mx.operator.CustomOpProp):
    def __init__(self, by: float = 2.0):
        super().__init__()
        self.by = by

    def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
        return Scaled(self.by)


def registered(**members: Any) -> Any:
    """The operator of a Prop under a new name."""
    name = f"test_beside_{next(_NUMBERS)}"
    mx.operator.register(name)(type("Prop", (ScaledProp,), members))
    return mx.operator.get(f"custom.{name}")


def eager(op: Any, **attrs: Any) -> np.ndarray:
    x = nd.array(X)
    x.attach_grad()
    with mx.autograd.record():
        out = op(x, **attrs)
    out.backward()
    return x.grad.asnumpy()


def graph(op: Any, **attrs: Any) -> np.ndarray:
    executor = op(sym.var("x"), name="node", **attrs).simple_bind(mx.cpu(), x=X.shape)
    executor.forward(is_train=True, x=nd.array(X))
    executor.backward(nd.ones(X.shape))
    return executor.grad_dict["x"].asnumpy()


def compiled(op: Any, **attrs: Any) -> np.ndarray:
    return mx.jit(mx.grad(lambda x: op(x, **attrs).sum()))(mx.Tensor(X)).asnumpy()


def in_operators(g: Any, ins: Any, outs: Any, *, by: float) -> Any:
    return g * ins[0] * (10 * by)


def in_numpy(g: Any, ins: Any, outs: Any, *, by: float) -> Any:
    return g.asnumpy() * ins[0].asnumpy() * (10 * by)


@pytest.mark.parametrize("members", [{}, {"traced": True}, {"gradient": lambda self, g, ins, outs: 7 * g}],
                         ids=["backward", "traced", "gradient"])
@pytest.mark.parametrize("rule", [in_operators, in_numpy])
def test_a_declared_gradient_replaces_that_of_the_class(rule: Any, members: Any) -> None:
    op = registered(**members)
    for run in (eager, graph, compiled):
        assert run(op).max() in (2, 7)
    op.grad(rule)
    for attrs, by in (({}, 2), ({"by": 3.0}, 3)):
        for run in (eager, graph, compiled):
            np.testing.assert_allclose(run(op, **attrs), 10 * by * X, rtol=1e-6)
    if rule is in_operators:
        x = nd.array(X)
        x.attach_grad()
        with mx.autograd.record():
            [slope] = mx.autograd.grad(op(x), [x], create_graph=True)
        slope.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), np.full_like(X, 20))


def test_declared_rules_see_the_defaults_of_attributes() -> None:
    op = registered()
    op.vmap(lambda ins, batched, *, by: ins[0] * (100 * by))
    op.jvp(lambda t, ins, outs, *, by: t[0] * (1000 * by))
    op.kernel("beside")(lambda xp, x, *, by: x * by * by)
    op.flops(lambda ins, outs, *, by: int(by) * 1234)
    x = nd.array(X)
    for attrs, by in (({}, 2), ({"by": 3.0}, 3)):
        def call(x: Any, attrs: Any = attrs) -> Any:
            return op(x, **attrs)

        np.testing.assert_allclose(mx.autograd.vmap(call)(x).asnumpy(), 100 * by * X)
        np.testing.assert_allclose(mx.autograd.jvp(call, x, x)[1].asnumpy(), 1000 * by * X)
        np.testing.assert_allclose(call(x).asnumpy(), by * by * X)
        executor = call(sym.var("x")).simple_bind(mx.cpu(), x=X.shape)
        np.testing.assert_allclose(executor.forward(x=x)[0].asnumpy(), by * by * X)
        assert sum(step.flops or 0 for step in executor.estimate().rows) == by * 1234


@pytest.mark.parametrize("kind, rule, words", [
    ("grad", lambda g, ins: g, r"gradient of operator .*takes \(g, ins\), expected \(g, ins, outs, \*, by"),
    ("grad", 3, "expected a function, got 3"),
    ("jvp", lambda t, ins, outs, *, bye: t, "'bye'. Did you mean 'by'"),
    ("vmap", lambda ins: ins, r"expected \(ins, batched, \*, by\)"),
    ("infer", lambda x: x, "write the method infer_shape of Prop"),
    ("shapes", lambda ins, outs: (ins, outs), "write the method infer_shape of Prop"),
    ("fill", lambda ins, outs: ins, "write the method infer_shape of Prop"),
    ("types", lambda ins, outs: (ins, outs), "write the method infer_type of Prop"),
    ("infer_from_data", lambda x: x, "write the method infer_shape_from_data of Prop"),
])
def test_rules_that_could_not_be_called_are_refused_at_once(kind: str, rule: Any, words: str) -> None:
    op = registered()
    with pytest.raises((ArgumentError, TypeError), match=words):
        getattr(op, kind)(rule)
    assert eager(op).max() == 2


def test_a_class_with_any_keywords_has_rules_of_any_keywords() -> None:
    def initialize(self: Any, **keywords: str) -> None:
        ScaledProp.__init__(self)

    op = registered(__init__=initialize)
    op.grad(lambda g, ins, outs, *, by: g * float(by))
    assert eager(op, by=5.0).max() == 5


def test_a_number_in_place_of_an_input_of_a_class_names_the_input() -> None:
    op = registered(list_arguments=lambda self: ["first", "second"])
    with pytest.raises(ArgumentError, match="input second must be an array or symbol, got float"):
        op(nd.array(X), 2.0)
    with pytest.raises(ArgumentError, match="input second must be an array or symbol, got int"):
        op(sym.var("x"), 2)
