"""Captures: arrays from outside of a graph whose gradients flow through a call of Python, such as a chain of hooks.

The call is one node of the graph. Its inputs are the arguments of the function, and the arrays that the call captures,
such as the Parameters of an adapter. The tape of a run shows on which of them each result depends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter, is_
from typing import NamedTuple

from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.tape import UNDIFFERENTIATED, TapeEntry, Variable

from ..core.declarations import ZERO
from ..core.versions import wrote, wrote_all
from ..typing import Array
from .bailout import LeftToPython, Sources
from .parameter import Parameter
from .tensor import Tensor, tensor_over

__all__ = ["CurrentValues", "Outside", "as_variable", "sources_of", "value_of"]

_data_of, _entry_of = attrgetter("_data"), attrgetter("_entry")


class Outside(NamedTuple):
    """Arrays from outside of a plan while it runs.

    Attributes
    ----------
    followed : bool
        Whether calls of Python find out on which arrays their results depend.
    held : sequence of NDArray
        Arrays that the plan reads. A write by a call of Python gives such an array another memory.
    weights : sequence of NDArray
        Arrays with respect to which running functions are differentiated. A call of Python may capture these, too.
    memory : list of raw arrays
        The memory of the arrays that the plan reads.
    entries : list
        Their entries on the tape, which a recorded write replaces.
    moved : list of lists of (raw array, raw array)
        For each move of states that was stored before the end of the run, the states and their values before it.
    """

    followed: bool
    held: Sequence[NDArray]
    weights: Sequence[NDArray]
    memory: Sequence[Array]
    entries: Sequence[TapeEntry | None]
    moved: list[list[tuple[Array, Array]]]

    @classmethod
    def of(cls, followed: bool, held: Sequence[NDArray], weights: Sequence[NDArray]) -> Outside:
        """The arrays that a plan reads, and those with respect to which running functions are differentiated."""
        return cls(followed, held, weights, list(map(_data_of, held)), list(map(_entry_of, held)), [])

    def store(self, moves: Sequence[tuple[Sequence[Array], Callable[[], object]]]) -> None:
        """Store the states that earlier steps of the plan have moved, as ``Call.moves`` has them."""
        for states, store in moves[len(self.moved):]:
            self.moved.append([(state, state.copy()) for state in states])
            store()
            wrote_all(states)

    def put_back(self) -> None:
        """Restore the states, since the run has ended early."""
        for states in reversed(self.moved):
            for state, before in states:
                state[...] = before
                wrote(state)

    def holds(self, array: NDArray) -> bool:
        """Whether the plan reads an array."""
        return any(each is array for each in self.held)

    def shares(self, read: Sequence[NDArray], assigned: Sequence[NDArray]) -> bool:
        """Whether another plan would store values in the memory that this plan reads: it assigns such an array, or
        reads one that has been written to."""
        moved = [array for array, data in zip(self.held, self.memory) if array._data is not data]
        return any(each is array for array in assigned for each in self.held) or any(
            each is array for array in moved for each in read)

    def is_written(self) -> bool:
        """Whether a call of Python has given another memory to an array."""
        return not all(map(is_, map(_data_of, self.held), self.memory))

    def take_written(self, known: Sequence[NDArray]) -> list[tuple[NDArray, Tensor]]:
        """The arrays, other than known ones, that a call of Python has written to, with their new values. The arrays
        get their memory back. An array with another shape or dtype is no such array: it changes the trace."""
        found = []
        for array, data, entry in zip(self.held, self.memory, self.entries):
            new = array._data
            if new is not data and new.shape == data.shape and new.dtype == data.dtype and not any(
                    each is array for each in known):
                found.append((array, _value_after(array)))
                array._data, array._entry = data, entry
        return found

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
            arrays.append(array)
            variables.append(as_variable(array))
        return arrays, variables


def value_of(array: NDArray) -> Tensor:
    """The value that an array has now, with its entry on the tape."""
    result = tensor_over(array._data, array._ctx)
    result._entry = array._entry
    return result


def as_variable(array: NDArray) -> Tensor:
    """An array from outside as an input of a recorded call."""
    result = value_of(array)
    result._entry = result._entry or (Variable(result), 0)
    return result


def _value_after(array: NDArray) -> Tensor:
    """The value that a call of Python gave an array from outside. A Parameter keeps its own gradient."""
    result = value_of(array)
    if isinstance(array, Parameter):
        result._entry = None
    return result


class CurrentValues:
    """A context in which arrays from outside have the values that they have at a point of the program. A plan stores
    values that the program assigns at the end of a run.

    Parameters
    ----------
    arrays, values : sequence
        The arrays, and their values.
    written : sequence of NDArray
        The arrays whose new values are asked for.
    """

    __slots__ = ("_arrays", "_values", "_written", "_before")

    def __init__(self, arrays: Sequence[NDArray], values: Sequence[Tensor], written: Sequence[NDArray]):
        self._arrays, self._values, self._written = arrays, values, written
        self._before: list[tuple[NDArray, Array, TapeEntry | None]] = []

    def __enter__(self) -> CurrentValues:
        changed = set(map(id, self._written))
        for array, value in zip(self._arrays, self._values):
            data, moved = array._data, value._data is not array._data
            if moved or id(array) in changed:
                self._before.append((array, data, array._entry))
            if moved:
                array._data = value._data.copy()
        return self

    def new(self) -> list[Tensor]:
        """The new values of the written arrays."""
        values = list(map(_value_after, self._written))
        for value in values:
            value._data = value._data.copy()
        return values

    def __exit__(self, *_: object) -> None:
        for array, data, entry in self._before:
            array._data, array._entry = data, entry


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
