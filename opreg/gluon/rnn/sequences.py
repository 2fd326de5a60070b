"""Sequences of steps, as one value with a time axis or as a list, and their states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opreg import ndarray, symbol
from opreg.symbol.symbol import Symbol

from ...core.rules import as_list
from ..errors import BlockError
from ..parameter import tensor_types
from ..structure import ARRAYS

__all__ = ["begun", "format_sequence", "joined", "mask_sequence", "reverse_sequences"]


def format_sequence(length: int | None, inputs: Any, layout: str, merge: bool | None, in_layout: str | None = None
                    ) -> tuple[Any, int, Any, int]:
    """Steps merged to one value (``merge`` true), as a list (false), or unchanged (None); then the time axis, ``nd`` or
    ``sym``, and the batch size, 0 for symbols.

    Raises
    ------
    BlockError
        When the number of steps is not ``length``.
    """
    if inputs is None:
        raise BlockError("unroll: expected inputs, got None: make the variables yourself and pass them")
    axis, batch_size = layout.find("T"), 0
    in_axis = axis if in_layout is None else in_layout.find("T")
    sample = inputs if isinstance(inputs, tensor_types) else inputs[0]
    F: Any = symbol if isinstance(sample, Symbol) else ndarray
    if isinstance(inputs, ARRAYS):
        batch_size = inputs.shape[layout.find("N")]
    elif isinstance(sample, ARRAYS):
        batch_size = sample.shape[0]
    if isinstance(inputs, tensor_types):
        if merge is False:
            if isinstance(inputs, Symbol) and len(inputs._entries) != 1:
                raise BlockError("unroll: expected one symbol, or a list of a symbol for each step; got a group")
            steps = length if isinstance(inputs, Symbol) else inputs.shape[in_axis]
            _check(length, steps)
            parts = F.split(inputs, axis=in_axis, num_outputs=steps, squeeze_axis=True)
            inputs = list(parts) if isinstance(parts, (list, Symbol)) and steps != 1 else [parts]
    else:
        _check(length, len(inputs))
        if merge:
            inputs, in_axis = F.stack(*inputs, axis=axis), axis
    if isinstance(inputs, tensor_types) and axis != in_axis:
        inputs = F.swapaxes(inputs, dim1=axis, dim2=in_axis)
    return inputs, axis, F, batch_size


def _check(length: int | None, steps: Any) -> None:
    if length is not None and length != steps:
        raise BlockError(f"unroll: expected {length} steps, got {steps}")


def mask_sequence(F: Any, data: Any, length: int, valid_length: Any, time_axis: int, merge: bool) -> Any:
    """Steps with zeros beyond the length of each sample."""
    if not isinstance(data, tensor_types):
        data = F.stack(*data, axis=time_axis)
    out = F.SequenceMask(data, sequence_length=valid_length, use_sequence_length=True, axis=time_axis)
    return out if merge else as_list(F.split(out, num_outputs=length, axis=time_axis, squeeze_axis=True))


def reverse_sequences(F: Any, steps: Sequence[Any], length: int, valid_length: Any = None) -> list[Any]:
    """Steps in reverse order, for each sample up to its length."""
    if valid_length is None:
        return list(reversed(steps))
    out = F.SequenceReverse(F.stack(*steps, axis=0), sequence_length=valid_length, use_sequence_length=True)
    parts = F.split(out, axis=0, num_outputs=length, squeeze_axis=True)
    return list(parts) if length > 1 else [parts]


def begun(cell: Any, F: Any, begin_state: Any, inputs: Any, batch_size: int) -> Any:
    """The given states before the first step, or new ones."""
    if begin_state is not None:
        return begin_state
    if F is symbol:
        return cell.begin_state(func=F.zeros, batch_size=batch_size)
    with (inputs if isinstance(inputs, ARRAYS) else inputs[0]).context:
        return cell.begin_state(func=F.zeros, batch_size=batch_size)


def joined(parts: Iterable[list[Any]]) -> list[Any]:
    """The elements of several lists in one list."""
    return [value for part in parts for value in part]
