"""Monitor: statistics of a network's arrays every few batches."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opreg.core import settings
from opreg.core.registry import ops
from opreg.core.settings import CheckedMethods
from opreg.ndarray.ndarray import NDArray

if TYPE_CHECKING:
    from opreg.symbol.executor import Executor

__all__ = ["Monitor"]


def _mean_size(x: NDArray) -> NDArray:
    return ops.norm(x) / math.sqrt(max(x.size, 1))


class Monitor(CheckedMethods):
    """Collects a statistic of each array of a network whose name matches a pattern.

    Parameters
    ----------
    interval : int
        Number of batches between two collections.
    stat_func : function of NDArray
        The statistic, or a list of several; by default the norm divided by the root of the size.
    pattern : str
        Regular expression of names.
    sort : bool
        Whether results are sorted by name.
    monitor_all : bool
        Whether inputs of nodes are included, too.

    Examples
    --------
    >>> import opreg as mx
    >>> net = mx.sym.square(mx.sym.var("x"), name="square")
    >>> executor = net.bind(mx.cpu(), {"x": mx.nd.full((2,), 3)})
    >>> monitor = Monitor(1, stat_func=lambda x: x.sum(), pattern=".*output")
    >>> monitor.install(executor)
    >>> monitor.tic()
    >>> outputs = executor.forward()
    >>> [(name, value.strip()) for step, name, value in monitor.toc()]
    [('square_output', '18.0')]
    """

    def __init__(self, interval: int, stat_func: Callable[[NDArray], Any] | None = None, pattern: str = ".*",
                 sort: bool = False, monitor_all: bool = False):
        self.interval, self.stat_func = interval, stat_func or _mean_size
        self.sort, self.monitor_all = sort, monitor_all
        self.re_prog = settings.pattern("Monitor: pattern", pattern)
        self.queue: list[tuple[int, str, Any]] = []
        self.exes: list[Executor] = []
        self.step, self.activated = 0, False

    def install(self, exe: Executor) -> None:
        """Collect from another executor, too."""
        self.exes.append(exe)
        if self.activated:
            exe.set_monitor_callback(self._note, self.monitor_all)

    def _note(self, name: str, array: NDArray) -> None:
        if self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def tic(self) -> None:
        """Start collecting if it is time; called before a batch."""
        if self.step % self.interval == 0:
            self.queue, self.activated = [], True
            for exe in self.exes:
                exe.set_monitor_callback(self._note, self.monitor_all)
        self.step += 1

    def toc(self) -> list[tuple[int, str, str]]:
        """Results of a batch: its number, name and statistic as text, for each array."""
        if not self.activated:
            return []
        self.activated = False
        for exe in self.exes:
            exe.set_monitor_callback(None)
            symbol = exe._symbol
            for names, arrays in ((symbol.list_arguments(), exe.arg_arrays),
                                  (symbol.list_auxiliary_states(), exe.aux_arrays)):
                for name, array in zip(names, arrays):
                    self._note(name, array)
        entries = sorted(self.queue, key=lambda entry: entry[1]) if self.sort else self.queue
        self.queue = []
        return [(step, name, _text(values)) for step, name, values in entries]

    def toc_print(self) -> None:
        """Log the results of ``toc``."""
        for step, name, text in self.toc():
            logging.info("Batch: %7d %-30s %s", step, name, text)


def _text(values: object) -> str:
    listed = values if isinstance(values, (list, tuple)) else [values]
    return "".join(f"{_number(value)}\t" for value in listed)


def _number(value: object) -> str:
    if not isinstance(value, NDArray):
        return str(value)
    return str(value.asscalar()) if value.size == 1 else str(value.asnumpy())
