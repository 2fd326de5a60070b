"""The bprop of a Cell: its arguments, its results, gradients of every order, in both modes."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from opreg.cells.cell import Cell
from opreg.cells.context_settings import get_context, set_context
from opreg.cells.grad import GradOperation, grad
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter, assign
from opreg.cells.tensor import Tensor
from opreg.core.registry import ops
from opreg.ndarray import autograd, random
from opreg.ndarray.context import cpu
from opreg.ndarray.ndarray import NDArray
from opreg.nn.compiler_settings import compile_config

Run = Callable[[Any], Any]
X = np.array([1.0, -2.0, 3.0], np.float32)


@pytest.fixture(params=["eager", "compiled"])
def run(request: pytest.FixtureRequest) -> Run:
    return (lambda function: function) if request.param == "eager" else jit


def x() -> Tensor:
    return Tensor(X)


def numbers(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(map(numbers, value))
    return value.asnumpy().tolist() if isinstance(value, Tensor) else value


def cell_of(construct: Callable, bprop: Callable, **attributes: Any) -> Cell:
    """A Cell with this ``construct`` and this ``bprop``."""

    class Made(Cell):
        pass

    Made.construct, Made.bprop = construct, bprop  # type: ignore[method-assign, attr-defined]
    cell = Made()
    for name, value in attributes.items():
        setattr(cell, name, value)
    return cell


# --------------------------------------------------------------------------------------- arguments of bprop


def test_defaults_and_keywords_are_filled_in(run):
    seen: list[Any] = []

    def construct(self, a, b, scale=2.0, *, shift=1.0):
        return a * b * scale + shift

    def bprop(self, a, b, scale, shift, out, dout):
        seen.append((scale, shift))
        return dout * b * scale, dout * a * scale, None, None

    cell = cell_of(construct, bprop)
    function = run(grad(lambda a, b: cell(a, b=b, shift=5.0), (0, 1)))
    assert numbers(function(x(), Tensor([2.0, 2.0, 2.0]))) == ([4.0] * 3, (2 * X).tolist())
    assert seen == [(2.0, 5.0)]


def test_a_cell_with_bprop_takes_any_number_of_inputs(run):
    cell = cell_of(lambda self, *inputs: sum(inputs[1:], inputs[0]), lambda self, *args: tuple(
        args[-1] * (i + 1) for i in range(len(args) - 2)))
    assert numbers(run(grad(lambda a, b, c: cell(a, b, c), (0, 1, 2)))(x(), x(), x())) == ([1] * 3, [2] * 3, [3] * 3)


def test_bprop_gets_all_outputs_and_gradients_of_tensors_only(run):
    seen: list[Any] = []

    def construct(self, a):
        return a * 2, 7, (a * 3, a * 4)

    def bprop(self, a, out, dout):
        seen.append((out[1], len(dout), len(dout[1])))
        return dout[0] * 10 + dout[1][0] * 100 + dout[1][1] * 1000

    cell = cell_of(construct, bprop)
    assert numbers(run(grad(lambda a: cell(a)[2][0]))(x())) == [100] * 3  # gradients of the other inputs are zeros
    assert seen == [(7, 2, 2)]


def test_a_single_output_is_passed_without_a_tuple(run):
    cell = cell_of(lambda self, a: (a * 2, "text"), lambda self, a, out, dout: dout * 5)
    assert numbers(run(grad(lambda a: cell(a)[0]))(x())) == [5] * 3


def test_bprop_gets_inputs_that_are_no_tensors(run):
    cell = cell_of(lambda self, a, times, flags: a * times, lambda self, a, times, flags, out, dout:
                   (dout * times, "ignored", None))
    assert numbers(run(grad(lambda a: cell(a, 3, {"deep": True})))(x())) == [3] * 3


def test_gradients_of_nested_inputs_are_nested(run):
    cell = cell_of(lambda self, pair: pair[0] * pair[1], lambda self, pair, out, dout:
                   ((dout * pair[1], dout * pair[0]),))
    assert numbers(run(grad(lambda a, b: cell((a, b)), (0, 1)))(x(), Tensor([2.0] * 3))) == ([2] * 3, X.tolist())


def test_unused_inputs_of_bprop_are_none(run):
    seen: list[Any] = []

    def bprop(self, a, b, out, dout):
        seen.append((a is None, b is None, out is None))
        return dout * b, dout * 0

    cell = cell_of(lambda self, a, b: a * b, bprop, used_bprop_inputs=[1])
    assert numbers(run(grad(lambda a, b: cell(a, b)))(x(), Tensor([4.0] * 3))) == [4] * 3
    assert seen == [(True, False, True)]


def test_an_input_that_is_returned_is_another_tensor():
    cell, value = cell_of(lambda self, a: (a, a * 2), lambda self, a, out, dout: (dout[0] * 7,)), x()
    assert cell(value)[0] is not value and numbers(cell(value)[0]) == numbers(value)
    assert numbers(grad(lambda a: cell(a)[0])(value)) == [7] * 3


def test_bprop_is_not_called_without_a_requested_gradient(run):
    seen: list[Any] = []
    cell = cell_of(lambda self, a: a * 2, lambda self, a, out, dout: (seen.append(1), (dout,))[1])
    run(lambda a: cell(a))(x())
    run(grad(lambda a, b: cell(b) * 0 + a))(x(), x())
    assert seen == []


def test_bprop_may_change_its_arguments_in_place():
    """A bprop may change inputs, output and output gradient in place without effects elsewhere."""

    def bprop(self, a, out, dout):
        dout[0] = 100.0
        a[0] = 100.0
        out[0] = 100.0
        return (dout,)

    for function in (lambda f: f, jit):
        cell = cell_of(lambda self, a: a + 0, bprop)
        value = x()
        assert numbers(function(grad(lambda a: cell(a) + a))(value)) == [101, 2, 2]
        assert numbers(value) == X.tolist()


# ------------------------------------------------------------------------------------------ results of bprop


@pytest.mark.parametrize("returned", [
    lambda dout: (dout * 3,), lambda dout: [dout * 3], lambda dout: dout * 3,
    lambda dout: (ops.broadcast_to(ops.expand_dims(dout * 3, axis=0), shape=(1, 3)),)])
def test_bprop_may_return_a_gradient_or_a_tuple(run, returned):
    cell = cell_of(lambda self, a: a * 3, lambda self, a, out, dout: returned(dout))
    assert numbers(run(grad(lambda a: cell(a)))(x())) == [3] * 3


def test_none_is_zeros(run):
    cell = cell_of(lambda self, a, b: a * b, lambda self, a, b, out, dout: (None, dout))
    assert numbers(run(grad(lambda a, b: cell(a, b), (0, 1)))(x(), x())) == ([0] * 3, [1] * 3)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.int64, np.uint8, np.bool_])
@pytest.mark.parametrize("own", [np.float32, np.float16, np.int32, np.bool_])
@pytest.mark.parametrize("debug", [False, True])
def test_gradients_have_the_dtype_of_the_input(run, own, dtype, debug):
    """Gradients are cast from any dtype that bprop returns, as in MindSpore; a warning tells of lost fractions."""
    cell = cell_of(lambda self, a: a * 2, lambda self, a, out, dout: ((dout * 2).astype(dtype),), bprop_debug=debug)
    cut = own is np.bool_ and np.issubdtype(dtype, np.floating)
    with pytest.warns(UserWarning, match="a gradient of bool is cut to bool") if cut else contextlib.nullcontext():
        found = run(grad(lambda a: cell(a).astype(np.float32)))(Tensor(np.array([1, 0, 3], own)))
    expected = np.full(3, 2).astype(dtype).astype(own)
    assert found.asnumpy().dtype == own and numbers(found) == expected.tolist()


@pytest.mark.parametrize("shape, returned, expected", [
    ((2, 3), lambda d: ops.broadcast_to(ops.expand_dims(d, axis=0), shape=(4, 2, 3)), [[4, 4, 4], [4, 4, 4]]),
    ((1, 3), lambda d: ops.broadcast_to(d, shape=(2, 3)), [[2, 2, 2]]),
    ((), lambda d: ops.broadcast_to(d, shape=(2, 3)), 6), ((), lambda d: 2.0, 2),
    ((1, 1), lambda d: d.sum(), [[1]]), ((1,), lambda d: d.reshape(1, 1), [1]),
    ((2, 3), lambda d: d.sum(axis=0), None), ((2, 3), lambda d: d.sum(axis=0, keepdims=True), None),
    ((2, 3), lambda d: d.sum(axis=1, keepdims=True), None), ((2, 3), lambda d: d.sum(), None),
    ((1, 3), lambda d: d.sum(), None), ((2, 3), lambda d: d.reshape(3, 2), None), ((2, 3), lambda d: 0, None)])
@pytest.mark.parametrize("debug", [False, True])
def test_larger_gradients_are_summed_and_others_refused(run, shape, returned, expected, debug):
    cell = cell_of(lambda self, a: a + 0, lambda self, a, out, dout: (returned(dout),), bprop_debug=debug)
    value = Tensor(np.ones(shape, np.float32))
    if expected is None:
        with pytest.raises(RuntimeError, match=r"Cell Made: .*should be broadcast to expected shape"):
            run(grad(lambda a: cell(a)))(value)
    else:
        assert numbers(run(grad(lambda a: cell(a)))(value)) == expected


@pytest.mark.parametrize("returned, kind, message", [
    (lambda a, b, d: (d,), RuntimeError, r"user defined method 'bprop' of net 'Net.own': Grad size .* but got 1 vs 2"),
    (lambda a, b, d: (d, d, d), RuntimeError, r"got 3 vs 2.*Tensor \(3,\), Tensor \(3,\)"),
    (lambda a, b, d: (d, d, None, d), RuntimeError, "got 4 vs 2"),
    (lambda a, b, d: (d, None, d), RuntimeError, "got 3 vs 2"),
    (lambda a, b, d: None, TypeError, "The python function output is none"),
    (lambda a, b, d: (np.ones(3), d), TypeError, "Unreasonable data type.*input 0.*ndarray"),
    (lambda a, b, d: (d, ops.tile(d, reps=(2,))), RuntimeError, r"input 1 has shape \(6,\), expected \(3,\)"),
    (lambda a, b, d: (d.sum(), d), RuntimeError, r"input 0 has shape \(\), expected \(3,\)"),
    (lambda a, b, d: (d, d[:1]), RuntimeError, r"input 1 has shape \(1,\), expected \(3,\)"),
    (lambda a, b, d: (2.0, d), RuntimeError, r"input 0 has shape \(\), expected \(3,\): bprop returned a number"),
    (lambda a, b, d: (2.0, d), TypeError, r"bprop returned a number"),
])
def test_mistakes_name_the_cell_and_the_input(run, returned, kind, message):
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.own = cell_of(lambda self, a, b: a * b, lambda self, a, b, out, dout: returned(a, b, dout))

        def construct(self, a, b):
            return self.own(a, b)

    net = Net()
    with pytest.raises(kind, match=message) as caught:
        run(grad(lambda a, b: net(a, b), (0, 1)))(x(), x())
    assert "Net.own" in str(caught.value)


@pytest.mark.parametrize("returned", [lambda d: (d, d * 2, None), lambda d: [d, d * 2, None, None]])
def test_additional_none_after_the_gradients_is_dropped(run, returned):
    """A bprop from another framework, where settings are inputs, returns None for each setting; this causes a
    warning."""
    cell = cell_of(lambda self, a, b: a * b, lambda self, a, b, out, dout: returned(dout))
    with pytest.warns(UserWarning, match=r"bprop of Cell Made returned .* gradients for 2 inputs"):
        assert numbers(run(grad(lambda a, b: cell(a, b), (0, 1)))(x(), x())) == ([1.0] * 3, [2.0] * 3)
    compile_config.CHECK_BPROP = 1
    try:
        assert compile_config.CHECK_BPROP
        with pytest.raises(RuntimeError, match=r"Grad size .* vs 2"):
            run(grad(lambda a, b: cell(a, b), (0, 1)))(x(), x())
    finally:
        compile_config.CHECK_BPROP = ""
    assert not get_context("check_bprop") and compile_config.GRAD_FOR_SCALAR == ""


def test_exceptions_keep_their_type_and_leave_no_state_behind(run):
    class Mine(Exception):
        pass

    def bprop(self, a, out, dout):
        raise Mine("bprop")

    cell = cell_of(lambda self, a: a * 2, bprop)
    for _ in range(2):
        with pytest.raises(Mine, match="bprop") as caught:
            run(grad(lambda a: cell(a)))(x())
        assert any("bprop of Cell Made" in note for note in caught.value.__notes__)
        assert numbers(run(grad(lambda a: a * a))(x())) == (2 * X).tolist()


# ---------------------------------------------------------------------------------------------- parameters


class Scale(Cell):
    def __init__(self, internal: bool = True) -> None:
        super().__init__()
        self.w = Parameter(Tensor([2.0]), name="w")
        self.v = Parameter(Tensor([5.0]), name="v")
        if internal:
            self.internal_params = [self.w]

    def construct(self, a):
        return self.w * a * self.v

    def bprop(self, a, out, dout):
        return (dout * self.w * self.v,), {self.w: (dout * a * self.v).sum().reshape(1), self.v: dout}


def test_bprop_returns_gradients_of_internal_parameters(run):
    cell = Scale()
    by_input, (by_w, by_v) = run(grad(lambda a: cell(a), 0, [cell.w, cell.v]))(x())
    assert numbers(by_input) == [10] * 3 and numbers(by_w) == [10] and numbers(by_v) == [0]
    assert GradOperation(get_by_list=True)(cell)(x())[0].asnumpy().tolist() == [10]


def test_without_the_list_the_dict_is_ignored(run):
    cell = Scale(internal=False)
    by_input, by_w = run(grad(lambda a: cell(a), 0, cell.w))(x())
    assert numbers(by_input) == [10] * 3 and numbers(by_w) == [0]


def test_a_missing_gradient_of_a_weight_is_an_error(run):
    cell = Scale()
    cell.internal_params = [cell.w, Parameter(Tensor([1.0]), name="other")]
    with pytest.raises(RuntimeError, match=r"Grad size.*other"):
        run(grad(lambda a: cell(a)))(x())


def test_internal_parameters_are_read_anew_on_every_run():
    cell = Scale()
    compiled = jit(grad(lambda a: cell(a), 0, cell.w))
    assert numbers(compiled(x())) == ([10] * 3, [10])
    cell.w.set_data(Tensor([3.0]))
    cell.v.set_data(Tensor([1.0]))
    assert numbers(compiled(x())) == ([3] * 3, [2])


def test_construct_may_assign(run):
    class Counts(Cell):
        def __init__(self):
            super().__init__()
            self.count = Parameter(Tensor([0.0]), name="count", requires_grad=False)

        def construct(self, a):
            assign(self.count, self.count + 1)
            return a * 2

        def bprop(self, a, out, dout):
            return (dout * 9,)

    cell = Counts()
    function = run(grad(lambda a: cell(a) + cell(a)))
    assert numbers(function(x())) == [18] * 3 and numbers(cell.count) == [2]
    assert numbers(function(x())) == [18] * 3 and numbers(cell.count) == [4]


@pytest.mark.parametrize("way", [lambda f: jit(grad(f)), lambda f: grad(jit(f))],
                         ids=["compiled gradient", "gradient of a compiled function"])
@pytest.mark.parametrize("construct, calls", [
    (lambda self, a: a * 2, lambda cell, a: cell(a)), (lambda self, a: a * self.w, lambda cell, a: cell(a)),
    (lambda self, a: a * 2, lambda cell, a: cell(a) * cell.w), (lambda self, a: a * 2, lambda cell, a: cell(cell(a))),
    (lambda self, a: a * 2, lambda cell, a: cell(a) * assign(cell.w, cell.w * 2))],
    ids=["nothing else reads it", "construct reads it", "the function reads it", "two calls",
         "the function assigns it"])
def test_bprop_may_assign(construct, calls, way):
    cell, other = [cell_of(construct, lambda self, a, out, dout: dout * assign(self.w, self.w + 1) * self.w,
                           w=Parameter(Tensor([1.0]), name="w")) for _ in range(2)]
    found, expected = way(lambda a: calls(cell, a)), grad(lambda a: calls(other, a))
    for _ in range(3):
        assert (numbers(found(x())), numbers(cell.w)) == (numbers(expected(x())), numbers(other.w))


# ------------------------------------------------------------------------------------------ nesting and order


class Cube(Cell):
    """x**3, its gradient written with the output."""

    def construct(self, a):
        return a * a * a

    def bprop(self, a, out, dout):
        return (dout * out * 3 / a,)


@pytest.mark.parametrize("order, expected", [(1, 12.0), (2, 12.0), (3, 6.0)])
def test_bprop_gives_gradients_of_every_order(run, order, expected):
    function = Cube()
    for _ in range(order):
        function = grad(function)
    assert numbers(run(function)(Tensor(2.0))) == pytest.approx(expected, rel=1e-5)


def test_the_bprop_of_an_outer_cell_replaces_that_of_an_inner_cell(run):
    seen: list[str] = []
    inner = cell_of(lambda self, a: a * 2, lambda self, a, out, dout: (seen.append("inner"), (dout * 5,))[1])
    outer = cell_of(lambda self, a: inner(a) * 3, lambda self, a, out, dout: (dout * inner(a),), inner=inner)
    assert numbers(run(grad(lambda a: outer(a)))(x())) == (2 * X).tolist()
    assert seen == []
    assert numbers(run(grad(grad(lambda a: outer(a))))(x())) == [5] * 3  # by the bprop of the inner Cell
    assert set(seen) == {"inner"}


def test_bprop_may_call_grad(run):
    cell = cell_of(lambda self, a: a * a * a, lambda self, a, out, dout: (dout * grad(lambda b: b * b * b)(a),))
    np.testing.assert_allclose(run(grad(lambda a: cell(a)))(x()).asnumpy(), 3 * X * X)
    np.testing.assert_allclose(run(grad(grad(lambda a: cell(a))))(x()).asnumpy(), 6 * X)


def test_autograd_uses_the_same_tape():
    cell = cell_of(lambda self, a: a * 2, lambda self, a, out, dout: (dout * 7,))
    value = x()
    value.attach_grad()
    with autograd.record():
        loss = cell(value * 3)
    loss.backward()
    assert numbers(value.grad) == [21] * 3
    compiled = cell.compile(x())
    with autograd.record():
        loss = compiled(value * 3)
    loss.backward()
    assert numbers(value.grad) == [21] * 3


# ------------------------------------------------------------------------------------------------ bprop_debug


def test_bprop_debug_runs_as_python_on_numbers():
    seen: list[Any] = []

    def bprop(self, a, out, dout):
        seen.append(numbers(a))
        scale = 10 if float(a.asnumpy()[0]) > 0 else -10  # the values are known
        return (dout * scale,)

    cell = cell_of(lambda self, a: a * 2, bprop)
    cell.bprop_debug = True
    compiled = jit(grad(lambda a: cell(a)))
    assert numbers(compiled(x())) == [10] * 3 and numbers(compiled(Tensor(-X))) == [-10] * 3
    assert seen == [X.tolist(), (-X).tolist()]
    assert numbers(grad(lambda a: cell(a))(Tensor(-X))) == [-10] * 3


@pytest.mark.parametrize("debug", [False, True])
def test_a_debugged_bprop_has_weights_and_second_order(debug):
    cell = Scale()
    cell.bprop_debug = debug
    by_input, by_w = jit(grad(lambda a: cell(a), 0, cell.w))(x())
    assert numbers(by_input) == [10] * 3 and numbers(by_w) == [10]
    cube = Cube()
    cube.bprop_debug = debug
    assert numbers(jit(grad(grad(cube)))(Tensor(2.0))) == pytest.approx(12, rel=1e-5)


# ------------------------------------------------------------------------------------------------ checking


def test_check_bprop_finds_a_wrong_bprop():
    assert cell_of(lambda self, a, b: ops.exp(a) * b, lambda self, a, b, out, dout:
                   (dout * out, dout * ops.exp(a))).check_bprop(x(), Tensor([1.0, 2.0, 3.0])) < 1e-5
    wrong = cell_of(lambda self, a, b: a * b, lambda self, a, b, out, dout: (dout * b, dout * b))
    with pytest.raises(AssertionError, match=r"input 1 at \(\d,\): bprop says .* central differences .* off by"):
        wrong.check_bprop(x(), Tensor([5.0, 6.0, 7.0]))
    weights = Scale()
    assert weights.check_bprop(Tensor([1.0])) < 1e-2
    with pytest.raises(ValueError, match="has no bprop"):
        Cell().check_bprop(x())


@contextmanager
def demanding() -> Iterator[None]:
    set_context(check_bprop=True)
    try:
        yield
    finally:
        set_context(check_bprop=False)


@pytest.fixture
def exact() -> Iterator[None]:
    with demanding():
        yield


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("returned, kind, message", [
    (lambda d: Tensor(np.ones((2, 3), np.float32)), ValueError,
     r"should have the same shape as the 0th argument, which is \(3,\), but got \(2, 3\)"),
    (lambda d: Tensor(np.ones((1,), np.float32)), ValueError, r"should have the same shape.*got \(1,\)"),
    (lambda d: Tensor(np.ones(3, np.float16)), TypeError,
     "should have the same dtype as the 0th argument, which is Float32, but got Float16"),
    (lambda d: 1.0, TypeError, "gradient of the 0th argument.* should be Tensor, but got float"),
    (lambda d: None, TypeError, "should be Tensor, but got NoneType"),
    (lambda d: np.ones(3, np.float32), TypeError, "should be Tensor, but got ndarray")])
def test_a_debugged_bprop_must_return_exact_structures(exact, run, debug, returned, kind, message):
    cell = cell_of(lambda self, a: a * 2, lambda self, a, out, dout: (returned(dout),))
    cell.bprop_debug = debug
    with pytest.raises(kind, match=f"method 'bprop' of net 'Made'.*{message}"):
        run(grad(cell))(x())
    exactly = cell_of(lambda self, a: a * 2, lambda self, a, out, dout: (dout * 3,))
    assert numbers(run(grad(exactly))(x())) == [3] * 3


def test_check_bprop_compares_the_shapes_of_gradients_of_weights(exact, run):
    cell = Scale()
    assert numbers(run(grad(lambda a: cell(a), 0, cell.w))(x())) == ([10] * 3, [10])
    wrong = cell_of(lambda self, a: a * 2, lambda self, a, out, dout: ((dout,), {self.w: dout}), w=cell.w,
                    internal_params=[cell.w])
    with pytest.raises(ValueError, match=r"gradient of parameter w .* same shape as parameter w, which is \(1,\)"):
        run(grad(wrong, 0, cell.w))(x())


def test_check_bprop_may_be_set_after_compilation():
    half = cell_of(lambda self, a: a * 2, lambda self, a, out, dout: (dout.astype("float16"),))
    compiled = jit(grad(half))
    assert numbers(compiled(x())) == [1] * 3
    with demanding(), pytest.raises(TypeError, match="same dtype"):
        compiled(x())
    assert numbers(compiled(x())) == [1] * 3


def test_bprop_assigned_to_an_instance_is_no_bprop():
    class Plain(Cell):
        def construct(self, a):
            return a * 2

    cell = Plain()
    cell.bprop = lambda a, out, dout: (dout * 9,)
    assert numbers(grad(cell)(x())) == [2] * 3


@pytest.mark.parametrize("returned, expected", [
    (lambda d: d * 3, [[3] * 3] * 2), (lambda d: ops.stack(d, d, num_args=2), [[2] * 3] * 2),
    (lambda d: ops._np_sum(d, axis=0), None), (lambda d: ops._np_reshape(d, newshape=(3, 2)), None)])
def test_wrong_shapes_of_a_symbol_are_found_at_bind(returned, expected):
    """A wrong shape raises an error when the graph is bound."""
    symbol = cell_of(lambda self, a: a * 2, lambda self, a, out, dout: (returned(dout),)).to_symbol()
    if expected is None:
        executor = symbol.simple_bind(cpu(), a=(2, 3))
        with pytest.raises(RuntimeError, match="_reduce_like"):
            executor.forward(is_train=True)
        return
    executor = symbol.simple_bind(cpu(), a=(2, 3))
    executor.forward(is_train=True)
    executor.backward(NDArray(np.ones((2, 3), np.float32)))
    np.testing.assert_array_equal(executor.grad_dict["a"].asnumpy(), expected)


def test_an_executor_follows_what_bprop_reads():
    owner = types.SimpleNamespace(factor=1.0)
    executor = cell_of(lambda self, a: a * 2, lambda self, a, out, dout: dout * owner.factor).to_symbol().simple_bind(
        cpu(), a=(2,))
    for factor in (1.0, 5.0, 7.0):
        owner.factor = factor
        executor.forward(is_train=True)
        executor.backward(NDArray(np.ones(2, np.float32)))
        assert executor.grad_dict["a"].asnumpy().tolist() == [factor] * 2


@pytest.mark.parametrize("weight", [Parameter(Tensor([2.0]), name="scale"), Tensor([2.0])])
def test_bprop_in_a_symbol_refuses_tensors_that_are_no_inputs(weight):
    executor = cell_of(lambda self, a: a * 2, lambda self, a, out, dout: dout * weight).to_symbol().simple_bind(
        cpu(), a=(2,))
    with pytest.raises(RuntimeError, match=r"reads (scale|a tensor), which is no input of the Symbol"):
        executor.forward(is_train=True)


# ------------------------------------------------------------------------------------- random values, the mode


def _drawn_behind(function: Run) -> list[Any]:
    """Result and gradient of a function, and a random value that the program draws between the two."""
    random.seed(7)
    value = x()
    value.attach_grad()
    with autograd.record():
        out = function(value)
    behind = random.uniform(shape=(1,))
    out.backward()
    return [*map(numbers, (out, value.grad)), behind.asnumpy().tolist()]


@pytest.mark.parametrize("made", [
    lambda inner: lambda a: (a * inner(a), inner(a))[0], lambda inner: lambda a: (a * a, inner(a))[0]],
    ids=["read", "unread"])
def test_random_values_of_a_call_come_before_later_ones(made):
    inner = cell_of(lambda self, a: ops.Dropout(a, p=0.5, mode="always"), lambda self, a, out, g: (g * 3,))
    assert _drawn_behind(jit(made(inner))) == _drawn_behind(made(inner))


@pytest.mark.parametrize("training", [True, False])
def test_a_cell_with_bprop_computes_in_its_own_mode(run, training):
    inner = cell_of(lambda self, a: ops.Dropout(a, p=0.5), lambda self, a, out, g: (g * 3,))
    inner.set_train(training)
    kept = run(lambda a: inner(a))(Tensor(np.ones(200, np.float32))).asnumpy()
    assert (0 in kept) == training
