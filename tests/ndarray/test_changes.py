"""Arrays that are written in place while operators are recorded: gradients are right, or an error is raised."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg import nn
from opreg.errors import OpError, ShapeError
from opreg.ndarray.context import Context
from tests.cuda import strict  # noqa: F401  registers a device
from tests.questions import of_each

nd, autograd = mx.nd, mx.autograd
X = np.float64([[0.5, -1.5, 2.0], [1.25, 3.0, -0.75]])


def zeros(*shape):
    return nd.zeros(shape, dtype="float64")


def filled(key, value, shape=(2, 3)):
    """Writes to a part of a new array, then squares it."""

    def function(x):
        h = zeros(*shape) + 0.5
        h[key] = value(x)
        return h * h

    return function


KEYS = {
    "number": filled(1, lambda x: x[0] * 2), "negative": filled(-1, lambda x: x[0]),
    "element": filled((0, 1), lambda x: x[1, 2]), "element of one axis": filled(2, lambda x: x[1, 2], (4,)),
    "slice": filled(slice(0, 1), lambda x: x[:1]), "all": filled(slice(None), lambda x: x * 3),
    "dots": filled(Ellipsis, lambda x: x * x), "column": filled((slice(None), 1), lambda x: x[:, 2]),
    "steps": filled((slice(None), slice(None, None, 2)), lambda x: x[:, :2]),
    "backwards": filled(slice(None, None, -1), lambda x: x * x), "new axis": filled(None, lambda x: x),
    "new axis inside": filled((0, None), lambda x: x[1]), "nothing": filled(slice(1, 1), lambda x: x[:0]),
    "NDArray": filled(nd.array([1, 0]), lambda x: x * 2), "NumPy array": filled(np.array([1]), lambda x: x[:1]),
    "list": filled([1, 0], lambda x: x * x), "range": filled(range(2), lambda x: x),
    "truth values count as integers": filled(np.array([True, False]), lambda x: x * 2),
    "repeated": filled([0, 1, 0], lambda x: nd.concat(x, x[:1] * 3, dim=0)),
    "pairs": filled(([0, 1], [2, 0]), lambda x: x[:, 1]),
    "NDArrays": filled((nd.array([0, 0]), nd.array([2, 2])), lambda x: x[:, 1]),
    "mixed": filled((slice(None), [2, 0]), lambda x: x[:, 1:]),
    "leading ones": filled(0, lambda x: x[:1].expand_dims(0)),
    "broadcast": filled(slice(None), lambda x: x[0]), "one for all": filled(Ellipsis, lambda x: x[0, 1] * x[0, 0]),
    "numpy integer": filled(np.int64(1), lambda x: x[0]), "wide": filled((1, slice(1, 3)), lambda x: x[0, 1]),
}


def rows(x):
    h = zeros(3, 3)
    for i in range(3):
        h[i] = x[0] * (i + 1)
    return h * h


def overwritten(x):
    h = zeros(2, 3)
    h[:] = x * 2
    h[0] = 7
    h[1, :2] = x[0, 1:] * x[1, 0]
    h[1, 0] = 1.5
    return h * h


def erased(x):
    h = zeros(2, 3)
    h[0] = x[0]
    h[:] = 2
    return h + x * 0


def recurrent(x):
    h = zeros(4, 3)
    h[0] = x[0]
    for i in range(1, 4):
        h[i] = nd.tanh(h[i - 1] * x[1])
    return h


def state(x):
    s = zeros(1, 3) + 1
    for _ in range(3):
        s[0] = s[0] * x[0] + x[1]
    return s


def summed(x):
    total = zeros(2, 3)
    for i in range(3):
        total += x * i
    total -= x
    return total * total


def multiplied(x):
    h = zeros(2, 3) + 3
    h *= x
    h *= x
    h /= 2
    h **= 2
    return h


def by_itself(x):
    h = zeros(2, 3)
    h += x
    h *= h
    h *= h[0]
    return h


def rows_summed(x):
    h = zeros(2, 3)
    for i in range(2):
        h[i] += x[i]
        h[i] *= x[1 - i]
    h[0, 1:] += x[1, 1]
    return h * h


def chained(x):
    h = zeros(2, 2, 3)
    for i in range(2):
        for j in range(2):
            h[i][j] = x[i] * (j + 1)
    h[1][0][1:2] = x[0, 0]
    return h * h


def through_views(x):
    h = zeros(2, 3)
    row, flat = h[1], h.reshape((6,))
    row[:] = x[0] * 2
    row += 1
    flat[1:3] = x[1, :2]
    flat.reshape((3, 2))[2] = x[0, 2]
    return h * h


def read_through_views(x):
    """Older views see writes to the whole array, and to each other, with gradients."""
    h = zeros(3, 3)
    rows, flat, middle = [h[i] for i in range(3)], h.reshape((9,)), h[1:]
    inner = middle[0][1:2]
    h[0] = x[0] * 2
    y = flat * 3 + rows[0][2]
    middle[:] = x
    z = rows[1] - rows[2] + inner
    rows[1][1] = x[0, 0]
    return nd.concat(y, z, inner * 2, flat[3:5] * inner, dim=0)


def live_parts(x):
    """Views of a recorded array see later writes to it."""
    h = zeros(2, 3)
    h[0] = x[0]
    row, flat, deep = h[0], h.reshape((6,)), h[0][1:]
    h[0] = x[1] * 2
    y = row + flat[:3]
    flat[1:3] = x[0, :2]
    row += 1
    return nd.concat(y, row, deep, h.reshape((6,)), dim=0)


def through_out(x):
    h = zeros(2, 3) + 2
    nd.elemwise_mul(h, x, out=h)
    nd.broadcast_mul(h, x, out=h)
    nd.tanh(h[1:], out=h[0:1])
    return h


def several_outs(x):
    left, right = zeros(2, 1), zeros(2, 2)
    nd.split(x[:, :2] * x[:, 1:], num_outputs=2, axis=1, out=[left, right[:, :1]])
    nd.split(x[:, :2] * x[:, 1:], num_outputs=2, axis=1, out=[left, left])
    right[:, :1] = left * x[:, 2:]
    return right + left


def copied(x):
    h = zeros(2, 3)
    (x * 2).copyto(h)
    h[0:1] = 1
    x[1:].copyto(h[:1])
    return h * h


def elsewhere(x):
    h = nd.zeros((2, 3), ctx=mx.cpu(1), dtype="float64")
    h[1] = x[0] * 3
    return h.as_in_context(mx.cpu(0)) * x


def read_and_gone(x):
    h = zeros(2, 3)
    h[0] = x[0]
    y = h[0] * x[1]
    h[1] = y
    h[0] = x[1]
    return h * h


def plain_array_multiplied(x):
    h = zeros(2, 3) + 0.7
    h *= x
    h /= x * x + 1
    return h


def list_of_rows_seen_through_a_view(x):
    h = zeros(3, 3) + 0.7
    row = h[1]
    h[[2, 1]] = x * x
    return row * h[2]


PROGRAMS = [plain_array_multiplied, list_of_rows_seen_through_a_view, rows, overwritten, erased, recurrent, state,
            summed, multiplied, by_itself, rows_summed, chained, through_views, read_through_views, live_parts,
            through_out, several_outs, copied, elsewhere, read_and_gone]
FUNCTIONS = KEYS | {function.__name__: function for function in PROGRAMS}


def marked():
    x = nd.array(X, dtype="float64")
    x.attach_grad()
    return x


def slope(function):
    """Central differences of the weighted sum of a function that is not recorded."""

    def value(host):
        y = function(nd.array(host, dtype="float64")).asnumpy()
        return (y * np.arange(1, y.size + 1).reshape(y.shape)).sum()

    found = np.zeros_like(X)
    for place in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[place] = 1e-6
        found[place] = (value(X + step) - value(X - step)) / 2e-6
    return found


@of_each(FUNCTIONS)
def test_writes_while_recording_have_gradients(name):
    function, x = FUNCTIONS[name], marked()
    with autograd.record():
        y = function(x)
    np.testing.assert_array_equal(y.asnumpy(), function(nd.array(X, dtype="float64")).asnumpy())
    y.backward(nd.arange(1, y.size + 1, dtype="float64").reshape(y.shape))
    np.testing.assert_allclose(x.grad.asnumpy(), slope(function), rtol=1e-7, atol=1e-7)


PLACES = [0, -1, slice(1, 3), slice(None), (0, 1), (slice(None), 0), (1, slice(0, 2)), [0, 2], [1, 1], Ellipsis, None,
          (slice(None), [0, 0]), slice(None, None, -1)]


def random_program(steps):
    """Random writes to a buffer and to views of it, and reads of both."""

    def function(x):
        h, views, total = zeros(3, 3) + 0.7, [], (x * 0).sum()
        for kind, key, number in steps:
            some, factor = x.reshape((-1,))[number % 6], 0.25 + number / 20
            chosen = views[number % len(views)] if views else h
            if kind == "write":
                h[key] = some * factor + h[key] * 0.5
            elif kind == "number":
                h[key] = factor
            elif kind == "add":
                h[key] += some
            elif kind == "multiply":
                h *= some
            elif kind == "out":
                nd.tanh(h * some, out=h)
            elif kind == "view":
                views.append(h.reshape((9,)) if number % 3 == 0 else h[number % 2:])
            elif kind == "part of a view":
                views.append(chosen[number % 2:number % 2 + 1])
            elif kind == "write to a view":
                chosen[:] = some * factor
            elif kind == "add to a view":
                chosen += some
            else:
                total = total + (chosen * factor).sum() * some
        return total + (h * h).sum()

    return function


@settings(deadline=None, max_examples=80, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(["write", "number", "add", "multiply", "out", "view", "part of a view",
                                           "write to a view", "add to a view", "read"]),
                          st.sampled_from(PLACES), st.integers(0, 20)), min_size=3, max_size=9))
def test_any_program_of_writes(steps):
    """Values are those without recording, and the gradient agrees with central differences, or is refused."""
    function, x = random_program(steps), marked()
    with autograd.record():
        y = function(x)
    np.testing.assert_allclose(y.asnumpy(), function(nd.array(X, dtype="float64")).asnumpy(), rtol=1e-12)
    try:
        y.backward(nd.arange(1, y.size + 1, dtype="float64").reshape(y.shape))
    except OpError as error:
        assert "changed in place" in str(error)  # noqa: PT017
    else:
        expected = slope(function)
        np.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-5, atol=1e-5 * (1 + abs(expected).max()))


def gradient(function):
    x = marked()
    with autograd.record():
        y = function(x)
    y.backward(nd.arange(1, y.size + 1, dtype="float64").reshape(y.shape))
    return y.asnumpy(), x.grad.asnumpy()


@of_each([name for name in FUNCTIONS if name not in ("elsewhere", "NDArray", "NDArrays")])
def test_writes_on_a_device_have_the_same_gradients(name):
    with Context("strict", 0):
        found = gradient(FUNCTIONS[name])
    for one, other in zip(found, gradient(FUNCTIONS[name])):
        np.testing.assert_array_equal(one, other)


def test_overwritten_values_on_a_device_are_detected():
    with Context("strict", 0), pytest.raises(OpError, match="changed in place"):
        gradient(written_then_read)


def test_written_values_are_cast():
    x, half, whole = marked(), nd.zeros((2, 3), dtype="float16"), nd.zeros((2, 3), dtype="int32")
    with autograd.record():
        half[0] = x[0] * 2
        whole[0] = x[0]
        y = half * half
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [8 * X[0], [0, 0, 0]])
    assert whole.asnumpy()[0].tolist() == [0, -1, 2]


def test_writes_have_second_derivatives():
    x = marked()
    with autograd.record():
        y = rows(x)
        (first,) = autograd.grad(y, x, create_graph=True)
        z = first * first
    z.backward()
    np.testing.assert_allclose(first.asnumpy(), [28 * X[0], [0, 0, 0]])
    np.testing.assert_allclose(x.grad.asnumpy(), [2 * 28 ** 2 * X[0], [0, 0, 0]])


def test_one_buffer_for_many_passes():
    """A buffer that a backward pass has released counts as overwritten."""
    h = zeros(2, 3)
    for _ in range(3):
        x = marked()
        with autograd.record():
            h[0] = x[0]
            h[1] += x[1]
            y = h * h
        y.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), 2 * h.asnumpy())
    h[:] = 0
    assert h._entry is None


def test_overwritten_memory_is_freed(uncollected):
    x = marked()
    with autograd.record():
        h = zeros(2, 3)
        row = h[1]
        h[0] = x[0]
        row += x[1]
    held = [weakref.ref(h), weakref.ref(h._entry[0]), weakref.ref(x)]
    del x, h, row
    assert [ref() for ref in held] == [None] * 3


def test_a_view_does_not_keep_its_tape_alive():
    x = marked()
    with autograd.record():
        y = x * 2
        part, flat = y[0], y.reshape((6,))
    held = weakref.ref(y)
    del y
    assert held() is None
    assert part.shape == (3,)
    assert flat.shape == (6,)


def test_owners_of_the_memory_see_the_write():
    x, host = marked(), np.zeros((2, 3))
    h = nd.from_numpy(host)
    with autograd.record():
        h[0] = x[0]
        h[0] *= 2
    np.testing.assert_array_equal(host[0], X[0] * 2)


# --------------------------------------------------------------------------------------------------- refused


def used(change, compute=lambda h, x: h * x):
    """Changes a constant that was an input of a recorded operator."""

    def function(x):
        h = zeros(2, 3) + 5
        y = compute(h, x)
        change(h, x)
        return y

    return function


LOST = {
    "number": used(lambda h, x: h.__setitem__(slice(None), 0)),
    "part": used(lambda h, x: h.__setitem__((1, 2), 0)),
    "recorded": used(lambda h, x: h.__setitem__(0, x[0])),
    "in place": used(lambda h, x: h.__iadd__(1)), "view": used(lambda h, x: h[0].__imul__(2)),
    "out": used(lambda h, x: nd.exp(h, out=h)), "copied": used(lambda h, x: nd.ones((2, 3), dtype="float64").copyto(h)),
    "reshaped": used(lambda h, x: h.reshape((6,)).__setitem__(5, 1)),
    "an operator of its own": used(lambda h, x: h.__setitem__(0, 1), lambda h, x: nd.dot(h, x.T)),
}


def written_then_read(x):
    h = zeros(2, 3)
    h[0] = x[0]
    y = h * h
    h[1] = x[1]
    return y


def own_result(x):
    y = nd.exp(x)
    with autograd.pause():
        y[0] = 1
    return y


NEEDED = (r"^operator \w+, recorded at .*test_changes\.py:\d+: its gradient needs numbers that were changed in place, "
          r"at .*test_changes\.py:\d+\. Change a copy")


@pytest.mark.parametrize("function", [*LOST.values(), written_then_read, own_result],
                         ids=[*LOST, "written then read", "own result"])
def test_overwriting_values_that_the_gradient_needs_is_an_error(function):
    x = marked()
    with autograd.record():
        y = function(x)
    for call in (y.backward, lambda: autograd.grad(y, x), lambda: autograd.grad(y, x, create_graph=True)):
        with pytest.raises(OpError, match=NEEDED):
            call()


def test_values_overwritten_after_recording_are_an_error():
    z = marked()
    with autograd.record():
        w = z * 2
        y = w * w
    w[:] = 5
    with pytest.raises(OpError, match=r"operator elemwise_mul, .*changed in place"):
        y.backward()


NEEDLESS = {
    "sum": used(lambda h, x: h.__setitem__(0, 9), lambda h, x: h + x),
    "subscript": used(lambda h, x: h.__setitem__(0, 9), lambda h, x: nd.elemwise_mul(x, x) + h[0]),
    "another row": used(lambda h, x: h.__setitem__(1, 9), lambda h, x: x * h[0]),
    "joined": used(lambda h, x: h.__setitem__(0, 9), lambda h, x: nd.concat(h, x, dim=0)),
    "a copy": used(lambda h, x: h.__setitem__(0, 9), lambda h, x: x * h.copy()),
    "elsewhere": used(lambda h, x: h.__setitem__(0, 9), lambda h, x: (x + h).as_in_context(mx.cpu(1))),
    "reduced": used(lambda h, x: h.__iadd__(1), lambda h, x: (x + h).sum(axis=1)),
}


@pytest.mark.parametrize("function", NEEDLESS.values(), ids=NEEDLESS)
def test_overwriting_values_that_no_gradient_needs(function):
    x = marked()
    with autograd.record():
        y = function(x)
    y.backward(retain_graph=True)
    first = x.grad.asnumpy()
    assert first.any()
    np.testing.assert_array_equal(autograd.grad(y, x, create_graph=True)[0].asnumpy(), first)


def test_weights_may_change_after_backward():
    x = marked()
    for _ in range(3):
        with autograd.record():
            y = x * x
        y.backward()
        before = x.asnumpy()
        x[:] = x - x.grad * 0.1
        x -= x.grad * 0.1
        np.testing.assert_allclose(x.asnumpy(), before - 0.2 * 2 * before)


REFUSED = {
    "leaf": (lambda x: x.__setitem__(0, 1), "recorded cannot be changed"),
    "result": (lambda x: (x * 2).__setitem__(0, x[1]), "recorded cannot be changed"),
    "part of a result": (lambda x: (x * 2)[0].__setitem__(0, 1), "recorded cannot be changed"),
    "part of a leaf": (lambda x: x[0].__iadd__(1), "recorded cannot be changed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_changes_of_recorded_arrays(name):
    change, words = REFUSED[name]
    with autograd.record(), pytest.raises(OpError, match=words):
        change(marked())


def test_a_change_is_refused_before_anything_is_written():
    x = marked()
    row = x[0]
    with autograd.record(), pytest.raises(OpError, match="recorded cannot be changed"):
        row[:] = x[1]
    np.testing.assert_array_equal(x.asnumpy(), X)
    h = zeros(2, 3)
    row = h[0]
    row.attach_grad()
    with autograd.record(), pytest.raises(OpError, match="recorded cannot be changed"):
        h[:] = x
    assert not h.asnumpy().any()
    with autograd.record(), pytest.raises(ShapeError, match=r"in-place add: .*\(2, 3\), the array \(3,\)"):
        zeros(3).__iadd__(x)


# --------------------------------------------------------------------------------------------------- Tensors


def changed_constant(x):
    h = nn.Tensor(np.float32([5, 6, 7]))
    y = x * h
    h[0] = 0
    return y.sum()


def repeated(x):
    h = nn.Tensor(np.zeros(3, np.float32))
    h[[0, 0]] = x[:2]
    h[2] = x[2:]
    return h.sum()


@pytest.mark.parametrize("way", [lambda function: function, mx.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("function, expected", [(changed_constant, [5, 6, 7]), (repeated, [0, 1, 1])])
def test_writes_to_tensors_have_gradients(function, expected, way):
    found = mx.grad(way(function))(nn.Tensor(np.float32([1, 2, 3])))
    assert found.asnumpy().tolist() == expected
