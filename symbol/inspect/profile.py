"""Profiles: the time of each step of a plan, compared with the speed of the machine's memory and BLAS.

``work.py`` counts the work of a step. The speed of memory and BLAS is measured once in a process, by the copy of a
large array and by a product of large matrices.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from opreg.core import generators, threads
from opreg.core.cache import cached
from opreg.core.processor import processor
from opreg.core.reports import NotebookTable, report
from opreg.core.spec import is_floating, is_narrow
from opreg.ndarray.context import Context
from opreg.typing import Array

from ..plan import Function, Plan, Segment, Step, Watch
from ..program import Bound
from .work import count_work, names_of, number_text, time_text, title_of

__all__ = ["Profile", "ProfileRow", "profile", "memory_rate", "product_rate"]

_COPIED = min(max(1 << 28, 2 * processor().l3), 1 << 30)  # bytes of the array that is copied, more than any cache
_ORDER = 1024  # the size of the square matrices that are multiplied
_TIMES = 5
_SHOWN = 40  # rows of a table by default


# ---------------------------------------------------------------------------------------------- the machine


def _fastest_run(work: Callable[[], object], ctx: Context) -> float:
    """Seconds of the fastest of several runs."""
    seconds: list[float] = []
    for _ in range(_TIMES + 1):  # the first run warms up, and is not the fastest
        start = time.perf_counter()
        work()
        ctx.backend.synchronize(ctx.device_id)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


@cached(64)
def memory_rate(ctx: Context) -> float:
    """Bytes a second, read plus written, when a device copies a large array; on the host, with all threads of the
    pool."""
    source = ctx.backend.zeros((_COPIED,), np.dtype(np.uint8), ctx.device_id)
    target = ctx.backend.zeros((_COPIED,), np.dtype(np.uint8), ctx.device_id)
    with ctx.entered():
        source[...] = 1  # pages that were never written are all mapped to one page of zeros
    parts = [functools.partial(target[part].__setitem__, Ellipsis, source[part])
             for part in threads.split_evenly(_COPIED, threads.count() if ctx.xp is np else 1)]
    with ctx, ctx.entered():
        return 2 * _COPIED / _fastest_run(lambda: threads.run(parts) if ctx.xp is np else parts[0](), ctx)


@cached(64)
def product_rate(ctx: Context, dtype: np.dtype) -> float:
    """Additions and multiplications a second in a product of two large matrices of floating-point values.

    Halves are multiplied in float32 on the host, as its kernels do.
    """
    if ctx.xp is np and is_narrow(dtype):
        dtype = np.dtype(np.float32)
    order = _ORDER if ctx.xp is np else 4 * _ORDER
    a, b, out = (ctx.backend.zeros((order, order), dtype, ctx.device_id) for _ in range(3))
    with ctx, ctx.entered():
        a[...] = b[...] = 1.0
        return 2 * order ** 3 / _fastest_run(lambda: ctx.xp.matmul(a, b, out=out), ctx)


# ------------------------------------------------------------------------------------------------- results


class ProfileRow(NamedTuple):
    """A step and its time in a run.

    Attributes
    ----------
    step, half
        Its index among the ``forward`` or ``backward`` steps, as in ``executor.explain()``.
    operator, node, operators
        Its operator and node; for a fused node, also the operators in it.
    kernel : str
        The name of its kernel.
    seconds, median : float
        The shortest and the median time of the runs.
    share : float
        ``seconds`` as a fraction of the sum over all steps.
    read, written : int
        Bytes of inputs and outputs, each counted once.
    rate, memory_share : float
        Bytes a second, absolute and as a fraction of the speed of memory; with caches, the fraction may exceed one.
    flops : int or None
        Additions and multiplications, for operators that declare them.
    flop_rate, blas_share : float or None
        ``flops`` a second, absolute and as a fraction of the speed of BLAS in this dtype.
    """

    step: int
    half: str
    operator: str
    node: str
    operators: tuple[str, ...]
    kernel: str
    seconds: float
    median: float
    share: float
    read: int
    written: int
    rate: float
    memory_share: float
    flops: int | None
    flop_rate: float | None
    blas_share: float | None


class Profile(NotebookTable):
    """The report of ``executor.profile``; prints as a table, the slowest step first.

    Attributes
    ----------
    rows : list of ProfileRow
        The steps that run, slowest first; views have none.
    is_train : bool
        The mode of the plan.
    runs : int
        The number of measurements of each step.
    seconds : float
        The shortest time of a whole run, forward and backward, without clocks between the steps.
    memory_rate : float
        Bytes a second, read plus written, in the copy of a large array.
    product_rates : dict by dtype
        Additions and multiplications a second in large matrix products.
    """

    def __init__(self, rows: Iterable[ProfileRow], is_train: bool, runs: int, seconds: float, memory: float,
                 products: Mapping[np.dtype, float]):
        self.rows = sorted(rows, key=lambda row: -row.seconds)
        self.is_train, self.runs, self.seconds = is_train, runs, seconds
        self.memory_rate, self.product_rates = memory, dict(products)

    @classmethod
    def joined(cls, parts: Sequence[Profile]) -> Profile:
        """One profile for plans that run one after the other."""
        total = sum(row.seconds for part in parts for row in part.rows) or 1.0
        rates = {dtype: rate for part in parts for dtype, rate in part.product_rates.items()}
        return cls([row._replace(share=row.seconds / total) for part in parts for row in part.rows], parts[0].is_train,
                   parts[0].runs, sum(part.seconds for part in parts), parts[0].memory_rate, rates)

    def table(self, count: int = _SHOWN) -> str:
        """The slowest steps, a line each."""
        total = sum(row.seconds for row in self.rows)
        products = "".join(f", products in {dtype} {rate / 1e9:.1f} GFLOP/s"
                           for dtype, rate in sorted(self.product_rates.items(), key=lambda pair: pair[0].name))
        lines = [f"{'training' if self.is_train else 'inference'} plan, least of {self.runs} runs: "
                 f"{time_text(self.seconds)} as a whole, {time_text(total)} step by step",
                 f"the machine: memory {self.memory_rate / 1e9:.1f} GB/s{products}"]
        if self.rows:
            lines.append(f"{'step':>13} {'least':>9} {'median':>9} {'share':>6} {'read':>9} {'written':>9} "
                         f"{'GB/s':>7} {'memory':>6} {'FLOP':>8} {'GFLOP/s':>8} {'BLAS':>5}  kernel, operator")
        lines += [_line(row) for row in self.rows[:count]]
        if len(self.rows) > count:
            hidden = self.rows[count:]
            lines.append(f"and {len(hidden)} more steps, {time_text(sum(row.seconds for row in hidden))} in all")
        return report(lines)

    __str__ = table

    def __repr__(self) -> str:
        return f"<Profile of {len(self.rows)} steps, {time_text(self.seconds)} a run>"


def _line(row: ProfileRow) -> str:
    work = " " * 23
    if row.flops is not None and row.flop_rate is not None:
        share = "" if row.blas_share is None else f"{row.blas_share:5.0%}"
        work = f"{number_text(row.flops):>8} {row.flop_rate / 1e9:8.1f} {share:>5}"
    memory = (f"{number_text(row.read, 'B'):>9} {number_text(row.written, 'B'):>9} {row.rate / 1e9:7.2f} "
              f"{row.memory_share:6.0%}")
    return (f"{row.half:>8} {row.step:4} {time_text(row.seconds):>9} {time_text(row.median):>9} {row.share:6.1%} "
            f"{memory} {work}  {row.kernel}, {title_of(row.operator, row.node, row.operators)}")


# ----------------------------------------------------------------------------------------------- measuring


def _written_arrays(plan: Plan, halves: Sequence[tuple[str, Segment]], bound: Bound) -> list[tuple[Array, Context]]:
    """The arrays of the caller that steps write, with their devices: outputs, gradients, states, and weights of
    updates."""
    _, states = bound.graph.variables()
    changed = {node.inputs[i][0] for node in bound.graph.nodes if node.op is not None for i in node.op.traits.mutates}
    arrays = [*zip(bound.outputs, bound.places),
              *[(array, bound.contexts[node]) for node, (array, _) in bound.grads.items()],
              *[(bound.arrays[node], bound.contexts[node]) for node in {*states, *changed} if node in bound.arrays],
              *[(array, step.ctx) for half, segment in halves if half == "update" for step in segment.steps
                for array in step.outs if array is not None]]
    return list({id(array): (array, ctx) for array, ctx in arrays}.values())


@contextmanager
def _restore_state(arrays: Sequence[tuple[Array, Context]]) -> Iterator[None]:
    """Restore arrays and the states of random generators at the end of the block."""
    copies = [ctx.run(array.copy) for array, ctx in arrays]
    try:
        with generators.keep_states():
            yield
    finally:
        for (array, ctx), before in zip(arrays, copies):
            ctx.run(array.__setitem__, Ellipsis, before)


def profile(plan: Plan, halves: Sequence[tuple[str, Segment]], bound: Bound, run: Callable[[Segment], None],
            runs: int) -> Profile:
    """Time the steps of a plan; see ``Executor.profile``.

    Parameters
    ----------
    plan : Plan
        The plan.
    halves : list of (str, Segment)
        Its segments, with their names.
    bound : Bound
        The bound graph of the plan.
    run : function of a segment
        Runs a segment in its mode.
    runs : int
        The number of measurements.
    """
    sync = _synchronizer(plan)

    def run_once() -> float:
        start = time.perf_counter()
        for _, segment in halves:
            run(segment)
        sync()
        return time.perf_counter() - start

    with _restore_state(_written_arrays(plan, halves, bound)):
        run_once()  # a first run replaces functions of steps
        least = min([run_once() for _ in range(runs)])
        times: dict[Step, list[float]] = {}

        def clocked(seconds: list[float], work: Function) -> None:
            start = time.perf_counter()
            work()
            sync()
            seconds.append(time.perf_counter() - start)

        def wrap(_: int, step: Step) -> Watch | None:
            return functools.partial(clocked, times.setdefault(step, [])) if step.run else None

        clocks = [(segment, segment.instrument(wrap, innermost=True)) for _, segment in halves]
        try:
            for _ in range(runs):
                run_once()
        finally:
            for segment, clock in clocks:
                segment.detach(clock)
        steps = [(half, number, step) for half, segment in halves for number, step in enumerate(segment.steps)
                 if step.run]
    return _profile_of_times(plan, steps, [times[step] for _, _, step in steps], least, int(runs))


def _synchronizer(plan: Plan) -> Callable[[], None]:
    """A function that waits for all devices of a plan. On the host nothing runs asynchronously."""
    places = {(ctx.backend, ctx.device_id) for ctx in plan.contexts.values() if ctx.xp is not np}

    def synchronize() -> None:
        for backend, device in places:
            backend.synchronize(device)

    return synchronize


def _profile_of_times(plan: Plan, steps: Sequence[tuple[str, int, Step]], times: Sequence[Sequence[float]],
                      least: float, runs: int) -> Profile:
    total = sum(map(min, times)) or 1.0
    ctx = next(iter(plan.contexts.values()))
    memory, products = memory_rate(ctx), {}
    rows = []
    for (half, number, step), measured in zip(steps, times):
        node, seconds = step.node, max(min(measured), 1e-9)
        work = count_work(plan, step)
        read, written, flops = work.read, work.written, work.products
        share = None
        if flops is not None and node is not None:
            dtype = plan.specs[node][0].dtype
            assert dtype is not None
            if is_floating(dtype):
                if dtype not in products:
                    products[dtype] = product_rate(plan.contexts[node], dtype)
                share = flops / seconds / products[dtype]
        rows.append(ProfileRow(number, half, *names_of(step), step.kernel, seconds,
                               float(np.median(measured)), min(measured) / total, read, written,
                               (read + written) / seconds, (read + written) / seconds / memory, flops,
                               None if flops is None else flops / seconds, share))
    return Profile(rows, plan.is_train, runs, least, memory, products)
