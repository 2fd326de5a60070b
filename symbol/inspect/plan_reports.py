"""Reports on plans: explanations, profiles, estimates and memory use, for all objects that own plans.

Executors, executors of stages and compiled functions return their plans by ``_plans_of``; the reports are made here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from opreg.core.reports import Explanation, NotebookTable, report
from opreg.core.settings import named_methods
from opreg.errors import ArgumentError
from opreg.ndarray.context import Context

from ..plan import Plan, Segment
from ..program import Bound
from .checking import KernelReport
from .estimate import Estimate, Machine, estimate, machine_of
from .explain import explanation_lines
from .memory_use import MemoryUse, results_between
from .monitor import MonitorCallback
from .profile import Profile, profile

__all__ = ["ReportedPlan", "PlanReports"]


class ReportedPlan(NamedTuple):
    """A plan, with all that reports on it need.

    Attributes
    ----------
    plan : Plan
    segments : list of (str, Segment)
        Its segments, with their names.
    bound : Bound
        The bound graph of the plan.
    run : function of a segment
        Runs a segment in its mode.
    more : list of str
        Further lines of its explanation.
    report : function or None
        Makes the report of its kernels, if these are checked.
    """

    plan: Plan
    segments: Sequence[tuple[str, Segment]]
    bound: Bound
    run: Callable[[Segment], None]
    more: Sequence[str] = ()
    report: Callable[[], KernelReport] | None = None

    @property
    def lines(self) -> list[str]:
        """The lines of the plan's explanation."""
        return [*explanation_lines(self.plan, self.segments), *self.more]


class DescribedGraph(Protocol):
    """A graph that lists its nodes."""

    def debug_str(self) -> str:
        """The list as text."""


@named_methods()
class PlanReports(NotebookTable):
    """An object that reports on its plans."""

    _symbol: DescribedGraph
    _ctx: Context
    _exclusive: Callable[[], AbstractContextManager[object]]  # a block of code for one thread at a time
    _nbytes_bound: Callable[[], Mapping[str, int]]  # bytes of the caller's arrays, by kind
    _memory_text: Callable[[], str]  # the memory of the plans, as text
    _set_monitor: Callable[[MonitorCallback | None, bool], None]  # sets the monitor of the plans, or None
    #: The callback, and whether it is called with inputs, too.
    _monitor: tuple[MonitorCallback | None, bool] = None, False

    @property
    def _keeps_gradients(self) -> bool:
        """Whether reports are on the plan for training by default."""
        raise NotImplementedError

    def _plans_of(self, is_train: bool) -> Sequence[ReportedPlan]:
        """The plans for a mode. The plans of the last run, if there are several."""
        raise NotImplementedError

    def _all_plans_of(self, is_train: bool) -> Sequence[ReportedPlan]:
        """All plans for a mode that exist side by side."""
        return self._plans_of(is_train)

    def _mode_of(self, is_train: bool | None) -> bool:
        return self._keeps_gradients if is_train is None else bool(is_train)

    def explain(self, is_train: bool | None = None) -> Explanation:
        """Explain each step of a plan: its node, its kernel, why faster kernels declined, and the place of its result.

        Parameters
        ----------
        is_train : bool, optional
            The mode of the plan; by default training if there are gradients.
        """
        with self._exclusive():
            return Explanation(report(line for plan in self._plans_of(self._mode_of(is_train)) for line in plan.lines))

    def memory(self, is_train: bool | None = None) -> MemoryUse:
        """The memory use of a plan.

        Parameters
        ----------
        is_train : bool, optional
            The mode of the plan; by default training if there are gradients.

        Returns
        -------
        MemoryUse
            ``print`` shows a table, largest results first; ``rows`` and ``bound`` hold the numbers of bytes.
        """
        is_train = self._mode_of(is_train)
        with self._exclusive():
            plans = [each.plan for each in self._all_plans_of(is_train)]
        return MemoryUse.joined([
            MemoryUse(results_between(plan.memory, plan.specs), plan.memory.arena,
                      plan.nbytes - sum(plan.memory.arena.values()), {}, is_train) for plan in plans],
            self._nbytes_bound(), is_train)

    def profile(self, runs: int = 10, is_train: bool | None = None) -> Profile:
        """Measure the time of each step of a plan.

        Forward and backward run ``2 * runs + 1`` times, with the current arguments, and with the head gradients that
        are bound or that the last backward was given; zeros before the first. Outputs, gradients, auxiliary states,
        weights and the states of random generators are restored. Other side effects of users' operators and hooks
        happen in each run. A ``backward`` that is called next runs its forward again.

        Parameters
        ----------
        runs : int
            The number of measurements of each step.
        is_train : bool, optional
            The mode of the plan; by default training if there are gradients.

        Returns
        -------
        Profile
            ``print`` shows a table, slowest step first; ``rows`` holds the values.
        """
        if not isinstance(runs, int) or runs < 1:  # type: ignore[redundant-expr]
            raise ArgumentError(f"profile: runs={runs!r}: expected a positive number")
        with self._exclusive():
            profiles = [profile(plan.plan, plan.segments, plan.bound, plan.run, runs)
                     for plan in self._plans_to_measure(self._mode_of(is_train))]
        return Profile.joined(profiles)

    def _plans_to_measure(self, is_train: bool) -> Sequence[ReportedPlan]:
        """The plans for a mode, which ``profile`` is about to run."""
        return self._plans_of(is_train)

    def estimate(self, is_train: bool | None = None, machine: Machine | str | None = None) -> Estimate:
        """Estimate the time that a plan would take on a device, which need not be present. Nothing runs.

        Parameters
        ----------
        is_train : bool, optional
            The mode of the plan; by default training if there are gradients.
        machine : Machine or str, optional
            The rates of the device: a ``Machine``, or the name ``"H100"`` or ``"H200"``. By default the machine that
            the name of the executor's device contains, or else an H100.

        Returns
        -------
        Estimate
            ``print`` shows a table, longest step first; ``rows``, ``eager`` and ``replayed`` hold the values. Kernels
            are those of the executor's own plan; other devices may have others.
        """
        is_train = self._mode_of(is_train)
        with self._exclusive():
            plans = self._plans_of(is_train)
        target = machine_of(machine, self._ctx.backend.title(self._ctx.device_id))
        return Estimate.joined([estimate(plan.plan, plan.segments, target) for plan in plans], target, is_train)

    def kernel_report(self, is_train: bool | None = None) -> KernelReport:
        """The differences between kernels and the reference, in all runs of a plan so far.

        Parameters
        ----------
        is_train : bool, optional
            The mode of the plan; by default training if there are gradients.

        Raises
        ------
        ArgumentError
            If the executor was bound without ``check_kernels``.
        """
        with self._exclusive():
            reports = [plan.report for plan in self._all_plans_of(self._mode_of(is_train))]
        if None in reports:
            raise ArgumentError("kernel_report: kernels were not checked; bind with check_kernels=True")
        return KernelReport.joined([report() for report in reports if report is not None])

    def set_monitor_callback(self, callback: MonitorCallback | None, monitor_all: bool = False) -> None:
        """Call a function with the name and the value of every output of every node when it is computed.

        Parameters
        ----------
        callback : function of name and NDArray, or None
            The function; None removes it.
        monitor_all : bool
            Whether to call it with inputs, too.
        """
        if callback is not None and not callable(callback):
            raise ArgumentError(f"set_monitor_callback: expected a function, got {type(callback).__name__}")
        with self._exclusive():
            self._monitor = callback, monitor_all
            self._set_monitor(callback, monitor_all)

    def _watch_as(self, source: PlanReports) -> None:
        """Set the monitor of another object."""
        if self._monitor != source._monitor:
            self.set_monitor_callback(*source._monitor)

    def debug_str(self) -> str:
        """A text that lists every node with its inputs, and the memory of the plans."""
        return self._symbol.debug_str() + self._memory_text()
