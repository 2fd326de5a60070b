"""Captures: arrays from outside of a graph whose gradients flow through a call of Python, such as a chain of hooks.

The call is one node of the graph. Its inputs are the arguments of the function, and the arrays that the call captures,
such as the Parameters of an adapter. The tape of a run shows on which of them each result depends.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, is_
from typing import NamedTuple

from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.tape import UNDIFFERENTIATED, TapeEntry

from ..core.declarations import ZERO
from ..typing import Array
from .bailout import LeftToPython, Sources
from .tensor import Tensor, tensor_over

__all__ = ["Outside", "sources_of"]

_data_of, _entry_of = attrgetter("_data"), attrgetter("_entry")


class Outside(NamedTuple):
    """Arrays from outside of a plan while it runs.

    Attributes
    ----------
    held : sequence of NDArray
        Arrays that the plan reads.
    weights : sequence of NDArray
        Arrays with respect to which running functions are differentiated. A call of Python may capture these, too.
    memory : list of raw arrays
        The memory of the arrays that the plan reads. A write while gradients are recorded gives an array another one.
    entries : list
        Their entries on the tape, which such a write replaces, too.
    """

    held: Sequence[NDArray]
    weights: Sequence[NDArray]
    memory: Sequence[Array]
    entries: Sequence[TapeEntry | None]

    @classmethod
    def of(cls, held: Sequence[NDArray], weights: Sequence[NDArray]) -> Outside:
        """The arrays that a plan reads, and those with respect to which running functions are differentiated."""
        return cls(held, weights, list(map(_data_of, held)), list(map(_entry_of, held)))

    def refuse_writes(self, title: str) -> None:
        """Undo writes to arrays that the plan reads, and leave the function to Python.

        Raises
        ------
        LeftToPython
            The call wrote to such an array: steps of the plan would read the value before.
        """
        if all(map(is_, map(_data_of, self.held), self.memory)):
            return
        written = [each for each in zip(self.held, self.memory, self.entries) if each[0]._data is not each[1]]
        for array, data, entry in written:
            array._data, array._entry = data, entry
        if written:
            name = getattr(written[0][0], "name", None)
            target = f"the Parameter {name}" if name else "a tensor"
            reason = f"{title} write to {target}, which the function reads, too"
            raise LeftToPython(reason, reason)

    def captured(self, entries: Sequence[TapeEntry], title: str) -> tuple[list[NDArray], list[Tensor]]:
        """The arrays with these entries, and their values in this run as variables.

        Raises
        ------
        LeftToPython
            The compiled function does not know such an array.
        """
        known = {array._entry: array for array in (*self.held, *self.weights)}
        arrays, variables = [], []
        for entry in entries:
            array = known.get(entry)
            if array is None:
                reason = (f"{title} read a tensor whose gradient is requested, and which the function does not use "
                          "otherwise")
                raise LeftToPython(reason, reason)
            variable = tensor_over(array._data, array._ctx)
            variable._entry = entry
            arrays.append(array)
            variables.append(variable)
        return arrays, variables


def sources_of(results: Sequence[Tensor], values: Sequence[Tensor], start: float) -> tuple[Sources, list[TapeEntry]]:
    """The inputs that results depend on, and the captured entries: those recorded before ``start`` that are no inputs.

    Captured entries are numbered after the values.
    """
    places = {value._entry: i for i, value in enumerate(values)}
    captured: list[TapeEntry] = []
    sources = []
    for result in results:
        entry = result._entry
        if entry is None or entry in places:
            sources.append(frozenset() if entry is None else frozenset((places[entry],)))
            continue
        found: set[int] = set()
        waiting = [entry]
        visited = {UNDIFFERENTIATED}
        while waiting:
            node, _ = entry = waiting.pop()
            if entry in places:
                found.add(places[entry])
            elif node in visited:
                continue
            elif node.op is None or node.number < start:
                places[entry] = len(values) + len(captured)
                captured.append(entry)
                found.add(places[entry])
            else:
                visited.add(node)
                if node.op.rules.grad is not ZERO:
                    waiting += node.inputs
        sources.append(frozenset(found))
    return tuple(sources), captured
