"""Python code that runs inside a graph reads and sets the context variables of the caller, such as the settings of
decimal arithmetic."""

from __future__ import annotations

import contextvars
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from opreg import autograd, gluon, nd, sym
from opreg.cells.cell import Cell
from opreg.cells.grad import grad
from opreg.cells.jit import jit
from opreg.cells.tensor import Tensor
from opreg.custom.custom_op import CustomOp, CustomOpProp
from opreg.custom.operator import define, register
from opreg.nn import ops

SCALE = contextvars.ContextVar("SCALE", default=1.0)
CALLS = contextvars.ContextVar("CALLS", default=0)


def scale() -> float:
    """The caller's factor; counts the calls."""
    CALLS.set(CALLS.get() + 1)
    return SCALE.get()


class Scaling(CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * scale())

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * scale())


@register("_example_context_scaling")
class ScalingProp(CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Scaling()


@define(name="_example_context_function")
def scaled(x):
    return x * scale()


@scaled.grad
def scaled_gradient(g, ins, outs):
    return (g * scale(),)


class Double(Cell):
    def construct(self, x: Any) -> Any:
        return x * 2


class Block(gluon.HybridBlock):
    """A block that applies a function."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.function(x)


def hooked(register_hook: str, hook: Callable[..., Any]) -> Cell:
    cell = Double()
    getattr(cell, register_hook)(hook)
    return cell


def custom(x: Any) -> Any:
    home = sym if isinstance(x, sym.Symbol) else nd if type(x) is nd.NDArray else ops
    return home.Custom(x, op_type="_example_context_scaling")


@define(name="_example_context_traced", traced=True)
def traced(x):
    return x * SCALE.get()


def looped(x: Any) -> Any:
    """A traced operator in the body of a loop or branch, which is compared with what it read before each run."""
    if isinstance(x, sym.Symbol) or type(x) is nd.NDArray:
        return (sym if isinstance(x, sym.Symbol) else nd).contrib.foreach(lambda row, _: (traced(row), _), x, [])[0]
    return ops.cond(x.sum() > 0, lambda: traced(x), lambda: x)


#: Functions that call Python code in a graph.
FUNCTIONS: dict[str, Callable[[], Any]] = {
    "CustomOp": lambda: custom,
    "function": lambda: scaled,
    "body of a loop": lambda: looped,
    "forward hook": lambda: hooked("register_forward_hook", lambda cell, ins, out: out * scale()),
    "forward pre hook": lambda: hooked("register_forward_pre_hook", lambda cell, ins: ins[0] * scale()),
    "backward hook": lambda: hooked("register_backward_hook", lambda cell, gin, gout: (gin[0] * scale(),)),
    "backward pre hook": lambda: hooked("register_backward_pre_hook", lambda cell, gout: (gout[0] * scale(),)),
}


def compiled(function: Callable) -> Callable[[], Any]:
    """A call of a compiled function."""
    run = jit(function)
    return lambda: run(Tensor([1.0, 2.0]))


def gradient(function: Callable) -> Callable[[], Any]:
    """A call of a gradient."""
    run = grad(lambda x: function(x).sum())
    return lambda: run(Tensor([1.0, 2.0]))


def block_gradient(block: Callable) -> Callable[[], Any]:
    """A call of a block, and its gradient."""
    def run() -> Any:
        x = nd.array([[1.0], [2.0]])
        x.attach_grad()
        with autograd.record():
            y = block(x)
        y.backward()
        return x.grad

    return run


def hybridized(function: Callable) -> gluon.HybridBlock:
    block = Block(function)
    block.hybridize()
    return block


#: Ways to run them, and the ways whose answers are right.
WAYS: dict[str, tuple[Callable[[Callable], Callable[[], Any]], Callable[[Callable], Callable[[], Any]]]] = {
    "compiled": (compiled, lambda f: lambda: f(Tensor([1.0, 2.0]))),
    "compiled gradient": (lambda f: compiled(grad(lambda x: f(x).sum())), gradient),
    "gradient of a compiled function": (lambda f: gradient(jit(f)), gradient),
    "hybridized": (lambda f: block_gradient(hybridized(f)), block_gradient),
}


def answers(run: Callable[[], Any]) -> list[tuple[list[float], bool]]:
    """Results of calls with several factors, and whether the caller sees that the code has set a variable."""
    found = []
    for factor in (1.0, 1.0, 5.0, 5.0, 7.0):
        SCALE.set(factor)
        before = CALLS.get()
        found.append((run().asnumpy().tolist(), CALLS.get() > before))
    return found


@pytest.mark.parametrize("name, way", [(name, way) for name, way in itertools.product(FUNCTIONS, WAYS)
                                       if way != "hybridized" or "hook" not in name])
def test_python_in_a_graph_has_the_context_variables_of_its_caller(name, way):
    run, right = WAYS[way]
    assert contextvars.Context().run(answers, run(FUNCTIONS[name]())) == contextvars.Context().run(
        answers, right(FUNCTIONS[name]()))
