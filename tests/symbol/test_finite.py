"""Checks for finite numbers: an error names the first step that makes a NaN or infinity from finite numbers."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, NonFiniteError
from opreg.ndarray import finite

HERE = __file__


def _executor(symbol, check=True, **arrays):
    args = {name: mx.nd.array(value, dtype=np.asarray(value).dtype) for name, value in arrays.items()}
    grads = {name: mx.nd.zeros(value.shape, dtype=value.dtype) for name, value in args.items()}
    return symbol.bind(mx.cpu(), args, grads, check_numbers=check)


def _x(*numbers, dtype="float32"):
    return np.array(numbers, dtype)


def _scaled(x):
    return mx.sym.log(x, name="bad") * 2 + 1


# --------------------------------------------------------------------------------------------- plans


def test_a_step_that_makes_an_infinity_is_named_with_its_line_its_place_and_its_ranges():
    x = mx.sym.var("x")
    executor = _executor(mx.sym.FullyConnected(mx.sym.log(x, name="bad"), num_hidden=1, no_bias=True, name="fc"),
                         x=np.array([[4, 0], [2, 1]], "float32"), fc_weight=np.ones((1, 2), "float32"))
    with pytest.raises(NonFiniteError) as caught:
        executor.forward()
    text = str(caught.value)
    assert "operator log, node 'bad', made at " + HERE in text
    assert "forward step 0 of 2" in text
    assert "data (2, 2) float32: 0 to 4" in text
    assert "output (2, 2) float32: 0 to 1.38629, 1 infinite of 4, the first at (0, 1): -inf, of data 0.0" in text
    (given,), (made,) = caught.value.inputs, caught.value.outputs
    assert (given.least, given.greatest, given.nans, given.infinities) == (0, 4, 0, 0)
    assert (made.infinities, made.place) == (1, (0, 1))
    assert not getattr(caught.value, "__notes__", None), "the message says it all"


def test_an_error_names_the_member_of_a_fused_group_with_an_infinity():
    executor = _executor(_scaled(mx.sym.var("x")), x=_x(1, -1))
    assert "_fused" in executor.explain(True)
    with pytest.raises(NonFiniteError, match=r"operator log, node 'bad', made at .*test_finite.py:\d+, a part of "
                                             r"operator _fused.*\n  operand \(2,\) float32: -1 to 1\n"):
        executor.forward(is_train=True)


def test_an_infinity_in_backward_is_found_after_a_finite_forward():
    executor = _executor(mx.sym.sqrt(mx.sym.var("x"), name="root"), x=_x(4, 0))
    executor.forward(is_train=True)
    with pytest.raises(NonFiniteError, match=r"node 'root_backward', made at .*test_finite.py.*backward step 0"):
        executor.backward(mx.nd.ones(2))


def test_gradients_that_are_added_to_others_are_checked():
    x = mx.nd.array([1.0], dtype="float16")
    grad = mx.nd.array([60000.0], dtype="float16")
    executor = (mx.sym.var("x") * 30000).bind(mx.cpu(), [x], [grad], grad_req="add", check_numbers=True)
    executor.forward(is_train=True)
    with pytest.raises(NonFiniteError, match="60000"):
        executor.backward(mx.nd.ones(1, dtype="float16"))


@pytest.mark.parametrize("symbol, numbers", [
    (lambda x: mx.sym.log(x) + 1, _x(np.nan, np.inf)),
    (lambda x: x + float("inf"), _x(1)),
    (lambda x: mx.sym.exp(x) + float("inf"), _x(1)),
    (lambda x: mx.sym.full((2,), float("-inf")) + x, _x(1, 2)),
    (lambda x: mx.sym.where(x > 1, x, mx.sym.full((2,), float("-inf"))), _x(1, 2)),
    (lambda x: mx.sym.sigmoid(x), _x(-1000, 1000)),
    (lambda x: mx.sym.cast(x, dtype="int32"), _x(1)),
], ids=["passed on", "attribute", "attribute of a member", "created", "mask", "inside of one operator", "integers"])
def test_deliberate_and_earlier_infinities_are_left_alone(symbol, numbers):
    checked, plain = [_executor(symbol(mx.sym.var("x")), check, x=numbers) for check in (True, False)]
    np.testing.assert_array_equal(checked.forward()[0].asnumpy(), plain.forward()[0].asnumpy())


@pytest.mark.parametrize("symbol, dtype, number, words", [
    (lambda x: x * x, "float16", 300, "float16 overflows, which ends at 65504: in float32 it is 90000"),
    (mx.sym.exp, "float32", 100, "float32 overflows, which ends at 3.40282e+38: in float64 it is 2.68812e+43"),
    (lambda x: mx.sym.cast(x, dtype="float16"), "float32", 70000, "float16 overflows, which ends at 65504"),
])
def test_an_error_says_that_a_result_overflows(symbol, dtype, number, words):
    with pytest.raises(NonFiniteError) as caught:
        _executor(symbol(mx.sym.var("x")), x=_x(number, dtype=dtype)).forward()
    assert words in str(caught.value)


def test_a_division_by_zero_is_no_overflow():
    with pytest.raises(NonFiniteError) as caught:
        _executor(1 / mx.sym.var("x"), x=_x(0, dtype="float16")).forward()
    assert "overflow" not in str(caught.value)


@mx.operator.define
def third_of_zero(x):
    return x / (x - 3)


def test_an_operator_of_a_user_is_named_and_its_first_run_is_still_watched():
    executor = _executor(third_of_zero(mx.sym.var("x"), name="mine"), x=_x(1, 2))
    executor.forward()
    executor.arg_dict["x"][:] = 3
    with pytest.raises(NonFiniteError, match=r"node 'mine', made at .*test_finite.py"):
        executor.forward()


def test_the_body_of_a_loop_is_checked():
    data = mx.sym.var("data")
    out, _ = mx.sym.contrib.foreach(lambda x, s: (mx.sym.log(x, name="inner"), s), data, [mx.sym.var("s")])
    executor = _executor(out, data=np.array([[1], [0]], "float32"), s=_x(0))
    with pytest.raises(NonFiniteError, match="node 'inner'"):
        executor.forward()


def test_shapes_that_follow_from_numbers_are_checked_too():
    x = mx.sym.var("x")
    symbol = mx.sym.log(mx.sym.contrib.boolean_mask(x, x > -1), name="bad")
    with pytest.raises(NonFiniteError, match="node 'bad'"):
        _executor(symbol, x=_x(1, 0, -5)).forward()


def test_checked_numbers_and_checked_kernels_go_together():
    executor = _scaled(mx.sym.var("x")).bind(mx.cpu(), {"x": mx.nd.ones(3)}, check_kernels=True, check_numbers=True)
    executor.forward()
    assert executor.kernel_report().rows
    executor.arg_dict["x"][:] = 0
    with pytest.raises(NonFiniteError, match="operator log"):
        executor.forward()


def test_results_are_those_of_a_plan_that_is_not_checked():
    rng = np.random.default_rng(0)
    data = mx.sym.var("data")
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.BatchNorm(mx.sym.Activation(
        mx.sym.FullyConnected(data, num_hidden=8), act_type="relu")), num_hidden=3), name="softmax")
    found = []
    for check in (False, True):
        executor = net.simple_bind(mx.cpu(), data=(4, 5), softmax_label=(4,), check_numbers=check)
        rng = np.random.default_rng(0)
        for array in executor.arg_arrays:
            array[:] = rng.normal(size=array.shape)
        executor.arg_dict["softmax_label"][:] = [0, 1, 2, 0]
        for _ in range(3):
            executor.forward(is_train=True)
            executor.backward()
        found.append([array.asnumpy() for array in (*executor.outputs, *executor.grad_arrays, *executor.aux_arrays)])
    for plain, checked in zip(*found):
        np.testing.assert_array_equal(plain, checked)


def test_a_plan_that_is_not_checked_has_the_steps_it_had():
    executor = _executor(_scaled(mx.sym.var("x")), False, x=_x(1))
    assert not any("finite" in type(function).__module__ for step in executor.plan(False).forward.steps
                   for function in step.run)


# ---------------------------------------------------------------------------------------------- tapes


def _recorded(function: Callable, *arrays, backward: bool = True):
    for array in arrays:
        array.attach_grad()
    with mx.autograd.record(check_numbers=True):
        result = function(*arrays)
    if backward:
        result.backward()


@pytest.mark.parametrize("function, words", [
    (mx.nd.log, "operator log, recorded at"),
    (lambda x: 1 / x, "operator _rdiv_scalar, recorded at"),
    (lambda x: x / x, "operator broadcast_div, recorded at"),
    (lambda x: mx.nd.zeros(2) / mx.nd.zeros(2) * x, "operator .*div, recorded at"),
    (third_of_zero, "operator custom.third_of_zero, recorded at"),
])
def test_the_first_recorded_operator_is_named(function, words):
    with pytest.raises(NonFiniteError, match=rf"{words} .*test_finite.py:\d+: NaN or infinity"):
        _recorded(function, mx.nd.array([0.0, 3.0]), backward=False)


def test_an_error_names_the_gradient_with_an_infinity():
    with pytest.raises(NonFiniteError, match=r"in the gradient of operator sqrt, recorded at .*test_finite.py") as e:
        _recorded(lambda x: mx.nd.sqrt(x) * 2, mx.nd.array([1.0, 0.0]))
    assert "gradient of data (2,) float32: 1 to 1, 1 infinite of 2, the first at (1,): inf" in str(e.value)


def test_gradients_are_checked_where_they_are_recorded_themselves():
    x = mx.nd.array([0.0])
    x.attach_grad()
    with mx.autograd.record(check_numbers=True):
        y = x ** 1.5
    with mx.autograd.record():
        (first,) = mx.autograd.grad(y, x, create_graph=True)
    with pytest.raises(NonFiniteError, match="in the gradient of"):
        first.backward()


def test_a_sum_of_gradients_is_checked():
    def twice(x):
        return x * 40000 + x * 30000

    with pytest.raises(NonFiniteError, match=r"sum of gradients of array(.|\n)*float16 overflows.*70000"):
        _recorded(twice, mx.nd.array([0.5], dtype="float16"))


def test_a_gradient_of_a_user_is_named():
    class Broken(mx.autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            return mx.nd.log(dy - 1)

    with pytest.raises(NonFiniteError, match="in the gradient of operator Function Broken"):
        _recorded(lambda x: Broken()(x), mx.nd.array([1.0]))


def test_nothing_is_checked_outside_and_the_former_mode_comes_back():
    x = mx.nd.array([0.0])
    x.attach_grad()
    with mx.autograd.record(check_numbers=True):
        with mx.autograd.pause():
            mx.nd.log(x)
            assert not mx.autograd.is_recording()
            1 / x
        before = mx.autograd.set_recording(False)
        mx.autograd.set_recording(before)
        with pytest.raises(NonFiniteError):
            mx.nd.log(x)
        assert mx.autograd.is_recording() is True
    with mx.autograd.record():
        y = mx.nd.log(x) + 1 / x
    y.backward()
    assert not np.isfinite(x.grad.asnumpy()).any()


# ------------------------------------------------------------------------------------ compiled functions


def test_a_compiled_function_is_checked_forward_and_backward():
    @mx.jit(check_numbers=True)
    def root(x):
        return mx.ops.sqrt(x) * 2

    np.testing.assert_allclose(root(mx.Tensor([4.0])).asnumpy(), [4.0])
    with pytest.raises(NonFiniteError, match=r"operator sqrt, node .*made at .*test_finite.py"):
        root(mx.Tensor([-1.0]))
    with pytest.raises(NonFiniteError, match="step"):
        mx.ops.grad(root)(mx.Tensor([0.0]))


def test_a_cell_is_compiled_with_checks_by_jit():
    class Log(mx.nn.Cell):
        def construct(self, x):
            return mx.ops.log(x)

    cell = Log()
    with pytest.raises(NonFiniteError, match="operator log"):
        mx.jit(cell, check_numbers=True)(mx.Tensor([0.0]))
    assert np.isinf(mx.jit(cell)(mx.Tensor([0.0])).asnumpy()).all()


# ------------------------------------------------------------------------------------ settings, debugger


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the environment variable, perhaps after it was read."""
    finite.environment_setting()
    return lambda text: monkeypatch.setenv("OPREG_CHECK_NUMBERS", text)


@pytest.mark.parametrize("run", [
    lambda: mx.sym.log(mx.sym.var("x")).bind(mx.cpu(), {"x": mx.nd.zeros(1)}).forward(),
    lambda: mx.sym.log(mx.sym.var("x")).simple_bind(mx.cpu(), x=(1,)).forward(),
    lambda: mx.jit(lambda x: mx.ops.log(x))(mx.Tensor([0.0])),
    lambda: mx.ops.grad(lambda x: mx.ops.log(x))(mx.Tensor([0.0])),
], ids=["bind", "simple_bind", "jit", "grad"])
def test_the_environment_switches_checks_on(switch, run):
    run()
    switch("1")
    with pytest.raises(NonFiniteError, match="operator log"):
        run()
    switch("0")
    run()


def test_the_environment_switches_checks_of_recorded_code_on(switch):
    switch("1")
    with pytest.raises(NonFiniteError), mx.autograd.record():
        mx.nd.log(mx.nd.zeros(1))
    with mx.autograd.record(check_numbers=False):
        mx.nd.log(mx.nd.zeros(1))


@pytest.mark.parametrize("switch", [
    lambda: mx.sym.var("x").bind(mx.cpu(), {"x": mx.nd.zeros(1)}, check_numbers="yes"),
    lambda: mx.autograd.record(check_numbers="yes"), lambda: mx.jit(abs, check_numbers="yes")])
def test_another_value_of_check_numbers_is_refused(switch):
    with pytest.raises(ArgumentError, match="check_numbers='yes': expected True, False or 'debug'"):
        switch()


def test_a_debugger_stops_at_the_line_of_the_user(monkeypatch, capsys):
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    monkeypatch.setattr(sys, "stdin", io.StringIO("p clue\nc\n"))
    clue = 40 + 2
    with pytest.raises(NonFiniteError), mx.autograd.record(check_numbers="debug"):
        mx.nd.log(mx.nd.zeros(1))  # here
    printed = capsys.readouterr()
    assert "mx.nd.log(mx.nd.zeros(1))  # here" in printed.out
    assert str(clue) in printed.out.split()
    assert "operator log" in printed.err


def test_a_debugger_of_ones_own_is_called(monkeypatch):
    called = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: called.append(True))
    with pytest.raises(NonFiniteError):
        mx.sym.log(mx.sym.var("x")).bind(mx.cpu(), {"x": mx.nd.zeros(1)}, check_numbers="debug").forward()
    assert called
