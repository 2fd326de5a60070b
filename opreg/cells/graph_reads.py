"""Reads of users' code that is traced into a graph, once for many runs: observed while the code runs.

A graph holds copies of arrays that the code reads from outside, so the elements of these arrays are compared, too.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from opreg.ndarray.autograd import is_recording, is_training
from opreg.ndarray.context import Context, current_context
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.executor import Executor
from opreg.symbol.program import OBSERVED

from ..core.comparisons import Check
from ..errors import warn
from .observer import Observer
from .reads import Reads

__all__ = ["GraphObserver", "trace_observed", "warn_of_reads"]

#: Identities of the code of functions whose result depends on the mode or the device. Their results are not compared,
#: since each plan has one mode and one device.
_OF_PLANS = frozenset(map(id, (is_recording.__code__, is_training.__code__, current_context.__code__,
                               type(Context).default_ctx.fget.__code__)))  # type: ignore[attr-defined]


class GraphObserver(Observer):
    """An observer of code whose graph has copies of the arrays that it reads."""

    copies = True
    reads: Reads

    def __init__(self) -> None:
        super().__init__(Reads())

    def _note_answer(self, frame: FrameType, answer: Any) -> None:
        """Note what a library function has returned, and the array or the executor whose method it is."""
        super()._note_answer(frame, answer)
        owner: Any = frame.f_locals.get("self")
        if issubclass(type(owner), (Executor, NDArray)):
            self.note_use(owner)

    def note_use(self, value: Any) -> None:
        """Note that code uses a value; of an executor, the arrays that its results depend on."""
        if issubclass(type(value), Executor) and id(value) not in self._met:
            for array in (*value.arg_arrays, *value.aux_arrays):
                self.note_use(array)
        super().note_use(value)

    def check(self) -> Check | None:
        """A function that names the reads that have changed; None where nothing was read."""
        self.reads.close()
        return self.reads.changed if self.reads.has_counted else self.reads.check


class _BodyObserver(GraphObserver):
    def _note_answer(self, frame: FrameType, answer: Any) -> None:
        if id(frame.f_code) not in _OF_PLANS:
            super()._note_answer(frame, answer)


T = TypeVar("T")


@OBSERVED.provide
def trace_observed(title: str, trace: Callable[[], T]) -> tuple[T, Check | None]:
    """The result of a trace, and a function that names the values read by users' code that have changed; a warning
    names reads that cannot be compared.

    Examples
    --------
    >>> scale = [2.0]
    >>> found, changed = trace_observed("twice", lambda: scale[0] * 2)
    >>> found
    4.0
    """
    observer = _BodyObserver()
    with observer:
        result = trace()
    warn_of_reads(f"{title} uses the values that it read while it was traced", observer)
    return result, observer.check()


def warn_of_reads(text: str, observer: Observer) -> None:
    """Warn of reads of an observer that cannot be compared."""
    unseen = [*([f"what it asks for, since {observer.reason}"] if observer.reason else []),
              *observer.comparisons.unseen]
    if unseen:
        warn(f"{text}, and does not see changes of {'; '.join(unseen)}")
