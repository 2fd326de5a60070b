"""Errors of mistaken calls of operators."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import opreg as mx
from opreg.errors import OpError

ARRAY, SYMBOL = mx.nd.ones((2,)), mx.sym.Variable("s")
DOUBLE = mx.nd.ones((2,), dtype="float64")


@mx.operator.define(name="messages_mish")
def mish(x, *, beta: float = 1.0):
    return x * beta


@pytest.mark.parametrize("call, words", [
    (lambda: mx.nd.exp(SYMBOL), "operator exp: input data is a Symbol, which has no values .*Write sym.exp"),
    (lambda: mx.nd.dot(ARRAY, SYMBOL), "operator dot: input rhs is a Symbol.*Write sym.dot"),
    (lambda: mx.nd.concat(ARRAY, SYMBOL), "operator Concat: input 1 is a Symbol.*Write sym.Concat"),
    (lambda: mx.sym.exp(ARRAY), "operator exp: input data is an array, expected a symbol.*nd.exp .*Variable"),
    (lambda: mx.sym.concat(SYMBOL, ARRAY), "input 1 is an array, expected a symbol"),
    (lambda: SYMBOL + ARRAY, "operator elemwise_add: input rhs is an array, expected a symbol"),
    (lambda: ARRAY + SYMBOL, "operator broadcast_add: input lhs is an array, expected a symbol"),
    (lambda: mx.nd.exp([1.0, 2.0]), r"operator exp: input data must be .*, got list; nd.array\(...\) makes an array"),
    (lambda: mx.sym.exp(np.ones(2)), r"got ndarray; nd.array\(...\)"),
    (lambda: mx.nd.exp(2), r"got int; nd.array\(...\)"),
    (lambda: mish(2.0), r"got float; nd.array\(...\) makes an array"),
    (lambda: ARRAY + DOUBLE, r"float32 and float64 differ; .astype\('float32'\) converts the other"),
    (lambda: mx.nd.messages_mish(ARRAY), "A user's operator has this name: nd.custom.messages_mish"),
    (lambda: mx.sym.messages_mish(SYMBOL), "A user's operator has this name: sym.custom.messages_mish"),
    (lambda: mx.nd.Custom(ARRAY, op_type="messages_mihs"), "Did you mean 'messages_mish'"),
    (lambda: mx.sym.Custom(SYMBOL, op_type="arctanh"), "A built-in one has the name: nd.arctanh, sym.arctanh"),
    (lambda: mx.nd.softmacs(ARRAY), "nd has no operator 'softmacs'. Did you mean 'softmax'"),
    (lambda: mx.sym._plus_scalr(SYMBOL), "Did you mean '_plus_scalar'"),
    (lambda: mx.sym.custm, "sym has no operator 'custm'. Did you mean '[a-z]*'\\?$"),
    (lambda: mx.sym.custom(SYMBOL, op_type="messages_mish"),
     r"sym\.custom holds functions and is not callable: sym\.Custom\(…, op_type='name'\) or sym\.custom\.name\(…\)"),
    (lambda: mx.nd.linalg(ARRAY), r"nd\.linalg holds functions and is not callable: nd\.linalg\.name\(…\)"),
    (lambda: mx.nd.array([2 ** 70], dtype="int64"), "an array of int64: .* too large"),
])
def test_errors_of_wrong_calls_say_what_to_write(call, words):
    with pytest.raises(OpError, match=words):
        call()


@pytest.mark.parametrize("name", ["mish", "minu", "sparse_ab", "npx_rel", "plux", "contrib_box"])
def test_internal_names_are_not_suggested(name):
    for space in (mx.nd, mx.sym):
        with pytest.raises(OpError) as caught:
            getattr(space, name)
        assert "'_" not in str(caught.value)


@pytest.mark.parametrize("name, words", [
    ("shape", "infer_shape"), ("ndim", "infer_shape"), ("size", "infer_shape"), ("dtype", "infer_type"),
    ("attach_grad", "args_grad"), ("reshap", "Did you mean 'reshape'")])
def test_errors_for_attributes_of_arrays_on_symbols_say_what_to_write(name, words):
    assert not hasattr(SYMBOL, name)
    with pytest.raises(AttributeError, match=f"a Symbol has no attribute '{name}'.*{words}"):
        getattr(SYMBOL, name)


@pytest.mark.parametrize("space, values", [
    (mx.nd, [mx.nd.ones((2, 1, 3)), mx.nd.ones((1, 2)), mx.nd.ones((1,))]),
    (mx.sym, [mx.sym.Variable(name) for name in ("data", "label", "lengths")])])
def test_inputs_by_position_fill_the_names_there_are(space, values):
    one = space.CTCLoss(*values, use_label_lengths=True)
    other = space.CTCLoss(values[0], values[1], label_lengths=values[2], use_label_lengths=True)
    if space is mx.sym:
        shapes = {"data": (2, 1, 3), "label": (1, 2), "lengths": (1,)}
        assert one.list_arguments() == other.list_arguments() == list(shapes)
        one, other = (each.bind(mx.cpu(), {name: mx.nd.ones(shape) for name, shape in shapes.items()}).forward()[0]
                      for each in (one, other))
    np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


def test_inputs_that_have_no_place_are_refused_by_their_names():
    values = [mx.nd.ones((2, 1, 3)), mx.nd.ones((1, 2)), mx.nd.ones((1,)), mx.nd.ones((1,))]
    with pytest.raises(OpError, match="with these attributes there is no input data_lengths"):
        mx.nd.CTCLoss(*values, use_label_lengths=True)
    with pytest.raises(OpError, match="with these attributes there is no input data_lengths"):
        mx.nd.CTCLoss(values[0], values[1], data_lengths=values[2], use_label_lengths=True)
    with pytest.raises(OpError, match="with these attributes there is no input data_lengths"):
        mx.nd.CTCLoss(*values[:3])


@pytest.mark.parametrize("given, words", [
    (mx.nd.ones((2,)), "NDArray of shape"), (np.ones(2), "ndarray of shape"), ([mx.nd.ones((2,))], "list;"),
    ({"s": ARRAY}, "dict;")])
def test_arguments_of_forward_go_by_name(given, words):
    executor = mx.sym.exp(SYMBOL).bind(mx.cpu(), {"s": ARRAY})
    with pytest.raises(OpError, match=f"forward: its first parameter is is_train, got {words}.*go by name"):
        executor.forward(given)


def test_text_in_place_of_a_number_names_the_array_as_users_know_it():
    with pytest.raises(OpError, match=r"^NDArray \* str: '2' is text"):
        mx.operator.define(lambda x: x * "2", name="messages_text")(ARRAY)


@pytest.mark.parametrize("name, words", [
    ("tvmop", "numba"), ("library", "CustomOp"), ("torch", "CustomOp")])
def test_errors_for_names_that_only_mxnet_has_say_so(name, words):
    assert not hasattr(mx, name)
    for refused in (lambda: getattr(mx, name), lambda: importlib.import_module(f"opreg.{name}"),
                    lambda: exec(f"from opreg import {name}"), lambda: exec(f"import opreg.{name}.inner")):
        with pytest.raises((AttributeError, ModuleNotFoundError),
                           match=f"'{name}' of MXNet is no part of opreg: .*{words}.*docs/mxnet.md"):
            refused()


@pytest.mark.usefixtures("unregistered")
@pytest.mark.parametrize("manner", ["nd", "sym"])
def test_a_name_with_a_dot_is_called_by_custom(manner):
    mx.operator.define(lambda x: x, name="_example.dotted")
    with pytest.raises(OpError, match=rf"The operator '_example\.dotted' is called by {manner}\.Custom\("):
        _ = getattr(mx, manner).custom.dotted
