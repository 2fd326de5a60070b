"""Initializers: values, text forms, and files that hold them."""

from __future__ import annotations

import json
import logging
import math
import re

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, AttrError, FileFormatError, ShapeError
from tests.laws import stats
from tests.questions import of_each

nd = mx.nd


@pytest.fixture(autouse=True)
def seeded():
    mx.random.seed(5)


def filled(initializer, shape, name="fc_weight"):
    found = nd.full(shape, -9)
    mx.init.create(initializer)(name, found)
    return found.asnumpy()


@pytest.mark.parametrize("initializer, shape, law", [
    (mx.init.Uniform(0.5), (100, 20), lambda: stats().uniform(-0.5, 1)),
    (mx.init.Normal(2), (100, 20), lambda: stats().norm(0, 2)),
    (mx.init.Xavier(), (100, 50), lambda: stats().uniform(-math.sqrt(3 / 75), 2 * math.sqrt(3 / 75))),
    (mx.init.Xavier("gaussian", "in", 2), (30, 20, 3, 3), lambda: stats().norm(0, math.sqrt(2 / 180))),
    (mx.init.Xavier("gaussian", "out", 2), (30, 20, 3, 3), lambda: stats().norm(0, math.sqrt(2 / 270))),
    (mx.init.MSRAPrelu("in", 0.5), (50, 40), lambda: stats().norm(0, math.sqrt(2 / 1.25 / 40))),
], ids=lambda each: each.dumps() if hasattr(each, "dumps") else "")
def test_random_initializers_have_their_scale(initializer, shape, law):
    assert stats().kstest(filled(initializer, shape).ravel(), law().cdf).pvalue > 1e-4


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (3, 2, 4)])
@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_orthogonal_gives_orthogonal_rows_or_columns(shape, kind):
    matrix = filled(mx.init.Orthogonal(scale=2, rand_type=kind), shape).reshape(shape[0], -1)
    if shape[0] > matrix.shape[1]:
        matrix = matrix.T
    assert np.allclose(matrix @ matrix.T, 4 * np.eye(len(matrix)), atol=1e-5)


def test_bilinear_is_the_window_of_an_enlargement():
    window = filled("bilinear", (2, 1, 4, 4))
    line = np.array([0.25, 0.75, 0.75, 0.25])
    assert np.allclose(window, np.outer(line, line))
    assert np.allclose(filled("bilinear", (1, 1, 3, 3))[0, 0], np.outer([0.25, 0.75, 0.75], [0.25, 0.75, 0.75]))


@pytest.mark.parametrize("name, value", [
    ("a_bias", 0), ("a_gamma", 1), ("a_beta", 0), ("bn_moving_mean", 0), ("bn_moving_var", 1), ("bn_running_var", 1),
    ("x_min", 0), ("x_max", 1), ("a_weight", 7),
])
def test_names_tell_the_role_of_an_array(name, value):
    for desc in (name, mx.init.InitDesc(name)):
        assert (filled(mx.init.Constant(7), (3,), desc) == value).all()


def test_an_attribute_takes_precedence():
    constant = mx.init.Constant(mx.nd.array([[1, 2]]))
    assert constant.dumps() == json.dumps(["constant", constant._kwargs]) == '["constant", {"value": [[1.0, 2.0]]}]'
    for text in ("one", mx.init.Constant(1).dumps()):
        assert (filled("zero", (3,), mx.init.InitDesc("a_bias", {"__init__": text})) == 1).all()
    assert mx.sym.var("w", init=mx.init.Xavier(magnitude=2)).attr("__init__") == mx.init.Xavier(magnitude=2).dumps()


def test_lstm_bias_opens_the_forget_gate():
    assert filled(mx.init.LSTMBias(2.0), (8,)).tolist() == [0, 0, 2, 2, 0, 0, 0, 0]


def test_mixed_takes_the_first_pattern():
    init = mx.init.Mixed([".*special.*", ".*"], [mx.init.One(), "zero"])
    assert filled(init, (2,), "special_weight").tolist() == [1, 1]
    assert filled(init, (2,), "weight").tolist() == [0, 0]


def test_load_takes_arrays_and_files(tmp_path):
    init = mx.init.Load({"arg:a_weight": nd.array([1, 2])}, default_init=mx.init.Constant(3))
    assert filled(init, (2,), "a_weight").tolist() == [1, 2]
    assert filled(init, (2,), "b_weight").tolist() == [3, 3]
    nd.save(str(tmp_path / "w.params"), {"arg:a_weight": nd.array([5, 6])})
    assert filled(mx.init.Load(str(tmp_path / "w.params")), (2,), "a_weight").tolist() == [5, 6]


#: Single initializers, and arrays that they fill.
ROWS = [
    (mx.init.Zero(), (3,)), (mx.init.One(), (3,)), (mx.init.Constant(2), (3,)),
    (mx.init.Constant(np.float32(2)), (3,)), (mx.init.Constant(np.arange(3)), (2, 3)),
    (mx.init.Constant(nd.array([[1, 2]])), (3, 2)), (mx.init.Uniform(0.3), (3, 2)), (mx.init.Normal(0.3), (3, 2)),
    (mx.init.Orthogonal(), (3, 2)), (mx.init.Orthogonal(2.0, "normal"), (2, 3, 2)),
    (mx.init.Xavier("gaussian"), (3, 2)), (mx.init.MSRAPrelu(), (3, 2, 2)), (mx.init.Bilinear(), (1, 1, 4, 4)),
    (mx.init.LSTMBias(), (8,)), (mx.init.FusedRNN("xavier", 2, 1, "gru"), (48,)),
]
_NAMED = pytest.mark.parametrize("initializer, shape", ROWS, ids=[type(each).__name__ for each, _ in ROWS])


def test_every_initializer_has_a_row():
    # Load takes arrays, Mixed takes initializers: tests above
    rows = {type(each) for each, _ in ROWS} | {mx.init.Load, mx.init.Mixed}
    built_in = {each for each in vars(mx.init).values() if isinstance(each, type)
                and each.__module__ == mx.init.__name__ and issubclass(each, mx.init.Initializer)}
    assert built_in - {mx.init.Initializer} == rows


@_NAMED
def test_a_seed_determines_all_values(initializer, shape):
    """All values are written, in the array's dtype."""
    for dtype in (np.float32, np.float64):
        first, second = (nd.full(shape, np.nan, dtype=dtype) for _ in range(2))
        for arr in (first, second):
            mx.random.seed(5)
            initializer("a_weight", arr)
        assert first.dtype == dtype and np.isfinite(first.asnumpy()).all()
        np.testing.assert_array_equal(first.asnumpy(), second.asnumpy())


@_NAMED
def test_dumps_and_create_are_inverse(initializer, shape):
    name, keywords = json.loads(initializer.dumps())
    again = mx.init.create(initializer.dumps())
    assert again == initializer and type(again) is type(initializer)
    assert mx.init.create(name, **keywords) == initializer


def test_an_initializer_has_further_names():
    @mx.init.alias("thirds", "a_third")
    class Third(mx.init.Initializer):
        def _init_weight(self, name, arr):
            arr[:] = 1 / 3

    assert {type(mx.init.create(name)) for name in ("third", "thirds", "a_third")} == {Third}


def test_a_user_registers_an_initializer(caplog):
    @mx.init.register
    class Ramp(mx.init.Initializer):
        def _init_weight(self, name, arr):
            arr[:] = np.arange(arr.size)

    assert filled("ramp", (3,)).tolist() == [0, 1, 2]
    with caplog.at_level(logging.INFO):
        filled(mx.init.create("ramp").set_verbosity(True), (3,))
    assert "fc_weight" in caplog.text


@of_each([
    ("[]", FileFormatError, "expected a name and keywords"),
    ("{}", FileFormatError, "expected a name and keywords"),
    ("[1]", FileFormatError, "expected a name and keywords"),
    ('["zero", 5]', FileFormatError, "expected a name and keywords"),
    ('["zero", {}, 1]', FileFormatError, "expected a name and keywords"),
    ('[["zero"], {}]', FileFormatError, "expected a name and keywords"),
    ('["zero", {}', FileFormatError, "no JSON"),
    ("[" * 100_000, FileFormatError, "nested too deeply"),
    ('["constant", {"value": ' + "1" * 5000 + "}]", FileFormatError, "absurdly long number"),
    ('["zeroo", {}]', AttrError, "Did you mean 'zero'"),
    ('["zero", {"a": 1}]', AttrError, "unexpected keyword argument 'a'"),
    ('["constant"]', AttrError, "missing a required argument: 'value'"),
    ('["constant", {"value": "a"}]', AttrError, "expected a number, or an array's numbers, got 'a'"),
    ('["constant", {"value": {}}]', AttrError, "expected a number"),
    ('["constant", {"value": [1, [2]]}]', AttrError, "expected a number"),
    ('["uniform", {"scale": "a"}]', AttrError, "scale must be float, got 'a'"),
    ('["uniform", {"scale": true}]', AttrError, "scale must be float, got True"),
    ('["uniform", {"scale": 1e999}]', AttrError, "scale must be float, got inf"),
    ('["normal", {"sigma": NaN}]', AttrError, "sigma must be float, got nan"),
    ('["normal", {"sigma": null}]', AttrError, "sigma must be float, got None"),
    ('["xavier", {"rnd_type": 3}]', AttrError, "rnd_type must be str, got 3"),
    ('["normal", {"sigma": -1}]', ArgumentError, "sigma=-1: expected a number of at least 0"),
    ('["xavier", {"magnitude": -1}]', ArgumentError, "magnitude=-1: expected a number of at least 0"),
    ('["fusedrnn", {"init": null, "num_hidden": 0, "num_layers": 1, "mode": "lstm"}]', AttrError, "at least one layer"),
    ('["fusedrnn", {"init": null, "num_hidden": 2.5, "num_layers": 1, "mode": "lstm"}]', AttrError, "num_hidden must"),
    ('["fusedrnn", {"init": "[[", "num_hidden": 2, "num_layers": 1, "mode": "lstm"}]', FileFormatError, "no JSON"),
    ('["load", {"param": "no such file"}]', AttrError, "'load' cannot be made from text"),
    ('{"initializer": "load", "param": "no such file"}', AttrError, "'load' cannot be made from text"),
    ("load", AttrError, "missing a required argument: 'param'"),
    ('["mixed", {"patterns": ["(a+)+$"], "initializers": ["zero"]}]', AttrError, "'mixed' cannot be made from text"),
])
def test_initializers_in_files_are_checked(text, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        mx.init.create(text)
    module = mx.mod.Module(mx.sym.var("data") * mx.sym.var("w", attr={"__init__": text}), label_names=None)
    module.bind([("data", (2, 3))])
    with pytest.raises(kind, match=re.escape(words)) as caught:
        module.init_params()
    assert any("variable 'w': its attribute __init__ is" in each for each in caught.value.__notes__)


@of_each([
    (lambda: mx.init.create("xaver"), AttrError, "Did you mean 'xavier'"),
    (lambda: mx.init.create('["zero", {}]', a=1), AttrError, "takes no further ones"),
    (lambda: mx.init.create("uniform", scael=1), AttrError, "unexpected keyword argument 'scael'. It takes scale"),
    (lambda: mx.init.create(3), AttrError, "expected one or its name"),
    (lambda: mx.init.Xavier("normal"), AttrError, "rnd_type"),
    (lambda: mx.init.Xavier(factor_type="mean"), AttrError, "factor_type"),
    (lambda: mx.init.Orthogonal(rand_type="cauchy"), AttrError, "uniform, normal"),
    (lambda: filled("xavier", (3,)), ShapeError, r"fc_weight: Xavier needs .* got shape \(3,\)"),
    (lambda: filled("bilinear", (3, 3)), ShapeError, "rank 4"),
    (lambda: filled(mx.init.Constant([1, 2]), (3,)), ShapeError, r"fc_weight: Constant of shape \(2,\) cannot fill"),
    (lambda: filled("zero", (3,), "what"), ArgumentError, "no initialization is defined for arrays named 'what'"),
    (lambda: filled(mx.init.Mixed(["a"], ["zero"]), (3,), "b"), ArgumentError, "fits no pattern"),
    (lambda: mx.init.Mixed(["a", "b"], ["zero"]), ArgumentError, "2 patterns, but 1"),
    (lambda: filled(mx.init.Load({}), (3,), "a"), ArgumentError, "no default_init"),
    (lambda: filled(mx.init.Load({"a": nd.ones(2)}), (3,), "a"), ShapeError, r"expected shape \(3,\)"),
    (lambda: mx.init.Zero()(3, nd.ones(1)), ArgumentError, "expected the name"),
    (lambda: mx.init.Initializer()("weight", nd.ones(1)), NotImplementedError, "_init_weight"),
])
def test_wrong_initializers_are_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
