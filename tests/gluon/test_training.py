"""Gluon's losses, recurrent cells and layers, and Trainer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import opreg as mx
from opreg import autograd, gluon, nd
from opreg.gluon import loss, nn, rnn
from tests.questions import of_each

#: Answers of MXNet 1.9.1, by layer, loss or cell: see ``gluon_cases``.
ANSWERS = json.loads((Path(__file__).parent.parent / "recorded" / "gluon.json").read_text())


def _random(seed, *shape):
    return nd.array(np.random.RandomState(seed).uniform(-1, 1, size=shape).astype("float32"))


def _fill(net):
    """Fills all parameters with values that are the same in every run."""
    numbers = np.random.RandomState(1)
    for parameter in net.collect_params().values():
        parameter.set_data(nd.array(numbers.uniform(0.1, 0.9, size=parameter.shape)))


LAYERS = {
    "Dense": (lambda: nn.Dense(3, activation="tanh"), (2, 4)),
    "Dense without bias": (lambda: nn.Dense(3, use_bias=False, flatten=False), (2, 3, 4)),
    "Conv1D": (lambda: nn.Conv1D(2, 3), (1, 2, 5)),
    "Conv2D": (lambda: nn.Conv2D(4, (2, 3), strides=2, padding=1, groups=2, dilation=(1, 2), activation="relu"),
               (1, 2, 6, 7)),
    "Conv3D": (lambda: nn.Conv3D(2, 2, use_bias=False), (1, 1, 3, 3, 3)),
    "Conv1DTranspose": (lambda: nn.Conv1DTranspose(2, 3, strides=2, output_padding=1), (1, 2, 4)),
    "Conv2DTranspose": (lambda: nn.Conv2DTranspose(2, 3, strides=2, padding=1, output_padding=1), (1, 2, 3, 3)),
    "Conv3DTranspose": (lambda: nn.Conv3DTranspose(1, 2), (1, 1, 2, 2, 2)),
    "MaxPool2D": (lambda: nn.MaxPool2D(3, 2, 1, ceil_mode=True), (1, 1, 6, 6)),
    "AvgPool2D": (lambda: nn.AvgPool2D(3, 2, 1, count_include_pad=False), (1, 1, 6, 6)),
    "GlobalMaxPool1D": (nn.GlobalMaxPool1D, (1, 2, 6)),
    "GlobalAvgPool3D": (nn.GlobalAvgPool3D, (1, 2, 2, 2, 2)),
    "ReflectionPad2D": (lambda: nn.ReflectionPad2D(1), (1, 1, 3, 3)),
    "BatchNorm": (nn.BatchNorm, (3, 2, 2, 2)),
    "BatchNorm, fixed": (lambda: nn.BatchNorm(axis=-1, scale=False, center=False, momentum=0.5), (4, 3)),
    "BatchNorm, global": (lambda: nn.BatchNorm(use_global_stats=True), (3, 2, 2)),
    "BatchNormReLU": (nn.BatchNormReLU, (3, 2, 2, 2)),
    "InstanceNorm": (lambda: nn.InstanceNorm(axis=2, scale=True), (2, 3, 4, 2)),
    "LayerNorm": (lambda: nn.LayerNorm(axis=1, center=False), (2, 5, 3)),
    "GroupNorm": (lambda: nn.GroupNorm(2), (2, 4, 3, 3)),
    "Flatten": (nn.Flatten, (2, 2, 3)),
    "LeakyReLU": (lambda: nn.LeakyReLU(0.1), (2, 3)),
    "PReLU": (nn.PReLU, (2, 3)),
    "ELU": (lambda: nn.ELU(0.5), (2, 3)),
    "SELU": (nn.SELU, (2, 3)),
    "GELU": (nn.GELU, (2, 3)),
    "Swish": (lambda: nn.Swish(2.0), (2, 3)),
    "HybridLambda": (lambda: nn.HybridLambda("tanh"), (2, 3)),
    "LSTM": (lambda: rnn.LSTM(2, 2, bidirectional=True), (3, 2, 2)),
    "GRU": (lambda: rnn.GRU(2, layout="NTC"), (3, 2, 2)),
    "RNN": (lambda: rnn.RNN(2, activation="tanh"), (3, 2, 2)),
}

LOSSES = {
    "L2Loss": lambda p, q, w: (loss.L2Loss(weight=0.3), p, q, w),
    "L1Loss": lambda p, q, w: (loss.L1Loss(weight=2), p, q, w),
    "SigmoidBCELoss": lambda p, q, w: (loss.SigmoidBCELoss(), p, q > 0),
    "SigmoidBCELoss, probabilities": lambda p, q, w: (loss.SigmoidBCELoss(from_sigmoid=True), (p + 1.5) / 3, q > 0, w),
    "SigmoidBCELoss, weighted": lambda p, q, w: (loss.SigmoidBCELoss(), p, q > 0, None, nd.array([2, 1, 0.5])),
    "SoftmaxCELoss": lambda p, q, w: (loss.SoftmaxCELoss(), p, nd.array([0, 1, 2, 0])),
    "SoftmaxCELoss, dense": lambda p, q, w: (loss.SoftmaxCELoss(sparse_label=False), p, nd.softmax(q)),
    "KLDivLoss": lambda p, q, w: (loss.KLDivLoss(from_logits=False), p, nd.softmax(q)),
    "HuberLoss": lambda p, q, w: (loss.HuberLoss(0.3), p, q),
    "HingeLoss": lambda p, q, w: (loss.HingeLoss(), p, nd.sign(q)),
    "SquaredHingeLoss": lambda p, q, w: (loss.SquaredHingeLoss(margin=0.5), p, nd.sign(q)),
    "LogisticLoss": lambda p, q, w: (loss.LogisticLoss(), p, nd.sign(q)),
    "LogisticLoss, binary": lambda p, q, w: (loss.LogisticLoss(label_format="binary"), p, q > 0),
    "TripletLoss": lambda p, q, w: (loss.TripletLoss(), p, q, p * q),
    "PoissonNLLLoss": lambda p, q, w: (loss.PoissonNLLLoss(), p, nd.abs(q)),
    "CosineEmbeddingLoss": lambda p, q, w: (loss.CosineEmbeddingLoss(margin=0.1), p, q, nd.array([1, -1, 1, -1])),
    "SDMLLoss": lambda p, q, w: (loss.SDMLLoss(), p, q),
    "CTCLoss": lambda p, q, w: (loss.CTCLoss(), _random(3, 2, 6, 4), nd.array([[0, 1, -1], [2, 2, 1]])),
}

CELLS = {
    "RNNCell": lambda: rnn.RNNCell(3),
    "LSTMCell": lambda: rnn.LSTMCell(3),
    "GRUCell": lambda: rnn.GRUCell(3),
    "ZoneoutCell": lambda: rnn.ZoneoutCell(rnn.GRUCell(3)),
    "ResidualCell": lambda: rnn.ResidualCell(rnn.RNNCell(2)),
    "BidirectionalCell": lambda: rnn.BidirectionalCell(rnn.LSTMCell(2), rnn.LSTMCell(2)),
    "HybridSequentialRNNCell": lambda: _stack(),
}


def _stack():
    stack = rnn.HybridSequentialRNNCell(prefix="stack_")
    with stack.name_scope():
        stack.add(rnn.LSTMCell(2))
        stack.add(rnn.BidirectionalCell(rnn.GRUCell(3), rnn.GRUCell(2)))
    return stack


def gluon_cases():
    """The text and the results of each layer, loss and cell, as lists; MXNet answers the same script."""
    answers = {}
    for name, (make, shape) in LAYERS.items():
        net, x = make(), _random(0, *shape)
        answers[name] = {"repr": repr(net)}
        net.initialize()
        net(x)
        _fill(net)
        x.attach_grad()
        before = net(x)
        with autograd.record():
            y = net(x)
            total = (y * y).sum()
        total.backward()
        answers[name].update(
            names=[each[len(net.prefix):] for each in net.collect_params()], later=repr(net),
            values=[each.asnumpy().tolist() for each in (before, y, x.grad)],
            gradients=[each.grad().asnumpy().tolist() for each in net.collect_params().values()
                       if each.grad_req != "null"])
    for name, make in LOSSES.items():
        function, x, *rest = make(_random(1, 4, 3), _random(2, 4, 3), nd.array([[0.5], [1], [2], [0]]))
        x.attach_grad()
        with autograd.record():
            y = function(x, *rest)
        y.backward()
        answers[name] = {"repr": repr(function), "values": [y.asnumpy().tolist(), x.grad.asnumpy().tolist()]}
    for name, make in CELLS.items():
        cell, x = make(), _random(4, 2, 4, 2)
        answers[name] = {"repr": repr(cell).replace(cell.prefix, "")}
        cell.initialize()
        cell.unroll(4, x, merge_outputs=True)
        _fill(cell)
        y, states = cell.unroll(4, x, merge_outputs=True)
        cut, ends = cell.unroll(4, x, merge_outputs=False, valid_length=nd.array([2, 4]))
        graph, _ = cell.unroll(4, mx.sym.var("x"), merge_outputs=True)
        answers[name].update(values=[each.asnumpy().tolist() for each in (y, *states, *cut, *ends)],
                             inputs=len(graph.list_arguments()),
                             nodes=[each[-12:] for each in graph.get_internals().list_outputs()][-6:])
    return answers


@pytest.fixture(scope="module")
def answers():
    with mx.name.NameManager():  # its counts begin at 0
        return gluon_cases()


@pytest.mark.parametrize("name", [*LAYERS, *LOSSES, *CELLS])
def test_losses_are_those_of_mxnet(name, answers):
    found, expected = answers[name], ANSWERS[name]
    for kind in ("values", "gradients"):
        for ours, theirs in zip(found.pop(kind, []), expected.pop(kind, []), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-3, err_msg=kind)
    assert found == expected


@of_each([name for name in LOSSES if name != "SDMLLoss"])
def test_hybridized_losses_give_the_same(name):
    function, *inputs = LOSSES[name](_random(1, 4, 3), _random(2, 4, 3), nd.array([[0.5], [1], [2], [0]]))
    plain = function(*inputs).asnumpy()
    function.hybridize()
    np.testing.assert_allclose(function(*inputs).asnumpy(), plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [rnn.RNN, rnn.LSTM, rnn.GRU])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_layers_and_their_cells_share_weights(kind, bidirectional, tmp_path):
    layer = kind(4, num_layers=2, layout="NTC", bidirectional=bidirectional, input_size=3)
    layer.initialize(mx.init.Normal(0.3))
    x = _random(5, 2, 6, 3)
    expected = layer(x).asnumpy()
    outputs, _ = layer._unfuse().unroll(6, x, merge_outputs=True)
    np.testing.assert_allclose(outputs.asnumpy(), expected, rtol=1e-5, atol=1e-6)
    layer.hybridize()
    after, states = layer(x, layer.begin_state(2))
    np.testing.assert_allclose(after.asnumpy(), expected, rtol=1e-5, atol=1e-6)
    assert len(states) == (2 if kind is rnn.LSTM else 1) and layer(x).shape == expected.shape
    layer.save_parameters(str(tmp_path / "layer.params"))
    other = kind(4, num_layers=2, layout="NTC", bidirectional=bidirectional)
    other.load_parameters(str(tmp_path / "layer.params"))
    np.testing.assert_allclose(other(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", [nd.zeros, nd.ones, nd.random.uniform, nd.random_normal,
                                      lambda **settings: nd.zeros(**settings)])
def test_a_function_of_arrays_makes_the_first_states(function):
    """It gets the name of a state and its layout, ``__layout__``."""
    for layer, shape in ((rnn.LSTM(3, prefix="l_"), (1, 2, 3)), (rnn.LSTMCell(3, prefix="c_"), (2, 3))):
        states = layer.begin_state(2, func=function, dtype="float64")
        assert [(state.shape, state.dtype) for state in states] == [(shape, np.float64)] * 2
    given = []
    rnn.GRUCell(3, prefix="c_").begin_state(2, func=lambda **settings: given.append(settings))
    rnn.GRU(3, prefix="l_").begin_state(2, func=lambda **settings: given.append(settings))
    assert [(settings["name"], settings["__layout__"]) for settings in given] == [
        ("c_begin_state_0", "NC"), ("l_h0_0", "LNC")]


def test_a_hybridized_cell_is_traced_once():
    cell = rnn.LSTMCell(3, input_size=2)
    cell.initialize()
    x = _random(6, 2, 5, 2)
    plain, _ = cell.unroll(5, x, merge_outputs=True)
    cell.hybridize()
    cell(x[:, 0], cell.begin_state(2))
    graph = cell._cached_graph
    planned, _ = cell.unroll(5, x, merge_outputs=True)
    assert cell._cached_graph is graph
    np.testing.assert_allclose(planned.asnumpy(), plain.asnumpy(), rtol=1e-5, atol=1e-6)


def _weights(net):
    return [each.data().asnumpy() for each in net.collect_params().values()]


def _step(net, trainer, x, rows=4):
    with autograd.record():
        total = (net(x) ** 2).sum()
    total.backward()
    trainer.step(rows)


@pytest.mark.parametrize("store", [False, True], ids=["alone", "store"])
@pytest.mark.parametrize("format", ["npz", "mxnet"])
def test_saved_states_of_a_trainer_are_restored(format, store, tmp_path):
    def made(net, rate):
        settings = {"kvstore": mx.kv.create("local"), "update_on_kvstore": True} if store else {}
        return gluon.Trainer(net.collect_params(), "adam", {"learning_rate": rate}, **settings)

    nets = []
    for interrupted in (False, True):
        net = nn.Dense(2, in_units=3, prefix="net_")
        net.initialize()
        _fill(net)
        trainer = made(net, 0.1)
        for i in range(4):
            if interrupted and i == 2:
                path = str(tmp_path / "states")
                trainer.save_states(path, format=format)
                trainer = made(net, 0.3)
                trainer.load_states(path)
                assert trainer.learning_rate == 0.1
            _step(net, trainer, _random(i, 4, 3))
        nets.append(_weights(net))
    for first, second in zip(*nets):
        assert (first == second).all()


def test_a_store_of_a_user_needs_no_formats(monkeypatch):
    names = []

    def store():
        made = mx.kv.create("local")
        monkeypatch.setattr(made, "save_optimizer_states", lambda fname, dump_optimizer=False: names.append(fname))
        return made

    net = nn.Dense(1, in_units=2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore=store(), update_on_kvstore=True)
    _step(net, trainer, _random(0, 4, 2))
    trainer.save_states("one")
    module = mx.mod.Module(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1), label_names=None)
    module.bind([("data", (4, 2))])
    module.init_params()
    module.init_optimizer(kvstore=store())
    module.save_optimizer_states("two")
    assert names == ["one", "two"]


@pytest.mark.parametrize("there", [None, False, True])
def test_several_contexts_are_updated_together(there):
    net = nn.Dense(1, use_bias=False, in_units=2)
    contexts = [mx.cpu(0), mx.cpu(1)]
    net.initialize(mx.init.One(), ctx=contexts)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, update_on_kvstore=there)
    with autograd.record():
        totals = [net(nd.array([[1, 2]], ctx=ctx)) for ctx in contexts]
    autograd.backward(totals)
    trainer.step(2)
    for ctx in contexts:
        assert net.weight.data(ctx).asnumpy().tolist() == [[0.5, 0.0]]
    net.weight.set_data(nd.array([[1, 1]]))  # the store, which holds it, is updated
    with autograd.record():
        totals = [net(nd.array([[1, 2]], ctx=ctx)) for ctx in contexts]
    autograd.backward(totals)
    trainer.step(2)
    assert net.weight.data(contexts[1]).asnumpy().tolist() == [[0.5, 0.0]]


def test_gradients_may_be_added_up_and_applied_in_two_steps():
    net = nn.Dense(1, use_bias=False, in_units=2)
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore="local",
                            update_on_kvstore=False)
    with autograd.record():
        total = net(nd.array([[1, 2]]))
    total.backward()
    trainer.allreduce_grads()
    trainer.update(1)
    assert net.weight.data().asnumpy().tolist() == [[0.5, 0.0]]


def test_stale_gradients_are_refused_or_left_out():
    used, unused = nn.Dense(1, in_units=1), nn.Dense(1, in_units=1)
    used.initialize(mx.init.One())
    unused.initialize(mx.init.One())
    trainer = gluon.Trainer([used.weight, unused.weight], "sgd", {"learning_rate": 0.5})
    with autograd.record():
        total = used(nd.ones((1, 1)))
    total.backward()
    with pytest.raises(UserWarning, match="has not been updated by backward"):
        trainer.step(1)
    trainer.step(1, ignore_stale_grad=True)
    assert used.weight.data().asscalar() == 0.5 and unused.weight.data().asscalar() == 1


def test_factors_of_parameters_and_schedules_count():
    net = nn.Dense(1, in_units=1)
    net.initialize(mx.init.One())
    net.weight.lr_mult = 0.5
    net.bias.lr_mult = 0
    trainer = gluon.Trainer(net.collect_params(), "sgd", {
        "learning_rate": 1.0, "lr_scheduler": mx.lr_scheduler.FactorScheduler(1, factor=0.5, base_lr=1.0)})
    with autograd.record():
        total = net(nd.ones((1, 1)))
    total.backward()
    trainer.step(1)
    assert net.weight.data().asscalar() == 0.5 and net.bias.data().asscalar() == 0
    with pytest.raises(UserWarning, match="lr_scheduler"):
        trainer.set_learning_rate(1)


def test_a_network_learns():
    mx.random.seed(3)
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.BatchNorm(), nn.Dropout(0.1), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    function = loss.SoftmaxCrossEntropyLoss()
    function.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.02})
    x = _random(7, 64, 4)
    label = (x[:, 0] > 0) + (x[:, 1] > 0)
    for _ in range(80):
        with autograd.record():
            losses = function(net(x), label)
        losses.backward()
        trainer.step(64)
    assert (net(x).argmax(axis=1) == label).mean().asscalar() > 0.95


@pytest.mark.parametrize("wrong, words", [
    (lambda: gluon.Trainer([1], "sgd"), "list or dict of Parameters"),
    (lambda: loss.CTCLoss(layout="NCT"), "layout"),
    (lambda: rnn.LSTM(2, layout="TN"), "layout"),
    (lambda: rnn.RNNCell(2, input_size=1).unroll(3, nd.zeros((1, 2, 1))), "expected 3 steps, got 2"),
    (lambda: rnn.ResidualCell(rnn.ResidualCell(rnn.RNNCell(2)).base_cell), "modified"),
])
def test_mistakes_are_refused(wrong, words):
    with pytest.raises((ValueError, RuntimeError), match=words):
        wrong()


@pytest.mark.parametrize("stype, grad_stype, contexts, asked, there", [
    ("default", "row_sparse", 1, None, None), ("default", "row_sparse", 2, None, False),
    ("default", "row_sparse", 2, True, True), ("default", "default", 2, None, True),
    ("row_sparse", "row_sparse", 1, None, True), ("row_sparse", "row_sparse", 2, None, True)])
def test_updates_of_sparse_parameters_are_placed_as_in_mxnet(stype, grad_stype, contexts, asked, there):
    weight = gluon.Parameter("w", shape=(4, 1), stype=stype, grad_stype=grad_stype)
    weight.initialize(init="zeros", ctx=[mx.cpu(i) for i in range(contexts)])
    trainer = gluon.Trainer([weight], "sgd", {"learning_rate": 0.5}, update_on_kvstore=asked)
    for _ in range(2):
        with autograd.record():
            losses = [(each * 1).sum() for each in weight.list_data()]
        autograd.backward(losses)
        trainer.step(1)
    assert trainer._update_on_kvstore is there and (trainer._kvstore is None) == (there is None)
    for each in weight.list_data():
        assert (each.asnumpy() == -contexts).all()


def test_a_sparse_parameter_has_one_trainer_that_updates_it():
    weight = gluon.Parameter("w", shape=(4, 1), stype="row_sparse", grad_stype="row_sparse")
    weight.initialize(init="zeros")
    trainer = gluon.Trainer([weight], "sgd", update_on_kvstore=False)
    with pytest.raises(RuntimeError, match="More than one trainers for a row_sparse Parameter"):
        gluon.Trainer([weight], "sgd")
    with pytest.raises(ValueError, match="update_on_kvstore=False when sparse weights are present"):
        trainer.step(1, ignore_stale_grad=True)
    weight._set_trainer(None)
    without = gluon.Trainer([weight], "sgd", kvstore=None)
    with pytest.raises(TypeError, match="a KVStore or its kind for row_sparse weights"):
        without.step(1, ignore_stale_grad=True)
    dense = gluon.Parameter("v", shape=(4, 1), grad_stype="row_sparse")
    dense.initialize(init="zeros", ctx=[mx.cpu(0), mx.cpu(1)])
    with pytest.raises(ValueError, match="multi-device training with sparse gradients"):
        gluon.Trainer([dense], "sgd", kvstore="teststore").step(1, ignore_stale_grad=True)


#: Layers that mind the mode, or do not.
MINDING = {"BatchNorm": lambda: nn.BatchNorm(in_channels=2), "Dropout": lambda: nn.Dropout(0.5),
           "LeakyReLU": lambda: nn.LeakyReLU(0.1)}


@pytest.mark.parametrize("backward", [True, False])
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("name", MINDING)
def test_gradients_of_hybridized_blocks_are_those_of_the_mode_of_backward(name, forward, backward):
    """The mode of backward decides, whatever the mode of forward, as in MXNet; no state is moved a second time."""
    found = []
    for hybrid in (False, True):
        net = nn.HybridSequential()
        net.add(nn.Dense(2, in_units=2, weight_initializer=mx.init.Constant(nd.array([[1, 2], [3, 5]]))),
                MINDING[name]())
        net.initialize()
        net.hybridize(hybrid)
        x = nd.array([[1, 2], [3, -1], [0, 2]])
        x.attach_grad()
        for _ in range(2):
            mx.random.seed(3)
            with autograd.record(train_mode=forward):
                y = net(x) * nd.array([[1, 2], [3, 5], [-2, 0]])
            y.backward(train_mode=backward)
        found.append([x.grad.asnumpy(), *[array.data().asnumpy() for array in net.collect_params().values()],
                      *[array.grad().asnumpy() for array in net.collect_params().values() if array.grad_req != "null"]])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)


def test_a_second_derivative_of_a_hybridized_block_updates_its_statistics_once():
    found = []
    for hybrid in (False, True):
        net = nn.BatchNorm(in_channels=2)
        net.initialize()
        net.hybridize(hybrid)
        x = nd.array([[1, 2], [3, -1], [0, 2]])
        x.attach_grad()
        with autograd.record():
            slope = autograd.grad(net(x) ** 3, [x], create_graph=True)[0]
        slope.backward()
        found.append([x.grad.asnumpy(), net.running_mean.data().asnumpy(), net.running_var.data().asnumpy()])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4)


def test_returned_gradients_of_a_plan_are_copies() -> None:
    """A later run of the plan does not change gradients that ``grad`` returned, or that another block's weight got."""
    net = gluon.nn.Dense(3, in_units=2, use_bias=False)
    net.initialize(mx.init.One())
    net.hybridize()
    weight, kept = net.weight.data(), []
    for number in (1.0, 5.0):
        x = nd.full((1, 2), number)
        with autograd.record():
            out = net(x) + net(x * 2)
        kept += [autograd.grad(out, [weight], retain_graph=True)[0], net.weight.grad().copy()]
        out.backward()
    assert [float(each.asnumpy().max()) for each in [*kept, net.weight.grad()]] == [3, 0, 15, 3, 15]
    with autograd.record():
        twice = nd.square(autograd.grad(nd.square(net(x)), [weight], create_graph=True)[0]).sum()
    twice.backward()
    assert weight.grad.asnumpy().max() == 20000


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_state_that_is_stored_while_recording_leaves_the_record_its_old_values(hybrid):
    """Layers with spectral normalization store their vector during forward."""
    net, u = nn.HybridLambda(lambda F, x, u: F.dot(x, u)), gluon.Parameter("u", shape=(2, 1), grad_req="null")
    u.initialize(mx.init.One())
    if hybrid:
        net.hybridize()
    held, x = u.data(), nd.array([[1.0, 2.0]])
    x.attach_grad()
    with autograd.record():
        first = net(x, u.data())
        with autograd.pause():
            u.set_data(nd.array([[3.0], [4.0]]))
        second = net(x, u.data())
        total = first + 10 * second
    total.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [[31.0, 41.0]])
    np.testing.assert_array_equal(total.asnumpy(), [[113.0]])
    assert held is u.data()
    np.testing.assert_array_equal(net(x, held).asnumpy(), [[11.0]])
