"""Normalisations, losses, activations and updates, beyond their rows: moving statistics, random numbers, shapes,
errors, declarations."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opreg import nd
from opreg.core import generators
from opreg.core.registry import get, ops
from opreg.errors import AttrError, DTypeError, NotDifferentiableError, OpError, ShapeError
from opreg.ndarray import array, autograd
from opreg.symbol import Variable
from tests.questions import of_each
from tests.rows import normal

X = np.random.default_rng(0).standard_normal((4, 3, 2))


def _arrays(*values: Any) -> list[Any]:
    return [array(np.asarray(value), None, np.asarray(value).dtype) for value in values]


def _batch_norm(train: bool, **attrs: Any) -> tuple[Any, ...]:
    """Output, arrays and their values before."""
    before = [X, np.array([2.0, 3, 4]), np.zeros(3), np.full(3, 5.0), np.full(3, 7.0)]
    arrays = _arrays(*before)
    with autograd.record(train_mode=train):
        out = ops.BatchNorm(*arrays, **attrs)
    return out, arrays, before


# -------------------------------------------------------------------------------------- moving statistics


def test_training_updates_moving_statistics() -> None:
    _, arrays, _ = _batch_norm(True, momentum=0.8)
    np.testing.assert_allclose(arrays[3].asnumpy(), 0.8 * 5 + 0.2 * X.mean((0, 2)))
    np.testing.assert_allclose(arrays[4].asnumpy(), 0.8 * 7 + 0.2 * X.var((0, 2)))


@pytest.mark.parametrize("train, attrs", [(False, {}), (True, {"use_global_stats": True})])
def test_inference_and_global_statistics_update_nothing(train: bool, attrs: dict[str, Any]) -> None:
    _, arrays, before = _batch_norm(train, **attrs)
    for after, value in zip(arrays, before):
        np.testing.assert_array_equal(after.asnumpy(), value)


def test_an_executor_updates_statistics_once_in_a_forward_pass() -> None:
    before = [X, np.array([2.0, 3, 4]), np.zeros(3), np.full(3, 5.0), np.full(3, 7.0)]
    names = ["data", "gamma", "beta", "moving_mean", "moving_var"]
    net = ops.BatchNorm(*map(Variable, names), momentum=0.5)
    values = dict(zip(names, _arrays(*before)))
    aux = {name: values.pop(name) for name in names[3:]}
    executor = net.bind(None, values, {"data": _arrays(np.zeros_like(X))[0]}, aux_states=aux)
    executor.forward(is_train=True)
    executor.backward(_arrays(X))
    expected = 0.5 * 5 + 0.5 * X.mean((0, 2))
    np.testing.assert_allclose(aux["moving_mean"].asnumpy(), expected)
    executor.forward(is_train=False)
    np.testing.assert_allclose(aux["moving_mean"].asnumpy(), expected)
    executor.forward(is_train=True)
    np.testing.assert_allclose(aux["moving_mean"].asnumpy(), 0.5 * expected + 0.5 * X.mean((0, 2)))


def test_fixed_gamma_counts_as_one_and_is_left_alone() -> None:
    arrays = _arrays(X, np.array([2.0, 3, 4]), np.zeros(3), np.zeros(3), np.ones(3))
    arrays[1].attach_grad()
    with autograd.record():
        out = ops.BatchNorm(*arrays)
    out.backward(_arrays(X)[0])
    np.testing.assert_allclose(out.asnumpy().std((0, 2)), 1.0, atol=1e-2)
    np.testing.assert_array_equal(arrays[1].asnumpy(), [2, 3, 4])
    np.testing.assert_array_equal(arrays[1].grad.asnumpy(), 0)


def test_data_of_16_bits_have_statistics_of_32() -> None:
    arguments, outputs, states = get("BatchNorm").prop(output_mean_var=True).infer_type(["float16", None, None])
    assert arguments == [np.float16, np.float32, np.float32]
    assert outputs == [np.float16, np.float32, np.float32] and states == [np.float32] * 2


@pytest.mark.parametrize("name, shapes, attrs", [
    ("BatchNorm", [(4, 3, 2), (3,), (3,), (3,), (3,)], {"fix_gamma": False}),
    ("BatchNorm_v1", [(4, 3, 2), (3,), (3,), (3,), (3,)], {"fix_gamma": False}),
    ("LayerNorm", [(4, 3), (3,), (3,)], {}),
    ("GroupNorm", [(4, 4, 2), (2,), (2,)], {"num_groups": 2}),
])
def test_outputting_the_statistics_changes_no_gradient(name: str, shapes: list, attrs: dict[str, Any]) -> None:
    """The gradient of a gradient does not change, either, although no gradient passes through the statistics."""
    rng = np.random.default_rng(1)
    values = [rng.uniform(0.5, 1.5, shape) for shape in shapes]
    weights = rng.standard_normal(shapes[0])

    def gradients(shown: bool) -> list[np.ndarray]:
        arrays = _arrays(*values)
        arrays[0].attach_grad()
        with autograd.record():
            outs = ops.__getattr__(name)(*arrays, output_mean_var=shown, **attrs)
            outs = list(outs) if shown else [outs]
            heads = _arrays(weights, *[np.ones(out.shape) for out in outs[1:]])
            (first,) = autograd.grad(outs, [arrays[0]], heads, create_graph=True)
        first.backward(_arrays(weights)[0])
        return [first.asnumpy(), arrays[0].grad.asnumpy()]

    for hidden, shown in zip(gradients(False), gradients(True)):
        np.testing.assert_allclose(shown, hidden, rtol=1e-9, atol=1e-9)


def test_the_regulariser_updates_its_average_and_adds_its_penalty() -> None:
    values = np.random.default_rng(0).uniform(0.1, 0.9, (4, 3))
    data, average = _arrays(values, np.full(3, 0.5))
    data.attach_grad()
    with autograd.record():
        out = ops.IdentityAttachKLSparseReg(data, average, sparseness_target=0.2, penalty=0.1, momentum=0.6)
    out.backward()
    moved = 0.6 * 0.5 + 0.4 * values.mean(0)
    np.testing.assert_allclose(average.asnumpy(), moved)
    np.testing.assert_allclose(data.grad.asnumpy(), np.tile(1 + 0.1 * (0.8 / (1 - moved) - 0.2 / moved), (4, 1)))


def test_the_regulariser_has_no_second_derivative() -> None:
    data, average = _arrays(np.full((4, 3), 0.5), np.full(3, 0.5))
    data.attach_grad()
    with autograd.record():
        out = ops.IdentityAttachKLSparseReg(data, average)
        (first,) = autograd.grad(out * out, [data], create_graph=True)
    with pytest.raises(NotDifferentiableError, match="_backward_IdentityAttachKLSparseReg has no gradient"):
        first.backward()


# ------------------------------------------------------------------------------------------------- chance


def test_dropout_keeps_the_mean_and_passes_the_gradient_to_kept_elements() -> None:
    generators.seed(0)
    (data,) = _arrays(np.ones((100, 100)))
    data.attach_grad()
    with autograd.record():
        out = ops.Dropout(data, p=0.3)
    out.backward()
    numbers = out.asnumpy()
    assert set(np.unique(numbers)) == {0.0, 1.0 / 0.7}
    assert abs(numbers.mean() - 1.0) < 0.02
    np.testing.assert_array_equal(data.grad.asnumpy(), numbers)


@pytest.mark.parametrize("train, mode, drops", [(True, "training", True), (False, "training", False),
                                                (True, "always", True), (False, "always", True)])
def test_dropout_drops_in_its_mode(train: bool, mode: str, drops: bool) -> None:
    (data,) = _arrays(np.ones((50, 4)))
    data.attach_grad()
    with autograd.record(train_mode=train):
        out = ops.Dropout(data, mode=mode)
    out.backward(train_mode=train)
    assert bool((out.asnumpy() == 0).any()) == drops
    np.testing.assert_array_equal(data.grad.asnumpy(), out.asnumpy())


def test_dropout_along_axes_drops_whole_rows() -> None:
    (data,) = _arrays(np.ones((50, 4)))
    with autograd.train_mode():
        numbers = ops.Dropout(data, axes=(1,)).asnumpy()
    assert (numbers == numbers[:, :1]).all() and {0.0, 2.0} == set(np.unique(numbers))


def test_rrelu_draws_slopes_in_training_and_takes_their_mean_otherwise() -> None:
    (data,) = _arrays(np.full((20, 20), -1.0))
    attrs = {"act_type": "rrelu", "lower_bound": 0.1, "upper_bound": 0.5}
    out, mask = ops.LeakyReLU(data, **attrs)
    np.testing.assert_allclose(out.asnumpy(), -0.3)
    data.attach_grad()
    with autograd.record():
        out, mask = ops.LeakyReLU(data, **attrs)
    out.backward()
    slopes = mask.asnumpy()
    assert slopes.min() >= 0.1 and slopes.max() <= 0.5 and len(np.unique(slopes)) > 300
    np.testing.assert_allclose(out.asnumpy(), -slopes)
    np.testing.assert_array_equal(data.grad.asnumpy(), slopes)


def test_recurrent_dropout_acts_between_layers_only() -> None:
    rng = np.random.default_rng(0)
    data, parameters, state = rng.standard_normal((3, 2, 4)), rng.standard_normal(40), np.zeros((1, 2, 4))
    attrs = {"mode": "rnn_tanh", "state_size": 4}

    def run(p: float, layers: int) -> np.ndarray:
        with autograd.train_mode():
            return ops.RNN(*_arrays(data, np.tile(parameters, layers), np.tile(state, (layers, 1, 1))),
                           num_layers=layers, p=p, **attrs).asnumpy()

    np.testing.assert_array_equal(run(0.5, 1), run(0.0, 1))
    assert (run(0.5, 2) != run(0.0, 2)).any()


# ------------------------------------------------------------------------------------------------- losses


def test_a_loss_ignores_the_output_gradient() -> None:
    label = np.array([0.0, 2, 1, 2])
    data, labels = _arrays(X[:, :, 0], label)
    data.attach_grad()
    with autograd.record():
        out = ops.SoftmaxOutput(data, labels)
    out.backward()
    np.testing.assert_allclose(data.grad.asnumpy(), out.asnumpy() - np.eye(3)[label.astype(int)], rtol=1e-12)


def test_selu_has_the_gradient_it_has_in_mxnet() -> None:
    (data,) = _arrays(np.array([-1.0, 2.0]))
    data.attach_grad()
    with autograd.record():
        out = ops.LeakyReLU(data, act_type="selu")
    out.backward()
    np.testing.assert_allclose(data.grad.asnumpy(), [0.590423, 1.050701], rtol=1e-5)  # as MXNet 1.9.1 answered


@pytest.mark.parametrize("name, data, attrs, label", [
    ("SoftmaxOutput", (2, 6), {}, (2,)),
    ("SoftmaxOutput", (2, 6, 4), {}, (2, 6)),
    ("SoftmaxOutput", (2, 6, 4, 5), {"multi_output": True}, (2, 20)),
    ("SoftmaxOutput", (2, 6, 4), {"preserve_shape": True}, (2, 6)),
    ("LinearRegressionOutput", (2, 6), {}, (2, 6)),
    ("LinearRegressionOutput", (2, 1), {}, (2,)),
    ("MAERegressionOutput", (2, 3, 1), {}, (2, 3, 1)),
    ("SVMOutput", (2, 6, 4), {}, (2, 6)),
    ("softmax_cross_entropy", (2, 6), {}, (2,)),
])
def test_the_shape_of_a_label_follows_from_the_data(name: str, data: tuple, attrs: dict, label: tuple) -> None:
    arguments, _, _ = get(name).prop(**attrs).infer_shape([data, None])
    assert arguments == [list(data), list(label)]


@pytest.mark.parametrize("name", ["SoftmaxOutput", "SVMOutput"])
def test_an_unknown_batch_follows_from_the_label(name: str) -> None:
    arguments, outputs, _ = get(name).prop().infer_shape([(0, 6), (5,)])
    assert arguments[0] == [5, 6] and outputs == [[5, 6]]


# ------------------------------------------------------------------------------------------------- errors


@of_each([
    ("BatchNorm", [(2, 3)] + [(3,)] * 4, {"axis": 2}, AttrError, "axis=2 is out of range"),
    ("BatchNorm", [(2, 3)] + [(2,)] * 4, {}, ShapeError, r"gamma: .*\(3,\)"),
    ("InstanceNorm", [(2, 3), (3,), (3,)], {}, ShapeError, "samples, channels, first"),
    ("GroupNorm", [(2, 6, 2), (4,), (4,)], {"num_groups": 4}, ShapeError,
     r"data: expected shape \(samples, 4n, first, \.\.\.\), got \(2, 6, 2\)"),
    ("L2Normalization", [(2, 3)], {"mode": "spatial"}, ShapeError, "at least 3 axes"),
    ("LRN", [(2, 3)], {"nsize": 0}, AttrError, "of at least 1"),
    ("softmax", [(2, 3)], {"axis": 5}, AttrError, "axis=5 is out of range"),
    ("softmax", [(2, 3)], {"temperature": 0.0}, AttrError, "temperature"),
    ("log_softmax", [(2, 3)], {"use_length": True}, AttrError, "no input for lengths"),
    ("SoftmaxOutput", [(2, 3), (3,)], {}, ShapeError, r"label: expected shape .*\(2,\)"),
    ("LinearRegressionOutput", [(2, 3), (5,)], {}, ShapeError, "6 numbers"),
    ("MAERegressionOutput", [(2, 3), (3, 2)], {}, ShapeError, "a batch of 2"),
    ("softmax_cross_entropy", [(2, 3, 4), (2,)], {}, ShapeError, "batch, classes"),
    ("CTCLoss", [(2, 3, 4), (3, 5)], {}, ShapeError, "do not fit into 2 time steps"),
    ("CTCLoss", [(5, 3, 4), (2, 2)], {}, ShapeError, "a batch of 3"),
    ("Dropout", [(2, 3)], {"p": 1.5}, AttrError, "from 0 to 1"),
    ("LeakyReLU", [(2, 3, 4), (4,)], {"act_type": "prelu"}, ShapeError, "gamma"),
    ("RNN", [(5, 3, 2), (7,), (1, 3, 4)], {"mode": "gru", "state_size": 4, "num_layers": 1}, ShapeError, "parameters"),
    ("RNN", [(5, 3, 2), (96,), (1, 3, 4)], {"mode": "gru", "state_size": 4, "num_layers": 1, "projection_size": 2},
     AttrError, "only the mode lstm"),
    ("_contrib_interleaved_matmul_selfatt_qk", [(3, 2, 10)], {"heads": 2}, ShapeError, r"\(length, batch, 6size\)"),
    ("_contrib_interleaved_matmul_selfatt_valatt", [(3, 2, 12), (4, 3, 5)], {"heads": 2}, ShapeError, "attention"),
])
def test_wrong_inputs_of_training_operators_are_named(
        name: str, shapes: list, attrs: dict, kind: type[OpError], words: str) -> None:
    with pytest.raises(kind, match=words):
        ops.__getattr__(name)(*_arrays(*[np.ones(shape) for shape in shapes]), **attrs)


@pytest.mark.parametrize("name", ["BatchNorm", "LayerNorm", "softmax", "SoftmaxOutput", "LRN", "MakeLoss"])
def test_integers_are_refused_where_fractions_are_needed(name: str) -> None:
    op = get(name)
    attrs = {"nsize": 3} if name == "LRN" else {}
    with pytest.raises(DTypeError, match="floating"):
        op.prop(**attrs).infer_type(["int32"] * len(op.prop(**attrs).list_arguments()))


# -------------------------------------------------------------------------------------------------- rules

_SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(_SHAPES, st.data())
def test_softmax_adds_up_to_one_whatever_is_added(shape: tuple[int, ...], data: Any) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).standard_normal(shape) * 30
    soft = ops.softmax(*_arrays(values), axis=axis).asnumpy()
    np.testing.assert_allclose(soft.sum(axis), 1.0)
    np.testing.assert_allclose(ops.softmax(*_arrays(values + 1000), axis=axis).asnumpy(), soft, rtol=1e-9, atol=1e-12)
    logarithm = ops.log_softmax(*_arrays(values), axis=axis).asnumpy()
    np.testing.assert_allclose(np.exp(logarithm), soft, rtol=1e-9, atol=1e-12)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 4), min_size=2, max_size=4).map(tuple), st.data())
def test_a_normalised_axis_has_mean_zero_and_deviation_one(shape: tuple[int, ...], data: Any) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    length = shape[axis]
    values = np.random.default_rng(data.draw(st.integers(0, 99))).standard_normal(shape) * 3 + 50
    y = ops.LayerNorm(*_arrays(values, np.ones(length), np.zeros(length)), axis=axis, eps=1e-12).asnumpy()
    np.testing.assert_allclose(y.mean(axis), 0.0, atol=1e-6)
    if length > 1:
        np.testing.assert_allclose(y.std(axis), 1.0, rtol=1e-4)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 99))
def test_a_recurrent_layer_with_lengths_equals_shorter_samples(time: int, batch: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data, lengths = rng.standard_normal((time, batch, 2)), rng.integers(1, time + 1, batch).astype("int32")
    parameters, state = rng.standard_normal(126), rng.standard_normal((2, batch, 3))
    attrs = {"mode": "gru", "state_size": 3, "num_layers": 1, "bidirectional": True, "state_outputs": True}
    whole, last = ops.RNN(*_arrays(data, parameters, state, lengths), use_sequence_length=True, **attrs)
    for i, length in enumerate(lengths):
        alone, end = ops.RNN(*_arrays(data[:length, i:i + 1], parameters, state[:, i:i + 1]), **attrs)
        np.testing.assert_allclose(whole.asnumpy()[:length, i], alone.asnumpy()[:, 0], rtol=1e-9)
        np.testing.assert_array_equal(whole.asnumpy()[length:, i], 0.0)
        np.testing.assert_allclose(last.asnumpy()[:, i], end.asnumpy()[:, 0], rtol=1e-9)


@pytest.mark.parametrize("name", ["sgd_update", "signsgd_update"])
def test_positive_and_negative_zero_rates_are_distinguished(name: str) -> None:
    """A rate of 0.0 leaves a weight of -0.0, and a rate of -0.0 makes it 0.0, in any order of calls."""
    def updated(lr: float) -> bool:
        (weight,), (grad,) = _arrays(np.array([-0.0])), _arrays(np.array([1.0]))
        return bool(np.signbit(get(name)(weight, grad, lr=lr).asnumpy()[0]))

    assert [updated(lr) for lr in (0.0, -0.0, 0.0, 0.0, -0.0, -0.0)] == [True, False, True, True, False, False]


# ------------------------------------------------------------------------------------------------ updates


def test_an_update_is_one_function_of_a_few_lines(unregistered):
    page = (Path(__file__).parent.parent.parent / "CONTRIBUTING.md").read_text()
    (text,) = [block.partition("```")[0] for block in page.split("```python\n") if "@update(" in block]
    exec(text, {})
    rates = (0.5, 0.125)
    for name, dtype in (("heavy_update", "float32"), ("mp_heavy_update", "float16"),
                        ("multi_heavy_update", "float32"), ("multi_mp_heavy_update", "float16")):
        close = dict(rtol=2e-3, atol=2e-3) if dtype == "float16" else dict(rtol=1e-6, atol=1e-6)
        groups, expected = [], []
        for size, lr in zip((3, 5), rates):
            weight, grad, mom = (normal(size, seed=seed).astype("float32") for seed in range(3))
            groups.append([nd.array(weight, dtype=dtype), nd.array(grad, dtype=dtype), nd.array(mom),
                           *[nd.array(weight)] * ("mp_" in name)])
            step = mom * 0.5 - (grad + weight * 0.25) * lr
            expected.append([weight + step, step])
        function = getattr(nd, name)
        if name.startswith("multi_"):
            news = function(*itertools.chain(*groups), lrs=rates, wds=(0.25, 0.25), momentum=0.5, num_weights=2)
        else:
            news = [function(*group, lr=lr, wd=0.25, momentum=0.5) for group, lr in zip(groups, rates)]
        for new, group, (weight, step) in zip(news, groups, expected):
            np.testing.assert_allclose(new.asnumpy(), weight, **close)
            np.testing.assert_allclose(group[2].asnumpy(), step, **close)
