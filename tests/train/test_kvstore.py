"""Stores of arrays by key: values, errors, and modules with a given store."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, ShapeError
from tests.questions import of_each

nd = mx.nd


def kept(store, key, shape=(2,)):
    out = nd.zeros(shape)
    store.pull(key, out=out)
    return out.asnumpy().tolist()


def store_of(kind="local", **values):
    store = mx.kv.create(kind)
    for name, value in values.items():
        store.init(name, nd.array(value))
    return store


def test_two_bit_compression_keeps_the_remainder():
    """Each context keeps the remainder below the threshold for the next push."""
    store = store_of("device", w=[0.0, 0.0, 0.0])
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    one, other = nd.array([0.7, -0.9, 0.3]), nd.array([0.2, -0.2, 0.3])
    sums = []
    for _ in range(2):
        store.push("w", [one, other])
        sums.append(kept(store, "w", (3,)))
    assert sums == [[0.5, -0.5, 0.0], [0.5, -0.5, 1.0]]
    store.push("w", nd.array([0.1, 0.2, 0.3]))  # a single array is not sent, so it is not compressed
    np.testing.assert_allclose(kept(store, "w", (3,)), [0.1, 0.2, 0.3], rtol=1e-6)


@of_each([
    (lambda: mx.kv.create("p3"), ArgumentError, "'p3' needs servers"),
    (lambda: mx.kv.create("p3"), ArgumentError, "KVStoreBase.register"),
    (lambda: mx.kv.create("locale"), ArgumentError, "Did you mean 'local'"),
    (lambda: mx.kv.create(1), TypeError, "create: name=1: expected text"),
    (lambda: store_of(w=[1.0]).init("w", nd.ones(1)), ArgumentError, "'w' is initialized already"),
    (lambda: store_of(w=[1.0]).init(1, nd.ones(1)), ArgumentError, "numbers or names, not both: got 1 beside 'w'"),
    (lambda: store_of(weight=[1.0]).push("wieght", nd.ones(1)), ArgumentError, "Did you mean 'weight'"),
    (lambda: store_of(w=[1.0]).push("w", nd.ones(2)), ShapeError, r"'w' has the shape \(1,\), got \(2,\)"),
    (lambda: store_of(w=[1.0]).push("w", [np.ones(1)]), ArgumentError, "expected NDArrays, got ndarray"),
    (lambda: store_of(w=[1.0]).push(["w"], nd.ones(1)), ArgumentError, "1 keys need as many arrays"),
    (lambda: store_of(w=[1.0]).pull("w"), ArgumentError, "out="),
    (lambda: store_of(w=[1.0]).row_sparse_pull("w"), ArgumentError, "row_sparse_pull: expected arrays"),
    (lambda: store_of().set_gradient_compression({"type": "2bit"}), ArgumentError, "of the kind 'device'"),
    (lambda: store_of("device").set_gradient_compression({"type": "1bit"}), ArgumentError, "'type': '2bit'"),
    (lambda: store_of().save_optimizer_states("x"), ArgumentError, "set_optimizer"),
    (lambda: store_of().is_capable("magic"), ArgumentError, "'magic'"),
    (lambda: mx.model._create_kvstore(1, 1, {}), TypeError, "got int"),
])
def test_mistakes_in_calls_of_stores_are_named(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("kind, devices, size, expected", [
    ("local", 1, 4, (None, False)), ("local", 2, 4, ("local", True)), ("local", 2, (1 << 24) + 1, ("local", False)),
    ("device", 2, (1 << 24) + 1, ("device", True)), (None, 2, 4, (None, False)),
    (mx.kv.create("local"), 1, 4, ("local", True)),
])
def test_updates_of_weights_are_placed_as_in_mxnet(kind, devices, size, expected, monkeypatch):
    weight = nd.zeros((1,)).broadcast_to((size,)) if size < 100 else type("Large", (), {"size": size})()
    store, there = mx.model._create_kvstore(kind, devices, {"w": weight})
    assert (store and store.type, there) == expected
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "0")
    assert not mx.model._create_kvstore(kind, devices, {"w": weight})[1]


def test_saved_optimizer_states_are_loaded(tmp_path):
    def pushed(store, times):
        for _ in range(times):
            store.push("w", nd.ones(2))
        return kept(store, "w")

    def made():
        store = store_of(w=[1.0, 1.0])
        store.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.5, momentum=0.5))
        return store

    store = made()
    pushed(store, 2)
    store.save_optimizer_states(str(tmp_path / "states"))
    between, again = kept(store, "w"), made()
    again._store("w", nd.array(between))
    again.load_optimizer_states(str(tmp_path / "states"))
    fresh = made()
    fresh._store("w", nd.array(between))
    assert pushed(again, 1) == pushed(pickle.loads(pickle.dumps(store)), 1) == pushed(store, 1) != pushed(fresh, 1)


def test_a_registered_store_is_created_by_name():
    store = mx.kv.create("TestStore")
    assert (store.type, store.rank, store.num_workers, type(store)) == ("teststore", 0, 1, mx.kvstore.base.TestStore)
    outs = [nd.zeros(2), nd.zeros(2)]
    store.broadcast("w", nd.ones(2), out=outs)
    assert [each.asnumpy().tolist() for each in outs] == [[1, 1], [1, 1]]
    store.pushpull("w", [nd.ones(2, ctx=mx.cpu(i)) for i in range(3)], out=outs[0])
    store.pushpull("w", outs)
    assert [each.asnumpy().tolist() for each in outs] == [[4, 4], [4, 4]]
    assert not store.is_capable("optimizer")
    with pytest.raises(ValueError, match="Did you mean 'optimizer'"):
        store.is_capable("optimiser")
    for unsupported in (lambda: store.set_optimizer(mx.optimizer.create("sgd")),
                        lambda: store.save_optimizer_states("none"), lambda: store.load_optimizer_states("none")):
        with pytest.raises(NotImplementedError):
            unsupported()
    with pytest.raises(ArgumentError, match="do not compress"):
        store.set_gradient_compression({"type": "2bit"})


# ------------------------------------------------------------------------------------------- modules


def test_a_module_learns_through_the_example_of_a_store():
    expected = stepped(module_with("local"))
    for contexts in (1, 2):
        found = stepped(module_with(mx.kv.create("teststore"), contexts))
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-5)


def module_with(store, contexts=1, optimizer="sgd", **more):
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    net = mx.sym.LinearRegressionOutput(net, mx.sym.var("y"), name="out")
    module = mx.mod.Module(net, label_names=["y"], context=[mx.cpu(i) for i in range(contexts)], **more)
    module.bind([("data", (4, 3))], [("y", (4, 2))])
    module.init_params(mx.init.One())
    module.init_optimizer(store, optimizer, {"learning_rate": 0.1})
    return module


def stepped(module, times=3):
    batch = mx.io.DataBatch([nd.array(np.arange(12.0).reshape(4, 3) / 10)], [nd.ones((4, 2))])
    for _ in range(times):
        module.forward_backward(batch)
        module.update()
    return {name: value.asnumpy() for name, value in module.get_params()[0].items()}


class Sums(mx.kv.KVStoreBase):
    """A user's store, which sums gradients and runs no optimizer."""

    type, rank, num_workers = "sums", 0, 1

    def __init__(self):
        self.asked = []

    def broadcast(self, key, value, out, priority=0):
        raise AssertionError("weights stay with the module")

    def pushpull(self, key, value, out=None, priority=0):
        self.asked.append((key, priority))
        total = sum(array.asnumpy() for array in value)
        for array in value if out is None else out:
            array[:] = total

    @staticmethod
    def is_capable(capability):
        return False


@pytest.mark.parametrize("contexts", [1, 2])
@pytest.mark.parametrize("store", [lambda: mx.kv.create("local"), lambda: mx.kv.create("device"), Sums, lambda: None])
def test_training_with_a_store_gives_the_same_weights(store, contexts):
    expected, given = stepped(module_with("local")), store()
    found = stepped(module_with(given, contexts, "sgd"))
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5)
    if isinstance(given, Sums):
        assert given.asked[:2] == [("fc_weight", 0), ("fc_bias", -1)]


def test_weights_that_are_set_reach_the_store():
    module = module_with(mx.kv.create("local"))
    args, aux = module.get_params()
    stepped(module)
    module.set_params(args, aux)
    np.testing.assert_array_equal(stepped(module, 1)["fc_weight"], stepped(module_with(None), 1)["fc_weight"])


def test_a_module_saves_states_of_its_store(tmp_path):
    module = module_with(mx.kv.create("local"), optimizer="adam")
    stepped(module)
    module.save_checkpoint(str(tmp_path / "net"), 1, save_optimizer_states=True)
    again = mx.mod.Module.load(str(tmp_path / "net"), 1, True, label_names=["y"])
    again.bind([("data", (4, 3))], [("y", (4, 2))])
    again.init_optimizer(mx.kv.create("local"), "adam", {"learning_rate": 0.1})
    after = stepped(again)
    for name, value in stepped(module).items():
        np.testing.assert_array_equal(after[name], value)


def test_compression_goes_to_the_store():
    module = module_with("device", 2, compression_params={"type": "2bit", "threshold": 1e-3})
    assert module._kvstore.type == "device" and module._update_on_kvstore
    before, after = stepped(module, 0), stepped(module, 1)
    steps = {round(float(abs(value)), 6) for name in before for value in (after[name] - before[name]).ravel() / 0.1}
    assert steps <= {0.0, 0.00025, 0.0005}  # one or two thresholds over four samples
    with pytest.raises(ArgumentError, match="of the kind 'device'"):
        module_with(mx.kv.create("local"), 2, compression_params={"type": "2bit"})


def test_buckets_share_the_store():
    def make(length):
        net = mx.sym.FullyConnected(mx.sym.mean(mx.sym.var("data"), axis=1), num_hidden=2, name="fc")
        return mx.sym.SoftmaxOutput(net, name="softmax"), ["data"], ["softmax_label"]

    def learned(store):
        module = mx.mod.BucketingModule(make, default_bucket_key=4)
        module.bind([("data", (2, 4, 3))], [("softmax_label", (2,))])
        module.init_params(mx.init.One())
        module.init_optimizer(store)
        for length in (4, 2, 3, 4):
            data, label = [("data", (2, length, 3))], [("softmax_label", (2,))]
            module.forward_backward(mx.io.DataBatch(
                [nd.array(np.arange(6.0 * length).reshape(2, length, 3))], [nd.array([0, 1])], bucket_key=length,
                provide_data=data, provide_label=label))
            module.update()
        return module.get_params()[0]["fc_weight"].asnumpy()

    np.testing.assert_allclose(learned(mx.kv.create("local")), learned("local"), rtol=1e-6)


def test_a_pull_skips_arrays_of_rows_by_default():
    store = store_of(w=[[1.0], [2.0], [3.0]])
    rows = nd.ones((3, 1)).tostype("row_sparse")
    store.pull("w", out=rows)
    assert rows.asnumpy().tolist() == [[1], [1], [1]]
    store.pull("w", out=rows, ignore_sparse=False)
    assert rows.asnumpy().tolist() == [[1], [2], [3]]


def test_rows_may_be_requested_as_lists_of_lists():
    store = store_of(v=[[1.0], [2.0]], w=[[3.0], [4.0]])
    out = [[nd.zeros((2, 1)).tostype("row_sparse") for _ in range(2)] for _ in range(2)]
    numbers = [nd.array([0]), nd.array([1])]
    store.row_sparse_pull(["v", "w"], out=out, row_ids=[numbers, numbers])
    assert [[each.asnumpy().ravel().tolist() for each in each_key] for each_key in out] == \
        [[[1, 0], [0, 2]], [[3, 0], [0, 4]]]
