"""Functions of shapes by NumPy's names: other shapes and orders of axes, joined and split arrays, diagonals."""

from __future__ import annotations

import builtins
import numbers
from typing import Any, Literal

import numpy as np

from opreg.core.op import Op
from opreg.core.registry import get, ops
from opreg.core.spec import as_dtype
from opreg.errors import ArgumentError
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol
from opreg.typing import DTypeLike

from .functions import (
    FUNCTIONS,
    any_symbol,
    axis_attr,
    call_numpy,
    is_number,
    register,
    register_as,
    shape_attr,
    store,
)
from .values import as_value, common_dtype

__all__ = ["concatenate", "reshape"]


@register
def reshape(a: Any, newshape: Any, order: str = "C") -> Any:
    """An array in another shape, given literally; one -1 is inferred."""
    if order != "C":
        raise ArgumentError(f"np.reshape: order: expected 'C', got {order!r}")
    return ops._np_reshape(as_value(a), newshape=shape_attr(newshape))


@register
def ravel(x: Any, order: str = "C") -> Any:
    """A flat array."""
    return reshape(x, -1, order)


@register
def transpose(a: Any, axes: Any = None) -> Any:
    """Permute the axes; by default reverse them."""
    value = as_value(a)
    if isinstance(value, NDArray) and value.ndim < 2:
        return value
    return ops.transpose(value) if axes is None else ops.transpose(value, axes=shape_attr(axes))


@register
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Swap two axes."""
    return ops.SwapAxis(as_value(a), dim1=int(axis1), dim2=int(axis2))


@register
def expand_dims(a: Any, axis: Any) -> Any:
    """Insert an axis of length one."""
    return ops.expand_dims(as_value(a), axis=int(axis)) if isinstance(axis, numbers.Integral) else \
        call_numpy("expand_dims", a, axis)


@register
def squeeze(a: Any, axis: Any = None, out: Any = None) -> Any:
    """Remove axes of length one."""
    return store(ops._np_squeeze(as_value(a), axis=axis_attr(axis)), out)


@register
def broadcast_to(array: Any, shape: Any) -> Any:
    """Broadcast to a shape."""
    return ops._np_broadcast_to(as_value(array), shape=(shape,) if isinstance(shape, int) else shape_attr(shape))


@register
def broadcast_arrays(*args: Any, subok: bool = False) -> list[Any]:
    """Arrays broadcast to one shape."""
    if any_symbol(args):
        call_numpy("broadcast_arrays", *args)  # raises the error
    values = [as_value(each) for each in args]
    shape = np.broadcast_shapes(*[value.shape for value in values])
    return [value if value.shape == shape else broadcast_to(value, shape) for value in values]


@register
def meshgrid(*xi: Any, indexing: Literal["xy", "ij"] = "xy", sparse: bool = False, copy: bool = True) -> list[Any]:
    """The coordinates of a grid, one array for each vector; ``sparse`` leaves axes of length one.

    Raises ArgumentError if ``indexing`` is neither "xy" (the first vector varies along the second axis) nor "ij".
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"np.meshgrid: indexing: expected 'xy' or 'ij', got {indexing!r}")
    shapes = [grid.shape for grid in np.meshgrid(*[np.zeros(2)] * len(xi), indexing=indexing, sparse=True)]
    vectors = [reshape(each, [-1 if length == 2 else 1 for length in shape]) for each, shape in zip(xi, shapes)]
    return vectors if sparse else broadcast_arrays(*vectors)


@register
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Move axes to other places."""
    return ops._np_moveaxis(as_value(a), source=axis_attr(source), destination=axis_attr(destination))


@register
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Rotate by quarters of a turn, from the first of two axes to the second."""
    return ops._npi_rot90(as_value(m), k=int(k), axes=tuple(axes))


def _define_atleast(rank: int) -> None:
    def function(*arys: Any) -> Any:
        values = [as_value(each) for each in arys]
        raised = get(f"_np_atleast_{rank}d")(*values, num_args=len(values))
        return raised if len(values) == 1 else list(raised)

    register_as(f"atleast_{rank}d", f"Arrays with {rank} axes at least.", function)


for _rank in (1, 2, 3):
    _define_atleast(_rank)


@register
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """An array with values appended along an axis; without an axis both are flattened."""
    return concatenate([arr, values], axis=axis)


def _joined(seq: Any) -> list[Any]:
    values = [as_value(value) for value in seq]
    arrays = [value for value in values if isinstance(value, NDArray)]
    if len({value._data.dtype for value in arrays}) > 1 and len(arrays) == len(values):
        dtype = common_dtype(*[value._data.dtype for value in arrays])
        values = [value.astype(dtype, copy=False) for value in values]
    return values


@register
def concatenate(seq: Any, axis: int | None = 0, out: Any = None) -> Any:
    """Concatenate along an axis."""
    values = _joined(seq)
    return store(ops._npi_concatenate(*values, axis=axis, num_args=len(values)), out)


@register
def stack(arrays: Any, axis: int = 0, out: Any = None) -> Any:
    """Stack along a new axis."""
    values = _joined(arrays)
    return store(ops.stack(*values, axis=int(axis), num_args=len(values)), out)


def _define_stack(name: str, operator: str) -> None:
    def function(arrays: Any = None, out: Any = None, *, tup: Any = None) -> Any:
        values = _joined(tup if arrays is None else arrays)
        return store(get(operator)(*values, num_args=len(values)), out)

    register_as(name, f"``{name}`` of arrays, which NumPy calls ``tup``.", function)


for _name, _op in (("vstack", "vstack"), ("row_stack", "vstack"), ("hstack", "hstack"), ("dstack", "dstack"),
                   ("column_stack", "column_stack")):
    _define_stack(_name, f"_npi_{_op}")


@register
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Split along an axis into equal parts, or at indices."""
    value = as_value(ary)
    if isinstance(value, NDArray):
        spans = np.split(np.arange(value.shape[axis]), indices_or_sections)
        where = axis % value.ndim
        starts = [int(span[0]) if len(span) else 0 for span in spans]
        parts = [value[(builtins.slice(None),) * where + (builtins.slice(start, start + len(span)),)]
                 for start, span in zip(starts, spans)]
        return parts if where else [part.copy() for part in parts]  # a slice of the first axis is a view
    return _parts(ops._split_v2, value, indices_or_sections, axis=axis)


def _parts(operator: Op, value: Any, indices_or_sections: Any, **attrs: Any) -> list[Any]:
    """The parts of a symbol: some number of them, or those between indices."""
    cuts = dict(indices=(), sections=int(indices_or_sections)) if isinstance(indices_or_sections, numbers.Integral) \
        else dict(indices=(0, *shape_attr(indices_or_sections)))
    return list(operator(value, **cuts, **attrs))


@register
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Split along an axis into nearly equal parts, or at indices."""
    value = as_value(ary)
    if isinstance(value, NDArray) and isinstance(indices_or_sections, numbers.Integral):
        lengths = [len(part) for part in np.array_split(np.arange(value.shape[axis]), indices_or_sections)]
        return split(value, np.cumsum(lengths)[:-1].tolist(), axis)
    return split(value, indices_or_sections, axis)


def _split_along(name: str, axis: int, least: int) -> None:
    def function(ary: Any, indices_or_sections: Any) -> list[Any]:
        value = as_value(ary)
        if isinstance(value, Symbol):
            return split(value, indices_or_sections, 0) if axis == 0 else _parts(
                get(f"_npi_{name}"), value, indices_or_sections, axis=axis)
        if value.ndim < least:
            raise ArgumentError(f"{name}: expected at least {least} axes, got shape {value.shape}")
        return split(value, indices_or_sections, min(axis, value.ndim - 1))

    register_as(name, f"``{name}``: even parts along an axis, or those between indices.", function)


for _name, _at, _least in (("vsplit", 0, 2), ("hsplit", 1, 1), ("dsplit", 2, 3)):
    _split_along(_name, _at, _least)


@register
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Repeat each element."""
    return ops.repeat(as_value(a), repeats=int(repeats), axis=axis) if isinstance(repeats, numbers.Integral) else \
        call_numpy("repeat", a, repeats, axis)


@register
def tile(A: Any, reps: Any) -> Any:
    """Repeat the whole array."""
    return ops.tile(as_value(A), reps=(int(reps),) if isinstance(reps, numbers.Integral) else shape_attr(reps))


@register
def flip(m: Any, axis: Any = None, out: Any = None) -> Any:
    """Reverse the order of the elements."""
    return store(ops._npi_flip(as_value(m), axis=axis_attr(axis)), out)


def _flips(name: str, axis: int) -> None:
    def function(m: Any) -> Any:
        return flip(m, axis)

    register_as(name, f"Reverse the order of the elements along axis {axis}.", function)


_flips("flipud", 0)
_flips("fliplr", 1)


@register
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Shift elements along an axis."""
    return ops._np_roll(as_value(a), shift=axis_attr(shift), axis=axis_attr(axis))


@register
def tril(m: Any, k: int = 0) -> Any:
    """The lower triangle, with zeros above a diagonal."""
    return ops._npi_tril(as_value(m), k=int(k))


@register
def triu(m: Any, k: int = 0) -> Any:
    """The upper triangle, with zeros below a diagonal."""
    return ops._npi_triu(as_value(m), k=int(k))


@register
def diag(v: Any, k: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    return ops._np_diag(as_value(v), k=int(k))


@register
def diagflat(v: Any, k: int = 0) -> Any:
    """The matrix with all elements on a diagonal."""
    return ops._np_diagflat(as_value(v), k=int(k))


@register
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonals of matrices along two axes, as the last axis."""
    return ops._np_diagonal(as_value(a), offset=int(offset), axis1=int(axis1), axis2=int(axis2))


@register
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, out: Any = None) -> Any:
    """The sums of the diagonals of matrices along two axes."""
    return store(ops._np_trace(as_value(a), offset=int(offset), axis1=int(axis1), axis2=int(axis2)), out)


@register
def pad(x: Any, pad_width: Any, mode: str = "constant", **keywords: Any) -> Any:
    """An array with elements added at both ends of its axes."""
    value = as_value(x)
    number, kind = keywords.pop("constant_values", 0), keywords.pop("reflect_type", "even")
    modes = ("constant", "edge", "reflect", "symmetric", "maximum", "minimum")
    if keywords or mode not in modes or kind != "even" or not is_number(number):
        keywords.update({"constant_values": number} if mode == "constant" else {})
        return call_numpy("pad", x, pad_width, mode, **keywords)
    widths = np.asarray(pad_width)
    widths = widths.reshape(1, -1) if widths.ndim < 2 else widths
    widths = np.broadcast_to(widths, (len(widths), 2))
    return ops._npi_pad(value, pad_width=tuple(map(tuple, widths.tolist())), mode=mode, constant_value=float(number))


@register
def resize(a: Any, new_shape: Any) -> Any:
    """An array of another shape with the elements repeated in their order, or cut off."""
    return ops._npi_resize(as_value(a), new_shape=shape_attr(new_shape))


def _like(name: str, operator: str) -> None:
    def function(a: Any, dtype: DTypeLike = None, order: str = "C", ctx: Any = None, out: Any = None) -> Any:
        result = get(operator)(as_value(a))
        return store(result if dtype is None else result.astype(dtype), out)

    register_as(name, f"``{name}``: an array of the shape and dtype of ``a``.", function)


_like("zeros_like", "zeros_like")
_like("ones_like", "ones_like")


@register
def empty_like(prototype: Any, dtype: DTypeLike = None, order: str = "C", subok: bool = False, shape: Any = None
               ) -> Any:
    """An array of unspecified content, with the shape and dtype of another unless they are given."""
    like = FUNCTIONS["zeros_like"](prototype, dtype, order)
    return like if shape is None else FUNCTIONS["resize"](like, shape)


@register
def full_like(a: Any, fill_value: Any, dtype: DTypeLike = None, order: str = "C", ctx: Any = None, out: Any = None
              ) -> Any:
    """An array with the shape of ``a``, filled with a value."""
    return store(ops._npi_full_like(as_value(a), fill_value=float(fill_value),
                                    dtype=None if dtype is None else as_dtype(dtype)), out)


def _define_shares_memory(name: str) -> None:
    def function(a: Any, b: Any, max_work: Any = None) -> bool:
        left, right = as_value(a), as_value(b)
        return left._ctx == right._ctx and bool(getattr(left._ctx.xp, name)(left._data, right._data))

    register_as(name, "Whether two arrays have memory in common.", function)


_define_shares_memory("may_share_memory")
_define_shares_memory("shares_memory")
