"""Operators with NumPy's rules agree with NumPy over random shapes; errors and gradients beyond their rows."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import (
    array_shapes,
    arrays,
    basic_indices,
    broadcastable_shapes,
    mutually_broadcastable_shapes,
    valid_tuple_axes,
)

from opreg import symbol
from opreg.builtin.matrices.dense import product
from opreg.builtin.numpy_names import numpy_like
from opreg.core.registry import get, ops
from opreg.core.spec import ANY
from opreg.errors import AttrError, DTypeError, OpError, ShapeError
from opreg.ndarray import array, cpu
from opreg.ndarray.autograd import grad, record
from opreg.symbol import Variable, load_json
from tests.questions import of_each

_RULE = settings(deadline=None, max_examples=80, derandomize=True)
_SHAPES = array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
_KINDS = st.sampled_from(["float32", "float64", "float16", "int32", "int64", "uint8", "bool"])


def _run(name: str, *inputs: Any, **attrs: Any) -> np.ndarray:
    return get(name)(*[array(each, None, each.dtype) for each in map(np.asarray, inputs)], **attrs).asnumpy()


def _numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Random values from a small set, so that some are equal."""
    low = 0 if dtype in ("uint8", "bool") else -3
    return np.random.default_rng((seed, *shape)).integers(low, 4, shape).astype(dtype)


def _same(found: np.ndarray, expected: Any) -> None:
    expected = np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-2 if found.dtype == "float16" else 1e-5)


def _slope(name: str, *inputs: Any, **attrs: Any) -> list[np.ndarray]:
    """Gradients of the sum of a result."""
    values = [array(each, None, "float64") for each in map(np.asarray, inputs)]
    for each in values:
        each.attach_grad()
    with record():
        out = get(name)(*values, **attrs)
    out.backward()
    return [each.grad.asnumpy() for each in values]  # type: ignore[union-attr]


# ------------------------------------------------------------------------------------------- beside NumPy


@_RULE
@given(st.sampled_from(["equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "logical_and",
                        "logical_or", "logical_xor"]),
       mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=4), _KINDS, _KINDS)
def test_comparisons_equal_numpys(name, shapes, left, right):
    x, y = _numbers(shapes.input_shapes[0], left), _numbers(shapes.input_shapes[1], right, seed=1)
    _same(_run(f"_npi_{name}", x, y), getattr(np, name)(x, y))


@_RULE
@given(st.sampled_from(["equal", "not_equal", "greater", "greater_equal", "less", "less_equal"]), _KINDS,
       st.integers(-4, 4) | st.sampled_from([-300, 255, 256]) | st.floats(-4, 4, width=16))
def test_comparisons_with_a_scalar_equal_numpys(name, kind, number):
    x = _numbers((3, 4), kind)
    _same(_run(f"_npi_{name}_scalar", x, scalar=number), getattr(np, name)(x, number))


def _axes(rank: int) -> st.SearchStrategy:
    """Valid values of ``axis``."""
    if not rank:
        return st.sampled_from([None, ()])
    return st.none() | st.just(()) | st.integers(-rank, rank - 1) | valid_tuple_axes(rank, min_size=1)


@_RULE
@given(st.data(), _SHAPES, _KINDS, st.booleans(),
       st.sampled_from(["sum", "mean", "prod", "max", "min", "var", "std", "any", "all"]))
def test_reductions_equal_numpys(data, shape, kind, keepdims, name):
    axis = data.draw(_axes(len(shape)))
    x = _numbers(shape, kind)
    run = partial(_run, f"_np{'i' if name in ('mean', 'var', 'std') else ''}_{name}", x, axis=axis, keepdims=keepdims)
    of = partial(getattr(np, name), x, axis=axis, keepdims=keepdims)
    named = () if axis == () else range(len(shape)) if axis is None else np.atleast_1d(axis)
    if name in ("max", "min") and any(shape[i] == 0 for i in named):
        with pytest.raises(ShapeError, match="there is no element to choose"):
            run()
        return
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about means of empty arrays
        if x.dtype.kind in "iu" and name in ("sum", "prod"):  # they keep the dtype, as in MXNet
            expected = of(dtype=x.dtype)
        elif x.dtype.kind in "iub" and name in ("mean", "var", "std"):
            expected = np.asarray(of(dtype="float64")).astype("float32")
        # NumPy sums some of these in their own dtype
        elif kind == "float16" and name not in ("max", "min", "any", "all"):
            expected = np.asarray(of(dtype="float32")).astype(kind)
        else:
            expected = of()
    _same(run(), expected)


@_RULE
@given(st.data(), array_shapes(min_dims=0, max_dims=3, max_side=4), st.sampled_from(["argmax", "argmin"]),
       st.booleans())
def test_argmax_and_argmin_equal_numpys(data, shape, name, keepdims):
    axis = data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1)) if shape else st.none())
    x = _numbers(shape, "float32")
    _same(_run(f"_npi_{name}", x, axis=axis, keepdims=keepdims), getattr(np, name)(x, axis=axis, keepdims=keepdims))


@_RULE
@given(st.data(), st.integers(0, 4), st.integers(0, 4), st.integers(0, 4), st.booleans(), st.booleans())
def test_matmul_equals_numpys_with_gradients(data, m, k, n, row, column):
    """Values equal NumPy's, and gradients are summed over axes that broadcast or are missing."""
    shapes = data.draw(mutually_broadcastable_shapes(num_shapes=2, max_dims=2, min_side=0, max_side=3)).input_shapes
    a = _numbers((k,) if row else (*shapes[0], m, k), "float64")
    b = _numbers((k,) if column else (*shapes[1], k, n), "float64", seed=1)
    expected = a @ b
    _same(_run("_npi_matmul", a, b), expected)
    left, right = a[None] if row else a, b[:, None] if column else b
    head = np.ones(np.matmul(left, right).shape)
    for found, full, like in zip(_slope("_npi_matmul", a, b),
                                 (head @ right.swapaxes(-1, -2), left.swapaxes(-1, -2) @ head), (left, right)):
        _same(found, _sum_to(full, like.shape).reshape(found.shape))


@pytest.mark.parametrize("shape, axes, columns, multiplied", [
    ((6, 4, 3), (1, 0, 2), 12, (24, 3)), ((6, 4, 3), (1, 0, 2), 11, (4, 6, 3)),
    ((2, 4, 3, 5), (2, 1, 0, 3), 4, (24, 5)), ((2, 4, 3), (0, 2, 1), 6, (6, 4)), ((0, 4, 3), (1, 0, 2), 5, (0, 3))])
def test_matmul_takes_the_rows_of_moved_axes_at_once(monkeypatch, shape, axes, columns, multiplied):
    """One product of matrices is enough if the second factor has many columns, in whatever order the rows are."""
    seen = []

    def watched(xp, a, b, out=None):
        seen.append(a.shape)
        return product(xp, a, b, out)

    monkeypatch.setattr(numpy_like, "product", watched)
    x = _numbers(shape, "float64")
    w = _numbers((shape[axes[-1]], columns), "float64", seed=1)
    net = ops._npi_matmul(symbol.transpose(Variable("x"), axes=axes), Variable("w"))
    executor = net.bind(cpu(), {"x": array(x, dtype=x.dtype), "w": array(w, dtype=w.dtype)}, grad_req="null")
    _same(executor.forward()[0].asnumpy(), np.matmul(x.transpose(axes), w))
    assert seen == [multiplied]


def _sum_to(full: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    extra = full.ndim - len(shape)
    axes = (*range(extra), *[i + extra for i, dim in enumerate(shape) if dim == 1 != full.shape[i + extra]])
    return full.sum(axes).reshape(shape)


@_RULE
@given(mutually_broadcastable_shapes(num_shapes=3, max_dims=3, min_side=0, max_side=3), _KINDS, _KINDS)
def test_where_equals_numpys(shapes, kind, chooser):
    c, x, y = [_numbers(shape, dtype, seed)
               for seed, (shape, dtype) in enumerate(zip(shapes.input_shapes, (chooser, kind, kind)))]
    _same(_run("_npi_where", c, x, y), np.where(c != 0, x, y))
    full = np.broadcast_to(c != 0, shapes.result_shape)
    by_c, by_x, by_y = _slope("_npi_where", c, x, y)
    assert not by_c.any()
    _same(by_x, _sum_to(full.astype("float64"), x.shape))
    _same(by_y, _sum_to(1.0 - full, y.shape))


@_RULE
@given(st.data(), array_shapes(min_dims=0, max_dims=3, max_side=4), st.sampled_from(["float32", "int32", "bool"]))
def test_assignments_to_subscripts_equal_numpys(data, shape, kind):
    key = data.draw(basic_indices(shape, allow_newaxis=True))
    x = _numbers(shape, kind)
    part = np.asarray(x[key]).shape
    value = _numbers(data.draw(broadcastable_shapes(part, min_dims=0, max_dims=len(part), min_side=0).filter(
        lambda found: np.broadcast_shapes(found, part) == part)), kind, seed=1)
    expected = x.copy()
    expected[key] = value
    _same(_run("_subscript_assign", x, value, key=key), expected)
    by_data, by_value = _slope("_subscript_assign", x, value, key=key)
    marked = np.zeros(shape)
    marked[key] = 1
    _same(by_data, 1 - marked)
    _same(by_value, _sum_to(np.ones(part), value.shape))


@_RULE
@given(st.data(), _SHAPES)
def test_reshape_takes_the_shapes_that_numpy_takes(data, shape):
    """The operator accepts every shape that NumPy accepts, and no other."""
    x = _numbers(shape, "float64")
    asked = data.draw(st.one_of(st.permutations(shape), st.just((-1, *shape[1:])), st.just((*shape[:1], -1)),
                                st.just(x.size), st.just(()), array_shapes(min_side=0, max_side=5)))
    newshape = asked if isinstance(asked, int) else tuple(asked)
    try:
        expected = x.reshape(newshape)
    except ValueError:
        with pytest.raises(ShapeError, match="does not fit"):
            _run("_np_reshape", x, newshape=newshape)
        return
    _same(_run("_np_reshape", x, newshape=newshape), expected)
    _same(_slope("_np_reshape", x, newshape=newshape)[0], np.ones(shape))


@_RULE
@given(arrays("int64", (3, 4), elements=st.integers(-9, 9)), st.integers(-5, 5), st.integers(-4, 4))
def test_roll_triangles_and_bitwise_operators_equal_numpys(x, shift, k):
    for axis in (None, 0, -1, (0, 1)):
        _same(_run("_np_roll", x, shift=shift, axis=axis), np.roll(x, shift, axis))
    _same(_run("_npi_tril", x, k=k), np.tril(x, k))
    _same(_run("_npi_triu", x, k=k), np.triu(x, k))
    for name in ("and", "or", "xor"):
        _same(_run(f"_npi_bitwise_{name}_scalar", x, scalar=k), getattr(np, f"bitwise_{name}")(x, k))


# ---------------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("name, numbers, shares", [
    ("_np_max", [[1, 3, 3], [2, 2, 2]], [[0, 1 / 2, 1 / 2], [1 / 3, 1 / 3, 1 / 3]]),
    ("_np_min", [[1, 3, 3], [2, 2, 2]], [[1, 0, 0], [1 / 3, 1 / 3, 1 / 3]]),
])
def test_equal_extrema_share_the_gradient(name, numbers, shares):
    np.testing.assert_allclose(_slope(name, numbers, axis=1)[0], shares)
    np.testing.assert_allclose(_slope(name, np.ones((2, 3)))[0], np.full((2, 3), 1 / 6))


@pytest.mark.parametrize("numbers, expected", [
    ([2, 0, 3], [0, 6, 0]), ([0, 0, 3], [0, 0, 0]), ([2, 5, 3], [15, 6, 10]), ([0], [1]), ([], [])])
def test_products_have_gradients_at_zeros(numbers, expected):
    assert _slope("_np_prod", np.array(numbers, float))[0].tolist() == expected


def test_the_third_derivative_of_a_power_is_right():
    """The third derivative of the third power is right, since gradients consist of differentiable operators."""
    x = array([2.0], None, "float64")
    orders = []
    x.attach_grad()
    with record():
        y = ops._np_prod(ops._npi_matmul(ops._np_reshape(x, newshape=(1, 1)), x), axis=0) * ops._np_sum(x)
        for _ in range(3):
            (y,) = grad([y], [x], create_graph=True)
            orders.append(float(y.asnumpy()[0]))
    assert orders == [12.0, 12.0, 6.0]


# ------------------------------------------------------------------------------------------------- graphs


def test_reshape_needs_no_step():
    x = Variable("x")
    made = ops._np_reshape(x + 1.0, newshape=(4, -1)) * 2.0
    executor = made.bind(cpu(), {"x": array(np.ones((2, 6)))})
    assert executor.forward()[0].shape == (4, 3)
    (line,) = [line for line in executor.explain().splitlines() if "_np_reshape" in line]
    assert "view" in line


@pytest.mark.parametrize("name, ins, attrs, expected", [
    ("_np_reshape", [(ANY, 4)], {"newshape": (-1, 2)}, (ANY, 2)), ("_np_sum", [(ANY, 4)], {"axis": 1}, (ANY,)),
    ("_npi_matmul", [(ANY, 2, 3), (3, ANY)], {}, (ANY, 2, ANY)), ("_npi_equal", [(ANY, 1), (4,)], {}, (ANY, 4)),
    ("_npi_where", [(ANY,), (3, 1), ()], {}, (3, ANY)), ("_npi_argmax", [(ANY, ANY)], {}, ()),
    ("_subscript_assign", [(2, 3), (ANY,)], {"key": 0}, (2, 3)),
])
def test_shapes_are_inferred_around_unknown_dimensions(name, ins, attrs, expected):
    op = get(name)
    assert repr(op.infer_shapes(ins, [None], op.complete(attrs))[1]) == repr([expected])


def test_files_of_mxnet_with_numpys_operators_load():
    """Nodes as Apache MXNet 1.9.1 writes them for ``(np.sum(np.reshape(x, (2, 3)), axis=1) > 2)`` and ``argmax``."""
    text = """{"nodes": [
      {"op": "null", "name": "x", "inputs": []},
      {"op": "_np_reshape", "name": "reshape0", "attrs": {"newshape": "(2, 3)"}, "inputs": [[0, 0, 0]]},
      {"op": "_np_sum", "name": "sum0", "attrs": {"axis": "1"}, "inputs": [[1, 0, 0]]},
      {"op": "_npi_greater_scalar", "name": "greater0", "attrs": {"is_int": "True", "scalar": "2.0"},
       "inputs": [[2, 0, 0]]},
      {"op": "_npi_argmax", "name": "argmax0", "attrs": {"axis": "None", "keepdims": "False"}, "inputs": [[1, 0, 0]]}],
      "arg_nodes": [0], "node_row_ptr": [0, 1, 2, 3, 4, 5], "heads": [[3, 0, 0], [4, 0, 0]],
      "attrs": {"is_np_shape": ["int", 1], "mxnet_version": ["int", 10901]}}"""
    made = load_json(text)
    assert isinstance(made, symbol.Symbol)
    truth, place = made.bind(cpu(), {"x": array([0.0, 1, 1, 0, 7, 2])}).forward()
    assert truth.asnumpy().tolist() == [False, True]
    assert (place.shape, int(place.asnumpy())) == ((), 4)


# ------------------------------------------------------------------------------------------------- errors


@of_each([
    (ShapeError, "do not broadcast", "_npi_equal", [np.ones(2), np.ones(3)], {}),
    (ShapeError, "the axes to sum over have different lengths", "_npi_matmul", [np.ones((2, 3)), np.ones((2, 3))], {}),
    (ShapeError, "at least one axis each", "_npi_matmul", [np.ones(()), np.ones(2)], {}),
    (ShapeError, "do not broadcast", "_npi_matmul", [np.ones((2, 3, 3)), np.ones((4, 3, 3))], {}),
    (AttrError, "at most one -1", "_np_reshape", [np.ones(6)], {"newshape": (-1, -1)}),
    (AttrError, "at most one -1", "_np_reshape", [np.ones(6)], {"newshape": (-2, 3)}),
    (ShapeError, r"\(4,\) does not fit \(6,\), which has 6 elements", "_np_reshape", [np.ones(6)], {"newshape": (4,)}),
    (AttrError, "out of range", "_np_sum", [np.ones(6)], {"axis": 1}),
    (AttrError, "has an axis twice", "_npi_mean", [np.ones((2, 2))], {"axis": (0, -2)}),
    (AttrError, "expected None, got 5", "_np_sum", [np.ones(6)], {"initial": 5}),
    (ShapeError, "there is no element to choose", "_npi_argmax", [np.ones((2, 0))], {"axis": 1}),
    (ShapeError, "does not broadcast", "_subscript_assign", [np.ones((2, 3)), np.ones(2)], {"key": 0}),
    (ShapeError, "does not broadcast", "_subscript_assign", [np.ones((2, 3)), np.ones((2, 3))], {"key": 0}),
    (DTypeError, "integers or bool, got float64", "_npi_bitwise_and", [np.ones(2), np.ones(2)], {}),
    (DTypeError, "differ", "_npi_bitwise_or", [np.ones(2, "int32"), np.ones(2, "int64")], {}),
    (ShapeError, "at least one axis", "_npi_tril", [np.ones(())], {}),
    (AttrError, "different lengths", "_np_roll", [np.ones((2, 3))], {"shift": (1, 2), "axis": 0}),
    (AttrError, "since axis is None", "_np_roll", [np.ones((2, 3))], {"shift": (1, 2)}),
])
def test_wrong_uses_of_numpys_operators_are_refused(error, message, name, inputs, attrs):
    with pytest.raises(error, match=message) as raised:
        _run(name, *inputs, **attrs)
    assert isinstance(raised.value, OpError)
    assert any(name in note for note in getattr(raised.value, "__notes__", ())) or name in str(raised.value)


@pytest.mark.parametrize(("shapes", "found"), [
    ({}, [(), ()]), ({"a": (2, 3)}, [(2, 3), ()]), ({"a": (2, 0), "b": (3, 4)}, [(2, 3), (3, 4)]),
    ({"a": (2, 3), "b": (0, 4)}, [(2, 3), (3, 4)]), ({"a": (5, 2, 0), "b": (5, 0, 4)}, [(5, 2, 0), (5, 0, 4)])])
def test_matmul_fills_in_the_length_that_it_sums_over(shapes: dict[str, Any], found: list[Any]) -> None:
    product = ops._npi_matmul(Variable("a"), Variable("b"))
    assert product.infer_shape_partial(**shapes)[0] == found


@pytest.mark.parametrize("name", ["sum", "_np_sum", "_np_max", "norm", "_npi_var"])
def test_reductions_of_views_read_the_values_of_each_run(name: str) -> None:
    """A reduction that copied a broadcast, transposed or sliced view when it was bound would use old elements."""
    row, x = symbol.slice_axis(Variable("x"), axis=0, begin=0, end=1), Variable("x")
    for view in (symbol.broadcast_to(row, shape=(4, 3)), symbol.transpose(x),
                 symbol.slice_axis(x, axis=1, begin=1, end=3)):
        for attrs in ({}, {"axis": 0}, {"axis": 1}):
            executor = getattr(symbol, name)(view, **attrs).simple_bind(cpu(), x=(2, 3))
            for seed in (1, 2):
                values = array(np.random.default_rng(seed).normal(size=(2, 3)))
                (found,) = executor.forward(is_train=True, x=values)
                expected = get(name)(view.eval(x=values)[0], **attrs)
                np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), 1e-5)
