"""Estimates of the time that a plan would take on a device, which need not be present, from the work of its steps.

The model is a roofline with the cost of launches. The work of a step takes the longer of its memory time and its
arithmetic time. Launched one by one, a step takes at least the time in which the host launches its kernels; in a
replayed graph, each kernel costs a fixed time beside its work. A step that runs Python each time is an island between
two graphs. Copies between devices take the time of the link. The estimate leaves out the work of the bodies of
``while_loop``, ``cond`` and users' operators, the effect of caches, and kernels that leave a part of the device idle.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from opreg.core.reports import NotebookTable, report
from opreg.errors import ArgumentError, did_you_mean

from ..plan import Plan, Segment, Step
from ..replay import runs_python
from .work import Rounds, Work, count_work, names_of, number_text, time_text, title_of

__all__ = ["Estimate", "EstimateRow", "H100", "H200", "MACHINES", "Machine", "estimate", "machine_of"]

_SHOWN = 40  # rows of a table by default


@dataclass(frozen=True)
class Machine:
    """The rates of a device that estimates need.

    Attributes
    ----------
    name : str
    memory_rate : float
        Bytes a second, read plus written, in the copy of a large array.
    product_rates : dict of dtype name to float
        Additions and multiplications a second in large matrix products. Products of other dtypes are not counted.
        launch : float
        Seconds that the host takes to launch a kernel.
    node : float
        Seconds that a kernel costs beside its work in a replayed graph.
    link_rate : float
        Bytes a second from one device to another.

    Examples
    --------
    >>> import dataclasses
    >>> dataclasses.replace(H100, name="half as wide", memory_rate=H100.memory_rate / 2).name
    'half as wide'
    """

    name: str
    memory_rate: float
    product_rates: Mapping[str, float]
    launch: float
    node: float
    link_rate: float = 450e9

    def work_seconds(self, work: Work, dtype: str) -> tuple[float, float]:
        """Seconds of memory traffic, and of arithmetic with results of a dtype."""
        wide = "float64" if dtype == "float64" else "float32"  # the dtype that expressions are computed in
        rate, plain = self.product_rates.get(dtype), self.product_rates.get(wide)
        return (work.read + work.written) / self.memory_rate, sum(
            count / per_second for count, per_second in ((work.products, rate), (work.instructions, plain))
            if count and per_second)


#: NVIDIA's H100 (SXM), from published measurements of a copy, of products in bfloat16, of launches by the driver
#: without Python's share, and of kernels in a replayed graph. float16 is assumed to be as fast as bfloat16. The rates
#: of float32 without TF32, of float64, and of the links in one direction are those of the data sheet.
H100 = Machine("H100", 2.95e12, {"bfloat16": 770e12, "float16": 770e12, "float32": 67e12, "float64": 67e12},
               launch=5e-6, node=0.9e-6)
#: NVIDIA's H200, which is an H100 with faster memory.
H200 = replace(H100, name="H200", memory_rate=4.3e12)
#: Machines by name.
MACHINES = {machine.name: machine for machine in (H100, H200)}


def machine_of(machine: Machine | str | None, device: str = "") -> Machine:
    """A machine by its name, or by that of a device; an H100 if neither is known.

    Raises
    ------
    ArgumentError
        If there is no machine of that name.

    Examples
    --------
    >>> machine_of("H200").name, machine_of(None, "NVIDIA H200").name, machine_of(None).name
    ('H200', 'H200', 'H100')
    """
    if machine is None:
        return next((machine for name, machine in MACHINES.items() if name in device), H100)
    if isinstance(machine, str) and machine in MACHINES:
        return MACHINES[machine]
    if isinstance(machine, Machine):
        return machine
    raise ArgumentError(f"estimate: machine={machine!r}: expected a Machine, or the name of one. "
                        f"{did_you_mean(str(machine), MACHINES)}")


class EstimateRow(NamedTuple):
    """A step and its expected cost.

    Attributes
    ----------
    step, half
        Its index among the ``forward`` or ``backward`` steps, as in ``executor.explain()``.
    operator, node, operators
        Its operator and node; for a fused node, also the operators in it.
    kernel : str
        The kernel on the device where the executor is bound.
    launches : int
        The number of kernels that are launched, at least: calls inside of a reference kernel are not counted.
    read, written : int
        Bytes that its kernels declare to move, each pass over an array counted. If they declare nothing, as on the
        host, the bytes of inputs and outputs, each counted once.
    flops : int
        Additions and multiplications of products and convolutions, and instructions of expressions.
    eager, replayed : float
        Seconds, launched by itself, and in a replayed graph.
    limit : {"launch", "memory", "arithmetic"}
        The largest part of ``eager``.
    island : str
        The reason why it cannot be in a replayed graph; empty if it can.
    """

    step: int
    half: str
    operator: str
    node: str
    operators: tuple[str, ...]
    kernel: str
    launches: int
    read: int
    written: int
    flops: int
    eager: float
    replayed: float
    limit: str
    island: str


class Estimate(NotebookTable):
    """The report of ``executor.estimate``; prints as a table, the longest step first.

    Attributes
    ----------
    rows : list of EstimateRow
        The steps that run, longest first; views have none.
    machine : Machine
    is_train : bool
        The mode of the plan.
    launches, read, written, flops : int
        Sums over all steps.
    eager, replayed : float
        Seconds of all steps, launched one by one, and replayed, with one launch for each graph between islands.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.sym.Variable("x")
    >>> net = mx.sym.tanh(mx.sym.dot(x, x) * 2)
    >>> found = net.simple_bind(mx.cpu(), x=(512, 512), grad_req="null").estimate()
    >>> [(row.launches, row.read, row.written, row.flops, row.limit) for row in found.rows]
    [(1, 1048576, 1048576, 268435456, 'launch'), (1, 1048576, 1048576, 524288, 'launch')]
    """

    def __init__(self, rows: Iterable[EstimateRow], machine: Machine, is_train: bool, graphs: int):
        self.rows = sorted(rows, key=lambda row: (-row.replayed, -row.eager))
        self.machine, self.is_train, self._graphs = machine, is_train, graphs
        self.launches, self.read, self.written, self.flops, self.eager = [
            sum(getattr(row, name) for row in self.rows) for name in ("launches", "read", "written", "flops", "eager")]

    @classmethod
    def joined(cls, parts: Sequence[Estimate], machine: Machine, is_train: bool) -> Estimate:
        """One estimate for plans that run one after the other."""
        return cls([row for part in parts for row in part.rows], machine, is_train,
                   sum(part._graphs for part in parts))

    @property
    def replayed(self) -> float:
        """Seconds of all steps in graphs that are replayed, with a launch for each graph."""
        return sum(row.replayed for row in self.rows) + self._graphs * self.machine.launch

    def table(self, count: int = _SHOWN) -> str:
        """The longest steps, a line each."""
        machine = self.machine
        rates = "".join(f", {dtype} {rate / 1e12:.3g}" for dtype, rate in machine.product_rates.items())
        lines = [f"{'training' if self.is_train else 'inference'} plan, expected on {machine.name}: "
                 f"{time_text(self.eager)} launched one by one, {time_text(self.replayed)} replayed; "
                 f"{self.launches} launches, {number_text(self.read + self.written, 'B')}, "
                 f"{number_text(self.flops, 'FLOP')}",
                 f"the device: memory {machine.memory_rate / 1e9:.0f} GB/s; TFLOP/s{rates.removeprefix(',')}; "
                 f"a launch {time_text(machine.launch)}, a kernel in a replay {time_text(machine.node)}"]
        if self.rows:
            lines.append(f"{'step':>13} {'eager':>9} {'replayed':>9} {'launches':>8} {'read':>9} {'written':>9} "
                         f"{'FLOP':>8} {'limit':>10}  kernel, operator")
        for row in self.rows[:count]:
            name = title_of(row.operator, row.node, row.operators) + (", an island" if row.island else "")
            lines.append(f"{row.half:>8} {row.step:4} {time_text(row.eager):>9} {time_text(row.replayed):>9} "
                         f"{row.launches:8} {number_text(row.read, 'B'):>9} "
                         f"{number_text(row.written, 'B'):>9} {number_text(row.flops):>8} {row.limit:>10}  "
                         f"{row.kernel}, {name}")
        hidden = self.rows[count:]
        if hidden:
            lines.append(f"and {len(hidden)} more steps, {time_text(sum(row.replayed for row in hidden))} replayed")
        return report(lines)

    __str__ = table

    def __repr__(self) -> str:
        return f"<Estimate of {len(self.rows)} steps on {self.machine.name}, {time_text(self.replayed)} replayed>"


def estimate(plan: Plan, halves: Sequence[tuple[str, Segment]], machine: Machine) -> Estimate:
    """Estimate the time of each step of a plan; see ``Executor.estimate``."""
    rows = [_row(plan, half, number, step, machine) for half, segment in halves
            for number, step in enumerate(segment.steps) if step.run]
    graphs = sum(not island for (_, island), _ in itertools.groupby(rows, lambda row: (row.half, bool(row.island))))
    return Estimate(rows, machine, plan.is_train, graphs)


def _row(plan: Plan, half: str, number: int, step: Step, machine: Machine) -> EstimateRow:
    work = count_work(plan, step)
    dtype = "" if step.node is None or not plan.specs[step.node] else str(plan.specs[step.node][0].dtype)
    names = names_of(step)
    memory, arithmetic = machine.work_seconds(work, dtype)
    if step.node is not None and any(plan.contexts[source] != plan.contexts[step.node]
                                     for source, _ in step.node.inputs):  # a copy between devices
        memory = work.written / machine.link_rate
    launch, longest = work.launches * machine.launch, max(memory, arithmetic)
    replayed = longest + work.launches * machine.node
    limit = "launch" if launch > replayed else "memory" if memory >= arithmetic else "arithmetic"
    eager, island = max(launch, replayed), runs_python(step) or ""
    row = EstimateRow(number, half, *names, step.kernel, work.launches, work.read, work.written,
                      (work.products or 0) + (work.instructions or 0), eager, eager if island else replayed, limit,
                      island)
    for function in step.run:
        if isinstance(function, Rounds):
            row = _loop_row(row, function, machine)
    return row


def _loop_row(row: EstimateRow, loop: Rounds, machine: Machine) -> EstimateRow:
    """The row of a loop, with the cost of its body, an executor with graphs of its own, for all rounds."""
    body, count = loop.body.estimate(loop.is_train, machine), loop.count
    return row._replace(launches=count * body.launches, read=row.read + count * body.read,
                        written=row.written + count * body.written, flops=count * body.flops,
                        eager=row.eager + count * body.eager, replayed=row.replayed + count * body.replayed)
