"""Modules over several contexts: division and combination of batches, and devices of groups of nodes."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, ShapeError

nd, sym = mx.nd, mx.sym
DataBatch, DataDesc = mx.io.DataBatch, mx.io.DataDesc


def cpus(count):
    return [mx.cpu(i) for i in range(count)]


def bound(net, *shapes, contexts=2, labels=None, **more):
    keywords = {key: more.pop(key) for key in ("work_load_list", "group2ctxs", "context", "state_names") if key in more}
    names = [each[0] for each in shapes]
    module = mx.mod.Module(net, names, [each[0] for each in labels or ()] or None,
                           **{"context": cpus(contexts), **keywords})
    module.bind(list(shapes), labels, **more)
    module.init_params(mx.init.One())
    return module


@pytest.mark.parametrize("size, loads, expected", [
    (8, [1, 1], [4, 4]), (8, [1] * 3, [3, 3, 2]), (5, [1, 1], [2, 3]), (7, [1] * 3, [2, 2, 3]), (3, [1, 1], [2, 1]),
    (10, [1] * 4, [2, 2, 2, 4]), (10, [1, 3], [2, 8]), (9, [2, 1, 1], [4, 2, 3]),
])
def test_contexts_get_the_parts_of_a_batch_that_they_get_in_mxnet(size, loads, expected):
    module = bound(sym.var("data") * 2, ("data", (size, 2)), contexts=len(loads), work_load_list=loads)
    data = np.arange(size * 2.0).reshape(size, 2)
    module.forward(DataBatch([nd.array(data)]))
    (parts,) = module.get_outputs(merge_multi_context=False)
    assert [part.shape[0] for part in parts] == expected
    assert [part.context for part in parts] == cpus(len(loads))
    np.testing.assert_array_equal(module.get_outputs()[0].asnumpy(), 2 * data)


@pytest.mark.parametrize("layout, axis", [("TNC", 1), ("NTC", 0), ("TCN", 2), (None, 0)])
def test_a_batch_is_divided_along_the_axis_of_samples(layout, axis):
    net = sym.Activation(sym.var("data"), act_type="relu", __layout__=layout) if layout else sym.relu(sym.var("data"))
    shape = (3, 4, 5)
    module = bound(net, DataDesc("data", shape, layout=layout), inputs_need_grad=True)
    data = np.random.default_rng(0).normal(size=shape).astype("f")
    module.forward(DataBatch([nd.array(data)]))
    module.backward([nd.array(data)])
    parts = module.get_outputs(merge_multi_context=False)[0]
    assert [part.shape[axis] for part in parts] == {3: [2, 1], 4: [2, 2], 5: [2, 3]}[shape[axis]]
    positive = np.maximum(data, 0)
    np.testing.assert_array_equal(module.get_outputs()[0].asnumpy(), positive)
    np.testing.assert_array_equal(module.get_input_grads()[0].asnumpy(), positive)
    halves = module.get_input_grads(merge_multi_context=False)[0]
    np.testing.assert_array_equal(np.concatenate([each.asnumpy() for each in halves], axis), positive)


def test_the_time_axis_is_not_divided_among_contexts():
    module = bound(sym.cumsum(sym.var("data"), axis=0), DataDesc("data", (4, 2, 1), layout="TNC"))
    module.forward(DataBatch([nd.ones((4, 2, 1))]))
    for part in module.get_outputs(merge_multi_context=False)[0]:
        assert part.asnumpy().ravel().tolist() == [1, 2, 3, 4]


def tagger(contexts, time_major):
    """Predictions of a sequence tagger after three steps, and the calls of a metric."""
    data, label = ("TNC", "TN") if time_major else ("NTC", "NT")
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(6, 3, 4)), rng.integers(0, 2, (6, 3))]
    if time_major:
        arrays = [each.swapaxes(0, 1) for each in arrays]
    net = sym.FullyConnected(sym.var("data"), num_hidden=2, flatten=False, name="fc")
    net = sym.SoftmaxOutput(net, sym.var("label"), preserve_shape=True, __layout__=data, name="softmax")
    module = bound(net, DataDesc("data", arrays[0].shape, layout=data), contexts=contexts,
                   labels=[DataDesc("label", arrays[1].shape, layout=label)])
    batch = DataBatch([nd.array(arrays[0])], [nd.array(arrays[1])])
    module.init_optimizer(optimizer_params={"learning_rate": 0.5})
    for _ in range(3):
        module.forward_backward(batch)
        module.update()
    metric = mx.metric.create(lambda label, pred: (float((label == pred.argmax(2)).sum()), label.size))
    module.update_metric(metric, batch.label)
    found = module.get_outputs()[0].asnumpy()
    return found.swapaxes(0, 1) if time_major else found, metric.get()[1], metric.num_inst


def test_a_time_major_network_on_several_contexts_learns_as_a_batch_major_one():
    expected, right, count = tagger(1, time_major=False)
    assert count == 18
    for contexts in (1, 2, 3):
        for time_major in (False, True):
            found, *told = tagger(contexts, time_major)
            np.testing.assert_allclose(found, expected, rtol=1e-5)
            assert told == [right, count]


def test_inputs_without_samples_go_to_all():
    module = bound(sym.broadcast_mul(sym.var("data"), sym.var("table")), ("data", (4, 3)),
                   DataDesc("table", (1, 3), layout="XC"))
    module.forward(DataBatch([nd.ones((4, 3)), nd.array([[1, 2, 3]])]))
    assert module.get_outputs()[0].asnumpy().tolist() == [[1, 2, 3]] * 4


def test_batches_of_other_sizes_are_divided_anew():
    module = bound(sym.var("data") * 2, DataDesc("data", (3, 8), layout="TN"))
    for size in (8, 5, 7, 8):
        module.forward(DataBatch([nd.ones((3, size))]))
        assert [part.shape for part in module.get_outputs(merge_multi_context=False)[0]] == \
            [(3, size // 2), (3, size - size // 2)] if size != 7 else [(3, 4), (3, 3)]


def test_a_list_has_a_batch_for_each_context():
    net = sym.LinearRegressionOutput(sym.FullyConnected(sym.var("data"), num_hidden=1, name="fc"), sym.var("y"))
    module = bound(net, ("data", (4, 2)), labels=[("y", (4, 1))])
    pair = [DataBatch([nd.full((2, 2), i)], [nd.full((2, 1), 2 * i + i)]) for i in (1, 2)]
    module.forward(pair)
    assert module.get_outputs()[0].asnumpy().ravel().tolist() == [2, 2, 4, 4]
    metric = mx.metric.create("mae")
    module.update_metric(metric, [each.label for each in pair], pre_sliced=True)
    assert metric.get()[1] == 1.5 and metric.num_inst == 2
    with pytest.raises(ArgumentError, match="expected 2 batches, one for each context, got 1"):
        module.forward(pair[:1])
    with pytest.raises(ShapeError, match="data: all batches of a list must have one shape"):
        module.forward([pair[0], DataBatch([nd.ones((3, 2))], [nd.ones((3, 1))])])


def test_metrics_receive_the_outputs_of_each_context():
    net = sym.LinearRegressionOutput(sym.FullyConnected(sym.var("data"), num_hidden=1, name="fc"), sym.var("y"))
    module = bound(net, ("data", (5, 2)), labels=[("y", (5, 1))])
    module.forward(DataBatch([nd.arange(10).reshape((5, 2))], [nd.ones((5, 1))]))
    for name, value in (("mse", 81.33333333), ("mae", 7.0), ("rmse", 7.63246626)):  # two unequal parts
        metric = mx.metric.create(name)
        module.update_metric(metric, [nd.ones((5, 1))])
        assert metric.get()[1] == pytest.approx(value) and metric.num_inst == 2


@pytest.mark.parametrize("groups", [
    [{"dev1": mx.cpu(1), "dev2": mx.cpu(2)}],
    {"dev1": [mx.cpu(1)], "dev2": mx.cpu(2)},
    {"dev1": mx.cpu(1), "dev2": mx.cpu(2)},
])
def test_context_groups_map_to_contexts(groups):
    module = grouped(groups, 1)
    assert module.get_outputs()[0].context == mx.cpu(2)


@pytest.mark.parametrize("groups", [
    [{"dev1": mx.cpu(1), "dev2": mx.cpu(2)}, {"dev1": mx.cpu(4), "dev2": mx.cpu(5)}],
    {"dev1": [mx.cpu(1), mx.cpu(4)], "dev2": [mx.cpu(2), mx.cpu(5)]},
])
def test_context_groups_map_to_several_contexts(groups):
    module = grouped(groups, 2)
    assert [part.context for part in module.get_outputs(merge_multi_context=False)[0]] == [mx.cpu(2), mx.cpu(5)]


def grouped(groups, contexts):
    with mx.AttrScope(ctx_group="dev1"):
        total = sym.var("a") + sym.var("b")
    with mx.AttrScope(ctx_group="dev2"):
        net = total * 2
    module = bound(net, ("a", (2, 2)), ("b", (2, 2)), contexts=contexts, group2ctxs=groups)
    module.forward(DataBatch([nd.ones((2, 2))] * 2))
    assert (module.get_outputs()[0].asnumpy() == 4).all()
    return module


@pytest.mark.parametrize("call, kind, words", [
    (lambda: bound(sym.var("data"), ("data", (2, 1)), contexts=3), ShapeError, "batch of 2 cannot be divided among 3"),
    (lambda: bound(sym.var("data"), DataDesc("data", (2,), layout="TN")), ShapeError, r"layout TN, but only the shape"),
    (lambda: bound(sym.var("a") + sym.mean(sym.var("b")), ("a", (4, 2)), ("b", (3, 2))), ShapeError,
     r"a of shape \(4, 2\) has 4, and b of shape \(3, 2\) has 3; the N in DataDesc\(layout"),
    (lambda: bound(sym.var("data"), ("data", (4,)), work_load_list=[1]), ArgumentError, "1 entries, expected 2"),
    (lambda: bound(sym.var("data"), ("data", (4,)), context="cpu"), ArgumentError, "expected a context, got 'cpu'"),
    (lambda: grouped([{"dev1": mx.cpu()}], 2), ArgumentError, "a list of 1, expected 2"),
    (lambda: grouped({"dev1": cpus(3)}, 2), ArgumentError, "'dev1' has 3 contexts, expected 1 or 2"),
    (lambda: grouped({"dev1": "cpu"}, 1), ArgumentError, "group 'dev1': expected a context, got 'cpu'"),
    (lambda: grouped("cpu", 1), ArgumentError, "group2ctxs: expected a dict"),
])
def test_wrong_batches_and_contexts_are_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
