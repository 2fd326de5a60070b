"""profiler: what ran when, written as a trace that Chrome and Perfetto open, under the names that MXNet has.

Between ``set_state("run")`` and ``set_state("stop")`` what a program runs is collected by ``opreg.trace_events``:
operators of arrays, plans, gradients, Cells; and so are the tasks, frames, events, counters and markers that the
program makes. ``profile()`` collects a stretch of code by itself and gives its events, to save or to read as tables.
``Executor.profile`` measures a plan more closely: bytes, rates, shares.

>>> import opreg as mx
>>> executor = (mx.sym.exp(mx.sym.var("x"), name="e")).bind(mx.cpu(), {"x": mx.nd.ones(3)})
>>> mx.profiler.set_state("run")
>>> outputs = executor.forward()
>>> with mx.profiler.Domain("mine").new_task("reading"):
...     pass
>>> mx.profiler.set_state("stop")
>>> text = mx.profiler.dumps(reset=True)
>>> "exp" in text and "mine::reading" in text
True
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from . import trace_events
from .core.events import Events
from .errors import ArgumentError, OpError, did_you_mean
from .trace_events import collect as profile

__all__ = ["set_config", "set_state", "dump", "dumps", "pause", "resume", "profile", "Domain", "Task", "Frame", "Event",
           "Counter", "Marker", "profiler_set_config", "profiler_set_state", "dump_profile"]

#: What ``set_config`` takes; those that say what is noted are heeded where there is something to choose.
_SETTINGS = {"filename": "profile.json", "profile_all": False, "profile_symbolic": True, "profile_imperative": True,
             "profile_memory": True, "profile_api": True, "contiguous_dump": False, "continuous_dump": False,
             "dump_period": 1.0, "aggregate_stats": False, "profile_process": "worker",
             "gpu_memory_profile_filename_prefix": ""}
_SORTED = ("total", "avg", "min", "max", "count")


class _Profiler:
    """What was noted, and whether anything is being noted now."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = dict(_SETTINGS)
        self.running = self.paused = False
        self.events = Events()
        self._watched: dict[str, bool] = {}

    @property
    def noting(self) -> bool:
        return self.running and not self.paused

    def wants(self, kind: str) -> bool:
        """Whether a setting, or that for all of them, asks for a kind of events."""
        return bool(self.settings[f"profile_{kind}"] or self.settings["profile_all"])

    def watch(self) -> None:
        """Collect what a program runs while that is wanted."""
        self.events.samples = self.wants("memory")
        wanted = {"arrays": self.wants("imperative"), "graphs": self.wants("symbolic")}
        if not self.noting or not any(wanted.values()):
            wanted = {}
        if wanted == self._watched:
            return
        if self._watched:  # others' collecting is theirs to end
            self._watched = {}
            trace_events.stop()
        if wanted:
            try:
                trace_events.start(self.events, **wanted)
            except OpError:
                self.running = False
                raise
            self._watched = wanted


_PROFILER = _Profiler()


# --------------------------------------------------------------------------------------------- switches


def set_config(**kwargs: Any) -> None:
    """Choose where a trace goes and what is in it.

    Parameters
    ----------
    filename : str
        Where ``dump`` writes, ``profile.json`` by default.
    profile_symbolic, profile_imperative, profile_memory : bool
        Whether plans are noted; operators of arrays, tapes, Cells and updates; the memory of the process. They are by
        default.
    profile_all : bool
        Whether all of these are, whatever they say.
    aggregate_stats, profile_api, continuous_dump, dump_period, profile_process
        As MXNet has them; they count for nothing: ``dumps`` always has statistics, and a trace is written by ``dump``.

    Raises
    ------
    ArgumentError
        For a keyword there is not.
    """
    for name in kwargs:
        if name not in _SETTINGS:
            raise ArgumentError(f"set_config: no setting {name!r}. {did_you_mean(name, _SETTINGS)}")
    _PROFILER.settings.update(kwargs)
    _PROFILER.watch()


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Begin to note, ``"run"``, or end, ``"stop"``.

    Raises
    ------
    ArgumentError
        For another state.
    OpError
        When somebody collects events already; one does at a time.
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
    """Go on noting after ``pause``."""
    _PROFILER.paused = False
    _PROFILER.watch()


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write what was noted to the file that ``set_config`` names, as a trace; with ``finished`` it also stops."""
    if finished:
        set_state("stop")
    _PROFILER.events.save(_PROFILER.settings["filename"])


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """Statistics of what was noted, as text: how often, and how long in milliseconds.

    Parameters
    ----------
    reset : bool
        Whether to forget it all afterwards.
    format : {"table", "json"}
        What kind of text.
    sort_by : {"total", "avg", "min", "max", "count"}
        The order of the rows.
    ascending : bool
        Whether the smallest comes first.
    """
    if format not in ("table", "json"):
        raise ArgumentError(f"dumps: format: expected 'table' or 'json', got {format!r}")
    if sort_by not in _SORTED:
        raise ArgumentError(f"dumps: sort_by: expected one of {', '.join(_SORTED)}, got {sort_by!r}")
    found: dict[str, dict[str, list[float]]] = {}
    for category, name, value in _values(_PROFILER.events):
        found.setdefault(category, {}).setdefault(name, []).append(value)
    if reset:
        _PROFILER.events.clear()
    table = {category: dict(sorted(((name, _summed(values)) for name, values in names.items()),
                                   key=lambda row: row[1][sort_by], reverse=not ascending))
             for category, names in found.items()}
    if format == "json":
        memory, counters = table.pop("memory", {}), table.pop("counter", {})
        return json.dumps({"Time": table, "Memory": memory, "Counter": counters,
                           "Unit": {"Time": "ms", "Memory": "MB"}})
    lines = ["Profile Statistics:", "\tcounters are values, memory is MB, everything else is milliseconds"]
    for category, rows in table.items():
        lines += [category, "=================",
                  f"{'Name':<40} {'Total Count':>12} {'Time (ms)':>14} {'Min Time (ms)':>14} {'Max Time (ms)':>14} "
                  f"{'Avg Time (ms)':>14}"]
        lines += [f"{name:<40} {row['count']:>12.0f} {row['total']:>14.4f} {row['min']:>14.4f} {row['max']:>14.4f} "
                  f"{row['avg']:>14.4f}" for name, row in rows.items()]
        lines.append("")
    return "\n".join(lines) + "\n"


def _values(events: Events) -> Iterator[tuple[str, str, float]]:
    """What there is to add up: category, name, and milliseconds or the value of a counter."""
    for span in events.spans:
        yield span.category, span.name, (span.end - span.start) * 1e3
    for phase, name, _, _, more in events.moments:
        if phase == "i":
            yield more["cat"], name, 0.0
        else:  # names of a program's own counters begin with their domain
            yield "memory" if name == "memory" else "counter", name, next(iter(more["args"].values()))


def _summed(values: list[float]) -> dict[str, float]:
    return {"count": len(values), "total": sum(values), "min": min(values), "max": max(values),
            "avg": sum(values) / len(values)}


def _former(name: str, function: Callable[..., None]) -> None:
    warnings.warn(f"profiler.{name} is called profiler.{function.__name__} since MXNet 1.0", DeprecationWarning,
                  stacklevel=3)


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """What ``set_config`` was called: ``mode`` is ``"symbolic"`` or ``"all"``."""
    _former("profiler_set_config", set_config)
    if mode not in ("symbolic", "imperative", "api", "memory", "all"):
        raise ArgumentError(f"profiler_set_config: mode: expected 'symbolic' or 'all', got {mode!r}")
    set_config(profile_symbolic=mode in ("symbolic", "all"), filename=filename)


def profiler_set_state(state: str = "stop") -> None:
    """What ``set_state`` was called."""
    _former("profiler_set_state", set_state)
    set_state(state)


def dump_profile() -> None:
    """What ``dump`` was called."""
    _former("dump_profile", dump)
    dump(True)


# ------------------------------------------------------------------------------- what programs note


class Domain:
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


class _Span:
    """A stretch of a program, between ``start`` and ``stop``, or as a ``with`` statement."""

    _category = "event"
    name: str
    _began: float | None = None

    def __str__(self) -> str:
        return self.name

    def _full(self) -> str:
        return self.name

    def start(self) -> None:
        """Begin."""
        self._began = time.perf_counter()

    def stop(self) -> None:
        """End; nothing is noted of what did not begin."""
        began, self._began = self._began, None
        if began is not None and _PROFILER.noting:
            _PROFILER.events.span(self._category, self._full(), began, time.perf_counter())

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _OfDomain(_Span):
    def __init__(self, domain: Domain, name: str):
        self.domain, self.name = domain, name

    def _full(self) -> str:
        return f"{self.domain}::{self.name}"


class Task(_OfDomain):
    """A stretch of work, between ``start`` and ``stop``, or as a ``with`` statement."""

    _category = "task"


class Frame(_OfDomain):
    """A stretch of work that comes again and again, as the frames of a film."""

    _category = "frame"


class Event(_Span):
    """A stretch of work without a domain."""

    def __init__(self, name: str):
        self.name = name


class Counter:
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
        if _PROFILER.noting:
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


class Marker:
    """A moment."""

    def __init__(self, domain: Domain, name: str):
        self.domain, self.name = domain, name

    def mark(self, scope: str = "process") -> None:
        """Note the moment, for a ``"process"``, a ``"thread"`` or the whole trace, ``"global"``."""
        letters = {"process": "p", "thread": "t", "global": "g", "task": "t", "marker": "t"}
        if scope not in letters:
            raise ArgumentError(f"mark: scope: expected one of {', '.join(letters)}, got {scope!r}")
        if _PROFILER.noting:
            _PROFILER.events.moment("marker", f"{self.domain}::{self.name}", letters[scope])


def __dir__() -> list[str]:
    return sorted(__all__)
