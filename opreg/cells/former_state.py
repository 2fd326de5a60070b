"""FormerState: the state that a function read before calls of Python in its graph changed it.

A run that finds such a change starts over in a trace that reads what the function read: before each of these calls the
state from before it, then the state from after it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.comparisons import Puts

__all__ = ["FormerState"]


class _Stage(NamedTuple):
    """The places that a call has changed, with functions that set them."""

    call: int
    puts: list[Puts]


class FormerState:
    """A context of one trace, in which places that calls have changed have their former values until these calls.

    Attributes
    ----------
    stages : list
        The calls that have changed places, in their order.
    """

    def __init__(self) -> None:
        self.stages: list[_Stage] = []
        self._waiting: list[_Stage] = []

    def add(self, call: int, puts: list[Puts]) -> None:
        """Add the last call of a run, and functions that set the places which the run has changed."""
        if puts:
            self.stages.append(_Stage(call, puts))

    def reach(self, call: int) -> None:
        """Let places have the values that this call of the trace, and earlier ones, gave them."""
        while self._waiting and self._waiting[0].call <= call:
            for _, after in self._waiting.pop(0).puts:
                after()

    def __enter__(self) -> None:
        self._waiting = list(self.stages)
        for stage in reversed(self.stages):
            for before, _ in stage.puts:
                before()

    def __exit__(self, *_: object) -> None:
        if self._waiting:
            self.reach(self._waiting[-1].call)
