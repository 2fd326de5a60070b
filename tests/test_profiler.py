"""The profiler records, writes and summarizes events."""

from __future__ import annotations

import json
import re
import threading

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, OpError
from opreg.symbol.executor import Executor

profiler = mx.profiler


@pytest.fixture(autouse=True)
def alone(tmp_path):
    profiler.set_config(filename=str(tmp_path / "trace.json"))
    yield tmp_path / "trace.json"
    profiler.set_config(profile_symbolic=True, profile_imperative=True, profile_memory=True, profile_all=False)
    profiler.set_state("stop")
    profiler.dumps(reset=True)


def executor():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax").simple_bind(mx.cpu(), data=(2, 3))


def spans(category="operator"):
    """Names and details of the recorded spans of a category."""
    return [(span.name, span.args) for span in profiler._PROFILER.events.spans if span.category == category]


def names(category="operator"):
    return [name for name, _ in spans(category)]


HALVES = ["forward of softmax_output", "backward of softmax_output"]


def test_operators_are_recorded_while_the_profiler_runs():
    bound = executor()
    expected = bound.forward(is_train=True)[0].asnumpy()
    assert not names()
    profiler.set_state("run")
    assert (bound.forward(is_train=True)[0].asnumpy() == expected).all()
    bound.backward()
    assert names("executor") == HALVES
    assert any("FullyConnected" in name for name in names())
    profiler.pause()
    bound.forward()
    profiler.resume()
    assert names("executor") == HALVES
    profiler.set_state("stop")
    bound.forward()
    assert names("executor") == HALVES


def test_the_profiler_restores_the_methods_of_executors():
    before = Executor.forward
    profiler.set_state("run")
    assert Executor.forward is not before
    profiler.pause()
    assert Executor.forward is before
    profiler.resume()
    profiler.set_state("stop")
    assert Executor.forward is before


def test_monitors_stay_installed():
    bound, seen = executor(), []
    bound.set_monitor_callback(lambda name, array: seen.append(name))
    profiler.set_state("run")
    bound.forward()
    assert "fc_output" in seen and names("executor") == HALVES[:1]


def test_operators_of_users_have_their_names():
    @mx.operator.define(name="profiled_half")
    def half(x):
        return x / 2

    bound = half(mx.sym.var("x"), name="mine").bind(mx.cpu(), {"x": mx.nd.ones(2)})
    profiler.set_state("run")
    bound.forward()
    ((name, args),) = [(name, args) for name, args in spans() if "node" in args]
    assert name == "custom.profiled_half" and args["node"] == "mine" and args["defined"].startswith(__file__)


def test_operators_of_arrays_are_noted_with_their_gradients():
    x = mx.nd.ones(3)
    x.attach_grad()
    profiler.set_state("run")
    with mx.autograd.record():
        y = mx.nd.exp(x)
    y.backward()
    profiler.pause()
    mx.nd.log(x)
    profiler.resume()
    assert {"exp", "gradient of exp"} <= set(names()) and "log" not in names()


def test_a_trace_file_holds_tasks_frames_events_and_counters(alone):
    profiler.set_config(profile_memory=False)
    profiler.set_state("run")
    domain = profiler.Domain("loop")
    task, frame, event = domain.new_task("read"), domain.new_frame("batch"), profiler.Event("whole")
    counter = domain.new_counter("seen", 2)
    with event, task:
        frame.start()
        counter += 3
        frame.stop()
        domain.new_marker("here").mark()
    thread = threading.Thread(target=domain.new_task("elsewhere").__enter__().stop)
    thread.start()
    thread.join()
    profiler.dump()
    trace = json.loads(alone.read_text())
    events = {event["name"]: event for event in trace["traceEvents"] if event["ph"] != "M"}
    assert {name: event["ph"] for name, event in events.items()} == {
        "read": "X", "batch": "X", "whole": "X", "loop::seen": "C", "here": "i", "elsewhere": "X"}
    assert {name: event["cat"] for name, event in events.items() if event["ph"] != "C"} == {
        "read": "loop", "batch": "loop,frame", "whole": "event", "here": "loop,instant_marker", "elsewhere": "loop"}
    assert events["elsewhere"]["tid"] != events["whole"]["tid"]
    assert events["whole"]["ts"] <= events["batch"]["ts"]
    assert events["batch"]["dur"] <= events["whole"]["dur"]
    assert events["loop::seen"]["args"] == {"seen": 5}
    assert not profiler._PROFILER.running


def test_statistics_count_events_and_tasks():
    profiler.set_state("run")
    for _ in range(3):
        with profiler.Event("often"):
            pass
    with profiler.Domain("d").new_task("once"):
        pass
    text = profiler.dumps()
    assert "Profile Statistics" in text and "often" in text and "once" in text
    table = json.loads(profiler.dumps(format="json", sort_by="count", reset=True))
    row = table["Time"]["event"]["often"]
    assert row["Count"] == 3 and row["Min"] <= row["Avg"] <= row["Max"] <= row["Total"]
    assert table["Time"]["d"]["once"]["Count"] == 1
    assert "often" not in profiler.dumps()


def test_statistics_of_counters_and_memory_are_values():
    profiler.set_state("run")
    counter = profiler.Domain("d").new_counter("name", 2)
    counter += 3
    profiler.Domain("d").new_marker("here").mark()
    mx.nd.exp(mx.nd.ones(2))
    table = json.loads(profiler.dumps(format="json"))
    assert table["Time"]["d"] == {"name": {"Count": 2, "Total": 5, "Min": 2, "Max": 5, "Avg": 3.5}}
    assert table["Time"]["d,instant_marker"] == {}
    memory = table["Memory"]["Device Storage"]["Memory: cpu/0"]
    assert set(memory) == {"Count", "Min", "Max", "Avg"} and memory["Min"] > 1e3
    assert table["Unit"] == {"Time": "ms", "Memory": "kB"} and list(table) == ["Time", "Memory", "Unit"]


#: Actions of a program, and the operators that MXNet counts for them.
COUNTED = [
    (lambda: mx.nd.zeros((2,)), {"_zeros": 1}), (lambda: mx.nd.ones((2,)), {"_ones": 1}),
    (lambda: mx.nd.full((2,), 3), {"_full": 1}), (lambda: mx.nd.arange(3), {"_arange": 1}),
    (lambda: mx.nd.eye(2), {"_eye": 1}), (lambda: mx.nd.empty((2,)), {}),
    (lambda: mx.nd.random.uniform(shape=(3,)), {"_random_uniform": 1}),
    (lambda: mx.nd.sqrt(mx.nd.zeros((2,))) + 1 + 1, {"_zeros": 1, "sqrt": 1, "_plus_scalar": 2}),
    (lambda: differentiated(mx.nd.array([1.0])), {"sqrt": 1, "_mul_scalar": 1, "_backward_sqrt": 1,
                                                  "_backward_mul_scalar": 1}),
]


def differentiated(x):
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.sqrt(x) * 2
    y.backward()


@pytest.mark.parametrize("run, expected", COUNTED)
def test_operators_are_counted_by_the_names_of_mxnet(run, expected):
    profiler.set_state("run")
    run()
    table = json.loads(profiler.dumps(format="json"))["Time"]
    assert {name: row["Count"] for name, row in table.get("operator", {}).items()} == expected


class Sigmoid(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], mx.nd.array(1 / (1 + np.exp(-in_data[0].asnumpy()))))
        mx.nd.zeros((10, 10))
        mx.nd.exp(in_data[0] + 1)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        y = out_data[0]
        self.assign(in_grad[0], req[0], out_grad[0] * y * (1 - y))


@mx.operator.register("profiled_sigmoid")
class SigmoidProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Sigmoid()


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "bound"])
def test_users_operators_and_their_calls_are_profiled(recorded):
    x = mx.nd.array([0.0, 1.0])
    bound = mx.sym.Custom(mx.sym.var("x"), op_type="profiled_sigmoid").bind(mx.cpu(), {"x": x}, {"x": mx.nd.zeros(2)})
    x.attach_grad()
    profiler.set_state("run")
    if recorded:
        with mx.autograd.record():
            y = mx.nd.Custom(x, op_type="profiled_sigmoid")
        y.backward()
    else:
        bound.forward(is_train=True)
        bound.backward(mx.nd.array([1.0, 1.0]))
    table = json.loads(profiler.dumps(format="json"))["Time"]
    forward, backward = "profiled_sigmoid::", "_backward_profiled_sigmoid::"
    counts = {name: row["Count"] for name, row in table["Custom Operator"].items()}
    assert counts == {f"{forward}pure_python": 1, f"{forward}_zeros": 1, f"{forward}_plus_scalar": 1,
                      f"{forward}exp": 1, f"{backward}pure_python": 1, f"{backward}_rminus_scalar": 1,
                      **dict.fromkeys([name for name in counts if name.startswith(backward) and "mul" in name], 2)}
    assert not {"exp", "_zeros", "_plus_scalar"} & set(table.get("operator", {}))


def test_the_table_is_laid_out_as_mxnets():
    profiler.set_state("run")
    with profiler.Event("often"):
        mx.nd.exp(mx.nd.ones(2))
    lines = profiler.dumps().split("\n")
    assert lines[:3] == ["", "Profile Statistics:", "\tNote the difference in units for different entries."]
    at = lines.index("event")
    assert lines[at + 1] == "================="
    assert lines[at + 2:at + 4] == [
        "Name                          Total Count        Time (ms)    Min Time (ms)    Max Time (ms)    Avg Time (ms)",
        "----                          -----------        ---------    -------------    -------------    -------------"]
    assert re.fullmatch(r"often                                   1( {2,}\d+\.\d{4}){4}", lines[at + 4])
    assert len(lines[at + 4]) == len(lines[at + 2]) and lines[at + 5] == ""
    at = lines.index("Device Storage")
    assert lines[at + 2:at + 4] == [
        "Name                          Total Count    Min Use  (kB)    Max Use  (kB)    Avg Use  (kB)",
        "----                          -----------    -------------    -------------    -------------"]


def test_new_events_follow_a_reset():
    profiler.set_state("run")
    mx.nd.exp(mx.nd.ones(2))
    assert "exp" in profiler.dumps(reset=True)
    mx.nd.log(mx.nd.ones(2))
    text = profiler.dumps()
    assert "log" in text and "exp" not in text


def test_nothing_is_recorded_before_the_profiler_runs():
    with profiler.Event("early"):
        pass
    profiler.Domain("d").new_counter("c").set_value(1)
    profiler.Domain("d").new_marker("m").mark()
    profiler.Event("never begun").stop()
    assert not profiler._PROFILER.events.spans and not profiler._PROFILER.events.moments


@pytest.mark.parametrize("old, new", [
    (lambda: profiler.profiler_set_config("all", "x.json"), "set_config"),
    (lambda: profiler.profiler_set_state("run"), "set_state"), (profiler.dump_profile, "dump")])
def test_older_names_warn_and_name_their_replacement(old, new, alone):
    with pytest.warns(DeprecationWarning, match=rf"profiler\.{new} since"):
        old()


@pytest.mark.parametrize("call, words", [
    (lambda: profiler.set_config(filname="x"), "Did you mean 'filename'"),
    (lambda: profiler.set_state("start"), "'run' or 'stop'"),
    (lambda: profiler.dumps(format="xml"), "'table' or 'json'"),
    (lambda: profiler.dumps(sort_by="name"), "sort_by"),
    (lambda: profiler.Domain("d").new_marker("m").mark("here"), "scope"),
])
def test_wrong_uses_of_the_profiler_are_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


@pytest.mark.parametrize("settings, graphs, arrays, memory", [
    ({}, True, True, True),
    ({"profile_symbolic": False}, False, True, True),
    ({"profile_imperative": False}, True, False, True),
    ({"profile_memory": False}, True, True, False),
    ({"profile_symbolic": False, "profile_imperative": False}, False, False, False),
    ({"profile_symbolic": False, "profile_imperative": False, "profile_all": True}, True, True, True),
], ids=str)
def test_only_requested_gradients_are_computed(settings, graphs, arrays, memory):
    bound, x = executor(), mx.nd.ones(2)
    profiler.set_state("run")
    profiler.set_config(**settings)
    profiler.dumps(reset=True)
    bound.forward()
    mx.nd.exp(x)
    found = profiler._PROFILER.events
    assert ("FullyConnected" in names(), bool(names("executor"))) == (graphs, graphs)
    assert ("exp" in names(), bool(found.moments)) == (arrays, memory)


def test_profile_collects_the_events_of_a_block_of_code(tmp_path):
    cell, x = mx.nn.Dense(3, 2), mx.Tensor([[1.0, 2.0, 3.0]])
    with profiler.profile() as p:
        cell(x)
    p.save(tmp_path / "p.json")
    assert any(event["name"] == "Dense" for event in json.loads((tmp_path / "p.json").read_text())["traceEvents"])
    assert [row.name for row in p.rows("cell")] == ["Dense"]
    assert any(row.name.startswith(__file__) for row in p.rows("line")) and p.rows("operator")
    assert not names()


def test_one_collects_at_a_time():
    with profiler.profile() as p:
        with pytest.raises(OpError, match="only one collector can do at a time"):
            profiler.set_state("run")
        with profiler.Event("nowhere"):
            pass
        profiler.set_state("stop")
        mx.nd.exp(mx.nd.ones(2))
    assert "exp" in {row.name for row in p.rows()}
    assert not names("event")
    profiler.set_state("run")
    with pytest.raises(OpError, match="only one collector can do at a time"), profiler.profile():
        pass
    mx.nd.log(mx.nd.ones(2))
    assert "log" in names()


def test_a_profiler_without_events_does_not_end_other_profiles():
    profiler.set_config(profile_symbolic=False, profile_imperative=False)
    profiler.set_state("run")
    with profiler.profile() as p:
        profiler.set_state("stop")
        mx.nd.exp(mx.nd.ones(2))
    assert "exp" in {row.name for row in p.rows()}
