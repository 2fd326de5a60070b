"""Fast kernels: products of RNN cut into small ones, updates of many weights at once, erf."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from opreg.builtin.layers import rnn_layer, rnn_parts
from opreg.builtin.optimizers import updating as updates
from opreg.core import threads
from opreg.core.registry import get
from opreg.elementwise import special_functions as special
from opreg.errors import ShapeError
from opreg.ndarray import array
from opreg.train import optimizer as optimizers
from tests.rows.rnn import _reference

# ----------------------------------------------------------------------------------------------- RNN


def _rnn_inputs(mode: str, batch: int, size: int, both: bool, dtype: str) -> tuple[dict[str, Any], list[np.ndarray]]:
    op, rng = get("RNN"), np.random.default_rng(1)
    given = {"mode": mode, "state_size": size, "num_layers": 1, "state_outputs": True, "bidirectional": both}
    attrs = op.complete(given)
    count = len(op.signature.arguments(attrs))
    unknown = [None] * len(op.signature.outputs(attrs))
    shapes = op.infer_shapes([(3, batch, 5), *[None] * (count - 1)], unknown, attrs)[0]
    return attrs, [rng.normal(size=shape, scale=size ** -0.5).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("batch, features, columns, expected", [
    (32, 128, 128, 128), (32, 256, 256, 64), (64, 256, 256, 256), (128, 128, 128, 128), (4, 1000, 1000, 250),
    (1, 8, 8, 8), (0, 8, 8, 8), (32, 250, 250, 125),
])
def test_products_of_a_step_are_split_below_the_threading_limit(batch, features, columns, expected):
    attrs = get("RNN").complete({"mode": "lstm", "state_size": columns, "num_layers": 1})
    assert rnn_layer._columns(rnn_parts.kind_of(**attrs), batch, features, columns) == expected


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
@pytest.mark.parametrize("batch, size, dtype", [(32, 256, "float32"), (32, 250, "float64"), (2, 64, "float32")])
def test_rnn_with_split_products_equals_the_reference(mode, both, batch, size, dtype):
    attrs, ins = _rnn_inputs(mode, batch, size, both, dtype)
    if both and batch > 2:
        ins = [each[:, :3] if each.ndim == 3 else each for each in ins]
    kernel = get("RNN").kernels[0].rule.function
    *found, _ = kernel(np, *ins, **attrs, is_train=True, rng=None)
    given = {name: attrs[name] for name in ("mode", "state_size", "num_layers", "state_outputs", "bidirectional")}
    for one, other in zip(found, _reference(*ins, **given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5 if dtype == "float32" else 1e-12)


def test_one_direction_needs_no_reversal(monkeypatch):
    """The time axis is reversed only for the second direction."""
    attrs, ins = _rnn_inputs("lstm", 4, 8, False, "float32")
    monkeypatch.setattr("opreg.builtin.layers.rnn._reverse_time", lambda *given: pytest.fail("turned"))
    forward, backward = (get(name).kernels[0].rule.function for name in ("RNN", "_backward_RNN"))
    *outs, reserve = forward(np, *ins, **attrs, is_train=True, rng=None)
    assert backward(np, *outs, *ins, reserve, **attrs)[0].shape == ins[0].shape


@pytest.mark.parametrize("mode", ["rnn_tanh", "lstm", "gru"])
def test_the_gradient_of_rnn_with_split_products_is_right(mode):
    """The gradient along a random direction agrees with a difference."""
    attrs, ins = _rnn_inputs(mode, 32, 256, False, "float64")
    kernel, backward = (get(name).kernels[0].rule.function for name in ("RNN", "_backward_RNN"))
    rng = np.random.default_rng(2)
    *outs, reserve = kernel(np, *ins, **attrs, is_train=True, rng=None)
    heads = [rng.normal(size=out.shape) for out in outs]
    way = [rng.normal(size=each.shape) for each in ins]

    def cost(step: float) -> float:
        moved = [each + step * along for each, along in zip(ins, way)]
        return sum(float((g * y).sum()) for g, y in zip(heads, kernel(np, *moved, **attrs, is_train=True, rng=None)))

    grads = backward(np, *heads, *ins, reserve, **attrs)
    expected = (cost(1e-5) - cost(-1e-5)) / 2e-5
    assert sum(float((g * along).sum()) for g, along in zip(grads, way)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("mode", ["rnn_relu", "lstm", "gru"])
@pytest.mark.parametrize("dtype, inner", [("float16", "float32"), ("float32", "float32")])
def test_rnn_writes_its_results_to_given_arrays(mode, dtype, inner):
    attrs, ins = _rnn_inputs(mode, 2, 3, True, dtype)
    for name, words in (("RNN", {"is_train": True, "rng": None}), ("_backward_RNN", {})):
        kernel = get(name).kernels[0].rule.function
        plain = kernel(np, *ins, **attrs, **words)
        kinds = [dtype] * (len(plain) - 1) + [inner if name == "RNN" else dtype]
        out = tuple([np.full(each.shape, 9, kind) for each, kind in zip(plain, kinds)])
        kernel(np, *ins, **attrs, **words, out=out)
        for one, other in zip(out, plain, strict=True):
            np.testing.assert_array_equal(one, other.astype(one.dtype))
        *results, reserve = plain
        ins = [*results, *ins, reserve]  # inputs of the backward operator; the results stand for their gradients


@pytest.mark.parametrize("mode", ["rnn_tanh", "lstm", "gru"])
def test_nan_does_not_spread_to_other_samples(mode):
    attrs, ins = _rnn_inputs(mode, 4, 64, False, "float32")
    ins[0][1, 2, 0] = np.nan
    y = get("RNN").kernels[0].rule.function(np, *ins, **attrs, is_train=False, rng=None)[0]
    assert np.isnan(y[1:, 2]).all()
    y[1:, 2] = 0
    assert np.isfinite(y).all()


# ------------------------------------------------------------------------------------------- updates

_SIZES = (1, 3, (2, 2), 0, 40, 7, (5, 9), 4, 100, 2)
_STEPS = {"sgd_update": 0, "sgd_mom_update": 1, "nag_mom_update": 1, "adam_update": 2, "ftrl_update": 2,
          "rmsprop_update": 1, "signum_update": 1}


def _weights(states: int, dtype: str, seed: int = 0) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [[abs(rng.normal(size=size)).astype(dtype) for _ in range(2 + states)] for size in _SIZES]


@pytest.fixture(params=["whole", "tiles", "threads"])
def cut(request, monkeypatch):
    """Sets the sizes at which weights are cut into tiles, gathered, and shared among threads."""
    if request.param != "whole":
        monkeypatch.setattr(updates, "TILE", 16)
        monkeypatch.setattr(updates, "GATHERED", 8)
        monkeypatch.setattr(updates, "MANY", 2)
        monkeypatch.setattr(updates, "_tile_scratch", updates._TileScratch())
    if request.param == "threads":
        monkeypatch.setattr(updates, "SHARED", 1)
        monkeypatch.setattr(threads, "count", lambda: 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", _STEPS)
def test_updates_of_many_weights_equal_single_updates(name, dtype, cut):
    op = get(name)
    rule = op.kernels[0].rule
    attrs = rule.select(op.complete({"lr": 0.1, "wd": 0.01, "rescale_grad": 0.5, "clip_gradient": 0.3}))
    one, other = _weights(_STEPS[name], dtype), _weights(_STEPS[name], dtype)
    one[4][1][5] = other[4][1][5] = np.nan
    with np.errstate(all="ignore"):
        for arrays in one:
            rule.function(np, *arrays, out=arrays[0], **attrs)
        updates.update_together(np, rule.function.rule, [(arrays[0], arrays) for arrays in other], **attrs)
    for expected, found in zip(one, other):
        for a, b in zip(expected, found):
            np.testing.assert_array_equal(a, b)


def test_gathered_weights_take_no_fresh_memory():
    """New memory of this size would cost more time than the update itself."""
    weights = [[np.ones(updates.GATHERED, np.float32) for _ in range(4)] for _ in range(updates.MANY + 2)]
    function = get("adam_update").kernels[0].rule.function

    def move():
        updates.update_together(np, function.rule, [(arrays[0], arrays) for arrays in weights], lr=0.1, beta1=0.9,
                                beta2=0.999, epsilon=1e-8, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0)

    move()
    tracemalloc.start()
    try:
        move()
        assert tracemalloc.get_traced_memory()[1] < weights[0][0].nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name, count, decayed, instructions", [
    ("sgd_update", 2, False, 2), ("sgd_update", 2, True, 3), ("sgd_mom_update", 3, False, 4),
    ("sgd_mom_update", 3, True, 6), ("lamb_update_phase1", 4, False, 13), ("lamb_update_phase1", 4, True, 15),
])
def test_formulas_compute_nothing_for_unrequested_results(name, count, decayed, instructions):
    rule = vars(get(name).kernels[0].rule.function)["rule"]
    attrs = dict(lr=0.1, wd=0.1 if decayed else 0.0, rescale_grad=0.5, clip_gradient=-1.0, momentum=0.9, beta1=0.9,
                 beta2=0.99, epsilon=1e-6, t=3, bias_correction=True)
    expression, _ = rule.traced(count, attrs)
    assert len(expression.code) == instructions, expression


@pytest.mark.parametrize("name, parts", [("multi_sgd_update", 2), ("multi_sgd_mom_update", 3),
                                         ("multi_mp_sgd_update", 3), ("multi_mp_sgd_mom_update", 4)])
def test_multi_updates_use_one_rate_for_each_weight(name, parts, cut):
    dtype = "float16" if "_mp_" in name else "float32"
    rates = [0.1 if i % 2 else 0.2 for i in range(len(_SIZES))]

    def groups() -> list[list[np.ndarray]]:
        made = _weights(parts - 2, "float32")
        return [[each.astype(dtype) if i < 2 else each for i, each in enumerate(arrays)] for arrays in made]

    one, other = groups(), groups()
    single = get(name.removeprefix("multi_")).kernels[0].rule
    for arrays, lr in zip(one, rates):
        attrs = get(name.removeprefix("multi_")).complete({"lr": lr, "wd": 0.01})
        single.function(np, *arrays, out=arrays[0], **single.select(attrs))
    many = get(name)
    attrs = many.complete({"lrs": rates, "wds": [0.01] * len(rates), "num_weights": len(rates)})
    flat = [each for arrays in other for each in arrays]
    many.kernels[0].rule.function(np, *flat, out=tuple(flat[::parts]), **many.kernels[0].rule.select(attrs))
    for expected, found in zip(one, other):
        for a, b in zip(expected, found):
            np.testing.assert_array_equal(a, b)


class _Halting(optimizers.Adam):
    """An updater that changes a weight only if its index is odd."""

    def update(self, index, weight, grad, state):
        if index % 2:
            super().update(index, weight, grad, state)


@pytest.mark.parametrize("make", [
    lambda: optimizers.SGD(learning_rate=0.1, wd=0.01, rescale_grad=0.5),
    lambda: optimizers.SGD(learning_rate=0.1, momentum=0.9, clip_gradient=0.4),
    lambda: optimizers.SGD(learning_rate=0.1, momentum=0.9, multi_precision=True),
    lambda: optimizers.NAG(learning_rate=0.1, momentum=0.9),
    lambda: optimizers.Adam(learning_rate=0.1, wd=0.01),
    lambda: optimizers.Adam(learning_rate=0.1),
    lambda: optimizers.LARS(learning_rate=0.1, momentum=0.9),
    lambda: _Halting(learning_rate=0.1),
])
def test_an_updater_of_a_list_equals_single_updates(make):
    results = []
    for together in (False, True):
        made = make()
        made.set_lr_mult({2: 0.5})
        updater = optimizers.get_updater(made)
        weights, grads = ([array(each[i]) for each in _weights(0, "float32")] for i in range(2))
        for _ in range(3):
            if together:
                updater(list(range(len(weights))), grads, weights)
            else:
                for i, (weight, grad) in enumerate(zip(weights, grads)):
                    updater(i, grad, weight)
        results.append([each.asnumpy() for each in weights])
        assert made.num_update == 3
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)


def test_updating_a_list_with_one_weight_twice_updates_it_twice():
    updater = optimizers.get_updater(optimizers.SGD(learning_rate=1.0))
    weight, grad = array([1.0, 2.0]), array([1.0, 0.5])
    updater([0, 1], [grad, grad], [weight, weight])
    assert weight.asnumpy().tolist() == [-1.0, 1.0]


def test_updater_of_a_list_refuses_gradients_of_other_shapes():
    updater = optimizers.get_updater(optimizers.SGD())
    with pytest.raises(ShapeError, match=r"weight 1 of shape \(2,\) got a gradient of shape \(3,\)"):
        updater([0, 1], [array([1.0, 2.0]), array([1.0, 2.0, 3.0])], [array([1.0, 2.0]), array([1.0, 2.0])])


# ------------------------------------------------------------------------------------------------ erf


def test_erf_in_float32_is_within_four_units_in_the_last_place():
    x = np.concatenate([np.linspace(-6, 6, 200_001), np.logspace(-37, 0, 2001)]).astype("float32")
    exact = special.erf(np, x.astype("float64"))
    found, out = special.erf(np, x), x.copy()
    assert (abs(found - exact) / np.spacing(abs(exact).astype("float32"))).max() < 4
    special.erf(np, out, out=out)
    np.testing.assert_array_equal(out, found)
    edges = special.erf(np, np.array([np.inf, -np.inf, np.nan, -0.0], "float32"))
    np.testing.assert_array_equal(edges, np.array([1, -1, np.nan, -0.0], "float32"))
    assert np.signbit(edges[3])
