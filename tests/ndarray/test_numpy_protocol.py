"""NumPy's functions on NDArrays and Tensors: recorded, compiled, or left to NumPy; a lost gradient causes a warning."""

from __future__ import annotations

import itertools
import warnings
from functools import partial

import numpy as np
import pytest

import opreg as mx
from opreg import nn
from opreg.errors import OpError
from tests.questions import of_each

nd, autograd = mx.nd, mx.autograd
X = np.float64([[0.6, -1.4, 2.2], [1.1, 3.3, -0.25]])
Y = np.float64([[2.0, 0.5, 1.5], [0.75, 1.25, 3.0]])

FUNCTIONS = {
    "ufunc": lambda x: x * 2 + np.exp(x), "of two": lambda x: np.maximum(x, 0) * x,
    "of a number": lambda x: np.minimum(1, x), "a NumPy array beside it": lambda x: np.hypot(x, Y),
    "a NumPy array on the left": lambda x: Y * x - Y / x,
    "an operator by name": lambda x: np.add(Y, x) * np.multiply(x, Y), "remainder": lambda x: np.mod(x, 2.0) * x,
    "power": lambda x: np.power(x, 2) + Y ** x, "reduce": lambda x: np.add.reduce(x * x),
    "matmul": lambda x: np.matmul(x, Y.T), "@": lambda x: x @ Y.T, "@ on the left": lambda x: Y.T @ x,
    "where": lambda x: np.where(x > 0, x * x, 0), "where not": lambda x: x * np.where(Y > 1, x, Y),
    "concatenate": lambda x: np.concatenate([x, Y, x * 2], axis=1), "stack": lambda x: np.stack([x, x * x]),
    "sum": lambda x: np.sum(x * x, axis=1), "sum of all": lambda x: np.sum(x * x) * x, "mean": lambda x: np.mean(x * x),
    "variance": lambda x: np.var(x, axis=0), "max": lambda x: np.max(x, axis=1),
    "clip": lambda x: np.clip(x, 0, 1.25) * x,
    "reshape": lambda x: np.reshape(x, (3, 2)) * Y.reshape(3, 2), "transpose": lambda x: np.transpose(x) * Y.T,
    "take": lambda x: np.take(x, [0, 2, 2], axis=1), "outer": lambda x: np.outer(x[0], x[1]),
    "dot": lambda x: np.dot(x, Y.T),
    "zeros": lambda x: x + np.zeros_like(x), "what has no gradient": lambda x: x * np.isfinite(x).astype("float64"),
    "comparison": lambda x: (x < Y).astype("float64") * x, "round": lambda x: np.round(x) * x,
    "sort": lambda x: np.sort(x, axis=1) * Y, "median": lambda x: np.median(x * x, axis=1),
    "parts": lambda x: np.array_split(x * x, 2, axis=1)[0], "differences": lambda x: np.diff(x * x, axis=1),
    "borders": lambda x: np.pad(x * x, 1, mode="reflect"), "side by side": lambda x: np.hstack([x, x * x]),
    "logaddexp": lambda x: np.logaddexp(x, Y), "chosen": lambda x: np.select([x > 1, x > 0], [x, x * x], 0),
    "weighted": lambda x: np.average(x, axis=1, weights=x * x), "diagonal": lambda x: np.diagonal(x) * x[:, :2],
    "products by axes": lambda x: np.tensordot(x, x * Y, ([1], [1])), "norm": lambda x: np.linalg.norm(x, axis=1),
    "products by letters": lambda x: np.einsum("ij,kj,k->i", x, x, Y[:, 0]),
    "inverse": lambda x: np.linalg.inv(x @ x.T + np.eye(2)) * np.linalg.det(x @ x.T),
    "broadcast": lambda x: np.broadcast_arrays(x[:1], x * x)[0] * Y,
    "grid": lambda x: np.meshgrid(x[0], x[1])[1] * X[0],
    "sparse grid": lambda x: np.meshgrid(x[0], Y[0], indexing="ij", sparse=True)[0] * Y[0],
    "flip": lambda x: np.flip(x, 1) * Y, "NumPy's number": lambda x: np.float64(2) * x + x / np.float64(3),
}


def slope(function):
    """Central differences of the sum of a function of NumPy arrays."""
    found = np.zeros_like(X)
    for place in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[place] = 1e-6
        found[place] = (np.sum(function(X + step)) - np.sum(function(X - step))) / 2e-6
    return found


def recorded(function, values=X):
    x = nd.array(values, dtype=values.dtype)
    x.attach_grad()
    with autograd.record():
        y = function(x)
    assert isinstance(y, nd.NDArray)
    assert y.shape
    y.backward()
    return y.asnumpy(), x.grad.asnumpy()


WAYS = {
    "NDArray": recorded,
    "Tensor": lambda function: [each.asnumpy() for each in mx.value_and_grad(function)(nn.Tensor(X))],
    "compiled": lambda function: [each.asnumpy() for each in mx.value_and_grad(mx.jit(function))(nn.Tensor(X))],
    "gradient compiled": lambda function: [each.asnumpy() for each in
                                           mx.jit(mx.value_and_grad(function))(nn.Tensor(X))],
}


@of_each(itertools.product(FUNCTIONS, WAYS), by=lambda case: case[1])
def test_numpy_functions_on_arrays_are_recorded(name, way):
    function = FUNCTIONS[name]
    value, gradient = WAYS[way](function if way == "NDArray" else lambda x: function(x).sum())
    np.testing.assert_allclose(value.ravel() if way == "NDArray" else value,
                               function(X).ravel() if way == "NDArray" else function(X).sum(), rtol=1e-12)
    np.testing.assert_allclose(gradient, slope(function), rtol=1e-7, atol=1e-8)


REFUSED = {
    "no operator": (lambda x: np.partition(x, 1) * x, r"np\.partition has no operator"),
    "another module": (lambda x: np.linalg.cond(x) * x, r"np\.linalg\.cond has no operator"),
    "a ufunc without": (lambda x: np.arctan2(x, x), r"np\.arctan2 of float64 has no operator"),
    "somebody's ufunc": (lambda x: np.frompyfunc(abs, 1, 1)(x), "the ufunc abs.* which is not NumPy's, .*no operator"),
    "keywords": (lambda x: np.sum(x, where=Y > 1) * x, "where"),
    "a NumPy array for the result": (lambda x: np.exp(x, out=Y.copy()), r"np\.exp changes a NumPy array in place"),
    "in place": (lambda x: np.add.at(Y.copy(), 0, x), r"np\.add changes a NumPy array in place"),
    "an array on the left in place": (lambda x: Y.copy().__iadd__(x), r"np\.add changes a NumPy array in place"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", REFUSED)
def test_functions_without_an_operator_are_refused(name, way):
    function, words = REFUSED[name]
    with pytest.raises(OpError, match=words) as caught:
        WAYS[way](function)
    assert isinstance(caught.value, TypeError)
    assert "test_numpy_protocol.py" in str(caught.value)
    assert "operator of nd" in str(caught.value) if way == "NDArray" else "function of ops" in str(caught.value)


@pytest.mark.parametrize("function", [np.split, np.array_split, np.vsplit, np.delete])
@pytest.mark.parametrize("places", [1.0, [1.0, 2.0]])
def test_recorded_places_of_cuts_are_refused(function, places):
    x, indices = mx.np.array(X), mx.np.array(places)
    for each in (x, indices):
        each.attach_grad()
    with autograd.record(), pytest.raises(OpError, match="an index reads elements"):
        function(x, indices)


@pytest.mark.parametrize("make", [lambda: nd.array(X, dtype="float64"), lambda: nn.Tensor(X)])
def test_unrecorded_arrays_use_numpys_functions(make):
    x = make()
    with autograd.record():  # the array is not recorded
        for found, expected in ((np.exp(x), np.exp(X)), (np.where(x > 0, x, 0), np.where(X > 0, X, 0)),
                                (np.concatenate([x, Y]), np.concatenate([X, Y])), (np.sort(x), np.sort(X)),
                                (np.isnan(x), np.isnan(X)), (np.linalg.norm(x), np.linalg.norm(X)),
                                (np.add.reduce(x), X.sum(0)), (np.modf(x)[1], np.modf(X)[1])):
            assert isinstance(found, (np.ndarray, np.generic))
            np.testing.assert_array_equal(found, expected)
        for found, expected in ((np.sum(x), X.sum()), (np.round(x), X.round()), (np.reshape(x, -1), X.ravel()),
                                (np.clip(x, 0, 1), X.clip(0, 1)), (Y + x, Y + X), (np.subtract(x, Y), X - Y)):
            assert isinstance(found, type(x))  # as a method or Python's operator gives it
            np.testing.assert_array_equal(np.squeeze(found.asnumpy()), expected)
    np.testing.assert_array_equal(np.repeat(x, [1, 2], axis=0), np.repeat(X, [1, 2], axis=0))
    np.testing.assert_array_equal(np.sum(x, where=X > 0), np.sum(X, where=X > 0))
    with pytest.raises(ValueError, match="cannot reshape"):
        np.reshape(x, 7)
    out = np.zeros((2, 3))
    assert np.exp(x, out=out) is out
    np.testing.assert_array_equal(out, np.exp(X))
    out += x
    np.testing.assert_array_equal(out, np.exp(X) + X)
    assert np.exp(Y, out=x) is x
    np.testing.assert_array_equal(x.asnumpy(), np.exp(Y))


def _on_elements(function, x):
    return function(x.asnumpy())


BEYOND = {"below": lambda x: np.clip(x, -120, 100), "above": lambda x: np.clip(x, 3, 300),
          "less": lambda x: np.less(x, 300), "more": lambda x: np.greater(x, -1),
          "equal": lambda x: np.equal(x, 256 + 3), "on the left": lambda x: np.less_equal(-1, x)}


@pytest.mark.parametrize("way", ["NDArray", "Tensor", "compiled", "body"])
def test_numbers_that_the_dtype_does_not_hold_are_compared_exactly(way):
    values = np.uint8([0, 3, 100, 127, 255])
    for name, function in list(BEYOND.items())[:2 if way == "NDArray" else None]:  # arrays of nd compare as MXNet does
        if way == "body":
            if name in ("below", "above") and np.lib.NumpyVersion(np.__version__) < "2.1.0":
                continue  # a body's first call is one of NumPy, whose clip refuses such limits
            body = mx.operator.define(partial(_on_elements, function), name="_example_beyond", traced=True)
            found = body(nd.array(values, dtype="uint8"))
        else:
            call = mx.jit(function) if way == "compiled" else function
            found = call(nd.array(values, dtype="uint8") if way == "NDArray" else nn.Tensor(values))
        np.testing.assert_array_equal(found.asnumpy(), function(values.astype("int64")), err_msg=name)
    if way != "NDArray":
        with pytest.raises(OverflowError, match="-120"):
            (mx.jit(lambda x: np.maximum(x, -120)))(nn.Tensor(values))


@pytest.mark.parametrize("make", [lambda x: nd.array(x, dtype=x.dtype), nn.Tensor, mx.np.array])
def test_functions_that_fill_an_array_write_to_its_elements(make):
    for name, fill in {
        "copyto": lambda x: np.copyto(x, Y), "copyto where": lambda x: np.copyto(x, 7, where=X > 0),
        "put": lambda x: np.put(x, [0, 4], [5, 6]), "putmask": lambda x: np.putmask(x, X > 0, Y),
        "place": lambda x: np.place(x, X > 0, [1, 2]), "fill_diagonal": lambda x: np.fill_diagonal(x, 9),
        "put_along_axis": lambda x: np.put_along_axis(x, np.int64([[1], [0]]), 8, axis=1),
        "out": lambda x: np.concatenate([X[:1], Y[:1]], out=x),
        "out by letters": lambda x: np.einsum("ij->ij", Y, out=x),
    }.items():
        x, expected = make(X), X.copy()
        fill(x)
        fill(expected)
        np.testing.assert_array_equal(x.asnumpy(), expected, err_msg=name)


@pytest.mark.parametrize("make", [lambda x: nd.array(x, dtype=x.dtype), nn.Tensor, mx.np.array])
def test_functions_that_make_arrays_alike_take_arrays_of_each_kind(make):
    x = make(X)
    for name, call in {
        "zeros": np.zeros_like, "ones": np.ones_like, "full": lambda x: np.full_like(x, 3),
        "another shape": lambda x: np.ones_like(x, dtype="int32", shape=(2, 2)),
        "empty": lambda x: np.empty_like(x) * 0, "resize": lambda x: np.resize(x, (0, 4)),
        "letters": lambda x: np.einsum("ij,kj->ik", x, x, optimize=True),
        "eig": lambda x: np.linalg.eigh(np.dot(x, X.T)).eigenvalues, "median": np.median,
        "parts": lambda x: np.modf(x)[0],
    }.items():
        found, expected = call(x), call(X)
        assert found.dtype == expected.dtype, name
        np.testing.assert_allclose(np.asarray(found), expected, err_msg=name)


def test_functions_that_return_no_arrays_need_no_gradient():
    x = nd.array(X)
    x.attach_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with autograd.record():
            y = x * 2
            assert np.array_equal(y, y)
            assert np.allclose(y, X * 2)
            assert np.isfinite(y).all()
            assert np.shape(y) == (2, 3)
            assert np.array2string(y, precision=1) == np.array2string(y.asnumpy(), precision=1)
            assert np.argmax(y).asscalar() == 4
            assert not np.any(np.isnan(y))
    np.testing.assert_allclose(y, X * 2)


@pytest.mark.parametrize("make", [nd.array, nn.Tensor])
def test_a_recorded_array_that_becomes_one_of_numpy_says_so(make):
    x = make(X)
    x.attach_grad()
    np.asarray(x * 2)
    with autograd.record():
        y = x * 2
        y.asnumpy()
        with pytest.warns(UserWarning, match="call asnumpy") as caught:
            np.asarray(y)
        assert caught[0].filename == __file__


def test_parameters_are_read_where_a_function_is_compiled():
    p = nn.Parameter(nn.Tensor(np.float32([1, 2])), name="p")
    function = mx.jit(lambda x: x * np.exp(p) + np.sum(p))
    x = nn.Tensor(np.float32([1, 1]))
    for values in ([1, 2], [0, 1]):
        p.set_data(nn.Tensor(np.float32(values)))
        np.testing.assert_allclose(function(x).asnumpy(), np.exp(values) + sum(values), rtol=1e-6)


def test_other_kinds_of_arrays_get_the_call():
    class Foreign:
        def __array_function__(self, function, kinds, args, keywords):
            return function.__name__

        def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
            return ufunc.__name__

    assert np.concatenate([nd.ones(1), Foreign()]) == "concatenate"
    assert np.exp2(Foreign()) == "exp2"
    assert np.maximum(nd.ones(1), Foreign()) == "maximum"
