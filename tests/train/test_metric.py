"""Metrics: values, sums over batches, text forms."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.errors import ArgumentError, AttrError, FileFormatError, ShapeError
from tests.questions import of_each

nd = mx.nd


@pytest.fixture(autouse=True)
def seeded():
    mx.random.seed(5)


_CHANCES = np.array([[0.3, 0.7], [0.6, 0.4], [0.2, 0.8], [0.9, 0.1]])
_LABELS = np.array([1, 1, 0, 0])
_MANY = np.array([[0.1, 0.6, 0.3], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
_VALUES, _TRUE = np.array([1.0, 2.0, 4.0]), np.array([1.5, 2.0, 2.0])
METRICS = [
    ("acc", {}, _LABELS, _CHANCES, 0.5),
    ("accuracy", {}, _LABELS, np.array([1, 1, 1, 0]), 0.75),
    ("top_k_accuracy", dict(top_k=2), np.array([2, 2, 0]), _MANY, 1 / 3),
    ("f1", {}, _LABELS, _CHANCES, 0.5),
    ("f1", dict(average="micro"), _LABELS, _CHANCES, 0.5),
    ("mcc", {}, np.array([1, 1, 1, 0]), _CHANCES, 2 / math.sqrt(2 * 3 * 1 * 2)),
    ("mae", {}, _TRUE, _VALUES, 2.5 / 3),
    ("mse", {}, _TRUE, _VALUES, 4.25 / 3),
    ("rmse", {}, _TRUE, _VALUES, math.sqrt(4.25 / 3)),
    ("ce", {}, _LABELS, _CHANCES, -np.log([0.7, 0.4, 0.2, 0.9]).mean()),
    ("nll_loss", {}, _LABELS, _CHANCES, -np.log([0.7, 0.4, 0.2, 0.9]).mean()),
    ("perplexity", dict(ignore_label=None), _LABELS, _CHANCES, math.exp(-np.log([0.7, 0.4, 0.2, 0.9]).mean())),
    ("perplexity", dict(ignore_label=0), _LABELS, _CHANCES, math.exp(-np.log([0.7, 0.4]).mean())),
    ("perplexity", dict(ignore_label=-1), np.array([-1, 1, 0, -1]), _CHANCES, math.exp(-np.log([0.4, 0.2]).mean())),
    ("pearsonr", {}, _TRUE, _VALUES, np.corrcoef(_TRUE, _VALUES)[0, 1]),
    ("pearsonr", dict(average="micro"), _TRUE, _VALUES, np.corrcoef(_TRUE, _VALUES)[0, 1]),
    ("pcc", {}, np.array([1, 0, 2]), _MANY, 1.0),
    ("loss", {}, _TRUE, _VALUES, 7 / 3),
    ("torch", {}, _TRUE, _VALUES, 7 / 3),
    ("caffe", {}, _TRUE, _VALUES, 7 / 3),
]


@pytest.mark.parametrize("name, keywords, label, pred, value", METRICS,
                         ids=[f"{name}-{keywords}" for name, keywords, *_ in METRICS])
class TestMetrics:
    def test_values_equal_the_expected_ones(self, name, keywords, label, pred, value):
        metric = mx.metric.create(name, **keywords)
        assert math.isnan(metric.get()[1])
        for _ in range(2):  # the same batch again changes no mean
            metric.update([nd.array(label)], [nd.array(pred)])
        assert metric.get()[1] == pytest.approx(value, rel=1e-5)
        assert str(metric).startswith("EvalMetric: {")

    def test_reset_local_keeps_the_global_sum(self, name, keywords, label, pred, value):
        metric = mx.metric.create(name, **keywords)
        metric.update([label], [pred])
        metric.reset_local()
        assert math.isnan(metric.get()[1])
        if keywords != dict(average="micro") or name != "pearsonr":
            assert metric.get_global()[1] == pytest.approx(value, rel=1e-5)
        metric.update(label, pred)
        assert metric.get_name_value() == [(metric.name, pytest.approx(value, rel=1e-5))]
        metric.reset()
        assert math.isnan(metric.get()[1]) and math.isnan(metric.get_global()[1])

    def test_a_metric_is_created_again_from_its_config(self, name, keywords, label, pred, value):
        config = mx.metric.create(name, **keywords).get_config()
        again = mx.metric.create(config.pop("metric"), **{**config, "name": name})
        again.update([label], [pred])
        assert again.get()[1] == pytest.approx(value, rel=1e-5)


def test_every_metric_has_a_row():
    rows = {type(mx.metric.create(name, **keywords)) for name, keywords, *_ in METRICS}
    # made of other metrics, or of a function: tests below
    rows |= {mx.metric.CompositeEvalMetric, mx.metric.CustomMetric}
    built_in = {each for each in vars(mx.metric).values() if isinstance(each, type)
                and each.__module__ == mx.metric.__name__ and issubclass(each, mx.metric.EvalMetric)}
    assert {each for each in built_in if each is not mx.metric.EvalMetric and not each.__name__.startswith("_")} == rows


@given(st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
@settings(deadline=None, max_examples=50, derandomize=True)
def test_f1_is_the_mean_of_precision_and_recall(rows):
    label = np.array([each[0] for each in rows])
    chances = np.array([[1 - each[1], each[1]] for each in rows])
    found = chances.argmax(axis=1)
    metric = mx.metric.F1()
    metric.update([label], [chances])
    right = int(((found == 1) & (label == 1)).sum())
    if right:
        precision, recall = right / int((found == 1).sum()), right / int((label == 1).sum())
        assert metric.get()[1] == pytest.approx(2 * precision * recall / (precision + recall))
    else:
        assert metric.get()[1] == 0


def test_macro_means_scores_and_micro_counts():
    batches = [(_LABELS, _CHANCES), (np.array([1]), np.array([[0.1, 0.9]]))]
    found = {}
    for average in ("macro", "micro"):
        metric = mx.metric.F1(average=average)
        for label, pred in batches:
            metric.update([label], [pred])
        found[average] = metric.get()[1]
    assert found == {"macro": pytest.approx((0.5 + 1) / 2), "micro": pytest.approx(4 / 6)}


def test_composites_answer_with_lists():
    metric = mx.metric.create(["acc", mx.metric.CrossEntropy(), lambda label, pred: 2.0])
    metric.update([_LABELS], [_CHANCES])
    names, values = metric.get()
    assert names == ["accuracy", "cross-entropy", "custom(<lambda>)"]
    assert values == [0.5, pytest.approx(METRICS[9][4]), 2.0]
    metric.add("mse")
    assert metric.get_metric(3).name == "mse"
    with pytest.raises(ArgumentError, match="no metric 4"):
        metric.get_metric(4)
    metric.reset()
    assert all(math.isnan(value) for value in metric.get()[1])


def test_names_choose_outputs_and_labels():
    metric = mx.metric.create("mse", output_names=["b"], label_names=["y"])
    metric.update_dict({"x": nd.array([9]), "y": nd.array([1])}, {"a": nd.array([5]), "b": nd.array([3])})
    assert metric.get()[1] == 4


@of_each([
    lambda: mx.metric.create("acc", axis=0), lambda: mx.metric.create("f1", average="micro"),
    lambda: mx.metric.create("mcc"), lambda: mx.metric.create("perplexity", -1), lambda: mx.metric.create("pearsonr"),
    lambda: mx.metric.create("pcc"), lambda: mx.metric.create("nll_loss", eps=0.5), lambda: mx.metric.create("loss"),
    lambda: mx.metric.create("top_k_acc", top_k=3, name="best", output_names=["a"]), lambda: mx.metric.create("mse"),
    lambda: mx.metric.create(["acc", mx.metric.create("ce", name="x"), ["mae", "f1"]]),
])
def test_metrics_are_made_from_their_configurations(make):
    metric = make()
    config = metric.get_config()
    for spec in (config, json.dumps(config)):
        again = mx.metric.create(spec)
        assert type(again) is type(metric) and again.get_config() == config
        assert again.get()[0] == metric.get()[0]
    assert mx.metric.create('["acc", {"axis": 0}]').axis == 0


def test_a_metric_may_have_the_older_interface():
    """The metric counts in attributes of its own, and has its own ``reset``, without global statistics."""

    class Two(mx.metric.EvalMetric):
        def __init__(self):
            super().__init__("Two", has_global_stats=False)

        def reset(self):
            self.counts = [0, 0]

        def update(self, labels, preds):
            self.counts = [count + 1 for count in self.counts]

        def get(self):
            return ["one", "two"], [float(count) for count in self.counts]

    class One(mx.metric.EvalMetric):
        def update(self, labels, preds):
            self.sum_metric += 3.0
            self.num_inst += 2

    two, one = Two(), One("one")
    for metric in (two, one):
        metric.update(None, None)
    assert two.get_global_name_value() == [("one", 1.0), ("two", 1.0)]
    assert one.get_global_name_value() == [("one", 1.5)] and one.get_config()["metric"] == "One"


@pytest.mark.parametrize("label, ignored, value", [
    ([0, 5, 1], None, 2.119680), ([0, 5, 1], 5, 2.581989), ([0, 5, 1], 0, 2.182179), ([0, -1, 1], None, 4.054801),
    ([0, -1, 1], -1, 2.581989), ([7, 7, 7], None, 2.613790), ([0, -7, 2], 0, 5.0),
])
def test_perplexity_of_labels_that_are_no_classes_is_that_of_mxnet(label, ignored, value):
    chances = nd.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    metric = mx.metric.Perplexity(ignored)
    metric.update([nd.array(label)], [chances])
    assert metric.get()[1] == pytest.approx(value, rel=1e-6)


def test_values_of_numpy_are_printed_as_numbers():
    few = mx.metric.CustomMetric(lambda label, pred: (label > 3).mean(), "few")
    metric = mx.metric.CompositeEvalMetric(["f1", few])
    metric.update([nd.array([0, 1])], [nd.array([[0.9, 0.1], [0.8, 0.2]])])
    assert str(metric) == "EvalMetric: {'f1': 0.0, 'few': 0.0}"
    assert [type(value) for _, value in metric.get_global_name_value()] == [float, float]


def test_a_function_may_give_sum_and_count():
    metric = mx.metric.np(lambda label, pred: (float(abs(label - pred).sum()), label.size), name="worst")
    metric.update([_TRUE], [_VALUES])
    metric.update([_TRUE[:1]], [_VALUES[:1]])
    assert metric.get() == ("worst", pytest.approx(3.0 / 4))
    extra = mx.metric.CustomMetric(lambda label, pred: 1.0, allow_extra_outputs=True)
    extra.update([_TRUE], [_VALUES, _VALUES])
    assert extra.get()[1] == 1


@of_each([
    (lambda: mx.metric.create("acuracy"), AttrError, "Did you mean 'accuracy'"),
    (lambda: mx.metric.create(3), ArgumentError, "a function or a list"),
    (lambda: mx.metric.create("acc", axes=1), AttrError, "unexpected keyword argument 'axes'. It takes axis, name"),
    (lambda: mx.metric.create(mx.metric.create("acc"), axis=1), ArgumentError, "accuracy is made already"),
    (lambda: mx.metric.create({"name": "acc"}), FileFormatError, "metric: expected a name and keywords"),
    (lambda: mx.metric.create('{"metric": "acc", "axis": "x"}'), AttrError, "axis must be int, got 'x'"),
    (lambda: mx.metric.create('{"metric": "custommetric", "feval": 3}'), AttrError, "cannot be made from text"),
    (lambda: mx.metric.create(len).get_config(), NotImplementedError, "len: it computes a function"),
    (lambda: mx.metric.create("mse", output_names=["out"]).update_dict({}, {"oux": 1}), ArgumentError,
     "metric mse: there is no output 'out'. Did you mean 'oux'"),
    (lambda: mx.metric.create(["mse"]).update_dict({"a": 1}, {"b": 1, "c": 2}), ShapeError, "1 and 2; .*output_names"),
    (lambda: mx.metric.TopKAccuracy(1), ArgumentError, "at least two"),
    (lambda: mx.metric.F1(average="mean"), AttrError, "macro, micro"),
    (lambda: mx.metric.F1().update([np.arange(3)], [_MANY]), ArgumentError, "two classes; the labels have 3"),
    (lambda: mx.metric.Accuracy().update([_LABELS], [_MANY]), ShapeError, "differ in number: 4 and 3"),
    (lambda: mx.metric.Accuracy().update([_LABELS, _LABELS], [_CHANCES]), ShapeError, "2 and 1"),
    (lambda: mx.metric.Perplexity(None).update([_LABELS], [_MANY]), ShapeError, "4 and 3"),
    (lambda: mx.metric.EvalMetric("x").update([], []), NotImplementedError, "define update"),
])
def test_wrong_uses_of_metrics_are_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
