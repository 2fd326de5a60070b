"""Training steps: their effects, eagerly and as one plan, and the Cells around a network."""

from __future__ import annotations

import numpy as np
import pytest

from opreg.cells.cell import Cell
from opreg.cells.context_settings import GRAPH_MODE, PYNATIVE_MODE, set_context
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter
from opreg.cells.tensor import Tensor
from opreg.core.registry import ops
from opreg.nn import optim
from opreg.nn.losses import MSELoss, SoftmaxCrossEntropyWithLogits
from opreg.nn.train import ForwardValueAndGrad, TrainOneStepCell, WithEvalCell, WithGradCell, WithLossCell

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 5)).astype(np.float32)
LABELS = RNG.integers(0, 3, 6).astype(np.int32)


class Net(Cell):
    """A perceptron 5-4-3; in training its hidden values are doubled."""

    def __init__(self):
        super().__init__()
        values = np.random.default_rng(1)
        self.w1 = Parameter(values.standard_normal((4, 5)).astype(np.float32))
        self.b1 = Parameter(np.zeros(4, np.float32))
        self.w2 = Parameter(values.standard_normal((3, 4)).astype(np.float32))
        self.b2 = Parameter(np.zeros(3, np.float32), requires_grad=False)

    def construct(self, x):
        h = ops.relu(ops.FullyConnected(x, self.w1, self.b1, num_hidden=4, flatten=False))
        h = h * 2 if self.training else h
        return ops.FullyConnected(h, self.w2, self.b2, num_hidden=3, flatten=False)


def with_loss(net: Cell) -> WithLossCell:
    return WithLossCell(net, SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))


def by_hand(net: Net, rate: float, steps: int, sens: float = 1.0) -> list[float]:
    """Losses and parameters of steps of gradient descent in NumPy, in float64."""
    w1, b1, w2, b2 = (p.asnumpy().astype(np.float64) for p in net.get_parameters())
    found = []
    for _ in range(steps):
        pre = X @ w1.T + b1
        h = np.maximum(pre, 0)
        scores = h @ w2.T + b2
        e = np.exp(scores - scores.max(1, keepdims=True))
        p = e / e.sum(1, keepdims=True)
        found.append(float(-np.log(p[np.arange(6), LABELS]).mean()))
        p[np.arange(6), LABELS] -= 1
        g = p / 6 * sens
        gh = (g @ w2) * (pre > 0)
        w2 -= rate * g.T @ h
        w1 -= rate * gh.T @ X
        b1 -= rate * gh.sum(0)
    return [*found, w1, b1, w2]


WAYS = {"eagerly": lambda step: step, "jit": jit, "compile": lambda step: step.compile(Tensor(X), Tensor(LABELS))}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sens", [1.0, 4.0])
def test_steps_of_gradient_descent_equal_those_by_hand(way, sens):
    net = Net()
    *losses, w1, b1, w2 = by_hand(net, 0.25, 3, sens)
    step = WAYS[way](TrainOneStepCell(with_loss(net), optim.SGD(net.trainable_params(), 0.25), sens))
    found = [float(step(Tensor(X), Tensor(LABELS)).asnumpy()) for _ in range(3)]
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    for p, expected in zip(net.trainable_params(), (w1, b1, w2)):
        np.testing.assert_allclose(p.asnumpy(), expected, rtol=1e-4, atol=1e-6)
    assert not net.b2.asnumpy().any()


def test_a_loss_scale_cancels():
    plain, scaled = Net(), Net()
    for net, sens in ((plain, 1.0), (scaled, 128.0)):
        step = TrainOneStepCell(with_loss(net), optim.Momentum(net.trainable_params(), 0.1, 0.9, weight_decay=0.01,
                                                               loss_scale=sens), sens)
        for _ in range(3):
            step(Tensor(X), Tensor(LABELS))
    for p, q in zip(plain.get_parameters(), scaled.get_parameters()):
        np.testing.assert_allclose(p.asnumpy(), q.asnumpy(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, 0.1), lambda p: optim.SGD(p, 0.1, 0.9, nesterov=True),
    lambda p: optim.Adam(p, optim.ExponentialDecayLR(0.1, 0.5, 2)), lambda p: optim.RMSProp(p, 0.01, centered=True),
    lambda p: optim.AdamWeightDecay(p, [0.1, 0.2, 0.3], weight_decay=0.1), lambda p: optim.Lamb(p, 0.1)])
def test_one_plan_serves_all_steps_and_equals_eager_steps(make):
    nets = [Net(), Net()]
    eager, step = (TrainOneStepCell(with_loss(net), make(net.trainable_params())) for net in nets)
    compiled = jit(step)
    for _ in range(4):
        np.testing.assert_allclose(eager(Tensor(X), Tensor(LABELS)).asnumpy(),
                                   compiled(Tensor(X), Tensor(LABELS)).asnumpy(), rtol=1e-6)
    for p, q in zip(eager.get_parameters(), step.get_parameters()):
        np.testing.assert_allclose(p.asnumpy(), q.asnumpy(), rtol=1e-5, atol=1e-7)
    assert compiled.cache_size == 1
    assert "copy" not in compiled.explain()


def test_graph_mode_compiles_a_step():
    net = Net()
    step = TrainOneStepCell(with_loss(net), optim.SGD(net.trainable_params(), 0.25))
    *losses, _, _, _ = by_hand(net, 0.25, 2)
    set_context(mode=GRAPH_MODE)
    try:
        found = [float(step(Tensor(X), Tensor(LABELS)).asnumpy()) for _ in range(2)]
    finally:
        set_context(mode=PYNATIVE_MODE)
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    assert step._compiled().cache_size == 1


@pytest.mark.parametrize("way", ["eagerly", "jit"])
def test_set_train_reaches_the_network(way):
    net = Net()
    step = TrainOneStepCell(with_loss(net), optim.SGD(net.trainable_params(), 0.0))
    run = WAYS[way](step)
    losses = []
    for mode in (False, True, False):
        assert step.set_train(mode) is step
        assert net.training is mode
        losses.append(float(run(Tensor(X), Tensor(LABELS)).asnumpy()))
    assert losses[0] == losses[2] != losses[1]


def test_gradients_are_returned_on_request():
    net = Net()
    step = TrainOneStepCell(with_loss(net), optim.SGD(net.trainable_params(), 0.0), return_grad=True)
    loss, gradients = step(Tensor(X), Tensor(LABELS))
    other, compiled = jit(step)(Tensor(X), Tensor(LABELS))
    assert list(gradients) == list(compiled) == [p.name for p in net.trainable_params()]
    np.testing.assert_allclose(loss.asnumpy(), other.asnumpy(), rtol=1e-6)
    for name, g in gradients.items():
        np.testing.assert_allclose(g.asnumpy(), compiled[name].asnumpy(), rtol=1e-5, atol=1e-7)


def test_hooks_see_the_scaled_gradient():
    net, seen = Net(), []
    net.w2.register_hook(lambda g: seen.append(g.asnumpy().copy()))
    for sens in (1.0, 8.0):
        TrainOneStepCell(with_loss(net), optim.SGD(net.trainable_params(), 0.0), sens)(Tensor(X), Tensor(LABELS))
    np.testing.assert_allclose(seen[0] * 8, seen[1], rtol=1e-5)


def test_names_stay_those_of_the_network():
    net = Net()
    names = [p.name for p in net.get_parameters()]
    TrainOneStepCell(with_loss(net), optim.SGD(net.trainable_params(), 0.1, 0.9))
    assert [p.name for p in net.get_parameters()] == names


def test_cells_around_a_network_give_loss_and_gradients():
    net = Net()
    x, labels = Tensor(X), Tensor(LABELS)
    whole = with_loss(net)
    assert whole.backbone_network is net
    expected = ForwardValueAndGrad(whole, net.trainable_params(), get_by_list=True)
    for wrap in (lambda cell: cell, jit):
        value, gradients = wrap(expected)(x, labels)
        again = wrap(WithGradCell(net, whole._loss_fn))(x, labels)
        both = wrap(ForwardValueAndGrad(whole, net.trainable_params(), get_all=True, get_by_list=True))(x, labels)
        first = wrap(ForwardValueAndGrad(net, sens_param=True))(x, Tensor(np.ones((6, 3), np.float32)))
        assert first[1].shape == X.shape and first[0].shape == (6, 3)
        np.testing.assert_allclose(value.asnumpy(), whole(x, labels).asnumpy(), rtol=1e-6)
        for g, h, k in zip(gradients, again, both[1][1]):
            np.testing.assert_array_equal(g.asnumpy(), h.asnumpy())
            np.testing.assert_array_equal(g.asnumpy(), k.asnumpy())
        assert len(gradients) == 3 and len(both[1][0]) == 2
        loss, out, label = wrap(WithEvalCell(net, whole._loss_fn, add_cast_fp32=True))(x, labels)
        np.testing.assert_allclose(loss.asnumpy(), value.asnumpy(), rtol=1e-6)
        assert out.shape == (6, 3) and label.shape == (6,)


REFUSED = [
    (lambda: WithLossCell(1, MSELoss()), TypeError, "backbone=1: expected a Cell"),
    (lambda: TrainOneStepCell(Net(), 3), TypeError, "optimizer=3: expected an optimizer"),
    (lambda: TrainOneStepCell(Net(), optim.SGD(Net().trainable_params()), sens=0), ValueError, "sens must not be 0"),
    (lambda: TrainOneStepCell(Net(), optim.SGD(Net().trainable_params()), sens="1"), TypeError, "sens="),
    (lambda: ForwardValueAndGrad(3), TypeError, "network"),
    (lambda: ForwardValueAndGrad(Net(), get_all=1), TypeError, "get_all=1: expected True or False"),
    (lambda: ForwardValueAndGrad(Net(), get_by_list=True), TypeError, "weights must be a list"),
    (lambda: ForwardValueAndGrad(Net(), sens_param=True)(), ValueError, "sens_param"),
]


@pytest.mark.parametrize("row", REFUSED, ids=range(len(REFUSED)))
def test_wrong_arguments_are_refused(row):
    make, kind, text = row
    with pytest.raises(kind, match=text):
        make()
