"""Checks of results in plans: the first step that makes a NaN or an infinity from finite inputs raises an error.

After each step its results are checked; inputs that it overwrites are copied first. The operators of a fused or folded
step are then computed one by one, to find the one that made the value.
"""

from __future__ import annotations

from collections.abc import Iterator

from opreg.core.graph import Node
from opreg.core.mode import quiet
from opreg.elementwise.expression import Expression
from opreg.errors import Where
from opreg.ndarray.finite import Compute, Named, deliberate, is_finite, raise_non_finite, reference_of
from opreg.typing import Array

from ..plan import Function, Plan, Step, Watch
from .checking import Member, folded_members, fused_members

__all__ = ["check_numbers"]


class _ResultCheck:
    """Checks the results of a step.

    Parameters
    ----------
    place : str
        The position of the step in the plan, as text.
    """

    def __init__(self, place: str, step: Step, plan: Plan, choice: bool | str):
        self.place, self.node, self.kernel, self.choice = place, step.node, step.kernel, choice
        self.xp, self.where = step.ctx.xp, step.where
        self.is_train = plan.is_train
        ins, outs = list(step.ins), list(step.outs)
        names = [step.where] * len(ins)
        outputs = [step.where]
        self.blameless = not any(array is not None for array in ins)
        if step.node is not None and step.node.op is not None:
            op, attrs = step.node.op, step.node.attrs
            names, outputs = list(op.signature.inputs(attrs)), list(op.signature.outputs(attrs))
            outs = outs[:op.signature.visible(attrs)] + [ins[i] for i in op.traits.mutates]
            outputs = outputs[:op.signature.visible(attrs)] + [names[i] for i in op.traits.mutates]
            added = [i for i in range(len(outs)) if (step.node, i) in plan._adds]
            names += [f"{outputs[i]} so far" for i in added]
            ins += [outs[i] for i in added]
            self.blameless = self.blameless or deliberate(op, attrs)
        self.ins: Named = list(zip(names, ins))
        self.outs: Named = list(zip(outputs, outs))
        self.count = len(step.ins)
        self.changed = [array is not None and any(out is not None and self.xp.may_share_memory(array, out)
                                                  for out in outs) for array in ins]

    def __call__(self, work: Function) -> None:
        before = [(name, array.copy() if changed and array is not None else array)
                  for (name, array), changed in zip(self.ins, self.changed)]
        work()
        xp = self.xp
        if self.blameless or all(array is None or is_finite(xp, array) for _, array in self.outs):
            return
        if all(array is None or is_finite(xp, array) for _, array in before):
            self._raise(before)

    def _raise(self, before: Named) -> None:
        """Raise the error, unless an operator inside of a fused node made the value on purpose."""
        node, more, culprit = self.node, "", None
        if node is None or node.op is None:
            raise_non_finite(f"storing {self.where}, {self.place}", self.xp, before, self.outs, self.choice)
        compute: Compute | None = reference_of(node.op, node.attrs, self.is_train, None)
        ins = [array for _, array in before[:self.count]]
        members = self._members(node, ins)
        if members is not None:
            compute = None
            for member in members:
                if not is_finite(self.xp, member.result):
                    culprit = member
                    break
            if culprit is None:
                more = "the operators that it is made of compute finite numbers, one by one"
            elif not all(is_finite(self.xp, operand) for operand in culprit.operands) or self._infinite(node, culprit):
                return  # the attributes contain an infinity
        elif compute is not None and self.kernel != "reference" and not node.op.traits.random:
            results = quiet(compute, self.xp, ins)  # type: ignore[arg-type]  # those that are read are there
            if all(result is None or is_finite(self.xp, self.xp.asarray(result)) for result in results):
                more = "its reference kernel computes finite numbers"
        who = f"{node.describe()}, {self.place}"
        if culprit is None:
            raise_non_finite(who, self.xp, before, self.outs, self.choice, compute, more)
        operator, name, where = self._member(node, culprit.number)
        described = Node(None, name, where=where).describe().replace("variable", f"operator {operator}", 1)
        many = len(culprit.operands) > 1
        operands = [(f"operand {i}" if many else "operand", array) for i, array in enumerate(culprit.operands)]
        raise_non_finite(f"{described}, a part of {who}", self.xp, operands, [("result", culprit.result)], self.choice,
                         culprit.compute)

    def _members(self, node: Node, ins: list[Array | None]) -> Iterator[Member] | None:
        """The operators of a fused or folded node, computed one by one; None for any other node."""
        if "parts" in node.attrs:
            parts, read, results = node.attrs["parts"]
            return _without_warnings(fused_members(parts, read, results, self.xp, ins))  # type: ignore[arg-type]
        if "members" in node.attrs and all(
                member.op is not None and reference_of(member.op, member.attrs, False, None) is not None
                for member in node.attrs["members"]):
            return _without_warnings(folded_members(node.attrs["members"], self.xp, ins))  # type: ignore[arg-type]
        return None

    @staticmethod
    def _member(node: Node, number: int) -> tuple[str, str, Where | None]:
        """Operator, node name and line of one of the operators in a fused or folded node."""
        if "parts" in node.attrs:
            return (node.attrs["operators"][number], *node.attrs["origins"][number])
        member = node.attrs["members"][number]
        return member.op.name, member.name, member.where

    @staticmethod
    def _infinite(node: Node, member: Member) -> bool:
        """Whether an operator in a fused or folded node has an infinity among its attributes."""
        if "members" in node.attrs:
            culprit = node.attrs["members"][member.number]
            return deliberate(culprit.op, culprit.attrs)
        expression: Expression = node.attrs["parts"][0][member.number][0]
        return any(deliberate(None, {"numbers": numbers}) for _, numbers in expression.code)


def _without_warnings(members: Iterator[Member]) -> Iterator[Member]:
    """The same members, computed without numeric warnings."""
    while (member := quiet(next, members, None)) is not None:
        yield member


def check_numbers(plan: Plan, choice: bool | str) -> None:
    """Check the results of each step of a plan that has not run yet.

    Parameters
    ----------
    plan : Plan
        The plan.
    choice : True or "debug"
        Whether a debugger stops before the error is raised.
    """
    counts = {"forward": len(plan.forward.steps), "backward": len(plan.backward.steps)}

    def wrap(half: str, number: int, step: Step) -> Watch | None:
        place = f"{half} step {number} of {counts[half]}, kernel {step.kernel}"
        return _ResultCheck(place, step, plan, choice) if step.run else None

    plan.instrument(wrap)
