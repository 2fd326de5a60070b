"""Layers and samplers of ``gluon.contrib``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.gluon import contrib, nn


def _both(net: Any, *inputs: Any) -> np.ndarray:
    """Result of a block, after a check that eager call and plan agree."""
    eager = net(*inputs).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(*inputs).asnumpy(), eager, rtol=1e-5, atol=1e-6)
    return eager


def test_concurrent_concatenates_outputs_of_blocks() -> None:
    x = mx.nd.random.uniform(shape=(2, 6))
    for kind in (contrib.nn.Concurrent, contrib.nn.HybridConcurrent):
        net = kind(axis=1)
        net.add(nn.Dense(4), contrib.nn.Identity(), nn.Dense(3))
        net.initialize()
        out = net(x).asnumpy()
        assert out.shape == (2, 13) and (out[:, 4:10] == x.asnumpy()).all()
        assert (net[2](x).asnumpy() == out[:, 10:]).all()
    np.testing.assert_allclose(_both(net, x), out, rtol=1e-6)


@pytest.mark.parametrize(("shape", "factors"), [((2, 6, 4), 3), ((2, 12, 3, 5), (2, 3)), ((2, 8, 3, 5), 2),
                                                ((1, 48, 3, 2, 2), (2, 3, 4))])
def test_pixel_shuffle_moves_channels_to_pixels(shape: tuple[int, ...], factors: Any) -> None:
    dims = len(shape) - 2
    net = {1: contrib.nn.PixelShuffle1D, 2: contrib.nn.PixelShuffle2D, 3: contrib.nn.PixelShuffle3D}[dims](factors)
    each = factors if isinstance(factors, tuple) else (factors,) * dims
    x = np.random.default_rng(0).random(shape).astype("float32")
    lengths = [a * b for a, b in zip(shape[2:], each, strict=True)]
    expected = np.zeros((shape[0], shape[1] // int(np.prod(each)), *lengths), "float32")
    split = x.reshape(shape[0], -1, *each, *shape[2:])
    for place in np.ndindex(*each):
        expected[(slice(None), slice(None), *[slice(a, None, b) for a, b in zip(place, each, strict=True)])] = \
            split[(slice(None), slice(None), *place)]
    assert (_both(net, mx.nd.array(x)) == expected).all()
    assert repr(net) == f"PixelShuffle{dims}D({factors if dims == 1 else each})"


def test_pixel_shuffle_refuses_a_wrong_number_of_factors() -> None:
    with pytest.raises(mx.errors.ArgumentError, match="expected a number, or 2"):
        contrib.nn.PixelShuffle2D((1, 2, 3))


def test_sync_batch_norm_on_one_device_equals_batch_norm() -> None:
    x = mx.nd.random.normal(3, 2, shape=(4, 5, 6, 6))
    one, other = contrib.nn.SyncBatchNorm(num_devices=1), nn.BatchNorm()
    for layer in (one, other):
        layer.initialize()
    for _ in range(2):
        with mx.autograd.record():
            np.testing.assert_allclose(one(x).asnumpy(), other(x).asnumpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.running_var.data().asnumpy(), other.running_var.data().asnumpy(), rtol=1e-4)
    np.testing.assert_allclose(_both(one, x), other(x).asnumpy(), rtol=1e-4, atol=1e-4)
    names = sorted(key.split("_", 1)[1] for key in one.collect_params())
    assert names == ["beta", "gamma", "running_mean", "running_var"]


def test_a_sparse_embedding_learns_with_dense_gradients() -> None:
    layer = contrib.nn.SparseEmbedding(10, 4)
    layer.initialize()
    with mx.autograd.record():
        out = layer(mx.nd.array([1, 3, 1]))
    out.backward()
    assert layer.weight.grad().asnumpy().sum(axis=1).tolist() == [0, 8, 0, 4] + [0] * 6
    assert repr(layer) == "SparseEmbedding(10 -> 4, float32)"


@pytest.mark.parametrize("kind", [contrib.cnn.DeformableConvolution, contrib.cnn.ModulatedDeformableConvolution])
def test_deformable_convolutions_begin_without_offsets(kind: Any) -> None:
    """Initial offsets are zeros, and initial weights of windows are ones, so the layer is a convolution."""
    x = mx.nd.random.uniform(shape=(2, 3, 8, 8))
    layer = kind(4, kernel_size=3, padding=1, activation="relu")
    layer.initialize(mx.init.Xavier())
    out = _both(layer, x)
    weight, bias = layer.deformable_conv_weight.data(), layer.deformable_conv_bias.data()
    expected = mx.nd.relu(mx.nd.Convolution(x, weight, bias, kernel=(3, 3), pad=(1, 1), num_filter=4))
    np.testing.assert_allclose(out, expected.asnumpy(), rtol=1e-4, atol=1e-5)
    settings = "kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)"
    assert repr(layer) == f"{kind.__name__}(3 -> 4, {settings}, Activation(relu))"
    layer.offset_bias.set_data(mx.nd.random.uniform(-1, 1, shape=layer.offset_bias.shape))
    assert np.abs(layer(x).asnumpy() - out).max() > 1e-3
    with mx.autograd.record():
        loss = (layer(x) ** 2).sum()
    loss.backward()
    assert float(layer.offset_weight.grad().abs().sum().asscalar()) > 0
    bare = kind(4, in_channels=3, use_bias=False, offset_use_bias=False)
    bare.initialize()
    assert bare(x).shape == (2, 4, 8, 8) and len(bare.collect_params().keys()) == 2


def test_an_interval_sampler_takes_every_third_index() -> None:
    assert list(contrib.data.IntervalSampler(13, interval=3)) == [0, 3, 6, 9, 12, 1, 4, 7, 10, 2, 5, 8, 11]
    assert list(contrib.data.IntervalSampler(13, interval=3, rollover=False)) == [0, 3, 6, 9, 12]
    with pytest.raises(mx.errors.ArgumentError, match="interval=5: expected an int from 1 to length=3"):
        contrib.data.IntervalSampler(3, 5)
