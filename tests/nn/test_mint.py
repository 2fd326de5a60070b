"""``mint``: functions and layers against PyTorch's recorded answers, eagerly and compiled, and layers with weights."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import Tensor, mint, ops
from opreg.errors import ArgumentError, ShapeError
from tests.questions import function_of, of_each
from tests.recorded.mint_cases import CASES, INPUTS, asked

ANSWERS = dict(json.loads((Path(__file__).parent.parent / "recorded" / "mint.json").read_text())["cases"])
F = mint.nn.functional


def same(answer: Any, ours: Any) -> None:
    """Compares a result with its record, dtype and shape included."""
    if isinstance(answer, list):
        assert isinstance(ours, list) and len(answer) == len(ours)
        for each, mine in zip(answer, ours):
            same(each, mine)
    elif isinstance(answer, dict):
        assert "error" not in ours, ours
        assert (answer["dtype"], answer["shape"]) == (ours["dtype"], ours["shape"])
        left, right = (np.array(list(map(float, each["numbers"]))) for each in (answer, ours))
        np.testing.assert_allclose(right, left, 2e-5, 2e-6)
    else:
        assert answer == ours


def test_every_recorded_case_is_compared() -> None:
    assert list(ANSWERS) == list(dict.fromkeys(CASES))


@of_each(CASES, by=function_of)
def test_answers_are_those_of_pytorch(case: str) -> None:
    same(ANSWERS[case], asked(mint, Tensor, ms.float64, case))


#: Cases that return no tensors, or make layers.
EAGER = re.compile(r"mint\.(equal|allclose)|mint\.nn\.")


@of_each([case for case in CASES if not EAGER.search(case)], by=function_of)
def test_compiled_functions_of_mint_equal_eager_ones(case: str) -> None:
    names = [name for name in INPUTS if re.search(rf"(?<![\w.']){name}(?![\w(=])", case)]
    values = [Tensor(eval(INPUTS[name])) for name in names]
    beside = {"mint": mint, "F": F, "f64": ms.float64}
    compiled = ms.jit(lambda *given: eval(case, {**beside, **dict(zip(names, given))}))
    same(ANSWERS[case], asked(mint, Tensor, ms.float64, case) if not values else _plainly(compiled(*values)))


def _plainly(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plainly(each) for each in value]
    numbers = value.asnumpy()
    return {"dtype": numbers.dtype.name, "shape": list(numbers.shape), "numbers": numbers.astype(float).ravel()}


# ------------------------------------------------------------------------------------------- layers with weights

IMAGES = Tensor(np.sin(np.arange(2 * 4 * 5 * 5.0)).reshape(2, 4, 5, 5).astype("f4"))


@pytest.mark.parametrize("layer, function", [
    ("mint.nn.Conv2d(4, 6, 3, 2, 1, groups=2)", "F.conv2d(x, w, b, 2, 1, 1, 2)"),
    ("mint.nn.Conv2d(4, 6, (3, 2), padding='same', bias=False)", "F.conv2d(x, w, padding='same')"),
    ("mint.nn.Conv2d(4, 2, 3, padding=1, padding_mode='reflect')", "F.conv2d(F.pad(x, (1, 1, 1, 1), 'reflect'), w, b)"),
    ("mint.nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2)", "F.conv_transpose2d(x, w, b, 2, 1, 1, 2)"),
    ("mint.nn.Conv1d(4, 3, 2)", "F.conv1d(x, w, b)"), ("mint.nn.Conv3d(4, 3, 2)", "F.conv3d(x, w, b)"),
    ("mint.nn.Linear(5, 3)", "F.linear(x, w, b)"),
    ("mint.nn.LayerNorm(5, bias=False)", "F.layer_norm(x, (5,), w)"),
    ("mint.nn.GroupNorm(2, 4, affine=False)", "F.group_norm(x, 2)")])
def test_a_layer_is_the_function_of_its_weights(layer: str, function: str) -> None:
    made = eval(layer)
    x = IMAGES[:, :, 0] if "1d" in layer else ops.stack([IMAGES] * 3, 2) if "3d" in layer else IMAGES
    params = {parameter.name: parameter for parameter in made.get_parameters()}
    assert set(params) <= {"weight", "bias"}
    expected = eval(function, {"F": F, "x": x, "w": params.get("weight"), "b": params.get("bias")}).asnumpy()
    for one in (made, ms.jit(made)):
        np.testing.assert_allclose(one(x).asnumpy(), expected, 1e-5, 1e-6)
    assert np.ptp(expected) > 0


def test_batch_norm_moves_its_statistics_by_momentum() -> None:
    numbers = IMAGES.asnumpy()
    mean, var = numbers.mean((0, 2, 3)), numbers.var((0, 2, 3), ddof=1)
    for compiled in (False, True):
        layer = mint.nn.BatchNorm2d(4, momentum=0.25)
        run = ms.jit(layer) if compiled else layer
        np.testing.assert_allclose(run(IMAGES).asnumpy(), numbers / np.sqrt(1 + 1e-5), 1e-5)
        layer.set_train()
        y = run(IMAGES).asnumpy()
        np.testing.assert_allclose([y.mean((0, 2, 3)), y.var((0, 2, 3))], [[0] * 4, [1] * 4], 1e-3, 1e-5)
        np.testing.assert_allclose(layer.running_mean.asnumpy(), 0.25 * mean, 1e-4, 1e-6)
        np.testing.assert_allclose(layer.running_var.asnumpy(), 0.75 + 0.25 * var, 1e-4)
        assert int(layer.num_batches_tracked) == 1
    assert [p.name for p in layer.trainable_params()] == ["weight", "bias"]
    free = mint.nn.BatchNorm2d(4, affine=False, track_running_stats=False)
    np.testing.assert_allclose(free(IMAGES).asnumpy(), y, 1e-4, 1e-5)


def test_embedding_has_a_zero_row_and_dropout_drops() -> None:
    table = mint.nn.Embedding(3, 2, padding_idx=1)
    assert table.weight.asnumpy()[1].tolist() == [0, 0] and table.weight.asnumpy()[0].any()
    assert (table(Tensor([0, 1])).asnumpy() == table.weight.asnumpy()[:2]).all()
    assert not mint.nn.Embedding(2, 2, _weight=ops.ones((2, 2)), _freeze=True).trainable_params()
    for layer in (mint.nn.Dropout(0.5), mint.nn.Dropout2d(0.5)):
        assert (layer(IMAGES).asnumpy() == IMAGES.asnumpy()).all()
        layer.set_train()
        kept = layer(ops.ones((4, 50, 2, 2))).asnumpy()
        assert set(np.unique(kept)) == {0, 2}


def test_random_tensors_have_shapes_and_dtypes() -> None:
    ms.set_seed(1)
    for made, shape, dtype in [
            (mint.rand(2, 3), (2, 3), "float32"), (mint.randn((2, 3)), (2, 3), "float32"),
            (mint.randint(5, (2,)), (2,), "int64"), (mint.randint(3, 5, (40,)), (40,), "int64"),
            (mint.normal(0.0, 1.0, (2, 2)), (2, 2), "float32"), (mint.normal(ops.ones(3), 2.0), (3,), "float32"),
            (mint.bernoulli(ops.full((50,), 0.5)), (50,), "float32"), (mint.empty(2, 3), (2, 3), "float32"),
            (mint.multinomial(Tensor([0.0, 0.5, 0.5]), 2), (2,), "int64"),
            (mint.empty_like(IMAGES), IMAGES.shape, "float32")]:
        assert (made.shape, made.asnumpy().dtype.name) == (shape, dtype)
    assert set(mint.randint(3, 5, (40,)).asnumpy()) == {3, 4}
    assert sorted(mint.multinomial(Tensor([0.0, 0.5, 0.5]), 2).asnumpy()) == [1, 2]
    assert mint.item(ops.ones((1, 1))) == 1.0


def test_a_network_of_mint_trains() -> None:
    ms.set_seed(0)
    net = mint.nn.Linear(3, 1)
    x = Tensor(np.random.RandomState(0).randn(16, 3).astype("f4"))
    target = x @ Tensor([[1.0], [-2.0], [0.5]])
    optimizer = mint.optim.SGD(net.trainable_params(), lr=0.1)
    step = ms.value_and_grad(lambda: F.mse_loss(net(x), target), None, net.trainable_params())
    losses = []
    for _ in range(50):
        loss, gradients = step()
        optimizer(gradients)
        losses.append(float(loss))
    assert losses[-1] < 0.01 * losses[0]


@of_each([
    ("mint.kthvalue(IMAGES, 9)", ArgumentError, "k must be an int from 1 to 5"),
    ("mint.unique(IMAGES, dim=0)", ArgumentError, "dim must be None, got 0"),
    ("mint.linalg.qr(ops.ones((2, 3)))", ArgumentError, "no fewer rows than columns"),
    ("F.unfold(ops.ones((2, 3)), 2)", ShapeError, "expected images"),
    ("F.fold(IMAGES, 4, 2)", ShapeError, "expected columns"),
    ("F.conv2d(IMAGES, IMAGES, padding='full')", ArgumentError, "padding must be an int, 2 of them"),
    ("F.kl_div(IMAGES, IMAGES, 'total')", ArgumentError, "reduction must be"),
    ("mint.nn.Conv2d(3, 4, 3, groups=2)", ArgumentError, "groups 2 must divide in_channels 3"),
    ("mint.nn.Conv2d(4, 4, 3, padding='same', padding_mode='reflect')(IMAGES)", ArgumentError,
     "padding must be an int or ints"),
    ("mint.nn.BatchNorm2d(3)(IMAGES)", ArgumentError, "expected 4 axes and 3 channels"),
    ("mint.nn.GroupNorm(3, 4)", ArgumentError, "must divide num_channels 4"),
    ("mint.nn.ZeroPad2d((1, 2))", ArgumentError, "an int or 4 of them"),
    ("mint.nn.Dropout(2)", ArgumentError, "p must be from 0 to 1"),
    ("mint.nn.AvgPool2d()", TypeError, r"AvgPool2d\(\) needs kernel_size\. It takes kernel_size, stride"),
    ("mint.nn.Softmax(axis=1)", TypeError, r"Softmax\(\) takes no keyword 'axis'\. Valid: dim")])
def test_wrong_uses_of_mint_are_refused(call: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        eval(call)


def test_layers_say_their_settings() -> None:
    assert str(mint.nn.Softmax(dim=1)) == "Softmax(dim=1)"
    assert str(mint.nn.BatchNorm2d(3)) == ("BatchNorm2d(num_features=3, eps=1e-05, momentum=0.1, affine=True, "
                                           "track_running_stats=True)")
    assert list(inspect.signature(mint.nn.NLLLoss).parameters) == ["weight", "ignore_index", "reduction"]
