"""Programs with bprop and hooks in depth, run by MindSpore or by opreg, which have the same names.

The answers of MindSpore 2.10 in both of its modes are kept in ``mindspore_bprop.json``. Where it is installed, this
file writes them:

    python tests/recorded/mindspore_bprop.py tests/recorded/mindspore_bprop.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["MODES", "OTHERWISE", "BPROP_PROGRAMS", "asked", "weighted", "with_hooks"]

MODES = ("PYNATIVE_MODE", "GRAPH_MODE")
#: Results that differ from MindSpore's on purpose, as docs/mindspore.md says; None where only calls of hooks differ.
OTHERWISE: dict[str, Any] = {
    "recompute of a Cell with bprop": [35.0, 35.0],  # MindSpore leaves out the bprop
    "a hook on an argument of a jit function": None,  # MindSpore compiles the hook, and calls no Python
    "a hook in a jit function behind a reader": None,
    "second derivative with a backward hook": None,  # MindSpore passes input gradients as output gradients
}
#: Each program takes a module with MindSpore's names and a list for calls of hooks; it returns tensors.
#: MindSpore compiles hooks in graph mode, where they cannot append to a list: there the list is None.
BPROP_PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {}


def program(make: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Register a program by its name, with spaces in place of underscores."""
    BPROP_PROGRAMS[make.__name__.replace("_", " ")] = make
    return make


def shown(value: Any) -> Any:
    """Tensors in a nested value, as lists."""
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [shown(each) for each in value]
    return value.asnumpy().tolist() if hasattr(value, "asnumpy") else value


def asked(ms: Any, name: str, mode: str) -> dict[str, Any]:
    """Result and calls of a program in a mode, or the name of its error."""
    called: list[Any] | None = [] if mode == MODES[0] else None
    before = ms.get_context("mode")
    ms.set_context(mode=getattr(ms, mode))
    try:
        answer = {"result": shown(BPROP_PROGRAMS[name](ms, called))}
    except Exception as error:
        answer = {"error": [each.__name__ for each in type(error).__mro__[:-2]]}
    finally:
        ms.set_context(mode=before)
    return answer if called is None else {"called": called, **answer}


def pair(ms: Any) -> tuple[Any, Any]:
    """Two tensors."""
    return ms.Tensor([1.0, 2.0], ms.float32), ms.Tensor([5.0, 7.0], ms.float32)


def scaled(ms: Any, factor: float) -> Any:
    """A Cell that doubles its input, whose bprop multiplies by a factor that is no derivative."""

    class Scaled(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any) -> Any:
            return x * 2

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * factor,)

    return Scaled()


def chained(ms: Any, *cells: Any) -> Any:
    """A Cell that applies Cells one after the other."""

    class Chain(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.stages = ms.nn.CellList(list(cells))

        def construct(self, x: Any) -> Any:
            for cell in self.stages:
                x = cell(x)
            return x

    return Chain()


@program
def bprop_of_the_outermost_Cell(ms: Any, called: Any) -> Any:
    return ms.grad(scaled(ms, 5.0))(pair(ms)[0])


@program
def bprop_of_an_inner_Cell(ms: Any, called: Any) -> Any:
    return ms.grad(chained(ms, scaled(ms, 5.0), scaled(ms, 7.0)))(pair(ms)[0])


@program
def bprop_of_the_outer_Cell_replaces_that_of_inner_ones(ms: Any, called: Any) -> Any:
    class Outer(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = scaled(ms, 5.0)

        def construct(self, x: Any) -> Any:
            return self.inner(x) * 3

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * 100 + x,)

    return ms.value_and_grad(Outer())(pair(ms)[0])


@program
def a_Cell_with_bprop_twice(ms: Any, called: Any) -> Any:
    cell = scaled(ms, 5.0)
    return ms.grad(chained(ms, cell, cell))(pair(ms)[0])


@program
def bprop_that_calls_a_Cell(ms: Any, called: Any) -> Any:
    class Outer(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.relu = ms.nn.ReLU()

        def construct(self, x: Any) -> Any:
            return self.relu(x)

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (self.relu(dout - 0.5) + out,)

    return ms.grad(Outer())(pair(ms)[0])


@program
def bprop_with_attributes_and_control_flow(ms: Any, called: Any) -> Any:
    class Clipped(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self, least: float) -> None:
            super().__init__()
            self.least, self.signed = least, False

        def construct(self, x: Any) -> Any:
            return x * 2

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            if self.signed:
                return (-dout,)
            for _ in range(3):
                dout = dout * self.least
            return (dout,)

    cell = Clipped(2.0)
    first = ms.grad(cell)(pair(ms)[0])
    return first, ms.grad(Clipped(3.0))(pair(ms)[0])


@program
def bprop_of_two_inputs(ms: Any, called: Any) -> Any:
    class Product(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any, y: Any) -> Any:
            return x * y

        def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
            return dout * y + 1, dout * x + 2

    return ms.grad(Product(), (0, 1))(*pair(ms))


@program
def bprop_with_a_default_of_construct(ms: Any, called: Any) -> Any:
    class Scale(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any, factor: Any = 3.0) -> Any:
            return x * factor

        def bprop(self, x: Any, factor: Any, out: Any, dout: Any) -> Any:
            return dout * factor * 10, 0.0

    return ms.grad(Scale())(pair(ms)[0], 4.0)


@program
def bprop_with_a_number_among_inputs(ms: Any, called: Any) -> Any:
    class Power(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any, n: Any) -> Any:
            return x * n

        def bprop(self, x: Any, n: Any, out: Any, dout: Any) -> Any:
            return dout * n * 10, 0

    return ms.grad(Power())(pair(ms)[0], 4)


@program
def bprop_with_keywords(ms: Any, called: Any) -> Any:
    class Product(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any, y: Any) -> Any:
            return x * y

        def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
            return dout * y * 10, dout * x * 20

    class Outer(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.product = Product()

        def construct(self, x: Any, y: Any) -> Any:
            return self.product(x, y=y)

    return ms.grad(Outer(), (0, 1))(*pair(ms))


@program
def bprop_of_a_tuple_output(ms: Any, called: Any) -> Any:
    class Two(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any) -> Any:
            return x * 2, x * 3

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout[0] * 10 + dout[1] * 100 + out[1],)

    return ms.grad(Two())(pair(ms)[0])


@program
def bprop_of_one_of_two_outputs(ms: Any, called: Any) -> Any:
    class Two(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any) -> Any:
            return x * 2, x * 3

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout[0] * 10 + dout[1] * 100,)

    class Outer(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.two = Two()

        def construct(self, x: Any) -> Any:
            return self.two(x)[1] * 2

    return ms.grad(Outer())(pair(ms)[0])


@program
def bprop_of_a_nested_output(ms: Any, called: Any) -> Any:
    class Nested(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any) -> Any:
            return x * 2, (x * 3, x * 4)

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout[0] + dout[1][0] * 10 + dout[1][1] * 100,)

    return ms.grad(Nested())(pair(ms)[0])


@program
def bprop_of_a_tuple_input(ms: Any, called: Any) -> Any:
    class Sum(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, pair: Any) -> Any:
            return pair[0] * 2 + pair[1] * 3

        def bprop(self, pair: Any, out: Any, dout: Any) -> Any:
            return ((dout * 10, dout * 20),)

    class Outer(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.sum = Sum()

        def construct(self, x: Any, y: Any) -> Any:
            return self.sum((x * 2, y))

    return ms.grad(Outer(), (0, 1))(*pair(ms))


@program
def bprop_that_returns_a_tensor(ms: Any, called: Any) -> Any:
    class Bare(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any) -> Any:
            return x * 2

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return dout * 5

    return ms.grad(chained(ms, Bare()))(pair(ms)[0])


@program
def bprop_that_returns_zeros_like(ms: Any, called: Any) -> Any:
    class Blocked(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any, y: Any) -> Any:
            return x * y

        def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
            return dout * y, ms.ops.zeros_like(y)

    return ms.grad(Blocked(), (0, 1))(*pair(ms))


@program
def bprop_that_returns_None_for_an_input(ms: Any, called: Any) -> Any:
    class Blocked(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any, y: Any) -> Any:
            return x * y

        def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
            return dout * y, None

    class Outer(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.blocked = Blocked()

        def construct(self, x: Any, y: Any) -> Any:
            return self.blocked(x * 2, y * 3) + y

    return ms.grad(Outer(), 0)(*pair(ms))


@program
def bprop_that_returns_too_few(ms: Any, called: Any) -> Any:
    class Short(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any, y: Any) -> Any:
            return x * y

        def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
            return (dout * y,)

    return ms.grad(chained_of_two(ms, Short()), (0, 1))(*pair(ms))


def chained_of_two(ms: Any, cell: Any) -> Any:
    """A Cell of two inputs around another."""

    class Outer(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = cell

        def construct(self, x: Any, y: Any) -> Any:
            return self.inner(x, y) * 1

    return Outer()


@program
def bprop_that_raises(ms: Any, called: Any) -> Any:
    class Failing(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any) -> Any:
            return x * 2

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            raise ValueError("no gradient")

    return ms.grad(chained(ms, Failing()))(pair(ms)[0])


def with_internal_params(ms: Any) -> Any:
    """A Cell with a weight, whose bprop gives the gradient of the weight, too."""

    class Weighted(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(ms.Tensor([3.0, 4.0], ms.float32), name="w")
            self.internal_params = [self.w]

        def construct(self, x: Any) -> Any:
            return x * self.w

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * 10,), {self.w: dout * x * 100}

    return Weighted()


@program
def bprop_with_internal_params(ms: Any, called: Any) -> Any:
    net = with_internal_params(ms)
    return ms.grad(net, 0, net.trainable_params())(pair(ms)[0])


@program
def bprop_with_internal_params_inside(ms: Any, called: Any) -> Any:
    net = chained(ms, scaled(ms, 5.0), with_internal_params(ms))
    return ms.grad(net, 0, net.trainable_params())(pair(ms)[0])


@program
def a_hook_on_one_of_internal_params(ms: Any, called: Any) -> Any:
    net = chained(ms, with_internal_params(ms), scaled(ms, 5.0))
    net.trainable_params()[0].register_hook(noted(called, "w", tenfold))
    return ms.grad(net, 0, net.trainable_params())(pair(ms)[0])


@program
def bprop_with_a_Parameter(ms: Any, called: Any) -> Any:
    class Weighted(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(ms.Tensor([3.0, 4.0], ms.float32), name="w")

        def construct(self, x: Any) -> Any:
            return x * self.w

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * 10,), {self.w: dout * x * 100}

    net = Weighted()
    return ms.grad(net, 0, net.trainable_params())(pair(ms)[0])


@program
def bprop_with_a_Parameter_of_an_inner_Cell(ms: Any, called: Any) -> Any:
    class Weighted(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(ms.Tensor([3.0, 4.0], ms.float32), name="w")

        def construct(self, x: Any) -> Any:
            return x * self.w

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * 10,), {self.w: dout * x * 100}

    net = chained(ms, Weighted(), Weighted())
    return ms.grad(net, 0, net.trainable_params())(pair(ms)[0])


@program
def a_Parameter_that_bprop_leaves_out(ms: Any, called: Any) -> Any:
    class Weighted(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(ms.Tensor([3.0, 4.0], ms.float32), name="w")

        def construct(self, x: Any) -> Any:
            return x * self.w

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * 10,)

    net = Weighted()
    return ms.grad(net, None, net.trainable_params())(pair(ms)[0])


@program
def a_Parameter_as_input_of_a_Cell_with_bprop(ms: Any, called: Any) -> Any:
    class Product(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any, w: Any) -> Any:
            return x * w

        def bprop(self, x: Any, w: Any, out: Any, dout: Any) -> Any:
            return dout * w * 10, dout * x * 100

    class Outer(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(ms.Tensor([3.0, 4.0], ms.float32), name="w")
            self.product = Product()

        def construct(self, x: Any) -> Any:
            return self.product(x, self.w)

    net = Outer()
    return ms.grad(net, 0, net.trainable_params())(pair(ms)[0])


@program
def second_derivative_of_a_bprop(ms: Any, called: Any) -> Any:
    class Cube(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any) -> Any:
            return x * x * x

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * x * x * 4,)

    return ms.grad(ms.grad(Cube()))(pair(ms)[0])


@program
def second_derivative_through_out(ms: Any, called: Any) -> Any:
    class Exponential(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any) -> Any:
            return x * x

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * out,)

    return ms.grad(ms.grad(chained(ms, Exponential())))(pair(ms)[0])


@program
def sens(ms: Any, called: Any) -> Any:
    x, y = pair(ms)
    return ms.ops.GradOperation(sens_param=True)(scaled(ms, 5.0))(x, y)


@program
def sens_of_all_inputs_and_weights(ms: Any, called: Any) -> Any:
    class Weighted(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(ms.Tensor([3.0, 4.0], ms.float32), name="w")
            self.scaled = scaled(ms, 5.0)

        def construct(self, x: Any) -> Any:
            return self.scaled(x) * self.w

    net, (x, y) = Weighted(), pair(ms)
    make = ms.ops.GradOperation(get_all=True, get_by_list=True, sens_param=True)
    return make(net, ms.ParameterTuple(net.trainable_params()))(x, y)


@program
def sens_of_two_outputs(ms: Any, called: Any) -> Any:
    class Two(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any) -> Any:
            return x * 2, x * 3

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout[0] * 10 + dout[1] * 100,)

    x, y = pair(ms)
    return ms.ops.GradOperation(sens_param=True)(Two())(x, (y, x))


@program
def stop_gradient_before_a_Cell_with_bprop(ms: Any, called: Any) -> Any:
    class Outer(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.scaled = scaled(ms, 5.0)

        def construct(self, x: Any) -> Any:
            return self.scaled(ms.ops.stop_gradient(x)) + x * 3

    return ms.grad(Outer())(pair(ms)[0])


@program
def stop_gradient_behind_a_Cell_with_bprop(ms: Any, called: Any) -> Any:
    class Outer(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.scaled = scaled(ms, 5.0)

        def construct(self, x: Any) -> Any:
            return ms.ops.stop_gradient(self.scaled(x)) * x

    return ms.grad(Outer())(pair(ms)[0])


@program
def stop_gradient_in_a_bprop(ms: Any, called: Any) -> Any:
    class Held(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any) -> Any:
            return x * x

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * ms.ops.stop_gradient(x) * x,)

    return ms.grad(ms.grad(Held()))(pair(ms)[0])


@program
def bprop_in_a_branch(ms: Any, called: Any) -> Any:
    class Branch(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.five, self.seven = scaled(ms, 5.0), scaled(ms, 7.0)

        def construct(self, x: Any) -> Any:
            if x.sum() > 5:
                return self.five(x)
            return self.seven(x)

    net = Branch()
    return ms.grad(net)(pair(ms)[0]), ms.grad(net)(pair(ms)[1])


@program
def bprop_in_a_loop(ms: Any, called: Any) -> Any:
    class Loop(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.scaled = scaled(ms, 5.0)

        def construct(self, x: Any) -> Any:
            for _ in range(3):
                x = self.scaled(x)
            return x

    return ms.grad(Loop())(pair(ms)[0])


@program
def a_jit_function_that_calls_a_Cell_with_bprop(ms: Any, called: Any) -> Any:
    cell = scaled(ms, 5.0)

    @ms.jit
    def run(x: Any) -> Any:
        return cell(x) * 3

    return ms.grad(run)(pair(ms)[0])


@program
def a_jit_construct_with_bprop(ms: Any, called: Any) -> Any:
    class Jitted(ms.nn.Cell):  # type: ignore[name-defined,misc]
        @ms.jit
        def construct(self, x: Any) -> Any:
            return x * 2

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * 5,)

    return ms.grad(chained(ms, Jitted()))(pair(ms)[0])


@program
def a_gradient_in_jit(ms: Any, called: Any) -> Any:
    cell = scaled(ms, 5.0)

    @ms.jit
    def run(x: Any) -> Any:
        return ms.grad(cell)(x)

    return run(pair(ms)[0])


@program
def a_construct_that_computes_a_gradient(ms: Any, called: Any) -> Any:
    class Outer(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.scaled = scaled(ms, 5.0)
            self.gradient = ms.ops.GradOperation()

        def construct(self, x: Any) -> Any:
            return self.gradient(self.scaled)(x) * x

    return Outer()(pair(ms)[0])


@program
def recompute_of_a_Cell_with_bprop(ms: Any, called: Any) -> Any:
    cell = scaled(ms, 5.0)
    cell.recompute()
    return ms.grad(chained(ms, cell, scaled(ms, 7.0)))(pair(ms)[0])


@program
def recompute_of_a_Cell_around_a_bprop(ms: Any, called: Any) -> Any:
    inner = chained(ms, scaled(ms, 5.0), scaled(ms, 7.0))
    inner.recompute()
    return ms.grad(chained(ms, inner))(pair(ms)[0])


@program
def has_aux(ms: Any, called: Any) -> Any:
    cell = scaled(ms, 5.0)

    def run(x: Any, y: Any) -> Any:
        return cell(x) * y, x + y

    return ms.value_and_grad(run, 0, has_aux=True)(*pair(ms))


def nothing(given: Any) -> Any:
    """No new gradient."""
    return None


def tenfold(gradient: Any) -> Any:
    """Ten times a gradient."""
    return gradient * 10


def first_tenfold(gradients: Any) -> Any:
    """Ten times the first gradient."""
    return (gradients[0] * 10,)


def one_more(gradient: Any) -> Any:
    """A gradient plus one."""
    return gradient + 1


def tripled(output: Any) -> Any:
    """Three times an output."""
    return output * 3


def noted(called: Any, name: str, result: Callable[[Any], Any] = nothing) -> Callable[..., Any]:
    """A hook on a tensor that records the gradient, and returns a function of it."""
    def note(gradient: Any) -> Any:
        called.append([name, shown(gradient)])
        return result(gradient)

    return result if called is None else note


def noted_on_a_cell(called: Any, name: str, result: Callable[[Any], Any] = nothing,
                    kind: str = "backward") -> Callable[..., Any]:
    """A hook of a Cell that records its arguments, and returns a function of what flows through it."""
    def flowing(cell: Any, first: Any, second: Any = None) -> Any:
        return result(second if kind == "forward" else first)

    def note(cell: Any, *given: Any) -> Any:
        called.append([name, *map(shown, given)])
        return flowing(cell, *given)

    return flowing if called is None else note


@program
def backward_hook_on_a_Cell_with_bprop(ms: Any, called: Any) -> Any:
    cell = scaled(ms, 5.0)
    cell.register_backward_hook(noted_on_a_cell(called, "hook"))
    return ms.grad(chained(ms, cell, scaled(ms, 7.0)))(pair(ms)[0])


@program
def backward_hook_that_replaces_the_gradient_of_a_bprop(ms: Any, called: Any) -> Any:
    cell = scaled(ms, 5.0)
    cell.register_backward_hook(noted_on_a_cell(called, "hook", first_tenfold))
    return ms.grad(chained(ms, scaled(ms, 7.0), cell))(pair(ms)[0])


@program
def backward_pre_hook_on_a_Cell_with_bprop(ms: Any, called: Any) -> Any:
    cell = scaled(ms, 5.0)

    cell.register_backward_pre_hook(noted_on_a_cell(called, "pre", first_tenfold))
    return ms.grad(chained(ms, cell, scaled(ms, 7.0)))(pair(ms)[0])


@program
def forward_hooks_around_a_backward_hook(ms: Any, called: Any) -> Any:
    cell = ms.nn.ReLU()

    cell.register_forward_pre_hook(noted_on_a_cell(called, "before", first_tenfold))
    cell.register_forward_hook(noted_on_a_cell(called, "after", tripled, "forward"))
    cell.register_backward_hook(noted_on_a_cell(called, "backward"))
    return ms.grad(chained(ms, cell))(pair(ms)[0])


@program
def a_backward_hook_that_removes_itself(ms: Any, called: Any) -> Any:
    cell = ms.nn.ReLU()
    handles: list[Any] = []

    handles.append(cell.register_backward_hook(
        noted_on_a_cell(called, "once", lambda given: handles[0].remove())))
    net = chained(ms, cell)
    return [ms.grad(net)(x) for x in pair(ms)]


@program
def a_backward_hook_that_removes_the_next(ms: Any, called: Any) -> Any:
    first, second = ms.nn.ReLU(), ms.nn.ReLU()
    handles: list[Any] = []

    handles.append(first.register_backward_hook(noted_on_a_cell(called, "first")))
    second.register_backward_hook(noted_on_a_cell(called, "second", lambda given: handles[0].remove()))
    net = chained(ms, first, second)
    return [ms.grad(net)(x) for x in pair(ms)]


@program
def a_hook_removed_between_two_gradients(ms: Any, called: Any) -> Any:
    cell = ms.nn.ReLU()
    handle = cell.register_backward_hook(noted_on_a_cell(called, "hook", first_tenfold))
    net = chained(ms, cell)
    first = ms.grad(net)(pair(ms)[0])
    handle.remove()
    return first, ms.grad(net)(pair(ms)[0])


@program
def a_backward_hook_that_raises(ms: Any, called: Any) -> Any:
    cell = ms.nn.ReLU()

    def fail(which: Any, at_inputs: Any, at_outputs: Any) -> Any:
        raise ValueError("no gradient")

    cell.register_backward_hook(fail)
    return ms.grad(chained(ms, cell))(pair(ms)[0])


@program
def hooks_of_a_shared_Cell(ms: Any, called: Any) -> Any:
    cell = ms.nn.ReLU()
    cell.register_backward_hook(noted_on_a_cell(called, "hook", first_tenfold))
    return ms.grad(chained(ms, cell, cell))(pair(ms)[0])


@program
def hooks_of_nested_Cells(ms: Any, called: Any) -> Any:
    inner = ms.nn.ReLU()
    outer = chained(ms, inner)
    inner.register_backward_hook(noted_on_a_cell(called, "inner", first_tenfold))
    outer.register_backward_hook(noted_on_a_cell(called, "outer", first_tenfold))
    return ms.grad(chained(ms, outer))(pair(ms)[0])


@program
def hooks_and_weights(ms: Any, called: Any) -> Any:
    layer = ms.nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    layer.register_backward_hook(noted_on_a_cell(called, "hook", first_tenfold))
    net = chained(ms, layer)
    return ms.grad(net, 0, net.trainable_params())(ms.Tensor([[1.0, 2.0]], ms.float32))


@program
def a_hook_on_a_Parameter(ms: Any, called: Any) -> Any:
    layer = ms.nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    layer.weight.register_hook(noted(called, "weight", tenfold))
    net = chained(ms, layer)
    return ms.grad(net, None, net.trainable_params())(ms.Tensor([[1.0, 2.0]], ms.float32))


@program
def a_hook_on_a_Parameter_that_is_used_twice(ms: Any, called: Any) -> Any:
    class Twice(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(ms.Tensor([3.0, 4.0], ms.float32), name="w")

        def construct(self, x: Any) -> Any:
            return x * self.w + self.w * 2

    net = Twice()
    net.w.register_hook(noted(called, "w", tenfold))
    return ms.grad(net, 0, net.trainable_params())(pair(ms)[0])


@program
def two_hooks_on_a_Parameter(ms: Any, called: Any) -> Any:
    layer = ms.nn.Dense(2, 1, weight_init="ones", has_bias=False)
    layer.weight.register_hook(noted(called, "first", one_more))
    layer.weight.register_hook(noted(called, "second", tenfold))
    return ms.grad(layer, None, layer.trainable_params())(ms.Tensor([[1.0, 2.0]], ms.float32))


@program
def a_hook_on_a_Parameter_of_a_Cell_with_bprop(ms: Any, called: Any) -> Any:
    class Weighted(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(ms.Tensor([3.0, 4.0], ms.float32), name="w")

        def construct(self, x: Any) -> Any:
            return x * self.w

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * 10,), {self.w: dout * x * 100}

    net = Weighted()
    net.w.register_hook(noted(called, "w", tenfold))
    return ms.grad(net, 0, net.trainable_params())(pair(ms)[0])


@program
def a_removed_hook_on_a_Parameter(ms: Any, called: Any) -> Any:
    layer = ms.nn.Dense(2, 1, weight_init="ones", has_bias=False)
    handle = layer.weight.register_hook(noted(called, "weight", tenfold))
    first = ms.grad(layer, None, layer.trainable_params())(ms.Tensor([[1.0, 2.0]], ms.float32))
    handle.remove()
    return first, ms.grad(layer, None, layer.trainable_params())(ms.Tensor([[1.0, 2.0]], ms.float32))


@program
def a_hook_on_an_input_outside(ms: Any, called: Any) -> Any:
    x = pair(ms)[0]
    x.register_hook(noted(called, "x", tenfold))
    return ms.grad(chained(ms, scaled(ms, 5.0)))(x)


@program
def a_hook_on_a_result_with_two_readers(ms: Any, called: Any) -> Any:
    def run(x: Any) -> Any:
        y = x * 2
        y.register_hook(double)
        return y * 3 + y * y

    double = noted(called, "y", tenfold)
    return ms.grad(run)(pair(ms)[0])


@program
def a_hook_registered_behind_a_reader(ms: Any, called: Any) -> Any:
    note = noted(called, "y", tenfold)

    def run(x: Any) -> Any:
        y = x * 2
        z = y * 3
        y.register_hook(note)
        return z + y

    return ms.grad(run)(pair(ms)[0])


@program
def a_hook_on_an_argument_behind_a_reader(ms: Any, called: Any) -> Any:
    note = noted(called, "x", tenfold)

    def run(x: Any) -> Any:
        y = x * 3
        x.register_hook(note)
        return y + x

    return ms.grad(run)(pair(ms)[0])


@program
def a_hook_on_one_output_of_an_operator(ms: Any, called: Any) -> Any:
    note = noted(called, "second", tenfold)

    def run(x: Any) -> Any:
        first, second = ms.ops.split(x, 1)
        y = first * second
        second.register_hook(note)
        return y

    return ms.grad(run)(pair(ms)[1])


@program
def a_hook_on_an_argument_of_a_jit_function(ms: Any, called: Any) -> Any:
    note = noted(called, "x", tenfold)

    @ms.jit
    def hooked(x: Any) -> Any:
        x.register_hook(note)
        return x

    def run(x: Any) -> Any:
        return hooked(x * 2) * 5

    return ms.grad(run)(pair(ms)[0])


@program
def a_hook_in_a_jit_function_behind_a_reader(ms: Any, called: Any) -> Any:
    note = noted(called, "x", tenfold)

    @ms.jit
    def hooked(x: Any, y: Any) -> Any:
        z = x * y
        x.register_hook(note)
        return z + x, y

    def run(x: Any, y: Any) -> Any:
        z, y = hooked(x * 2, y)
        return z * y

    return ms.grad(run, (0, 1))(*pair(ms))


@program
def a_hook_on_the_output_of_a_Cell_with_bprop(ms: Any, called: Any) -> Any:
    cell = scaled(ms, 5.0)
    double = noted(called, "y", tenfold)

    def run(x: Any) -> Any:
        y = cell(x)
        y.register_hook(double)
        return y * 3

    return ms.grad(run)(pair(ms)[0])


@program
def HookBackward_beside_a_bprop(ms: Any, called: Any) -> Any:
    cell = scaled(ms, 5.0)

    hook = ms.ops.HookBackward(noted(called, "hook", first_tenfold))

    def run(x: Any) -> Any:
        return cell(hook(x * 2)) * 3

    return ms.grad(run)(pair(ms)[0])


@program
def InsertGradientOf_beside_a_bprop(ms: Any, called: Any) -> Any:
    cell = scaled(ms, 5.0)

    def clip(gradient: Any) -> Any:
        return ms.ops.minimum(gradient, ms.Tensor(6.0, ms.float32)) * 10

    insert = ms.ops.InsertGradientOf(clip)

    def run(x: Any) -> Any:
        return cell(insert(x * 2)) * 3

    return ms.grad(run)(pair(ms)[0])


@program
def second_derivative_with_a_backward_hook(ms: Any, called: Any) -> Any:
    class Cube(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any) -> Any:
            return x * x * x

    cell = Cube()
    cell.register_backward_hook(noted_on_a_cell(called, "hook"))
    return ms.grad(ms.grad(chained(ms, cell)))(pair(ms)[0])


@program
def a_Cell_with_two_inputs_and_a_hook(ms: Any, called: Any) -> Any:
    class Product(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any, y: Any) -> Any:
            return x * y

        def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
            return dout * y * 10, dout * x * 100

    cell = Product()
    cell.register_backward_hook(noted_on_a_cell(called, "hook"))
    return ms.grad(chained_of_two(ms, cell), (0, 1))(*pair(ms))


@program
def one_of_two_inputs_wanted(ms: Any, called: Any) -> Any:
    class Product(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any, y: Any) -> Any:
            return x * y

        def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
            return dout * y * 10, dout * x * 100

    return ms.grad(chained_of_two(ms, Product()), 1)(*pair(ms))


def weighted(ms: Any, bprop: bool) -> Any:
    """A Cell with a weight; its bprop, if it has one, gives no gradient of it."""

    class Weighted(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(ms.Tensor([2.0, 3.0], ms.float32), name="w")

        def construct(self, x: Any) -> Any:
            return x * self.w

    if not bprop:
        return Weighted()

    class WithBprop(Weighted):
        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * 5,)

    return WithBprop()


def with_hooks(ms: Any, cell: Any, called: Any) -> Any:
    """A Cell with a hook on its input gradients, and one on its output gradients."""
    cell.register_backward_hook(noted_on_a_cell(called, "hook"))
    cell.register_backward_pre_hook(noted_on_a_cell(called, "pre"))
    return cell


@program
def hooks_of_a_bprop_cell_whose_weights_alone_are_wanted(ms: Any, called: Any) -> Any:
    net = chained(ms, with_hooks(ms, weighted(ms, True), called))
    return ms.grad(net, None, net.trainable_params())(pair(ms)[0])


@program
def hooks_of_a_cell_whose_weights_alone_are_wanted(ms: Any, called: Any) -> Any:
    net = chained(ms, with_hooks(ms, weighted(ms, False), called))
    return ms.grad(net, None, net.trainable_params())(pair(ms)[0])


@program
def hooks_behind_stop_gradient(ms: Any, called: Any) -> Any:
    cell = with_hooks(ms, scaled(ms, 5.0), called)
    return ms.grad(lambda x: cell(ms.ops.stop_gradient(x)) + x)(pair(ms)[0])


@program
def hooks_behind_stop_gradient_with_weights(ms: Any, called: Any) -> Any:
    cell = with_hooks(ms, weighted(ms, False), called)
    return ms.grad(lambda x: cell(ms.ops.stop_gradient(x)) + x, 0, cell.trainable_params())(pair(ms)[0])


@program
def hooks_of_a_cell_without_derivative(ms: Any, called: Any) -> Any:
    class Step(ms.nn.Cell):  # type: ignore[name-defined,misc]
        def construct(self, x: Any) -> Any:
            return (x > 1).astype(ms.float32)

    cell = with_hooks(ms, Step(), called)
    return ms.grad(lambda x: cell(x) + x)(pair(ms)[0])


@program
def training_with_a_bprop(ms: Any, called: Any) -> Any:
    layer = ms.nn.Dense(2, 1, weight_init="ones", has_bias=False)
    net = ms.nn.WithLossCell(chained(ms, layer, scaled(ms, 5.0)), ms.nn.MSELoss())
    step = ms.nn.TrainOneStepCell(net, ms.nn.SGD(net.trainable_params(), 0.01))
    x, y = ms.Tensor([[1.0, 2.0]], ms.float32), ms.Tensor([[1.0]], ms.float32)
    return [step(x, y), step(x, y), layer.weight]


def _answer(ms: Any, name: str, mode: str) -> dict[str, Any]:
    answer = asked(ms, name, mode)
    return {**answer, "error": answer["error"][0]} if "error" in answer else answer


if __name__ == "__main__":
    import mindspore

    about = f"What MindSpore {mindspore.__version__} answers; see mindspore_bprop.py for what it is asked."
    cases = [(name, mode) for name in BPROP_PROGRAMS for mode in MODES]
    lines = ",\n".join(json.dumps([case, _answer(mindspore, *case)]) for case in cases)
    Path(sys.argv[1]).write_text(f'{{"about": {json.dumps(about)},\n"cases": [\n{lines}\n]}}\n')
