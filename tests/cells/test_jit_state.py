"""A compiled function keeps no state of its first caller: each caller gets the result for its own state."""

from __future__ import annotations

import contextlib
import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg
import opreg.symbol as sym
from opreg import random
from opreg.cells.cell import Cell
from opreg.cells.context_settings import GRAPH_MODE, PYNATIVE_MODE, set_context
from opreg.cells.grad import grad, no_grad
from opreg.cells.handles import convention
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter
from opreg.cells.state import STATE
from opreg.cells.symbolic import from_symbol
from opreg.cells.tensor import Tensor
from opreg.core.registry import ops
from opreg.custom import operator as custom
from opreg.ndarray import autograd, cpu
from opreg.nn.layers import Dense, Dropout
from tests.questions import of_each

X = np.array([1.0, -2.0, 3.0], np.float32)
ONES = np.ones((4, 3), np.float32)


def x() -> Tensor:
    return Tensor(X)


@contextlib.contextmanager
def graph_mode() -> Any:
    set_context(mode=GRAPH_MODE)
    try:
        yield
    finally:
        set_context(mode=PYNATIVE_MODE)


@contextlib.contextmanager
def inside_a_cell() -> Any:
    STATE.inside = True
    try:
        yield
    finally:
        STATE.inside = False


#: Contexts around a call.
STATES: dict[str, Callable[[], Any]] = {
    "nothing": contextlib.nullcontext, "no_grad": no_grad, "two no_grads": lambda: _both(no_grad(), no_grad()),
    "record": autograd.record, "record, predicting": lambda: autograd.record(train_mode=False),
    "pause": autograd.pause, "train mode": autograd.train_mode, "predict mode": autograd.predict_mode,
    "graph mode": graph_mode, "inside a Cell": inside_a_cell, "another context": lambda: cpu(1),
    "errors raised": lambda: np.errstate(all="raise"), "convention": lambda: convention("2.4"),
    "scope of attributes": lambda: sym.AttrScope(__ctx_group__="dev1", __force_mirroring__="True"),
    "prefix": lambda: sym.Prefix("before_")}


@contextlib.contextmanager
def _both(first: Any, second: Any) -> Any:
    with first, second:
        yield


class Weighted(Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor([2.0, 2.0, 2.0]), name="w")

    def construct(self, a: Any) -> Any:
        return a * a * self.w


@custom.register("nn_test_as_in_training")
class _AsInTrainingProp(custom.CustomOpProp):
    def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
        class AsInTraining(custom.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], in_data[0] * (10 if is_train else 1))

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                self.assign(in_grad[0], req[0], out_grad[0] * 5)

        return AsInTraining()


#: Functions to call, each with a function that makes it anew, so that no earlier state is left.
FUNCTIONS: dict[str, Callable[[], Any]] = {
    "product": lambda: lambda a: a * a, "weighted": Weighted,
    "with a constant": lambda: lambda a: a * Tensor([1.0, 2.0, 3.0]),
    "made inside": lambda: lambda a: a + opreg.ops.zeros((3,), opreg.float32),
    "in training only": lambda: lambda a: ops.Dropout(a, p=0.999)[0:1] * 0 + a,
    "a user's": lambda: lambda a: opreg.ops.Custom(a, op_type="nn_test_as_in_training"),
    "gradient inside": lambda: lambda a: a * grad(lambda b: b * b * b)(a),
    "blocked inside": lambda: lambda a: _blocked(a) * a, "paused inside": lambda: lambda a: _paused(a) * a}


def _blocked(a: Any) -> Any:
    with no_grad():
        return a * a


def _paused(a: Any) -> Any:
    with autograd.pause():
        return a * a


def answers(function: Any) -> list[Any]:
    """Values, and gradients taken in three ways."""
    weights = list(getattr(function, "trainable_params", list)())
    found = [function(x()), grad(lambda a: function(a))(x())]
    found += grad(lambda a: function(a), None, weights)(x())
    value = x()
    value.attach_grad()
    with autograd.record():
        out = function(value)
    out.backward()
    return [each.asnumpy().tolist() for each in (*found, value.grad)]


@of_each(itertools.product(FUNCTIONS, STATES), by=lambda case: case[1])
def test_later_calls_use_their_own_mode(name, state):
    make = FUNCTIONS[name]
    compiled = jit(make())
    with contextlib.suppress(RuntimeError), STATES[state]():  # a gradient inside of no_grad may be refused
        compiled(x())
        compiled(Tensor(X[:2]) if name in ("product", "blocked inside") else x())
    assert answers(compiled) == answers(make())
    with contextlib.suppress(RuntimeError), STATES[state]():
        found, expected = compiled(x()), make()(x())
        np.testing.assert_array_equal(found.asnumpy(), expected.asnumpy())


@pytest.mark.parametrize("state", STATES)
def test_arrays_made_inside_are_in_the_callers_context(state):
    compiled = jit(lambda: opreg.ops.zeros((3,), opreg.float32))
    for around in (STATES[state], contextlib.nullcontext, STATES[state]):
        with around():
            assert compiled().context == opreg.ops.zeros((3,), opreg.float32).context


@pytest.mark.parametrize("compiles", [jit, lambda net: net.compile(Tensor(ONES))], ids=["jit", "compile"])
def test_a_function_compiled_for_evaluation_has_gradients_later(compiles):
    """The first call of a network usually needs no gradients."""
    net = Dense(3, 2)
    compiled, weights = compiles(net), net.trainable_params()
    expected = grad(lambda a: net(a).sum(), None, weights)(Tensor(ONES))

    @no_grad()
    def evaluate(a: Any) -> Any:
        return compiled(a)

    evaluate(Tensor(ONES))
    found = grad(lambda a: compiled(a).sum(), None, weights)(Tensor(ONES))
    for g, like in zip(found, expected):
        np.testing.assert_allclose(g.asnumpy(), like.asnumpy(), rtol=1e-6)


def test_a_restarted_run_draws_the_values_of_an_eager_run():
    def function(x):
        noise = opreg.ops.dropout(x, 0.5, training=True)
        return noise + 1 if float(x.sum()) > 0 else noise - 1

    compiled = jit(function)
    inputs = [Tensor(np.full(64, value, "float32")) for value in (1, -1, 1, -1, 2)]

    def run(call):
        random.seed(3)
        return [call(x).asnumpy().tolist() for x in inputs]

    assert run(compiled) == run(function)
    assert run(compiled) == run(function)


def test_random_values_are_drawn_in_every_run():
    function = jit(lambda a: a + opreg.ops.uniform((3,), Tensor(0.0), Tensor(1.0)))
    random.seed(1)
    drawn = [function(x()).asnumpy().tolist() for _ in range(3)]
    assert drawn[0] != drawn[1] != drawn[2]
    random.seed(1)
    assert [function(x()).asnumpy().tolist() for _ in range(3)] == drawn
    net = Dropout(p=0.5).set_train()
    compiled = jit(net)
    with no_grad():
        compiled(Tensor(ONES))
    assert compiled(Tensor(ONES)).asnumpy().tolist() != compiled(Tensor(ONES)).asnumpy().tolist()


@pytest.mark.parametrize("training", [False, True])
def test_cells_of_symbols_compute_in_the_mode_of_the_call(training):
    """Operators of the Symbol read the Cell's mode, in compiled functions too."""
    hidden = sym.BatchNorm(sym.Variable("data"), fix_gamma=False, name="bn")
    dropped = sym.Dropout(sym.Variable("data"), p=0.5)

    def both(run: Callable) -> list[Any]:
        cell = from_symbol(hidden).set_train(training)
        value = Tensor(np.arange(12.0).reshape(4, 3)).astype("float32")
        cell(value)
        weights = cell.trainable_params()
        found = [*run(grad(lambda a: (cell(a) * a).sum(), 0, weights))(value)[1], run(cell)(value),
                 run(grad(lambda a: (cell(a) * a).sum()))(value), cell._params["bn_moving_mean"]]
        kept = run(from_symbol(dropped).set_train(training))(Tensor(ONES))
        assert (kept.asnumpy() == 1).all() is not np.bool_(training)
        return [each.asnumpy() for each in found]

    for a, b in zip(both(jit), both(lambda function: function)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_gradients_in_inference_are_those_of_inference():
    """Gradients agree with central differences: moving statistics do not depend on the batch."""
    cell = from_symbol(sym.BatchNorm(sym.Variable("data"), fix_gamma=False, name="bn"))
    value = Tensor(np.arange(6.0).reshape(2, 3)).astype("float32")
    found = grad(lambda a: (cell(a) * a).sum())(value).asnumpy()
    np.testing.assert_allclose(found, 2 * value.asnumpy() / np.sqrt(1 + 1e-3), rtol=1e-3)


def test_recorded_outside_tensors_get_their_gradients():
    """A sum or product of such tensors alone is part of the gradient, too."""
    def outer(w: Any) -> Any:
        doubled = w * 2
        return jit(lambda a: a * (doubled * 3) + doubled * doubled)(x())

    np.testing.assert_allclose(grad(outer)(x()).asnumpy(), 6 * X + 8 * X)


class Scaler:
    """An object with a compiled method."""

    def __init__(self) -> None:
        self.k, self.several = 2.0, [1.0]

    @jit
    def scale(self, value: Any) -> Any:
        return value * self.k * self.several[0]


class ScalerCell(Scaler, Cell):
    def __init__(self) -> None:
        Cell.__init__(self)
        Scaler.__init__(self)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
@pytest.mark.parametrize("kind", [Scaler, ScalerCell])
def test_a_copied_object_has_its_own_compiled_methods(kind: type[Scaler], copied: Callable) -> None:
    first, one = kind(), Tensor([1.0])
    assert first.scale(one).asnumpy() == 2
    second = copied(first)
    second.k = 7.0
    for _ in range(2):
        assert [each.scale(one).asnumpy().item() for each in (second, first)] == [7.0, 2.0]
    second.several[0] = 3.0
    first.several = [5.0]
    assert [each.scale(one).asnumpy().item() for each in (second, first)] == [21.0, 10.0]


def test_an_object_without_weak_references_keeps_its_compiled_methods() -> None:
    class Bare:
        __slots__ = ("__dict__",)
        scale = Scaler.scale

    bare = Bare()
    bare.k, bare.several = 2.0, [1.0]  # type: ignore[attr-defined]
    assert bare.scale(Tensor([1.0])).asnumpy() == 2
    assert bare.scale._cache is bare.scale._cache
    assert copy.copy(bare).scale._cache is not bare.scale._cache
