"""trace_events: records of a program's operators, plans, gradients and Cells as events, in all threads.

While events are collected, the functions that run operators, plans and Cells are replaced by functions that also
record times. Afterwards they are restored, so a program that collects no events pays nothing. ``opreg.core.events``
collects the events.

>>> import opreg as mx
>>> from opreg.trace_events import collect
>>> x = mx.nd.ones((2, 3))
>>> with collect() as events:
...     y = mx.nd.exp(x) * 2
>>> sorted(row.name for row in events.rows("operator"))
['_mul_scalar', 'exp']

``collect(nvtx=True)`` also makes NVTX ranges for work on a GPU, which NVIDIA's profilers show: one for each operator
of arrays, gradient on a tape and step of a plan, named by operator and node.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeAlias

import numpy as np

from opreg.ndarray import arithmetic, backward_pass, computation, creation, tape
from opreg.ndarray.context import Context
from opreg.symbol.executor import Executor
from opreg.symbol.inspect.work import names_of
from opreg.symbol.plan import Function, Step, Watch, instrument_all

from .cells.cell import Cell
from .cells.jit import Cache
from .core.events import Events
from .core.locks import rlock
from .core.op import Op
from .errors import OpError, user_line
from .train.updater import Updater

__all__ = ["collect", "start", "stop"]

_clock = time.perf_counter
_LOCK = rlock()
#: Functions that undo the replacements of functions, while events are collected.
_UNDO: list[Callable[[], object]] = []


@contextmanager
def collect(*, nvtx: bool = False) -> Iterator[Events]:
    """A stretch of code whose events are collected; gives the `Events`.

    Parameters
    ----------
    nvtx : bool
        Whether to make NVTX ranges for work on a GPU, too.

    Raises
    ------
    OpError
        When somebody collects already.
    """
    events = Events()
    start(events, nvtx=nvtx)
    try:
        yield events
    finally:
        stop()


def start(events: Events, *, arrays: bool = True, graphs: bool = True, nvtx: bool = False) -> None:
    """Collect from now on.

    Parameters
    ----------
    events : Events
        The list to which events are appended. arrays : bool Whether to record operators of arrays, tapes, Cells and
        updates. graphs : bool Whether to record plans of executors and of compiled functions. nvtx : bool Whether to
        mark operators and steps on a GPU with NVTX ranges, too.

    Raises
    ------
    OpError
        When somebody collects already.
    """
    with _LOCK:
        if _UNDO:
            raise OpError("events are already being collected, which only one collector can do at a time")
        ranges = _Range if nvtx else _no_range
        if arrays:
            _watch_arrays(events, ranges)
        if graphs:
            _watch_graphs(events, ranges)
    events.sample_memory()


def _watch_arrays(events: Events, ranges: _Ranges) -> None:
    _replace(computation, "run", functools.partial(_eager, events, ranges))
    _replace(creation, "filled_array", _timed_call(events, "operator", lambda name, *_: name))
    for cls, name, slow in arithmetic.SHORT:
        _replace(cls, name, functools.partial(_other, slow))
    for mode in tuple(backward_pass._IN_MODE):
        _replace(backward_pass._IN_MODE, mode, functools.partial(_gradient, events, ranges))
    _replace(backward_pass, "backward", _timed_call(events, "tape", lambda *_: "backward"))
    _replace(Cell, "_run", _timed_call(events, "cell", lambda cell, *_: cell.path))
    _replace(Updater, "__call__", _timed_call(events, "operator", _update_name))


def _watch_graphs(events: Events, ranges: _Ranges) -> None:
    _UNDO.append(instrument_all(functools.partial(_watch, events, ranges), functools.partial(_note_segment, events)))
    for name in ("forward", "backward"):
        _replace(Executor, name, _timed_call(events, "executor", functools.partial(_half, name)))
    _replace(Cache, "call", _timed_call(events, "compiled", _function_name))


def stop() -> None:
    """Collect no more."""
    with _LOCK:
        while _UNDO:
            _UNDO.pop()()


def _replace(holder: Any, name: Any, make: Callable[[Any], Any]) -> None:
    """Replace an attribute or an entry by the result of ``make`` for it, until ``stop``."""
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


def _timed_call(events: Events, category: str, name: Callable[..., str]) -> Callable[[Callable], Callable]:
    """A decorator that records the time of each call, under a name made from the call's arguments."""

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


def _description(op: Any, line: object) -> dict[str, str]:
    """Description of an operator: the line that called it, and the line of a user's operator that made it."""
    facts = {} if line is None else {"line": str(line)}
    if isinstance(op, Op) and op.where is not None:
        facts["defined"] = str(op.where)
    return facts


class _Range:
    """A named NVTX range around work on a GPU; it does nothing on the host, or if CuPy was built without NVTX."""

    __slots__ = ("_nvtx", "_name")

    def __init__(self, ctx: Context, name: str):
        nvtx = None if ctx.xp is np else ctx.xp.cuda.nvtx
        self._nvtx, self._name = nvtx if nvtx is not None and nvtx.available else None, name

    def __enter__(self) -> None:
        if self._nvtx is not None:
            self._nvtx.RangePush(self._name)

    def __exit__(self, *_: object) -> None:
        if self._nvtx is not None:
            self._nvtx.RangePop()


_Ranges: TypeAlias = Callable[[Context, str], AbstractContextManager[None]]
_NOTHING = nullcontext()


def _no_range(ctx: Context, name: str) -> AbstractContextManager[None]:
    return _NOTHING


def _eager(events: Events, ranges: _Ranges, run: Callable) -> Callable:
    """``ndarray.eager.run``, noted."""

    def noted(op: Op, attrs: Any, values: Any, ctx: Any, out: Any = None, wrap: Any = None) -> Any:
        start = _clock()
        try:
            with ranges(ctx, op.name):
                return run(op, attrs, values, ctx, out, wrap)
        finally:
            if ctx.xp is not np:
                ctx.backend.synchronize(ctx.device_id)
            end = _clock()
            events.span("operator", op.name, start, end, **_description(op, user_line()))
            events.sample_memory()

    return noted


def _gradient(events: Events, ranges: _Ranges, step: Callable) -> Callable:
    """A step of a tape's backward pass that also adds an event."""

    def noted(node: tape.TapeNode, *args: Any) -> Any:
        start, name = _clock(), f"gradient of {node.op.name}"
        try:
            with ranges(node.ctx, name):
                return step(node, *args)
        finally:
            if node.ctx.xp is not np:
                node.ctx.backend.synchronize(node.ctx.device_id)
            events.span("operator", name, start, _clock(), **_description(node.op, node.where))
            events.sample_memory()

    return noted


def _watch(events: Events, ranges: _Ranges, number: int, step: Step) -> Watch | None:
    """Function that records a step of a plan."""
    if not step.run:
        return None
    title = _title(step)

    def noted(work: Function) -> None:
        start = _clock()
        with ranges(step.ctx, title):
            work()
            if step.ctx.xp is not np:
                step.ctx.backend.synchronize(step.ctx.device_id)
            _note(events, step, start)

    return noted


def _note_segment(events: Events, steps: Sequence[Step], run: Function) -> None:
    """Note a run of a segment."""
    start = _clock()
    try:
        run()
    finally:
        events.span("plan", f"{len(steps)} steps", start, _clock())


def _title(step: Step) -> str:
    """Operator and node of a step; for a step of several operators, all of them."""
    operator, name, operators = names_of(step)
    return " ".join(filter(None, ["+".join(operators) or operator or step.kernel, name]))


def _note(events: Events, step: Step, start: float) -> None:
    operator, name, operators = names_of(step)
    node = step.node
    args = {"node": name, "kernel": step.kernel, **({"operators": ", ".join(operators)} if operators else {})}
    if node is not None:
        args.update(_description(node.op, node.where))
    events.span("operator", operator or step.kernel, start, _clock(), **args)
    events.sample_memory()
