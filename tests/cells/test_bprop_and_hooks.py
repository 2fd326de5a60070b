"""Cells with bprop and hooks in one program: eager and compiled gradients agree with central differences.

Each ``bprop`` is the derivative of its ``construct``. Each hook leaves gradients as they are, or scales them by a
number that its row says; outputs of forward hooks and pre-hooks are part of what is differentiated.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg
from opreg.cells.cell import Cell
from opreg.cells.context_settings import GRAPH_MODE, PYNATIVE_MODE, set_context
from opreg.cells.dtype import float16, float64
from opreg.cells.function import _Function
from opreg.cells.grad import GradOperation, grad, value_and_grad
from opreg.cells.handles import convention
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter
from opreg.cells.tensor import Tensor
from opreg.cells.tensor_hooks import HookBackward, InsertGradientOf
from opreg.cells.vmap import vmap
from opreg.nn import ops
from opreg.nn.compiler_settings import recompute
from opreg.nn.grad_func import custom_vjp
from opreg.nn.layers import CellList, Dense, SequentialCell
from tests.questions import of_each
from tests.recorded.mindspore_bprop import BPROP_PROGRAMS, MODES, OTHERWISE, asked, weighted, with_hooks
from tests.running import fit

X, Y = np.array([[0.4, -1.1, 0.8], [1.3, 0.2, -0.6]]), np.array([[0.9, 0.5, -1.2], [-0.3, 1.4, 0.7]])


class Cube(Cell):
    """The third power."""

    def construct(self, x: Any) -> Any:
        return x * x * x

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (dout * x * x * 3,)


class Bare(Cube):
    """The third power; its bprop returns the only gradient without a tuple."""

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return dout * x * x * 3


class FromOutput(Cell):
    """exp, whose gradient is computed from the output."""

    def construct(self, x: Any) -> Any:
        return ops.exp(x)

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (dout * out,)


class Product(Cell):
    """A product with a factor that may be left out or given by name."""

    def construct(self, x: Any, y: Any, factor: float = 2.0) -> Any:
        return x * y * factor

    def bprop(self, x: Any, y: Any, factor: float, out: Any, dout: Any) -> Any:
        return dout * y * factor, dout * x * factor, None


class Masked(Cell):
    """Values where a mask of integers is 1; the mask has no gradient."""

    def construct(self, x: Any, mask: Any) -> Any:
        return x * x * mask.astype("float64")

    def bprop(self, x: Any, mask: Any, out: Any, dout: Any) -> Any:
        return dout * 2 * x * mask.astype("float64"), None


class Two(Cell):
    """Two outputs, in a tuple."""

    def construct(self, x: Any, y: Any) -> Any:
        return x * y, x + y * y

    def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
        first, second = dout
        return first * y + second, first * x + second * 2 * y


class OfList(Cell):
    """The product of a list's two tensors."""

    def construct(self, pair: Any) -> Any:
        return pair[0] * pair[1]

    def bprop(self, pair: Any, out: Any, dout: Any) -> Any:
        return ([dout * pair[1], dout * pair[0]],)


class OfDict(Cell):
    """The product of a dict's two tensors."""

    def construct(self, pair: Any) -> Any:
        return pair["a"] * ops.sin(pair["b"])

    def bprop(self, pair: Any, out: Any, dout: Any) -> Any:
        return ({"a": dout * ops.sin(pair["b"]), "b": dout * pair["a"] * ops.cos(pair["b"])},)


class Weighted(Cell):
    """A product with a Parameter, whose gradient bprop gives by the Parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor(np.array([0.5, -1.5, 2.0])), name="w")
        self.internal_params = [self.w]

    def construct(self, x: Any) -> Any:
        return x * self.w * self.w

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (dout * self.w * self.w,), {self.w: (dout * x * self.w * 2).sum(axis=0)}


class Inside(Cell):
    """A Cell with bprop that calls another one in its construct and in its bprop."""

    def __init__(self) -> None:
        super().__init__()
        self.cube, self.exp = Cube(), FromOutput()

    def construct(self, x: Any) -> Any:
        return self.cube(x) * 2

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (dout * 6 * x * x * self.exp(x) / self.exp(x),)


class Differentiates(Cube):
    """The third power; its bprop calls ``grad``."""

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (dout * grad(lambda a: (a * a * a).sum())(x),)


class JittedBprop(Cube):
    """The third power, whose bprop is compiled."""

    @jit
    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (dout * x * x * 3,)


class JittedConstruct(Cube):
    """The third power, whose construct is compiled."""

    @jit
    def construct(self, x: Any) -> Any:
        return x * x * x


class Branches(Cell):
    """A Cell with bprop that branches on values."""

    def construct(self, x: Any) -> Any:
        return x * x if x[0, 0] > 0 else x * 3

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (dout * 2 * x if x[0, 0] > 0 else dout * 3,)


class CubeFunction(_Function):
    """The third power as a function with static methods."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, dout: Any) -> Any:
        (x,) = ctx.saved_tensors
        return dout * x * x * 3


class Around(Cell):
    """A dense layer, a Cell in the middle, and a product behind it."""

    def __init__(self, middle: Callable[..., Any]) -> None:
        super().__init__()
        rng = np.random.default_rng(3)
        weight, bias = Tensor(rng.standard_normal((3, 3)) / 2), Tensor(rng.standard_normal(3))
        self.dense = Dense(3, 3, weight, bias, dtype=float64)
        self.middle = middle

    def construct(self, x: Any) -> Any:
        return ops.tanh(self.middle(self.dense(x))) * x


def hooked(register: str, hook: Callable[..., Any], cell: Cell | None = None, remove: bool = False, **settings: Any
           ) -> Cell:
    """A Cell with a hook, which may be removed again."""
    cell = cell or Cube()
    handle = getattr(cell, register)(hook, **settings)
    if remove:
        handle.remove()
    return cell


def twice(*gradients: Any) -> Any:
    return tuple([each * 2 for each in gradients])


def doubled_of_tensor(x: Any) -> Any:
    y = x * x
    y.register_hook(lambda g: g * 2)
    return y * ops.sin(y)


def scaled_weight() -> Cell:
    net = Around(Cube())
    for weight in net.trainable_params():
        weight.register_hook(lambda g: g * 2)
    return net


def with_vjp() -> Callable[..., Any]:
    cube = custom_vjp(lambda x: x * x * x)
    cube.defbwd(lambda x, out, dout: (dout * x * x * 3,))
    return cube


def mixed() -> Cell:
    net = Around(Cube())
    net.middle.to_float(float16)
    return net


@dataclass(frozen=True)
class Program:
    """A program, the factors by which hooks scale gradients of inputs and weights, and whether central differences
    apply to its first and second order."""

    make: Callable[[], Any]
    inputs: tuple[np.ndarray, ...] = (X,)
    scale: float = 1.0
    weights: float = 1.0
    smooth: bool = True
    second: bool = True


PAIR = X, Y
HOOK = "register_backward_hook"
PROGRAMS = {
    "bprop": Program(Cube),
    "bprop that returns no tuple": Program(Bare),
    "bprop from the output": Program(FromOutput),
    "bprop in a Cell": Program(lambda: Around(Cube())),
    "bprop in Cells in a row": Program(lambda: SequentialCell(Around(Cube()), Cube(), Around(FromOutput()))),
    "bprop in a list of Cells": Program(lambda: CellList([Cube(), Around(Bare())])[1]),
    "bprop in a bprop": Program(Inside),
    "bprop with a Parameter": Program(Weighted),
    "bprop with a Parameter in a Cell": Program(lambda: Around(Weighted())),
    "bprop that calls grad": Program(Differentiates),
    "bprop that is compiled": Program(JittedBprop),
    "bprop of a compiled construct": Program(JittedConstruct),
    "bprop that branches by numbers": Program(lambda: Around(Branches())),
    "bprop with a default": Program(Product, PAIR),
    "bprop with keywords": Program(lambda: (lambda net: lambda x, y: net(x, factor=3.0, y=y))(Product()), PAIR),
    "bprop with a number as input": Program(lambda: (lambda net: lambda x, y: net(x, y, 4.0))(Product()), PAIR),
    "bprop that gives None": Program(
        lambda: (lambda net: lambda x: net(x, Tensor(np.array([[1, 0, 1], [0, 1, 1]], np.int32))))(Masked())),
    "bprop of two outputs": Program(lambda: (lambda net: lambda x, y: ops.mul(*net(x, y)))(Two()), PAIR),
    "bprop of two outputs, one of them used": Program(lambda: (lambda net: lambda x, y: net(x, y)[1])(Two()), PAIR),
    "bprop of a list": Program(lambda: (lambda net: lambda x, y: net([x, y]))(OfList()), PAIR),
    "bprop of a dict": Program(lambda: (lambda net: lambda x, y: net({"a": x, "b": y}))(OfDict()), PAIR),
    "bprop of one tensor twice": Program(lambda: (lambda net: lambda x: net(x, x))(Product())),
    "one Cell called twice": Program(lambda: (lambda net: lambda x, y: net(net(x)) + net(y) * x)(Cube()), PAIR),
    "one Cell with weights called twice": Program(lambda: (lambda net: lambda x, y: net(net(x)) + net(y))(Weighted()),
                                                  PAIR),
    "bprop behind stop_gradient": Program(
        lambda: (lambda net: lambda x, y: net(x) + net(ops.stop_gradient(Tensor(Y))) * y)(Cube()), PAIR),
    "bprop under vmap": Program(lambda: vmap(Cube())),
    "bprop that is recomputed": Program(lambda: (lambda net: lambda x: recompute(net, x))(Around(Cube()))),
    "_Function": Program(lambda: CubeFunction.apply),
    "_Function in a Cell": Program(lambda: Around(CubeFunction.apply)),
    "custom_vjp": Program(with_vjp),
    "mixed precision": Program(mixed, smooth=False),
    "hook that returns nothing": Program(lambda: Around(hooked(HOOK, lambda *seen: None))),
    "hook that returns the gradient": Program(lambda: Around(hooked(HOOK, lambda _, gout, gin: gin))),
    "hook with a new gradient": Program(lambda: hooked(HOOK, lambda _, gout, gin: twice(*gin)), scale=2),
    "hook with a bare gradient": Program(lambda: hooked(HOOK, lambda _, gout, gin: gin[0] * 2), scale=2),
    "hook of 2.4": Program(lambda: hooked(HOOK, lambda _, gin, gout: twice(*gin), convention="2.4"), scale=2),
    "hook of several inputs": Program(
        lambda: hooked(HOOK, lambda _, gout, gin: (*twice(*gin[:2]), *gin[2:]), Product()), PAIR, scale=2),
    "two hooks": Program(lambda: hooked(HOOK, lambda _, gout, gin: twice(*gin),
                                        hooked(HOOK, lambda _, gout, gin: twice(*gin))), scale=4),
    "hook of each of two calls": Program(
        lambda: (lambda net: lambda x: net(net(x)))(hooked(HOOK, lambda _, gout, gin: twice(*gin))), scale=4),
    "hook that was removed": Program(lambda: Around(hooked(HOOK, lambda _, gout, gin: twice(*gin), remove=True))),
    "backward pre-hook": Program(lambda: hooked("register_backward_pre_hook", lambda _, g: twice(*g), Around(Cube())),
                                 scale=2, weights=2),
    "backward pre-hook of a Cell with bprop": Program(
        lambda: hooked("register_backward_pre_hook", lambda _, g: twice(*g), Weighted()), scale=2, weights=2),
    "forward pre-hook": Program(lambda: Around(hooked("register_forward_pre_hook", lambda _, xs: (ops.sin(xs[0]),)))),
    "forward hook": Program(lambda: Around(hooked("register_forward_hook", lambda _, xs, y: y * xs[0]))),
    "forward hooks and bprop with weights": Program(lambda: hooked(
        "register_forward_hook", lambda _, xs, y: ops.tanh(y),
        hooked("register_forward_pre_hook", lambda _, xs: xs[0] * 0.5, Weighted()))),
    "all hooks of a Cell with bprop": Program(lambda: hooked(
        "register_backward_pre_hook", lambda _, g: twice(*g),
        hooked(HOOK, lambda _, gout, gin: twice(*gin), hooked("register_forward_hook", lambda _, xs, y: y * 1.5))),
        scale=4),
    "hook of a Cell around a bprop": Program(lambda: hooked(HOOK, lambda _, gout, gin: twice(*gin), Around(Cube())),
                                             scale=2),
    "hook of a Cell that is recomputed": Program(
        lambda: (lambda net: lambda x: recompute(net, x))(hooked(HOOK, lambda _, gout, gin: twice(*gin))), scale=2),
    "HookBackward": Program(lambda: lambda x: Cube()(HookBackward(lambda g: g[0] * 2)(x)), scale=2),
    "InsertGradientOf": Program(lambda: lambda x: ops.sin(InsertGradientOf(lambda g: g * 2)(Cube()(x))), scale=2),
    "hook of a tensor on the way": Program(lambda: doubled_of_tensor, scale=2),
    "hooks of weights": Program(scaled_weight, weights=2),
}


def weights_of(net: Any) -> list[Parameter]:
    cells = [net, *(cell.cell_contents for cell in getattr(net, "__closure__", None) or ())]
    return [weight for cell in cells if isinstance(cell, Cell) for weight in cell.trainable_params()]


def differentiated(program: Program, net: Any, weights: list[Parameter]) -> Callable[..., Any]:
    """A function of the inputs that returns the value, and the gradients of inputs and weights in one list."""
    positions = tuple(range(len(program.inputs)))
    both = value_and_grad(lambda *xs: ops.sin(net(*xs)).sum(), positions, weights or None)

    def function(*xs: Any) -> tuple[Any, list[Any]]:
        value, found = both(*xs)
        return value, listed(found)

    return function


def listed(found: Any) -> list[Any]:
    """Gradients of ``value_and_grad``, which returns tuples for several, in one list."""
    return [each for part in found for each in listed(part)] if isinstance(found, (tuple, list)) else [found]


def with_numbers(weights: list[Parameter], function: Callable[..., Any]) -> Callable[[Any], float]:
    """Value of the function for other inputs and weights, given in one list."""

    def total(arrays: Any) -> float:
        count = len(arrays) - len(weights)
        before = [weight.asnumpy().copy() for weight in weights]
        for weight, array in zip(weights, arrays[count:]):
            weight.set_data(Tensor(array))
        try:
            return function(*map(Tensor, arrays[:count])).item()
        finally:
            for weight, array in zip(weights, before):
                weight.set_data(Tensor(array))

    return total


def same(found: Any, expected: Any) -> None:
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), 1e-12, 1e-13, err_msg=f"gradient {i}")


@pytest.mark.filterwarnings("ignore:.*runs as Python")  # values that a bprop reads
@pytest.mark.parametrize("name", PROGRAMS)
def test_eager_and_compiled_gradients_agree_with_differences(name: str) -> None:
    program = PROGRAMS[name]
    net = program.make()
    weights, tensors = weights_of(net), [*map(Tensor, program.inputs)]
    function = differentiated(program, net, weights)
    value, gradients = function(*tensors)
    compiled = jit(function)
    for _ in range(2):  # the run after the trace, too
        again, others = compiled(*tensors)
        assert again.item() == pytest.approx(value.item(), rel=1e-12)
        same(others, gradients)
    set_context(mode=GRAPH_MODE)
    try:
        same(function(*tensors)[1], gradients)
    finally:
        set_context(mode=PYNATIVE_MODE)
    if program.smooth:
        arrays = [*program.inputs, *(weight.asnumpy().copy() for weight in weights)]
        total = with_numbers(weights, lambda *xs: ops.sin(net(*xs)).sum())
        fit(total, arrays, {i: gradient.asnumpy() / (program.scale if i < len(program.inputs) else program.weights)
                            for i, gradient in enumerate(gradients)}, 1e-6, name)


SECOND = [name for name, program in PROGRAMS.items() if program.smooth and program.scale == program.weights == 1]


@pytest.mark.filterwarnings("ignore:.*runs as Python")
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_agree_with_differences(name: str) -> None:
    program = PROGRAMS[name]
    net = program.make()
    weights, tensors = weights_of(net), [*map(Tensor, program.inputs)]
    first = grad(lambda *xs: ops.sin(net(*xs)).sum(), tuple(range(len(program.inputs))))

    def steepness(*xs: Any) -> Any:
        return sum((each * each).sum() for each in listed(first(*xs)))

    second = GradOperation(get_all=True)(steepness)
    found = listed(second(*tensors))
    same(listed(jit(second)(*tensors)), found)
    total = with_numbers(weights, steepness)
    arrays = [*program.inputs, *(weight.asnumpy().copy() for weight in weights)]
    fit(total, arrays, {i: gradient.asnumpy() for i, gradient in enumerate(found)}, 1e-5, name)


@pytest.mark.parametrize("name", ["bprop in a Cell", "bprop with a Parameter", "bprop of two outputs",
                                  "hooks of weights", "backward pre-hook", "all hooks of a Cell with bprop"])
def test_gradients_with_has_aux_are_the_same(name: str) -> None:
    program = PROGRAMS[name]
    net = program.make()
    weights, tensors = weights_of(net), [*map(Tensor, program.inputs)]
    positions = tuple(range(len(tensors)))

    def loss(*xs: Any) -> Any:
        out = net(*xs)
        return ops.sin(out).sum(), out * 2

    (value, aux), found = value_and_grad(loss, positions, weights or None, has_aux=True)(*tensors)
    plain, gradients = differentiated(program, net, weights)(*tensors)
    same([value, *listed(found)], [plain, *gradients])
    np.testing.assert_array_equal(aux.asnumpy(), net(*tensors).asnumpy() * 2)
    (again, _), others = jit(value_and_grad(loss, positions, weights or None, has_aux=True))(*tensors)
    same([again, *listed(others)], [plain, *gradients])


#: Answers of MindSpore 2.10 in PyNative mode, by program.
RECORDED = {name: answer for (name, mode), answer in json.loads(
    (Path(__file__).parent.parent / "recorded" / "mindspore_bprop.json").read_text())["cases"] if mode == MODES[0]}


@pytest.mark.filterwarnings("ignore::UserWarning")  # several outputs, whose gradients are summed; hooks in jit
@of_each([(name, mode) for name in BPROP_PROGRAMS for mode in MODES], by=lambda case: case[1])
def test_programs_have_the_gradients_and_calls_of_mindspore_in_both_modes(name: str, mode: str) -> None:
    expected = RECORDED[name]
    with convention("2.4"):
        answer = json.loads(json.dumps(asked(opreg, name, mode)))
    assert answer.get("result") == (OTHERWISE.get(name) or expected.get("result"))
    assert expected.get("error") in [None, *answer.get("error", ())]
    if mode == MODES[0] and name not in OTHERWISE:
        assert answer["called"] == expected["called"]


BEFORE: dict[str, Callable[[Any], Any]] = {
    "the input": lambda x: x, "a blocked input": ops.stop_gradient, "a constant": lambda x: Tensor([1.0, 1.0]),
    "a comparison": lambda x: (x > 1).astype(opreg.float32)}


@of_each([(bprop, before, wanted) for bprop in (True, False) for before in BEFORE for wanted in ("x", "w", "both")])
def test_compiled_functions_call_the_hooks_that_eager_ones_call(bprop: bool, before: str, wanted: str) -> None:
    """Hooks are called where a gradient passes: a weight that a bprop does not know, or a blocked input, needs none."""
    called: list[list[Any]] = []
    cell = with_hooks(opreg, weighted(opreg, bprop), called)
    weights = None if wanted == "x" else cell.trainable_params()
    gradient = opreg.grad(lambda x: cell(BEFORE[before](x)) + x, None if wanted == "w" else 0, weights)
    found = listed(gradient(Tensor([1.0, 2.0])))
    eager = called.copy()
    called.clear()
    same(listed(jit(gradient)(Tensor([1.0, 2.0]))), found)
    assert sorted(called) == sorted(eager)
