"""Hooks of tensors and parameters, and operators that call a function with their gradient, in both modes."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from opreg.cells.grad import grad
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter
from opreg.cells.tensor import Tensor
from opreg.cells.tensor_hooks import HookBackward
from tests.cells.hooked_cells import Weighted, X, numbers, x


def test_hook_backward_takes_several_tensors(run):
    seen: list[Any] = []
    hook = HookBackward(lambda g: (seen.append(numbers(g)), (g[0] * 2, g[1]))[1])

    def function(a: Any, b: Any) -> Any:
        a, b = hook(a, b)
        return a * b

    assert numbers(run(grad(function, (0, 1)))(x(), Tensor([2.0, 2.0, 2.0]))) == ([4] * 3, X.tolist())
    assert seen == [([2] * 3, X.tolist())]


def test_two_programs_of_one_shape_keep_their_hooks():
    seen: list[str] = []
    for name in ("first", "second"):
        hook = HookBackward(lambda g, name=name: seen.append(name))
        for function in (grad(lambda a, hook=hook: hook(a * a) * a), jit(grad(lambda a, hook=hook: hook(a * a) * a))):
            function(x())
    assert seen == ["first"] * 2 + ["second"] * 2


def test_tensor_hook_fires_again_in_the_second_pass(run):
    def function(a: Any) -> Any:
        square = a * a
        square.register_hook(lambda g: g * 10)
        return square * a

    assert numbers(run(grad(function))(Tensor(2.0))) == 84
    assert numbers(run(grad(grad(function)))(Tensor(2.0))) == 120


@pytest.mark.filterwarnings("ignore:.*an argument with hooks")
@pytest.mark.parametrize("wrap", [lambda *values: values, lambda *values: ([*values],)], ids=["bare", "list"])
def test_hooks_of_differentiated_tensors_belong_to_each_call(run, wrap):
    """Each call uses the hooks of its own tensors, also in a function that was compiled for others."""
    weighted = grad(lambda values: values[0] * 3 + values[1] * 5)
    gradient = run(lambda *args: weighted(args[0] if len(args) == 1 else args))
    a, b = Tensor(1.0), Tensor(2.0)

    def now() -> Any:
        return numbers(gradient(*wrap(a, b)))

    assert now() == (3, 5)
    handle = a.register_hook(lambda g: g * 10)
    b.register_hook(lambda g: g * 100)
    assert now() == (30, 500)
    handle.remove()
    assert now() == (3, 500)
    a, b = Tensor(1.0), Tensor(2.0)
    assert now() == (3, 5)


def test_an_argument_with_hooks_that_is_not_differentiated_in_is_compiled():
    """The argument's hooks get no gradient."""
    a = Tensor(2.0)
    a.register_hook(lambda g: g * 10)
    step = jit(lambda a: grad(lambda b: b * a)(a + 1))
    assert numbers(step(a)) == 2
    assert "runs as Python" not in str(step.explain())


def test_hooks_of_an_outside_tensor_may_be_added_and_removed(run):
    a = Tensor(2.0)
    gradient = run(lambda: grad(lambda a: a * 3)(a))
    assert numbers(gradient()) == 3
    with a.register_hook(lambda g: g * 10):
        assert numbers(gradient()) == 30
    assert numbers(gradient()) == 3
    a.register_hook(lambda g: g * 7)
    assert numbers(gradient()) == 21


@pytest.mark.parametrize("returned, kind, message", [
    (lambda g: 3, RuntimeError, "Tensor hook should be return Tensor, but get type: int"),
    (lambda g: (g, g), RuntimeError, "Tensor hook should be return Tensor, but get type: tuple"),
    (lambda g: g.sum(), ValueError, r"shape \(\), expected \(3,\)"),
    (lambda g: g.astype(np.float16), ValueError, "dtype float16, expected float32")])
def test_wrong_returns_of_parameter_hooks(run, returned, kind, message):
    cell = Weighted()
    cell.w.register_hook(returned)
    with pytest.raises(kind, match=f"Parameter w.*{message}"):
        run(grad(lambda a: cell(a, a)[0], None, cell.w))(x())


def test_a_parameter_hook_replaces_the_gradient(run):
    cell, seen = Weighted(), []
    handle = cell.w.register_hook(lambda g: (seen.append(numbers(g)), g * 2)[1])
    gradient = run(grad(lambda a: cell(a, a)[0], None, cell.w))
    assert numbers(gradient(x())) == (2 * X).tolist() and seen == [X.tolist()]
    handle.remove()
    assert numbers(gradient(x())) == X.tolist()
    cell.w.register_hook(lambda g: g * 3)
    cell.w = Parameter(Tensor([1.0, 1.0, 1.0]), name="w")  # hooks belong to the attribute
    assert numbers(grad(lambda a: cell(a, a)[0], None, cell.w)(x())) == (3 * X).tolist()


def test_hooks_on_tensors_are_part_of_the_record():
    class Big:
        pass

    held = Big()
    gone = weakref.ref(held)

    def function(a: Any, held: Any = held) -> Any:
        b = a * a
        b.register_hook(lambda g, held=held: None)
        return b

    grad(function)(x())
    del function, held
    gc.collect()
    assert gone() is None
