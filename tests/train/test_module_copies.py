"""Copies of modules, and modules of buckets: shared and separate state."""

from __future__ import annotations

import copy
import logging
import pickle

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, FileFormatError
from tests.train.test_module import batches, classifier, trained

nd, sym = mx.nd, mx.sym


@pytest.fixture(autouse=True)
def seeded():
    mx.random.seed(3)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))],
                         ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("contexts", [1, 2])
def test_a_copy_of_a_module_goes_on_where_it_was(copied, contexts):
    module = trained([mx.cpu(i) for i in range(contexts)], epochs=1, optimizer="adam")
    again = copied(module)
    for each in (module, again):
        mx.random.seed(7)
        each.fit(batches(), num_epoch=1)
    for name, value in module.get_params()[0].items():
        if copied is not copy.copy:  # one optimizer counts the steps of both
            assert np.array_equal(value.asnumpy(), again.get_params()[0][name].asnumpy())
        own, other = (each._exec_group.execs[0].arg_dict[name]._data for each in (module, again))
        assert not np.shares_memory(own, other)
    assert again.logger is logging


def test_copies_before_anything_is_bound_and_with_states():
    net = classifier()
    assert copy.deepcopy(mx.mod.Module(net)).symbol.tojson() == net.tojson()
    module = mx.mod.Module(sym.var("data") + sym.var("s"), label_names=None, state_names=["s"],
                           logger=logging.getLogger("mine"))
    module.bind([("data", (2,))], for_training=False)
    module.init_params()
    module.set_states(value=3)
    again = pickle.loads(pickle.dumps(module))
    again.forward(mx.io.DataBatch([nd.ones((2,))]))
    assert again.get_outputs()[0].asnumpy().tolist() == [4, 4] and again.logger is module.logger


# ----------------------------------------------------------------------------------------------------- buckets


def test_buckets_share_weights():
    def generate(length):
        net = sym.FullyConnected(sym.mean(sym.var("data"), axis=1), num_hidden=2, name="fc")
        return sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(generate, default_bucket_key=6)
    module.bind([("data", (4, 6, 3))], [("softmax_label", (4,))])
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer_params={"learning_rate": 0.5, "momentum": 0.9})
    rng, metric = np.random.default_rng(0), mx.metric.create("acc")
    for step in range(60):
        length = (6, 3, 5)[step % 3]
        label = rng.integers(0, 2, 4)
        data = rng.normal(size=(4, length, 3)) * 0.2 + label[:, None, None]
        batch = mx.io.DataBatch([nd.array(data)], [nd.array(label)], bucket_key=length,
                                provide_data=[("data", data.shape)], provide_label=[("softmax_label", (4,))])
        module.prepare(batch)
        module.forward_backward(batch)
        module.update()
        metric.reset() if step == 40 else None
        module.update_metric(metric, batch.label)
    assert metric.get()[1] > 0.9 and set(module._buckets) == {3, 5, 6}
    assert len(module._buckets[3]._updater.states) == 2
    weights = [each.get_params()[0]["fc_weight"].asnumpy() for each in module._buckets.values()]
    assert all(np.array_equal(weights[0], each) for each in weights)


def summed(length):
    """A network of layers without names; names of each bucket are counted from the first."""
    net = sym.FullyConnected(sym.mean(sym.var("data"), axis=1), num_hidden=3)
    net = sym.FullyConnected(sym.Activation(net, act_type="tanh"), num_hidden=2)
    return sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)


def bucketed(make=summed, init="one"):
    sym.FullyConnected(sym.var("before"), num_hidden=1)  # nodes made before do not count
    module = mx.mod.BucketingModule(make, default_bucket_key=4)
    module.bind([("data", (2, 4, 3))], [("softmax_label", (2,))])
    module.init_params(init)
    return module


def bucket(length):
    data = nd.arange(2 * length * 3).reshape((2, length, 3)) / 10
    return mx.io.DataBatch([data], [nd.array([0, 1])], bucket_key=length, provide_data=[("data", data.shape)],
                           provide_label=[("softmax_label", (2,))])


def test_buckets_of_automatic_names_share_weights():
    module = bucketed()
    module.init_optimizer(optimizer_params={"learning_rate": 0.5})
    for length in (4, 2, 4, 3):
        module.forward_backward(bucket(length))
        module.update()
    found = module.get_params()[0]
    assert list(found) == [f"fullyconnected{i}_{kind}" for i in (0, 1) for kind in ("weight", "bias")]
    assert found["fullyconnected1_bias"].asnumpy() == pytest.approx([0.04631, -0.04631], abs=1e-5)  # as MXNet's


def test_checkpoints_of_buckets_are_loaded(tmp_path):
    prefix = str(tmp_path / "net")
    module = bucketed()
    module.forward(bucket(2))
    expected = module.get_outputs()[0].asnumpy()
    module.save_checkpoint(prefix, 3)
    assert sorted(each.name for each in tmp_path.iterdir()) == \
        ["net-0003.params", "net-2-symbol.json", "net-4-symbol.json", "net.buckets"]
    again = mx.mod.BucketingModule.load(prefix, 3, sym_gen=summed, default_bucket_key=4)
    assert len(again.get_params()[0]) == 4
    again.bind([("data", (2, 4, 3))], [("softmax_label", (2,))])
    again.forward(bucket(2))
    assert np.array_equal(again.get_outputs()[0].asnumpy(), expected)
    nd.save(f"{prefix}.buckets", {"a": nd.ones(2)})
    with pytest.raises(FileFormatError, match="expected one array of keys"):
        mx.mod.BucketingModule.load(prefix, 3, sym_gen=summed, default_bucket_key=4)


def test_a_copy_of_a_bucketing_module_gives_the_same():
    module = bucketed(init=mx.init.Xavier())
    module.forward(bucket(2))
    again = copy.deepcopy(module)
    for length in (3, 2, 4):
        for each in (module, again):
            each.forward(bucket(length))
        assert np.array_equal(module.get_outputs()[0].asnumpy(), again.get_outputs()[0].asnumpy())


@pytest.mark.parametrize("call, words", [
    (lambda: bucketed(lambda key: (sym.FullyConnected(sym.var("data"), num_hidden=1, name=f"fc{key}"), ["data"], None)
                      ).switch_bucket(2, [("data", (2, 2, 3))]), "key 2 has a weight 'fc2_weight'"),
    (lambda: mx.mod.BucketingModule.load_dict({}, None, 1, {}, {}), "sym_gen is needed"),
    (lambda: mx.mod.BucketingModule(lambda key: None), "default_bucket_key"),
])
def test_wrong_uses_of_buckets_are_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
