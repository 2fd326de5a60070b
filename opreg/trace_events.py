"""trace_events: what a program runs, noted as events: operators, plans, gradients, Cells, in all threads.

While somebody collects, the functions that everything runs through are replaced by ones that look at the clock, and put
back behind: who does not collect pays nothing. What is collected, and what becomes of it, is in
``opreg.core.events``.

>>> import opreg as mx
>>> from opreg.trace_events import collect
>>> x = mx.nd.ones((2, 3))
>>> with collect() as events:
...     y = mx.nd.exp(x) * 2
>>> sorted(row.name for row in events.rows("operator"))
['_mul_scalar', 'exp']
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from opreg.ndarray import creation, ndarray, tape
from opreg.symbol.executor import Executor
from opreg.symbol.plan import Segment, Step
from opreg.symbol.replay import RecordedSegment
from opreg.symbol.work import names_of

from .core.events import Events
from .core.locks import rlock
from .core.op import Op
from .errors import OpError, here
from .nn.cell import Cell
from .nn.jit import Cache
from .train.updater import Updater

__all__ = ["collect", "start", "stop"]

_clock = time.perf_counter
_LOCK = rlock()
#: How to put back what was replaced, while somebody collects.
_UNDO: list[Callable[[], None]] = []


@contextmanager
def collect() -> Iterator[Events]:
    """A stretch of code whose events are collected; gives the `Events`.

    Raises
    ------
    OpError
        When somebody collects already.
    """
    events = Events()
    start(events)
    try:
        yield events
    finally:
        stop()


def start(events: Events, *, arrays: bool = True, graphs: bool = True) -> None:
    """Collect from now on.

    Parameters
    ----------
    events : Events
        What is collected goes there.
    arrays : bool
        Whether operators of arrays, tapes, Cells and updates are among it.
    graphs : bool
        Whether plans, those of executors and of compiled functions, are.

    Raises
    ------
    OpError
        When somebody collects already.
    """
    with _LOCK:
        if _UNDO:
            raise OpError("events are being collected already; one collects at a time")
        if arrays:
            _watch_arrays(events)
        if graphs:
            _watch_graphs(events)
    events.sample_memory()


def _watch_arrays(events: Events) -> None:
    _replace(ndarray, "run", functools.partial(_eager, events))
    _replace(creation, "filled", _spanning(events, "operator", lambda name, *_: name))
    for cls, name, slow in ndarray.SHORT:
        _replace(cls, name, functools.partial(_other, slow))
    for mode in tuple(tape._IN_MODE):
        _replace(tape._IN_MODE, mode, functools.partial(_gradient, events))
    _replace(tape, "backward", _spanning(events, "tape", lambda *_: "backward"))
    _replace(Cell, "_run", _spanning(events, "cell", lambda cell, *_: cell.path))
    _replace(Updater, "__call__", _spanning(events, "operator", _update_name))


def _watch_graphs(events: Events) -> None:
    for segment in (Segment, RecordedSegment):
        _replace(segment, "run", functools.partial(_steps, events))
    _replace(Segment, "native", _without)
    for name in ("forward", "backward"):
        _replace(Executor, name, _spanning(events, "executor", functools.partial(_half, name)))
    _replace(Cache, "call", _spanning(events, "compiled", _function_name))


def stop() -> None:
    """Collect no more."""
    with _LOCK:
        while _UNDO:
            _UNDO.pop()()


def _replace(holder: Any, name: Any, make: Callable[[Any], Any]) -> None:
    """Put what ``make`` makes of something in its place."""
    if isinstance(holder, dict):
        before = holder[name]
        holder[name] = make(before)
        _UNDO.append(functools.partial(holder.__setitem__, name, before))
    else:
        before = vars(holder)[name]
        setattr(holder, name, make(before))
        _UNDO.append(functools.partial(setattr, holder, name, before))


def _half(name: str, executor: Executor, *_: object) -> str:
    return f"{name} of {executor._output_names[0]}"


def _other(new: Any, old: Any) -> Any:
    return new


def _update_name(updater: Updater, *_: object) -> str:
    return f"update by {type(updater.optimizer).__name__}"


def _function_name(cache: Any, function: Any, *_: Any) -> str:
    inner = getattr(function, "func", function)
    return f"compiled {getattr(function, 'path', None) or getattr(inner, '__qualname__', type(inner).__name__)}"


def _spanning(events: Events, category: str, name: Callable[..., str]) -> Callable[[Callable], Callable]:
    """What notes the time of a call, under a name that follows from its arguments."""

    def make(function: Callable) -> Callable:
        @functools.wraps(function)
        def spanning(*args: Any, **keywords: Any) -> Any:
            start = _clock()
            try:
                return function(*args, **keywords)
            finally:
                end = _clock()
                events.span(category, name(*args), start, end)
                events.sample_memory()

        return spanning

    return make


def _about(op: Any, line: object) -> dict[str, str]:
    """What there is to say of an operator: the line that called it, and that of a user's which made it."""
    found = {} if line is None else {"line": str(line)}
    if isinstance(op, Op) and op.where is not None:
        found["defined"] = str(op.where)
    return found


def _eager(events: Events, run: Callable) -> Callable:
    """``ndarray.eager.run``, noted."""

    def noted(op: Op, attrs: Any, values: Any, ctx: Any, out: Any = None, wrap: Any = None) -> Any:
        start = _clock()
        try:
            return run(op, attrs, values, ctx, out, wrap)
        finally:
            if ctx.xp is not np:
                ctx.backend.synchronize(ctx.device_id)
            end = _clock()
            events.span("operator", op.name, start, end, **_about(op, here()))
            events.sample_memory()

    return noted


def _gradient(events: Events, step: Callable) -> Callable:
    """A step of a tape's backward pass, noted."""

    def noted(node: tape.TapeNode, *args: Any) -> Any:
        start = _clock()
        try:
            return step(node, *args)
        finally:
            if node.ctx.xp is not np:
                node.ctx.backend.synchronize(node.ctx.device_id)
            events.span("operator", f"gradient of {node.op.name}", start, _clock(), **_about(node.op, node.where))
            events.sample_memory()

    return noted


def _steps(events: Events, run: Callable) -> Callable:
    """``Segment.run``, step by step, each noted."""

    def noted(segment: Segment, after: Callable[[Step], None] | None = None) -> None:
        began = last = _clock()

        def then(step: Step) -> None:
            nonlocal last
            if step.run:
                if step.ctx.xp is not np:
                    step.ctx.backend.synchronize(step.ctx.device_id)
                _note(events, step, last)
            if after is not None:
                after(step)
            last = _clock()

        try:
            run(segment, then)
        finally:
            events.span("plan", f"{len(segment.steps)} steps", began, _clock())

    return noted


def _note(events: Events, step: Step, start: float) -> None:
    operator, name, operators = names_of(step)
    node = step.node
    args = {"node": name, "kernel": step.kernel, **({"operators": ", ".join(operators)} if operators else {})}
    if node is not None:
        args.update(_about(node.op, node.where))
    events.span("operator", operator or step.kernel, start, _clock(), **args)
    events.sample_memory()


def _without(slot: Any) -> property:
    """``Segment.native``, of which nobody is to know while steps are noted."""
    return property(lambda segment: None, slot.__set__)
