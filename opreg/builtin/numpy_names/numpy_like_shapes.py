"""Operators with NumPy's rules that move, join, split and cut, under MXNet's names for them.

Each is a body of reshapes, permutations and lookups, so ranks and lengths are read when shapes are inferred, and
symbols need not know them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from ...core.attrs import Few, Limit
from ...core.registry import declare, ops
from ...core.spec import ANY, Shape, check_axes, check_axis, is_known, show
from ...core.tracing import SpecsAsked
from ...custom.composed import composed, constant
from ...errors import AttrError, ShapeError
from ..outputs import declare_array_function, names_of_outputs

__all__ = ["flat_shape", "looked_up", "reshape_value"]

Axis = int | None
Axes = int | tuple[int, ...] | None


def reshape_value(value: Any, shape: Shape) -> Any:
    """A value in another shape; itself where it has it."""
    return value if value.shape == shape else ops._np_reshape(value, newshape=shape)


def flat_shape(shape: Shape, axis: Axis) -> Shape:
    """The shape of an array that is flat where no axis is named."""
    if axis is not None:
        return shape
    count: Any = 1
    for dim in shape:
        count = count * dim
    return (count,)


def looked_up(data: Any, places: Callable[..., np.ndarray], axis: int, *lengths: int) -> Any:
    """The elements of ``data`` at constant indices along an axis.

    The function ``places`` computes the indices from ``lengths``, by default from the length of the axis.
    """
    found = constant(lambda *lengths: places(*lengths).astype(np.int64), *(lengths or (data.shape[axis],)))
    if isinstance(found, np.ndarray) and np.array_equal(found, np.arange(data.shape[axis])):
        return data
    return ops.take(data, found, axis=axis, mode="clip")


# ------------------------------------------------------------------------------------------ axes of length one


def _squeeze(shape: Shape, axis: Axes) -> Shape | None:
    if axis is None:
        return tuple([dim for dim in shape if dim != 1]) if is_known(shape) else None
    if not shape and axis in (0, -1):
        return ()
    gone = check_axes(axis, len(shape)) if axis != () else ()
    for place in gone:
        if shape[place] != 1:
            raise ShapeError(f"axis {place} of {show(shape)} has length {shape[place]}, expected 1")
    return tuple([dim for place, dim in enumerate(shape) if place not in gone])


@composed(name="_np_squeeze")
def squeeze(a, *, axis: Axes = None):
    """``a`` without the axes ``axis``, or if None without all axes of length one."""
    shape = _squeeze(a.shape, axis)
    if shape is None:
        raise SpecsAsked
    return ops._np_reshape(a, newshape=shape)


def _raise_rank(shape: Shape, rank: int) -> Shape:
    """A shape with axes of length one added up to a rank, where NumPy adds them."""
    if rank == 3 and len(shape) in (1, 2):
        return (1, *shape, 1) if len(shape) == 1 else (*shape, 1)
    return (1,) * (rank - len(shape)) + shape


def _own_dtypes(ins: list, outs: list) -> tuple[list, list]:
    """Each output has the dtype of its input."""
    same = [own or out for own, out in zip(ins, outs)]
    return same, same


def _define_atleast(rank: int) -> None:
    @composed(name=f"_np_atleast_{rank}d", types=_own_dtypes, outputs=lambda *, num_args: names_of_outputs(num_args))
    def op(*arys, num_args: Few = 1):
        """Raised arrays."""
        return tuple([reshape_value(ary, _raise_rank(ary.shape, rank)) for ary in arys])

    op.doc = f"Arrays with {rank} axes at least; axes of length one are added."


for _rank in (1, 2, 3):
    _define_atleast(_rank)


# ---------------------------------------------------------------------------------------------- permutations


def _order_of_axes(rank: int, source: int | Sequence[int], destination: int | Sequence[int]) -> tuple[int, ...]:
    """The axes in the order of the result."""
    ends = [[each] if isinstance(each, int) else list(each) for each in (source, destination)]
    if len(ends[0]) != len(ends[1]):
        raise AttrError(f"source={source} and destination={destination} have different lengths")
    places, wanted = [[check_axis(axis, rank, what) for axis in axes]
                      for axes, what in zip(ends, ("source", "destination"))]
    if len({*places}) < len(places) or len({*wanted}) < len(wanted):
        raise AttrError(f"source={source}, destination={destination}: expected each axis once")
    order = [axis for axis in range(rank) if axis not in places]
    for place, axis in sorted(zip(wanted, places)):
        order.insert(place, axis)
    return tuple(order)


@composed(name="_np_moveaxis")
def moveaxis(a, *, source: int | tuple[int, ...], destination: int | tuple[int, ...]):
    """``a`` with the axes ``source`` moved to the positions ``destination``; the other axes keep their order."""
    order = _order_of_axes(len(a.shape), source, destination)
    return ops.transpose(a, axes=order) if len(order) > 1 else a


@composed(name="_npi_flip")
def flip(data, *, axis: Axes = None):
    """``data`` in reverse order along ``axis``: one axis, several, or if None all."""
    axes = () if axis == () else check_axes(axis, len(data.shape))
    return ops.reverse(data, axis=axes) if axes else data


def _plane_of_axes(rank: int, axes: Sequence[int]) -> tuple[int, int]:
    if len(axes) != 2:
        raise AttrError(f"axes={tuple(axes)}: expected two axes")
    first, second = [check_axis(axis, rank, "axes") for axis in axes]
    if first == second:
        raise AttrError(f"axes={tuple(axes)}: expected two different axes")
    return first, second


@composed(name="_npi_rot90")
def rot90(data, *, k: int = 1, axes: tuple[int, ...] = (0, 1)):
    """``data`` rotated by ``k`` quarter turns, from the first of two axes towards the second."""
    first, second = _plane_of_axes(len(data.shape), axes)
    turns = k % 4
    if turns in (1, 2):
        data = ops.reverse(data, axis=second)
    if turns == 2:
        return ops.reverse(data, axis=first)
    data = ops.SwapAxis(data, dim1=first, dim2=second) if turns else data
    return ops.reverse(data, axis=second) if turns == 3 else data


# --------------------------------------------------------------------------------------------------- joining


def _declare_stack(name: str, raised: Callable[[Shape], Shape], axis: Callable[[Shape], int], doc: str) -> None:
    """Declare that an operator joins its inputs in raised shapes, along an axis that follows from the first one."""

    @composed(name=name)
    def op(*data, num_args: Few = 1):
        """Joined arrays."""
        parts = [reshape_value(part, raised(part.shape)) for part in data]
        return ops.Concat(*parts, num_args=len(parts), dim=axis(parts[0].shape))

    op.doc = doc


def _column(shape: Shape) -> Shape:
    return (shape[0] if shape else 1, 1) if len(shape) < 2 else shape


_declare_stack("_npi_vstack", lambda shape: _raise_rank(shape, 2), lambda shape: 0,
               "Arrays joined along the first of two axes "
               "at least: vectors as rows.")
_declare_stack("_npi_hstack", lambda shape: _raise_rank(shape, 1), lambda shape: int(len(shape) > 1),
               "Arrays concatenated along the second axis, vectors along their only one.")
_declare_stack("_npi_dstack", lambda shape: _raise_rank(shape, 3), lambda shape: 2,
               "Arrays joined along the third of three "
               "axes at least.")
_declare_stack("_npi_column_stack", _column, lambda shape: 1,
               "Arrays concatenated along the second axis; vectors become "
               "columns.")


@composed(name="_npi_concatenate")
def concatenate(*data, num_args: Few = 1, axis: Axis = 0):
    """Arrays concatenated along an axis; if None they are flattened first."""
    parts = [reshape_value(part, flat_shape(part.shape, axis)) for part in data]
    return ops.Concat(*parts, num_args=len(parts), dim=axis or 0)


# -------------------------------------------------------------------------------------------------- splitting

Sections = Annotated[int, Limit("from 0 to 65,536", lambda number: 0 <= number <= 1 << 16)]


def _declare_split(name: str, place: Callable[[Shape], int], doc: str) -> None:
    """Declare that an operator splits along an axis that follows from the rank."""

    @composed(name=name, outputs=lambda *, indices, sections: names_of_outputs(
        sections or (1 if isinstance(indices, int) else len(indices))))
    def op(data, *, indices: int | tuple[int, ...], axis: int = 1, squeeze_axis: bool = False, sections: Sections = 0):
        """Parts."""
        return ops._split_v2(data, indices=indices, axis=place(data.shape), squeeze_axis=squeeze_axis,
                             sections=sections)

    op.doc = doc


def _second(shape: Shape) -> int:
    if not shape:
        raise ShapeError("expected at least one axis, got a scalar")
    return int(len(shape) > 1)


def _third(shape: Shape) -> int:
    if len(shape) < 3:
        raise ShapeError(f"expected three axes at least, got shape {show(shape)}")
    return 2


_declare_split("_npi_hsplit", _second,
               "``data`` split along the second axis, a vector along its only one, at ``indices`` "
               "or into ``sections``. ``axis`` changes nothing.")
_declare_split("_npi_dsplit", _third,
               "``data`` split along the third axis, at ``indices`` or into ``sections``. ``axis`` "
               "changes nothing.")


# -------------------------------------------------------------------------------------------------- diagonals


def _length(rows: int, columns: int, k: int) -> int:
    """The length of a diagonal, which may be zero."""
    height, width = rows + min(k, 0), columns - max(k, 0)
    return ANY if height is ANY or width is ANY else max(min(height, width), 0)


def _on_diagonal(value: Any, shape: Shape, k: int) -> Any:
    """Zeros of a shape with a vector on its diagonal."""
    places = constant(lambda n: np.stack([np.arange(n) - min(k, 0), np.arange(n) + max(k, 0)]), value.shape[0])
    return ops.scatter_nd(value, places, shape=shape)


def _diagonals(data: Any, k: int, axis1: int, axis2: int) -> Any:
    """The diagonals over two axes, along the last axis."""
    first, second = _plane_of_axes(len(data.shape), (axis1, axis2))
    rest = [dim for place, dim in enumerate(data.shape) if place not in (first, second)]
    shape = (*rest, _length(data.shape[first], data.shape[second], k))
    if shape[-1] is not ANY and shape[-1] == 0:  # beyond the corner
        return ops._np_reshape(ops._subscript(data, key=(slice(None),) * first + (slice(0, 0),)), newshape=shape)
    return ops.diag(data, k=k, axis1=first, axis2=second)


@composed(name="_np_diag")
def diag(data, *, k: int = 0):
    """The ``k``-th diagonal of a matrix, or the matrix with a vector on that diagonal."""
    if len(data.shape) not in (1, 2):
        raise ShapeError(f"expected a vector or a matrix, got shape {show(data.shape)}")
    if len(data.shape) == 1:
        return _on_diagonal(data, (data.shape[0] + abs(k),) * 2, k)
    return _diagonals(data, k, 0, 1)


@composed(name="_np_diagflat")
def diagflat(data, *, k: int = 0):
    """The matrix with all elements of ``data`` on its ``k``-th diagonal."""
    flat = ops._np_reshape(data, newshape=flat_shape(data.shape, None))
    return _on_diagonal(flat, (flat.shape[0] + abs(k),) * 2, k)


@composed(name="_np_diagonal")
def diagonal(data, *, offset: int = 0, axis1: int = 0, axis2: int = 1):
    """The diagonals over two axes, along the last axis of the result."""
    return _diagonals(data, offset, axis1, axis2)


@composed(name="_np_trace")
def trace(data, *, offset: int = 0, axis1: int = 0, axis2: int = 1):
    """The sums of the diagonals over two axes."""
    return ops._np_sum(_diagonals(data, offset, axis1, axis2), axis=-1, dtype=data.dtype)


@declare(name="_npi_diag_indices_from", types="T->int64", unread=(0,))
def diag_indices_from(data):
    """The indices of the main diagonal of ``data``, whose axes have equal lengths: a row for each axis."""


@diag_indices_from.infer
def diag_indices_from_infer(data):
    if len(data) < 2 or any(dim != data[0] for dim in data):
        raise ShapeError(f"expected two axes or more, all of one length, got shape {show(data)}")
    return (len(data), min(data, key=lambda dim: dim is ANY))


# no body: it reads nothing but a shape
declare_array_function(diag_indices_from,
                       lambda xp, data: xp.broadcast_to(xp.arange(data.shape[0]), (data.ndim, data.shape[0])))


# ----------------------------------------------------------------------------------- padding ------------------------


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    """The widths before and after, for each axis."""
    try:
        widths = np.broadcast_to(np.array(pad_width, np.int64), (rank, 2)).tolist()
    except ValueError:
        raise AttrError(f"pad_width={pad_width}: expected two numbers for each of {rank} axes") from None
    if any(width < 0 for pair in widths for width in pair):
        raise AttrError(f"pad_width={pad_width}: expected no negative numbers")
    return [tuple(pair) for pair in widths]


def _padded_places(before: int, after: int, mode: Any) -> Callable[[int], np.ndarray]:
    """The places of an axis in the padded one, as a function of its length."""
    return lambda length: np.pad(np.arange(length), (before, after), mode)


_EXTREMES = {"maximum": "_np_max", "minimum": "_np_min"}


@composed(name="_npi_pad")
def pad(data, *, pad_width: tuple[tuple[int, ...], ...], mode: str = "constant", constant_value: float = 0.0,
        reflect_type: str = "even"):
    """``data`` padded before and after along each axis: with a constant, or with elements by NumPy's mode ``edge``,
    ``reflect``, ``symmetric``, ``maximum`` or ``minimum``."""
    modes = ("constant", "edge", "reflect", "symmetric", *_EXTREMES)
    if mode not in modes:
        raise AttrError(f"mode={mode!r}: expected one of {', '.join(modes)}")
    if reflect_type != "even":
        raise AttrError(f"reflect_type={reflect_type!r}: expected 'even'")
    widths = _widths(pad_width, len(data.shape))
    if mode != "constant" and any(dim is not ANY and dim == 0 and sum(pair) for dim, pair in zip(data.shape, widths)):
        raise ShapeError(f"{show(data.shape)}: an axis without elements cannot be padded by mode {mode!r}")
    if mode == "constant":
        return ops.Pad(data, mode=mode, pad_width=tuple([width for pair in widths for width in pair]),
                       constant_value=constant_value)
    for axis, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        if mode not in _EXTREMES:
            data = looked_up(data, _padded_places(before, after, mode), axis)
            continue
        extreme = getattr(ops, _EXTREMES[mode])(data, axis=axis, keepdims=True)
        parts = [ops.repeat(extreme, repeats=before, axis=axis) if before else None, data,
                 ops.repeat(extreme, repeats=after, axis=axis) if after else None]
        parts = [part for part in parts if part is not None]
        data = ops.Concat(*parts, num_args=len(parts), dim=axis)
    return data


@composed(name="_npi_resize")
def resize(data, *, new_shape: int | tuple[int, ...]):
    """The flattened elements of ``data``, repeated or cut off to fill the shape ``new_shape``."""
    shape = (new_shape,) if isinstance(new_shape, int) else new_shape
    flat, count = ops._np_reshape(data, newshape=flat_shape(data.shape, None)), math.prod(shape)
    if flat.shape[0] is not ANY and not flat.shape[0]:
        return ops._np_reshape(ops.Pad(flat, mode="constant", pad_width=(0, count)), newshape=shape)
    return ops._np_reshape(looked_up(flat, lambda length: np.arange(count) % length, 0), newshape=shape)
