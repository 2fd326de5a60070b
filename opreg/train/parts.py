"""Parts of a batch for contexts: batches are divided along the axis of samples in their layout, and results
concatenated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from opreg.ndarray.context import Context
from opreg.ndarray.creation import concatenate
from opreg.ndarray.ndarray import NDArray

from ..core.registry import ops
from ..core.spec import Shape
from ..data.batches import DataDesc
from ..errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from opreg.symbol.symbol import Symbol

__all__ = ["Groups", "agree", "cut", "joined", "own_shape", "places", "samples", "shares", "structure"]

#: Contexts of the nodes of each ``ctx_group``: for all contexts of a module, or a dict for each.
Groups: TypeAlias = Mapping[str, Context | Sequence[Context]] | Sequence[Mapping[str, Context]] | None


def shares(size: int, loads: Sequence[float]) -> list[slice]:
    """The samples of each context, in proportion to its load.

    Raises
    ------
    ShapeError
        When there are too few samples.

    Examples
    --------
    >>> shares(8, [1, 1, 1])
    [slice(0, 3, None), slice(3, 6, None), slice(6, 8, None)]
    """
    counts = [round(load * size / sum(loads)) for load in loads]
    counts[-1] += max(size - sum(counts), 0)
    slices, end = [], 0
    for count in counts:
        slices.append(slice(end, min(end + count, size)))
        end = slices[-1].stop
    if any(share.start >= share.stop for share in slices):
        raise ShapeError(f"a batch of {size} cannot be divided among {len(loads)} contexts")
    return slices


def samples(descriptions: Sequence[DataDesc]) -> int | None:
    """Number of samples of a batch, from the first array with an axis of samples; None without any."""
    counts = (desc.shape[axis] for desc in descriptions if (axis := DataDesc.get_batch_axis(desc.layout)) >= 0)
    return next(counts, None)


def agree(descriptions: Sequence[DataDesc]) -> None:
    """Refuse a batch whose arrays differ in the number of samples."""
    by_count: dict[int, DataDesc] = {}
    for desc in descriptions:
        axis = DataDesc.get_batch_axis(desc.layout)
        if axis >= len(desc.shape):
            raise ShapeError(f"{desc.name} has the layout {desc.layout}, but only the shape {desc.shape}")
        if axis >= 0:
            by_count.setdefault(desc.shape[axis], desc)
    if len(by_count) > 1:
        (count, first), (another, second) = list(by_count.items())[:2]
        raise ShapeError(f"all arrays of a divided batch need the same number of samples, but {first.name} of shape "
                         f"{first.shape} "
                         f"has {count}, and {second.name} of shape {second.shape} has {another}; "
                         "the N in DataDesc(layout=...) marks the axis of samples")


def own_shape(description: DataDesc, share: slice | None) -> Shape:
    """The shape of one context's part of an input."""
    axis, shape = DataDesc.get_batch_axis(description.layout), list(description.shape)
    if share is not None and axis >= 0:
        shape[axis] = share.stop - share.start
    return tuple(shape)


def cut(value: Any, share: slice | None, axis: int) -> Any:
    """The samples of one context; all of them if there is one context, or no axis of samples."""
    if share is None or axis < 0:
        return value
    if axis == 0:
        return value[share]
    return ops.slice_axis(value, axis=axis, begin=share.start, end=share.stop)


def joined(parts: Sequence[NDArray], axis: int) -> NDArray:
    """The results of all contexts, concatenated on the first context; without an axis of samples the first result."""
    if len(parts) == 1 or axis < 0:
        return parts[0]
    return concatenate([part.as_in_context(parts[0].context) for part in parts], axis=axis)


def places(group2ctxs: Groups, count: int) -> list[dict[str, Context] | None]:
    """Contexts of the nodes of each ``ctx_group``, for each of the contexts.

    Parameters
    ----------
    group2ctxs : None, dict, or list of dict
        A dict for each context; or one dict for all, whose values are a context, or a list of contexts.

    Raises
    ------
    ArgumentError
        When a list has another length, or an element is no context.
    """
    if group2ctxs is None:
        return [None] * count
    if isinstance(group2ctxs, Mapping):
        spread: list[dict[str, Any]] = [{} for _ in range(count)]
        for group, contexts in group2ctxs.items():
            listed = list(contexts) if isinstance(contexts, (list, tuple)) else [contexts]
            if len(listed) not in (1, count):
                raise ArgumentError(f"group2ctxs: group {group!r} has {len(listed)} contexts, expected 1 or {count}, "
                                    "one for each context of the module")
            for own, ctx in zip(spread, listed * count if len(listed) == 1 else listed):
                own[group] = ctx
    elif isinstance(group2ctxs, (list, tuple)) and all(isinstance(groups, Mapping) for groups in group2ctxs):
        if len(group2ctxs) != count:
            raise ArgumentError(f"group2ctxs: a list of {len(group2ctxs)}, expected {count}, a dict for each context "
                                "of the module")
        spread = [dict(groups) for groups in group2ctxs]
    else:
        raise ArgumentError("group2ctxs: expected a dict of groups to contexts or lists of them, or a list of such "
                            f"dicts, got {group2ctxs!r}")
    for own in spread:
        for group, ctx in own.items():
            if not isinstance(ctx, Context):
                raise ArgumentError(f"group2ctxs: group {group!r}: expected a context, got {ctx!r}")
    return spread  # type: ignore[return-value]


def structure(symbol: Symbol) -> str:
    """The operators of a network and the inputs of each, one in each line, without names and attributes.

    Examples
    --------
    >>> from opreg import sym
    >>> print(structure(sym.exp(sym.Variable("x"))))
    0 variable
    1 exp of 0
    """
    nodes = symbol._graph().nodes
    numbers = {node: i for i, node in enumerate(nodes)}
    return "\n".join(" ".join([str(i), node.op.name if node.op else "variable", *(
        ["of", *(str(numbers[source]) for source, _ in node.inputs)] if node.inputs else [])])
        for i, node in enumerate(nodes))
