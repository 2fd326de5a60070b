"""NumPy in traced bodies: results have NumPy's shape, dtype and values."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.core.spec import Spec
from opreg.core.tracing import TraceError
from opreg.ndarray.traced import BodyTracer, TracedArray
from opreg.ndarray.traced_numpy import ARITHMETIC, FUNCTIONS, UNARY
from opreg.symbol.symbol import Symbol
from tests.questions import of_each

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4)).astype("float32")
Y = RNG.standard_normal((3, 4)).astype("float32")
Z = RNG.random(4).astype("float32")
I = RNG.integers(-3, 3, (3, 4)).astype("int32")
L = np.array([1, 0, -1])


def traced(function, *arrays):
    """Value, shape and dtype of a function of NumPy arrays that was traced and computed by a graph."""
    body = BodyTracer("body", {}, mx.cpu())
    slots = [body.variable(f"x{i}", Spec(each.shape, each.dtype)) for i, each in enumerate(arrays)]
    found = function(*map(body.value, slots))
    assert isinstance(found, TracedArray)
    given = {node.name: mx.nd.array(each, dtype=each.dtype) for (node, _), each in zip(slots, arrays)}
    given.update({node.name: array for node, array in body.arrays.items()})
    symbol = Symbol([found.entry])
    names = symbol.list_arguments()
    (value,) = symbol.bind(mx.cpu(), {name: given[name] for name in names}, grad_req="null").forward()
    return value.asnumpy(), found.shape, found.dtype


def agrees(function, *arrays):
    """Asserts that a run and a trace give the same."""
    with np.errstate(all="ignore"):
        expected = np.asarray(function(*[each.copy() for each in arrays]))
    value, shape, dtype = traced(function, *arrays)
    assert (shape, dtype) == (expected.shape, expected.dtype)
    assert (value.shape, value.dtype) == (expected.shape, expected.dtype)
    tolerance = {2: 2e-3, 4: 2e-6, 8: 1e-13}[max(2, expected.dtype.itemsize)] if expected.dtype.kind == "f" else 0
    np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)


def written(function):
    """A function that changes its copy of the first array in place, and returns it."""
    def body(x, *rest):
        x = x.copy()
        found = function(x, *rest)
        return x if found is None else found

    return body


def setting(key, value):
    def change(x, *rest):
        x[key] = value(*rest) if callable(value) else value

    return written(change)


def _rows(x):
    for i in range(len(x)):
        x[i] = x[i] * (i + 1)


def _through_views(x):
    row = x[1]
    part = row[1:]
    part += 10
    x *= 2
    return np.concatenate([row, part])


def _in_place(x, y):
    x += y
    x -= 1
    x *= y
    x /= 2
    x **= 2
    np.exp(x, out=x)


def _written_over_an_empty_one(x):
    empty = np.empty_like(x)
    empty[...] = 3
    return empty + x.astype(np.result_type(x, "float64"))


ROWS = {
    "arithmetic": (lambda x, y: x + y * 2 - 1 / (y * y + 1) + 3 - x, X, Y),
    "a number on the left": (lambda x: 2 - x + 2 ** x + 2 / (x * x + 1) + np.greater(1, x), X),
    "broadcasting": (lambda x, z: x * z + z, X, Z),
    "powers": (lambda x: x ** 2 + x ** 3 + (x * x + 1) ** 0.5 + (-x) ** 2, X),
    "NumPy's numbers": (lambda x: x * np.float32(2) + np.array(3, "float32"), X),
    "a wider number": (lambda x: x * np.float64(2), X),
    "an array held": (lambda x: x * Y + np.arange(4), X),
    "an array on the left": (lambda x: Y - x, X),
    "float16": (lambda x, y: np.exp(x) * y + 1.5, X.astype("float16"), Y.astype("float16")),
    "float64": (lambda x, y: np.exp(x) * y + 1.5, X.astype("float64"), Y.astype("float64")),
    "float32 and float64": (lambda x, y: x * y + x, X, Y.astype("float64")),
    "float16 and float32": (lambda x, y: np.maximum(x, y), X.astype("float16"), Y),
    "integers": (lambda i: i * 2 + i - 3, I),
    "integers divided": (lambda i: i / 2, I),
    "integers and floats": (lambda i, x: i * x, I, X),
    "integers and a fraction": (lambda i: i + 0.5, I),
    "exponentials of integers": (lambda i: np.exp(i), I),
    "comparisons": (lambda x, y: (x > y) & (x < 1) | ~(y >= 0), X, Y),
    "logic": (lambda x, y: np.logical_and(x > 0, np.logical_not(y > 0)) ^ (x == y), X, Y),
    "logic of numbers": (lambda i, x: np.logical_or(i, x), I, X),
    "truth in arithmetic": (lambda x: (x > 0) * x + (x < 0), X),
    "truth added up": (lambda x: (x > 0).sum(axis=1), X),
    "truth compared": (lambda x, y: (x > 0) == (y > 0), X, Y),
    "truth as numbers": (lambda x: (x != 0).astype("float32") + (x > 0).astype(int), X),
    "sign": (lambda x: np.sign(x) + np.sign(np.array([0, np.nan, -2, 3], "float32")), X),
    "where": (lambda x, y: np.where(x > y, x, y), X, Y),
    "where of a number": (lambda x: np.where(x > 0, x, 0.1), X),
    "where of two numbers": (lambda x: np.where(x > 0, 1, 0), X),
    "where of a held mask": (lambda x: np.where(Y > 0, x, -x), X),
    "extremes": (lambda x, y: np.maximum(x, 0) + np.minimum(0.5, y) + np.maximum(x, y), X, Y),
    "clip": (lambda x: np.clip(x, -0.5, 0.5) + x.clip(0) + np.clip(x, None, 1), X),
    "hypot": (lambda x, y: np.hypot(x, y), X, Y),
    "sum": (lambda x: x.sum() + np.sum(x, axis=0) + x.sum(axis=(0, 1), keepdims=True), X),
    "sum of integers": (lambda i: i.sum(axis=1), I),
    "sum of small unsigned ones": (lambda i: i.sum(axis=1, dtype="int64"), np.arange(6, dtype="uint8").reshape(2, 3)),
    "sum in another dtype": (lambda x: x.sum(axis=0, dtype="float64"), X),
    "mean": (lambda x: x.mean(axis=1, keepdims=True) + np.mean(x), X),
    "mean of integers": (lambda i: i.mean(), I),
    "product": (lambda x: np.prod(x, axis=-1), X),
    "largest and smallest": (lambda x: x.max(axis=1) - x.min(axis=1) + np.amax(x) + np.min(x) + np.max(x), X),
    "variance": (lambda x: np.var(x, axis=0) + np.std(x, axis=0, ddof=1), X),
    "places": (lambda x: x.argmax(axis=1) + np.argmin(x, axis=1) + np.argmax(x), X),
    "any and all": (lambda x: np.any(x > 0, axis=1) & (x > -9).all(axis=1) | np.all(x > 0, 1), X),
    "reduced by a ufunc": (lambda x: np.add.reduce(x) + np.maximum.reduce(x, axis=0), X),
    "sums so far": (lambda x: np.cumsum(x, axis=1) + x.cumsum(0), X),
    "softmax": (lambda x: np.exp(x - x.max(axis=1).reshape((-1, 1))) / np.exp(x).sum(1, keepdims=True), X),
    "shapes": (lambda x: x.reshape(2, 6).T.reshape((4, -1)).ravel()[None] + np.expand_dims(x.flatten(), 0), X),
    "axes": (lambda x: np.transpose(x[None], (2, 0, 1)).squeeze(1) + np.swapaxes(x, 0, 1) + np.moveaxis(x, 0, -1)
             + np.rollaxis(x, 1) + np.squeeze(np.atleast_2d(x)).T + np.atleast_1d(x).T, X),
    "broadcast to": (lambda z: np.broadcast_to(z, (3, 4)) * 2, Z),
    "broadcast together": (lambda x: np.broadcast_arrays(x[:1], x * x)[0] + np.broadcast_arrays(x, X[0])[1], X),
    "grids": (lambda x: np.meshgrid(x[0], x[1] * x[1])[1] + np.meshgrid(X[1], x[0], indexing="ij", sparse=True)[1], X),
    "joined": (lambda x, y: np.concatenate([x, y, X], axis=1), X, Y),
    "joined in depth": (lambda x, y: np.dstack([x, y])[..., 1] + np.dstack([x[0], y[0]])[0, :, 0], X, Y),
    "joined in a row": (lambda x, y: np.concatenate((x, y), axis=None), X, Y),
    "stacked": (lambda x, y: np.stack([x, y], axis=1), X, Y),
    "repeated": (lambda x: np.tile(x, (1, 2)) + np.repeat(x, 2, axis=1), X),
    "turned": (lambda x: np.flip(x, 0) + np.roll(x, 1, axis=1) + np.flip(x), X),
    "triangles": (lambda x: np.tril(x) + np.triu(x, 1), X),
    "rounded": (lambda x: np.round(x, 1) + np.rint(x * 2) + np.floor(x) + np.ceil(x) + x.round(), X),
    "matrices": (lambda x, y: x @ y.T + np.dot(x, y.T) + np.matmul(Y, X.T) + np.outer(x[:, 0], y[:, 1]), X, Y),
    "vectors": (lambda x, z: x @ z + x.dot(z), X, Z),
    "sorted": (lambda x: np.sort(x) + np.sort(x, axis=0) + np.sort(x, None).reshape(3, 4), X),
    "places in order": (lambda x: np.argsort(x, axis=1) + np.argsort(x, 0), X),
    "in the middle": (lambda x: np.median(x, axis=1) + np.median(x) + np.median(x[:, 1:], axis=1) + np.ptp(x, 1), X),
    "equal parts": (lambda x: sum(np.split(x, 2, axis=1)) + sum(np.hsplit(x, 2)), X),
    "parts of rows": (lambda x: sum(np.vsplit(x, 3)) + np.split(x, [1, 2])[1] + np.dsplit(x[None], 2)[1].sum(), X),
    "unequal parts": (lambda x: np.array_split(x, 3, 1)[0] * np.array_split(x, [1, 3], 1)[1], X),
    "differences": (lambda x: np.diff(x, n=2) + np.diff(x, axis=1)[:, 1:] + np.diff(x > 0)[:, 1:], X),
    "left out": (lambda x: np.delete(x, [1, -1], axis=1) + np.delete(x, slice(2), 1) + np.delete(x, 3)[:2], X),
    "borders": (lambda x: np.pad(x, 1, constant_values=2) + np.pad(x, ((1, 1), (2, 0)), "edge") + np.pad(
        x, 1, mode="reflect") + np.pad(x, 1, "symmetric") + np.pad(x, ((0, 2), (2, 0)), "wrap"), X),
    "side by side": (lambda x, z: np.hstack([x, x]).sum(1)[:, None] + np.vstack([x[:2], z]) + np.column_stack(
        [x[0], x[1], z]).T + np.append(x, x, axis=0)[3:] + np.append(x, z)[:4] + np.hstack([z, z])[4:], X, Z),
    "sums of exponentials": (lambda x, y: np.logaddexp(x, y) + np.logaddexp(x, 0), X, Y),
    "finite numbers": (lambda x: np.nan_to_num(x / (x > 0), nan=1, posinf=9) + np.nansum(np.sqrt(x), axis=0), X),
    "counts": (lambda x: np.count_nonzero(x > 0, axis=1) + np.count_nonzero(x), X),
    "weighted means": (lambda x, z: np.average(x, axis=1, weights=z) + np.average(x) + np.average(x, weights=x * x), X,
                       Z),
    "chosen": (lambda x: np.select([x > 1, x > 0], [x, x * 2], 0.5), X),
    "diagonals beyond the corners": (
        lambda x: x[0] * np.trace(x, 9) + np.diagonal(x, -7).size + np.diag(x, 4).sum(), X),
    "diagonals": (lambda x: np.diag(x) + np.diag(np.diag(x), 1)[:3, 1] + np.diagonal(x, 1) + np.trace(x), X),
    "products by axes": (lambda x, y: np.tensordot(x, y, ([1], [1])) + np.tensordot(x, y.T, 1) + np.inner(x, y)
                         + np.vdot(x, y), X, Y),
    "products by letters": (lambda x, y: np.einsum("ij,kj->ik", x, y) + np.einsum("ij,jk,kl", x, y.T, x[:, :3])
                            + np.einsum("ii", x[:, :3]) + np.einsum("ij->j", x)[:3] + np.einsum(
                                "bij,bjk->bik", x[None], y.T[None])[0] + np.einsum("i,j->ij", x[:, 0], y[:, 1]), X, Y),
    "products with an ellipsis": (lambda x, y: np.einsum("...j,...j->...", x, y) + np.dot(x, y[None].swapaxes(
        1, 2))[:, 0].sum(1), X, Y),
    "inverses": (lambda x: np.linalg.inv(x @ x.T + np.eye(3)) + np.linalg.det(x @ x.T) + np.linalg.cholesky(
        x @ x.T + np.eye(3)), X.astype("float64")),
    "norms": (lambda x: np.linalg.norm(x, axis=1) + np.linalg.norm(x) + np.linalg.norm(x, 1, axis=1) + np.linalg.norm(
        x, np.inf, 1) + np.linalg.norm(x, "fro"), X),
    "sums so far of a ufunc": (lambda x: np.add.accumulate(x) + np.add.accumulate(x, axis=1), X),
    "like it": (lambda x: np.zeros_like(x) + np.ones_like(x) * np.full_like(x, 2), X),
    "in a row": (lambda x: np.ravel(x) + np.reshape(x, -1), X),
    "parts": (lambda x: x[1] + x[0:1] + x[-1:, ::-1] + x[..., 1:2] + x[2, 3] + x[:, None, 0], X),
    "parts by an array": (lambda x: x[[0, 2]] + x[np.array([True, False, True])] + x[np.int64(1)], X),
    "pairs of indices": (lambda x: x[np.arange(3), [0, 1, 2]], X),
    "indices that are traced": (lambda x, i: x[i] * 2, X, L),
    "pairs of indices that are traced": (lambda x, i: x[np.arange(3), i] * 2, X, L),
    "taken": (lambda x, i: np.take(x, i, axis=0) + np.take(x, [0], axis=1), X, L),
    "copies": (lambda x: np.copy(x) + x.copy() + x.astype("float32"), X),
    "cast": (lambda x: (x * 3).astype("int64") + x.astype(np.int8), X),
    "asked": (lambda x: x * x.shape[0] + x.ndim + x.size + len(x) + np.shape(x)[1] + np.ndim(x) + np.size(x), X),
    "empty and then written": (_written_over_an_empty_one, X),
    "written whole": (setting(Ellipsis, lambda y: y * 2), X, Y),
    "written by a number": (setting(slice(None), 7), X),
    "written in part": (setting((1, slice(2)), 5), X),
    "written in rows": (setting(slice(0, 2), lambda y: y[1:]), X, Y),
    "written where": (written(lambda x: x.__setitem__(x < 0, 0)), X),
    "written at pairs": (setting(([0, 1], [1, 0]), 9), X),
    "written at traced pairs": (written(lambda x, i: x.__setitem__((np.arange(3), i), 9)), X, L),
    "changed at traced pairs": (written(lambda x, i: x.__setitem__((np.arange(3), i), x[np.arange(3), i] - 1)), X, L),
    "rows one by one": (written(_rows), X),
    "through views": (written(_through_views), X),
    "in place": (written(_in_place), X, Y),
    "filled": (written(lambda x: x.fill(3)), X),
    "an element added to": (written(lambda x: x.__setitem__((0, 1), x[0, 1] + 1)), X),
    "no numbers": (lambda x: x.sum(axis=0) + np.exp(x).sum(), np.zeros((0, 3), "float32")),
    "one number": (lambda x: np.exp(x) * 2 + x.reshape(1), np.float32(0.5).reshape(())),
}


@of_each(ROWS)
def test_run_and_traced_agree(name):
    agrees(*ROWS[name])


@of_each(itertools.product([*UNARY, "sign", "positive", "logical_not"], ["float16", "float32", "float64", "int32"]),
         by=lambda case: case[1])
def test_traced_ufuncs_of_one_array_equal_numpys(name, dtype):
    given = np.array([-2, -1, -0.5, 0, 0.3, 0.5, 1, 1.5, 2.5, 3, np.nan, np.inf, -np.inf])
    given = given.astype(dtype) if dtype != "int32" else np.array([-2, -1, 1, 2, 3], dtype)
    if name == "reciprocal" and dtype == "int32":
        pytest.skip("of integers nobody wants it")
    agrees(getattr(np, name), given)


@of_each(itertools.product([*ARITHMETIC, "logical_and", "logical_or", "logical_xor"],
                           ["float32", "float64", "int32", "bool"]), by=lambda case: case[1])
def test_traced_ufuncs_of_two_arrays_equal_numpys(name, dtype):
    left, right = [np.array(each) for each in ([-2, 0, 1.5, 3, np.nan, np.inf, 1], [2, 1, 0, 3, 1, 1, np.nan])]
    if dtype in ("int32", "bool"):
        left, right = [np.nan_to_num(each, posinf=9, nan=4) for each in (left, right)]
    if name == "power" and dtype == "int32":
        left = right = np.array([0, 1, 2, 3])
    function, left, right = getattr(np, name), left.astype(dtype), right.astype(dtype)
    try:
        with np.errstate(all="ignore"):
            function(left, right)
    except TypeError:
        pytest.skip("NumPy has none")
    agrees(function, left, right)


def test_the_same_value_read_twice_through_a_view_that_went_on():
    def body(x):
        x = x.copy()
        turned = x.T
        first = turned * 1
        x += 1
        return np.stack([first, turned])

    agrees(body, X)


REFUSED = {
    "a branch": (lambda x: x if x.sum() > 0 else -x, "a branch or a loop condition reads elements"),
    "float()": (lambda x: x * float(x[0, 0]), r"float\(\) reads elements"),
    "int()": (lambda x: x[int(x[0, 0])], r"int\(\) reads elements"),
    "an array in memory": (lambda x: np.asarray(x), "an array in memory reads elements"),
    "a list": (lambda x: x.tolist(), r"tolist\(\) reads elements"),
    "a format": (lambda x: f"{x[0, 0]:.2f}", "reads elements"),
    "a function without operator": (lambda x: np.linalg.svd(x), r"np\.linalg\.svd has no operator"),
    "another": (lambda x: np.convolve(x[0], x[1]), "np.convolve has no operator"),
    "a ufunc without operator": (lambda x: np.arctan2(x, x), "np.arctan2 of float32 has no operator"),
    "a keyword": (lambda x: np.sum(x, where=x > 0), "np.sum: got an unexpected keyword argument 'where'"),
    "a keyword of a ufunc": (lambda x: np.exp(x, where=x > 0), r"np.exp\(where=\) cannot be traced"),
    "a method of a ufunc": (lambda x: np.add.outer(x, x), r"np.add.outer\(\) cannot be traced"),
    "parts by truth": (lambda x: x[x > 0], "depends on elements"),
    "memory of another": (lambda x: np.exp(x, out=np.zeros((3, 4), "float32")), "out= is an array in memory"),
    "slices beside indices": (lambda x: x[:, np.argmax(x, 1)], "mixes slices with traced indices"),
    "a view that is no part": (lambda x: x.T.__setitem__(0, 1), "copy it first"),
    "another order": (lambda x: x.reshape(4, 3, order="F"), "order='F'"),
}


@of_each(REFUSED)
def test_bodies_that_cannot_be_traced(name):
    function, match = REFUSED[name]
    with pytest.raises(TraceError, match=match) as caught:
        traced(function, X)
    assert "test_traced_numpy.py" in str(caught.value)


def test_every_function_is_tested():
    text = Path(__file__).read_text()
    assert [name for name in FUNCTIONS if not re.search(rf"(np|x|i|z)\.{name}\(", text)] == []


# ------------------------------------------------------------------------------------------------ properties

UNARIES = [np.exp, np.tanh, np.negative, np.abs, np.square, np.floor, np.sign, lambda x: x.sum(axis=0, keepdims=True),
           lambda x: x * 2, lambda x: 1 - x, lambda x: x / 3, lambda x: np.maximum(x, 0), lambda x: x > 0.5,
           lambda x: x.astype("float32"), lambda x: x.T.copy().T, lambda x: x[::-1], lambda x: np.clip(x, -1, 1)]
BINARIES = [np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.hypot, np.greater, np.equal,
            lambda x, y: np.where(x > y, x, y * 2), lambda x, y: x / (1 + np.abs(y))]


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.data())
def test_random_bodies_in_numpy_equal_their_functions(data):
    """Random bodies are compositions of two functions of two arrays."""
    steps = data.draw(st.lists(st.tuples(st.integers(0, len(UNARIES) + len(BINARIES) - 1), st.integers(0, 99),
                                         st.integers(0, 99)), min_size=1, max_size=8))
    dtypes = data.draw(st.tuples(*[st.sampled_from(["float32", "float64", "int32"])] * 2))

    def body(*arrays):
        values = list(arrays)
        for number, i, j in steps:
            x, y = values[i % len(values)], values[j % len(values)]
            if x.dtype == bool:
                x = x * 1.0
            if y.dtype == bool:
                y = y * 1.0
            values.append(UNARIES[number](x) if number < len(UNARIES) else BINARIES[number - len(UNARIES)](x, y))
        return values[-1] * 1

    arrays = [RNG.uniform(-2, 2, (3, 4)).astype(dtype) for dtype in dtypes]
    with np.errstate(all="ignore"):
        expected = np.asarray(body(*arrays))
    value, shape, dtype = traced(body, *arrays)
    assert (shape, dtype) == (expected.shape, expected.dtype)
    if expected.dtype.kind == "f" and expected.size:
        expected = np.where(np.abs(expected) < 1e30, expected, np.nan)
        value = np.where(np.abs(value) < 1e30, value, np.nan)
    np.testing.assert_allclose(value, expected, rtol=2e-5, atol=1e-5 * (1 + math.sqrt(np.nanmax(np.abs(
        expected.astype("float64")), initial=0))))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("body", [
    lambda x: mx.nd.dot(x, np.eye(2) * 2), lambda x: mx.nd.broadcast_mul(x, np.array([[0.1, 0.2]])),
    lambda x: mx.nd.elemwise_add(x, np.ones((2, 2), "float32")), lambda x: mx.nd.where(np.eye(2), x, -x)])
def test_arrays_of_numpy_are_taken_in_the_same_dtype_everywhere(body, dtype):
    """Operators, bodies and graphs give the same dtype and values."""
    name = f"_example_beside_numpy_{len(body.__code__.co_consts)}_{body.__code__.co_names[2]}_{dtype}"
    op = mx.operator.define(body, name=name, traced=True)
    x = mx.nd.array([[1.0, 2.0], [3.0, 4.0]], dtype=dtype)
    bound = op(mx.sym.Variable("x")).bind(mx.cpu(), {"x": x}).forward()[0]
    results = [body(x), op(x), bound]
    assert [each.dtype for each in results] == [np.dtype(dtype).type] * 3
    for each in results[1:]:
        np.testing.assert_array_equal(each.asnumpy(), results[0].asnumpy())


@pytest.mark.parametrize("function, dtype, numbers, expected", [
    ("broadcast_mul", "float32", np.array([1, 2]), [3, 2]), ("elemwise_add", "float64", np.int32([1, 2]), [4, 3]),
    ("broadcast_mul", "float16", np.array([True, False]), [3, 0]), ("dot", "float32", np.uint8([1, 2]), [5]),
    ("broadcast_add", "int32", np.array([1, 2]), [4, 3]), ("elemwise_mul", "int8", np.array([True, False]), [3, 0]),
    ("broadcast_mul", "int32", np.array([0.5, 1.0]), None), ("elemwise_add", "uint8", np.array([1, 2]), None),
    ("take", "float32", np.array([(1 << 24) + 1]), [1]), ("pick", "float32", np.array([1]), [1])])
def test_integers_of_numpy_are_taken_in_the_same_dtype_everywhere(function, dtype, numbers, expected):
    """An operator gets NumPy's integers unchanged where it allows them, for example as large indices; elsewhere it gets
    them in the dtype of the array beside them."""
    def body(x):
        return getattr(mx.nd, function)(x, numbers, **({"mode": "wrap"} if function == "take" else {}))

    op = mx.operator.define(body, name=f"_example_integers_{function}_{dtype}_{numbers.dtype}", traced=True)
    x = mx.nd.array([[3, 1]] if function == "pick" else [3, 1], dtype=dtype)
    for way in (body, op, lambda x: op(mx.sym.Variable("x")).bind(mx.cpu(), {"x": x}).forward()[0]):
        if expected is None:
            with pytest.raises(mx.errors.DTypeError, match=dtype):
                way(x)
        else:
            found = way(x)
            assert (found.asnumpy().tolist(), found.dtype) == (expected, np.dtype(dtype).type)


MIXED = {"right": lambda x: np.exp(x) + mx.np.sin(x), "left": lambda x: mx.np.sin(x) + np.exp(x),
         "read": lambda x: x.asnumpy() * mx.np.sin(x), "function": lambda x: mx.np.multiply(x.asnumpy(), mx.np.sin(x)),
         "compared": lambda x: (x.asnumpy() > mx.np.sin(x)).astype("float32") * x}


@pytest.mark.parametrize("name", MIXED)
def test_a_body_may_mix_numpy_and_mx_np(name):
    op = mx.operator.define(MIXED[name], name=f"_example_mixed_{name}", traced=True)
    x = np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3)
    expected = np.asarray(MIXED[name](mx.np.array(x)).asnumpy())
    for found in (op(mx.nd.array(x)), op(mx.np.array(x)), op(mx.sym.var("x")).eval(x=mx.nd.array(x))[0],
                  mx.jit(op)(mx.Tensor(x))):
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)
