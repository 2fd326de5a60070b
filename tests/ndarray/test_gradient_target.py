"""Gradients that are computed straight into the memory that an optimizer reads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import opreg as ms
from opreg import nn
from opreg.ndarray.gradient_target import GradientTarget

SHAPE = 160, 128  # large enough for its own gradient target


def network(**settings):
    """A dense layer, and the function that gives the gradients of its weights."""
    layer = nn.Dense(SHAPE[1], SHAPE[0], bias_init="zeros")
    rng = np.random.default_rng(0)
    layer.weight.set_data(ms.Tensor(rng.normal(size=SHAPE).astype(np.float32)))
    optimizer = nn.SGD(layer.trainable_params(), **{"learning_rate": 0.1, **settings})
    gradients = ms.grad(lambda x: (layer(x) * layer(x)).mean(), None, optimizer.parameters)
    inputs = [ms.Tensor(rng.normal(size=(4, SHAPE[1])).astype(np.float32)) for _ in range(8)]
    return layer, optimizer, gradients, inputs


def simple():
    """The network with a weight that is used once."""
    layer, optimizer, _, inputs = network()
    return layer, optimizer, ms.grad(lambda x: layer(x).mean(), None, optimizer.parameters), inputs


def lies_there(parameter, gradient) -> bool:
    return parameter._gradient_target.holds(gradient._data)


def test_a_gradient_is_computed_where_the_optimizer_reads_it():
    layer, optimizer, gradients, (x, y, *_) = simple()
    assert layer.weight._gradient_target is None
    optimizer(gradients(x))
    found = gradients(y)
    assert lies_there(layer.weight, found[0])
    expected = np.repeat(y.asnumpy().mean(0)[None] / SHAPE[0], SHAPE[0], 0)
    np.testing.assert_allclose(found[0].asnumpy(), expected, rtol=1e-5, atol=1e-8)
    before = layer.weight.asnumpy().copy()
    optimizer(found)
    np.testing.assert_allclose(layer.weight.asnumpy(), before - np.float32(0.1) * expected, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(found[0].asnumpy(), expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("keep", [lambda g: g, lambda g: g._data, lambda g: g._data[3:, ::2], lambda g: g._data.T[1:],
                                  lambda g: memoryview(g._data), lambda g: g._data[5].view(np.int32),
                                  lambda g: ms.Tensor(g), lambda g: g.detach(), lambda g: g.asnumpy()],
                         ids=["tensor", "array", "view", "view of a view", "buffer", "bits", "copy", "detached",
                              "numbers"])
def test_held_gradients_do_not_change(keep):
    layer, optimizer, gradients, inputs = simple()
    optimizer(gradients(inputs[0]))
    found = gradients(inputs[1])
    assert lies_there(layer.weight, found[0])
    kept = keep(found[0])
    numbers = np.array(getattr(kept, "_data", kept))
    optimizer(found)
    del found
    for x in inputs[2:]:
        optimizer(gradients(x))
        np.testing.assert_array_equal(np.array(getattr(kept, "_data", kept)), numbers)


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
@pytest.mark.parametrize("rule", [nn.SGD, nn.Momentum, nn.Adam, nn.RMSProp])
def test_steps_are_the_same_however_long_gradients_are_kept(rule, kept):
    found = []
    for gradient_targets in (True, False):
        layer, _, gradients, inputs = network()
        settings = {"momentum": 0.9} if rule is nn.Momentum else {}
        optimizer, held = rule(layer.trainable_params(), learning_rate=0.1, **settings), []
        for x in inputs:
            held.append(gradients(x))
            if not gradient_targets:
                layer.weight._gradient_target = None
            optimizer(held[-1])
            del held[:len(held) - kept]
        found.append([p.asnumpy().copy() for p in optimizer.parameters])
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)


def test_a_weight_that_is_used_twice_has_the_sum():
    layer, optimizer, gradients, (x, y, *_) = network()
    optimizer(gradients(x))
    found = gradients(y)[0].asnumpy().copy()
    layer.weight._gradient_target = None
    np.testing.assert_array_equal(gradients(y)[0].asnumpy(), found)


def test_two_gradients_at_the_same_time_use_separate_memory():
    _, optimizer, gradients, (x, y, *_) = simple()
    optimizer(gradients(x))
    first, second = gradients(y), gradients(y)
    assert first[0]._data is not second[0]._data
    np.testing.assert_array_equal(first[0].asnumpy(), second[0].asnumpy())


def test_targets_are_freed_with_the_optimizer():
    layer, optimizer, gradients, (x, *_) = simple()
    optimizer(gradients(x))
    target = layer.weight._gradient_target
    del optimizer, gradients
    assert target.reserve() is None


def test_one_thread_at_a_time_writes_to_a_target():
    array, target = GradientTarget.of(ms.core.spec.Spec((256, 256), np.dtype(np.float32)))
    inside, held = threading.Event(), []

    def other():
        held.append(target.fill(lambda out=None: np.ones((256, 256), np.float32) if out is None else
                                np.copyto(out, 2.0)))
        inside.set()

    def slow(out=None):
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(60)
        thread.join()
        out[...] = 3.0

    mine = target.fill(slow)
    assert (mine == 3.0).all() and (held[0] == 1.0).all()
    assert np.shares_memory(mine, array) and not np.shares_memory(held[0], array)
    assert target.reserve() is None
    del mine
    assert target.reserve() is array
    assert target.reserve() is None
    target.release()
    assert target.reserve() is array
