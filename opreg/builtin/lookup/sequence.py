"""Sequences of unequal length in a batch, padded to one length.

Time is the first axis and the batch the second, or with ``axis=1`` the reverse. ``sequence_length`` holds the length of
each sequence; without it all have full length.
"""

from __future__ import annotations

from typing import Any, Literal

from ...core.attrs import Number
from ...core.op import Op
from ...core.registry import declare
from ...core.spec import Shape, is_floating
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import adjoint_pair, declare_gradient, linear
from ..places import declare_reads, declare_writes
from ..shapes.shape import constant


def _names(*, use_sequence_length: bool) -> tuple[str, ...]:
    return ("data", "sequence_length") if use_sequence_length else ("data",)


def _declare_sequences(op: Op, steps: int | slice = slice(None)) -> None:
    """Declare the shapes of an operator on padded sequences, and the view that it returns where none is padded:
    ``steps`` indexes time."""
    def form(*, axis: int) -> str:
        time = "time > 0" if isinstance(steps, int) else "time"
        data = f"(batch, {time}, ...)" if axis else f"({time}, batch, ...)"
        return f"{data} (batch) -> {'(batch, ...)' if isinstance(steps, int) else data}"

    declare_form(op, form)

    @op.view
    def padded_view(array, *, use_sequence_length, axis):
        return None if use_sequence_length else array[:, steps] if axis else array[steps]


def _times(xp: ArrayModule, data: Array, length: Array, axis: int) -> tuple[Array, Array]:
    """The time indices, and the lengths, to be broadcast against each other."""
    times, lengths = xp.arange(data.shape[axis]), length.astype(xp.int64)
    return (times, lengths[:, None]) if axis else (times[:, None], lengths)


# ------------------------------------------------------------------------------------------- SequenceMask


@declare(name="SequenceMask", types="T,I->T", arguments=_names, aliases=("_npx_sequence_mask",))
def sequence_mask(data, sequence_length, *, use_sequence_length: bool = False, value: Number = 0.0,
                  axis: Literal[0, 1] = 0):
    """``data`` with ``value`` after the end of each sequence."""


_declare_sequences(sequence_mask)


def _padding_mask(xp: ArrayModule, data: Array, length: Array | None = None, *, value: float, axis: int, **_: object
                  ) -> tuple[Array, Any, Any]:
    """The data, the mask of the padding of each sequence, and the value written there."""
    if length is None:
        return data, slice(0), 0
    times, lengths = _times(xp, data, length, axis)
    return data, times >= lengths, value if is_floating(data.dtype) else constant(xp, value, data.dtype)


declare_writes(sequence_mask, _padding_mask)


linear(sequence_mask, sequence_mask, without=("value",))


# ------------------------------------------------------------------------------------------- SequenceLast


def _last(xp: ArrayModule, shape: Shape, length: Array | None, axis: int) -> tuple:
    """An index of the last step of each sequence; of the first step for an empty sequence."""
    count, batch = shape[axis], xp.arange(shape[1 - axis])
    if length is None:
        step = xp.full(shape[1 - axis], count - 1)
    else:
        step = xp.clip(length.astype(xp.int64) - 1, 0, count - 1)
    return (batch, step) if axis else (step, batch)


@declare(name="SequenceLast", types="T,I->T", arguments=_names, partly=(0,))
def sequence_last(data, sequence_length, *, use_sequence_length: bool = False, axis: Literal[0, 1] = 0):
    """The last step of each sequence."""


_declare_sequences(sequence_last, -1)


declare_reads(sequence_last, lambda xp, data, length=None, *, axis, **_: (data, _last(xp, data.shape, length, axis)))


@declare(name="_backward_SequenceLast", types="T,U,I->T", unread=(1,),
         arguments=lambda *, use_sequence_length: ("g", *_names(use_sequence_length=use_sequence_length)))
def sequence_last_put(g, data, sequence_length, *, use_sequence_length: bool = False, axis: Literal[0, 1] = 0):
    """Zeros of the shape of ``data`` with ``g`` at the last step of each sequence."""


declare_gradient(sequence_last, sequence_last_put)


declare_writes(sequence_last_put, lambda xp, g, data, length=None, *, axis, **_: (
    data.shape, _last(xp, data.shape, length, axis), g))


linear(sequence_last_put, sequence_last, slice(2, None))


# ---------------------------------------------------------------------------------------- SequenceReverse


@declare(name="SequenceReverse", types="T,I->T", arguments=_names)
def sequence_reverse(data, sequence_length, *, use_sequence_length: bool = False, axis: Literal[0, 1] = 0):
    """Each sequence in reverse order; elements after its end keep their positions."""


_declare_sequences(sequence_reverse, slice(None, None, -1))


def _backwards(xp: ArrayModule, data: Array, length: Array | None, axis: int) -> tuple:
    """An index of the steps of each sequence in reverse order, with the padding unchanged."""
    if length is None:
        return (slice(None), slice(None, None, -1)) if axis else (slice(None, None, -1),)
    times, lengths = _times(xp, data, length, axis)
    step = xp.where(times < lengths, lengths - 1 - times, times)
    batch = xp.arange(data.shape[1 - axis])
    return (batch[:, None], step) if axis else (step, batch)


declare_reads(sequence_reverse, lambda xp, data, length=None, *, axis, **_: (data, _backwards(xp, data, length, axis)))


adjoint_pair(sequence_reverse, sequence_reverse, like=False)
