"""Users' operators in Cells: the mode that they are told, eagerly, compiled and in executors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import Model, Parameter, Tensor, nn, ops
from opreg.nn.function import _Function
from opreg.nn.grad_func import custom_vjp

pytestmark = pytest.mark.filterwarnings("ignore:.*runs as Python")  # numbers behind users' operators

X = [1.0, -2.0, 3.0]


def x() -> Tensor:
    return Tensor(X)


# ------------------------------------------------------------------------------------------- operators of a user


def _mode_of_a_function(traced: bool, name: str) -> Any:
    @mx.operator.define(traced=traced, name=name)
    def told(x: Any, *, is_train: bool) -> Any:
        return x * 2 if is_train else x + 0

    if not traced:
        @told.grad
        def gradient(g: Any, ins: Any, outs: Any, *, is_train: bool) -> Any:
            return g * 2 if is_train else g

    return told


def _mode_of_a_prop(is_traced: bool, name: str) -> Any:
    class Told(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            self.by = 2 if is_train else 1
            self.assign(out_data[0], req[0], in_data[0] * self.by)

        def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
            self.assign(in_grad[0], req[0], out_grad[0] * (2 if mx.autograd.is_training() else 1))

    @mx.operator.register(name)
    class ToldProp(mx.operator.CustomOpProp):
        traced = is_traced

        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
            return Told()

    return mx.operator.get(f"custom.{name}")


@mx.operator.define(name="cells_asks")
def asks(x: Any) -> Any:
    """It names no ``is_train``, and asks all the same."""
    return x * 2 if mx.autograd.is_training() else x + 0


@asks.grad
def asks_grad(g: Any, ins: Any, outs: Any) -> Any:
    return asks(g)


@mx.operator.define(name="cells_by_another")
def by_another(x: Any) -> Any:
    """Its body calls an operator that is told."""
    return mx.nd.custom.cells_function(x)


@by_another.grad
def by_another_grad(g: Any, ins: Any, outs: Any) -> Any:
    return mx.nd.custom.cells_asks(g)  # linear: in NumPy's place, to be run as Python


@mx.operator.define(name="cells_rule_in_numpy")
def rule_in_numpy(x: Any, *, is_train: bool) -> Any:
    return x * 2 if is_train else x + 0


@rule_in_numpy.grad
def rule_in_numpy_grad(g: Any, ins: Any, outs: Any, *, is_train: bool) -> Any:
    return mx.nd.array(g.asnumpy() * (2 if is_train else 1))


TOLD: dict[str, Any] = {
    "function": _mode_of_a_function(False, "cells_function"),
    "traced function": _mode_of_a_function(True, "cells_traced_function"),
    "Prop": _mode_of_a_prop(False, "cells_prop"),
    "traced Prop": _mode_of_a_prop(True, "cells_traced_prop"),
    "asks": asks, "by another": by_another, "rule in NumPy": rule_in_numpy}

told = TOLD["function"]


class Doubling(nn.Cell):
    """Twice its input in training, its input otherwise."""

    def __init__(self, op: Any = told) -> None:
        super().__init__()
        self.op = op

    def construct(self, x: Any) -> Any:
        return self.op(x)


@contextlib.contextmanager
def graph_mode() -> Iterator[None]:
    mx.set_context(mode=mx.GRAPH_MODE)
    try:
        yield
    finally:
        mx.set_context(mode=mx.PYNATIVE_MODE)


def _in_graph_mode(cell: Any) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        with graph_mode():
            return cell(x)
    return call


#: Ways to run a Cell.
WAYS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "eager": lambda cell: cell,
    "jit of the Cell": lambda cell: mx.jit(cell),
    "jit of a function": lambda cell: mx.jit(lambda x: cell(x)),
    "graph mode": _in_graph_mode}


def _gradient(run: Callable[[Any], Any], compiled: bool = False) -> Callable[[Any], Any]:
    found = mx.value_and_grad(lambda x: run(x).sum())
    return mx.jit(found) if compiled else found


# ------------------------------------------------------------------------------------------------------- the mode


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", TOLD)
def test_an_operator_is_told_the_mode_of_its_cell(kind: str, way: str) -> None:
    cell = Doubling(TOLD[kind])
    run = WAYS[way](cell)
    for training in (False, True, False, True):  # never set first; what is compiled sees every change
        if training or cell.training:
            cell.set_train(training)
        by = 2 if training else 1
        np.testing.assert_allclose(run(x()).asnumpy(), by * np.asarray(X, np.float32))
        value, gradient = _gradient(run)(x())
        assert value.asnumpy() == by * np.sum(X)
        assert gradient.asnumpy().tolist() == [by] * 3
        assert mx.grad(run)(x()).asnumpy().tolist() == [by] * 3


@pytest.mark.parametrize("kind", TOLD)
def test_so_it_is_where_the_gradient_is_compiled_along(kind: str) -> None:
    cell = Doubling(TOLD[kind])
    run = _gradient(cell, compiled=True)
    for training in (False, True, False):
        cell.set_train(training)
        by = 2 if training else 1
        value, gradient = run(x())
        assert (value.asnumpy().tolist(), gradient.asnumpy().tolist()) == (by * np.sum(X), [by] * 3)


@pytest.mark.parametrize("applied", ["ops.Custom", "nd.Custom", "nd.custom"])
@pytest.mark.parametrize("way", WAYS)
def test_however_it_is_called(way: str, applied: str) -> None:
    calls: dict[str, Callable[[Any], Any]] = {
        "ops.Custom": lambda x: ops.Custom(x, op_type="cells_prop"),
        "nd.Custom": lambda x: mx.nd.Custom(x, op_type="cells_prop"),
        "nd.custom": lambda x: mx.nd.custom.cells_function(x)}
    cell = Doubling(calls[applied]).set_train()
    run = WAYS[way](cell)
    assert run(x()).asnumpy().tolist() == [2.0, -4.0, 6.0]
    assert mx.grad(run)(x()).asnumpy().tolist() == [2.0] * 3
    cell.set_train(False)
    assert run(x()).asnumpy().tolist() == X


@pytest.mark.parametrize("way", WAYS)
def test_it_goes_by_what_the_layers_beside_it_go_by(way: str) -> None:
    class Beside(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.drop, self.norm = nn.Dropout(p=0.5), nn.BatchNorm1d(4)

        def construct(self, x: Any) -> Any:
            return told(x), self.drop(x), self.norm(x)

    cell = Beside()
    run = WAYS[way](cell)
    data = Tensor(np.arange(32, dtype=np.float32).reshape(8, 4) + 1)
    surroundings = [contextlib.nullcontext, mx.autograd.train_mode, mx.autograd.record, mx.autograd.predict_mode]
    for training in (False, True):
        cell.set_train(training)
        for around in surroundings:  # which say nothing to Cells
            with around():
                own, dropped, normed = run(data)
            assert bool((dropped.asnumpy() == 0).any()) is training
            assert bool(abs(normed.asnumpy().mean()) < 1e-3) is training
            assert own.asnumpy()[0, 0] == (2 if training else 1)


@pytest.mark.parametrize("kind", TOLD)
def test_outside_of_all_cells_it_is_told_the_mode_of_its_caller(kind: str) -> None:
    op = TOLD[kind]
    compiled = mx.jit(lambda x: op(x))
    for run in (op, compiled):
        for around, by in ((contextlib.nullcontext, 1), (mx.autograd.train_mode, 2), (mx.autograd.predict_mode, 1),
                           (mx.autograd.record, 2), (lambda: mx.autograd.record(train_mode=False), 1)):
            with around():
                assert run(x()).asnumpy().tolist() == [by * each for each in X]


@pytest.mark.parametrize("way", WAYS)
def test_the_innermost_decides(way: str) -> None:
    """A Cell, or a ``with`` in it."""
    class Inner(nn.Cell):
        def construct(self, x: Any) -> Any:
            with mx.autograd.predict_mode():
                still = told(x)
            with mx.autograd.train_mode():
                moved = told(x)
            return told(x), still, moved, mx.autograd.is_training()

    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def construct(self, x: Any) -> Any:
            return told(x), self.inner(x), told(x)

    cell = Outer()
    run = WAYS[way](cell)
    for outer, inner in ((False, False), (True, False), (False, True), (True, True)):
        cell.set_train(outer)
        cell.inner.set_train(inner)
        before, (own, still, moved, asked), after = run(x())
        factors = [each.asnumpy()[0] for each in (before, own, still, moved, after)]
        assert factors == [1 + outer, 1 + inner, 1, 2, 1 + outer]
        assert asked is inner


def test_what_is_compiled_does_not_look_at_modes_that_nothing_minds() -> None:
    times = []

    class Plain(nn.Cell):
        def construct(self, x: Any) -> Any:
            times.append(1)
            return x * 2

    cell = Plain()
    run = mx.jit(cell)
    for training in (True, False, True):
        cell.set_train(training)
        run(x())
    assert len(times) == 1


def test_a_mode_that_is_asked_for_is_seen() -> None:
    class Asking(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x * 2 if mx.autograd.is_training() else x

    cell = Asking()
    run, bare = mx.jit(cell), mx.jit(lambda x: x * 2 if mx.autograd.is_training() else x)
    for training in (True, False, True):
        cell.set_train(training)
        assert run(x()).asnumpy()[0] == cell(x()).asnumpy()[0] == 1 + training
        with mx.autograd.train_mode() if training else mx.autograd.predict_mode():
            assert bare(x()).asnumpy()[0] == 1 + training


@pytest.mark.parametrize("way", WAYS)
def test_hooks_run_in_the_mode_of_their_cell(way: str) -> None:
    factors: dict[str, float] = {}

    def note(kind: str) -> None:
        factors[kind] = told(Tensor([1.0])).asnumpy()[0]

    class Plain(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x * 1.5

    cell = Plain()
    cell.register_forward_pre_hook(lambda cell, args: note("forward_pre"))
    cell.register_forward_hook(lambda cell, args, out: note("forward"))
    cell.register_backward_pre_hook(lambda cell, g: note("backward_pre"))
    cell.register_backward_hook(lambda cell, leaving, arriving: note("backward"))
    run = WAYS[way](cell)
    for training in (False, True, False):
        cell.set_train(training)
        factors.clear()
        mx.grad(run)(x())
        assert factors == dict.fromkeys(("forward_pre", "forward", "backward_pre", "backward"), 1 + training)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_bprop_runs_in_the_mode_of_its_cell(way: str, debug: bool) -> None:
    class Own(nn.Cell):
        def construct(self, x: Any) -> Any:
            return told(x)

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (told(dout) * 10,)

    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.own = Own()
            self.own.bprop_debug = debug

        def construct(self, x: Any) -> Any:
            return self.own(x)

    cell = Outer()
    run = WAYS[way](cell)
    for outer, inner in ((False, True), (True, False), (False, True)):
        cell.set_train(outer)
        cell.own.set_train(inner)
        for found in (mx.grad(run)(x()), mx.jit(mx.grad(cell))(x())):
            assert found.asnumpy().tolist() == [10 * (1 + inner)] * 3


@pytest.mark.parametrize("way", WAYS)
def test_functions_with_gradients_of_their_own_run_in_the_mode_of_their_caller(way: str) -> None:
    class Function(_Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return told(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return told(g) * 10

    @custom_vjp
    def function(x: Any) -> Any:
        return told(x)

    function.defbwd(lambda x, out, dout: (told(dout) * 10,))
    for apply in (Function.apply, function):
        cell = Doubling(apply)
        run = WAYS[way](cell)
        for training in (False, True, False):
            cell.set_train(training)
            assert run(x()).asnumpy()[0] == 1 + training
            assert mx.grad(run)(x()).asnumpy().tolist() == [10 * (1 + training)] * 3


def _trained(cell: Any) -> tuple[Any, Any]:
    """A network of a weight and a Cell, and a step of its training."""
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.cell = Parameter(Tensor(np.ones(3, np.float32)), name="weight"), cell

        def construct(self, x: Any) -> Any:
            return self.cell(x * self.weight)

    net = Net()
    loss = nn.WithLossCell(net, lambda out, label: (out - label).sum())
    return net, nn.TrainOneStepCell(loss, nn.SGD(net.trainable_params(), learning_rate=1.0))


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("kind", TOLD)
@pytest.mark.parametrize("way", ["eager", "jit of the Cell", "graph mode"])
def test_in_a_step_of_training(way: str, kind: str, parallel: bool) -> None:
    if parallel:
        mx.set_auto_parallel_context(parallel_mode=mx.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    try:
        for training in (True, False):
            net, step = _trained(Doubling(TOLD[kind]))
            step.set_train(training)

            def call(x: Any, step: Any = step) -> Any:
                return step(x, Tensor([0.0] * 3))

            if way == "jit of the Cell":
                compiled = mx.jit(step)
                loss = compiled(x(), Tensor([0.0] * 3))
            else:
                loss = WAYS[way](call)(x())
            by = 1 + training
            assert loss.asnumpy() == by * np.sum(X)
            np.testing.assert_allclose(net.weight.asnumpy(), 1 - by * np.asarray(X))
    finally:
        mx.reset_auto_parallel_context()


@pytest.mark.parametrize("mode", [mx.PYNATIVE_MODE, mx.GRAPH_MODE])
def test_a_model_trains_evaluates_and_predicts(mode: int) -> None:
    modes: list[bool] = []

    @mx.operator.define(name="cells_noting")
    def noting(x: Any, *, is_train: bool) -> Any:
        modes.append(is_train)
        return x * 1

    @noting.grad
    def gradient(g: Any, ins: Any, outs: Any) -> Any:
        return g

    @noting.infer
    def shape(x: Any) -> Any:
        return x

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Dense(3, 1)

        def construct(self, x: Any) -> Any:
            return noting(self.dense(x))

    data = [(Tensor(np.ones((2, 3), np.float32)), Tensor(np.zeros((2, 1), np.float32)))] * 2
    net = Net()
    mx.set_context(mode=mode)
    try:
        model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), metrics={"mse": nn.MSE()})
        model.train(1, data)
        assert modes == [True, True]
        modes.clear()
        model.eval(data)
        assert modes == [False, False]
        modes.clear()
        model.train(1, data)
        model.predict(data[0][0])
        assert modes == [True, True, False]
    finally:
        mx.set_context(mode=mx.PYNATIVE_MODE)


@pytest.mark.parametrize("kind", TOLD)
def test_a_symbol_of_a_cell_is_told_by_its_executor(kind: str) -> None:
    for cell in (Doubling(TOLD[kind]), Doubling(TOLD[kind]).set_train()):
        executor = cell.to_symbol(x()).simple_bind(mx.cpu(), x=(3,))
        for training in (False, True, False):
            assert executor.forward(is_train=training, x=mx.nd.array(X))[0].asnumpy()[0] == 1 + training
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones((3,)))
        assert executor.grad_dict["x"].asnumpy().tolist() == [2.0] * 3


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loop", ["branch", "scan", "while"])
def test_parts_of_loops_go_by_modes_of_their_own(loop: str, way: str) -> None:
    inner = Doubling()
    loops: dict[str, Callable[[Any], Any]] = {
        "branch": lambda x: ops.cond(x.sum() > -9, lambda x: told(inner(x)), lambda x: x, x),
        "scan": lambda x: ops.scan(lambda carry, _: (told(inner(carry)), carry), x, Tensor(np.zeros(1, np.float32)),
                                   unroll=False)[0],
        "while": lambda x: ops.while_loop(lambda v: abs(v).sum() < 7, lambda v: told(inner(v)) + v * 2, x, 1)}

    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def construct(self, x: Any) -> Any:
            return loops[loop](x)

    cell = Outer()
    run = WAYS[way](cell)
    for outer, within in ((False, False), (False, True), (True, False), (True, True)):
        cell.set_train(outer)
        inner.set_train(within)
        by = (1 + outer) * (1 + within) + 2 * (loop == "while")
        assert run(x()).asnumpy().tolist() == [by * each for each in X]
        assert mx.grad(run)(x()).asnumpy().tolist() == [by] * 3
