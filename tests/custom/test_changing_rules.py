"""Gradient rules that change a value which they read, such as a counter: graphs call them in each backward pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import opreg as mx
from opreg import Tensor, autograd, gluon, nd, nn, sym
from opreg.cells.grad import grad, value_and_grad
from opreg.custom.operator import define

NAMES = iter(range(1000))


def of_function(traced: bool) -> tuple[Any, Any]:
    """An operator that is a function, for arrays and for symbols: its k-th gradient is k."""
    count = {"k": 0.0}

    @define(name=f"_example_counts{next(NAMES)}", traced=traced)
    def same(x: Any) -> Any:
        return x * 1

    @same.grad
    def rule(g: Any, ins: Any, outs: Any) -> Any:
        count["k"] += 1
        return g * count["k"]

    return same, same


def of_prop() -> tuple[Any, Any]:
    """The same as an operator of a Prop with a method ``gradient``."""
    count, name = {"k": 0.0}, f"_example_counts{next(NAMES)}"

    class Same(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            self.assign(out_data[0], req[0], in_data[0])

    @mx.operator.register(name)
    class SameProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> Any:
            return Same()

        def gradient(self, g: Any, ins: Any, outs: Any) -> Any:
            count["k"] += 1
            return g * count["k"]

    return (lambda x: nd.Custom(x, op_type=name)), (lambda x: sym.Custom(x, op_type=name))


def eager(op: Any, symbolic: Any) -> Callable[[], float]:
    x = nd.array([1.0])
    x.attach_grad()

    def step() -> float:
        with autograd.record():
            y = op(x)
        y.backward()
        return float(x.grad.asscalar())

    return step


def executor(op: Any, symbolic: Any) -> Callable[[], float]:
    return step_of(symbolic(sym.var("x")))


def step_of(symbol: Any) -> Callable[[], float]:
    bound = symbol.simple_bind(ctx=mx.cpu(), x=(1,))

    def step() -> float:
        bound.forward(is_train=True)
        bound.backward(nd.ones((1,)))
        return float(bound.grad_dict["x"].asscalar())

    return step


def hybridized(op: Any, symbolic: Any) -> Callable[[], float]:
    class Block(gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return op(x) if F is nd else symbolic(x)

    block = Block()
    block.hybridize()
    return eager(block, None)


def compiled(op: Any, symbolic: Any) -> Callable[[], float]:
    gradient = mx.jit(value_and_grad(lambda x: op(x) * 1))
    return lambda: float(gradient(Tensor([1.0]))[1].asnumpy()[0])


def of_compiled(op: Any, symbolic: Any) -> Callable[[], float]:
    gradient = grad(mx.jit(lambda x: op(x) * 1))
    return lambda: float(gradient(Tensor([1.0])).asnumpy()[0])


KINDS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "function": lambda: of_function(False), "traced": lambda: of_function(True), "prop": of_prop}


@pytest.mark.filterwarnings("ignore:.*is not compiled but runs as Python")
@pytest.mark.parametrize("users", [eager, executor, hybridized, compiled, of_compiled])
@pytest.mark.parametrize("kind", KINDS)
def test_rule_runs_once_in_each_backward(kind: str, users: Callable[[Any, Any], Callable[[], float]]) -> None:
    step = users(*KINDS[kind]())
    assert [step() for _ in range(4)] == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_no_warning_and_a_second_executor_goes_on(kind: str) -> None:
    _, symbolic = KINDS[kind]()
    symbol = symbolic(sym.var("x"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = step_of(symbol)
        assert [first(), first()] == [1, 2]
        second = step_of(symbol)
        assert [second(), first(), second()] == [3, 4, 5]


def test_two_nodes_of_an_operator_and_a_rule_declared_again() -> None:
    op, symbolic = of_function(False)
    step = step_of(symbolic(symbolic(sym.var("x"))))
    assert [step(), step()] == [1 * 2, 3 * 4]

    @op.grad
    def rule(g: Any, ins: Any, outs: Any) -> Any:
        return g * 10

    assert [step(), step()] == [100, 100]


def test_a_bprop_that_counts_runs_once_in_each_backward_of_an_executor() -> None:
    class Same(nn.Cell):
        count = 0.0

        def construct(self, x: Any) -> Any:
            return x * 1

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            Same.count += 1
            return (dout * Same.count,)

    step = step_of(Same().to_symbol())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [step() for _ in range(4)] == [1, 2, 3, 4]


def test_second_order_of_a_compiled_function() -> None:
    count = {"k": 0.0}

    @define(name=f"_example_counts{next(NAMES)}")
    def cube(x: Any) -> Any:
        return x * x * x

    @cube.grad
    def rule(g: Any, ins: Any, outs: Any) -> Any:
        count["k"] += 1
        return g * ins[0] * ins[0] * count["k"]

    second = mx.jit(grad(grad(cube)))
    assert [float(second(Tensor([2.0])).asnumpy()[0]) for _ in range(3)] == [4, 8, 12]
