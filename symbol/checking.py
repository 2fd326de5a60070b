"""Checking kernels: beside each fast one the reference runs on the same inputs, and the differences are kept.

For finding out which kernel is wrong, when one may be: every step takes as long as both kernels, and its inputs are
copied before. A fused or folded step is compared with the operators it is made of, one by one. Operators that draw
random numbers draw the same twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from opreg.core import generators
from opreg.core.graph import Node
from opreg.core.launch import Call, as_results
from opreg.core.op import Op
from opreg.core.spec import is_floating, is_numpy_float
from opreg.errors import OpError

from .plan import Plan, Step

__all__ = ["KernelCheck", "KernelReport", "check_kernels", "titled"]

#: How far kernels may differ, as a share of the largest number of the reference's result, by bytes of a number. A sum
#: of thousands of products in another order, or a convolution by another formula, stays far below.
TOLERANCE = {2: 0.125, 4: 1e-3, 8: 1e-9}

#: So many resolutions of the largest number that a step reads may always be missing: where results nearly cancel, they
#: are nothing but what rounding left.
ROUNDING = 32

Compute = Callable[[Any, Sequence[Any]], Sequence[Any]]


class KernelCheck(NamedTuple):
    """What is known of a step.

    Attributes
    ----------
    step, half
        Its place: its number in the ``forward`` or ``backward`` steps, as in ``executor.explain()``.
    operator, node, kernel : str
        What runs. Of a fused node the operators it is made of are named too.
    runs : int
        How often it has been compared.
    absolute : float
        The largest difference from the reference's result in any run.
    relative : float
        The largest difference as a share of the largest number of that result.
    resolutions : float
        ``relative`` in units of the dtype's resolution; of integers, the largest difference.
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


class KernelReport:
    """The checks of an executor's kernels, worst first; prints as a table.

    Where a result is small beside what it was computed from, because that nearly cancels, its relative difference says
    little.

    Attributes
    ----------
    rows : list of KernelCheck
        A row for each step with a kernel beside the reference.
    """

    def __init__(self, rows: Sequence[KernelCheck], others: int):
        self.rows = sorted(rows, key=lambda row: -row.resolutions)
        self._others = others

    @classmethod
    def joined(cls, parts: Sequence[KernelReport]) -> KernelReport:
        """One of several plans."""
        return cls([row for part in parts for row in part.rows], sum(part._others for part in parts))

    def __str__(self) -> str:
        lines = [f"{len(self.rows)} steps compared with the reference kernels, {self._others} have none beside them"]
        if self.rows:
            lines.append(f"{'step':>13}  {'absolute':>9}  {'relative':>9}  {'resolutions':>11}  {'runs':>4}  "
                         "kernel, operator")
        for row in self.rows:
            lines.append(f"{row.half:>8} {row.step:4}  {row.absolute:9.2g}  {row.relative:9.2g}  "
                         f"{row.resolutions:11.3g}  {row.runs:4}  {row.kernel}, {row.operator}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<KernelReport of {len(self.rows)} steps>"


def titled(node: Node) -> str:
    """Operator and name; of a fused node the operators it is made of too, and what ``channels_last`` decided."""
    found = f"{node.op.name} {node.name}"  # type: ignore[union-attr]
    if "__layout__" in node.tags:
        found += f" [{node.tags['__layout__']}]"
    return found if "operators" not in node.attrs else f"{found} ({', '.join(node.attrs['operators'])})"


# ---------------------------------------------------------------------------------------------- the reference


def _reference(op: Op, attrs: Any, is_train: bool, rng: Any) -> Compute | None:
    """The reference kernel of an operator; None where it has none that returns its results."""
    kernel = next((each for each in op.kernels if each.name == "reference"), None)
    if kernel is None or kernel.bound:
        return None

    def compute(xp: Any, ins: Sequence[Any]) -> Sequence[Any]:
        return as_results(kernel.with_attributes(Call(op, attrs, [], [], [], xp, None, is_train, rng))(*ins))

    return compute


def _fused(parts: Sequence[tuple], read: Sequence[int], results: Sequence[int | float]) -> Compute:
    """Expressions one by one, each ``(expression, operands, result)``; operands and results are numbers of values, or
    numbers themselves. Those that nobody needs are left out: what they read may be too."""
    needed: set[int | float] = set(results)
    kept = []
    for part in reversed(parts):
        if part[2] in needed:
            needed.update(part[1])
            kept.append(part)

    def compute(xp: Any, ins: Sequence[Any]) -> Sequence[Any]:
        values: dict[int | float, Any] = dict(zip(read, ins))
        for expression, operands, result in reversed(kept):
            if result not in values and not isinstance(result, float):
                dtype = next(values[each].dtype for each in operands if not isinstance(each, float))
                values[result] = expression(xp, *[xp.asarray(each, dtype) if isinstance(each, float) else values[each]
                                                  for each in operands])
        return [each if isinstance(each, float) else values[each] for each in results]

    return compute


def _folded(members: Sequence[Node]) -> Compute | None:
    """Nodes one by one, of which each reads the one before it and, for the rest, the next inputs."""
    computes = [_reference(node.op, node.attrs, False, None) for node in members]  # type: ignore[arg-type]
    if any(each is None for each in computes):
        return None

    def compute(xp: Any, ins: Sequence[Any]) -> Sequence[Any]:
        value, before, rest = None, None, iter(ins)
        for node, each in zip(members, computes):
            given = [value if source is before else next(rest) for source, _ in node.inputs]
            value, before = each(xp, given)[0], node  # type: ignore[misc]
        return [value]

    return compute


def _beside(step: Step, plan: Plan, rng: Any) -> Compute | None:
    """What a step is compared with; None where its kernel is the reference, or there is none."""
    node = step.node
    if node is None or node.op is None or not step.run or node.op.where is not None:
        return None
    if "parts" in node.attrs:
        return _fused(*node.attrs["parts"])
    if "members" in node.attrs:
        return _folded(node.attrs["members"])
    return None if step.kernel == "reference" else _reference(node.op, node.attrs, plan.is_train, rng)


# ----------------------------------------------------------------------------------------------- comparing


class _Worst(NamedTuple):
    absolute: float
    relative: float
    resolutions: float
    place: tuple[int, ...]
    got: Any
    want: Any
    allowed: float  # of ``absolute``


def _compare(xp: Any, got: Any, want: Any, read: float = 0.0) -> _Worst:
    """The largest difference of two arrays; it is infinite where one is finite and the other is not. ``read`` is the
    largest number that they were computed from."""
    dtype = got.dtype
    want = xp.broadcast_to(xp.asarray(want), got.shape)
    floating = is_floating(dtype)
    ours, theirs = (each.astype(xp.float64) if floating else each.astype(xp.int64) for each in (got, want))
    gaps = xp.abs(ours - theirs)
    if floating:
        same = (ours == theirs) | (xp.isnan(ours) & xp.isnan(theirs))
        gaps = xp.where(same, 0.0, xp.where(xp.isnan(gaps), math.inf, gaps))
    if not gaps.size:
        return _Worst(0.0, 0.0, 0.0, (), None, None, 0.0)
    at = int(gaps.argmax())
    place = tuple(int(i) for i in np.unravel_index(at, got.shape))
    absolute = float(gaps.reshape(-1)[at])
    if not floating:
        return _Worst(absolute, absolute, absolute, place, got[place], want[place], 0.0)
    largest = _largest(xp, theirs)
    relative = absolute / largest if largest else absolute
    resolution = float(np.finfo(dtype).eps) if is_numpy_float(dtype) else 2.0 ** -7
    allowed = max(TOLERANCE[dtype.itemsize] * largest, ROUNDING * resolution * read)
    return _Worst(absolute, relative, relative / resolution, place, got[place], want[place], allowed)


def _largest(xp: Any, array: Any) -> float:
    """The largest finite number of an array, without signs."""
    if not array.size or array.dtype.kind in "iub":
        return 0.0
    wide = array.astype(xp.float64)
    return float(xp.max(xp.where(xp.isfinite(wide), xp.abs(wide), 0.0)))


class _Checked:
    """The functions of a step, and its reference behind them."""

    def __init__(self, number: int, half: str, step: Step, plan: Plan, compute: Compute, rng: Any, strict: bool):
        self.number, self.half, self.kernel, self.outs, self.strict = number, half, step.kernel, step.outs, strict
        self.node: Node = step.node  # type: ignore[assignment]
        self.compute, self.functions, self.rng = compute, list(step.run), rng
        self.xp = plan.contexts[self.node].xp
        unread = self.node.op.unread  # type: ignore[union-attr]
        self.live = [None if i in unread else plan.array(entry) for i, entry in enumerate(self.node.inputs)]
        self.specs = [plan.specs[source][i] for source, i in self.node.inputs]
        self.runs, self.absolute, self.relative, self.resolutions = 0, 0.0, 0.0, 0.0

    def __call__(self) -> None:
        op: Op = self.node.op  # type: ignore[assignment]
        live = self.live
        ins = [self._stand_in(i) if array is None else array.copy() for i, array in enumerate(live)]
        bits = self.rng.bit_generator if self.rng is not None else None
        before = None if bits is None else bits.state
        for function in self.functions:
            function()
        after = None if bits is None else bits.state
        try:
            if bits is not None:
                bits.state = before
            found = self.compute(self.xp, ins)
        finally:
            if bits is not None:
                bits.state = after
        read = 0.0 if not self.strict else max([_largest(self.xp, each) for each in ins], default=0.0)
        pairs = [*zip(self.outs, found), *[(live[i], ins[i]) for i in op.mutates]]
        self.runs += 1
        for got, want in pairs:
            if got is not None and want is not None:
                self._note(_compare(self.xp, got, want, read))

    def _stand_in(self, i: int) -> Any:
        """An array of the shape of an input of which nothing else matters."""
        spec = self.specs[i]
        return self.xp.broadcast_to(self.xp.zeros((), spec.dtype), spec.shape)

    def _note(self, worst: _Worst) -> None:
        self.absolute = max(self.absolute, worst.absolute)
        self.relative = max(self.relative, worst.relative)
        self.resolutions = max(self.resolutions, worst.resolutions)
        if self.strict and worst.absolute > worst.allowed:
            raise OpError(f"kernel {self.kernel} of {titled(self.node)} computes {worst.got} at {worst.place}, "
                          f"the reference {worst.want}: they differ by {worst.absolute:.3g}, {worst.relative:.2g} of "
                          f"the largest number; allowed is {worst.allowed:.3g}")

    def row(self) -> KernelCheck:
        """What is known so far."""
        return KernelCheck(self.number, self.half, titled(self.node), self.node.name, self.kernel, self.runs,
                           self.absolute, self.relative, self.resolutions)


def check_kernels(plan: Plan, strict: bool) -> Callable[[], KernelReport]:
    """Let the reference run beside every other kernel of a plan that has not run yet.

    Parameters
    ----------
    plan : Plan
        Its steps are changed.
    strict : bool
        Whether a difference far beyond rounding raises an error that names operator, node, kernel and place.

    Returns
    -------
    function
        Makes the report of what has run so far.
    """
    checked: list[_Checked] = []
    others = 0
    for half, segment in (("forward", plan.forward), ("backward", plan.backward)):
        for number, step in enumerate(segment.steps):
            op = None if step.node is None else step.node.op
            rng = None
            if op is not None and op.random:
                ctx = plan.contexts[step.node]  # type: ignore[index]
                rng = generators.generator(ctx.backend_name, ctx.device_id)
            compute = _beside(step, plan, rng)
            if compute is None:
                others += bool(step.run)
                continue
            checked.append(_Checked(number, half, step, plan, compute, rng, strict))
            step.run = [checked[-1]]
    return lambda: KernelReport([each.row() for each in checked], others)
