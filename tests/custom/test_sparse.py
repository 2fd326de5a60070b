"""Users' operators on sparse arrays: ``infer_storage_type`` of a Prop declares storage types of inputs and outputs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import opreg as mx
from opreg import autograd, nd
from opreg.errors import ArgumentError, NotDifferentiableError

_NUMBERS = itertools.count()


def registered(forward, backward, stypes, stypes_backward=None, inputs=("data",), states=()):
    """Name of an operator that records the storage types of its inputs."""
    seen = {}

    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            seen["forward"] = [[each.stype for each in arrays] for arrays in (in_data, out_data, aux)]
            forward(self, req, in_data, out_data, aux)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            seen["backward"] = [[each.stype for each in arrays] for arrays in (out_grad, in_data, out_data, in_grad)]
            seen["req"] = req
            backward(self, req, out_grad, in_data, in_grad)

    body = {"list_arguments": lambda self: list(inputs), "list_auxiliary_states": lambda self: list(states),
            "infer_shape": lambda self, shapes: (shapes, [shapes[0]], [[1]] * len(states)),
            "create_operator": lambda self, ctx, shapes, dtypes: Op()}
    if stypes is not None:
        body["infer_storage_type"] = lambda self, given: stypes(given)
    if stypes_backward is not None:
        body["infer_storage_type_backward"] = lambda self, *given: stypes_backward(*given)
    name = f"_example_sparse{next(_NUMBERS)}"
    mx.operator.register(name)(type("Prop", (mx.operator.CustomOpProp,), body))
    return name, seen


def _like(numbers, x):
    return nd.sparse.csr_matrix((numbers, x.indices, x.indptr), shape=x.shape)


def _square(self, req, in_data, out_data, aux):
    x = in_data[0]
    self.assign(out_data[0], req[0], _like(x.data * x.data, x) if x.stype == "csr" else x * x)


def _square_back(self, req, out_grad, in_data, in_grad):
    x, g = in_data[0], out_grad[0]
    if x.stype == "csr":
        self.assign(in_grad[0], req[0], _like(2 * x.data * nd.array(g.asnumpy()[x.asnumpy() != 0]), x))
    else:
        self.assign(in_grad[0], req[0], 2 * x * g)


X = np.array([[0, 2, 0], [3, 0, -1]], "float32")


@pytest.mark.parametrize("gradient", ["csr", "default"])
@pytest.mark.parametrize("asked, given", [("csr", "csr"), ("csr", "default"), ("default", "default")])
def test_an_operator_receives_the_arrays_that_its_prop_declares(asked, given, gradient):
    name, seen = registered(_square, _square_back, lambda stypes: ([asked], [asked], []),
                            lambda g, ins, outs, grads, aux: ([given], [asked], [asked], [given], []))
    x = nd.array(X).tostype("csr")
    x.attach_grad(stype=gradient)
    with autograd.record():
        y = nd.Custom(x, op_type=name)
        z = y * 3
    z.backward(nd.ones(X.shape))
    assert seen["forward"] == [[asked], [asked], []]
    assert seen["backward"] == [[given], [asked], [asked], [given]] and seen["req"] == ["write"]
    assert (y.stype, x.grad.stype) == (asked, gradient)
    np.testing.assert_array_equal(y.asnumpy(), X * X)
    np.testing.assert_array_equal(x.grad.asnumpy(), 6 * X)


@pytest.mark.parametrize("wanted", ["row_sparse", "default"])
def test_gradients_of_some_rows_reach_a_weight(wanted):
    def forward(self, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], nd.dot(in_data[0], in_data[1]))
        aux[0][:] += 1

    def backward(self, req, out_grad, in_data, in_grad):
        self.assign(in_grad[1], req[1], nd.dot(in_data[0], out_grad[0], transpose_a=True))

    name, seen = registered(forward, backward, lambda stypes: (stypes, ["default"]),
                            lambda g, ins, outs, grads, aux: (g, ins, outs, ["default", "row_sparse"]),
                            ("data", "weight"), ("count",))
    x, weight, count = nd.array(X).tostype("csr"), nd.array(np.arange(9.0).reshape(3, 3)), nd.zeros((1,))
    weight.attach_grad(stype=wanted)
    for _ in range(2):
        with autograd.record():
            y = nd.Custom(x, weight, count, op_type=name)
        y.backward()
    assert seen["forward"] == [["csr", "default"], ["default"], ["default"]] and seen["req"] == ["null", "write"]
    np.testing.assert_array_equal(y.asnumpy(), X @ np.arange(9.0).reshape(3, 3))
    np.testing.assert_array_equal(weight.grad.asnumpy(), X.T @ np.ones((2, 3)))
    assert weight.grad.stype == wanted and count.asscalar() == 2


def test_a_prop_without_storage_types_gets_dense_arrays():
    name, seen = registered(_square, _square_back, None)
    x = nd.array(X).tostype("csr")
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type=name)
    y.backward()
    assert seen["forward"] == [["default"], ["default"], []] and y.stype == "default"
    np.testing.assert_array_equal(x.grad.asnumpy(), 2 * X)


@pytest.mark.parametrize("answer", [
    None, (["csr"],), (["csr"], ["dense"], []), (["csr"], ["csr", "csr"]), ("csr", "csr"), (["csr"], [None], [])])
def test_returned_storage_types_are_checked(answer):
    name, _ = registered(_square, _square_back, lambda stypes: answer)
    words = f"{name}.*infer_storage_type returned .*, expected lists of 1, 1, 0 storage types, each of csr, default"
    with pytest.raises(ArgumentError, match=words):
        nd.Custom(nd.array(X).tostype("csr"), op_type=name)


def test_inputs_of_the_caller_are_not_changed():
    def forward(self, req, in_data, out_data, aux):
        in_data[0][:] = nd.zeros(X.shape).tostype("csr")

    x = nd.array(X).tostype("csr")
    name, _ = registered(forward, _square_back, lambda stypes: (stypes, stypes))
    assert nd.Custom(x, op_type=name).asnumpy().sum() == 0
    np.testing.assert_array_equal(x.asnumpy(), X)


def test_a_second_gradient_is_refused():
    name, _ = registered(_square, _square_back, lambda stypes: (stypes, stypes))
    x = nd.array(X).tostype("csr")
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type=name)
        with pytest.raises(NotDifferentiableError, match="tostype"):
            autograd.grad(y, x, create_graph=True)
