"""Functions that move elements: reshaping, transposition, joining, splitting and padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...cells.dtype import promote
from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase
from ...cells.typing import AnyShape, Axes, TensorLike
from ...errors import ArgumentError, ShapeError
from .. import ops
from ..ops.array import at_least
from ..ops.lift import one_axis, scalar, shape_of
from .lift import as_tensor, axes_of, static_values

__all__ = [
    "append", "apply_along_axis", "apply_over_axes", "array_split", "array_str", "atleast_1d", "atleast_2d",
    "atleast_3d", "broadcast_arrays", "broadcast_to", "column_stack", "concatenate", "dsplit", "dstack", "expand_dims",
    "flip", "fliplr", "flipud", "hsplit", "hstack", "moveaxis", "pad", "ravel", "repeat", "reshape", "roll", "rollaxis",
    "rot90", "size", "split", "squeeze", "stack", "swapaxes", "tile", "transpose", "vsplit", "vstack"]


# ------------------------------------------------------------------------------------------------------- shapes


def size(a: TensorLike, axis: int | None = None) -> int:
    """The number of elements, or the length of an axis."""
    x = as_tensor(a)
    return x.size if axis is None else x.shape[one_axis(axis, x.ndim, "size")]


def array_str(a: TensorLike) -> str:
    """The elements as text, formatted as by ``print``."""
    return str(as_tensor(a))


def reshape(x: TensorLike, new_shape: AnyShape) -> Tensor:
    """The same elements in another shape; a length of -1 is inferred."""
    return as_tensor(x).reshape(shape_of(new_shape))


def ravel(x: TensorLike) -> Tensor:
    """The flattened tensor."""
    return as_tensor(x).reshape((-1,))


def expand_dims(a: TensorLike, axis: int | Sequence[int]) -> Tensor:
    """The tensor with new axes of length one at the given positions of the output."""
    x = as_tensor(a)
    places = (axis,) if isinstance(axis, int) else tuple(axis)
    rank = x.ndim + len(places)
    new = sorted(one_axis(place, rank, "expand_dims") for place in places)
    for place in new:
        x = ops.expand_dims(x, place)
    return x


def squeeze(a: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """The tensor without the given axes of length one, or without all of them."""
    return ops.squeeze(as_tensor(a), axis)


def _at_least(name: str, rank: int, doc: str) -> Callable[..., Any]:
    def call(*arys: TensorLike) -> Any:
        wide = [at_least(as_tensor(x), rank) for x in arys]
        return wide[0] if len(wide) == 1 else wide

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


atleast_1d = _at_least("atleast_1d", 1, "Tensors with one axis at least; a list for several.")
atleast_2d = _at_least("atleast_2d", 2, "Tensors with two axes at least, new ones before the others; a list for "
                                        "several.")
atleast_3d = _at_least("atleast_3d", 3, "Tensors with three axes at least, the third new one after the others; a "
                                        "list for several.")


def broadcast_to(array: TensorLike, shape: AnyShape) -> Tensor:
    """The tensor broadcast to a shape."""
    return ops.broadcast_to(as_tensor(array), shape_of(shape))


def broadcast_arrays(*args: TensorLike) -> list[Tensor]:
    """The tensors broadcast to their common shape."""
    tensors = [as_tensor(argument) for argument in args]
    shape = np.broadcast_shapes(*(x.shape for x in tensors))
    return [ops.broadcast_to(x, shape) for x in tensors]


# --------------------------------------------------------------------------------------------- axes in an order


def transpose(a: TensorLike, axes: Sequence[int] | None = None) -> Tensor:
    """The tensor with permuted axes; reversed by default."""
    x = as_tensor(a)
    return x.transpose(tuple(range(x.ndim))[::-1] if axes is None else tuple(axes))


def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """The tensor with two axes exchanged."""
    return ops.swapaxes(as_tensor(x), axis1, axis2)


def moveaxis(a: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """The tensor with axes moved to other positions; the rest keep their order."""
    return ops.moveaxis(as_tensor(a), source, destination)


def rollaxis(x: TensorLike, axis: int, start: int = 0) -> Tensor:
    """The tensor with an axis moved in front of another, by default in front of the first."""
    x = as_tensor(x)
    axis = one_axis(axis, x.ndim, "rollaxis")
    start = start + x.ndim if start < 0 else start
    if not 0 <= start <= x.ndim:
        raise ShapeError(f"rollaxis: start {start} is not among 0 to {x.ndim}")
    return ops.moveaxis(x, axis, start - 1 if axis < start else start)


def flip(m: TensorLike, axis: Axes = None) -> Tensor:
    """The tensor with the elements reversed along the given axes, or along all."""
    x = as_tensor(m)
    return ops.flip(x, axes_of(axis, x.ndim, "flip"))


def flipud(m: TensorLike) -> Tensor:
    """The tensor with the elements reversed along the first axis."""
    return flip(m, 0)


def fliplr(m: TensorLike) -> Tensor:
    """The tensor with the elements reversed along the second axis."""
    return flip(m, 1)


def roll(a: TensorLike, shift: int | Sequence[int], axis: Axes = None) -> Tensor:
    """The elements shifted cyclically along an axis, or of the flattened tensor."""
    x = as_tensor(a)
    if axis is None:
        total = shift if isinstance(shift, int) else int(np.sum(shift))
        return ops.roll(x.reshape((-1,)), total, 0).reshape(x.shape)
    return ops.roll(x, shift, axis)


def rot90(a: TensorLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """The tensor rotated ``k`` times by 90 degrees, from the first of two axes towards the second."""
    return ops.rot90(as_tensor(a), k, axes)


# ----------------------------------------------------------------------------------------------------- joining


def _promote(tensors: Any, what: str) -> list[Tensor]:
    """The tensors, cast to their common dtype; a tensor alone is one of them."""
    lifted = [as_tensor(tensor) for tensor in ([tensors] if isinstance(tensors, TensorBase) else tensors)]
    if not lifted:
        raise ArgumentError(f"{what}: expected tensors, got none")
    common = lifted[0]._dt
    for x in lifted[1:]:
        common = promote(common, x._dt)
    return [x._cast(common) for x in lifted]


def concatenate(arrays: Sequence[TensorLike], axis: int | None = 0) -> Tensor:
    """The tensors concatenated along an axis, or flattened first."""
    parts = _promote(arrays, "concatenate")
    return ops.concat([x.reshape((-1,)) for x in parts] if axis is None else parts, axis or 0)


def append(arr: TensorLike, values: TensorLike, axis: int | None = None) -> Tensor:
    """Two tensors concatenated along an axis, or flattened first."""
    return concatenate((arr, values), axis)


def stack(arrays: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """The tensors stacked along a new axis."""
    return ops.stack(_promote(arrays, "stack"), axis)


def hstack(tup: Sequence[TensorLike]) -> Tensor:
    """The tensors concatenated along the second axis; vectors along the first."""
    return ops.hstack(_promote(tup, "hstack"))


def vstack(tup: Sequence[TensorLike]) -> Tensor:
    """The tensors concatenated along the first axis; vectors are rows."""
    return ops.vstack(_promote(tup, "vstack"))


def dstack(tup: Sequence[TensorLike]) -> Tensor:
    """The tensors concatenated along the third axis."""
    return ops.dstack(_promote(tup, "dstack"))


def column_stack(tup: Sequence[TensorLike]) -> Tensor:
    """The tensors concatenated along the second axis; vectors are columns."""
    return ops.column_stack(_promote(tup, "column_stack"))


def tile(a: TensorLike, reps: AnyShape) -> Tensor:
    """The tensor repeated as a whole, the given number of times along each axis."""
    return ops.tile(as_tensor(a), shape_of(reps))


def repeat(a: TensorLike, repeats: int | Sequence[int], axis: int | None = None) -> Tensor:
    """Each slice along an axis, or each element of the flattened tensor, repeated."""
    x = as_tensor(a)
    return ops.repeat_interleave(x if axis is not None else x.reshape((-1,)), repeats, axis or 0)


# -------------------------------------------------------------------------------------------------- taken apart


def split(x: TensorLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Parts of equal length along an axis, or the parts between given indices."""
    x = as_tensor(x)
    length = x.shape[one_axis(axis, x.ndim, "split")]
    if isinstance(indices_or_sections, int) and (indices_or_sections < 1 or length % indices_or_sections):
        raise ArgumentError(f"split: {length} elements along axis {axis} cannot be split into {indices_or_sections} "
                            f"equal parts")
    return ops.tensor_split(x, indices_or_sections, axis)


def array_split(x: TensorLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Parts along an axis, the first longer by one if the length is not divisible, or the parts between given
    indices."""
    return ops.tensor_split(as_tensor(x), indices_or_sections, axis)


def hsplit(x: TensorLike, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Parts along the second axis, or the first of vectors; see ``split``."""
    x = as_tensor(x)
    return split(x, indices_or_sections, 1 if x.ndim > 1 else 0)


def vsplit(x: TensorLike, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Parts along the first axis; see ``split``."""
    return split(x, indices_or_sections, 0)


def dsplit(x: TensorLike, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Parts along the third axis; see ``split``."""
    return split(x, indices_or_sections, 2)


# ---------------------------------------------------------------------------------------------------- functions


def apply_along_axis(func1d: Callable[..., TensorLike], axis: int, arr: TensorLike, *args: Any, **kwargs: Any
                     ) -> Tensor:
    """The results of a function of each vector along an axis, in place of that axis."""
    x = as_tensor(arr)
    axis = one_axis(axis, x.ndim, "apply_along_axis")
    rows = ops.moveaxis(x, axis, -1).reshape((-1, x.shape[axis]))
    around = (*x.shape[:axis], *x.shape[axis + 1:])
    rows_computed = ops.stack([as_tensor(func1d(row, *args, **kwargs)) for row in ops.unbind(rows)])
    answer = rows_computed.reshape((*around, *rows_computed.shape[1:]))
    for i in range(rows_computed.ndim - 1):
        answer = ops.moveaxis(answer, len(around) + i, axis + i)
    return answer


def apply_over_axes(func: Callable[[Tensor, int], TensorLike], a: TensorLike, axes: int | Sequence[int]) -> Tensor:
    """The result of a function applied over each axis in turn; an axis that it drops is kept with length one."""
    x = as_tensor(a)
    for axis in axes_of(axes, x.ndim, "apply_over_axes"):
        reduced = as_tensor(func(x, axis))
        if reduced.ndim not in (x.ndim, x.ndim - 1):
            raise ShapeError(f"apply_over_axes: the function returned shape {reduced.shape} for {x.shape}")
        x = reduced if reduced.ndim == x.ndim else ops.expand_dims(reduced, axis)
    return x


# ------------------------------------------------------------------------------------------------------- padded

# Source indices of padded elements, by the mode of ``pad``: those before the start and after the end of ``n``, counted
# outwards from 0.
_REPEATED: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "edge": lambda at, n: np.clip(at, 0, n - 1),
    "wrap": lambda at, n: at % n,
    "reflect": lambda at, n: n - 1 - abs(n - 1 - at % max(2 * n - 2, 1)),
    "symmetric": lambda at, n: np.where(at % (2 * n) < n, at % (2 * n), 2 * n - 1 - at % (2 * n)),
}
_STATISTICS: dict[str, Callable[..., Tensor]] = {
    "mean": ops.mean, "maximum": ops.amax, "minimum": ops.amin}


def _pairs(value: TensorLike, rank: int) -> list[tuple[Any, Any]]:
    """A pair of values (before, after) for each axis, from one value, one pair or a pair for each axis."""
    numbers = static_values(value)
    return [tuple(pair) for pair in np.broadcast_to(numbers, (rank, 2)).tolist()]


def pad(arr: TensorLike, pad_width: TensorLike, mode: str | Callable[..., Any] = "constant",
        stat_length: TensorLike | None = None, constant_values: TensorLike = 0, end_values: TensorLike = 0,
        reflect_type: str = "even", **kwargs: Any) -> Tensor:
    """Pads a tensor.

    Parameters
    ----------
    pad_width : int, pair of int, or a pair for each axis
        Padding before and after each axis.
    mode : str
        "constant", "edge", "wrap", "reflect", "symmetric", "mean", "maximum", "minimum", "linear_ramp" or "empty".
    stat_length : int, pair of int, or a pair for each axis
        Number of elements at the edge for "mean", "maximum" and "minimum"; all by default.

    Raises
    ------
    ArgumentError
        If the mode is unknown or a function.
    """
    x = as_tensor(arr)
    if reflect_type != "even" or kwargs or not isinstance(mode, str) or (
            mode not in (*_REPEATED, *_STATISTICS, "constant", "linear_ramp", "empty")):
        raise ArgumentError(f"pad: expected a mode among constant, {', '.join([*_REPEATED, *_STATISTICS])}, "
                            f"linear_ramp and empty, and reflect_type 'even'; got {mode!r}, {reflect_type!r}, {kwargs}")
    widths = _pairs(pad_width, x.ndim)
    constants, ends = _pairs(constant_values, x.ndim), _pairs(end_values, x.ndim)
    lengths = [(None, None)] * x.ndim if stat_length is None else _pairs(stat_length, x.ndim)
    for axis, (before, behind) in enumerate(widths):
        if before < 0 or behind < 0:
            raise ArgumentError(f"pad: widths must not be negative, got {pad_width!r}")
        count = x.shape[axis]
        if mode in _REPEATED:
            places = _REPEATED[mode](np.arange(-before, count + behind), count)
            x = ops.gather(x, as_tensor(places.astype(np.int32)), axis)
            continue
        parts = [x]
        for width, edge, number, end, length in zip((before, behind), (0, 1), constants[axis], ends[axis],
                                                    lengths[axis]):
            if width:
                part = _edge(x, axis, edge, width, mode, number, end, length)
                parts = [*parts, part] if edge else [part, *parts]
        x = ops.concat(parts, axis) if len(parts) > 1 else x
    return x


def _edge(x: Tensor, axis: int, edge: int, width: int, mode: str, number: float, end: float, length: int | None
          ) -> Tensor:
    """The padding that ``pad`` adds before an axis, or after it if ``edge`` is 1."""
    shape = (*x.shape[:axis], width, *x.shape[axis + 1:])
    count = x.shape[axis]
    if mode in _STATISTICS:
        taken = count if length is None else min(int(length), count)
        some = ops.narrow(x, axis, count - taken if edge else 0, taken)
        return ops.broadcast_to(_STATISTICS[mode](some, axis, True), shape)
    if mode == "linear_ramp":
        outermost = ops.narrow(x, axis, count - 1 if edge else 0, 1)
        ramp = np.arange(width, dtype=np.float64) / width
        shares = as_tensor((ramp[::-1] if edge else ramp).astype(np.float32)).reshape(
            (width, *(1,) * (x.ndim - axis - 1)))
        return ((outermost - end) * shares + end)._cast(x._dt)
    return ops.broadcast_to(scalar(number if mode == "constant" else 0, x._dt), shape)
