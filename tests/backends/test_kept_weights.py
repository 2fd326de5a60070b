"""A plan reads the current values of weights that oneDNN keeps in its own layout, whoever has written them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg import gluon, nn, ops
from opreg.backends import trials
from opreg.backends.onednn.operators import convolution, products
from opreg.cells.jit import jit
from opreg.cells.tensor import Tensor
from opreg.symbol import compile as compiler
from tests.backends.test_convolution_kernels import CHANGES, FAST, close

sym = mx.sym
X = np.random.default_rng(0).normal(size=(2, 4, 9, 9)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(3, 8, 4, 3, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    """Verifies each pass, and lets the library compute small arrays, too."""
    monkeypatch.setattr(compiler, "CHECK", True)
    monkeypatch.setattr(convolution, "LEAST", 0)


def convolve(x: Any, w: Any) -> Any:
    """A convolution, of symbols or of arrays."""
    return (sym if isinstance(x, sym.Symbol) else mx.nd).Convolution(x, w, kernel=(3, 3), num_filter=8, no_bias=True)


def _while(x: Any, w: Any) -> Any:
    """A loop whose state is the weight."""
    return sym.contrib.while_loop(lambda w, i: i < 3, lambda w, i: (convolve(x, w), [w * 2, i + 1]),
                                  [sym.slice_axis(w, axis=0, begin=0, end=1).reshape((8, 4, 3, 3)), sym.zeros((1,))],
                                  max_iterations=3)[0]


def _outside(x: Any, w: Any) -> Any:
    """A loop that reads a weight which the graph computes."""
    total = sym.sum(w, axis=0)
    return sym.contrib.foreach(lambda d, s: (convolve(d, total), s), x.expand_dims(1), sym.zeros((1,)))[0]


def _branch(x: Any, w: Any) -> Any:
    total, nothing = sym.sum(w, axis=0), sym.zeros((8, 4, 3, 3))
    return sym.contrib.cond(sym.sum(w) < 1e9, lambda: convolve(x, total), lambda: convolve(x, nothing))


#: Symbols in which the body of a loop or branch has a convolution whose weight is no variable of the graph.
BODIES = {
    "slices": lambda x, w: sym.contrib.foreach(lambda w, s: (convolve(x, w), s), w, sym.zeros((1,)))[0],
    "state": lambda x, w: sym.contrib.foreach(lambda d, s: (convolve(x, s), s + d), w, sym.sum(w, axis=0))[0],
    "computed before": _outside,
    "state of a condition": _while,
    "branch": _branch,
    "behind lengths that follow from values": lambda x, w: convolve(
        sym.contrib.boolean_mask(x, sym.ones((2,))), sym.sum(w, axis=0)),
}


@FAST
@pytest.mark.parametrize("name", BODIES)
def test_bodies_of_loops_read_the_weight_of_each_round(name):
    """The body of a loop gets another weight in each round, and in each run."""
    net = BODIES[name](sym.Variable("x"), sym.Variable("w"))
    w = mx.nd.array(W)
    args = {"x": mx.nd.array(X), "w": w}
    executor = net.bind(mx.cpu(), args, grad_req="null")
    for factor in (1.0, -2.0, 0.5):
        w[:] = W * np.float32(factor)
        found = executor.forward(is_train=False)[0].asnumpy()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(convolution, "LEAST", 1 << 62)
            want = net.bind(mx.cpu(), args, grad_req="null").forward(is_train=False)[0].asnumpy()
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-3)


# ------------------------------------------------------------------------------------ Cells and blocks in inference


def network() -> nn.Cell:
    """A convolution with its norm and relu, and one alone."""
    net = nn.SequentialCell(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, has_bias=True))
    rng = np.random.default_rng(3)
    for parameter in net.get_parameters():
        parameter.set_data(Tensor(rng.uniform(0.5, 1.5, parameter.shape).astype(np.float32)))
    return net.set_train(False)


def _by_step(net: nn.Cell) -> None:
    """Runs a compiled training step between two runs of inference."""
    net.set_train(True)
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    step = mx.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)

    @jit
    def train(x: Tensor) -> Tensor:
        loss, gradients = step(x)
        optimizer(gradients)
        return loss

    train(Tensor(X))
    net.set_train(False)


def _by_gradients(net: nn.Cell) -> None:
    """Runs a training step in Python."""
    net.set_train(True)
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    optimizer(mx.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)(Tensor(X))[1])
    net.set_train(False)


def _by_view(net: nn.Cell) -> None:
    part = net[0].weight[2]
    part[:] = 0.25
    net[0].weight[3] = Tensor(np.ones((4, 3, 3), np.float32))


#: Writes to the parameters of a Cell.
WRITES = {
    "set_data": lambda net: net[0].weight.set_data(net[0].weight * 2),
    "assign": lambda net: ops.assign(net[3].weight, net[3].weight * -1),
    "subscript": lambda net: net[0].weight.__setitem__((1, 2), 0.5),
    "in place": lambda net: net[3].weight.__imul__(2),
    "view": _by_view,
    "statistics": lambda net: net[1].moving_mean.set_data(net[1].moving_mean + 1),
    "dict": lambda net: mx.load_param_into_net(net, {name: nn.Parameter(value * 0.5) for name, value
                                                     in net.parameters_dict().items()}),
    "training": _by_gradients,
    "compiled training": _by_step,
}


@FAST
@pytest.mark.parametrize("training", [False, True])
def test_a_compiled_cell_in_inference_is_planned_as_an_executor_is(training):
    compiled = jit(network().set_train(training))
    compiled(Tensor(X))
    assert ("_folded_convolution" in compiled.explain()) is not training


@FAST
@settings(max_examples=25, deadline=None)
@given(changes=st.lists(st.sampled_from(sorted(WRITES)), min_size=1, max_size=4))
def test_a_compiled_cell_uses_changed_weights(changes):
    """Inference reads the weights of the Cell, whoever writes them between runs."""
    net = network()
    compiled = jit(net)
    compiled(Tensor(X))
    for change in changes:
        WRITES[change](net)
        close(compiled(Tensor(X)).asnumpy(), net(Tensor(X)).asnumpy())


@FAST
@pytest.mark.parametrize("change", CHANGES)
def test_a_hybridized_block_uses_changed_weights(change):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(8, 3, in_channels=4), gluon.nn.BatchNorm(in_channels=8), gluon.nn.Activation("relu"))
    net.initialize(mx.init.Uniform(1))
    x, weight = mx.nd.array(X), net[0].weight.data()
    eager = net(x).asnumpy()
    net.hybridize()
    close(net(x).asnumpy(), eager)
    change(weight)
    found = net(x).asnumpy()
    net.hybridize(False)
    close(found, net(x).asnumpy())


@FAST
def test_a_weight_that_is_an_argument_is_read_in_each_call():
    compiled = jit(ops.conv2d)
    for weight in W:
        close(compiled(Tensor(X), Tensor(weight)).asnumpy(), ops.conv2d(Tensor(X), Tensor(weight)).asnumpy())


def test_dropout_in_inference_is_no_step_of_a_compiled_cell():
    compiled = jit(nn.SequentialCell(nn.Dropout(p=0.5), nn.Tanh()).set_train(False))
    compiled(Tensor(X))
    assert "Dropout" not in compiled.explain()


@pytest.mark.parametrize("training", [False, True])
def test_python_in_a_compiled_cell_runs_in_the_mode_of_the_call(training, unregistered):
    """The code of a user's operator asks for the mode."""
    @mx.operator.define(name="custom.test_mode_asked")
    def asked(x):
        return x * 0 + float(mx.autograd.is_training())

    class Asks(nn.Cell):
        def construct(self, x):
            return asked(x)

    assert jit(Asks().set_train(training))(Tensor(X)).asnumpy().max() == training


# ---------------------------------------------------------------------------------------------- small products


def _layer(x: Any, w: Any) -> sym.Symbol:
    return sym.FullyConnected(x, w, num_hidden=32, no_bias=True, name="dense")


def _dense(w: Any, rows: int = 4) -> mx.executor.Executor:
    """Executor of a dense layer of few rows, in inference."""
    x = mx.nd.array(np.random.default_rng(5).normal(size=(rows, 9 * 16)).astype(np.float32))
    return _layer(sym.Variable("x"), sym.Variable("w")).bind(mx.cpu(), {"x": x, "w": w}, grad_req="null")


@pytest.fixture
def tried(monkeypatch):
    """Lets products of any size be tried, and oneDNN win."""
    monkeypatch.setenv("OPREG_TUNE", "1")
    monkeypatch.setattr(products.matmul, "SMALL", 0)
    monkeypatch.setattr(products.trials, "faster", lambda question, usual, other, *rest, **words: trials.Choice(
        "oneDNN", "so it is"))


@FAST
def test_a_weight_of_a_product_is_laid_out_once(tried):
    """In inference a write that the library does not record is not seen; training reads the weight itself."""
    w = mx.nd.array(np.random.default_rng(6).normal(size=(32, 9 * 16)).astype(np.float32))
    executor = _dense(w)
    executor.forward(is_train=True)
    first = executor.forward(is_train=False)[0].asnumpy()
    assert "dense: onednn" in executor.explain()
    w._data[...] = 0.0
    assert (executor.forward(is_train=False)[0].asnumpy() == first).all() and first.any()
    assert not executor.forward(is_train=True)[0].asnumpy().any()


@FAST
@pytest.mark.parametrize("change", CHANGES)
def test_a_product_uses_a_changed_weight(tried, change):
    """The product reads the current weight, whoever has written it."""
    w = mx.nd.array(np.random.default_rng(6).normal(size=(32, 16, 3, 3)).astype(np.float32))
    executor = _dense(w.reshape((32, -1)))
    executor.forward(is_train=False)
    change(w)
    found = executor.forward(is_train=False)[0].asnumpy()
    close(found, executor.arg_dict["x"].asnumpy() @ w.asnumpy().reshape(32, -1).T)


@FAST
@pytest.mark.parametrize("change", [lambda w: w.set_data(w * 2), lambda w: w.__setitem__((1, 2), 0.5),
                                    lambda w: w.__imul__(-1)])
def test_a_compiled_dense_layer_uses_a_changed_weight(tried, change):
    net = nn.Dense(36, 32).set_train(False)
    compiled, x = jit(net), Tensor(np.random.default_rng(7).normal(size=(4, 36)).astype(np.float32))
    compiled(x)
    assert "onednn" in compiled.explain()
    change(net.weight)
    close(compiled(x).asnumpy(), net(x).asnumpy())


@FAST
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_products_in_a_loop_read_the_weight_of_each_iteration(tried, factor):
    """The weight of a round is a slice of a larger one, or computed in the round."""
    x, weights = sym.Variable("x"), sym.Variable("w")
    net = sym.contrib.foreach(lambda w, s: (_layer(x, w if factor == 1 else w * factor), s), weights,
                              sym.zeros((1,)))[0]
    rng = np.random.default_rng(8)
    args = {"x": mx.nd.array(rng.normal(size=(4, 144))), "w": mx.nd.array(rng.normal(size=(3, 32, 144)))}
    executor = net.bind(mx.cpu(), args, grad_req="null")
    found = [executor.forward(is_train=False)[0].asnumpy() for _ in range(2)][1]
    close(found, factor * args["x"].asnumpy() @ args["w"].asnumpy().swapaxes(1, 2))


@FAST
def test_a_product_reads_foreign_memory_in_each_run(tried):
    host = np.ones((32, 9 * 16), np.float32)
    w = mx.nd.from_numpy(host)
    host.flags.writeable = True
    executor = _dense(w)
    for number in (1.0, -2.0, 0.5):
        host[...] = number
        found = executor.forward(is_train=False)[0].asnumpy()
        close(found, executor.arg_dict["x"].asnumpy() @ host.T)
