"""The line that shows progress: its stream, how often it is written, and its end."""

from __future__ import annotations

import io
import logging
import re
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.core import progress
from opreg.core.progress import Line, counted


class Terminal(io.StringIO):
    """A terminal as a program sees it, and a clock that advances when it is read."""

    writes = 0
    now = 0.0

    def clock(self) -> float:
        self.now += 1e-3
        return self.now

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)

    @property
    def shown(self) -> list[str]:
        """The text that a terminal shows, line by line."""
        lines = []
        for line in self.getvalue().split("\n"):
            seen = ""
            for part in line.split("\r"):
                seen = part + seen[len(part):]
            lines.append(seen.rstrip())
        return lines


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in place of the error stream."""
    stream = Terminal()
    streams = SimpleNamespace(stderr=stream, stdout=io.StringIO())  # pytest replaces the other streams
    monkeypatch.setattr(progress, "sys", streams)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("OPREG_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "_clock", stream.clock)
    return stream


def data(rows: int = 400) -> mx.io.NDArrayIter:
    x = np.random.default_rng(0).standard_normal((rows, 3)).astype("f")
    return mx.io.NDArrayIter(x, (x[:, 0] > 0).astype("f"), 4)


def module(logger: Any = logging) -> mx.mod.Module:
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    return mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"), logger=logger)


@pytest.fixture
def logger(terminal: Terminal) -> Iterator[logging.Logger]:
    """A logger that writes to the terminal."""
    own = logging.getLogger("tests.progress")
    handler = logging.StreamHandler(terminal)
    own.addHandler(handler)
    own.setLevel(logging.INFO)
    own.propagate = False
    yield own
    own.removeHandler(handler)


def test_a_finished_epoch_leaves_a_line(terminal: Terminal) -> None:
    module().fit(data(), data(), num_epoch=2)
    first, second, end = terminal.shown
    assert first.startswith("Epoch[0] of 2 100 batches in 0:0") and second.startswith("Epoch[1] of 2 ") and not end
    assert "  accuracy=0." in first and "  validation accuracy=0." in first
    moving = terminal.getvalue().split("\r")
    assert any(re.search(r"/100  0:00 left  \d+ samples/s  accuracy=0\.", text) for text in moving)
    assert any(text.startswith("Epoch[1] of 2 validation ") for text in moving)


def test_the_line_is_written_at_most_ten_times_a_second(terminal: Terminal) -> None:
    module().fit(data(4000), num_epoch=1)  # 1000 batches, each of which looks at the clock
    assert 9 <= terminal.writes <= terminal.now * 10 + 3


def test_a_slow_metric_is_computed_less_often(terminal: Terminal) -> None:
    class Slow(mx.metric.Accuracy):
        def get_global(self) -> tuple[str, object]:
            terminal.now += 0.02
            return "slow", "text"

    module().fit(data(4000), num_epoch=1, eval_metric=Slow())
    assert "slow=text" in terminal.getvalue() and terminal.writes <= terminal.now / (20 * 0.02) + 3


def test_a_training_survives_a_closed_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(text: str) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(terminal, "write", gone)
    module().fit(data(40), num_epoch=1)


@pytest.mark.parametrize("fit", ["Module", "FeedForward"])
def test_logged_lines_are_printed_once(terminal: Terminal, logger: logging.Logger, fit: str) -> None:
    batch_end = mx.callback.Speedometer(4, 50)
    if fit == "Module":
        module(logger).fit(data(), num_epoch=1, batch_end_callback=batch_end)
    else:
        mx.model.FeedForward(module().symbol, num_epoch=1).fit(data(), logger=logger, batch_end_callback=batch_end)
    shown = terminal.shown
    assert shown[-1] == "" and shown[-2].startswith("Epoch[0] Time cost=")
    assert sum(line.startswith("Epoch[0]") for line in shown) == 2  # the metric or the reset, the time
    assert not any("batches in" in line for line in shown)
    assert not logger.handlers[0].filters


def test_printed_text_follows_the_line(terminal: Terminal) -> None:
    """The line continues below what was printed, and standard output stays the program's own."""
    streams = progress.sys  # those of the fixture
    streams.stdout = terminal

    def report(param: Any) -> None:
        assert streams.stdout is terminal
        print(f"batch {param.nbatch}", file=streams.stdout)

    module().fit(data(16), num_epoch=1, batch_end_callback=report)
    *shown, last, end = terminal.shown
    assert [line.rpartition("batch ")[2] for line in shown] == ["0", "1", "2", "3"]
    assert re.fullmatch(r"Epoch\[0\] of 1 \[#+-+\] 1/4 .* accuracy=\S+ +batch 0", shown[0])
    assert last.startswith("Epoch[0] of 1 4 batches in") and not end


class OutStream(io.StringIO):
    """The stream of a notebook's cell, as far as a program can tell."""

    __module__ = "ipykernel.iostream"


@pytest.mark.parametrize("stream, wish, shown", [
    (OutStream, None, r"\rEpoch\[0\] of 1 \[#*-*\] .*/10 .*\rEpoch\[0\] of 1 10 batches in [^\r]*\n"),
    (OutStream, False, ""),
    (io.StringIO, True, r"Epoch\[0\] of 1 10 batches in [^\r]*\n"),
    (io.StringIO, None, "")], ids=["notebook", "notebook without", "pipe with", "pipe"])
def test_streams_that_are_no_terminals(monkeypatch: pytest.MonkeyPatch, terminal: Terminal, stream: type[io.StringIO],
                                       wish: bool | None, shown: str) -> None:
    error = stream()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=error, stdout=io.StringIO()))
    monkeypatch.setenv("COLUMNS", "20")  # a notebook has no columns
    module().fit(data(40), num_epoch=1, progress=wish)
    assert re.fullmatch(shown, error.getvalue())


def test_the_line_is_captured(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPREG_PROGRESS", raising=False)
    out = sys.stdout
    module().fit(data(8), num_epoch=2, progress=True, batch_end_callback=lambda param: print(sys.stdout is out))
    printed, error = capsys.readouterr()
    assert printed == "True\n" * 4 and [line[:8] for line in error.splitlines()] == ["Epoch[0]", "Epoch[1]"]


def test_messages_are_printed_above_the_line(terminal: Terminal, logger: logging.Logger) -> None:
    module().fit(data(), num_epoch=1, batch_end_callback=lambda param: logger.info("batch %d", param.nbatch))
    assert terminal.shown[:-2] == [f"batch {i}" for i in range(100)]
    assert terminal.shown[-2].startswith("Epoch[0] of 1 100 batches")


def test_feed_forward_shows_a_progress_line(terminal: Terminal) -> None:
    x = np.random.default_rng(0).standard_normal((64, 3)).astype("f")
    model = mx.model.FeedForward(module().symbol, num_epoch=2, numpy_batch_size=4)
    model.fit(x, (x[:, 0] > 0).astype("f"), eval_data=(x, (x[:, 0] > 0).astype("f")), eval_end_callback=None)
    first, second, _ = terminal.shown
    assert first.startswith("Epoch[0] of 2 16 batches") and second.startswith("Epoch[1] of 2 16 batches")
    assert "accuracy=" in first and "validation accuracy=" in first


@pytest.mark.parametrize("says, environment, wanted", [
    (None, None, True), (False, None, False), (None, "0", False), (True, "0", True), (None, "1", True)])
def test_argument_and_environment_switch_the_line_on_or_off(terminal: Terminal, monkeypatch: pytest.MonkeyPatch,
                                                            says: bool | None, environment: str | None,
                                                            wanted: bool) -> None:
    if environment is not None:
        monkeypatch.setenv("OPREG_PROGRESS", environment)
    module().fit(data(40), num_epoch=1, progress=says)
    assert bool(terminal.getvalue()) == wanted


def test_without_a_terminal_fit_prints_no_progress_line(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=(stream := io.StringIO())))
    module().fit(data(40), num_epoch=1)
    module().fit(data(40), num_epoch=1, batch_end_callback=mx.callback.ProgressBar(10))
    assert stream.getvalue() == ""
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    monkeypatch.setenv("TERM", "dumb")
    module().fit(data(40), num_epoch=1)
    assert terminal.getvalue() == ""


def test_progress_bar_is_one_line_and_alone(terminal: Terminal) -> None:
    module().fit(data(400), num_epoch=2, batch_end_callback=mx.callback.ProgressBar(100, length=10))
    assert terminal.shown == ["[==========] 100%", "[==========] 100%", ""]
    assert terminal.writes <= terminal.now * 10 + 4


def test_progress_bar_that_is_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=io.StringIO()))
    with caplog.at_level(logging.INFO):
        module().fit(data(40), num_epoch=1, batch_end_callback=mx.callback.ProgressBar(10, length=4))
    assert "[==--] 50%\r" in [record.getMessage() for record in caplog.records]


def test_an_error_stands_in_a_line_of_its_own(terminal: Terminal) -> None:
    def fail(param: object) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        module().fit(data(), num_epoch=1, batch_end_callback=fail)
    assert terminal.shown == [""] and not logging.root.filters


def test_a_line_fits_its_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    with Line() as line:
        line.show("far too long a line")
        assert terminal.shown == ["far too l"]
        line.show("short")
        assert terminal.shown == ["short"]
    assert terminal.shown == [""]


def test_counted_shows_progress(terminal: Terminal) -> None:
    """Short work shows no line."""
    assert [*counted(range(3), "run", 3)] == [0, 1, 2]
    assert terminal.getvalue() == ""
    assert len([*counted(range(2000), "run", 2000, lambda i: f"number {i}")]) == 2000
    assert any("run [#####---------------] " in text and "number " in text for text in terminal.getvalue().split("\r"))
    assert terminal.shown == [""]


def test_check_shows_progress(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    assert mx.operator.check("square", [1.0, 2.0]).ok
    assert any(text.startswith("checking operator 'square' [-") for text in terminal.getvalue().split("\r"))
    assert terminal.shown == [""]
