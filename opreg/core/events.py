"""Events: the start, duration and thread of each run, collected and written as a trace for Chrome and Perfetto.

The file has Chrome's trace event format: complete events with start and duration (``X``), instant events (``i``),
counters (``C``), and names of threads (``M``). Times are seconds of ``time.perf_counter``; in the file they are
microseconds since the first event.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any, NamedTuple

from ..errors import ArgumentError, did_you_mean
from .files import atomic_write
from .reports import NotebookTable, report

__all__ = ["Events", "Span", "TableRow"]

#: Seconds between two samples of the process's memory.
_SAMPLING = 1e-3
_STATM = "/proc/self/statm"
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_KEYS = ("operator", "cell", "line")


class Span(NamedTuple):
    """An event with a start and an end.

    Attributes
    ----------
    category, name : str
        Kind and name of the event.
    start, end : float
        Seconds, as ``time.perf_counter`` counts.
    thread : int
        The thread in which it ran.
    args : dict
        Further facts: node, kernel, line.
    """

    category: str
    name: str
    start: float
    end: float
    thread: int
    args: dict[str, Any]


class TableRow(NamedTuple):
    """All spans of one operator, Cell or line.

    Attributes
    ----------
    name : str
        Name of the operator, Cell or line.
    calls : int
        Number of spans.
    total, own : float
        Seconds in the spans, and the part of them outside of inner spans.
    """

    name: str
    calls: int
    total: float
    own: float


class Events(NotebookTable):
    """Collected events. Appending is safe in threads.

    Attributes
    ----------
    samples : bool
        Whether the events hold samples of the process's memory.

    Examples
    --------
    >>> events = Events()
    >>> events.span("operator", "exp", 1.0, 1.5, line="net.py:3")
    >>> events.rows("line")
    [TableRow(name='net.py:3', calls=1, total=0.5, own=0.5)]
    """

    def __init__(self) -> None:
        self.samples = True
        self.clear()

    def clear(self) -> None:
        """Drop the collected events, and go on collecting."""
        self.began = time.perf_counter()
        self.spans: list[Span] = []
        self.moments: list[tuple[str, str, float, int, dict[str, Any]]] = []  # phase, name, time, thread, other fields
        self.threads: dict[int, str] = {}
        self._sampled = 0.0

    def _thread(self) -> int:
        thread = threading.get_native_id()
        if thread not in self.threads:
            self.threads[thread] = threading.current_thread().name
        return thread

    def span(self, category: str, name: str, start: float, end: float, /, **args: object) -> None:
        """Record a span of this thread."""
        self.spans.append(Span(category, name, start, end, self._thread(), args))

    def moment(self, category: str, name: str, scope: str = "t") -> None:
        """Record an instant event. The scope is the thread (``t``), the process (``p``), or all processes (``g``)."""
        self.moments.append(("i", name, time.perf_counter(), self._thread(), {"cat": category, "s": scope}))

    def counter(self, name: str, /, **values: float) -> None:
        """Record the current values of a counter."""
        self.moments.append(("C", name, time.perf_counter(), self._thread(), {"args": values}))

    def sample_memory(self) -> None:
        """Record the memory in use by the process, unless that was done a moment ago."""
        now = time.perf_counter()
        if not self.samples or now - self._sampled < _SAMPLING:
            return
        self._sampled = now
        try:
            with open(_STATM, "rb") as file:
                pages = int(file.read().split()[1])
        except (OSError, ValueError, IndexError):  # a system without this file
            return
        self.counter("memory", MB=round(pages * _PAGE / 1e6, 3))

    # ------------------------------------------------------------------------------------------- the file

    def trace(self) -> dict[str, Any]:
        """The events in Chrome's format, in the order of their starts."""
        # Copies, since other threads may add events meanwhile.
        pid, spans, moments = os.getpid(), self.spans.copy(), self.moments.copy()
        origin = min([self.began, *[span.start for span in spans], *[moment[2] for moment in moments]])

        def micro(seconds: float) -> float:
            return round((seconds - origin) * 1e6, 3)

        events: list[dict[str, Any]] = []
        for span in spans:
            start = micro(span.start)
            events.append({"name": span.name, "cat": span.category, "ph": "X", "ts": start,
                           "dur": round(micro(span.end) - start, 3), "pid": pid, "tid": span.thread, "args": span.args})
        for phase, name, when, thread, more in moments:
            events.append({"name": name, "ph": phase, "ts": micro(when), "pid": pid, "tid": thread, **more})
        events.sort(key=lambda event: (event["ts"], -event.get("dur", 0.0)))  # outer events before inner ones
        named = [{"name": "process_name", "ph": "M", "ts": 0, "pid": pid, "tid": 0, "args": {"name": "opreg"}}]
        named += [{"name": "thread_name", "ph": "M", "ts": 0, "pid": pid, "tid": thread, "args": {"name": name}}
                  for thread, name in self.threads.copy().items()]
        return {"traceEvents": [*named, *events], "displayTimeUnit": "ms"}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a file, which https://ui.perfetto.dev and ``chrome://tracing`` open. If writing fails, the
        file is as it was before."""
        with atomic_write(path) as file:
            file.write(json.dumps(self.trace(), default=str).encode())

    # ----------------------------------------------------------------------------------------- the tables

    def rows(self, by: str = "operator") -> list[TableRow]:
        """Sums of times, longest own time first.

        Parameters
        ----------
        by : {"operator", "cell", "line"}
            The key of rows: operators, including gradients; Cells, by path; or lines of users' code that called
            operators.
        """
        if by not in _KEYS:
            raise ArgumentError(f"by={by!r}. {did_you_mean(by, _KEYS)}")
        sums: dict[str, list[float]] = {}
        for span, own_time, _ in self.nested_spans():
            name = _key(span, by)
            if name is not None:
                row = sums.setdefault(name, [0, 0.0, 0.0])
                row[0] += 1
                row[1] += span.end - span.start
                row[2] += own_time
        rows = [TableRow(name, int(calls), total, own_time) for name, (calls, total, own_time) in sums.items()]
        return sorted(rows, key=lambda row: -row.own)

    def nested_spans(self) -> list[tuple[Span, float, list[Span]]]:
        """Spans in the order of their starts, each with its time outside of inner spans, and with the outer spans."""
        nested: list[list[Any]] = []
        open_spans: dict[int, list[list[Any]]] = {}  # spans without an end yet, by thread
        for span in sorted(self.spans, key=lambda span: (span.start, -span.end)):
            stack = open_spans.setdefault(span.thread, [])
            while stack and stack[-1][0].end <= span.start:
                stack.pop()
            length = span.end - span.start
            if stack:
                stack[-1][1] -= length
            nested.append([span, length, [entry[0] for entry in stack]])
            stack.append(nested[-1])
        return [(span, max(own_time, 0.0), around) for span, own_time, around in nested]

    def table(self, by: str = "operator", count: int = 40) -> str:
        """The first ``count`` rows as text; see ``rows``."""
        rows = self.rows(by)
        lines = [f"{'own ms':>10} {'total ms':>10} {'calls':>7}  {by}"]
        lines += [f"{row.own * 1e3:10.3f} {row.total * 1e3:10.3f} {row.calls:7}  {row.name}" for row in rows[:count]]
        if len(rows) > count:
            lines.append(f"and {len(rows) - count} more")
        return report(lines)

    def __str__(self) -> str:
        return "\n\n".join(self.table(by) for by in _KEYS if self.rows(by))

    def __repr__(self) -> str:
        return f"<Events, {len(self.spans)} spans>"


def _key(span: Span, by: str) -> str | None:
    """The name of the table row that a span belongs to, or None."""
    if by == "line":
        return span.args.get("line") if span.category == "operator" else None
    return span.name if span.category == by else None
