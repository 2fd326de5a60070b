"""Initial values of auxiliary states of users' operators: in executors, in modules, in Cells and in files."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.contrib import amp
from opreg.errors import ArgumentError, AttrError

_NUMBERS = itertools.count()
BEGINNINGS = [(["mean"], 0.0), ({"mean": "zeros"}, 0.0), ({"mean": "ones"}, 1.0), ({"mean": mx.init.Constant(3)}, 3.0),
              ({"mean": '["constant", {"value": 2}]'}, 2.0), ({"mean": None}, 0.0)]


def centring(auxiliary: Any) -> Any:
    def centre(x: Any, mean: Any, *, is_train: bool) -> Any:
        if is_train:
            mean[:] = 0.5 * mean + 0.5 * x.mean(axis=0)
        return x - mean

    op = mx.operator.define(centre, name=f"test_states_{next(_NUMBERS)}", auxiliary=auxiliary)
    op.fill(lambda ins, outs: [ins[0], None if ins[0] is None else ins[0][1:]])
    op.grad(lambda g, ins, outs: g)
    return op


class _Centre(mx.operator.CustomOp):
    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        if is_train:
            aux[0][:] = 0.5 * aux[0] + 0.5 * in_data[0].mean(axis=0)
        self.assign(out_data[0], req[0], in_data[0] - aux[0])

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("test_states_prop")
class _CentreProp(mx.operator.CustomOpProp):
    def list_auxiliary_states(self) -> Any:
        return ["mean"]

    def infer_shape(self, in_shape: Any) -> Any:
        return in_shape, [in_shape[0]], [in_shape[0][1:]]

    def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
        return _Centre()


def net(op: Any, *state: Any) -> Any:
    return op(mx.sym.var("data"), *state, name="op")


def module(symbol: Any) -> Any:
    made = mx.mod.Module(symbol, label_names=None)
    made.bind([("data", (4, 2))], for_training=False)
    return made


@pytest.mark.parametrize("auxiliary, number", BEGINNINGS)
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("filed", [False, True])
def test_states_begin_with_declared_values(auxiliary: Any, number: float, own: bool, filed: bool) -> None:
    symbol = net(centring(auxiliary), *[mx.sym.var("state")] * own)
    if filed:
        symbol = mx.sym.load_json(symbol.tojson())
    name = "state" if own else "op_mean"
    assert symbol.list_auxiliary_states() == [name]
    executor = symbol.simple_bind(mx.cpu(), data=(4, 2))
    np.testing.assert_array_equal(executor.aux_dict[name].asnumpy(), [number] * 2)
    for initializer in (mx.init.Uniform(), mx.init.Mixed([".*"], [mx.init.Xavier()])):
        made = module(symbol)
        made.init_params(initializer)
        np.testing.assert_array_equal(made.get_params()[1][name].asnumpy(), [number] * 2)
    cell = mx.nn.from_symbol(symbol)
    cell(mx.Tensor(np.zeros((4, 2), np.float32)))
    (state,) = cell.get_parameters()
    np.testing.assert_array_equal(state.asnumpy(), [number] * 2)


def test_the_initializer_of_a_variable_takes_precedence() -> None:
    symbol = net(centring({"mean": "ones"}), mx.sym.var("state", init=mx.init.Constant(5)))
    assert symbol.simple_bind(mx.cpu(), data=(4, 2)).aux_dict["state"].asnumpy().tolist() == [5, 5]
    made = module(symbol)
    made.init_params()
    assert made.get_params()[1]["state"].asnumpy().tolist() == [5, 5]


def test_states_of_a_shared_executor_stay() -> None:
    symbol = net(centring({"mean": "ones"}))
    first = symbol.simple_bind(mx.cpu(), data=(4, 2))
    first.aux_dict["op_mean"][:] = 7
    for other in (first.reshape(data=(8, 2), allow_up_sizing=True),
                  symbol.simple_bind(mx.cpu(), data=(4, 2), shared_exec=first, shared_buffer={})):
        assert other.aux_dict["op_mean"].asnumpy().tolist() == [7, 7]


@pytest.mark.parametrize("op", [centring(["mean"]), mx.operator.get("custom.test_states_prop")])
def test_a_module_trains_an_operator_with_a_state(op: Any) -> None:
    data = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    trained = mx.mod.Module(mx.sym.LinearRegressionOutput(op(data, name="op"), name="lro"), label_names=["lro_label"])
    batches = mx.io.NDArrayIter(np.ones((8, 3), np.float32), np.ones((8, 2), np.float32), 4, label_name="lro_label")
    trained.fit(batches, num_epoch=1, initializer=mx.init.One())
    assert (trained.get_params()[1]["op_mean"].asnumpy() != 0).all()


def test_a_weight_without_a_known_name_is_refused() -> None:
    made = module(net(centring(["mean"])) * mx.sym.var("factor", shape=(4, 2)))
    with pytest.raises(ArgumentError, match="no initialization is defined for arrays named 'factor'"):
        made.init_params()


@pytest.mark.parametrize("auxiliary, kind, words", [
    ({"mean": "zreos"}, AttrError, "zreos.*Did you mean 'zeros'.*the state 'mean'"),
    ({"maen": "zeros"}, ArgumentError, r"'maen' is not an input\. Did you mean 'mean'"),
    ({"mean": 3}, AttrError, "expected one or its name, got 3"),
    ({"mean": lambda name, array: None}, ArgumentError, "expected an initializer or its name"),
])
def test_invalid_initial_values_are_refused(auxiliary: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind) as caught:
        centring(auxiliary)
    assert re.search(words, "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())]), re.S)


def test_a_state_that_is_left_out_on_arrays_says_what_to_give() -> None:
    op = centring({"mean": "ones"})
    with pytest.raises(ArgumentError, match="missing mean, a state: an array, in a Cell a Parameter"):
        op(mx.nd.ones((4, 2)))
    with pytest.raises(ArgumentError, match="missing mean, a state"):
        op(mx.Tensor([[1.0, 2.0]]))


@pytest.mark.parametrize("op", [centring({"mean": "zeros"}), mx.operator.get("custom.test_states_prop")],
                         ids=["function", "prop"])
def test_states_and_their_operands_stay_float32_in_mixed_precision(op: Any) -> None:
    symbol = op(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="op")
    executor = amp.convert_symbol(symbol).simple_bind(mx.cpu(), data=(4, 2))
    executor.forward(is_train=True)
    assert executor.outputs[0].dtype == executor.aux_dict["op_mean"].dtype == np.float32


@pytest.mark.parametrize("op", [centring({"mean": "zeros"}), mx.operator.get("custom.test_states_prop")],
                         ids=["function", "prop"])
@pytest.mark.parametrize("several", [False, True])
def test_a_second_backward_sees_the_states_of_its_forward(op: Any, several: bool) -> None:
    """The forward that it runs again begins with the states that the caller's began with, and changes none."""
    symbol = net(op) ** 2
    if several:  # an executor of stages
        symbol = mx.sym.Group([symbol, mx.sym.contrib.boolean_mask(symbol, mx.sym.var("mask"))])
    shapes = {"data": (2, 3), **({"mask": (2,)} if several else {})}
    executor = symbol.simple_bind(mx.cpu(), grad_req={"data": "write"}, **shapes)
    for array in executor.arg_arrays:
        array[:] = mx.nd.ones(array.shape)
    gradients = []
    for _ in range(2):
        executor.forward(is_train=True)
    for _ in range(3):
        executor.backward([mx.nd.ones(out.shape) for out in executor.outputs])
        gradients.append(executor.grad_dict["data"].asnumpy().tolist())
        assert executor.outputs[0].asnumpy().tolist() == [[0.0625] * 3] * 2
        assert executor.aux_dict["op_mean"].asnumpy().tolist() == [0.75] * 3
    assert gradients[1:] == gradients[:1] * 2 == [[[0.5 * (1 + several)] * 3] * 2] * 2
    executor.forward(is_train=False)  # the next backward runs a training pass from the states as they are
    executor.backward([mx.nd.ones(out.shape) for out in executor.outputs])
    assert executor.outputs[0].asnumpy().tolist() == [[0.125 ** 2] * 3] * 2
