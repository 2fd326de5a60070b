"""Executors of several parts, with the methods that any cut of a graph shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from opreg.errors import TRIMMED, ArgumentError
from opreg.ndarray.ndarray import NDArray

from .executor import Executor, truth
from .inspect.monitor import MonitorCallback
from .inspect.plan_reports import ReportedPlan
from .plan import Before, Plan

__all__ = ["PartitionedExecutor", "merge_outputs"]


class PartitionedExecutor(Executor):
    """An executor whose graph is cut into parts, each with plans of its own."""

    _ran: bool | None = None  # the mode of the last forward, until its backward
    _reason: str  # the reason why the graph is divided

    def _parts(self) -> list[Executor]:
        """All parts."""
        raise NotImplementedError

    def _latest(self) -> list[Executor]:
        """The parts of the last forward, in their order."""
        return self._parts()

    def forward(self, is_train: bool = False, **kwargs: NDArray | np.ndarray) -> list[NDArray]:
        """Compute the outputs; see ``Executor.forward``."""
        with TRIMMED, self._exclusive():
            if kwargs:
                self._feed(kwargs)
            self._run_steps(truth("forward", is_train))
            self._store()
            return self.outputs

    def _store(self) -> None:
        for part in self._latest():
            part._store()

    def _before(self, mode: bool) -> Before:
        before = [part._before(mode) for part in self._latest()]
        return ({place: state for draws, _ in reversed(before) for place, state in draws.items()},
                [state for _, states in reversed(before) for state in states])

    def _differentiate(self, mode: bool, is_train: bool | None) -> None:
        self._gradients[mode] = is_train
        for part in self._parts():
            part._differentiate(mode, is_train)
        self._ran = None

    # ---------------------------------------------------------------------------------------------- inspection

    def plan(self, is_train: bool) -> Plan:
        """Raises an error, since there is no plan of the whole graph."""
        raise ArgumentError(f"{self!r}: {self._reason}, so it has several plans: explain() prints them")

    def _wait(self) -> None:
        """Does nothing; the parts wait when they run."""

    def _recorded_plan(self) -> Plan | None:
        return None

    def _set_monitor(self, callback: MonitorCallback | None, monitor_all: bool) -> None:
        for part in self._parts():
            part._set_monitor(callback, monitor_all)

    def _memory_text(self) -> str:
        return "".join(part._memory_text() for part in self._parts())

    def _plans_of(self, is_train: bool) -> Sequence[ReportedPlan]:
        return [plan for part in self._latest() for plan in part._plans_of(is_train)]

    def _all_plans_of(self, is_train: bool) -> Sequence[ReportedPlan]:
        return [plan for part in self._parts() for plan in part._all_plans_of(is_train)]

    def _plans_to_measure(self, is_train: bool) -> Sequence[ReportedPlan]:
        self._run_steps(is_train)
        self._ran = None
        return [plan for part in self._latest() for plan in part._plans_to_measure(is_train)]


def merge_outputs(early: Sequence[bool], first: Iterable[NDArray], second: Iterable[NDArray]) -> list[NDArray]:
    """The outputs of two parts, in the order of the graph; ``early`` says for each whether the first part has it."""
    ones, others = iter(first), iter(second)
    return [next(ones if is_early else others) for is_early in early]
