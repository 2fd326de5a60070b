"""Checks of kernels: the reference kernel runs beside each faster one, on the same inputs, and differences are
recorded.

This serves to find a wrong kernel. It is slow: each step copies its inputs and runs both kernels. A fused or folded
step is compared with its operators, run one by one. Operators that draw random numbers draw the same ones twice.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from opreg.core import generators
from opreg.core.array_module import backend
from opreg.core.graph import Node
from opreg.core.launch import reference
from opreg.core.reports import NotebookTable, report
from opreg.core.spec import is_floating, is_numpy_float
from opreg.elementwise.expression import Expression
from opreg.errors import OpError
from opreg.ndarray.context import Context
from opreg.ndarray.eager import BoundRunner
from opreg.ndarray.finite import Compute, reference_of
from opreg.ndarray.ndarray import wrap
from opreg.typing import Array, ArrayModule

from ..passes.fuse import Part
from ..plan import Function, Plan, Step, Watch
from .explain import node_title

__all__ = ["KernelCheck", "KernelReport", "Member", "check_kernels", "folded_members", "fused_members"]

#: The allowed difference by the dtype's bytes, as a fraction of the largest absolute value of the reference's result.
#: Sums of thousands of products in another order, and convolutions by another formula, differ by much less.
TOLERANCE = {2: 0.125, 4: 1e-3, 8: 1e-9}

#: The difference that is always allowed, in units of the dtype's resolution at the largest input. If terms nearly
#: cancel, the result is only rounding error.
ROUNDING = 32


class KernelCheck(NamedTuple):
    """The comparison of a step's kernel with its reference.

    Attributes
    ----------
    step, half
        Its index among the ``forward`` or ``backward`` steps, as in ``executor.explain()``.
    operator, node, kernel : str
        Names; for a fused node, also those of its operators.
    runs : int
        The number of comparisons.
    absolute : float
        The largest difference from the reference's result in any run.
    relative : float
        The largest difference as a fraction of the largest absolute value of that result.
    resolutions : float
        ``relative`` in units of the dtype's resolution; for integers, the largest difference.
    """

    step: int
    half: str
    operator: str
    node: str
    kernel: str
    runs: int
    absolute: float
    relative: float
    resolutions: float


class KernelReport(NotebookTable):
    """The checks of an executor's kernels, worst first; prints as a table.

    A large relative difference may be rounding error, if the terms of a result nearly cancel.

    Attributes
    ----------
    rows : list of KernelCheck
        A row for each step whose kernel is not the reference.
    """

    def __init__(self, rows: Sequence[KernelCheck], others: int):
        self.rows = sorted(rows, key=lambda row: -row.resolutions)
        self._others = others

    @classmethod
    def joined(cls, parts: Sequence[KernelReport]) -> KernelReport:
        """One report for several plans."""
        return cls([row for part in parts for row in part.rows], sum(part._others for part in parts))

    def __str__(self) -> str:
        lines = [f"{len(self.rows)} steps compared with the reference kernels, {self._others} have none beside them"]
        if self.rows:
            lines.append(f"{'step':>13}  {'absolute':>9}  {'relative':>9}  {'resolutions':>11}  {'runs':>4}  "
                         "kernel, operator")
        for row in self.rows:
            lines.append(f"{row.half:>8} {row.step:4}  {row.absolute:9.2g}  {row.relative:9.2g}  "
                         f"{row.resolutions:11.3g}  {row.runs:4}  {row.kernel}, {row.operator}")
        return report(lines)

    def __repr__(self) -> str:
        return f"<KernelReport of {len(self.rows)} steps>"


# ---------------------------------------------------------------------------------------------- the reference


class Member(NamedTuple):
    """One operator of a fused or folded node, computed alone.

    Attributes
    ----------
    number : int
        Its index among the operators.
    compute : function
        The reference.
    operands, result : arrays
        Its inputs and its output.
    """

    number: int
    compute: Compute
    operands: Sequence[Array]
    result: Array


def fused_members(parts: Sequence[Part], read: Sequence[int], results: Sequence[int | float], xp: ArrayModule,
                  ins: Sequence[Array]) -> Iterator[Member]:
    """Compute the expressions of a fused node one by one. Each part is ``(expression, operands, result)``; operands and
    results are indices of values, or floats. Parts whose results nothing reads are skipped, and their inputs may be
    missing."""
    needed: set[int | float] = set(results)
    fused = []
    for number, part in reversed(list(enumerate(parts))):
        if part[2] in needed:
            needed.update(part[1])
            fused.append((number, part))
    values: dict[int | float, Array] = dict(zip(read, ins))
    for number, (expression, operands, result) in reversed(fused):
        if isinstance(result, float):
            continue
        dtype = next(values[operand].dtype for operand in operands if not isinstance(operand, float))
        arrays = [xp.asarray(operand, dtype) if isinstance(operand, float) else values[operand] for operand in operands]
        if result not in values:
            values[result] = expression(xp, *arrays)
        yield Member(number, functools.partial(_one, expression), arrays, values[result])


def _one(expression: Expression, xp: ArrayModule, ins: Sequence[Array]) -> Sequence[Array]:
    return [expression(xp, *ins)]


def _fused_run(parts: Sequence[Part], read: Sequence[int], results: Sequence[int | float]) -> Compute:
    """A function that computes the results of a fused node, one expression after the other."""

    def compute(xp: ArrayModule, ins: Sequence[Array]) -> Sequence[Array | float]:
        values: dict[int | float, Array] = dict(zip(read, ins))
        for member in fused_members(parts, read, results, xp, ins):
            values[parts[member.number][2]] = member.result
        return [number if isinstance(number, float) else values[number] for number in results]

    return compute


def folded_members(members: Sequence[Node], xp: ArrayModule, ins: Sequence[Array]) -> Iterator[Member]:
    """Compute folded nodes one by one. Each reads the output of the one before it, and its other operands are the next
    inputs."""
    value, before, rest = ins[0], None, iter(ins)
    for number, node in enumerate(members):
        assert node.op is not None
        compute = reference_of(node.op, node.attrs, False, None)
        assert compute is not None
        operands = [value if source is before else next(rest) for source, _ in node.inputs]
        result, before = compute(xp, operands)[0], node
        assert result is not None and not isinstance(result, float)
        value = result
        yield Member(number, compute, operands, value)


def _folded_run(members: Sequence[Node]) -> Compute | None:
    """A function that computes the result of folded nodes, one after the other."""
    if any(node.op is None or reference_of(node.op, node.attrs, False, None) is None for node in members):
        return None

    def compute(xp: ArrayModule, ins: Sequence[Array]) -> Sequence[Array]:
        return [list(folded_members(members, xp, ins))[-1].result]

    return compute


def _reference_of(step: Step, plan: Plan, rng: np.random.Generator | None) -> Compute | None:
    """The reference to compare a step with; None if its kernel is the reference, or there is none."""
    node = step.node
    if node is None or node.op is None or not step.run:
        return None
    if node.op.where is not None:  # a user's operator
        has_reference = step.kernel != node.op.kernels[0].name
        return functools.partial(_run_users_code, node, plan.contexts[node], plan.is_train) if has_reference else None
    if "parts" in node.attrs:
        return _fused_run(*node.attrs["parts"])
    if "members" in node.attrs:
        return _folded_run(node.attrs["members"])
    if step.kernel == "reference" or any(getattr(function, "draws", False) for function in step.run):
        return None
    return reference_of(node.op, node.attrs, plan.is_train, rng)


def _run_users_code(node: Node, ctx: Context, is_train: bool, xp: ArrayModule, ins: Sequence[Array]) -> Sequence[Array]:
    """The outputs of a user's operator, by its own code."""
    assert node.op is not None
    return BoundRunner(node.op, node.attrs, ins, ctx, is_train, wrap)(reference)


# ----------------------------------------------------------------------------------------------- comparing


class _Worst(NamedTuple):
    absolute: float
    relative: float
    resolutions: float
    place: tuple[int, ...]
    got: object
    want: object
    allowed: float  # limit of ``absolute``


def _compare(got: np.ndarray, want: np.ndarray | float, read: float = 0.0) -> _Worst:
    """The largest difference of two arrays on the host; infinite where one is finite and the other is not. ``read`` is
    the largest absolute value among the inputs."""
    dtype = got.dtype
    reference = np.broadcast_to(np.asarray(want), got.shape)
    floating = is_floating(dtype)
    wide = np.float64 if floating else np.int64
    ours, theirs = got.astype(wide), reference.astype(wide)
    gaps = np.abs(ours - theirs)
    if floating:
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        gaps = np.where(same, 0.0, np.where(np.isnan(gaps), math.inf, gaps))
    if not gaps.size:
        return _Worst(0.0, 0.0, 0.0, (), None, None, 0.0)
    at = int(gaps.argmax())
    place = tuple(int(i) for i in np.unravel_index(at, got.shape))
    absolute = float(gaps.reshape(-1)[at])
    if not floating:
        return _Worst(absolute, absolute, absolute, place, got[place], reference[place], 0.0)
    largest = _largest(theirs)
    relative = absolute / largest if largest else absolute
    resolution = float(np.finfo(dtype).eps) if is_numpy_float(dtype) else 2.0 ** -7
    allowed = max(TOLERANCE[dtype.itemsize] * largest, ROUNDING * resolution * read)
    return _Worst(absolute, relative, relative / resolution, place, got[place], reference[place], allowed)


def _largest(array: np.ndarray) -> float:
    """The largest absolute value among the finite elements of an array."""
    if not array.size or array.dtype.kind in "iub":
        return 0.0
    wide = array.astype(np.float64)
    return float(np.max(np.where(np.isfinite(wide), np.abs(wide), 0.0)))


class _CheckedStep:
    """Runs a step and then its reference, and records the difference."""

    def __init__(self, number: int, half: str, step: Step, plan: Plan, compute: Compute,
                 rng: np.random.Generator | None, strict: bool):
        self.number, self.half, self.kernel, self.outs, self.strict = number, half, step.kernel, step.outs, strict
        assert step.node is not None and step.node.op is not None
        self.node, self.op = step.node, step.node.op
        self.compute = compute
        ctx = plan.contexts[self.node]
        self.backend = backend(ctx.backend_name)
        self.xp, self.places = ctx.xp, [] if rng is None else [(ctx.backend_name, ctx.device_id)]
        self.live = [None if i in self.op.traits.unread else plan.array(entry)
                     for i, entry in enumerate(self.node.inputs)]
        self.specs = [plan.specs[source][i] for source, i in self.node.inputs]
        self.runs, self.absolute, self.relative, self.resolutions = 0, 0.0, 0.0, 0.0

    def __call__(self, work: Function) -> None:
        live = self.live
        ins = [self._shape_placeholder(i) if array is None else array.copy() for i, array in enumerate(live)]
        before = [generators.state(*place) for place in self.places]
        work()
        after = [generators.state(*place) for place in self.places]
        try:
            for place, state in zip(self.places, before):
                generators.set_state(state, *place)
            results = self.compute(self.xp, ins)
        finally:
            for place, state in zip(self.places, after):
                generators.set_state(state, *place)
        read = 0.0 if not self.strict else max([_largest(self._host(array)) for array in ins], default=0.0)
        pairs = [*zip(self.outs, results), *[(live[i], ins[i]) for i in self.op.traits.mutates]]
        self.runs += 1
        for got, want in pairs:
            if got is not None and want is not None:
                self._note(_compare(self._host(got), self._host(want), read))

    def _host(self, value: Any) -> Any:
        """An array copied to the host; other values unchanged."""
        return self.backend.to_numpy(value) if isinstance(value, self.xp.ndarray) else value

    def _shape_placeholder(self, i: int) -> Array:
        """An array in place of an input of which kernels read only the shape."""
        spec = self.specs[i]
        return self.xp.broadcast_to(self.xp.zeros((), spec.dtype), spec.shape)

    def _note(self, worst: _Worst) -> None:
        self.absolute = max(self.absolute, worst.absolute)
        self.relative = max(self.relative, worst.relative)
        self.resolutions = max(self.resolutions, worst.resolutions)
        if self.strict and worst.absolute > worst.allowed:
            raise OpError(f"kernel {self.kernel} of {node_title(self.node)} computes {worst.got} at {worst.place}, "
                          f"the reference {worst.want}: they differ by {worst.absolute:.3g}, {worst.relative:.2g} of "
                          f"the largest element; the tolerance is {worst.allowed:.3g}")

    def row(self) -> KernelCheck:
        """The row of the table for all runs so far."""
        return KernelCheck(self.number, self.half, node_title(self.node), self.node.name, self.kernel, self.runs,
                           self.absolute, self.relative, self.resolutions)


def check_kernels(plan: Plan, strict: bool) -> Callable[[], KernelReport]:
    """Run the reference beside every other kernel of a plan that has not run yet.

    Parameters
    ----------
    plan : Plan
        The plan.
    strict : bool
        Whether a difference far beyond rounding raises an error that names operator, node, kernel and position.

    Returns
    -------
    function
        Makes the report of all runs so far.
    """
    checked: list[_CheckedStep] = []
    others: list[Step] = []

    def wrap(half: str, number: int, step: Step) -> Watch | None:
        rng = None
        if step.node is not None and step.node.op is not None and step.node.op.traits.random:
            ctx = plan.contexts[step.node]
            rng = generators.generator(ctx.backend_name, ctx.device_id)
        compute = _reference_of(step, plan, rng)
        if compute is not None:
            checked.append(_CheckedStep(number, half, step, plan, compute, rng, strict))
            return checked[-1]
        if step.run:
            others.append(step)
        return None

    plan.instrument(wrap)
    return lambda: KernelReport([step.row() for step in checked], len(others))
