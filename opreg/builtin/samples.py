"""Rules of vmap that families of operators share: computing many samples in one call.

A rule receives inputs, and tells which of them have a first axis of samples. An element-wise result gets the shape of
the samples. ``NotImplemented`` leaves the operator to a loop over the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.op import Op
from ..core.registry import ops
from ..core.rules import BatchedCall, Rule
from ..core.spec import Shape
from ..core.value import Value

__all__ = ["alike", "shift_axes", "align_inputs", "fold_samples", "declare_row_samples", "padded", "repeat_inputs",
           "same_numbers", "size_of", "summed_like"]


def size_of(ins: Sequence[Any], batched: Sequence[bool]) -> int:
    """The number of samples."""
    return next(value.shape[0] for value, has_samples in zip(ins, batched) if has_samples)


def repeat_inputs(ins: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """All inputs with a first axis of samples."""
    size = size_of(ins, batched)
    return [value if has_samples else _repeat(value, size) for value, has_samples in zip(ins, batched)]


def _repeat(value: Any, size: int) -> Any:
    return ops.broadcast_to(value.reshape((1, *value.shape)), shape=(size, *value.shape))


def padded(value: Any, rank: int) -> Any:
    """Samples with ``rank`` axes; new ones of length one come after the axis of samples."""
    shape = value.shape
    return value if len(shape) > rank else value.reshape((shape[0], *[1] * (rank + 1 - len(shape)), *shape[1:]))


def align_inputs(ins: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Inputs that broadcast with each other as single samples would."""
    rank = max(len(value.shape) - has_samples for value, has_samples in zip(ins, batched))
    return [padded(value, rank) if has_samples else value for value, has_samples in zip(ins, batched)]


def _together(ins: Sequence[Any], batched: Sequence[bool], **attrs: Any) -> Any:
    ins = repeat_inputs(ins, batched)
    if any(value.shape != ins[0].shape for value in ins):
        return NotImplemented
    return BatchedCall(ins, attrs)


def _broadcast(ins: Sequence[Any], batched: Sequence[bool], **attrs: Any) -> Any:
    return BatchedCall(align_inputs(ins, batched), attrs)


_TOGETHER, _BROADCAST = Rule(_together), Rule(_broadcast)


def alike(op: Op, broadcasts: bool = False) -> None:
    """Declare that elements are computed independently: all samples are one larger array."""
    op.vmap(_BROADCAST if broadcasts else _TOGETHER)


def same_numbers(op: Op) -> None:
    """Declare that the output has the elements of the first input, in their order."""

    @op.vmap
    def rule(ins: Sequence[Any], batched: Sequence[bool]) -> Any:
        return ins[0] if batched[0] else NotImplemented


def shift_axes(op: Op, *names: str, of: int = 0, more: int = 0, flat: bool = False, shared: Sequence[int] = ()) -> None:
    """Declare that attributes name axes, which come one later in arrays of samples.

    Parameters
    ----------
    names : str
        Attributes; ``axis`` by default.
    of : int
        The input whose axes they are.
    more : int
        Number of axes that the output has more than that input.
    flat : bool
        Whether None means the flattened input.
    shared : sequence of int
        Inputs that all samples have to share.
    """

    @op.vmap
    def rule(ins: Sequence[Any], batched: Sequence[bool], **attrs: Any) -> Any:
        if any(batched[i] for i in shared if i < len(batched)):
            return NotImplemented
        size = size_of(ins, batched)
        ins = [value if has_samples or i in shared else _repeat(value, size)
               for i, (value, has_samples) in enumerate(zip(ins, batched))]
        rank = len(ins[of].shape) - 1
        if rank == 0 and not more and len(ins) == 1:
            ins, rank = [ins[0].reshape((size, 1))], 1
        words = dict(attrs)
        for name in names or ("axis",):
            axis = attrs[name]
            if axis is None and flat and len(ins) == 1:
                ins, axis = [ins[0].reshape((size, -1))], 1
            elif axis is None and not flat:
                axis = tuple(range(1, rank + 1))
            elif axis is None or axis == () or rank + more == 0:
                return NotImplemented
            else:
                axis = _shifted_axes(axis, rank + more, words)
                if axis == ():
                    return NotImplemented
            words[name] = axis
        return BatchedCall(ins, words)


def _shifted_axes(axis: int | Sequence[int], rank: int, words: dict[str, Any]) -> int | tuple[int, ...]:
    """The axes counted with the axis of samples in front."""
    if isinstance(axis, int):
        if not words.get("exclude"):
            return axis % rank + 1
        axis = (axis,)
    named = tuple([position % rank for position in axis])
    if words.get("exclude"):
        words["exclude"], named = False, tuple([position for position in range(rank) if position not in named])
    return tuple([position + 1 for position in named])


def fold_samples(value: Any) -> Any:
    """Rows of all samples as rows of one array."""
    shape = value.shape
    return value.reshape((shape[0] * shape[1], *shape[2:]))


def declare_row_samples(op: Op, *places: int) -> None:
    """Declare that rows along the first axis of some inputs are computed independently; all share the other inputs."""

    @op.vmap
    def rule(ins: Sequence[Any], batched: Sequence[bool], **attrs: Any) -> Any:
        if any(has_samples for i, has_samples in enumerate(batched) if i not in places):
            return NotImplemented
        values = repeat_inputs(ins, batched)
        return BatchedCall([fold_samples(values[i]) if i in places else value for i, value in enumerate(ins)], attrs)


def summed_like(value: Value, shape: Shape, target: Shape) -> Value:
    """Samples summed to a shape that broadcasts to theirs."""
    extra = len(shape) - len(target)
    axes = [i + 1 for i, dim in enumerate(shape) if i < extra or (target[i - extra] == 1 and dim != 1)]
    return ops.sum(value, axis=tuple(axes)) if axes else value
