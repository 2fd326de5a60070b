"""Spellings of dtypes, shapes and attributes."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.core.attrs import Count, Field, Finite, Schema
from opreg.core.spec import as_dtype
from opreg.errors import AttrError, DTypeError
from tests import processes
from tests.questions import of_each

WORDS = {
    "float16": ["half", "f2", "e", "<f2", np.float16, np.dtype("float16"), 2, "2"],
    "float32": ["single", "f4", "f", "<f4", ">f4", np.float32, 0, "0"],
    "float64": ["double", "float", "f8", "d", float, np.float64, np.float64(2), 1],
    "int8": ["byte", "i1", "b", np.int8, 5], "uint8": ["ubyte", "u1", "B", np.uint8, 3],
    "int32": ["intc", "i4", "i", "<i4", np.int32, 4], "int64": ["int", "long", "i8", int, np.int64, 6],
    "bool": ["bool_", "?", bool, np.bool_, 7],
}


@of_each([(name, word) for name, words in WORDS.items() for word in (name, *words)])
def test_words_stand_for_dtypes(name, word):
    kind = np.dtype(name).type
    assert as_dtype(word) == np.dtype(name)
    assert mx.nd.zeros((2,), dtype=word).dtype is kind
    assert mx.nd.empty((2,), dtype=word).dtype is kind
    assert mx.nd.full((2,), 1, dtype=word).dtype is kind
    assert mx.nd.array([1], dtype=word).dtype is kind
    assert mx.nd.ones((2,)).astype(word).dtype is kind
    assert mx.nd.cast(mx.nd.ones((2,)), dtype=word).dtype is kind
    assert mx.sym.Variable("x", dtype=word).infer_type()[0] == [kind]
    assert mx.sym.cast(mx.sym.Variable("x"), dtype=word).infer_type()[1] == [kind]
    assert mx.sym.Variable("x").infer_type(x=word)[0] == [kind]


@of_each(["halv", "O", "c8", "f4,f4", "i4,", "(2", "", 99, True, 1.0, [], {}, object])
def test_words_that_are_no_dtypes_are_refused(word):
    with pytest.raises(DTypeError, match="is not a dtype of arrays"):
        as_dtype(word)


@pytest.mark.parametrize("first, then, found", [
    ("numpy.float64(2)", "2", "float16"), ("1", "True", "DTypeError"), ("1", "1.0", "DTypeError"),
    ("0", "False", "DTypeError"), ("2", "numpy.float64(2)", "float64"), ("numpy.int8(4)", "4", "int32")])
def test_equal_values_of_other_kinds_are_not_mistaken(first, then, found):
    """A new process makes both calls, since a cache could hold earlier answers."""
    code = f"""
import numpy
from opreg.core.spec import as_dtype
as_dtype({first})
try:
    print(as_dtype({then}))
except Exception as error:
    print(type(error).__name__)
"""
    done = processes.run(code)
    assert done.stdout.strip() == found, done.stderr


@pytest.mark.parametrize("make", [
    lambda shape: mx.nd.empty(shape), lambda shape: mx.nd.zeros(shape), lambda shape: mx.nd.ones(shape),
    lambda shape: mx.nd.full(shape, 2), lambda shape: mx.nd.random.uniform(shape=shape),
    lambda shape: mx.nd.broadcast_to(mx.nd.ones((1,)), shape=shape),
    lambda shape: mx.nd.ones((6,) if np.size(shape) > 1 else (2,)).reshape(shape)])
@pytest.mark.parametrize("shape", [(2, 3), [2, 3], np.array([2, 3]), (np.int32(2), np.int64(3)), 2, np.int64(2)])
def test_shapes_may_be_numbers_lists_and_arrays(make, shape):
    assert make(shape).shape == ((2, 3) if np.size(shape) > 1 else (2,))


def test_a_scalar_is_a_tuple_of_one():
    line = mx.nd.ones((1, 1, 4))
    assert mx.nd.Pooling(line, kernel=2, pool_type="max").shape == (1, 1, 3)
    assert mx.nd.Pooling(line, kernel="2", pool_type="max").shape == (1, 1, 3)
    found = mx.nd.Convolution(line, mx.nd.ones((1, 1, 2)), kernel=2, stride=2, num_filter=1, no_bias=True)
    assert found.shape == (1, 1, 2)
    assert mx.nd.transpose(mx.nd.ones((3,)), axes=0).shape == (3,)
    assert mx.sym.Variable("x", shape=3).infer_shape()[1] == [(3,)]
    assert Field("sizes", tuple[float, ...])(0.5) == Field("sizes", tuple[float, ...])("0.5") == (0.5,)
    with pytest.raises(AttrError, match="expected tuple of int, got True"):
        Field("kernel", tuple[int, ...])(True)
    with pytest.raises(AttrError, match=r"expected tuple of int, got 1.5"):
        Field("kernel", tuple[int, ...])(1.5)


@pytest.mark.parametrize("word", ["float64", "double", np.float64, np.dtype("float64"), 1])
def test_sums_take_any_spelling_of_a_dtype(word):
    assert mx.nd.cumsum(mx.nd.ones((2,)), dtype=word).dtype is np.float64
    assert mx.nd.norm(mx.nd.ones((2,)), out_dtype=word).dtype is np.float64
    with pytest.raises(AttrError, match="among float16, float32"):
        mx.nd.cumsum(mx.nd.ones((2,)), dtype="uint8")


def test_annotations_convert_text_and_check_limits():
    def function(*, count: Count, rate: Finite | None = None, many: tuple[Count, ...] = (1,)):
        pass

    schema = Schema.of(function)
    assert schema.complete({"count": "3", "rate": "1e3", "many": "(0, 2)"}) == {"count": 3, "rate": 1e3, "many": (0, 2)}
    assert schema["count"].kind is int
    assert schema["many"].describes == "tuple of int of at least 0"
    for given, words in [({"count": -1}, "count: expected int of at least 0, got -1"),
                         ({"count": 1, "rate": float("nan")}, "rate: expected float that is finite or None, got nan"),
                         ({"count": 1, "many": (1, -1)}, r"many: expected tuple of int of at least 0, got \(1, -1\)")]:
        with pytest.raises(AttrError, match=words):
            schema.complete(given)
