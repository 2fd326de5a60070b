"""Bailouts: exceptions that stop a run or a trace of a compiled function.

A compiled function assumes the results of hooks and the values that Python has read. A run that finds others stops
before it has stored anything. The function starts over in a variant that assumes the new ones; Python functions that
were called already are not called again. A trace stops at code that no graph can have, and the function runs as Python.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from opreg.ndarray.ndarray import NDArray

from ..core.spec import Spec
from ..errors import OpError

if TYPE_CHECKING:
    from .guards import Answer, Fork
    from .reads import Reads
    from .tensor import Tensor

__all__ = ["Bailout", "CallSignature", "CallSignatures", "LeftToPython", "ReadChanged", "RecordedRun",
           "SignatureChanged", "Sources", "StateChanged"]

#: Variables and results of a run, over which its gradient runs backward.
RecordedRun: TypeAlias = "tuple[Sequence[Tensor], Sequence[Tensor]]"
#: For each result of a call, the numbers of the inputs through which its gradient flows.
Sources: TypeAlias = tuple[frozenset[int], ...]


class Bailout(Exception):
    """A run of a compiled function stops."""


class CallSignature(NamedTuple):
    """The result of a call of Python in a graph, and its inputs, as a trace assumes them.

    Attributes
    ----------
    structure, specs
        Structure of the result, and the shapes and dtypes of its tensors.
    captured : tuple of NDArray
        Arrays from outside, such as Parameters, whose values are further inputs of the node: the call reads them and
        their gradients are requested, or their values at this point of the program are not those in their memory, or
        the call writes to them.
    sources : tuple of set of int, or None
        For each tensor of the result, and each written array, the inputs through which its gradient flows; None if it
        may flow to all.
    written : tuple of NDArray
        Captured arrays that the call writes to. Their new values are further outputs of the node.
    """

    structure: Any
    specs: list[Spec]
    captured: tuple[NDArray, ...] = ()
    sources: Sources | None = None
    written: tuple[NDArray, ...] = ()


class SignatureChanged(Bailout):
    """A run found another signature of a call of Python than was assumed.

    Attributes
    ----------
    place : hashable
        Key of the call in the trace.
    signature : CallSignature
        The signature that was found.
    results : list of Tensor
        The result of this run.
    captured : list of Tensor
        Variables of the arrays that ``signature`` captures and the trace did not.
    """

    def __init__(self, place: Hashable, signature: CallSignature, results: list[Tensor], captured: list[Tensor]):
        super().__init__(f"{place} returned something else than expected")
        self.place, self.signature, self.results, self.captured = place, signature, results, captured


class ReadChanged(Bailout):
    """Python read another value than was assumed: ``fork`` is the place, ``answer`` the value."""

    def __init__(self, fork: Fork, answer: Answer):
        super().__init__(f"the number asked for at {fork.where} is {answer!r}")
        self.fork, self.answer = fork, answer


class StateChanged(Bailout):
    """A call of Python changed state that the function reads later."""


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


class CallSignatures:
    """Signatures of the calls of Python in a function, which is traced again when a call returns something else.

    Attributes
    ----------
    known : dict of key to CallSignature
        The signature of each call whose signature differs from what a trace assumes at first.
    done : dict of key to (variables, results)
        Python calls of the current run.
    replay : dict of key to (variables, results)
        Python calls of the stopped run, which are not repeated.
    reads : Reads or None
        The state that the running variant has read.
    latest : int or None
        The number of the last call of the current run.
    left : str
        The reason why a backward pass left the function to Python; empty if none did.
    """

    def __init__(self) -> None:
        self.known: dict[Hashable, CallSignature] = {}
        self.done: dict[Hashable, RecordedRun] = {}
        self.replay: dict[Hashable, RecordedRun] = {}
        self.reads: Reads | None = None
        self.latest: int | None = None
        self.left = ""

    def refuse_changes(self, call: int, title: str) -> None:
        """Stop a run after a call that changed state which the function reads later.

        Raises
        ------
        StateChanged
            The graph has results for the state before.
        """
        changed = None if self.reads is None else self.reads.changed_after(call)
        if changed is not None:
            raise StateChanged(f"{changed}, which the function reads later, is changed by {title}")

    def start_over(self) -> None:
        """Keep the Python calls of a run that stopped, so that the next one does not repeat them."""
        self.replay.update(self.done)
        self.done = {}

    def end_run(self) -> None:
        """Forget the Python calls of a run that ended."""
        self.done.clear()
        self.replay.clear()
        self.reads = self.latest = None
