"""NDArray: creation, subscripts, arithmetic, methods, conversions, files. Expected values are answers of MXNet
1.9.1."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import opreg as mx
from opreg import nn
from opreg.core.attrs import Schema
from opreg.core.op import Op
from opreg.core.value import METHODS
from opreg.core.versions import write_count
from opreg.errors import ArgumentError, AttrError, DTypeError, FileFormatError, OpError, ShapeError, SubscriptError
from opreg.ndarray.arithmetic import SHORT
from tests.questions import of_each

nd = mx.nd


def a() -> nd.NDArray:
    return nd.array([[0, 1, 2], [3, 4, 5]])


def b() -> nd.NDArray:
    return nd.array(np.arange(24).reshape(2, 3, 4))


def v() -> nd.NDArray:
    return nd.array([3, 1, 2])


def i() -> nd.NDArray:
    return nd.array([0, 1], dtype="int32")


def same(found: nd.NDArray, expected, dtype: str = "float32") -> None:
    assert isinstance(found, nd.NDArray)
    assert np.dtype(found.dtype) == dtype
    assert found._data.flags.c_contiguous
    np.testing.assert_array_equal(found.asnumpy(), np.array(expected))
    assert found.shape == np.shape(expected)


# ------------------------------------------------------------------------------------------------- making

MADE = [
    (lambda: nd.array([1, 2, 3]), [1, 2, 3], "float32"),
    (lambda: nd.array((1, 2)), [1, 2], "float32"),
    (lambda: nd.array(range(3)), [0, 1, 2], "float32"),
    (lambda: nd.array(np.arange(4)), [0, 1, 2, 3], "float32"),
    (lambda: nd.array(np.float16([1.5])), [1.5], "float32"),
    (lambda: nd.array(np.array([True, False])), [1, 0], "float32"),
    (lambda: nd.array(np.arange(4), dtype="int32"), [0, 1, 2, 3], "int32"),
    (lambda: nd.array(i()), [0, 1], "int32"),
    (lambda: nd.array(i(), dtype="float64"), [0, 1], "float64"),
    (lambda: nd.array([300, -1], dtype="uint8"), [44, 255], "uint8"),
    (lambda: nd.array([1.7, -1.7], dtype="int32"), [1, -1], "int32"),
    (lambda: nd.array([1, 2], dtype=bool), [True, True], "bool"),
    (lambda: nd.array([1e300]), [np.inf], "float32"),
    (lambda: nd.array([v(), v() + 1]), [[3, 1, 2], [4, 2, 3]], "float32"),
    (lambda: nd.array(np.asfortranarray(np.arange(6).reshape(2, 3))), [[0, 1, 2], [3, 4, 5]], "float32"),
    (lambda: nd.array([]), [], "float32"),
    (lambda: nd.zeros(3), [0, 0, 0], "float32"),
    (lambda: nd.zeros((2, 1), dtype="float64"), [[0], [0]], "float64"),
    (lambda: nd.zeros(np.int64(2)), [0, 0], "float32"),
    (lambda: nd.zeros(np.array([1, 2])), [[0, 0]], "float32"), (lambda: nd.full(np.array([2]), 3), [3, 3], "float32"),
    (lambda: nd.empty(np.array([2, 0])), np.zeros((2, 0)), "float32"),
    (lambda: nd.ones((2,), dtype=np.int8), [1, 1], "int8"),
    (lambda: nd.full((2, 2), 3.5), [[3.5, 3.5], [3.5, 3.5]], "float32"),
    (lambda: nd.full(2, 3.5, dtype="int32"), [3, 3], "int32"),
    (lambda: nd.full((2,), nd.array([1, 2])), [1, 2], "float32"),
    (lambda: nd.arange(3), [0, 1, 2], "float32"),
    (lambda: nd.arange(5, 0, -2), [5, 3, 1], "float32"),
    (lambda: nd.arange(0, 3, repeat=2), [0, 0, 1, 1, 2, 2], "float32"),
    (lambda: nd.arange(0, 1, 0.3), np.float32([0, 0.3, 0.6, 0.90000004]), "float32"),
    (lambda: nd.arange(0, 3, 0.5, dtype="int32"), [0, 0, 0, 0, 0, 0], "int32"),
    (lambda: nd.linspace(0, 1, 5), [0, 0.25, 0.5, 0.75, 1], "float32"),
    (lambda: nd.linspace(0, 1, 4, endpoint=False), [0, 0.25, 0.5, 0.75], "float32"),
    (lambda: nd.eye(2), [[1, 0], [0, 1]], "float32"),
    (lambda: nd.eye(2, 3, 1, dtype="int32"), [[0, 1, 0], [0, 0, 1]], "int32"),
    (lambda: nd.zeros_like(a()), np.zeros((2, 3)), "float32"),
    (lambda: nd.ones_like(i()), [1, 1], "int32"),
    (lambda: nd.concatenate([v(), v()]), [3, 1, 2, 3, 1, 2], "float32"),
    (lambda: nd.concatenate([a(), a()], axis=1), [[0, 1, 2, 0, 1, 2], [3, 4, 5, 3, 4, 5]], "float32"),
    (lambda: nd.moveaxis(nd.zeros((2, 3, 4)), 0, -1), np.zeros((3, 4, 2)), "float32"),
    (lambda: nd.moveaxis(nd.zeros((2, 3, 4)), [0, 1], [1, 2]), np.zeros((4, 2, 3)), "float32"),
    (lambda: nd.onehot_encode(nd.array([1, 0]), nd.zeros((2, 3))), [[0, 1, 0], [1, 0, 0]], "float32"),
]


@of_each(MADE)
def test_arrays_are_made(make, expected, dtype):
    same(make(), expected, dtype)


def test_arrays_may_be_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = nd.array([1, 2.5], dtype="bfloat16")
    assert x.dtype is ml_dtypes.bfloat16
    assert (x * 2 + x).astype("float32").asnumpy().tolist() == [3, 7.5]


def test_new_arrays_go_to_the_current_context():
    with mx.cpu(1):
        made = [nd.zeros(2), nd.array([1]), nd.arange(3), nd.ones_like(nd.ones(1)), nd.full(1, 1), nd.eye(2)]
    assert [x.context for x in made] == [mx.cpu(1)] * len(made)
    assert nd.ones(2, ctx=mx.cpu(1)).context is mx.cpu(1)
    assert nd.arange(3, ctx=mx.cpu(2)).context is mx.cpu(2)


def test_source_is_copied():
    source = np.zeros(2, np.float32)
    x = nd.array(source)
    y = nd.array(x)
    source[:], x[:] = 1, 2
    assert x.asnumpy().tolist() == [2, 2]
    assert y.asnumpy().tolist() == [0, 0]


REFUSED = [
    (lambda: nd.array([1], dtype="int12"), DTypeError, "int12.*int16"),
    (lambda: nd.array([[1, 2], [3]]), ValueError, "inhomogeneous"),
    (lambda: nd.array("abc"), ValueError, "abc"),
    (lambda: nd.zeros((2, -1)), ArgumentError, "expected lengths of at least 0"),
    (lambda: nd.zeros(None), ArgumentError, "shape=None: expected an int or a tuple of ints"),
    (lambda: nd.zeros(2.0), ArgumentError, r"shape=2\.0: expected an int"),
    (lambda: nd.zeros(2, stype="csr"), ShapeError, "csr: expected the shape of a matrix"),
    (lambda: nd.zeros(2, dtype="foo"), DTypeError, "foo"),
    (lambda: nd.concatenate([]), ArgumentError, "at least one"),
    (lambda: nd.from_numpy([1]), ArgumentError, "list"),
    (lambda: nd.from_numpy(np.zeros((2, 3)).T), ArgumentError, "C-contiguous"),
    (lambda: nd.from_dlpack(3), ArgumentError, "__dlpack__, got int"),
    (lambda: a().astype("complex64"), DTypeError, "complex64"),
    (lambda: a().asscalar(), ShapeError, r"\(2, 3\)"),
    (lambda: float(a()), ShapeError, r"\(2, 3\)"),
    (lambda: bool(a()), ShapeError, "6 elements"),
    (lambda: len(nd.zeros(())), TypeError, "0-d"),
    (lambda: a().copyto(nd.zeros(3)), ShapeError, r"\(3,\)"),
    (lambda: a().copyto("cpu"), ArgumentError, "str"),
    (lambda: a().reshape((7,)), ValueError, r"\(2, 3\)"),
    (lambda: a().reshape((2, 3), foo=1), AttrError, "foo"),
    (lambda: a()[2], IndexError, "2"),
    (lambda: a()[0, 1, 2], IndexError, "too many"),
    (lambda: v()[nd.array([7])], IndexError, "7"),
    (lambda: a()["x"], IndexError, "integers"),
    (lambda: a() == None, TypeError, "NoneType"),  # noqa: E711
    (lambda: a() != "x", TypeError, "str"),
    (lambda: a() + None, TypeError, "NoneType"),
    (lambda: a() * 2j, TypeError, "complex"),
    (lambda: a() + [1, 2, 3], TypeError, "list"),
    (lambda: i() + nd.array([1, 2]), DTypeError, "int32 and float32"),
    (lambda: i() + np.array([0.5, 1]), DTypeError, "float64.*int32"),
    (lambda: a() + nd.ones((3, 2)), ShapeError, "broadcast"),
    (lambda: v().__iadd__(a()), ShapeError, r"\(2, 3\)"),
    (lambda: nd.nonexistent, AttributeError, "nonexistent"),
    (lambda: nd.Convolutoin, AttributeError, "Convolution"),
    (lambda: nd.save("x", 5), ArgumentError, "int"),
    (lambda: nd.save("x", [1]), ArgumentError, "0: expected an NDArray"),
]


@of_each(REFUSED)
def test_errors_of_wrong_calls(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


# ---------------------------------------------------------------------------------------------- subscripts

READ = [
    (a, 0, [0, 1, 2]), (a, -1, [3, 4, 5]), (a, (0, 1), [1]), (a, (0, -1), [2]), (a, True, [3, 4, 5]),
    (a, np.int64(1), [3, 4, 5]), (a, slice(1, 3), [[3, 4, 5]]), (a, slice(0, 0), np.zeros((0, 3))),
    (a, (slice(None), 1), [1, 4]), (a, (slice(None), slice(0, 2)), [[0, 1], [3, 4]]),
    (a, slice(None, None, -1), [[3, 4, 5], [0, 1, 2]]), (a, (1, slice(None, None, 2)), [3, 5]),
    (a, None, [[[0, 1, 2], [3, 4, 5]]]), (a, ..., [[0, 1, 2], [3, 4, 5]]), (a, (..., 0), [0, 3]),
    (a, (), [[0, 1, 2], [3, 4, 5]]), (v, 0, [3]), (v, slice(1, None), [1, 2]), (b, (0, 1, 2), [6]),
    (b, (0, ..., 1), [1, 5, 9]), (a, [1, 0, 1], [[3, 4, 5], [0, 1, 2], [3, 4, 5]]), (a, ([0, 1], [1, 2]), [1, 5]),
    (a, [True, False], [[3, 4, 5], [0, 1, 2]]), (a, range(2), [[0, 1, 2], [3, 4, 5]]), (a, [], np.zeros((0, 3))),
    (a, (slice(None), [0, 2]), [[0, 2], [3, 5]]), (b, (slice(None), [0, 1], 1), [[1, 5], [13, 17]]),
]


@of_each(READ)
def test_subscripts_select_elements(make, key, expected):
    same(make()[key], expected)


@pytest.mark.parametrize("key", [nd.array([1.7, 0.2]), nd.array([1, 0], dtype="int64"), np.array([True, False])])
def test_real_and_boolean_arrays_index_as_integers(key):
    same(a()[key], [[3, 4, 5], [0, 1, 2]])
    same(v()[v() > 1], [1, 3, 1])


@pytest.mark.parametrize("key", [((0, 1), (1, 2)), ((0, 1),), (slice(None), (0, 2)), (((0, 1), (1, 0)),), ((1, 0), 1),
                                 ((0, 1), slice(1, None)), ((), 1)])
def test_tuples_in_a_subscript_are_arrays_of_indices(key):
    expected = a().asnumpy()
    part = expected[key]
    x = a()
    same(x[key], part)
    with mx.autograd.record():
        same(x[key], part)
    x[key] = np.arange(part.size).reshape(part.shape) + 7
    expected[key] = np.arange(part.size).reshape(part.shape) + 7
    same(x, expected)


@pytest.mark.parametrize("key, read, rows", [
    (True, (1,), ...), ((True, 1), (1, 1), 1), ((1, True), (1, 1), 1), ((True, slice(0, 1)), slice(0, 1), slice(0, 1)),
    ((slice(0, 1), True), slice(0, 1), slice(0, 1)), ((True, [0, 1]), [0, 1], [0, 1]), ((False, None, 1), (None, 1), 1),
])
def test_booleans_in_subscripts_are_ignored_or_integers_as_in_mxnet(key, read, rows):
    """MXNet ignores booleans in reads and writes; if all other parts are integers, a read takes booleans as
    integers."""
    expected = a().asnumpy()
    same(a()[key], expected[read] if expected[read].shape else expected[read].reshape(1))
    x = a()
    x[key] = 9
    expected[rows] = 9
    same(x, expected)


@pytest.mark.parametrize("key", [1.5, "a", (nd.array([0, 1]), nd.array([0, 1, 2])), ([0, 1], [0, 1, 2]), {}, (0, 1.5)])
def test_invalid_subscripts_are_refused(key):
    """The error is a ValueError, as in MXNet, and an IndexError, as in NumPy."""
    def write():
        a()[key] = 1

    for call in (lambda: a()[key], write):
        with pytest.raises(SubscriptError) as caught:
            call()
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, IndexError)


VIEWS = [0, (0, 1), slice(1, 2), slice(None), ..., (), None, (0, slice(0, 2)), (slice(None), None)]
COPIES = [(slice(None), 1), (slice(None), slice(0, 2)), slice(None, None, -1), [0], [[0, 1]]]


@pytest.mark.parametrize("key", VIEWS)
def test_views_write_through(key):
    x, expected = a(), a().asnumpy()
    x[key][:] = 9
    expected[key] = 9
    same(x, expected)


@pytest.mark.parametrize("key", COPIES)
def test_copies_do_not_write_through(key):
    x = a()
    x[key][:] = 9
    same(x, a().asnumpy())


@of_each([
    (True, lambda x: x.reshape((3, 2))), (True, lambda x: x.reshape(-1)), (True, lambda x: x.detach()),
    (True, lambda x: x.as_in_context(mx.cpu())), (True, lambda x: x.astype("float32", copy=False)),
    (True, lambda x: x.expand_dims(0, inplace=True)), (True, lambda x: x.flatten(inplace=True)),
    (True, lambda x: x.squeeze(inplace=True)), (True, lambda x: x[0:1]),
    (False, lambda x: x.T), (False, lambda x: x.copy()), (False, lambda x: x.flatten()),
    (False, lambda x: x.expand_dims(0)), (False, lambda x: x.squeeze()), (False, lambda x: x.astype("float32")),
    (False, lambda x: nd.reshape(x, shape=(6,))), (False, lambda x: x.as_in_context(mx.cpu(1))),
    (False, nd.identity), (False, lambda x: x.broadcast_to((2, 3))), (False, lambda x: x.transpose()),
    (False, lambda x: x.swapaxes(0, 1)), (False, lambda x: nd.slice_axis(x, axis=0, begin=0, end=1)),
    (False, lambda x: nd.split(x, num_outputs=2, axis=0)[0]), (False, copy.copy), (False, copy.deepcopy),
])
def test_arrays_that_share_memory(shares, method):
    x = a()
    y = method(x)
    y[:] = 9
    assert (9 in x.asnumpy()) is shares


def test_a_transposed_array_has_views():
    """NDArrays are in C order, so reshape always returns a view."""
    x = a().T
    x.reshape(-1)[0] = 9
    same(x, [[9, 3], [1, 4], [2, 5]])


WRITTEN = [
    (a, slice(None), [1, 2, 3], [[1, 2, 3], [1, 2, 3]]), (a, slice(None), nd.array([[7], [8]]), [[7, 7, 7], [8, 8, 8]]),
    (a, slice(None), np.float64(2), np.full((2, 3), 2)), (a, slice(None), True, np.ones((2, 3))),
    (a, 0, [1, 2, 3], [[1, 2, 3], [3, 4, 5]]), (a, 0, [[1, 2, 3]], [[1, 2, 3], [3, 4, 5]]),
    (a, 0, nd.ones((1, 3)), [[1, 1, 1], [3, 4, 5]]), (a, (0, 1), 9, [[0, 9, 2], [3, 4, 5]]),
    (a, (0, 1), nd.array([9]), [[0, 9, 2], [3, 4, 5]]), (a, (slice(None), 1), 9, [[0, 9, 2], [3, 9, 5]]),
    (a, (slice(None), slice(None, None, 2)), 9, [[9, 1, 9], [9, 4, 9]]), (a, ..., 3, np.full((2, 3), 3)),
    (a, None, 3, np.full((2, 3), 3)), (a, (), 3, np.full((2, 3), 3)),
    (a, ([0, 1], [0, 1]), [6, 7], [[6, 1, 2], [3, 7, 5]]), (a, nd.array([1]), 0, [[0, 1, 2], [0, 0, 0]]),
    (a, (nd.array([0, 1]), nd.array([0, 1])), nd.array([6, 7]), [[6, 1, 2], [3, 7, 5]]),
    (a, slice(0, 1), nd.zeros((1, 3), ctx=mx.cpu(1)), [[0, 0, 0], [3, 4, 5]]),
    (v, 0, nd.array([7]), [7, 1, 2]), (v, slice(None), 1e300, [np.inf] * 3),
]


@of_each(WRITTEN)
def test_assignments_to_subscripts_change_elements(make, key, value, expected):
    x = make()
    x[key] = value
    same(x, expected)


def test_an_array_without_axes_is_assigned():
    x = nd.zeros(())
    x[:] = np.ones(())
    same(x, 1)
    x[...] = 2
    same(x, 2)
    with pytest.raises(IndexError, match="0-dimensional"):
        x[0:1] = 3


def test_assigned_values_are_cast():
    x, y = i(), nd.array([1, 2], dtype="uint8")
    x[:] = 1.7
    same(x, [1, 1], "int32")
    x[0] = nd.array([2.9])
    same(x, [2, 1], "int32")
    y[:] = 300
    same(y, [44, 44], "uint8")
    y[:] = [-1, 256]
    same(y, [255, 0], "uint8")
    y[1] = 300
    same(y, [255, 44], "uint8")
    y[[0]] = -2
    same(y, [254, 44], "uint8")


@pytest.mark.parametrize("value", [nd.array([7, 8]), (1, 2), nd.ones((3, 3))])
def test_assignment_of_another_shape_is_refused(value):
    x = a()
    with pytest.raises(ValueError, match="broadcast"):
        x[:] = value
    same(x, a().asnumpy())


KEYS = st.one_of(hnp.basic_indices((3, 4, 2), allow_newaxis=True), hnp.integer_array_indices((3, 4, 2)))


@settings(deadline=None, max_examples=150, derandomize=True)
@given(KEYS)
def test_subscripts_are_numpys(key):
    """Reads and writes select the same as NumPy; only a single element keeps a dimension."""
    expected = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    x = nd.array(expected)
    part = expected[key]
    np.testing.assert_array_equal(x[key].asnumpy(), part.reshape(part.shape or (1,)))
    x[key] = -1
    expected[key] = -1
    np.testing.assert_array_equal(x.asnumpy(), expected)


RESHAPES = [
    ((6, 4), {}, (6, 4)), ((-1,), {}, (24,)), ((0, -1), {}, (2, 12)), ((-2,), {}, (2, 3, 4)), ((-3, 0), {}, (6, 4)),
    ((0, -3), {}, (2, 12)), ((-4, 1, 2, -2), {}, (1, 2, 3, 4)), ((-4, -1, 2, 0, 0), {}, (1, 2, 3, 4)),
    ((0, 0, -4, 2, -1), {}, (2, 3, 2, 2)), ((-1, 0), {"reverse": True}, (6, 4)),
    ((0, -1, 0), {"reverse": True}, (2, 3, 4)),
]


@of_each(RESHAPES)
def test_reshape_takes_mxnets_codes(shape, keywords, expected):
    assert b().reshape(shape, **keywords).shape == expected
    assert b().reshape(*shape, **keywords).shape == expected
    assert b().reshape(list(shape), **keywords).shape == expected
    assert b().reshape(shape=shape, **keywords).shape == expected
    assert nd.reshape(b(), shape=shape, **keywords).shape == expected


# ---------------------------------------------------------------------------------------------- arithmetic

X = np.float32([[0, 1, 2], [3, 4, 5]])
ARITHMETIC = [
    (lambda: a() + 1, X + 1), (lambda: 1 + a(), X + 1), (lambda: 1 - a(), 1 - X), (lambda: a() - v(), X - [3, 1, 2]),
    (lambda: 2 / (a() + 1), np.float32(2) / (X + 1)), (lambda: a() / 2, X / 2), (lambda: 7 % (a() + 1), 7 % (X + 1)),
    (lambda: a() % 2, X % 2), (lambda: 2 ** a(), 2 ** X), (lambda: a() ** 2, X ** 2), (lambda: a() ** a(), X ** X),
    (lambda: -a(), -X), (lambda: abs(-a()), X), (lambda: a() * v(), X * [3, 1, 2]), (lambda: v() * a(), X * [3, 1, 2]),
    (lambda: a() + True, X + 1), (lambda: a() + np.float32(2), X + 2), (lambda: np.float64(2) * a(), X * 2),
    (lambda: np.int32(2) - a(), 2 - X), (lambda: a() > 2, X > 2), (lambda: a() > 2, X > 2), (lambda: a() == 2, X == 2),
    (lambda: a() != v(), X != [3, 1, 2]), (lambda: a() >= v(), X >= [3, 1, 2]), (lambda: a() <= 3, X <= 3),
    (lambda: (a() + 1) / 0, np.full((2, 3), np.inf)), (lambda: nd.array([-7.5, 7.5]) % -2, [-1.5, -0.5]),
    (lambda: nd.array([3e38]) * 10, [np.inf]), (lambda: nd.array([3e38]) + nd.array([3e38]), [np.inf]),
    (lambda: (a() + 1) * 1e300, np.full((2, 3), np.inf)), (lambda: a() @ a().T, X @ X.T),
    (lambda: a() + np.arange(3), X + np.arange(3)), (lambda: np.arange(3) - a(), np.arange(3) - X),
    (lambda: np.ones((2, 3)) > a(), X < 1), (lambda: a() + a().as_in_context(mx.cpu(1)), X + X),
    (lambda: nd.zeros(()) + 1, 1.0),
]


@of_each(ARITHMETIC)
def test_arithmetic_equals_numpys(call, expected):
    with np.errstate(all="ignore"):
        same(call(), np.asarray(expected, np.float32))


def array_of(values, dtype):
    return nd.array(values, dtype=dtype)


INTEGERS = [
    (lambda: array_of([-7, 7], "int32") / 2, [-3, 3], "int32"),
    (lambda: array_of([-7, 7], "int32") % 3, [2, 1], "int32"),
    (lambda: (i() + 3) / 2, [1, 2], "int32"), (lambda: i() * 2.5, [0, 2], "int32"),
    (lambda: i() + 1.5, [1, 2], "int32"),
    (lambda: array_of([250, 5], "uint8") + 10, [4, 15], "uint8"),
    (lambda: -array_of([250, 5], "uint8"), [6, 251], "uint8"),
    (lambda: array_of([250, 5], "uint8") - 10, [240, 251], "uint8"), (lambda: i() == 1, [0, 1], "int32"),
    (lambda: array_of([250, 5], "uint8") + 300, [38, 49], "uint8"), (lambda: i() > 0, [0, 1], "int32"),
    (lambda: i() * i(), [0, 1], "int32"), (lambda: 2 - i(), [2, 1], "int32"),
    (lambda: array_of([1, 0], bool) + 1, [2, 1], "int64"),
    (lambda: array_of([1.5], "float16") * 2, [3], "float16"),
    (lambda: array_of([6e4], "float16") * 2, [np.inf], "float16"),
]


@of_each(INTEGERS)
def test_arithmetic_keeps_the_dtype(call, expected, dtype):
    same(call(), expected, dtype)


SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod,
         "**": operator.pow, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
TEXT = "is text, not a number.*keywords of a CustomOpProp.*annotates"


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("make, kind", [
    (lambda: nd.array([2], dtype="int32"), "NDArray"), (v, "NDArray"), (lambda: mx.sym.var("x"), "Symbol"),
    (lambda: nn.Tensor([2]), "Tensor"), (lambda: nn.Tensor([0.5, 1.0]), "Tensor"),
])
def test_arithmetic_with_text_and_lists_is_refused(make, kind, sign):
    """An integer array with one element is an index, so Python would repeat the text or list."""
    compute, x = SIGNS[sign], make()
    named = f"^{kind} {re.escape(sign)} "
    with pytest.raises(TypeError, match=f"{named}str: '3' {TEXT}"):
        compute(x, "3")
    if sign != "%" and not sign.startswith(("<", ">")):
        with pytest.raises(TypeError, match=f"^str {re.escape(sign)} {kind}: '3' {TEXT}"):
            compute("3", x)
    if kind == "Tensor":  # takes lists for tensors
        return
    with pytest.raises(TypeError, match=f"{named}list: expected an array, a symbol or a number"):
        compute(x, [1, 2, 3])
    with pytest.raises(TypeError, match=f"{named}tuple: expected an array"):
        compute(x, (1,))


def test_in_place_arithmetic_keeps_the_array():
    x = a()
    y = x
    x += 1
    x -= v()
    x *= 2
    x /= 4
    x **= 2
    x %= 2
    assert y is x
    same(x, np.float32((((X + 1 - [3, 1, 2]) * 2 / 4) ** 2) % 2))
    z = i()
    z += 1.7
    same(z, [1, 2], "int32")
    w = b()
    w[0] += 1
    assert w[0, 0, 0].asscalar() == 1


def test_factors_of_0_and_minus_0_are_distinct():
    """0.0 and -0.0 are equal keys of a cache, but different factors."""
    one = nd.ones(1)
    assert [np.signbit((one * z).asscalar()) for z in (0.0, -0.0, 0, -0.0, 0.0)] == [False, True, False, True, False]


PAIRS = ["add", "subtract", "multiply", "divide", "true_divide", "modulo", "power", "maximum", "minimum", "hypot",
         "equal", "not_equal", "greater", "greater_equal", "lesser", "lesser_equal", "logical_and", "logical_or",
         "logical_xor"]
NUMPYS = {"modulo": np.mod, "lesser": np.less, "lesser_equal": np.less_equal}


@of_each(PAIRS)
def test_functions_take_arrays_and_scalars_on_either_side(name):
    function, reference = getattr(nd, name), NUMPYS.get(name) or getattr(np, name)
    x, y = np.float32([[1, 2, 3]]), np.float32([[3], [2]])
    for left, right in ((x, y), (x, 2), (2, x)):
        found = function(*(nd.array(each) if isinstance(each, np.ndarray) else each for each in (left, right)))
        assert found.dtype is np.float32
        np.testing.assert_allclose(found.asnumpy(), np.float32(reference(left, right)), rtol=1e-6)
    assert function(3, 2) == reference(3.0, 2.0)
    assert function.__name__ == name
    with pytest.raises(TypeError, match=r"str \S+ NDArray: 'x' is text"):
        function("x", nd.array(x))


@pytest.mark.parametrize("name", ["pow", "power", "maximum", "minimum", "hypot"])
def test_functions_of_symbols_equal_those_of_arrays(name):
    function, x = getattr(mx.sym, name), mx.sym.Variable("x")
    reference = {"pow": np.power}.get(name) or getattr(np, name)
    value = np.float32([1, 2, 3])
    for symbol, expected in ((function(x, 2), reference(value, 2)), (function(2, x), reference(2, value)),
                             (function(x, x), reference(value, value))):
        np.testing.assert_allclose(symbol.eval(x=nd.array(value))[0].asnumpy(), expected, rtol=1e-6)
    assert function(2, 3) == reference(2.0, 3.0)


# ------------------------------------------------------------------------------------- functions and methods

CALLS = [
    (lambda: b().sum(), [276]), (lambda: b().sum((0, 1)), [60, 66, 72, 78]), (lambda: b().mean(), [11.5]),
    (lambda: b().sum(axis=0, exclude=True), [66, 210]), (lambda: b().sum(1, True), b().asnumpy().sum(1, keepdims=True)),
    (lambda: nd.sum(data=a(), axis=1), [3, 12]), (lambda: a().max(axis=0), [3, 4, 5]),
    (lambda: a().argmax(axis=1), [2, 2]), (lambda: a().argsort(axis=1, is_ascend=False), [[2, 1, 0], [2, 1, 0]]),
    (lambda: a().topk(k=2), [[2, 1], [2, 1]]), (lambda: a().clip(1, 4), [[1, 1, 2], [3, 4, 4]]),
    (lambda: v().one_hot(4), [[0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]]), (lambda: a().pick(nd.array([0, 1])), [0, 4]),
    (lambda: a().take(nd.array([1, 5])), [[3, 4, 5], [3, 4, 5]]),
    (lambda: a().repeat(2, axis=1)[0], [0, 0, 1, 1, 2, 2]),
    (lambda: a().tile((2, 1))[2], [0, 1, 2]), (lambda: a().flip(1), [[2, 1, 0], [5, 4, 3]]),
    (lambda: a().diag(), [0, 4]),
    (lambda: a().split(2, axis=0)[1], [[3, 4, 5]]), (lambda: a().split_v2(2)[1], [[3, 4, 5]]),
    (lambda: a().split_v2((1,), axis=1)[1], [[1, 2], [4, 5]]), (lambda: nd.split_v2(a(), (1, 2), 1)[1], [[1], [4]]),
    (lambda: nd.histogram(a(), 3, (0, 6))[1], [0, 2, 4, 6]),
    (lambda: nd.histogram(a(), nd.array([0, 3, 6]))[1], [0, 3, 6]),
    (lambda: nd.histogram(a(), 5)[1], [0, 1, 2, 3, 4, 5]), (lambda: nd.histogram(a() * 0, 2)[1], [-0.5, 0, 0.5]),
    (lambda: a().slice((0, 0), (1, 2)), [[0, 1]]),
    (lambda: a().slice(begin=(None, 1), end=(None, 3)), [[1, 2], [4, 5]]), (lambda: a().slice_axis(1, 0, 2)[1], [3, 4]),
    (lambda: a().slice_like(nd.zeros((1, 2))), [[0, 1]]), (lambda: a().broadcast_like(nd.zeros((2, 3)))[0], [0, 1, 2]),
    (lambda: nd.FullyConnected(a(), nd.ones((1, 3)), None, 1, True), [[3], [12]]),
    (lambda: nd.FullyConnected(data=a(), weight=nd.ones((1, 3)), bias=nd.ones(1), num_hidden="1"), [[4], [13]]),
    (lambda: nd.broadcast_add(a(), rhs=v()), X + [3, 1, 2]), (lambda: nd.concat(v(), v(), dim=0), [3, 1, 2, 3, 1, 2]),
    (lambda: nd.concat(*[v(), v()], num_args=2, dim=0), [3, 1, 2, 3, 1, 2]),
    (lambda: nd.add_n(v(), v(), v()), [9, 3, 6]),
    (lambda: nd.relu(data=-a(), name="x"), np.zeros((2, 3))), (lambda: nd.relu(np.array([-1.0, 2])), [0, 2]),
    (lambda: nd.op.relu(a()), X), (lambda: nd._internal._plus_scalar(a(), scalar=1), X + 1),
    (lambda: nd.sparse.dot(a(), a().T), X @ X.T), (lambda: nd.contrib.quadratic(a(), a=1), X ** 2),
    (lambda: nd.transpose(a(), (1, 0)), X.T), (lambda: nd.dot(a(), a(), False, True), X @ X.T),
]


@of_each(CALLS)
def test_functions_take_arguments_in_every_form(call, expected):
    same(call(), np.asarray(expected, np.float32))


CALLED_WRONGLY = [
    (nd.relu, ArgumentError, "relu: expected inputs data; missing data"),
    (lambda: nd.relu(2), ArgumentError, "relu: input data must be an array or symbol, got int"),
    (lambda: nd.relu(data=[1]), ArgumentError, "input data must be an array or symbol, got list"),
    (lambda: nd.relu(a(), a()), ArgumentError, "at most 1 inputs"),
    (lambda: nd.relu(a(), data=a()), ArgumentError, "data is given twice"),
    (lambda: nd.softmax(a(), foo=1), AttrError, "foo"),
    (lambda: nd.sum(x=a()), ArgumentError, "no input 'x'. Valid: data"),
    (lambda: a().sum(ax=1), AttrError, "Did you mean 'axis'"),
    (lambda: a().sum(axis=5), AttrError, "axis=5"),
    (lambda: nd.broadcast_add(a(), 2), ArgumentError, "input rhs must be an array or symbol, got int"),
    (lambda: nd.broadcast_add(a()), ArgumentError, "missing rhs"),
    (lambda: nd.clip(a(), 1), AttrError, "a_max"),
    (lambda: nd.concat(a(), 5), ArgumentError, "input 1 must be an array"),
    (lambda: nd.FullyConnected(a(), nd.ones((4, 2)), nd.zeros(4), num_hidden=4), ShapeError, r"weight: .*\(4, 3\)"),
    (lambda: nd.FullyConnected(a(), nd.ones((4, 3)), nd.ones(4), num_hidden=4, no_bias=True), ArgumentError,
     "there is no input bias"),
    (lambda: nd.relu(a(), out=nd.zeros(3)), ShapeError, r"out= has shape \(3,\)"),
    (lambda: nd.relu(a(), out=nd.zeros((2, 3), dtype="int32")), DTypeError, "out= has dtype int32"),
    (lambda: nd.relu(a(), out=5), ArgumentError, "out= must be an NDArray"),
    (lambda: nd.split(a(), num_outputs=2, axis=0, out=[a()]), ArgumentError, "out= has 1 arrays, expected 2"),
    (lambda: nd.split_v2(a(), 2, axis=1), ShapeError, "2 equal parts"),
]


@of_each(CALLED_WRONGLY)
def test_wrong_calls_raise_errors(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_errors_name_the_called_function():
    with pytest.raises(AttrError) as caught:
        nd.sum(a(), axis=5)
    assert caught.value.__notes__ == ["operator sum applied to data (2, 3) float32"]


def test_an_array_as_an_attribute_is_its_number():
    bound = nd.array([2.0])
    for expected in (2, 3):  # it is not remembered
        bound[:] = expected
        assert nd.clip(nd.array([1, 9]), 0, bound).asnumpy().tolist() == [1, expected]
    with pytest.raises(AttrError, match=r"clip: attribute a_max: expected float, got an array of shape \(2,\)"):
        nd.clip(nd.ones(2), 0, nd.ones(2))


@pytest.mark.parametrize("call", [lambda: a() + nd.ones(2), nd.relu, lambda: nd.clip(np.ones(1), 1),
                                  lambda: mx.operator.CustomOp().assign(a(), "write", nd.ones(2))])
def test_errors_have_no_internal_context(call):
    """The message has no "during handling of the above" about the look-up of the call."""
    with pytest.raises(OpError) as caught:
        call()
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_cached_calls_read_the_arrays_of_each_call():
    """The cache holds the shapes, dtypes and attributes of calls, never their arrays."""
    x, y = nd.array([1.0]), nd.array([2.0])
    for left, right in ((x, x), (x, y), (y, x)):
        assert nd.broadcast_sub(left, right).asscalar() == (left - right).asscalar()
        assert nd.broadcast_sub(rhs=left, lhs=right).asscalar() == (right - left).asscalar()
        assert nd.concat(left, right, dim=0).asnumpy().tolist() == [left.asscalar(), right.asscalar()]
        assert nd.concat([left, right], dim=0).asnumpy().tolist() == [left.asscalar(), right.asscalar()]
    assert nd.sum(a(), axis=[0, 1]).asscalar() == 15
    assert nd.sum(a(), axis=[0]).shape == (3,)


def test_results_are_written_to_out():
    o = nd.zeros((2, 3))
    assert nd.relu(a(), out=o) is o
    same(o, X)
    x = a()
    nd.sgd_update(x, nd.ones((2, 3)), lr=1.0, out=x)
    same(x, X - 1)
    g = nd.ones((2, 3))
    same(nd.sgd_update(nd.ones((2, 3)) * 4, g, lr=1.0, wd=0.5, out=g), np.ones((2, 3)))  # g is read after the weight
    nd.relu(x, out=x)
    same(x, np.maximum(X - 1, 0))
    parts = [nd.zeros((1, 3)), nd.zeros((1, 3))]
    nd.split(a(), num_outputs=2, axis=0, out=parts)
    same(parts[1], [[3, 4, 5]])
    x = a()
    nd.dot(x, nd.ones((3, 3)), out=x)
    same(x, X @ np.ones((3, 3)))
    wide = nd.zeros((3, 3))
    nd.relu(wide[0:2] + a(), out=wide[1:3])
    same(wide, [[0, 0, 0], [0, 1, 2], [3, 4, 5]])
    same(nd.zeros(2, out=nd.ones(2)), [0, 0])


def loose(kernel, types="*T->*T") -> Op:
    """An operator of one input that is not registered."""
    op = Op("loose", Schema([]), ("data",), types=types)
    op.kernel()(kernel)
    return op


RETURNED = [
    (lambda xp, data: xp.asfortranarray(data), X, "float32"), (lambda xp, data: data, X, "float32"),
    (lambda xp, data: data[::-1], X[::-1], "float32"),
    (lambda xp, data: (data * 2).astype("float64"), X * 2, "float32"),
    (lambda xp, data: [data + 1], X + 1, "float32"), (lambda xp, data: data > 2, X > 2, "float32"),
]


@pytest.mark.parametrize("kernel, expected, dtype", RETURNED)
def test_results_of_kernels_become_arrays_of_their_own(kernel, expected, dtype):
    op = loose(kernel)
    for _ in range(2):  # first runs are checked, later ones are not
        x = a()
        y = op(x)
        same(y, np.float32(expected), dtype)
        y[:] = 9
        same(x, X)


def test_a_kernel_that_returns_a_scalar_gives_an_array():
    op = loose(lambda xp, data: data.sum(), "*T->float64")
    op.infer(lambda data: (1,))
    for _ in range(2):
        same(op(a()), [15], "float64")


@pytest.mark.parametrize("kernel, words", [
    (lambda xp, data: data[0], r"operator loose, kernel reference, output 0: expected shape \(2, 3\), got \(3,\)"),
    (lambda xp, data: (), "expected 1 outputs, got 0"),
])
def test_kernels_that_return_wrong_results_are_refused(kernel, words):
    with pytest.raises(OpError, match=words):
        loose(kernel)(a())


def test_every_method_is_an_operator():
    for name in METHODS:
        for cls in (nd.NDArray, mx.sym.Symbol):
            assert callable(cls._surface(name)), name
            assert getattr(cls, name).__doc__


def test_functions_have_signatures():
    parameters = inspect.signature(nd.FullyConnected).parameters
    assert list(parameters)[:4] == ["data", "weight", "bias", "num_hidden"]
    assert parameters["no_bias"].default is False
    assert nd.FullyConnected.__name__ == "FullyConnected"
    assert nd.FullyConnected.__doc__
    assert {"relu", "zeros", "Custom"} <= set(dir(nd))
    assert "gemm2" in dir(nd.linalg)
    assert repr(nd.linalg) == "<operators nd.linalg>"


# ------------------------------------------------------------------------------------- conversions to Python


def test_arrays_have_their_properties():
    x = a()
    assert (x.shape, x.size, x.ndim, len(x), x.dtype) == ((2, 3), 6, 2, 2, np.float32)
    assert (x.context, x.ctx, x.stype, x.writable, x.grad) == (mx.cpu(), mx.cpu(), "default", True, None)
    assert [y.asnumpy().tolist() for y in v()] == [[3], [1], [2]]
    assert hash(x) == hash(x)
    assert bool(nd.array([1]))
    assert not nd.array([0])
    assert not nd.array([])
    assert x.tostype("default") is x
    assert x.as_nd_ndarray() is x
    x.wait_to_read()
    nd.waitall()


REPRS = [
    (a, "\n[[0. 1. 2.]\n [3. 4. 5.]]\n<NDArray 2x3 @cpu(0)>"), (i, "\n[0 1]\n<NDArray 2 @cpu(0)>"),
    (lambda: nd.array([1.0], mx.cpu(1)), "\n[1.]\n<NDArray 1 @cpu(1)>"),
    (lambda: nd.array([True, False], dtype=bool), "\n[ True False]\n<NDArray 2 @cpu(0)>"),
]


@pytest.mark.parametrize("make, text", REPRS)
def test_the_repr_shows_values_shape_and_context(make, text):
    assert repr(make()) == str(make()) == text


def test_arrays_of_one_element_become_scalars():
    x = nd.array([2.5])
    assert (float(x), int(x), x.asscalar(), x.item()) == (2.5, 2, np.float32(2.5), 2.5)
    assert type(x.asscalar()) is np.float32
    assert type(x.item()) is float
    assert (round(x), round(x + 0.25, 1), f"{x:.3f}", f"{i()[1]:03d}") == (2, 2.8, "2.500", "001")
    assert f"{a()}" == str(a())
    for refused in (lambda: f"{a():.3f}", lambda: round(a())):
        with pytest.raises((TypeError, ShapeError), match=r"NDArray.__format__|\(2, 3\)"):
            refused()
    assert [10, 11, 12][nd.array([1], dtype="int32")] == 11
    with pytest.raises(TypeError, match="integer array"):
        [10, 11][nd.array([1.0])]
    assert a().tolist() == X.tolist()


#: Integers that some dtypes hold, and floats that equal some of them.
SCALARS = [0, 1, -1, 3, 127, 128, -129, 2**31, 2**53 + 1, 2**63, 10**30, 1.0, 0.0, -0.0, 1.5, True]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "bool", "float16", "float32"])
def test_the_fast_path_of_scalars_equals_the_operator(dtype):
    data = np.array([0, 1, 2, 100, 7]).astype(dtype)
    makers = {nd.NDArray: lambda: nd.array(data, dtype=dtype), mx.np.ndarray: lambda: mx.np.array(data, dtype=dtype),
              mx.Tensor: lambda: mx.Tensor(data)}

    def answer(method, array, scalar):
        try:
            result = method(array, scalar)
        except Exception as error:
            return type(error), str(error)
        return type(result), result.dtype, result.asnumpy().tobytes()

    for cls, name, slow in SHORT:
        for scalar in [*SCALARS, *SCALARS]:  # the second time, scalars are at hand
            array = makers[cls]()
            assert answer(getattr(cls, name), array, scalar) == answer(slow, array, scalar), (cls, name, scalar)


def test_arrays_become_numpy_copies():
    x = a()
    host = x.asnumpy()
    assert host.flags.writeable
    host[:] = 9
    np.asarray(x)[:] = 9
    np.array(x)[:] = 9
    same(x, X)
    assert np.array(x, dtype="int8").dtype == np.int8
    assert np.shares_memory(np.array(x, copy=False), x._data)
    np.testing.assert_array_equal(np.add(np.ones((2, 3)), x), X + 1)
    np.testing.assert_allclose(np.sin(x), np.sin(X))


def test_from_numpy_shares_memory():
    host = np.arange(3, dtype="f")
    x, y = nd.from_numpy(host), nd.from_numpy(host, zero_copy=False)
    x[:] = 7
    assert host.tolist() == [7, 7, 7]
    assert y.asnumpy().tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        host[0] = 0
    again = nd.from_numpy(host)
    again[0] = 9
    again += 1
    assert x.asnumpy().tolist() == again.asnumpy().tolist() == host.tolist() == [10, 8, 8]
    assert not host.flags.writeable


@pytest.mark.parametrize("call", [lambda x: nd.relu(x, foo=1), lambda x: x.relu(foo="b", bar=2),
                                  lambda x: nd.elemwise_add(lhs=x, rhs=x * 0, foo=(1, 2))])
def test_operators_without_attributes_take_any_keyword(call):
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"has no attributes: foo(, bar are| is) ignored"):
            y = call(nd.array([1.0, 2.0]))
        assert y.asnumpy().tolist() == [1, 2]


@pytest.mark.parametrize("call", [lambda x, **tags: nd.relu(x, **tags), lambda x, **tags: nd.ones(2, **tags),
                                  lambda x, **tags: nd.ElementWiseSum(x, **tags), lambda x, **tags: nd.eye(2, **tags),
                                  lambda x, **tags: nd.zeros(2, **tags), lambda x, **tags: nd.FullyConnected(
                                      x, x, num_hidden=1, no_bias=True, **tags)])
def test_operators_on_arrays_ignore_tags_of_nodes(call):
    x = nd.array([[1.0]])
    for _ in range(2):
        np.testing.assert_array_equal(call(x, __layout__="NC", name="a").asnumpy(), call(x).asnumpy())


def read_only(array):
    array.flags.writeable = False
    return array


def mapped(tmp_path):
    np.arange(4.0).tofile(tmp_path / "numbers")
    return np.memmap(tmp_path / "numbers", float, "r")


@pytest.mark.parametrize("make", [lambda: read_only(np.arange(4.0)), lambda: read_only(np.arange(8.0)[2:6]),
                                  lambda: read_only(np.arange(8.0))[2:6].reshape(2, 2),
                                  lambda: read_only(np.frombuffer(bytearray(32)))])
def test_an_array_from_a_read_only_numpy_array_may_be_written(make):
    host = make()
    x = nd.from_numpy(host)
    x[:] = 7
    x *= 2
    nd.ones(x.shape, dtype="float64", out=x[:])
    assert (host == 1).all() and not host.flags.writeable
    owner = host if host.base is None or not isinstance(host.base, np.ndarray) else host.base
    assert owner.flags.writeable == (host.size == 4 and owner.size == 8 and host.ndim == 1)


@pytest.mark.parametrize("make", [lambda _: np.frombuffer(b"12345678" * 4), mapped], ids=["bytes", "file"])
def test_memory_that_may_not_be_written(make, tmp_path):
    x = nd.from_numpy(make(tmp_path))
    assert (x + x).shape == (4,) and not x.writable
    for change in (lambda: x.__setitem__(0, 1), lambda: x.__iadd__(1), lambda: nd.exp(x, out=x),
                   lambda: x[1:].__setitem__(0, 1), lambda: x.reshape((2, 2)).__imul__(2)):
        with pytest.raises(OpError, match="its owner does not let be written: copy it first"):
            change()
    y = x.copy()
    y[0] = 1
    assert y[0].asscalar() == 1


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("reshape", [
    lambda x: x.reshape(()), lambda x: x.reshape(shape=()),
    mx.operator.define(lambda x: x.reshape(()), name="_example_without_axes", traced=True),
], ids=["method", "keyword", "traced"])
def test_an_array_of_one_element_is_reshaped_to_no_axes(reshape, recorded):
    x = nd.array([[3]])
    x.attach_grad()
    with mx.autograd.record(recorded):
        y = reshape(x)
        z = y * 2
    assert y.shape == ()
    assert z.asscalar() == 6
    if recorded:
        z.backward()
        assert x.grad.asnumpy().tolist() == [[2]]
    with pytest.raises(OpError):
        reshape(nd.ones((2,)))


def lent():
    """An array over the memory of ``bytes``, which nobody may write."""
    return nd.from_numpy(np.frombuffer(np.ones(3, np.float32).tobytes(), np.float32))


def batch_norm_with_lent_states(train):
    with mx.autograd.record(train):
        return nd.BatchNorm(nd.ones((2, 3)), nd.ones((3,)), nd.ones((3,)), lent(), lent())


def bound_batch_norm(train):
    net = mx.sym.BatchNorm(mx.sym.Variable("x"), mx.sym.Variable("gamma"), mx.sym.Variable("beta"), name="norm")
    values = {name: nd.ones((2, 3) if name == "x" else (3,)) for name in ("x", "gamma", "beta")}
    return net.bind(mx.cpu(), values, aux_states=[lent(), lent()]).forward(is_train=train)


def updated_by_executor():
    executor = (mx.sym.Variable("w") * 2).bind(mx.cpu(), {"w": lent()}, {"w": nd.zeros((3,))})
    executor.set_optimizer(mx.optimizer.SGD())
    executor.forward(is_train=True)
    executor.backward(nd.ones((3,)))
    executor.update()


@pytest.mark.parametrize("change, named", [
    (lambda: batch_norm_with_lent_states(True), "operator BatchNorm"),
    (lambda: bound_batch_norm(True), "operator BatchNorm, node 'norm'"),
    (updated_by_executor, "SGD, weight 'w'"),
    (lambda: (mx.sym.Variable("x") * 2).bind(mx.cpu(), {"x": nd.ones((3,))}, {"x": lent()}), "args_grad: x"),
    (lambda: (mx.sym.Variable("x") * 2).bind(mx.cpu(), {"x": lent()}).forward(x=nd.ones((3,))), "forward: x"),
    (lambda: mx.autograd.mark_variables([nd.ones((3,))], [lent()]), "gradient buffer"),
    (lambda: mx.optimizer.get_updater(mx.optimizer.SGD())(0, nd.ones((3,)), lent()), "SGD, weight 0"),
], ids=["states", "states in a graph", "update in a graph", "gradient in a graph", "input of a graph", "gradient",
        "update"])
def test_engine_refuses_memory_that_may_not_be_written(change, named):
    with pytest.raises(OpError, match="its owner does not let be written: copy it first") as caught:
        change()
    assert named in "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


def test_memory_that_may_not_be_written_is_read_by_inference():
    for run in (batch_norm_with_lent_states, lambda train: bound_batch_norm(train)[0]):
        assert run(False).shape == (2, 3)


def test_dlpack_shares_memory():
    x = a()
    host = np.from_dlpack(x)
    x[0, 0] = 7
    assert host[0, 0] == 7
    y = nd.from_dlpack(x)
    y[:] = 8
    assert x[0, 0].asscalar() == 8
    z = nd.from_dlpack(nd.to_dlpack_for_write(x))
    z[:] = 9
    same(x, np.full((2, 3), 9))
    same(nd.from_dlpack(x.to_dlpack_for_read()), np.full((2, 3), 9))
    host = np.arange(4, dtype="int32")
    same(nd.from_dlpack(host), [0, 1, 2, 3], "int32")
    same(nd.from_dlpack(np.arange(6.0).reshape(2, 3).T), np.arange(6.0).reshape(2, 3).T, "float64")
    with pytest.raises(DTypeError, match="complex64"):
        nd.from_dlpack(np.zeros(2, np.complex64))


@pytest.mark.parametrize("make", [a, i, lambda: nd.zeros((2, 0)), lambda: a().as_in_context(mx.cpu(1))])
def test_pickled_and_copied_arrays_are_equal(make):
    x = make()
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        same(y, x.asnumpy(), np.dtype(x.dtype).name)
        assert y.context is x.context
        assert not np.shares_memory(x._data, y._data)


def test_pickles_of_mxnet_are_read():
    """A pickled array of MXNet 1.9.1 contains a record of a parameter file."""
    state = {"handle": bytearray(bytes.fromhex(
        "c9fa93f900000000020000000100000000000000030000000000000001000000000000000000000000" "00803f0000004000004040"))}
    x = nd.empty((5, 5))
    x.__setstate__(state)
    same(x, [[1, 2, 3]])
    assert x.__getstate__() == state
    with pytest.raises(FileFormatError, match="byte 40"):
        x.__setstate__({"handle": state["handle"][:-1]})
    with pytest.raises(FileFormatError, match="expected an array, found none"):
        x.__setstate__({"handle": bytes.fromhex("c9fa93f90000000000000000")})
    same(x, [[1, 2, 3]])


def test_a_cached_op_computes_a_symbol_on_arrays():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    function = nd.CachedOp(mx.sym.Group([mx.sym.broadcast_mul(x, y), x + 1]))
    left, right = a(), v()
    right.attach_grad()
    for _ in range(2):
        with mx.autograd.record():
            product, more = function(left, right)
        product.backward()
        same(product, X * [3, 1, 2])
        same(more, X + 1)
        same(right.grad, [3, 5, 7])
    out = [nd.zeros((1, 3)), nd.zeros((1, 3))]
    assert function(nd.ones((1, 3)), right, out=out) is out
    same(out[0], [[3, 1, 2]])
    for nothing in ((), (None,)):
        same(nd.CachedOp(mx.sym.zeros((2,)))(*nothing, default_ctx=mx.cpu()), [0, 0])
    moving = mx.sym.BatchNorm(x, fix_gamma=False, momentum=0.5, name="bn")
    data, states = nd.array([[1, 2], [3, 4]]), [nd.ones(2), nd.zeros(2), nd.zeros(2), nd.ones(2)]
    with mx.autograd.record():
        nd.CachedOp(moving)(data, *states)
    same(states[2], [1, 1.5])
    for call, words in ((lambda: function(left), r"expected 2 inputs \(x, y\), got 1"),
                        (lambda: function(left, 3), "input y must be an NDArray, got int"),
                        (lambda: function(left, right, out=out[0]), "out= has 1 arrays, expected 2")):
        with pytest.raises(ArgumentError, match=words):
            call()


def test_engine_bulk_has_no_effect():
    before = mx.engine.set_bulk_size(7)
    with mx.engine.bulk(10):
        x = a() * 2
        assert mx.engine.set_bulk_size(10) == 10
    assert mx.engine.set_bulk_size(before) == 7
    same(x, X * 2)


def test_copyto_and_copy_copy_values():
    x, y = a(), nd.zeros((2, 3))
    assert x.copyto(y) is y
    same(y, X)
    whole = nd.zeros((2, 3), dtype="int32")
    x.copyto(whole)
    same(whole, X, "int32")
    assert x.copyto(mx.cpu(1)).context is mx.cpu(1)
    assert x.as_in_context(mx.cpu()) is x
    assert x.as_in_ctx(mx.cpu(1)).context is mx.cpu(1)
    assert x.astype("float32", copy=False) is x
    same(nd.array([1.9, -1.9, 3e9]).astype("int64"), [1, -1, 3000000000], "int64")


# --------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("name", ["x.params", "x.npz"])
def test_save_and_load(tmp_path, name):
    path = tmp_path / name
    nd.save(path, {"a": a(), "i": i()})
    found = nd.load(str(path))
    assert list(found) == ["a", "i"]
    same(found["a"], X)
    same(found["i"], [0, 1], "int32")
    if name == "x.params":
        nd.save(path, [a(), i()])
        first, second = nd.load(path)
        same(first, X)
        same(second, [0, 1], "int32")
        nd.save(path, a())
        same(nd.load_frombuffer(path.read_bytes())[0], X)
        nd.save(path, {"placed": nd.ones(1, ctx=mx.cpu(1))})
        assert nd.load(path)["placed"].context is mx.cpu(1)


def test_npz_files_of_other_dtypes_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, small=np.zeros(2, np.complex64))
    with pytest.raises(DTypeError, match="complex64") as caught:
        nd.load(path)
    assert caught.value.__notes__ == ["loading the array 'small'", "in load"]
    np.savez(path, words=np.array(["a"]))
    with pytest.raises(FileFormatError, match="words"):
        nd.load(path)


def test_missing_and_invalid_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        nd.load(tmp_path / "none")
    with pytest.raises(FileFormatError, match="magic"):
        nd.load_frombuffer(b"abc")


@pytest.mark.parametrize(("out", "words", "error"), [
    ([1, 2], "out: expected a NumPy array, got list", mx.MXNetError),
    (np.zeros(3, np.float32), r"out: expected shape \(2,\), got \(3,\)", ShapeError),
    (np.zeros(2), "out: expected dtype float32, got float64", DTypeError),
    (np.broadcast_to(np.float32(0), 2), "out: expected a writable array", mx.MXNetError),
])
def test_copyto_refuses_a_target_of_another_shape(out, words, error):
    with pytest.raises(error, match=words):
        mx.nd.array([1, 2]).asnumpy(out=out)


@pytest.mark.parametrize("blocking", [True, False])
def test_asnumpy_copies_to_out(blocking):
    x, place = mx.nd.array([1, 2]), np.zeros(2, np.float32)
    assert x.asnumpy(out=place, blocking=blocking) is place and place.tolist() == [1, 2]
    found = x.asnumpy(blocking=blocking)
    found[0] = 5
    assert x.asnumpy().tolist() == [1, 2]
    with pytest.raises(mx.MXNetError, match="contiguous"):
        x.asnumpy(out=np.zeros(4, np.float32)[::2], blocking=False)
    weight = nn.Parameter(nn.Tensor(np.array([3, 4], np.float32)))
    assert weight.asnumpy(out=place, blocking=blocking) is place and place.tolist() == [3, 4]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int64", "bool"])
@pytest.mark.parametrize("source_dtype", ["f8", "f4", "f2", ">f4", "i8", "u1", "?"])
def test_assigned_numpy_arrays_are_converted_as_by_astype(dtype, source_dtype):
    with np.errstate(all="ignore"):
        source = np.array([np.nan, np.inf, 1e300, -1.5, 300, -300, 2.0 ** 40, 70000, 65519.9, -0.0])
        source = source.astype(source_dtype)
        expected = source.astype(dtype)
    array = nd.zeros(source.shape, dtype=dtype)
    array[:] = source
    assert array.asnumpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("source", [np.ones(1 << 20, "float32"), np.ones(1 << 20), np.ones(1 << 20, "int64")],
                         ids=["float32", "float64", "int64"])
@pytest.mark.parametrize("way", ["assignment", "forward"])
def test_numpy_arrays_are_written_without_a_copy(way, source):
    array = nd.zeros(source.shape)
    executor = mx.sym.var("x").bind(mx.cpu(), {"x": array})
    executor.forward(x=source - 1)
    write_count()  # from now on writes that change something are recorded
    tracemalloc.start()
    try:
        for _ in range(2):  # the second changes nothing
            if way == "forward":
                executor.forward(x=source)
            else:
                array[:] = source
        assert tracemalloc.get_traced_memory()[1] < array.size  # a quarter of its bytes
    finally:
        tracemalloc.stop()
    assert array.asnumpy().sum() == array.size
