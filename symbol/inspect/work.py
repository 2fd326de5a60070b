"""The work of the steps of a plan, counted rather than measured: launches, bytes and arithmetic.

Kernels of a device declare the bytes that they move, each pass over an array counted. For other kernels, such as all on
the host, each input and output counts once. Arithmetic is that which operators declare by ``Op.flops``, and the
instructions of expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from opreg.core.graph import Node
from opreg.core.spec import size
from opreg.core.steps import bytes_moved

from ..plan import Plan, Step
from ..program import nbytes

__all__ = ["Rounds", "Work", "names_of", "number_text", "time_text", "title_of", "count_work"]


class Work(NamedTuple):
    """Launches, bytes and arithmetic of a step in one run.

    Attributes
    ----------
    launches : int
        Kernels that are launched on the device. A reference kernel counts as one, although it calls the array module
        several times.
    read, written : int
        Bytes that its kernels declare to move. If they declare nothing, the bytes of inputs and outputs, each counted
        once. A table that is looked up counts as many bytes as the output has. An input whose shape alone is read
        counts none.
    products : int or None
        Additions and multiplications, for operators that declare them.
    instructions : int or None
        Instructions for all elements, for element-wise operators.
    """

    launches: int
    read: int
    written: int
    products: int | None = None
    instructions: int | None = None


class Rounds:
    """The function of a loop whose number of rounds is known before it runs.

    Attributes
    ----------
    run : function
        Runs the whole loop.
    body : Executor
    count : int
        The number of rounds.
    is_train : bool
        The mode of the body's plan.
    """

    __slots__ = ("run", "body", "count", "is_train")

    def __init__(self, run: Callable[[], None], body: Any, count: int, is_train: bool):
        self.run, self.body, self.count, self.is_train = run, body, count, is_train

    def __call__(self) -> None:
        self.run()


def count_work(plan: Plan, step: Step) -> Work:
    """Count the work of a step."""
    node = step.node
    if node is None:  # a step of the executor: it fills, copies or adds memory
        written = sum(int(out.nbytes) for out in step.outs if out is not None)
        if step.title:  # the step of an update is one call or one launch
            return Work(1, sum(int(array.nbytes) for array in step.ins if array is not None), written, None,
                        step.instructions)
        read = 0 if step.kernel == "zeros" else written * (2 if step.kernel == "add" else 1)
        return Work(len(step.run), read, written)
    op = node.op
    assert op is not None
    ins, outs = [plan.specs[source][i] for source, i in node.inputs], plan.specs[node]
    largest = nbytes(outs)
    read = sum({entry: min(nbytes([spec]), largest) if i in op.traits.partly else nbytes([spec])
                for i, (entry, spec) in enumerate(zip(node.inputs, ins)) if i not in op.traits.unread}.values())
    written = sum(int(out.nbytes) for out in step.outs if out is not None) + nbytes(ins[i] for i in op.traits.mutates)
    moved = [bytes_moved(function) for function in step.run]
    if plan.contexts[node].xp is not np and None not in moved:
        read, written = map(sum, zip(*moved)) if moved else (0, 0)
    products = op.rules.work([spec.shape for spec in ins], [spec.shape for spec in outs], node.attrs)  # type: ignore[misc]
    instructions, launches = _instructions(plan, node), len(step.run)
    if instructions is not None and plan.contexts[node].xp is np:
        launches = min(launches, 1)  # one function for each instruction on the host is one kernel on a device
    return Work(launches, read, written, products, instructions)


def _instructions(plan: Plan, node: Node) -> int | None:
    assert node.op is not None
    expression = None if node.op.rules.expression is None else node.op.rules.expression(node.attrs)
    return None if expression is None else len(expression.code) * size(plan.specs[node][0].shape or ())


def names_of(step: Step) -> tuple[str, str, tuple[str, ...]]:
    """Operator and node of a step, and the operators in it; title and place of a step that the executor added."""
    if step.node is None:
        return step.title, step.where, ()
    return step.node.op.name, step.node.name, tuple(step.node.attrs.get("operators", ()))  # type: ignore[union-attr]


def title_of(operator: str, node: str, operators: Sequence[str]) -> str:
    """The answer of ``names_of`` as one text.

    Examples
    --------
    >>> title_of("_fused", "act", ("exp", "tanh"))
    '_fused act (exp, tanh)'
    """
    return f"{operator} {node}".strip() + (f" ({', '.join(operators)})" if operators else "")


def time_text(seconds: float) -> str:
    """A time as text, in ms or µs.

    Examples
    --------
    >>> time_text(0.0025), time_text(3e-6)
    ('2.50 ms', '3.0 µs')
    """
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def number_text(count: int, unit: str = "") -> str:
    """A large number as text, with a decimal prefix.

    Examples
    --------
    >>> number_text(25_000_000, "B"), number_text(64)
    ('25.0 MB', '64 ')
    """
    for prefix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {prefix}{unit}"
    return f"{count} {unit}"
