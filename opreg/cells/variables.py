"""Variables: arrays from outside of a function, such as Parameters, with respect to which it is differentiated.

While the function runs, its operators find the variable as the array's entry on the tape. All threads see this entry,
so they share the variable: it counts the functions that use it, and the last one removes it. A function that is
differentiated inside of another one has variables of its own, copies of the outer ones; only one thread at a time may
have copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.tape import CopiedVariable, SharedVariable, TapeEntry, TapeNode, frame

from ..core.locks import lock, rlock
from .parameter import Parameter
from .tensor import FRESH

__all__ = ["ONE_THREAD", "as_variables", "begin", "end"]

#: Held while arrays have entries that only the functions of one thread may have: copied variables, and those of
#: compiled functions that call hooks.
ONE_THREAD = rlock()
#: Held while the functions that use a variable are counted.
_COUNTING = lock()


def _origin(entry: TapeEntry) -> TapeNode:
    """The node of which an entry is a copy, or a copy of a copy."""
    node, _ = entry
    while node.__class__ is CopiedVariable:
        ((node, _),) = node.inputs
    return node


def begin(arrays: Iterable[NDArray], inner: bool = False) -> list[TapeEntry]:
    """Make different arrays variables, and return their entries; see ``end``.

    Parameters
    ----------
    inner : bool
        Whether the variables are separate from those of functions around this one.
    """
    if inner:
        ONE_THREAD.acquire()
    entries: list[TapeEntry] = []
    try:
        with _COUNTING:
            for array in arrays:
                entries += _variable_of(array, inner),
    except BaseException:
        end(arrays, entries, inner)
        raise
    return entries


def _variable_of(array: NDArray, inner: bool) -> TapeEntry:
    """Make an array a variable, and return its entry."""
    entry = array._entry
    if entry is None:
        target = array._gradient_target if isinstance(array, Parameter) else None
        entry = array._entry = SharedVariable(array, target), 0
        return entry
    node = _origin(entry)
    if inner or node.op is not None:
        data = [array._data]
        entry = CopiedVariable(FRESH, None, (entry,), data, data, 1, array._ctx, frame()), 0
        array._entry = entry
    else:
        entry = node, 0
    if isinstance(node, SharedVariable):
        node.users += 1
    return entry


def end(arrays: Iterable[NDArray], entries: Iterable[TapeEntry], inner: bool = False) -> None:
    """Restore the entries that arrays had before ``begin``; a shared variable stays as long as it is used."""
    with _COUNTING:
        for array, entry in zip(arrays, entries):
            node, current = entry[0], array._entry
            if current is entry and isinstance(node, SharedVariable) and node.users == 1:  # the usual case
                array._entry = None
                continue
            node = _origin(entry)
            if isinstance(node, SharedVariable):
                node.users -= 1
                if not node.users:
                    array._entry = None
                    continue
            if entry[0].__class__ is CopiedVariable:
                (array._entry,) = entry[0].inputs
            elif current is None or _origin(current) is not node:  # the function assigned to the array
                array._entry = entry
    if inner:
        ONE_THREAD.release()


class as_variables:
    """A context in which different arrays are variables, so that the tape shows what depends on them."""

    __slots__ = ("_arrays", "_entries")

    def __init__(self, arrays: Sequence[NDArray]):
        self._arrays = arrays

    def __enter__(self) -> list[TapeEntry]:
        self._entries = begin(self._arrays)
        return self._entries

    def __exit__(self, *_: object) -> None:
        end(self._arrays, self._entries)
