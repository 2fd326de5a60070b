"""Settings out of range, and text where a number is meant, are refused when they are given, by name and value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import gluon, nd, nn
from opreg.core.settings import dimensions, number, whole_number
from opreg.errors import OpError
from opreg.gluon import nn as layers
from opreg.gluon import rnn
from tests.questions import of_each


def _parameter(**settings: Any) -> gluon.Parameter:
    """A Parameter whose attributes are set."""
    parameter = gluon.Parameter("p", shape=(2,))
    for name, value in settings.items():
        setattr(parameter, name, value)
    return parameter


#: Calls with a wrong setting, and a part of the error.
SLIPS: list[tuple[Callable[[], Any], str]] = [
    # text where numbers are meant
    (lambda: nd.array("abc"), "an array of float32: could not convert string to float: 'abc'"),
    (lambda: nd.array([[1, 2], [3]]), "an array of float32: "),
    (lambda: nd.full((2,), "a"), "full: val='a': expected a number"),
    (lambda: mx.np.array(["a"]), "an array of float32: "),
    (lambda: mx.np.full((2,), "a"), "np.full: could not convert string to float"),
    (lambda: mx.np.linspace(0, 1, "5"), "np.linspace: "),
    (lambda: mx.np.ones(2) * "a", "ndarray * str: 'a' is text, not a number"),
    (lambda: "a" - mx.np.ones(2), "str - ndarray: 'a' is text, not a number"),
    (lambda: mx.sym.var("x").as_np_ndarray() * "a", "NumpySymbol * str: 'a' is text, not a number"),
    (lambda: mx.np.reshape(mx.np.ones(2), "a"), "shape='a': expected an int or a tuple of ints"),
    (lambda: mx.np.squeeze(mx.np.ones(2), axis="a"), "axis='a': expected an int, a tuple of ints or None"),
    (lambda: mx.np.abs(mx.np.ones(2), out="a"), "out: expected an array, got 'a'"),
    (lambda: mx.np.zeros(2, dtyp="f"), "zeros() takes no keyword 'dtyp'. Did you mean 'dtype'?"),
    (lambda: mx.np.concatenate(3), "concatenate: 'int' object is not iterable"),
    (lambda: nn.ops.full((2,), "a"), "full: fill_value='a': expected a tensor or a number"),
    (lambda: nn.ops.full((2,)), "full() needs fill_value. It takes size, fill_value, dtype"),
    (lambda: nn.ops.sum(mx.Tensor([1.0]), keep_dim=True), "sum() takes no keyword 'keep_dim'. Did you mean 'keepdim'"),
    (lambda: nn.ops.relu(1, 2, 3), "relu(): expected 2 arguments (input, inplace), got 3"),
    (lambda: nn.ops.relu("a"), "relu: input='a': expected a tensor, a number or a list of numbers"),
    (lambda: mx.mint.add(1, "a"), "add: other='a': expected a tensor, a number or a list of numbers"),
    (lambda: mx.np.arange("5"), "np.arange: "),
    (lambda: mx.np.zeros("2"), "shape='2': expected an int or a tuple of ints"),
    (lambda: nd.zeros((2, "3")), "shape=(2, '3'): expected an int or a tuple of ints"),
    (lambda: nd.zeros((2, -3)), "shape=(2, -3): expected lengths of at least 0"),
    (lambda: nn.ops.zeros("2"), "zeros: size='2': expected an int or a tuple of ints"),
    (lambda: nn.ops.reshape(mx.Tensor([1.0]), "a"), "shape='a': expected an int or a tuple of ints"),
    (lambda: mx.rnn.do_rnn_checkpoint([], "net", "2"), "do_rnn_checkpoint: period='2': expected an int"),
    (lambda: mx.sym.Variable("a", lr_mult="2"), "Variable('a'): lr_mult='2': expected a number"),
    (lambda: mx.sym.Variable("a", wd_mult="x"), "Variable('a'): wd_mult='x': expected a number"),
    (lambda: mx.sym.Variable("a", shape="2"), "Variable('a'): shape='2': expected an int or a tuple of ints"),
    (lambda: mx.sym.Variable("a", shape=(2.5,)), "shape=(2.5,): expected an int or a tuple of ints"),
    (lambda: gluon.Parameter("p", shape="2"), "Parameter 'p': shape='2': expected an int or a tuple of ints"),
    (lambda: gluon.Parameter("p", shape=(2, -3)), "Parameter 'p': shape=(2, -3): expected lengths of at least -1"),
    (lambda: _parameter(wd_mult="2"), "Parameter 'p': wd_mult='2': expected a number"),
    (lambda: _parameter(lr_mult=None), "Parameter 'p': lr_mult=None: expected a number"),
    (lambda: _parameter(shape="2"), "Parameter 'p': shape='2': expected an int or a tuple of ints"),
    # probabilities and momenta
    (lambda: mx.optimizer.SGD(wd=-1), "SGD: wd=-1: expected a number of at least 0"),
    (lambda: mx.optimizer.Signum(wd_lh=-1), "Signum: wd_lh=-1: expected a number of at least 0"),
    (lambda: mx.metric.CustomMetric("a"), "CustomMetric: feval='a': expected a function"),
    (lambda: layers.ReflectionPad2D(-1), "ReflectionPad2D: padding=-1: expected lengths of at least 0"),
    (lambda: layers.Dropout(1.5), "Dropout: rate=1.5: expected a number from 0 to 1"),
    (lambda: layers.Dropout(float("nan")), "Dropout: rate=nan: expected a number from 0 to 1"),
    (lambda: nd.Dropout(nd.ones(2), p=1.5), "attribute p: expected float from 0 to 1, got 1.5"),
    (lambda: mx.sym.Dropout(mx.sym.Variable("x"), p=-0.5), "attribute p: expected float from 0 to 1, got -0.5"),
    (lambda: rnn.LSTM(3, dropout=1.5), "LSTM: dropout=1.5: expected a number from 0 to 1"),
    (lambda: rnn.DropoutCell(1.5), "DropoutCell: rate=1.5: expected a number from 0 to 1"),
    (lambda: rnn.ZoneoutCell(rnn.RNNCell(3), 1.5), "ZoneoutCell: zoneout_outputs=1.5: expected a number from 0 to 1"),
    (lambda: layers.BatchNorm(momentum=1.5), "BatchNorm: momentum=1.5: expected a number from 0 to 1"),
    (lambda: mx.optimizer.SGD(momentum=-1), "SGD: momentum=-1: expected a number from 0 to 1"),
    (lambda: mx.optimizer.Adam(beta1=1.5), "Adam: beta1=1.5: expected a number from 0 to 1"),
    (lambda: mx.optimizer.RMSProp(gamma1=2), "RMSProp: gamma1=2: expected a number from 0 to 1"),
    (lambda: mx.optimizer.AdaDelta(rho=2), "AdaDelta: rho=2: expected a number from 0 to 1"),
    (lambda: mx.lr_scheduler.FactorScheduler(5, factor=-1), "factor=-1: expected a number from 0 to 1"),
    # sizes and counts
    (lambda: layers.Dense(3, in_units=-2), "Dense: in_units=-2: expected an int of at least 0"),
    (lambda: layers.Embedding(-10, 3), "Embedding: input_dim=-10: expected an int of at least 1"),
    (lambda: layers.Embedding(10, 0), "Embedding: output_dim=0: expected an int of at least 1"),
    (lambda: layers.MaxPool2D(0), "MaxPool2D: pool_size=0: expected an int of at least 1"),
    (lambda: layers.MaxPool2D(2, strides=0), "MaxPool2D: strides=0: expected an int of at least 1"),
    (lambda: layers.AvgPool2D(2, padding=-1), "AvgPool2D: padding=-1: expected an int of at least 0"),
    (lambda: layers.BatchNorm(in_channels=-3), "BatchNorm: in_channels=-3: expected an int of at least 0"),
    (lambda: layers.GroupNorm(num_groups=0), "GroupNorm: num_groups=0: expected an int of at least 1"),
    (lambda: rnn.LSTMCell(-3), "LSTMCell: hidden_size=-3: expected an int of at least 1"),
    (lambda: gluon.data.RandomSampler(-3), "RandomSampler: length=-3: expected an int of at least 0"),
    (lambda: mx.callback.Speedometer(32, 0), "Speedometer: frequent=0: expected an int of at least 1"),
    # amounts
    (lambda: layers.LayerNorm(epsilon=-1), "LayerNorm: epsilon=-1: expected a number of at least 0"),
    (lambda: nd.LayerNorm(nd.ones((2, 3)), nd.ones(3), nd.ones(3), eps=-1),
     "attribute eps: expected float of at least 0"),
    (lambda: mx.optimizer.Adam(epsilon=-1), "Adam: epsilon=-1: expected a number of at least 0"),
    (lambda: gluon.loss.HuberLoss(rho=-1), "HuberLoss: rho=-1: expected a number of at least 0"),
    (lambda: mx.init.Uniform(-1), "Uniform: scale=-1: expected a number of at least 0"),
    (lambda: mx.metric.CrossEntropy(eps=-1), "CrossEntropy: eps=-1: expected a number of at least 0"),
    (lambda: gluon.utils.clip_global_norm([nd.ones(2)], -1), "max_norm=-1: expected a number of at least 0"),
    # words
    (lambda: layers.Activation("rleu"), "Did you mean 'relu'?"),
    (lambda: layers.Dense(3, activation="rleu"), "Did you mean 'relu'?"),
    # True and False are no numbers
    (lambda: layers.Dense(True), "Dense: units=True: expected an int"),
    (lambda: nn.Dense(True, 2), "Dense: in_channels=True: expected an int"),
    (lambda: nn.BatchNorm2d(3, eps=True), "BatchNorm2d: eps=True: expected a number"),
]


@of_each(SLIPS)
def test_wrong_settings_are_refused_when_they_are_given(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(OpError) as caught:
        call()
    assert words in str(caught.value)


@of_each([
    (lambda: dimensions("shape", [np.int64(2), 3]), (2, 3)),
    (lambda: dimensions("shape", np.array(4)), (4,)),
    (lambda: dimensions("shape", (0, -1), -1), (0, -1)),
    (lambda: number("rate", np.float32(0.5), 0, 1), 0.5),
    (lambda: whole_number("size", np.int8(3), 1), 3),
    (lambda: layers.Dense(3, in_units=np.int64(2)).weight.shape, (3, 2)),
    (lambda: _parameter(wd_mult=np.float32(2)).wd_mult, 2.0),
    (lambda: gluon.Parameter("p", shape=[2, 0]).shape, (2, 0)),
])
def test_numbers_of_any_kind_are_accepted(call: Callable[[], Any], expected: Any) -> None:
    assert call() == expected


def reading(constructor: Any) -> Any:
    """A decorator of constructors that takes a keyword of its own."""
    @functools.wraps(constructor)
    def read(self: Any, *args: Any, **keywords: Any) -> None:
        keywords.pop("tag", None)
        constructor(self, *args, **keywords)

    return read


class Decorated(nn.Cell):
    @reading
    def __init__(self, size: int):
        super().__init__()


class Converting(nn.Dense):
    def __init__(self, **keywords: Any):
        super().__init__(2, out_channels=int(keywords.pop("out_channels")), **keywords)


class Mixed:
    def __init__(self, **keywords: Any):
        self.rate = keywords.pop("rate", None)
        super().__init__(**keywords)


class WithRate(Mixed, nn.Dense):
    pass


class Ignoring(nn.Dense):
    def __init__(self, **keywords: Any):
        super().__init__(2, 3)


@pytest.mark.parametrize("make", [
    lambda: Ignoring(last_gamma=True), lambda: Decorated(3, tag="a"),
    lambda: Converting(out_channels="3", has_bias=False),
    lambda: WithRate(in_channels=2, out_channels=3, rate="slow")],
    ids=["ignored", "decorator", "converted", "read"])
def test_constructors_of_users_may_take_any_keywords(make: Callable[[], Any]) -> None:
    assert isinstance(make(), nn.Cell)
