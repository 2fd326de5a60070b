"""Modules and the parts of a training loop: callbacks, checkpoints, monitors."""

from __future__ import annotations

import collections
import errno
import logging
import warnings

import numpy as np
import pytest

import opreg as mx
from opreg.core import files
from opreg.errors import ArgumentError, FileFormatError, OpError, ShapeError
from opreg.train.model import BatchEndParam, load_checkpoint, load_params, save_checkpoint
from tests.questions import of_each

nd, sym = mx.nd, mx.sym


@pytest.fixture(autouse=True)
def seeded():
    mx.random.seed(3)


# ---------------------------------------------------------------------------------------------------- modules


def classifier(classes=3):
    net = sym.Activation(sym.FullyConnected(sym.var("data"), num_hidden=16, name="fc1"), act_type="relu")
    return sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=classes, name="fc2"), name="softmax")


def blobs(count=96, classes=3):
    rng = np.random.default_rng(0)
    label = rng.integers(0, classes, count)
    return (rng.normal(size=(count, 2)) * 0.3 + np.array([[0, 0], [3, 0], [0, 3]])[label]).astype("f"), label


def batches(size=16, **more):
    return mx.io.NDArrayIter(*blobs(**more), size, shuffle=False)


def trained(context=None, epochs=8, **more):
    module = mx.mod.Module(classifier(), context=context)
    module.fit(batches(), num_epoch=epochs, initializer=mx.init.Xavier(), optimizer_params={"learning_rate": 0.5},
               **more)
    return module


def test_fit_learns_and_logs_its_metric(caplog):
    with caplog.at_level(logging.INFO):
        module = trained(eval_data=batches(count=32))
    assert dict(module.score(batches(), ["acc", "ce"]))["accuracy"] > 0.97
    for words in ("Epoch[7] Train-accuracy=", "Epoch[7] Validation-accuracy=", "Epoch[0] Time cost="):
        assert words in caplog.text


def test_a_module_equals_executor_and_updater():
    net = classifier()
    module = mx.mod.Module(net)
    module.bind([("data", (16, 2))], [("softmax_label", (16,))])
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.01, "wd": 0.1})
    executor = net.simple_bind(mx.cpu(), data=(16, 2), grad_req={
        name: "null" if name in ("data", "softmax_label") else "write" for name in net.list_arguments()})
    executor.copy_params_from(*module.get_params())
    weights = [name for name in net.list_arguments() if name not in ("data", "softmax_label")]
    move = mx.optimizer.get_updater(mx.optimizer.create(
        "adam", learning_rate=0.01, wd=0.1, rescale_grad=1 / 16, param_idx2name=dict(enumerate(weights))))
    for batch in batches():
        module.forward_backward(batch)
        executor.forward(True, data=batch.data[0], softmax_label=batch.label[0])
        executor.backward()
        assert np.array_equal(module.get_outputs()[0].asnumpy(), executor.outputs[0].asnumpy())
        module.update()
        for index, name in enumerate(weights):
            move(index, executor.grad_dict[name], executor.arg_dict[name])
    for name, value in module.get_params()[0].items():
        assert np.array_equal(value.asnumpy(), executor.arg_dict[name].asnumpy())


def test_several_contexts_equal_one():
    def run(context):
        mx.random.seed(3)
        module = trained(context, epochs=2)
        return [value.asnumpy() for value in module.get_params()[0].values()], module.predict(batches()).asnumpy()

    one, several = run(mx.cpu(0)), run([mx.cpu(0), mx.cpu(1), mx.cpu(2)])
    assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(one[0], several[0]))
    assert np.allclose(one[1], several[1], atol=1e-5)


def test_predict_drops_padding_and_keeps_its_results():
    module = trained(epochs=1)
    odd = batches(count=40)
    whole = module.predict(odd)
    assert whole.shape == (40, 3)
    listed = module.predict(odd, merge_batches=False, num_batch=2)
    assert [len(each) for each in listed] == [1, 1]
    assert np.array_equal(listed[0][0].asnumpy(), whole.asnumpy()[:16])  # later batches did not write over it
    assert isinstance(module.predict(odd, always_output_list=True), list)
    assert [(number, outputs[0].shape) for outputs, number, _ in module.iter_predict(odd)] == \
        [(0, (16, 3)), (1, (16, 3)), (2, (8, 3))]
    assert np.allclose(module.predict(blobs(40)[0]).asnumpy(), whole.asnumpy(), atol=1e-6)


def test_contexts_agree_on_statistics_after_an_epoch():
    net = sym.SoftmaxOutput(sym.FullyConnected(sym.BatchNorm(sym.var("data"), name="bn"), num_hidden=3), name="softmax")
    module = mx.mod.Module(net, context=[mx.cpu(0), mx.cpu(1)])
    module.fit(batches(), num_epoch=1)
    one, other = (executor.aux_dict["bn_moving_mean"].asnumpy() for executor in module._exec_group.execs)
    assert np.array_equal(one, other) and one.any()


def test_metrics_are_read_before_callbacks_reset_them(caplog):
    class Count(mx.metric.EvalMetric):
        def update(self, labels, preds):
            self.sum_metric += 1.0
            self.num_inst += 1

    with caplog.at_level(logging.INFO):
        trained(epochs=1, eval_metric=Count("count"), batch_end_callback=lambda param: param.eval_metric.reset_local())
    assert "Epoch[0] Train-count=1.000000" in caplog.text


def test_batches_of_another_size_go_through_the_same_weights():
    module = trained(epochs=3)
    expected = module.predict(batches()).asnumpy()
    data, label = blobs()
    for first, last in ((0, 5), (5, 50), (50, 55)):
        module.forward(mx.io.DataBatch([nd.array(data[first:last])], [nd.array(label[first:last])]), is_train=False)
        assert np.allclose(module.get_outputs()[0].asnumpy(), expected[first:last], atol=1e-6)
    assert len(module._exec_group._shaped) == 3
    before = module.get_params()[0]["fc1_weight"].asnumpy()
    module.forward_backward(mx.io.DataBatch([nd.array(data[:5])], [nd.array(label[:5])]))
    module.update()
    assert not np.array_equal(module.get_params()[0]["fc1_weight"].asnumpy(), before)
    module.reshape([("data", (2, 2))], [("softmax_label", (2,))])
    assert module.output_shapes == [("softmax_output", (2, 3))]


def test_training_continues_from_checkpoints(tmp_path):
    prefix = str(tmp_path / "net")
    settings = dict(optimizer="adam", optimizer_params={"learning_rate": 0.02}, initializer=mx.init.Xavier())
    straight = mx.mod.Module(classifier())
    straight.fit(batches(), num_epoch=4, **settings)
    mx.random.seed(3)
    first = mx.mod.Module(classifier())
    save = mx.callback.module_checkpoint(first, prefix, 1, save_optimizer_states=True)
    first.fit(batches(), num_epoch=2, epoch_end_callback=save, **settings)
    assert sorted(each.name for each in tmp_path.iterdir()) == \
        ["net-0001.params", "net-0001.states", "net-0002.params", "net-0002.states", "net-symbol.json"]
    again = mx.mod.Module.load(prefix, 2, load_optimizer_states=True)
    again.fit(batches(), begin_epoch=2, num_epoch=4, **settings)
    for name, value in straight.get_params()[0].items():
        assert np.allclose(value.asnumpy(), again.get_params()[0][name].asnumpy(), atol=1e-6), name


@pytest.mark.parametrize("full", ["states", "params", "json"])
def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(full, tmp_path, monkeypatch, caplog):
    prefix = str(tmp_path / "net")
    module = trained(epochs=1)
    with caplog.at_level(logging.INFO):
        module.save_checkpoint(prefix, 1, save_optimizer_states=True)
    assert caplog.messages[-2:] == [f'Saved checkpoint to "{prefix}-0001.params"',
                                    f'Saved optimizer state to "{prefix}-0001.states"']
    caplog.clear()
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    module.fit(batches(), num_epoch=1, force_init=True)
    ends, draft = {"states": ".states", "params": ".params", "json": ".json"}, files._Draft.sync

    def sync(self):
        if self.target.endswith(ends[full]):
            raise OSError(errno.ENOSPC, "No space left on device")
        draft(self)

    monkeypatch.setattr(files._Draft, "sync", sync)
    caplog.set_level(logging.INFO)
    with pytest.raises(OSError, match="No space"):
        module.save_checkpoint(prefix, 1, save_optimizer_states=True)
    assert "Saved" not in caplog.text
    with pytest.raises(OSError, match="No space"):
        module.save_checkpoint(str(tmp_path / "other"), 1, save_optimizer_states=True)
    if full == "states":
        with pytest.raises(OSError, match="No space"):
            module.save_optimizer_states(f"{prefix}-0001.states")
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_params_files_restore_weights(tmp_path):
    name = str(tmp_path / "weights.params")
    module = trained(epochs=1)
    module.save_params(name)
    other = mx.mod.Module(classifier())
    other.bind(module.data_shapes, for_training=False)
    other.params_initialized = False
    other.load_params(name)
    assert np.array_equal(other.predict(batches()).asnumpy(), module.predict(batches()).asnumpy())
    nd.save(name, {"fc1_weight": nd.ones(1)})
    with pytest.raises(FileFormatError, match="begin with arg: or aux:"):
        other.load_params(name)


def test_auxiliary_states_move_and_fixed_weights_stay():
    net = sym.BatchNorm(sym.FullyConnected(sym.var("data"), num_hidden=4, name="fc"), name="bn", fix_gamma=False)
    net = sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=3, name="out"), name="softmax")
    module = mx.mod.Module(net, fixed_param_names=["fc_weight"])
    module.bind(batches().provide_data, batches().provide_label)
    module.init_params(mx.init.Xavier())
    args, aux = module.get_params()
    assert (aux["bn_moving_var"].asnumpy() == 1).all() and (args["bn_gamma"].asnumpy() == 1).all()
    module.fit(batches(), num_epoch=2)
    after, moved = module.get_params()
    assert np.array_equal(args["fc_weight"].asnumpy(), after["fc_weight"].asnumpy())
    assert not np.array_equal(args["out_weight"].asnumpy(), after["out_weight"].asnumpy())
    assert (moved["bn_moving_mean"].asnumpy() != 0).any()


def test_a_module_takes_output_gradients_and_returns_input_gradients():
    module = mx.mod.Module(sym.var("data") * sym.var("w_weight"), label_names=None)
    module.bind([("data", (2, 3))], inputs_need_grad=True)
    module.init_params(mx.init.Constant(3))
    module.forward(mx.io.DataBatch([nd.ones((2, 3))]))
    module.backward([nd.full((2, 3), 5)])
    assert (module.get_input_grads()[0].asnumpy() == 15).all()
    with pytest.raises(ArgumentError, match="inputs_need_grad"):
        trained(epochs=1).get_input_grads()


def test_states_are_neither_inputs_nor_weights():
    module = mx.mod.Module(sym.var("data") + sym.var("state"), label_names=None, state_names=["state"],
                           context=[mx.cpu(0), mx.cpu(1)])
    module.bind([("data", (4, 2))], for_training=False)
    module.init_params()
    module.set_states(value=2)
    module.forward(mx.io.DataBatch([nd.ones((4, 2))]))
    assert (module.get_outputs()[0].asnumpy() == 3).all()
    module.set_states(states=module.get_outputs())
    assert (module.get_states()[0].asnumpy() == 3).all()


@pytest.mark.parametrize("store", [None, "local"])
def test_states_for_mxnet_have_the_optimizer(store, tmp_path):
    one, other = (trained(epochs=epochs, optimizer="adam", kvstore=store and mx.kv.create(store)) for epochs in (2, 1))
    one.save_optimizer_states(str(tmp_path / "states"), format="mxnet")
    other.load_optimizer_states(str(tmp_path / "states"))
    assert other._optimizer._index_update_count == one._optimizer._index_update_count


def test_a_shared_module_has_the_same_weights():
    one = trained(epochs=1)
    other = mx.mod.Module(classifier())
    other.bind([("data", (4, 2))], [("softmax_label", (4,))], shared_module=one)
    assert other.params_initialized and other.optimizer_initialized
    data, label = blobs(4)
    other.forward_backward(mx.io.DataBatch([nd.array(data)], [nd.array(label)]))
    other.update()
    assert np.array_equal(one.get_params()[0]["fc2_bias"].asnumpy(), other.get_params()[0]["fc2_bias"].asnumpy())


def test_rebinding_keeps_the_weights():
    module = trained(epochs=2)
    before = module.predict(batches()).asnumpy()
    module.bind([("data", (8, 2))], [("softmax_label", (8,))], force_rebind=True)
    assert np.allclose(module.predict(batches(8)).asnumpy(), before, atol=1e-6)


def bound(net, shape=(2, 3), labels=None, init="one", **more):
    module = mx.mod.Module(net, label_names=[each[0] for each in labels or ()] or None, **more)
    module.bind([("data", shape)], labels)
    module.init_params(init)
    return module


def test_default_initial_weights_are_small():
    module = mx.mod.Module(classifier())
    module.bind([("data", (4, 20))])
    module.init_params()
    weight = module.get_params()[0]["fc1_weight"].asnumpy()
    assert 0.005 < abs(weight).max() <= 0.01
    buckets = mx.mod.BucketingModule(lambda key: (classifier(), ["data"], ["softmax_label"]), 1)
    buckets.bind([("data", (4, 20))], [("softmax_label", (4,))])
    buckets.init_params()
    assert abs(buckets.get_params()[0]["fc1_weight"].asnumpy()).max() <= 0.01


@pytest.mark.parametrize("net, value", [
    (sym.LeakyReLU(sym.var("data"), act_type="prelu"), 0.25),
    (sym.LeakyReLU(sym.var("data"), sym.var("g", init=mx.init.One()), act_type="prelu"), 1),
    (sym.var("data") * sym.var("w", init="zeros", shape=(2, 3)), 0),
])
def test_weights_with_an_initializer_of_their_own_need_no_other(net, value):
    for init in (mx.init.Uniform(5), None):
        (found,) = bound(net, init=init).get_params()[0].values()
        assert (found.asnumpy() == value).all()


@pytest.mark.parametrize("settings, names, words", [
    ({}, ["old_weight"], "there is no 'old_weight' in the graph: it is ignored"),
    ({}, ["a", "b"], "the graph does not have 'a', 'b': 2 names are ignored"),
    ({"allow_missing": True}, ["fc9_weight"], "there is no 'fc9_weight'"),
    ({"allow_extra": True}, ["old_weight"], None),
])
@pytest.mark.parametrize("sequential", [False, True])
def test_weights_of_another_network_are_ignored(sequential, settings, names, words):
    """A checkpoint begins the training of a network that has another last layer, by init_params and by fit."""
    weights = trained(epochs=1).get_params()[0]
    given = {name: value for name, value in weights.items() if not settings.get("allow_missing") or "fc1" in name}
    module = mx.mod.Module(classifier())
    if sequential:
        module = mx.mod.SequentialModule().add(module, take_labels=True)
    module.bind(batches().provide_data, batches().provide_label)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module.init_params(mx.init.One(), {**given, **{name: nd.ones(2) for name in names}}, {}, **settings)
    assert [words in str(warning.message) for warning in caught] == ([True] if words else [])
    assert np.array_equal(module.get_params()[0]["fc1_weight"].asnumpy(), weights["fc1_weight"].asnumpy())


def test_a_misspelt_weight_is_an_error_unless_weights_may_be_missing():
    weights = trained(epochs=1).get_params()[0]
    weights["fc2_wieght"] = weights.pop("fc2_weight")
    with pytest.raises(ArgumentError, match=r"there is no 'fc2_wieght' in the graph\. Did you mean 'fc2_weight'"):
        trained(epochs=1).set_params(weights, {})


@pytest.mark.parametrize("bucketing", [False, True])
def test_names_that_a_network_lacks_are_an_error_where_only_some_weights_are_set(bucketing):
    module = trained(epochs=1)
    if bucketing:
        module = mx.mod.BucketingModule(lambda key: (classifier(), ["data"], ["softmax_label"]), 1)
        module.fit(batches(), num_epoch=1)
    weights = module.get_params()[0]
    given, doubled = dict(weights, fc3_weight=nd.ones(2)), {"fc1_bias": weights["fc1_bias"] + 1}
    with pytest.raises(ValueError, match="no weight 'fc3_weight' in the network; allow_extra=True ignores it"):
        module.set_params({**given, **doubled}, {}, allow_missing=True)
    with pytest.raises(ValueError, match="no auxiliary state 'mean' in the network"):
        module.set_params({}, {"mean": nd.ones(2)}, allow_missing=True)
    assert np.array_equal(module.get_params()[0]["fc1_bias"].asnumpy(), weights["fc1_bias"].asnumpy())
    module.set_params({**given, **doubled}, {}, allow_missing=True, allow_extra=True)
    with pytest.warns(UserWarning, match="the weights are set already"):
        module.set_params(given, {}, allow_missing=True, force_init=False)
    assert np.array_equal(module.get_params()[0]["fc1_bias"].asnumpy(), doubled["fc1_bias"].asnumpy())


def test_weights_that_are_set_are_left_alone_and_so_are_all_when_one_is_wrong():
    module = trained(epochs=1)
    before = {name: value.asnumpy() for name, value in module.get_params()[0].items()}
    with pytest.warns(UserWarning, match="the weights are set already"):
        module.init_params(mx.init.One())
    wrong = {**{name: nd.zeros(value.shape) for name, value in before.items()}, "fc2_weight": nd.ones(3)}
    with pytest.raises(ShapeError, match="fc2_weight has shape"):
        module.set_params(wrong, {})
    assert all(np.array_equal(value.asnumpy(), before[name]) for name, value in module.get_params()[0].items())


def test_any_object_with_data_is_a_batch(caplog):
    Batch = collections.namedtuple("Batch", ["data"])
    module = bound(sym.var("data") * 2)
    for shape in ((2, 3), (3, 5)):
        module.forward(Batch([nd.ones(shape)]))
        assert module.get_outputs()[0].shape == shape
    module = trained(epochs=1)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            module.forward(Batch([nd.ones((16, 2))]), is_train=True)
    assert caplog.text.count("the training batch has no labels; softmax_label keep their values") == 1


def test_the_number_of_cached_executors_is_bounded():
    module = bound(sym.broadcast_mul(sym.var("data"), sym.var("w_weight", shape=(1, 3))), shape=(1, 3))
    for rows in [*range(1, 60), 7]:
        module.forward(mx.io.DataBatch([nd.full((rows, 3), rows)]))
        assert module.get_outputs()[0].asnumpy().tolist() == [[rows] * 3] * rows
    assert len(module._exec_group._shaped) <= 16
    assert module.get_params()[0]["w_weight"].asnumpy().tolist() == [[1, 1, 1]]


def test_a_given_optimizer_keeps_its_rescale_grad():
    """A module sets names and factors for an optimizer given by name; a given object keeps its own decay of biases, as
    in MXNet."""
    net = sym.LinearRegressionOutput(sym.FullyConnected(sym.var("data"), num_hidden=1, name="fc"), sym.var("y"))
    found = []
    for optimizer in (mx.optimizer.SGD(learning_rate=0.1, wd=0.5, rescale_grad=0.5), "sgd"):
        module = bound(net, (2, 2), [("y", (2, 1))])
        module.set_params({"fc_weight": nd.ones((1, 2)), "fc_bias": nd.full((1,), 2)}, {})
        module.init_optimizer(optimizer=optimizer, optimizer_params=dict(learning_rate=0.1, wd=0.5))
        module.forward_backward(mx.io.DataBatch([nd.ones((2, 2))], [nd.ones((2, 1))]))
        module.update()
        found.append(float(module.get_params()[0]["fc_bias"].asnumpy()[0]))
    assert found == pytest.approx([1.6, 1.7])


def test_grad_req_of_other_networks_is_ignored():
    """Networks that are trained together, for example for several lengths, share one dict."""
    module = mx.mod.Module(sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc"), label_names=None)
    with pytest.warns(UserWarning, match="bind: grad_req: there is no 'parameters' in the graph") as caught:
        module.bind([("data", (2, 3))], grad_req={"data": "add", "parameters": "null"})
    assert [each.filename for each in caught] == [__file__]
    assert module._exec_group.grad_req == {"data": "add", "fc_weight": "write", "fc_bias": "write"}


@pytest.mark.parametrize("request_, fixed, expected", [
    ("write", None, (None, 2, 2)), ("add", None, (None, 4, 4)), ("write", ["fc_weight"], (None, None, 2)),
    ({"data": "write"}, None, (2, 2, 2)), ({"fc_bias": "null"}, None, (None, 2, None)),
    (["write", "write", "null"], None, (2, 2, None)), (["null", "add", "write"], ["fc_bias"], (None, 4, 2)),
])
def test_requests_skip_fixed_weights(request_, fixed, expected):
    module = mx.mod.Module(sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc"), label_names=None,
                           fixed_param_names=fixed)
    module.bind([("data", (2, 3))], grad_req=request_)
    module.init_params(mx.init.One())
    for _ in range(2):
        module.forward(mx.io.DataBatch([nd.ones((2, 3))]))
        module.backward([nd.ones((2, 2))])
    grads = [module._exec_group.execs[0].grad_dict[name] for name in ("data", "fc_weight", "fc_bias")]
    assert tuple(None if grad is None else float(grad.asnumpy().ravel()[0]) for grad in grads) == expected


@of_each([
    (lambda: mx.mod.Module(classifier(), data_names=["dat"]), ArgumentError, "Did you mean 'data'"),
    (lambda: mx.mod.Module(classifier()).init_params(), OpError, "call bind first"),
    (lambda: mx.mod.Module(classifier()).forward(None), OpError, "call bind and init_params first"),
    (lambda: mx.mod.Module(classifier()).save_checkpoint("x", 0), OpError, "call bind and init_params first"),
    (lambda: mx.mod.Module(classifier()).fit(batches(), num_epoch="2"), ArgumentError,
     "fit: num_epoch='2': expected an int of at least 0"),
    (lambda: mx.mod.Module(classifier()).fit(batches()), ArgumentError, "num_epoch is needed"),
    (lambda: mx.mod.Module(classifier()).fit(np.ones((4, 2)), num_epoch=1), ArgumentError,
     "train_data: expected an iterator"),
    (lambda: mx.mod.Module(classifier()).bind([("data", 3)]), ArgumentError,
     "expected a name and a shape, got 'data' and 3"),
    (lambda: mx.mod.Module(classifier()).fit(batches(count=8), num_epoch=1) or mx.mod.Module(classifier()).fit(
        mx.io.NDArrayIter(*blobs(8), 16, last_batch_handle="discard"), num_epoch=1), ArgumentError, "has no batches"),
    (lambda: mx.mod.Module(classifier()).bind([("x", (1, 2))]), ArgumentError,
     r"the inputs are data; got shapes of x. Module\(data_names"),
    (lambda: mx.mod.Module(classifier()).bind(["data"]), ArgumentError, "expected a list of pairs of a name and a"),
    (lambda: mx.mod.Module(classifier()).bind([("data", (1, 2))], grad_req={"fc1_wieght": "add"}),
     ArgumentError, "grad_req: there is no 'fc1_wieght' in the graph. Did you mean 'fc1_weight'"),
    (lambda: mx.mod.Module(classifier()).bind([("data", (1, 2))], grad_req=["add"]), ArgumentError,
     "expected 6 requests"),
    (lambda: bound(classifier(), labels=[("softmax_label", (2,))]).update_metric(
        mx.metric.create("acc", label_names=["label"]), [nd.ones(2)]), ArgumentError, "no label 'label'"),
    (lambda: bound(classifier(), labels=[("softmax_label", (2,))]).forward(
        mx.io.DataBatch([nd.ones((2, 3))], [nd.ones(2)] * 2)), ArgumentError, "labels are softmax_label; got 2 arrays"),
    (lambda: bound(classifier(), labels=[("softmax_label", (2,))]).forward(
        mx.io.DataBatch([nd.ones((2, 5))])), ShapeError,
     r"data \(2, 5\): the weight 'fc1_weight' would have shape \(16, 5\), it has \(16, 3\)"),
    (lambda: mx.mod.Module(classifier()).bind([("data", (1, 2))], [("y", (1,))]), ArgumentError, "labels are soft"),
    (lambda: mx.mod.Module(classifier()).bind([("data", (1, 2))], for_training=False, inputs_need_grad=True),
     ArgumentError, "needs for_training=True"),
    (lambda: mx.mod.Module(classifier(), context=[mx.cpu(0), mx.cpu(1)]).bind([("data", (1, 2))]), ShapeError,
     "cannot be divided"),
    (lambda: trained(epochs=1, kvstore="dist_p3"), ArgumentError, "needs servers"),
    (lambda: trained(epochs=1).predict("x"), ArgumentError, "expected batches or an array, got str"),
    (lambda: trained(epochs=1).set_params({"fc1_weigh": nd.ones(1)}, {}), ArgumentError, "Did you mean 'fc1_weight'"),
    (lambda: trained(epochs=1).set_params({}, {}), ArgumentError, "'fc1_weight' is not given; allow_missing=True"),
    (lambda: trained(epochs=1).set_params({"fc1_weight": nd.ones(1)}, {}), ShapeError, r"has shape \(1,\), expected"),
    (lambda: trained(epochs=1).forward(mx.io.DataBatch([nd.ones(1)] * 2)), ArgumentError, "inputs are data; got 2"),
    (lambda: trained(epochs=1).set_states(), ArgumentError, "states or a value"),
])
@pytest.mark.filterwarnings("ignore:NDArrayIter. batch_size=16 is more")
def test_wrong_uses_of_modules_are_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


# ------------------------------------------------------------------------------- checkpoints and callbacks


def test_checkpoint_functions_write_and_read(tmp_path):
    prefix = str(tmp_path / "m")
    save_checkpoint(prefix, 12, classifier(), {"w": nd.ones(2)}, {"a": nd.zeros(1)})
    net, args, aux = load_checkpoint(prefix, 12)
    assert net.list_arguments() == classifier().list_arguments()
    assert args["w"].asnumpy().tolist() == [1, 1] and aux["a"].asnumpy().tolist() == [0]
    for content, words in (([nd.ones(1)], "no names"), ({"arg:": nd.ones(1)}, "begin with arg: or aux:, got 'arg:'"),
                           ({"": nd.ones(1)}, "begin with arg: or aux:, got ''")):
        nd.save(f"{prefix}-0001.params", content)
        with pytest.raises(FileFormatError, match=words):
            load_params(prefix, 1)
    for call in (lambda: load_checkpoint("a\0b", 1), lambda: save_checkpoint("a\0b", 1, net, args, aux)):
        with pytest.raises(ArgumentError, match="it holds a zero byte"):
            call()
    save = mx.callback.do_checkpoint(prefix, period=2)
    for epoch in range(4):
        save(epoch, classifier(), {"w": nd.ones(2)}, {})
    assert sorted(each.name for each in tmp_path.glob("*.params")) == \
        ["m-0001.params", "m-0002.params", "m-0004.params", "m-0012.params"]


def test_callbacks_log_at_their_interval(caplog):
    metric = mx.metric.create("mse")
    meter, bar = mx.callback.Speedometer(4, frequent=2), mx.callback.ProgressBar(4, length=8)
    train = mx.callback.log_train_metric(3, auto_reset=True)
    with caplog.at_level(logging.INFO):
        for epoch in range(2):
            for number in range(5):
                metric.update([np.array([1.0])], [np.array([3.0])])
                for each in (meter, bar, train):
                    each(BatchEndParam(epoch, number, metric, {}))
        metric.update([np.array([1.0])], [np.array([2.0])])
        mx.callback.LogValidationMetricsCallback()(BatchEndParam(1, 0, metric, {}))
        silent = mx.callback.Speedometer(4, frequent=1, auto_reset=False)
        for number in range(2):
            silent(BatchEndParam(0, number, None, {}))
    lines = caplog.messages
    assert sum("Epoch[0] Batch [0-2]\tSpeed: " in line and line.endswith("mse=4.000000") for line in lines) == 1
    assert sum("Epoch[1] Batch [2-4]\tSpeed: " in line for line in lines) == 1
    assert "[====----] 50%\r" in lines and "Iter[1] Batch[3] Train-mse=4.000000" in lines
    assert "Epoch[1] Validation-mse=1.000000" in lines
    assert lines[-1].startswith("Iter[0] Batch [1]\tSpeed: ")


def test_a_monitor_is_called_at_its_interval(caplog):
    monitor = mx.mon.Monitor(2, pattern="fc1_(output|weight|bias)|softmax_output", sort=True)
    module = mx.mod.Module(classifier())
    with caplog.at_level(logging.INFO):
        module.fit(batches(), num_epoch=1, monitor=monitor, initializer=mx.init.One())
    lines = [line for line in caplog.messages if line.startswith("Batch:")]
    assert lines[0].startswith(f"Batch: {1:7} {'fc1_bias':30} ")
    seen = [line.split()[1:3] for line in lines]
    assert len(seen) == 3 * 4  # every other of six batches
    assert [name for _, name in seen[:4]] == ["fc1_bias", "fc1_output", "fc1_weight", "softmax_output"]
    assert monitor.toc() == []
    everything = mx.mon.Monitor(1, stat_func=lambda x: [x.max(), 3], pattern="fc1_(data|output|weight)",
                                monitor_all=True)
    module.install_monitor(everything)
    everything.tic()
    module.forward(batches().next(), is_train=False)
    found = {name: text.split() for _, name, text in everything.toc()}
    assert set(found) == {"fc1_data", "fc1_output", "fc1_weight"} and found["fc1_data"][1] == "3"


def _chain() -> mx.mod.SequentialModule:
    chain = mx.mod.SequentialModule()
    chain.add(mx.mod.Module(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), label_names=()))
    return chain


@pytest.mark.parametrize("make", [
    lambda: mx.mod.Module(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), label_names=()),
    lambda: mx.mod.BucketingModule(lambda key: (mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2),
                                                ("data",), ()), 3),
    _chain, mx.mod.PythonLossModule], ids=["Module", "BucketingModule", "SequentialModule", "PythonLossModule"])
def test_a_bound_module_stays_bound_unless_forced(make, caplog):
    module = make()
    labels = [("softmax_label", (4,))] if isinstance(module, mx.mod.PythonLossModule) else None
    module.bind([("data", (4, 3))], labels)
    assert not caplog.records
    module.bind([("data", (5, 3))], labels)
    assert "force_rebind=True binds it again" in caplog.text
    assert tuple(module.data_shapes[0])[1] == (4, 3)
    module.bind([("data", (5, 3))], labels, force_rebind=True)
    assert tuple(module.data_shapes[0])[1] == (5, 3)


# ----------------------------------------------------------------------- attributes that programs read


def test_private_names_that_programs_of_mxnet_read_are_there():
    module = mx.mod.Module(classifier(), fixed_param_names=["fc1_bias"])
    assert module._arg_params is module._aux_params is None and not module._params_dirty
    assert (module._data_names, module._label_names, module._state_names) == (["data"], ["softmax_label"], [])
    assert (module._output_names, module._fixed_param_names) == (["softmax_output"], ["fc1_bias"])
    assert (module._work_load_list, module._preload_opt_states) == ([1], None)
    module.bind([mx.io.DataDesc("data", (4, 2), layout="NC")], [("softmax_label", (4,))])
    module.init_params(mx.init.One())
    group = module._exec_group
    assert (group.data_layouts, group.label_layouts, group.output_layouts) == ([0], [0], [0])
    assert (group.data_names, group.label_names, group.state_names) == (["data"], ["softmax_label"], [])
    assert (group.output_names, group.num_outputs) == (["softmax_output"], 1)
    assert set(module._arg_params) == {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"}
    assert (module._arg_params["fc1_weight"].asnumpy() == 1).all() and module._aux_params == {}
    group.execs[0].arg_dict["fc1_weight"][:] = 5
    module._sync_params_from_devices()
    assert (module._arg_params["fc1_weight"].asnumpy() == 5).all() and not module._params_dirty
    module._arg_params = {"fc1_weight": nd.ones((16, 2)) * 7}
    assert (group.execs[0].arg_dict["fc1_weight"].asnumpy() == 7).all()


def test_a_module_uses_weights_that_a_program_stores_in_it():
    """A program stores weights in the module, like MXNet's own ``Module.load``; ``bind`` uses them."""
    args, aux = trained().get_params()
    module = mx.mod.Module(classifier())
    module._arg_params, module._aux_params, module.params_initialized = args, aux, True
    assert set(module._arg_params) == set(args)
    module.bind([("data", (16, 2))], [("softmax_label", (16,))])
    assert dict(module.score(batches(), ["acc"]))["accuracy"] > 0.97


def test_rates_and_decays_follow_multipliers():
    optimizer = mx.optimizer.create("sgd", learning_rate=0.5, wd=0.25, param_idx2name={0: "a_weight", 1: "b_bias"})
    optimizer.set_lr_mult({"a_weight": 3})
    assert optimizer._get_lrs([0, 1]) == [1.5, 0.5] == [optimizer._get_lr(i) for i in (0, 1)]
    assert optimizer._get_wds([0, 1]) == [0.25, 0.0]


def test_monitors_see_batches_of_other_shapes():
    """Monitors of executors and of modules work for all shapes, also for one that was used before."""
    module, seen = mx.mod.Module(classifier()), []
    module.bind([("data", (4, 2))], [("softmax_label", (4,))])
    module.init_params(mx.init.One())

    def forward(rows):
        seen.clear()
        module.forward(mx.io.DataBatch([nd.ones((rows, 2))], [nd.zeros(rows)]), is_train=False)
        return [value.shape for name, value in seen if name == "fc2_output"]

    assert forward(3) == forward(4) == []
    module._exec_group.execs[0].set_monitor_callback(lambda name, array: seen.append((name, array)))
    assert [forward(rows) for rows in (4, 3, 2, 4)] == [[(4, 3)], [(3, 3)], [(2, 3)], [(4, 3)]]
    reshaped = module._exec_group.execs[0].reshape(partial_shaping=True, data=(1, 2), softmax_label=(1,))
    seen.clear()
    reshaped.forward()
    assert ("fc2_output", (1, 3)) in [(name, value.shape) for name, value in seen]
    module._exec_group.execs[0].set_monitor_callback(None)
    assert [forward(rows) for rows in (4, 3, 2)] == [[], [], []]
    monitor = mx.mon.Monitor(1, pattern="fc2_output")
    module.install_monitor(monitor)
    for rows in (4, 3):
        monitor.tic()
        forward(rows)
        assert [name for _, name, _ in monitor.toc()] == ["fc2_output"]
