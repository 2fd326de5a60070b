"""Hooks that read Parameters, and gradients that do not reach a Cell: the same answers and calls in all modes."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import opreg
from opreg import nn
from opreg.cells.bailout import CallSignature
from opreg.cells.cell import Cell
from opreg.cells.grad import value_and_grad
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter
from opreg.cells.python_op import Record, spec_of
from opreg.cells.tensor import Tensor
from opreg.core.registry import ops

Args = tuple[Any, ...]


class Pair(Cell):
    """A Cell with two inputs, two outputs and a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor([1.5, -2.0]), name="w")

    def construct(self, x: Any, y: Any) -> Args:
        return ops.tanh(x) * self.w, x + y


class Model:
    """A Cell, an adapter and a scale that its hooks may read, and a log of the gradients that backward hooks see."""

    def __init__(self) -> None:
        self.cell = Pair()
        self.adapter = nn.Dense(2, 2, weight_init="ones", bias_init="zeros")
        self.scale = Parameter(Tensor([3.0, 0.5]), name="scale")
        self.fixed = Parameter(Tensor([2.0, 2.0]), name="fixed", requires_grad=False)
        self.log: list[object] = []
        self.calls = 0
        self.cell.register_backward_hook(lambda cell, leaving, entering: self.log.append(values((leaving, entering))))

    def weights(self) -> list[Parameter]:
        return [self.cell.w, self.scale, *self.adapter.trainable_params()]

    def changing(self, cell: Cell, inputs: Args, out: Args) -> Args:
        """A forward hook that reads the scale in its third call only."""
        self.calls += 1
        return (out[0] * self.scale if self.calls == 3 else out[0] + out[1], out[1])


def values(tree: Any) -> Any:
    """Tensors in any nesting as lists, rounded; missing ones stay None."""
    if isinstance(tree, (tuple, list)):
        return [values(each) for each in tree]
    return tree if tree is None else np.round(tree.asnumpy().astype(np.float64), 3).tolist()


#: By name, a function that adds a hook to the Cell of a model.
HOOKS: dict[str, Callable[[Model], object]] = {
    "own weight": lambda m: m.cell.register_forward_hook(lambda cell, inputs, out: (out[0] * cell.w, out[1])),
    "scale": lambda m: m.cell.register_forward_hook(lambda cell, inputs, out: (out[0] * m.scale, out[1] * m.fixed)),
    "adapter": lambda m: m.cell.register_forward_hook(
        lambda cell, inputs, out: (out[0] + m.adapter(inputs[0]), out[1])),
    "scale of the inputs": lambda m: m.cell.register_forward_pre_hook(
        lambda cell, inputs: (inputs[0] * m.scale, inputs[1])),
    "swap": lambda m: m.cell.register_forward_hook(lambda cell, inputs, out: (out[1], out[0])),
    "one input twice": lambda m: m.cell.register_forward_pre_hook(lambda cell, inputs: (inputs[0], inputs[0])),
    "one output stopped": lambda m: m.cell.register_forward_hook(
        lambda cell, inputs, out: (ops.BlockGrad(out[0]), out[1] + 1)),
    "only the scale": lambda m: m.cell.register_forward_hook(lambda cell, inputs, out: (m.scale * 2, out[1])),
    "changing": lambda m: m.cell.register_forward_hook(m.changing),
}
LOSSES: dict[str, Callable[[Args], Any]] = {
    "first": lambda out: out[0].sum(), "second": lambda out: out[1].sum(), "both": lambda out: (out[0] * out[1]).sum()}
#: By name, a function of a loss, of the positions of differentiated inputs and of weights.
WAYS: dict[str, Callable[..., Callable[..., Any]]] = {
    "eager": value_and_grad,
    "compiled": lambda loss, positions, weights: jit(value_and_grad(loss, positions, weights)),
    "gradient of a compiled function": lambda loss, positions, weights: value_and_grad(jit(loss), positions, weights),
}


def answers(way: str, hooks: tuple[str, ...], loss: str, positions: int | None) -> tuple[object, list[object]]:
    """Results and gradients of four calls, and the gradients that the backward hook saw."""
    model = Model()
    for name in hooks:
        HOOKS[name](model)
    step = WAYS[way](lambda x, y: LOSSES[loss](model.cell(x, y)), positions, model.weights())
    results = [values(step(Tensor([[1.0, 0.5 * i]]), Tensor([[0.25, -1.0]]))) for i in range(4)]
    return results, model.log


@pytest.mark.parametrize("first", HOOKS)
def test_gradients_through_hooks_are_those_of_eager_code(first):
    names, settings = list(HOOKS), itertools.cycle(itertools.product(LOSSES, (None, 0)))
    for second in names[names.index(first) % 3::3]:
        case, (loss, positions) = (first,) if first == second else (first, second), next(settings)
        results, seen = answers("eager", case, loss, positions)
        for way in ("compiled", "gradient of a compiled function"):
            again, seen_again = answers(way, case, loss, positions)
            assert again == results, f"{way}, hooks {case}, loss {loss}, positions {positions}"
            # a graph has zeros for gradients that are missing in some of its runs
            assert seen_again == seen or "changing" in case, f"{way}, hooks {case}, loss {loss}, positions {positions}"


def test_a_compiled_hook_is_called_once_a_run_also_when_it_captures():
    model, calls = Model(), []
    HOOKS["scale"](model)
    model.cell.register_forward_hook(lambda cell, inputs, out: calls.append("hook"))
    step = jit(value_and_grad(lambda x, y: model.cell(x, y)[0].sum(), None, model.weights()))
    for count in range(1, 4):
        step(Tensor([[1.0, 2.0]]), Tensor([[3.0, 4.0]]))
        assert calls == ["hook"] * count


#: By name, a function that writes a value to a Parameter.
WRITES: dict[str, Callable[[Parameter, Tensor], object]] = {
    "assign": opreg.ops.assign, "set_data": lambda parameter, value: parameter.set_data(value),
    "subscript": lambda parameter, value: parameter.__setitem__(slice(None), value)}


@pytest.mark.parametrize("write", WRITES)
def test_code_after_a_hook_reads_what_the_hook_wrote(write):
    """Also gradients of code before the hook, which read the value before."""
    def answers(way: str) -> list[object]:
        model = Model()
        model.cell.register_forward_hook(
            lambda cell, inputs, out: WRITES[write](model.fixed, out[0].mean() * Tensor([1.0, 2.0])))

        def loss(x: Any) -> Any:
            y = model.cell(x * model.fixed, x)[0]
            return (y * model.fixed).sum()

        step = WAYS[way](loss, 0, model.weights())
        return [(values(step(Tensor([[0.5, 0.25 * i]]))), values(model.fixed)) for i in range(3)]

    expected = answers("eager")
    for way in WAYS:
        assert answers(way) == expected, way


class Scaled(Cell):
    """A Cell whose bprop reads a scale, from an attribute, a list and a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.scales, self.table = 1.0, [1.0], {"scale": 1.0}
        self.early = 0.0

    def construct(self, x: Any) -> Any:
        return x * (2.0 + self.early)

    def bprop(self, x: Any, out: Any, dout: Any) -> Args:
        return (dout * (self.scale + 10 * self.scales[0] + 100 * self.table["scale"]),)

    def change(self, name: str, value: float) -> None:
        if name == "scales":
            self.scales[0] = value
        elif name == "table":
            self.table["scale"] = value
        else:
            setattr(self, name, value)


#: By name, a function that adds a hook to a Cell or to its output.
PLACES: dict[str, Callable[[Cell, Callable[..., None]], object]] = {
    "forward": lambda cell, hook: cell.register_forward_hook(hook),
    "the first of two": lambda cell, hook: (cell.register_forward_hook(hook),
                                            cell.register_forward_hook(lambda cell, inputs, out: None)),
    "backward pre": lambda cell, hook: cell.register_backward_pre_hook(hook),
    "backward": lambda cell, hook: cell.register_backward_hook(hook),
}


def on_tape(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives the gradient of a loss by a backward pass over the tape."""
    def step(x: Tensor) -> Any:
        x.attach_grad()
        with opreg.autograd.record():
            y = loss(x)
        y.backward()
        return y, x.grad

    return step


WAYS_OF_SCALED = {**WAYS, "on the tape": lambda loss, positions, weights: on_tape(loss),
                  "compiled on the tape": lambda loss, positions, weights: on_tape(jit(loss))}


def gradients_of_scaled(way: str, place: str, name: str) -> list[object]:
    """Gradients of three calls, where a hook changes a scale in each call."""
    scaled, after, calls = Scaled(), nn.ReLU(), []

    def hook(*given: Any) -> None:
        calls.append(place)
        value = given[-1][0] if isinstance(given[-1], tuple) else given[-1]
        scaled.change(name, float(value.asnumpy().sum()))

    PLACES[place](after if place == "backward" else scaled, hook)
    step = WAYS_OF_SCALED[way](lambda x: (after(scaled(x)) * x).sum(), 0, None)
    return [(values(step(Tensor([0.5, 1.0 + i]))), len(calls)) for i in range(3)]


@pytest.mark.filterwarnings("ignore:.*runs as Python.*which the function reads later, is changed by")
@pytest.mark.parametrize("name", ["scale", "scales", "table", "early"])
@pytest.mark.parametrize("place", PLACES)
def test_a_bprop_after_a_hook_reads_what_the_hook_wrote(place, name):
    """State that is read before the hook only, ``early``, lets the function stay compiled."""
    expected = gradients_of_scaled("eager", place, name)
    for way in WAYS_OF_SCALED:
        assert gradients_of_scaled(way, place, name) == expected, way


def test_a_bprop_reads_what_a_program_changes_between_the_passes():
    scaled = Scaled()
    for loss in (scaled, jit(scaled), jit(lambda x: scaled(x) * 2.0)):
        for value in (1.0, 4.0, 4.0, 7.0):
            scaled.scale = 2.0
            x = Tensor([1.0])
            x.attach_grad()
            with opreg.autograd.record():
                y = loss(x)
            scaled.scale = value
            y.backward()
            assert x.grad.asnumpy() == (value + 110.0) * y.asnumpy() / 2.0


def test_hooks_of_a_cell_on_tensors_from_outside_are_called_in_each_run():
    dense, outside, calls = nn.Dense(2, 2), Tensor([[1.0, 2.0]]), []
    dense.register_forward_pre_hook(lambda cell, inputs: calls.append("before"))
    dense.register_forward_hook(lambda cell, inputs, out: calls.append("after"))
    step = jit(lambda x: x + dense(outside))
    for count in range(1, 4):
        step(Tensor([[1.0, 1.0]]))
        assert calls == ["before", "after"] * count


def test_a_hook_that_reads_a_recorded_array_unknown_to_the_function_runs_as_python():
    dense, scale = nn.Dense(2, 2, weight_init="ones", bias_init="zeros"), Tensor([2.0, 5.0])
    scale.attach_grad()
    dense.register_forward_hook(lambda cell, inputs, out: out * scale)
    step = jit(lambda x: dense(x).sum())
    words = "runs as Python: the forward hooks of Dense read a tensor whose gradient"
    with opreg.autograd.record(), pytest.warns(UserWarning, match=words):
        loss = step(Tensor([[1.0, 1.0]]))
    loss.backward()
    assert scale.grad.asnumpy().tolist() == [2.0, 2.0]


@pytest.mark.parametrize("hook", [
    lambda cell, w: cell.register_backward_hook(lambda of, entering, leaving: (leaving[0] * w, leaving[1])),
    lambda cell, w: cell.register_backward_pre_hook(lambda of, entering: (entering[0] * w * w, entering[1])),
    lambda cell, w: cell.register_forward_pre_hook(lambda of, inputs: (opreg.ops.InsertGradientOf(lambda g: g * w)(
        inputs[0]), inputs[1]))])
@pytest.mark.filterwarnings("ignore:.*runs as Python.*differentiated again")
def test_second_derivatives_go_through_parameters_that_gradient_hooks_read(hook):
    model = Model()
    hook(model.cell, model.scale)

    def slope(x: Any) -> Any:
        return opreg.grad(lambda z: (model.cell(z, z)[0] ** 2).sum())(x).sum()

    step, x = value_and_grad(slope, 0, model.weights()), Tensor([[0.5, -1.0]])
    expected = values(step(x))
    assert expected[1][1][1] != [0.0, 0.0]
    for _ in range(2):
        assert values(jit(step)(x)) == expected


def test_compiled_functions_of_several_threads_may_capture_one_parameter():
    model, x, y = Model(), Tensor([[1.0, 0.5]]), Tensor([[0.25, -1.0]])
    HOOKS["scale"](model)
    steps = [WAYS["compiled"](lambda x, y: LOSSES["both"](model.cell(x, y)), 0, model.weights()) for _ in range(3)]
    first, *others = [values(step(x, y)) for step in steps]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda step: [values(step(x, y)) for _ in range(40)], steps))
    finally:
        sys.setswitchinterval(before)
    assert others == [first] * 2 and found == [[first] * 40] * 3


def test_inputs_that_are_only_places_on_the_tape_are_no_arguments() -> None:
    weight = Parameter(Tensor([1.0]), name="w")
    spec = spec_of(weight)
    record = Record(lambda x: [x], [spec, spec], CallSignature(None, [spec], (weight,)), "_example")
    assert (record.read, record.back([0], [0, 1]).read) == (1, 1)
