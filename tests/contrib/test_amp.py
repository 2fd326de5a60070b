"""Graphs partly in half precision, and modules that correct gradients by those of all data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import opreg as mx
from opreg.contrib import amp
from opreg.contrib.svrg_optimization import SVRGModule
from opreg.contrib.svrg_optimization.svrg_module import SVRGModule as same_module
from opreg.errors import ArgumentError

nd, sym = mx.nd, mx.sym


def net():
    hidden = sym.FullyConnected(sym.var("data"), num_hidden=4, name="fc1")
    hidden = sym.Activation(sym.BatchNorm(hidden, name="bn"), act_type="relu", name="act")
    hidden = sym.FullyConnected(hidden, num_hidden=4, name="fc2") + hidden
    return sym.SoftmaxOutput(hidden * sym.exp(hidden, name="e"), name="softmax")


def weights(symbol):
    rng = np.random.default_rng(0)
    args, _, aux = symbol.infer_shape(data=(2, 3))
    return ({name: nd.array(rng.normal(size=shape)) for name, shape in zip(symbol.list_arguments(), args)
             if name not in ("data", "softmax_label")},
            {name: nd.ones(shape) for name, shape in zip(symbol.list_auxiliary_states(), aux)})


def dtypes_inside(symbol):
    inside = symbol.get_internals()
    return dict(zip(inside.list_outputs(), [np.dtype(each).name for each in inside.infer_type(data="float32")[1]]))


def output(symbol, args, aux):
    executor = symbol.bind(mx.cpu(), {**args, "data": nd.array(np.arange(6).reshape(2, 3) / 6),
                                      "softmax_label": nd.zeros(2)}, aux_states=aux)
    return executor.forward()[0]


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_converted_symbols_lower_products_and_keep_softmax_in_float32(target):
    found = dtypes_inside(amp.convert_symbol(net(), target))
    assert {name: found[f"{name}_output"] for name in ("fc1", "bn", "act", "fc2", "e", "softmax")} == {
        "fc1": target, "bn": target, "act": target, "fc2": target, "e": "float32", "softmax": "float32"}
    assert found["data"] == found["fc1_weight"] == "float32"


@pytest.mark.parametrize("optional", [False, True])
def test_a_model_gives_nearly_the_same(optional):
    symbol = net()
    args, aux = weights(symbol)
    converted = amp.convert_model(symbol, args, aux, cast_optional_params=optional)
    assert converted[1]["fc1_weight"].dtype is (np.float16 if optional else np.float32)
    assert converted[1]["bn_gamma"].dtype is converted[2]["bn_moving_mean"].dtype is np.float32
    expected, found = output(symbol, args, aux), output(*converted)
    assert found.dtype is np.float32
    np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), atol=2e-2)
    assert (found.asnumpy() != expected.asnumpy()).any()  # it was computed otherwise


def test_casts_are_shared_and_left_out_of_files():
    source = sym.relu(sym.var("data"), name="source")
    joined = sym.FullyConnected(source, num_hidden=2, name="a") + sym.FullyConnected(source, num_hidden=2, name="b")
    converted = amp.convert_symbol(joined)
    names = converted.get_internals().list_outputs()
    assert len([name for name in names if name.startswith("source_amp_cast")]) == 1
    again = mx.sym.load_json(converted.tojson())
    assert again.list_arguments() == joined.list_arguments() and "amp" not in converted.tojson()


def test_some_nodes_stay_unchanged():
    found = dtypes_inside(amp.convert_symbol(net(), excluded_sym_names=["fc1", "fc2"]))
    assert set(found.values()) == {"float32"}
    found = dtypes_inside(amp.convert_symbol(net(), target_dtype_ops=["exp"], fp32_ops=["SoftmaxOutput"]))
    assert found["e_output"] == "float16" and found["fc1_output"] == "float32"
    found = dtypes_inside(amp.convert_symbol(net(), conditional_fp32_ops=[("Activation", "act_type", ["relu"])]))
    assert found["bn_output"] == "float16" and found["act_output"] == "float32"


def test_lists_of_operators_are_disjoint():
    assert amp.list_lp16_ops() == ["Convolution", "Deconvolution", "FullyConnected", "RNN"]
    lists = [amp.list_lp16_ops(), amp.list_fp32_ops(), amp.list_widest_type_cast(), amp.list_lp16_fp32_ops()]
    joined = [name for each in lists for name in each]
    assert len(joined) == len(set(joined)) and {"exp", "Concat", "relu"} < set(joined)
    assert amp.list_conditional_fp32_ops("bfloat16")[0] == ("Activation", "act_type", ["softrelu"])


def test_losses_are_scaled_for_an_optimizer():
    optimizer = mx.optimizer.create("sgd", learning_rate=1.0, rescale_grad=0.5)
    amp.init_trainer(optimizer)
    weight = nd.ones(1)
    weight.attach_grad()
    with mx.autograd.record():
        loss = weight * 3
        with amp.scale_loss([loss], optimizer) as (scaled,):
            scaled.backward()
    assert weight.grad.asscalar() == 3 * 2 ** 16
    mx.optimizer.get_updater(optimizer)(0, weight.grad, weight)
    assert weight.asscalar() == 1 - 3 * 0.5


def test_the_factor_follows_overflow():
    scaler = amp.LossScaler()
    assert scaler.has_overflow([nd.ones(2), nd.array([np.nan])]) and scaler.loss_scale == 2 ** 15
    for _ in range(2000):
        assert not scaler.has_overflow([])
    assert scaler.loss_scale == 2 ** 16


@pytest.mark.parametrize("call, kind, words", [
    (lambda: amp.convert_symbol(1), TypeError, "expected a Symbol"),
    (lambda: amp.convert_symbol(net(), "float64"), ArgumentError, "float16, bfloat16, got float64"),
    (lambda: amp.convert_symbol(net(), excluded_sym_names=["fc9"]), ArgumentError, "no node fc9"),
    (lambda: amp.convert_symbol(net(), target_dtype_ops=["exp"]), ArgumentError, "exp cannot be given both"),
    (lambda: amp.init_trainer(1), TypeError, "expected an Optimizer"),
    (lambda: amp.scale_loss(1, mx.optimizer.create("sgd")).__enter__(), ArgumentError, "init_trainer"),
    (lambda: amp.unscale(mx.optimizer.create("sgd")), ArgumentError, "rescale_grad"),
    (lambda: SVRGModule(net()), ArgumentError, "update_freq: expected a positive number of epochs, got None"),
])
def test_wrong_uses_of_mixed_precision_are_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_init_warns_once_that_it_has_no_effect(monkeypatch):
    monkeypatch.setattr(amp, "_STATE", {})
    with pytest.warns(UserWarning, match="convert_symbol and convert_model put casts into a graph"):
        amp.init()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        amp.init("bfloat16")
    assert not amp._amp_initialized  # libraries ask it whether functions cast their inputs


def test_buckets_are_converted():
    def make(length):
        hidden = sym.FullyConnected(sym.mean(sym.var("data"), axis=1), num_hidden=2, name="fc")
        return sym.SoftmaxOutput(hidden, name="softmax"), ["data"], ["softmax_label"]

    module = mx.mod.BucketingModule(make, default_bucket_key=4)
    shapes = [("data", (2, 4, 3))], [("softmax_label", (2,))]
    module.bind(*shapes)
    module.init_params(mx.init.One())
    other = amp.convert_bucketing_module(module, cast_optional_params=True)
    other.bind(*shapes)
    assert other.get_params()[0]["fc_weight"].dtype is np.float16
    batch = mx.io.DataBatch([nd.ones((2, 4, 3))], [nd.zeros(2)], bucket_key=4, provide_data=shapes[0],
                            provide_label=shapes[1])
    other.forward(batch, is_train=False)
    assert other.get_outputs()[0].asnumpy().tolist() == [[0.5, 0.5]] * 2


# -------------------------------------------------------------------- gradients corrected by those of all


def test_corrected_gradients_of_one_batch_are_those_of_all():
    """The correction leaves the mean gradient if the data are a single batch, or if no weight has moved yet."""
    assert same_module is SVRGModule
    symbol = sym.LinearRegressionOutput(sym.FullyConnected(sym.var("data"), num_hidden=1, name="fc"), sym.var("y"))
    data = mx.io.NDArrayIter(np.arange(12.0).reshape(6, 2) / 6, np.arange(6.0), 2, label_name="y")
    module = SVRGModule(symbol, label_names=["y"], update_freq=1, context=[mx.cpu(0), mx.cpu(1)])
    module.bind(data.provide_data, data.provide_label)
    module.init_params(mx.init.One())
    module.init_optimizer(optimizer_params={"learning_rate": 0.1})
    module.update_full_grads(data)
    module.update_full_grads(data)  # takes the place of the one before
    data.reset()
    grads = []
    for batch in data:
        module.forward(batch, is_train=True)
        module.backward()
        for mine, before, mean in zip(module._exec_group.execs, module._mod_aux._exec_group.execs,
                                      module._param_dict):
            np.testing.assert_allclose(mine.grad_dict["fc_weight"].asnumpy(),
                                       before.grad_dict["fc_weight"].asnumpy(), rtol=1e-6)
            grads.append(mean["fc_weight"].asnumpy())
    x, y = np.arange(12.0).reshape(6, 2) / 6, np.arange(6.0)
    full = ((x.sum(1) - y)[:, None] * x).sum(0) / 3
    np.testing.assert_allclose(grads[0] + grads[1], [full], rtol=1e-5)
    before = module.get_params()[0]["fc_weight"].asnumpy()
    module.update()
    np.testing.assert_allclose(module.get_params()[0]["fc_weight"].asnumpy(), before - 0.1 * full / 2, rtol=1e-5)


def test_a_converted_network_learns():
    symbol = sym.LinearRegressionOutput(sym.FullyConnected(sym.var("data"), num_hidden=1, name="fc"), sym.var("y"))
    data = mx.io.NDArrayIter(np.arange(8.0).reshape(8, 1) / 8, np.arange(8.0) / 4 + 1, 2, label_name="y")
    module = SVRGModule(symbol, label_names=["y"], update_freq=2)
    module.fit(data, num_epoch=60, eval_metric="mse", optimizer_params={"learning_rate": 0.5})
    args, _ = module.get_params()
    np.testing.assert_allclose([args["fc_weight"].asscalar(), args["fc_bias"].asscalar()], [2, 1], atol=0.02)
