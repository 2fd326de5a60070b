"""Functions of shapes and axes: reshaping, permuting, joining, splitting, padding."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from ...cells.dtype import DType
from ...cells.grad import stop_gradient
from ...cells.parameter import assign
from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase, is_number
from ...cells.typing import AnyShape, ArrayLike, Axes, Number, Sizes, TensorDType, TensorLike
from ...core.registry import ops
from ...core.spec import as_dtype, is_floating
from ...errors import ArgumentError, ShapeError
from .lift import axes, common_dtype, like, one_axis, plain, rank_of, scalar, shape_of, tensor
from .lift import tensor as _tensor

__all__ = [
    "adjoint", "assign", "assign_add", "assign_sub", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to", "cast",
    "cat", "channel_shuffle", "chunk", "column_stack", "concat", "deepcopy", "diff", "dsplit", "dstack", "dtype",
    "expand", "expand_dims", "flatten", "flip", "fliplr", "flipud", "hsplit", "hstack", "identity", "is_floating_point",
    "is_tensor", "moveaxis", "movedim", "narrow", "numel", "pad", "permute", "rank", "ravel", "repeat_elements",
    "repeat_interleave", "reshape", "reverse", "roll", "rot90", "scalar_to_tensor", "shape", "size", "split", "squeeze",
    "stack", "stop_gradient", "swapaxes", "swapdims", "t", "tensor_split", "tile", "transpose", "unbind", "unsqueeze",
    "unstack", "vsplit", "vstack"]


# -------------------------------------------------------------------------------------------- shapes and dtypes


def shape(input_x: TensorLike) -> tuple[int, ...]:
    """The shape, as a tuple."""
    return tensor(input_x).shape


def dtype(input_x: TensorLike) -> DType:
    """The dtype."""
    return tensor(input_x).dtype


def is_floating_point(input: TensorLike) -> bool:
    """Whether the dtype is a floating one."""
    return is_floating(tensor(input)._dt)


def size(input_x: TensorLike) -> int:
    """The number of elements."""
    return tensor(input_x).size


numel = size


def rank(input_x: TensorLike) -> int:
    """The number of axes."""
    return tensor(input_x).ndim


def is_tensor(obj: object) -> bool:
    """Whether a value is a tensor, also a traced one."""
    return isinstance(obj, TensorBase)


def cast(input: TensorLike, dtype: TensorDType) -> Tensor:
    """The values in another dtype; fractions are rounded towards zero."""
    x = tensor(np.asarray(input, np.float64 if isinstance(input, float) else None)) if is_number(input) else \
        tensor(input)
    return x.astype(dtype)


def deepcopy(input_x: TensorLike) -> Tensor:
    """A copy of the tensor."""
    return ops._copy(tensor(input_x))


def scalar_to_tensor(input_x: Number, dtype: TensorDType = np.float32) -> Tensor:
    """A number as a tensor without axes."""
    return scalar(input_x, as_dtype(dtype))


def identity(x: TensorLike) -> Tensor:
    """The tensor itself."""
    return tensor(x)


def assign_add(variable: Tensor, value: TensorLike) -> Tensor:
    """Add to a Parameter, or another tensor; see ``assign``."""
    return assign(variable, variable + like(value, variable))


def assign_sub(variable: Tensor, value: TensorLike) -> Tensor:
    """Subtract from a Parameter, or another tensor; see ``assign``."""
    return assign(variable, variable - like(value, variable))


def reshape(input: TensorLike, shape: AnyShape) -> Tensor:
    """The same values in another shape; one -1 is inferred."""
    return tensor(input).reshape(shape_of(shape))


def t(input: TensorLike) -> Tensor:
    """The transpose of a matrix; a tensor of fewer axes is returned unchanged.

    Raises
    ------
    ShapeError
        When there are more than two axes.
    """
    x = tensor(input)
    if x.ndim > 2:
        raise ShapeError(f"t: expected at most two axes, got the shape {x.shape}")
    return transpose(x, (1, 0)) if x.ndim == 2 else x


def transpose(input: TensorLike, dims: Sequence[int]) -> Tensor:
    """Permute the axes."""
    return tensor(input).transpose(tuple(dims))


def permute(input: TensorLike, axis: Sequence[int]) -> Tensor:
    """Permute the axes."""
    return tensor(input).transpose(tuple(axis))


def swapaxes(input: TensorLike, axis0: int, axis1: int) -> Tensor:
    """Swap two axes."""
    x = tensor(input)
    return ops.SwapAxis(x, dim1=one_axis(axis0, x.ndim, "swapaxes"), dim2=one_axis(axis1, x.ndim, "swapaxes"))


def adjoint(x: TensorLike) -> Tensor:
    """Matrices with their last two axes swapped: the conjugate transpose, since tensors are real."""
    return swapaxes(x, -1, -2)


def swapdims(input: TensorLike, dim0: int, dim1: int) -> Tensor:
    """Swap two axes."""
    return swapaxes(input, dim0, dim1)


def movedim(x: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Move axes to other positions; the others keep their order."""
    x = tensor(x)
    sources, targets = [[one_axis(axis, x.ndim, "movedim") for axis in ((axes,) if isinstance(axes, int) else axes)]
                        for axes in (source, destination)]
    if len(sources) != len(targets):
        raise ArgumentError(f"movedim: {source} and {destination} have different lengths")
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for target, axis in sorted(zip(targets, sources)):
        order.insert(target, axis)
    return x.transpose(tuple(order))


moveaxis = movedim


def expand_dims(input_x: TensorLike, axis: int) -> Tensor:
    """Insert an axis of length one at position ``axis`` of the result."""
    x = tensor(input_x)
    return ops.expand_dims(x, axis=one_axis(axis, x.ndim + 1, "expand_dims"))


def unsqueeze(input: TensorLike, dim: int) -> Tensor:
    """Insert an axis of length one at position ``dim`` of the result."""
    return expand_dims(input, dim)


def squeeze(input: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """Remove the given axes, which have length one, or all axes of length one."""
    x = tensor(input)
    if axis is None or axis == ():
        return x.reshape(tuple(dim for dim in x.shape if dim != 1))
    gone = [one_axis(i, x.ndim, "squeeze") for i in ((axis,) if isinstance(axis, int) else axis)]
    for i in gone:
        if x.shape[i] != 1:
            raise ShapeError(f"squeeze: axis {i} of {x.shape} has length {x.shape[i]}, not 1")
    return x.reshape(tuple(dim for i, dim in enumerate(x.shape) if i not in gone))


def flatten(input: TensorLike, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Join the axes from ``start_dim`` to ``end_dim``; with the order "F" the first axis varies fastest."""
    x = tensor(input)
    if order not in ("C", "F"):
        raise ArgumentError(f"flatten: order must be 'C' or 'F', got {order!r}")
    if order == "C" and (start_dim, end_dim) == (1, -1) and rank_of(x) not in (0, 1):  # needs no shape
        return ops.Flatten(x)
    if order == "F":
        x = x.transpose()
    if x.ndim < 2:
        return x.reshape((-1,))
    first, last = one_axis(start_dim, x.ndim, "flatten"), one_axis(end_dim, x.ndim, "flatten")
    if first > last:
        raise ShapeError(f"flatten: start_dim={start_dim} comes after end_dim={end_dim}")
    return x.reshape((*x.shape[:first], math.prod(x.shape[first:last + 1]), *x.shape[last + 1:]))


def ravel(input: TensorLike) -> Tensor:
    """All elements as a vector."""
    return tensor(input).reshape((-1,))


@overload
def atleast_1d(inputs: ArrayLike) -> Tensor: ...
@overload
def atleast_1d(inputs: list[Any] | tuple[Any, ...]) -> tuple[Tensor, ...]: ...
def atleast_1d(inputs: TensorLike) -> Tensor | tuple[Tensor, ...]:
    """A tensor with at least one axis; a tuple for a tuple or list."""
    if isinstance(inputs, (list, tuple)):
        return tuple(map(atleast_1d, inputs))
    return at_least(tensor(inputs), 1)


@overload
def atleast_2d(inputs: ArrayLike) -> Tensor: ...
@overload
def atleast_2d(inputs: list[Any] | tuple[Any, ...]) -> tuple[Tensor, ...]: ...
def atleast_2d(inputs: TensorLike) -> Tensor | tuple[Tensor, ...]:
    """A tensor with at least two axes, new ones in front; a tuple for a tuple or list."""
    if isinstance(inputs, (list, tuple)):
        return tuple(map(atleast_2d, inputs))
    return at_least(tensor(inputs), 2)


@overload
def atleast_3d(inputs: ArrayLike) -> Tensor: ...
@overload
def atleast_3d(inputs: list[Any] | tuple[Any, ...]) -> tuple[Tensor, ...]: ...
def atleast_3d(inputs: TensorLike) -> Tensor | tuple[Tensor, ...]:
    """A tensor with at least three axes, the third after the others; a tuple for a tuple or list."""
    if isinstance(inputs, (list, tuple)):
        return tuple(at_least(tensor(part), 3) for part in inputs)
    return at_least(tensor(inputs), 3)


def at_least(x: Tensor, rank: int) -> Tensor:
    """The tensor with at least ``rank`` axes: new ones in front, and the third at the end."""
    if x.ndim >= rank:
        return x
    shape = x.shape if x.ndim == 2 else (*(1,) * (min(rank, 2) - x.ndim), *x.shape)
    return x.reshape((*shape, 1) if rank == 3 else shape)


# ------------------------------------------------------------------------------------------------- joining


def _common_dtype(tensors: Sequence[TensorLike], what: str) -> list[Tensor]:
    """Tensors cast to their common dtype."""
    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise ArgumentError(f"{what}: expected a list or tuple of tensors, got {type(tensors).__name__}")
    parts = [tensor(part) for part in tensors]
    dtype = common_dtype(parts)
    return [part._cast(dtype) for part in parts]


def concat(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Concatenate tensors along an axis."""
    parts = _common_dtype(tensors, "concat")
    return ops.Concat(*parts, num_args=len(parts), dim=one_axis(axis, parts[0].ndim, "concat"))


def cat(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Concatenate tensors along an axis."""
    return concat(tensors, axis)


def stack(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Stack tensors of one shape along a new axis."""
    parts = _common_dtype(tensors, "stack")
    return ops.stack(*parts, num_args=len(parts), axis=one_axis(axis, parts[0].ndim + 1, "stack"))


def hstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Concatenate tensors along the second axis; vectors along their only one."""
    parts = _common_dtype(tensors, "hstack")
    return ops._npi_hstack(*parts, num_args=len(parts))


def vstack(inputs: Sequence[TensorLike]) -> Tensor:
    """Concatenate tensors along the first axis; vectors are rows."""
    parts = _common_dtype(inputs, "vstack")
    return ops._npi_vstack(*parts, num_args=len(parts))


def dstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Concatenate tensors along the third axis."""
    parts = _common_dtype(tensors, "dstack")
    return ops._npi_dstack(*parts, num_args=len(parts))


def column_stack(tensors: Sequence[TensorLike]) -> Tensor:
    """Concatenate tensors along the second axis; vectors are columns."""
    return concat([x.reshape((-1, 1)) if x.ndim < 2 else x for x in _common_dtype(tensors, "column_stack")], 1)


# ------------------------------------------------------------------------------------------------ taken apart


def span(x: Tensor, axis: int, begin: int, end: int) -> Tensor:
    """The slices along an axis from ``begin`` to before ``end``; the result may be empty."""
    if begin < end:
        return ops.slice_axis(x, axis=axis, begin=begin, end=end)
    return x[(*(slice(None) for _ in range(axis)), slice(0, 0))]


def _cut(x: Tensor, axis: int, places: Sequence[int]) -> tuple[Tensor, ...]:
    """Split along an axis at the given indices."""
    ends = [*places[1:], x.shape[axis]]
    return tuple(span(x, axis, begin, end) for begin, end in zip(places, ends))


def split(tensor: TensorLike, split_size_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis: into parts of one length, of which the last may be shorter, or into parts of given
    lengths."""
    x = _tensor(tensor)
    axis = one_axis(axis, x.ndim, "split")
    length = x.shape[axis]
    if isinstance(split_size_or_sections, (int, np.integer)) and not isinstance(split_size_or_sections, bool):
        if split_size_or_sections < 1:
            raise ArgumentError(f"split: expected a length of at least 1, got {split_size_or_sections}")
        return _cut(x, axis, range(0, length or 1, int(split_size_or_sections)))
    if not isinstance(split_size_or_sections, (list, tuple)):
        raise ArgumentError(f"split: expected an int or a list of ints, got {type(split_size_or_sections).__name__}")
    sizes = [int(size) for size in split_size_or_sections]
    if sum(sizes) != length or any(size < 0 for size in sizes):
        raise ShapeError(f"split: the lengths {sizes} do not add up to {length}, axis {axis} of {x.shape}")
    return _cut(x, axis, [sum(sizes[:i]) for i in range(len(sizes))])


def channel_shuffle(x: TensorLike, groups: int) -> Tensor:
    """Interleave groups of the second axis: the first of each group, then the second of each, and so on.

    Examples
    --------
    >>> print(channel_shuffle([[0, 1, 2, 3, 4, 5]], 2))
    [[0 3 1 4 2 5]]
    """
    x = tensor(x)
    if isinstance(groups, bool) or not isinstance(groups, int):
        raise ArgumentError(f"channel_shuffle: groups must be an int, got {type(groups).__name__}")
    if groups < 1 or x.ndim < 2 or x.shape[1] % groups:
        raise ShapeError(f"channel_shuffle: the channels of {x.shape} cannot be divided into {groups} groups")
    n, channels, *sizes = x.shape
    return x.reshape((n, groups, channels // groups, -1)).transpose((0, 2, 1, 3)).reshape((n, channels, *sizes))


def chunk(input: TensorLike, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis into at most ``chunks`` parts of one length, of which the last may be shorter."""
    x = tensor(input)
    axis = one_axis(axis, x.ndim, "chunk")
    if chunks < 1:
        raise ArgumentError(f"chunk: expected at least one part, got {chunks!r}")
    return split(x, max(math.ceil(x.shape[axis] / chunks), 1), axis)


def tensor_split(input: TensorLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis: into a number of nearly equal parts, or before the given indices, which may be negative."""
    x = tensor(input)
    axis = one_axis(axis, x.ndim, "tensor_split")
    length = x.shape[axis]
    if isinstance(indices_or_sections, int):
        if not 1 <= indices_or_sections <= 1 << 16:
            raise ArgumentError(f"tensor_split: expected 1 to 65,536 parts, got {indices_or_sections}")
        parts, longer = divmod(length, indices_or_sections)
        sizes = [parts + (i < longer) for i in range(indices_or_sections)]
        return split(x, sizes, axis)
    places = [0, *(slice(place).indices(length)[1] for place in indices_or_sections), length]
    return tuple(span(x, axis, begin, max(begin, end)) for begin, end in itertools.pairwise(places))


def hsplit(input: TensorLike, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """``tensor_split`` along the second axis; for vectors along their only one."""
    x = tensor(input)
    return tensor_split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(input: TensorLike, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """``tensor_split`` along the first axis."""
    return tensor_split(input, indices_or_sections, 0)


def dsplit(input: TensorLike, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """``tensor_split`` along the third axis."""
    return tensor_split(input, indices_or_sections, 2)


def unstack(input_x: TensorLike, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without that axis."""
    x = tensor(input_x)
    axis = one_axis(axis, x.ndim, "unstack")
    trailing = x.shape[:axis] + x.shape[axis + 1:]
    return tuple(part.reshape(trailing) for part in _cut(x, axis, range(x.shape[axis])))


def unbind(input: TensorLike, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without that axis."""
    return unstack(input, dim)


def narrow(input: TensorLike, axis: int, start: int, length: int) -> Tensor:
    """``length`` slices along an axis, from ``start`` on."""
    x = tensor(input)
    axis = one_axis(axis, x.ndim, "narrow")
    if not 0 <= start <= start + length <= x.shape[axis]:
        raise ShapeError(f"narrow: the range {start} to {start + length} exceeds axis {axis} of {x.shape}")
    return span(x, axis, start, start + length)


def diff(x: TensorLike, n: int = 1, axis: int = -1, prepend: TensorLike | None = None, append: TensorLike | None = None
        ) -> Tensor:
    """The ``n``-th differences of neighbouring elements along an axis."""
    x = tensor(x)
    axis = one_axis(axis, x.ndim, "diff")
    parts = [part for part in (prepend, x, append) if part is not None]
    return ops._npi_diff(concat(parts, axis) if len(parts) > 1 else x, n=n, axis=axis)


# --------------------------------------------------------------------------------------------------- repeated


def tile(input: TensorLike, dims: AnyShape) -> Tensor:
    """Repeat the tensor a number of times along each axis."""
    return ops.tile(tensor(input), reps=shape_of(dims))


def repeat_interleave(input: TensorLike, repeats: AnyShape, axis: int | None = None) -> Tensor:
    """Repeat each slice along an axis, or each element of the flat tensor.

    Parameters
    ----------
    repeats : int, or sequence of int
        Number of repetitions, for all slices or for each.
    """
    x = tensor(input)
    if axis is None:
        x, axis = x.reshape((-1,)), 0
    axis = one_axis(axis, x.ndim, "repeat_interleave")
    counts = shape_of(repeats)
    if len(counts) == 1:
        return ops.repeat(x, repeats=counts[0], axis=axis) if counts[0] else span(x, axis, 0, 0)
    if len(counts) != x.shape[axis]:
        raise ShapeError(f"repeat_interleave: got {len(counts)} counts for {x.shape[axis]} slices")
    return ops.take(x, tensor(np.repeat(np.arange(len(counts)), counts)), axis=axis)


def repeat_elements(x: TensorLike, rep: int, axis: int = 0) -> Tensor:
    """Repeat each slice along an axis."""
    return repeat_interleave(x, rep, axis)


def broadcast_to(input: TensorLike, shape: AnyShape) -> Tensor:
    """Broadcast to a shape; -1 keeps a length."""
    x, target = tensor(input), list(shape_of(shape))
    extra = len(target) - x.ndim
    if extra < 0:
        raise ShapeError(f"broadcast_to: {x.shape} has more axes than {tuple(target)}")
    for i, dim in enumerate(x.shape):
        have = target[i + extra]
        target[i + extra] = dim if have == -1 else have
        if dim not in (1, target[i + extra]):
            raise ShapeError(f"broadcast_to: {x.shape} does not broadcast to {tuple(target)}")
    if -1 in target[:extra]:
        raise ShapeError(f"broadcast_to: -1 keeps a length, but {tuple(target)} has it for a new axis")
    return ops._np_broadcast_to(x, shape=tuple(target)) if target else x


def expand(input_x: TensorLike, size: AnyShape) -> Tensor:
    """See ``broadcast_to``."""
    return broadcast_to(input_x, size)


# --------------------------------------------------------------------------------------- flips and rotations


def flip(input: TensorLike, dims: Axes) -> Tensor:
    """Reverse the order along axes."""
    x = tensor(input)
    turned = axes(dims, "dims")
    turned = (turned,) if isinstance(turned, int) else turned or ()
    return ops.reverse(x, axis=tuple(one_axis(axis, x.ndim, "flip") for axis in turned)) if turned else x


def reverse(x: TensorLike, axis: Axes) -> Tensor:
    """Reverse the order along axes."""
    return flip(x, axis)


def flipud(input: TensorLike) -> Tensor:
    """Reverse the order along the first axis."""
    return flip(input, 0)


def fliplr(input: TensorLike) -> Tensor:
    """Reverse the order along the second axis."""
    return flip(input, 1)


def roll(input: TensorLike, shifts: Axes, dims: Axes = None) -> Tensor:
    """Shift along axes, or the flat tensor; elements shifted out at the end enter at the front."""
    return ops._np_roll(tensor(input), shift=axes(shifts, "shifts"), axis=None if dims is None else axes(dims, "dims"))


def rot90(input: TensorLike, k: int, dims: Sequence[int]) -> Tensor:
    """Rotate ``k`` times by 90 degrees, from the first of two axes to the second."""
    return ops._npi_rot90(tensor(input), k=k, axes=tuple(dims))


def pad(input_x: TensorLike, padding: Sizes, mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad a tensor.

    Parameters
    ----------
    padding : sequence of int
        Elements before and after the last axis, then before and after the one before it, and so on; negative values
        remove elements.
    mode : {"constant", "reflect", "replicate", "circular"}
        A constant, a reflection, the outermost elements repeated, or the elements from the other end.
    """
    x, widths = tensor(input_x), shape_of(padding)
    if len(widths) % 2 or len(widths) > 2 * x.ndim:
        raise ArgumentError(f"pad: expected pairs for at most {x.ndim} axes, got {widths}")
    pairs = [(0, 0)] * (x.ndim - len(widths) // 2) + list(zip(widths[::2], widths[1::2]))[::-1]
    for axis, (before, after) in enumerate(pairs):
        if before < 0 or after < 0:
            x = span(x, axis, max(-before, 0), x.shape[axis] + min(after, 0))
            pairs[axis] = max(before, 0), max(after, 0)
    if mode == "circular":
        for axis, (before, after) in enumerate(pairs):
            count = x.shape[axis]
            around = [narrow(x, axis, count - before, before)] if before else []
            around += [x, narrow(x, axis, 0, after)] if after else [x]
            x = concat(around, axis) if len(around) > 1 else x
        return x
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
    if mode not in modes:
        raise ArgumentError(f"pad: mode must be one of {', '.join([*modes, 'circular'])}, got {mode!r}")
    flat = tuple(width for pair in pairs for width in pair)
    return x if not any(flat) else ops.Pad(x, mode=modes[mode], pad_width=flat, constant_value=plain(value or 0))
