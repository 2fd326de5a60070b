"""Explanations of plans, one line a step: its kernel, why faster ones declined, and the place of its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opreg.core.graph import Node

from ..plan import Plan, Segment, Step

__all__ = ["explanation_lines", "line_of", "node_title"]


def node_title(node: Node) -> str:
    """Operator and name of a node, its layout if ``channels_last`` chose one, and the operators in a fused node."""
    assert node.op is not None
    title = f"{node.op.name} {node.name}"
    if "__layout__" in node.tags:
        title += f" [{node.tags['__layout__']}]"
    return title if "operators" not in node.attrs else f"{title} ({', '.join(node.attrs['operators'])})"


def line_of(number: int, step: Step) -> str:
    """The line of a step."""
    name = f"{step.title}: " if step.title else "" if step.node is None else f"{node_title(step.node)}: "
    declined = "".join(f"; {kernel} declined: {reason}" for kernel, reason in step.declined)
    copies = step.copies and f"; {step.copies}"
    return f"  {number:4} {name}{step.kernel}{declined}{copies} -> {step.where}"


def explanation_lines(plan: Plan, segments: Sequence[tuple[str, Segment]]) -> Iterator[str]:
    """The lines that explain a plan."""
    yield (f"{'training' if plan.is_train else 'inference'} plan, {plan.nbytes} bytes beside arguments, outputs and "
           "gradients")
    for title, segment in segments:
        if segment.steps:
            yield f"{title}, {segment.description()}:" if segment.description() else f"{title}:"
        for number, step in enumerate(segment.steps):
            recording = segment.description(step)
            yield line_of(number, step) + (recording and f"; {recording}")
