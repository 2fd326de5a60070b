"""Several devices: arrays, results and copies are on the right device, whichever is current; waits of the host. The
stand-in for GPUs refuses arrays of a device that was not entered."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.core import generators
from opreg.errors import DeviceError
from tests.cuda import host, strict
from tests.cuda.device import Gpu, gpus, late

nd, sym = mx.nd, mx.sym


@pytest.fixture(autouse=True)
def xp() -> Iterator[Gpu]:
    """Two GPUs; the first is current and stays current."""
    with gpus(count=2) as module:
        yield module
    assert strict.Device().id == 0


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# ------------------------------------------------------------------------------------------------ eager calls

EAGER: dict[str, Callable[[Any, Any], Any]] = {
    "operators": lambda F, x: F.sum(F.dot(x, x.T) * 2 + 1, axis=0),
    "subscripts": lambda F, x: x[1] + x[:, nd.array([1], ctx=x.context, dtype="int32")].reshape((-1,))[0],
    "a write": lambda F, x: written(x),
    "a copy": lambda F, x: x.copy() * x.astype("float64").astype("float32"),
    "a scan": lambda F, x: F.contrib.foreach(lambda row, total: (row + total, row + total), x, F.zeros_like(x[0]))[0],
    "a loop": lambda F, x: F.contrib.while_loop(lambda i, s: i < 3, lambda i, s: (s, (i + 1, s * 2)),
                                                [nd.zeros((1,), ctx=x.context), x], max_iterations=5)[0],
}


def written(x: Any) -> Any:
    y = nd.zeros(x.shape, x.context)
    y[1:] = x[:2] * 2
    y += x
    y[0, 1] = 3
    return y


@pytest.mark.parametrize("name", EAGER)
def test_eager_calls_and_gradients_compute_where_their_arrays_are(name: str) -> None:
    found = []
    for ctx in (mx.cpu(), mx.gpu(1)):
        x = nd.array(numbers(3, 3), ctx)
        x.attach_grad()
        with mx.autograd.record():
            y = EAGER[name](nd, x)
        y.backward()
        assert y.context is x.grad.context is ctx
        found.append((y.asnumpy(), x.grad.asnumpy()))
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_each_device_draws_its_own_numbers() -> None:
    mx.random.seed(3)
    first = [nd.random.uniform(shape=(4,), ctx=mx.gpu(i)).asnumpy() for i in range(2)]
    kept = generators.state("gpu", 1)
    second = nd.random.normal(shape=(4,), ctx=mx.gpu(1)).asnumpy()
    generators.set_state(kept, "gpu", 1)
    np.testing.assert_array_equal(nd.random.normal(shape=(4,), ctx=mx.gpu(1)).asnumpy(), second)
    mx.random.seed(3)
    np.testing.assert_array_equal(nd.random.uniform(shape=(4,), ctx=mx.gpu(1)).asnumpy(), first[1])
    for take, put in ((mx.random.get_state, mx.random.set_state), (mx.get_rng_state, mx.set_rng_state)):
        state = pickle.loads(pickle.dumps(take()))
        drawn = [nd.random.normal(shape=(4,), ctx=mx.gpu(i)).asnumpy() for i in range(2)]
        put(state)
        for i in range(2):
            np.testing.assert_array_equal(nd.random.normal(shape=(4,), ctx=mx.gpu(i)).asnumpy(), drawn[i])
    assert (first[0] != first[1]).any()


# ----------------------------------------------------------------------------------------------------- copies


def test_copies_between_devices_are_explicit(xp: Gpu) -> None:
    here, there = nd.array(numbers(2, 3), mx.gpu(0)), nd.zeros((2, 3), mx.gpu(1))
    here.copyto(there)
    moved = [here.as_in_context(mx.gpu(1)), here.copyto(mx.gpu(1)), nd.array(here, mx.gpu(1)), there,
             nd.array(here, mx.gpu(1), dtype="float64")]
    there_too = nd.zeros((2, 3), mx.gpu(1))
    there_too[:] = here
    for array in (*moved, there_too):
        assert array.context is mx.gpu(1) and array._data.device.id == 1
        np.testing.assert_array_equal(array.asnumpy(), numbers(2, 3))
    here.attach_grad()
    with mx.autograd.record():
        y = (here * 2).as_in_context(mx.gpu(1)) * 3
    y.backward()
    assert here.grad.context is mx.gpu(0)
    assert (here.grad.asnumpy() == 6).all()


MIXED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "an operator": (lambda a, b: a + b, r"an array lives on gpu\(1\), the first one on gpu\(0\).*as_in_context\(mx\.gpu"
                                        r"\(0\)\)(.|\n)*input 1 of operator"),
    "one with three inputs": (lambda a, b: nd.where(a, a, b), r"gpu\(1\)(.|\n)*input 2 of operator where"),
    "the host's": (lambda a, b: a + b.as_in_context(mx.cpu()), r"lives on cpu\(0\), the first one on gpu\(0\)"),
    "an update": (lambda a, b: mx.optimizer.SGD().update(0, a, b, None),
                  r"weight 0 on gpu\(0\) got a gradient on gpu\(1\)"),
    "an argument": (lambda a, b: (sym.var("x") + sym.var("y")).bind(mx.gpu(0), {"x": a, "y": b}),
                    r"args: y lives on gpu\(1\), expected gpu\(0\)"),
    "a gradient": (lambda a, b: (sym.var("x") * 2).bind(mx.gpu(0), {"x": a}, {"x": b}),
                   r"args_grad: x lives on gpu\(1\), its argument on gpu\(0\)"),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_devices_are_refused_with_the_code_to_write(name: str) -> None:
    act, words = MIXED[name]
    with pytest.raises(DeviceError) as caught:
        act(nd.ones((2, 2), mx.gpu(0)), nd.ones((2, 2), mx.gpu(1)))
    message = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert __import__("re").search(words, message), message


# -------------------------------------------------------------------------------------------------- executors


def network() -> Any:
    with mx.AttrScope(ctx_group="first"):
        hidden = sym.FullyConnected(sym.var("data"), num_hidden=8, name="one")
        hidden = sym.Activation(hidden, act_type="tanh", name="act")
    with mx.AttrScope(ctx_group="second"):
        out = sym.broadcast_add(sym.FullyConnected(hidden, num_hidden=4, name="two"), sym.sum(hidden))
        return sym.SoftmaxOutput(out, sym.var("label"), name="softmax")


def ran(executor: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    for name, value in executor.arg_dict.items():
        value[:] = rng.integers(0, 4, value.shape) if name == "label" else rng.standard_normal(value.shape)
    for _ in range(3):  # the first run is watched
        executor.forward(is_train=True)
        executor.backward()
    return {**{name: out.asnumpy() for name, out in executor.output_dict.items()},
            **{name: grad.asnumpy() for name, grad in executor.grad_dict.items() if grad is not None}}


@pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("first, second", [(0, 1), (1, 0), (1, 1), (0, None), (None, 1)])
def test_a_graph_over_devices_gives_the_numbers_of_the_host(first: int | None, second: int | None) -> None:
    contexts = [mx.cpu() if number is None else mx.gpu(number) for number in (first, second)]
    expected = ran(network().simple_bind(mx.cpu(), data=(3, 5), label=(3,)))
    executor = network().simple_bind(contexts[1], data=(3, 5), label=(3,), group2ctx=dict(zip(("first", "second"),
                                                                                              contexts)))
    for name, value in ran(executor).items():
        np.testing.assert_allclose(value, expected[name], rtol=2e-5, atol=1e-6, err_msg=name)
    assert executor.arg_dict["one_weight"].context is executor.grad_dict["one_weight"].context is contexts[0]
    assert executor.arg_dict["two_weight"].context is contexts[1]


def test_results_are_on_the_device_of_their_arrays() -> None:
    """The gradient of a variable that two groups read is on the variable's device; a variable that is an output is
    copied."""
    x = sym.var("x")
    with mx.AttrScope(ctx_group="there"):
        y = x * 2
    net = sym.Group([y, x, x + 1])
    found = []
    for groups in ({"there": mx.gpu(1)}, {"there": mx.cpu(1)}):
        here = mx.gpu(0) if groups["there"] is mx.gpu(1) else mx.cpu()
        for place in (here, groups["there"]):
            executor = net.bind(here, {"x": nd.array([1, 2], place)}, {"x": nd.ones(2, place)}, "add",
                                group2ctx=groups)
            executor.forward(is_train=True)
            executor.backward([nd.ones(2, out.context) for out in executor.outputs])
            assert [out.context for out in executor.outputs] == [groups["there"], here, place]
            found.append([each.asnumpy().tolist() for each in (*executor.outputs, executor.grad_dict["x"])])
    assert found == [[[2, 4], [1, 2], [2, 3], [5, 5]]] * 4


def fitted(contexts: Any, **more: Any) -> tuple[dict[str, np.ndarray], np.ndarray]:
    mx.random.seed(5)
    data, label = numbers(24, 6), np.random.default_rng(2).integers(0, 3, 24).astype(np.float32)
    train = mx.io.NDArrayIter(data, label, batch_size=8, label_name="softmax_label")
    net = sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc")
    module = mx.mod.Module(sym.SoftmaxOutput(sym.BatchNorm(net, name="norm"), name="softmax"), context=contexts, **more)
    module.bind(train.provide_data, train.provide_label)
    module.init_params(initializer=mx.init.One())
    module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    for batch in train:
        module.forward_backward(batch)
        module.update()
    arguments, states = module.get_params()
    train.reset()
    predicted = module.predict(train).asnumpy()
    return {name: value.asnumpy() for name, value in {**arguments, **states}.items()}, predicted


@pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("contexts", [[1], [0, 1], [1, 0]], ids=str)
def test_modules_learn_on_devices_as_on_the_host(contexts: list[int]) -> None:
    expected = fitted([mx.cpu(i) for i in contexts])
    found = fitted([mx.gpu(i) for i in contexts])
    for name, value in found[0].items():
        np.testing.assert_allclose(value, expected[0][name], rtol=2e-4, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(found[1], expected[1], rtol=2e-4, atol=1e-5)


@pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
def test_a_plan_on_another_device_is_captured_and_replayed_there() -> None:
    x = sym.var("x")
    executor = (sym.exp(x) * 2 + sym.sum(x)).simple_bind(mx.gpu(1), x=(1,))
    for value in (1.0, 2.0, 3.0, 4.0, 5.0):
        out = executor.forward(is_train=True, x=np.array([value]))[0]
        executor.backward(nd.ones((1,), mx.gpu(1)))
        np.testing.assert_allclose(out.asnumpy(), 2 * np.exp(value) + value, rtol=1e-5)
        np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), 2 * np.exp(value) + 1, rtol=1e-5)
    assert "graph 0" in executor.explain()


@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_copies_to_the_host_may_return_before_they_end(device: int, dtype: str, xp: Gpu) -> None:
    x = nd.array([[1, 2, 3], [4, 5, 6]], ctx=mx.gpu(device), dtype=dtype)
    before = xp.synchronisations
    with xp.cuda.Device(device), late():
        found = (x * 2).asnumpy(blocking=False)
        again = x.T.asnumpy(out=found.reshape(3, 2), blocking=False)
        assert xp.synchronisations == before
        expected = [[1, 4], [2, 5], [3, 6]]
        assert not np.array_equal(again.astype(np.float32), expected)  # the copied values have not arrived yet
        x.wait_to_read()
    assert again.base is not None and again.dtype == x.dtype
    np.testing.assert_array_equal(again.astype(np.float32), expected)
    with xp.cuda.Device(device):
        later = x.asnumpy(blocking=False)
        event = xp.cuda.get_current_stream().record()
        event.synchronize()
    np.testing.assert_array_equal(later, x.asnumpy())


def test_copies_to_the_host_fill_a_given_array(xp: Gpu) -> None:
    x = nd.array([[1, 2, 3], [4, 5, 6]], ctx=mx.gpu(1))
    place = np.zeros((2, 3), np.float32)
    before = xp.synchronisations
    assert x.asnumpy(out=place) is place and xp.synchronisations == before + 1
    np.testing.assert_array_equal(place, x.asnumpy())
    turned = np.zeros((3, 2), np.float32).T
    np.testing.assert_array_equal(x.asnumpy(out=turned), x.asnumpy())
    pageable = np.zeros((2, 3), np.float32)  # a device does not copy to pageable memory by itself
    np.testing.assert_array_equal(x.asnumpy(out=pageable, blocking=False), x.asnumpy())
    assert nd.zeros((0, 2), ctx=mx.gpu(1)).asnumpy(blocking=False).shape == (0, 2)
