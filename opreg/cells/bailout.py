"""Bailouts: exceptions by which a compiled function gives up a run, to be started over in the right variant.

A compiled function assumes results of hooks and values that Python has read. A run that finds
something else is given up before it has stored anything; the function is started over in a variant that assumes what is
known now, and what has been called of Python is not called twice.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from ..core.spec import Spec

if TYPE_CHECKING:
    from .guards import Answer, Fork
    from .python_op import Kept
    from .tensor import Tensor

__all__ = ["Bailout", "HookSignatureChanged", "HookSignatures", "NumberChanged"]


class Bailout(Exception):
    """A run of a compiled function is given up."""


class HookSignatureChanged(Bailout):
    """A hook returned something of another shape, dtype or nesting than was expected."""

    def __init__(self, key: Hashable, structure: Any, results: list[Tensor], specs: list[Spec]):
        super().__init__(f"{key} returned something else than expected")
        self.key, self.structure, self.results, self.specs = key, structure, results, specs


class NumberChanged(Bailout):
    """A number that Python asked for is another than it was: ``fork`` is the place, ``answer`` what Python gets."""

    def __init__(self, fork: Fork, answer: Answer):
        super().__init__(f"the number asked for at {fork.where} is {answer!r}")
        self.fork, self.answer = fork, answer


class HookSignatures:
    """Signatures of the hooks of a function that is traced again because one of them returned something else.

    Attributes
    ----------
    known : dict of key to (structure, list of Spec)
        What hooks return.
    done : dict of key to (variables, results)
        Calls of Python in the run that is going on.
    replay : dict of key to (variables, results)
        Those of the run that was given up, which are not made twice.
    """

    def __init__(self) -> None:
        self.known: dict[Hashable, tuple[Any, list[Spec]]] = {}
        self.done: dict[Hashable, Kept] = {}
        self.replay: dict[Hashable, Kept] = {}

    def learn(self, change: HookSignatureChanged) -> None:
        """Take note of a change, and of what has run before it."""
        self.known[change.key] = change.structure, change.specs
        self.replay, self.done = dict(self.done), {}

    def end_run(self) -> None:
        """A run is over."""
        self.done.clear()
        self.replay.clear()
