"""Monitor: a user's function that is told the name and the value of every output as it is computed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

from opreg.core.backward_graph import GRADIENTS
from opreg.core.graph import Node
from opreg.ndarray.ndarray import NDArray

from ..plan import Function, Plan, Step, Watch
from ..symbol import output_name

__all__ = ["Monitor", "Told"]

#: A function that is called with a name and a value.
Told: TypeAlias = Callable[[str, NDArray], None]


class Monitor:
    """Tells a callback what the steps of plans compute.

    Attributes
    ----------
    callback : function of name and NDArray, or None
        None for nobody.
    everything : bool
        Whether it is told inputs, too.
    """

    def __init__(self) -> None:
        self.callback: Told | None = None
        self.everything = False

    def watch(self, plan: Plan) -> None:
        """Attach it to a plan."""
        arrays = plan.arrays  # not the plan, which would hold itself

        def report(step: Step, node: Node, work: Function) -> None:
            work()
            op, callback = node.op, self.callback
            assert op is not None
            if callback is None:
                return
            if self.everything:
                names = op.signature.inputs(node.attrs)
                for name, entry in zip(names, node.inputs):
                    if arrays.get(entry) is not None:
                        callback(f"{node.name}_{name}", NDArray(arrays[entry], step.ctx).copy())
            for i, data in enumerate(step.outs[:op.signature.visible(node.attrs)]):
                if data is not None:
                    callback(_told(node, i), NDArray(data, step.ctx).copy())

        def wrap(half: str, number: int, step: Step) -> Watch | None:
            node = step.node
            return None if node is None or node.op is None else functools.partial(report, step, node)

        plan.instrument(wrap)


def _told(node: Node, index: int) -> str:
    """The name by which a monitor is told of an output; gradients have the number of their input."""
    numbers = node.tags.get(GRADIENTS)
    return output_name((node, index)) if numbers is None else f"{node.name}_{numbers.split()[index]}"
