"""Layers beyond their rows: random numbers, containers, errors, text, copies, dtypes."""

from __future__ import annotations

import copy
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.cells.cell import Cell
from opreg.cells.grad import grad
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter
from opreg.cells.tensor import Tensor
from opreg.nn import layers, ops
from tests.nn.layers import close, flat, made, numbers
from tests.questions import of_each

nn: Any = layers


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_layer_equals_its_cell_at_each_step(layer: str) -> None:
    """A layer over time computes at each step the same as the cell of one step."""
    whole = made(f"{layer}(3, 4)", False)
    step = getattr(nn, layer + "Cell")(3, 4)
    for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(step, kind).set_data(getattr(whole, kind + "_l0"))
    xs, h = Tensor(numbers((5, 2, 3), 1)), Tensor(np.zeros((2, 4), "f4"))
    state = (h, h) if layer == "LSTM" else h
    for x in xs:
        state = step(x, state)
    close(flat(whole(xs)[1])[0], flat(state)[0].asnumpy().ravel(), layer)


def test_instance_norm_without_affine_does_not_train_its_parameters() -> None:
    """The layer has parameters, which are not trained."""
    for affine in (True, False):
        assert nn.InstanceNorm2d(3, affine=affine).gamma.requires_grad is affine


# -------------------------------------------------------------------------------------------- random layers


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("layer, shape, axes", [
    ("Dropout(p=0.5)", (8, 9, 7), ()), ("Dropout(0.5)", (500,), ()), ("Dropout1d()", (20, 30, 4), (2,)),
    ("Dropout1d()", (400, 4), (1,)), ("Dropout2d()", (20, 30, 2, 3), (2, 3)),
    ("Dropout3d()", (20, 30, 2, 1, 3), (2, 3, 4)),
])
def test_dropout_of_channels_drops_half_of_them(layer: str, shape: tuple[int, ...], axes: tuple[int, ...],
                                                compiled: bool) -> None:
    """About half of the channels become zero, the others are doubled; the gradient has the same mask; each call draws a
    new one."""
    net, ones = made(layer, True), Tensor(np.ones(shape, "f4"))
    run = net.compile(ones) if compiled else net
    first, second = run(ones).asnumpy(), run(ones).asnumpy()
    assert set(np.unique(first)) == {0.0, 2.0}
    assert 0.4 < (first > 0).mean() < 0.6
    assert (first != second).any()
    if axes:
        assert (first.min(axes) == first.max(axes)).all()

    gradient = grad(lambda x: net(x).sum(), 0)
    kept = (jit(gradient) if compiled else gradient)(ones).asnumpy()
    assert set(np.unique(kept)) == {0.0, 2.0}
    net.set_train(False)
    assert (net(ones).asnumpy() == 1).all()


def test_dropout_takes_the_probabilities_zero_and_one() -> None:
    """The probabilities 0 and 1 are allowed."""
    x = Tensor(np.ones((2, 3, 2, 2), "f4"))
    assert (made("Dropout(p=0.0)", True)(x).asnumpy() == 1).all()
    assert (made("Dropout2d(1.0)", True)(x).asnumpy() == 0).all()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_rrelu_draws_slopes_between_its_bounds(compiled: bool) -> None:
    """Slopes lie between the two bounds and differ."""
    net, x = nn.RReLU(0.2, 0.4), Tensor(np.linspace(-5, 5, 100).astype("f4"))
    y = (net.compile(x) if compiled else net)(x).asnumpy() / x.asnumpy()
    assert (y[50:] == 1).all()
    assert y[:50].min() >= 0.199
    assert y[:50].max() <= 0.401
    assert np.ptp(y[:50]) > 0.05


@pytest.mark.parametrize("layer", ["LSTM(3, 4, 2, dropout=0.5)", "MultiheadAttention(4, 2, 0.5)"])
def test_dropout_inside_of_a_network_acts_in_training_only(layer: str) -> None:
    """Dropout inside of a network acts only in training."""
    net = made(layer, True)
    x = Tensor(numbers((3, 2, 3 if "LSTM" in layer else 4), 0))
    xs = (x,) if "LSTM" in layer else (x, x, x)
    for run in (net, net.compile(*xs)):
        assert (run(*xs)[0].asnumpy() != run(*xs)[0].asnumpy()).any()
    net.set_train(False)
    assert (net(*xs)[0].asnumpy() == net(*xs)[0].asnumpy()).all()


# ------------------------------------------------------------------------------------------------ containers


def names(net: Cell) -> list[str]:
    """Paths of parameters, after a check that they equal the names."""
    found = [(path, parameter.name) for path, parameter in net.parameters_and_names()]
    assert all(path == name for path, name in found), found
    return [path for path, _ in found]


class ParameterContainer(Cell):
    """A net with a list and a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.s = nn.SequentialCell(dense(), dense())
        self.l = nn.CellList([dense(), dense()])


def dense() -> Cell:
    """A layer with one parameter."""
    return nn.Dense(1, 1, has_bias=False)


class Late(Cell):
    """A net with a list that is filled after its assignment."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.CellList()
        for _ in range(2):
            self.layers.append(dense())


class Net(Cell):
    """A net without children, for tests to fill."""


#: Statements for an empty ``Net`` called ``n``, and the names of its parameters in MindSpore 2.10 afterwards.
MINDSPORE_NAMES = [
    ("n.l = nn.CellList(); n.l.append(dense()); n.l.append(dense()); n.head = dense()",
     "0.weight 1.weight head.weight"),
    ("n.l = nn.CellList(); n.l.extend([dense(), dense()]); n.l.append(dense())", "0.weight 1.weight 2.weight"),
    ("n.s = nn.SequentialCell(); n.s.append(nn.ReLU()); n.s.append(dense()); n.s.append(dense())",
     "1.weight 2.weight"),
    ("n.l = nn.CellList([dense()]); n.l.append(dense())", "l.0.weight l.1.weight"),
    ("n.l = nn.CellList([nn.ReLU()]); n.l.append(dense()); n.l.append(dense())", "1.weight 2.weight"),
    ("n.l = nn.CellList(); [n.l.append(Late()) for _ in range(3)]",
     "0.layers.0.weight 0.layers.1.weight 0.layers.1.layers.0.weight 0.layers.1.layers.1.weight "
     "0.layers.2.layers.0.weight 0.layers.2.layers.1.weight"),
    ("n.l = nn.CellList([Late(), Late()]); n.l.append(Late())",
     "l.0.layers.0.weight l.0.layers.1.weight l.1.layers.0.weight l.1.layers.1.weight l.2.layers.0.weight "
     "l.2.layers.1.weight"),
    ("n.l = nn.CellList(); [n.l.append(nn.CellList([dense(), dense()])) for _ in range(3)]",
     "0.0.weight 0.1.weight 0.1.0.weight 0.1.1.weight 0.2.0.weight 0.2.1.weight"),
    ("n.l = nn.CellList(); [n.l.append(nn.CellList()) for _ in range(2)]; [l.append(dense()) for l in n.l]",
     "0.weight 0.weight"),
    ("n.d = nn.CellDict(); n.d['a'] = dense(); n.d.update({'b': dense()})", "a.weight b.weight"),
    ("n.l = nn.CellList(); n.l.append(dense()); n.l.insert(0, dense()); n.l.append(dense())",
     "0.weight 1.weight 2.weight"),
    ("n.l = nn.CellList(); n.l.append(dense()); n.l.append(dense()); n.l[0] = dense()", "0.weight 1.weight"),
    ("n.l = nn.CellList(); n.l.extend([dense(), dense(), dense()]); del n.l[0]; n.l.append(dense())",
     "0.weight 1.weight 2.weight"),
    ("m = Net(); m.l = nn.CellList(); m.l.append(dense()); n.m = m", "m.l.0.weight"),
    ("n.m = Net(); n.m.l = nn.CellList(); n.m.l.append(dense()); n.k = nn.CellList(); n.k.append(dense())",
     "0.weight 0.weight"),
    ("n.l = nn.CellList(); n.l.append(dense()); n.l = n.l", "l.0.weight"),
    ("n = nn.CellList(); [n.append(Late()) for _ in range(2)]",
     "0.layers.0.weight 0.layers.1.weight 0.layers.1.layers.0.weight 0.layers.1.layers.1.weight"),
    ("n = nn.SequentialCell(); [n.append(nn.SequentialCell(dense(), dense())) for _ in range(2)]",
     "0.0.weight 0.1.weight 0.1.0.weight 0.1.1.weight"),
    ("l = nn.CellList(); [l.append(Late()) for _ in range(2)]; n.l = l",
     "l.0.layers.0.weight l.0.layers.1.weight l.1.layers.0.weight l.1.layers.1.weight"),
]


@of_each(MINDSPORE_NAMES)
def test_parameters_have_mindspores_names(program: str, expected: str) -> None:
    """MindSpore's lists lose their names if they are filled later; opreg's names are paths."""
    found: dict[str, Any] = {"nn": mx.nn, "dense": dense, "Late": Late, "Net": Net, "n": Net()}
    exec(program, found)
    net = found["n"]
    names(net)
    assert [parameter.mindspore_name for parameter in net.get_parameters()] == expected.split()
    states = [mx.nn.Momentum(net.trainable_params(), 0.1, 0.9).moments,
              mx.ParameterTuple(net.trainable_params()).clone("moments")]
    for moments in states:
        assert [moment.mindspore_name for moment in moments] == [f"moments.{name}" for name in expected.split()]
    again = copy.deepcopy(net)
    assert [parameter.mindspore_name for parameter in again.get_parameters()] == expected.split()
    outer = Net()
    outer.inner = net
    assert [parameter.mindspore_name for parameter in outer.get_parameters()] == names(outer)


def test_containers_name_cells_by_position() -> None:
    """Parameters are named by their positions, whatever is added or removed."""
    net = ParameterContainer()
    first = net.l[0]
    net.s.append(dense())
    net.l.append(dense())
    net.l.insert(0, dense())
    assert net.l[1] is first
    assert names(net) == ["s.0.weight", "s.1.weight", "s.2.weight", *(f"l.{i}.weight" for i in range(4))]
    del net.l[1]
    del net.s[-1]
    net.s.insert(1, nn.ReLU())
    net.l.extend([dense(), nn.ReLU()])
    net.l[0] = dense()
    assert names(net) == ["s.0.weight", "s.2.weight", *(f"l.{i}.weight" for i in range(4))]
    assert first not in net.l
    before = names(net)
    part = net.l[1:3]
    assert (type(part), len(part)) == (nn.CellList, 2)
    assert part[0] is net.l[1]
    assert names(net) == before
    del net.l[0:2]
    assert names(net) == ["s.0.weight", "s.2.weight", "l.0.weight", "l.1.weight"]
    net.l += [dense()]
    assert [type(cell).__name__ for cell in net.l] == ["Dense", "Dense", "ReLU", "Dense"]


def test_a_sequence_runs_its_cells_in_order() -> None:
    """A sequence runs its Cells in order; an empty one is the identity; names of an OrderedDict are kept."""
    x = Tensor([-1.0, 2.0])
    assert (nn.SequentialCell()(x).asnumpy() == x.asnumpy()).all()
    net = nn.SequentialCell([nn.ReLU(), nn.Tanh(), nn.Softsign()])
    expected = np.tanh(np.maximum(x.asnumpy(), 0))
    close(net[:2](x), expected, "part")
    close(net(x), expected / (1 + abs(expected)), "whole")
    named = nn.SequentialCell(OrderedDict(a=dense(), b=nn.ReLU()))
    named.append(dense())
    assert list(named.name_cells()) == ["a", "b", "2"]
    del named[0]
    assert list(named.name_cells()) == ["b", "1"]
    with pytest.raises(TypeError):
        net(x, x)


def test_a_cell_dict_behaves_like_a_dict() -> None:
    """A CellDict behaves like a dict."""
    net = nn.CellDict({"a": dense()})
    net["b"] = relu = nn.ReLU()
    net.update([["c", dense()]])
    assert (list(net), len(net), "b" in net, "z" in net) == (["a", "b", "c"], 3, True, False)
    assert list(net.values())[1] is relu
    assert [name for name, _ in net.items()] == list(net.keys())
    assert names(net) == ["a.weight", "c.weight"]
    assert net.pop("b") is relu
    assert list(net) == ["a", "c"]
    del net["a"]
    net.clear()
    assert len(net) == 0


@of_each([
    (lambda: nn.CellList([1]), TypeError, "'CellList', each cell must be a Cell, got int"),
    (lambda: nn.CellList(1), TypeError, "'CellList', expected Cells or a list of them, got int"),
    (lambda: nn.SequentialCell(1), TypeError, "'SequentialCell', expected Cells, a list"),
    (lambda: nn.SequentialCell([nn.ReLU(), 2]), TypeError, "each cell must be a Cell, got int"),
    (lambda: nn.CellList([nn.ReLU()])[5], IndexError, "range [-1, 1), got 5"),
    (lambda: nn.CellList([nn.ReLU()]).insert(9, nn.ReLU()), IndexError, "range [-1, 1], got 9"),
    (lambda: nn.CellList([nn.ReLU()])["0"], TypeError, "int or a slice, got str"),
    (lambda: nn.CellList()(1), NotImplementedError, "CellList"),
    (lambda: nn.CellList().append(3), TypeError, "got int"),
    (lambda: nn.CellDict()(1), NotImplementedError, "CellDict"),
    (lambda: nn.CellDict({"a": nn.ReLU()})["b"], KeyError, "'b'"),
    (lambda: nn.CellDict({"a.b": nn.ReLU()}), KeyError, "dot"),
    (lambda: nn.CellDict({"": nn.ReLU()}), KeyError, "empty"),
    (lambda: nn.CellDict({1: nn.ReLU()}), TypeError, "text, got int"),
    (lambda: nn.CellDict({"a": 1}), TypeError, "got int"),
    (lambda: nn.CellDict({"a": nn.CellList()}), TypeError, "can not be a CellList"),
    (lambda: nn.CellDict({"cells": nn.ReLU()}), KeyError, "attribute of every Cell"),
    (lambda: nn.CellDict(1), TypeError, "dict or pairs"),
    (lambda: nn.CellDict([1]), TypeError, "pair at 0, got int"),
    (lambda: nn.CellDict([(1, 2, 3)]), ValueError, "got 3 things"),
])
def test_errors_of_containers_are_mindspores(call: Callable, error: type, says: str) -> None:
    """Errors have MindSpore's classes, and name the container."""
    with pytest.raises(error) as caught:
        call()
    assert says in str(caught.value)


# ------------------------------------------------------------------------------------------------- mistakes


def ones(*shape: int) -> Tensor:
    """Ones."""
    return Tensor(np.ones(shape, "f4"))


@of_each([
    (lambda: nn.Dense(0, 2), "Dense: in_channels=0: expected an int of at least 1"),
    (lambda: nn.Dense(1.5, 2), "Dense: in_channels=1.5: expected an int"),
    (lambda: nn.Dense(3, 2, has_bias=1), "Dense: has_bias=1: expected True or False"),
    (lambda: nn.Dense(3, 2, activation=3), "Dense: activation must be"),
    (lambda: nn.Dense(3, 2, ones(3, 2)), "shape"),
    (lambda: nn.Flatten("a"), "Flatten: start_dim='a': expected an int"),
    (lambda: nn.Flatten(2, 1)(ones(2, 3, 4)), "Flatten: start_dim 2 is behind end_dim 1"),
    (lambda: nn.Flatten(0, 5)(ones(2, 3)), "Flatten: start_dim 0 or end_dim 5 is not an axis"),
    (lambda: nn.Dropout(p=1.0), "Dropout: p=1.0: expected a number in [0, 1)"),
    (lambda: nn.Dropout(0), "Dropout: keep_prob=0: expected a number in (0, 1]"),
    (lambda: nn.Dropout2d(2), "Dropout2d: p=2: expected a number in [0, 1]"),
    (lambda: nn.Dropout2d().set_train()(ones(2, 3)), "Dropout2d: expected 4 axes"),
    (lambda: nn.Embedding(0, 1), "Embedding: vocab_size"),
    (lambda: nn.Embedding(3, 1, padding_idx=3), "Embedding: padding_idx must be below 3, got 3"),
    (lambda: nn.Pad([1]), "Pad: paddings must be a tuple of pairs"),
    (lambda: nn.Pad(((1, 1),), "wrap"), "Pad: mode must be one of constant"),
    (lambda: nn.Pad(((1, 1),))(ones(2, 2)), "Pad: 1 pairs do not fit"),
    (lambda: nn.ConstantPad1d((1, 2, 3), 0), "ConstantPad1d: padding must be"),
    (lambda: nn.ZeroPad2d(1)(ones(2)), "ZeroPad2d: padding for 2 axes"),
    (lambda: nn.Upsample(), "Upsample: expected either size or scale_factor"),
    (lambda: nn.Upsample(2, mode="cubic"), "Upsample: mode must be one of"),
    (lambda: nn.Upsample(2, mode="bilinear")(ones(1, 1, 3)), "Upsample: mode 'bilinear' needs images of 2 axes"),
    (lambda: nn.PixelShuffle(2)(ones(1, 3, 2, 2)), "PixelShuffle: expected channels that divide by 4"),
    (lambda: nn.PixelUnshuffle(2)(ones(1, 3, 3, 2)), "PixelUnshuffle: expected images that divide by 2"),
    (lambda: nn.Conv2d(2, 3, (1, 2, 3)), "Conv2d: kernel_size=(1, 2, 3): expected an int or 2 of them"),
    (lambda: nn.Conv2d(2, 3, 3, pad_mode="sane"), "Conv2d: pad_mode must be one of same, valid, pad, got 'sane'"),
    (lambda: nn.Conv2d(2, 3, 3, padding=1), "Conv2d: padding must be 0 unless pad_mode is 'pad'"),
    (lambda: nn.Conv2d(2, 3, 3, pad_mode="pad", padding=(1, 2)), "Conv2d: padding=(1, 2): expected an int or 4"),
    (lambda: nn.Conv2d(3, 3, 3, group=2), "Conv2d: group 2 must divide in_channels 3"),
    (lambda: nn.Conv2d(3, 3, 3, data_format="NHWC"), "Conv2d: data_format must be NCHW"),
    (lambda: nn.Conv1d(2, 3, 1)(ones(2, 3)), "Conv1d: expected 3 axes"),
    (lambda: nn.Conv2dTranspose(2, 3, 3, output_padding=1), "Conv2dTranspose: output_padding needs pad_mode 'pad'"),
    (lambda: nn.BatchNorm2d(0), "BatchNorm2d: num_features"),
    (lambda: nn.BatchNorm2d(2, momentum=2), "BatchNorm2d: momentum=2: expected a number in [0, 1]"),
    (lambda: nn.BatchNorm2d(2)(ones(2, 2, 2)), "BatchNorm2d: expected 4 axes, 2 channels in axis 1"),
    (lambda: nn.BatchNorm1d(2)(ones(2, 3)), "BatchNorm1d: expected 2 or 3 axes, 2 channels in axis 1"),
    (lambda: nn.LayerNorm(3), "LayerNorm: normalized_shape=3: expected a tuple of ints"),
    (lambda: nn.LayerNorm((3, 4), 1, 1)(ones(2, 4, 3)), "LayerNorm: the shape (2, 4, 3) from axis 1 on must be"),
    (lambda: nn.GroupNorm(2, 3), "GroupNorm: num_groups 2 must divide num_channels 3"),
    (lambda: nn.GroupNorm(1, 3)(ones(2, 2)), "GroupNorm: expected 3 channels"),
    (lambda: nn.InstanceNorm2d(2)(ones(2, 3, 1, 1)), "InstanceNorm2d: expected 4 axes, 2 channels"),
    (lambda: nn.MaxPool2d(0), "MaxPool2d: kernel_size"),
    (lambda: nn.MaxPool2d(2, pad_mode="x"), "MaxPool2d: pad_mode must be one of"),
    (lambda: nn.MaxPool2d(2, padding=1), "MaxPool2d: padding needs pad_mode 'pad', got 'valid'"),
    (lambda: nn.AvgPool2d(2, padding=1), "AvgPool2d: padding needs pad_mode 'pad', got 'valid'"),
    (lambda: nn.MaxPool2d(2, ceil_mode=True), "MaxPool2d: ceil_mode needs pad_mode 'pad', got 'valid'"),
    (lambda: nn.MaxPool2d(2, dilation=2), "MaxPool2d: dilation and return_indices need pad_mode 'pad'"),
    (lambda: nn.MaxPool2d(2, return_indices=True), "MaxPool2d: dilation and return_indices need pad_mode 'pad'"),
    (lambda: nn.MaxPool2d(2, pad_mode="pad", return_indices=1), "MaxPool2d: return_indices=1: expected True or False"),
    (lambda: nn.MaxUnpool2d((1, 2, 3)), "MaxUnpool2d: kernel_size=(1, 2, 3): expected an int or 2"),
    (lambda: nn.MaxUnpool2d(2)(ones(1, 1, 1, 1), Tensor([[[[9]]]])), "max_unpool2d: indices must be from 0 to 3"),
    (lambda: nn.FractionalMaxPool2d(3), "FractionalMaxPool2d: give output_size or output_ratio"),
    (lambda: nn.FractionalMaxPool2d(3, output_ratio=2.0), "FractionalMaxPool2d: output_ratio must be"),
    (lambda: nn.FractionalMaxPool3d(3, 2)(ones(2, 2)), "fractional_max_pool3d: expected 4 or 5 axes"),
    (lambda: nn.LPPool2d("a", 2)(ones(1, 2, 2)), "LPPool2d: norm_type='a': expected a number"),
    (lambda: nn.ChannelShuffle(0), "ChannelShuffle: groups=0: expected an int of at least 1"),
    (lambda: nn.ChannelShuffle(3)(ones(1, 4, 2, 2)), "cannot be divided into 3 groups"),
    (lambda: nn.Norm(1.5), "Norm: axis=1.5: expected an int or a tuple of ints or None"),
    (lambda: nn.Norm(0, 1), "Norm: keep_dims=1: expected True or False"),
    (lambda: nn.L1Regularizer(0), "L1Regularizer: scale=0: expected a number above 0"),
    (lambda: nn.L1Regularizer("a"), "L1Regularizer: scale='a': expected a number"),
    (lambda: nn.L1Regularizer(float("nan")), "L1Regularizer: scale"),
    (lambda: nn.L1Regularizer(float("inf")), "L1Regularizer: scale"),
    (lambda: nn.BiDense(0, 2, 2), "BiDense: in1_channels=0: expected an int of at least 1"),
    (lambda: nn.BiDense(3, 2, 2, ones(2, 2)), "shape"),
    (lambda: nn.BiDense(3, 2, 2)(ones(2, 3), ones(2, 3)), "do not fit a weight of shape (2, 3, 2)"),
    (lambda: nn.BiDense(3, 2, 2)(ones(2, 3), ones(4, 2)), "do not fit a weight"),
    (lambda: nn.CentralCrop(1), "CentralCrop: central_fraction must be a float, got int"),
    (lambda: nn.CentralCrop(0.0), "CentralCrop: central_fraction must be above 0 and at most 1, got 0.0"),
    (lambda: nn.CentralCrop(0.5)(ones(4, 4)), "CentralCrop: expected 3 or 4 axes"),
    (lambda: nn.PSNR(0), "PSNR: max_val=0: expected a number above 0"),
    (lambda: nn.PSNR("a"), "PSNR: max_val='a': expected a number"),
    (lambda: nn.SSIM(filter_size=0), "SSIM: filter_size"), (lambda: nn.SSIM(filter_sigma=-1.0), "SSIM: filter_sigma"),
    (lambda: nn.SSIM()(ones(4, 4), ones(4, 4)), "SSIM: expected images (batch, channels, height, width)"),
    (lambda: nn.SSIM()(ones(1, 1, 4, 4), ones(1, 1, 4, 4)), "images of 4 by 4 are smaller than the filter_size 11"),
    (lambda: nn.SSIM(filter_size=3)(ones(1, 1, 4, 4), ones(1, 2, 4, 4)), "of one shape"),
    (lambda: nn.SSIM(filter_size=3)(ones(1, 1, 4, 4), ones(1, 1, 4, 4).astype("float16")), "of one dtype"),
    (lambda: nn.MSSSIM(power_factors=0.5), "MSSSIM: power_factors=0.5: expected a list of numbers"),
    (lambda: nn.ImageGradients()(ones(2, 2)), "ImageGradients: expected 4 axes"),
    (lambda: nn.Range(0, 3, 0), "Range: delta must not be 0"),
    (lambda: nn.EmbeddingLookup(3, 2, target="gpu"), "EmbeddingLookup: target must be one of"),
    (lambda: nn.TimeDistributed(3, 1), "TimeDistributed: layer=3: expected a function"),
    (lambda: nn.TimeDistributed(nn.ReLU(), 1.5), "TimeDistributed: time_axis=1.5: expected an int"),
    (lambda: nn.TimeDistributed(nn.ReLU(), 1)(ones(2, 2)), "TimeDistributed: expected 3 axes at least"),
    (lambda: nn.TimeDistributed(nn.ReLU(), 1, 1)(ones(2, 2, 2)), "another axis than time_axis"),
    (lambda: nn.Transformer(4, 2, 1, 1)(ones(2, 1, 3), ones(2, 1, 4)), "Transformer: expected 4 features"),
    (lambda: nn.Transformer(4, 2, 1, 1)(ones(2, 1, 4), ones(2, 3, 4)), "different batches"),
    (lambda: nn.MaxPool2d(2)(ones(2, 2)), "MaxPool2d: expected 3 or 4 axes"),
    (lambda: nn.AdaptiveAvgPool2d((1, 2, 3)), "AdaptiveAvgPool2d: output_size must be an int or 2"),
    (lambda: nn.AdaptiveMaxPool1d(2)(ones(2)), "AdaptiveMaxPool1d: expected 2 or 3 axes"),
    (lambda: nn.PReLU(0), "PReLU: channel"),
    (lambda: nn.PReLU(3, [0.1, 0.2]), "PReLU: w must have 3 numbers"),
    (lambda: nn.PReLU(3)(ones(3, 2)), "PReLU: expected 3 channels in the second axis"),
    (lambda: nn.Threshold("a", 1), "Threshold: threshold='a': expected a number"),
    (lambda: nn.Hardtanh(1.0, -1.0), "Hardtanh: min_val must be less than max_val"),
    (lambda: nn.RReLU(0.3, 0.1), "RReLU: upper must be no less than lower"),
    (lambda: nn.CELU(0), "CELU: alpha must be above 0"),
    (lambda: nn.Softmax("a"), "Softmax: axis='a': expected an int"),
    (lambda: nn.Softmax2d()(ones(2, 2)), "Softmax2d: expected 3 or 4 axes"),
    (lambda: nn.RNN(3, 4, nonlinearity="x"), "RNN: nonlinearity must be one of tanh, relu"),
    (lambda: nn.LSTM(3, 4, dropout=2), "LSTM: dropout=2: expected a number in [0, 1)"),
    (lambda: nn.LSTM(3, 0), "LSTM: hidden_size"),
    (lambda: nn.LSTM(3, 4)(ones(5, 2, 7)), "LSTM: expected 3 axes, 3 inputs in the last"),
    (lambda: nn.LSTM(3, 4)(ones(5, 2, 3), ones(1, 2, 4)), "LSTM: hx must be a pair of tensors"),
    (lambda: nn.GRU(3, 4)(ones(5, 2, 3), ones(1, 3, 4)), "GRU: expected states of shape (1, 2, 4), got (1, 3, 4)"),
    (lambda: nn.GRUCell(3, 4)(ones(2, 3), ones(2, 5)), "GRUCell: expected hx of shape (batch, 4), got (2, 5)"),
    (lambda: nn.LSTMCell(3, 4)(ones(2, 3), ones(2, 4)), "LSTMCell: hx must be a pair"),
    (lambda: nn.MultiheadAttention(4, 3), "MultiheadAttention: num_heads 3 must divide embed_dim 4"),
    (lambda: nn.MultiheadAttention(4, 2)(*[ones(2, 3)] * 3), "MultiheadAttention: expected 2 or 3 axes, 4 features"),
    (lambda: nn.TransformerEncoderLayer(4, 2, activation=None), "TransformerEncoderLayer: activation must be the name"),
])
def test_wrong_uses_of_layers_are_refused(call: Callable, says: str) -> None:
    """The error for a wrong argument names the Cell, and has MindSpore's class, ValueError or TypeError."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert says in str(caught.value)


@pytest.mark.parametrize("kernel, stride, pad", [(1, 3, 0), (2, 3, 0), (2, 3, 1), (2, 1, 1), (3, 2, 1), (3, 4, 1)])
@pytest.mark.parametrize("length", [5, 6, 7])
def test_windows_that_are_rounded_up_begin_before_the_padding_behind(kernel: int, stride: int, pad: int,
                                                                     length: int) -> None:
    x = np.random.default_rng(length).normal(size=(1, 1, length)).astype("float32")
    begins = [at for at in range(-pad, length, stride) if at + kernel < length + pad + stride]
    parts = [x[0, 0, max(at, 0):at + kernel] for at in begins]
    for layer, function, expected in (
            (nn.MaxPool1d(kernel, stride, "pad", pad, ceil_mode=True), None, [part.max() for part in parts]),
            (nn.AvgPool1d(kernel, stride, "pad", pad, True, False), lambda x: ops.avg_pool1d(
                x, kernel, stride, pad, True, False), [part.mean() for part in parts])):
        for found in (layer, function or layer, jit(layer)):
            np.testing.assert_allclose(found(Tensor(x)).asnumpy()[0, 0], expected, 1e-6)



@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dims", [2, 3])
def test_random_windows_of_pooling_equal_the_reference(dims: int, compiled: bool) -> None:
    """Windows are drawn anew in each call; the last one is at the end; the indices are those of the values."""
    layer = getattr(nn, f"FractionalMaxPool{dims}d")(2, 4, return_indices=True)
    x = Tensor(numbers((2, 3, *(9,) * dims), 1))
    run = layer.compile(x) if compiled else layer
    seen = set()
    for _ in range(8):
        values, places = (each.asnumpy() for each in run(x))
        assert values.shape == places.shape == (2, 3, *(4,) * dims) and places.dtype == np.int64
        np.testing.assert_array_equal(np.take_along_axis(x.asnumpy().reshape(2, 3, -1), places.reshape(2, 3, -1), -1),
                                      values.reshape(2, 3, -1))
        last = (Ellipsis, *(-1,) * dims)
        ends = x.asnumpy()[(Ellipsis, *(slice(-2, None),) * dims)]
        np.testing.assert_array_equal(values[last], ends.max(tuple(range(-dims, 0))))
        seen.add(places.tobytes())
    assert len(seen) > 1


def test_max_unpooling_restores_positions() -> None:
    """Transposed pooling puts values back at their positions."""
    x = Tensor(numbers((2, 3, 4, 6), 1))
    y, places = nn.MaxPool2d(2, 2, "pad", return_indices=True)(x)
    back = nn.MaxUnpool2d(2)(y, places).asnumpy()
    assert ((back == x.asnumpy()) | (back == 0)).all() and (back != 0).sum() == y.size
    wide = nn.MaxUnpool2d(2)(y, places, (2, 3, 5, 7))
    assert wide.shape == (2, 3, 5, 7)


def test_masked_positions_do_not_change_a_decoder() -> None:
    """Masked elements, later ones of the target and padding of the source, do not change the output."""
    net = made("Transformer(4, 2, 1, 1, 6, 0.0)", False)
    source, target = (Tensor(numbers((n, 2, 4), n)) for n in (5, 3))
    later = Tensor(np.triu(np.ones((3, 3), bool), 1))
    padding = Tensor(np.array([[False] * 4 + [True]] * 2))

    def run(source: Tensor, target: Tensor) -> np.ndarray:
        return net(source, target, tgt_mask=later, src_key_padding_mask=padding, memory_key_padding_mask=padding
                   ).asnumpy()

    before = run(source, target)
    source[4], target[2] = 7.0, 7.0
    after = run(source, target)
    np.testing.assert_allclose(after[:2], before[:2], rtol=1e-5)
    assert (after[2] != before[2]).any()


class Standardised(mx.nn.Conv2d):
    """A convolution whose weights have mean zero, as programs for MindSpore write it."""

    def construct(self, x: Any) -> Any:
        weight = self.weight - self.weight.mean(axis=(1, 2, 3), keep_dims=True)
        y = self.conv2d(x, weight)
        return self.bias_add(y, self.bias) if self.has_bias else y


class Turned(mx.nn.Dense):
    def construct(self, x: Any) -> Any:
        return self.bias_add(self.matmul(x, self.weight * 2), self.bias)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("settings", [
    {}, {"pad_mode": "pad", "padding": (1, 2, 0, 1), "has_bias": True}, {"stride": (1, 2), "pad_mode": "valid"},
    {"dilation": 2, "group": 2, "has_bias": True}])
def test_layers_hold_primitives_that_compute_the_same(settings: dict[str, Any], compiled: bool) -> None:
    net, x = Standardised(2, 4, 3, **settings), Tensor(numbers((2, 2, 7, 8), 0))
    plain = nn.Conv2d(2, 4, 3, **settings)
    weight = net.weight.asnumpy()
    plain.weight.set_data(Tensor(weight - weight.mean((1, 2, 3), keepdims=True)))
    if net.has_bias:
        plain.bias.set_data(net.bias)
    run = net.compile(x) if compiled else net
    np.testing.assert_allclose(run(x).asnumpy(), plain(x).asnumpy(), rtol=1e-4, atol=1e-5)
    assert net.conv2d is net.conv2d and copy.deepcopy(net).conv2d is not None
    assert "conv2d" not in dict(net.cells_and_names()) and not net.parameters_dict().keys() - {"weight", "bias"}
    dense, rows = Turned(3, 2), Tensor(numbers((4, 3), 0))
    run = dense.compile(rows) if compiled else dense
    expected = rows.asnumpy() @ (2 * dense.weight.asnumpy().T) + dense.bias.asnumpy()
    np.testing.assert_allclose(run(rows).asnumpy(), expected, rtol=1e-5)
    if compiled:
        run(rows)
        assert run.cache_size == 1


@of_each([
    ("Conv1d(2, 3, 3, has_bias=True)", "conv2d", None), ("Conv3d(1, 2, 2)", "conv3d", "x weight"),
    ("Embedding(5, 3)", "gather", None), ("LayerNorm((4,))", "layer_norm", "x gamma beta"),
    ("MaxPool2d(2, 2)", "max_pool", "x"), ("AvgPool2d((2, 1), 1, 'same')", "avg_pool", "x"),
    ("Softmax(1)", "softmax", "x"), ("LogSoftmax()", "log_softmax", "x"), ("ELU(0.5)", "elu", "x"),
    ("ReLU()", "relu", "x"), ("Sigmoid()", "sigmoid", "x"), ("Tanh()", "tanh", "x"), ("HSwish()", "hswish", "x"),
    ("BatchNorm2d(3)", "bn_infer", "x gamma beta moving_mean moving_variance"), ("MaxPool1d(2)", "max_pool", None),
])
def test_a_cached_primitive_computes_the_same_as_the_layer(layer: str, name: str, inputs: str | None) -> None:
    net = made(layer, False)
    held = getattr(net, name)
    assert isinstance(held, mx.ops.Primitive)
    if inputs is not None:
        shape = (2, 1, 4, 4, 4) if "3d" in layer else (2, 4) if "Layer" in layer else (2, 3, 4, 4)
        x = Tensor(numbers(shape, 0))
        given = [x if each == "x" else getattr(net, each) for each in inputs.split()]
        found = held(*given)
        close(found[0] if isinstance(found, tuple) else found, net(x).asnumpy().ravel(), layer, 1e-4)
    with pytest.warns(UserWarning, match=f"construct of {type(net).__name__} calls functions, not self.{name}"):
        setattr(net, name, mx.ops.Add())
    assert isinstance(getattr(net, name), mx.ops.Add)
    delattr(net, name)
    assert getattr(net, name) is not held and type(getattr(net, name)) is type(held)
    setattr(net, name, None)
    assert getattr(net, name) is None
    with warnings.catch_warnings():  # a user's construct may call anything
        warnings.simplefilter("error")
        Turned(3, 2).matmul = mx.ops.Add()


def test_batch_norm_by_the_primitive_it_holds_moves_statistics() -> None:
    """Programs call the primitive in training, and use the first of its results."""
    first, second = made("BatchNorm2d(3)", True), made("BatchNorm2d(3)", True)
    x = Tensor(numbers((2, 3, 4, 4), 0))
    y = first.bn_train(x, first.gamma, first.beta, first.moving_mean, first.moving_variance)[0]
    close(y, second(x).asnumpy().ravel(), "output")
    for name in ("moving_mean", "moving_variance"):
        close(getattr(first, name), getattr(second, name).asnumpy().ravel(), name)


def test_activation_by_name() -> None:
    """All of MindSpore's names are known; a wrong one raises a KeyError with the nearest."""
    names_ = ("softmin softmax softmax2d logsoftmax relu relu6 rrelu silu tanh tanhshrink hardtanh gelu fast_gelu elu "
              "sigmoid softsign prelu leakyrelu hswish hsigmoid logsigmoid softshrink hshrink mish")
    for name in names_.split():
        assert type(nn.get_activation(name)).__name__.lower() == name.replace("_", "")
    assert nn.get_activation(None) is None
    with pytest.raises(KeyError, match="relu6"):
        nn.get_activation("rel6")


# ------------------------------------------------------------------------------------------------ text, copies


@pytest.mark.parametrize("settings, expected", [
    ({"ceil_mode": True}, [[7, 9, 10.5], [16, 18, 19.5]]),
    ({"count_include_pad": False}, [[7, 9]]),
    ({"divisor_override": 3}, [[21, 27]]),
    ({"pad_mode": "same", "ceil_mode": True}, [[7, 9, 7], [32 / 3, 12, 26 / 3]]),
    ({"pad_mode": "same", "count_include_pad": False}, [[7, 9, 10.5], [16, 18, 19.5]]),
    ({"pad_mode": "same", "divisor_override": 3}, [[21, 27, 21], [32, 36, 26]]),
])
def test_averages_take_settings_of_windows_in_each_mode(settings: dict[str, Any], expected: list[list[float]]) -> None:
    """Expected values are MindSpore 2.10's; with pad_mode "same", zeros count if ceil_mode needs its three-dimensional
    operator."""
    x = Tensor(np.arange(24, dtype=np.float32).reshape(1, 1, 4, 6))
    np.testing.assert_allclose(nn.AvgPool2d(3, 2, **settings)(x).asnumpy()[0, 0], expected, rtol=1e-6)


@of_each([
    ("Dense(3, 4)", "Dense(input_channels=3, output_channels=4, has_bias=True)"),
    ("Dense(3, 4, has_bias=False)", "Dense(input_channels=3, output_channels=4)"),
    ("Dense(3, 4, activation='relu')", "Dense(\n  input_channels=3, output_channels=4, has_bias=True, "
                                       "activation=ReLU()\n  (activation): ReLU()\n)"),
    ("Dropout()", "Dropout(keep_prob=0.5)"), ("Dropout(p=0.3)", "Dropout(p=0.3)"), ("Dropout2d()", "Dropout2d(p=0.5)"),
    ("Conv1d(2, 3, 4)", "Conv1d(input_channels=2, output_channels=3, kernel_size=(1, 4), stride=(1, 1), pad_mode=same, "
                        "padding=(0, 0, 0, 0), dilation=(1, 1), group=1, has_bias=False, weight_init=None, "
                        "bias_init=None, format=NCHW)"),
    ("BatchNorm2d(3)", "BatchNorm2d(num_features=3, eps=1e-05, momentum=0.9, gamma=Parameter (name=gamma, shape=(3,), "
                       "dtype=Float32, requires_grad=True), beta=Parameter (name=beta, shape=(3,), dtype=Float32, "
                       "requires_grad=True), moving_mean=Parameter (name=mean, shape=(3,), dtype=Float32, "
                       "requires_grad=False), moving_variance=Parameter (name=variance, shape=(3,), dtype=Float32, "
                       "requires_grad=False))"),
    ("GroupNorm(2, 4)", "GroupNorm(num_groups=2, num_channels=4)"),
    ("MaxPool1d(3)", "MaxPool1d(kernel_size=(1, 3), stride=(1, 1), pad_mode=VALID)"),
    ("AvgPool2d(3, 2, 'same')", "AvgPool2d(kernel_size=3, stride=2, pad_mode=SAME)"),
    ("LSTM(3, 4, 2, dropout=0.5)", "LSTM(input_size=3, hidden_size=4, num_layers=2, dropout=0.5)"),
    ("PReLU(3)", "PReLU()"), ("CellList([ReLU()])", "CellList(\n  (0): ReLU()\n)"),
    ("SequentialCell()", "SequentialCell()"),
])
def test_layers_print_as_in_mindspore(layer: str, text: str) -> None:
    """Layers print the same text as MindSpore's."""
    assert repr(eval(layer, vars(nn).copy())) == text


NET = "SequentialCell(Conv2d(2, 3, 3), BatchNorm2d(3), ReLU(), MaxPool2d(2, 2), Flatten(), Dense(12, 2))"


@pytest.mark.parametrize("layer, shape", [(NET, (2, 2, 4, 4)), ("GRU(3, 4)", (3, 2, 3)),
                                          ("TransformerEncoderLayer(4, 2, 3)", (3, 2, 4))])
def test_deep_copies_of_layers_share_no_memory(layer: str, shape: tuple[int, ...]) -> None:
    """A deep copy computes the same, has the same names, and shares no memory."""
    net, x = made(layer, False), Tensor(numbers(shape, 0))
    twin = copy.deepcopy(net)
    before = flat(net(x))[0].asnumpy()
    assert (flat(twin(x))[0].asnumpy() == before).all()
    assert [p.name for p in twin.get_parameters()] == [p.name for p in net.get_parameters()]
    for parameter in twin.get_parameters():
        parameter.set_data(0.25)
    assert (flat(net(x))[0].asnumpy() == before).all()
    assert (flat(twin(x))[0].asnumpy() != before).any()


@pytest.mark.parametrize("train", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("shapes", [True, False], ids=["shapes", "open"])
def test_a_stack_of_layers_becomes_a_symbol(shapes: bool, train: bool) -> None:
    """A stack of layers becomes a Symbol with the same values when it is bound; statistics are auxiliary states."""
    net, x = made(NET, train), numbers((2, 2, 4, 4), 0)
    symbol = net.to_symbol(x.shape) if shapes else net.to_symbol()
    parameters = {p.name: p.asnumpy().copy() for p in net.get_parameters()}
    assert symbol.list_auxiliary_states() == ["1.moving_mean", "1.moving_variance"]
    assert set(symbol.list_arguments()) == {"input_data", *parameters} - set(symbol.list_auxiliary_states())
    executor = symbol.simple_bind(mx.cpu(), input_data=x.shape)
    executor.copy_params_from({name: mx.nd.array(each) for name, each in parameters.items() if "moving" not in name},
                              {name: mx.nd.array(each) for name, each in parameters.items() if "moving" in name})
    (found,) = executor.forward(is_train=train, input_data=mx.nd.array(x))
    close(found, net(Tensor(x)).asnumpy().ravel(), "output")
    for name, state in executor.aux_dict.items():
        close(state, dict(net.parameters_dict())[name].asnumpy().ravel(), name)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_training_moves_statistics(compiled: bool) -> None:
    """Each run in training moves the statistics once, and none in inference; ``set_train`` also affects a compiled
    Cell."""
    net, x = nn.BatchNorm2d(2, momentum=0.5), Tensor(numbers((3, 2, 2, 2), 0))
    run = net.compile(x) if compiled else net
    mean = x.asnumpy().mean((0, 2, 3))
    run(x)
    assert (net.moving_mean.asnumpy() == 0).all()
    net.set_train()
    for scale in (0.5, 0.75):
        run(x)
        np.testing.assert_allclose(net.moving_mean.asnumpy(), mean * scale, 1e-5)
    net.set_train(False)
    run(x)
    np.testing.assert_allclose(net.moving_mean.asnumpy(), mean * 0.75, 1e-5)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_the_function_moves_statistics_as_the_layer_does(compiled: bool) -> None:
    """The variance for the running statistics is the sum of squares divided by the count less one."""
    x = Tensor(numbers((3, 2, 2, 2), 0))
    net = nn.BatchNorm2d(2, momentum=0.75).set_train()
    net(x)
    mean, var = Parameter(np.zeros(2, "f4"), name="mean"), Parameter(np.ones(2, "f4"), name="var")

    def normed(x):
        return ops.batch_norm(x, mean, var, ops.ones(2), ops.zeros(2), training=True, momentum=0.25)

    (jit(normed) if compiled else normed)(x)
    np.testing.assert_allclose(mean.asnumpy(), x.asnumpy().mean((0, 2, 3)) / 4, 1e-5)
    np.testing.assert_allclose(var.asnumpy(), 0.75 + x.asnumpy().var((0, 2, 3), ddof=1) / 4, 1e-5)
    np.testing.assert_array_equal(mean.asnumpy(), net.moving_mean.asnumpy())
    np.testing.assert_array_equal(var.asnumpy(), net.moving_variance.asnumpy())


@pytest.mark.parametrize("layer, shape", [(NET, (2, 2, 4, 4)), ("LayerNorm((4,))", (2, 4)), ("GRU(3, 4)", (3, 2, 3)),
                                          ("GroupNorm(2, 4)", (2, 4, 3)), ("SeLU()", (3,)), ("HShrink()", (3,))])
def test_layers_in_half_precision_differ_little(layer: str, shape: tuple[int, ...]) -> None:
    """After ``to_float`` values differ little in float16; statistics of BatchNorm stay float32, and move."""
    net, x = made(layer, True), Tensor(numbers(shape, 0))
    expected = flat(net(x))[0].asnumpy()
    net = made(layer, True).to_float("float16")
    for run in (net, net.compile(x)):
        found = flat(run(x))[0].asnumpy()
        assert found.dtype == "f2"
        np.testing.assert_allclose(found.astype("f4"), expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("make, shape", [
    (lambda weight: nn.Conv1d(2, 3, 4, weight_init=weight), (3, 2, 4)),
    (lambda weight: nn.Conv1dTranspose(3, 2, 4, weight_init=weight), (3, 2, 4))])
def test_a_weight_of_a_sequence_has_no_height(make: Callable, shape: tuple[int, ...]) -> None:
    weight = np.arange(24, dtype=np.float32).reshape(shape)
    layer = make(Tensor(weight))
    assert layer.weight.shape == (3, 2, 1, 4)
    np.testing.assert_array_equal(layer.weight.asnumpy()[:, :, 0], weight)
    np.testing.assert_array_equal(make(layer.weight).weight.asnumpy(), layer.weight.asnumpy())


def test_initial_values_lie_within_their_bounds() -> None:
    """Weights and biases lie within one over the root of the number of inputs; a padding row is zero."""
    for layer, bound in ((nn.Dense(100, 50), 0.1), (nn.Conv2d(4, 50, 5, has_bias=True), 0.1), (nn.GRU(3, 25), 0.2)):
        for parameter in layer.get_parameters():
            found = abs(parameter.asnumpy())
            assert bound * 0.8 < found.max() <= bound * 1.0001, parameter
    table = nn.Embedding(4, 3, embedding_table="ones", padding_idx=2).embedding_table.asnumpy()
    assert table.tolist() == [[1] * 3, [1] * 3, [0] * 3, [1] * 3]
    assert nn.Dense(2, 3, bias_init="zeros").bias.asnumpy().tolist() == [0] * 3
    given = Tensor(numbers((3, 2), 0))
    assert (nn.Dense(2, 3, given).weight.asnumpy() == given.asnumpy()).all()


def test_public_names_are_listed_once() -> None:
    """Every public name is listed exactly once."""
    assert len(set(nn.__all__)) == len(nn.__all__)
    assert all(hasattr(nn, name) for name in nn.__all__)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("masks", [(), ("attn_mask",), ("key_padding_mask",), ("attn_mask", "key_padding_mask")])
@pytest.mark.parametrize("dtype", [bool, np.float32])
def test_attention_without_weights_gives_the_same_output(batch_first, masks, dtype):
    layer = nn.MultiheadAttention(4, 2, batch_first=batch_first)
    x = Tensor(np.random.default_rng(1).normal(size=(3, 5, 4)).astype(np.float32))
    batch, length = (3, 5) if batch_first else (5, 3)
    hidden = {"attn_mask": np.triu(np.ones((length, length)), 1), "key_padding_mask": np.zeros((batch, length))}
    hidden["key_padding_mask"][1, -1] = 1
    given = {name: Tensor(hidden[name].astype(dtype)) for name in masks}
    expected, _ = layer(x, x, x, **given)
    output, weights = layer(x, x, x, need_weights=False, **given)
    assert weights is None
    assert np.allclose(output.asnumpy(), expected.asnumpy(), atol=1e-6)
    by_head = Tensor(np.repeat(hidden["attn_mask"][None], batch * 2, axis=0).astype(dtype))
    expected, _ = layer(x, x, x, attn_mask=by_head)
    output, _ = layer(x, x, x, need_weights=False, attn_mask=by_head)
    assert np.allclose(output.asnumpy(), expected.asnumpy(), atol=1e-6)


def test_attention_without_weights_makes_no_scores(monkeypatch):
    layer = nn.MultiheadAttention(4, 2)
    monkeypatch.setattr(layer, "_attend", None)
    layer(*[Tensor(np.ones((3, 5, 4), np.float32))] * 3, need_weights=False)


def test_attention_without_weights_drops_in_training():
    layer = nn.MultiheadAttention(4, 2, dropout=0.5)
    x = Tensor(np.random.default_rng(1).normal(size=(3, 5, 4)).astype(np.float32))
    layer.set_train(False)
    first, second = [layer(x, x, x, need_weights=False)[0].asnumpy() for _ in range(2)]
    assert np.array_equal(first, second)
    layer.set_train()
    first, second = [layer(x, x, x, need_weights=False)[0].asnumpy() for _ in range(2)]
    assert not np.array_equal(first, second)
