"""Questions to owners of plans: how they run, how long, in how much memory.

Executors, executors of stages and compiled functions say in ``_asked`` which plans they have, and what runs with
them; the answers are made here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from opreg.core.looks import Explanation, Shown, report
from opreg.errors import ArgumentError
from opreg.ndarray.context import Context

from ..plan import Plan, Segment
from ..program import Bound
from ..symbol import Symbol
from .checking import KernelReport
from .estimate import Estimate, Machine, estimate, machine_of
from .explain import explained
from .memory_use import MemoryUse, results_between
from .monitor import Told
from .profile import Profile, profile

__all__ = ["Asked", "Questions"]


class Asked(NamedTuple):
    """A plan that something is asked about.

    Attributes
    ----------
    plan : Plan
    segments : list of (str, Segment)
        Its segments, with their names.
    bound : Bound
        The bound graph that it was made of.
    run : function of a segment
        Runs it in the mode that steps run in.
    more : list of str
        What there is to say of it beside its steps.
    report : function or None
        Makes the report of its kernels, where these are checked.
    """

    plan: Plan
    segments: Sequence[tuple[str, Segment]]
    bound: Bound
    run: Callable[[Segment], None]
    more: Sequence[str] = ()
    report: Callable[[], KernelReport] | None = None

    @property
    def lines(self) -> list[str]:
        """An explanation."""
        return [*explained(self.plan, self.segments), *self.more]


class Questions(Shown):
    """An object that answers questions about its plans."""

    _symbol: Symbol
    _ctx: Context
    _alone: Callable[[], AbstractContextManager[object]]  # a stretch of code for one thread at a time
    _nbytes_bound: Callable[[], Mapping[str, int]]  # of what callers hold, by what it is
    _held: Callable[[], str]  # what the plans hold in memory, in words
    _tell: Callable[[Told | None, bool], None]  # has plans tell what they compute; None for nobody
    #: The callback, and whether it is told inputs, too.
    _monitor: tuple[Told | None, bool] = None, False

    @property
    def _keeps_gradients(self) -> bool:
        """Whether the plan for training is meant where none is named."""
        raise NotImplementedError

    def _asked(self, is_train: bool) -> Sequence[Asked]:
        """The plans for a mode; of several that exist side by side those that ran last."""
        raise NotImplementedError

    def _every(self, is_train: bool) -> Sequence[Asked]:
        """All plans for a mode that exist side by side."""
        return self._asked(is_train)

    def _mode_of(self, is_train: bool | None) -> bool:
        return self._keeps_gradients if is_train is None else bool(is_train)

    def explain(self, is_train: bool | None = None) -> Explanation:
        """Each step of a plan: its node, its kernel and why faster ones declined, where its result lives.

        Parameters
        ----------
        is_train : bool, optional
            Which plan; the training plan when gradients are kept, by default.
        """
        with self._alone():
            return Explanation(report(line for asked in self._asked(self._mode_of(is_train)) for line in asked.lines))

    def memory(self, is_train: bool | None = None) -> MemoryUse:
        """Memory of a plan by its parts.

        Parameters
        ----------
        is_train : bool, optional
            Which plan; the training plan when gradients are kept, by default.

        Returns
        -------
        MemoryUse
            ``print`` it for a table, largest results first; ``rows`` and ``bound`` have the numbers, in bytes.
        """
        is_train = self._mode_of(is_train)
        with self._alone():
            plans = [asked.plan for asked in self._every(is_train)]
        return MemoryUse.joined([
            MemoryUse(results_between(plan.memory, plan.specs), plan.memory.arena,
                      plan.nbytes - sum(plan.memory.arena.values()), {}, is_train) for plan in plans],
            self._nbytes_bound(), is_train)

    def profile(self, runs: int = 10, is_train: bool | None = None) -> Profile:
        """Time of a plan by its steps, which are run one by one with a clock.

        Forward and backward run ``2 * runs + 1`` times with the arguments as they are, and with the gradients of the
        outputs that are bound or that the last backward was given, zeros before the first. Outputs, gradients,
        auxiliary states, what updates change and the states of random generators are restored; what users' operators
        and hooks do beside that happens in each run. A backward that was to follow runs its forward again.

        Parameters
        ----------
        runs : int
            How often each step is measured.
        is_train : bool, optional
            Which plan; the training plan when gradients are kept, by default.

        Returns
        -------
        Profile
            ``print`` it for a table, slowest step first; ``rows`` has the numbers.
        """
        if not isinstance(runs, int) or runs < 1:  # type: ignore[redundant-expr]
            raise ArgumentError(f"profile: runs={runs!r}: expected a positive number")
        with self._alone():
            found = [profile(asked.plan, asked.segments, asked.bound, asked.run, runs)
                     for asked in self._measured(self._mode_of(is_train))]
        return Profile.joined(found)

    def _measured(self, is_train: bool) -> Sequence[Asked]:
        """The plans for a mode, to be run outside of ``forward`` and ``backward``."""
        return self._asked(is_train)

    def estimate(self, is_train: bool | None = None, machine: Machine | str | None = None) -> Estimate:
        """How long a plan would take on a device that need not be there: what its steps do is counted, nothing runs.

        Parameters
        ----------
        is_train : bool, optional
            Which plan; the training plan when gradients are kept, by default.
        machine : Machine or str, optional
            What the device does: a ``Machine``, or ``"H100"`` or ``"H200"`` (``opreg.symbol.estimate.MACHINES``). By
            default that of the device where the executor is bound, by its name, and an H100 on any other.

        Returns
        -------
        Estimate
            ``print`` it for a table, longest step first; ``rows``, ``eager`` and ``replayed`` have the numbers. They
            are those of the plan for where the executor is bound, whose kernels other devices may not have.
        """
        is_train = self._mode_of(is_train)
        with self._alone():
            asked = self._asked(is_train)
        found = machine_of(machine, self._ctx.backend.title(self._ctx.device_id))
        return Estimate.joined([estimate(each.plan, each.segments, found) for each in asked], found, is_train)

    def kernel_report(self, is_train: bool | None = None) -> KernelReport:
        """How far kernels were from the reference, in all runs of a plan so far; of an executor that checks kernels.

        Parameters
        ----------
        is_train : bool, optional
            Which plan; the training plan when gradients are kept, by default.

        Raises
        ------
        ArgumentError
            When the executor was bound without ``check_kernels``.
        """
        with self._alone():
            reports = [asked.report for asked in self._every(self._mode_of(is_train))]
        if None in reports:
            raise ArgumentError("kernel_report: kernels are not checked; bind with check_kernels=True")
        return KernelReport.joined([report() for report in reports if report is not None])

    def set_monitor_callback(self, callback: Told | None, monitor_all: bool = False) -> None:
        """Call a function with name and value of every output of every node as it is computed.

        Parameters
        ----------
        callback : function of name and NDArray, or None
            None stops it.
        monitor_all : bool
            Inputs too.
        """
        if callback is not None and not callable(callback):
            raise TypeError(f"set_monitor_callback: expected a function, got {type(callback).__name__}")
        with self._alone():
            self._monitor = callback, monitor_all
            self._tell(callback, monitor_all)

    def _watch_as(self, other: Questions) -> None:
        """Have the monitor that another has."""
        if self._monitor != other._monitor:
            self.set_monitor_callback(*other._monitor)

    def debug_str(self) -> str:
        """Every node with its inputs, a line each, and what the plans hold in memory."""
        return self._symbol.debug_str() + self._held()
