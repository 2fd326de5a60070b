"""The gradient API: positions, weights, options, products, mistakes; eagerly and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.cells import pullback as module
from opreg.cells.cell import Cell
from opreg.cells.context_settings import GRAPH_MODE, PYNATIVE_MODE, set_context
from opreg.cells.grad import GradOperation, get_grad, grad, no_grad, stop_gradient, value_and_grad
from opreg.cells.jacobian import Jvp, Vjp, jacrev, jvp, vjp
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter, ParameterTuple
from opreg.cells.tensor import Tensor
from opreg.cells.tree import mutable
from opreg.core.registry import ops
from opreg.nn.grad_func import custom_vjp
from opreg.nn.layers import Identity

Run = Callable[[Any], Any]
X, Y = np.array([1.0, -2.0, 3.0], np.float32), np.array([2.0, 4.0, 5.0], np.float32)


def in_graph_mode(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        set_context(mode=GRAPH_MODE)
        try:
            return function(*args, **kwargs)
        finally:
            set_context(mode=PYNATIVE_MODE)

    return call


@pytest.fixture(params=["eager", "compiled", "graph mode"])
def run(request: pytest.FixtureRequest) -> Run:
    return {"eager": lambda function: function, "compiled": jit, "graph mode": in_graph_mode}[request.param]


@pytest.fixture(autouse=True)
def forget() -> None:
    """Resets the warnings that are given once for each function."""
    module._WARNED.clear()


def x() -> Tensor:
    return Tensor(X)


def y() -> Tensor:
    return Tensor(Y)


def numbers(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(map(numbers, value))
    if isinstance(value, dict):
        return {key: numbers(each) for key, each in value.items()}
    return value.asnumpy().tolist() if isinstance(value, Tensor) else value


def product(a: Any, b: Any) -> Any:
    return a * b


class Line(Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor([2.0, 2.0, 2.0]), name="w")
        self.b = Parameter(Tensor([1.0, 1.0, 1.0]), name="b")
        self.unused = Parameter(Tensor([1.0, 1.0]), name="unused")

    def construct(self, a: Any) -> Any:
        return self.w * a + self.b


# ------------------------------------------------------------------------------------------------ positions


@pytest.mark.parametrize("position, expected", [
    (0, Y.tolist()), (1, X.tolist()), ((0,), Y.tolist()), ((0, 1), (Y.tolist(), X.tolist())),
    ((1, 0), (X.tolist(), Y.tolist())), ((0, 0), (Y.tolist(), Y.tolist()))])
def test_a_position_chooses_the_differentiated_input(run, position, expected):
    assert numbers(run(grad(product, position))(x(), y())) == expected
    value, found = run(value_and_grad(product, position))(x(), y())
    assert numbers(value) == (X * Y).tolist() and numbers(found) == expected


@pytest.mark.parametrize("arguments, kind, message", [
    ({"grad_position": [0]}, TypeError, "an int or a tuple of ints"), ({"grad_position": "0"}, TypeError, "an int"),
    ({"grad_position": True}, TypeError, "an int"), ({"grad_position": -1}, ValueError, "negative"),
    ({"grad_position": None}, ValueError, "both None"), ({"has_aux": 1}, TypeError, "has_aux must be a bool"),
    ({"weights": 3}, TypeError, "expected a Parameter"), ({"weights": [x()]}, TypeError, "Tensor at 0"),
    ({"weights": (p for p in ())}, TypeError, "generator")])
def test_wrong_options_of_grad_are_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        grad(product, **arguments)


def test_positions_without_an_argument_are_refused(run):
    for kind in (RuntimeError, IndexError):  # as in the two modes of MindSpore
        with pytest.raises(kind, match=r"no argument 2 for grad_position.*with 2 arguments"):
            run(grad(product, 2))(x(), y())
    with pytest.raises(TypeError, match="argument 1 is of type str, only tensors"):
        run(grad(lambda x, y: x, 1))(x(), "y")
    with pytest.raises(TypeError, match="argument 1 is of type float, only tensors"):
        jacrev(product, 1)(x(), 3.0)
    with pytest.raises(TypeError, match="expected a function"):
        grad(3)
    with pytest.raises(RuntimeError, match="grad_position is empty"):
        grad(product, ())
    with pytest.raises(TypeError, match="vjp of product: input 1 is of type float"):
        vjp(product, x(), 3.0)


@pytest.mark.parametrize(("positions", "inputs", "expected"), [
    (0, (1, 2), ()), ((0, 1), (1, 2.0), ()), (1, ("x", 2), ()), (0, ("x", 2), [2.0] * 3), ((0, 1), ("x", 2), [2.0] * 3),
    ((0, 1), (3, "x"), [3.0] * 3)])
def test_positions_of_numbers_are_left_out(run, positions, inputs, expected):
    inputs = [x() if isinstance(each, str) else each for each in inputs]
    function = product if expected else lambda a, b: Tensor([1.0]) * b
    assert numbers(run(grad(function, positions))(*inputs)) == expected
    assert numbers(run(value_and_grad(function, positions))(*inputs))[1] == expected


# -------------------------------------------------------------------------------------------------- weights


def test_weights_have_gradients_in_the_order_requested(run):
    net = Line()
    assert numbers(run(grad(net, None, net.w))(x())) == X.tolist()
    for weights in ([net.w, net.b], (net.w, net.b), ParameterTuple((net.w, net.b))):
        assert numbers(run(grad(net, None, weights))(x())) == (X.tolist(), [1] * 3)
        assert numbers(run(grad(net, 0, weights))(x())) == ([2] * 3, (X.tolist(), [1] * 3))
    assert numbers(run(grad(net, None, [net.unused, net.w, net.w]))(x())) == ([0] * 2, X.tolist(), X.tolist())


def test_gradients_of_weights_that_are_not_trained_are_zeros(run):
    net = Line()
    function = run(grad(net, None, [net.w, net.b]))
    net.w.requires_grad = False
    assert numbers(function(x())) == ([0] * 3, [1] * 3)
    net.w.requires_grad = True
    assert numbers(function(x())) == (X.tolist(), [1] * 3)


def test_parameters_may_be_used_outside_of_cells(run):
    w = Parameter(Tensor([3.0, 3.0, 3.0]), name="w")
    held = [w]
    assert numbers(run(grad(lambda a: held[0] * a * w, None, w))(x())) == (6 * X).tolist()


# -------------------------------------------------------------------------------------------- many outputs


def test_several_outputs_are_summed_with_a_warning(run):
    def both(a: Any) -> Any:
        return a * 2, {"b": [a * a]}

    with pytest.warns(UserWarning, match="grad of both: it returns 2 tensors"):
        found = run(grad(both))(x())
    assert numbers(found) == (2 + 2 * X).tolist()
    assert numbers(run(grad(both))(x())) == (2 + 2 * X).tolist()  # once is enough


def test_one_output_returned_twice_counts_twice(run):
    def twice(a: Any) -> Any:
        out = a * a
        return out, out

    with pytest.warns(UserWarning, match="grad of twice"):
        assert numbers(run(grad(twice))(x())) == (4 * X).tolist()


def test_has_aux_returns_further_outputs_undifferentiated(run):
    def function(a: Any) -> Any:
        return a * a, a + 1, 7

    found, aux = run(grad(function, has_aux=True))(x())
    assert numbers(found) == (2 * X).tolist() and numbers(aux) == ((X + 1).tolist(), 7)
    value, found = run(value_and_grad(function, has_aux=True))(x())
    assert numbers(value) == ((X * X).tolist(), (X + 1).tolist(), 7) and numbers(found) == (2 * X).tolist()
    with pytest.raises(ValueError, match="at least 2 outputs"):
        run(grad(lambda a: a, has_aux=True))(x())


def one_aux(a: Any) -> Any:
    return a * a, a + 1


def two_aux(a: Any) -> Any:
    return a * a, a + 1, a + 2


def nested_aux(a: Any) -> Any:
    return a * a, (a + 1, a + 2)


AUX = {one_aux: (X + 1).tolist(), two_aux: ((X + 1).tolist(), (X + 2).tolist()),
       nested_aux: ((X + 1).tolist(), (X + 2).tolist())}
SQUARE, TWICE, DIAGONAL = (X * X).tolist(), (2 * X).tolist(), np.diag(2 * X).tolist()


@pytest.mark.parametrize("function", AUX, ids=lambda function: function.__name__)
def test_a_single_further_output_is_bare_in_vjp_and_jvp(run, function):
    """A single further output is returned without a tuple, as in MindSpore; ``grad`` returns a tuple of all."""
    aux, ones = AUX[function], Tensor(np.ones(3, np.float32))

    def through(a: Any) -> Any:
        value, back, rest = vjp(function, a, has_aux=True)
        return value, back(ones), rest

    assert numbers(run(through)(x())) == (SQUARE, (TWICE,), aux)
    assert numbers(run(lambda a: jvp(function, a, ones, has_aux=True))(x())) == (SQUARE, TWICE, aux)
    for position in (0, (0,)):
        assert numbers(run(jacrev(function, position, has_aux=True))(x())) == (DIAGONAL, aux)
    assert numbers(run(grad(function, has_aux=True))(x())) == (TWICE, aux if function is two_aux else (aux,))


def test_products_with_has_aux_need_a_further_output():
    for make in (lambda: vjp(product, x(), y(), has_aux=True), lambda: jvp(product, (x(), y()), (x(), y()), True),
                 lambda: jacrev(product, has_aux=True)(x(), y())):
        with pytest.raises(ValueError, match="has_aux needs at least 2 outputs"):
            make()


def test_vjp_and_jvp_run_the_function_once():
    seen: list[int] = []

    def drawn(a: Any) -> Any:
        seen.append(1)
        return a * len(seen)

    value, back = vjp(drawn, x())
    assert numbers(value) == X.tolist() and numbers(back(x())) == numbers(back(x())) == (X.tolist(),)
    assert numbers(jvp(drawn, x(), x())) == ((2 * X).tolist(), (2 * X).tolist())
    assert numbers(jacrev(drawn)(x())) == np.diag([3] * 3).tolist() and len(seen) == 3


def test_the_jacobian_of_a_function_that_returns_arrays():
    class Cube(mx.autograd.Function):
        def forward(self, a: Any) -> Any:
            self.save_for_backward(a)
            return mx.nd.power(a, 3)

        def backward(self, g: Any) -> Any:
            return 3 * g * self.saved_tensors[0] ** 2

    assert numbers(jacrev(lambda a: Cube()(a))(x())) == np.diag(3 * X ** 2).tolist()


def test_the_vjp_function_may_be_compiled():
    _, back = vjp(lambda a: a * a, x())
    assert numbers(jit(back)(y())) == ((2 * X * Y).tolist(),)


def test_each_of_two_functions_of_one_name_is_warned_of_once() -> None:
    def make(factor: float) -> Any:
        first, second = (lambda a: (a * 2, a)), (lambda a: (a, a * 2))
        return first if factor == 1 else second

    for factor in (1, 2):
        with pytest.warns(UserWarning, match="grad of <lambda>: it returns 2 tensors"):
            grad(make(factor))(x())
        grad(make(factor))(x())  # other warnings are errors


@pytest.mark.filterwarnings("ignore:grad of")
@pytest.mark.parametrize("function, expected", [
    (lambda p, a: p, [1] * 3), (lambda p, a: (p, p * a), (1 + X).tolist()), (lambda p, a: {"p": [p]}, [1] * 3),
    (lambda p, a: Identity()(p), [1] * 3), (lambda p, a: (p, p), [2] * 3)],
    ids=["itself", "beside another", "nested", "through a Cell", "twice"])
def test_a_parameter_may_be_a_result(run, function, expected):
    p = Parameter(Tensor([2.0, 2.0, 2.0]), name="p")
    bound = lambda a: function(p, a)  # noqa: E731
    assert numbers(run(grad(bound, None, p))(x())) == expected
    assert numbers(run(lambda a: GradOperation(get_by_list=True)(bound, [p])(a))(x())) == (expected,)
    with p.register_hook(lambda g: g * 10):
        np.testing.assert_allclose(run(grad(bound, None, p))(x()).asnumpy(), np.multiply(expected, 10))


def test_a_parameter_returned_with_has_aux_or_sens_param_has_a_gradient(run):
    p = Parameter(Tensor([2.0, 2.0, 2.0]), name="p")
    assert numbers(run(grad(lambda a: (p, a), None, p, has_aux=True))(x())) == ([1] * 3, (X.tolist(),))
    operation = GradOperation(get_by_list=True, sens_param=True)
    assert numbers(run(lambda a, s: operation(lambda a: p, p)(a, s))(x(), y())) == Y.tolist()
    assert numbers(run(lambda a: vjp(lambda a: p, a, weights=p)[1](a))(x())) == (([0] * 3,), X.tolist())


def test_constant_outputs_give_zero_gradients(run):
    assert numbers(run(grad(lambda a: 3.0))(x())) == [0] * 3
    assert numbers(run(grad(lambda a: a > 0))(x())) == [0] * 3
    assert numbers(run(grad(lambda a, b: b * 2))(x(), y())) == [0] * 3


def test_gradients_have_the_dtype_and_shape_of_their_input(run):
    half = Tensor(X, np.float16)
    found = run(grad(lambda a, b: a * b, (0, 1)))(half, Tensor(np.ones((4, 1), np.float32)))
    assert str(found[0].dtype) == "Float16" and found[0].shape == (3,) and found[1].shape == (4, 1)
    np.testing.assert_allclose(found[1].asnumpy(), np.full((4, 1), X.sum()))


def squared(a: Any, b: Any = None) -> Any:
    return a * a * b


class Squared(Cell):
    def construct(self, a: Any, b: Any = None) -> Any:
        return a * a * b


BY_A, BY_B = (2 * X * Y).tolist(), (X * X).tolist()


@pytest.mark.parametrize("function", [squared, Squared()], ids=["function", "cell"])
@pytest.mark.parametrize("make, expected", [
    (lambda f: grad(f)(x(), b=y()), BY_A), (lambda f: grad(f)(a=x(), b=y()), BY_A),
    (lambda f: grad(f)(b=y(), a=x()), BY_B), (lambda f: grad(f, 1)(x(), b=y()), BY_B),
    (lambda f: grad(f, (0, 1))(x(), b=y()), (BY_A, BY_B)), (lambda f: grad(f, (1, 0))(x(), b=y()), (BY_B, BY_A)),
    (lambda f: value_and_grad(f, (0, 1))(x(), b=y()), ((X * X * Y).tolist(), (BY_A, BY_B))),
    (lambda f: GradOperation(get_all=True)(f)(x(), b=y()), (BY_A, BY_B)),
    (lambda f: GradOperation(get_all=True)(f)(b=y(), a=x()), (BY_B, BY_A)),
    (lambda f: GradOperation()(f)(a=x(), b=y()), BY_A), (lambda f: GradOperation()(f)(b=y(), a=x()), BY_B),
    (lambda f: GradOperation(get_all=True, sens_param=True)(f)(x(), b=y(), sens=x()),
     ((2 * X * X * Y).tolist(), (X * X * X).tolist())),
    (lambda f: GradOperation(get_all=True, sens_param=True)(f)(x(), x(), b=y()),
     ((2 * X * X * Y).tolist(), (X * X * X).tolist())),
    (lambda f: GradOperation(sens_param=True)(f)(a=x(), sens=x(), b=y()), (2 * X * X * Y).tolist()),
    (lambda f: jacrev(f, 1)(x(), b=y()), np.diag(X * X).tolist())])
def test_positions_count_over_arguments_then_keywords(run, function, make, expected):
    assert numbers(run(lambda: make(function))()) == expected


def nested(pair: Any, options: Any) -> Any:
    return pair[0] * pair[1][0] * options["c"]


@pytest.mark.parametrize("make, expected", [
    (lambda: grad(nested)((x(), [y()]), {"c": x()}), ((X * Y).tolist(), ((X * X).tolist(),))),
    (lambda: grad(nested, 1)((x(), [y()]), {"c": x(), "n": 2}), {"c": (X * Y).tolist(), "n": None}),
    (lambda: grad(nested, (1, 0))((x(), [y()]), {"c": x()}),
     ({"c": (X * Y).tolist()}, ((X * Y).tolist(), ((X * X).tolist(),)))),
    (lambda: grad(lambda pair: pair[0] * pair[1])((x(), 2.0)), ([2] * 3, None)),
    (lambda: vjp(nested, (x(), (y(),)), {"c": x()})[1](x()),
     (((X * X * Y).tolist(), ((X * X * X).tolist(),)), {"c": (X * X * Y).tolist()})),
    # A value that is no tensor is skipped, as in MindSpore, unless it is mutable.
    (lambda: GradOperation(get_all=True)(nested)((x(), [y()]), {"c": x()}), ()),
    (lambda: GradOperation(get_all=True)(lambda pair, c: pair[0] * c)((x(), y()), x()), (X.tolist(),)),
    (lambda: GradOperation(get_all=True)(nested)(mutable((x(), [y()])), mutable({"c": x()})),
     (((X * Y).tolist(), ((X * X).tolist(),)), {"c": (X * Y).tolist()})),
    (lambda: GradOperation()(lambda pair: pair[0] * pair[1])(mutable([x(), y()])), (Y.tolist(), X.tolist())),
    (lambda: GradOperation()(lambda pair, c: pair[0] * c)((x(), y()), x()), ()),
    (lambda: GradOperation()(lambda n: x() * n)(2.0), ()), (lambda: GradOperation()(lambda: x() * 2)(), ()),
    (lambda: grad(lambda: x() * 2)(), ()), (lambda: value_and_grad(lambda: x() * 2)(), ((2 * X).tolist(), ()))])
def test_inputs_may_hold_tensors(run, make, expected):
    assert numbers(run(make)()) == expected


class OwnGradient(Cell):
    """A Cell whose bprop is deliberately wrong, so that a test sees whether it was called."""

    def __init__(self, count: int = 2):
        super().__init__()
        self.count = count

    def construct(self, a: Any, b: Any) -> Any:
        return 2 * a + b

    def bprop(self, a: Any, b: Any, out: Any, dout: Any) -> Any:
        return (3 * dout, 4 * b)[:self.count]


@pytest.mark.parametrize("make, expected", [
    (lambda: grad(lambda a, b: 2 * a * b)(mutable(2.5), 3), 6), (lambda: grad(lambda a, b: a * b)(mutable(2), 3), 3),
    (lambda: grad(lambda a, b: a * b)(2, mutable(3)), ()), (lambda: grad(lambda flag: x() * flag)(mutable(True)), ()),
    (lambda: value_and_grad(lambda a: a * a)(mutable(2.5)), (6.25, 5)),
    (lambda: grad(grad(lambda a: a * a * a))(mutable(2.0)), 12),
    (lambda: grad(lambda a, b: a * b, (0, 1))(mutable(2.0), x()), (2, [2] * 3)),
    (lambda: GradOperation()(lambda a, b: a * b)(mutable(2.5), x()), 2),
    (lambda: GradOperation(get_all=True)(lambda a, b: a * b)(mutable(2), 3), (3,)),
    (lambda: GradOperation()(lambda pair: pair[0] * pair[1])(mutable((2, 3))), (3, 2)),
    (lambda: GradOperation()(lambda pair: pair[0] * pair[1])(mutable([2, 3])), (3, 2)),
    (lambda: GradOperation(get_all=True)(lambda d, pair: d["a"] * d["b"] * pair[0])(
        mutable({"a": 2, "b": 3}), mutable((4, 5))), ({"a": 12, "b": 8}, (6, 0))),
    (lambda: GradOperation()(lambda t: t[0] * t[1][0] + t[2])(mutable((x(), [2.5, 7], 1, True))),
     ([2.5] * 3, (2, 0), 3, None)),
    (lambda: GradOperation(get_all=True)(OwnGradient())(mutable(1), mutable(2)), (3, 8)),
    (lambda: GradOperation(get_all=True)(OwnGradient())(mutable(1), 2), (3,)),
    (lambda: vjp(lambda a, b: a * b, mutable(2.0), x())[1](x()), (14, (2 * X).tolist())),
    (lambda: jacrev(lambda a: a * x())(mutable(2.0)), X.tolist()),
    # A result is a scalar if a scalar was given.
    (lambda: GradOperation(get_all=True)(lambda a, n: a[:n].sum(n - 2) * n)(x(), mutable(2)), ([2, 2, 0], -1)),
    (lambda: grad(lambda n: sum(n * n for _ in range(n)))(mutable(3)), 18)])
def test_mutable_numbers_have_gradients(run, make, expected):
    assert numbers(run(make)()) == expected


def test_the_gradients_of_a_mutable_number_are_counted(run):
    with pytest.raises(ValueError, match="1 vs 2"):
        run(lambda: GradOperation(get_all=True)(OwnGradient(1))(mutable(1), 2))()


@pytest.mark.parametrize("value, message", [
    ("abc", "got str"), (None, "got NoneType"), ((1, "a"), "got str"), (X, "got ndarray")])
def test_mutable_refuses_other_values(value, message):
    with pytest.raises(TypeError, match=message):
        mutable(value)
    with pytest.raises(TypeError, match="must be a tuple or list"):
        mutable({"a": x()}, True)
    assert isinstance(mutable((x(), 1)), tuple) and mutable([1], True) == [1] and mutable(3) == 3


def test_return_ids_names_positions_and_weights(run):
    net = Line()
    found = run(grad(net, 0, [net.w, net.b], return_ids=True))(x())
    assert found[0][0] == 0 and found[1][0][0] == "w"
    assert numbers(get_grad(found, 0)) == [2] * 3 and numbers(get_grad(found, net.w)) == X.tolist()
    with pytest.raises(RuntimeError, match="no gradient of 'unused'"):
        get_grad(found, net.unused)
    with pytest.raises(TypeError, match="a position or a Parameter"):
        get_grad(found, "w")


# --------------------------------------------------------------------------------------------- higher order


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_gradients_of_every_order_are_right(run, order):
    function: Any = lambda a: a * a * a + ops.exp(a)  # noqa: E731
    for _ in range(order):
        function = grad(function)
    powers = {1: lambda v: 3 * v * v, 2: lambda v: 6 * v, 3: lambda v: 6 + 0 * v, 4: lambda v: 0 * v}
    np.testing.assert_allclose(run(function)(x()).asnumpy(), powers[order](X) + np.exp(X), rtol=1e-5)


def test_inner_and_outer_variables_are_different(run):
    """d/dx of (d/dy of y * x at y = x) is 1, since the inner derivative is that of its own argument alone."""
    inner = lambda a: grad(lambda b: b * a)(a)  # noqa: E731
    assert numbers(run(inner)(x())) == X.tolist()
    assert numbers(run(grad(inner))(x())) == [1] * 3


def test_gradients_of_first_and_second_order_with_respect_to_weights(run):
    w = Parameter(Tensor([2.0]), name="w")
    first = grad(lambda a: w * w * w * a, None, w)
    assert numbers(run(first)(Tensor([3.0]))) == [36]
    assert numbers(run(grad(first, None, w))(Tensor([3.0]))) == [36]
    assert numbers(run(grad(first, 0))(Tensor([3.0]))) == [12]


def test_compiled_functions_have_eager_gradients():
    net = Line()
    inner = jit(lambda a: net(a) * a)
    assert numbers(grad(inner, 0, net.w)(x())) == ((4 * X + 1).tolist(), (X * X).tolist())
    outer = grad(lambda a: inner(a) * a, 0, net.w)
    np.testing.assert_allclose(outer(x())[0].asnumpy(), 6 * X * X + 2 * X)
    np.testing.assert_allclose(outer(x())[1].asnumpy(), X ** 3)
    np.testing.assert_allclose(grad(grad(lambda a: inner(a) * a))(x()).asnumpy(), 12 * X + 2, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "bool", "float16", "bfloat16", "float32",
                                   "float64"])
def test_every_dtype_has_gradients_through_compiled_functions(dtype):
    """Gradients are equal eagerly, compiled inside, and compiled around."""
    a, b = (Tensor([1.0, 0.0]).astype(dtype), Tensor([3.0, 1.0]).astype(dtype))
    expected, inner = grad(product, (0, 1))(a, b), jit(product)
    for found in (grad(lambda a, b: inner(a, b), (0, 1))(a, b), grad(inner, (0, 1))(a, b),
                  jit(grad(product, (0, 1)))(a, b)):
        for value, like in zip(found, expected):
            assert value.dtype == like.dtype and numbers(value.astype("float32")) == numbers(like.astype("float32"))
    w = Parameter(a, name="w")
    weighted = jit(lambda b: w * b)
    assert numbers(grad(lambda b: weighted(b), None, w)(b).astype("float32")) == numbers(b.astype("float32"))


def test_gradients_of_two_calls_of_a_compiled_function_are_added():
    inner = jit(lambda a: a * a * a)
    np.testing.assert_allclose(grad(lambda a: inner(a) + inner(a * 2))(x()).asnumpy(), 27 * X * X)


# --------------------------------------------------------------------------------------------- GradOperation


@pytest.mark.parametrize("options, expected", [
    ({}, Y.tolist()), ({"get_all": True}, (Y.tolist(), X.tolist()))])
def test_grad_operation_takes_its_options(run, options, expected):
    operation = GradOperation(**options)
    assert numbers(run(lambda a, b: operation(lambda a, n, b: a * b)(a, None, b))(x(), y())) == expected


def test_grad_operation_by_list_gives_gradients_of_weights(run):
    net = Line()
    net.unused.requires_grad = False
    weights = ParameterTuple(net.trainable_params())
    assert numbers(run(lambda a: GradOperation(get_by_list=True)(net, weights)(a))(x())) == (X.tolist(), [1] * 3)
    assert numbers(run(lambda a: GradOperation(get_by_list=True)(net)(a))(x())) == (X.tolist(), [1] * 3)
    both = GradOperation(get_all=True, get_by_list=True)(net, weights)
    assert numbers(run(lambda a: both(a))(x())) == (([2] * 3,), (X.tolist(), [1] * 3))
    for weights, expected in ((net.w, X.tolist()), ([net.w], (X.tolist(),)), ((net.w,), (X.tolist(),)), ([], ())):
        assert numbers(run(lambda a: GradOperation(get_by_list=True)(net, weights)(a))(x())) == expected
        both = GradOperation(get_all=True, get_by_list=True)(net, weights)
        assert numbers(run(both)(x())) == (([2] * 3,), expected)


def test_a_sensitivity_scales_the_output_gradient(run):
    operation = GradOperation(sens_param=True)
    assert numbers(run(lambda a, s: operation(lambda a: a * a)(a, s))(x(), y())) == (2 * X * Y).tolist()
    assert numbers(run(lambda a, s: operation(lambda a: a * a)(a, sens=s))(x(), y())) == (2 * X * Y).tolist()
    with pytest.raises(ValueError, match=r"sensitivity 0 has shape \(2,\), expected \(3,\)"):
        operation(lambda a: a)(x(), Tensor([1.0, 2.0]))
    with pytest.raises(TypeError, match="dtype float16, expected float32"):
        operation(lambda a: a)(x(), Tensor(X, np.float16))
    with pytest.raises(TypeError, match="get_all must be a bool"):
        GradOperation(get_all=1)


@pytest.mark.parametrize("options, function, seed, expected", [
    ({"grad_position": 1}, lambda a, b: a * b, Y, (X * Y).tolist()),
    ({"grad_position": (0, 1)}, lambda a, b: a * b, Y, ((Y * Y).tolist(), (X * Y).tolist())),
    ({}, lambda a, b: (a * b, a), (Y, X), (Y * Y + X).tolist()),
    ({"has_aux": True}, lambda a, b: (a * b, b), Y, ((Y * Y).tolist(), (Y.tolist(),))),
], ids=["one", "two", "outputs", "aux"])
def test_grad_takes_the_output_gradient_last_or_by_name(run, options, function, seed, expected):
    seed = tuple(map(Tensor, seed)) if isinstance(seed, tuple) else Tensor(seed)
    gradient = run(grad(function, **options, sens_param=True))
    assert numbers(gradient(x(), y(), seed)) == numbers(gradient(x(), y(), sens=seed)) == expected
    assert numbers(run(value_and_grad(lambda a: a * a, sens_param=True))(x(), y())) == (
        (X * X).tolist(), (2 * X * Y).tolist())


def test_grad_operation_skips_arguments_that_are_no_tensors(run):
    assert run(lambda: GradOperation(get_all=True)(lambda n: n * 2)(3.0))() == ()


# ------------------------------------------------------------------------------------------------- stopping


def test_stop_gradient_and_no_grad(run):
    assert numbers(run(grad(lambda a: stop_gradient(a) * a))(x())) == X.tolist()

    def nested(a: Any, b: Any) -> Any:
        (first, held), rest = stop_gradient(([a, {"b": b[:2]}], None))
        assert rest is None
        return a.sum() * first.sum() + held["b"].sum()

    assert numbers(run(grad(nested, (0, 1)))(x(), y())) == ([2] * 3, [0] * 3)

    def function(a: Any) -> Any:
        with no_grad():
            held = a * a
        return held * a

    assert numbers(run(grad(function))(x())) == (X * X).tolist()

    def inside(a: Any) -> Any:
        with no_grad():
            return grad(lambda b: b * b)(a)

    with pytest.raises(RuntimeError, match="In no_grad context, you can not calculate gradient"):
        run(inside)(x())


# -------------------------------------------------------------------------------------------------- products


def test_vjp_and_jvp_agree_with_the_derivative(run):
    def function(a: Any, b: Any) -> Any:
        return a * b, a + b

    def backwards(a: Any, b: Any) -> Any:
        value, back = vjp(function, a, b)
        return value, back((a, b))

    value, gradients = run(backwards)(x(), y())
    assert numbers(value) == ((X * Y).tolist(), (X + Y).tolist())
    np.testing.assert_allclose(gradients[0].asnumpy(), X * Y + Y)
    value, along = run(lambda a, b: jvp(function, (a, b), (b, a)))(x(), y())
    np.testing.assert_allclose(along[0].asnumpy(), Y * Y + X * X)
    np.testing.assert_allclose(along[1].asnumpy(), Y + X)
    with pytest.raises(ValueError, match="direction 0 has shape"):
        jvp(lambda a: a, x(), Tensor([1.0]))
    with pytest.raises(TypeError, match="direction 0 must be a Tensor, got float"):
        jvp(lambda a: a, x(), 1.0)


def test_vjp_gives_gradients_of_weights(run):
    net = Line()

    def both(a: Any) -> Any:
        _, back = vjp(net, a, weights=[net.w])
        return back(a)

    assert numbers(run(both)(x())) == (((2 * X).tolist(),), ((X * X).tolist(),))
    assert numbers(run(lambda a: vjp(net, a, weights=net.w)[1](a))(x())) == (((2 * X).tolist(),), (X * X).tolist())


def test_jvp_and_vjp_are_cells_too(run):
    both = lambda a, b: (a * b, a + b)  # noqa: E731
    assert numbers(run(Jvp(lambda a: a * a))(x(), y())) == ((X * X).tolist(), (2 * X * Y).tolist())
    assert numbers(run(Jvp(both))(x(), y(), (y(), x()))) == (
        ((X * Y).tolist(), (X + Y).tolist()), ((Y * Y + X * X).tolist(), (X + Y).tolist()))
    for several in (y(), (y(),), [y()]):  # a single position may be in a tuple
        for product_ in (Jvp, Vjp):
            assert numbers(run(product_(lambda a: a * a))(x(), several)) == ((X * X).tolist(), (2 * X * Y).tolist())
    assert numbers(run(Vjp(both))(x(), y(), (x(), y()))) == (
        ((X * Y).tolist(), (X + Y).tolist()), ((X * Y + Y).tolist(), (X * X + Y).tolist()))
    with pytest.raises(TypeError, match="Vjp: fn=3: expected a function"):
        Vjp(3)


def test_custom_vjp_needs_and_uses_defbwd(run):
    @custom_vjp
    def doubled(a: Any) -> Any:
        return 2 * a

    with pytest.raises(ValueError, match="defbwd"):
        run(grad(doubled))(x())
    doubled.defbwd(lambda a, out, dout: (dout * a + out,))
    assert numbers(run(grad(doubled))(x())) == (3 * X).tolist()
    assert numbers(run(lambda a: doubled(a * 1))(x())) == (2 * X).tolist()
    assert custom_vjp()(abs)(-2) == 2


def test_jacrev_gives_the_jacobian(run):
    matrix = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = run(lambda a: jacrev(lambda v: ops.dot(matrix, v))(a))(x())
    np.testing.assert_allclose(found.asnumpy(), matrix.asnumpy())
    by_both = run(lambda a, b: jacrev(product, (0, 1))(a, b))(x(), y())
    np.testing.assert_allclose(by_both[0].asnumpy(), np.diag(Y))
    np.testing.assert_allclose(by_both[1].asnumpy(), np.diag(X))
    hessian = run(lambda a: jacrev(grad(lambda v: v * v * v))(a))(x())
    np.testing.assert_allclose(hessian.asnumpy(), np.diag(6 * X))


def test_a_weight_that_the_function_freezes_has_a_zero_gradient(run):
    """The weight has a gradient if it is trained when the gradient is taken."""
    class Net(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.v = Parameter(Tensor(2.0), name="w"), Parameter(Tensor(3.0), name="v")

        def construct(self, a: Any) -> Any:
            out = a * self.w * self.v
            self.v.requires_grad = False
            return out

    net = Net()
    found = run(grad(net, None, [net.w, net.v]))(Tensor(4.0))
    assert [float(g) for g in found] == [12, 0]


# --------------------------------------------------------------------------------------------- gradients of integers


@pytest.mark.parametrize("compiled", [False, True])
def test_a_gradient_truncated_to_integers_causes_a_warning(compiled: bool) -> None:
    run = grad(lambda x: x * 0.5)
    run = jit(run) if compiled else run
    with pytest.warns(UserWarning, match=r"a gradient of int64 is cut to int64: 0\.5 became 0\. Convert .*as") as said:
        assert run(Tensor([1, 2])).asnumpy().tolist() == [0, 0]
    assert [each.filename for each in said] == [__file__]


@pytest.mark.parametrize("function, expected", [
    (lambda x: x * 2.0, [2, 2]), (lambda x: x * 3, [3, 3]), (lambda x: (x.astype("float32") ** 2), [2, 4])])
@pytest.mark.parametrize("compiled", [False, True])
def test_an_exact_integer_gradient_causes_no_warning(function: Callable[..., Any], expected: list[int],
                                                     compiled: bool) -> None:
    run = grad(function)
    assert (jit(run) if compiled else run)(Tensor([1, 2])).asnumpy().tolist() == expected
