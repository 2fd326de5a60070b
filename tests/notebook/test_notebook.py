"""Tables and charts of a training in a notebook."""

from __future__ import annotations

import sys
import types
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, OpError

callback = mx.notebook.callback


def fitted(**keywords):
    data = mx.io.NDArrayIter(np.arange(8.0).reshape(8, 1) / 8, np.arange(8) % 2, 2)
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")
    mx.mod.Module(net).fit(data, eval_data=data, num_epoch=2, **keywords)


def test_a_logger_collects_rows_of_a_training():
    logger = callback.PandasLogger(2, frequent=2)
    fitted(**logger.callback_args())
    assert [(row["epoch"], row["minibatch_count"]) for row in logger.rows["train"]] == [(0, 0), (0, 2), (1, 0), (1, 2)]
    assert [len(logger.rows[name]) for name in ("eval", "epoch")] == [2, 2]
    assert all(0 <= row["accuracy"] <= 1 and row["records_per_sec"] == 2 * row["batches_per_sec"]
               for row in logger.rows["train"])
    with pytest.raises(ArgumentError, match="one of train, eval, epoch, got 'test'"):
        logger.append_metrics({}, "test")


def test_tables_are_those_of_pandas(monkeypatch):
    logger = callback.PandasLogger(2)
    logger.append_metrics({"a": 1}, "train")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(OpError, match=r"pip install .*pandas"):
        logger.train_df  # noqa: B018
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=tuple))
    assert logger.train_df == ({"a": 1},) and logger.all_dataframes["eval"] == ()


def test_a_chart_draws_itself(monkeypatch):
    shown = []

    class Handle:
        def update(self, chart):
            shown.append(chart._repr_svg_())

    def display(chart, display_id):
        shown.append(chart._repr_svg_())
        return Handle()

    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=object))
    chart = callback.LiveLearningCurve("accuracy", display_freq=-1, frequent=1)
    fitted(**callback.args_wrapper(chart, callback.PandasLogger(2, 100)))
    assert {name: len(line) for name, line in chart.lines.items()} == {"train": 8, "eval": 2} and len(shown) == 10
    drawn = ElementTree.fromstring(shown[-1])
    lines = drawn.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.get("points").split()) for line in lines] == [8, 2]


def test_a_metric_that_is_not_measured_is_refused():
    with pytest.raises(ArgumentError, match="no 'f1' among what is measured: accuracy"):
        fitted(**callback.LiveLearningCurve("f1", frequent=1).callback_args())
