"""Composed operators: shapes follow from their bodies, also for unknown dimensions."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg import nd, sym
from opreg.core.registry import get, ops
from opreg.core.spec import ANY
from opreg.custom.composed import composed, constant
from opreg.errors import ShapeError


@composed(name="_example_padded_twice")
def padded(data, *, times: int = 2):
    """The data twice, reshaped to dimensions that the body computes."""
    joined = ops.Concat(*[data] * times, num_args=times, dim=0)
    return ops.reshape(joined, shape=(data.shape[0] * times, *data.shape[1:]))


@composed(name="_example_two_results", outputs=("low", "high"))
def two(data):
    """Two results of different shapes."""
    return ops.min(data, axis=0), ops.expand_dims(ops.max(data, axis=1), axis=0)


@composed(name="_example_tail")
def tail(data):
    """The data without the first row, by a slice up to a length that the body reads."""
    return ops._subscript(data, key=(slice(1, data.shape[0]),))


@composed(name="_example_turned")
def turned(data):
    """The rows in reverse order and in order, taken by constant indices."""
    places = constant(lambda length: np.stack([np.arange(length)[::-1], np.arange(length)]), data.shape[0])
    return ops.take(data, places, axis=0)


@pytest.mark.parametrize(("name", "ins", "attrs", "expected"), [
    ("khatri_rao", [(2, 3), (4, 3)], {"num_args": 2}, [(8, 3)]),
    ("khatri_rao", [(2, ANY), (4, 3)], {"num_args": 2}, [(8, 3)]),
    ("khatri_rao", [(ANY, 3), (4, 3)], {"num_args": 2}, [(ANY, 3)]),
    ("khatri_rao", [None, (4, 3)], {"num_args": 2}, [None]),
    ("_example_padded_twice", [(2, 3)], {}, [(4, 3)]),
    ("_example_padded_twice", [(2, 3)], {"times": 3}, [(6, 3)]),
    ("_example_padded_twice", [(ANY, 3)], {}, [(ANY, 3)]),
    ("_example_tail", [(5, 3)], {}, [(4, 3)]),
    ("_example_tail", [(5, ANY)], {}, [(4, ANY)]),
    ("_example_tail", [(ANY, 3)], {}, [(ANY, 3)]),
    ("_example_turned", [(5,)], {}, [(2, 5)]),
    ("_example_turned", [(ANY,)], {}, [(2, ANY)]),
    ("_example_two_results", [(2, 3)], {}, [(3,), (1, 2)]),
    ("_example_two_results", [(2, ANY)], {}, [(ANY,), (1, 2)]),
])
def test_shapes_follow_from_the_body(name, ins, attrs, expected):
    op = get(name)
    for _ in range(2):  # the second time from the cache
        _, outs = op.infer_shapes(list(ins), [None] * len(expected), op.complete(attrs))
        assert list(map(str, outs)) == list(map(str, expected))


def test_a_known_output_shape_is_compared_with_the_body():
    op = get("_example_two_results")
    with pytest.raises(ShapeError, match="high: expected shape"):
        op.infer_shapes([(2, 3)], [None, (2, 1)], op.complete({}))


def test_an_error_of_a_body_names_the_operator_and_its_node():
    symbol = sym.khatri_rao(sym.var("a", shape=(2, 3)), sym.var("b", shape=(2, 4)), num_args=2, name="product")
    with pytest.raises(ShapeError, match="differ") as caught:
        symbol.infer_shape()
    assert "khatri_rao, node 'product'" in "".join(caught.value.__notes__)


def test_an_operator_that_is_registered_again_changes_the_shapes_of_bodies():
    @composed(name="_example_inner", aliases=())
    def inner(data):
        """The data."""
        return ops.expand_dims(data, axis=0)

    @composed(name="_example_outer")
    def outer(data):
        """The result of another operator for the data."""
        return ops._example_inner(data)

    assert outer(nd.ones((2,))).shape == (1, 2)

    @composed(name="_example_inner")
    def again(data):
        """The data."""
        return ops.expand_dims(data, axis=1)

    assert sym.Group([ops._example_outer(sym.var("x", shape=(2,)))]).infer_shape()[1] == [(2, 1)]
    assert outer(nd.ones((2,))).shape == (2, 1)
    assert mx.caches()
