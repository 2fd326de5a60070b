"""Reshaping: the elements keep their order.

If the layout allows it, outputs are views of their inputs, and a plan has no step for them. Eager calls copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.array_module import number_on
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.rules import Rule
from ...core.spec import ANY, Shape, check_axis, fits, is_known, show, size, wrapped
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..samples import same_numbers

__all__ = ["declare_copy", "reshape_codes", "copy_view", "declare_unchanged", "constant", "out_or_empty", "stored_in",
           "repeated_parts", "declare_reshape", "as_view", "declare_view"]


#: A view of more than the second number of elements, whose last axis has at most the first number of them, is copied
#: one position of this axis at a time.
_SHORT, _LARGE = 4, 1 << 12


# ------------------------------------------------------------------------------------------- for families


def copy_view(xp: ArrayModule, view: Array, out: Array | None = None) -> Array:
    """The elements of a view in a contiguous array, or in ``out``."""
    if xp is np and is_scattered(view):
        out = np.empty(view.shape, view.dtype) if out is None else out
        for place in range(view.shape[-1]):  # NumPy would copy so few elements at a time
            out[..., place] = view[..., place]
        return out
    if out is None:
        return view.copy()
    xp.copyto(out, view)
    return out


def is_scattered(view: Array) -> bool:
    """Whether a large view has few elements along its last axis, and these lie apart."""
    return view.size >= _LARGE and 1 < view.shape[-1] <= _SHORT and view.strides[-1] > view.itemsize


def declare_copy(op: Op, view: Callable[..., Callable[[Array], Any]]) -> None:
    """Declare the kernel of an operator that copies a view of its first input, or several, an output each.

    ``view(*shapes, **attrs)``, given the shapes of all inputs, returns the function that makes the view of the first
    one, or a tuple of them.
    """
    rule = Rule(view)

    @op.in_parts  # no body: there is nothing to compute
    def copying_in_parts(xp: ArrayModule, data: Array, *others: Array, **attrs: Any) -> Callable[..., Any]:
        see = rule(attrs, data.shape, *[other.shape for other in others])
        views = see(data)
        if isinstance(views, tuple):
            nowhere = (None,) * len(views)
            return lambda data, *others, out=None: single([copy_view(xp, view, target) for view, target in zip(
                see(data), out if isinstance(out, (tuple, list)) else (out,) if out is not None else nowhere)])
        if is_scattered(views):
            return lambda data, *others, out=None: copy_view(xp, see(data), out)
        return lambda data, *others, out=None: see(data).copy() if out is None else copy_view(xp, see(data), out)


def declare_view(op: Op, view: Callable[..., Callable[[Array], Any]]) -> None:
    """Declare that the output of an operator is a view of its first input, or its outputs are; see ``declare_copy``.

    In a plan, which has no step for them, ``view`` gets the shapes of the outputs in place of those of other inputs.

    Examples
    --------
    >>> from opreg import nd
    >>> @declare(name="_example_first_column")
    ... def first_column(data): "The first column."
    >>> first_column.infer(lambda data: data[:1])
    <function <lambda> at ...>
    >>> declare_view(first_column, lambda data, *_: lambda array: array[:, 0])
    >>> first_column(nd.array([[1.0, 2.0], [3.0, 4.0]])).asnumpy().tolist()
    [1.0, 3.0]
    """
    rule = Rule(view)
    declare_copy(op, view)

    @op.view
    def viewing_view(array: Array, *, out_shape: Any, **attrs: Any) -> Any:
        shapes = out_shape if isinstance(out_shape, list) else [out_shape]
        return None if None in shapes else single(rule(attrs, array.shape, *shapes)(array))


def declare_unchanged(op: Op) -> None:
    """Declare that the output of an operator is its first input, unchanged."""
    declare_view(op, lambda *shapes: lambda array: array)


def single(results: Any) -> Any:
    """Several results as a tuple, a lone one as it is."""
    if not isinstance(results, (tuple, list)):
        return results
    return results[0] if len(results) == 1 else tuple(results)


def constant(xp: ArrayModule, value: float, dtype: np.dtype) -> Array:
    """An attribute's value in a dtype; for integers truncated and wrapped around, as MXNet stores it."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "iu":
        return number_on(xp, value, xp.float64).astype(dtype)
    if value.__class__ is int or fits(value, dtype) or fits(value, np.dtype(np.int64)):
        return number_on(xp, wrapped(int(value), dtype), dtype)
    return number_on(xp, value, xp.float64).astype(xp.int64).astype(dtype)  # the processor's result, as in MXNet


def reshape_array(xp: ArrayModule, data: Array, shape: Shape, out: Array | None = None) -> Array:
    """``data`` in another shape, as a new array or in ``out``."""
    result = out_or_empty(xp, shape, data.dtype, out)
    target = result.reshape(data.shape)
    repeated = [axis for axis, (dim, stride) in enumerate(zip(data.shape, data.strides)) if dim > 1 and stride == 0]
    for part in repeated_parts(data.shape, repeated):
        copy_view(xp, data[part], target[part])
    return stored_in(result, out)


def repeated_parts(shape: Shape, axes: Sequence[int]) -> list[Any]:
    """Keys of the parts in which an array is filled with values that repeat along axes. Many rows of up to eight
    elements are filled faster one position at a time."""
    last = max(axes, default=0)
    if not axes or math.prod(shape[last:]) > 8 or math.prod(shape[:last]) < 256 * max(shape[last], 1):
        return [...]
    return [(..., slice(i, i + 1), *(slice(None),) * (len(shape) - last - 1)) for i in range(shape[last])]


def as_view(array: Array, shape: Shape | None) -> Array | None:
    """``array`` in another shape without a copy, or None if its layout does not allow that."""
    if shape is None or not (array.flags.c_contiguous or _in_place(array.shape, array.strides, shape)):
        return None
    return array.reshape(shape)


def _in_place(shape: Shape, strides: Sequence[int], target: Shape) -> bool:
    """Whether an array with these strides can be reshaped without a copy.

    It can if axes that are merged or split are nested without gaps.
    """
    old = [(dim, stride) for dim, stride in zip(shape, strides) if dim != 1]
    new = iter([dim for dim in target if dim != 1])
    start = 0
    while start < len(old):
        stop, have, want = start + 1, old[start][0], next(new)
        while have != want:  # finds the smallest groups of old and of new axes that have equal numbers of elements
            if have < want:
                have, stop = have * old[stop][0], stop + 1
            else:
                want *= next(new)
        if any(outer != inner * dim for (_, outer), (dim, inner) in pairwise(old[start:stop])):
            return False
        start = stop
    return True


def out_or_empty(xp: ArrayModule, shape: Shape, dtype: np.dtype, out: Array | None) -> Array:
    """A contiguous array for a result: ``out``, or a new one that ``stored_in`` copies there."""
    return out if out is not None and out.flags.c_contiguous else xp.empty(shape, dtype=dtype)


def stored_in(result: Array, out: Array | None) -> Array:
    """``result``, copied to ``out`` if that is another array."""
    if out is None or out is result:
        return result
    out[...] = result
    return out


def reshape_fill(ins: list, outs: list) -> list:
    """The one unknown dimension of an input, from the number of elements, which input and output share."""
    (data,), (out,) = ins, outs
    if data is None or out is None or not is_known(out) or sum(dim is ANY for dim in data) != 1:
        return ins
    known_size = math.prod(dim for dim in data if dim is not ANY)
    if known_size == 0 or size(out) % known_size:
        return ins
    return [tuple(size(out) // known_size if dim is ANY else dim for dim in data)]


def declare_reshape(op: Op, target: Callable[..., Shape | None]) -> None:
    """Declare the rules of an operator that reshapes its first input to the shape that ``target`` returns."""
    rule = Rule(target)
    op.infer(target)
    same_numbers(op)

    @op.view
    def reshaping_view(array, *, out_shape):
        return as_view(array, out_shape)

    @op.in_parts  # no body: bodies use it to reshape
    def reshape_in_parts(xp, data, *like, **attrs):
        before, dtype, empty = data.shape, data.dtype, xp.empty
        after = rule(attrs, before, *[array.shape for array in like])

        def reshape(data, *like, out=None):
            if out is not None:
                return reshape_array(xp, data, after, out)
            result = empty(after, dtype)
            result.reshape(before)[...] = data
            return result

        return reshape

    @op.grad
    def reshaping_grad(g, ins, outs):
        return (ops.reshape_like(g, ins[0]), *[None] * (len(ins) - 1))


# ------------------------------------------------------------------------------------------------ Reshape


def reshape_codes(codes: Sequence[int], source: Shape, reverse: bool = False) -> Shape:
    """The shape that codes describe.

    A positive number is a length. 0 keeps the length at that position, -1 is inferred, -2 keeps all remaining lengths,
    -3 merges two, and -4 splits one into the two numbers after it, one of which may be -1. With ``reverse``, codes and
    lengths are read from the right.

    Raises
    ------
    AttrError
        For invalid codes.
    ShapeError
        If the number of elements differs, or the codes refer to more dimensions than there are.

    Examples
    --------
    >>> reshape_codes((-4, 1, -1, -3), (2, 3, 4))
    (1, 2, 12)
    >>> reshape_codes((0, -1), (8, 3, 4)), reshape_codes((0, -1), (8, 3, 4), reverse=True)
    ((8, 12), (3, 32))
    """
    if reverse:
        return reshape_codes(codes[::-1], source[::-1])[::-1]
    result: list[Any] = []
    fixed: list[int] = []  # the dimensions that are given as numbers
    free: list[int] = []  # dimensions of the source that no code has used
    inferred, position = None, 0
    numbers = iter(codes)
    for code in numbers:
        taken = source[position:position + (2 if code == -3 else len(source) if code == -2 else 1)]
        position += max(1, len(taken))
        if code is ANY or code > 0:
            result.append(code)
            fixed.append(code)
            free += taken
        elif code == -1:
            if inferred is not None:
                raise AttrError(f"shape={tuple(codes)}: only one dimension can be inferred (-1)")
            inferred = len(result)
            result.append(ANY)
            free += taken
        elif code == -2:
            result += taken
        elif code < -4:
            raise AttrError(f"shape={tuple(codes)}: expected numbers above zero or codes 0 to -4, got {code}")
        elif len(taken) != (2 if code == -3 else 1):
            raise ShapeError(f"shape={tuple(codes)}: for dimension {len(result)} the code {code} needs more dimensions "
                             f"than remain of {show(source)}")
        elif code == -4:
            result += _halves(taken[0], next(numbers, 0), next(numbers, 0), codes)
        else:
            result.append(math.prod(taken))
    free += source[position:]
    have, want = math.prod(free), math.prod(fixed)
    if inferred is not None and have % want == 0:
        result[inferred] = have // want
    elif inferred is not None or have != want:
        raise ShapeError(f"shape={tuple(codes)} does not fit {show(source)}, which has {math.prod(source)} elements")
    return tuple(result)


def _halves(dim: int, left: int, right: int, codes: Sequence[int]) -> list[int]:
    """The two dimensions that -4 splits one into."""
    if max(left, right) < 1 or min(left, right) < -1 or 0 in (left, right):
        raise AttrError(f"shape={tuple(codes)}: -4 must be followed by two numbers, one of which may be -1")
    if left == -1:
        left = dim // right
    elif right == -1:
        right = dim // left
    if left * right != dim:
        raise ShapeError(f"shape={tuple(codes)}: {left} x {right} is not the dimension {dim}")
    return [left, right]


def _target(source: Shape, *, shape: int | Shape, reverse: bool, target_shape: int | Shape, keep_highest: bool
            ) -> Shape:
    """The output shape of Reshape, from its codes or from its older attributes."""
    codes = (shape,) if isinstance(shape, int) else shape
    if not codes:
        target = (target_shape,) if isinstance(target_shape, int) else target_shape
        if not target:
            raise AttrError("attribute shape (tuple of int) is required")
        codes = tuple([-1 if dim == 0 else dim for dim in target])
        codes = (0, *codes[1:]) if keep_highest else codes
    return reshape_codes(codes, source, reverse)


@declare(name="Reshape", aliases=("reshape",))
def reshape(data, *, shape: int | tuple[int, ...] = (), reverse: bool = False,
            target_shape: int | tuple[int, ...] = (), keep_highest: bool = False):
    """``data`` in another shape.

    In ``shape``, 0 keeps a length, -1 is inferred, -2 keeps all remaining lengths, -3 merges two lengths, -4 splits one
    into the two lengths after it; ``reverse`` matches axes from the last one. Instead of ``shape``, old graphs have
    ``target_shape``, in which 0 is inferred, and ``keep_highest``, which keeps the first length.
    """


declare_reshape(reshape, _target)


reshape.fill(reshape_fill)


def _like(lhs: Shape, rhs: Shape, *, lhs_begin: int | None, lhs_end: int | None, rhs_begin: int | None,
          rhs_end: int | None) -> Shape:
    """The shape ``lhs`` with the dimensions from begin to end replaced by those of ``rhs``."""

    def span(shape: Shape, begin: int | None, end: int | None, name: str) -> tuple[int, int]:
        rank = len(shape)
        start = 0 if begin is None else begin + rank if begin < 0 else begin
        stop = rank if end is None else end + rank if end < 0 else end
        if not 0 <= start <= stop <= rank:
            raise AttrError(f"{name}_begin={begin}, {name}_end={end} are not a range of dimensions of {show(shape)}")
        return start, stop

    left, right = span(lhs, lhs_begin, lhs_end, "lhs")
    start, stop = span(rhs, rhs_begin, rhs_end, "rhs")
    result = (*lhs[:left], *rhs[start:stop], *lhs[right:])
    if math.prod(lhs[left:right]) != math.prod(rhs[start:stop]):
        raise ShapeError(f"cannot reshape {show(lhs)} to {show(result)}: the numbers of elements differ")
    return result


@declare(types="T,U->T", unread=(1,), aliases=("_npx_reshape_like",))
def reshape_like(lhs, rhs, *, lhs_begin: int | None = None, lhs_end: int | None = None,
                 rhs_begin: int | None = None, rhs_end: int | None = None):
    """``lhs`` in the shape of ``rhs``; or the axes from ``lhs_begin`` to before ``lhs_end`` get the lengths of the axes
    from ``rhs_begin`` to before ``rhs_end`` of ``rhs``."""


declare_reshape(reshape_like, _like)


def _rows(data: Shape) -> Shape:
    """One row for each index of the first axis."""
    if not data:
        raise ShapeError("expected at least one dimension, got shape ()")
    return (data[0], math.prod(data[1:]))


@declare(name="Flatten", aliases=("flatten", "_npx_batch_flatten"))
def flatten(data):
    """``data`` with all axes but the first joined."""


declare_reshape(flatten, _rows)


flatten.fill(reshape_fill)


# ------------------------------------------------------------------------------------ axes of length one


def _insert_axis(shape: Shape, *, axis: int) -> Shape:
    axis = check_axis(axis, len(shape) + 1)
    return (*shape[:axis], 1, *shape[axis:])


@declare(aliases=("_npi_expand_dims",))
def expand_dims(data, *, axis: int):
    """``data`` with an axis of length one inserted at position ``axis`` of the result."""


declare_reshape(expand_dims, _insert_axis)


@expand_dims.fill
def expand_dims_fill(ins, outs, *, axis):
    (out,) = outs
    if not out:
        return ins
    axis = check_axis(axis, len(out))
    return [(*out[:axis], *out[axis + 1:])]


def _squeeze_axes(shape: Shape, *, axis: int | Sequence[int] | None) -> Shape | None:
    if axis is None:
        if not is_known(shape):
            return None
        gone = {i for i, dim in enumerate(shape) if dim == 1}
    else:
        gone = {check_axis(a, len(shape)) for a in ((axis,) if isinstance(axis, int) else axis)}
        for a in sorted(gone):
            if shape[a] != 1:
                raise ShapeError(f"axis {a} of {show(shape)} has length {shape[a]}, expected 1")
    result = tuple([dim for i, dim in enumerate(shape) if i not in gone])
    return result or (1,)


@declare
def squeeze(data, *, axis: int | tuple[int, ...] | None = None):
    """``data`` without the axes ``axis``, or if None without all axes of length one; one axis always remains."""


declare_reshape(squeeze, _squeeze_axes)
