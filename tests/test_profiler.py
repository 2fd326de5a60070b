"""What the profiler notes, writes and adds up."""

from __future__ import annotations

import json
import threading

import pytest

import opreg as mx
from opreg.errors import ArgumentError
from opreg.symbol.executor import Executor

profiler = mx.profiler


@pytest.fixture(autouse=True)
def alone(tmp_path):
    profiler.set_config(filename=str(tmp_path / "trace.json"))
    yield tmp_path / "trace.json"
    profiler.set_config(profile_symbolic=True)
    profiler.set_state("stop")
    profiler.dumps(reset=True)


def executor():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax").simple_bind(mx.cpu(), data=(2, 3))


def names(category="operator"):
    return [event["name"] for event in profiler._PROFILER.events if event["cat"] == category]


def test_operators_are_noted_while_it_runs():
    bound = executor()
    expected = bound.forward(is_train=True)[0].asnumpy()
    assert not names()
    profiler.set_state("run")
    assert (bound.forward(is_train=True)[0].asnumpy() == expected).all()
    bound.backward()
    assert names("executor") == ["forward", "backward"]
    assert any("FullyConnected" in name for name in names())
    profiler.pause()
    bound.forward()
    profiler.resume()
    assert names("executor") == ["forward", "backward"]
    profiler.set_state("stop")
    bound.forward()
    assert names("executor") == ["forward", "backward"]


def test_executors_are_as_they_were_when_it_ends():
    before = Executor._run
    profiler.set_state("run")
    assert Executor._run is not before
    profiler.set_state("stop")
    assert Executor._run is before


def test_monitors_go_on():
    bound, seen = executor(), []
    bound.set_monitor_callback(lambda name, array: seen.append(name))
    profiler.set_state("run")
    bound.forward()
    assert "fc_output" in seen and names("executor") == ["forward"]


def test_operators_of_users_have_their_names():
    @mx.operator.define(name="profiled_half")
    def half(x):
        return x / 2

    bound = half(mx.sym.var("x"), name="mine").bind(mx.cpu(), {"x": mx.nd.ones(2)})
    profiler.set_state("run")
    bound.forward()
    (event,) = [event for event in profiler._PROFILER.events if event["cat"] == "operator"]
    assert event["name"] == "custom.profiled_half" and event["args"]["node"] == "mine" and event["dur"] >= 0


def test_trace(alone):
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
    events = {event["name"]: event for event in trace["traceEvents"]}
    assert {name: event["ph"] for name, event in events.items()} == {
        "loop::read": "X", "loop::batch": "X", "whole": "X", "loop::seen": "C", "loop::here": "i",
        "loop::elsewhere": "X"}
    assert events["loop::elsewhere"]["tid"] != events["whole"]["tid"]
    assert events["whole"]["ts"] <= events["loop::batch"]["ts"]
    assert events["loop::batch"]["dur"] <= events["whole"]["dur"]
    assert events["loop::seen"]["args"] == {"seen": 5}
    assert not profiler._PROFILER.running


def test_statistics():
    profiler.set_state("run")
    for _ in range(3):
        with profiler.Event("often"):
            pass
    with profiler.Domain("d").new_task("once"):
        pass
    text = profiler.dumps()
    assert "Profile Statistics" in text and "often" in text and "d::once" in text
    table = json.loads(profiler.dumps(format="json", sort_by="count", reset=True))
    row = table["Time"]["event"]["often"]
    assert row["count"] == 3 and row["min"] <= row["avg"] <= row["max"] <= row["total"]
    assert "often" not in profiler.dumps()


def test_nothing_is_noted_before_it_runs():
    with profiler.Event("early"):
        pass
    profiler.Domain("d").new_counter("c").set_value(1)
    profiler.Domain("d").new_marker("m").mark()
    assert not profiler._PROFILER.events
    profiler.Event("never begun").stop()


@pytest.mark.parametrize("old, new", [
    (lambda: profiler.profiler_set_config("all", "x.json"), "set_config"),
    (lambda: profiler.profiler_set_state("run"), "set_state"), (profiler.dump_profile, "dump")])
def test_names_of_before(old, new, alone):
    with pytest.warns(DeprecationWarning, match=rf"profiler\.{new} since"):
        old()


@pytest.mark.parametrize("call, words", [
    (lambda: profiler.set_config(filname="x"), "Did you mean 'filename'"),
    (lambda: profiler.set_state("start"), "'run' or 'stop'"),
    (lambda: profiler.dumps(format="xml"), "'table' or 'json'"),
    (lambda: profiler.dumps(sort_by="name"), "sort_by"),
    (lambda: profiler.Domain("d").new_marker("m").mark("here"), "scope"),
])
def test_mistakes(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


def test_only_what_is_wanted():
    profiler.set_config(profile_symbolic=False)
    profiler.set_state("run")
    executor().forward()
    assert not profiler._PROFILER.events
