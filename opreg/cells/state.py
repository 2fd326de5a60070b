"""State of a thread: its trace, the observer of its Python code, whether a Cell is running."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..core.chosen import override
from ..core.mode import MODE
from .context_settings import get_context
from .reads import Watcher

if TYPE_CHECKING:
    from opreg.ndarray.ndarray import NDArray

    from .trace import FunctionTracer

__all__ = ["STATE", "checks_bprop", "untraced"]


class _State(threading.local):
    trace: FunctionTracer | None = None  # the FunctionTracer that operators join
    observer: Watcher | None = None  # observer of the Python code that runs
    inside = False  # whether an outermost Cell is running
    nested = False  # whether a gradient of a gradient is computed
    #: By `Record`, the `RecordedRun` that a call of Python in the current plan stores for its gradient.
    runs: dict[Any, Any] | None = None
    weights: tuple[NDArray, ...] = ()  # Parameters with respect to which running functions are differentiated
    #: While a plan runs that calls Python, the arrays from outside: `captures.Outside`.
    outside: Any = None
    #: Number of ``no_grad`` contexts around the running code.
    blocked = property(lambda self: MODE.current().blocked, lambda self, value: setattr(MODE, "blocked", value))


#: Read on every call of a Cell and on every operator of tensors.
STATE = _State()


@contextlib.contextmanager
def untraced(observed: bool = False) -> Iterator[None]:
    """A context whose operators compute, even during a trace; ``observed`` says whether reads are still noted."""
    with override(STATE, trace=None, observer=STATE.observer if observed else None), override(MODE, tracer=None):
        yield


def checks_bprop() -> bool:
    """Whether the results of a ``bprop`` must be exact; a trace notes that it depends on this."""
    return get_context("check_bprop") if STATE.trace is None else STATE.trace.reads.setting("check_bprop")
