"""Operators of two static methods with a context between them, the same eagerly and compiled."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import Parameter, Tensor, _Function, nn, ops
from opreg.errors import NotDifferentiableError

Run = Callable[[Any], Any]


@pytest.fixture(params=["eager", "compiled"])
def run(request: pytest.FixtureRequest) -> Run:
    return (lambda function: function) if request.param == "eager" else ms.jit


def of(forward: Callable, backward: Callable, **more: Any) -> type[_Function]:
    """A class with these static methods."""
    return type("Made", (_Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward), **more})


def numbers(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(map(numbers, value))
    return value.asnumpy().tolist() if isinstance(value, Tensor) else value


def x() -> Tensor:
    return Tensor([2.0, 3.0])


def y() -> Tensor:
    return Tensor([5.0, 7.0])


def saving(*names: str) -> tuple[Callable, Callable]:
    """The third power, with a gradient from saved values."""

    def forward(ctx: Any, a: Any) -> Any:
        square = a * a
        out = square * a
        ctx.save_for_backward(*[{"in": a, "way": square, "out": out}[name] for name in names])
        return out

    def backward(ctx: Any, g: Any) -> Any:
        saved = dict(zip(names, ctx.saved_tensors))
        if "in" in saved:
            return g * 3 * saved["in"] * saved["in"]
        return g * 3 * (saved["way"] if "way" in saved else ops.pow(saved["out"], 2 / 3))

    return forward, backward


# ------------------------------------------------------------------------------------------------ gradients


@pytest.mark.parametrize("names", [("in",), ("out",), ("way",), ("in", "way", "out")])
def test_saved_tensors_reach_backward(run, names):
    found = run(ms.grad(of(*saving(*names)).apply))(x())
    np.testing.assert_allclose(found.asnumpy(), [12, 27], rtol=1e-6)


@pytest.mark.parametrize("names", [("in",), ("out",)])
@pytest.mark.parametrize("order, expected", [(2, [12, 18]), (3, [6, 6])])
def test_gradients_of_every_order_are_right(run, names, order, expected):
    function: Any = of(*saving(*names)).apply
    for _ in range(order):
        function = ms.grad(function)
    np.testing.assert_allclose(run(function)(x()).asnumpy(), expected, rtol=1e-5)


def test_attributes_of_the_context_reach_backward_and_its_gradient(run):
    """Tensors may stand in any attribute, alone or nested; second derivatives see them all."""

    def forward(ctx: Any, a: Any, factor: float) -> Any:
        ctx.factor, ctx.pair, ctx.others = factor, (a, [a * factor]), {"more": "text"}
        return a * a * factor

    def backward(ctx: Any, g: Any) -> Any:
        assert ctx.others["more"] == "text" and ctx.factor == 4.0
        return g * ctx.pair[0] * 2 * ctx.factor, None

    function = of(forward, backward)
    assert numbers(run(ms.grad(lambda a: function.apply(a, 4.0)))(x())) == [16, 24]
    assert numbers(run(ms.grad(ms.grad(lambda a: function.apply(a, 4.0))))(x())) == [8, 8]


def test_intermediate_values_have_no_second_derivative(run):
    """A second derivative would silently be wrong, since nothing tells how the value depends on the argument."""
    function = of(*saving("way"))
    with pytest.raises(NotDifferentiableError, match=r"Made: .*save only inputs and outputs"):
        run(ms.grad(ms.grad(function.apply)))(x())


def test_parameters_are_arguments(run):
    p = Parameter(Tensor([4.0, 4.0]), name="p")
    function = of(lambda ctx, a, w: (ctx.save_for_backward(a, w), a * w)[1],
                  lambda ctx, g: (g * ctx.saved_tensors[1] * 10, g * ctx.saved_tensors[0] * 100))
    found = run(ms.grad(lambda a: function.apply(a, p), 0, [p]))(x())
    assert numbers(found) == ([40, 40], ([200, 300],))


def test_functions_may_return_tensors_and_other_values(run):
    seen: list[Any] = []

    def backward(ctx: Any, *grads: Any) -> Any:
        seen.append([g if g is None else [*g] if isinstance(g, dict) else g.shape for g in grads])
        return grads[0] * 3, grads[2] * 4

    function = of(lambda ctx, a, b: (a + b, 4, a * a, {"name": b}), backward)
    found = run(ms.grad(lambda a, b: function.apply(a, b)[0] + function.apply(a, b)[2], (0, 1)))(x(), y())
    assert numbers(found) == ([3, 3], [4, 4])
    assert seen == [[(2,), None, (2,), ["name"]]] * 2
    assert function.apply(x(), y())[1] == 4


def test_nested_arguments_have_nested_gradients(run):
    function = of(lambda ctx, pair, scale: pair["a"] * pair["b"] * scale,
                  lambda ctx, g: ({"a": g * 10, "b": None}, None))
    found = run(ms.grad(lambda a, b: function.apply({"a": a, "b": b}, 2.0), (0, 1)))(x(), y())
    assert numbers(found) == ([10, 10], [0, 0])


def test_missing_output_gradients_are_zeros_or_none(run):
    seen: list[Any] = []

    def used(materialize: bool) -> Callable:
        def forward(ctx: Any, a: Any) -> Any:
            ctx.set_materialize_grads(materialize)
            return a * 2, a * 3

        def backward(ctx: Any, g: Any, h: Any) -> Any:
            seen.append(h is None)
            return g * 5 if h is None else g * 5 + h

        return lambda a: of(forward, backward).apply(a)[0]

    for materialize in (True, False):
        assert numbers(run(ms.grad(used(materialize)))(x())) == [5, 5]
    assert seen == [False, True]


def test_marked_outputs_have_no_gradient(run):
    """Marked outputs have no gradient, also if they are arguments."""

    def some(ctx: Any, a: Any, b: Any) -> Any:
        places = a * 0
        ctx.mark_non_differentiable(places)
        return a * b, places

    function = of(some, lambda ctx, g, h: (g * 3 + h, g * 4))
    assert numbers(run(ms.grad(lambda a, b: sum(function.apply(a, b)), (0, 1)))(x(), y())) == ([3, 3], [4, 4])
    for forward in (lambda ctx, a, b: (ctx.mark_non_differentiable(a), a)[1],
                    lambda ctx, a, b: (lambda c: (ctx.mark_non_differentiable(c), c)[1])(a * a)):
        function = of(forward, lambda ctx, g: (g, g))
        assert numbers(run(ms.grad(function.apply, (0, 1)))(x(), y())) == ([0, 0], [0, 0])


def test_needs_input_grad_tells_requested_gradients():
    seen: list[Any] = []

    def forward(ctx: Any, a: Any, b: Any, scale: float) -> Any:
        seen.append(ctx.needs_input_grad)
        return a * b * scale

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return g, g, None

    function = of(forward, backward)
    ms.grad(function.apply, 1)(x(), y(), 3.0)
    ms.grad(function.apply, (0, 1))(x(), y(), 3.0)
    function.apply(x(), y(), 3.0)
    assert seen == [(False, True, False)] * 2 + [(True, True, False)] * 2 + [(False, False, False)]


@pytest.mark.parametrize("returned, expected", [
    (lambda g: g.astype(ms.int64) * 3, [3, 3]), (lambda g: ops.stack([g, g]) * 3, [6, 6]), (lambda g: None, [0, 0]),
    (lambda g: (g * 3, None, None), [3, 3])])
def test_results_of_backward_become_gradients(run, returned, expected):
    """Backward may return another dtype, a larger shape, None, and more Nones than there are arguments."""
    found = run(ms.grad(of(lambda ctx, a: a * 2, lambda ctx, g: returned(g)).apply))(x())
    assert found.dtype is ms.float32 and numbers(found) == expected


def test_apply_takes_defaults_and_keywords_and_each_call_has_a_context(run):
    function = of(lambda ctx, a, scale=2.0: a * scale, lambda ctx, g: (g * 3, None))
    assert numbers(run(ms.grad(lambda a: function.apply(a)))(x())) == [3, 3]
    assert numbers(run(ms.grad(lambda a: function.apply(scale=5.0, a=a)))(x())) == [3, 3]

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.scale = inputs[1]
        ctx.save_for_backward(inputs[0], output)

    function = of(lambda a, scale=2.0: a * a * scale, lambda ctx, g: (g * 2 * ctx.saved_tensors[0] * ctx.scale, None),
                  setup_context=staticmethod(setup))
    assert numbers(run(ms.grad(lambda a: function.apply(a)))(x())) == [8, 12]
    assert numbers(run(ms.grad(ms.grad(lambda a: function.apply(a, scale=3.0))))(x())) == [6, 6]


def test_a_function_runs_without_a_requested_gradient(run):
    function = of(lambda ctx, a: a, lambda ctx, g: g)
    value = x()
    found = run(lambda a: function.apply(a))(value)
    assert found is not value and numbers(found) == numbers(value)


def test_a_function_runs_in_a_cell_with_hooks(run):
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Dense(2, 1, weight_init=Tensor([[1.0, -1.0]]), has_bias=False)

        def construct(self, a: Any) -> Any:
            return of(lambda ctx, a: ops.relu(a), lambda ctx, g: g * 0.5).apply(self.fc(a))

    net, seen = Net(), []
    net.fc.register_full_backward_hook(lambda cell, gi, go: seen.append(numbers(go)))
    found = run(ms.grad(net, 0, net.trainable_params()))(x().reshape(1, 2))
    assert numbers(found) == ([[0.5, -0.5]], ([[1, 1.5]],)) and seen == [([[0.5]],)]


# ----------------------------------------------------------------------------------------------- in place


def changed(mark: bool = True, give: bool = True) -> type[_Function]:
    """Multiplies its first argument in place."""

    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a.clone(), b)
        a.mul_(b)
        if mark:
            ctx.mark_dirty(a)
        return a if give else b * 2

    return of(forward, lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]))


def test_in_place_changes_of_an_argument_are_visible_to_the_caller(run):
    function = changed()

    def through(a: Any, b: Any) -> Any:
        c = a + 1
        result = function.apply(c, b)
        return c * 10 + result * 0

    assert numbers(run(through)(x(), y())) == [150, 280]
    assert numbers(run(ms.grad(through, (0, 1)))(x(), y())) == ([50, 70], [30, 40])


def test_invalid_in_place_changes_are_refused(run):
    """Forward changes an input without mark_dirty, or an array that it does not return."""
    with pytest.raises(RuntimeError, match="The dirty tensors must all be outputs of the forward function"):
        run(ms.grad(lambda a, b: changed(give=False).apply(a + 0, b), 0))(x(), y())
    with pytest.raises(RuntimeError, match=r"changed an argument in place.*mark_dirty"):
        run(ms.grad(lambda a, b: changed(mark=False).apply(a + 0, b), 0))(x(), y())


def test_differentiated_inputs_are_not_changed():
    with pytest.raises(RuntimeError, match="A leaf tensor that need grad is being used in an inplace operator"):
        ms.grad(changed().apply, 0)(x(), y())
    a, b = x(), y()
    assert changed().apply(a, b) is a and numbers(a) == [10, 21]  # without recording, every change is allowed
    assert numbers(ms.grad(lambda b: changed().apply(Tensor([1.0, 1.0]), b))(b)) == [1, 1]


# ------------------------------------------------------------------------------------------------ mistakes


@pytest.mark.parametrize("returned, kind, message", [
    (lambda g: g, RuntimeError, "Function backward return a wrong number of gradients, expected 2 but got 1"),
    (lambda g: (g, g, g), RuntimeError, "Function backward return a wrong number of gradients"),
    (lambda g: (g, g), RuntimeError, "Input is not tensor, but gradient is not none, position: 1"),
    (lambda g: (4, None), RuntimeError, "Gradient should be none or tensor, position: 0 type: int"),
    (lambda g: (np.ones(2), None), RuntimeError, "Gradient should be none or tensor, position: 0 type: ndarray"),
    (lambda g: (g.sum(), None), RuntimeError, r"grad tensor should be broadcast to .*argument 0 has shape \(\)"),
    (lambda g: (g[:1], None), RuntimeError, "grad tensor should be broadcast to"),
    (lambda g, h: (g, None), TypeError, "'h'"),
])
def test_mistakes_of_backward_are_refused(run, returned, kind, message):
    function = of(lambda ctx, a, scale: a * scale, lambda ctx, *g: returned(*g))
    with pytest.raises(kind, match=message):
        run(ms.grad(lambda a: function.apply(a, 2.0)))(x())


def test_exceptions_keep_their_type(run):
    def fail(ctx: Any, *_: Any) -> Any:
        raise KeyError("mine")

    for function, where in ((of(fail, fail), "forward"), (of(lambda ctx, a: a * 2, fail), "backward")):
        with pytest.raises(KeyError, match="mine") as caught:
            run(ms.grad(lambda a, function=function: function.apply(a)))(x())
        assert f"in the {where} of Made" in caught.value.__notes__


def test_mistakes_of_forward_are_refused(run):
    one = Tensor([1.0])
    for mark in ("mark_dirty", "mark_non_differentiable"):
        function = of(lambda ctx, a, mark=mark: (getattr(ctx, mark)(a, 1.0), a)[1], lambda ctx, g: g)
        with pytest.raises(RuntimeError, match=r"element of \w+ should be a tensor, got float"):
            run(lambda a, function=function: function.apply(a))(one)
    function = of(lambda ctx, a: (ctx.save_for_backward(a, (a, a)), a * 2)[1], lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="save_for_backward: only support None and tensor, got tuple"):
        run(ms.grad(lambda a: function.apply(a)))(one)
    with pytest.raises(NotImplementedError, match="forward function should be customized"):
        run(lambda a: type("Empty", (_Function,), {}).apply(a))(one)
    with pytest.raises(ValueError, match=r"forward must take scale by position"):
        of(lambda ctx, a, *, scale: a, lambda ctx, g: g).apply(one, scale=2.0)


def test_nothing_forms_a_cycle(uncollected):
    function = of(*saving("in", "way", "out"))
    with ms.autograd.record():
        value = x()
        value.attach_grad()
        out = function.apply(value)
    seen = weakref.ref(out)
    del out
    assert seen() is None
