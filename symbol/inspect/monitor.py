"""Monitor: a user's function that is called with the name and the value of every output when it is computed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

from opreg.core.graph import Node
from opreg.ndarray.ndarray import NDArray

from ..naming import monitored_names
from ..plan import Function, Plan, Step, Watch

__all__ = ["Monitor", "MonitorCallback"]

#: A monitor's callback, called with a name and a value.
MonitorCallback: TypeAlias = Callable[[str, NDArray], None]


class Monitor:
    """Calls a function with the results of the steps of plans.

    Attributes
    ----------
    callback : function of name and NDArray, or None
        The function; None for none.
    everything : bool
        Whether to call it with inputs, too.
    """

    def __init__(self) -> None:
        self.callback: MonitorCallback | None = None
        self.everything = False

    def watch(self, plan: Plan) -> None:
        """Attach the monitor to a plan."""
        arrays = plan.arrays  # the function refers to the arrays and not to the plan, which would be a cycle

        def report(step: Step, node: Node, work: Function) -> None:
            op, callback = node.op, self.callback
            assert op is not None
            if callback is None:
                work()
                return
            if self.everything:  # before the step, which may compute in the memory of its inputs
                names = op.signature.inputs(node.attrs)
                for name, entry in zip(names, node.inputs):
                    if arrays.get(entry) is not None:
                        callback(f"{node.name}_{name}", NDArray(arrays[entry], step.ctx).copy())
            work()
            for name, data in zip(monitored_names(node), step.outs[:op.signature.visible(node.attrs)]):
                if data is not None:
                    callback(name, NDArray(data, step.ctx).copy())

        def wrap(half: str, number: int, step: Step) -> Watch | None:
            node = step.node
            return None if node is None or node.op is None else functools.partial(report, step, node)

        plan.instrument(wrap)
