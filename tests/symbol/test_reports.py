"""Reports: no text prints the control characters of a name to a terminal unchanged."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import opreg as mx
from opreg.trace_events import collect
from tests.questions import of_each

#: A name that would turn a terminal red, return to the beginning of the line, begin another line, and reverse the text
#: after it.
NAME = "a\x1b[31m\r\nq\x9b1m\x85\u202ec"

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]")


def _symbol() -> Any:
    x = mx.sym.Variable(f"x{NAME}")
    return mx.sym.FullyConnected(mx.sym.exp(x, name=f"e{NAME}"), num_hidden=2, name=f"f{NAME}")


def _executor(**keywords: Any) -> Any:
    executor = _symbol().simple_bind(mx.cpu(), **{f"x{NAME}": (3, 4)}, **keywords)
    executor.forward(is_train=True)
    return executor


def _staged() -> Any:
    x = mx.sym.Variable(f"x{NAME}")
    kept = mx.sym.contrib.boolean_mask(x, mx.sym.Variable(f"m{NAME}"), name=f"k{NAME}")
    executor = mx.sym.exp(kept, name=f"e{NAME}").bind(mx.cpu(), [mx.nd.ones((3, 2)), mx.nd.ones((3,))])
    executor.forward()
    return executor


def _optimized() -> Any:
    executor = _executor()
    executor.set_optimizer(mx.optimizer.create("sgd"))
    executor.update()
    return executor


def _events() -> str:
    cell = mx.nn.SequentialCell(OrderedDict([(f"c{NAME}", mx.nn.ReLU())]))
    with collect() as events:
        cell(mx.Tensor([1.0]))
    return str(events)


def _cell() -> Any:
    return mx.nn.SequentialCell(OrderedDict([(f"c{NAME}", mx.nn.Dense(2, 2))]))


def _compiled() -> object:
    function = mx.jit(_cell())
    function(mx.Tensor([[1.0, 2.0]]))
    return function.explain()


def _error(function: Callable[[], object]) -> str:
    with pytest.raises(mx.errors.OpError) as caught:
        function()
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


def _raised() -> object:
    return _executor().forward(**{f"x{NAME}": mx.nd.ones((1,))})


def _summary(capsys: pytest.CaptureFixture[str]) -> str:
    mx.viz.print_summary(_symbol(), {f"x{NAME}": (3, 4)})
    return capsys.readouterr().out


REPORTS: dict[str, Callable[[], object]] = {
    "explain": lambda: _executor().explain(),
    "explain an update": lambda: _optimized().explain(),
    "explain stages": lambda: _staged().explain(),
    "explain a compiled function": _compiled,
    "memory": lambda: _executor().memory(),
    "profile": lambda: _executor().profile(1),
    "estimate": lambda: _executor().estimate(),
    "kernel report": lambda: _executor(check_kernels="report").kernel_report(),
    "debug_str": lambda: _symbol().debug_str(),
    "debug_str of an executor": lambda: _executor().debug_str(),
    "repr": lambda: repr(_symbol()),
    "repr of a group": lambda: repr(mx.sym.Group([_symbol(), _symbol()])),
    "repr of an executor": lambda: repr(_executor()),
    "repr of a Cell": lambda: repr(_cell()),
    "repr of a compiled Cell": lambda: repr(mx.jit(_cell())),
    "repr of a parameter": lambda: repr(mx.Parameter(mx.Tensor([1.0]), name=f"p{NAME}")),
    "events": _events,
    "error": lambda: _error(_raised),
    "error of a node": lambda: _error(lambda: _symbol().simple_bind(mx.cpu(), **{f"x{NAME}": ()})),
}


@of_each(REPORTS)
def test_control_characters_of_names_are_shown_as_pictures(name: str) -> None:
    text = str(REPORTS[name]())
    assert not _CONTROL.search(text)
    assert "q" in text and ("\nq" not in text or name.startswith("error"))


def test_a_summary_escapes_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    text = _summary(capsys)
    assert "␛[31m␍␊q" in text and not _CONTROL.search(text)


def test_warnings_and_notes_escape_control_characters() -> None:
    from opreg.errors import note, warn

    error = ValueError("mine")
    note(error, f"in {NAME}")
    with pytest.warns(UserWarning, match="of a") as told:
        warn(f"of {NAME}")
    assert not _CONTROL.search(error.__notes__[0].replace("\n", ""))
    assert not _CONTROL.search(str(told[0].message).replace("\n", ""))
