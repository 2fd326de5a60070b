"""The plans of an executor for inference and training, built at first use, and the function that runs a segment."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from opreg.core.array_module import ENTERED
from opreg.core.invalidation import EDITION
from opreg.core.mode import MODE, quiet
from opreg.core.rounding import with_tf32
from opreg.core.versions import WATCHED
from opreg.errors import warn
from opreg.ndarray.context import Context
from opreg.ndarray.finite import inherit_choice

from .compile import compile_program
from .inspect.checking import KernelReport, check_kernels
from .inspect.finite import check_numbers
from .inspect.monitor import Monitor, MonitorCallback
from .plan import Plan, Segment, Step
from .program import Bound, Program
from .replay import segments

__all__ = ["Plans", "in_mode", "run_segment"]


class Plans(dict[bool, Plan]):
    """The plans of a bound graph, by mode: True for training, False for inference.

    Parameters
    ----------
    bound : Bound
        The bound graph.
    gradients : dict of bool to (bool or None)
        By the mode of a forward: whether the gradients after it are those of training (True), of inference (False), or
        none are computed (None).
    check : bool or "report"
        Whether kernels are compared with the reference.
    numbers : bool or "debug"
        Whether results are checked for NaN and infinities.

    Attributes
    ----------
    orders : dict of Context to function
        By context of a device: a function that lets the current stream wait for earlier runs on other streams, which
        use the same memory.
    reports : dict of bool to function
        The reports of compared kernels, by mode.
    step : tuple of (Plan, Segment or None, Segment) or None
        The plan for training, the segment of an update, and the cached segment of both; see ``step_segment``.
    """

    def __init__(self, bound: Bound, gradients: dict[bool, bool | None], check: bool | str, numbers: bool | str):
        self.bound, self._gradients, self._check, self._numbers = bound, gradients, check, numbers
        self.reports: dict[bool, Callable[[], KernelReport]] = {}
        self.step: tuple[Plan, Segment | None, Segment] | None = None
        self._monitor = Monitor()
        self._others: dict[bool, Plan] = {}  # while no monitor is set, the plans with one; otherwise the plans without
        self.orders: dict[Context, Callable[[], None]] = {}
        self._warned: set[str] = set()  # names of replaced operators that a warning has named

    def __missing__(self, is_train: bool) -> Plan:
        edition = EDITION[0]
        self._warn_of_replaced_operators()
        with inherit_choice(self._numbers):
            plan = compile_program(Program.of(self.bound, is_train, self._gradients[is_train], self.has_monitor))
        if self._check:
            self.reports[is_train] = check_kernels(plan, self._check != "report")
        if self._numbers:
            check_numbers(plan, self._numbers)
        if self.has_monitor:
            self._monitor.watch(plan)
        for ctx in set(plan.contexts.values()) - self.orders.keys():
            order = ctx.backend.order(ctx.device_id)
            if order is not None:
                self.orders[ctx] = order
        if edition == EDITION[0]:  # otherwise another thread has registered an operator or kernel meanwhile
            self[is_train] = plan
        return plan

    def _warn_of_replaced_operators(self) -> None:
        """Warn of operators whose names were given to other operators after the graph was bound."""
        operators = [node.op for node in self.bound.graph.nodes if node.op is not None]
        replaced = {op.name for op in operators if op.successor is not None}
        for name in sorted(replaced - self._warned):
            warn(f"operator {name!r} was registered again after an executor was bound; the executor uses the previous "
                 f"operator until the symbol is bound again")
        self._warned |= replaced

    def step_segment(self, plan: Plan, update: Segment | None) -> Segment:
        """Forward, backward and the update of the weights as one segment."""
        if self.step is None or self.step[0] is not plan or self.step[1] is not update:
            updates = [] if update is None else update.steps
            copies = Step(None, "copy", [], "auxiliary states", plan.stores, [], self.bound.ctx)
            stores = [copies] if plan.stores else []
            make = segments([*plan.contexts.values(), *[step.ctx for step in updates]])
            self.step = plan, update, make([*plan.forward.steps, *stores, *plan.backward.steps, *updates])
        return self.step[2]

    def wait(self) -> None:
        """Let the current streams wait for the streams of the last run, which used the same memory."""
        for order in self.orders.values():
            order()

    def forget(self, is_train: bool) -> None:
        """Drop the plans for a mode; the next use builds them again."""
        self.pop(is_train, None)
        self._others.pop(is_train, None)

    @property
    def has_monitor(self) -> bool:
        """Whether a monitor receives the results of nodes."""
        return self._monitor.callback is not None

    def monitor(self, callback: MonitorCallback | None, everything: bool) -> None:
        """Set the callback that receives the results of nodes, or None."""
        if (callback is None) is self.has_monitor:
            others, self._others = self._others, dict(self)
            self.clear()
            self.update(others)
        self._monitor.callback, self._monitor.everything = callback, everything


def run_segment(segment: Segment, ctx: Context, is_train: bool) -> None:
    """Run a segment in its mode: autograd off, its context as the current one, and numeric warnings off."""
    if segment.native is not None:
        segment.native()
    elif segment.plain:
        quiet(segment.run)
    else:
        in_mode(segment.run if segment.tf32 is None else functools.partial(_run_with_rounding, segment), ctx, is_train)
    if WATCHED:
        (segment.noted or segment.targets).wrote()


def _run_with_rounding(segment: Segment) -> None:
    """Run a segment. Kernels that call a library's products while they run use TF32 if the plan allows it."""
    assert segment.tf32 is not None
    with with_tf32(segment.tf32):
        segment.run()


def in_mode(function: Callable[[], object], ctx: Context, is_train: bool) -> None:
    """Call a function in the mode of steps: autograd off, the context current, numeric warnings off."""
    if ENTERED:
        function = functools.partial(_step_on_device, function, ctx)
    thread = MODE.__dict__
    mode = thread["current"]()
    try:
        thread["set"](mode.for_users_code(is_train, ctx))
        with np.errstate(all="ignore"):
            function()
    finally:
        thread["set"](mode)


def _step_on_device(function: Callable[[], object], ctx: Context) -> None:
    with ctx.entered():
        function()
