"""autograd: recording, gradients, errors, and memory."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.cells.grad import no_grad
from opreg.errors import ArgumentError, DTypeError, NotDifferentiableError, OpError, ShapeError
from tests.questions import of_each

nd, autograd = mx.nd, mx.autograd
X = np.float32([[0, 1, 2], [3, 4, 5]])


def marked(values=X, req: str = "write", dtype: str = "float32"):
    x = nd.array(values, dtype=dtype)
    x.attach_grad(req)
    return x


def slope(function, *arrays):
    """Gradients of the sum of a recorded function's results."""
    with autograd.record():
        y = function(*arrays)
    y.backward()
    return [array.grad.asnumpy() for array in arrays]


# --------------------------------------------------------------------------------------------- gradients

Z = np.zeros((2, 3), np.float32)
ROW0, COLUMN1 = Z.copy(), Z.copy()
ROW0[0], COLUMN1[:, 1] = 1, 1


def split_first(x):
    return nd.split(x, num_outputs=2, axis=0)[0]


def assigned(x):
    y = nd.zeros((2, 3))
    y[:] = x * 2
    return y * 3


def assigned_broadcast(x):
    y = nd.zeros((4, 2, 3), dtype="float64")
    y[:] = x
    return y


def added_to_a_constant(x):
    y = nd.ones((2, 3))
    y += x
    return y * 3


def through_out(x):
    y = nd.zeros((2, 3))
    nd.relu(x, out=y)
    return y * 3


def copied_into(x):
    y = nd.zeros((2, 3))
    x.copyto(y)
    return y * 3


def paused(x):
    y = x * 2
    with autograd.pause():
        z = y * 3
    return y * z


SLOPES = [
    (lambda x: x * x, 2 * X), (lambda x: (x * x).sum(), 2 * X), (lambda x: x * 2 + 1 - x / 2, Z + 1.5),
    (lambda x: 1 - x, Z - 1), (lambda x: -x, Z - 1), (lambda x: 6 / (x + 1), -6 / (X + 1) ** 2),
    (lambda x: x ** 3, 3 * X ** 2), (lambda x: abs(x - 2), np.sign(X - 2)),
    (lambda x: x.clip(1, 3), (X >= 1) * (X <= 3)),
    (lambda x: x + nd.array([1, 2, 3]) * x, Z + [2, 3, 4]), (lambda x: x * np.float32([1, 2, 3]), Z + [1, 2, 3]),
    (lambda x: x[0], ROW0), (lambda x: x[0, 1] * 3, ROW0 * [0, 3, 0]), (lambda x: x[:, 1], COLUMN1),
    (lambda x: x[[0, 0]], ROW0 * 2), (lambda x: x[nd.array([0, 0])], ROW0 * 2),
    (lambda x: x[0:1, ::2], ROW0 * [1, 0, 1]),
    (lambda x: x[...], Z + 1), (lambda x: x[()], Z + 1), (lambda x: x[None] * 3, Z + 3), (lambda x: x.T * 3, Z + 3),
    (lambda x: x.reshape((3, 2)) * 3, Z + 3), (lambda x: x.reshape(-1)[1:3], ROW0 * [0, 1, 1]),
    (lambda x: x.copy() * 3, Z + 3), (lambda x: x.astype("float64") * 3, Z + 3), (lambda x: x.flatten() * 3, Z + 3),
    (lambda x: x.as_in_context(mx.cpu(1)) * 3, Z + 3), (lambda x: x.copyto(mx.cpu(1)) * 3, Z + 3),
    (lambda x: x * x.detach(), X), (lambda x: x * nd.BlockGrad(x), X), (paused, 12 * X), (split_first, ROW0),
    (assigned, Z + 6), (assigned_broadcast, Z + 4), (added_to_a_constant, Z + 3), (through_out, (X > 0) * 3),
    (copied_into, Z + 3), (lambda x: nd.concat(x, x * 2, dim=0), Z + 3), (lambda x: nd.where(x > 2, x * 2, x * 3),
                                                                          np.where(X > 2, 2, 3)),
    (lambda x: x > 2, Z), (lambda x: x.argmax(axis=1), Z), (lambda x: x, Z + 1), (lambda x: nd.add_n(x, x, x), Z + 3),
    (nd.sqrt, np.float32([[np.inf] + [0.5] + [0.5 / np.sqrt(2)], 0.5 / np.sqrt(X[1])])),
]


@of_each(SLOPES)
def test_gradients_equal_the_expected_values(function, expected):
    np.testing.assert_allclose(slope(function, marked())[0], np.asarray(expected, np.float32), rtol=1e-6)


def test_gradients_of_broadcast_operands_are_summed():
    x, v = marked(), marked([3, 1, 2])
    gx, gv = slope(lambda x, v: x * v, x, v)
    assert gx.tolist() == [[3, 1, 2]] * 2
    assert gv.tolist() == [3, 5, 7]


def test_gradients_of_integers_are_computed():
    assert slope(lambda x: x * 2, marked([0, 1], dtype="int32"))[0].tolist() == [2, 2]


def test_losses_need_no_head_gradient():
    x = marked()
    with autograd.record():
        y = nd.SoftmaxOutput(x, nd.array([0, 2]))
    y.backward()
    expected = y.asnumpy()
    expected[[0, 1], [0, 2]] -= 1
    np.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-6)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(st.sampled_from(["double", "square", "sum", "share", "view", "transpose"]), min_size=1, max_size=8))
def test_gradients_of_random_computations_agree_with_differences(steps):
    """The gradient of a random composition agrees with central differences."""

    def function(x):
        kept = x
        for step in steps:
            if step == "double":
                x = x * 2 - 1
            elif step == "square":
                x = x * x * 0.1
            elif step == "sum":
                x = x.sum(axis=1, keepdims=True) * 0.5
            elif step == "share":
                x = x + kept * x
            elif step == "view":
                x = x.reshape((1, -1)).reshape(x.shape)
            else:
                x = x.T.T
        return x.sum()

    start = np.array([[0.5, -0.25, 0.125], [1.0, 0.75, -1.5]])
    found = slope(function, marked(start, dtype="float64"))[0]
    for place in np.ndindex(start.shape):
        step = np.zeros_like(start)
        step[place] = 1e-5
        up, down = (function(nd.array(start + sign * step, dtype="float64")).asscalar() for sign in (1, -1))
        np.testing.assert_allclose(found[place], (up - down) / 2e-5, rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------------------------------------ requests


def test_requests_write_add_or_skip_gradients():
    write, add, null = marked(), marked(req="add"), marked(req="null")
    add.grad[:] = 1
    null.grad[:] = 7
    for _ in range(2):
        with autograd.record():
            y = write * 2 + add * 3 + null * 4
        y.backward()
    assert (write.grad.asnumpy() == 2).all()
    assert (add.grad.asnumpy() == 7).all()
    assert null.grad is None  # as in MXNet, where the first backward pass drops the array


def test_gradient_arrays_stay_the_same():
    x = marked()
    g = x.grad
    slope(lambda x: x * 2, x)
    assert x.grad is g
    assert (g.asnumpy() == 2).all()
    x.attach_grad()
    assert not x.grad.asnumpy().any()


def test_inputs_without_a_gradient_have_zeros():
    x, y = marked(), marked()
    x.grad[:], y.grad[:] = 5, 5
    with autograd.record():
        z = x * 2 + y.argmax() + nd.BlockGrad(x * y).sum()
    z.backward()
    assert (x.grad.asnumpy() == 2).all()
    assert not y.grad.asnumpy().any()


def test_attach_grad_detaches_from_earlier_records():
    x = marked()
    with autograd.record():
        y = x * 2
        y.attach_grad()
        z = y * 3
    z.backward()
    assert not x.grad.asnumpy().any()
    assert (y.grad.asnumpy() == 3).all()


@pytest.mark.parametrize("gradients, requests", [(2, "write"), (3, ["write"] * 3), (1, ["write", "add"])])
def test_mark_variables_warns_of_more_gradients_than_variables(gradients, requests):
    x, buffers = nd.array([1.0, 2.0]), [nd.zeros(2) for _ in range(gradients)]
    with pytest.warns(UserWarning, match="mark_variables: 1 variables, .* the first 1 of each are used"):
        autograd.mark_variables([x], buffers, requests)
    with autograd.record():
        y = x * 3
    y.backward()
    assert [each.asnumpy().tolist() for each in buffers] == [[3, 3]] + [[0, 0]] * (gradients - 1)


def test_marked_variables_get_gradients_by_request():
    x, y, g, h = nd.array(X), nd.array(X), nd.zeros((2, 3)), nd.ones((2, 3))
    autograd.mark_variables([x, y], [g, h], ["write", "add"])
    with autograd.record():
        z = x * 2 + y * 3
    z.backward()
    assert x.grad is g
    assert (g.asnumpy() == 2).all()
    assert (h.asnumpy() == 4).all()
    autograd.mark_variables(x, h)
    assert x.grad is h


def test_backward_marks_gradients_as_fresh():
    """Trainers of MXNet read ``_fresh_grad`` to see whether backward has reached a weight since the last step."""
    x, y = marked(), marked()
    with autograd.record():
        z = (x + 2).detach() + y
    assert not x._fresh_grad
    assert not y._fresh_grad
    z.backward()
    assert not x._fresh_grad
    assert y._fresh_grad
    y._fresh_grad = False
    assert not y._fresh_grad
    assert not nd.ones(1)._fresh_grad
    with pytest.raises(OpError, match="no gradient"):
        nd.ones(1)._fresh_grad = True


def test_head_gradients_scale_the_gradients():
    x = marked()
    with autograd.record():
        y, z = x * 3, x * x
    autograd.backward([y, z], [nd.ones((2, 3)) * 2, None])
    np.testing.assert_array_equal(x.grad.asnumpy(), 6 + 2 * X)
    with autograd.record():
        y = x * 3
    y.backward(nd.array(X))
    np.testing.assert_array_equal(x.grad.asnumpy(), 3 * X)
    with autograd.record():
        y = x * 3
    autograd.backward(y, nd.array(X))
    np.testing.assert_array_equal(x.grad.asnumpy(), 3 * X)


def test_a_retained_graph_runs_backward_again():
    x = marked(req="add")
    with autograd.record():
        y = x * x
    y.backward(retain_graph=True)
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), 4 * X)
    with pytest.raises(OpError, match=r"operator elemwise_mul, recorded at .*test_autograd\.py.*retain_graph=True"):
        y.backward()


def test_a_state_of_an_earlier_pass_is_a_constant():
    """A state from before the last backward pass, as in recurrent networks, is a constant, as in MXNet."""
    x, h = marked([3.0]), nd.array([1.0])
    for expected in (6, 54, 486):
        with autograd.record():
            h = h * x
            loss = h * h
        loss.backward()
        assert x.grad.asscalar() == expected
    with autograd.record():
        h += x  # allowed, since the tape no longer holds h
    h.backward()
    assert x.grad.asscalar() == 1
    with autograd.record():
        z = h * 5
    with pytest.raises(OpError, match="retain_graph=True"):
        z.backward()  # the record of ``h`` was released


@pytest.mark.parametrize("function", [lambda y, x: y * y, lambda y, x: y * y * x, lambda y, x: y + x])
def test_parts_recorded_before_attach_grad_have_no_gradient(function):
    x = marked([3.0])
    with autograd.record():
        y = x * x
        first, second = y * 2, function(y, x)
    first.backward()
    for call in (second.backward, lambda: autograd.grad(second, x, create_graph=True)):
        with pytest.raises(OpError, match=r"operator elemwise_mul, .* first backward pass released"):
            call()


# ------------------------------------------------------------------------------------------------- higher order

ORDERS = [
    (lambda x: x * x * x, [3 * X ** 2, 6 * X, 6 + Z]), (nd.sin, [np.cos(X), -np.sin(X), -np.cos(X)]),
    (nd.exp, [np.exp(X)] * 3), (lambda x: nd.tanh(x * 0), [Z, Z, Z]),
    (lambda x: x[0] * x[0], [2 * X * ROW0, 2 * ROW0, Z]),
    (lambda x: nd.dot(x, x.T).sum(), [2 * X.sum(0) + Z, Z + 4]),
    (lambda x: x.as_in_context(mx.cpu(1)) ** 3, [3 * X ** 2, 6 * X, 6 + Z]),
]


@pytest.mark.parametrize("function, expected", ORDERS)
def test_gradients_of_higher_orders_equal_the_expected_values(function, expected):
    x = marked()
    with autograd.record():
        y = function(x)
        found = []
        for _ in expected:
            (y,) = autograd.grad(y, x, create_graph=True)
            found.append(y.asnumpy())
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, np.asarray(other, np.float32), rtol=1e-5, atol=1e-6)


def test_backward_runs_through_a_gradient():
    x = marked()
    with autograd.record():
        y = x * x * x
        (g,) = autograd.grad(y, x, create_graph=True)
        z = g * g
    z.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 36 * X ** 3, rtol=1e-6)


def test_grad_returns_gradients_of_any_recorded_array():
    x = marked()
    with autograd.record():
        y = x * 2
        z = y * y
    first, second = autograd.grad(z, [x, y], retain_graph=True)
    np.testing.assert_array_equal(first.asnumpy(), 8 * X)
    np.testing.assert_array_equal(second.asnumpy(), 4 * X)
    assert not x.grad.asnumpy().any()
    assert isinstance(autograd.grad(z, x, nd.ones((2, 3)) * 3, retain_graph=True), list)
    unused = marked()
    assert not autograd.grad(z, [unused])[0].asnumpy().any()


def test_returned_gradients_are_copies():
    x, y, head = marked(), marked(), nd.ones((2, 3))
    with autograd.record():
        z = nd.add_n(x, y)
    first, second = autograd.grad(z, [x, y], head)
    first[:] = 7
    assert (second.asnumpy() == 1).all()
    assert (head.asnumpy() == 1).all()
    with autograd.record():
        z = nd.add_n(x, y)
    z.backward()
    x.grad[:] = 7
    assert (y.grad.asnumpy() == 1).all()


# ----------------------------------------------------------------------------------------------------- modes


def modes():
    return autograd.is_recording(), autograd.is_training()


SCOPES = [
    (autograd.record, (True, True)), (lambda: autograd.record(train_mode=False), (True, False)),
    (autograd.pause, (False, False)), (lambda: autograd.pause(train_mode=True), (False, True)),
    (autograd.train_mode, (False, True)), (autograd.predict_mode, (False, False)),
]


@pytest.mark.parametrize("scope, expected", SCOPES)
def test_scopes_set_recording_and_training(scope, expected):
    with scope():
        assert modes() == expected
        with autograd.record(), autograd.predict_mode():
            assert modes() == (True, False)
        assert modes() == expected
    assert modes() == (False, False)
    assert scope()(modes)() == expected
    with pytest.raises(KeyError), scope():
        raise KeyError
    assert modes() == (False, False)


def test_set_functions_return_the_mode_before():
    assert [autograd.set_recording(True), autograd.set_recording(False)] == [False, True]
    assert [autograd.set_training(True), autograd.set_training(False)] == [False, True]


def test_mode_is_a_threads_own():
    found = []
    with autograd.record():
        thread = threading.Thread(target=lambda: found.append(modes()))
        thread.start()
        thread.join()
    assert found == [(False, False)]


@pytest.mark.parametrize("train_mode, expected", [(True, True), (False, False)])
def test_the_argument_of_backward_decides_its_mode(train_mode, expected):
    """The argument of backward decides the mode, whatever forward's was; backward records nothing."""
    seen = []

    class Function(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, dx):
            seen.append(modes())
            return dx

    x = marked()
    with autograd.record(train_mode=not train_mode):
        y = Function()(x)
    y.backward(train_mode=train_mode)
    assert seen == [(False, expected)]


def test_batch_norm_has_gradients_of_both_modes():
    head = nd.array(np.arange(8).reshape(4, 2) ** 2)
    for train_mode, expected in ((True, [[-7, -25.5], [-23, -52.5], [-35, -75.5], [-43, -94.5]]),
                                 (False, head.asnumpy() / 2)):
        x = marked(np.arange(8).reshape(4, 2))
        with autograd.record(train_mode=False):
            y = nd.BatchNorm(x, nd.ones(2), nd.zeros(2), nd.zeros(2), nd.full(2, 4), fix_gamma=False, eps=0)
        y.backward(head, train_mode=train_mode)
        np.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-5)


def test_dropout_keeps_its_mask():
    x = marked(np.ones((2, 50)))
    with autograd.record():
        y = nd.Dropout(x, p=0.5)
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), y.asnumpy())
    assert 0 < (y.asnumpy() == 0).sum() < 100


# --------------------------------------------------------------------------------------------------- refused

VALUE, HALF = marked(), nd.array([1.0], dtype="float16")


def recorded():
    x = marked()
    with autograd.record():
        return x * 2


def change(function):
    x = marked()
    with autograd.record():
        function(x * 2)


def change_variable(function):
    with autograd.record():
        function(marked())


REFUSED = [
    (lambda: nd.array(X).backward(), OpError, "head 0: .*not in a recorded computation"),
    ((nd.array(X) * 2).backward, OpError, "not in a recorded computation"),
    (lambda: autograd.backward([]), ArgumentError, "at least one head"),
    (lambda: autograd.backward(5), ArgumentError, "heads: .*int"),
    (lambda: autograd.backward([5]), ArgumentError, "heads: .*int at 0"),
    (lambda: autograd.backward([recorded(), recorded()], [None]), ArgumentError, "expected 2 head gradients, got 1"),
    (lambda: recorded().backward([nd.ones((2, 3))]), ArgumentError, "head gradient 0: expected an NDArray, got list"),
    (lambda: recorded().backward(np.ones((2, 3))), ArgumentError, "head gradient 0: expected an NDArray, got ndarray"),
    (lambda: recorded().backward(nd.ones(3)), ShapeError, r"head gradient 0: .*\(2, 3\), got \(3,\)"),
    (lambda: recorded().backward(nd.ones((2, 3), dtype="float64")), DTypeError, "float32, got float64"),
    (lambda: autograd.grad(recorded(), []), ArgumentError, "at least one variable"),
    (lambda: autograd.grad(recorded(), nd.ones(2)), OpError, "variable 0: it is not recorded"),
    (lambda: marked(req="foo"), ArgumentError, "grad_req 'foo'.*write, add, null"),
    (lambda: autograd.mark_variables([VALUE], [nd.zeros(3)]), ShapeError, r"\(2, 3\), got \(3,\)"),
    (lambda: autograd.mark_variables([VALUE, VALUE], [HALF]), ArgumentError, "2 variables, 1 gradients"),
    (lambda: autograd.get_symbol(nd.ones(1)), OpError, "not in a recorded"),
    *[(lambda go=go, change=change: go(change), OpError, "recorded cannot be changed in place")
      for go in (change, change_variable) for change in (
          lambda x: x.__iadd__(1), lambda x: x.__setitem__(slice(None), 1), lambda x: x.__setitem__(0, 1),
          lambda x: nd.relu(x, out=x), lambda x: nd.ones((2, 3)).copyto(x))],
]


@of_each(REFUSED)
def test_errors_of_wrong_calls(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
    assert modes() == (False, False)


def test_unrecorded_arrays_may_be_changed():
    x = marked()
    with autograd.record():
        y = x * x
        with autograd.pause():
            z = nd.zeros(2)
            z += 1
            x += 0
        w = nd.zeros((2, 3))
        w[0] = 1
        w += 1
    y.backward()
    x += 1
    np.testing.assert_array_equal(x.grad.asnumpy(), 2 * X)


def test_an_operator_without_gradient_is_named():
    @mx.operator.define(name="without_gradient")
    def function(x):
        return x * 2

    x = marked()
    with autograd.record():
        y = function(x * 2)
    with pytest.raises(NotDifferentiableError, match="'without_gradient' has no gradient") as caught:
        y.backward()
    assert "recorded at" in caught.value.__notes__[0]
    assert "test_autograd.py" in caught.value.__notes__[0]


# --------------------------------------------------------------------------------------------------- Function


class Scaled(autograd.Function):
    """Twice the first input and three times the second, with gradients that are ten times too large."""

    def forward(self, x, y):
        assert modes()[0] is False
        self.save_for_backward(x)
        return x * 2, y * 3

    def backward(self, dx, dy):
        (x,) = self.saved_tensors
        assert x.shape == dx.shape
        assert modes()[0] is False
        return dx * 20, dy * 30


def test_an_autograd_function_has_its_own_gradient():
    x, y = marked(), marked([1.0, 2.0])
    with autograd.record():
        u, w = Scaled()(x * 1, y)
        z = u.sum() + w.sum()
    z.backward()
    assert (x.grad.asnumpy() == 20).all()
    assert (y.grad.asnumpy() == 30).all()
    with autograd.record():
        u, w = Scaled()(x, y)
    u.backward()
    assert not y.grad.asnumpy().any()
    assert Scaled()(x, y)[0]._entry is None


def test_an_autograd_function_may_take_scalars():
    class Times(autograd.Function):
        def forward(self, x, number):
            return x * number

        def backward(self, dx):
            return dx * 5

    x = marked()
    with autograd.record():
        y = Times()(x, 3)
    np.testing.assert_array_equal(y.asnumpy(), 3 * X)
    y.backward()
    assert (x.grad.asnumpy() == 5).all()


class Kept(autograd.Function):
    """The third power, by a given function, with given values kept for backward."""

    def __init__(self, keep, slope, compute=lambda x: x * x * x):
        self.keep, self.slope, self.compute = keep, slope, compute

    def forward(self, x):
        y = self.compute(x)
        self.keep(self, x, y)
        return y

    def backward(self, dy):
        return self.slope(self, dy)


def saves(function, x, y):
    function.save_for_backward(x, y)


def remembers(function, x, y):
    function.x = x


CUBES = {
    "saved input": lambda: Kept(saves, lambda f, dy: dy * f.saved_tensors[0] ** 2 * 3),
    "saved output": lambda: Kept(saves, lambda f, dy: dy * f.saved_tensors[1] / f.saved_tensors[0] * 3),
    "attribute": lambda: Kept(remembers, lambda f, dy: 3 * f.x * f.x * dy),
    "forward in NumPy": lambda: Kept(remembers, lambda f, dy: 3 * f.x * f.x * dy, lambda x: x.asnumpy() ** 3),
    "mask": lambda: Kept(lambda f, x, y: f.save_for_backward(x, x.asnumpy() > -50),
                         lambda f, dy: dy * f.saved_tensors[0] ** 2 * 3 * f.saved_tensors[1].astype("f")),
}


@pytest.mark.parametrize("make", CUBES.values(), ids=CUBES)
def test_an_autograd_function_has_higher_derivatives(make):
    x = marked([3.0, -2.0])
    values = x.asnumpy()
    with autograd.record():
        y = make()(x)
        (d,) = autograd.grad(y, x, create_graph=True)
        z = y + d * d
    z.backward(retain_graph=True)
    np.testing.assert_allclose(x.grad.asnumpy(), 3 * values ** 2 + 36 * values ** 3, rtol=1e-5)
    with autograd.record():
        found = [make()(x)]
        for _ in range(5):
            found += autograd.grad(found[-1], x, create_graph=True)
    for one, other in zip(found, [values ** 3, 3 * values ** 2, 6 * values, 6, 0, 0]):
        np.testing.assert_allclose(one.asnumpy(), np.broadcast_to(np.float32(other), 2), rtol=1e-4, atol=1e-4)
    with autograd.record():
        y = make()(make()(x))
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 9 * values ** 8, rtol=1e-5)


@pytest.mark.parametrize("function, words", [
    (Kept(lambda f, x, y: f.save_for_backward(x * x), lambda f, dy: dy * 3 * f.saved_tensors[0]),
     "saved tensor 0 is neither an input nor an output of forward"),
    (Kept(lambda f, x, y: setattr(f, "square", [x * x]), lambda f, dy: dy * 3 * f.square[0]),
     "self.square is neither an input nor"),
    (Kept(lambda f, x, y: setattr(f, "x", x.asnumpy()), lambda f, dy: 3 * f.x ** 2 * dy.asnumpy()),
     "self.x is neither"),
    (Kept(remembers, lambda f, dy: 3 * f.x.asnumpy() ** 2 * dy.asnumpy()),
     r"gradient 0 of backward is not computed by operators.*asnumpy\(\)"),
])
def test_functions_whose_gradient_is_not_differentiable(function, words):
    x = marked([3.0, -2.0])
    with autograd.record():
        y = function(x)
    y.backward(retain_graph=True)
    np.testing.assert_allclose(x.grad.asnumpy(), [27, 12])
    with autograd.record(), pytest.raises(NotDifferentiableError, match=f"^Function Kept: .*{words}") as caught:
        autograd.grad(y, x, create_graph=True)
    assert any("recorded at" in note for note in caught.value.__notes__)


LINEAR = {
    "number": lambda x: x * 2, "sum": lambda x: (x + x).sum(), "radians": nd.radians, "step": lambda x: x.floor() + x,
    "Function": lambda x: Broken(lambda dx: dx * 2)(x), "itself": lambda x: x,
}


@pytest.mark.parametrize("function", LINEAR.values(), ids=LINEAR)
def test_the_gradient_of_a_linear_function_is_constant(function):
    x = marked()
    x.grad[:] = 7
    with autograd.record():
        (first,) = autograd.grad(function(x), x, create_graph=True)
        second = first * x
    first.backward(retain_graph=True)
    assert not x.grad.asnumpy().any()
    assert not autograd.grad(first, x, retain_graph=True)[0].asnumpy().any()
    second.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), first.asnumpy())


class Broken(autograd.Function):
    def __init__(self, answer):
        self.answer = answer

    def forward(self, x):
        return x * 2

    def backward(self, dx):
        return self.answer(dx)


def failing(dx):
    raise KeyError("mine")


@pytest.mark.parametrize("answer, kind, words", [
    (lambda dx: (dx, dx), ArgumentError, "expected 1 gradients.*got 2"),
    (lambda dx: nd.ones(5), ShapeError, r"gradient 0 has shape \(5,\), expected \(2, 3\)"),
    (lambda dx: dx.sum(axis=0), ShapeError, r"gradient 0 has shape \(3,\), expected \(2, 3\)"),
    (lambda dx: 5, ArgumentError, "gradient 0 must be an NDArray, got int"),
    (lambda dx: dx.__imul__(2), OpError, "read-only"),
    (failing, KeyError, "mine"),
])
def test_mistakes_in_autograd_functions_are_named(answer, kind, words):
    x = marked()
    with autograd.record():
        y = Broken(answer)(x)
    with pytest.raises(kind, match=words) as caught:
        y.backward()
    assert any("Function Broken, recorded at" in note for note in caught.value.__notes__)
    assert slope(lambda x: x * 2, x)[0].tolist() == (Z + 2).tolist()


def test_gradients_of_a_function_are_summed_down():
    class Rows(autograd.Function):
        def forward(self, x):
            return nd.broadcast_to(x, shape=(4, 3))

        def backward(self, dx):
            return dx

    x = marked([[1, 2, 3]])
    with autograd.record():
        y = Rows()(x)
    y.backward()
    assert x.grad.asnumpy().tolist() == [[4, 4, 4]]


def test_a_function_is_made_before_it_is_called():
    class Square(autograd.Function):
        pass

    with pytest.raises(ArgumentError, match=r"^Square: make an instance of the autograd.Function first, then call "
                                            r"it: Square\(\)\(x\), got NDArray$"):
        Square(nd.ones(1))


def test_a_backward_that_forgets_to_return():
    class Twice(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            dy * 2

    x = marked([1, 2, 3])
    with autograd.record():
        y = Twice()(x)
    with pytest.warns(UserWarning, match=r"^Twice.backward returned None, so zeros are used\. .* return \(None,\)$"):
        y.backward()


def test_none_for_two_inputs_is_an_error_alone():
    class Product(autograd.Function):
        def forward(self, x, y):
            return x * y

        def backward(self, dy):
            dy * 2

    with autograd.record():
        y = Product()(marked(), marked())
    with warnings.catch_warnings(action="error"), pytest.raises(ArgumentError, match="expected 2 gradients"):
        y.backward()


def test_a_function_is_called_once():
    function = Broken(lambda dx: dx)
    function(nd.ones(1))
    with pytest.raises(ArgumentError, match="called only once"):
        function(nd.ones(1))
    with pytest.raises(NotImplementedError, match="no forward"):
        autograd.Function()(nd.ones(1))


# ------------------------------------------------------------------------------------------------- get_symbol


def test_get_symbol_gives_the_recorded_graph():
    x, y = marked(), marked([3, 1, 2])
    with autograd.record():
        z = nd.relu(x * y + 1) + x
    symbol = autograd.get_symbol(z)
    assert symbol.list_arguments() == ["var0", "var1"]
    np.testing.assert_array_equal(symbol.eval(var0=x, var1=y)[0].asnumpy(), z.asnumpy())
    with autograd.record():
        z = Broken(lambda dx: dx)(x)
    with pytest.raises(OpError, match="Function Broken"):
        autograd.get_symbol(z)


# ------------------------------------------------------------------------------------------------------ memory


class Watched(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x * 2

    def backward(self, dx):
        return dx * 2


@pytest.mark.parametrize("function", [
    lambda x: (x * x + x).sum(), lambda x: nd.relu(x)[0].reshape((3, 1)), lambda x: Watched()(x) * 1,
    lambda x: nd.concat(x, x, dim=0).as_in_context(mx.cpu(1)),
])
def test_nothing_forms_a_cycle(uncollected, function):
    """Everything is freed with its last reference, without the cycle collector."""
    for backward in (False, True):
        x = marked()
        with autograd.record():
            y = function(x)
        node = y._entry[0]
        held = [weakref.ref(x), weakref.ref(y), weakref.ref(x.grad), weakref.ref(node)]
        if backward:
            autograd.grad(y, x, create_graph=True)
            y.backward()
        del x, y, node
        assert [ref() for ref in held] == [None] * 4


def test_backward_releases_used_arrays():
    x = marked()
    with autograd.record():
        y = nd.exp(x)
        z = y * y
    node = z._entry[0]
    assert node.ins is not None
    z.backward()
    assert node.ins is node.outs is None


def test_long_chains_cause_no_recursion():
    """A chain as long as a loop causes no recursion in forward, in backward, or when it is freed."""
    x = marked([1.0])
    with autograd.record():
        y = x
        for _ in range(20000):
            y = y + 1
    y.backward()
    assert x.grad.asscalar() == 1
    del y


def test_contrib_autograd_records_as_in_mxnet():
    old = mx.contrib.autograd
    with old.train_section():
        assert autograd.is_recording() and autograd.is_training()
        with old.test_section():
            assert not autograd.is_recording() and not autograd.is_training()
    assert old.set_is_training(True) is False and autograd.is_recording() and autograd.is_training()
    assert old.set_is_training(False) is True and not autograd.is_recording() and not autograd.is_training()
    x, y = nd.array([1, 2]), nd.array([3, 4])
    gradients, loss = old.grad_and_loss(lambda x, y: x * y, argnum=1)(x, y)
    assert [each.asnumpy().tolist() for each in (*gradients, loss)] == [[1, 2], [3, 8]]
    assert [each.asnumpy().tolist() for each in old.grad(lambda x, y: [x * y, x])(x, y)] == [[4, 5], [1, 2]]
    with pytest.raises(ArgumentError, match="a list of NDArrays, got NDArray"):
        old.compute_gradient(loss)
    with pytest.raises(ArgumentError, match="expected NDArrays, got int"):
        old.grad(lambda x: x)(3)


# ------------------------------------------------------------------------------------------- contexts without with


@pytest.mark.parametrize("make, call", [
    (mx.autograd.record, "autograd.record()"), (mx.autograd.pause, "autograd.pause()"),
    (mx.autograd.train_mode, "autograd.train_mode()"), (mx.autograd.predict_mode, "autograd.predict_mode()"),
    (lambda: mx.autograd.record(check_numbers=True), "autograd.record()"), (no_grad, "no_grad()")])
def test_a_record_context_that_is_never_entered_causes_a_warning(make, call):
    with pytest.warns(UserWarning, match="was never entered") as said:
        make()
    line = make.__code__.co_firstlineno if make.__name__ == "<lambda>" else said[0].lineno
    assert [(str(each.message), each.filename, each.lineno) for each in said] == [
        (f"{call} is a context manager that was never entered: write with {call}:", __file__, line)]
    with make():
        pass
    make()(lambda: None)()
    kept = make()
    for _ in range(2):
        with kept:
            pass
    del kept
    gc.collect()


def test_errors_name_the_line_that_recorded_the_operator():
    def made_here():
        return mx.autograd.record()

    with pytest.warns(UserWarning, match="was never entered") as said:
        made_here()
    assert said[0].lineno == made_here.__code__.co_firstlineno + 1


# --------------------------------------------------------------------------------------- gradients of integers


def test_an_executor_warns_of_gradients_of_integers():
    x = mx.sym.var("x")
    executor = (mx.sym.cast(x, dtype="float32") * 0.6).bind(
        mx.cpu(), {"x": nd.array([1, 2], dtype="int32")}, {"x": nd.zeros((2,), dtype="int32")})
    executor.forward(is_train=True)
    with pytest.warns(UserWarning, match=r"a gradient of int32 is cut to int32: 0\.6 became 0"):
        executor.backward(nd.ones((2,)))


def test_integer_masks_cause_no_warning():
    """No warning is given for a gradient that is lost in a mask, nor in a later pass that returns integers."""
    x, values = mx.sym.var("x"), nd.array([1.0, 2.0])
    executor = (mx.sym.cast(mx.sym.cast(x > 1, dtype="int32"), dtype="float32") * 0.6 * x).bind(
        mx.cpu(), {"x": values}, {"x": nd.zeros((2,))})
    best = mx.jit(lambda t: t.argmax())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        executor.forward(is_train=True)
        executor.backward(nd.ones((2,)))
        assert int(best(mx.Tensor([1.0, 2.0]))) == 1
