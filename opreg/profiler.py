"""profiler: records when operators and plans run, and writes a trace for Chrome and Perfetto; its functions have
MXNet's names.

Between ``set_state("run")`` and ``set_state("stop")``, ``opreg.trace_events`` records operators of arrays, plans,
gradients and Cells, and the tasks, frames, events, counters and markers that the program makes. ``with profile()``
records one block of code and gives its events, to save or to read as tables. ``Executor.profile`` measures a plan more
closely: bytes, rates, shares. On a GPU ``profile(nvtx=True)``, or ``set_config(profile_nvtx=True)``, also puts each
operator and step into an NVTX range, so that NVIDIA's profilers show to which operator a kernel belongs.

>>> import opreg as mx
>>> executor = (mx.sym.exp(mx.sym.var("x"), name="e")).bind(mx.cpu(), {"x": mx.nd.ones(3)})
>>> mx.profiler.set_state("run")
>>> outputs = executor.forward()
>>> with mx.profiler.Domain("mine").new_task("reading"):
...     pass
>>> mx.profiler.set_state("stop")
>>> text = mx.profiler.dumps(reset=True)
>>> "exp" in text and "reading" in text
True
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from . import trace_events
from .aliases import inner
from .core.events import Events, Span
from .core.named_errors import name_errors
from .core.settings import Checked
from .errors import ArgumentError, OpError, did_you_mean, refuse_keywords
from .trace_events import collect as profile

__all__ = ["set_config", "set_state", "dump", "dumps", "pause", "resume", "profile", "Domain", "Task", "Frame", "Event",
           "Counter", "Marker", "Profiler", "profiler_set_config", "profiler_set_state", "dump_profile"]

if not TYPE_CHECKING:  # names of MindSpore's module ``profiler``
    __getattr__ = inner(__name__)

#: Arguments of ``set_config``; those that choose events take effect for the events that can be chosen.
_SETTINGS = {"filename": "profile.json", "profile_all": False, "profile_symbolic": True, "profile_imperative": True,
             "profile_memory": True, "profile_nvtx": False, "profile_api": True, "contiguous_dump": False,
             "continuous_dump": False, "dump_period": 1.0, "aggregate_stats": False, "profile_process": "worker",
             "gpu_memory_profile_filename_prefix": ""}
_SORTED = ("total", "avg", "min", "max", "count")

#: Sections of the statistics beside the domains of programs.
_MEMORY, _USERS = "Device Storage", "Custom Operator"


class _Profiler:
    """State of the profiler: recorded events, and whether it records now."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = dict(_SETTINGS)
        self.running = self.paused = False
        self.events = Events()
        self._watched: dict[str, bool] = {}

    @property
    def is_recording(self) -> bool:
        return self.running and not self.paused

    def wants(self, kind: str) -> bool:
        """Whether a setting chooses a kind of events: its own, or ``profile_all``."""
        return bool(self.settings[f"profile_{kind}"] or self.settings["profile_all"])

    def watch(self) -> None:
        """Start or stop recording, as the settings and the state of the profiler demand."""
        self.events.samples = self.wants("memory")
        choices = {"arrays": self.wants("imperative"), "graphs": self.wants("symbolic")}
        if not self.is_recording or not any(choices.values()):
            choices = {}
        elif self.settings["profile_nvtx"]:
            choices["nvtx"] = True
        if choices == self._watched:
            return
        if self._watched:  # stops only the recording that the profiler has started
            self._watched = {}
            trace_events.stop()
        if choices:
            try:
                trace_events.start(self.events, **choices)
            except OpError:
                self.running = False
                raise
            self._watched = choices


_PROFILER = _Profiler()


# --------------------------------------------------------------------------------------------- switches


def set_config(**kwargs: Any) -> None:
    """Set the file and the content of a trace.

    Parameters
    ----------
    filename : str
        The file that ``dump`` writes, by default ``profile.json``.
    profile_symbolic, profile_imperative, profile_memory : bool
        Whether to record plans; operators of arrays, tapes, Cells and updates; and the memory of the process. All are
        true by default.
    profile_all : bool
        Whether to record all of these, whatever their own settings are.
    profile_nvtx : bool
        Whether to put recorded operators and steps on a GPU into NVTX ranges, named by operator and node.
    aggregate_stats, profile_api, continuous_dump, dump_period, profile_process
        Accepted without effect: ``dumps`` always has statistics, and only ``dump`` writes a trace.

    Raises
    ------
    ArgumentError
        For an unknown keyword.
    """
    for name in kwargs:
        if name not in _SETTINGS:
            raise ArgumentError(f"set_config: no setting {name!r}. {did_you_mean(name, _SETTINGS)}")
    _PROFILER.settings.update(kwargs)
    _PROFILER.watch()


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Start recording with ``"run"``, or stop it with ``"stop"``.

    Raises
    ------
    ArgumentError
        For another state.
    OpError
        When events are collected already; one collector runs at a time.
    """
    if state not in ("run", "stop"):
        raise ArgumentError(f"set_state: expected 'run' or 'stop', got {state!r}")
    _PROFILER.running, _PROFILER.paused = state == "run", False
    _PROFILER.watch()


def pause(profile_process: str = "worker") -> None:
    """Note nothing for a while."""
    _PROFILER.paused = True
    _PROFILER.watch()


def resume(profile_process: str = "worker") -> None:
    """Continue to record after ``pause``."""
    _PROFILER.paused = False
    _PROFILER.watch()


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write the recorded events as a trace to the file that ``set_config`` names; with ``finished`` also stop
    recording."""
    if finished:
        set_state("stop")
    _PROFILER.events.save(_PROFILER.settings["filename"])


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """Statistics of the recorded events as text: counts, and times in milliseconds.

    The operators of users are in a category of their own, ``Custom Operator``: ``name::pure_python`` is the time in
    their Python, ``name::exp`` that of the operators it calls.

    Parameters
    ----------
    reset : bool
        Whether to forget it all afterwards.
    format : {"table", "json"}
        The form of the text.
    sort_by : {"total", "avg", "min", "max", "count"}
        The order of the rows.
    ascending : bool
        Whether the smallest comes first.

    Examples
    --------
    >>> import opreg as mx
    >>> set_state("run")
    >>> x = mx.nd.sqrt(mx.nd.ones((2, 3)))
    >>> set_state("stop")
    >>> found = json.loads(dumps(reset=True, format="json"))
    >>> found["Time"]["operator"]["sqrt"]["Count"], found["Unit"]
    (1, {'Time': 'ms', 'Memory': 'kB'})
    """
    if format not in ("table", "json"):
        raise ArgumentError(f"dumps: format: expected 'table' or 'json', got {format!r}")
    if sort_by not in _SORTED:
        raise ArgumentError(f"dumps: sort_by: expected one of {', '.join(_SORTED)}, got {sort_by!r}")
    table = _statistics(_PROFILER.events)
    if reset:
        _PROFILER.events.clear()
    table = {category: dict(sorted(table[category].items(), key=lambda row: row[1][sort_by.capitalize()],
                                   reverse=not ascending)) for category in sorted(table)}
    return _json(table) if format == "json" else _text(table)


#: Rows of statistics by category and name: ``Count``, ``Total``, ``Min``, ``Max``, ``Avg``.
_Table: TypeAlias = dict[str, dict[str, dict[str, float]]]


def _json(table: _Table) -> str:
    """Statistics as JSON in MXNet's form: statistics of memory are separate and have no sums."""
    memory = {category: {name: {key: value for key, value in row.items() if key != "Total"}
                         for name, row in table[category].items()} for category in table if category == _MEMORY}
    time = {category: rows for category, rows in table.items() if category != _MEMORY}
    return json.dumps({"Time": time, "Memory": memory, "Unit": {"Time": "ms", "Memory": "kB"}}, indent=4)


def _text(table: _Table) -> str:
    """Statistics as a table with MXNet's words and widths."""
    lines = ["", "Profile Statistics:", "\tNote the difference in units for different entries."]
    for category, rows in table.items():
        shown = ("Min", "Max", "Avg") if category == _MEMORY else ("Total", "Min", "Max", "Avg")
        heads = [f"{key} Use  (kB)" if category == _MEMORY else "Time (ms)" if key == "Total" else f"{key} Time (ms)"
                 for key in shown]
        lines += [category, "=================", _line("Name", "Total Count", heads),
                  _line("----", "-----------", ["---------" if key == "Total" else "-------------" for key in shown])]
        lines += [_line(name, f"{row['Count']:.0f}", [f"{row[key]:.4f}" for key in shown])
                  for name, row in rows.items()]
        lines.append("")
    return "\n".join(lines) + "\n"


def _line(name: str, count: str, values: Sequence[str]) -> str:
    return f"{name:<25}{count:>16} " + " ".join(f"{value:>16}" for value in values)


def _statistics(events: Events) -> _Table:
    """Sums of recorded events by category and name: times in milliseconds, memory in kilobytes, counters."""
    rows: dict[str, dict[str, list[float]]] = {}
    for span, own, around in events.nested_spans():
        category, name, seconds = _category_and_seconds(span, own, around)
        rows.setdefault(category, {}).setdefault(name, []).append(seconds * 1e3)
    table = {category: {name: _row(values, sum(values)) for name, values in names.items()}
             for category, names in rows.items()}
    counters: dict[tuple[str, str], list[float]] = {}
    for phase, title, _, _, more in events.moments:
        if phase == "i":
            table.setdefault(more["cat"], {})  # an instant event has no duration
            continue
        ((name, value),) = more["args"].items()
        if title == "memory":  # a counter's title begins with its domain
            counters.setdefault((_MEMORY, "Memory: cpu/0"), []).append(value * 1e3)
        else:
            counters.setdefault((title.removesuffix(f"::{name}"), name), []).append(value)
    for (category, name), values in counters.items():
        table.setdefault(category, {})[name] = _row(values, values[-1])
    return table


def _row(values: list[float], total: float) -> dict[str, float]:
    return {"Count": len(values), "Total": total, "Min": min(values), "Max": max(values),
            "Avg": sum(values) / len(values)}


def _category_and_seconds(span: Span, seconds: float, around: Sequence[Span]) -> tuple[str, str, float]:
    """The category and name that MXNet has for a span, and the seconds that count for it."""
    length = span.end - span.start
    if span.category != "operator":
        return span.category, span.name, length
    name, is_users = _operator(span.name)
    if is_users:
        return _USERS, f"{name}::pure_python", seconds
    for outer in reversed(around):
        if outer.category == "operator" and _operator(outer.name)[1]:
            return _USERS, f"{_operator(outer.name)[0]}::{name}", length
    return "operator", name, length


def _operator(name: str) -> tuple[str, bool]:
    """MXNet's name of an operator or of its gradient, and whether it is a user's."""
    of = name.removeprefix("gradient of ")
    if of != name:
        of = f"_backward_{of}" if of.startswith("custom.") else f"_backward_{of.lstrip('_')}"
    return of.replace("custom.", "", 1), of.removeprefix("_backward_").startswith("custom.")


def _old_function(name: str, function: Callable[..., None]) -> None:
    warnings.warn(f"profiler.{name} is called profiler.{function.__name__} since MXNet 1.0", DeprecationWarning,
                  stacklevel=3)


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """Former name of ``set_config``; ``mode`` is ``"symbolic"`` or ``"all"``."""
    _old_function("profiler_set_config", set_config)
    if mode not in ("symbolic", "imperative", "api", "memory", "all"):
        raise ArgumentError(f"profiler_set_config: mode: expected 'symbolic' or 'all', got {mode!r}")
    set_config(profile_symbolic=mode in ("symbolic", "all"), filename=filename)


def profiler_set_state(state: str = "stop") -> None:
    """Former name of ``set_state``."""
    _old_function("profiler_set_state", set_state)
    set_state(state)


def dump_profile() -> None:
    """Former name of ``dump``."""
    _old_function("dump_profile", dump)
    dump(True)


# ------------------------------------------------------------------------------- events of programs


class Domain(Checked):
    """A name that tasks, frames, counters and markers have in common."""

    def __init__(self, name: str):
        self.name = name

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> Task:
        """A task of this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """A frame of this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: float | None = None) -> Counter:
        """A counter of this domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """A marker of this domain."""
        return Marker(self, name)


class _Span(Checked):
    """A stretch of a program, between ``start`` and ``stop``, or as a ``with`` statement."""

    name: str
    _category: str
    _began: float | None = None

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """Begin."""
        self._began = time.perf_counter()

    def stop(self) -> None:
        """End the event; without a begin nothing is noted."""
        began, self._began = self._began, None
        if began is not None and _PROFILER.is_recording:
            _PROFILER.events.span(self._category, self.name, began, time.perf_counter())

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Task(_Span):
    """A stretch of work, between ``start`` and ``stop``, or as a ``with`` statement."""

    def __init__(self, domain: Domain, name: str):
        self.domain, self.name, self._category = domain, name, str(domain)


class Frame(_Span):
    """A stretch of work that comes again and again, as the frames of a film."""

    def __init__(self, domain: Domain, name: str):
        self.domain, self.name, self._category = domain, name, f"{domain},frame"


class Event(_Span):
    """A stretch of work without a domain."""

    def __init__(self, name: str):
        self.name, self._category = name, "event"


class Counter(Checked):
    """A number that changes, shown over time.

    Examples
    --------
    >>> counter = Counter(Domain("mine"), "batches", 2)
    >>> counter += 3
    >>> counter.value
    5
    """

    def __init__(self, domain: Domain, name: str, value: float | None = None):
        self.domain, self.name, self.value = domain, name, 0.0 if value is None else value
        if value is not None:
            self.set_value(value)

    def __str__(self) -> str:
        return self.name

    def set_value(self, value: float) -> None:
        """Set the number."""
        self.value = value
        if _PROFILER.is_recording:
            _PROFILER.events.counter(f"{self.domain}::{self.name}", **{self.name: value})

    def increment(self, delta: float = 1) -> None:
        """Add to the number."""
        self.set_value(self.value + delta)

    def decrement(self, delta: float = 1) -> None:
        """Subtract from the number."""
        self.set_value(self.value - delta)

    def __iadd__(self, delta: float) -> Counter:
        self.increment(delta)
        return self

    def __isub__(self, delta: float) -> Counter:
        self.decrement(delta)
        return self


class Marker(Checked):
    """A moment."""

    def __init__(self, domain: Domain, name: str):
        self.domain, self.name = domain, name

    def mark(self, scope: str = "process") -> None:
        """Record an instant event for a ``"process"``, a ``"thread"``, or the whole trace (``"global"``)."""
        letters = {"process": "p", "thread": "t", "global": "g", "task": "t", "marker": "t"}
        if scope not in letters:
            raise ArgumentError(f"mark: scope: expected one of {', '.join(letters)}, got {scope!r}")
        if _PROFILER.is_recording:
            _PROFILER.events.moment(f"{self.domain},instant_marker", self.name, letters[scope])


#: Settings of MindSpore's profiler for devices that it runs on.
_MINDSPORE_SETTINGS = (
    "profiler_level", "activities", "schedule", "on_trace_ready", "profile_memory", "aic_metrics", "with_stack",
    "data_simplification", "l2_cache", "hbm_ddr", "pcie", "data_process", "parallel_strategy", "sync_enable", "mstx",
    "mstx_domain_include", "mstx_domain_exclude", "sys_io", "sys_interconnection", "host_sys", "aicore_metrics",
    "op_time", "profile_communication", "profile_framework", "timeline_limit", "host_stack", "ascend_job_id")


class Profiler:
    """MindSpore's profiler: it records from its start on, and ``analyse`` writes a trace.

    Parameters
    ----------
    output_path : str
        The folder of the trace, ``profile.json``, which ``chrome://tracing`` and Perfetto open; made if it is missing.
    start_profile : bool
        Whether to record at once, and not from ``start`` on.
    **settings
        Other settings of MindSpore, by their names, accepted without effect.

    Examples
    --------
    >>> import tempfile, opreg as mx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     profiler = mx.Profiler(output_path=folder)
    ...     value = mx.ops.exp(mx.Tensor([1.0]))
    ...     profiler.analyse()
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['profile.json']
    """

    def __init__(self, *, output_path: str | os.PathLike[str] = "./data", start_profile: bool = True,
                 **settings: object):
        refuse_keywords("Profiler", settings, _MINDSPORE_SETTINGS)
        self.output_path, self.events, self._runs = Path(output_path), Events(), False
        if start_profile:
            self.start()

    def start(self) -> None:
        """Record from now on; events of earlier recordings are kept."""
        if self._runs:
            raise OpError("Profiler: it records already; call stop before start")
        trace_events.start(self.events)
        self._runs = True

    def stop(self) -> None:
        """Record no more."""
        if self._runs:
            trace_events.stop()
            self._runs = False

    def step(self) -> None:
        """The end of a step; has no effect, since the trace has the time of each event."""

    def analyse(self, offline_path: str | None = None, pretty: bool = False, step_list: list[int] | None = None,
                mode: str = "sync") -> None:
        """Stop recording, and write the trace; the arguments, which MindSpore has, have no effect."""
        self.stop()
        self.output_path.mkdir(parents=True, exist_ok=True)
        self.events.save(self.output_path / "profile.json")


def __dir__() -> list[str]:
    return sorted(__all__)


name_errors(__name__, globals(), __all__)
