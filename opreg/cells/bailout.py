"""Bailouts: exceptions that stop a run or a trace of a compiled function.

A compiled function assumes the results of hooks and the values that Python has read. A run that finds others stops
before it has stored anything. The function starts over in a variant that assumes the new ones; Python functions that
were called already are not called again. A trace stops at code that no graph can have, and the function runs as Python.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from ..core.spec import Spec
from ..errors import OpError

if TYPE_CHECKING:
    from .guards import Answer, Fork
    from .python_op import RecordedRun
    from .reads import Reads
    from .tensor import Tensor

__all__ = ["Bailout", "HookSignatureChanged", "HookSignatures", "LeftToPython", "ReadChanged"]


class Bailout(Exception):
    """A run of a compiled function stops."""


class HookSignatureChanged(Bailout):
    """A hook returned a value of another shape, dtype or nesting than was assumed."""

    def __init__(self, key: Hashable, structure: Any, results: list[Tensor], specs: list[Spec]):
        super().__init__(f"{key} returned something else than expected")
        self.key, self.structure, self.results, self.specs = key, structure, results, specs


class ReadChanged(Bailout):
    """Python read another value than was assumed: ``fork`` is the place, ``answer`` the value."""

    def __init__(self, fork: Fork, answer: Answer):
        super().__init__(f"the number asked for at {fork.where} is {answer!r}")
        self.fork, self.answer = fork, answer


class LeftToPython(OpError, TypeError):
    """A function cannot be a graph: it is not compiled, but runs as Python code.

    Attributes
    ----------
    reason : str
        The operation that no graph can do, and its place.
    reads : Reads or None
        State that was read before that.
    """

    def __init__(self, text: str, reason: str, reads: Reads | None = None):
        super().__init__(text)
        self.reason, self.reads = reason, reads


class HookSignatures:
    """Signatures of hooks' results, for a function that is traced again because a hook returned something else.

    Attributes
    ----------
    known : dict of key to (structure, list of Spec)
        Structure and shapes of each hook's result.
    done : dict of key to (variables, results)
        Python calls of the current run.
    replay : dict of key to (variables, results)
        Python calls of the stopped run, which are not repeated.
    """

    def __init__(self) -> None:
        self.known: dict[Hashable, tuple[Any, list[Spec]]] = {}
        self.done: dict[Hashable, RecordedRun] = {}
        self.replay: dict[Hashable, RecordedRun] = {}

    def learn(self, change: HookSignatureChanged) -> None:
        """Note the new result of a hook, and the Python calls made before it."""
        self.known[change.key] = change.structure, change.specs
        self.replay, self.done = dict(self.done), {}

    def end_run(self) -> None:
        """Forget the Python calls of a run that ended."""
        self.done.clear()
        self.replay.clear()
