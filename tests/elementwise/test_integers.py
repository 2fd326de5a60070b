"""Integer arrays with numbers: no constant of an operator is rounded before the computation."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.core.mode import quiet
from opreg.core.registry import get, operators
from opreg.elementwise.expression import Expression
from tests.running import Use, eager, graph

KINDS = ["uint8", "int8", "int32", "int64"]
DATA = {"uint8": [0, 1, 2, 5, 200, 255], "int8": [-128, -5, -1, 0, 3, 127],
        "int32": [-70000, -3, 0, 2, 100000], "int64": [-2 ** 40, -3, 0, 2, 2 ** 62 + 1]}


def results(op, arrays, attrs):
    """The first output, eagerly and in a graph, after a check that both are equal."""
    use = Use(get(op), arrays, attrs, train=False)
    one, other = eager(use).outs[0], graph(use).outs[0]
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one, other)
    return one


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("low, high", [
    (0, 256), (-1, 1), (0, 300), (10, 1000), (-1e10, 1e10), (-np.inf, np.inf), (300, 400), (-400, -300), (.5, 2.5),
    (-3.7, 3.7), (-1e30, 1e30)])
def test_bounds_outside_a_dtype_become_its_limits(kind, low, high):
    data, limits = np.array(DATA[kind], kind), np.iinfo(kind)
    least, most = (int(min(max(bound, limits.min), limits.max)) for bound in (low, high))
    expected = np.array([min(max(int(x), least), most) for x in data], kind)
    np.testing.assert_array_equal(results("clip", [data], {"a_min": low, "a_max": high}), expected)



def _prepared_operators(scalar):
    """Element-wise operators that may be prepared for integers, with attributes that have defaults."""
    for op in operators():
        fields = op.signature.schema.fields
        given = {field.name: scalar for field in fields if field.name == "scalar"}
        if op.where is None and op.rules.expression and op.kernels[0].parts and not any(
                field.required and field.name not in given for field in fields):
            yield op, op.complete(given)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scalar", [2.0, 300.0, -3.0, 2.5])
def test_functions_of_one_integer_dtype_equal_the_expression(kind, scalar, monkeypatch):
    count = 0
    for op, attrs in _prepared_operators(scalar):
        arrays = [np.roll(np.array(DATA[kind], kind), i) for i in range(len(op.signature.inputs(attrs)))]
        found = quiet(op.kernels[0].rule, attrs, np, *arrays)
        with monkeypatch.context() as patch:
            patch.setattr(Expression, "integer_function", lambda *_: None)
            expected = quiet(op.kernels[0].rule, attrs, np, *arrays)
        assert np.asarray(found).dtype == np.asarray(expected).dtype, op.name
        np.testing.assert_array_equal(found, expected, op.name)
        count += quiet(op.rules.expression(attrs).integer_function, np.dtype(kind)) is not None
    assert count > 50


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op, attrs, expected", [
    ("_contrib_div_sqrt_dim", {}, lambda x: x // 2),  # as MXNet: divided by 2, the root of six rounded down
    ("smooth_l1", {"scalar": .5}, lambda x: np.where(abs(x) < 4, x * x / 8, abs(x) - 2)),
    ("_contrib_quadratic", {"a": 0, "b": .5, "c": .75}, lambda x: x / 2 + .75),
    ("hard_sigmoid", {"alpha": .01, "beta": .5}, lambda x: np.clip(x * .01 + .5, 0, 1)),
    ("_rdiv_scalar", {"scalar": -100}, lambda x: -100 / np.where(x == 0, np.inf, x)),
    ("_div_scalar", {"scalar": -2}, lambda x: x / -2),
    ("_hypot_scalar", {"scalar": -4}, lambda x: np.hypot(x, -4)),
    ("norm", {"axis": 0}, lambda x: np.sqrt((x * x).sum(0, keepdims=True))),
])
def test_constants_are_not_truncated(kind, op, attrs, expected):
    data = np.array([1, 2, 3, 7, 20, 99], kind)  # their squares exceed the small dtypes
    with np.errstate(all="ignore"):
        wide = expected(data.astype("float64"))
    np.testing.assert_array_equal(results(op, [data], attrs), np.trunc(wide).astype("int64").astype(kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["_plus_scalar", "_maximum_scalar", "_lesser_scalar", "_equal_scalar", "_mod_scalar"])
def test_scalars_beyond_every_integer_are_compared_exactly(op, kind):
    data = np.array([0, 1, 2], kind)
    found = results(op, [data], {"scalar": 1e30})
    if op == "_lesser_scalar":
        assert found.all()
    assert found.dtype == kind


@pytest.mark.parametrize("op, scalar, expected", [
    ("_plus_scalar", 2.7, [2, 3, 1]), ("_plus_scalar", 300, [44, 45, 43]), ("_minus_scalar", -1, [1, 2, 0]),
    ("_maximum_scalar", -1, [255, 255, 255]), ("_greater_scalar", -1, [0, 0, 0]), ("_equal_scalar", 257, [0, 1, 0])])
def test_a_scalar_is_converted_to_the_dtype_of_an_integer_array(op, scalar, expected):
    """The number is truncated and wrapped around, as in MXNet."""
    assert results(op, [np.array([0, 1, 255], "uint8")], {"scalar": scalar}).tolist() == expected


@pytest.mark.parametrize("op, arrays, attrs", [
    ("Pad", [np.zeros((1, 1, 1, 1), "uint8")],
     {"mode": "constant", "pad_width": (0, 0, 0, 0, 0, 0, 0, 1), "constant_value": None}),
    ("_slice_assign_scalar", [np.zeros(2, "uint8")], {"begin": (1,), "end": (2,), "scalar": None}),
    ("_full", [], {"shape": (2,), "dtype": "uint8", "value": None}),
    ("SequenceMask", [np.zeros((2, 1, 1), "uint8"), np.ones(1)], {"use_sequence_length": True, "value": None}),
    ("one_hot", [np.array([1.0])], {"depth": 2, "dtype": "uint8", "on_value": None}),
])
@pytest.mark.parametrize("number, stored", [(300, 44), (-1, 255), (2.7, 2)])
def test_assigned_values_wrap_around(op, arrays, attrs, number, stored):
    given = {name: number if value is None else value for name, value in attrs.items()}
    assert results(op, arrays, given).ravel()[-1] == stored


@pytest.mark.parametrize("op, arrays, attrs, expected", [
    ("_mod", [[5, -5, 3], [2, 3, 0]], {}, [[0, 0, 0], [0, 0, 0]]),
    ("broadcast_mod", [[5, -5, 3], [2]], {}, [[0, 0, 0], [0]]),
    ("_mod_scalar", [[5, -5, 3]], {"scalar": 2}, [[0, 0, 0]]),
    ("_rmod_scalar", [[5, 0, 3]], {"scalar": 7}, [[0, 0, 0]]),
    ("_power", [[2, 0, -2], [3, -1, 2]], {}, [[12, 0, -4], [5, 0, 0]]),
    ("arcsin", [[0, 5, 1]], {}, [[1, 0, 0]]),
    ("gammaln", [[0, -1, 3]], {}, [[0, 0, 0]]),
])
def test_gradients_among_integers_are_finite(op, arrays, attrs, expected):
    values, heads = [np.array(each, "int32") for each in arrays], mx.nd.ones(3, dtype="int32")
    marked = [mx.nd.array(each, dtype="int32") for each in values]
    for each in marked:
        each.attach_grad()
    with mx.autograd.record():
        out = get(op)(*marked, **attrs)
    out.backward(heads)
    names = get(op).list_arguments()
    executor = get(op)(*map(mx.sym.Variable, names), **attrs).bind(
        mx.cpu(), dict(zip(names, marked)), {name: mx.nd.zeros_like(each) for name, each in zip(names, marked)})
    executor.forward(is_train=True)
    executor.backward(heads)
    for one, name, right in zip(marked, names, expected):
        for found in (one.grad, executor.grad_dict[name]):
            assert found.dtype == np.int32
            np.testing.assert_array_equal(found.asnumpy(), right)
