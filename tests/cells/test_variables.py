"""Functions of several threads that are differentiated with respect to the same Parameters, at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from opreg.cells.grad import grad, value_and_grad
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter
from opreg.cells.tensor import Tensor
from opreg.core.registry import ops
from opreg.ndarray import autograd

X = Tensor([[0.5, -1.0]])
Pause = Callable[[], None]


def numbers(tree: Any) -> Any:
    """Tensors in any nesting as lists, rounded."""
    if isinstance(tree, (tuple, list)):
        return [numbers(value) for value in tree]
    return tree.asnumpy().astype("float64").round(4).tolist()


class Task:
    """Functions of one scale and one shift, which call ``pause`` between two operators."""

    def __init__(self) -> None:
        self.weights = [Parameter(Tensor([1.5, -2.0]), name="scale"), Parameter(Tensor([0.25, 0.5]), name="shift")]

    def loss(self, x: Any, pause: Pause = lambda: None) -> Any:
        scale, shift = self.weights
        product = ops.tanh(x) * scale
        pause()
        return (ops.tanh(product + shift) * scale).sum()

    def slope(self, x: Any, pause: Pause = lambda: None, inner: Pause = lambda: None) -> Any:
        scale, _ = self.weights
        before = ops.tanh(scale)
        grads = grad(self.loss, None, self.weights)(x, inner)
        pause()
        return sum([(g * before * scale).sum() for g in grads])

    def first(self, pause: Pause) -> Any:
        return value_and_grad(self.loss, 0, self.weights)(X, pause)

    def second(self, pause: Pause) -> Any:
        return value_and_grad(self.slope, 0, self.weights)(X, pause)

    def second_inside(self, pause: Pause) -> Any:
        return value_and_grad(lambda x: self.slope(x, inner=pause), 0, self.weights)(X)

    def of_input(self, pause: Pause) -> Any:
        return value_and_grad(self.loss, 0, None)(X, pause)

    def recorded(self, pause: Pause) -> Any:
        with autograd.record():
            loss, grads = value_and_grad(self.loss, None, self.weights)(X, pause)
        return loss, grads

    def compiled(self, pause: Pause) -> Any:
        step = jit(self.loss)

        def loss(x: Any) -> Any:
            result = step(x)
            pause()
            return result * self.weights[0].sum()

        return value_and_grad(loss, 0, self.weights)(X)


KINDS = ["first", "second", "second_inside", "of_input", "recorded", "compiled"]
#: Without pairs of which one waits for the other: one thread at a time has variables of inner functions.
PAIRS = [(one, other) for one in KINDS for other in KINDS if not (
    one in ("second_inside", "recorded") and other in ("second", "second_inside", "recorded"))]


@pytest.mark.parametrize("within", [True, False], ids=["one inside the other", "one ends before the other"])
@pytest.mark.parametrize("outer, inner", PAIRS)
def test_functions_of_two_threads_have_the_gradients_that_each_has_alone(outer, inner, within):
    task = Task()
    expected = [numbers(getattr(task, kind)(lambda: None)) for kind in (outer, inner)]
    started, resume, found = threading.Event(), threading.Event(), []

    def wait() -> None:
        started.set()
        assert resume.wait(60)

    thread = threading.Thread(target=lambda: found.append(numbers(getattr(task, outer)(wait))))

    def end_the_other() -> None:
        resume.set()
        thread.join(60)

    thread.start()
    assert started.wait(60)
    here = numbers(getattr(task, inner)(lambda: None if within else end_the_other()))
    end_the_other()
    assert [*found, here] == expected
    assert [weight._entry for weight in task.weights] == [None, None]
