"""Calls of operators by name: inputs and attributes by position and by keyword, signatures, namespaces."""

from __future__ import annotations

import inspect

import pytest

import opreg.custom.operator  # noqa: F401  registers custom_op
from opreg.core.arguments import ordered_inputs, signature, split
from opreg.core.namespaces import Namespace, give_signature
from opreg.core.registry import get, operators
from opreg.errors import ArgumentError, UnknownOperatorError
from tests.questions import of_each


class Tensor:
    """A replacement for arrays and symbols."""


T, U, W = Tensor(), Tensor(), Tensor()


def is_tensor(value):
    return isinstance(value, Tensor)


SPLIT = [
    ("relu", (T,), {}, {"data": T}, {}),
    ("relu", (), {"data": T}, {"data": T}, {}),
    ("clip", (T, 0, 1), {}, {"data": T}, {"a_min": 0, "a_max": 1}),
    ("clip", (T, 0), {"a_max": 1}, {"data": T}, {"a_min": 0, "a_max": 1}),
    ("clip", (0, 1), {"data": T}, {"data": T}, {"a_min": 0, "a_max": 1}),
    ("FullyConnected", (T, U), {"num_hidden": 3}, {"data": T, "weight": U}, {"num_hidden": 3}),
    ("FullyConnected", (T, U, None, 3, True), {}, {"data": T, "weight": U, "bias": None},
     {"num_hidden": 3, "no_bias": True}),
    ("FullyConnected", (T,), {"bias": W, "num_hidden": 3}, {"data": T, "bias": W}, {"num_hidden": 3}),
    ("softmax", (T, -1), {}, {"data": T}, {"axis": -1}),
    ("softmax", (T, None, -1), {}, {"data": T, "length": None}, {"axis": -1}),
    ("softmax", (T,), {"anything": 1}, {"data": T}, {"anything": 1}),
    ("Concat", (T, U), {"dim": 0}, [T, U], {"dim": 0, "num_args": 2}),
    ("Concat", ([T, U],), {}, [T, U], {"num_args": 2}),
    ("Concat", (), {"x": T, "y": U, "dim": 0}, [T, U], {"dim": 0, "num_args": 2}),
    ("Concat", (T, U), {"num_args": 2}, [T, U], {"num_args": 2}),
    ("_arange", (0, 5), {}, {}, {"start": 0, "stop": 5}),
    ("custom.custom_op", (T,), {"color": "red"}, [T], {"color": "red"}),
    ("custom.custom_op", (), {"data": T, "color": "red"}, {"data": T}, {"color": "red"}),
]


@of_each(SPLIT)
def test_arguments_are_split_into_inputs_and_attributes(name, args, keywords, inputs, attrs):
    assert split(get(name), args, keywords, is_tensor) == (inputs, attrs)


REFUSED = [
    ("relu", (5,), {}, "input data must be an array or symbol, got int"),
    ("relu", (), {"data": 5}, "input data must be an array or symbol, got int"),
    ("relu", (T, U), {}, r"at most 1 inputs \(data\) and 0 attributes, got 2 arguments; out and name go by keyword"),
    ("relu", (T,), {"data": U}, "input data is given twice"),
    ("relu", (T,), {"dta": U}, "no input 'dta'. Did you mean 'data'"),
    ("clip", (T, 0), {"a_min": 1}, "attribute a_min is given twice"),
    ("clip", (T, 0, 1, 2), {}, "and 2 attributes, got 4 arguments"),
    ("broadcast_add", (T, 2), {}, "input rhs must be an array or symbol, got int"),
    ("Concat", (T, 2), {}, "input 1 must be an array or symbol, got int"),
    ("Concat", (T,), {"x": U}, "by position or by keyword, not both"),
]


@of_each(REFUSED)
def test_split_refuses_wrong_arguments(name, args, keywords, words):
    with pytest.raises(ArgumentError, match=f"operator {name}: .*{words}"):
        split(get(name), args, keywords, is_tensor)


def test_inputs_by_keyword_are_put_in_order():
    op = get("FullyConnected")
    attrs = op.complete({"num_hidden": 3})
    bare = op.complete({"num_hidden": 3, "no_bias": True})
    assert ordered_inputs(op, {"bias": W, "data": T, "weight": U}, attrs) == [T, U, W]
    assert ordered_inputs(op, {"data": T, "weight": U, "bias": None}, bare) == [T, U]
    for inputs, given, words in (({"data": T}, attrs, "missing weight, bias"), ([T], attrs, "3 inputs .* got 1"),
                                 ({"data": T, "weight": U, "bias": W}, bare, "attributes there is no input bias")):
        with pytest.raises(ArgumentError, match=f"operator FullyConnected: .*{words}"):
            ordered_inputs(op, inputs, given)


def test_signatures_show_inputs_attributes_and_defaults():
    assert str(signature(get("clip"))) == "(data, a_min: float, a_max: float, *, out=None, name=None)"
    text = str(signature(get("FullyConnected")))
    assert text.startswith("(data, weight, bias=None, *, num_hidden: int, no_bias: bool = False")
    text = str(signature(get("Embedding"), ("name", "attr"), made=True))
    assert text.startswith("(data, weight=None, *, input_dim: int, ")
    assert text.endswith(", name=None, attr=None)")
    for op in operators():
        if not (op.signature.variadic or op.signature.per_instance):
            assert set(signature(op).parameters) >= {*op.signature.input_names, *op.signature.schema.names}
    parameters = signature(get("Concat")).parameters
    assert parameters["data"].kind is inspect.Parameter.VAR_POSITIONAL
    assert parameters["dim"].kind is inspect.Parameter.KEYWORD_ONLY


def test_functions_of_a_namespace_are_made_at_first_use():
    made = []

    def make(op, name):
        made.append(name)
        return give_signature(lambda *args: args, op, name, "somewhere")

    space = Namespace("nd.linalg", ("_linalg_", "linalg_"), make)
    assert space.gemm2 is space.gemm2
    assert made == ["gemm2"]
    assert (space.gemm2.__name__, space.gemm2.__module__) == ("gemm2", "somewhere")
    assert space.gemm2.__doc__ == get("_linalg_gemm2").doc
    assert "gemm2" in dir(space)
    with pytest.raises(UnknownOperatorError, match=r"nd\.linalg has no operator 'gem2'\. Did you mean 'gemm2'"):
        _ = space.gem2
    assert not hasattr(space, "__wrapped__")
