"""Hooks that write to tensors from outside, or read those that the function has assigned: compiled functions answer as
eager ones, from the first call, and call each hook once."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg
from opreg import nn
from opreg.cells.cell import Cell
from opreg.cells.grad import value_and_grad
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter
from opreg.cells.tensor import Tensor
from opreg.nn import ops


class Layer(Cell):
    """A Cell with a trained Parameter, another one, a buffer and a tensor; it may assign some of them."""

    def __init__(self, assigned: str) -> None:
        super().__init__()
        self.w = Parameter(Tensor([1.0, 2.0]), name="w")
        self.v = Parameter(Tensor([3.0, 0.5]), name="v", requires_grad=False)
        self.register_buffer("b", Tensor([1.0, 1.0]))
        self.t = Tensor([2.0, 1.0])
        self.assigned = assigned

    def construct(self, x: Any) -> Any:
        if "w" in self.assigned:
            ops.assign(self.w, self.w + 1)
        if "b" in self.assigned:
            self.b[0] = self.b[0] + 1
        if "t" in self.assigned:
            self.t[0] = x[0] * 2
        return x * self.w * self.v + self.b * self.t

    def read(self, value: Any) -> Any:
        return value * self.w * self.v + self.t * self.b

    def arrays(self) -> list[Tensor]:
        return [self.w, self.v, self.b, self.t]


#: By name, the effect of a hook, for a layer and the number of earlier calls.
WRITES: dict[str, Callable[[Layer, int], object]] = {
    "nothing": lambda layer, calls: None,
    "assign w": lambda layer, calls: ops.assign(layer.w, layer.w * 2),
    "subscript w": lambda layer, calls: layer.w.__setitem__(0, layer.w[0] * 2),
    "set_data v": lambda layer, calls: layer.v.set_data(layer.v * 2),
    "subscript b": lambda layer, calls: layer.b.__setitem__(0, 3.0),
    "in place b": lambda layer, calls: layer.b.add_(1.0),
    "assign t": lambda layer, calls: ops.assign(layer.t, layer.t * 2),
    "w in the third call": lambda layer, calls: ops.assign(layer.w, layer.w * 2) if calls == 2 else None,
    "optimizer": lambda layer, calls: nn.SGD([layer.w], 0.5)((Tensor([1.0, 1.0]),)),
}
#: By name, a function that registers a hook; ``run`` makes the effect and counts.
HOOKS: dict[str, Callable[[Layer, Callable[[], object]], object]] = {
    "forward": lambda layer, run: layer.register_forward_hook(lambda *_: run()),
    "forward that reads": lambda layer, run: layer.register_forward_hook(
        lambda cell, inputs, out: (run(), layer.read(out))[1]),
    "forward pre that reads": lambda layer, run: layer.register_forward_pre_hook(
        lambda cell, inputs: (run(), layer.read(inputs[0]))[1]),
    "backward": lambda layer, run: layer.register_backward_hook(lambda *_: run()),
    "backward that reads": lambda layer, run: layer.register_backward_hook(
        lambda name, leaving, entering: (run(), None if leaving[0] is None else (layer.read(leaving[0]),))[1]),
    "backward pre that reads": lambda layer, run: layer.register_backward_pre_hook(
        lambda cell, entering: (run(), (layer.read(entering[0]),))[1]),
}
#: By name, a function of x that calls a layer. The first computes the same product before and after the hook.
PROGRAMS: dict[str, Callable[[Layer, Any], Any]] = {
    "around": lambda layer, x: layer.w * layer.t * 2 + layer(x) * (layer.w * layer.t * 2),
    "twice": lambda layer, x: layer(layer(x) * layer.b) * layer.w * layer.v,
    "assigned between": lambda layer, x: (layer(x), ops.assign(layer.w, layer.w + x), layer(x) * layer.w)[2],
}


def on_tape(function: Callable[..., Any], weights: object) -> Callable[..., Any]:
    """A function that runs another one, and a backward pass over the tape."""
    def step(x: Tensor) -> Any:
        x.attach_grad()
        with opreg.autograd.record():
            y = function(x).sum()
        y.backward()
        return y, x.grad
    return step


#: Functions of a function and its weights, first the eager way, then the compiled ones.
WAYS: list[list[Callable[..., Callable[..., Any]]]] = [
    [lambda function, weights: function, lambda function, weights: jit(function)],
    [lambda function, weights: value_and_grad(function, 0, weights),
     lambda function, weights: jit(value_and_grad(function, 0, weights)),
     lambda function, weights: value_and_grad(jit(function), 0, weights)],
    [on_tape, lambda function, weights: on_tape(jit(function), weights)],
]


def values(tree: Any) -> Any:
    return [values(each) for each in tree] if isinstance(tree, (tuple, list)) else tree.asnumpy().tolist()


def answers(way: Callable[..., Callable[..., Any]], hook: str, write: str, program: str, assigned: str
            ) -> tuple[list[Any], int]:
    """Results and tensors of three calls, and the number of calls of the hook."""
    layer, calls = Layer(assigned), []

    def run() -> None:
        WRITES[write](layer, len(calls))
        calls.append(1)

    HOOKS[hook](layer, run)
    step = way(lambda x: PROGRAMS[program](layer, x), layer.trainable_params())
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it does not run as Python
        return [(values(step(Tensor([2.0, 0.5 + i]))), values(layer.arrays())) for i in range(3)], len(calls)


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("write", WRITES)
def test_what_a_hook_writes_and_reads_is_that_of_eager_code(hook: str, write: str) -> None:
    place = list(HOOKS).index(hook) + list(WRITES).index(write)
    cases = itertools.islice(itertools.cycle(itertools.product(PROGRAMS, ("", "w", "b", "t"))), place, None, 5)
    for eager, *compiled in WAYS:
        program, assigned = next(cases)
        try:
            expected, count = answers(eager, hook, write, program, assigned)
        except opreg.errors.OpError:  # its gradient needs numbers that were changed in place, or has been computed
            continue
        for way in compiled:
            found, count_again = answers(way, hook, write, program, assigned)
            where = f"{program}, assigned {assigned!r}"
            assert count_again == count, where
            for result, wanted in zip(found, expected):
                np.testing.assert_allclose(flat(result), flat(wanted), rtol=1e-5, err_msg=where)


def flat(tree: Any) -> list[Any]:
    """The numbers of a nesting of lists."""
    return [leaf for part in tree for leaf in flat(part)] if isinstance(tree, (tuple, list)) else [tree]


class Normalized(Cell):
    """A Cell that normalizes once or twice by the same statistics, with a layer after each time."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.norm, self.times = nn.BatchNorm1d(2), times
        self.dense = nn.Dense(2, 2, weight_init="ones", bias_init="zeros")

    def construct(self, x: Any) -> Any:
        for _ in range(self.times):
            x = self.dense(self.norm(x))
        return x * 2


#: By name, a function that registers a hook which reads the moving statistics after training has moved them. The result
#: of the last one has another form than a trace assumes at first.
READERS: dict[str, Callable[[Normalized, Callable[[], None]], object]] = {
    "forward": lambda net, read: net.norm.register_forward_hook(lambda *_: read()),
    "forward of the next layer": lambda net, read: net.dense.register_forward_hook(lambda *_: read()),
    "forward pre": lambda net, read: net.dense.register_forward_pre_hook(lambda *_: read()),
    "backward": lambda net, read: net.dense.register_backward_hook(lambda *_: read()),
    "forward with another shape": lambda net, read: net.register_forward_hook(
        lambda cell, inputs, out: (read(), out.sum())[1]),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("times", [1, 2])
def test_hooks_read_the_statistics_that_training_has_moved(name: str, times: int) -> None:
    for eager, *compiled in WAYS:
        logs = []
        for way in (eager, *compiled):
            net, log = Normalized(times), list[Any]()
            net.set_train(True)
            statistics = [net.norm.moving_mean, net.norm.moving_variance]
            READERS[name](net, lambda log=log, statistics=statistics: log.append(values(statistics)))
            step = way(lambda x, net=net: net(x).sum(), net.trainable_params())
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for i in range(3):
                    step(Tensor([[1.0, 2.0 + i], [0.5, 4.0], [3.0, -1.0]]))
            logs.append([*log, values(statistics)])
        for log in logs[1:]:
            assert len(log) == len(logs[0])
            np.testing.assert_allclose(flat(log), flat(logs[0]), rtol=1e-5)


#: By name, a function that a user's operator calls, which returns a factor.
EFFECTS: dict[str, Callable[[Layer], float]] = {
    "reads": lambda layer: float(layer.w.asnumpy()[0]),
    "reads in a Cell": lambda layer: float(layer.read(Tensor([1.0, 1.0])).asnumpy()[0]),
    "writes by set_data": lambda layer: (layer.w.set_data(layer.w.detach() * 2), 1.0)[1],
    "writes in place": lambda layer: (layer.w.add_(1.0), 1.0)[1],
}


def scaled(effect: Callable[[Layer], float]) -> tuple[Callable[[Any], Any], Layer, list[int]]:
    """A function that assigns a Parameter and calls a user's operator with an effect, its layer, and calls so far."""
    layer, calls = Layer(""), list[int]()

    class Scaled(opreg.operator.CustomOp):
        def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            calls.append(1)
            self.assign(out_data[0], req[0], in_data[0] * effect(layer))

    @opreg.operator.register("_example_scaled_by_outside")
    class ScaledProp(opreg.operator.CustomOpProp):
        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Scaled:
            return Scaled()

    def function(x: Any) -> Any:
        ops.assign(layer.w, layer.w + 1)
        y = ops.Custom(x, op_type="_example_scaled_by_outside")
        return y * layer.w

    return function, layer, calls


@pytest.mark.filterwarnings("ignore:.*runs as Python.*(may read later|which the function reads later)")
@pytest.mark.parametrize("effect", EFFECTS)
def test_users_operators_read_what_was_assigned_and_their_writes_are_read(effect: str) -> None:
    found = []
    for way in (lambda function: function, jit):
        function, layer, calls = scaled(EFFECTS[effect])
        step = way(function)
        found.append(([values(step(Tensor([2.0, 0.5 + i]))) for i in range(3)], values(layer.arrays()), len(calls)))
    assert found[0] == found[1]
