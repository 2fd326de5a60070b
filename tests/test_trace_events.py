"""Traces of events with times, in Chrome's trace event format, and tables of them."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

import opreg as mx
from opreg.cells.cell import Cell
from opreg.cells.jit import Cache
from opreg.core.events import Events
from opreg.errors import ArgumentError, OpError
from opreg.ndarray import backward_pass, computation
from opreg.symbol.executor import Executor
from opreg.trace_events import collect

_ALL = {"name", "ph", "ts", "pid", "tid"}
PHASES = {"X": _ALL | {"cat", "dur", "args"}, "i": _ALL | {"cat", "s"}, "C": _ALL | {"args"}, "M": _ALL | {"args"}}


class _Square(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])


@mx.operator.register("traced_square")
class _SquareProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return _Square()


def _line_of(words: str) -> str:
    """Number of the line of this file that ends with a comment."""
    with open(__file__, encoding="utf-8") as file:
        return f"{__file__}:{next(i for i, text in enumerate(file, 1) if text.rstrip().endswith(f'# {words}'))}"


def valid(trace: dict) -> list[dict]:
    """Events of a trace, after checks of its format: fields, times in order, nested spans."""
    trace = json.loads(json.dumps(trace))
    assert set(trace) == {"traceEvents", "displayTimeUnit"}
    events = trace["traceEvents"]
    for event in events:
        assert set(event) == PHASES[event["ph"]], event
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int) and isinstance(event["name"], str)
        assert event["ts"] >= 0 and event.get("dur", 0) >= 0
    timed = [event for event in events if event["ph"] != "M"]
    assert all(first["ts"] <= second["ts"] for first, second in pairwise(timed))
    threads = defaultdict(list)
    for event in timed:
        if event["ph"] == "X":
            threads[event["tid"]].append(event)
    named = {event["tid"] for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    assert set(threads) <= named
    for spans in threads.values():
        stack: list[float] = []
        for span in spans:
            start, end = span["ts"], span["ts"] + span["dur"]
            while stack and stack[-1] <= start + 1e-3:
                stack.pop()
            assert not stack or end <= stack[-1] + 1e-2, f"{span} ends behind what holds it"
            stack.append(end)
    return events


def _collected(function) -> Events:
    with collect() as events:
        function()
    return events


def _names(events: Events, category: str = "operator") -> set[str]:
    return {span.name for span in events.spans if span.category == category}


def test_a_graph_is_traced_with_its_nodes_kernels_and_lines():
    net = mx.sym.Custom(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"),
                        op_type="traced_square", name="mine")  # graph
    executor = net.simple_bind(mx.cpu(), data=(2, 3))

    def run():
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones((2, 2)))

    run()
    events = _collected(run)
    found = {span.args.get("node"): span for span in events.spans if span.category == "operator"}
    assert (found["fc"].name, found["mine"].name) == ("FullyConnected", "custom.traced_square")
    assert found["fc"].args["kernel"]
    assert found["mine"].args["defined"].startswith(__file__)
    assert found["mine"].args["line"].startswith(__file__)
    assert _names(events, "executor") == {"forward of mine_output", "backward of mine_output"}
    valid(events.trace())


def test_arrays_and_tapes_are_traced_under_the_names_and_lines_of_operators():
    x = mx.nd.ones(3)
    x.attach_grad()

    def run():
        with mx.autograd.record():
            y = mx.nd.exp(x) * 2  # eager
        y.backward()

    events = _collected(run)
    assert {"exp", "_mul_scalar", "gradient of exp", "gradient of _mul_scalar"} <= _names(events)
    rows = {row.name: row for row in events.rows("line")}
    assert rows[_line_of("eager")].calls >= 4
    valid(events.trace())


def test_cells_and_compiled_functions_are_traced():
    cell = mx.nn.SequentialCell(mx.nn.Dense(3, 2), mx.nn.ReLU())
    x = mx.Tensor(np.ones((2, 3), "float32"))
    compiled = mx.jit(lambda x: mx.ops.exp(x) + 1)
    compiled(x)
    events = _collected(lambda: (cell(x), compiled(x)))
    cells = {row.name: row for row in events.rows("cell")}
    assert set(cells) == {"SequentialCell", "SequentialCell.0", "SequentialCell.1"}
    whole = cells["SequentialCell"]
    assert whole.own < whole.total
    assert whole.total >= cells["SequentialCell.0"].total + cells["SequentialCell.1"].total
    assert any("lambda" in name for name in _names(events, "compiled"))
    assert "_fused" in _names(events)
    valid(events.trace())


def test_a_training_loop_is_traced():
    data = mx.io.NDArrayIter(np.ones((4, 3), "float32"), np.zeros(4, "float32"), batch_size=2)
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")
    events = _collected(lambda: mx.mod.Module(net).fit(data, num_epoch=1, optimizer="sgd"))
    assert {"FullyConnected", "_backward_SoftmaxOutput"} <= _names(events)
    assert any("sgd" in name.lower() for name in _names(events))
    assert any(event["ph"] == "C" and event["name"] == "memory" and event["args"]["MB"] > 0
               for event in valid(events.trace()))


def test_threads_are_rows_with_their_names():
    x = mx.nd.ones(3)

    def run():
        thread = threading.Thread(target=lambda: mx.nd.exp(x) + 1, name="beside")
        thread.start()
        thread.join()
        mx.nd.log(x)

    events = _collected(run)
    named = {event["args"]["name"]: event["tid"] for event in valid(events.trace()) if event["name"] == "thread_name"}
    assert {"MainThread", "beside"} <= set(named)
    assert {span.name for span in events.spans if span.thread == named["beside"]} == {"exp", "_plus_scalar"}


def test_results_are_equal_while_events_are_collected():
    executor = (mx.sym.exp(mx.sym.var("x")) * 2 + 1).bind(mx.cpu(), {"x": mx.nd.array([1, 2])})
    x = mx.nd.array([1, 2])

    def results():
        return [executor.forward()[0].asnumpy(), (x / 3 > 0.5).asnumpy(), (1 - x).asnumpy(), (x == x).asnumpy()]

    before = results()
    with collect():
        inside = results()
    for first, second in zip(before, inside):
        np.testing.assert_array_equal(first, second)
        assert first.dtype == second.dtype


def test_everything_is_put_back():
    def parts():
        return [computation.run, backward_pass.backward, dict(backward_pass._IN_MODE), Executor.forward,
                Executor.backward, Cell._run, Cache.call, segment.plain, mx.nd.NDArray.__mul__, mx.Tensor.__add__]

    executor = mx.sym.exp(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(3,))
    segment = executor.plan(False).forward
    executor.forward()
    before = parts()

    def fail():
        assert all(now != then for now, then in zip(parts(), before))
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), collect():
        fail()
    assert parts() == before


def test_an_operator_that_fails_is_noted_and_fails_as_ever():
    with collect() as events, pytest.raises(OpError):
        mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((2, 3)))
    assert "dot" in _names(events)


def test_one_collects_at_a_time():
    with collect():
        with pytest.raises(OpError, match="only one collector can do at a time"), collect():
            pass
        mx.nd.exp(mx.nd.ones(1))
    assert computation.run.__module__ == "opreg.ndarray.eager"


def test_a_trace_is_written_whole_or_not_at_all(tmp_path):
    events = _collected(lambda: mx.nd.exp(mx.nd.ones(2)))
    events.moment("mine", "here", "g")
    events.counter("batches", done=3)
    path = tmp_path / "trace.json"
    events.save(path)
    found = valid(json.loads(path.read_text()))
    assert {event["ph"] for event in found} == {"X", "i", "C", "M"}
    events.span("mine", "bad", 0.0, 1.0, loop=(loop := []))
    loop.append(loop)  # JSON cannot represent it
    with pytest.raises(ValueError, match="Circular"):
        events.save(path)
    assert valid(json.loads(path.read_text())) == found
    assert [each.name for each in tmp_path.iterdir()] == ["trace.json"]


def test_tables_tell_own_time_from_that_of_spans_inside():
    events = Events()
    events.span("cell", "inner", 1.0, 2.0)
    events.span("operator", "exp", 2.0, 2.5, line="a.py:1")
    events.span("cell", "outer", 0.0, 4.0)
    assert [(row.name, row.total, row.own) for row in events.rows("cell")] == [("outer", 4.0, 2.5), ("inner", 1.0, 1.0)]
    assert events.rows("line")[0][:3] == ("a.py:1", 1, 0.5)
    assert "outer" in str(events) and "a.py:1" in str(events)
    assert "and 1 more" in events.table("cell", 1)
    with pytest.raises(ArgumentError, match="Did you mean 'operator'"):
        events.rows("operators")
